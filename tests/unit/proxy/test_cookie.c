#include "proxy_test.h"

#include "proxy/cookie.h"

/* A date divisible by no four, so that rounding shows. */
#define NOW_S 1796045831LL
#define NOW_US ((uint64_t)NOW_S * 1000000)

/* Servers one, two, three (in maintenance) and four, which has no cookie. */
static int setup(void **state)
{
    static const char *const cookies[] = {"one", "two", "three", NULL};
    struct test_backend *t;

    if (test_backend_setup(state) != 0)
        return -1;
    t = *state;
    for (int i = 0; i < 4; i++) {
        struct server *s = test_add_server(t, "s", 1);

        s->cookie = str_of(cookies[i]);
    }
    atomic_store(&t->server[2].state, SERVER_MAINT);
    t->cfg.cookie.name = "SRVID";
    return 0;
}

struct exchange {
    const char *cookies;  /* Cookie fields, separated by '|'; "": none */
    const char *to_server; /* fields that the server sees */
    const char *from_server; /* its fields */
    const char *to_client;
    const char *state;     /* two letters of the termination state */
    int chosen;            /* server that answers unless the cookie has led to one */
};

static void add_fields(struct test_backend *t, struct http_msg *m, const char *name, const char *text)
{
    struct str rest = str_of(text);

    while (rest.len) {
        size_t end = str_chr(rest, '|');
        struct str field = str_make(rest.ptr, end), field_name = str_of(name);

        if (!name) {
            size_t colon = str_chr(field, ':');

            field_name = str_make(field.ptr, colon);
            field = str_from(field, colon + 2);
        }
        assert_int_equal(http_msg_add(m, field_name, arena_str(&t->arena, field)), 0);
        rest = str_from(rest, end + 1);
    }
}

static struct cookie_state run_request(struct test_backend *t, const char *cookies, struct server *assigned)
{
    struct cookie_state st;

    http_msg_init(&t->req, &t->arena);
    t->req.method = HTTP_GET;
    add_fields(t, &t->req, "cookie", cookies);
    assert_int_equal(cookie_parse_request(&t->proxy, &t->req, assigned, NOW_US, &st), 0);
    return st;
}

static void run_exchange(struct test_backend *t, const struct exchange *x)
{
    struct cookie_state st = run_request(t, x->cookies, NULL);
    const struct server *chosen = st.server ? st.server : &t->server[x->chosen];
    char letters[3] = "";

    assert_string_equal(test_fields(t, &t->req), x->to_server);
    t->res.field_count = 0;
    add_fields(t, &t->res, NULL, x->from_server);
    assert_int_equal(cookie_write_response(&t->proxy, chosen, &t->req, &t->res, NOW_US, &st), 0);
    assert_string_equal(test_fields(t, &t->res), x->to_client);
    letters[0] = st.request;
    letters[1] = st.response;
    assert_string_equal(letters, x->state);
}

#define RUN(t, exchanges)                                              \
    for (size_t i_ = 0; i_ < sizeof(exchanges) / sizeof *(exchanges); i_++) \
        run_exchange(t, &(exchanges)[i_])

/* The exchanges are HAProxy 2.6's own, recorded. */
static void test_insert_indirect(void **state)
{
    static const struct exchange exchanges[] = {
        {"", "", "", "set-cookie: SRVID=one; path=/", "NI", 0},
        {"SRVID=one", "", "", "", "VN", 0},
        {"a=1; SRVID=two; b=2", "cookie: a=1; b=2", "", "", "VN", 0},
        {"SRVID=zz", "", "", "set-cookie: SRVID=two; path=/", "II", 1},
        {"SRVID=", "", "", "set-cookie: SRVID=two; path=/", "II", 1},
        {"SRVID=three; b=2", "cookie: b=2", "",
         "set-cookie: SRVID=; Expires=Thu, 01-Jan-1970 00:00:01 GMT; path=/", "DI", 3},
        {"SRVID=one;", "", "", "", "VN", 0},
        {"SRVID=one; SRVID=two", "", "", "", "VN", 0},
        {"SRVID=zz; SRVID=two", "", "", "", "VN", 0},
        {"$Version=1; SRVID=one; $Path=/; b=2", "cookie: $Version=1; b=2", "", "", "VN", 0},
        {"$Version=1; SRVID=one", "", "", "", "VN", 0},
        {"SRVID=one, b=2", "cookie: b=2", "", "", "VN", 0},
        {"foo; SRVID=one", "cookie: foo", "", "", "VN", 0},
        {"a=1|SRVID=one|c=3", "cookie: a=1|cookie: c=3", "", "", "VN", 0},
        {"a=\"x;SRVID=q\"; SRVID = one", "cookie: a=\"x;SRVID=q\"", "", "", "VN", 0},
        {"XSRVID=one; SRVIDX=one", "cookie: XSRVID=one; SRVIDX=one", "", "set-cookie: SRVID=one; path=/", "NI", 0},
        {"SRVID=two", "", "set-cookie: SRVID=mine", "", "VD", 0},
    };
    struct test_backend *t = *state;

    t->cfg.cookie.insert = t->cfg.cookie.indirect = true;
    RUN(t, exchanges);
}

