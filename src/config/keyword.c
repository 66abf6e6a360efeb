#include "config/parser.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* Most rows that one place has, with room to spare; suggestions look at no more. */
#define CANDIDATES_MAX 1024
/* After so many errors no one needs the nearest keyword, which takes a while to find. */
#define SUGGESTING_ERRORS_MAX 50
#define NAME_BYTES 96
#define WORDS_MAX 3

static const struct cfg_kw *const tables[] = {
    cfg_kw_sections, cfg_kw_global,  cfg_kw_global_ssl, cfg_kw_tune,
    cfg_kw_proxy,    cfg_kw_timeout, cfg_kw_option,     cfg_kw_balance,
    cfg_kw_log,      cfg_kw_rules,   cfg_kw_stats,      cfg_kw_error,
    cfg_kw_bind,     cfg_kw_ssl,     cfg_kw_server,     cfg_kw_refused,
};

#define TABLE_COUNT (sizeof(tables) / sizeof(tables[0]))

const struct cfg_kw *cfg_kw_at(unsigned index)
{
    for (size_t t = 0; t < TABLE_COUNT; t++) {
        const struct cfg_kw *kw = tables[t];

        while (kw->name && index) {
            kw++;
            index--;
        }
        if (kw->name)
            return kw;
    }
    return NULL;
}

int cfg_keywords_init(struct cfg_parser *p)
{
    size_t count = 0, used = 0;

    map_init(&p->keywords);
    for (size_t t = 0; t < TABLE_COUNT; t++) {
        for (const struct cfg_kw *kw = tables[t]; kw->name; kw++)
            count++;
    }
    p->nodes = calloc(count, sizeof(*p->nodes));
    if (!p->nodes)
        return SP_ENOMEM;
    for (size_t t = 0; t < TABLE_COUNT; t++) {
        for (const struct cfg_kw *kw = tables[t]; kw->name; kw++) {
            struct cfg_kw_node *node = &p->nodes[used++], *first;

            node->kw = kw;
            first = map_get(&p->keywords, str_of(kw->name));
            if (first) {
                node->next = first->next;
                first->next = node;
            } else if (map_put(&p->keywords, str_of(kw->name), node) != 0) {
                return SP_ENOMEM;
            }
        }
    }
    return 0;
}

const struct cfg_kw *cfg_kw_find(const struct cfg_parser *p, struct str name, unsigned places,
                                 const struct cfg_kw **elsewhere)
{
    for (const struct cfg_kw_node *node = map_get(&p->keywords, name); node; node = node->next) {
        if (node->kw->sections & places)
            return node->kw;
        if (!*elsewhere)
            *elsewhere = node->kw;
    }
    return NULL;
}

const char *cfg_places(char *out, size_t out_bytes, unsigned sections)
{
    static const char *const names[] = {
        "global",
        "defaults",
        "frontend",
        "listen",
        "backend",
        "http-errors",
        "bind option",
        "server option",
        "default-server option",
        "ssl-default-bind-options",
        "ssl-default-server-options",
        "stats socket option",
        "top level",
    };
    size_t len = 0;

    out[0] = '\0';
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if ((sections & 1u << i) && len < out_bytes)
            len += (size_t)snprintf(out + len, out_bytes - len, "%s%s", len ? ", " : "", names[i]);
    }
    return out;
}

/* --- carrying out a row --- */

static int missing(struct cfg_parser *p, const struct cfg_kw *kw)
{
    return cfg_kw_fail(p, kw, "missing argument; expected '%s%s%s'", kw->name, kw->args ? " " : "",
                       kw->args ? kw->args : "");
}

static int apply_number(struct cfg_parser *p, const struct cfg_kw *kw, void *field,
                        const char *word)
{
    int64_t value = 0;
    int status;

    switch (kw->kind) {
    case CFG_KW_INT:
        status = cfg_value_int(p, kw, word, kw->min, kw->max, &value);
        break;
    case CFG_KW_SIZE:
        status = cfg_value_size(p, kw, word, kw->max ? kw->max : INT_MAX, &value);
        if (status == 0 && value < kw->min)
            status =
                cfg_kw_fail(p, kw, "'%s' is out of range; expected a size of at least %d bytes",
                            word, (int)kw->min);
        break;
    case CFG_KW_TIME_S:
        status = cfg_value_time(p, kw, word, 1000000, &value);
        break;
    default:
        status = cfg_value_time(p, kw, word, kw->unit ? kw->unit : 1000, &value);
        if (status == 0 && value < kw->min)
            status = cfg_kw_fail(p, kw, "'%s' is out of range; expected a time above 0", word);
        break;
    }
    if (status != 0)
        return status;
    if (!field)
        return 1;
    if (kw->kind == CFG_KW_INT || kw->kind == CFG_KW_SIZE)
        *(int *)field = (int)value;
    else if (kw->kind == CFG_KW_TIME_S)
        *(int64_t *)field = (value + 999999) / 1000000;
    else
        *(int64_t *)field = value;
    return 1;
}

