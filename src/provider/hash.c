#include "provider/internal.h"

/* The order of struct provider's digests. */
static const struct {
    const char *name, *other;
} table[PROVIDER_DIGESTS] = {
    {"SHA256", "SHA2-256"}, {"SHA384", "SHA2-384"}, {"SHA512", "SHA2-512"},   {"SHA1", "SHA-1"},
    {"SHA224", "SHA2-224"}, {"MD5", "SSL3-MD5"},    {"MD5-SHA1", "MD5-SHA1"},
};

int provider_digests_init(struct provider *provider)
{
    for (size_t i = 0; i < PROVIDER_DIGESTS; i++) {
        provider->digests[i] = EVP_MD_fetch(provider->inner, table[i].name, NULL);
        /* All but the first two may be missing from somebody's build. */
        if (!provider->digests[i] && i < 2)
            return 0;
    }
    return 1;
}

void provider_digests_release(struct provider *provider)
{
    for (size_t i = 0; i < PROVIDER_DIGESTS; i++)
        EVP_MD_free(provider->digests[i]);
}

EVP_MD *provider_digest(const struct provider *provider, const char *name)
{
    EVP_MD *digest;

    for (size_t i = 0; i < PROVIDER_DIGESTS; i++) {
        digest = provider->digests[i];
        if (digest &&
            (strcasecmp(name, table[i].other) == 0 || strcasecmp(name, table[i].name) == 0))
            return EVP_MD_up_ref(digest) ? digest : NULL;
    }
    digest = EVP_MD_fetch(provider->inner, name, NULL);
    if (!digest)
        return NULL;
    if (EVP_MD_get_flags(digest) & EVP_MD_FLAG_XOF) {
        EVP_MD_free(digest);
        provider_error(PROV_R_XOF_DIGESTS_NOT_ALLOWED);
        return NULL;
    }
    for (size_t i = 0; i < PROVIDER_DIGESTS; i++)
        if (provider->digests[i] && EVP_MD_is_a(digest, table[i].name)) {
            EVP_MD_free(digest);
            digest = provider->digests[i];
            return EVP_MD_up_ref(digest) ? digest : NULL;
        }
    return digest;
}

const char *provider_digest_name(const struct provider *provider, const EVP_MD *digest)
{
    for (size_t i = 0; i < PROVIDER_DIGESTS; i++)
        if (digest && digest == provider->digests[i])
            return table[i].name;
    return NULL;
}

int provider_hash_begin(struct provider_hash *hash)
{
    if (!hash->digest) {
        provider_error(PROV_R_MISSING_MESSAGE_DIGEST);
        return 0;
    }
    if (!hash->ctx)
        hash->ctx = EVP_MD_CTX_new();
    return hash->ctx && EVP_DigestInit_ex2(hash->ctx, hash->digest, NULL);
}

int provider_hash_update(struct provider_hash *hash, const uint8_t *data, size_t len)
{
    if (!hash->ctx) {
        provider_error(PROV_R_NOT_INSTANTIATED);
        return 0;
    }
    return EVP_DigestUpdate(hash->ctx, data, len);
}

int provider_hash_final(struct provider_hash *hash, uint8_t out[EVP_MAX_MD_SIZE], size_t *out_len)
{
    unsigned len = 0;

    if (!hash->ctx) {
        provider_error(PROV_R_NOT_INSTANTIATED);
        return 0;
    }
    if (!EVP_DigestFinal_ex(hash->ctx, out, &len))
        return 0;
    *out_len = len;
    return 1;
}

int provider_hash_copy(struct provider_hash *to, const struct provider_hash *from)
{
    to->digest = NULL;
    to->ctx = NULL;
    if (from->digest && !EVP_MD_up_ref(from->digest))
        return 0;
    to->digest = from->digest;
    if (!from->ctx)
        return 1;
    to->ctx = EVP_MD_CTX_new();
    return to->ctx && EVP_MD_CTX_copy_ex(to->ctx, from->ctx);
}

void provider_hash_release(struct provider_hash *hash)
{
    EVP_MD_CTX_free(hash->ctx);
    EVP_MD_free(hash->digest);
    hash->ctx = NULL;
    hash->digest = NULL;
}
