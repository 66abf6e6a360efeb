/*
 * RSA signatures. PKCS #1 v1.5 and PSS with keys that the lanes take are padded here and computed
 * by the queue; everything else - other keys and paddings, verification - is a call to the default
 * provider.
 */
#include "provider/internal.h"
#include "provider/pss.h"

#include <openssl/rsa.h>

struct rsa_signature {
    struct provider *provider;
    struct provider_rsa_key *key;
    struct provider_hash hash;
    EVP_MD *mgf1; /* NULL: as the digest */
    int padding;
    int salt_len; /* or RSA_PSS_SALTLEN_... */
    bool fixed;   /* the digest was given with the message's start and stays */
};

const struct provider_name provider_rsa_paddings[] = {
    {OSSL_PKEY_RSA_PAD_MODE_PKCSV15, RSA_PKCS1_PADDING},
    {OSSL_PKEY_RSA_PAD_MODE_NONE, RSA_NO_PADDING},
    {OSSL_PKEY_RSA_PAD_MODE_OAEP, RSA_PKCS1_OAEP_PADDING},
    {"oeap", RSA_PKCS1_OAEP_PADDING},
    {OSSL_PKEY_RSA_PAD_MODE_X931, RSA_X931_PADDING},
    {OSSL_PKEY_RSA_PAD_MODE_PSS, RSA_PKCS1_PSS_PADDING},
    {NULL, 0},
};

#define SALT_AUTO_DIGEST_MAX \
    (-4) /* of OpenSSL 3.1; as long as the digest, or less if that does not fit */

static const struct provider_name salt_lengths[] = {
    {OSSL_PKEY_RSA_PSS_SALT_LEN_DIGEST, RSA_PSS_SALTLEN_DIGEST},
    {OSSL_PKEY_RSA_PSS_SALT_LEN_MAX, RSA_PSS_SALTLEN_MAX},
    {OSSL_PKEY_RSA_PSS_SALT_LEN_AUTO, RSA_PSS_SALTLEN_AUTO},
    {"auto-digestmax", SALT_AUTO_DIGEST_MAX},
    {NULL, 0},
};

static void *rsa_new(void *provider, const char *properties)
{
    struct rsa_signature *s = OPENSSL_zalloc(sizeof(*s));

    if (!s)
        return NULL;
    s->provider = provider;
    s->padding = RSA_PKCS1_PADDING;
    s->salt_len = RSA_PSS_SALTLEN_AUTO;
    return s;
}

static void rsa_free(void *arg)
{
    struct rsa_signature *s = arg;

    if (!s)
        return;
    provider_rsa_key_free(s->key);
    provider_hash_release(&s->hash);
    EVP_MD_free(s->mgf1);
    OPENSSL_free(s);
}

/*
 * --- parameters
 * -----------------------------------------------------------------------------------------
 */

static int set_digest(struct rsa_signature *s, const char *name)
{
    EVP_MD *digest = provider_digest(s->provider, name);

    if (!digest)
        return 0;
    if (s->fixed && digest != s->hash.digest) {
        EVP_MD_free(digest);
        provider_error(PROV_R_DIGEST_NOT_ALLOWED);
        return 0;
    }
    EVP_MD_free(s->hash.digest);
    s->hash.digest = digest;
    return 1;
}

static int set_padding(struct rsa_signature *s, const OSSL_PARAM *p)
{
    int padding;

    if (!provider_param_number(p, provider_rsa_paddings, &padding))
        return 0;
    switch (padding) {
    case RSA_PKCS1_PADDING:
    case RSA_NO_PADDING:
    case RSA_X931_PADDING:
        break;
    case RSA_PKCS1_PSS_PADDING:
        if (!s->hash.digest && !set_digest(s, "SHA1"))
            return 0;
        break;
    default:
        provider_error(PROV_R_ILLEGAL_OR_UNSUPPORTED_PADDING_MODE);
        return 0;
    }
    s->padding = padding;
    return 1;
}

/* Numbers may be text too, those of the names included ("-1"). */
static int salt_length_of(const char *text)
{
    char *end = NULL;
    long value = text ? strtol(text, &end, 10) : 0;

    if (!text || end == text || *end || value < SALT_AUTO_DIGEST_MAX || value > 65536)
        return SALT_AUTO_DIGEST_MAX - 1;
    return (int)value;
}

