/*
 * What is in flight for a socket of the io_uring engine.
 *
 * At the end of a turn each socket that changed gets the requests that its state asks for: a receive into a
 * buffer that the kernel chooses when bytes are there, so that idle connections hold none; a send of
 * what was gathered; a poll where the caller does its own calls. A closed socket lives on here
 * until its last bytes are with the kernel and its last completion has come.
 */
#include "io/uring.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- what it holds ----------------------------------------------------------------- */

struct io_uring_chunk *io_uring_chunk_get(struct io_uring_loop *u)
{
    struct io_uring_chunk *c = u->free_chunks;

    if (c) {
        u->free_chunks = c->next;
    } else {
        if (u->chunk_count >= IO_URING_CHUNKS_MAX || !(c = malloc(sizeof(*c))))
            return NULL;
        u->chunk_count++;
    }
    c->next = NULL;
    c->head = c->tail = 0;
    c->more = false;
    return c;
}

void io_uring_chunk_pop(struct io_uring_sock *us)
{
    struct io_uring_chunk *c = us->tx;

    us->tx = c->next;
    c->next = us->u->free_chunks;
    us->u->free_chunks = c;
}

void io_uring_chunks_drop(struct io_uring_sock *us)
{
    while (us->tx)
        io_uring_chunk_pop(us);
}

void io_uring_rx_drop(struct io_uring_sock *us)
{
    if (us->rx_len)
        io_ring_give_back(&us->u->ring, us->rx_id);
    us->rx_len = 0;
}

static void release(struct io_uring_sock *us)
{
    struct io_uring_loop *u = us->u;

    io_uring_rx_drop(us);
    io_uring_chunks_drop(us);
    io_timer_cancel(&us->timer);
    list_del(&us->all);
    list_del(&us->touched);
    list_del(&us->fired);
    us->sock = (struct io_sock *)(void *)u->free_socks;
    u->free_socks = us;
}

/* --- requests -------------------------------------------------------------------------- */

static struct io_uring_sqe *request(struct io_uring_sock *us, uint8_t opcode, enum io_uring_kind op)
{
    us->armed |= (uint8_t)(1u << op);
    us->cancelled &= (uint8_t) ~(1u << op);
    return io_uring_request(us->u, opcode, us->fd, us, op);
}

static void poll_for(struct io_uring_sock *us, enum io_uring_kind op, unsigned mask)
{
    if (!io_uring_is_armed(us, op))
        request(us, IORING_OP_POLL_ADD, op)->poll32_events = mask;
}

static struct io_uring_sqe *send_first(struct io_uring_sock *us)
{
    const struct io_uring_chunk *c = us->tx;
    struct io_uring_sqe *sqe = request(us, IORING_OP_SEND, IO_URING_SEND);

    sqe->addr = (uint64_t)(uintptr_t)(c->data + c->head);
    sqe->len = c->tail - c->head;
    sqe->msg_flags = MSG_NOSIGNAL | MSG_WAITALL | (c->more || c->next ? MSG_MORE : 0);
    return sqe;
}

static void receive(struct io_uring_sock *us)
{
    struct io_uring_sqe *sqe = request(us, IORING_OP_RECV, IO_URING_RECV);

    sqe->flags = IOSQE_BUFFER_SELECT;
    sqe->buf_group = IO_RING_BUFFER_GROUP;
    sqe->len = IO_RING_BUFFER_BYTES;
    /* Only the first attempt has a good chance to find something at once. */
    sqe->ioprio = us->checked ? IORING_RECVSEND_POLL_FIRST : 0;
    us->checked = true;
}

static void watch_reading(struct io_uring_sock *us)
{
    const struct io_sock *s = us->sock;
    bool owed =
        us->rx_len || us->rx_eof || us->rx_error || (s->ready & IO_READ && !us->report_read);

    us->report_read = false;
    if (owed) {
        /* The reader is expected to come by itself; it still wants to know when the peer is gone. */
        if (!us->peer_done && !us->rx_error)
            poll_for(us, IO_URING_HUP, s->ready & IO_HUP || us->rx_eof ? 0 : POLLRDHUP);
    } else if (!io_uring_is_armed(us, IO_URING_RECV) && !io_uring_is_armed(us, IO_URING_IN)) {
        if (us->bulk)
            poll_for(us, IO_URING_IN, POLLIN | POLLRDHUP);
        else
            receive(us);
    }
}

