#include "proxy/worker.h"

#include "proxy/check.h"
#include "proxy/session.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define KEEP_BUFS 256
#define KEEP_BIG_BUFS 64
#define RESUME_INTERVAL_US 50000

/* --- sessions that yielded --------------------------------------------------------- */

void worker_run_later(struct worker *w, struct session *s)
{
    if (!list_is_linked(&s->later))
        list_push_back(&w->later, &s->later);
}

static bool worker_later_hook(struct io_turn_hook *h)
{
    struct worker *w = LIST_ENTRY(h, struct worker, later_hook);
    struct list batch, *item;

    if (list_is_empty(&w->later))
        return false;
    batch = w->later; /* those that yield again go into the next turn */
    batch.next->prev = batch.prev->next = &batch;
    list_init(&w->later);
    while ((item = list_pop_front(&batch)))
        session_run(LIST_ENTRY(item, struct session, later));
    return !list_is_empty(&w->later);
}

/* --- limits --------------------------------------------------------------------------- */

static bool limit_reached(int limit, int64_t current)
{
    return limit > 0 && current >= limit;
}

static bool listener_is_full(const struct app *app, const struct bind_listener *bl)
{
    return limit_reached(app->maxconn, atomic_load_explicit(&app->connections, memory_order_relaxed)) ||
           limit_reached(bl->bind->maxconn, atomic_load_explicit(&bl->bind->current, memory_order_relaxed)) ||
           (bl->bind->frontend->cfg->maxconn > 0 &&
            limit_reached(bl->bind->frontend->cfg->maxconn, proxy_current(app, bl->bind->frontend, false)));
}

bool worker_take_place(struct worker *w, const struct bind_listener *bl)
{
    struct app *app = w->app;

    if (listener_is_full(app, bl))
        return false;
    if (atomic_fetch_add(&app->connections, 1) < (unsigned)app->maxconn)
        return true;
    atomic_fetch_sub(&app->connections, 1); /* another worker was quicker */
    return false;
}

struct parked {
    struct list link;
    struct bind_listener *listener;
    struct addr peer;
    int fd;
};

void worker_park(struct worker *w, struct bind_listener *bl, int fd, const struct addr *peer)
{
    struct parked *p = malloc(sizeof(*p));

    if (!p) {
        close(fd);
        return;
    }
    p->listener = bl;
    p->peer = *peer;
    p->fd = fd;
    list_push_back(&w->parked, &p->link);
    worker_check_limits(w, bl);
}

/* As many of those that wait as there are places for; with `close_all`, none. */
static void worker_unpark(struct worker *w, bool close_all)
{
    while (!list_is_empty(&w->parked)) {
        struct parked *p = LIST_ENTRY(w->parked.next, struct parked, link);

        if (!close_all && listener_is_full(w->app, p->listener))
            return;
        list_del(&p->link);
        if (close_all)
            close(p->fd);
        else
            session_accept(p->listener, p->fd, &p->peer);
        free(p);
    }
}

static void worker_update_listeners(struct worker *w)
{
    bool paused = false;

    worker_unpark(w, false);
    for (int i = 0; i < w->listener_count; i++) {
        struct bind_listener *bl = &w->listeners[i];
        bool full = listener_is_full(w->app, bl);

        if (full && !bl->listener.paused)
            io_listener_pause(&bl->listener);
        else if (!full && bl->listener.paused)
            io_listener_resume(&bl->listener);
        paused = paused || full;
    }
    w->listeners_paused = paused;
    if (paused && w->pool_timer.deadline_us > io_loop_now(w->loop) + RESUME_INTERVAL_US)
        io_timer_set(w->loop, &w->pool_timer, io_loop_now(w->loop) + RESUME_INTERVAL_US);
}

static void worker_limit_message(struct io_message *m)
{
    struct worker *w = LIST_ENTRY(m, struct worker, limit_message);

    atomic_store(&w->limit_posted, false);
    if (!w->draining)
        worker_update_listeners(w);
}

void worker_check_limits(struct worker *w, struct bind_listener *bl)
{
    struct app *app = w->app;

    if (w->draining || !listener_is_full(app, bl))
        return;
    worker_update_listeners(w);
    for (int i = 0; i < app->worker_count; i++) /* the others listen on the same address */
        if (i != w->index && !atomic_exchange(&app->workers[i].limit_posted, true))
            io_loop_post(app->workers[i].loop, &app->workers[i].limit_message);
}

void worker_session_ended(struct worker *w)
{
    if (w->draining) {
        if (w->session_count == 0)
            io_loop_stop(w->loop);
    } else if (w->listeners_paused) {
        worker_update_listeners(w);
    }
}

