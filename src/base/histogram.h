/*
 * Latency histogram: log-linear buckets that keep three significant digits
 * from 1 us to 60 s.
 *
 * Values below 2048 us have a bucket each; from there on every doubling is cut
 * into 1024 equal buckets, so that a bucket is never wider than 1/1024 of its
 * values (the layout of G. Tene's HdrHistogram). Recording is a handful of
 * instructions and allocates nothing. Mean and standard deviation come from
 * exact integer sums, not from the buckets.
 *
 * One writer; a reader on another thread merges under the owner's rules.
 */
#ifndef SP_BASE_HISTOGRAM_H
#define SP_BASE_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_MAX_US 60000000u
#define HISTOGRAM_BUCKETS 17408u /* 2048 + 15 doublings of 1024: up to 2^26 us */

/* About 136 KiB: allocate it, do not put it on a stack. */
struct histogram {
    uint64_t count;
    uint64_t over_count; /* values above HISTOGRAM_MAX_US, recorded as that */
    uint64_t sum_us;
    unsigned __int128 sum_squares;
    uint32_t min_us, max_us;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_init(struct histogram *h);

/* Values above HISTOGRAM_MAX_US count as HISTOGRAM_MAX_US. */
void histogram_record(struct histogram *h, uint64_t value_us);

/* The same value `times` times. */
void histogram_record_n(struct histogram *h, uint64_t value_us, uint64_t times);

/* Adds everything in `from` to `into`; `from` is unchanged. */
void histogram_merge(struct histogram *into, const struct histogram *from);

/*
 * The smallest value, to the resolution of a bucket and rounded up within it,
 * that at least `percent` (0 to 100, clamped) of the values do not exceed.
 * Never above the maximum, never below the minimum; 0 when nothing was recorded.
 */
uint64_t histogram_percentile_us(const struct histogram *h, double percent);

/* All exact; 0 when nothing was recorded. The deviation is the population's. */
uint64_t histogram_min_us(const struct histogram *h);
uint64_t histogram_max_us(const struct histogram *h);
double histogram_mean_us(const struct histogram *h);
double histogram_stddev_us(const struct histogram *h);

#endif
