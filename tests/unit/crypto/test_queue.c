/*
 * The queue's contract: what submit, flush, poll and cancel promise, and which backend runs what.
 * The lanes are those of the machine, or the portable ones where it has none.
 */
#include "crypto/backend/multibuffer.h"
#include "crypto/kernel/p256.h"
#include "crypto/kernel/rsa.h"
#include "crypto/kernel/x25519.h"
#include "measure/asym_case.h"

#include <sallyport/queue.h>

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define MANY 40

/* One of each row; a second RSA-2048 key to mix with the first. */
static struct asym_case cases[SP_ALGORITHM_OTHER], other_rsa;

struct batch {
    struct sp_op ops[MANY];
    struct sp_op *pointers[MANY];
    uint8_t out[MANY][ASYM_BYTES_MAX];
};
static struct batch batch;

static void prepare(const struct asym_case *c, unsigned from, unsigned n)
{
    for (unsigned i = from; i < from + n; i++) {
        memset(batch.out[i], 0, sizeof(batch.out[i]));
        asym_case_op(c, &batch.ops[i], batch.out[i]);
        batch.pointers[i] = &batch.ops[i];
    }
}

static struct sp_queue *queue_with(enum sp_policy lanes, struct sp_crypto_threads *threads)
{
    struct sp_queue_options options;
    struct sp_queue *queue;

    sp_queue_options_init(&options);
    options.policy[SP_BACKEND_MULTIBUFFER] = lanes;
    options.threads = threads;
    assert_int_equal(sp_queue_new(&queue, &options), 0);
    return queue;
}

static void run_all(struct sp_queue *queue, unsigned n)
{
    struct sp_op *done[MANY];
    size_t got = 0;

    assert_int_equal(sp_queue_submit(queue, batch.pointers, n), n);
    while (got < n) {
        (void)sp_queue_flush(queue, SP_FLUSH_ALL);
        got += sp_queue_poll(queue, done, MANY);
        sched_yield();
    }
    assert_int_equal(got, n);
    assert_int_equal(sp_queue_in_flight(queue), 0);
}

static void check_all(const struct asym_case *c, unsigned from, unsigned n)
{
    for (unsigned i = from; i < from + n; i++) {
        assert_int_equal(batch.ops[i].status, 0);
        assert_int_equal(asym_case_check(c, batch.out[i]), 0);
    }
}

static struct sp_queue_counters counters_of(const struct sp_queue *queue)
{
    struct sp_queue_counters sum = {0};

    sp_queue_counters_add(queue, &sum);
    return sum;
}

/* --- every row, every backend, every fill ------------------------------------------------- */

/* RSA runs four and the rest instead of five to seven: two half batches. */
static unsigned lanes_of(unsigned row, unsigned fill, unsigned i)
{
    bool is_split = row <= SP_ALGORITHM_RSA4096 && fill > 4 && fill < 8;

    return !is_split ? fill : i < 4 ? 4 : fill - 4;
}

static void lanes_by_fill(void **state)
{
    struct sp_queue *queue = queue_with(SP_POLICY_REQUIRE, NULL);

    for (unsigned row = 0; row < SP_ALGORITHM_OTHER; row++) {
        uint64_t batches[SP_LANES_MAX + 1] = {0};

        for (unsigned fill = 1; fill <= SP_LANES_MAX; fill++) {
            prepare(&cases[row], 0, fill);
            run_all(queue, fill);
            check_all(&cases[row], 0, fill);
            for (unsigned i = 0; i < fill; i++) {
                assert_int_equal(batch.ops[i].backend, SP_BACKEND_MULTIBUFFER);
                assert_int_equal(batch.ops[i].lanes, lanes_of(row, fill, i));
            }
            batches[lanes_of(row, fill, 0)]++;
            if (lanes_of(row, fill, 0) < fill)
                batches[lanes_of(row, fill, fill - 1)]++;
        }
        struct sp_queue_counters sum = counters_of(queue);

        assert_int_equal(sum.algorithms[row].done[SP_BACKEND_MULTIBUFFER], 36);
        for (unsigned fill = 1; fill <= SP_LANES_MAX; fill++)
            assert_int_equal(sum.algorithms[row].batches[fill], batches[fill]);
    }
    sp_queue_free(queue);
}

