/*
 * Fetches of buffered bytes: bodies, raw contents, and the TLS ClientHello (RFC 8446
 * section 4.1.2, RFC 6066 section 3) that a client sends through in TCP mode.
 */
#include "rules/tables.h"

enum { REQUEST, RESPONSE };

static bool payload_of(struct rules_ctx *ctx, int side, struct str *out)
{
    struct sample s;

    if (!ctx_item(ctx, side == RESPONSE ? RULES_PAYLOAD_RES : RULES_PAYLOAD_REQ, &s))
        return false;
    *out = s.u.s;
    return true;
}

static bool fetch_body(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                       struct sample *out)
{
    struct str s;

    it->may_change = true;
    return payload_of(ctx, f->def->data, &s) && value_bin(out, s);
}

static bool fetch_body_len(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                           struct sample *out)
{
    it->may_change = true;
    return ctx_item(ctx, f->def->data == RESPONSE ? RULES_RES_BODY_LEN : RULES_REQ_BODY_LEN, out);
}

/* The size a message announces; what is buffered when it does not. */
static bool fetch_body_size(const struct fetch_call *f, struct rules_ctx *ctx,
                            struct fetch_iter *it, struct sample *out)
{
    const struct http_msg *m = f->def->data == RESPONSE ? ctx->res : ctx->req;

    if (!m)
        return false;
    if (m->framing == HTTP_FRAMING_LENGTH || m->flags & HTTP_MSG_HAS_LENGTH)
        return value_int(out, (int64_t)m->content_length);
    return fetch_body_len(f, ctx, it, out);
}

static bool fetch_len(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                      struct sample *out)
{
    struct str s;

    it->may_change = true;
    return payload_of(ctx, f->def->data, &s) && value_int(out, (int64_t)s.len);
}

static bool fetch_payload(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                          struct sample *out)
{
    uint64_t offset = (uint64_t)f->args.v[0].i, length = (uint64_t)f->args.v[1].i;
    struct str s;

    it->may_change = true;
    if (!payload_of(ctx, f->def->data, &s) || offset > s.len || length > s.len - offset)
        return false;
    it->may_change = length == 0;
    s = str_from(s, offset);
    if (length)
        s.len = length;
    return value_bin(out, s);
}

static int check_payload(struct rules_compiler *c, struct rules_args *args,
                         char why[RULES_WHY_BYTES])
{
    if (args->v[0].i < 0 || args->v[1].i < 0) {
        snprintf(why, RULES_WHY_BYTES, "offset and length must not be negative");
        return SP_EINVAL;
    }
    return 0;
}

/* A block preceded by its own length, big-endian: (offset of the length, its size[, offset of the block]). */
static bool fetch_payload_lv(const struct fetch_call *f, struct rules_ctx *ctx,
                             struct fetch_iter *it, struct sample *out)
{
    uint64_t at = (uint64_t)f->args.v[0].i, size = (uint64_t)f->args.v[1].i, length = 0,
             block = at + size;
    const struct rules_arg *third = arg_at(&f->args, 2);
    struct str s;

    it->may_change = true;
    if (!payload_of(ctx, f->def->data, &s) || at > s.len || size > s.len - at)
        return false;
    for (uint64_t i = 0; i < size; i++)
        length = length << 8 | (uint8_t)s.ptr[at + i];
    if (third)
        block = third->is_var ? block + (uint64_t)third->i : (uint64_t)third->i;
    if (!length || block > s.len || length > s.len - block)
        return false;
    it->may_change = false;
    return value_bin(out, str_make(s.ptr + block, length));
}

/* The third argument is absolute, or relative with a sign (kept in is_var). */
static int check_payload_lv(struct rules_compiler *c, struct rules_args *args,
                            char why[RULES_WHY_BYTES])
{
    size_t used;

    if (args->v[0].i < 0 || args->v[1].i < 1 || args->v[1].i > 4) {
        snprintf(why, RULES_WHY_BYTES, "expects an offset, and a length of 1 to 4 bytes");
        return SP_EINVAL;
    }
    if (args->count > 2) {
        struct rules_arg *third = &args->v[2];

        third->is_var = third->s.len && (third->s.ptr[0] == '+' || third->s.ptr[0] == '-');
        third->i = value_read_int(third->s, &used);
        if (!third->s.len || used != third->s.len || (!third->is_var && third->i < 0)) {
            snprintf(why, RULES_WHY_BYTES, "offset '%s' is not a number", third->s.ptr);
            return SP_EINVAL;
        }
    }
    return 0;
}

static bool fetch_wait_end(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                           struct sample *out)
{
    it->may_change = true;
    return ctx->final_data && value_bool(out, true);
}

/* --- TLS ------------------------------------------------------------------------------------------ */

enum hello { HELLO_OK, HELLO_SHORT, HELLO_NONE };

static unsigned get(struct str s, size_t at, size_t n)
{
    unsigned v = 0;

    while (n--)
        v = v << 8 | (uint8_t)s.ptr[at++];
    return v;
}

/* The handshake message of the first record, when it is there in full. */
static enum hello handshake(struct str s, unsigned *type, struct str *body)
{
    size_t n;

