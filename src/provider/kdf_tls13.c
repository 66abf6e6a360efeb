/*
 * TLS 1.3's key schedule (RFC 8446, section 7.1) as a KDF: libssl asks for some twenty derivations a handshake,
 * each of a few hash blocks, and the default provider's costs more in contexts and look-ups than in
 * hashing. SHA-256 and SHA-384 with all parameters in one call, as libssl makes it, are computed here; whatever else is
 * asked goes to the default provider.
 */
#define OPENSSL_SUPPRESS_DEPRECATED /* SHA256_CTX and SHA512_CTX: hashes without an object around them */

#include "provider/internal.h"

#include <openssl/kdf.h>
#include <openssl/sha.h>

#define BLOCK_MAX_BYTES SHA512_CBLOCK
#define HASH_MAX_BYTES SHA384_DIGEST_LENGTH
#define LABEL_MAX_BYTES 255 /* HkdfLabel.label and its prefix, and the context: a byte of length each */

struct provider_kdf {
    struct provider *provider;
    EVP_KDF_CTX *inner; /* NULL: nothing unusual has been asked */
};

/* --- HMAC (RFC 2104) -------------------------------------------------------------------------- */

struct hash {
    bool is_sha384;
    union {
        SHA256_CTX sha256;
        SHA512_CTX sha512;
    } u;
};

static size_t hash_bytes(bool is_sha384)
{
    return is_sha384 ? SHA384_DIGEST_LENGTH : SHA256_DIGEST_LENGTH;
}

static void hash_begin(struct hash *h, bool is_sha384)
{
    h->is_sha384 = is_sha384;
    if (is_sha384)
        SHA384_Init(&h->u.sha512);
    else
        SHA256_Init(&h->u.sha256);
}

static void hash_add(struct hash *h, const void *data, size_t len)
{
    if (h->is_sha384)
        SHA384_Update(&h->u.sha512, data, len);
    else
        SHA256_Update(&h->u.sha256, data, len);
}

static void hash_end(struct hash *h, uint8_t *out)
{
    if (h->is_sha384)
        SHA384_Final(out, &h->u.sha512);
    else
        SHA256_Final(out, &h->u.sha256);
}

struct hmac {
    struct hash inner, outer;
};

static void hmac_begin(struct hmac *m, bool is_sha384, const uint8_t *key, size_t len)
{
    size_t block = is_sha384 ? SHA512_CBLOCK : SHA256_CBLOCK;
    uint8_t pad[BLOCK_MAX_BYTES] = {0};

    if (len > block) {
        hash_begin(&m->inner, is_sha384);
        hash_add(&m->inner, key, len);
        hash_end(&m->inner, pad);
    } else if (len) {
        memcpy(pad, key, len);
    }
    for (size_t i = 0; i < block; i++)
        pad[i] ^= 0x36;
    hash_begin(&m->inner, is_sha384);
    hash_add(&m->inner, pad, block);
    for (size_t i = 0; i < block; i++)
        pad[i] ^= 0x36 ^ 0x5c;
    hash_begin(&m->outer, is_sha384);
    hash_add(&m->outer, pad, block);
    OPENSSL_cleanse(pad, sizeof(pad));
}

/* `m` may be used again: it is as after hmac_begin. */
static void hmac_of(const struct hmac *m, const uint8_t *first, size_t first_len, const uint8_t *second,
                    size_t second_len, uint8_t *out)
{
    struct hash inner = m->inner, outer = m->outer;
    uint8_t digest[HASH_MAX_BYTES];

    hash_add(&inner, first, first_len);
    hash_add(&inner, second, second_len);
    hash_end(&inner, digest);
    hash_add(&outer, digest, hash_bytes(m->inner.is_sha384));
    hash_end(&outer, out);
    OPENSSL_cleanse(digest, sizeof(digest));
    OPENSSL_cleanse(&inner, sizeof(inner));
    OPENSSL_cleanse(&outer, sizeof(outer));
}

/* --- the key schedule --------------------------------------------------------------------------- */

struct request {
    int mode;
    bool is_sha384, has_key, has_salt;
    struct sp_bytes key, salt, prefix, label, data;
};

