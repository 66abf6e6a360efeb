/*
 * Kernel sockets over loopback and Unix sockets.
 */
#include "io/sock.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine.h"

static struct io_loop *loop;
static const struct io_listen_options plain = {.unix_mode = -1, .unix_uid = -1, .unix_gid = -1};

static int setup(void **state)
{
    loop = engine_loop();
    return loop ? 0 : -1;
}

static int teardown(void **state)
{
    io_loop_free(loop);
    return 0;
}

static void stop_fire(struct io_timer *t)
{
    io_loop_stop(loop);
}

static void run_for(unsigned ms)
{
    struct io_timer t;

    io_timer_init(&t, stop_fire);
    io_timer_set(loop, &t, clock_now_us() + ms * 1000);
    io_loop_run(loop);
    io_timer_cancel(&t);
}

static struct addr loopback(void)
{
    struct addr a = {.len = sizeof(struct sockaddr_in)};

    a.u.in.sin_family = AF_INET;
    a.u.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return a;
}

/* A listener on a free port; *a becomes its address. */
static int listen_loopback(struct addr *a)
{
    const char *step = NULL;
    int fd;

    *a = loopback();
    fd = io_listen(a, &plain, &step);
    assert_true(fd >= 0);
    a->len = sizeof(a->u);
    assert_int_equal(getsockname(fd, &a->u.sa, &a->len), 0);
    return fd;
}

/* --- an endpoint that notes what happens to it ---------------------------------- */

struct end {
    struct io_sock sock; /* first member */
    unsigned events;
    size_t received;
    bool stop_on_event;
};

static void end_event(struct io_sock *s, unsigned events)
{
    struct end *e = (struct end *)s;

    e->events |= events;
    if (e->stop_on_event)
        io_loop_stop(loop);
}

static void end_init(struct end *e, int fd)
{
    memset(e, 0, sizeof(*e));
    io_sock_init(&e->sock, loop, fd, end_event);
    e->stop_on_event = true;
}

static struct end client, server;

static ptrdiff_t send_text(struct end *e, const char *text)
{
    struct iovec iov = {(char *)(uintptr_t)text, strlen(text)};

    return io_sock_sendv(&e->sock, &iov, 1, false);
}

static int finish_connect(struct end *e)
{
    int status;

    while ((status = e->sock.transport->connect_result(&e->sock)) == SP_EAGAIN)
        io_loop_run(loop);
    return status;
}

