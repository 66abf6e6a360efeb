#include "crypto/kernel/p256.h"

#if defined(__AVX512IFMA__)

#include "crypto/kernel/lanes_ifma.h"

/* Limbs are registers: all is inlined and unrolled. */
#define LIMBS_FN LANE_FN
#define UNROLL _Pragma("GCC unroll 8")

/* A permutation of two registers is a table of sixteen numbers. */
LANE_FN lanes table_row_pick(const uint64_t row[16], lanes index)
{
    return _mm512_permutex2var_epi64(lanes_load(row), index, lanes_load(row + 8));
}

#include "crypto/kernel/p256_kernel.inc"

const struct p256_kernel *p256_kernel_ifma(void)
{
    static const struct p256_kernel kernel = {"ifma", p256_base, p256_derive, p256_nonce,
                                              p256_sign};

    return lanes_ifma_usable() ? &kernel : NULL;
}

#else

const struct p256_kernel *p256_kernel_ifma(void)
{
    return NULL;
}

#endif
