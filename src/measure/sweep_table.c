/*
 * Earlier tables: CSV as RFC 4180 has it, without line ends within fields.
 */
#include "measure/sweep_table.h"

#include "base/str.h"

#include <sallyport/status.h>

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#define COLUMNS_MAX 64
#define FIELD_BYTES 1024
#define WORD_SHOWN 40
#define TABLE_BYTES_MAX (1ull << 40)
#define TABLE_N_MAX 1000000

enum column {
    COLUMN_ALGORITHM,
    COLUMN_MODE,
    COLUMN_N,
    COLUMN_BYTES,
    COLUMN_IMPL,
    COLUMN_RATE,
    COLUMN_CPU,
    COLUMN_IGNORED, /* ours, of no use here */
    COLUMN_VALUE,   /* a series of the published shape */
};

static const struct {
    const char *name;
    enum column column;
    bool is_needed;
} columns[] = {
    {"algorithm", COLUMN_ALGORITHM, true},
    {"mode", COLUMN_MODE, true},
    {"n", COLUMN_N, true},
    {"request_bytes", COLUMN_BYTES, true},
    {"impl", COLUMN_IMPL, true},
    {"bytes_per_s", COLUMN_RATE, true},
    {"bytes_per_cpu_s", COLUMN_CPU, false},
    {"bytes_per_s_low", COLUMN_IGNORED, false},
    {"bytes_per_s_high", COLUMN_IGNORED, false},
    {"requests_per_s", COLUMN_IGNORED, false},
    {"bytes_per_own_cpu_s", COLUMN_IGNORED, false},
    {"p50_us", COLUMN_IGNORED, false},
    {"p99_us", COLUMN_IGNORED, false},
    {"async_share", COLUMN_IGNORED, false},
    {"requests", COLUMN_IGNORED, false},
    {"errors", COLUMN_IGNORED, false},
    {"in_place", COLUMN_IGNORED, false},
    {"why_not", COLUMN_IGNORED, false},
};
#define COLUMN_NAMES (sizeof(columns) / sizeof(columns[0]))

struct parser {
    struct sweep_table *table;
    size_t room;
    struct str rest;
    size_t line;
    char *error;
    /* Of the first line: what each column is; series of the published shape: which. */
    enum column kinds[COLUMNS_MAX];
    size_t series_of[COLUMNS_MAX];
    size_t column_count;
    uint64_t last_bytes; /* published: of the line before */
    size_t hint;         /* where the last series was found */
    /* Of the current line. */
    char fields[COLUMNS_MAX][FIELD_BYTES];
    size_t field_count;
};

__attribute__((format(printf, 3, 4))) static int bad(struct parser *p, const char *word, const char *format, ...)
{
    char expected[160];
    va_list args;
    size_t shown = 0;

    va_start(args, format);
    (void)vsnprintf(expected, sizeof(expected), format, args);
    va_end(args);
    while (word && word[shown] && shown < WORD_SHOWN && (unsigned char)word[shown] >= ' ')
        shown++;
    if (word)
        (void)snprintf(p->error, SWEEP_TABLE_ERROR_BYTES, "line %zu: '%.*s': expected %s", p->line, (int)shown, word,
                       expected);
    else
        (void)snprintf(p->error, SWEEP_TABLE_ERROR_BYTES, "line %zu: expected %s", p->line, expected);
    return SP_EINVAL;
}

/* One field from *at on, unquoted; *at ends behind it. */
static int read_field(struct parser *p, struct str line, size_t *at, char *out)
{
    size_t len = 0, i = *at;
    bool is_quoted = i < line.len && line.ptr[i] == '"';

    i += is_quoted;
    for (; i < line.len; i++) {
        char c = line.ptr[i];

        if (is_quoted && c == '"') {
            if (i + 1 >= line.len || line.ptr[i + 1] != '"')
                break;
            i++;
        } else if (!is_quoted && c == ',') {
            break;
        } else if (!is_quoted && c == '"') {
            out[len] = '\0';
            return bad(p, out, "no quote within a field that does not begin with one");
        }
        if (c == '\0' || len + 1 >= FIELD_BYTES) {
            out[len] = '\0';
            return bad(p, out, c ? "fields of at most %d bytes" : "text without NUL bytes", FIELD_BYTES - 1);
        }
        out[len++] = c;
    }
    out[len] = '\0';
    if (is_quoted && i >= line.len)
        return bad(p, out, "a closing quote on the same line");
    i += is_quoted;
    if (i < line.len && line.ptr[i] != ',')
        return bad(p, out, "a comma behind the closing quote");
    *at = i;
    return 0;
}

