#include "measure/sweep_crew.h"

#include "base/clock.h"
#include "measure/stats.h"
#include "measure/sweep_caller.h"
#include "measure/sweep_check.h"
#include "measure/sweep_cpu.h"

#include <sallyport/status.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_NS 20000u
/* A look at the clock must not cost more than half a percent where it is a system call. */
#define BLOCK_LOOKS 200u
#define BLOCK_MAX (1u << 16)
#define STACK_BYTES (1u << 20)
/* About what is compared in one check, all threads together. */
#define CHECK_BYTES (8u << 20)

enum job { JOB_NONE, JOB_OPEN, JOB_TIME, JOB_QUIT };

struct worker {
    struct sweep_crew *crew;
    unsigned index;
    pthread_t thread;
    struct sweep_caller *callers[SWEEP_IMPLS_MAX];
    uint8_t *memory; /* of the requests of all implementations without buffers of their own: one runs at a time */
    /* Of the last job. */
    int status;
    struct sweep_why why;
    double counted;
};

struct sweep_crew {
    struct sweep_crew_options options;
    unsigned threads, depth;
    uint64_t clock_ns, block_ns;
    /* The job, under the mutex. */
    pthread_mutex_t mutex;
    pthread_cond_t begin, end;
    uint64_t generation;
    unsigned working;
    enum job job;
    unsigned use;
    const struct sweep_impl *impl;
    struct sweep_device *device;
    /* The slice. */
    uint64_t slice_ns, gate_ns;
    atomic_uint begun, passed;
    atomic_ullong opens_ns; /* 0: not yet */
    struct worker workers[];
};

/* --- the window --------------------------------------------------------------------------------- */

static double overlap(uint64_t from, uint64_t to, uint64_t window_from, uint64_t window_to)
{
    uint64_t low = from > window_from ? from : window_from, high = to < window_to ? to : window_to;

    return high > low ? (double)(high - low) : 0;
}

static void open_window(struct sweep_crew *crew, uint64_t now_ns)
{
    unsigned long long none = 0;

    (void)atomic_compare_exchange_strong(&crew->opens_ns, &none, now_ns);
}

static void adapt_block(const struct sweep_crew *crew, struct sweep_caller *caller, uint64_t took_ns)
{
    if (took_ns < crew->block_ns / 2 && caller->block < BLOCK_MAX)
        caller->block *= 2;
    else if (took_ns > crew->block_ns * 2 && caller->block > 1)
        caller->block /= 2;
}

static bool is_stopped(const struct sweep_crew *crew)
{
    return crew->options.stop && *crew->options.stop != 0;
}

/* Threads that the scheduler keeps away for long are not waited for: a quarter of the slice at either end. */
static int time_blocks(struct worker *w, struct sweep_caller *caller)
{
    struct sweep_crew *crew = w->crew;
    uint64_t start = clock_now_ns(), slack = crew->slice_ns / 4;
    bool has_begun = false, has_passed = false;

    for (;;) {
        uint64_t good = caller->completed - caller->errors, opens, end;
        int status = sweep_caller_block(caller, start);

        end = clock_now_ns();
        if (status != 0 || is_stopped(crew))
            return status ? status : SP_ECANCELED;
        good = caller->completed - caller->errors - good;
        if (!has_begun && atomic_fetch_add(&crew->begun, 1) + 1 == crew->threads)
            open_window(crew, end);
        has_begun = true;
        if (end > crew->gate_ns + slack)
            open_window(crew, end);
        opens = atomic_load(&crew->opens_ns);
        if (opens && end > start) {
            w->counted += (double)good * overlap(start, end, opens, opens + crew->slice_ns) / (double)(end - start);
            if (end >= opens + crew->slice_ns && !has_passed) {
                atomic_fetch_add(&crew->passed, 1);
                has_passed = true;
            }
            if (has_passed && (atomic_load(&crew->passed) == crew->threads || end >= opens + crew->slice_ns + slack))
                return 0;
        }
        adapt_block(crew, caller, end - start);
        start = end;
    }
}

/* --- jobs --------------------------------------------------------------------------------------- */

static uint8_t *memory_new(uint64_t bytes, unsigned seed)
{
    struct stats_rng rng = {seed};
    void *memory = NULL;

    if (posix_memalign(&memory, 64, (size_t)bytes) != 0)
        return NULL;
    for (uint64_t at = 0; at + sizeof(uint64_t) <= bytes; at += sizeof(uint64_t)) {
        uint64_t word = stats_rng_next(&rng);

        memcpy((uint8_t *)memory + at, &word, sizeof(word));
    }
    return memory;
}

