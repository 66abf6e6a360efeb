#include "load/engine.h"

#include "base/clock.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>

static const struct {
    const char *name, *text;
} errors[LOAD_ERRORS] = {
    [LOAD_ERROR_REFUSED] = {"refused", "connection refused"},
    [LOAD_ERROR_UNREACHABLE] = {"unreachable", "server unreachable"},
    [LOAD_ERROR_RESOURCES] = {"resources", "out of descriptors, ports or memory"},
    [LOAD_ERROR_TIMEOUT_CONNECT] = {"timeout_connect", "timed out connecting"},
    [LOAD_ERROR_TIMEOUT_HANDSHAKE] = {"timeout_handshake", "timed out in the TLS handshake"},
    [LOAD_ERROR_TIMEOUT_FIRST_BYTE] = {"timeout_first_byte",
                                       "timed out waiting for the first byte"},
    [LOAD_ERROR_TIMEOUT_BODY] = {"timeout_body", "timed out in the middle of an answer"},
    [LOAD_ERROR_RESET] = {"reset", "connection reset"},
    [LOAD_ERROR_CLOSED] = {"closed", "connection closed before the end of the answer"},
    [LOAD_ERROR_TLS] = {"tls", "TLS failed"},
    [LOAD_ERROR_HTTP] = {"http", "the answer is no HTTP"},
    [LOAD_ERROR_STATUS] = {"status", "unexpected status"},
    [LOAD_ERROR_SIZE] = {"size", "unexpected size of the body"},
    [LOAD_ERROR_HASH] = {"hash", "unexpected content of the body"},
};

const char *load_error_text(enum load_error error)
{
    return error < LOAD_ERRORS ? errors[error].text : "unknown error";
}

const char *load_error_name(enum load_error error)
{
    return error < LOAD_ERRORS ? errors[error].name : "unknown";
}

/* --- the plan ------------------------------------------------------------------------------------ */

static bool request_is_good(const struct load_plan *plan, const struct load_request *q)
{
    const struct load_target *target = q->target;

    if (!target || target < plan->targets || target >= plan->targets + plan->target_count)
        return false;
    if (target->is_tls && !target->tls)
        return false;
    return plan->handshake_only || q->bytes.len > 0;
}

static int check_plan(const struct load_plan *plan)
{
    if (plan->target_count == 0 || plan->request_count == 0)
        return SP_EINVAL;
    if (plan->threads == 0 || plan->connections < plan->threads)
        return SP_EINVAL;
    if (!plan->request_limit == !plan->duration_us)
        return SP_EINVAL;
    if (!(plan->resume_ratio >= 0 && plan->resume_ratio <= 1))
        return SP_EINVAL;
    if (plan->arrivals != LOAD_CLOSED && !(plan->rate > 0 && isfinite(plan->rate)))
        return SP_EINVAL;
    if (plan->duration_us > UINT64_MAX / 4 || plan->warmup_us > UINT64_MAX / 4 ||
        plan->timeout_us > UINT64_MAX / 4)
        return SP_EINVAL;
    for (size_t i = 0; i < plan->request_count; i++) {
        if (!request_is_good(plan, &plan->requests[i]))
            return SP_EINVAL;
    }
    return 0;
}

/* --- life ------------------------------------------------------------------------------------------ */

int load_new(struct load **out, const struct load_plan *plan)
{
    int status = check_plan(plan);
    struct load *load;

    if (status != 0)
        return status;
    load = calloc(1, sizeof(*load));
    if (!load)
        return SP_ENOMEM;
    load->plan = plan;
    load->threads = calloc(plan->threads, sizeof(*load->threads));
    if (!load->threads) {
        load_free(load);
        return SP_ENOMEM;
    }
    for (unsigned i = 0; i < plan->threads; i++) {
        status = load_thread_new(&load->threads[i], load, i);
        if (status != 0) {
            load_free(load);
            return status;
        }
        load->thread_count++;
    }
    *out = load;
    return 0;
}

static void join(struct load *load)
{
    for (unsigned i = 0; i < load->thread_count; i++) {
        if (load->threads[i]->started)
            pthread_join(load->threads[i]->id, NULL);
        load->threads[i]->started = false;
    }
    load->is_joined = true;
}

void load_free(struct load *load)
{
    if (!load)
        return;
    if (load->is_started && !load->is_joined) {
        load_stop(load);
        join(load);
    }
    for (unsigned i = 0; i < load->thread_count; i++)
        load_thread_free(load->threads[i]);
    free(load->threads);
    free(load->sum.result.intervals);
    free(load);
}

static int start_thread(struct load_thread *t)
{
    pthread_attr_t attr;
    int error;

    error = pthread_attr_init(&attr);
    if (error == 0 && t->plan->cpus) {
        cpu_set_t set;

        CPU_ZERO(&set);
        if (t->plan->cpus[t->index] < CPU_SETSIZE)
            CPU_SET((size_t)t->plan->cpus[t->index], &set);
        error = pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
    }
    if (error == 0)
        error = pthread_create(&t->id, &attr, load_thread_run, t);
    pthread_attr_destroy(&attr);
    t->started = error == 0;
    errno = error;
    return error ? SP_EIO : 0;
}

