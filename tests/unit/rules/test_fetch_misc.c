#include "harness.h"

#include "rules/tables.h"

static const struct expectation rows[] = {
    {"always_true", "bool:true"},
    {"always_false", "bool:false"},
    {"int(-12)", "int:-12"},
    {"str(a b)", "str:a b"},
    {"bool(true)", "bool:true"},
    {"bool(0)", "bool:false"},
    {"bool(FALSE)", "bool:false"},
    {"bin(00ff)", "bin:00FF"},
    {"bin()", "bin:"},
    {"ipv4(10.0.0.1)", "addr:10.0.0.1"},
    {"ipv6(::1)", "addr:::1"},
    {"meth(PURGE)", "str:PURGE"},
    {"env(RULES_TEST_VARIABLE)", "str:value"},
    {"env(RULES_TEST_NONE)", "<none>"},
    {"date", "int:784111777"},
    {"date(-7)", "int:784111770"},
    {"date(0,ms)", "int:784111777123"},
    {"date(1,us)", "int:784111777123457"},
    {"date(0,s)", "int:784111777"},
    {"date_us", "int:123456"},
    {"rand(1)", "int:0"},
    {"uuid,length", "int:36"},
    {"hostname", "str:box"},
    {"pid", "int:99"},
    {"nbproc", "int:1"},
    {"proc", "int:1"},
    {"nbthread", "int:4"},
    {"thread", "int:2"},
    {"act_conn", "int:17"},
    {"stopping", "bool:false"},
    {"uptime", "int:3600"},
    {"quic_enabled", "bool:false"},
    {"last_rule_file", "str:some.cfg"},
    {"last_rule_line", "int:12"},
    {"var(txn.none)", "<none>"},
    {"var(txn.none,d)", "str:d"},
    {"acl(TRUE)", "bool:true"},
    {"acl(TRUE,!FALSE)", "bool:true"},
    {"acl(!TRUE)", "bool:false"},
    {"acl(TRUE,FALSE)", "bool:false"},
    {"capture.req.hdr(0)", "str:captured"},
    {"capture.req.hdr(1)", "<none>"},
    {"capture.req.hdr(2)", "<none>"},
    {"capture.res.hdr(1)", "str:answer"},
    {"capture.res.hdr(9)", "<none>"},
};

static void fetches_answer(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(setenv("RULES_TEST_VARIABLE", "value", 1), 0);
    fixture_item_str(f, RULES_HOSTNAME, "box");
    fixture_item_int(f, RULES_PID, 99);
    fixture_item_int(f, RULES_NBTHREAD, 4);
    fixture_item_int(f, RULES_THREAD, 2);
    fixture_item_int(f, RULES_ACT_CONN, 17);
    fixture_item_bool(f, RULES_STOPPING, false);
    fixture_item_int(f, RULES_UPTIME_S, 3600);
    f->ctx.last_rule = (struct cfg_loc){"some.cfg", 12};
    f->req_captures[0] = STR("captured");
    f->res_captures[1] = STR("answer");
    f->ctx.req_capture_count = 2;
    fixture_check_typed(f, rows, COUNT_OF(rows));
    fixture_check_fetches_used(&fetch_misc_table, rows, COUNT_OF(rows));
}

static void arguments_are_checked(void **state)
{
    static const struct expectation bad[] = {
        {"bool(maybe)", "'maybe' is not one of true, false, 1, 0"},
        {"bin(0)", "not an even number of hexadecimal digits"},
        {"bin(0x)", "not an even number"},
        {"meth(A B)", "'A B' is not a valid method"},
        {"meth()", "is not a valid method"},
        {"date(0,h)", "expects 's', 'ms' or 'us', got 'h'"},
        {"uuid(5)", "UUID version 5 is not supported"},
        {"var(x)", "must start with its scope"},
        {"var(txn.a-b)", "letters, digits, '_' and '.'"},
        {"acl(nope)", "no such ACL 'nope'"},
        {"capture.req.hdr(-1)", "must not be negative"},
        {"capture.req.hdr", "expects at least 1 argument"},
    };

    for (size_t i = 0; i < COUNT_OF(bad); i++)
        fixture_expr_fails(*state, bad[i].input, bad[i].expected);
}

static void random_numbers_stay_in_range(void **state)
{
    struct fixture *f = *state;
    struct rules_expr *small = fixture_expr(f, "rand(10)"), *full = fixture_expr(f, "rand");
    bool seen[10] = {false};
    struct sample s;

    for (int i = 0; i < 1000; i++) {
        assert_true(rules_expr_eval(small, &f->ctx, &s));
        assert_in_range(s.u.i, 0, 9);
        seen[s.u.i] = true;
        assert_true(rules_expr_eval(full, &f->ctx, &s));
        assert_in_range(s.u.i, 0, 0xffffffff);
    }
    for (int i = 0; i < 10; i++)
        assert_true(seen[i]);
    f->ctx.rng = NULL;
    assert_false(rules_expr_eval(small, &f->ctx, &s));
    assert_string_equal(fixture_eval(f, "uuid"), "<none>");
}

static void uuids_have_their_form(void **state)
{
    struct fixture *f = *state;
    const char *one = fixture_eval(f, "uuid"), *two = fixture_eval(f, "uuid(4)"),
               *seven = fixture_eval(f, "uuid(7)");

    assert_string_not_equal(one, two);
    for (int i = 0; i < 36; i++)
        assert_true(i == 8 || i == 13 || i == 18 || i == 23
                        ? one[i] == '-'
                        : strchr("0123456789abcdef", one[i]) != NULL);
    assert_int_equal(one[14], '4');
    assert_non_null(strchr("89ab", one[19]));
    /* Version 7 begins with the milliseconds of the date. */
    assert_int_equal(seven[14], '7');
    assert_memory_equal(seven, "00b690b4-3563-7", 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(fetches_answer),
        TEST(arguments_are_checked),
        TEST(random_numbers_stay_in_range),
        TEST(uuids_have_their_form),
    };

    return cmocka_run_group_tests_name("rules/fetch_misc", tests, NULL, NULL);
}
