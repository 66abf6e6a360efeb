/* EMSA-PSS, RFC 8017, section 9.1.1. */
#ifndef SP_PROVIDER_PSS_H
#define SP_PROVIDER_PSS_H

#include <openssl/evp.h>

#include <stddef.h>
#include <stdint.h>

/*
 * Encodes the digest of a message for a modulus of em_len bytes, whose top bit is set (so the first
 * bit of em is 0). A random salt of salt_len bytes, or with -1 the longest that fits. The random
 * numbers are libctx's. 1, or 0 with an entry in the error queue.
 */
int provider_pss_encode(OSSL_LIB_CTX *libctx, uint8_t *em, size_t em_len, const EVP_MD *digest,
                        const EVP_MD *mgf1, const uint8_t *hashed, ptrdiff_t salt_len);

#endif