/* The next line that is not empty, as fields. 1: there is none. */
static int read_line(struct parser *p)
{
    while (p->rest.len) {
        size_t len = str_chr(p->rest, '\n'), at = 0;
        struct str line = str_make(p->rest.ptr, len);

        p->rest = str_from(p->rest, len + 1);
        p->line++;
        if (line.len && line.ptr[line.len - 1] == '\r')
            line.len--;
        if (line.len == 0)
            continue;
        p->field_count = 0;
        for (;;) {
            int status;

            if (p->field_count == COLUMNS_MAX)
                return bad(p, NULL, "at most %d columns", COLUMNS_MAX);
            status = read_field(p, line, &at, p->fields[p->field_count]);
            if (status != 0)
                return status;
            p->field_count++;
            if (at >= line.len)
                return 0;
            at++;
        }
    }
    return 1;
}

static int parse_whole(struct parser *p, const char *word, uint64_t max, const char *what, uint64_t *out)
{
    if (str_to_u64(str_of(word), out) != 0 || *out < 1 || *out > max)
        return bad(p, word, "%s, a whole number from 1 to %llu", what, (unsigned long long)max);
    return 0;
}

/* A figure above nothing; an empty field is NAN: not measured. */
static int parse_value(struct parser *p, const char *word, double *out)
{
    char *end;

    *out = NAN;
    if (!*word)
        return 0;
    /* Neither the "nan", "inf" and "0x1p3" of strtod nor spaces. */
    if (word[strspn(word, "0123456789.eE+-")] == '\0')
        *out = strtod(word, &end);
    else
        end = (char *)(uintptr_t)word;
    if (end == word || *end || !isfinite(*out) || *out < 0)
        return bad(p, word, "a number that is not negative, or nothing");
    return 0;
}

static int find_series(struct parser *p, const char *algorithm, const char *name, struct sweep_mode mode,
                       enum sweep_metric metric, size_t *out)
{
    struct sweep_table *t = p->table;
    struct sweep_table_series *s;

    /* Lines come in the same order at every size: the next series is most often behind the last one. */
    for (size_t i = 1; i <= t->count; i++) {
        size_t at = (p->hint + i) % t->count;

        s = &t->series[at];
        if (s->mode.kind == mode.kind && s->mode.n == mode.n && s->metric == metric && strcmp(s->name, name) == 0 &&
            (algorithm ? s->algorithm && strcmp(s->algorithm, algorithm) == 0 : !s->algorithm)) {
            *out = p->hint = at;
            return 0;
        }
    }
    if (t->count == SWEEP_TABLE_SERIES_MAX)
        return bad(p, name, "at most %d implementations, modes and algorithms in all", SWEEP_TABLE_SERIES_MAX);
    if (t->count == p->room) {
        size_t room = p->room ? p->room * 2 : 16;

        s = realloc(t->series, room * sizeof(*s));
        if (!s)
            return SP_ENOMEM;
        t->series = s;
        p->room = room;
    }
    s = &t->series[t->count];
    *s = (struct sweep_table_series){.mode = mode, .metric = metric};
    s->name = strdup(name);
    s->algorithm = algorithm ? strdup(algorithm) : NULL;
    if (!s->name || (algorithm && !s->algorithm)) {
        free(s->name);
        free(s->algorithm);
        return SP_ENOMEM;
    }
    *out = p->hint = t->count++;
    return 0;
}

