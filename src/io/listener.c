/*
 * Accepting connections.
 *
 * Listeners are level-triggered: accepting can stop anywhere and what is left in the queue is
 * reported again, so a lone connection costs one accept4 and not a second one that says EAGAIN.
 */
#include "io/uring.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <unistd.h>

#define DEFAULT_BATCH 64
#define RETRY_US 100000

static int attach(struct io_listener *l)
{
    struct io_uring_loop *u = io_loop_uring(l->loop);

    if (l->uring) {
        l->uring->stalled = false;
        io_uring_accept_update(l->uring);
        return 0;
    }
    /* On a shared socket accepts in flight would take more than this thread's part. */
    if (u && !l->shared)
        return io_uring_accept_start(u, l);
    return io_watch_add(l->loop, &l->watch, IO_READ | IO_LEVEL, l->shared);
}

/* Out of descriptors or memory: trying at once would only spin. */
static void retry_later(struct io_listener *l)
{
    if (!l->uring)
        io_watch_remove(l->loop, &l->watch);
    io_timer_set(l->loop, &l->retry, io_loop_now(l->loop) + RETRY_US);
}

static void retry_fired(struct io_timer *timer)
{
    struct io_listener *l = LIST_ENTRY(timer, struct io_listener, retry);

    if (!l->paused && attach(l) != 0)
        retry_later(l);
}

/* Errors of accept4 that concern one connection; the next one may be well (accept(2)). */
static bool is_lost_connection(int error)
{
    switch (error) {
    case ECONNABORTED:
    case EINTR:
    case EPERM: /* a firewall rule */
    case EPROTO:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ETIMEDOUT:
        return true;
    default:
        return false;
    }
}

bool io_listener_accept_failed(struct io_listener *l, int error)
{
    if (is_lost_connection(error))
        return true;
    l->resource_errors++;
    retry_later(l);
    return false;
}

/*
 * How many to take this turn: twice as many as in the last one if that left some, else a single
 * one.
 */
static unsigned burst_of(struct io_listener *l)
{
    uint64_t turn = io_loop_turns(l->loop);

    if (turn != l->last_turn + 1)
        l->burst = 1;
    else if (l->burst <= l->batch / 2)
        l->burst *= 2;
    else
        l->burst = l->batch;
    l->last_turn = turn;
    return l->burst;
}

static void accept_some(struct io_watch *w, unsigned events)
{
    struct io_listener *l = LIST_ENTRY(w, struct io_listener, watch);
    unsigned burst = burst_of(l);

    for (unsigned taken = 0; taken < burst; taken++) {
        struct addr peer;
        int fd;

        peer.len = sizeof(peer.u);
        fd = accept4(w->fd, &peer.u.sa, &peer.len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            /* An unnamed Unix socket has a family and nothing else. */
            if (peer.len <= sizeof(sa_family_t))
                peer.u.un.sun_path[0] = '\0';
            l->on_accept(l, fd, &peer);
            if (!w->registered)
                return;
        } else if (errno == EAGAIN) {
            l->burst = taken > 0 ? taken : 1;
            return;
        } else if (!io_listener_accept_failed(l, errno)) {
            return;
        }
    }
}

int io_listener_start(struct io_listener *l, struct io_loop *loop, int fd, bool shared,
                      void (*on_accept)(struct io_listener *l, int fd, const struct addr *peer))
{
    int on = 1;

    l->watch = (struct io_watch){.fd = fd, .notify = accept_some};
    l->loop = loop;
    l->uring = NULL;
    l->paused = false;
    l->shared = shared;
    l->on_accept = on_accept;
    if (l->batch == 0)
        l->batch = DEFAULT_BATCH;
    l->burst = 1;
    l->last_turn = 0;
    l->resource_errors = 0;
    io_timer_init(&l->retry, retry_fired);
    /* An inherited descriptor may block. */
    if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) != 0)
        return SP_EIO;
    /* Accepted sockets inherit it, which saves a call for each. Unix sockets have none. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return attach(l);
}

void io_listener_pause(struct io_listener *l)
{
    l->paused = true;
    io_timer_cancel(&l->retry);
    if (l->uring)
        io_uring_accept_update(l->uring);
    else
        io_watch_remove(l->loop, &l->watch);
}

void io_listener_resume(struct io_listener *l)
{
    if (!l->paused)
        return;
    l->paused = false;
    if (attach(l) != 0)
        retry_later(l);
}

void io_listener_stop(struct io_listener *l)
{
    io_listener_pause(l);
    if (l->uring)
        io_uring_accept_stop(l);
}
