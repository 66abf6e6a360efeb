/*
 * The arguments of `sallyport bench`.
 */
#ifndef SP_CMD_BENCH_ARGS_H
#define SP_CMD_BENCH_ARGS_H

#include "base/str.h"

enum bench_format { BENCH_FORMAT_DEFAULT, BENCH_FORMAT_AB, BENCH_FORMAT_WRK, BENCH_FORMAT_EPWGET };

/* Strings are argv's. */
struct bench_args {
    bool help;
    const char **urls; /* on the heap */
    size_t url_count;
    const char **headers; /* "Name: value", checked; on the heap */
    size_t header_count;
    const char *urls_file, *method, *body, *body_file, *content_type, *basic_auth;

    uint64_t connections, requests, threads; /* 0: not given */
    int64_t duration_us, time_limit_us, timeout_us, warmup_us, interval_us; /* 0: not given */
    bool close, keepalive, latency, quiet, handshake_only;
    double rate; /* 0: closed loop */
    bool is_constant; /* arrivals of an open loop; otherwise Poisson */
    uint64_t seed;
    uint64_t *cpus; /* NULL: not given; on the heap */
    size_t cpu_count;

    int tls_version; /* 12, 13; 0: any */
    const char *ciphers, *curves, *sni, *alpn, *cert, *key, *cafile;
    bool insecure;
    double resume_ratio;

    uint64_t server_pid;
    uint64_t expect_status;
    uint64_t expect_size;
    bool has_expect_size, expect_same;

    enum bench_format format;
    bool json;
    const char *csv, *html;

    bool find_limit;
    int64_t p99_limit_us;
    double hold;
    const char *sweep, *command; /* "threads=1..8" and what is started */
    struct str sweep_name;       /* "threads" */
    uint64_t sweep_low, sweep_high;
};

/*
 * 0; 2 after a message on stderr that names the argument and what was expected. bench_args_release either way.
 */
int bench_args_parse(struct bench_args *a, int argc, char **argv);
void bench_args_release(struct bench_args *a);

/* "usage: …", for --help. */
extern const char bench_usage[];

#endif
