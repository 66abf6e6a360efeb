/*
 * Look-up of field names by a perfect hash, inline for the parser.
 */
#ifndef SP_HTTP_HTTP_NAMES_H
#define SP_HTTP_HTTP_NAMES_H

#include "http/http.h"

#include <string.h>

#define HTTP_FIELD_NAME_MAX 20 /* the longest known name, "sec-websocket-accept" */

struct http_field_name {
    char text[24]; /* lower case, padded so that 8-byte loads at any offset up to 16 are inside */
    uint8_t len;
};

extern const struct http_field_name http_field_names[HTTP_FIELD_ID_COUNT];
extern const uint8_t http_field_slots[128]; /* hash to enum http_field_id */

static inline uint64_t http_load64(const char *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint32_t http_load32(const char *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof v);
    return v;
}

/*
 * The id of a name that is known to be a token. Letters are folded by setting bit 5, which also
 * maps CR to '-': callers with unchecked names must look for control bytes themselves.
 */
static inline unsigned http_field_lookup(const char *p, size_t len)
{
    const uint64_t fold = 0x2020202020202020u;
    const struct http_field_name *known;
    unsigned id;

    if (len < 2 || len > HTTP_FIELD_NAME_MAX)
        return HTTP_FIELD_OTHER;
    id = http_field_slots[((unsigned)len + ((unsigned char)p[0] | 0x20u) * 10 +
                           ((unsigned char)p[len - 1] | 0x20u) * 53) &
                          127];
    known = &http_field_names[id];
    if (known->len != len)
        return HTTP_FIELD_OTHER;
    if (len >= 8) {
        uint64_t differ = ((http_load64(p) | fold) ^ http_load64(known->text)) |
                          ((http_load64(p + len - 8) | fold) ^ http_load64(known->text + len - 8));

        if (len > 16)
            differ |= (http_load64(p + 8) | fold) ^ http_load64(known->text + 8);
        return differ ? HTTP_FIELD_OTHER : id;
    }
    if (len >= 4) {
        uint32_t fold32 = (uint32_t)fold;
        uint32_t differ =
            ((http_load32(p) | fold32) ^ http_load32(known->text)) |
            ((http_load32(p + len - 4) | fold32) ^ http_load32(known->text + len - 4));

        return differ ? HTTP_FIELD_OTHER : id;
    }
    /* Known names this short have two bytes. */
    return (p[0] | 0x20) == known->text[0] && (p[1] | 0x20) == known->text[1] ? id
                                                                              : HTTP_FIELD_OTHER;
}

#endif
