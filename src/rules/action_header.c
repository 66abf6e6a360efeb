/*
 * Actions on header fields.
 */
#include "rules/action.h"
#include "rules/message.h"

/* --- adding and setting ------------------------------------------------------------------------- */

enum { ADD, SET };

static int parse_set(struct rule_parser *p)
{
    int status = parser_field_name(p);

    return status < 0 ? status : parser_fmt(p, "a name and a format");
}

static enum rules_verdict run_set(const struct rule *r, struct run *run)
{
    struct str value;

    if (!run->msg)
        return RULES_CONTINUE;
    value = rules_fmt_str(r->fmt, run->ctx);
    if (!value.ptr)
        return RULES_ERROR;
    return rewrite_result(run, r->action->data == SET ? http_msg_set(run->msg, r->name, value)
                                                      : http_msg_add(run->msg, r->name, value));
}

/* --- deleting --------------------------------------------------------------------------------------- */

static int parse_del(struct rule_parser *p)
{
    const char *name = parser_need(p, "the name of a header field");
    const char *flag, *method;
    char why[RULES_WHY_BYTES];
    int m = PAT_STR;

    if (!name)
        return SP_EINVAL;
    flag = parser_peek(p);
    if (flag && strcmp(flag, "-m") == 0) {
        parser_next(p);
        method = parser_need(p, "a matching method after '-m'");
        if (!method)
            return SP_EINVAL;
        m = pat_match_find(str_of(method));
        if (m != PAT_STR && m != PAT_BEG && m != PAT_END && m != PAT_SUB && m != PAT_REG)
            return parser_fail(p, "does not match by '%s', expected str, beg, end, sub or reg",
                               method);
    }
    p->rule->number = m;
    p->rule->name = compiler_str(p->c, str_of(name));
    if (!p->rule->name.ptr || !compiler_registry(p->c))
        return SP_ENOMEM;
    if (m == PAT_REG &&
        regex_compile(p->c->registry, name, false, false, &p->rule->regex, why, sizeof why) < 0)
        return parser_fail(p, "has an error: %s", why);
    return 0;
}

static bool name_matches(const struct rule *r, struct str name)
{
    struct str wanted = r->name;

    switch (r->number) {
    case PAT_BEG:
        return str_istarts(name, wanted);
    case PAT_END:
        return name.len >= wanted.len && str_ieq(str_from(name, name.len - wanted.len), wanted);
    case PAT_SUB:
        return str_ifind(name, wanted) < name.len || !wanted.len;
    case PAT_REG:
        return regex_test(r->regex, name);
    default:
        return str_ieq(name, wanted);
    }
}

static enum rules_verdict run_del(const struct rule *r, struct run *run)
{
    if (!run->msg)
        return RULES_CONTINUE;
    if (r->number == PAT_STR) {
        http_msg_del(run->msg, r->name);
        return RULES_CONTINUE;
    }
    for (uint32_t i = run->msg->field_count; i-- > 0;)
        if (name_matches(r, run->msg->fields[i].name))
            http_msg_del_at(run->msg, i);
    return RULES_CONTINUE;
}

/* --- replacing ------------------------------------------------------------------------------------------ */

enum { WHOLE, VALUES };

#define VALUE_MAX 16384

static int parse_replace(struct rule_parser *p)
{
    int status = parser_field_name(p);

    if (status == 0)
        status = parser_regex(p, "a name, a regular expression and a format");
    return status < 0 ? status : parser_fmt(p, "a name, a regular expression and a format");
}

/* The replacement's format is evaluated once, and only when something matches. */
struct replacement {
    const struct rule *rule;
    struct run *run;
    struct str text; /* ptr NULL: not evaluated yet */
};

/* Appends what `value` becomes; 1 when it matched, 0 when not, or an error. */
static int replace_one(struct replacement *rep, struct str value, struct buf *out)
{
    struct regex_groups g;
    int status;

    if (!regex_match(rep->rule->regex, value, false, &g))
        return 0;
    if (!rep->text.ptr) {
        rep->text = rules_fmt_str(rep->rule->fmt, rep->run->ctx);
        if (!rep->text.ptr)
            return SP_ENOMEM;
    }
    status = regex_expand(rep->text, value, &g, out);
    return status < 0 ? status : 1;
}

/* Every value of the list in turn; blanks around a replaced one go with it. */
static int replace_values(struct replacement *rep, struct str line, struct buf *out)
{
    int changed = 0, status = 0;

    for (;;) {
        struct str item = str_make(line.ptr, list_value_end(line));
        int r = replace_one(rep, str_trim(item), out);

        if (r < 0)
            return r;
        changed |= r;
        if (r == 0)
            status = buf_put(out, item);
        if (status == 0 && item.len < line.len)
            status = buf_put_char(out, ',');
        if (status < 0)
            return status;
        if (item.len == line.len)
            return changed;
        line = str_from(line, item.len + 1);
    }
}

static enum rules_verdict run_replace(const struct rule *r, struct run *run)
{
    struct replacement rep = {r, run, STR_NULL};
    uint16_t id = (uint16_t)http_field_id_of(r->name);
    char text[VALUE_MAX];

    for (uint32_t i = 0; run->msg && i < run->msg->field_count; i++) {
        struct http_field *f = &run->msg->fields[i];
        struct buf b = {text, sizeof text, 0, 0};
        struct str copy;
        int status;

        if (!field_matches(f, id, r->name))
            continue;
        status = r->action->data == WHOLE ? replace_one(&rep, f->value, &b)
                                          : replace_values(&rep, f->value, &b);
        if (status > 0) {
            copy = arena_str(run->ctx->arena, buf_str(&b));
            status = copy.ptr ? http_msg_set_value(run->msg, f, copy) : SP_ENOMEM;
        }
        if (status < 0 && rewrite_result(run, status) != RULES_CONTINUE)
            return RULES_ERROR;
    }
    return RULES_CONTINUE;
}

#define HTTP (HOOK(HTTP_REQUEST) | HOOK(HTTP_RESPONSE) | HOOK(HTTP_AFTER_RESPONSE))

static const struct action_def rows[] = {
    {"add-header", "<name> <fmt>", HTTP, parse_set, run_set, ADD, false, "appends a header field"},
    {"set-header", "<name> <fmt>", HTTP, parse_set, run_set, SET, false,
     "sets a header field, replacing all of that name"},
    {"del-header", "<name> [ -m <meth> ]", HTTP, parse_del, run_del, 0, false,
     "removes header fields by name"},
    {"replace-header", "<name> <match-regex> <replace-fmt>", HTTP, parse_replace, run_replace,
     WHOLE, false, "replaces whole values that match"},
    {"replace-value", "<name> <match-regex> <replace-fmt>", HTTP, parse_replace, run_replace,
     VALUES, false, "replaces comma-separated values that match"},
};

const struct action_table action_header_table = {rows, sizeof rows / sizeof *rows};
