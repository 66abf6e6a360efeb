/*
 * Earlier tables: ours and the published one, and what is refused.
 */
#include "measure/sweep_table.h"

#include "sweep_data.h"

#include <sallyport/status.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define OWN "algorithm,mode,n,request_bytes,impl,bytes_per_s\n"

static struct sweep_table *parse(const char *text, size_t len)
{
    char error[SWEEP_TABLE_ERROR_BYTES] = "";
    struct sweep_table *table = NULL;

    if (sweep_table_parse(text, len, &table, error) != 0)
        fail_msg("%s", error);
    return table;
}

static struct sweep_table *published(void)
{
    static char text[65536];
    FILE *file = fopen(SWEEP_PUBLISHED, "r");
    size_t len;

    assert_non_null(file);
    len = fread(text, 1, sizeof(text), file);
    assert_int_equal(fclose(file), 0);
    return parse(text, len);
}

static void check_sentence(const struct sweep_table *t, size_t i, const char *expected)
{
    const struct sweep_table_series *s = &t->series[i], *base = sweep_table_base(t, s);
    struct sweep_points p;
    char text[SWEEP_SENTENCE_BYTES];

    assert_non_null(base);
    sweep_table_points(&p, s, base);
    assert_string_equal(sweep_points_sentence(&p, &s->mode, s->metric, s->name, base->name, text, sizeof(text)),
                        expected);
}

/* The published figures, and what follows from them. */
static void test_published(void **state)
{
    struct sweep_table *t = published();

    assert_int_equal(t->count, 6);
    assert_true(t->is_published);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(t->series[i].count, 19);
        assert_null(t->series[i].algorithm);
        assert_string_equal(t->series[i].name, i % 2 ? "aesni" : "card");
        assert_int_equal(t->series[i].mode.kind, i == 2 || i == 3 ? SWEEP_CONCURRENT : SWEEP_SINGLE);
        assert_int_equal(t->series[i].mode.n, i == 2 || i == 3 ? 112 : 1);
        assert_int_equal(t->series[i].metric, i < 4 ? SWEEP_BY_RATE : SWEEP_BY_CPU);
        assert_ptr_equal(sweep_table_base(t, &t->series[i]), i % 2 ? NULL : &t->series[i + 1]);
    }
    assert_true(sweep_table_value(&t->series[0], 16) == 978080);
    assert_true(sweep_table_value(&t->series[4], 4194304) == 174224935384);
    assert_true(isnan(sweep_table_value(&t->series[0], 17)));
    check_sentence(t, 0, "card beats aesni from 64 KiB on when single, by up to 1.59x at 4 MiB");
    check_sentence(t, 2, "card never beats aesni with 112 concurrent: at best 0.10x at 4 MiB");
    check_sentence(t, 4, "card beats aesni from 8 KiB on when single by bytes a CPU-second, by up to 133x at 2 MiB");
    sweep_table_free(t);
}

/* What sweep writes, sweep reads. */
static void test_own(void **state)
{
    struct sweep_result r = sweep_data_new();
    char *text = NULL;
    size_t len = 0, at = 0;
    FILE *out = open_memstream(&text, &len);
    struct sweep_table *t;
    const struct sweep_table_series *s;

    assert_non_null(out);
    sweep_report_csv(out, &r);
    assert_int_equal(fclose(out), 0);
    t = parse(text, len);
    assert_false(t->is_published);
    s = sweep_table_next(t, "aes-128-gcm", SWEEP_DEPTH, SWEEP_BY_RATE, &at);
    assert_non_null(s);
    assert_string_equal(s->name, "openssl");
    s = sweep_table_next(t, "aes-128-gcm", SWEEP_DEPTH, SWEEP_BY_RATE, &at);
    assert_non_null(s);
    assert_string_equal(s->name, "dev<1>");
    assert_int_equal(s->mode.n, 8);
    assert_int_equal(s->count, 4);
    assert_true(s->values[2] == 0.25e9);
    assert_string_equal(sweep_table_base(t, s)->name, "openssl");
    /* The third has no figures. */
    assert_null(sweep_table_next(t, "aes-128-gcm", SWEEP_DEPTH, SWEEP_BY_RATE, &at));
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->series[i].name, "cryptodev:a,b=\"c\"") == 0)
            at++;
    assert_true(at > t->count);
    sweep_table_free(t);
    free(text);
    sweep_result_release(&r);
}

static void accept(const char *text, size_t series, size_t count)
{
    struct sweep_table *t = parse(text, strlen(text));

    assert_int_equal(t->count, series);
    assert_int_equal(t->series[0].count, count);
    sweep_table_free(t);
}

static void test_accepted(void **state)
{
    accept(OWN "x,single,1,16,a,1\r\n\r\nx,single,1,32,a,1e9\r\n", 1, 2);
    accept(OWN "\"x\",single,1,16,\"a,\"\"b\",12.5", 1, 1);
    /* Not measured, and nothing done: no point. */
    accept(OWN "x,single,1,16,a,\nx,single,1,32,a,0\nx,single,1,64,a,7\n", 1, 1);
    accept("single_a_b_bytes_per_cpu_s,request_bytes\n5,16\n6,17\n", 1, 2);
}

static void refuse(const char *text, const char *expected)
{
    char error[SWEEP_TABLE_ERROR_BYTES] = "";
    struct sweep_table *t = (struct sweep_table *)error;

    assert_int_equal(sweep_table_parse(text, strlen(text), &t, error), SP_EINVAL);
    assert_ptr_equal(t, error); /* untouched */
    if (!strstr(error, expected))
        fail_msg("'%s' does not say '%s'", error, expected);
}

