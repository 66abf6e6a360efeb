#include "measure/asym_case.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ecdsa.h>
#include <openssl/rsa.h>
#include <string.h>

#define PLAIN "provider=default"

static unsigned rsa_bits(enum sp_algorithm algorithm)
{
    switch (algorithm) {
    case SP_ALGORITHM_RSA2048:
        return 2048;
    case SP_ALGORITHM_RSA3072:
        return 3072;
    case SP_ALGORITHM_RSA4096:
        return 4096;
    default:
        return 0;
    }
}

/* --- RSA ----------------------------------------------------------------------------------- */

enum { N, E, P, Q, DP, DQ, QINV, PARTS };

static int rsa_parts(EVP_PKEY *key, struct sp_rsa_key **out)
{
    static const char *const names[PARTS] = {
        OSSL_PKEY_PARAM_RSA_N,         OSSL_PKEY_PARAM_RSA_E,         OSSL_PKEY_PARAM_RSA_FACTOR1,
        OSSL_PKEY_PARAM_RSA_FACTOR2,   OSSL_PKEY_PARAM_RSA_EXPONENT1, OSSL_PKEY_PARAM_RSA_EXPONENT2,
        OSSL_PKEY_PARAM_RSA_COEFFICIENT1};
    uint8_t bytes[PARTS][ASYM_BYTES_MAX];
    struct sp_bytes parts[PARTS];
    int status = 0;

    for (int i = 0; i < PARTS && status == 0; i++) {
        BIGNUM *number = NULL;

        if (EVP_PKEY_get_bn_param(key, names[i], &number) != 1)
            status = SP_EIO;
        else
            parts[i] = (struct sp_bytes){bytes[i], (size_t)BN_bn2bin(number, bytes[i])};
        BN_clear_free(number);
    }
    if (status == 0)
        status = sp_rsa_key_new(out, &(struct sp_rsa_parts){parts[N], parts[E], parts[P], parts[Q], parts[DP],
                                                            parts[DQ], parts[QINV]});
    OPENSSL_cleanse(bytes, sizeof(bytes));
    return status;
}

static int rsa_init(struct asym_case *c, unsigned bits)
{
    struct sp_bytes info, digest = {c->digest, sizeof(c->digest)};
    int status;

    c->kind = SP_OP_RSA_PRIVATE;
    c->key = EVP_PKEY_Q_keygen(NULL, PLAIN, "RSA", (size_t)bits);
    if (!c->key)
        return SP_EIO;
    status = rsa_parts(c->key, &c->rsa);
    if (status != 0)
        return status;
    c->in_len = c->want_len = bits / 8;
    status = sp_rsa_digest_info("SHA256", &info);
    if (status == 0)
        status = sp_rsa_encode_pkcs1(c->in, c->in_len, info, digest);
    if (status != 0)
        return status;
    c->ctx = EVP_PKEY_CTX_new_from_pkey(NULL, c->key, PLAIN);
    if (!c->ctx || EVP_PKEY_sign_init(c->ctx) != 1 || EVP_PKEY_CTX_set_rsa_padding(c->ctx, RSA_PKCS1_PADDING) != 1 ||
        EVP_PKEY_CTX_set_signature_md(c->ctx, EVP_sha256()) != 1)
        return SP_EIO;
    return EVP_PKEY_sign(c->ctx, c->want, &c->want_len, c->digest, sizeof(c->digest)) == 1 ? 0 : SP_EIO;
}

/* --- curves ---------------------------------------------------------------------------------- */

static EVP_PKEY *new_key(const struct asym_case *c)
{
    if (c->kind == SP_OP_X25519_DERIVE || c->kind == SP_OP_X25519_KEYGEN)
        return EVP_PKEY_Q_keygen(NULL, PLAIN, "X25519");
    return EVP_PKEY_Q_keygen(NULL, PLAIN, "EC", "P-256");
}

