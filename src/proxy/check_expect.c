/*
 * The words of "expect" of health-check scripts.
 */
#include "proxy/check_internal.h"

#include <stdio.h>

#define WHY_BYTES 256

/* --- options ------------------------------------------------------------------------- */

struct status_name {
    const char *name;
    enum check_code code;
};

/* Lists end with a NULL name. */
static const struct status_name ok_statuses[] = {{"L7OK", CHECK_L7OK},
                                                 {"L7OKC", CHECK_L7OKC},
                                                 {"L6OK", CHECK_L6OK},
                                                 {"L4OK", CHECK_L4OK},
                                                 {NULL, 0}};
static const struct status_name error_statuses[] = {{"L7OKC", CHECK_L7OKC}, {"L7RSP", CHECK_L7RSP},
                                                    {"L7STS", CHECK_L7STS}, {"L6RSP", CHECK_L6RSP},
                                                    {"L4CON", CHECK_L4CON}, {NULL, 0}};
static const struct status_name timeout_statuses[] = {
    {"L7TOUT", CHECK_L7TOUT}, {"L6TOUT", CHECK_L6TOUT}, {"L4TOUT", CHECK_L4TOUT}, {NULL, 0}};

static int parse_code(struct check_words *w, const struct status_name *names, enum check_code *out)
{
    const char *keyword = w->argv[w->at], *word = check_next_word(w);
    char list[64] = "";
    size_t n = 0;

    if (!word)
        return SP_EINVAL;
    for (; names->name; names++) {
        if (strcmp(word, names->name) == 0) {
            *out = names->code;
            return 0;
        }
        n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", n ? " " : "", names->name);
    }
    return check_fail(w, "'%s' expects one of %s, not '%s'", keyword, list, word);
}

static int parse_min_recv(struct check_words *w, struct check_expect *e)
{
    const char *word = check_next_word(w);
    int64_t n;

    if (!word)
        return SP_EINVAL;
    if (str_to_i64(str_of(word), &n) != 0 || n < -1 || n > INT32_MAX)
        return check_fail(w, "'min-recv' expects a number of bytes or -1, not '%s'", word);
    e->min_recv = (int)n;
    return 0;
}

static int parse_status_code(struct check_words *w, struct check_expect *e)
{
    int used;

    if (!check_next_word(w))
        return SP_EINVAL;
    w->compiler->loc = w->loc;
    e->status_code = rules_expr_compile(w->compiler, w->argc - w->at, w->argv + w->at, &used);
    if (!e->status_code)
        return SP_EINVAL;
    w->at += used - 1;
    return 0;
}

static int parse_fmt(struct check_words *w, struct rules_fmt **out)
{
    const char *word = check_next_word(w);

    if (!word)
        return SP_EINVAL;
    *out = check_fmt(w, word);
    return *out ? 0 : SP_EINVAL;
}

/* SP_ENOENT: the word is none of the options. */
static int parse_option(struct check_words *w, struct check_step *step)
{
    struct check_expect *e = &step->u.expect;
    const char *word = w->argv[w->at];

    if (strcmp(word, "min-recv") == 0)
        return parse_min_recv(w, e);
    if (strcmp(word, "ok-status") == 0)
        return parse_code(w, ok_statuses, &e->ok_code);
    if (strcmp(word, "error-status") == 0)
        return parse_code(w, error_statuses, &e->error_code);
    if (strcmp(word, "tout-status") == 0)
        return parse_code(w, timeout_statuses, &e->timeout_code);
    if (strcmp(word, "on-success") == 0)
        return parse_fmt(w, &e->on_success);
    if (strcmp(word, "on-error") == 0)
        return parse_fmt(w, &e->on_error);
    if (strcmp(word, "status-code") == 0)
        return parse_status_code(w, e);
    if (strcmp(word, "comment") == 0) {
        step->comment = check_next_word(w);
        return step->comment ? 0 : SP_EINVAL;
    }
    return SP_ENOENT;
}

/* --- patterns ---------------------------------------------------------------------------- */

static int parse_regex(const struct check_words *w, const char *pattern, struct regex **out)
{
    char why[WHY_BYTES] = "";

    if (!w->compiler->registry)
        w->compiler->registry = rules_registry_new(w->compiler->arena);
    if (!w->compiler->registry)
        return SP_ENOMEM;
    if (regex_compile(w->compiler->registry, pattern, false, false, out, why, sizeof(why)) != 0)
        return check_fail(w, "'%s' is not a regular expression: %s", pattern, why);
    return 0;
}

