#include "io/uring.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <unistd.h>

/* What surely fits into one segment on any path. */
#define FIRST_SEGMENT_BYTES 1200

#define READY_BITS (IO_READ | IO_WRITE | IO_HUP | IO_ERROR)

static void sock_notify(struct io_watch *w, unsigned events)
{
    struct io_sock *s = LIST_ENTRY(w, struct io_sock, watch);

    s->ready |= events & READY_BITS;
    s->on_event(s, events);
}

void io_sock_init(struct io_sock *s, struct io_loop *loop, int fd,
                  void (*on_event)(struct io_sock *s, unsigned events))
{
    bool uring = io_loop_uring(loop) != NULL;

    *s = (struct io_sock){
        .watch = {.fd = fd, .notify = sock_notify},
        .loop = loop,
        .transport = uring ? &io_uring_transport : &io_kernel_transport,
        .ready = uring && fd >= 0 ? IO_WRITE : IO_READ | IO_WRITE,
        .on_event = on_event,
    };
}

static int kernel_watch(struct io_sock *s, unsigned events)
{
    unsigned wanted = s->watch.interest | (events & (IO_READ | IO_WRITE));

    if (s->watch.registered && wanted == s->watch.interest)
        return 0;
    return io_watch_change(s->loop, &s->watch, wanted);
}

ptrdiff_t io_sock_broken(struct io_sock *s, int error)
{
    s->error = error;
    s->read_closed = s->write_closed = true;
    s->ready &= (uint8_t) ~(IO_READ | IO_WRITE);
    return SP_ERESET;
}

/*
 * A peer that answers and resets has its answer lie in our receive queue, although no more can be sent: reading goes
 * on. The first error counts: the kernel tells the reset once and then says EPIPE.
 */
ptrdiff_t io_sock_send_broken(struct io_sock *s, int error)
{
    if (!s->error)
        s->error = error;
    s->write_closed = true;
    s->ready &= (uint8_t)~IO_WRITE;
    if (!s->read_closed)
        s->ready |= IO_READ;
    return SP_ERESET;
}

/*
 * Nothing is left to read (`end`: the kernel says end of stream). After a send has taken the reset's error, the kernel
 * has an end of stream for the reader; it is none. EPIPE tells that the peer's end came before its reset.
 */
static ptrdiff_t read_out(struct io_sock *s, bool end)
{
    if (s->error && (!end || s->error != EPIPE))
        return io_sock_broken(s, s->error);
    s->ready &= (uint8_t)~IO_READ;
    if (!end)
        return SP_EAGAIN;
    s->read_closed = true;
    return SP_EEOF;
}

static ptrdiff_t kernel_recv(struct io_sock *s, void *data, size_t len)
{
    ssize_t n;

    do
        n = recv(s->watch.fd, data, len, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n > 0) {
        /* The queue was empty. After a hang-up no further edge comes: the end must be read out. */
        if ((size_t)n < len && !(s->ready & IO_HUP) && !s->error)
            s->ready &= (uint8_t)~IO_READ;
        return n;
    }
    if (n == 0)
        return read_out(s, len > 0);
    return errno == EAGAIN ? read_out(s, false) : io_sock_broken(s, errno);
}

/* The kernel's buffer is full: makes sure that the event which tells of room will come. */
static ptrdiff_t blocked(struct io_sock *s, ptrdiff_t sent)
{
    if (io_sock_watch(s, IO_WRITE) == 0) {
        s->ready &= (uint8_t)~IO_WRITE;
        return sent > 0 ? sent : SP_EAGAIN;
    }
    /* Still "ready", so that the caller tries again and learns of it. */
    return sent > 0 ? sent : io_sock_broken(s, errno);
}

/*
 * Nagle's algorithm delays a small segment only behind unacknowledged ones. The one small write that many
 * connections ever make is not delayed, so TCP_NODELAY waits for the second, or for one longer than a segment.
 */
