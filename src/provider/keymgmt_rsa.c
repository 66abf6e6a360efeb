/*
 * RSA keys: a key of the default provider's, and for private keys of the common sizes the form that
 * the lanes compute with.
 */
#include "provider/internal.h"

#include <openssl/bn.h>

struct rsa_generation {
    struct provider *provider;
    EVP_PKEY_CTX *ctx;
};

static struct provider_rsa_key *rsa_new(struct provider *provider)
{
    struct provider_rsa_key *key = OPENSSL_zalloc(sizeof(*key));

    if (!key)
        return NULL;
    atomic_init(&key->refs, 1);
    key->provider = provider;
    return key;
}

static void *rsa_new_empty(void *provider)
{
    return rsa_new(provider);
}

struct provider_rsa_key *provider_rsa_key_ref(struct provider_rsa_key *key)
{
    atomic_fetch_add_explicit(&key->refs, 1, memory_order_relaxed);
    return key;
}

void provider_rsa_key_free(void *arg)
{
    struct provider_rsa_key *key = arg;

    if (!key || atomic_fetch_sub_explicit(&key->refs, 1, memory_order_acq_rel) != 1)
        return;
    sp_rsa_key_free(key->fast);
    EVP_PKEY_free(key->inner);
    OPENSSL_free(key);
}

size_t provider_rsa_key_bytes(const struct provider_rsa_key *key)
{
    int bytes;

    if (key->fast)
        return sp_rsa_key_bytes(key->fast);
    bytes = key->inner ? EVP_PKEY_get_size(key->inner) : 0;
    return bytes > 0 ? (size_t)bytes : 0;
}

/*
 * --- from the inner key -------------------------------------------------------------------------
 */

/* n, e, p, q, dp, dq, qinv; in the order of struct sp_rsa_parts. */
static const char *const part_names[] = {
    OSSL_PKEY_PARAM_RSA_N,
    OSSL_PKEY_PARAM_RSA_E,
    OSSL_PKEY_PARAM_RSA_FACTOR1,
    OSSL_PKEY_PARAM_RSA_FACTOR2,
    OSSL_PKEY_PARAM_RSA_EXPONENT1,
    OSSL_PKEY_PARAM_RSA_EXPONENT2,
    OSSL_PKEY_PARAM_RSA_COEFFICIENT1,
};
#define PARTS (sizeof(part_names) / sizeof(part_names[0]))

static bool inner_has(EVP_PKEY *inner, const char *name)
{
    BIGNUM *n = NULL;
    bool has;

    ERR_set_mark();
    has = EVP_PKEY_get_bn_param(inner, name, &n) > 0;
    ERR_pop_to_mark();
    BN_clear_free(n);
    return has;
}

static bool get_part(EVP_PKEY *inner, const char *name, uint8_t *buffer, struct sp_bytes *out)
{
    BIGNUM *n = NULL;
    int len = -1;

    ERR_set_mark();
    if (EVP_PKEY_get_bn_param(inner, name, &n) > 0 && BN_num_bytes(n) <= PROVIDER_RSA_MAX_BYTES)
        len = BN_bn2bin(n, buffer);
    ERR_pop_to_mark();
    BN_clear_free(n);
    out->data = buffer;
    out->len = len > 0 ? (size_t)len : 0;
    return len > 0;
}

/*
 * The form for the lanes. A key that they do not take, or that contradicts itself, stays the inner
 * key's business.
 */
static int make_fast(struct provider_rsa_key *key)
{
    struct sp_bytes parts[PARTS];
    uint8_t *buffer;
    bool complete = true;
    int status;

    if (EVP_PKEY_get_size(key->inner) > PROVIDER_RSA_MAX_BYTES ||
        inner_has(key->inner, OSSL_PKEY_PARAM_RSA_FACTOR3))
        return 1;
    buffer = OPENSSL_malloc(PARTS * PROVIDER_RSA_MAX_BYTES);
    if (!buffer)
        return provider_fail(SP_ENOMEM);
    for (size_t i = 0; i < PARTS && complete; i++)
        complete =
            get_part(key->inner, part_names[i], buffer + i * PROVIDER_RSA_MAX_BYTES, &parts[i]);
    status = SP_EUNSUPPORTED;
    if (complete)
        status = sp_rsa_key_new(&key->fast, &(struct sp_rsa_parts){.n = parts[0],
                                                                   .e = parts[1],
                                                                   .p = parts[2],
                                                                   .q = parts[3],
                                                                   .dp = parts[4],
                                                                   .dq = parts[5],
                                                                   .qinv = parts[6]});
    OPENSSL_clear_free(buffer, PARTS * PROVIDER_RSA_MAX_BYTES);
    if (status == 0)
        return 1;
    key->fast = NULL;
    return status == SP_ENOMEM ? provider_fail(status) : 1;
}

