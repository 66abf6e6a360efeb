#include "base/str.h"

#include "base/status.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void slices(void **state)
{
    assert_true(str_eq(STR(""), STR_NULL));
    assert_true(str_eq(STR("abc"), str_of("abc")));
    assert_false(str_eq(STR("abc"), STR("abd")));
    assert_false(str_eq(STR("abc"), STR("ab")));
    assert_true(str_ieq(STR("Host"), STR("hOST")));
    assert_false(str_ieq(STR("Host"), STR("Hos")));
    assert_int_equal(str_of(NULL).len, 0);
    assert_true(str_starts(STR("abc"), STR("")));
    assert_true(str_starts(STR("abc"), STR("abc")));
    assert_false(str_starts(STR("ab"), STR("abc")));
    assert_true(str_starts(STR_NULL, STR_NULL));
    assert_true(str_istarts(STR("Basic x"), STR("basic ")));
    assert_true(str_ends(STR("a.html"), STR(".html")));
    assert_false(str_ends(STR("html"), STR(".html")));
    assert_int_equal(str_chr(STR("a:b"), ':'), 1);
    assert_int_equal(str_chr(STR("ab"), ':'), 2);
    assert_int_equal(str_chr(STR_NULL, ':'), 0);
}

static void from_clamps(void **state)
{
    assert_true(str_eq(str_from(STR("abc"), 1), STR("bc")));
    assert_int_equal(str_from(STR("abc"), 3).len, 0);
    assert_int_equal(str_from(STR("abc"), SIZE_MAX).len, 0);
    assert_int_equal(str_from(STR_NULL, 0).len, 0);
    assert_int_equal(str_from(STR_NULL, 9).len, 0);
}

static void trims_spaces_and_tabs(void **state)
{
    assert_true(str_eq(str_trim(STR(" \t a b\t ")), STR("a b")));
    assert_int_equal(str_trim(STR(" \t ")).len, 0);
    assert_int_equal(str_trim(STR_NULL).len, 0);
    /* A line feed is not white space here. */
    assert_true(str_eq(str_trim(STR("\n")), STR("\n")));
}

static void finds(void **state)
{
    assert_int_equal(str_find(STR("abcabc"), STR("bc")), 1);
    assert_int_equal(str_find(STR("abc"), STR("")), 0);
    assert_int_equal(str_find(STR_NULL, STR_NULL), 0);
    assert_int_equal(str_find(STR("abc"), STR("abcd")), 3);
    assert_int_equal(str_find(STR("abc"), STR("x")), 3);
    assert_int_equal(str_find(STR_NULL, STR("x")), 0);
    assert_int_equal(str_find(str_make("a\0b", 3), str_make("\0b", 2)), 1);
}

static void finds_without_case(void **state)
{
    assert_int_equal(str_ifind(STR("no Chunked"), STR("cHUNKED")), 3);
    assert_int_equal(str_ifind(STR("abc"), STR("C")), 2);
    assert_int_equal(str_ifind(STR("abc"), STR("")), 0);
    assert_int_equal(str_ifind(STR("ab"), STR("abc")), 2);
    assert_int_equal(str_ifind(STR("[]"), STR("{")), 2); /* '[' and '{' differ by the case bit */
    assert_int_equal(str_ifind(STR_NULL, STR("x")), 0);
}

static void parses_unsigned(void **state)
{
    uint64_t v = 7;

    assert_int_equal(str_to_u64(STR("0"), &v), 0);
    assert_int_equal(v, 0);
    assert_int_equal(str_to_u64(STR("18446744073709551615"), &v), 0);
    assert_true(v == UINT64_MAX);
    assert_int_equal(str_to_u64(STR("00042"), &v), 0);
    assert_int_equal(v, 42);
    for (size_t i = 0; i < 9; i++) {
        static const char *const bad[] = {"",
                                          "-1",
                                          "+1",
                                          " 1",
                                          "1 ",
                                          "0x1",
                                          "1.0",
                                          "18446744073709551616",
                                          "99999999999999999999999999"};

        v = 7;
        assert_int_equal(str_to_u64(str_of(bad[i]), &v), SP_EINVAL);
        assert_int_equal(v, 7);
    }
    assert_int_equal(str_to_u64(STR_NULL, &v), SP_EINVAL);
    assert_int_equal(str_to_u64(str_make("12345", 2), &v), 0);
    assert_int_equal(v, 12);
}

