/* Requests on a connection that is open: out, back, judged. */
#include "load/engine.h"

#include "base/clock.h"

#include <inttypes.h>

/* A server that never stops sending must not keep the others, and the clock, waiting. */
#define READS_PER_TURN 32

/* --- ends ----------------------------------------------------------------------------------- */

static void forget_request(struct load_conn *c)
{
    if (c->request)
        c->thread->outstanding--;
    c->request = NULL;
    c->sent = c->retried = false;
}

static void note_error(struct load_conn *c, uint64_t now_us, enum load_error error,
                       const char *text)
{
    char address[ADDR_TEXT_BYTES];

    if (c->request ? !c->measured : now_us < c->thread->measure_us)
        return;
    if (c->thread->record.errors[error] == 0)
        addr_text(&c->target->addr, address);
    load_record_error(&c->thread->record, now_us, error, "%s: %s", address, text);
}

void load_conn_fail(struct load_conn *c, uint64_t now_us, enum load_error error, const char *text)
{
    struct load_thread *t = c->thread;
    struct load_lane *lane = c->lane;

    /* What is due and finds no server has failed too, or the end would never come. */
    if (!c->request && t->is_open_loop && c->state < LOAD_IDLE && !t->stopped &&
        lane->arrival.due_us <= now_us && load_thread_take(c, lane->arrival.due_us))
        load_arrival_next(&lane->arrival);
    note_error(c, now_us, error, text);
    load_conn_settled(c);
    forget_request(c);
    load_conn_close(c, true);
    load_thread_again(c);
}

static bool may_be_repeated(enum http_method method)
{
    switch (method) {
    case HTTP_GET:
    case HTTP_HEAD:
    case HTTP_PUT:
    case HTTP_DELETE:
    case HTTP_OPTIONS:
    case HTTP_TRACE:
        return true;
    default:
        return false;
    }
}

/* The server has closed what was idle, as it may at any time; the request has missed it. */
static void reconnect(struct load_conn *c, uint64_t now_us)
{
    if (now_us >= c->thread->measure_us)
        c->thread->record.reconnects++;
    load_conn_close(c, false);
    load_thread_again(c);
}

static void broken(struct load_conn *c, uint64_t now_us, int status)
{
    char text[LOAD_EXAMPLE_BYTES / 2];
    const char *what = status == SP_ERESET ? "connection reset" : "connection closed";
    enum load_error error = status == SP_ERESET ? LOAD_ERROR_RESET : LOAD_ERROR_CLOSED;

    if (status == SP_EPROTO) {
        snprintf(text, sizeof(text), "TLS: %s", c->tls ? tls_conn_error_text(c->tls) : "failed");
        error = LOAD_ERROR_TLS;
    } else if (c->state == LOAD_BODY && c->body.framing == HTTP_FRAMING_LENGTH) {
        snprintf(text, sizeof(text), "%s after %" PRIu64 " of %" PRIu64 " bytes of the body", what,
                 c->body.payload_bytes, c->body.payload_bytes + c->body.remaining);
    } else if (c->state == LOAD_BODY) {
        snprintf(text, sizeof(text), "%s after %" PRIu64 " bytes of the body", what,
                 c->body.payload_bytes);
    } else {
        snprintf(text, sizeof(text), "%s before the end of the head%s", what,
                 c->first_us ? "" : ", no byte of it had come");
    }
    load_conn_fail(c, now_us, error, text);
}

static void finish(struct load_conn *c, uint64_t now_us, size_t extra);

void load_conn_ended(struct load_conn *c, uint64_t now_us, int status)
{
    bool orderly = status == SP_EEOF && (!c->tls || tls_conn_eof_clean(c->tls));

    if (c->state == LOAD_IDLE) {
        if (c->served) {
            list_del(&c->link);
            reconnect(c, now_us);
        } else {
            list_del(&c->link);
            load_conn_fail(c, now_us, status == SP_ERESET ? LOAD_ERROR_RESET : LOAD_ERROR_CLOSED,
                           "closed before the first request");
            load_conn_pause(c, now_us);
        }
        return;
    }
    if (c->state == LOAD_BODY && c->body.framing == HTTP_FRAMING_CLOSE && orderly) {
        c->keep_alive = false;
        finish(c, now_us, 0);
        return;
    }
    if (c->served && c->first_us == 0 && !c->retried && status != SP_EPROTO &&
        may_be_repeated(c->request->method)) {
        c->retried = true;
        reconnect(c, now_us);
        return;
    }
    broken(c, now_us, status);
}

