#include "http_test.h"

static void test_simple_request(void **state)
{
    struct parsed p;
    const char *text = "GET /path?q=1 HTTP/1.1\r\nHost: example.org\r\nAccept: */*\r\n\r\nrest";

    accept_request(&p, text);
    assert_int_equal(p.head_bytes, strlen(text) - 4);
    assert_int_equal(p.msg.method, HTTP_GET);
    assert_int_equal(p.msg.version, 11);
    assert_int_equal(p.msg.flags, 0);
    assert_int_equal(p.msg.framing, HTTP_FRAMING_NONE);
    assert_str(p.msg.method_text, "GET");
    assert_str(p.msg.target, "/path?q=1");
    assert_int_equal(p.msg.field_count, 2);
    assert_int_equal(p.msg.fields[0].id, HTTP_FIELD_HOST);
    assert_str(p.msg.fields[0].name, "Host");
    assert_str(p.msg.fields[0].value, "example.org");
    assert_str(p.msg.fields[0].raw, "Host: example.org\r\n");
    assert_str(p.msg.fields[1].raw, "Accept: */*\r\n");
    parsed_release(&p);
}

static void test_simple_response(void **state)
{
    struct parsed p;

    accept_response(&p, "HTTP/1.1 200 OK\r\nContent-Length: 12\r\nServer: x y\r\n\r\n", HTTP_GET);
    assert_int_equal(p.msg.status, 200);
    assert_str(p.msg.reason, "OK");
    assert_int_equal(p.msg.flags, HTTP_MSG_RESPONSE | HTTP_MSG_HAS_LENGTH);
    assert_int_equal(p.msg.framing, HTTP_FRAMING_LENGTH);
    assert_int_equal(p.msg.content_length, 12);
    assert_str(field_value(&p.msg, "server"), "x y");
    parsed_release(&p);
}

/* What is written differently from the writer's form has no raw line. */
static void test_raw(void **state)
{
    static const char *const lines[] = {
        "A:1\r\n", "A:  1\r\n", "A:\t1\r\n", "A: 1 \r\n", "A: 1\t\r\n",
        "A: 1\n",  "A:\r\n",    "A:\n",      "A:  \r\n",
    };
    struct parsed p;

    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char text[128];

        snprintf(text, sizeof text, "GET / HTTP/1.1\r\n%s\r\n", lines[i]);
        accept_request(&p, text);
        assert_int_equal(p.msg.field_count, 1);
        assert_null(p.msg.fields[0].raw.ptr);
        assert_str(p.msg.fields[0].name, "A");
        assert_str(p.msg.fields[0].value, strchr(lines[i], '1') ? "1" : "");
        parsed_release(&p);
    }
    accept_request(&p, "GET / HTTP/1.1\r\nA: \r\nB: 1 \t 2\r\n\r\n");
    assert_str(p.msg.fields[0].raw, "A: \r\n");
    assert_str(p.msg.fields[1].raw, "B: 1 \t 2\r\n");
    assert_str(p.msg.fields[1].value, "1 \t 2");
    parsed_release(&p);
}

static void test_lenient_lines(void **state)
{
    struct parsed p;

    accept_request(&p, "\r\n\n\r\nGET / HTTP/1.1\nHost: a\n\n");
    assert_int_equal(p.head_bytes, 5 + 15 + 8 + 1);
    assert_str(field_value(&p.msg, "host"), "a");
    parsed_release(&p);
    accept_request(&p, "POST  /1   HTTP/1.1\r\n\n");
    assert_str(p.msg.target, "/1");
    parsed_release(&p);
    accept_response(&p, "\r\nHTTP/1.0 200\n\r\n", HTTP_GET);
    assert_int_equal(p.msg.version, 10);
    assert_str(p.msg.reason, "");
    parsed_release(&p);
    accept_response(&p, "HTTP/1.1 999 \r\n\r\n", HTTP_GET);
    assert_int_equal(p.msg.status, 999);
    assert_str(p.msg.reason, "");
    parsed_release(&p);
    accept_response(&p, "HTTP/1.7 100 a\tb \xe9 \r\n\r\n", HTTP_GET);
    assert_int_equal(p.msg.version, 11);
    assert_str(p.msg.reason, "a\tb \xe9");
    parsed_release(&p);
    accept_request(&p, "GET / HTTP/1.9\r\n\r\n");
    assert_int_equal(p.msg.version, 11);
    parsed_release(&p);
}