static void scalar_when_lanes_are_off(void **state)
{
    struct sp_queue *queue = queue_with(SP_POLICY_OFF, NULL);

    for (unsigned row = 0; row < SP_ALGORITHM_OTHER; row++) {
        prepare(&cases[row], 0, 3);
        run_all(queue, 3);
        check_all(&cases[row], 0, 3);
        for (unsigned i = 0; i < 3; i++) {
            assert_int_equal(batch.ops[i].backend, SP_BACKEND_OPENSSL);
            assert_int_equal(batch.ops[i].lanes, 1);
        }
        assert_int_equal(counters_of(queue).algorithms[row].done[SP_BACKEND_OPENSSL], 3);
        /* Off is what was asked for, not a fallback. */
        assert_int_equal(counters_of(queue).algorithms[row].fallbacks[SP_FALLBACK_BREAK_EVEN], 0);
    }
    sp_queue_free(queue);
}

static void scalar_only_rows(void **state)
{
    struct sp_queue_options options;
    struct sp_queue *queue;

    sp_queue_options_init(&options);
    options.policy[SP_BACKEND_MULTIBUFFER] = SP_POLICY_REQUIRE;
    options.scalar_only = 1u << SP_ALGORITHM_X25519_DERIVE;
    assert_int_equal(sp_queue_new(&queue, &options), 0);
    prepare(&cases[SP_ALGORITHM_X25519_DERIVE], 0, 8);
    prepare(&cases[SP_ALGORITHM_P256_DERIVE], 8, 8);
    run_all(queue, 16);
    check_all(&cases[SP_ALGORITHM_X25519_DERIVE], 0, 8);
    check_all(&cases[SP_ALGORITHM_P256_DERIVE], 8, 8);
    assert_int_equal(batch.ops[0].backend, SP_BACKEND_OPENSSL);
    assert_int_equal(batch.ops[8].backend, SP_BACKEND_MULTIBUFFER);
    sp_queue_free(queue);
}

static void keys_mix_in_a_batch(void **state)
{
    struct sp_queue *queue = queue_with(SP_POLICY_REQUIRE, NULL);

    for (unsigned i = 0; i < 8; i++)
        prepare(i % 2 ? &other_rsa : &cases[SP_ALGORITHM_RSA2048], i, 1);
    run_all(queue, 8);
    for (unsigned i = 0; i < 8; i++) {
        check_all(i % 2 ? &other_rsa : &cases[SP_ALGORITHM_RSA2048], i, 1);
        assert_int_equal(batch.ops[i].lanes, 8);
    }
    sp_queue_free(queue);
}

/* Whether lanes pay is measured; whatever came out, a lone operation takes the better of the two. */
static void break_even_decides(void **state)
{
    struct sp_queue *queue = queue_with(SP_POLICY_PREFER, NULL);
    struct sp_break_even times;

    for (unsigned row = 0; row < SP_ALGORITHM_OTHER; row++) {
        assert_int_equal(sp_break_even(row, &times), 0);
        assert_true(times.scalar_ns > 0 && times.half_ns > 0 && times.full_ns > 0);
        prepare(&cases[row], 0, 1);
        run_all(queue, 1);
        check_all(&cases[row], 0, 1);
        assert_int_equal(batch.ops[0].backend,
                         times.half_ns <= times.scalar_ns ? SP_BACKEND_MULTIBUFFER : SP_BACKEND_OPENSSL);
        assert_int_equal(counters_of(queue).algorithms[row].fallbacks[SP_FALLBACK_BREAK_EVEN],
                         times.half_ns > times.scalar_ns);
    }
    sp_queue_free(queue);
}

/* --- flush policy ---------------------------------------------------------------------------- */