    if (!s.len)
        return HELLO_SHORT;
    if ((uint8_t)s.ptr[0] != 22)
        return HELLO_NONE;
    if (s.len < 9)
        return HELLO_SHORT;
    if (s.ptr[1] != 3 || get(s, 3, 2) < 4)
        return HELLO_NONE;
    *type = get(s, 5, 1);
    n = get(s, 6, 3);
    if (s.len - 9 < n)
        return HELLO_SHORT;
    *body = str_make(s.ptr + 9, n);
    return HELLO_OK;
}

/* Drops `n` bytes, or a vector with a length of `prefix` bytes, from the front. */
static bool skip(struct str *s, size_t n)
{
    if (s->len < n)
        return false;
    *s = str_from(*s, n);
    return true;
}

static bool take_vector(struct str *s, size_t prefix, struct str *out)
{
    size_t n;

    if (s->len < prefix)
        return false;
    n = get(*s, 0, prefix);
    if (s->len - prefix < n)
        return false;
    *out = str_make(s->ptr + prefix, n);
    *s = str_from(*s, prefix + n);
    return true;
}

/* An extension of a ClientHello's body. */
static bool hello_extension(struct str hello, unsigned wanted, struct str *out)
{
    struct str part, extensions;

    if (!skip(&hello, 34) || !take_vector(&hello, 1, &part) || !take_vector(&hello, 2, &part) ||
        !take_vector(&hello, 1, &part) || !take_vector(&hello, 2, &extensions))
        return false;
    while (extensions.len >= 4) {
        unsigned type = get(extensions, 0, 2);

        if (!skip(&extensions, 2) || !take_vector(&extensions, 2, &part))
            return false;
        if (type == wanted) {
            *out = part;
            return true;
        }
    }
    return false;
}

static bool client_hello(struct rules_ctx *ctx, struct fetch_iter *it, struct str *hello)
{
    struct str s;
    unsigned type;
    enum hello state;

    if (!payload_of(ctx, REQUEST, &s))
        return false;
    state = handshake(s, &type, hello);
    it->may_change = state == HELLO_SHORT;
    return state == HELLO_OK && type == 1;
}

static bool fetch_hello_type(const struct fetch_call *f, struct rules_ctx *ctx,
                             struct fetch_iter *it, struct sample *out)
{
    struct str s, body;
    unsigned type;
    enum hello state;

    if (f->def->data == REQUEST && ctx_item(ctx, RULES_REQ_SSL_HELLO_TYPE, out))
        return true;
    if (!payload_of(ctx, f->def->data, &s))
        return false;
    state = handshake(s, &type, &body);
    it->may_change = state == HELLO_SHORT;
    return state == HELLO_OK && value_int(out, type);
}

static bool fetch_hello_sni(const struct fetch_call *f, struct rules_ctx *ctx,
                            struct fetch_iter *it, struct sample *out)
{
    struct str hello, list, entry, name;

    if (ctx_item(ctx, RULES_REQ_SSL_SNI, out))
        return true;
    if (!client_hello(ctx, it, &hello) || !hello_extension(hello, 0, &list) ||
        !take_vector(&list, 2, &entry))
        return false;
    while (entry.len) {
        bool is_host = entry.ptr[0] == 0;

        if (!skip(&entry, 1) || !take_vector(&entry, 2, &name))
            return false;
        if (is_host)
            return value_str(out, name);
    }
    return false;
}

/* The first protocol offered. */
static bool fetch_hello_alpn(const struct fetch_call *f, struct rules_ctx *ctx,
                             struct fetch_iter *it, struct sample *out)
{
    struct str hello, extension, list, name;

    if (!client_hello(ctx, it, &hello) || !hello_extension(hello, 16, &extension) ||
        !take_vector(&extension, 2, &list) || !take_vector(&list, 1, &name))
        return false;
    return value_str(out, name);
}

static bool fetch_hello_ver(const struct fetch_call *f, struct rules_ctx *ctx,
                            struct fetch_iter *it, struct sample *out)
{
    struct str hello;

    if (ctx_item(ctx, RULES_REQ_SSL_VER, out))
        return true;
    if (!client_hello(ctx, it, &hello) || hello.len < 2)
        return false;
    return value_int(out, (int64_t)get(hello, 0, 1) << 16 | get(hello, 1, 1));
}

/* The supported elliptic curves: present or not. */
static bool fetch_hello_ec(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                           struct sample *out)
{
    struct str hello, list;

    return client_hello(ctx, it, &hello) && hello_extension(hello, 10, &list) &&
           value_bool(out, true);
}

/* Session tickets: 0 not supported, 1 supported, 2 one was sent. */
static bool fetch_hello_ticket(const struct fetch_call *f, struct rules_ctx *ctx,
                               struct fetch_iter *it, struct sample *out)
{
    struct str hello, ticket;

    if (!client_hello(ctx, it, &hello))
        return false;
    if (!hello_extension(hello, 35, &ticket))
        return value_int(out, 0);
    return value_int(out, ticket.len ? 2 : 1);
}

