#include "harness.h"

#include "rules/tables.h"

static void messages(struct fixture *f)
{
    fixture_request(
        f,
        "GET / HTTP/1.1\r\nX-M: one, two, \"th,ree\", , five\r\nHost: h\r\nx-m: six\r\nX-N: 42abc\r\n"
        "X-IP: nope, 10.1.2.3:80, [2001:db8::1]\r\nX-E:\r\n\r\n");
    fixture_response(f, "HTTP/1.1 200 OK\r\nX-R: a, b\r\nX-R: c\r\nAge: 17\r\nX-IP: ::1\r\n\r\n");
}

static const struct expectation rows[] = {
    {"req.hdr(x-m)", "str:six"},
    {"req.hdr(x-m,1)", "str:one"},
    {"req.hdr(X-M,2)", "str:two"},
    {"req.hdr(x-m,3)", "str:\"th,ree\""},
    {"req.hdr(x-m,4)", "str:"},
    {"req.hdr(x-m,5)", "str:five"},
    {"req.hdr(x-m,6)", "str:six"},
    {"req.hdr(x-m,7)", "<none>"},
    {"req.hdr(x-m,-1)", "str:six"},
    {"req.hdr(x-m,-2)", "str:five"},
    {"req.hdr(x-m,-6)", "str:one"},
    {"req.hdr(x-m,-7)", "<none>"},
    {"req.hdr(x-m,0)", "str:six"},
    {"req.hdr(x-e)", "str:"},
    {"req.hdr(x-none)", "<none>"},
    {"req.hdr", "<none>"},
    {"req.hdr()", "str:"},
    {"req.hdr_cnt(x-m)", "int:6"},
    {"req.hdr_cnt(x-none)", "int:0"},
    {"req.hdr_cnt", "int:12"},
    {"req.hdr_val(x-n)", "int:42"},
    {"req.hdr_val(x-none)", "<none>"},
    {"req.hdr_ip(x-ip,2)", "addr:10.1.2.3"},
    {"req.hdr_ip(x-ip)", "addr:2001:db8::1"},
    {"req.hdr_ip(x-ip,1)", "<none>"},
    {"req.fhdr(x-m,1)", "str:one, two, \"th,ree\", , five"},
    {"req.fhdr(x-m)", "str:six"},
    {"req.fhdr(x-m,-2)", "str:one, two, \"th,ree\", , five"},
    {"req.fhdr_cnt(x-m)", "int:2"},
    {"hdr_cnt(x-m)", "int:6"},
    {"hdr_ip(x-ip)", "addr:2001:db8::1"},
    {"hdr_val(x-n)", "int:42"},
    {"hdr(x-r)", "str:c"},
    {"hdr(x-m)", "<none>"},
    {"res.hdr(x-r,2)", "str:b"},
    {"res.hdr_cnt(x-r)", "int:3"},
    {"res.hdr_ip(x-ip)", "addr:::1"},
    {"res.hdr_val(age)", "int:17"},
    {"res.fhdr(x-r,1)", "str:a, b"},
    {"res.fhdr_cnt(x-r)", "int:2"},
    {"shdr(x-r)", "str:c"},
    {"shdr_cnt(x-r)", "int:3"},
    {"shdr_ip(x-ip)", "addr:::1"},
    {"shdr_val(age)", "int:17"},
};

static void fetches_answer(void **state)
{
    messages(*state);
    fixture_check_typed(*state, rows, COUNT_OF(rows));
    fixture_check_fetches_used(&fetch_header_table, rows, COUNT_OF(rows));
}

static void without_messages_they_fail(void **state)
{
    struct fixture *f = *state;

    f->ctx.req = f->ctx.res = NULL;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_string_equal(fixture_typed(f, rows[i].input), "<none>");
}

static void hdr_follows_the_stage(void **state)
{
    struct fixture *f = *state;

    messages(f);
    f->ctx.response_stage = false;
    assert_string_equal(fixture_eval(f, "hdr(x-m)"), "six");
    assert_string_equal(fixture_eval(f, "hdr(x-r)"), "<none>");
}

/* What an iterating caller (an ACL) gets, in order. */
static const char *all_values(struct fixture *f, const char *expression)
{
    struct buf b = {arena_zalloc(&f->config, 1024, 1), 1023, 0, 0};
    struct rules_expr *e = fixture_expr(f, expression);
    struct fetch_iter it = {.all = true};
    struct sample s;

    while (expr_next(e, &f->ctx, &it, &s)) {
        assert_true(value_cast(&s, VALUE_STR, &f->request));
        buf_printf(&b, "<%.*s>", STR_FMT(s.u.s));
        if (!it.more)
            break;
    }
    return b.mem;
}

static void all_values_are_visited_in_order(void **state)
{
    struct fixture *f = *state;

    messages(f);
    assert_string_equal(all_values(f, "req.hdr(x-m)"), "<one><two><\"th,ree\"><><five><six>");
    assert_string_equal(all_values(f, "req.fhdr(x-m)"), "<one, two, \"th,ree\", , five><six>");
    assert_string_equal(all_values(f, "req.hdr(x-m,2)"), "<two>");
    assert_string_equal(all_values(f, "req.hdr_ip(x-ip)"), "<10.1.2.3><2001:db8::1>");
    assert_string_equal(all_values(f, "req.hdr_val(x-m)"), "<0><0><0><0><0><0>");
    assert_string_equal(all_values(f, "req.hdr(x-none)"), "");
    fixture_request(f, "GET / HTTP/1.1\r\nA: ,x,\r\n\r\n");
    assert_string_equal(all_values(f, "req.hdr(a)"), "<><x><>");
}

static void many_occurrences_are_counted_from_the_end(void **state)
{
    struct fixture *f = *state;

    fixture_request(f, "GET / HTTP/1.1\r\nA: 1,2,3,4,5,6,7,8,9,10,11,12,13\r\n\r\n");
    assert_string_equal(fixture_eval(f, "req.hdr(a,-10)"), "4");
    assert_string_equal(fixture_eval(f, "req.hdr(a,-1)"), "13");
    assert_string_equal(fixture_eval(f, "req.hdr(a)"), "13");
    fixture_expr_fails(f, "req.hdr(a,-11)", "the occurrence must be -10 or more");
}

static void blanks_that_rules_left_are_trimmed(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(http_msg_add(&f->req, STR("X-S"), STR("  a b  ")), 0);
    assert_string_equal(fixture_eval(f, "req.fhdr(x-s)"), "a b");
    assert_string_equal(fixture_eval(f, "req.hdr(x-s)"), "a b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(fetches_answer),
        TEST(without_messages_they_fail),
        TEST(hdr_follows_the_stage),
        TEST(all_values_are_visited_in_order),
        TEST(many_occurrences_are_counted_from_the_end),
        TEST(blanks_that_rules_left_are_trimmed),
    };

    return cmocka_run_group_tests_name("rules/fetch_header", tests, NULL, NULL);
}
