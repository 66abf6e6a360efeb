/*
 * Whether a device does requests of a length: some drivers report success for results that their 16-bit lengths cut.
 */
#include "crypto/cryptodev/dpdk_internal.h"

#include "base/clock.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IV_BYTES 16
#define PATTERN 0x5a

struct trial {
    struct cryptodev_transform transform;
    struct cryptodev_request request;
    struct cryptodev_queue *queue;
    uint8_t keys[2][64], iv[IV_BYTES], tag[EVP_MAX_MD_SIZE];
    uint8_t *expected; /* IV and output */
    uint8_t expected_tag[EVP_MAX_MD_SIZE];
};

/* --- the reference ------------------------------------------------------------------------------------ */

static const char *digest_name(enum cryptodev_digest digest)
{
    return digest == CRYPTODEV_SHA1 ? "SHA1" : digest == CRYPTODEV_SHA256 ? "SHA256" : "SHA512";
}

static void cipher_name(const struct cryptodev_transform *t, char *out, size_t size)
{
    static const char *const modes[] = {[CRYPTODEV_AES_CBC] = "CBC",
                                        [CRYPTODEV_AES_CTR] = "CTR",
                                        [CRYPTODEV_AES_XTS] = "XTS",
                                        [CRYPTODEV_AES_GCM] = "GCM"};

    if (t->cipher == CRYPTODEV_CHACHA20_POLY1305)
        snprintf(out, size, "ChaCha20-Poly1305");
    else
        snprintf(out, size, "AES-%u-%s", t->key_bytes * (t->cipher == CRYPTODEV_AES_XTS ? 4 : 8),
                 modes[t->cipher]);
}

static bool reference_cipher(struct trial *trial)
{
    const struct cryptodev_transform *t = &trial->transform;
    bool is_aead = t->cipher == CRYPTODEV_AES_GCM || t->cipher == CRYPTODEV_CHACHA20_POLY1305;
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    char name[32];
    EVP_CIPHER *cipher;
    int len = 0, rest = 0;
    bool done;

    cipher_name(t, name, sizeof(name));
    cipher = EVP_CIPHER_fetch(NULL, name, NULL);
    done = ctx && cipher &&
           EVP_EncryptInit_ex2(ctx, cipher, trial->keys[0], trial->iv, NULL) == 1 &&
           EVP_CIPHER_CTX_set_padding(ctx, 0) == 1 &&
           EVP_EncryptUpdate(ctx, trial->expected + IV_BYTES, &len, trial->request.in,
                             (int)trial->request.len) == 1 &&
           EVP_EncryptFinal_ex(ctx, trial->expected + IV_BYTES + len, &rest) == 1 &&
           (!is_aead || EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, (int)t->tag_bytes,
                                            trial->expected_tag) == 1);
    EVP_CIPHER_free(cipher);
    EVP_CIPHER_CTX_free(ctx);
    return done;
}

static bool reference(struct trial *trial)
{
    const struct cryptodev_transform *t = &trial->transform;
    size_t len = trial->request.len;

    if (t->cipher == CRYPTODEV_NO_CIPHER)
        return EVP_Q_digest(NULL, digest_name(t->digest), NULL, trial->request.in, len,
                            trial->expected_tag, NULL) == 1;
    if (!reference_cipher(trial))
        return false;
    memcpy(trial->expected, trial->iv, IV_BYTES);
    return t->digest == CRYPTODEV_NO_DIGEST ||
           EVP_Q_mac(NULL, "HMAC", NULL, digest_name(t->digest), NULL, trial->keys[1],
                     t->hmac_key_bytes, trial->expected, IV_BYTES + len, trial->expected_tag,
                     sizeof(trial->expected_tag), NULL);
}

/* --- the trial ---------------------------------------------------------------------------------------- */

/* The status of the request; SP_EFAULT: done, and wrong. */
static int run(struct trial *trial)
{
    struct cryptodev_request *one = &trial->request, *done;
    uint64_t until = clock_now_ns() + DRAIN_NS;
    unsigned n = dpdk_submit(trial->queue, &one, 1);

    trial->request.status = SP_ETIMEDOUT;
    if (n == 0)
        return SP_EAGAIN;
    while (!dpdk_poll(trial->queue, &done, 1)) {
        if (clock_now_ns() >= until)
            return SP_ETIMEDOUT;
    }
    if (trial->request.status != 0)
        return trial->request.status;
    if (trial->request.out &&
        memcmp(trial->request.out, trial->expected + IV_BYTES, trial->request.len) != 0)
        return SP_EFAULT;
    return memcmp(trial->tag, trial->expected_tag, trial->transform.tag_bytes) == 0 ? 0 : SP_EFAULT;
}

static void fill(struct trial *trial, const struct cryptodev_transform *transform,
                 uint64_t request_bytes)
{
    trial->transform = *transform;
    for (unsigned i = 0; i < sizeof(trial->keys[0]); i++) {
        trial->keys[0][i] = (uint8_t)(i * 37 + 11); /* XTS refuses two equal halves */
        trial->keys[1][i] = (uint8_t)(i * 59 + 23);
    }
    trial->transform.key = trial->keys[0];
    trial->transform.hmac_key = trial->keys[1];
    trial->request = (struct cryptodev_request){
        .len = (uint32_t)request_bytes, .iv = trial->iv, .tag = trial->tag};
}

int dpdk_try(struct cryptodev *device, const struct cryptodev_transform *transform,
             uint64_t request_bytes, bool in_place, struct cryptodev_why *why)
{
    struct trial trial = {0};
    uint8_t *in, *out = NULL;
    int status;

    fill(&trial, transform, request_bytes);
    status = dpdk_queue_open_for(device, &trial.transform, 1, request_bytes, &trial.queue, why);
    if (status != 0)
        return status;
    in = dpdk_alloc(trial.queue, request_bytes);
    if (transform->cipher != CRYPTODEV_NO_CIPHER)
        out = in_place ? in : dpdk_alloc(trial.queue, request_bytes);
    trial.expected = malloc(request_bytes + 2 * IV_BYTES);
    trial.request.in = in;
    trial.request.out = out;
    status = SP_ENOMEM;
    if (in && trial.expected && (out || transform->cipher == CRYPTODEV_NO_CIPHER)) {
        memset(in, PATTERN, request_bytes);
        status = reference(&trial) ? 0 : SP_ENOMEM;
        /* A scheduler takes its workers in turn, and each has bounds of its own. */
        for (unsigned i = 0; i < (device->name_count ? device->name_count : 1) && status == 0;
             i++) {
            if (out)
                memset(out, 0, request_bytes);
            memset(in, PATTERN, request_bytes);
            status = run(&trial);
        }
    }
    free(trial.expected);
    if (status != SP_ETIMEDOUT) { /* then the device may still write there */
        if (out != in)
            dpdk_free(trial.queue, out);
        dpdk_free(trial.queue, in);
    }
    dpdk_queue_close(trial.queue);
    if (status == 0)
        return 0;
    return dpdk_why(why, SP_EUNSUPPORTED,
                    status == SP_EFAULT      ? "%s computes requests of %llu bytes wrongly"
                    : status == SP_ENOMEM    ? "%s: no memory to try a request of %llu bytes"
                    : status == SP_ETIMEDOUT ? "%s did not answer to a request of %llu bytes"
                                             : "%s refuses requests of %llu bytes",
                    device->name, (unsigned long long)request_bytes);
}
