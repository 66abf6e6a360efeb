#include "config/lexer.h"

#include "base/status.h"

#include <stdlib.h>

struct scan {
    struct cfg_lexer *lx;
    struct str line;
    size_t at;
    bool in_word, squote, dquote, comments;
    size_t quote_at;
    bool quote_empty; /* the open quotes have produced nothing so far and count as an empty word */
};

void cfg_lexer_init(struct cfg_lexer *lx)
{
    *lx = (struct cfg_lexer){.empty_word = -1};
}

void cfg_lexer_release(struct cfg_lexer *lx)
{
    free(lx->text);
    free(lx->starts);
    cfg_lexer_init(lx);
}

static int fail(struct scan *s, size_t at, const char *error)
{
    s->lx->error = error;
    s->lx->position = at + 1;
    return SP_EINVAL;
}

static int emit(struct scan *s, char c)
{
    struct cfg_lexer *lx = s->lx;

    if (lx->text_len == lx->text_room) {
        size_t room = lx->text_room ? lx->text_room * 2 : 1024;
        char *text = realloc(lx->text, room);

        if (!text)
            return SP_ENOMEM;
        lx->text = text;
        lx->text_room = room;
    }
    if (lx->text_len >= CFG_EXPANDED_BYTES)
        return fail(s, s->at, "the line is too long after its variables were expanded");
    lx->text[lx->text_len++] = c;
    return 0;
}

static int begin_word(struct scan *s)
{
    struct cfg_lexer *lx = s->lx;

    if (s->in_word)
        return 0;
    if (lx->word_count == lx->word_room) {
        int room = lx->word_room ? lx->word_room * 2 : 64;
        size_t *starts = realloc(lx->starts, (size_t)room * sizeof(*starts));

        if (!starts)
            return SP_ENOMEM;
        lx->starts = starts;
        lx->word_room = room;
    }
    lx->starts[lx->word_count++] = lx->text_len;
    s->in_word = true;
    return 0;
}

static int end_word(struct scan *s)
{
    struct cfg_lexer *lx = s->lx;

    if (!s->in_word)
        return 0;
    s->in_word = false;
    if (lx->empty_word < 0 && lx->starts[lx->word_count - 1] == lx->text_len)
        lx->empty_word = lx->word_count - 1;
    return emit(s, '\0');
}

static int put(struct scan *s, char c)
{
    int status = begin_word(s);

    return status == 0 ? emit(s, c) : status;
}

static char peek(const struct scan *s, size_t ahead)
{
    return s->at + ahead < s->line.len ? s->line.ptr[s->at + ahead] : '\0';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\v' || c == '\f';
}

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static int scan_hex(struct scan *s)
{
    int high = hex_value(peek(s, 2)), low = hex_value(peek(s, 3));
    char c;

    if (high < 0 || low < 0)
        return fail(s, s->at, "truncated or invalid hexadecimal sequence, expected \\xNN");
    c = (char)(high << 4 | low);
    if (c == '\0')
        return fail(s, s->at, "\\x00 is not possible: words cannot hold NUL bytes");
    s->at += 4;
    return put(s, c);
}

/* At a backslash outside strong quotes. Combinations without a meaning keep their backslash. */
static int scan_backslash(struct scan *s)
{
    char next = peek(s, 1);
    char out = '\\';
    size_t used = 1;

    switch (next) {
    case 'x':
        return scan_hex(s);
    case 't':
        out = '\t';
        used = 2;
        break;
    case 'n':
        out = '\n';
        used = 2;
        break;
    case 'r':
        out = '\r';
        used = 2;
        break;
    case '$':
        if (s->dquote) {
            out = next;
            used = 2;
        }
        break;
    case '#':
        if (s->comments) {
            out = next;
            used = 2;
        }
        break;
    case ' ':
    case '\\':
    case '\'':
    case '"':
        out = next;
        used = 2;
        break;
    case '\0':
        if (s->at + 1 == s->line.len)
            s->lx->trailing_backslash = true;
        break;
    default:
        break;
    }
    s->at += used;
    return put(s, out);
}

/* The value of a variable or pseudo-variable; *known is false for a pseudo-variable that does not exist. */
static const char *lookup(const struct cfg_lexer *lx, struct str name, char number[24], bool *known)
{
    char text[256];

    *known = true;
    if (name.ptr[0] == '.') {
        if (str_eq(name, STR(".FILE")))
            return lx->file ? lx->file : "";
        if (str_eq(name, STR(".SECTION")))
            return lx->section ? lx->section : "";
        *known = str_eq(name, STR(".LINE"));
        number[str_put_u64(number, (uint64_t)lx->line)] = '\0';
        return number;
    }
    if (name.len >= sizeof(text))
        return NULL;
    memcpy(text, name.ptr, name.len);
    text[name.len] = '\0';
    return getenv(text);
}

/* Adds a variable's value; with `split`, blanks in it separate words. */
static int put_value(struct scan *s, struct str value, bool split)
{
    int status = 0;

    for (size_t i = 0; i < value.len && status == 0; i++) {
        bool blank = is_blank(value.ptr[i]) || value.ptr[i] == '\n' || value.ptr[i] == '\r';

        status = split && blank ? end_word(s) : put(s, value.ptr[i]);
    }
    return status;
}

