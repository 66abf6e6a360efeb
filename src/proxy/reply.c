/*
 * Answers of our own: error pages, redirects, "return", the statistics page.
 */
#include "proxy/errors.h"
#include "proxy/session.h"

/* How long a client may take to read our last words before the connection is cut. */
#define LINGER_US 2000000
/* Bytes of an unwanted request that are read before the connection is cut. */
#define LINGER_BYTES (1u << 20)

enum step session_close_gently(struct session *s)
{
    bool unread = !s->client.sock.read_closed && !s->client_gone &&
                  (!s->req.complete || conn_may_read(&s->client) || buf_len(&s->req.win));

    if (!unread || !conn_is_open(&s->client)) {
        session_destroy(s, false);
        return STEP_WAIT;
    }
    conn_shutdown(&s->client);
    flow_release(s->worker, &s->res);
    flow_release(s->worker, &s->req);
    flow_init(&s->req);
    s->linger_until_us = session_now(s) + LINGER_US;
    s->state = SESSION_LINGER;
    return STEP_AGAIN;
}

/* Closing with unread bytes would reset the connection and take our answer from the client: read them first. */
enum step session_step_linger(struct session *s)
{
    char sink[4096];
    ptrdiff_t n = SP_EAGAIN;

    if (session_now(s) >= s->linger_until_us) {
        session_destroy(s, false);
        return STEP_WAIT;
    }
    while (s->req.sent < LINGER_BYTES && (s->client.sock.ready & IO_READ)) {
        n = io_sock_recv(&s->client.sock, sink, sizeof(sink));
        if (n <= 0)
            break;
        s->req.sent += (uint64_t)n;
    }
    if ((n <= 0 && n != SP_EAGAIN) || s->req.sent >= LINGER_BYTES || s->client.sock.read_closed ||
        conn_watch(&s->client) != 0)
        session_destroy(s, false);
    return STEP_WAIT;
}

/* --- building ---------------------------------------------------------------------- */

/* A raw message (error file) becomes the transaction's response. SP_EPROTO: not HTTP. */
static int reply_from_raw(struct session *s, struct str raw)
{
    struct txn *t = s->txn;
    struct h1_scan scan = {0};
    struct h1_limits limits = {.max_head_bytes = 65536, .max_fields = 101};
    enum h1_error error;
    size_t head_bytes, at;
    int rc;

    http_msg_init(&t->res, &t->arena);
    rc = h1_parse_response(&scan, raw, &limits, HTTP_GET, &t->res, &head_bytes, &error, &at);
    if (rc != 0)
        return SP_EPROTO;
    t->reply_body = str_from(raw, head_bytes);
    if (t->res.flags & HTTP_MSG_CONN_CLOSE)
        t->keep_client = false;
    http_msg_strip_hop_by_hop(&t->res);
    http_msg_del_id(&t->res, HTTP_FIELD_TRANSFER_ENCODING);
    http_msg_del_id(&t->res, HTTP_FIELD_CONTENT_LENGTH);
    return 0;
}

static int reply_from_parts(struct session *s, const struct rules_reply *reply)
{
    struct txn *t = s->txn;
    struct http_msg *m = &t->res;
    int rc = 0;

    http_msg_init(m, &t->arena);
    m->flags = HTTP_MSG_RESPONSE;
    m->version = 11;
    m->status = (uint16_t)reply->status;
    m->reason = http_reason_of(reply->status);
    for (unsigned i = 0; i < reply->field_count && rc == 0; i++)
        rc = http_msg_add(m, reply->fields[i].name, reply->fields[i].value);
    if (rc == 0 && reply->content_type.len)
        rc = http_msg_add(m, STR("Content-Type"), reply->content_type);
    t->reply_body = reply->body;
    return rc;
}

static bool reply_has_body(const struct session *s)
{
    unsigned status = s->txn->res.status;

    return status >= 200 && status != 204 && status != 304;
}

static int reply_finish_head(struct session *s)
{
    struct txn *t = s->txn;
    struct http_msg *m = &t->res;
    char *digits;

    if (m->status == 101) /* made by rules: what follows is not HTTP, and nothing follows */
        t->keep_client = false;
    if (!reply_has_body(s)) {
        t->reply_body = STR_NULL;
    } else {
        digits = arena_alloc(&t->arena, 24);
        if (!digits || http_msg_add(m, STR("Content-Length"),
                                    str_make(digits, str_put_u64(digits, t->reply_body.len))) != 0)
            return SP_ENOMEM;
    }
    if (t->req.method == HTTP_HEAD)
        t->reply_body = STR_NULL;
    if (!t->keep_client && m->status != 101)
        return http_msg_add(m, STR("Connection"), STR("close"));
    if (t->version && t->version < 11)
        return http_msg_add(m, STR("Connection"), STR("keep-alive"));
    return 0;
}

/* Whether the rest of the request is here already, so that another one can follow. */
static void reply_settle_request(struct session *s)
{
    struct txn *t = s->txn;
    struct flow *f = &s->req;

    if (!f->head_done) {
        t->keep_client = false;
        return;
    }
    if (!f->complete && flow_walk(f) < 0) {
        t->keep_client = false;
        return;
    }
    buf_consume(&f->win, f->ready);
    f->ready = 0;
    f->delivered = f->complete;
    if (!f->complete)
        t->keep_client = false;
}

