#include "harness.h"

#include "rules/tables.h"

static const struct expectation rows[] = {
    {"fc.timer.handshake", "int:1"},
    {"fc.timer.total", "int:100"},
    {"bc.timer.connect", "int:5"},
    {"req.timer.idle", "int:2"},
    {"req.timer.hdr", "int:3"},
    {"req.timer.tq", "int:6"},
    {"req.timer.queue", "int:4"},
    {"res.timer.hdr", "int:6"},
    {"res.timer.data", "int:7"},
    {"txn.timer.total", "int:97"},
    {"txn.timer.user", "int:98"},
    {"bytes_in", "int:1000"},
    {"bytes_out", "int:2000"},
    {"req.bytes_in", "int:1000"},
    {"res.bytes_in", "int:2000"},
    {"bc_be_queue", "int:1"},
    {"bc_srv_queue", "int:2"},
    {"txn.conn_retries", "int:3"},
    {"txn.id32", "int:77"},
    {"txn.redispatched", "bool:true"},
    {"txn.sess_term_state", "str:cD"},
    {"accept_date", "int:784111777"},
    {"accept_date(ms)", "int:784111777123"},
    {"accept_date(us)", "int:784111777123456"},
    {"accept_date(s)", "int:784111777"},
    {"request_date", "int:784111778"},
    {"capture.req.method", "str:GET"},
    {"capture.req.uri", "str:/p?q=1"},
    {"capture.req.ver", "str:HTTP/1.1"},
    {"capture.res.ver", "str:HTTP/1.0"},
};

static void log_facts(struct fixture *f)
{
    struct rules_log *l = &f->log;

    fixture_request(f, "GET /p?q=1 HTTP/1.1\r\n\r\n");
    fixture_response(f, "HTTP/1.0 200 OK\r\n\r\n");
    l->t_handshake_us = 1999;
    l->t_idle_us = 2000;
    l->t_request_us = 3000;
    l->t_queue_us = 4000;
    l->t_connect_us = 5000;
    l->t_response_us = 6000;
    l->t_data_us = 7000;
    l->t_active_us = 97000;
    l->t_user_us = 98000;
    l->t_total_us = 100000;
    l->bytes_uploaded = 1000;
    l->bytes_read = 2000;
    l->be_queue = 1;
    l->srv_queue = 2;
    l->retries = 3;
    l->request_counter = 77;
    l->redispatched = true;
    memcpy(l->term, "cD--", 4);
    l->accept_wall_us = 784111777123456;
    l->request_wall_us = 784111778000000;
}

static void fetches_answer(void **state)
{
    log_facts(*state);
    fixture_check_typed(*state, rows, COUNT_OF(rows));
    fixture_check_fetches_used(&fetch_log_table, rows, COUNT_OF(rows));
}

/* From the context as well as from the host. */
static void the_context_comes_first(void **state)
{
    struct fixture *f = *state;
    struct rules_log other = {.retries = 9};

    log_facts(f);
    f->ctx.log = &other;
    assert_string_equal(fixture_typed(f, "txn.conn_retries"), "int:9");
}

static void without_log_facts_they_fail(void **state)
{
    struct fixture *f = *state;

    f->host.log = NULL;
    f->ctx.res = NULL;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_string_equal(fixture_typed(f, rows[i].input), "<none>");
    f->ctx.host = NULL;
    assert_string_equal(fixture_typed(f, "bytes_in"), "<none>");
}

static void what_never_came_is_minus_one(void **state)
{
    struct fixture *f = *state;

    f->log.t_connect_us = f->log.t_request_us = -1;
    assert_string_equal(fixture_typed(f, "bc.timer.connect"), "int:-1");
    assert_string_equal(fixture_typed(f, "req.timer.tq"), "int:-1");
}

static void a_bad_request_has_no_parts(void **state)
{
    struct fixture *f = *state;

    f->log.bad_request = true;
    assert_string_equal(fixture_eval(f, "capture.req.uri"), "<none>");
    assert_string_equal(fixture_eval(f, "capture.req.method"), "<none>");
    f->log.bad_request = false;
    f->log.is_http = false;
    assert_string_equal(fixture_eval(f, "capture.req.ver"), "<none>");
}

static void arguments_are_checked(void **state)
{
    fixture_expr_fails(*state, "accept_date(h)", "expects 's', 'ms' or 'us', got 'h'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(fetches_answer),
        TEST(the_context_comes_first),
        TEST(without_log_facts_they_fail),
        TEST(what_never_came_is_minus_one),
        TEST(a_bad_request_has_no_parts),
        TEST(arguments_are_checked),
    };

    return cmocka_run_group_tests_name("rules/fetch_log", tests, NULL, NULL);
}
