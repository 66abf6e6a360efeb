#include "http_test.h"

/* --- framing ------------------------------------------------------------------ */

static void test_lengths(void **state)
{
    static const struct {
        const char *lines;
        uint64_t value;
        const char *text;
    } good[] = {
        {"Content-Length: 0\r\n", 0, "0"},
        {"Content-Length: 5\r\n", 5, "5"},
        {"content-length:5 \r\n", 5, "5"},
        {"Content-Length: 5, 5\r\n", 5, "5"},
        {"Content-Length: 5\r\nA: 1\r\nContent-Length: 5,5\r\n", 5, "5"},
        {"Content-Length: 000\r\n", 0, "0"},
        {"Content-Length: 005, 5\r\n", 5, "5"},
        {"Content-Length: 9223372036854775807\r\n", INT64_MAX, "9223372036854775807"},
    };
    static const char *const bad[] = {
        "Content-Length:\r\n",
        "Content-Length: \r\n",
        "Content-Length: ,\r\n",
        "Content-Length: 0,\r\n",
        "Content-Length: ,0\r\n",
        "Content-Length: 5, 6\r\n",
        "Content-Length: 5 5\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: -5\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length: 5.0\r\n",
        "Content-Length: 1e3\r\n",
        "Content-Length: 5;\r\n",
        "Content-Length: \"5\"\r\n",
        "Content-Length: 9223372036854775808\r\n",
        "Content-Length: 18446744073709551616\r\n",
        "Content-Length: 99999999999999999999999\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5\r\nContent-Length:\r\n",
        "Content-Length: \xb2\r\n",
    };

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct parsed p;
        char text[256];
        uint32_t at = 0;

        snprintf(text, sizeof text, "POST / HTTP/1.1\r\n%s\r\n", good[i].lines);
        accept_request(&p, text);
        assert_int_equal(p.msg.framing, HTTP_FRAMING_LENGTH);
        assert_int_equal(p.msg.content_length, good[i].value);
        assert_true(p.msg.flags & HTTP_MSG_HAS_LENGTH);
        assert_str(http_msg_next(&p.msg, STR("content-length"), &at)->value, good[i].text);
        assert_null(http_msg_next(&p.msg, STR("content-length"), &at));
        parsed_release(&p);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[256];

        snprintf(text, sizeof text, "POST / HTTP/1.1\r\n%s\r\n", bad[i]);
        refuse_request(text, H1_BAD_LENGTH);
        snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\n%s\r\n", bad[i]);
        refuse_response(text, H1_BAD_LENGTH);
        /* A coding beside it is no excuse. */
        snprintf(text, sizeof text, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n%s\r\n",
                 bad[i]);
        refuse_request(text, H1_BAD_LENGTH);
    }
}

static void test_codings(void **state)
{
    static const struct {
        const char *lines;
        enum h1_error error;
    } cases[] = {
        {"Transfer-Encoding: chunked\r\n", H1_OK},
        {"transfer-encoding:\tCHUNKED \r\n", H1_OK},
        {"Transfer-Encoding:\r\n", H1_BAD_CODING},
        {"Transfer-Encoding: ,chunked\r\n", H1_BAD_CODING},
        {"Transfer-Encoding: chunked,\r\n", H1_BAD_CODING},
        {"Transfer-Encoding: chunked, chunked\r\n", H1_BAD_CODING},
        {"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", H1_BAD_CODING},
        {"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", H1_BAD_CODING},
        {"Transfer-Encoding: chunked, gzip, chunked\r\n", H1_BAD_CODING},
        {"Transfer-Encoding: chunked, gzip\r\n", H1_BAD_CODING},
        {"Transfer-Encoding: gzip\r\n", H1_BAD_CODING},
        {"Transfer-Encoding: identity\r\n", H1_BAD_CODING},
        {"Transfer-Encoding: xchunked\r\n", H1_BAD_CODING},
        {"Transfer-Encoding: \"chunked\"\r\n", H1_BAD_CODING},
        {"Transfer-Encoding: chunked;q=1\r\n", H1_BAD_CODING},
        {"Transfer-Encoding: chun ked\r\n", H1_BAD_CODING},
        {"Transfer-Encoding: gzip, chunked\r\n", H1_UNKNOWN_CODING},
        {"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", H1_UNKNOWN_CODING},
        {"Transfer-Encoding: identity, chunked\r\n", H1_UNKNOWN_CODING},
        {"Transfer-Encoding : chunked\r\n", H1_BAD_FIELD_NAME},
        {"Transfer-Encoding: \x0b"
         "chunked\r\n",
         H1_BAD_FIELD_VALUE},
        {"Transfer-Encoding:\r\n chunked\r\n", H1_BAD_CODING},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct parsed p;
        char text[256];

        snprintf(text, sizeof text, "POST / HTTP/1.1\r\n%s\r\n", cases[i].lines);
        if (cases[i].error) {
            refuse_request(text, cases[i].error);
            snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\n%s\r\n", cases[i].lines);
            refuse_response(text, cases[i].error);
            continue;
        }
        accept_request(&p, text);
        assert_int_equal(p.msg.framing, HTTP_FRAMING_CHUNKED);
        assert_int_equal(p.msg.flags, HTTP_MSG_HAS_CODING);
        parsed_release(&p);
        snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\n%s\r\n", cases[i].lines);
        accept_response(&p, text, HTTP_GET);
        assert_int_equal(p.msg.framing, HTTP_FRAMING_CHUNKED);
        assert_int_equal(p.msg.flags, HTTP_MSG_HAS_CODING | HTTP_MSG_RESPONSE);
        parsed_release(&p);
    }
}

