#include "measure/compare_result.h"
#include "measure/stats.h"

#include <sallyport/status.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define SAMPLES 400

static double uniform(struct stats_rng *rng)
{
    return ((double)(stats_rng_next(rng) >> 11) + 0.5) / 9007199254740992.0;
}

/* Box and Muller. */
static double normal(struct stats_rng *rng)
{
    double radius = sqrt(-2 * log(uniform(rng)));

    return radius * cos(6.283185307179586 * uniform(rng));
}

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * (1 + fabs(want))))
        fail_msg("got %.12g, want %.12g", got, want);
}

static void test_quantiles(void **state)
{
    /* Figures of R's quantile(type = 7). */
    static const double odd[] = {9, 1, 5}, even[] = {4, 1, 3, 2}, ten[] = {10, 9, 8, 7, 6, 5, 4, 3, 2, 1};
    double with_nan[] = {1, NAN, 2}, many[STATS_VALUES_MAX + 1] = {0};

    near(stats_median(odd, 3), 5);
    near(stats_median(even, 4), 2.5);
    near(stats_quantile(ten, 10, 0.25), 3.25);
    near(stats_quantile(ten, 10, 0.9), 9.1);
    near(stats_quantile(ten, 10, 0), 1);
    near(stats_quantile(ten, 10, 1), 10);
    near(stats_quantile(ten, 10, -3), 1);
    near(stats_quantile(ten, 10, 7), 10);
    near(stats_median(odd, 1), 9);
    assert_true(isnan(stats_median(odd, 0)));
    assert_true(isnan(stats_median(with_nan, 3)));
    assert_true(isnan(stats_quantile(odd, 3, NAN)));
    assert_true(isnan(stats_median(many, STATS_VALUES_MAX + 1)));
    for (size_t i = 0; i < STATS_VALUES_MAX; i++)
        many[i] = (double)((i * 37) % STATS_VALUES_MAX); /* through the other way of sorting */
    near(stats_median(many, STATS_VALUES_MAX), (STATS_VALUES_MAX - 1) / 2.0);
    near(odd[0], 9); /* values stay where they are */
}

static void test_pairs(void **state)
{
    static const double a[] = {1, NAN, 3, 4}, b[] = {5, 6, NAN, 8};
    double out_a[4], out_b[4];

    assert_int_equal(stats_pair(a, b, 4, out_a, out_b), 2);
    near(out_a[0], 1);
    near(out_a[1], 4);
    near(out_b[0], 5);
    near(out_b[1], 8);
    assert_int_equal(stats_pair(a, b, 0, out_a, out_b), 0);
}

/*
 * How often the interval holds the true ratio. Both get noise of their own; a noise that they share, a busy machine,
 * is in `shared`. The 95 % of the bootstrap are approximate for few rounds: what is asked is not to promise too much.
 */
static double coverage(size_t n, double noise, double shared, double ratio, bool skewed)
{
    struct stats_rng rng = {n * 1000 + (uint64_t)(ratio * 100)};
    double a[64], base[64];
    unsigned hits = 0;

    for (unsigned sample = 0; sample < SAMPLES; sample++) {
        struct stats_ratio r;

        for (size_t i = 0; i < n; i++) {
            double common = exp(shared * normal(&rng));
            double x = normal(&rng), y = normal(&rng);

            a[i] = ratio * common * exp(noise * (skewed ? fabs(x) : x));
            base[i] = common * exp(noise * (skewed ? fabs(y) : y));
        }
        assert_int_equal(stats_ratio(a, base, n, sample, 1000, &r), 0);
        assert_true(r.has_interval);
        assert_true(r.low <= r.ratio && r.ratio <= r.high);
        hits += r.low <= ratio && ratio <= r.high;
    }
    return hits / (double)SAMPLES;
}

static void test_coverage(void **state)
{
    static const struct {
        size_t n;
        double noise, shared, ratio;
        bool skewed;
        double low, high;
    } cases[] = {
        {5, 0.05, 0, 0.8, false, 0.88, 0.999},   {5, 0.02, 0.1, 1.0, false, 0.88, 1},
        {9, 0.05, 0, 1.25, false, 0.90, 0.999},  {15, 0.10, 0, 0.8, false, 0.90, 0.995},
        {31, 0.10, 0.05, 3.0, false, 0.90, 0.99}, {21, 0.20, 0, 0.8, true, 0.90, 0.995},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        double got = coverage(cases[i].n, cases[i].noise, cases[i].shared, cases[i].ratio, cases[i].skewed);

        if (got < cases[i].low || got > cases[i].high)
            fail_msg("case %zu: the interval held the ratio in %.3f of the samples", i, got);
    }
}

