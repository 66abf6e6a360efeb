#include "harness.h"

#include "rules/acl.h"

static void terms_and_alternatives(void **state)
{
    static const struct {
        const char *condition;
        bool expected;
    } rows[] = {
        {"if TRUE", true},
        {"if FALSE", false},
        {"unless TRUE", false},
        {"unless FALSE", true},
        {"if TRUE TRUE", true},
        {"if TRUE FALSE", false},
        {"if FALSE or TRUE", true},
        {"if FALSE OR TRUE", true},
        {"if FALSE || TRUE", true},
        {"if FALSE TRUE || TRUE FALSE", false},
        {"if FALSE TRUE or TRUE TRUE", true},
        {"unless FALSE or TRUE", false},
        {"if !FALSE", true},
        {"if ! FALSE", true},
        {"if !!TRUE", true},
        {"if !TRUE or !FALSE", true},
        {"if { always_true }", true},
        {"if !{ always_true }", false},
        {"if ! { always_true }", false},
        {"if { always_false } || { always_true }", true},
        {"if TRUE { int(5) gt 4 } !FALSE", true},
        {"if TRUE or", true},
        {"if or TRUE", true},
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (fixture_cond(*state, rows[i].condition) != rows[i].expected)
            fail_msg("'%s'", rows[i].condition);
    assert_true(rules_cond_eval(NULL, &((struct fixture *)*state)->ctx));
}

static void bad_conditions_are_refused(void **state)
{
    struct fixture *f = *state;

    fixture_cond_fails(f, "when TRUE", "starting with 'if' or 'unless', found 'when'");
    fixture_cond_fails(f, "", "starting with 'if' or 'unless'");
    fixture_cond_fails(f, "if", "the condition after 'if' is empty");
    fixture_cond_fails(f, "unless !", "the condition after 'unless' is empty");
    fixture_cond_fails(f, "if or", "is empty");
    fixture_cond_fails(f, "if nope", "no such ACL 'nope'");
    fixture_cond_fails(f, "if METH_GTE", "did you mean 'METH_GET'?");
    fixture_cond_fails(f, "if { always_true", "missing closing '}'");
    fixture_cond_fails(f, "if { }", "an ACL criterion is missing");
    fixture_cond_fails(f, "if { nope }", "unknown sample fetch 'nope'");
    fixture_cond_fails(f, "if { path_reg ( }", "is invalid");
}

static void missing_bytes_leave_a_condition_open(void **state)
{
    static const struct {
        const char *condition;
        enum acl_result early, late;
    } rows[] = {
        {"if { req.len gt 10 }", ACL_MISS, ACL_FAIL},
        {"if { req.len gt 2 }", ACL_PASS, ACL_PASS},
        {"unless { req.len gt 10 }", ACL_MISS, ACL_PASS},
        {"if !{ req.len gt 10 }", ACL_MISS, ACL_PASS},
        {"if { req.payload(0,10) -m found }", ACL_MISS, ACL_FAIL},
        {"if { req.payload(0,3) -m bin 616263 }", ACL_PASS, ACL_PASS},
        {"if { req.len gt 10 } FALSE", ACL_FAIL, ACL_FAIL},
        {"if { req.len gt 10 } or TRUE", ACL_PASS, ACL_PASS},
        {"if { req.len gt 10 } TRUE", ACL_MISS, ACL_FAIL},
        {"if WAIT_END", ACL_MISS, ACL_PASS},
        {"if { acl(WAIT_END) }", ACL_MISS, ACL_PASS},
        {"if HTTP", ACL_MISS, ACL_FAIL},
        {"if { src 10.0.0.0/8 }", ACL_FAIL, ACL_FAIL},
    };
    struct fixture *f = *state;

    f->ctx.req = NULL;
    fixture_item_bin(f, RULES_PAYLOAD_REQ, "abc", 3);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct rules_cond *cond = fixture_cond_compile(f, rows[i].condition);

        f->ctx.final_data = false;
        if (cond_test(cond, &f->ctx, false) != rows[i].early)
            fail_msg("'%s' early", rows[i].condition);
        f->ctx.final_data = true;
        if (cond_test(cond, &f->ctx, true) != rows[i].late)
            fail_msg("'%s' late", rows[i].condition);
        /* The public function always decides. */
        f->ctx.final_data = false;
        assert_int_equal(rules_cond_eval(cond, &f->ctx), rows[i].late == ACL_PASS);
        assert_false(f->ctx.final_data);
    }
}

static void what_a_condition_needs_is_known(void **state)
{
    struct fixture *f = *state;

    assert_true(cond_needs(fixture_cond_compile(f, "if TRUE { status 200 }")) & NEEDS_RESPONSE);
    assert_true(cond_needs(fixture_cond_compile(f, "if FALSE or METH_GET")) & NEEDS_REQUEST);
    assert_int_equal(cond_needs(fixture_cond_compile(f, "if TRUE")), 0);
    assert_int_equal(cond_needs(NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(terms_and_alternatives),
        TEST(bad_conditions_are_refused),
        TEST(missing_bytes_leave_a_condition_open),
        TEST(what_a_condition_needs_is_known),
    };

    return cmocka_run_group_tests_name("rules/cond", tests, NULL, NULL);
}
