#include "harness.h"

#include "rules/action.h"
#include "rules/registry.h"

static const struct rules_set *compile(struct fixture *f, enum rules_hook hook,
                                       const char *const *lines)
{
    return fixture_rules(f, hook, lines);
}

static void rules_run_in_order(void **state)
{
    static const char *const lines[] = {
        "set-header X-Order one",
        "add-header X-Order two if TRUE",
        "add-header X-Order three unless TRUE",
        "add-header X-Order four if { path / }",
        "add-header X-Order five if { path /other }",
        NULL,
    };
    struct fixture *f = *state;
    const struct rules_set *set = compile(f, RULES_HTTP_REQUEST, lines);
    struct rules_outcome out;

    assert_false(rules_set_is_empty(set));
    assert_int_equal(rules_set_count(set), 5);
    rules_outcome_init(&out);
    assert_int_equal(rules_set_run(set, &f->ctx, &out), RULES_CONTINUE);
    assert_string_equal(fixture_field_values(f, &f->req, "x-order"), "one|two|four");
}

static void a_verdict_ends_the_set(void **state)
{
    static const char *const lines[] = {"set-header X-A 1", "deny deny_status 429 if { path / }",
                                        "set-header X-B 1", NULL};
    struct fixture *f = *state;
    const struct rules_set *set;
    struct rules_outcome out;

    f->c.loc.line = 41;
    set = compile(f, RULES_HTTP_REQUEST, lines);
    rules_outcome_init(&out);
    assert_int_equal(rules_set_run(set, &f->ctx, &out), RULES_DENY);
    assert_int_equal(out.reply.status, 429);
    assert_string_equal(fixture_field_values(f, &f->req, "x-a"), "1");
    assert_string_equal(fixture_field_values(f, &f->req, "x-b"), "<none>");
    assert_int_equal(f->ctx.last_rule.line, 41);
    assert_string_equal(f->ctx.last_rule.file, "test.cfg");
    assert_string_equal(fixture_typed(f, "last_rule_line"), "int:41");
    assert_string_equal(fixture_typed(f, "last_rule_file"), "str:test.cfg");
}

static void sets_may_be_empty(void **state)
{
    struct fixture *f = *state;
    struct rules_set *set = rules_set_new(&f->config);
    struct rules_outcome out;

    rules_outcome_init(&out);
    assert_true(rules_set_is_empty(set));
    assert_true(rules_set_is_empty(NULL));
    assert_int_equal(rules_set_count(NULL), 0);
    assert_int_equal(rules_set_run(set, &f->ctx, &out), RULES_CONTINUE);
    assert_int_equal(rules_set_run(NULL, &f->ctx, &out), RULES_CONTINUE);
    set = rules_set_specialize(NULL, true, &f->config);
    assert_true(rules_set_is_empty(set));
}

static void mistakes_are_explained(void **state)
{
    static const struct {
        enum rules_hook hook;
        const char *line, *part;
    } rows[] = {
        {RULES_HTTP_REQUEST, "", "'http-request' expects an action"},
        {RULES_HTTP_REQUEST, "add-headr x y",
         "unknown 'http-request' action 'add-headr', did you mean 'add-header'"},
        {RULES_HTTP_REQUEST, "set-map(x) y z", "known from HAProxy but not supported"},
        {RULES_HTTP_REQUEST, "cache-use x", "known from HAProxy but not supported"},
        {RULES_HTTP_REQUEST, "set-status 200", "not available in 'http-request' rules"},
        {RULES_HTTP_RESPONSE, "set-path /x", "not available in 'http-response' rules"},
        {RULES_HTTP_AFTER_RESPONSE, "deny", "not available in 'http-after-response' rules"},
        {RULES_TCP_REQUEST_CONNECTION, "deny", "not available in 'tcp-request connection' rules"},
        {RULES_TCP_REQUEST_CONNECTION, "expect-proxy layer4", "known from HAProxy"},
        {RULES_TCP_RESPONSE_CONTENT, "close", "known from HAProxy"},
        {RULES_HTTP_REQUEST, "deny when TRUE", "expects 'if' or 'unless'"},
        {RULES_HTTP_REQUEST, "allow now",
         "expects 'if' or 'unless' followed by a condition, found 'now'"},
        {RULES_HTTP_REQUEST, "deny if", "condition"},
        {RULES_HTTP_REQUEST, "deny if nosuch", "nosuch"},
        {RULES_HTTP_REQUEST, "deny if { nosuch }", "nosuch"},
        {RULES_HTTP_REQUEST, "set-header x y z", "found 'z'"},
        {RULES_HTTP_REQUEST, "set-header x %[status]",
         "needs the response, which does not exist here"},
        {RULES_HTTP_REQUEST, "set-var(txn.a) res.hdr(x)", "needs the response"},
        {RULES_TCP_REQUEST_CONNECTION, "set-var(txn.a) req.hdr(x)",
         "needs the contents of a message"},
        {RULES_TCP_REQUEST_SESSION, "set-var(sess.a) req.len", "needs the contents of a message"},
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++)
        fixture_rule_fails(*state, rows[i].hook, rows[i].line, rows[i].part);
}