/* --- the answer ----------------------------------------------------------------------------------- */

static void judge(struct load_conn *c, uint64_t now_us, size_t extra)
{
    const struct load_request *q = c->request;
    char text[LOAD_EXAMPLE_BYTES / 2];

    if (q->expect_status > 0 && q->expect_status != c->status) {
        snprintf(text, sizeof(text), "expected status %d, got %u", q->expect_status, c->status);
        note_error(c, now_us, LOAD_ERROR_STATUS, text);
    }
    if (q->expect_size >= 0 && (uint64_t)q->expect_size != c->body.payload_bytes) {
        snprintf(text, sizeof(text), "expected a body of %" PRId64 " bytes, got %" PRIu64,
                 q->expect_size, c->body.payload_bytes);
        note_error(c, now_us, LOAD_ERROR_SIZE, text);
    }
    if (q->hash_body && c->hash != q->expect_hash) {
        snprintf(text, sizeof(text), "expected a body with hash %016" PRIx64 ", got %016" PRIx64,
                 q->expect_hash, c->hash);
        note_error(c, now_us, LOAD_ERROR_HASH, text);
    }
    if (extra) {
        snprintf(text, sizeof(text), "%zu bytes behind the end of the answer", extra);
        note_error(c, now_us, LOAD_ERROR_HTTP, text);
    }
}

static void next(struct load_conn *c, uint64_t now_us, bool reuse)
{
    struct load_thread *t = c->thread;

    if (!reuse) {
        load_conn_close(c, false);
        load_thread_again(c);
        return;
    }
    if (t->is_open_loop) {
        c->state = LOAD_IDLE;
        load_thread_wait(c);
        return;
    }
    if (!load_thread_take(c, now_us)) {
        load_conn_close(c, false);
        c->state = LOAD_DONE;
        return;
    }
    if (c->request->target != c->target) {
        load_conn_close(c, false);
        load_thread_again(c);
        return;
    }
    load_conn_send(c, now_us);
}

/* The answer is whole. */
static void finish(struct load_conn *c, uint64_t now_us, size_t extra)
{
    struct load_record *r = &c->thread->record;
    struct load_times times = {c->base_us, c->sent_us, c->first_us, now_us};
    unsigned hundreds = c->status / 100;
    bool reuse = c->keep_alive && extra == 0 && !c->thread->is_one_shot &&
                 c->sent_bytes == c->request->bytes.len && !(c->sock.ready & (IO_HUP | IO_ERROR)) &&
                 !c->sock.read_closed;

    if (c->measured) {
        load_record_answer(r, &times);
        r->status_class[hundreds < 6 ? hundreds : 0]++;
        r->body_bytes += c->body.payload_bytes;
    }
    judge(c, now_us, extra);
    load_conn_settled(c);
    forget_request(c);
    c->pause_ms = 0;
    c->served = true;
    next(c, now_us, reuse);
}

static void take_bytes(struct load_conn *c, uint64_t now_us, struct str in)
{
    const char *why = "";
    char text[LOAD_EXAMPLE_BYTES / 2];
    size_t extra;
    int status;

    if (c->state == LOAD_IDLE) {
        list_del(&c->link);
        load_conn_fail(c, now_us, LOAD_ERROR_HTTP, "bytes that nobody asked for");
        return;
    }
    if (c->first_us == 0) {
        c->first_us = now_us;
        c->state = c->state == LOAD_SENDING ? LOAD_SENDING : LOAD_HEAD;
    }
    status = load_answer_take(c, in, &extra, &why);
    if (status == 0) {
        finish(c, now_us, extra);
    } else if (status == SP_EAGAIN) {
        if (c->phase_us <= c->sent_us)
            load_conn_deadline(c, now_us); /* for the rest of the answer */
    } else if (status == SP_ENOMEM) {
        load_conn_fail(c, now_us, LOAD_ERROR_RESOURCES, "out of memory for the head of an answer");
    } else {
        snprintf(text, sizeof(text), "bad answer: %s", why);
        load_conn_fail(c, now_us, LOAD_ERROR_HTTP, text);
    }
}

