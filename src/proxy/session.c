/*
 * The life of a session and its state machine.
 */
#include "proxy/session.h"

#include "proxy/compress.h"

#include <stdlib.h>
#include <unistd.h>

#define SESSION_FREE_KEEP 1024
#define TXN_FREE_KEEP 512

static void session_client_event(struct io_sock *sock, unsigned events)
{
    struct session *s = (struct session *)(void *)sock;

    if (events & IO_ERROR)
        s->client_gone = true;
    session_run(s);
}

/* --- memory ------------------------------------------------------------------- */

static struct session *session_alloc(struct worker *w)
{
    struct session *s = w->free_sessions;

    if (s) {
        w->free_sessions = *(void **)s;
        w->free_session_count--;
    } else {
        s = malloc(sizeof(*s));
        if (!s)
            return NULL;
    }
    memset(s, 0, sizeof(*s));
    return s;
}

static void session_free_deferred(struct io_deferred *d)
{
    struct session *s = LIST_ENTRY(d, struct session, deferred);
    struct worker *w = s->worker;

    if (w->free_session_count >= SESSION_FREE_KEEP) {
        free(s);
        return;
    }
    *(void **)s = w->free_sessions;
    w->free_sessions = s;
    w->free_session_count++;
}

static struct txn *txn_alloc(struct worker *w)
{
    struct txn *t = w->free_txns;

    if (t) {
        w->free_txns = *(void **)t;
        w->free_txn_count--;
        return t;
    }
    return aligned_alloc(_Alignof(struct txn), sizeof(*t));
}

static void txn_free(struct worker *w, struct txn *t)
{
    if (t->arena.chunks)
        arena_release(&t->arena);
    if (w->free_txn_count >= TXN_FREE_KEEP) {
        free(t);
        return;
    }
    *(void **)t = w->free_txns;
    w->free_txns = t;
    w->free_txn_count++;
}

/* The arena of a transaction begins with memory inside it, so that most requests allocate nothing. */
static void txn_init_arena(struct txn *t)
{
    arena_init(&t->arena, 16384, PROXY_TXN_ARENA_LIMIT);
    t->arena.cursor = t->arena_start;
    t->arena.end = t->arena_start + sizeof(t->arena_start);
}

static void txn_init_msg(struct http_msg *m, struct arena *arena, struct http_field *fields)
{
    http_msg_init(m, arena);
    m->fields = fields;
    m->field_capacity = TXN_FIELDS;
}

int session_start_txn(struct session *s)
{
    struct txn *t = txn_alloc(s->worker);

    if (!t)
        return SP_ENOMEM;
    memset(t, 0, offsetof(struct txn, req_fields));
    txn_init_arena(t);
    txn_init_msg(&t->req, &t->arena, t->req_fields);
    txn_init_msg(&t->res, &t->arena, t->res_fields);
    rules_outcome_init(&t->outcome);
    t->cookie.request = t->cookie.response = '-';
    t->cause = t->stage = '-';
    t->retries_left = (unsigned)s->frontend->cfg->retries;
    t->start_us = s->request_count ? s->idle_since_us : s->accept_us;
    t->start_wall_us = s->request_count ? io_loop_wall(s->worker->loop) -
                                              (io_loop_now(s->worker->loop) - s->idle_since_us)
                                        : s->accept_wall_us;
    s->txn = t;
    s->request_count++;
    session_rules_ctx(s);
    return 0;
}

/* --- beginning ------------------------------------------------------------------ */

static void session_count_open(struct session *s)
{
    struct proxy_counters *fe = session_fe(s);

    fe->connections++;
    fe->fe_current++;
    if (fe->fe_current > fe->fe_current_max)
        fe->fe_current_max = fe->fe_current;
    if (s->bind->maxconn)
        atomic_fetch_add_explicit(&s->bind->current, 1, memory_order_relaxed);
    list_init(&s->later);
    list_push_back(&s->worker->sessions, &s->link);
    s->worker->session_count++;
}

static void session_count_close(struct session *s)
{
    session_fe(s)->fe_current--;
    atomic_fetch_sub_explicit(&s->worker->app->connections, 1, memory_order_relaxed);
    if (s->bind->maxconn)
        atomic_fetch_sub_explicit(&s->bind->current, 1, memory_order_relaxed);
    list_del(&s->link);
    s->worker->session_count--;
}

