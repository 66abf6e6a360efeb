#include "harness.h"

#include "rules/tables.h"

#include <time.h>

static const struct expectation rows[] = {
    {"int(784111777),utime(%Y-%m-%dT%H:%M:%S%%)", "str:1994-11-06T08:49:37%"},
    {"int(784111777),utime(%d,86400)", "str:07"},
    {"int(784111777),utime(%d,-86400)", "str:05"},
    {"int(784111777),ltime(%H:%M)", "str:10:49"},
    {"int(784111777123),ms_utime(%H:%M:%S.%3N)", "str:08:49:37.123"},
    {"int(784111777123),ms_utime(%N)", "str:123000000"},
    {"int(784111777123),ms_ltime(%H %1N)", "str:10 1"},
    {"int(784111777123456),us_utime(%S.%6N%%)", "str:37.123456%"},
    {"int(784111777123456),us_utime(%99N)", "str:123456000"},
    {"int(784111777123456),us_utime(%S,10)", "str:47"},
    {"int(784111777123456),us_ltime(%H:%2N)", "str:10:12"},
    {"int(784111777),http_date", "str:Sun, 06 Nov 1994 08:49:37 GMT"},
    {"int(784111777),http_date(3600)", "str:Sun, 06 Nov 1994 09:49:37 GMT"},
    {"int(784111777),http_date(0,s)", "str:Sun, 06 Nov 1994 08:49:37 GMT"},
    {"int(784111777123),http_date(0,ms)", "str:Sun, 06 Nov 1994 08:49:37.123 GMT"},
    {"int(784111777123456),http_date(0,us)", "str:Sun, 06 Nov 1994 08:49:37.123456 GMT"},
    {"int(-1),http_date", "<none>"},
    {"int(9223372036854775807),http_date(9)", "<none>"},
    {"int(9223372036854775807),us_utime(%S)", "str:54"},
    {"int(9223372036854775807),utime(%Y,9223372036854775807)", "<none>"},
    {"str(\"Sun, 06 Nov 1994 08:49:37 GMT\"),date", "int:784111777"},
    {"str(\"Sunday, 06-Nov-94 08:49:37 GMT\"),date", "int:784111777"},
    {"str(\"Sun Nov  6 08:49:37 1994\"),date", "int:784111777"},
    {"str(yesterday),date", "<none>"},
};

static void dates_are_written_and_read(void **state)
{
    setenv("TZ", "TST-2", 1); /* two hours east */
    tzset();
    fixture_check_typed(*state, rows, COUNT_OF(rows));
    fixture_check_convs_used(&conv_time_table, rows, COUNT_OF(rows));
}

static void arguments_are_checked(void **state)
{
    static const struct expectation wrong[] = {
        {"int(1),http_date(0,h)", "expects 's', 'ms' or 'us'"},
        {"int(1),http_date(x)", "not an integer"},
        {"int(1),utime(%Y,x)", "not an integer"},
    };

    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        fixture_expr_fails(*state, wrong[i].input, wrong[i].expected);
}

/* Formats that grow beyond the room of a date give nothing. */
static void long_formats_end(void **state)
{
    struct fixture *f = *state;
    char *text = arena_zalloc(&f->config, 1, 2001);

    memset(text, 'x', 2000);
    assert_string_equal(fixture_typed(f, arena_printf(&f->config, "int(1),utime(%s)", text)),
                        "<none>");
    assert_string_equal(fixture_typed(f, arena_printf(&f->config, "int(1),ms_utime(%s)", text)),
                        "<none>");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(dates_are_written_and_read),
        TEST(arguments_are_checked),
        TEST(long_formats_end),
    };

    return cmocka_run_group_tests_name("rules/conv_time", tests, NULL, NULL);
}
