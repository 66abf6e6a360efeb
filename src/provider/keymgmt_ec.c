/*
 * EC keys. A P-256 key is a scalar and a point, and as an ephemeral key nothing else; on other
 * curves it is a key of the default provider's.
 */
#include "provider/internal.h"

#include <openssl/bn.h>

#define POINT(key) ((key)->material + P256_SCALAR_BYTES)

struct ec_generation {
    struct provider *provider;
    int selection;
    bool p256;         /* asked for by name, and nothing else asked for */
    EVP_PKEY_CTX *ctx; /* when anything else is */
};

static struct provider_ec_key *ec_new(struct provider *provider)
{
    struct provider_ec_key *key = OPENSSL_zalloc(sizeof(*key));

    if (!key)
        return NULL;
    atomic_init(&key->refs, 1);
    atomic_init(&key->inner, NULL);
    key->provider = provider;
    return key;
}

static void *ec_new_empty(void *provider)
{
    return ec_new(provider);
}

struct provider_ec_key *provider_ec_key_ref(struct provider_ec_key *key)
{
    atomic_fetch_add_explicit(&key->refs, 1, memory_order_relaxed);
    return key;
}

void provider_ec_key_free(void *arg)
{
    struct provider_ec_key *key = arg;
    EVP_PKEY *inner;

    if (!key || atomic_fetch_sub_explicit(&key->refs, 1, memory_order_acq_rel) != 1)
        return;
    inner = atomic_load_explicit(&key->inner, memory_order_relaxed);
    if (inner)
        EVP_PKEY_free(inner);
    OPENSSL_cleanse(key->material, P256_SCALAR_BYTES);
    OPENSSL_free(key);
}

/*
 * --- to and from the inner key
 * ---------------------------------------------------------------------
 */

static EVP_PKEY *make_inner(const struct provider_ec_key *key)
{
    char group[] = "prime256v1";
    uint8_t point[P256_POINT_BYTES], scalar[P256_SCALAR_BYTES];
    int selection = OSSL_KEYMGMT_SELECT_ALL_PARAMETERS;
    OSSL_PARAM params[4], *p = params;
    EVP_PKEY *inner;

    *p++ = OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, group, 0);
    if (key->has_public) {
        memcpy(point, POINT(key), sizeof(point));
        *p++ = OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point));
        selection |= OSSL_KEYMGMT_SELECT_PUBLIC_KEY;
    }
    if (key->has_private) {
        /* Numbers among parameters are in the machine's own order. */
        for (size_t i = 0; i < sizeof(scalar); i++)
            scalar[i] = key->material[sizeof(scalar) - 1 - i];
        *p++ = OSSL_PARAM_construct_BN(OSSL_PKEY_PARAM_PRIV_KEY, scalar, sizeof(scalar));
        selection |= OSSL_KEYMGMT_SELECT_PRIVATE_KEY;
    }
    *p = OSSL_PARAM_construct_end();
    inner = provider_inner_import(key->provider, "EC", selection, params);
    OPENSSL_cleanse(scalar, sizeof(scalar));
    return inner;
}

EVP_PKEY *provider_ec_key_inner(const struct provider_ec_key *arg)
{
    /* Made late, but that shows to nobody: the key is the same. */
    struct provider_ec_key *key = (struct provider_ec_key *)arg;
    EVP_PKEY *inner = atomic_load_explicit(&key->inner, memory_order_acquire);
    EVP_PKEY *expected = NULL;

    if (inner || !key->p256) {
        if (!inner)
            provider_error(PROV_R_NO_PARAMETERS_SET);
        return inner;
    }
    inner = make_inner(key);
    if (!inner)
        return NULL;
    if (atomic_compare_exchange_strong_explicit(&key->inner, &expected, inner, memory_order_acq_rel,
                                                memory_order_acquire))
        return inner;
    EVP_PKEY_free(inner);
    return expected;
}

static bool get_number(EVP_PKEY *inner, const char *name, uint8_t out[32])
{
    BIGNUM *n = NULL;
    bool ok;

    ERR_set_mark();
    ok = EVP_PKEY_get_bn_param(inner, name, &n) > 0 && BN_bn2binpad(n, out, 32) == 32;
    ERR_pop_to_mark();
    BN_clear_free(n);
    return ok;
}

