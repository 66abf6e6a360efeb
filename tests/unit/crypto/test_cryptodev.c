/*
 * A crypto device behind the queue: DPDK's crypto_openssl with random keys and inputs, compared with the scalar library.
 */
#include "base/clock.h"
#include "measure/asym_case.h"

#include <sallyport/queue.h>

#include <openssl/rand.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MANY 200
#define DEVICE "crypto_openssl"
#define PATIENCE_NS (UINT64_C(60) * 1000000000)

static struct asym_case rsa[3], x25519;

struct batch {
    struct sp_op ops[MANY];
    struct sp_op *pointers[MANY];
    uint8_t in[MANY][512], out[MANY][512];
};
static struct batch batch;

static struct sp_cryptodev *open_device(unsigned queues)
{
    struct sp_cryptodev *device = NULL;
    char why[SP_CRYPTODEV_WHY_BYTES] = "";
    int status;

    if (sp_backend_missing(SP_BACKEND_CRYPTODEV)) {
        printf("# skipped: %s\n", sp_backend_missing(SP_BACKEND_CRYPTODEV));
        skip();
    }
    status = sp_cryptodev_new(&device, DEVICE, queues, why);
    if (status != 0)
        fail_msg("%s: %d, %s", DEVICE, status, why);
    return device;
}

static struct sp_queue *queue_on(struct sp_cryptodev *device)
{
    struct sp_queue_options options;
    struct sp_queue *queue;

    sp_queue_options_init(&options);
    options.policy[SP_BACKEND_CRYPTODEV] = SP_POLICY_REQUIRE;
    options.cryptodev = device;
    assert_int_equal(sp_queue_new(&queue, &options), 0);
    return queue;
}

static struct sp_queue_counters counters_of(const struct sp_queue *queue)
{
    struct sp_queue_counters sum = {0};

    sp_queue_counters_add(queue, &sum);
    return sum;
}

/* Random, below the modulus. */
static void prepare(const struct sp_rsa_key *key, unsigned from, unsigned n)
{
    size_t bytes = sp_rsa_key_bytes(key);

    for (unsigned i = from; i < from + n; i++) {
        RAND_bytes(batch.in[i], (int)bytes);
        batch.in[i][0] = 0;
        memset(batch.out[i], 0, bytes);
        batch.ops[i] = (struct sp_op){.kind = SP_OP_RSA_PRIVATE,
                                      .rsa = key,
                                      .in = batch.in[i],
                                      .in_len = bytes,
                                      .out = batch.out[i]};
        batch.pointers[i] = &batch.ops[i];
    }
}

static void run_all(struct sp_queue *queue, unsigned n)
{
    struct sp_op *done[16];
    uint64_t until = clock_now_ns() + PATIENCE_NS;
    size_t left = n;

    assert_int_equal(sp_queue_submit(queue, batch.pointers, n), n);
    while (left) {
        bool more = sp_queue_flush(queue, SP_FLUSH_ALL);

        left -= sp_queue_poll(queue, done, 16);
        /* While something is with the device, a flush says so. */
        assert_true(more || sp_queue_waiting(queue) == 0);
        assert_true(clock_now_ns() < until);
    }
    assert_int_equal(sp_queue_in_flight(queue), 0);
}

static void compare(unsigned n)
{
    uint8_t expected[512];

    for (unsigned i = 0; i < n; i++) {
        const struct sp_op *op = &batch.ops[i];

        assert_int_equal(op->status, 0);
        assert_int_equal(op->backend, SP_BACKEND_CRYPTODEV);
        assert_int_equal(sp_rsa_key_run_scalar(op->rsa, op->in, expected), 0);
        assert_memory_equal(op->out, expected, op->in_len);
    }
}

/* --- what it does --------------------------------------------------------------------------------------- */

