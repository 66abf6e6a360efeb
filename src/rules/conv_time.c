/*
 * Dates: strftime on seconds, milliseconds or microseconds since 1970, and HTTP's own form.
 */
#include "rules/tables.h"

#include "base/clock.h"

#include <time.h>

enum { LOCAL = 1, SECONDS = 0, MILLIS = 2, MICROS = 4 };

#define RESULT_MAX 1024

/* Dates that the configuration moves out of all calendars wrap around. */
static int64_t moved(int64_t date, const struct rules_arg *offset)
{
    return offset ? (int64_t)((uint64_t)date + (uint64_t)offset->i) : date;
}

/* Spells strftime's missing %N: nanoseconds, or the first digits of them ("%3N"). */
static bool expand_fraction(struct str format, uint64_t ns, struct buf *out)
{
    char digits[10];

    snprintf(digits, sizeof digits, "%09llu", (unsigned long long)(ns % 1000000000));
    for (size_t i = 0; i < format.len; i++) {
        size_t end = i + 1;
        uint64_t width = 9;

        if (format.ptr[i] != '%') {
            buf_put_char(out, format.ptr[i]);
            continue;
        }
        while (end < format.len && format.ptr[end] >= '0' && format.ptr[end] <= '9')
            end++;
        if (end < format.len && format.ptr[end] == 'N') {
            if (end > i + 1 && str_to_u64(str_make(format.ptr + i + 1, end - i - 1), &width) < 0)
                return false;
            buf_put(out, str_make(digits, width > 9 ? 9 : width));
            i = end;
            continue;
        }
        /* "%%" and everything else is strftime's. */
        buf_put_char(out, '%');
        if (i + 1 < format.len)
            buf_put_char(out, format.ptr[++i]);
    }
    return buf_put_char(out, '\0') == 0;
}

static bool conv_strftime(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    const struct rules_arg *offset = arg_at(&v->args, 1);
    int64_t per_second = v->def->data & MICROS ? 1000000 : v->def->data & MILLIS ? 1000 : 1;
    int64_t fraction = s->u.i % per_second;
    time_t when = per_second == 1 ? s->u.i & 0x007fffffffffffffLL : s->u.i / per_second;
    char format_mem[RESULT_MAX];
    struct buf format = {format_mem, sizeof format_mem, 0, 0};
    char *out = arena_alloc(ctx->arena, RESULT_MAX);
    struct tm tm;
    size_t n;

    when = moved(when, offset);
    if (fraction < 0)
        fraction = 0;
    if (!out || !(v->def->data & LOCAL ? localtime_r(&when, &tm) : gmtime_r(&when, &tm)))
        return false;
    if (per_second > 1) {
        if (!expand_fraction(v->args.v[0].s,
                             (uint64_t)fraction * (uint64_t)(1000000000 / per_second), &format))
            return false;
    } else {
        if (buf_put(&format, v->args.v[0].s) < 0 || buf_put_char(&format, '\0') < 0)
            return false;
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    n = strftime(out, RESULT_MAX, format_mem, &tm);
#pragma GCC diagnostic pop
    return value_str(s, str_make(out, n));
}

static int check_unit(struct rules_compiler *c, struct conv_call *v, char why[RULES_WHY_BYTES])
{
    struct rules_arg *a = v->args.count > 1 ? &v->args.v[1] : NULL;

    if (!a)
        return 0;
    a->i = str_eq(a->s, STR("s"))    ? 1
           : str_eq(a->s, STR("ms")) ? 1000
           : str_eq(a->s, STR("us")) ? 1000000
                                     : 0;
    if (!a->i) {
        snprintf(why, RULES_WHY_BYTES, "expects 's', 'ms' or 'us', got '%s'", a->s.ptr);
        return SP_EINVAL;
    }
    return 0;
}

static bool conv_http_date(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    const struct rules_arg *offset = arg_at(&v->args, 0), *unit = arg_at(&v->args, 1);
    int64_t per_second = unit ? unit->i : 1;
    int64_t value = moved(s->u.i, offset), seconds = value / per_second;
    char *out = arena_alloc(ctx->arena, 64);
    char date[CLOCK_HTTP_DATE_BYTES];

    /* clock_http_date counts microseconds in 64 bits. */
    if (!out || seconds < 0 || seconds > (int64_t)(UINT64_MAX / 1000000))
        return false;
    clock_http_date((uint64_t)seconds * 1000000, date);
    if (per_second == 1) {
        memcpy(out, date, 29);
        return value_str(s, str_make(out, 29));
    }
    /* "…:37.123 GMT" */
    return value_str(s, str_make(out, (size_t)snprintf(out, 64, "%.25s.%lld GMT", date,
                                                       (long long)(value % per_second))));
}

static bool conv_date(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    int64_t seconds;

    return clock_parse_http_date(s->u.s, &seconds) == 0 && value_int(s, seconds);
}

#define FORMAT "s?i", "<format>[,<offset>]", VALUE_INT, VALUE_STR, conv_strftime

static const struct conv_def rows[] = {
    {"ltime", FORMAT, SECONDS | LOCAL, .help = "local time by strftime", .needs = NEEDS_VARYING},
    {"utime", FORMAT, SECONDS, .help = "UTC by strftime"},
    {"ms_ltime", FORMAT, MILLIS | LOCAL,
     .help = "local time of milliseconds; %3N gives their digits", .needs = NEEDS_VARYING},
    {"ms_utime", FORMAT, MILLIS, .help = "UTC of milliseconds"},
    {"us_ltime", FORMAT, MICROS | LOCAL,
     .help = "local time of microseconds; %6N gives their digits", .needs = NEEDS_VARYING},
    {"us_utime", FORMAT, MICROS, .help = "UTC of microseconds"},
    {"http_date", "?is", "[<offset>[,<unit>]]", VALUE_INT, VALUE_STR, conv_http_date, 0,
     .help = "date as in HTTP fields", .check = check_unit},
    {"date", NULL, NULL, VALUE_STR, VALUE_INT, conv_date, 0,
     .help = "seconds since 1970 of a date in an HTTP field"},
};

const struct conv_table conv_time_table = TABLE_OF(rows);
