#include "harness.h"

#include "rules/format.h"

#include <time.h>

static const struct row {
    const char *alias, *log, *field; /* in a log line, and without any stream */
} rows[] = {
    {"B", "1234", "0"},
    {"CC", "c=1", ""},
    {"CS", "-", ""},
    {"H", "node.example", "node.example"},
    {"HM", "POST", "POST"},
    {"HP", "http://h/a/b", "http://h/a/b"},
    {"HPO", "/a/b", "/a/b"},
    {"HQ", "?q=1", "?q=1"},
    {"HU", "http://h/a/b?q=1", "http://h/a/b?q=1"},
    {"HV", "HTTP/1.1", "HTTP/1.1"},
    {"ID", "id-7", ""},
    {"ST", "503", "-1"},
    {"T", "06/Nov/1994:08:49:37 +0000", "06/Nov/1994:08:49:37 +0000"},
    {"Ta", "11", "-1"},
    {"Tc", "12", "-1"},
    {"Td", "13", "-1"},
    {"Th", "14", "-1"},
    {"Ti", "15", "-1"},
    {"Tl", "06/Nov/1994:06:49:37 -0200", "06/Nov/1994:06:49:37 -0200"},
    {"Tq", "45", "-1"},
    {"TR", "16", "-1"},
    {"Tr", "17", "-1"},
    {"Ts", "784111777", "784111777"},
    {"Tt", "18", "-1"},
    {"Tu", "19", "-1"},
    {"Tw", "-1", "-1"},
    {"U", "567", "0"},
    {"ac", "1", "0"},
    {"b", "be", "be-host"},
    {"bc", "3", "0"},
    {"bi", "10.0.0.3", "10.0.0.3"},
    {"bp", "3003", "3003"},
    {"bq", "8", "0"},
    {"ci", "2001:db8::1", "2001:db8::1"},
    {"cp", "1001", "1001"},
    {"f", "fe", ""},
    {"fc", "2", "0"},
    {"fi", "10.0.0.2", "10.0.0.2"},
    {"fp", "443", "443"},
    {"ft", "fe~", "~"},
    {"hr", "{one|}", "{one|}"},
    {"hrl", "one -", "one -"},
    {"hs", "{|two}", "{|two}"},
    {"hsl", "- two", "- two"},
    {"lc", "9", "0"},
    {"ms", "123", "123"},
    {"pid", "4242", "77"},
    {"r", "POST http://h/a/b?q=1 HTTP/1.1", "POST http://h/a/b?q=1 HTTP/1.1"},
    {"rc", "+5", "0"},
    {"rt", "6", "0"},
    {"s", "srv", "<NOSRV>"},
    {"sc", "4", "0"},
    {"si", "unix", "unix"},
    {"sp", "-", ""},
    {"sq", "7", "0"},
    {"sslc", "CIPHER", "CIPHER"},
    {"sslv", "TLSv1.3", "TLSv1.3"},
    {"t", "06/Nov/1994:06:49:37.123", "06/Nov/1994:06:49:37.123"},
    {"tr", "06/Nov/1994:06:49:38.005", "06/Nov/1994:06:49:37.123"},
    {"trg", "06/Nov/1994:08:49:38 +0000", "06/Nov/1994:08:49:37 +0000"},
    {"trl", "06/Nov/1994:06:49:38 -0200", "06/Nov/1994:06:49:37 -0200"},
    {"ts", "sH", "--"},
    {"tsc", "sHNI", "----"},
};

