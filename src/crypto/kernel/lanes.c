#include "crypto/kernel/lanes.h"

#include <string.h>

#if defined(__x86_64__)

#include <cpuid.h>

/* XCR0 bits that the kernel must have set: SSE, AVX, opmask, upper halves, upper registers. */
#define XCR0_AVX512 0xe6u

static uint64_t xgetbv0(void)
{
    uint32_t low, high;

    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

bool lanes_ifma_usable(void)
{
    uint32_t a, b, c, d;
    const uint32_t osxsave = 1u << 27;
    /* AVX-512 F, DQ, IFMA, BW, VL. */
    const uint32_t wanted = 1u << 16 | 1u << 17 | 1u << 21 | 1u << 30 | 1u << 31;

    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & osxsave))
        return false;
    if ((xgetbv0() & XCR0_AVX512) != XCR0_AVX512)
        return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & wanted) == wanted;
}

#else

bool lanes_ifma_usable(void)
{
    return false;
}

#endif

void lanes_wipe(void *data, size_t len)
{
    memset(data, 0, len);
    __asm__ volatile("" : : "r"(data) : "memory");
}
