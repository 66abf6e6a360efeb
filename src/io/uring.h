/*
 * The event loop's io_uring engine, inside io/ only. loop.c runs it, sock.c and listener.c hand
 * it their work.
 *
 * A socket that is registered has a struct io_uring_sock: what is in flight for it and the bytes
 * that it holds in user space. It outlives the io_sock until its last completion came, so a
 * completion can never reach a socket that was opened in its place.
 *
 * Requests are prepared once a turn, before it waits (io_uring_loop_wait): whatever changed during
 * the turn has put the socket on the list of touched ones. Completions are all taken before the
 * first of them is reported. Plain descriptors stay in the loop's epoll set, which the ring polls.
 */
#ifndef SP_IO_URING_H
#define SP_IO_URING_H

#include "io/ring.h"
#include "io/sock.h"

#define IO_URING_CHUNK_BYTES 16384u
#define IO_URING_CHUNKS_MAX 256 /* bytes to send that a loop holds: 4 MiB */
/* A read of so many makes the next reads go to the kernel directly, until several in a row were smaller. */
#define IO_URING_BULK_BYTES 8192
#define IO_URING_BULK_READS 8
#define IO_URING_SOCK_CHUNKS 2 /* of one socket: one in flight, one that fills */

/* The kind of a request: the low bits of its user data, the rest is a pointer; also a bit of `armed`. */
enum io_uring_kind {
    IO_URING_RECV,
    IO_URING_IN,  /* poll for bytes, for a reader that takes them itself */
    IO_URING_HUP, /* poll for the peer's end while unread bytes wait */
    IO_URING_OUT, /* poll for room */
    IO_URING_SEND,
    IO_URING_CLOSE,
    IO_URING_ACCEPT,
    IO_URING_EPOLL,
    IO_URING_OP_MASK = 15,
};

struct io_uring_chunk {
    struct io_uring_chunk *next;
    uint32_t head, tail;
    bool more; /* the last bytes came with `more` */
    char data[IO_URING_CHUNK_BYTES];
};

struct io_uring_sock {
    struct list all, touched, fired;
    struct io_uring_loop *u;
    struct io_sock *sock; /* NULL: closed by its owner */
    int fd;               /* -1: closed */
    unsigned events;      /* to report; on the list `fired` while not 0 */
    uint8_t armed;        /* requests in flight, bits of enum io_uring_kind */
    uint8_t cancelled;    /* those of them that are being cancelled */
    bool report_read;     /* registered anew: what is ready is reported though it may be known */
    bool report_write;
    uint8_t bulk; /* not 0: the reader takes its bytes from the kernel: poll instead of receiving */
    bool may_have;  /* a poll said that there are bytes */
    bool peer_done; /* HUP or an error was reported: nothing is left to poll for */
    bool rx_eof;
    bool reset;        /* closing without sending what is left */
    bool shutdown_due; /* after what is left */
    bool checked;      /* the kernel has been asked for bytes before */
    int rx_error, tx_error;
    uint16_t rx_id; /* the receive buffer, while rx_len > 0 */
    uint32_t rx_at, rx_len;
    struct io_uring_chunk *tx; /* the first one is in flight when armed says so */
    struct io_timer timer;     /* closed by its owner, but the peer does not take what is left */
};

struct io_uring_slot {
    _Alignas(IO_URING_OP_MASK + 1) struct io_uring_listener *owner;
    int fd; /* accepted */
    bool armed, cancelled, done;
    struct addr peer;
};

struct io_uring_listener {
    struct list all, touched, fired;
    struct io_uring_loop *u;
    struct io_listener *listener; /* NULL: stopped */
    int fd;
    bool stalled; /* no accepting before the listener's timer */
    bool reporting;
    unsigned count, armed, done;
    unsigned wanted; /* accepts to keep in flight */
    struct io_uring_slot *slots;
};

struct io_uring_loop {
    struct io_ring ring;
    struct io_loop *loop;
    int epoll_fd;
    bool running;  /* inside io_loop_run: there is somebody who submits */
    bool ending;   /* everything is being cancelled */
    bool batching; /* this turn serves enough to gather its calls */
    bool epoll_armed;
    bool epoll_ready;
    unsigned in_flight;
    unsigned chunk_count, free_sock_count;
    struct list socks, touched, fired;
    struct list listeners, touched_listeners, fired_listeners;
    struct io_uring_chunk *free_chunks;
    struct io_uring_sock *free_socks; /* chained by `sock` */
};

/* --- uring.c: the loop's part ----------------------------------------------------------- */

