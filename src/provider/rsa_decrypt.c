/*
 * RSA decryption with the paddings of PKCS #1 v1.5, of which one is the RSA key exchange of TLS;
 * OAEP and encryption by the default provider.
 */
#include "provider/internal.h"

#include <openssl/rand.h>
#include <openssl/rsa.h>

#define PREMASTER_BYTES 48

struct rsa_cipher {
    struct provider *provider;
    struct provider_rsa_key *key;
    /* Of the default provider: it keeps all parameters, and works when the queue does not. */
    EVP_PKEY_CTX *ctx;
    bool decrypting;
    int padding;
    unsigned client_version, alternative_version;
};

static void *cipher_new(void *provider)
{
    struct rsa_cipher *c = OPENSSL_zalloc(sizeof(*c));

    if (c)
        c->provider = provider;
    return c;
}

static void cipher_free(void *arg)
{
    struct rsa_cipher *c = arg;

    if (!c)
        return;
    provider_rsa_key_free(c->key);
    EVP_PKEY_CTX_free(c->ctx);
    OPENSSL_free(c);
}

static int cipher_set_params(void *arg, const OSSL_PARAM params[])
{
    struct rsa_cipher *c = arg;
    const OSSL_PARAM *p;

    if (!params || !params->key)
        return 1;
    if (!c->ctx || EVP_PKEY_CTX_set_params(c->ctx, params) <= 0)
        return 0;
    p = OSSL_PARAM_locate_const(params, OSSL_ASYM_CIPHER_PARAM_PAD_MODE);
    if (p && !provider_param_number(p, provider_rsa_paddings, &c->padding))
        return 0;
    p = OSSL_PARAM_locate_const(params, OSSL_ASYM_CIPHER_PARAM_TLS_CLIENT_VERSION);
    if (p && !OSSL_PARAM_get_uint(p, &c->client_version))
        return 0;
    p = OSSL_PARAM_locate_const(params, OSSL_ASYM_CIPHER_PARAM_TLS_NEGOTIATED_VERSION);
    return !p || OSSL_PARAM_get_uint(p, &c->alternative_version);
}

static int start(struct rsa_cipher *c, void *arg, const OSSL_PARAM params[], bool decrypting)
{
    struct provider_rsa_key *key = arg;

    if (!key || !key->inner) {
        provider_error(PROV_R_NO_KEY_SET);
        return 0;
    }
    provider_rsa_key_free(c->key);
    c->key = provider_rsa_key_ref(key);
    EVP_PKEY_CTX_free(c->ctx);
    c->ctx = EVP_PKEY_CTX_new_from_pkey(c->provider->inner, key->inner, NULL);
    c->decrypting = decrypting;
    c->padding = RSA_PKCS1_PADDING;
    c->client_version = c->alternative_version = 0;
    if (!c->ctx ||
        (decrypting ? EVP_PKEY_decrypt_init(c->ctx) : EVP_PKEY_encrypt_init(c->ctx)) <= 0)
        return 0;
    return cipher_set_params(c, params);
}

static int encrypt_init(void *arg, void *key, const OSSL_PARAM params[])
{
    return start(arg, key, params, false);
}

static int decrypt_init(void *arg, void *key, const OSSL_PARAM params[])
{
    return start(arg, key, params, true);
}

static int encrypt(void *arg, unsigned char *out, size_t *out_len, size_t room,
                   const unsigned char *in, size_t in_len)
{
    struct rsa_cipher *c = arg;

    if (!c->ctx || c->decrypting)
        return 0;
    *out_len = room;
    return EVP_PKEY_encrypt(c->ctx, out, out_len, in, in_len) > 0;
}

static int decrypt_inner(struct rsa_cipher *c, uint8_t *out, size_t *out_len, size_t room,
                         const uint8_t *in, size_t in_len)
{
    *out_len = room;
    if (!out)
        return EVP_PKEY_decrypt(c->ctx, NULL, out_len, in, in_len) > 0;
    return provider_inner_run(PROVIDER_INNER_DECRYPT, c->ctx, in, in_len, out, out_len);
}

/* Takes the padding off em, which is secret. Nothing of why it fails shows in the case of TLS. */
static int unpad(const struct rsa_cipher *c, const uint8_t *em, size_t bytes, uint8_t *out,
                 size_t *out_len, size_t room)
{
    uint8_t random48[PREMASTER_BYTES];
    ptrdiff_t n;

    if (c->padding == RSA_PKCS1_PADDING) {
        n = sp_rsa_decode_pkcs1(em, bytes, out, room);
        if (n < 0) {
            provider_error(PROV_R_FAILED_TO_DECRYPT);
            return 0;
        }
        *out_len = (size_t)n;
        return 1;
    }
    if (RAND_priv_bytes_ex(c->provider->inner, random48, sizeof(random48), 0) <= 0)
        return 0;
    sp_rsa_decode_tls(em, bytes, c->client_version, c->alternative_version, random48, out);
    OPENSSL_cleanse(random48, sizeof(random48));
    *out_len = PREMASTER_BYTES;
    return 1;
}

