/*
 * Key agreement: P-256 and X25519 through the queue; other curves, and key derivation, by the
 * default provider.
 */
#include "provider/internal.h"

struct ecdh {
    struct provider *provider;
    struct provider_ec_key *key, *peer;
    EVP_PKEY_CTX
        *ctx; /* of the default provider, for what the queue does not do; NULL: not needed so far */
};

static void *ecdh_new(void *provider)
{
    struct ecdh *e = OPENSSL_zalloc(sizeof(*e));

    if (e)
        e->provider = provider;
    return e;
}

static void ecdh_free(void *arg)
{
    struct ecdh *e = arg;

    if (!e)
        return;
    provider_ec_key_free(e->key);
    provider_ec_key_free(e->peer);
    EVP_PKEY_CTX_free(e->ctx);
    OPENSSL_free(e);
}

static int need_ctx(struct ecdh *e)
{
    EVP_PKEY *inner;

    if (e->ctx)
        return 1;
    inner = e->key ? provider_ec_key_inner(e->key) : NULL;
    if (!inner)
        return 0;
    e->ctx = EVP_PKEY_CTX_new_from_pkey(e->provider->inner, inner, NULL);
    if (e->ctx && EVP_PKEY_derive_init(e->ctx) > 0)
        return 1;
    EVP_PKEY_CTX_free(e->ctx);
    e->ctx = NULL;
    return 0;
}

static int ecdh_set_params(void *arg, const OSSL_PARAM params[])
{
    struct ecdh *e = arg;

    if (!params || !params->key)
        return 1;
    return need_ctx(e) && EVP_PKEY_CTX_set_params(e->ctx, params) > 0;
}

static int ecdh_init(void *arg, void *key, const OSSL_PARAM params[])
{
    struct ecdh *e = arg;

    if (!key)
        return 0;
    provider_ec_key_free(e->key);
    provider_ec_key_free(e->peer);
    EVP_PKEY_CTX_free(e->ctx);
    e->key = provider_ec_key_ref(key);
    e->peer = NULL;
    e->ctx = NULL;
    return ecdh_set_params(e, params);
}

static int ecdh_set_peer(void *arg, void *key)
{
    struct ecdh *e = arg;

    if (!key || !e->key)
        return 0;
    provider_ec_key_free(e->peer);
    e->peer = provider_ec_key_ref(key);
    if (e->key->p256 && e->peer->p256)
        return 1;
    /* Curves that differ show here, as they do in the default provider. */
    if (!need_ctx(e) || !provider_ec_key_inner(e->peer))
        return 0;
    return EVP_PKEY_derive_set_peer_ex(e->ctx, provider_ec_key_inner(e->peer), 0) > 0;
}

static int derive_inner(struct ecdh *e, uint8_t *secret, size_t *secret_len, size_t room)
{
    EVP_PKEY *peer;

    if (!need_ctx(e))
        return 0;
    peer = provider_ec_key_inner(e->peer);
    if (!peer || EVP_PKEY_derive_set_peer_ex(e->ctx, peer, 0) <= 0)
        return 0;
    if (!secret)
        return EVP_PKEY_derive(e->ctx, NULL, secret_len) > 0;
    *secret_len = room;
    return provider_inner_run(PROVIDER_INNER_DERIVE, e->ctx, NULL, 0, secret, secret_len);
}

/* Runs a derivation between buffers of its own; see provider_inner_run. */
static int derive(struct sp_op *op, uint8_t *secret, size_t *secret_len)
{
    uint8_t out[32];
    int status;

    op->out = out;
    status = provider_run(op);
    if (status == 0) {
        memcpy(secret, out, sizeof(out));
        *secret_len = sizeof(out);
    } else {
        provider_fail(status);
    }
    OPENSSL_cleanse(out, sizeof(out));
    return status == 0;
}

static bool room_for_secret(size_t room)
{
    if (room >= 32)
        return true;
    provider_error(PROV_R_OUTPUT_BUFFER_TOO_SMALL);
    return false;
}

static int ecdh_derive(void *arg, unsigned char *secret, size_t *secret_len, size_t room)
{
    struct ecdh *e = arg;
    struct sp_op op = {.kind = SP_OP_P256_DERIVE};

    if (!e->key || !e->peer || !e->key->has_private || !e->peer->has_public) {
        provider_error(PROV_R_MISSING_KEY);
        return 0;
    }
    if (e->ctx || !e->key->p256 || !e->peer->p256)
        return derive_inner(e, secret, secret_len, room);
    if (!secret) {
        *secret_len = 32;
        return 1;
    }
    if (!room_for_secret(room))
        return 0;
    op.scalar = e->key->material;
    op.in = e->peer->material + P256_SCALAR_BYTES;
    op.in_len = P256_POINT_BYTES;
    return derive(&op, secret, secret_len);
}

static void *ecdh_dup(void *arg)
{
    const struct ecdh *from = arg;
    struct ecdh *to = ecdh_new(from->provider);

    if (!to)
        return NULL;
    if (from->key)
        to->key = provider_ec_key_ref(from->key);
    if (from->peer)
        to->peer = provider_ec_key_ref(from->peer);
    if (from->ctx) {
        to->ctx = EVP_PKEY_CTX_dup(from->ctx);
        if (!to->ctx) {
            ecdh_free(to);
            return NULL;
        }
    }
    return to;
}

static int ecdh_get_params(void *arg, OSSL_PARAM params[])
{
    struct ecdh *e = arg;

    return need_ctx(e) && EVP_PKEY_CTX_get_params(e->ctx, params) > 0;
}

