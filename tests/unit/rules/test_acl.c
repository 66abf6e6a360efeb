#include "harness.h"

#include "rules/acl.h"

static void request(struct fixture *f)
{
    fixture_request(f, "GET /static/logo.PNG?x=1 HTTP/1.1\r\nHost: www.example.com\r\n"
                       "X-A: one, two\r\nX-A: three\r\nCookie: SID=abc; other=d\r\n\r\n");
}

struct row {
    const char *criterion;
    bool expected;
};

static void check(struct fixture *f, const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (fixture_cond(f, arena_printf(&f->config, "if { %s }", rows[i].criterion)) !=
            rows[i].expected)
            fail_msg("{ %s }: expected %s", rows[i].criterion,
                     rows[i].expected ? "a match" : "no match");
}

static void derived_criteria_match_by_their_suffix(void **state)
{
    static const struct row rows[] = {
        {"path /static/logo.PNG", true},
        {"path_beg /static", true},
        {"path_dir static", true},
        {"path_dom logo", true},
        {"path_end .png", false},
        {"path_end -i .png", true},
        {"path_len 16", true},
        {"path_reg ^/s.*G$", true},
        {"path_sub /logo.", true},
        {"url_beg /static", true},
        {"url_dir static", true},
        {"url_dom logo", true},
        {"url_end x=1", true},
        {"url_len gt 10", true},
        {"url_reg x=[0-9]", true},
        {"url_sub ?x", true},
        {"base_beg www.example.com/static", true},
        {"base_dir static", true},
        {"base_dom example.com", true},
        {"base_end .PNG", true},
        {"base_len 31", true},
        {"base_reg com/s", true},
        {"base_sub com/", true},
        {"hdr(host) www.example.com", true},
        {"hdr_beg(host) www.", true},
        {"hdr_dir(host) www.example.com", true},
        {"hdr_dom(host) example", true},
        {"hdr_end(host) .com", true},
        {"hdr_len(host) 15", true},
        {"hdr_reg(host) ^www", true},
        {"hdr_sub(host) exam", true},
        {"cook(SID) abc", true},
        {"cook_beg(SID) a", true},
        {"cook_dir(SID) abc", true},
        {"cook_dom(SID) abc", true},
        {"cook_end(SID) c", true},
        {"cook_len(SID) 3", true},
        {"cook_reg(SID) ^a", true},
        {"cook_sub(SID) b", true},
        {"urlp(x) 1", true},
        {"urlp_beg(x) 1", true},
        {"urlp_dir(x) 1", true},
        {"urlp_dom(x) 1", true},
        {"urlp_end(x) 1", true},
        {"urlp_len(x) 1", true},
        {"urlp_reg(x) ^1$", true},
        {"urlp_sub(x) 1", true},
        {"method GET", true},
        {"method POST HEAD", false},
        {"req_ver 1.1", true},
    };

    request(*state);
    check(*state, rows, COUNT_OF(rows));
}

static void response_criteria_match(void **state)
{
    static const struct row rows[] = {
        {"shdr(server) nginx", true},
        {"shdr_beg(server) ng", true},
        {"shdr_end(server) nx", true},
        {"shdr_dir(server) nginx", true},
        {"shdr_dom(server) nginx", true},
        {"shdr_len(server) 5", true},
        {"shdr_reg(server) ^n", true},
        {"shdr_sub(server) gi", true},
        {"scook(A) b", true},
        {"scook_beg(A) b", true},
        {"scook_end(A) b", true},
        {"scook_dir(A) b", true},
        {"scook_dom(A) b", true},
        {"scook_len(A) 1", true},
        {"scook_reg(A) b", true},
        {"scook_sub(A) b", true},
        {"resp_ver 1.1", true},
        {"status 200:299", true},
        {"status lt 200", false},
        /* In an ACL, "hdr" is the request's in any case. */
        {"hdr(server) nginx", false},
    };

    fixture_response(*state,
                     "HTTP/1.1 204 No Content\r\nServer: nginx\r\nSet-Cookie: A=b; path=/\r\n\r\n");
    check(*state, rows, COUNT_OF(rows));
}

static void the_type_decides_without_a_method(void **state)
{
    static const struct row rows[] = {
        {"always_true", true},
        {"always_false", false},
        {"int(5) 5", true},
        {"str(a) a", true},
        {"ipv4(10.0.0.1) 10.0.0.0/8", true},
        /* A converter's type counts, and a keyword's own method does not. */
        {"path_beg,length 16", true},
        {"path,lower /static/logo.png", true},
        {"path_end,lower .png", false},
    };

    request(*state);
    check(*state, rows, COUNT_OF(rows));
    fixture_cond_fails(*state, "if { bin(61) 61 }", "say with -m how to match it");
    fixture_cond_fails(*state, "if { var(txn.x) 5 }", "gives a value of type any");
    fixture_cond_fails(*state, "if { var(txn.x) -f file }", "say with -m");
}

