#include "tls/conn.h"

#include "base/status.h"
#include "tls/context.h"
#include "tls/crypto.h"
#include "tls/errors.h"
#include "tls/session.h"
#include "tls/worker.h"

#include <openssl/err.h>

#define FEED_MAX_BYTES 65536
#define UNSENT_MAX_BYTES 65536 /* beyond, writev takes nothing */

static struct tls_conn *conn_new(struct tls_worker *w, SSL_CTX *ctx, struct io_sock *sock)
{
    struct tls_conn *c = calloc(1, sizeof(*c));
    BIO *bio;

    if (!c)
        return NULL;
    c->worker = w;
    c->sock = sock;
    c->ssl = SSL_new(ctx);
    bio = c->ssl ? tls_bio_new(c) : NULL;
    if (!bio) {
        SSL_free(c->ssl);
        free(c);
        return NULL;
    }
    SSL_set_bio(c->ssl, bio, bio);
    SSL_set_app_data(c->ssl, c);
    list_init(&c->crypto_link);
    if (w->crypto)
        tls_crypto_attach(c);
    return c;
}

struct tls_conn *tls_conn_new_server(struct tls_worker *w, struct tls_server_ctx *ctx,
                                     struct io_sock *sock)
{
    struct tls_server_view *view = tls_worker_server(w, ctx);
    struct tls_conn *c = view ? conn_new(w, view->ssl[view->first], sock) : NULL;

    if (!c)
        return NULL;
    c->server_ctx = ctx;
    c->view = view;
    c->profile = &ctx->profiles[view->first];
    c->entry = view->installed;
    SSL_set_accept_state(c->ssl);
    return c;
}

/* A comma-separated list in place of the context's. */
static int set_alpn(struct tls_conn *c, const char *list)
{
    uint8_t wire[256];
    struct str rest = str_of(list);
    size_t at = 0;

    if (!list)
        return 0;
    while (rest.len) {
        size_t len = str_chr(rest, ',');

        if (len == 0 || at + 1 + len > sizeof(wire))
            return SP_EINVAL;
        wire[at++] = (uint8_t)len;
        memcpy(wire + at, rest.ptr, len);
        at += len;
        rest = str_from(rest, len + 1);
    }
    /* Zero is success here. */
    return SSL_set_alpn_protos(c->ssl, wire, (unsigned)at) == 0 ? 0 : SP_ENOMEM;
}

struct tls_conn *tls_conn_new_client(struct tls_worker *w, struct tls_client_ctx *ctx,
                                     struct io_sock *sock, const char *sni, const char *alpn,
                                     struct tls_session_slot *session_slot)
{
    struct tls_client_view *view = tls_worker_client(w, ctx);
    struct tls_conn *c = view ? conn_new(w, view->ssl, sock) : NULL;

    if (!c)
        return NULL;
    c->client_ctx = ctx;
    c->profile = &ctx->profile;
    c->slot = ctx->reuse ? session_slot : NULL;
    SSL_set_connect_state(c->ssl);
    if ((sni && *sni && SSL_set_tlsext_host_name(c->ssl, sni) != 1) || set_alpn(c, alpn) != 0) {
        tls_conn_free(c);
        return NULL;
    }
    tls_session_offer(c, sni && *sni ? sni : NULL);
    return c;
}

void tls_conn_free(struct tls_conn *c)
{
    if (!c)
        return;
    if (c->paused && !tls_crypto_abandon(c))
        return; /* the worker frees it when the operation is back */
    tls_conn_release(c);
}

