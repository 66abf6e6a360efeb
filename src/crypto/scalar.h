/*
 * Random scalars.
 */
#ifndef SP_CRYPTO_SCALAR_H
#define SP_CRYPTO_SCALAR_H

#include <stdbool.h>
#include <stdint.h>

/* Uniform in [1, n-1], by rejection, n the order of P-256 (FIPS 186-5, A.2.2 and A.3.2). SP_EIO: no randomness. */
int scalar_random_p256(uint8_t out[32]);
/* True for a number in [1, n-1]; in constant time. */
bool scalar_is_valid_p256(const uint8_t k[32]);

#endif