/* Takes over the inner key, on failure too. */
static int adopt(struct provider_rsa_key *key, EVP_PKEY *inner)
{
    if (!inner)
        return 0;
    sp_rsa_key_free(key->fast);
    key->fast = NULL;
    EVP_PKEY_free(key->inner);
    key->inner = inner;
    key->has_public =
        inner_has(inner, OSSL_PKEY_PARAM_RSA_N) && inner_has(inner, OSSL_PKEY_PARAM_RSA_E);
    key->has_private = inner_has(inner, OSSL_PKEY_PARAM_RSA_D);
    return key->has_public && key->has_private ? make_fast(key) : 1;
}

static struct provider_rsa_key *wrap(struct provider *provider, EVP_PKEY *inner)
{
    struct provider_rsa_key *key = inner ? rsa_new(provider) : NULL;

    if (!key) {
        EVP_PKEY_free(inner);
        return NULL;
    }
    if (adopt(key, inner))
        return key;
    provider_rsa_key_free(key);
    return NULL;
}

/*
 * --- the duties of a key manager -----------------------------------------------------------------
 */

static int rsa_has(const void *arg, int selection)
{
    const struct provider_rsa_key *key = arg;

    if (!key)
        return 0;
    if ((selection & OSSL_KEYMGMT_SELECT_PUBLIC_KEY) && !key->has_public)
        return 0;
    return !(selection & OSSL_KEYMGMT_SELECT_PRIVATE_KEY) || key->has_private;
}

static int rsa_match(const void *a, const void *b, int selection)
{
    const struct provider_rsa_key *one = a, *other = b;

    if (!(selection & OSSL_KEYMGMT_SELECT_KEYPAIR))
        return 1;
    return one->inner && other->inner && provider_inner_match(one->inner, other->inner, selection);
}

static int rsa_validate(const void *arg, int selection, int check_type)
{
    const struct provider_rsa_key *key = arg;

    /* The key type has no domain parameters that could be wrong. */
    selection &= OSSL_KEYMGMT_SELECT_KEYPAIR;
    return key->inner && (!selection || provider_inner_validate(key->provider, key->inner,
                                                                selection, check_type));
}

static int rsa_import(void *arg, int selection, const OSSL_PARAM params[])
{
    struct provider_rsa_key *key = arg;

    if (!(selection & OSSL_KEYMGMT_SELECT_KEYPAIR))
        return 0;
    return adopt(key, provider_inner_import(key->provider, "RSA", selection, params));
}

static int rsa_export(void *arg, int selection, OSSL_CALLBACK *callback, void *callback_arg)
{
    struct provider_rsa_key *key = arg;

    return key->inner && EVP_PKEY_export(key->inner, selection, callback, callback_arg) > 0;
}

static const OSSL_PARAM key_types[] = {
    OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_N, NULL, 0),
    OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_E, NULL, 0),
    OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_D, NULL, 0),
    OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_FACTOR1, NULL, 0),
    OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_FACTOR2, NULL, 0),
    OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_FACTOR3, NULL, 0),
    OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_FACTOR4, NULL, 0),
    OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_EXPONENT1, NULL, 0),
    OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_EXPONENT2, NULL, 0),
    OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_EXPONENT3, NULL, 0),
    OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_EXPONENT4, NULL, 0),
    OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_COEFFICIENT1, NULL, 0),
    OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_COEFFICIENT2, NULL, 0),
    OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_COEFFICIENT3, NULL, 0),
    OSSL_PARAM_END,
};

static const OSSL_PARAM *rsa_types(int selection)
{
    return selection & OSSL_KEYMGMT_SELECT_KEYPAIR ? key_types : NULL;
}

static int rsa_get_params(void *arg, OSSL_PARAM params[])
{
    struct provider_rsa_key *key = arg;

    return key->inner && EVP_PKEY_get_params(key->inner, params) > 0;
}

static const OSSL_PARAM *rsa_gettable(void *provider)
{
    static const OSSL_PARAM list[] = {
        OSSL_PARAM_int(OSSL_PKEY_PARAM_BITS, NULL),
        OSSL_PARAM_int(OSSL_PKEY_PARAM_SECURITY_BITS, NULL),
        OSSL_PARAM_int(OSSL_PKEY_PARAM_MAX_SIZE, NULL),
        OSSL_PARAM_utf8_string(OSSL_PKEY_PARAM_DEFAULT_DIGEST, NULL, 0),
        OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_N, NULL, 0),
        OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_E, NULL, 0),
        OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_D, NULL, 0),
        OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_FACTOR1, NULL, 0),
        OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_FACTOR2, NULL, 0),
        OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_FACTOR3, NULL, 0),
        OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_EXPONENT1, NULL, 0),
        OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_EXPONENT2, NULL, 0),
        OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_EXPONENT3, NULL, 0),
        OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_COEFFICIENT1, NULL, 0),
        OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_COEFFICIENT2, NULL, 0),
        OSSL_PARAM_END,
    };

    return list;
}

