/*
 * The client's side before there is a request: PROXY header, TLS handshake,
 * content rules of mode tcp, and the wait between requests.
 */
#include "io/proxy_header.h"
#include "proxy/session.h"

static enum step session_end_early(struct session *s, const char *reason)
{
    session_log_connection(s, reason);
    session_destroy(s, false);
    return STEP_WAIT;
}

enum step session_wait_client(struct session *s)
{
    if (conn_watch(&s->client) != 0)
        session_destroy(s, true);
    return STEP_WAIT;
}

static void session_take_proxy_header(struct session *s, const struct io_proxy_header *h)
{
    s->rcvd_proxy = true;
    if (h->local)
        return;
    s->src = h->src;
    s->dst = h->dst;
    s->pp_authority = arena_str(&s->arena, h->authority);
    s->pp_unique_id = arena_str(&s->arena, h->unique_id);
}

enum step session_step_proxy_header(struct session *s)
{
    struct io_proxy_header header;
    ptrdiff_t n;

    if (flow_attach(s->worker, &s->req, false) != 0) {
        session_destroy(s, true);
        return STEP_WAIT;
    }
    for (;;) {
        n = io_proxy_header_parse(buf_str(&s->req.win), &header);
        if (n > 0)
            break;
        if (n != SP_EAGAIN)
            return session_end_early(s, "Received something which does not look like a PROXY protocol header");
        n = flow_fill(&s->req, &s->client);
        if (n == SP_EAGAIN)
            return session_wait_client(s);
        if (n < 0)
            return session_end_early(s, "Connection closed while waiting for PROXY protocol header");
        s->client_activity_us = session_now(s);
    }
    session_take_proxy_header(s, &header);
    buf_consume(&s->req.win, (size_t)n);
    s->state = SESSION_TLS_HANDSHAKE;
    return STEP_AGAIN;
}

/* Bytes that came with the PROXY header belong to the handshake. */
static int session_start_tls(struct session *s)
{
    s->client.tls = tls_conn_new_server(s->worker->tls, s->bind->tls, &s->client.sock);
    if (!s->client.tls)
        return SP_ENOMEM;
    if (buf_len(&s->req.win) && tls_conn_feed(s->client.tls, buf_str(&s->req.win)) != 0)
        return SP_ENOMEM;
    flow_release(s->worker, &s->req);
    flow_init(&s->req);
    return 0;
}

/*
 * While the crypto queue is full: refuses at the ClientHello what would only wait, before anything is built for it.
 * 0: go on with the handshake, SP_EAGAIN: wait for more, otherwise the connection has ended.
 */
static int session_admit(struct session *s)
{
    int status;

    if (flow_attach(s->worker, &s->req, false) != 0)
        return 0;
    for (;;) {
        ptrdiff_t n;

        status = tls_server_admit(s->worker->tls, s->bind->tls, &s->client.sock, buf_str(&s->req.win));
        if (status != SP_EAGAIN)
            break;
        n = flow_fill(&s->req, &s->client);
        if (n <= 0)
            return n == SP_EAGAIN ? SP_EAGAIN : 0; /* the library sees the end, or what is too long */
        s->client_activity_us = session_now(s);
    }
    if (status != 0) {
        session_fe(s)->tls_failures++;
        s->handshake_failed = true;
        (void)session_end_early(s, "SSL handshake failure (too many handshakes wait for the crypto queue)");
    }
    return status;
}

enum step session_step_handshake(struct session *s)
{
    int rc;

    if (!s->client.tls && tls_server_is_full(s->worker->tls, s->bind->tls)) {
        rc = session_admit(s);
        if (rc != 0)
            return rc == SP_EAGAIN ? session_wait_client(s) : STEP_WAIT;
    }
    if (!s->client.tls && session_start_tls(s) != 0) {
        session_destroy(s, true);
        return STEP_WAIT;
    }
    rc = tls_conn_handshake(s->client.tls);
    if (rc == 0) {
        session_fe(s)->tls_handshakes++;
        return STEP_AGAIN;
    }
    if (rc == SP_EWANTREAD || rc == SP_EWANTWRITE || rc == SP_EWANTCRYPTO)
        return session_wait_client(s);
    session_fe(s)->tls_failures++;
    s->handshake_failed = true;
    return session_end_early(s, rc == SP_EEOF || rc == SP_ERESET
                                    ? "Connection closed during SSL handshake"
                                    : "SSL handshake failure");
}

/* --- mode tcp ------------------------------------------------------------------- */

/* The content rules decided nothing against the connection: HTTP goes on as HTTP, the rest chooses its backend. */
static enum step session_tcp_go(struct session *s)
{
    struct proxy *backend;

