/* Every operation of the provider's against the default provider. */
#include "support.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/rsa.h>

static struct t_worlds worlds;
static const uint8_t message[] = "What is signed is what is verified.";

struct rsa_way {
    const char *digest;
    int padding, salt_len;
};

static const struct rsa_way rsa_ways[] = {
    {"SHA256", RSA_PKCS1_PADDING, 0},
    {"SHA384", RSA_PKCS1_PADDING, 0},
    {"SHA1", RSA_PKCS1_PADDING, 0},
    {"MD5-SHA1", RSA_PKCS1_PADDING, 0},
    {"SHA3-256", RSA_PKCS1_PADDING, 0},
    {"SHA256", RSA_X931_PADDING, 0},
    {"SHA256", RSA_PKCS1_PSS_PADDING, RSA_PSS_SALTLEN_DIGEST},
    {"SHA384", RSA_PKCS1_PSS_PADDING, RSA_PSS_SALTLEN_MAX},
    {"SHA256", RSA_PKCS1_PSS_PADDING, RSA_PSS_SALTLEN_AUTO},
    {"SHA224", RSA_PKCS1_PSS_PADDING, 0},
    {"SHA256", RSA_PKCS1_PSS_PADDING, 17},
};
#define RSA_WAYS (sizeof(rsa_ways) / sizeof(rsa_ways[0]))

static int set_up_rsa(EVP_PKEY_CTX *ctx, const struct rsa_way *way, bool verifying)
{
    if (EVP_PKEY_CTX_set_rsa_padding(ctx, way->padding) <= 0)
        return 0;
    if (way->padding != RSA_PKCS1_PSS_PADDING)
        return 1;
    if (verifying && way->salt_len == RSA_PSS_SALTLEN_MAX)
        return EVP_PKEY_CTX_set_rsa_pss_saltlen(ctx, RSA_PSS_SALTLEN_AUTO);
    return EVP_PKEY_CTX_set_rsa_pss_saltlen(ctx, way->salt_len);
}

/* Signs in one world; way NULL: ECDSA with SHA-256. In pieces or in one call. */
static size_t sign(OSSL_LIB_CTX *libctx, EVP_PKEY *key, const struct rsa_way *way, bool pieces,
                   uint8_t *sig, size_t room)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    EVP_PKEY_CTX *pkey_ctx;
    size_t len = 0;

    assert_int_equal(EVP_DigestSignInit_ex(ctx, &pkey_ctx, way ? way->digest : "SHA256", libctx,
                                           NULL, key, NULL),
                     1);
    if (way)
        assert_true(set_up_rsa(pkey_ctx, way, false) > 0);
    if (pieces) {
        assert_int_equal(EVP_DigestSignUpdate(ctx, message, 5), 1);
        assert_int_equal(EVP_DigestSignUpdate(ctx, message + 5, sizeof(message) - 5), 1);
        assert_int_equal(EVP_DigestSignFinal(ctx, NULL, &len), 1);
        assert_true(len <= room);
        assert_int_equal(EVP_DigestSignFinal(ctx, sig, &len), 1);
    } else {
        assert_int_equal(EVP_DigestSign(ctx, NULL, &len, message, sizeof(message)), 1);
        assert_true(len <= room);
        assert_int_equal(EVP_DigestSign(ctx, sig, &len, message, sizeof(message)), 1);
    }
    EVP_MD_CTX_free(ctx);
    return len;
}

static bool verify(OSSL_LIB_CTX *libctx, EVP_PKEY *key, const struct rsa_way *way,
                   const uint8_t *sig, size_t len)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    EVP_PKEY_CTX *pkey_ctx;
    bool ok;

    assert_int_equal(EVP_DigestVerifyInit_ex(ctx, &pkey_ctx, way ? way->digest : "SHA256", libctx,
                                             NULL, key, NULL),
                     1);
    if (way)
        assert_true(set_up_rsa(pkey_ctx, way, true) > 0);
    ok = EVP_DigestVerify(ctx, sig, len, message, sizeof(message)) == 1;
    EVP_MD_CTX_free(ctx);
    ERR_clear_error();
    return ok;
}

static uint64_t done_by_queue(void)
{
    struct sp_queue_counters sum = {0};
    uint64_t n = 0;

    sp_queue_counters_add(sp_provider_queue(), &sum);
    for (int i = 0; i < SP_ALGORITHMS; i++)
        for (int j = 0; j < SP_BACKENDS; j++)
            n += sum.algorithms[i].done[j];
    return n;
}

