/*
 * The P-256 lanes against OpenSSL. SP_CRYPTO_CASES is the number of random scalars for each
 * function of the IFMA kernel; the portable one gets an eighth.
 */
#define OPENSSL_SUPPRESS_DEPRECATED /* ECDSA_do_verify takes r and s as they are */

#include "crypto/kernel/p256.h"

#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/obj_mac.h>
#include <openssl/rand.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define DEFAULT_CASES 2048
#define EDGES_MAX 1600

struct curve {
    EC_GROUP *group;
    BN_CTX *ctx;
    const BIGNUM *n, *p;
    uint8_t edges[EDGES_MAX][32]; /* scalars in [1, n-1] */
    size_t edge_count;
};

static struct curve curve;

static const struct p256_kernel *kernel_of(void **state)
{
    return *(const struct p256_kernel **)*state;
}

static size_t case_count(void **state)
{
    const char *text = getenv("SP_CRYPTO_CASES");
    size_t count = text ? strtoul(text, NULL, 10) : DEFAULT_CASES;

    if (kernel_of(state) == p256_kernel_portable())
        count /= 8;
    return count < LANES ? LANES : count;
}

static BIGNUM *bn_of(const uint8_t bytes[32])
{
    BIGNUM *bn = BN_bin2bn(bytes, 32, NULL);

    assert_non_null(bn);
    return bn;
}

static void bn_bytes(uint8_t out[32], const BIGNUM *bn)
{
    assert_int_equal(BN_bn2binpad(bn, out, 32), 32);
}

/* m + offset as bytes. */
static void near(uint8_t out[32], const BIGNUM *m, long offset)
{
    BIGNUM *bn = BN_dup(m);

    assert_non_null(bn);
    assert_int_equal(
        offset < 0 ? BN_sub_word(bn, (BN_ULONG)-offset) : BN_add_word(bn, (BN_ULONG)offset), 1);
    bn_bytes(out, bn);
    BN_free(bn);
}

static void random_scalar(uint8_t out[32])
{
    BIGNUM *bn = BN_new();

    do
        assert_int_equal(BN_rand_range(bn, curve.n), 1);
    while (BN_is_zero(bn));
    bn_bytes(out, bn);
    BN_free(bn);
}

/* Adds k, and n - k, if it is in range. */
static void add_edge(const BIGNUM *k)
{
    BIGNUM *other = BN_new();

    if (!BN_is_zero(k) && !BN_is_negative(k) && BN_cmp(k, curve.n) < 0) {
        assert_in_range(curve.edge_count, 0, EDGES_MAX - 2);
        bn_bytes(curve.edges[curve.edge_count++], k);
        assert_int_equal(BN_sub(other, curve.n, k), 1);
        bn_bytes(curve.edges[curve.edge_count++], other);
    }
    BN_free(other);
}

/*
 * Small scalars, around powers of two, around the multiples 2^j * a close to n at which a sum of
 * digits could meet the point that it adds, and the one, 2^256 - n, that breaks adding digits from
 * below.
 */
static void make_edges(void)
{
    BIGNUM *k = BN_new(), *one = BN_new();

    BN_one(one);
    for (BN_ULONG i = 1; i <= 70; i++) {
        BN_set_word(k, i);
        add_edge(k);
    }
    for (int bit = 6; bit < 257; bit++) {
        for (int offset = -1; offset <= 1; offset++) {
            BN_lshift(k, one, bit);
            if (offset < 0)
                BN_sub_word(k, 1);
            else
                BN_add_word(k, (BN_ULONG)offset);
            if (bit < 250 && bit % 5 > 1)
                continue;
            add_edge(k);
        }
    }
    BN_lshift(k, one, 256);
    BN_sub(k, k, curve.n);
    add_edge(k);
    /* Many zero digits, and digits all alike. */
    for (int word = 0; word < 32; word++) {
        BN_set_word(k, 0);
        for (int bit = word; bit < 255; bit += 32)
            BN_set_bit(k, bit);
        add_edge(k);
        BN_set_word(k, 0);
        for (int i = 0; i < 51; i++) {
            BN_lshift(k, k, 5);
            BN_add_word(k, (BN_ULONG)word);
        }
        add_edge(k);
    }
    BN_free(one);
    BN_free(k);
}

