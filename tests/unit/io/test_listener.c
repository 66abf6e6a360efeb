/*
 * Listening sockets and accepting from them.
 */
#include "base/clock.h"
#include "io/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine.h"

#define MANY 200

static struct io_loop *loop;
static struct io_listener listener;
static int accepted[MANY];
static unsigned accepted_count;
static unsigned accepted_this_turn, accepted_per_turn_max;
static uint64_t accepted_turn;
static void (*during_accept)(struct io_listener *l);

static struct io_listen_options plain(void)
{
    return (struct io_listen_options){.unix_mode = -1, .unix_uid = -1, .unix_gid = -1};
}

static int setup(void **state)
{
    loop = engine_loop();
    memset(&listener, 0, sizeof(listener));
    accepted_count = accepted_this_turn = accepted_per_turn_max = 0;
    accepted_turn = 0;
    during_accept = NULL;
    return loop ? 0 : -1;
}

static int teardown(void **state)
{
    for (unsigned i = 0; i < accepted_count; i++)
        close(accepted[i]);
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

static void note_accept(struct io_listener *l, int fd, const struct addr *peer)
{
    if (io_loop_turns(loop) != accepted_turn) {
        accepted_turn = io_loop_turns(loop);
        accepted_this_turn = 0;
    }
    if (++accepted_this_turn > accepted_per_turn_max)
        accepted_per_turn_max = accepted_this_turn;
    assert_true(accepted_count < MANY);
    accepted[accepted_count++] = fd;
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_true(peer->u.sa.sa_family == AF_INET || peer->u.sa.sa_family == AF_UNIX);
    if (during_accept)
        during_accept(l);
}

static struct addr loopback(void)
{
    struct addr a = {.len = sizeof(struct sockaddr_in)};

    a.u.in.sin_family = AF_INET;
    a.u.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return a;
}

static int listen_loopback(struct addr *a)
{
    struct io_listen_options o = plain();
    const char *step = NULL;
    int fd;

    *a = loopback();
    fd = io_listen(a, &o, &step);
    assert_true(fd >= 0);
    a->len = sizeof(a->u);
    assert_int_equal(getsockname(fd, &a->u.sa, &a->len), 0);
    return fd;
}

static int connect_to(const struct addr *a)
{
    int fd = socket(a->u.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, &a->u.sa, a->len), 0);
    return fd;
}

static void test_batch(void **state)
{
    struct addr a;
    int fd = listen_loopback(&a);
    int clients[MANY];

    for (unsigned i = 0; i < MANY; i++)
        clients[i] = connect_to(&a);
    listener.batch = 16;
    assert_int_equal(io_listener_start(&listener, loop, fd, false, note_accept), 0);
    run_for(30);
    assert_int_equal(accepted_count, MANY);
    assert_int_equal(accepted_per_turn_max, 16);
    assert_true(io_loop_turns(loop) < 60);
    for (unsigned i = 0; i < MANY; i++)
        close(clients[i]);
    io_listener_stop(&listener);
    close(fd);
}

static void test_default_batch(void **state)
{
    struct addr a;
    int fd = listen_loopback(&a);
    int clients[MANY];

    assert_int_equal(io_listener_start(&listener, loop, fd, false, note_accept), 0);
    assert_int_equal(listener.batch, 64);
    for (unsigned i = 0; i < MANY; i++)
        clients[i] = connect_to(&a);
    run_for(30);
    assert_int_equal(accepted_count, MANY);
    assert_in_range(accepted_per_turn_max, 2, 64);
    for (unsigned i = 0; i < MANY; i++)
        close(clients[i]);
    io_listener_stop(&listener);
    close(fd);
}

/* Connections one after another are each accepted when they come. */
static void test_one_by_one(void **state)
{
    struct addr a;
    int fd = listen_loopback(&a);

    assert_int_equal(io_listener_start(&listener, loop, fd, false, note_accept), 0);
    for (unsigned i = 1; i <= 20; i++) {
        int client = connect_to(&a);

        run_for(3);
        assert_int_equal(accepted_count, i);
        close(client);
    }
    assert_int_equal(accepted_per_turn_max, 1);
    io_listener_stop(&listener);
    close(fd);
}

static void test_pause(void **state)
{
    struct addr a;
    int fd = listen_loopback(&a);
    int clients[3];

    during_accept = io_listener_pause;
    assert_int_equal(io_listener_start(&listener, loop, fd, false, note_accept), 0);
    for (unsigned i = 0; i < 3; i++)
        clients[i] = connect_to(&a);
    for (unsigned i = 1; i <= 3; i++) {
        run_for(5);
        assert_int_equal(accepted_count, i);
        assert_true(listener.paused);
        io_listener_resume(&listener);
    }
    io_listener_resume(&listener); /* again: harmless */
    for (unsigned i = 0; i < 3; i++)
        close(clients[i]);
    io_listener_stop(&listener);
    close(fd);
}

