/*
 * ACLs: a criterion, how it is matched, and the patterns.
 */
#include "rules/acl.h"

#define DERIVED(prefix, fetch)                                                                  \
    {prefix, fetch, PAT_STR}, {prefix "_beg", fetch, PAT_BEG}, {prefix "_dir", fetch, PAT_DIR}, \
        {prefix "_dom", fetch, PAT_DOM}, {prefix "_end", fetch, PAT_END},                       \
        {prefix "_len", fetch, PAT_LEN}, {prefix "_reg", fetch, PAT_REG},                       \
    {                                                                                           \
        prefix "_sub", fetch, PAT_SUB                                                           \
    }

const struct acl_keyword acl_keywords[] = {
    DERIVED("base", "base"),
    DERIVED("cook", "req.cook"),
    DERIVED("hdr", "req.hdr"),
    DERIVED("path", "path"),
    DERIVED("scook", "res.cook"),
    DERIVED("shdr", "res.hdr"),
    DERIVED("url", "url"),
    DERIVED("urlp", "urlp"),
    {"method", "method", PAT_STR},
    {"req_ver", "req.ver", PAT_STR},
    {"resp_ver", "res.ver", PAT_STR},
    {"payload", "req.payload", PAT_BIN},
    {"payload_lv", "req.payload_lv", PAT_BIN},
    {"req.payload", "req.payload", PAT_BIN},
    {"req.payload_lv", "req.payload_lv", PAT_BIN},
    {"req.ssl_ver", "req.ssl_ver", PAT_DOTTED},
    {"req_ssl_ver", "req.ssl_ver", PAT_DOTTED},
    {"req_ssl_sni", "req.ssl_sni", PAT_STR},
    {"req_ssl_hello_type", "req.ssl_hello_type", PAT_INT},
    {"ssl_fc_sni_end", "ssl_fc_sni", PAT_END},
    {"ssl_fc_sni_reg", "ssl_fc_sni", PAT_REG},
};
const size_t acl_keyword_count = sizeof acl_keywords / sizeof *acl_keywords;

static const struct {
    const char *name;
    const char *words[4];
} predefined[] = {
    {"FALSE", {"always_false"}},
    {"HTTP", {"req.proto_http"}},
    {"HTTP_1.0", {"req.ver", "1.0"}},
    {"HTTP_1.1", {"req.ver", "1.1"}},
    {"HTTP_2.0", {"req.ver", "2.0"}},
    {"HTTP_3.0", {"req.ver", "3.0"}},
    {"HTTP_CONTENT", {"req.hdr_val(content-length)", "gt", "0"}},
    {"HTTP_URL_ABS", {"url_reg", "^[^/:]*://"}},
    {"HTTP_URL_SLASH", {"url_beg", "/"}},
    {"HTTP_URL_STAR", {"url", "*"}},
    {"LOCALHOST", {"src", "127.0.0.1/8", "::1"}},
    {"METH_CONNECT", {"method", "CONNECT"}},
    {"METH_DELETE", {"method", "DELETE"}},
    {"METH_GET", {"method", "GET", "HEAD"}},
    {"METH_HEAD", {"method", "HEAD"}},
    {"METH_OPTIONS", {"method", "OPTIONS"}},
    {"METH_POST", {"method", "POST"}},
    {"METH_PUT", {"method", "PUT"}},
    {"METH_TRACE", {"method", "TRACE"}},
    {"REQ_CONTENT", {"req.len", "gt", "0"}},
    {"TRUE", {"always_true"}},
    {"WAIT_END", {"wait_end"}},
};

const char *const acl_predefined_names[] = {
    "FALSE",        "HTTP",         "HTTP_1.0",       "HTTP_1.1",      "HTTP_2.0",  "HTTP_3.0",
    "HTTP_CONTENT", "HTTP_URL_ABS", "HTTP_URL_SLASH", "HTTP_URL_STAR", "LOCALHOST", "METH_CONNECT",
    "METH_DELETE",  "METH_GET",     "METH_HEAD",      "METH_OPTIONS",  "METH_POST", "METH_PUT",
    "METH_TRACE",   "REQ_CONTENT",  "TRUE",           "WAIT_END",
};
const size_t acl_predefined_count = sizeof acl_predefined_names / sizeof *acl_predefined_names;
_Static_assert(sizeof acl_predefined_names / sizeof *acl_predefined_names ==
                   sizeof predefined / sizeof *predefined,
               "a predefined ACL lacks its name");

const struct acl_keyword *acl_keyword_find(struct str name)
{
    for (size_t i = 0; i < acl_keyword_count; i++)
        if (str_eq(name, str_of(acl_keywords[i].name)))
            return &acl_keywords[i];
    return NULL;
}

