#include "base/hash.h"

#include "base/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* What HAProxy answers for the same bytes. */
static const struct {
    const char *text;
    uint32_t sdbm, djb2, wt6, crc32, crc32c;
} vectors[] = {
    {"", 0x00000000, 0x00001505, 0xf99a0360, 0x00000000, 0x00000000},
    {"a", 0x00000061, 0x0002b606, 0x714bf225, 0xe8b7be43, 0xc1d04330},
    {"/index.html", 0x33242976, 0xe114b9cf, 0x3101077e, 0xea224b42, 0xbeacccb5},
    {"10.0.0.1", 0x8ac57d46, 0x92045e21, 0xa8071466, 0x26fec193, 0xc879cf82},
    {"\xff\x80\x01", 0x7e119100, 0x0b8b0025, 0x346e88c7, 0x0d5d4522, 0xf8c9f128},
    {"the quick brown fox jumps over the lazy dog, twice over", 0xb9032b53, 0x56449542, 0x6a482278,
     0x2ebf984c, 0x9fbe24ed},
};

static void agrees_with_haproxy(void **state)
{
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        struct str s = str_of(vectors[i].text);

        assert_int_equal(hash_sdbm(s), vectors[i].sdbm);
        assert_int_equal(hash_djb2(s, HASH_DJB2_SEED), vectors[i].djb2);
        assert_int_equal(hash_wt6(s), vectors[i].wt6);
        assert_int_equal(hash_crc32(s), vectors[i].crc32);
        assert_int_equal(hash_crc32c(s), vectors[i].crc32c);
    }
    assert_int_equal(hash_avalanche(0), 0xab4ed927);
    assert_int_equal(hash_avalanche(1), 0x348681b6);
    assert_int_equal(hash_avalanche(0xffffffff), 0x7e64c182);
    assert_int_equal(hash_avalanche(0x12345678), 0xc27c5489);
}

static void published_vectors(void **state)
{
    assert_int_equal(hash_crc32(STR("123456789")), 0xcbf43926);
    assert_int_equal(hash_crc32c(STR("123456789")), 0xe3069283); /* RFC 3720 B.4 */
    assert_true(hash_fnv1a64(STR(""), 0) == 0xcbf29ce484222325);
    assert_true(hash_fnv1a64(STR("a"), 0) == 0xaf63dc4c8601ec8c);
    assert_true(hash_fnv1a64(STR("foobar"), 0) == 0x85944171f73967e8);
    assert_true(hash_fnv1a64(STR("a"), 1) != hash_fnv1a64(STR("a"), 0));
}

static void nothing_needs_a_pointer(void **state)
{
    assert_int_equal(hash_sdbm(STR_NULL), hash_sdbm(STR("")));
    assert_int_equal(hash_wt6(STR_NULL), hash_wt6(STR("")));
    assert_int_equal(hash_crc32(STR_NULL), 0);
    assert_int_equal(hash_base64_encode(STR_NULL, NULL, 0), 0);
    assert_int_equal(hash_base64_decode(STR_NULL, NULL, 0), 0);
}

static void generator_is_xorshift128plus(void **state)
{
    struct hash_rng rng = {.state = {1, 2}};
    struct hash_rng a, b;

    /* By hand: s1 = 1 ^ 1 << 23, then s1 ^ 2 ^ s1 >> 18 ^ 2 >> 5 = 0x800023. */
    assert_true(hash_rng_next(&rng) == 3);
    assert_true(rng.state[0] == 2 && rng.state[1] == 0x800023);
    assert_true(hash_rng_next(&rng) == 0x800025);
    hash_rng_seed(&a);
    hash_rng_seed(&b);
    assert_true(a.state[0] != b.state[0] || a.state[1] != b.state[1]);
    assert_true(hash_rng_next(&a) != hash_rng_next(&a));
}

static void base64_of_rfc4648(void **state)
{
    static const struct {
        const char *plain, *coded;
    } pairs[] = {
        {"", ""},
        {"f", "Zg=="},
        {"fo", "Zm8="},
        {"foo", "Zm9v"},
        {"foob", "Zm9vYg=="},
        {"fooba", "Zm9vYmE="},
        {"foobar", "Zm9vYmFy"},
        {"\xfb\xff\xfe", "+//+"},
    };
    char out[16];

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        struct str plain = str_of(pairs[i].plain), coded = str_of(pairs[i].coded);

        memset(out, '#', sizeof(out));
        assert_int_equal(hash_base64_encode(plain, out, coded.len), coded.len);
        assert_memory_equal(out, coded.ptr, coded.len);
        assert_int_equal(out[coded.len], '#');
        memset(out, '#', sizeof(out));
        assert_int_equal(hash_base64_decode(coded, out, plain.len), plain.len);
        assert_memory_equal(out, plain.ptr, plain.len);
        assert_int_equal(out[plain.len], '#');
        if (plain.len) {
            memset(out, '#', sizeof(out));
            assert_int_equal(hash_base64_encode(plain, out, coded.len - 1), SP_ETOOBIG);
            assert_int_equal(hash_base64_decode(coded, out, plain.len - 1), SP_ETOOBIG);
            assert_int_equal(out[0], '#');
        }
    }
    assert_int_equal(hash_base64_encode(str_make("x", SIZE_MAX), out, SIZE_MAX), SP_ETOOBIG);
}

static void base64_refuses(void **state)
{
    static const char *const bad[] = {
        "A",        "AA",   "AAA",  "A===",  "====",  "=AAA",       "AA=A",
        "AA==AAAA", "AA-_", "AA A", "AAA\n", "AAAAA", "A\xc3\xa9=", "Zg==Zg=="};
    char out[16] = "########";

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (hash_base64_decode(str_of(bad[i]), out, sizeof(out)) != SP_EINVAL)
            fail_msg("accepted: %s", bad[i]);
    }
    assert_string_equal(out, "########");
}

static void base64_round_trips_every_byte(void **state)
{
    char plain[256], coded[344], back[256];

    for (int i = 0; i < 256; i++)
        plain[i] = (char)(255 - i);
    for (size_t len = 0; len <= 256; len++) {
        int n = hash_base64_encode(str_make(plain, len), coded, sizeof(coded));

        assert_int_equal(n, (len + 2) / 3 * 4);
        assert_int_equal(hash_base64_decode(str_make(coded, (size_t)n), back, sizeof(back)), len);
        assert_memory_equal(plain, back, len);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_haproxy),
        cmocka_unit_test(published_vectors),
        cmocka_unit_test(nothing_needs_a_pointer),
        cmocka_unit_test(generator_is_xorshift128plus),
        cmocka_unit_test(base64_of_rfc4648),
        cmocka_unit_test(base64_refuses),
        cmocka_unit_test(base64_round_trips_every_byte),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
