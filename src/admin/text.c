#include "admin/text.h"

#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define FIRST_BYTES 16384

void text_release(struct text *t)
{
    free(t->mem);
    *t = (struct text){0};
}

/* Room for `more` bytes. */
static bool text_reserve(struct text *t, size_t more)
{
    size_t capacity = t->capacity ? t->capacity : FIRST_BYTES;
    char *mem;

    if (t->failed)
        return false;
    if (more <= t->capacity - t->len)
        return true;
    while (capacity - t->len < more) {
        if (capacity > SIZE_MAX / 2)
            break;
        capacity *= 2;
    }
    mem = capacity - t->len >= more ? realloc(t->mem, capacity) : NULL;
    if (!mem) {
        t->failed = true;
        return false;
    }
    t->mem = mem;
    t->capacity = capacity;
    return true;
}

void text_put(struct text *t, struct str s)
{
    if (!s.len || !text_reserve(t, s.len))
        return;
    memcpy(t->mem + t->len, s.ptr, s.len);
    t->len += s.len;
}

void text_printf(struct text *t, const char *format, ...)
{
    va_list args;
    int len;

    if (!text_reserve(t, 256))
        return;
    va_start(args, format);
    len = vsnprintf(t->mem + t->len, t->capacity - t->len, format, args);
    va_end(args);
    if (len >= 0 && (size_t)len >= t->capacity - t->len && text_reserve(t, (size_t)len + 1)) {
        va_start(args, format);
        len = vsnprintf(t->mem + t->len, t->capacity - t->len, format, args);
        va_end(args);
    }
    if (len < 0)
        t->failed = true;
    if (!t->failed)
        t->len += (size_t)len;
}

static const char *html_entity(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    case '\0':
        return "&#65533;";
    default:
        return NULL;
    }
}

void text_put_html(struct text *t, struct str s)
{
    size_t plain = 0;

    for (size_t i = 0; i < s.len; i++) {
        const char *entity = html_entity(s.ptr[i]);

        if (!entity)
            continue;
        text_put(t, str_make(s.ptr + plain, i - plain));
        text_puts(t, entity);
        plain = i + 1;
    }
    text_put(t, str_from(s, plain));
}

void text_put_csv(struct text *t, struct str s)
{
    bool quoted = false;

    for (size_t i = 0; i < s.len && !quoted; i++)
        quoted = s.ptr[i] == ',' || s.ptr[i] == '"' || s.ptr[i] == '\n' || s.ptr[i] == '\r';
    if (!quoted) {
        text_put(t, s);
        return;
    }
    text_puts(t, "\"");
    while (s.len) {
        size_t end = str_chr(s, '"');

        text_put(t, str_make(s.ptr, end));
        if (end < s.len)
            text_puts(t, "\"\"");
        s = str_from(s, end + 1);
    }
    text_puts(t, "\"");
}

int text_finish(struct text *t, struct arena *arena, struct str *out)
{
    char *copy = t->failed ? NULL : arena_alloc(arena, t->len);

    if (copy) {
        if (t->len)
            memcpy(copy, t->mem, t->len);
        *out = str_make(copy, t->len);
    }
    text_release(t);
    return copy ? 0 : SP_ENOMEM;
}
