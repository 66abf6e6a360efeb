/*
 * What `sallyport compare` measured, and what may be said about it.
 */
#ifndef SP_MEASURE_COMPARE_RESULT_H
#define SP_MEASURE_COMPARE_RESULT_H

#include "measure/stats.h"

enum compare_metric { COMPARE_RATE, COMPARE_CPU_US, COMPARE_P50_US, COMPARE_P99_US, COMPARE_METRICS };

/* "requests/s", "CPU us/request", "p50 us", "p99 us"; static. And the names in the JSON. */
const char *compare_metric_text(enum compare_metric metric);
const char *compare_metric_name(enum compare_metric metric);

enum compare_verdict {
    COMPARE_IS_BASE,    /* nothing to compare it with */
    COMPARE_NOTHING,    /* not measured, or a figure of 0 */
    COMPARE_FEW_ROUNDS, /* less than STATS_PAIRS_MIN in which both were measured */
    COMPARE_CLIENT,     /* requests/s of a client that was at its own limit, in a round of either */
    COMPARE_SAME,       /* the interval holds 1: no difference shown */
    COMPARE_LESS,       /* the whole interval lies below 1 */
    COMPARE_MORE,       /* … above 1 */
};

/* One variant under one load. */
struct compare_cell {
    double *values[COMPARE_METRICS]; /* by round, `rounds` each; NAN: not measured */
    unsigned client_limits;          /* rounds in which the client was the limit */

    double median[COMPARE_METRICS]; /* by compare_summarise; NAN: not measured */
    struct stats_ratio ratio[COMPARE_METRICS];
    enum compare_verdict verdict[COMPARE_METRICS];
};

struct compare_result {
    unsigned rounds, variants, loads, base;
    uint64_t seed;
    struct compare_cell *cells; /* [load * variants + variant] */
    double *values;
};

/* All values NAN. SP_ENOMEM; SP_EINVAL: a count is 0, or rounds above STATS_VALUES_MAX. */
int compare_result_init(struct compare_result *r, unsigned rounds, unsigned variants, unsigned loads);
void compare_result_release(struct compare_result *r);

struct compare_cell *compare_result_cell(const struct compare_result *r, unsigned load, unsigned variant);

/*
 * Medians of all cells, and ratios to the base variant of the same load with their intervals. Each interval draws from
 * the same seed. SP_ENOMEM.
 */
int compare_summarise(struct compare_result *r);

/* "less CPU", "faster", "no difference shown", …; static. */
const char *compare_verdict_text(enum compare_metric metric, enum compare_verdict verdict);
/* Whether it is the better one that it says; false also where there is no difference. */
bool compare_verdict_is_better(enum compare_metric metric, enum compare_verdict verdict);
bool compare_verdict_is_worse(enum compare_metric metric, enum compare_verdict verdict);

#endif
