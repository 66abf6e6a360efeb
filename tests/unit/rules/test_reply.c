#include "harness.h"

#include "rules/action.h"

static const char *shown(struct fixture *f, const struct rules_reply *r)
{
    struct buf b = {arena_zalloc(&f->config, 1, 4096), 4095, 0, 0};

    buf_printf(&b, "%u", r->status);
    if (r->use_default_errorfile)
        buf_put(&b, STR(" page"));
    if (r->raw.ptr)
        buf_printf(&b, " raw=%.*s", STR_FMT(r->raw));
    if (r->content_type.len)
        buf_printf(&b, " type=%.*s", STR_FMT(r->content_type));
    if (r->body.ptr)
        buf_printf(&b, " body=%.*s", STR_FMT(r->body));
    for (unsigned i = 0; i < r->field_count; i++)
        buf_printf(&b, " %.*s=%.*s", STR_FMT(r->fields[i].name), STR_FMT(r->fields[i].value));
    return b.mem;
}

static void replies_are_made(void **state)
{
    static const struct {
        enum rules_hook hook;
        const char *rule;
        enum rules_verdict verdict;
        const char *reply;
    } rows[] = {
        {RULES_HTTP_REQUEST, "return", RULES_REPLY, "200"},
        {RULES_HTTP_REQUEST, "return status 204", RULES_REPLY, "204"},
        {RULES_HTTP_REQUEST, "return status 503", RULES_REPLY, "503"},
        {RULES_HTTP_REQUEST, "return status 503 default-errorfiles", RULES_REPLY, "503 page"},
        {RULES_HTTP_REQUEST, "return content-type text/plain string \"B: hello %[path]\"",
         RULES_REPLY, "200 type=text/plain body=B: hello %[path]"},
        {RULES_HTTP_REQUEST, "return content-type text/plain lf-string \"p=%[path] %HM\"",
         RULES_REPLY, "200 type=text/plain body=p=/ GET"},
        {RULES_HTTP_REQUEST, "return status 418 content-type text/x file body.txt", RULES_REPLY,
         "418 type=text/x body=of %[path]"},
        {RULES_HTTP_REQUEST, "return content-type text/x lf-file body.txt hdr A b", RULES_REPLY,
         "200 type=text/x body=of / A=b"},
        {RULES_HTTP_REQUEST, "return errorfile raw.http", RULES_REPLY,
         "200 raw=HTTP/1.0 400 Bad\r\n\r\nx"},
        {RULES_HTTP_REQUEST, "return status 404 errorfiles errors-1", RULES_REPLY,
         "404 raw=HTTP/1.1 404 Nope\r\n\r\nnope"},
        {RULES_HTTP_REQUEST, "return hdr X-One %HM hdr X-Two \"\" hdr X-One b", RULES_REPLY,
         "200 X-One=GET X-One=b"},
        {RULES_HTTP_REQUEST, "return hdr X if if TRUE", RULES_REPLY, "200 X=if"},
        {RULES_HTTP_RESPONSE, "return status 200 content-type a/b string x", RULES_REPLY,
         "200 type=a/b body=x"},
        {RULES_HTTP_REQUEST, "deny", RULES_DENY, "403 page"},
        {RULES_HTTP_REQUEST, "deny deny_status 429", RULES_DENY, "429 page"},
        {RULES_HTTP_REQUEST, "deny status 404", RULES_DENY, "404"},
        {RULES_HTTP_REQUEST, "deny hdr X a", RULES_DENY, "403 X=a"},
        {RULES_HTTP_REQUEST, "deny deny_status 429 content-type t/p string x", RULES_DENY,
         "429 type=t/p body=x"},
        {RULES_HTTP_REQUEST, "deny default-errorfiles if TRUE", RULES_DENY, "403 page"},
        {RULES_HTTP_RESPONSE, "deny", RULES_DENY, "502 page"},
        {RULES_HTTP_RESPONSE, "deny deny_status 503 if TRUE", RULES_DENY, "503 page"},
        {RULES_HTTP_REQUEST, "tarpit", RULES_TARPIT, "500 page"},
        {RULES_HTTP_REQUEST, "tarpit deny_status 403 if TRUE", RULES_TARPIT, "403 page"},
        {RULES_HTTP_REQUEST, "tarpit status 200 content-type t/p string slow", RULES_TARPIT,
         "200 type=t/p body=slow"},
        {RULES_HTTP_REQUEST, "auth", RULES_REPLY, "401 page WWW-Authenticate=Basic realm=\"fe1\""},
        {RULES_HTTP_REQUEST, "auth realm \"my realm\" if TRUE", RULES_REPLY,
         "401 page WWW-Authenticate=Basic realm=\"my realm\""},
    };
    struct fixture *f = *state;
    struct rules_outcome out;
    const char *body = fixture_file(f, "body.txt", "of %[path]");
    const char *raw = fixture_file(f, "raw.http", "HTTP/1.0 400 Bad\r\n\r\nx");

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *rule = rows[i].rule, *at;

        if ((at = strstr(rule, "body.txt")))
            rule = arena_printf(&f->config, "%.*s%s%s", (int)(at - rule), rule, body,
                                at + strlen("body.txt"));
        if ((at = strstr(rule, "raw.http")))
            rule = arena_printf(&f->config, "%.*s%s%s", (int)(at - rule), rule, raw,
                                at + strlen("raw.http"));
        if (rows[i].hook == RULES_HTTP_RESPONSE)
            fixture_response(f, "HTTP/1.1 200 OK\r\n\r\n");
        assert_int_equal(fixture_run(f, rows[i].hook, rule, &out), rows[i].verdict);
        if (strcmp(shown(f, &out.reply), rows[i].reply) != 0)
            fail_msg("'%s': got '%s', expected '%s'", rule, shown(f, &out.reply), rows[i].reply);
    }
    remove(body);
    remove(raw);
}

