/*
 * Text that grows: what statistics are written into.
 */
#ifndef SP_ADMIN_TEXT_H
#define SP_ADMIN_TEXT_H

#include "base/arena.h"

struct text {
    char *mem;
    size_t len, capacity;
    bool failed; /* out of memory: everything since is dropped */
};

void text_release(struct text *t);

void text_put(struct text *t, struct str s);
static inline void text_puts(struct text *t, const char *s)
{
    text_put(t, str_of(s));
}
void text_printf(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* For HTML text and double-quoted attribute values. */
void text_put_html(struct text *t, struct str s);
/* A cell of RFC 4180: quoted when it holds a comma, a quote or a line end. */
void text_put_csv(struct text *t, struct str s);

/* Moves the text into `arena` and releases it: SP_ENOMEM also when writing it had failed. */
int text_finish(struct text *t, struct arena *arena, struct str *out);

#endif
