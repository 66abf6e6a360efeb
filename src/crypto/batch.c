#include "crypto/batch.h"

#include "base/clock.h"
#include "crypto/lanes_state.h"
#include "crypto/queue_internal.h"

void batch_push(struct batch_lists *lists, struct sp_op *op)
{
    struct batch_list *list = &lists->rows[op->algorithm];

    op->next = NULL;
    op->previous = list->last;
    if (list->last)
        list->last->next = op;
    else
        list->first = op;
    list->last = op;
    list->count++;
    lists->count++;
}

void batch_remove(struct batch_lists *lists, struct sp_op *op)
{
    struct batch_list *list = &lists->rows[op->algorithm];

    if (op->previous)
        op->previous->next = op->next;
    else
        list->first = op->next;
    if (op->next)
        op->next->previous = op->previous;
    else
        list->last = op->previous;
    op->next = op->previous = NULL;
    list->count--;
    lists->count--;
}

/* The row to run next; NULL: none. */
static const struct batch_list *next_row(const struct batch_lists *lists, bool full_only, bool with_dear)
{
    const struct batch_list *oldest = NULL;

    if (lists->count == 0)
        return NULL;
    for (unsigned i = 0; i < SP_ALGORITHMS; i++) {
        const struct batch_list *list = &lists->rows[i];
        /* A row without lanes gains nothing by waiting for more. */
        bool waits = full_only && algorithm_rows[i].run_lanes && list->count < SP_LANES_MAX;

        if (list->count == 0 || waits)
            continue;
        if (!algorithm_rows[i].is_dear)
            return list;
        if (with_dear && (!oldest || list->first->submitted_ns < oldest->first->submitted_ns))
            oldest = list;
    }
    return oldest;
}

bool batch_has(const struct batch_lists *lists, bool full_only, bool with_dear)
{
    return next_row(lists, full_only, with_dear) != NULL;
}

/*
 * How many are worth taking together. A call may take any time: one by one. Five to seven of a row with half batches
 * cost as much as eight: four go for half of it, and by the time they are done the others may have company.
 */
static unsigned batch_most(const struct batch_list *list)
{
    if (list->first->kind == SP_OP_CALL)
        return 1;
    if (algorithm_rows[list->first->algorithm].has_half_batch && list->count < SP_LANES_MAX)
        return SP_LANES_MAX / 2;
    return SP_LANES_MAX;
}

unsigned batch_take(struct batch_lists *lists, bool full_only, bool with_dear, struct sp_op *ops[SP_LANES_MAX])
{
    const struct batch_list *list = next_row(lists, full_only, with_dear);
    unsigned most = list ? batch_most(list) : 0, n = 0;

    while (list && list->first && n < most) {
        ops[n] = list->first;
        batch_remove(lists, ops[n++]);
    }
    return n;
}

static struct algorithm_tally *tally_of(const struct sp_op *op)
{
    return &op->queue->tally.algorithms[op->algorithm];
}

static void finish(struct sp_op *op, enum sp_backend backend, unsigned lanes)
{
    struct algorithm_tally *tally = tally_of(op);

    op->backend = backend;
    op->lanes = lanes;
    tally_count(op->status == 0 ? &tally->done[backend] : &tally->failed[backend], 1);
}

void batch_note_end(struct sp_op *op, enum sp_backend backend)
{
    finish(op, backend, 1);
}

static void run_scalar(struct sp_op *op, enum sp_backend as)
{
    op->status = algorithm_rows[op->algorithm].run_scalar(op);
    finish(op, as == SP_BACKENDS ? SP_BACKEND_OPENSSL : as, 1);
}

static void run_in_lanes(struct sp_op *const *ops, unsigned n, enum sp_backend as, struct algorithm_memory *memory)
{
    enum sp_algorithm algorithm = ops[0]->algorithm;

    algorithm_rows[algorithm].run_lanes(ops, n, memory);
    tally_count(&tally_of(ops[0])->batches[n], 1);
    for (unsigned i = 0; i < n; i++) {
        if (ops[i]->status == SP_EFAULT) {
            tally_count(&tally_of(ops[i])->fallbacks[SP_FALLBACK_VERIFY], 1);
            lanes_note_fault(algorithm);
            run_scalar(ops[i], as);
        } else {
            finish(ops[i], as == SP_BACKENDS ? SP_BACKEND_MULTIBUFFER : as, n);
        }
    }
}

/* How many of the first n go into lanes, and why the others do not. */
static unsigned plan(const struct sp_op *op, unsigned n, const struct batch_rules *rules, enum sp_fallback *reason)
{
    enum sp_algorithm algorithm = op->algorithm;

    *reason = SP_FALLBACKS;
    if (!algorithm_rows[algorithm].run_lanes || !(rules->lanes >> algorithm & 1))
        return 0; /* meant so */
    *reason = SP_FALLBACK_NO_LANES;
    if (!lanes_prepare(algorithm, op->rsa))
        return 0;
    *reason = SP_FALLBACK_BREAK_EVEN;
    return rules->lanes_always ? n : lanes_plan(algorithm, n);
}

void batch_run(struct sp_op *const *ops, unsigned n, const struct batch_rules *rules, enum sp_backend as,
               struct algorithm_memory *memory)
{
    uint64_t now_ns = clock_now_ns();
    enum sp_fallback reason;
    unsigned in_lanes = plan(ops[0], n, rules, &reason);

    for (unsigned i = 0; i < n; i++)
        tally_wait(tally_of(ops[i]), now_ns - ops[i]->submitted_ns);
    if (in_lanes)
        run_in_lanes(ops, in_lanes, as, memory);
    for (unsigned i = in_lanes; i < n; i++) {
        if (reason != SP_FALLBACKS)
            tally_count(&tally_of(ops[i])->fallbacks[reason], 1);
        run_scalar(ops[i], as);
    }
}
