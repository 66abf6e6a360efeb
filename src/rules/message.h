/*
 * Parts of HTTP messages that several fetches and actions look at.
 */
#ifndef SP_RULES_MESSAGE_H
#define SP_RULES_MESSAGE_H

#include "rules/expr.h"

/*
 * The path and query of a target: from the '/' after an optional scheme and
 * authority to the end. False when there is none ("*", authority form, absolute form without path).
 */
bool target_pathq(struct str target, struct str *out);
/* The same up to '?'. */
bool target_path(struct str target, struct str *out);

/* The authority of an absolute or authority-form target; empty otherwise. */
struct str target_authority(struct str target);

/* True for what may stand in a request line: no blanks, no control characters. */
bool target_is_valid(struct str target);

/* The first value of the first Host field; false without one. */
bool message_host(const struct http_msg *m, struct str *out);

/* The message a fetch without "req." or "res." in its name looks at. */
static inline const struct http_msg *ctx_message(const struct rules_ctx *ctx)
{
    return ctx->response_stage ? ctx->res : ctx->req;
}

/* End of the next value in a comma-separated list from `s`, quoted strings respected. */
size_t list_value_end(struct str s);

static inline bool field_matches(const struct http_field *f, uint16_t id, struct str name)
{
    if (id != HTTP_FIELD_OTHER || f->id != HTTP_FIELD_OTHER)
        return f->id == id;
    return str_ieq(f->name, name);
}

#endif