static void full_flush_leaves_the_rest(void **state)
{
    struct sp_queue *queue = queue_with(SP_POLICY_REQUIRE, NULL);
    struct sp_op *done[MANY];

    prepare(&cases[SP_ALGORITHM_X25519_DERIVE], 0, 11);
    assert_int_equal(sp_queue_submit(queue, batch.pointers, 11), 11);
    assert_int_equal(sp_queue_poll(queue, done, MANY), 0);
    assert_false(sp_queue_flush(queue, SP_FLUSH_FULL));
    assert_int_equal(sp_queue_waiting(queue), 3);
    assert_int_equal(sp_queue_poll(queue, done, MANY), 8);
    assert_ptr_equal(done[0], &batch.ops[0]);
    assert_false(sp_queue_flush(queue, SP_FLUSH_FULL));
    assert_int_equal(sp_queue_poll(queue, done, MANY), 0);
    assert_int_equal(batch.ops[10].status, SP_EAGAIN);
    assert_false(sp_queue_flush(queue, SP_FLUSH_ALL));
    assert_int_equal(sp_queue_poll(queue, done, 2), 2);
    assert_int_equal(sp_queue_poll(queue, done, MANY), 1);
    check_all(&cases[SP_ALGORITHM_X25519_DERIVE], 0, 11);
    sp_queue_free(queue);
}

static void cheap_before_dear(void **state)
{
    struct sp_queue *queue = queue_with(SP_POLICY_REQUIRE, NULL);
    struct sp_op *done[MANY];

    prepare(&cases[SP_ALGORITHM_RSA2048], 0, 10);
    prepare(&cases[SP_ALGORITHM_RSA3072], 10, 2);
    prepare(&cases[SP_ALGORITHM_P256_DERIVE], 12, 9);
    assert_int_equal(sp_queue_submit(queue, batch.pointers, 21), 21);
    /* All that is cheap, and one batch of what is dear: the one that has waited longest. */
    assert_true(sp_queue_flush(queue, SP_FLUSH_ALL));
    assert_int_equal(sp_queue_poll(queue, done, MANY), 17);
    assert_int_equal(done[0]->kind, SP_OP_P256_DERIVE);
    assert_int_equal(done[8]->kind, SP_OP_P256_DERIVE);
    assert_ptr_equal(done[9], &batch.ops[0]);
    assert_true(sp_queue_flush(queue, SP_FLUSH_ALL));
    assert_int_equal(sp_queue_poll(queue, done, MANY), 2);
    assert_ptr_equal(done[0], &batch.ops[8]);
    assert_false(sp_queue_flush(queue, SP_FLUSH_ALL));
    assert_int_equal(sp_queue_poll(queue, done, MANY), 2);
    assert_ptr_equal(done[0], &batch.ops[10]);
    sp_queue_free(queue);
}

static int answer(void *arg)
{
    ++*(int *)arg;
    return *(int *)arg == 2 ? SP_EPERM : 0;
}

static void calls(void **state)
{
    struct sp_queue *queue = queue_with(SP_POLICY_PREFER, NULL);
    int calls_made = 0;

    for (unsigned i = 0; i < 3; i++) {
        batch.ops[i] = (struct sp_op){.kind = SP_OP_CALL, .call = answer, .arg = &calls_made};
        batch.pointers[i] = &batch.ops[i];
    }
    run_all(queue, 3);
    assert_int_equal(calls_made, 3);
    assert_int_equal(batch.ops[0].status, 0);
    assert_int_equal(batch.ops[1].status, SP_EPERM);
    assert_int_equal(counters_of(queue).algorithms[SP_ALGORITHM_OTHER].done[SP_BACKEND_OPENSSL], 2);
    assert_int_equal(counters_of(queue).algorithms[SP_ALGORITHM_OTHER].failed[SP_BACKEND_OPENSSL], 1);
    sp_queue_free(queue);
}

/* --- refusals ---------------------------------------------------------------------------------- */

