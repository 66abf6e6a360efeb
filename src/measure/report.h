/*
 * The page of one measured run: the figures in a plain struct of numbers and texts, so that whoever measured fills it.
 */
#ifndef SP_MEASURE_REPORT_H
#define SP_MEASURE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* How long one phase took, over all its occurrences. Microseconds; count 0: left out. */
struct report_phase {
    const char *name;
    uint64_t count;
    double min_us, mean_us, stddev_us, max_us;
    const double *percents;      /* shared by all phases, ascending, 0 ≤ p < 100 */
    const double *percentile_us; /* of each of them */
    size_t percentile_count;
    bool is_curve; /* drawn in the first plot; the others stand in the table alone */
};

struct report_bar {
    double low_us, high_us;
    uint64_t count;
};

struct report_interval {
    double start_s, length_s;
    double requests_per_s, errors_per_s; /* errors 0 everywhere: not drawn */
    double p50_us, p99_us, max_us;       /* of no meaning when requests_per_s is 0 */
};

/* One line of a table of two columns, and of the tiles on top: "1,234/s", "requests a second". */
struct report_fact {
    const char *name, *value;
};

struct report_run {
    const char *title;
    const char *subtitle;
    const char *loop_note; /* what the latencies hide or do not */
    const char *const *warnings; /* stand out on top */
    size_t warning_count;
    const struct report_fact *tiles;
    size_t tile_count;
    const struct report_phase *phases;
    size_t phase_count;
    const struct report_bar *bars; /* of the first curve, ascending */
    size_t bar_count;
    const struct report_interval *intervals;
    size_t interval_count;
    const struct report_fact *errors; /* empty: none */
    size_t error_count;
    const struct report_fact *setup; /* how it was run */
    size_t setup_count;
};

/* One self-contained page. Everything is escaped. */
void report_html(FILE *out, const struct report_run *run);

#endif
