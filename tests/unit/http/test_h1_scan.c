/* The scanners of sixteen bytes a step against the plain ones. */
#include "http_test.h"

#include "http/h1_scan.h"

/* One stop byte at every place of inputs of every length up to three steps, at every alignment. */
static void test_against_plain(void **state)
{
    char mem[64 + 48];

    for (int c = 0; c < 256; c++) {
        for (size_t len = 1; len <= 48; len++) {
            char *base = malloc(len);

            assert_non_null(base);
            for (size_t at = 0; at < len; at++) {
                const char *end = base + len;

                memset(base, 'a', len);
                base[at] = (char)c;
                for (size_t from = 0; from < len; from += 5) {
                    const char *p = base + from;

                    assert_ptr_equal(h1_scan_value(p, end, base), h1_scan_value_plain(p, end));
                    assert_ptr_equal(h1_scan_target(p, end, base), h1_scan_target_plain(p, end));
                    assert_ptr_equal(h1_scan_common_name(p, end, base),
                                     h1_scan_common_name_plain(p, end));
                }
            }
            free(base);
        }
    }
    memset(mem, ':', sizeof mem);
    assert_ptr_equal(h1_scan_name(mem, mem, mem), mem);
    assert_ptr_equal(h1_scan_name(mem, mem + 1, mem), mem);
    memcpy(mem, "x!#$%&'*+-.^_`|~(", 17);
    assert_ptr_equal(h1_scan_name(mem, mem + sizeof mem, mem), mem + 16);
}

static void test_empty_line(void **state)
{
    static const char *const patterns[] = {"\n\n", "\n\r\n",  "\r\n\r\n", "\n\r",
                                           "\r\n", "\n\ra\n", "\r\r\n"};

    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        size_t n = strlen(patterns[i]);

        for (size_t len = n; len <= 60; len++) {
            char *base = malloc(len);

            assert_non_null(base);
            for (size_t at = 0; at + n <= len; at++) {
                memset(base, 'a', len);
                memcpy(base + at, patterns[i], n);
                assert_int_equal(h1_has_empty_line(base, base + len), i < 3);
                assert_int_equal(h1_has_empty_line_plain(base, base + len), i < 3);
            }
            free(base);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_plain),
        cmocka_unit_test(test_empty_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
