/*
 * Stream sockets over a transport. The kernel's sockets are one transport; a
 * user-space stack is another behind the same table, and nothing above changes.
 */
#ifndef SP_IO_SOCK_H
#define SP_IO_SOCK_H

#include "base/addr.h"
#include "io/loop.h"

#include <sys/uio.h>

struct io_uring_sock;
struct io_uring_listener;

struct io_sock {
    struct io_watch watch; /* first member */
    struct io_loop *loop;
    const struct io_transport *transport;
    struct io_uring_sock *uring; /* what the io_uring engine keeps for it; NULL: nothing yet */
    /*
     * IO_READ, IO_WRITE as far as known: cleared when a call would block. A fresh socket is taken
     * to be ready for both; with io_uring for IO_WRITE only, because there registering costs no call
     * and tells. IO_HUP and IO_ERROR stay once seen.
     */
    uint8_t ready;
    bool connecting;
    bool nodelay_due;   /* TCP_NODELAY is still to be set: see kernel_sendv */
    bool sent_once;
    bool read_closed; /* end of stream or reset seen */
    bool write_closed;
    int error; /* errno of the failure that ended it */
    /* `ready` is up to date. It may close the socket; its memory goes by io_loop_defer. */
    void (*on_event)(struct io_sock *s, unsigned events);
};

struct io_transport {
    const char *name;
    /* See io_sock_watch. */
    int (*watch)(struct io_sock *s, unsigned events);
    /*
     * Bytes read (> 0), SP_EEOF, SP_EAGAIN, or SP_ERESET with s->error set. Fewer bytes than asked
     * for clear IO_READ, so that a reader that looks at `ready` first spends no call on SP_EAGAIN.
     */
    ptrdiff_t (*recv)(struct io_sock *s, void *data, size_t len);
    /*
     * Bytes written (> 0, maybe fewer than asked), SP_EAGAIN, or SP_ERESET with s->error set: then what
     * the peer had sent can still be read, and IO_READ is set so that a reader comes for it.
     * Unless all was written, an event with IO_WRITE will come. `more`: further data follows at
     * once. Allowed while connecting. The slices hold at least one byte.
     */
    ptrdiff_t (*sendv)(struct io_sock *s, const struct iovec *iov, int count, bool more);
    /*
     * Bytes moved between the socket and a pipe without passing through user space, with the codes
     * of recv and sendv; `len` is an upper bound. NULL where a transport cannot. SP_EAGAIN of
     * splice_in may also mean that the pipe is full: then IO_READ stays set.
     */
    ptrdiff_t (*splice_in)(struct io_sock *s, int pipe_fd, size_t len, bool pipe_empty);
    ptrdiff_t (*splice_out)(struct io_sock *s, int pipe_fd, size_t len);
    /*
     * Before the caller writes to the descriptor itself (sendfile): 0 when nothing sent is held back
     * in user space, SP_EAGAIN with an IO_WRITE event to come, SP_ERESET.
     */
    int (*settle)(struct io_sock *s);
    /*
     * Asks, the kernel too, whether nothing has come: no byte, no end, no error. True on an idle
     * connection that may still be used.
     */
    bool (*is_silent)(struct io_sock *s);
    /*
     * Starts a connection of a socket whose descriptor is -1, from address `from` unless NULL (port
     * 0: any): 0 connected, or under way (s->connecting, registered, an event with IO_WRITE tells
     * the end); SP_EIO with errno in s->error and no descriptor.
     */
    int (*connect)(struct io_sock *s, const struct addr *to, const struct addr *from);
    /* After a write event: 0 connected, SP_EAGAIN, or SP_ERESET. */
    int (*connect_result)(struct io_sock *s);
    void (*shutdown_write)(struct io_sock *s);
    /*
     * `reset`: RST instead of FIN, unsent data dropped. Harmless on a closed socket. With io_uring
     * the descriptor may be closed at the end of the turn, and what was sent leaves first.
     */
    void (*close)(struct io_sock *s, bool reset);
    /* SP_EIO with errno. */
    int (*local_addr)(const struct io_sock *s, struct addr *out);
    int (*peer_addr)(const struct io_sock *s, struct addr *out);
};

extern const struct io_transport io_kernel_transport;

