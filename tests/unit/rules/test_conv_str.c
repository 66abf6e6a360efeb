#include "harness.h"

#include "rules/tables.h"

static const struct expectation rows[] = {
    {"str(aBC1),lower", "str:abc1"},
    {"str(abc),lower", "str:abc"},
    {"str(aBc1),upper", "str:ABC1"},
    {"str(),upper", "str:"},
    {"str(a b),length", "int:3"},
    {"int(-12),length", "int:3"},
    {"str(abc),reverse", "str:cba"},
    {"str(),reverse", "str:"},
    {"str(www.example.com),reverse_dom", "str:com.example.www"},
    {"str(www.example.com.),reverse_dom", "str:com.example.www"},
    {"str(host),reverse_dom", "str:host"},
    {"str(www..com),reverse_dom", "<none>"},
    {"str(.com),reverse_dom", "<none>"},
    {"str(.),reverse_dom", "<none>"},
    {"str(),reverse_dom", "<none>"},
    {"str(xyabcxy),ltrim(xy)", "str:abcxy"},
    {"str(xyabcxy),rtrim(yx)", "str:xyabc"},
    {"str(xxx),ltrim(x)", "str:"},
    {"str(xxx),rtrim(x)", "str:"},
    {"bin(410d0a42),cut_crlf", "str:A"},
    {"bin(410a0d42),cut_crlf", "str:A"},
    {"str(abc),cut_crlf", "str:abc"},
    {"str(a),concat", "str:a"},
    {"str(a),concat(x)", "str:ax"},
    {"str(a),concat(<,txn.v,>)", "str:a<vv>"},
    {"str(a),concat(<,txn.none,>)", "str:a<>"},
    {"str(a),concat(,,y)", "str:ay"},
    {"str(a),add_item(\",\",txn.v)", "str:a,vv"},
    {"str(a),add_item(\",\",txn.v,!)", "str:a,vv!"},
    {"str(a),add_item(\",\",txn.none)", "str:a"},
    {"str(),add_item(\",\",txn.v)", "str:vv"},
    {"str(a),add_item(\",\",,z)", "str:a,z"},
    {"str(vv),strcmp(txn.v)", "int:0"},
    {"str(vvv),strcmp(txn.v)", "int:1"},
    {"str(v),strcmp(txn.v)", "int:-1"},
    {"str(va),strcmp(txn.v)", "int:-1"},
    {"str(wa),strcmp(txn.v)", "int:1"},
    {"str(vv),strcmp(txn.none)", "<none>"},
    {"str(vv),secure_memcmp(txn.v)", "bool:true"},
    {"str(vw),secure_memcmp(txn.v)", "bool:false"},
    {"str(vvv),secure_memcmp(txn.v)", "bool:false"},
    {"str(vv),secure_memcmp(txn.none)", "<none>"},
    {"str(abcabc),regsub(b,X)", "str:aXcabc"},
    {"str(abcabc),regsub(b,X,g)", "str:aXcaXc"},
    {"str(aBc),regsub(b,X,i)", "str:aXc"},
    {"str(aBcb),regsub(b,X,ig)", "str:aXcX"},
    {"str(abc),regsub(\"(a)(b)\",\\2\\1)", "str:bac"},
    {"str(aaa),regsub(^a,X,g)", "str:Xaa"},
    {"str(abc),regsub(x*,-,g)", "str:-a-b-c-"},
    {"str(abc),regsub(z,X,g)", "str:abc"},
    {"str(),regsub(^$,empty)", "str:empty"},
    {"str(Host:80),host_only", "str:host"},
    {"str([::A]:80),host_only", "str:[::a]"},
    {"str([::1]),host_only", "str:[::1]"},
    {"str(),host_only", "str:"},
    {"str(Host:80),port_only", "int:80"},
    {"str(Host),port_only", "int:0"},
    {"str([::1]),port_only", "int:0"},
    {"str([::1]:8443),port_only", "int:8443"},
    {"str(%41%2f+b),url_dec", "str:A/+b"},
    {"str(a+b),url_dec(1)", "str:a b"},
    {"str(a+b?c+d),url_dec", "str:a+b?c d"},
    {"str(%4),url_dec", "<none>"},
    {"str(%),url_dec", "<none>"},
    {"str(%g1),url_dec", "<none>"},
    {"str(%1g),url_dec", "<none>"},
    {"str(a b/c?d=e&f~.-_Z9),url_enc", "str:a%20b%2Fc%3Fd%3De%26f~.-_Z9"},
    {"bin(ff),url_enc(query)", "str:%FF"},
    {"str(abc),has_ctl", "bool:false"},
    {"bin(410942),has_ctl", "bool:false"},
    {"bin(410d42),has_ctl", "bool:true"},
    {"bin(7f),has_ctl", "bool:true"},
    {"bin(410942),has_ctl(any)", "bool:true"},
    {"bin(410942),has_ctl(http)", "bool:false"},
    {"bin(410a42),has_ctl(http)", "bool:true"},
    {"bin(00),has_ctl(1)", "bool:true"},
    {"bin(01),has_ctl(0x1)", "bool:false"},
};

