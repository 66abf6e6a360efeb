/*
 * The timer wheel against a model, on a clock of its own.
 */
#include "base/hash.h"
#include "io/wheel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct entry {
    struct io_timer timer; /* first member */
    uint64_t deadline_us;
    uint64_t due_tick;
    bool armed;
    unsigned fired;
};

#define RANDOM_TIMERS 100000

static struct io_wheel wheel;
static uint64_t now_us, previous_us, last_due;
static unsigned fired_total;
static struct entry entries[RANDOM_TIMERS];
static struct hash_rng rng = {{0x1234567, 0x89abcdef}};

static uint64_t rnd(uint64_t below)
{
    return hash_rng_next(&rng) % below;
}

/* Any magnitude up to 2^bits is as likely as any other. */
static uint64_t rnd_magnitude(unsigned bits)
{
    return rnd((uint64_t)1 << rnd(bits + 1));
}

static void arm(struct entry *e, uint64_t deadline_us)
{
    uint64_t due = deadline_us / 1000 + (deadline_us % 1000 != 0);

    e->deadline_us = deadline_us;
    e->due_tick = due > wheel.tick ? due : wheel.tick + 1;
    e->armed = true;
    io_wheel_set(&wheel, &e->timer, deadline_us);
    assert_int_equal(e->timer.deadline_us, deadline_us);
}

static void disarm(struct entry *e)
{
    e->armed = false;
    io_timer_cancel(&e->timer);
}

/* Not early, not late, in order, and only if armed. */
static void check_fired(struct io_timer *t)
{
    struct entry *e = (struct entry *)t;

    assert_true(e->armed);
    assert_true(e->deadline_us <= now_us);
    assert_true(e->due_tick <= now_us / 1000);
    assert_true(e->due_tick > previous_us / 1000);
    assert_true(e->due_tick >= last_due);
    assert_int_equal(t->deadline_us, UINT64_MAX);
    last_due = e->due_tick;
    e->armed = false;
    e->fired++;
    fired_total++;
}

static void begin(uint64_t start_us, size_t count, void (*fire)(struct io_timer *))
{
    now_us = previous_us = start_us;
    last_due = 0;
    fired_total = 0;
    io_wheel_init(&wheel, now_us);
    for (size_t i = 0; i < count; i++) {
        memset(&entries[i], 0, sizeof(entries[i]));
        io_timer_init(&entries[i].timer, fire);
    }
}

static void advance(uint64_t to_us)
{
    previous_us = now_us;
    now_us = to_us;
    io_wheel_run(&wheel, now_us);
}

static void test_nothing(void **state)
{
    begin(5000000, 1, check_fired);
    assert_int_equal(io_wheel_next_us(&wheel), UINT64_MAX);
    advance(6000000);
    disarm(&entries[0]); /* was never armed */
    assert_int_equal(io_wheel_next_us(&wheel), UINT64_MAX);
}

static void test_order(void **state)
{
    static const uint64_t delays_us[] = {
        1, 999, 1000, 1001, 63000, 64000, 65000, 70000, 4096000, 5000000, 262144000, 3600000000, 0};
    unsigned n = sizeof(delays_us) / sizeof(delays_us[0]);

    for (uint64_t start = 1; start < (uint64_t)1 << 50; start = start * 7 + 123) {
        begin(start, n, check_fired);
        for (unsigned i = 0; i < n; i++)
            arm(&entries[i], start + delays_us[i]);
        for (unsigned steps = 0; fired_total < n; steps++) {
            uint64_t next = io_wheel_next_us(&wheel);

            assert_true(steps < 100);
            assert_true(next > now_us);
            advance(next);
        }
        assert_int_equal(io_wheel_next_us(&wheel), UINT64_MAX);
    }
}

static void test_never_early(void **state)
{
    begin(10000500, 1, check_fired);
    arm(&entries[0], 10002001);
    advance(10002001);
    assert_int_equal(fired_total, 0);
    advance(10002999);
    assert_int_equal(fired_total, 0);
    advance(10003000);
    assert_int_equal(fired_total, 1);
}

static void test_past_deadline_fires_next_tick(void **state)
{
    begin(10000000, 1, check_fired);
    arm(&entries[0], 5);
    assert_int_equal(io_wheel_next_us(&wheel), 10001000);
    advance(10001000);
    assert_int_equal(fired_total, 1);
}

static void test_lazy_rearm(void **state)
{
    struct list *before;
    uint64_t slot;

    begin(1000000, 1, check_fired);
    arm(&entries[0], 1000000 + 30000);
    before = entries[0].timer.link.prev;
    slot = entries[0].timer.slot_tick;
    for (uint64_t i = 1; i <= 1000; i++)
        arm(&entries[0], 1030000 + i * 1000);
    assert_ptr_equal(entries[0].timer.link.prev, before);
    assert_int_equal(entries[0].timer.slot_tick, slot);
    advance(1030000);
    advance(2029000);
    assert_int_equal(fired_total, 0);
    advance(2030000);
    assert_int_equal(fired_total, 1);

    /* Earlier: it must move. */
    arm(&entries[0], now_us + 10000000);
    arm(&entries[0], now_us + 2000);
    advance(now_us + 2000);
    assert_int_equal(fired_total, 2);

    /* UINT64_MAX disarms. */
    arm(&entries[0], now_us + 1000);
    io_wheel_set(&wheel, &entries[0].timer, UINT64_MAX);
    entries[0].armed = false;
    assert_false(list_is_linked(&entries[0].timer.link));
    advance(now_us + 10000);
    assert_int_equal(fired_total, 2);
}

