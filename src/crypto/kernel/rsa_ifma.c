#include "crypto/kernel/rsa.h"

#if defined(__AVX512IFMA__)

#include "crypto/kernel/lanes_ifma.h"

#include "crypto/kernel/rsa_kernel.inc"

const struct rsa_kernel *rsa_kernel_ifma(void)
{
    return lanes_ifma_usable() ? &KERNEL(rsa_kernel_table) : NULL;
}

#else

const struct rsa_kernel *rsa_kernel_ifma(void)
{
    return NULL;
}

#endif