/*
 * Ours signs and the default provider verifies; then the other way round; and a bit that flipped is
 * seen.
 */
static void cross_check(EVP_PKEY *plain, EVP_PKEY *ours, const struct rsa_way *way)
{
    EVP_PKEY *ours_public = t_public(plain, worlds.ours);
    uint64_t before = done_by_queue();
    uint8_t sig[1024];
    size_t len;

    for (int pieces = 0; pieces < 2; pieces++) {
        len = sign(worlds.ours, ours, way, pieces, sig, sizeof(sig));
        assert_true(verify(worlds.plain, plain, way, sig, len));
    }
    assert_int_equal(done_by_queue() - before, 2);
    len = sign(worlds.plain, plain, way, true, sig, sizeof(sig));
    assert_true(verify(worlds.ours, ours_public, way, sig, len));
    /* Every byte matters, among them those that leave no DER. */
    for (size_t i = 0; i<len; i += len> 150 ? 37 : 1) {
        sig[i] ^= 1;
        assert_false(verify(worlds.ours, ours_public, way, sig, len));
        sig[i] ^= 1;
    }
    assert_false(verify(worlds.ours, ours_public, way, sig, len - 1));
    assert_false(verify(worlds.ours, ours_public, way, sig, 0));
    EVP_PKEY_free(ours_public);
}

static void rsa_signatures(void **state)
{
    static const char *const kinds[] = {"RSA2048", "RSA3072", "RSA4096", "RSA1024"};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        EVP_PKEY *plain = t_key(worlds.plain, kinds[i]);
        EVP_PKEY *ours = t_private(plain, worlds.ours);

        if (i % 2)
            ours = t_adopt(ours, worlds.ours);
        for (size_t j = 0; j < RSA_WAYS; j++)
            cross_check(plain, ours, &rsa_ways[j]);
        EVP_PKEY_free(ours);
        EVP_PKEY_free(plain);
    }
}

/*
 * A key that the default provider holds goes to ours when a signature needs it; RSA-PSS keys stay
 * where they are.
 */
static void foreign_keys(void **state)
{
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(worlds.ours, "RSA", "provider=default");
    EVP_PKEY *key = NULL, *pss;
    uint8_t sig[512];
    size_t len;

    assert_int_equal(EVP_PKEY_keygen_init(ctx), 1);
    assert_int_equal(EVP_PKEY_generate(ctx, &key), 1);
    assert_false(t_is_ours(key));
    len = sign(worlds.ours, key, &rsa_ways[0], false, sig, sizeof(sig));
    assert_true(verify(worlds.ours, key, &rsa_ways[0], sig, len));
    EVP_PKEY_free(key);
    EVP_PKEY_CTX_free(ctx);

    pss = EVP_PKEY_Q_keygen(worlds.ours, NULL, "RSA-PSS");
    if (!pss) {
        ctx = EVP_PKEY_CTX_new_from_name(worlds.ours, "RSA-PSS", NULL);
        assert_int_equal(EVP_PKEY_keygen_init(ctx), 1);
        assert_int_equal(EVP_PKEY_generate(ctx, &pss), 1);
        EVP_PKEY_CTX_free(ctx);
    }
    assert_false(t_is_ours(pss));
    len = sign(worlds.ours, pss, &rsa_ways[6], false, sig, sizeof(sig));
    assert_true(verify(worlds.ours, pss, &rsa_ways[6], sig, len));
    EVP_PKEY_free(pss);
}

static void rsa_raw_signature_and_recovery(void **state)
{
    EVP_PKEY *key = t_key(worlds.ours, "RSA2048");
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_pkey(worlds.ours, key, NULL);
    uint8_t sig[256], back[256];
    size_t sig_len = sizeof(sig), len = sizeof(back);

    assert_true(t_is_ours(key));
    /* No digest named: the bytes themselves are padded. */
    assert_int_equal(EVP_PKEY_sign_init(ctx), 1);
    assert_int_equal(EVP_PKEY_sign(ctx, sig, &sig_len, message, sizeof(message)), 1);
    assert_int_equal(EVP_PKEY_verify_recover_init(ctx), 1);
    assert_int_equal(EVP_PKEY_verify_recover(ctx, back, &len, sig, sig_len), 1);
    assert_int_equal(len, sizeof(message));
    assert_memory_equal(back, message, len);
    /* Too long for the padding, too little room, a digest of another length. */
    memset(back, 1, sizeof(back));
    assert_int_equal(EVP_PKEY_sign_init(ctx), 1);
    assert_true(EVP_PKEY_sign(ctx, sig, &sig_len, back, 250) <= 0);
    sig_len = 100;
    assert_true(EVP_PKEY_sign(ctx, sig, &sig_len, back, 20) <= 0);
    sig_len = sizeof(sig);
    assert_int_equal(EVP_PKEY_CTX_set_signature_md(ctx, EVP_sha256()), 1);
    assert_true(EVP_PKEY_sign(ctx, sig, &sig_len, back, 20) <= 0);
    ERR_clear_error();
    EVP_PKEY_CTX_free(ctx);
    EVP_PKEY_free(key);
}