/* HKDF-Expand-Label (RFC 8446, 7.1) over HKDF-Expand (RFC 5869, 2.3). */
static int expand_label(const struct request *r, struct sp_bytes secret, struct sp_bytes context, uint8_t *out,
                        size_t out_len)
{
    uint8_t info[4 + 2 * LABEL_MAX_BYTES + 1], block[HASH_MAX_BYTES];
    size_t label_len = r->prefix.len + r->label.len, hash_len = hash_bytes(r->is_sha384), at = 0;
    struct hmac m;

    if (label_len > LABEL_MAX_BYTES || context.len > LABEL_MAX_BYTES || out_len > 255 * hash_len)
        return 0;
    info[at++] = (uint8_t)(out_len >> 8);
    info[at++] = (uint8_t)out_len;
    info[at++] = (uint8_t)label_len;
    memcpy(info + at, r->prefix.data, r->prefix.len);
    memcpy(info + at + r->prefix.len, r->label.data, r->label.len);
    at += label_len;
    info[at++] = (uint8_t)context.len;
    if (context.len)
        memcpy(info + at, context.data, context.len);
    at += context.len;
    hmac_begin(&m, r->is_sha384, secret.data, secret.len);
    for (unsigned n = 1; out_len > 0; n++) {
        size_t take = out_len < hash_len ? out_len : hash_len;

        info[at] = (uint8_t)n;
        hmac_of(&m, block, n > 1 ? hash_len : 0, info, at + 1, block);
        memcpy(out, block, take);
        out += take;
        out_len -= take;
    }
    OPENSSL_cleanse(&m, sizeof(m));
    OPENSSL_cleanse(block, sizeof(block));
    return 1;
}

/*
 * The next secret of the schedule's column: HKDF-Extract of the key (none: zeros) with the salt that
 * Derive-Secret(previous, "derived", "") gives (no previous one: zeros).
 */
static int extract(const struct request *r, uint8_t *out, size_t out_len)
{
    static const uint8_t zeros[HASH_MAX_BYTES];
    size_t hash_len = hash_bytes(r->is_sha384);
    struct sp_bytes key = r->has_key ? r->key : (struct sp_bytes){zeros, hash_len};
    uint8_t salt[HASH_MAX_BYTES], empty[HASH_MAX_BYTES];
    size_t salt_len = 0;
    struct hash h;
    struct hmac m;

    if (out_len != hash_len)
        return 0;
    if (r->has_salt) {
        hash_begin(&h, r->is_sha384);
        hash_end(&h, empty);
        if (!expand_label(r, (struct sp_bytes){r->salt.data, hash_len}, (struct sp_bytes){empty, hash_len}, salt,
                          hash_len))
            return 0;
        salt_len = hash_len;
    }
    hmac_begin(&m, r->is_sha384, salt, salt_len);
    hmac_of(&m, key.data, key.len, NULL, 0, out);
    OPENSSL_cleanse(&m, sizeof(m));
    OPENSSL_cleanse(salt, sizeof(salt));
    return 1;
}

/* --- parameters ------------------------------------------------------------------------------------ */

static bool take_bytes(const OSSL_PARAM *p, struct sp_bytes *out)
{
    if (p->data_type != OSSL_PARAM_OCTET_STRING || (!p->data && p->data_size))
        return false;
    *out = (struct sp_bytes){p->data, p->data_size};
    return true;
}

/* False: not one of the calls that are computed here. */
static bool read_request(const OSSL_PARAM *p, struct request *r)
{
    bool has_digest = false, has_mode = false, ok = true;

    *r = (struct request){0};
    for (; p && p->key && ok; p++) {
        if (strcmp(p->key, OSSL_KDF_PARAM_KEY) == 0)
            ok = r->has_key = take_bytes(p, &r->key);
        else if (strcmp(p->key, OSSL_KDF_PARAM_SALT) == 0)
            ok = r->has_salt = take_bytes(p, &r->salt);
        else if (strcmp(p->key, OSSL_KDF_PARAM_PREFIX) == 0)
            ok = take_bytes(p, &r->prefix);
        else if (strcmp(p->key, OSSL_KDF_PARAM_LABEL) == 0)
            ok = take_bytes(p, &r->label);
        else if (strcmp(p->key, OSSL_KDF_PARAM_DATA) == 0)
            ok = take_bytes(p, &r->data);
        else if (strcmp(p->key, OSSL_KDF_PARAM_MODE) == 0)
            ok = has_mode = p->data_type == OSSL_PARAM_INTEGER && OSSL_PARAM_get_int(p, &r->mode);
        else if (strcmp(p->key, OSSL_KDF_PARAM_DIGEST) == 0) {
            const char *name = provider_param_text(p);

            r->is_sha384 = name && strcasecmp(name, "SHA384") == 0;
            ok = has_digest = r->is_sha384 || (name && strcasecmp(name, "SHA256") == 0);
        } else {
            ok = false;
        }
    }
    if (!ok || !has_digest || !has_mode || !r->prefix.len || !r->label.len)
        return false;
    if (r->mode == EVP_KDF_HKDF_MODE_EXPAND_ONLY)
        return r->has_key && !r->has_salt;
    return r->mode == EVP_KDF_HKDF_MODE_EXTRACT_ONLY && (!r->has_salt || r->salt.len >= hash_bytes(r->is_sha384));
}

/* --- dispatch ---------------------------------------------------------------------------------------- */

