/*
 * The application: workers started, drained, stopped and summed.
 */
#include "proxy/check.h"
#include "proxy/worker.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --- sums ------------------------------------------------------------------------- */

/* Both counter structures are arrays of 64-bit integers; gauges' maxima are the only fields that do not add up exactly. */
static void counters_add(void *to, const void *from, size_t bytes)
{
    uint64_t *sum = to;
    const volatile uint64_t *part = from;

    for (size_t i = 0; i < bytes / sizeof(uint64_t); i++)
        sum[i] += part[i];
}

void proxy_counters_sum(const struct app *app, const struct proxy *p, struct proxy_counters *out)
{
    memset(out, 0, sizeof(*out));
    for (int i = 0; i < app->worker_count; i++)
        counters_add(out, &app->workers[i].proxies[p->index], sizeof(*out));
}

int64_t proxy_current(const struct app *app, const struct proxy *p, bool backend)
{
    int64_t n = 0;

    for (int i = 0; i < app->worker_count; i++) {
        const struct proxy_counters *c = &app->workers[i].proxies[p->index];

        n += backend ? c->be_current : c->fe_current;
    }
    return n;
}

void server_counters_sum(const struct app *app, const struct server *s, struct server_counters *out)
{
    memset(out, 0, sizeof(*out));
    for (int i = 0; i < app->worker_count; i++)
        counters_add(out, &app->workers[i].servers[s->index], sizeof(*out));
}

/* --- threads ----------------------------------------------------------------------- */

/* cpu-map: the CPUs of thread `number` (from 1). False: none are given. */
static bool app_thread_cpus(const struct app *app, int number, cpu_set_t *out)
{
    bool any = false;

    CPU_ZERO(out);
    for (const struct cfg_cpu_map *m = app->model->global.cpu_maps; m; m = m->next) {
        int nth = 0;

        if (number < m->thread_low || number > m->thread_high)
            continue;
        for (int cpu = 0; cpu < 1024; cpu++) {
            if (!(m->cpus[cpu / 64] >> (cpu % 64) & 1))
                continue;
            if (m->automatic && nth++ != number - m->thread_low)
                continue;
            CPU_SET((size_t)cpu, out);
            any = true;
        }
    }
    return any;
}

static void *app_thread(void *arg)
{
    struct worker *w = arg;
    cpu_set_t cpus;

    if (app_thread_cpus(w->app, w->index + 1, &cpus))
        pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
    worker_run(w);
    atomic_fetch_sub(&w->app->running_count, 1);
    if (w->app->on_worker_end)
        w->app->on_worker_end();
    return NULL;
}

static int app_start_crypto(struct app *app)
{
    int status;

    if (app->crypto_thread_count == 0)
        return 0;
    status = sp_crypto_threads_new(&app->crypto_threads, (unsigned)app->crypto_thread_count);
    app->crypto.queue.threads = app->crypto_threads;
    return status;
}

int app_start(struct app *app)
{
    int status = app_start_crypto(app);

    if (status != 0)
        return status;
    for (int i = 0; i < app->worker_count; i++)
        if (worker_init(&app->workers[i], app, i) != 0)
            return SP_ENOMEM;
    for (int i = 0; i < app->worker_count; i++) {
        struct worker *w = &app->workers[i];

        atomic_fetch_add(&app->running_count, 1);
        if (pthread_create(&w->thread, NULL, app_thread, w) != 0) {
            atomic_fetch_sub(&app->running_count, 1);
            app->started_count = i;
            app_stop(app);
            app_wait(app);
            return SP_EIO;
        }
    }
    app->started_count = app->worker_count;
    return 0;
}

void app_drain(struct app *app)
{
    if (atomic_exchange(&app->stopping, true))
        return;
    for (int i = 0; i < app->started_count; i++)
        io_loop_post(app->workers[i].loop, &app->workers[i].drain_message);
}

void app_stop(struct app *app)
{
    atomic_store(&app->stopping, true);
    if (atomic_exchange(&app->killed, true))
        return;
    for (int i = 0; i < app->started_count; i++)
        io_loop_post(app->workers[i].loop, &app->workers[i].stop_message);
}

void app_set_forking(struct app *app, bool forking)
{
    struct timespec pause = {.tv_nsec = 1000000};

    atomic_store(&app->forking, forking);
    atomic_store(&app->forking_heard, 0);
    for (int i = 0; i < app->started_count; i++)
        io_loop_post(app->workers[i].loop, &app->workers[i].forking_message);
    /* A worker that has ended hears nothing, and closes nothing any more. */
    while (atomic_load(&app->forking_heard) < atomic_load(&app->running_count))
        nanosleep(&pause, NULL);
}

bool app_is_running(const struct app *app)
{
    return atomic_load(&app->running_count) > 0;
}

void app_wait(struct app *app)
{
    for (int i = 0; i < app->started_count; i++)
        pthread_join(app->workers[i].thread, NULL);
    app->started_count = 0;
}
