/* TLS 1.3's key schedule beside the default provider's, in the calls that libssl makes and in odd ones. */
#include "support.h"

#include <string.h>

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/kdf.h>
#include <openssl/rand.h>

static struct t_worlds worlds;

struct call {
    int mode;
    const char *digest, *label;
    size_t key, salt, data, out; /* lengths; 0: not given */
    bool in_steps;               /* parameters set first, derived then */
};

static int derive(OSSL_LIB_CTX *libctx, const struct call *c, const uint8_t *bytes, uint8_t *out)
{
    EVP_KDF *kdf = EVP_KDF_fetch(libctx, "TLS13-KDF", NULL);
    EVP_KDF_CTX *ctx = EVP_KDF_CTX_new(kdf);
    OSSL_PARAM params[8], *p = params;
    int mode = c->mode, done;

    assert_non_null(ctx);
    *p++ = OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode);
    *p++ = OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)c->digest, 0);
    if (c->key)
        *p++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)bytes, c->key);
    if (c->salt)
        *p++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, (void *)(bytes + 64), c->salt);
    *p++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_PREFIX, (void *)"tls13 ", 6);
    *p++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_LABEL, (void *)c->label, strlen(c->label));
    if (c->data)
        *p++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_DATA, (void *)(bytes + 128), c->data);
    *p = OSSL_PARAM_construct_end();
    if (c->in_steps)
        done = EVP_KDF_CTX_set_params(ctx, params) > 0 && EVP_KDF_derive(ctx, out, c->out, NULL) > 0;
    else
        done = EVP_KDF_derive(ctx, out, c->out, params) > 0;
    EVP_KDF_CTX_free(ctx);
    EVP_KDF_free(kdf);
    ERR_clear_error();
    return done;
}

static void same_as_default(void **state)
{
    static const struct call calls[] = {
        {EVP_KDF_HKDF_MODE_EXPAND_ONLY, "SHA256", "s hs traffic", 32, 0, 32, 32, false},
        {EVP_KDF_HKDF_MODE_EXPAND_ONLY, "SHA384", "s hs traffic", 48, 0, 48, 48, false},
        {EVP_KDF_HKDF_MODE_EXPAND_ONLY, "SHA256", "key", 32, 0, 0, 16, false},
        {EVP_KDF_HKDF_MODE_EXPAND_ONLY, "SHA384", "iv", 48, 0, 0, 12, false},
        {EVP_KDF_HKDF_MODE_EXPAND_ONLY, "SHA256", "resumption", 32, 0, 8, 32, false},
        {EVP_KDF_HKDF_MODE_EXPAND_ONLY, "SHA256", "exporter", 32, 0, 32, 100, false},
        {EVP_KDF_HKDF_MODE_EXPAND_ONLY, "SHA384", "exporter", 48, 0, 48, 333, false},
        {EVP_KDF_HKDF_MODE_EXTRACT_ONLY, "SHA256", "derived", 0, 0, 0, 32, false},
        {EVP_KDF_HKDF_MODE_EXTRACT_ONLY, "SHA384", "derived", 0, 0, 0, 48, false},
        {EVP_KDF_HKDF_MODE_EXTRACT_ONLY, "SHA256", "derived", 32, 32, 0, 32, false},
        {EVP_KDF_HKDF_MODE_EXTRACT_ONLY, "SHA384", "derived", 32, 48, 0, 48, false},
        {EVP_KDF_HKDF_MODE_EXTRACT_ONLY, "SHA256", "derived", 1024, 32, 0, 32, false},
        {EVP_KDF_HKDF_MODE_EXTRACT_ONLY, "SHA384", "derived", 0, 48, 0, 48, false},
        {EVP_KDF_HKDF_MODE_EXPAND_ONLY, "SHA512", "another hash", 64, 0, 32, 64, false},
        {EVP_KDF_HKDF_MODE_EXPAND_ONLY, "SHA256", "in steps", 32, 0, 32, 32, true},
        {EVP_KDF_HKDF_MODE_EXTRACT_ONLY, "SHA384", "derived", 48, 48, 0, 48, true},
        /* Refused by both. */
        {EVP_KDF_HKDF_MODE_EXPAND_ONLY, "SHA256", "no key", 0, 0, 32, 32, false},
        {EVP_KDF_HKDF_MODE_EXTRACT_AND_EXPAND, "SHA256", "no such mode", 32, 0, 32, 32, false},
        {EVP_KDF_HKDF_MODE_EXTRACT_ONLY, "SHA256", "wrong length", 32, 32, 0, 48, false},
        {EVP_KDF_HKDF_MODE_EXPAND_ONLY, "SHA256", "too much", 32, 0, 32, 255 * 32 + 1, false},
        {EVP_KDF_HKDF_MODE_EXPAND_ONLY, "SHA-NONE", "no such hash", 32, 0, 32, 32, false},
    };
    uint8_t bytes[2048], ours[9000], theirs[9000];

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        for (int round = 0; round < 10; round++) {
            int done;

            assert_int_equal(RAND_bytes(bytes, sizeof(bytes)), 1);
            done = derive(worlds.plain, &calls[i], bytes, theirs);
            if (derive(worlds.ours, &calls[i], bytes, ours) != done)
                fail_msg("%s: done %d by the default provider", calls[i].label, done);
            if (done)
                assert_memory_equal(ours, theirs, calls[i].out);
        }
    }
}

static int set_up(void **state)
{
    t_worlds_init(&worlds);
    return 0;
}

static int tear_down(void **state)
{
    t_worlds_release(&worlds);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_as_default),
    };

    return cmocka_run_group_tests_name("kdf", tests, set_up, tear_down);
}