static bool inner_has_public(EVP_PKEY *inner)
{
    size_t len = 0;
    bool has;

    ERR_set_mark();
    has = EVP_PKEY_get_octet_string_param(inner, OSSL_PKEY_PARAM_PUB_KEY, NULL, 0, &len) > 0;
    ERR_pop_to_mark();
    return has;
}

static bool inner_has_private(EVP_PKEY *inner)
{
    BIGNUM *n = NULL;
    bool has;

    ERR_set_mark();
    has = EVP_PKEY_get_bn_param(inner, OSSL_PKEY_PARAM_PRIV_KEY, &n) > 0;
    ERR_pop_to_mark();
    BN_clear_free(n);
    return has;
}

/*
 * Reads the inner key anew. A P-256 key with a scalar that is none stays the inner key's business.
 */
static void refresh(struct provider_ec_key *key, EVP_PKEY *inner)
{
    char group[64];
    size_t len = 0;

    ERR_set_mark();
    key->p256 = EVP_PKEY_get_group_name(inner, group, sizeof(group), &len) > 0 &&
                provider_p256_is_name(group);
    ERR_pop_to_mark();
    key->has_public = inner_has_public(inner);
    key->has_private = inner_has_private(inner);
    OPENSSL_cleanse(key->material, sizeof(key->material));
    if (!key->p256)
        return;
    POINT(key)[0] = 4;
    if (key->has_public && (!get_number(inner, OSSL_PKEY_PARAM_EC_PUB_X, POINT(key) + 1) ||
                            !get_number(inner, OSSL_PKEY_PARAM_EC_PUB_Y, POINT(key) + 33)))
        key->p256 = false;
    if (key->has_private && (!get_number(inner, OSSL_PKEY_PARAM_PRIV_KEY, key->material) ||
                             !provider_p256_scalar_ok(key->material)))
        key->p256 = false;
}

/* Takes over the inner key. */
static int adopt(struct provider_ec_key *key, EVP_PKEY *inner)
{
    EVP_PKEY *old;

    if (!inner)
        return 0;
    old = atomic_exchange(&key->inner, inner);
    if (old)
        EVP_PKEY_free(old);
    refresh(key, inner);
    return 1;
}

static struct provider_ec_key *wrap(struct provider *provider, EVP_PKEY *inner)
{
    struct provider_ec_key *key = inner ? ec_new(provider) : NULL;

    if (key)
        adopt(key, inner);
    else
        EVP_PKEY_free(inner);
    return key;
}

/*
 * --- the duties of a key manager
 * --------------------------------------------------------------------
 */

static int ec_has(const void *arg, int selection)
{
    const struct provider_ec_key *key = arg;

    if (!key)
        return 0;
    if ((selection & OSSL_KEYMGMT_SELECT_PUBLIC_KEY) && !key->has_public)
        return 0;
    if ((selection & OSSL_KEYMGMT_SELECT_PRIVATE_KEY) && !key->has_private)
        return 0;
    return !(selection & OSSL_KEYMGMT_SELECT_DOMAIN_PARAMETERS) || key->p256 ||
           atomic_load_explicit(&key->inner, memory_order_acquire) != NULL;
}

static int ec_match(const void *a, const void *b, int selection)
{
    const struct provider_ec_key *one = a, *other = b;
    EVP_PKEY *inner_one, *inner_other;

    if (one->p256 && other->p256 && one->has_public && other->has_public)
        return !(selection & OSSL_KEYMGMT_SELECT_KEYPAIR) ||
               CRYPTO_memcmp(POINT(one), POINT(other), P256_POINT_BYTES) == 0;
    inner_one = provider_ec_key_inner(one);
    inner_other = inner_one ? provider_ec_key_inner(other) : NULL;
    return inner_other && provider_inner_match(inner_one, inner_other, selection);
}

