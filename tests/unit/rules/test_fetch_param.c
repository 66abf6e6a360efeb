#include "harness.h"

#include "rules/tables.h"

static const struct expectation rows[] = {
    {"url_param(a)", "str:1"},        {"url_param(b)", "str:2"},
    {"url_param(A)", "str:3"},        {"url_param(ab)", "<none>"},
    {"url_param(B)", "<none>"},       {"url_param(B,,i)", "str:2"},
    {"url_param(c)", "str:9"},        {"url_param(e)", "str:"},
    {"url_param(f)", "<none>"},       {"url_param", "str:1"},
    {"url_param(x,;)", "<none>"},     {"urlp(b)", "str:2"},
    {"urlp_val(c)", "int:9"},         {"urlp_val(nope)", "<none>"},
    {"req.body_param(p)", "str:v w"}, {"req.body_param(P,i)", "str:v w"},
    {"req.body_param(q)", "str:7"},   {"req.body_param(nope)", "<none>"},
};

static void fetches_answer(void **state)
{
    struct fixture *f = *state;

    fixture_request(f, "POST /p?a=1&b=2&A=3&b=4;c=9&e=&f HTTP/1.1\r\n\r\n");
    fixture_item_bin(f, RULES_PAYLOAD_REQ, "p=v w&q=7", 9);
    fixture_check_typed(f, rows, COUNT_OF(rows));
    fixture_check_fetches_used(&fetch_param_table, rows, COUNT_OF(rows));
}

static void without_parameters_they_fail(void **state)
{
    struct fixture *f = *state;

    fixture_request(f, "GET /p HTTP/1.1\r\n\r\n");
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_string_equal(fixture_typed(f, rows[i].input), "<none>");
    f->ctx.req = NULL;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_string_equal(fixture_typed(f, rows[i].input), "<none>");
}

static void other_delimiters_work(void **state)
{
    struct fixture *f = *state;

    fixture_request(f, "GET /p;a=1;b=2?c=3 HTTP/1.1\r\n\r\n");
    assert_string_equal(fixture_eval(f, "url_param(b,;)"), "2?c=3");
    assert_string_equal(fixture_eval(f, "url_param(a,;)"), "1");
    assert_string_equal(fixture_eval(f, "url_param(c)"), "3");
}

static void conditions_try_every_value(void **state)
{
    struct fixture *f = *state;

    fixture_request(f, "GET /p?a=1&b=2&a=3 HTTP/1.1\r\n\r\n");
    assert_true(fixture_cond(f, "if { urlp(a) 1 }"));
    assert_true(fixture_cond(f, "if { urlp(a) 3 }"));
    assert_false(fixture_cond(f, "if { urlp(a) 2 }"));
    assert_true(fixture_cond(f, "if { urlp() 2 }"));
    assert_true(fixture_cond(f, "if { urlp_val(a) ge 3 }"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(fetches_answer),
        TEST(without_parameters_they_fail),
        TEST(other_delimiters_work),
        TEST(conditions_try_every_value),
    };

    return cmocka_run_group_tests_name("rules/fetch_param", tests, NULL, NULL);
}
