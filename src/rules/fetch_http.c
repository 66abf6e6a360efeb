/*
 * Fetches of the start line and of the whole head.
 */
#include "rules/logformat.h"
#include "rules/message.h"
#include "rules/tables.h"

enum { REQUEST, RESPONSE };
enum { PATH, PATHQ, URL };
enum { BASE, BASEQ };

static const struct http_msg *message_of(const struct rules_ctx *ctx, int side)
{
    return side == RESPONSE ? ctx->res : ctx->req;
}

static bool fetch_method(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                         struct sample *out)
{
    const struct rules_log *log;

    if (ctx->req)
        return value_str(out, ctx->req->method_text);
    /* The request is gone, what was logged of it is not. */
    log = ctx_log(ctx);
    return log && log->method.len && value_str(out, log->method);
}

static bool fetch_path(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                       struct sample *out)
{
    struct str s;

    if (!ctx->req)
        return false;
    if (f->def->data == URL)
        return value_str(out, ctx->req->target);
    if (!(f->def->data == PATH ? target_path(ctx->req->target, &s)
                               : target_pathq(ctx->req->target, &s)))
        return false;
    return value_str(out, s);
}

static bool fetch_query(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                        struct sample *out)
{
    const struct rules_arg *option = arg_at(&f->args, 0);
    struct str target, query;
    size_t mark;

    if (!ctx->req)
        return false;
    target = ctx->req->target;
    mark = str_chr(target, '?');
    if (mark == target.len)
        return false;
    query = str_from(target, mark + 1);
    if (option && option->i && query.len)
        query = str_from(target, mark);
    return value_str(out, query);
}

static int check_query(struct rules_compiler *c, struct rules_args *args, char why[RULES_WHY_BYTES])
{
    if (!args->count || !args->v[0].s.len)
        return 0;
    if (!str_eq(args->v[0].s, STR("with_qm"))) {
        snprintf(why, RULES_WHY_BYTES, "unknown option '%s', expected 'with_qm'", args->v[0].s.ptr);
        return SP_EINVAL;
    }
    args->v[0].i = 1;
    return 0;
}

static struct str concat(struct rules_ctx *ctx, struct str a, struct str b)
{
    char *p;

    if (!b.len)
        return a;
    p = arena_alloc(ctx->arena, a.len + b.len);
    if (!p)
        return STR_NULL;
    memcpy(p, a.ptr, a.len);
    memcpy(p + a.len, b.ptr, b.len);
    return str_make(p, a.len + b.len);
}

/* Host and path glued together; the path alone without a host. */
static bool base_of(struct rules_ctx *ctx, bool with_query, bool path_needed, struct str *out)
{
    struct str host, path = STR("");
    bool has_path;

    if (!ctx->req)
        return false;
    has_path =
        with_query ? target_pathq(ctx->req->target, &path) : target_path(ctx->req->target, &path);
    if (!message_host(ctx->req, &host) || !host.len) {
        *out = path;
        return has_path || !path_needed;
    }
    if (has_path && path.len && path.ptr[0] != '/')
        path.len = 0;
    *out = concat(ctx, host, has_path ? path : STR(""));
    return out->ptr;
}

static bool fetch_base(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                       struct sample *out)
{
    struct str s;

    return base_of(ctx, f->def->data == BASEQ, true, &s) && value_str(out, s);
}

static bool fetch_base32(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                         struct sample *out)
{
    struct str s;

    if (!base_of(ctx, f->def->data == BASEQ, false, &s))
        return false;
    return value_int(out, hash_avalanche(hash_sdbm(s)));
}

/* The 32-bit hash in network order, followed by the client's address. */
static bool fetch_base32_src(const struct fetch_call *f, struct rules_ctx *ctx,
                             struct fetch_iter *it, struct sample *out)
{
    struct sample src;
    const uint8_t *bytes;
    size_t n;
    uint8_t *p;

    if (!fetch_base32(f, ctx, it, out) || !ctx_item(ctx, RULES_SRC, &src) ||
        src.type != SAMPLE_ADDR)
        return false;
    n = value_addr_bytes(&src.u.a, &bytes);
    p = arena_alloc(ctx->arena, 4 + n);
    if (!n || !p)
        return false;
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)((uint64_t)out->u.i >> (24 - 8 * i));
    memcpy(p + 4, bytes, n);
    return value_bin(out, str_make((char *)p, 4 + n));
}