/*
 * An accepted descriptor, or -1 to connect, becomes a kernel socket of `loop`; everything in *s is
 * overwritten. Not registered until io_sock_watch. TCP_NODELAY comes from the listener
 * (io_listener_start) or is set by connect.
 */
void io_sock_init(struct io_sock *s, struct io_loop *loop, int fd,
                  void (*on_event)(struct io_sock *s, unsigned events));

/*
 * Asks for events: IO_READ once is for good (edges); IO_WRITE is asked for when a send would block
 * and stays. Registering late is on purpose: a connection served at once never costs an epoll_ctl.
 * SP_EIO with errno.
 */
static inline int io_sock_watch(struct io_sock *s, unsigned events)
{
    return s->transport->watch(s, events);
}

static inline ptrdiff_t io_sock_recv(struct io_sock *s, void *data, size_t len)
{
    return s->transport->recv(s, data, len);
}

static inline ptrdiff_t io_sock_sendv(struct io_sock *s, const struct iovec *iov, int count,
                                      bool more)
{
    return s->transport->sendv(s, iov, count, more);
}

/* See struct io_transport. */
static inline int io_sock_settle(struct io_sock *s)
{
    return s->transport->settle(s);
}

static inline bool io_sock_is_silent(struct io_sock *s)
{
    return s->transport->is_silent(s);
}

static inline void io_sock_close(struct io_sock *s, bool reset)
{
    s->transport->close(s, reset);
}

static inline bool io_sock_is_open(const struct io_sock *s)
{
    return s->watch.fd >= 0;
}

/* --- listening ------------------------------------------------------------------ */

struct io_listen_options {
    int backlog; /* 0: SOMAXCONN */
    bool reuse_port;
    bool v6only, v4v6; /* neither: as the system is set up */
    bool fast_open;
    bool transparent;
    int defer_accept_s;                /* 0: off */
    const char *interface;             /* SO_BINDTODEVICE, NULL: none */
    int unix_mode, unix_uid, unix_gid; /* -1: leave */
    int max_segment;                   /* 0: leave */
};

/*
 * Binds and listens: a descriptor, or SP_EIO with errno and *step naming the call that failed
 * ("bind", "setsockopt(SO_REUSEPORT)"). A Unix path is bound under a temporary name in its
 * directory, given its owner and mode, and renamed, so that a socket which is there already is
 * replaced without a gap; anything else than a socket is left alone (EEXIST). Removing the path in
 * the end is the caller's.
 */
int io_listen(const struct addr *a, const struct io_listen_options *o, const char **step);

/* Zero it, set `batch` if wished, then io_listener_start. */
struct io_listener {
    struct io_watch watch; /* first member */
    struct io_loop *loop;
    struct io_uring_listener *uring; /* NULL: it waits for readiness and accepts by itself */
    bool paused;
    bool shared;
    /* A new connection: `fd` now belongs to the callee. It may pause or stop the listener. */
    void (*on_accept)(struct io_listener *l, int fd, const struct addr *peer);
    unsigned batch; /* accepts a turn at most, so that traffic in progress is served; 0: 64 */
    unsigned burst; /* accepts that this turn tries: grows while the queue is never found empty */
    uint64_t last_turn;
    uint64_t resource_errors; /* times that accepting paused for want of descriptors or memory */
    struct io_timer retry;    /* after EMFILE and the like */
};

/*
 * Accepts on `fd`, which is made non-blocking. `shared`: other threads or processes wait on the
 * same socket, one of them is woken. SP_EIO with errno.
 */
int io_listener_start(struct io_listener *l, struct io_loop *loop, int fd, bool shared,
                      void (*on_accept)(struct io_listener *l, int fd, const struct addr *peer));
/*
 * Stops accepting, keeps the descriptor. With io_uring a few connections may have been accepted
 * already: they are reported when it resumes.
 */
void io_listener_pause(struct io_listener *l);
void io_listener_resume(struct io_listener *l);
/*
 * Unregisters; the descriptor is the caller's again, and closing it frees the address at once. With
 * io_uring, inside io_loop_run, connections that the kernel has accepted already are reported
 * before it returns.
 */
void io_listener_stop(struct io_listener *l);

#endif
