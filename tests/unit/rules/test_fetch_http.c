#include "harness.h"

#include "rules/tables.h"

static const struct expectation rows[] = {
    {"method", "str:GET"},
    {"url", "str:/a/b.c?x=1&y"},
    {"path", "str:/a/b.c"},
    {"pathq", "str:/a/b.c?x=1&y"},
    {"query", "str:x=1&y"},
    {"query(with_qm)", "str:?x=1&y"},
    {"base", "str:www.example.com/a/b.c"},
    {"baseq", "str:www.example.com/a/b.c?x=1&y"},
    {"base32", "int:3285344848"},
    {"base32+src", "bin:C3D262500A000001"},
    {"url32", "int:1746524796"},
    {"url32+src", "bin:6819DA7C0A000001"},
    {"url_ip", "<none>"},
    {"url_port", "<none>"},
    {"req.ver", "str:1.1"},
    {"req_ver", "str:1.1"},
    {"res.ver", "str:1.0"},
    {"resp_ver", "str:1.0"},
    {"status", "int:404"},
    {"server_status", "int:404"},
    {"txn.status", "int:404"},
    {"req.proto_http", "bool:true"},
    {"req_proto_http", "bool:true"},
    {"req.hdrs", "str:host: www.example.com\r\nx-a: B\r\n\r\n"},
    {"res.hdrs", "str:server: S\r\n\r\n"},
    {"req.hdr_names", "str:host,x-a"},
    {"req.hdr_names(;)", "str:host;x-a"},
    {"res.hdr_names", "str:server"},
    {"http_first_req", "bool:true"},
    {"unique-id", "str:id-1"},
};

static void messages(struct fixture *f)
{
    fixture_request(f, "GET /a/b.c?x=1&y HTTP/1.1\r\nHost: www.example.com\r\nX-A: B\r\n\r\n");
    fixture_response(f, "HTTP/1.0 404 Not Found\r\nServer: S\r\n\r\n");
    fixture_item_addr(f, RULES_SRC, "10.0.0.1");
    fixture_item_bool(f, RULES_HTTP_FIRST_REQ, true);
    fixture_item_str(f, RULES_UNIQUE_ID, "id-1");
}

static void fetches_answer(void **state)
{
    messages(*state);
    fixture_check_typed(*state, rows, COUNT_OF(rows));
    fixture_check_fetches_used(&fetch_http_table, rows, COUNT_OF(rows));
}

static void without_messages_they_fail(void **state)
{
    struct fixture *f = *state;

    f->ctx.req = f->ctx.res = NULL;
    f->log.method = STR_NULL;
    f->log.status = 0;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        /* What was answered is known without a message. */
        if (strcmp(rows[i].input, "txn.status") == 0)
            assert_string_equal(fixture_typed(f, rows[i].input), "int:-1");
        else
            assert_string_equal(fixture_typed(f, rows[i].input), "<none>");
    }
}

static void targets_come_in_forms(void **state)
{
    static const struct {
        const char *target;
        struct expectation row;
    } forms[] = {
        {"/", {"path", "str:/"}},
        {"/", {"query", "<none>"}},
        {"/?", {"query", "str:"}},
        {"/?", {"query(with_qm)", "str:"}},
        {"*", {"path", "<none>"}},
        {"*", {"pathq", "<none>"}},
        {"*", {"url", "str:*"}},
        {"*", {"base", "str:h"}},
        {"http://10.1.2.3:8080/x?y", {"path", "str:/x"}},
        {"http://10.1.2.3:8080/x?y", {"pathq", "str:/x?y"}},
        {"http://10.1.2.3:8080/x?y", {"url_ip", "addr:10.1.2.3"}},
        {"http://10.1.2.3:8080/x?y", {"url_port", "int:8080"}},
        {"http://10.1.2.3/x", {"url_port", "int:80"}},
        {"https://10.1.2.3/x", {"url_port", "int:443"}},
        {"http://10.1.2.3:99999/x", {"url_port", "<none>"}},
        {"http://host/x", {"url_ip", "<none>"}},
        {"http://host", {"path", "<none>"}},
        {"http://host", {"base", "str:h"}},
        {"http://host?a", {"base", "str:h"}},
        {"http://host?a", {"baseq", "str:h"}},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        fixture_request(
            f, arena_printf(&f->config, "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", forms[i].target));
        fixture_check_typed(f, &forms[i].row, 1);
    }
}

static void base_without_host_is_the_path(void **state)
{
    struct fixture *f = *state;

    fixture_request(f, "GET /p?q HTTP/1.1\r\nX: y\r\n\r\n");
    assert_string_equal(fixture_eval(f, "base"), "/p");
    assert_string_equal(fixture_eval(f, "baseq"), "/p?q");
    fixture_request(f, "OPTIONS * HTTP/1.1\r\nX: y\r\n\r\n");
    assert_string_equal(fixture_eval(f, "base"), "<none>");
    /* The hash of nothing. */
    assert_string_equal(fixture_typed(f, "base32"), "int:2874071335");
}

static void versions_are_spelled(void **state)
{
    struct fixture *f = *state;
    static const struct {
        uint8_t version;
        const char *text;
    } versions[] = {{9, "0.9"}, {10, "1.0"}, {11, "1.1"}, {20, "2.0"}, {30, "3.0"}};

    for (size_t i = 0; i < COUNT_OF(versions); i++) {
        f->req.version = versions[i].version;
        assert_string_equal(fixture_eval(f, "req.ver"), versions[i].text);
    }
}

static void the_method_outlives_the_request(void **state)
{
    struct fixture *f = *state;

    fixture_request(f, "POST / HTTP/1.1\r\n\r\n");
    f->ctx.req = NULL;
    assert_string_equal(fixture_eval(f, "method"), "POST");
    f->log.status = 301;
    assert_string_equal(fixture_typed(f, "txn.status"), "int:301");
    f->host.log = NULL;
    assert_string_equal(fixture_eval(f, "method"), "<none>");
    assert_string_equal(fixture_typed(f, "txn.status"), "<none>");
}

static void arguments_are_checked(void **state)
{
    fixture_expr_fails(*state, "query(nope)", "unknown option 'nope', expected 'with_qm'");
    fixture_expr_fails(*state, "path(x)", "does not take arguments");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(fetches_answer),        TEST(without_messages_they_fail),
        TEST(targets_come_in_forms), TEST(base_without_host_is_the_path),
        TEST(versions_are_spelled),  TEST(the_method_outlives_the_request),
        TEST(arguments_are_checked),
    };

    return cmocka_run_group_tests_name("rules/fetch_http", tests, NULL, NULL);
}
