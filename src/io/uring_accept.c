/*
 * Accepting with io_uring: several single accepts in flight, each with room for the peer's address.
 *
 * A multishot accept would need one request for all connections, but it does not tell who the peer is, and
 * asking is the system call that was to be saved; and it takes the whole queue, however slow
 * this worker is.
 */
#include "io/uring.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define FIRST_WANTED 1
#define SLOTS_MAX 256
#define STOP_ROUNDS 100

static void touch(struct io_uring_listener *ul)
{
    if (!list_is_linked(&ul->touched))
        list_push_back(&ul->u->touched_listeners, &ul->touched);
}

static void fire(struct io_uring_listener *ul)
{
    if (ul->done && ul->listener && !ul->listener->paused && !list_is_linked(&ul->fired))
        list_push_back(&ul->u->fired_listeners, &ul->fired);
}

int io_uring_accept_start(struct io_uring_loop *u, struct io_listener *l)
{
    struct io_uring_listener *ul = calloc(1, sizeof(*ul));

    if (!ul)
        return SP_ENOMEM;
    ul->u = u;
    ul->listener = l;
    ul->fd = l->watch.fd;
    ul->wanted = FIRST_WANTED;
    list_init(&ul->touched);
    list_init(&ul->fired);
    list_push_back(&u->listeners, &ul->all);
    l->uring = ul;
    touch(ul);
    return 0;
}

void io_uring_accept_update(struct io_uring_listener *ul)
{
    touch(ul);
    fire(ul);
}

void io_uring_accept_release(struct io_uring_listener *ul)
{
    for (unsigned i = 0; i < ul->count; i++) {
        if (ul->slots[i].done)
            close(ul->slots[i].fd);
    }
    if (ul->listener)
        ul->listener->uring = NULL;
    list_del(&ul->all);
    list_del(&ul->touched);
    list_del(&ul->fired);
    free(ul->slots);
    free(ul);
}

/* Late, because the owner sets the batch after the start. */
static bool make_slots(struct io_uring_listener *ul)
{
    unsigned count = ul->listener->batch < SLOTS_MAX ? ul->listener->batch : SLOTS_MAX;

    if (ul->slots)
        return true;
    ul->slots = aligned_alloc(_Alignof(struct io_uring_slot), count * sizeof(*ul->slots));
    if (!ul->slots)
        return false;
    memset(ul->slots, 0, count * sizeof(*ul->slots));
    for (unsigned i = 0; i < count; i++)
        ul->slots[i].owner = ul;
    ul->count = count;
    return true;
}

static void arm(struct io_uring_slot *slot)
{
    struct io_uring_listener *ul = slot->owner;
    struct io_uring_sqe *sqe =
        io_uring_request(ul->u, IORING_OP_ACCEPT, ul->fd, slot, IO_URING_ACCEPT);

    slot->peer.len = sizeof(slot->peer.u);
    sqe->addr = (uint64_t)(uintptr_t)&slot->peer.u;
    sqe->addr2 = (uint64_t)(uintptr_t)&slot->peer.len;
    sqe->accept_flags = SOCK_NONBLOCK | SOCK_CLOEXEC;
    slot->armed = true;
    slot->cancelled = false;
    ul->armed++;
}

void io_uring_accept_flush(struct io_uring_listener *ul)
{
    bool accepting = ul->listener && !ul->listener->paused && !ul->stalled;

    if (accepting && !make_slots(ul)) {
        io_listener_accept_failed(ul->listener, ENOMEM);
        return;
    }
    if (!accepting) {
        io_uring_accept_cancel(ul);
        return;
    }
    for (unsigned i = 0; i < ul->count && ul->armed + ul->done < ul->wanted; i++) {
        struct io_uring_slot *slot = &ul->slots[i];

        if (slot->armed || slot->done)
            continue;
        if (!io_ring_reserve(&ul->u->ring, 1)) {
            touch(ul);
            return;
        }
        arm(slot);
    }
}

void io_uring_accept_cancel(struct io_uring_listener *ul)
{
    for (unsigned i = 0; i < ul->count; i++) {
        struct io_uring_slot *slot = &ul->slots[i];

        if (slot->armed && !slot->cancelled && io_ring_reserve(&ul->u->ring, 1)) {
            slot->cancelled = true;
            io_uring_cancel(ul->u, slot, IO_URING_ACCEPT);
        }
    }
}

void io_uring_accept_done(struct io_uring_slot *slot, int res)
{
    struct io_uring_listener *ul = slot->owner;

    slot->armed = false;
    ul->armed--;
    if (res >= 0) {
        slot->fd = res;
        slot->done = true;
        ul->done++;
        fire(ul);
        return;
    }
    if (res != -ECANCELED && res != -EAGAIN && ul->listener && !ul->stalled &&
        !io_listener_accept_failed(ul->listener, -res))
        ul->stalled = true;
    touch(ul);
}

static void report_one(struct io_uring_listener *ul, struct io_uring_slot *slot)
{
    struct addr peer = slot->peer;

    slot->done = false;
    ul->done--;
    /* An unnamed Unix socket has a family and nothing else. */
    if (peer.len <= sizeof(sa_family_t))
        peer.u.un.sun_path[0] = '\0';
    ul->listener->on_accept(ul->listener, slot->fd, &peer);
}

void io_uring_accept_report(struct io_uring_listener *ul)
{
    unsigned reported = 0, held = ul->done + ul->armed;

    ul->reporting = true;
    for (unsigned i = 0; i < ul->count && ul->listener && !ul->listener->paused; i++) {
        if (!ul->slots[i].done)
            continue;
        report_one(ul, &ul->slots[i]);
        reported++;
    }
    ul->reporting = false;
    if (!ul->listener) {
        if (ul->armed == 0)
            io_uring_accept_release(ul);
        return;
    }
    if (reported == held && ul->wanted < ul->count) /* more may have waited */
        ul->wanted = ul->wanted * 2 < ul->count ? ul->wanted * 2 : ul->count;
    touch(ul);
}

void io_uring_accept_stop(struct io_listener *l)
{
    struct io_uring_listener *ul = l->uring;
    struct io_uring_loop *u = ul->u;
    bool paused = l->paused;

    l->paused = true;
    for (unsigned i = 0; u->running && ul->armed && i < STOP_ROUNDS; i++) {
        touch(ul);
        io_uring_loop_turn_over(u);
    }
    /* They believe to be connected: served, unless there is nobody any more to serve them. */
    for (unsigned i = 0; u->running && i < ul->count; i++) {
        if (ul->slots[i].done)
            report_one(ul, &ul->slots[i]);
    }
    l->paused = paused;
    ul->listener = NULL;
    l->uring = NULL;
    if (!ul->reporting && ul->armed == 0)
        io_uring_accept_release(ul);
}