static int set_pss(struct rsa_signature *s, const OSSL_PARAM params[])
{
    const OSSL_PARAM *p = OSSL_PARAM_locate_const(params, OSSL_SIGNATURE_PARAM_PSS_SALTLEN);
    const char *name;
    EVP_MD *digest;
    int n;

    if (p) {
        name = provider_param_text(p);
        if (!provider_param_number(p, salt_lengths, &n))
            n = salt_length_of(name);
        if (s->padding != RSA_PKCS1_PSS_PADDING || n < SALT_AUTO_DIGEST_MAX) {
            provider_error(PROV_R_INVALID_SALT_LENGTH);
            return 0;
        }
        s->salt_len = n;
    }
    p = OSSL_PARAM_locate_const(params, OSSL_SIGNATURE_PARAM_MGF1_DIGEST);
    if (p) {
        if (s->padding != RSA_PKCS1_PSS_PADDING) {
            provider_error(PROV_R_INVALID_MGF1_MD);
            return 0;
        }
        name = provider_param_text(p);
        digest = name ? provider_digest(s->provider, name) : NULL;
        if (!digest)
            return 0;
        EVP_MD_free(s->mgf1);
        s->mgf1 = digest;
    }
    return 1;
}

static int rsa_set_params(void *arg, const OSSL_PARAM params[])
{
    struct rsa_signature *s = arg;
    const OSSL_PARAM *p;
    const char *name;

    if (!params)
        return 1;
    p = OSSL_PARAM_locate_const(params, OSSL_SIGNATURE_PARAM_DIGEST);
    if (p) {
        name = provider_param_text(p);
        if (!name || !set_digest(s, name))
            return 0;
    }
    p = OSSL_PARAM_locate_const(params, OSSL_SIGNATURE_PARAM_PAD_MODE);
    if (p && !set_padding(s, p))
        return 0;
    return set_pss(s, params);
}

/* The parameters that a context of the default provider needs for the same. */
struct inner_params {
    OSSL_PARAM list[5];
    int padding, salt_len;
    char digest[64], mgf1[64];
};

static void describe(const struct rsa_signature *s, bool with_digest, struct inner_params *d)
{
    OSSL_PARAM *p = d->list;

    d->padding = s->padding;
    d->salt_len = s->salt_len;
    if (with_digest && s->hash.digest) {
        snprintf(d->digest, sizeof(d->digest), "%s", EVP_MD_get0_name(s->hash.digest));
        *p++ = OSSL_PARAM_construct_utf8_string(OSSL_SIGNATURE_PARAM_DIGEST, d->digest, 0);
    }
    *p++ = OSSL_PARAM_construct_int(OSSL_SIGNATURE_PARAM_PAD_MODE, &d->padding);
    if (s->padding == RSA_PKCS1_PSS_PADDING) {
        *p++ = OSSL_PARAM_construct_int(OSSL_SIGNATURE_PARAM_PSS_SALTLEN, &d->salt_len);
        if (s->mgf1) {
            snprintf(d->mgf1, sizeof(d->mgf1), "%s", EVP_MD_get0_name(s->mgf1));
            *p++ = OSSL_PARAM_construct_utf8_string(OSSL_SIGNATURE_PARAM_MGF1_DIGEST, d->mgf1, 0);
        }
    }
    *p = OSSL_PARAM_construct_end();
}

static int rsa_get_params(void *arg, OSSL_PARAM params[])
{
    struct rsa_signature *s = arg;
    const EVP_MD *mgf1 = s->mgf1 ? s->mgf1 : s->hash.digest;
    struct inner_params d;
    OSSL_PARAM *p;

    p = OSSL_PARAM_locate(params, OSSL_SIGNATURE_PARAM_DIGEST);
    if (p && !OSSL_PARAM_set_utf8_string(p, s->hash.digest ? EVP_MD_get0_name(s->hash.digest) : ""))
        return 0;
    p = OSSL_PARAM_locate(params, OSSL_SIGNATURE_PARAM_MGF1_DIGEST);
    if (p && !OSSL_PARAM_set_utf8_string(p, mgf1 ? EVP_MD_get0_name(mgf1) : ""))
        return 0;
    p = OSSL_PARAM_locate(params, OSSL_SIGNATURE_PARAM_PAD_MODE);
    if (p && !provider_param_answer(p, provider_rsa_paddings, s->padding))
        return 0;
    p = OSSL_PARAM_locate(params, OSSL_SIGNATURE_PARAM_PSS_SALTLEN);
    if (p && !provider_param_answer(p, salt_lengths, s->salt_len)) {
        char text[16];

        snprintf(text, sizeof(text), "%d", s->salt_len);
        if (!OSSL_PARAM_set_utf8_string(p, text))
            return 0;
    }
    p = OSSL_PARAM_locate(params, OSSL_SIGNATURE_PARAM_ALGORITHM_ID);
    if (!p)
        return 1;
    describe(s, false, &d);
    return s->key && s->key->inner &&
           provider_inner_algorithm_id(s->provider, s->key->inner, s->hash.digest, d.list, p);
}