#define ECDH_PARAMS                                                      \
    OSSL_PARAM_int(OSSL_EXCHANGE_PARAM_EC_ECDH_COFACTOR_MODE, NULL),     \
        OSSL_PARAM_utf8_string(OSSL_EXCHANGE_PARAM_KDF_TYPE, NULL, 0),   \
        OSSL_PARAM_utf8_string(OSSL_EXCHANGE_PARAM_KDF_DIGEST, NULL, 0), \
        OSSL_PARAM_size_t(OSSL_EXCHANGE_PARAM_KDF_OUTLEN, NULL)

static const OSSL_PARAM *ecdh_settable(void *ctx, void *provider)
{
    static const OSSL_PARAM list[] = {
        ECDH_PARAMS,
        OSSL_PARAM_utf8_string(OSSL_EXCHANGE_PARAM_KDF_DIGEST_PROPS, NULL, 0),
        OSSL_PARAM_octet_string(OSSL_EXCHANGE_PARAM_KDF_UKM, NULL, 0),
        OSSL_PARAM_END,
    };

    return list;
}

static const OSSL_PARAM *ecdh_gettable(void *ctx, void *provider)
{
    static const OSSL_PARAM list[] = {
        ECDH_PARAMS,
        OSSL_PARAM_DEFN(OSSL_EXCHANGE_PARAM_KDF_UKM, OSSL_PARAM_OCTET_PTR, NULL, 0),
        OSSL_PARAM_END,
    };

    return list;
}

const OSSL_DISPATCH provider_ecdh_exchange[] = {
    {OSSL_FUNC_KEYEXCH_NEWCTX, (void (*)(void))ecdh_new},
    {OSSL_FUNC_KEYEXCH_INIT, (void (*)(void))ecdh_init},
    {OSSL_FUNC_KEYEXCH_SET_PEER, (void (*)(void))ecdh_set_peer},
    {OSSL_FUNC_KEYEXCH_DERIVE, (void (*)(void))ecdh_derive},
    {OSSL_FUNC_KEYEXCH_FREECTX, (void (*)(void))ecdh_free},
    {OSSL_FUNC_KEYEXCH_DUPCTX, (void (*)(void))ecdh_dup},
    {OSSL_FUNC_KEYEXCH_SET_CTX_PARAMS, (void (*)(void))ecdh_set_params},
    {OSSL_FUNC_KEYEXCH_SETTABLE_CTX_PARAMS, (void (*)(void))ecdh_settable},
    {OSSL_FUNC_KEYEXCH_GET_CTX_PARAMS, (void (*)(void))ecdh_get_params},
    {OSSL_FUNC_KEYEXCH_GETTABLE_CTX_PARAMS, (void (*)(void))ecdh_gettable},
    {0, NULL},
};

/*
 * --- X25519
 * --------------------------------------------------------------------------------------------
 */

struct x25519 {
    struct provider_x25519_key *key, *peer;
};

static void *x25519_new(void *provider)
{
    return OPENSSL_zalloc(sizeof(struct x25519));
}

static void x25519_free(void *arg)
{
    struct x25519 *x = arg;

    if (!x)
        return;
    provider_x25519_key_free(x->key);
    provider_x25519_key_free(x->peer);
    OPENSSL_free(x);
}

static int x25519_init(void *arg, void *key, const OSSL_PARAM params[])
{
    struct x25519 *x = arg;

    if (!key)
        return 0;
    provider_x25519_key_free(x->key);
    provider_x25519_key_free(x->peer);
    x->key = provider_x25519_key_ref(key);
    x->peer = NULL;
    return 1;
}

static int x25519_set_peer(void *arg, void *key)
{
    struct x25519 *x = arg;

    if (!key)
        return 0;
    provider_x25519_key_free(x->peer);
    x->peer = provider_x25519_key_ref(key);
    return 1;
}

static int x25519_derive(void *arg, unsigned char *secret, size_t *secret_len, size_t room)
{
    struct x25519 *x = arg;
    struct sp_op op = {.kind = SP_OP_X25519_DERIVE, .in_len = X25519_BYTES};

    if (!x->key || !x->peer || !x->key->has_private || !x->peer->has_public) {
        provider_error(PROV_R_MISSING_KEY);
        return 0;
    }
    if (!secret) {
        *secret_len = X25519_BYTES;
        return 1;
    }
    if (!room_for_secret(room))
        return 0;
    op.scalar = x->key->material;
    op.in = x->peer->material + X25519_BYTES;
    return derive(&op, secret, secret_len);
}

static void *x25519_dup(void *arg)
{
    const struct x25519 *from = arg;
    struct x25519 *to = x25519_new(NULL);

    if (!to)
        return NULL;
    if (from->key)
        to->key = provider_x25519_key_ref(from->key);
    if (from->peer)
        to->peer = provider_x25519_key_ref(from->peer);
    return to;
}

const OSSL_DISPATCH provider_x25519_exchange[] = {
    {OSSL_FUNC_KEYEXCH_NEWCTX, (void (*)(void))x25519_new},
    {OSSL_FUNC_KEYEXCH_INIT, (void (*)(void))x25519_init},
    {OSSL_FUNC_KEYEXCH_SET_PEER, (void (*)(void))x25519_set_peer},
    {OSSL_FUNC_KEYEXCH_DERIVE, (void (*)(void))x25519_derive},
    {OSSL_FUNC_KEYEXCH_FREECTX, (void (*)(void))x25519_free},
    {OSSL_FUNC_KEYEXCH_DUPCTX, (void (*)(void))x25519_dup},
    {0, NULL},
};