static void test_far_deadlines(void **state)
{
    static const uint64_t delays_ms[] = {1ull << 29, 1ull << 36, (1ull << 42) - 1,
                                         1ull << 42, 3ull << 42, 5ull << 43};
    unsigned n = sizeof(delays_ms) / sizeof(delays_ms[0]);

    begin(123456789, n, check_fired);
    for (unsigned i = 0; i < n; i++)
        arm(&entries[i], now_us + delays_ms[i] * 1000);
    for (unsigned steps = 0; fired_total < n; steps++) {
        assert_true(steps < 200);
        advance(io_wheel_next_us(&wheel));
    }

    begin(123456789, 1, check_fired);
    arm(&entries[0], UINT64_MAX - 1);
    advance((uint64_t)1 << 52);
    assert_int_equal(fired_total, 0);
    disarm(&entries[0]);
}

/* --- callbacks that change other timers of the same tick -------------------------- */

static void cancel_next_fire(struct io_timer *t)
{
    struct entry *e = (struct entry *)t;

    check_fired(t);
    disarm(e + 1);
}

static void rearm_next_fire(struct io_timer *t)
{
    struct entry *e = (struct entry *)t;

    check_fired(t);
    if (e + 1 < entries + 10 && e[1].armed)
        arm(e + 1, now_us + 5000);
}

static void again_fire(struct io_timer *t)
{
    check_fired(t);
    if (fired_total < 5)
        arm((struct entry *)t, now_us);
}

static void free_fire(struct io_timer *t)
{
    fired_total++;
    free(t);
}

static void test_cancel_in_callback(void **state)
{
    begin(0, 11, cancel_next_fire);
    for (unsigned i = 0; i < 10; i++)
        arm(&entries[i], 7000);
    advance(7000);
    assert_int_equal(fired_total, 5);
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(entries[i].fired, i % 2 == 0);
}

static void test_rearm_in_callback(void **state)
{
    begin(0, 11, rearm_next_fire);
    for (unsigned i = 0; i < 10; i++)
        arm(&entries[i], 7000);
    advance(7000);
    assert_int_equal(fired_total, 5);
    for (unsigned i = 1; i < 10; i += 2)
        assert_true(entries[i].armed);
    advance(12000);
    assert_int_equal(fired_total, 10);
}

static void test_rearm_self(void **state)
{
    begin(0, 1, again_fire);
    arm(&entries[0], 1000);
    for (unsigned i = 1; i <= 5; i++) {
        advance(i * 1000);
        assert_int_equal(fired_total, i);
    }
    advance(100000);
    assert_int_equal(fired_total, 5);
}

static void test_free_in_callback(void **state)
{
    begin(0, 0, NULL);
    for (unsigned i = 0; i < 100; i++) {
        struct io_timer *t = malloc(sizeof(*t));

        assert_non_null(t);
        io_timer_init(t, free_fire);
        io_wheel_set(&wheel, t, 1000 + i % 3 * 1000);
    }
    advance(100000);
    assert_int_equal(fired_total, 100);
    assert_int_equal(io_wheel_next_us(&wheel), UINT64_MAX);
}

/* --- 100,000 random timers ----------------------------------------------------------- */

static void meddle(unsigned count)
{
    struct entry *e = &entries[rnd(count)];

    if (rnd(4) == 0)
        disarm(e);
    else
        arm(e, now_us + rnd_magnitude(36));
}

static void meddling_fire(struct io_timer *t)
{
    check_fired(t);
    if (rnd(3) == 0)
        meddle(RANDOM_TIMERS);
}

static void test_random(void **state)
{
    unsigned left = 0;

    begin(987654321987, RANDOM_TIMERS, meddling_fire);
    for (unsigned i = 0; i < RANDOM_TIMERS; i++)
        arm(&entries[i], now_us + rnd_magnitude(40));
    for (unsigned step = 0; step < 100000; step++) {
        if (rnd(2))
            meddle(RANDOM_TIMERS);
        else
            advance(now_us + rnd_magnitude(24));
    }
    for (;;) {
        uint64_t next = io_wheel_next_us(&wheel);

        if (next == UINT64_MAX)
            break;
        advance(rnd(2) ? next : next + rnd_magnitude(28));
    }
    for (unsigned i = 0; i < RANDOM_TIMERS; i++)
        left += entries[i].armed;
    assert_int_equal(left, 0);
    assert_true(fired_total > RANDOM_TIMERS / 2);
}

/* Who sleeps until io_wheel_next_us wakes in the very millisecond that a timer is due. */
static void on_time_fire(struct io_timer *t)
{
    struct entry *e = (struct entry *)t;

    assert_int_equal(e->due_tick, now_us / 1000);
    check_fired(t);
}

static void test_next_is_exact(void **state)
{
    begin(44444444, 5000, on_time_fire);
    for (unsigned i = 0; i < 5000; i++)
        arm(&entries[i], now_us + 1 + rnd_magnitude(38));
    while (io_wheel_next_us(&wheel) != UINT64_MAX) {
        advance(io_wheel_next_us(&wheel));
        if (rnd(10) == 0)
            meddle(5000);
    }
    for (unsigned i = 0; i < 5000; i++)
        assert_false(entries[i].armed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_never_early),
        cmocka_unit_test(test_past_deadline_fires_next_tick),
        cmocka_unit_test(test_lazy_rearm),
        cmocka_unit_test(test_far_deadlines),
        cmocka_unit_test(test_cancel_in_callback),
        cmocka_unit_test(test_rearm_in_callback),
        cmocka_unit_test(test_rearm_self),
        cmocka_unit_test(test_free_in_callback),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_next_is_exact),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