/* The response in t->res and t->reply_body goes out. */
static enum step reply_send(struct session *s)
{
    struct txn *t = s->txn;

    t->replied = true;
    t->status = t->res.status;
    t->rules.res = &t->res;
    t->rules.response_stage = true;
    t->rules.req_vars.first = NULL;
    reply_settle_request(s);
    if (t->backend && t->backend != s->frontend)
        session_run_rules(s, t->backend, RULES_HTTP_AFTER_RESPONSE);
    session_run_rules(s, s->frontend, RULES_HTTP_AFTER_RESPONSE);
    t->status = t->res.status;
    session_fe(s)->responses[session_status_class(t->status)]++;
    if (s->frontend->res_capture_count)
        session_capture(s, true);
    if (reply_finish_head(s) != 0) {
        session_destroy(s, true);
        return STEP_WAIT;
    }
    flow_release(s->worker, &s->res);
    flow_init(&s->res);
    s->res.head = session_write_head(s, &t->res);
    if (!s->res.head.ptr) {
        session_destroy(s, true);
        return STEP_WAIT;
    }
    s->state = SESSION_REPLY;
    return STEP_AGAIN;
}

enum step session_reply(struct session *s, struct rules_reply *reply)
{
    struct txn *t = s->txn;

    if (t->response_started) {
        session_destroy(s, false);
        return STEP_WAIT;
    }
    if (reply->use_default_errorfile)
        return session_reply_error(s, reply->status);
    session_drop_server(s, false);
    if (reply->close)
        t->keep_client = false;
    if (reply->raw.ptr) {
        if (reply->raw.len == 0) { /* an empty error file: not a word */
            t->status = reply->status;
            session_destroy(s, false);
            return STEP_WAIT;
        }
        if (reply_from_raw(s, reply->raw) != 0)
            return session_reply_error(s, 500);
        for (unsigned i = 0; i < reply->field_count; i++)
            http_msg_add(&t->res, reply->fields[i].name, reply->fields[i].value);
    } else if (reply_from_parts(s, reply) != 0) {
        return session_reply_error(s, 500);
    }
    return reply_send(s);
}

static enum step reply_error_location(struct session *s, const struct cfg_errorfile *e)
{
    struct rules_reply reply = {.status = e->location_status ? e->location_status : 302, .redirect = true};
    struct http_field location = {.name = STR("Location"), .value = str_of(e->location)};

    reply.fields = &location;
    reply.field_count = 1;
    return session_reply(s, &reply);
}

enum step session_reply_error(struct session *s, unsigned status)
{
    struct txn *t = s->txn;
    int slot = errors_slot(status);
    const struct proxy *p = t->backend && slot >= 0 && (t->backend->error_raw[slot].ptr || t->backend->error_locations[slot])
                                ? t->backend
                                : s->frontend;
    struct str raw;

    if (t->response_started || !s->http) {
        session_destroy(s, false);
        return STEP_WAIT;
    }
    session_drop_server(s, false);
    if (status == 400 || status == 408 || status == 500)
        t->keep_client = false;
    if (slot >= 0 && p->error_locations[slot])
        return reply_error_location(s, p->error_locations[slot]);
    raw = slot >= 0 && p->error_raw[slot].ptr ? p->error_raw[slot] : errors_builtin(&t->arena, status);
    if (raw.len == 0) {
        t->status = status;
        session_destroy(s, false);
        return STEP_WAIT;
    }
    if (reply_from_raw(s, raw) != 0) {
        session_destroy(s, false);
        return STEP_WAIT;
    }
    return reply_send(s);
}

enum step session_step_reply(struct session *s)
{
    struct txn *t = s->txn;
    struct flow *f = &s->res;

    while (f->head.len || t->reply_body.len) {
        struct iovec iov[2] = {
            {(void *)(uintptr_t)f->head.ptr, f->head.len},
            {(void *)(uintptr_t)t->reply_body.ptr, t->reply_body.len},
        };
        int first = f->head.len ? 0 : 1;
        int count = (t->reply_body.len ? 2 : 1) - first;
        ptrdiff_t n = conn_sendv(&s->client, iov + first, count, false);
        size_t from_head;

        if (n == SP_EAGAIN)
            return STEP_WAIT;
        if (n < 0) {
            session_fail(s, 'C', 'D');
            session_destroy(s, true);
            return STEP_WAIT;
        }
        from_head = (size_t)n < f->head.len ? (size_t)n : f->head.len;
        f->head = str_from(f->head, from_head);
        t->reply_body = str_from(t->reply_body, (size_t)n - from_head);
        f->sent += (uint64_t)n;
        s->client_activity_us = session_now(s);
    }
    if (conn_flush(&s->client) == SP_EAGAIN)
        return STEP_WAIT;
    t->response_started = true;
    f->complete = f->delivered = true;
    return session_finish(s);
}