static void malformed_operations_come_back(void **state)
{
    static const uint8_t zero[512], scalar[32] = {1};
    uint8_t out[512];
    struct sp_op bad[] = {
        {.kind = SP_OP_RSA_PRIVATE, .in = zero, .in_len = 256, .out = out},
        {.kind = SP_OP_RSA_PRIVATE, .rsa = cases[SP_ALGORITHM_RSA2048].rsa, .in = zero, .in_len = 255, .out = out},
        {.kind = SP_OP_X25519_DERIVE, .scalar = scalar, .in = zero, .in_len = 31, .out = out},
        {.kind = SP_OP_X25519_DERIVE, .in = zero, .in_len = 32, .out = out},
        {.kind = SP_OP_P256_DERIVE, .scalar = scalar, .in = zero, .in_len = 64, .out = out},
        {.kind = SP_OP_P256_SIGN, .scalar = scalar, .in = zero, .in_len = 65, .out = out},
        {.kind = SP_OP_P256_SIGN, .scalar = scalar, .in = zero, .in_len = 0, .out = out},
        {.kind = SP_OP_P256_KEYGEN},
        {.kind = SP_OP_CALL},
        {.kind = SP_OP_KINDS, .out = out},
        /* Well formed, with values that have no answer. */
        {.kind = SP_OP_X25519_DERIVE, .scalar = scalar, .in = zero, .in_len = 32, .out = out},
        {.kind = SP_OP_P256_DERIVE, .scalar = scalar, .in = zero, .in_len = 65, .out = out},
    };
    unsigned n = sizeof(bad) / sizeof(bad[0]);
    struct sp_queue *queues[] = {queue_with(SP_POLICY_REQUIRE, NULL), queue_with(SP_POLICY_OFF, NULL)};

    for (unsigned q = 0; q < 2; q++) {
        for (unsigned i = 0; i < n; i++) {
            struct sp_op *op = &bad[i], *done;

            assert_int_equal(sp_queue_submit(queues[q], &op, 1), 1);
            (void)sp_queue_flush(queues[q], SP_FLUSH_ALL);
            assert_int_equal(sp_queue_poll(queues[q], &done, 1), 1);
            assert_ptr_equal(done, op);
            assert_int_equal(op->status, SP_EINVAL);
            sp_queue_run(queues[q], op);
            assert_int_equal(op->status, SP_EINVAL);
        }
        sp_queue_free(queues[q]);
    }
}

static void bound_of_waiting(void **state)
{
    struct sp_queue_options options;
    struct sp_queue *queue;
    struct sp_op *done[MANY];

    sp_queue_options_init(&options);
    options.max_waiting = 5;
    assert_int_equal(sp_queue_new(&queue, &options), 0);
    prepare(&cases[SP_ALGORITHM_X25519_DERIVE], 0, 8);
    assert_int_equal(sp_queue_submit(queue, batch.pointers, 8), 5);
    assert_int_equal(sp_queue_submit(queue, batch.pointers + 5, 1), 0);
    assert_int_equal(counters_of(queue).refused, 4);
    (void)sp_queue_flush(queue, SP_FLUSH_ALL);
    /* Done and not polled back counts still. */
    assert_int_equal(sp_queue_submit(queue, batch.pointers + 5, 3), 0);
    assert_int_equal(sp_queue_poll(queue, done, MANY), 5);
    assert_int_equal(sp_queue_submit(queue, batch.pointers + 5, 3), 3);
    (void)sp_queue_flush(queue, SP_FLUSH_ALL);
    assert_int_equal(sp_queue_poll(queue, done, MANY), 3);
    check_all(&cases[SP_ALGORITHM_X25519_DERIVE], 0, 8);
    sp_queue_free(queue);
}

static void options_that_cannot_be(void **state)
{
    struct sp_queue_options options;
    struct sp_queue *queue = NULL;

    sp_queue_options_init(&options);
    options.policy[SP_BACKEND_THREADS] = SP_POLICY_REQUIRE;
    assert_int_equal(sp_queue_new(&queue, &options), SP_EUNSUPPORTED);
    sp_queue_options_init(&options);
    options.policy[SP_BACKEND_OPENSSL] = SP_POLICY_OFF;
    assert_int_equal(sp_queue_new(&queue, &options), SP_EINVAL);
    sp_queue_options_init(&options);
    options.policy[SP_BACKEND_OPENSSL] = SP_POLICY_REQUIRE;
    options.policy[SP_BACKEND_MULTIBUFFER] = SP_POLICY_REQUIRE;
    assert_int_equal(sp_queue_new(&queue, &options), SP_EINVAL);
    assert_null(queue);
}