static void parses_signed(void **state)
{
    int64_t v = 7;

    assert_int_equal(str_to_i64(STR("-9223372036854775808"), &v), 0);
    assert_true(v == INT64_MIN);
    assert_int_equal(str_to_i64(STR("9223372036854775807"), &v), 0);
    assert_true(v == INT64_MAX);
    assert_int_equal(str_to_i64(STR("-0"), &v), 0);
    assert_true(v == 0);
    v = 7;
    assert_int_equal(str_to_i64(STR("9223372036854775808"), &v), SP_EINVAL);
    assert_int_equal(str_to_i64(STR("-9223372036854775809"), &v), SP_EINVAL);
    assert_int_equal(str_to_i64(STR("-"), &v), SP_EINVAL);
    assert_int_equal(str_to_i64(STR("--1"), &v), SP_EINVAL);
    assert_int_equal(str_to_i64(STR(""), &v), SP_EINVAL);
    assert_true(v == 7);
}

static void parses_times(void **state)
{
    static const struct {
        const char *text;
        int64_t us;
    } good[] = {
        {"0", 0},
        {"5", 5000},
        {"5us", 5},
        {"5ms", 5000},
        {"5s", 5000000},
        {"5m", 300000000},
        {"5h", 18000000000},
        {"2d", 172800000000},
        {"9007199254740992us", 9007199254740992},
    };
    static const char *const bad[] = {"", "s", "5x", "5 s", "5S", "5sec", "-5", "1.5s", "5ss"};
    static const char *const big[] = {"9007199254740993us", "104249991375d",
                                      "99999999999999999999999"};
    int64_t us = 7;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(str_to_time_us(str_of(good[i].text), 1000, &us), 0);
        assert_true(us == good[i].us);
    }
    us = 7;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(str_to_time_us(str_of(bad[i]), 1000, &us), SP_EINVAL);
    for (size_t i = 0; i < sizeof(big) / sizeof(big[0]); i++)
        assert_int_equal(str_to_time_us(str_of(big[i]), 1000, &us), SP_ETOOBIG);
    assert_true(us == 7);
    assert_int_equal(str_to_time_us(STR("3"), 1000000, &us), 0);
    assert_true(us == 3000000);
}

static void parses_sizes(void **state)
{
    uint64_t v = 7;

    assert_int_equal(str_to_size(STR("16384"), &v), 0);
    assert_int_equal(v, 16384);
    assert_int_equal(str_to_size(STR("16k"), &v), 0);
    assert_int_equal(v, 16384);
    assert_int_equal(str_to_size(STR("2M"), &v), 0);
    assert_int_equal(v, 2097152);
    assert_int_equal(str_to_size(STR("3g"), &v), 0);
    assert_true(v == 3221225472);
    assert_int_equal(str_to_size(STR("17179869183g"), &v), 0);
    assert_true(v == 17179869183ULL << 30);
    v = 7;
    assert_int_equal(str_to_size(STR("17179869184g"), &v), SP_ETOOBIG);
    assert_int_equal(str_to_size(STR("18446744073709551616"), &v), SP_ETOOBIG);
    assert_int_equal(str_to_size(STR(""), &v), SP_EINVAL);
    assert_int_equal(str_to_size(STR("k"), &v), SP_EINVAL);
    assert_int_equal(str_to_size(STR("1kb"), &v), SP_EINVAL);
    assert_int_equal(str_to_size(STR("1t"), &v), SP_EINVAL);
    assert_int_equal(v, 7);
}

