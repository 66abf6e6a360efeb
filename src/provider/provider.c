#include "provider/internal.h"

#include <sallyport/provider.h>

#include <openssl/provider.h>

#define PROPERTIES "provider=sallyport"

static const OSSL_ALGORITHM keymgmts[] = {
    {"RSA:rsaEncryption:1.2.840.113549.1.1.1", PROPERTIES, provider_rsa_keymgmt, "RSA keys"},
    {"EC:id-ecPublicKey:1.2.840.10045.2.1", PROPERTIES, provider_ec_keymgmt, "EC keys"},
    {"X25519:1.3.101.110", PROPERTIES, provider_x25519_keymgmt, "X25519 keys"},
    {NULL, NULL, NULL, NULL},
};

static const OSSL_ALGORITHM exchanges[] = {
    {"ECDH", PROPERTIES, provider_ecdh_exchange, "ECDH"},
    {"X25519:1.3.101.110", PROPERTIES, provider_x25519_exchange, "X25519"},
    {NULL, NULL, NULL, NULL},
};

static const OSSL_ALGORITHM signatures[] = {
    {"RSA:rsaEncryption:1.2.840.113549.1.1.1", PROPERTIES, provider_rsa_signature,
     "RSA signatures"},
    {"ECDSA", PROPERTIES, provider_ecdsa_signature, "ECDSA"},
    {NULL, NULL, NULL, NULL},
};

static const OSSL_ALGORITHM ciphers[] = {
    {"RSA:rsaEncryption:1.2.840.113549.1.1.1", PROPERTIES, provider_rsa_cipher, "RSA encryption"},
    {NULL, NULL, NULL, NULL},
};

static const OSSL_ALGORITHM kdfs[] = {
    {"TLS13-KDF", PROPERTIES, provider_tls13_kdf, "TLS 1.3's key schedule"},
    {NULL, NULL, NULL, NULL},
};

int provider_fail(int status)
{
    switch (status) {
    case SP_ENOMEM:
        provider_error(ERR_R_MALLOC_FAILURE);
        break;
    case SP_EINVAL:
        provider_error(PROV_R_BAD_ENCODING);
        break;
    case SP_ECANCELED:
        ERR_raise_data(ERR_LIB_PROV, ERR_R_OPERATION_FAIL, "the operation was canceled");
        break;
    default:
        ERR_raise_data(ERR_LIB_PROV, ERR_R_OPERATION_FAIL, "crypto queue: status %d", status);
        break;
    }
    return 0;
}

const char *provider_param_text(const OSSL_PARAM *p)
{
    const char *text = NULL;

    /* The library terminates all of its own, but says how long they are: trust the length. */
    if (p->data_type != OSSL_PARAM_UTF8_STRING || !p->data)
        return OSSL_PARAM_get_utf8_ptr(p, &text) ? text : NULL;
    text = p->data;
    if (p->data_size && memchr(text, 0, p->data_size))
        return text;
    return text[p->data_size] == 0 ? text : NULL;
}

int provider_param_number(const OSSL_PARAM *p, const struct provider_name *names, int *out)
{
    const char *text = provider_param_text(p);

    if (!text)
        return OSSL_PARAM_get_int(p, out);
    for (size_t i = 0; names[i].name; i++)
        if (strcasecmp(text, names[i].name) == 0) {
            *out = names[i].value;
            return 1;
        }
    return 0;
}

int provider_param_answer(OSSL_PARAM *p, const struct provider_name *names, int value)
{
    if (p->data_type != OSSL_PARAM_UTF8_STRING && p->data_type != OSSL_PARAM_UTF8_PTR)
        return OSSL_PARAM_set_int(p, value);
    for (size_t i = 0; names[i].name; i++)
        if (names[i].value == value)
            return p->data_type == OSSL_PARAM_UTF8_PTR
                       ? OSSL_PARAM_set_utf8_ptr(p, names[i].name)
                       : OSSL_PARAM_set_utf8_string(p, names[i].name);
    return 0;
}

/* --- the instance ---------------------------------------------------------------------------- */

static void teardown(void *arg)
{
    struct provider *p = arg;

    if (!p)
        return;
    provider_digests_release(p);
    if (p->inner_default)
        OSSL_PROVIDER_unload(p->inner_default);
    OSSL_LIB_CTX_free(p->inner);
    OPENSSL_free(p);
}

static const OSSL_ALGORITHM *query(void *arg, int operation, int *no_cache)
{
    *no_cache = 0;
    switch (operation) {
    case OSSL_OP_KEYMGMT:
        return keymgmts;
    case OSSL_OP_KEYEXCH:
        return exchanges;
    case OSSL_OP_SIGNATURE:
        return signatures;
    case OSSL_OP_ASYM_CIPHER:
        return ciphers;
    case OSSL_OP_KDF:
        return kdfs;
    default:
        return NULL;
    }
}

