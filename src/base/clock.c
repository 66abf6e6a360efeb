#include "base/clock.h"

#include "base/status.h"

#include <stdio.h>
#include <time.h>

/* Last second of year 9999: the formats have four digits for the year. */
#define LAST_SECOND 253402300799ULL

static const char weekday_names[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
static const char month_names[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

static uint64_t clock_read_us(clockid_t id)
{
    struct timespec now;

    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

uint64_t clock_now_us(void)
{
    return clock_read_us(CLOCK_MONOTONIC);
}

uint64_t clock_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t clock_wall_us(void)
{
    return clock_read_us(CLOCK_REALTIME);
}

void clock_http_date(uint64_t wall_us, char out[CLOCK_HTTP_DATE_BYTES])
{
    uint64_t wall_s = wall_us / 1000000;
    time_t seconds = (time_t)(wall_s > LAST_SECOND ? LAST_SECOND : wall_s);
    struct tm tm;

    gmtime_r(&seconds, &tm);
    snprintf(out, CLOCK_HTTP_DATE_BYTES, "%s, %02u %s %04u %02u:%02u:%02u GMT",
             weekday_names[tm.tm_wday], (unsigned)tm.tm_mday % 100, month_names[tm.tm_mon],
             (unsigned)(tm.tm_year + 1900) % 10000, (unsigned)tm.tm_hour % 100,
             (unsigned)tm.tm_min % 100, (unsigned)tm.tm_sec % 100);
}

/* What is left to parse; any mismatch sets `bad` and the rest is skipped. */
struct date_cursor {
    struct str rest;
    bool bad;
};

static void expect(struct date_cursor *c, const char *literal)
{
    struct str text = str_of(literal);

    if (!str_starts(c->rest, text))
        c->bad = true;
    else
        c->rest = str_from(c->rest, text.len);
}

static int take_number(struct date_cursor *c, size_t digits)
{
    uint64_t value = 0;

    if (c->bad || c->rest.len < digits || str_to_u64(str_make(c->rest.ptr, digits), &value) != 0) {
        c->bad = true;
        return 0;
    }
    c->rest = str_from(c->rest, digits);
    return (int)value;
}

static int take_month(struct date_cursor *c)
{
    for (int i = 0; i < 12; i++) {
        if (!c->bad && str_starts(c->rest, str_make(month_names[i], 3))) {
            c->rest = str_from(c->rest, 3);
            return i + 1;
        }
    }
    c->bad = true;
    return 1;
}

static void take_time(struct date_cursor *c, struct tm *tm)
{
    tm->tm_hour = take_number(c, 2);
    expect(c, ":");
    tm->tm_min = take_number(c, 2);
    expect(c, ":");
    tm->tm_sec = take_number(c, 2);
}

/* Days since 1970-01-01 of the proleptic Gregorian calendar; the year begins in March here. */
static int64_t days_of(int year, int month, int day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t year_of_era = y - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year -
           719468;
}

static bool is_valid(int year, int month, const struct tm *tm)
{
    static const int month_days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    int days = month_days[month - 1] + (month == 2 && leap);

    /* 60 is a leap second. */
    return tm->tm_mday >= 1 && tm->tm_mday <= days && tm->tm_hour <= 23 && tm->tm_min <= 59 &&
           tm->tm_sec <= 60;
}

/* RFC 9110: more than 50 years ahead means the most recent past year with these digits. */
static int full_year(int two_digits)
{
    time_t now = (time_t)(clock_wall_us() / 1000000);
    struct tm tm;
    int year;

    gmtime_r(&now, &tm);
    year = (tm.tm_year + 1900) / 100 * 100 + two_digits;
    return year > tm.tm_year + 1900 + 50 ? year - 100 : year;
}

int clock_parse_http_date(struct str s, int64_t *out_s)
{
    static const char *const long_names[7] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                              "Thursday", "Friday", "Saturday"};
    struct date_cursor c = {.rest = s, .bad = true};
    struct tm tm = {0};
    int year, month, weekday;
    bool long_name = false;

    for (weekday = 0; weekday < 7 && c.bad; weekday++) {
        struct str name = str_of(long_names[weekday]);

        long_name = str_starts(s, name);
        if (long_name || str_starts(s, str_make(weekday_names[weekday], 3)))
            c = (struct date_cursor){.rest = str_from(s, long_name ? name.len : 3)};
    }
    if (!c.bad && !long_name && str_starts(c.rest, STR(" "))) { /* asctime */
        expect(&c, " ");
        month = take_month(&c);
        expect(&c, " ");
        if (str_starts(c.rest, STR(" "))) {
            expect(&c, " ");
            tm.tm_mday = take_number(&c, 1);
        } else {
            tm.tm_mday = take_number(&c, 2);
        }
        expect(&c, " ");
        take_time(&c, &tm);
        expect(&c, " ");
        year = take_number(&c, 4);
    } else {
        const char *separator = long_name ? "-" : " ";

        expect(&c, ", ");
        tm.tm_mday = take_number(&c, 2);
        expect(&c, separator);
        month = take_month(&c);
        expect(&c, separator);
        year = long_name ? full_year(take_number(&c, 2)) : take_number(&c, 4);
        expect(&c, " ");
        take_time(&c, &tm);
        expect(&c, " GMT");
    }
    if (c.bad || c.rest.len || !is_valid(year, month, &tm))
        return SP_EINVAL;
    *out_s =
        days_of(year, month, tm.tm_mday) * 86400 + tm.tm_hour * 3600 + tm.tm_min * 60 + tm.tm_sec;
    return 0;
}
