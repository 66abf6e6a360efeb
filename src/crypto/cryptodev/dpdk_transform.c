/*
 * Symmetric transforms: what they are called in DPDK, and whether a device has them.
 */
#include "crypto/cryptodev/dpdk_internal.h"

#include <stdio.h>

static enum rte_crypto_cipher_algorithm cipher_of(enum cryptodev_cipher cipher)
{
    switch (cipher) {
    case CRYPTODEV_AES_CTR:
        return RTE_CRYPTO_CIPHER_AES_CTR;
    case CRYPTODEV_AES_XTS:
        return RTE_CRYPTO_CIPHER_AES_XTS;
    default:
        return RTE_CRYPTO_CIPHER_AES_CBC;
    }
}

static enum rte_crypto_aead_algorithm aead_of(enum cryptodev_cipher cipher)
{
    return cipher == CRYPTODEV_AES_GCM ? RTE_CRYPTO_AEAD_AES_GCM
                                       : RTE_CRYPTO_AEAD_CHACHA20_POLY1305;
}

static bool is_aead(const struct cryptodev_transform *t)
{
    return t->cipher == CRYPTODEV_AES_GCM || t->cipher == CRYPTODEV_CHACHA20_POLY1305;
}

static enum rte_crypto_auth_algorithm auth_of(const struct cryptodev_transform *t)
{
    static const enum rte_crypto_auth_algorithm plain[] = {
        [CRYPTODEV_SHA1] = RTE_CRYPTO_AUTH_SHA1,
        [CRYPTODEV_SHA256] = RTE_CRYPTO_AUTH_SHA256,
        [CRYPTODEV_SHA512] = RTE_CRYPTO_AUTH_SHA512,
    };
    static const enum rte_crypto_auth_algorithm hmac[] = {
        [CRYPTODEV_SHA1] = RTE_CRYPTO_AUTH_SHA1_HMAC,
        [CRYPTODEV_SHA256] = RTE_CRYPTO_AUTH_SHA256_HMAC,
        [CRYPTODEV_SHA512] = RTE_CRYPTO_AUTH_SHA512_HMAC,
    };

    return t->cipher == CRYPTODEV_NO_CIPHER ? plain[t->digest] : hmac[t->digest];
}

const char *dpdk_transform_text(const struct cryptodev_transform *t, char *out, size_t size)
{
    static const char *const ciphers[] = {
        [CRYPTODEV_NO_CIPHER] = "",      [CRYPTODEV_AES_CBC] = "AES-CBC",
        [CRYPTODEV_AES_CTR] = "AES-CTR", [CRYPTODEV_AES_XTS] = "AES-XTS",
        [CRYPTODEV_AES_GCM] = "AES-GCM", [CRYPTODEV_CHACHA20_POLY1305] = "ChaCha20-Poly1305",
    };
    static const char *const digests[] = {[CRYPTODEV_NO_DIGEST] = "",
                                          [CRYPTODEV_SHA1] = "SHA1",
                                          [CRYPTODEV_SHA256] = "SHA256",
                                          [CRYPTODEV_SHA512] = "SHA512"};

    if (t->cipher == CRYPTODEV_NO_CIPHER)
        snprintf(out, size, "%s", digests[t->digest]);
    else
        snprintf(out, size, "%s%s%s with a key of %u bytes", ciphers[t->cipher],
                 t->digest ? " and HMAC-" : "", digests[t->digest], t->key_bytes);
    return out;
}