static void ecdsa_signatures(void **state)
{
    static const char *const curves[] = {"P-256", "P-384", "P-521", "secp256k1"};

    for (size_t i = 0; i < sizeof(curves) / sizeof(curves[0]); i++) {
        EVP_PKEY *plain = t_key(worlds.plain, curves[i]);
        EVP_PKEY *ours = t_private(plain, worlds.ours);

        if (i % 2)
            ours = t_adopt(ours, worlds.ours);
        /* Enough signatures to see short and negative-looking numbers. */
        for (int j = 0; j < (i == 0 ? 40 : 2); j++)
            cross_check(plain, ours, NULL);
        EVP_PKEY_free(ours);
        EVP_PKEY_free(plain);
    }
}

/*
 * --- key agreement -----------------------------------------------------------------------------
 */

/* The secret of two keys, as libssl asks for it. */
static size_t agree(OSSL_LIB_CTX *libctx, EVP_PKEY *own, EVP_PKEY *peer, uint8_t *out, size_t room)
{
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_pkey(libctx, own, NULL);
    size_t len = 0;

    assert_int_equal(EVP_PKEY_derive_init(ctx), 1);
    assert_int_equal(EVP_PKEY_derive_set_peer(ctx, peer), 1);
    assert_int_equal(EVP_PKEY_derive(ctx, NULL, &len), 1);
    assert_true(len <= room);
    assert_int_equal(EVP_PKEY_derive(ctx, out, &len), 1);
    EVP_PKEY_CTX_free(ctx);
    return len;
}

/* The peer's key from its encoding, by way of a copy of the parameters, as libssl makes it. */
static EVP_PKEY *peer_of(EVP_PKEY *own, EVP_PKEY *other)
{
    unsigned char *encoded = NULL;
    size_t len = EVP_PKEY_get1_encoded_public_key(other, &encoded);
    EVP_PKEY *peer = EVP_PKEY_new();

    assert_true(len > 0);
    assert_int_equal(EVP_PKEY_copy_parameters(peer, own), 1);
    assert_int_equal(EVP_PKEY_set1_encoded_public_key(peer, encoded, len), 1);
    OPENSSL_free(encoded);
    return peer;
}

static void agreements(void **state)
{
    static const char *const kinds[] = {"P-256", "X25519", "P-384", "P-521"};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        for (int round = 0; round < 20; round++) {
            EVP_PKEY *plain = t_key(worlds.plain, kinds[i]), *ours = t_key(worlds.ours, kinds[i]);
            EVP_PKEY *plain_peer = peer_of(plain, ours), *ours_peer = peer_of(ours, plain), *copy;
            uint8_t a[80], b[80];
            size_t len;

            assert_true(t_is_ours(ours) && t_is_ours(ours_peer));
            len = agree(worlds.plain, plain, plain_peer, a, sizeof(a));
            assert_int_equal(agree(worlds.ours, ours, ours_peer, b, sizeof(b)), len);
            assert_memory_equal(a, b, len);
            /* The same with keys that have been files. */
            copy = t_private(ours, worlds.plain);
            assert_int_equal(agree(worlds.plain, copy, plain, b, sizeof(b)), len);
            assert_memory_equal(a, b, len);
            EVP_PKEY_free(copy);
            copy = t_private(plain, worlds.ours);
            assert_int_equal(EVP_PKEY_eq(copy, ours_peer), 1);
            assert_int_equal(agree(worlds.ours, copy, ours, b, sizeof(b)), len);
            assert_memory_equal(a, b, len);
            EVP_PKEY_free(copy);
            EVP_PKEY_free(plain);
            EVP_PKEY_free(ours);
            EVP_PKEY_free(plain_peer);
            EVP_PKEY_free(ours_peer);
        }
    }
}

