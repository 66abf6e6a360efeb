/*
 * Conditions: alternatives ("or") of terms that must all hold, each an ACL or its opposite.
 */
#include "rules/acl.h"

struct cond_term {
    struct cond_term *next;
    const struct acl *acl;
    bool negated;
};

struct cond_suite {
    struct cond_suite *next;
    struct cond_term *terms;
};

struct rules_cond {
    struct cond_suite *suites;
    bool unless;
};

/* --- compiling ------------------------------------------------------------------------------ */

static void unknown_acl(struct rules_compiler *c, const char *name)
{
    const char *names[256];
    size_t n = 0;
    char hint[128];

    if (strcmp(name, "RDP_COOKIE") == 0) {
        diag_error(c->diag, c->loc, "ACL 'RDP_COOKIE' is known from HAProxy but not supported");
        return;
    }
    for (const struct acl *a = c->acls ? c->acls->acls : NULL; a && n < 200; a = a->next)
        names[n++] = a->name;
    for (size_t i = 0; i < acl_predefined_count; i++)
        names[n++] = acl_predefined_names[i];
    diag_error(c->diag, c->loc, "no such ACL '%s'%s", name,
               diag_suggest(hint, sizeof hint, name, names, n));
}

/* The ACL at word *i, a name or "{ … }"; *i is left at its last word. */
static struct acl *parse_acl(struct rules_compiler *c, int argc, char *const *argv,
                             const char *word, int *i)
{
    int end = *i + 1;
    struct acl *a;

    if (strcmp(word, "{") != 0) {
        unsigned errors = c->diag->errors;

        a = acl_lookup(c, word);
        if (!a && c->diag->errors == errors)
            unknown_acl(c, word);
        return a;
    }
    while (end < argc && strcmp(argv[end], "}") != 0)
        end++;
    if (end == argc) {
        diag_error(c->diag, c->loc, "missing closing '}' in condition");
        return NULL;
    }
    a = acl_anonymous(c, end - *i - 1, argv + *i + 1);
    *i = end;
    return a;
}

static int parse_terms(struct rules_compiler *c, struct rules_cond *cond, int argc,
                       char *const *argv)
{
    struct cond_suite **suite_tail = &cond->suites, *suite = NULL;
    struct cond_term **term_tail = NULL, *term;
    bool negated = false;

    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];

        while (*word == '!') {
            negated = !negated;
            word++;
        }
        /* "! name" is as good as "!name". */
        if (!*word)
            continue;
        if (strcasecmp(word, "or") == 0 || strcmp(word, "||") == 0) {
            suite = NULL;
            negated = false;
            continue;
        }
        term = compiler_zalloc(c, 1, sizeof *term);
        if (!term)
            return SP_ENOMEM;
        term->acl = parse_acl(c, argc, argv, word, &i);
        if (!term->acl)
            return SP_EINVAL;
        term->negated = negated;
        negated = false;
        if (!suite) {
            suite = compiler_zalloc(c, 1, sizeof *suite);
            if (!suite)
                return SP_ENOMEM;
            *suite_tail = suite;
            suite_tail = &suite->next;
            term_tail = &suite->terms;
        }
        *term_tail = term;
        term_tail = &term->next;
    }
    return 0;
}

struct rules_cond *rules_cond_compile(struct rules_compiler *c, int argc, char *const *argv)
{
    struct rules_cond *cond;

    if (argc < 1 || (strcmp(argv[0], "if") != 0 && strcmp(argv[0], "unless") != 0)) {
        diag_error(c->diag, c->loc,
                   "expected a condition starting with 'if' or 'unless', found '%s'",
                   argc ? argv[0] : "");
        return NULL;
    }
    cond = compiler_zalloc(c, 1, sizeof *cond);
    if (!cond)
        return NULL;
    cond->unless = argv[0][0] == 'u';
    if (parse_terms(c, cond, argc - 1, argv + 1) < 0)
        return NULL;
    if (!cond->suites) {
        diag_error(c->diag, c->loc, "the condition after '%s' is empty", argv[0]);
        return NULL;
    }
    return cond;
}

/* --- evaluating ---------------------------------------------------------------------------------- */

static bool sets_match(const struct acl_test *t, struct rules_ctx *ctx, struct sample *s)
{
    if (t->match == PAT_FOUND)
        return true;
    if (!value_cast(s, pat_match_type(t->match), ctx->arena))
        return false;
    if (t->match == PAT_BOOL)
        return s->u.i != 0;
    for (unsigned i = 0; i < t->set_count; i++)
        if (pat_index_find(pat_set_index(t->sets[i]), s))
            return true;
    return false;
}

/* All values of the criterion in turn, until one matches. */
static enum acl_result run_test(const struct acl_test *t, struct rules_ctx *ctx, bool final)
{
    struct fetch_iter it = {.all = true};
    struct sample s;
    enum acl_result result = ACL_FAIL;

    for (;;) {
        if (!expr_next(t->expr, ctx, &it, &s))
            return it.may_change && !final ? ACL_MISS : result;
        if (sets_match(t, ctx, &s))
            return ACL_PASS;
        if (it.may_change && !final)
            result = ACL_MISS;
        if (!it.more)
            return result;
    }
}

enum acl_result acl_test(const struct acl *acl, struct rules_ctx *ctx, bool final)
{
    enum acl_result result = ACL_FAIL;

    for (const struct acl_test *t = acl->tests; t; t = t->next) {
        result |= run_test(t, ctx, final);
        if (result == ACL_PASS)
            break;
    }
    return result;
}

static enum acl_result opposite(enum acl_result r)
{
    return r == ACL_MISS ? ACL_MISS : r == ACL_PASS ? ACL_FAIL : ACL_PASS;
}

