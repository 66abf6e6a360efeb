#include "rules/value.h"

#include <arpa/inet.h>

const char *value_type_name(enum value_type type)
{
    static const char *const names[] = {
        [VALUE_ANY] = "any",       [VALUE_BOOL] = "boolean", [VALUE_INT] = "integer",
        [VALUE_ADDR] = "address",  [VALUE_STR] = "string",   [VALUE_BIN] = "binary",
        [VALUE_METHOD] = "method", [VALUE_SAME] = "same",
    };

    return names[type];
}

bool value_can_cast(enum value_type from, enum value_type to)
{
#define TO(t) (1u << VALUE_##t)
    static const unsigned casts[] = {
        [VALUE_ANY] = ~0u,
        [VALUE_BOOL] = TO(ANY) | TO(BOOL) | TO(INT) | TO(STR) | TO(BIN),
        [VALUE_INT] = TO(ANY) | TO(BOOL) | TO(INT) | TO(ADDR) | TO(STR) | TO(BIN),
        [VALUE_ADDR] = TO(ANY) | TO(ADDR) | TO(STR) | TO(BIN),
        [VALUE_STR] = TO(ANY) | TO(BOOL) | TO(INT) | TO(ADDR) | TO(STR) | TO(BIN) | TO(METHOD),
        [VALUE_BIN] = TO(ANY) | TO(STR) | TO(BIN) | TO(METHOD),
        [VALUE_METHOD] = TO(ANY) | TO(STR) | TO(BIN) | TO(METHOD),
        [VALUE_SAME] = 0,
    };
#undef TO

    return casts[from] >> to & 1;
}

int64_t value_read_int(struct str s, size_t *used)
{
    size_t i = 0;
    bool negative = false;
    int64_t value = 0;

    if (s.len && (s.ptr[0] == '-' || s.ptr[0] == '+')) {
        negative = s.ptr[0] == '-';
        i = 1;
    }
    for (; i < s.len && s.ptr[i] >= '0' && s.ptr[i] <= '9'; i++) {
        int digit = s.ptr[i] - '0';

        if (negative) {
            if (__builtin_mul_overflow(value, 10, &value) ||
                __builtin_sub_overflow(value, digit, &value))
                value = INT64_MIN;
        } else if (__builtin_mul_overflow(value, 10, &value) ||
                   __builtin_add_overflow(value, digit, &value)) {
            value = INT64_MAX;
        }
        if (value == INT64_MIN || value == INT64_MAX) {
            while (i < s.len && s.ptr[i] >= '0' && s.ptr[i] <= '9')
                i++;
            break;
        }
    }
    if (used)
        *used = i;
    return value;
}

struct addr value_addr4(const uint8_t v4[4])
{
    struct addr a;

    memset(&a, 0, sizeof a);
    a.len = sizeof a.u.in;
    a.u.in.sin_family = AF_INET;
    memcpy(&a.u.in.sin_addr, v4, 4);
    return a;
}

struct addr value_addr6(const uint8_t v6[16])
{
    struct addr a;

    memset(&a, 0, sizeof a);
    a.len = sizeof a.u.in6;
    a.u.in6.sin6_family = AF_INET6;
    memcpy(&a.u.in6.sin6_addr, v6, 16);
    return a;
}

bool value_parse_addr(struct str s, struct addr *out)
{
    char text[INET6_ADDRSTRLEN];
    uint8_t bytes[16];

    if (!s.len || s.len >= sizeof text)
        return false;
    memcpy(text, s.ptr, s.len);
    text[s.len] = '\0';
    if (inet_pton(AF_INET, text, bytes) == 1)
        *out = value_addr4(bytes);
    else if (inet_pton(AF_INET6, text, bytes) == 1)
        *out = value_addr6(bytes);
    else
        return false;
    return true;
}

size_t value_addr_bytes(const struct addr *a, const uint8_t **bytes)
{
    switch (a->u.sa.sa_family) {
    case AF_INET:
        *bytes = (const uint8_t *)&a->u.in.sin_addr;
        return 4;
    case AF_INET6:
        *bytes = (const uint8_t *)&a->u.in6.sin6_addr;
        return 16;
    default:
        return 0;
    }
}

bool value_v6_to_v4(const uint8_t v6[16], uint8_t v4[4])
{
    static const uint8_t zero[12];
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

    if (memcmp(v6, mapped, 12) == 0 || memcmp(v6, zero, 12) == 0) {
        memcpy(v4, v6 + 12, 4);
        return true;
    }
    if (v6[0] == 0x20 && v6[1] == 0x02) {
        memcpy(v4, v6 + 2, 4);
        return true;
    }
    return false;
}

