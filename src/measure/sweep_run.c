#include "measure/sweep_run.h"

#include "base/clock.h"
#include "measure/stats.h"
#include "measure/sweep_caller.h"
#include "measure/sweep_check.h"
#include "measure/sweep_cpu.h"
#include "measure/sweep_crew.h"

#include <sallyport/status.h>

#include <math.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#define DESCRIPTION_BYTES 256
#define WARM_MAX_NS 5000000u

/* One implementation at one size in one mode, over the rounds. */
struct tally {
    struct sweep_cell *cell; /* NULL: not measured here */
    double rates[SWEEP_ROUNDS_MAX], p50[SWEEP_ROUNDS_MAX], p99[SWEEP_ROUNDS_MAX];
    unsigned rounds;
    uint64_t requests, errors, async;
    uint64_t busy_ns, own_cpu_ns;
    bool has_busy, has_own;
    struct sweep_latency *latency; /* NULL: it times itself */
};

/* What is measured together. */
struct group {
    struct sweep_run *run;
    size_t algorithm, mode, size;
    const struct sweep_key *key;
    struct sweep_crew *crew;
    struct tally tallies[SWEEP_IMPLS_MAX];
};

/* The run as a whole. */
struct pace {
    struct stats_rng rng;
    uint64_t start_ns;
    size_t done, total;
};

static int set_why(struct sweep_cell *cell, const char *text)
{
    char *copy = strdup(text);

    free((void *)(uintptr_t)cell->why_not);
    cell->why_not = copy;
    return copy ? 0 : SP_ENOMEM;
}

/* --- before ------------------------------------------------------------------------------------- */

static struct sweep_limits limits_of(const struct sweep_result *r)
{
    struct sweep_limits limits = {.threads_max = 1, .depth_max = 1};

    for (size_t i = 0; i < r->mode_count; i++) {
        if (r->modes[i].kind == SWEEP_CONCURRENT && r->modes[i].n > limits.threads_max)
            limits.threads_max = r->modes[i].n;
        if (r->modes[i].kind == SWEEP_DEPTH && r->modes[i].n > limits.depth_max)
            limits.depth_max = r->modes[i].n;
    }
    if (r->size_count)
        limits.request_bytes_max = r->sizes[r->size_count - 1];
    return limits;
}

int sweep_open(struct sweep_run *run)
{
    struct sweep_limits limits = limits_of(run->result);

    for (size_t i = 0; i < run->result->impl_count; i++)
        run->sources[i].device = NULL;
    for (size_t i = 0; i < run->result->impl_count; i++) {
        struct sweep_source *s = &run->sources[i];
        char description[DESCRIPTION_BYTES] = "";

        s->status = s->impl->device_open(s->argument, &limits, &s->device, description, sizeof(description), &s->why);
        if (s->status != 0) {
            s->device = NULL;
            continue;
        }
        run->result->impls[i].description = strdup(description);
        if (!run->result->impls[i].description)
            return SP_ENOMEM;
    }
    return 0;
}

void sweep_remove(struct sweep_run *run, size_t i)
{
    struct sweep_result *r = run->result;

    free(r->impls[i].spec);
    free(r->impls[i].description);
    r->impl_count--;
    memmove(&r->impls[i], &r->impls[i + 1], (r->impl_count - i) * sizeof(r->impls[0]));
    memmove(&run->sources[i], &run->sources[i + 1], (r->impl_count - i) * sizeof(run->sources[0]));
}

/* 0, or why the cell is not measured. */
static int can_measure(const struct sweep_run *run, const struct sweep_source *source, size_t algorithm,
                       const struct sweep_mode *mode, uint64_t bytes, struct sweep_why *why)
{
    const struct sweep_result *r = run->result;
    int status;

    if (!source->device) {
        *why = source->why;
        return source->status;
    }
    status = sweep_size_check(r->algorithms[algorithm], bytes, why);
    if (status == 0)
        status = source->impl->supports(source->device, r->algorithms[algorithm], bytes, r->in_place, why);
    if (status == 0 && !source->impl->measure && sweep_caller_memory(bytes, mode->n, r->in_place) > SWEEP_MEMORY_MAX)
        status = sweep_why(why, SP_ETOOBIG, "%u requests at a time want more than %llu MiB of buffers", mode->n,
                           SWEEP_MEMORY_MAX >> 20);
    return status;
}

