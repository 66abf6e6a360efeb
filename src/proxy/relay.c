/*
 * Moving bytes: both directions of a transaction, from what has been received to
 * what has been sent, with no copy where the message goes through as it is.
 */
#include "proxy/compress.h"
#include "proxy/session.h"

/* A transaction that always has work yields after so many rounds, so that others are served. */
#define RELAY_ROUNDS 64

#define SMALL_MESSAGE_BYTES 8192

void flow_init(struct flow *f)
{
    memset(f, 0, sizeof(*f));
}

void flow_release(struct worker *w, struct flow *f)
{
    buf_pool_put(f->big ? &w->big_bufs : &w->bufs, &f->store);
    buf_pool_put(&w->bufs, &f->out);
    flow_release_pipe(w, f);
    memset(&f->win, 0, sizeof(f->win));
    f->big = false;
    f->ready = 0;
}

int flow_attach(struct worker *w, struct flow *f, bool big)
{
    if (f->store.mem)
        return 0;
    f->big = big && buf_pool_get(&w->big_bufs, &f->store) == 0;
    if (!f->big && buf_pool_get(&w->bufs, &f->store) != 0)
        return SP_ENOMEM;
    f->win = f->store;
    return 0;
}

void flow_pin_head(struct flow *f, size_t head_bytes)
{
    f->win.mem += f->win.head + head_bytes;
    f->win.size -= f->win.head + (uint32_t)head_bytes;
    f->win.tail -= f->win.head + (uint32_t)head_bytes;
    f->win.head = 0;
}

ptrdiff_t flow_fill(struct flow *f, struct conn *from)
{
    ptrdiff_t n;

    if (buf_room(&f->win) == 0) {
        if (f->win.head == 0)
            return SP_ETOOBIG;
        buf_compact(&f->win);
    }
    if (!conn_may_read(from))
        return from->sock.read_closed ? (from->sock.error ? SP_ERESET : SP_EEOF) : SP_EAGAIN;
    n = conn_recv(from, buf_end(&f->win), buf_room(&f->win));
    if (n > 0) {
        buf_commit(&f->win, (size_t)n);
        f->received += (uint64_t)n;
        f->full_reads = buf_room(&f->win) ? 0 : (uint8_t)(f->full_reads + (f->full_reads < 255));
    }
    return n;
}

/* Copying a small body behind its head costs less than a second slice costs the kernel. */
static ptrdiff_t flow_send_small(const struct iovec *iov, struct conn *to)
{
    char message[SMALL_MESSAGE_BYTES];
    struct iovec one = {message, iov[0].iov_len + iov[1].iov_len};

    memcpy(message, iov[0].iov_base, iov[0].iov_len);
    memcpy(message + iov[0].iov_len, iov[1].iov_base, iov[1].iov_len);
    return conn_sendv(to, &one, 1, false);
}

/* Sends the head and the data behind it in one call. Bytes sent (> 0), or the code of conn_sendv. */
static ptrdiff_t flow_send(struct flow *f, struct conn *to)
{
    struct buf *data = f->mode == FLOW_RAW ? &f->win : &f->out;
    size_t data_len = f->mode == FLOW_RAW ? f->ready : buf_len(&f->out);
    struct iovec iov[2];
    int count = 0;
    ptrdiff_t n;
    size_t from_head;

    if (f->piped)
        return flow_splice_out(f, to);
    if (f->head.len)
        iov[count++] = (struct iovec){(void *)(uintptr_t)f->head.ptr, f->head.len};
    if (data_len)
        iov[count++] = (struct iovec){buf_data(data), data_len};
    n = count == 2 && f->head.len + data_len <= SMALL_MESSAGE_BYTES ? flow_send_small(iov, to)
                                                                     : conn_sendv(to, iov, count, false);
    if (n <= 0)
        return n;
    from_head = (size_t)n < f->head.len ? (size_t)n : f->head.len;
    f->head = str_from(f->head, from_head);
    if ((size_t)n > from_head) {
        buf_consume(data, (size_t)n - from_head);
        if (f->mode == FLOW_RAW)
            f->ready -= (size_t)n - from_head;
    }
    f->sent += (uint64_t)n;
    return n;
}

