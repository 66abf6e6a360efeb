#include "harness.h"

#include "rules/action.h"

struct row {
    const char *rule, *name, *values;
};

static void run_rows(struct fixture *f, enum rules_hook hook, const struct row *rows, size_t n)
{
    struct rules_outcome out;

    for (size_t i = 0; i < n; i++) {
        const struct http_msg *m = &f->req;
        const char *got;

        fixture_request(
            f,
            "GET /p HTTP/1.1\r\nHost: h\r\nX-A: one\r\nX-A: two, three\r\nX-B: val\r\nX-Empty:\r\n\r\n");
        if (hook != RULES_HTTP_REQUEST) {
            fixture_response(
                f,
                "HTTP/1.1 200 OK\r\nX-A: one\r\nX-A: two, three\r\nX-B: val\r\nX-Empty:\r\n\r\n");
            m = &f->res;
        }
        assert_int_equal(fixture_run(f, hook, rows[i].rule, &out), RULES_CONTINUE);
        got = fixture_field_values(f, m, rows[i].name);
        if (strcmp(got, rows[i].values) != 0)
            fail_msg("'%s': got '%s', expected '%s'", rows[i].rule, got, rows[i].values);
    }
}

static const struct row rows[] = {
    {"add-header X-New v", "x-new", "v"},
    {"add-header x-b v2", "x-b", "val|v2"},
    {"set-header x-b v2", "x-b", "v2"},
    {"set-header X-A v2", "x-a", "v2"},
    {"set-header x-b \"a b\"", "x-b", "a b"},
    {"set-header x-b \"\"", "x-b", ""},
    {"add-header x-c \"%[str(a b),upper]\"", "x-c", "A B"},
    {"del-header x-a", "x-a", "<none>"},
    {"del-header x-none", "x-a", "one|two, three"},
    {"del-header X-A -m str", "x-a", "<none>"},
    {"del-header X- -m beg", "x-b", "<none>"},
    {"del-header -A -m end", "x-a", "<none>"},
    {"del-header -A -m end", "x-b", "val"},
    {"del-header MPT -m sub", "x-empty", "<none>"},
    {"del-header ^x-[ab]$ -m reg", "x-a", "one|two, three"},
    {"del-header (?i)^x-[ab]$ -m reg", "x-a", "<none>"},
    {"replace-header x-a (one) <\\1>", "x-a", "<one>|two, three"},
    {"replace-header x-a (.*) <\\1>", "x-a", "<one>|<two, three>"},
    {"replace-header x-a none x", "x-a", "one|two, three"},
    {"replace-header x-none .* x", "x-none", "<none>"},
    {"replace-header x-b (v)(al) \"\\2\\1\\0\"", "x-b", "alvval"},
    {"replace-header x-b v \"a%[str(\\\\0)]b\"", "x-b", "avb"},
    {"replace-header x-empty ^$ filled", "x-empty", "filled"},
    {"replace-value x-a one X", "x-a", "X|two, three"},
    {"replace-value x-a ^(t.*)$ <\\1>", "x-a", "one|<two>,<three>"},
    {"replace-value x-a three \"\"", "x-a", "one|two,"},
    {"replace-value x-a none \"\"", "x-a", "one|two, three"},
};

static void fields_are_changed(void **state)
{
    run_rows(*state, RULES_HTTP_REQUEST, rows, COUNT_OF(rows));
    run_rows(*state, RULES_HTTP_RESPONSE, rows, COUNT_OF(rows));
    run_rows(*state, RULES_HTTP_AFTER_RESPONSE, rows, COUNT_OF(rows));
    for (size_t i = 0; i < action_header_table.count; i++) {
        bool used = false;

        for (size_t k = 0; k < COUNT_OF(rows); k++)
            used |= strncmp(rows[k].rule, action_header_table.rows[i].name,
                            strlen(action_header_table.rows[i].name)) == 0;
        assert_true(used);
    }
}

static void without_a_message_nothing_happens(void **state)
{
    struct fixture *f = *state;
    struct rules_outcome out;

    f->ctx.req = NULL;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_int_equal(fixture_run(f, RULES_HTTP_REQUEST, rows[i].rule, &out), RULES_CONTINUE);
}

