/*
 * The event loop: order of a turn, descriptors that go away, messages of other threads, stopping.
 */
#include "io/loop.h"

#include "base/clock.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
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

/* Runs the loop for a while. */
static void run_for(unsigned ms)
{
    struct io_timer t;

    io_timer_init(&t, stop_fire);
    io_timer_set(loop, &t, clock_now_us() + ms * 1000);
    io_loop_run(loop);
    io_timer_cancel(&t);
}

/* --- timers and clocks --------------------------------------------------------- */

static uint64_t fired_at_us;

static void note_fire(struct io_timer *t)
{
    fired_at_us = clock_now_us();
    io_loop_stop(loop);
}

static void test_timer(void **state)
{
    struct io_timer t;
    uint64_t deadline = clock_now_us() + 20000;

    io_timer_init(&t, note_fire);
    io_timer_set(loop, &t, deadline);
    io_loop_run(loop);
    assert_true(fired_at_us >= deadline);
    assert_true(fired_at_us < deadline + 2000000);
    assert_true(io_loop_idle_us(loop) > 5000);
    assert_true(io_loop_turns(loop) >= 1);
}

static void test_clocks(void **state)
{
    uint64_t now, wall;

    io_loop_refresh_now(loop);
    now = clock_now_us();
    wall = clock_wall_us();
    assert_true(io_loop_now(loop) <= now && now - io_loop_now(loop) < 1000000);
    assert_true(wall - io_loop_wall(loop) + 1000000 < 2000000);
    run_for(60);
    wall = clock_wall_us();
    assert_true(wall - io_loop_wall(loop) + 1000000 < 2000000);
}

/* --- order of a turn --------------------------------------------------------------- */

static char order[64];
static unsigned order_len;

static void note(char c)
{
    if (order_len < sizeof(order) - 1)
        order[order_len++] = c;
    order[order_len] = '\0';
}

static struct io_deferred deferred, deferred_inner;
static struct io_message message;

static void inner_deferred_run(struct io_deferred *d)
{
    note('d');
    io_loop_stop(loop);
}

static void deferred_run(struct io_deferred *d)
{
    note('D');
    io_loop_defer(loop, &deferred_inner, inner_deferred_run);
}

static void order_notify(struct io_watch *w, unsigned events)
{
    note('E');
    io_loop_defer(loop, &deferred, deferred_run);
    io_loop_defer(loop, &deferred, deferred_run);
    io_loop_post(loop, &message);
}

static void order_message(struct io_message *m)
{
    note('M');
}

static void order_fire(struct io_timer *t)
{
    note('T');
}

static bool order_hook(struct io_turn_hook *h)
{
    note('H');
    return false;
}

static bool order_hook2(struct io_turn_hook *h)
{
    note('h');
    return false;
}

static void test_order(void **state)
{
    struct io_watch w = {.fd = eventfd(1, EFD_NONBLOCK), .notify = order_notify};
    struct io_turn_hook hook = {.run = order_hook}, hook2 = {.run = order_hook2};
    struct io_timer t;

    order_len = 0;
    message.run = order_message;
    io_timer_init(&t, order_fire);
    io_timer_set(loop, &t, io_loop_now(loop));
    usleep(2000);
    io_loop_add_hook(loop, &hook);
    io_loop_add_hook(loop, &hook2);
    assert_int_equal(io_watch_add(loop, &w, IO_READ, false), 0);
    io_loop_run(loop);
    assert_string_equal(order, "EMTHhDd");
    io_watch_remove(loop, &w);
    close(w.fd);
}

static unsigned hook_runs;

static void nothing_run(struct io_deferred *d)
{
}

static bool busy_hook(struct io_turn_hook *h)
{
    if (++hook_runs == 1000)
        io_loop_stop(loop);
    return true;
}

static void test_busy_hook_does_not_sleep(void **state)
{
    struct io_turn_hook hook = {.run = busy_hook};
    struct io_deferred first = {0};

    hook_runs = 0;
    io_loop_add_hook(loop, &hook);
    /* Pending deferred work keeps the first turn from sleeping; nothing else would wake it. */
    io_loop_defer(loop, &first, nothing_run);
    io_loop_run(loop);
    assert_int_equal(hook_runs, 1000);
    assert_int_equal(io_loop_turns(loop), 1000);
}

/* --- watches that go away in callbacks ------------------------------------------------ */

struct pair {
    struct io_watch w[2];
    unsigned notified;
    bool readd;
};
static struct pair pair;

