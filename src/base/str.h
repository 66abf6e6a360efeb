/*
 * Slices: a pointer and a length, not NUL-terminated, not owned.
 */
#ifndef SP_BASE_STR_H
#define SP_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

struct str {
    const char *ptr;
    size_t len;
};

#define STR(literal) ((struct str){(literal), sizeof(literal) - 1})
#define STR_NULL ((struct str){NULL, 0})

/* For printf("%.*s", STR_FMT(s)). */
#define STR_FMT(s) (int)(s).len, (s).ptr

static inline struct str str_make(const char *ptr, size_t len)
{
    return (struct str){ptr, len};
}

/* A NUL-terminated string (NULL gives an empty slice). */
static inline struct str str_of(const char *cstr)
{
    return (struct str){cstr, cstr ? strlen(cstr) : 0};
}

static inline bool str_eq(struct str a, struct str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* ASCII case-insensitive comparison; the locale is always "C". */
static inline bool str_ieq(struct str a, struct str b)
{
    return a.len == b.len && (a.len == 0 || strncasecmp(a.ptr, b.ptr, a.len) == 0);
}

static inline bool str_starts(struct str s, struct str prefix)
{
    return s.len >= prefix.len && (prefix.len == 0 || memcmp(s.ptr, prefix.ptr, prefix.len) == 0);
}

static inline bool str_istarts(struct str s, struct str prefix)
{
    return s.len >= prefix.len &&
           (prefix.len == 0 || strncasecmp(s.ptr, prefix.ptr, prefix.len) == 0);
}

static inline bool str_ends(struct str s, struct str suffix)
{
    return s.len >= suffix.len &&
           (suffix.len == 0 || memcmp(s.ptr + s.len - suffix.len, suffix.ptr, suffix.len) == 0);
}

/* The slice from byte `from` on; empty when `from` is past the end. */
static inline struct str str_from(struct str s, size_t from)
{
    if (from > s.len)
        from = s.len;
    /* No arithmetic on the NULL of an empty slice. */
    return from ? (struct str){s.ptr + from, s.len - from} : s;
}

/* Offset of the first byte `c`, or s.len when there is none. */
static inline size_t str_chr(struct str s, char c)
{
    const char *at = s.len ? memchr(s.ptr, c, s.len) : NULL;

    return at ? (size_t)(at - s.ptr) : s.len;
}

/* Without leading and trailing spaces and tabs. */
static inline struct str str_trim(struct str s)
{
    while (s.len && (s.ptr[0] == ' ' || s.ptr[0] == '\t')) {
        s.ptr++;
        s.len--;
    }
    while (s.len && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t'))
        s.len--;
    return s;
}

/* Offset of the first occurrence of `needle` (memmem), or hay.len when there is none. */
size_t str_find(struct str hay, struct str needle);
size_t str_ifind(struct str hay, struct str needle);

/*
 * Parses a whole slice as a decimal integer; leading '-' accepted by the
 * signed form. SP_EINVAL: empty, a foreign byte, or overflow.
 */
int str_to_u64(struct str s, uint64_t *out);
int str_to_i64(struct str s, int64_t *out);

/*
 * HAProxy's time syntax: digits followed by us, ms, s, m, h or d; a bare number
 * counts units of `default_unit_us` microseconds. SP_EINVAL on anything else,
 * SP_ETOOBIG on overflow of 2^53 microseconds.
 */
int str_to_time_us(struct str s, uint64_t default_unit_us, int64_t *out_us);

/*
 * HAProxy's size syntax: digits followed by nothing, k, m or g in either case
 * (powers of 1024). SP_EINVAL on anything else, SP_ETOOBIG beyond 64 bits.
 */
int str_to_size(struct str s, uint64_t *out);

/* Writes `value` in decimal without a terminator; returns the length (at most 20). */
size_t str_put_u64(char *out, uint64_t value);

/*
 * Edit distance with adjacent swaps, bounded: anything above `limit` answers
 * limit + 1, and so do slices of more than 127 bytes that are not equal.
 */
unsigned str_distance(struct str a, struct str b, unsigned limit);

/*
 * The candidate nearest to `word`, or NULL when none is near enough to be a
 * likely typing error (distance at most a third of the word's length, at least 1).
 * A candidate that differs in case alone always wins. NULL candidates are skipped.
 */
const char *str_nearest(struct str word, const char *const *candidates, size_t n);

#endif
