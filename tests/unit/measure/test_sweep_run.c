#include "measure/sweep_check.h"
#include "measure/sweep_crew.h"
#include "measure/sweep_run.h"
#include "sweep_fake.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define SLICE_NS 2000000u
#define SHORT_PATIENCE_NS 50000000u

static struct sweep_crew *crew_new(const struct sweep_key *key, enum sweep_mode_kind kind, unsigned n, uint64_t bytes)
{
    struct sweep_crew_options options = {
        .key = key, .mode = {kind, n}, .request_bytes = bytes, .patience_ns = SHORT_PATIENCE_NS};
    struct sweep_crew *crew = NULL;
    struct sweep_why why;

    if (sweep_crew_new(&crew, &options, &why) != 0)
        fail_msg("%s", why.text);
    return crew;
}

/* Every request that the implementation completed is counted, and no other; with just as many in flight as asked for. */
static void try_mode(const struct sweep_impl *impl, enum sweep_mode_kind kind, unsigned n)
{
    struct sweep_latency *latency = calloc(1, sizeof(*latency));
    struct sweep_key key = fake_key("aes-128-cbc");
    struct sweep_crew *crew = crew_new(&key, kind, n, 64);
    unsigned depth = kind == SWEEP_DEPTH ? n : 1, threads = kind == SWEEP_CONCURRENT ? n : 1;
    struct sweep_slice slice;
    struct sweep_why why;

    assert_non_null(latency);
    assert_int_equal(sweep_crew_open(crew, 3, impl, (struct sweep_device *)(void *)&fake, &why), 0);
    assert_int_equal(fake.sessions, threads);
    atomic_store(&fake.flying_most, 0);
    for (unsigned round = 0; round < 3; round++) {
        unsigned long long before = atomic_load(&fake.completed), failed = atomic_load(&fake.failed);

        memset(latency, 0, sizeof(*latency));
        if (sweep_crew_time(crew, 3, SLICE_NS, &slice, latency, &why) != 0)
            fail_msg("%s", why.text);
        assert_int_equal(slice.requests + slice.errors, fake.completed - before);
        assert_int_equal(slice.errors, fake.failed - failed);
        assert_int_equal(slice.async, fake.is_silent ? slice.requests : 0);
        assert_int_equal(fake.asked, fake.completed);
        assert_true(slice.requests_per_s >= 0 && isfinite(slice.requests_per_s));
        /* What is counted in the window is no more than what was done at all. */
        assert_true(slice.requests_per_s * SLICE_NS / 1e9 <= (double)slice.requests + 1e-6);
        assert_true(latency->count > 0);
    }
    assert_true(slice.requests + slice.errors > 0);
    if (fake.refuse)
        assert_true(fake.flying_most <= depth);
    else
        assert_int_equal(fake.flying_most, depth);
    assert_true(fake.sessions_most <= threads);
    sweep_crew_free(crew);
    assert_int_equal(fake.sessions, 0);
    assert_int_equal(fake.too_deep + fake.wrong_index + fake.wrong_thread, 0);
    free(latency);
}

static void test_counts(void **state)
{
    static const struct {
        const struct sweep_impl *impl;
        enum sweep_mode_kind kind;
        unsigned n;
    } modes[] = {
        {&fake_direct, SWEEP_SINGLE, 1},      {&fake_queue, SWEEP_SINGLE, 1}, {&fake_direct, SWEEP_CONCURRENT, 1},
        {&fake_direct, SWEEP_CONCURRENT, 7},  {&fake_queue, SWEEP_CONCURRENT, 7}, {&fake_queue, SWEEP_DEPTH, 1},
        {&fake_queue, SWEEP_DEPTH, 8},        {&fake_queue, SWEEP_DEPTH, 64}, {&fake_direct, SWEEP_DEPTH, 8},
    };

    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        fake_reset();
        try_mode(modes[i].impl, modes[i].kind, modes[i].n);
    }
    fake_reset();
    fake.is_reordered = fake.is_silent = true;
    try_mode(&fake_queue, SWEEP_DEPTH, 8);
    fake_reset();
    fake.is_silent = true;
    fake.refuse = 5;
    try_mode(&fake_queue, SWEEP_DEPTH, 8);
    fake_reset();
    fake.fault = FAKE_ERROR; /* behind what is checked: 64 each way of each thread */
    fake.at = 128 * 4 + 5;
    fake.is_from = true;
    fake.refuse = 1;
    try_mode(&fake_queue, SWEEP_SINGLE, 1);
}

/* --- the engine --------------------------------------------------------------------------------- */

