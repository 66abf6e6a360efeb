/*
 * One request sent and its answer read, without an event loop: what --expect-same compares with.
 */
#include "cmd/bench_plan.h"

#include "base/clock.h"
#include "base/hash.h"
#include "http/h1.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#define HEAD_MAX 65536
#define READ_BYTES 65536
#define FNV_BASIS \
    0xcbf29ce484222325u /* what hash_fnv1a64 xors its seed with: a hash goes on from where it was */

/* A socket without an event loop: what would block waits in poll and tries again. */
struct sample {
    struct io_sock sock; /* first member */
    int fd;
    uint64_t deadline_us;
    bool timed_out;
    struct tls_worker *worker;
    struct tls_conn *tls;
    const char *why; /* the failure, when errno does not say it */
};

/* 0, or SP_EAGAIN when the time is over. */
static int wait_for(struct sample *s, short events)
{
    struct pollfd p = {.fd = s->fd, .events = events};
    uint64_t now_us = clock_now_us();
    int n = 0;

    if (now_us < s->deadline_us)
        n = poll(&p, 1, (int)((s->deadline_us - now_us + 999) / 1000));
    if (n == 0)
        s->timed_out = true;
    return n > 0 ? 0 : SP_EAGAIN;
}

static ptrdiff_t sample_recv(struct io_sock *sock, void *data, size_t len)
{
    ssize_t n = recv(sock->watch.fd, data, len, MSG_DONTWAIT);

    if (n < 0 && errno == EAGAIN)
        return SP_EAGAIN;
    if (n < 0)
        sock->error = errno;
    return n > 0 ? n : n == 0 ? SP_EEOF : SP_ERESET;
}

static ptrdiff_t sample_sendv(struct io_sock *sock, const struct iovec *iov, int count, bool more)
{
    struct msghdr message = {.msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)count};
    ssize_t n;

    (void)more;
    n = sendmsg(sock->watch.fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == EAGAIN)
        return SP_EAGAIN;
    if (n < 0)
        sock->error = errno;
    return n >= 0 ? n : SP_ERESET;
}

static int sample_watch(struct io_sock *sock, unsigned events)
{
    (void)sock;
    (void)events;
    return 0;
}

static const struct io_transport sample_transport = {
    .name = "sample", .watch = sample_watch, .recv = sample_recv, .sendv = sample_sendv};

/* Whether the call that said `status` is to be made again, after a wait for what it lacked. */
static bool again(struct sample *s, ptrdiff_t status, short blocked_on)
{
    if (status != SP_EAGAIN && status != SP_EWANTREAD && status != SP_EWANTWRITE)
        return false;
    s->sock.ready |= IO_READ | IO_WRITE;
    return wait_for(s, status == SP_EWANTREAD ? POLLIN : status == SP_EWANTWRITE ? POLLOUT : blocked_on) == 0;
}

static int sample_open(struct sample *s, const struct load_target *t)
{
    int error = 0, status;
    socklen_t len = sizeof(error);

    s->fd = socket(t->addr.u.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->fd < 0)
        return SP_EIO;
    if (connect(s->fd, &t->addr.u.sa, t->addr.len) != 0) {
        if (errno != EINPROGRESS || wait_for(s, POLLOUT) != 0)
            return SP_EIO;
        if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0 || error != 0) {
            errno = error;
            return SP_EIO;
        }
    }
    /* Not io_sock_init: there is no event loop. */
    s->sock = (struct io_sock){.watch = {.fd = s->fd}, .transport = &sample_transport};
    if (!t->is_tls)
        return 0;
    s->worker = tls_worker_new(NULL);
    s->tls = s->worker ? tls_conn_new_client(s->worker, t->tls, &s->sock, t->sni, t->alpn, NULL) : NULL;
    if (!s->tls)
        return SP_ENOMEM;
    tls_worker_start(s->worker);
    s->sock.ready |= IO_READ | IO_WRITE;
    do
        status = tls_conn_handshake(s->tls);
    while (again(s, status, POLLIN));
    if (status != 0) {
        s->why = tls_conn_error_text(s->tls);
        return SP_EPROTO;
    }
    return 0;
}

static void sample_close(struct sample *s)
{
    if (s->tls) {
        tls_conn_free(s->tls);
        tls_worker_stop(s->worker);
    }
    if (s->worker)
        tls_worker_free(s->worker);
    if (s->fd >= 0)
        close(s->fd);
}

static ptrdiff_t sample_read(struct sample *s, void *data, size_t len)
{
    ptrdiff_t n;

    s->sock.ready |= IO_READ | IO_WRITE;
    do
        n = s->tls ? tls_conn_read(s->tls, data, len) : sample_recv(&s->sock, data, len);
    while (again(s, n, POLLIN));
    return n;
}

