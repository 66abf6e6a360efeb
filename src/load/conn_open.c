/* The life of a connection up to where a request may be sent, and its end. */
#include "load/engine.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>

#define PAUSE_MS_FIRST 10u
#define PAUSE_MS_MAX 1000u
/* A server that gives no session is not waited for longer. */
#define TICKET_WAIT_US 100000u

void load_conn_deadline(struct load_conn *c, uint64_t now_us)
{
    uint64_t timeout_us = c->thread->plan->timeout_us;

    c->phase_us = now_us;
    if (timeout_us)
        io_timer_set(c->thread->loop, &c->timer, now_us + timeout_us);
    else
        io_timer_cancel(&c->timer); /* a pause's */
}

void load_conn_settled(struct load_conn *c)
{
    if (c->is_fresh)
        c->thread->fresh--;
    c->is_fresh = false;
}

void load_conn_close(struct load_conn *c, bool reset)
{
    if (c->tls) {
        if (!reset && !c->sock.write_closed && tls_conn_handshake_done(c->tls))
            tls_conn_shutdown(c->tls);
        tls_conn_free(c->tls);
        c->tls = NULL;
    }
    if (io_sock_is_open(&c->sock))
        io_sock_close(&c->sock, reset);
}

void load_conn_release(struct load_conn *c)
{
    load_conn_close(c, true);
    io_timer_cancel(&c->timer);
    list_del(&c->link);
    list_del(&c->unread);
    tls_session_slot_free(c->slot);
    free(c->head);
}

void load_conn_drop(struct load_conn *c)
{
    if (c->request) {
        c->request = NULL;
        c->thread->outstanding--;
    }
    load_conn_close(c, true);
    io_timer_cancel(&c->timer);
    list_del(&c->link);
    c->state = LOAD_DONE;
}

/* --- connecting ---------------------------------------------------------------------------------- */

static enum load_error error_of(int error)
{
    switch (error) {
    case ECONNREFUSED:
    case ENOENT: /* of a Unix socket: nobody has ever listened */
    case EAGAIN: /* the same: its queue is full */
        return LOAD_ERROR_REFUSED;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
    case EADDRNOTAVAIL:
    case EADDRINUSE:
        return LOAD_ERROR_RESOURCES;
    case ETIMEDOUT:
        return LOAD_ERROR_TIMEOUT_CONNECT;
    case ECONNRESET:
    case EPIPE:
        return LOAD_ERROR_RESET;
    default:
        return LOAD_ERROR_UNREACHABLE;
    }
}

/* No hurry: it would fail again at once. */
void load_conn_pause(struct load_conn *c, uint64_t now_us)
{
    c->pause_ms = c->pause_ms ? c->pause_ms * 2 : PAUSE_MS_FIRST;
    if (c->pause_ms > PAUSE_MS_MAX)
        c->pause_ms = PAUSE_MS_MAX;
    if (c->state != LOAD_AGAIN)
        return;
    list_del(&c->link);
    c->state = LOAD_PAUSED;
    io_timer_set(c->thread->loop, &c->timer, now_us + c->pause_ms * 1000u);
}

static void connect_failed(struct load_conn *c, uint64_t now_us, int error)
{
    const char *text = strerrordesc_np(error);

    load_conn_fail(c, now_us, error_of(error), text ? text : "unknown error");
    load_conn_pause(c, now_us);
}

static bool choose_session(struct load_conn *c)
{
    struct load_thread *t = c->thread;

    if (t->plan->resume_ratio <= 0 || load_rng_unit(&t->rng) > t->plan->resume_ratio)
        return false;
    if (!c->slot)
        c->slot = tls_session_slot_new();
    return c->slot != NULL;
}

static void set_target(struct load_conn *c)
{
    const struct load_target *target = c->request ? c->request->target : c->target;

    if (target != c->target) {
        tls_session_slot_free(c->slot);
        c->slot = NULL;
    }
    c->target = target;
}

/* False: there is nothing to open it for. */
static bool has_purpose(struct load_conn *c, uint64_t now_us)
{
    struct load_thread *t = c->thread;

    if (c->request) {
        if (t->stopped && !c->retried) {
            load_conn_drop(c);
            return false;
        }
        return true;
    }
    if (!t->is_open_loop && load_thread_take(c, now_us))
        return true;
    if (!t->is_open_loop || t->stopped) {
        c->state = LOAD_DONE;
        return false;
    }
    if (t->is_one_shot) {
        c->state = LOAD_FREE;
        load_conn_settled(c);
        load_thread_wait(c);
        return false;
    }
    return true;
}

