#include "harness.h"

/* Arguments as the compiler sees them, through fetches that give them back. */
static void texts_are_unquoted(void **state)
{
    static const struct expectation rows[] = {
        {"str(abc)", "str:abc"},
        {"str(a b)", "str:a b"},
        {"str( a )", "str: a "},
        {"str('a,b)c')", "str:a,b)c"},
        {"str(\"a'b\")", "str:a'b"},
        {"str('a\"b')", "str:a\"b"},
        {"str(a\\,b)", NULL},
        {"str(a\\\\b)", "str:a\\b"},
        {"str(a\\ b)", "str:a b"},
        {"str(a\\\"b)", "str:a\"b"},
        {"str(a\\tb)", "str:a\tb"},
        {"str(a\\db)", "str:a\\db"},
        {"str(\"a\\nb\")", "str:a\nb"},
        {"str('a\\nb')", "str:a\\nb"},
        {"str()", "str:"},
        {"str", "str:"},
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct fixture *f = *state;

        if (rows[i].expected)
            assert_string_equal(fixture_typed(f, rows[i].input), rows[i].expected);
        else
            fixture_expr_fails(f, rows[i].input, "at most 1 argument");
    }
}

static void numbers_and_addresses_are_checked(void **state)
{
    static const struct expectation rows[] = {
        {"int(12x)", "argument 1 '12x' is not an integer"},
        {"int()", "is not an integer"},
        {"int", "expects at least 1 argument"},
        {"ipv4(1.2.3)", "is not an IPv4 address"},
        {"ipv4(::1)", "is not an IPv4 address"},
        {"ipv6(1.2.3.4)", "is not an IPv6 address"},
        {"ipv4(1.2.3.4),ipmask(33)", "is not an IPv4 mask"},
        {"ipv4(1.2.3.4),ipmask(::)", "is not an IPv4 mask"},
        {"ipv4(1.2.3.4),ipmask(8,129)", "is not an IPv6 mask"},
        {"ipv4(1.2.3.4),ipmask(8,1.2.3.4)", "is not an IPv6 mask"},
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++)
        fixture_expr_fails(*state, rows[i].input, rows[i].expected);
}

static void masks_have_two_forms(void **state)
{
    static const struct expectation rows[] = {
        {"ipv4(10.1.2.3),ipmask(20)", "addr:10.1.0.0"},
        {"ipv4(10.1.2.3),ipmask(255.0.255.0)", "addr:10.0.2.0"},
        {"ipv4(10.1.2.3),ipmask(0)", "addr:0.0.0.0"},
        {"ipv4(10.1.2.3),ipmask(32)", "addr:10.1.2.3"},
        {"ipv6(2001:db8:1::1),ipmask(8,32)", "addr:2001:db8::"},
        {"ipv6(2001:db8:1::1),ipmask(8,ffff::)", "addr:2001::"},
    };

    fixture_check_typed(*state, rows, COUNT_OF(rows));
}

static void counts_are_checked(void **state)
{
    struct fixture *f = *state;

    fixture_expr_fails(f, "src(x)", "does not take arguments");
    assert_non_null(fixture_expr(f, "src()"));
    fixture_expr_fails(f, "str(x),field(1)", "expects at least 2 arguments, got 1");
    fixture_expr_fails(f, "str(x),field", "expects at least 2 arguments, got 0");
    fixture_expr_fails(f, "str(x),field(1,a,2,3)", "takes at most 3 arguments");
    fixture_expr_fails(f, "rand(1,2)", "takes at most 1 argument");
    fixture_expr_fails(f, "str(a", "lacks the closing parenthesis");
    fixture_expr_fails(f, "str('a)", "unterminated quote");
    fixture_expr_fails(f, "str(a\\", "unterminated quote");
    assert_non_null(fixture_expr(f, "rand()"));
    assert_non_null(fixture_expr(f, "nbsrv()"));
}

static void names_become_objects(void **state)
{
    struct fixture *f = *state;

    f->counts[RULES_NBSRV] = 3;
    f->counts[RULES_SRV_CONN] = 4;
    assert_string_equal(fixture_typed(f, "nbsrv"), "int:3");
    assert_null(f->counted_object);
    assert_string_equal(fixture_typed(f, "nbsrv(be1)"), "int:3");
    assert_non_null(f->counted_object);
    assert_string_equal(fixture_typed(f, "srv_conn(be1/srv1)"), "int:4");
    assert_string_equal(fixture_typed(f, "srv_conn(srv1)"), "int:4");
    fixture_expr_fails(f, "nbsrv(nope)", "no backend 'nope'");
    fixture_expr_fails(f, "fe_conn(be1)", "no frontend 'be1'");
    fixture_expr_fails(f, "srv_conn(be1/nope)", "no server 'be1/nope'");
    fixture_expr_fails(f, "srv_conn(nope/srv1)", "no server 'nope/srv1'");
    /* A defaults section may name what only the proxies that use it know. */
    f->c.is_defaults = true;
    assert_non_null(fixture_expr(f, "nbsrv(nope)"));
    assert_non_null(fixture_expr(f, "srv_conn(be1/nope)"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(texts_are_unquoted),   TEST(numbers_and_addresses_are_checked),
        TEST(masks_have_two_forms), TEST(counts_are_checked),
        TEST(names_become_objects),
    };

    return cmocka_run_group_tests_name("rules/args", tests, NULL, NULL);
}
