/*
 * Compiling and evaluating sample expressions.
 */
#include "rules/expr.h"

#include "rules/logformat.h"
#include "rules/registry.h"

/* --- the compiler's helpers ------------------------------------------------------------ */

struct rules_registry *rules_registry_new(struct arena *arena)
{
    struct rules_registry *r = arena_zalloc(arena, 1, sizeof *r);

    if (!r)
        return NULL;
    r->arena = arena;
    r->patterns_tail = &r->patterns;
    pthread_mutex_init(&r->edit_lock, NULL);
    return r;
}

struct rules_registry *compiler_registry(struct rules_compiler *c)
{
    if (!c->registry) {
        c->registry = rules_registry_new(c->arena);
        if (!c->registry)
            diag_error(c->diag, c->loc, "out of memory");
    }
    return c->registry;
}

void *compiler_zalloc(struct rules_compiler *c, size_t count, size_t bytes)
{
    void *p = arena_zalloc(c->arena, count, bytes);

    if (!p)
        diag_error(c->diag, c->loc, "out of memory");
    return p;
}

struct str compiler_str(struct rules_compiler *c, struct str s)
{
    struct str copy = arena_str(c->arena, s);

    if (!copy.ptr)
        diag_error(c->diag, c->loc, "out of memory");
    return copy;
}

char *compiler_cstr(struct rules_compiler *c, const char *s)
{
    return (char *)(uintptr_t)compiler_str(c, str_of(s)).ptr;
}

const struct rules_log *ctx_log(struct rules_ctx *ctx)
{
    if (ctx->log)
        return ctx->log;
    return ctx->host && ctx->host->log ? ctx->host->log(ctx->stream) : NULL;
}

/* --- the tables ---------------------------------------------------------------------------- */

const struct fetch_def *fetch_find(struct str name)
{
    for (size_t t = 0; t < fetch_table_count; t++)
        for (size_t i = 0; i < fetch_tables[t]->count; i++)
            if (str_eq(name, str_of(fetch_tables[t]->rows[i].name)))
                return &fetch_tables[t]->rows[i];
    return NULL;
}

const struct conv_def *conv_find(struct str name)
{
    for (size_t t = 0; t < conv_table_count; t++)
        for (size_t i = 0; i < conv_tables[t]->count; i++)
            if (str_eq(name, str_of(conv_tables[t]->rows[i].name)))
                return &conv_tables[t]->rows[i];
    return NULL;
}

#define CANDIDATES_MAX 512

static void unknown_fetch(struct rules_compiler *c, struct str name)
{
    const char *names[CANDIDATES_MAX];
    size_t n = 0;
    char hint[128], word[64];

    if (known_unsupported(KNOWN_FETCH, name)) {
        diag_error(c->diag, c->loc, "sample fetch '%.*s' is known from HAProxy but not supported",
                   STR_FMT(name));
        return;
    }
    for (size_t t = 0; t < fetch_table_count; t++)
        for (size_t i = 0; i < fetch_tables[t]->count && n < CANDIDATES_MAX; i++)
            names[n++] = fetch_tables[t]->rows[i].name;
    snprintf(word, sizeof word, "%.*s", STR_FMT(name));
    diag_error(c->diag, c->loc, "unknown sample fetch '%.*s'%s", STR_FMT(name),
               diag_suggest(hint, sizeof hint, word, names, n));
}

static void unknown_conv(struct rules_compiler *c, struct str name)
{
    const char *names[CANDIDATES_MAX];
    size_t n = 0;
    char hint[128], word[64];

    if (known_unsupported(KNOWN_CONVERTER, name)) {
        diag_error(c->diag, c->loc, "converter '%.*s' is known from HAProxy but not supported",
                   STR_FMT(name));
        return;
    }
    for (size_t t = 0; t < conv_table_count; t++)
        for (size_t i = 0; i < conv_tables[t]->count && n < CANDIDATES_MAX; i++)
            names[n++] = conv_tables[t]->rows[i].name;
    snprintf(word, sizeof word, "%.*s", STR_FMT(name));
    diag_error(c->diag, c->loc, "unknown converter '%.*s'%s", STR_FMT(name),
               diag_suggest(hint, sizeof hint, word, names, n));
}

static struct str name_at(const char *text)
{
    size_t n = 0;

    while (is_name_char(text[n]))
        n++;
    return str_make(text, n);
}

/* --- compiling ------------------------------------------------------------------------------ */

static bool is_header_fetch(const struct fetch_def *def)
{
    return def->args && strncmp(def->args, "[<name>", 7) == 0;
}