/* --- criteria ---------------------------------------------------------------------------------- */

/* What is known while the words of one test are read. */
struct parser {
    struct rules_compiler *c;
    struct acl_test *test;
    const char *criterion;
    bool has_match, forced, as_map, loaded;
    unsigned pattern_flags;
};

static int default_match(enum value_type type)
{
    switch (type) {
    case VALUE_BOOL:
        return PAT_BOOL;
    case VALUE_INT:
        return PAT_INT;
    case VALUE_ADDR:
        return PAT_IP;
    case VALUE_STR:
        return PAT_STR;
    default:
        return SP_ENOENT;
    }
}

static int parse_criterion(struct parser *p, const char *word)
{
    struct str name = str_of(word);
    const struct acl_keyword *kw;
    int match;

    for (name.len = 0; is_name_char(word[name.len]); name.len++)
        ;
    kw = acl_keyword_find(name);
    if (kw) {
        p->test->expr =
            expr_compile_fetch(p->c, fetch_find(str_of(kw->fetch)), word, word + name.len);
    } else {
        char *words[] = {(char *)(uintptr_t)word};
        int used;

        p->test->expr = expr_compile(p->c, 1, words, &used, NULL, STAGE_ANY);
    }
    if (!p->test->expr)
        return SP_EINVAL;
    p->criterion = word;
    /* The keyword's own method applies to the fetch alone; after a converter the result's type decides. */
    if (kw && !p->test->expr->conv_count) {
        p->test->match = kw->match;
        p->has_match = true;
        return 0;
    }
    match = default_match(p->test->expr->type);
    p->has_match = match >= 0;
    p->test->match = match >= 0 ? (enum pat_match)match : PAT_FOUND;
    return 0;
}

static int need_match(struct parser *p)
{
    if (p->has_match)
        return 0;
    diag_error(p->c->diag, p->c->loc,
               "ACL criterion '%s' gives a value of type %s: say with -m how to match it",
               p->criterion, value_type_name(p->test->expr->type));
    return SP_EINVAL;
}

static int add_set(struct parser *p, struct pat_set *set)
{
    struct pat_set **sets;

    if (!set)
        return SP_EINVAL;
    sets = compiler_zalloc(p->c, p->test->set_count + 1, sizeof *sets);
    if (!sets)
        return SP_ENOMEM;
    if (p->test->set_count)
        memcpy(sets, p->test->sets, p->test->set_count * sizeof *sets);
    sets[p->test->set_count++] = set;
    p->test->sets = sets;
    return 0;
}

static int flag_match(struct parser *p, const char *name)
{
    int m = name ? pat_match_find(str_of(name)) : SP_ENOENT;
    char hint[64];

    if (p->loaded) {
        diag_error(p->c->diag, p->c->loc, "'-m' must come before the files in ACL criterion '%s'",
                   p->criterion);
        return SP_EINVAL;
    }
    if (p->forced) {
        diag_error(p->c->diag, p->c->loc, "ACL criterion '%s' has more than one '-m'",
                   p->criterion);
        return SP_EINVAL;
    }
    if (m < 0) {
        diag_error(p->c->diag, p->c->loc, "unknown matching method '%s'%s", name ? name : "",
                   diag_suggest(hint, sizeof hint, name ? name : "", pat_match_names, PAT_REG + 1));
        return SP_EINVAL;
    }
    if (m != PAT_FOUND && !value_can_cast(p->test->expr->type, pat_match_type((enum pat_match)m))) {
        diag_error(p->c->diag, p->c->loc,
                   "matching method '%s' cannot be used with criterion '%s' of type %s", name,
                   p->criterion, value_type_name(p->test->expr->type));
        return SP_EINVAL;
    }
    p->test->match = (enum pat_match)m;
    p->has_match = p->forced = true;
    return 0;
}

static int flag_file(struct parser *p, const char *name)
{
    if (!name) {
        diag_error(p->c->diag, p->c->loc, "'-f' expects a file name");
        return SP_EINVAL;
    }
    if (need_match(p) < 0)
        return SP_EINVAL;
    p->loaded = true;
    return add_set(
        p, pat_set_file(p->c, p->test->match, p->pattern_flags, VALUE_ANY, p->as_map, name));
}