static void test_insert_direct(void **state)
{
    static const struct exchange exchanges[] = {
        {"SRVID=two; a=1", "cookie: SRVID=two; a=1", "", "", "VN", 0},
        {"", "", "set-cookie: SRVID=mine; path=/x", "set-cookie: SRVID=one; path=/", "NI", 0},
        {"SRVID=two", "cookie: SRVID=two", "set-cookie: SRVID=mine; path=/x|set-cookie: b=1", "set-cookie: b=1", "VD", 0},
    };
    struct test_backend *t = *state;

    t->cfg.cookie.insert = true;
    RUN(t, exchanges);
}

static void test_preserve(void **state)
{
    static const struct exchange exchanges[] = {
        {"", "", "set-cookie: SRVID=mine; path=/x", "set-cookie: SRVID=mine; path=/x", "NP", 0},
        {"SRVID=two", "cookie: SRVID=two", "set-cookie: SRVID=mine", "set-cookie: SRVID=mine", "VP", 0},
        {"", "", "x: 1", "x: 1|set-cookie: SRVID=one; path=/", "NI", 0},
    };
    struct test_backend *t = *state;

    t->cfg.cookie.insert = t->cfg.cookie.preserve = true;
    RUN(t, exchanges);
}

static void test_rewrite(void **state)
{
    static const struct exchange exchanges[] = {
        {"", "", "set-cookie: SRVID=mine,b; path=/x|set-cookie: SRVID=",
         "set-cookie: SRVID=one,b; path=/x|set-cookie: SRVID=one", "NR", 0},
        {"SRVID=two", "cookie: SRVID=two", "set-cookie: SRVID=x", "set-cookie: SRVID=two", "VR", 0},
        {"", "", "set-cookie: SRVID=x", "set-cookie: SRVID=x", "NP", 3},
        {"", "", "x: 1", "x: 1", "NN", 0},
    };
    struct test_backend *t = *state;

    t->cfg.cookie.rewrite = true;
    RUN(t, exchanges);
}

static void test_prefix(void **state)
{
    static const struct exchange exchanges[] = {
        {"", "", "set-cookie: SRVID=mine; path=/x", "set-cookie: SRVID=one~mine; path=/x", "NR", 0},
        {"SRVID=two~abc~d; x=1", "cookie: SRVID=abc~d; x=1", "set-cookie: SRVID=mine", "set-cookie: SRVID=two~mine", "VR", 0},
        {"x=1; SRVID=two", "cookie: x=1; SRVID=two", "", "", "VN", 0},
        {"SRVID=qq~abc", "cookie: SRVID=abc", "", "", "IN", 0},
    };
    struct test_backend *t = *state;

    t->cfg.cookie.prefix = true;
    RUN(t, exchanges);
}

static void test_nocache(void **state)
{
    static const struct exchange exchanges[] = {
        {"", "", "ETag: \"x\"", "ETag: \"x\"|set-cookie: SRVID=one; path=/|cache-control: private", "NI", 0},
        {"", "", "x: 1", "x: 1|set-cookie: SRVID=one; path=/", "NI", 0},
        {"", "", "Cache-Control: max-age=5",
         "Cache-Control: max-age=5|set-cookie: SRVID=one; path=/|cache-control: private", "NI", 0},
        {"", "", "Cache-Control: max-age=0", "Cache-Control: max-age=0|set-cookie: SRVID=one; path=/", "NI", 0},
        {"", "", "Cache-Control: max-age=9, no-store",
         "Cache-Control: max-age=9, no-store|set-cookie: SRVID=one; path=/", "NI", 0},
        {"", "", "Expires: x|Pragma: no-cache", "Expires: x|Pragma: no-cache|set-cookie: SRVID=one; path=/", "NI", 0},
        {"SRVID=one", "cookie: SRVID=one", "ETag: \"x\"", "ETag: \"x\"", "VN", 0},
    };
    struct test_backend *t = *state;
    struct cookie_state st;

    t->cfg.cookie.insert = t->cfg.cookie.nocache = true;
    RUN(t, exchanges);
    /* Nothing keeps the answer to a POST. */
    st = run_request(t, "", NULL);
    t->req.method = HTTP_POST;
    t->res.field_count = 0;
    add_fields(t, &t->res, NULL, "ETag: \"x\"");
    assert_int_equal(cookie_write_response(&t->proxy, &t->server[0], &t->req, &t->res, NOW_US, &st), 0);
    assert_string_equal(test_fields(t, &t->res), "ETag: \"x\"|set-cookie: SRVID=one; path=/");
}

