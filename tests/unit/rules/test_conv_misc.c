#include "harness.h"

#include "rules/tables.h"

static const struct expectation rows[] = {
    {"ipv4(10.1.2.3),ipmask(16)", "addr:10.1.0.0"},
    {"ipv4(10.1.2.3),ipmask(255.255.255.0)", "addr:10.1.2.0"},
    {"ipv4(10.1.2.3),ipmask(0)", "addr:0.0.0.0"},
    {"ipv6(2001:db8::1),ipmask(24,32)", "addr:2001:db8::"},
    {"ipv6(2001:db8::1),ipmask(24,ffff::)", "addr:2001::"},
    {"ipv6(2001:db8::1),ipmask(24)", "<none>"},
    {"ipv6(::ffff:10.1.2.3),ipmask(16,64)", "addr:10.1.0.0"},
    {"str(10.1.2.3),ipmask(8)", "addr:10.0.0.0"},
    {"str(x),ipmask(8)", "<none>"},
    {"bool(true),iif(yes,no)", "str:yes"},
    {"int(0),iif(yes,no)", "str:no"},
    {"int(0),iif(yes,)", "str:"},
    {"int(0),x509_v_err_str", "str:X509_V_OK"},
    {"int(10),x509_v_err_str", "str:X509_V_ERR_CERT_HAS_EXPIRED"},
    {"int(9999),x509_v_err_str", "str:9999"},
    {"str(abc),set-var(txn.v)", "str:abc"},
    {"str(x),concat(,txn.v)", "str:xabc"},
    {"str(new),set-var(txn.v,ifnotexists),concat(/,txn.v)", "str:new/abc"},
    {"str(new),set-var(txn.v,ifexists,ifnotempty),concat(/,txn.v)", "str:new/new"},
    {"int(7),set-var(txn.n),add(txn.n)", "int:14"},
    {"str(abc),unset-var(txn.v),concat(/,txn.v)", "str:abc/"},
    {"str(abc),capture-req(0)", "str:abc"},
    {"str(abc),capture-res(1)", "str:abc"},
    {"str(abc),capture-res(2)", "<none>"},
    {"capture.req.hdr(0)", "str:abc"},
    {"capture.res.hdr(1)", "str:abc"},
};

static void values_are_converted(void **state)
{
    struct fixture *f = *state;
    struct rules_outcome out;

    assert_int_equal(fixture_run(f, RULES_HTTP_REQUEST, "capture str(first) len 8", &out),
                     RULES_CONTINUE);
    fixture_check_typed(f, rows, COUNT_OF(rows));
    fixture_check_convs_used(&conv_misc_table, rows, COUNT_OF(rows));
}

static void arguments_are_checked(void **state)
{
    static const struct expectation wrong[] = {
        {"src,ipmask", "argument"},
        {"src,ipmask(33)", "mask"},
        {"src,ipmask(8,129)", "mask"},
        {"bool(true),ipmask(8)", ""},
        {"int(1),iif(a)", "argument"},
        {"str(a),set-var(x)", "variable 'x'"},
        {"str(a),set-var(proc.x)", "read-only"},
        {"str(a),unset-var(proc.x)", "read-only"},
        {"str(a),set-var(txn.x,never)", "unknown condition 'never'"},
        {"str(a),capture-req(x)", "not an integer"},
    };

    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        fixture_expr_fails(*state, wrong[i].input, wrong[i].expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(values_are_converted),
        TEST(arguments_are_checked),
    };

    return cmocka_run_group_tests_name("rules/conv_misc", tests, NULL, NULL);
}
