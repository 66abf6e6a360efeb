/* Servers that misbehave, each in its own way. */
#include "support.h"

#include "base/clock.h"
#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* Ten requests to such a server. */
static const struct load_result *run_ten(struct t_job *j, struct t_server *s)
{
    t_server_start(s);
    t_job_init(j, s);
    j->plan.request_limit = 10;
    return t_job_run(j);
}

static void end(struct t_job *j, struct t_server *s)
{
    t_job_release(j);
    t_server_stop(s);
}

/* All ten fail in the one way. */
static void expect_failures(const char *text, bool (*answer)(struct t_peer *p),
                            enum load_error error, const char *example)
{
    struct t_server s = {.answer = answer, .text = text};
    struct t_job j;
    const struct load_result *r = run_ten(&j, &s);

    t_only_error(r, error, 10, example);
    assert_int_equal(r->sent, 10);
    assert_int_equal(r->requests, 0);
    assert_int_equal(r->latency->count, 0);
    end(&j, &s);
}

static bool reset(struct t_peer *p)
{
    struct linger none = {.l_onoff = 1};

    setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    return false;
}

static bool reset_in_body(struct t_peer *p)
{
    t_say(p, p->server->text);
    t_sleep_ms(5); /* a reset overtakes what it follows */
    return reset(p);
}

static void resets(void **state)
{
    expect_failures("", reset, LOAD_ERROR_RESET, "connection reset before the end of the head");
    expect_failures("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", reset_in_body,
                    LOAD_ERROR_RESET, "after 4 of 100 bytes of the body");
}

static void truncated(void **state)
{
    expect_failures("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", t_text_close,
                    LOAD_ERROR_CLOSED, "after 4 of 100 bytes of the body");
    expect_failures("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
                    t_text_close, LOAD_ERROR_CLOSED, "after 5 bytes of the body");
    expect_failures("HTTP/1.1 200 OK\r\nContent-Le", t_text_close, LOAD_ERROR_CLOSED,
                    "before the end of the head");
    expect_failures("", t_text_close, LOAD_ERROR_CLOSED, "no byte of it had come");
}

static void garbage(void **state)
{
    static char long_head[80000];

    expect_failures("SSH-2.0-OpenSSH\r\n\r\n", t_text_close, LOAD_ERROR_HTTP, "bad answer");
    expect_failures("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", t_text, LOAD_ERROR_HTTP,
                    "Content-Length");
    expect_failures("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", t_text,
                    LOAD_ERROR_HTTP, "bad answer");
    memset(long_head, 'a', sizeof(long_head) - 1);
    memcpy(long_head, "HTTP/1.1 200 OK\r\nX: ", 20);
    expect_failures(long_head, t_text, LOAD_ERROR_HTTP, "bad answer");
}

