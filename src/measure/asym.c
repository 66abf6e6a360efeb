#include "measure/asym.h"

#include "base/clock.h"
#include "measure/asym_case.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FILL_MAX 256

/* A variant while it runs. */
struct runner {
    struct asym_variant *variant;
    struct asym_case *material;
    struct sp_crypto_threads *threads;
    struct sp_queue *queue; /* NULL: the reference */
    struct sp_op *ops;
    struct sp_op **pointers;
    uint8_t (*out)[ASYM_BYTES_MAX];
    double rate[ASYM_ROUNDS_MAX], cpu_rate[ASYM_ROUNDS_MAX];
};

static uint64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void runner_release(struct runner *r)
{
    sp_queue_free(r->queue);
    sp_crypto_threads_free(r->threads);
    free(r->ops);
    free(r->pointers);
    free(r->out);
}

static int runner_init(struct runner *r, struct asym_variant *variant, struct asym_case *material)
{
    struct sp_queue_options options;
    int status = 0;

    *r = (struct runner){.variant = variant, .material = material};
    if (variant->kind == ASYM_REFERENCE)
        return 0;
    sp_queue_options_init(&options);
    options.policy[SP_BACKEND_MULTIBUFFER] = variant->kind == ASYM_MULTIBUFFER ? SP_POLICY_REQUIRE : SP_POLICY_PREFER;
    if (sp_lanes_missing(variant->algorithm) && variant->kind == ASYM_MULTIBUFFER)
        return SP_EUNSUPPORTED;
    if (variant->kind == ASYM_THREADS) {
        options.policy[SP_BACKEND_THREADS] = SP_POLICY_REQUIRE;
        status = sp_crypto_threads_new(&r->threads, variant->threads);
        options.threads = r->threads;
    }
    if (variant->kind == ASYM_CRYPTODEV) {
        options.policy[SP_BACKEND_CRYPTODEV] = SP_POLICY_REQUIRE;
        options.cryptodev = variant->cryptodev;
    }
    if (status == 0)
        status = sp_queue_new(&r->queue, &options);
    r->ops = calloc(variant->fill, sizeof(*r->ops));
    r->pointers = calloc(variant->fill, sizeof(struct sp_op *));
    r->out = calloc(variant->fill, sizeof(*r->out));
    if (status == 0 && (!r->ops || !r->pointers || !r->out))
        status = SP_ENOMEM;
    return status;
}

/* `fill` operations through the queue. */
static int run_batch(struct runner *r)
{
    unsigned fill = r->variant->fill;
    struct sp_op *done[FILL_MAX];
    size_t left = fill;

    for (unsigned i = 0; i < fill; i++) {
        asym_case_op(r->material, &r->ops[i], r->out[i]);
        r->pointers[i] = &r->ops[i];
    }
    if (sp_queue_submit(r->queue, r->pointers, fill) != fill)
        return SP_ENOMEM;
    while (left) {
        size_t n;

        while (sp_queue_flush(r->queue, SP_FLUSH_ALL))
            ;
        n = sp_queue_poll(r->queue, done, FILL_MAX);
        left -= n;
        if (n == 0)
            sched_yield();
    }
    r->variant->lanes = r->ops[0].lanes > 1 || r->ops[0].backend != SP_BACKEND_OPENSSL ? r->ops[0].lanes : 0;
    return r->ops[fill - 1].status;
}

static int check(struct runner *r)
{
    int status;

    if (!r->queue)
        return asym_case_reference(r->material);
    status = run_batch(r);
    for (unsigned i = 0; i < r->variant->fill && status == 0; i++) {
        if (r->ops[i].status != 0 || asym_case_check(r->material, r->out[i]) != 0)
            status = SP_EFAULT;
    }
    return status;
}

static int time_slice(struct runner *r, unsigned round, uint64_t slice_ns)
{
    uint64_t start = clock_now_ns(), start_cpu = cpu_ns(), took = 0, took_cpu, count = 0;
    int status = 0;

    while (took < slice_ns && status == 0) {
        status = r->queue ? run_batch(r) : asym_case_reference(r->material);
        count += r->queue ? r->variant->fill : 1;
        took = clock_now_ns() - start;
    }
    took_cpu = cpu_ns() - start_cpu;
    r->rate[round] = (double)count * 1e9 / (double)took;
    r->cpu_rate[round] = (double)count * 1e9 / (double)(took_cpu ? took_cpu : 1);
    return status;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values, unsigned n)
{
    qsort(values, n, sizeof(*values), compare);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static void summarise(struct runner *r, const struct runner *reference, unsigned rounds)
{
    struct asym_variant *v = r->variant;
    double ratios[ASYM_ROUNDS_MAX], rates[ASYM_ROUNDS_MAX];

    for (unsigned i = 0; i < rounds; i++)
        ratios[i] = r->cpu_rate[i] / reference->cpu_rate[i];
    v->ratio = median(ratios, rounds);
    v->ratio_low = ratios[0];
    v->ratio_high = ratios[rounds - 1];
    memcpy(rates, r->rate, sizeof(rates));
    v->ops_per_s = median(rates, rounds);
    memcpy(rates, r->cpu_rate, sizeof(rates));
    v->ops_per_cpu_s = median(rates, rounds);
}

/* All variants of one algorithm, interleaved. */
static int measure_group(const struct asym_run *run, struct asym_variant *variants, size_t count,
                         const struct asym_variant **failed)
{
    struct runner *runners = calloc(count, sizeof(*runners));
    struct asym_case material;
    int status = runners ? asym_case_init(&material, variants[0].algorithm) : SP_ENOMEM;
    size_t ready = 0;

    if (status != 0) {
        free(runners);
        *failed = &variants[0];
        return status;
    }
    for (; ready < count && status == 0; ready++) {
        *failed = &variants[ready];
        status = runner_init(&runners[ready], &variants[ready], &material);
        if (status == 0)
            status = check(&runners[ready]); /* and warms up */
    }
    for (unsigned round = 0; round < run->rounds && status == 0; round++) {
        if (run->progress)
            run->progress(run->progress_arg, variants[0].algorithm, round);
        for (size_t i = 0; i < count && status == 0; i++) {
            *failed = &variants[i];
            status = time_slice(&runners[i], round, run->slice_ns);
        }
    }
    for (size_t i = 0; i < count && status == 0; i++)
        summarise(&runners[i], &runners[0], run->rounds);
    for (size_t i = 0; i < ready; i++)
        runner_release(&runners[i]);
    free(runners);
    asym_case_release(&material);
    return status;
}

int asym_measure(struct asym_run *run, const struct asym_variant **failed)
{
    size_t at = 0;
    int status = 0;

    while (at < run->count && status == 0) {
        size_t n = 1;

        while (at + n < run->count && run->variants[at + n].algorithm == run->variants[at].algorithm)
            n++;
        status = measure_group(run, run->variants + at, n, failed);
        at += n;
    }
    return status;
}