static void bad_peers(void **state)
{
    EVP_PKEY *own = t_key(worlds.ours, "P-256"), *peer = EVP_PKEY_new(),
             *x = t_key(worlds.ours, "X25519");
    EVP_PKEY *other = t_key(worlds.ours, "P-384"), *x_peer = EVP_PKEY_new();
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_pkey(worlds.ours, own, NULL);
    unsigned char *point = NULL;
    static const uint8_t zeros[65];
    uint8_t secret[32];
    size_t len = sizeof(secret);

    assert_int_equal(EVP_PKEY_get1_encoded_public_key(own, &point), 65);
    assert_int_equal(EVP_PKEY_copy_parameters(peer, own), 1);
    assert_int_equal(EVP_PKEY_set1_encoded_public_key(peer, point, 65), 1);
    point[40] ^= 1;
    assert_int_equal(EVP_PKEY_set1_encoded_public_key(peer, point, 65), 0);
    assert_int_equal(EVP_PKEY_set1_encoded_public_key(peer, point, 64), 0);
    /* The point at infinity has an encoding, and OpenSSL takes it; but not as a peer. */
    assert_int_equal(EVP_PKEY_set1_encoded_public_key(peer, zeros, 1), 1);
    assert_int_equal(EVP_PKEY_derive_init(ctx), 1);
    assert_true(EVP_PKEY_derive_set_peer(ctx, peer) <= 0);
    memset(point + 1, 0xff, 64);
    assert_int_equal(EVP_PKEY_set1_encoded_public_key(peer, point, 65), 0);
    OPENSSL_free(point);
    /* Another curve; a peer of low order. */
    assert_int_equal(EVP_PKEY_derive_init(ctx), 1);
    assert_true(EVP_PKEY_derive_set_peer(ctx, other) <= 0);
    EVP_PKEY_CTX_free(ctx);
    assert_int_equal(EVP_PKEY_copy_parameters(x_peer, x), 1);
    assert_int_equal(EVP_PKEY_set1_encoded_public_key(x_peer, zeros, 31), 0);
    assert_int_equal(EVP_PKEY_set1_encoded_public_key(x_peer, zeros, 32), 1);
    ctx = EVP_PKEY_CTX_new_from_pkey(worlds.ours, x, NULL);
    assert_int_equal(EVP_PKEY_derive_init(ctx), 1);
    assert_int_equal(EVP_PKEY_derive_set_peer(ctx, x_peer), 1);
    assert_true(EVP_PKEY_derive(ctx, secret, &len) <= 0);
    EVP_PKEY_CTX_free(ctx);
    ERR_clear_error();
    EVP_PKEY_free(own);
    EVP_PKEY_free(peer);
    EVP_PKEY_free(x);
    EVP_PKEY_free(x_peer);
    EVP_PKEY_free(other);
}

/* A key derivation function on top is the default provider's work. */
static void agreement_with_kdf(void **state)
{
    EVP_PKEY *a = t_key(worlds.ours, "P-256"), *b = t_key(worlds.ours, "P-256");
    EVP_PKEY *pair[2] = {a, b};
    uint8_t out[2][50];

    for (int i = 0; i < 2; i++) {
        OSSL_LIB_CTX *libctx = i ? worlds.plain : worlds.ours;
        EVP_PKEY *own = t_private(pair[i], libctx), *peer = t_public(pair[1 - i], libctx);
        EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_pkey(libctx, own, NULL);
        size_t len = sizeof(out[i]);

        assert_int_equal(EVP_PKEY_derive_init(ctx), 1);
        assert_int_equal(EVP_PKEY_CTX_set_ecdh_kdf_type(ctx, EVP_PKEY_ECDH_KDF_X9_63), 1);
        assert_int_equal(EVP_PKEY_CTX_set_ecdh_kdf_md(ctx, EVP_sha256()), 1);
        assert_int_equal(EVP_PKEY_CTX_set_ecdh_kdf_outlen(ctx, (int)sizeof(out[i])), 1);
        assert_int_equal(EVP_PKEY_derive_set_peer(ctx, peer), 1);
        assert_int_equal(EVP_PKEY_derive(ctx, out[i], &len), 1);
        assert_int_equal(len, sizeof(out[i]));
        EVP_PKEY_CTX_free(ctx);
        EVP_PKEY_free(own);
        EVP_PKEY_free(peer);
    }
    assert_memory_equal(out[0], out[1], sizeof(out[0]));
    EVP_PKEY_free(a);
    EVP_PKEY_free(b);
}

