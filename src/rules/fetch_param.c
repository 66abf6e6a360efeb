/*
 * Fetches of parameters: in the target ("?a=1&b=2") and in form bodies.
 */
#include "rules/message.h"
#include "rules/tables.h"

enum { TEXT, INTEGER, BODY };

struct spec {
    struct str name;
    char delimiter;
    bool ignore_case;
};

static bool is_end(char ch, char delimiter)
{
    return ch == '&' || ch == ';' || ch == delimiter;
}

/* The next value of the parameter in *rest, which is left behind it. Without a name: of any parameter. */
static bool next_param(const struct spec *p, struct str *rest, struct str *value)
{
    while (rest->len) {
        struct str s = *rest;
        size_t end = 0, equal;
        bool hit;

        while (end < s.len && !is_end(s.ptr[end], p->delimiter))
            end++;
        *rest = str_from(s, end + 1);
        s.len = end;
        equal = str_chr(s, '=');
        if (equal == s.len)
            continue;
        *value = str_from(s, equal + 1);
        if (!p->name.len)
            return true;
        s.len = equal;
        hit = p->ignore_case ? str_ieq(s, p->name) : str_eq(s, p->name);
        if (hit)
            return true;
    }
    return false;
}

static struct spec spec_of(const struct fetch_call *f)
{
    const struct rules_arg *name = arg_at(&f->args, 0);
    const struct rules_arg *delimiter = f->def->data == BODY ? NULL : arg_at(&f->args, 1);
    const struct rules_arg *option = arg_at(&f->args, f->def->data == BODY ? 1 : 2);
    struct spec p = {STR(""), f->def->data == BODY ? '&' : '?', false};

    if (name)
        p.name = name->s;
    if (delimiter && delimiter->s.len)
        p.delimiter = delimiter->s.ptr[0];
    p.ignore_case = option && option->s.len && option->s.ptr[0] == 'i';
    return p;
}

/* Where parameters begin. */
static bool source_of(const struct fetch_call *f, const struct spec *p, struct rules_ctx *ctx,
                      struct str *out)
{
    struct sample body;
    size_t mark;

    if (!ctx->req)
        return false;
    if (f->def->data == BODY) {
        if (!ctx_item(ctx, RULES_PAYLOAD_REQ, &body))
            return false;
        *out = body.u.s;
        return true;
    }
    mark = str_chr(ctx->req->target, p->delimiter);
    if (mark == ctx->req->target.len)
        return false;
    *out = str_from(ctx->req->target, mark + 1);
    return true;
}

static bool fetch_param(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                        struct sample *out)
{
    struct spec p = spec_of(f);
    struct str value;

    if (!it->started) {
        it->started = true;
        if (!source_of(f, &p, ctx, &it->rest))
            return false;
    }
    if (!next_param(&p, &it->rest, &value))
        return false;
    it->more = it->all && it->rest.len;
    if (f->def->data == INTEGER)
        return value_int(out, value_read_int(value, NULL));
    return value_str(out, value);
}

#define PARAM "?sss", "[<name>[,<delim>[,i]]]"

static const struct fetch_def rows[] = {
    {"url_param", PARAM, VALUE_STR, NEEDS_REQUEST, fetch_param, TEXT,
     .help = "first value of a parameter of the target"},
    {"urlp", PARAM, VALUE_STR, NEEDS_REQUEST, fetch_param, TEXT, .help = "same as url_param"},
    {"urlp_val", PARAM, VALUE_INT, NEEDS_REQUEST, fetch_param, INTEGER,
     .help = "parameter of the target as an integer"},
    {"req.body_param", "?ss", "[<name>[,i]]", VALUE_BIN, NEEDS_REQUEST | NEEDS_PAYLOAD, fetch_param,
     BODY, .help = "first value of a parameter of a form body, as far as it is buffered"},
};

const struct fetch_table fetch_param_table = TABLE_OF(rows);