    if (s->http) {
        s->state = SESSION_REQUEST;
        return STEP_AGAIN;
    }
    backend = session_choose_backend(s);
    if (!backend) {
        session_fail(s, 'S', 'C');
        return session_refuse(s);
    }
    if (backend->is_http) {
        s->http = s->upgraded = true;
        s->state = SESSION_REQUEST;
        return STEP_AGAIN;
    }
    session_set_backend(s, backend);
    s->txn->request_done_us = session_now(s);
    s->txn->replayable = true;
    s->txn->cookie.server = session_assign_by_rule(s);
    s->req.head_done = s->res.head_done = true;
    h1_body_init(&s->req.body, HTTP_FRAMING_CLOSE, 0);
    h1_body_init(&s->res.body, HTTP_FRAMING_CLOSE, 0);
    s->state = SESSION_ASSIGN;
    return STEP_AGAIN;
}

/* Reads what the rules want to look at. True when more can come. */
static bool session_tcp_more(struct session *s)
{
    ptrdiff_t n;

    if (flow_attach(s->worker, &s->req, false) != 0)
        return false;
    n = flow_fill(&s->req, &s->client);
    if (n > 0) {
        s->client_activity_us = session_now(s);
        return true;
    }
    return n == SP_EAGAIN;
}

/* Content rules may ask whether this is HTTP, and look at the request: parse it where it lies. */
static void session_tcp_probe(struct session *s)
{
    struct txn *t = s->txn;
    struct h1_scan scan = {0};
    enum h1_error error;
    size_t head_bytes, at;

    if (t->rules.req || !s->req.win.mem || buf_len(&s->req.win) == 0)
        return;
    http_msg_init(&t->req, &t->arena);
    if (h1_parse_request(&scan, buf_str(&s->req.win), &s->frontend->limits, &t->req, &head_bytes, &error, &at) == 0)
        t->rules.req = &t->req;
    else
        http_msg_init(&t->req, &t->arena);
}

/* The request is parsed again, now for good: with what the rules have left in the buffer. */
static void session_tcp_forget_probe(struct session *s)
{
    s->txn->rules.req = NULL;
    http_msg_init(&s->txn->req, &s->txn->arena);
}

enum step session_step_tcp_content(struct session *s)
{
    struct txn *t = s->txn;
    const struct rules_set *set = proxy_rules(s->frontend, RULES_TCP_REQUEST_CONTENT, s->tls);
    int64_t inspect_us = s->frontend->inspect_delay_us;
    enum rules_verdict verdict = RULES_CONTINUE;
    bool more = true;
    size_t seen;

    if (rules_set_is_empty(set))
        return session_tcp_go(s);
    do {
        seen = buf_len(&s->req.win);
        if (inspect_us > 0 && conn_may_read(&s->client))
            more = session_tcp_more(s);
        t->rules.final_data = !more || inspect_us <= 0 || session_now(s) >= s->ready_us + (uint64_t)inspect_us ||
                              (s->req.win.mem && buf_room(&s->req.win) == 0);
        session_tcp_probe(s);
        verdict = rules_set_run(set, &t->rules, &t->outcome);
    } while (verdict == RULES_NEED_MORE && !t->rules.final_data && buf_len(&s->req.win) > seen);
    if (verdict != RULES_NEED_MORE)
        session_tcp_forget_probe(s);
    switch (verdict) {
    case RULES_NEED_MORE:
        if (!t->rules.final_data)
            return session_wait_client(s);
        return session_tcp_go(s);
    case RULES_SWITCH_HTTP:
        s->http = true;
        return session_tcp_go(s);
    case RULES_CONTINUE:
    case RULES_ALLOW:
        return session_tcp_go(s);
    default:
        session_fe(s)->denied_requests++;
        session_fail(s, 'P', 'R');
        session_destroy(s, verdict == RULES_SILENT_DROP);
        return STEP_WAIT;
    }
}

/* --- between requests ---------------------------------------------------------------- */

enum step session_step_idle(struct session *s)
{
    if (buf_len(&s->req.win) == 0 && !conn_may_read(&s->client)) {
        if (s->client.sock.read_closed || s->client_gone || s->worker->draining) {
            session_destroy(s, false);
            return STEP_WAIT;
        }
        return session_wait_client(s);
    }
    if (session_start_txn(s) != 0) {
        session_destroy(s, true);
        return STEP_WAIT;
    }
    s->state = rules_set_is_empty(proxy_rules(s->frontend, RULES_TCP_REQUEST_CONTENT, s->tls)) ? SESSION_REQUEST
                                                                                              : SESSION_TCP_CONTENT;
    return STEP_AGAIN;
}
