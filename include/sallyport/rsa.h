/*
 * RSA private keys for the crypto queue, and the paddings around the private operation.
 *
 * A key holds what the lanes need, computed once: the primes in radix 2^52, Montgomery constants,
 * the CRT exponents and coefficient, and blinding pairs. It may be used from several threads and
 * queues at a time. All numbers are big-endian byte strings.
 */
#ifndef SALLYPORT_RSA_H
#define SALLYPORT_RSA_H

#include <sallyport/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sp_rsa_key;

struct sp_bytes {
    const uint8_t *data;
    size_t len;
};

/* PKCS #1 (RFC 8017), section 3.2, the quintuple and the modulus and public exponent. */
struct sp_rsa_parts {
    struct sp_bytes n, e, p, q, dp, dq, qinv;
};

/*
 * A key of 2048, 3072 or 4096 bits with two primes of equal length. Copies everything; the caller
 * wipes its own. SP_EUNSUPPORTED: another size, unequal primes, an even or overlong (over 32 bits)
 * public exponent, so that only the scalar library can use it; SP_EINVAL: the parts contradict
 * each other (n != p*q, dp, dq or qinv wrong); SP_ENOMEM.
 */
int sp_rsa_key_new(struct sp_rsa_key **out, const struct sp_rsa_parts *parts);
void sp_rsa_key_ref(struct sp_rsa_key *key);
/* Drops a reference; the last one wipes and frees. NULL is allowed. */
void sp_rsa_key_free(struct sp_rsa_key *key);
/* Length of the modulus: 256, 384 or 512. */
size_t sp_rsa_key_bytes(const struct sp_rsa_key *key);

/* The private operation on the calling thread by the scalar library, blinded: in, out as SP_OP_RSA_PRIVATE. */
int sp_rsa_key_run_scalar(const struct sp_rsa_key *key, const uint8_t *in, uint8_t *out);

/* --- paddings, RFC 8017 -------------------------------------------------------------- */

/*
 * EMSA-PKCS1-v1_5 (section 9.2) into em[em_len]. `digest_info` is the DER prefix of the hash, or
 * empty (the digest itself is signed, as TLS 1.1 does with MD5 and SHA-1). SP_ETOOBIG.
 */
int sp_rsa_encode_pkcs1(uint8_t *em, size_t em_len, struct sp_bytes digest_info, struct sp_bytes digest);
/* The DER prefix of DigestInfo for "SHA256" and its like, by OpenSSL's names; SP_ENOENT. */
int sp_rsa_digest_info(const char *hash_name, struct sp_bytes *out);
/*
 * EME-PKCS1-v1_5 decoding (section 7.2.2) of em[em_len] in constant time. Returns the length of the message, copied to
 * out[out_max], or SP_EINVAL; which of the checks failed does not show in time or in memory access. Whoever answers the
 * failure to a peer builds an oracle: for TLS use the next function.
 */
ptrdiff_t sp_rsa_decode_pkcs1(const uint8_t *em, size_t em_len, uint8_t *out, size_t out_max);
/*
 * The premaster secret of a TLS RSA key exchange (RFC 5246, section 7.4.7.1): always 48 bytes in
 * out. When padding, length or version are wrong they are `random48` with no difference in time.
 * `version` is client_version, `alternative` 0 or a second one to accept (OpenSSL's
 * SSL_OP_TLS_ROLLBACK_BUG).
 */
void sp_rsa_decode_tls(const uint8_t *em, size_t em_len, unsigned version, unsigned alternative,
                       const uint8_t random48[48], uint8_t out[48]);

#endif
