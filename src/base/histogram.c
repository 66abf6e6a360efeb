#include "base/histogram.h"

#include <math.h>
#include <string.h>

#define LINEAR 2048u /* values below have a bucket of their own */
#define HALF (LINEAR / 2)
#define LINEAR_BITS 11u

static uint32_t bucket_of(uint32_t value_us)
{
    uint32_t doublings;

    if (value_us < LINEAR)
        return value_us;
    doublings = 32 - (uint32_t)__builtin_clz(value_us) - LINEAR_BITS;
    /* value >> doublings lies in HALF … LINEAR - 1, and each doubling adds HALF buckets. */
    return doublings * HALF + (value_us >> doublings);
}

static uint64_t bucket_top_us(uint32_t bucket)
{
    uint32_t doublings;

    if (bucket < LINEAR)
        return bucket;
    doublings = bucket / HALF - 1;
    return ((uint64_t)(bucket - doublings * HALF + 1) << doublings) - 1;
}

void histogram_init(struct histogram *h)
{
    memset(h, 0, sizeof(*h));
}

void histogram_record(struct histogram *h, uint64_t value_us)
{
    histogram_record_n(h, value_us, 1);
}

void histogram_record_n(struct histogram *h, uint64_t value_us, uint64_t times)
{
    uint32_t value = value_us > HISTOGRAM_MAX_US ? HISTOGRAM_MAX_US : (uint32_t)value_us;

    if (times == 0)
        return;
    if (value_us > HISTOGRAM_MAX_US)
        h->over_count += times;
    if (h->count == 0 || value < h->min_us)
        h->min_us = value;
    if (value > h->max_us)
        h->max_us = value;
    h->count += times;
    h->sum_us += value * times;
    h->sum_squares += (unsigned __int128)((uint64_t)value * value) * times;
    h->buckets[bucket_of(value)] += times;
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
    if (from->count == 0)
        return;
    if (into->count == 0 || from->min_us < into->min_us)
        into->min_us = from->min_us;
    if (from->max_us > into->max_us)
        into->max_us = from->max_us;
    into->count += from->count;
    into->over_count += from->over_count;
    into->sum_us += from->sum_us;
    into->sum_squares += from->sum_squares;
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        into->buckets[i] += from->buckets[i];
}

uint64_t histogram_percentile_us(const struct histogram *h, double percent)
{
    double wanted = ceil((double)h->count * (percent / 100) - 1e-9);
    uint64_t rank, seen = 0;

    if (h->count == 0)
        return 0;
    /* The negation also catches a NaN. */
    if (!(wanted > 1))
        rank = 1;
    else
        rank = wanted >= (double)h->count ? h->count : (uint64_t)wanted;
    if (rank == 1)
        return h->min_us;
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += h->buckets[i];
        if (seen >= rank) {
            uint64_t top = bucket_top_us(i);

            return top > h->max_us ? h->max_us : top;
        }
    }
    return h->max_us;
}

uint64_t histogram_min_us(const struct histogram *h)
{
    return h->min_us;
}

uint64_t histogram_max_us(const struct histogram *h)
{
    return h->max_us;
}

double histogram_mean_us(const struct histogram *h)
{
    return h->count ? (double)h->sum_us / (double)h->count : 0;
}

double histogram_stddev_us(const struct histogram *h)
{
    unsigned __int128 n = h->count, scaled;

    if (h->count == 0)
        return 0;
    /* n^2 times the variance, exact as long as n^2 values of 60 s squared fit 128 bits: n < 2^37. */
    scaled = n * h->sum_squares - (unsigned __int128)h->sum_us * h->sum_us;
    return sqrt((double)scaled) / (double)h->count;
}
