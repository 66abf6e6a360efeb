/*
 * The lanes in plain C: the same results, for tests and for machines without IFMA.
 */
#ifndef SP_CRYPTO_KERNEL_LANES_PORTABLE_H
#define SP_CRYPTO_KERNEL_LANES_PORTABLE_H

#include "crypto/kernel/lanes.h"

#define KERNEL(name) name##_portable

typedef struct {
    uint64_t v[LANES];
} lanes;
typedef uint8_t lane_mask; /* bit i: lane i */

#define FOR_EACH_LANE for (int i = 0; i < LANES; i++)

LANE_FN lanes lanes_load(const uint64_t *p)
{
    lanes r;

    FOR_EACH_LANE
        r.v[i] = p[i];
    return r;
}

LANE_FN void lanes_store(uint64_t *p, lanes v)
{
    FOR_EACH_LANE
        p[i] = v.v[i];
}

LANE_FN lanes lanes_all(uint64_t v)
{
    lanes r;

    FOR_EACH_LANE
        r.v[i] = v;
    return r;
}

LANE_FN lanes lanes_zero(void)
{
    return lanes_all(0);
}

LANE_FN lanes lanes_madlo(lanes acc, lanes a, lanes b)
{
    FOR_EACH_LANE
        acc.v[i] += (uint64_t)((unsigned __int128)(a.v[i] & LIMB_MASK) * (b.v[i] & LIMB_MASK)) & LIMB_MASK;
    return acc;
}

LANE_FN lanes lanes_madhi(lanes acc, lanes a, lanes b)
{
    FOR_EACH_LANE
        acc.v[i] += (uint64_t)((unsigned __int128)(a.v[i] & LIMB_MASK) * (b.v[i] & LIMB_MASK) >> LIMB_BITS);
    return acc;
}

LANE_FN lanes lanes_add(lanes a, lanes b)
{
    FOR_EACH_LANE
        a.v[i] += b.v[i];
    return a;
}

LANE_FN lanes lanes_sub(lanes a, lanes b)
{
    FOR_EACH_LANE
        a.v[i] -= b.v[i];
    return a;
}

LANE_FN lanes lanes_and(lanes a, lanes b)
{
    FOR_EACH_LANE
        a.v[i] &= b.v[i];
    return a;
}

LANE_FN lanes lanes_or(lanes a, lanes b)
{
    FOR_EACH_LANE
        a.v[i] |= b.v[i];
    return a;
}

LANE_FN lanes lanes_xor(lanes a, lanes b)
{
    FOR_EACH_LANE
        a.v[i] ^= b.v[i];
    return a;
}

LANE_FN lanes lanes_shl(lanes v, int n)
{
    FOR_EACH_LANE
        v.v[i] <<= n;
    return v;
}

LANE_FN lanes lanes_shr(lanes v, int n)
{
    FOR_EACH_LANE
        v.v[i] >>= n;
    return v;
}

/* gcc and clang shift negative numbers arithmetically. */
LANE_FN lanes lanes_sar(lanes v, int n)
{
    FOR_EACH_LANE
        v.v[i] = (uint64_t)((int64_t)v.v[i] >> n);
    return v;
}

LANE_FN lane_mask lanes_equal(lanes a, lanes b)
{
    lane_mask mask = 0;

    FOR_EACH_LANE {
        uint64_t x = a.v[i] ^ b.v[i];

        mask = (lane_mask)(mask | ((~(x | (0 - x)) >> 63) << i));
    }
    return mask;
}

LANE_FN lane_mask lanes_below(lanes a, lanes b)
{
    lane_mask mask = 0;

    FOR_EACH_LANE {
        uint64_t x = a.v[i], y = b.v[i];

        mask = (lane_mask)(mask | (((~x & y) | ((~(x ^ y)) & (x - y))) >> 63) << i);
    }
    return mask;
}

LANE_FN lanes lanes_select(lane_mask mask, lanes a, lanes b)
{
    FOR_EACH_LANE {
        uint64_t all = 0 - (uint64_t)(mask >> i & 1);

        a.v[i] = (a.v[i] & all) | (b.v[i] & ~all);
    }
    return a;
}

#endif