static void test_length_and_coding(void **state)
{
    struct parsed p;

    accept_request(&p, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 31\r\n"
                       "Connection: keep-alive\r\n\r\n");
    assert_int_equal(p.msg.framing, HTTP_FRAMING_CHUNKED);
    assert_int_equal(p.msg.flags,
                     HTTP_MSG_HAS_CODING | HTTP_MSG_CONN_CLOSE | HTTP_MSG_LENGTH_DROPPED);
    assert_int_equal(p.msg.content_length, 0);
    assert_null(http_msg_find(&p.msg, HTTP_FIELD_CONTENT_LENGTH));
    parsed_release(&p);
    accept_response(&p,
                    "HTTP/1.1 200 OK\r\nContent-Length: 30\r\nTransfer-Encoding: chunked\r\n\r\n",
                    HTTP_GET);
    assert_int_equal(p.msg.framing, HTTP_FRAMING_CHUNKED);
    assert_true(p.msg.flags & HTTP_MSG_CONN_CLOSE);
    assert_null(http_msg_find(&p.msg, HTTP_FIELD_CONTENT_LENGTH));
    parsed_release(&p);

    refuse_request("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
                   H1_LENGTH_AND_CODING);
    refuse_response("HTTP/1.0 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
                    H1_LENGTH_AND_CODING);
}

