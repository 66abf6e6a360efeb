/*
 * The transport of the io_uring engine: the same kernel sockets, but small transfers of a busy turn
 * are gathered and submitted together at its end.
 *
 * Bytes received lie in a buffer of the ring until they are asked for; small sends are copied. Bulk
 * takes the system calls of the plain transport, which needs nothing copied: a large send when nothing is
 * held back, a read when the socket had more than a buffer. While a receive is in flight nobody else
 * reads, or the order of the bytes would be lost.
 */
#include "io/uring.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* How long a peer may leave the last bytes of a closed connection untaken. */
#define CLOSE_PATIENCE_US 30000000
#define GATHER_BYTES 8192 /* more is sent at once: copying would cost more than the call */
#define IOV_DIRECT_MAX 24

static const struct io_transport *const plain = &io_kernel_transport;

static void patience_over(struct io_timer *t)
{
    struct io_uring_sock *us = LIST_ENTRY(t, struct io_uring_sock, timer);

    us->reset = true;
    io_uring_sock_touch(us);
}

static struct io_uring_sock *state_of(struct io_sock *s)
{
    struct io_uring_loop *u = io_loop_uring(s->loop);
    struct io_uring_sock *us = s->uring;

    if (us)
        return us;
    us = u->free_socks;
    if (us)
        u->free_socks = (struct io_uring_sock *)(void *)us->sock;
    else if (!(us = malloc(sizeof(*us))))
        return NULL;
    *us = (struct io_uring_sock){.u = u, .sock = s, .fd = s->watch.fd};
    list_init(&us->touched);
    list_init(&us->fired);
    list_push_back(&u->socks, &us->all);
    io_timer_init(&us->timer, patience_over);
    s->uring = us;
    return us;
}

static int ring_watch(struct io_sock *s, unsigned events)
{
    unsigned wanted = s->watch.interest | (events & (IO_READ | IO_WRITE));
    struct io_uring_sock *us = state_of(s);

    if (!us) {
        errno = ENOMEM;
        return SP_EIO;
    }
    us->report_read |= wanted & ~s->watch.interest & IO_READ;
    us->report_write |= wanted & ~s->watch.interest & IO_WRITE;
    s->watch.registered = true;
    s->watch.interest = wanted;
    io_uring_sock_touch(us);
    return 0;
}

/* --- receiving --------------------------------------------------------------------- */

static ptrdiff_t take_held(struct io_uring_sock *us, void *data, size_t len)
{
    struct io_sock *s = us->sock;

    if (len > us->rx_len)
        len = us->rx_len;
    memcpy(data, io_ring_buffer(&us->u->ring, us->rx_id) + us->rx_at, len);
    us->rx_at += (uint32_t)len;
    us->rx_len -= (uint32_t)len;
    if (us->rx_len == 0) {
        io_ring_give_back(&us->u->ring, us->rx_id);
        if (!us->may_have && !us->rx_eof && !us->rx_error && !(s->ready & IO_HUP))
            s->ready &= (uint8_t)~IO_READ;
    }
    return (ptrdiff_t)len;
}

/* What is left to say when no byte is held; 0: the kernel has to be asked. */
static ptrdiff_t held_verdict(struct io_sock *s)
{
    struct io_uring_sock *us = s->uring;

    if (us->rx_error)
        return io_sock_broken(s, us->rx_error);
    if (!us->rx_eof && !io_uring_is_armed(us, IO_URING_RECV))
        return 0;
    s->ready &= (uint8_t)~IO_READ;
    if (!us->rx_eof)
        return SP_EAGAIN; /* the receive in flight tells, after a failed send too */
    s->read_closed = true;
    return SP_EEOF;
}

static ptrdiff_t ring_recv(struct io_sock *s, void *data, size_t len)
{
    struct io_uring_sock *us = s->uring;
    ptrdiff_t n;

    if (!us)
        return plain->recv(s, data, len);
    io_uring_sock_touch(us);
    if (us->rx_len && len)
        return take_held(us, data, len);
    if ((n = held_verdict(s)) != 0)
        return n;
    n = plain->recv(s, data, len);
    if (n < (ptrdiff_t)len)
        us->may_have = false;
    if (n >= IO_URING_BULK_BYTES)
        us->bulk = IO_URING_BULK_READS;
    else if (n > 0 && us->bulk > 0)
        us->bulk--;
    return n;
}

