/*
 * The public Wycheproof vectors through the queue, in lanes and in the scalar library. They are read from the folder that
 * SP_VECTORS names; where it does not exist the tests are skipped, and say so.
 */
#include "base/str.h"
#include "crypto/backend/multibuffer.h"
#include "crypto/kernel/p256.h"
#include "crypto/kernel/rsa.h"
#include "crypto/kernel/x25519.h"

#include <sallyport/queue.h>

#include <jansson.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

#define VECTORS_DEFAULT "../shared/vectors"
#define BYTES_MAX 4096

struct bytes {
    uint8_t data[BYTES_MAX];
    size_t len;
};

static struct sp_queue *lanes, *scalar;

static const char *folder(void)
{
    const char *given = getenv("SP_VECTORS");

    return given ? given : VECTORS_DEFAULT;
}

static unsigned digit(char c)
{
    return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a' + 10);
}

static struct bytes hex(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    struct bytes b = {.len = 0};

    assert_non_null(text);
    for (; text[0] && text[1]; text += 2) {
        assert_true(b.len < BYTES_MAX);
        b.data[b.len++] = (uint8_t)(digit(text[0]) << 4 | digit(text[1]));
    }
    return b;
}

/* A big-endian number in exactly `len` bytes. */
static void pad(struct bytes *b, size_t len)
{
    BIGNUM *n = BN_bin2bn(b->data, (int)b->len, NULL);

    assert_int_equal(BN_bn2binpad(n, b->data, (int)len), len);
    b->len = len;
    BN_free(n);
}

static bool is(const json_t *test, const char *result)
{
    return str_eq(str_of(json_string_value(json_object_get(test, "result"))), str_of(result));
}

static bool has_flag(const json_t *test, const char *flag)
{
    size_t i;
    json_t *item;

    json_array_foreach(json_object_get(test, "flags"), i, item) {
        if (str_eq(str_of(json_string_value(item)), str_of(flag)))
            return true;
    }
    return false;
}

/* The op's status, the same from both queues, as are the results. */
static int run(struct sp_op *op, uint8_t *out, size_t len)
{
    uint8_t other[BYTES_MAX];
    int status;

    op->out = out;
    sp_queue_run(lanes, op);
    status = op->status;
    op->out = other;
    sp_queue_run(scalar, op);
    assert_int_equal(op->status, status);
    if (status == 0)
        assert_memory_equal(out, other, len);
    return status;
}

static json_t *load(const char *name)
{
    char path[4096];
    json_error_t error;
    json_t *root;

    snprintf(path, sizeof(path), "%s/%s", folder(), name);
    root = json_load_file(path, 0, &error);
    if (!root)
        fail_msg("%s: %s", path, error.text);
    return root;
}

/* Calls `check` for each test of a file; it returns whether it applied. */
static void each_test(const char *name, bool (*check)(const json_t *group, const json_t *test))
{
    json_t *root = load(name), *group, *test;
    size_t g, t, ran = 0, all = 0;

    json_array_foreach(json_object_get(root, "testGroups"), g, group) {
        json_array_foreach(json_object_get(group, "tests"), t, test) {
            ran += check(group, test);
            all++;
        }
    }
    printf("# %s: %zu of %zu vectors\n", name, ran, all);
    assert_int_equal(all, json_integer_value(json_object_get(root, "numberOfTests")));
    assert_true(ran * 10 >= all * 6);
    json_decref(root);
}

/* --- curves ------------------------------------------------------------------------------ */

static bool x25519_vector(const json_t *group, const json_t *test)
{
    struct bytes public = hex(test, "public"), private = hex(test, "private"), shared = hex(test, "shared");
    uint8_t out[32];
    struct sp_op op = {.kind = SP_OP_X25519_DERIVE, .scalar = private.data, .in = public.data, .in_len = public.len};

    /* "acceptable" ones are low-order or non-canonical points; all-zero results are refused. */
    if (has_flag(test, "ZeroSharedSecret")) {
        assert_int_equal(run(&op, out, 32), SP_EINVAL);
        return true;
    }
    assert_int_equal(run(&op, out, 32), 0);
    assert_memory_equal(out, shared.data, 32);
    return true;
}

static bool p256_vector(const json_t *group, const json_t *test)
{
    struct bytes public = hex(test, "public"), private = hex(test, "private"), shared = hex(test, "shared");
    uint8_t out[32];
    struct sp_op op = {.kind = SP_OP_P256_DERIVE, .scalar = private.data, .in = public.data, .in_len = public.len};

    pad(&private, 32);
    if (is(test, "valid")) {
        assert_int_equal(run(&op, out, 32), 0);
        assert_memory_equal(out, shared.data, 32);
    } else {
        /* Points that are not on the curve, other encodings: compressed ones are not TLS's. */
        assert_int_equal(run(&op, out, 32), SP_EINVAL);
    }
    return true;
}

static void x25519(void **state)
{
    each_test("x25519_test.json", x25519_vector);
}

static void p256(void **state)
{
    each_test("ecdh_secp256r1_ecpoint_test.json", p256_vector);
}

/* --- RSA --------------------------------------------------------------------------------------- */

/* NULL: a key that the lanes do not take. */
static struct sp_rsa_key *key_of(const json_t *group, const char *pkcs8)
{
    static const char *const names[] = {
        OSSL_PKEY_PARAM_RSA_N,         OSSL_PKEY_PARAM_RSA_E,         OSSL_PKEY_PARAM_RSA_FACTOR1,
        OSSL_PKEY_PARAM_RSA_FACTOR2,   OSSL_PKEY_PARAM_RSA_EXPONENT1, OSSL_PKEY_PARAM_RSA_EXPONENT2,
        OSSL_PKEY_PARAM_RSA_COEFFICIENT1};
    static struct bytes values[7];
    struct bytes der = hex(group, pkcs8);
    const unsigned char *at = der.data;
    EVP_PKEY *key = d2i_AutoPrivateKey(NULL, &at, (long)der.len);
    struct sp_rsa_key *out = NULL;
    int status;

