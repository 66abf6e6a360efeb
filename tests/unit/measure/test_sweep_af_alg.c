/*
 * The kernel's crypto API against OpenSSL, one request at a time and eight in flight. Of a kernel without AF_ALG it is
 * checked that this is said, and the rest is skipped.
 */
#include "measure/sweep_impl.h"

#include <sallyport/status.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DEPTH 8
#define BYTES_MAX (4u << 20)

static const struct sweep_impl *const impl = &sweep_impl_af_alg;
static const struct sweep_limits limits = {BYTES_MAX, 1, DEPTH};

static struct sweep_key key_of(const struct sweep_algorithm *algorithm)
{
    struct sweep_key key = {.algorithm = algorithm};

    for (unsigned i = 0; i < sizeof(key.key); i++) {
        key.key[i] = (uint8_t)(i * 7 + 1);
        key.hmac_key[i] = (uint8_t)(i * 11 + 5);
    }
    return key;
}

/* OpenSSL's answer to a request. */
static void reference(const struct sweep_key *key, const struct sweep_request *r, uint8_t *out, uint8_t *tag)
{
    const struct sweep_algorithm *a = key->algorithm;
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    EVP_CIPHER *cipher = a->evp_cipher ? EVP_CIPHER_fetch(NULL, a->evp_cipher, NULL) : NULL;
    unsigned tag_len = 0;
    int len = 0, rest = 0;

    assert_non_null(context);
    if (cipher) {
        assert_int_equal(EVP_EncryptInit_ex(context, cipher, NULL, key->key, r->iv), 1);
        EVP_CIPHER_CTX_set_padding(context, 0);
        assert_int_equal(EVP_EncryptUpdate(context, out, &len, r->in, (int)r->len), 1);
        assert_int_equal(EVP_EncryptFinal_ex(context, out + len, &rest), 1);
        assert_int_equal(len + rest, (int)r->len);
    }
    if (a->kind == SWEEP_AEAD)
        assert_int_equal(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, (int)a->tag_bytes, tag), 1);
    if (a->kind == SWEEP_DIGEST)
        assert_int_equal(EVP_Digest(r->in, r->len, tag, &tag_len, EVP_get_digestbyname(a->evp_digest), NULL), 1);
    if (a->kind == SWEEP_CIPHER_HMAC) {
        uint8_t *both = malloc(a->iv_bytes + r->len);

        assert_non_null(both);
        memcpy(both, r->iv, a->iv_bytes);
        memcpy(both + a->iv_bytes, out, r->len);
        assert_non_null(HMAC(EVP_get_digestbyname(a->evp_digest), key->hmac_key, (int)a->hmac_key_bytes, both,
                             a->iv_bytes + r->len, tag, &tag_len));
        free(both);
    }
    EVP_CIPHER_free(cipher);
    EVP_CIPHER_CTX_free(context);
}

struct batch {
    struct sweep_request requests[DEPTH];
    uint8_t *in[DEPTH], *out[DEPTH], *expected[DEPTH], tags[DEPTH][64];
};

static void batch_init(struct batch *b, struct sweep_session *session, const struct sweep_key *key, unsigned n,
                       uint32_t len, bool in_place)
{
    bool is_digest = key->algorithm->kind == SWEEP_DIGEST;

    for (unsigned i = 0; i < n; i++) {
        struct sweep_request *r = &b->requests[i];

        b->in[i] = impl->buffer_alloc(session, len);
        b->out[i] = in_place ? NULL : impl->buffer_alloc(session, len);
        b->expected[i] = malloc(len);
        assert_true(b->in[i] && b->expected[i] && (in_place || b->out[i]));
        for (uint32_t k = 0; k < len; k++)
            b->in[i][k] = (uint8_t)(k * 31 + i + (k >> 8));
        *r = (struct sweep_request){.in = b->in[i],
                                    .out = is_digest  ? NULL
                                           : in_place ? b->in[i]
                                                      : b->out[i],
                                    .len = len,
                                    .status = 77,
                                    .index = i};
        for (unsigned k = 0; k < sizeof(r->iv); k++)
            r->iv[k] = (uint8_t)(k + 100 * i);
        reference(key, r, b->expected[i], b->tags[i]);
    }
}

