/*
 * Converters between bytes and their printable forms.
 */
#include "rules/tables.h"

static bool room_for(struct rules_ctx *ctx, size_t bytes, struct buf *b)
{
    if (bytes > UINT32_MAX)
        return false;
    *b = (struct buf){arena_alloc(ctx->arena, bytes + 1), (uint32_t)bytes, 0, 0};
    return b->mem;
}

static bool conv_base64(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    struct buf b;
    int n;

    if (!room_for(ctx, 4 * ((s->u.s.len + 2) / 3), &b))
        return false;
    n = hash_base64_encode(s->u.s, b.mem, b.size);
    if (n < 0)
        return false;
    /* RFC 4648 section 5: other characters for 62 and 63, no padding. */
    if (v->def->data) {
        for (int i = 0; i < n; i++)
            b.mem[i] = b.mem[i] == '+' ? '-' : b.mem[i] == '/' ? '_' : b.mem[i];
        while (n && b.mem[n - 1] == '=')
            n--;
    }
    return value_str(s, str_make(b.mem, (size_t)n));
}

static bool conv_b64dec(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    struct str in = s->u.s;
    struct buf b;
    int n;

    if (v->def->data) {
        char *copy = arena_alloc(ctx->arena, in.len + 4);
        size_t len = in.len;

        if (!copy)
            return false;
        for (size_t i = 0; i < in.len; i++) {
            if (in.ptr[i] == '+' || in.ptr[i] == '/')
                return false;
            copy[i] = in.ptr[i] == '-' ? '+' : in.ptr[i] == '_' ? '/' : in.ptr[i];
        }
        while (len % 4)
            copy[len++] = '=';
        in = str_make(copy, len);
    }
    if (!room_for(ctx, 3 * ((in.len + 3) / 4), &b))
        return false;
    n = hash_base64_decode(in, b.mem, b.size);
    return n >= 0 && value_bin(s, str_make(b.mem, (size_t)n));
}

static void put_hex(struct buf *b, uint8_t byte)
{
    static const char digits[] = "0123456789ABCDEF";

    buf_put_char(b, digits[byte >> 4]);
    buf_put_char(b, digits[byte & 15]);
}

static bool conv_hex(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    struct buf b;

    if (!room_for(ctx, s->u.s.len * 2, &b))
        return false;
    for (size_t i = 0; i < s->u.s.len; i++)
        put_hex(&b, (uint8_t)s->u.s.ptr[i]);
    return value_str(s, buf_str(&b));
}

static bool conv_base2(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    struct buf b;

    if (!room_for(ctx, s->u.s.len * 8, &b))
        return false;
    for (size_t i = 0; i < s->u.s.len; i++)
        for (int bit = 7; bit >= 0; bit--)
            buf_put_char(&b, (uint8_t)s->u.s.ptr[i] >> bit & 1 ? '1' : '0');
    return value_str(s, buf_str(&b));
}

static bool conv_hex2i(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    uint64_t value = 0;

    for (size_t i = 0; i < s->u.s.len; i++) {
        char ch = s->u.s.ptr[i];
        int digit = ch >= '0' && ch <= '9'                     ? ch - '0'
                    : (ch | 0x20) >= 'a' && (ch | 0x20) <= 'f' ? (ch | 0x20) - 87
                                                               : -1;

        if (digit < 0)
            return false;
        value = value << 4 | (uint64_t)digit;
    }
    return value_int(s, (int64_t)value);
}

static bool conv_htonl(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    char *out = arena_alloc(ctx->arena, 4);

    if (!out)
        return false;
    for (int i = 0; i < 4; i++)
        out[i] = (char)((uint64_t)s->u.i >> (24 - 8 * i));
    return value_bin(s, str_make(out, 4));
}

/* --- numbers out of chunks of bytes -------------------------------------------------------- */

enum { BIG, LITTLE };

static int check_2dec(struct rules_compiler *c, struct conv_call *v, char why[RULES_WHY_BYTES])
{
    const struct rules_arg *truncate = arg_at(&v->args, 2);

    if (v->args.v[1].i < 1 || v->args.v[1].i > 8) {
        snprintf(why, RULES_WHY_BYTES, "the chunk size must be 1 to 8");
        return SP_EINVAL;
    }
    if (truncate && truncate->i != 0 && truncate->i != 1) {
        snprintf(why, RULES_WHY_BYTES, "the truncate flag must be 0 or 1");
        return SP_EINVAL;
    }
    return 0;
}

