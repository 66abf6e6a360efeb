#include "measure/sweep_check.h"
#include "measure/sweep_cpu.h"
#include "measure/sweep_latency.h"
#include "sweep_fake.h"

#include <math.h>
#include <openssl/evp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define SHORT_PATIENCE_NS 50000000u

/* The table says of each algorithm what OpenSSL says of it. */
static void test_algorithms(void **state)
{
    assert_int_equal(sweep_algorithm_count, 20);
    for (unsigned i = 0; i < sweep_algorithm_count; i++) {
        const struct sweep_algorithm *a = &sweep_algorithms[i];
        EVP_CIPHER *cipher = a->evp_cipher ? EVP_CIPHER_fetch(NULL, a->evp_cipher, NULL) : NULL;
        EVP_MD *md = a->evp_digest ? EVP_MD_fetch(NULL, a->evp_digest, NULL) : NULL;

        assert_ptr_equal(fake_find(a->name), a);
        assert_non_null(a->kernel_name);
        assert_true(a->bytes_min >= 1 && a->granule_bytes >= 1 && a->bytes_min % a->granule_bytes == 0);
        assert_true((cipher != NULL) == (a->kind != SWEEP_DIGEST));
        assert_true((md != NULL) == (a->kind == SWEEP_DIGEST || a->kind == SWEEP_CIPHER_HMAC));
        if (cipher) {
            assert_int_equal(EVP_CIPHER_get_key_length(cipher), a->key_bytes);
            assert_int_equal(EVP_CIPHER_get_iv_length(cipher), a->iv_bytes);
        } else {
            assert_int_equal(a->key_bytes + a->iv_bytes, 0);
        }
        if (md)
            assert_int_equal(EVP_MD_get_size(md), a->tag_bytes);
        assert_int_equal(a->hmac_key_bytes, a->kind == SWEEP_CIPHER_HMAC ? a->tag_bytes : 0);
        EVP_CIPHER_free(cipher);
        EVP_MD_free(md);
    }
    assert_null(fake_find("aes-256"));
    assert_null(fake_find("aes-256-xts2"));
    assert_null(fake_find("AES-256-XTS"));
    assert_null(fake_find(""));
    assert_string_equal(fake_find("chacha20-poly1305")->kernel_name, "rfc7539(chacha20,poly1305)");
    assert_string_equal(fake_find("aes-256-cbc-hmac-sha512")->kernel_name, "authenc(hmac(sha512),cbc(aes))");
}

static void test_sizes(void **state)
{
    struct sweep_why why;

    assert_int_equal(sweep_size_check(fake_find("aes-128-cbc"), 16, &why), 0);
    assert_int_equal(sweep_size_check(fake_find("aes-128-cbc"), 8, &why), SP_EUNSUPPORTED);
    assert_int_equal(sweep_size_check(fake_find("aes-128-cbc"), 24, &why), SP_EUNSUPPORTED);
    assert_string_equal(why.text, "aes-128-cbc takes multiples of 16 bytes");
    assert_int_equal(sweep_size_check(fake_find("aes-128-ctr"), 1, &why), 0);
    assert_int_equal(sweep_size_check(fake_find("aes-256-xts"), 15, &why), SP_EUNSUPPORTED);
    assert_int_equal(sweep_size_check(fake_find("aes-256-xts"), 17, &why), 0);
    assert_int_equal(sweep_size_check(fake_find("aes-256-xts"), 16u << 20, &why), 0);
    assert_int_equal(sweep_size_check(fake_find("aes-256-xts"), (16u << 20) + 16, &why), SP_EUNSUPPORTED);
}

static struct sweep_check check_of(const struct sweep_impl *impl, const struct sweep_key *key, uint64_t bytes,
                                   unsigned depth)
{
    return (struct sweep_check){.impl = impl,
                                .device = (struct sweep_device *)(void *)&fake,
                                .key = key,
                                .depth = depth,
                                .request_bytes = bytes,
                                .total_bytes = 1 << 16,
                                .patience_ns = SHORT_PATIENCE_NS};
}

/* All algorithms, both ways of asking, at the ends and off the powers of two. */
static void check_everything(const struct sweep_impl *impl)
{
    static const uint64_t sizes[] = {1, 16, 17, 48, 4096, 4112, 65536};
    struct sweep_device *device;
    char description[128];
    struct sweep_why why;
    unsigned checked = 0;

    assert_int_equal(impl->device_open(NULL, NULL, &device, description, sizeof(description), &why), 0);
    for (unsigned i = 0; i < sweep_algorithm_count; i++) {
        struct sweep_key key = fake_key(sweep_algorithms[i].name);

        for (size_t size = 0; size < sizeof(sizes) / sizeof(sizes[0]); size++) {
            for (unsigned depth = 1; depth <= 8; depth += 7) {
                struct sweep_check check = check_of(impl, &key, sizes[size], depth);

                check.device = device;
                if (sweep_size_check(key.algorithm, sizes[size], &why) != 0 ||
                    impl->supports(device, key.algorithm, sizes[size], false, &why) != 0)
                    continue;
                if (sweep_check(&check, &why) != 0)
                    fail_msg("%s of %llu bytes: %s", key.algorithm->name, (unsigned long long)sizes[size], why.text);
                checked++;
            }
        }
    }
    assert_true(checked >= 150);
    impl->device_close(device);
}