static void apply_flag(struct cfg_parser *p, const struct cfg_kw *kw, bool *field)
{
    if (!field)
        return;
    if (p->modifier == CFG_MODIFIER_DEFAULT && p->section != CFG_SEC_GLOBAL)
        *field = *(bool *)((char *)p->pristine.proxy + kw->at);
    else
        *field = (kw->kind == CFG_KW_FLAG) == (p->modifier != CFG_MODIFIER_NO);
}

static int apply_on_off(struct cfg_parser *p, const struct cfg_kw *kw, bool *field,
                        const char *word)
{
    static const char *const words[] = {"off", "on"};
    int index, status = cfg_value_word(p, kw, word, words, 2, &index);

    if (status != 0)
        return status;
    if (field)
        *field = index == 1;
    return 1;
}

static int apply_line(struct cfg_parser *p, const struct cfg_kw *kw, int argc, char **argv)
{
    if (argc < kw->min_args)
        return missing(p, kw);
    /* The words of the name stand just before the arguments. */
    cfg_line_append(p, kw->line, argc + kw->keep, argv - kw->keep);
    return argc;
}

static int apply_kind(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                      char **argv)
{
    void *field = kw->at == CFG_NOWHERE || !object ? NULL : (char *)object + kw->at;

    switch (kw->kind) {
    case CFG_KW_FLAG:
    case CFG_KW_UNFLAG:
        apply_flag(p, kw, field);
        return 0;
    case CFG_KW_SET:
        *(int *)field = (int)kw->min;
        return 0;
    case CFG_KW_LINE:
        return apply_line(p, kw, argc, argv);
    case CFG_KW_ANY:
        return argc < kw->min_args ? missing(p, kw) : argc;
    case CFG_KW_PARSE:
        return argc < kw->min_args && p->modifier == CFG_MODIFIER_NONE
                   ? missing(p, kw)
                   : kw->parse(p, kw, object, argc, argv);
    case CFG_KW_REFUSED:
        return cfg_fail(p, "%s%s'%s' is a HAProxy keyword that Sallyport does not support%s%s",
                        p->context, p->context[0] ? ": " : "", kw->name, kw->note ? "; " : "",
                        kw->note ? kw->note : "");
    default:
        break;
    }
    if (argc < 1)
        return missing(p, kw);
    if (kw->kind == CFG_KW_ON_OFF)
        return apply_on_off(p, kw, field, argv[0]);
    if (kw->kind != CFG_KW_STRING)
        return apply_number(p, kw, field, argv[0]);
    if (field)
        *(const char **)field = argv[0];
    return 1;
}

int cfg_kw_apply(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc, char **argv)
{
    int taken;

    if (p->modifier != CFG_MODIFIER_NONE && !(kw->flags & CFG_KW_CAN_NEGATE) &&
        kw->kind != CFG_KW_REFUSED)
        return cfg_kw_fail(p, kw,
                           "'%s' cannot precede this keyword; expected it before options, 'log' "
                           "and other switches",
                           p->modifier == CFG_MODIFIER_NO ? "no" : "default");
    if (kw->flags & CFG_KW_NAMED_DEFAULTS && p->section == CFG_SEC_DEFAULTS && p->scope->anonymous)
        return cfg_kw_fail(p, kw,
                           "it is not allowed in a defaults section without a name; expected "
                           "'defaults <name>' above");
    taken = apply_kind(p, kw, object, argc, argv);
    if (taken >= 0 && kw->at == CFG_NOWHERE && kw->kind != CFG_KW_PARSE &&
        !(kw->flags & CFG_KW_QUIET) && kw->kind != CFG_KW_LINE)
        cfg_kw_warn(p, kw, "accepted, has no effect here%s%s", kw->note ? ": " : "",
                    kw->note ? kw->note : "");
    return taken;
}