void io_uring_sock_cancel(struct io_uring_sock *us, unsigned ops)
{
    ops &= us->armed & (unsigned)~us->cancelled;
    us->cancelled |= (uint8_t)ops;
    for (unsigned op = 0; ops >> op; op++) {
        if (ops >> op & 1)
            io_uring_cancel(us->u, us, (enum io_uring_kind)op);
    }
}

/* The owner has closed it. */
static void flush_closed(struct io_uring_sock *us)
{
    unsigned polls =
        1u << IO_URING_RECV | 1u << IO_URING_IN | 1u << IO_URING_HUP | 1u << IO_URING_OUT;

    io_uring_sock_cancel(us, us->reset ? polls | 1u << IO_URING_SEND : polls);
    if (us->reset && !io_uring_is_armed(us, IO_URING_SEND))
        io_uring_chunks_drop(us);
    if (us->fd < 0 || io_uring_is_armed(us, IO_URING_CLOSE)) {
        /* on its way */
    } else if (us->tx && !us->reset) {
        if (!io_uring_is_armed(us, IO_URING_SEND)) {
            struct io_uring_sqe *sqe = send_first(us);

            if (!us->tx->next) { /* the last bytes and the end leave together */
                sqe->flags |= IOSQE_IO_LINK;
                request(us, IORING_OP_CLOSE, IO_URING_CLOSE);
            }
        }
    } else {
        io_ring_sqe(&us->u->ring, IORING_OP_CLOSE, us->fd, 0)->flags = IOSQE_CQE_SKIP_SUCCESS;
        us->fd = -1;
    }
    if (us->fd < 0 && !us->armed)
        release(us);
}

void io_uring_sock_flush(struct io_uring_sock *us)
{
    const struct io_sock *s = us->sock;

    if (!s) {
        flush_closed(us);
        return;
    }
    if (us->tx && !io_uring_is_armed(us, IO_URING_SEND))
        send_first(us);
    if (s->watch.interest & IO_WRITE && !us->tx && !us->tx_error &&
        (!(s->ready & IO_WRITE) || us->report_write)) {
        us->report_write = false;
        poll_for(us, IO_URING_OUT, POLLOUT);
    }
    if (s->watch.interest & IO_READ && !s->connecting)
        watch_reading(us);
}

/* --- completions ------------------------------------------------------------------------- */

static void fire(struct io_uring_sock *us, unsigned events)
{
    us->events |= events;
    if (us->sock && us->events && !list_is_linked(&us->fired))
        list_push_back(&us->u->fired, &us->fired);
}

static bool is_no_failure(int res)
{
    return res == -ECANCELED || res == -EINTR || res == -EAGAIN;
}

static void received(struct io_uring_sock *us, int res, unsigned flags)
{
    if (res > 0) {
        us->rx_id = (uint16_t)(flags >> IORING_CQE_BUFFER_SHIFT);
        us->rx_at = 0;
        us->rx_len = (uint32_t)res;
        us->may_have = flags & IORING_CQE_F_SOCK_NONEMPTY;
        us->bulk = us->rx_len >= IO_URING_BULK_BYTES ? IO_URING_BULK_READS : 0;
        if (us->sock)
            fire(us, IO_READ);
        else
            io_uring_rx_drop(us);
        return;
    }
    if (flags & IORING_CQE_F_BUFFER)
        io_ring_give_back(&us->u->ring, flags >> IORING_CQE_BUFFER_SHIFT);
    /* After a reset whoever asks first is told of it, here the send, and the next one finds an end. */
    if (res == 0 && us->sock && us->sock->error && us->sock->error != EPIPE)
        res = -us->sock->error;
    if (res == 0) {
        us->rx_eof = true;
        fire(us, IO_READ | IO_HUP);
    } else if (res == -ENOBUFS) {
        us->bulk = 1; /* all buffers hold bytes: this one's reader gets its own from the kernel */
    } else if (!is_no_failure(res)) {
        us->rx_error = -res;
        us->peer_done = true;
        fire(us, IO_READ | IO_WRITE | IO_HUP | IO_ERROR);
    }
}

