/*
 * X25519 (RFC 7748), eight at a time.
 */
#ifndef SP_CRYPTO_KERNEL_X25519_H
#define SP_CRYPTO_KERNEL_X25519_H

#include "crypto/kernel/lanes.h"

struct x25519_kernel {
    const char *name;
    /*
     * out = scalar * u, little-endian. Scalars are clamped inside; the top bit of u is ignored and
     * non-canonical values are taken modulo p, as the RFC says. An all-zero result is the caller's
     * to refuse. out may be scalar or u.
     */
    void (*derive)(uint8_t out[LANES][32], const uint8_t scalar[LANES][32], const uint8_t u[LANES][32]);
    /* out = scalar * 9. */
    void (*base)(uint8_t out[LANES][32], const uint8_t scalar[LANES][32]);
};

/* NULL where the instructions are missing. */
const struct x25519_kernel *x25519_kernel_ifma(void);
const struct x25519_kernel *x25519_kernel_portable(void);

#endif
