#include "base/clock.h"

#include "base/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

static void clocks_advance(void **state)
{
    uint64_t before = clock_now_us(), wall = clock_wall_us();
    struct timespec nap = {.tv_nsec = 2000000};

    nanosleep(&nap, NULL);
    assert_true(clock_now_us() - before >= 2000);
    assert_true(wall > 1600000000000000ULL);
    assert_true(llabs((long long)(wall / 1000000) - (long long)time(NULL)) <= 2);
}

static void formats_http_dates(void **state)
{
    char out[CLOCK_HTTP_DATE_BYTES];

    clock_http_date(784111777999999ULL, out);
    assert_string_equal(out, "Sun, 06 Nov 1994 08:49:37 GMT");
    clock_http_date(0, out);
    assert_string_equal(out, "Thu, 01 Jan 1970 00:00:00 GMT");
    clock_http_date(951782400000000ULL, out);
    assert_string_equal(out, "Tue, 29 Feb 2000 00:00:00 GMT");
    clock_http_date(UINT64_MAX, out); /* the format ends with year 9999 */
    assert_string_equal(out, "Fri, 31 Dec 9999 23:59:59 GMT");
}

static void parses_the_three_kinds(void **state)
{
    static const char *const texts[] = {"Sun, 06 Nov 1994 08:49:37 GMT",
                                        "Sunday, 06-Nov-94 08:49:37 GMT",
                                        "Sun Nov  6 08:49:37 1994"};
    int64_t s;

    for (size_t i = 0; i < 3; i++) {
        s = 0;
        assert_int_equal(clock_parse_http_date(str_of(texts[i]), &s), 0);
        assert_true(s == 784111777);
    }
    assert_int_equal(clock_parse_http_date(STR("Wed Nov 16 08:49:37 1994"), &s), 0);
    assert_true(s == 784111777 + 10 * 86400);
    assert_int_equal(clock_parse_http_date(STR("Sat, 01 Jan 0000 00:00:00 GMT"), &s), 0);
    assert_true(s == -62167219200);
    assert_int_equal(clock_parse_http_date(STR("Wed, 31 Dec 1969 23:59:59 GMT"), &s), 0);
    assert_true(s == -1);
    assert_int_equal(clock_parse_http_date(STR("Sat, 31 Dec 2016 23:59:60 GMT"), &s), 0);
    assert_true(s == 1483228800); /* a leap second runs into the next day */
}

static void two_digit_years_stay_within_fifty_years(void **state)
{
    time_t now = time(NULL);
    struct tm tm;
    char text[64];

    gmtime_r(&now, &tm);
    for (int ahead = -40; ahead <= 60; ahead++) {
        int year = tm.tm_year + 1900 + ahead, expected = year;
        struct tm date = {.tm_mday = 1};
        int64_t s;

        if (year / 100 != (tm.tm_year + 1900) / 100)
            continue; /* the digits alone cannot mean the next century */
        if (ahead > 50)
            expected -= 100;
        date.tm_year = expected - 1900;
        snprintf(text, sizeof(text), "Monday, 01-Jan-%02d 00:00:00 GMT", year % 100);
        assert_int_equal(clock_parse_http_date(str_of(text), &s), 0);
        assert_true(s == (int64_t)timegm(&date));
    }
}

static void round_trips(void **state)
{
    char out[CLOCK_HTTP_DATE_BYTES];

    for (uint64_t second = 0; second < 253402300800ULL; second += 86400ULL * 37 + 4321) {
        int64_t back = -1;

        clock_http_date(second * 1000000, out);
        assert_int_equal(clock_parse_http_date(str_of(out), &back), 0);
        assert_true((uint64_t)back == second);
    }
}

static void refuses_everything_else(void **state)
{
    static const char *const bad[] = {
        "",
        "S",
        "Sun",
        "Sun,",
        "Sunday",
        "Foo, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 GMT ",
        "sun, 06 Nov 1994 08:49:37 GMT",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 06 nov 1994 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 31 Nov 1994 08:49:37 GMT",
        "Tue, 29 Feb 1900 00:00:00 GMT",
        "Tue, 29 Feb 2001 00:00:00 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 06 Nov 94 08:49:37 GMT",
        "Sun, 06-Nov-94 08:49:37 GMT",
        "Sunday, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-1994 08:49:37 GMT",
        "Sun Nov 6 08:49:37 1994",
        "Sun Nov  6 08:49:37 94",
        "Sun Nov  6 08:49:37 1994 GMT",
        "784111777",
        "Sun, +6 Nov 1994 08:49:37 GMT",
    };
    int64_t s = 42;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (clock_parse_http_date(str_of(bad[i]), &s) != SP_EINVAL)
            fail_msg("accepted: %s", bad[i]);
    }
    assert_int_equal(clock_parse_http_date(STR_NULL, &s), SP_EINVAL);
    assert_true(s == 42);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clocks_advance),
        cmocka_unit_test(formats_http_dates),
        cmocka_unit_test(parses_the_three_kinds),
        cmocka_unit_test(two_digit_years_stay_within_fifty_years),
        cmocka_unit_test(round_trips),
        cmocka_unit_test(refuses_everything_else),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