static void mistakes_are_explained(void **state)
{
    static const struct expectation wrong[] = {
        {"add-header", "expects the name of a header field"},
        {"set-header X", "expects a name and a format"},
        {"set-header \"X Y\" z", "forbidden characters"},
        {"set-header X: z", "forbidden characters"},
        {"set-header X %nosuch", "nosuch"},
        {"set-header X if TRUE", "expects a name and a format"},
        {"del-header", "expects the name of a header field"},
        {"del-header x -m", "expects a matching method"},
        {"del-header x -m dom", "does not match by 'dom'"},
        {"del-header x( -m reg", "has an error"},
        {"replace-header x", "a regular expression"},
        {"replace-header x (", "has an error"},
        {"replace-header x a", "and a format"},
        {"replace-value x a %[nosuch]", "nosuch"},
    };

    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        fixture_rule_fails(*state, RULES_HTTP_REQUEST, wrong[i].input, wrong[i].expected);
}

/* A line feed in a value: the rewrite fails, which strict-mode decides about. */
static void failed_rewrites_follow_strict_mode(void **state)
{
    static const char bad[] = "replace-header Host .* a\\x0ab";
    const char *const strict[] = {bad, "set-header X-Done 1", NULL};
    const char *const lenient[] = {"strict-mode off", bad, "set-header X-Done 1", NULL};
    const char *const again[] = {"strict-mode off", "strict-mode on", bad, NULL};
    struct fixture *f = *state;
    struct rules_outcome out;

    rules_outcome_init(&out);
    assert_int_equal(rules_set_run(fixture_rules(f, RULES_HTTP_REQUEST, strict), &f->ctx, &out),
                     RULES_ERROR);
    assert_string_equal(fixture_field_values(f, &f->req, "x-done"), "<none>");
    assert_int_equal(rules_set_run(fixture_rules(f, RULES_HTTP_REQUEST, lenient), &f->ctx, &out),
                     RULES_CONTINUE);
    assert_string_equal(fixture_field_values(f, &f->req, "x-done"), "1");
    assert_int_equal(rules_set_run(fixture_rules(f, RULES_HTTP_REQUEST, again), &f->ctx, &out),
                     RULES_ERROR);
}

/* Values never break out of their line: what is formatted is encoded. */
static void values_cannot_split_messages(void **state)
{
    struct fixture *f = *state;
    struct rules_outcome out;

    assert_int_equal(
        fixture_run(f, RULES_HTTP_REQUEST, "set-header X \"%[bin(610d0a623a2063)]\"", &out),
        RULES_CONTINUE);
    assert_string_equal(fixture_field_values(f, &f->req, "x"), "a%0D%0Ab: c");
    f->log.uri = STR("/\r\nX: y");
    assert_int_equal(fixture_run(f, RULES_HTTP_REQUEST, "set-header X %HU", &out), RULES_CONTINUE);
    assert_string_equal(fixture_field_values(f, &f->req, "x"), "/#0D#0AX: y");
    /* Through a substitution, the value is refused. */
    assert_int_equal(fixture_run(f, RULES_HTTP_REQUEST, "replace-header Host .* a\\x0ab", &out),
                     RULES_ERROR);
    assert_string_equal(fixture_field_values(f, &f->req, "host"), "localhost");
}

static void long_values_are_refused(void **state)
{
    struct fixture *f = *state;
    struct rules_outcome out;
    char *text = arena_zalloc(&f->config, 1, 10001);

    memset(text, 'a', 10000);
    fixture_request(f, arena_printf(&f->config, "GET / HTTP/1.1\r\nX: %s\r\n\r\n", text));
    assert_int_equal(fixture_run(f, RULES_HTTP_REQUEST, "replace-header X (.*) \\1\\1", &out),
                     RULES_ERROR);
    assert_int_equal(fixture_run(f, RULES_HTTP_REQUEST, "replace-value X (.*) \\1\\1", &out),
                     RULES_ERROR);
    assert_int_equal(strlen(fixture_field_values(f, &f->req, "x")), 10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(fields_are_changed),           TEST(without_a_message_nothing_happens),
        TEST(mistakes_are_explained),       TEST(failed_rewrites_follow_strict_mode),
        TEST(values_cannot_split_messages), TEST(long_values_are_refused),
    };

    return cmocka_run_group_tests_name("rules/action_header", tests, NULL, NULL);
}