static void methods_can_be_forced(void **state)
{
    static const struct row rows[] = {
        {"path -m beg /static", true},   {"path -m end PNG", true},
        {"path -m sub logo", true},      {"path -m dir static", true},
        {"path -m dom logo", true},      {"path -m reg ^/s", true},
        {"path -m len 16", true},        {"path -m str /x", false},
        {"path -m found", true},         {"req.hdr(no) -m found", false},
        {"int(5) -m bool", true},        {"int(0) -m bool", false},
        {"always_true -m int 1", true},  {"bin(6162) -m str ab", true},
        {"bin(6162) -m bin 6162", true}, {"str(10.1.2.3) -m ip 10.0.0.0/8", true},
        {"str(12) -m int gt 11", true},  {"hdr_beg(host) -m end .com", true},
    };

    request(*state);
    check(*state, rows, COUNT_OF(rows));
    fixture_cond_fails(*state, "if { path -m nope x }", "unknown matching method 'nope'");
    fixture_cond_fails(*state, "if { path -m bge x }", "did you mean 'beg'?");
    fixture_cond_fails(*state, "if { path -m }", "unknown matching method ''");
    fixture_cond_fails(*state, "if { path -m beg -m end x }", "more than one '-m'");
    fixture_cond_fails(*state, "if { src -m bool }",
                       "cannot be used with criterion 'src' of type address");
    fixture_cond_fails(*state, "if { always_true -m ip 1.2.3.4 }", "cannot be used");
}

static void flags_are_read(void **state)
{
    static const struct row rows[] = {
        {"str(ABC) -i abc", true}, {"str(ABC) -n -i abc", true}, {"str(ABC) -u 5 -i abc", true},
        {"str(-i) -- -i", true},   {"str(-i) x -i", true},       {"src -n 127.0.0.1", false},
        {"str(--) -- --", true},
    };

    request(*state);
    check(*state, rows, COUNT_OF(rows));
    fixture_cond_fails(*state, "if { str(a) -x a }", "'-x' is not an ACL flag");
    fixture_cond_fails(*state, "if { str(a) -u x a }", "'-u' expects an integer");
    fixture_cond_fails(*state, "if { str(a) -u }", "'-u' expects an integer");
    fixture_cond_fails(*state, "if { str(a) -f }", "'-f' expects a file name");
    fixture_cond_fails(*state, "if { src -n localhost }", "is not an IPv4");
}

static void files_give_patterns(void **state)
{
    struct fixture *f = *state;
    const char *list = fixture_file(f, "acl.lst", "# comment\na b\n\nc\n"),
               *map = fixture_file(f, "acl.map", "a x\nb y\n");

    assert_true(fixture_cond(f, arena_printf(&f->config, "if { str(\"a b\") -f %s }", list)));
    assert_true(fixture_cond(f, arena_printf(&f->config, "if { str(C) -i -f %s }", list)));
    assert_false(fixture_cond(f, arena_printf(&f->config, "if { str(a) -f %s }", list)));
    assert_true(fixture_cond(f, arena_printf(&f->config, "if { str(z) -f %s z }", list)));
    assert_true(fixture_cond(f, arena_printf(&f->config, "if { str(xc) -m end -f %s }", list)));
    /* With -M, the second column is not part of the pattern. */
    assert_true(fixture_cond(f, arena_printf(&f->config, "if { str(a) -M -f %s }", map)));
    assert_false(fixture_cond(f, arena_printf(&f->config, "if { str(\"a x\") -M -f %s }", map)));
    fixture_cond_fails(f, arena_printf(&f->config, "if { str(a) -f %s -m str }", list),
                       "'-m' must come before");
    fixture_cond_fails(f, "if { str(a) -f /nonexistent }", "/nonexistent");
    remove(list);
    remove(map);
}

static void operators_compare_numbers(void **state)
{
    static const struct row rows[] = {
        {"int(5) eq 5", true},      {"int(5) ge 5", true},   {"int(5) gt 5", false},
        {"int(5) le 5", true},      {"int(5) lt 5", false},  {"int(5) gt 7 4", true},
        {"int(5) eq 4 lt 6", true}, {"int(5) ge 1:6", true}, {"path_len ge 16", true},
        {"path_len gt 16", false},  {"int(-1) lt 0", true},
    };

    request(*state);
    check(*state, rows, COUNT_OF(rows));
    fixture_cond_fails(*state, "if { int(5) gt x }", "neither a number nor one of the operators");
    fixture_cond_fails(*state, "if { int(5) x }", "'x' is not a number");
}