/* The scalars of eight cases: first the edges, then random ones. */
static void scalars(uint8_t k[LANES][32], size_t at)
{
    for (size_t i = 0; i < LANES; i++) {
        if (at + i < curve.edge_count)
            memcpy(k[i], curve.edges[at + i], 32);
        else
            random_scalar(k[i]);
    }
}

static size_t all_cases(void **state)
{
    return curve.edge_count + case_count(state);
}

/* (x, y) = k * (px, py), or k * G without a point. */
static void library_multiply(uint8_t x[32], uint8_t y[32], const uint8_t k[32], const uint8_t *px,
                             const uint8_t *py)
{
    EC_POINT *point = EC_POINT_new(curve.group);
    BIGNUM *bk = bn_of(k), *bx = BN_new(), *by = BN_new();

    if (px) {
        BN_bin2bn(px, 32, bx);
        BN_bin2bn(py, 32, by);
        assert_int_equal(EC_POINT_set_affine_coordinates(curve.group, point, bx, by, curve.ctx), 1);
        assert_int_equal(EC_POINT_mul(curve.group, point, NULL, point, bk, curve.ctx), 1);
    } else {
        assert_int_equal(EC_POINT_mul(curve.group, point, bk, NULL, NULL, curve.ctx), 1);
    }
    assert_int_equal(EC_POINT_get_affine_coordinates(curve.group, point, bx, by, curve.ctx), 1);
    bn_bytes(x, bx);
    bn_bytes(y, by);
    BN_free(bk);
    BN_free(bx);
    BN_free(by);
    EC_POINT_free(point);
}

static void base(void **state)
{
    const struct p256_kernel *kernel = kernel_of(state);
    uint8_t k[LANES][32], x[LANES][32], y[LANES][32], want_x[32], want_y[32];

    for (size_t at = 0; at < all_cases(state); at += LANES) {
        scalars(k, at);
        kernel->base(x, y, k);
        for (int i = 0; i < LANES; i++) {
            library_multiply(want_x, want_y, k[i], NULL, NULL);
            assert_memory_equal(x[i], want_x, 32);
            assert_memory_equal(y[i], want_y, 32);
        }
    }
}

/* One after another in every lane, the others holding random scalars. */
static void lane_positions(void **state)
{
    const struct p256_kernel *kernel = kernel_of(state);
    uint8_t k[LANES][32], x[LANES][32], y[LANES][32], want_x[32], want_y[32];

    for (int lane = 0; lane < LANES; lane++) {
        for (size_t edge = 0; edge < 8; edge++) {
            for (int i = 0; i < LANES; i++)
                random_scalar(k[i]);
            memcpy(k[lane], curve.edges[edge], 32);
            kernel->base(x, y, k);
            for (int i = 0; i < LANES; i++) {
                library_multiply(want_x, want_y, k[i], NULL, NULL);
                assert_memory_equal(x[i], want_x, 32);
                assert_memory_equal(y[i], want_y, 32);
            }
            /* k * (k * G), in place. */
            assert_int_equal(kernel->derive(x, k, x, y), 0xff);
            for (int i = 0; i < LANES; i++) {
                library_multiply(want_x, want_y, k[i], NULL, NULL);
                library_multiply(want_x, want_y, k[i], want_x, want_y);
                assert_memory_equal(x[i], want_x, 32);
            }
        }
    }
}

/* A point: of the case's number G, -G, or a random multiple. */
static void some_point(uint8_t x[32], uint8_t y[32], size_t number)
{
    static const uint8_t one[32] = {[31] = 1};
    uint8_t k[32];

    if (number % 4 == 0)
        memcpy(k, one, 32);
    else if (number % 4 == 1)
        near(k, curve.n, -1);
    else
        random_scalar(k);
    library_multiply(x, y, k, NULL, NULL);
}

