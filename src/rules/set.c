/*
 * Rule sets: reading rules, running them, and leaving out what cannot apply.
 */
#include "rules/action.h"

#include "rules/registry.h"

#include <stdarg.h>

struct rules_set {
    struct arena *arena;
    struct rule **rules;
    unsigned count, room;
};

const struct action_table *const action_tables[] = {
    &action_header_table, &action_uri_table,   &action_flow_table,
    &action_var_table,    &action_reply_table,
};
const size_t action_table_count = sizeof action_tables / sizeof *action_tables;

const char *const hook_names[RULES_HOOK_COUNT] = {
    [RULES_TCP_REQUEST_CONNECTION] = "tcp-request connection",
    [RULES_TCP_REQUEST_SESSION] = "tcp-request session",
    [RULES_TCP_REQUEST_CONTENT] = "tcp-request content",
    [RULES_TCP_RESPONSE_CONTENT] = "tcp-response content",
    [RULES_HTTP_REQUEST] = "http-request",
    [RULES_HTTP_RESPONSE] = "http-response",
    [RULES_HTTP_AFTER_RESPONSE] = "http-after-response",
    [RULES_REDIRECT] = "redirect",
};

/* --- reading words ------------------------------------------------------------------------------ */

static bool begins_condition(const char *word)
{
    return strcmp(word, "if") == 0 || strcmp(word, "unless") == 0;
}

const char *parser_peek(const struct rule_parser *p)
{
    return p->at < p->argc && !begins_condition(p->argv[p->at]) ? p->argv[p->at] : NULL;
}

const char *parser_next(struct rule_parser *p)
{
    const char *word = parser_peek(p);

    if (word)
        p->at++;
    return word;
}

const char *parser_need(struct rule_parser *p, const char *what)
{
    const char *word = parser_next(p);

    if (!word)
        parser_fail(p, "expects %s", what);
    return word;
}

int parser_fail(struct rule_parser *p, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    diag_error(p->c->diag, p->c->loc, "'%s %s' %s", hook_names[p->rule->hook],
               p->rule->hook == RULES_REDIRECT ? "" : p->rule->action->name, text);
    return SP_EINVAL;
}

int parser_fmt(struct rule_parser *p, const char *what)
{
    const char *word = parser_need(p, what);

    if (!word)
        return SP_EINVAL;
    p->rule->fmt = fmt_compile(p->c, word, FMT_HTTP, p->stage);
    return p->rule->fmt ? 0 : SP_EINVAL;
}

int parser_expr(struct rule_parser *p)
{
    int used;

    if (!parser_peek(p))
        return parser_fail(p, "expects a sample expression");
    p->rule->expr = expr_compile(p->c, p->argc - p->at, p->argv + p->at, &used, NULL, p->stage);
    if (!p->rule->expr)
        return SP_EINVAL;
    p->at += used;
    return 0;
}

int parser_regex(struct rule_parser *p, const char *what)
{
    const char *word = parser_need(p, what);
    char why[RULES_WHY_BYTES] = "out of memory";

    if (!word)
        return SP_EINVAL;
    if (!compiler_registry(p->c) ||
        regex_compile(p->c->registry, word, false, true, &p->rule->regex, why, sizeof why) < 0)
        return parser_fail(p, "has an error: %s", why);
    return 0;
}

int parser_field_name(struct rule_parser *p)
{
    const char *word = parser_need(p, "the name of a header field");

    if (!word)
        return SP_EINVAL;
    if (!http_is_token(str_of(word)))
        return parser_fail(p, "expects the name of a header field, '%s' has forbidden characters",
                           word);
    p->rule->name = compiler_str(p->c, str_of(word));
    return p->rule->name.ptr ? 0 : SP_ENOMEM;
}

/* --- finding actions ------------------------------------------------------------------------------- */

static const struct action_def *action_find(struct str name, unsigned hooks)
{
    for (size_t t = 0; t < action_table_count; t++)
        for (size_t i = 0; i < action_tables[t]->count; i++) {
            const struct action_def *a = &action_tables[t]->rows[i];

            if (a->hooks & hooks && str_eq(name, str_of(a->name)))
                return a;
        }
    return NULL;
}

