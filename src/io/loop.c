#include "io/loop.h"

#include "base/clock.h"
#include "io/uring.h"
#include "io/wheel.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define EVENTS_PER_TURN 256
/* How stale the distance between the two clocks may become. */
#define WALL_SYNC_US 50000

struct io_loop {
    bool forking; /* see io_loop_set_forking */
    int epoll_fd;
    struct io_uring_loop *uring; /* NULL: epoll alone */
    bool more_work; /* a hook of the last turn wants to run again */
    uint64_t now_us;
    uint64_t wall_offset_us; /* wall clock minus monotonic clock, modulo 2^64 */
    uint64_t wall_synced_us;
    uint64_t turns;
    uint64_t idle_us;
    struct io_turn_hook *hooks;
    struct io_turn_hook **hooks_end;
    struct io_deferred *deferred;
    struct io_deferred **deferred_end;
    struct io_wheel wheel;
    struct io_watch wake;
    unsigned event_next, event_count; /* what is left of this turn's events */
    struct epoll_event events[EVENTS_PER_TURN];

    /* Written by other threads: on a line of their own. */
    _Alignas(64) _Atomic(struct io_message *) mailbox; /* newest first */
    atomic_bool may_sleep; /* whoever makes it false writes to the eventfd */
    atomic_bool stopping;
};

/* --- clock ------------------------------------------------------------------- */

static void read_clock(struct io_loop *loop)
{
    loop->now_us = clock_now_us();
    if (loop->now_us - loop->wall_synced_us >= WALL_SYNC_US) {
        loop->wall_offset_us = clock_wall_us() - loop->now_us;
        loop->wall_synced_us = loop->now_us;
    }
}

uint64_t io_loop_now(const struct io_loop *loop)
{
    return loop->now_us;
}

uint64_t io_loop_wall(const struct io_loop *loop)
{
    return loop->now_us + loop->wall_offset_us;
}

uint64_t io_loop_refresh_now(struct io_loop *loop)
{
    read_clock(loop);
    return loop->now_us;
}

uint64_t io_loop_turns(const struct io_loop *loop)
{
    return loop->turns;
}

uint64_t io_loop_idle_us(const struct io_loop *loop)
{
    return loop->idle_us;
}

void io_timer_set(struct io_loop *loop, struct io_timer *t, uint64_t deadline_us)
{
    io_wheel_set(&loop->wheel, t, deadline_us);
}

/* --- descriptors --------------------------------------------------------------- */

static uint32_t epoll_mask(unsigned events, bool exclusive)
{
    uint32_t mask = events & IO_LEVEL ? 0 : EPOLLET;

    /* The kernel does not take EPOLLRDHUP together with EPOLLEXCLUSIVE. */
    if (events & IO_READ)
        mask |= exclusive ? EPOLLIN : EPOLLIN | EPOLLRDHUP;
    if (events & IO_WRITE)
        mask |= EPOLLOUT;
    return exclusive ? mask | EPOLLEXCLUSIVE : mask;
}

/* Events of this turn that name `w` belong to a descriptor that it had before. */
static void forget_events(struct io_loop *loop, const struct io_watch *w)
{
    for (unsigned i = loop->event_next; i < loop->event_count; i++) {
        if (loop->events[i].data.ptr == w)
            loop->events[i].data.ptr = NULL;
    }
}

static int control(struct io_loop *loop, int operation, struct io_watch *w, unsigned events,
                   bool exclusive)
{
    struct epoll_event event = {.events = epoll_mask(events, exclusive), .data.ptr = w};

    if (epoll_ctl(loop->epoll_fd, operation, w->fd, &event) != 0)
        return SP_EIO;
    w->registered = true;
    w->interest = events;
    return 0;
}

int io_watch_add(struct io_loop *loop, struct io_watch *w, unsigned events, bool exclusive)
{
    forget_events(loop, w);
    return control(loop, EPOLL_CTL_ADD, w, events, exclusive);
}

int io_watch_change(struct io_loop *loop, struct io_watch *w, unsigned events)
{
    if (!w->registered)
        return io_watch_add(loop, w, events, false);
    return control(loop, EPOLL_CTL_MOD, w, events, false);
}

void io_loop_set_forking(struct io_loop *loop, bool forking)
{
    loop->forking = forking;
}

bool io_loop_is_forking(const struct io_loop *loop)
{
    return loop->forking;
}

