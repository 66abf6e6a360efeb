#include "harness.h"

#include "rules/value.h"

static void casts_exist_as_in_the_matrix(void **state)
{
    static const struct {
        enum value_type from;
        const char *to; /* letters: any bool int addr str bin method */
    } rows[] = {
        {VALUE_BOOL, "abisn"},  {VALUE_INT, "abidsn"}, {VALUE_ADDR, "adsn"},
        {VALUE_STR, "abidsnm"}, {VALUE_BIN, "asnm"},   {VALUE_METHOD, "asnm"},
        {VALUE_ANY, "abidsnm"},
    };
    static const char letters[] = "abidsnm";

    for (size_t i = 0; i < COUNT_OF(rows); i++)
        for (int to = VALUE_ANY; to <= VALUE_METHOD; to++)
            assert_int_equal(value_can_cast(rows[i].from, (enum value_type)to),
                             strchr(rows[i].to, letters[to]) != NULL);
}

static void integers_are_read_leniently(void **state)
{
    static const struct {
        const char *text;
        int64_t value;
        size_t used;
    } rows[] = {
        {"12", 12, 2},
        {"12abc", 12, 2},
        {"-7x", -7, 2},
        {"+5", 5, 2},
        {"abc", 0, 0},
        {"", 0, 0},
        {"-", 0, 1},
        {"9223372036854775807", INT64_MAX, 19},
        {"9223372036854775808", INT64_MAX, 19},
        {"99999999999999999999999", INT64_MAX, 23},
        {"-9223372036854775808", INT64_MIN, 20},
        {"-99999999999999999999999", INT64_MIN, 24},
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        size_t used;

        assert_int_equal(value_read_int(str_of(rows[i].text), &used), rows[i].value);
        assert_int_equal(used, rows[i].used);
    }
}

static void values_are_cast(void **state)
{
    static const struct expectation rows[] = {
        /* to string */
        {"bool(true),concat()", "str:1"},
        {"bool(false),concat()", "str:0"},
        {"int(-5),concat()", "str:-5"},
        {"int(-9223372036854775808),concat()", "str:-9223372036854775808"},
        {"ipv4(10.0.0.1),concat()", "str:10.0.0.1"},
        {"ipv4(10.0.0.1),set-var(txn.ip)", "addr:10.0.0.1"},
        {"var(txn.ip),add(1)", "int:167772162"},
        {"ipv6(::1),set-var(txn.ip)", "addr:::1"},
        {"var(txn.ip),add(1)", "<none>"},
        {"ipv6(2001:db8::1),concat()", "str:2001:db8::1"},
        {"bin(610062),concat()", "str:a"},
        {"meth(GET),concat()", "str:GET"},
        /* to integer */
        {"bool(true),add(1)", "int:2"},
        {"str(17 apples),add(1)", "int:18"},
        {"str(),add(1)", "<none>"},
        {"str(x),add(1)", "int:1"},
        /* to boolean */
        {"int(7),iif(yes,no)", "str:yes"},
        {"str(0),iif(yes,no)", "str:no"},
        /* to binary */
        {"int(258),hex", "str:0000000000000102"},
        {"bool(true),hex", "str:0000000000000001"},
        {"ipv4(1.2.3.4),hex", "str:01020304"},
        {"ipv6(::1),hex", "str:00000000000000000000000000000001"},
        {"str(AB),hex", "str:4142"},
        /* to address */
        {"int(167772161),ipmask(32)", "addr:10.0.0.1"},
        {"str(10.0.0.1),ipmask(8)", "addr:10.0.0.0"},
        {"str(10.0.0.1:80),ipmask(32)", "addr:10.0.0.1"},
        {"str(::1),ipmask(32,128)", "addr:0.0.0.1"},
        {"str(2001:db8::1),ipmask(32,128)", "addr:2001:db8::1"},
        {"str(300.0.0.1),ipmask(8)", "<none>"},
        {"str(nonsense),ipmask(8)", "<none>"},
        {"str(),ipmask(8)", "<none>"},
    };

    fixture_check_typed(*state, rows, COUNT_OF(rows));
}

static void impossible_casts_fail_at_run_time_too(void **state)
{
    struct fixture *f = *state;
    struct sample s;

    value_bin(&s, STR("x"));
    assert_false(value_cast(&s, VALUE_INT, &f->request));
    value_bool(&s, true);
    assert_false(value_cast(&s, VALUE_ADDR, &f->request));
    assert_false(value_cast(&s, VALUE_METHOD, &f->request));
    s.type = SAMPLE_ADDR;
    s.u.a.u.sa.sa_family = AF_UNIX;
    assert_false(value_cast(&s, VALUE_STR, &f->request));
    assert_false(value_cast(&s, VALUE_BIN, &f->request));
    assert_false(value_cast(&s, VALUE_INT, &f->request));
    value_str(&s, STR("x"));
    assert_true(value_cast(&s, VALUE_ANY, &f->request));
    assert_int_equal(s.type, SAMPLE_STR);
}

static void ipv4_is_found_inside_ipv6(void **state)
{
    static const struct {
        const char *v6, *v4;
    } rows[] = {
        {"::ffff:10.1.2.3", "10.1.2.3"},
        {"::10.1.2.3", "10.1.2.3"},
        {"2002:a01:203::", "10.1.2.3"},
        {"2001:db8::1", NULL},
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct addr a;
        const uint8_t *bytes;
        uint8_t v4[4];
        char text[ADDR_TEXT_BYTES];

        assert_true(value_parse_addr(str_of(rows[i].v6), &a));
        assert_int_equal(value_addr_bytes(&a, &bytes), 16);
        assert_int_equal(value_v6_to_v4(bytes, v4), rows[i].v4 != NULL);
        if (!rows[i].v4)
            continue;
        a = value_addr4(v4);
        text[addr_host_text(&a, text)] = '\0';
        assert_string_equal(text, rows[i].v4);
    }
}

static void types_have_names(void **state)
{
    assert_string_equal(value_type_name(VALUE_STR), "string");
    assert_string_equal(value_type_name(VALUE_ANY), "any");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(casts_exist_as_in_the_matrix),
        TEST(integers_are_read_leniently),
        TEST(values_are_cast),
        TEST(impossible_casts_fail_at_run_time_too),
        TEST(ipv4_is_found_inside_ipv6),
        TEST(types_have_names),
    };

    return cmocka_run_group_tests_name("rules/value", tests, NULL, NULL);
}
