/*
 * Requests of HTTP health checks.
 */
#include "proxy/check_internal.h"
#include "proxy/server_state.h"

/* --- the server's state, told to itself (http-check send-state) ---------------------- */

static void put_state_word(const struct check *c, struct buf *out)
{
    const struct server *s = c->server;
    int full = c->rise + c->fall - 1;
    bool up = c->health >= c->rise;
    int op = atomic_load_explicit(&s->op, memory_order_relaxed);

    if (!up) {
        buf_put(out, STR("DOWN"));
        if (c->health > 0)
            buf_printf(out, " %d/%d", c->health, c->rise);
        return;
    }
    buf_put(out, op == SERVER_OP_STOPPING ? STR("NOLB") : STR("UP"));
    if (c->health < full)
        buf_printf(out, " %d/%d", c->health - c->rise + 1, c->fall);
}

void check_http_state(const struct check *c, struct buf *out)
{
    const struct server *s = c->server;
    const struct proxy *p = s->backend;
    unsigned weight = 0, served = 0;
    char host[ADDR_TEXT_BYTES] = "unix";
    bool is_unix = s->address.u.sa.sa_family == AF_UNIX;

    for (int i = 0; i < p->server_count; i++) {
        const struct server *each = p->servers[i];

        if (server_is_usable(each))
            weight += (unsigned)atomic_load_explicit(&each->weight, memory_order_relaxed);
        served += atomic_load_explicit(&each->served, memory_order_relaxed);
    }
    if (!is_unix)
        addr_host_text(&s->address, host);
    put_state_word(c, out);
    buf_printf(out, "; address=%s; port=", host);
    if (is_unix)
        buf_put(out, STR("unix"));
    else
        buf_put_u64(out, addr_port(&s->address));
    buf_printf(out, "; name=%.*s/%.*s; node=%.*s; weight=%d/%u; scur=%u/%u; qcur=%u",
               STR_FMT(p->name), STR_FMT(s->name), STR_FMT(p->app->node),
               atomic_load_explicit(&s->weight, memory_order_relaxed), weight,
               atomic_load_explicit(&s->served, memory_order_relaxed), served,
               atomic_load_explicit(&s->queued, memory_order_relaxed));
}

/* --- requests --------------------------------------------------------------------------- */

static bool is_clean(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (((unsigned char)s.ptr[i] < ' ' && s.ptr[i] != '\t') || s.ptr[i] == 0x7f)
            return false;
    return true;
}

/* A target that a format made: what would end the word is escaped. */
static int put_escaped(struct buf *out, struct str s)
{
    int rc = 0;

    for (size_t i = 0; i < s.len && rc == 0; i++) {
        unsigned char c = (unsigned char)s.ptr[i];

        rc = c <= ' ' || c == 0x7f ? buf_printf(out, "%%%02X", c) : buf_put_char(out, s.ptr[i]);
    }
    return rc;
}

/* In absolute form the authority is the Host field's, where there is one. */
static int put_target(struct buf *out, struct str uri, struct str host)
{
    struct http_target t;
    int rc;

    http_target_split(uri, &t);
    if (!t.scheme.len || !host.len)
        return put_escaped(out, uri);
    rc = put_escaped(out, t.scheme);
    if (rc == 0)
        rc = buf_put(out, STR("://"));
    if (rc == 0)
        rc = put_escaped(out, host);
    if (rc == 0)
        rc = put_escaped(out, t.path);
    if (rc == 0 && t.has_query)
        rc = buf_put_char(out, '?');
    return rc == 0 ? put_escaped(out, t.query) : rc;
}

static int put_field(struct buf *out, struct str name, struct str value)
{
    if (buf_put(out, name) != 0 || buf_put(out, STR(": ")) != 0 || buf_put(out, value) != 0)
        return SP_ETOOBIG;
    return buf_put(out, STR("\r\n"));
}

static int put_length(struct buf *out, size_t len)
{
    if (buf_put(out, STR("content-length: ")) != 0 || buf_put_u64(out, len) != 0)
        return SP_ETOOBIG;
    return buf_put(out, STR("\r\n"));
}

/* Methods whose requests have content, so that its absence is said too. */
static bool method_has_content(struct str method)
{
    enum http_method m = http_method_of(method);

    return m == HTTP_POST || m == HTTP_PUT || m == HTTP_PATCH;
}

static int put_fields(struct buf *out, const struct check_send *send, const struct str *values,
                      bool *has_connection)
{
    int rc = 0;

    for (unsigned i = 0; i < send->header_count && rc == 0; i++) {
        struct str name = send->headers[i].name;

        if (!values[i].len || !is_clean(values[i]))
            continue;
        if (http_field_id_of(name) == HTTP_FIELD_CONNECTION)
            *has_connection = true;
        rc = put_field(out, name, values[i]);
    }
    return rc;
}

int check_http_request(const struct check_send *send, struct rules_ctx *ctx, struct str state,
                       struct buf *out)
{
    struct str *values = arena_zalloc(ctx->arena, send->header_count + 1, sizeof(*values));
    struct str uri = send->uri, body = send->body, host = STR_NULL;
    bool has_connection = false;
    int rc;

    if (!values)
        return SP_ENOMEM;
    for (unsigned i = 0; i < send->header_count; i++) {
        values[i] = rules_fmt_str(send->headers[i].value, ctx);
        if (http_field_id_of(send->headers[i].name) == HTTP_FIELD_HOST && is_clean(values[i]))
            host = values[i];
    }
    if (send->uri_fmt)
        uri = rules_fmt_str(send->uri_fmt, ctx);
    if (!uri.len)
        uri = STR("/");
    if (send->body_fmt)
        body = rules_fmt_str(send->body_fmt, ctx);
    rc = buf_put(out, send->method);
    if (rc == 0)
        rc = buf_put_char(out, ' ');
    if (rc == 0)
        rc = put_target(out, uri, host);
    if (rc == 0)
        rc = buf_printf(out, " %.*s\r\n", STR_FMT(send->version));
    if (rc == 0)
        rc = put_fields(out, send, values, &has_connection);
    if (rc == 0 && state.len)
        rc = put_field(out, STR("x-haproxy-server-state"), state);
    if (rc == 0 && (body.len || method_has_content(send->method)))
        rc = put_length(out, body.len);
    if (rc == 0 && !has_connection && !str_eq(send->version, STR("HTTP/1.0")))
        rc = put_field(out, STR("connection"), STR("close"));
    if (rc == 0)
        rc = buf_put(out, STR("\r\n"));
    return rc == 0 ? buf_put(out, body) : rc;
}
