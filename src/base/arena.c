#include "base/arena.h"

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>

#define CHUNK_BYTES_DEFAULT 4096
#define CHUNK_BYTES_LEAST 128

struct arena_chunk {
    struct arena_chunk *next;
    size_t data_bytes;
    bool ordinary; /* false: holds one large allocation */
    alignas(16) char data[];
};

void arena_init(struct arena *a, size_t chunk_bytes, size_t limit_bytes)
{
    if (chunk_bytes == 0)
        chunk_bytes = CHUNK_BYTES_DEFAULT;
    if (chunk_bytes < CHUNK_BYTES_LEAST)
        chunk_bytes = CHUNK_BYTES_LEAST;
    *a = (struct arena){
        .chunk_bytes = (chunk_bytes + 15) & ~(size_t)15,
        .limit_bytes = limit_bytes,
    };
}

void arena_release(struct arena *a)
{
    while (a->chunks) {
        struct arena_chunk *next = a->chunks->next;

        free(a->chunks);
        a->chunks = next;
    }
    a->cursor = a->end = NULL;
    a->used_bytes = 0;
}

/* arena_alloc compares with `end` alone, so `end` is where the limit is enforced. */
static void arena_clip(struct arena *a)
{
    size_t left = a->limit_bytes - a->used_bytes;

    if (a->limit_bytes && a->cursor && (size_t)(a->end - a->cursor) > left)
        a->end = a->cursor + left;
}

void arena_reset(struct arena *a)
{
    struct arena_chunk *kept = NULL;

    while (a->chunks) {
        struct arena_chunk *next = a->chunks->next;

        if (a->chunks->ordinary && !kept)
            kept = a->chunks;
        else
            free(a->chunks);
        a->chunks = next;
    }
    a->used_bytes = 0;
    a->chunks = kept;
    a->cursor = kept ? kept->data : NULL;
    a->end = kept ? kept->data + kept->data_bytes : NULL;
    if (kept)
        kept->next = NULL;
    arena_clip(a);
}

static struct arena_chunk *chunk_new(size_t data_bytes, bool ordinary)
{
    struct arena_chunk *chunk;

    if (data_bytes > PTRDIFF_MAX - sizeof(*chunk))
        return NULL;
    chunk = malloc(sizeof(*chunk) + data_bytes);
    if (chunk) {
        chunk->data_bytes = data_bytes;
        chunk->ordinary = ordinary;
    }
    return chunk;
}

void *arena_grow(struct arena *a, size_t bytes)
{
    size_t need = bytes ? (bytes + 15) & ~(size_t)15 : 16;
    size_t ordinary_bytes = a->chunk_bytes - sizeof(struct arena_chunk);
    struct arena_chunk *chunk;

    if (need < bytes || (a->limit_bytes && need > a->limit_bytes - a->used_bytes))
        return NULL;
    if (need > ordinary_bytes / 4) {
        chunk = chunk_new(need, false);
        if (!chunk)
            return NULL;
        /* Behind the newest chunk, whose remaining room stays in use. */
        if (a->chunks) {
            chunk->next = a->chunks->next;
            a->chunks->next = chunk;
        } else {
            chunk->next = NULL;
            a->chunks = chunk;
        }
        a->used_bytes += need;
        arena_clip(a);
        return chunk->data;
    }
    chunk = chunk_new(ordinary_bytes, true);
    if (!chunk)
        return NULL;
    chunk->next = a->chunks;
    a->chunks = chunk;
    a->cursor = chunk->data + need;
    a->end = chunk->data + ordinary_bytes;
    a->used_bytes += need;
    arena_clip(a);
    return chunk->data;
}

void *arena_zalloc(struct arena *a, size_t count, size_t bytes)
{
    size_t total;
    void *out;

    if (__builtin_mul_overflow(count, bytes, &total))
        return NULL;
    out = arena_alloc(a, total);
    if (out)
        memset(out, 0, total);
    return out;
}

struct str arena_str(struct arena *a, struct str s)
{
    char *copy = s.len < SIZE_MAX ? arena_alloc(a, s.len + 1) : NULL;

    if (!copy)
        return STR_NULL;
    if (s.len)
        memcpy(copy, s.ptr, s.len);
    copy[s.len] = '\0';
    return str_make(copy, s.len);
}

char *arena_cstr(struct arena *a, const char *s)
{
    return s ? (char *)arena_str(a, str_of(s)).ptr : NULL;
}

char *arena_vprintf(struct arena *a, const char *format, va_list args)
{
    va_list again;
    char *out = NULL;
    int len;

    va_copy(again, args);
    len = vsnprintf(NULL, 0, format, args);
    if (len >= 0)
        out = arena_alloc(a, (size_t)len + 1);
    if (out)
        vsnprintf(out, (size_t)len + 1, format, again);
    va_end(again);
    return out;
}

char *arena_printf(struct arena *a, const char *format, ...)
{
    va_list args;
    char *out;

    va_start(args, format);
    out = arena_vprintf(a, format, args);
    va_end(args);
    return out;
}