static void test_old_version(void **state)
{
    struct parsed p;

    accept_request(&p, "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n"
                       "Connection: keep-alive\r\n\r\n");
    assert_int_equal(p.msg.framing, HTTP_FRAMING_CHUNKED);
    assert_int_equal(p.msg.flags, HTTP_MSG_HAS_CODING | HTTP_MSG_CONN_CLOSE);
    parsed_release(&p);
    accept_response(&p, "HTTP/1.0 200 Ok\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP_GET);
    assert_int_equal(p.msg.framing, HTTP_FRAMING_CHUNKED);
    assert_true(p.msg.flags & HTTP_MSG_CONN_CLOSE);
    parsed_release(&p);
    refuse_request("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", H1_BAD_CODING);
    refuse_request("HEAD / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", H1_BAD_CODING);
    refuse_request("DELETE / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", H1_BAD_CODING);
    accept_request(&p, "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
    parsed_release(&p);
}

static void test_response_framing(void **state)
{
    static const struct {
        const char *text;
        enum http_method method;
        enum http_framing framing;
        bool fields_kept;
    } cases[] = {
        {"200 OK\r\nContent-Length: 5\r\n", HTTP_GET, HTTP_FRAMING_LENGTH, true},
        {"200 OK\r\nTransfer-Encoding: chunked\r\n", HTTP_GET, HTTP_FRAMING_CHUNKED, true},
        {"200 OK\r\n", HTTP_GET, HTTP_FRAMING_CLOSE, false},
        {"404 OK\r\n", HTTP_CONNECT, HTTP_FRAMING_CLOSE, false},
        {"200 OK\r\nContent-Length: 5\r\n", HTTP_HEAD, HTTP_FRAMING_NONE, true},
        {"200 OK\r\nTransfer-Encoding: chunked\r\n", HTTP_HEAD, HTTP_FRAMING_NONE, true},
        {"304 OK\r\nContent-Length: 5\r\n", HTTP_GET, HTTP_FRAMING_NONE, true},
        {"204 OK\r\nContent-Length: 5\r\n", HTTP_GET, HTTP_FRAMING_NONE, false},
        {"100 OK\r\nContent-Length: 5\r\n", HTTP_GET, HTTP_FRAMING_NONE, false},
        {"103 OK\r\nTransfer-Encoding: chunked\r\n", HTTP_GET, HTTP_FRAMING_NONE, false},
        {"101 OK\r\nContent-Length: 5\r\n", HTTP_GET, HTTP_FRAMING_NONE, false},
        {"200 OK\r\nContent-Length: 5\r\n", HTTP_CONNECT, HTTP_FRAMING_NONE, false},
        {"299 OK\r\nTransfer-Encoding: chunked\r\n", HTTP_CONNECT, HTTP_FRAMING_NONE, false},
        {"300 OK\r\nContent-Length: 5\r\n", HTTP_CONNECT, HTTP_FRAMING_LENGTH, true},
        {"205 OK\r\nContent-Length: 0\r\n", HTTP_GET, HTTP_FRAMING_LENGTH, true},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct parsed p;
        char text[256];
        bool kept;

        snprintf(text, sizeof text, "HTTP/1.1 %s\r\n", cases[i].text);
        accept_response(&p, text, cases[i].method);
        assert_int_equal(p.msg.framing, cases[i].framing);
        kept = http_msg_find(&p.msg, HTTP_FIELD_CONTENT_LENGTH) ||
               http_msg_find(&p.msg, HTTP_FIELD_TRANSFER_ENCODING);
        assert_int_equal(kept, cases[i].fields_kept);
        assert_int_equal(kept, (p.msg.flags & (HTTP_MSG_HAS_LENGTH | HTTP_MSG_HAS_CODING)) != 0);
        parsed_release(&p);
    }
}

/* --- Connection and its friends --------------------------------------------------- */

static void test_connection(void **state)
{
    static const struct {
        const char *lines;
        uint32_t flags;
    } cases[] = {
        {"Connection: close\r\n", HTTP_MSG_CONN_CLOSE},
        {"Connection: Keep-Alive\r\n", HTTP_MSG_CONN_KEEP_ALIVE},
        {"Connection: close\r\nConnection: keep-alive\r\n",
         HTTP_MSG_CONN_CLOSE | HTTP_MSG_CONN_KEEP_ALIVE},
        {"Connection: te , close\r\n", HTTP_MSG_CONN_CLOSE},
        {"Connection: closed\r\n", HTTP_MSG_HAS_CONN_OPTIONS},
        {"Connection: ,x, close\r\n", HTTP_MSG_HAS_CONN_OPTIONS | HTTP_MSG_CONN_CLOSE},
        {"Connection: upgrade\r\n", 0},
        {"Upgrade: websocket\r\n", 0},
        {"Upgrade: other\r\nConnection: Upgrade\r\n", HTTP_MSG_CONN_UPGRADE},
        {"Connection: upgrade\r\nUpgrade: h2c\r\n", 0},
        {"Connection: upgrade\r\nUpgrade:\r\n", 0},
        {"Expect: 100-Continue\r\n", HTTP_MSG_EXPECT_CONTINUE},
        {"Expect: other\r\n", 0},
        {"Connection:\r\n", 0},
    };
    struct parsed p;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];

        snprintf(text, sizeof text, "GET / HTTP/1.1\r\n%s\r\n", cases[i].lines);
        accept_request(&p, text);
        assert_int_equal(p.msg.flags, cases[i].flags);
        parsed_release(&p);
    }
    accept_request(&p, "POST / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n");
    assert_int_equal(p.msg.flags, 0);
    parsed_release(&p);
}

