#include <sallyport/queue.h>

#include "base/clock.h"
#include "crypto/backend/cryptodev.h"
#include "crypto/backend/multibuffer.h"
#include "crypto/backend/threads.h"
#include "crypto/cryptodev/cryptodev.h"
#include "crypto/lanes_state.h"
#include "crypto/prepared.h"
#include "crypto/queue_internal.h"

#include <stdlib.h>
#include <string.h>

#define ALL_ALGORITHMS ((1u << SP_ALGORITHMS) - 1)

static __thread struct sp_queue *current;

void sp_queue_set_current(struct sp_queue *queue)
{
    current = queue;
}

struct sp_queue *sp_queue_current(void)
{
    return current;
}

/* --- names ----------------------------------------------------------------------------- */

const char *sp_backend_name(enum sp_backend backend)
{
    static const char *const names[SP_BACKENDS] = {"openssl", "multibuffer", "threads", "cryptodev"};

    return names[backend];
}

const char *sp_fallback_text(enum sp_fallback reason)
{
    static const char *const texts[SP_FALLBACKS] = {
        [SP_FALLBACK_NO_LANES] = "no lanes on this machine",
        [SP_FALLBACK_BREAK_EVEN] = "too few for a batch to pay",
        [SP_FALLBACK_VERIFY] = "a result failed its verification",
        [SP_FALLBACK_NOT_ON_DEVICE] = "the device does not do it",
        [SP_FALLBACK_DEVICE] = "the device refused it, failed or did not answer",
    };

    return texts[reason];
}

const char *sp_backend_missing(enum sp_backend backend)
{
    const struct multibuffer_kernels *kernels = multibuffer_kernels();

    if (backend == SP_BACKEND_MULTIBUFFER && !kernels->rsa && !kernels->p256 && !kernels->x25519)
        return "this CPU lacks AVX-512 IFMA";
    if (backend == SP_BACKEND_CRYPTODEV)
        return cryptodev_missing();
    return NULL;
}

/* --- life --------------------------------------------------------------------------------- */

void sp_queue_options_init(struct sp_queue_options *options)
{
    memset(options, 0, sizeof(*options));
    for (unsigned i = 0; i < SP_BACKENDS; i++)
        options->policy[i] = SP_POLICY_PREFER;
}

static unsigned dear_rows(void)
{
    unsigned rows = 0;

    for (unsigned i = 0; i < SP_ALGORITHMS; i++)
        rows |= (unsigned)algorithm_rows[i].is_dear << i;
    return rows;
}

static int check_options(const struct sp_queue_options *options)
{
    const enum sp_policy *policy = options->policy;

    if (policy[SP_BACKEND_OPENSSL] == SP_POLICY_OFF)
        return SP_EINVAL;
    if (policy[SP_BACKEND_OPENSSL] == SP_POLICY_REQUIRE && policy[SP_BACKEND_MULTIBUFFER] == SP_POLICY_REQUIRE)
        return SP_EINVAL;
    if (policy[SP_BACKEND_MULTIBUFFER] == SP_POLICY_REQUIRE && sp_backend_missing(SP_BACKEND_MULTIBUFFER))
        return SP_EUNSUPPORTED;
    if (policy[SP_BACKEND_THREADS] == SP_POLICY_REQUIRE && !options->threads)
        return SP_EUNSUPPORTED;
    if (policy[SP_BACKEND_CRYPTODEV] == SP_POLICY_REQUIRE && !options->cryptodev)
        return SP_EUNSUPPORTED;
    return 0;
}

static void set_rules(struct sp_queue *queue)
{
    const struct sp_queue_options *options = &queue->options;
    bool lanes_off = options->policy[SP_BACKEND_MULTIBUFFER] == SP_POLICY_OFF ||
                     options->policy[SP_BACKEND_OPENSSL] == SP_POLICY_REQUIRE;

    queue->rules.lanes = lanes_off ? 0 : ALL_ALGORITHMS & ~options->scalar_only;
    queue->rules.lanes_always = options->policy[SP_BACKEND_MULTIBUFFER] == SP_POLICY_REQUIRE;
    if (!options->threads || options->policy[SP_BACKEND_THREADS] == SP_POLICY_OFF)
        return;
    queue->threaded = options->policy[SP_BACKEND_THREADS] == SP_POLICY_REQUIRE ? ALL_ALGORITHMS : dear_rows();
    queue->threaded &= ~options->scalar_only;
}

