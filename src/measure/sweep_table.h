/*
 * What an earlier table holds, for the reports.
 */
#ifndef SP_MEASURE_SWEEP_TABLE_H
#define SP_MEASURE_SWEEP_TABLE_H

#include "measure/sweep_points.h"
#include "measure/sweep_report.h"

#define SWEEP_TABLE_SERIES_MAX 4096
#define SWEEP_TABLE_NAME_BYTES 256 /* with the NUL */
#define SWEEP_TABLE_LABEL_BYTES 384

/* One implementation in one mode by one metric. */
struct sweep_table_series {
    char *algorithm; /* NULL: the table does not say which */
    char *name;
    struct sweep_mode mode;
    enum sweep_metric metric;
    size_t count;
    uint64_t bytes[SWEEP_POINTS_MAX]; /* ascending */
    double values[SWEEP_POINTS_MAX];  /* greater than 0 */
};

struct sweep_table {
    struct sweep_table_series *series;
    size_t count;
    /* Its device comes first and what it is compared with last, instead of the other way round. */
    bool is_published;
};

/* Both lines at the sizes that both have. */
void sweep_table_points(struct sweep_points *p, const struct sweep_table_series *a, const struct sweep_table_series *b);
/* NAN: not at this size. */
double sweep_table_value(const struct sweep_table_series *series, uint64_t bytes);
/*
 * The one that s is compared with: of the same algorithm, mode and metric, the table's first (the last of a published
 * one). NULL: s is that one.
 */
const struct sweep_table_series *sweep_table_base(const struct sweep_table *table, const struct sweep_table_series *s);

/*
 * The series from *at on that belongs beside what was measured: of this algorithm or of none, of this kind of mode (one
 * that names no algorithm: concurrent beside depth too) and metric. Moves *at behind it; NULL: no more. `table` may be
 * NULL.
 */
const struct sweep_table_series *sweep_table_next(const struct sweep_table *table, const char *algorithm,
                                                  enum sweep_mode_kind kind, enum sweep_metric metric, size_t *at);
/* "card, 112 concurrent (published)"; `mode`: of what it stands beside. */
const char *sweep_table_label(const struct sweep_table_series *series, const struct sweep_mode *mode,
                              const char *earlier_name, char out[SWEEP_TABLE_LABEL_BYTES]);

#endif