/* The engine of a loop, or NULL when it runs on epoll alone (loop.c). */
struct io_uring_loop *io_loop_uring(const struct io_loop *loop);

/* NULL with *missing. `epoll_fd` stays the loop's. */
struct io_uring_loop *io_uring_loop_new(struct io_loop *loop, int epoll_fd, const char **missing);
/* Sends what can be sent without waiting, closes what its owners have closed. NULL is allowed. */
void io_uring_loop_free(struct io_uring_loop *u);
/* Around io_loop_run; nothing is in flight outside. The first one binds the ring to its thread. */
int io_uring_loop_begin(struct io_uring_loop *u);
void io_uring_loop_end(struct io_uring_loop *u);
/* Submits, and waits at most `timeout_us`. True: look into the epoll set. */
bool io_uring_loop_wait(struct io_uring_loop *u, uint64_t timeout_us);
/* Events are left from the last turn: do not sleep. */
bool io_uring_loop_is_busy(const struct io_uring_loop *u);
void io_uring_loop_dispatch(struct io_uring_loop *u);
/* Submits and takes the completions that are there, without reporting them. */
void io_uring_loop_turn_over(struct io_uring_loop *u);

static inline uint64_t io_uring_data(const void *owner, enum io_uring_kind op)
{
    return (uint64_t)(uintptr_t)owner | op;
}
/* The next request, counted as in flight; room was reserved. */
struct io_uring_sqe *io_uring_request(struct io_uring_loop *u, uint8_t opcode, int fd,
                                      const void *owner, enum io_uring_kind op);
/* Asks to cancel one; it still completes. */
void io_uring_cancel(struct io_uring_loop *u, const void *owner, enum io_uring_kind op);

/* --- uring_flight.c: requests and completions of a socket ------------------------------------ */

#define IO_URING_SOCK_REQUESTS 8 /* that one flush may make */

/* Prepares what the socket needs next; may free it. */
void io_uring_sock_flush(struct io_uring_sock *us);
void io_uring_sock_done(struct io_uring_sock *us, enum io_uring_kind op, int res, unsigned flags);
void io_uring_sock_report(struct io_uring_sock *us);
/* Cancels those of `ops`, a set of bits, that are in flight. */
void io_uring_sock_cancel(struct io_uring_sock *us, unsigned ops);
static inline void io_uring_sock_touch(struct io_uring_sock *us)
{
    if (!list_is_linked(&us->touched))
        list_push_back(&us->u->touched, &us->touched);
}
static inline bool io_uring_is_armed(const struct io_uring_sock *us, enum io_uring_kind op)
{
    return us->armed >> op & 1;
}
/* Without a ring, at the end: sends what the kernel takes and closes when the owner has closed. */
void io_uring_sock_settle(struct io_uring_sock *us, bool free_it);
struct io_uring_chunk *io_uring_chunk_get(struct io_uring_loop *u);
void io_uring_chunks_drop(struct io_uring_sock *us);
void io_uring_chunk_pop(struct io_uring_sock *us);
void io_uring_rx_drop(struct io_uring_sock *us);

/* --- uring_sock.c: the transport ------------------------------------------------------------- */

extern const struct io_transport io_uring_transport;

/* --- uring_accept.c ---------------------------------------------------------------------------- */

/* SP_ENOMEM. On success the listener's `uring` is set. */
int io_uring_accept_start(struct io_uring_loop *u, struct io_listener *l);
/* The listener's `paused` or `stalled` has changed. */
void io_uring_accept_update(struct io_uring_listener *ul);
/*
 * When it returns the descriptor is the caller's alone. Connections that were accepted are reported
 * meanwhile.
 */
void io_uring_accept_stop(struct io_listener *l);
void io_uring_accept_flush(struct io_uring_listener *ul);
void io_uring_accept_cancel(struct io_uring_listener *ul);
void io_uring_accept_done(struct io_uring_slot *slot, int res);
/* Reports what was accepted. */
void io_uring_accept_report(struct io_uring_listener *ul);
void io_uring_accept_release(struct io_uring_listener *ul);
/* In listener.c: sees to the error of an accept; true: go on at once. */
bool io_listener_accept_failed(struct io_listener *l, int error);

/* --- sock.c: the kernel's calls, shared ------------------------------------------------------------- */

/* Neither direction goes on; SP_ERESET. */
ptrdiff_t io_sock_broken(struct io_sock *s, int error);
/* Nothing more can be sent; what has come can still be read; SP_ERESET. */
ptrdiff_t io_sock_send_broken(struct io_sock *s, int error);
void io_sock_nodelay(struct io_sock *s, size_t total);
size_t io_sock_total(const struct iovec *iov, int count);

#endif