/*
 * --- keys ----------------------------------------------------------------------------------------
 */

static void keys(void **state)
{
    static const char *const kinds[] = {"P-256", "P-384", "X25519", "RSA2048", "RSA1024"};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        EVP_PKEY *key = t_key(worlds.ours, kinds[i]), *plain = t_private(key, worlds.plain);
        EVP_PKEY *back = t_adopt(t_private(plain, worlds.ours), worlds.ours);
        EVP_PKEY *public = t_public(key, worlds.ours);
        EVP_PKEY *copy = EVP_PKEY_dup(key), *other = t_key(worlds.ours, kinds[i]);
        EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_pkey(worlds.ours, copy, NULL);

        assert_true(t_is_ours(key) && t_is_ours(back) && t_is_ours(copy));
        assert_int_equal(EVP_PKEY_eq(key, back), 1);
        assert_int_equal(EVP_PKEY_eq(public, key), 1);
        assert_int_equal(EVP_PKEY_eq(key, public), 1);
        assert_int_equal(EVP_PKEY_eq(key, copy), 1);
        assert_int_equal(EVP_PKEY_eq(key, plain), 1);
        assert_int_equal(EVP_PKEY_eq(plain, key), 1);
        assert_int_equal(EVP_PKEY_eq(key, other), 0);
        assert_int_equal(EVP_PKEY_check(ctx), 1);
        assert_int_equal(EVP_PKEY_public_check(ctx), 1);
        assert_int_equal(EVP_PKEY_get_bits(key), EVP_PKEY_get_bits(plain));
        assert_int_equal(EVP_PKEY_get_security_bits(key), EVP_PKEY_get_security_bits(plain));
        assert_int_equal(EVP_PKEY_get_size(key), EVP_PKEY_get_size(plain));
        assert_int_equal(EVP_PKEY_get_base_id(key), EVP_PKEY_get_base_id(plain));
        EVP_PKEY_CTX_free(ctx);
        EVP_PKEY_free(key);
        EVP_PKEY_free(plain);
        EVP_PKEY_free(back);
        EVP_PKEY_free(public);
        EVP_PKEY_free(copy);
        EVP_PKEY_free(other);
    }
    ERR_clear_error();
}

/* Parameters of an EC key, with and without what makes an inner key necessary. */
static void ec_parameters(void **state)
{
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(worlds.ours, "EC", NULL);
    EVP_PKEY *key = NULL, *parameters = NULL;
    char text[64];
    size_t len;

    assert_int_equal(EVP_PKEY_keygen_init(ctx), 1);
    assert_true(EVP_PKEY_generate(ctx, &key) <= 0); /* no curve */
    assert_int_equal(EVP_PKEY_CTX_set_group_name(ctx, "P-256"), 1);
    assert_int_equal(EVP_PKEY_CTX_set_ec_param_enc(ctx, OPENSSL_EC_NAMED_CURVE), 1);
    assert_int_equal(EVP_PKEY_generate(ctx, &key), 1);
    assert_int_equal(EVP_PKEY_get_group_name(key, text, sizeof(text), &len), 1);
    assert_string_equal(text, "prime256v1");
    assert_int_equal(EVP_PKEY_set_utf8_string_param(key, OSSL_PKEY_PARAM_EC_POINT_CONVERSION_FORMAT,
                                                    "compressed"),
                     1);
    assert_int_equal(EVP_PKEY_get_octet_string_param(key, OSSL_PKEY_PARAM_PUB_KEY,
                                                     (unsigned char *)text, sizeof(text), &len),
                     1);
    assert_int_equal(len, 33);
    EVP_PKEY_free(key);
    EVP_PKEY_CTX_free(ctx);
    key = NULL;

    ctx = EVP_PKEY_CTX_new_from_name(worlds.ours, "EC", NULL);
    assert_int_equal(EVP_PKEY_paramgen_init(ctx), 1);
    assert_int_equal(EVP_PKEY_CTX_set_group_name(ctx, "secp384r1"), 1);
    assert_int_equal(EVP_PKEY_generate(ctx, &parameters), 1);
    EVP_PKEY_CTX_free(ctx);
    ctx = EVP_PKEY_CTX_new_from_pkey(worlds.ours, parameters, NULL);
    assert_int_equal(EVP_PKEY_keygen_init(ctx), 1);
    assert_int_equal(EVP_PKEY_generate(ctx, &key), 1);
    assert_int_equal(EVP_PKEY_get_bits(key), 384);
    EVP_PKEY_CTX_free(ctx);
    EVP_PKEY_free(key);
    EVP_PKEY_free(parameters);
    ERR_clear_error();
}

