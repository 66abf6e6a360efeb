/*
 * The reports of a made-up result: CSV, JSON as a parser reads it, a page whose tags close, and the terminal's text.
 */
#include "measure/svg.h"
#include "measure/sweep_report.h"

#include "sweep_data.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "memory_stream.h" /* uses cmocka */

#define TAGS_MAX 64

static size_t count(const char *text, const char *word)
{
    size_t n = 0;

    for (; (text = strstr(text, word)) != NULL; text += strlen(word))
        n++;
    return n;
}

static struct sweep_table *published(void)
{
    static char text[65536];
    char error[SWEEP_TABLE_ERROR_BYTES] = "";
    FILE *file = fopen(SWEEP_PUBLISHED, "r");
    struct sweep_table *table = NULL;
    size_t len;

    assert_non_null(file);
    len = fread(text, 1, sizeof(text), file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(sweep_table_parse(text, len, &table, error), 0);
    return table;
}

static void test_csv(void **state)
{
    struct sweep_result r = sweep_data_new();
    FILE *out = begin();
    char *text;

    sweep_report_csv(out, &r);
    text = end(out);
    assert_int_equal(count(text, "\n"), 1 + 2 * 2 * 4 * 3);
    assert_non_null(strstr(text,
                           "\naes-256-xts,single,1,16,openssl,1000000000,950000000,1050000000,62500000.0,1000000000,,,,"
                           "0.0000,1000,0,0,\n"));
    assert_non_null(strstr(text,
                           "\naes-256-xts,depth,8,65536,dev<1>,250000000,237500000,262500000,3814.7,,,12.250,1234.500,"
                           "0.5000,1000,0,0,\n"));
    assert_non_null(strstr(text, "\naes-128-gcm,single,1,16,\"cryptodev:a,b=\"\"c\"\"\",,,,,,,,,,,,0,\"no <card>, "
                                 "\"\"none\"\" & nothing\"\n"));
    free(text);
    sweep_result_release(&r);
}

static double number(json_t *object, const char *name)
{
    json_t *value = json_object_get(object, name);

    assert_true(json_is_number(value));
    return json_number_value(value);
}

static const char *string(json_t *object, const char *name)
{
    assert_true(json_is_string(json_object_get(object, name)));
    return json_string_value(json_object_get(object, name));
}

static void test_json(void **state)
{
    struct sweep_result r = sweep_data_new();
    FILE *out = begin();
    json_t *root, *algorithm, *cells, *cell;
    json_error_t error;
    char *text;

    sweep_report_json(out, &r);
    text = end(out);
    root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        fail_msg("line %d: %s", error.line, error.text);
    assert_string_equal(string(root, "tool"), "sallyport crypto sweep");
    assert_string_equal(string(root, "command"), "sallyport crypto sweep --impl \"a\\b\"\n\x01 <x>");
    assert_true(number(root, "slice_ms") == 20 && json_is_false(json_object_get(root, "in_place")));
    assert_int_equal(json_array_size(json_object_get(root, "sizes")), 4);
    assert_true(json_is_null(json_object_get(json_array_get(json_object_get(root, "impls"), 2), "description")));
    algorithm = json_array_get(json_object_get(root, "algorithms"), 1);
    assert_string_equal(string(algorithm, "algorithm"), "aes-128-gcm");
    cells = json_object_get(algorithm, "cells");
    assert_int_equal(json_array_size(cells), 2 * 4 * 3);
    cell = json_array_get(cells, 12 + 1);
    assert_string_equal(string(cell, "mode"), "depth");
    assert_string_equal(string(cell, "impl"), "dev<1>");
    assert_true(number(cell, "bytes_per_s") == 0.25e9 && number(cell, "p99_us") == 1234.5 &&
                number(cell, "errors") == 3);
    assert_true(json_is_null(json_object_get(cell, "bytes_per_cpu_s")));
    cell = json_array_get(cells, 2);
    assert_true(json_is_false(json_object_get(cell, "measured")));
    assert_string_equal(string(cell, "why_not"), "no <card>, \"none\" & nothing");
    cells = json_object_get(algorithm, "crossings");
    assert_int_equal(json_array_size(cells), 2 * 2 * 2);
    cell = json_array_get(cells, 0);
    assert_string_equal(string(cell, "kind"), "from");
    assert_true(number(cell, "from_bytes") == 128 << 10 && number(cell, "best_ratio") == 2);
    assert_non_null(strstr(string(cell, "sentence"), "dev<1> beats openssl from 128 KiB on when single"));
    cell = json_array_get(cells, 1);
    assert_string_equal(string(cell, "kind"), "unknown");
    assert_true(json_is_null(json_object_get(cell, "at_bytes")));
    json_decref(root);
    free(text);
    sweep_result_release(&r);
}

/* Elements that have no end tag, or whose last character is a slash, do not count. */
static bool is_void(const char *tag, size_t len)
{
    return (len == 4 && memcmp(tag, "meta", 4) == 0) || (len == 2 && memcmp(tag, "br", 2) == 0);
}

static void check_tags(const char *page)
{
    const char *open[TAGS_MAX];
    size_t lengths[TAGS_MAX], depth = 0;

    for (const char *at = strchr(page, '<'); at; at = strchr(at, '<')) {
        bool is_end = at[1] == '/';
        const char *tag = at + 1 + is_end, *close = strchr(at, '>');
        size_t len = strspn(tag, "abcdefghijklmnopqrstuvwxyz0123456789");

        assert_non_null(close);
        at = close;
        if (tag[0] == '!' || close[-1] == '/' || is_void(tag, len))
            continue;
        assert_true(len > 0);
        if (!is_end) {
            assert_true(depth < TAGS_MAX);
            open[depth] = tag;
            lengths[depth++] = len;
        } else if (depth == 0 || lengths[depth - 1] != len || memcmp(open[depth - 1], tag, len) != 0) {
            fail_msg("</%.*s> closes <%.20s", (int)len, tag, depth ? open[depth - 1] : "");
        } else {
            depth--;
        }
    }
    assert_int_equal(depth, 0);
}

static char *page_of(const struct sweep_result *r, const struct sweep_table *earlier, const char *name)
{
    FILE *out = begin();
    char *page;

    sweep_report_html(out, r, earlier, name);
    page = end(out);
    check_tags(page);
    assert_int_equal(count(page, "nan"), 0);
    assert_int_equal(count(page, "<script"), 0);
    assert_int_equal(count(page, "dev<1>"), 0);
    return page;
}

static void test_html(void **state)
{
    struct sweep_result r = sweep_data_new();
    struct sweep_table *earlier = published();
    char *page = page_of(&r, NULL, NULL);

    assert_int_equal(count(page, "role=\"img\""), 2 * 3);
    assert_int_equal(count(page, "<details>"), 2 * 2);
    assert_int_equal(count(page, "class=\"line s0\" d=\"M"), 2 * 3 * 2); /* and its key */
    /* Nothing was measured of the third: it has a line without points and no key. */
    assert_int_equal(count(page, "cryptodev:a,b=&quot;c&quot;</span>"), 0);
    assert_non_null(
        strstr(page, "<li>dev&lt;1&gt; beats openssl from 128 KiB on when single, by up to 2.00x at 128 KiB</li>"));
    /* The same in both modes, said once for each algorithm. */
    assert_int_equal(count(page, "<p>Not measured: cryptodev:a,b=&quot;c&quot; at 16 B to 1 KiB: no &lt;card&gt;, "
                                 "&quot;none&quot; &amp; nothing.</p>"),
                     2);
    assert_int_equal(count(page, "<p>Not measured"), 2 * 2);
    assert_int_equal(count(page, "-5.0 +5.0 %"), 2 * 2 * 4 * 2);
    /* One crossing in the first chart of each algorithm: a rule with the number of its sentence. */
    assert_int_equal(count(page, "class=\"rule\""), 2);
    assert_int_equal(count(page, ">1</text>"), 2);
    assert_int_equal(count(page, "dashed\" d=\"M"), 0);
    assert_non_null(strstr(page, "prefers-color-scheme:dark"));
    free(page);
    page = page_of(&r, earlier, "<published>");
    assert_int_equal(count(page, "dashed\" d=\"M"), 2 * 6 * 2);
    assert_non_null(strstr(page, ">card (&lt;published&gt;)</span>"));
    assert_non_null(strstr(page, ">card, 112 concurrent (&lt;published&gt;)</span>"));
    assert_non_null(
        strstr(page, "<li>card (&lt;published&gt;) beats aesni (&lt;published&gt;) from 64 KiB on when single, by "
                     "up to 1.59x at 4 MiB</li>"));
    free(page);
    sweep_table_free(earlier);
    /* A reason of one mode names it. */
    sweep_cell_at(&r, 0, 1, 0, 0)->measured = false;
    page = page_of(&r, NULL, NULL);
    assert_int_equal(count(page, "<p>Not measured with 8 in flight: openssl at 16 B: not measured.</p>"), 1);
    free(page);
    sweep_result_release(&r);
}

/* Nothing measured at all, and nothing asked: still a page. */
static void test_nothing(void **state)
{
    struct sweep_result r = sweep_data_new();
    char *page;

    for (size_t i = 0; i < 2 * 2 * 4 * 3; i++)
        r.cells[i].measured = false;
    page = page_of(&r, NULL, NULL);
    assert_int_equal(count(page, "role=\"img\""), 0);
    assert_int_equal(count(page, "nothing was measured"), 4);
    /* The made-up reasons are there in one mode as in the other; the others have none. */
    assert_int_equal(count(page, "<p>Not measured: openssl: not measured.</p>"), 2);
    free(page);
    sweep_result_release(&r);
    page = page_of(&r, NULL, NULL);
    free(page);
}

static void test_text(void **state)
{
    struct sweep_result r = sweep_data_new();
    struct sweep_table *earlier = published();
    FILE *out = begin();
    char *text;

    sweep_report_text(out, &r, earlier, "published");
    text = end(out);
    assert_int_equal(count(text, ": bytes a second\n"), 2 * 2);
    assert_int_equal(count(text, ": bytes a CPU-second\n"), 2);
    assert_non_null(strstr(text, "aes-256-xts, one request at a time: bytes a second\n"));
    assert_non_null(strstr(text, "cryptodev:a,b=\"c\": not available\n"));
    assert_non_null(strstr(
        text, "\n      16 B     1.00 GB/s      250 MB/s                  -          978 kB/s           358 MB/s\n"));
    assert_non_null(strstr(text, "\n  - cryptodev:a,b=\"c\" at 16 B to 1 KiB: no <card>, \"none\" & nothing\n"));
    assert_int_equal(count(text, "  dev<1> beats openssl from 128 KiB on when single, by up to 2.00x at 128 KiB\n"), 2);
    assert_int_equal(count(text, "published:\n"), 1);
    assert_int_equal(count(text, "  card beats aesni from 64 KiB on when single, by up to 1.59x at 4 MiB\n"), 1);
    assert_int_equal(count(text, "  card never beats aesni with 112 concurrent: at best 0.10x at 4 MiB\n"), 1);
    free(text);
    sweep_table_free(earlier);
    sweep_result_release(&r);
}

static void test_units(void **state)
{
    char text[SVG_TEXT_BYTES];
    struct svg_axis axis = {SVG_LOG2, SVG_UNIT_SIZE, 17, 5000000, NULL, NULL, 0};
    struct svg_plot plot = {.title = "",
                            .x = {SVG_LOG2, SVG_UNIT_SIZE, 16, 4 << 20, NULL, NULL, 0},
                            .y = {SVG_LINEAR, SVG_UNIT_NUMBER, 0, 1, NULL, NULL, 0}};
    FILE *out = begin();
    char *written;

    assert_string_equal(svg_format(1024, SVG_UNIT_SIZE, text), "1.00 KiB");
    assert_string_equal(svg_format(16, SVG_UNIT_SIZE, text), "16 B");
    assert_string_equal(svg_format(1.5e9, SVG_UNIT_BYTES_PER_S, text), "1.50 GB/s");
    assert_string_equal(svg_format(999700, SVG_UNIT_BYTES_PER_S, text), "1.00 MB/s");
    assert_string_equal(svg_format(187170816000, SVG_UNIT_BYTES, text), "187 GB");
    assert_string_equal(svg_format(3e18, SVG_UNIT_BYTES, text), "3000 PB");
    svg_axis_round(&axis);
    assert_true(axis.low == 16 && axis.high == 8 << 20);
    svg_begin(out, &plot);
    svg_end(out);
    written = end(out);
    assert_non_null(strstr(written, ">16 B</text>"));
    assert_non_null(strstr(written, ">4 MiB</text>"));
    assert_int_equal(count(written, "middle\">"), 10);
    free(written);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_csv),     cmocka_unit_test(test_json), cmocka_unit_test(test_html),
        cmocka_unit_test(test_nothing), cmocka_unit_test(test_text), cmocka_unit_test(test_units),
    };

    return cmocka_run_group_tests_name("measure/sweep_report", tests, NULL, NULL);
}
