/*
 * Lanes that compute wrongly: a self-test that fails switches the row off; a wrong RSA result never leaves, is computed
 * again and counted; too many of them switch the row off. The order of the tests matters: what a process has found out
 * about its lanes stays.
 */
#include "crypto/backend/multibuffer.h"
#include "crypto/kernel/p256.h"
#include "crypto/kernel/rsa.h"
#include "crypto/kernel/rsa_internal.h"
#include "crypto/kernel/x25519.h"
#include "measure/asym_case.h"

#include <sallyport/queue.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct rsa_kernel *good_rsa;
static const struct x25519_kernel *good_x25519;
static struct rsa_kernel faulty_rsa;
static struct x25519_kernel faulty_x25519;

static struct asym_case rsa, x25519;
static struct sp_op ops[SP_LANES_MAX], *pointers[SP_LANES_MAX];
static uint8_t out[SP_LANES_MAX][ASYM_BYTES_MAX];

/* Which lane of which call of the exponentiation is hit; calls -1: none. */
static int fault_lane, fault_call, calls;

static void exp_with_a_flipped_bit(limb8 *r, limb8 *table, const limb8 *digits, unsigned count, unsigned window,
                                   const struct rsa_modulus *m)
{
    good_rsa->exp(r, table, digits, count, window, m);
    if (calls++ == fault_call)
        r[3][fault_lane] ^= 1u << 17;
}

static void derive_with_a_flipped_bit(uint8_t result[LANES][32], const uint8_t scalar[LANES][32],
                                      const uint8_t u[LANES][32])
{
    good_x25519->derive(result, scalar, u);
    result[5][11] ^= 4;
}

static struct sp_queue *new_queue(void)
{
    struct sp_queue_options options;
    struct sp_queue *queue;

    sp_queue_options_init(&options);
    options.policy[SP_BACKEND_MULTIBUFFER] = SP_POLICY_REQUIRE;
    assert_int_equal(sp_queue_new(&queue, &options), 0);
    return queue;
}

static struct sp_algorithm_counters run(struct sp_queue *queue, const struct asym_case *c, unsigned n)
{
    struct sp_queue_counters sum = {0};
    struct sp_op *done[SP_LANES_MAX];

    for (unsigned i = 0; i < n; i++) {
        asym_case_op(c, &ops[i], out[i]);
        pointers[i] = &ops[i];
    }
    assert_int_equal(sp_queue_submit(queue, pointers, n), n);
    (void)sp_queue_flush(queue, SP_FLUSH_ALL);
    assert_int_equal(sp_queue_poll(queue, done, SP_LANES_MAX), n);
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(ops[i].status, 0);
        assert_int_equal(asym_case_check(c, out[i]), 0);
    }
    sp_queue_counters_add(queue, &sum);
    return sum.algorithms[c->algorithm];
}

static void a_failing_self_test_switches_off(void **state)
{
    struct sp_queue *queue = new_queue();
    struct sp_algorithm_counters counters = run(queue, &x25519, 8);

    assert_string_equal(sp_lanes_missing(SP_ALGORITHM_X25519_DERIVE), "its self-test failed");
    assert_int_equal(counters.done[SP_BACKEND_OPENSSL], 8);
    assert_int_equal(counters.done[SP_BACKEND_MULTIBUFFER], 0);
    assert_int_equal(counters.fallbacks[SP_FALLBACK_NO_LANES], 8);
    assert_null(sp_lanes_missing(SP_ALGORITHM_X25519_KEYGEN));
    sp_queue_free(queue);
}

/* Both halves of the CRT are hit in turn: with eight operations p and q are two passes, with four one. */
static void a_wrong_result_is_computed_again(void **state)
{
    static const struct {
        unsigned n;
        int call, lane, op;
    } hits[] = {{8, 0, 0, 0}, {8, 0, 7, 7}, {8, 1, 3, 3}, {4, 0, 1, 1}, {4, 0, 6, 2}, {1, 0, 0, 0}, {1, 0, 4, 0}};
    struct sp_queue *first = new_queue();

    /* The self-test passes: the lanes go wrong later. */
    (void)run(first, &rsa, 8);
    sp_queue_free(first);
    for (size_t i = 0; i < sizeof(hits) / sizeof(hits[0]); i++) {
        struct sp_queue *queue = new_queue();
        struct sp_algorithm_counters counters;

        calls = 0;
        fault_call = hits[i].call;
        fault_lane = hits[i].lane;
        counters = run(queue, &rsa, hits[i].n);
        assert_int_equal(counters.fallbacks[SP_FALLBACK_VERIFY], 1);
        assert_int_equal(counters.done[SP_BACKEND_OPENSSL], 1);
        assert_int_equal(counters.done[SP_BACKEND_MULTIBUFFER], hits[i].n - 1);
        for (unsigned k = 0; k < hits[i].n; k++)
            assert_int_equal(ops[k].backend, (int)k == hits[i].op ? SP_BACKEND_OPENSSL : SP_BACKEND_MULTIBUFFER);
        sp_queue_free(queue);
    }
}

static void too_many_wrong_results_switch_off(void **state)
{
    struct sp_queue *queue = new_queue();
    struct sp_algorithm_counters counters;

    for (int i = 0; i < 20; i++) {
        calls = 0;
        fault_call = 0;
        fault_lane = 2;
        counters = run(queue, &rsa, 8);
    }
    assert_string_equal(sp_lanes_missing(SP_ALGORITHM_RSA2048), "too many of its results failed their verification");
    assert_true(counters.fallbacks[SP_FALLBACK_VERIFY] < 16);
    assert_true(counters.fallbacks[SP_FALLBACK_NO_LANES] > 0);
    sp_queue_free(queue);
}

static int set_up(void **state)
{
    struct multibuffer_kernels kernels = *multibuffer_kernels();

    if (!kernels.rsa) {
        printf("# %s: the portable lanes run\n", sp_backend_missing(SP_BACKEND_MULTIBUFFER));
        kernels = (struct multibuffer_kernels){rsa_kernel_portable(), p256_kernel_portable(), x25519_kernel_portable()};
    }
    good_rsa = kernels.rsa;
    good_x25519 = kernels.x25519;
    faulty_rsa = *good_rsa;
    faulty_rsa.exp = exp_with_a_flipped_bit;
    faulty_x25519 = *good_x25519;
    faulty_x25519.derive = derive_with_a_flipped_bit;
    kernels.rsa = &faulty_rsa;
    kernels.x25519 = &faulty_x25519;
    multibuffer_use_kernels(&kernels);
    fault_call = -1;
    return asym_case_init(&x25519, SP_ALGORITHM_X25519_DERIVE) || asym_case_init(&rsa, SP_ALGORITHM_RSA2048);
}

static int tear_down(void **state)
{
    asym_case_release(&x25519);
    asym_case_release(&rsa);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failing_self_test_switches_off),
        cmocka_unit_test(a_wrong_result_is_computed_again),
        cmocka_unit_test(too_many_wrong_results_switch_off),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
