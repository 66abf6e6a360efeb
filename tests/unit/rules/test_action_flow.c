#include "harness.h"

#include "rules/action.h"

#include "base/logsink.h"

static void verdicts_are_given(void **state)
{
    static const struct {
        enum rules_hook hook;
        const char *rule;
        enum rules_verdict verdict;
    } rows[] = {
        {RULES_TCP_REQUEST_CONNECTION, "accept", RULES_ALLOW},
        {RULES_TCP_REQUEST_CONNECTION, "reject", RULES_REJECT},
        {RULES_TCP_REQUEST_CONNECTION, "silent-drop", RULES_SILENT_DROP},
        {RULES_TCP_REQUEST_SESSION, "accept", RULES_ALLOW},
        {RULES_TCP_REQUEST_SESSION, "reject", RULES_REJECT},
        {RULES_TCP_REQUEST_CONTENT, "accept", RULES_ALLOW},
        {RULES_TCP_REQUEST_CONTENT, "reject", RULES_REJECT},
        {RULES_TCP_REQUEST_CONTENT, "silent-drop rst-ttl 5", RULES_SILENT_DROP},
        {RULES_TCP_REQUEST_CONTENT, "switch-mode http", RULES_SWITCH_HTTP},
        {RULES_TCP_RESPONSE_CONTENT, "accept", RULES_ALLOW},
        {RULES_TCP_RESPONSE_CONTENT, "reject", RULES_REJECT},
        {RULES_HTTP_REQUEST, "allow", RULES_ALLOW},
        {RULES_HTTP_REQUEST, "reject", RULES_REJECT},
        {RULES_HTTP_REQUEST, "silent-drop", RULES_SILENT_DROP},
        {RULES_HTTP_RESPONSE, "allow", RULES_ALLOW},
        {RULES_HTTP_RESPONSE, "silent-drop", RULES_SILENT_DROP},
        {RULES_HTTP_AFTER_RESPONSE, "allow", RULES_ALLOW},
        {RULES_HTTP_REQUEST, "allow if FALSE", RULES_CONTINUE},
    };
    struct fixture *f = *state;
    struct rules_outcome out;

    fixture_response(f, "HTTP/1.1 200 OK\r\n\r\n");
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_int_equal(fixture_run(f, rows[i].hook, rows[i].rule, &out), rows[i].verdict);
}

static void the_mode_may_switch(void **state)
{
    struct fixture *f = *state;
    struct rules_outcome out;

    fixture_run(f, RULES_TCP_REQUEST_CONTENT, "switch-mode http proto h1", &out);
    assert_false(out.switch_proto_h2);
    fixture_run(f, RULES_TCP_REQUEST_CONTENT, "switch-mode http proto h2", &out);
    assert_true(out.switch_proto_h2);
    f->c.is_frontend = false;
    fixture_rule_fails(f, RULES_TCP_REQUEST_CONTENT, "switch-mode http",
                       "not available in a backend");
}

static void streams_are_adjusted(void **state)
{
    struct fixture *f = *state;
    struct rules_outcome out;

    assert_int_equal(fixture_run(f, RULES_HTTP_REQUEST, "set-log-level err", &out), RULES_CONTINUE);
    assert_true(out.log_level_set);
    assert_int_equal(out.log_level, logsink_level("err"));
    fixture_run(f, RULES_TCP_REQUEST_CONTENT, "set-log-level silent", &out);
    assert_int_equal(out.log_level, -1);
    fixture_run(f, RULES_HTTP_REQUEST, "set-nice -5", &out);
    assert_int_equal(out.nice, -5);
    fixture_run(f, RULES_HTTP_REQUEST, "set-nice 5000", &out);
    assert_int_equal(out.nice, 1024);
    fixture_run(f, RULES_HTTP_REQUEST, "set-nice -5000", &out);
    assert_int_equal(out.nice, -1024);
    fixture_run(f, RULES_HTTP_REQUEST, "set-retries 3", &out);
    assert_int_equal(out.retries, 3);
    fixture_run(f, RULES_HTTP_REQUEST, "set-retries int(4)", &out);
    assert_int_equal(out.retries, 4);
    fixture_run(f, RULES_HTTP_REQUEST, "set-retries int(400)", &out);
    assert_int_equal(out.retries, -1);
    fixture_run(f, RULES_HTTP_REQUEST, "set-retries var(txn.none)", &out);
    assert_int_equal(out.retries, -1);
    fixture_run(f, RULES_HTTP_REQUEST, "disable-l7-retry", &out);
    assert_true(out.disable_l7_retry);
    fixture_run(f, RULES_HTTP_REQUEST, "strict-mode off", &out);
}

