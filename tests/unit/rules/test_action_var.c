#include "harness.h"

#include "rules/action.h"

static void variables_are_set(void **state)
{
    static const struct {
        const char *rules[4];
        const char *value; /* of txn.a */
    } rows[] = {
        {{"set-var(txn.a) path"}, "str:/"},
        {{"set-var(txn.a) path", "set-var(txn.a,ifnotexists) str(b)"}, "str:/"},
        {{"set-var(txn.a,ifexists) str(b)"}, "<none>"},
        {{"set-var(txn.a) int(5)", "set-var(txn.a,ifgt) int(3)"}, "int:3"},
        {{"set-var(txn.a) int(5)", "set-var(txn.a,iflt) int(3)"}, "int:5"},
        {{"set-var(txn.a) str(x)", "set-var(txn.a,ifnotempty) str()"}, "str:x"},
        {{"\"set-var(txn.a, ifexists , ifnotempty)\" str(x)"}, "<none>"},
        {{"set-var(txn.a) hdr(none)"}, "<none>"},
        {{"set-var-fmt(txn.a) %HM-%[path]"}, "str:GET-/"},
        {{"set-var-fmt(txn.a) constant"}, "str:constant"},
        {{"set-var-fmt(txn.a) \"\""}, "str:"},
        {{"set-var(txn.a) str(x)", "unset-var(txn.a)"}, "<none>"},
        {{"unset-var(txn.a)"}, "<none>"},
        {{"set-var(txn.a) str(x),upper if { path / }"}, "str:X"},
        {{"set-var(txn.a) str(x),upper if { path /x }"}, "<none>"},
        {{"set-var(req.b) int(2)", "set-var(txn.a) var(req.b),add(1)"}, "int:3"},
        {{"set-var(sess.b) src", "set-var(txn.a) var(sess.b)"}, "addr:10.0.0.1"},
    };
    static const enum rules_hook hooks[] = {
        RULES_TCP_REQUEST_CONTENT, RULES_TCP_RESPONSE_CONTENT, RULES_HTTP_REQUEST,
        RULES_HTTP_RESPONSE,       RULES_HTTP_AFTER_RESPONSE,
    };
    struct fixture *f = *state;
    struct rules_outcome out;

    fixture_item_addr(f, RULES_SRC, "10.0.0.1");
    for (size_t h = 0; h < COUNT_OF(hooks); h++)
        for (size_t i = 0; i < COUNT_OF(rows); i++) {
            const struct rules_set *set;

            if (hooks[h] != RULES_HTTP_REQUEST && strstr(rows[i].rules[0], "req."))
                continue;
            f->ctx.txn_vars.first = f->ctx.req_vars.first = f->sess_vars.first = NULL;
            set = fixture_rules(f, hooks[h], rows[i].rules);
            rules_outcome_init(&out);
            assert_int_equal(rules_set_run(set, &f->ctx, &out), RULES_CONTINUE);
            assert_string_equal(fixture_typed(f, "var(txn.a)"), rows[i].value);
        }
}

