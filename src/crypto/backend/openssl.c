#define OPENSSL_SUPPRESS_DEPRECATED /* EC_KEY and EC_POINT: a point multiplication without an EVP key around it */

#include "crypto/backend/openssl.h"

#include "crypto/scalar.h"

#include <openssl/bn.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/obj_mac.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <string.h>

int openssl_rsa_private(const struct sp_op *op)
{
    return sp_rsa_key_run_scalar(op->rsa, op->in, op->out);
}

int openssl_call(const struct sp_op *op)
{
    return op->call(op->arg);
}

/* --- P-256 ----------------------------------------------------------------------------- */

static EC_GROUP *p256;
static pthread_once_t p256_once = PTHREAD_ONCE_INIT;

static void p256_make(void)
{
    p256 = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1);
}

static const EC_GROUP *p256_group(void)
{
    pthread_once(&p256_once, p256_make);
    return p256;
}

/* The numbers of one operation; secret ones are wiped. */
struct numbers {
    BN_CTX *ctx;
    BIGNUM *scalar;
    EC_POINT *point, *result;
};

static bool numbers_init(struct numbers *n, const uint8_t scalar[32])
{
    const EC_GROUP *group = p256_group();

    *n = (struct numbers){0};
    if (!group)
        return false;
    n->ctx = BN_CTX_secure_new();
    n->scalar = BN_secure_new();
    n->point = EC_POINT_new(group);
    n->result = EC_POINT_new(group);
    if (!n->ctx || !n->scalar || !n->point || !n->result || !BN_bin2bn(scalar, 32, n->scalar))
        return false;
    BN_set_flags(n->scalar, BN_FLG_CONSTTIME);
    return true;
}

static int numbers_release(struct numbers *n, int status)
{
    EC_POINT_clear_free(n->result);
    EC_POINT_free(n->point);
    BN_clear_free(n->scalar);
    BN_CTX_free(n->ctx);
    ERR_clear_error();
    return status;
}

int openssl_p256_derive(const struct sp_op *op)
{
    uint8_t point[65];
    struct numbers n;
    int status = SP_ENOMEM;

    if (!numbers_init(&n, op->scalar))
        return numbers_release(&n, status);
    if (EC_POINT_oct2point(p256, n.point, op->in, op->in_len, n.ctx) != 1 || EC_POINT_is_at_infinity(p256, n.point))
        return numbers_release(&n, SP_EINVAL);
    if (EC_POINT_mul(p256, n.result, NULL, n.point, n.scalar, n.ctx) == 1 &&
        EC_POINT_point2oct(p256, n.result, POINT_CONVERSION_UNCOMPRESSED, point, sizeof(point), n.ctx) ==
            sizeof(point)) {
        memcpy(op->out, point + 1, 32);
        OPENSSL_cleanse(point, sizeof(point));
        status = 0;
    }
    return numbers_release(&n, status);
}

int openssl_p256_keygen(const struct sp_op *op)
{
    uint8_t scalar[32];
    struct numbers n;
    int status = SP_ENOMEM;

    if (scalar_random_p256(scalar) != 0)
        return SP_EIO;
    if (numbers_init(&n, scalar) && EC_POINT_mul(p256, n.result, n.scalar, NULL, NULL, n.ctx) == 1 &&
        EC_POINT_point2oct(p256, n.result, POINT_CONVERSION_UNCOMPRESSED, op->out + 32, 65, n.ctx) == 65) {
        memcpy(op->out, scalar, 32);
        status = 0;
    }
    OPENSSL_cleanse(scalar, sizeof(scalar));
    return numbers_release(&n, status);
}

int openssl_p256_sign(const struct sp_op *op)
{
    EC_KEY *key = EC_KEY_new();
    BIGNUM *d = BN_secure_new();
    ECDSA_SIG *signature = NULL;
    int status = SP_ENOMEM;

    if (key && d && p256_group() && EC_KEY_set_group(key, p256) == 1 && BN_bin2bn(op->scalar, 32, d) &&
        EC_KEY_set_private_key(key, d) == 1)
        signature = ECDSA_do_sign(op->in, (int)op->in_len, key);
    if (signature && BN_bn2binpad(ECDSA_SIG_get0_r(signature), op->out, 32) == 32 &&
        BN_bn2binpad(ECDSA_SIG_get0_s(signature), op->out + 32, 32) == 32)
        status = 0;
    ECDSA_SIG_free(signature);
    BN_clear_free(d);
    EC_KEY_free(key);
    ERR_clear_error();
    return status;
}

/* --- X25519 ---------------------------------------------------------------------------------- */

static EVP_PKEY *x25519_key(const uint8_t scalar[32])
{
    return EVP_PKEY_new_raw_private_key_ex(NULL, "X25519", "provider=default", scalar, 32);
}

int openssl_x25519_derive(const struct sp_op *op)
{
    EVP_PKEY *own = x25519_key(op->scalar);
    EVP_PKEY *peer = EVP_PKEY_new_raw_public_key_ex(NULL, "X25519", "provider=default", op->in, 32);
    EVP_PKEY_CTX *ctx = own && peer ? EVP_PKEY_CTX_new_from_pkey(NULL, own, "provider=default") : NULL;
    uint8_t secret[32];
    size_t len = sizeof(secret);
    int status = SP_ENOMEM;

    if (ctx && EVP_PKEY_derive_init(ctx) == 1 && EVP_PKEY_derive_set_peer_ex(ctx, peer, 0) == 1) {
        /* It refuses the all-zero result itself. */
        status = EVP_PKEY_derive(ctx, secret, &len) == 1 ? 0 : SP_EINVAL;
        if (status == 0)
            memcpy(op->out, secret, sizeof(secret));
        OPENSSL_cleanse(secret, sizeof(secret));
    }
    EVP_PKEY_CTX_free(ctx);
    EVP_PKEY_free(peer);
    EVP_PKEY_free(own);
    ERR_clear_error();
    return status;
}

int openssl_x25519_keygen(const struct sp_op *op)
{
    uint8_t scalar[32];
    EVP_PKEY *key;
    size_t len = 32;
    int status = SP_ENOMEM;

    if (RAND_priv_bytes(scalar, sizeof(scalar)) != 1)
        return SP_EIO;
    key = x25519_key(scalar);
    if (key && EVP_PKEY_get_raw_public_key(key, op->out + 32, &len) == 1) {
        memcpy(op->out, scalar, 32);
        status = 0;
    }
    OPENSSL_cleanse(scalar, sizeof(scalar));
    EVP_PKEY_free(key);
    ERR_clear_error();
    return status;
}
