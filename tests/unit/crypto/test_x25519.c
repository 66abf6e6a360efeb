/*
 * X25519 in lanes against RFC 7748 and OpenSSL. SP_CRYPTO_CASES is the number of random batches of
 * the vector kernel; plain C gets a sixteenth of them.
 */
#include "crypto/kernel/x25519.h"

#include <openssl/evp.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define DEFAULT_CASES 800
#define PORTABLE_SHARE 16

typedef const uint8_t (*rows)[32];

struct batch {
    uint8_t scalar[LANES][32], u[LANES][32], out[LANES][32], expected[LANES][32];
};

/* Both kernels, or one where the instructions are missing. */
static const struct x25519_kernel *kernels[2];
static int kernel_count;

static uint64_t random_state = 88172645463325252u;

/* A fixed sequence (xorshift64, Marsaglia 2003), so that a failure comes again. */
static uint8_t random_byte(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint8_t)(random_state >> 32);
}

static void random_rows(uint8_t out[LANES][32])
{
    for (int i = 0; i < LANES; i++)
        for (int j = 0; j < 32; j++)
            out[i][j] = random_byte();
}

static void from_hex(uint8_t out[32], const char *hex)
{
    assert_int_equal(strlen(hex), 64);
    for (int i = 0; i < 32; i++) {
        char pair[3] = {hex[2 * i], hex[2 * i + 1], 0};

        out[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
}

/* What OpenSSL makes of one lane; zero where it refuses the result. */
static void by_openssl(uint8_t out[32], const uint8_t scalar[32], const uint8_t u[32])
{
    EVP_PKEY *own = EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, scalar, 32);
    EVP_PKEY *peer = EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, NULL, u, 32);
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(own, NULL);
    size_t len = 32;

    assert_non_null(ctx);
    assert_int_equal(EVP_PKEY_derive_init(ctx), 1);
    assert_int_equal(EVP_PKEY_derive_set_peer(ctx, peer), 1);
    if (EVP_PKEY_derive(ctx, out, &len) != 1)
        memset(out, 0, 32);
    EVP_PKEY_CTX_free(ctx);
    EVP_PKEY_free(own);
    EVP_PKEY_free(peer);
}

static void by_openssl_base(uint8_t out[32], const uint8_t scalar[32])
{
    EVP_PKEY *own = EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, scalar, 32);
    size_t len = 32;

    assert_non_null(own);
    assert_int_equal(EVP_PKEY_get_raw_public_key(own, out, &len), 1);
    EVP_PKEY_free(own);
}

static void derive_as_expected(struct batch *b)
{
    for (int k = 0; k < kernel_count; k++) {
        memset(b->out, 0xa5, sizeof(b->out));
        kernels[k]->derive(b->out, (rows)b->scalar, (rows)b->u);
        assert_memory_equal(b->out, b->expected, sizeof(b->out));
    }
}

static void base_as_expected(struct batch *b)
{
    for (int k = 0; k < kernel_count; k++) {
        memset(b->out, 0xa5, sizeof(b->out));
        kernels[k]->base(b->out, (rows)b->scalar);
        assert_memory_equal(b->out, b->expected, sizeof(b->out));
    }
}

/* --- RFC 7748, sections 5.2 and 6.1 -------------------------------------------------- */

#define ALICE "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a"
#define ALICE_PUBLIC "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"
#define BOB "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb"
#define BOB_PUBLIC "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"
#define SHARED "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"

static const struct {
    const char *scalar, *u, *out;
} vectors[] = {
    {"a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
     "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
     "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552"},
    {"4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
     "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
     "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957"},
    {ALICE, BOB_PUBLIC, SHARED},
    {BOB, ALICE_PUBLIC, SHARED},
};

#define VECTOR_COUNT (sizeof(vectors) / sizeof(vectors[0]))

static void rfc_vectors(void **state)
{
    struct batch b;

    for (size_t i = 0; i < LANES; i++) {
        from_hex(b.scalar[i], vectors[i % VECTOR_COUNT].scalar);
        from_hex(b.u[i], vectors[i % VECTOR_COUNT].u);
        from_hex(b.expected[i], vectors[i % VECTOR_COUNT].out);
    }
    derive_as_expected(&b);
    for (int i = 0; i < LANES; i++) {
        from_hex(b.scalar[i], i % 2 ? ALICE : BOB);
        from_hex(b.expected[i], i % 2 ? ALICE_PUBLIC : BOB_PUBLIC);
    }
    base_as_expected(&b);
}

