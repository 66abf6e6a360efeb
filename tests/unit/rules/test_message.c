#include "harness.h"

#include "rules/message.h"

static void targets_are_taken_apart(void **state)
{
    static const struct {
        const char *target, *pathq, *path, *authority; /* NULL: none */
    } rows[] = {
        {"/", "/", "/", ""},
        {"/a/b?c=d", "/a/b?c=d", "/a/b", ""},
        {"*", NULL, NULL, ""},
        {"", NULL, NULL, ""},
        {"http://host/a?b", "/a?b", "/a", "host"},
        {"HTTPS://host:8443/a", "/a", "/a", "host:8443"},
        {"http://host", NULL, NULL, "host"},
        {"http://host?a=b", "?a=b", "", "host"},
        {"host:443", NULL, NULL, "host:443"},
        {"/a?u=http://x/y", "/a?u=http://x/y", "/a", ""},
        {"a+b-1.2://h/p", "/p", "/p", "h"},
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct str out;

        assert_int_equal(target_pathq(str_of(rows[i].target), &out), rows[i].pathq != NULL);
        if (rows[i].pathq)
            assert_true(str_eq(out, str_of(rows[i].pathq)));
        assert_int_equal(target_path(str_of(rows[i].target), &out), rows[i].path != NULL);
        if (rows[i].path)
            assert_true(str_eq(out, str_of(rows[i].path)));
        assert_true(str_eq(target_authority(str_of(rows[i].target)), str_of(rows[i].authority)));
    }
}

static void targets_without_blanks_are_valid(void **state)
{
    assert_true(target_is_valid(STR("/a%20b")));
    assert_true(target_is_valid(STR("/\xc3\xa9")));
    assert_false(target_is_valid(STR("")));
    assert_false(target_is_valid(STR("/a b")));
    assert_false(target_is_valid(STR("/a\tb")));
    assert_false(target_is_valid(STR("/a\r\nb")));
    assert_false(target_is_valid(STR("/\x7f")));
}

static void list_values_end_at_commas_outside_quotes(void **state)
{
    assert_int_equal(list_value_end(STR("a,b")), 1);
    assert_int_equal(list_value_end(STR("\"a,b\",c")), 5);
    assert_int_equal(list_value_end(STR("\"a\\\",b\",c")), 7);
    assert_int_equal(list_value_end(STR("abc")), 3);
    assert_int_equal(list_value_end(STR("\"abc,")), 5);
    assert_int_equal(list_value_end(STR("\"abc\\")), 5);
    assert_int_equal(list_value_end(STR("")), 0);
}

static void the_host_is_the_first_value_of_the_first_field(void **state)
{
    struct fixture *f = *state;
    struct str host;

    fixture_request(f, "GET / HTTP/1.1\r\nHOST:  a , b\r\nHost: c\r\n\r\n");
    assert_true(message_host(&f->req, &host));
    assert_true(str_eq(host, STR("a")));
    fixture_request(f, "GET / HTTP/1.1\r\nX: y\r\n\r\n");
    assert_false(message_host(&f->req, &host));
}

static void the_message_at_hand_follows_the_stage(void **state)
{
    struct fixture *f = *state;

    assert_ptr_equal(ctx_message(&f->ctx), &f->req);
    fixture_response(f, "HTTP/1.1 200 OK\r\n\r\n");
    assert_ptr_equal(ctx_message(&f->ctx), &f->res);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(targets_are_taken_apart),
        TEST(targets_without_blanks_are_valid),
        TEST(list_values_end_at_commas_outside_quotes),
        TEST(the_host_is_the_first_value_of_the_first_field),
        TEST(the_message_at_hand_follows_the_stage),
    };

    return cmocka_run_group_tests_name("rules/message", tests, NULL, NULL);
}
