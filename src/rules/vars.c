#include "rules/vars.h"

#include "rules/expr.h"

static const struct {
    const char *prefix;
    enum rules_scope scope;
} scopes[] = {
    {"proc.", RULES_SCOPE_PROC}, {"sess.", RULES_SCOPE_SESS}, {"txn.", RULES_SCOPE_TXN},
    {"req.", RULES_SCOPE_REQ},   {"res.", RULES_SCOPE_RES},   {"check.", RULES_SCOPE_CHECK},
};

static const struct {
    const char *name;
    unsigned bit;
} conditions[] = {
    {"ifexists", VAR_IF_EXISTS}, {"ifnotexists", VAR_IF_NOT_EXISTS},
    {"ifempty", VAR_IF_EMPTY},   {"ifnotempty", VAR_IF_NOT_EMPTY},
    {"ifset", VAR_IF_SET},       {"ifnotset", VAR_IF_NOT_SET},
    {"ifgt", VAR_IF_GREATER},    {"iflt", VAR_IF_LESS},
};

int var_parse(struct str name, struct var_ref *out, const char **why)
{
    for (size_t i = 0; i < sizeof scopes / sizeof *scopes; i++) {
        struct str prefix = str_of(scopes[i].prefix);

        if (!str_starts(name, prefix) || name.len == prefix.len)
            continue;
        name = str_from(name, prefix.len);
        for (size_t k = 0; k < name.len; k++) {
            char ch = name.ptr[k];

            if (!is_name_char(ch) || ch == '-' || ch == '+' || ch == ':') {
                *why = "variable names are made of letters, digits, '_' and '.'";
                return SP_EINVAL;
            }
        }
        out->scope = scopes[i].scope;
        out->name = hash_fnv1a64(name, 0);
        return 0;
    }
    *why =
        "a variable name must start with its scope: 'proc.', 'sess.', 'txn.', 'req.', 'res.' or 'check.'";
    return SP_EINVAL;
}

unsigned var_condition(struct str name)
{
    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++)
        if (str_eq(name, str_of(conditions[i].name)))
            return conditions[i].bit;
    return 0;
}

static struct rules_vars *scope_vars(struct rules_ctx *ctx, enum rules_scope scope)
{
    switch (scope) {
    case RULES_SCOPE_SESS:
        return ctx->sess_vars;
    case RULES_SCOPE_TXN:
        return &ctx->txn_vars;
    case RULES_SCOPE_REQ:
        return &ctx->req_vars;
    case RULES_SCOPE_RES:
        return &ctx->res_vars;
    default:
        return NULL;
    }
}

static struct rules_var *find(const struct rules_vars *vars, uint64_t name)
{
    for (struct rules_var *v = vars ? vars->first : NULL; v; v = v->next)
        if (v->name == name)
            return v;
    return NULL;
}

bool var_get(const struct var_ref *ref, struct rules_ctx *ctx, struct sample *out)
{
    const struct rules_vars *vars =
        ref->scope == RULES_SCOPE_PROC ? ctx->proc_vars : scope_vars(ctx, ref->scope);
    const struct rules_var *v = find(vars, ref->name);

    if (!v || !v->is_set)
        return false;
    *out = v->value;
    /* The storage of a session's variable is written again, while what was read may stand in a header by then. */
    if (ref->scope == RULES_SCOPE_SESS && (out->type == SAMPLE_STR || out->type == SAMPLE_BIN)) {
        out->u.s = arena_str(ctx->arena, v->value.u.s);
        return out->u.s.ptr != NULL;
    }
    return true;
}

/*
 * Stores a copy. With `reuse` the storage grows by doubling, so that a session's variable set over and over costs
 * bounded memory; otherwise it is new each time, because headers and other samples refer to the former one.
 */