/* tcp-request connection and session rules: false refuses the connection. */
static bool session_admit(struct session *s, enum rules_hook hook)
{
    const struct rules_set *set = proxy_rules(s->frontend, hook, s->tls);
    struct rules_outcome outcome;
    struct rules_ctx ctx = {
        .host = &session_rules_host,
        .stream = s,
        .arena = &s->arena,
        .sess_arena = &s->arena,
        .sess_vars = &s->vars,
        .wall_us = io_loop_wall(s->worker->loop),
        .rng = &s->worker->rng,
        .tls = s->tls,
    };
    enum rules_verdict verdict;

    if (rules_set_is_empty(set))
        return true;
    rules_outcome_init(&outcome);
    verdict = rules_set_run(set, &ctx, &outcome);
    if (verdict != RULES_REJECT && verdict != RULES_SILENT_DROP && verdict != RULES_DENY)
        return true;
    session_fe(s)->denied_requests++;
    return false;
}

/* Handshakes are behind: the first transaction begins. */
static enum step session_begin(struct session *s)
{
    s->ready_us = session_now(s);
    if (!session_admit(s, RULES_TCP_REQUEST_SESSION)) {
        session_destroy(s, true);
        return STEP_WAIT;
    }
    session_fe(s)->sessions++;
    s->http = s->frontend->is_http;
    if (session_start_txn(s) != 0) {
        session_destroy(s, true);
        return STEP_WAIT;
    }
    s->state = s->http && rules_set_is_empty(proxy_rules(s->frontend, RULES_TCP_REQUEST_CONTENT, s->tls))
                   ? SESSION_REQUEST
                   : SESSION_TCP_CONTENT;
    return STEP_AGAIN;
}

void session_accept(struct bind_listener *bl, int fd, const struct addr *peer)
{
    struct worker *w = bl->worker;
    struct session *s;

    if (!worker_take_place(w, bl)) {
        worker_park(w, bl, fd, peer);
        return;
    }
    s = session_alloc(w);
    if (!s) {
        close(fd);
        atomic_fetch_sub(&w->app->connections, 1);
        return;
    }
    s->worker = w;
    s->bind = bl->bind;
    s->frontend = bl->bind->frontend;
    s->tls = bl->bind->tls != NULL;
    s->src = *peer;
    s->accept_us = s->client_activity_us = s->server_activity_us = io_loop_now(w->loop);
    s->accept_wall_us = io_loop_wall(w->loop);
    arena_init(&s->arena, 1024, PROXY_SESSION_ARENA_LIMIT);
    io_timer_init(&s->timer, session_timer_fired);
    io_sock_init(&s->client.sock, w->loop, fd, session_client_event);
    if (s->frontend->cfg->tcpka || s->frontend->cfg->clitcpka)
        conn_keepalive(&s->client);
    flow_init(&s->req);
    flow_init(&s->res);
    session_count_open(s);
    if (!session_admit(s, RULES_TCP_REQUEST_CONNECTION)) {
        session_destroy(s, true);
        return;
    }
    s->state = s->bind->cfg->accept_proxy ? SESSION_PROXY_HEADER : SESSION_TLS_HANDSHAKE;
    session_run(s);
    worker_check_limits(w, bl);
}

/* --- the machine ------------------------------------------------------------------- */

static enum step session_step_dead(struct session *s)
{
    (void)s;
    return STEP_WAIT;
}

/* After the PROXY header, and at once without one: TLS, then the first transaction. */
static enum step session_step_open(struct session *s)
{
    if (s->tls) {
        enum step step = session_step_handshake(s);

        if (step == STEP_WAIT || s->state == SESSION_DEAD)
            return STEP_WAIT;
    }
    return session_begin(s);
}

static enum step (*const session_steps[])(struct session *s) = {
    [SESSION_PROXY_HEADER] = session_step_proxy_header,
    [SESSION_TLS_HANDSHAKE] = session_step_open,
    [SESSION_TCP_CONTENT] = session_step_tcp_content,
    [SESSION_IDLE] = session_step_idle,
    [SESSION_REQUEST] = session_step_request,
    [SESSION_TARPIT] = session_step_tarpit,
    [SESSION_ASSIGN] = session_step_assign,
    [SESSION_QUEUED] = session_step_queued,
    [SESSION_RETRY_WAIT] = session_step_retry_wait,
    [SESSION_CONNECT] = session_step_connect,
    [SESSION_SERVER_HELLO] = session_step_server_hello,
    [SESSION_RELAY] = session_step_relay,
    [SESSION_REPLY] = session_step_reply,
    [SESSION_LINGER] = session_step_linger,
    [SESSION_DEAD] = session_step_dead,
};

