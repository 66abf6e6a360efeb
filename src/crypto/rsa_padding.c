/*
 * The paddings of RFC 8017. Decoding works on secrets: whether and where a padding is wrong may show
 * neither in the time taken nor in the memory read or written (Bleichenbacher, CRYPTO '98; RFC 5246,
 * section 7.4.7.1). Masks are 0 or all ones.
 */
#include <sallyport/rsa.h>

#include "crypto/kernel/lanes.h"

#include <string.h>
#include <strings.h>

#define PADDING_MIN 11 /* 00, type, eight bytes at least, 00 */
#define TLS_SECRET_LEN 48
#define DECODE_MAX 2048 /* moduli of 16384 bits, the most that the scalar library takes */

/* --- encoding ------------------------------------------------------------------------- */

/* RFC 8017, appendix B.1 and section 9.2, note 1; SHA-3: NIST's hashAlgs arc 2.16.840.1.101.3.4.2. */
#define NIST(number, len)                                                                     \
    {                                                                                         \
        0x30, 0x11 + (len), 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, \
            0x02, (number), 0x05, 0x00, 0x04, (len)                                           \
    }
#define NIST_LEN 19

static const struct {
    const char *name;
    uint8_t len;
    uint8_t der[NIST_LEN];
} digest_infos[] = {
    {"MD5-SHA1", 0, {0}},
    {"MD5",
     18,
     {0x30, 0x20, 0x30, 0x0c, 0x06, 0x08, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x02, 0x05, 0x05,
      0x00, 0x04, 0x10}},
    {"SHA1",
     15,
     {0x30, 0x21, 0x30, 0x09, 0x06, 0x05, 0x2b, 0x0e, 0x03, 0x02, 0x1a, 0x05, 0x00, 0x04, 0x14}},
    {"SHA256", NIST_LEN, NIST(1, 32)},
    {"SHA384", NIST_LEN, NIST(2, 48)},
    {"SHA512", NIST_LEN, NIST(3, 64)},
    {"SHA224", NIST_LEN, NIST(4, 28)},
    {"SHA512-224", NIST_LEN, NIST(5, 28)},
    {"SHA512-256", NIST_LEN, NIST(6, 32)},
    {"SHA3-224", NIST_LEN, NIST(7, 28)},
    {"SHA3-256", NIST_LEN, NIST(8, 32)},
    {"SHA3-384", NIST_LEN, NIST(9, 48)},
    {"SHA3-512", NIST_LEN, NIST(10, 64)},
};

/* OpenSSL's other names of the same; the provider interface hands out either. */
static const struct {
    const char *alias, *name;
} aliases[] = {
    {"SHA-1", "SHA1"},
    {"SSL3-SHA1", "SHA1"},
    {"SHA2-224", "SHA224"},
    {"SHA-224", "SHA224"},
    {"SHA2-256", "SHA256"},
    {"SHA-256", "SHA256"},
    {"SHA2-384", "SHA384"},
    {"SHA-384", "SHA384"},
    {"SHA2-512", "SHA512"},
    {"SHA-512", "SHA512"},
    {"SHA2-512/224", "SHA512-224"},
    {"SHA-512/224", "SHA512-224"},
    {"SHA2-512/256", "SHA512-256"},
    {"SHA-512/256", "SHA512-256"},
    {"SSL3-MD5", "MD5"},
};

int sp_rsa_digest_info(const char *hash_name, struct sp_bytes *out)
{
    for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++) {
        if (strcasecmp(hash_name, aliases[i].alias) == 0) {
            hash_name = aliases[i].name;
            break;
        }
    }
    for (size_t i = 0; i < sizeof(digest_infos) / sizeof(digest_infos[0]); i++) {
        if (strcasecmp(hash_name, digest_infos[i].name) == 0) {
            *out = (struct sp_bytes){digest_infos[i].der, digest_infos[i].len};
            return 0;
        }
    }
    return SP_ENOENT;
}

int sp_rsa_encode_pkcs1(uint8_t *em, size_t em_len, struct sp_bytes digest_info,
                        struct sp_bytes digest)
{
    size_t room, fill;

