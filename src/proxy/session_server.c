/*
 * The server's side of a transaction: choosing one, waiting for a slot, connecting,
 * and what happens when that fails.
 */
#include "proxy/balance.h"
#include "proxy/check.h"
#include "proxy/session.h"

/* HAProxy waits this long before it tries the same server again. */
#define RETRY_PAUSE_US 1000000

void session_server_event(struct io_sock *sock, unsigned events)
{
    struct server_conn *c = (struct server_conn *)(void *)sock;

    if (c->session)
        session_run(c->session);
    else if (conn_is_open(&c->conn) && (events & (IO_READ | IO_HUP | IO_ERROR)))
        pool_close(c, false); /* idle: whatever it says, it can serve nobody any more */
}

/* --- choice ----------------------------------------------------------------------- */

struct server *session_assign_by_rule(struct session *s)
{
    const struct proxy *be = s->txn->backend;

    for (int i = 0; i < be->use_server_count; i++) {
        const struct use_server *u = &be->use_servers[i];
        struct server *server = u->server;

        if (!rules_cond_eval(u->cond, &s->txn->rules))
            continue;
        if (!server) {
            struct str name = rules_fmt_str(u->name, &s->txn->rules);

            for (int k = 0; k < be->server_count && !server; k++)
                if (str_eq(be->servers[k]->name, name))
                    server = be->servers[k];
        }
        if (server && (server_is_reachable(server) || be->cfg->persist))
            return server;
    }
    return NULL;
}

static struct server *assign_by_balance(struct session *s, bool *all_full)
{
    struct txn *t = s->txn;
    struct balance_request r = {
        .req = s->http ? &t->req : NULL,
        .src = &s->src,
        .body = buf_str(&s->req.win),
        .rules = &t->rules,
        .avoid = t->failed_server,
        .rng = &s->worker->rng,
    };

    return balance_pick(t->backend->balance, &r, all_full);
}

static enum step assign_none(struct session *s)
{
    session_fail(s, 'S', 'C');
    session_be(s)->connect_errors++;
    return s->http ? session_reply_error(s, 503) : session_refuse(s);
}

static enum step assign_wait(struct session *s, struct server *server)
{
    int rc;

    if (!s->txn->queue_start_us)
        s->txn->queue_start_us = session_now(s);
    rc = queue_enter(s, server);
    if (rc != 0)
        return assign_none(s);
    s->state = SESSION_QUEUED;
    if (conn_watch(&s->client) != 0)
        session_destroy(s, true);
    return s->state == SESSION_DEAD ? STEP_WAIT : STEP_AGAIN;
}

static enum step assign_take(struct session *s, struct server *server)
{
    struct txn *t = s->txn;
    struct server_counters *sc;

    t->server = server;
    t->has_slot = true;
    t->assigned_us = session_now(s);
    sc = session_srv(s);
    sc->sessions++;
    sc->current++;
    if (sc->current > sc->current_max)
        sc->current_max = sc->current;
    if (sc->current > s->worker->pools[server->index].need)
        s->worker->pools[server->index].need = (unsigned)sc->current;
    s->state = SESSION_CONNECT;
    return STEP_AGAIN;
}

enum step session_step_assign(struct session *s)
{
    struct txn *t = s->txn;
    struct server *server = NULL;
    bool all_full = false;

    if (!t->redispatched) {
        server = t->cookie.server;
    }
    if (!server && t->failed_server && !t->redispatched && server_is_usable(t->failed_server))
        server = t->failed_server; /* the same again */
    for (int tries = 0; tries < 3; tries++) {
        if (!server)
            server = assign_by_balance(s, &all_full);
        if (!server)
            return all_full ? assign_wait(s, NULL) : assign_none(s);
        if (queue_try_slot(server))
            return assign_take(s, server);
        if (server->cfg->maxqueue == 0 ||
            atomic_load_explicit(&server->queued, memory_order_relaxed) < (unsigned)server->cfg->maxqueue)
            return assign_wait(s, server);
        server = NULL; /* its queue is full: another one */
    }
    return assign_wait(s, NULL);
}

