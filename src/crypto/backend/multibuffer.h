/*
 * The lanes: up to eight operations of one kind at a time, on the calling thread.
 */
#ifndef SP_CRYPTO_BACKEND_MULTIBUFFER_H
#define SP_CRYPTO_BACKEND_MULTIBUFFER_H

#include "crypto/algorithm.h"

struct rsa_kernel;
struct p256_kernel;
struct x25519_kernel;

/* What the lanes run on; NULL where the machine has none. */
struct multibuffer_kernels {
    const struct rsa_kernel *rsa;
    const struct p256_kernel *p256;
    const struct x25519_kernel *x25519;
};
const struct multibuffer_kernels *multibuffer_kernels(void);
/* For tests, before anything else runs: the portable rendering, or a faulty one. */
void multibuffer_use_kernels(const struct multibuffer_kernels *use);

bool multibuffer_has_rsa(void);
bool multibuffer_has_p256(void);
bool multibuffer_has_x25519(void);

/*
 * Each runs ops[n], n from 1 to SP_LANES_MAX and all of one row, and writes their statuses. Lanes left over compute on
 * the last operation's input.
 */
void multibuffer_rsa_private(struct sp_op *const *ops, unsigned n, struct algorithm_memory *memory);
void multibuffer_p256_sign(struct sp_op *const *ops, unsigned n, struct algorithm_memory *memory);
void multibuffer_p256_keygen(struct sp_op *const *ops, unsigned n, struct algorithm_memory *memory);
void multibuffer_p256_derive(struct sp_op *const *ops, unsigned n, struct algorithm_memory *memory);
void multibuffer_x25519_keygen(struct sp_op *const *ops, unsigned n, struct algorithm_memory *memory);
void multibuffer_x25519_derive(struct sp_op *const *ops, unsigned n, struct algorithm_memory *memory);

/* A nonce of an ECDSA signature, made ready without the message. */
struct p256_nonce {
    uint8_t r[32], k_inverse[32];
};
/* Eight fresh ones. SP_EIO: no randomness. */
int multibuffer_p256_nonces(struct p256_nonce nonces[SP_LANES_MAX]);
/* A signature with one of them: 0 or SP_EAGAIN (s came out as zero: take another nonce). */
int multibuffer_p256_finish(const struct sp_op *op, const struct p256_nonce *nonce);

#endif
