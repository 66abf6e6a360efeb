/*
 * Sample expressions, inside: arguments, the rows of the fetch and converter
 * tables, and compiled expressions.
 */
#ifndef SP_RULES_EXPR_H
#define SP_RULES_EXPR_H

#include "rules/regex.h"
#include "rules/value.h"
#include "rules/vars.h"

struct acl;
struct pat_set;

/* --- arguments ------------------------------------------------------------------- */

/*
 * A signature is one letter an argument; those after '?' are optional:
 *   s text   i integer   m IPv4 mask   M IPv6 mask   4 IPv4 address   6 IPv6 address
 *   b backend   f frontend   S [backend/]server (names are resolved)
 * A further '*' repeats the last letter up to RULES_ARGS_MAX.
 */
#define RULES_ARGS_MAX 12

struct rules_arg {
    struct str s; /* the text, NUL-terminated; for all letters */
    int64_t i;    /* i, and what a row's check function makes of a text */
    struct addr addr;
    union {
        void *object;       /* b f S */
        struct var_ref var; /* set by check functions */
        struct regex *regex;
        struct pat_set *pattern;
        const void *data;
    } u;
    bool is_var;
};

struct rules_args {
    unsigned count;
    struct rules_arg *v;
};

static inline const struct rules_arg *arg_at(const struct rules_args *a, unsigned i)
{
    return i < a->count ? &a->v[i] : NULL;
}

/*
 * Parses "(a,b…)" at *text, or nothing; *text is left behind it. Quotes and
 * backslashes as in HAProxy. The message that goes to `why` names the argument.
 */
#define RULES_WHY_BYTES 384
int args_parse(struct rules_compiler *c, const char *signature, const char **text,
               struct rules_args *out, char why[RULES_WHY_BYTES]);

static inline bool is_name_char(char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') ||
           ch == '.' || ch == '_' || ch == '-' || ch == '+' || ch == ':';
}

/* --- fetches ------------------------------------------------------------------------ */

/* What an evaluation looks at. */
enum {
    NEEDS_REQUEST = 1 << 0,  /* the request's head as it is now */
    NEEDS_RESPONSE = 1 << 1, /* the response's head */
    NEEDS_LOG = 1 << 2,      /* struct rules_log */
    NEEDS_PAYLOAD = 1 << 3,  /* bytes in the buffers */
    NEEDS_VARYING =
        1 << 4, /* changes from one evaluation to the next (clock, random numbers, variables) */
    NEEDS_HOST = 1 << 5,      /* facts that the host knows */
    NEEDS_DIRECTION = 1 << 6, /* request or response, by the hook */
    NEEDS_FINAL = 1 << 7,     /* the finished stream: counters and times of its end */
    NEEDS_TLS =
        1 << 8, /* of aliases: the client's TLS layer, so that they are constant without it */
};

/* What is known without looking when the listener has no TLS. */
enum fetch_plain { PLAIN_UNKNOWN, PLAIN_FAILS, PLAIN_FALSE };

struct fetch_call;

/* Iteration over several values (headers, cookies, parameters), and what else a fetch reports. */
struct fetch_iter {
    bool all; /* report every value in turn, as ACLs do */
    bool started;
    bool more;       /* out: call again for the next value */
    bool may_change; /* out: with more bytes the answer could differ */
    bool in_field;
    uint32_t at; /* next field */
    struct str rest;
};

struct fetch_def {
    const char *name;
    const char *signature;
    const char *args; /* as documented */
    enum value_type type;
    unsigned needs;
    bool (*run)(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                struct sample *out);
    int data;
    const char *help;
    enum fetch_plain plain;
    bool tls_true; /* a listener with TLS always answers true */
    /* Completes the arguments; a message in `why` and SP_EINVAL. */
    int (*check)(struct rules_compiler *c, struct rules_args *args, char why[RULES_WHY_BYTES]);
};

struct fetch_call {
    const struct fetch_def *def;
    struct rules_args args;
    uint16_t field_id; /* of the first argument, for fetches of header fields */
};