static const OSSL_PARAM *gettable_params(void *arg)
{
    static const OSSL_PARAM list[] = {
        OSSL_PARAM_utf8_ptr(OSSL_PROV_PARAM_NAME, NULL, 0),
        OSSL_PARAM_utf8_ptr(OSSL_PROV_PARAM_VERSION, NULL, 0),
        OSSL_PARAM_utf8_ptr(OSSL_PROV_PARAM_BUILDINFO, NULL, 0),
        OSSL_PARAM_int(OSSL_PROV_PARAM_STATUS, NULL),
        OSSL_PARAM_END,
    };

    return list;
}

static int get_params(void *arg, OSSL_PARAM params[])
{
    OSSL_PARAM *p;

    p = OSSL_PARAM_locate(params, OSSL_PROV_PARAM_NAME);
    if (p && !OSSL_PARAM_set_utf8_ptr(p, "Sallyport crypto queue"))
        return 0;
    p = OSSL_PARAM_locate(params, OSSL_PROV_PARAM_VERSION);
    if (p && !OSSL_PARAM_set_utf8_ptr(p, SP_VERSION))
        return 0;
    p = OSSL_PARAM_locate(params, OSSL_PROV_PARAM_BUILDINFO);
    if (p && !OSSL_PARAM_set_utf8_ptr(p, SP_VERSION))
        return 0;
    p = OSSL_PARAM_locate(params, OSSL_PROV_PARAM_STATUS);
    return !p || OSSL_PARAM_set_int(p, 1);
}

struct capability_filter {
    OSSL_CALLBACK *callback;
    void *arg;
};

static int pass_our_groups(const OSSL_PARAM params[], void *arg)
{
    const struct capability_filter *f = arg;
    const OSSL_PARAM *p = OSSL_PARAM_locate_const(params, OSSL_CAPABILITY_TLS_GROUP_ALG);
    const char *text = p ? provider_param_text(p) : NULL;

    if (text && (strcmp(text, "EC") == 0 || strcmp(text, "X25519") == 0))
        return f->callback(params, f->arg);
    return 1;
}

/*
 * libssl takes a group only from the provider that its key type is fetched from, so the groups of
 * our key types have to be offered here: those of the default provider, word for word.
 */
static int get_capabilities(void *arg, const char *capability, OSSL_CALLBACK *callback,
                            void *callback_arg)
{
    struct provider *p = arg;
    struct capability_filter f = {callback, callback_arg};

    if (strcasecmp(capability, "TLS-GROUP") != 0)
        return 0;
    return OSSL_PROVIDER_get_capabilities(p->inner_default, "TLS-GROUP", pass_our_groups, &f);
}

static const OSSL_DISPATCH dispatch[] = {
    {OSSL_FUNC_PROVIDER_TEARDOWN, (void (*)(void))teardown},
    {OSSL_FUNC_PROVIDER_GETTABLE_PARAMS, (void (*)(void))gettable_params},
    {OSSL_FUNC_PROVIDER_GET_PARAMS, (void (*)(void))get_params},
    {OSSL_FUNC_PROVIDER_QUERY_OPERATION, (void (*)(void))query},
    {OSSL_FUNC_PROVIDER_GET_CAPABILITIES, (void (*)(void))get_capabilities},
    {0, NULL},
};

int sp_provider_init(const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *in,
                     const OSSL_DISPATCH **out, void **context)
{
    struct provider *p = OPENSSL_zalloc(sizeof(*p));

    if (!p)
        return 0;
    p->handle = handle;
    p->inner = OSSL_LIB_CTX_new();
    p->inner_default = p->inner ? OSSL_PROVIDER_load(p->inner, "default") : NULL;
    if (!p->inner_default || !provider_digests_init(p)) {
        teardown(p);
        return 0;
    }
    *out = dispatch;
    *context = p;
    return 1;
}

EVP_PKEY *sp_provider_adopt(OSSL_LIB_CTX *libctx, EVP_PKEY *key)
{
    const char *type = EVP_PKEY_get0_type_name(key);
    bool ours = type && (strcmp(type, "RSA") == 0 || strcmp(type, "EC") == 0 ||
                         strcmp(type, "X25519") == 0);
    OSSL_PARAM *params = NULL;
    EVP_PKEY *copy = NULL;
    EVP_PKEY_CTX *ctx;

    if (!ours)
        return EVP_PKEY_up_ref(key) ? key : NULL;
    ctx = EVP_PKEY_CTX_new_from_name(libctx, type, "?" PROPERTIES);
    if (ctx && EVP_PKEY_todata(key, EVP_PKEY_KEYPAIR, &params) > 0 &&
        EVP_PKEY_fromdata_init(ctx) > 0 &&
        EVP_PKEY_fromdata(ctx, &copy, EVP_PKEY_KEYPAIR, params) <= 0)
        copy = NULL;
    OSSL_PARAM_free(params);
    EVP_PKEY_CTX_free(ctx);
    return copy;
}