/* Reads flags; the index of the first word that is none, or SP_EINVAL. */
static int parse_flags(struct parser *p, int argc, char *const *argv)
{
    int i = 0, status = 0;

    while (i < argc && argv[i][0] == '-' && status == 0) {
        const char *flag = argv[i++];
        const char *arg = i < argc ? argv[i] : NULL;

        if (strcmp(flag, "--") == 0)
            break;
        if (strcmp(flag, "-i") == 0)
            p->pattern_flags |= PAT_IGNORE_CASE;
        else if (strcmp(flag, "-n") == 0)
            p->pattern_flags &= ~(unsigned)PAT_RESOLVE;
        else if (strcmp(flag, "-M") == 0)
            p->as_map = true;
        else if (strcmp(flag, "-f") == 0)
            status = flag_file(p, arg), i++;
        else if (strcmp(flag, "-m") == 0)
            status = flag_match(p, arg), i++;
        else if (strcmp(flag, "-u") == 0) {
            uint64_t id;

            if (!arg || str_to_u64(str_of(arg), &id) < 0) {
                diag_error(p->c->diag, p->c->loc, "'-u' expects an integer");
                return SP_EINVAL;
            }
            i++;
        } else {
            diag_error(
                p->c->diag, p->c->loc,
                "'%s' is not an ACL flag (-i, -f, -m, -n, -M, -u, --); put '--' before patterns that begin with '-'",
                flag);
            return SP_EINVAL;
        }
    }
    return status < 0 ? SP_EINVAL : i;
}

/* --- patterns ------------------------------------------------------------------------------------- */

enum operator_kind { OP_EQ, OP_GE, OP_GT, OP_LE, OP_LT };

static int operator_of(const char *word)
{
    static const char *const names[] = {"eq", "ge", "gt", "le", "lt"};

    for (int i = 0; i < 5; i++)
        if (strcmp(word, names[i]) == 0)
            return i;
    return SP_ENOENT;
}

/* "gt 5" becomes "6:"; ranges are left alone. NULL with the error in diag. */
static char *apply_operator(struct rules_compiler *c, const char *word, enum operator_kind op,
                            bool dotted)
{
    struct str s = str_of(word);
    size_t dot = dotted ? str_chr(s, '.') : s.len;
    int64_t value, minor = 0;
    char text[64];

    if (op == OP_EQ || strchr(word, ':') || strchr(word, '-'))
        return compiler_cstr(c, word);
    if (str_to_i64(str_make(s.ptr, dot), &value) < 0 ||
        (dot < s.len && str_to_i64(str_from(s, dot + 1), &minor) < 0) ||
        (dotted && (value > 65535 || minor > 65535))) {
        diag_error(c->diag, c->loc,
                   "'%s' is neither a number nor one of the operators eq, ge, gt, le, lt", word);
        return NULL;
    }
    if (dotted)
        value = value << 16 | minor;
    value += op == OP_GT ? 1 : op == OP_LT ? -1 : 0;
    if (dotted)
        snprintf(text, sizeof text,
                 op >= OP_LE ? ":%lld.%lld" : "%lld.%lld:", (long long)(value >> 16),
                 (long long)(value & 0xffff));
    else
        snprintf(text, sizeof text, op >= OP_LE ? ":%lld" : "%lld:", (long long)value);
    return compiler_cstr(c, text);
}

static int parse_patterns(struct parser *p, int argc, char *const *argv)
{
    enum pat_match m = p->test->match;
    bool numeric = m == PAT_INT || m == PAT_LEN || m == PAT_DOTTED;
    char **words;
    int n = 0, op = OP_EQ;

    if (argc == 0 || !pat_match_takes_patterns(m))
        return 0;
    words = compiler_zalloc(p->c, (size_t)argc, sizeof *words);
    if (!words)
        return SP_ENOMEM;
    for (int i = 0; i < argc; i++) {
        int found = numeric ? operator_of(argv[i]) : SP_ENOENT;

        if (found >= 0) {
            op = found;
            continue;
        }
        words[n] = numeric ? apply_operator(p->c, argv[i], (enum operator_kind)op, m == PAT_DOTTED)
                           : compiler_cstr(p->c, argv[i]);
        if (!words[n++])
            return SP_EINVAL;
    }
    return n ? add_set(p, pat_set_words(p->c, m, p->pattern_flags, n, words)) : 0;
}

static struct acl_test *parse_test(struct rules_compiler *c, int argc, char *const *argv)
{
    struct parser p = {.c = c, .pattern_flags = PAT_RESOLVE};
    int at;

