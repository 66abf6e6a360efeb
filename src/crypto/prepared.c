#include "crypto/prepared.h"

#include "crypto/algorithm.h"
#include "crypto/backend/multibuffer.h"
#include "crypto/kernel/lanes.h"

#include <string.h>
#include <sys/mman.h>

#define X25519_PAIR_BYTES 64
#define P256_PAIR_BYTES 97

struct prepared {
    unsigned x25519_left, p256_left, nonces_left;
    uint8_t x25519[SP_LANES_MAX][X25519_PAIR_BYTES];
    uint8_t p256[SP_LANES_MAX][P256_PAIR_BYTES];
    struct p256_nonce nonces[SP_LANES_MAX];
};

struct prepared *prepared_new(void)
{
    struct prepared *p =
        mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        return NULL;
    if (madvise(p, sizeof(*p), MADV_WIPEONFORK) != 0) {
        munmap(p, sizeof(*p));
        return NULL;
    }
    (void)madvise(p, sizeof(*p), MADV_DONTDUMP);
    return p;
}

void prepared_free(struct prepared *prepared)
{
    if (!prepared)
        return;
    lanes_wipe(prepared, sizeof(*prepared));
    munmap(prepared, sizeof(*prepared));
}

/* Takes one of `pairs`, of pair_bytes each, generating all anew when none is left. */
static int take_pair(uint8_t *pairs, size_t pair_bytes, unsigned *left, const struct sp_op *op,
                     struct algorithm_tally *tally)
{
    struct sp_op ops[SP_LANES_MAX], *pointers[SP_LANES_MAX];
    uint8_t *pair;

    if (*left == 0) {
        for (unsigned i = 0; i < SP_LANES_MAX; i++) {
            ops[i] = (struct sp_op){.kind = op->kind, .out = pairs + i * pair_bytes};
            pointers[i] = &ops[i];
        }
        algorithm_rows[op->algorithm].run_lanes(pointers, SP_LANES_MAX, NULL);
        if (ops[0].status != 0)
            return ops[0].status;
        tally_count(&tally->batches[SP_LANES_MAX], 1);
        *left = SP_LANES_MAX;
    }
    pair = pairs + --*left * pair_bytes;
    memcpy(op->out, pair, pair_bytes);
    lanes_wipe(pair, pair_bytes);
    return 0;
}

static int sign(struct prepared *p, const struct sp_op *op, struct algorithm_tally *tally)
{
    struct p256_nonce *nonce;
    int status;

    if (p->nonces_left == 0) {
        status = multibuffer_p256_nonces(p->nonces);
        if (status != 0)
            return status;
        tally_count(&tally->batches[SP_LANES_MAX], 1);
        p->nonces_left = SP_LANES_MAX;
    }
    nonce = &p->nonces[--p->nonces_left];
    status = multibuffer_p256_finish(op, nonce);
    lanes_wipe(nonce, sizeof(*nonce));
    return status;
}

int prepared_run(struct prepared *prepared, const struct sp_op *op, struct algorithm_tally *tally)
{
    switch (op->kind) {
    case SP_OP_X25519_KEYGEN:
        return take_pair(prepared->x25519[0], X25519_PAIR_BYTES, &prepared->x25519_left, op, tally);
    case SP_OP_P256_KEYGEN:
        return take_pair(prepared->p256[0], P256_PAIR_BYTES, &prepared->p256_left, op, tally);
    case SP_OP_P256_SIGN:
        return sign(prepared, op, tally);
    default:
        return SP_EINVAL;
    }
}
