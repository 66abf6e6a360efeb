/*
 * Many sockets at once in one loop, with each engine: order of bytes through partial sends and full
 * pools, ends, resets, sockets opened in the place of closed ones, addresses that are free at once.
 */
#include "base/clock.h"
#include "io/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine.h"

static struct io_loop *loop;

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

static int listen_loopback(struct addr *a)
{
    static const struct io_listen_options plain = {.unix_mode = -1, .unix_uid = -1, .unix_gid = -1};
    const char *step = NULL;
    int fd;

    if (a->len == 0) {
        a->len = sizeof(struct sockaddr_in);
        a->u.in.sin_family = AF_INET;
        a->u.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    }
    fd = io_listen(a, &plain, &step);
    assert_true(fd >= 0);
    a->len = sizeof(a->u);
    assert_int_equal(getsockname(fd, &a->u.sa, &a->len), 0);
    return fd;
}

/* Both ends of a TCP connection; `buffer` bytes in the kernel, 0: as usual. */
static void make_pair(int fds[2], int buffer)
{
    static struct addr a;
    static int listener = -1;

    if (listener < 0)
        listener = listen_loopback(&a);
    fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fds[0] >= 0);
    if (buffer) {
        setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
        setsockopt(fds[0], SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
    }
    assert_int_equal(connect(fds[0], &a.u.sa, a.len), 0);
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    fds[1] = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    assert_true(fds[1] >= 0);
    if (buffer) {
        setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
        setsockopt(fds[1], SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
    }
}

/* --- streams that check themselves --------------------------------------------------- */

struct peer {
    struct io_sock sock; /* first member */
    size_t total, sent, received;
    size_t piece_max;
    uint32_t random;
    bool close_at_end; /* close when all is sent, instead of shutting down and waiting */
    bool finished, ended;
    bool lazy; /* reads only now and then */
    struct io_timer nudge;
};

static unsigned running;
static size_t bytes_per_turn = 1 << 18;

static uint32_t next_random(struct peer *p)
{
    p->random = p->random * 1664525u + 1013904223u;
    return p->random >> 8;
}

static char byte_at(size_t position)
{
    return (char)(position * 2654435761u >> 13);
}

static void finish_one(struct peer *p)
{
    if (p->finished && p->ended && --running == 0)
        io_loop_stop(loop);
}

static void peer_send(struct peer *p)
{
    static char data[65536];
    size_t budget = bytes_per_turn;

    while (p->sent < p->total && (p->sock.ready & IO_WRITE) && budget) {
        size_t len = 1 + next_random(p) % p->piece_max, first;
        struct iovec iov[2];
        ptrdiff_t n;

        if (len > p->total - p->sent)
            len = p->total - p->sent;
        for (size_t i = 0; i < len; i++)
            data[i] = byte_at(p->sent + i);
        first = len / 3;
        iov[0] = (struct iovec){data, first};
        iov[1] = (struct iovec){data + first, len - first};
        n = io_sock_sendv(&p->sock, first ? iov : &iov[1], first ? 2 : 1,
                          len % 5 == 0 && p->sent + len < p->total);
        if (n == SP_EAGAIN) {
            assert_false(p->sock.ready & IO_WRITE);
            break;
        }
        assert_in_range(n, 1, len);
        p->sent += (size_t)n;
        budget -= budget < (size_t)n ? budget : (size_t)n;
    }
    if (p->sent < p->total) {
        if (p->sock.ready & IO_WRITE)
            io_timer_set(loop, &p->nudge, io_loop_now(loop));
        return;
    }
    if (p->finished)
        return;
    p->finished = true;
    if (p->close_at_end) {
        io_sock_close(&p->sock, false);
        p->ended = true;
        io_timer_cancel(&p->nudge);
    } else {
        p->sock.transport->shutdown_write(&p->sock);
    }
    finish_one(p);
}

static void peer_receive(struct peer *p)
{
    static char data[65536];
    size_t budget = bytes_per_turn;

    while (io_sock_is_open(&p->sock) && (p->sock.ready & IO_READ) && !p->ended && budget) {
        size_t len = 1 + next_random(p) % p->piece_max;
        ptrdiff_t n = io_sock_recv(&p->sock, data, len);

        if (n == SP_EAGAIN) {
            assert_false(p->sock.ready & IO_READ);
            return;
        }
        if (n == SP_EEOF) {
            p->ended = true;
            finish_one(p);
            return;
        }
        assert_in_range(n, 1, len);
        for (ptrdiff_t i = 0; i < n; i++) {
            if (data[i] != byte_at(p->received + (size_t)i))
                fail_msg("byte %zu of a stream is wrong", p->received + (size_t)i);
        }
        p->received += (size_t)n;
        budget -= budget < (size_t)n ? budget : (size_t)n;
        if (p->lazy && next_random(p) % 4 == 0)
            break;
    }
    if (io_sock_is_open(&p->sock) && (p->sock.ready & IO_READ) && !p->ended)
        io_timer_set(loop, &p->nudge, io_loop_now(loop) + (p->lazy ? 1000 : 0));
}

static void peer_event(struct io_sock *s, unsigned events)
{
    struct peer *p = (struct peer *)s;

    peer_receive(p);
    if (io_sock_is_open(s))
        peer_send(p);
}

static void peer_nudge(struct io_timer *t)
{
    struct peer *p = LIST_ENTRY(t, struct peer, nudge);

    peer_event(&p->sock, 0);
}

static void peer_init(struct peer *p, int fd, size_t total, size_t piece_max)
{
    static uint32_t seed = 1;

    memset(p, 0, sizeof(*p));
    io_sock_init(&p->sock, loop, fd, peer_event);
    p->total = total;
    p->piece_max = piece_max;
    p->random = seed++;
    io_timer_init(&p->nudge, peer_nudge);
    io_timer_set(loop, &p->nudge, io_loop_now(loop));
    assert_int_equal(io_sock_watch(&p->sock, IO_READ), 0);
}

struct exchange {
    unsigned pairs;
    size_t total, piece_max;
    int buffer;
    bool lazy, close_at_end;
};

static void exchange(const struct exchange *e)
{
    struct peer *peers = calloc(e->pairs * 2, sizeof(*peers));

    assert_non_null(peers);
    running = e->pairs * 2;
    for (unsigned i = 0; i < e->pairs; i++) {
        int fds[2];

        make_pair(fds, e->buffer);
        peer_init(&peers[2 * i], fds[0], e->total, e->piece_max);
        peer_init(&peers[2 * i + 1], fds[1], e->close_at_end ? 0 : e->total, e->piece_max);
        peers[2 * i].close_at_end = e->close_at_end;
        peers[2 * i + 1].lazy = e->lazy;
    }
    io_loop_run(loop);
    assert_int_equal(running, 0);
    for (unsigned i = 0; i < e->pairs * 2; i++) {
        assert_int_equal(peers[i].received, e->close_at_end && i % 2 == 0 ? 0 : e->total);
        io_timer_cancel(&peers[i].nudge);
        io_sock_close(&peers[i].sock, false);
    }
    free(peers);
}

static void test_small_messages(void **state)
{
    exchange(&(struct exchange){.pairs = 50, .total = 100000, .piece_max = 300});
}

static void test_messages_of_all_sizes(void **state)
{
    exchange(&(struct exchange){.pairs = 20, .total = 3000000, .piece_max = 20000});
}

static void test_partial_sends(void **state)
{
    exchange(&(struct exchange){.pairs = 20, .total = 400000, .piece_max = 9000, .buffer = 12000});
}

/* More sockets than there are buffers and chunks, all with something in them. */
static void test_pools_run_out(void **state)
{
    exchange(&(struct exchange){
        .pairs = 400, .total = 60000, .piece_max = 5000, .buffer = 8000, .lazy = true});
}

static void test_big_transfer(void **state)
{
    exchange(&(struct exchange){.pairs = 2, .total = (size_t)24 << 20, .piece_max = 65536});
}

/* What was sent before the close arrives, and then the end. */
static void test_close_after_send(void **state)
{
    exchange(
        &(struct exchange){.pairs = 100, .total = 6000, .piece_max = 2000, .close_at_end = true});
    exchange(&(struct exchange){.pairs = 100,
                                .total = 70000,
                                .piece_max = 6000,
                                .buffer = 8000,
                                .lazy = true,
                                .close_at_end = true});
}

/* --- sockets in the place of closed ones ------------------------------------------------ */

#define PLACES 16

struct place {
    struct io_sock sock; /* first member */
    int other;
    bool fresh; /* nothing has been sent to it since it was opened */
};

static struct place places[PLACES];
static unsigned strays, reopened;

static void place_event(struct io_sock *s, unsigned events);

static void place_open(struct place *p)
{
    int fds[2];

    make_pair(fds, 0);
    io_sock_init(&p->sock, loop, fds[0], place_event);
    p->other = fds[1];
    p->fresh = true;
    assert_int_equal(io_sock_watch(&p->sock, IO_READ), 0);
}

static void place_event(struct io_sock *s, unsigned events)
{
    struct place *p = (struct place *)s;

    if (p->fresh && (events & (IO_READ | IO_HUP | IO_ERROR)))
        strays++;
    /* All others have events in this turn too; they are closed and opened again before those are served. */
    for (unsigned i = 0; i < PLACES; i++) {
        struct place *q = &places[i];
        struct iovec iov = {(char *)"0123456789", 10};

        if (q->fresh)
            continue;
        io_sock_sendv(&q->sock, &iov, 1, false);
        io_sock_close(&q->sock, i % 3 == 0);
        close(q->other);
        place_open(q);
        reopened++;
    }
}

static void test_reuse_after_close(void **state)
{
    strays = reopened = 0;
    for (unsigned i = 0; i < PLACES; i++)
        place_open(&places[i]);
    for (unsigned round = 0; round < 50; round++) {
        for (unsigned i = 0; i < PLACES; i++) {
            assert_int_equal(write(places[i].other, "x", 1), 1);
            places[i].fresh = false;
        }
        RUN_UNTIL(reopened == (round + 1) * PLACES);
    }
    run_for(2);
    assert_int_equal(strays, 0);
    assert_int_equal(reopened, 50 * PLACES);
    for (unsigned i = 0; i < PLACES; i++) {
        io_sock_close(&places[i].sock, false);
        close(places[i].other);
    }
}

/* --- resets ------------------------------------------------------------------------------- */

static unsigned reset_events;

static void reset_event(struct io_sock *s, unsigned events)
{
    reset_events |= events;
}

static void test_reset_while_bytes_wait(void **state)
{
    struct io_sock s;
    char data[8];
    ptrdiff_t n;
    int fds[2];

    make_pair(fds, 0);
    io_sock_init(&s, loop, fds[0], reset_event);
    assert_int_equal(io_sock_watch(&s, IO_READ), 0);
    reset_events = 0;
    assert_int_equal(write(fds[1], "unread", 6), 6);
    RUN_UNTIL(reset_events & IO_READ);
    assert_true(reset_events & IO_READ);
    assert_false(reset_events & IO_ERROR);
    assert_int_equal(
        setsockopt(fds[1], SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger)),
        0);
    close(fds[1]);
    RUN_UNTIL(reset_events & IO_ERROR);
    assert_true(reset_events & IO_ERROR);
    while ((n = io_sock_recv(&s, data, sizeof(data))) > 0)
        ;
    assert_int_equal(n, SP_ERESET);
    assert_int_equal(s.error, ECONNRESET);
    io_sock_close(&s, false);
}