void session_run(struct session *s)
{
    if (s->running || s->state == SESSION_DEAD)
        return;
    s->running = true;
    while (session_steps[s->state](s) == STEP_AGAIN)
        ;
    s->running = false;
    if (s->state != SESSION_DEAD)
        session_arm(s);
}

void session_fail(struct session *s, char cause, char stage)
{
    struct txn *t = s->txn;

    if (t && t->cause == '-') {
        t->cause = cause;
        t->stage = stage;
    }
}

/* --- end of a transaction ------------------------------------------------------------ */

void session_drop_server(struct session *s, bool reusable)
{
    struct server_conn *c = s->server;

    if (!c)
        return;
    s->server = NULL;
    c->session = NULL;
    if (reusable && (c->is_private || c->server->backend->cfg->reuse == CFG_REUSE_NEVER)) {
        pool_drop_kept(s);
        c->keeper = s;
        s->kept = c;
    } else if (reusable) {
        pool_give(c);
    } else {
        pool_close(c, false);
    }
}

/* Counts by status, logs, gives everything back that the transaction held, except the server connection. */
static void session_end_txn(struct session *s)
{
    struct txn *t = s->txn;

    if (!t)
        return;
    t->end_us = session_now(s);
    queue_leave(s);
    session_count_bytes(s);
    session_log(s);
    session_release_slot(s);
    if (t->counted_backend)
        session_be(s)->be_current--;
    if (t->compressor)
        compress_free(t->compressor);
    s->txn = NULL;
    txn_free(s->worker, t);
}

/* True when the server's side of the exchange ended so that another request may follow on it. */
static bool session_server_reusable(const struct session *s)
{
    const struct txn *t = s->txn;
    const struct server_conn *c = s->server;

    return c && !c->one_request && t->keep_server && !t->tunnel && !t->replied && s->req.delivered && s->res.complete &&
           buf_len(&s->res.win) == 0 && !c->conn.sock.read_closed &&
           !(c->conn.tls && tls_conn_pending(c->conn.tls));
}

/* Whatever the client has sent of its next request stays for the next transaction. */
static void session_next_request(struct session *s)
{
    struct buf rest = s->req.win;
    size_t left = buf_len(&rest);

    if (left) {
        memmove(s->req.store.mem, buf_data(&rest), left);
    } else {
        flow_release(s->worker, &s->req);
    }
    struct buf store = s->req.store;

    flow_init(&s->req);
    s->req.store = store;
    s->req.win = store;
    s->req.win.head = 0;
    s->req.win.tail = (uint32_t)left;
    flow_release(s->worker, &s->res);
    flow_init(&s->res);
}

enum step session_finish(struct session *s)
{
    struct txn *t = s->txn;
    bool keep = t->keep_client && !t->tunnel && s->http && s->req.delivered && s->res.delivered &&
                !s->client.sock.write_closed && !s->worker->draining;

    session_drop_server(s, session_server_reusable(s));
    session_end_txn(s);
    if (!keep)
        return session_close_gently(s);
    session_next_request(s);
    s->idle_since_us = s->client_activity_us = session_now(s);
    s->state = SESSION_IDLE;
    return STEP_AGAIN;
}

enum step session_refuse(struct session *s)
{
    session_end_txn(s);
    return session_close_gently(s);
}

void session_destroy(struct session *s, bool reset)
{
    if (s->state == SESSION_DEAD)
        return;
    session_drop_server(s, false);
    pool_drop_kept(s);
    session_end_txn(s);
    conn_close(&s->client, reset);
    io_timer_cancel(&s->timer);
    list_del(&s->later);
    flow_release(s->worker, &s->req);
    flow_release(s->worker, &s->res);
    arena_release(&s->arena);
    session_count_close(s);
    s->state = SESSION_DEAD;
    io_loop_defer(s->worker->loop, &s->deferred, session_free_deferred);
    worker_session_ended(s->worker);
}

void session_drain(struct session *s)
{
    if (s->state == SESSION_IDLE ||
        (s->state == SESSION_REQUEST && buf_len(&s->req.win) == 0 && s->request_count > 1))
        session_destroy(s, false);
}