static void stream(struct fixture *f)
{
    struct addr_spec server;
    const char *why;

    setenv("TZ", "TST+2", 1); /* two hours west */
    tzset();
    fixture_request(f, "POST http://h/a/b?q=1 HTTP/1.1\r\nHost: h\r\n\r\n");
    fixture_item_str(f, RULES_HOSTNAME, "node.example");
    fixture_item_str(f, RULES_BE_NAME, "be-host");
    fixture_item_int(f, RULES_PID, 77);
    fixture_item_addr(f, RULES_SRC, "2001:db8::1");
    fixture_item_int(f, RULES_SRC_PORT, 1001);
    fixture_item_addr(f, RULES_DST, "10.0.0.2");
    fixture_item_int(f, RULES_DST_PORT, 443);
    fixture_item_addr(f, RULES_BC_SRC, "10.0.0.3");
    fixture_item_int(f, RULES_BC_SRC_PORT, 3003);
    f->has_item[RULES_BC_DST] = true;
    f->items[RULES_BC_DST].type = SAMPLE_ADDR;
    assert_int_equal(addr_parse("unix@/tmp/x", 0, &server, &why), 0);
    f->items[RULES_BC_DST].u.a = server.addr;
    fixture_item_str(f, RULES_SSL_FC_CIPHER, "CIPHER");
    fixture_item_str(f, RULES_SSL_FC_PROTOCOL, "TLSv1.3");
    f->ctx.tls = true;
    f->req_captures[0] = STR("one");
    f->ctx.req_capture_count = 2;
    f->res_captures[1] = STR("two");
    f->log = (struct rules_log){
        .accept_wall_us = 784111777123456,
        .request_wall_us = 784111778005000,
        .t_handshake_us = 14000,
        .t_idle_us = 15000,
        .t_request_us = 16000,
        .t_queue_us = -1,
        .t_connect_us = 12999,
        .t_response_us = 17000,
        .t_data_us = 13000,
        .t_active_us = 11000,
        .t_total_us = 18000,
        .t_user_us = 19000,
        .bytes_read = 1234,
        .bytes_uploaded = 567,
        .status = 503,
        .term = "sHNI",
        .act_conn = 1,
        .fe_conn = 2,
        .be_conn = 3,
        .srv_conn = 4,
        .retries = 5,
        .redispatched = true,
        .srv_queue = 7,
        .be_queue = 8,
        .request_counter = 6,
        .fe_name = STR("fe"),
        .be_name = STR("be"),
        .srv_name = STR("srv"),
        .fe_tls = true,
        .method = STR("POST"),
        .uri = STR("http://h/a/b?q=1"),
        .version = STR("HTTP/1.1"),
        .captured_cookie_req = STR("c=1"),
        .is_http = true,
        .pid = 4242,
        .log_counter = 9,
        .unique_id = STR("id-7"),
    };
}

static void every_alias_has_its_value(void **state)
{
    struct fixture *f = *state;

    stream(f);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *format = arena_printf(&f->config, "%%%s", rows[i].alias);
        const char *log = fixture_log(f, format);

        if (strcmp(log, rows[i].log) != 0)
            fail_msg("'%s' in a log: got '%s', expected '%s'", format, log, rows[i].log);
        /* What the host tells in the middle of a stream is the same, but for missing values. */
        if (strcmp(rows[i].log, "-") != 0 && !strstr(rows[i].alias, "l"))
            assert_string_equal(fixture_field(f, format), rows[i].log);
    }
    f->host.log = NULL;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *format = arena_printf(&f->config, "%%%s", rows[i].alias);
        const char *field = fixture_field(f, format);

        if (strcmp(field, rows[i].field) != 0)
            fail_msg("'%s' in a field: got '%s', expected '%s'", format, field, rows[i].field);
    }
}

static void all_aliases_are_tested(void **state)
{
    for (size_t i = 0; i < alias_count; i++) {
        bool used = false;

        for (size_t k = 0; k < COUNT_OF(rows); k++)
            used |= strcmp(rows[k].alias, alias_rows[i].name) == 0;
        if (!used)
            fail_msg("alias '%s' is not tested", alias_rows[i].name);
    }
}

static void nothing_happened_yet(void **state)
{
    static const struct expectation empty[] = {
        {"%ST", "-1"},
        {"%ts", "--"},
        {"%s", "<NOSRV>"},
        {"%b", "-"},
        {"%ci:%cp", "-:-"},
        {"%si:%sp", "-:-"},
        {"%sslv", "-"},
        {"%rc", "0"},
        {"%TR", "-1"},
        {"%Tq", "-1"},
        {"%hr", ""},
        {"%ID", "-"},
        {"%{+Q}ID", "\"\""},
        {"%{+Q}ci", "\"\""},
        {"%r", "<BADREQ>"},
        {"%HM", "<BADREQ>"},
        {"%HU", "<BADREQ>"},
        {"%HV", "<BADREQ>"},
        {"%{+Q}r", "\"<BADREQ>\""},
        {"%{+Q}HU", "\"<BADREQ>\""},
        {"%f", "-"},
        {"%ft", ""},
        {"%pid", "0"},
    };
    struct fixture *f = *state;

    f->log = (struct rules_log){.t_request_us = -1, .bad_request = true};
    f->ctx.tls = true;
    f->ctx.req = NULL;
    for (size_t i = 0; i < COUNT_OF(empty); i++)
        assert_string_equal(fixture_log(f, empty[i].input), empty[i].expected);
}

static void hexadecimal_where_it_makes_sense(void **state)
{
    static const struct expectation hex[] = {
        {"%{+X}ci", "20010DB8000000000000000000000001"},
        {"%{+X}fi", "0A000002"},
        {"%{+X}cp", "03E9"},
        {"%{+X}lc", "0009"},
        {"%{+X}rt", "0006"},
        {"%{+X}pid", "1092"},
        {"%{+X}Ts", "2EBC98A1"},
        {"%{+X}ms", "7B"},
        {"%{+X}ST", "503"},
    };
    struct fixture *f = *state;

    stream(f);
    for (size_t i = 0; i < COUNT_OF(hex); i++)
        assert_string_equal(fixture_log(f, hex[i].input), hex[i].expected);
}

