/*
 * One timer a session: which timeouts apply in which state, and what happens
 * when one of them has passed.
 */
#include "proxy/session.h"

static uint64_t deadline_after(uint64_t since_us, int64_t timeout_us)
{
    return timeout_us == CFG_UNSET || timeout_us <= 0 ? UINT64_MAX : since_us + (uint64_t)timeout_us;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static int64_t first_set(int64_t a, int64_t b, int64_t c)
{
    return a != CFG_UNSET ? a : b != CFG_UNSET ? b : c;
}

int64_t session_timeout_tarpit(const struct session *s)
{
    return first_set(s->txn->outcome.timeout_tarpit_us, s->frontend->cfg->timeout_tarpit_us,
                     s->frontend->cfg->timeout_connect_us);
}

static int64_t timeout_client(const struct session *s)
{
    const struct txn *t = s->txn;

    if (t && t->outcome.timeout_client_us >= 0)
        return t->outcome.timeout_client_us;
    return s->frontend->cfg->timeout_client_us;
}

static int64_t timeout_server(const struct session *s)
{
    const struct txn *t = s->txn;

    return t->outcome.timeout_server_us >= 0 ? t->outcome.timeout_server_us : t->backend->cfg->timeout_server_us;
}

/* In a tunnel "timeout tunnel" replaces both sides'; a side that has ended waits for its "-fin". */
static uint64_t relay_client_deadline(const struct session *s)
{
    const struct txn *t = s->txn;
    int64_t us = timeout_client(s);
    bool reading = !s->req.complete && !s->req.delivered;
    bool writing = flow_pending(&s->res) || (s->client.tls && tls_conn_unsent(s->client.tls));

    if (t->tunnel || !s->http) {
        if (s->res.delivered && s->frontend->cfg->timeout_client_fin_us != CFG_UNSET)
            us = s->frontend->cfg->timeout_client_fin_us;
        else if (t->backend->cfg->timeout_tunnel_us != CFG_UNSET)
            us = t->outcome.timeout_tunnel_us >= 0 ? t->outcome.timeout_tunnel_us : t->backend->cfg->timeout_tunnel_us;
        else if (s->req.delivered && !writing)
            return UINT64_MAX;
    } else if (!reading && !writing) {
        return UINT64_MAX;
    }
    return deadline_after(s->client_activity_us, us);
}

static uint64_t relay_server_deadline(const struct session *s)
{
    const struct txn *t = s->txn;
    int64_t us = timeout_server(s);
    bool writing = flow_pending(&s->req) > 0;
    bool client_blocked = flow_pending(&s->res) || (s->client.tls && tls_conn_unsent(s->client.tls));

    if (t->tunnel || !s->http) {
        if (s->req.delivered && t->backend->cfg->timeout_server_fin_us != CFG_UNSET)
            us = t->backend->cfg->timeout_server_fin_us;
        else if (t->backend->cfg->timeout_tunnel_us != CFG_UNSET)
            return UINT64_MAX; /* the client's side keeps the common time */
        else if (s->res.delivered && !writing)
            return UINT64_MAX;
    } else if (!writing && (!s->req.delivered || client_blocked || s->res.complete)) {
        return UINT64_MAX; /* nothing is expected of the server now */
    }
    return deadline_after(s->server_activity_us, us);
}

/* Activity of either side counts for a tunnel. */
static uint64_t relay_deadline(const struct session *s)
{
    if ((s->txn->tunnel || !s->http) && s->txn->backend->cfg->timeout_tunnel_us != CFG_UNSET &&
        !s->req.delivered && !s->res.delivered) {
        uint64_t last = s->client_activity_us > s->server_activity_us ? s->client_activity_us : s->server_activity_us;
        int64_t us = s->txn->outcome.timeout_tunnel_us >= 0 ? s->txn->outcome.timeout_tunnel_us
                                                            : s->txn->backend->cfg->timeout_tunnel_us;

        return deadline_after(last, us);
    }
    return earlier(relay_client_deadline(s), relay_server_deadline(s));
}

static uint64_t session_deadline(const struct session *s)
{
    const struct cfg_proxy *fe = s->frontend->cfg;
    const struct txn *t = s->txn;

    switch ((enum session_state)s->state) {
    case SESSION_PROXY_HEADER:
    case SESSION_TLS_HANDSHAKE:
        return deadline_after(s->accept_us,
                              first_set(fe->timeout_client_hs_us, fe->timeout_http_request_us, fe->timeout_client_us));
    case SESSION_TCP_CONTENT:
        return earlier(deadline_after(s->ready_us, s->frontend->inspect_delay_us),
                       deadline_after(s->client_activity_us, fe->timeout_client_us));
    case SESSION_IDLE:
        return deadline_after(s->idle_since_us, first_set(fe->timeout_http_keep_alive_us, fe->timeout_http_request_us,
                                                          fe->timeout_client_us));
    case SESSION_REQUEST:
        return earlier(deadline_after(t->first_byte_us ? t->first_byte_us
                                      : s->request_count > 1 ? s->idle_since_us
                                                             : s->ready_us,
                                      first_set(fe->timeout_http_request_us, CFG_UNSET, fe->timeout_client_us)),
                       deadline_after(s->client_activity_us, fe->timeout_client_us));
    case SESSION_TARPIT:
        return deadline_after(t->request_done_us, session_timeout_tarpit(s));
    case SESSION_QUEUED:
        return deadline_after(t->queue_start_us,
                              first_set(t->outcome.timeout_queue_us, t->backend->cfg->timeout_queue_us,
                                        t->backend->cfg->timeout_connect_us));
    case SESSION_RETRY_WAIT:
        return t->retry_at_us;
    case SESSION_CONNECT:
    case SESSION_SERVER_HELLO:
        return deadline_after(t->connect_start_us, first_set(t->outcome.timeout_connect_us, CFG_UNSET,
                                                             t->backend->cfg->timeout_connect_us));
    case SESSION_RELAY:
        return relay_deadline(s);
    case SESSION_REPLY:
        return deadline_after(s->client_activity_us, timeout_client(s));
    case SESSION_LINGER:
        return s->linger_until_us;
    case SESSION_ASSIGN:
    case SESSION_DEAD:
        break;
    }
    return UINT64_MAX;
}

void session_arm(struct session *s)
{
    io_timer_set(s->worker->loop, &s->timer, session_deadline(s));
}

/* --- what a passed deadline means ---------------------------------------------------- */

static enum step timeout_end(struct session *s, char cause, char stage)
{
    session_fail(s, cause, stage);
    session_destroy(s, false);
    return STEP_WAIT;
}

static enum step timeout_request(struct session *s)
{
    struct txn *t = s->txn;

    if (!t->first_byte_us && (s->request_count > 1 || s->frontend->cfg->http_ignore_probes)) {
        t->no_log = true;
        return timeout_end(s, 'c', 'R');
    }
    session_fe(s)->request_errors++;
    t->bad_request = true;
    if (!t->first_byte_us && s->frontend->cfg->dontlognull)
        t->no_log = true;
    session_fail(s, 'c', 'R');
    return session_reply_error(s, 408);
}

static enum step timeout_relay(struct session *s)
{
    bool response_seen = s->res.head_done;
    bool server = relay_server_deadline(s) <= session_now(s);

    if (s->txn->tunnel || !s->http)
        return timeout_end(s, server ? 's' : 'c', 'D');
    if (!server) {
        session_fe(s)->client_aborts++;
        session_fail(s, 'c', response_seen ? 'D' : 'H');
        if (!response_seen)
            return session_reply_error(s, 408);
        return timeout_end(s, 'c', 'D');
    }
    session_be(s)->response_errors++;
    session_srv(s)->response_errors++;
    if (response_seen)
        return timeout_end(s, 's', 'D');
    return session_server_failed(s, 's', 'H', 504);
}

static enum step session_timed_out(struct session *s)
{
    switch ((enum session_state)s->state) {
    case SESSION_PROXY_HEADER:
    case SESSION_TLS_HANDSHAKE:
        session_log_connection(s, s->state == SESSION_PROXY_HEADER ? "Timeout while waiting for PROXY protocol header"
                                                                   : "Timeout during SSL handshake");
        session_destroy(s, true);
        return STEP_WAIT;
    case SESSION_IDLE:
        session_destroy(s, false);
        return STEP_WAIT;
    case SESSION_REQUEST:
        return timeout_request(s);
    case SESSION_QUEUED:
        session_be(s)->connect_errors++;
        session_fail(s, 's', 'Q');
        queue_leave(s);
        return s->http ? session_reply_error(s, 503) : timeout_end(s, 's', 'Q');
    case SESSION_CONNECT:
    case SESSION_SERVER_HELLO:
        return session_server_failed(s, 's', 'C', 503);
    case SESSION_RELAY:
        return timeout_relay(s);
    case SESSION_REPLY:
        return timeout_end(s, 'c', 'D');
    case SESSION_TCP_CONTENT:
    case SESSION_TARPIT:
    case SESSION_RETRY_WAIT:
    case SESSION_LINGER:
    case SESSION_ASSIGN:
    case SESSION_DEAD:
        break; /* their steps look at the clock themselves */
    }
    return STEP_AGAIN;
}

void session_timer_fired(struct io_timer *timer)
{
    struct session *s = LIST_ENTRY(timer, struct session, timer);

    if (s->state == SESSION_DEAD)
        return;
    if (session_deadline(s) > session_now(s)) {
        session_arm(s);
        return;
    }
    session_timed_out(s);
    session_run(s);
}
