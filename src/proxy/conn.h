/*
 * One side of a session: a socket with or without TLS on it. Reads and writes
 * answer with the same codes either way.
 */
#ifndef SP_PROXY_CONN_H
#define SP_PROXY_CONN_H

#include "base/status.h"
#include "io/sock.h"
#include "tls/tls.h"

struct conn {
    struct io_sock sock; /* first member */
    struct tls_conn *tls; /* NULL: plain; owned */
};

/* Bytes (> 0), SP_EAGAIN, SP_EEOF, SP_ERESET, or SP_EPROTO (TLS). */
ptrdiff_t conn_recv(struct conn *c, void *data, size_t len);

/* Bytes taken (> 0; TLS may still hold some of them, see conn_flush), SP_EAGAIN, SP_ERESET, SP_EPROTO. */
ptrdiff_t conn_sendv(struct conn *c, const struct iovec *iov, int count, bool more);

/* 0 when everything taken has reached the socket; SP_EAGAIN, SP_ERESET. */
int conn_flush(struct conn *c);

/* True when a read may succeed although no new event has come. */
bool conn_may_read(const struct conn *c);

/* Ends our direction: close_notify where there is TLS, then FIN. */
void conn_shutdown(struct conn *c);

/* Closes and frees the TLS state. `reset` drops unsent data. Harmless when closed. */
void conn_close(struct conn *c, bool reset);

/* option tcpka and the like: the kernel probes an idle connection. */
void conn_keepalive(struct conn *c);

static inline bool conn_is_open(const struct conn *c)
{
    return io_sock_is_open(&c->sock);
}

/* Makes sure that read events come; see io_sock_watch. SP_EIO. */
static inline int conn_watch(struct conn *c)
{
    return c->sock.watch.registered ? 0 : io_sock_watch(&c->sock, IO_READ);
}

#endif