int sweep_prepare(struct sweep_run *run)
{
    struct sweep_result *r = run->result;
    size_t count = r->algorithm_count * r->mode_count * r->size_count * r->impl_count;

    run->planned = run->wrong = run->stuck = run->failed = 0;
    if (run->patience_ns == 0)
        run->patience_ns = SWEEP_PATIENCE_NS;
    r->cells = calloc(count ? count : 1, sizeof(*r->cells));
    if (!r->cells)
        return SP_ENOMEM;
    for (size_t i = 0; i < count; i++) {
        size_t impl = i % r->impl_count, size = i / r->impl_count % r->size_count;
        size_t mode = i / r->impl_count / r->size_count % r->mode_count;
        struct sweep_why why;

        if (can_measure(run, &run->sources[impl], i / r->impl_count / r->size_count / r->mode_count, &r->modes[mode],
                        r->sizes[size], &why) == 0)
            run->planned++;
        else if (set_why(&r->cells[i], why.text) != 0)
            return SP_ENOMEM;
    }
    return 0;
}

size_t sweep_slices(const struct sweep_run *run, size_t *overhead)
{
    const struct sweep_result *r = run->result;
    size_t slices = run->planned * r->rounds, crowded = 0;

    for (size_t i = 0; i < r->mode_count; i++)
        crowded += r->modes[i].kind == SWEEP_CONCURRENT;
    /* A check and a warm-up a cell; up to half a slice at the window's ends where threads wait for each other. */
    *overhead = run->planned / 2 + (r->mode_count ? slices * crowded / r->mode_count / 3 : 0);
    return slices;
}

/* --- one group ---------------------------------------------------------------------------------- */

static const struct sweep_impl *impl_of(const struct group *g, unsigned i)
{
    return g->run->sources[i].impl;
}

static uint64_t bytes_of(const struct group *g)
{
    return g->run->result->sizes[g->size];
}

/* Not measured after all. A device that is stuck is not asked again. */
static int drop(struct group *g, unsigned i, int status, const struct sweep_why *why)
{
    struct sweep_source *source = &g->run->sources[i];
    struct sweep_cell *cell = g->tallies[i].cell;

    g->tallies[i].cell = NULL;
    if (status == SP_EFAULT) {
        g->run->wrong++;
    } else if (status == SP_ETIMEDOUT) {
        g->run->stuck++;
        source->status = status;
        (void)sweep_why(&source->why, status, "not asked: it stopped answering at %llu bytes of %s",
                        (unsigned long long)bytes_of(g), g->run->result->algorithms[g->algorithm]->name);
    } else {
        g->run->failed++;
    }
    return set_why(cell, why->text);
}

static bool is_stopped(const struct sweep_run *run)
{
    return run->stop && *run->stop != 0;
}

static int check_itself(const struct group *g, unsigned i, struct sweep_why *why)
{
    const struct sweep_impl *impl = impl_of(g, i);
    struct sweep_device *device = g->run->sources[i].device;
    int status = 0;

    for (int in_place = 0; in_place <= 1 && status == 0 && impl->self_check; in_place++) {
        struct sweep_why other;

        if (impl->supports(device, g->key->algorithm, bytes_of(g), in_place != 0, &other) == 0)
            status = impl->self_check(device, g->key, bytes_of(g), in_place != 0, why);
    }
    return status;
}

static int check_all(struct group *g)
{
    int failed = 0;

    for (unsigned i = 0; i < g->run->result->impl_count && !failed && !is_stopped(g->run); i++) {
        struct sweep_source *source = &g->run->sources[i];
        struct sweep_why why;
        int status;

        if (!g->tallies[i].cell)
            continue;
        if (source->status == SP_ETIMEDOUT) {
            failed = set_why(g->tallies[i].cell, source->why.text);
            g->tallies[i].cell = NULL;
            continue;
        }
        status = source->impl->measure ? check_itself(g, i, &why)
                                       : sweep_crew_open(g->crew, i, source->impl, source->device, &why);
        if (status != 0)
            failed = drop(g, i, status, &why);
    }
    return failed;
}

static void count_cpu(struct tally *t, uint64_t busy_ns, uint64_t own_cpu_ns)
{
    t->has_busy &= busy_ns != SWEEP_CPU_UNKNOWN;
    t->has_own &= own_cpu_ns != SWEEP_CPU_UNKNOWN;
    t->busy_ns += busy_ns;
    t->own_cpu_ns += own_cpu_ns;
}

static int time_itself(const struct group *g, unsigned i, uint64_t slice_ns, struct tally *t, struct sweep_why *why)
{
    const struct sweep_result *r = g->run->result;
    struct sweep_point point = {.key = g->key, .mode = r->modes[g->mode], .request_bytes = bytes_of(g),
                                .slice_ns = slice_ns, .in_place = r->in_place};
    struct sweep_sample sample = {.p50_us = NAN, .p99_us = NAN};
    int status = impl_of(g, i)->measure(g->run->sources[i].device, &point, &sample, why);

    if (status != 0)
        return status;
    if (sample.elapsed_ns == 0)
        return sweep_why(why, SP_EIO, "measured no time");
    t->rates[t->rounds] = (double)sample.requests * 1e9 / (double)sample.elapsed_ns;
    t->p50[t->rounds] = sample.p50_us;
    t->p99[t->rounds] = sample.p99_us;
    t->requests += sample.requests;
    t->errors += sample.errors;
    t->async += sample.async_requests;
    count_cpu(t, sample.busy_ns, sample.own_cpu_ns);
    t->rounds++;
    return 0;
}

