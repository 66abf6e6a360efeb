#include "base/histogram.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static struct histogram h, other;

static void empty(void **state)
{
    histogram_init(&h);
    assert_int_equal(histogram_percentile_us(&h, 50), 0);
    assert_int_equal(histogram_min_us(&h), 0);
    assert_int_equal(histogram_max_us(&h), 0);
    assert_true(histogram_mean_us(&h) == 0);
    assert_true(histogram_stddev_us(&h) == 0);
    histogram_record_n(&h, 5, 0);
    assert_int_equal(h.count, 0);
}

static void small_values_are_exact(void **state)
{
    histogram_init(&h);
    for (uint64_t v = 1; v <= 1000; v++)
        histogram_record(&h, v);
    assert_int_equal(histogram_min_us(&h), 1);
    assert_int_equal(histogram_max_us(&h), 1000);
    assert_int_equal(histogram_percentile_us(&h, 0), 1);
    assert_int_equal(histogram_percentile_us(&h, 0.1), 1);
    assert_int_equal(histogram_percentile_us(&h, 0.11), 2);
    assert_int_equal(histogram_percentile_us(&h, 50), 500);
    assert_int_equal(histogram_percentile_us(&h, 99), 990);
    assert_int_equal(histogram_percentile_us(&h, 99.9), 999);
    assert_int_equal(histogram_percentile_us(&h, 99.99), 1000);
    assert_int_equal(histogram_percentile_us(&h, 100), 1000);
    assert_int_equal(histogram_percentile_us(&h, 200), 1000);
    assert_int_equal(histogram_percentile_us(&h, -5), 1);
    assert_int_equal(histogram_percentile_us(&h, NAN), 1);
    assert_true(histogram_mean_us(&h) == 500.5);
    assert_true(fabs(histogram_stddev_us(&h) - sqrt((1000.0 * 1000 - 1) / 12)) < 1e-9);
}

static void three_digits_over_the_whole_range(void **state)
{
    uint64_t previous = 0;

    for (uint64_t v = 1; v <= HISTOGRAM_MAX_US; v += v / 777 + 1) {
        uint64_t p;

        histogram_init(&h);
        histogram_record(&h, v);
        histogram_record_n(&h, HISTOGRAM_MAX_US, 1); /* so that the maximum does not cut */
        histogram_record(&h, 0);
        p = histogram_percentile_us(&h, 66);
        assert_true(p >= v);
        assert_true((double)(p - v) <= (double)v / 1000);
        assert_true(p >= previous);
        previous = p;
    }
}

static void bucket_edges(void **state)
{
    static const uint64_t edges[] = {2047, 2048, 2049, 4095, 4096, 8191, 8192, 33554431, 33554432};

    for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
        uint64_t p;

        histogram_init(&h);
        histogram_record_n(&h, edges[i], 2);
        histogram_record(&h, HISTOGRAM_MAX_US);
        p = histogram_percentile_us(&h, 60);
        assert_true(p >= edges[i] && p - edges[i] <= edges[i] / 1024);
    }
}

static void long_values_are_clamped_and_counted(void **state)
{
    histogram_init(&h);
    histogram_record(&h, HISTOGRAM_MAX_US);
    assert_int_equal(h.over_count, 0);
    histogram_record(&h, HISTOGRAM_MAX_US + 1);
    histogram_record(&h, UINT64_MAX);
    assert_int_equal(h.over_count, 2);
    assert_int_equal(h.count, 3);
    assert_int_equal(histogram_max_us(&h), HISTOGRAM_MAX_US);
    assert_int_equal(histogram_percentile_us(&h, 99), HISTOGRAM_MAX_US);
    assert_true(histogram_stddev_us(&h) == 0);
}

static void deviation_keeps_its_digits_far_from_zero(void **state)
{
    histogram_init(&h);
    /* A billion values of a minute, half of them one microsecond less. */
    histogram_record_n(&h, 60000000, 500000000);
    histogram_record_n(&h, 59999999, 500000000);
    assert_true(histogram_mean_us(&h) == 59999999.5);
    assert_true(fabs(histogram_stddev_us(&h) - 0.5) < 1e-9);
}

static void merging_equals_recording_together(void **state)
{
    static struct histogram both;
    unsigned seed = 7;

    histogram_init(&h);
    histogram_init(&other);
    histogram_init(&both);
    histogram_merge(&both, &h); /* nothing into nothing */
    assert_int_equal(both.count, 0);
    for (int i = 0; i < 10000; i++) {
        uint64_t v = (uint64_t)rand_r(&seed) % 70000000 >> (rand_r(&seed) % 20);

        histogram_record(i % 3 ? &h : &other, v);
        histogram_record(&both, v);
    }
    histogram_merge(&h, &other);
    assert_memory_equal(&h, &both, sizeof(both));
    histogram_init(&other);
    histogram_merge(&h, &other);
    assert_memory_equal(&h, &both, sizeof(both));
    histogram_merge(&other, &h);
    assert_memory_equal(&other, &both, sizeof(both));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty),
        cmocka_unit_test(small_values_are_exact),
        cmocka_unit_test(three_digits_over_the_whole_range),
        cmocka_unit_test(bucket_edges),
        cmocka_unit_test(long_values_are_clamped_and_counted),
        cmocka_unit_test(deviation_keeps_its_digits_far_from_zero),
        cmocka_unit_test(merging_equals_recording_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
