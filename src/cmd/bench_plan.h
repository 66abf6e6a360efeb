/*
 * From the arguments of `sallyport bench` to what the engine runs: URLs resolved, requests encoded, TLS contexts
 * built.
 */
#ifndef SP_CMD_BENCH_PLAN_H
#define SP_CMD_BENCH_PLAN_H

#include "base/arena.h"
#include "cmd/bench_args.h"
#include "load/load.h"

struct bench_url {
    struct str scheme; /* "http", "https" */
    bool is_tls;
    struct str host; /* without port; with the brackets of an IPv6 address; the path of a Unix socket */
    bool is_unix;
    uint16_t port;
    struct str target; /* path and query, "/" when the URL has none */
};

/* Slices of `text`. NULL, or what was expected instead. */
const char *bench_url_parse(const char *text, struct bench_url *out);

struct bench_plan {
    struct load_plan load;
    struct arena arena;
    struct load_target *targets;
    struct load_request *requests;
    const char **urls;         /* as given, one a request */
    struct str body;
    struct tls_store *store;
    int cert_fd;               /* memory file with client certificate and key; -1: none */
};

/* 0, or the exit status after a message on stderr: 1, 2. bench_plan_release either way. `args` outlives it. */
int bench_plan_build(struct bench_plan *p, const struct bench_args *args);
void bench_plan_release(struct bench_plan *p);

/*
 * Sends every request once, on a connection of its own, and makes what comes back the content that is expected
 * from then on. 0, or 1 after a message on stderr.
 */
int bench_sample(struct bench_plan *p);

#endif
