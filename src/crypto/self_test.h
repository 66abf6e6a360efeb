/*
 * Known answers for every row of the table of algorithms. Each runs a full batch and compares every
 * lane. 0, SP_EFAULT: a lane was wrong; SP_ENOMEM.
 */
#ifndef SP_CRYPTO_SELF_TEST_H
#define SP_CRYPTO_SELF_TEST_H

#include "crypto/algorithm.h"

/* Against the scalar library, with the key given: any key is a known answer by its public half. */
int self_test_rsa(const struct algorithm *row, const struct sp_rsa_key *rsa, struct algorithm_memory *memory);
/* A signature differs each time: it is computed from a given nonce and compared. */
int self_test_p256_sign(const struct algorithm *row, const struct sp_rsa_key *rsa, struct algorithm_memory *memory);
int self_test_p256_keygen(const struct algorithm *row, const struct sp_rsa_key *rsa,
                          struct algorithm_memory *memory);
int self_test_p256_derive(const struct algorithm *row, const struct sp_rsa_key *rsa,
                          struct algorithm_memory *memory);
int self_test_x25519_keygen(const struct algorithm *row, const struct sp_rsa_key *rsa,
                            struct algorithm_memory *memory);
int self_test_x25519_derive(const struct algorithm *row, const struct sp_rsa_key *rsa,
                            struct algorithm_memory *memory);

#endif