static int add_point(struct parser *p, size_t series, uint64_t bytes, const char *word)
{
    struct sweep_table_series *s = &p->table->series[series];
    double value;
    int status = parse_value(p, word, &value);

    if (status != 0 || isnan(value) || value == 0)
        return status;
    if (s->count && bytes == s->bytes[s->count - 1])
        return bad(p, word, "each size once for each implementation, mode and algorithm");
    if (s->count && bytes < s->bytes[s->count - 1])
        return bad(p, word, "sizes that grow from line to line");
    if (s->count == SWEEP_POINTS_MAX)
        return bad(p, word, "at most %d sizes", SWEEP_POINTS_MAX);
    s->bytes[s->count] = bytes;
    s->values[s->count++] = value;
    return 0;
}

/* MODE_NAME_bytes_per_s or MODE_NAME_bytes_per_cpu_s. */
static int read_published_column(struct parser *p, size_t i)
{
    static const char expected[] =
        "request_bytes, MODE_NAME_bytes_per_s or MODE_NAME_bytes_per_cpu_s, with MODE single "
        "or concurrentN";
    struct str word = str_of(p->fields[i]), cpu = STR("_bytes_per_cpu_s"), rate = STR("_bytes_per_s");
    struct sweep_mode mode = {SWEEP_SINGLE, 1};
    enum sweep_metric metric = str_ends(word, cpu) ? SWEEP_BY_CPU : SWEEP_BY_RATE;
    size_t mode_len = str_chr(word, '_'), count = p->table->count;
    struct str mode_word = str_make(word.ptr, mode_len), name = str_from(word, mode_len + 1);
    char text[SWEEP_TABLE_NAME_BYTES];
    uint64_t n = 1;
    int status;

    if (metric == SWEEP_BY_RATE && !str_ends(word, rate))
        return bad(p, p->fields[i], "%s", expected);
    name.len -=
        name.len < (metric == SWEEP_BY_CPU ? cpu : rate).len ? name.len : (metric == SWEEP_BY_CPU ? cpu : rate).len;
    if (str_starts(mode_word, STR("concurrent"))) {
        mode.kind = SWEEP_CONCURRENT;
        if (str_to_u64(str_from(mode_word, 10), &n) != 0 || n < 1 || n > TABLE_N_MAX)
            return bad(p, p->fields[i], "concurrentN with N from 1 to %d", TABLE_N_MAX);
        mode.n = (unsigned)n;
    } else if (!str_eq(mode_word, STR("single"))) {
        return bad(p, p->fields[i], "%s", expected);
    }
    if (name.len == 0 || name.len >= sizeof(text))
        return bad(p, p->fields[i], "%s, and a NAME of 1 to %zu bytes", "MODE_NAME_bytes_per_s", sizeof(text) - 1);
    memcpy(text, name.ptr, name.len);
    text[name.len] = '\0';
    p->kinds[i] = COLUMN_VALUE;
    status = find_series(p, NULL, text, mode, metric, &p->series_of[i]);
    if (status == 0 && p->table->count == count)
        status = bad(p, p->fields[i], "each column once");
    return status;
}

static int read_published_header(struct parser *p)
{
    bool has_bytes = false;

    p->table->is_published = true;
    for (size_t i = 0; i < p->field_count; i++) {
        int status;

        if (strcmp(p->fields[i], "request_bytes") == 0) {
            if (has_bytes)
                return bad(p, p->fields[i], "each column once");
            has_bytes = true;
            p->kinds[i] = COLUMN_BYTES;
            continue;
        }
        status = read_published_column(p, i);
        if (status != 0)
            return status;
    }
    if (!has_bytes)
        return bad(p, p->fields[0], "a column request_bytes");
    if (p->table->count == 0)
        return bad(p, p->fields[0], "a column MODE_NAME_bytes_per_s beside request_bytes");
    return 0;
}

static int read_own_header(struct parser *p)
{
    bool seen[COLUMN_NAMES] = {false};

    for (size_t i = 0; i < p->field_count; i++) {
        size_t k = 0;

        while (k < COLUMN_NAMES && strcmp(p->fields[i], columns[k].name) != 0)
            k++;
        if (k == COLUMN_NAMES)
            return bad(p, p->fields[i],
                       "a column of sweep's CSV: algorithm, mode, n, request_bytes, impl, bytes_per_s, ...");
        if (seen[k])
            return bad(p, p->fields[i], "each column once");
        seen[k] = true;
        p->kinds[i] = columns[k].column;
    }
    for (size_t k = 0; k < COLUMN_NAMES; k++)
        if (columns[k].is_needed && !seen[k])
            return bad(p, NULL, "a column %s beside the others of sweep's CSV", columns[k].name);
    return 0;
}

