/*
 * A device that computes wrongly, fails, refuses or stops answering: no wrong result leaves the queue, none is lost, and a
 * device that fails again and again is left alone. The device is a fake one.
 */
#include "base/clock.h"
#include "crypto/cryptodev/cryptodev.h"
#include "measure/asym_case.h"

#include <sallyport/queue.h>
#include <sallyport/status.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MANY 40
#define SLOTS 64
#define PATIENCE_NS (UINT64_C(60) * 1000000000)

static struct asym_case rsa;

/* --- the fake device ------------------------------------------------------------------------------------- */

enum mode { RIGHT, WRONG, FAILS, REFUSES_KEYS, REFUSES_REQUESTS, SILENT };

static struct {
    enum mode mode;
    unsigned bad; /* so many requests are as the mode says, the next ones right */
    unsigned keys, queues, devices;
    struct cryptodev_rsa_request *held[SLOTS];
    unsigned held_count, forgotten;
} fake;

static int fake_open(const char *spec, const struct cryptodev_limits *limits,
                     struct cryptodev **out, char *description, size_t size,
                     struct cryptodev_why *why)
{
    fake.devices++;
    *out = (struct cryptodev *)&fake;
    return 0;
}

static void fake_close(struct cryptodev *device)
{
    fake.devices--;
}

static int fake_supports(struct cryptodev *device, unsigned modulus_bytes,
                         struct cryptodev_why *why)
{
    return 0;
}

static int fake_queue_open(struct cryptodev *device, struct cryptodev_rsa_queue **out,
                           struct cryptodev_why *why)
{
    fake.queues++;
    *out = (struct cryptodev_rsa_queue *)&fake;
    return 0;
}

static void fake_queue_close(struct cryptodev_rsa_queue *queue)
{
    fake.queues--;
}

static int fake_key_new(struct cryptodev_rsa_queue *queue, const struct cryptodev_rsa_parts *parts,
                        struct cryptodev_rsa_key **out)
{
    if (fake.mode == REFUSES_KEYS)
        return SP_EIO;
    fake.keys++;
    *out = (struct cryptodev_rsa_key *)&fake;
    return 0;
}

static void fake_key_free(struct cryptodev_rsa_key *key)
{
    fake.keys -= key != NULL;
}

static bool fake_key_is_busy(const struct cryptodev_rsa_key *key)
{
    return fake.held_count > 0;
}

static int fake_submit(struct cryptodev_rsa_queue *queue, struct cryptodev_rsa_request *request)
{
    if (fake.mode == REFUSES_REQUESTS || fake.held_count == SLOTS)
        return SP_EAGAIN;
    fake.held[fake.held_count++] = request;
    return 0;
}

static unsigned fake_poll(struct cryptodev_rsa_queue *queue, struct cryptodev_rsa_request **done,
                          unsigned max)
{
    unsigned n = 0;

    while (n < max && fake.held_count && !(fake.mode == SILENT && fake.bad)) {
        struct cryptodev_rsa_request *r = fake.held[--fake.held_count];
        bool bad = fake.bad > 0;

        fake.bad -= bad;
        r->status =
            bad && fake.mode == FAILS ? SP_EIO : sp_rsa_key_run_scalar(rsa.rsa, r->in, r->out);
        if (bad && fake.mode == WRONG)
            r->out[100] ^= 4;
        done[n++] = r;
    }
    return n;
}

static void fake_forget(struct cryptodev_rsa_queue *queue, struct cryptodev_rsa_request *request)
{
    for (unsigned i = 0; i < fake.held_count; i++) {
        if (fake.held[i] == request) {
            fake.held[i] = fake.held[--fake.held_count];
            fake.bad -= fake.mode == SILENT && fake.bad > 0;
            fake.forgotten++;
            return;
        }
    }
    fail_msg("a request was forgotten that the device does not have");
}

static const struct cryptodev_table table = {
    .version = CRYPTODEV_VERSION,
    .open = fake_open,
    .close = fake_close,
    .rsa_supports = fake_supports,
    .rsa_queue_open = fake_queue_open,
    .rsa_queue_close = fake_queue_close,
    .rsa_key_new = fake_key_new,
    .rsa_key_free = fake_key_free,
    .rsa_key_is_busy = fake_key_is_busy,
    .rsa_submit = fake_submit,
    .rsa_poll = fake_poll,
    .rsa_forget = fake_forget,
};

/* --- the queue on it ------------------------------------------------------------------------------------- */

struct setup {
    struct sp_cryptodev *device;
    struct sp_queue *queue;
    struct sp_op ops[MANY], *pointers[MANY];
    uint8_t out[MANY][ASYM_BYTES_MAX];
};

static void start(struct setup *s, enum mode mode, unsigned bad)
{
    struct sp_queue_options options;
    char why[SP_CRYPTODEV_WHY_BYTES];

    memset(&fake, 0, sizeof(fake));
    memset(s, 0, sizeof(*s));
    fake.mode = mode;
    fake.bad = bad;
    assert_int_equal(sp_cryptodev_new(&s->device, "fake", 1, why), 0);
    sp_queue_options_init(&options);
    options.policy[SP_BACKEND_MULTIBUFFER] = SP_POLICY_OFF;
    options.cryptodev = s->device;
    assert_int_equal(sp_queue_new(&s->queue, &options), 0);
}

static void run(struct setup *s, unsigned n)
{
    struct sp_op *done[8];
    uint64_t until = clock_now_ns() + PATIENCE_NS;
    size_t left = n;

    for (unsigned i = 0; i < n; i++) {
        asym_case_op(&rsa, &s->ops[i], s->out[i]);
        s->pointers[i] = &s->ops[i];
    }
    assert_int_equal(sp_queue_submit(s->queue, s->pointers, n), n);
    while (left) {
        (void)sp_queue_flush(s->queue, SP_FLUSH_ALL);
        left -= sp_queue_poll(s->queue, done, 8);
        assert_true(clock_now_ns() < until);
    }
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(s->ops[i].status, 0);
        assert_int_equal(asym_case_check(&rsa, s->out[i]), 0);
    }
}

