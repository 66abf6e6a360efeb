#include "harness.h"

#include "rules/tables.h"

static void messages(struct fixture *f)
{
    fixture_request(
        f,
        "GET / HTTP/1.1\r\nCookie: SID=abc; other=\"q;x\"; SID=def; $Version=1; empty=; n=12x\r\n"
        "Cookie: last=z, SID=ghi\r\n\r\n");
    fixture_response(
        f,
        "HTTP/1.1 200 OK\r\nSet-Cookie: A=1; path=/; B=2\r\nSet-Cookie: C=3\r\nSet-Cookie: A=4\r\n\r\n");
}

static const struct expectation rows[] = {
    {"req.cook(SID)", "str:ghi"},
    {"req.cook(other)", "str:\"q;x\""},
    {"req.cook(empty)", "str:"},
    {"req.cook(sid)", "<none>"},
    {"req.cook(nope)", "<none>"},
    {"req.cook($Version)", "<none>"},
    {"req.cook", "str:abc"},
    {"req.cook_cnt(SID)", "int:3"},
    {"req.cook_cnt", "int:7"},
    {"req.cook_val(n)", "int:12"},
    {"req.cook_val(nope)", "<none>"},
    {"req.cook_names", "str:SID,other,SID,empty,n,last,SID"},
    {"req.cook_names(+)", "str:SID+other+SID+empty+n+last+SID"},
    {"cook(last)", "str:z"},
    {"cook_cnt(last)", "int:1"},
    {"cook_val(n)", "int:12"},
    {"cookie(C)", "str:3"},
    {"res.cook(A)", "str:4"},
    {"res.cook(B)", "<none>"},
    {"res.cook", "str:1"},
    {"res.cook_cnt(A)", "int:2"},
    {"res.cook_cnt", "int:3"},
    {"res.cook_val(C)", "int:3"},
    {"res.cook_names", "str:A,C,A"},
    {"scook(C)", "str:3"},
    {"scook_cnt(A)", "int:2"},
    {"scook_val(C)", "int:3"},
    {"set-cookie(A)", "str:4"},
};

static void fetches_answer(void **state)
{
    messages(*state);
    fixture_check_typed(*state, rows, COUNT_OF(rows));
    fixture_check_fetches_used(&fetch_cookie_table, rows, COUNT_OF(rows));
}

static void without_messages_they_fail(void **state)
{
    struct fixture *f = *state;

    f->ctx.req = f->ctx.res = NULL;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_string_equal(fixture_typed(f, rows[i].input), "<none>");
}

static void odd_cookies_do_no_harm(void **state)
{
    static const struct {
        const char *value;
        struct expectation row;
    } odd[] = {
        {"", {"req.cook_cnt", "int:0"}},
        {";;;", {"req.cook_cnt", "int:0"}},
        {"novalue", {"req.cook_cnt", "int:0"}},
        {"a", {"req.cook(a)", "<none>"}},
        {"=x", {"req.cook_cnt", "int:1"}},
        {" a  =  b  ; c = d ", {"req.cook(a)", "str:b"}},
        {" a  =  b  ; c = d ", {"req.cook(c)", "str:d"}},
        {"a=b=c", {"req.cook(a)", "str:b=c"}},
        {"a=\"unterminated; b=c", {"req.cook(b)", "<none>"}},
        {"a=\"x\\\";y\"; b=c", {"req.cook(b)", "str:c"}},
        {"x; a=1", {"req.cook(a)", "str:1"}},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT_OF(odd); i++) {
        fixture_request(
            f, arena_printf(&f->config, "GET / HTTP/1.1\r\nCookie: %s\r\n\r\n", odd[i].value));
        fixture_check_typed(f, &odd[i].row, 1);
    }
}

static void conditions_try_every_value(void **state)
{
    struct fixture *f = *state;

    messages(f);
    assert_true(fixture_cond(f, "if { req.cook(SID) abc }"));
    assert_true(fixture_cond(f, "if { req.cook(SID) def }"));
    assert_true(fixture_cond(f, "if { req.cook(SID) ghi }"));
    assert_false(fixture_cond(f, "if { req.cook(SID) jkl }"));
    assert_true(fixture_cond(f, "if { res.cook(A) 1 }"));
    assert_true(fixture_cond(f, "if { cook() z }"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(fetches_answer),
        TEST(without_messages_they_fail),
        TEST(odd_cookies_do_no_harm),
        TEST(conditions_try_every_value),
    };

    return cmocka_run_group_tests_name("rules/fetch_cookie", tests, NULL, NULL);
}
