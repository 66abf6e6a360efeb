/*
 * Encrypted bytes on their way to the socket: segments from the worker's pool, sent together.
 */
#ifndef SP_TLS_OUT_H
#define SP_TLS_OUT_H

#include "base/buf.h"
#include "io/sock.h"

struct tls_segment {
    struct tls_segment *next;
    uint32_t head, tail;
    char data[];
};

struct tls_out {
    struct tls_segment *first, *last;
    size_t bytes;
};

/* SP_ENOMEM: some of the bytes may have been taken, the connection is lost. */
int tls_out_append(struct tls_out *out, struct buf_pool *pool, const void *data, size_t len);

/*
 * Sends what is there, followed by `len` bytes at `data` that are not (may be 0), until the socket
 * takes no more. Returns how many of the latter were sent, or SP_ERESET. `more`: further bytes
 * follow at once.
 */
ptrdiff_t tls_out_send(struct tls_out *out, struct buf_pool *pool, struct io_sock *sock,
                       const void *data, size_t len, bool more);

void tls_out_release(struct tls_out *out, struct buf_pool *pool);

#endif
