/* The arithmetic that the kernel module shares with the host. */
#include "sweep_math.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define MAX (SPK_UNKNOWN - 1)

static void test_sizes(void **state)
{
    assert_int_equal(spk_size_next(16, 4 << 20), 32);
    assert_int_equal(spk_size_next(2 << 20, 4 << 20), 4 << 20);
    assert_int_equal(spk_size_next(4 << 20, 4 << 20), 0);
    assert_int_equal(spk_size_next(3, 6), 6);
    assert_int_equal(spk_size_next(3, 5), 0);
    assert_int_equal(spk_size_next(0, 5), 0);
    assert_int_equal(spk_size_next(1ull << 63, SPK_UNKNOWN), 0);
    assert_int_equal(spk_size_count(16, 4 << 20), 19);
    assert_int_equal(spk_size_count(1, SPK_UNKNOWN), 64);
    assert_int_equal(spk_size_count(16, 31), 1);
    assert_int_equal(spk_size_count(32, 16), 0);
    assert_int_equal(spk_size_count(0, 16), 0);
}

static void test_multiply(void **state)
{
    assert_int_equal(spk_multiply(0, SPK_UNKNOWN), 0);
    assert_int_equal(spk_multiply(SPK_UNKNOWN, 0), 0);
    assert_int_equal(spk_multiply(1u << 31, 1u << 31), 1ull << 62);
    assert_int_equal(spk_multiply(1ull << 32, 1ull << 32), MAX);
    assert_int_equal(spk_multiply(MAX, 1), MAX);
    assert_int_equal(spk_multiply(3, MAX / 3), MAX / 3 * 3);
    assert_int_equal(spk_multiply(3, MAX / 3 + 1), MAX);
}

static void test_rates(void **state)
{
    assert_int_equal(spk_rate(0, 1), 0);
    assert_int_equal(spk_rate(5, 0), 0);
    assert_int_equal(spk_rate(1, SPK_NS_PER_S), 1);
    assert_int_equal(spk_rate(10, 3), 3333333333);
    /* 100 GB/s for ten minutes, whose product with 10^9 has 86 bits. */
    assert_int_equal(spk_rate(60000000000000, 600 * SPK_NS_PER_S), 100000000000);
    /* Beyond 2^34 ns the last bits may go: within one part in 2^33. */
    assert_in_range(spk_rate(123456789012345678, 599999999999), 205761315020918, 205761315020970);
    assert_int_equal(spk_rate(MAX, 1), MAX);
    assert_int_equal(spk_rate(MAX, SPK_NS_PER_S),
                     MAX / SPK_NS_PER_S * SPK_NS_PER_S + MAX % SPK_NS_PER_S);
}

/* Against 128-bit integers, over figures of all magnitudes. */
static void test_scale_by_wide_integers(void **state)
{
    uint64_t x = 0x9e3779b97f4a7c15;

    for (unsigned i = 0; i < 200000; i++) {
        uint64_t amount, whole, got;
        unsigned __int128 want;

        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        amount = x >> (x % 61);
        x *= 0xd1342543de82ef95;
        whole = (x >> (30 + x % 33)) + 1; /* up to 2^34 */
        got = spk_rate(amount, whole);
        want = (unsigned __int128)amount * SPK_NS_PER_S / whole;
        if (want > MAX)
            want = MAX;
        assert_true(got == (uint64_t)want);
    }
}

static void test_permille(void **state)
{
    assert_int_equal(spk_permille(0, 0), 0);
    assert_int_equal(spk_permille(0, 7), 0);
    assert_int_equal(spk_permille(7, 7), 1000);
    assert_int_equal(spk_permille(1, 3), 333);
    assert_int_equal(spk_permille(999999, 1000000), 999);
    assert_int_equal(spk_permille(9, 7), 1000);
    assert_int_equal(spk_permille(MAX / 2, MAX), 499);
}

