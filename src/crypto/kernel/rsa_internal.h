/*
 * The vector code of the RSA kernel, as a table that tests can copy and alter.
 *
 * Numbers are limb8 arrays of 10 * blocks limbs of 52 bits, the lanes independent of each other,
 * limbs normalised (below 2^52). With R = 2^(520 * blocks), every modulus here leaves at least 16
 * bits of R unused, which is what the almost-Montgomery arithmetic lives on (Gueron, "Efficient
 * software implementations of modular exponentiation", J. Cryptographic Engineering 2012).
 */
#ifndef SP_CRYPTO_KERNEL_RSA_INTERNAL_H
#define SP_CRYPTO_KERNEL_RSA_INTERNAL_H

#include "crypto/kernel/lanes.h"

#define RSA_BLOCK 10          /* limbs of a tile's side: two sides and the sums fit the registers */
#define RSA_MAX_HALF_BLOCKS 4 /* primes of 2048 bits */
#define RSA_MAX_BLOCKS 8      /* moduli of 4096 bits */
#define RSA_MAX_HALF_LIMBS (RSA_MAX_HALF_BLOCKS * RSA_BLOCK)
#define RSA_MAX_LIMBS (RSA_MAX_BLOCKS * RSA_BLOCK)

/* A modulus in each lane, all of the same number of blocks. */
struct rsa_modulus {
    unsigned blocks;
    limb8 *n;
    limb8 *fold;    /* 2^-520 mod n */
    limb8 *neg_inv; /* one limb: -n^-1 mod 2^52 */
    limb8 *t;       /* working memory, 20 * blocks limbs */
};

struct rsa_kernel {
    /* r = a * b / R mod n, below 2n + a * b / R, for a * b / R < 2^8 n. r may be a or b. */
    void (*mul)(limb8 *r, const limb8 *a, const limb8 *b, const struct rsa_modulus *m);
    void (*sqr)(limb8 *r, const limb8 *a, const struct rsa_modulus *m);
    /* r = a + b, no reduction. */
    void (*add)(limb8 *r, const limb8 *a, const limb8 *b, unsigned blocks);
    /* r = a mod n, for a < 3n. r may be a. */
    void (*canon)(limb8 *r, const limb8 *a, const struct rsa_modulus *m);
    /*
     * r = x^k, in Montgomery form, x in table[10 * blocks] (entry 1) and R mod n in entry 0. k is
     * digits[count] in base 2^window, the least first. The table has 2^window + 1 entries.
     */
    void (*exp)(limb8 *r, limb8 *table, const limb8 *digits, unsigned count, unsigned window,
                const struct rsa_modulus *m);
    /*
     * Garner: r = xq + q * ((xp - xq) * q^-1 mod p), 20 * blocks limbs, for xp < p, xq < q < 2p.
     * `coefficient` is q^-1 * R mod p; h has room for 10 * blocks limbs.
     */
    void (*join)(limb8 *r, const limb8 *xp, const limb8 *xq, const limb8 *q,
                 const limb8 *coefficient, limb8 *h, const struct rsa_modulus *p);
    /* r = lane's bit of mask ? a : b. */
    void (*select)(limb8 *r, unsigned mask, const limb8 *a, const limb8 *b, unsigned blocks);
    /* Bit i: lane i of a and b are equal. */
    unsigned (*equal)(const limb8 *a, const limb8 *b, unsigned blocks);
};

/*
 * The big-endian number in[len], len at most 512, as limbs at r[0], r[stride], and so on: stride is
 * LANES for one lane of a limb8 array.
 */
void rsa_limbs_from_bytes(uint64_t *r, size_t stride, unsigned limbs, const uint8_t *in,
                          size_t len);
/* The reverse; the number fits into len bytes, a multiple of 8. */
void rsa_limbs_to_bytes(uint8_t *out, size_t len, const uint64_t *a, size_t stride, unsigned limbs);

#endif
