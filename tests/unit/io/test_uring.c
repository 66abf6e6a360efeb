/*
 * What only the io_uring engine does: bytes held in user space while requests are in flight. Busy
 * turns are made by sockets that all have an event in the same turn.
 */
#include "io/uring.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine.h"

static struct io_loop *loop;

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

/* Both ends of a TCP connection, the second one blocking; `buffer` bytes in the kernel, 0: as usual. */
static void make_pair(int fds[2], int buffer)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    int listener = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(bind(listener, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&a, &len), 0);
    fds[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (buffer) {
        setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
        setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
    }
    assert_int_equal(connect(fds[0], (struct sockaddr *)&a, sizeof(a)), 0);
    fds[1] = accept(listener, NULL, NULL);
    assert_true(fds[1] >= 0);
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    close(listener);
}

/* --- a busy turn ------------------------------------------------------------------------ */

#define CROWD 8

struct one {
    struct io_sock sock; /* first member */
    int other;
};

static struct one crowd[CROWD];
static void (*in_turn)(void);
static unsigned served;

static void crowd_event(struct io_sock *s, unsigned events)
{
    char data[16];

    while (io_sock_recv(s, data, sizeof(data)) > 0)
        ;
    served++;
    if (s == &crowd[CROWD - 1].sock && in_turn) {
        void (*f)(void) = in_turn;

        in_turn = NULL;
        assert_true(io_loop_uring(loop)->batching);
        f();
    }
}

static int setup(void **state)
{
    loop = engine_loop();
    if (!loop)
        return -1;
    for (unsigned i = 0; i < CROWD; i++) {
        int fds[2];

        make_pair(fds, 0);
        io_sock_init(&crowd[i].sock, loop, fds[0], crowd_event);
        crowd[i].other = fds[1];
        if (io_sock_watch(&crowd[i].sock, IO_READ) != 0)
            return -1;
    }
    return 0;
}

static int teardown(void **state)
{
    for (unsigned i = 0; i < CROWD; i++) {
        io_sock_close(&crowd[i].sock, false);
        close(crowd[i].other);
    }
    io_loop_free(loop);
    return 0;
}

/* Calls f in a turn with many events, then lets the loop run a little. */
static void busy_turn(void (*f)(void), unsigned ms)
{
    in_turn = f;
    for (unsigned i = 0; i < CROWD; i++)
        assert_int_equal(write(crowd[i].other, "x", 1), 1);
    RUN_UNTIL(!in_turn);
    run_for(ms);
    assert_null(in_turn);
}

/* --- one socket under test ------------------------------------------------------------------ */

static struct io_sock sock;
static int other;
static unsigned seen;
static size_t sent;

static void sock_event(struct io_sock *s, unsigned events)
{
    seen |= events;
}

static void open_sock(int buffer)
{
    int fds[2];

    make_pair(fds, buffer);
    io_sock_init(&sock, loop, fds[0], sock_event);
    other = fds[1];
    seen = 0;
    sent = 0;
    assert_int_equal(io_sock_watch(&sock, IO_READ), 0);
}

static char byte_at(size_t position)
{
    return (char)(position * 2654435761u >> 13);
}

static ptrdiff_t send_bytes(size_t len)
{
    static char data[1 << 20];
    struct iovec iov = {data, len};
    ptrdiff_t n;

    assert_true(len <= sizeof(data));
    for (size_t i = 0; i < len; i++)
        data[i] = byte_at(sent + i);
    n = io_sock_sendv(&sock, &iov, 1, false);
    if (n > 0)
        sent += (size_t)n;
    return n;
}

/* Reads at the other end what was sent, while the loop runs, and checks it. */
static void check_received(bool to_the_end)
{
    size_t got = 0;
    char data[4096];

    for (unsigned i = 0; i < 20000; i++) {
        ssize_t n = recv(other, data, sizeof(data), MSG_DONTWAIT);

        if (n == 0) {
            assert_true(to_the_end);
            break;
        }
        for (ssize_t k = 0; k < n; k++)
            assert_int_equal(data[k], byte_at(got + (size_t)k));
        if (n > 0)
            got += (size_t)n;
        else if (got == sent && !to_the_end)
            break;
        else
            run_for(1);
    }
    assert_int_equal(got, sent);
}