static void timeouts_are_set(void **state)
{
    struct fixture *f = *state;
    struct rules_outcome out;

    fixture_run(f, RULES_HTTP_REQUEST, "set-timeout server 5s", &out);
    assert_int_equal(out.timeout_server_us, 5000000);
    assert_int_equal(out.timeout_client_us, -1);
    fixture_run(f, RULES_HTTP_REQUEST, "set-timeout client 250", &out);
    assert_int_equal(out.timeout_client_us, 250000);
    fixture_run(f, RULES_HTTP_REQUEST, "set-timeout tunnel 1m", &out);
    assert_int_equal(out.timeout_tunnel_us, 60000000);
    fixture_run(f, RULES_HTTP_REQUEST, "set-timeout connect 1s", &out);
    assert_int_equal(out.timeout_connect_us, 1000000);
    fixture_run(f, RULES_HTTP_REQUEST, "set-timeout queue 1s", &out);
    assert_int_equal(out.timeout_queue_us, 1000000);
    fixture_run(f, RULES_HTTP_REQUEST, "set-timeout tarpit 1s", &out);
    assert_int_equal(out.timeout_tarpit_us, 1000000);
    fixture_run(f, RULES_HTTP_REQUEST, "set-timeout server int(7),mul(1000)", &out);
    assert_int_equal(out.timeout_server_us, 7000000);
    fixture_run(f, RULES_HTTP_REQUEST, "set-timeout server var(txn.none)", &out);
    assert_int_equal(out.timeout_server_us, -1);
    fixture_run(f, RULES_HTTP_REQUEST, "set-timeout server int(-5)", &out);
    assert_int_equal(out.timeout_server_us, -1);
    fixture_run(f, RULES_HTTP_REQUEST, "set-timeout server int(9223372036854775807)", &out);
    assert_int_equal(out.timeout_server_us, -1);
}

static void addresses_are_told_to_the_host(void **state)
{
    struct fixture *f = *state;
    struct rules_outcome out;

    fixture_request(f, "GET / HTTP/1.1\r\nX-IP: 192.0.2.7\r\nX-Port: 4000\r\nX-Bad: nope\r\n\r\n");
    fixture_run(f, RULES_HTTP_REQUEST, "set-src hdr(x-ip)", &out);
    assert_true(f->was_set[RULES_SRC]);
    assert_int_equal(f->set_items[RULES_SRC].type, SAMPLE_ADDR);
    fixture_run(f, RULES_HTTP_REQUEST, "set-src-port hdr(x-port)", &out);
    assert_int_equal(f->set_items[RULES_SRC_PORT].u.i, 4000);
    fixture_run(f, RULES_TCP_REQUEST_CONNECTION, "set-dst ipv4(10.0.0.9)", &out);
    assert_true(f->was_set[RULES_DST]);
    fixture_run(f, RULES_TCP_REQUEST_SESSION, "set-dst-port int(65536)", &out);
    assert_false(f->was_set[RULES_DST_PORT]);
    fixture_run(f, RULES_TCP_REQUEST_SESSION, "set-dst-port int(65535)", &out);
    assert_int_equal(f->set_items[RULES_DST_PORT].u.i, 65535);
    f->was_set[RULES_SRC] = false;
    fixture_run(f, RULES_HTTP_REQUEST, "set-src hdr(x-bad)", &out);
    fixture_run(f, RULES_HTTP_REQUEST, "set-src hdr(none)", &out);
    assert_false(f->was_set[RULES_SRC]);
    f->host.set = NULL;
    assert_int_equal(fixture_run(f, RULES_HTTP_REQUEST, "set-src hdr(x-ip)", &out), RULES_CONTINUE);
}

