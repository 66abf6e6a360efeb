/*
 * The load generator's engine: threads, each with one event loop, that drive HTTP/1.1 connections over
 * TCP, TLS or Unix sockets and measure them. It prints nothing, knows no command line, and allocates
 * nothing between the first request and the last.
 *
 * Closed loop: every connection sends its next request when the last answer has come. A server that stalls
 * is then asked less, and the stall shows once: the latencies are those of the requests that were sent.
 * Open loop: requests are due at times that do not depend on the answers. `latency` counts from when a
 * request was due (what a user would have seen), `service` from when it was sent; they differ by the time that it
 * waited for a free connection.
 */
#ifndef SP_LOAD_LOAD_H
#define SP_LOAD_LOAD_H

#include "base/addr.h"
#include "base/histogram.h"
#include "http/http.h"
#include "tls/tls.h"

/* --- what to do ------------------------------------------------------------------------ */

/* Where requests go: scheme, host and port of one or more URLs. */
struct load_target {
    struct addr addr;
    const char *host;         /* for Host and SNI, e.g. "www.example.com" or "127.0.0.1:8080" */
    bool is_tls;
    struct tls_client_ctx *tls; /* of is_tls; one for all threads */
    const char *sni;          /* NULL: none */
    const char *alpn;         /* NULL: none */
};

/* One request, encoded once: head and body in one slice. Requests are sent in turn, by all connections together. */
struct load_request {
    const struct load_target *target;
    struct str bytes;
    enum http_method method;
    /* What the answer has to be; -1 and 0: not looked at. */
    int expect_status;
    int64_t expect_size;
    uint64_t expect_hash;     /* hash_fnv1a64(body, 0); see hash_body */
    bool hash_body;
};

enum load_arrivals { LOAD_CLOSED, LOAD_CONSTANT, LOAD_POISSON };

struct load_plan {
    const struct load_target *targets;
    size_t target_count;
    const struct load_request *requests;
    size_t request_count;
    unsigned connections;     /* at a time, over all threads; at least `threads` */
    unsigned threads;
    uint64_t request_limit;   /* stops after so many were sent; 0: none */
    uint64_t duration_us;     /* stops sending after so long; 0: none. One of the two is set */
    uint64_t warmup_us;       /* nothing is recorded before; counts to neither */
    bool close;               /* a connection a request */
    bool handshake_only;      /* connect, TLS, close: no request at all; each counts as a request */
    double resume_ratio;      /* share of TLS connections that offer a session; 0 to 1 */
    uint64_t timeout_us;      /* for each phase: connect, handshake, first byte, rest of the answer */
    enum load_arrivals arrivals;
    double rate;              /* requests a second over all threads, of an open loop */
    uint64_t seed;            /* of Poisson arrivals and of the choice to resume */
    uint64_t interval_us;     /* of the time series; 0: none */
    const uint64_t *cpus;     /* CPU of each thread, `threads` of them; NULL: where the system puts them */
};

/* --- what came of it ----------------------------------------------------------------------- */

enum load_error {
    LOAD_ERROR_REFUSED,       /* connection refused */
    LOAD_ERROR_UNREACHABLE,   /* no route, network down, no address */
    LOAD_ERROR_RESOURCES,     /* our own: descriptors, ports, memory */
    LOAD_ERROR_TIMEOUT_CONNECT,
    LOAD_ERROR_TIMEOUT_HANDSHAKE,
    LOAD_ERROR_TIMEOUT_FIRST_BYTE,
    LOAD_ERROR_TIMEOUT_BODY,
    LOAD_ERROR_RESET,         /* in the middle of something; not on an idle connection */
    LOAD_ERROR_CLOSED,        /* end of stream before the answer was whole */
    LOAD_ERROR_TLS,           /* handshake failed: alert, certificate, protocol */
    LOAD_ERROR_HTTP,          /* the answer is no HTTP */
    LOAD_ERROR_STATUS,        /* not the expected status */
    LOAD_ERROR_SIZE,          /* not the expected size */
    LOAD_ERROR_HASH,          /* not the expected content */
    LOAD_ERRORS
};
/* "connection refused", "timed out waiting for the first byte" …; static. */
const char *load_error_text(enum load_error error);
/* "refused", "timeout_connect" …: the JSON name; static. */
const char *load_error_name(enum load_error error);

#define LOAD_EXAMPLE_BYTES 200

struct load_interval {
    uint64_t start_us;        /* since the measurement began */
    uint64_t requests, errors, bytes_in;
    uint64_t p50_us, p99_us, max_us;
};

struct load_result {
    uint64_t duration_us;     /* from the first request after the warm-up to the last answer */
    uint64_t sent;            /* requests */
    uint64_t requests;        /* answered completely, whatever the status, those with a failed expectation too */
    uint64_t errors[LOAD_ERRORS];
    char examples[LOAD_ERRORS][LOAD_EXAMPLE_BYTES]; /* the first of each: what, where; empty: none */
    uint64_t status_class[6]; /* [2]: 2xx; [0] unused */
    uint64_t bytes_in, bytes_out; /* on the wire above TCP: TLS records count */
    uint64_t body_bytes;
    uint64_t connects;        /* TCP connections established */
    uint64_t handshakes_full, handshakes_resumed;
    uint64_t reconnects;      /* kept-alive connections that the server had closed while idle: no error */
    /* Microseconds. Each answered request is in latency, service and first_byte; each connection in its own. */
    struct histogram *connect, *handshake_full, *handshake_resumed, *first_byte, *service, *latency;
    struct load_interval *intervals;
    size_t interval_count;
    uint64_t late_us_max;     /* open loop: the longest that a due request waited to be sent */
    double own_cpu_s;         /* user and system time of the engine's threads while measuring */
    double busy;              /* greatest share of the time that a thread's loop was not idle: above 0.95 the client is the limit */
    bool interrupted;         /* load_stop ended it */
    const char *tls_version, *tls_cipher; /* of the first handshake; static or the result's; NULL: none */
};

struct load;

/* Copies nothing: plan, targets and requests outlive it. SP_ENOMEM; SP_EINVAL: the plan contradicts itself. */
int load_new(struct load **out, const struct load_plan *plan);
void load_free(struct load *load);
/* Starts the threads. SP_EIO with errno. */
int load_start(struct load *load);
/* From any thread or signal handler: no more requests; those under way are given until their timeout, at most one second. */
void load_stop(struct load *load);
/* False once all threads have ended. */
bool load_is_running(const struct load *load);
/* Waits for the threads, then sums. The result belongs to `load`. */
const struct load_result *load_wait(struct load *load);

/* While it runs, from another thread: approximate. p99 over the last second. */
struct load_progress {
    uint64_t elapsed_us, requests, errors;
    double rate_per_s;
    uint64_t p99_us;
};
void load_progress(const struct load *load, struct load_progress *out);

#endif