static void test_refused(void **state)
{
    char long_field[2048];

    refuse("", "a first line that names the columns");
    refuse("\n\n", "line 2: expected a first line");
    refuse("bytes,x\n", "line 1: 'bytes': expected request_bytes, MODE_NAME_bytes_per_s");
    refuse("request_bytes\n16\n", "expected a column MODE_NAME_bytes_per_s");
    refuse("single_a_bytes_per_s\n16\n", "expected a column request_bytes");
    refuse("request_bytes,request_bytes,single_a_bytes_per_s\n", "each column once");
    refuse("request_bytes,single_a_bytes_per_s,single_a_bytes_per_s\n", "each column once");
    refuse("request_bytes,double_a_bytes_per_s\n", "'double_a_bytes_per_s': expected request_bytes");
    refuse("request_bytes,concurrent_a_bytes_per_s\n", "concurrentN with N from 1");
    refuse("request_bytes,concurrent0_a_bytes_per_s\n", "concurrentN with N from 1");
    refuse("request_bytes,single_bytes_per_s\n", "a NAME of 1 to");
    refuse("request_bytes,single_a_bytes_per_s\n", "lines with figures behind the first line");
    refuse("request_bytes,single_a_bytes_per_s\n16\n", "line 2: expected 2 fields as in the first line; there are 1");
    refuse("request_bytes,single_a_bytes_per_s\n16,1,2\n", "there are 3");
    refuse("request_bytes,single_a_bytes_per_s\n0,1\n", "line 2: '0': expected bytes a request, a whole number from 1");
    refuse("request_bytes,single_a_bytes_per_s\n16k,1\n", "'16k': expected bytes a request");
    refuse("request_bytes,single_a_bytes_per_s\n32,1\n16,1\n",
           "line 3: expected a size greater than that of the line before");
    refuse("request_bytes,single_a_bytes_per_s\n16,nan\n", "line 2: 'nan': expected a number that is not negative");
    refuse("request_bytes,single_a_bytes_per_s\n16,0x10\n", "'0x10': expected a number");
    refuse("request_bytes,single_a_bytes_per_s\n16,1e999\n", "'1e999': expected a number");
    refuse("request_bytes,single_a_bytes_per_s\n16,-1\n", "'-1': expected a number that is not negative");
    refuse("request_bytes,single_a_bytes_per_s\n16, 1\n", "' 1': expected a number");
    refuse("algorithm,mode\n", "expected a column n beside the others");
    refuse("algorithm,colour\n", "'colour': expected a column of sweep's CSV");
    refuse("algorithm,algorithm\n", "each column once");
    refuse(OWN "x,twice,1,16,a,1\n", "line 2: 'twice': expected a mode: single, concurrent or depth");
    refuse(OWN "x,depth,0,16,a,1\n", "'0': expected threads or requests in flight");
    refuse(OWN "x,single,2,16,a,1\n", "'2': expected 1 beside single");
    refuse(OWN ",single,1,16,a,1\n", "an algorithm of 1 to 255 bytes");
    refuse(OWN "x,single,1,16,,1\n", "an implementation of 1 to 255 bytes");
    refuse(OWN "x,single,1,16,a,1\nx,single,1,16,a,2\n", "line 3: '2': expected each size once");
    refuse(OWN "x,single,1,32,a,1\nx,single,1,16,a,2\n", "sizes that grow from line to line");
    refuse(OWN "\"x,single\n", "line 2: 'x,single': expected a closing quote on the same line");
    refuse(OWN "\"x\"y,single\n", "a comma behind the closing quote");
    refuse(OWN "x\"y,single\n", "no quote within a field");
    refuse(OWN "x\x1b[31m,q,1,16,a,1\n", "line 2: 'q'");
    refuse(OWN "x,\x1b[31m,1,16,a,1\n", "line 2: '': expected a mode");
    memset(long_field, 'x', sizeof(long_field) - 1);
    long_field[sizeof(long_field) - 1] = '\0';
    refuse(long_field, "fields of at most 1023 bytes");
    memset(long_field, ',', 100);
    refuse(long_field, "at most 64 columns");
}

static void test_bounds(void **state)
{
    char error[SWEEP_TABLE_ERROR_BYTES] = "", *text = NULL;
    struct sweep_table *t = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    assert_int_equal(sweep_table_parse("", SWEEP_TABLE_BYTES_MAX + 1u, &t, error), SP_EINVAL);
    assert_non_null(strstr(error, "expected a file of at most 16777216 bytes"));
    assert_int_equal(sweep_table_parse("a\0b\n", 4, &t, error), SP_EINVAL);
    assert_non_null(strstr(error, "text without NUL bytes"));
    assert_non_null(out);
    fputs(OWN, out);
    for (unsigned i = 1; i <= SWEEP_POINTS_MAX + 1; i++)
        fprintf(out, "x,single,1,%u,a,5\n", i);
    assert_int_equal(fclose(out), 0);
    refuse(text, "line 66: '5': expected at most 64 sizes");
    free(text);
    out = open_memstream(&text, &len);
    assert_non_null(out);
    fputs(OWN, out);
    for (unsigned i = 0; i <= SWEEP_TABLE_SERIES_MAX; i++)
        fprintf(out, "x%u,single,1,16,a,5\n", i);
    assert_int_equal(fclose(out), 0);
    refuse(text, "line 4098: 'a': expected at most 4096 implementations, modes and algorithms");
    free(text);
    sweep_table_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published), cmocka_unit_test(test_own),    cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_refused),   cmocka_unit_test(test_bounds),
    };

    return cmocka_run_group_tests_name("measure/sweep_table", tests, NULL, NULL);
}