static void doubtful_conditions_are_warned_about(void **state)
{
    static const struct {
        enum rules_hook hook;
        const char *line, *part;
    } rows[] = {
        {RULES_HTTP_REQUEST, "deny if { status 200 }", "looks at the response"},
        {RULES_TCP_REQUEST_CONNECTION, "reject if { path / }",
         "looks at the contents of a message"},
        {RULES_TCP_REQUEST_SESSION, "reject if { req.len gt 0 }", NULL},
        {RULES_HTTP_RESPONSE, "set-header a b if { status 200 }", NULL},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *lines[] = {rows[i].line, NULL}, *warning;

        compile(f, rows[i].hook, lines);
        warning = fixture_warning(f);
        if (rows[i].part)
            assert_non_null(strstr(warning, rows[i].part));
    }
}

static void content_rules_wait_for_bytes(void **state)
{
    static const char *const lines[] = {
        "accept if { req.len ge 3 } { req.payload(0,3) -m str abc }", "reject if WAIT_END", NULL};
    struct fixture *f = *state;
    const struct rules_set *set = compile(f, RULES_TCP_REQUEST_CONTENT, lines);
    struct rules_outcome out;

    rules_outcome_init(&out);
    f->ctx.req = NULL;
    f->ctx.final_data = false;
    fixture_item_bin(f, RULES_PAYLOAD_REQ, "ab", 2);
    assert_int_equal(rules_set_run(set, &f->ctx, &out), RULES_NEED_MORE);
    fixture_item_bin(f, RULES_PAYLOAD_REQ, "abc", 3);
    assert_int_equal(rules_set_run(set, &f->ctx, &out), RULES_ALLOW);
    fixture_item_bin(f, RULES_PAYLOAD_REQ, "abx", 3);
    assert_int_equal(rules_set_run(set, &f->ctx, &out), RULES_NEED_MORE);
    f->ctx.final_data = true;
    assert_int_equal(rules_set_run(set, &f->ctx, &out), RULES_REJECT);
    assert_true(f->ctx.final_data);
}

static void the_message_depends_on_the_hook(void **state)
{
    static const struct {
        enum rules_hook hook;
        const char *request, *response;
    } rows[] = {
        {RULES_HTTP_REQUEST, "v", "<none>"},
        {RULES_HTTP_RESPONSE, "<none>", "v"},
        {RULES_HTTP_AFTER_RESPONSE, "<none>", "v"},
    };
    struct fixture *f = *state;
    struct rules_outcome out;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        fixture_request(f, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        fixture_response(f, "HTTP/1.1 200 OK\r\n\r\n");
        f->ctx.response_stage = false;
        fixture_run(f, rows[i].hook, "set-header X v", &out);
        assert_string_equal(fixture_field_values(f, &f->req, "x"), rows[i].request);
        assert_string_equal(fixture_field_values(f, &f->res, "x"), rows[i].response);
        assert_false(f->ctx.response_stage);
    }
}