static int ec_validate(const void *arg, int selection, int check_type)
{
    const struct provider_ec_key *key = arg;
    EVP_PKEY *inner;

    /*
     * What libssl asks about the peer's key in every handshake. A point of P-256 was checked when
     * it was set, and the curve has no smaller subgroup that it could be in.
     */
    if (key->p256 && !(selection & OSSL_KEYMGMT_SELECT_PRIVATE_KEY))
        return !(selection & OSSL_KEYMGMT_SELECT_PUBLIC_KEY) || key->has_public;
    inner = provider_ec_key_inner(key);
    return inner && provider_inner_validate(key->provider, inner, selection, check_type);
}

static int ec_import(void *arg, int selection, const OSSL_PARAM params[])
{
    struct provider_ec_key *key = arg;

    if (!(selection & OSSL_KEYMGMT_SELECT_DOMAIN_PARAMETERS))
        return 0;
    return adopt(key, provider_inner_import(key->provider, "EC", selection, params));
}

static int ec_export(void *arg, int selection, OSSL_CALLBACK *callback, void *callback_arg)
{
    EVP_PKEY *inner = provider_ec_key_inner(arg);

    return inner && EVP_PKEY_export(inner, selection, callback, callback_arg) > 0;
}

#define GROUP_PARAMS                                                                 \
    OSSL_PARAM_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, NULL, 0),                     \
        OSSL_PARAM_utf8_string(OSSL_PKEY_PARAM_EC_ENCODING, NULL, 0),                \
        OSSL_PARAM_utf8_string(OSSL_PKEY_PARAM_EC_POINT_CONVERSION_FORMAT, NULL, 0), \
        OSSL_PARAM_utf8_string(OSSL_PKEY_PARAM_EC_FIELD_TYPE, NULL, 0),              \
        OSSL_PARAM_BN(OSSL_PKEY_PARAM_EC_P, NULL, 0),                                \
        OSSL_PARAM_BN(OSSL_PKEY_PARAM_EC_A, NULL, 0),                                \
        OSSL_PARAM_BN(OSSL_PKEY_PARAM_EC_B, NULL, 0),                                \
        OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_EC_GENERATOR, NULL, 0),              \
        OSSL_PARAM_BN(OSSL_PKEY_PARAM_EC_ORDER, NULL, 0),                            \
        OSSL_PARAM_BN(OSSL_PKEY_PARAM_EC_COFACTOR, NULL, 0),                         \
        OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_EC_SEED, NULL, 0)
#define OTHER_PARAMS                                         \
    OSSL_PARAM_int(OSSL_PKEY_PARAM_USE_COFACTOR_ECDH, NULL), \
        OSSL_PARAM_int(OSSL_PKEY_PARAM_EC_INCLUDE_PUBLIC, NULL)

static const OSSL_PARAM *ec_types(int selection)
{
    static const OSSL_PARAM with_key[] = {
        GROUP_PARAMS,
        OTHER_PARAMS,
        OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_PUB_KEY, NULL, 0),
        OSSL_PARAM_BN(OSSL_PKEY_PARAM_PRIV_KEY, NULL, 0),
        OSSL_PARAM_END,
    };
    static const OSSL_PARAM parameters[] = {GROUP_PARAMS, OTHER_PARAMS, OSSL_PARAM_END};

    return selection & OSSL_KEYMGMT_SELECT_KEYPAIR ? with_key : parameters;
}

/* 1: answered; 0: failed; -1: not among what is known without an inner key. */
static int answer_p256(const struct provider_ec_key *key, OSSL_PARAM *p)
{
    if (strcmp(p->key, OSSL_PKEY_PARAM_BITS) == 0)
        return OSSL_PARAM_set_int(p, 256);
    if (strcmp(p->key, OSSL_PKEY_PARAM_SECURITY_BITS) == 0)
        return OSSL_PARAM_set_int(p, 128);
    if (strcmp(p->key, OSSL_PKEY_PARAM_MAX_SIZE) == 0)
        return OSSL_PARAM_set_int(p, ECDSA_P256_MAX_BYTES);
    if (strcmp(p->key, OSSL_PKEY_PARAM_DEFAULT_DIGEST) == 0)
        return OSSL_PARAM_set_utf8_string(p, "SHA256");
    if (strcmp(p->key, OSSL_PKEY_PARAM_GROUP_NAME) == 0)
        return OSSL_PARAM_set_utf8_string(p, "prime256v1");
    /*
     * Uncompressed whatever the key's point format is, which only OSSL_PKEY_PARAM_PUB_KEY follows.
     */
    if (strcmp(p->key, OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY) == 0 && key->has_public)
        return OSSL_PARAM_set_octet_string(p, POINT(key), P256_POINT_BYTES);
    return -1;
}

