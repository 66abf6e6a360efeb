// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Ciphers, AEADs and hashes of the crypto API behind one shape. */

#include "sweep_kmod.h"

#include <crypto/authenc.h>
#include <linux/rtnetlink.h>
#include <linux/scatterlist.h>
#include <linux/version.h>

#define AEAD_KEY_BYTES 32

static struct crypto_tfm *tfm_of(const struct spk_cipher *cipher)
{
    switch (cipher->kind) {
    case SPK_SKCIPHER:
        return crypto_skcipher_tfm(cipher->tfm.skcipher);
    case SPK_AEAD:
        return crypto_aead_tfm(cipher->tfm.aead);
    default:
        return crypto_ahash_tfm(cipher->tfm.hash);
    }
}

static int alloc_tfm(struct spk_cipher *cipher, const char *name, u32 type, u32 mask)
{
    void *tfm;

    switch (cipher->kind) {
    case SPK_SKCIPHER:
        tfm = cipher->tfm.skcipher = crypto_alloc_skcipher(name, type, mask);
        break;
    case SPK_AEAD:
        tfm = cipher->tfm.aead = crypto_alloc_aead(name, type, mask);
        break;
    default:
        tfm = cipher->tfm.hash = crypto_alloc_ahash(name, type, mask);
        break;
    }
    return PTR_ERR_OR_ZERO(tfm);
}

/*
 * Implementations marked internal, such as __xts-aes-aesni, are found only by those who ask for
 * them.
 */
static int alloc_any(struct spk_cipher *cipher, const char *name, u32 mask)
{
    int status = alloc_tfm(cipher, name, 0, mask);

    if (status == -ENOENT)
        status = alloc_tfm(cipher, name, CRYPTO_ALG_INTERNAL, CRYPTO_ALG_INTERNAL | mask);
    return status;
}

static void describe(struct spk_cipher *cipher)
{
    struct crypto_alg *alg = tfm_of(cipher)->__crt_alg;

    cipher->name = alg->cra_name;
    if (strncmp(cipher->name, "__", 2) == 0)
        cipher->name += 2;
    cipher->driver = alg->cra_driver_name;
    cipher->priority = alg->cra_priority;
    cipher->granule_bytes = cipher->bytes_min = 1;
    switch (cipher->kind) {
    case SPK_SKCIPHER:
        cipher->iv_bytes = crypto_skcipher_ivsize(cipher->tfm.skcipher);
        cipher->bytes_min = cipher->granule_bytes = crypto_skcipher_blocksize(cipher->tfm.skcipher);
        /* XTS steals ciphertext: any length from one block on. */
        if (strncmp(cipher->name, "xts(", 4) == 0)
            cipher->granule_bytes = 1;
        cipher->is_keyed = true;
        break;
    case SPK_AEAD:
        cipher->iv_bytes = crypto_aead_ivsize(cipher->tfm.aead);
        cipher->tag_bytes = crypto_aead_authsize(cipher->tfm.aead);
        cipher->bytes_min = cipher->granule_bytes = crypto_aead_blocksize(cipher->tfm.aead);
        cipher->is_keyed = true;
        cipher->is_authenc = strncmp(cipher->name, "authenc(", 8) == 0;
        /*
         * The MAC covers the IV, as it does in ESP (RFC 4303), where both travel in front of the
         * ciphertext.
         */
        if (cipher->is_authenc)
            cipher->aad_bytes = cipher->iv_bytes;
        break;
    case SPK_HASH:
        cipher->tag_bytes = crypto_ahash_digestsize(cipher->tfm.hash);
        cipher->is_keyed = crypto_ahash_get_flags(cipher->tfm.hash) & CRYPTO_TFM_NEED_KEY;
        break;
    }
}