static int compile_call(struct rules_compiler *c, struct rules_expr *e, const struct fetch_def *def,
                        const char **text)
{
    char why[RULES_WHY_BYTES] = "";
    int status;

    e->fetch.def = def;
    status = args_parse(c, def->signature, text, &e->fetch.args, why);
    if (status == 0 && def->check)
        status = def->check(c, &e->fetch.args, why);
    if (status < 0) {
        diag_error(c->diag, c->loc, "sample fetch '%s': %s", def->name,
                   why[0] ? why : sp_status_text(status));
        return SP_EINVAL;
    }
    if (e->fetch.args.count && is_header_fetch(def))
        e->fetch.field_id = (uint16_t)http_field_id_of(e->fetch.args.v[0].s);
    e->type = def->type;
    e->needs = def->needs;
    return 0;
}

/* Where the list of converters stands while it grows. */
struct conv_list {
    struct conv_call *v;
    unsigned count, room;
};

static struct conv_call *conv_append(struct rules_compiler *c, struct conv_list *list)
{
    if (list->count == list->room) {
        unsigned room = list->room ? list->room * 2 : 4;
        struct conv_call *v = compiler_zalloc(c, room, sizeof *v);

        if (!v)
            return NULL;
        if (list->count)
            memcpy(v, list->v, list->count * sizeof *v);
        list->v = v;
        list->room = room;
    }
    return &list->v[list->count++];
}

static int compile_conv(struct rules_compiler *c, struct rules_expr *e, struct conv_list *list,
                        const struct conv_def *def, const char **text)
{
    char why[RULES_WHY_BYTES] = "";
    struct conv_call *v;
    int status;

    if (!value_can_cast(e->type, def->in)) {
        diag_error(c->diag, c->loc, "converter '%s' cannot be applied to a value of type %s",
                   def->name, value_type_name(e->type));
        return SP_EINVAL;
    }
    v = conv_append(c, list);
    if (!v)
        return SP_ENOMEM;
    v->def = def;
    v->needs = def->needs;
    status = args_parse(c, def->signature, text, &v->args, why);
    if (status == 0 && def->check)
        status = def->check(c, v, why);
    if (status == SP_EEXIST) /* the check has told already */
        return SP_EINVAL;
    if (status < 0) {
        diag_error(c->diag, c->loc, "converter '%s': %s", def->name,
                   why[0] ? why : sp_status_text(status));
        return SP_EINVAL;
    }
    e->needs |= v->needs;
    if (def->out != VALUE_SAME)
        e->type = def->out;
    else if (def->in != VALUE_ANY)
        e->type = def->in;
    return 0;
}

/*
 * Converters follow each other after commas; in HAProxy's old form the next
 * words may be converters too. `words` NULL: this word alone.
 */
static int compile_convs(struct rules_compiler *c, struct rules_expr *e, const char **text,
                         bool stop_at_foreign, int argc, char *const *argv, int *word)
{
    struct conv_list list = {NULL, 0, 0};

    for (;;) {
        const char *in = *text;
        bool own_word = false;
        struct str name;
        const struct conv_def *def;

        if (*in && *in != ',') {
            if (stop_at_foreign)
                break;
            diag_error(c->diag, c->loc, "expected a comma before '%s' in expression '%s'", in,
                       e->text);
            return SP_EINVAL;
        }
        while (*in == ',')
            in++;
        if (!*in) {
            if (!word || *word + 1 >= argc)
                break;
            in = argv[*word + 1];
            own_word = true;
        }
        name = name_at(in);
        def = name.len ? conv_find(name) : NULL;
        if (!def) {
            if (own_word)
                break;
            unknown_conv(c, name);
            return SP_EINVAL;
        }
        if (own_word)
            (*word)++;
        in += name.len;
        if (compile_conv(c, e, &list, def, &in) < 0)
            return SP_EINVAL;
        *text = in;
    }
    e->convs = list.v;
    e->conv_count = list.count;
    return 0;
}

static int check_stage(struct rules_compiler *c, const struct rules_expr *e, enum rules_stage stage)
{
    const char *lacking = NULL;

    if (stage == STAGE_CONNECTION && e->needs & (NEEDS_REQUEST | NEEDS_RESPONSE | NEEDS_PAYLOAD))
        lacking = "the contents of a message";
    else if (stage == STAGE_REQUEST && e->needs & NEEDS_RESPONSE)
        lacking = "the response";
    if (!lacking)
        return 0;
    diag_error(c->diag, c->loc, "sample fetch '%s' needs %s, which does not exist here",
               e->fetch.def->name, lacking);
    return SP_EINVAL;
}

/* Whether nothing but the configuration decides the value. */
static bool is_constant(const struct rules_expr *e)
{
    return e->needs == 0;
}

static void settle(struct rules_compiler *c, struct rules_expr *e)
{
    struct rules_ctx ctx = {.arena = c->arena};
    struct fetch_iter it = {0};

    if (!is_constant(e))
        return;
    e->known = expr_next(e, &ctx, &it, &e->value) ? EXPR_VALUE : EXPR_FAILS;
}

struct rules_expr *expr_compile_fetch(struct rules_compiler *c, const struct fetch_def *def,
                                      const char *word, const char *text)
{
    struct rules_expr *e = compiler_zalloc(c, 1, sizeof *e);

    if (!e)
        return NULL;
    e->text = compiler_str(c, str_of(word)).ptr;
    if (!e->text || compile_call(c, e, def, &text) < 0)
        return NULL;
    if (compile_convs(c, e, &text, false, 0, NULL, NULL) < 0)
        return NULL;
    settle(c, e);
    return e;
}

