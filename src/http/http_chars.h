/*
 * Character classes of RFC 9110 and RFC 3986, one table look-up each.
 */
#ifndef SP_HTTP_HTTP_CHARS_H
#define SP_HTTP_HTTP_CHARS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    HTTP_CHAR_TOKEN = 1 << 0,  /* tchar */
    HTTP_CHAR_VALUE = 1 << 1,  /* inside a field value: HTAB, SP, VCHAR, obs-text */
    HTTP_CHAR_TARGET = 1 << 2, /* VCHAR without '#' */
    HTTP_CHAR_HOST = 1 << 3,   /* reg-name: unreserved and sub-delims, without ',' and '%' */
    HTTP_CHAR_HEX = 1 << 4,
    HTTP_CHAR_DIGIT = 1 << 5,
    HTTP_CHAR_ALPHA = 1 << 6,
    HTTP_CHAR_COMMON_NAME =
        1 << 7, /* what nearly all field names are made of: letters, digits, '-', '_' */
};

extern const uint8_t http_char_class[256];

static inline bool http_char_is(char c, unsigned classes)
{
    return (http_char_class[(unsigned char)c] & classes) != 0;
}

/* The value of a hexadecimal digit; the byte must be of class HTTP_CHAR_HEX. */
static inline unsigned http_hex_value(char c)
{
    return ((unsigned char)c & 15) + ((unsigned char)c >> 6) * 9;
}

#endif