static bool store(struct rules_var *v, const struct sample *value, struct arena *arena, bool reuse)
{
    struct str s = value->u.s;

    if (value->type != SAMPLE_STR && value->type != SAMPLE_BIN) {
        v->value = *value;
        return true;
    }
    if (!reuse || v->storage_bytes < s.len + 1) {
        size_t bytes = reuse && v->storage_bytes ? v->storage_bytes : 16;
        char *storage;

        while (bytes < s.len + 1)
            bytes *= 2;
        storage = arena_alloc(arena, bytes);
        if (!storage)
            return false;
        v->storage = storage;
        v->storage_bytes = bytes;
    }
    /* The new value may be a part of the old one. */
    memmove(v->storage, s.ptr, s.len);
    v->storage[s.len] = '\0';
    v->value.type = value->type;
    v->value.u.s = str_make(v->storage, s.len);
    return true;
}

static bool conditions_hold(const struct rules_var *v, const struct sample *value, unsigned bits)
{
    bool exists = v && v->is_set;
    bool is_text = value->type == SAMPLE_STR || value->type == SAMPLE_BIN;
    bool empty = is_text && !value->u.s.len;

    if ((bits & VAR_IF_EXISTS && !exists) || (bits & VAR_IF_NOT_EXISTS && exists) ||
        (bits & VAR_IF_SET && !exists) || (bits & VAR_IF_NOT_SET && exists) ||
        (bits & VAR_IF_EMPTY && !empty) || (bits & VAR_IF_NOT_EMPTY && empty))
        return false;
    if (bits & (VAR_IF_GREATER | VAR_IF_LESS)) {
        if (!exists || v->value.type != SAMPLE_INT || value->type != SAMPLE_INT)
            return false;
        if (bits & VAR_IF_GREATER && v->value.u.i <= value->u.i)
            return false;
        if (bits & VAR_IF_LESS && v->value.u.i >= value->u.i)
            return false;
    }
    return true;
}

static bool set_in(struct rules_vars *vars, const struct var_ref *ref, const struct sample *value,
                   unsigned bits, struct arena *arena)
{
    struct rules_var *v = find(vars, ref->name);

    if (bits && !conditions_hold(v, value, bits))
        return false;
    if (!v) {
        v = arena_zalloc(arena, 1, sizeof *v);
        if (!v)
            return false;
        v->name = ref->name;
        v->next = vars->first;
        vars->first = v;
    }
    v->is_set = store(v, value, arena, ref->scope == RULES_SCOPE_SESS);
    return v->is_set;
}

bool var_set(const struct var_ref *ref, struct rules_ctx *ctx, const struct sample *value,
             unsigned bits)
{
    struct rules_vars *vars = scope_vars(ctx, ref->scope);
    struct arena *arena = ref->scope == RULES_SCOPE_SESS ? ctx->sess_arena : ctx->arena;

    return vars && arena && set_in(vars, ref, value, bits, arena);
}

void var_unset(const struct var_ref *ref, struct rules_ctx *ctx)
{
    struct rules_var *v = find(scope_vars(ctx, ref->scope), ref->name);

    if (v)
        v->is_set = false;
}

int rules_proc_var_set(struct rules_compiler *c, struct rules_vars *vars, const char *name,
                       const struct rules_expr *e)
{
    struct rules_ctx ctx = {.arena = c->arena, .proc_vars = vars};
    struct var_ref ref;
    struct sample value;
    const char *why;

    if (var_parse(str_of(name), &ref, &why) < 0) {
        diag_error(c->diag, c->loc, "variable '%s': %s", name, why);
        return SP_EINVAL;
    }
    if (ref.scope != RULES_SCOPE_PROC) {
        diag_error(c->diag, c->loc, "variable '%s': only the scope 'proc' exists here", name);
        return SP_EINVAL;
    }
    if (!rules_expr_eval(e, &ctx, &value)) {
        diag_error(c->diag, c->loc,
                   "variable '%s': the expression '%s' has no value when the configuration is read",
                   name, e->text);
        return SP_EINVAL;
    }
    if (!set_in(vars, &ref, &value, 0, c->arena)) {
        diag_error(c->diag, c->loc, "out of memory");
        return SP_EINVAL;
    }
    return 0;
}