static void test_every_key_size(void **state)
{
    struct sp_cryptodev *device = open_device(1);
    struct sp_queue *queue = queue_on(device);

    for (unsigned i = 0; i < 3; i++) {
        for (unsigned n = 1; n <= 9; n += 4) {
            prepare(rsa[i].rsa, 0, n);
            run_all(queue, n);
            compare(n);
        }
        assert_int_equal(
            counters_of(queue).algorithms[SP_ALGORITHM_RSA2048 + i].done[SP_BACKEND_CRYPTODEV], 15);
        assert_int_equal(
            counters_of(queue).algorithms[SP_ALGORITHM_RSA2048 + i].done[SP_BACKEND_OPENSSL], 0);
    }
    sp_queue_free(queue);
    sp_cryptodev_free(device);
}

static void test_more_than_it_takes_at_once(void **state)
{
    struct sp_cryptodev *device = open_device(1);
    struct sp_queue *queue = queue_on(device);

    prepare(rsa[0].rsa, 0, MANY);
    run_all(queue, MANY);
    compare(MANY);
    sp_queue_free(queue);
    sp_cryptodev_free(device);
}

static void test_more_keys_than_sessions(void **state)
{
    static struct sp_rsa_key *keys[600];
    struct sp_cryptodev *device = open_device(1);
    struct sp_queue *queue = queue_on(device);

    /* The same numbers make keys of their own. */
    for (unsigned i = 0; i < 600; i++)
        assert_int_equal(asym_case_rsa_key(&rsa[0], &keys[i]), 0);
    for (unsigned from = 0; from < 600; from += MANY) {
        for (unsigned i = 0; i < MANY; i++)
            prepare(keys[from + i], i, 1);
        run_all(queue, MANY);
        compare(MANY);
    }
    for (unsigned i = 0; i < 600; i++)
        sp_rsa_key_free(keys[i]);
    sp_queue_free(queue);
    sp_cryptodev_free(device);
}

static void test_run_at_once(void **state)
{
    struct sp_cryptodev *device = open_device(1);
    struct sp_queue *queue = queue_on(device);
    struct sp_op *done[2];

    /* With another one that is submitted and stays so. */
    prepare(rsa[0].rsa, 0, 2);
    assert_int_equal(sp_queue_submit(queue, batch.pointers, 1), 1);
    sp_queue_run(queue, &batch.ops[1]);
    assert_int_equal(batch.ops[1].status, 0);
    while (sp_queue_flush(queue, SP_FLUSH_ALL))
        ;
    assert_int_equal(sp_queue_poll(queue, done, 2), 1);
    compare(2);
    sp_queue_free(queue);
    sp_cryptodev_free(device);
}

/* --- what it does not do -------------------------------------------------------------------------------- */

static void test_others_fall_to_the_next(void **state)
{
    struct sp_cryptodev *device = open_device(1);
    struct sp_queue *queue = queue_on(device);
    struct sp_algorithm_counters counters;
    struct sp_op op, *one = &op, *done;
    uint8_t out[ASYM_BYTES_MAX];

    asym_case_op(&x25519, &op, out);
    assert_int_equal(sp_queue_submit(queue, &one, 1), 1);
    (void)sp_queue_flush(queue, SP_FLUSH_ALL);
    assert_int_equal(sp_queue_poll(queue, &done, 1), 1);
    assert_int_equal(op.status, 0);
    assert_int_equal(asym_case_check(&x25519, out), 0);
    assert_int_not_equal(op.backend, SP_BACKEND_CRYPTODEV);
    counters = counters_of(queue).algorithms[SP_ALGORITHM_X25519_DERIVE];
    assert_int_equal(counters.fallbacks[SP_FALLBACK_NOT_ON_DEVICE], 1);
    assert_string_equal(sp_fallback_text(SP_FALLBACK_NOT_ON_DEVICE), "the device does not do it");
    sp_queue_free(queue);
    sp_cryptodev_free(device);
}

static void test_input_above_the_modulus(void **state)
{
    struct sp_cryptodev *device = open_device(1);
    struct sp_queue *queue = queue_on(device);

    prepare(rsa[0].rsa, 0, 2);
    memset(batch.in[0], 0xff, 256);
    run_all(queue, 2);
    assert_int_equal(batch.ops[0].status, SP_EINVAL);
    assert_int_equal(batch.ops[1].status, 0);
    sp_queue_free(queue);
    sp_cryptodev_free(device);
}