/* --- unknown and misplaced words --- */

/* The characters of a word as bits; upper and lower case share theirs. */
static uint64_t letters(const char *word)
{
    uint64_t set = 0;

    for (; *word; word++)
        set |= (uint64_t)1 << (*word & 0x1f) << (*word & 0x40 ? 32 : 0);
    return set;
}

/*
 * Leaves the names that can be near `word` at all: every letter that one has and the other has not
 * is a change, and str_nearest allows few. Spares nearly all of the distances.
 */
static size_t keep_similar(const char **names, size_t n, const char *word)
{
    int limit = (int)strlen(word) / 3 + 1;
    uint64_t own = letters(word);
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        uint64_t other = letters(names[i]);

        if (__builtin_popcountll(own & ~other) <= limit &&
            __builtin_popcountll(other & ~own) <= limit)
            names[kept++] = names[i];
    }
    return kept;
}

/* Names of the rows of `places` (0: of all), those beginning with `first` and a space when it is given. */
static size_t collect(const char **out, unsigned places, const char *first)
{
    size_t len = first ? strlen(first) : 0, count = 0;

    for (size_t t = 0; t < TABLE_COUNT; t++) {
        for (const struct cfg_kw *kw = tables[t]; kw->name && count < CANDIDATES_MAX; kw++) {
            if (places && !(kw->sections & places))
                continue;
            if (!first || (strncmp(kw->name, first, len) == 0 && kw->name[len] == ' '))
                out[count++] = kw->name;
        }
    }
    return count;
}

/* "; expected 'a', 'b' or 'c'" from the last words of a small family of keywords; empty when it is large. */
static void list_family(char *out, size_t out_bytes, const char **names, size_t n, size_t skip)
{
    size_t len = 0;

    out[0] = '\0';
    if (n > 16)
        return;
    for (size_t i = 0; i < n && len < out_bytes; i++)
        len += (size_t)snprintf(out + len, out_bytes - len, "%s'%s'",
                                i == 0       ? "; expected "
                                : i == n - 1 ? " or "
                                             : ", ",
                                names[i] + skip);
}

static void unknown_keyword(struct cfg_parser *p, int argc, char **argv)
{
    const char *names[CANDIDATES_MAX], *nearest;
    char word[NAME_BYTES], expected[600], places[200];
    size_t n = collect(names, p->section, argv[0]);
    const struct cfg_kw *other = NULL;

    expected[0] = '\0';
    if (p->diag->errors > SUGGESTING_ERRORS_MAX) {
        cfg_fail(p, "unknown keyword '%s' in section '%s'", argv[0], p->section_kind);
        return;
    }
    if (n && argc == 1) {
        list_family(expected, sizeof(expected), names, n, strlen(argv[0]) + 1);
        cfg_fail(p, "'%s': missing argument%s", argv[0], expected);
        return;
    }
    if (n) {
        snprintf(word, sizeof(word), "%s %s", argv[0], argv[1]);
        list_family(expected, sizeof(expected), names, n, strlen(argv[0]) + 1);
    } else {
        snprintf(word, sizeof(word), "%s", argv[0]);
        n = collect(names, p->section | CFG_SEC_TOP, NULL);
    }
    nearest = str_nearest(str_of(word), names, keep_similar(names, n, word));
    if (nearest) {
        cfg_fail(p, "unknown keyword '%s' in section '%s'%s; did you mean '%s'?", word,
                 p->section_kind, expected, nearest);
        return;
    }
    n = collect(names, 0, NULL);
    nearest = str_nearest(str_of(word), names, keep_similar(names, n, word));
    if (nearest)
        cfg_kw_find(p, str_of(nearest), 0, &other);
    if (other && other->kind != CFG_KW_REFUSED)
        cfg_fail(p, "unknown keyword '%s' in section '%s'%s; did you mean '%s' (allowed in: %s)?",
                 word, p->section_kind, expected, nearest,
                 cfg_places(places, sizeof(places), other->sections));
    else
        cfg_fail(p, "unknown keyword '%s' in section '%s'%s", word, p->section_kind,
                 *expected ? expected : "; expected a keyword of that section");
}

/* Everywhere that a keyword of that name is supported. */
static unsigned places_of(const struct cfg_parser *p, struct str name)
{
    unsigned places = 0;

    for (const struct cfg_kw_node *node = map_get(&p->keywords, name); node; node = node->next)
        places |= node->kw->kind == CFG_KW_REFUSED ? 0 : node->kw->sections;
    return places;
}