static int add_device(struct sp_queue *queue)
{
    const struct sp_queue_options *options = &queue->options;
    int status;

    if (!options->cryptodev || options->policy[SP_BACKEND_CRYPTODEV] == SP_POLICY_OFF)
        return 0;
    status = device_queue_new(&queue->device, options->cryptodev, &queue->on_device);
    queue->on_device &= ~options->scalar_only;
    return status;
}

int sp_queue_new(struct sp_queue **out, const struct sp_queue_options *options)
{
    struct sp_queue *queue;
    int status = check_options(options);

    if (status != 0)
        return status;
    queue = aligned_alloc(_Alignof(struct sp_queue), sizeof(*queue));
    if (!queue)
        return SP_ENOMEM;
    memset(queue, 0, sizeof(*queue));
    queue->options = *options;
    atomic_init(&queue->arrived, NULL);
    if (algorithm_memory_init(&queue->memory) != 0) {
        free(queue);
        return SP_ENOMEM;
    }
    set_rules(queue);
    status = add_device(queue);
    if (status != 0) {
        sp_queue_free(queue);
        return status;
    }
    *out = queue;
    return 0;
}

/* Before the other operations: these need none of what is still there. */
static void drop_device(struct sp_queue *queue)
{
    struct sp_op *ops[SP_LANES_MAX];
    unsigned n;

    while ((n = batch_take(&queue->for_device, false, true, ops)) > 0) {
        for (unsigned i = 0; i < n; i++)
            ops[i]->status = SP_ECANCELED;
    }
    device_queue_free(queue->device);
}

void sp_queue_free(struct sp_queue *queue)
{
    struct sp_op *ops[SP_LANES_MAX];
    unsigned n;

    if (!queue)
        return;
    drop_device(queue);
    while ((n = batch_take(&queue->waiting, false, true, ops)) > 0) {
        for (unsigned i = 0; i < n; i++)
            ops[i]->status = SP_ECANCELED;
    }
    if (queue->options.threads)
        threads_drop(queue->options.threads, queue);
    if (current == queue)
        current = NULL;
    prepared_free(queue->prepared);
    algorithm_memory_release(&queue->memory);
    free(queue);
}

/* --- operations -------------------------------------------------------------------------------- */

static void push_finished(struct sp_queue *queue, struct sp_op *op)
{
    struct batch_list *list = &queue->finished;

    op->state = OP_FINISHED;
    op->next = NULL;
    if (list->last)
        list->last->next = op;
    else
        list->first = op;
    list->last = op;
    list->count++;
}

void queue_deliver(struct sp_queue *queue, struct sp_op *op)
{
    struct sp_op *head = atomic_load_explicit(&queue->arrived, memory_order_relaxed);

    do
        op->next = head;
    while (!atomic_compare_exchange_weak_explicit(&queue->arrived, &head, op, memory_order_release,
                                                  memory_order_relaxed));
    /* Others before it: the wake-up that came with the first of them is still to be answered. */
    if (!head && queue->options.wake)
        queue->options.wake(queue->options.wake_arg);
}

static void collect_arrived(struct sp_queue *queue)
{
    struct sp_op *newest, *oldest = NULL;

    if (!atomic_load_explicit(&queue->arrived, memory_order_relaxed))
        return;
    newest = atomic_exchange_explicit(&queue->arrived, NULL, memory_order_acquire);
    while (newest) {
        struct sp_op *next = newest->next;

        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    while (oldest) {
        struct sp_op *next = oldest->next;

        push_finished(queue, oldest);
        oldest = next;
    }
}

/* Makes an operation the queue's. */
static int accept(struct sp_queue *queue, struct sp_op *op)
{
    enum sp_algorithm algorithm = SP_ALGORITHM_OTHER;
    int status = algorithm_of(op, &algorithm);

    op->queue = queue;
    op->algorithm = (uint8_t)algorithm;
    op->status = SP_EAGAIN;
    op->next = op->previous = NULL;
    op->submitted_ns = clock_now_ns();
    if (status == 0 && queue->device && !((queue->on_device | queue->options.scalar_only) >> algorithm & 1))
        tally_count(&queue->tally.algorithms[algorithm].fallbacks[SP_FALLBACK_NOT_ON_DEVICE], 1);
    return status;
}

size_t sp_queue_submit(struct sp_queue *queue, struct sp_op **ops, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        struct sp_op *op = ops[i];

        if (queue->options.max_waiting && queue->in_flight >= queue->options.max_waiting) {
            tally_count(&queue->tally.refused, n - i);
            break;
        }
        queue->in_flight++;
        if (accept(queue, op) == 0) {
            bool device = queue->on_device >> op->algorithm & 1;

            op->state = device ? OP_FOR_DEVICE : OP_WAITING;
            batch_push(device ? &queue->for_device : &queue->waiting, op);
        } else {
            op->status = SP_EINVAL;
            push_finished(queue, op);
        }
    }
    return i;
}