/* --- cancel --------------------------------------------------------------------------------------- */

static void cancel(void **state)
{
    struct sp_queue *queue = queue_with(SP_POLICY_REQUIRE, NULL);
    struct sp_op *done[MANY];

    prepare(&cases[SP_ALGORITHM_P256_DERIVE], 0, 6);
    assert_int_equal(sp_queue_submit(queue, batch.pointers, 6), 6);
    assert_int_equal(sp_queue_cancel(queue, &batch.ops[0]), 0);
    assert_int_equal(sp_queue_cancel(queue, &batch.ops[3]), 0);
    assert_int_equal(sp_queue_cancel(queue, &batch.ops[5]), 0);
    assert_int_equal(batch.ops[3].status, SP_ECANCELED);
    assert_int_equal(sp_queue_in_flight(queue), 3);
    (void)sp_queue_flush(queue, SP_FLUSH_ALL);
    assert_int_equal(sp_queue_cancel(queue, &batch.ops[1]), SP_ENOENT);
    assert_int_equal(sp_queue_poll(queue, done, MANY), 3);
    assert_ptr_equal(done[0], &batch.ops[1]);
    assert_ptr_equal(done[2], &batch.ops[4]);
    check_all(&cases[SP_ALGORITHM_P256_DERIVE], 1, 2);
    assert_int_equal(counters_of(queue).algorithms[SP_ALGORITHM_P256_DERIVE].canceled, 3);
    /* The same operation again. */
    prepare(&cases[SP_ALGORITHM_P256_DERIVE], 0, 1);
    run_all(queue, 1);
    check_all(&cases[SP_ALGORITHM_P256_DERIVE], 0, 1);
    sp_queue_free(queue);
}

static void free_with_operations_waiting(void **state)
{
    struct sp_queue *queue = queue_with(SP_POLICY_REQUIRE, NULL);

    prepare(&cases[SP_ALGORITHM_RSA2048], 0, 9);
    prepare(&cases[SP_ALGORITHM_X25519_DERIVE], 9, 3);
    assert_int_equal(sp_queue_submit(queue, batch.pointers, 12), 12);
    sp_queue_free(queue);
    for (unsigned i = 0; i < 12; i++)
        assert_int_equal(batch.ops[i].status, SP_ECANCELED);
}

/* --- threads ------------------------------------------------------------------------------------ */

static void count_wake(void *arg)
{
    __atomic_add_fetch((int *)arg, 1, __ATOMIC_RELAXED);
}

static void crypto_threads(void **state)
{
    struct sp_queue_options options;
    struct sp_crypto_threads *threads;
    struct sp_queue *queues[2];
    int wakes = 0;

    assert_int_equal(sp_crypto_threads_new(&threads, 0), SP_EINVAL);
    assert_int_equal(sp_crypto_threads_new(&threads, 257), SP_EINVAL);
    assert_int_equal(sp_crypto_threads_new(&threads, 2), 0);
    sp_queue_options_init(&options);
    options.policy[SP_BACKEND_THREADS] = SP_POLICY_REQUIRE;
    options.threads = threads;
    options.wake = count_wake;
    options.wake_arg = &wakes;
    assert_int_equal(sp_queue_new(&queues[0], &options), 0);
    assert_int_equal(sp_queue_new(&queues[1], &options), 0);
    for (unsigned row = 0; row < SP_ALGORITHM_OTHER; row++) {
        for (unsigned q = 0; q < 2; q++) {
            prepare(&cases[row], 0, 13);
            run_all(queues[q], 13);
            check_all(&cases[row], 0, 13);
            assert_int_equal(counters_of(queues[q]).algorithms[row].done[SP_BACKEND_THREADS], 13);
            assert_int_equal(batch.ops[7].backend, SP_BACKEND_THREADS);
        }
    }
    assert_true(__atomic_load_n(&wakes, __ATOMIC_RELAXED) > 0);
    sp_queue_free(queues[0]);
    sp_queue_free(queues[1]);
    sp_crypto_threads_free(threads);
}