/* --- moving bytes ------------------------------------------------------------------------------------ */

static void push(struct load_conn *c, uint64_t now_us)
{
    struct str bytes = c->request->bytes;

    while (c->sent_bytes < bytes.len) {
        struct iovec iov = {(char *)bytes.ptr + c->sent_bytes, bytes.len - c->sent_bytes};
        ptrdiff_t n = c->tls ? tls_conn_writev(c->tls, &iov, 1, false)
                             : io_sock_sendv(&c->sock, &iov, 1, false);

        if (n == SP_EAGAIN || n == SP_EWANTWRITE)
            return;
        if (n < 0) {
            load_conn_ended(c, now_us, n == SP_EEOF ? SP_ERESET : (int)n);
            return;
        }
        c->sent_bytes += (size_t)n;
        if (!c->tls && now_us >= c->thread->measure_us)
            c->thread->record.bytes_out += (size_t)n;
    }
    if (c->state == LOAD_SENDING)
        c->state = LOAD_HEAD;
}

void load_conn_send(struct load_conn *c, uint64_t now_us)
{
    struct load_thread *t = c->thread;

    if (!t->is_open_loop && !t->is_one_shot && !c->retried)
        c->base_us = now_us;
    c->sent_us = now_us;
    c->first_us = 0;
    c->sent_bytes = 0;
    c->state = LOAD_SENDING;
    if (!c->sent) {
        c->sent = true;
        if (c->measured)
            t->record.sent++;
    }
    load_answer_begin(c);
    load_conn_deadline(c, now_us);
    push(c, now_us);
}

static bool may_read(const struct load_conn *c)
{
    if (c->state < LOAD_IDLE || c->state > LOAD_BODY)
        return false;
    return c->sock.ready & IO_READ || (c->tls && tls_conn_pending(c->tls));
}

void load_conn_read(struct load_conn *c)
{
    struct load_thread *t = c->thread;

    for (unsigned i = 0; may_read(c); i++) {
        uint64_t now_us;
        ptrdiff_t n;

        if (i == READS_PER_TURN) {
            if (!list_is_linked(&c->unread))
                list_push_back(&t->unread, &c->unread);
            return;
        }
        n = c->tls ? tls_conn_read(c->tls, t->buffer, LOAD_READ_BYTES)
                   : io_sock_recv(&c->sock, t->buffer, LOAD_READ_BYTES);
        if (n == SP_EAGAIN || n == SP_EWANTREAD || n == SP_EWANTWRITE || n == SP_EWANTCRYPTO)
            return;
        now_us = clock_now_us();
        if (n <= 0) {
            load_conn_ended(c, now_us, (int)n);
            return;
        }
        if (!c->tls && now_us >= t->measure_us)
            load_record_bytes_in(&t->record, now_us, (size_t)n);
        take_bytes(c, now_us, str_make(t->buffer, (size_t)n));
    }
}

void load_conn_event(struct io_sock *sock, unsigned events)
{
    struct load_conn *c = LIST_ENTRY(sock, struct load_conn, sock);

    (void)events;
    if (c->state < LOAD_IDLE) {
        if (c->state == LOAD_CONNECTING || c->state == LOAD_HANDSHAKE || c->state == LOAD_TICKET)
            load_conn_opening(c);
        return;
    }
    load_conn_read(c);
    if (c->state == LOAD_SENDING && c->sock.ready & IO_WRITE)
        push(c, clock_now_us());
    if (c->tls && tls_conn_unsent(c->tls) && c->state >= LOAD_SENDING && c->state <= LOAD_BODY &&
        c->sock.ready & IO_WRITE && tls_conn_flush(c->tls) == SP_ERESET)
        load_conn_ended(c, clock_now_us(), SP_ERESET);
}
