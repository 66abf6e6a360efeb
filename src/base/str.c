#include "base/str.h"

#include "base/status.h"

#include <limits.h>

/* Longest word that str_distance measures; longer ones are equal or far apart. */
#define DISTANCE_MAX 127

#define TIME_LIMIT_US ((uint64_t)1 << 53)

static unsigned char lower(char c)
{
    unsigned char u = (unsigned char)c;

    return u >= 'A' && u <= 'Z' ? u | 0x20 : u;
}

size_t str_find(struct str hay, struct str needle)
{
    const char *at;

    if (needle.len == 0)
        return 0;
    if (needle.len > hay.len)
        return hay.len;
    at = memmem(hay.ptr, hay.len, needle.ptr, needle.len);
    return at ? (size_t)(at - hay.ptr) : hay.len;
}

size_t str_ifind(struct str hay, struct str needle)
{
    if (needle.len == 0)
        return 0;
    if (needle.len > hay.len)
        return hay.len;
    for (size_t at = 0; at <= hay.len - needle.len; at++) {
        if (lower(hay.ptr[at]) == lower(needle.ptr[0]) &&
            strncasecmp(hay.ptr + at, needle.ptr, needle.len) == 0)
            return at;
    }
    return hay.len;
}

/*
 * Reads leading digits into *value, saturating at UINT64_MAX (*overflow tells);
 * returns how many bytes were digits.
 */
static size_t scan_digits(struct str s, uint64_t *value, bool *overflow)
{
    size_t n = 0;

    *value = 0;
    *overflow = false;
    for (; n < s.len && s.ptr[n] >= '0' && s.ptr[n] <= '9'; n++) {
        if (__builtin_mul_overflow(*value, (uint64_t)10, value) ||
            __builtin_add_overflow(*value, (uint64_t)(s.ptr[n] - '0'), value))
            *overflow = true;
    }
    if (*overflow)
        *value = UINT64_MAX;
    return n;
}

int str_to_u64(struct str s, uint64_t *out)
{
    uint64_t value;
    bool overflow;
    size_t n = scan_digits(s, &value, &overflow);

    if (n == 0 || n != s.len || overflow)
        return SP_EINVAL;
    *out = value;
    return 0;
}

int str_to_i64(struct str s, int64_t *out)
{
    bool negative = s.len && s.ptr[0] == '-';
    uint64_t magnitude;

    if (negative)
        s = str_from(s, 1);
    if (str_to_u64(s, &magnitude) != 0 || magnitude > (uint64_t)INT64_MAX + negative)
        return SP_EINVAL;
    /* Two's complement: the most negative value has no positive counterpart. */
    *out = (int64_t)(negative ? 0 - magnitude : magnitude);
    return 0;
}

int str_to_time_us(struct str s, uint64_t default_unit_us, int64_t *out_us)
{
    static const struct {
        const char *name;
        uint64_t us;
    } units[] = {
        {"us", 1},       {"ms", 1000},      {"s", 1000000},
        {"m", 60000000}, {"h", 3600000000}, {"d", 86400000000},
    };
    uint64_t value, unit_us = 0;
    bool overflow;
    size_t digits = scan_digits(s, &value, &overflow);
    struct str unit = str_from(s, digits);

    if (digits == 0)
        return SP_EINVAL;
    if (unit.len == 0)
        unit_us = default_unit_us;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]) && unit.len; i++) {
        if (str_eq(unit, str_of(units[i].name)))
            unit_us = units[i].us;
    }
    if (unit_us == 0)
        return SP_EINVAL;
    if (overflow || __builtin_mul_overflow(value, unit_us, &value) || value > TIME_LIMIT_US)
        return SP_ETOOBIG;
    *out_us = (int64_t)value;
    return 0;
}

int str_to_size(struct str s, uint64_t *out)
{
    uint64_t value;
    bool overflow;
    size_t digits = scan_digits(s, &value, &overflow);
    struct str unit = str_from(s, digits);
    unsigned shift = 0;

    if (digits == 0 || unit.len > 1)
        return SP_EINVAL;
    if (unit.len == 1) {
        switch (lower(unit.ptr[0])) {
        case 'k':
            shift = 10;
            break;
        case 'm':
            shift = 20;
            break;
        case 'g':
            shift = 30;
            break;
        default:
            return SP_EINVAL;
        }
    }
    if (overflow || value > UINT64_MAX >> shift)
        return SP_ETOOBIG;
    *out = value << shift;
    return 0;
}

size_t str_put_u64(char *out, uint64_t value)
{
    char digits[20];
    size_t n = sizeof(digits);

    do {
        digits[--n] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    memcpy(out, digits + n, sizeof(digits) - n);
    return sizeof(digits) - n;
}

/*
 * Optimal string alignment (Damerau-Levenshtein without repeated edits of one
 * place), three rows of the dynamic programme.
 */
unsigned str_distance(struct str a, struct str b, unsigned limit)
{
    unsigned storage[3][DISTANCE_MAX + 1];
    unsigned *before = storage[0], *previous = storage[1], *row = storage[2];

    if (limit == UINT_MAX)
        limit--;
    if (str_eq(a, b))
        return 0;
    if ((a.len > b.len ? a.len - b.len : b.len - a.len) > limit || a.len > DISTANCE_MAX ||
        b.len > DISTANCE_MAX)
        return limit + 1;
    for (size_t j = 0; j <= b.len; j++)
        previous[j] = (unsigned)j;
    for (size_t i = 1; i <= a.len; i++) {
        unsigned *recycled = before;
        unsigned least = row[0] = (unsigned)i;

        for (size_t j = 1; j <= b.len; j++) {
            unsigned cost = previous[j - 1] + (a.ptr[i - 1] != b.ptr[j - 1]);

            if (previous[j] + 1 < cost)
                cost = previous[j] + 1;
            if (row[j - 1] + 1 < cost)
                cost = row[j - 1] + 1;
            if (i > 1 && j > 1 && a.ptr[i - 1] == b.ptr[j - 2] && a.ptr[i - 2] == b.ptr[j - 1] &&
                before[j - 2] + 1 < cost)
                cost = before[j - 2] + 1;
            row[j] = cost;
            if (cost < least)
                least = cost;
        }
        /* A swap reaches back two rows, so one row above the limit proves nothing yet. */
        if (least > limit + 1)
            return limit + 1;
        before = previous;
        previous = row;
        row = recycled;
    }
    return previous[b.len] > limit ? limit + 1 : previous[b.len];
}

const char *str_nearest(struct str word, const char *const *candidates, size_t n)
{
    unsigned limit = word.len < 6 ? 1 : (unsigned)(word.len / 3);
    unsigned best_score = UINT_MAX;
    const char *best = NULL;

    for (size_t i = 0; i < n; i++) {
        struct str candidate = str_of(candidates[i]);
        unsigned distance, score;

        if (word.len == 0 || candidate.len == 0)
            continue;
        if (str_ieq(word, candidate))
            return candidates[i];
        distance = str_distance(word, candidate, limit);
        /* A word of which every letter would change is another word. */
        if (distance > limit || distance >= word.len || distance >= candidate.len)
            continue;
        /* Typing errors seldom hit the first letter: it decides between equals. */
        score = distance * 2 + (word.ptr[0] != candidate.ptr[0]);
        if (score < best_score) {
            best_score = score;
            best = candidates[i];
        }
    }
    return best;
}