static int decrypt(void *arg, unsigned char *out, size_t *out_len, size_t room,
                   const unsigned char *in, size_t in_len)
{
    struct rsa_cipher *c = arg;
    bool tls = c->padding == RSA_PKCS1_WITH_TLS_PADDING;
    uint8_t em[PROVIDER_RSA_MAX_BYTES];
    struct sp_op op = {.kind = SP_OP_RSA_PRIVATE, .in = em, .out = em};
    size_t bytes;
    int ok;

    if (!c->ctx || !c->decrypting)
        return 0;
    if (!c->key->fast || (!tls && c->padding != RSA_PKCS1_PADDING))
        return decrypt_inner(c, out, out_len, room, in, in_len);
    bytes = sp_rsa_key_bytes(c->key->fast);
    if (!out) {
        *out_len = tls ? PREMASTER_BYTES : bytes;
        return 1;
    }
    if (room < (tls ? PREMASTER_BYTES : bytes)) {
        provider_error(PROV_R_BAD_LENGTH);
        return 0;
    }
    if (in_len > bytes || (tls && c->client_version == 0)) {
        provider_error(tls && c->client_version == 0 ? PROV_R_BAD_TLS_CLIENT_VERSION
                                                     : PROV_R_BAD_LENGTH);
        return 0;
    }
    /* A copy: in belongs to the connection's buffers, which do not wait for the job. */
    memset(em, 0, bytes - in_len);
    memcpy(em + bytes - in_len, in, in_len);
    op.rsa = c->key->fast;
    op.in_len = bytes;
    /* That a ciphertext is not less than the modulus is no secret. */
    ok =
        provider_run(&op) == 0 ? unpad(c, em, bytes, out, out_len, room) : provider_fail(op.status);
    OPENSSL_cleanse(em, sizeof(em));
    return ok;
}

static void *cipher_dup(void *arg)
{
    const struct rsa_cipher *from = arg;
    struct rsa_cipher *to = cipher_new(from->provider);

    if (!to)
        return NULL;
    *to = *from;
    if (to->key)
        provider_rsa_key_ref(to->key);
    to->ctx = from->ctx ? EVP_PKEY_CTX_dup(from->ctx) : NULL;
    if (to->ctx || !from->ctx)
        return to;
    cipher_free(to);
    return NULL;
}

static int cipher_get_params(void *arg, OSSL_PARAM params[])
{
    struct rsa_cipher *c = arg;

    return c->ctx && EVP_PKEY_CTX_get_params(c->ctx, params) > 0;
}

static const OSSL_PARAM *cipher_gettable(void *ctx, void *provider)
{
    static const OSSL_PARAM list[] = {
        OSSL_PARAM_utf8_string(OSSL_ASYM_CIPHER_PARAM_OAEP_DIGEST, NULL, 0),
        OSSL_PARAM_utf8_string(OSSL_ASYM_CIPHER_PARAM_PAD_MODE, NULL, 0),
        OSSL_PARAM_utf8_string(OSSL_ASYM_CIPHER_PARAM_MGF1_DIGEST, NULL, 0),
        OSSL_PARAM_DEFN(OSSL_ASYM_CIPHER_PARAM_OAEP_LABEL, OSSL_PARAM_OCTET_PTR, NULL, 0),
        OSSL_PARAM_uint(OSSL_ASYM_CIPHER_PARAM_TLS_CLIENT_VERSION, NULL),
        OSSL_PARAM_uint(OSSL_ASYM_CIPHER_PARAM_TLS_NEGOTIATED_VERSION, NULL),
        OSSL_PARAM_END,
    };

    return list;
}

static const OSSL_PARAM *cipher_settable(void *ctx, void *provider)
{
    static const OSSL_PARAM list[] = {
        OSSL_PARAM_utf8_string(OSSL_ASYM_CIPHER_PARAM_OAEP_DIGEST, NULL, 0),
        OSSL_PARAM_utf8_string(OSSL_ASYM_CIPHER_PARAM_OAEP_DIGEST_PROPS, NULL, 0),
        OSSL_PARAM_utf8_string(OSSL_ASYM_CIPHER_PARAM_PAD_MODE, NULL, 0),
        OSSL_PARAM_utf8_string(OSSL_ASYM_CIPHER_PARAM_MGF1_DIGEST, NULL, 0),
        OSSL_PARAM_utf8_string(OSSL_ASYM_CIPHER_PARAM_MGF1_DIGEST_PROPS, NULL, 0),
        OSSL_PARAM_octet_string(OSSL_ASYM_CIPHER_PARAM_OAEP_LABEL, NULL, 0),
        OSSL_PARAM_uint(OSSL_ASYM_CIPHER_PARAM_TLS_CLIENT_VERSION, NULL),
        OSSL_PARAM_uint(OSSL_ASYM_CIPHER_PARAM_TLS_NEGOTIATED_VERSION, NULL),
        OSSL_PARAM_END,
    };

    return list;
}

const OSSL_DISPATCH provider_rsa_cipher[] = {
    {OSSL_FUNC_ASYM_CIPHER_NEWCTX, (void (*)(void))cipher_new},
    {OSSL_FUNC_ASYM_CIPHER_FREECTX, (void (*)(void))cipher_free},
    {OSSL_FUNC_ASYM_CIPHER_DUPCTX, (void (*)(void))cipher_dup},
    {OSSL_FUNC_ASYM_CIPHER_ENCRYPT_INIT, (void (*)(void))encrypt_init},
    {OSSL_FUNC_ASYM_CIPHER_ENCRYPT, (void (*)(void))encrypt},
    {OSSL_FUNC_ASYM_CIPHER_DECRYPT_INIT, (void (*)(void))decrypt_init},
    {OSSL_FUNC_ASYM_CIPHER_DECRYPT, (void (*)(void))decrypt},
    {OSSL_FUNC_ASYM_CIPHER_GET_CTX_PARAMS, (void (*)(void))cipher_get_params},
    {OSSL_FUNC_ASYM_CIPHER_GETTABLE_CTX_PARAMS, (void (*)(void))cipher_gettable},
    {OSSL_FUNC_ASYM_CIPHER_SET_CTX_PARAMS, (void (*)(void))cipher_set_params},
    {OSSL_FUNC_ASYM_CIPHER_SETTABLE_CTX_PARAMS, (void (*)(void))cipher_settable},
    {0, NULL},
};
