/*
 * The timer wheel behind io_timer: ten levels of 64 slots, one tick a millisecond.
 *
 * A timer hangs at the level of the highest group of six bits in which its tick differs from the
 * present one (G. Varghese and T. Lauck, "Hashed and Hierarchical Timing Wheels", scheme 6).
 * Hence every occupied slot lies ahead of the present one on its level, lower levels come before
 * higher ones, and the next expiry is the lowest bit of the first bitmap that has one.
 *
 * It knows no clock: the loop and the tests hand it the time.
 */
#ifndef SP_IO_WHEEL_H
#define SP_IO_WHEEL_H

#include "io/loop.h"

#define IO_WHEEL_LEVELS 10 /* 2^60 ms: more than 2^64 us */
#define IO_WHEEL_SLOTS 64
#define IO_WHEEL_TICK_US 1000

struct io_wheel {
    uint64_t tick; /* every tick up to this one has been served */
    /* Bit set: the slot may hold timers. Cancelling leaves it set, looking clears it. */
    uint64_t occupied[IO_WHEEL_LEVELS];
    struct list slots[IO_WHEEL_LEVELS][IO_WHEEL_SLOTS];
};

void io_wheel_init(struct io_wheel *w, uint64_t now_us);

/* See io_timer_set. A deadline that has passed fires with the next tick. */
void io_wheel_set(struct io_wheel *w, struct io_timer *t, uint64_t deadline_us);

/*
 * Fires everything whose deadline is not after `now_us`, which never goes back. Callbacks may set,
 * cancel and free any timer, their own included; they may not run the wheel.
 */
void io_wheel_run(struct io_wheel *w, uint64_t now_us);

/* When io_wheel_run next has something to do (not always to fire); UINT64_MAX: nothing is armed. */
uint64_t io_wheel_next_us(struct io_wheel *w);

#endif
