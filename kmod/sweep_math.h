/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The arithmetic of the kernel crypto sweep: sizes, rates, shares, busy time, latency histogram.
 * Compiles in the kernel and on the host, where tests/unit/kmod tests it. No floating point, no
 * division by zero, no overflow: what does not fit saturates.
 */
#ifndef SPK_SWEEP_MATH_H
#define SPK_SWEEP_MATH_H

#ifdef __KERNEL__
#include <linux/math64.h>
#include <linux/string.h>
#include <linux/types.h>
#define SPK_DIVIDE(a, b) div64_u64(a, b)
#else
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#define SPK_DIVIDE(a, b) ((uint64_t)(a) / (uint64_t)(b))
#endif

#define SPK_NS_PER_S 1000000000ull
#define SPK_UNKNOWN (~(uint64_t)0)
#define SPK_COUNT_MAX (~(uint32_t)0)

/* Twice the size, 0 when that is beyond `max`. */
static inline uint64_t spk_size_next(uint64_t size, uint64_t max)
{
    return size != 0 && size <= max / 2 ? size * 2 : 0;
}

/* How many sizes there are from `min` on, doubling, up to `max`. */
static inline unsigned spk_size_count(uint64_t min, uint64_t max)
{
    unsigned count = 0;
    uint64_t size;

    for (size = min <= max ? min : 0; size != 0; size = spk_size_next(size, max))
        count++;
    return count;
}

/* a * b, SPK_UNKNOWN - 1 when it does not fit. */
static inline uint64_t spk_multiply(uint64_t a, uint64_t b)
{
    if (a != 0 && b > SPK_DIVIDE(SPK_UNKNOWN - 1, a))
        return SPK_UNKNOWN - 1;
    return a * b;
}

/*
 * amount * scale / whole, rounded down; 0 when `whole` is 0. `scale` at most 2^30. A `whole` above
 * 2^34 loses its last bits together with the remainder's: the error is below one part in 2^33.
 */
static inline uint64_t spk_scale(uint64_t amount, uint64_t scale, uint64_t whole)
{
    uint64_t quotient, rest, high;

    if (whole == 0)
        return 0;
    quotient = SPK_DIVIDE(amount, whole);
    rest = amount - quotient * whole;
    while (whole > 1ull << 34) {
        whole >>= 1;
        rest >>= 1;
    }
    high = spk_multiply(quotient, scale);
    rest = SPK_DIVIDE(rest * scale, whole);
    return high > SPK_UNKNOWN - 1 - rest ? SPK_UNKNOWN - 1 : high + rest;
}

/* Per second. */
static inline uint64_t spk_rate(uint64_t amount, uint64_t elapsed_ns)
{
    return spk_scale(amount, SPK_NS_PER_S, elapsed_ns);
}

/* 0 to 1000. */
static inline unsigned spk_permille(uint64_t part, uint64_t whole)
{
    return part >= whole ? (whole != 0 ? 1000 : 0) : (unsigned)spk_scale(part, 1000, whole);
}

/*
 * CPU time that a system of `cpus` spent in `elapsed_ns`, given its idle time, summed over the
 * CPUs, before and after. Not below 0 nor above all CPUs busy, which idle clocks read one after the
 * other can seem to be.
 */
static inline uint64_t spk_busy_ns(unsigned cpus, uint64_t elapsed_ns, uint64_t idle_before_ns,
                                   uint64_t idle_after_ns)
{
    uint64_t all = spk_multiply(cpus, elapsed_ns);
    uint64_t idle = idle_after_ns > idle_before_ns ? idle_after_ns - idle_before_ns : 0;

    return idle >= all ? 0 : all - idle;
}

/*
 * Latencies in buckets whose width is an eighth of their power of two: a quantile is off by 6.25 %
 * at most. Values below 8 have a bucket each.
 */
#define SPK_BUCKET_BITS 3
#define SPK_BUCKETS ((64 - SPK_BUCKET_BITS + 1) << SPK_BUCKET_BITS)

struct spk_histogram {
    uint64_t total;
    uint32_t counts[SPK_BUCKETS];
};

static inline unsigned spk_bucket_of(uint64_t value)
{
    unsigned shift;

    if (value < 1u << SPK_BUCKET_BITS)
        return (unsigned)value;
    shift = 63 - (unsigned)__builtin_clzll(value) - SPK_BUCKET_BITS;
    return ((shift + 1) << SPK_BUCKET_BITS) +
           (unsigned)((value >> shift) & ((1u << SPK_BUCKET_BITS) - 1));
}

/* The middle of a bucket. */
static inline uint64_t spk_bucket_value(unsigned bucket)
{
    unsigned shift = bucket >> SPK_BUCKET_BITS;
    uint64_t mantissa = bucket & ((1u << SPK_BUCKET_BITS) - 1);

    if (shift == 0)
        return mantissa;
    shift--;
    mantissa |= 1u << SPK_BUCKET_BITS;
    return (mantissa << shift) + ((1ull << shift) >> 1);
}

static inline void spk_histogram_add(struct spk_histogram *h, uint64_t value)
{
    uint32_t *count = &h->counts[spk_bucket_of(value)];

    if (*count != SPK_COUNT_MAX) {
        (*count)++;
        h->total++;
    }
}

static inline void spk_histogram_merge(struct spk_histogram *h, const struct spk_histogram *other)
{
    unsigned i;

    for (i = 0; i < SPK_BUCKETS; i++) {
        uint32_t room = SPK_COUNT_MAX - h->counts[i];
        uint32_t more = other->counts[i] < room ? other->counts[i] : room;

        h->counts[i] += more;
        h->total += more;
    }
}

/* The value that `permille` of the values are not above; SPK_UNKNOWN when there is none. */
static inline uint64_t spk_histogram_quantile(const struct spk_histogram *h, unsigned permille)
{
    uint64_t rank = spk_scale(h->total, permille, 1000), seen = 0;
    unsigned i;

    if (rank >= h->total)
        rank = h->total - 1;
    for (i = 0; i < SPK_BUCKETS && h->total != 0; i++) {
        seen += h->counts[i];
        if (seen > rank)
            return spk_bucket_value(i);
    }
    return SPK_UNKNOWN;
}

#endif