void io_watch_remove(struct io_loop *loop, struct io_watch *w)
{
    if (w->registered && w->fd >= 0)
        epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, w->fd, NULL);
    w->registered = false;
    w->interest = 0;
}

static unsigned events_of(uint32_t mask)
{
    unsigned events = 0;

    if (mask & EPOLLIN)
        events |= IO_READ;
    if (mask & EPOLLOUT)
        events |= IO_WRITE;
    if (mask & EPOLLRDHUP)
        events |= IO_READ | IO_HUP;
    if (mask & EPOLLHUP)
        events |= IO_READ | IO_WRITE | IO_HUP;
    if (mask & EPOLLERR)
        events |= IO_READ | IO_WRITE | IO_ERROR;
    return events;
}

static void dispatch(struct io_loop *loop)
{
    if (loop->uring)
        io_uring_loop_dispatch(loop->uring);
    while (loop->event_next < loop->event_count) {
        const struct epoll_event *event = &loop->events[loop->event_next++];
        struct io_watch *w = event->data.ptr;

        if (w && w->registered && w->fd >= 0)
            w->notify(w, events_of(event->events));
    }
    loop->event_next = loop->event_count = 0;
}

/* --- deferred work, messages, hooks ----------------------------------------------- */

void io_loop_defer(struct io_loop *loop, struct io_deferred *d, void (*run)(struct io_deferred *d))
{
    d->run = run;
    if (d->queued)
        return;
    d->queued = true;
    d->next = NULL;
    *loop->deferred_end = d;
    loop->deferred_end = &d->next;
}

static void run_deferred(struct io_loop *loop)
{
    struct io_deferred *d;

    while ((d = loop->deferred) != NULL) {
        loop->deferred = d->next;
        if (!loop->deferred)
            loop->deferred_end = &loop->deferred;
        d->queued = false;
        d->run(d);
    }
}

/* Any thread, signal handlers included. */
static void wake(struct io_loop *loop)
{
    int saved = errno;
    uint64_t one = 1;

    if (atomic_load(&loop->may_sleep) && atomic_exchange(&loop->may_sleep, false)) {
        while (write(loop->wake.fd, &one, sizeof(one)) < 0 && errno == EINTR)
            ;
    }
    errno = saved;
}

/* The eventfd is edge-triggered and each write is an edge: its counter is never read. */
static void woken(struct io_watch *w, unsigned events)
{
}

void io_loop_post(struct io_loop *loop, struct io_message *m)
{
    struct io_message *head = atomic_load_explicit(&loop->mailbox, memory_order_relaxed);

    do
        m->next = head;
    while (!atomic_compare_exchange_weak(&loop->mailbox, &head, m));
    wake(loop);
}

static void run_messages(struct io_loop *loop)
{
    struct io_message *newest, *oldest = NULL;

    if (!atomic_load_explicit(&loop->mailbox, memory_order_relaxed))
        return;
    newest = atomic_exchange_explicit(&loop->mailbox, NULL, memory_order_acquire);
    while (newest) {
        struct io_message *next = newest->next;

        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    while (oldest) {
        struct io_message *m = oldest;

        oldest = m->next;
        m->run(m);
    }
}

void io_loop_add_hook(struct io_loop *loop, struct io_turn_hook *h)
{
    h->next = NULL;
    *loop->hooks_end = h;
    loop->hooks_end = &h->next;
}

static bool run_hooks(struct io_loop *loop)
{
    bool more = false;

    for (struct io_turn_hook *h = loop->hooks; h; h = h->next)
        more |= h->run(h);
    return more;
}

/* --- the loop -------------------------------------------------------------------- */

struct io_uring_loop *io_loop_uring(const struct io_loop *loop)
{
    return loop->uring;
}

const char *io_loop_engine_name(const struct io_loop *loop)
{
    return loop->uring ? "io_uring" : "epoll";
}

const char *io_uring_missing(void)
{
    const char *missing = NULL;
    struct io_ring ring;

    if (io_ring_open(&ring, &missing) == 0)
        io_ring_close(&ring);
    return missing;
}

struct io_loop *io_loop_new(void)
{
    return io_loop_new_engine(IO_ENGINE_EPOLL);
}

struct io_loop *io_loop_new_engine(enum io_engine engine)
{
    struct io_loop *loop = aligned_alloc(_Alignof(struct io_loop), sizeof(*loop));
    const char *missing;
    int saved;

    if (!loop)
        return NULL;
    memset(loop, 0, sizeof(*loop));
    loop->hooks_end = &loop->hooks;
    loop->deferred_end = &loop->deferred;
    loop->now_us = clock_now_us();
    loop->wall_synced_us = loop->now_us;
    loop->wall_offset_us = clock_wall_us() - loop->now_us;
    io_wheel_init(&loop->wheel, loop->now_us);
    atomic_init(&loop->mailbox, NULL);
    atomic_init(&loop->may_sleep, false);
    atomic_init(&loop->stopping, false);
    loop->wake = (struct io_watch){.fd = -1, .notify = woken};
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (loop->epoll_fd < 0)
        goto out;
    loop->wake.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->wake.fd < 0 || io_watch_add(loop, &loop->wake, IO_READ, false) != 0)
        goto out;
    if (engine != IO_ENGINE_EPOLL)
        loop->uring = io_uring_loop_new(loop, loop->epoll_fd, &missing);
    if (engine == IO_ENGINE_URING && !loop->uring) {
        errno = EOPNOTSUPP;
        goto out;
    }
    return loop;

out:
    saved = errno;
    if (loop->wake.fd >= 0)
        close(loop->wake.fd);
    if (loop->epoll_fd >= 0)
        close(loop->epoll_fd);
    free(loop);
    errno = saved;
    return NULL;
}

