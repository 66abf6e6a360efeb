/* X25519 keys (RFC 7748): a scalar and a u-coordinate; there is no inner key. */
#include "provider/internal.h"

#define POINT(key) ((key)->material + X25519_BYTES)

static struct provider_x25519_key *x25519_new(struct provider *provider)
{
    struct provider_x25519_key *key = OPENSSL_zalloc(sizeof(*key));

    if (!key)
        return NULL;
    atomic_init(&key->refs, 1);
    key->provider = provider;
    return key;
}

static void *x25519_new_empty(void *provider)
{
    return x25519_new(provider);
}

struct provider_x25519_key *provider_x25519_key_ref(struct provider_x25519_key *key)
{
    atomic_fetch_add_explicit(&key->refs, 1, memory_order_relaxed);
    return key;
}

void provider_x25519_key_free(void *arg)
{
    struct provider_x25519_key *key = arg;

    if (!key || atomic_fetch_sub_explicit(&key->refs, 1, memory_order_acq_rel) != 1)
        return;
    OPENSSL_cleanse(key->material, X25519_BYTES);
    OPENSSL_free(key);
}

static int x25519_has(const void *arg, int selection)
{
    const struct provider_x25519_key *key = arg;

    if (!key)
        return 0;
    if ((selection & OSSL_KEYMGMT_SELECT_PUBLIC_KEY) && !key->has_public)
        return 0;
    return !(selection & OSSL_KEYMGMT_SELECT_PRIVATE_KEY) || key->has_private;
}

static int x25519_match(const void *a, const void *b, int selection)
{
    const struct provider_x25519_key *one = a, *other = b;

    if (!(selection & OSSL_KEYMGMT_SELECT_KEYPAIR))
        return 1;
    if (one->has_public && other->has_public)
        return CRYPTO_memcmp(POINT(one), POINT(other), X25519_BYTES) == 0;
    return one->has_private && other->has_private &&
           CRYPTO_memcmp(one->material, other->material, X25519_BYTES) == 0;
}

/* The public key of a private one. */
static int compute_public(const uint8_t scalar[X25519_BYTES], uint8_t out[X25519_BYTES])
{
    static const uint8_t base[X25519_BYTES] = {9};
    struct sp_op op = {.kind = SP_OP_X25519_DERIVE,
                       .scalar = scalar,
                       .in = base,
                       .in_len = sizeof(base),
                       .out = out};

    return provider_run_now(&op) == 0 ? 1 : provider_fail(op.status);
}

static int x25519_validate(const void *arg, int selection, int check_type)
{
    const struct provider_x25519_key *key = arg;
    uint8_t point[X25519_BYTES];

    if (!x25519_has(key, selection & OSSL_KEYMGMT_SELECT_KEYPAIR))
        return 0;
    if ((selection & OSSL_KEYMGMT_SELECT_KEYPAIR) != OSSL_KEYMGMT_SELECT_KEYPAIR)
        return 1;
    return compute_public(key->material, point) &&
           CRYPTO_memcmp(point, POINT(key), sizeof(point)) == 0;
}

/* 32 bytes of a parameter; *found false when there is no such parameter. */
static int take(const OSSL_PARAM params[], const char *name, uint8_t out[X25519_BYTES], bool *found)
{
    const OSSL_PARAM *p = OSSL_PARAM_locate_const(params, name);

    *found = p != NULL;
    if (!p)
        return 1;
    if (p->data_type != OSSL_PARAM_OCTET_STRING || p->data_size != X25519_BYTES || !p->data) {
        provider_error(PROV_R_INVALID_KEY_LENGTH);
        return 0;
    }
    memcpy(out, p->data, X25519_BYTES);
    return 1;
}

static int x25519_import(void *arg, int selection, const OSSL_PARAM params[])
{
    struct provider_x25519_key *key = arg;

    if (!(selection & OSSL_KEYMGMT_SELECT_KEYPAIR))
        return 0;
    if (!take(params, OSSL_PKEY_PARAM_PUB_KEY, POINT(key), &key->has_public))
        return 0;
    if ((selection & OSSL_KEYMGMT_SELECT_PRIVATE_KEY) &&
        !take(params, OSSL_PKEY_PARAM_PRIV_KEY, key->material, &key->has_private))
        return 0;
    if (!key->has_public && !key->has_private) {
        provider_error(PROV_R_MISSING_KEY);
        return 0;
    }
    if (!key->has_public && !compute_public(key->material, POINT(key)))
        return 0;
    key->has_public = true;
    return 1;
}