static void connected(struct load_conn *c, uint64_t now_us);

void load_conn_begin(struct load_conn *c, uint64_t now_us)
{
    struct load_thread *t = c->thread;
    int status;

    if (!has_purpose(c, now_us))
        return;
    set_target(c);
    c->begun_us = now_us;
    c->conn_measured = now_us >= t->measure_us;
    c->served = false;
    c->state = LOAD_CONNECTING;
    if (c->request && t->plan->handshake_only && !c->sent) {
        c->sent = true;
        c->sent_us = now_us;
        if (c->measured)
            t->record.sent++;
    }
    io_sock_init(&c->sock, t->loop, -1, load_conn_event);
    status = c->sock.transport->connect(&c->sock, &c->target->addr, NULL);
    if (status != 0) {
        connect_failed(c, now_us, c->sock.error);
        return;
    }
    load_conn_deadline(c, now_us);
    if (c->sock.connecting)
        return;
    if (io_sock_watch(&c->sock, IO_READ) != 0)
        connect_failed(c, now_us, errno);
    else
        connected(c, now_us);
}

/* --- TLS -------------------------------------------------------------------------------------------- */

static void begin_tls(struct load_conn *c, uint64_t now_us)
{
    struct load_thread *t = c->thread;
    const struct load_target *target = c->target;

    c->state = LOAD_HANDSHAKE;
    c->wants_session = choose_session(c);
    c->sock.transport = &t->counting;
    c->tls = tls_conn_new_client(t->tls, target->tls, &c->sock, target->sni, target->alpn,
                                 c->wants_session ? c->slot : NULL);
    if (!c->tls) {
        connect_failed(c, now_us, ENOMEM);
        return;
    }
    load_conn_deadline(c, now_us);
}

static void copy_fact(struct load_conn *c, enum tls_fact fact, char *out, size_t size)
{
    struct str text = STR_NULL;

    arena_reset(&c->thread->arena);
    if (tls_conn_fact(c->tls, fact, &c->thread->arena, &text) != 0)
        return;
    if (text.len >= size)
        text.len = size - 1;
    memcpy(out, text.ptr, text.len);
    out[text.len] = '\0';
}

static void note_tls(struct load_conn *c, uint64_t now_us)
{
    struct load_record *r = &c->thread->record;
    bool resumed = tls_conn_number(c->tls, TLS_NUMBER_IS_RESUMED) == 1;

    if (r->tls_us == 0) {
        r->tls_us = now_us;
        copy_fact(c, TLS_FACT_VERSION, r->tls_version, sizeof(r->tls_version));
        copy_fact(c, TLS_FACT_CIPHER, r->tls_cipher, sizeof(r->tls_cipher));
    }
    if (!c->conn_measured)
        return;
    *(resumed ? &r->handshakes_resumed : &r->handshakes_full) += 1;
    histogram_record(resumed ? &r->handshake_resumed : &r->handshake_full, now_us - c->phase_us);
}

static bool is_tls13(struct load_conn *c)
{
    char version[16] = "";

    copy_fact(c, TLS_FACT_VERSION, version, sizeof(version));
    return strcmp(version, "TLSv1.3") == 0;
}

/* What the library says, and why it does not believe the certificate if that is it. */
static void refusal_text(struct load_conn *c, char *out, size_t size)
{
    int64_t verified = tls_conn_number(c->tls, TLS_NUMBER_VERIFY_RESULT);
    const char *name = verified > 0 ? tls_verify_code_name((int)verified) : NULL;
    const char *text = tls_conn_error_text(c->tls);

    if (!text || !*text)
        text = "failed";
    if (name && str_find(str_of(text), STR("verif")) < strlen(text))
        snprintf(out, size, "TLS handshake: %s (%s)", text, name);
    else
        snprintf(out, size, "TLS handshake: %s", text);
}

static void ready(struct load_conn *c, uint64_t now_us);

static void handshake(struct load_conn *c)
{
    int status = tls_conn_handshake(c->tls);
    uint64_t now_us;

    if (status == SP_EWANTREAD || status == SP_EWANTWRITE || status == SP_EWANTCRYPTO) {
        /* Done, and only its last flight still waits for room: that is the server's delay too. */
        return;
    }
    now_us = clock_now_us();
    if (status == 0) {
        note_tls(c, now_us);
        ready(c, now_us);
    } else if (status == SP_EPROTO) {
        char text[LOAD_EXAMPLE_BYTES / 2];

        refusal_text(c, text, sizeof(text));
        load_conn_fail(c, now_us, LOAD_ERROR_TLS, text);
    } else {
        load_conn_fail(c, now_us, status == SP_EEOF ? LOAD_ERROR_CLOSED : LOAD_ERROR_RESET,
                       "during the TLS handshake");
    }
}

