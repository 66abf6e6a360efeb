#include "tls/out.h"

#include "base/status.h"

#define IOV_MAX_COUNT 16

static size_t segment_room(const struct buf_pool *pool, const struct tls_segment *s)
{
    return pool->buf_bytes - sizeof(*s) - s->tail;
}

static void put_back(struct buf_pool *pool, struct tls_segment *s)
{
    struct buf b = {.mem = (char *)s, .size = pool->buf_bytes};

    buf_pool_put(pool, &b);
}

int tls_out_append(struct tls_out *out, struct buf_pool *pool, const void *data, size_t len)
{
    const char *from = data;

    while (len) {
        struct tls_segment *s = out->last;
        size_t take;

        if (!s || segment_room(pool, s) == 0) {
            struct buf b = {0};

            if (buf_pool_get(pool, &b) != 0)
                return SP_ENOMEM;
            s = (struct tls_segment *)(void *)b.mem;
            s->next = NULL;
            s->head = s->tail = 0;
            if (out->last)
                out->last->next = s;
            else
                out->first = s;
            out->last = s;
        }
        take = segment_room(pool, s);
        if (take > len)
            take = len;
        memcpy(s->data + s->tail, from, take);
        s->tail += (uint32_t)take;
        out->bytes += take;
        from += take;
        len -= take;
    }
    return 0;
}

/* Drops `n` sent bytes from the front; returns what is left of n when everything is gone. */
static size_t consume(struct tls_out *out, struct buf_pool *pool, size_t n)
{
    while (out->first) {
        struct tls_segment *s = out->first;
        size_t have = s->tail - s->head;

        if (n < have) {
            s->head += (uint32_t)n;
            out->bytes -= n;
            return 0;
        }
        n -= have;
        out->bytes -= have;
        out->first = s->next;
        if (!out->first)
            out->last = NULL;
        put_back(pool, s);
    }
    return n;
}

ptrdiff_t tls_out_send(struct tls_out *out, struct buf_pool *pool, struct io_sock *sock,
                       const void *data, size_t len, bool more)
{
    size_t sent = 0;

    while (out->bytes + (len - sent) && (sock->ready & IO_WRITE)) {
        struct iovec iov[IOV_MAX_COUNT];
        struct tls_segment *s = out->first;
        ptrdiff_t n;
        int count = 0;

        for (; s && count < IOV_MAX_COUNT - 1; s = s->next)
            iov[count++] = (struct iovec){s->data + s->head, s->tail - s->head};
        if (!s && len > sent)
            iov[count++] = (struct iovec){(char *)data + sent, len - sent};
        n = io_sock_sendv(sock, iov, count, more || s);
        if (n == SP_EAGAIN)
            break;
        if (n < 0)
            return SP_ERESET;
        sent += consume(out, pool, (size_t)n);
    }
    return (ptrdiff_t)sent;
}

void tls_out_release(struct tls_out *out, struct buf_pool *pool)
{
    while (out->first) {
        struct tls_segment *s = out->first;

        out->first = s->next;
        put_back(pool, s);
    }
    *out = (struct tls_out){0};
}
