/*
 * ECDSA. P-256 signatures are answered by the queue at once; those on other curves run as calls, so
 * that crypto threads can take them; verification is the default provider's.
 */
#include "provider/internal.h"

struct ecdsa {
    struct provider *provider;
    struct provider_ec_key *key;
    struct provider_hash hash;
    bool fixed; /* the digest was given with the message's start and stays */
};

static void *ecdsa_new(void *provider, const char *properties)
{
    struct ecdsa *e = OPENSSL_zalloc(sizeof(*e));

    if (e)
        e->provider = provider;
    return e;
}

static void ecdsa_free(void *arg)
{
    struct ecdsa *e = arg;

    if (!e)
        return;
    provider_ec_key_free(e->key);
    provider_hash_release(&e->hash);
    OPENSSL_free(e);
}

static int set_digest(struct ecdsa *e, const char *name)
{
    EVP_MD *digest = provider_digest(e->provider, name);

    if (!digest)
        return 0;
    if (e->fixed && digest != e->hash.digest) {
        EVP_MD_free(digest);
        provider_error(PROV_R_DIGEST_NOT_ALLOWED);
        return 0;
    }
    EVP_MD_free(e->hash.digest);
    e->hash.digest = digest;
    return 1;
}

static int ecdsa_set_params(void *arg, const OSSL_PARAM params[])
{
    struct ecdsa *e = arg;
    const OSSL_PARAM *p;
    const char *name;
    size_t size;

    if (!params)
        return 1;
    p = OSSL_PARAM_locate_const(params, OSSL_SIGNATURE_PARAM_DIGEST);
    if (p) {
        name = provider_param_text(p);
        if (!name || !set_digest(e, name))
            return 0;
    }
    p = OSSL_PARAM_locate_const(params, OSSL_SIGNATURE_PARAM_DIGEST_SIZE);
    if (p && (!OSSL_PARAM_get_size_t(p, &size) ||
              (e->hash.digest && size != (size_t)EVP_MD_get_size(e->hash.digest)))) {
        provider_error(PROV_R_INVALID_DIGEST_LENGTH);
        return 0;
    }
    return 1;
}

static int start(struct ecdsa *e, void *key, const OSSL_PARAM params[])
{
    if (key) {
        provider_ec_key_free(e->key);
        e->key = provider_ec_key_ref(key);
    }
    if (!e->key) {
        provider_error(PROV_R_NO_KEY_SET);
        return 0;
    }
    return ecdsa_set_params(e, params);
}

static int ecdsa_init(void *arg, void *key, const OSSL_PARAM params[])
{
    struct ecdsa *e = arg;

    e->fixed = false;
    return start(e, key, params);
}

static int ecdsa_hash_init(void *arg, const char *name, void *key, const OSSL_PARAM params[])
{
    struct ecdsa *e = arg;

    e->fixed = false;
    if (!start(e, key, params))
        return 0;
    if (name && *name && !set_digest(e, name))
        return 0;
    if (!e->hash.digest && !set_digest(e, "SHA256"))
        return 0;
    e->fixed = true;
    return provider_hash_begin(&e->hash);
}

/*
 * --- signing
 * ----------------------------------------------------------------------------------------
 */

/* A context of the default provider for one operation on a digest. */
static EVP_PKEY_CTX *inner_ctx(const struct ecdsa *e, int (*init)(EVP_PKEY_CTX *ctx))
{
    EVP_PKEY *inner = provider_ec_key_inner(e->key);
    EVP_PKEY_CTX *ctx = inner ? EVP_PKEY_CTX_new_from_pkey(e->provider->inner, inner, NULL) : NULL;

    if (ctx && init(ctx) > 0 &&
        (!e->hash.digest || EVP_PKEY_CTX_set_signature_md(ctx, e->hash.digest) > 0))
        return ctx;
    EVP_PKEY_CTX_free(ctx);
    return NULL;
}

static int sign_inner(struct ecdsa *e, uint8_t *sig, size_t *sig_len, size_t room,
                      const uint8_t *digest, size_t digest_len)
{
    EVP_PKEY_CTX *ctx = inner_ctx(e, EVP_PKEY_sign_init);
    int ok;

    if (!ctx)
        return 0;
    *sig_len = room;
    if (sig)
        ok = provider_inner_run(PROVIDER_INNER_SIGN, ctx, digest, digest_len, sig, sig_len);
    else
        ok = EVP_PKEY_sign(ctx, NULL, sig_len, digest, digest_len) > 0;
    EVP_PKEY_CTX_free(ctx);
    return ok;
}

