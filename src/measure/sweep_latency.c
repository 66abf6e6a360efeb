#include "measure/sweep_latency.h"

#include <math.h>

#define BUCKETS (SWEEP_LATENCY_STEPS * (SWEEP_LATENCY_DOUBLINGS + 1))
#define STEP_BITS 6

_Static_assert(SWEEP_LATENCY_STEPS == 1u << STEP_BITS, "a doubling is cut by the bits below the first");

/* Below 64 ns a bucket each. */
static unsigned bucket_of(uint64_t ns)
{
    unsigned shift, bucket;

    if (ns < SWEEP_LATENCY_STEPS)
        return (unsigned)ns;
    shift = 63 - (unsigned)__builtin_clzll(ns) - STEP_BITS;
    bucket = (shift + 1) * SWEEP_LATENCY_STEPS + (unsigned)((ns >> shift) - SWEEP_LATENCY_STEPS);
    return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

static double middle_ns(unsigned bucket)
{
    unsigned shift = bucket / SWEEP_LATENCY_STEPS;

    if (shift == 0)
        return bucket;
    return ldexp(bucket % SWEEP_LATENCY_STEPS + SWEEP_LATENCY_STEPS + 0.5, (int)shift - 1);
}

void sweep_latency_add(struct sweep_latency *l, uint64_t ns, uint64_t times)
{
    l->buckets[bucket_of(ns)] += times;
    l->count += times;
}

void sweep_latency_merge(struct sweep_latency *into, const struct sweep_latency *from)
{
    if (from->count == 0)
        return;
    for (unsigned i = 0; i < BUCKETS; i++)
        into->buckets[i] += from->buckets[i];
    into->count += from->count;
}

double sweep_latency_us(const struct sweep_latency *l, double q)
{
    double rank = ceil(q * (double)l->count);
    uint64_t below = 0;

    if (l->count == 0)
        return NAN;
    for (unsigned i = 0; i < BUCKETS; i++) {
        below += l->buckets[i];
        if (below > 0 && (double)below >= rank)
            return middle_ns(i) / 1000;
    }
    return NAN;
}