    assert_non_null(key);
    for (int i = 0; i < 7; i++) {
        BIGNUM *n = NULL;

        assert_int_equal(EVP_PKEY_get_bn_param(key, names[i], &n), 1);
        values[i].len = (size_t)BN_bn2bin(n, values[i].data);
        BN_free(n);
    }
    EVP_PKEY_free(key);
#define PART(i) {values[i].data, values[i].len}
    status = sp_rsa_key_new(&out, &(struct sp_rsa_parts){PART(0), PART(1), PART(2), PART(3), PART(4), PART(5), PART(6)});
    assert_true(status == 0 || status == SP_EUNSUPPORTED);
    return out;
}

static const char *hash_name(const char *vectors_name)
{
    static const char *const names[][2] = {{"SHA-1", "SHA1"},         {"SHA-224", "SHA224"},
                                           {"SHA-256", "SHA256"},     {"SHA-384", "SHA384"},
                                           {"SHA-512", "SHA512"},     {"SHA-512/224", "SHA512-224"},
                                           {"SHA-512/256", "SHA512-256"}};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (str_eq(str_of(vectors_name), str_of(names[i][0])))
            return names[i][1];
    }
    return vectors_name;
}

static bool signature_vector(const json_t *group, const json_t *test)
{
    struct bytes message = hex(test, "msg"), want = hex(test, "sig");
    const char *hash = hash_name(json_string_value(json_object_get(group, "sha")));
    struct sp_rsa_key *key = key_of(group, "privateKeyPkcs8");
    uint8_t digest[EVP_MAX_MD_SIZE], em[512], out[512];
    unsigned digest_len = 0;
    struct sp_bytes info;
    EVP_MD *md = EVP_MD_fetch(NULL, hash, NULL);
    struct sp_op op = {.kind = SP_OP_RSA_PRIVATE, .rsa = key, .in = em, .in_len = want.len};

    assert_non_null(md);
    if (!key) {
        EVP_MD_free(md);
        return false;
    }
    assert_int_equal(EVP_Digest(message.data, message.len, digest, &digest_len, md, NULL), 1);
    EVP_MD_free(md);
    assert_int_equal(sp_rsa_digest_info(hash, &info), 0);
    assert_int_equal(sp_rsa_encode_pkcs1(em, want.len, info, (struct sp_bytes){digest, digest_len}), 0);
    assert_int_equal(run(&op, out, want.len), 0);
    assert_memory_equal(out, want.data, want.len);
    sp_rsa_key_free(key);
    return true;
}

static bool decryption_vector(const json_t *group, const json_t *test)
{
    struct bytes cipher = hex(test, "ct"), want = hex(test, "msg");
    struct sp_rsa_key *key = key_of(group, "privateKeyPkcs8");
    uint8_t em[512], out[512];
    struct sp_op op = {.kind = SP_OP_RSA_PRIVATE, .rsa = key, .in = cipher.data, .in_len = cipher.len};
    ptrdiff_t len = SP_EINVAL;

    if (!key)
        return false;
    if (run(&op, em, sp_rsa_key_bytes(key)) == 0)
        len = sp_rsa_decode_pkcs1(em, sp_rsa_key_bytes(key), out, sizeof(out));
    if (is(test, "valid")) {
        assert_int_equal(len, want.len);
        assert_memory_equal(out, want.data, want.len);
    } else {
        assert_int_equal(len, SP_EINVAL);
    }
    sp_rsa_key_free(key);
    return true;
}

static void rsa_signatures(void **state)
{
    each_test("rsa_pkcs1_2048_sig_gen_test.json", signature_vector);
    each_test("rsa_pkcs1_3072_sig_gen_test.json", signature_vector);
    each_test("rsa_pkcs1_4096_sig_gen_test.json", signature_vector);
}

static void rsa_decryption(void **state)
{
    each_test("rsa_pkcs1_2048_test.json", decryption_vector);
    each_test("rsa_pkcs1_3072_test.json", decryption_vector);
    each_test("rsa_pkcs1_4096_test.json", decryption_vector);
}

static int set_up(void **state)
{
    struct multibuffer_kernels portable = {rsa_kernel_portable(), p256_kernel_portable(), x25519_kernel_portable()};
    struct sp_queue_options options;

    if (sp_backend_missing(SP_BACKEND_MULTIBUFFER)) {
        printf("# %s: the portable lanes run\n", sp_backend_missing(SP_BACKEND_MULTIBUFFER));
        multibuffer_use_kernels(&portable);
    }
    sp_queue_options_init(&options);
    options.policy[SP_BACKEND_MULTIBUFFER] = SP_POLICY_REQUIRE;
    if (sp_queue_new(&lanes, &options) != 0)
        return -1;
    options.policy[SP_BACKEND_MULTIBUFFER] = SP_POLICY_OFF;
    return sp_queue_new(&scalar, &options);
}

static int tear_down(void **state)
{
    sp_queue_free(lanes);
    sp_queue_free(scalar);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(x25519),
        cmocka_unit_test(p256),
        cmocka_unit_test(rsa_signatures),
        cmocka_unit_test(rsa_decryption),
    };
    struct stat st;

    if (stat(folder(), &st) != 0) {
        printf("skipped: the Wycheproof vectors are not at %s (SP_VECTORS names another folder)\n", folder());
        return 77; /* Meson's code for a skipped test */
    }
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