static void test_out_of_descriptors(void **state)
{
    struct rlimit old, tight;
    struct addr a;
    int fd = listen_loopback(&a);
    int client;

    assert_int_equal(io_listener_start(&listener, loop, fd, false, note_accept), 0);
    client = connect_to(&a);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    tight = old;
    tight.rlim_cur = (rlim_t)client + 1; /* every lower number is in use */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    run_for(30);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(accepted_count, 0);
    assert_int_equal(listener.resource_errors, 1);
    assert_true(io_loop_turns(loop) < 10); /* it does not spin */
    run_for(120);
    assert_int_equal(accepted_count, 1);

    close(client);
    io_listener_stop(&listener);
    close(fd);
}

/* --- several threads on one socket --------------------------------------------------------- */

struct worker {
    struct io_loop *loop;
    struct io_listener listener; /* its owner is found by the member */
    pthread_t thread;
};

static atomic_uint shared_accepted;

static void count_accept(struct io_listener *l, int fd, const struct addr *peer)
{
    close(fd);
    atomic_fetch_add(&shared_accepted, 1);
}

static void *worker_run(void *arg)
{
    struct worker *w = arg;

    io_loop_run(w->loop);
    return NULL;
}

static void test_shared(void **state)
{
    static struct worker workers[2];
    struct addr a;
    int fd = listen_loopback(&a);

    atomic_store(&shared_accepted, 0);
    for (unsigned i = 0; i < 2; i++) {
        memset(&workers[i], 0, sizeof(workers[i]));
        workers[i].loop = engine_loop();
        assert_non_null(workers[i].loop);
        assert_int_equal(
            io_listener_start(&workers[i].listener, workers[i].loop, fd, true, count_accept), 0);
        assert_int_equal(pthread_create(&workers[i].thread, NULL, worker_run, &workers[i]), 0);
    }
    for (unsigned i = 0; i < 500; i++)
        close(connect_to(&a));
    for (unsigned i = 0; i < 1000 && atomic_load(&shared_accepted) < 500; i++)
        usleep(1000);
    assert_int_equal(atomic_load(&shared_accepted), 500);
    for (unsigned i = 0; i < 2; i++) {
        io_loop_stop(workers[i].loop);
        pthread_join(workers[i].thread, NULL);
        io_listener_stop(&workers[i].listener);
        io_loop_free(workers[i].loop);
    }
    close(fd);
}

/* --- io_listen ------------------------------------------------------------------------------- */

static void test_bind_errors(void **state)
{
    struct io_listen_options o = plain();
    struct addr a = loopback();
    const char *step = NULL;
    int fd;

    a.u.in.sin_addr.s_addr = htonl(0xcb007101);
    assert_int_equal(io_listen(&a, &o, &step), SP_EIO);
    assert_string_equal(step, "bind");
    assert_int_equal(errno, EADDRNOTAVAIL);

    fd = listen_loopback(&a);
    assert_int_equal(io_listen(&a, &o, &step), SP_EIO);
    assert_int_equal(errno, EADDRINUSE);
    close(fd);

    a = loopback();
    o.interface = "no-such-device0";
    assert_int_equal(io_listen(&a, &o, &step), SP_EIO);
    assert_string_equal(step, "setsockopt(SO_BINDTODEVICE)");

    o.interface = NULL;
    o.max_segment = 1;
    assert_int_equal(io_listen(&a, &o, &step), SP_EIO);
    assert_string_equal(step, "setsockopt(TCP_MAXSEG)");

    a.u.sa.sa_family = 250;
    assert_int_equal(io_listen(&a, &o, &step), SP_EIO);
    assert_string_equal(step, "socket");
}

static void test_options(void **state)
{
    struct io_listen_options o = plain();
    struct addr a = loopback();
    const char *step = "";
    int first, second;

    o.reuse_port = true;
    o.fast_open = true;
    o.defer_accept_s = 1;
    o.max_segment = 1000;
    o.backlog = 17;
    first = io_listen(&a, &o, &step);
    assert_string_equal(step, "");
    assert_true(first >= 0);
    a.len = sizeof(a.u);
    assert_int_equal(getsockname(first, &a.u.sa, &a.len), 0);
    second = io_listen(&a, &o, &step);
    assert_true(second >= 0);
    close(first);
    close(second);
}