void io_loop_free(struct io_loop *loop)
{
    if (!loop)
        return;
    run_messages(loop);
    run_deferred(loop);
    io_uring_loop_free(loop->uring);
    close(loop->wake.fd);
    close(loop->epoll_fd);
    free(loop);
}

/* Milliseconds to wait: until the next timer, rounded up; -1: for ever. */
static int sleep_ms(struct io_loop *loop)
{
    uint64_t next_us = io_wheel_next_us(&loop->wheel);
    uint64_t ms;

    if (next_us == UINT64_MAX)
        return -1;
    if (next_us <= loop->now_us)
        return 0;
    ms = (next_us - loop->now_us + 999) / 1000;
    return ms > INT_MAX ? INT_MAX : (int)ms;
}

static int take_events(struct io_loop *loop, int timeout_ms)
{
    if (loop->uring) {
        uint64_t timeout_us = timeout_ms < 0 ? UINT64_MAX : (uint64_t)timeout_ms * 1000;

        if (!io_uring_loop_wait(loop->uring, timeout_us))
            return 0;
        timeout_ms = 0;
    }
    return epoll_wait(loop->epoll_fd, loop->events, EVENTS_PER_TURN, timeout_ms);
}

static void wait_for_events(struct io_loop *loop)
{
    uint64_t asleep_us = 0;
    int timeout_ms = 0;
    int n;

    if (!loop->more_work && !loop->deferred &&
        !(loop->uring && io_uring_loop_is_busy(loop->uring))) {
        asleep_us = io_loop_refresh_now(loop);
        timeout_ms = sleep_ms(loop);
    }
    if (timeout_ms != 0) {
        /* Either this sees what others have published or they see that it may sleep. */
        atomic_store(&loop->may_sleep, true);
        if (atomic_load(&loop->mailbox) || atomic_load(&loop->stopping))
            timeout_ms = 0;
    }
    n = take_events(loop, timeout_ms);
    atomic_store_explicit(&loop->may_sleep, false, memory_order_relaxed);
    read_clock(loop);
    if (timeout_ms != 0)
        loop->idle_us += loop->now_us - asleep_us;
    loop->event_next = 0;
    loop->event_count = n > 0 ? (unsigned)n : 0; /* EINTR: a turn without events */
    loop->turns++;
}

void io_loop_run(struct io_loop *loop)
{
    if (loop->uring && io_uring_loop_begin(loop->uring) != 0)
        return;
    while (!atomic_load_explicit(&loop->stopping, memory_order_relaxed)) {
        wait_for_events(loop);
        dispatch(loop);
        run_messages(loop);
        io_wheel_run(&loop->wheel, loop->now_us);
        loop->more_work = run_hooks(loop);
        run_deferred(loop);
    }
    if (loop->uring)
        io_uring_loop_end(loop->uring);
    atomic_store(&loop->stopping, false);
}

void io_loop_stop(struct io_loop *loop)
{
    atomic_store(&loop->stopping, true);
    wake(loop);
}
