/*
 * The inner loops of the HTTP/1 parser: find the first byte of a kind.
 *
 * Sixteen bytes a step with SSE2, which every x86-64 has; a table look-up a byte elsewhere. Nothing
 * outside [base, end) is read: the last, partial step reads the sixteen bytes that end at `end`
 * when there are as many behind `base`, and goes byte by byte otherwise.
 */
#ifndef SP_HTTP_H1_SCAN_H
#define SP_HTTP_H1_SCAN_H

#include "http/http_chars.h"

#include <stddef.h>

#define H1_DEFINE_PLAIN_SCAN(name, classes)                        \
    static inline const char *name(const char *p, const char *end) \
    {                                                              \
        while (p < end && http_char_is(*p, classes))               \
            p++;                                                   \
        return p;                                                  \
    }

#ifdef __SSE2__
#include <emmintrin.h>

static inline __m128i h1_load16(const char *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/* Bytes that are at most `limit`, unsigned. */
static inline __m128i h1_at_most16(__m128i v, char limit)
{
    return _mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(limit)), v);
}

/* A bit for each byte that ends a field value: control bytes except HTAB, and DEL. */
static inline unsigned h1_value_end16(__m128i v)
{
    __m128i control =
        _mm_andnot_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('\t')), h1_at_most16(v, 0x1f));

    return (unsigned)_mm_movemask_epi8(
        _mm_or_si128(control, _mm_cmpeq_epi8(v, _mm_set1_epi8(0x7f))));
}

/* A bit for each byte that ends a request target: everything that is not VCHAR, and '#'. */
static inline unsigned h1_target_end16(__m128i v)
{
    /* 0x21..0x7e become 0..0x5d. */
    __m128i shifted = _mm_sub_epi8(v, _mm_set1_epi8(0x21));
    unsigned visible = (unsigned)_mm_movemask_epi8(h1_at_most16(shifted, 0x5d));

    return (visible ^ 0xffffu) | (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_set1_epi8('#')));
}

/* A bit for each byte that is not a letter, a digit, '-' or '_': common names hold no others. */
static inline unsigned h1_name_end16(__m128i v)
{
    __m128i lower = _mm_or_si128(v, _mm_set1_epi8(0x20));
    __m128i alpha = h1_at_most16(_mm_sub_epi8(lower, _mm_set1_epi8('a')), 25);
    __m128i digit = h1_at_most16(_mm_sub_epi8(v, _mm_set1_epi8('0')), 9);
    __m128i mark =
        _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('-')), _mm_cmpeq_epi8(v, _mm_set1_epi8('_')));

    return (unsigned)_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(alpha, digit), mark)) ^ 0xffffu;
}

/* `ends16` gives the mask of stop bytes; `classes` is the same set as the complement of a class. */
#define H1_DEFINE_SCAN(name, ends16, classes)                                        \
    H1_DEFINE_PLAIN_SCAN(name##_plain, classes)                                      \
    static inline const char *name(const char *p, const char *end, const char *base) \
    {                                                                                \
        while (end - p >= 16) {                                                      \
            unsigned stops = ends16(h1_load16(p));                                   \
                                                                                     \
            if (stops)                                                               \
                return p + __builtin_ctz(stops);                                     \
            p += 16;                                                                 \
        }                                                                            \
        if (p == end)                                                                \
            return end;                                                              \
        if (end - base >= 16) {                                                      \
            unsigned stops = ends16(h1_load16(end - 16)) >> (16 - (end - p));        \
                                                                                     \
            return stops ? p + __builtin_ctz(stops) : end;                           \
        }                                                                            \
        return name##_plain(p, end);                                                 \
    }

#else

#define H1_DEFINE_SCAN(name, ends16, classes)                                        \
    H1_DEFINE_PLAIN_SCAN(name##_plain, classes)                                      \
    static inline const char *name(const char *p, const char *end, const char *base) \
    {                                                                                \
        (void)base;                                                                  \
        return name##_plain(p, end);                                                 \
    }

#endif

/* The first byte at or after `p` that cannot stand in a field value, or `end`. */
H1_DEFINE_SCAN(h1_scan_value, h1_value_end16, HTTP_CHAR_VALUE)

/* The first byte that cannot stand in a request target, or `end`. */
H1_DEFINE_SCAN(h1_scan_target, h1_target_end16, HTTP_CHAR_TARGET)

/* The first byte that may not be part of a name, or `end`. It stops at rare token bytes too. */
H1_DEFINE_SCAN(h1_scan_common_name, h1_name_end16, HTTP_CHAR_COMMON_NAME)

/* The first byte that is not a token character, or `end`. */
static inline const char *h1_scan_name(const char *p, const char *end, const char *base)
{
    p = h1_scan_common_name(p, end, base);
    if (p < end && *p == ':')
        return p;
    while (p < end && http_char_is(*p, HTTP_CHAR_TOKEN))
        p++;
    return p;
}

static inline bool h1_has_empty_line_plain(const char *p, const char *end)
{
    for (; end - p >= 2; p++) {
        if (p[0] != '\n')
            continue;
        if (p[1] == '\n' || (p[1] == '\r' && end - p >= 3 && p[2] == '\n'))
            return true;
    }
    return false;
}

/* True when [p, end) has an empty line: LF, an optional CR, LF. */
static inline bool h1_has_empty_line(const char *p, const char *end)
{
#ifdef __SSE2__
    const __m128i lf = _mm_set1_epi8('\n');
    const __m128i cr = _mm_set1_epi8('\r');

    while (end - p >= 18) {
        __m128i next = h1_load16(p + 1);
        __m128i break_here = _mm_cmpeq_epi8(h1_load16(p), lf);
        __m128i break_next = _mm_or_si128(
            _mm_cmpeq_epi8(next, lf),
            _mm_and_si128(_mm_cmpeq_epi8(next, cr), _mm_cmpeq_epi8(h1_load16(p + 2), lf)));

        if (_mm_movemask_epi8(_mm_and_si128(break_here, break_next)))
            return true;
        p += 16;
    }
#endif
    return h1_has_empty_line_plain(p, end);
}

#endif