/* How many bytes make whole chunks, when the rest is to be left out. */
static size_t usable(const struct conv_call *v, size_t len, size_t chunk)
{
    const struct rules_arg *truncate = arg_at(&v->args, 2);

    return truncate && truncate->i && chunk ? len - len % chunk : len;
}

static bool conv_2dec(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    struct str separator = v->args.v[0].s;
    size_t chunk = (size_t)v->args.v[1].i, len = usable(v, s->u.s.len, chunk);
    struct buf b;

    if (!room_for(ctx, (len / chunk + 1) * (20 + separator.len), &b))
        return false;
    for (size_t at = 0; at < len; at += chunk) {
        uint64_t value = 0;

        for (size_t i = 0; i < chunk && at + i < s->u.s.len; i++) {
            uint64_t byte = (uint8_t)s->u.s.ptr[at + i];

            value = v->def->data == BIG ? value << 8 | byte : value | byte << 8 * i;
        }
        if (at)
            buf_put(&b, separator);
        buf_put_u64(&b, value);
    }
    return value_str(s, buf_str(&b));
}

static int check_be2hex(struct rules_compiler *c, struct conv_call *v, char why[RULES_WHY_BYTES])
{
    const struct rules_arg *chunk = arg_at(&v->args, 1), *truncate = arg_at(&v->args, 2);
    bool needs_chunk = (v->args.count && v->args.v[0].s.len) || (truncate && truncate->i);

    if (needs_chunk && (!chunk || chunk->i <= 0)) {
        snprintf(why, RULES_WHY_BYTES, "the chunk size must be positive");
        return SP_EINVAL;
    }
    if (truncate && truncate->i != 0 && truncate->i != 1) {
        snprintf(why, RULES_WHY_BYTES, "the truncate flag must be 0 or 1");
        return SP_EINVAL;
    }
    return 0;
}

static bool conv_be2hex(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    const struct rules_arg *sep = arg_at(&v->args, 0), *size = arg_at(&v->args, 1);
    struct str separator = sep ? sep->s : STR("");
    size_t chunk = size && size->i > 0 ? (size_t)size->i : 0, len = usable(v, s->u.s.len, chunk);
    struct buf b;

    if (!room_for(ctx, len * (2 + separator.len), &b))
        return false;
    for (size_t i = 0; i < len; i++) {
        if (i && chunk && i % chunk == 0)
            buf_put(&b, separator);
        put_hex(&b, (uint8_t)s->u.s.ptr[i]);
    }
    return value_str(s, buf_str(&b));
}

static const struct conv_def rows[] = {
    {"base64", NULL, NULL, VALUE_BIN, VALUE_STR, conv_base64, 0, .help = "base64 of RFC 4648"},
    {"b64dec", NULL, NULL, VALUE_STR, VALUE_BIN, conv_b64dec, 0, .help = "what base64 stands for"},
    {"ub64enc", NULL, NULL, VALUE_BIN, VALUE_STR, conv_base64, 1,
     .help = "base64 for URLs, without padding"},
    {"ub64dec", NULL, NULL, VALUE_STR, VALUE_BIN, conv_b64dec, 1,
     .help = "what base64 for URLs stands for"},
    {"hex", NULL, NULL, VALUE_BIN, VALUE_STR, conv_hex, 0, .help = "two hexadecimal digits a byte"},
    {"hex2i", NULL, NULL, VALUE_STR, VALUE_INT, conv_hex2i, 0,
     .help = "integer written in hexadecimal"},
    {"base2", NULL, NULL, VALUE_BIN, VALUE_STR, conv_base2, 0,
     .help = "eight binary digits a byte"},
    {"be2dec", "si?i", "<separator>,<chunk_size>[,<truncate>]", VALUE_BIN, VALUE_STR, conv_2dec,
     BIG, .help = "decimal numbers of big-endian chunks", .check = check_2dec},
    {"le2dec", "si?i", "<separator>,<chunk_size>[,<truncate>]", VALUE_BIN, VALUE_STR, conv_2dec,
     LITTLE, .help = "decimal numbers of little-endian chunks", .check = check_2dec},
    {"be2hex", "?sii", "[<separator>[,<chunk_size>[,<truncate>]]]", VALUE_BIN, VALUE_STR,
     conv_be2hex, 0, .help = "hexadecimal digits with a separator between chunks",
     .check = check_be2hex},
    {"htonl", NULL, NULL, VALUE_INT, VALUE_BIN, conv_htonl, 0,
     .help = "four bytes in network order"},
};

const struct conv_table conv_bin_table = TABLE_OF(rows);