static void fill_socket(void)
{
    while (send_bytes(1 << 20) > 0) /* directly */
        ;
    assert_false(sock.ready & IO_WRITE);
}

static void send_5000(void)
{
    assert_int_equal(send_bytes(5000), 5000);
}

static void test_gathered_in_a_turn(void **state)
{
    open_sock(0);
    busy_turn(send_5000, 5);
    check_received(false);
    assert_null(sock.uring->tx); /* the chunk is back */
    io_sock_close(&sock, false);
    close(other);
}

/* Less room in the kernel than is sent: a chunk stays in flight, another one fills behind it. */
static void test_behind_a_send_in_flight(void **state)
{
    unsigned turns = 0;
    char byte;

    open_sock(4096);
    /* Leave the kernel's buffers full, and the socket taken to be writable. */
    fill_socket();
    sock.ready |= IO_WRITE;
    while (!(sock.uring && io_uring_is_armed(sock.uring, IO_URING_SEND)) && turns++ < 20) {
        busy_turn(send_5000, 2);
        if (sock.uring->tx)
            break;
    }
    assert_non_null(sock.uring->tx); /* not in flight any more: io_loop_run has returned */
    assert_true(sock.ready & IO_WRITE);
    /* In the same turn more than the chunks hold. */
    while (sock.ready & IO_WRITE) {
        if (send_bytes(3000) < 0)
            break;
    }
    assert_false(sock.ready & IO_WRITE);
    sock.transport->shutdown_write(&sock);
    assert_true(sock.write_closed);
    check_received(true);
    assert_int_equal(recv(other, &byte, 1, MSG_DONTWAIT), 0);
    io_sock_close(&sock, false);
    close(other);
}

static struct io_timer step_timer;
static unsigned step;
static int pipes[2];

/* While the loop runs and a send is in flight. */
static void step_fire(struct io_timer *t)
{
    assert_true(io_uring_is_armed(sock.uring, IO_URING_SEND));
    if (step++ < 4) {
        assert_int_equal(send_bytes(4000), 4000);
        io_timer_set(loop, t, io_loop_now(loop));
        return;
    }
    assert_in_range(send_bytes(4000), 1, 3999); /* the second chunk is full */
    assert_int_equal(send_bytes(10), SP_EAGAIN);
    assert_false(sock.ready & IO_WRITE);
    assert_int_equal(io_sock_settle(&sock), SP_EAGAIN);
    assert_int_equal(write(pipes[1], "pipe", 4), 4);
    assert_int_equal(sock.transport->splice_out(&sock, pipes[0], 4), SP_EAGAIN);
    sock.transport->shutdown_write(&sock);
    assert_int_equal(send_bytes(10), SP_ERESET);
    io_loop_stop(loop);
}

static void send_and_step(void)
{
    send_5000();
    step = 0;
    io_timer_init(&step_timer, step_fire);
    io_timer_set(loop, &step_timer, io_loop_now(loop) + 2000);
}

static void test_more_while_in_flight(void **state)
{
    assert_int_equal(pipe(pipes), 0);
    open_sock(4096);
    fill_socket();
    sock.ready |= IO_WRITE;
    busy_turn(send_and_step, 100);
    RUN_UNTIL(step == 5);
    assert_int_equal(step, 5);
    sock.error = 0;
    check_received(true);
    assert_true(seen & IO_WRITE);
    close(pipes[0]);
    close(pipes[1]);
    io_sock_close(&sock, false);
    close(other);
}

