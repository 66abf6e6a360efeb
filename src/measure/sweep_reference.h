/*
 * The answer to a request as OpenSSL's EVP interface gives it when called plainly: a new context each time.
 */
#ifndef SP_MEASURE_SWEEP_REFERENCE_H
#define SP_MEASURE_SWEEP_REFERENCE_H

#include "measure/sweep_impl.h"

/*
 * `out` (NULL for a digest) gets `len` bytes and `tag` the algorithm's tag_bytes; iv has its iv_bytes. SP_EIO: OpenSSL does
 * not do it.
 */
int sweep_reference(const struct sweep_key *key, const uint8_t *iv, const uint8_t *in, uint32_t len, uint8_t *out,
                    uint8_t tag[64]);

#endif