static void sent(struct io_uring_sock *us, int res)
{
    if (res >= 0) {
        us->tx->head += (uint32_t)res;
        if (us->tx->head >= us->tx->tail)
            io_uring_chunk_pop(us);
    } else if (us->reset) {
        io_uring_chunks_drop(us);
    } else if (!is_no_failure(res)) {
        us->tx_error = -res;
        if (us->sock)
            (void)io_sock_send_broken(us->sock, -res);
        io_uring_chunks_drop(us);
        us->peer_done = true;
        fire(us, IO_READ | IO_WRITE | IO_HUP | IO_ERROR);
    }
    if (us->tx)
        return;
    if (us->shutdown_due && us->sock)
        shutdown(us->fd, SHUT_WR);
    us->shutdown_due = false;
    if (us->sock && !(us->sock->ready & IO_WRITE))
        fire(us, IO_WRITE);
}

static void polled(struct io_uring_sock *us, enum io_uring_kind op, int res)
{
    unsigned events = 0;

    if (res <= 0)
        return; /* cancelled */
    if (res & POLLIN) {
        us->may_have = true;
        events |= IO_READ;
    }
    if (res & POLLOUT)
        events |= IO_WRITE;
    if (res & POLLRDHUP)
        events |= IO_READ | IO_HUP;
    if (res & POLLHUP)
        events |= IO_READ | IO_WRITE | IO_HUP;
    if (res & POLLERR)
        events |= IO_READ | IO_WRITE | IO_ERROR;
    if (res & (POLLHUP | POLLERR))
        us->peer_done = true;
    fire(us, events);
}

void io_uring_sock_done(struct io_uring_sock *us, enum io_uring_kind op, int res, unsigned flags)
{
    us->armed &= (uint8_t) ~(1u << op);
    us->cancelled &= (uint8_t) ~(1u << op);
    switch (op) {
    case IO_URING_RECV:
        received(us, res, flags);
        break;
    case IO_URING_SEND:
        sent(us, res);
        break;
    case IO_URING_CLOSE:
        if (res != -ECANCELED)
            us->fd = -1;
        break;
    default:
        polled(us, op, res);
        break;
    }
    if (us->u->ending)
        return;
    if (!us->sock && us->fd < 0 && !us->armed)
        release(us);
    else
        io_uring_sock_touch(us);
}

void io_uring_sock_report(struct io_uring_sock *us)
{
    struct io_sock *s = us->sock;
    unsigned events = us->events;

    us->events = 0;
    if (!s)
        return;
    /* Somebody has read it before its turn came. */
    if (!us->rx_len && !us->rx_eof && !us->rx_error && !us->may_have &&
        !(events & (IO_HUP | IO_ERROR)))
        events &= ~(unsigned)IO_READ;
    if (!events)
        return;
    s->ready |= (uint8_t)events;
    io_uring_sock_touch(us);
    s->on_event(s, events);
}

/* --- without a ring ------------------------------------------------------------------------ */

void io_uring_sock_settle(struct io_uring_sock *us, bool free_it)
{
    while (us->tx && us->fd >= 0 && !us->tx_error) {
        struct io_uring_chunk *c = us->tx;
        ssize_t n = send(us->fd, c->data + c->head, c->tail - c->head, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0)
            break;
        c->head += (uint32_t)n;
        if (c->head == c->tail)
            io_uring_chunk_pop(us);
    }
    if (us->sock && !us->tx && us->shutdown_due) {
        shutdown(us->fd, SHUT_WR);
        us->shutdown_due = false;
    }
    if (us->sock && free_it) {
        us->sock->uring = NULL;
        us->sock->watch.registered = false;
    } else if (!us->sock && (free_it || (!us->armed && (!us->tx || us->tx_error || us->reset)))) {
        if (us->fd >= 0)
            close(us->fd);
        us->fd = -1;
        free_it = true;
    }
    if (free_it)
        release(us);
}
