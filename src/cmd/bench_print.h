/*
 * What a run of `sallyport bench` has measured, as text: our own layout, those of ab, wrk and epwget, JSON, CSV and
 * the page.
 */
#ifndef SP_CMD_BENCH_PRINT_H
#define SP_CMD_BENCH_PRINT_H

#include "cmd/bench_args.h"
#include "cmd/bench_plan.h"
#include "cmd/bench_server.h"

struct bench_report {
    const struct bench_args *args;
    const struct bench_plan *plan;
    const struct load_result *result;
    const struct bench_server *server; /* NULL: not asked for */
    bool interrupted;                  /* a signal ended it */
};

/* Above this share of the time the client's loop has no reserve left, and the figures are its own. */
#define BENCH_BUSY_LIMIT 0.95
#define BENCH_BUSY_LEAST_US 100000 /* a shorter run is busy with its own beginning */

uint64_t bench_errors(const struct load_result *r); /* of all kinds */
double bench_rate(const struct load_result *r);     /* requests a second */
bool bench_client_is_limit(const struct load_result *r);
const char *bench_loop_name(const struct load_plan *plan); /* "closed", "open" */
/* Length of an interval: a long run without an end in time may have widened them. */
double bench_interval_s(const struct bench_report *b);
/* CPU percent and microseconds a request of the server; 0 where nothing was measured. */
double bench_server_percent(const struct bench_server *s);
double bench_server_us(const struct bench_server *s, const struct load_result *r);

/* In the format of the arguments. */
void bench_print(FILE *out, const struct bench_report *b);
/* The three others. */
void bench_print_ab(FILE *out, const struct bench_report *b);
void bench_print_wrk(FILE *out, const struct bench_report *b);
void bench_print_epwget(FILE *out, const struct bench_report *b);

/* docs/bench-json.md */
void bench_json(FILE *out, const struct bench_report *b);
/* A head line, then a line an interval. */
void bench_csv(FILE *out, const struct bench_report *b);
/* SP_ENOMEM. */
int bench_html(FILE *out, const struct bench_report *b);

#endif
