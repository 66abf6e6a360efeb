/*
 * Bump allocator: many small objects with one common end of life.
 *
 * Used for the configuration (one arena for the whole model) and for what one
 * request needs (one arena a session, reset between requests).
 */
#ifndef SP_BASE_ARENA_H
#define SP_BASE_ARENA_H

#include "base/str.h"

#include <stdarg.h>

struct arena_chunk;

struct arena {
    struct arena_chunk *chunks; /* newest first */
    char *cursor;
    char *end;
    size_t chunk_bytes; /* size of the next ordinary chunk */
    size_t used_bytes;  /* handed out since the last reset */
    size_t limit_bytes; /* 0: unbounded; otherwise allocations fail beyond it */
};

/* No memory is taken until the first allocation. `chunk_bytes` 0 selects 4096. */
void arena_init(struct arena *a, size_t chunk_bytes, size_t limit_bytes);

/* Frees everything; the arena may be used again afterwards. */
void arena_release(struct arena *a);

/* Forgets every allocation but keeps one ordinary chunk for reuse. */
void arena_reset(struct arena *a);

/* Slow path of arena_alloc. */
void *arena_grow(struct arena *a, size_t bytes);

/* Memory aligned to 16 bytes, contents undefined; NULL when out of memory or over the limit. */
static inline void *arena_alloc(struct arena *a, size_t bytes)
{
    size_t need = (bytes + 15) & ~(size_t)15;

    if (need >= bytes && (size_t)(a->end - a->cursor) >= need && a->cursor) {
        void *out = a->cursor;

        a->cursor += need;
        a->used_bytes += need;
        return out;
    }
    return arena_grow(a, bytes);
}

/* The same, zeroed. `count * bytes` is checked for overflow. */
void *arena_zalloc(struct arena *a, size_t count, size_t bytes);

/* Copies; the copy is NUL-terminated one byte past its length. NULL ptr on failure. */
struct str arena_str(struct arena *a, struct str s);
char *arena_cstr(struct arena *a, const char *s);
char *arena_printf(struct arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(struct arena *a, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

#endif