static void test_peer_gone_while_bytes_wait(void **state)
{
    struct io_sock s;
    char data[8];
    int fds[2];

    make_pair(fds, 0);
    io_sock_init(&s, loop, fds[0], reset_event);
    assert_int_equal(io_sock_watch(&s, IO_READ), 0);
    reset_events = 0;
    assert_int_equal(write(fds[1], "unread", 6), 6);
    run_for(5);
    shutdown(fds[1], SHUT_WR);
    RUN_UNTIL(reset_events & IO_HUP);
    assert_true(reset_events & IO_HUP);
    assert_false(reset_events & IO_ERROR);
    assert_false(io_sock_is_silent(&s));
    assert_int_equal(io_sock_recv(&s, data, sizeof(data)), 6);
    assert_true(s.ready & IO_READ);
    assert_int_equal(io_sock_recv(&s, data, sizeof(data)), SP_EEOF);
    close(fds[1]);
    io_sock_close(&s, false);
}

static void test_silence(void **state)
{
    struct io_sock s;
    char data[8];
    int fds[2];

    make_pair(fds, 0);
    io_sock_init(&s, loop, fds[0], reset_event);
    assert_int_equal(io_sock_watch(&s, IO_READ), 0);
    run_for(2);
    assert_true(io_sock_is_silent(&s));
    assert_int_equal(write(fds[1], "x", 1), 1);
    assert_false(io_sock_is_silent(&s)); /* though no event has told of it yet */
    run_for(2);
    assert_false(io_sock_is_silent(&s));
    assert_int_equal(io_sock_recv(&s, data, sizeof(data)), 1);
    assert_true(io_sock_is_silent(&s));
    assert_int_equal(io_sock_settle(&s), 0);
    close(fds[1]);
    run_for(2);
    assert_false(io_sock_is_silent(&s));
    io_sock_close(&s, false);
}

