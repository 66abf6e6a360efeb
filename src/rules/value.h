/*
 * Types of samples and the casts between them (HAProxy's sample cast matrix).
 */
#ifndef SP_RULES_VALUE_H
#define SP_RULES_VALUE_H

#include "rules/rules.h"

/* Types as the compiler sees them; at run time a method is a string and ANY has become something. */
enum value_type {
    VALUE_ANY, /* known at run time only (variables, json_query) */
    VALUE_BOOL,
    VALUE_INT,
    VALUE_ADDR,
    VALUE_STR,
    VALUE_BIN,
    VALUE_METHOD,
    VALUE_SAME, /* of a converter: what came in */
};

/* "string", "integer", … */
const char *value_type_name(enum value_type type);

/* Whether a cast exists at all; ANY casts to everything. */
bool value_can_cast(enum value_type from, enum value_type to);

/* Casts in place; text that has to be made is put into `arena`. False when this very value cannot be cast. */
bool value_cast(struct sample *s, enum value_type to, struct arena *arena);

/* The leading integer of a text ("12abc" is 12, "abc" is 0), saturating; *used is how far it went. */
int64_t value_read_int(struct str s, size_t *used);

/* A whole text as an address without port; "[::1]" is not accepted. */
bool value_parse_addr(struct str s, struct addr *out);

/* Host bytes of an IP address: 4 or 16, 0 for other families. */
size_t value_addr_bytes(const struct addr *a, const uint8_t **bytes);

/* The IPv4 address inside a mapped, compatible or 6to4 IPv6 address, as HAProxy sees it; false when there is none. */
bool value_v6_to_v4(const uint8_t v6[16], uint8_t v4[4]);

struct addr value_addr4(const uint8_t v4[4]);
struct addr value_addr6(const uint8_t v6[16]);

/* A string sample. */
static inline bool value_str(struct sample *out, struct str s)
{
    out->type = SAMPLE_STR;
    out->u.s = s;
    return true;
}

static inline bool value_bin(struct sample *out, struct str s)
{
    out->type = SAMPLE_BIN;
    out->u.s = s;
    return true;
}

static inline bool value_int(struct sample *out, int64_t i)
{
    out->type = SAMPLE_INT;
    out->u.i = i;
    return true;
}

static inline bool value_bool(struct sample *out, bool b)
{
    out->type = SAMPLE_BOOL;
    out->u.b = b;
    return true;
}

#endif