static void rules_that_cannot_hold_vanish(void **state)
{
    static const char *const lines[] = {
        "set-header X-Forwarded-Proto https if { ssl_fc }",
        "set-header X-Forwarded-Proto http if !{ ssl_fc }",
        "set-header X-Never 1 if FALSE",
        "set-header X-Always 1 if TRUE",
        "set-header X-Sni %[ssl_fc_sni] if { ssl_fc_sni -m found }",
        "redirect scheme https if !{ ssl_fc } { path /a }",
        "deny if { ssl_fc } or { path /b }",
        "return status 200 content-type text/plain lf-string %[ssl_fc] hdr X %sslv if { path /c }",
        "redirect location /%[ssl_fc] set-cookie-fmt a=%[ssl_fc] if { path /d }",
        "set-var(txn.tls) ssl_fc,iif(yes,no)",
        "capture ssl_fc len 3",
        "deny",
        "set-header X-After 1",
        NULL,
    };
    struct fixture *f = *state;
    const struct rules_set *set = compile(f, RULES_HTTP_REQUEST, lines);
    struct rules_set *plain = rules_set_specialize(set, false, &f->config),
                     *tls = rules_set_specialize(set, true, &f->config);

    assert_int_equal(rules_set_count(set), 13);
    /* Gone: the first, X-Never, X-Sni and what follows "deny". */
    assert_int_equal(rules_set_count(plain), 9);
    /* Gone: the second, X-Never, the redirection to https, and all after a "deny" that holds always. */
    assert_int_equal(rules_set_count(tls), 4);
}

/* What is specialized decides and writes the same. */
static void specializing_changes_no_outcome(void **state)
{
    static const char *const lines[] = {
        "set-header X-Proto https if { ssl_fc }",
        "set-header X-Proto http unless { ssl_fc }",
        "set-header X-Tls \"%[ssl_fc]/%[ssl_fc_sni]/%sslv/%sslc/%[ssl_fc_cipher,lower]\"",
        "set-var(txn.a) ssl_fc_sni if { ssl_fc_sni -m found } or { path /e }",
        "set-header X-Var <%[var(txn.a)]>",
        "redirect scheme https code 301 if !{ ssl_fc } { path /a }",
        "deny deny_status 429 if { ssl_fc_has_sni } { path /b } or { path /b2 }",
        "return status 200 content-type text/plain lf-string \"tls=%[ssl_fc]\" hdr X %sslv if { path /c }",
        "redirect location /%[ssl_fc] set-cookie-fmt a=%[ssl_fc] if { path /d }",
        "tarpit if { ssl_fc_protocol TLSv1.3 } !{ path /f } !{ path /e }",
        NULL,
    };
    static const char *const paths[] = {"/a", "/b", "/b2", "/c", "/d", "/e", "/f", "/x"};
    struct fixture *f = *state;
    const struct rules_set *set = compile(f, RULES_HTTP_REQUEST, lines);

    for (unsigned i = 0; i < 2 * COUNT_OF(paths); i++) {
        bool tls = i & 1;
        const char *seen[2];

        f->ctx.tls = tls;
        for (unsigned k = 0; k < 2; k++) {
            const struct rules_set *run = k ? rules_set_specialize(set, tls, &f->config) : set;
            struct rules_outcome out;
            enum rules_verdict verdict;
            struct buf b = {arena_zalloc(&f->config, 1, 4096), 4095, 0, 0};

            fixture_request(
                f, arena_printf(&f->config, "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", paths[i / 2]));
            f->ctx.txn_vars.first = NULL;
            f->has_item[RULES_SSL_FC] = f->has_item[RULES_SSL_FC_SNI] =
                f->has_item[RULES_SSL_FC_CIPHER] = f->has_item[RULES_SSL_FC_PROTOCOL] =
                    f->has_item[RULES_SSL_FC_HAS_SNI] = false;
            if (tls) {
                fixture_item_bool(f, RULES_SSL_FC, true);
                fixture_item_bool(f, RULES_SSL_FC_HAS_SNI, true);
                fixture_item_str(f, RULES_SSL_FC_SNI, "sni");
                fixture_item_str(f, RULES_SSL_FC_CIPHER, "CIPHER");
                fixture_item_str(f, RULES_SSL_FC_PROTOCOL, "TLSv1.3");
            }
            rules_outcome_init(&out);
            verdict = rules_set_run(run, &f->ctx, &out);
            buf_printf(&b, "%d %u [%.*s]", verdict, out.reply.status, STR_FMT(out.reply.body));
            for (unsigned n = 0; n < out.reply.field_count; n++)
                buf_printf(&b, " %.*s=%.*s", STR_FMT(out.reply.fields[n].name),
                           STR_FMT(out.reply.fields[n].value));
            buf_printf(&b, " %s|%s|%s", fixture_field_values(f, &f->req, "x-proto"),
                       fixture_field_values(f, &f->req, "x-tls"),
                       fixture_field_values(f, &f->req, "x-var"));
            seen[k] = b.mem;
        }
        assert_string_equal(seen[0], seen[1]);
    }
}

