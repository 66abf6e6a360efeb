/*
 * Actions, inside: the rows of the table, compiled rules and how they are read and run.
 */
#ifndef SP_RULES_ACTION_H
#define SP_RULES_ACTION_H

#include "rules/acl.h"
#include "rules/format.h"

struct reply_def;
struct redirect_def;
struct action_def;

struct rule {
    const struct action_def *action;
    struct rules_cond *cond; /* NULL: always */
    enum rules_hook hook;
    struct cfg_loc loc;
    /* What the action needs of these: */
    struct str name;
    const struct rules_fmt *fmt;
    const struct rules_expr *expr;
    struct regex *regex;
    struct var_ref var;
    const struct reply_def *reply;
    const struct redirect_def *redirect;
    int64_t number;
    unsigned flags;
};

/* One run of a set. */
struct run {
    struct rules_ctx *ctx;
    struct rules_outcome *outcome;
    struct http_msg *msg; /* that the hook's rules change; may be NULL in TCP hooks */
    bool lenient;         /* strict-mode off: failed rewrites are ignored */
};

/* The words of one rule while they are read. */
struct rule_parser {
    struct rules_compiler *c;
    struct rule *rule;
    enum rules_stage stage;
    int argc;
    char *const *argv;
    int at; /* next word */
};

#define HOOK(h) (1u << RULES_##h)

struct action_def {
    const char *name;
    const char *args;
    unsigned hooks;
    int (*parse)(struct rule_parser *p);
    enum rules_verdict (*run)(const struct rule *r, struct run *run);
    int data;
    bool final; /* nothing after it is reached when it has no condition */
    const char *help;
};

struct action_table {
    const struct action_def *rows;
    size_t count;
};

extern const struct action_table *const action_tables[];
extern const size_t action_table_count;
extern const struct action_table action_header_table, action_uri_table, action_flow_table,
    action_var_table, action_reply_table;

/* "tcp-request connection", … */
extern const char *const hook_names[RULES_HOOK_COUNT];

/* --- for parse functions --------------------------------------------------------------------- */

/* The next word, unless it begins the condition; NULL at the end. */
const char *parser_peek(const struct rule_parser *p);
const char *parser_next(struct rule_parser *p);
/* A mandatory word; NULL with the error in diag. */
const char *parser_need(struct rule_parser *p, const char *what);
int parser_fail(struct rule_parser *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A format for fields and targets. */
int parser_fmt(struct rule_parser *p, const char *what);
int parser_expr(struct rule_parser *p);
int parser_regex(struct rule_parser *p, const char *what);
/* A field name. */
int parser_field_name(struct rule_parser *p);

/* --- for run functions ------------------------------------------------------------------------- */

/* The answer to a rewrite that failed with `status`: an error, unless strict-mode is off. */
static inline enum rules_verdict rewrite_result(const struct run *run, int status)
{
    if (status >= 0 || (run->lenient && status != SP_ENOMEM))
        return RULES_CONTINUE;
    return RULES_ERROR;
}

/* --- replies ------------------------------------------------------------------------------------- */

/* "[status CODE] [content-type TYPE] [file …] [hdr …]…", up to the first foreign word. */
struct reply_def *reply_parse(struct rule_parser *p, unsigned default_status);
/* The reply that needs no argument: the proxy's page of that status. */
struct reply_def *reply_default(struct rules_compiler *c, unsigned status);
/* Evaluates into `out`; false without memory. */
bool reply_make(const struct reply_def *r, struct rules_ctx *ctx, struct rules_reply *out);
const struct reply_def *reply_specialize(const struct reply_def *r, bool listener_tls,
                                         struct arena *arena);

/* The words after "redirect"; `formats`: arguments are log formats (not in the keyword "redirect"). */
struct redirect_def *redirect_parse(struct rule_parser *p, bool formats, bool response);
/* RULES_REPLY, RULES_CONTINUE (ignore-empty) or RULES_ERROR. */
enum rules_verdict redirect_run(const struct redirect_def *d, struct run *run);
const struct redirect_def *redirect_specialize(const struct redirect_def *d, bool listener_tls,
                                               struct arena *arena);

/* One field more on a reply; false without memory. */
bool reply_add_field(struct rules_reply *reply, struct arena *arena, struct str name,
                     struct str value);

#endif