static void *kdf_new(void *arg)
{
    struct provider_kdf *k = OPENSSL_zalloc(sizeof(*k));

    if (k)
        k->provider = arg;
    return k;
}

static void kdf_free(void *arg)
{
    struct provider_kdf *k = arg;

    if (!k)
        return;
    EVP_KDF_CTX_free(k->inner);
    OPENSSL_free(k);
}

static EVP_KDF_CTX *inner_of(struct provider_kdf *k)
{
    EVP_KDF *kdf;

    if (!k->inner) {
        kdf = EVP_KDF_fetch(k->provider->inner, OSSL_KDF_NAME_TLS1_3_KDF, NULL);
        k->inner = EVP_KDF_CTX_new(kdf);
        EVP_KDF_free(kdf);
    }
    return k->inner;
}

static void *kdf_dup(void *arg)
{
    const struct provider_kdf *k = arg;
    struct provider_kdf *copy = kdf_new(k->provider);

    if (copy && k->inner && !(copy->inner = EVP_KDF_CTX_dup(k->inner))) {
        kdf_free(copy);
        return NULL;
    }
    return copy;
}

static void kdf_reset(void *arg)
{
    struct provider_kdf *k = arg;

    EVP_KDF_CTX_free(k->inner);
    k->inner = NULL;
}

static int kdf_derive(void *arg, unsigned char *out, size_t out_len, const OSSL_PARAM params[])
{
    struct provider_kdf *k = arg;
    struct request r;

    if (!k->inner && read_request(params, &r))
        return r.mode == EVP_KDF_HKDF_MODE_EXPAND_ONLY ? expand_label(&r, r.key, r.data, out, out_len)
                                                       : extract(&r, out, out_len);
    return inner_of(k) && EVP_KDF_derive(k->inner, out, out_len, params) > 0;
}

static int kdf_set_params(void *arg, const OSSL_PARAM params[])
{
    struct provider_kdf *k = arg;

    if (!params || !params->key)
        return 1;
    return inner_of(k) && EVP_KDF_CTX_set_params(k->inner, params);
}

static int kdf_get_params(void *arg, OSSL_PARAM params[])
{
    struct provider_kdf *k = arg;

    return inner_of(k) && EVP_KDF_CTX_get_params(k->inner, params);
}

static const OSSL_PARAM *kdf_settable(void *arg, void *provider)
{
    static const OSSL_PARAM list[] = {
        OSSL_PARAM_utf8_string(OSSL_KDF_PARAM_MODE, NULL, 0),
        OSSL_PARAM_int(OSSL_KDF_PARAM_MODE, NULL),
        OSSL_PARAM_utf8_string(OSSL_KDF_PARAM_PROPERTIES, NULL, 0),
        OSSL_PARAM_utf8_string(OSSL_KDF_PARAM_DIGEST, NULL, 0),
        OSSL_PARAM_octet_string(OSSL_KDF_PARAM_KEY, NULL, 0),
        OSSL_PARAM_octet_string(OSSL_KDF_PARAM_SALT, NULL, 0),
        OSSL_PARAM_octet_string(OSSL_KDF_PARAM_PREFIX, NULL, 0),
        OSSL_PARAM_octet_string(OSSL_KDF_PARAM_LABEL, NULL, 0),
        OSSL_PARAM_octet_string(OSSL_KDF_PARAM_DATA, NULL, 0),
        OSSL_PARAM_END,
    };

    return list;
}

static const OSSL_PARAM *kdf_gettable(void *arg, void *provider)
{
    static const OSSL_PARAM list[] = {OSSL_PARAM_size_t(OSSL_KDF_PARAM_SIZE, NULL), OSSL_PARAM_END};

    return list;
}

const OSSL_DISPATCH provider_tls13_kdf[] = {
    {OSSL_FUNC_KDF_NEWCTX, (void (*)(void))kdf_new},
    {OSSL_FUNC_KDF_FREECTX, (void (*)(void))kdf_free},
    {OSSL_FUNC_KDF_DUPCTX, (void (*)(void))kdf_dup},
    {OSSL_FUNC_KDF_RESET, (void (*)(void))kdf_reset},
    {OSSL_FUNC_KDF_DERIVE, (void (*)(void))kdf_derive},
    {OSSL_FUNC_KDF_SETTABLE_CTX_PARAMS, (void (*)(void))kdf_settable},
    {OSSL_FUNC_KDF_SET_CTX_PARAMS, (void (*)(void))kdf_set_params},
    {OSSL_FUNC_KDF_GETTABLE_CTX_PARAMS, (void (*)(void))kdf_gettable},
    {OSSL_FUNC_KDF_GET_CTX_PARAMS, (void (*)(void))kdf_get_params},
    {0, NULL},
};
