#include "http_test.h"

static const char *const known_fields[HTTP_FIELD_ID_COUNT] = {
    [HTTP_FIELD_HOST] = "host",
    [HTTP_FIELD_CONNECTION] = "connection",
    [HTTP_FIELD_CONTENT_LENGTH] = "content-length",
    [HTTP_FIELD_TRANSFER_ENCODING] = "transfer-encoding",
    [HTTP_FIELD_UPGRADE] = "upgrade",
    [HTTP_FIELD_EXPECT] = "expect",
    [HTTP_FIELD_TE] = "te",
    [HTTP_FIELD_TRAILER] = "trailer",
    [HTTP_FIELD_KEEP_ALIVE] = "keep-alive",
    [HTTP_FIELD_PROXY_CONNECTION] = "proxy-connection",
    [HTTP_FIELD_COOKIE] = "cookie",
    [HTTP_FIELD_SET_COOKIE] = "set-cookie",
    [HTTP_FIELD_CONTENT_TYPE] = "content-type",
    [HTTP_FIELD_CONTENT_ENCODING] = "content-encoding",
    [HTTP_FIELD_ACCEPT_ENCODING] = "accept-encoding",
    [HTTP_FIELD_CACHE_CONTROL] = "cache-control",
    [HTTP_FIELD_PRAGMA] = "pragma",
    [HTTP_FIELD_EXPIRES] = "expires",
    [HTTP_FIELD_VARY] = "vary",
    [HTTP_FIELD_ETAG] = "etag",
    [HTTP_FIELD_DATE] = "date",
    [HTTP_FIELD_LOCATION] = "location",
    [HTTP_FIELD_AUTHORIZATION] = "authorization",
    [HTTP_FIELD_WWW_AUTHENTICATE] = "www-authenticate",
    [HTTP_FIELD_X_FORWARDED_FOR] = "x-forwarded-for",
    [HTTP_FIELD_RANGE] = "range",
    [HTTP_FIELD_IF_RANGE] = "if-range",
    [HTTP_FIELD_IF_MODIFIED_SINCE] = "if-modified-since",
    [HTTP_FIELD_IF_NONE_MATCH] = "if-none-match",
    [HTTP_FIELD_USER_AGENT] = "user-agent",
    [HTTP_FIELD_REFERER] = "referer",
    [HTTP_FIELD_SERVER] = "server",
    [HTTP_FIELD_SEC_WEBSOCKET_KEY] = "sec-websocket-key",
    [HTTP_FIELD_SEC_WEBSOCKET_ACCEPT] = "sec-websocket-accept",
};

/* Every known name is found in any case, and no longer once one byte is another. */
static void test_field_ids(void **state)
{
    for (int id = HTTP_FIELD_OTHER + 1; id < HTTP_FIELD_ID_COUNT; id++) {
        size_t n = strlen(known_fields[id]);
        char *name = malloc(n); /* exactly: a read behind it is an error */

        assert_non_null(name);
        memcpy(name, known_fields[id], n);
        assert_int_equal(http_field_id_of(str_make(name, n)), id);
        for (size_t i = 0; i < n; i++) {
            char was = name[i];

            for (int c = 0; c < 256; c++) {
                bool same = c == was || (was >= 'a' && was <= 'z' && c == was - 32);

                name[i] = (char)c;
                assert_int_equal(http_field_id_of(str_make(name, n)), same ? id : 0);
            }
            name[i] = was;
        }
        assert_int_equal(http_field_id_of(str_make(name, n - 1)), HTTP_FIELD_OTHER);
        assert_int_equal(http_field_id_of(str_make(name + 1, n - 1)), HTTP_FIELD_OTHER);
        free(name);
    }
    assert_int_equal(http_field_id_of(STR("")), HTTP_FIELD_OTHER);
    assert_int_equal(http_field_id_of(STR("t")), HTTP_FIELD_OTHER);
    assert_int_equal(http_field_id_of(STR("sec-websocket-extensions")), HTTP_FIELD_OTHER);
}

static void test_methods(void **state)
{
    static const struct {
        const char *text;
        enum http_method method;
    } cases[] = {
        {"GET", HTTP_GET},           {"HEAD", HTTP_HEAD},         {"POST", HTTP_POST},
        {"PUT", HTTP_PUT},           {"DELETE", HTTP_DELETE},     {"CONNECT", HTTP_CONNECT},
        {"OPTIONS", HTTP_OPTIONS},   {"TRACE", HTTP_TRACE},       {"PATCH", HTTP_PATCH},
        {"get", HTTP_METHOD_OTHER},  {"GETS", HTTP_METHOD_OTHER}, {"PURGE", HTTP_METHOD_OTHER},
        {"P", HTTP_METHOD_OTHER},    {"", HTTP_METHOD_OTHER},     {"PROPFIND", HTTP_METHOD_OTHER},
        {"POSH", HTTP_METHOD_OTHER},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(http_method_of(str_of(cases[i].text)), cases[i].method);
}

static void test_reasons(void **state)
{
    assert_str(http_reason_of(200), "OK");
    assert_str(http_reason_of(404), "Not Found");
    assert_str(http_reason_of(422), "Unprocessable Content");
    assert_str(http_reason_of(503), "Service Unavailable");
    assert_str(http_reason_of(599), "");
    assert_str(http_reason_of(0), "");
}

static void test_tokens(void **state)
{
    const char *others = "(),/:;<=>?@[\\]{}\" \t\r\n";

    assert_true(http_is_token(STR("!#$%&'*+-.^_`|~09AZaz")));
    assert_false(http_is_token(STR("")));
    for (const char *c = others; *c; c++)
        assert_false(http_is_token(str_make(c, 1)));
    for (int c = 0; c < 256; c++) {
        char byte = (char)c;

        if (c <= ' ' || c >= 0x7f)
            assert_false(http_is_token(str_make(&byte, 1)));
    }
}

static void test_authorities(void **state)
{
    static const char *const good[] = {
        "",
        "a",
        ":",
        ":80",
        "a:",
        "a:80",
        "a:65535",
        "127.0.0.1",
        "127.0.0.1:8080",
        "a_b~c.d-e",
        "%41b",
        "a;b=c",
        "[::1]",
        "[::1]:443",
        "[2001:db8::1.2.3.4]:1",
        "host.example.:1",
    };
    static const char *const bad[] = {
        "a:b",
        "a:65536",
        "a:80:80",
        "a/b",
        "a b",
        "a@b",
        "a#b",
        "a?b",
        "a,b",
        "a\\b",
        "%4",
        "%zz",
        "%",
        "[::1",
        "[]",
        "[1]",
        "[::g]",
        "[::1]a",
        "::1",
        "a[::1]",
        "[::1%eth0]",
        "a\x80",
        "a\t",
        "[1:2:3:4:5:6:7:8:9:10]",
        "a:99999999999999999999",
    };

    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(http_is_authority(str_of(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(http_is_authority(str_of(bad[i])));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_field_ids),   cmocka_unit_test(test_methods),
        cmocka_unit_test(test_reasons),     cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_authorities),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
