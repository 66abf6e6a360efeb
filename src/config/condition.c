#include "config/condition.h"

#include "base/status.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define DEPTH_MAX 128
#define ARG_BYTES 1024

struct cond {
    const struct cfg_environment *env;
    const char *start, *at;
    struct cfg_condition_error *error;
    int depth;
};

struct predicate {
    const char *name;
    int args;
    int (*eval)(struct cond *c, const char *first, const char *second);
};

static int eval_or(struct cond *c, bool run);

__attribute__((format(printf, 3, 4))) static int fail(struct cond *c, const char *at,
                                                      const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(c->error->text, sizeof(c->error->text), format, args);
    va_end(args);
    c->error->position = (size_t)(at - c->start) + 1;
    return SP_EINVAL;
}

static bool name_listed(const char *const *names, const char *name)
{
    for (; names && *names; names++) {
        if (strcmp(*names, name) == 0)
            return true;
    }
    return false;
}

/* --- versions --- */

/* Up to four numbers, then 0 for a development version, 1 for a candidate, 2 for a release, and its number. */
#define VERSION_PARTS 6

static bool parse_version(const char *text, long out[VERSION_PARTS])
{
    static const struct {
        const char *name;
        long rank;
    } stages[] = {{"-dev", 0}, {"-pre", 1}, {"-rc", 1}, {"-beta", 1}};
    char *end;
    int n = 0;

    memset(out, 0, VERSION_PARTS * sizeof(*out));
    out[4] = 2;
    for (;;) {
        if (*text < '0' || *text > '9' || n == 4)
            return false;
        out[n++] = strtol(text, &end, 10);
        text = end;
        if (*text != '.')
            break;
        text++;
    }
    for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++) {
        if (strncmp(text, stages[i].name, strlen(stages[i].name)) == 0) {
            out[4] = stages[i].rank;
            out[5] = strtol(text + strlen(stages[i].name), NULL, 10);
        }
    }
    return *text == '\0' || *text == '-' || *text == '+' || *text == ' ' || *text == '~';
}

/* Major, minor, fix, patch letter, and 15 for a release, the number of a beta, 0 for other prereleases. */
static bool parse_openssl_version(const char *text, long out[VERSION_PARTS])
{
    char *end;

    memset(out, 0, VERSION_PARTS * sizeof(*out));
    for (int i = 0; i < 3; i++) {
        if (*text < '0' || *text > '9')
            return false;
        out[i] = strtol(text, &end, 10);
        text = end;
        if (i < 2 && *text++ != '.')
            return false;
    }
    out[4] = 15;
    if (*text == '-') {
        out[4] = strncmp(text, "-beta", 5) == 0 ? strtol(text + 5, NULL, 10) : 0;
    } else {
        for (; (*text | 0x20) >= 'a' && (*text | 0x20) <= 'z'; text++)
            out[3] += (*text | 0x20) - 'a' + 1;
        if (*text != '\0' && *text != ' ' && *text != '-' && *text != '+')
            return false;
    }
    return true;
}

static int compare(const long a[VERSION_PARTS], const long b[VERSION_PARTS])
{
    for (int i = 0; i < VERSION_PARTS; i++) {
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    }
    return 0;
}

/* 1 when the running version is older than `wanted`, 0 when not, or an error. */
static int version_is_before(struct cond *c, const char *wanted)
{
    long have[VERSION_PARTS], want[VERSION_PARTS];

    if (!parse_version(wanted, want))
        return fail(c, c->at, "'%.60s' is not a version, expected numbers like 2.6 or 3.0-dev1",
                    wanted);
    if (!c->env->compatible_version || !parse_version(c->env->compatible_version, have))
        return fail(c, c->at, "the compatible version is not known");
    return compare(have, want) < 0;
}

static int openssl_is_before(struct cond *c, const char *wanted)
{
    long have[VERSION_PARTS], want[VERSION_PARTS];
    const char *text = c->env->ssl_library_text ? c->env->ssl_library_text : "";

    if (!parse_openssl_version(wanted, want))
        return fail(c, c->at, "'%.60s' is not an OpenSSL version, expected numbers like 1.1.1",
                    wanted);
    text += strcspn(text, "0123456789");
    if (!parse_openssl_version(text, have))
        return fail(c, c->at, "the version of the TLS library is not known");
    return compare(have, want) < 0;
}