static void test_postonly(void **state)
{
    static const struct exchange exchanges[] = {{"", "", "", "", "NN", 0}};
    struct test_backend *t = *state;
    struct cookie_state st;

    t->cfg.cookie.insert = t->cfg.cookie.postonly = true;
    RUN(t, exchanges);
    st = run_request(t, "", NULL);
    t->req.method = HTTP_POST;
    assert_int_equal(cookie_write_response(&t->proxy, &t->server[0], &t->req, &t->res, NOW_US, &st), 0);
    assert_int_equal(st.response, 'I');
}

static void test_attributes(void **state)
{
    static const struct exchange exchanges[] = {
        {"", "", "",
         "set-cookie: SRVID=one; path=/; domain=x.com; HttpOnly; Secure; SameSite=None; foo=bar", "NI", 0},
    };
    struct test_backend *t = *state;

    t->cfg.cookie.insert = t->cfg.cookie.httponly = t->cfg.cookie.secure = true;
    t->cfg.cookie.domain = "x.com";
    t->cfg.cookie.attr = "SameSite=None; foo=bar";
    RUN(t, exchanges);
}

/* --- dates: recorded from HAProxy as well, moved to our clock ------------------------------ */

static const char *dated(struct test_backend *t, const char *server, int64_t last_s, int64_t first_s)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char text[32];
    int n = snprintf(text, sizeof text, "SRVID=%s", server);
    int64_t dates[2] = {last_s, first_s};

    for (int k = 0; k < 2 && dates[k]; k++) {
        text[n++] = '|';
        for (int i = 0; i < 5; i++)
            text[n++] = alphabet[dates[k] / 4 >> (24 - 6 * i) & 63];
    }
    text[n] = '\0';
    return arena_cstr(&t->arena, text);
}

static void assert_dated(struct test_backend *t, const char *cookie, const char *set_cookie, const char *letters)
{
    struct str as_field = str_of(arena_cstr(&t->arena, cookie));
    struct cookie_state st;
    struct server *chosen;

    http_msg_init(&t->req, &t->arena);
    t->req.method = HTTP_GET;
    if (as_field.len)
        assert_int_equal(http_msg_add(&t->req, STR("cookie"), as_field), 0);
    assert_int_equal(cookie_parse_request(&t->proxy, &t->req, NULL, NOW_US, &st), 0);
    chosen = st.server ? st.server : &t->server[0];
    t->res.field_count = 0;
    assert_int_equal(cookie_write_response(&t->proxy, chosen, &t->req, &t->res, NOW_US, &st), 0);
    assert_int_equal(st.request, letters[0]);
    assert_int_equal(st.response, letters[1]);
    if (!set_cookie) {
        assert_int_equal(t->res.field_count, 0);
        return;
    }
    assert_int_equal(t->res.field_count, 1);
    assert_str(t->res.fields[0].value, arena_printf(&t->arena, "%s; path=/", set_cookie));
}

static void test_dates(void **state)
{
    struct test_backend *t = *state;
    int64_t rounded = NOW_S + 3;

    t->cfg.cookie.insert = true;
    t->cfg.cookie.maxidle_s = 60;
    t->cfg.cookie.maxlife_s = 3600;
    assert_dated(t, "", dated(t, "one", rounded, rounded), "NI");
    assert_dated(t, "SRVID=two", dated(t, "two", rounded, rounded), "VU");
    assert_dated(t, dated(t, "two", NOW_S, 0), dated(t, "two", rounded, rounded), "VU");
    assert_dated(t, dated(t, "two", NOW_S, NOW_S - 30), dated(t, "two", rounded, NOW_S - 30), "VU");
    /* Idle for too long, in use for too long, from tomorrow. */
    assert_dated(t, dated(t, "two", NOW_S - 100, NOW_S - 200), dated(t, "one", rounded, rounded), "EI");
    assert_dated(t, dated(t, "two", NOW_S, NOW_S - 7200), dated(t, "one", rounded, rounded), "OI");
    assert_dated(t, dated(t, "two", NOW_S + 90000, 0), dated(t, "one", rounded, rounded), "EI");
    /* A date that cannot be read is none. */
    assert_dated(t, "SRVID=two|x", dated(t, "two", rounded, rounded), "VU");
    assert_dated(t, "SRVID=two|a.a.a", dated(t, "two", rounded, rounded), "VU");
}