int spk_cipher_open(struct spk_cipher **out, const char *name, enum spk_op op, bool synchronous)
{
    struct spk_cipher *cipher = kzalloc(sizeof(*cipher), GFP_KERNEL);
    enum spk_kind first = op == SPK_OP_DIGEST ? SPK_HASH : SPK_SKCIPHER;
    enum spk_kind last = op == SPK_OP_DIGEST || op == SPK_OP_AUTO ? SPK_HASH : SPK_AEAD;
    u32 mask = synchronous ? CRYPTO_ALG_ASYNC : 0;
    int status;

    if (!cipher)
        return -ENOMEM;
    kref_init(&cipher->ref);
    for (cipher->kind = first;; cipher->kind++) {
        status = alloc_any(cipher, name, mask);
        if ((status != -ENOENT && status != -EINVAL) || cipher->kind == last)
            break;
    }
    if (status != 0) {
        kfree(cipher);
        return status == -EINVAL ? -ENOENT : status;
    }
    describe(cipher);
    if (cipher->kind == SPK_AEAD && cipher->tag_bytes == 0) {
        cipher->tag_bytes = crypto_aead_maxauthsize(cipher->tfm.aead);
        status = crypto_aead_setauthsize(cipher->tfm.aead, cipher->tag_bytes);
    }
    if (status == 0 && cipher->iv_bytes > SPK_IV_MAX)
        status = -EOPNOTSUPP;
    if (status != 0) {
        spk_cipher_put(cipher);
        return status;
    }
    *out = cipher;
    return 0;
}

void spk_cipher_get(struct spk_cipher *cipher)
{
    kref_get(&cipher->ref);
}

static void cipher_free(struct kref *ref)
{
    struct spk_cipher *cipher = container_of(ref, struct spk_cipher, ref);

    switch (cipher->kind) {
    case SPK_SKCIPHER:
        crypto_free_skcipher(cipher->tfm.skcipher);
        break;
    case SPK_AEAD:
        crypto_free_aead(cipher->tfm.aead);
        break;
    default:
        crypto_free_ahash(cipher->tfm.hash);
        break;
    }
    kfree(cipher);
}

void spk_cipher_put(struct spk_cipher *cipher)
{
    if (cipher)
        kref_put(&cipher->ref, cipher_free);
}

/* authenc takes both keys in one, in the shape that IPsec's netlink interface gave it. */
static int set_authenc_key(struct spk_cipher *cipher, const u8 *key, unsigned bytes)
{
    struct crypto_authenc_key_param *param;
    struct rtattr *attribute;
    unsigned mac_bytes = crypto_aead_maxauthsize(cipher->tfm.aead);
    unsigned all = RTA_SPACE(sizeof(*param)) + mac_bytes + bytes;
    u8 *blob = kzalloc(all, GFP_KERNEL);
    int status;

    if (!blob)
        return -ENOMEM;
    attribute = (struct rtattr *)blob;
    attribute->rta_type = CRYPTO_AUTHENC_KEYA_PARAM;
    attribute->rta_len = RTA_LENGTH(sizeof(*param));
    param = RTA_DATA(attribute);
    param->enckeylen = cpu_to_be32(bytes);
    memcpy(blob + RTA_SPACE(sizeof(*param)), key, min_t(unsigned, mac_bytes, SPK_KEY_MAX));
    memcpy(blob + RTA_SPACE(sizeof(*param)) + mac_bytes, key, bytes);
    status = crypto_aead_setkey(cipher->tfm.aead, blob, all);
    kfree_sensitive(blob);
    return status;
}