/* --- once a second ---------------------------------------------------------------------- */

static void worker_measure_rates(struct worker *w)
{
    const struct app *app = w->app;

    for (int i = 0; i < app->proxy_count; i++) {
        struct proxy *p = app->proxies[i];
        struct proxy_counters c;
        uint64_t totals[PROXY_RATE_COUNT];

        proxy_counters_sum(app, p, &c);
        totals[PROXY_RATE_SESSIONS] = c.sessions;
        totals[PROXY_RATE_REQUESTS] = c.requests;
        totals[PROXY_RATE_BACKEND] = c.be_sessions;
        for (int k = 0; k < PROXY_RATE_COUNT; k++) {
            unsigned rate = (unsigned)(totals[k] - p->rate_totals[k]);

            atomic_store(&p->rates[k], rate);
            if (rate > atomic_load(&p->rates_max[k]))
                atomic_store(&p->rates_max[k], rate);
            p->rate_totals[k] = totals[k];
        }
    }
}

static void worker_timer_fired(struct io_timer *t)
{
    struct worker *w = LIST_ENTRY(t, struct worker, pool_timer);
    uint64_t now = io_loop_now(w->loop);

    io_timer_set(w->loop, t, now + 1000000);
    if (w->listeners_paused && !w->draining)
        worker_update_listeners(w);
    if (now - w->last_second_us < 1000000)
        return;
    w->last_second_us = now;
    pool_purge(w, false);
    if (w->index == 0)
        worker_measure_rates(w);
}

/* --- ends ------------------------------------------------------------------------------------ */

static void worker_stop_listeners(struct worker *w)
{
    for (int i = 0; i < w->listener_count; i++)
        io_listener_stop(&w->listeners[i].listener);
    w->listener_count = 0;
}

static void worker_drain_message(struct io_message *m)
{
    struct worker *w = LIST_ENTRY(m, struct worker, drain_message);

    if (w->draining)
        return;
    w->draining = true;
    worker_unpark(w, true);
    worker_stop_listeners(w);
    if (atomic_fetch_add(&w->app->drained_count, 1) + 1 == w->app->worker_count)
        app_close_listeners(w->app);
    pool_purge(w, true);
    LIST_FOR_EACH_SAFE (item, following, &w->sessions)
        session_drain(LIST_ENTRY(item, struct session, link));
    if (w->session_count == 0)
        io_loop_stop(w->loop);
    else if (w->app->model->global.hard_stop_after_us > 0)
        io_timer_set(w->loop, &w->hard_stop_timer,
                     io_loop_now(w->loop) + (uint64_t)w->app->model->global.hard_stop_after_us);
}

static void worker_hard_stop(struct io_timer *t)
{
    io_loop_stop(LIST_ENTRY(t, struct worker, hard_stop_timer)->loop);
}

static void worker_forking_message(struct io_message *m)
{
    struct worker *w = LIST_ENTRY(m, struct worker, forking_message);

    io_loop_set_forking(w->loop, atomic_load(&w->app->forking));
    atomic_fetch_add(&w->app->forking_heard, 1);
}

static void worker_stop_message(struct io_message *m)
{
    io_loop_stop(LIST_ENTRY(m, struct worker, stop_message)->loop);
}

/* --- life --------------------------------------------------------------------------------------- */

static void worker_accept(struct io_listener *l, int fd, const struct addr *peer)
{
    session_accept((struct bind_listener *)(void *)l, fd, peer);
}

/* Which of a bind's descriptors this worker serves: its own of the kernel's spreading, or one that all share. */
static bool worker_serves(const struct worker *w, const struct bind *b, int bind_index, int fd_index)
{
    if (b->is_inherited) /* cannot be spread by the kernel: one worker serves it */
        return w->index == bind_index % w->app->worker_count;
    if (b->cfg->thread_mask && !(b->cfg->thread_mask >> w->index & 1))
        return false;
    return b->shared || fd_index % w->app->worker_count == w->index;
}

static int worker_count_listeners(const struct worker *w)
{
    int n = 0;

    for (int i = 0; i < w->app->bind_count; i++)
        for (int k = 0; k < w->app->binds[i]->fd_count; k++)
            n += worker_serves(w, w->app->binds[i], i, k);
    return n;
}

