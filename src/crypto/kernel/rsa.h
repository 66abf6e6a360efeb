/*
 * RSA private operations, eight at a time: in^d mod n by the Chinese remainder theorem.
 */
#ifndef SP_CRYPTO_KERNEL_RSA_H
#define SP_CRYPTO_KERNEL_RSA_H

#include "crypto/kernel/lanes.h"

#include <sallyport/rsa.h>

/* A rendering: the vector code by function pointer, so that tests can put a faulty one in its place. */
struct rsa_kernel;

/* NULL where the instructions are missing. */
const struct rsa_kernel *rsa_kernel_ifma(void);
const struct rsa_kernel *rsa_kernel_portable(void);

struct rsa_request {
    const struct sp_rsa_key *key;
    const uint8_t *in; /* sp_rsa_key_bytes, big-endian */
    uint8_t *out;      /* may be in */
    /*
     * 0; SP_EINVAL: in is not less than the modulus; SP_EFAULT: the result did not give in again
     * with the public exponent: nothing was written, the caller computes it another way.
     */
    int status;
};

/* Working memory of one batch, some 100 KiB, aligned; used by one thread at a time. NULL: out of memory. */
struct rsa_scratch;
struct rsa_scratch *rsa_scratch_new(void);
void rsa_scratch_free(struct rsa_scratch *scratch); /* wipes */

/*
 * Runs requests[count], 1 to 8, all with moduli of one length, keys in any mixture. Blinded: each
 * lane takes a pair of its key that no other lane has. With four or fewer, the two halves of the
 * CRT run side by side. Every result is verified with the public exponent. Intermediates are wiped.
 */
void rsa_batch_run(const struct rsa_kernel *kernel, struct rsa_request *requests, unsigned count,
                   struct rsa_scratch *scratch);

#endif
