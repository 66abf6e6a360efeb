#include "base/diag.h"

#include <stdio.h>

void diag_init(struct diag *d, struct arena *arena)
{
    *d = (struct diag){.arena = arena};
}

void diag_add(struct diag *d, enum diag_level level, struct cfg_loc loc, const char *format, ...)
{
    struct diag_item *item;
    char *text;
    va_list args;

    /* Counted first: an error must stop the caller even when memory has run out. */
    if (level == DIAG_ERROR)
        d->errors++;
    else if (level == DIAG_WARNING)
        d->warnings++;
    item = arena_zalloc(d->arena, 1, sizeof(*item));
    if (!item)
        return;
    va_start(args, format);
    text = arena_vprintf(d->arena, format, args);
    va_end(args);
    if (text) {
        size_t len = strlen(text);

        while (len && text[len - 1] == '\n')
            text[--len] = '\0';
        for (size_t i = 0; i < len; i++)
            text[i] = text[i] == '\n' || text[i] == '\r' ? ' ' : text[i];
    }
    item->level = level;
    item->loc = loc;
    item->text = text ? text : "out of memory while reporting a problem";
    if (d->last)
        d->last->next = item;
    else
        d->first = item;
    d->last = item;
}

const char *diag_suggest(char *out, size_t out_bytes, const char *word,
                         const char *const *candidates, size_t n)
{
    const char *nearest = str_nearest(str_of(word), candidates, n);

    if (out_bytes == 0)
        return "";
    out[0] = '\0';
    /* Half a suggestion is worse than none. */
    if (nearest && snprintf(out, out_bytes, ", did you mean '%s'?", nearest) >= (int)out_bytes)
        out[0] = '\0';
    return out;
}
