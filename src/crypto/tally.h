/*
 * Counters of a queue, written by its own thread and by crypto threads, read by any.
 */
#ifndef SP_CRYPTO_TALLY_H
#define SP_CRYPTO_TALLY_H

#include <sallyport/queue.h>

#include <stdatomic.h>

/* The same fields as the public structures, which say what they count. */
struct algorithm_tally {
    atomic_ullong done[SP_BACKENDS];
    atomic_ullong failed[SP_BACKENDS];
    atomic_ullong batches[SP_LANES_MAX + 1];
    atomic_ullong fallbacks[SP_FALLBACKS];
    atomic_ullong wait_us[SP_WAIT_BUCKETS];
    atomic_ullong canceled;
};
struct queue_tally {
    struct algorithm_tally algorithms[SP_ALGORITHMS];
    atomic_ullong refused;
    atomic_ullong pooled;
};

static inline void tally_count(atomic_ullong *counter, unsigned long long n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* An operation is about to run after having waited since it was submitted. */
void tally_wait(struct algorithm_tally *tally, uint64_t wait_ns);
void tally_add_to(const struct queue_tally *tally, struct sp_queue_counters *sum);

#endif
