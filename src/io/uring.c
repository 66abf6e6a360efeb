#include "io/uring.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#define REPORTS_PER_TURN 256
/*
 * Calls of a turn that fetch completions. One alone brings no more than 20 since Linux 6.13 (io_uring's
 * IO_LOCAL_TW_DEFAULT_MAX); behind a turn with a long batch of crypto operations many more wait.
 */
#define FETCHES_PER_TURN 12
/*
 * With fewer events in a turn, calls made at once cost no more than the turn that takes their
 * completions, and are earlier.
 */
#define BATCH_EVENTS 3
#define END_ROUNDS 100

struct io_uring_loop *io_uring_loop_new(struct io_loop *loop, int epoll_fd, const char **missing)
{
    struct io_uring_loop *u = calloc(1, sizeof(*u));

    if (!u) {
        *missing = "out of memory";
        return NULL;
    }
    if (io_ring_open(&u->ring, missing) != 0) {
        free(u);
        return NULL;
    }
    u->loop = loop;
    u->epoll_fd = epoll_fd;
    list_init(&u->socks);
    list_init(&u->touched);
    list_init(&u->fired);
    list_init(&u->listeners);
    list_init(&u->touched_listeners);
    list_init(&u->fired_listeners);
    return u;
}

void io_uring_loop_free(struct io_uring_loop *u)
{
    if (!u)
        return;
    LIST_FOR_EACH_SAFE(item, following, &u->listeners)
        io_uring_accept_release(LIST_ENTRY(item, struct io_uring_listener, all));
    LIST_FOR_EACH_SAFE(item, following, &u->socks)
        io_uring_sock_settle(LIST_ENTRY(item, struct io_uring_sock, all), true);
    io_ring_close(&u->ring);
    while (u->free_chunks) {
        struct io_uring_chunk *c = u->free_chunks;

        u->free_chunks = c->next;
        free(c);
    }
    while (u->free_socks) {
        struct io_uring_sock *us = u->free_socks;

        u->free_socks = (struct io_uring_sock *)(void *)us->sock;
        free(us);
    }
    free(u);
}

/* --- requests and completions -------------------------------------------------------- */

struct io_uring_sqe *io_uring_request(struct io_uring_loop *u, uint8_t opcode, int fd,
                                      const void *owner, enum io_uring_kind op)
{
    u->in_flight++;
    return io_ring_sqe(&u->ring, opcode, fd, io_uring_data(owner, op));
}

void io_uring_cancel(struct io_uring_loop *u, const void *owner, enum io_uring_kind op)
{
    struct io_uring_sqe *sqe = io_ring_sqe(&u->ring, IORING_OP_ASYNC_CANCEL, -1, 0);

    sqe->addr = io_uring_data(owner, op);
    sqe->flags = IOSQE_CQE_SKIP_SUCCESS;
}

static void take_completion(struct io_uring_loop *u, const struct io_uring_cqe *cqe)
{
    enum io_uring_kind op = (enum io_uring_kind)(cqe->user_data & IO_URING_OP_MASK);
    void *owner = (void *)(uintptr_t)(cqe->user_data & ~(uint64_t)IO_URING_OP_MASK);

    if (!owner)
        return; /* a cancel or a close that nobody waits for */
    u->in_flight--;
    if (op == IO_URING_EPOLL) {
        u->epoll_armed = false;
        u->epoll_ready = true;
    } else if (op == IO_URING_ACCEPT) {
        io_uring_accept_done(owner, cqe->res);
    } else {
        io_uring_sock_done(owner, op, cqe->res, cqe->flags);
    }
}

static void take_completions(struct io_uring_loop *u)
{
    const struct io_uring_cqe *cqe;

    while ((cqe = io_ring_completion(&u->ring)) != NULL) {
        struct io_uring_cqe copy = *cqe;

        io_ring_taken(&u->ring);
        take_completion(u, &copy);
    }
}

/* Prepares what the turn has made necessary. What finds no room waits for the next one. */
static void flush(struct io_uring_loop *u)
{
    while (!list_is_empty(&u->touched_listeners)) {
        struct io_uring_listener *ul =
            LIST_ENTRY(u->touched_listeners.next, struct io_uring_listener, touched);

        list_del(&ul->touched);
        io_uring_accept_flush(ul);
    }
    while (!list_is_empty(&u->touched) && io_ring_reserve(&u->ring, IO_URING_SOCK_REQUESTS)) {
        struct io_uring_sock *us = LIST_ENTRY(u->touched.next, struct io_uring_sock, touched);

        list_del(&us->touched);
        io_uring_sock_flush(us);
    }
    if (!u->epoll_armed && io_ring_reserve(&u->ring, 1)) {
        io_uring_request(u, IORING_OP_POLL_ADD, u->epoll_fd, u, IO_URING_EPOLL)->poll32_events =
            POLLIN;
        u->epoll_armed = true;
    }
}

