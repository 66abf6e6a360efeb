#include "http/http_chars.h"

/* May stand anywhere. */
#define PLAIN (HTTP_CHAR_TOKEN | HTTP_CHAR_VALUE | HTTP_CHAR_TARGET | HTTP_CHAR_HOST)
#define COMMON (PLAIN | HTTP_CHAR_COMMON_NAME)
/* Visible bytes that are not token characters. */
#define DELIMITER (HTTP_CHAR_VALUE | HTTP_CHAR_TARGET)

const uint8_t http_char_class[256] = {
    ['\t'] = HTTP_CHAR_VALUE,
    [' '] = HTTP_CHAR_VALUE,
    ['!'] = PLAIN,
    ['"'] = DELIMITER,
    ['#'] = HTTP_CHAR_TOKEN | HTTP_CHAR_VALUE,
    ['$'] = PLAIN,
    ['%'] = HTTP_CHAR_TOKEN | DELIMITER,
    ['&'] = PLAIN,
    ['\''] = PLAIN,
    ['('] = DELIMITER | HTTP_CHAR_HOST,
    [')'] = DELIMITER | HTTP_CHAR_HOST,
    ['*'] = PLAIN,
    ['+'] = PLAIN,
    [','] = DELIMITER,
    ['-'] = COMMON,
    ['.'] = PLAIN,
    ['/'] = DELIMITER,
    ['0' ... '9'] = COMMON | HTTP_CHAR_HEX | HTTP_CHAR_DIGIT,
    [':'] = DELIMITER,
    [';'] = DELIMITER | HTTP_CHAR_HOST,
    ['<'] = DELIMITER,
    ['='] = DELIMITER | HTTP_CHAR_HOST,
    ['>'] = DELIMITER,
    ['?'] = DELIMITER,
    ['@'] = DELIMITER,
    ['A' ... 'F'] = COMMON | HTTP_CHAR_HEX | HTTP_CHAR_ALPHA,
    ['G' ... 'Z'] = COMMON | HTTP_CHAR_ALPHA,
    ['['] = DELIMITER,
    ['\\'] = DELIMITER,
    [']'] = DELIMITER,
    ['^'] = HTTP_CHAR_TOKEN | DELIMITER,
    ['_'] = COMMON,
    ['`'] = HTTP_CHAR_TOKEN | DELIMITER,
    ['a' ... 'f'] = COMMON | HTTP_CHAR_HEX | HTTP_CHAR_ALPHA,
    ['g' ... 'z'] = COMMON | HTTP_CHAR_ALPHA,
    ['{'] = DELIMITER,
    ['|'] = HTTP_CHAR_TOKEN | DELIMITER,
    ['}'] = DELIMITER,
    ['~'] = PLAIN,
    [0x80 ... 0xff] = HTTP_CHAR_VALUE,
};
