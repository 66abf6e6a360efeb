/*
 * Ephemeral key pairs and signature nonces, computed eight at a time before anybody asks: they
 * depend on no input, so even a lone handshake has them at the price of a lane. Each is handed out
 * once and wiped. They lie in a page of their own that the kernel empties in a forked child
 * (madvise(2), MADV_WIPEONFORK), so that parent and child never use the same.
 */
#ifndef SP_CRYPTO_PREPARED_H
#define SP_CRYPTO_PREPARED_H

#include "crypto/tally.h"

struct prepared;

/* NULL: no memory, or the kernel does not empty pages on fork. */
struct prepared *prepared_new(void);
void prepared_free(struct prepared *prepared); /* wipes; NULL is allowed */
/* Key generation or a P-256 signature; refills in lanes, counted as a batch. The op's status. */
int prepared_run(struct prepared *prepared, const struct sp_op *op, struct algorithm_tally *tally);

#endif
