/*
 * The threads that time implementations at one size in one mode, and the window in which requests count.
 *
 * A slice: all threads begin to ask; when each has done its first block the window opens; when it closes they go on until
 * each has seen it closed, so that the load is the same all through it. A block that lies across an end of the window counts
 * by the share of its time inside. The clock is read once or twice a block, not once a request.
 */
#ifndef SP_MEASURE_SWEEP_CREW_H
#define SP_MEASURE_SWEEP_CREW_H

#include "measure/sweep_impl.h"
#include "measure/sweep_latency.h"

#include <signal.h>

struct sweep_crew;

struct sweep_crew_options {
    const struct sweep_key *key;
    struct sweep_mode mode;
    uint64_t request_bytes;
    bool in_place;
    uint64_t patience_ns;
    const volatile sig_atomic_t *stop; /* not 0: slices end early with SP_ECANCELED; NULL: never */
};

struct sweep_slice {
    double requests_per_s; /* in the window, without failed ones */
    /* From the first request to the last, those before and behind the window too; what the CPU times below belong to. */
    uint64_t requests, errors, async; /* completed and good; completed and failed; good and asynchronous */
    uint64_t busy_ns, own_cpu_ns;     /* SWEEP_CPU_UNKNOWN: not known */
};

/* 0; SP_ENOMEM, SP_EIO (no threads): `why` says it. */
int sweep_crew_new(struct sweep_crew **out, const struct sweep_crew_options *options, struct sweep_why *why);
/*
 * On every thread at the same time: checks the implementation, then opens a session. `i`: below SWEEP_IMPLS_MAX, one of its
 * own for each. 0 or what sweep_check and session_open say; then it cannot be timed.
 */
int sweep_crew_open(struct sweep_crew *crew, unsigned i, const struct sweep_impl *impl, struct sweep_device *device,
                    struct sweep_why *why);
/* Times one that was opened. Its sampled latencies are added to `latency`. SP_ETIMEDOUT: stuck; SP_ECANCELED. */
int sweep_crew_time(struct sweep_crew *crew, unsigned i, uint64_t slice_ns, struct sweep_slice *out,
                    struct sweep_latency *latency, struct sweep_why *why);
/* Closes all sessions on their threads; NULL is allowed. */
void sweep_crew_free(struct sweep_crew *crew);

#endif
