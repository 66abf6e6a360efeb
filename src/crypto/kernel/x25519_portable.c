/* X25519 in plain C. */
#include "crypto/kernel/x25519.h"

#include "crypto/kernel/lanes_portable.h"

#define FIELD_FN static __attribute__((noinline))
#define SCRUB_BYTES 32768

#include "crypto/kernel/x25519_kernel.inc"

static const struct x25519_kernel kernel = {.name = "portable", .derive = derive, .base = base};

const struct x25519_kernel *x25519_kernel_portable(void)
{
    return &kernel;
}