/* The private scalar, as the queue wants it. */
static int get_scalar(struct asym_case *c)
{
    size_t len = sizeof(c->scalar);
    BIGNUM *d = NULL;
    bool ok;

    if (c->kind == SP_OP_X25519_DERIVE || c->kind == SP_OP_X25519_KEYGEN)
        return EVP_PKEY_get_raw_private_key(c->key, c->scalar, &len) == 1 ? 0 : SP_EIO;
    ok = EVP_PKEY_get_bn_param(c->key, OSSL_PKEY_PARAM_PRIV_KEY, &d) == 1 && BN_bn2binpad(d, c->scalar, 32) == 32;
    BN_clear_free(d);
    return ok ? 0 : SP_EIO;
}

static int keygen_init(struct asym_case *c)
{
    bool x25519 = c->kind == SP_OP_X25519_KEYGEN;

    c->ctx = EVP_PKEY_CTX_new_from_name(NULL, x25519 ? "X25519" : "EC", PLAIN);
    if (!c->ctx || EVP_PKEY_keygen_init(c->ctx) != 1)
        return SP_EIO;
    return x25519 || EVP_PKEY_CTX_set_group_name(c->ctx, "P-256") == 1 ? 0 : SP_EIO;
}

static int derive_init(struct asym_case *c)
{
    unsigned char *point = NULL;
    size_t len;

    c->peer = new_key(c);
    len = c->peer ? EVP_PKEY_get1_encoded_public_key(c->peer, &point) : 0;
    if (len == 0 || len > sizeof(c->in)) {
        OPENSSL_free(point);
        return SP_EIO;
    }
    memcpy(c->in, point, len);
    OPENSSL_free(point);
    c->in_len = len;
    c->ctx = EVP_PKEY_CTX_new_from_pkey(NULL, c->key, PLAIN);
    c->want_len = 32;
    if (!c->ctx || EVP_PKEY_derive_init(c->ctx) != 1 || EVP_PKEY_derive_set_peer(c->ctx, c->peer) != 1)
        return SP_EIO;
    return EVP_PKEY_derive(c->ctx, c->want, &c->want_len) == 1 ? 0 : SP_EIO;
}

static int sign_init(struct asym_case *c)
{
    memcpy(c->in, c->digest, sizeof(c->digest));
    c->in_len = sizeof(c->digest);
    c->ctx = EVP_PKEY_CTX_new_from_pkey(NULL, c->key, PLAIN);
    return c->ctx && EVP_PKEY_sign_init(c->ctx) == 1 ? 0 : SP_EIO;
}

static int curve_init(struct asym_case *c)
{
    static const enum sp_op_kind kinds[SP_ALGORITHMS] = {
        [SP_ALGORITHM_P256_SIGN] = SP_OP_P256_SIGN,
        [SP_ALGORITHM_P256_KEYGEN] = SP_OP_P256_KEYGEN,
        [SP_ALGORITHM_P256_DERIVE] = SP_OP_P256_DERIVE,
        [SP_ALGORITHM_X25519_KEYGEN] = SP_OP_X25519_KEYGEN,
        [SP_ALGORITHM_X25519_DERIVE] = SP_OP_X25519_DERIVE,
    };

    c->kind = kinds[c->algorithm];
    c->key = new_key(c);
    if (!c->key || get_scalar(c) != 0)
        return SP_EIO;
    switch (c->kind) {
    case SP_OP_P256_SIGN:
        return sign_init(c);
    case SP_OP_P256_DERIVE:
    case SP_OP_X25519_DERIVE:
        return derive_init(c);
    default:
        return keygen_init(c);
    }
}

int asym_case_init(struct asym_case *c, enum sp_algorithm algorithm)
{
    memset(c, 0, sizeof(*c));
    c->algorithm = algorithm;
    memset(c->digest, 0x42, sizeof(c->digest));
    return rsa_bits(algorithm) ? rsa_init(c, rsa_bits(algorithm)) : curve_init(c);
}

void asym_case_release(struct asym_case *c)
{
    EVP_PKEY_CTX_free(c->ctx);
    EVP_PKEY_free(c->peer);
    EVP_PKEY_free(c->key);
    sp_rsa_key_free(c->rsa);
    OPENSSL_cleanse(c, sizeof(*c));
}