ptrdiff_t flow_walk(struct flow *f)
{
    struct str fresh = str_from(buf_str(&f->win), f->ready);
    ptrdiff_t n = fresh.len ? h1_body_walk(&f->body, fresh) : 0;

    if (n < 0)
        return n;
    f->ready += (size_t)n;
    if (h1_body_is_done(&f->body))
        f->complete = true;
    return n;
}

/* Decodes content and passes it on unchunked or compressed, into f->out. */
static ptrdiff_t flow_transform(struct flow *f, struct compressor *compressor)
{
    ptrdiff_t done = 0;

    while (buf_len(&f->win) && !h1_body_is_done(&f->body)) {
        struct h1_body saved = f->body;
        struct str in = buf_str(&f->win), payload;
        ptrdiff_t n, taken;

        if (buf_room(&f->out) < 64)
            break;
        if (!compressor && in.len > buf_room(&f->out))
            in.len = buf_room(&f->out);
        n = h1_body_next(&f->body, in, &payload);
        if (n <= 0)
            return n < 0 ? n : done;
        if (payload.len && compressor) {
            taken = compress_feed(compressor, payload, &f->out);
            if (taken < 0)
                return SP_EPROTO;
            if ((size_t)taken < payload.len) { /* no room: decode that part again later */
                f->body = saved;
                if (taken == 0)
                    break;
                n = h1_body_next(&f->body, str_make(in.ptr, (size_t)(payload.ptr - in.ptr) + (size_t)taken), &payload);
                if (n <= 0)
                    return SP_EPROTO;
            }
        } else if (payload.len) {
            buf_put(&f->out, payload);
        }
        buf_consume(&f->win, (size_t)n);
        done += n;
    }
    if (h1_body_is_done(&f->body))
        f->complete = true;
    return done;
}

/* --- client to server ---------------------------------------------------------- */

/* The server takes no more of the request; a response may be there all the same. */
static void relay_stop_upload(struct session *s)
{
    s->req.delivered = true;
    s->req.head = STR_NULL;
    s->req.ready = 0;
    s->txn->keep_client = s->txn->keep_server = false;
}

static enum step relay_client_failed(struct session *s, char stage)
{
    struct proxy_counters *fe = session_fe(s);

    fe->client_aborts++;
    if (s->txn->backend)
        session_be(s)->client_aborts++;
    session_fail(s, 'C', stage);
    session_destroy(s, s->client_gone);
    return STEP_WAIT;
}

/* The request's body breaks its own framing. */
static enum step relay_bad_request(struct session *s)
{
    session_fe(s)->request_errors++;
    session_fe(s)->smuggling_refused++;
    session_log_refusal(s, false, (enum h1_error)s->req.body.error);
    session_fail(s, 'P', 'D');
    if (s->res.sent || s->res.head_done) {
        session_destroy(s, false);
        return STEP_WAIT;
    }
    return session_reply_error(s, 400);
}

/* Takes the client's next bytes. STEP_AGAIN: something was done. */
static enum step relay_read_client(struct session *s)
{
    struct flow *f = &s->req;
    ptrdiff_t n;

    if (f->eof)
        return STEP_WAIT;
    if (flow_attach(s->worker, f, false) != 0) {
        session_destroy(s, true);
        return STEP_WAIT;
    }
    n = flow_can_splice(f, &s->client, &s->server->conn, s->worker) ? flow_splice_in(s->worker, f, &s->client)
                                                                    : flow_fill(f, &s->client);
    if (n > 0) {
        s->client_activity_us = session_now(s);
        return STEP_AGAIN;
    }
    if (n == SP_EAGAIN || n == SP_ETOOBIG)
        return session_wait_client(s);
    f->eof = true;
    if (n == SP_EEOF && f->body.framing == HTTP_FRAMING_CLOSE) {
        f->complete = true;
        return STEP_AGAIN;
    }
    return relay_client_failed(s, s->res.head_done ? 'D' : 'H');
}