static int sample_write(struct sample *s, struct str bytes)
{
    int status = 0;

    while (bytes.len) {
        struct iovec iov = {.iov_base = (void *)bytes.ptr, .iov_len = bytes.len};
        ptrdiff_t n;

        do
            n = s->tls ? tls_conn_writev(s->tls, &iov, 1, false) : sample_sendv(&s->sock, &iov, 1, false);
        while (again(s, n, POLLOUT));
        if (n < 0)
            return (int)n;
        bytes = str_from(bytes, (size_t)n);
    }
    if (s->tls)
        do
            status = tls_conn_flush(s->tls);
        while (again(s, status, POLLOUT));
    return status;
}

/* The head of the final answer; what follows it in `data` stays: *head_bytes, *have. */
static int read_head(struct sample *s, enum http_method method, char *data, struct arena *arena,
                     struct http_msg *m, size_t *head_bytes, size_t *have)
{
    const struct h1_limits limits = {.max_head_bytes = HEAD_MAX, .max_fields = 256};
    struct h1_scan scan = {0};
    enum h1_error error;
    size_t at;

    *have = 0;
    for (;;) {
        ptrdiff_t n = sample_read(s, data + *have, HEAD_MAX - *have);
        int status;

        if (n <= 0)
            return n == 0 ? SP_ETOOBIG : (int)n;
        *have += (size_t)n;
        do {
            http_msg_init(m, arena);
            status =
                h1_parse_response(&scan, str_make(data, *have), &limits, method, m, head_bytes, &error, &at);
            if (status == 0 && m->status < 200 && m->status != 101) {
                /* An interim answer: the one that counts comes behind it. */
                *have -= *head_bytes;
                memmove(data, data + *head_bytes, *have);
                scan = (struct h1_scan){0};
                continue;
            }
            break;
        } while (*have);
        if (status == 0 && *have)
            return 0;
        if (status != 0 && status != SP_EAGAIN) {
            s->why = h1_error_text(error);
            return SP_EPROTO;
        }
    }
}

/* Content hashed as the engine does; SP_EEOF ends a body without a length. */
static int read_body(struct sample *s, const struct http_msg *m, char *data, size_t have, uint64_t *hash)
{
    struct h1_body body;

    *hash = hash_fnv1a64(STR_NULL, 0);
    h1_body_init(&body, (enum http_framing)m->framing, m->content_length);
    for (;;) {
        struct str in = str_make(data, have), payload;
        ptrdiff_t n;

        while (!h1_body_is_done(&body) && in.len) {
            n = h1_body_next(&body, in, &payload);
            if (n < 0) {
                s->why = h1_error_text((enum h1_error)body.error);
                return SP_EPROTO;
            }
            if (n == 0)
                break;
            *hash = hash_fnv1a64(payload, *hash ^ FNV_BASIS);
            in = str_from(in, (size_t)n);
        }
        if (h1_body_is_done(&body))
            return 0;
        memmove(data, in.ptr, in.len);
        n = sample_read(s, data + in.len, READ_BYTES - in.len);
        if (n == SP_EEOF && m->framing == HTTP_FRAMING_CLOSE)
            return 0;
        if (n <= 0)
            return n == 0 ? SP_ETOOBIG : (int)n;
        have = in.len + (size_t)n;
    }
}

static int sample_request(struct load_request *r, struct sample *s, char *data, uint64_t *hash)
{
    struct arena arena;
    struct http_msg m;
    size_t head_bytes, have;
    int status = sample_open(s, r->target);

    if (status == 0)
        status = sample_write(s, r->bytes);
    if (status != 0)
        return status;
    arena_init(&arena, 0, 0);
    status = read_head(s, r->method, data, &arena, &m, &head_bytes, &have);
    if (status == 0) {
        memmove(data, data + head_bytes, have - head_bytes);
        status = read_body(s, &m, data, have - head_bytes, hash);
    }
    arena_release(&arena);
    return status;
}

int bench_sample(struct bench_plan *p)
{
    char *data = malloc(HEAD_MAX > READ_BYTES ? HEAD_MAX : READ_BYTES);
    int status = data ? 0 : SP_ENOMEM;

    for (size_t i = 0; i < p->load.request_count && status == 0; i++) {
        struct load_request *r = &p->requests[i];
        struct sample s = {.fd = -1, .deadline_us = clock_now_us() + p->load.timeout_us};
        uint64_t hash = 0;

        errno = 0;
        status = sample_request(r, &s, data, &hash);
        if (status != 0)
            fprintf(stderr, "sallyport bench: --expect-same: the first request to %s failed: %s\n",
                    p->urls[i],
                    s.timed_out        ? "timed out"
                    : s.why            ? s.why
                    : status == SP_EIO ? strerror(errno)
                    : s.sock.error     ? strerror(s.sock.error)
                                       : sp_status_text(status));
        sample_close(&s);
        r->expect_hash = hash;
        r->hash_body = true;
    }
    free(data);
    return status == 0 ? 0 : 1;
}