static ptrdiff_t ring_splice_in(struct io_sock *s, int pipe_fd, size_t len, bool pipe_empty)
{
    struct io_uring_sock *us = s->uring;
    ptrdiff_t n;

    if (!us)
        return plain->splice_in(s, pipe_fd, len, pipe_empty);
    io_uring_sock_touch(us);
    us->bulk = IO_URING_BULK_READS;
    if (us->rx_len) {
        const char *held = io_ring_buffer(&us->u->ring, us->rx_id) + us->rx_at;

        n = write(pipe_fd, held, len < us->rx_len ? len : us->rx_len);
        if (n < 0)
            return SP_EAGAIN; /* the pipe is full; what else would be wrong with it shows at its reader */
        us->rx_at += (uint32_t)n;
        us->rx_len -= (uint32_t)n;
        if (us->rx_len == 0)
            io_ring_give_back(&us->u->ring, us->rx_id);
        return n;
    }
    if ((n = held_verdict(s)) != 0)
        return n;
    us->may_have = false;
    return plain->splice_in(s, pipe_fd, len, pipe_empty);
}

/* --- sending ---------------------------------------------------------------------------- */

static ptrdiff_t would_block(struct io_sock *s, size_t taken)
{
    s->ready &= (uint8_t)~IO_WRITE;
    s->watch.registered = true;
    s->watch.interest |= IO_WRITE;
    return taken ? (ptrdiff_t)taken : SP_EAGAIN;
}

/* Copies what there is room for. */
static size_t gather(struct io_uring_sock *us, const struct iovec *iov, int count, bool more)
{
    struct io_uring_chunk *first = us->tx, *c = first;
    unsigned chunks = c ? 1 : 0;
    size_t taken = 0;

    for (; c && c->next; c = c->next)
        chunks++;
    if (c && c == first && io_uring_is_armed(us, IO_URING_SEND))
        c = NULL; /* in flight: it stays as it is */
    for (int i = 0; i < count; i++) {
        const char *from = iov[i].iov_base;
        size_t left = iov[i].iov_len;

        while (left) {
            size_t take;

            if (!c || c->tail == IO_URING_CHUNK_BYTES) {
                struct io_uring_chunk **end = &us->tx;

                if (chunks == IO_URING_SOCK_CHUNKS || !(c = io_uring_chunk_get(us->u)))
                    return taken;
                chunks++;
                while (*end)
                    end = &(*end)->next;
                *end = c;
            }
            take = IO_URING_CHUNK_BYTES - c->tail;
            if (take > left)
                take = left;
            memcpy(c->data + c->tail, from, take);
            c->tail += (uint32_t)take;
            c->more = true;
            from += take;
            left -= take;
            taken += take;
        }
    }
    if (c)
        c->more = more;
    return taken;
}

/* What was gathered and is not in flight leaves now, in front of `iov`; as of io_sock_sendv for `iov` alone. */
static ptrdiff_t send_with_held(struct io_sock *s, const struct iovec *iov, int count, bool more)
{
    struct io_uring_sock *us = s->uring;
    struct iovec all[IOV_DIRECT_MAX];
    ptrdiff_t n;
    int used = 0;

    for (struct io_uring_chunk *c = us->tx; c; c = c->next)
        all[used++] = (struct iovec){c->data + c->head, c->tail - c->head};
    for (int i = 0; i < count && used < IOV_DIRECT_MAX; i++)
        all[used++] = iov[i];
    n = plain->sendv(s, all, used, more);
    if (n < 0)
        return n;
    while (us->tx && n > 0) {
        size_t part = us->tx->tail - us->tx->head;

        if (part > (size_t)n)
            part = (size_t)n;
        us->tx->head += (uint32_t)part;
        n -= (ptrdiff_t)part;
        if (us->tx->head == us->tx->tail)
            io_uring_chunk_pop(us);
    }
    if (us->tx)
        return would_block(s, 0);
    return n;
}

/*
 * Before the descriptor itself is written to: 0 when nothing is held back, SP_EAGAIN with an event
 * to come, SP_ERESET.
 */
static int ring_settle(struct io_sock *s)
{
    struct io_uring_sock *us = s->uring;
    ptrdiff_t n;

    if (!us)
        return 0;
    if (us->tx_error)
        return (int)io_sock_send_broken(s, us->tx_error);
    if (!us->tx)
        return 0;
    io_uring_sock_touch(us);
    if (io_uring_is_armed(us, IO_URING_SEND))
        return (int)would_block(s, 0);
    n = send_with_held(s, NULL, 0, false);
    return n < 0 ? (int)n : 0;
}