int spk_cipher_set_key(struct spk_cipher *cipher, const u8 *key, int key_bits)
{
    unsigned bytes = key_bits == SPK_DEFAULT ? AEAD_KEY_BYTES : (unsigned)key_bits / 8;
    int status;

    if (key_bits == SPK_DEFAULT && cipher->kind == SPK_SKCIPHER)
        bytes = min_t(unsigned, crypto_skcipher_max_keysize(cipher->tfm.skcipher), SPK_KEY_MAX);
    if (!cipher->is_keyed)
        return key_bits == SPK_DEFAULT ? 0 : -EINVAL;
    if (key_bits != SPK_DEFAULT && (key_bits <= 0 || key_bits % 8 != 0 || bytes > SPK_KEY_MAX))
        return -EINVAL;
    if (cipher->kind == SPK_SKCIPHER)
        status = crypto_skcipher_setkey(cipher->tfm.skcipher, key, bytes);
    else if (cipher->kind == SPK_HASH)
        status = crypto_ahash_setkey(cipher->tfm.hash, key, bytes);
    else if (cipher->is_authenc)
        status = set_authenc_key(cipher, key, bytes);
    else
        status = crypto_aead_setkey(cipher->tfm.aead, key, bytes);
    if (status == 0)
        cipher->key_bytes = bytes;
    return status;
}

/* Templates do not choose the generic cipher below them by themselves: it has to be named. */
static const struct {
    const char *name, *generic;
} generic_names[] = {
    {"ecb(aes)", "ecb(aes-generic)"},
    {"cbc(aes)", "cbc(aes-generic)"},
    {"ctr(aes)", "ctr(aes-generic)"},
    {"xts(aes)", "xts(ecb(aes-generic))"},
    {"gcm(aes)", "gcm_base(ctr(aes-generic),ghash-generic)"},
    {"rfc7539(chacha20,poly1305)", "rfc7539(chacha20-generic,poly1305-generic)"},
    {"hmac(sha1)", "hmac(sha1-generic)"},
    {"hmac(sha256)", "hmac(sha256-generic)"},
    {"hmac(sha512)", "hmac(sha512-generic)"},
    {"authenc(hmac(sha1),cbc(aes))", "authenc(hmac(sha1-generic),cbc(aes-generic))"},
    {"authenc(hmac(sha256),cbc(aes))", "authenc(hmac(sha256-generic),cbc(aes-generic))"},
    {"authenc(hmac(sha512),cbc(aes))", "authenc(hmac(sha512-generic),cbc(aes-generic))"},
};

bool spk_generic_name(const struct spk_cipher *cipher, char *out, size_t size)
{
    size_t i;

    for (i = 0; i < ARRAY_SIZE(generic_names); i++) {
        if (strcmp(cipher->name, generic_names[i].name) == 0)
            return strscpy(out, generic_names[i].generic, size) > 0;
    }
    if (strchr(cipher->name, '('))
        return false;
    return snprintf(out, size, "%s-generic", cipher->name) < size;
}

size_t spk_cipher_in_bytes(const struct spk_cipher *cipher, size_t bytes, enum spk_op op)
{
    if (cipher->kind != SPK_AEAD)
        return bytes;
    return cipher->aad_bytes + bytes + (op == SPK_OP_DECRYPT ? cipher->tag_bytes : 0);
}

size_t spk_cipher_out_bytes(const struct spk_cipher *cipher, size_t bytes, enum spk_op op)
{
    if (cipher->kind == SPK_HASH)
        return cipher->tag_bytes;
    if (cipher->kind == SPK_SKCIPHER)
        return bytes;
    return bytes + (op == SPK_OP_DECRYPT ? 0 : cipher->tag_bytes);
}

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static void complete_request(struct crypto_async_request *api, int status);
#else
static void complete_request(void *data, int status);
#endif

static int alloc_api(struct spk_request *request, struct spk_cipher *cipher, size_t bytes,
                     enum spk_op op)
{
    u32 flags = CRYPTO_TFM_REQ_MAY_BACKLOG | CRYPTO_TFM_REQ_MAY_SLEEP;
    struct scatterlist *in = request->in.sg;
    struct scatterlist *out = request->out.sg ? request->out.sg : in;

