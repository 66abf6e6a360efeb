#include "crypto/kernel/p256.h"

#include "crypto/kernel/lanes_portable.h"

/* Limbs are in memory: inlined and unrolled code would only take minutes to compile. */
#define LIMBS_FN static __attribute__((noinline))
#define UNROLL _Pragma("GCC unroll 1")

LANE_FN lanes table_row_pick(const uint64_t row[16], lanes index)
{
    lanes r = lanes_zero();

    for (uint64_t i = 0; i < 16; i++)
        r = lanes_select(lanes_equal(index, lanes_all(i)), lanes_all(row[i]), r);
    return r;
}

#include "crypto/kernel/p256_kernel.inc"

const struct p256_kernel *p256_kernel_portable(void)
{
    static const struct p256_kernel kernel = {"portable", p256_base, p256_derive, p256_nonce,
                                              p256_sign};

    return &kernel;
}