enum step session_step_queued(struct session *s)
{
    struct txn *t = s->txn;
    bool told = t->pending && t->pending->delivered;
    struct server *granted = told ? t->pending->granted : NULL;

    if (granted) {
        queue_leave(s);
        return assign_take(s, granted);
    }
    if (told) { /* kicked: the backend has changed */
        queue_leave(s);
        s->state = SESSION_ASSIGN;
        return STEP_AGAIN;
    }
    if (s->client_gone || ((s->client.sock.ready & IO_HUP) && t->backend->cfg->abortonclose)) {
        session_fail(s, 'C', 'Q');
        session_fe(s)->client_aborts++;
        session_destroy(s, false);
    }
    return STEP_WAIT;
}

void session_release_slot(struct session *s)
{
    struct txn *t = s->txn;

    if (!t->has_slot)
        return;
    t->has_slot = false;
    session_srv(s)->current--;
    queue_release_slot(t->server);
}

/* --- failure ------------------------------------------------------------------------- */

/* Another attempt is allowed: at once elsewhere, or after a pause at the same server. */
static enum step server_retry(struct session *s, bool was_reused)
{
    struct txn *t = s->txn;
    const struct cfg_proxy *cfg = t->backend->cfg;

    s->req.head = t->request_head;
    s->req.sent = 0;
    flow_release(s->worker, &s->res);
    flow_init(&s->res);
    if (!s->http) {
        s->res.head_done = true;
        h1_body_init(&s->res.body, HTTP_FRAMING_CLOSE, 0);
    }
    s->req.delivered = false;
    t->failed_server = t->server;
    if (was_reused) { /* the pool's connection was stale: no attempt was lost */
        t->fresh_only = true;
        s->state = SESSION_ASSIGN;
        return STEP_AGAIN;
    }
    t->retries_left--;
    t->retries++;
    session_be(s)->retries++;
    session_srv(s)->retries++;
    if (cfg->redispatch && (t->retries_left == 0 || t->backend->server_count > 1) &&
        (cfg->redispatch_interval > 0 ? t->retries % (unsigned)cfg->redispatch_interval == 0 : t->retries_left == 0)) {
        t->redispatched = true;
        session_be(s)->redispatches++;
        session_srv(s)->redispatches++;
        s->state = SESSION_ASSIGN;
        return STEP_AGAIN;
    }
    t->retry_at_us = session_now(s) + RETRY_PAUSE_US;
    if (cfg->timeout_connect_us != CFG_UNSET && cfg->timeout_connect_us < RETRY_PAUSE_US)
        t->retry_at_us = session_now(s) + (uint64_t)cfg->timeout_connect_us;
    s->state = SESSION_RETRY_WAIT;
    return STEP_AGAIN;
}

/* Whether "retry-on" repeats a failure of this kind. */
static bool server_may_retry(const struct session *s, char cause, char stage)
{
    const struct txn *t = s->txn;
    unsigned bits = t->backend->retry_bits;

    if (t->retries_left == 0)
        return false;
    if (stage == 'C')
        return (bits & RETRY_CONN_FAILURE) != 0;
    if (stage != 'H' || !t->replayable || t->outcome.disable_l7_retry)
        return false;
    return (cause == 'S' && (bits & RETRY_EMPTY_RESPONSE)) || (cause == 's' && (bits & RETRY_RESPONSE_TIMEOUT)) ||
           (cause == 'P' && (bits & RETRY_JUNK_RESPONSE));
}

bool session_retries_status(const struct session *s, unsigned status)
{
    const struct txn *t = s->txn;
    const struct proxy *be = t->backend;

    if (!t->replayable || t->retries_left == 0 || t->outcome.disable_l7_retry)
        return false;
    if ((be->retry_bits & RETRY_5XX) && (status == 500 || (status >= 502 && status <= 504)))
        return true;
    for (int i = 0; i < be->retry_status_count; i++)
        if (be->retry_statuses[i] == status)
            return true;
    return false;
}

enum step session_retry_status(struct session *s)
{
    session_drop_server(s, false);
    session_release_slot(s);
    return server_retry(s, false);
}