static void test_width(void **state)
{
    struct stats_rng rng = {7};
    double a[40], base[40], wide, narrow;
    struct stats_ratio r;

    for (size_t i = 0; i < 40; i++) {
        a[i] = exp(0.1 * normal(&rng));
        base[i] = exp(0.1 * normal(&rng));
    }
    assert_int_equal(stats_ratio(a, base, 8, 1, STATS_RESAMPLES, &r), 0);
    wide = r.high - r.low;
    assert_int_equal(stats_ratio(a, base, 40, 1, STATS_RESAMPLES, &r), 0);
    narrow = r.high - r.low;
    assert_true(narrow < wide);

    /* Noise that both share says nothing about their ratio: pairing takes it out. */
    for (size_t i = 0; i < 40; i++)
        a[i] = 0.5 * base[i];
    assert_int_equal(stats_ratio(a, base, 40, 1, STATS_RESAMPLES, &r), 0);
    near(r.low, 0.5);
    near(r.high, 0.5);
}

static void test_degenerate(void **state)
{
    static const double same[] = {2, 2, 2, 2, 2, 2}, four[] = {4, 4, 4, 4, 4, 4};
    static const double zero[] = {1, 1, 0, 1, 1, 1}, below[] = {1, 1, -1, 1, 1, 1};
    double bad[] = {1, 1, NAN, 1, 1, 1}, infinite[] = {1, 1, INFINITY, 1, 1, 1};
    struct stats_ratio r = {.ratio = 123}, again;

    assert_int_equal(stats_ratio(same, four, 6, 1, 1000, &r), 0);
    near(r.ratio, 0.5);
    near(r.low, 0.5);
    near(r.high, 0.5);
    assert_true(r.has_interval);
    assert_int_equal(stats_ratio(same, four, 4, 1, 1000, &r), 0);
    assert_false(r.has_interval);
    near(r.low, 0.5);
    assert_int_equal(stats_ratio(same, four, 1, 1, 1000, &r), 0);
    near(r.ratio, 0.5);

    r.ratio = 123;
    assert_int_equal(stats_ratio(same, four, 0, 1, 1000, &r), SP_EINVAL);
    assert_int_equal(stats_ratio(same, four, STATS_VALUES_MAX + 1, 1, 1000, &r), SP_EINVAL);
    assert_int_equal(stats_ratio(same, four, 6, 1, 0, &r), SP_EINVAL);
    assert_int_equal(stats_ratio(same, four, 6, 1, STATS_RESAMPLES + 1, &r), SP_EINVAL);
    assert_int_equal(stats_ratio(same, zero, 6, 1, 1000, &r), SP_EINVAL);
    assert_int_equal(stats_ratio(zero, same, 6, 1, 1000, &r), SP_EINVAL);
    assert_int_equal(stats_ratio(same, below, 6, 1, 1000, &r), SP_EINVAL);
    assert_int_equal(stats_ratio(bad, same, 6, 1, 1000, &r), SP_EINVAL);
    assert_int_equal(stats_ratio(same, infinite, 6, 1, 1000, &r), SP_EINVAL);
    near(r.ratio, 123); /* untouched on failure */

    /* The same seed draws the same. */
    bad[2] = 3;
    assert_int_equal(stats_ratio(bad, same, 6, 9, 1000, &r), 0);
    assert_int_equal(stats_ratio(bad, same, 6, 9, 1000, &again), 0);
    assert_true(r.low == again.low && r.high == again.high);
}