static int ec_get_params(void *arg, OSSL_PARAM params[])
{
    const struct provider_ec_key *key = arg;
    EVP_PKEY *inner;
    int answer = 1;

    if (key->p256) {
        for (OSSL_PARAM *p = params; p->key && answer == 1; p++)
            answer = answer_p256(key, p);
        if (answer >= 0)
            return answer;
    }
    inner = provider_ec_key_inner(key);
    return inner && EVP_PKEY_get_params(inner, params) > 0;
}

static const OSSL_PARAM *ec_gettable(void *provider)
{
    static const OSSL_PARAM list[] = {
        OSSL_PARAM_int(OSSL_PKEY_PARAM_BITS, NULL),
        OSSL_PARAM_int(OSSL_PKEY_PARAM_SECURITY_BITS, NULL),
        OSSL_PARAM_int(OSSL_PKEY_PARAM_MAX_SIZE, NULL),
        OSSL_PARAM_utf8_string(OSSL_PKEY_PARAM_DEFAULT_DIGEST, NULL, 0),
        OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY, NULL, 0),
        OSSL_PARAM_int(OSSL_PKEY_PARAM_EC_DECODED_FROM_EXPLICIT_PARAMS, NULL),
        GROUP_PARAMS,
        OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_PUB_KEY, NULL, 0),
        OSSL_PARAM_BN(OSSL_PKEY_PARAM_EC_PUB_X, NULL, 0),
        OSSL_PARAM_BN(OSSL_PKEY_PARAM_EC_PUB_Y, NULL, 0),
        OSSL_PARAM_BN(OSSL_PKEY_PARAM_PRIV_KEY, NULL, 0),
        OTHER_PARAMS,
        OSSL_PARAM_END,
    };

    return list;
}

static int ec_set_params(void *arg, const OSSL_PARAM params[])
{
    struct provider_ec_key *key = arg;
    EVP_PKEY *inner;

    if (!params || !params->key)
        return 1;
    /* The peer's point, alone and uncompressed: the rest of a handshake needs no inner key. */
    if (key->p256 && !atomic_load_explicit(&key->inner, memory_order_acquire) && !params[1].key &&
        strcmp(params->key, OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY) == 0 &&
        params->data_type == OSSL_PARAM_OCTET_STRING && params->data &&
        params->data_size == P256_POINT_BYTES && *(const uint8_t *)params->data == 4) {
        if (!provider_p256_on_curve(params->data)) {
            provider_error(PROV_R_INVALID_KEY);
            return 0;
        }
        memcpy(POINT(key), params->data, P256_POINT_BYTES);
        key->has_public = true;
        return 1;
    }
    inner = provider_ec_key_inner(key);
    if (!inner || EVP_PKEY_set_params(inner, (OSSL_PARAM *)params) <= 0)
        return 0;
    refresh(key, inner);
    return 1;
}

static const OSSL_PARAM *ec_settable(void *provider)
{
    static const OSSL_PARAM list[] = {
        OSSL_PARAM_int(OSSL_PKEY_PARAM_USE_COFACTOR_ECDH, NULL),
        OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY, NULL, 0),
        OSSL_PARAM_utf8_string(OSSL_PKEY_PARAM_EC_ENCODING, NULL, 0),
        OSSL_PARAM_utf8_string(OSSL_PKEY_PARAM_EC_POINT_CONVERSION_FORMAT, NULL, 0),
        OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_EC_SEED, NULL, 0),
        OSSL_PARAM_int(OSSL_PKEY_PARAM_EC_INCLUDE_PUBLIC, NULL),
        OSSL_PARAM_utf8_string(OSSL_PKEY_PARAM_EC_GROUP_CHECK_TYPE, NULL, 0),
        OSSL_PARAM_END,
    };

    return list;
}