/* At a '$' in weak quotes. */
static int scan_variable(struct scan *s)
{
    size_t dollar = s->at, start;
    bool brace = peek(s, 1) == '{', split = false, known;
    char number[24];
    struct str name, value;
    const char *found;

    start = dollar + 1 + brace;
    s->at = start;
    if (!(is_name_char(peek(s, 0)) || peek(s, 0) == '.') ||
        (peek(s, 0) >= '0' && peek(s, 0) <= '9'))
        return fail(s, start,
                    "forbidden first character in the name of an environment variable, "
                    "expected a letter or '_' (a plain dollar is written \\$)");
    s->at += peek(s, 0) == '.';
    while (is_name_char(peek(s, 0)))
        s->at++;
    name = str_make(s->line.ptr + start, s->at - start);
    found = lookup(s->lx, name, number, &known);
    if (!known)
        return fail(s, start, "unknown pseudo-variable, expected .FILE, .LINE or .SECTION");
    value = str_of(found);
    if (brace && peek(s, 0) == '[') {
        if (peek(s, 1) != '*' || peek(s, 2) != ']')
            return fail(s, s->at, "truncated or invalid word expansion, expected [*]");
        split = true;
        s->at += 3;
    }
    if (brace && peek(s, 0) == '-') {
        size_t close = str_chr(str_from(s->line, s->at), '}');

        if (!found)
            value = str_make(s->line.ptr + s->at + 1, close - 1);
        found = value.ptr;
        s->at += close;
    }
    if (brace && peek(s, 0) != '}')
        return fail(s, dollar + 1, "unmatched brace in the name of an environment variable");
    s->at += brace;
    /* An empty list is no word at all, an unknown variable is an empty one. */
    if (split)
        s->quote_empty = false;
    else if (!found) {
        int status = begin_word(s);

        if (status != 0)
            return status;
    }
    return put_value(s, value, split);
}

static int scan_quote(struct scan *s, bool *open)
{
    int status = 0;

    if (*open && s->quote_empty)
        status = begin_word(s);
    if (!*open) {
        s->quote_at = s->at;
        s->quote_empty = true;
    }
    *open = !*open;
    s->at++;
    return status;
}

static int scan_one(struct scan *s)
{
    char c = s->line.ptr[s->at];

    if (c == '"' && !s->squote)
        return scan_quote(s, &s->dquote);
    if (c == '\'' && !s->dquote)
        return scan_quote(s, &s->squote);
    if (c == '\\' && !s->squote)
        return scan_backslash(s);
    if (c == '$' && s->dquote)
        return scan_variable(s);
    if (c == '\0')
        return fail(s, s->at, "stray NUL byte");
    if (c == '\r')
        return fail(s, s->at, "stray carriage return in the middle of a line");
    s->at++;
    if (is_blank(c) && !s->squote && !s->dquote)
        return end_word(s);
    return put(s, c);
}

int cfg_lexer_split(struct cfg_lexer *lx, struct str line, bool comments)
{
    struct scan s = {.lx = lx, .line = line, .comments = comments};
    int status = 0;

    lx->text_len = 0;
    lx->word_count = 0;
    lx->error = NULL;
    lx->position = 0;
    lx->empty_word = -1;
    lx->trailing_backslash = false;
    /* CRLF files: the carriage returns belong to the line's end. */
    while (s.line.len && s.line.ptr[s.line.len - 1] == '\r')
        s.line.len--;
    if (s.line.len > CFG_LINE_BYTES)
        return fail(&s, CFG_LINE_BYTES, "the line is longer than 65536 bytes");
    while (status == 0 && s.at < s.line.len) {
        if (comments && s.line.ptr[s.at] == '#' && !s.squote && !s.dquote)
            break;
        status = scan_one(&s);
    }
    if (status == 0 && (s.squote || s.dquote))
        return fail(&s, s.quote_at, "unmatched quote");
    return status == 0 ? end_word(&s) : status;
}

char **cfg_lexer_words(const struct cfg_lexer *lx, struct arena *arena)
{
    size_t count = (size_t)lx->word_count;
    char **words = arena_alloc(arena, (count + 1) * sizeof(*words) + lx->text_len);
    char *text;

    if (!words)
        return NULL;
    text = (char *)(words + count + 1);
    if (lx->text_len)
        memcpy(text, lx->text, lx->text_len);
    for (size_t i = 0; i < count; i++)
        words[i] = text + lx->starts[i];
    words[count] = NULL;
    return words;
}

char *cfg_lexer_join(const struct cfg_lexer *lx, struct arena *arena, int first)
{
    size_t from = first < lx->word_count ? lx->starts[first] : lx->text_len;
    size_t len = lx->text_len - from;
    char *text = arena_alloc(arena, len + 1);

    if (!text)
        return NULL;
    if (len)
        memcpy(text, lx->text + from, len);
    for (size_t i = 0; i + 1 < len; i++)
        text[i] = text[i] == '\0' ? ' ' : text[i];
    text[len] = '\0';
    return text;
}