/* The IPv4 address and port of an absolute target. */
static bool url_address(const struct rules_ctx *ctx, struct addr *addr, int64_t *port)
{
    struct str host;
    uint64_t number;
    size_t colon;

    if (!ctx->req)
        return false;
    host = target_authority(ctx->req->target);
    *port = str_istarts(ctx->req->target, STR("https:")) ? 443 : 80;
    colon = str_chr(host, ':');
    if (colon < host.len) {
        if (str_to_u64(str_from(host, colon + 1), &number) < 0 || number > 65535)
            return false;
        *port = (int64_t)number;
    }
    host.len = colon;
    return value_parse_addr(host, addr) && addr->u.sa.sa_family == AF_INET;
}

static bool fetch_url_ip(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                         struct sample *out)
{
    int64_t port;

    out->type = SAMPLE_ADDR;
    return url_address(ctx, &out->u.a, &port);
}

static bool fetch_url_port(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                           struct sample *out)
{
    struct addr addr;
    int64_t port;

    return url_address(ctx, &addr, &port) && value_int(out, port);
}

static struct str version_text(unsigned version)
{
    switch (version) {
    case 9:
        return STR("0.9");
    case 10:
        return STR("1.0");
    case 20:
        return STR("2.0");
    case 30:
        return STR("3.0");
    default:
        return STR("1.1");
    }
}

static bool fetch_version(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                          struct sample *out)
{
    const struct http_msg *m = message_of(ctx, f->def->data);

    return m && value_str(out, version_text(m->version));
}

static bool fetch_status(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                         struct sample *out)
{
    return ctx->res && value_int(out, ctx->res->status);
}

/* txn.status: the response's, or what the stream was answered with. */
static bool fetch_txn_status(const struct fetch_call *f, struct rules_ctx *ctx,
                             struct fetch_iter *it, struct sample *out)
{
    const struct rules_log *log;

    if (ctx->res)
        return value_int(out, ctx->res->status);
    log = ctx_log(ctx);
    return log && value_int(out, log->status ? (int64_t)log->status : -1);
}

static bool fetch_proto_http(const struct fetch_call *f, struct rules_ctx *ctx,
                             struct fetch_iter *it, struct sample *out)
{
    it->may_change = true;
    return ctx->req && value_bool(out, true);
}

/* Names are told in lower case, as HAProxy keeps them. */
static void put_name(struct buf *b, struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char ch = name.ptr[i];

        buf_put_char(b, ch >= 'A' && ch <= 'Z' ? (char)(ch | 0x20) : ch);
    }
}

/* All fields as they would be sent, and the empty line. */
static bool fetch_hdrs(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                       struct sample *out)
{
    const struct http_msg *m = message_of(ctx, f->def->data);
    size_t bytes = 2;
    struct buf b;

    if (!m)
        return false;
    for (uint32_t i = 0; i < m->field_count; i++)
        bytes += m->fields[i].name.len + m->fields[i].value.len + 4;
    b = (struct buf){arena_alloc(ctx->arena, bytes), (uint32_t)bytes, 0, 0};
    if (!b.mem)
        return false;
    for (uint32_t i = 0; i < m->field_count; i++) {
        put_name(&b, m->fields[i].name);
        buf_put(&b, STR(": "));
        buf_put(&b, m->fields[i].value);
        buf_put(&b, STR("\r\n"));
    }
    buf_put(&b, STR("\r\n"));
    return value_str(out, buf_str(&b));
}

static bool fetch_hdr_names(const struct fetch_call *f, struct rules_ctx *ctx,
                            struct fetch_iter *it, struct sample *out)
{
    const struct http_msg *m = message_of(ctx, f->def->data);
    const struct rules_arg *delimiter = arg_at(&f->args, 0);
    char ch = delimiter && delimiter->s.len ? delimiter->s.ptr[0] : ',';
    size_t bytes = 1;
    struct buf b;

    if (!m)
        return false;
    for (uint32_t i = 0; i < m->field_count; i++)
        bytes += m->fields[i].name.len + 1;
    b = (struct buf){arena_alloc(ctx->arena, bytes), (uint32_t)bytes, 0, 0};
    if (!b.mem)
        return false;
    for (uint32_t i = 0; i < m->field_count; i++) {
        if (i)
            buf_put_char(&b, ch);
        put_name(&b, m->fields[i].name);
    }
    return value_str(out, buf_str(&b));
}

static bool fetch_item(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                       struct sample *out)
{
    return ctx_item(ctx, (enum rules_item)f->def->data, out);
}

