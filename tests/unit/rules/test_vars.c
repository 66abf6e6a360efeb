#include "harness.h"

#include "rules/vars.h"

static struct var_ref ref(const char *name)
{
    struct var_ref r;
    const char *why;

    assert_int_equal(var_parse(str_of(name), &r, &why), 0);
    return r;
}

static bool set_text(struct fixture *f, const char *name, const char *text, unsigned conditions)
{
    struct var_ref r = ref(name);
    struct sample s;

    value_str(&s, str_of(text));
    return var_set(&r, &f->ctx, &s, conditions);
}

static bool set_int(struct fixture *f, const char *name, int64_t value, unsigned conditions)
{
    struct var_ref r = ref(name);
    struct sample s;

    value_int(&s, value);
    return var_set(&r, &f->ctx, &s, conditions);
}

static void names_have_scopes(void **state)
{
    static const struct {
        const char *name;
        int scope; /* negative: refused */
    } rows[] = {
        {"proc.a", RULES_SCOPE_PROC},
        {"sess.a", RULES_SCOPE_SESS},
        {"txn.a_b.c", RULES_SCOPE_TXN},
        {"req.A1", RULES_SCOPE_REQ},
        {"res.a", RULES_SCOPE_RES},
        {"check.a", RULES_SCOPE_CHECK},
        {"a", -1},
        {"txn.", -1},
        {"txn", -1},
        {"foo.a", -1},
        {"txn.a-b", -1},
        {"txn.a b", -1},
        {"", -1},
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct var_ref r;
        const char *why = NULL;
        int status = var_parse(str_of(rows[i].name), &r, &why);

        if (rows[i].scope < 0) {
            assert_int_equal(status, SP_EINVAL);
            assert_non_null(why);
        } else {
            assert_int_equal(status, 0);
            assert_int_equal(r.scope, rows[i].scope);
        }
    }
}

static void scopes_are_separate(void **state)
{
    struct fixture *f = *state;

    assert_true(set_text(f, "sess.v", "s", 0));
    assert_true(set_text(f, "txn.v", "t", 0));
    assert_true(set_text(f, "req.v", "q", 0));
    assert_true(set_text(f, "res.v", "r", 0));
    assert_string_equal(fixture_eval(f, "var(sess.v)"), "s");
    assert_string_equal(fixture_eval(f, "var(txn.v)"), "t");
    assert_string_equal(fixture_eval(f, "var(req.v)"), "q");
    assert_string_equal(fixture_eval(f, "var(res.v)"), "r");
    assert_false(set_text(f, "proc.v", "p", 0));
    assert_false(set_text(f, "check.v", "c", 0));
    assert_string_equal(fixture_eval(f, "var(proc.v)"), "<none>");
    assert_string_equal(fixture_eval(f, "var(check.v)"), "<none>");
}

static void values_are_copied_and_keep_their_type(void **state)
{
    struct fixture *f = *state;
    char text[] = "before";

    assert_true(set_text(f, "txn.t", text, 0));
    memcpy(text, "after!", 6);
    assert_string_equal(fixture_typed(f, "var(txn.t)"), "str:before");
    assert_true(set_int(f, "txn.t", 5, 0));
    assert_string_equal(fixture_typed(f, "var(txn.t)"), "int:5");
    assert_string_equal(fixture_typed(f, "bin(0102),set-var(txn.t)"), "bin:0102");
    assert_string_equal(fixture_typed(f, "var(txn.t)"), "bin:0102");
    assert_string_equal(fixture_typed(f, "ipv4(1.2.3.4),set-var(txn.t)"), "addr:1.2.3.4");
    assert_string_equal(fixture_typed(f, "var(txn.t)"), "addr:1.2.3.4");
}

static void a_session_variable_costs_bounded_memory(void **state)
{
    struct fixture *f = *state;
    size_t after_first, grown;
    char text[400];

    memset(text, 'x', sizeof text);
    text[300] = '\0';
    assert_true(set_text(f, "sess.v", text, 0));
    after_first = f->session.used_bytes;
    for (int i = 0; i < 1000; i++) {
        text[i % 300] = '\0';
        assert_true(set_text(f, "sess.v", text, 0));
        text[i % 300] = 'x';
    }
    assert_int_equal(f->session.used_bytes, after_first);
    /* Unset and set again: no growth either. */
    for (int i = 0; i < 100; i++) {
        struct var_ref r = ref("sess.v");

        var_unset(&r, &f->ctx);
        assert_string_equal(fixture_eval(f, "var(sess.v)"), "<none>");
        assert_true(set_text(f, "sess.v", "again", 0));
    }
    assert_int_equal(f->session.used_bytes, after_first);
    /* A part of itself may be stored in place. */
    assert_true(set_text(f, "sess.v", "abcdef", 0));
    assert_string_equal(fixture_eval(f, "var(sess.v),bytes(2),set-var(sess.v)"), "cdef");
    assert_string_equal(fixture_eval(f, "var(sess.v)"), "cdef");
    grown = f->session.used_bytes;
    assert_int_equal(grown, after_first);
}

