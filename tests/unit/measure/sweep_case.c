#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sweep_case.h"

#include "base/clock.h"

#include <sallyport/status.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <string.h>

#define PATIENCE_NS (20u * UINT64_C(1000000000))

/* --- the reference ------------------------------------------------------------------------------------ */

static void reference_cipher(const struct sweep_key *key, const struct sweep_request *r,
                             uint8_t *out, uint8_t *tag)
{
    const struct sweep_algorithm *a = key->algorithm;
    EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, a->evp_cipher, NULL);
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    int len = 0, rest = 0;

    assert_non_null(cipher);
    assert_int_equal(EVP_EncryptInit_ex2(ctx, cipher, key->key, r->iv, NULL), 1);
    EVP_CIPHER_CTX_set_padding(ctx, 0);
    assert_int_equal(EVP_EncryptUpdate(ctx, out, &len, r->in, (int)r->len), 1);
    assert_int_equal(EVP_EncryptFinal_ex(ctx, out + len, &rest), 1);
    assert_int_equal(len + rest, r->len);
    if (a->kind == SWEEP_AEAD)
        assert_int_equal(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, (int)a->tag_bytes, tag),
                         1);
    EVP_CIPHER_CTX_free(ctx);
    EVP_CIPHER_free(cipher);
}

static void reference(const struct sweep_key *key, const struct sweep_request *r, uint8_t *out,
                      uint8_t *tag)
{
    const struct sweep_algorithm *a = key->algorithm;
    unsigned tag_len = 0;
    uint8_t *covered;

    if (a->kind == SWEEP_DIGEST) {
        assert_int_equal(
            EVP_Digest(r->in, r->len, tag, &tag_len, EVP_get_digestbyname(a->evp_digest), NULL), 1);
        assert_int_equal(tag_len, a->tag_bytes);
        return;
    }
    reference_cipher(key, r, out, tag);
    if (a->kind != SWEEP_CIPHER_HMAC)
        return;
    covered = malloc(a->iv_bytes + (size_t)r->len);
    assert_non_null(covered);
    memcpy(covered, r->iv, a->iv_bytes);
    memcpy(covered + a->iv_bytes, out, r->len);
    assert_non_null(HMAC(EVP_get_digestbyname(a->evp_digest), key->hmac_key, (int)a->hmac_key_bytes,
                         covered, a->iv_bytes + (size_t)r->len, tag, &tag_len));
    assert_int_equal(tag_len, a->tag_bytes);
    free(covered);
}

/* --- requests ----------------------------------------------------------------------------------------- */

struct batch {
    const struct sweep_impl *impl;
    struct sweep_session *session;
    struct sweep_key key;
    struct sweep_request requests[SWEEP_CASE_DEPTH];
    uint8_t *expected[SWEEP_CASE_DEPTH], expected_tags[SWEEP_CASE_DEPTH][64];
    bool in_place;
};

static void *take(struct batch *b, size_t bytes)
{
    void *memory = b->impl->buffer_alloc ? b->impl->buffer_alloc(b->session, bytes)
                                         : aligned_alloc(64, (bytes + 63) & ~63ul);

    assert_non_null(memory);
    assert_int_equal((uintptr_t)memory % 64, 0);
    return memory;
}

static void give(struct batch *b, const void *memory, size_t bytes)
{
    if (b->impl->buffer_free)
        b->impl->buffer_free(b->session, (void *)memory, bytes);
    else
        free((void *)memory);
}

static void make(struct batch *b, uint32_t len)
{
    bool is_digest = b->key.algorithm->kind == SWEEP_DIGEST;

    for (unsigned i = 0; i < SWEEP_CASE_DEPTH; i++) {
        struct sweep_request *r = &b->requests[i];
        uint8_t *in = take(b, len);

        *r = (struct sweep_request){.in = in, .len = len, .index = i, .status = SP_EAGAIN};
        RAND_bytes(in, (int)len);
        RAND_bytes(r->iv, sizeof(r->iv));
        /* The reference counts in 128 bits: a carry beyond 32 is not what is tested here. */
        r->iv[12] &= 0x7f;
        b->expected[i] = malloc(len + 16);
        assert_non_null(b->expected[i]);
        reference(&b->key, r, b->expected[i], b->expected_tags[i]);
        r->out = is_digest ? NULL : b->in_place ? in : take(b, len);
    }
}

static void exchange(struct batch *b)
{
    struct sweep_request *pointers[SWEEP_CASE_DEPTH], *done[SWEEP_CASE_DEPTH];
    bool seen[SWEEP_CASE_DEPTH] = {false};
    unsigned submitted = 0, finished = 0;
    uint64_t until = clock_now_ns() + PATIENCE_NS;

    for (unsigned i = 0; i < SWEEP_CASE_DEPTH; i++)
        pointers[i] = &b->requests[i];
    while (finished < SWEEP_CASE_DEPTH) {
        unsigned n;

        submitted +=
            b->impl->submit(b->session, pointers + submitted, SWEEP_CASE_DEPTH - submitted);
        n = b->impl->poll(b->session, done, 5, submitted == SWEEP_CASE_DEPTH);
        assert_true(n <= 5);
        for (unsigned i = 0; i < n; i++) {
            assert_false(seen[done[i]->index]);
            seen[done[i]->index] = true;
        }
        finished += n;
        assert_true(clock_now_ns() < until);
    }
    assert_int_equal(b->impl->poll(b->session, done, 5, true), 0);
}