static void prints_decimals(void **state)
{
    char out[21];

    memset(out, '#', sizeof(out));
    assert_int_equal(str_put_u64(out, 0), 1);
    assert_memory_equal(out, "0#", 2);
    assert_int_equal(str_put_u64(out, UINT64_MAX), 20);
    assert_memory_equal(out, "18446744073709551615#", 21);
    assert_int_equal(str_put_u64(out, 1000), 4);
    assert_memory_equal(out, "1000", 4);
}

static void measures_distance(void **state)
{
    char a[200], b[200];

    assert_int_equal(str_distance(STR(""), STR(""), 3), 0);
    assert_int_equal(str_distance(STR(""), STR("abc"), 3), 3);
    assert_int_equal(str_distance(STR("abc"), STR(""), 2), 3);
    assert_int_equal(str_distance(STR("server"), STR("sevrer"), 5), 1); /* a swap is one */
    assert_int_equal(str_distance(STR("server"), STR("serve"), 5), 1);
    assert_int_equal(str_distance(STR("server"), STR("servers"), 5), 1);
    assert_int_equal(str_distance(STR("server"), STR("serwer"), 5), 1);
    assert_int_equal(str_distance(STR("kitten"), STR("sitting"), 9), 3);
    assert_int_equal(str_distance(STR("kitten"), STR("sitting"), 3), 3);
    assert_int_equal(str_distance(STR("kitten"), STR("sitting"), 2), 3);
    assert_int_equal(str_distance(STR("kitten"), STR("sitting"), 0), 1);
    assert_int_equal(str_distance(STR("abcdef"), STR("uvwxyz"), 2), 3);
    assert_int_equal(str_distance(STR("abcdef"), STR("uvwxyz"), UINT_MAX), 6);
    /* Three swaps, found although every prefix pair of odd length is dearer. */
    assert_int_equal(str_distance(STR("abcdef"), STR("badcfe"), 3), 3);
    memset(a, 'x', sizeof(a));
    memset(b, 'x', sizeof(b));
    assert_int_equal(str_distance(str_make(a, 200), str_make(b, 200), 2), 0);
    b[0] = 'y';
    assert_int_equal(str_distance(str_make(a, 200), str_make(b, 200), 2), 3);
    assert_int_equal(str_distance(str_make(a, 127), str_make(b, 127), 2), 1);
}

static void suggests_the_nearest(void **state)
{
    static const char *const words[] = {"bind",    "server", "timeout",         NULL,
                                        "maxconn", "mode",   "default_backend", "no"};
    const size_t n = sizeof(words) / sizeof(words[0]);

    assert_string_equal(str_nearest(STR("sevrer"), words, n), "server");
    assert_string_equal(str_nearest(STR("bnid"), words, n), "bind");
    assert_string_equal(str_nearest(STR("default-backend"), words, n), "default_backend");
    assert_string_equal(str_nearest(STR("TIMEOUT"), words, n), "timeout");
    assert_string_equal(str_nearest(STR("mod"), words, n), "mode");
    assert_null(str_nearest(STR("frontend"), words, n));
    assert_null(str_nearest(STR(""), words, n));
    assert_null(str_nearest(STR("x"), words, n));
    assert_null(str_nearest(STR("server"), words, 0));
}

static void first_letter_breaks_ties(void **state)
{
    static const char *const words[] = {"hind", "bund"};

    assert_string_equal(str_nearest(STR("bind"), words, 2), "bund");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices),
        cmocka_unit_test(from_clamps),
        cmocka_unit_test(trims_spaces_and_tabs),
        cmocka_unit_test(finds),
        cmocka_unit_test(finds_without_case),
        cmocka_unit_test(parses_unsigned),
        cmocka_unit_test(parses_signed),
        cmocka_unit_test(parses_times),
        cmocka_unit_test(parses_sizes),
        cmocka_unit_test(prints_decimals),
        cmocka_unit_test(measures_distance),
        cmocka_unit_test(suggests_the_nearest),
        cmocka_unit_test(first_letter_breaks_ties),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
