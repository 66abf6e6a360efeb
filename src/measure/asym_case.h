/*
 * One algorithm's material: a key, an input, the right answer, and OpenSSL's own way to compute it.
 */
#ifndef SP_MEASURE_ASYM_CASE_H
#define SP_MEASURE_ASYM_CASE_H

#include <sallyport/queue.h>

#include <openssl/evp.h>

#define ASYM_BYTES_MAX 512

struct asym_case {
    enum sp_algorithm algorithm;
    enum sp_op_kind kind;
    EVP_PKEY *key, *peer;
    EVP_PKEY_CTX *ctx; /* ready for `reference` */
    struct sp_rsa_key *rsa;
    uint8_t scalar[32];
    uint8_t in[ASYM_BYTES_MAX];
    size_t in_len;
    uint8_t digest[32];        /* what the reference signs: `in` is its encoding for RSA */
    uint8_t want[ASYM_BYTES_MAX];
    size_t want_len;           /* 0: each result differs, and is verified another way */
};

/* Makes a fresh key. SP_ENOMEM, SP_EIO. */
int asym_case_init(struct asym_case *c, enum sp_algorithm algorithm);
void asym_case_release(struct asym_case *c);
/* Another object of the same RSA key, the caller's. SP_ENOMEM, SP_EIO. */
int asym_case_rsa_key(const struct asym_case *c, struct sp_rsa_key **out);
/* One operation by OpenSSL. SP_EIO. */
int asym_case_reference(struct asym_case *c);
/* An operation on this case's input; `out` has ASYM_BYTES_MAX bytes. */
void asym_case_op(const struct asym_case *c, struct sp_op *op, uint8_t *out);
/* SP_EFAULT: the result is wrong. */
int asym_case_check(const struct asym_case *c, const uint8_t *out);

#endif