static int x25519_export(void *arg, int selection, OSSL_CALLBACK *callback, void *callback_arg)
{
    struct provider_x25519_key *key = arg;
    OSSL_PARAM params[3], *p = params;

    if (!(selection & OSSL_KEYMGMT_SELECT_KEYPAIR))
        return 0;
    if (key->has_public && (selection & OSSL_KEYMGMT_SELECT_PUBLIC_KEY))
        *p++ = OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, POINT(key), X25519_BYTES);
    if (key->has_private && (selection & OSSL_KEYMGMT_SELECT_PRIVATE_KEY))
        *p++ = OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PRIV_KEY, key->material,
                                                 X25519_BYTES);
    *p = OSSL_PARAM_construct_end();
    return callback(params, callback_arg);
}

static const OSSL_PARAM *x25519_types(int selection)
{
    static const OSSL_PARAM list[] = {
        OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_PUB_KEY, NULL, 0),
        OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_PRIV_KEY, NULL, 0),
        OSSL_PARAM_END,
    };

    return selection & OSSL_KEYMGMT_SELECT_KEYPAIR ? list : NULL;
}

static int answer(const struct provider_x25519_key *key, OSSL_PARAM *p)
{
    if (strcmp(p->key, OSSL_PKEY_PARAM_BITS) == 0)
        return OSSL_PARAM_set_int(p, 253);
    if (strcmp(p->key, OSSL_PKEY_PARAM_SECURITY_BITS) == 0)
        return OSSL_PARAM_set_int(p, 128);
    if (strcmp(p->key, OSSL_PKEY_PARAM_MAX_SIZE) == 0)
        return OSSL_PARAM_set_int(p, X25519_BYTES);
    if (strcmp(p->key, OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY) == 0 ||
        strcmp(p->key, OSSL_PKEY_PARAM_PUB_KEY) == 0)
        return !key->has_public || OSSL_PARAM_set_octet_string(p, POINT(key), X25519_BYTES);
    if (strcmp(p->key, OSSL_PKEY_PARAM_PRIV_KEY) == 0)
        return !key->has_private || OSSL_PARAM_set_octet_string(p, key->material, X25519_BYTES);
    return 1; /* the caller sees that it is unset */
}

static int x25519_get_params(void *arg, OSSL_PARAM params[])
{
    for (OSSL_PARAM *p = params; p->key; p++)
        if (!answer(arg, p))
            return 0;
    return 1;
}

static const OSSL_PARAM *x25519_gettable(void *provider)
{
    static const OSSL_PARAM list[] = {
        OSSL_PARAM_int(OSSL_PKEY_PARAM_BITS, NULL),
        OSSL_PARAM_int(OSSL_PKEY_PARAM_SECURITY_BITS, NULL),
        OSSL_PARAM_int(OSSL_PKEY_PARAM_MAX_SIZE, NULL),
        OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_PUB_KEY, NULL, 0),
        OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_PRIV_KEY, NULL, 0),
        OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY, NULL, 0),
        OSSL_PARAM_END,
    };

    return list;
}

static int x25519_set_params(void *arg, const OSSL_PARAM params[])
{
    struct provider_x25519_key *key = arg;
    bool found;

    if (!params)
        return 1;
    if (!take(params, OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY, POINT(key), &found))
        return 0;
    if (!found)
        return 1;
    /* Somebody else's key now: a private key would not fit it. */
    OPENSSL_cleanse(key->material, X25519_BYTES);
    key->has_public = true;
    key->has_private = false;
    return 1;
}

static const OSSL_PARAM *x25519_settable(void *provider)
{
    static const OSSL_PARAM list[] = {
        OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY, NULL, 0),
        OSSL_PARAM_END,
    };

    return list;
}

static void *x25519_dup(const void *arg, int selection)
{
    const struct provider_x25519_key *key = arg;
    struct provider_x25519_key *copy = x25519_new(key->provider);

    if (!copy)
        return NULL;
    if (key->has_public && (selection & OSSL_KEYMGMT_SELECT_PUBLIC_KEY)) {
        memcpy(POINT(copy), POINT(key), X25519_BYTES);
        copy->has_public = true;
    }
    if (key->has_private && (selection & OSSL_KEYMGMT_SELECT_PRIVATE_KEY)) {
        memcpy(copy->material, key->material, X25519_BYTES);
        copy->has_private = true;
    }
    return copy;
}

