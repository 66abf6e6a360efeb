/*
 * Where lines cross, and the sentences.
 */
#include "measure/sweep_points.h"
#include "measure/sweep_report.h"

#include "sweep_data.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct sweep_points points(const double *a, const double *b, size_t n)
{
    struct sweep_points p = {0};

    for (size_t i = 0; i < n; i++)
        sweep_points_add(&p, 16u << i, a[i], b[i], false);
    return p;
}

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * fabs(want)))
        fail_msg("got %.12g, want %.12g", got, want);
}

static void test_kinds(void **state)
{
    static const double low[] = {1, 2, 4, 8}, high[] = {2, 4, 8, 16}, flat[] = {3, 3, 3, 3}, wave[] = {4, 1, 4, 1};
    struct sweep_points p = points(high, low, 4);
    struct sweep_crossing c = sweep_points_crossing(&p);

    assert_int_equal(c.kind, SWEEP_ALWAYS);
    assert_true(isnan(c.at_bytes));
    near(c.best_ratio, 2);
    assert_int_equal(c.best_bytes, 16);
    p = points(low, high, 4);
    c = sweep_points_crossing(&p);
    assert_int_equal(c.kind, SWEEP_NEVER);
    assert_int_equal(c.from_bytes, 0);
    /* 1, 2, 4, 8 and 3: between 2 at 32 bytes and 4 at 64, on log axes. */
    p = points(low, flat, 4);
    c = sweep_points_crossing(&p);
    assert_int_equal(c.kind, SWEEP_FROM);
    assert_int_equal(c.from_bytes, 64);
    near(c.at_bytes, 48);
    near(c.best_ratio, 8.0 / 3);
    assert_int_equal(c.best_bytes, 128);
    p = points(flat, low, 4);
    c = sweep_points_crossing(&p);
    assert_int_equal(c.kind, SWEEP_UP_TO);
    assert_int_equal(c.from_bytes, 64);
    near(c.at_bytes, 48);
    near(c.best_ratio, 3);
    p = points(wave, flat, 4);
    c = sweep_points_crossing(&p);
    assert_int_equal(c.kind, SWEEP_MIXED);
    assert_true(c.at_bytes > 64 && c.at_bytes < 128);
    p.count = 0;
    c = sweep_points_crossing(&p);
    assert_int_equal(c.kind, SWEEP_UNKNOWN);
    assert_true(isnan(c.at_bytes) && isnan(c.best_ratio));
}

/* Values that are no rates are not compared; more sizes than there is room for do no harm. */
static void test_bounds(void **state)
{
    struct sweep_points p = {0};

    sweep_points_add(&p, 16, NAN, 1, false);
    sweep_points_add(&p, 16, 1, INFINITY, false);
    sweep_points_add(&p, 16, 0, 1, false);
    sweep_points_add(&p, 16, 1, -1, false);
    assert_int_equal(p.count, 0);
    for (unsigned i = 0; i < 2 * SWEEP_POINTS_MAX; i++)
        sweep_points_add(&p, i + 1, 2, 1, false);
    assert_int_equal(p.count, SWEEP_POINTS_MAX);
}

/* Even sizes are nobody's, but noise between two sizes that one wins is no crossing. */
static void test_even(void **state)
{
    struct sweep_points p = {0};
    struct sweep_crossing c;
    char text[SWEEP_SENTENCE_BYTES];

    sweep_points_add(&p, 16, 1, 2, false);
    sweep_points_add(&p, 32, 2.01, 2, true);
    sweep_points_add(&p, 64, 4, 2, false);
    sweep_points_add(&p, 128, 1.99, 2, true);
    sweep_points_add(&p, 256, 4, 2, false);
    c = sweep_points_crossing(&p);
    assert_int_equal(c.kind, SWEEP_FROM);
    assert_int_equal(c.from_bytes, 64);
    near(c.at_bytes, 32);
    p.count = 0;
    sweep_points_add(&p, 16, 2, 2, false);
    sweep_points_add(&p, 32, 2.01, 2, true);
    c = sweep_points_crossing(&p);
    assert_int_equal(c.kind, SWEEP_NEVER);
    assert_string_equal(
        sweep_points_sentence(&p, &(struct sweep_mode){SWEEP_SINGLE, 1}, SWEEP_BY_RATE, "a", "b", text, sizeof(text)),
        "a and b are even at every size when single: no difference greater than between rounds");
}