/* A text as an address: an IPv4 address may be followed by a port or whatever else. */
static bool read_addr(struct str s, struct addr *out)
{
    size_t n = 0;

    while (n < s.len && ((s.ptr[n] >= '0' && s.ptr[n] <= '9') || s.ptr[n] == '.'))
        n++;
    if (n && value_parse_addr(str_make(s.ptr, n), out))
        return true;
    return value_parse_addr(s, out);
}

static bool put_text(struct sample *s, const char *text, size_t len, struct arena *arena)
{
    struct str copy = arena_str(arena, str_make(text, len));

    return copy.ptr && value_str(s, copy);
}

static bool int_to_str(struct sample *s, int64_t value, struct arena *arena)
{
    char text[24];
    size_t n = 0;
    uint64_t magnitude = value < 0 ? (uint64_t)0 - (uint64_t)value : (uint64_t)value;

    if (value < 0)
        text[n++] = '-';
    n += str_put_u64(text + n, magnitude);
    return put_text(s, text, n, arena);
}

static bool to_str(struct sample *s, struct arena *arena)
{
    char text[ADDR_TEXT_BYTES];
    const uint8_t *bytes;

    switch (s->type) {
    case SAMPLE_BOOL:
        return value_str(s, s->u.b ? STR("1") : STR("0"));
    case SAMPLE_INT:
        return int_to_str(s, s->u.i, arena);
    case SAMPLE_ADDR:
        if (!value_addr_bytes(&s->u.a, &bytes))
            return false;
        return put_text(s, text, addr_host_text(&s->u.a, text), arena);
    case SAMPLE_BIN:
        s->u.s.len = str_chr(s->u.s, '\0');
        s->type = SAMPLE_STR;
        return true;
    default:
        return true;
    }
}

static bool to_bin(struct sample *s, struct arena *arena)
{
    uint8_t big[8];
    const uint8_t *bytes = big;
    size_t n = 8;
    uint64_t value;
    struct str copy;

    switch (s->type) {
    case SAMPLE_BOOL:
    case SAMPLE_INT:
        value = s->type == SAMPLE_BOOL ? s->u.b : (uint64_t)s->u.i;
        for (int i = 0; i < 8; i++)
            big[i] = (uint8_t)(value >> (56 - 8 * i));
        break;
    case SAMPLE_ADDR:
        n = value_addr_bytes(&s->u.a, &bytes);
        if (!n)
            return false;
        break;
    default:
        s->type = SAMPLE_BIN;
        return true;
    }
    copy = arena_str(arena, str_make((const char *)bytes, n));
    return copy.ptr && value_bin(s, copy);
}

static bool to_int(struct sample *s)
{
    uint32_t v4;

    switch (s->type) {
    case SAMPLE_BOOL:
        return value_int(s, s->u.b);
    case SAMPLE_INT:
        return true;
    case SAMPLE_STR:
        return s->u.s.len && value_int(s, value_read_int(s->u.s, NULL));
    case SAMPLE_ADDR:
        if (s->u.a.u.sa.sa_family != AF_INET)
            return false;
        v4 = ntohl(s->u.a.u.in.sin_addr.s_addr);
        return value_int(s, v4);
    default:
        return false;
    }
}

bool value_cast(struct sample *s, enum value_type to, struct arena *arena)
{
    struct addr a;
    uint8_t v4[4];

    switch (to) {
    case VALUE_BOOL:
        return to_int(s) && value_bool(s, s->u.i != 0);
    case VALUE_INT:
        return to_int(s);
    case VALUE_ADDR:
        if (s->type == SAMPLE_ADDR)
            return true;
        if (s->type == SAMPLE_INT) {
            for (int i = 0; i < 4; i++)
                v4[i] = (uint8_t)((uint64_t)s->u.i >> (24 - 8 * i));
            a = value_addr4(v4);
        } else if (s->type != SAMPLE_STR || !read_addr(s->u.s, &a)) {
            return false;
        }
        s->type = SAMPLE_ADDR;
        s->u.a = a;
        return true;
    case VALUE_STR:
        return to_str(s, arena);
    case VALUE_METHOD:
        return (s->type == SAMPLE_STR || s->type == SAMPLE_BIN) && to_str(s, arena);
    case VALUE_BIN:
        return to_bin(s, arena);
    default:
        return true;
    }
}
