#include "harness.h"

#include "rules/format.h"

static void texts_and_expressions_are_put_together(void **state)
{
    static const struct expectation rows[] = {
        {"", ""},
        {"text", "text"},
        {"a%%b", "a%b"},
        {"100%%", "100%"},
        {"%[str(a)]b%[str(c)]", "abc"},
        {"[%[str(a)]]", "[a]"},
        {"%HM", "GET"},
        {"%HM/%HV", "GET/HTTP/1.1"},
        {"%(name)HM", "GET"},
        {"%(name:str)HM %(na-me_2)[int(5)]", "GET 5"},
        {"%[bool(true)] %[int(-3)] %[ipv6(::1)]", "1 -3 ::1"},
        {"%[str(\"]\")]", "]"},
        {"\t%[int(1)]\t", "\t1\t"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_string_equal(fixture_log(f, rows[i].input), rows[i].expected);
        assert_string_equal(fixture_field(f, rows[i].input), rows[i].expected);
    }
}

static void flags_apply_to_items(void **state)
{
    static const struct expectation rows[] = {
        {"%{+Q}[str(abc)]", "\"abc\""},
        {"%{Q}[str(abc)]", "\"abc\""},
        {"%{+Q}[str()]", "\"\""},
        {"%{+Q}[req.hdr(none)]", "\"\""},
        {"%[req.hdr(none)]", "-"},
        {"%{-M}[req.hdr(none)]|", "|"},
        {"%{-M,+M}[req.hdr(none)]|", "-|"},
        {"%{+E}[str(a\\\"b]c\\\\d)]", "a\\\"b\\]c\\\\d"},
        {"%{+Q,+E}[str(a\\\"b)]", "\"a\\\"b\""},
        {"%{+X}[int(31)]", "31"},
        {"%{+X}pid %pid", "00FF 255"},
        {"%{+Q}o %HM %HU", "\"GET\" \"/\""},
        {"%{+Q}o %HM %{-Q}HU %HV", "\"GET\" / \"HTTP/1.1\""},
        {"%{+Q}o%HM%{-Q}o%HM", "\"GET\"GET"},
        {"%{+Q,+X}o%pid", "00FF"},
    };
    struct fixture *f = *state;

    f->log.pid = 255;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_string_equal(fixture_log(f, rows[i].input), rows[i].expected);
}

static void blanks_are_merged_in_logs(void **state)
{
    static const struct {
        const char *format, *log, *field;
    } rows[] = {
        {"a  b   c", "a b c", "a  b   c"},
        {" a ", "a ", " a "},
        {"a %hs  %hs b", "a b", "a    b"},
        {"a %{-M}[req.hdr(none)] b", "a  b", "a  b"},
        {"a %[str(\" x \")] b", "a  x  b", "a  x  b"},
    };
    struct fixture *f = *state;

    f->ctx.res_capture_count = 0;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_string_equal(fixture_log(f, rows[i].format), rows[i].log);
        assert_string_equal(fixture_field(f, rows[i].format), rows[i].field);
    }
}

static void control_characters_never_get_out(void **state)
{
    struct fixture *f = *state;

    /* Fields escape them as in URLs, logs keep text and stop at NUL. */
    assert_string_equal(fixture_field(f, "%[bin(610d0a62)]|%[bin(00)]|%[bin(097f)]"),
                        "a%0D%0Ab||\t%7F");
    assert_string_equal(fixture_field(f, "%{+E}[bin(0d2261)]"), "%0D\\\"a");
    assert_string_equal(fixture_log(f, "%[bin(610062)]|"), "a|");
    /* What comes in the request line is encoded in logs. */
    f->log.uri = STR("/\"\x01\xff#{|}");
    assert_string_equal(fixture_log(f, "%HU"), "/#22#01#FF#23{|}");
    assert_string_equal(fixture_log(f, "%{+E}HU"), "/#22#01#FF#23{|}");
    f->log.uri = STR("/a]b\\");
    assert_string_equal(fixture_log(f, "%{+E}HU %HU"), "/a\\]b\\\\ /a]b\\");
    f->req_captures[0] = STR("a{|}\"\x7f");
    f->ctx.req_capture_count = 1;
    assert_string_equal(fixture_log(f, "%hr"), "{a#7B#7C#7D#22#7F}");
}