static void derive(void **state)
{
    const struct p256_kernel *kernel = kernel_of(state);
    uint8_t k[LANES][32], x[LANES][32], px[LANES][32], py[LANES][32], want_x[32], want_y[32];

    for (size_t at = 0; at < all_cases(state); at += LANES) {
        scalars(k, at);
        for (size_t i = 0; i < LANES; i++)
            some_point(px[i], py[i], at / LANES + i);
        assert_int_equal(kernel->derive(x, k, px, py), 0xff);
        for (int i = 0; i < LANES; i++) {
            library_multiply(want_x, want_y, k[i], px[i], py[i]);
            assert_memory_equal(x[i], want_x, 32);
        }
    }
}

#define BAD_POINTS 8

/* Not a point, and why. */
static void bad_point(uint8_t x[32], uint8_t y[32], int kind)
{
    switch (kind) {
    case 0: /* (0, 0) */
        memset(x, 0, 32);
        memset(y, 0, 32);
        break;
    case 1: /* y off by one bit */
        y[31] ^= 1;
        break;
    case 2: /* x off by its top bit */
        x[0] ^= 0x80;
        break;
    case 3: /* x = p */
        near(x, curve.p, 0);
        break;
    case 4: /* all ones */
        memset(x, 0xff, 32);
        break;
    case 5:
        memset(y, 0xff, 32);
        break;
    case 6: /* y = p */
        near(y, curve.p, 0);
        break;
    default: /* x and y exchanged */
        for (int i = 0; i < 32; i++) {
            uint8_t byte = x[i];

            x[i] = y[i];
            y[i] = byte;
        }
    }
}

static void invalid_points(void **state)
{
    const struct p256_kernel *kernel = kernel_of(state);
    uint8_t k[LANES][32], x[LANES][32], px[LANES][32], py[LANES][32], want_x[32], want_y[32];

    for (int kind = 0; kind < BAD_POINTS; kind++) {
        for (int lane = 0; lane < LANES; lane++) {
            for (size_t i = 0; i < LANES; i++) {
                random_scalar(k[i]);
                some_point(px[i], py[i], i);
            }
            bad_point(px[lane], py[lane], kind);
            assert_int_equal(kernel->derive(x, k, px, py), 0xff & ~(1u << lane));
            for (int i = 0; i < LANES; i++) {
                if (i == lane)
                    continue;
                library_multiply(want_x, want_y, k[i], px[i], py[i]);
                assert_memory_equal(x[i], want_x, 32);
            }
        }
    }
}

/*
 * Points whose coordinates are so small that x + p, or y + p, still has 256 bits: congruent to a
 * point, and yet not one. The point at x = 0 is one, too.
 */
static void not_reduced(void **state)
{
    const struct p256_kernel *kernel = kernel_of(state);
    uint8_t k[LANES][32], x[LANES][32], px[LANES][32], py[LANES][32], want_x[32], want_y[32];
    EC_POINT *point = EC_POINT_new(curve.group);
    BIGNUM *bx = BN_new(), *by = BN_new();

    for (int small = 0, found = 0; found < 4; small++) {
        BN_set_word(bx, (BN_ULONG)small);
        if (EC_POINT_set_compressed_coordinates(curve.group, point, bx, 0, curve.ctx) != 1)
            continue;
        found++;
        assert_int_equal(EC_POINT_get_affine_coordinates(curve.group, point, bx, by, curve.ctx), 1);
        for (int i = 0; i < LANES; i++) {
            random_scalar(k[i]);
            bn_bytes(px[i], bx);
            bn_bytes(py[i], by);
        }
        near(px[found], curve.p, small);
        assert_int_equal(kernel->derive(x, k, px, py), 0xff & ~(1u << found));
        library_multiply(want_x, want_y, k[0], px[0], py[0]);
        assert_memory_equal(x[0], want_x, 32);
    }
    BN_free(bx);
    BN_free(by);
    EC_POINT_free(point);
}

