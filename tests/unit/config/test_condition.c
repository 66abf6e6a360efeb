#include "support.h"

#include <stdlib.h>

struct condition_case {
    const char *text;
    int value;
};

static const struct condition_case cases[] = {
    {"", 0},
    {"0", 0},
    {"1", 1},
    {"-1000 && 200", 1},
    {"!1", 0},
    {"! ! 1", 1},
    {"1 && 0 || 1", 1},
    {"0 && 1 || 0", 0},
    {"0 || 1 && 0", 0},
    {"(0 || 1) && 1", 1},
    {"1&&!0&&!((streq(a,b)||!streq(a,a)&&1)||strneq(a,a))", 1},
    {"1   &&!   0&&    !((streq(a,b)||!streq(a,a)&&1)||strneq(a,a))", 1},
    {"1 && !0 && !((streq(a,b) || !streq(a,a) && 1) || strneq(a,b))", 0},
    {"streq(foo,'foo')", 1},
    {"streq(\"foo bar\",'foo bar')", 1},
    {"streq(foo,bar)", 0},
    {"streq(\"$CFG_TEST\",v)", 1},
    {"streq(\"${CFG_NONE-x}\",x)", 1},
    {"streq(,'')", 1},
    {"strneq(a,b)", 1},
    {"strstr(haystack,stack)", 1},
    {"strstr(haystack,needle)", 0},
    {"defined(CFG_TEST)", 1},
    {"defined(CFG_NONE)", 0},
    {"feature(OPENSSL) && feature(PCRE2)", 1},
    {"feature(OPENSSL_AWSLC)", 0},
    {"feature(PCRE) || feature(PCRE2)", 1},
    {"enabled(EPOLL)", 1},
    {"enabled(KQUEUE)", 0},
    {"version_atleast(2.4)", 1},
    {"version_atleast(2.5-dev0)", 1},
    {"version_atleast(3.2.1)", 1},
    {"version_atleast(3.2.1-abc123-4)", 1},
    {"version_atleast(3.3-dev1)", 0},
    {"version_atleast(1024)", 0},
    {"version_before(3.2.1)", 0},
    {"version_before(3.2.2)", 1},
    {"openssl_version_atleast(1.1.1)", 1},
    {"openssl_version_atleast(1.1.1k)", 1},
    {"openssl_version_atleast(3.0.0)", 1},
    {"openssl_version_atleast(3.0.15)", 1},
    {"openssl_version_atleast(3.0.15a)", 0},
    {"openssl_version_before(3.5.0-beta1)", 1},
    {"openssl_version_before(3.0.15-beta1)", 0},
    {"ssllib_name_startswith(OpenSSL)", 1},
    {"ssllib_name_startswith(AWS-LC)", 0},
    {"awslc_api_atleast(35)", 0},
    {"fips_mode()", 0},
    {"fips_mode", 0},
    {"1 || feature(X)", 1},
    {"0 && version_atleast(nonsense)", 0},
};

static void evaluates(void **state)
{
    setenv("CFG_TEST", "v", 1);
    unsetenv("CFG_NONE");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct arena arena;
        struct diag diag;
        int value;

        arena_init(&arena, 0, 0);
        diag_init(&diag, &arena);
        value = cfg_eval_condition(cases[i].text, &test_environment, &diag);
        if (value != cases[i].value)
            fail_msg("'%s' is %d: %s", cases[i].text, value, diag.first ? diag.first->text : "");
        assert_null(diag.first);
        arena_release(&arena);
    }
}

static const struct {
    const char *text, *error;
} errors[] = {
    {"200rrr", "unexpected character 'r' after the condition, at position 4 of '200rrr'"},
    {"!(0))", "unexpected character ')' after the condition, at position 5 of '!(0))'"},
    {"(1", "expected ')', at position 3 of '(1'"},
    {"1 &&", "expected a number, a predicate or '(', at position 5 of '1 &&'"},
    {"|| 1", "expected a number, a predicate or '(', at position 1 of '|| 1'"},
    {"streq(a,\"a)", "unmatched quote at position 9 of 'streq(a,\"a)'"},
    {"streq(a,\\\"a)", "unmatched quote in this argument, at position 9 of 'streq(a,\"a)'"},
    {"streq(a", "'streq' expects 2 arguments, at position 8 of 'streq(a'"},
    {"streq(a,b", "expected ')' after the arguments of 'streq', at position 10 of 'streq(a,b'"},
    {"streq(a,b,c)", "'streq' expects 2 arguments, at position 10 of 'streq(a,b,c)'"},
    {"defined(a,b)", "'defined' expects 1 argument, at position 10 of 'defined(a,b)'"},
    {"defined", "expected '(' after 'defined', at position 8 of 'defined'"},
    {"feture(X)",
     "unknown predicate 'feture', did you mean 'feature'?, at position 1 of 'feture(X)'"},
    {"xyz(X)", "unknown predicate 'xyz', at position 1 of 'xyz(X)'"},
    {"version_atleast(abc)",
     "'abc' is not a version, expected numbers like 2.6 or 3.0-dev1, at position 21 of 'version_atleast(abc)'"},
    {"openssl_version_before(1.1)",
     "'1.1' is not an OpenSSL version, expected numbers like 1.1.1, at position 28 of "
     "'openssl_version_before(1.1)'"},
};

static void reports_what_it_cannot_read(void **state)
{
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        struct arena arena;
        struct diag diag;

        arena_init(&arena, 0, 0);
        diag_init(&diag, &arena);
        assert_int_equal(cfg_eval_condition(errors[i].text, &test_environment, &diag), SP_EINVAL);
        assert_non_null(diag.first);
        assert_string_equal(diag.first->text, errors[i].error);
        assert_int_equal(diag.errors, 1);
        arena_release(&arena);
    }
}

