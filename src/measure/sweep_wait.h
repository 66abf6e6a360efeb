/*
 * Waiting for completions: looks a while, then gives the CPU away between looks, and gives up after a bound.
 */
#ifndef SP_MEASURE_SWEEP_WAIT_H
#define SP_MEASURE_SWEEP_WAIT_H

#include "base/clock.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#define SWEEP_LOOKS 64u /* before the first yield */

struct sweep_wait {
    unsigned looks;
    uint64_t since_ns;
};

/* Called after each look that found nothing; false: nothing has come for `patience_ns`. Begin, and begin again, with {0}. */
static inline bool sweep_wait_more(struct sweep_wait *wait, uint64_t patience_ns)
{
    uint64_t now;

    if (++wait->looks < SWEEP_LOOKS)
        return true;
    now = clock_now_ns();
    if (wait->since_ns == 0)
        wait->since_ns = now;
    sched_yield();
    return now - wait->since_ns < patience_ns;
}

#endif
