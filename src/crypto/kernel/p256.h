/*
 * P-256 (FIPS 186-5, SP 800-186), eight at a time. Numbers are 32 bytes, big-endian.
 */
#ifndef SP_CRYPTO_KERNEL_P256_H
#define SP_CRYPTO_KERNEL_P256_H

#include "crypto/kernel/lanes.h"

struct p256_kernel {
    const char *name;
    /* (x, y) = k * G; k in [1, n-1]: the caller draws it by rejection. */
    void (*base)(uint8_t x[LANES][32], uint8_t y[LANES][32], const uint8_t k[LANES][32]);
    /*
     * x = the x-coordinate of k * (px, py). Bit i of the result: lane i's point is valid, i.e. both
     * coordinates are below p and it lies on the curve; what stands in x of other lanes has no
     * meaning. k in [1, n-1].
     */
    unsigned (*derive)(uint8_t x[LANES][32], const uint8_t k[LANES][32], const uint8_t px[LANES][32],
                       const uint8_t py[LANES][32]);
    /*
     * What a signature needs of its nonce k: r = x(k * G) mod n and k^-1 mod n. Bit i of the result: r of
     * lane i is not zero.
     */
    unsigned (*nonce)(uint8_t r[LANES][32], uint8_t k_inverse[LANES][32], const uint8_t k[LANES][32]);
    /* s = k^-1 * (z + r*d) mod n; z any 256 bits. Bit i of the result: s of lane i is not zero. */
    unsigned (*sign)(uint8_t s[LANES][32], const uint8_t k_inverse[LANES][32], const uint8_t r[LANES][32],
                     const uint8_t z[LANES][32], const uint8_t d[LANES][32]);
};

/* NULL where the instructions are missing. */
const struct p256_kernel *p256_kernel_ifma(void);
const struct p256_kernel *p256_kernel_portable(void);

#endif