static int give_memory(struct worker *w)
{
    const struct sweep_crew *crew = w->crew;
    uint64_t bytes = sweep_caller_memory(crew->options.request_bytes, crew->depth, crew->options.in_place);

    if (!w->memory && !crew->impl->buffer_alloc)
        w->memory = memory_new(bytes, w->index);
    return w->memory || crew->impl->buffer_alloc ? 0 : sweep_why(&w->why, SP_ENOMEM, "no memory for its buffers");
}

static int open_caller(struct worker *w)
{
    const struct sweep_crew *crew = w->crew;
    const struct sweep_crew_options *o = &crew->options;
    struct sweep_check check = {.impl = crew->impl, .device = crew->device, .key = o->key, .thread = w->index,
                                .depth = crew->depth, .request_bytes = o->request_bytes,
                                .total_bytes = CHECK_BYTES / crew->threads, .patience_ns = o->patience_ns};
    struct sweep_caller_options options = {.impl = crew->impl, .device = crew->device, .key = o->key, .thread = w->index,
                                           .depth = crew->depth, .request_bytes = o->request_bytes,
                                           .in_place = o->in_place, .clock_ns = crew->clock_ns,
                                           .patience_ns = o->patience_ns};
    int status = 0;

    /* Many threads with large requests would compare for long: the first few speak for all. */
    if (w->index < 4 || o->request_bytes * crew->threads <= CHECK_BYTES)
        status = sweep_check(&check, &w->why);
    if (status == 0)
        status = give_memory(w);
    if (status != 0)
        return status;
    options.memory = w->memory;
    w->callers[crew->use] = calloc(1, sizeof(struct sweep_caller));
    if (!w->callers[crew->use])
        return sweep_why(&w->why, SP_ENOMEM, "no memory");
    return sweep_caller_open(w->callers[crew->use], &options, &w->why);
}

static void close_caller(struct worker *w, unsigned use)
{
    /* A device may still write to what did not come back: that memory is left to it. */
    if (w->callers[use] && !sweep_caller_close(w->callers[use]))
        w->memory = NULL;
    free(w->callers[use]);
    w->callers[use] = NULL;
}

static int time_caller(struct worker *w)
{
    struct sweep_caller *caller = w->callers[w->crew->use];
    int status, drained;

    caller->completed = caller->errors = caller->async = 0;
    memset(&caller->latency, 0, sizeof(caller->latency));
    w->counted = 0;
    status = time_blocks(w, caller);
    drained = caller->is_stuck ? SP_ETIMEDOUT : sweep_caller_drain(caller);
    if (status == 0)
        status = drained;
    if (status == SP_ETIMEDOUT) {
        unsigned flying = caller->depth - caller->idle_count;

        if (flying > 0)
            (void)sweep_why(&w->why, status, "%u requests of %u bytes did not complete within %u ms", flying, caller->len,
                            (unsigned)(caller->patience_ns / 1000000u));
        else
            (void)sweep_why(&w->why, status, "took no request of %u bytes for %u ms", caller->len,
                            (unsigned)(caller->patience_ns / 1000000u));
        close_caller(w, w->crew->use);
    }
    return status;
}

static void *work(void *arg)
{
    struct worker *w = arg;
    struct sweep_crew *crew = w->crew;
    uint64_t seen = 0;
    enum job job;

    do {
        pthread_mutex_lock(&crew->mutex);
        while (crew->generation == seen)
            pthread_cond_wait(&crew->begin, &crew->mutex);
        seen = crew->generation;
        job = crew->job;
        pthread_mutex_unlock(&crew->mutex);
        w->status = 0;
        if (job == JOB_OPEN)
            w->status = open_caller(w);
        else if (job == JOB_TIME && w->callers[crew->use])
            w->status = time_caller(w);
        else if (job == JOB_TIME)
            w->status = sweep_why(&w->why, SP_ETIMEDOUT, "stopped answering");
        for (unsigned i = 0; job == JOB_QUIT && i < SWEEP_IMPLS_MAX; i++)
            close_caller(w, i);
        pthread_mutex_lock(&crew->mutex);
        if (--crew->working == 0)
            pthread_cond_signal(&crew->end);
        pthread_mutex_unlock(&crew->mutex);
    } while (job != JOB_QUIT);
    return NULL;
}

