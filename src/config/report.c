#include "config/parser.h"

#include <stdio.h>

/* Nothing more is read after that many errors: what follows is rarely new. */
#define ERRORS_MAX 500

#define TEXT_BYTES 1200

void *cfg_new(struct cfg_parser *p, size_t bytes)
{
    void *out = arena_zalloc(&p->model->arena, 1, bytes);

    if (!out)
        p->no_memory = true;
    return out;
}

char *cfg_printf(struct cfg_parser *p, const char *format, ...)
{
    va_list args;
    char *out;

    va_start(args, format);
    out = arena_vprintf(&p->model->arena, format, args);
    va_end(args);
    if (!out)
        p->no_memory = true;
    return out;
}

/* Makes control characters visible and marks a text that was cut. */
static void clean(char *text, bool cut)
{
    size_t len = strlen(text);

    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c < 0x20 || c == 0x7f)
            text[i] = '?';
    }
    if (cut && len > 3)
        memcpy(text + len - 3, "...", 3);
}

__attribute__((format(printf, 5, 0))) static void report(struct cfg_parser *p,
                                                         enum diag_level level, struct cfg_loc loc,
                                                         const char *prefix, const char *format,
                                                         va_list args)
{
    char text[TEXT_BYTES];
    int start = snprintf(text, sizeof(text), "%s", prefix);
    int len;

    if (p->too_many)
        return;
    if (start >= (int)sizeof(text))
        start = sizeof(text) - 1;
    len = vsnprintf(text + start, sizeof(text) - (size_t)start, format, args);
    clean(text, len >= (int)sizeof(text) - start);
    diag_add(p->diag, level, loc, "%s", text);
    if (level == DIAG_ERROR && p->diag->errors >= ERRORS_MAX) {
        p->too_many = true;
        diag_add(p->diag, DIAG_ERROR, loc, "too many errors, the rest is not read");
    }
}

void cfg_report(struct cfg_parser *p, enum diag_level level, struct cfg_loc loc, const char *format,
                ...)
{
    va_list args;

    va_start(args, format);
    report(p, level, loc, "", format, args);
    va_end(args);
}

int cfg_fail(struct cfg_parser *p, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    report(p, DIAG_ERROR, p->loc, "", format, args);
    va_end(args);
    return SP_EINVAL;
}

void cfg_warn(struct cfg_parser *p, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    report(p, DIAG_WARNING, p->loc, "", format, args);
    va_end(args);
}

static const char *kw_prefix(const struct cfg_parser *p, const struct cfg_kw *kw, char out[300])
{
    snprintf(out, 300, "%s%s'%s': ", p->context, p->context[0] ? ": " : "", kw->name);
    return out;
}

int cfg_kw_fail(struct cfg_parser *p, const struct cfg_kw *kw, const char *format, ...)
{
    char prefix[300];
    va_list args;

    va_start(args, format);
    report(p, DIAG_ERROR, p->loc, kw_prefix(p, kw, prefix), format, args);
    va_end(args);
    return SP_EINVAL;
}

void cfg_kw_warn(struct cfg_parser *p, const struct cfg_kw *kw, const char *format, ...)
{
    char prefix[300];
    va_list args;

    va_start(args, format);
    report(p, DIAG_WARNING, p->loc, kw_prefix(p, kw, prefix), format, args);
    va_end(args);
}
