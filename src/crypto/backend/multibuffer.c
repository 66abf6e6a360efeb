#include "crypto/backend/multibuffer.h"

#include "crypto/kernel/p256.h"
#include "crypto/kernel/rsa.h"
#include "crypto/kernel/x25519.h"
#include "crypto/scalar.h"

#include <openssl/rand.h>
#include <pthread.h>
#include <string.h>

/* 32 bytes of each lane. */
typedef uint8_t bytes8[LANES][32];

static struct multibuffer_kernels kernels;
static pthread_once_t kernels_once = PTHREAD_ONCE_INIT;

static void find_kernels(void)
{
    kernels = (struct multibuffer_kernels){rsa_kernel_ifma(), p256_kernel_ifma(), x25519_kernel_ifma()};
}

const struct multibuffer_kernels *multibuffer_kernels(void)
{
    pthread_once(&kernels_once, find_kernels);
    return &kernels;
}

void multibuffer_use_kernels(const struct multibuffer_kernels *use)
{
    (void)multibuffer_kernels();
    kernels = *use;
}

bool multibuffer_has_rsa(void)
{
    return multibuffer_kernels()->rsa != NULL;
}

bool multibuffer_has_p256(void)
{
    return multibuffer_kernels()->p256 != NULL;
}

bool multibuffer_has_x25519(void)
{
    return multibuffer_kernels()->x25519 != NULL;
}

void multibuffer_rsa_private(struct sp_op *const *ops, unsigned n, struct algorithm_memory *memory)
{
    struct rsa_request requests[SP_LANES_MAX];

    for (unsigned i = 0; i < n; i++)
        requests[i] = (struct rsa_request){.key = ops[i]->rsa, .in = ops[i]->in, .out = ops[i]->out};
    rsa_batch_run(kernels.rsa, requests, n, memory->rsa);
    for (unsigned i = 0; i < n; i++)
        ops[i]->status = requests[i].status;
}

/* The operation whose input lane i computes on. */
static const struct sp_op *op_of_lane(struct sp_op *const *ops, unsigned n, unsigned lane)
{
    return ops[lane < n ? lane : n - 1];
}

/* --- X25519 ------------------------------------------------------------------------------ */

static bool is_zero(const uint8_t bytes[32])
{
    unsigned any = 0;

    for (int i = 0; i < 32; i++)
        any |= bytes[i];
    return any == 0;
}

void multibuffer_x25519_derive(struct sp_op *const *ops, unsigned n, struct algorithm_memory *memory)
{
    bytes8 scalar, u;

    for (unsigned lane = 0; lane < LANES; lane++) {
        memcpy(scalar[lane], op_of_lane(ops, n, lane)->scalar, 32);
        memcpy(u[lane], op_of_lane(ops, n, lane)->in, 32);
    }
    kernels.x25519->derive(u, (const uint8_t(*)[32])scalar, (const uint8_t(*)[32])u);
    for (unsigned i = 0; i < n; i++) {
        ops[i]->status = is_zero(u[i]) ? SP_EINVAL : 0;
        if (ops[i]->status == 0)
            memcpy(ops[i]->out, u[i], 32);
    }
    lanes_wipe(scalar, sizeof(scalar));
    lanes_wipe(u, sizeof(u));
}

void multibuffer_x25519_keygen(struct sp_op *const *ops, unsigned n, struct algorithm_memory *memory)
{
    bytes8 scalar, u;
    int status = RAND_priv_bytes(scalar[0], sizeof(scalar)) == 1 ? 0 : SP_EIO;

    if (status == 0)
        kernels.x25519->base(u, (const uint8_t(*)[32])scalar);
    for (unsigned i = 0; i < n; i++) {
        ops[i]->status = status;
        if (status != 0)
            continue;
        memcpy(ops[i]->out, scalar[i], 32);
        memcpy(ops[i]->out + 32, u[i], 32);
    }
    lanes_wipe(scalar, sizeof(scalar));
}

/* --- P-256 ----------------------------------------------------------------------------------- */

static int random_scalars(bytes8 k)
{
    if (RAND_priv_bytes(k[0], sizeof(bytes8)) != 1)
        return SP_EIO;
    for (unsigned lane = 0; lane < LANES; lane++) {
        if (!scalar_is_valid_p256(k[lane]) && scalar_random_p256(k[lane]) != 0)
            return SP_EIO;
    }
    return 0;
}

void multibuffer_p256_keygen(struct sp_op *const *ops, unsigned n, struct algorithm_memory *memory)
{
    bytes8 k, x, y;
    int status = random_scalars(k);

    if (status == 0)
        kernels.p256->base(x, y, (const uint8_t(*)[32])k);
    for (unsigned i = 0; i < n; i++) {
        ops[i]->status = status;
        if (status != 0)
            continue;
        memcpy(ops[i]->out, k[i], 32);
        ops[i]->out[32] = 4;
        memcpy(ops[i]->out + 33, x[i], 32);
        memcpy(ops[i]->out + 65, y[i], 32);
    }
    lanes_wipe(k, sizeof(k));
}