static const struct fetch_def rows[] = {
    {"method", NULL, NULL, VALUE_METHOD, NEEDS_REQUEST, fetch_method, 0,
     .help = "method of the request"},
    {"url", NULL, NULL, VALUE_STR, NEEDS_REQUEST, fetch_path, URL,
     .help = "request target as presented"},
    {"path", NULL, NULL, VALUE_STR, NEEDS_REQUEST, fetch_path, PATH,
     .help = "path of the target, up to '?'"},
    {"pathq", NULL, NULL, VALUE_STR, NEEDS_REQUEST, fetch_path, PATHQ,
     .help = "path of the target with the query string"},
    {"query", "?s", "[<options>]", VALUE_STR, NEEDS_REQUEST, fetch_query, 0,
     .help = "query string after the first '?'; with_qm keeps the '?'", .check = check_query},
    {"base", NULL, NULL, VALUE_STR, NEEDS_REQUEST, fetch_base, BASE,
     .help = "Host and path concatenated"},
    {"baseq", NULL, NULL, VALUE_STR, NEEDS_REQUEST, fetch_base, BASEQ,
     .help = "Host, path and query string concatenated"},
    {"base32", NULL, NULL, VALUE_INT, NEEDS_REQUEST, fetch_base32, BASE,
     .help = "32-bit hash of base"},
    {"base32+src", NULL, NULL, VALUE_BIN, NEEDS_REQUEST | NEEDS_HOST, fetch_base32_src, BASE,
     .help = "base32 followed by the client's address"},
    {"url32", NULL, NULL, VALUE_INT, NEEDS_REQUEST, fetch_base32, BASEQ,
     .help = "32-bit hash of baseq"},
    {"url32+src", NULL, NULL, VALUE_BIN, NEEDS_REQUEST | NEEDS_HOST, fetch_base32_src, BASEQ,
     .help = "url32 followed by the client's address"},
    {"url_ip", NULL, NULL, VALUE_ADDR, NEEDS_REQUEST, fetch_url_ip, 0,
     .help = "IPv4 address in an absolute target"},
    {"url_port", NULL, NULL, VALUE_INT, NEEDS_REQUEST, fetch_url_port, 0,
     .help = "port of an absolute target with an IPv4 address"},
    {"req.ver", NULL, NULL, VALUE_STR, NEEDS_REQUEST, fetch_version, REQUEST,
     .help = "HTTP version of the request: \"1.1\""},
    {"req_ver", NULL, NULL, VALUE_STR, NEEDS_REQUEST, fetch_version, REQUEST,
     .help = "same as req.ver"},
    {"res.ver", NULL, NULL, VALUE_STR, NEEDS_RESPONSE, fetch_version, RESPONSE,
     .help = "HTTP version of the response"},
    {"resp_ver", NULL, NULL, VALUE_STR, NEEDS_RESPONSE, fetch_version, RESPONSE,
     .help = "same as res.ver"},
    {"status", NULL, NULL, VALUE_INT, NEEDS_RESPONSE, fetch_status, 0,
     .help = "status code of the response"},
    {"server_status", NULL, NULL, VALUE_INT, NEEDS_RESPONSE, fetch_status, 0,
     .help = "status code received from the server"},
    {"txn.status", NULL, NULL, VALUE_INT, NEEDS_LOG, fetch_txn_status, 0,
     .help = "status code sent to the client"},
    {"req.proto_http", NULL, NULL, VALUE_BOOL, NEEDS_REQUEST, fetch_proto_http, 0,
     .help = "true when the buffer holds a valid HTTP request"},
    {"req_proto_http", NULL, NULL, VALUE_BOOL, NEEDS_REQUEST, fetch_proto_http, 0,
     .help = "same as req.proto_http"},
    {"req.hdrs", NULL, NULL, VALUE_BIN, NEEDS_REQUEST, fetch_hdrs, REQUEST,
     .help = "all fields of the request, as sent"},
    {"res.hdrs", NULL, NULL, VALUE_BIN, NEEDS_RESPONSE, fetch_hdrs, RESPONSE,
     .help = "all fields of the response, as sent"},
    {"req.hdr_names", "?s", "[<delim>]", VALUE_STR, NEEDS_REQUEST, fetch_hdr_names, REQUEST,
     .help = "names of the request's fields"},
    {"res.hdr_names", "?s", "[<delim>]", VALUE_STR, NEEDS_RESPONSE, fetch_hdr_names, RESPONSE,
     .help = "names of the response's fields"},
    {"http_first_req", NULL, NULL, VALUE_BOOL, NEEDS_HOST, fetch_item, RULES_HTTP_FIRST_REQ,
     .help = "true for the first request of a connection"},
    {"unique-id", NULL, NULL, VALUE_STR, NEEDS_HOST, fetch_item, RULES_UNIQUE_ID,
     .help = "the stream's unique-id-format"},
};

const struct fetch_table fetch_http_table = TABLE_OF(rows);
