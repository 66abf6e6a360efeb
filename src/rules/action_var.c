/*
 * Actions on variables and captures.
 */
#include "rules/action.h"

enum { EXPRESSION, FORMAT, UNSET };

/* "set-var(NAME[,CONDITION…])" is one word. */
static int parse_name(struct rule_parser *p)
{
    const char *word = p->argv[0], *open = strchr(word, '('), *reason;
    struct str list, name;

    if (!open || word[strlen(word) - 1] != ')')
        return parser_fail(p, "expects a variable in parentheses");
    list = str_make(open + 1, strlen(open) - 2);
    name = str_make(list.ptr, str_chr(list, ','));
    list = str_from(list, name.len + 1);
    if (var_parse(str_trim(name), &p->rule->var, &reason) < 0)
        return parser_fail(p, "variable '%.*s': %s", STR_FMT(name), reason);
    if (p->rule->var.scope == RULES_SCOPE_PROC)
        return parser_fail(p, "variable '%.*s': the scope 'proc' is read-only at run time",
                           STR_FMT(name));
    while (list.len) {
        struct str condition = str_make(list.ptr, str_chr(list, ','));
        unsigned bit = var_condition(str_trim(condition));

        if (!bit)
            return parser_fail(p, "unknown condition '%.*s'", STR_FMT(condition));
        p->rule->flags |= bit;
        list = str_from(list, condition.len + 1);
    }
    return 0;
}

static int parse_set(struct rule_parser *p)
{
    if (parse_name(p) < 0)
        return SP_EINVAL;
    if (p->rule->action->data == FORMAT)
        return parser_fmt(p, "a format");
    return parser_expr(p);
}

static enum rules_verdict run_set(const struct rule *r, struct run *run)
{
    struct sample s;

    if (r->action->data == FORMAT) {
        if (!value_str(&s, rules_fmt_str(r->fmt, run->ctx)) || !s.u.s.ptr)
            return RULES_ERROR;
    } else if (!rules_expr_eval(r->expr, run->ctx, &s)) {
        return RULES_CONTINUE;
    }
    var_set(&r->var, run->ctx, &s, r->flags);
    return RULES_CONTINUE;
}

static int parse_unset(struct rule_parser *p)
{
    return parse_name(p);
}

static enum rules_verdict run_unset(const struct rule *r, struct run *run)
{
    var_unset(&r->var, run->ctx);
    return RULES_CONTINUE;
}

/* --- captures --------------------------------------------------------------------------------------- */

static int parse_len(struct rule_parser *p)
{
    const char *word = parser_need(p, "a length after 'len'");
    uint64_t len;

    if (!word)
        return SP_EINVAL;
    if (str_to_u64(str_of(word), &len) < 0 || len == 0 || len > 65535)
        return parser_fail(p, "expects a length of 1 or more after 'len', found '%s'", word);
    p->rule->number =
        p->c->add_capture ? p->c->add_capture(p->c->resolver, false, len) : SP_EUNSUPPORTED;
    if (p->rule->number < 0)
        return parser_fail(p, "with 'len' is only available in a proxy with a frontend");
    p->rule->flags = (unsigned)len;
    return 0;
}

static int parse_id(struct rule_parser *p, bool response)
{
    const char *word = parser_need(p, "a slot after 'id'");
    uint64_t id;
    int len = -1;

    if (!word)
        return SP_EINVAL;
    if (str_to_u64(str_of(word), &id) < 0 || id > 65535)
        return parser_fail(p, "expects the number of a slot after 'id', found '%s'", word);
    if (p->c->capture_len)
        len = p->c->capture_len(p->c->resolver, response, (int)id);
    /* A backend cannot know the slots of the frontends that lead to it. */
    if (len < 0 && p->c->is_frontend)
        return parser_fail(p, "refers to capture slot %s, which is not declared", word);
    p->rule->number = (int64_t)id;
    p->rule->flags = len < 0 ? UINT32_MAX : (unsigned)len;
    return 0;
}

static int parse_capture(struct rule_parser *p)
{
    bool response = p->stage == STAGE_RESPONSE;
    const char *word;

    if (parser_expr(p) < 0)
        return SP_EINVAL;
    word = parser_need(p, response ? "'id' and the number of a slot" : "'len' or 'id'");
    if (!word)
        return SP_EINVAL;
    if (strcmp(word, "len") == 0 && !response)
        return parse_len(p);
    if (strcmp(word, "id") == 0)
        return parse_id(p, response);
    return parser_fail(p, "expects %s, found '%s'", response ? "'id'" : "'len' or 'id'", word);
}

static enum rules_verdict run_capture(const struct rule *r, struct run *run)
{
    struct rules_ctx *ctx = run->ctx;
    bool response = ctx->response_stage;
    struct str *slots = response ? ctx->res_captures : ctx->req_captures;
    unsigned count = response ? ctx->res_capture_count : ctx->req_capture_count;
    const size_t *limits = response ? ctx->res_capture_limits : ctx->req_capture_limits;
    size_t limit = r->flags;
    struct str s;

    if (!slots || r->number >= count || !rules_expr_str(r->expr, ctx, &s))
        return RULES_CONTINUE;
    if (limits && limits[r->number] < limit)
        limit = limits[r->number];
    if (s.len > limit)
        s.len = limit;
    s = arena_str(ctx->arena, s);
    if (s.ptr)
        slots[r->number] = s;
    return RULES_CONTINUE;
}

#define TCP                                                                                 \
    (HOOK(TCP_REQUEST_CONNECTION) | HOOK(TCP_REQUEST_SESSION) | HOOK(TCP_REQUEST_CONTENT) | \
     HOOK(TCP_RESPONSE_CONTENT))
#define HTTP (HOOK(HTTP_REQUEST) | HOOK(HTTP_RESPONSE) | HOOK(HTTP_AFTER_RESPONSE))

static const struct action_def rows[] = {
    {"set-var", "(<var-name>[,<cond>...]) <expr>", TCP | HTTP, parse_set, run_set, EXPRESSION,
     false, "sets a variable to an expression's value"},
    {"set-var-fmt", "(<var-name>[,<cond>...]) <fmt>", TCP | HTTP, parse_set, run_set, FORMAT, false,
     "sets a variable to a formatted text"},
    {"unset-var", "(<var-name>)", TCP | HTTP, parse_unset, run_unset, UNSET, false,
     "forgets a variable"},
    {"capture", "<sample> [ len <length> | id <id> ]", HOOK(TCP_REQUEST_CONTENT) | HTTP,
     parse_capture, run_capture, 0, false, "keeps a value for logs and fetches"},
};

const struct action_table action_var_table = {rows, sizeof rows / sizeof *rows};