static void reset_other(void)
{
    struct linger none = {1, 0};

    setsockopt(other, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    close(other);
}

static void send_into_reset(void)
{
    send_5000();
    reset_other();
}

static void send_into_answer_and_reset(void)
{
    assert_int_equal(send(other, "answer", 6, MSG_NOSIGNAL), 6);
    send_into_reset();
}

static void test_reset_before_the_send(void **state)
{
    char data[8];

    open_sock(0);
    busy_turn(send_into_reset, 5);
    RUN_UNTIL(seen & IO_ERROR);
    assert_true(seen & IO_ERROR);
    assert_int_equal(send_bytes(10), SP_ERESET);
    assert_true(sock.error == ECONNRESET || sock.error == EPIPE);
    assert_true(sock.write_closed && !sock.read_closed);
    RUN_UNTIL(io_sock_recv(&sock, data, sizeof(data)) != SP_EAGAIN);
    assert_true(sock.read_closed);
    io_sock_close(&sock, false);
}

/* What the peer said before its reset is still there when a send has met the reset. */
static void test_answer_before_the_reset(void **state)
{
    char data[8];
    ptrdiff_t n = 0;

    open_sock(0);
    busy_turn(send_into_answer_and_reset, 5);
    RUN_UNTIL(seen & IO_ERROR);
    assert_int_equal(send_bytes(10), SP_ERESET);
    RUN_UNTIL((n = io_sock_recv(&sock, data, sizeof(data))) != SP_EAGAIN);
    assert_int_equal(n, 6);
    assert_memory_equal(data, "answer", 6);
    RUN_UNTIL((n = io_sock_recv(&sock, data, sizeof(data))) != SP_EAGAIN);
    assert_true(n == SP_ERESET || n == SP_EEOF);
    io_sock_close(&sock, false);
}

static void test_reset_of_a_send_in_flight(void **state)
{
    char data[8];

    open_sock(4096);
    fill_socket();
    sock.ready |= IO_WRITE;
    busy_turn(send_5000, 5);
    assert_non_null(sock.uring->tx);
    reset_other();
    RUN_UNTIL(seen & IO_ERROR);
    assert_true(seen & IO_ERROR);
    assert_int_equal(io_sock_recv(&sock, data, sizeof(data)), SP_ERESET);
    assert_null(sock.uring->tx);
    io_sock_close(&sock, false);
}

/* --- closing with bytes left ------------------------------------------------------------------ */

static void close_sock(void)
{
    send_5000();
    io_sock_close(&sock, false);
    assert_int_equal(sock.watch.fd, -1);
}

static void test_close_in_the_turn_of_sending(void **state)
{
    open_sock(0);
    busy_turn(close_sock, 5);
    check_received(true);
    close(other);

    open_sock(4096); /* the bytes do not fit: they leave when there is room */
    fill_socket();
    sock.ready |= IO_WRITE;
    busy_turn(close_sock, 5);
    check_received(true);
    close(other);
}

static void reset_sock(void)
{
    send_5000();
    io_sock_close(&sock, true);
}

static void test_reset_drops_what_was_gathered(void **state)
{
    char data[8];

    open_sock(0);
    busy_turn(reset_sock, 5);
    assert_int_equal(recv(other, data, sizeof(data), MSG_DONTWAIT), -1);
    assert_int_equal(errno, ECONNRESET);
    close(other);
}

static struct io_uring_sock *orphan(void)
{
    LIST_FOR_EACH(item, &io_loop_uring(loop)->socks) {
        struct io_uring_sock *us = LIST_ENTRY(item, struct io_uring_sock, all);

        if (!us->sock)
            return us;
    }
    return NULL;
}

/* A peer that never takes the rest: given up after a while, or with the loop. */
static void test_patience(void **state)
{
    struct io_uring_sock *us;

    open_sock(4096);
    fill_socket();
    sock.ready |= IO_WRITE;
    busy_turn(close_sock, 5);
    us = orphan();
    assert_non_null(us);
    assert_true(us->timer.deadline_us > io_loop_now(loop) + 20000000);
    io_timer_set(loop, &us->timer, io_loop_now(loop));
    RUN_UNTIL(!orphan());
    assert_null(orphan());
    close(other);

    open_sock(4096);
    fill_socket();
    sock.ready |= IO_WRITE;
    busy_turn(close_sock, 5);
    assert_non_null(orphan()); /* for io_loop_free in the teardown */
    close(other);
}

/* --- receiving ------------------------------------------------------------------------------------ */

static void test_all_buffers_hold_bytes(void **state)
{
    enum { COUNT = IO_RING_BUFFERS + 20 };
    static struct io_sock socks[COUNT];
    static int others[COUNT];
    char data[8];

    for (unsigned i = 0; i < COUNT; i++) {
        int fds[2];

        make_pair(fds, 0);
        io_sock_init(&socks[i], loop, fds[0], sock_event);
        others[i] = fds[1];
        assert_int_equal(io_sock_watch(&socks[i], IO_READ), 0);
    }
    run_for(2);
    for (unsigned i = 0; i < COUNT; i++)
        assert_int_equal(write(others[i], "abc", 3), 3);
    for (unsigned i = 0; i < COUNT; i++) {
        RUN_UNTIL(socks[i].ready & IO_READ);
        assert_true(socks[i].ready & IO_READ);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        assert_int_equal(io_sock_recv(&socks[i], data, sizeof(data)), 3);
        assert_memory_equal(data, "abc", 3);
        assert_int_equal(write(others[i], "defg", 4), 4);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        RUN_UNTIL(socks[i].ready & IO_READ);
        assert_int_equal(io_sock_recv(&socks[i], data, sizeof(data)), 4);
        assert_memory_equal(data, "defg", 4);
        io_sock_close(&socks[i], i % 2);
        close(others[i]);
    }
}

static void test_splice_of_held_bytes(void **state)
{
    char data[16];

    assert_int_equal(pipe2(pipes, O_NONBLOCK), 0);
    open_sock(0);
    run_for(2);
    assert_int_equal(write(other, "held in user space", 18), 18);
    RUN_UNTIL(seen & IO_READ);
    assert_int_equal(sock.uring->rx_len, 18);
    assert_int_equal(sock.transport->splice_in(&sock, pipes[1], 5, true), 5);
    assert_int_equal(io_sock_recv(&sock, data, 3), 3);
    assert_memory_equal(data, "in ", 3);
    assert_int_equal(write(other, "!", 1), 1);
    assert_int_equal(sock.transport->splice_in(&sock, pipes[1], 100, false), 10);
    assert_true(sock.ready & IO_READ);
    assert_int_equal(sock.transport->splice_in(&sock, pipes[1], 100, false), 1);
    assert_int_equal(read(pipes[0], data, sizeof(data)), 16);
    assert_memory_equal(data, "held user space!", 16);
    close(pipes[0]);
    close(pipes[1]);
    io_sock_close(&sock, false);
    close(other);
}

/* --- the loop ------------------------------------------------------------------------------------- */

static void test_open_sockets_outlive_the_loop(void **state)
{
    struct io_loop *second = engine_loop();
    struct io_sock s;
    int fds[2];

    assert_non_null(second);
    make_pair(fds, 0);
    io_sock_init(&s, second, fds[0], sock_event);
    assert_int_equal(io_sock_watch(&s, IO_READ), 0);
    io_loop_stop(second);
    io_loop_run(second);
    io_loop_free(second);
    assert_false(s.watch.registered);
    assert_null(s.uring);
    close(fds[0]);
    close(fds[1]);
}

/* A child must not be able to disturb the ring of its parent. */
static void test_fork(void **state)
{
    int status;
    pid_t child;

    open_sock(0);
    io_loop_set_forking(loop, true);
    child = fork();
    if (child == 0)
        _exit(write(other, "from the child", 14) == 14 ? 0 : 1);
    run_for(20);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    RUN_UNTIL(seen & IO_READ);
    assert_true(seen & IO_READ);
    io_loop_set_forking(loop, false);
    io_sock_close(&sock, false);
    close(other);
}

static void test_refusal(void **state)
{
    struct rlimit old, none;
    struct io_loop *l;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = old;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_string_equal(io_uring_missing(),
                        "the kernel refuses io_uring_setup: Too many open files");
    l = io_loop_new_engine(IO_ENGINE_URING);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_null(l);
    assert_null(io_uring_missing());
}

#define URING_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        URING_TEST(test_gathered_in_a_turn),
        URING_TEST(test_behind_a_send_in_flight),
        URING_TEST(test_more_while_in_flight),
        URING_TEST(test_reset_before_the_send),
        URING_TEST(test_answer_before_the_reset),
        URING_TEST(test_reset_of_a_send_in_flight),
        URING_TEST(test_close_in_the_turn_of_sending),
        URING_TEST(test_reset_drops_what_was_gathered),
        URING_TEST(test_patience),
        URING_TEST(test_all_buffers_hold_bytes),
        URING_TEST(test_splice_of_held_bytes),
        URING_TEST(test_open_sockets_outlive_the_loop),
        URING_TEST(test_fork),
        URING_TEST(test_refusal),
    };

    if (!engine_switch_to_uring())
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