static int sign_p256(struct ecdsa *e, uint8_t *sig, size_t *sig_len, const uint8_t *digest,
                     size_t digest_len)
{
    uint8_t rs[64];
    struct sp_op op = {
        .kind = SP_OP_P256_SIGN,
        .scalar = e->key->material,
        .in = digest,
        .in_len = digest_len < 64 ? digest_len : 64,
        .out = rs,
    };

    if (provider_run_now(&op) != 0)
        return provider_fail(op.status);
    *sig_len = provider_p256_signature_der(rs, sig);
    return 1;
}

static int ecdsa_sign(void *arg, unsigned char *sig, size_t *sig_len, size_t room,
                      const unsigned char *digest, size_t digest_len)
{
    struct ecdsa *e = arg;
    bool p256 = e->key && e->key->p256;

    if (!e->key || !e->key->has_private) {
        provider_error(PROV_R_NOT_A_PRIVATE_KEY);
        return 0;
    }
    if (!sig && p256) {
        *sig_len = ECDSA_P256_MAX_BYTES;
        return 1;
    }
    if (sig && e->hash.digest && digest_len != (size_t)EVP_MD_get_size(e->hash.digest)) {
        provider_error(PROV_R_INVALID_DIGEST_LENGTH);
        return 0;
    }
    if (!p256 || digest_len == 0)
        return sign_inner(e, sig, sig_len, room, digest, digest_len);
    if (room < ECDSA_P256_MAX_BYTES) {
        provider_error(PROV_R_OUTPUT_BUFFER_TOO_SMALL);
        return 0;
    }
    return sign_p256(e, sig, sig_len, digest, digest_len);
}

static int ecdsa_hash_update(void *arg, const unsigned char *data, size_t len)
{
    struct ecdsa *e = arg;

    return provider_hash_update(&e->hash, data, len);
}

static int ecdsa_hash_sign_final(void *arg, unsigned char *sig, size_t *sig_len, size_t room)
{
    struct ecdsa *e = arg;
    uint8_t digest[EVP_MAX_MD_SIZE];
    size_t len = 0;

    if (sig && !provider_hash_final(&e->hash, digest, &len))
        return 0;
    return ecdsa_sign(e, sig, sig_len, room, digest, len);
}

static int ecdsa_hash_sign(void *arg, unsigned char *sig, size_t *sig_len, size_t room,
                           const unsigned char *data, size_t len)
{
    if (sig && !ecdsa_hash_update(arg, data, len))
        return 0;
    return ecdsa_hash_sign_final(arg, sig, sig_len, room);
}

/*
 * --- verifying
 * ---------------------------------------------------------------------------------------
 */

static int ecdsa_verify(void *arg, const unsigned char *sig, size_t sig_len,
                        const unsigned char *digest, size_t digest_len)
{
    struct ecdsa *e = arg;
    EVP_PKEY_CTX *ctx = e->key ? inner_ctx(e, EVP_PKEY_verify_init) : NULL;
    int ok;

    if (!ctx)
        return 0;
    /* Negative for what is not even DER, which must not pass for true. */
    ok = EVP_PKEY_verify(ctx, sig, sig_len, digest, digest_len);
    EVP_PKEY_CTX_free(ctx);
    return ok > 0;
}

static int ecdsa_hash_verify_final(void *arg, const unsigned char *sig, size_t sig_len)
{
    struct ecdsa *e = arg;
    uint8_t digest[EVP_MAX_MD_SIZE];
    size_t len;

    return provider_hash_final(&e->hash, digest, &len) &&
           ecdsa_verify(e, sig, sig_len, digest, len);
}

/*
 * --- the rest
 * ------------------------------------------------------------------------------------------
 */

static void *ecdsa_dup(void *arg)
{
    const struct ecdsa *from = arg;
    struct ecdsa *to = ecdsa_new(from->provider, NULL);

    if (!to)
        return NULL;
    to->fixed = from->fixed;
    if (from->key)
        to->key = provider_ec_key_ref(from->key);
    if (provider_hash_copy(&to->hash, &from->hash))
        return to;
    ecdsa_free(to);
    return NULL;
}