struct fetch_table {
    const struct fetch_def *rows;
    size_t count;
};

extern const struct fetch_table *const fetch_tables[];
extern const size_t fetch_table_count;
const struct fetch_def *fetch_find(struct str name);

/* --- converters ----------------------------------------------------------------------- */

struct conv_call;

struct conv_def {
    const char *name;
    const char *signature;
    const char *args;
    enum value_type in, out;
    bool (*run)(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s);
    int data;
    const char *help;
    int (*check)(struct rules_compiler *c, struct conv_call *v, char why[RULES_WHY_BYTES]);
    unsigned needs; /* NEEDS_VARYING: not a pure function of input and arguments */
};

struct conv_call {
    const struct conv_def *def;
    struct rules_args args;
    unsigned needs; /* the row's, and what check added (arguments that are variables) */
};

struct conv_table {
    const struct conv_def *rows;
    size_t count;
};

extern const struct conv_table *const conv_tables[];
extern const size_t conv_table_count;
const struct conv_def *conv_find(struct str name);

/* --- expressions ----------------------------------------------------------------------- */

/* When a value is known at configuration time. */
enum expr_known { EXPR_DYNAMIC, EXPR_FAILS, EXPR_VALUE };

struct rules_expr {
    struct fetch_call fetch;
    unsigned conv_count;
    struct conv_call *convs;
    enum value_type type; /* of the result */
    unsigned needs;       /* of the fetch and the converters */
    enum expr_known known;
    struct sample value; /* EXPR_VALUE */
    const char *text;    /* for messages */
};

/* Where an expression stands, to refuse what does not exist there. */
enum rules_stage {
    STAGE_ANY,
    STAGE_CONNECTION, /* tcp-request connection and session: no contents */
    STAGE_REQUEST,
    STAGE_RESPONSE,
};

/*
 * One expression: words, or with `end` set exactly the first word up to the
 * first byte that is not part of it (for "%[…]"). NULL with the error in diag.
 */
struct rules_expr *expr_compile(struct rules_compiler *c, int argc, char *const *argv, int *used,
                                const char **end, enum rules_stage stage);
/* An expression of a given fetch whose arguments follow at `text`; converters too. */
struct rules_expr *expr_compile_fetch(struct rules_compiler *c, const struct fetch_def *def,
                                      const char *word, const char *text);

/* Fetch and converters once; with it->all the next value each time. */
bool expr_next(const struct rules_expr *e, struct rules_ctx *ctx, struct fetch_iter *it,
               struct sample *out);

/* What the expression is on a listener of that kind. A value lives in `arena`. */
enum expr_known expr_fold(const struct rules_expr *e, bool listener_tls, struct arena *arena,
                          struct sample *value);
/* The folded expression: itself, or a constant one in `arena`. NULL without memory. */
const struct rules_expr *expr_specialize(const struct rules_expr *e, bool listener_tls,
                                         struct arena *arena);

/* The log facts: ctx->log, or asked of the host; NULL when there are none. */
const struct rules_log *ctx_log(struct rules_ctx *ctx);

static inline bool ctx_item(struct rules_ctx *ctx, enum rules_item item, struct sample *out)
{
    return ctx->host && ctx->host->item && ctx->host->item(ctx->stream, item, out);
}

/* A registry made at need. NULL without memory. */
struct rules_registry *compiler_registry(struct rules_compiler *c);

/* Duplicates into the configuration's arena; reports memory exhaustion. */
void *compiler_zalloc(struct rules_compiler *c, size_t count, size_t bytes);
struct str compiler_str(struct rules_compiler *c, struct str s);
char *compiler_cstr(struct rules_compiler *c, const char *s);

/* HAProxy names that we know of and do not provide. */
enum known_kind { KNOWN_FETCH, KNOWN_CONVERTER, KNOWN_ACTION, KNOWN_COUNT };
bool known_unsupported(enum known_kind kind, struct str name);

#endif