/* req.ssl_ver is written major.minor. */
static void versions_compare_by_parts(void **state)
{
    static const struct row rows[] = {
        {"req.ssl_ver 3.3", true},    {"req.ssl_ver 3.0:3.1", false},
        {"req.ssl_ver gt 3.2", true}, {"req.ssl_ver lt 3.3", false},
        {"req.ssl_ver ge 3", true},   {"req.ssl_ver le 3.2", false},
        {"req_ssl_ver 3.3", true},
    };
    struct fixture *f = *state;

    fixture_item_int(f, RULES_REQ_SSL_VER, 3 << 16 | 3);
    check(f, rows, COUNT_OF(rows));
    fixture_cond_fails(f, "if { req.ssl_ver gt x.y }", "neither a number");
    fixture_cond_fails(f, "if { req.ssl_ver gt 3.70000 }", "neither a number");
}

static void every_value_of_a_field_is_tried(void **state)
{
    static const struct row rows[] = {
        {"hdr(x-a) one", true},   {"hdr(x-a) two", true},    {"hdr(x-a) three", true},
        {"hdr(x-a) four", false}, {"hdr(x-a,1) two", false}, {"hdr(x-a,-1) three", true},
        {"hdr_cnt(x-a) 3", true}, {"cook() d", true},
    };

    request(*state);
    check(*state, rows, COUNT_OF(rows));
}

static void several_acls_of_one_name_are_alternatives(void **state)
{
    struct fixture *f = *state;

    request(f);
    fixture_acl(f, "picture path_end .gif");
    assert_false(fixture_cond(f, "if picture"));
    fixture_acl(f, "picture path_end .PNG");
    assert_true(fixture_cond(f, "if picture"));
    /* Names are case-sensitive. */
    fixture_cond_fails(f, "if Picture", "no such ACL 'Picture', did you mean 'picture'?");
}

static int add(struct fixture *f, const char *line)
{
    char **argv;
    int argc = fixture_words(f, line, &argv);

    return rules_acls_add(&f->c, argc, argv);
}