static void test_ipv6(void **state)
{
    struct io_listen_options o = plain();
    struct addr a = {.len = sizeof(struct sockaddr_in6)};
    struct addr v4;
    const char *step = "";
    int fd;

    a.u.in6.sin6_family = AF_INET6;
    a.u.in6.sin6_addr = in6addr_any;
    o.v4v6 = true;
    fd = io_listen(&a, &o, &step);
    if (fd < 0 && errno == EAFNOSUPPORT)
        skip();
    assert_true(fd >= 0);
    a.len = sizeof(a.u);
    assert_int_equal(getsockname(fd, &a.u.sa, &a.len), 0);
    v4 = loopback();
    addr_set_port(&v4, addr_port(&a));
    close(connect_to(&v4));
    close(fd);

    o.v4v6 = false;
    o.v6only = true;
    addr_set_port(&a, 0);
    fd = io_listen(&a, &o, &step);
    assert_true(fd >= 0);
    a.len = sizeof(a.u);
    assert_int_equal(getsockname(fd, &a.u.sa, &a.len), 0);
    addr_set_port(&v4, addr_port(&a));
    close(io_listen(&v4, &o, &step)); /* the IPv4 half is free */
    close(fd);
}

static struct addr unix_addr(const char *name)
{
    struct addr a = {.len = sizeof(struct sockaddr_un)};

    a.u.un.sun_family = AF_UNIX;
    snprintf(a.u.un.sun_path, sizeof(a.u.un.sun_path), "/tmp/sp-test-%ld-%s", (long)getpid(), name);
    return a;
}

static void test_unix_rename(void **state)
{
    struct io_listen_options o = plain();
    struct addr a = unix_addr("rename");
    const char *path = a.u.un.sun_path;
    const char *step = "";
    struct stat st;
    int old, fresh, client;

    old = io_listen(&a, &o, &step);
    assert_true(old >= 0);
    client = connect_to(&a);
    close(client);
    client = accept(old, NULL, NULL);
    assert_true(client >= 0);
    close(client);

    o.unix_mode = 0620;
    o.unix_uid = (int)getuid();
    o.unix_gid = (int)getgid();
    fresh = io_listen(&a, &o, &step);
    assert_true(fresh >= 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0620);
    client = connect_to(&a);
    assert_int_equal(io_listener_start(&listener, loop, fresh, false, note_accept), 0);
    run_for(5);
    assert_int_equal(accepted_count, 1);
    fcntl(old, F_SETFL, O_NONBLOCK);
    assert_int_equal(accept(old, NULL, NULL), -1);
    io_listener_stop(&listener);
    close(client);
    close(old);
    close(fresh);
    unlink(path);
}

static void test_unix_errors(void **state)
{
    struct io_listen_options o = plain();
    struct addr a = unix_addr("plain-file");
    const char *path = a.u.un.sun_path;
    const char *step = "";
    int file = open(path, O_CREAT | O_WRONLY, 0600);

    assert_true(file >= 0);
    close(file);
    assert_int_equal(io_listen(&a, &o, &step), SP_EIO);
    assert_int_equal(errno, EEXIST);
    assert_string_equal(step, "bind");
    assert_int_equal(access(path, F_OK), 0);
    unlink(path);

    a = unix_addr("no/such/folder");
    assert_int_equal(io_listen(&a, &o, &step), SP_EIO);
    assert_int_equal(errno, ENOENT);

    memset(a.u.un.sun_path, 'x', sizeof(a.u.un.sun_path) - 1);
    assert_int_equal(io_listen(&a, &o, &step), SP_EIO);
    assert_int_equal(errno, ENAMETOOLONG);
}

static void test_abstract(void **state)
{
    struct io_listen_options o = plain();
    struct addr a = {.len = sizeof(struct sockaddr_un)};
    const char *step = "";
    int fd;

    a.u.un.sun_family = AF_UNIX;
    snprintf(a.u.un.sun_path + 1, sizeof(a.u.un.sun_path) - 1, "sp-test-%ld", (long)getpid());
    fd = io_listen(&a, &o, &step);
    assert_true(fd >= 0);
    close(connect_to(&a));
    assert_int_equal(io_listener_start(&listener, loop, fd, false, note_accept), 0);
    run_for(5);
    assert_int_equal(accepted_count, 1);
    io_listener_stop(&listener);
    close(fd);
}

/* What was inherited may block; starting makes it safe. */
static void test_inherited(void **state)
{
    struct addr a;
    int fd = listen_loopback(&a);

    fcntl(fd, F_SETFL, 0);
    assert_int_equal(io_listener_start(&listener, loop, fd, false, note_accept), 0);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    io_listener_stop(&listener);
    close(fd);
    assert_int_equal(io_listener_start(&listener, loop, fd, false, note_accept), SP_EIO);
}

#define LISTENER_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LISTENER_TEST(test_batch),
        LISTENER_TEST(test_default_batch),
        LISTENER_TEST(test_one_by_one),
        LISTENER_TEST(test_pause),
        LISTENER_TEST(test_out_of_descriptors),
        LISTENER_TEST(test_shared),
        LISTENER_TEST(test_bind_errors),
        LISTENER_TEST(test_options),
        LISTENER_TEST(test_ipv6),
        LISTENER_TEST(test_unix_rename),
        LISTENER_TEST(test_unix_errors),
        LISTENER_TEST(test_abstract),
        LISTENER_TEST(test_inherited),
    };

    return RUN_WITH_ENGINES(tests);
}