static int time_requests(const struct group *g, unsigned i, uint64_t slice_ns, struct tally *t, struct sweep_why *why)
{
    struct sweep_slice slice;
    int status = sweep_crew_time(g->crew, i, slice_ns, &slice, t->latency, why);

    if (status != 0)
        return status;
    t->rates[t->rounds++] = slice.requests_per_s;
    t->requests += slice.requests;
    t->errors += slice.errors;
    t->async += slice.async;
    count_cpu(t, slice.busy_ns, slice.own_cpu_ns);
    return 0;
}

static int time_one(struct group *g, unsigned i, uint64_t slice_ns, struct tally *t)
{
    struct sweep_why why;
    int status = impl_of(g, i)->measure ? time_itself(g, i, slice_ns, t, &why) : time_requests(g, i, slice_ns, t, &why);

    if (status == 0 || status == SP_ECANCELED)
        return status;
    return drop(g, i, status, &why);
}

/* Pages, caches, clocks, and how many requests make a block; what it finds does not count. */
static int warm_up(struct group *g)
{
    const struct sweep_result *r = g->run->result;
    uint64_t slice_ns = r->slice_ns < WARM_MAX_NS ? r->slice_ns : WARM_MAX_NS;
    int status = 0;

    for (unsigned i = 0; i < r->impl_count && status == 0; i++) {
        struct tally *t = &g->tallies[i];

        if (!t->cell || impl_of(g, i)->measure)
            continue;
        status = time_one(g, i, slice_ns, t);
        t->rounds = 0;
        t->requests = t->errors = t->async = t->busy_ns = t->own_cpu_ns = 0;
        memset(t->latency, 0, sizeof(*t->latency));
    }
    return status;
}

static void show_progress(const struct group *g, const struct pace *pace)
{
    const struct sweep_run *run = g->run;
    const struct sweep_result *r = run->result;
    struct sweep_progress p = {.algorithm = r->algorithms[g->algorithm], .mode = r->modes[g->mode],
                               .request_bytes = bytes_of(g), .done = pace->done, .total = pace->total,
                               .left_ns = UINT64_MAX};

    if (!run->progress)
        return;
    p.elapsed_ns = clock_now_ns() - pace->start_ns;
    if (pace->done * 50 >= pace->total && pace->done > 0)
        p.left_ns =
            (uint64_t)((double)p.elapsed_ns / (double)pace->done * (double)(pace->total - pace->done));
    run->progress(run->progress_arg, &p);
}

static void summarise(struct group *g, unsigned i)
{
    struct tally *t = &g->tallies[i];
    struct sweep_cell *cell = t->cell;
    double bytes = (double)bytes_of(g), moved = bytes * (double)t->requests;
    bool timed_itself = impl_of(g, i)->measure != NULL;
    char text[SWEEP_WHY_BYTES];

    if (t->requests == 0) {
        (void)snprintf(text, sizeof(text), "%s", t->errors ? "each request failed" : "no request completed");
        (void)set_why(cell, text);
        g->run->failed++;
        return;
    }
    cell->requests_per_s = stats_median(t->rates, t->rounds);
    cell->bytes_per_s = cell->requests_per_s * bytes;
    cell->bytes_per_s_low = stats_quantile(t->rates, t->rounds, 0) * bytes;
    cell->bytes_per_s_high = stats_quantile(t->rates, t->rounds, 1) * bytes;
    cell->bytes_per_cpu_s = t->has_busy && t->busy_ns ? moved * 1e9 / (double)t->busy_ns : NAN;
    cell->bytes_per_own_cpu_s = t->has_own && t->own_cpu_ns ? moved * 1e9 / (double)t->own_cpu_ns : NAN;
    cell->p50_us = timed_itself ? stats_median(t->p50, t->rounds) : sweep_latency_us(t->latency, 0.5);
    cell->p99_us = timed_itself ? stats_median(t->p99, t->rounds) : sweep_latency_us(t->latency, 0.99);
    cell->async_share = (double)t->async / (double)t->requests;
    cell->requests = t->requests;
    cell->errors = t->errors;
    cell->measured = true;
}

