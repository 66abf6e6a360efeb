#include "load/record.h"

#include "base/status.h"

#include <stdlib.h>

static void add_counts(struct load_result *out, const struct load_record *r)
{
    out->sent += r->sent;
    out->requests += r->requests;
    for (int i = 0; i < LOAD_ERRORS; i++)
        out->errors[i] += r->errors[i];
    for (int i = 0; i < 6; i++)
        out->status_class[i] += r->status_class[i];
    out->bytes_in += r->bytes_in;
    out->bytes_out += r->bytes_out;
    out->body_bytes += r->body_bytes;
    out->connects += r->connects;
    out->handshakes_full += r->handshakes_full;
    out->handshakes_resumed += r->handshakes_resumed;
    out->reconnects += r->reconnects;
    if (r->late_us_max > out->late_us_max)
        out->late_us_max = r->late_us_max;
}

static void add_histograms(struct load_result *out, const struct load_record *r)
{
    histogram_merge(out->connect, &r->connect);
    histogram_merge(out->handshake_full, &r->handshake_full);
    histogram_merge(out->handshake_resumed, &r->handshake_resumed);
    histogram_merge(out->first_byte, &r->first_byte);
    histogram_merge(out->service, &r->service);
    histogram_merge(out->latency, &r->latency);
}

/* The earliest of all threads. */
static void add_examples(struct load_sum *sum, const struct load_record *const *records,
                         size_t count)
{
    for (int e = 0; e < LOAD_ERRORS; e++) {
        const struct load_record *first = NULL;

        for (size_t i = 0; i < count; i++) {
            if (records[i]->errors[e] &&
                (!first || records[i]->example_us[e] < first->example_us[e]))
                first = records[i];
        }
        if (first)
            memcpy(sum->result.examples[e], first->examples[e], LOAD_EXAMPLE_BYTES);
    }
}

static void add_tls(struct load_sum *sum, const struct load_record *const *records, size_t count)
{
    const struct load_record *first = NULL;

    for (size_t i = 0; i < count; i++) {
        if (records[i]->tls_us && (!first || records[i]->tls_us < first->tls_us))
            first = records[i];
    }
    if (!first)
        return;
    memcpy(sum->tls_version, first->tls_version, sizeof(sum->tls_version));
    memcpy(sum->tls_cipher, first->tls_cipher, sizeof(sum->tls_cipher));
    sum->result.tls_version = sum->tls_version;
    sum->result.tls_cipher = sum->tls_cipher;
}

static void add_times(struct load_result *out, const struct load_record *const *records,
                      size_t count)
{
    uint64_t first_us = UINT64_MAX, last_us = 0;

    for (size_t i = 0; i < count; i++) {
        if (records[i]->first_us && records[i]->first_us < first_us)
            first_us = records[i]->first_us;
        if (records[i]->last_us > last_us)
            last_us = records[i]->last_us;
    }
    out->duration_us = last_us > first_us ? last_us - first_us : 0;
}

/* The threads' periods may differ in width, by a power of two. */
static struct load_interval sum_interval(const struct load_record *const *records, size_t count,
                                         uint64_t width_us, size_t index)
{
    struct load_interval out = {.start_us = index * width_us};
    uint64_t buckets[LOAD_COARSE_BUCKETS] = {0};

    for (size_t i = 0; i < count; i++) {
        size_t each = (size_t)(width_us / records[i]->period_us);

        for (size_t k = index * each; k < (index + 1) * each && k < records[i]->period_count; k++) {
            const struct load_period *p = &records[i]->periods[k];

            out.requests += p->requests;
            out.errors += p->errors;
            out.bytes_in += p->bytes_in;
            if (p->max_us > out.max_us)
                out.max_us = p->max_us;
            for (unsigned b = 0; b < LOAD_COARSE_BUCKETS; b++)
                buckets[b] += p->buckets[b];
        }
    }
    out.p50_us = load_coarse_percentile_us(buckets, 50, out.max_us);
    out.p99_us = load_coarse_percentile_us(buckets, 99, out.max_us);
    return out;
}

static int add_intervals(struct load_result *out, const struct load_record *const *records,
                         size_t count)
{
    uint64_t width_us = 0, end_us = 0;
    size_t n;

    for (size_t i = 0; i < count; i++) {
        const struct load_record *r = records[i];

        if (!r->periods)
            return 0;
        if (r->period_us > width_us)
            width_us = r->period_us;
        if (r->period_count * r->period_us > end_us)
            end_us = r->period_count * r->period_us;
    }
    if (end_us == 0)
        return 0;
    n = (size_t)((end_us + width_us - 1) / width_us);
    out->intervals = calloc(n, sizeof(*out->intervals));
    if (!out->intervals)
        return SP_ENOMEM;
    for (size_t i = 0; i < n; i++)
        out->intervals[i] = sum_interval(records, count, width_us, i);
    out->interval_count = n;
    return 0;
}

int load_sum_records(struct load_sum *sum, const struct load_record *const *records, size_t count)
{
    struct load_result *out = &sum->result;

    for (int i = 0; i < 6; i++)
        histogram_init(&sum->histograms[i]);
    out->connect = &sum->histograms[0];
    out->handshake_full = &sum->histograms[1];
    out->handshake_resumed = &sum->histograms[2];
    out->first_byte = &sum->histograms[3];
    out->service = &sum->histograms[4];
    out->latency = &sum->histograms[5];
    for (size_t i = 0; i < count; i++) {
        add_counts(out, records[i]);
        add_histograms(out, records[i]);
    }
    add_examples(sum, records, count);
    add_tls(sum, records, count);
    add_times(out, records, count);
    return add_intervals(out, records, count);
}