static int parse_field_regex(const struct check_words *w, const char *pattern, bool ignore_case,
                             struct regex **out)
{
    char *folded = ignore_case ? arena_printf(w->compiler->arena, "(?i)%s", pattern) : NULL;

    return parse_regex(w, folded ? folded : pattern, out);
}

static int add_range(const struct check_words *w, struct check_expect *e, struct str item)
{
    size_t dash = str_chr(item, '-');
    uint64_t low, high;
    struct check_range *grown;

    if (str_to_u64(str_make(item.ptr, dash), &low) != 0 ||
        str_to_u64(dash < item.len ? str_from(item, dash + 1) : item, &high) != 0 || low > high ||
        high > 65535)
        return check_fail(w, "'%.*s' is not a status; expected a number or a range such as 200-399",
                          STR_FMT(item));
    grown = arena_zalloc(w->compiler->arena, e->range_count + 1, sizeof(*grown));
    if (!grown)
        return SP_ENOMEM;
    if (e->range_count)
        memcpy(grown, e->ranges, e->range_count * sizeof(*grown));
    grown[e->range_count++] = (struct check_range){(unsigned)low, (unsigned)high};
    e->ranges = grown;
    return 0;
}

static int parse_ranges(const struct check_words *w, struct check_expect *e, struct str list)
{
    int rc;

    do {
        size_t comma = str_chr(list, ',');

        rc = add_range(w, e, str_make(list.ptr, comma));
        list = str_from(list, comma + 1);
    } while (rc == 0 && list.len);
    return rc;
}

static int parse_compare(struct check_words *w, struct check_pattern *pattern)
{
    static const struct {
        const char *name;
        enum check_compare compare;
    } methods[] = {{"str", CHECK_EXACT},
                   {"beg", CHECK_BEGIN},
                   {"end", CHECK_END},
                   {"sub", CHECK_SUB},
                   {"reg", CHECK_REG}};
    const char *word = check_next_word(w);

    if (!word)
        return SP_EINVAL;
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (strcmp(word, methods[i].name) == 0) {
            pattern->compare = methods[i].compare;
            return 0;
        }
    }
    return check_fail(w, "'-m' expects str, beg, end, sub or reg, not '%s'", word);
}

/* "name|name-lf [-m METHOD] PATTERN"; names compare in any case. */
static int parse_field_pattern(struct check_words *w, struct check_pattern *pattern, bool is_name)
{
    const char *keyword = w->argv[w->at], *word;
    bool is_fmt = strstr(keyword, "-lf") != NULL;
    int rc = 0;

    pattern->given = true;
    if (w->at + 1 < w->argc && strcmp(w->argv[w->at + 1], "-m") == 0) {
        w->at++;
        rc = parse_compare(w, pattern);
    }
    word = rc == 0 ? check_next_word(w) : NULL;
    if (!word)
        return SP_EINVAL;
    if (is_fmt && pattern->compare == CHECK_REG)
        return check_fail(w, "'%s' does not take regular expressions", keyword);
    if (is_fmt) {
        pattern->fmt = check_fmt(w, word);
        return pattern->fmt ? 0 : SP_EINVAL;
    }
    if (pattern->compare == CHECK_REG)
        return parse_field_regex(w, word, is_name, &pattern->regex);
    pattern->text = str_of(word);
    return 0;
}

static int parse_field(struct check_words *w, struct check_expect *e)
{
    const char *keyword = w->argv[w->at];
    const char *word = w->at + 1 < w->argc ? w->argv[w->at + 1] : "";
    int rc;

    if (strcmp(word, "name") != 0 && strcmp(word, "name-lf") != 0)
        return check_fail(w, "'%s' expects 'name' or 'name-lf' and the name of a header field",
                          keyword);
    w->at++;
    rc = parse_field_pattern(w, &e->name, true);
    word = w->at + 1 < w->argc ? w->argv[w->at + 1] : "";
    if (rc == 0 && (strcmp(word, "value") == 0 || strcmp(word, "value-lf") == 0)) {
        w->at++;
        rc = parse_field_pattern(w, &e->value, false);
    }
    return rc;
}

/* --- matches ------------------------------------------------------------------------------- */