static void test_h2c(void **state)
{
    struct parsed p;

    accept_request(&p, "GET / HTTP/1.1\r\nConnection: upgrade, http2-settings\r\n"
                       "Upgrade: H2C,bar, h2 , foo/1\r\nA: b\r\n\r\n");
    assert_str(field_value(&p.msg, "upgrade"), "bar, foo/1");
    assert_true(p.msg.flags & HTTP_MSG_CONN_UPGRADE);
    assert_str(field_value(&p.msg, "a"), "b");
    parsed_release(&p);
    accept_request(&p, "GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: h2c\r\nA: b\r\n\r\n");
    assert_null(http_msg_find(&p.msg, HTTP_FIELD_UPGRADE));
    assert_str(field_value(&p.msg, "a"), "b");
    parsed_release(&p);
}

static void test_websocket(void **state)
{
    static const struct h1_limits lenient = {16384, 101, true};
    const struct parse_args args = {.limits = &lenient};
    struct parsed p;

    accept_request(&p, "GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: proto1, WebSocket\r\n"
                       "Upgrade: proto3\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
    assert_int_equal(p.msg.flags, HTTP_MSG_CONN_UPGRADE | HTTP_MSG_WEBSOCKET);
    parsed_release(&p);
    refuse_request("GET / HTTP/1.1\r\nConnection: upgrade\r\n"
                   "Upgrade: proto1, websocket, proto2\r\nUpgrade: proto3\r\n\r\n",
                   H1_BAD_WEBSOCKET);
    refuse_request("GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
                   "Sec-WebSocket-Key: short\r\n\r\n",
                   H1_BAD_WEBSOCKET);
    /* Without the option it is no handshake. */
    accept_request(&p, "GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n");
    assert_int_equal(p.msg.flags, 0);
    parsed_release(&p);
    parse_all_ways(&p, STR("GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"),
                   &args);
    assert_int_equal(p.status, 0);
    parsed_release(&p);

    accept_response(&p,
                    "HTTP/1.1 101 OK\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
                    "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
                    HTTP_GET);
    assert_true(p.msg.flags & HTTP_MSG_WEBSOCKET);
    parsed_release(&p);
    refuse_response("HTTP/1.1 101 OK\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
                    H1_BAD_WEBSOCKET);
    accept_response(&p, "HTTP/1.1 426 No\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
                    HTTP_GET);
    parsed_release(&p);
}

/* --- targets and Host ----------------------------------------------------------------- */

static void test_target_forms(void **state)
{
    static const char *const good[] = {
        "OPTIONS *",
        "OPTIONS /",
        "OPTIONS http://haproxy.org",
        "CONNECT haproxy.org:80",
        "GET /",
        "GET //x",
        "GET http://h",
        "GET foo://h/",
        "CONNECT [::1]:443",
        "PURGE /x",
        "GET http://u:p@h/",
        "GET http://:",
        "GET http:///",
        "GET http://",
    };
    static const char *const bad[] = {
        "OPTIONS */test",
        "GET *",
        "PURGE *",
        "CONNECT haproxy.org",
        "CONNECT haproxy.org:",
        "CONNECT /",
        "CONNECT http://haproxy.org:80",
        "CONNECT *",
        "GET haproxy.org:80",
        "GET admin",
        "GET admin/a/b",
        "GET http:/h",
        "GET http:h",
        "GET ://h/",
        "GET 1a://h/",
        "GET ?q",
        "GET http://a@b@c/",
        "GET http://h:x/",
        "GET http://h:99999/",
        "GET http://[::1/",
        "GET http://h]/",
        "GET http://a\\b/",
        "GET http://h:80:80/",
        "GET http://u<x@h/",
        "CONNECT h:x",
        "CONNECT u@h:80",
        "CONNECT h:80/",
        "GET http://%zz/",
    };
    struct parsed p;
    char text[256];

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        snprintf(text, sizeof text, "%s HTTP/1.1\r\n\r\n", good[i]);
        accept_request(&p, text);
        parsed_release(&p);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(text, sizeof text, "%s HTTP/1.1\r\n\r\n", bad[i]);
        refuse_request(text, H1_BAD_TARGET);
    }
}