static void batch_check(struct batch *b, struct sweep_session *session, const struct sweep_key *key, unsigned n,
                        uint32_t len)
{
    for (unsigned i = 0; i < n; i++) {
        struct sweep_request *r = &b->requests[i];

        if (r->status != 0)
            fail_msg("%s, %u bytes, request %u: status %d", key->algorithm->name, len, i, r->status);
        if ((r->out && memcmp(r->out, b->expected[i], len) != 0) ||
            memcmp(r->tag, b->tags[i], key->algorithm->tag_bytes) != 0)
            fail_msg("%s, %u bytes, request %u: another result than OpenSSL's", key->algorithm->name, len, i);
        impl->buffer_free(session, b->in[i], len);
        impl->buffer_free(session, b->out[i], len);
        free(b->expected[i]);
    }
}

/* How many of n requests completed after their submission had returned. */
static unsigned check_in_flight(struct sweep_session *session, const struct sweep_key *key, uint32_t len, bool in_place)
{
    struct sweep_request *pointers[DEPTH], *done[DEPTH];
    unsigned submitted = 0, polled = 0, late = 0;
    struct batch b;

    batch_init(&b, session, key, DEPTH, len, in_place);
    for (unsigned i = 0; i < DEPTH; i++)
        pointers[i] = &b.requests[i];
    for (unsigned turn = 0; polled < DEPTH; turn++) {
        unsigned n;

        assert_true(turn < 1000000);
        submitted += impl->submit(session, pointers + submitted, DEPTH - submitted);
        n = impl->poll(session, done, DEPTH, submitted == DEPTH);
        for (unsigned i = 0; i < n; i++)
            late += done[i]->was_async;
        polled += n;
    }
    assert_int_equal(impl->poll(session, done, DEPTH, true), 0);
    batch_check(&b, session, key, DEPTH, len);
    return late;
}

/* Every size that the kernel takes; what it does not take has a reason. How many completed late, of those in flight. */
static unsigned check_algorithm(struct sweep_device *device, const struct sweep_algorithm *algorithm,
                                uint32_t bytes_max, unsigned *total)
{
    static const uint32_t sizes[] = {16, 48, 4096, 65536, 262144, 1 << 20, BYTES_MAX};
    struct sweep_key key = key_of(algorithm);
    struct sweep_why why = {""};
    struct sweep_session *session;
    unsigned late = 0;

    *total = 0;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct batch b;

        if (sizes[i] > bytes_max)
            break;
        if (impl->supports(device, algorithm, sizes[i], false, &why) != 0) {
            assert_true(why.text[0]);
            print_message("%s, %u bytes: %s\n", algorithm->name, sizes[i], why.text);
            continue;
        }
        for (unsigned in_place = 0; in_place < 2; in_place++) {
            assert_int_equal(impl->session_open(device, 0, &key, 1, &session, &why), 0);
            batch_init(&b, session, &key, 1, sizes[i], in_place);
            assert_int_equal(impl->run(session, &b.requests[0]), 0);
            batch_check(&b, session, &key, 1, sizes[i]);
            impl->session_close(session);
            if (sizes[i] > 65536)
                continue;
            assert_int_equal(impl->session_open(device, 0, &key, DEPTH, &session, &why), 0);
            late += check_in_flight(session, &key, sizes[i], in_place);
            *total += DEPTH;
            impl->session_close(session);
        }
    }
    return late;
}

/* Where the kernel has no AF_ALG: the reason is checked, and the rest is skipped. */
static struct sweep_device *open_or_skip(const char *driver)
{
    struct sweep_why why = {""};
    struct sweep_device *device = NULL;
    char description[128] = "";
    int status = impl->device_open(driver, &limits, &device, description, sizeof(description), &why);