static void test_start_lines(void **state)
{
    static const struct {
        const char *text;
        enum h1_error error;
    } requests[] = {
        {" GET / HTTP/1.1\r\n\r\n", H1_BAD_METHOD},
        {"G(T / HTTP/1.1\r\n\r\n", H1_BAD_METHOD},
        {"GET\t/ HTTP/1.1\r\n\r\n", H1_BAD_METHOD},
        {"\x16\x03\x01\x02", H1_BAD_METHOD},
        {"GET\r\n\r\n", H1_BAD_START_LINE},
        {"GET \r\n\r\n", H1_BAD_START_LINE},
        {"GET /\r\n\r\n", H1_BAD_START_LINE},
        {"GET / \r\n\r\n", H1_BAD_START_LINE},
        {"GET /\n\n", H1_BAD_START_LINE},
        {"GET / HTTP/2.0\r\n\r\n", H1_BAD_VERSION},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", H1_BAD_VERSION},
        {"GET / HTTP/0.9\r\n\r\n", H1_BAD_VERSION},
        {"GET / HTTP/1.\r\n\r\n", H1_BAD_VERSION},
        {"GET / HTTP/1.1x\r\n\r\n", H1_BAD_VERSION},
        {"GET / HTTP/1.1 \r\n\r\n", H1_BAD_VERSION},
        {"GET / HTTP/1.11\r\n\r\n", H1_BAD_VERSION},
        {"GET / http/1.1\r\n\r\n", H1_BAD_VERSION},
        {"GET / RTSP/1.0\r\n\r\n", H1_BAD_VERSION},
        {"GET /a b HTTP/1.1\r\n\r\n", H1_BAD_VERSION},
        {"GET / HTTP/1.1\rX\r\n\r\n", H1_BARE_CR},
        {"\rGET / HTTP/1.1\r\n\r\n", H1_BARE_CR},
        {"GET /\x01 HTTP/1.1\r\n\r\n", H1_BAD_TARGET},
        {"GET /\x7f HTTP/1.1\r\n\r\n", H1_BAD_TARGET},
        {"GET /\x80 HTTP/1.1\r\n\r\n", H1_BAD_TARGET},
        {"GET /\t HTTP/1.1\r\n\r\n", H1_BAD_TARGET},
        {"GET /#f HTTP/1.1\r\n\r\n", H1_BAD_TARGET},
        {"GET /0123456789abcdef\x01 HTTP/1.1\r\n\r\n", H1_BAD_TARGET},
    };
    static const struct {
        const char *text;
        enum h1_error error;
    } responses[] = {
        {"HTTP/2.0 200 OK\r\n\r\n", H1_BAD_VERSION},
        {"HTTP/1.1\r\n\r\n", H1_BAD_VERSION},
        {"ICY 200 OK\r\n\r\n", H1_BAD_VERSION},
        {"HTTP/1.1 20 OK\r\n\r\n", H1_BAD_START_LINE},
        {"HTTP/1.1 2000 OK\r\n\r\n", H1_BAD_START_LINE},
        {"HTTP/1.1 099 OK\r\n\r\n", H1_BAD_START_LINE},
        {"HTTP/1.1  200 OK\r\n\r\n", H1_BAD_START_LINE},
        {"HTTP/1.1 -20 OK\r\n\r\n", H1_BAD_START_LINE},
        {"HTTP/1.1 200\tOK\r\n\r\n", H1_BAD_START_LINE},
        {"HTTP/1.1 200 O\x01K\r\n\r\n", H1_BAD_START_LINE},
        {"HTTP/1.1 200 OK\rX\r\n\r\n", H1_BARE_CR},
        {"\x01", H1_BAD_VERSION},
    };

    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
        refuse_request(requests[i].text, requests[i].error);
    for (size_t i = 0; i < sizeof responses / sizeof *responses; i++)
        refuse_response(responses[i].text, responses[i].error);
}

