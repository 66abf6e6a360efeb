#include "harness.h"

static void unknown_names_suggest_the_nearest(void **state)
{
    struct fixture *f = *state;

    fixture_expr_fails(f, "pathh", "unknown sample fetch 'pathh', did you mean 'path'?");
    fixture_expr_fails(f, "zzzzzzzz", "unknown sample fetch 'zzzzzzzz'");
    fixture_expr_fails(f, "path,lowr", "unknown converter 'lowr', did you mean 'lower'?");
    fixture_expr_fails(f, "path,zzzzzzzz", "unknown converter 'zzzzzzzz'");
}

static void known_names_that_are_not_provided_say_so(void **state)
{
    struct fixture *f = *state;

    fixture_expr_fails(f, "sc0_conn_rate",
                       "'sc0_conn_rate' is known from HAProxy but not supported");
    fixture_expr_fails(f, "src_get_gpc0", "known from HAProxy but not supported");
    fixture_expr_fails(f, "http_auth(users)", "known from HAProxy but not supported");
    fixture_expr_fails(f, "lua.something", "known from HAProxy but not supported");
    fixture_expr_fails(f, "src,in_table(t)", "'in_table' is known from HAProxy but not supported");
    fixture_expr_fails(f, "src,debug", "known from HAProxy but not supported");
    fixture_expr_fails(f, "src,table_conn_rate", "known from HAProxy but not supported");
}

static void syntax_errors_are_told(void **state)
{
    struct fixture *f = *state;

    fixture_expr_fails(f, "", "a sample expression is missing");
    fixture_expr_fails(f, "(x)", "expected the name of a sample fetch, found '(x)'");
    fixture_expr_fails(f, "path lower", "expected a comma before ' lower'");
    fixture_expr_fails(f, "str(a)b", "expected a comma before 'b'");
    fixture_expr_fails(f, "path,lower(1)", "'lower': does not take arguments");
    fixture_expr_fails(f, "src,lower,ipmask(", "");
    fixture_expr_fails(f, "bool(true),ipmask(8)", "cannot be applied to a value of type boolean");
    fixture_expr_fails(f, "bin(61),add(1)", "cannot be applied to a value of type binary");
    fixture_expr_fails(f, "path,(x)", "unknown converter ''");
}

static void the_location_is_in_the_message(void **state)
{
    struct fixture *f = *state;
    char *word = arena_cstr(&f->config, "nope");
    int used;

    assert_null(rules_expr_compile(&f->c, 1, &word, &used));
    assert_string_equal(f->diag.first->loc.file, "test.cfg");
    assert_int_equal(f->diag.first->loc.line, 7);
}

static void converters_may_be_words_of_their_own(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *line;
        int used;
        const char *value;
    } rows[] = {
        {"str(AbC) lower", 2, "abc"},
        {"str(AbC) lower upper", 3, "ABC"},
        {"str(a.b),lower field(2,.),upper", 2, "B"},
        {"str(AbC) if TRUE", 1, "AbC"},
        {"str(AbC) len 10", 1, "AbC"},
        {"str(AbC)", 1, "AbC"},
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char **argv;
        int argc = fixture_words(f, rows[i].line, &argv), used;
        struct rules_expr *e = rules_expr_compile(&f->c, argc, argv, &used);
        struct str s;

        assert_non_null(e);
        assert_int_equal(used, rows[i].used);
        assert_true(rules_expr_str(e, &f->ctx, &s));
        assert_true(str_eq(s, str_of(rows[i].value)));
    }
}

static void a_failing_step_fails_the_expression(void **state)
{
    struct fixture *f = *state;

    assert_string_equal(fixture_eval(f, "req.hdr(nope),lower"), "<none>");
    assert_string_equal(fixture_eval(f, "str(a),field(3,.)"), "<none>");
    assert_string_equal(fixture_eval(f, "str(a),field(3,.),lower"), "<none>");
}

static void constants_are_evaluated_once(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(fixture_expr(f, "str(a),upper,hex")->known, EXPR_VALUE);
    assert_int_equal(fixture_expr(f, "int(5),add(3),mul(2)")->known, EXPR_VALUE);
    assert_int_equal(fixture_expr(f, "str(a),field(2,.)")->known, EXPR_FAILS);
    assert_int_equal(fixture_expr(f, "env(NO_SUCH_VARIABLE)")->known, EXPR_FAILS);
    assert_int_equal(fixture_expr(f, "int(5),add(txn.x)")->known, EXPR_DYNAMIC);
    assert_int_equal(fixture_expr(f, "str(a),set-var(txn.x)")->known, EXPR_DYNAMIC);
    assert_int_equal(fixture_expr(f, "str(a),concat(x,txn.y)")->known, EXPR_DYNAMIC);
    assert_int_equal(fixture_expr(f, "int(1),ltime(%Y)")->known, EXPR_DYNAMIC);
    assert_int_equal(fixture_expr(f, "path")->known, EXPR_DYNAMIC);
    assert_int_equal(fixture_expr(f, "date")->known, EXPR_DYNAMIC);
}

static void needs_are_known(void **state)
{
    struct fixture *f = *state;

    assert_true(rules_expr_needs_response(fixture_expr(f, "res.hdr(x)")));
    assert_true(rules_expr_needs_response(fixture_expr(f, "status,add(1)")));
    assert_false(rules_expr_needs_response(fixture_expr(f, "req.hdr(x)")));
    assert_false(rules_expr_needs_response(fixture_expr(f, "src")));
}

static void memory_exhaustion_is_reported(void **state)
{
    struct fixture *f = *state;
    struct arena small;
    char *word = arena_cstr(&f->config, "path,lower,field(1,.)");
    int used;

    for (size_t limit = 1; limit < 4096; limit += 16) {
        arena_init(&small, 256, limit);
        f->c.arena = &small;
        if (!rules_expr_compile(&f->c, 1, &word, &used))
            assert_non_null(fixture_error(f));
        f->c.arena = &f->config;
        arena_release(&small);
    }
}

static void evaluation_without_memory_fails(void **state)
{
    struct fixture *f = *state;
    struct arena none;
    struct rules_expr *e = fixture_expr(f, "method,lower");
    struct str s;

    arena_init(&none, 16, 1);
    f->ctx.arena = &none;
    assert_false(rules_expr_str(e, &f->ctx, &s));
    f->ctx.arena = &f->request;
    assert_true(rules_expr_str(e, &f->ctx, &s));
    assert_true(str_eq(s, STR("get")));
    arena_release(&none);
}

static void a_registry_is_made_at_need(void **state)
{
    struct fixture *f = *state;
    struct rules_registry *own = f->c.registry;

    f->c.registry = NULL;
    assert_string_equal(fixture_eval(f, "str(abc),regsub(b,X)"), "aXc");
    assert_non_null(f->c.registry);
    rules_release_all(f->c.registry);
    f->c.registry = own;
    rules_release_all(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(unknown_names_suggest_the_nearest),
        TEST(known_names_that_are_not_provided_say_so),
        TEST(syntax_errors_are_told),
        TEST(the_location_is_in_the_message),
        TEST(converters_may_be_words_of_their_own),
        TEST(a_failing_step_fails_the_expression),
        TEST(constants_are_evaluated_once),
        TEST(needs_are_known),
        TEST(memory_exhaustion_is_reported),
        TEST(evaluation_without_memory_fails),
        TEST(a_registry_is_made_at_need),
    };

    return cmocka_run_group_tests_name("rules/expr", tests, NULL, NULL);
}
