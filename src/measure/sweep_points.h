/*
 * Two lines over the request size, beside each other: where they cross, and that in words. Of cells and of earlier
 * tables alike; and the words that every report of a sweep uses.
 */
#ifndef SP_MEASURE_SWEEP_POINTS_H
#define SP_MEASURE_SWEEP_POINTS_H

#include "measure/sweep.h"

#define SWEEP_POINTS_MAX 64
#define SWEEP_SENTENCE_BYTES 512
#define SWEEP_TEXT_BYTES 48

struct sweep_points {
    size_t count;
    uint64_t bytes[SWEEP_POINTS_MAX];                /* ascending */
    double a[SWEEP_POINTS_MAX], b[SWEEP_POINTS_MAX]; /* greater than 0 */
    int ahead[SWEEP_POINTS_MAX];                     /* 1: a is, -1: b is, 0: neither */
};

/* One more size; without an effect when there is no room or a value is not finite and positive. */
void sweep_points_add(struct sweep_points *p, uint64_t bytes, double a, double b, bool is_even);
/*
 * Of a result: every size at which both were measured. Rates whose medians both lie within the other's rounds are even.
 */
void sweep_points_of(struct sweep_points *p, const struct sweep_result *result, size_t algorithm, size_t mode,
                     enum sweep_metric metric, size_t a, size_t b);

struct sweep_crossing sweep_points_crossing(const struct sweep_points *p);
/* At most `size` bytes with the NUL; `out`. */
char *sweep_points_sentence(const struct sweep_points *p, const struct sweep_mode *mode, enum sweep_metric metric,
                            const char *a, const char *b, char *out, size_t size);

/* NAN: it was not measured, or the machine does not count it. */
double sweep_cell_value(const struct sweep_cell *cell, enum sweep_metric metric);

/* The mode of the table of bytes a CPU-second: single as in the published one, the first where there is no single. */
size_t sweep_cpu_mode(const struct sweep_result *result);
/*
 * Why cells of one implementation were not measured, one line for neighbours of the same reason: "cryptodev:x at 64 KiB
 * to 4 MiB: requests above 65535 bytes are refused". Looks from *size on and moves it behind; false: no more.
 */
bool sweep_missing_next(const struct sweep_result *result, size_t algorithm, size_t mode, size_t impl, size_t *size,
                        char out[SWEEP_SENTENCE_BYTES]);

/* "64 KiB", exactly; "1500 B". */
const char *sweep_size_text(uint64_t bytes, char out[SWEEP_TEXT_BYTES]);
/* "when single", "with 112 concurrent", "with 32 in flight". */
const char *sweep_mode_phrase(const struct sweep_mode *mode, char out[SWEEP_TEXT_BYTES]);
/* "one request at a time", "112 threads, one request each", "one thread, 32 requests in flight". */
const char *sweep_mode_title(const struct sweep_mode *mode, char out[SWEEP_TEXT_BYTES]);
/* "single", "concurrent", "depth". */
const char *sweep_mode_name(enum sweep_mode_kind kind);

#endif