static void *ec_dup(const void *arg, int selection)
{
    const struct provider_ec_key *key = arg;
    EVP_PKEY *inner =
        atomic_load_explicit((_Atomic(EVP_PKEY *) *)&key->inner, memory_order_acquire);
    struct provider_ec_key *copy;

    /*
     * For P-256 an inner key holds at most preferences of encoding, which a copy of parameters
     * alone may drop.
     */
    if (inner && (!key->p256 || (selection & OSSL_KEYMGMT_SELECT_KEYPAIR)))
        return wrap(key->provider, provider_inner_copy(key->provider, "EC", inner, selection));
    copy = ec_new(key->provider);
    if (!copy || !key->p256)
        return copy;
    copy->p256 = true;
    if (key->has_public && (selection & OSSL_KEYMGMT_SELECT_PUBLIC_KEY)) {
        memcpy(POINT(copy), POINT(key), P256_POINT_BYTES);
        copy->has_public = true;
    }
    if (key->has_private && (selection & OSSL_KEYMGMT_SELECT_PRIVATE_KEY)) {
        memcpy(copy->material, key->material, P256_SCALAR_BYTES);
        copy->has_private = true;
    }
    return copy;
}

static const char *ec_operation_name(int operation)
{
    switch (operation) {
    case OSSL_OP_KEYEXCH:
        return "ECDH";
    case OSSL_OP_SIGNATURE:
        return "ECDSA";
    default:
        return NULL;
    }
}

/*
 * --- generating
 * ---------------------------------------------------------------------------------------
 */

static void generation_free(void *arg)
{
    struct ec_generation *g = arg;

    if (g)
        EVP_PKEY_CTX_free(g->ctx);
    OPENSSL_free(g);
}

static int start_ctx(const struct ec_generation *g, EVP_PKEY_CTX *ctx)
{
    if (!ctx)
        return 0;
    return (g->selection & OSSL_KEYMGMT_SELECT_KEYPAIR ? EVP_PKEY_keygen_init(ctx)
                                                       : EVP_PKEY_paramgen_init(ctx)) > 0;
}

/* Leaves the short way: what was asked for so far is asked of the default provider. */
static int need_ctx(struct ec_generation *g)
{
    if (g->ctx)
        return 1;
    g->ctx = EVP_PKEY_CTX_new_from_name(g->provider->inner, "EC", NULL);
    if (!start_ctx(g, g->ctx) ||
        (g->p256 && EVP_PKEY_CTX_set_group_name(g->ctx, "prime256v1") <= 0)) {
        EVP_PKEY_CTX_free(g->ctx);
        g->ctx = NULL;
        return 0;
    }
    g->p256 = false;
    return 1;
}

static int generation_set(void *arg, const OSSL_PARAM params[])
{
    struct ec_generation *g = arg;
    const char *group;

    if (!params || !params->key)
        return 1;
    if (!g->ctx && !params[1].key && strcmp(params->key, OSSL_PKEY_PARAM_GROUP_NAME) == 0) {
        group = provider_param_text(params);
        if (group && provider_p256_is_name(group)) {
            g->p256 = true;
            return 1;
        }
    }
    return need_ctx(g) && EVP_PKEY_CTX_set_params(g->ctx, params) > 0;
}

static void *generation_new(void *provider, int selection, const OSSL_PARAM params[])
{
    struct ec_generation *g;

    if (!(selection & (OSSL_KEYMGMT_SELECT_KEYPAIR | OSSL_KEYMGMT_SELECT_DOMAIN_PARAMETERS)))
        return NULL;
    g = OPENSSL_zalloc(sizeof(*g));
    if (!g)
        return NULL;
    g->provider = provider;
    g->selection = selection;
    if (!generation_set(g, params)) {
        generation_free(g);
        return NULL;
    }
    return g;
}