static int not(int value)
{
    return value < 0 ? value : !value;
}

/* --- predicates --- */

static int eval_defined(struct cond *c, const char *first, const char *second)
{
    return c->env->is_defined ? c->env->is_defined(first) : getenv(first) != NULL;
}

static int eval_feature(struct cond *c, const char *first, const char *second)
{
    return name_listed(c->env->features, first);
}

static int eval_enabled(struct cond *c, const char *first, const char *second)
{
    return name_listed(c->env->enabled_options, first);
}

static int eval_streq(struct cond *c, const char *first, const char *second)
{
    return strcmp(first, second) == 0;
}

static int eval_strneq(struct cond *c, const char *first, const char *second)
{
    return strcmp(first, second) != 0;
}

static int eval_strstr(struct cond *c, const char *first, const char *second)
{
    return strstr(first, second) != NULL;
}

static int eval_version_atleast(struct cond *c, const char *first, const char *second)
{
    return not(version_is_before(c, first));
}

static int eval_version_before(struct cond *c, const char *first, const char *second)
{
    return version_is_before(c, first);
}

static int eval_openssl_atleast(struct cond *c, const char *first, const char *second)
{
    return not(openssl_is_before(c, first));
}

static int eval_openssl_before(struct cond *c, const char *first, const char *second)
{
    return openssl_is_before(c, first);
}

static int eval_ssllib(struct cond *c, const char *first, const char *second)
{
    const char *name = c->env->ssl_library_name ? c->env->ssl_library_name : "";

    return strncmp(name, first, strlen(first)) == 0;
}

/* Another TLS library's interface number, and its FIPS mode: never what runs here. */
static int eval_never(struct cond *c, const char *first, const char *second)
{
    return 0;
}

static const struct predicate predicates[] = {
    {"defined", 1, eval_defined},
    {"feature", 1, eval_feature},
    {"enabled", 1, eval_enabled},
    {"streq", 2, eval_streq},
    {"strneq", 2, eval_strneq},
    {"strstr", 2, eval_strstr},
    {"version_atleast", 1, eval_version_atleast},
    {"version_before", 1, eval_version_before},
    {"openssl_version_atleast", 1, eval_openssl_atleast},
    {"openssl_version_before", 1, eval_openssl_before},
    {"ssllib_name_startswith", 1, eval_ssllib},
    {"awslc_api_atleast", 1, eval_never},
    {"awslc_api_before", 1, eval_never},
    {"fips_mode", 0, eval_never},
};

#define PREDICATE_COUNT (sizeof(predicates) / sizeof(predicates[0]))

static void skip_blanks(struct cond *c)
{
    while (*c->at == ' ' || *c->at == '\t')
        c->at++;
}

/* One escaped character at a backslash; unknown combinations keep the backslash. */
static char unescape(struct cond *c)
{
    switch (c->at[1]) {
    case '\\':
    case ' ':
    case '"':
    case '\'':
        c->at++;
        return *c->at;
    case 'r':
        c->at++;
        return '\r';
    case 'n':
        c->at++;
        return '\n';
    case 't':
        c->at++;
        return '\t';
    default:
        return '\\';
    }
}

/* One argument, up to the comma or parenthesis that ends it. */
static int parse_arg(struct cond *c, char out[ARG_BYTES])
{
    const char *start = c->at;
    bool squote = false, dquote = false;
    size_t len = 0;

    for (; *c->at && (squote || dquote || (*c->at != ',' && *c->at != ')')); c->at++) {
        char byte = *c->at;

        if (byte == '"' && !squote) {
            dquote = !dquote;
            continue;
        }
        if (byte == '\'' && !dquote) {
            squote = !squote;
            continue;
        }
        if (byte == '\\' && !squote)
            byte = unescape(c);
        if (len + 1 == ARG_BYTES)
            return fail(c, start, "this argument is too long");
        out[len++] = byte;
    }
    if (squote || dquote)
        return fail(c, start, "unmatched quote in this argument");
    out[len] = '\0';
    return 0;
}