static bool constant_rule(const struct rules_set *set, struct fixture *f)
{
    size_t before = f->request.used_bytes;
    struct rules_outcome out;

    rules_outcome_init(&out);
    rules_set_run(set, &f->ctx, &out);
    return f->request.used_bytes - before <= 64;
}

/* A header that is known beforehand costs no more than adding it. */
static void constants_cost_nothing(void **state)
{
    static const char *const lines[] = {"add-header X-Forwarded-Proto %[ssl_fc,iif(https,http)]",
                                        NULL};
    struct fixture *f = *state;
    const struct rules_set *set = compile(f, RULES_HTTP_REQUEST, lines);
    const struct rules_set *plain = rules_set_specialize(set, false, &f->config);

    assert_true(constant_rule(plain, f));
    assert_string_equal(fixture_field_values(f, &f->req, "x-forwarded-proto"), "http");
}

static void memory_exhaustion_is_reported(void **state)
{
    static const char *const lines[] = {
        "set-header X %[path,lower]-%HM if { path_beg /a /b } or !{ src 10.0.0.0/8 }",
        "return status 200 content-type text/plain lf-string \"a %[path]\" hdr X %[path] if TRUE",
        "redirect prefix http://x%[path] set-cookie a=b code 301 if { hdr(x) -m reg ^a }",
        "replace-path (.*) /x\\1",
        "set-var(txn.a) path,regsub(a,b)",
        "del-header ^x -m reg",
        "auth realm x",
        "set-timeout server 5s",
    };
    struct fixture *f = *state;
    unsigned failed = 0, passed = 0;

    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        for (size_t limit = 256; limit < 12000; limit += 128) {
            struct arena small;
            struct rules_compiler c = f->c;
            struct diag diag;
            struct rules_set *set;
            char **argv;
            int argc = fixture_words(f, lines[i], &argv), status;

            arena_init(&small, 256, limit);
            diag_init(&diag, &f->config);
            c.arena = &small;
            c.diag = &diag;
            c.registry = NULL;
            c.acls = rules_acls_new(&small);
            set = rules_set_new(&small);
            status =
                set && c.acls ? rules_set_add(set, &c, RULES_HTTP_REQUEST, argc, argv) : SP_ENOMEM;
            if (status == 0 && rules_set_specialize(set, false, &small)) {
                passed++;
            } else {
                failed++;
                assert_true(!set || !c.acls || status == 0 || diag.errors > 0);
            }
            rules_release_all(c.registry);
            arena_release(&small);
        }
    }
    assert_true(passed && failed);
    rules_release_all(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(rules_run_in_order),
        TEST(a_verdict_ends_the_set),
        TEST(sets_may_be_empty),
        TEST(mistakes_are_explained),
        TEST(doubtful_conditions_are_warned_about),
        TEST(content_rules_wait_for_bytes),
        TEST(the_message_depends_on_the_hook),
        TEST(rules_that_cannot_hold_vanish),
        TEST(specializing_changes_no_outcome),
        TEST(constants_cost_nothing),
        TEST(memory_exhaustion_is_reported),
    };

    return cmocka_run_group_tests_name("rules/set", tests, NULL, NULL);
}