static void *rsa_dup(const void *arg, int selection)
{
    const struct provider_rsa_key *key = arg;

    if (!key->inner || !(selection & OSSL_KEYMGMT_SELECT_KEYPAIR))
        return rsa_new(key->provider);
    return wrap(key->provider, provider_inner_copy(key->provider, "RSA", key->inner, selection));
}

/*
 * --- generating ---------------------------------------------------------------------------------
 */

static void generation_free(void *arg)
{
    struct rsa_generation *g = arg;

    if (g)
        EVP_PKEY_CTX_free(g->ctx);
    OPENSSL_free(g);
}

static int generation_set(void *arg, const OSSL_PARAM params[])
{
    struct rsa_generation *g = arg;

    return !params || !params->key || EVP_PKEY_CTX_set_params(g->ctx, params) > 0;
}

static void *generation_new(void *provider, int selection, const OSSL_PARAM params[])
{
    struct rsa_generation *g;

    if (!(selection & OSSL_KEYMGMT_SELECT_KEYPAIR))
        return NULL;
    g = OPENSSL_zalloc(sizeof(*g));
    if (!g)
        return NULL;
    g->provider = provider;
    g->ctx = EVP_PKEY_CTX_new_from_name(g->provider->inner, "RSA", NULL);
    if (!g->ctx || EVP_PKEY_keygen_init(g->ctx) <= 0 || !generation_set(g, params)) {
        generation_free(g);
        return NULL;
    }
    return g;
}

static const OSSL_PARAM *generation_settable(void *generation, void *provider)
{
    static const OSSL_PARAM list[] = {
        OSSL_PARAM_size_t(OSSL_PKEY_PARAM_RSA_BITS, NULL),
        OSSL_PARAM_size_t(OSSL_PKEY_PARAM_RSA_PRIMES, NULL),
        OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_E, NULL, 0),
        OSSL_PARAM_END,
    };

    return list;
}

static void *generate(void *arg, OSSL_CALLBACK *progress, void *progress_arg)
{
    struct rsa_generation *g = arg;

    return wrap(g->provider, provider_inner_generate(g->ctx, progress, progress_arg));
}

const OSSL_DISPATCH provider_rsa_keymgmt[] = {
    {OSSL_FUNC_KEYMGMT_NEW, (void (*)(void))rsa_new_empty},
    {OSSL_FUNC_KEYMGMT_FREE, (void (*)(void))provider_rsa_key_free},
    {OSSL_FUNC_KEYMGMT_HAS, (void (*)(void))rsa_has},
    {OSSL_FUNC_KEYMGMT_MATCH, (void (*)(void))rsa_match},
    {OSSL_FUNC_KEYMGMT_VALIDATE, (void (*)(void))rsa_validate},
    {OSSL_FUNC_KEYMGMT_IMPORT, (void (*)(void))rsa_import},
    {OSSL_FUNC_KEYMGMT_IMPORT_TYPES, (void (*)(void))rsa_types},
    {OSSL_FUNC_KEYMGMT_EXPORT, (void (*)(void))rsa_export},
    {OSSL_FUNC_KEYMGMT_EXPORT_TYPES, (void (*)(void))rsa_types},
    {OSSL_FUNC_KEYMGMT_GET_PARAMS, (void (*)(void))rsa_get_params},
    {OSSL_FUNC_KEYMGMT_GETTABLE_PARAMS, (void (*)(void))rsa_gettable},
    {OSSL_FUNC_KEYMGMT_DUP, (void (*)(void))rsa_dup},
    {OSSL_FUNC_KEYMGMT_GEN_INIT, (void (*)(void))generation_new},
    {OSSL_FUNC_KEYMGMT_GEN_SET_PARAMS, (void (*)(void))generation_set},
    {OSSL_FUNC_KEYMGMT_GEN_SETTABLE_PARAMS, (void (*)(void))generation_settable},
    {OSSL_FUNC_KEYMGMT_GEN, (void (*)(void))generate},
    {OSSL_FUNC_KEYMGMT_GEN_CLEANUP, (void (*)(void))generation_free},
    {0, NULL},
};