static void removing_notify(struct io_watch *w, unsigned events)
{
    struct io_watch *other = w == &pair.w[0] ? &pair.w[1] : &pair.w[0];

    pair.notified++;
    io_watch_remove(loop, other);
    if (pair.readd && pair.notified == 1) {
        /* Another descriptor under the same watch: the old one's event must not reach it. */
        close(other->fd);
        other->fd = eventfd(0, EFD_NONBLOCK);
        assert_int_equal(io_watch_add(loop, other, IO_READ, false), 0);
    }
}

static void closing_notify(struct io_watch *w, unsigned events)
{
    struct io_watch *other = w == &pair.w[0] ? &pair.w[1] : &pair.w[0];

    pair.notified++;
    close(other->fd);
    other->fd = -1;
    other->registered = false;
}

static void start_pair(void (*notify)(struct io_watch *, unsigned))
{
    memset(&pair, 0, sizeof(pair));
    for (int i = 0; i < 2; i++) {
        pair.w[i].fd = eventfd(1, EFD_NONBLOCK);
        pair.w[i].notify = notify;
        assert_int_equal(io_watch_add(loop, &pair.w[i], IO_READ, false), 0);
    }
}

static void end_pair(void)
{
    for (int i = 0; i < 2; i++) {
        if (pair.w[i].fd >= 0)
            close(pair.w[i].fd);
    }
}

static void test_remove_other(void **state)
{
    start_pair(removing_notify);
    run_for(10);
    assert_int_equal(pair.notified, 1);
    end_pair();
}

static void test_remove_and_add_again(void **state)
{
    start_pair(removing_notify);
    pair.readd = true;
    run_for(10);
    assert_int_equal(pair.notified, 1);
    end_pair();
}

static void test_close_other(void **state)
{
    start_pair(closing_notify);
    run_for(10);
    assert_int_equal(pair.notified, 1);
    end_pair();
}

struct owner {
    struct io_watch watch;
    struct io_deferred gone;
};

static unsigned owners_freed;

static void owner_free(struct io_deferred *d)
{
    owners_freed++;
    free(LIST_ENTRY(d, struct owner, gone));
}

static struct owner *owners[300];

static void suicidal_notify(struct io_watch *w, unsigned events)
{
    /* Everything goes, whether its event has been served or not. */
    for (unsigned i = 0; i < 300; i++) {
        struct owner *o = owners[i];

        if (!o)
            continue;
        close(o->watch.fd);
        o->watch.fd = -1;
        o->watch.registered = false;
        io_loop_defer(loop, &o->gone, owner_free);
        owners[i] = NULL;
    }
}

static void test_free_owners(void **state)
{
    owners_freed = 0;
    for (unsigned i = 0; i < 300; i++) {
        owners[i] = calloc(1, sizeof(struct owner));
        assert_non_null(owners[i]);
        owners[i]->watch.fd = eventfd(1, EFD_NONBLOCK);
        owners[i]->watch.notify = suicidal_notify;
        assert_int_equal(io_watch_add(loop, &owners[i]->watch, IO_READ, false), 0);
    }
    run_for(10);
    assert_int_equal(owners_freed, 300);
}

static unsigned seen_events, seen_count;

static void seen_notify(struct io_watch *w, unsigned events)
{
    seen_events |= events;
    seen_count++;
}

static void test_edges_levels_and_changes(void **state)
{
    int fds[2];
    struct io_watch w = {.notify = seen_notify};

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    w.fd = fds[0];
    seen_events = seen_count = 0;
    assert_int_equal(io_watch_change(loop, &w, IO_READ), 0); /* adds */
    assert_true(w.registered);
    assert_int_equal(write(fds[1], "x", 1), 1);
    run_for(5);
    assert_int_equal(seen_events, IO_READ);
    assert_int_equal(seen_count, 1);
    assert_int_equal(io_watch_change(loop, &w, IO_READ | IO_WRITE), 0);
    run_for(5);
    assert_int_equal(seen_events, IO_READ | IO_WRITE);
    assert_int_equal(seen_count, 2);
    shutdown(fds[1], SHUT_WR);
    run_for(5);
    assert_true(seen_events & IO_HUP);
    io_watch_remove(loop, &w);
    seen_count = 0;
    assert_int_equal(io_watch_add(loop, &w, IO_READ | IO_LEVEL, false), 0);
    run_for(5);
    assert_true(seen_count > 3);
    io_watch_remove(loop, &w);
    seen_count = 0;
    run_for(5);
    assert_int_equal(seen_count, 0);
    close(fds[0]);
    close(fds[1]);
    assert_int_equal(io_watch_add(loop, &w, IO_READ, false), SP_EIO);
    assert_false(w.registered);
}