static void texts_are_converted(void **state)
{
    struct fixture *f = *state;

    assert_string_equal(fixture_typed(f, "str(vv),set-var(txn.v)"), "str:vv");
    fixture_check_typed(f, rows, COUNT_OF(rows));
    fixture_check_convs_used(&conv_str_table, rows, COUNT_OF(rows));
}

static void arguments_are_checked(void **state)
{
    static const struct expectation wrong[] = {
        {"str(a),lower(1)", "does not take arguments"},
        {"str(a),concat(a,b)", "variable 'b'"},
        {"str(a),concat(a,txn.b-c)", "variable 'txn.b-c'"},
        {"str(a),add_item(x)", "a variable or a suffix"},
        {"str(a),add_item(x,y)", "variable 'y'"},
        {"str(a),strcmp(b)", "variable 'b'"},
        {"str(a),strcmp()", ""},
        {"str(a),secure_memcmp(b)", "variable 'b'"},
        {"str(a),regsub(a,b,x)", "unknown flag 'x'"},
        {"str(a),regsub(\"(a\",b)", "parenthes"},
        {"str(a),url_enc(path)", "unknown encoding 'path'"},
        {"str(a),url_dec(x)", "not an integer"},
        {"str(a),has_ctl(x)", "not a mask"},
        {"str(a),has_ctl(-1)", "not a mask"},
        {"str(a),has_ctl(0x3ffffffff)", "not a mask"},
        {"str(a),lowre", "lower"},
    };

    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        fixture_expr_fails(*state, wrong[i].input, wrong[i].expected);
}

/* The result of a substitution is bounded; the converter then fails. */
static void long_results_of_regsub_fail(void **state)
{
    struct fixture *f = *state;
    struct rules_expr *e = fixture_expr(f, "var(txn.long),regsub(a,bb,g),length");
    struct rules_expr *set = fixture_expr(f, "hdr(x),set-var(txn.long)");
    struct sample s;
    char *text = arena_zalloc(&f->config, 1, 9001), *head;

    memset(text, 'a', 8192);
    head = arena_printf(&f->config, "GET / HTTP/1.1\r\nX: %s\r\n\r\n", text);
    fixture_request(f, head);
    assert_true(rules_expr_eval(set, &f->ctx, &s));
    assert_true(rules_expr_eval(e, &f->ctx, &s));
    assert_int_equal(s.u.i, 16384);
    memset(text, 'a', 8193);
    head = arena_printf(&f->config, "GET / HTTP/1.1\r\nX: %s\r\n\r\n", text);
    fixture_request(f, head);
    assert_true(rules_expr_eval(set, &f->ctx, &s));
    assert_false(rules_expr_eval(e, &f->ctx, &s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(texts_are_converted),
        TEST(arguments_are_checked),
        TEST(long_results_of_regsub_fail),
    };

    return cmocka_run_group_tests_name("rules/conv_str", tests, NULL, NULL);
}