/* --- what comes next ------------------------------------------------------------------------------------ */

/* A handshake is all that was asked for. */
static void handshake_answered(struct load_conn *c, uint64_t now_us)
{
    struct load_record *r = &c->thread->record;
    struct load_times times = {.base_us = c->base_us, .sent_us = c->sent_us, .end_us = now_us};

    c->pause_ms = 0;
    load_conn_settled(c);
    if (c->measured)
        load_record_answer(r, &times);
    c->request = NULL;
    c->sent = false;
    c->thread->outstanding--;
    /* TLS 1.3 sends the session behind the handshake. */
    if (c->tls && c->wants_session && is_tls13(c)) {
        c->state = LOAD_TICKET;
        io_timer_set(c->thread->loop, &c->timer, now_us + TICKET_WAIT_US);
        return;
    }
    load_conn_close(c, false);
    load_thread_again(c);
}

static void ready(struct load_conn *c, uint64_t now_us)
{
    if (c->thread->plan->handshake_only && c->request) {
        handshake_answered(c, now_us);
    } else if (c->request) {
        if (c->thread->stopped && !c->retried)
            load_conn_drop(c);
        else
            load_conn_send(c, now_us);
    } else {
        c->state = LOAD_IDLE;
        load_conn_settled(c);
        load_thread_wait(c);
    }
}

static void connected(struct load_conn *c, uint64_t now_us)
{
    struct load_record *r = &c->thread->record;

    if (c->conn_measured) {
        r->connects++;
        histogram_record(&r->connect, now_us - c->begun_us);
    }
    if (!c->target->is_tls) {
        ready(c, now_us);
        return;
    }
    begin_tls(c, now_us);
    if (c->state == LOAD_HANDSHAKE)
        handshake(c);
}

/* The session comes in records that hold no data. */
static void take_ticket(struct load_conn *c)
{
    uint64_t before = c->thread->tls_bytes_in;
    ptrdiff_t n = tls_conn_read(c->tls, c->thread->buffer, LOAD_READ_BYTES);

    if (n == SP_EWANTREAD && c->thread->tls_bytes_in == before)
        return;
    load_conn_close(c, false);
    load_thread_again(c);
}

void load_conn_opening(struct load_conn *c)
{
    uint64_t now_us;
    int status;

    if (c->state == LOAD_HANDSHAKE) {
        handshake(c);
        return;
    }
    if (c->state == LOAD_TICKET) {
        take_ticket(c);
        return;
    }
    status = c->sock.transport->connect_result(&c->sock);
    if (status == SP_EAGAIN)
        return;
    now_us = clock_now_us();
    if (status == 0)
        connected(c, now_us);
    else
        connect_failed(c, now_us, c->sock.error);
}

/* --- time ------------------------------------------------------------------------------------------------ */

void load_conn_timer(struct io_timer *timer)
{
    struct load_conn *c = LIST_ENTRY(timer, struct load_conn, timer);
    uint64_t now_us = io_loop_refresh_now(c->thread->loop);

    switch ((enum load_state)c->state) {
    case LOAD_PAUSED:
        load_thread_again(c);
        break;
    case LOAD_CONNECTING:
        load_conn_fail(c, now_us, LOAD_ERROR_TIMEOUT_CONNECT, "no answer to the connection");
        load_conn_pause(c, now_us);
        break;
    case LOAD_HANDSHAKE:
        load_conn_fail(c, now_us, LOAD_ERROR_TIMEOUT_HANDSHAKE,
                       "the TLS handshake was not finished");
        break;
    case LOAD_TICKET:
        load_conn_close(c, false);
        load_thread_again(c);
        break;
    case LOAD_SENDING:
    case LOAD_HEAD:
    case LOAD_BODY:
        if (c->first_us)
            load_conn_fail(c, now_us, LOAD_ERROR_TIMEOUT_BODY, "the answer was not finished");
        else
            load_conn_fail(c, now_us, LOAD_ERROR_TIMEOUT_FIRST_BYTE, "no answer came");
        break;
    default:
        break; /* idle, or nothing to wait for */
    }
}