static const OSSL_PARAM *rsa_gettable(void *ctx, void *provider)
{
    static const OSSL_PARAM list[] = {
        OSSL_PARAM_octet_string(OSSL_SIGNATURE_PARAM_ALGORITHM_ID, NULL, 0),
        OSSL_PARAM_utf8_string(OSSL_SIGNATURE_PARAM_PAD_MODE, NULL, 0),
        OSSL_PARAM_utf8_string(OSSL_SIGNATURE_PARAM_DIGEST, NULL, 0),
        OSSL_PARAM_utf8_string(OSSL_SIGNATURE_PARAM_MGF1_DIGEST, NULL, 0),
        OSSL_PARAM_utf8_string(OSSL_SIGNATURE_PARAM_PSS_SALTLEN, NULL, 0),
        OSSL_PARAM_END,
    };

    return list;
}

static const OSSL_PARAM *rsa_settable(void *ctx, void *provider)
{
    static const OSSL_PARAM list[] = {
        OSSL_PARAM_utf8_string(OSSL_SIGNATURE_PARAM_PAD_MODE, NULL, 0),
        OSSL_PARAM_utf8_string(OSSL_SIGNATURE_PARAM_DIGEST, NULL, 0),
        OSSL_PARAM_utf8_string(OSSL_SIGNATURE_PARAM_PROPERTIES, NULL, 0),
        OSSL_PARAM_utf8_string(OSSL_SIGNATURE_PARAM_MGF1_DIGEST, NULL, 0),
        OSSL_PARAM_utf8_string(OSSL_SIGNATURE_PARAM_MGF1_PROPERTIES, NULL, 0),
        OSSL_PARAM_utf8_string(OSSL_SIGNATURE_PARAM_PSS_SALTLEN, NULL, 0),
        OSSL_PARAM_END,
    };

    return list;
}

/*
 * --- beginning
 * ---------------------------------------------------------------------------------------------
 */

static int start(struct rsa_signature *s, void *key, const OSSL_PARAM params[])
{
    s->fixed = false;
    if (key) {
        provider_rsa_key_free(s->key);
        s->key = provider_rsa_key_ref(key);
    }
    if (!s->key) {
        provider_error(PROV_R_NO_KEY_SET);
        return 0;
    }
    s->padding = RSA_PKCS1_PADDING;
    s->salt_len = RSA_PSS_SALTLEN_AUTO;
    return 1;
}

static int rsa_init(void *arg, void *key, const OSSL_PARAM params[])
{
    return start(arg, key, params) && rsa_set_params(arg, params);
}

static int rsa_hash_init(void *arg, const char *name, void *key, const OSSL_PARAM params[])
{
    struct rsa_signature *s = arg;

    if (!start(s, key, params))
        return 0;
    if (name && *name ? !set_digest(s, name) : !s->hash.digest && !set_digest(s, "SHA256"))
        return 0;
    s->fixed = true;
    return rsa_set_params(s, params) && provider_hash_begin(&s->hash);
}

/*
 * --- signing
 * ---------------------------------------------------------------------------------------------
 */

static EVP_PKEY_CTX *inner_ctx(const struct rsa_signature *s, int (*init)(EVP_PKEY_CTX *ctx))
{
    EVP_PKEY_CTX *ctx = NULL;
    struct inner_params d;

    describe(s, true, &d);
    if (s->key && s->key->inner)
        ctx = EVP_PKEY_CTX_new_from_pkey(s->provider->inner, s->key->inner, NULL);
    if (ctx && init(ctx) > 0 && EVP_PKEY_CTX_set_params(ctx, d.list) > 0)
        return ctx;
    EVP_PKEY_CTX_free(ctx);
    return NULL;
}