#define RAW NEEDS_PAYLOAD
#define REQ (NEEDS_PAYLOAD | NEEDS_REQUEST)
#define RES (NEEDS_PAYLOAD | NEEDS_RESPONSE)

static const struct fetch_def rows[] = {
    {"req.body", NULL, NULL, VALUE_BIN, REQ, fetch_body, REQUEST,
     .help = "body of the request, as far as it is buffered"},
    {"req.body_len", NULL, NULL, VALUE_INT, REQ, fetch_body_len, REQUEST,
     .help = "bytes of the request's body buffered"},
    {"req.body_size", NULL, NULL, VALUE_INT, REQ, fetch_body_size, REQUEST,
     .help = "announced size of the request's body"},
    {"res.body", NULL, NULL, VALUE_BIN, RES, fetch_body, RESPONSE,
     .help = "body of the response, as far as it is buffered"},
    {"res.body_len", NULL, NULL, VALUE_INT, RES, fetch_body_len, RESPONSE,
     .help = "bytes of the response's body buffered"},
    {"res.body_size", NULL, NULL, VALUE_INT, RES, fetch_body_size, RESPONSE,
     .help = "announced size of the response's body"},
    {"req.len", NULL, NULL, VALUE_INT, RAW, fetch_len, REQUEST,
     .help = "bytes in the request buffer"},
    {"req_len", NULL, NULL, VALUE_INT, RAW, fetch_len, REQUEST, .help = "same as req.len"},
    {"res.len", NULL, NULL, VALUE_INT, RAW, fetch_len, RESPONSE,
     .help = "bytes in the response buffer"},
    {"req.payload", "ii", "<offset>,<length>", VALUE_BIN, RAW, fetch_payload, REQUEST,
     .help = "bytes of the request buffer; length 0: to the end", .check = check_payload},
    {"payload", "ii", "<offset>,<length>", VALUE_BIN, RAW, fetch_payload, REQUEST,
     .help = "same as req.payload", .check = check_payload},
    {"res.payload", "ii", "<offset>,<length>", VALUE_BIN, RAW, fetch_payload, RESPONSE,
     .help = "bytes of the response buffer", .check = check_payload},
    {"req.payload_lv", "ii?s", "<offset1>,<length>[,<offset2>]", VALUE_BIN, RAW, fetch_payload_lv,
     REQUEST, .help = "block of the request buffer whose length precedes it",
     .check = check_payload_lv},
    {"payload_lv", "ii?s", "<offset1>,<length>[,<offset2>]", VALUE_BIN, RAW, fetch_payload_lv,
     REQUEST, .help = "same as req.payload_lv", .check = check_payload_lv},
    {"res.payload_lv", "ii?s", "<offset1>,<length>[,<offset2>]", VALUE_BIN, RAW, fetch_payload_lv,
     RESPONSE, .help = "block of the response buffer whose length precedes it",
     .check = check_payload_lv},
    {"wait_end", NULL, NULL, VALUE_BOOL, NEEDS_VARYING, fetch_wait_end, 0,
     .help = "true once no more bytes are waited for"},
    {"req.ssl_hello_type", NULL, NULL, VALUE_INT, RAW, fetch_hello_type, REQUEST,
     .help = "type of the TLS handshake message in the request buffer"},
    {"req_ssl_hello_type", NULL, NULL, VALUE_INT, RAW, fetch_hello_type, REQUEST,
     .help = "same as req.ssl_hello_type"},
    {"res.ssl_hello_type", NULL, NULL, VALUE_INT, RAW, fetch_hello_type, RESPONSE,
     .help = "type of the TLS handshake message in the response buffer"},
    {"rep_ssl_hello_type", NULL, NULL, VALUE_INT, RAW, fetch_hello_type, RESPONSE,
     .help = "same as res.ssl_hello_type"},
    {"req.ssl_sni", NULL, NULL, VALUE_STR, RAW, fetch_hello_sni, 0,
     .help = "server name in a ClientHello passing through"},
    {"req_ssl_sni", NULL, NULL, VALUE_STR, RAW, fetch_hello_sni, 0, .help = "same as req.ssl_sni"},
    {"req.ssl_alpn", NULL, NULL, VALUE_STR, RAW, fetch_hello_alpn, 0,
     .help = "first protocol offered by ALPN in a ClientHello passing through"},
    {"req.ssl_ver", NULL, NULL, VALUE_INT, RAW, fetch_hello_ver, 0,
     .help = "TLS version of a ClientHello passing through"},
    {"req_ssl_ver", NULL, NULL, VALUE_INT, RAW, fetch_hello_ver, 0, .help = "same as req.ssl_ver"},
    {"req.ssl_ec_ext", NULL, NULL, VALUE_BOOL, RAW, fetch_hello_ec, 0,
     .help = "true when a ClientHello passing through offers elliptic curves"},
    {"req.ssl_st_ext", NULL, NULL, VALUE_INT, RAW, fetch_hello_ticket, 0,
     .help = "session tickets in a ClientHello passing through: 0 none, 1 supported, 2 sent"},
};

const struct fetch_table fetch_payload_table = TABLE_OF(rows);