static void test_maxidle_alone(void **state)
{
    struct test_backend *t = *state;

    t->cfg.cookie.insert = true;
    t->cfg.cookie.maxidle_s = 60;
    assert_dated(t, "SRVID=two", dated(t, "two", NOW_S + 3, 0), "VU");
    assert_dated(t, dated(t, "two", NOW_S - 10, 0), dated(t, "two", NOW_S + 3, 0), "VU");
    assert_dated(t, dated(t, "two", NOW_S + 4, 0), NULL, "VN"); /* seen in this very moment */
}

/* Dates of a former configuration are taken out. */
static void test_dates_no_longer(void **state)
{
    struct test_backend *t = *state;

    t->cfg.cookie.insert = true;
    assert_dated(t, dated(t, "two", NOW_S - 10, 0), "SRVID=two", "VU");
    assert_dated(t, dated(t, "two", NOW_S + 8, NOW_S), "SRVID=two", "VU");
    assert_dated(t, "SRVID=two", NULL, "VN");
}

/* --- which server ------------------------------------------------------------------------------ */

static void test_servers(void **state)
{
    struct test_backend *t = *state;
    struct cookie_state st;

    t->cfg.cookie.insert = true;
    st = run_request(t, "SRVID=three", NULL);
    assert_null(st.server);
    assert_true(st.found);
    /* Another server with that cookie takes over. */
    t->server[1].cookie = STR("three");
    assert_ptr_equal(run_request(t, "SRVID=three", NULL).server, &t->server[1]);
    t->server[1].cookie = STR("two");
    /* Draining servers keep their clients. */
    atomic_store(&t->server[2].state, SERVER_DRAIN);
    st = run_request(t, "SRVID=three", NULL);
    assert_ptr_equal(st.server, &t->server[2]);
    assert_int_equal(st.request, 'V');
    /* option persist: even a server that is down. */
    atomic_store(&t->server[2].state, SERVER_DOWN);
    t->cfg.persist = true;
    st = run_request(t, "SRVID=three", NULL);
    assert_ptr_equal(st.server, &t->server[2]);
    assert_int_equal(st.request, 'D');
    /* use-server goes before the cookie. */
    st = run_request(t, "SRVID=two", &t->server[0]);
    assert_ptr_equal(st.server, &t->server[0]);
    assert_int_equal(st.request, 'U');
    st = run_request(t, "", &t->server[0]);
    assert_int_equal(st.request, 'N');
    assert_false(st.found);
    t->cfg.cookie.name = NULL;
    st = run_request(t, "SRVID=two", NULL);
    assert_int_equal(st.request, '-');
    assert_int_equal(st.response, '-');
    assert_null(st.server);
}

/* After a redispatch the client must learn the new server. */
static void test_redispatch(void **state)
{
    struct test_backend *t = *state;
    struct cookie_state st;

    t->cfg.cookie.insert = t->cfg.cookie.indirect = true;
    st = run_request(t, "SRVID=one", NULL);
    assert_ptr_equal(st.server, &t->server[0]);
    assert_int_equal(cookie_write_response(&t->proxy, &t->server[1], &t->req, &t->res, NOW_US, &st), 0);
    assert_string_equal(test_fields(t, &t->res), "set-cookie: SRVID=two; path=/");
    assert_int_equal(st.response, 'I');
    /* Interim responses are left alone. */
    t->res.field_count = 0;
    t->res.status = 103;
    assert_int_equal(cookie_write_response(&t->proxy, &t->server[1], &t->req, &t->res, NOW_US, &st), 0);
    assert_int_equal(t->res.field_count, 0);
}

static void test_no_memory(void **state)
{
    struct test_backend *t = *state;
    struct cookie_state st;

    t->cfg.cookie.insert = t->cfg.cookie.indirect = true;
    run_request(t, "a=1", NULL);
    add_fields(t, &t->req, "cookie", "SRVID=one; b=2");
    t->arena.limit_bytes = t->arena.used_bytes;
    t->arena.end = t->arena.cursor;
    assert_int_equal(cookie_parse_request(&t->proxy, &t->req, NULL, NOW_US, &st), SP_ENOMEM);
    st = (struct cookie_state){.request = 'N', .response = 'N'};
    assert_int_equal(cookie_write_response(&t->proxy, &t->server[0], &t->req, &t->res, NOW_US, &st), SP_ENOMEM);
    assert_int_equal(st.response, 'N');
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, test_backend_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_insert_indirect), TEST(test_insert_direct), TEST(test_preserve),     TEST(test_rewrite),
        TEST(test_prefix),          TEST(test_nocache),       TEST(test_postonly),     TEST(test_attributes),
        TEST(test_dates),           TEST(test_maxidle_alone), TEST(test_dates_no_longer), TEST(test_servers),
        TEST(test_redispatch),      TEST(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