/* The module's own check of points, against one that has no shortcut. */
static void rejects_numbers_beyond(void **state)
{
    EVP_PKEY *key = t_key(worlds.ours, "P-256");
    EVP_PKEY *plain = t_private(key, worlds.plain);
    unsigned char *point = NULL;

    assert_int_equal(EVP_PKEY_get1_encoded_public_key(key, &point), 65);
    for (int i = 0; i < 65 * 8; i++) {
        EVP_PKEY *a = EVP_PKEY_new(), *b = EVP_PKEY_new();

        assert_int_equal(EVP_PKEY_copy_parameters(a, key), 1);
        assert_int_equal(EVP_PKEY_copy_parameters(b, plain), 1);
        point[i / 8] ^= (unsigned char)(1 << i % 8);
        assert_int_equal(EVP_PKEY_set1_encoded_public_key(a, point, 65),
                         EVP_PKEY_set1_encoded_public_key(b, point, 65));
        point[i / 8] ^= (unsigned char)(1 << i % 8);
        EVP_PKEY_free(a);
        EVP_PKEY_free(b);
    }
    ERR_clear_error();
    OPENSSL_free(point);
    EVP_PKEY_free(key);
    EVP_PKEY_free(plain);
}

/*
 * --- decryption
 * ------------------------------------------------------------------------------------
 */

static size_t encrypt(EVP_PKEY *key, int padding, const uint8_t *in, size_t in_len, uint8_t *out,
                      size_t room)
{
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_pkey(worlds.plain, key, NULL);

    assert_int_equal(EVP_PKEY_encrypt_init(ctx), 1);
    assert_true(EVP_PKEY_CTX_set_rsa_padding(ctx, padding) > 0);
    assert_int_equal(EVP_PKEY_encrypt(ctx, out, &room, in, in_len), 1);
    EVP_PKEY_CTX_free(ctx);
    return room;
}

static int decrypt(EVP_PKEY *key, int padding, const uint8_t *in, size_t in_len, uint8_t *out,
                   size_t *out_len)
{
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_pkey(worlds.ours, key, NULL);
    int ok;

    assert_int_equal(EVP_PKEY_decrypt_init(ctx), 1);
    assert_true(EVP_PKEY_CTX_set_rsa_padding(ctx, padding) > 0);
    ok = EVP_PKEY_decrypt(ctx, out, out_len, in, in_len);
    EVP_PKEY_CTX_free(ctx);
    ERR_clear_error();
    return ok;
}

static int decrypt_premaster(EVP_PKEY *key, unsigned client, unsigned negotiated, const uint8_t *in,
                             size_t in_len, uint8_t out[48])
{
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_pkey(worlds.ours, key, NULL);
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_uint(OSSL_ASYM_CIPHER_PARAM_TLS_CLIENT_VERSION, &client),
        OSSL_PARAM_construct_uint(OSSL_ASYM_CIPHER_PARAM_TLS_NEGOTIATED_VERSION, &negotiated),
        OSSL_PARAM_construct_end(),
    };
    size_t len = 48;
    int ok;

    assert_int_equal(EVP_PKEY_decrypt_init(ctx), 1);
    assert_true(EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_WITH_TLS_PADDING) > 0);
    assert_int_equal(EVP_PKEY_CTX_set_params(ctx, params), 1);
    ok = EVP_PKEY_decrypt(ctx, out, &len, in, in_len);
    if (ok > 0)
        assert_int_equal(len, 48);
    EVP_PKEY_CTX_free(ctx);
    ERR_clear_error();
    return ok;
}