static void requests_take_forms(void **state)
{
    static const struct {
        const char *uri, *version, *formatted; /* "%HP|%HPO|%HQ|%HV|%r" */
    } forms[] = {
        {"/", "HTTP/1.0", "/|/||HTTP/1.0|POST / HTTP/1.0"},
        {"/?", "HTTP/1.1", "/|/|?|HTTP/1.1|POST /? HTTP/1.1"},
        {"*", "HTTP/1.1", "*|||HTTP/1.1|POST * HTTP/1.1"},
        {"/a", "", "/a|/a||HTTP/0.9|POST /a"},
        {"/a b\"", "HTTP/1.1", "/a b#22|/a b#22||HTTP/1.1|POST /a b#22 HTTP/1.1"},
    };
    struct fixture *f = *state;

    stream(f);
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        f->log.uri = str_of(forms[i].uri);
        f->log.version = str_of(forms[i].version);
        assert_string_equal(fixture_field(f, "%HP|%HPO|%HQ|%HV|%r"), forms[i].formatted);
    }
    /* Without a log, the message's version is spelled. */
    f->host.log = NULL;
    f->req.version = 10;
    assert_string_equal(fixture_field(f, "%HV"), "HTTP/1.0");
    f->req.version = 20;
    assert_string_equal(fixture_field(f, "%HV"), "HTTP/2.0");
}

static void captures_may_be_quoted(void **state)
{
    struct fixture *f = *state;

    stream(f);
    assert_string_equal(fixture_log(f, "%{+Q}hr %{+Q}hs"), "\"{one|}\" \"{|two}\"");
    assert_string_equal(fixture_log(f, "%{+Q}hrl %{+Q}hsl"), "\"one\" \"\" \"\" \"two\"");
    f->log.bad_request = true;
    assert_string_equal(fixture_log(f, "%hr|%hs|%hrl"), "||");
    f->log.bad_request = false;
    /* The log's own counts stand in for missing ones. */
    f->ctx.req_capture_count = 0;
    f->log.req_capture_count = 1;
    assert_string_equal(fixture_log(f, "%hr"), "{one}");
}

/* The built-in formats, as in HAProxy's manual. */
static void built_in_formats(void **state)
{
    struct fixture *f = *state;

    stream(f);
    fixture_item_int(f, RULES_FC_ERR, 0);
    fixture_item_str(f, RULES_FC_ERR_STR, "Success");
    fixture_item_str(f, RULES_SO_NAME, "sock-1");
    fixture_item_bool(f, RULES_STRM_IS_HTTP, true);
    fixture_item_str(f, RULES_SSL_FC_SNI, "sni");
    assert_string_equal(
        fixture_log(f, rules_fmt_http),
        "2001:db8::1:1001 [06/Nov/1994:06:49:38.005] fe~ be/srv 16/-1/12/17/11 503 1234 c=1 - "
        "sHNI 1/2/3/4/+5 7/8 {one|} {|two} \"POST http://h/a/b?q=1 HTTP/1.1\"");
    assert_string_equal(
        fixture_log(f, rules_fmt_tcp),
        "2001:db8::1:1001 [06/Nov/1994:06:49:37.123] fe~ be/srv -1/12/18 1234 sH 1/2/3/4/+5 7/8");
    assert_string_equal(
        fixture_log(f, rules_fmt_clf),
        "2001:db8::1 - - [06/Nov/1994:08:49:38 +0000] \"POST http://h/a/b?q=1 HTTP/1.1\" 503 1234 "
        "\"\" \"\" 1001 123 \"fe~\" \"be\" \"srv\" 16 -1 12 17 11 sHNI 1 2 3 4 +5 7 8 \"c=1\" \"\" "
        "\"one\" \"\" \"\" \"two\"");
    assert_string_equal(fixture_log(f, rules_fmt_default),
                        "Connect from 2001:db8::1:1001 to 10.0.0.2:443 (fe/HTTP)");
    assert_string_equal(fixture_log(f, rules_fmt_error),
                        "2001:db8::1:1001 [06/Nov/1994:06:49:37.123] fe/sock-1: Success");
    assert_non_null(strstr(fixture_log(f, rules_fmt_https), " 0/-/-/-/- sni/TLSv1.3/CIPHER"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_alias_has_its_value), TEST(all_aliases_are_tested),
        TEST(nothing_happened_yet),      TEST(hexadecimal_where_it_makes_sense),
        TEST(requests_take_forms),       TEST(captures_may_be_quoted),
        TEST(built_in_formats),
    };

    return cmocka_run_group_tests_name("rules/logalias", tests, NULL, NULL);
}