static int read_header(struct parser *p)
{
    int status = read_line(p);

    if (status > 0)
        return bad(p, NULL, "a first line that names the columns; there is none");
    if (status < 0)
        return status;
    p->column_count = p->field_count;
    for (size_t i = 0; i < p->field_count; i++)
        if (strcmp(p->fields[i], "algorithm") == 0 || strcmp(p->fields[i], "impl") == 0)
            return read_own_header(p);
    return read_published_header(p);
}

static int parse_mode(struct parser *p, const char *word, const char *n_word, struct sweep_mode *mode)
{
    uint64_t n;
    int status;

    for (mode->kind = SWEEP_SINGLE; strcmp(word, sweep_mode_name(mode->kind)) != 0; mode->kind++)
        if (mode->kind == SWEEP_DEPTH)
            return bad(p, word, "a mode: single, concurrent or depth");
    status = parse_whole(p, n_word, TABLE_N_MAX, "threads or requests in flight", &n);
    if (status == 0 && mode->kind == SWEEP_SINGLE && n != 1)
        status = bad(p, n_word, "1 beside single");
    if (status == 0)
        mode->n = (unsigned)n;
    return status;
}

static int read_own_line(struct parser *p)
{
    const char *words[COLUMN_IGNORED + 1] = {NULL};
    struct sweep_mode mode;
    uint64_t bytes;
    size_t series;
    int status;

    for (size_t i = 0; i < p->column_count; i++)
        words[p->kinds[i]] = p->fields[i];
    if (!*words[COLUMN_ALGORITHM] || strlen(words[COLUMN_ALGORITHM]) >= SWEEP_TABLE_NAME_BYTES)
        return bad(p, words[COLUMN_ALGORITHM], "an algorithm of 1 to %d bytes", SWEEP_TABLE_NAME_BYTES - 1);
    if (!*words[COLUMN_IMPL] || strlen(words[COLUMN_IMPL]) >= SWEEP_TABLE_NAME_BYTES)
        return bad(p, words[COLUMN_IMPL], "an implementation of 1 to %d bytes", SWEEP_TABLE_NAME_BYTES - 1);
    status = parse_mode(p, words[COLUMN_MODE], words[COLUMN_N], &mode);
    if (status == 0)
        status = parse_whole(p, words[COLUMN_BYTES], TABLE_BYTES_MAX, "bytes a request", &bytes);
    for (int metric = SWEEP_BY_RATE; metric <= SWEEP_BY_CPU && status == 0; metric++) {
        const char *word = words[metric == SWEEP_BY_RATE ? COLUMN_RATE : COLUMN_CPU];

        if (!word)
            continue;
        status = find_series(p, words[COLUMN_ALGORITHM], words[COLUMN_IMPL], mode, metric, &series);
        if (status == 0)
            status = add_point(p, series, bytes, word);
    }
    return status;
}

static int read_published_line(struct parser *p)
{
    uint64_t bytes = 0;
    int status = 0;

    for (size_t i = 0; i < p->column_count && status == 0; i++)
        if (p->kinds[i] == COLUMN_BYTES)
            status = parse_whole(p, p->fields[i], TABLE_BYTES_MAX, "bytes a request", &bytes);
    if (status == 0 && bytes <= p->last_bytes)
        status = bad(p, NULL, "a size greater than that of the line before");
    for (size_t i = 0; i < p->column_count && status == 0; i++)
        if (p->kinds[i] == COLUMN_VALUE)
            status = add_point(p, p->series_of[i], bytes, p->fields[i]);
    p->last_bytes = bytes;
    return status;
}