static void bad_declarations_are_refused(void **state)
{
    static const struct expectation rows[] = {
        {"a/b path /", "character '/' is not permitted in ACL name 'a/b'"},
        {"a", "expects a name and a criterion"},
        {"or path /", "cannot be called 'or'"},
        {"a nope x", "unknown sample fetch 'nope'"},
        {"a hdr_bge(host) x", "unknown sample fetch 'hdr_bge'"},
        {"a path_beg(x) y", "does not take arguments"},
        {"a path_beg,nope y", "unknown converter 'nope'"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *text;

        assert_int_equal(add(f, rows[i].input), SP_EINVAL);
        text = fixture_error(f);
        if (!text || !strstr(text, rows[i].expected))
            fail_msg("'%s': got '%s'", rows[i].input, text ? text : "no error");
    }
}

static void a_criterion_without_patterns_is_warned_about(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(add(f, "a path"), 0);
    assert_non_null(strstr(fixture_warning(f), "has no pattern, so it never matches"));
    assert_false(fixture_cond(f, "if a"));
    assert_int_equal(add(f, "b path --"), 0);
    assert_null(fixture_warning(f));
    assert_int_equal(add(f, "c always_true"), 0);
    assert_null(fixture_warning(f));
    assert_int_equal(add(f, "d var(txn.x) -m found"), 0);
    assert_null(fixture_warning(f));
}

static void acls_can_name_each_other_but_not_themselves(void **state)
{
    struct fixture *f = *state;

    request(f);
    fixture_acl(f, "a always_true");
    fixture_acl(f, "b acl(a)");
    fixture_acl(f, "c acl(!b)");
    fixture_acl(f, "d acl(b,!c)");
    assert_true(fixture_cond(f, "if b"));
    assert_false(fixture_cond(f, "if c"));
    assert_true(fixture_cond(f, "if d"));
    assert_string_equal(fixture_field(f, "%[acl(b)]%[acl(c)]%[acl(d)]%[acl(TRUE)]"), "1011");
    assert_int_equal(add(f, "a acl(d)"), SP_EINVAL);
    assert_non_null(strstr(fixture_error(f), "ACL 'a' refers to itself"));
    fixture_expr_fails(f, "acl(nope)", "no such ACL 'nope'");
}

static void predefined_acls_exist(void **state)
{
    static const struct {
        const char *name, *head;
        bool expected;
    } rows[] = {
        {"TRUE", "GET / HTTP/1.1", true},
        {"FALSE", "GET / HTTP/1.1", false},
        {"HTTP", "GET / HTTP/1.1", true},
        {"HTTP_1.0", "GET / HTTP/1.0", true},
        {"HTTP_1.0", "GET / HTTP/1.1", false},
        {"HTTP_1.1", "GET / HTTP/1.1", true},
        {"HTTP_2.0", "GET / HTTP/2.0", true},
        {"HTTP_3.0", "GET / HTTP/2.0", false},
        {"HTTP_CONTENT", "POST / HTTP/1.1\r\nContent-Length: 5", true},
        {"HTTP_CONTENT", "POST / HTTP/1.1\r\nContent-Length: 0", false},
        {"HTTP_URL_ABS", "GET http://a/ HTTP/1.1", true},
        {"HTTP_URL_ABS", "GET / HTTP/1.1", false},
        {"HTTP_URL_SLASH", "GET / HTTP/1.1", true},
        {"HTTP_URL_SLASH", "OPTIONS * HTTP/1.1", false},
        {"HTTP_URL_STAR", "OPTIONS * HTTP/1.1", true},
        {"METH_CONNECT", "CONNECT a:443 HTTP/1.1", true},
        {"METH_DELETE", "DELETE / HTTP/1.1", true},
        {"METH_GET", "GET / HTTP/1.1", true},
        {"METH_GET", "HEAD / HTTP/1.1", true},
        {"METH_GET", "POST / HTTP/1.1", false},
        {"METH_HEAD", "HEAD / HTTP/1.1", true},
        {"METH_OPTIONS", "OPTIONS * HTTP/1.1", true},
        {"METH_POST", "POST / HTTP/1.1", true},
        {"METH_PUT", "PUT / HTTP/1.1", true},
        {"METH_TRACE", "TRACE / HTTP/1.1", true},
        {"LOCALHOST", "GET / HTTP/1.1", true},
        {"WAIT_END", "GET / HTTP/1.1", true},
        {"REQ_CONTENT", "GET / HTTP/1.1", true},
    };
    struct fixture *f = *state;
    bool seen[64] = {false};

    fixture_item_addr(f, RULES_SRC, "127.0.0.1");
    fixture_item_bin(f, RULES_PAYLOAD_REQ, "x", 1);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        fixture_request(f, arena_printf(&f->config, "%s\r\n\r\n", rows[i].head));
        if (fixture_cond(f, arena_printf(&f->config, "if %s", rows[i].name)) != rows[i].expected)
            fail_msg("%s on %s", rows[i].name, rows[i].head);
        for (size_t k = 0; k < acl_predefined_count; k++)
            seen[k] |= strcmp(acl_predefined_names[k], rows[i].name) == 0;
    }
    for (size_t k = 0; k < acl_predefined_count; k++)
        assert_true(seen[k]);
    fixture_cond_fails(f, "if RDP_COOKIE", "known from HAProxy but not supported");
    /* They can be replaced. */
    fixture_acl(f, "METH_PATCH method PATCH");
    fixture_request(f, "PATCH / HTTP/1.1\r\n\r\n");
    assert_true(fixture_cond(f, "if METH_PATCH"));
}

static void every_keyword_names_a_fetch(void **state)
{
    for (size_t i = 0; i < acl_keyword_count; i++) {
        assert_non_null(fetch_find(str_of(acl_keywords[i].fetch)));
        assert_ptr_equal(acl_keyword_find(str_of(acl_keywords[i].name)), &acl_keywords[i]);
    }
    assert_null(acl_keyword_find(STR("nope")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(derived_criteria_match_by_their_suffix),
        TEST(response_criteria_match),
        TEST(the_type_decides_without_a_method),
        TEST(methods_can_be_forced),
        TEST(flags_are_read),
        TEST(files_give_patterns),
        TEST(operators_compare_numbers),
        TEST(versions_compare_by_parts),
        TEST(every_value_of_a_field_is_tried),
        TEST(several_acls_of_one_name_are_alternatives),
        TEST(bad_declarations_are_refused),
        TEST(a_criterion_without_patterns_is_warned_about),
        TEST(acls_can_name_each_other_but_not_themselves),
        TEST(predefined_acls_exist),
        TEST(every_keyword_names_a_fetch),
    };

    return cmocka_run_group_tests_name("rules/acl", tests, NULL, NULL);
}