static void test_hosts(void **state)
{
    static const char *const good[] = {
        "",      "a",     "a:80", ":8443example.org", "foo..bar", ".", "[::1]:80", "127.0.0.1:1",
        "a%20b", "a:b:c",
    };
    static const char *const bad[] = {
        "a b", "a,b", "a/b",   "a@b",   "a\tb",   "a?b",  "a#b",      "a\\b", "a[b]",
        "[a",  "a]",  "\"a\"", "a\x80", "[::1]x", "a, a", "http://a", "a<b",
    };
    struct parsed p;
    char text[256];

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", good[i]);
        accept_request(&p, text);
        assert_str(field_value(&p.msg, "host"), good[i]);
        parsed_release(&p);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", bad[i]);
        refuse_request(text, H1_BAD_HOST);
    }
    accept_request(&p, "GET / HTTP/1.1\r\nhost: a\r\nX: 1\r\nHOST: A\r\nY: 2\r\n\r\n");
    assert_int_equal(p.msg.field_count, 3);
    assert_str(field_value(&p.msg, "y"), "2");
    parsed_release(&p);
    refuse_request("GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n", H1_BAD_HOST);
    refuse_request("GET / HTTP/1.1\r\nhost: a\r\nhost:\r\n\r\n", H1_BAD_HOST);
    accept_response(&p, "HTTP/1.1 200 OK\r\nHost: a b\r\nHost: c\r\n\r\n", HTTP_GET);
    assert_int_equal(p.msg.field_count, 2);
    parsed_release(&p);
}