static void conditions_decide(void **state)
{
    struct fixture *f = *state;

    assert_false(set_text(f, "txn.a", "x", VAR_IF_EXISTS));
    assert_false(set_text(f, "txn.a", "x", VAR_IF_SET));
    assert_true(set_text(f, "txn.a", "x", VAR_IF_NOT_EXISTS));
    assert_false(set_text(f, "txn.a", "y", VAR_IF_NOT_EXISTS));
    assert_false(set_text(f, "txn.a", "y", VAR_IF_NOT_SET));
    assert_true(set_text(f, "txn.a", "y", VAR_IF_EXISTS | VAR_IF_NOT_EMPTY));
    assert_false(set_text(f, "txn.a", "", VAR_IF_NOT_EMPTY));
    assert_false(set_text(f, "txn.a", "z", VAR_IF_EMPTY));
    assert_true(set_text(f, "txn.a", "", VAR_IF_EMPTY));
    assert_false(set_int(f, "txn.a", 1, VAR_IF_GREATER));
    assert_true(set_int(f, "txn.a", 5, 0));
    assert_false(set_int(f, "txn.a", 7, VAR_IF_GREATER));
    assert_true(set_int(f, "txn.a", 3, VAR_IF_GREATER));
    assert_false(set_int(f, "txn.a", 2, VAR_IF_LESS));
    assert_true(set_int(f, "txn.a", 9, VAR_IF_LESS));
    assert_string_equal(fixture_typed(f, "var(txn.a)"), "int:9");
}

static void conditions_have_names(void **state)
{
    static const char *const names[] = {"ifexists", "ifnotexists", "ifempty", "ifnotempty",
                                        "ifset",    "ifnotset",    "ifgt",    "iflt"};

    for (size_t i = 0; i < COUNT_OF(names); i++)
        assert_int_equal(var_condition(str_of(names[i])), 1u << i);
    assert_int_equal(var_condition(STR("ifnope")), 0);
}

static void process_variables_are_set_by_the_configuration(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(
        rules_proc_var_set(&f->c, &f->proc_vars, "proc.v", fixture_expr(f, "str(x),upper")), 0);
    assert_string_equal(fixture_eval(f, "var(proc.v)"), "X");
    /* It may build on another. */
    assert_int_equal(rules_proc_var_set(&f->c, &f->proc_vars, "proc.w",
                                        fixture_expr(f, "var(proc.v),concat(y)")),
                     0);
    assert_string_equal(fixture_eval(f, "var(proc.w)"), "Xy");
    assert_int_equal(rules_proc_var_set(&f->c, &f->proc_vars, "txn.v", fixture_expr(f, "str(x)")),
                     SP_EINVAL);
    assert_non_null(strstr(fixture_error(f), "only the scope 'proc'"));
    assert_int_equal(rules_proc_var_set(&f->c, &f->proc_vars, "v", fixture_expr(f, "str(x)")),
                     SP_EINVAL);
    assert_non_null(strstr(fixture_error(f), "must start with its scope"));
    assert_int_equal(rules_proc_var_set(&f->c, &f->proc_vars, "proc.v", fixture_expr(f, "path")),
                     SP_EINVAL);
    assert_non_null(strstr(fixture_error(f), "has no value when the configuration is read"));
}

static void without_a_session_nothing_happens(void **state)
{
    struct fixture *f = *state;
    struct var_ref r = ref("sess.v");

    f->ctx.sess_vars = NULL;
    assert_false(set_text(f, "sess.v", "x", 0));
    var_unset(&r, &f->ctx);
    assert_string_equal(fixture_eval(f, "var(sess.v,none)"), "none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(names_have_scopes),
        TEST(scopes_are_separate),
        TEST(values_are_copied_and_keep_their_type),
        TEST(a_session_variable_costs_bounded_memory),
        TEST(conditions_decide),
        TEST(conditions_have_names),
        TEST(process_variables_are_set_by_the_configuration),
        TEST(without_a_session_nothing_happens),
    };

    return cmocka_run_group_tests_name("rules/vars", tests, NULL, NULL);
}
