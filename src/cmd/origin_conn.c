#include "cmd/origin_conn.h"

#include <errno.h>
#include <sys/sendfile.h>
#include <unistd.h>

/* Steps (calls of the kernel, requests) that a connection makes in one go. */
#define STEPS_PER_TURN 64
/* What one step sends at most. */
#define SEND_PIECE_BYTES ((size_t)512 << 10)
#define PATTERN_SLICES (SEND_PIECE_BYTES / ORIGIN_PATTERN_BYTES)

#define LINGER_US 2000000
#define LINGER_BYTES ((uint64_t)1 << 20)

static const struct h1_limits limits = {
    .max_head_bytes = ORIGIN_BUF_BYTES / 2,
    .max_fields = 100,
};

enum step {
    STEP_ON,     /* go on */
    STEP_WAIT,   /* for an event */
    STEP_CLOSED, /* *c is no more */
};

/* --- life --------------------------------------------------------------------------- */

static void drop_source(struct origin_conn *c)
{
    if (c->file_fd >= 0)
        close(c->file_fd);
    free(c->memory);
    c->file_fd = -1;
    c->memory = NULL;
    c->source = ORIGIN_NOTHING;
    c->left = 0;
}

static void conn_free(struct io_deferred *d)
{
    free(LIST_ENTRY(d, struct origin_conn, gone));
}

void origin_conn_close(struct origin_conn *c)
{
    struct origin_worker *w = c->worker;

    if (!io_sock_is_open(&c->sock))
        return;
    io_timer_cancel(&c->timer);
    list_del(&c->link);
    list_del(&c->yielded);
    drop_source(c);
    buf_pool_put(&w->bufs, &c->in);
    buf_pool_put(&w->bufs, &c->out);
    io_sock_close(&c->sock, false);
    w->conn_count--;
    io_listener_resume(&w->listener);
    io_loop_defer(w->loop, &c->gone, conn_free);
}

static enum step close_now(struct origin_conn *c)
{
    origin_conn_close(c);
    return STEP_CLOSED;
}

static void timed_out(struct io_timer *timer)
{
    origin_conn_close(LIST_ENTRY(timer, struct origin_conn, timer));
}

/*
 * Waiting for the client. A head must be complete in time, however slowly it comes; everything else
 * must only make progress.
 */
static void arm_timer(struct origin_conn *c)
{
    struct origin_worker *w = c->worker;
    uint64_t now = io_loop_now(w->loop);
    uint64_t timeout = w->server->config.timeout_us;

    if (c->state == ORIGIN_HEAD && buf_len(&c->in) && !buf_len(&c->out) &&
        c->source == ORIGIN_NOTHING) {
        if (!c->head_deadline_us)
            c->head_deadline_us = now + timeout;
        io_timer_set(w->loop, &c->timer, c->head_deadline_us);
        return;
    }
    c->head_deadline_us = 0;
    if (c->state == ORIGIN_LINGER || !c->progressed)
        return;
    c->progressed = false;
    io_timer_set(w->loop, &c->timer, now + timeout);
}

/* An idle connection holds no buffers. */
static enum step wait_for_client(struct origin_conn *c)
{
    if (!buf_len(&c->in))
        buf_pool_put(&c->worker->bufs, &c->in);
    if (!buf_len(&c->out))
        buf_pool_put(&c->worker->bufs, &c->out);
    arm_timer(c);
    return STEP_WAIT;
}

/* --- sending ---------------------------------------------------------------------------- */

/* What a send of `iov` has taken, first from `out`. */
static void sent(struct origin_conn *c, size_t n)
{
    size_t head = buf_len(&c->out) < n ? buf_len(&c->out) : n;

    c->progressed = true;
    buf_consume(&c->out, head);
    n -= head;
    c->left -= n;
    c->file_offset += (off_t)n;
}

/* Sends `out` and, unless that is a file, a piece of the source, with one call. */
static enum step send_buffers(struct origin_conn *c)
{
    struct iovec iov[1 + PATTERN_SLICES];
    uint64_t left = c->left;
    int count = 0;
    ptrdiff_t n;