/* Everything that the client sends has gone to the server. */
static enum step relay_upload_done(struct session *s)
{
    struct flow *f = &s->req;

    if (conn_flush(&s->server->conn) == SP_EAGAIN)
        return STEP_WAIT;
    f->delivered = true;
    if (f->body.framing == HTTP_FRAMING_CLOSE)
        conn_shutdown(&s->server->conn);
    return STEP_AGAIN;
}

static enum step relay_upload(struct session *s)
{
    struct flow *f = &s->req;
    ptrdiff_t n;

    if (f->delivered)
        return STEP_WAIT;
    if (!f->complete) {
        n = flow_walk(f);
        if (n < 0)
            return relay_bad_request(s);
    }
    if (flow_pending(f)) {
        n = flow_send(f, &s->server->conn);
        if (n == SP_EAGAIN)
            return STEP_WAIT;
        if (n < 0) {
            relay_stop_upload(s);
            return STEP_AGAIN;
        }
        s->server_activity_us = session_now(s);
        if (f->sent > s->txn->request_head.len)
            s->txn->replayable = false; /* a part of the body is gone */
        return STEP_AGAIN;
    }
    if (f->complete)
        return relay_upload_done(s);
    return relay_read_client(s);
}

/* --- server to client ------------------------------------------------------------- */

/* The server's stream ended or broke before the response was complete. */
static enum step relay_server_failed(struct session *s, ptrdiff_t why)
{
    struct txn *t = s->txn;

    if (!s->res.head_done && buf_len(&s->res.win) == 0 && t->reused && t->replayable)
        return session_server_failed(s, 'S', 'H', 502);
    session_srv(s)->response_errors++;
    session_be(s)->response_errors++;
    if (!s->res.head_done)
        return session_server_failed(s, why == SP_EPROTO ? 'P' : 'S', 'H', 502);
    if (why == SP_EPROTO && s->res.body.error)
        session_log_refusal(s, true, (enum h1_error)s->res.body.error);
    session_be(s)->server_aborts++;
    session_fail(s, 'S', 'D');
    session_destroy(s, false);
    return STEP_WAIT;
}

static enum step relay_read_server(struct session *s)
{
    struct flow *f = &s->res;
    ptrdiff_t n;

    if (f->eof || !(conn_may_read(&s->server->conn) || s->server->conn.sock.read_closed))
        return STEP_WAIT;
    if (flow_attach(s->worker, f, true) != 0)
        return session_server_failed(s, 'R', 'H', 500);
    n = flow_can_splice(f, &s->server->conn, &s->client, s->worker) ? flow_splice_in(s->worker, f, &s->server->conn)
                                                                    : flow_fill(f, &s->server->conn);
    if (n > 0) {
        s->server_activity_us = session_now(s);
        if (!s->txn->response_us && !s->http)
            s->txn->response_us = session_now(s);
        return STEP_AGAIN;
    }
    if (n == SP_EAGAIN)
        return STEP_WAIT;
    if (n == SP_ETOOBIG) /* full: room comes when the client reads */
        return f->head_done ? STEP_WAIT : relay_server_failed(s, SP_EPROTO);
    f->eof = true;
    if (f->head_done && f->body.framing == HTTP_FRAMING_CLOSE) {
        f->complete = true;
        return STEP_AGAIN;
    }
    return relay_server_failed(s, n);
}

static enum step relay_download_done(struct session *s)
{
    struct flow *f = &s->res;
    struct txn *t = s->txn;

    if (t->compressor) {
        if (!f->out.mem && buf_pool_get(&s->worker->bufs, &f->out) != 0)
            return session_server_failed(s, 'R', 'D', 500);
        if (compress_finish(t->compressor, &f->out) == 0) {
            compress_free(t->compressor);
            t->compressor = NULL;
        }
        if (buf_len(&f->out))
            return STEP_AGAIN;
    }
    if (conn_flush(&s->client) == SP_EAGAIN)
        return STEP_WAIT;
    f->delivered = true;
    if (f->body.framing == HTTP_FRAMING_CLOSE && (t->tunnel || !s->http))
        conn_shutdown(&s->client);
    return STEP_AGAIN;
}

