/*
 * A made-up result: two algorithms, single and 8 in flight, four sizes, three implementations of which the last is
 * missing.
 */
#ifndef SWEEP_DATA_H
#define SWEEP_DATA_H

#include "measure/sweep.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct sweep_algorithm sweep_data_algorithms[] = {
    {.name = "aes-256-xts", .kind = SWEEP_CIPHER},
    {.name = "aes-128-gcm", .kind = SWEEP_AEAD},
};

static const uint64_t sweep_data_sizes[] = {16, 1024, 64 << 10, 128 << 10};

/* Of a device that starts slow and doubles, 64 KiB even with the reference; with 8 in flight it stays behind. */
static void sweep_data_fill(struct sweep_cell *cell, size_t mode, size_t size, size_t impl)
{
    double device = 0.25e9 * (double)(1u << size), rate = impl == 0 ? 1e9 : mode == 0 ? device : 0.25e9;

    if (impl == 2) {
        cell->why_not = strdup(size < 2 ? "no <card>, \"none\" & nothing" : "requests above 1 KiB are refused");
        return;
    }
    *cell = (struct sweep_cell){.measured = true,
                                .bytes_per_s = rate,
                                .bytes_per_s_low = rate * 0.95,
                                .bytes_per_s_high = rate * 1.05,
                                .requests_per_s = rate / (double)sweep_data_sizes[size],
                                .bytes_per_cpu_s = mode == 1   ? NAN
                                                   : impl == 0 ? 1e9
                                                               : rate * 40,
                                .bytes_per_own_cpu_s = NAN,
                                .p50_us = impl == 0 ? NAN : 12.25,
                                .p99_us = impl == 0 ? NAN : 1234.5,
                                .async_share = impl == 0 ? 0 : 0.5,
                                .requests = 1000,
                                .errors = impl == 1 && size == 0 ? 3 : 0};
}

/* The caller releases it. */
static struct sweep_result sweep_data_new(void)
{
    static const char *const specs[] = {"openssl", "dev<1>", "cryptodev:a,b=\"c\""};
    struct sweep_result r = {.algorithm_count = 2,
                             .modes = {{SWEEP_SINGLE, 1}, {SWEEP_DEPTH, 8}},
                             .mode_count = 2,
                             .size_count = 4,
                             .impl_count = 3,
                             .rounds = 5,
                             .slice_ns = 20000000,
                             .command = strdup("sallyport crypto sweep --impl \"a\\b\"\n\x01 <x>"),
                             .machine = strdup("A & B, 2 CPUs")};

    r.algorithms = calloc(2, sizeof(struct sweep_algorithm *));
    r.cells = calloc(r.algorithm_count * r.mode_count * r.size_count * r.impl_count, sizeof(*r.cells));
    if (!r.algorithms || !r.cells)
        abort();
    for (size_t i = 0; i < 2; i++)
        r.algorithms[i] = &sweep_data_algorithms[i];
    memcpy(r.sizes, sweep_data_sizes, sizeof(sweep_data_sizes));
    for (size_t i = 0; i < 3; i++) {
        r.impls[i].spec = strdup(specs[i]);
        r.impls[i].description = i == 2 ? NULL : strdup("it <is> it");
    }
    for (size_t algorithm = 0; algorithm < 2; algorithm++)
        for (size_t mode = 0; mode < 2; mode++)
            for (size_t size = 0; size < 4; size++)
                for (size_t impl = 0; impl < 3; impl++)
                    sweep_data_fill(sweep_cell_at(&r, algorithm, mode, size, impl), mode, size, impl);
    return r;
}

#endif
