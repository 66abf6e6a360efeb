#include "proxy/conn.h"

void conn_keepalive(struct conn *c)
{
    int on = 1;

    setsockopt(c->sock.watch.fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

static ptrdiff_t conn_status_of_tls(ptrdiff_t n)
{
    if (n == SP_EWANTREAD || n == SP_EWANTWRITE || n == SP_EWANTCRYPTO)
        return SP_EAGAIN;
    return n;
}

ptrdiff_t conn_recv(struct conn *c, void *data, size_t len)
{
    if (!c->tls)
        return io_sock_recv(&c->sock, data, len);
    return conn_status_of_tls(tls_conn_read(c->tls, data, len));
}

ptrdiff_t conn_sendv(struct conn *c, const struct iovec *iov, int count, bool more)
{
    if (!c->tls)
        return io_sock_sendv(&c->sock, iov, count, more);
    return conn_status_of_tls(tls_conn_writev(c->tls, iov, count, more));
}

int conn_flush(struct conn *c)
{
    if (!c->tls || tls_conn_unsent(c->tls) == 0)
        return 0;
    return (int)conn_status_of_tls(tls_conn_flush(c->tls));
}

bool conn_may_read(const struct conn *c)
{
    if (c->sock.read_closed && !c->tls)
        return false;
    return (c->sock.ready & IO_READ) || (c->tls && tls_conn_pending(c->tls));
}

void conn_shutdown(struct conn *c)
{
    if (!conn_is_open(c))
        return;
    if (c->tls)
        tls_conn_shutdown(c->tls);
    if (!c->sock.write_closed)
        c->sock.transport->shutdown_write(&c->sock);
}

void conn_close(struct conn *c, bool reset)
{
    if (!conn_is_open(c))
        return;
    if (c->tls) {
        if (!reset && !c->sock.write_closed)
            tls_conn_shutdown(c->tls);
        tls_conn_free(c->tls);
        c->tls = NULL;
    }
    c->sock.transport->close(&c->sock, reset);
}