static void nonce(void **state)
{
    const struct p256_kernel *kernel = kernel_of(state);
    uint8_t k[LANES][32], r[LANES][32], k_inverse[LANES][32], want[32], want_y[32];

    for (size_t at = 0; at < all_cases(state); at += LANES) {
        scalars(k, at);
        assert_int_equal(kernel->nonce(r, k_inverse, k), 0xff);
        for (int i = 0; i < LANES; i++) {
            BIGNUM *bk = bn_of(k[i]), *bn;

            library_multiply(want, want_y, k[i], NULL, NULL);
            bn = bn_of(want);
            assert_int_equal(BN_nnmod(bn, bn, curve.n, curve.ctx), 1);
            bn_bytes(want, bn);
            assert_memory_equal(r[i], want, 32);
            assert_non_null(BN_mod_inverse(bn, bk, curve.n, curve.ctx));
            bn_bytes(want, bn);
            assert_memory_equal(k_inverse[i], want, 32);
            BN_free(bn);
            BN_free(bk);
        }
    }
}

/* s = k_inverse * (z + r * d) mod n by BN. */
static void library_sign(uint8_t s[32], const uint8_t k_inverse[32], const uint8_t r[32],
                         const uint8_t z[32], const uint8_t d[32])
{
    BIGNUM *bk = bn_of(k_inverse), *br = bn_of(r), *bz = bn_of(z), *bd = bn_of(d);

    assert_int_equal(BN_mod_mul(br, br, bd, curve.n, curve.ctx), 1);
    assert_int_equal(BN_mod_add(br, br, bz, curve.n, curve.ctx), 1);
    assert_int_equal(BN_mod_mul(br, br, bk, curve.n, curve.ctx), 1);
    bn_bytes(s, br);
    BN_free(bk);
    BN_free(br);
    BN_free(bz);
    BN_free(bd);
}

/* z: 0, 1, n - 1, n, n + 1, all ones, and random bits. */
static void some_hash(uint8_t z[32], size_t number)
{
    memset(z, 0, 32);
    switch (number % 8) {
    case 0:
        break;
    case 1:
        z[31] = 1;
        break;
    case 2:
    case 3:
    case 4:
        near(z, curve.n, (long)(number % 8) - 3);
        break;
    case 5:
        memset(z, 0xff, 32);
        break;
    default:
        assert_int_equal(RAND_bytes(z, 32), 1);
    }
}

static void verify(const uint8_t d[32], const uint8_t z[32], const uint8_t r[32],
                   const uint8_t s[32])
{
    EC_KEY *key = EC_KEY_new_by_curve_name(NID_X9_62_prime256v1);
    EC_POINT *public = EC_POINT_new(curve.group);
    ECDSA_SIG *sig = ECDSA_SIG_new();
    BIGNUM *bd = bn_of(d);

    assert_int_equal(EC_POINT_mul(curve.group, public, bd, NULL, NULL, curve.ctx), 1);
    assert_int_equal(EC_KEY_set_public_key(key, public), 1);
    assert_int_equal(ECDSA_SIG_set0(sig, bn_of(r), bn_of(s)), 1);
    assert_int_equal(ECDSA_do_verify(z, 32, sig, key), 1);
    ECDSA_SIG_free(sig);
    EC_POINT_free(public);
    EC_KEY_free(key);
    BN_free(bd);
}

