#include "harness.h"

#include "rules/action.h"

struct row {
    const char *target, *rule, *line; /* "METHOD TARGET HOST", or NULL: the rewrite is refused */
};

static const struct row rows[] = {
    {"/a/b?q=1", "set-path /new", "GET /new?q=1 h"},
    {"/a/b?q=1", "set-path /new%[path]", "GET /new/a/b?q=1 h"},
    {"/a/b", "set-path /", "GET / h"},
    {"http://h/a?q", "set-path /new", "GET http://h/new?q h"},
    {"*", "set-path /new", "GET /new h"},
    {"/a/b?q=1", "set-path \"/new path\"", NULL},
    {"/a/b?q=1", "set-pathq /new?z=1", "GET /new?z=1 h"},
    {"/a/b?q=1", "set-pathq /new", "GET /new h"},
    {"http://h/a?q", "set-pathq /x?y", "GET http://h/x?y h"},
    {"/a/b?q=1", "set-query z=1", "GET /a/b?z=1 h"},
    {"/a/b", "set-query z=1", "GET /a/b?z=1 h"},
    {"/a/b?q=1", "set-query \"\"", "GET /a/b? h"},
    {"/a/b", "set-query \"\"", "GET /a/b h"},
    {"/a/b?q=1", "set-query %[query]&z=1", "GET /a/b?q=1&z=1 h"},
    {"/a/b?q=1", "set-uri /u?x", "GET /u?x h"},
    {"/a/b?q=1", "set-uri http://other:8080/u", "GET http://other:8080/u other:8080"},
    {"http://h/a", "set-uri /u", "GET /u h"},
    {"/a/b?q=1", "set-uri http://a@b@c/u", NULL},
    {"/a/b?q=1", "set-method POST", "POST /a/b?q=1 h"},
    {"/a/b?q=1", "set-method %[method,lower]", "get /a/b?q=1 h"},
    {"/a/b?q=1", "set-method \"P O\"", NULL},
    {"/a/b?q=1", "set-method %[req.hdr(none)]", NULL},
    {"/a/b?q=1", "replace-path (.*) /foo\\1", "GET /foo/a/b?q=1 h"},
    {"/a/b?q=1", "replace-path /a/(.*) /\\1", "GET /b?q=1 h"},
    {"/a/b?q=1", "replace-path none /x", "GET /a/b?q=1 h"},
    {"/a/b?q=1", "replace-path .* \"a b\"", NULL},
    {"/a/b?q=1", "replace-pathq ([^?]*)(\\?(.*))? \\1/foo\\2", "GET /a/b/foo?q=1 h"},
    {"/a/b?q=1", "replace-uri ^/(.*) http://other/\\1", "GET http://other/a/b?q=1 other"},
    {"/a/b?q=1", "replace-uri none x", "GET /a/b?q=1 h"},
    {"*", "replace-path .* /x", "GET * h"},
    {"*", "replace-uri .* /x", "GET /x h"},
};

static void start_lines_are_rewritten(void **state)
{
    struct fixture *f = *state;
    struct rules_outcome out;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        enum rules_verdict verdict;
        const char *got;

        fixture_request(
            f, arena_printf(&f->config, "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", rows[i].target));
        verdict = fixture_run(f, RULES_HTTP_REQUEST, rows[i].rule, &out);
        got = arena_printf(&f->config, "%.*s %.*s %s", STR_FMT(f->req.method_text),
                           STR_FMT(f->req.target), fixture_field_values(f, &f->req, "host"));
        if (verdict != (rows[i].line ? RULES_CONTINUE : RULES_ERROR))
            fail_msg("'%s' on '%s': verdict %d, '%s'", rows[i].rule, rows[i].target, verdict, got);
        if (rows[i].line && strcmp(got, rows[i].line) != 0)
            fail_msg("'%s' on '%s': got '%s', expected '%s'", rows[i].rule, rows[i].target, got,
                     rows[i].line);
        assert_int_equal(f->req.method, http_method_of(f->req.method_text));
    }
    /* Refused rewrites change nothing. */
    fixture_request(f, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_int_equal(fixture_run(f, RULES_HTTP_REQUEST, "set-path \"/x y\"", &out), RULES_ERROR);
    assert_true(str_eq(f->req.target, STR("/a")));
}

