/*
 * Eight 64-bit lanes: the vocabulary in which the kernels are written.
 *
 * A kernel's source is a file of its own, `name_kernel.inc`, compiled twice: name_ifma.c includes
 * it after lanes_ifma.h and name_portable.c after lanes_portable.h. KERNEL(x) gives x the suffix of
 * the rendering. Nothing in a kernel branches or addresses by a secret: selection is by mask.
 *
 * Numbers lie in memory transposed: limb i of all eight lanes is one vector of 64 bytes, aligned.
 */
#ifndef SP_CRYPTO_KERNEL_LANES_H
#define SP_CRYPTO_KERNEL_LANES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LANES 8
#define LIMB_BITS 52
#define LIMB_MASK ((UINT64_C(1) << LIMB_BITS) - 1)

/* One limb of eight numbers. */
typedef uint64_t limb8[LANES] __attribute__((aligned(64)));

#define LANE_FN static inline __attribute__((always_inline, unused))

/* Hides the value of a loop bound from the optimiser, which otherwise peels the loop and spills. */
#define OPAQUE(n) __asm__ volatile("" : "+r"(n))

/* False where the program was built for another machine or the CPU lacks the instructions. */
bool lanes_ifma_usable(void);

/* Overwrites memory in a way that the optimiser keeps. */
void lanes_wipe(void *data, size_t len);

#endif