static void test_generator(void **state)
{
    struct stats_rng rng = {1234567};
    unsigned counts[6] = {0}, seen[24] = {0}, distinct = 0;

    /* The published test sequence of splitmix64. */
    assert_true(stats_rng_next(&rng) == 6457827717110365317u);
    assert_true(stats_rng_next(&rng) == 3203168211198807973u);
    for (unsigned i = 0; i < 60000; i++)
        counts[stats_rng_below(&rng, 6)]++;
    for (unsigned i = 0; i < 6; i++)
        assert_in_range(counts[i], 9600, 10400);
    for (unsigned i = 0; i < 24000; i++) {
        unsigned order[4];

        stats_shuffle(&rng, order, 4);
        assert_int_equal(1u << order[0] | 1u << order[1] | 1u << order[2] | 1u << order[3], 15);
        seen[order[0] * 6 + (order[1] - (order[1] > order[0])) * 2 + (order[2] > order[3])]++;
    }
    for (unsigned i = 0; i < 24; i++) {
        assert_in_range(seen[i], 850, 1150);
        distinct += seen[i] > 0;
    }
    assert_int_equal(distinct, 24);
}

static void fill(struct compare_result *r, unsigned variant, enum compare_metric metric, double centre, double noise)
{
    struct stats_rng rng = {variant * 10 + metric};
    struct compare_cell *cell = compare_result_cell(r, 0, variant);

    for (unsigned i = 0; i < r->rounds; i++)
        cell->values[metric][i] = centre * (1 + noise * (uniform(&rng) - 0.5));
}

static void test_verdicts(void **state)
{
    struct compare_result r;
    struct compare_cell *cell;

    assert_int_equal(compare_result_init(&r, 0, 1, 1), SP_EINVAL);
    assert_int_equal(compare_result_init(&r, STATS_VALUES_MAX + 1, 1, 1), SP_EINVAL);
    assert_int_equal(compare_result_init(&r, 9, 2, 1), 0);
    fill(&r, 0, COMPARE_RATE, 1000, 0.02);
    fill(&r, 1, COMPARE_RATE, 1200, 0.02);
    fill(&r, 0, COMPARE_CPU_US, 50, 0.02);
    fill(&r, 1, COMPARE_CPU_US, 40, 0.02);
    fill(&r, 0, COMPARE_P50_US, 500, 0.5);
    fill(&r, 1, COMPARE_P50_US, 500, 0.5);
    assert_int_equal(compare_summarise(&r), 0);
    cell = compare_result_cell(&r, 0, 1);
    assert_int_equal(compare_result_cell(&r, 0, 0)->verdict[COMPARE_RATE], COMPARE_IS_BASE);
    assert_string_equal(compare_verdict_text(COMPARE_RATE, cell->verdict[COMPARE_RATE]), "faster");
    assert_true(compare_verdict_is_better(COMPARE_RATE, cell->verdict[COMPARE_RATE]));
    assert_string_equal(compare_verdict_text(COMPARE_CPU_US, cell->verdict[COMPARE_CPU_US]), "less CPU");
    assert_true(compare_verdict_is_better(COMPARE_CPU_US, cell->verdict[COMPARE_CPU_US]));
    assert_int_equal(cell->verdict[COMPARE_P50_US], COMPARE_SAME);
    assert_int_equal(cell->verdict[COMPARE_P99_US], COMPARE_NOTHING); /* never measured */
    assert_true(isnan(cell->median[COMPARE_P99_US]));

    /* A client at its limit was not slowed by the server: its rate says nothing, the CPU figure still does. */
    cell->client_limits = 1;
    assert_int_equal(compare_summarise(&r), 0);
    assert_int_equal(cell->verdict[COMPARE_RATE], COMPARE_CLIENT);
    assert_int_equal(cell->verdict[COMPARE_CPU_US], COMPARE_LESS);

    /* Rounds that only one of them has do not count. */
    for (unsigned i = 0; i < 5; i++)
        cell->values[COMPARE_CPU_US][i] = NAN;
    assert_int_equal(compare_summarise(&r), 0);
    assert_int_equal(cell->verdict[COMPARE_CPU_US], COMPARE_FEW_ROUNDS);
    compare_result_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantiles), cmocka_unit_test(test_pairs),      cmocka_unit_test(test_coverage),
        cmocka_unit_test(test_width),     cmocka_unit_test(test_degenerate), cmocka_unit_test(test_generator),
        cmocka_unit_test(test_verdicts),
    };

    return cmocka_run_group_tests_name("measure/stats", tests, NULL, NULL);
}
