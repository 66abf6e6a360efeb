#include "load/record.h"

#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define SECOND_US 1000000u
#define DRAIN_US SECOND_US

unsigned load_coarse_bucket(uint64_t value_us)
{
    uint32_t value = value_us > HISTOGRAM_MAX_US ? HISTOGRAM_MAX_US : (uint32_t)value_us;
    unsigned shift;

    if (value < 16)
        return value;
    shift = 27 - (unsigned)__builtin_clz(value);
    return shift * 16 + (value >> shift);
}

uint64_t load_coarse_top_us(unsigned bucket)
{
    unsigned shift;

    if (bucket < 32)
        return bucket;
    shift = bucket / 16 - 1;
    return ((uint64_t)(bucket - shift * 16 + 1) << shift) - 1;
}

uint64_t load_coarse_percentile_us(const uint64_t buckets[LOAD_COARSE_BUCKETS], double percent,
                                   uint64_t max_us)
{
    uint64_t total = 0, seen = 0;
    double wanted;

    for (unsigned i = 0; i < LOAD_COARSE_BUCKETS; i++)
        total += buckets[i];
    wanted = (double)total * percent / 100;
    for (unsigned i = 0; i < LOAD_COARSE_BUCKETS; i++) {
        seen += buckets[i];
        if (seen && (double)seen >= wanted) {
            uint64_t top = load_coarse_top_us(i);

            return top < max_us ? top : max_us;
        }
    }
    return 0;
}

/* --- life -------------------------------------------------------------------------------- */

int load_record_init(struct load_record *r, const struct load_plan *plan)
{
    uint64_t count = LOAD_PERIODS_MAX;

    if (plan->interval_us == 0)
        return 0;
    /* The last answers may come when the time is over. */
    if (plan->duration_us)
        count = (plan->duration_us + plan->timeout_us + DRAIN_US) / plan->interval_us + 2;
    r->period_capacity = count < LOAD_PERIODS_MAX ? (size_t)count : LOAD_PERIODS_MAX;
    r->period_us = plan->interval_us;
    r->periods = calloc(r->period_capacity, sizeof(*r->periods));
    return r->periods ? 0 : SP_ENOMEM;
}

void load_record_release(struct load_record *r)
{
    free(r->periods);
    r->periods = r->period = NULL;
}

void load_record_start(struct load_record *r, uint64_t measure_us)
{
    r->measure_us = measure_us;
    r->live_end_us = measure_us;
    r->period_end_us = measure_us;
}

/* --- the time series ------------------------------------------------------------------------ */

static void add_period(struct load_period *into, const struct load_period *from)
{
    into->requests += from->requests;
    into->errors += from->errors;
    into->bytes_in += from->bytes_in;
    if (from->max_us > into->max_us)
        into->max_us = from->max_us;
    for (unsigned i = 0; i < LOAD_COARSE_BUCKETS; i++)
        into->buckets[i] += from->buckets[i];
}

/* Twice the width, half as many. */
static void widen(struct load_record *r)
{
    struct load_period *p = r->periods;

    for (size_t i = 0; i < r->period_count; i++) {
        if (i == 0)
            continue;
        if (i % 2 == 0)
            p[i / 2] = p[i];
        else
            add_period(&p[i / 2], &p[i]);
    }
    r->period_count = (r->period_count + 1) / 2;
    memset(p + r->period_count, 0, (r->period_capacity - r->period_count) * sizeof(*p));
    r->period_us *= 2;
}

static void find_period(struct load_record *r, uint64_t now_us)
{
    uint64_t since_us = now_us > r->measure_us ? now_us - r->measure_us : 0;

    while (since_us / r->period_us >= r->period_capacity)
        widen(r);
    r->period = &r->periods[since_us / r->period_us];
    r->period_end_us = r->measure_us + (since_us / r->period_us + 1) * r->period_us;
    if (r->period_count <= since_us / r->period_us)
        r->period_count = (size_t)(since_us / r->period_us) + 1;
}

/* NULL: none is kept. */
static inline struct load_period *period_at(struct load_record *r, uint64_t now_us)
{
    if (r->periods && now_us >= r->period_end_us)
        find_period(r, now_us);
    return r->period;
}

static void next_second(struct load_record *r, uint64_t now_us)
{
    uint64_t second = (now_us - r->measure_us) / SECOND_US;
    struct load_live *live = &r->live[second % LOAD_LIVE_SECONDS];

    for (unsigned i = 0; i < LOAD_COARSE_BUCKETS; i++)
        atomic_store_explicit(&live->buckets[i], 0, memory_order_relaxed);
    atomic_store_explicit(&live->second, second + 1, memory_order_release);
    r->live_now = live;
    r->live_end_us = r->measure_us + (second + 1) * SECOND_US;
}

/* --- events ------------------------------------------------------------------------------------ */

static uint64_t since(uint64_t from_us, uint64_t to_us)
{
    return to_us > from_us ? to_us - from_us : 0;
}

void load_record_answer(struct load_record *r, const struct load_times *t)
{
    uint64_t latency_us = since(t->base_us, t->end_us);
    unsigned bucket = load_coarse_bucket(latency_us);
    struct load_period *period = period_at(r, t->end_us);
    _Atomic uint32_t *live;

    r->requests++;
    r->last_us = t->end_us;
    histogram_record(&r->latency, latency_us);
    histogram_record(&r->service, since(t->sent_us, t->end_us));
    if (t->first_us)
        histogram_record(&r->first_byte, since(t->sent_us, t->first_us));
    if (period) {
        period->requests++;
        period->buckets[bucket]++;
        if (latency_us > period->max_us)
            period->max_us =
                latency_us > HISTOGRAM_MAX_US ? HISTOGRAM_MAX_US : (uint32_t)latency_us;
    }
    if (t->end_us >= r->live_end_us)
        next_second(r, t->end_us);
    /* One writer: no locked additions. */
    live = &r->live_now->buckets[bucket];
    atomic_store_explicit(live, atomic_load_explicit(live, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    atomic_store_explicit(&r->live_requests, r->requests, memory_order_relaxed);
}

void load_record_bytes_in(struct load_record *r, uint64_t now_us, size_t bytes)
{
    struct load_period *period = period_at(r, now_us);

    r->bytes_in += bytes;
    if (period)
        period->bytes_in += bytes;
}

void load_record_error(struct load_record *r, uint64_t now_us, enum load_error error,
                       const char *format, ...)
{
    struct load_period *period = period_at(r, now_us);
    va_list args;

    if (r->errors[error]++ == 0) {
        va_start(args, format);
        vsnprintf(r->examples[error], LOAD_EXAMPLE_BYTES, format, args);
        va_end(args);
        r->example_us[error] = now_us;
    }
    r->error_count++;
    r->last_us = now_us;
    if (period)
        period->errors++;
    atomic_store_explicit(&r->live_errors, r->error_count, memory_order_relaxed);
}