/* Hands the crypto threads what is theirs. */
static void hand_over(struct sp_queue *queue)
{
    for (unsigned i = 0; i < SP_ALGORITHMS; i++) {
        struct batch_list *list = &queue->waiting.rows[i];

        if (!(queue->threaded >> i & 1) || !list->first)
            continue;
        for (struct sp_op *op = list->first; op; op = op->next)
            op->state = OP_HANDED;
        queue->waiting.count -= list->count;
        threads_take(queue->options.threads, queue, list);
        *list = (struct batch_list){0};
    }
}

/* What the device has not done is the next backend's, as if there were no device. */
static void fall_back(struct sp_queue *queue, struct sp_op *op, enum sp_fallback reason)
{
    tally_count(&queue->tally.algorithms[op->algorithm].fallbacks[reason], 1);
    op->status = SP_EAGAIN;
    op->state = OP_WAITING;
    batch_push(&queue->waiting, op);
}

static void end_on_device(struct sp_queue *queue, struct sp_op *op)
{
    if (op->status == 0 || op->status == SP_EINVAL) {
        batch_note_end(op, SP_BACKEND_CRYPTODEV);
        push_finished(queue, op);
    } else {
        fall_back(queue, op, op->status == SP_EFAULT ? SP_FALLBACK_VERIFY : SP_FALLBACK_DEVICE);
    }
}

/* At most `most`; how many. */
static unsigned submit_to_device(struct sp_queue *queue, struct batch_list *list, unsigned most)
{
    struct sp_op *op;
    unsigned n;

    for (n = 0; n < most && (op = list->first); n++) {
        uint64_t waited_ns = clock_now_ns() - op->submitted_ns;
        int status = device_submit(queue->device, op);

        if (status == SP_EAGAIN)
            break;
        batch_remove(&queue->for_device, op);
        op->state = OP_ON_DEVICE;
        if (status == 0) {
            tally_wait(&queue->tally.algorithms[op->algorithm], waited_ns);
        } else {
            op->status = status;
            end_on_device(queue, op);
        }
    }
    return n;
}

/*
 * Gives it what waits for it, and takes what it has done. No more than a batch at a time: a software device computes in the
 * call that hands it an operation.
 */
static void serve_device(struct sp_queue *queue)
{
    struct sp_op *ops[SP_LANES_MAX];
    unsigned left = SP_LANES_MAX, n;

    for (unsigned i = 0; i < SP_ALGORITHMS && queue->for_device.count && left; i++)
        left -= submit_to_device(queue, &queue->for_device.rows[i], left);
    while ((n = device_poll(queue->device, ops, SP_LANES_MAX)) > 0) {
        for (unsigned i = 0; i < n; i++)
            end_on_device(queue, ops[i]);
    }
}

static size_t count_for_device(const struct sp_queue *queue)
{
    return queue->device ? queue->for_device.count + device_in_flight(queue->device) : 0;
}

bool sp_queue_flush(struct sp_queue *queue, enum sp_flush how)
{
    struct sp_op *ops[SP_LANES_MAX];
    bool full_only = how == SP_FLUSH_FULL, dear_left = true;
    unsigned n;

    if (count_for_device(queue))
        serve_device(queue);
    if (queue->threaded && (how == SP_FLUSH_ALL || queue->waiting.count >= SP_LANES_MAX))
        hand_over(queue);
    while ((n = batch_take(&queue->waiting, full_only, dear_left, ops)) > 0) {
        if (algorithm_rows[ops[0]->algorithm].is_dear)
            dear_left = false;
        batch_run(ops, n, &queue->rules, SP_BACKENDS, &queue->memory);
        for (unsigned i = 0; i < n; i++)
            push_finished(queue, ops[i]);
    }
    return batch_has(&queue->waiting, full_only, true) || count_for_device(queue);
}

