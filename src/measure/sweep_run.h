/*
 * The engine of the sweep: which cells there are, and each measured, interleaved with the others of its size and mode.
 *
 * One size of one algorithm in one mode after the other; in each, implementations that can do it are checked against OpenSSL,
 * warmed up, and timed in rounds, in another order each round.
 */
#ifndef SP_MEASURE_SWEEP_RUN_H
#define SP_MEASURE_SWEEP_RUN_H

#include "measure/sweep_impl.h"

#include <signal.h>

/* Buffers of one cell, all threads and requests together. */
#define SWEEP_MEMORY_MAX (2ull << 30)

/* What stands behind an implementation of the result, by the same index. */
struct sweep_source {
    const struct sweep_impl *impl;
    const char *argument; /* of its spec; NULL: none */
    /* Of sweep_open. */
    struct sweep_device *device; /* NULL: not opened, */
    int status;                  /* and why */
    struct sweep_why why;
};

struct sweep_progress {
    const struct sweep_algorithm *algorithm;
    struct sweep_mode mode;
    uint64_t request_bytes;
    size_t done, total;  /* slices */
    uint64_t elapsed_ns;
    uint64_t left_ns;    /* at the pace so far; UINT64_MAX: too early to say */
};

struct sweep_run {
    struct sweep_result *result;
    struct sweep_source sources[SWEEP_IMPLS_MAX];
    uint64_t seed;        /* of keys and orders */
    uint64_t patience_ns; /* 0: SWEEP_PATIENCE_NS */
    const volatile sig_atomic_t *stop; /* not 0: end soon; NULL: never */
    void (*progress)(void *arg, const struct sweep_progress *progress); /* before each slice; NULL */
    void *progress_arg;
    /* Results. */
    size_t planned; /* cells to measure, of sweep_prepare */
    size_t wrong;   /* cells whose implementation gave wrong results */
    size_t stuck;   /* implementations that stopped answering */
    size_t failed;  /* cells not measured for another reason that came up only when they were tried */
};

/*
 * Opens the devices; the result has specs and sizes and modes. 0 also when none can be opened: each source says so.
 * SP_ENOMEM.
 */
int sweep_open(struct sweep_run *run);
/* Takes an implementation that is not open out of the run; those behind it move up. Before sweep_prepare. */
void sweep_remove(struct sweep_run *run, size_t i);
/*
 * Makes the cells; those that cannot be measured say why. Of the result, algorithms, modes, sizes, impls, rounds and in_place
 * are set. SP_ENOMEM.
 */
int sweep_prepare(struct sweep_run *run);
/* How many slices sweep_measure will time, and in `*overhead` about how many slices more its checks and edges take. */
size_t sweep_slices(const struct sweep_run *run, size_t *overhead);
/*
 * Measures the planned cells; result->slice_ns is set now. 0 (what went wrong is in the cells and counts), SP_ECANCELED by
 * `stop`, SP_ENOMEM.
 */
int sweep_measure(struct sweep_run *run);
/* Closes the devices; after a failure too. The result stays. */
void sweep_finish(struct sweep_run *run);

#endif