static const struct match_name {
    const char *name;
    enum check_match match;
    bool http, tcp;
} match_names[] = {
    {"string", CHECK_MATCH_STRING, true, true},
    {"string-lf", CHECK_MATCH_STRING_FMT, true, true},
    {"rstring", CHECK_MATCH_REGEX, true, true},
    {"binary", CHECK_MATCH_BINARY, false, true},
    {"binary-lf", CHECK_MATCH_BINARY_FMT, false, true},
    {"rbinary", CHECK_MATCH_BINARY_REGEX, false, true},
    {"status", CHECK_MATCH_STATUS, true, false},
    {"rstatus", CHECK_MATCH_STATUS_REGEX, true, false},
    {"hdr", CHECK_MATCH_FIELD, true, false},
    {"fhdr", CHECK_MATCH_WHOLE_FIELD, true, false},
};
#define MATCH_COUNT (sizeof(match_names) / sizeof(match_names[0]))

static int unknown_word(const struct check_words *w, const char *word, bool http)
{
    const char *known[MATCH_COUNT + 8] = {"comment",     "min-recv",   "ok-status", "error-status",
                                          "tout-status", "on-success", "on-error",  "status-code"};
    size_t n = 8;
    char hint[128];

    for (size_t i = 0; i < MATCH_COUNT; i++)
        if (http ? match_names[i].http : match_names[i].tcp)
            known[n++] = match_names[i].name;
    diag_suggest(hint, sizeof(hint), word, known, n);
    return check_fail(w, "'%s' is unknown; expected an option or one of %s%s", word,
                      http ? "status, rstatus, hdr, fhdr, string, string-lf, rstring"
                           : "string, string-lf, rstring, binary, binary-lf, rbinary",
                      hint);
}

static const struct match_name *find_match(const char *word, bool http)
{
    for (size_t i = 0; i < MATCH_COUNT; i++)
        if (strcmp(word, match_names[i].name) == 0 &&
            (http ? match_names[i].http : match_names[i].tcp))
            return &match_names[i];
    return NULL;
}

static int parse_pattern(struct check_words *w, struct check_expect *e)
{
    const char *word;

    if (e->match == CHECK_MATCH_FIELD || e->match == CHECK_MATCH_WHOLE_FIELD)
        return parse_field(w, e);
    word = check_next_word(w);
    if (!word)
        return SP_EINVAL;
    e->shown = str_of(word);
    switch (e->match) {
    case CHECK_MATCH_STATUS:
        return parse_ranges(w, e, str_of(word));
    case CHECK_MATCH_REGEX:
    case CHECK_MATCH_BINARY_REGEX:
    case CHECK_MATCH_STATUS_REGEX:
        return parse_regex(w, word, &e->regex);
    case CHECK_MATCH_BINARY:
        return check_hex(w, word, &e->text);
    case CHECK_MATCH_STRING_FMT:
    case CHECK_MATCH_BINARY_FMT:
        e->fmt = check_fmt(w, word);
        return e->fmt ? 0 : SP_EINVAL;
    default:
        e->text = str_of(word);
        return 0;
    }
}

/* "[!] MATCH PATTERN": the '!' may stand alone or before the word. */
static int parse_match(struct check_words *w, struct check_expect *e, bool http)
{
    const struct match_name *found;
    const char *word = w->argv[w->at];

    while (*word == '!') {
        e->negate = !e->negate;
        word++;
        if (!*word) {
            word = check_next_word(w);
            if (!word)
                return SP_EINVAL;
        }
    }
    found = find_match(word, http);
    if (!found)
        return unknown_word(w, word, http);
    if (e->match != CHECK_MATCH_NONE)
        return check_fail(w, "'%s': only one pattern is allowed", word);
    e->match = found->match;
    return parse_pattern(w, e);
}

int check_parse_expect(struct check_words *w, struct check_step *step, bool http)
{
    struct check_expect *e = &step->u.expect;
    int rc = 0;

    e->min_recv = -1;
    for (w->at = 1; w->at < w->argc && rc == 0; w->at++) {
        rc = parse_option(w, step);
        if (rc == SP_ENOENT)
            rc = parse_match(w, e, http);
    }
    if (rc == 0 && e->match == CHECK_MATCH_NONE)
        return check_fail(w, "a pattern is missing, e.g. '%s'", http ? "status 200" : "string +OK");
    return rc;
}