static void test_busy(void **state)
{
    assert_int_equal(spk_busy_ns(2, 1000, 500, 1500), 1000);
    assert_int_equal(spk_busy_ns(1, 1000, 0, 0), 1000);
    assert_int_equal(spk_busy_ns(1, 1000, 0, 1000), 0);
    assert_int_equal(spk_busy_ns(1, 1000, 0, 1200), 0);     /* idle clocks read late */
    assert_int_equal(spk_busy_ns(4, 1000, 900, 800), 4000); /* or gone back */
    assert_int_equal(spk_busy_ns(0, 1000, 0, 0), 0);
    assert_int_equal(spk_busy_ns(4096, MAX, 0, 0), MAX);
}

/* Buckets follow each other, and a value is within a sixteenth of its bucket's. */
static void test_buckets(void **state)
{
    unsigned last = 0;

    for (uint64_t value = 0; value < 1u << 20; value++) {
        unsigned bucket = spk_bucket_of(value);
        uint64_t middle = spk_bucket_value(bucket);
        uint64_t off = middle > value ? middle - value : value - middle;

        assert_true(bucket == last || bucket == last + 1);
        assert_true(off <= value / 16 + 1);
        assert_int_equal(spk_bucket_of(middle), bucket);
        last = bucket;
    }
    assert_int_equal(spk_bucket_of(SPK_UNKNOWN), SPK_BUCKETS - 1);
    assert_int_equal(spk_bucket_of(1ull << 63), SPK_BUCKETS - 8);
}

static void test_quantiles(void **state)
{
    static struct spk_histogram h, other;

    memset(&h, 0, sizeof(h));
    memset(&other, 0, sizeof(other));
    assert_int_equal(spk_histogram_quantile(&h, 500), SPK_UNKNOWN);
    spk_histogram_add(&h, 5);
    assert_int_equal(spk_histogram_quantile(&h, 0), 5);
    assert_int_equal(spk_histogram_quantile(&h, 500), 5);
    assert_int_equal(spk_histogram_quantile(&h, 1000), 5);
    for (unsigned i = 0; i < 98; i++)
        spk_histogram_add(&h, 3);
    spk_histogram_add(&h, 1000000);
    assert_int_equal(h.total, 100);
    assert_int_equal(spk_histogram_quantile(&h, 500), 3);
    assert_int_equal(spk_histogram_quantile(&h, 979), 3);
    assert_int_equal(spk_histogram_quantile(&h, 980), 5);
    assert_in_range(spk_histogram_quantile(&h, 990), 940000, 1060000);
    for (unsigned i = 0; i < 300; i++)
        spk_histogram_add(&other, 7);
    spk_histogram_merge(&h, &other);
    assert_int_equal(h.total, 400);
    assert_int_equal(spk_histogram_quantile(&h, 500), 7);
}

static void test_counts_saturate(void **state)
{
    static struct spk_histogram h, other;

    memset(&h, 0, sizeof(h));
    memset(&other, 0, sizeof(other));
    h.counts[3] = SPK_COUNT_MAX;
    h.total = SPK_COUNT_MAX;
    spk_histogram_add(&h, 3);
    assert_int_equal(h.counts[3], SPK_COUNT_MAX);
    assert_int_equal(h.total, SPK_COUNT_MAX);
    other.counts[3] = other.counts[4] = 5;
    other.total = 10;
    spk_histogram_merge(&h, &other);
    assert_int_equal(h.counts[3], SPK_COUNT_MAX);
    assert_int_equal(h.counts[4], 5);
    assert_int_equal(h.total, SPK_COUNT_MAX + 5ull);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),           cmocka_unit_test(test_multiply),
        cmocka_unit_test(test_rates),           cmocka_unit_test(test_scale_by_wide_integers),
        cmocka_unit_test(test_permille),        cmocka_unit_test(test_busy),
        cmocka_unit_test(test_buckets),         cmocka_unit_test(test_quantiles),
        cmocka_unit_test(test_counts_saturate),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