static int parse_args(struct cond *c, const struct predicate *p, char args[2][ARG_BYTES])
{
    args[0][0] = args[1][0] = '\0';
    if (p->args == 0 && *c->at != '(')
        return 0;
    if (*c->at != '(')
        return fail(c, c->at, "expected '(' after '%s'", p->name);
    c->at++;
    for (int i = 0; i < p->args; i++) {
        int status = parse_arg(c, args[i]);

        if (status != 0)
            return status;
        if (i + 1 < p->args && *c->at++ != ',') {
            c->at--;
            return fail(c, c->at, "'%s' expects %d arguments", p->name, p->args);
        }
    }
    if (*c->at == ',')
        return fail(c, c->at, "'%s' expects %d argument%s", p->name, p->args,
                    p->args == 1 ? "" : "s");
    if (*c->at != ')')
        return fail(c, c->at, "expected ')' after the arguments of '%s'", p->name);
    c->at++;
    return 0;
}

static int eval_predicate(struct cond *c, bool run)
{
    size_t len = strcspn(c->at, " \t(),!&|");
    const char *names[PREDICATE_COUNT];
    char args[2][ARG_BYTES], word[64], hint[100];

    for (size_t i = 0; i < PREDICATE_COUNT; i++) {
        const struct predicate *p = &predicates[i];
        int status;

        names[i] = p->name;
        if (strlen(p->name) != len || strncmp(c->at, p->name, len) != 0)
            continue;
        c->at += len;
        status = parse_args(c, p, args);
        if (status == 0 && run)
            status = p->eval(c, args[0], args[1]);
        return status;
    }
    snprintf(word, sizeof(word), "%.*s", len < 60 ? (int)len : 60, c->at);
    if (*word == '\0')
        return fail(c, c->at, "expected a number, a predicate or '('");
    return fail(c, c->at, "unknown predicate '%s'%s", word,
                diag_suggest(hint, sizeof(hint), word, names, PREDICATE_COUNT));
}

static int eval_paren(struct cond *c, bool run)
{
    int value;

    if (c->depth == DEPTH_MAX)
        return fail(c, c->at, "too many nested parentheses, at most %d are allowed", DEPTH_MAX);
    c->depth++;
    c->at++;
    value = eval_or(c, run);
    c->depth--;
    if (value < 0)
        return value;
    skip_blanks(c);
    if (*c->at != ')')
        return fail(c, c->at, "expected ')'");
    c->at++;
    return value;
}

static int eval_term(struct cond *c, bool run)
{
    bool negate = false;
    char *end;
    int value;

    skip_blanks(c);
    for (; *c->at == '!'; skip_blanks(c)) {
        negate = !negate;
        c->at++;
    }
    value = strtol(c->at, &end, 0) != 0;
    if (end != c->at) {
        c->at = end;
    } else if (*c->at == '(') {
        value = eval_paren(c, run);
    } else {
        value = eval_predicate(c, run);
    }
    return negate ? not(value) : value;
}

static int eval_and(struct cond *c, bool run)
{
    int value = eval_term(c, run);

    while (value >= 0) {
        int next;

        skip_blanks(c);
        if (c->at[0] != '&' || c->at[1] != '&')
            break;
        c->at += 2;
        next = eval_term(c, run && value);
        if (next < 0)
            return next;
        value = value && next;
    }
    return value;
}

static int eval_or(struct cond *c, bool run)
{
    int value = eval_and(c, run);

    while (value >= 0) {
        int next;

        skip_blanks(c);
        if (c->at[0] != '|' || c->at[1] != '|')
            break;
        c->at += 2;
        next = eval_and(c, run && !value);
        if (next < 0)
            return next;
        value = value || next;
    }
    return value;
}

int cfg_condition_eval(const struct cfg_environment *env, const char *text,
                       struct cfg_condition_error *error)
{
    struct cond c = {.env = env, .start = text, .at = text, .error = error};
    int value;

    if (*text == '\0')
        return 0;
    value = eval_or(&c, true);
    if (value < 0)
        return value;
    skip_blanks(&c);
    if (*c.at)
        return fail(&c, c.at, "unexpected character '%c' after the condition", *c.at);
    return value;
}