/* --- listeners ------------------------------------------------------------------------------ */

static struct io_listener listener;
static struct addr listen_addr;
static unsigned stops, taken;
static int clients[400];
static unsigned client_count;

static void take(struct io_listener *l, int fd, const struct addr *peer)
{
    assert_int_equal(peer->u.sa.sa_family, AF_INET);
    assert_true(addr_port(peer) != 0);
    taken++;
    close(fd);
}

static void connect_some(unsigned count)
{
    while (count--) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        assert_int_equal(connect(fd, &listen_addr.u.sa, listen_addr.len), 0);
        clients[client_count++] = fd;
    }
}

/* Stops, closes and listens on the same port again, all in one callback. */
static void restart_fire(struct io_timer *t)
{
    int fd = listener.watch.fd;

    io_listener_stop(&listener);
    close(fd);
    fd = listen_loopback(&listen_addr); /* EADDRINUSE would fail here */
    memset(&listener, 0, sizeof(listener));
    assert_int_equal(io_listener_start(&listener, loop, fd, false, take), 0);
    if (++stops == 50)
        io_loop_stop(loop);
    else
        io_timer_set(loop, t, io_loop_now(loop));
    connect_some(stops % 4);
}

static void test_address_is_free_at_once(void **state)
{
    struct io_timer t;

    memset(&listen_addr, 0, sizeof(listen_addr));
    memset(&listener, 0, sizeof(listener));
    stops = taken = client_count = 0;
    assert_int_equal(io_listener_start(&listener, loop, listen_loopback(&listen_addr), false, take),
                     0);
    io_timer_init(&t, restart_fire);
    io_timer_set(loop, &t, io_loop_now(loop));
    io_loop_run(loop);
    RUN_UNTIL(taken > 0);
    assert_true(taken > 0);
    io_listener_stop(&listener);
    close(listener.watch.fd);
    /* Outside of the loop as well. */
    close(listen_loopback(&listen_addr));
    while (client_count)
        close(clients[--client_count]);
}