static void captures_are_kept(void **state)
{
    static const size_t limits[] = {3, 100};
    struct fixture *f = *state;
    struct rules_outcome out;

    assert_int_equal(fixture_run(f, RULES_HTTP_REQUEST, "capture req.hdr(host) len 5", &out),
                     RULES_CONTINUE);
    assert_int_equal(f->captures_declared, 1);
    assert_int_equal(f->capture_limits[0], 5);
    assert_string_equal(fixture_eval(f, "capture.req.hdr(0)"), "local");
    fixture_run(f, RULES_TCP_REQUEST_CONTENT, "capture int(12) len 16", &out);
    assert_string_equal(fixture_eval(f, "capture.req.hdr(1)"), "12");
    fixture_run(f, RULES_HTTP_REQUEST, "capture str(abcdefgh) id 0", &out);
    assert_string_equal(fixture_eval(f, "capture.req.hdr(0)"), "abcde");
    /* The slots of the frontend at hand may be shorter. */
    f->ctx.req_capture_limits = limits;
    fixture_run(f, RULES_HTTP_REQUEST, "capture str(zyxwvuts) id 0", &out);
    assert_string_equal(fixture_eval(f, "capture.req.hdr(0)"), "zyx");
    /* Without a value, what is there stays. */
    fixture_run(f, RULES_HTTP_REQUEST, "capture hdr(none) id 0", &out);
    assert_string_equal(fixture_eval(f, "capture.req.hdr(0)"), "zyx");
    fixture_response(f, "HTTP/1.1 200 OK\r\nServer: S\r\n\r\n");
    fixture_run(f, RULES_HTTP_RESPONSE, "capture res.hdr(server) id 1", &out);
    assert_string_equal(fixture_eval(f, "capture.res.hdr(1)"), "S");
    fixture_run(f, RULES_HTTP_AFTER_RESPONSE, "capture str(T) id 0", &out);
    assert_string_equal(fixture_eval(f, "capture.res.hdr(0)"), "T");
    /* A backend's rule may run behind a frontend without slots. */
    f->c.is_frontend = false;
    fixture_run(f, RULES_HTTP_REQUEST, "capture str(x) id 9", &out);
    f->ctx.req_captures = NULL;
    fixture_run(f, RULES_HTTP_REQUEST, "capture str(x) id 0", &out);
    assert_string_equal(fixture_eval(f, "capture.req.hdr(0)"), "<none>");
}

static void mistakes_are_explained(void **state)
{
    static const struct {
        enum rules_hook hook;
        const char *line, *part;
    } wrong[] = {
        {RULES_HTTP_REQUEST, "set-var path", "a variable in parentheses"},
        {RULES_HTTP_REQUEST, "set-var(txn.a path", "a variable in parentheses"},
        {RULES_HTTP_REQUEST, "set-var(a) path", "variable 'a'"},
        {RULES_HTTP_REQUEST, "set-var(txn.a-b) path", "variable 'txn.a-b'"},
        {RULES_HTTP_REQUEST, "set-var(proc.a) path", "read-only"},
        {RULES_HTTP_REQUEST, "unset-var(proc.a)", "read-only"},
        {RULES_HTTP_REQUEST, "set-var(txn.a,ifever) path", "unknown condition 'ifever'"},
        {RULES_HTTP_REQUEST, "set-var(txn.a)", "a sample expression"},
        {RULES_HTTP_REQUEST, "set-var(txn.a) nosuch", "nosuch"},
        {RULES_HTTP_REQUEST, "set-var-fmt(txn.a)", "a format"},
        {RULES_HTTP_REQUEST, "set-var-fmt(txn.a) %[nosuch]", "nosuch"},
        {RULES_HTTP_REQUEST, "unset-var", "a variable in parentheses"},
        {RULES_HTTP_REQUEST, "capture", "a sample expression"},
        {RULES_HTTP_REQUEST, "capture path", "'len' or 'id'"},
        {RULES_HTTP_REQUEST, "capture path size 5", "found 'size'"},
        {RULES_HTTP_REQUEST, "capture path len", "a length"},
        {RULES_HTTP_REQUEST, "capture path len 0", "1 or more"},
        {RULES_HTTP_REQUEST, "capture path len x", "found 'x'"},
        {RULES_HTTP_REQUEST, "capture path id", "a slot after 'id'"},
        {RULES_HTTP_REQUEST, "capture path id x", "found 'x'"},
        {RULES_HTTP_REQUEST, "capture path id 3", "not declared"},
        {RULES_HTTP_RESPONSE, "capture res.hdr(x) len 5", "'id'"},
        {RULES_HTTP_RESPONSE, "capture res.hdr(x) id 2", "not declared"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        fixture_rule_fails(f, wrong[i].hook, wrong[i].line, wrong[i].part);
    f->c.add_capture = NULL;
    fixture_rule_fails(f, RULES_HTTP_REQUEST, "capture path len 5", "a proxy with a frontend");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(variables_are_set),
        TEST(captures_are_kept),
        TEST(mistakes_are_explained),
    };

    return cmocka_run_group_tests_name("rules/action_var", tests, NULL, NULL);
}
