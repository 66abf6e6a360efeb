#include "provider/pss.h"

#include "provider/internal.h"

#include <openssl/rand.h>

/* Xors MGF1(seed) onto out (appendix B.2.1). */
static int mask(EVP_MD_CTX *ctx, const EVP_MD *mgf1, const uint8_t *seed, size_t seed_len,
                uint8_t *out, size_t len)
{
    uint8_t block[EVP_MAX_MD_SIZE], counter[4];
    unsigned block_len = 0;
    size_t done = 0;

    for (uint32_t i = 0; done < len; i++) {
        counter[0] = (uint8_t)(i >> 24);
        counter[1] = (uint8_t)(i >> 16);
        counter[2] = (uint8_t)(i >> 8);
        counter[3] = (uint8_t)i;
        if (!EVP_DigestInit_ex2(ctx, mgf1, NULL) || !EVP_DigestUpdate(ctx, seed, seed_len) ||
            !EVP_DigestUpdate(ctx, counter, sizeof(counter)) ||
            !EVP_DigestFinal_ex(ctx, block, &block_len))
            return 0;
        for (size_t j = 0; j < block_len && done < len; j++)
            out[done++] ^= block[j];
    }
    return 1;
}

int provider_pss_encode(OSSL_LIB_CTX *libctx, uint8_t *em, size_t em_len, const EVP_MD *digest,
                        const EVP_MD *mgf1, const uint8_t *hashed, ptrdiff_t salt_len)
{
    static const uint8_t zeros[8];
    size_t hash_len = (size_t)EVP_MD_get_size(digest), salt_bytes, db_len;
    uint8_t *salt, *hash;
    EVP_MD_CTX *ctx;
    int ok;

    if (em_len < hash_len + 2 || (salt_len >= 0 && (size_t)salt_len > em_len - hash_len - 2)) {
        provider_error(PROV_R_KEY_SIZE_TOO_SMALL);
        return 0;
    }
    salt_bytes = salt_len < 0 ? em_len - hash_len - 2 : (size_t)salt_len;
    /* em: maskedDB || H || 0xbc, where DB is zeros, 1, salt. */
    db_len = em_len - hash_len - 1;
    hash = em + db_len;
    salt = hash - salt_bytes;
    ctx = EVP_MD_CTX_new();
    if (!ctx)
        return 0;
    memset(em, 0, db_len);
    salt[-1] = 1;
    ok = (salt_bytes == 0 || RAND_bytes_ex(libctx, salt, salt_bytes, 0) > 0) &&
         EVP_DigestInit_ex2(ctx, digest, NULL) && EVP_DigestUpdate(ctx, zeros, sizeof(zeros)) &&
         EVP_DigestUpdate(ctx, hashed, hash_len) && EVP_DigestUpdate(ctx, salt, salt_bytes) &&
         EVP_DigestFinal_ex(ctx, hash, NULL) && mask(ctx, mgf1, hash, hash_len, em, db_len);
    em[0] &= 0x7f;
    em[em_len - 1] = 0xbc;
    EVP_MD_CTX_free(ctx);
    return ok;
}