static void proxies_are_asked_otherwise(void **state)
{
    struct fixture *f = *state;
    struct rules_outcome out;

    fixture_request(f, "GET http://h/ HTTP/1.1\r\nHost: h\r\n\r\n");
    fixture_run(f, RULES_HTTP_REQUEST, "auth", &out);
    assert_string_equal(shown(f, &out.reply), "407 page Proxy-Authenticate=Basic realm=\"fe1\"");
    fixture_request(f, "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n");
    fixture_run(f, RULES_HTTP_REQUEST, "auth", &out);
    assert_int_equal(out.reply.status, 401);
    f->c.proxy_name = NULL;
    fixture_run(f, RULES_HTTP_REQUEST, "auth", &out);
    assert_string_equal(shown(f, &out.reply), "401 page WWW-Authenticate=Basic realm=\"\"");
}

static void values_cannot_split_messages(void **state)
{
    struct fixture *f = *state;
    struct rules_outcome out;

    f->req_captures[0] = STR("a\r\nX: y");
    f->ctx.req_capture_count = 1;
    fixture_run(f, RULES_HTTP_REQUEST, "return hdr A %[bin(610d0a58)] hdr B %[capture.req.hdr(0)]",
                &out);
    for (unsigned i = 0; i < out.reply.field_count; i++) {
        assert_null(memchr(out.reply.fields[i].value.ptr, '\n', out.reply.fields[i].value.len));
        assert_null(memchr(out.reply.fields[i].value.ptr, '\r', out.reply.fields[i].value.len));
    }
    fixture_rule_fails(f, RULES_HTTP_REQUEST, "auth realm a\nb", "control characters");
}