int load_start(struct load *load)
{
    int status;

    for (unsigned i = 0; i < load->thread_count; i++) {
        status = load_thread_prepare(load->threads[i]);
        if (status != 0) {
            errno = status == SP_ENOMEM ? ENOMEM : errno;
            return SP_EIO;
        }
    }
    load->start_us = clock_now_us();
    for (unsigned i = 0; i < load->thread_count; i++) {
        status = start_thread(load->threads[i]);
        if (status != 0) {
            int saved = errno;

            while (i-- > 0)
                load_thread_stop(load->threads[i]);
            join(load);
            errno = saved;
            return status;
        }
    }
    load->is_started = true;
    atomic_store(&load->is_prepared, true);
    if (atomic_load(&load->stopping))
        load_stop(load);
    return 0;
}

void load_stop(struct load *load)
{
    atomic_store(&load->stopping, true);
    if (!atomic_load(&load->is_prepared))
        return; /* load_start looks */
    for (unsigned i = 0; i < load->thread_count; i++)
        load_thread_stop(load->threads[i]);
}

bool load_is_running(const struct load *load)
{
    if (!load->is_started)
        return false;
    for (unsigned i = 0; i < load->thread_count; i++) {
        if (!atomic_load(&load->threads[i]->ended))
            return true;
    }
    return false;
}

/* --- what came of it ----------------------------------------------------------------------------------- */

/*
 * The loop's idle time leaves out what waits for the processor; with io_uring it takes in the kernel's work on what
 * was submitted. The thread's own processor time has the opposite faults.
 */
static double busy_share(const struct load_thread *t)
{
    uint64_t whole_us = t->end_us > t->begin_us ? t->end_us - t->begin_us : 0;
    uint64_t idle_us = t->end_idle_us - t->begin_idle_us;
    double awake, cpu;

    if (t->begin_us == 0 || whole_us == 0)
        return 0;
    awake = idle_us < whole_us ? 1 - (double)idle_us / (double)whole_us : 0;
    cpu = (double)t->end_cpu_ns / 1000 / (double)whole_us;
    if (cpu > 1)
        cpu = 1;
    return awake > cpu ? awake : cpu;
}

const struct load_result *load_wait(struct load *load)
{
    struct load_result *out = &load->sum.result;
    const struct load_record **records;

    if (load->is_joined)
        return out;
    join(load);
    records = calloc(load->thread_count, sizeof(const struct load_record *));
    for (unsigned i = 0; i < load->thread_count; i++) {
        const struct load_thread *t = load->threads[i];
        double busy = busy_share(t);

        out->own_cpu_s += (double)t->cpu_ns / 1e9;
        if (busy > out->busy)
            out->busy = busy;
        out->interrupted |= t->interrupted;
        if (records)
            records[i] = &t->record;
    }
    (void)load_sum_records(&load->sum, records, records ? load->thread_count : 0);
    free(records);
    return out;
}

/* --- meanwhile --------------------------------------------------------------------------------------------- */

/* Adds the second that was whole last. */
static uint64_t add_live(const struct load_record *r, uint64_t second,
                         uint64_t buckets[LOAD_COARSE_BUCKETS])
{
    const struct load_live *live = &r->live[second % LOAD_LIVE_SECONDS];
    uint64_t total = 0;

    if (atomic_load_explicit(&live->second, memory_order_acquire) != second + 1)
        return 0;
    for (unsigned i = 0; i < LOAD_COARSE_BUCKETS; i++) {
        uint32_t n = atomic_load_explicit(&live->buckets[i], memory_order_relaxed);

        buckets[i] += n;
        total += n;
    }
    return total;
}

void load_progress(const struct load *load, struct load_progress *out)
{
    uint64_t buckets[LOAD_COARSE_BUCKETS] = {0};
    uint64_t begin_us = load->start_us + load->plan->warmup_us, now_us = clock_now_us();
    uint64_t second, total = 0;

    *out = (struct load_progress){0};
    if (!load->is_started || now_us <= begin_us)
        return;
    out->elapsed_us = now_us - begin_us;
    second = out->elapsed_us / 1000000;
    for (unsigned i = 0; i < load->thread_count; i++) {
        const struct load_record *r = &load->threads[i]->record;

        out->requests += atomic_load_explicit(&r->live_requests, memory_order_relaxed);
        out->errors += atomic_load_explicit(&r->live_errors, memory_order_relaxed);
        total += add_live(r, second ? second - 1 : 0, buckets);
    }
    out->rate_per_s = second ? (double)total : (double)total * 1e6 / (double)out->elapsed_us;
    out->p99_us = load_coarse_percentile_us(buckets, 99, HISTOGRAM_MAX_US);
}