void io_sock_nodelay(struct io_sock *s, size_t total)
{
    int on = 1;

    if (!s->nodelay_due)
        return;
    if (total <= FIRST_SEGMENT_BYTES && !s->sent_once) {
        s->sent_once = true;
        return;
    }
    s->nodelay_due = false;
    setsockopt(s->watch.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

size_t io_sock_total(const struct iovec *iov, int count)
{
    size_t total = 0;

    for (int i = 0; i < count; i++)
        total += iov[i].iov_len;
    return total;
}

static ptrdiff_t kernel_sendv(struct io_sock *s, const struct iovec *iov, int count, bool more)
{
    int flags = MSG_NOSIGNAL | MSG_DONTWAIT | (more ? MSG_MORE : 0);
    size_t total = io_sock_total(iov, count);
    ssize_t n;

    io_sock_nodelay(s, total);
    if (count == 1) {
        do
            n = send(s->watch.fd, iov->iov_base, total, flags);
        while (n < 0 && errno == EINTR);
    } else {
        struct msghdr message = {.msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)count};

        do
            n = sendmsg(s->watch.fd, &message, flags);
        while (n < 0 && errno == EINTR);
    }
    if (n >= 0) {
        s->connecting = false;
        return (size_t)n == total ? n : blocked(s, n);
    }
    return errno == EAGAIN ? blocked(s, SP_EAGAIN) : io_sock_send_broken(s, errno);
}

static ptrdiff_t kernel_splice_in(struct io_sock *s, int pipe_fd, size_t len, bool pipe_empty)
{
    ssize_t n;

    do
        n = splice(s->watch.fd, NULL, pipe_fd, NULL, len, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    while (n < 0 && errno == EINTR);
    if (n > 0)
        return n;
    if (n == 0)
        return read_out(s, true);
    if (errno != EAGAIN)
        return io_sock_broken(s, errno);
    return pipe_empty ? read_out(s, false) : SP_EAGAIN;
}

static ptrdiff_t kernel_splice_out(struct io_sock *s, int pipe_fd, size_t len)
{
    ssize_t n;

    do
        n = splice(pipe_fd, NULL, s->watch.fd, NULL, len, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    while (n < 0 && errno == EINTR);
    if (n > 0)
        return (size_t)n == len ? n : blocked(s, n);
    return n < 0 && errno != EAGAIN ? io_sock_send_broken(s, errno) : blocked(s, SP_EAGAIN);
}

static int kernel_settle(struct io_sock *s)
{
    return 0;
}

static bool kernel_is_silent(struct io_sock *s)
{
    char byte;
    ssize_t n = recv(s->watch.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    return n < 0 && errno == EAGAIN;
}

static int bind_source(int fd, const struct addr *from)
{
    int on = 1;

    if (from->u.sa.sa_family != AF_UNIX) {
        /* With any port, let connect choose it: then only the pair of addresses must be unique. */
        if (addr_port(from) == 0)
            setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
        else
            setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    }
    return bind(fd, &from->u.sa, from->len);
}

static int kernel_connect(struct io_sock *s, const struct addr *to, const struct addr *from)
{
    int family = to->u.sa.sa_family;
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        s->error = errno;
        return SP_EIO;
    }
    s->nodelay_due = family != AF_UNIX;
    s->sent_once = false;
    if (from && bind_source(fd, from) != 0)
        goto out;
    if (connect(fd, &to->u.sa, to->len) == 0) {
        s->watch.fd = fd;
        s->ready = IO_READ | IO_WRITE;
        return 0;
    }
    /*
     * EINTR: the connection goes on by itself. A Unix socket with a full queue says EAGAIN:
     * refused.
     */
    if (errno != EINPROGRESS && errno != EINTR)
        goto out;
    s->watch.fd = fd;
    s->ready = 0;
    s->connecting = true;
    if (io_sock_watch(s, IO_READ | IO_WRITE) == 0)
        return 0;
    s->watch.fd = -1;
    s->connecting = false;

out:
    s->error = errno;
    close(fd);
    return SP_EIO;
}

static int kernel_connect_result(struct io_sock *s)
{
    int error = 0;
    socklen_t len = sizeof(error);

    if (s->error)
        return SP_ERESET;
    if (!s->connecting)
        return 0;
    if (!(s->ready & IO_WRITE))
        return SP_EAGAIN;
    /* Room for writing and no complaint: established, without asking. */
    if (s->ready & (IO_HUP | IO_ERROR)) {
        if (getsockopt(s->watch.fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
            error = errno;
        if (error)
            return (int)io_sock_broken(s, error);
    }
    s->connecting = false;
    return 0;
}

static void kernel_shutdown_write(struct io_sock *s)
{
    if (s->watch.fd >= 0 && !s->write_closed)
        shutdown(s->watch.fd, SHUT_WR);
    s->write_closed = true;
}

static void kernel_close(struct io_sock *s, bool reset)
{
    struct linger none = {.l_onoff = 1, .l_linger = 0};

    if (s->watch.fd < 0)
        return;
    if (s->watch.registered && io_loop_is_forking(s->loop))
        io_watch_remove(s->loop, &s->watch);
    if (reset)
        setsockopt(s->watch.fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    close(s->watch.fd);
    s->watch.fd = -1;
    s->watch.registered = false;
    s->watch.interest = 0;
    s->connecting = false;
    s->ready = 0;
    s->read_closed = s->write_closed = true;
}

/* What getsockname and getpeername have in common. */
static int ask_addr(int (*ask)(int, struct sockaddr *, socklen_t *), int fd, struct addr *out)
{
    struct addr a = {.len = sizeof(a.u)};

    if (ask(fd, &a.u.sa, &a.len) != 0)
        return SP_EIO;
    *out = a;
    return 0;
}

static int ask_local(int fd, struct sockaddr *sa, socklen_t *len)
{
    return getsockname(fd, sa, len);
}

static int ask_peer(int fd, struct sockaddr *sa, socklen_t *len)
{
    return getpeername(fd, sa, len);
}

static int kernel_local_addr(const struct io_sock *s, struct addr *out)
{
    return ask_addr(ask_local, s->watch.fd, out);
}

static int kernel_peer_addr(const struct io_sock *s, struct addr *out)
{
    return ask_addr(ask_peer, s->watch.fd, out);
}

const struct io_transport io_kernel_transport = {
    .name = "kernel",
    .watch = kernel_watch,
    .recv = kernel_recv,
    .sendv = kernel_sendv,
    .splice_in = kernel_splice_in,
    .splice_out = kernel_splice_out,
    .settle = kernel_settle,
    .is_silent = kernel_is_silent,
    .connect = kernel_connect,
    .connect_result = kernel_connect_result,
    .shutdown_write = kernel_shutdown_write,
    .close = kernel_close,
    .local_addr = kernel_local_addr,
    .peer_addr = kernel_peer_addr,
};
