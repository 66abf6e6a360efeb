/*
 * The flush policy, for every algorithm and backend: what runs next, how much of it at a time, and
 * whether in lanes or one by one.
 *
 * - Cheap rows run before dear ones, so that no X25519 waits for an RSA batch. Among dear rows the one
 *   whose oldest operation has waited longest comes next.
 * - A batch holds one row, eight operations at most.
 * - Of n gathered operations as many go into lanes as make the whole quickest by the break-even
 *   points of this machine (lanes_plan); the rest go through the scalar library.
 */
#ifndef SP_CRYPTO_BATCH_H
#define SP_CRYPTO_BATCH_H

#include "crypto/algorithm.h"
#include "crypto/tally.h"

/* Operations that wait, oldest first, by row. */
struct batch_list {
    struct sp_op *first, *last;
    size_t count;
};
struct batch_lists {
    struct batch_list rows[SP_ALGORITHMS];
    size_t count;
};

void batch_push(struct batch_lists *lists, struct sp_op *op);
void batch_remove(struct batch_lists *lists, struct sp_op *op);
/*
 * Takes the next batch out: up to SP_LANES_MAX operations of one row, and how many. `full_only`:
 * only if it fills every lane; `with_dear`: dear rows too. 0: nothing to run.
 */
unsigned batch_take(struct batch_lists *lists, bool full_only, bool with_dear, struct sp_op *ops[SP_LANES_MAX]);
/* True when batch_take would give something. */
bool batch_has(const struct batch_lists *lists, bool full_only, bool with_dear);

/* What may run an operation. */
struct batch_rules {
    unsigned lanes;    /* bits 1 << enum sp_algorithm: rows that may use lanes */
    bool lanes_always; /* however few */
};

/* An operation has ended elsewhere: its status is set; counts it. */
void batch_note_end(struct sp_op *op, enum sp_backend backend);

/*
 * Runs ops[n], 1 to SP_LANES_MAX of one row, to their end: statuses, backends and counters are set.
 * `as`: the backend to count them under, SP_BACKENDS for the one that really ran each.
 */
void batch_run(struct sp_op *const *ops, unsigned n, const struct batch_rules *rules, enum sp_backend as,
               struct algorithm_memory *memory);

#endif
