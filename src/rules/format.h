/*
 * Log formats, inside: parts, flags and the emitter.
 */
#ifndef SP_RULES_FORMAT_H
#define SP_RULES_FORMAT_H

#include "rules/expr.h"

#include "rules/logformat.h"

enum {
    FMT_QUOTE = 1 << 0,          /* +Q */
    FMT_HEX = 1 << 1,            /* +X */
    FMT_ESCAPE = 1 << 2,         /* +E */
    FMT_MANDATORY = 1 << 3,      /* +M: "-" for nothing */
    FMT_HTTP = 1 << 4,           /* expressions are encoded for header fields */
    FMT_MERGE = 1 << 5,          /* blanks are separators and are merged */
    FMT_PLAIN_LISTENER = 1 << 6, /* specialized: the listener has no TLS */
};

enum part_kind { PART_TEXT, PART_SPACE, PART_ALIAS, PART_EXPR };

struct alias_def;

struct fmt_part {
    enum part_kind kind;
    unsigned flags;
    struct str text;
    const struct alias_def *alias;
    const struct rules_expr *expr;
};

struct rules_fmt {
    unsigned count;
    struct fmt_part *parts;
    unsigned flags;
    unsigned needs;
    bool constant; /* `value` is all there is */
    struct str value;
};

/* One evaluation's output. */
struct emitter {
    struct rules_ctx *ctx;
    const struct rules_log *log; /* may be NULL */
    bool log_asked;
    struct buf *out;
    unsigned flags; /* of the part at hand */
};

struct alias_def {
    const char *name;
    void (*put)(struct emitter *e, const struct alias_def *a);
    int data;
    unsigned needs;
    const char *help;
};

const struct alias_def *alias_find(struct str name);
extern const struct alias_def alias_rows[];
extern const size_t alias_count;

/* Which contexts a format is for. */
struct rules_fmt *fmt_compile(struct rules_compiler *c, const char *text, unsigned flags,
                              enum rules_stage stage);

/* Appends, cut at the buffer's room. */
void emit_raw(struct emitter *e, struct str s);
void emit_char(struct emitter *e, char ch);
/* A text value: quoted, escaped or "-" as the flags say. */
void emit_text(struct emitter *e, struct str s);
/* A text that comes from outside, `set` encoded as #XX; quoted as the flags say. */
enum encode_set { ENCODE_URL, ENCODE_HEADER };
void emit_encoded(struct emitter *e, struct str s, enum encode_set set);
void emit_quote(struct emitter *e);
/* For fields: control characters as %XX. */
void emit_http(struct emitter *e, struct str s);

const struct rules_log *emitter_log(struct emitter *e);

#endif
