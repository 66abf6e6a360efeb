#include "measure/sweep.h"

#include <string.h>

#define CIPHER(bits, mode, MODE, granule, kernel)                                                                      \
    {                                                                                                                  \
        .name = "aes-" #bits "-" mode, .kind = SWEEP_CIPHER, .key_bytes = (bits) / 8, .iv_bytes = 16,                  \
        .granule_bytes = granule, .bytes_min = granule, .evp_cipher = "AES-" #bits "-" MODE, .kernel_name = kernel     \
    }
#define GCM(bits)                                                                                                      \
    {                                                                                                                  \
        .name = "aes-" #bits "-gcm", .kind = SWEEP_AEAD, .key_bytes = (bits) / 8, .iv_bytes = 12, .tag_bytes = 16,     \
        .granule_bytes = 1, .bytes_min = 1, .evp_cipher = "AES-" #bits "-GCM", .kernel_name = "gcm(aes)"               \
    }
/* A block and more: the rest of an odd size takes ciphertext from its neighbour (IEEE 1619). */
#define XTS(bits)                                                                                                      \
    {                                                                                                                  \
        .name = "aes-" #bits "-xts", .kind = SWEEP_CIPHER, .key_bytes = (bits) / 4, .iv_bytes = 16,                    \
        .granule_bytes = 1, .bytes_min = 16, .evp_cipher = "AES-" #bits "-XTS", .kernel_name = "xts(aes)"              \
    }
#define DIGEST(word, bytes, evp)                                                                                       \
    {                                                                                                                  \
        .name = word, .kind = SWEEP_DIGEST, .tag_bytes = bytes, .granule_bytes = 1, .bytes_min = 1, .evp_digest = evp, \
        .kernel_name = word                                                                                            \
    }
/* The HMAC's key is as long as its digest, as RFC 2404 and RFC 4868 want it. */
#define CBC_HMAC(bits, word, bytes, evp)                                                                               \
    {                                                                                                                  \
        .name = "aes-" #bits "-cbc-hmac-" word, .kind = SWEEP_CIPHER_HMAC, .key_bytes = (bits) / 8, .iv_bytes = 16,    \
        .tag_bytes = bytes, .hmac_key_bytes = bytes, .granule_bytes = 16, .bytes_min = 16,                             \
        .evp_cipher = "AES-" #bits "-CBC", .evp_digest = evp, .kernel_name = "authenc(hmac(" word "),cbc(aes))"        \
    }

const struct sweep_algorithm sweep_algorithms[] = {
    CIPHER(128, "cbc", "CBC", 16, "cbc(aes)"),
    CIPHER(192, "cbc", "CBC", 16, "cbc(aes)"),
    CIPHER(256, "cbc", "CBC", 16, "cbc(aes)"),
    CIPHER(128, "ctr", "CTR", 1, "ctr(aes)"),
    CIPHER(192, "ctr", "CTR", 1, "ctr(aes)"),
    CIPHER(256, "ctr", "CTR", 1, "ctr(aes)"),
    GCM(128),
    GCM(192),
    GCM(256),
    XTS(128),
    XTS(256),
    {.name = "chacha20-poly1305",
     .kind = SWEEP_AEAD,
     .key_bytes = 32,
     .iv_bytes = 12,
     .tag_bytes = 16,
     .granule_bytes = 1,
     .bytes_min = 1,
     .evp_cipher = "ChaCha20-Poly1305",
     .kernel_name = "rfc7539(chacha20,poly1305)"},
    DIGEST("sha1", 20, "SHA1"),
    DIGEST("sha256", 32, "SHA256"),
    DIGEST("sha512", 64, "SHA512"),
    CBC_HMAC(128, "sha1", 20, "SHA1"),
    CBC_HMAC(128, "sha256", 32, "SHA256"),
    CBC_HMAC(256, "sha1", 20, "SHA1"),
    CBC_HMAC(256, "sha256", 32, "SHA256"),
    CBC_HMAC(256, "sha512", 64, "SHA512"),
};

const unsigned sweep_algorithm_count = sizeof(sweep_algorithms) / sizeof(sweep_algorithms[0]);

const struct sweep_algorithm *sweep_algorithm_find(const char *name, size_t len)
{
    for (unsigned i = 0; i < sweep_algorithm_count; i++) {
        if (strlen(sweep_algorithms[i].name) == len && memcmp(sweep_algorithms[i].name, name, len) == 0)
            return &sweep_algorithms[i];
    }
    return NULL;
}