/* The first kernel goes to the end; plain C where it is the second one would need seconds. */
static void rfc_iterations(void **state)
{
    for (int k = 0; k < kernel_count; k++) {
        struct batch b = {.scalar = {{9}}};
        int rounds = k == 0 ? 1000 : 1;
        uint8_t expected[32];

        for (int i = 0; i < LANES; i++)
            b.scalar[i][0] = b.u[i][0] = 9;
        for (int i = 1; i <= rounds; i++) {
            kernels[k]->derive(b.out, (rows)b.scalar, (rows)b.u);
            memcpy(b.u, b.scalar, sizeof(b.u));
            memcpy(b.scalar, b.out, sizeof(b.scalar));
            if (i == 1)
                from_hex(expected,
                         "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079");
            else if (i == 1000)
                from_hex(expected,
                         "684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51");
            else
                continue;
            for (int j = 0; j < LANES; j++)
                assert_memory_equal(b.out[j], expected, 32);
        }
    }
}

/* --- special values ------------------------------------------------------------------ */

/*
 * u = 0, 1, the two of order 8, p - 1, p, p + 1 and these plus 2^255: all of small order on the
 * curve or its twist. A clamped scalar is a multiple of 8, so that the result is zero.
 */
static const char *const low_order[] = {
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
    "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "0000000000000000000000000000000000000000000000000000000000000080",
    "0100000000000000000000000000000000000000000000000000000000000080",
    "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b880",
    "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f11d7",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
};

#define LOW_ORDER_COUNT (sizeof(low_order) / sizeof(low_order[0]))

/* In every lane, the others being ordinary: zero in one must not spoil its neighbours. */
static void low_order_points(void **state)
{
    for (size_t i = 0; i < LOW_ORDER_COUNT; i++) {
        struct batch b;
        size_t lane = i % LANES;

        random_rows(b.scalar);
        random_rows(b.u);
        for (size_t j = 0; j < LANES; j++)
            by_openssl(b.expected[j], b.scalar[j], b.u[j]);
        from_hex(b.u[lane], low_order[i]);
        memset(b.expected[lane], 0, 32);
        derive_as_expected(&b);
    }
}

/* Values of p + 2 to 2^255 - 1 are taken modulo p, and the highest bit does not count. */
static void other_encodings(void **state)
{
    for (int step = 0; step < 2; step++) {
        struct batch b, plain;

        random_rows(b.scalar);
        memset(plain.u, 0, sizeof(plain.u));
        for (int i = 0; i < LANES; i++) {
            int excess = i < 2 ? 18 - i : 2 + 2 * i; /* u = p + excess */

            memset(b.u[i], 0xff, 32);
            b.u[i][0] = (uint8_t)(0xed + excess);
            b.u[i][31] = step ? 0xff : 0x7f;
            plain.u[i][0] = (uint8_t)excess;
            by_openssl(b.expected[i], b.scalar[i], plain.u[i]);
        }
        derive_as_expected(&b);
        random_rows(b.u);
        for (int i = 0; i < LANES; i++) {
            b.u[i][31] = (uint8_t)(step ? b.u[i][31] | 0x80 : b.u[i][31] & 0x7f);
            by_openssl(b.expected[i], b.scalar[i], b.u[i]);
        }
        derive_as_expected(&b);
    }
}

/* Scalars whose digits are extreme in a ladder or in windows, before and after clamping. */
static void special_scalars(void **state)
{
    static const uint8_t fill[] = {0x00, 0xff, 0x88, 0x77, 0x80, 0x7f, 0x55, 0xaa,
                                   0x08, 0x8f, 0xf8, 0x10, 0x01, 0xfe, 0xf0, 0x78,
                                   0x87, 0x0f, 0xe7, 0x18, 0xc6, 0x39, 0x84, 0x7b};

    for (size_t first = 0; first < sizeof(fill); first += LANES) {
        struct batch b;

        random_rows(b.u);
        for (size_t i = 0; i < LANES; i++) {
            memset(b.scalar[i], fill[first + i], 32);
            by_openssl(b.expected[i], b.scalar[i], b.u[i]);
        }
        derive_as_expected(&b);
        for (size_t i = 0; i < LANES; i++)
            by_openssl_base(b.expected[i], b.scalar[i]);
        base_as_expected(&b);
    }
}