static int generation_template(void *arg, void *template)
{
    struct ec_generation *g = arg;
    const struct provider_ec_key *key = template;
    EVP_PKEY *inner;

    if (!key)
        return 0;
    if (key->p256 && !g->ctx) {
        g->p256 = true;
        return 1;
    }
    inner = provider_ec_key_inner(key);
    if (!inner)
        return 0;
    EVP_PKEY_CTX_free(g->ctx);
    g->p256 = false;
    g->ctx = EVP_PKEY_CTX_new_from_pkey(g->provider->inner, inner, NULL);
    return start_ctx(g, g->ctx);
}

static const OSSL_PARAM *generation_settable(void *generation, void *provider)
{
    static const OSSL_PARAM list[] = {
        GROUP_PARAMS,
        OSSL_PARAM_int(OSSL_PKEY_PARAM_USE_COFACTOR_ECDH, NULL),
        OSSL_PARAM_END,
    };

    return list;
}

static void *generate(void *arg, OSSL_CALLBACK *progress, void *progress_arg)
{
    struct ec_generation *g = arg;
    struct sp_op op = {.kind = SP_OP_P256_KEYGEN};
    struct provider_ec_key *key;

    if (g->ctx)
        return wrap(g->provider, provider_inner_generate(g->ctx, NULL, NULL));
    if (!g->p256) {
        provider_error(PROV_R_NO_PARAMETERS_SET);
        return NULL;
    }
    key = ec_new(g->provider);
    if (!key)
        return NULL;
    key->p256 = true;
    if (!(g->selection & OSSL_KEYMGMT_SELECT_KEYPAIR))
        return key;
    op.out = key->material;
    if (provider_run_now(&op) != 0) {
        provider_fail(op.status);
        provider_ec_key_free(key);
        return NULL;
    }
    key->has_public = key->has_private = true;
    return key;
}

const OSSL_DISPATCH provider_ec_keymgmt[] = {
    {OSSL_FUNC_KEYMGMT_NEW, (void (*)(void))ec_new_empty},
    {OSSL_FUNC_KEYMGMT_FREE, (void (*)(void))provider_ec_key_free},
    {OSSL_FUNC_KEYMGMT_HAS, (void (*)(void))ec_has},
    {OSSL_FUNC_KEYMGMT_MATCH, (void (*)(void))ec_match},
    {OSSL_FUNC_KEYMGMT_VALIDATE, (void (*)(void))ec_validate},
    {OSSL_FUNC_KEYMGMT_IMPORT, (void (*)(void))ec_import},
    {OSSL_FUNC_KEYMGMT_IMPORT_TYPES, (void (*)(void))ec_types},
    {OSSL_FUNC_KEYMGMT_EXPORT, (void (*)(void))ec_export},
    {OSSL_FUNC_KEYMGMT_EXPORT_TYPES, (void (*)(void))ec_types},
    {OSSL_FUNC_KEYMGMT_GET_PARAMS, (void (*)(void))ec_get_params},
    {OSSL_FUNC_KEYMGMT_GETTABLE_PARAMS, (void (*)(void))ec_gettable},
    {OSSL_FUNC_KEYMGMT_SET_PARAMS, (void (*)(void))ec_set_params},
    {OSSL_FUNC_KEYMGMT_SETTABLE_PARAMS, (void (*)(void))ec_settable},
    {OSSL_FUNC_KEYMGMT_DUP, (void (*)(void))ec_dup},
    {OSSL_FUNC_KEYMGMT_QUERY_OPERATION_NAME, (void (*)(void))ec_operation_name},
    {OSSL_FUNC_KEYMGMT_GEN_INIT, (void (*)(void))generation_new},
    {OSSL_FUNC_KEYMGMT_GEN_SET_TEMPLATE, (void (*)(void))generation_template},
    {OSSL_FUNC_KEYMGMT_GEN_SET_PARAMS, (void (*)(void))generation_set},
    {OSSL_FUNC_KEYMGMT_GEN_SETTABLE_PARAMS, (void (*)(void))generation_settable},
    {OSSL_FUNC_KEYMGMT_GEN, (void (*)(void))generate},
    {OSSL_FUNC_KEYMGMT_GEN_CLEANUP, (void (*)(void))generation_free},
    {0, NULL},
};
