/*
 * From the checked model to running objects: the builder's parts. Errors go to
 * the diagnostics with the place they come from; building goes on as far as it can, so that
 * all errors are reported at once.
 */
#ifndef SP_PROXY_BUILD_H
#define SP_PROXY_BUILD_H

#include "proxy/proxy.h"

struct build {
    struct app *app;
    struct diag *diag;
};

/* Compiler for a line of `p` at `loc`. */
struct rules_compiler build_compiler(struct build *b, struct proxy *p, struct cfg_loc loc);

/* 0, 30 (SSLv3), 10, 11, 12 or 13 of the model. */
enum tls_version build_tls_version(int number);

/* Servers exist before any rule is compiled, since rules name them. 0 or SP_ENOMEM. */
int build_servers(struct build *b, struct proxy *p);
/* SNI expressions, TLS contexts, tracking: after all servers exist. */
int build_servers_finish(struct build *b, struct proxy *p);
int build_binds(struct build *b, struct proxy *p);
int build_rules(struct build *b, struct proxy *p);
int build_logs(struct build *b);
/* Opens every log target; closes them all. */
int build_open_logs(struct app *app, struct diag *diag);
int build_errors(struct build *b, struct proxy *p);
/* build_limits.c: what is not supported, retry-on, variables of the process. */
void build_limits_check(struct build *b, const struct proxy *p);
int build_retry(struct build *b, struct proxy *p);
int build_process_vars(struct build *b, struct proxy *scratch);
/* build_crypto.c: what the workers' crypto queues may use. */
void build_crypto(struct build *b);

#endif