static int run_rounds(struct group *g, struct pace *pace)
{
    const struct sweep_result *r = g->run->result;
    unsigned order[SWEEP_IMPLS_MAX];
    int status = 0;

    for (unsigned round = 0; round < r->rounds && status == 0; round++) {
        stats_shuffle(&pace->rng, order, (unsigned)r->impl_count);
        for (unsigned i = 0; i < r->impl_count && status == 0; i++) {
            struct tally *t = &g->tallies[order[i]];

            if (!t->cell)
                continue;
            show_progress(g, pace);
            status = is_stopped(g->run) ? SP_ECANCELED : time_one(g, order[i], r->slice_ns, t);
            pace->done++;
        }
    }
    return status;
}

/* Cells without a reason so far are those to measure. */
static int choose(struct group *g, unsigned *chosen)
{
    const struct sweep_result *r = g->run->result;

    for (unsigned i = 0; i < r->impl_count; i++) {
        struct sweep_cell *cell = sweep_cell_at(r, g->algorithm, g->mode, g->size, i);
        struct tally *t = &g->tallies[i];

        if (cell->why_not)
            continue;
        *t = (struct tally){.cell = cell, .has_busy = true, .has_own = true};
        if (!impl_of(g, i)->measure) {
            t->latency = calloc(1, sizeof(*t->latency));
            if (!t->latency)
                return SP_ENOMEM;
        }
        (*chosen)++;
    }
    return 0;
}

static int measure_chosen(struct group *g, struct pace *pace)
{
    const struct sweep_result *r = g->run->result;
    struct sweep_crew_options options = {.key = g->key, .mode = r->modes[g->mode], .request_bytes = bytes_of(g),
                                         .in_place = r->in_place, .patience_ns = g->run->patience_ns,
                                         .stop = g->run->stop};
    struct sweep_why why;
    int status = sweep_crew_new(&g->crew, &options, &why);

    if (status != 0) {
        g->crew = NULL;
        for (unsigned i = 0; i < r->impl_count; i++) {
            if (g->tallies[i].cell && !impl_of(g, i)->measure && drop(g, i, SP_EIO, &why) != 0)
                return SP_ENOMEM;
        }
    }
    status = check_all(g);
    if (status == 0)
        status = warm_up(g);
    if (status == 0)
        status = run_rounds(g, pace);
    for (unsigned i = 0; i < r->impl_count && status == 0; i++) {
        if (g->tallies[i].cell)
            summarise(g, i);
    }
    return status;
}

static int measure_group(struct group *g, struct pace *pace)
{
    size_t target;
    unsigned chosen = 0;
    int status = choose(g, &chosen);

    /* Rounds that a failure leaves out count as done. */
    target = pace->done + (size_t)chosen * g->run->result->rounds;
    if (status == 0 && chosen > 0)
        status = measure_chosen(g, pace);
    pace->done = target;
    sweep_crew_free(g->crew);
    for (unsigned i = 0; i < SWEEP_IMPLS_MAX; i++)
        free(g->tallies[i].latency);
    return status;
}

static void make_key(struct sweep_key *key, const struct sweep_algorithm *algorithm, struct stats_rng *rng)
{
    key->algorithm = algorithm;
    for (unsigned i = 0; i < sizeof(key->key); i++)
        key->key[i] = (uint8_t)stats_rng_next(rng);
    for (unsigned i = 0; i < sizeof(key->hmac_key); i++)
        key->hmac_key[i] = (uint8_t)stats_rng_next(rng);
}

int sweep_measure(struct sweep_run *run)
{
    const struct sweep_result *r = run->result;
    size_t groups = r->algorithm_count * r->size_count * r->mode_count;
    struct pace pace = {.rng = {run->seed}, .start_ns = clock_now_ns(), .total = run->planned * r->rounds};
    struct sweep_key key = {0};
    int status = 0;

    for (size_t i = 0; i < groups && status == 0; i++) {
        struct group *g = calloc(1, sizeof(*g));

        if (!g)
            return SP_ENOMEM;
        /* Sizes before modes: a device that dies at a size has answered at all smaller ones. */
        g->mode = i % r->mode_count;
        g->size = i / r->mode_count % r->size_count;
        g->algorithm = i / r->mode_count / r->size_count;
        g->run = run;
        if (i % (r->mode_count * r->size_count) == 0)
            make_key(&key, r->algorithms[g->algorithm], &pace.rng);
        g->key = &key;
        status = is_stopped(run) ? SP_ECANCELED : measure_group(g, &pace);
        free(g);
    }
    OPENSSL_cleanse(&key, sizeof(key));
    return status;
}

void sweep_finish(struct sweep_run *run)
{
    for (size_t i = 0; i < run->result->impl_count; i++) {
        if (run->sources[i].device)
            run->sources[i].impl->device_close(run->sources[i].device);
        run->sources[i].device = NULL;
    }
}