static void connect_pair(void)
{
    struct addr a;
    int listener = listen_loopback(&a);

    end_init(&client, -1);
    assert_int_equal(client.sock.transport->connect(&client.sock, &a, NULL), 0);
    assert_int_equal(finish_connect(&client), 0);
    assert_false(client.sock.connecting);
    end_init(&server, accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
    assert_true(server.sock.watch.fd >= 0);
    close(listener);
}

static void close_pair(void)
{
    io_sock_close(&client.sock, false);
    io_sock_close(&server.sock, false);
    io_sock_close(&server.sock, true); /* closing twice is harmless */
}

/* --- tests --------------------------------------------------------------------------- */

static void test_exchange_and_readiness(void **state)
{
    char data[16];

    connect_pair();
    /* Optimistic, unless registering is free. */
    assert_int_equal(server.sock.ready, engine == IO_ENGINE_URING ? IO_WRITE : IO_READ | IO_WRITE);
    assert_false(server.sock.watch.registered);
    assert_int_equal(io_sock_recv(&server.sock, data, sizeof(data)), SP_EAGAIN);
    assert_int_equal(server.sock.ready, IO_WRITE);

    assert_int_equal(io_sock_watch(&server.sock, IO_READ), 0);
    assert_int_equal(send_text(&client, "hello"), 5);
    while (!(server.sock.ready & IO_READ))
        io_loop_run(loop);
    assert_int_equal(io_sock_recv(&server.sock, data, 3), 3);
    assert_true(server.sock.ready & IO_READ); /* filled: there may be more */
    assert_int_equal(io_sock_recv(&server.sock, data, sizeof(data)), 2);
    assert_false(server.sock.ready & IO_READ); /* short: there is none */

    assert_int_equal(send_text(&server, "answer"), 6);
    while (!(client.sock.ready & IO_READ))
        io_loop_run(loop);
    assert_int_equal(io_sock_recv(&client.sock, data, sizeof(data)), 6);
    assert_int_equal(io_sock_recv(&client.sock, data, 0), SP_EAGAIN);
    close_pair();
}

static void test_gather_and_more(void **state)
{
    struct iovec iov[3] = {{(char *)"one ", 4}, {(char *)"", 0}, {(char *)"two", 3}};
    char data[16];

    connect_pair();
    assert_int_equal(io_sock_sendv(&client.sock, iov, 3, true), 7);
    assert_int_equal(send_text(&client, "!"), 1);
    assert_int_equal(io_sock_watch(&server.sock, IO_READ), 0);
    run_for(5);
    assert_int_equal(io_sock_recv(&server.sock, data, sizeof(data)), 8);
    assert_memory_equal(data, "one two!", 8);
    close_pair();
}

static void test_end_of_stream(void **state)
{
    char data[4];

    connect_pair();
    assert_int_equal(io_sock_watch(&server.sock, IO_READ), 0);
    assert_int_equal(send_text(&client, "bye"), 3);
    client.sock.transport->shutdown_write(&client.sock);
    client.sock.transport->shutdown_write(&client.sock);
    assert_true(client.sock.write_closed);
    RUN_UNTIL(server.events & IO_HUP); /* bytes and end may come with two events */
    assert_true(server.events & IO_HUP);
    assert_int_equal(io_sock_recv(&server.sock, data, sizeof(data)), 3);
    /* A short read, but the end is still to be read. */
    assert_true(server.sock.ready & IO_READ);
    assert_int_equal(io_sock_recv(&server.sock, data, sizeof(data)), SP_EEOF);
    assert_true(server.sock.read_closed);
    assert_false(server.sock.write_closed);
    assert_int_equal(io_sock_recv(&server.sock, data, sizeof(data)), SP_EEOF);
    assert_int_equal(send_text(&server, "half"), 4);
    close_pair();
}

/* The end that comes with the data before the socket is registered must be told when it is. */
static void test_end_before_registration(void **state)
{
    char data[16];

    connect_pair();
    assert_int_equal(send_text(&client, "x"), 1);
    usleep(1000);
    assert_int_equal(io_sock_recv(&server.sock, data, sizeof(data)), 1);
    assert_false(server.sock.ready & IO_READ);
    io_sock_close(&client.sock, false);
    assert_int_equal(io_sock_watch(&server.sock, IO_READ), 0);
    run_for(10);
    assert_true(server.events & IO_HUP);
    assert_int_equal(io_sock_recv(&server.sock, data, sizeof(data)), SP_EEOF);
    close_pair();
}

static void test_reset(void **state)
{
    char data[16];

    connect_pair();
    assert_int_equal(io_sock_watch(&server.sock, IO_READ), 0);
    io_sock_close(&client.sock, true);
    run_for(10);
    assert_true(server.events & IO_ERROR);
    assert_int_equal(io_sock_recv(&server.sock, data, sizeof(data)), SP_ERESET);
    assert_int_equal(server.sock.error, ECONNRESET);
    assert_true(server.sock.read_closed && server.sock.write_closed);
    close_pair();

    connect_pair();
    io_sock_close(&client.sock, true);
    usleep(1000);
    assert_int_equal(send_text(&server, "x"), SP_ERESET);
    assert_true(server.sock.error == ECONNRESET || server.sock.error == EPIPE);
    close_pair();
}

/* What the peer said before its reset is still there when a send has met the reset. */
static void test_answer_before_the_reset(void **state)
{
    char data[16];
    ptrdiff_t n = 0;

    connect_pair();
    assert_int_equal(io_sock_watch(&server.sock, IO_READ), 0);
    assert_int_equal(send_text(&server, "unread"), 6);
    assert_int_equal(send_text(&client, "answer"), 6);
    usleep(1000);
    io_sock_close(&client.sock, false); /* with a byte unread, the kernel resets at once */
    usleep(1000);
    assert_int_equal(send_text(&server, "x"), SP_ERESET);
    assert_true(server.sock.write_closed && !server.sock.read_closed);
    assert_true(server.sock.ready & IO_READ);
    for (int i = 0; i < 100 && (n = io_sock_recv(&server.sock, data, sizeof(data))) == SP_EAGAIN; i++)
        run_for(10);
    assert_int_equal(n, 6);
    assert_memory_equal(data, "answer", 6);
    for (int i = 0; i < 100 && (n = io_sock_recv(&server.sock, data, sizeof(data))) == SP_EAGAIN; i++)
        run_for(10);
    assert_int_equal(n, SP_ERESET);
    close_pair();
}

static void drain(struct end *e)
{
    static char sink[65536];
    ptrdiff_t n;

    while ((n = io_sock_recv(&e->sock, sink, sizeof(sink))) > 0)
        e->received += (size_t)n;
    assert_int_equal(n, SP_EAGAIN);
}

static void test_partial_writes(void **state)
{
    static char block[262144];
    struct iovec iov[2];
    size_t sent = 0, total = (size_t)32 << 20;
    unsigned blocked = 0;

    connect_pair();
    assert_int_equal(io_sock_watch(&server.sock, IO_READ), 0);
    while (sent < total) {
        ptrdiff_t n;

        iov[0] = (struct iovec){block, 1000};
        iov[1] = (struct iovec){block, sizeof(block) - 1000};
        n = io_sock_sendv(&client.sock, sent % 3 ? iov : &iov[1], sent % 3 ? 2 : 1, false);
        if (n > 0) {
            sent += (size_t)n;
            continue;
        }
        assert_int_equal(n, SP_EAGAIN);
        assert_false(client.sock.ready & IO_WRITE);
        assert_true(client.sock.watch.interest & IO_WRITE);
        blocked++;
        while (!(client.sock.ready & IO_WRITE)) {
            drain(&server);
            io_loop_run(loop);
        }
    }
    assert_true(blocked > 0);
    while (server.received < sent) {
        drain(&server);
        if (server.received < sent)
            io_loop_run(loop);
    }
    assert_int_equal(server.received, sent);
    close_pair();
}

/* An accepted socket, not registered at all, that blocks must be told of room. */
static void test_blocking_registers(void **state)
{
    static char block[1 << 20];
    struct iovec iov = {block, sizeof(block)};
    ptrdiff_t n;

    connect_pair();
    assert_false(server.sock.watch.registered);
    do
        n = io_sock_sendv(&server.sock, &iov, 1, false);
    while (n == (ptrdiff_t)sizeof(block));
    assert_true(n > 0 || n == SP_EAGAIN);
    assert_true(server.sock.watch.registered);
    assert_false(server.sock.ready & IO_WRITE);
    client.stop_on_event = false;
    for (unsigned i = 0; !(server.sock.ready & IO_WRITE); i++) {
        assert_true(i < 1000);
        drain(&client);
        run_for(2);
    }
    close_pair();
}

/* From a socket through a pipe to another one, without passing here. */
static void test_splice(void **state)
{
    static char block[300000];
    struct iovec iov = {block, sizeof(block)};
    char data[16];
    ptrdiff_t n;
    int pipes[2];

    assert_int_equal(pipe2(pipes, O_NONBLOCK), 0);
    connect_pair();
    assert_int_equal(io_sock_watch(&server.sock, IO_READ), 0);
    assert_int_equal(server.sock.transport->splice_in(&server.sock, pipes[1], 1000, true),
                     SP_EAGAIN);
    assert_false(server.sock.ready & IO_READ);
    assert_int_equal(send_text(&client, "through"), 7);
    while (!(server.sock.ready & IO_READ))
        io_loop_run(loop);
    assert_int_equal(server.sock.transport->splice_in(&server.sock, pipes[1], 1000, true), 7);
    assert_int_equal(server.sock.transport->splice_out(&server.sock, pipes[0], 7), 7);
    assert_int_equal(io_sock_watch(&client.sock, IO_READ), 0);
    run_for(5);
    assert_int_equal(io_sock_recv(&client.sock, data, sizeof(data)), 7);
    assert_memory_equal(data, "through", 7);

    /* A full pipe is no reason to take the socket for empty. */
    assert_true(io_sock_sendv(&client.sock, &iov, 1, false) > 100000);
    run_for(5);
    do
        n = server.sock.transport->splice_in(&server.sock, pipes[1], 1 << 20, false);
    while (n > 0);
    assert_int_equal(n, SP_EAGAIN);
    assert_true(server.sock.ready & IO_READ);

    io_sock_close(&client.sock, true);
    run_for(5);
    while ((n = read(pipes[0], block, sizeof(block))) > 0)
        ;
    n = server.sock.transport->splice_in(&server.sock, pipes[1], 1000, true);
    assert_true(n > 0 || n == SP_ERESET);
    close(pipes[0]);
    close(pipes[1]);
    close_pair();
}

static void test_splice_to_a_slow_reader(void **state)
{
    static char block[65536];
    size_t sent = 0;
    int pipes[2];

    assert_int_equal(pipe2(pipes, O_NONBLOCK), 0);
    connect_pair();
    for (;;) {
        ptrdiff_t filled = write(pipes[1], block, sizeof(block));
        ptrdiff_t n;

        assert_true(filled > 0);
        n = client.sock.transport->splice_out(&client.sock, pipes[0], (size_t)filled);
        if (n > 0)
            sent += (size_t)n;
        if (n != filled)
            break;
    }
    assert_true(client.sock.watch.interest & IO_WRITE);
    assert_false(client.sock.ready & IO_WRITE);
    assert_int_equal(io_sock_watch(&server.sock, IO_READ), 0);
    server.stop_on_event = false;
    for (unsigned i = 0; !(client.sock.ready & IO_WRITE); i++) {
        assert_true(i < 1000);
        drain(&server);
        run_for(2);
    }
    drain(&server);
    assert_true(server.received <= sent);
    close(pipes[0]);
    close(pipes[1]);
    close_pair();
}

static void test_connect_refused(void **state)
{
    struct addr a;
    int status;

    close(listen_loopback(&a));
    end_init(&client, -1);
    status = client.sock.transport->connect(&client.sock, &a, NULL);
    if (status == 0) {
        assert_int_equal(finish_connect(&client), SP_ERESET);
        assert_int_equal(client.sock.transport->connect_result(&client.sock), SP_ERESET);
        assert_true(client.sock.watch.fd >= 0);
    }
    assert_int_equal(client.sock.error, ECONNREFUSED);
    io_sock_close(&client.sock, false);
    assert_false(io_sock_is_open(&client.sock));
}

static void test_connect_errors(void **state)
{
    struct addr a = loopback();
    struct addr unreachable = {.len = sizeof(struct sockaddr_in)};

    unreachable.u.in.sin_family = AF_INET;
    unreachable.u.in.sin_addr.s_addr = htonl(0xcb007101); /* 203.0.113.1, not ours */
    addr_set_port(&a, 1);
    end_init(&client, -1);
    assert_int_equal(client.sock.transport->connect(&client.sock, &a, &unreachable), SP_EIO);
    assert_int_equal(client.sock.error, EADDRNOTAVAIL);
    assert_int_equal(client.sock.watch.fd, -1);

    a.u.sa.sa_family = 250;
    assert_int_equal(client.sock.transport->connect(&client.sock, &a, NULL), SP_EIO);
    assert_int_equal(client.sock.error, EAFNOSUPPORT);
}

static void test_source_address(void **state)
{
    struct addr a, from = loopback(), seen;
    int listener = listen_loopback(&a);
    uint16_t port;

    from.u.in.sin_addr.s_addr = htonl(0x7f000002);
    end_init(&client, -1);
    assert_int_equal(client.sock.transport->connect(&client.sock, &a, &from), 0);
    assert_int_equal(finish_connect(&client), 0);
    assert_int_equal(client.sock.transport->local_addr(&client.sock, &seen), 0);
    assert_int_equal(seen.u.in.sin_addr.s_addr, from.u.in.sin_addr.s_addr);
    port = addr_port(&seen);
    assert_int_not_equal(port, 0);
    assert_int_equal(client.sock.transport->peer_addr(&client.sock, &seen), 0);
    assert_true(addr_equal(&seen, &a));
    io_sock_close(&client.sock, true);

    /* The same port again, as asked for. */
    addr_set_port(&from, port);
    end_init(&client, -1);
    assert_int_equal(client.sock.transport->connect(&client.sock, &a, &from), 0);
    assert_int_equal(finish_connect(&client), 0);
    assert_int_equal(client.sock.transport->local_addr(&client.sock, &seen), 0);
    assert_int_equal(addr_port(&seen), port);
    io_sock_close(&client.sock, true);
    assert_int_equal(client.sock.transport->local_addr(&client.sock, &seen), SP_EIO);
    close(listener);
}

/*
 * Sending at once: refused as "would block" until the connection stands, then it counts as
 * connected.
 */
static void test_send_while_connecting(void **state)
{
    struct addr a;
    int listener = listen_loopback(&a);
    ptrdiff_t n;

    end_init(&client, -1);
    assert_int_equal(client.sock.transport->connect(&client.sock, &a, NULL), 0);
    while ((n = send_text(&client, "early")) == SP_EAGAIN)
        io_loop_run(loop);
    assert_int_equal(n, 5);
    assert_false(client.sock.connecting);
    assert_int_equal(client.sock.transport->connect_result(&client.sock), 0);
    io_sock_close(&client.sock, false);
    close(listener);
}

static void test_unix_socket(void **state)
{
    struct addr a = {.len = sizeof(struct sockaddr_un)};
    const char *step = NULL;
    char data[8];
    int listener;

    a.u.un.sun_family = AF_UNIX;
    snprintf(a.u.un.sun_path, sizeof(a.u.un.sun_path), "/tmp/sp-test-sock-%ld", (long)getpid());
    end_init(&client, -1);
    assert_int_equal(client.sock.transport->connect(&client.sock, &a, NULL), SP_EIO);
    assert_int_equal(client.sock.error, ENOENT);

    listener = io_listen(&a, &plain, &step);
    assert_true(listener >= 0);
    end_init(&client, -1);
    assert_int_equal(client.sock.transport->connect(&client.sock, &a, NULL), 0);
    assert_false(client.sock.connecting); /* at once */
    assert_int_equal(client.sock.transport->connect_result(&client.sock), 0);
    assert_int_equal(send_text(&client, "unix"), 4);
    end_init(&server, accept4(listener, NULL, NULL, SOCK_NONBLOCK));
    assert_int_equal(io_sock_recv(&server.sock, data, sizeof(data)), 4);
    close_pair();
    close(listener);
    unlink(a.u.un.sun_path);
}

/* One listener's NODELAY serves all its connections. */
static void no_accept(struct io_listener *l, int fd, const struct addr *peer)
{
    close(fd);
}

static void test_nodelay(void **state)
{
    struct io_listener l = {0};
    struct addr a;
    int fd = listen_loopback(&a);
    int value = 0;
    socklen_t len = sizeof(value);
    char byte = 'x';
    struct iovec small = {&byte, 1};

    assert_int_equal(io_listener_start(&l, loop, fd, false, no_accept), 0);
    io_listener_stop(&l);
    end_init(&client, -1);
    assert_int_equal(client.sock.transport->connect(&client.sock, &a, NULL), 0);
    assert_int_equal(finish_connect(&client), 0);
    end_init(&server, accept4(fd, NULL, NULL, SOCK_NONBLOCK));
    getsockopt(server.sock.watch.fd, IPPROTO_TCP, TCP_NODELAY, &value, &len);
    assert_int_not_equal(value, 0);
    /* Of a socket that connects: before its second write, or before a first one that is longer than a segment. */
    assert_int_equal(client.sock.transport->sendv(&client.sock, &small, 1, false), 1);
    getsockopt(client.sock.watch.fd, IPPROTO_TCP, TCP_NODELAY, &value, &len);
    assert_int_equal(value, 0);
    assert_int_equal(client.sock.transport->sendv(&client.sock, &small, 1, false), 1);
    getsockopt(client.sock.watch.fd, IPPROTO_TCP, TCP_NODELAY, &value, &len);
    assert_int_not_equal(value, 0);
    close_pair();
    close(fd);
}

#define SOCK_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SOCK_TEST(test_exchange_and_readiness),
        SOCK_TEST(test_gather_and_more),
        SOCK_TEST(test_end_of_stream),
        SOCK_TEST(test_end_before_registration),
        SOCK_TEST(test_reset),
        SOCK_TEST(test_answer_before_the_reset),
        SOCK_TEST(test_partial_writes),
        SOCK_TEST(test_blocking_registers),
        SOCK_TEST(test_splice),
        SOCK_TEST(test_splice_to_a_slow_reader),
        SOCK_TEST(test_connect_refused),
        SOCK_TEST(test_connect_errors),
        SOCK_TEST(test_source_address),
        SOCK_TEST(test_send_while_connecting),
        SOCK_TEST(test_unix_socket),
        SOCK_TEST(test_nodelay),
    };

    return RUN_WITH_ENGINES(tests);
}
