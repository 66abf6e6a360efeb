#include "crypto/kernel/rsa.h"

#include "crypto/kernel/lanes_portable.h"

/*
 * The tiles of rsa_kernel.inc as loops, with the same contracts: unrolled, eight scalar lanes make
 * some 20 000 instructions of each, which take compilers minutes.
 */
#define RSA_OWN_TILES

#include "crypto/kernel/rsa_internal.h"

static void multiply_add(uint64_t *lo, uint64_t *hi, uint64_t x, uint64_t y)
{
    unsigned __int128 p = (unsigned __int128)x * y;

    *lo += (uint64_t)p & LIMB_MASK;
    *hi += (uint64_t)(p >> LIMB_BITS);
}

/* t[20] += a[10] * b[10]. */
static void tile_mul(limb8 *t, const limb8 *a, const limb8 *b)
{
    for (int lane = 0; lane < LANES; lane++) {
        uint64_t sum[2 * RSA_BLOCK], side[RSA_BLOCK];

        for (int i = 0; i < 2 * RSA_BLOCK; i++)
            sum[i] = t[i][lane];
        for (int j = 0; j < RSA_BLOCK; j++)
            side[j] = b[j][lane];
        for (int i = 0; i < RSA_BLOCK; i++) {
            uint64_t x = a[i][lane];

            for (int j = 0; j < RSA_BLOCK; j++)
                multiply_add(&sum[i + j], &sum[i + j + 1], x, side[j]);
        }
        for (int i = 0; i < 2 * RSA_BLOCK; i++)
            t[i][lane] = sum[i];
    }
}

static void strip(limb8 *t, unsigned old, const limb8 *x, const limb8 *side, unsigned blocks,
                  bool settle)
{
    if (old <= blocks)
        memset(t + old * RSA_BLOCK, 0, (blocks + 1 - old) * RSA_BLOCK * sizeof(*t));
    for (unsigned j = 0; j < blocks; j++)
        tile_mul(t + j * RSA_BLOCK, x, side + j * RSA_BLOCK);
    for (int i = 0; settle && i < RSA_BLOCK; i++) {
        for (int lane = 0; lane < LANES; lane++) {
            t[i + 1][lane] += t[i][lane] >> LIMB_BITS;
            t[i][lane] &= LIMB_MASK;
        }
    }
}

static void strip_montgomery(limb8 *t, const limb8 *n, lanes neg_inv, unsigned blocks)
{
    for (int i = 0; i < RSA_BLOCK; i++) {
        for (int lane = 0; lane < LANES; lane++) {
            uint64_t q = ((t[i][lane] & LIMB_MASK) * neg_inv.v[lane]) & LIMB_MASK;

            for (int j = 0; j < RSA_BLOCK; j++)
                multiply_add(&t[i + j][lane], &t[i + j + 1][lane], q, n[j][lane]);
            t[i + 1][lane] += t[i][lane] >> LIMB_BITS;
            t[i][lane] = q;
        }
    }
    for (unsigned j = 1; j < blocks; j++)
        tile_mul(t + j * RSA_BLOCK, t, n + j * RSA_BLOCK);
}

static void tile_sqr(limb8 *t, const limb8 *lo, const limb8 *hi, const limb8 *a)
{
    if (lo != t)
        memcpy(t, lo, RSA_BLOCK * sizeof(*t));
    if (hi != t + RSA_BLOCK)
        memcpy(t + RSA_BLOCK, hi, RSA_BLOCK * sizeof(*t));
    for (int i = 0; i < RSA_BLOCK; i++)
        for (int j = i + 1; j < RSA_BLOCK; j++)
            for (int lane = 0; lane < LANES; lane++)
                multiply_add(&t[i + j][lane], &t[i + j + 1][lane], a[i][lane], a[j][lane]);
    for (int i = 0; i < RSA_BLOCK; i++) {
        for (int lane = 0; lane < LANES; lane++) {
            t[2 * i][lane] *= 2;
            t[2 * i + 1][lane] *= 2;
            multiply_add(&t[2 * i][lane], &t[2 * i + 1][lane], a[i][lane], a[i][lane]);
        }
    }
}

#include "crypto/kernel/rsa_kernel.inc"

const struct rsa_kernel *rsa_kernel_portable(void)
{
    return &KERNEL(rsa_kernel_table);
}