enum acl_result cond_test(const struct rules_cond *cond, struct rules_ctx *ctx, bool final)
{
    enum acl_result result = ACL_FAIL;

    if (!cond)
        return ACL_PASS;
    for (const struct cond_suite *s = cond->suites; s && result != ACL_PASS; s = s->next) {
        enum acl_result all = ACL_PASS;

        for (const struct cond_term *t = s->terms; t && all != ACL_FAIL; t = t->next) {
            enum acl_result r = acl_test(t->acl, ctx, final);

            all &= t->negated ? opposite(r) : r;
        }
        result |= all;
    }
    return cond->unless ? opposite(result) : result;
}

bool rules_cond_eval(const struct rules_cond *cond, struct rules_ctx *ctx)
{
    bool final_data = ctx->final_data;
    bool result;

    ctx->final_data = true;
    result = cond_test(cond, ctx, true) == ACL_PASS;
    ctx->final_data = final_data;
    return result;
}

/* --- what a condition looks at --------------------------------------------------------------------- */

unsigned acl_needs(const struct acl *acl)
{
    unsigned needs = 0;

    for (const struct acl_test *t = acl->tests; t; t = t->next)
        needs |= t->expr->needs;
    return needs;
}

unsigned cond_needs(const struct rules_cond *cond)
{
    unsigned needs = 0;

    for (const struct cond_suite *s = cond ? cond->suites : NULL; s; s = s->next)
        for (const struct cond_term *t = s->terms; t; t = t->next)
            needs |= acl_needs(t->acl);
    return needs;
}

/* --- folding --------------------------------------------------------------------------------------------- */

/* "acl(a,!b)" is a condition too. */
static int nested_fold(const struct fetch_call *f, bool listener_tls, struct arena *scratch)
{
    int all = 1;

    for (unsigned i = 0; i < f->args.count; i++) {
        int r = acl_fold(f->args.v[i].u.data, listener_tls, scratch);

        if (f->args.v[i].i)
            r = -r;
        if (r < 0)
            return -1;
        if (r == 0)
            all = 0;
    }
    return all;
}

static int test_fold(const struct acl_test *t, bool listener_tls, struct arena *scratch)
{
    struct rules_ctx ctx = {.arena = scratch};
    struct sample value;

    if (strcmp(t->expr->fetch.def->name, "acl") == 0 && !t->expr->conv_count &&
        t->match == PAT_BOOL)
        return nested_fold(&t->expr->fetch, listener_tls, scratch);
    switch (expr_fold(t->expr, listener_tls, scratch, &value)) {
    case EXPR_FAILS:
        return -1;
    case EXPR_VALUE:
        /* Pattern files can be edited at run time. */
        for (unsigned i = 0; i < t->set_count; i++)
            if (pat_set_is_editable(t->sets[i]))
                return 0;
        return sets_match(t, &ctx, &value) ? 1 : -1;
    default:
        return 0;
    }
}

int acl_fold(const struct acl *acl, bool listener_tls, struct arena *scratch)
{
    int result = -1;

    for (const struct acl_test *t = acl->tests; t; t = t->next) {
        int r = test_fold(t, listener_tls, scratch);

        if (r > 0)
            return 1;
        if (r == 0)
            result = 0;
    }
    return result;
}

static int suite_fold(const struct cond_suite *s, bool listener_tls, struct arena *scratch)
{
    int result = 1;

    for (const struct cond_term *t = s->terms; t; t = t->next) {
        int r = acl_fold(t->acl, listener_tls, scratch);

        if (t->negated)
            r = -r;
        if (r < 0)
            return -1;
        if (r == 0)
            result = 0;
    }
    return result;
}

int rules_cond_fold(const struct rules_cond *cond, bool listener_tls)
{
    struct arena scratch;
    int result = -1;

    if (!cond)
        return 1;
    arena_init(&scratch, 0, 0);
    for (const struct cond_suite *s = cond->suites; s && result < 1; s = s->next) {
        int r = suite_fold(s, listener_tls, &scratch);

        if (r > result)
            result = r;
    }
    arena_release(&scratch);
    return cond->unless ? -result : result;
}

/* Keeps the terms that depend on the stream, and drops alternatives that can never hold. */
struct rules_cond *rules_cond_specialize(const struct rules_cond *cond, bool listener_tls,
                                         struct arena *arena)
{
    struct rules_cond *out;
    struct cond_suite **suite_tail;

    if (!cond || rules_cond_fold(cond, listener_tls) > 0)
        return NULL;
    out = arena_zalloc(arena, 1, sizeof *out);
    if (!out)
        goto whole;
    out->unless = cond->unless;
    suite_tail = &out->suites;
    for (const struct cond_suite *s = cond->suites; s; s = s->next) {
        struct cond_suite *copy;
        struct cond_term **term_tail;

        if (suite_fold(s, listener_tls, arena) < 0)
            continue;
        copy = arena_zalloc(arena, 1, sizeof *copy);
        if (!copy)
            goto whole;
        *suite_tail = copy;
        suite_tail = &copy->next;
        term_tail = &copy->terms;
        for (const struct cond_term *t = s->terms; t; t = t->next) {
            struct cond_term *kept;

            if (acl_fold(t->acl, listener_tls, arena) != 0)
                continue;
            kept = arena_alloc(arena, sizeof *kept);
            if (!kept)
                goto whole;
            *kept = *t;
            kept->next = NULL;
            *term_tail = kept;
            term_tail = &kept->next;
        }
    }
    return out;
whole:
    /* Without memory the condition as it stands is as right, only slower. */
    return (struct rules_cond *)(uintptr_t)cond;
}