static int ecdsa_get_params(void *arg, OSSL_PARAM params[])
{
    struct ecdsa *e = arg;
    OSSL_PARAM *p;
    EVP_PKEY *inner;

    p = OSSL_PARAM_locate(params, OSSL_SIGNATURE_PARAM_DIGEST);
    if (p && !OSSL_PARAM_set_utf8_string(p, e->hash.digest ? EVP_MD_get0_name(e->hash.digest) : ""))
        return 0;
    p = OSSL_PARAM_locate(params, OSSL_SIGNATURE_PARAM_DIGEST_SIZE);
    if (p &&
        !OSSL_PARAM_set_size_t(p, e->hash.digest ? (size_t)EVP_MD_get_size(e->hash.digest) : 0))
        return 0;
    p = OSSL_PARAM_locate(params, OSSL_SIGNATURE_PARAM_ALGORITHM_ID);
    if (!p)
        return 1;
    inner = e->key ? provider_ec_key_inner(e->key) : NULL;
    return inner && provider_inner_algorithm_id(e->provider, inner, e->hash.digest, NULL, p);
}

static const OSSL_PARAM *ecdsa_gettable(void *ctx, void *provider)
{
    static const OSSL_PARAM list[] = {
        OSSL_PARAM_octet_string(OSSL_SIGNATURE_PARAM_ALGORITHM_ID, NULL, 0),
        OSSL_PARAM_size_t(OSSL_SIGNATURE_PARAM_DIGEST_SIZE, NULL),
        OSSL_PARAM_utf8_string(OSSL_SIGNATURE_PARAM_DIGEST, NULL, 0),
        OSSL_PARAM_END,
    };

    return list;
}

static const OSSL_PARAM *ecdsa_settable(void *ctx, void *provider)
{
    static const OSSL_PARAM list[] = {
        OSSL_PARAM_utf8_string(OSSL_SIGNATURE_PARAM_DIGEST, NULL, 0),
        OSSL_PARAM_size_t(OSSL_SIGNATURE_PARAM_DIGEST_SIZE, NULL),
        OSSL_PARAM_utf8_string(OSSL_SIGNATURE_PARAM_PROPERTIES, NULL, 0),
        OSSL_PARAM_END,
    };

    return list;
}

const OSSL_DISPATCH provider_ecdsa_signature[] = {
    {OSSL_FUNC_SIGNATURE_NEWCTX, (void (*)(void))ecdsa_new},
    {OSSL_FUNC_SIGNATURE_FREECTX, (void (*)(void))ecdsa_free},
    {OSSL_FUNC_SIGNATURE_DUPCTX, (void (*)(void))ecdsa_dup},
    {OSSL_FUNC_SIGNATURE_SIGN_INIT, (void (*)(void))ecdsa_init},
    {OSSL_FUNC_SIGNATURE_SIGN, (void (*)(void))ecdsa_sign},
    {OSSL_FUNC_SIGNATURE_VERIFY_INIT, (void (*)(void))ecdsa_init},
    {OSSL_FUNC_SIGNATURE_VERIFY, (void (*)(void))ecdsa_verify},
    {OSSL_FUNC_SIGNATURE_DIGEST_SIGN_INIT, (void (*)(void))ecdsa_hash_init},
    {OSSL_FUNC_SIGNATURE_DIGEST_SIGN_UPDATE, (void (*)(void))ecdsa_hash_update},
    {OSSL_FUNC_SIGNATURE_DIGEST_SIGN_FINAL, (void (*)(void))ecdsa_hash_sign_final},
    {OSSL_FUNC_SIGNATURE_DIGEST_SIGN, (void (*)(void))ecdsa_hash_sign},
    {OSSL_FUNC_SIGNATURE_DIGEST_VERIFY_INIT, (void (*)(void))ecdsa_hash_init},
    {OSSL_FUNC_SIGNATURE_DIGEST_VERIFY_UPDATE, (void (*)(void))ecdsa_hash_update},
    {OSSL_FUNC_SIGNATURE_DIGEST_VERIFY_FINAL, (void (*)(void))ecdsa_hash_verify_final},
    {OSSL_FUNC_SIGNATURE_GET_CTX_PARAMS, (void (*)(void))ecdsa_get_params},
    {OSSL_FUNC_SIGNATURE_GETTABLE_CTX_PARAMS, (void (*)(void))ecdsa_gettable},
    {OSSL_FUNC_SIGNATURE_SET_CTX_PARAMS, (void (*)(void))ecdsa_set_params},
    {OSSL_FUNC_SIGNATURE_SETTABLE_CTX_PARAMS, (void (*)(void))ecdsa_settable},
    {0, NULL},
};