static ptrdiff_t ring_sendv(struct io_sock *s, const struct iovec *iov, int count, bool more)
{
    struct io_uring_loop *u = io_loop_uring(s->loop);
    struct io_uring_sock *us = s->uring;
    size_t total, taken;

    if (us && us->tx_error)
        return io_sock_send_broken(s, us->tx_error);
    if (us && us->shutdown_due)
        return io_sock_send_broken(s, EPIPE);
    if (us)
        io_uring_sock_touch(us);
    total = io_sock_total(iov, count);
    if (us && us->tx && io_uring_is_armed(us, IO_URING_SEND)) {
        io_sock_nodelay(s, total);
        taken = gather(us, iov, count, more);
        return taken == total ? (ptrdiff_t)taken : would_block(s, taken);
    }
    if (total > GATHER_BYTES || !u->batching || s->connecting || s->write_closed ||
        !(s->ready & IO_WRITE)) {
        if (us && us->tx)
            return send_with_held(s, iov, count, more);
        return plain->sendv(s, iov, count, more);
    }
    if (!us && !(us = state_of(s)))
        return plain->sendv(s, iov, count, more);
    io_sock_nodelay(s, total);
    io_uring_sock_touch(us);
    taken = gather(us, iov, count, more);
    if (taken == total)
        return (ptrdiff_t)taken;
    if (taken)
        return would_block(s, taken);
    return us->tx ? send_with_held(s, iov, count, more) : plain->sendv(s, iov, count, more);
}

static ptrdiff_t ring_splice_out(struct io_sock *s, int pipe_fd, size_t len)
{
    int status = ring_settle(s);

    if (status != 0)
        return status;
    if (s->uring)
        io_uring_sock_touch(s->uring);
    return plain->splice_out(s, pipe_fd, len);
}

/* --- the rest ------------------------------------------------------------------------------- */

static int ring_connect_result(struct io_sock *s)
{
    if (s->uring)
        io_uring_sock_touch(s->uring);
    return plain->connect_result(s);
}

static void ring_shutdown_write(struct io_sock *s)
{
    struct io_uring_sock *us = s->uring;

    if (s->watch.fd >= 0 && !s->write_closed && ring_settle(s) == SP_EAGAIN) {
        us->shutdown_due = true;
        s->write_closed = true;
        return;
    }
    plain->shutdown_write(s);
}

static void ring_close(struct io_sock *s, bool reset)
{
    struct linger none = {.l_onoff = 1, .l_linger = 0};
    struct io_uring_sock *us = s->uring;

    if (s->watch.fd < 0 || !us) {
        plain->close(s, reset);
        return;
    }
    if (reset)
        setsockopt(s->watch.fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    s->uring = NULL;
    us->sock = NULL;
    us->reset = reset;
    us->events = 0;
    list_del(&us->fired);
    io_uring_rx_drop(us);
    if (us->tx && !reset)
        io_timer_set(s->loop, &us->timer, io_loop_now(s->loop) + CLOSE_PATIENCE_US);
    if (!us->u->running) {
        io_uring_sock_settle(us, false);
    } else if (!us->armed && !us->u->batching && (reset || !us->tx)) {
        io_uring_chunks_drop(us);
        close(us->fd);
        us->fd = -1;
        io_uring_sock_touch(us);
    } else {
        io_uring_sock_touch(us);
    }
    s->watch.fd = -1;
    s->watch.registered = false;
    s->watch.interest = 0;
    s->connecting = false;
    s->ready = 0;
    s->read_closed = s->write_closed = true;
}

static bool ring_is_silent(struct io_sock *s)
{
    const struct io_uring_sock *us = s->uring;

    if (us && (us->rx_len || us->rx_eof || us->rx_error || us->tx_error))
        return false;
    return plain->is_silent(s);
}

static int ring_connect(struct io_sock *s, const struct addr *to, const struct addr *from)
{
    return plain->connect(s, to, from);
}

static int ring_local_addr(const struct io_sock *s, struct addr *out)
{
    return plain->local_addr(s, out);
}

static int ring_peer_addr(const struct io_sock *s, struct addr *out)
{
    return plain->peer_addr(s, out);
}

const struct io_transport io_uring_transport = {
    .name = "kernel",
    .watch = ring_watch,
    .recv = ring_recv,
    .sendv = ring_sendv,
    .splice_in = ring_splice_in,
    .splice_out = ring_splice_out,
    .settle = ring_settle,
    .is_silent = ring_is_silent,
    .connect = ring_connect,
    .connect_result = ring_connect_result,
    .shutdown_write = ring_shutdown_write,
    .close = ring_close,
    .local_addr = ring_local_addr,
    .peer_addr = ring_peer_addr,
};
