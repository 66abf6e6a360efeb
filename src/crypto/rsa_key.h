/*
 * What an RSA key holds for the lanes, and its blinding pairs. Limbs as in kernel/rsa_internal.h.
 */
#ifndef SP_CRYPTO_RSA_KEY_H
#define SP_CRYPTO_RSA_KEY_H

#include "crypto/kernel/rsa_internal.h"

#include <sallyport/rsa.h>

#include <openssl/bn.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdatomic.h>

/*
 * Bits that one multiplication of the power consumes. With five, the table of the larger primes
 * (40 limbs * 32 entries * 64 bytes) leaves the first-level cache, and that costs what it saves.
 */
#define RSA_WINDOW 4
#define RSA_MAX_DIGITS (RSA_MAX_HALF_BLOCKS * 512 / RSA_WINDOW)
#define RSA_MAX_BYTES 512
/* Uses of a blinding pair, each the square of the last, before it is drawn anew. */
#define RSA_PAIR_USES 64

/* A prime; R = 2^(520 * blocks). */
struct rsa_half {
    uint64_t p[RSA_MAX_HALF_LIMBS];
    uint64_t fold[RSA_MAX_HALF_LIMBS]; /* 2^-520 mod p */
    uint64_t one[RSA_MAX_HALF_LIMBS];  /* R mod p */
    uint64_t r2[RSA_MAX_HALF_LIMBS];   /* R^2 mod p */
    uint64_t r3[RSA_MAX_HALF_LIMBS];
    uint64_t neg_inv;               /* -p^-1 mod 2^52 */
    uint8_t digits[RSA_MAX_DIGITS]; /* the exponent in base 2^RSA_WINDOW, the least first */
};

/* For a random r, in Montgomery form modulo n: mask = r^e, unmask = r^-1. */
struct rsa_pair {
    struct rsa_pair *next;
    unsigned uses;
    uint64_t mask[RSA_MAX_LIMBS], unmask[RSA_MAX_LIMBS];
};

struct sp_rsa_key {
    atomic_uint refs;
    unsigned blocks; /* of a prime; n has twice as many, with its own R */
    size_t bytes;    /* of n */
    uint32_t e;
    uint8_t n_bytes[RSA_MAX_BYTES];
    uint64_t n[RSA_MAX_LIMBS], n_fold[RSA_MAX_LIMBS], n_one[RSA_MAX_LIMBS], n_r2[RSA_MAX_LIMBS];
    uint64_t n_neg_inv;
    struct rsa_half half[2];                  /* p, q */
    uint64_t coefficient[RSA_MAX_HALF_LIMBS]; /* q^-1 * R mod p */

    pthread_mutex_t mutex;  /* over the list */
    struct rsa_pair *pairs; /* those that no batch has */

    /* What creating pairs needs; not written after the key's creation. */
    BIGNUM *n_bn, *e_bn, *n_one_bn;
    BN_MONT_CTX *n_mont;
    EVP_PKEY *pkey; /* for the scalar library */
};

/* Whether in[key->bytes] is below the modulus. */
bool rsa_key_in_range(const struct sp_rsa_key *key, const uint8_t *in);

/* Whether out^e mod n is in[key->bytes]: a result of the private operation that was computed elsewhere. False when memory lacks, too. */
bool rsa_key_verify(const struct sp_rsa_key *key, const uint8_t *in, const uint8_t *out);

/*
 * Takes `count` (1 to 8) pairs out of the key into out[], so that nobody else has them, making those
 * that are missing. SP_ENOMEM, also when no randomness could be had, and then takes none.
 */
int rsa_key_take_pairs(const struct sp_rsa_key *key, struct rsa_pair **out, unsigned count);
/*
 * Gives a pair back after a use, which the caller has squared; frees it when it has been used often
 * enough.
 */
void rsa_key_return_pair(const struct sp_rsa_key *key, struct rsa_pair *pair);
void rsa_pair_free(struct rsa_pair *pair);

#endif
