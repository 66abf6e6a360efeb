/*
 * Latencies in buckets: 64 of equal width a doubling, from 1 ns on, so that a value is off by less than 1 %. Adding one
 * allocates nothing. base/histogram.h counts in microseconds, which are too coarse for a request of 16 bytes.
 */
#ifndef SP_MEASURE_SWEEP_LATENCY_H
#define SP_MEASURE_SWEEP_LATENCY_H

#include <stdint.h>

#define SWEEP_LATENCY_STEPS 64u /* a doubling */
#define SWEEP_LATENCY_DOUBLINGS 36u /* to about 70 minutes */

struct sweep_latency {
    uint64_t count;
    uint64_t buckets[SWEEP_LATENCY_STEPS * (SWEEP_LATENCY_DOUBLINGS + 1)];
};

/* The same latency `times` times: of a request that stands for others. */
void sweep_latency_add(struct sweep_latency *l, uint64_t ns, uint64_t times);
void sweep_latency_merge(struct sweep_latency *into, const struct sweep_latency *from);
/* The latency that a share `q` (0 to 1) does not exceed, the middle of its bucket; NAN: nothing was added. */
double sweep_latency_us(const struct sweep_latency *l, double q);

#endif