    if (argc < 1) {
        diag_error(c->diag, c->loc, "an ACL criterion is missing");
        return NULL;
    }
    p.test = compiler_zalloc(c, 1, sizeof *p.test);
    if (!p.test || parse_criterion(&p, argv[0]) < 0)
        return NULL;
    if (p.has_match && pat_match_takes_patterns(p.test->match) && argc == 1)
        diag_warning(
            c->diag, c->loc,
            "ACL criterion '%s' has no pattern, so it never matches; '-m found' tests for existence, '--' "
            "silences this warning",
            argv[0]);
    at = parse_flags(&p, argc - 1, argv + 1);
    if (at < 0 || need_match(&p) < 0)
        return NULL;
    if (parse_patterns(&p, argc - 1 - at, argv + 1 + at) < 0)
        return NULL;
    return p.test;
}

/* --- named ACLs ---------------------------------------------------------------------------------------- */

struct rules_acls *rules_acls_new(struct arena *arena)
{
    struct rules_acls *acls = arena_zalloc(arena, 1, sizeof *acls);

    if (acls) {
        acls->arena = arena;
        acls->tail = &acls->acls;
    }
    return acls;
}

static struct acl *find(const struct rules_acls *acls, const char *name)
{
    for (struct acl *a = acls ? acls->acls : NULL; a; a = a->next)
        if (strcmp(a->name, name) == 0)
            return a;
    return NULL;
}

static struct acl *acl_new(struct rules_compiler *c, const char *name)
{
    struct acl *a = compiler_zalloc(c, 1, sizeof *a);

    if (!a)
        return NULL;
    a->name = compiler_cstr(c, name);
    a->tests_tail = &a->tests;
    if (!a->name)
        return NULL;
    if (name[0] && c->acls) {
        *c->acls->tail = a;
        c->acls->tail = &a->next;
    }
    return a;
}

static void acl_append(struct acl *a, struct acl_test *test)
{
    *a->tests_tail = test;
    a->tests_tail = &test->next;
}

/* Whether `test` leads back to `acl` through "acl(…)" fetches. */
static bool is_recursive(const struct acl_test *test, const struct acl *acl, int depth)
{
    const struct fetch_call *f = &test->expr->fetch;

    if (strcmp(f->def->name, "acl") != 0)
        return false;
    if (depth == 0)
        return true;
    for (unsigned i = 0; i < f->args.count; i++) {
        const struct acl *inner = f->args.v[i].u.data;

        if (inner == acl)
            return true;
        for (const struct acl_test *t = inner->tests; t; t = t->next)
            if (is_recursive(t, acl, depth - 1))
                return true;
    }
    return false;
}

#define RECURSION_MAX 16

int rules_acls_add(struct rules_compiler *c, int argc, char *const *argv)
{
    struct acl_test *test;
    struct acl *a;

    if (argc < 2) {
        diag_error(c->diag, c->loc, "'acl' expects a name and a criterion");
        return SP_EINVAL;
    }
    for (const char *p = argv[0]; *p; p++) {
        if (!is_name_char(*p) || *p == '+') {
            diag_error(c->diag, c->loc, "character '%c' is not permitted in ACL name '%s'", *p,
                       argv[0]);
            return SP_EINVAL;
        }
    }
    if (strcmp(argv[0], "or") == 0) {
        diag_error(c->diag, c->loc, "an ACL cannot be called 'or'");
        return SP_EINVAL;
    }
    test = parse_test(c, argc - 1, argv + 1);
    if (!test)
        return SP_EINVAL;
    a = find(c->acls, argv[0]);
    if (a && is_recursive(test, a, RECURSION_MAX)) {
        diag_error(c->diag, c->loc, "ACL '%s' refers to itself", argv[0]);
        return SP_EINVAL;
    }
    if (!a)
        a = acl_new(c, argv[0]);
    if (!a)
        return SP_EINVAL;
    acl_append(a, test);
    return 0;
}

struct acl *acl_lookup(struct rules_compiler *c, const char *name)
{
    struct acl *a = find(c->acls, name);

    if (a)
        return a;
    for (size_t i = 0; i < sizeof predefined / sizeof *predefined; i++) {
        char *words[4];
        int n = 0;
        struct acl_test *test;

        if (strcmp(predefined[i].name, name) != 0)
            continue;
        for (; n < 4 && predefined[i].words[n]; n++)
            words[n] = (char *)(uintptr_t)predefined[i].words[n];
        test = parse_test(c, n, words);
        a = test ? acl_new(c, name) : NULL;
        if (a)
            acl_append(a, test);
        return a;
    }
    return NULL;
}

struct acl *acl_anonymous(struct rules_compiler *c, int argc, char *const *argv)
{
    struct acl_test *test = parse_test(c, argc, argv);
    struct acl *a = test ? acl_new(c, "") : NULL;

    if (a)
        acl_append(a, test);
    return a;
}