void dpdk_forms_init(struct dpdk_forms *forms, const struct cryptodev_transform *t,
                     uint16_t iv_offset)
{
    struct rte_crypto_sym_xform *digest = &forms->first;

    *forms = (struct dpdk_forms){0};
    if (is_aead(t)) {
        forms->first.type = RTE_CRYPTO_SYM_XFORM_AEAD;
        forms->first.aead = (struct rte_crypto_aead_xform){
            .op = RTE_CRYPTO_AEAD_OP_ENCRYPT,
            .algo = aead_of(t->cipher),
            .key = {.data = t->key, .length = (uint16_t)t->key_bytes},
            .iv = {.offset = iv_offset, .length = (uint16_t)t->iv_bytes},
            .digest_length = (uint16_t)t->tag_bytes,
        };
        return;
    }
    if (t->cipher != CRYPTODEV_NO_CIPHER) {
        forms->first.type = RTE_CRYPTO_SYM_XFORM_CIPHER;
        forms->first.cipher = (struct rte_crypto_cipher_xform){
            .op = RTE_CRYPTO_CIPHER_OP_ENCRYPT,
            .algo = cipher_of(t->cipher),
            .key = {.data = t->key, .length = (uint16_t)t->key_bytes},
            .iv = {.offset = iv_offset, .length = (uint16_t)t->iv_bytes},
        };
        digest = &forms->second;
        forms->first.next = t->digest ? digest : NULL;
    }
    if (t->digest == CRYPTODEV_NO_DIGEST)
        return;
    digest->type = RTE_CRYPTO_SYM_XFORM_AUTH;
    digest->auth = (struct rte_crypto_auth_xform){
        .op = RTE_CRYPTO_AUTH_OP_GENERATE,
        .algo = auth_of(t),
        .key = {.data = t->hmac_key, .length = (uint16_t)t->hmac_key_bytes},
        .digest_length = (uint16_t)t->tag_bytes,
    };
}

static int check_one(uint8_t id, const struct rte_crypto_sym_xform *form)
{
    struct rte_cryptodev_sym_capability_idx index = {.type = form->type};
    const struct rte_cryptodev_symmetric_capability *capability;

    if (form->type == RTE_CRYPTO_SYM_XFORM_AEAD)
        index.algo.aead = form->aead.algo;
    else if (form->type == RTE_CRYPTO_SYM_XFORM_CIPHER)
        index.algo.cipher = form->cipher.algo;
    else
        index.algo.auth = form->auth.algo;
    capability = rte_cryptodev_sym_capability_get(id, &index);
    if (!capability)
        return -1;
    if (form->type == RTE_CRYPTO_SYM_XFORM_AEAD)
        return rte_cryptodev_sym_capability_check_aead(
            capability, form->aead.key.length, form->aead.digest_length, 0, form->aead.iv.length);
    if (form->type == RTE_CRYPTO_SYM_XFORM_CIPHER)
        return rte_cryptodev_sym_capability_check_cipher(capability, form->cipher.key.length,
                                                         form->cipher.iv.length);
    return rte_cryptodev_sym_capability_check_auth(capability, form->auth.key.length,
                                                   form->auth.digest_length, 0);
}

/* Each form on one device: 0 or -1. */
static int check_forms(uint8_t id, const struct dpdk_forms *forms)
{
    for (const struct rte_crypto_sym_xform *form = &forms->first; form; form = form->next) {
        if (check_one(id, form) != 0)
            return -1;
    }
    return 0;
}

int dpdk_check_transform(const struct cryptodev *device,
                         const struct cryptodev_transform *transform, struct cryptodev_why *why)
{
    struct dpdk_forms forms;
    char text[80];

    dpdk_forms_init(&forms, transform, 0);
    if (check_forms(device->id, &forms) != 0)
        return dpdk_why(why, SP_EUNSUPPORTED, "%s does not do %s", device->name,
                        dpdk_transform_text(transform, text, sizeof(text)));
    /* A scheduler claims what one of its workers can do, and gives requests to all. */
    for (unsigned i = 0; i + 1 < device->name_count; i++) {
        int id = rte_cryptodev_get_dev_id(device->names[i]);

        if (id >= 0 && check_forms((uint8_t)id, &forms) != 0)
            return dpdk_why(why, SP_EUNSUPPORTED, "the worker %s of %s does not do %s",
                            device->names[i], device->name,
                            dpdk_transform_text(transform, text, sizeof(text)));
    }
    if (forms.first.next && !(device->info.feature_flags & RTE_CRYPTODEV_FF_SYM_OPERATION_CHAINING))
        return dpdk_why(why, SP_EUNSUPPORTED, "%s does not chain a cipher and an HMAC",
                        device->name);
    return 0;
}
