#include "measure/stats.h"

#include <sallyport/status.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

uint64_t stats_rng_next(struct stats_rng *rng)
{
    uint64_t z = rng->state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t stats_rng_below(struct stats_rng *rng, uint64_t n)
{
    uint64_t surplus = -n % n; /* 2^64 mod n: drawn again, or small numbers would be likelier */
    uint64_t x;

    do
        x = stats_rng_next(rng);
    while (x < surplus);
    return x % n;
}

void stats_shuffle(struct stats_rng *rng, unsigned *order, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        order[i] = i;
    for (unsigned i = n; i > 1; i--) {
        unsigned j = (unsigned)stats_rng_below(rng, i);
        unsigned swap = order[i - 1];

        order[i - 1] = order[j];
        order[j] = swap;
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Rounds are few: insertion beats qsort's calls by far, and the bootstrap sorts 20,000 times. */
static void sort(double *values, size_t n)
{
    if (n > 64) {
        qsort(values, n, sizeof(*values), compare);
        return;
    }
    for (size_t i = 1; i < n; i++) {
        double value = values[i];
        size_t j = i;

        for (; j > 0 && values[j - 1] > value; j--)
            values[j] = values[j - 1];
        values[j] = value;
    }
}

/* Of sorted values. */
static double quantile(const double *values, size_t n, double q)
{
    double at = q * (double)(n - 1);
    size_t below = (size_t)at;

    if (below + 1 >= n)
        return values[n - 1];
    return values[below] + (values[below + 1] - values[below]) * (at - (double)below);
}

double stats_quantile(const double *values, size_t n, double q)
{
    double sorted[STATS_VALUES_MAX];

    if (n == 0 || n > STATS_VALUES_MAX || isnan(q))
        return NAN;
    for (size_t i = 0; i < n; i++) {
        if (isnan(values[i]))
            return NAN;
        sorted[i] = values[i];
    }
    sort(sorted, n);
    return quantile(sorted, n, q < 0 ? 0 : q > 1 ? 1 : q);
}

double stats_median(const double *values, size_t n)
{
    return stats_quantile(values, n, 0.5);
}

size_t stats_pair(const double *a, const double *b, size_t n, double *out_a, double *out_b)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++) {
        if (isnan(a[i]) || isnan(b[i]))
            continue;
        out_a[count] = a[i];
        out_b[count++] = b[i];
    }
    return count;
}

static double draw_ratio(const double *a, const double *base, size_t n, struct stats_rng *rng)
{
    double drawn_a[STATS_VALUES_MAX], drawn_base[STATS_VALUES_MAX];

    for (size_t i = 0; i < n; i++) {
        size_t at = (size_t)stats_rng_below(rng, n);

        drawn_a[i] = a[at];
        drawn_base[i] = base[at];
    }
    sort(drawn_a, n);
    sort(drawn_base, n);
    return quantile(drawn_a, n, 0.5) / quantile(drawn_base, n, 0.5);
}

int stats_ratio(const double *a, const double *base, size_t n, uint64_t seed, unsigned resamples,
                struct stats_ratio *out)
{
    struct stats_rng rng = {seed};
    struct stats_ratio result;
    double *ratios;

    if (n == 0 || n > STATS_VALUES_MAX || resamples == 0 || resamples > STATS_RESAMPLES)
        return SP_EINVAL;
    for (size_t i = 0; i < n; i++) {
        if (!(a[i] > 0) || !(base[i] > 0) || isinf(a[i]) || isinf(base[i]))
            return SP_EINVAL;
    }
    result.ratio = result.low = result.high = stats_median(a, n) / stats_median(base, n);
    result.has_interval = n >= STATS_PAIRS_MIN;
    if (result.has_interval) {
        ratios = malloc(resamples * sizeof(*ratios));
        if (!ratios)
            return SP_ENOMEM;
        for (unsigned i = 0; i < resamples; i++)
            ratios[i] = draw_ratio(a, base, n, &rng);
        qsort(ratios, resamples, sizeof(*ratios), compare);
        result.low = quantile(ratios, resamples, 0.025);
        result.high = quantile(ratios, resamples, 0.975);
        free(ratios);
    }
    *out = result;
    return 0;
}