static int sign_inner(struct rsa_signature *s, uint8_t *sig, size_t *sig_len, size_t room,
                      const uint8_t *in, size_t in_len)
{
    EVP_PKEY_CTX *ctx = inner_ctx(s, EVP_PKEY_sign_init);
    int ok;

    if (!ctx)
        return 0;
    *sig_len = room;
    ok = provider_inner_run(PROVIDER_INNER_SIGN, ctx, in, in_len, sig, sig_len);
    EVP_PKEY_CTX_free(ctx);
    return ok;
}

/* 1: padded; 0: failed; -1: nothing that is done here. */
static int pad(struct rsa_signature *s, uint8_t *em, size_t em_len, const uint8_t *in,
               size_t in_len)
{
    const EVP_MD *digest = s->hash.digest;
    const char *name = provider_digest_name(s->provider, digest);
    struct sp_bytes prefix = {NULL, 0}, message = {in, in_len};
    ptrdiff_t salt_len = s->salt_len;

    if (s->padding == RSA_PKCS1_PSS_PADDING) {
        if (salt_len == RSA_PSS_SALTLEN_DIGEST)
            salt_len = EVP_MD_get_size(digest);
        else if (salt_len < 0 && salt_len != SALT_AUTO_DIGEST_MAX)
            salt_len = -1;
        else if (salt_len < 0)
            salt_len =
                (size_t)EVP_MD_get_size(digest) * 2 + 2 <= em_len ? EVP_MD_get_size(digest) : -1;
        return provider_pss_encode(s->provider->inner, em, em_len, digest,
                                   s->mgf1 ? s->mgf1 : digest, in, salt_len);
    }
    if (s->padding != RSA_PKCS1_PADDING)
        return -1;
    /* TLS 1.1 signs the two digests as they are, and so does whoever names no digest at all. */
    if (digest &&
        (!name || (strcmp(name, "MD5-SHA1") != 0 && sp_rsa_digest_info(name, &prefix) != 0)))
        return -1;
    if (sp_rsa_encode_pkcs1(em, em_len, prefix, message) != 0) {
        provider_error(PROV_R_KEY_SIZE_TOO_SMALL);
        return 0;
    }
    return 1;
}

static int rsa_sign(void *arg, unsigned char *sig, size_t *sig_len, size_t room,
                    const unsigned char *in, size_t in_len)
{
    struct rsa_signature *s = arg;
    uint8_t em[PROVIDER_RSA_MAX_BYTES];
    struct sp_op op = {.kind = SP_OP_RSA_PRIVATE, .in = em, .out = em};
    size_t bytes = s->key ? provider_rsa_key_bytes(s->key) : 0;
    int padded;

    if (!bytes || !s->key->has_private) {
        provider_error(PROV_R_NOT_A_PRIVATE_KEY);
        return 0;
    }
    if (!sig) {
        *sig_len = bytes;
        return 1;
    }
    if (room < bytes) {
        provider_error(PROV_R_OUTPUT_BUFFER_TOO_SMALL);
        return 0;
    }
    if (s->hash.digest && in_len != (size_t)EVP_MD_get_size(s->hash.digest)) {
        provider_error(PROV_R_INVALID_DIGEST_LENGTH);
        return 0;
    }
    padded = s->key->fast ? pad(s, em, bytes, in, in_len) : -1;
    if (padded < 0)
        return sign_inner(s, sig, sig_len, room, in, in_len);
    if (padded == 0)
        return 0;
    op.rsa = s->key->fast;
    op.in_len = bytes;
    if (provider_run(&op) != 0)
        return provider_fail(op.status);
    memcpy(sig, em, bytes);
    *sig_len = bytes;
    return 1;
}

static int rsa_hash_update(void *arg, const unsigned char *data, size_t len)
{
    struct rsa_signature *s = arg;

    return provider_hash_update(&s->hash, data, len);
}

static int rsa_hash_sign_final(void *arg, unsigned char *sig, size_t *sig_len, size_t room)
{
    struct rsa_signature *s = arg;
    uint8_t digest[EVP_MAX_MD_SIZE];
    size_t len = 0;

    if (sig && !provider_hash_final(&s->hash, digest, &len))
        return 0;
    return rsa_sign(s, sig, sig_len, room, digest, len);
}

static int rsa_hash_sign(void *arg, unsigned char *sig, size_t *sig_len, size_t room,
                         const unsigned char *data, size_t len)
{
    if (sig && !rsa_hash_update(arg, data, len))
        return 0;
    return rsa_hash_sign_final(arg, sig, sig_len, room);
}

/*
 * --- verifying
 * ------------------------------------------------------------------------------------------
 */