/* More than was declared: answered, and wrong. */
static void too_long(void **state)
{
    struct t_server s = {.answer = t_text_close,
                         .text = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhello"};
    struct t_job j;
    const struct load_result *r = run_ten(&j, &s);

    t_only_error(r, LOAD_ERROR_HTTP, 10, "2 bytes behind the end of the answer");
    assert_int_equal(r->requests, 10);
    end(&j, &s);
}

static bool never(struct t_peer *p)
{
    t_say(p, p->server->text);
    while (!atomic_load(&p->server->stopping))
        t_sleep_ms(2);
    return false;
}

static void time_out(const char *text, enum load_error error, const char *example)
{
    struct t_server s = {.answer = never, .text = text};
    const struct load_result *r;
    struct t_job j;

    t_server_start(&s);
    t_job_init(&j, &s);
    j.plan.request_limit = 2;
    j.plan.timeout_us = 50000;
    r = t_job_run(&j);
    t_only_error(r, error, 2, example);
    assert_true(r->duration_us >= 100000);
    end(&j, &s);
}

static void timeouts(void **state)
{
    time_out("", LOAD_ERROR_TIMEOUT_FIRST_BYTE, "no answer came");
    time_out("HTTP/1.1 200 OK\r\n", LOAD_ERROR_TIMEOUT_BODY, "the answer was not finished");
    time_out("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", LOAD_ERROR_TIMEOUT_BODY,
             "not finished");
    time_out("HTTP/1.1 200 OK\r\n\r\nabc", LOAD_ERROR_TIMEOUT_BODY, "not finished");
}

/* A body without end, as fast as it goes: neither the timeout nor load_stop is kept from its turn. */
static bool flood(struct t_peer *p)
{
    static const char block[65536] = "";

    t_say(p, "HTTP/1.1 200 OK\r\n\r\n");
    while (t_send(p, block, sizeof(block)))
        ;
    return false;
}

static void endless(void **state)
{
    struct t_server s = {.answer = flood};
    const struct load_result *r;
    struct t_job j;

    t_server_start(&s);
    t_job_init(&j, &s);
    j.plan.request_limit = 2;
    j.plan.timeout_us = 100000;
    r = t_job_run(&j);
    t_only_error(r, LOAD_ERROR_TIMEOUT_BODY, 2, "not finished");
    assert_true(r->duration_us < 3000000);
    end(&j, &s);
}

/* Nobody listens; the port is free for sure because it is bound. */
static void refused(void **state)
{
    struct t_server s = {0};
    const struct load_result *r;
    struct t_job j;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    s.addr = (struct addr){.len = sizeof(struct sockaddr_in)};
    s.addr.u.in.sin_family = AF_INET;
    s.addr.u.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, &s.addr.u.sa, s.addr.len), 0);
    assert_int_equal(getsockname(fd, &s.addr.u.sa, &s.addr.len), 0);
    for (int kind = LOAD_CLOSED; kind <= LOAD_CONSTANT; kind++) {
        t_job_init(&j, &s);
        j.plan.request_limit = 5;
        j.plan.arrivals = (enum load_arrivals)kind;
        j.plan.rate = 1000;
        r = t_job_run(&j);
        assert_int_equal(r->sent, 0);
        assert_int_equal(r->connects, 0);
        assert_true(r->errors[LOAD_ERROR_REFUSED] >= 5);
        t_only_error(r, LOAD_ERROR_REFUSED, r->errors[LOAD_ERROR_REFUSED], "Connection refused");
        /* 10 + 20 + 40 + 80 ms between them. */
        assert_true(r->duration_us >= 140000);
        t_job_release(&j);
    }
    close(fd);
}

static void expectations(void **state)
{
    for (int i = 0; i < 3; i++) {
        struct t_server s = {.answer = t_hello};
        const struct load_result *r;
        struct t_job j;

        t_server_start(&s);
        t_job_init(&j, &s);
        j.plan.request_limit = 10;
        j.request.expect_status = i == 0 ? 404 : 200;
        j.request.expect_size = i == 1 ? 6 : 5;
        j.request.hash_body = true;
        j.request.expect_hash = hash_fnv1a64(i == 2 ? STR("world") : STR("hello"), 0);
        r = t_job_run(&j);
        if (i == 0)
            t_only_error(r, LOAD_ERROR_STATUS, 10, "expected status 404, got 200");
        else if (i == 1)
            t_only_error(r, LOAD_ERROR_SIZE, 10, "expected a body of 6 bytes, got 5");
        else
            t_only_error(r, LOAD_ERROR_HASH, 10, "expected a body with hash");
        /* They are answers all the same, on one connection. */
        assert_int_equal(r->requests, 10);
        assert_int_equal(r->connects, 1);
        end(&j, &s);
    }
}

/* Answers two requests, then closes without having announced it. */
static bool two_then_close(struct t_peer *p)
{
    return t_say(p, T_HELLO) && p->request < 1;
}

