/*
 * Health checks without sockets: scripts, requests, matching, health and log lines.
 */
#include "check_test.h"

#define HEAD "defaults\n mode http\n timeout connect 1s\n timeout client 1s\n timeout server 1s\n"

static struct check *only_check(const struct fixture *f)
{
    struct check *c = fixture_server(f, "b", "s")->check;

    assert_non_null(c);
    arena_init(&c->scratch, 4096, 0); /* as a run would */
    return c;
}

/* --- scripts ------------------------------------------------------------------------- */

static void test_refused_lines(void **state)
{
    static const struct {
        const char *lines, *error;
    } rows[] = {
        {"option httpchk\n http-check foo", "'http-check foo': 'foo' is unknown"},
        {"option httpchk\n http-check exspect status 200", "did you mean 'expect'?"},
        {"option httpchk\n http-check set-var(check.x) int(1)",
         "variables of checks are known to HAProxy and not supported"},
        {"option httpchk\n http-check expect", "a pattern is missing"},
        {"option httpchk\n http-check expect status", "'status' expects an argument"},
        {"option httpchk\n http-check expect status abc", "'abc' is not a status"},
        {"option httpchk\n http-check expect status 300-200", "'300-200' is not a status"},
        {"option httpchk\n http-check expect status 200 string a", "only one pattern is allowed"},
        {"option httpchk\n http-check expect binary 00", "'binary' is unknown"},
        {"option httpchk\n http-check expect rstring (", "'(' is not a regular expression"},
        {"option httpchk\n http-check expect hdr foo", "'hdr' expects 'name' or 'name-lf'"},
        {"option httpchk\n http-check expect hdr name -m foo x",
         "'-m' expects str, beg, end, sub or reg, not 'foo'"},
        {"option httpchk\n http-check expect hdr name-lf -m reg x",
         "does not take regular expressions"},
        {"option httpchk\n http-check expect min-recv x string a",
         "'min-recv' expects a number of bytes"},
        {"option httpchk\n http-check expect ok-status L7STS string a",
         "'ok-status' expects one of L7OK L7OKC L6OK L4OK, not 'L7STS'"},
        {"option httpchk\n http-check send meth G@T", "'G@T' is not an HTTP method"},
        {"option httpchk\n http-check send uri /a\\ b", "'/a b' is not a request target"},
        {"option httpchk\n http-check send ver HTTP/3.0", "'HTTP/3.0' is not supported"},
        {"option httpchk\n http-check send hdr a@b c", "'a@b' is not the name of a header field"},
        {"option httpchk\n http-check send hdr a", "'a' expects an argument"},
        {"option httpchk\n http-check connect port 70000", "'70000' is not a port"},
        {"option httpchk\n http-check connect via-socks4",
         "'via-socks4' is known to HAProxy and not supported"},
        {"option httpchk\n http-check connect proto h2",
         "'proto h2' is known to HAProxy and not supported"},
        {"option httpchk\n http-check expect status 200\n http-check connect",
         "the first rule must be one"},
        {"option httpchk\n http-check send-state x", "unexpected argument 'x'"},
        {"option tcp-check\n tcp-check send", "'send' expects an argument"},
        {"option tcp-check\n tcp-check send-binary 4",
         "expected an even number of hexadecimal digits"},
        {"option tcp-check\n tcp-check send-octets 41",
         "expected send, send-lf, send-binary or send-binary-lf"},
        {"option tcp-check\n tcp-check send a b", "'b' is unknown; expected comment"},
        {"option tcp-check\n tcp-check expect status 200", "'status' is unknown"},
        {"option tcp-check\n tcp-check expect string-lf %[nofetch]", "nofetch"},
        {"option tcp-check\n tcp-check connect addr 1.2.3.4:1-5",
         "'1.2.3.4:1-5' is not an address to connect to"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fixture *f;

        assert_int_equal(fixture_setup(state), 0);
        f = *state;
        fixture_try(f, arena_printf(&f->arena, HEAD "backend b\n %s\n server s 127.0.0.1:1 check\n",
                                    rows[i].lines));
        if (!strstr(fixture_first_error(f), rows[i].error))
            fail_msg("%s: \"%s\" does not hold \"%s\"", rows[i].lines, fixture_first_error(f),
                     rows[i].error);
        fixture_teardown(state);
    }
}

static void test_refused_servers(void **state)
{
    static const struct {
        const char *servers, *error;
    } rows[] = {
        {"server s 127.0.0.1 check", "there is no port to check"},
        {"server s 127.0.0.1:1 check check-proto h2",
         "'check-proto h2' is known to HAProxy and not supported"},
        {"server s 127.0.0.1:1 track t\n server t 127.0.0.1:1", "has no 'check' of its own"},
        {"server s 127.0.0.1:1 track t\n server t 127.0.0.1:1 track s",
         "it tracks itself in the end"},
        {"server s 127.0.0.1:1 check track t\n server t 127.0.0.1:1 check",
         "'track' and 'check' exclude each other"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fixture *f;

        assert_int_equal(fixture_setup(state), 0);
        f = *state;
        fixture_try(f, arena_printf(&f->arena, HEAD "backend b\n %s\n", rows[i].servers));
        if (!strstr(fixture_first_error(f), rows[i].error))
            fail_msg("%s: \"%s\" does not hold \"%s\"", rows[i].servers, fixture_first_error(f),
                     rows[i].error);
        fixture_teardown(state);
    }
}

static void test_implied_steps(void **state)
{
    struct fixture *f = *state;
    const struct check_script *script;

    fixture_build(
        f, HEAD
        "backend b\n server s 127.0.0.1:1 check\n"
        "backend h\n option httpchk\n server s 127.0.0.1:1 check\n"
        "backend t\n option tcp-check\n tcp-check comment one\n tcp-check expect string a\n"
        " server s 127.0.0.1:1 check\n"
        "backend x\n option ssl-hello-chk\n server s 127.0.0.1:1 check\n"
        "backend c\n option httpchk\n http-check connect port 2\n http-check expect status 200\n"
        " http-check connect port 3\n http-check send uri /b\n server s 127.0.0.1:1 check\n");
    script = only_check(f)->script;
    assert_int_equal(script->count, 1);
    assert_true(script->steps[0].u.connect.use_server);

    script = fixture_server(f, "h", "s")->check->script;
    assert_int_equal(script->count, 3);
    assert_int_equal(script->steps[1].kind, CHECK_STEP_SEND);
    assert_int_equal(script->steps[2].u.expect.match, CHECK_MATCH_STATUS);
    assert_int_equal(script->steps[2].number, 2);

    script = fixture_server(f, "t", "s")->check->script;
    assert_int_equal(script->count, 2);
    assert_string_equal(script->steps[1].comment, "one");
    assert_int_equal(script->steps[1].number, 2);

    script = fixture_server(f, "x", "s")->check->script;
    assert_int_equal(script->count, 3);
    assert_memory_equal(script->steps[1].u.send.data.ptr, "\x16\x03\x00\x00", 4);
    assert_int_equal((unsigned char)script->steps[1].u.send.data.ptr[4],
                     script->steps[1].u.send.data.len - 5);
    assert_int_equal((unsigned char)script->steps[1].u.send.data.ptr[8],
                     script->steps[1].u.send.data.len - 9);

    script = fixture_server(f, "c", "s")->check->script;
    assert_int_equal(script->count, 6);
    assert_int_equal(script->steps[1].kind, CHECK_STEP_SEND);
    assert_int_equal(script->steps[5].kind, CHECK_STEP_EXPECT);
    assert_false(script->steps[0].u.connect.use_server);
    assert_int_equal(script->steps[3].u.connect.port, 3);
}

static void test_targets(void **state)
{
    static const struct {
        const char *options, *target;
        bool send_proxy;
    } rows[] = {
        {"send-proxy", "10.0.0.1:80", true},
        {"port 81 send-proxy", "10.0.0.1:81", false},
        {"port 81 send-proxy check-send-proxy", "10.0.0.1:81", true},
        {"addr 10.0.0.2", "10.0.0.2:80", false},
        {"addr 10.0.0.2:82", "10.0.0.2:82", false},
        {"addr 10.0.0.2:82 port 83", "10.0.0.2:83", false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[ADDR_TEXT_BYTES];
        struct fixture *f;

        assert_int_equal(fixture_setup(state), 0);
        f = *state;
        fixture_build(f, arena_printf(&f->arena, HEAD "backend b\n server s 10.0.0.1:80 check %s\n",
                                      rows[i].options));
        addr_text(&only_check(f)->address, text);
        assert_string_equal(text, rows[i].target);
        assert_int_equal(only_check(f)->send_proxy, rows[i].send_proxy);
        fixture_teardown(state);
    }
}

static void test_use_tls(void **state)
{
    struct cfg_line line = {
        .kind = CFG_LINE_TCP_CHECK, .argc = 2, .argv = (char *[]){"connect", "ssl", NULL}};
    struct cfg_proxy cfg = {.lines = &line, .check_type = CFG_CHECK_TCP_SCRIPT};

    (void)state;
    assert_true(checks_use_tls(&cfg));
    cfg.check_type = CFG_CHECK_HTTP;
    assert_false(checks_use_tls(&cfg));
    cfg.check_type = CFG_CHECK_TCP_SCRIPT;
    line.argv = (char *[]){"send", "ssl", NULL};
    assert_false(checks_use_tls(&cfg));
}

/* --- requests --------------------------------------------------------------------------- */

static void test_requests(void **state)
{
    static const struct {
        const char *lines, *request;
    } rows[] = {
        {"option httpchk", "OPTIONS / HTTP/1.0\r\n\r\n"},
        {"option httpchk /x", "OPTIONS /x HTTP/1.0\r\n\r\n"},
        {"option httpchk GET /x HTTP/1.1", "GET /x HTTP/1.1\r\nconnection: close\r\n\r\n"},
        {"option httpchk GET /x HTTP/1.1 www",
         "GET /x HTTP/1.1\r\nHost: www\r\nconnection: close\r\n\r\n"},
        {"option httpchk GET /x HTTP/1.1\\r\\nHost:\\ foo\\r\\nX-Y:\\ z",
         "GET /x HTTP/1.1\r\nHost: foo\r\nX-Y: z\r\nconnection: close\r\n\r\n"},
        {"option httpchk OPTIONS * HTTP/1.1\n http-check send hdr Host www",
         "OPTIONS * HTTP/1.1\r\nHost: www\r\nconnection: close\r\n\r\n"},
        {"option httpchk GET /x HTTP/1.1 www\n http-check send hdr a b body zz",
         "GET /x HTTP/1.1\r\na: b\r\ncontent-length: 2\r\nconnection: close\r\n\r\nzz"},
        {"option httpchk GET /x HTTP/1.1\n http-check send meth PUT uri /y hdr connection upgrade",
         "PUT /y HTTP/1.1\r\nconnection: upgrade\r\ncontent-length: 0\r\n\r\n"},
        {"option httpchk\n http-check send meth POST uri-lf /%[be_name]/%[srv_name] hdr X %[srv_id] "
         "hdr Y %[var(txn.none)] hdr content-length 9 hdr transfer-encoding chunked body-lf <%[be_name]>",
         "POST /b/s HTTP/1.0\r\nX: 1\r\ncontent-length: 3\r\n\r\n<b>"},
        {"option httpchk\n http-check send uri-lf %[var(txn.none)]", "OPTIONS / HTTP/1.0\r\n\r\n"},
        {"option httpchk\n http-check send uri-lf /a%[str(' ')]b",
         "OPTIONS /a%20b HTTP/1.0\r\n\r\n"},
        {"option httpchk\n http-check send meth GET uri http://a/x?y=1 ver HTTP/1.1 hdr Host b",
         "GET http://b/x?y=1 HTTP/1.1\r\nHost: b\r\nconnection: close\r\n\r\n"},
        {"option httpchk\n http-check send-state",
         "OPTIONS / HTTP/1.0\r\nx-haproxy-server-state: UP 1/3; address=10.0.0.1; port=80; name=b/s; node=here; "
         "weight=5/5; scur=0/0; qcur=0\r\n\r\n"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[2048], shown[1024];
        struct buf out = {.mem = text, .size = sizeof text},
                   status = {.mem = shown, .size = sizeof shown};
        struct fixture *f;
        struct rules_ctx ctx;
        struct check *c;

        assert_int_equal(fixture_setup(state), 0);
        f = *state;
        fixture_build(f, arena_printf(&f->arena,
                                      "global\n node here\n" HEAD "backend b\n %s\n"
                                      " server s 10.0.0.1:80 check weight 5\n",
                                      rows[i].lines));
        c = only_check(f);
        ctx = check_rules_ctx(c);
        if (c->script->send_state)
            check_http_state(c, &status);
        assert_int_equal(
            check_http_request(&c->script->steps[1].u.send, &ctx, buf_str(&status), &out), 0);
        if (!str_eq(buf_str(&out), str_of(rows[i].request)))
            fail_msg("%s: \"%.*s\"", rows[i].lines, STR_FMT(buf_str(&out)));
        for (uint32_t room = 0; room < buf_len(&out); room += 7) {
            struct buf small = {.mem = shown, .size = room};

            assert_int_equal(
                check_http_request(&c->script->steps[1].u.send, &ctx, STR_NULL, &small),
                c->script->send_state && room > 22 ? 0 : SP_ETOOBIG);
        }
        arena_release(&c->scratch);
        fixture_teardown(state);
    }
}

/* --- matching ------------------------------------------------------------------------------- */

static const struct check_expect *last_expect(const struct check *c)
{
    const struct check_step *step = &c->script->steps[c->script->count - 1];

    assert_int_equal(step->kind, CHECK_STEP_EXPECT);
    return &step->u.expect;
}

static void test_match_bytes(void **state)
{
    static const struct {
        const char *expect, *data;
        bool last;
        enum check_answer answer;
    } rows[] = {
        {"string hello", "say hello", false, CHECK_MATCHES},
        {"string hello", "say hel", false, CHECK_NEEDS_MORE},
        {"string hello", "say hel", true, CHECK_MATCHES_NOT},
        {"string hello", "", true, CHECK_MATCHES_NOT},
        {"! string hello", "say hello", false, CHECK_MATCHES_NOT},
        {"! string hello", "say bye", false, CHECK_NEEDS_MORE},
        {"! string hello", "say bye", true, CHECK_MATCHES},
        {"!string hello", "", true, CHECK_MATCHES},
        {"min-recv 0 string hello", "hel", false, CHECK_MATCHES_NOT},
        {"min-recv 3 string hello", "hel", false, CHECK_NEEDS_MORE},
        {"min-recv 3 string hello", "helio", false, CHECK_MATCHES_NOT},
        {"min-recv 9 string hello", "hello", false, CHECK_NEEDS_MORE},
        {"min-recv 9 string hello", "hello", true, CHECK_MATCHES},
        {"min-recv -1 string hello", "hellx", false, CHECK_NEEDS_MORE},
        {"rstring ^[0-9]{3}", "250 ok", false, CHECK_MATCHES},
        {"rstring ^[0-9]{3}", "25", false, CHECK_NEEDS_MORE},
        {"min-recv 5 ! rstring ^error", "valid", false, CHECK_MATCHES},
        {"min-recv 5 ! rstring ^error", "error", false, CHECK_MATCHES_NOT},
        {"min-recv 5 ! rstring ^error", "vali", false, CHECK_NEEDS_MORE},
        {"binary 68656C6c", "say hello", false, CHECK_MATCHES},
        {"binary 0000", "say hello", true, CHECK_MATCHES_NOT},
        {"rbinary 68.56C", "hello", false, CHECK_MATCHES},
        {"rbinary ^6865", "xhello", true, CHECK_MATCHES_NOT},
        {"string-lf %[be_name]-%[srv_name]", "<b-s>", false, CHECK_MATCHES},
        {"string-lf %[be_name]-%[srv_name]", "<b-t>", true, CHECK_MATCHES_NOT},
        {"string-lf %[var(txn.none)]", "x", false, CHECK_EMPTY_PATTERN},
        {"binary-lf 6%[srv_id]", "a", false, CHECK_MATCHES},
        {"binary-lf 6%[be_name]z", "a", false, CHECK_EMPTY_PATTERN},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        enum check_answer answer;
        struct rules_ctx ctx;
        struct fixture *f;
        struct check *c;

        assert_int_equal(fixture_setup(state), 0);
        f = *state;
        fixture_build(f, arena_printf(&f->arena,
                                      HEAD "backend b\n option tcp-check\n tcp-check expect %s\n"
                                           " server s 127.0.0.1:1 check\n",
                                      rows[i].expect));
        c = only_check(f);
        ctx = check_rules_ctx(c);
        answer = check_match_data(last_expect(c), &ctx, str_of(rows[i].data), rows[i].last);
        if (answer != rows[i].answer)
            fail_msg("expect %s, \"%s\": %d", rows[i].expect, rows[i].data, (int)answer);
        arena_release(&c->scratch);
        fixture_teardown(state);
    }
}

static void test_match_tls_hello(void **state)
{
    struct check_expect e = {.match = CHECK_MATCH_TLS_HELLO, .min_recv = -1};
    struct rules_ctx ctx = {0};

    (void)state;
    assert_int_equal(check_match_data(&e, &ctx, STR("\x16"), false), CHECK_NEEDS_MORE);
    assert_int_equal(check_match_data(&e, &ctx, STR("\x16\x03\x03"), false), CHECK_MATCHES);
    assert_int_equal(check_match_data(&e, &ctx, STR("\x15\x03\x00"), false), CHECK_MATCHES);
    assert_int_equal(check_match_data(&e, &ctx, STR("HTTP"), false), CHECK_MATCHES_NOT);
    assert_int_equal(check_match_data(&e, &ctx, STR(""), true), CHECK_MATCHES_NOT);
}

static void test_match_head(void **state)
{
    static const struct {
        const char *expect;
        enum check_answer answer;
    } rows[] = {
        {"status 202", CHECK_MATCHES},
        {"status 200,201-203", CHECK_MATCHES},
        {"status 200,203-299", CHECK_MATCHES_NOT},
        {"! status 202", CHECK_MATCHES_NOT},
        {"rstatus ^2", CHECK_MATCHES},
        {"rstatus ^[45]", CHECK_MATCHES_NOT},
        {"hdr name x-test1", CHECK_MATCHES},
        {"hdr name -m str X-Test2", CHECK_MATCHES},
        {"hdr name -m beg X-Begin-", CHECK_MATCHES},
        {"hdr name -m end -End", CHECK_MATCHES},
        {"hdr name -m sub -Sub-", CHECK_MATCHES},
        {"hdr name -m reg ^[a-z]+-Reg-[a-z]+[0-9]$", CHECK_MATCHES},
        {"hdr name x-none", CHECK_MATCHES_NOT},
        {"! hdr name x-none", CHECK_MATCHES},
        {"hdr name-lf -m str %[res.fhdr(x-hdr-name)]", CHECK_MATCHES},
        {"hdr name-lf -m str %[res.fhdr(x-none)]", CHECK_EMPTY_PATTERN},
        {"hdr name x-test1 value true", CHECK_MATCHES},
        {"hdr name x-test1 value \"true, next value\"", CHECK_MATCHES_NOT},
        {"fhdr name x-test1 value \"true, next value\"", CHECK_MATCHES},
        {"hdr name x-test1 value TRUE", CHECK_MATCHES_NOT},
        {"hdr name -m beg x-test value -m beg begin-", CHECK_MATCHES},
        {"hdr name -m beg x-test value -m end -end", CHECK_MATCHES},
        {"hdr name -m beg x-test value -m sub -sub-", CHECK_MATCHES},
        {"hdr name -m beg x-test value -m reg ^value-reg-[A-Z0-9]+$", CHECK_MATCHES},
        {"fhdr name -m beg x- value-lf -m str %[res.fhdr(x-hdr-name)]", CHECK_MATCHES},
    };
    static const struct str fields[][2] = {
        {STR("X-Test1"), STR("true, next value")},
        {STR("x-test2"), STR("true, begin-value, value-end, value-sub-string, value-reg-123ABC")},
        {STR("x-begin-test"), STR("1")},
        {STR("x-test-end"), STR("1")},
        {STR("x-sub-test"), STR("1")},
        {STR("x-reg-test1"), STR("1")},
        {STR("x-hdr-name"), STR("x-test1")},
        {STR("x-copy"), STR("x-test1")},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        enum check_answer answer;
        struct rules_ctx ctx;
        struct fixture *f;
        struct check *c;

        assert_int_equal(fixture_setup(state), 0);
        f = *state;
        fixture_build(f, arena_printf(&f->arena,
                                      HEAD "backend b\n option httpchk\n http-check expect %s\n"
                                           " server s 127.0.0.1:1 check\n",
                                      rows[i].expect));
        c = only_check(f);
        http_msg_init(&c->response, &f->arena);
        c->response.flags = HTTP_MSG_RESPONSE;
        c->response.status = 202;
        for (size_t k = 0; k < sizeof fields / sizeof *fields; k++)
            assert_int_equal(http_msg_add(&c->response, fields[k][0], fields[k][1]), 0);
        c->has_response = true;
        ctx = check_rules_ctx(c);
        assert_true(check_match_is_head(last_expect(c)->match));
        answer = check_match_head(last_expect(c), &ctx, &c->response);
        if (answer != rows[i].answer)
            fail_msg("expect %s: %d", rows[i].expect, (int)answer);
        arena_release(&c->scratch);
        fixture_teardown(state);
    }
}

/* --- texts ------------------------------------------------------------------------------------ */

static void test_reasons(void **state)
{
    struct check_outcome o = {.code = CHECK_L7STS, .status_code = 500, .duration_ms = 3};
    char text[400];

    (void)state;
    check_info_set(o.info, STR("a \"b\"\r\n\xff"));
    check_reason(&o, text, sizeof text);
    assert_string_equal(
        text, "reason: Layer7 wrong status, code: 500, info: \"a <22>b<22><0D><0A><FF>\", "
              "check duration: 3ms");
    o = (struct check_outcome){.code = CHECK_L7RSP, .status_code = 200, .duration_ms = -1};
    check_reason(&o, text, sizeof text);
    assert_string_equal(text, "reason: Layer7 invalid response");
    memset(text, 'x', sizeof text);
    check_info_set(o.info, str_make(text, sizeof text));
    assert_true(strlen(o.info) < CHECK_INFO_BYTES);
}

static void test_shown(void **state)
{
    struct fixture *f = *state;
    struct check_outcome o = {.code = CHECK_L7OK, .status_code = 200, .duration_ms = 1};
    struct check_view view;
    struct check *c;
    char text[64];

    fixture_build(f, HEAD "backend b\n server s 127.0.0.1:1 check\n");
    c = only_check(f);
    assert_string_equal(check_status(c), "INI");
    assert_string_equal(check_text(c, text, sizeof text), "INI");
    check_view(c, &view);
    assert_int_equal(view.result, 0);
    assert_int_equal(view.code, 1);
    assert_int_equal(view.duration_ms, -1);
    check_apply(c, &o);
    assert_string_equal(check_text(c, text, sizeof text), "L7OK/200 in 1ms");
    check_view(c, &view);
    assert_int_equal(view.result, 3);
    assert_int_equal(view.code, 15);
    assert_int_equal(view.health, 4);
    assert_int_equal(view.status_code, 200);
    assert_string_equal(view.description, "Layer7 check passed");
    o = (struct check_outcome){.code = CHECK_L4TOUT, .duration_ms = 2000};
    check_apply(c, &o);
    assert_string_equal(check_status(c), "L4TOUT");
    assert_string_equal(check_text(c, text, sizeof text), "L4TOUT in 2000ms");
    c->running = true;
    assert_string_equal(check_text(c, text, sizeof text), "* L4TOUT in 2000ms");
}

/* --- health ------------------------------------------------------------------------------------ */

static void test_health_and_log(void **state)
{
    struct fixture *f = *state;
    struct server *s;
    struct check *c;

    fixture_build(f, HEAD
                  " log @LOG@ daemon\n option log-health-checks\n"
                  "backend b\n server s 127.0.0.1:1 check inter 2s fastinter 1s downinter 5s\n");
    c = only_check(f);
    s = c->server;
    assert_int_equal(check_interval_us(c), 1000000); /* not checked yet */
    fixture_apply(c, CHECK_L4OK, 0, "");
    fixture_expect(
        f,
        "notice Health check for server b/s succeeded, reason: Layer4 check passed, check duration: 1ms, "
        "status: 3/3 UP.");
    assert_int_equal(check_interval_us(c), 2000000);
    fixture_apply(c, CHECK_L4OK, 0, "");
    fixture_expect_nothing(f); /* nothing has changed */
    fixture_apply(c, CHECK_L7STS, 500, "Oh no");
    fixture_expect(
        f,
        "notice Health check for server b/s failed, reason: Layer7 wrong status, code: 500, info: \"Oh no\", "
        "check duration: 1ms, status: 2/3 UP.");
    assert_int_equal(check_interval_us(c), 1000000);
    fixture_apply(c, CHECK_L4CON, 0, "");
    fixture_expect(
        f,
        "notice Health check for server b/s failed, reason: Layer4 connection problem, check duration: 1ms, "
        "status: 1/3 UP.");
    assert_true(server_is_usable(s));
    fixture_apply(c, CHECK_L4CON, 0, "");
    fixture_expect(
        f,
        "notice Health check for server b/s failed, reason: Layer4 connection problem, check duration: 1ms, "
        "status: 0/2 DOWN.");
    fixture_expect(
        f,
        "alert Server b/s is DOWN. 0 active and 0 backup servers left. 0 sessions active, 0 requeued, "
        "0 remaining in queue.");
    fixture_expect(f, "emerg backend b has no server available!");
    assert_false(server_is_usable(s));
    assert_int_equal(atomic_load(&s->check_failures), 3);
    assert_int_equal(atomic_load(&s->down_count), 1);
    assert_int_equal(check_interval_us(c), 5000000);
    fixture_apply(c, CHECK_L4CON, 0, "");
    fixture_expect_nothing(f);
    fixture_apply(c, CHECK_L4OK, 0, "");
    fixture_expect(
        f,
        "notice Health check for server b/s succeeded, reason: Layer4 check passed, check duration: 1ms, "
        "status: 1/2 DOWN.");
    assert_int_equal(check_interval_us(c), 1000000);
    fixture_apply(c, CHECK_L4CON, 0, ""); /* back to nothing */
    fixture_expect(
        f,
        "notice Health check for server b/s failed, reason: Layer4 connection problem, check duration: 1ms, "
        "status: 0/2 DOWN.");
    fixture_apply(c, CHECK_L4OK, 0, "");
    fixture_next_line(f, 1000);
    fixture_apply(c, CHECK_L4OK, 0, "");
    fixture_expect(
        f,
        "notice Health check for server b/s succeeded, reason: Layer4 check passed, check duration: 1ms, "
        "status: 3/3 UP.");
    fixture_expect(
        f, "notice Server b/s is UP. 1 active and 0 backup servers online. 0 sessions requeued, "
           "0 total in queue.");
    fixture_expect_nothing(f);
    assert_true(server_is_usable(s));
}

static void test_log_without_option(void **state)
{
    struct fixture *f = *state;
    struct check *c;

    fixture_build(
        f, HEAD
        " log @LOG@ daemon\nlisten b\n server s 127.0.0.1:1 check\n server t 127.0.0.1:1 backup check\n");
    c = only_check(f);
    fixture_apply(c, CHECK_L4CON, 0, "ECONNREFUSED returned by OS (Connection refused)");
    fixture_expect(
        f,
        "alert Server b/s is DOWN, reason: Layer4 connection problem, info: \"ECONNREFUSED returned by OS "
        "(Connection refused)\", check duration: 1ms. 0 active and 1 backup servers left. Running on backup. "
        "0 sessions active, 0 requeued, 0 remaining in queue.");
    fixture_expect_nothing(f);
    fixture_apply(fixture_server(f, "b", "t")->check, CHECK_L4TOUT, 0, "");
    fixture_expect(
        f,
        "alert Backup Server b/t is DOWN, reason: Layer4 timeout, check duration: 1ms. 0 active and 0 backup "
        "servers left. 0 sessions active, 0 requeued, 0 remaining in queue.");
    fixture_expect(f, "emerg proxy b has no server available!");
    fixture_apply(c, CHECK_L4OK, 0, "");
    fixture_apply(c, CHECK_L4OK, 0, "");
    fixture_expect(
        f,
        "notice Server b/s is UP, reason: Layer4 check passed, check duration: 1ms. 1 active and 0 backup "
        "servers online. 0 sessions requeued, 0 total in queue.");
}

static void test_conditional(void **state)
{
    struct fixture *f = *state;
    struct check *c;

    fixture_build(f,
                  HEAD " log @LOG@ daemon\nbackend b\n option httpchk\n http-check disable-on-404\n"
                       " server s 127.0.0.1:1 check\n server t 127.0.0.1:1 track s\n");
    c = only_check(f);
    fixture_apply(c, CHECK_L7OKC, 404, "");
    fixture_expect(
        f,
        "notice Server b/s is stopping, reason: Layer7 check conditionally passed, code: 404, check duration: "
        "1ms. 1 active and 0 backup servers online. 0 sessions requeued, 0 total in queue.");
    fixture_expect(
        f,
        "notice Server b/t is stopping via b/s. 0 active and 0 backup servers online. 0 sessions requeued, "
        "0 total in queue.");
    fixture_expect(f, "emerg backend b has no server available!");
    assert_true(server_is_reachable(c->server));
    assert_false(server_is_usable(c->server));
    for (int i = 0; i < 3; i++)
        fixture_apply(c, CHECK_L7STS, 500, "");
    fixture_expect(
        f,
        "notice Server b/s is DOWN, reason: Layer7 wrong status, code: 500, check duration: 1ms. 0 active and "
        "0 backup servers left. 0 sessions active, 0 requeued, 0 remaining in queue.");
    fixture_expect(
        f,
        "notice Server b/t is DOWN via b/s. 0 active and 0 backup servers left. 0 sessions active, 0 requeued, "
        "0 remaining in queue.");
    fixture_apply(c, CHECK_L7OKC, 404, ""); /* a server that is down stays down */
    fixture_apply(c, CHECK_L7OKC, 404, "");
    assert_int_equal(c->health, 0);
    fixture_expect_nothing(f);
    fixture_apply(c, CHECK_L7OK, 200, "");
    fixture_apply(c, CHECK_L7OK, 200, "");
    fixture_expect(
        f,
        "notice Server b/s is UP, reason: Layer7 check passed, code: 200, check duration: 1ms. 1 active and "
        "0 backup servers online. 0 sessions requeued, 0 total in queue.");
    fixture_expect(
        f,
        "notice Server b/t is UP via b/s. 2 active and 0 backup servers online. 0 sessions requeued, 0 total "
        "in queue.");
}

static void observe_until_limit(struct fixture *f, const char *mode, const char *line, int health)
{
    struct check *c;

    fixture_build(
        f,
        arena_printf(&f->arena,
                     HEAD " log @LOG@ daemon\n option log-health-checks\nbackend b\n"
                          " server s 127.0.0.1:1 check observe layer7 error-limit 3 on-error %s\n",
                     mode));
    c = only_check(f);
    fixture_apply(c, CHECK_L4OK, 0, "");
    fixture_next_line(f, 1000);
    atomic_store(&c->observed_errors, 3);
    atomic_store(&c->observed_layer7, true);
    check_apply_observed(c);
    if (line)
        fixture_expect(f, line);
    assert_int_equal(c->health, health);
}

static void test_on_error(void **state)
{
    static const struct {
        const char *mode, *status;
        int health;
    } rows[] = {{"fastinter", NULL, 4},
                {"fail-check", "2/3 UP", 3},
                {"sudden-death", "1/3 UP", 2},
                {"mark-down", "0/2 DOWN", 0}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fixture *f;
        char line[256];

        assert_int_equal(fixture_setup(state), 0);
        f = *state;
        if (rows[i].status)
            snprintf(
                line, sizeof line,
                "notice Health check for server b/s failed, reason: Health analyze, info: \"Detected 3 consecutive "
                "errors, last one was: Wrong http response\", status: %s.",
                rows[i].status);
        observe_until_limit(f, rows[i].mode, rows[i].status ? line : NULL, rows[i].health);
        fixture_teardown(state);
    }
}

int main(void)
{
#define FIXTURE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_lines),
        cmocka_unit_test(test_refused_servers),
        FIXTURE(test_implied_steps),
        cmocka_unit_test(test_targets),
        cmocka_unit_test(test_use_tls),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_match_bytes),
        cmocka_unit_test(test_match_tls_hello),
        cmocka_unit_test(test_match_head),
        cmocka_unit_test(test_reasons),
        FIXTURE(test_shown),
        FIXTURE(test_health_and_log),
        FIXTURE(test_log_without_option),
        FIXTURE(test_conditional),
        cmocka_unit_test(test_on_error),
    };

    return cmocka_run_group_tests_name("proxy/check", tests, NULL, NULL);
}