static ptrdiff_t relay_take_body(struct session *s)
{
    struct flow *f = &s->res;
    ptrdiff_t n;

    if (f->mode == FLOW_RAW)
        return flow_walk(f);
    if (buf_len(&f->win) == 0)
        return 0;
    if (!f->out.mem && buf_pool_get(&s->worker->bufs, &f->out) != 0)
        return SP_ENOMEM;
    n = flow_transform(f, s->txn->compressor);
    /* Nothing more at hand: let the client see what the compressor still holds. */
    if (n > 0 && s->txn->compressor && !f->complete && buf_len(&f->win) == 0 && !conn_may_read(&s->server->conn))
        compress_flush(s->txn->compressor, &f->out);
    return n;
}

static enum step relay_download(struct session *s)
{
    struct flow *f = &s->res;
    ptrdiff_t n;

    if (f->delivered)
        return STEP_WAIT;
    if (!f->head_done && buf_len(&f->win) && !f->head.len) {
        enum step step = session_response_head(s);

        if (step == STEP_AGAIN || s->state != SESSION_RELAY)
            return step;
    }
    if (f->head_done && !f->complete) {
        n = relay_take_body(s);
        if (n < 0)
            return relay_server_failed(s, n);
    }
    if (flow_pending(f)) {
        n = flow_send(f, &s->client);
        if (n == SP_EAGAIN)
            return STEP_WAIT;
        if (n < 0)
            return relay_client_failed(s, 'D');
        s->client_activity_us = session_now(s);
        if (f->head_done)
            s->txn->response_started = true;
        else
            s->txn->replayable = false; /* an interim response: a final one of ours may still follow */
        return STEP_AGAIN;
    }
    if (f->complete)
        return relay_download_done(s);
    return relay_read_server(s);
}

/* --- both ---------------------------------------------------------------------------- */

/* The client vanished while nothing is read from it; with abortonclose its end of stream counts as that. */
static bool relay_client_vanished(struct session *s)
{
    if (s->http && s->txn->backend->cfg->abortonclose && !s->txn->tunnel && s->req.complete) {
        if (conn_watch(&s->client) != 0)
            return true;
        return !s->res.delivered && (s->client_gone || (s->client.sock.ready & IO_HUP));
    }
    return s->client_gone && !s->res.delivered;
}

/* Answered before the request was complete: it is still forwarded while the server keeps its side open. */
static bool relay_upload_is_moot(const struct session *s)
{
    const struct io_sock *server = &s->server->conn.sock;

    return s->http && !s->txn->tunnel && (server->read_closed || (server->ready & IO_HUP) || s->worker->draining);
}

enum step session_step_relay(struct session *s)
{
    enum step up = STEP_AGAIN, down = STEP_AGAIN;

    if (relay_client_vanished(s))
        return relay_client_failed(s, s->res.head_done ? 'D' : 'H');
    for (unsigned round = 0; round < RELAY_ROUNDS; round++) {
        up = relay_upload(s);
        if (s->state != SESSION_RELAY)
            return s->state == SESSION_DEAD ? STEP_WAIT : STEP_AGAIN;
        down = relay_download(s);
        if (s->state != SESSION_RELAY)
            return s->state == SESSION_DEAD ? STEP_WAIT : STEP_AGAIN;
        if (s->res.delivered && !s->req.delivered && s->req.complete && flow_pending(&s->req) == 0)
            relay_upload_done(s); /* the last bytes went in this very round */
        if (s->res.delivered && (s->req.delivered || relay_upload_is_moot(s)))
            return session_finish(s);
        if (up == STEP_WAIT && down == STEP_WAIT)
            return STEP_WAIT;
    }
    worker_run_later(s->worker, s);
    return STEP_WAIT;
}