int asym_case_reference(struct asym_case *c)
{
    uint8_t out[ASYM_BYTES_MAX];
    size_t len = sizeof(out);
    EVP_PKEY *made = NULL;

    switch (c->kind) {
    case SP_OP_RSA_PRIVATE:
    case SP_OP_P256_SIGN:
        return EVP_PKEY_sign(c->ctx, out, &len, c->digest, sizeof(c->digest)) == 1 ? 0 : SP_EIO;
    case SP_OP_P256_DERIVE:
    case SP_OP_X25519_DERIVE:
        return EVP_PKEY_derive(c->ctx, out, &len) == 1 ? 0 : SP_EIO;
    default:
        if (EVP_PKEY_keygen(c->ctx, &made) != 1)
            return SP_EIO;
        EVP_PKEY_free(made);
        return 0;
    }
}

void asym_case_op(const struct asym_case *c, struct sp_op *op, uint8_t *out)
{
    *op = (struct sp_op){.kind = c->kind,
                         .rsa = c->rsa,
                         .scalar = c->scalar,
                         .in = c->in,
                         .in_len = c->in_len,
                         .out = out};
}

/* --- checks ------------------------------------------------------------------------------------ */

static int check_signature(const struct asym_case *c, const uint8_t *out)
{
    ECDSA_SIG *signature = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(out, 32, NULL), *s = BN_bin2bn(out + 32, 32, NULL);
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_pkey(NULL, c->key, PLAIN);
    unsigned char *der = NULL;
    int len, status = SP_EFAULT;

    if (signature && r && s && ECDSA_SIG_set0(signature, r, s) == 1) {
        r = s = NULL;
        len = i2d_ECDSA_SIG(signature, &der);
        if (len > 0 && ctx && EVP_PKEY_verify_init(ctx) == 1 &&
            EVP_PKEY_verify(ctx, der, (size_t)len, c->digest, sizeof(c->digest)) == 1)
            status = 0;
    }
    OPENSSL_free(der);
    EVP_PKEY_CTX_free(ctx);
    BN_free(r);
    BN_free(s);
    ECDSA_SIG_free(signature);
    return status;
}

/* The public half that OpenSSL computes from the private one. */
static int check_pair(const struct asym_case *c, const uint8_t *out)
{
    OSSL_PARAM params[4];
    uint8_t native[32];
    EVP_PKEY_CTX *ctx;
    EVP_PKEY *key = NULL;
    int status = SP_EFAULT;

    if (c->kind == SP_OP_X25519_KEYGEN) {
        size_t len = sizeof(native);

        key = EVP_PKEY_new_raw_private_key_ex(NULL, "X25519", PLAIN, out, 32);
        if (key && EVP_PKEY_get_raw_public_key(key, native, &len) == 1 && memcmp(native, out + 32, 32) == 0)
            status = 0;
        EVP_PKEY_free(key);
        return status;
    }
    for (int i = 0; i < 32; i++)
        native[i] = out[31 - i]; /* parameters are in the machine's order */
    params[0] = OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, (char *)"P-256", 0);
    params[1] = OSSL_PARAM_construct_BN(OSSL_PKEY_PARAM_PRIV_KEY, native, sizeof(native));
    params[2] = OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, (void *)(out + 32), 65);
    params[3] = OSSL_PARAM_construct_end();
    ctx = EVP_PKEY_CTX_new_from_name(NULL, "EC", PLAIN);
    if (ctx && EVP_PKEY_fromdata_init(ctx) == 1 && EVP_PKEY_fromdata(ctx, &key, EVP_PKEY_KEYPAIR, params) == 1) {
        EVP_PKEY_CTX *check = EVP_PKEY_CTX_new_from_pkey(NULL, key, PLAIN);

        if (check && EVP_PKEY_pairwise_check(check) == 1)
            status = 0;
        EVP_PKEY_CTX_free(check);
    }
    EVP_PKEY_free(key);
    EVP_PKEY_CTX_free(ctx);
    OPENSSL_cleanse(native, sizeof(native));
    return status;
}

int asym_case_check(const struct asym_case *c, const uint8_t *out)
{
    if (c->want_len)
        return memcmp(out, c->want, c->want_len) == 0 ? 0 : SP_EFAULT;
    return c->kind == SP_OP_P256_SIGN ? check_signature(c, out) : check_pair(c, out);
}

int asym_case_rsa_key(const struct asym_case *c, struct sp_rsa_key **out)
{
    return rsa_parts(c->key, out);
}