struct rules_expr *expr_compile(struct rules_compiler *c, int argc, char *const *argv, int *used,
                                const char **end, enum rules_stage stage)
{
    struct rules_expr *e;
    const struct fetch_def *def;
    struct str name;
    const char *text;
    int word = 0;

    if (argc < 1 || !argv[0] || !argv[0][0]) {
        diag_error(c->diag, c->loc, "a sample expression is missing");
        return NULL;
    }
    text = argv[0];
    name = name_at(text);
    if (!name.len) {
        diag_error(c->diag, c->loc, "expected the name of a sample fetch, found '%s'", text);
        return NULL;
    }
    def = fetch_find(name);
    if (!def) {
        unknown_fetch(c, name);
        return NULL;
    }
    e = compiler_zalloc(c, 1, sizeof *e);
    if (!e)
        return NULL;
    e->text = compiler_str(c, str_of(argv[0])).ptr;
    text += name.len;
    if (!e->text || compile_call(c, e, def, &text) < 0)
        return NULL;
    if (compile_convs(c, e, &text, end != NULL, argc, argv, end ? NULL : &word) < 0)
        return NULL;
    if (end)
        *end = text;
    if (check_stage(c, e, stage) < 0)
        return NULL;
    settle(c, e);
    *used = word + 1;
    return e;
}

struct rules_expr *rules_expr_compile(struct rules_compiler *c, int argc, char *const *argv,
                                      int *used)
{
    return expr_compile(c, argc, argv, used, NULL, STAGE_ANY);
}

/* --- evaluating -------------------------------------------------------------------------------- */

static bool convert(const struct rules_expr *e, struct rules_ctx *ctx, struct sample *s)
{
    for (unsigned i = 0; i < e->conv_count; i++) {
        const struct conv_call *v = &e->convs[i];

        if (v->def->in != VALUE_ANY && !value_cast(s, v->def->in, ctx->arena))
            return false;
        if (!v->def->run(v, ctx, s))
            return false;
    }
    return true;
}

bool expr_next(const struct rules_expr *e, struct rules_ctx *ctx, struct fetch_iter *it,
               struct sample *out)
{
    if (e->known != EXPR_DYNAMIC) {
        it->more = it->may_change = false;
        *out = e->value;
        return e->known == EXPR_VALUE;
    }
    it->may_change = false;
    it->more = false;
    return e->fetch.def->run(&e->fetch, ctx, it, out) && convert(e, ctx, out);
}

bool rules_expr_eval(const struct rules_expr *e, struct rules_ctx *ctx, struct sample *out)
{
    struct fetch_iter it = {0};

    return expr_next(e, ctx, &it, out);
}

bool rules_expr_str(const struct rules_expr *e, struct rules_ctx *ctx, struct str *out)
{
    struct sample s;

    if (!rules_expr_eval(e, ctx, &s) || !value_cast(&s, VALUE_STR, ctx->arena))
        return false;
    *out = s.u.s;
    return true;
}

bool rules_expr_needs_response(const struct rules_expr *e)
{
    return e->needs & NEEDS_RESPONSE;
}

/* --- folding -------------------------------------------------------------------------------------- */

enum expr_known expr_fold(const struct rules_expr *e, bool listener_tls, struct arena *arena,
                          struct sample *value)
{
    const struct fetch_def *def = e->fetch.def;
    struct rules_ctx ctx = {.arena = arena};

    if (e->known != EXPR_DYNAMIC) {
        *value = e->value;
        return e->known;
    }
    if (listener_tls) {
        if (!def->tls_true)
            return EXPR_DYNAMIC;
        value_bool(value, true);
    } else {
        if (def->plain == PLAIN_UNKNOWN)
            return EXPR_DYNAMIC;
        /* Whatever the converters would do, they are not reached. */
        if (def->plain == PLAIN_FAILS)
            return EXPR_FAILS;
        value_bool(value, false);
    }
    for (unsigned i = 0; i < e->conv_count; i++)
        if (e->convs[i].needs)
            return EXPR_DYNAMIC;
    return convert(e, &ctx, value) ? EXPR_VALUE : EXPR_FAILS;
}

const struct rules_expr *expr_specialize(const struct rules_expr *e, bool listener_tls,
                                         struct arena *arena)
{
    struct rules_expr *folded;
    struct sample value;
    enum expr_known known = expr_fold(e, listener_tls, arena, &value);

    if (known == EXPR_DYNAMIC || e->known != EXPR_DYNAMIC)
        return e;
    folded = arena_alloc(arena, sizeof *folded);
    if (!folded)
        return NULL;
    *folded = *e;
    folded->known = known;
    if (known == EXPR_VALUE)
        folded->value = value;
    return folded;
}
