#include "base/buf.h"

#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void buf_compact(struct buf *b)
{
    if (b->head == 0)
        return;
    memmove(b->mem, b->mem + b->head, buf_len(b));
    b->tail -= b->head;
    b->head = 0;
}

int buf_put(struct buf *b, struct str s)
{
    if (s.len > buf_room(b))
        return SP_ETOOBIG;
    if (s.len)
        memcpy(buf_end(b), s.ptr, s.len);
    buf_commit(b, s.len);
    return 0;
}

int buf_put_char(struct buf *b, char c)
{
    if (buf_room(b) == 0)
        return SP_ETOOBIG;
    b->mem[b->tail++] = c;
    return 0;
}

int buf_put_u64(struct buf *b, uint64_t value)
{
    char digits[20];

    return buf_put(b, str_make(digits, str_put_u64(digits, value)));
}

int buf_printf(struct buf *b, const char *format, ...)
{
    size_t room = buf_room(b);
    int len, status = SP_ETOOBIG;
    va_list args, again;
    char *copy = NULL;

    va_start(args, format);
    va_copy(again, args);
    len = vsnprintf(room ? buf_end(b) : NULL, room, format, args);
    if (len >= 0 && (size_t)len < room) {
        buf_commit(b, (size_t)len);
        status = 0;
    } else if (len >= 0 && (size_t)len == room && vasprintf(&copy, format, again) == len) {
        /* An exact fit leaves vsnprintf no place for its terminator. */
        status = buf_put(b, str_make(copy, (size_t)len));
        free(copy);
    }
    va_end(again);
    va_end(args);
    return status;
}

void buf_pool_init(struct buf_pool *pool, uint32_t buf_bytes, uint32_t keep_count,
                   uint32_t max_count)
{
    *pool = (struct buf_pool){
        .buf_bytes = buf_bytes < sizeof(void *) ? (uint32_t)sizeof(void *) : buf_bytes,
        .keep_count = keep_count,
        .max_count = max_count,
    };
}

void buf_pool_release(struct buf_pool *pool)
{
    while (pool->free_list) {
        void *storage = pool->free_list;

        memcpy(&pool->free_list, storage, sizeof(pool->free_list));
        free(storage);
    }
    pool->free_count = 0;
}

int buf_pool_get(struct buf_pool *pool, struct buf *b)
{
    void *storage;

    if (b->mem)
        return 0;
    if (pool->max_count && pool->out_count >= pool->max_count)
        return SP_ENOMEM;
    storage = pool->free_list;
    if (storage) {
        memcpy(&pool->free_list, storage, sizeof(pool->free_list));
        pool->free_count--;
    } else {
        storage = malloc(pool->buf_bytes);
        if (!storage)
            return SP_ENOMEM;
    }
    pool->out_count++;
    *b = (struct buf){.mem = storage, .size = pool->buf_bytes};
    return 0;
}

void buf_pool_put(struct buf_pool *pool, struct buf *b)
{
    if (!b->mem)
        return;
    if (pool->free_count < pool->keep_count) {
        memcpy(b->mem, &pool->free_list, sizeof(pool->free_list));
        pool->free_list = b->mem;
        pool->free_count++;
    } else {
        free(b->mem);
    }
    pool->out_count--;
    *b = (struct buf){0};
}