static unsigned stop_after;

static void take_and_stop(struct io_listener *l, int fd, const struct addr *peer)
{
    close(fd);
    if (++taken == stop_after)
        io_listener_stop(l);
}

/* Stopping in the callback: what had been accepted is reported, and nothing after that. */
static void test_stop_while_accepting(void **state)
{
    for (stop_after = 1; stop_after < 20; stop_after += 3) {
        unsigned before;

        memset(&listen_addr, 0, sizeof(listen_addr));
        memset(&listener, 0, sizeof(listener));
        taken = client_count = 0;
        assert_int_equal(
            io_listener_start(&listener, loop, listen_loopback(&listen_addr), false, take_and_stop),
            0);
        connect_some(30);
        RUN_UNTIL(taken >= stop_after);
        assert_true(taken >= stop_after);
        before = taken;
        connect_some(3);
        run_for(2);
        assert_int_equal(taken, before);
        close(listener.watch.fd);
        while (client_count)
            close(clients[--client_count]);
    }
}

/* --- the rest --------------------------------------------------------------------------------- */

static unsigned ticks;

static void tick_fire(struct io_timer *t)
{
    if (++ticks < 20)
        io_timer_set(loop, t, io_loop_now(loop) + 3000);
    else
        io_loop_stop(loop);
}

/* Timers fire while requests are in flight that never complete. */
static void test_timers_while_waiting(void **state)
{
    struct io_sock idle[20];
    struct io_timer t;
    int others[20];
    uint64_t began = clock_now_us();

    for (unsigned i = 0; i < 20; i++) {
        int fds[2];

        make_pair(fds, 0);
        io_sock_init(&idle[i], loop, fds[0], reset_event);
        assert_int_equal(io_sock_watch(&idle[i], IO_READ), 0);
        others[i] = fds[1];
    }
    ticks = 0;
    io_timer_init(&t, tick_fire);
    io_timer_set(loop, &t, io_loop_now(loop) + 3000);
    io_loop_run(loop);
    assert_int_equal(ticks, 20);
    assert_true(clock_now_us() - began >= 50000);
    assert_true(io_loop_turns(loop) < 80);
    for (unsigned i = 0; i < 20; i++) {
        io_sock_close(&idle[i], false);
        close(others[i]);
    }
}

static void test_engine_names(void **state)
{
    struct io_loop *any = io_loop_new_engine(IO_ENGINE_AUTO);

    assert_string_equal(io_loop_engine_name(loop),
                        engine == IO_ENGINE_URING ? "io_uring" : "epoll");
    assert_non_null(any);
    assert_string_equal(io_loop_engine_name(any), io_uring_missing() ? "epoll" : "io_uring");
    io_loop_free(any);
}

#define STREAM_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STREAM_TEST(test_small_messages),
        STREAM_TEST(test_messages_of_all_sizes),
        STREAM_TEST(test_partial_sends),
        STREAM_TEST(test_pools_run_out),
        STREAM_TEST(test_big_transfer),
        STREAM_TEST(test_close_after_send),
        STREAM_TEST(test_reuse_after_close),
        STREAM_TEST(test_reset_while_bytes_wait),
        STREAM_TEST(test_peer_gone_while_bytes_wait),
        STREAM_TEST(test_silence),
        STREAM_TEST(test_address_is_free_at_once),
        STREAM_TEST(test_stop_while_accepting),
        STREAM_TEST(test_timers_while_waiting),
        STREAM_TEST(test_engine_names),
    };

    return RUN_WITH_ENGINES(tests);
}