    if (status == SP_EUNSUPPORTED || status == SP_EPERM) {
        assert_non_null(strstr(why.text, "AF_ALG"));
        assert_null(device);
        print_message("skipped: %s\n", why.text);
        skip();
    }
    if (status != 0)
        fail_msg("%d: %s", status, why.text);
    assert_non_null(strstr(description, "Linux "));
    return device;
}

static void test_algorithms(void **state)
{
    struct sweep_device *device = open_or_skip(NULL);
    unsigned total;

    for (unsigned i = 0; i < sweep_algorithm_count; i++) {
        unsigned late = check_algorithm(device, &sweep_algorithms[i], BYTES_MAX, &total);

        print_message("%s: %u of %u completed after submission\n", sweep_algorithms[i].name, late, total);
    }
    impl->device_close(device);
}

/* One driver by its name: right results, and no other algorithm's. Skips where this kernel has it not. */
static void check_driver(const char *driver, const char *name, uint32_t bytes_max)
{
    const struct sweep_algorithm *algorithm = sweep_algorithm_find(name, strlen(name));
    const struct sweep_algorithm *other = sweep_algorithm_find("chacha20-poly1305", 17);
    struct sweep_device *device = open_or_skip(driver);
    struct sweep_why why = {""};
    unsigned late, total;
    int status = impl->supports(device, algorithm, 16, false, &why);

    if (status == 0) {
        late = check_algorithm(device, algorithm, bytes_max, &total);
        print_message("%s: %u of %u completed after submission\n", driver, late, total);
        assert_true(late <= total);
        /* It does what it does, whatever it is asked for. */
        assert_int_equal(impl->supports(device, other, 16, false, &why), SP_EUNSUPPORTED);
        assert_non_null(strstr(why.text, "does authenc(hmac(sha256),cbc(aes)), not rfc7539(chacha20,poly1305)"));
    }
    impl->device_close(device);
    if (status != 0) {
        assert_int_equal(status, SP_EUNSUPPORTED);
        assert_true(why.text[0]);
        print_message("skipped: %s\n", why.text);
        skip();
    }
}

/* A driver that hands its work to a kernel thread. */
static void test_thread(void **state)
{
    check_driver("authenc(hmac(sha256-generic),cryptd(cbc(aes-generic)))", "aes-128-cbc-hmac-sha256", BYTES_MAX);
}

/* A device that completes by interrupt; larger requests have more pages than its queue takes. */
static void test_device(void **state)
{
    check_driver("authenc(hmac(sha256-generic),virtio_crypto_aes_cbc)", "aes-128-cbc-hmac-sha256", 65536);
}

static void test_unknown(void **state)
{
    const struct sweep_algorithm *cbc = sweep_algorithm_find("aes-128-cbc", 11);
    struct sweep_device *device = open_or_skip("no-such-driver");
    struct sweep_why why = {""};

    assert_int_equal(impl->supports(device, cbc, 16, false, &why), SP_EUNSUPPORTED);
    assert_non_null(strstr(why.text, "no-such-driver"));
    print_message("%s\n", why.text);
    impl->device_close(device);
}

/* Found before any socket is opened. */
static void test_bad_names(void **state)
{
    struct sweep_device *device = NULL;
    struct sweep_why why = {""};
    char description[128], name[65];

    memset(name, 'x', 64);
    name[64] = '\0';
    assert_int_equal(impl->device_open("", &limits, &device, description, sizeof(description), &why), SP_EINVAL);
    assert_int_equal(impl->device_open(name, &limits, &device, description, sizeof(description), &why), SP_EINVAL);
    assert_non_null(strstr(why.text, "1 to 63 bytes"));
    assert_null(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_names), cmocka_unit_test(test_unknown), cmocka_unit_test(test_algorithms),
        cmocka_unit_test(test_thread),    cmocka_unit_test(test_device),
    };

    return cmocka_run_group_tests_name("measure/sweep_af_alg", tests, NULL, NULL);
}