static void bounds_its_depth(void **state)
{
    char text[2048] = "";
    struct arena arena;
    struct diag diag;

    memset(text, '(', 128);
    memcpy(text + 128, "1", 2);
    memset(text + 129, ')', 128);
    arena_init(&arena, 0, 0);
    diag_init(&diag, &arena);
    assert_int_equal(cfg_eval_condition(text, &test_environment, &diag), 1);
    memset(text, '(', 1000);
    text[1000] = '\0';
    assert_int_equal(cfg_eval_condition(text, &test_environment, &diag), SP_EINVAL);
    assert_non_null(strstr(diag.first->text, "too many nested parentheses"));
    arena_release(&arena);
}

static bool only_one_is_defined(const char *name)
{
    return strcmp(name, "ONE") == 0;
}

static void asks_the_environment_it_is_given(void **state)
{
    struct cfg_environment env = {.is_defined = only_one_is_defined};
    struct arena arena;
    struct diag diag;

    arena_init(&arena, 0, 0);
    diag_init(&diag, &arena);
    assert_int_equal(cfg_eval_condition("defined(ONE) && !defined(PATH)", &env, &diag), 1);
    assert_int_equal(cfg_eval_condition("feature(OPENSSL) || enabled(EPOLL)", &env, &diag), 0);
    assert_int_equal(cfg_eval_condition("ssllib_name_startswith(O)", &env, &diag), 0);
    assert_int_equal(cfg_eval_condition("version_atleast(1)", &env, &diag), SP_EINVAL);
    assert_int_equal(cfg_eval_condition("openssl_version_atleast(1.0.2)", &env, &diag), SP_EINVAL);
    arena_release(&arena);
}

/* --- blocks --- */

static void reads_the_branch_that_is_true(void **state)
{
    struct loaded l;

    load(&l, "global\n"
             ".if 0\n"
             "    maxconn 1\n"
             "    nonsense\n"
             ".elif streq(a,a)\n"
             "    maxconn 2\n"
             "  .if feature(OPENSSL) # nested\n"
             "    nbthread 4\n"
             "  .else\n"
             "    nbthread 5\n"
             "  .endif\n"
             ".elif 1\n"
             "    maxconn 3\n"
             ".else\n"
             "    maxconn 4\n"
             "  .if 1\n"
             "    maxconn 5\n"
             "  .endif\n"
             ".endif\n"
             ".if ! \"${CFG_NONE}\"\n"
             "    description odd\n"
             ".endif\n"
             ".if \"\"\n"
             "    description empty\n"
             ".else\n"
             "    node n\n"
             ".endif\n");
    assert_string_equal(
        report(&l),
        "t.cfg:20: error: '.if': expected a number, a predicate or '(', at position 3 of '! '\n");
    assert_int_equal(l.model->global.maxconn, 2);
    assert_int_equal(l.model->global.nbthread, 4);
    assert_null(l.model->global.description);
    assert_string_equal(l.model->global.node, "n");
    unload(&l);
}

static void reports_broken_blocks(void **state)
{
    assert_report(
        "global\n.else\n.endif\n.elif 1\n.if 1\n.else\n.else\n.elif 1\n.endif x\n.endif\n.ifx 1\n"
        ".if nonsense\n.elif 1\n maxcon\n.endif\n.if 1\n",
        "t.cfg:2: error: '.else': there is no matching '.if'\n"
        "t.cfg:3: error: '.endif': there is no matching '.if'\n"
        "t.cfg:4: error: '.elif': there is no matching '.if'\n"
        "t.cfg:7: error: '.else': it is not permitted after '.else'\n"
        "t.cfg:8: error: '.elif': it is not permitted after '.else'\n"
        "t.cfg:9: error: '.endif': no argument is expected\n"
        "t.cfg:11: error: unknown directive '.ifx'; expected .if, .elif, .else, .endif, .notice, "
        ".warning, .alert or .diag, did you mean '.if'?\n"
        "t.cfg:12: error: '.if': unknown predicate 'nonsense', at position 1 of 'nonsense'\n"
        "t.cfg:16: error: '.if' without a matching '.endif'\n");
}

static void bounds_the_nesting_of_blocks(void **state)
{
    struct loaded l;
    char text[2000] = "global\n";

    for (int i = 0; i < 129; i++)
        strncat(text, ".if 1\n", sizeof(text) - strlen(text) - 1);
    load(&l, text);
    assert_non_null(strstr(
        report(&l), "t.cfg:130: error: '.if': too many nested '.if', at most 128 are allowed"));
    unload(&l);
}

static void speaks_when_told_to(void **state)
{
    assert_report(
        "global\n.notice \"for your eyes\"\n.warning w\n.alert 'all is lost'\n.diag \"quiet\"\n"
        ".notice two words\n.alert\n.if 0\n.alert never\n.endif\n",
        "t.cfg:2: notice: 'for your eyes'\n"
        "t.cfg:3: warning: 'w'\n"
        "t.cfg:4: error: 'all is lost'\n"
        "t.cfg:6: error: '.notice': too many arguments; expected one message, in quotes when it "
        "contains spaces\n"
        "t.cfg:7: error: '.alert': missing message; expected one message, in quotes when it contains "
        "spaces\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(evaluates),
        cmocka_unit_test(reports_what_it_cannot_read),
        cmocka_unit_test(bounds_its_depth),
        cmocka_unit_test(asks_the_environment_it_is_given),
        cmocka_unit_test(reads_the_branch_that_is_true),
        cmocka_unit_test(reports_broken_blocks),
        cmocka_unit_test(bounds_the_nesting_of_blocks),
        cmocka_unit_test(speaks_when_told_to),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