/* One that measures itself. */
static int self_measure(struct sweep_device *device, const struct sweep_point *point, struct sweep_sample *sample,
                        struct sweep_why *why)
{
    if (point->request_bytes == 4096)
        return sweep_why(why, SP_ETIMEDOUT, "the module stopped answering");
    *sample = (struct sweep_sample){.elapsed_ns = point->slice_ns,
                                    .requests = point->slice_ns / 1000,
                                    .bytes = point->slice_ns / 1000 * point->request_bytes,
                                    .async_requests = point->slice_ns / 2000,
                                    .busy_ns = point->slice_ns / 2,
                                    .own_cpu_ns = UINT64_MAX,
                                    .p50_us = 1.5,
                                    .p99_us = NAN};
    return 0;
}

static int self_check(struct sweep_device *device, const struct sweep_key *key, uint64_t request_bytes, bool in_place,
                      struct sweep_why *why)
{
    return request_bytes == 1024 && in_place ? sweep_why(why, SP_EFAULT, "the module's results are wrong") : 0;
}

static const struct sweep_impl fake_self = {
    .name = "self",
    .summary = "measures itself",
    .device_open = fake_device_open,
    .device_close = fake_device_close,
    .supports = fake_supports,
    .measure = self_measure,
    .self_check = self_check,
};

struct seen {
    size_t calls, done, total;
    volatile sig_atomic_t stop;
    size_t stop_at;
};

static void on_progress(void *arg, const struct sweep_progress *p)
{
    struct seen *seen = arg;

    assert_true(p->done < p->total);
    assert_true(seen->calls == 0 || p->done > seen->done);
    seen->done = p->done;
    seen->total = p->total;
    if (++seen->calls == seen->stop_at)
        seen->stop = 1;
}

struct setup {
    struct sweep_result result;
    struct sweep_run run;
    struct seen seen;
};

static void setup_impl(struct setup *s, const struct sweep_impl *impl, const char *argument)
{
    s->run.sources[s->result.impl_count] = (struct sweep_source){.impl = impl, .argument = argument};
    s->result.impls[s->result.impl_count++].spec = strdup(impl->name);
}

static void setup_init(struct setup *s, const char *algorithm)
{
    memset(s, 0, sizeof(*s));
    s->result.algorithms = calloc(1, sizeof(struct sweep_algorithm *));
    assert_non_null(s->result.algorithms);
    s->result.algorithms[0] = fake_find(algorithm);
    s->result.algorithm_count = 1;
    s->result.modes[0] = (struct sweep_mode){SWEEP_SINGLE, 1};
    s->result.modes[1] = (struct sweep_mode){SWEEP_DEPTH, 4};
    s->result.mode_count = 2;
    s->result.rounds = 3;
    s->result.slice_ns = SLICE_NS / 2;
    s->run.result = &s->result;
    s->run.patience_ns = SHORT_PATIENCE_NS;
    s->run.seed = 1;
    s->run.progress = on_progress;
    s->run.progress_arg = &s->seen;
    s->run.stop = &s->seen.stop;
}

static void setup_sizes(struct setup *s, uint64_t a, uint64_t b, uint64_t c)
{
    s->result.sizes[0] = a;
    s->result.sizes[1] = b;
    s->result.sizes[2] = c;
    s->result.size_count = 3;
}

static void setup_release(struct setup *s)
{
    sweep_finish(&s->run);
    sweep_result_release(&s->result);
}

static void test_cells(void **state)
{
    struct setup s;
    size_t expected = 0;

    fake_reset();
    setup_init(&s, "aes-128-cbc");
    setup_sizes(&s, 16, 24, 1 << 20);
    setup_impl(&s, &sweep_impl_openssl, NULL);
    setup_impl(&s, &fake_direct, NULL);
    setup_impl(&s, &fake_queue, "absent");
    assert_int_equal(sweep_open(&s.run), 0);
    assert_int_equal(s.run.sources[2].status, SP_ENOENT);
    assert_int_equal(sweep_prepare(&s.run), 0);
    for (size_t mode = 0; mode < 2; mode++)
        for (size_t size = 0; size < 3; size++)
            for (size_t impl = 0; impl < 3; impl++)
                assert_ptr_equal(sweep_cell_at(&s.result, 0, mode, size, impl), s.result.cells + expected++);
    assert_int_equal(s.run.planned, 6); /* openssl at two sizes, the fake at one, in two modes */
    assert_null(sweep_cell_at(&s.result, 0, 0, 0, 0)->why_not);
    assert_string_equal(sweep_cell_at(&s.result, 0, 0, 1, 0)->why_not, "aes-128-cbc takes multiples of 16 bytes");
    assert_string_equal(sweep_cell_at(&s.result, 0, 1, 2, 1)->why_not, "requests above 64 KiB are refused");
    assert_string_equal(sweep_cell_at(&s.result, 0, 1, 0, 2)->why_not, "there is no such fake");
    assert_int_equal(sweep_measure(&s.run), 0);
    assert_int_equal(s.seen.total, 18);
    assert_int_equal(s.seen.calls, 18);
    for (size_t i = 0; i < expected; i++) {
        const struct sweep_cell *cell = &s.result.cells[i];

        assert_true(cell->measured == (cell->why_not == NULL));
        if (!cell->measured)
            continue;
        assert_true(cell->requests > 0 && cell->errors == 0);
        assert_true(cell->bytes_per_s_low <= cell->bytes_per_s && cell->bytes_per_s <= cell->bytes_per_s_high);
        assert_true(cell->bytes_per_own_cpu_s > 0);
        assert_true(cell->p50_us <= cell->p99_us);
        assert_true(cell->async_share == 0);
    }
    assert_int_equal(s.run.wrong + s.run.stuck + s.run.failed, 0);
    setup_release(&s);
    assert_int_equal(fake.sessions, 0);
}