static void test_cancel_and_end(void **state)
{
    struct sp_cryptodev *device = open_device(1);
    struct sp_queue *queue = queue_on(device);

    prepare(rsa[0].rsa, 0, MANY);
    assert_int_equal(sp_queue_submit(queue, batch.pointers, MANY), MANY);
    assert_int_equal(sp_queue_waiting(queue), MANY);
    assert_int_equal(sp_queue_cancel(queue, &batch.ops[3]), 0);
    assert_int_equal(batch.ops[3].status, SP_ECANCELED);
    assert_true(sp_queue_flush(queue, SP_FLUSH_FULL));
    assert_int_equal(sp_queue_cancel(queue, &batch.ops[MANY - 1]), 0);
    assert_int_equal(sp_queue_in_flight(queue), MANY - 2);
    sp_queue_free(queue);
    sp_cryptodev_free(device);
}

static void test_a_queue_pair_each(void **state)
{
    struct sp_cryptodev *device = open_device(2);
    struct sp_queue *first = queue_on(device), *second = queue_on(device), *third = NULL;
    struct sp_queue_options options;

    sp_queue_options_init(&options);
    options.cryptodev = device;
    assert_int_equal(sp_queue_new(&third, &options), SP_EUNSUPPORTED);
    assert_null(third);
    options.policy[SP_BACKEND_CRYPTODEV] = SP_POLICY_OFF;
    assert_int_equal(sp_queue_new(&third, &options), 0);
    prepare(rsa[0].rsa, 0, 3);
    run_all(second, 3);
    compare(3);
    sp_queue_free(first);
    sp_queue_free(second);
    sp_queue_free(third);
    options.policy[SP_BACKEND_CRYPTODEV] = SP_POLICY_REQUIRE;
    options.cryptodev = NULL;
    assert_int_equal(sp_queue_new(&third, &options), SP_EUNSUPPORTED);
    sp_cryptodev_free(device);
}

static void test_bad_devices(void **state)
{
    static const struct {
        const char *device;
        int status;
        const char *says;
    } cases[] = {
        {"crypto_aesni_mb", SP_EUNSUPPORTED, "crypto_aesni_mb does no private-key operations"},
        {"crypto_nonsense", SP_ENOENT, "crypto_nonsense"},
        {"card", SP_ENOENT, "'card': no such device"},
        {"crypto_openssl,max_nb_queue_pairs=1", SP_EUNSUPPORTED, "1 queue pairs, and 2 are needed"},
    };

    sp_cryptodev_free(open_device(1));
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sp_cryptodev *device = NULL;
        char why[SP_CRYPTODEV_WHY_BYTES] = "";

        assert_int_equal(sp_cryptodev_new(&device, cases[i].device, 2, why), cases[i].status);
        assert_null(device);
        if (!strstr(why, cases[i].says))
            fail_msg("%s: expected '%s' in '%s'", cases[i].device, cases[i].says, why);
    }
}

static int make_cases(void **state)
{
    for (unsigned i = 0; i < 3; i++) {
        if (asym_case_init(&rsa[i], SP_ALGORITHM_RSA2048 + i) != 0)
            return -1;
    }
    return asym_case_init(&x25519, SP_ALGORITHM_X25519_DERIVE);
}

static int release_cases(void **state)
{
    for (unsigned i = 0; i < 3; i++)
        asym_case_release(&rsa[i]);
    asym_case_release(&x25519);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_key_size),
        cmocka_unit_test(test_more_than_it_takes_at_once),
        cmocka_unit_test(test_more_keys_than_sessions),
        cmocka_unit_test(test_run_at_once),
        cmocka_unit_test(test_others_fall_to_the_next),
        cmocka_unit_test(test_input_above_the_modulus),
        cmocka_unit_test(test_cancel_and_end),
        cmocka_unit_test(test_a_queue_pair_each),
        cmocka_unit_test(test_bad_devices),
    };

    return cmocka_run_group_tests(tests, make_cases, release_cases);
}