static void check(const struct sweep_result *r, size_t mode, enum sweep_metric metric, size_t a, size_t b,
                  const char *expected)
{
    char text[SWEEP_SENTENCE_BYTES];

    assert_string_equal(sweep_crossing_sentence(r, 0, mode, metric, a, b, text, sizeof(text)), expected);
}

/* Of cells: medians within each other's rounds are even, unmeasured ones are left out. */
static void test_result(void **state)
{
    struct sweep_result r = sweep_data_new();
    struct sweep_crossing c;

    /* openssl 1 GB/s everywhere, the device 0.25 GB/s doubling: 0.25, 0.5, 1.0 (even), 2.0 GB/s. */
    c = sweep_crossing_of(&r, 0, 0, SWEEP_BY_RATE, 1, 0);
    assert_int_equal(c.kind, SWEEP_FROM);
    assert_int_equal(c.from_bytes, 128 << 10);
    near(c.best_ratio, 2);
    check(&r, 0, SWEEP_BY_RATE, 1, 0, "dev<1> beats openssl from 128 KiB on when single, by up to 2.00x at 128 KiB");
    check(&r, 0, SWEEP_BY_RATE, 0, 1, "openssl beats dev<1> only below 64 KiB when single, by up to 4.00x at 16 B");
    check(&r, 1, SWEEP_BY_RATE, 1, 0, "dev<1> never beats openssl with 8 in flight: at best 0.25x at 16 B");
    check(&r, 0, SWEEP_BY_CPU, 1, 0,
          "dev<1> beats openssl at every size when single by bytes a CPU-second, by up to 80.0x at 128 KiB");
    /* Not counted in the second mode. */
    check(&r, 1, SWEEP_BY_CPU, 1, 0,
          "dev<1> and openssl have no size at which both were measured with 8 in flight by bytes a CPU-second");
    sweep_cell_at(&r, 0, 0, 3, 1)->measured = false;
    check(&r, 0, SWEEP_BY_RATE, 1, 0, "dev<1> never beats openssl when single: at best 1.00x at 64 KiB");
    sweep_result_release(&r);
    assert_null(r.cells);
}

static void test_sentences(void **state)
{
    static const double wave[] = {4, 1, 4, 4, 1, 4, 4}, flat[] = {3, 3, 3, 3, 3, 3, 3};
    struct sweep_points p = points(wave, flat, 7);
    struct sweep_mode mode = {SWEEP_CONCURRENT, 112};
    char text[SWEEP_SENTENCE_BYTES], small[8] = "xxxxxxx";

    assert_string_equal(
        sweep_points_sentence(&p, &mode, SWEEP_BY_RATE, "a", "b", text, sizeof(text)),
        "a beats b only at 16 B, from 64 B to 128 B, from 512 B on with 112 concurrent, by up to 1.33x at "
        "16 B");
    assert_string_equal(sweep_points_sentence(&p, &mode, SWEEP_BY_RATE, "a", "b", small, sizeof(small)), "a beats");
    assert_string_equal(sweep_size_text(16, text), "16 B");
    assert_string_equal(sweep_size_text(1024, text), "1 KiB");
    assert_string_equal(sweep_size_text(1500, text), "1500 B");
    assert_string_equal(sweep_size_text(1536, text), "1536 B");
    assert_string_equal(sweep_size_text(4u << 20, text), "4 MiB");
    assert_string_equal(sweep_size_text(UINT64_MAX, text), "18446744073709551615 B");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),  cmocka_unit_test(test_bounds),    cmocka_unit_test(test_even),
        cmocka_unit_test(test_result), cmocka_unit_test(test_sentences),
    };

    return cmocka_run_group_tests_name("measure/sweep_crossing", tests, NULL, NULL);
}
