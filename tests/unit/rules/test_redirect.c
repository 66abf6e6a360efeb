#include "harness.h"

#include "rules/action.h"

static const char *shown(struct fixture *f, const struct rules_reply *r)
{
    struct buf b = {arena_zalloc(&f->config, 1, 4096), 4095, 0, 0};

    buf_printf(&b, "%u", r->status);
    for (unsigned i = 0; i < r->field_count; i++)
        buf_printf(&b, " %.*s=%.*s", STR_FMT(r->fields[i].name), STR_FMT(r->fields[i].value));
    return b.mem;
}

struct row {
    const char *target, *rule, *reply; /* NULL: no redirection */
};

static void run_rows(struct fixture *f, enum rules_hook hook, const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct rules_outcome out;
        enum rules_verdict verdict;

        fixture_request(
            f, arena_printf(&f->config, "GET %s HTTP/1.1\r\nHost: h:81\r\n\r\n", rows[i].target));
        verdict = fixture_run(f, hook, rows[i].rule, &out);
        if (verdict != (rows[i].reply ? RULES_REPLY : RULES_CONTINUE))
            fail_msg("'%s': verdict %d", rows[i].rule, verdict);
        if (rows[i].reply && strcmp(shown(f, &out.reply), rows[i].reply) != 0)
            fail_msg("'%s': got '%s', expected '%s'", rows[i].rule, shown(f, &out.reply),
                     rows[i].reply);
        if (rows[i].reply)
            assert_true(out.reply.redirect);
    }
}

#define NO_CACHE " Cache-Control=no-cache"

static void requests_are_sent_elsewhere(void **state)
{
    static const struct row rows[] = {
        {"/a/b?q=1", "redirect location /x", "302 Location=/x" NO_CACHE},
        {"/a/b?q=1", "redirect location http://o%[path]", "302 Location=http://o/a/b" NO_CACHE},
        {"/a/b?q=1", "redirect location /x code 301", "301 Location=/x"},
        {"/a/b?q=1", "redirect location /x code 303", "303 Location=/x" NO_CACHE},
        {"/a/b?q=1", "redirect location /x code 307", "307 Location=/x" NO_CACHE},
        {"/a/b?q=1", "redirect code 308 location /x", "308 Location=/x"},
        {"/a/b?q=1", "redirect prefix http://o", "302 Location=http://o/a/b?q=1" NO_CACHE},
        {"/a/b?q=1", "redirect prefix http://o drop-query code 301", "301 Location=http://o/a/b"},
        {"/a/b?q=1", "redirect prefix http://o drop-query append-slash code 301",
         "301 Location=http://o/a/b/"},
        {"/a/b/?q", "redirect prefix / drop-query append-slash code 301", "301 Location=/a/b/"},
        {"*", "redirect prefix http://o code 301", "301 Location=http://o/"},
        {"/a/b?q=1", "redirect scheme https", "302 Location=https://h:81/a/b?q=1" NO_CACHE},
        {"/a/b?q=1", "redirect scheme https drop-query code 301", "301 Location=https://h:81/a/b"},
        {"http://o/a?q", "redirect scheme https code 301", "301 Location=https://h:81/a?q"},
        {"/a/b?q=1", "redirect scheme https if FALSE", NULL},
        {"/a/b?q=1", "redirect location \"%[str()]\" ignore-empty", NULL},
        {"/a/b?q=1", "redirect location \"%[str()]\" code 301", "301 Location="},
        {"/a/b?q=1", "redirect location /x keep-query code 301", "301 Location=/x?q=1"},
        {"/a/b?q=1", "redirect location /x?y=2 keep-query code 301", "301 Location=/x?y=2&q=1"},
        {"/a/b?q=1", "redirect location /x? keep-query code 301", "301 Location=/x?q=1"},
        {"/a/b", "redirect location /x keep-query code 301", "301 Location=/x"},
        {"/a", "redirect location /x set-cookie A=b% code 301",
         "301 Location=/x Set-Cookie=A=b%; path=/;"},
        {"/a", "redirect location /x set-cookie-fmt A=%[path] code 301",
         "301 Location=/x Set-Cookie=A=/a; path=/;"},
        {"/a", "redirect location /x clear-cookie A code 301",
         "301 Location=/x Set-Cookie=A; path=/; Max-Age=0;"},
    };
    static const struct row literal[] = {
        {"/a", "location /x%[path] code 301", "301 Location=/x%[path]"},
        {"/a?q", "prefix http://100% code 301 if TRUE", "301 Location=http://100%/a?q"},
        {"/a?q", "scheme https code 301", "301 Location=https://h:81/a?q"},
    };

    run_rows(*state, RULES_HTTP_REQUEST, rows, COUNT_OF(rows));
    run_rows(*state, RULES_REDIRECT, literal, COUNT_OF(literal));
}

