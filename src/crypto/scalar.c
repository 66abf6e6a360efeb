#include "crypto/scalar.h"

#include <sallyport/status.h>

#include <openssl/rand.h>

static const uint8_t p256_order[32] = {0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff,
                                       0xff, 0xff, 0xff, 0xff, 0xff, 0xbc, 0xe6, 0xfa, 0xad, 0xa7, 0x17,
                                       0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51};

bool scalar_is_valid_p256(const uint8_t k[32])
{
    unsigned borrow = 0, any = 0;

    for (int i = 31; i >= 0; i--) {
        borrow = ((unsigned)k[i] - p256_order[i] - borrow) >> 8 & 1;
        any |= k[i];
    }
    return borrow & (any + 0xff) >> 8;
}

int scalar_random_p256(uint8_t out[32])
{
    /* Each try fails with probability 2^-32. */
    for (int tries = 0; tries < 8; tries++) {
        if (RAND_priv_bytes(out, 32) != 1)
            return SP_EIO;
        if (scalar_is_valid_p256(out))
            return 0;
    }
    return SP_EIO;
}