static void misplaced(struct cfg_parser *p, const struct cfg_kw *kw)
{
    unsigned sections = places_of(p, str_of(kw->name));
    char places[200];

    if (!sections) {
        cfg_kw_apply(p, kw, NULL, 0, NULL);
        return;
    }
    if (sections & CFG_SECTIONS)
        sections &= CFG_SECTIONS;
    cfg_fail(p, "keyword '%s' is not allowed in section '%s'; allowed in: %s", kw->name,
             p->section_kind, cfg_places(places, sizeof(places), sections));
}

/* Looks up the longest of the first one to three words. *words tells how many matched. */
static const struct cfg_kw *find_longest(const struct cfg_parser *p, int argc, char **argv,
                                         const struct cfg_kw **elsewhere, int *words)
{
    char name[NAME_BYTES];
    size_t ends[WORDS_MAX], len = 0;
    int n = 0;

    for (; n < argc && n < WORDS_MAX; n++) {
        size_t add = strlen(argv[n]);

        if (len + add + 2 > sizeof(name))
            break;
        if (n)
            name[len++] = ' ';
        memcpy(name + len, argv[n], add);
        len += add;
        ends[n] = len;
    }
    for (*words = n; *words > 0; (*words)--) {
        const struct cfg_kw *kw =
            cfg_kw_find(p, str_make(name, ends[*words - 1]), p->section, elsewhere);

        if (kw)
            return kw;
    }
    return NULL;
}

static void *section_object(struct cfg_parser *p)
{
    if (p->section == CFG_SEC_GLOBAL)
        return &p->model->global;
    return p->section == CFG_SEC_HTTP_ERRORS ? (void *)p->errors : (void *)p->scope->proxy;
}

void cfg_line_apply(struct cfg_parser *p, int argc, char **argv)
{
    const struct cfg_kw *kw, *elsewhere = NULL;
    int words, taken;

    kw = find_longest(p, argc, argv, &elsewhere, &words);
    if (!kw) {
        if (elsewhere)
            misplaced(p, elsewhere);
        else
            unknown_keyword(p, argc, argv);
        return;
    }
    taken = cfg_kw_apply(p, kw, section_object(p), argc - words, argv + words);
    if (taken >= 0 && taken < argc - words)
        cfg_kw_fail(p, kw, "unexpected argument '%s'; expected '%s%s%s'", argv[words + taken],
                    kw->name, kw->args ? " " : "", kw->args ? kw->args : "");
}

/* --- options of a line --- */

static int unknown_option(struct cfg_parser *p, unsigned place, const char *word,
                          const struct cfg_kw *elsewhere)
{
    unsigned options = places_of(p, str_of(word)) & ~(unsigned)(CFG_SECTIONS | CFG_SEC_TOP);
    const char *names[CANDIDATES_MAX];
    char hint[NAME_BYTES], places[200];
    size_t n;

    if (options)
        return cfg_fail(p, "%s: '%s' is not allowed here; allowed as: %s", p->context, word,
                        cfg_places(places, sizeof(places), options));
    if (elsewhere && elsewhere->kind == CFG_KW_REFUSED)
        return cfg_kw_apply(p, elsewhere, NULL, 0, NULL);
    n = keep_similar(names, collect(names, place, NULL), word);
    diag_suggest(hint, sizeof(hint), word, names, n);
    return cfg_fail(p, "%s: unknown option '%s'%s%s", p->context, word, *hint ? ";" : "",
                    *hint ? hint + 1 : "; expected an option of that line");
}

int cfg_options_apply(struct cfg_parser *p, unsigned place, void *object, struct cfg_ssl *ssl,
                      int argc, char **argv)
{
    int at = 0;

    while (at < argc) {
        const struct cfg_kw *elsewhere = NULL, *kw;
        struct str name = str_of(argv[at]);
        int taken;

        name.len = str_chr(name, '(');
        kw = cfg_kw_find(p, name, place, &elsewhere);
        if (!kw)
            return unknown_option(p, place, argv[at], elsewhere);
        at++;
        taken = cfg_kw_apply(p, kw, kw->flags & CFG_KW_IN_SSL ? (void *)ssl : object, argc - at,
                             argv + at);
        if (taken < 0)
            return taken;
        at += taken;
    }
    return 0;
}