enum step session_server_failed(struct session *s, char cause, char stage, unsigned status)
{
    struct txn *t = s->txn;
    bool connecting = stage == 'C';
    bool stale = stage == 'H' && cause == 'S' && t->reused && t->replayable;

    session_drop_server(s, false);
    if (t->server) {
        if (connecting)
            session_srv(s)->connect_errors++;
        if (cause != 'R' && cause != 'I' && !stale)
            check_observe(t->server, !connecting, false);
        session_release_slot(s);
    }
    if (t->server && !t->response_started && (stale || server_may_retry(s, cause, stage)))
        return server_retry(s, stale);
    if (connecting)
        session_be(s)->connect_errors++;
    session_fail(s, cause, stage);
    if (s->http && !t->response_started)
        return session_reply_error(s, status);
    session_destroy(s, false);
    return STEP_WAIT;
}

enum step session_step_retry_wait(struct session *s)
{
    if (session_now(s) < s->txn->retry_at_us)
        return STEP_WAIT;
    s->state = SESSION_ASSIGN;
    return STEP_AGAIN;
}

/* --- connecting ----------------------------------------------------------------------- */

static void connect_address(struct session *s, const struct server *server, struct addr *out)
{
    struct addr dst;

    *out = server->address;
    if (server->uses_client_port && session_dst(s, &dst) == 0)
        addr_set_port(out, (uint16_t)(addr_port(&dst) + server->port_offset));
}

/* A connection is ready to carry the request. */
enum step session_connect_done(struct session *s)
{
    struct txn *t = s->txn;

    t->connected_us = session_now(s);
    if (!t->reused)
        check_observe(t->server, false, true);
    s->server->request_count++;
    s->server_activity_us = session_now(s);
    if (s->http)
        s->req.head = t->request_head;
    s->state = SESSION_RELAY;
    return STEP_AGAIN;
}

static void connect_use(struct session *s, struct server_conn *c)
{
    s->server = c;
    c->session = s;
}

static enum step connect_start(struct session *s)
{
    struct txn *t = s->txn;
    struct server *server = t->server;
    struct server_conn *c = NULL;
    struct addr to;

    t->connect_start_us = session_now(s);
    t->reused = false;
    if (s->http && !t->fresh_only)
        c = pool_take(s, server);
    if (c) {
        connect_use(s, c);
        t->reused = true;
        session_srv(s)->reuses++;
        return session_connect_done(s);
    }
    c = pool_new_conn(s->worker, server);
    if (!c)
        return session_server_failed(s, 'R', 'C', 503);
    connect_use(s, c);
    session_srv(s)->connects++;
    connect_address(s, server, &to);
    if (c->conn.sock.transport->connect(&c->conn.sock, &to,
                                        server->source.u.sa.sa_family == AF_UNSPEC ? NULL : &server->source) != 0)
        return session_server_failed(s, 'S', 'C', 503);
    return STEP_AGAIN;
}

enum step session_step_connect(struct session *s)
{
    struct server_conn *c;
    int rc;

    if (!s->server)
        return connect_start(s);
    c = s->server;
    if (s->client_gone) {
        session_fail(s, 'C', 'C');
        session_fe(s)->client_aborts++;
        session_destroy(s, true);
        return STEP_WAIT;
    }
    if (c->conn.sock.connecting) {
        if (!(c->conn.sock.ready & IO_WRITE))
            return STEP_WAIT;
        rc = c->conn.sock.transport->connect_result(&c->conn.sock);
        if (rc == SP_EAGAIN)
            return STEP_WAIT;
        if (rc != 0)
            return session_server_failed(s, 'S', 'C', 503);
    }
    if (s->txn->backend->cfg->tcpka || s->txn->backend->cfg->srvtcpka)
        conn_keepalive(&c->conn);
    if (conn_watch(&c->conn) != 0)
        return session_server_failed(s, 'R', 'C', 503);
    if (!session_server_hello_needed(s))
        return session_connect_done(s);
    if (session_server_hello_prepare(s) != 0)
        return session_server_failed(s, 'I', 'C', 500);
    s->state = SESSION_SERVER_HELLO;
    return STEP_AGAIN;
}