static void sign(void **state)
{
    const struct p256_kernel *kernel = kernel_of(state);
    uint8_t k[LANES][32], r[LANES][32], k_inverse[LANES][32], z[LANES][32], d[LANES][32],
        s[LANES][32];
    uint8_t want[32];

    for (size_t at = 0; at < all_cases(state); at += LANES) {
        scalars(k, at);
        for (size_t i = 0; i < LANES; i++) {
            random_scalar(d[i]);
            some_hash(z[i], at / LANES + i);
        }
        /* d = 1, 2, .. and n - 1, n - 2, .. */
        memcpy(d[at / LANES % LANES], curve.edges[at / LANES % 16], 32);
        assert_int_equal(kernel->nonce(r, k_inverse, k), 0xff);
        assert_int_equal(kernel->sign(s, k_inverse, r, z, d), 0xff);
        for (int i = 0; i < LANES; i++) {
            library_sign(want, k_inverse[i], r[i], z[i], d[i]);
            assert_memory_equal(s[i], want, 32);
        }
        verify(d[at / LANES % LANES], z[at / LANES % LANES], r[at / LANES % LANES],
               s[at / LANES % LANES]);
    }
}

/* With z = -r * d, s is zero, and only that lane says so. */
static void zero_s(void **state)
{
    const struct p256_kernel *kernel = kernel_of(state);
    uint8_t k[LANES][32], r[LANES][32], k_inverse[LANES][32], z[LANES][32], d[LANES][32],
        s[LANES][32];
    static const uint8_t zero[32];

    for (int lane = 0; lane < LANES; lane++) {
        BIGNUM *br, *bd;

        for (int i = 0; i < LANES; i++) {
            random_scalar(k[i]);
            random_scalar(d[i]);
            random_scalar(z[i]);
        }
        assert_int_equal(kernel->nonce(r, k_inverse, k), 0xff);
        br = bn_of(r[lane]);
        bd = bn_of(d[lane]);
        assert_int_equal(BN_mod_mul(br, br, bd, curve.n, curve.ctx), 1);
        assert_int_equal(BN_sub(br, curve.n, br), 1);
        bn_bytes(z[lane], br);
        assert_int_equal(kernel->sign(s, k_inverse, r, z, d), 0xff & ~(1u << lane));
        assert_memory_equal(s[lane], zero, 32);
        BN_free(br);
        BN_free(bd);
    }
}

int main(void)
{
    static const struct p256_kernel *ifma, *portable;
    const struct CMUnitTest ifma_tests[] = {
        cmocka_unit_test_prestate(base, &ifma),
        cmocka_unit_test_prestate(lane_positions, &ifma),
        cmocka_unit_test_prestate(derive, &ifma),
        cmocka_unit_test_prestate(invalid_points, &ifma),
        cmocka_unit_test_prestate(not_reduced, &ifma),
        cmocka_unit_test_prestate(nonce, &ifma),
        cmocka_unit_test_prestate(sign, &ifma),
        cmocka_unit_test_prestate(zero_s, &ifma),
    };
    const struct CMUnitTest portable_tests[] = {
        cmocka_unit_test_prestate(base, &portable),
        cmocka_unit_test_prestate(lane_positions, &portable),
        cmocka_unit_test_prestate(derive, &portable),
        cmocka_unit_test_prestate(invalid_points, &portable),
        cmocka_unit_test_prestate(not_reduced, &portable),
        cmocka_unit_test_prestate(nonce, &portable),
        cmocka_unit_test_prestate(sign, &portable),
        cmocka_unit_test_prestate(zero_s, &portable),
    };
    int failed;

    ifma = p256_kernel_ifma();
    portable = p256_kernel_portable();
    curve.group = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1);
    curve.ctx = BN_CTX_new();
    curve.n = EC_GROUP_get0_order(curve.group);
    curve.p = EC_GROUP_get0_field(curve.group);
    make_edges();
    failed = cmocka_run_group_tests_name("p256 portable", portable_tests, NULL, NULL);
    if (ifma)
        failed += cmocka_run_group_tests_name("p256 ifma", ifma_tests, NULL, NULL);
    else
        print_message("[  SKIPPED ] p256 ifma: no AVX-512 IFMA\n");
    BN_CTX_free(curve.ctx);
    EC_GROUP_free(curve.group);
    return failed;
}
