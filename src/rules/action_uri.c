/*
 * Actions on start lines: method, target, status.
 */
#include "rules/action.h"
#include "rules/message.h"

enum { METHOD, PATH, PATHQ, QUERY, URI };

#define TARGET_MAX 16384

/* --- rewriting ------------------------------------------------------------------------------------ */

static int set_target(struct http_msg *m, struct arena *arena, struct str before, struct str middle,
                      struct str after)
{
    size_t bytes = before.len + middle.len + after.len;
    char *mem;

    if (bytes > TARGET_MAX)
        return SP_ETOOBIG;
    mem = arena_alloc(arena, bytes + 1);
    if (!mem)
        return SP_ENOMEM;
    memcpy(mem, before.ptr, before.len);
    memcpy(mem + before.len, middle.ptr, middle.len);
    memcpy(mem + before.len + middle.len, after.ptr, after.len);
    if (!target_is_valid(str_make(mem, bytes)))
        return SP_EINVAL;
    m->target = str_make(mem, bytes);
    return 0;
}

/* A target in absolute form carries the host, so the Host field follows it. */
static int set_uri(struct http_msg *m, struct arena *arena, struct str uri)
{
    struct http_field *host;
    struct str authority;
    int status = set_target(m, arena, uri, STR(""), STR(""));

    if (status < 0)
        return status;
    authority = target_authority(m->target);
    if (!authority.len) {
        m->flags &= ~(uint32_t)HTTP_MSG_ABSOLUTE_TARGET;
        return 0;
    }
    if (!http_is_authority(authority))
        return SP_EINVAL;
    if (authority.ptr != m->target.ptr)
        m->flags |= HTTP_MSG_ABSOLUTE_TARGET;
    host = http_msg_find(m, HTTP_FIELD_HOST);
    return host ? http_msg_set_value(m, host, authority) : http_msg_add(m, STR("Host"), authority);
}

static int rewrite(struct http_msg *m, struct arena *arena, int part, struct str value)
{
    struct str target = m->target, old, before, after = STR("");
    size_t mark;

    switch (part) {
    case METHOD:
        if (!http_is_token(value))
            return SP_EINVAL;
        m->method_text = value;
        m->method = (uint8_t)http_method_of(value);
        return 0;
    case URI:
        return set_uri(m, arena, value);
    case QUERY:
        mark = str_chr(target, '?');
        before = str_make(target.ptr, mark);
        /* A '?' that is there stays; one that is missing comes with a value. */
        if (mark == target.len && !value.len)
            return 0;
        old = mark < target.len ? str_make(target.ptr, mark + 1) : before;
        if (mark < target.len)
            return set_target(m, arena, old, value, STR(""));
        return set_target(m, arena, before, STR("?"), value);
    default:
        /* Without a path ("*") the whole target is replaced. */
        if (!target_pathq(target, &old))
            old = target;
        before = str_make(target.ptr, (size_t)(old.ptr - target.ptr));
        if (part == PATH)
            after = str_from(old, str_chr(old, '?'));
        return set_target(m, arena, before, value, after);
    }
}

static int parse_set(struct rule_parser *p)
{
    return parser_fmt(p, "exactly one format");
}

static enum rules_verdict run_set(const struct rule *r, struct run *run)
{
    struct str value;

    if (!run->msg)
        return RULES_CONTINUE;
    value = rules_fmt_str(r->fmt, run->ctx);
    if (!value.ptr)
        return RULES_ERROR;
    return rewrite_result(run, rewrite(run->msg, run->ctx->arena, r->action->data, value));
}

/* --- replacing by regular expression ------------------------------------------------------------------ */

static int parse_replace(struct rule_parser *p)
{
    int status = parser_regex(p, "a regular expression and a format");

    return status < 0 ? status : parser_fmt(p, "a regular expression and a format");
}