static void premasters(EVP_PKEY *key, EVP_PKEY *plain)
{
    uint8_t premaster[48] = {3, 3, 1, 2, 3}, wire[512], out[48], again[48];
    size_t len = encrypt(plain, RSA_PKCS1_PADDING, premaster, 48, wire, sizeof(wire));

    assert_int_equal(decrypt_premaster(key, 0x303, 0, wire, len, out), 1);
    assert_memory_equal(out, premaster, 48);
    /* The wrong version, unless the negotiated one is accepted too. */
    assert_int_equal(decrypt_premaster(key, 0x304, 0x303, wire, len, out), 1);
    assert_memory_equal(out, premaster, 48);
    assert_int_equal(decrypt_premaster(key, 0x304, 0, wire, len, out), 1);
    assert_memory_not_equal(out, premaster, 48);
    /* The wrong length and the wrong padding: random numbers, new ones each time. */
    len = encrypt(plain, RSA_PKCS1_PADDING, premaster, 47, wire, sizeof(wire));
    assert_int_equal(decrypt_premaster(key, 0x303, 0, wire, len, out), 1);
    assert_int_equal(decrypt_premaster(key, 0x303, 0, wire, len, again), 1);
    assert_memory_not_equal(out, premaster, 48);
    assert_memory_not_equal(out, again, 48);
    wire[len / 2] ^= 1;
    assert_int_equal(decrypt_premaster(key, 0x303, 0, wire, len, out), 1);
    assert_memory_not_equal(out, premaster, 48);
}

static void decryption(void **state)
{
    static const char *const kinds[] = {"RSA2048", "RSA3072", "RSA1024"};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        EVP_PKEY *plain = t_key(worlds.plain, kinds[i]), *key = t_private(plain, worlds.ours);
        uint8_t wire[512], out[512];
        size_t len, out_len = sizeof(out);

        premasters(key, plain);
        len = encrypt(plain, RSA_PKCS1_PADDING, message, sizeof(message), wire, sizeof(wire));
        assert_int_equal(decrypt(key, RSA_PKCS1_PADDING, wire, len, out, &out_len), 1);
        assert_int_equal(out_len, sizeof(message));
        assert_memory_equal(out, message, sizeof(message));
        wire[3] ^= 1;
        out_len = sizeof(out);
        assert_true(decrypt(key, RSA_PKCS1_PADDING, wire, len, out, &out_len) <= 0);
        memset(wire, 0xff, len);
        assert_true(decrypt(key, RSA_PKCS1_PADDING, wire, len, out, &out_len) <= 0);
        len = encrypt(plain, RSA_PKCS1_OAEP_PADDING, message, sizeof(message), wire, sizeof(wire));
        out_len = sizeof(out);
        assert_int_equal(decrypt(key, RSA_PKCS1_OAEP_PADDING, wire, len, out, &out_len), 1);
        assert_int_equal(out_len, sizeof(message));
        assert_memory_equal(out, message, sizeof(message));
        EVP_PKEY_free(key);
        EVP_PKEY_free(plain);
    }
}

/* Certificates made by ours are good for the default provider, and the other way round. */
static void certificates(void **state)
{
    static const char *const kinds[] = {"RSA2048", "P-256", "P-384"};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        EVP_PKEY *key = t_key(worlds.ours, kinds[i]), *plain_key = t_key(worlds.plain, kinds[i]);
        X509 *x509 = t_issue(worlds.ours, key, "a", NULL, NULL),
             *other = t_certificate(x509, worlds.plain);
        X509 *plain = t_issue(worlds.plain, plain_key, "b", NULL, NULL),
             *ours = t_certificate(plain, worlds.ours);

        assert_int_equal(X509_verify(other, X509_get0_pubkey(other)), 1);
        assert_int_equal(X509_verify(ours, X509_get0_pubkey(ours)), 1);
        assert_int_equal(X509_check_private_key(x509, key), 1);
        X509_free(x509);
        X509_free(other);
        X509_free(plain);
        X509_free(ours);
        EVP_PKEY_free(key);
        EVP_PKEY_free(plain_key);
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
        cmocka_unit_test(rsa_signatures),
        cmocka_unit_test(foreign_keys),
        cmocka_unit_test(rsa_raw_signature_and_recovery),
        cmocka_unit_test(ecdsa_signatures),
        cmocka_unit_test(agreements),
        cmocka_unit_test(bad_peers),
        cmocka_unit_test(agreement_with_kdf),
        cmocka_unit_test(keys),
        cmocka_unit_test(ec_parameters),
        cmocka_unit_test(rejects_numbers_beyond),
        cmocka_unit_test(decryption),
        cmocka_unit_test(certificates),
    };

    return cmocka_run_group_tests_name("provider", tests, set_up, tear_down);
}