/* Every wait of a job is bounded by itself, so that waiting for all of them is too. */
static int run_job(struct sweep_crew *crew, enum job job, unsigned n, struct sweep_why *why)
{
    pthread_mutex_lock(&crew->mutex);
    crew->job = job;
    crew->generation++;
    crew->working = n;
    crew->gate_ns = clock_now_ns();
    pthread_cond_broadcast(&crew->begin);
    while (crew->working > 0)
        pthread_cond_wait(&crew->end, &crew->mutex);
    pthread_mutex_unlock(&crew->mutex);
    for (unsigned i = 0; i < n; i++) {
        if (crew->workers[i].status != 0) {
            *why = crew->workers[i].why;
            return crew->workers[i].status;
        }
    }
    return 0;
}

/* --- what the engine calls ---------------------------------------------------------------------- */

/* The least of many pairs of looks. */
static uint64_t clock_cost_ns(void)
{
    uint64_t least = UINT64_MAX, last = clock_now_ns();

    for (unsigned i = 0; i < 200; i++) {
        uint64_t now = clock_now_ns();

        if (now - last < least)
            least = now - last;
        last = now;
    }
    return least;
}

int sweep_crew_new(struct sweep_crew **out, const struct sweep_crew_options *options, struct sweep_why *why)
{
    unsigned threads = options->mode.kind == SWEEP_CONCURRENT ? options->mode.n : 1, started = 0;
    struct sweep_crew *crew = calloc(1, sizeof(*crew) + threads * sizeof(struct worker));
    pthread_attr_t attributes;

    if (!crew)
        return sweep_why(why, SP_ENOMEM, "no memory for %u threads", threads);
    crew->options = *options;
    crew->depth = options->mode.kind == SWEEP_DEPTH ? options->mode.n : 1;
    crew->clock_ns = clock_cost_ns();
    crew->block_ns = BLOCK_NS > crew->clock_ns * BLOCK_LOOKS ? BLOCK_NS : crew->clock_ns * BLOCK_LOOKS;
    pthread_mutex_init(&crew->mutex, NULL);
    pthread_cond_init(&crew->begin, NULL);
    pthread_cond_init(&crew->end, NULL);
    pthread_attr_init(&attributes);
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
    for (; started < threads; started++) {
        struct worker *w = &crew->workers[started];

        w->crew = crew;
        w->index = started;
        if (pthread_create(&w->thread, &attributes, work, w) != 0)
            break;
    }
    pthread_attr_destroy(&attributes);
    crew->threads = threads;
    if (started < threads) {
        crew->threads = started;
        sweep_crew_free(crew);
        return sweep_why(why, SP_EIO, "the system allows %u threads of the %u asked for", started, threads);
    }
    *out = crew;
    return 0;
}

int sweep_crew_open(struct sweep_crew *crew, unsigned i, const struct sweep_impl *impl, struct sweep_device *device,
                    struct sweep_why *why)
{
    crew->use = i;
    crew->impl = impl;
    crew->device = device;
    return run_job(crew, JOB_OPEN, crew->threads, why);
}

int sweep_crew_time(struct sweep_crew *crew, unsigned i, uint64_t slice_ns, struct sweep_slice *out,
                    struct sweep_latency *latency, struct sweep_why *why)
{
    struct sweep_slice slice = {0};
    struct sweep_cpu before, after;
    int status;

    crew->use = i;
    crew->slice_ns = slice_ns;
    atomic_store(&crew->begun, 0);
    atomic_store(&crew->passed, 0);
    atomic_store(&crew->opens_ns, 0);
    sweep_cpu_begin(&before);
    status = run_job(crew, JOB_TIME, crew->threads, why);
    sweep_cpu_end(&after);
    if (status != 0)
        return status;
    for (unsigned t = 0; t < crew->threads; t++) {
        const struct sweep_caller *caller = crew->workers[t].callers[i];

        slice.requests_per_s += crew->workers[t].counted * 1e9 / (double)slice_ns;
        slice.requests += caller->completed - caller->errors;
        slice.errors += caller->errors;
        slice.async += caller->async;
        sweep_latency_merge(latency, &caller->latency);
    }
    slice.busy_ns = sweep_cpu_busy_ns(&before, &after);
    slice.own_cpu_ns = after.own_ns - before.own_ns;
    *out = slice;
    return 0;
}

void sweep_crew_free(struct sweep_crew *crew)
{
    struct sweep_why why;

    if (!crew)
        return;
    (void)run_job(crew, JOB_QUIT, crew->threads, &why);
    for (unsigned i = 0; i < crew->threads; i++) {
        pthread_join(crew->workers[i].thread, NULL);
        free(crew->workers[i].memory);
    }
    pthread_mutex_destroy(&crew->mutex);
    pthread_cond_destroy(&crew->begin);
    pthread_cond_destroy(&crew->end);
    free(crew);
}
