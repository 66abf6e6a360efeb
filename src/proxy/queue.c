/*
 * Waiting for a server: each server with "maxconn" has a number of slots; whoever
 * finds none waits in the server's queue (when only that server will do) or in the backend's.
 *
 * The lock of a backend guards its queues and its servers'. A slot is handed over
 * while it is held, so that it never looks free in between; the waiting session hears of it by a message to its worker.
 */
#include "proxy/session.h"

#include <stdlib.h>

bool queue_try_slot(struct server *server)
{
    unsigned limit = (unsigned)server->cfg->maxconn;
    unsigned served = atomic_load_explicit(&server->served, memory_order_relaxed);

    if (limit == 0) {
        atomic_fetch_add_explicit(&server->served, 1, memory_order_relaxed);
        return true;
    }
    do {
        if (served >= limit)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&server->served, &served, served + 1, memory_order_acquire,
                                                    memory_order_relaxed));
    return true;
}

/* Runs on the waiting session's worker. */
static void queue_message(struct io_message *m)
{
    struct pending *p = LIST_ENTRY(m, struct pending, message);

    p->delivered = true;
    if (p->session) {
        session_run(p->session);
        return;
    }
    if (p->granted)
        queue_release_slot(p->granted);
    free(p);
}

static void queue_unlink(struct pending *p)
{
    list_del(&p->link);
    atomic_fetch_sub_explicit(p->server ? &p->server->queued : &p->backend->queued, 1, memory_order_relaxed);
    p->waiting = false;
}

static void queue_tell(struct pending *p, struct server *granted)
{
    queue_unlink(p);
    p->granted = granted;
    io_loop_post(p->worker->loop, &p->message);
}

/* Hands free slots of `server` to those who wait: its own queue first, then the backend's. Lock held. */
static void queue_serve(struct proxy *backend, struct server *server)
{
    while (!list_is_empty(&server->queue) || (!list_is_empty(&backend->queue) && server_is_usable(server))) {
        struct list *from = list_is_empty(&server->queue) ? &backend->queue : &server->queue;

        if (!queue_try_slot(server))
            return;
        queue_tell(LIST_ENTRY(from->next, struct pending, link), server);
    }
}

static void queue_update_flag(struct proxy *backend)
{
    bool any = !list_is_empty(&backend->queue);

    for (int i = 0; i < backend->server_count && !any; i++)
        any = !list_is_empty(&backend->servers[i]->queue);
    atomic_store(&backend->has_queue, any);
}

/* The lock is held, so nobody else raises the maximum meanwhile. */
static unsigned queue_count(atomic_uint *queued, atomic_uint *queued_max)
{
    unsigned before = atomic_fetch_add(queued, 1);

    if (before + 1 > atomic_load(queued_max))
        atomic_store(queued_max, before + 1);
    return before;
}

int queue_enter(struct session *s, struct server *server)
{
    struct txn *t = s->txn;
    struct proxy *backend = t->backend;
    struct pending *p = calloc(1, sizeof(*p));

    if (!p)
        return SP_ENOMEM;
    p->message.run = queue_message;
    p->session = s;
    p->worker = s->worker;
    p->backend = backend;
    p->server = server;
    p->waiting = true;
    t->pending = p;
    pthread_mutex_lock(&backend->queue_lock);
    if (server) {
        t->srv_queue_pos = queue_count(&server->queued, &server->queued_max);
        list_push_back(&server->queue, &p->link);
    } else {
        t->be_queue_pos = queue_count(&backend->queued, &backend->queued_max);
        list_push_back(&backend->queue, &p->link);
    }
    atomic_store(&backend->has_queue, true);
    /* A slot given back just before it could see us. */
    for (int i = 0; i < backend->server_count; i++)
        if (!server || backend->servers[i] == server)
            queue_serve(backend, backend->servers[i]);
    queue_update_flag(backend);
    pthread_mutex_unlock(&backend->queue_lock);
    return 0;
}

void queue_leave(struct session *s)
{
    struct pending *p = s->txn ? s->txn->pending : NULL;
    bool in_flight = false;

    if (!p)
        return;
    s->txn->pending = NULL;
    pthread_mutex_lock(&p->backend->queue_lock);
    if (p->waiting) {
        queue_unlink(p);
        queue_update_flag(p->backend);
    } else {
        in_flight = !p->delivered;
    }
    pthread_mutex_unlock(&p->backend->queue_lock);
    if (in_flight)
        p->session = NULL; /* the message frees it */
    else
        free(p);
}

void queue_release_slot(struct server *server)
{
    struct proxy *backend = server->backend;

    atomic_fetch_sub(&server->served, 1);
    if (!atomic_load(&backend->has_queue))
        return;
    pthread_mutex_lock(&backend->queue_lock);
    queue_serve(backend, server);
    queue_update_flag(backend);
    pthread_mutex_unlock(&backend->queue_lock);
}

void queue_kick(struct proxy *backend)
{
    if (!atomic_load(&backend->has_queue))
        return;
    pthread_mutex_lock(&backend->queue_lock);
    while (!list_is_empty(&backend->queue))
        queue_tell(LIST_ENTRY(backend->queue.next, struct pending, link), NULL);
    for (int i = 0; i < backend->server_count; i++)
        while (!list_is_empty(&backend->servers[i]->queue))
            queue_tell(LIST_ENTRY(backend->servers[i]->queue.next, struct pending, link), NULL);
    queue_update_flag(backend);
    pthread_mutex_unlock(&backend->queue_lock);
}