    if (buf_len(&c->out))
        iov[count++] = (struct iovec){buf_data(&c->out), buf_len(&c->out)};
    if (c->source == ORIGIN_MEMORY) {
        size_t piece = left < SEND_PIECE_BYTES ? (size_t)left : SEND_PIECE_BYTES;

        iov[count++] = (struct iovec){c->memory + (c->total - left), piece};
    }
    for (size_t i = 0; c->source == ORIGIN_PATTERN && left && i < PATTERN_SLICES; i++) {
        size_t at = (size_t)((c->total - left) % ORIGIN_PATTERN_BYTES);
        size_t piece = ORIGIN_PATTERN_BYTES - at;

        if (piece > left)
            piece = (size_t)left;
        iov[count++] = (struct iovec){c->worker->server->pattern + at, piece};
        left -= piece;
    }
    n = io_sock_sendv(&c->sock, iov, count, c->source == ORIGIN_FILE);
    if (n == SP_EAGAIN)
        return wait_for_client(c);
    if (n < 0)
        return close_now(c);
    sent(c, (size_t)n);
    return STEP_ON;
}

static enum step send_file_piece(struct origin_conn *c)
{
    size_t piece = c->left < SEND_PIECE_BYTES ? (size_t)c->left : SEND_PIECE_BYTES;
    off_t offset = c->file_offset;
    int status = io_sock_settle(&c->sock);
    ssize_t n;

    if (status != 0)
        return status == SP_EAGAIN ? wait_for_client(c) : close_now(c);
    do
        n = sendfile(c->sock.watch.fd, c->file_fd, &offset, piece);
    while (n < 0 && errno == EINTR);
    if (n > 0) {
        sent(c, (size_t)n);
        return STEP_ON;
    }
    if (n < 0 && errno == EAGAIN && io_sock_watch(&c->sock, IO_WRITE) == 0) {
        c->sock.ready &= (uint8_t)~IO_WRITE;
        return wait_for_client(c);
    }
    /*
     * Also when the file has become shorter than its announced length: only closing tells the
     * client.
     */
    return close_now(c);
}

/* Some of what is to be sent. */
static enum step send_some(struct origin_conn *c)
{
    enum step step;

    if (!(c->sock.ready & IO_WRITE))
        return wait_for_client(c);
    if (buf_len(&c->out) || c->source != ORIGIN_FILE)
        step = send_buffers(c);
    else
        step = send_file_piece(c);
    if (step == STEP_ON && c->source != ORIGIN_NOTHING && c->left == 0 && !buf_len(&c->out))
        drop_source(c);
    return step;
}

/* --- receiving --------------------------------------------------------------------------- */

static enum step receive(struct origin_conn *c)
{
    ptrdiff_t n;

    if (!(c->sock.ready & IO_READ))
        return wait_for_client(c);
    if (!c->in.mem && buf_pool_get(&c->worker->bufs, &c->in) != 0)
        return close_now(c);
    if (buf_room(&c->in) < ORIGIN_BUF_BYTES / 2)
        buf_compact(&c->in);
    n = io_sock_recv(&c->sock, buf_end(&c->in), buf_room(&c->in));
    if (n == SP_EAGAIN)
        return wait_for_client(c);
    if (n < 0)
        return close_now(c);
    buf_commit(&c->in, (size_t)n);
    c->progressed = true;
    return STEP_ON;
}

/* A request head from `in`. STEP_WAIT: more bytes are needed. */
static enum step parse_head(struct origin_conn *c)
{
    struct origin_worker *w = c->worker;
    struct http_msg m;
    size_t head_bytes, error_at;
    enum h1_error error;
    int status;

    if (!buf_len(&c->in))
        return STEP_WAIT;
    if (!c->out.mem && buf_pool_get(&w->bufs, &c->out) != 0)
        return close_now(c);
    arena_reset(&w->arena);
    http_msg_init(&m, &w->arena);
    status =
        h1_parse_request(&c->scan, buf_str(&c->in), &limits, &m, &head_bytes, &error, &error_at);
    if (status == SP_EAGAIN)
        return STEP_WAIT;
    c->head_deadline_us = 0;
    c->scan = (struct h1_scan){0};
    if (status == 0) {
        origin_respond(c, &m);
        buf_consume(&c->in, head_bytes);
    } else if (status == SP_ETOOBIG) {
        origin_respond_error(c, 431, h1_error_text(error));
    } else if (status == SP_EPROTO) {
        origin_respond_error(c, error == H1_BAD_VERSION ? 505 : 400, h1_error_text(error));
    } else {
        return close_now(c);
    }
    return STEP_ON;
}

