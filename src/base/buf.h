/*
 * Linear byte buffers and the pool that they come from.
 *
 *   mem        mem+head        mem+tail        mem+size
 *    |  consumed  |     data      |     room      |
 */
#ifndef SP_BASE_BUF_H
#define SP_BASE_BUF_H

#include "base/str.h"

struct buf {
    char *mem; /* NULL: no storage attached */
    uint32_t size;
    uint32_t head;
    uint32_t tail;
};

static inline size_t buf_len(const struct buf *b)
{
    return b->tail - b->head;
}

static inline char *buf_data(const struct buf *b)
{
    return b->head ? b->mem + b->head : b->mem; /* mem may be NULL */
}

static inline struct str buf_str(const struct buf *b)
{
    return (struct str){buf_data(b), buf_len(b)};
}

static inline size_t buf_room(const struct buf *b)
{
    return b->size - b->tail;
}

static inline char *buf_end(const struct buf *b)
{
    return b->tail ? b->mem + b->tail : b->mem;
}

/* Drops `n` bytes (at most buf_len) from the front; an empty buffer rewinds. */
static inline void buf_consume(struct buf *b, size_t n)
{
    b->head += (uint32_t)n;
    if (b->head == b->tail)
        b->head = b->tail = 0;
}

/* Declares `n` bytes (at most buf_room) written at buf_end. */
static inline void buf_commit(struct buf *b, size_t n)
{
    b->tail += (uint32_t)n;
}

static inline void buf_clear(struct buf *b)
{
    b->head = b->tail = 0;
}

/* Moves the data to the start so that all free space is at the end. */
void buf_compact(struct buf *b);

/* Appends; SP_ETOOBIG (and nothing written) when it does not fit. */
int buf_put(struct buf *b, struct str s);
int buf_put_char(struct buf *b, char c);
int buf_put_u64(struct buf *b, uint64_t value);
int buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * A pool of equal storages, owned by one thread. Storages are kept for reuse;
 * at most `max_count` (0: unbounded) are out at any time.
 */
struct buf_pool {
    void *free_list;
    uint32_t buf_bytes;
    uint32_t free_count;
    uint32_t keep_count; /* storages kept when idle; more go back to the heap */
    uint32_t out_count;
    uint32_t max_count;
};

void buf_pool_init(struct buf_pool *pool, uint32_t buf_bytes, uint32_t keep_count,
                   uint32_t max_count);
/* Frees the storages that are not out; those still out are freed by buf_pool_put. */
void buf_pool_release(struct buf_pool *pool);

/* Attaches storage to an empty `b`, or leaves the one it has; SP_ENOMEM when the pool is exhausted. */
int buf_pool_get(struct buf_pool *pool, struct buf *b);

/* Takes the storage back (contents dropped); a buffer without storage is left alone. */
void buf_pool_put(struct buf_pool *pool, struct buf *b);

#endif
