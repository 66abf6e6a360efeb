/*
 * The response's head: reading it, rules, cookies, compression, and its framing
 * for the client. RFC 9112 section 6, RFC 9110 section 15.2.
 */
#include "proxy/check.h"
#include "proxy/compress.h"
#include "proxy/session.h"

static enum step response_refused(struct session *s)
{
    session_be(s)->response_errors++;
    session_srv(s)->response_errors++;
    return session_server_failed(s, 'P', 'H', 502);
}

/* 100, 103 and the like go to the client at once; HTTP/1.0 clients never see them. */
static enum step response_interim(struct session *s, size_t head_bytes)
{
    struct txn *t = s->txn;
    struct flow *f = &s->res;

    if (t->version >= 11) {
        f->head = session_write_head(s, &t->res);
        if (!f->head.ptr)
            return session_server_failed(s, 'I', 'H', 500);
    }
    buf_consume(&f->win, head_bytes);
    f->scan = (struct h1_scan){0};
    http_msg_init(&t->res, &t->arena);
    return STEP_AGAIN;
}

/* 101, or 2xx to CONNECT: from here on both directions are opaque. */
static enum step response_tunnel(struct session *s)
{
    struct txn *t = s->txn;
    struct http_msg *m = &t->res;

    t->tunnel = true;
    t->keep_client = t->keep_server = false;
    http_msg_strip_hop_by_hop(m);
    if (m->status == 101 && http_msg_add(m, STR("Connection"), STR("upgrade")) != 0)
        return session_server_failed(s, 'I', 'H', 500);
    h1_body_init(&s->req.body, HTTP_FRAMING_CLOSE, 0);
    h1_body_init(&s->res.body, HTTP_FRAMING_CLOSE, 0);
    s->req.complete = s->req.delivered = s->req.eof = false;
    s->res.complete = false;
    s->res.head_done = true;
    s->res.head = session_write_head(s, m);
    return s->res.head.ptr ? STEP_AGAIN : session_server_failed(s, 'I', 'H', 500);
}

static bool response_opens_tunnel(const struct session *s)
{
    const struct txn *t = s->txn;

    if (t->res.status == 101)
        return t->upgrade;
    return t->req.method == HTTP_CONNECT && t->res.status / 100 == 2;
}

/* Rules of backend, then frontend. False: an answer of our own took the response's place. */
static bool response_rules(struct session *s, enum step *step)
{
    struct txn *t = s->txn;
    struct proxy *order[2] = {t->backend, t->backend == s->frontend || s->upgraded ? NULL : s->frontend};

    *step = STEP_AGAIN;
    for (int i = 0; i < 2 && order[i]; i++) {
        switch (session_run_rules(s, order[i], RULES_HTTP_RESPONSE)) {
        case RULES_DENY:
            session_be(s)->denied_responses++;
            session_fe(s)->denied_responses++;
            session_fail(s, 'P', 'H');
            *step = session_reply(s, &t->outcome.reply);
            return false;
        case RULES_REPLY:
            session_fail(s, 'L', 'H');
            *step = session_reply(s, &t->outcome.reply);
            return false;
        case RULES_SILENT_DROP:
        case RULES_REJECT:
            session_fail(s, 'P', 'H');
            session_destroy(s, true);
            return false;
        case RULES_ERROR:
            session_fail(s, 'I', 'H');
            *step = session_reply_error(s, 500);
            return false;
        default:
            break;
        }
    }
    for (int i = 0; i < 2 && order[i]; i++)
        session_run_rules(s, order[i], RULES_HTTP_AFTER_RESPONSE);
    return true;
}