static int worker_start_listeners(struct worker *w)
{
    w->listeners = calloc((size_t)worker_count_listeners(w) + 1, sizeof(*w->listeners));
    if (!w->listeners)
        return SP_ENOMEM;
    for (int i = 0; i < w->app->bind_count; i++) {
        struct bind *b = w->app->binds[i];

        for (int k = 0; k < b->fd_count; k++) {
            struct bind_listener *bl = &w->listeners[w->listener_count];

            if (!worker_serves(w, b, i, k))
                continue;
            bl->worker = w;
            bl->bind = b;
            if (io_listener_start(&bl->listener, w->loop, b->fds[k], b->shared && !b->is_inherited, worker_accept) != 0)
                return SP_EIO;
            if (w->app->model->global.maxaccept > 0)
                bl->listener.batch = (unsigned)w->app->model->global.maxaccept;
            w->listener_count++;
        }
    }
    return 0;
}

int worker_init(struct worker *w, struct app *app, int index)
{
    struct tls_crypto_options crypto = app->crypto;

    w->app = app;
    w->index = index;
    list_init(&w->sessions);
    list_init(&w->later);
    list_init(&w->parked);
    w->loop = io_loop_new_engine((enum io_engine)app->model->global.io_engine);
    crypto.loop = w->loop;
    w->tls = w->loop ? tls_worker_new(app->crypto_is_foreign ? NULL : &crypto) : NULL;
    w->scratch = malloc(PROXY_SCRATCH_BYTES);
    w->proxies = aligned_alloc(64, sizeof(*w->proxies) * (size_t)(app->proxy_count + 1));
    w->servers = aligned_alloc(64, sizeof(*w->servers) * (size_t)(app->server_count + 1));
    w->pools = calloc((size_t)app->server_count + 1, sizeof(*w->pools));
    if (!w->loop || !w->tls || !w->scratch || !w->proxies || !w->servers || !w->pools)
        return SP_ENOMEM;
    memset(w->proxies, 0, sizeof(*w->proxies) * (size_t)(app->proxy_count + 1));
    memset(w->servers, 0, sizeof(*w->servers) * (size_t)(app->server_count + 1));
    for (int i = 0; i < app->server_count; i++)
        list_init(&w->pools[i].conns);
    buf_pool_init(&w->bufs, app->bufsize, KEEP_BUFS, 0);
    buf_pool_init(&w->big_bufs, PROXY_BIG_BUF_BYTES, KEEP_BIG_BUFS, PROXY_BIG_BUFS_MAX);
    hash_rng_seed(&w->rng);
    io_timer_init(&w->pool_timer, worker_timer_fired);
    io_timer_init(&w->hard_stop_timer, worker_hard_stop);
    w->later_hook.run = worker_later_hook;
    io_loop_add_hook(w->loop, &w->later_hook);
    w->drain_message.run = worker_drain_message;
    w->stop_message.run = worker_stop_message;
    w->limit_message.run = worker_limit_message;
    w->forking_message.run = worker_forking_message;
    return 0;
}

void worker_run(struct worker *w)
{
    tls_worker_start(w->tls);
    if (worker_start_listeners(w) != 0) {
        atomic_store(&w->app->worker_error, errno ? errno : ENOMEM);
        return;
    }
    w->last_second_us = io_loop_refresh_now(w->loop);
    io_timer_set(w->loop, &w->pool_timer, w->last_second_us + 1000000);
    if (w->index == 0)
        checks_start(w->app, w->loop, w->tls);
    io_loop_run(w->loop);
    worker_stop_listeners(w);
    LIST_FOR_EACH_SAFE (item, following, &w->sessions) {
        struct session *s = LIST_ENTRY(item, struct session, link);

        session_fail(s, 'K', session_is_waiting(s) ? 'R' : 'D');
        session_destroy(s, false);
    }
    worker_unpark(w, true);
    pool_purge(w, true);
    if (w->index == 0)
        checks_stop(w->app);
    tls_worker_stop(w->tls);
    io_timer_cancel(&w->pool_timer);
    io_timer_cancel(&w->hard_stop_timer);
}

static void worker_free_list(void *first)
{
    while (first) {
        void *next = *(void **)first;

        free(first);
        first = next;
    }
}

void worker_release(struct worker *w)
{
    io_loop_free(w->loop); /* first: it runs what was deferred, which fills the lists below */
    pipes_free(w);
    worker_free_list(w->free_sessions);
    worker_free_list(w->free_txns);
    worker_free_list(w->free_conns);
    for (int i = 0; w->pools && i < w->app->server_count; i++)
        if (w->pools[i].tls_slot)
            tls_session_slot_free(w->pools[i].tls_slot);
    buf_pool_release(&w->bufs);
    buf_pool_release(&w->big_bufs);
    if (w->tls)
        tls_worker_free(w->tls);
    free(w->listeners);
    free(w->scratch);
    free(w->proxies);
    free(w->servers);
    free(w->pools);
}