    if (em_len < PADDING_MIN)
        return SP_ETOOBIG;
    room = em_len - PADDING_MIN;
    if (digest_info.len > room || digest.len > room - digest_info.len)
        return SP_ETOOBIG;
    fill = em_len - 3 - digest_info.len - digest.len;
    em[0] = 0;
    em[1] = 1;
    memset(em + 2, 0xff, fill);
    em[2 + fill] = 0;
    if (digest_info.len)
        memcpy(em + 3 + fill, digest_info.data, digest_info.len);
    if (digest.len)
        memcpy(em + 3 + fill + digest_info.len, digest.data, digest.len);
    return 0;
}

/* --- decoding ------------------------------------------------------------------------- */

/* Keeps the optimiser from finding out that a mask has two values, and branching on it. */
static size_t hide(size_t mask)
{
    OPAQUE(mask);
    return mask;
}

/* All ones if x is 0. */
static size_t is_zero(size_t x)
{
    return hide(0 - (~(x | (0 - x)) >> (8 * sizeof(x) - 1)));
}

/* All ones if x < y, for x, y below half the range. */
static size_t is_below(size_t x, size_t y)
{
    return hide(0 - ((x - y) >> (8 * sizeof(x) - 1)));
}

/*
 * Moves a[len] down by `shift`, which is secret and below len, one bit of it at a time. What comes in
 * at the top is undefined.
 */
static void shift_down(uint8_t *a, size_t len, size_t shift)
{
    for (size_t step = 1; step < len; step <<= 1) {
        size_t moves = ~is_zero(shift & step);

        for (size_t i = 0; i + step < len; i++)
            a[i] = (uint8_t)((a[i + step] & moves) | (a[i] & ~moves));
    }
}

ptrdiff_t sp_rsa_decode_pkcs1(const uint8_t *em, size_t em_len, uint8_t *out, size_t out_max)
{
    uint8_t message[DECODE_MAX];
    size_t good, found = 0, start = 0, len, room;

    if (em_len < PADDING_MIN || em_len > DECODE_MAX)
        return SP_EINVAL;
    good = is_zero(em[0]) & is_zero((size_t)em[1] ^ 2);
    for (size_t i = 2; i < em_len; i++) {
        size_t zero = is_zero(em[i]);

        start |= (i + 1) & zero & ~found;
        found |= zero;
    }
    good &= found & ~is_below(start, PADDING_MIN);
    len = em_len - start;
    good &= ~is_below(out_max, len);

    room = em_len - PADDING_MIN;
    memcpy(message, em + PADDING_MIN, room);
    shift_down(message, room, start - PADDING_MIN);
    if (room > out_max)
        room = out_max;
    /* The bytes of out beyond the message keep their values by being rewritten. */
    for (size_t i = 0; i < room; i++) {
        size_t inside = good & is_below(i, len);

        out[i] = (uint8_t)((message[i] & inside) | (out[i] & ~inside));
    }
    lanes_wipe(message, sizeof(message));
    return (ptrdiff_t)((len & good) | ((size_t)(ptrdiff_t)SP_EINVAL & ~good));
}

void sp_rsa_decode_tls(const uint8_t *em, size_t em_len, unsigned version, unsigned alternative,
                       const uint8_t random48[48], uint8_t out[48])
{
    const uint8_t *secret;
    size_t good, sent, accepted;

    if (em_len < PADDING_MIN + TLS_SECRET_LEN) {
        memmove(out, random48, TLS_SECRET_LEN);
        return;
    }
    /* The message's length is known, so its place is. */
    secret = em + em_len - TLS_SECRET_LEN;
    good = is_zero(em[0]) & is_zero((size_t)em[1] ^ 2) & is_zero(secret[-1]);
    for (const uint8_t *p = em + 2; p < secret - 1; p++)
        good &= ~is_zero(*p);
    sent = (size_t)secret[0] << 8 | secret[1];
    accepted = is_zero(sent ^ version);
    /* Both are public. */
    if (alternative)
        accepted |= is_zero(sent ^ alternative);
    good &= accepted;
    for (int i = 0; i < TLS_SECRET_LEN; i++)
        out[i] = (uint8_t)((secret[i] & good) | (random48[i] & ~good));
}