static void closed_while_idle(void **state)
{
    struct t_server s = {.answer = two_then_close};
    struct t_job j;
    const struct load_result *r = run_ten(&j, &s);

    assert_int_equal(t_errors(r), 0);
    assert_int_equal(r->sent, 10);
    assert_int_equal(r->requests, 10);
    assert_int_equal(r->connects, 5);
    /* Sometimes the end is seen together with the answer, and nothing is sent in vain. */
    assert_true(r->reconnects <= 5);
    assert_int_equal(atomic_load(&s.requests), 10);
    end(&j, &s);
}

/* Reads the second request of a connection and closes without a byte. */
static bool one_then_nothing(struct t_peer *p)
{
    return p->request == 0 && t_say(p, T_HELLO);
}

static void closed_before_the_answer(void **state)
{
    for (int post = 0; post <= 1; post++) {
        struct t_server s = {.answer = one_then_nothing};
        const struct load_result *r;
        struct t_job j;

        t_server_start(&s);
        t_job_init(&j, &s);
        j.plan.request_limit = 10;
        if (post) {
            j.request.bytes =
                STR("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
            j.request.method = HTTP_POST;
        }
        r = t_job_run(&j);
        assert_int_equal(r->sent, 10);
        if (post) {
            /* May not be repeated. */
            t_only_error(r, LOAD_ERROR_CLOSED, 5, "no byte of it had come");
            assert_int_equal(r->requests, 5);
            assert_int_equal(r->reconnects, 0);
        } else {
            assert_int_equal(t_errors(r), 0);
            assert_int_equal(r->requests, 10);
            assert_int_equal(r->reconnects, 9);
        }
        end(&j, &s);
    }
}

/* Open loop: the connection is idle when the server closes it. */
static bool hello_then_close_late(struct t_peer *p)
{
    t_say(p, T_HELLO);
    t_sleep_ms(5);
    return false;
}

static void closed_while_idle_open_loop(void **state)
{
    struct t_server s = {.answer = hello_then_close_late};
    const struct load_result *r;
    struct t_job j;

    t_server_start(&s);
    t_job_init(&j, &s);
    j.plan.request_limit = 10;
    j.plan.arrivals = LOAD_CONSTANT;
    j.plan.rate = 20;
    r = t_job_run(&j);
    assert_int_equal(t_errors(r), 0);
    assert_int_equal(r->requests, 10);
    assert_in_range(r->reconnects, 8, 10);
    end(&j, &s);
}

/* A server that dies in the middle of it all and comes back is served again. */
static bool reset_some(struct t_peer *p)
{
    return p->conn < 3 ? reset(p) : t_say(p, T_HELLO);
}

static void goes_on(void **state)
{
    struct t_server s = {.answer = reset_some};
    struct t_job j;
    const struct load_result *r = run_ten(&j, &s);

    t_only_error(r, LOAD_ERROR_RESET, 3, "reset");
    assert_int_equal(r->requests, 7);
    assert_int_equal(r->sent, 10);
    end(&j, &s);
}

static void names(void **state)
{
    for (int i = 0; i < LOAD_ERRORS; i++) {
        assert_true(strlen(load_error_name((enum load_error)i)) > 2);
        assert_true(strlen(load_error_text((enum load_error)i)) > 5);
    }
    assert_string_equal(load_error_name(LOAD_ERROR_TIMEOUT_CONNECT), "timeout_connect");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resets),
        cmocka_unit_test(truncated),
        cmocka_unit_test(garbage),
        cmocka_unit_test(too_long),
        cmocka_unit_test(timeouts),
        cmocka_unit_test(endless),
        cmocka_unit_test(refused),
        cmocka_unit_test(expectations),
        cmocka_unit_test(closed_while_idle),
        cmocka_unit_test(closed_before_the_answer),
        cmocka_unit_test(closed_while_idle_open_loop),
        cmocka_unit_test(goes_on),
        cmocka_unit_test(names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