static void mistakes_are_explained(void **state)
{
    static const struct {
        enum rules_hook hook;
        const char *line, *part;
    } wrong[] = {
        {RULES_TCP_REQUEST_CONTENT, "silent-drop rst-ttl", "1 to 255"},
        {RULES_TCP_REQUEST_CONTENT, "silent-drop rst-ttl 0", "1 to 255"},
        {RULES_TCP_REQUEST_CONTENT, "silent-drop rst-ttl 256", "1 to 255"},
        {RULES_TCP_REQUEST_CONTENT, "switch-mode", "'http'"},
        {RULES_TCP_REQUEST_CONTENT, "switch-mode tcp", "expects 'http', found 'tcp'"},
        {RULES_TCP_REQUEST_CONTENT, "switch-mode http proto", "a protocol after 'proto'"},
        {RULES_TCP_REQUEST_CONTENT, "switch-mode http proto h3", "found 'h3'"},
        {RULES_HTTP_REQUEST, "set-log-level", "a log level"},
        {RULES_HTTP_REQUEST, "set-log-level eror", "did you mean"},
        {RULES_HTTP_REQUEST, "set-nice", "-1024 to 1024"},
        {RULES_HTTP_REQUEST, "set-nice x", "found 'x'"},
        {RULES_HTTP_REQUEST, "set-retries", "0 to 100"},
        {RULES_HTTP_REQUEST, "set-retries 101", "0 to 100"},
        {RULES_HTTP_REQUEST, "set-retries nosuch", "nosuch"},
        {RULES_HTTP_REQUEST, "strict-mode", "'on' or 'off'"},
        {RULES_HTTP_REQUEST, "strict-mode maybe", "found 'maybe'"},
        {RULES_HTTP_REQUEST, "set-timeout", "the name of a timeout"},
        {RULES_HTTP_REQUEST, "set-timeout check 5s", "found 'check'"},
        {RULES_HTTP_REQUEST, "set-timeout server", "a time or an expression"},
        {RULES_HTTP_REQUEST, "set-timeout server 0", "not 0"},
        {RULES_HTTP_REQUEST, "set-timeout server 5x", "a time"},
        {RULES_HTTP_REQUEST, "set-timeout server nosuch", "nosuch"},
        {RULES_HTTP_REQUEST, "set-src", "a sample expression"},
        {RULES_HTTP_REQUEST, "set-dst-port nosuch", "nosuch"},
        {RULES_HTTP_REQUEST, "accept", "not available"},
        {RULES_TCP_REQUEST_CONTENT, "allow", "not available"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        fixture_rule_fails(f, wrong[i].hook, wrong[i].line, wrong[i].part);
    f->c.is_backend = false;
    fixture_rule_fails(f, RULES_HTTP_REQUEST, "set-timeout server 5s", "with a backend");
    f->c.is_backend = true;
    f->c.is_frontend = false;
    fixture_rule_fails(f, RULES_HTTP_REQUEST, "set-timeout client 5s", "with a frontend");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(verdicts_are_given),
        TEST(the_mode_may_switch),
        TEST(streams_are_adjusted),
        TEST(timeouts_are_set),
        TEST(addresses_are_told_to_the_host),
        TEST(mistakes_are_explained),
    };

    return cmocka_run_group_tests_name("rules/action_flow", tests, NULL, NULL);
}