/* --- messages ---------------------------------------------------------------------------- */

#define POSTERS 4
#define PER_POSTER 20000

struct numbered {
    struct io_message message;
    unsigned poster, number;
};

static unsigned next_number[POSTERS];
static unsigned received;
static bool out_of_order;

static void numbered_run(struct io_message *m)
{
    struct numbered *n = LIST_ENTRY(m, struct numbered, message);

    if (n->number != next_number[n->poster]++)
        out_of_order = true;
    if (++received == POSTERS * PER_POSTER)
        io_loop_stop(loop);
    free(n);
}

static void *poster(void *arg)
{
    unsigned self = (unsigned)(uintptr_t)arg;

    for (unsigned i = 0; i < PER_POSTER; i++) {
        struct numbered *n = malloc(sizeof(*n));

        if (!n)
            abort();
        *n = (struct numbered){{.run = numbered_run}, self, i};
        io_loop_post(loop, &n->message);
        /* Let it fall asleep now and then. */
        if (i % 2000 == 1999)
            usleep(500);
    }
    return NULL;
}

static void test_messages_of_threads(void **state)
{
    pthread_t threads[POSTERS];

    memset(next_number, 0, sizeof(next_number));
    received = 0;
    out_of_order = false;
    for (uintptr_t i = 0; i < POSTERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, poster, (void *)i), 0);
    io_loop_run(loop);
    for (unsigned i = 0; i < POSTERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(received, POSTERS * PER_POSTER);
    assert_false(out_of_order);
}

#define PINGS 20000
static atomic_uint pongs;

static void ping_run(struct io_message *m)
{
    atomic_fetch_add(&pongs, 1);
}

/* Each round begins when the loop may just be falling asleep: a lost wake-up hangs here. */
static void *pinger(void *arg)
{
    static struct io_message ping = {.run = ping_run};

    for (unsigned i = 1; i <= PINGS; i++) {
        io_loop_post(loop, &ping);
        while (atomic_load(&pongs) != i)
            ;
    }
    io_loop_stop(loop);
    return NULL;
}

static void test_no_wakeup_is_lost(void **state)
{
    pthread_t thread;

    atomic_store(&pongs, 0);
    assert_int_equal(pthread_create(&thread, NULL, pinger, NULL), 0);
    io_loop_run(loop);
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&pongs), PINGS);
}

static void test_messages_left_behind(void **state)
{
    struct io_loop *other = engine_loop();
    struct io_message m = {.run = ping_run};

    assert_non_null(other);
    atomic_store(&pongs, 0);
    io_loop_post(other, &m);
    io_loop_free(other);
    assert_int_equal(atomic_load(&pongs), 1);
    io_loop_free(NULL);
}

/* --- stopping ------------------------------------------------------------------------------- */

static void on_alarm(int signal_number)
{
    io_loop_stop(loop);
}

static void test_stop_by_signal(void **state)
{
    struct sigaction action = {.sa_handler = on_alarm};

    sigaction(SIGALRM, &action, NULL);
    ualarm(20000, 0);
    io_loop_run(loop); /* nothing but the signal ends it */
    signal(SIGALRM, SIG_DFL);
}

static void test_stop_before_run(void **state)
{
    io_loop_stop(loop);
    io_loop_run(loop);
    run_for(5); /* it runs again afterwards */
}

static void *stopper(void *arg)
{
    usleep(10000);
    io_loop_stop(loop);
    return NULL;
}

static void test_stop_by_thread(void **state)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, stopper, NULL), 0);
    io_loop_run(loop);
    pthread_join(thread, NULL);
}

#define LOOP_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOOP_TEST(test_timer),
        LOOP_TEST(test_clocks),
        LOOP_TEST(test_order),
        LOOP_TEST(test_busy_hook_does_not_sleep),
        LOOP_TEST(test_remove_other),
        LOOP_TEST(test_remove_and_add_again),
        LOOP_TEST(test_close_other),
        LOOP_TEST(test_free_owners),
        LOOP_TEST(test_edges_levels_and_changes),
        LOOP_TEST(test_messages_of_threads),
        LOOP_TEST(test_no_wakeup_is_lost),
        LOOP_TEST(test_messages_left_behind),
        LOOP_TEST(test_stop_by_signal),
        LOOP_TEST(test_stop_before_run),
        LOOP_TEST(test_stop_by_thread),
    };

    return RUN_WITH_ENGINES(tests);
}