static void test_openssl(void **state)
{
    check_everything(&sweep_impl_openssl);
}

static void test_openssl_update(void **state)
{
    check_everything(&sweep_impl_openssl_update);
}

static void test_openssl_providers(void **state)
{
    struct sweep_key key = fake_key("aes-128-cbc");
    struct sweep_device *device = NULL;
    struct sweep_check check;
    char description[128];
    struct sweep_why why;

    assert_int_equal(sweep_impl_openssl.device_open("default", NULL, &device, description, sizeof(description), &why), 0);
    check = check_of(&sweep_impl_openssl, &key, 64, 1);
    check.device = device;
    assert_int_equal(sweep_check(&check, &why), 0);
    sweep_impl_openssl.device_close(device);
    device = NULL;
    assert_int_equal(sweep_impl_openssl.device_open("nobody", NULL, &device, description, sizeof(description), &why),
                     SP_ENOENT);
    assert_int_equal(sweep_impl_openssl.device_open("o'nobody", NULL, &device, description, sizeof(description), &why),
                     SP_EINVAL);
    assert_int_equal(
        sweep_impl_openssl.device_open("engine=nobody", NULL, &device, description, sizeof(description), &why),
        SP_ENOENT);
    assert_null(device);
}

static void test_reference(void **state)
{
    /* "abc" of FIPS 180-4, and appendix C.1 of FIPS 197: one block under an IV of zeros. */
    static const uint8_t sha1[] = {0xa9, 0x99, 0x3e, 0x36, 0x47, 0x06, 0x81, 0x6a, 0xba, 0x3e,
                                   0x25, 0x71, 0x78, 0x50, 0xc2, 0x6c, 0x9c, 0xd0, 0xd8, 0x9d};
    static const uint8_t block[] = {0x69, 0xc4, 0xe0, 0xd8, 0x6a, 0x7b, 0x04, 0x30,
                                    0xd8, 0xcd, 0xb7, 0x80, 0x70, 0xb4, 0xc5, 0x5a};
    struct sweep_key digest = fake_key("sha1"), cbc = fake_key("aes-128-cbc");
    uint8_t tag[64], iv[16] = {0}, plain[16], out[16];

    assert_int_equal(sweep_reference(&digest, NULL, (const uint8_t *)"abc", 3, NULL, tag), 0);
    assert_memory_equal(tag, sha1, sizeof(sha1));
    for (unsigned i = 0; i < 16; i++) {
        cbc.key[i] = (uint8_t)i;
        plain[i] = (uint8_t)(i * 0x11);
    }
    assert_int_equal(sweep_reference(&cbc, iv, plain, 16, out, tag), 0);
    assert_memory_equal(out, block, sizeof(block));
}