/*
 * --- generating
 * --------------------------------------------------------------------------------------
 */

struct x25519_generation {
    struct provider *provider;
    int selection;
};

static int generation_set(void *arg, const OSSL_PARAM params[])
{
    const OSSL_PARAM *p =
        params ? OSSL_PARAM_locate_const(params, OSSL_PKEY_PARAM_GROUP_NAME) : NULL;
    const char *group;

    if (!p)
        return 1;
    group = provider_param_text(p);
    if (group && strcasecmp(group, "x25519") == 0)
        return 1;
    provider_error(ERR_R_PASSED_INVALID_ARGUMENT);
    return 0;
}

static void *generation_new(void *provider, int selection, const OSSL_PARAM params[])
{
    struct x25519_generation *g;

    if (!generation_set(NULL, params))
        return NULL;
    g = OPENSSL_malloc(sizeof(*g));
    if (!g)
        return NULL;
    g->provider = provider;
    g->selection = selection;
    return g;
}

static const OSSL_PARAM *generation_settable(void *generation, void *provider)
{
    static const OSSL_PARAM list[] = {
        OSSL_PARAM_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, NULL, 0),
        OSSL_PARAM_END,
    };

    return list;
}

static void *generate(void *arg, OSSL_CALLBACK *progress, void *progress_arg)
{
    struct x25519_generation *g = arg;
    struct sp_op op = {.kind = SP_OP_X25519_KEYGEN};
    struct provider_x25519_key *key = x25519_new(g->provider);

    /* Parameters alone: an empty key, which libssl gives the peer's u-coordinate. */
    if (!key || !(g->selection & OSSL_KEYMGMT_SELECT_KEYPAIR))
        return key;
    op.out = key->material;
    if (provider_run_now(&op) != 0) {
        provider_fail(op.status);
        provider_x25519_key_free(key);
        return NULL;
    }
    key->has_public = key->has_private = true;
    return key;
}

static void generation_free(void *generation)
{
    OPENSSL_free(generation);
}

const OSSL_DISPATCH provider_x25519_keymgmt[] = {
    {OSSL_FUNC_KEYMGMT_NEW, (void (*)(void))x25519_new_empty},
    {OSSL_FUNC_KEYMGMT_FREE, (void (*)(void))provider_x25519_key_free},
    {OSSL_FUNC_KEYMGMT_HAS, (void (*)(void))x25519_has},
    {OSSL_FUNC_KEYMGMT_MATCH, (void (*)(void))x25519_match},
    {OSSL_FUNC_KEYMGMT_VALIDATE, (void (*)(void))x25519_validate},
    {OSSL_FUNC_KEYMGMT_IMPORT, (void (*)(void))x25519_import},
    {OSSL_FUNC_KEYMGMT_IMPORT_TYPES, (void (*)(void))x25519_types},
    {OSSL_FUNC_KEYMGMT_EXPORT, (void (*)(void))x25519_export},
    {OSSL_FUNC_KEYMGMT_EXPORT_TYPES, (void (*)(void))x25519_types},
    {OSSL_FUNC_KEYMGMT_GET_PARAMS, (void (*)(void))x25519_get_params},
    {OSSL_FUNC_KEYMGMT_GETTABLE_PARAMS, (void (*)(void))x25519_gettable},
    {OSSL_FUNC_KEYMGMT_SET_PARAMS, (void (*)(void))x25519_set_params},
    {OSSL_FUNC_KEYMGMT_SETTABLE_PARAMS, (void (*)(void))x25519_settable},
    {OSSL_FUNC_KEYMGMT_DUP, (void (*)(void))x25519_dup},
    {OSSL_FUNC_KEYMGMT_GEN_INIT, (void (*)(void))generation_new},
    {OSSL_FUNC_KEYMGMT_GEN_SET_PARAMS, (void (*)(void))generation_set},
    {OSSL_FUNC_KEYMGMT_GEN_SETTABLE_PARAMS, (void (*)(void))generation_settable},
    {OSSL_FUNC_KEYMGMT_GEN, (void (*)(void))generate},
    {OSSL_FUNC_KEYMGMT_GEN_CLEANUP, (void (*)(void))generation_free},
    {0, NULL},
};