static bool part_of(const struct http_msg *m, int part, struct str *out)
{
    switch (part) {
    case PATH:
        return target_path(m->target, out);
    case PATHQ:
        return target_pathq(m->target, out);
    default:
        *out = m->target;
        return true;
    }
}

static enum rules_verdict run_replace(const struct rule *r, struct run *run)
{
    char text[TARGET_MAX];
    struct buf b = {text, sizeof text, 0, 0};
    struct str part, replacement, copy;
    struct regex_groups g;
    int status;

    if (!run->msg || !part_of(run->msg, r->action->data, &part) || !part.len ||
        !regex_match(r->regex, part, false, &g))
        return RULES_CONTINUE;
    replacement = rules_fmt_str(r->fmt, run->ctx);
    if (!replacement.ptr)
        return RULES_ERROR;
    status = regex_expand(replacement, part, &g, &b);
    if (status == 0) {
        copy = arena_str(run->ctx->arena, buf_str(&b));
        status = copy.ptr ? rewrite(run->msg, run->ctx->arena, r->action->data, copy) : SP_ENOMEM;
    }
    return rewrite_result(run, status);
}

/* --- the status line ---------------------------------------------------------------------------------------- */

static int parse_status(struct rule_parser *p)
{
    const char *word = parser_need(p, "a status code");
    const char *next;
    uint64_t status;

    if (!word)
        return SP_EINVAL;
    if (str_to_u64(str_of(word), &status) < 0 || status < 100 || status > 999)
        return parser_fail(p, "expects a status code between 100 and 999, found '%s'", word);
    p->rule->number = (int64_t)status;
    next = parser_peek(p);
    if (!next || strcmp(next, "reason") != 0)
        return 0;
    parser_next(p);
    word = parser_need(p, "a text after 'reason'");
    if (!word)
        return SP_EINVAL;
    for (const char *ch = word; *ch; ch++)
        if ((uint8_t)*ch < 32 && *ch != '\t')
            return parser_fail(p, "has control characters in the reason");
    p->rule->name = compiler_str(p->c, str_of(word));
    return p->rule->name.ptr ? 0 : SP_ENOMEM;
}

static enum rules_verdict run_status(const struct rule *r, struct run *run)
{
    if (!run->msg)
        return RULES_CONTINUE;
    run->msg->status = (uint16_t)r->number;
    run->msg->reason = r->name.ptr ? r->name : http_reason_of((unsigned)r->number);
    return RULES_CONTINUE;
}

#define REQ HOOK(HTTP_REQUEST)

static const struct action_def rows[] = {
    {"set-method", "<fmt>", REQ, parse_set, run_set, METHOD, false, "rewrites the method"},
    {"set-path", "<fmt>", REQ, parse_set, run_set, PATH, false,
     "rewrites the path, keeping the query string"},
    {"set-pathq", "<fmt>", REQ, parse_set, run_set, PATHQ, false,
     "rewrites the path and the query string"},
    {"set-query", "<fmt>", REQ, parse_set, run_set, QUERY, false, "rewrites the query string"},
    {"set-uri", "<fmt>", REQ, parse_set, run_set, URI, false, "rewrites the whole target"},
    {"replace-path", "<match-regex> <replace-fmt>", REQ, parse_replace, run_replace, PATH, false,
     "replaces a path that matches"},
    {"replace-pathq", "<match-regex> <replace-fmt>", REQ, parse_replace, run_replace, PATHQ, false,
     "replaces a path with query string that matches"},
    {"replace-uri", "<match-regex> <replace-fmt>", REQ, parse_replace, run_replace, URI, false,
     "replaces a target that matches"},
    {"set-status", "<status> [reason <str>]", HOOK(HTTP_RESPONSE) | HOOK(HTTP_AFTER_RESPONSE),
     parse_status, run_status, 0, false, "rewrites the status code"},
};

const struct action_table action_uri_table = {rows, sizeof rows / sizeof *rows};
