#include "http_test.h"

static void test_split(void **state)
{
    static const struct {
        const char *target, *scheme, *authority, *path, *query;
        bool has_query;
    } cases[] = {
        {"/", "", "", "/", "", false},
        {"/a/b?c=d?e", "", "", "/a/b", "c=d?e", true},
        {"/a?", "", "", "/a", "", true},
        {"/a#f?x", "", "", "/a", "", false},
        {"/a?b#f", "", "", "/a", "b", true},
        {"*", "", "", "*", "", false},
        {"http://h", "http", "h", "", "", false},
        {"http://h/", "http", "h", "/", "", false},
        {"http://u:p@h:80/p?q", "http", "u:p@h:80", "/p", "q", true},
        {"http://h?q", "http", "h", "", "q", true},
        {"http://h#f", "http", "h", "", "", false},
        {"a+b-c.1://h/p", "a+b-c.1", "h", "/p", "", false},
        {"h:443", "", "h:443", "", "", false},
        {"[::1]:443", "", "[::1]:443", "", "", false},
        {"1http://h/", "", "", "1http://h/", "", false},
        {"http:/h/", "", "", "http:/h/", "", false},
        {"admin?x", "", "", "admin", "x", true},
        {"", "", "", "", "", false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct http_target t;

        http_target_split(str_of(cases[i].target), &t);
        assert_str(t.scheme, cases[i].scheme);
        assert_str(t.authority, cases[i].authority);
        assert_str(t.path, cases[i].path);
        assert_str(t.query, cases[i].query);
        assert_int_equal(t.has_query, cases[i].has_query);
    }
}

static void test_decode(void **state)
{
    char out[64];
    size_t n = 77;

    assert_int_equal(http_url_decode(STR("a%20b+c%2fD%2F"), false, out, &n), 0);
    assert_str(str_make(out, n), "a b+c/D/");
    assert_int_equal(http_url_decode(STR("a+b"), true, out, &n), 0);
    assert_str(str_make(out, n), "a b");
    assert_int_equal(http_url_decode(STR("%00"), true, out, &n), 0);
    assert_int_equal(n, 1);
    assert_int_equal(out[0], 0);
    assert_int_equal(http_url_decode(STR(""), true, out, &n), 0);
    assert_int_equal(n, 0);
    n = 77;
    assert_int_equal(http_url_decode(STR("%"), true, out, &n), SP_EINVAL);
    assert_int_equal(http_url_decode(STR("a%4"), true, out, &n), SP_EINVAL);
    assert_int_equal(http_url_decode(STR("%4g"), true, out, &n), SP_EINVAL);
    assert_int_equal(http_url_decode(STR("%-1"), true, out, &n), SP_EINVAL);
    assert_int_equal(n, 77);
    memcpy(out, "x%41y", 5);
    assert_int_equal(http_url_decode(str_make(out, 5), true, out, &n), 0);
    assert_str(str_make(out, n), "xAy");
}

static void test_query(void **state)
{
    struct str q = STR("ab=1&a=2&&c&d=&a=3&=e"), v;

    assert_true(http_query_param(q, '&', STR("a"), &v));
    assert_str(v, "2");
    assert_true(http_query_param(q, '&', STR("ab"), &v));
    assert_str(v, "1");
    assert_true(http_query_param(q, '&', STR("d"), &v));
    assert_str(v, "");
    assert_false(http_query_param(q, '&', STR("c"), &v));
    assert_false(http_query_param(q, '&', STR("A"), &v));
    assert_true(http_query_param(q, '&', STR(""), &v));
    assert_str(v, "e");
    assert_true(http_query_param(STR("a=1;b=2"), ';', STR("b"), &v));
    assert_str(v, "2");
    assert_false(http_query_param(STR(""), '&', STR("b"), &v));
}

static void test_cookies(void **state)
{
    struct str rest = STR("a=1; b = two ;c; $Path=/;=e, d=\"x;\\\"y\"; f="), name, value;
    static const char *const expected[][2] = {
        {"a", "1"}, {"b", "two"}, {"", "e"}, {"d", "\"x;\\\"y\""}, {"f", ""},
    };

    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_true(http_cookie_next(&rest, &name, &value));
        assert_str(name, expected[i][0]);
        assert_str(value, expected[i][1]);
    }
    assert_false(http_cookie_next(&rest, &name, &value));
    rest = STR("a=\"open\\");
    assert_true(http_cookie_next(&rest, &name, &value));
    assert_str(value, "\"open\\");
    assert_false(http_cookie_next(&rest, &name, &value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_decode),
        cmocka_unit_test(test_query),
        cmocka_unit_test(test_cookies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