static void identifiers_are_encoded_and_merged(void **state)
{
    struct fixture *f = *state;
    struct rules_fmt *fmt = rules_fmt_compile_id(&f->c, "%[bin(0a)]  x %[req.hdr(none)]|");
    struct str s;

    assert_non_null(fmt);
    s = rules_fmt_str(fmt, &f->ctx);
    assert_true(str_eq(s, STR("%0A x |")));
}

static void mistakes_are_explained(void **state)
{
    static const struct expectation rows[] = {
        {"%nosuch", "unknown log format alias '%nosuch'"},
        {"%HX", "did you mean"},
        {"%OG", "known from HAProxy but not supported"},
        {"%", "a lone '%'"},
        {"a % b", "a lone '%'"},
        {"%5", "a lone '%'"},
        {"%{+Q}", "flags without an alias"},
        {"%{+Q} x", "flags without an alias"},
        {"%{+Q", "missing '}'"},
        {"%[str(a)", "]"},
        {"%[str(a),]", "converter"},
        {"%[nosuch]", "nosuch"},
        {"%[str(a", "parenthesis"},
        {"%(na me)HM", "invalid name"},
        {"%(name", "invalid name"},
        {"%{json}o", "not supported"},
        {"%{+cbor}o", "not supported"},
        {"%{+bin}HM", "not supported"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT_OF(rows); i++)
        fixture_fmt_fails(f, rows[i].input, rows[i].expected);
    /* What HAProxy overlooks is told. */
    assert_string_equal(fixture_log(f, "%{+Z}HM"), "GET");
    assert_non_null(strstr(fixture_warning(f), "flag 'Z' is ignored"));
    assert_string_equal(fixture_log(f, "a%/b"), "a/b");
    assert_non_null(strstr(fixture_warning(f), "a lone '%'"));
}

static void long_results_are_cut(void **state)
{
    struct fixture *f = *state;
    char room[8], *text = arena_zalloc(&f->config, 1, 20001);
    struct buf b = {room, sizeof room, 0, 0};
    struct rules_fmt *fmt = rules_fmt_compile(&f->c, "%HM %[str(abcdef)]", true), *huge;
    struct str s;

    f->ctx.log = &f->log;
    rules_fmt_eval(fmt, &f->ctx, &b);
    assert_true(str_eq(buf_str(&b), STR("GET abcd")));
    /* An escape is whole or absent. */
    f->log.uri = STR("aaaa\"b");
    fmt = rules_fmt_compile(&f->c, "%HM%HU", true);
    buf_clear(&b);
    rules_fmt_eval(fmt, &f->ctx, &b);
    assert_true(str_eq(buf_str(&b), STR("GETaaaab")));
    memset(text, 'x', 20000);
    huge = rules_fmt_compile(&f->c, text, true);
    assert_true(rules_fmt_str(huge, &f->ctx).len <= 20000);
    huge = rules_fmt_compile(&f->c, arena_printf(&f->config, "%%HM/%s", text), true);
    s = rules_fmt_str(huge, &f->ctx);
    assert_int_equal(s.len, 16384);
    /* Request lines are bounded by themselves. */
    f->log.uri = str_make(text, 20000);
    assert_int_equal(strlen(fixture_log(f, "%HU")), 1023);
    assert_int_equal(strlen(fixture_log(f, "%r")), 1023);
}

static void constants_are_known(void **state)
{
    struct fixture *f = *state;
    struct rules_fmt *fmt = rules_fmt_compile(&f->c, "a %[str(b),upper] %%", false);
    struct str s;

    assert_true(rules_fmt_is_constant(fmt, &s));
    assert_true(str_eq(s, STR("a B %")));
    assert_ptr_equal(rules_fmt_str(fmt, &f->ctx).ptr, s.ptr);
    assert_ptr_equal(rules_fmt_specialize(fmt, false, &f->config), fmt);
    assert_false(rules_fmt_needs_messages(fmt));
    fmt = rules_fmt_compile(&f->c, "a %[path]", false);
    assert_false(rules_fmt_is_constant(fmt, &s));
    assert_true(rules_fmt_needs_messages(fmt));
    assert_false(rules_fmt_needs_messages(rules_fmt_compile(&f->c, "%ci %ST", true)));
}

/* Formats specialized for a listener answer as the others, with less to do. */
static void specializing_changes_no_answer(void **state)
{
    static const struct {
        const char *format;
        const char *plain; /* the constant for listeners without TLS, or NULL */
    } rows[] = {
        {"%sslv", "-"},
        {"%{+Q}sslv/%{-M}sslc", "\"\"/"},
        {"%sslv %sslc", "- -"},
        {"a%[ssl_fc]b", "a0b"},
        {"%[ssl_fc,iif(https,http)]://", "http://"},
        {"%[ssl_fc_sni]%[ssl_fc_cipher]", "--"},
        {"%HM %sslv%[ssl_fc]%[str(x)]", NULL},
        {"%[ssl_fc_sni,set-var(txn.x)]", "-"},
        {"%ft", NULL},
        {"%[src]", NULL},
        {"%[ssl_bc]", NULL},
    };
    struct fixture *f = *state;

    fixture_item_addr(f, RULES_SRC, "10.0.0.1");
    f->ctx.log = &f->log;
    for (int tls = 0; tls < 2; tls++) {
        f->ctx.tls = tls;
        if (tls) {
            fixture_item_bool(f, RULES_SSL_FC, true);
            fixture_item_str(f, RULES_SSL_FC_PROTOCOL, "TLSv1.3");
            fixture_item_str(f, RULES_SSL_FC_CIPHER, "TLS_AES_128_GCM_SHA256");
            fixture_item_str(f, RULES_SSL_FC_SNI, "sni.example");
        }
        for (size_t i = 0; i < COUNT_OF(rows); i++) {
            struct rules_fmt *whole = rules_fmt_compile(&f->c, rows[i].format, true);
            struct rules_fmt *special = rules_fmt_specialize(whole, tls, &f->config);
            struct str s;

            assert_non_null(special);
            assert_true(str_eq(rules_fmt_str(whole, &f->ctx), rules_fmt_str(special, &f->ctx)));
            assert_false(rules_fmt_is_constant(whole, &s));
            if (!tls && rows[i].plain) {
                assert_true(rules_fmt_is_constant(special, &s));
                assert_true(str_eq(s, str_of(rows[i].plain)));
            } else {
                /* On a TLS listener only ssl_fc itself is known. */
                bool known = tls && (strstr(rows[i].format, "ssl_fc,") ||
                                     strstr(rows[i].format, "ssl_fc]b"));

                if (rules_fmt_is_constant(special, &s) != known)
                    fail_msg("'%s' is constant: %d expected", rows[i].format, known);
            }
        }
    }
}

static void runs_of_constants_are_joined(void **state)
{
    struct fixture *f = *state;
    struct rules_fmt *whole = rules_fmt_compile(&f->c, "a%[str(b)]%%%sslv%HM", false), *special;

    assert_int_equal(whole->count, 3);
    special = rules_fmt_specialize(whole, false, &f->config);
    assert_int_equal(special->count, 2);
    assert_true(str_eq(special->parts[0].text, STR("ab%")));
}

static void memory_may_run_out(void **state)
{
    static const char format[] = "a %HM b %[path,lower] c %{+Q}[str(x)] %% %[ssl_fc] %sslv";
    struct fixture *f = *state;
    struct rules_fmt *whole = rules_fmt_compile(&f->c, format, true);
    unsigned failed = 0, passed = 0;
    struct arena none;

    for (size_t limit = 256; limit < 16384; limit += 256) {
        struct arena small;
        struct rules_compiler c = f->c;
        struct diag diag;
        struct rules_fmt *fmt;

        arena_init(&small, 256, limit);
        diag_init(&diag, &f->config);
        c.arena = &small;
        c.diag = &diag;
        fmt = rules_fmt_compile(&c, format, true);
        if (fmt && rules_fmt_specialize(fmt, false, &small))
            passed++;
        else
            failed++;
        assert_true(fmt || diag.errors);
        arena_release(&small);
    }
    assert_true(passed && failed);
    f->ctx.log = &f->log;
    /* Without memory for the result there is none. */
    arena_init(&none, 16, 1);
    f->ctx.arena = &none;
    assert_null(rules_fmt_str(whole, &f->ctx).ptr);
    arena_release(&none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(texts_and_expressions_are_put_together),
        TEST(flags_apply_to_items),
        TEST(blanks_are_merged_in_logs),
        TEST(control_characters_never_get_out),
        TEST(identifiers_are_encoded_and_merged),
        TEST(mistakes_are_explained),
        TEST(long_results_are_cut),
        TEST(constants_are_known),
        TEST(specializing_changes_no_answer),
        TEST(runs_of_constants_are_joined),
        TEST(memory_may_run_out),
    };

    return cmocka_run_group_tests_name("rules/logformat", tests, NULL, NULL);
}