/* The table of HAProxy's reg-test h1_host_normalization, and more of its kind. */
static void test_host_normalisation(void **state)
{
    static const struct {
        const char *method, *target, *host;
        const char *new_target, *new_host; /* NULL: refused */
    } cases[] = {
        {"GET", "http://toto:poue@hostname:80/c1", "hostname:80", "http://toto:poue@hostname/c1",
         "hostname"},
        {"GET", "http://hostname:8080/", "hostname:8080", "http://hostname:8080/", "hostname:8080"},
        {"GET", "https://hostname:443/", "hostname:443", "https://hostname/", "hostname"},
        {"GET", "https://hostname:80/", "hostname:80", "https://hostname:80/", "hostname:80"},
        {"CONNECT", "hostname:80", "hostname:80", "hostname:80", "hostname"},
        {"CONNECT", "hostname:80", "hostname", "hostname:80", "hostname"},
        {"CONNECT", "hostname:80", "hostname:", "hostname:80", "hostname:"},
        {"CONNECT", "hostname:443", "hostname:443", "hostname:443", "hostname"},
        {"CONNECT", "hostname:443", "hostname", "hostname:443", "hostname"},
        {"CONNECT", "hostname:443", "hostname:", "hostname:443", "hostname:"},
        {"CONNECT", "hostname:8443", "hostname:8443", "hostname:8443", "hostname:8443"},
        {"GET", "http://hostname1/", "hostname2", NULL, NULL},
        {"GET", "http://hostname:80/", "hostname:81", NULL, NULL},
        {"GET", "http://hostname:8080/", "hostname", NULL, NULL},
        {"GET", "http://hostname/", "hostname:81", NULL, NULL},
        {"GET", "https://hostname:80/", "hostname", NULL, NULL},
        {"GET", "http://hostname:080/", "hostname:80", NULL, NULL},
        {"GET", "http://hostname/", "", NULL, NULL},
        {"CONNECT", "hostname1:80", "hostname2:80", NULL, NULL},
        {"CONNECT", "hostname:80", "hostname:443", NULL, NULL},
        {"CONNECT", "hostname:8080", "hostname", NULL, NULL},
        {"GET", "http://hostname:80/c20", "hostname", "http://hostname/c20", "hostname"},
        {"GET", "https://hostname:443/c21", "hostname", "https://hostname/c21", "hostname"},
        {"GET", "http://hostname/c22", "hostname:80", "http://hostname/c22", "hostname:80"},
        {"GET", "https://hostname/c23", "hostname:443", "https://hostname/c23", "hostname:443"},
        {"GET", "http://hostname:/c24", "hostname", "http://hostname/c24", "hostname"},
        {"GET", "https://hostname:/c25", "hostname", "https://hostname/c25", "hostname"},
        {"GET", "http://hostname/c26", "hostname:", "http://hostname/c26", "hostname:"},
        {"GET", "http://hostname:80/c28", "hostname:", "http://hostname/c28", "hostname"},
        {"GET", "http://hostname:/c29", "hostname:80", "http://hostname/c29", "hostname"},
        {"GET", "https://hostname:443/c30", "hostname:", "https://hostname/c30", "hostname"},
        {"GET", "https://hostname:/c31", "hostname:443", "https://hostname/c31", "hostname"},
        {"GET", "http://:", ":80", "http:///", ""},
        {"GET", "https://:", ":443", "https:///", ""},
        {"GET", "http://:", ":", "http:///", ""},
        {"GET", "http:///", "", "http:///", ""},
        {"GET", "http:///", "a", NULL, NULL},
        {"GET", "http://hostname", "hostname", "http://hostname/", "hostname"},
        {"GET", "http://hostname:80", "hostname", "http://hostname/", "hostname"},
        {"GET", "http://hostname:", "hostname", "http://hostname/", "hostname"},
        {"GET", "https://hostname:443", "hostname", "https://hostname/", "hostname"},
        {"GET", "http://hostname:81", "hostname:81", "http://hostname:81/", "hostname:81"},
        {"GET", "http://hostname?a=b", "hostname", "http://hostname?a=b", "hostname"},
        {"GET", "http://hostname:80?c=d", "hostname:80", "http://hostname?c=d", "hostname"},
        {"GET", "HTTP://HostName:80/", "hostname", "HTTP://HostName/", "HostName"},
        {"GET", "http://HostName/", "hostname", "http://HostName/", "hostname"},
        {"GET", "ftp://h:80/", "h:80", "ftp://h:80/", "h:80"},
        {"GET", "ftp://h:80/", "h", NULL, NULL},
        {"GET", "http://[::1]:80/x", "[::1]", "http://[::1]/x", "[::1]"},
        {"OPTIONS", "http://haproxy.org", "haproxy.org", "http://haproxy.org", "haproxy.org"},
        {"OPTIONS", "http://haproxy.org:80", "haproxy.org", "http://haproxy.org", "haproxy.org"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct parsed p;
        char text[256];

        snprintf(text, sizeof text, "%s %s HTTP/1.1\r\nA: 1\r\nHost: %s\r\nB: 2\r\n\r\n",
                 cases[i].method, cases[i].target, cases[i].host);
        if (!cases[i].new_target) {
            refuse_request(text, H1_BAD_HOST);
            continue;
        }
        accept_request(&p, text);
        assert_str(p.msg.target, cases[i].new_target);
        assert_str(field_value(&p.msg, "host"), cases[i].new_host);
        assert_int_equal((p.msg.flags & HTTP_MSG_ABSOLUTE_TARGET) != 0, *cases[i].method != 'C');
        parsed_release(&p);
    }
    refuse_request(
        "GET http://hostname1/ HTTP/1.1\r\nhost: hostname1:80\r\nhost: hostname1\r\n\r\n",
        H1_BAD_HOST);
}

static void test_connect(void **state)
{
    struct parsed p;

    accept_request(&p, "CONNECT h:80 HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
    assert_int_equal(p.msg.framing, HTTP_FRAMING_NONE);
    parsed_release(&p);
    refuse_request("CONNECT h:80 HTTP/1.1\r\nContent-Length: 5\r\n\r\n", H1_BAD_LENGTH);
    refuse_request("CONNECT h:80 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", H1_BAD_CODING);
}

/* A rewritten target needs memory. */
static void test_no_memory(void **state)
{
    static const char *const requests[] = {
        "GET http://h:80/ HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET / HTTP/1.1\r\nUpgrade: h2c, a\r\n\r\n",
    };

    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        struct h1_scan scan = {0};
        struct arena arena;
        struct http_msg m;
        size_t head, at;
        enum h1_error error;

        arena_init(&arena, 0, 16 * sizeof(struct http_field));
        http_msg_init(&m, &arena);
        assert_int_equal(
            h1_parse_request(&scan, str_of(requests[i]), &default_limits, &m, &head, &error, &at),
            SP_ENOMEM);
        arena_release(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_codings),
        cmocka_unit_test(test_length_and_coding),
        cmocka_unit_test(test_old_version),
        cmocka_unit_test(test_response_framing),
        cmocka_unit_test(test_connection),
        cmocka_unit_test(test_h2c),
        cmocka_unit_test(test_websocket),
        cmocka_unit_test(test_target_forms),
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_host_normalisation),
        cmocka_unit_test(test_connect),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