void tls_conn_release(struct tls_conn *c)
{
    if (list_is_linked(&c->crypto_link))
        list_del(&c->crypto_link);
    /*
     * Many peers leave without a word; that is no reason to forget the session, as the library
     * would.
     */
    if (c->done && c->status != SP_EPROTO)
        SSL_set_shutdown(c->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(c->ssl);
    tls_out_release(&c->out, &c->worker->pool);
    free(c->fed);
    free(c->refused_name);
    free(c);
}

const char *tls_conn_expected_name(const struct tls_conn *c)
{
    const char *sni = SSL_get_servername(c->ssl, TLSEXT_NAMETYPE_host_name);

    return sni ? sni : c->client_ctx->verify_host;
}

int tls_conn_feed(struct tls_conn *c, struct str bytes)
{
    size_t have = c->fed ? c->fed_len - c->fed_at : 0;
    char *fed;

    if (bytes.len == 0)
        return 0;
    if (have + bytes.len > FEED_MAX_BYTES)
        return SP_ETOOBIG;
    fed = malloc(have + bytes.len);
    if (!fed)
        return SP_ENOMEM;
    if (have)
        memcpy(fed, c->fed + c->fed_at, have);
    memcpy(fed + have, bytes.ptr, bytes.len);
    free(c->fed);
    c->fed = fed;
    c->fed_at = 0;
    c->fed_len = (uint32_t)(have + bytes.len);
    c->starved = false;
    return 0;
}

/*
 * Why the library stopped, as one of ours. The error queue, empty before the call, holds what it
 * said.
 */
static int reason(struct tls_conn *c)
{
    if (c->rx_reset)
        return SP_ERESET;
    /* It may claim to want more even after a fatal alert. */
    if (ERR_peek_error() != 0)
        return SP_EPROTO;
    switch (SSL_want(c->ssl)) {
    case SSL_READING:
        return c->rx_eof ? SP_EEOF : SP_EWANTREAD;
    case SSL_WRITING:
        return SP_ERESET; /* the output buffer takes everything unless memory is out */
    case SSL_ASYNC_PAUSED:
    case SSL_ASYNC_NO_JOBS:
    case SSL_X509_LOOKUP:
    case SSL_CLIENT_HELLO_CB:
        return SP_EWANTCRYPTO;
    default:
        return SSL_get_shutdown(c->ssl) & SSL_RECEIVED_SHUTDOWN ? SP_EEOF : SP_EPROTO;
    }
}

/* The end of a connection: keeps the status and the library's words. */
static int fail(struct tls_conn *c, int status)
{
    c->status = (int8_t)status;
    if (status == SP_EPROTO) {
        c->error = ERR_peek_last_error();
        if (!c->error_text)
            c->error_text = tls_error_reason(c->error);
        if (c->failure == TLS_FAILURE_NONE)
            c->failure = TLS_FAILURE_PROTOCOL;
    } else if (status == SP_EEOF) {
        c->eof_clean = !c->rx_eof;
        if (!c->error_text)
            c->error_text =
                c->done ? "connection closed" : "connection closed during the handshake";
    } else if (!c->error_text) {
        c->error_text = "connection reset";
    }
    ERR_clear_error();
    return status;
}

int tls_conn_flush(struct tls_conn *c)
{
    if (c->tx_reset)
        return SP_ERESET;
    if (c->out.bytes == 0)
        return 0;
    if (tls_out_send(&c->out, &c->worker->pool, c->sock, NULL, 0, false) < 0) {
        c->tx_reset = true;
        return SP_ERESET;
    }
    return c->out.bytes ? SP_EWANTWRITE : 0;
}

size_t tls_conn_unsent(const struct tls_conn *c)
{
    return c->out.bytes;
}

static int finish(struct tls_conn *c)
{
    int status;

    c->done = true;
    if (c->worker->crypto)
        tls_crypto_detach(c);
    if (c->offered_session && SSL_session_reused(c->ssl))
        tls_session_refresh(c);
    tls_worker_count(SSL_session_reused(c->ssl) ? &c->worker->resumed : &c->worker->full);
    status = tls_conn_flush(c);
    return status == SP_ERESET ? fail(c, status) : status;
}

static int fail_handshake(struct tls_conn *c, int status)
{
    fail(c, status);
    c->told = true;
    tls_worker_count(&c->worker->failed);
    if (c->offered_session)
        tls_session_drop(c->slot);
    if (status == SP_EPROTO)
        (void)tls_out_send(&c->out, &c->worker->pool, c->sock, NULL, 0, false);
    return status;
}

int tls_conn_handshake(struct tls_conn *c)
{
    bool reset_before;
    int status, flushed;

    if (c->status)
        return c->status;
    if (c->done)
        return tls_conn_flush(c);
    if (c->paused && !tls_crypto_may_resume(c))
        return c->sock->ready & (IO_HUP | IO_ERROR) ? fail_handshake(c, SP_ERESET) : SP_EWANTCRYPTO;
    ERR_clear_error();
    do {
        if (SSL_do_handshake(c->ssl) == 1)
            return finish(c);
        status = reason(c);
        c->paused = status == SP_EWANTCRYPTO;
        if (status != SP_EWANTREAD)
            break;
        c->starved = true;
        reset_before = c->tx_reset;
        flushed = tls_conn_flush(c);
        if (flushed != SP_ERESET)
            return flushed ? flushed : status;
        status = SP_ERESET;
        /* Once more: the peer's reason may have come with its reset. */
    } while (!reset_before);
    return status == SP_EWANTCRYPTO ? status : fail_handshake(c, status);
}

bool tls_conn_handshake_done(const struct tls_conn *c)
{
    return c->done;
}

bool tls_conn_pending(const struct tls_conn *c)
{
    /* Data came together with the end: the reader, who has got the former, must come back for it. */
    if (c->status)
        return !c->told;
    return SSL_pending(c->ssl) > 0 || (!c->starved && (c->fed || SSL_has_pending(c->ssl)));
}

ptrdiff_t tls_conn_read(struct tls_conn *c, void *data, size_t len)
{
    const struct io_sock *sock = c->sock;
    size_t got = 0;
    int status;

    if (c->status) {
        c->told = true;
        return c->status;
    }
    if (!(sock->ready & IO_READ) && !sock->read_closed && !sock->error && !tls_conn_pending(c))
        return SP_EWANTREAD;
    ERR_clear_error();
    while (got < len) {
        size_t n;

        if (SSL_read_ex(c->ssl, (char *)data + got, len - got, &n) == 1) {
            got += n;
            if (!SSL_has_pending(c->ssl) && !(sock->ready & IO_READ))
                break;
            continue;
        }
        status = reason(c);
        if (status == SP_EWANTREAD)
            c->starved = true;
        else if (status != SP_EWANTCRYPTO) {
            fail(c, status);
            c->told = got == 0;
        }
        /* Answers to the peer's messages, alerts. */
        if (c->out.bytes)
            (void)tls_out_send(&c->out, &c->worker->pool, c->sock, NULL, 0, false);
        return got ? (ptrdiff_t)got : status;
    }
    return (ptrdiff_t)got;
}

/* A place in the caller's data. */
struct cursor {
    const struct iovec *iov;
    int count;
    size_t at; /* in iov[0] */
};

static size_t cursor_left(const struct cursor *in)
{
    size_t left = 0;

    for (int i = 0; i < in->count; i++)
        left += in->iov[i].iov_len;
    return left - in->at;
}

static void cursor_skip(struct cursor *in, size_t n)
{
    in->at += n;
    while (in->count && in->at >= in->iov[0].iov_len) {
        in->at -= in->iov[0].iov_len;
        in->iov++;
        in->count--;
    }
}

/* The next record's plaintext: in place when one piece has it all, otherwise gathered. */
static const char *next_record(struct tls_conn *c, struct cursor *in, size_t len)
{
    char *gather = c->worker->gather;
    size_t have = 0;

    if (in->iov[0].iov_len - in->at >= len) {
        const char *data = (const char *)in->iov[0].iov_base + in->at;

        cursor_skip(in, len);
        return data;
    }
    while (have < len) {
        size_t take = in->iov[0].iov_len - in->at;

        if (take > len - have)
            take = len - have;
        memcpy(gather + have, (const char *)in->iov[0].iov_base + in->at, take);
        have += take;
        cursor_skip(in, take);
    }
    return gather;
}

ptrdiff_t tls_conn_writev(struct tls_conn *c, const struct iovec *iov, int count, bool more)
{
    struct cursor in = {iov, count, 0};
    size_t left, total = 0;
    int status;

    if (!c->done || (c->status && c->status != SP_EEOF))
        return c->status ? c->status : SP_EINVAL;
    if (c->tx_reset)
        return SP_ERESET;
    if (c->out.bytes >= UNSENT_MAX_BYTES) {
        status = tls_conn_flush(c);
        if (status == SP_ERESET)
            return status;
        if (c->out.bytes >= UNSENT_MAX_BYTES)
            return SP_EWANTWRITE;
    }
    cursor_skip(&in, 0);
    left = cursor_left(&in);
    if (left > UNSENT_MAX_BYTES - c->out.bytes)
        left = UNSENT_MAX_BYTES - c->out.bytes;
    while (left) {
        size_t len = left < TLS_RECORD_BYTES ? left : TLS_RECORD_BYTES, n;

        c->direct = left == len && !more;
        if (SSL_write_ex(c->ssl, next_record(c, &in, len), len, &n) != 1) {
            c->direct = false;
            status = reason(c);
            return fail(c, status == SP_EEOF || status == SP_EWANTREAD ? SP_EPROTO : status);
        }
        left -= len;
        total += len;
    }
    c->direct = false;
    if (c->tx_reset)
        return SP_ERESET;
    if (total == 0 && !more)
        (void)tls_conn_flush(c);
    return (ptrdiff_t)total;
}

void tls_conn_shutdown(struct tls_conn *c)
{
    if (c->done && !c->shut && (c->status == 0 || c->status == SP_EEOF) && !c->rx_reset && !c->tx_reset) {
        c->shut = true;
        (void)SSL_shutdown(c->ssl);
        ERR_clear_error();
    }
    if (!c->rx_reset && !c->tx_reset)
        (void)tls_out_send(&c->out, &c->worker->pool, c->sock, NULL, 0, false);
}

const char *tls_conn_error_text(const struct tls_conn *c)
{
    if (c->error_text)
        return c->error_text;
    return c->tx_reset ? "connection reset" : "";
}

enum tls_failure tls_conn_failure(const struct tls_conn *c)
{
    return (enum tls_failure)c->failure;
}

bool tls_conn_eof_clean(const struct tls_conn *c)
{
    return c->eof_clean;
}
