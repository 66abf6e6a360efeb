/*
 * Diagnostics of a configuration: every error of every file is collected, then
 * printed at once by the caller. A library never prints.
 */
#ifndef SP_BASE_DIAG_H
#define SP_BASE_DIAG_H

#include "base/arena.h"

enum diag_level { DIAG_NOTICE, DIAG_WARNING, DIAG_ERROR };

/* Where something stands in the configuration. `file` NULL: the command line or a default. */
struct cfg_loc {
    const char *file;
    int line;
};

struct diag_item {
    struct diag_item *next;
    enum diag_level level;
    struct cfg_loc loc;
    const char *text; /* one line, no trailing newline */
};

struct diag {
    struct arena *arena; /* texts live here */
    struct diag_item *first, *last;
    unsigned errors, warnings;
};

void diag_init(struct diag *d, struct arena *arena);

/* The message names the word at fault, what was expected and, where there is one, the nearest known word. */
void diag_add(struct diag *d, enum diag_level level, struct cfg_loc loc, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#define diag_error(d, loc, ...) diag_add((d), DIAG_ERROR, (loc), __VA_ARGS__)
#define diag_warning(d, loc, ...) diag_add((d), DIAG_WARNING, (loc), __VA_ARGS__)

/*
 * Formats ", did you mean 'xxx'?" into `out` for the nearest of the candidates,
 * or an empty string when none is near. Returns `out`.
 */
const char *diag_suggest(char *out, size_t out_bytes, const char *word,
                         const char *const *candidates, size_t n);

#endif
