/*
 * Connections to servers: made, lent to sessions, kept idle per worker, purged.
 */
#include "proxy/session.h"

#include <errno.h>
#include <stdlib.h>

#define CONN_FREE_KEEP 512

struct server_conn *pool_new_conn(struct worker *w, struct server *server)
{
    struct server_conn *c = w->free_conns;

    if (c) {
        w->free_conns = *(void **)c;
        w->free_conn_count--;
    } else {
        c = malloc(sizeof(*c));
        if (!c)
            return NULL;
    }
    memset(c, 0, sizeof(*c));
    list_init(&c->link);
    c->worker = w;
    c->server = server;
    io_sock_init(&c->conn.sock, w->loop, -1, session_server_event);
    c->conn.sock.ready = 0; /* nothing to read before it is connected */
    return c;
}

static void pool_free_deferred(struct io_deferred *d)
{
    struct server_conn *c = LIST_ENTRY(d, struct server_conn, deferred);
    struct worker *w = c->worker;

    if (w->free_conn_count >= CONN_FREE_KEEP) {
        free(c);
        return;
    }
    *(void **)c = w->free_conns;
    w->free_conns = c;
    w->free_conn_count++;
}

static void pool_unlink(struct server_conn *c)
{
    struct worker *w = c->worker;

    list_del(&c->link);
    w->pools[c->server->index].count--;
    w->servers[c->server->index].idle--;
    atomic_fetch_sub_explicit(&c->server->idle_total, 1, memory_order_relaxed);
}

void pool_close(struct server_conn *c, bool reset)
{
    if (list_is_linked(&c->link))
        pool_unlink(c);
    if (c->keeper)
        c->keeper->kept = NULL;
    c->keeper = NULL;
    conn_close(&c->conn, reset);
    io_loop_defer(c->worker->loop, &c->deferred, pool_free_deferred);
}

/*
 * Nothing is under way on it: a reset spares both sides the closing handshake, and us a port in TIME_WAIT for each
 * connection that was made.
 */
static void pool_close_idle(struct server_conn *c)
{
    pool_close(c, !c->conn.sock.read_closed && !c->conn.tls);
}

void pool_drop_kept(struct session *s)
{
    if (s->kept)
        pool_close_idle(s->kept);
}

/* Dead, or with bytes that nobody asked for. `look`: ask the kernel, for requests that cannot be repeated. */
static bool pool_is_stale(struct server_conn *c, bool look)
{
    if (c->conn.sock.read_closed || (c->conn.sock.ready & IO_READ))
        look = true;
    return look && !io_sock_is_silent(&c->conn.sock);
}

static bool pool_may_lend(const struct session *s, const struct server_conn *c)
{
    switch (s->txn->backend->cfg->reuse) {
    case CFG_REUSE_NEVER:
        return false;
    case CFG_REUSE_SAFE:
        return s->request_count > 1;
    case CFG_REUSE_AGGRESSIVE:
        return s->request_count > 1 || c->request_count > 1;
    case CFG_REUSE_ALWAYS:
        break;
    }
    return true;
}

static bool pool_is_repeatable(const struct session *s)
{
    switch (s->txn->req.method) {
    case HTTP_GET:
    case HTTP_HEAD:
    case HTTP_OPTIONS:
    case HTTP_TRACE:
        return true;
    default:
        return false;
    }
}

struct server_conn *pool_take(struct session *s, struct server *server)
{
    struct list *conns = &s->worker->pools[server->index].conns;
    bool look = !pool_is_repeatable(s);

    if (s->kept) {
        struct server_conn *c = s->kept;

        if (c->server == server && !pool_is_stale(c, look)) {
            s->kept = NULL;
            c->keeper = NULL;
            return c;
        }
        pool_drop_kept(s);
    }
    while (!list_is_empty(conns)) {
        struct server_conn *c = LIST_ENTRY(conns->next, struct server_conn, link);

        if (!pool_may_lend(s, c))
            return NULL;
        if (pool_is_stale(c, look)) {
            pool_close(c, false);
            continue;
        }
        pool_unlink(c);
        return c;
    }
    return NULL;
}

void pool_give(struct server_conn *c)
{
    struct worker *w = c->worker;
    const struct cfg_server *cfg = c->server->cfg;
    struct idle_pool *pool = &w->pools[c->server->index];

    if (w->draining || c->server->backend->cfg->reuse == CFG_REUSE_NEVER || cfg->pool_max_conn == 0 ||
        (cfg->pool_max_conn > 0 && atomic_load_explicit(&c->server->idle_total, memory_order_relaxed) >=
                                       (unsigned)cfg->pool_max_conn) ||
        (cfg->max_reuse >= 0 && c->request_count > (uint32_t)cfg->max_reuse) || !server_is_reachable(c->server)) {
        pool_close_idle(c);
        return;
    }
    if (pool->count >= pool->need && pool->count > 0) /* the oldest makes room */
        pool_close_idle(LIST_ENTRY(pool->conns.prev, struct server_conn, link));
    c->idle_since_us = io_loop_now(w->loop);
    list_push_front(&pool->conns, &c->link);
    pool->count++;
    w->servers[c->server->index].idle++;
    atomic_fetch_add_explicit(&c->server->idle_total, 1, memory_order_relaxed);
}

/*
 * Closes connections that nobody wanted for the server's purge delay; with `all`, every one. Called once a second: what
 * was needed of late counts half as much a second later.
 */
void pool_purge(struct worker *w, bool all)
{
    uint64_t now = io_loop_now(w->loop);

    for (int i = 0; i < w->app->server_count; i++) {
        struct list *conns = &w->pools[i].conns;
        int64_t delay_us = w->app->servers[i]->cfg->pool_purge_delay_us;

        w->pools[i].need -= w->pools[i].need / 2;
        if ((int64_t)w->pools[i].need < w->servers[i].current)
            w->pools[i].need = (unsigned)w->servers[i].current;

        while (!list_is_empty(conns)) {
            struct server_conn *oldest = LIST_ENTRY(conns->prev, struct server_conn, link);

            if (!all && (delay_us < 0 || now - oldest->idle_since_us < (uint64_t)delay_us))
                break;
            pool_close_idle(oldest);
        }
    }
}