void multibuffer_p256_derive(struct sp_op *const *ops, unsigned n, struct algorithm_memory *memory)
{
    bytes8 k, x, y;
    unsigned valid = 0;

    for (unsigned lane = 0; lane < LANES; lane++) {
        const struct sp_op *op = op_of_lane(ops, n, lane);

        memcpy(k[lane], op->scalar, 32);
        memcpy(x[lane], op->in + 1, 32);
        memcpy(y[lane], op->in + 33, 32);
        valid |= (unsigned)(op->in[0] == 4) << lane;
    }
    valid &= kernels.p256->derive(x, (const uint8_t(*)[32])k, (const uint8_t(*)[32])x, (const uint8_t(*)[32])y);
    for (unsigned i = 0; i < n; i++) {
        ops[i]->status = valid >> i & 1 ? 0 : SP_EINVAL;
        if (ops[i]->status == 0)
            memcpy(ops[i]->out, x[i], 32);
    }
    lanes_wipe(k, sizeof(k));
    lanes_wipe(x, sizeof(x));
}

/* Nonces of all lanes; bit i of *good: lane i's may be used. */
static int draw_nonces(bytes8 r, bytes8 k_inverse, unsigned *good)
{
    bytes8 k;
    int status = random_scalars(k);

    if (status == 0)
        *good = kernels.p256->nonce(r, k_inverse, (const uint8_t(*)[32])k);
    lanes_wipe(k, sizeof(k));
    return status;
}

int multibuffer_p256_nonces(struct p256_nonce nonces[SP_LANES_MAX])
{
    const unsigned all = (1u << LANES) - 1;
    bytes8 r, k_inverse;
    unsigned good = 0;
    int status = 0;

    /* r is zero with probability 2^-256. */
    for (int tries = 0; tries < 4 && good != all && status == 0; tries++)
        status = draw_nonces(r, k_inverse, &good);
    if (status == 0 && good != all)
        status = SP_EIO;
    for (unsigned lane = 0; lane < LANES && status == 0; lane++) {
        memcpy(nonces[lane].r, r[lane], 32);
        memcpy(nonces[lane].k_inverse, k_inverse[lane], 32);
    }
    lanes_wipe(k_inverse, sizeof(k_inverse));
    return status;
}

/* The leftmost 256 bits of the digest (FIPS 186-5, 6.4.1, step 2); shorter ones are numbers as they are. */
static void digest_number(uint8_t z[32], const struct sp_op *op)
{
    size_t len = op->in_len < 32 ? op->in_len : 32;

    memset(z, 0, 32);
    memcpy(z + 32 - len, op->in, len);
}

/* Signs with the nonces of lanes 0 to n-1; bit i of the result: lane i has succeeded. */
static unsigned sign_lanes(struct sp_op *const *ops, unsigned n, const struct p256_nonce *const *nonces)
{
    bytes8 s, k_inverse, r, z, d;
    unsigned good;

    for (unsigned lane = 0; lane < LANES; lane++) {
        const struct sp_op *op = op_of_lane(ops, n, lane);
        const struct p256_nonce *nonce = nonces[lane < n ? lane : n - 1];

        memcpy(k_inverse[lane], nonce->k_inverse, 32);
        memcpy(r[lane], nonce->r, 32);
        memcpy(d[lane], op->scalar, 32);
        digest_number(z[lane], op);
    }
    good = kernels.p256->sign(s, (const uint8_t(*)[32])k_inverse, (const uint8_t(*)[32])r,
                                    (const uint8_t(*)[32])z, (const uint8_t(*)[32])d);
    for (unsigned i = 0; i < n; i++) {
        if (!(good >> i & 1))
            continue;
        memcpy(ops[i]->out, r[i], 32);
        memcpy(ops[i]->out + 32, s[i], 32);
    }
    lanes_wipe(k_inverse, sizeof(k_inverse));
    lanes_wipe(d, sizeof(d));
    return good;
}

int multibuffer_p256_finish(const struct sp_op *op, const struct p256_nonce *nonce)
{
    struct sp_op copy = *op, *ops[1] = {&copy};

    return sign_lanes(ops, 1, &nonce) & 1 ? 0 : SP_EAGAIN;
}

void multibuffer_p256_sign(struct sp_op *const *ops, unsigned n, struct algorithm_memory *memory)
{
    struct p256_nonce nonces[SP_LANES_MAX];
    const struct p256_nonce *pointers[SP_LANES_MAX];
    int status = multibuffer_p256_nonces(nonces);
    unsigned good = 0;

    for (unsigned i = 0; i < SP_LANES_MAX; i++)
        pointers[i] = &nonces[i];
    if (status == 0)
        good = sign_lanes(ops, n, pointers);
    /* s is zero with probability 2^-256: then the scalar library signs. */
    for (unsigned i = 0; i < n; i++)
        ops[i]->status = status != 0 ? status : good >> i & 1 ? 0 : SP_EFAULT;
    lanes_wipe(nonces, sizeof(nonces));
}
