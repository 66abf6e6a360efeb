/*
 * The library reads and writes through this BIO, which makes as few system calls as there are
 * flights: a read takes whatever the socket has, straight into the library's record buffer; a write
 * only gathers.
 */
#include "base/status.h"
#include "tls/conn.h"
#include "tls/worker.h"

#include <openssl/bio.h>
#include <pthread.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static BIO_METHOD *method; /* made once, then constant */

static size_t take_fed(struct tls_conn *c, char *out, size_t len)
{
    size_t have = c->fed_len - c->fed_at;

    if (len > have)
        len = have;
    memcpy(out, c->fed + c->fed_at, len);
    c->fed_at += (uint32_t)len;
    if (c->fed_at == c->fed_len) {
        free(c->fed);
        c->fed = NULL;
    }
    return len;
}

static int on_read(BIO *bio, char *out, size_t len, size_t *got)
{
    struct tls_conn *c = BIO_get_data(bio);
    struct io_sock *sock = c->sock;
    ptrdiff_t n;

    BIO_clear_retry_flags(bio);
    c->starved = false;
    if (c->fed) {
        *got = take_fed(c, out, len);
        return 1;
    }
    if (c->rx_eof || c->rx_reset || !sock)
        return 0;
    if (!(sock->ready & IO_READ) && !sock->read_closed && !sock->error) {
        BIO_set_retry_read(bio);
        return 0;
    }
    n = io_sock_recv(sock, out, len);
    if (n > 0) {
        *got = (size_t)n;
        return 1;
    }
    if (n == SP_EAGAIN)
        BIO_set_retry_read(bio);
    else if (n == SP_EEOF)
        c->rx_eof = true;
    else
        c->rx_reset = true;
    return 0;
}

static int on_write(BIO *bio, const char *data, size_t len, size_t *written)
{
    struct tls_conn *c = BIO_get_data(bio);
    size_t at = 0;

    BIO_clear_retry_flags(bio);
    if (!c->sock) {
        *written = len; /* the alert of a handshake that nobody waits for */
        return 1;
    }
    if (c->tx_reset) {
        *written = len; /* nobody takes it; an error here would end reading too */
        return 1;
    }
    if (c->direct) {
        ptrdiff_t n = tls_out_send(&c->out, &c->worker->pool, c->sock, data, len, c->batch_more);

        if (n < 0) {
            c->tx_reset = true;
            *written = len;
            return 1;
        }
        at = (size_t)n;
    }
    if (tls_out_append(&c->out, &c->worker->pool, data + at, len - at) != 0) {
        c->rx_reset = true;
        return 0;
    }
    *written = len;
    return 1;
}

static long on_ctrl(BIO *bio, int command, long number, void *pointer)
{
    const struct tls_conn *c = BIO_get_data(bio);

    switch (command) {
    case BIO_CTRL_FLUSH:
        return 1; /* the connection flushes when the library has said all it has to say */
    case BIO_CTRL_EOF:
        return c->rx_eof;
    default:
        return 0;
    }
}

static int on_create(BIO *bio)
{
    BIO_set_init(bio, 1);
    return 1;
}

static void make_method(void)
{
    BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "connection");

    if (m && BIO_meth_set_read_ex(m, on_read) && BIO_meth_set_write_ex(m, on_write) &&
        BIO_meth_set_ctrl(m, on_ctrl) && BIO_meth_set_create(m, on_create))
        method = m;
    else
        BIO_meth_free(m);
}

BIO *tls_bio_new(struct tls_conn *c)
{
    BIO *bio;

    (void)pthread_once(&once, make_method);
    bio = method ? BIO_new(method) : NULL;
    if (bio)
        BIO_set_data(bio, c);
    return bio;
}