static struct sp_algorithm_counters counters(const struct setup *s)
{
    struct sp_queue_counters sum = {0};

    sp_queue_counters_add(s->queue, &sum);
    return sum.algorithms[SP_ALGORITHM_RSA2048];
}

static void finish(struct setup *s)
{
    sp_queue_free(s->queue);
    sp_cryptodev_free(s->device);
    assert_int_equal(fake.keys, 0);
    assert_int_equal(fake.queues, 0);
    assert_int_equal(fake.devices, 0);
}

static void expect(const struct setup *s, unsigned on_device, enum sp_fallback reason,
                   unsigned elsewhere)
{
    struct sp_algorithm_counters c = counters(s);

    assert_int_equal(c.done[SP_BACKEND_CRYPTODEV], on_device);
    assert_int_equal(c.done[SP_BACKEND_OPENSSL], elsewhere);
    assert_int_equal(c.fallbacks[reason], elsewhere);
}

/* --- faults ----------------------------------------------------------------------------------------------- */

static void test_right(void **state)
{
    struct setup s;

    start(&s, RIGHT, 0);
    run(&s, MANY);
    expect(&s, MANY, SP_FALLBACK_DEVICE, 0);
    finish(&s);
}

static void test_wrong_results(void **state)
{
    struct setup s;

    start(&s, WRONG, 5);
    run(&s, 12);
    expect(&s, 7, SP_FALLBACK_VERIFY, 5);
    finish(&s);
}

static void test_failures(void **state)
{
    struct setup s;

    start(&s, FAILS, 5);
    run(&s, 12);
    expect(&s, 7, SP_FALLBACK_DEVICE, 5);
    finish(&s);
}

static void test_left_alone_after_many(void **state)
{
    struct setup s;

    start(&s, WRONG, 16);
    run(&s, 16);
    expect(&s, 0, SP_FALLBACK_VERIFY, 16);
    run(&s, 10);
    assert_int_equal(counters(&s).done[SP_BACKEND_CRYPTODEV], 0);
    assert_int_equal(counters(&s).done[SP_BACKEND_OPENSSL], 26);
    assert_int_equal(counters(&s).fallbacks[SP_FALLBACK_DEVICE], 10);
    finish(&s);
}

static void test_refused_key(void **state)
{
    struct setup s;

    start(&s, REFUSES_KEYS, 0);
    run(&s, 12);
    expect(&s, 0, SP_FALLBACK_DEVICE, 12);
    finish(&s);
}

static void test_takes_nothing(void **state)
{
    struct setup s;

    start(&s, REFUSES_REQUESTS, 0);
    run(&s, MANY);
    expect(&s, 0, SP_FALLBACK_DEVICE, MANY);
    finish(&s);
}

/* Three requests never come back; those that are submitted later do. */
static void test_no_answer(void **state)
{
    struct setup s;

    start(&s, SILENT, 3);
    run(&s, 3);
    expect(&s, 0, SP_FALLBACK_DEVICE, 3);
    assert_int_equal(fake.forgotten, 3);
    run(&s, 2);
    assert_int_equal(counters(&s).done[SP_BACKEND_CRYPTODEV], 2);
    finish(&s);
}

static void test_at_once(void **state)
{
    struct setup s;

    start(&s, WRONG, 1);
    for (unsigned i = 0; i < 2; i++) {
        asym_case_op(&rsa, &s.ops[i], s.out[i]);
        sp_queue_run(s.queue, &s.ops[i]);
        assert_int_equal(s.ops[i].status, 0);
        assert_int_equal(asym_case_check(&rsa, s.out[i]), 0);
        assert_int_equal(s.ops[i].backend, i ? SP_BACKEND_CRYPTODEV : SP_BACKEND_OPENSSL);
    }
    expect(&s, 1, SP_FALLBACK_VERIFY, 1);
    finish(&s);
}

/* Operations that a silent device has are the caller's again at once, canceled or when the queue ends. */
static void test_withdrawn(void **state)
{
    struct setup s;

    start(&s, SILENT, 4);
    for (unsigned i = 0; i < 4; i++) {
        asym_case_op(&rsa, &s.ops[i], s.out[i]);
        s.pointers[i] = &s.ops[i];
    }
    assert_int_equal(sp_queue_submit(s.queue, s.pointers, 4), 4);
    assert_true(sp_queue_flush(s.queue, SP_FLUSH_ALL));
    assert_int_equal(sp_queue_cancel(s.queue, &s.ops[2]), 0);
    assert_int_equal(s.ops[2].status, SP_ECANCELED);
    assert_int_equal(counters(&s).canceled, 1);
    finish(&s);
    assert_int_equal(fake.forgotten, 4);
    assert_int_equal(s.ops[0].status, SP_ECANCELED);
}

static int make_case(void **state)
{
    cryptodev_use_table(&table);
    return asym_case_init(&rsa, SP_ALGORITHM_RSA2048);
}

static int release_case(void **state)
{
    asym_case_release(&rsa);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right),       cmocka_unit_test(test_wrong_results),
        cmocka_unit_test(test_failures),    cmocka_unit_test(test_left_alone_after_many),
        cmocka_unit_test(test_refused_key), cmocka_unit_test(test_takes_nothing),
        cmocka_unit_test(test_no_answer),   cmocka_unit_test(test_at_once),
        cmocka_unit_test(test_withdrawn),
    };

    return cmocka_run_group_tests(tests, make_case, release_case);
}