static void test_field_syntax(void **state)
{
    static const struct {
        const char *lines;
        enum h1_error error;
    } cases[] = {
        {"A : 1\r\n", H1_BAD_FIELD_NAME},
        {"A\t: 1\r\n", H1_BAD_FIELD_NAME},
        {": 1\r\n", H1_BAD_FIELD_NAME},
        {"A\r\n", H1_BAD_FIELD_NAME},
        {"A(: 1\r\n", H1_BAD_FIELD_NAME},
        {"A\x80: 1\r\n", H1_BAD_FIELD_NAME},
        {"A\x01: 1\r\n", H1_BAD_FIELD_NAME},
        {"a-name-of-more-than-sixteen-bytes : 1\r\n", H1_BAD_FIELD_NAME},
        {"A: 1\r\n 2\r\n", H1_OBS_FOLD},
        {"A: 1\r\n\t2\r\n", H1_OBS_FOLD},
        {" A: 1\r\n", H1_OBS_FOLD},
        {"A: 1\r2\r\n", H1_BARE_CR},
        {"A: 1\r\r\n", H1_BARE_CR},
        {"A:\r1\r\n", H1_BARE_CR},
        {"\rA: 1\r\n", H1_BARE_CR},
        {"A: \x01\r\n", H1_BAD_FIELD_VALUE},
        {"A: \x0b\r\n", H1_BAD_FIELD_VALUE},
        {"A: \x7f\r\n", H1_BAD_FIELD_VALUE},
        {"A: 0123456789abcdef0123456789\x1f\r\n", H1_BAD_FIELD_VALUE},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];

        snprintf(text, sizeof text, "GET / HTTP/1.1\r\n%s\r\n", cases[i].lines);
        refuse_request(text, cases[i].error);
        snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nB: 2\r\n%s\r\n", cases[i].lines);
        refuse_response(text, cases[i].error);
    }
}

/* Each byte at each place of name, value and target, against the character tables of the RFCs. */
static void test_every_byte(void **state)
{
    const struct parse_args args = {.limits = &default_limits};

    for (int c = 0; c < 256; c++) {
        for (size_t at = 0; at < 40; at++) {
            char text[128] =
                "GET / HTTP/1.1\r\nA: 0123456789012345678901234567890123456789\r\n\r\n";
            struct str in = {text, strlen(text)};
            struct h1_scan scan = {0};
            struct parsed p;
            bool good = c == '\t' || (c >= ' ' && c != 0x7f);

            text[19 + at] = (char)c;
            parsed_init(&p);
            parse_step(&p, &scan, in, &args);
            if (c == '\n')
                assert_int_equal(p.status == 0, at == 39); /* else the rest is no field */
            else
                assert_int_equal(p.status == 0, good);
            if (c == '\r')
                expect_refusal(&p, H1_BARE_CR);
            else if (!good && c != '\n')
                expect_refusal(&p, H1_BAD_FIELD_VALUE);
            parsed_release(&p);
        }
        for (size_t at = 0; at < 36; at++) {
            char text[128] = "GET / HTTP/1.1\r\nabcdefghijklmnopqrstuvwxyz-0123456789: 1\r\n\r\n";
            struct h1_scan scan = {0};
            struct parsed p;
            char byte = (char)c;

            text[16 + at] = byte;
            parsed_init(&p);
            parse_step(&p, &scan, str_make(text, strlen("GET / HTTP/1.1\r\n") + 45), &args);
            assert_int_equal(p.status == 0,
                             http_is_token(str_make(&byte, 1)) || (at ? c == ':' : c == '\n'));
            parsed_release(&p);
        }
        for (size_t at = 0; at < 36; at++) {
            char text[128] = "GET /abcdefghijklmnopqrstuvwxyz-0123456789 HTTP/1.1\r\n\r\n";
            struct h1_scan scan = {0};
            struct parsed p;

            text[5 + at] = (char)c;
            parsed_init(&p);
            parse_step(&p, &scan, str_make(text, 55), &args);
            assert_int_equal(p.status == 0, c > ' ' && c < 0x7f && c != '#');
            parsed_release(&p);
        }
    }
}

static void test_nul(void **state)
{
    static const struct {
        const char *text;
        size_t len;
        enum h1_error error;
    } cases[] = {
        {"G\0T / HTTP/1.1\r\n\r\n", 18, H1_BAD_METHOD},
        {"GET /\0 HTTP/1.1\r\n\r\n", 19, H1_BAD_TARGET},
        {"GET / HTTP/1.\0\r\n\r\n", 18, H1_BAD_VERSION},
        {"GET / HTTP/1.1\r\nA\0: 1\r\n\r\n", 25, H1_BAD_FIELD_NAME},
        {"GET / HTTP/1.1\r\nA: \0\r\n\r\n", 24, H1_BAD_FIELD_VALUE},
    };
    const struct parse_args args = {.limits = &default_limits};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct parsed p;

        parse_all_ways(&p, str_make(cases[i].text, cases[i].len), &args);
        expect_refusal(&p, cases[i].error);
        parsed_release(&p);
    }
}