void io_uring_loop_turn_over(struct io_uring_loop *u)
{
    flush(u);
    io_ring_enter(&u->ring, 0, 0);
    take_completions(u);
}

bool io_uring_loop_is_busy(const struct io_uring_loop *u)
{
    return !list_is_empty(&u->fired) || !list_is_empty(&u->fired_listeners);
}

static bool has_batch(const struct io_uring_loop *u)
{
    unsigned events = 0;

    LIST_FOR_EACH(item, &u->fired_listeners)
        events += LIST_ENTRY(item, struct io_uring_listener, fired)->done;
    LIST_FOR_EACH(item, &u->fired) {
        if (++events >= BATCH_EVENTS)
            break;
    }
    return events >= BATCH_EVENTS;
}

bool io_uring_loop_wait(struct io_uring_loop *u, uint64_t timeout_us)
{
    bool ready;

    flush(u);
    if (timeout_us > 0 && list_is_empty(&u->touched) && !io_uring_loop_is_busy(u))
        io_ring_enter(&u->ring, 1, timeout_us);
    else
        io_ring_poll(&u->ring);
    take_completions(u);
    for (unsigned i = 1; i < FETCHES_PER_TURN && io_ring_has_more(&u->ring); i++) {
        io_ring_enter(&u->ring, 0, 0);
        take_completions(u);
    }
    u->batching = has_batch(u);
    ready = u->epoll_ready;
    u->epoll_ready = false;
    return ready;
}

/* --- reporting ------------------------------------------------------------------------------ */

void io_uring_loop_dispatch(struct io_uring_loop *u)
{
    struct list batch, *item;
    unsigned count = 0;

    if (!list_is_empty(&u->fired_listeners)) {
        batch = u->fired_listeners;
        batch.next->prev = batch.prev->next = &batch;
        list_init(&u->fired_listeners); /* those with more to report come again */
        while ((item = list_pop_front(&batch)))
            io_uring_accept_report(LIST_ENTRY(item, struct io_uring_listener, fired));
    }
    while (count++ < REPORTS_PER_TURN && (item = list_pop_front(&u->fired)))
        io_uring_sock_report(LIST_ENTRY(item, struct io_uring_sock, fired));
}

/* --- around io_loop_run ----------------------------------------------------------------------- */

int io_uring_loop_begin(struct io_uring_loop *u)
{
    if (io_ring_enable(&u->ring) != 0)
        return SP_EIO;
    u->running = true;
    LIST_FOR_EACH(item, &u->listeners)
        io_uring_accept_update(LIST_ENTRY(item, struct io_uring_listener, all));
    LIST_FOR_EACH(item, &u->socks)
        io_uring_sock_touch(LIST_ENTRY(item, struct io_uring_sock, all));
    return 0;
}

/* One by one: to match any request, the kernel walks over all of them for each that it finds. */
static void cancel_everything(struct io_uring_loop *u)
{
    LIST_FOR_EACH(item, &u->listeners)
        io_uring_accept_cancel(LIST_ENTRY(item, struct io_uring_listener, all));
    LIST_FOR_EACH(item, &u->socks) {
        struct io_uring_sock *us = LIST_ENTRY(item, struct io_uring_sock, all);

        if (us->armed && io_ring_reserve(&u->ring, IO_URING_SOCK_REQUESTS))
            io_uring_sock_cancel(us, us->armed);
    }
    if (u->epoll_armed && io_ring_reserve(&u->ring, 1))
        io_uring_cancel(u, u, IO_URING_EPOLL);
}

void io_uring_loop_end(struct io_uring_loop *u)
{
    flush(u); /* sends and closes of the last turn */
    u->ending = true;
    io_ring_enter(&u->ring, 0, 0);
    take_completions(u);
    for (unsigned i = 0; u->in_flight > 0 && i < END_ROUNDS; i++) {
        cancel_everything(u);
        io_ring_enter(&u->ring, 1, 1000);
        take_completions(u);
    }
    u->ending = u->running = u->batching = false;
    LIST_FOR_EACH_SAFE(item, following, &u->socks)
        io_uring_sock_settle(LIST_ENTRY(item, struct io_uring_sock, all), false);
}
