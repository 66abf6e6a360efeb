/*
 * The lanes as AVX-512 IFMA registers. Only for files compiled with those instructions, whose
 * functions run only where lanes_ifma_usable.
 */
#ifndef SP_CRYPTO_KERNEL_LANES_IFMA_H
#define SP_CRYPTO_KERNEL_LANES_IFMA_H

#include "crypto/kernel/lanes.h"

#include <immintrin.h>

#define KERNEL(name) name##_ifma

typedef __m512i lanes;
typedef __mmask8 lane_mask; /* bit i: lane i */

LANE_FN lanes lanes_load(const uint64_t *p)
{
    return _mm512_load_si512(p);
}

LANE_FN void lanes_store(uint64_t *p, lanes v)
{
    _mm512_store_si512(p, v);
}

LANE_FN lanes lanes_all(uint64_t v)
{
    return _mm512_set1_epi64((long long)v);
}

LANE_FN lanes lanes_zero(void)
{
    return _mm512_setzero_si512();
}

/* acc + the low, or the high, 52 bits of the 104-bit product of the low 52 bits of a and b. */
LANE_FN lanes lanes_madlo(lanes acc, lanes a, lanes b)
{
    return _mm512_madd52lo_epu64(acc, a, b);
}

LANE_FN lanes lanes_madhi(lanes acc, lanes a, lanes b)
{
    return _mm512_madd52hi_epu64(acc, a, b);
}

LANE_FN lanes lanes_add(lanes a, lanes b)
{
    return _mm512_add_epi64(a, b);
}

LANE_FN lanes lanes_sub(lanes a, lanes b)
{
    return _mm512_sub_epi64(a, b);
}

LANE_FN lanes lanes_and(lanes a, lanes b)
{
    return _mm512_and_si512(a, b);
}

LANE_FN lanes lanes_or(lanes a, lanes b)
{
    return _mm512_or_si512(a, b);
}

LANE_FN lanes lanes_xor(lanes a, lanes b)
{
    return _mm512_xor_si512(a, b);
}

/* Logical shifts, and the arithmetic one; n is a constant. */
#define lanes_shl(v, n) _mm512_slli_epi64(v, n)
#define lanes_shr(v, n) _mm512_srli_epi64(v, n)
#define lanes_sar(v, n) _mm512_srai_epi64(v, n)

LANE_FN lane_mask lanes_equal(lanes a, lanes b)
{
    return _mm512_cmpeq_epi64_mask(a, b);
}

/* Unsigned a < b. */
LANE_FN lane_mask lanes_below(lanes a, lanes b)
{
    return _mm512_cmplt_epu64_mask(a, b);
}

/* mask ? a : b, lane by lane. */
LANE_FN lanes lanes_select(lane_mask mask, lanes a, lanes b)
{
    return _mm512_mask_blend_epi64(mask, b, a);
}

#endif
