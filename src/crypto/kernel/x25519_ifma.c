/* X25519 in AVX-512 IFMA registers. */
#include "crypto/kernel/x25519.h"

#if defined(__AVX512IFMA__)

#include "crypto/kernel/lanes_ifma.h"

#define FIELD_FN LANE_FN
#define SCRUB_BYTES 16384

#include "crypto/kernel/x25519_kernel.inc"

static const struct x25519_kernel kernel = {.name = "ifma", .derive = derive, .base = base};

const struct x25519_kernel *x25519_kernel_ifma(void)
{
    return lanes_ifma_usable() ? &kernel : NULL;
}

#else

const struct x25519_kernel *x25519_kernel_ifma(void)
{
    return NULL;
}

#endif