size_t sp_queue_poll(struct sp_queue *queue, struct sp_op **ops, size_t max)
{
    struct batch_list *list = &queue->finished;
    size_t n;

    collect_arrived(queue);
    for (n = 0; n < max && list->first; n++) {
        ops[n] = list->first;
        list->first = ops[n]->next;
        if (!list->first)
            list->last = NULL;
        list->count--;
        ops[n]->next = NULL;
    }
    queue->in_flight -= n;
    return n;
}

static int give_back(struct sp_queue *queue, struct sp_op *op)
{
    op->status = SP_ECANCELED;
    queue->in_flight--;
    tally_count(&queue->tally.algorithms[op->algorithm].canceled, 1);
    return 0;
}

int sp_queue_cancel(struct sp_queue *queue, struct sp_op *op)
{
    collect_arrived(queue);
    switch ((enum op_state)op->state) {
    case OP_WAITING:
        batch_remove(&queue->waiting, op);
        return give_back(queue, op);
    case OP_FOR_DEVICE:
        batch_remove(&queue->for_device, op);
        return give_back(queue, op);
    case OP_ON_DEVICE:
        device_withdraw(queue->device, op);
        return give_back(queue, op);
    case OP_HANDED:
        return threads_withdraw(queue->options.threads, op) ? give_back(queue, op) : SP_EAGAIN;
    case OP_FINISHED:
        break;
    }
    return SP_ENOENT;
}

size_t sp_queue_in_flight(const struct sp_queue *queue)
{
    return queue->in_flight;
}

size_t sp_queue_waiting(const struct sp_queue *queue)
{
    return queue->waiting.count + count_for_device(queue);
}

/* --- at once ----------------------------------------------------------------------------------- */

/* With what the lanes have prepared; false: there is nothing, or the rules forbid it. */
static bool run_prepared(struct sp_queue *queue, struct sp_op *op)
{
    if (!(queue->rules.lanes >> op->algorithm & 1) || !lanes_prepare(op->algorithm, NULL))
        return false;
    if (!queue->prepared && !(queue->prepared = prepared_new()))
        return false;
    op->status = prepared_run(queue->prepared, op, &queue->tally.algorithms[op->algorithm]);
    if (op->status != 0)
        return false;
    op->backend = SP_BACKEND_MULTIBUFFER;
    op->lanes = SP_LANES_MAX;
    tally_count(&queue->tally.pooled, 1);
    tally_count(&queue->tally.algorithms[op->algorithm].done[SP_BACKEND_MULTIBUFFER], 1);
    return true;
}

/* Waits for the device; false: it does not do it, or has not. */
static bool run_on_device(struct sp_queue *queue, struct sp_op *op)
{
    int status;

    if (!(queue->on_device >> op->algorithm & 1))
        return false;
    status = device_run(queue->device, op);
    op->status = status;
    if (status == 0 || status == SP_EINVAL) {
        batch_note_end(op, SP_BACKEND_CRYPTODEV);
        return true;
    }
    tally_count(&queue->tally.algorithms[op->algorithm]
                     .fallbacks[status == SP_EFAULT ? SP_FALLBACK_VERIFY : SP_FALLBACK_DEVICE],
                1);
    return false;
}

void sp_queue_run(struct sp_queue *queue, struct sp_op *op)
{
    if (accept(queue, op) != 0) {
        op->status = SP_EINVAL;
        return;
    }
    switch (op->kind) {
    case SP_OP_P256_SIGN:
    case SP_OP_P256_KEYGEN:
    case SP_OP_X25519_KEYGEN:
        if (run_prepared(queue, op))
            return;
        break;
    default:
        break;
    }
    if (!run_on_device(queue, op))
        batch_run(&op, 1, &queue->rules, SP_BACKENDS, &queue->memory);
}

void sp_queue_counters_add(const struct sp_queue *queue, struct sp_queue_counters *sum)
{
    tally_add_to(&queue->tally, sum);
}