    switch (cipher->kind) {
    case SPK_SKCIPHER:
        request->api.skcipher = skcipher_request_alloc(cipher->tfm.skcipher, GFP_KERNEL);
        if (!request->api.any)
            return -ENOMEM;
        skcipher_request_set_callback(request->api.skcipher, flags, complete_request, request);
        skcipher_request_set_crypt(request->api.skcipher, in, out, bytes, request->iv);
        break;
    case SPK_AEAD:
        request->api.aead = aead_request_alloc(cipher->tfm.aead, GFP_KERNEL);
        if (!request->api.any)
            return -ENOMEM;
        aead_request_set_callback(request->api.aead, flags, complete_request, request);
        aead_request_set_ad(request->api.aead, cipher->aad_bytes);
        aead_request_set_crypt(request->api.aead, in, out,
                               bytes + (op == SPK_OP_DECRYPT ? cipher->tag_bytes : 0), request->iv);
        break;
    case SPK_HASH:
        request->api.hash = ahash_request_alloc(cipher->tfm.hash, GFP_KERNEL);
        if (!request->api.any)
            return -ENOMEM;
        ahash_request_set_callback(request->api.hash, flags, complete_request, request);
        ahash_request_set_crypt(request->api.hash, in, request->digest, bytes);
        break;
    }
    return 0;
}

int spk_request_init(struct spk_request *request, struct spk_cipher *cipher, size_t bytes,
                     enum spk_op op, bool in_place)
{
    /* With the tag's room, so that one buffer serves both ways. */
    size_t all = cipher->kind == SPK_AEAD ? cipher->aad_bytes + bytes + cipher->tag_bytes : bytes;
    int status = spk_buffer_init(&request->in, all);

    if (status == 0 && !in_place && cipher->kind != SPK_HASH)
        status = spk_buffer_init(&request->out, all);
    if (status == 0)
        status = alloc_api(request, cipher, bytes, op);
    if (status != 0)
        spk_request_release(request, cipher);
    return status;
}

void spk_request_release(struct spk_request *request, struct spk_cipher *cipher)
{
    if (request->api.any) {
        switch (cipher->kind) {
        case SPK_SKCIPHER:
            skcipher_request_free(request->api.skcipher);
            break;
        case SPK_AEAD:
            aead_request_free(request->api.aead);
            break;
        default:
            ahash_request_free(request->api.hash);
            break;
        }
        request->api.any = NULL;
    }
    spk_buffer_release(&request->in);
    spk_buffer_release(&request->out);
}

int spk_request_start(struct spk_request *request, const struct spk_cipher *cipher, enum spk_op op,
                      const u8 *iv)
{
    memcpy(request->iv, iv, SPK_IV_MAX); /* the last request left the chaining value in it */
    switch (cipher->kind) {
    case SPK_SKCIPHER:
        return op == SPK_OP_DECRYPT ? crypto_skcipher_decrypt(request->api.skcipher)
                                    : crypto_skcipher_encrypt(request->api.skcipher);
    case SPK_AEAD:
        return op == SPK_OP_DECRYPT ? crypto_aead_decrypt(request->api.aead)
                                    : crypto_aead_encrypt(request->api.aead);
    default:
        return crypto_ahash_digest(request->api.hash);
    }
}

size_t spk_request_result(const struct spk_request *request, const struct spk_cipher *cipher,
                          size_t bytes, enum spk_op op, u8 *out)
{
    const struct spk_buffer *buffer = request->out.sg ? &request->out : &request->in;
    size_t count = spk_cipher_out_bytes(cipher, bytes, op);

    if (cipher->kind == SPK_HASH)
        memcpy(out, request->digest, count);
    else
        sg_pcopy_to_buffer(buffer->sg, buffer->count, out, count, cipher->aad_bytes);
    return count;
}

/* The crypto API calls it with bottom halves off, in whatever context the driver finishes. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static void complete_request(struct crypto_async_request *api, int status)
{
    spk_request_completed(api->data, status);
}
#else
static void complete_request(void *data, int status)
{
    spk_request_completed(data, status);
}
#endif