/* PREFER keeps what is cheap on the calling thread. */
static void cheap_stays_with_its_thread(void **state)
{
    struct sp_crypto_threads *threads;
    struct sp_queue *queue;

    assert_int_equal(sp_crypto_threads_new(&threads, 1), 0);
    queue = queue_with(SP_POLICY_REQUIRE, threads);
    prepare(&cases[SP_ALGORITHM_RSA2048], 0, 8);
    prepare(&cases[SP_ALGORITHM_P256_DERIVE], 8, 8);
    run_all(queue, 16);
    check_all(&cases[SP_ALGORITHM_RSA2048], 0, 8);
    check_all(&cases[SP_ALGORITHM_P256_DERIVE], 8, 8);
    assert_int_equal(batch.ops[0].backend, SP_BACKEND_THREADS);
    assert_int_equal(batch.ops[8].backend, SP_BACKEND_MULTIBUFFER);
    sp_queue_free(queue);
    sp_crypto_threads_free(threads);
}

struct gate {
    pthread_mutex_t mutex;
    int entered;
};

static int wait_at_gate(void *arg)
{
    struct gate *gate = arg;

    __atomic_store_n(&gate->entered, 1, __ATOMIC_RELEASE);
    pthread_mutex_lock(&gate->mutex);
    pthread_mutex_unlock(&gate->mutex);
    return 0;
}

/* One runs, one waits for the thread: the first cannot be withdrawn, the second can. */
static void cancel_with_threads(void **state)
{
    struct gate gate = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct sp_crypto_threads *threads;
    struct sp_queue *queue;
    struct sp_op *done[MANY];

    assert_int_equal(sp_crypto_threads_new(&threads, 1), 0);
    queue = queue_with(SP_POLICY_REQUIRE, threads);
    pthread_mutex_lock(&gate.mutex);
    batch.ops[0] = (struct sp_op){.kind = SP_OP_CALL, .call = wait_at_gate, .arg = &gate};
    batch.pointers[0] = &batch.ops[0];
    prepare(&cases[SP_ALGORITHM_RSA2048], 1, 2);
    assert_int_equal(sp_queue_submit(queue, batch.pointers, 1), 1);
    (void)sp_queue_flush(queue, SP_FLUSH_ALL);
    while (!__atomic_load_n(&gate.entered, __ATOMIC_ACQUIRE))
        sched_yield();
    assert_int_equal(sp_queue_submit(queue, batch.pointers + 1, 2), 2);
    (void)sp_queue_flush(queue, SP_FLUSH_ALL);
    assert_int_equal(sp_queue_waiting(queue), 0);
    assert_int_equal(sp_queue_cancel(queue, &batch.ops[0]), SP_EAGAIN);
    assert_int_equal(sp_queue_cancel(queue, &batch.ops[1]), 0);
    assert_int_equal(sp_queue_in_flight(queue), 2);
    pthread_mutex_unlock(&gate.mutex);
    for (size_t got = 0; got < 2; sched_yield())
        got += sp_queue_poll(queue, done, MANY);
    check_all(&cases[SP_ALGORITHM_RSA2048], 2, 1);
    sp_queue_free(queue);
    sp_crypto_threads_free(threads);
}

static void free_while_a_thread_runs(void **state)
{
    struct gate gate = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct sp_crypto_threads *threads;
    struct sp_queue *queue;

    assert_int_equal(sp_crypto_threads_new(&threads, 1), 0);
    queue = queue_with(SP_POLICY_REQUIRE, threads);
    batch.ops[0] = (struct sp_op){.kind = SP_OP_CALL, .call = wait_at_gate, .arg = &gate};
    batch.pointers[0] = &batch.ops[0];
    prepare(&cases[SP_ALGORITHM_RSA4096], 1, 20);
    assert_int_equal(sp_queue_submit(queue, batch.pointers, 21), 21);
    (void)sp_queue_flush(queue, SP_FLUSH_ALL);
    sp_queue_free(queue);
    for (unsigned i = 0; i < 21; i++)
        assert_true(batch.ops[i].status == 0 || batch.ops[i].status == SP_ECANCELED);
    sp_crypto_threads_free(threads);
}

/* --- at once ---------------------------------------------------------------------------------------- */

