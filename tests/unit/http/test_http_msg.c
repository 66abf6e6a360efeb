#include "http_test.h"

struct fixture {
    struct arena arena;
    struct http_msg msg;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    if (!f)
        return -1;
    arena_init(&f->arena, 0, 0);
    http_msg_init(&f->msg, &f->arena);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    arena_release(&f->arena);
    free(f);
    return 0;
}

/* The list as one line, "a=1 b=2". */
static void assert_fields(const struct http_msg *m, const char *expected)
{
    char text[1024];
    int n = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < m->field_count; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%.*s=%.*s", i ? " " : "",
                      STR_FMT(m->fields[i].name), STR_FMT(m->fields[i].value));
    assert_string_equal(text, expected);
}

static void test_add_find(void **state)
{
    struct http_msg *m = &((struct fixture *)*state)->msg;
    uint32_t at = 0;

    assert_null(http_msg_find(m, HTTP_FIELD_HOST));
    assert_null(http_msg_next(m, STR("x"), &at));
    assert_int_equal(http_msg_add(m, STR("Host"), STR("a")), 0);
    assert_int_equal(http_msg_add(m, STR("X-One"), STR("1")), 0);
    assert_int_equal(http_msg_add(m, STR("x-one"), STR("2")), 0);
    assert_int_equal(http_msg_add_first(m, STR("First"), STR("")), 0);
    assert_fields(m, "First= Host=a X-One=1 x-one=2");
    assert_str(http_msg_find(m, HTTP_FIELD_HOST)->value, "a");
    assert_str(http_msg_next(m, STR("X-ONE"), &at)->value, "1");
    assert_int_equal(at, 3);
    assert_str(http_msg_next(m, STR("X-ONE"), &at)->value, "2");
    assert_null(http_msg_next(m, STR("X-ONE"), &at));
    at = 0;
    assert_str(http_msg_next(m, STR("HOST"), &at)->value, "a");
    assert_null(http_msg_next(m, STR("HOST"), &at));
}

/* No rule can put a line of its own into a message. */
static void test_splitting(void **state)
{
    struct http_msg *m = &((struct fixture *)*state)->msg;
    static const char bad[] = {'\r', '\n', '\0'};

    assert_int_equal(http_msg_add(m, STR("a"), STR("1")), 0);
    for (size_t i = 0; i < sizeof bad; i++) {
        char text[3] = {'x', bad[i], 'y'};
        struct str s = {text, sizeof text};

        assert_int_equal(http_msg_add(m, STR("b"), s), SP_EINVAL);
        assert_int_equal(http_msg_add(m, s, STR("b")), SP_EINVAL);
        assert_int_equal(http_msg_add_first(m, STR("b"), s), SP_EINVAL);
        assert_int_equal(http_msg_set(m, STR("a"), s), SP_EINVAL);
        assert_int_equal(http_msg_set_value(m, &m->fields[0], s), SP_EINVAL);
    }
    assert_int_equal(http_msg_add(m, STR(""), STR("1")), SP_EINVAL);
    assert_fields(m, "a=1");
}

