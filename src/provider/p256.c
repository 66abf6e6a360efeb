/*
 * The little of P-256 that the provider itself needs, of public values: whether a point lies on the
 * curve, and the DER form of a signature.
 */
#include "provider/internal.h"

/* SP 800-186, section 3.2.1.3; four 64-bit words, the lowest first. */
static const uint64_t prime[4] = {0xffffffffffffffff, 0x00000000ffffffff, 0, 0xffffffff00000001};
/* The coefficient b, and 3, times 2^256 mod p: in Montgomery form. */
static const uint64_t b_mont[4] = {0xd89cdf6229c4bddf, 0xacf005cd78843090, 0xe5a220abf7212ed6,
                                   0xdc30061d04874834};
static const uint64_t square_of_r[4] = {0x0000000000000003, 0xfffffffbffffffff, 0xfffffffffffffffe,
                                        0x00000004fffffffd};
static const uint8_t order[32] = {0xff, 0xff, 0xff, 0xff, 0,    0,    0,    0,    0xff, 0xff, 0xff,
                                  0xff, 0xff, 0xff, 0xff, 0xff, 0xbc, 0xe6, 0xfa, 0xad, 0xa7, 0x17,
                                  0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51};

/* a - b, and whether it borrowed. */
static uint64_t subtract(uint64_t out[4], const uint64_t a[4], const uint64_t b[4])
{
    uint64_t borrow = 0;

    for (int i = 0; i < 4; i++) {
        unsigned __int128 d = (unsigned __int128)a[i] - b[i] - borrow;

        out[i] = (uint64_t)d;
        borrow = (uint64_t)(d >> 64) & 1;
    }
    return borrow;
}

static void add_prime(uint64_t a[4])
{
    uint64_t carry = 0;

    for (int i = 0; i < 4; i++) {
        unsigned __int128 s = (unsigned __int128)a[i] + prime[i] + carry;

        a[i] = (uint64_t)s;
        carry = (uint64_t)(s >> 64);
    }
}

static void subtract_mod(uint64_t out[4], const uint64_t a[4], const uint64_t b[4])
{
    if (subtract(out, a, b))
        add_prime(out);
}

/* a * b / 2^256 mod p. The lowest word of -1/p is 1, so each step adds t[0] times the prime. */
static void multiply(uint64_t out[4], const uint64_t a[4], const uint64_t b[4])
{
    uint64_t t[6] = {0}, reduced[4];

    for (int i = 0; i < 4; i++) {
        unsigned __int128 s;
        uint64_t carry = 0, m;

        for (int j = 0; j < 4; j++) {
            s = (unsigned __int128)a[j] * b[i] + t[j] + carry;
            t[j] = (uint64_t)s;
            carry = (uint64_t)(s >> 64);
        }
        s = (unsigned __int128)t[4] + carry;
        t[4] = (uint64_t)s;
        t[5] = (uint64_t)(s >> 64);
        m = t[0];
        s = (unsigned __int128)m * prime[0] + t[0];
        carry = (uint64_t)(s >> 64);
        for (int j = 1; j < 4; j++) {
            s = (unsigned __int128)m * prime[j] + t[j] + carry;
            t[j - 1] = (uint64_t)s;
            carry = (uint64_t)(s >> 64);
        }
        s = (unsigned __int128)t[4] + carry;
        t[3] = (uint64_t)s;
        t[4] = t[5] + (uint64_t)(s >> 64);
    }
    if (!subtract(reduced, t, prime) || t[4])
        memcpy(out, reduced, sizeof(reduced));
    else
        memcpy(out, t, sizeof(reduced));
}

/* Into Montgomery form; false when not less than p. */
static bool load(uint64_t out[4], const uint8_t bytes[32])
{
    uint64_t plain[4] = {0}, ignored[4];

    for (int i = 0; i < 32; i++)
        plain[3 - i / 8] = plain[3 - i / 8] << 8 | bytes[i];
    if (!subtract(ignored, plain, prime))
        return false;
    multiply(out, plain, square_of_r);
    return true;
}

/* y^2 = x^3 - 3x + b */
bool provider_p256_on_curve(const uint8_t point[P256_POINT_BYTES])
{
    uint64_t x[4], y[4], left[4], right[4];

    if (point[0] != 4 || !load(x, point + 1) || !load(y, point + 33))
        return false;
    multiply(left, y, y);
    multiply(right, x, x);
    multiply(right, right, x);
    for (int i = 0; i < 3; i++)
        subtract_mod(right, right, x);
    subtract_mod(left, left, right);
    return memcmp(left, b_mont, sizeof(left)) == 0;
}

/* Scalars are secret, so every byte is looked at; only the answer shows. */
bool provider_p256_scalar_ok(const uint8_t scalar[P256_SCALAR_BYTES])
{
    unsigned borrow = 0, any = 0;

    for (int i = 31; i >= 0; i--) {
        borrow = (unsigned)(scalar[i] - order[i] - (int)borrow) >> 31;
        any |= scalar[i];
    }
    return borrow && any;
}

bool provider_p256_is_name(const char *name)
{
    return strcasecmp(name, "prime256v1") == 0 || strcasecmp(name, "P-256") == 0 ||
           strcasecmp(name, "secp256r1") == 0 || strcmp(name, "1.2.840.10045.3.1.7") == 0;
}

/* An INTEGER: no leading zeros, but one where the top bit would mean a negative number. */
static size_t put_integer(uint8_t *out, const uint8_t value[32])
{
    size_t skip = 0, len, pad;

    while (skip < 31 && value[skip] == 0)
        skip++;
    pad = value[skip] >> 7;
    len = 32 - skip;
    out[0] = 2;
    out[1] = (uint8_t)(len + pad);
    out[2] = 0;
    memcpy(out + 2 + pad, value + skip, len);
    return 2 + pad + len;
}

size_t provider_p256_signature_der(const uint8_t rs[64], uint8_t out[ECDSA_P256_MAX_BYTES])
{
    size_t len = put_integer(out + 2, rs);

    len += put_integer(out + 2 + len, rs + 32);
    out[0] = 0x30;
    out[1] = (uint8_t)len;
    return 2 + len;
}