static void compare(struct batch *b, const char *what)
{
    const struct sweep_algorithm *a = b->key.algorithm;

    for (unsigned i = 0; i < SWEEP_CASE_DEPTH; i++) {
        const struct sweep_request *r = &b->requests[i];
        const char *wrong = r->status != 0                                          ? "its status"
                            : r->out && memcmp(r->out, b->expected[i], r->len) != 0 ? "its output"
                            : a->tag_bytes && memcmp(r->tag, b->expected_tags[i], a->tag_bytes)
                                ? "its tag"
                                : NULL;

        if (wrong)
            fail_msg("%s: request %u: %s is wrong (status %d)", what, i, wrong, r->status);
    }
}

static void release(struct batch *b)
{
    for (unsigned i = 0; i < SWEEP_CASE_DEPTH; i++) {
        const struct sweep_request *r = &b->requests[i];

        if (r->out && r->out != r->in)
            give(b, r->out, r->len);
        give(b, r->in, r->len);
        free(b->expected[i]);
    }
}

/* --- cases -------------------------------------------------------------------------------------------- */

bool sweep_case_check(const struct sweep_impl *impl, struct sweep_device *device, unsigned thread,
                      const struct sweep_algorithm *algorithm, uint32_t len, bool in_place,
                      unsigned *async_requests, struct sweep_why *why)
{
    struct batch *b = calloc(1, sizeof(*b));
    char what[128];
    int status;

    assert_non_null(b);
    b->impl = impl;
    b->in_place = in_place;
    b->key.algorithm = algorithm;
    RAND_bytes(b->key.key, sizeof(b->key.key));
    RAND_bytes(b->key.hmac_key, sizeof(b->key.hmac_key));
    why->text[0] = '\0';
    status = impl->supports(device, algorithm, len, in_place, why);
    if (status != 0) {
        assert_int_equal(status, SP_EUNSUPPORTED);
        assert_true(strlen(why->text) > 10);
        free(b);
        return false;
    }
    snprintf(what, sizeof(what), "%s, %s, %u bytes %s", impl->name, algorithm->name, len,
             in_place ? "in place" : "out of place");
    if (impl->session_open(device, thread, &b->key, SWEEP_CASE_DEPTH, &b->session, why) != 0)
        fail_msg("%s: %s", what, why->text);
    make(b, len);
    exchange(b);
    compare(b, what);
    for (unsigned i = 0; i < SWEEP_CASE_DEPTH; i++)
        *async_requests += b->requests[i].was_async;
    release(b);
    if (impl->run) {
        make(b, len);
        for (unsigned i = 0; i < SWEEP_CASE_DEPTH; i++)
            b->requests[i].status = impl->run(b->session, &b->requests[i]);
        compare(b, what);
        release(b);
    }
    impl->session_close(b->session);
    free(b);
    return true;
}

struct sweep_device *sweep_case_open(const struct sweep_impl *impl, const char *argument,
                                     unsigned threads, uint64_t request_bytes_max)
{
    const struct sweep_limits limits = {.request_bytes_max = request_bytes_max,
                                        .threads_max = threads,
                                        .depth_max = SWEEP_CASE_DEPTH};
    struct sweep_device *device = NULL;
    struct sweep_why why = {""};
    char description[128] = "";
    int status =
        impl->device_open(argument, &limits, &device, description, sizeof(description), &why);

    if (status == SP_EUNSUPPORTED) {
        printf("# skipped: %s: %s\n", impl->name, why.text);
        skip();
    }
    if (status != 0)
        fail_msg("%s:%s: %s", impl->name, argument ? argument : "", why.text);
    assert_true(strlen(description) > 0);
    return device;
}

void sweep_case_check_all(const struct sweep_impl *impl, struct sweep_device *device,
                          uint64_t request_bytes_max, struct sweep_tally *tally)
{
    static const uint32_t sizes[] = {1,     16,    17,    64,    240,   1008,  1024,   4096,
                                     16384, 32752, 65408, 65504, 65520, 65536, 131072, 200000};

    *tally = (struct sweep_tally){0};
    for (unsigned i = 0; i < sweep_algorithm_count; i++) {
        const struct sweep_algorithm *a = &sweep_algorithms[i];

        for (unsigned k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
            struct sweep_why why;

            if (sizes[k] < a->bytes_min || sizes[k] % a->granule_bytes ||
                sizes[k] > request_bytes_max)
                continue;
            for (int in_place = 0; in_place < 2; in_place++) {
                if (sweep_case_check(impl, device, 0, a, sizes[k], in_place, &tally->async_requests,
                                     &why))
                    tally->checked++;
                else
                    tally->refused++;
            }
        }
    }
}
