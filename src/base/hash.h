/*
 * Non-cryptographic hashes and small encoders used by balancing and converters.
 */
#ifndef SP_BASE_HASH_H
#define SP_BASE_HASH_H

#include "base/str.h"

/* SDBM (h = c + h*65599), HAProxy's default hash for "balance". */
uint32_t hash_sdbm(struct str s);
/* D.J. Bernstein's djb2 (h*33 + c, from `seed`; HAProxy's starts at HASH_DJB2_SEED). */
#define HASH_DJB2_SEED 5381
uint32_t hash_djb2(struct str s, uint32_t seed);
/* W. Tarreau's hash of "hash-type … wt6". */
uint32_t hash_wt6(struct str s);
uint32_t hash_crc32(struct str s);  /* IEEE 802.3, as zlib */
uint32_t hash_crc32c(struct str s); /* Castagnoli */
/*
 * HAProxy's full-avalanche step of "hash-type … avalanche": Bob Jenkins's
 * 4-byte integer hash, multiplied by the prime 3221225473.
 */
uint32_t hash_avalanche(uint32_t h);
/* Fowler/Noll/Vo 1a; `seed` is xored into the offset basis, 0 gives the standard hash. */
uint64_t hash_fnv1a64(struct str s, uint64_t seed);

/* xorshift128+ generator, one a thread; hash_rng_seed reads getrandom. Not for secrets. */
struct hash_rng {
    uint64_t state[2];
};
void hash_rng_seed(struct hash_rng *rng);
uint64_t hash_rng_next(struct hash_rng *rng);

/*
 * Base64 of RFC 4648 section 4. Both return the output length or SP_EINVAL /
 * SP_ETOOBIG; encode needs 4*ceil(n/3) bytes, decode 3*n/4 less the padding.
 * Padding is required when decoding. Nothing is written on failure.
 */
int hash_base64_encode(struct str in, char *out, size_t out_bytes);
int hash_base64_decode(struct str in, char *out, size_t out_bytes);

#endif
