/*
 * Scales, texts and escaping of the plots; the page of a run.
 */
#include "measure/report.h"
#include "measure/svg.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "memory_stream.h" /* uses cmocka */

static void check_escape(const char *text, const char *expected)
{
    FILE *out = begin();
    char *written;

    svg_escape(out, text);
    written = end(out);
    assert_string_equal(written, expected);
    free(written);
}

static void test_escape(void **state)
{
    (void)state;
    check_escape(NULL, "");
    check_escape("a<b>&\"'c", "a&lt;b&gt;&amp;&quot;&#39;c");
    check_escape("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;");
    check_escape("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
    check_escape("a\xff\xc3(\xc0\xaf\xed\xa0\x80z", "a\?\?(\?\?\?\?\?z");
    check_escape("\xe2\x82", "\?\?");
    check_escape("a\tb\x01\x7f", "a b  ");
}

static void check_format(double value, enum svg_unit unit, const char *expected)
{
    char text[SVG_TEXT_BYTES];

    assert_string_equal(svg_format(value, unit, text), expected);
}

static void test_format(void **state)
{
    (void)state;
    check_format(61, SVG_UNIT_US, "61 us");
    check_format(59.54, SVG_UNIT_US, "59.5 us");
    check_format(1000, SVG_UNIT_US, "1.00 ms");
    check_format(20480, SVG_UNIT_US, "20.5 ms");
    check_format(999.9, SVG_UNIT_US, "1.00 ms");
    check_format(1500000, SVG_UNIT_US, "1.50 s");
    check_format(0, SVG_UNIT_US, "0 us");
    check_format(9000, SVG_UNIT_NUMBER, "9000");
    check_format(12345, SVG_UNIT_NUMBER, "12.3k");
    check_format(2.5e6, SVG_UNIT_NUMBER, "2.50M");
    check_format(99.99, SVG_UNIT_PERCENT, "99.99 %");
    check_format(NAN, SVG_UNIT_US, "-");
    check_format(1e300, SVG_UNIT_NUMBER, svg_format(1e300, SVG_UNIT_NUMBER, (char[SVG_TEXT_BYTES]){0}));
}

static void test_scales(void **state)
{
    struct svg_plot p = {.x = {SVG_LOG, SVG_UNIT_US, 30, 7000, "", NULL, 0},
                         .y = {SVG_LINEAR, SVG_UNIT_NUMBER, 0, 8700, "", NULL, 0}};
    double step;

    (void)state;
    svg_axis_round(&p.x);
    svg_axis_round(&p.y);
    assert_true(fabs(p.x.low - 20) < 1e-9 && fabs(p.x.high - 10000) < 1e-6);
    assert_true(p.y.low == 0 && fabs(p.y.high - 10000) < 1e-6);
    step = svg_x(&p, 1000) - svg_x(&p, 100);
    assert_true(fabs(svg_x(&p, 10000) - svg_x(&p, 1000) - step) < 1e-6);
    assert_true(svg_y(&p, 10000) < svg_y(&p, 0));
    /* Clamped. */
    assert_true(svg_x(&p, 0) == svg_x(&p, 20) && svg_x(&p, 1e9) == svg_x(&p, 10000));
    p.x = (struct svg_axis){SVG_PERCENTILE, SVG_UNIT_PERCENT, 0, 99.99, "", NULL, 0};
    step = svg_x(&p, 90) - svg_x(&p, 0);
    assert_true(fabs(svg_x(&p, 99) - svg_x(&p, 90) - step) < 1e-6);
    assert_true(fabs(svg_x(&p, 99.9) - svg_x(&p, 99) - step) < 1e-6);
    /* Nothing measured. */
    p.x = (struct svg_axis){SVG_LOG, SVG_UNIT_US, 0, 0, "", NULL, 0};
    svg_axis_round(&p.x);
    assert_true(p.x.low > 0 && p.x.high > p.x.low);
    p.y = (struct svg_axis){SVG_LINEAR, SVG_UNIT_US, 0, 0, "", NULL, 0};
    svg_axis_round(&p.y);
    assert_true(p.y.high > p.y.low);
}

static size_t count(const char *text, const char *word)
{
    size_t n = 0;

    for (; (text = strstr(text, word)) != NULL; text += strlen(word))
        n++;
    return n;
}

static void test_report(void **state)
{
    static const double percents[] = {0, 50, 90, 99}, values[] = {10, 20, 300, 4000};
    static const struct report_phase phases[] = {
        {"total <b>", 100, 10, 30, 5, 5000, percents, values, 4, true},
        {"connect", 0, 0, 0, 0, 0, NULL, NULL, 0, false},
    };
    static const struct report_bar bars[] = {{9.5, 20, 50}, {20, 5001, 50}};
    static const struct report_interval intervals[] = {{0, 1, 50, 0, 20, 300, 5000}, {1, 1, 0, 3, 0, 0, 0}};
    static const struct report_fact facts[] = {{"URL", "http://h/?a=<script>"}};
    struct report_run run = {.title = "Load on <x>",
                             .phases = phases,
                             .phase_count = 2,
                             .bars = bars,
                             .bar_count = 2,
                             .intervals = intervals,
                             .interval_count = 2,
                             .setup = facts,
                             .setup_count = 1};
    char *page;
    FILE *out = begin();

    (void)state;
    report_html(out, &run);
    page = end(out);
    assert_int_equal(count(page, "<svg "), 4);
    assert_int_equal(count(page, "</svg>"), 4);
    assert_int_equal(count(page, "<script"), 0);
    assert_int_equal(count(page, "nan"), 0);
    assert_int_equal(count(page, "http://h/?a=&lt;script&gt;"), 1);
    assert_int_equal(count(page, "<b>total"), 0);
    assert_non_null(strstr(page, "prefers-color-scheme:dark"));
    free(page);
    /* Nothing at all was measured. */
    out = begin();
    run.phase_count = run.bar_count = run.interval_count = 0;
    report_html(out, &run);
    page = end(out);
    assert_int_equal(count(page, "<svg "), 0);
    free(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_escape),
        cmocka_unit_test(test_format),
        cmocka_unit_test(test_scales),
        cmocka_unit_test(test_report),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
