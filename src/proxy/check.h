/*
 * Active health checks: TCP connect, TLS handshake, HTTP requests
 * (option httpchk, http-check), scripts (tcp-check connect|send|expect).
 *
 * Checks run in worker 0's loop and never block it.
 */
#ifndef SP_PROXY_CHECK_H
#define SP_PROXY_CHECK_H

#include "proxy/proxy.h"

/*
 * True when a "connect … ssl" line of the backend's script applies: its checked servers then
 * need a TLS context whether or not their traffic is encrypted.
 */
bool checks_use_tls(const struct cfg_proxy *cfg);

/*
 * Compiles the backend's http-check and tcp-check lines, gives each checked server its check and each
 * tracking server its chain. All servers of all backends must exist, with their TLS contexts and `track`.
 * Errors to diag with SP_EINVAL; SP_ENOMEM.
 */
int checks_build(struct proxy *backend, struct rules_compiler *compiler);

/* Starts all checks of the application on `loop` (first runs spread over the interval as HAProxy does). */
int checks_start(struct app *app, struct io_loop *loop, struct tls_worker *tls);
/* Ends every check in flight; afterwards nothing of them is registered in the loop. */
void checks_stop(struct app *app);
void checks_free(struct app *app);

/* Last result for the statistics page: "L7OK/200 in 1ms" and the like. Returns `out`. Any thread. */
const char *check_text(const struct check *c, char *out, size_t out_bytes);
/* Short status such as "L4OK", "L7STS", "L4TOUT"; "INI" before the first result. Any thread. */
const char *check_status(const struct check *c);

/* Everything that statistics and the command socket show of a check. */
struct check_view {
    int code;                /* HAProxy's number of the status: 1 INI, 6 L4OK, … */
    int result;              /* 0 unknown, 2 failed, 3 passed, 4 conditionally passed */
    const char *status;      /* "L7OK" */
    const char *description; /* "Layer7 check passed" */
    int status_code;         /* of layer 7; -1: none */
    int64_t duration_ms;     /* -1: none */
    int health, rise, fall;
    bool running, paused;
    char info[256]; /* last_chk: text of the result, empty when there is none */
};
/* Any thread. */
void check_view(const struct check *c, struct check_view *out);

/*
 * "observe": tells how a connection (layer7 false) or a response (true) of the traffic went. Any
 * thread; costs two loads when the server does not observe. After error-limit failures in a row, on-error follows.
 */
void check_observe(struct server *s, bool layer7, bool ok);

/*
 * Marks a server with HAProxy's log lines and effects (on-marked-down, queue release, tracking servers), as an
 * operator would: MAINT and DRAIN are forced, UP ends both, UP and DOWN of a server without either set
 * what its checks will find or refute. `reason` (NULL: none) is appended to the line, e.g. "changed from CLI".
 * On worker 0's thread.
 */
void server_set_state(struct server *s, enum server_state state, const char *reason);

#endif