static void unknown_action(struct rules_compiler *c, struct str name, enum rules_hook hook)
{
    const char *names[128];
    size_t n = 0;
    char hint[96], word[64];

    if (known_unsupported(KNOWN_ACTION, name)) {
        diag_error(c->diag, c->loc, "'%s' action '%.*s' is known from HAProxy but not supported",
                   hook_names[hook], STR_FMT(name));
        return;
    }
    if (action_find(name, ~0u)) {
        diag_error(c->diag, c->loc, "action '%.*s' is not available in '%s' rules", STR_FMT(name),
                   hook_names[hook]);
        return;
    }
    for (size_t t = 0; t < action_table_count; t++)
        for (size_t i = 0; i < action_tables[t]->count && n < 128; i++)
            if (action_tables[t]->rows[i].hooks & 1u << hook)
                names[n++] = action_tables[t]->rows[i].name;
    snprintf(word, sizeof word, "%.*s", STR_FMT(name));
    diag_error(c->diag, c->loc, "unknown '%s' action '%.*s'%s", hook_names[hook], STR_FMT(name),
               diag_suggest(hint, sizeof hint, word, names, n));
}

/* --- building ------------------------------------------------------------------------------------------ */

struct rules_set *rules_set_new(struct arena *arena)
{
    struct rules_set *set = arena_zalloc(arena, 1, sizeof *set);

    if (set)
        set->arena = arena;
    return set;
}

static int set_append(struct rules_set *set, struct arena *arena, struct rule *rule)
{
    if (set->count == set->room) {
        unsigned room = set->room ? set->room * 2 : 4;
        struct rule **rules = arena_alloc(arena, room * sizeof(struct rule *));

        if (!rules)
            return SP_ENOMEM;
        if (set->count)
            memcpy(rules, set->rules, set->count * sizeof(struct rule *));
        set->rules = rules;
        set->room = room;
    }
    set->rules[set->count++] = rule;
    return 0;
}

static enum rules_stage stage_of(enum rules_hook hook)
{
    switch (hook) {
    case RULES_TCP_REQUEST_CONNECTION:
    case RULES_TCP_REQUEST_SESSION:
        return STAGE_CONNECTION;
    case RULES_TCP_RESPONSE_CONTENT:
    case RULES_HTTP_RESPONSE:
    case RULES_HTTP_AFTER_RESPONSE:
        return STAGE_RESPONSE;
    default:
        return STAGE_REQUEST;
    }
}

/* HAProxy says so too: a condition on what does not exist here. */
static void check_condition(struct rule_parser *p)
{
    unsigned needs = cond_needs(p->rule->cond);
    const char *lacking = NULL;

    if (p->stage == STAGE_CONNECTION && needs & (NEEDS_REQUEST | NEEDS_RESPONSE))
        lacking = "the contents of a message";
    else if (p->stage == STAGE_REQUEST && needs & NEEDS_RESPONSE)
        lacking = "the response";
    if (lacking)
        diag_warning(p->c->diag, p->c->loc,
                     "the condition of this '%s' rule looks at %s, which does not exist there",
                     hook_names[p->rule->hook], lacking);
}

static int parse_condition(struct rule_parser *p)
{
    if (p->at >= p->argc)
        return 0;
    if (!begins_condition(p->argv[p->at]))
        return parser_fail(p, "expects 'if' or 'unless' followed by a condition, found '%s'",
                           p->argv[p->at]);
    p->rule->cond = rules_cond_compile(p->c, p->argc - p->at, p->argv + p->at);
    if (!p->rule->cond)
        return SP_EINVAL;
    check_condition(p);
    return 0;
}

int rules_set_add(struct rules_set *set, struct rules_compiler *c, enum rules_hook hook, int argc,
                  char *const *argv)
{
    struct rule_parser p = {.c = c, .stage = stage_of(hook), .argc = argc, .argv = argv};
    struct str name;

    if (argc < 1) {
        diag_error(c->diag, c->loc, "'%s' expects an action", hook_names[hook]);
        return SP_EINVAL;
    }
    p.rule = compiler_zalloc(c, 1, sizeof *p.rule);
    if (!p.rule)
        return SP_EINVAL;
    p.rule->hook = hook;
    p.rule->loc = c->loc;
    name = str_of(argv[0]);
    name.len = str_chr(name, '(');
    if (hook == RULES_REDIRECT)
        name = STR("redirect");
    else
        p.at = 1;
    p.rule->action = action_find(name, 1u << hook);
    if (!p.rule->action) {
        unknown_action(c, name, hook);
        return SP_EINVAL;
    }
    if (p.rule->action->parse && p.rule->action->parse(&p) < 0)
        return SP_EINVAL;
    if (parse_condition(&p) < 0)
        return SP_EINVAL;
    if (set_append(set, set->arena, p.rule) < 0) {
        diag_error(c->diag, c->loc, "out of memory");
        return SP_EINVAL;
    }
    return 0;
}

