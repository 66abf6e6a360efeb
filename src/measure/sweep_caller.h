/*
 * One thread's use of one implementation: a session, its requests, and blocks of them between two looks at the clock.
 *
 * Each request has a buffer pair of its own (in place: one buffer) that it uses again and again, as `openssl speed` and the
 * published kernel module do: one request at a time finds its data in the cache up to the cache's size.
 */
#ifndef SP_MEASURE_SWEEP_CALLER_H
#define SP_MEASURE_SWEEP_CALLER_H

#include "measure/sweep_impl.h"
#include "measure/sweep_latency.h"

struct sweep_caller {
    const struct sweep_impl *impl;
    struct sweep_session *session;
    struct sweep_request *requests; /* `depth` of them */
    struct sweep_request **idle, **done;
    unsigned idle_count, depth;
    uint32_t len;
    bool by_run;         /* through the implementation's `run` */
    bool is_stuck;       /* requests never came back: what is borrowed is leaked */
    unsigned block;      /* requests between two looks at the clock; adapted by the user */
    uint64_t clock_ns;   /* what one look costs: taken off sampled latencies */
    uint64_t patience_ns;
    /* Since the user last cleared them. */
    uint64_t completed, errors, async;
    struct sweep_latency latency; /* one request a block, counted for all of the block */
};

/* Bytes of memory that `depth` requests want at most when the sweep provides it. */
uint64_t sweep_caller_memory(uint64_t request_bytes, unsigned depth, bool in_place);

struct sweep_caller_options {
    const struct sweep_impl *impl;
    struct sweep_device *device;
    const struct sweep_key *key;
    unsigned thread, depth;
    uint64_t request_bytes;
    bool in_place;
    uint8_t *memory; /* sweep_caller_memory bytes, 64-byte aligned; used by implementations without buffers of their own */
    uint64_t clock_ns, patience_ns;
};
/* On the thread that will use it. 0; what session_open says; SP_ENOMEM. */
int sweep_caller_open(struct sweep_caller *caller, const struct sweep_caller_options *options, struct sweep_why *why);
/*
 * Asks until `caller->block` more requests have completed, with `depth` in flight all the time. `now_ns`: the time at its
 * start. SP_ETIMEDOUT: nothing completed for patience_ns; then only close is left to call.
 */
int sweep_caller_block(struct sweep_caller *caller, uint64_t now_ns);
/* Waits for what is in flight. 0, SP_ETIMEDOUT. */
int sweep_caller_drain(struct sweep_caller *caller);
/* After a failed open too. Whether all memory came back; if not, options->memory is lost to the device. */
bool sweep_caller_close(struct sweep_caller *caller);

#endif
