/* When requests are due. */
#include "load/arrival.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define START 1000000u

static void constant(void **state)
{
    struct load_arrival a;

    load_arrival_init(&a, LOAD_CONSTANT, 3, 0, START, 1);
    for (uint64_t i = 0; i < 3000; i++) {
        /* From the start, whatever came before: a third of a second does not add up its rounding. */
        assert_in_range(a.due_us, START + i * 1000000 / 3 - 1, START + i * 1000000 / 3);
        load_arrival_next(&a);
    }
    load_arrival_init(&a, LOAD_CONSTANT, 1000, 0.5, START, 1);
    assert_int_equal(a.due_us, START + 500);
    load_arrival_next(&a);
    assert_int_equal(a.due_us, START + 1500);
}

static void poisson(void **state)
{
    const unsigned n = 100000;
    double sum = 0, squares = 0, previous = 0;
    unsigned above_mean = 0;
    struct load_arrival a;

    load_arrival_init(&a, LOAD_POISSON, 10000, 0, START, 42);
    for (unsigned i = 0; i < n; i++) {
        double gap = a.at_us - previous;

        previous = a.at_us;
        assert_true(gap >= 0);
        sum += gap;
        squares += gap * gap;
        above_mean += gap > 100;
        load_arrival_next(&a);
    }
    /* Exponential: mean 100, variance 100^2, P(above the mean) = 1/e. Bounds of six standard errors. */
    assert_true(fabs(sum / n - 100) < 2);
    assert_true(fabs(squares / n - sum / n * (sum / n) - 10000) < 550);
    assert_true(fabs((double)above_mean / n - exp(-1)) < 0.01);
}

static void seeds(void **state)
{
    struct load_arrival a, b, c;
    bool differs = false;

    load_arrival_init(&a, LOAD_POISSON, 100, 0, START, 7);
    load_arrival_init(&b, LOAD_POISSON, 100, 0, START, 7);
    load_arrival_init(&c, LOAD_POISSON, 100, 0, START, 8);
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(a.due_us, b.due_us);
        differs |= a.due_us != c.due_us;
        load_arrival_next(&a);
        load_arrival_next(&b);
        load_arrival_next(&c);
    }
    assert_true(differs);
}

/* A rate so low that the next one lies beyond any clock. */
static void extremes(void **state)
{
    struct load_arrival a;

    load_arrival_init(&a, LOAD_CONSTANT, 1e-12, 0, START, 1);
    assert_int_equal(a.due_us, START);
    load_arrival_next(&a);
    assert_true(a.due_us == UINT64_MAX);
    load_arrival_init(&a, LOAD_CONSTANT, 1e7, 0, START, 1);
    for (unsigned i = 0; i < 100; i++)
        load_arrival_next(&a);
    assert_int_equal(a.due_us, START + 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constant),
        cmocka_unit_test(poisson),
        cmocka_unit_test(seeds),
        cmocka_unit_test(extremes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