/* Takes the request's body from `in`. STEP_WAIT: more bytes are needed. */
static enum step drain_body(struct origin_conn *c)
{
    if (!c->out.mem && buf_pool_get(&c->worker->bufs, &c->out) != 0)
        return close_now(c);
    while (!h1_body_is_done(&c->body)) {
        struct str payload;
        ptrdiff_t n = h1_body_next(&c->body, buf_str(&c->in), &payload);

        if (n < 0) {
            origin_respond_error(c, 400, h1_error_text((enum h1_error)c->body.error));
            return STEP_ON;
        }
        buf_consume(&c->in, (size_t)n);
        if (n == 0 && !h1_body_is_done(&c->body))
            return STEP_WAIT;
    }
    c->state = ORIGIN_HEAD;
    origin_respond_drained(c);
    return STEP_ON;
}

/* --- the end --------------------------------------------------------------------------------- */

/* Closing while the client still sends would reset the connection and may destroy the answer. */
static enum step finish(struct origin_conn *c)
{
    if (!c->linger)
        return close_now(c);
    c->sock.transport->shutdown_write(&c->sock);
    c->state = ORIGIN_LINGER;
    c->closing = false;
    buf_clear(&c->in);
    io_timer_set(c->worker->loop, &c->timer, io_loop_now(c->worker->loop) + LINGER_US);
    return STEP_ON;
}

static enum step linger(struct origin_conn *c)
{
    c->lingered_bytes += buf_len(&c->in);
    buf_clear(&c->in);
    if (c->lingered_bytes > LINGER_BYTES)
        return close_now(c);
    return receive(c);
}

/*
 * --- the machine -------------------------------------------------------------------------------
 */

static enum step make_step(struct origin_conn *c)
{
    enum step step;

    if (c->source != ORIGIN_NOTHING ||
        (buf_len(&c->out) && buf_room(&c->out) < 2 * ORIGIN_HEAD_ROOM))
        return send_some(c);
    if (c->state == ORIGIN_LINGER)
        return linger(c);
    if (!c->closing) {
        step = c->state == ORIGIN_BODY ? drain_body(c) : parse_head(c);
        if (step != STEP_WAIT)
            return step;
    }
    /*
     * There is nothing more to answer for now: what has gathered leaves before anything is waited
     * for.
     */
    if (buf_len(&c->out))
        return send_some(c);
    return c->closing ? finish(c) : receive(c);
}

static void run(struct origin_conn *c)
{
    for (unsigned i = 0; i < STEPS_PER_TURN; i++) {
        if (make_step(c) != STEP_ON)
            return;
    }
    if (!list_is_linked(&c->yielded))
        list_push_back(&c->worker->yielded, &c->yielded);
}

void origin_conn_resume(struct origin_conn *c)
{
    run(c);
}

static void on_event(struct io_sock *s, unsigned events)
{
    run(LIST_ENTRY(s, struct origin_conn, sock));
}

void origin_conn_accept(struct origin_worker *w, int fd)
{
    struct origin_conn *c = calloc(1, sizeof(*c));

    if (!c) {
        close(fd);
        return;
    }
    c->worker = w;
    c->file_fd = -1;
    list_init(&c->yielded);
    list_push_back(&w->conns, &c->link);
    w->conn_count++;
    io_timer_init(&c->timer, timed_out);
    io_sock_init(&c->sock, w->loop, fd, on_event);
    /* The request has rarely come with the connection: the loop tells when it is there. */
    c->sock.ready = IO_WRITE;
    if (io_sock_watch(&c->sock, IO_READ) != 0) {
        origin_conn_close(c);
        return;
    }
    c->progressed = true;
    arm_timer(c);
}