static void mistakes_are_explained(void **state)
{
    static const struct expectation wrong[] = {
        {"return status", "a status code after 'status'"},
        {"return status 199", "between 200 and 599"},
        {"return status 600", "between 200 and 599"},
        {"return status ok", "found 'ok'"},
        {"return content-type", "a type after 'content-type'"},
        {"return string x", "needs a 'content-type'"},
        {"return lf-string x", "needs a 'content-type'"},
        {"return status 204 content-type t/p string x", "cannot have a body with status 204"},
        {"return status 304 content-type t/p lf-string x", "cannot have a body with status 304"},
        {"return content-type t/p string", "expects an argument after 'string'"},
        {"return content-type t/p string \"\"", "expects an argument after 'string'"},
        {"return content-type t/p string a lf-string b", "has both 'string' and 'lf-string'"},
        {"return errorfile /nonexistent", "cannot open file '/nonexistent'"},
        {"return content-type t/p file /nonexistent", "cannot open file"},
        {"return content-type t/p lf-file /nonexistent", "cannot open file"},
        {"return content-type t/p lf-string %nosuch", "nosuch"},
        {"return status 418 default-errorfiles", "no error page for status 418"},
        {"return status 418 errorfiles errors-1", "no error page for status 418"},
        {"return status 404 errorfiles errors-2", "section 'errors-2'"},
        {"return errorfiles", "expects an argument"},
        {"return hdr", "a name and a format after 'hdr'"},
        {"return hdr X", "a name and a format after 'hdr'"},
        {"return hdr \"a b\" x", "found 'a b'"},
        {"return hdr X %[nosuch]", "nosuch"},
        {"return body x", "found 'body'"},
        {"deny deny_status 418", "no error page for status 418"},
        {"deny deny_status", "a status code after"},
        {"tarpit deny_status 600", "between 200 and 599"},
        {"auth realm", "a realm after 'realm'"},
        {"auth for x", "found 'for'"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        fixture_rule_fails(f, RULES_HTTP_REQUEST, wrong[i].input, wrong[i].expected);
    f->c.find_errorfile = NULL;
    fixture_rule_fails(f, RULES_HTTP_REQUEST, "return status 404 errorfiles errors-1",
                       "found no error file");
}

static void what_has_no_effect_is_warned_about(void **state)
{
    static const struct expectation rows[] = {
        {"return content-type text/plain", "content-type 'text/plain' is ignored"},
        {"return default-errorfiles hdr A b", "'hdr' is ignored with 'default-errorfiles'"},
        {"return status 404 errorfiles errors-1 hdr A b", "'hdr' is ignored with 'errorfiles'"},
        {"return hdr Content-Length 5", "'Content-Length' is ignored"},
        {"return hdr transfer-encoding x hdr A b", "'transfer-encoding' is ignored"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *lines[] = {rows[i].input, NULL}, *warning;

        fixture_rules(f, RULES_HTTP_REQUEST, lines);
        warning = fixture_warning(f);
        assert_non_null(warning);
        assert_non_null(strstr(warning, rows[i].expected));
    }
}

static void large_files_are_refused(void **state)
{
    struct fixture *f = *state;
    char *text = arena_zalloc(&f->config, 1, 65538);
    const char *path;

    memset(text, 'x', 65537);
    path = fixture_file(f, "large.txt", text);
    fixture_rule_fails(f, RULES_HTTP_REQUEST,
                       arena_printf(&f->config, "return content-type t/p file %s", path),
                       "larger than 65536");
    remove(path);
}

static void evaluation_without_memory_fails(void **state)
{
    static const char *const rules[] = {"return content-type t/p lf-string %[path]",
                                        "return hdr A %[path]", "auth"};
    struct fixture *f = *state;
    struct rules_outcome out;
    struct arena none;

    arena_init(&none, 16, 1);
    f->ctx.arena = &none;
    for (size_t i = 0; i < COUNT_OF(rules); i++)
        assert_int_equal(fixture_run(f, RULES_HTTP_REQUEST, rules[i], &out), RULES_ERROR);
    arena_release(&none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(replies_are_made),
        TEST(proxies_are_asked_otherwise),
        TEST(values_cannot_split_messages),
        TEST(mistakes_are_explained),
        TEST(what_has_no_effect_is_warned_about),
        TEST(large_files_are_refused),
        TEST(evaluation_without_memory_fails),
    };

    return cmocka_run_group_tests_name("rules/reply", tests, NULL, NULL);
}
