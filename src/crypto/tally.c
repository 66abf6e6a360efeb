#include "crypto/tally.h"

void tally_wait(struct algorithm_tally *tally, uint64_t wait_ns)
{
    uint64_t us = wait_ns / 1000;
    unsigned bucket = us ? 64 - (unsigned)__builtin_clzll(us) : 0;

    tally_count(&tally->wait_us[bucket < SP_WAIT_BUCKETS ? bucket : SP_WAIT_BUCKETS - 1], 1);
}

static void add(uint64_t *sum, const atomic_ullong *counters, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        sum[i] += atomic_load_explicit(&counters[i], memory_order_relaxed);
}

void tally_add_to(const struct queue_tally *tally, struct sp_queue_counters *sum)
{
    for (unsigned i = 0; i < SP_ALGORITHMS; i++) {
        const struct algorithm_tally *from = &tally->algorithms[i];
        struct sp_algorithm_counters *to = &sum->algorithms[i];

        add(to->done, from->done, SP_BACKENDS);
        add(to->failed, from->failed, SP_BACKENDS);
        add(to->batches, from->batches, SP_LANES_MAX + 1);
        add(to->fallbacks, from->fallbacks, SP_FALLBACKS);
        add(to->wait_us, from->wait_us, SP_WAIT_BUCKETS);
        add(&to->canceled, &from->canceled, 1);
    }
    add(&sum->refused, &tally->refused, 1);
    add(&sum->pooled, &tally->pooled, 1);
}