static void test_set_del(void **state)
{
    struct http_msg *m = &((struct fixture *)*state)->msg;
    static const char *const names[] = {"a", "B", "a", "cookie", "b", "A", "Cookie", "d"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(http_msg_add(m, str_of(names[i]), STR("v")), 0);
    assert_int_equal(http_msg_set(m, STR("a"), STR("new")), 0);
    assert_fields(m, "B=v cookie=v b=v Cookie=v d=v a=new");
    assert_int_equal(http_msg_del(m, STR("b")), 2);
    assert_int_equal(http_msg_del(m, STR("none")), 0);
    assert_int_equal(http_msg_del_id(m, HTTP_FIELD_COOKIE), 2);
    assert_int_equal(http_msg_del_id(m, HTTP_FIELD_OTHER), 0);
    assert_fields(m, "d=v a=new");
    m->fields[1].raw = STR("a: new\r\n");
    assert_int_equal(http_msg_set_value(m, &m->fields[1], STR("newer")), 0);
    assert_null(m->fields[1].raw.ptr);
    http_msg_del_at(m, 0);
    assert_fields(m, "a=newer");
    http_msg_del_at(m, 0);
    assert_fields(m, "");
}

static void test_growth(void **state)
{
    struct http_msg *m = &((struct fixture *)*state)->msg;

    for (int i = 0; i < 1000; i++)
        assert_int_equal(http_msg_add(m, STR("n"), STR("v")), 0);
    assert_int_equal(m->field_count, 1000);
    assert_int_equal(http_msg_del(m, STR("N")), 1000);
}

/* When memory is out, nothing is lost. */
static void test_no_memory(void **state)
{
    struct arena small;
    struct http_msg m;
    int status = 0;
    uint32_t count;

    arena_init(&small, 1024, 2048);
    http_msg_init(&m, &small);
    for (int i = 0; i < 1000 && status == 0; i++)
        status = http_msg_add(&m, STR("n"), STR("v"));
    assert_int_equal(status, SP_ENOMEM);
    count = m.field_count;
    assert_true(count > 0);
    assert_int_equal(http_msg_set(&m, STR("n"), STR("w")), SP_ENOMEM);
    assert_int_equal(http_msg_add_first(&m, STR("n"), STR("w")), SP_ENOMEM);
    assert_int_equal(m.field_count, count);
    arena_release(&small);
}

static void test_hop_by_hop(void **state)
{
    struct parsed p;

    accept_request(&p, "GET / HTTP/1.1\r\n"
                       "X-Before: 1\r\n"
                       "Keep-Alive: timeout=5\r\n"
                       "Connection: close, x-before, X-After, host,content-length\r\n"
                       "Host: a\r\n"
                       "Content-Length: 0\r\n"
                       "TE: gzip, trailers\r\n"
                       "TE: trailers\r\n"
                       "Proxy-Connection: keep-alive\r\n"
                       "X-After: 2\r\n"
                       "connection: x-last\r\n"
                       "X-Last: 3\r\n"
                       "Accept: */*\r\n\r\n");
    assert_true(p.msg.flags & HTTP_MSG_HAS_CONN_OPTIONS);
    http_msg_strip_hop_by_hop(&p.msg);
    assert_fields(&p.msg, "Host=a Content-Length=0 TE=trailers Accept=*/*");
    parsed_release(&p);

    accept_request(&p, "GET / HTTP/1.1\r\nTE: gzip\r\nTE: trailers;q=0.5\r\nUpgrade: a\r\n"
                       "Trailer: b\r\nConnection: te, upgrade, trailer\r\n\r\n");
    http_msg_strip_hop_by_hop(&p.msg);
    assert_fields(&p.msg, "Upgrade=a Trailer=b");
    parsed_release(&p);

    accept_request(&p, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    http_msg_strip_hop_by_hop(&p.msg);
    assert_fields(&p.msg, "Host=a");
    parsed_release(&p);
}

static void test_lists(void **state)
{
    struct str rest = STR(" a , ,\"b,\\\" c\", d;q=\"x,y\" ,,"), item;

    assert_true(http_list_next(&rest, &item));
    assert_str(item, "a");
    assert_true(http_list_next(&rest, &item));
    assert_str(item, "\"b,\\\" c\"");
    assert_true(http_list_next(&rest, &item));
    assert_str(item, "d;q=\"x,y\"");
    assert_false(http_list_next(&rest, &item));
    rest = STR("\"open, end\\");
    assert_true(http_list_next(&rest, &item));
    assert_str(item, "\"open, end\\");
    assert_false(http_list_next(&rest, &item));

    assert_true(http_list_has(STR("gzip, Chunked"), STR("chunked")));
    assert_false(http_list_has(STR("gzip, chunked;q=1"), STR("chunked")));
    assert_false(http_list_has(STR(""), STR("chunked")));
}

static void test_length(void **state)
{
    struct str digits = STR("none");
    uint64_t value = 7;

    assert_int_equal(http_parse_length(STR(" 000, 00 "), &value, &digits), 0);
    assert_int_equal(value, 0);
    assert_str(digits, "0");
    assert_int_equal(http_parse_length(STR("042,42"), &value, &digits), 0);
    assert_int_equal(value, 42);
    assert_str(digits, "42");
    assert_int_equal(http_parse_length(STR("42,43"), &value, &digits), SP_EINVAL);
    assert_int_equal(http_parse_length(STR("42,"), &value, &digits), SP_EINVAL);
    assert_int_equal(http_parse_length(STR(""), &value, &digits), SP_EINVAL);
    assert_int_equal(http_parse_length(STR_NULL, &value, &digits), SP_EINVAL);
    assert_int_equal(value, 42);
    assert_str(digits, "42");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_add_find, setup, teardown),
        cmocka_unit_test_setup_teardown(test_splitting, setup, teardown),
        cmocka_unit_test_setup_teardown(test_set_del, setup, teardown),
        cmocka_unit_test_setup_teardown(test_growth, setup, teardown),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_hop_by_hop),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_length),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
