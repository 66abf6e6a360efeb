#include "measure/sweep_reference.h"

#include <sallyport/status.h>

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

static int encrypt(const struct sweep_key *key, const uint8_t *iv, const uint8_t *in, uint32_t len, uint8_t *out,
                   uint8_t *tag)
{
    const struct sweep_algorithm *algorithm = key->algorithm;
    EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, algorithm->evp_cipher, NULL);
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    int n = 0, rest = 0;
    bool ok;

    ok = cipher && ctx && EVP_EncryptInit_ex2(ctx, cipher, key->key, iv, NULL) == 1 &&
         EVP_CIPHER_CTX_set_padding(ctx, 0) == 1 && EVP_EncryptUpdate(ctx, out, &n, in, (int)len) == 1 &&
         EVP_EncryptFinal_ex(ctx, out + n, &rest) == 1 && (uint32_t)(n + rest) == len;
    if (ok && algorithm->kind == SWEEP_AEAD)
        ok = EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, (int)algorithm->tag_bytes, tag) == 1;
    EVP_CIPHER_CTX_free(ctx);
    EVP_CIPHER_free(cipher);
    return ok ? 0 : SP_EIO;
}

static int authenticate(const struct sweep_key *key, const uint8_t *iv, const uint8_t *text, uint32_t len, uint8_t *tag)
{
    const struct sweep_algorithm *algorithm = key->algorithm;
    uint8_t *joined = malloc((size_t)algorithm->iv_bytes + len);
    size_t tag_bytes = 0;
    bool ok;

    if (!joined)
        return SP_ENOMEM;
    memcpy(joined, iv, algorithm->iv_bytes);
    memcpy(joined + algorithm->iv_bytes, text, len);
    ok = EVP_Q_mac(NULL, "HMAC", NULL, algorithm->evp_digest, NULL, key->hmac_key, algorithm->hmac_key_bytes, joined,
                   algorithm->iv_bytes + (size_t)len, tag, 64, &tag_bytes) != NULL &&
         tag_bytes == algorithm->tag_bytes;
    free(joined);
    return ok ? 0 : SP_EIO;
}

int sweep_reference(const struct sweep_key *key, const uint8_t *iv, const uint8_t *in, uint32_t len, uint8_t *out,
                    uint8_t tag[64])
{
    size_t n = 0;
    int status;

    if (key->algorithm->kind == SWEEP_DIGEST)
        return EVP_Q_digest(NULL, key->algorithm->evp_digest, NULL, in, len, tag, &n) == 1 &&
                       n == key->algorithm->tag_bytes
                   ? 0
                   : SP_EIO;
    status = encrypt(key, iv, in, len, out, tag);
    if (status == 0 && key->algorithm->kind == SWEEP_CIPHER_HMAC)
        status = authenticate(key, iv, out, len, tag);
    return status;
}