/* Persistence of both connections and the coding that the client can read. */
static int response_set_connection(struct session *s)
{
    struct txn *t = s->txn;
    struct http_msg *m = &t->res;
    bool was_close = (m->flags & HTTP_MSG_CONN_CLOSE) != 0;

    if (m->version >= 11 ? was_close : !(m->flags & HTTP_MSG_CONN_KEEP_ALIVE))
        t->keep_server = false;
    if (s->res.body.framing == HTTP_FRAMING_CLOSE)
        t->keep_client = t->keep_server = false;
    if (s->res.mode == FLOW_RAW && m->framing == HTTP_FRAMING_CHUNKED && t->version < 11) {
        s->res.mode = FLOW_DECHUNK;
        t->keep_client = false;
        http_msg_del_id(m, HTTP_FIELD_TRANSFER_ENCODING);
    }
    if (s->worker->draining || s->client.sock.read_closed)
        t->keep_client = false;
    http_msg_strip_hop_by_hop(m);
    if (!t->keep_client)
        return t->version >= 11 || m->version >= 11 ? http_msg_add(m, STR("Connection"), STR("close")) : 0;
    if (t->version < 11 || m->version < 11)
        return http_msg_add(m, STR("Connection"), STR("keep-alive"));
    return 0;
}

static void response_count(struct session *s)
{
    struct txn *t = s->txn;
    unsigned class = session_status_class(t->res.status);

    t->response_us = session_now(s);
    t->status = t->res.status;
    check_observe(t->server, true, t->status < 500 || t->status == 501 || t->status == 505);
    session_fe(s)->responses[class]++;
    session_be(s)->be_responses[class]++;
    session_srv(s)->responses[class]++;
}

/* The final head is complete and parsed. */
static enum step response_final(struct session *s, size_t head_bytes)
{
    struct txn *t = s->txn;
    struct http_msg *m = &t->res;
    struct flow *f = &s->res;
    enum step step;

    response_count(s);
    flow_pin_head(f, head_bytes);
    h1_body_init(&f->body, m->framing, m->content_length);
    f->complete = h1_body_is_done(&f->body);
    t->rules.res = m;
    t->rules.response_stage = true;
    t->rules.req_vars.first = NULL; /* variables of the request end with it */
    if (m->status == 101 && http_msg_find(&t->req, HTTP_FIELD_SEC_WEBSOCKET_KEY) &&
        !http_msg_find(m, HTTP_FIELD_SEC_WEBSOCKET_ACCEPT))
        return response_refused(s);
    if (cookie_write_response(t->backend, t->server, &t->req, m, io_loop_wall(s->worker->loop), &t->cookie) != 0)
        return session_server_failed(s, 'I', 'H', 500);
    if (!response_rules(s, &step))
        return step;
    if (s->frontend->res_capture_count)
        session_capture(s, true);
    if (response_opens_tunnel(s))
        return response_tunnel(s);
    if (compress_start(s->frontend, t->backend, &t->req, t->accept_encoding, m, &t->compressor) == 0 && t->compressor) {
        f->mode = FLOW_COMPRESS;
        if (f->body.framing == HTTP_FRAMING_CLOSE)
            t->keep_server = false;
    }
    if (response_set_connection(s) != 0)
        return session_server_failed(s, 'I', 'H', 500);
    f->head_done = true;
    f->head = session_write_head(s, m);
    if (s->frontend->cfg->logasap) { /* now, with what is known */
        t->end_us = session_now(s);
        session_log(s);
        t->no_log = true;
    }
    return f->head.ptr ? STEP_AGAIN : session_server_failed(s, 'I', 'H', 500);
}

enum step session_response_head(struct session *s)
{
    struct txn *t = s->txn;
    struct flow *f = &s->res;
    enum h1_error error = H1_OK;
    size_t head_bytes, error_at;
    int rc = h1_parse_response(&f->scan, buf_str(&f->win), &s->frontend->response_limits,
                               (enum http_method)t->req.method, &t->res, &head_bytes, &error, &error_at);

    if (rc == SP_EAGAIN)
        return STEP_WAIT;
    if (rc != 0) {
        session_log_refusal(s, true, error);
        return response_refused(s);
    }
    if (t->res.status < 200 && t->res.status != 101)
        return response_interim(s, head_bytes);
    if (session_retries_status(s, t->res.status)) {
        http_msg_init(&t->res, &t->arena);
        return session_retry_status(s);
    }
    return response_final(s, head_bytes);
}