static void responses_may_be_replaced(void **state)
{
    struct fixture *f = *state;
    struct rules_outcome out;

    fixture_response(f, "HTTP/1.1 404 Not Found\r\n\r\n");
    assert_int_equal(
        fixture_run(f, RULES_HTTP_RESPONSE, "redirect location /missing code 301", &out),
        RULES_REPLY);
    assert_string_equal(shown(f, &out.reply), "301 Location=/missing");
    /* The request may be gone by then. */
    f->ctx.req = NULL;
    fixture_run(f, RULES_HTTP_RESPONSE, "redirect location /missing keep-query code 301", &out);
    assert_string_equal(shown(f, &out.reply), "301 Location=/missing");
}

static void locations_cannot_split_messages(void **state)
{
    struct fixture *f = *state;
    struct rules_outcome out;

    assert_int_equal(
        fixture_run(f, RULES_HTTP_REQUEST, "redirect location /%[bin(0d0a58)] code 301", &out),
        RULES_REPLY);
    assert_string_equal(shown(f, &out.reply), "301 Location=/%0D%0AX");
    assert_int_equal(fixture_run(f, RULES_HTTP_REQUEST, "redirect location /x\r\nX", &out),
                     RULES_ERROR);
    assert_int_equal(
        fixture_run(f, RULES_HTTP_REQUEST, "redirect location /x set-cookie a=b\nX", &out),
        RULES_ERROR);
}

static void long_locations_are_refused(void **state)
{
    struct fixture *f = *state;
    struct rules_outcome out;
    char *text = arena_zalloc(&f->config, 1, 16401);

    memset(text, 'a', 16400);
    fixture_request(f, arena_printf(&f->config, "GET /%s HTTP/1.1\r\nHost: h\r\n\r\n", text));
    assert_int_equal(fixture_run(f, RULES_HTTP_REQUEST, "redirect prefix http://o", &out),
                     RULES_ERROR);
    assert_int_equal(fixture_run(f, RULES_HTTP_REQUEST, "redirect location %[path]", &out),
                     RULES_ERROR);
}

static void evaluation_without_memory_fails(void **state)
{
    struct fixture *f = *state;
    const char *lines[] = {"redirect location /x set-cookie a=b", NULL};
    const struct rules_set *set = fixture_rules(f, RULES_HTTP_REQUEST, lines);
    struct rules_outcome out;

    for (size_t limit = 16; limit < 1024; limit += 16) {
        struct arena small;
        enum rules_verdict verdict;

        arena_init(&small, 16, limit);
        f->ctx.arena = &small;
        rules_outcome_init(&out);
        verdict = rules_set_run(set, &f->ctx, &out);
        assert_true(verdict == RULES_ERROR ||
                    (verdict == RULES_REPLY && out.reply.field_count == 3));
        arena_release(&small);
    }
}

static void mistakes_are_explained(void **state)
{
    static const struct {
        enum rules_hook hook;
        const char *line, *part;
    } wrong[] = {
        {RULES_HTTP_REQUEST, "redirect", "'location', 'prefix' or 'scheme'"},
        {RULES_HTTP_REQUEST, "redirect code 301", "'location', 'prefix' or 'scheme'"},
        {RULES_HTTP_REQUEST, "redirect location", "a destination"},
        {RULES_HTTP_REQUEST, "redirect location /x code", "a status code after 'code'"},
        {RULES_HTTP_REQUEST, "redirect location /x code 304", "found '304'"},
        {RULES_HTTP_REQUEST, "redirect location /x code x", "found 'x'"},
        {RULES_HTTP_REQUEST, "redirect location /x set-cookie", "a cookie"},
        {RULES_HTTP_REQUEST, "redirect location /x slowly", "found 'slowly'"},
        {RULES_HTTP_REQUEST, "redirect location /x%nosuch", "nosuch"},
        {RULES_HTTP_REQUEST, "redirect location /x set-cookie-fmt %nosuch", "nosuch"},
        {RULES_HTTP_RESPONSE, "redirect prefix /x", "only knows redirections of type 'location'"},
        {RULES_HTTP_RESPONSE, "redirect scheme https",
         "only knows redirections of type 'location'"},
        {RULES_REDIRECT, "nowhere /x", "found 'nowhere'"},
    };

    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        fixture_rule_fails(*state, wrong[i].hook, wrong[i].line, wrong[i].part);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(requests_are_sent_elsewhere),     TEST(responses_may_be_replaced),
        TEST(locations_cannot_split_messages), TEST(long_locations_are_refused),
        TEST(evaluation_without_memory_fails), TEST(mistakes_are_explained),
    };

    return cmocka_run_group_tests_name("rules/redirect", tests, NULL, NULL);
}