static int read_lines(struct parser *p)
{
    size_t points = 0;
    int status;

    while ((status = read_line(p)) == 0) {
        if (p->field_count != p->column_count)
            return bad(p, NULL, "%zu fields as in the first line; there are %zu", p->column_count, p->field_count);
        status = p->table->is_published ? read_published_line(p) : read_own_line(p);
        if (status != 0)
            return status;
    }
    if (status < 0)
        return status;
    for (size_t i = 0; i < p->table->count; i++)
        points += p->table->series[i].count;
    return points ? 0 : bad(p, NULL, "lines with figures behind the first line; there are none");
}

int sweep_table_parse(const char *text, size_t len, struct sweep_table **out, char error[SWEEP_TABLE_ERROR_BYTES])
{
    struct parser *p;
    struct sweep_table *table;
    int status;

    if (len > SWEEP_TABLE_BYTES_MAX) {
        (void)snprintf(error, SWEEP_TABLE_ERROR_BYTES, "expected a file of at most %u bytes; it has %zu",
                       SWEEP_TABLE_BYTES_MAX, len);
        return SP_EINVAL;
    }
    p = calloc(1, sizeof(*p));
    table = calloc(1, sizeof(*table));
    if (!p || !table) {
        free(p);
        free(table);
        return SP_ENOMEM;
    }
    p->table = table;
    p->rest = str_make(text, len);
    p->error = error;
    status = read_header(p);
    if (status == 0)
        status = read_lines(p);
    free(p);
    if (status != 0)
        sweep_table_free(table);
    else
        *out = table;
    return status;
}

void sweep_table_free(struct sweep_table *table)
{
    if (!table)
        return;
    for (size_t i = 0; i < table->count; i++) {
        free(table->series[i].algorithm);
        free(table->series[i].name);
    }
    free(table->series);
    free(table);
}

double sweep_table_value(const struct sweep_table_series *s, uint64_t bytes)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->bytes[i] == bytes)
            return s->values[i];
    return NAN;
}

void sweep_table_points(struct sweep_points *p, const struct sweep_table_series *a, const struct sweep_table_series *b)
{
    p->count = 0;
    for (size_t i = 0; i < a->count; i++)
        sweep_points_add(p, a->bytes[i], a->values[i], sweep_table_value(b, a->bytes[i]), false);
}

static bool is_beside(const struct sweep_table_series *a, const struct sweep_table_series *b)
{
    return a->mode.kind == b->mode.kind && a->mode.n == b->mode.n && a->metric == b->metric &&
           (a->algorithm ? b->algorithm && strcmp(a->algorithm, b->algorithm) == 0 : !b->algorithm);
}

const struct sweep_table_series *sweep_table_base(const struct sweep_table *t, const struct sweep_table_series *s)
{
    const struct sweep_table_series *base = s;

    for (size_t i = 0; i < t->count; i++) {
        size_t at = t->is_published ? i : t->count - 1 - i;

        if (is_beside(&t->series[at], s))
            base = &t->series[at];
    }
    return base == s ? NULL : base;
}

const struct sweep_table_series *sweep_table_next(const struct sweep_table *t, const char *algorithm,
                                                  enum sweep_mode_kind kind, enum sweep_metric metric, size_t *at)
{
    for (; t && *at < t->count; ++*at) {
        const struct sweep_table_series *s = &t->series[*at];
        bool is_kind = s->mode.kind == kind || (!s->algorithm && s->mode.kind != SWEEP_SINGLE && kind != SWEEP_SINGLE);

        if (is_kind && s->metric == metric && s->count && (!s->algorithm || strcmp(s->algorithm, algorithm) == 0)) {
            ++*at;
            return s;
        }
    }
    return NULL;
}

const char *sweep_table_label(const struct sweep_table_series *s, const struct sweep_mode *mode,
                              const char *earlier_name, char out[SWEEP_TABLE_LABEL_BYTES])
{
    const char *name = earlier_name ? earlier_name : "earlier";

    if (s->mode.kind == mode->kind && s->mode.n == mode->n)
        (void)snprintf(out, SWEEP_TABLE_LABEL_BYTES, "%s (%s)", s->name, name);
    else
        (void)snprintf(out, SWEEP_TABLE_LABEL_BYTES, "%s, %u %s (%s)", s->name, s->mode.n,
                       s->mode.kind == SWEEP_DEPTH ? "in flight" : "concurrent", name);
    return out;
}
