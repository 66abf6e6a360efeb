#include "base/hash.h"

#include "base/clock.h"
#include "base/status.h"

#include <sys/random.h>
#include <unistd.h>

#define FNV1A64_BASIS 0xcbf29ce484222325ULL
#define FNV1A64_PRIME 0x00000100000001b3ULL

uint32_t hash_sdbm(struct str s)
{
    uint32_t h = 0;

    for (size_t i = 0; i < s.len; i++)
        h = h * 65599 + (uint8_t)s.ptr[i];
    return h;
}

uint32_t hash_djb2(struct str s, uint32_t seed)
{
    uint32_t h = seed;

    for (size_t i = 0; i < s.len; i++)
        h = h * 33 + (uint8_t)s.ptr[i];
    return h;
}

static uint32_t rotate_left(uint32_t x, unsigned n)
{
    return x << (n & 31) | x >> (-n & 31);
}

/* Two words take in each byte, rotate by amounts drawn from their own bits, and change places. */
uint32_t hash_wt6(struct str s)
{
    uint32_t a = 0xa53c965a, b = 0x5ca6953a;
    unsigned turn_a = 18, turn_b = 6;

    for (size_t i = 0; i < s.len; i++) {
        uint32_t byte = (uint8_t)s.ptr[i];
        uint32_t mixed_a = ~(a ^ byte), mixed_b = ~(b + byte);
        uint32_t low;

        a = rotate_left(mixed_b, turn_b);
        b = rotate_left(mixed_a, turn_a);
        low = (a >> 16 ^ b) & 0xffff;
        turn_b = low & 31;
        turn_a = low >> 11;
    }
    return a ^ b;
}

/* CRC of the 16 nibbles, reflected polynomial 0xedb88320. */
static const uint32_t crc32_nibbles[16] = {
    0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
    0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
};

/* The same for 0x82f63b78. */
static const uint32_t crc32c_nibbles[16] = {
    0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
    0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

static uint32_t crc_nibbles(struct str s, const uint32_t table[16])
{
    uint32_t crc = 0xffffffff;

    for (size_t i = 0; i < s.len; i++) {
        crc ^= (uint8_t)s.ptr[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}

uint32_t hash_crc32(struct str s)
{
    return crc_nibbles(s, crc32_nibbles);
}

uint32_t hash_crc32c(struct str s)
{
    return crc_nibbles(s, crc32c_nibbles);
}

/* http://burtleburtle.net/bob/hash/integer.html, the six-step function with shifts 12 19 5 9 3 16. */
uint32_t hash_avalanche(uint32_t h)
{
    h = (h + 0x7ed55d16) + (h << 12);
    h = (h ^ 0xc761c23c) ^ (h >> 19);
    h = (h + 0x165667b1) + (h << 5);
    h = (h + 0xd3a2646c) ^ (h << 9);
    h = (h + 0xfd7046c5) + (h << 3);
    h = (h ^ 0xb55a4f09) ^ (h >> 16);
    /* HAProxy spreads the result over the ring with a prime near 3/4 of 2^32. */
    return h * 3221225473U;
}

uint64_t hash_fnv1a64(struct str s, uint64_t seed)
{
    uint64_t h = FNV1A64_BASIS ^ seed;

    for (size_t i = 0; i < s.len; i++)
        h = (h ^ (uint8_t)s.ptr[i]) * FNV1A64_PRIME;
    return h;
}

void hash_rng_seed(struct hash_rng *rng)
{
    if (getrandom(rng->state, sizeof(rng->state), GRND_NONBLOCK) != (ssize_t)sizeof(rng->state)) {
        rng->state[0] = clock_wall_us() * FNV1A64_PRIME ^ (uint64_t)getpid();
        rng->state[1] = clock_now_us() ^ (uint64_t)(uintptr_t)rng;
    }
    /* The all-zero state never leaves itself. */
    if ((rng->state[0] | rng->state[1]) == 0)
        rng->state[0] = FNV1A64_BASIS;
}

/* S. Vigna, "Further scramblings of Marsaglia's xorshift generators", 2016: shifts 23, 18, 5. */
uint64_t hash_rng_next(struct hash_rng *rng)
{
    uint64_t x = rng->state[0], y = rng->state[1];
    uint64_t sum = x + y;

    x ^= x << 23;
    rng->state[0] = y;
    rng->state[1] = x ^ y ^ x >> 18 ^ y >> 5;
    return sum;
}

int hash_base64_encode(struct str in, char *out, size_t out_bytes)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t need;
    char *at = out;

    if (in.len > INT32_MAX / 4 * 3)
        return SP_ETOOBIG;
    need = (in.len + 2) / 3 * 4;
    if (need > out_bytes)
        return SP_ETOOBIG;
    for (size_t i = 0; i < in.len; i += 3) {
        size_t left = in.len - i;
        uint32_t word = (uint32_t)(uint8_t)in.ptr[i] << 16;

        if (left > 1)
            word |= (uint32_t)(uint8_t)in.ptr[i + 1] << 8;
        if (left > 2)
            word |= (uint8_t)in.ptr[i + 2];
        *at++ = alphabet[word >> 18];
        *at++ = alphabet[word >> 12 & 63];
        *at++ = left > 1 ? alphabet[word >> 6 & 63] : '=';
        *at++ = left > 2 ? alphabet[word & 63] : '=';
    }
    return (int)need;
}

/* Value of one character, or 64 for a foreign one. */
static uint32_t base64_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (uint32_t)(c - 'A');
    if (c >= 'a' && c <= 'z')
        return (uint32_t)(c - 'a' + 26);
    if (c >= '0' && c <= '9')
        return (uint32_t)(c - '0' + 52);
    return c == '+' ? 62 : c == '/' ? 63 : 64;
}

int hash_base64_decode(struct str in, char *out, size_t out_bytes)
{
    size_t padding = 0, need, written = 0;

    if (in.len % 4)
        return SP_EINVAL;
    while (padding < 2 && padding < in.len && in.ptr[in.len - 1 - padding] == '=')
        padding++;
    for (size_t i = 0; i < in.len - padding; i++) {
        if (base64_value(in.ptr[i]) == 64)
            return SP_EINVAL;
    }
    need = in.len / 4 * 3 - padding;
    if (need > out_bytes || need > INT32_MAX)
        return SP_ETOOBIG;
    for (size_t i = 0; i < in.len; i += 4) {
        uint32_t word = 0;

        for (size_t k = 0; k < 4; k++)
            word = word << 6 | (in.ptr[i + k] == '=' ? 0 : base64_value(in.ptr[i + k]));
        for (unsigned shift = 16; written < need; shift -= 8) {
            out[written++] = (char)(word >> shift & 0xff);
            if (shift == 0)
                break;
        }
    }
    return (int)need;
}
