/* What is noted, and the sum over threads. */
#include "load/record.h"

#include "base/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void coarse_buckets(void **state)
{
    unsigned last = 0;

    for (uint64_t v = 0; v <= HISTOGRAM_MAX_US + 1000000; v += v / 500 + 1) {
        unsigned b = load_coarse_bucket(v);

        assert_true(b < LOAD_COARSE_BUCKETS);
        assert_true(b == last || b == last + 1);
        last = b;
        if (v > HISTOGRAM_MAX_US)
            continue;
        assert_true(load_coarse_top_us(b) >= v);
        assert_true(load_coarse_top_us(b) <= v + v / 16);
        assert_true(b == 0 || load_coarse_top_us(b - 1) < v);
    }
}

static struct load_record *record_new(uint64_t interval_us, uint64_t duration_us)
{
    struct load_plan plan = {.interval_us = interval_us, .duration_us = duration_us};
    struct load_record *r = calloc(1, sizeof(*r));

    assert_int_equal(load_record_init(r, &plan), 0);
    load_record_start(r, 1000000);
    return r;
}

static void answer(struct load_record *r, uint64_t end_us, uint64_t latency_us)
{
    struct load_times t = {
        .base_us = end_us - latency_us, .sent_us = end_us - latency_us, .end_us = end_us};

    if (!r->first_us)
        r->first_us = t.base_us;
    load_record_answer(r, &t);
}

/* One thread has had to widen its periods, the other has not. */
static void widening(void **state)
{
    struct load_record *a = record_new(1000, 0), *b = record_new(1000, 0);
    const struct load_record *both[2] = {a, b};
    struct load_sum *sum = calloc(1, sizeof(*sum));
    uint64_t requests = 0, errors = 0, bytes = 0;
    const struct load_result *r = &sum->result;

    for (unsigned i = 0; i < 3 * LOAD_PERIODS_MAX; i++) {
        answer(a, 1000000 + i * 1000, i % 1000);
        load_record_bytes_in(a, 1000000 + i * 1000, 10);
        if (i < 100) {
            answer(b, 1000000 + i * 1000 + 1, 100);
            load_record_error(b, 1000000 + i * 1000 + 1, LOAD_ERROR_RESET, "number %u", i);
        }
    }
    assert_int_equal(a->period_us, 4000);
    assert_int_equal(b->period_us, 1000);
    assert_int_equal(load_sum_records(sum, both, 2), 0);
    assert_int_equal(r->interval_count, (3 * LOAD_PERIODS_MAX + 3) / 4);
    for (size_t i = 0; i < r->interval_count; i++) {
        assert_int_equal(r->intervals[i].start_us, i * 4000);
        assert_int_equal(r->intervals[i].requests, i < 25 ? 8 : 4);
        requests += r->intervals[i].requests;
        errors += r->intervals[i].errors;
        bytes += r->intervals[i].bytes_in;
    }
    assert_int_equal(requests, r->requests);
    assert_int_equal(requests, 3 * LOAD_PERIODS_MAX + 100);
    assert_int_equal(errors, 100);
    assert_int_equal(bytes, r->bytes_in);
    assert_int_equal(r->latency->count, requests);
    assert_string_equal(r->examples[LOAD_ERROR_RESET], "number 0");
    assert_int_equal(r->duration_us, (3 * LOAD_PERIODS_MAX - 1) * 1000 + 99);
    free(sum->result.intervals);
    load_record_release(a);
    load_record_release(b);
    free(a);
    free(b);
    free(sum);
}

/* The array is made for the duration; what comes late is in its last period. */
static void known_duration(void **state)
{
    struct load_record *r = record_new(100000, 1000000);

    answer(r, 1000000 + 1999999, 5);
    assert_int_equal(r->period_us, 100000);
    assert_int_equal(r->period_count, 20);
    answer(r, 1000000 + 3600000, 5);
    assert_true(r->period_us > 100000);
    load_record_release(r);
    free(r);
}

static void percentiles(void **state)
{
    uint64_t buckets[LOAD_COARSE_BUCKETS] = {0};

    assert_int_equal(load_coarse_percentile_us(buckets, 50, 1000), 0);
    for (unsigned i = 1; i <= 100; i++)
        buckets[load_coarse_bucket(i * 1000)]++;
    assert_in_range(load_coarse_percentile_us(buckets, 50, 100000), 50000, 53200);
    assert_in_range(load_coarse_percentile_us(buckets, 99, 100000), 99000, 100000);
    assert_int_equal(load_coarse_percentile_us(buckets, 100, 100000), 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coarse_buckets),
        cmocka_unit_test(widening),
        cmocka_unit_test(known_duration),
        cmocka_unit_test(percentiles),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