static void test_error_position(void **state)
{
    struct parsed p;

    parse_request(&p, "GET / HTTP/1.1\r\nHost: a\r\nBad Name: 1\r\n\r\n");
    assert_int_equal(p.error_at, 28);
    parsed_release(&p);
    parse_request(&p, "\r\nGET / HTTP/1.1\r\nContent-Length: 1, x\r\n\r\n");
    expect_refusal(&p, H1_BAD_LENGTH);
    assert_int_equal(p.error_at, 34);
    parsed_release(&p);
}

static void test_limits(void **state)
{
    struct h1_limits limits = {.max_head_bytes = 40, .max_fields = 2};
    const struct parse_args args = {.limits = &limits};
    struct parsed p;

    parse_all_ways(&p, STR("GET / HTTP/1.1\r\nA: 1\r\nB: 2\r\n\r\n"), &args);
    assert_int_equal(p.status, 0);
    parsed_release(&p);
    parse_all_ways(&p, STR("GET / HTTP/1.1\r\nA: 1\r\nB: 2\r\nC: 3\r\n\r\n"), &args);
    assert_int_equal(p.status, SP_ETOOBIG);
    assert_int_equal(p.error, H1_TOO_MANY_FIELDS);
    assert_int_equal(p.error_at, 28);
    parsed_release(&p);

    /* Exactly as long as allowed, and one byte longer. */
    parse_all_ways(&p, STR("GET / HTTP/1.1\r\nA: 01234567890123456\r\n\r\n"), &args);
    assert_int_equal(p.status, 0);
    assert_int_equal(p.head_bytes, 40);
    parsed_release(&p);
    parse_all_ways(&p, STR("GET / HTTP/1.1\r\nA: 012345678901234567\r\n\r\n"), &args);
    assert_int_equal(p.status, SP_ETOOBIG);
    assert_int_equal(p.error, H1_TOO_LARGE);
    assert_int_equal(p.error_at, 40);
    parsed_release(&p);
    parse_all_ways(&p, STR("GET /01234567890123456789012345678901234567890"), &args);
    assert_int_equal(p.error, H1_TOO_LARGE);
    parsed_release(&p);
    parse_all_ways(
        &p,
        STR("\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n"),
        &args);
    assert_int_equal(p.error, H1_TOO_LARGE);
    parsed_release(&p);
    /* A fault within the bound is told rather than the bound. */
    parse_all_ways(&p, STR("GET / HTTP/1.1\r\nA : 0123456789012345678901234567890"), &args);
    expect_refusal(&p, H1_BAD_FIELD_NAME);
    parsed_release(&p);

    parse_all_ways(&p, STR(""), &args);
    assert_int_equal(p.status, SP_EAGAIN);
    parsed_release(&p);
}

static void test_accept_invalid(void **state)
{
    struct h1_limits limits = default_limits;
    const struct parse_args args = {.limits = &limits};
    struct parsed p;

    limits.accept_invalid = true;
    parse_all_ways(&p,
                   STR("GET /a\xe9#b\x80 HTTP/1.1\r\nA(b: 1\r\nC\x80"
                       "d: 2\r\nE: 3\r\n\r\n"),
                   &args);
    assert_int_equal(p.status, 0);
    assert_str(p.msg.target, "/a\xe9#b\x80");
    assert_int_equal(p.msg.field_count, 1);
    assert_str(p.msg.fields[0].name, "E");
    parsed_release(&p);

    parse_all_ways(&p, STR("GET http://hostname#frag HTTP/1.1\r\nHost: hostname\r\n\r\n"), &args);
    assert_int_equal(p.status, 0);
    assert_str(p.msg.target, "http://hostname#frag");
    parsed_release(&p);
    parse_all_ways(&p, STR("GET http://h:80/abc#frag HTTP/1.1\r\nHost: h\r\n\r\n"), &args);
    assert_str(p.msg.target, "http://h/abc#frag");
    parsed_release(&p);

    /* What could move the end of the message is not let through. */
    parse_all_ways(&p, STR("GET / HTTP/1.1\r\nContent-Length : 5\r\n\r\n"), &args);
    expect_refusal(&p, H1_BAD_FIELD_NAME);
    parsed_release(&p);
    parse_all_ways(&p, STR("GET / HTTP/1.1\r\nA\x01: 5\r\n\r\n"), &args);
    expect_refusal(&p, H1_BAD_FIELD_NAME);
    parsed_release(&p);
    parse_all_ways(&p, STR("GET /\x01 HTTP/1.1\r\n\r\n"), &args);
    expect_refusal(&p, H1_BAD_TARGET);
    parsed_release(&p);
    parse_all_ways(&p, str_make("GET / HTTP/1.1\r\nA: \0\r\n\r\n", 24), &args);
    expect_refusal(&p, H1_BAD_FIELD_VALUE);
    parsed_release(&p);
}

