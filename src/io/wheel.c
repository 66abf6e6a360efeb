#include "io/wheel.h"

#define LEVEL_BITS 6
#define NOTHING UINT64_MAX

/* The first tick at which the deadline has passed. */
static uint64_t tick_of(uint64_t deadline_us)
{
    return deadline_us / IO_WHEEL_TICK_US + (deadline_us % IO_WHEEL_TICK_US != 0);
}

/* Hangs the unlinked `t` where tick `due`, not before the present one, will find it. */
static void hang(struct io_wheel *w, struct io_timer *t, uint64_t due)
{
    uint64_t differing = due ^ w->tick;
    unsigned level = 0;
    unsigned slot;

    if (differing)
        level = (63 - (unsigned)__builtin_clzll(differing)) / LEVEL_BITS;
    slot = (due >> (LEVEL_BITS * level)) % IO_WHEEL_SLOTS;
    t->slot_tick = due >> (LEVEL_BITS * level) << (LEVEL_BITS * level);
    list_push_back(&w->slots[level][slot], &t->link);
    w->occupied[level] |= (uint64_t)1 << slot;
}

void io_wheel_init(struct io_wheel *w, uint64_t now_us)
{
    w->tick = now_us / IO_WHEEL_TICK_US;
    for (unsigned level = 0; level < IO_WHEEL_LEVELS; level++) {
        w->occupied[level] = 0;
        for (unsigned slot = 0; slot < IO_WHEEL_SLOTS; slot++)
            list_init(&w->slots[level][slot]);
    }
}

void io_wheel_set(struct io_wheel *w, struct io_timer *t, uint64_t deadline_us)
{
    uint64_t due = tick_of(deadline_us);

    if (deadline_us == UINT64_MAX) {
        io_timer_cancel(t);
        return;
    }
    if (due <= w->tick)
        due = w->tick + 1;
    t->deadline_us = deadline_us;
    /* Its slot comes up no later than the new deadline: it moves on from there. */
    if (list_is_linked(&t->link) && t->slot_tick <= due)
        return;
    list_del(&t->link);
    hang(w, t, due);
}

void io_timer_init(struct io_timer *t, void (*fire)(struct io_timer *timer))
{
    list_init(&t->link);
    t->deadline_us = UINT64_MAX;
    t->slot_tick = 0;
    t->fire = fire;
}

void io_timer_cancel(struct io_timer *t)
{
    list_del(&t->link);
    t->deadline_us = UINT64_MAX;
}

/* The tick at which the first occupied slot begins, or NOTHING. */
static uint64_t first_slot(struct io_wheel *w, unsigned *out_level, unsigned *out_slot)
{
    for (unsigned level = 0; level < IO_WHEEL_LEVELS; level++) {
        while (w->occupied[level]) {
            unsigned slot = (unsigned)__builtin_ctzll(w->occupied[level]);
            unsigned shift = LEVEL_BITS * level;

            if (list_is_empty(&w->slots[level][slot])) {
                w->occupied[level] &= ~((uint64_t)1 << slot);
                continue;
            }
            *out_level = level;
            *out_slot = slot;
            return (w->tick >> (shift + LEVEL_BITS) << (shift + LEVEL_BITS)) | (uint64_t)slot
                                                                                   << shift;
        }
    }
    return NOTHING;
}

/* Serves the slot that begins at the present tick: timers fire or move to where they belong. */
static void serve(struct io_wheel *w, unsigned level, unsigned slot)
{
    struct list *from = &w->slots[level][slot];
    struct list due;
    struct list *link;

    /* On a list of their own, callbacks can cancel any of them while this goes on. */
    list_push_front(from, &due);
    list_del(from);
    w->occupied[level] &= ~((uint64_t)1 << slot);
    while ((link = list_pop_front(&due)) != NULL) {
        struct io_timer *t = LIST_ENTRY(link, struct io_timer, link);
        uint64_t at = tick_of(t->deadline_us);

        if (at > w->tick || level > 0) {
            hang(w, t, at > w->tick ? at : w->tick);
            continue;
        }
        t->deadline_us = UINT64_MAX;
        t->fire(t);
    }
}

void io_wheel_run(struct io_wheel *w, uint64_t now_us)
{
    uint64_t now_tick = now_us / IO_WHEEL_TICK_US;
    unsigned level, slot;
    uint64_t at;

    if (now_tick <= w->tick)
        return;
    while ((at = first_slot(w, &level, &slot)) <= now_tick) {
        w->tick = at;
        serve(w, level, slot);
    }
    w->tick = now_tick;
}

uint64_t io_wheel_next_us(struct io_wheel *w)
{
    unsigned level, slot;
    uint64_t at = first_slot(w, &level, &slot);

    return at == NOTHING ? UINT64_MAX : at * IO_WHEEL_TICK_US;
}