bool rules_set_is_empty(const struct rules_set *set)
{
    return !set || set->count == 0;
}

unsigned rules_set_count(const struct rules_set *set)
{
    return set ? set->count : 0;
}

/* --- folding ------------------------------------------------------------------------------------------------ */

static struct rule *rule_specialize(const struct rule *r, bool listener_tls, struct arena *arena)
{
    struct rule *copy = arena_alloc(arena, sizeof *copy);

    if (!copy)
        return NULL;
    *copy = *r;
    copy->cond = rules_cond_specialize(r->cond, listener_tls, arena);
    if (r->fmt && !(copy->fmt = rules_fmt_specialize(r->fmt, listener_tls, arena)))
        return NULL;
    if (r->expr && !(copy->expr = expr_specialize(r->expr, listener_tls, arena)))
        return NULL;
    if (r->reply && !(copy->reply = reply_specialize(r->reply, listener_tls, arena)))
        return NULL;
    if (r->redirect && !(copy->redirect = redirect_specialize(r->redirect, listener_tls, arena)))
        return NULL;
    return copy;
}

struct rules_set *rules_set_specialize(const struct rules_set *set, bool listener_tls,
                                       struct arena *arena)
{
    struct rules_set *out = rules_set_new(arena);

    if (!out)
        return NULL;
    for (unsigned i = 0; set && i < set->count; i++) {
        const struct rule *r = set->rules[i];
        struct rule *copy;

        if (rules_cond_fold(r->cond, listener_tls) < 0)
            continue;
        copy = rule_specialize(r, listener_tls, arena);
        if (!copy || set_append(out, arena, copy) < 0)
            return NULL;
        /* Nothing comes after a final action without a condition. */
        if (copy->action->final && !copy->cond)
            break;
    }
    return out;
}

/* --- running --------------------------------------------------------------------------------------------------- */

void rules_outcome_init(struct rules_outcome *o)
{
    memset(o, 0, sizeof *o);
    o->timeout_client_us = o->timeout_server_us = o->timeout_tunnel_us = -1;
    o->timeout_connect_us = o->timeout_queue_us = o->timeout_tarpit_us = -1;
    o->retries = -1;
}

static enum rules_verdict run_rules(const struct rules_set *set, struct run *run, bool final)
{
    for (unsigned i = 0; i < set->count; i++) {
        const struct rule *r = set->rules[i];
        enum rules_verdict verdict;

        if (r->cond) {
            enum acl_result holds = cond_test(r->cond, run->ctx, final);

            if (holds == ACL_MISS)
                return RULES_NEED_MORE;
            if (holds == ACL_FAIL)
                continue;
        }
        verdict = r->action->run(r, run);
        if (verdict != RULES_CONTINUE) {
            run->ctx->last_rule = r->loc;
            return verdict;
        }
    }
    return RULES_CONTINUE;
}

enum rules_verdict rules_set_run(const struct rules_set *set, struct rules_ctx *ctx,
                                 struct rules_outcome *outcome)
{
    struct run run = {.ctx = ctx, .outcome = outcome};
    bool final_data = ctx->final_data, response_stage = ctx->response_stage;
    enum rules_hook hook;
    enum rules_verdict verdict;

    if (rules_set_is_empty(set))
        return RULES_CONTINUE;
    hook = set->rules[0]->hook;
    ctx->response_stage = stage_of(hook) == STAGE_RESPONSE;
    run.msg = ctx->response_stage ? ctx->res : ctx->req;
    /* Only content inspection waits for bytes. */
    if (hook != RULES_TCP_REQUEST_CONTENT && hook != RULES_TCP_RESPONSE_CONTENT)
        ctx->final_data = true;
    verdict = run_rules(set, &run, ctx->final_data);
    ctx->final_data = final_data;
    ctx->response_stage = response_stage;
    return verdict;
}

void rules_release_all(struct rules_registry *registry)
{
    if (!registry)
        return;
    while (registry->regexes)
        registry->regexes = regex_unlink(registry->regexes);
    patterns_release(registry);
    pthread_mutex_destroy(&registry->edit_lock);
}