static void run_at_once(void **state)
{
    struct sp_queue *queue = queue_with(SP_POLICY_PREFER, NULL);

    for (unsigned row = 0; row < SP_ALGORITHM_OTHER; row++) {
        for (unsigned i = 0; i < 9; i++) {
            prepare(&cases[row], i, 1);
            sp_queue_run(queue, &batch.ops[i]);
        }
        check_all(&cases[row], 0, 9);
    }
    /* Nine of each: two refills of eight. */
    assert_int_equal(counters_of(queue).algorithms[SP_ALGORITHM_P256_SIGN].batches[8], 2);
    assert_int_equal(counters_of(queue).algorithms[SP_ALGORITHM_X25519_KEYGEN].batches[8], 2);
    assert_int_equal(counters_of(queue).pooled, 27);
    /* None is handed out twice. */
    prepare(&cases[SP_ALGORITHM_X25519_KEYGEN], 0, 20);
    for (unsigned i = 0; i < 20; i++)
        sp_queue_run(queue, &batch.ops[i]);
    for (unsigned i = 0; i < 20; i++) {
        for (unsigned k = 0; k < i; k++)
            assert_memory_not_equal(batch.out[i], batch.out[k], 32);
    }
    sp_queue_free(queue);
}

/* What had been prepared before a fork must not come out on both sides. */
static void fork_empties_what_was_prepared(void **state)
{
    struct sp_queue *queue = queue_with(SP_POLICY_PREFER, NULL);
    uint8_t childs[32] = {0};
    int fds[2], status;
    pid_t child;

    prepare(&cases[SP_ALGORITHM_X25519_KEYGEN], 0, 2);
    sp_queue_run(queue, &batch.ops[0]);
    assert_int_equal(pipe(fds), 0);
    child = fork();
    if (child == 0) {
        sp_queue_run(queue, &batch.ops[1]);
        _exit(batch.ops[1].status == 0 && write(fds[1], batch.out[1], 32) == 32 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(read(fds[0], childs, 32), 32);
    close(fds[0]);
    close(fds[1]);
    sp_queue_run(queue, &batch.ops[1]);
    assert_memory_not_equal(childs, batch.out[1], 32);
    sp_queue_free(queue);
}

static int set_up(void **state)
{
    struct multibuffer_kernels portable = {rsa_kernel_portable(), p256_kernel_portable(), x25519_kernel_portable()};

    if (sp_backend_missing(SP_BACKEND_MULTIBUFFER)) {
        printf("# %s: the portable lanes run\n", sp_backend_missing(SP_BACKEND_MULTIBUFFER));
        multibuffer_use_kernels(&portable);
    }
    for (unsigned i = 0; i < SP_ALGORITHM_OTHER; i++) {
        if (asym_case_init(&cases[i], i) != 0)
            return -1;
    }
    return asym_case_init(&other_rsa, SP_ALGORITHM_RSA2048);
}

static int tear_down(void **state)
{
    for (unsigned i = 0; i < SP_ALGORITHM_OTHER; i++)
        asym_case_release(&cases[i]);
    asym_case_release(&other_rsa);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lanes_by_fill),
        cmocka_unit_test(scalar_when_lanes_are_off),
        cmocka_unit_test(scalar_only_rows),
        cmocka_unit_test(keys_mix_in_a_batch),
        cmocka_unit_test(break_even_decides),
        cmocka_unit_test(full_flush_leaves_the_rest),
        cmocka_unit_test(cheap_before_dear),
        cmocka_unit_test(calls),
        cmocka_unit_test(malformed_operations_come_back),
        cmocka_unit_test(bound_of_waiting),
        cmocka_unit_test(options_that_cannot_be),
        cmocka_unit_test(cancel),
        cmocka_unit_test(free_with_operations_waiting),
        cmocka_unit_test(crypto_threads),
        cmocka_unit_test(cheap_stays_with_its_thread),
        cmocka_unit_test(cancel_with_threads),
        cmocka_unit_test(free_while_a_thread_runs),
        cmocka_unit_test(run_at_once),
        cmocka_unit_test(fork_empties_what_was_prepared),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