/* A bad start line is refused when it ends, not when the head does. */
static void test_early_refusal(void **state)
{
    const struct parse_args args = {.limits = &default_limits};
    struct str line = STR("GET / HTTP/3.0\r\n");
    struct h1_scan scan = {0};
    struct parsed p;

    parsed_init(&p);
    for (size_t n = 1; n < line.len; n++) {
        parse_step(&p, &scan, str_make(line.ptr, n), &args);
        assert_int_equal(p.status, SP_EAGAIN);
    }
    parse_step(&p, &scan, line, &args);
    expect_refusal(&p, H1_BAD_VERSION);
    parsed_release(&p);
}

/*
 * A head that comes one byte at a time must not cost the square of its length. The bytes before
 * what a call may still look at are overwritten: reading them again would change the verdict.
 */
static void test_dripping(void **state)
{
    const struct parse_args args = {.limits = &default_limits};
    struct h1_scan scan = {0};
    struct http_msg m;
    struct arena arena;
    char text[8192];
    size_t len = 0, head = 0, at = 0;
    enum h1_error error;

    len += (size_t)snprintf(text, sizeof text, "GET / HTTP/1.1\r\n");
    for (int i = 0; i < 90; i++)
        len +=
            (size_t)snprintf(text + len, sizeof text - len, "X-Number-%d: some value %d\r\n", i, i);
    len += (size_t)snprintf(text + len, sizeof text - len, "\r\n");
    arena_init(&arena, 0, 0);
    http_msg_init(&m, &arena);
    for (size_t n = 1; n < len; n++) {
        char *copy = malloc(n);

        assert_non_null(copy);
        memcpy(copy, text, n);
        /* From the third byte behind the start line on only the tail is searched. */
        if (n > 20)
            memset(copy, '\n', n - 3 < 20 ? n - 3 : 20);
        assert_int_equal(
            h1_parse_request(&scan, str_make(copy, n), args.limits, &m, &head, &error, &at),
            SP_EAGAIN);
        free(copy);
        assert_true(scan.scanned + 2u >= n || n < 20);
    }
    assert_int_equal(
        h1_parse_request(&scan, str_make(text, len), args.limits, &m, &head, &error, &at), 0);
    assert_int_equal(head, len);
    assert_int_equal(m.field_count, 90);
    arena_release(&arena);
}

static void test_no_memory(void **state)
{
    struct h1_scan scan = {0};
    struct arena arena;
    struct http_msg m;
    char text[4096];
    size_t len, head = 99, at = 99;
    enum h1_error error = H1_OK;
    int status;

    len = (size_t)snprintf(text, sizeof text, "GET / HTTP/1.1\r\n");
    for (int i = 0; i < 100; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "A: %d\r\n", i);
    len += (size_t)snprintf(text + len, sizeof text - len, "\r\n");
    arena_init(&arena, 1024, 4000);
    http_msg_init(&m, &arena);
    status = h1_parse_request(&scan, str_make(text, len), &default_limits, &m, &head, &error, &at);
    assert_int_equal(status, SP_ENOMEM);
    assert_int_equal(head, 99);
    assert_int_equal(at, 99);
    arena_release(&arena);
}

static void test_error_texts(void **state)
{
    for (int e = H1_OK; e <= H1_BAD_WEBSOCKET; e++) {
        assert_non_null(h1_error_text((enum h1_error)e));
        assert_string_not_equal(h1_error_text((enum h1_error)e), "unknown error");
        for (int other = H1_OK; other < e; other++)
            assert_string_not_equal(h1_error_text((enum h1_error)e),
                                    h1_error_text((enum h1_error)other));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_simple_request),
        cmocka_unit_test(test_simple_response),
        cmocka_unit_test(test_raw),
        cmocka_unit_test(test_lenient_lines),
        cmocka_unit_test(test_start_lines),
        cmocka_unit_test(test_field_syntax),
        cmocka_unit_test(test_every_byte),
        cmocka_unit_test(test_nul),
        cmocka_unit_test(test_error_position),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_accept_invalid),
        cmocka_unit_test(test_early_refusal),
        cmocka_unit_test(test_dripping),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_error_texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