static void absolute_targets_set_the_host(void **state)
{
    struct fixture *f = *state;
    struct rules_outcome out;

    fixture_request(f, "GET / HTTP/1.0\r\nX: y\r\n\r\n");
    fixture_run(f, RULES_HTTP_REQUEST, "set-uri http://added/x", &out);
    assert_string_equal(fixture_field_values(f, &f->req, "host"), "added");
    assert_true(f->req.flags & HTTP_MSG_ABSOLUTE_TARGET);
    fixture_run(f, RULES_HTTP_REQUEST, "set-uri /x", &out);
    assert_false(f->req.flags & HTTP_MSG_ABSOLUTE_TARGET);
}

static void statuses_are_set(void **state)
{
    static const struct {
        const char *rule;
        unsigned status;
        const char *reason;
    } statuses[] = {
        {"set-status 404", 404, "Not Found"},
        {"set-status 503 reason \"Slow down\"", 503, "Slow down"},
        {"set-status 200 if FALSE", 201, "Created"},
    };
    struct fixture *f = *state;
    struct rules_outcome out;

    for (size_t i = 0; i < COUNT_OF(statuses); i++) {
        fixture_response(f, "HTTP/1.1 201 Created\r\n\r\n");
        fixture_run(f, i & 1 ? RULES_HTTP_RESPONSE : RULES_HTTP_AFTER_RESPONSE, statuses[i].rule,
                    &out);
        assert_int_equal(f->res.status, statuses[i].status);
        assert_true(str_eq(f->res.reason, str_of(statuses[i].reason)));
    }
    f->ctx.res = NULL;
    assert_int_equal(fixture_run(f, RULES_HTTP_RESPONSE, "set-status 404", &out), RULES_CONTINUE);
}

static void without_a_request_nothing_happens(void **state)
{
    struct fixture *f = *state;
    struct rules_outcome out;

    f->ctx.req = NULL;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_int_equal(fixture_run(f, RULES_HTTP_REQUEST, rows[i].rule, &out), RULES_CONTINUE);
}

static void long_targets_are_refused(void **state)
{
    struct fixture *f = *state;
    struct rules_outcome out;
    char *text = arena_zalloc(&f->config, 1, 10001);

    memset(text, 'a', 10000);
    fixture_request(f, arena_printf(&f->config, "GET /%s HTTP/1.1\r\nHost: h\r\n\r\n", text));
    assert_int_equal(fixture_run(f, RULES_HTTP_REQUEST, "set-query %[path]", &out), RULES_ERROR);
    assert_int_equal(fixture_run(f, RULES_HTTP_REQUEST, "replace-path (.*) \\1\\1", &out),
                     RULES_ERROR);
    assert_int_equal(f->req.target.len, 10001);
}

static void mistakes_are_explained(void **state)
{
    static const struct {
        enum rules_hook hook;
        const char *line, *part;
    } wrong[] = {
        {RULES_HTTP_REQUEST, "set-path", "exactly one format"},
        {RULES_HTTP_REQUEST, "set-path /a /b", "found '/b'"},
        {RULES_HTTP_REQUEST, "set-method if TRUE", "exactly one format"},
        {RULES_HTTP_REQUEST, "replace-path a", "a regular expression and a format"},
        {RULES_HTTP_REQUEST, "replace-path ( x", "has an error"},
        {RULES_HTTP_REQUEST, "replace-uri", "a regular expression"},
        {RULES_HTTP_RESPONSE, "set-status", "a status code"},
        {RULES_HTTP_RESPONSE, "set-status 99", "between 100 and 999"},
        {RULES_HTTP_RESPONSE, "set-status 1000", "between 100 and 999"},
        {RULES_HTTP_RESPONSE, "set-status ok", "between 100 and 999"},
        {RULES_HTTP_RESPONSE, "set-status 200 reason", "a text after 'reason'"},
        {RULES_HTTP_RESPONSE, "set-status 200 reason a\nb", "control characters"},
    };
    size_t used = 0;

    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        fixture_rule_fails(*state, wrong[i].hook, wrong[i].line, wrong[i].part);
    for (size_t i = 0; i < action_uri_table.count; i++)
        for (size_t k = 0; k < COUNT_OF(rows); k++) {
            size_t n = strlen(action_uri_table.rows[i].name);

            if (strncmp(rows[k].rule, action_uri_table.rows[i].name, n) == 0 &&
                rows[k].rule[n] == ' ') {
                used++;
                break;
            }
        }
    assert_int_equal(used, action_uri_table.count - 1); /* all but set-status */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(start_lines_are_rewritten), TEST(absolute_targets_set_the_host),
        TEST(statuses_are_set),          TEST(without_a_request_nothing_happens),
        TEST(long_targets_are_refused),  TEST(mistakes_are_explained),
    };

    return cmocka_run_group_tests_name("rules/action_uri", tests, NULL, NULL);
}
