/* Every shape of a good answer, in one piece and byte by byte. */
#include "support.h"

#include "base/hash.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <cmocka.h>

struct shape {
    const char *text;
    enum http_method method;
    int status;
    const char *body;
    bool closes; /* the server does, after it */
};

static const struct shape shapes[] = {
    {T_HELLO, HTTP_GET, 200, "hello", false},
    {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", HTTP_GET, 200, "", false},
    {"HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n", HTTP_GET, 204, "", false},
    {"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", HTTP_GET, 304, "", false},
    {"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n", HTTP_HEAD, 200, "", false},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nT: v\r\n\r\n",
     HTTP_GET, 200, "hello world", false},
    {"HTTP/1.1 200 OK\r\n\r\nuntil the end", HTTP_GET, 200, "until the end", true},
    {"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nold", HTTP_GET, 200, "old", true},
    {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nbye", HTTP_GET, 200, "bye",
     true},
    {"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nold", HTTP_GET, 200,
     "old", false},
    {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" T_HELLO, HTTP_GET,
     200, "hello", false},
    {"HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\nno", HTTP_GET, 503, "no", false},
};

/* Each byte is a segment of its own, now and then with a pause, so that the client sees pieces. */
static bool in_pieces(struct t_peer *p)
{
    const char *text = p->server->text;
    size_t len = strlen(text);
    int on = 1;

    setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    for (size_t i = 0; i < len; i++) {
        if (!t_send(p, text + i, 1))
            return false;
        if (i % 16 == 3)
            t_sleep_ms(1);
    }
    return !p->server->stalled;
}

static bool whole(struct t_peer *p)
{
    return t_say(p, p->server->text) && !p->server->stalled;
}

static void try_shape(const struct shape *shape, bool (*how)(struct t_peer *p))
{
    struct t_server s = {.answer = how, .text = shape->text, .stalled = shape->closes};
    struct str body = str_of(shape->body);
    const struct load_result *r;
    struct t_job j;

    t_server_start(&s);
    t_job_init(&j, &s);
    j.plan.request_limit = 4;
    j.request.method = shape->method;
    j.request.expect_status = shape->status;
    j.request.expect_size = (int64_t)body.len;
    j.request.hash_body = true;
    j.request.expect_hash = hash_fnv1a64(body, 0);
    r = t_job_run(&j);
    for (int i = 0; i < LOAD_ERRORS; i++) {
        if (r->errors[i])
            print_error("%s: %s\n", shape->text, r->examples[i]);
    }
    assert_int_equal(t_errors(r), 0);
    assert_int_equal(r->requests, 4);
    assert_int_equal(r->status_class[shape->status / 100], 4);
    assert_int_equal(r->body_bytes, 4 * body.len);
    assert_int_equal(r->bytes_in, 4 * strlen(shape->text));
    assert_int_equal(r->connects, shape->closes ? 4 : 1);
    assert_int_equal(r->reconnects, 0);
    t_job_release(&j);
    t_server_stop(&s);
}

static void in_one_piece(void **state)
{
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        try_shape(&shapes[i], whole);
}

static void byte_by_byte(void **state)
{
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        try_shape(&shapes[i], in_pieces);
}

/* The heads differ in what matters: none may be taken for the one before. */
static bool changing(struct t_peer *p)
{
    unsigned n = p->request % 7;
    char text[256];
    int len =
        snprintf(text, sizeof(text), "HTTP/1.1 %u OK\r\nX: %u\r\nContent-Length: %u\r\n\r\n%.*s",
                 200 + n % 2, p->request, n, (int)n, "abcdefg");

    return t_send(p, text, (size_t)len);
}

static void changing_heads(void **state)
{
    struct t_server s = {.answer = changing};
    const struct load_result *r;
    struct t_job j;

    t_server_start(&s);
    t_job_init(&j, &s);
    j.plan.request_limit = 700;
    r = t_job_run(&j);
    assert_int_equal(t_errors(r), 0);
    assert_int_equal(r->requests, 700);
    assert_int_equal(r->body_bytes, 2100);
    t_job_release(&j);
    t_server_stop(&s);
}

#define BIG (3u << 20)

static bool big(struct t_peer *p)
{
    char *body = malloc(BIG);
    char head[100];
    bool good;
    int len = snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %u\r\n\r\n", BIG);

    memset(body, 'x', BIG);
    good = t_send(p, head, (size_t)len) && t_send(p, body, BIG);
    free(body);
    return good;
}

static void big_body(void **state)
{
    struct t_server s = {.answer = big};
    const struct load_result *r;
    struct t_job j;

    t_server_start(&s);
    t_job_init(&j, &s);
    j.plan.request_limit = 5;
    j.plan.connections = 2;
    j.request.expect_size = BIG;
    r = t_job_run(&j);
    assert_int_equal(t_errors(r), 0);
    assert_int_equal(r->requests, 5);
    assert_int_equal(r->body_bytes, 5 * (uint64_t)BIG);
    t_job_release(&j);
    t_server_stop(&s);
}

static bool take(struct t_peer *p, size_t left)
{
    char sink[65536];

    while (left) {
        ptrdiff_t n = recv(p->fd, sink, left < sizeof(sink) ? left : sizeof(sink), 0);

        if (n <= 0)
            return false;
        left -= (size_t)n;
    }
    return true;
}

/* More than the socket takes at once, and the answer comes before all of it is there. */
static bool answer_early(struct t_peer *p)
{
    t_sleep_ms(20);
    return take(p, BIG) && t_say(p, T_HELLO) && take(p, 2 * BIG);
}

static void big_request(void **state)
{
    static const char head[] =
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4194304\r\n\r\n";
    size_t len = sizeof(head) - 1 + (4u << 20);
    struct t_server s = {.answer = t_hello};
    char *bytes = calloc(1, len);
    const struct load_result *r;
    struct t_job j;

    s.greet = answer_early;
    memcpy(bytes, head, sizeof(head) - 1);
    t_server_start(&s);
    t_job_init(&j, &s);
    j.request.bytes = str_make(bytes, len);
    j.request.method = HTTP_POST;
    j.plan.request_limit = 1;
    r = t_job_run(&j);
    assert_int_equal(r->requests, 1);
    assert_int_equal(r->body_bytes, 5);
    t_job_release(&j);
    t_server_stop(&s);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_one_piece),   cmocka_unit_test(byte_by_byte),
        cmocka_unit_test(changing_heads), cmocka_unit_test(big_body),
        cmocka_unit_test(big_request),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