/* Multiples of the base point by a single power of two more than the least scalar, 2^254. */
static void single_bits(void **state)
{
    for (int first = 0; first < 256; first += LANES) {
        struct batch b = {.scalar = {{0}}};

        for (int i = 0; i < LANES; i++) {
            b.scalar[i][(first + i) / 8] = (uint8_t)(1 << (first + i) % 8);
            by_openssl_base(b.expected[i], b.scalar[i]);
        }
        base_as_expected(&b);
    }
}

/* --- random values ------------------------------------------------------------------- */

static void random_values(void **state)
{
    const char *cases = getenv("SP_CRYPTO_CASES");
    long count = cases ? strtol(cases, NULL, 10) : DEFAULT_CASES;

    for (int k = 0; k < kernel_count; k++) {
        long own = kernels[k] == x25519_kernel_portable() ? count / PORTABLE_SHARE + 1 : count;

        for (long n = 0; n < own; n++) {
            struct batch b;
            long checked =
                n % LANES; /* OpenSSL is the slow one here: a lane a batch, each in turn */

            random_rows(b.scalar);
            random_rows(b.u);
            by_openssl(b.expected[0], b.scalar[checked], b.u[checked]);
            kernels[k]->derive(b.out, (rows)b.scalar, (rows)b.u);
            assert_memory_equal(b.out[checked], b.expected[0], 32);
            by_openssl_base(b.expected[0], b.scalar[checked]);
            kernels[k]->base(b.out, (rows)b.scalar);
            assert_memory_equal(b.out[checked], b.expected[0], 32);
        }
    }
}

/* One value moves through the lanes among eight different ones; every result is compared. */
static void lane_positions(void **state)
{
    struct batch first, b;

    random_rows(first.scalar);
    random_rows(first.u);
    for (int i = 0; i < LANES; i++)
        by_openssl(first.expected[i], first.scalar[i], first.u[i]);
    for (int shift = 0; shift < LANES; shift++) {
        for (int i = 0; i < LANES; i++) {
            int from = (i + shift) % LANES;

            memcpy(b.scalar[i], first.scalar[from], 32);
            memcpy(b.u[i], first.u[from], 32);
            memcpy(b.expected[i], first.expected[from], 32);
        }
        derive_as_expected(&b);
    }
}

static void aliased(void **state)
{
    for (int k = 0; k < kernel_count; k++) {
        struct batch b, copy;

        random_rows(b.scalar);
        random_rows(b.u);
        copy = b;
        for (int i = 0; i < LANES; i++)
            by_openssl(b.expected[i], b.scalar[i], b.u[i]);
        kernels[k]->derive(b.scalar, (rows)b.scalar, (rows)b.u);
        assert_memory_equal(b.scalar, b.expected, sizeof(b.scalar));
        assert_memory_equal(b.u, copy.u, sizeof(b.u));
        memcpy(b.scalar, copy.scalar, sizeof(b.scalar));
        kernels[k]->derive(b.u, (rows)b.scalar, (rows)b.u);
        assert_memory_equal(b.u, b.expected, sizeof(b.u));
        assert_memory_equal(b.scalar, copy.scalar, sizeof(b.scalar));
        for (int i = 0; i < LANES; i++)
            by_openssl_base(b.expected[i], b.scalar[i]);
        kernels[k]->base(b.scalar, (rows)b.scalar);
        assert_memory_equal(b.scalar, b.expected, sizeof(b.scalar));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rfc_vectors),      cmocka_unit_test(rfc_iterations),
        cmocka_unit_test(low_order_points), cmocka_unit_test(other_encodings),
        cmocka_unit_test(special_scalars),  cmocka_unit_test(single_bits),
        cmocka_unit_test(random_values),    cmocka_unit_test(lane_positions),
        cmocka_unit_test(aliased),
    };

    if (x25519_kernel_ifma())
        kernels[kernel_count++] = x25519_kernel_ifma();
    else
        print_message("AVX-512 IFMA is missing here: only the portable kernel is tested\n");
    kernels[kernel_count++] = x25519_kernel_portable();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