static void test_remove(void **state)
{
    struct setup s;

    fake_reset();
    setup_init(&s, "sha256");
    setup_sizes(&s, 16, 32, 64);
    setup_impl(&s, &fake_queue, "absent");
    setup_impl(&s, &fake_direct, NULL);
    assert_int_equal(sweep_open(&s.run), 0);
    sweep_remove(&s.run, 0);
    assert_int_equal(s.result.impl_count, 1);
    assert_string_equal(s.result.impls[0].spec, "direct");
    assert_ptr_equal(s.run.sources[0].impl, &fake_direct);
    assert_int_equal(sweep_prepare(&s.run), 0);
    assert_int_equal(s.run.planned, 6);
    setup_release(&s);
}

/* A wrong one is not timed; the others are. */
static void test_wrong(void **state)
{
    struct setup s;

    fake_reset();
    fake.fault = FAKE_FLIP_TEXT;
    fake.at = 7;
    setup_init(&s, "aes-256-ctr");
    setup_sizes(&s, 17, 100, 4096);
    setup_impl(&s, &fake_queue, NULL);
    setup_impl(&s, &sweep_impl_openssl, NULL);
    assert_int_equal(sweep_open(&s.run), 0);
    assert_int_equal(sweep_prepare(&s.run), 0);
    assert_int_equal(sweep_measure(&s.run), 0);
    assert_int_equal(s.run.wrong, 1);
    assert_false(sweep_cell_at(&s.result, 0, 0, 0, 0)->measured);
    assert_non_null(strstr(sweep_cell_at(&s.result, 0, 0, 0, 0)->why_not, "wrong: request 7 of"));
    assert_true(sweep_cell_at(&s.result, 0, 1, 0, 0)->measured);
    assert_true(sweep_cell_at(&s.result, 0, 0, 0, 1)->measured);
    setup_release(&s);
}

/* A device that goes silent while it is timed: its cell says so, it is not asked again, the others go on. */
static void test_stuck(void **state)
{
    struct setup s;

    fake_reset();
    fake.fault = FAKE_LOSE;
    fake.at = 2 * 128 + 1; /* behind the checks of both: 64 each way */
    setup_init(&s, "aes-256-ctr");
    setup_sizes(&s, 17, 100, 4096);
    setup_impl(&s, &fake_queue, NULL);
    setup_impl(&s, &fake_direct, NULL);
    assert_int_equal(sweep_open(&s.run), 0);
    assert_int_equal(sweep_prepare(&s.run), 0);
    assert_int_equal(sweep_measure(&s.run), 0);
    assert_int_equal(s.run.stuck, 1);
    assert_int_equal(s.run.wrong + s.run.failed, 0);
    assert_int_equal(fake.lost_count, 1);
    assert_string_equal(sweep_cell_at(&s.result, 0, 0, 0, 0)->why_not,
                        "1 requests of 17 bytes did not complete within 50 ms");
    for (size_t i = 1; i < 6; i++) {
        const struct sweep_cell *cell = sweep_cell_at(&s.result, 0, i % 2, i / 2, 0);

        assert_false(cell->measured);
        assert_string_equal(cell->why_not, "not asked: it stopped answering at 17 bytes of aes-256-ctr");
        assert_true(sweep_cell_at(&s.result, 0, i % 2, i / 2, 1)->measured);
    }
    assert_true(sweep_cell_at(&s.result, 0, 0, 0, 1)->measured);
    memset(fake.lost[0]->out, 0, fake.lost[0]->len); /* leaked: the device may still write there */
    setup_release(&s);
}