/* A fault at any of the first requests is found, whichever way they are asked for. */
static void test_faults(void **state)
{
    static const struct {
        enum fake_fault fault;
        const char *algorithm, *words;
    } cases[] = {
        {FAKE_FLIP_TEXT, "aes-256-ctr", "ciphertext"}, {FAKE_FLIP_TAG, "aes-128-gcm", "tag"},
        {FAKE_FLIP_TAG, "sha256", "digest"},           {FAKE_FLIP_TAG, "aes-128-cbc-hmac-sha1", "tag"},
        {FAKE_OVERRUN, "aes-128-cbc", "behind"},       {FAKE_SAME_IV, "aes-128-cbc", "ciphertext"},
        {FAKE_ERROR, "aes-128-cbc", "failed"},         {FAKE_SPOIL, "aes-128-cbc", "input"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sweep_key key = fake_key(cases[i].algorithm);

        for (unsigned at = 1; at <= 40; at += 13) {
            for (int direct = 0; direct <= 1; direct++) {
                struct sweep_check check = check_of(direct ? &fake_direct : &fake_queue, &key, 64, direct ? 1 : 8);
                struct sweep_why why = {""};

                fake_reset();
                fake.fault = cases[i].fault;
                fake.at = at;
                assert_int_equal(sweep_check(&check, &why), SP_EFAULT);
                if (!strstr(why.text, cases[i].words))
                    fail_msg("at %u: '%s' does not say '%s'", at, why.text, cases[i].words);
                assert_int_equal(fake.sessions, 0);
                fake_reset();
                assert_int_equal(sweep_check(&check, &why), 0);
            }
        }
    }
}

/* The place of a fault matters: the last request that is checked, in place, is checked too. */
static void test_last_one(void **state)
{
    struct sweep_key key = fake_key("aes-128-cbc");
    struct sweep_check check = check_of(&fake_queue, &key, 64, 8);
    struct sweep_why why;
    unsigned asked;

    fake_reset();
    assert_int_equal(sweep_check(&check, &why), 0);
    asked = (unsigned)fake.asked;
    assert_int_equal(asked, 128); /* 64 each way */
    fake_reset();
    fake.fault = FAKE_FLIP_TEXT;
    fake.at = asked;
    assert_int_equal(sweep_check(&check, &why), SP_EFAULT);
    assert_non_null(strstr(why.text, "request 64 of 64, of 64 bytes in place"));
}

static void test_order(void **state)
{
    struct sweep_key key = fake_key("aes-128-gcm");
    struct sweep_check check = check_of(&fake_queue, &key, 100, 8);
    struct sweep_why why;

    fake_reset();
    fake.is_reordered = true;
    fake.refuse = 3;
    fake.is_silent = true;
    assert_int_equal(sweep_check(&check, &why), 0);
    assert_int_equal(fake.asked, fake.completed);
    assert_int_equal(fake.too_deep + fake.wrong_thread + fake.wrong_index, 0);
    assert_true(fake.flying_most > 1 && fake.flying_most <= 8);

    fake_reset();
    fake.fault = FAKE_TWICE;
    fake.at = 3;
    assert_int_equal(sweep_check(&check, &why), SP_EFAULT);
    assert_non_null(strstr(why.text, "not in flight"));
}

static void test_lost(void **state)
{
    struct sweep_key key = fake_key("aes-128-cbc");
    struct sweep_check check = check_of(&fake_queue, &key, 64, 8);
    struct sweep_why why;

    fake_reset();
    fake.fault = FAKE_LOSE;
    fake.at = 5;
    assert_int_equal(sweep_check(&check, &why), SP_ETIMEDOUT);
    assert_non_null(strstr(why.text, "1 requests of 64 bytes did not complete"));
    assert_int_equal(fake.lost_count, 1);
    /* Leaked: what the device may still write to is still there. */
    memset(fake.lost[0]->out, 0, fake.lost[0]->len);
}

static void test_latency(void **state)
{
    struct sweep_latency *l = calloc(1, sizeof(*l)), *more = calloc(1, sizeof(*more));

    assert_non_null(l);
    assert_non_null(more);
    assert_true(isnan(sweep_latency_us(l, 0.5)));
    for (uint64_t ns = 1; ns <= 100000; ns++)
        sweep_latency_add(l, ns, 1);
    for (double q = 0.01; q < 1; q += 0.07) {
        if (fabs(sweep_latency_us(l, q) / (q * 100) - 1) > 0.01)
            fail_msg("%g of 1 to 100000 ns: %g us", q, sweep_latency_us(l, q));
    }
    sweep_latency_add(more, 5000000, 900000);
    sweep_latency_merge(l, more);
    assert_int_equal(l->count, 1000000);
    assert_true(fabs(sweep_latency_us(l, 0.5) / 5000 - 1) < 0.01);
    sweep_latency_add(more, UINT64_MAX, 1);
    assert_true(sweep_latency_us(more, 1) > 1e9);
    free(l);
    free(more);
}

static void test_cpu(void **state)
{
    struct sweep_cpu from = {.at_ns = 1000000000, .idle_ns = 5000000000, .own_ns = 0}, to = from;

    assert_int_equal(sweep_cpu_idle_ticks("cpu  643301 496152 436556 1098376 207596 0 50796 0 0 0\n"), 1305972);
    assert_true(sweep_cpu_idle_ticks("cpu0 1 2 3 4 5\n") == SWEEP_CPU_UNKNOWN);
    assert_true(sweep_cpu_idle_ticks("cpu  1 2 3 0 0\n") == SWEEP_CPU_UNKNOWN);
    assert_true(sweep_cpu_idle_ticks("cpu  1 2\n") == SWEEP_CPU_UNKNOWN);
    assert_true(sweep_cpu_idle_ticks("") == SWEEP_CPU_UNKNOWN);
    /* Nothing idle: all CPUs were busy; more idle than there was time for: what this process spent. */
    to.at_ns += 100;
    assert_true(sweep_cpu_busy_ns(&from, &to) >= 100);
    to.idle_ns += 1000000000;
    to.own_ns = 60;
    assert_int_equal(sweep_cpu_busy_ns(&from, &to), 60);
    to.idle_ns = SWEEP_CPU_UNKNOWN;
    assert_true(sweep_cpu_busy_ns(&from, &to) == SWEEP_CPU_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_algorithms),     cmocka_unit_test(test_sizes),  cmocka_unit_test(test_openssl),
        cmocka_unit_test(test_openssl_update), cmocka_unit_test(test_openssl_providers),
        cmocka_unit_test(test_reference),      cmocka_unit_test(test_faults), cmocka_unit_test(test_last_one),
        cmocka_unit_test(test_order),          cmocka_unit_test(test_lost),   cmocka_unit_test(test_latency),
        cmocka_unit_test(test_cpu),
    };

    return cmocka_run_group_tests_name("measure/sweep_check", tests, NULL, NULL);
}