static int rsa_verify(void *arg, const unsigned char *sig, size_t sig_len, const unsigned char *in,
                      size_t in_len)
{
    EVP_PKEY_CTX *ctx = inner_ctx(arg, EVP_PKEY_verify_init);
    int ok;

    if (!ctx)
        return 0;
    ok = EVP_PKEY_verify(ctx, sig, sig_len, in, in_len);
    EVP_PKEY_CTX_free(ctx);
    return ok > 0;
}

static int rsa_recover(void *arg, unsigned char *out, size_t *out_len, size_t room,
                       const unsigned char *sig, size_t sig_len)
{
    EVP_PKEY_CTX *ctx = inner_ctx(arg, EVP_PKEY_verify_recover_init);
    int ok;

    if (!ctx)
        return 0;
    *out_len = room;
    ok = EVP_PKEY_verify_recover(ctx, out, out_len, sig, sig_len);
    EVP_PKEY_CTX_free(ctx);
    return ok > 0;
}

static int rsa_hash_verify_final(void *arg, const unsigned char *sig, size_t sig_len)
{
    struct rsa_signature *s = arg;
    uint8_t digest[EVP_MAX_MD_SIZE];
    size_t len;

    return provider_hash_final(&s->hash, digest, &len) && rsa_verify(s, sig, sig_len, digest, len);
}

static void *rsa_dup(void *arg)
{
    const struct rsa_signature *from = arg;
    struct rsa_signature *to = rsa_new(from->provider, NULL);

    if (!to)
        return NULL;
    to->padding = from->padding;
    to->salt_len = from->salt_len;
    to->fixed = from->fixed;
    if (from->key)
        to->key = provider_rsa_key_ref(from->key);
    if (from->mgf1 && EVP_MD_up_ref(from->mgf1))
        to->mgf1 = from->mgf1;
    if (provider_hash_copy(&to->hash, &from->hash))
        return to;
    rsa_free(to);
    return NULL;
}

const OSSL_DISPATCH provider_rsa_signature[] = {
    {OSSL_FUNC_SIGNATURE_NEWCTX, (void (*)(void))rsa_new},
    {OSSL_FUNC_SIGNATURE_FREECTX, (void (*)(void))rsa_free},
    {OSSL_FUNC_SIGNATURE_DUPCTX, (void (*)(void))rsa_dup},
    {OSSL_FUNC_SIGNATURE_SIGN_INIT, (void (*)(void))rsa_init},
    {OSSL_FUNC_SIGNATURE_SIGN, (void (*)(void))rsa_sign},
    {OSSL_FUNC_SIGNATURE_VERIFY_INIT, (void (*)(void))rsa_init},
    {OSSL_FUNC_SIGNATURE_VERIFY, (void (*)(void))rsa_verify},
    {OSSL_FUNC_SIGNATURE_VERIFY_RECOVER_INIT, (void (*)(void))rsa_init},
    {OSSL_FUNC_SIGNATURE_VERIFY_RECOVER, (void (*)(void))rsa_recover},
    {OSSL_FUNC_SIGNATURE_DIGEST_SIGN_INIT, (void (*)(void))rsa_hash_init},
    {OSSL_FUNC_SIGNATURE_DIGEST_SIGN_UPDATE, (void (*)(void))rsa_hash_update},
    {OSSL_FUNC_SIGNATURE_DIGEST_SIGN_FINAL, (void (*)(void))rsa_hash_sign_final},
    {OSSL_FUNC_SIGNATURE_DIGEST_SIGN, (void (*)(void))rsa_hash_sign},
    {OSSL_FUNC_SIGNATURE_DIGEST_VERIFY_INIT, (void (*)(void))rsa_hash_init},
    {OSSL_FUNC_SIGNATURE_DIGEST_VERIFY_UPDATE, (void (*)(void))rsa_hash_update},
    {OSSL_FUNC_SIGNATURE_DIGEST_VERIFY_FINAL, (void (*)(void))rsa_hash_verify_final},
    {OSSL_FUNC_SIGNATURE_GET_CTX_PARAMS, (void (*)(void))rsa_get_params},
    {OSSL_FUNC_SIGNATURE_GETTABLE_CTX_PARAMS, (void (*)(void))rsa_gettable},
    {OSSL_FUNC_SIGNATURE_SET_CTX_PARAMS, (void (*)(void))rsa_set_params},
    {OSSL_FUNC_SIGNATURE_SETTABLE_CTX_PARAMS, (void (*)(void))rsa_settable},
    {0, NULL},
};
