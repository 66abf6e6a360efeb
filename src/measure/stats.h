/*
 * Statistics of repeated measurements: medians, and how sure one may be of a ratio of two of them.
 *
 * Nothing here assumes a distribution. Rounds of two variants are paired: what disturbed the machine in a
 * round disturbed both, so they are drawn together.
 */
#ifndef SP_MEASURE_STATS_H
#define SP_MEASURE_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STATS_VALUES_MAX 512
#define STATS_RESAMPLES 10000
/*
 * With n pairs the interval is never wider than from the smallest to the greatest value, which holds the median of a
 * distribution with probability 1 - 2^(1-n): 94 % for 5, 75 % for 3. Below 5 it promises too much.
 */
#define STATS_PAIRS_MIN 5

/*
 * The value below which a share `q` (0 to 1, clamped) of the `n` values lies, linear between neighbours (definition 7 of
 * Hyndman and Fan). NAN when n is 0 or above STATS_VALUES_MAX, or a value is NAN. The values stay as they are.
 */
double stats_quantile(const double *values, size_t n, double q);
double stats_median(const double *values, size_t n);

/*
 * Copies the pairs of which both values are there (not NAN), in their order; out_a and out_b have room for `n`.
 * Returns how many.
 */
size_t stats_pair(const double *a, const double *b, size_t n, double *out_a, double *out_b);

struct stats_ratio {
    double ratio;      /* median of a over median of base */
    double low, high;  /* of the 95 % interval; both `ratio` when there is none */
    bool has_interval; /* at least STATS_PAIRS_MIN pairs */
};

/*
 * Ratio of medians of `n` pairs with its percentile bootstrap interval (Efron 1979): `resamples` draws of n pairs with
 * replacement; the same seed draws the same. SP_EINVAL when n is 0 or above STATS_VALUES_MAX, resamples is 0 or above
 * STATS_RESAMPLES, or a value is NAN or not above 0.
 */
int stats_ratio(const double *a, const double *base, size_t n, uint64_t seed, unsigned resamples,
                struct stats_ratio *out);

/*
 * A generator of its own from a number: the same number gives the same sequence on every machine.
 * splitmix64 (Steele, Lea, Flood 2014).
 */
struct stats_rng {
    uint64_t state;
};
uint64_t stats_rng_next(struct stats_rng *rng);
/* 0 to n - 1, each equally likely; n is not 0. */
uint64_t stats_rng_below(struct stats_rng *rng, uint64_t n);
/* Fisher and Yates; a permutation of 0 to n - 1. */
void stats_shuffle(struct stats_rng *rng, unsigned *order, unsigned n);

#endif