static void test_failing(void **state)
{
    struct setup s;
    const struct sweep_cell *cell;

    fake_reset();
    fake.fault = FAKE_ERROR;
    fake.at = 129; /* the check passes, then nothing works */
    fake.is_from = true;
    setup_init(&s, "aes-128-cbc");
    setup_sizes(&s, 16, 32, 64);
    s.result.size_count = s.result.mode_count = 1;
    setup_impl(&s, &fake_queue, NULL);
    assert_int_equal(sweep_open(&s.run), 0);
    assert_int_equal(sweep_prepare(&s.run), 0);
    assert_int_equal(sweep_measure(&s.run), 0);
    cell = sweep_cell_at(&s.result, 0, 0, 0, 0);
    assert_false(cell->measured);
    assert_string_equal(cell->why_not, "each request failed");
    assert_int_equal(s.run.failed, 1);
    setup_release(&s);
}

static void test_self_timed(void **state)
{
    const struct sweep_cell *cell;
    struct setup s;

    fake_reset();
    setup_init(&s, "aes-128-cbc");
    setup_sizes(&s, 16, 1024, 4096);
    setup_impl(&s, &fake_self, NULL);
    setup_impl(&s, &fake_direct, NULL);
    assert_int_equal(sweep_open(&s.run), 0);
    assert_int_equal(sweep_prepare(&s.run), 0);
    assert_int_equal(sweep_measure(&s.run), 0);
    cell = sweep_cell_at(&s.result, 0, 0, 0, 0);
    assert_true(cell->measured);
    assert_true(fabs(cell->requests_per_s - 1e6) < 1);
    assert_true(fabs(cell->bytes_per_s - 16e6) < 16);
    assert_true(fabs(cell->bytes_per_cpu_s - 32e6) < 32);
    assert_true(isnan(cell->bytes_per_own_cpu_s));
    assert_true(fabs(cell->async_share - 0.5) < 1e-9);
    assert_true(fabs(cell->p50_us - 1.5) < 1e-9 && isnan(cell->p99_us));
    assert_int_equal(cell->requests, 3 * (SLICE_NS / 2) / 1000);
    assert_string_equal(sweep_cell_at(&s.result, 0, 0, 1, 0)->why_not, "the module's results are wrong");
    assert_string_equal(sweep_cell_at(&s.result, 0, 0, 2, 0)->why_not, "the module stopped answering");
    assert_string_equal(sweep_cell_at(&s.result, 0, 1, 2, 0)->why_not,
                        "not asked: it stopped answering at 4096 bytes of aes-128-cbc");
    assert_int_equal(s.run.wrong, 2);
    assert_int_equal(s.run.stuck, 1);
    assert_true(sweep_cell_at(&s.result, 0, 1, 2, 1)->measured);
    setup_release(&s);
}

static void test_cancel(void **state)
{
    struct setup s;

    fake_reset();
    setup_init(&s, "aes-128-cbc");
    setup_sizes(&s, 16, 32, 64);
    setup_impl(&s, &fake_direct, NULL);
    setup_impl(&s, &fake_queue, NULL);
    s.seen.stop_at = 3;
    assert_int_equal(sweep_open(&s.run), 0);
    assert_int_equal(sweep_prepare(&s.run), 0);
    assert_int_equal(sweep_measure(&s.run), SP_ECANCELED);
    assert_int_equal(s.seen.calls, 3);
    setup_release(&s);
    assert_int_equal(fake.sessions, 0);
}

static void test_memory(void **state)
{
    struct setup s;

    fake_reset();
    setup_init(&s, "aes-128-cbc");
    setup_sizes(&s, 16, 1 << 20, 64 << 20);
    s.result.modes[1] = (struct sweep_mode){SWEEP_CONCURRENT, 1024};
    setup_impl(&s, &sweep_impl_openssl, NULL);
    assert_int_equal(sweep_open(&s.run), 0);
    assert_int_equal(sweep_prepare(&s.run), 0);
    assert_null(sweep_cell_at(&s.result, 0, 0, 2, 0)->why_not);
    assert_string_equal(sweep_cell_at(&s.result, 0, 1, 2, 0)->why_not,
                        "1024 requests at a time want more than 2048 MiB of buffers");
    setup_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),  cmocka_unit_test(test_cells),      cmocka_unit_test(test_remove),
        cmocka_unit_test(test_wrong),   cmocka_unit_test(test_stuck),      cmocka_unit_test(test_failing),
        cmocka_unit_test(test_self_timed), cmocka_unit_test(test_cancel),  cmocka_unit_test(test_memory),
    };

    return cmocka_run_group_tests_name("measure/sweep_run", tests, NULL, NULL);
}
