/*
 * Log formats: text, %aliases and %[expressions], compiled to parts.
 */
#include "rules/format.h"

const char rules_fmt_http[] = "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc "
                              "%ac/%fc/%bc/%sc/%rc %sq/%bq %hr %hs %{+Q}r";
const char rules_fmt_https[] =
    "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac/%fc/%bc/%sc/%rc %sq/%bq %hr %hs %{+Q}r "
    "%[fc_err]/%[ssl_fc_err,hex]/%[ssl_c_err]/%[ssl_c_ca_err]/%[ssl_fc_is_resumed] %[ssl_fc_sni]/%sslv/%sslc";
const char rules_fmt_tcp[] =
    "%ci:%cp [%t] %ft %b/%s %Tw/%Tc/%Tt %B %ts %ac/%fc/%bc/%sc/%rc %sq/%bq";
const char rules_fmt_clf[] =
    "%{+Q}o %{-Q}ci - - [%trg] %r %ST %B \"\" \"\" %cp %ms %ft %b %s %TR %Tw %Tc %Tr %Ta "
    "%tsc %ac %fc %bc %sc %rc %sq %bq %CC %CS %hrl %hsl";
const char rules_fmt_default[] =
    "Connect from %ci:%cp to %fi:%fp (%f/%[internal.strm.is_htx,iif(HTTP,TCP)])";
const char rules_fmt_error[] = "%ci:%cp [%t] %f/%[so_name]: %[fc_err_str]";

/* --- compiling ------------------------------------------------------------------------------ */

struct fmt_parser {
    struct rules_compiler *c;
    const char *text; /* the whole format, for messages */
    const char *at;
    unsigned flags; /* what applies to the following items ("%{…}o") */
    enum rules_stage stage;
    struct fmt_part *parts;
    unsigned count, room;
    unsigned needs;
};

static struct fmt_part *append(struct fmt_parser *p, enum part_kind kind, unsigned flags)
{
    if (p->count == p->room) {
        unsigned room = p->room ? p->room * 2 : 8;
        struct fmt_part *parts = compiler_zalloc(p->c, room, sizeof *parts);

        if (!parts)
            return NULL;
        if (p->count)
            memcpy(parts, p->parts, p->count * sizeof *parts);
        p->parts = parts;
        p->room = room;
    }
    p->parts[p->count] = (struct fmt_part){.kind = kind, .flags = flags};
    return &p->parts[p->count++];
}

static int append_text(struct fmt_parser *p, struct str text)
{
    struct fmt_part *part;
    struct str copy;

    if (!text.len)
        return 0;
    copy = compiler_str(p->c, text);
    part = copy.ptr ? append(p, PART_TEXT, p->flags) : NULL;
    if (!part)
        return SP_ENOMEM;
    part->text = copy;
    return 0;
}

static int fail(struct fmt_parser *p, const char *what, const char *where)
{
    diag_error(p->c->diag, p->c->loc, "%s near '%.32s' in log format '%s'", what, where, p->text);
    return SP_EINVAL;
}

/* "+Q,-X": the flags between braces, applied to *flags. */
static int parse_flags(struct fmt_parser *p, struct str list, unsigned *flags)
{
    static const struct {
        const char *name;
        unsigned bit;
    } known[] = {{"Q", FMT_QUOTE}, {"X", FMT_HEX}, {"E", FMT_ESCAPE}, {"M", FMT_MANDATORY}};

    while (list.len) {
        struct str word = str_make(list.ptr, str_chr(list, ','));
        bool add = true;
        unsigned bit = 0;

        list = str_from(list, word.len + 1);
        if (word.len && (word.ptr[0] == '+' || word.ptr[0] == '-')) {
            add = word.ptr[0] == '+';
            word = str_from(word, 1);
        }
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            if (str_eq(word, str_of(known[i].name)))
                bit = known[i].bit;
        if (!bit &&
            (str_eq(word, STR("json")) || str_eq(word, STR("cbor")) || str_eq(word, STR("bin")))) {
            diag_error(p->c->diag, p->c->loc,
                       "log format flag '%.*s' is known from HAProxy but not supported",
                       STR_FMT(word));
            return SP_EINVAL;
        }
        /* HAProxy overlooks them. */
        if (!bit)
            diag_warning(p->c->diag, p->c->loc,
                         "unknown log format flag '%.*s' is ignored, expected Q, X, E or M",
                         STR_FMT(word));
        *flags = add ? *flags | bit : *flags & ~bit;
    }
    return 0;
}

static int unknown_alias(struct fmt_parser *p, struct str name)
{
    const char *names[96];
    char hint[64], word[64];
    size_t count = alias_count < 96 ? alias_count : 96;

    if (str_eq(name, STR("OG"))) {
        diag_error(p->c->diag, p->c->loc,
                   "log format alias '%%OG' is known from HAProxy but not supported");
        return SP_EINVAL;
    }
    for (size_t i = 0; i < count; i++)
        names[i] = alias_rows[i].name;
    snprintf(word, sizeof word, "%.*s", STR_FMT(name));
    diag_error(p->c->diag, p->c->loc,
               "unknown log format alias '%%%s'%s; a lone '%%' is written '%%%%'", word,
               diag_suggest(hint, sizeof hint, word, names, count));
    return SP_EINVAL;
}

static bool is_alnum(char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9');
}

static int parse_alias(struct fmt_parser *p, unsigned flags)
{
    struct str name = str_make(p->at, 0);
    const struct alias_def *alias;
    struct fmt_part *part;

    while (is_alnum(name.ptr[name.len]))
        name.len++;
    p->at += name.len;
    if (str_eq(name, STR("o"))) {
        p->flags = flags;
        return 0;
    }
    alias = alias_find(name);
    if (!alias)
        return unknown_alias(p, name);
    part = append(p, PART_ALIAS, flags);
    if (!part)
        return SP_ENOMEM;
    part->alias = alias;
    p->needs |= alias->needs;
    return 0;
}

static int parse_expression(struct fmt_parser *p, unsigned flags)
{
    char *word = (char *)(uintptr_t)(p->at + 1);
    const char *end;
    struct rules_expr *e;
    struct fmt_part *part;
    int used;

    e = expr_compile(p->c, 1, &word, &used, &end, p->stage);
    if (!e)
        return SP_EINVAL;
    if (*end != ']')
        return fail(p, "missing ']'", p->at);
    p->at = end + 1;
    part = append(p, PART_EXPR, flags);
    if (!part)
        return SP_ENOMEM;
    part->expr = e;
    p->needs |= e->needs;
    return 0;
}

/* "(name)" or "(name:type)" only matters to encodings that are not provided. */
static int skip_name(struct fmt_parser *p)
{
    const char *start = p->at++;

    while (is_alnum(*p->at) || *p->at == '_' || *p->at == '-' || *p->at == ':')
        p->at++;
    if (*p->at != ')')
        return fail(p, "invalid name of an item", start);
    p->at++;
    return 0;
}

/* What follows a '%'. */
static int parse_item(struct fmt_parser *p)
{
    unsigned flags = p->flags;
    bool has_args = false;

    if (*p->at == '(' && skip_name(p) < 0)
        return SP_EINVAL;
    if (*p->at == '{') {
        size_t n = strcspn(p->at, "}");

        if (!p->at[n])
            return fail(p, "missing '}'", p->at);
        if (parse_flags(p, str_make(p->at + 1, n - 1), &flags) < 0)
            return SP_EINVAL;
        p->at += n + 1;
        has_args = true;
    }
    if (*p->at == '[')
        return parse_expression(p, flags);
    if (is_alnum(*p->at) && (has_args || !(*p->at >= '0' && *p->at <= '9')))
        return parse_alias(p, flags);
    if (!has_args && *p->at == '%')
        return append_text(p, str_make(p->at++, 1));
    if (!has_args && *p->at && *p->at != ' ' && *p->at != '\t' && !is_alnum(*p->at)) {
        diag_warning(p->c->diag, p->c->loc,
                     "a lone '%%' in log format '%s' is ignored; one is written '%%%%'", p->text);
        return 0;
    }
    return fail(
        p, has_args ? "flags without an alias or expression" : "a lone '%', which is written '%%',",
        *p->at ? p->at : "the end");
}

static int parse(struct fmt_parser *p)
{
    while (*p->at) {
        size_t n = strcspn(p->at, p->flags & FMT_MERGE ? "% " : "%");
        int status = append_text(p, str_make(p->at, n));

        p->at += n;
        if (status == 0 && *p->at == ' ') {
            while (*p->at == ' ')
                p->at++;
            status = append(p, PART_SPACE, p->flags) ? 0 : SP_ENOMEM;
        } else if (status == 0 && *p->at == '%') {
            p->at++;
            status = parse_item(p);
        }
        if (status < 0)
            return status;
    }
    return 0;
}

static void fold(struct rules_fmt *f, bool plain_listener, struct arena *arena);

struct rules_fmt *fmt_compile(struct rules_compiler *c, const char *text, unsigned flags,
                              enum rules_stage stage)
{
    struct fmt_parser p = {.c = c, .text = text, .at = text, .flags = flags, .stage = stage};
    struct rules_fmt *f = compiler_zalloc(c, 1, sizeof *f);

    if (!f || parse(&p) < 0)
        return NULL;
    f->parts = p.parts;
    f->count = p.count;
    f->flags = flags;
    f->needs = p.needs;
    fold(f, false, c->arena);
    return f;
}

struct rules_fmt *rules_fmt_compile(struct rules_compiler *c, const char *text, bool for_log)
{
    return fmt_compile(c, text, for_log ? FMT_MANDATORY | FMT_MERGE : FMT_HTTP, STAGE_ANY);
}

struct rules_fmt *rules_fmt_compile_id(struct rules_compiler *c, const char *text)
{
    return fmt_compile(c, text, FMT_HTTP | FMT_MERGE, STAGE_ANY);
}

/* --- emitting --------------------------------------------------------------------------------- */

void emit_raw(struct emitter *e, struct str s)
{
    size_t room = buf_room(e->out);

    if (s.len > room)
        s.len = room;
    if (s.len)
        memcpy(buf_end(e->out), s.ptr, s.len);
    buf_commit(e->out, s.len);
}

void emit_char(struct emitter *e, char ch)
{
    emit_raw(e, str_make(&ch, 1));
}

void emit_quote(struct emitter *e)
{
    if (e->flags & FMT_QUOTE)
        emit_char(e, '"');
}

static bool is_escaped(const struct emitter *e, char ch)
{
    return e->flags & FMT_ESCAPE && (ch == '"' || ch == '\\' || ch == ']');
}

void emit_text(struct emitter *e, struct str s)
{
    if (!s.len && e->flags & FMT_MANDATORY && !(e->flags & FMT_QUOTE)) {
        emit_char(e, '-');
        return;
    }
    emit_quote(e);
    s.len = str_chr(s, '\0');
    if (!(e->flags & FMT_ESCAPE)) {
        emit_raw(e, s);
    } else {
        for (size_t i = 0; i < s.len; i++) {
            if (is_escaped(e, s.ptr[i]))
                emit_char(e, '\\');
            emit_char(e, s.ptr[i]);
        }
    }
    emit_quote(e);
}

static void emit_hex(struct emitter *e, char mark, uint8_t byte)
{
    static const char digits[] = "0123456789ABCDEF";
    char text[3] = {mark, digits[byte >> 4], digits[byte & 15]};

    /* A cut escape would be misread. */
    if (buf_room(e->out) >= 3)
        emit_raw(e, str_make(text, 3));
}

static bool needs_encoding(uint8_t ch, enum encode_set set)
{
    if (ch < 32 || ch >= 127 || ch == '"' || ch == '#')
        return true;
    return set == ENCODE_HEADER && (ch == '{' || ch == '|' || ch == '}');
}

void emit_encoded(struct emitter *e, struct str s, enum encode_set set)
{
    size_t start = 0;

    for (size_t i = 0; i < s.len; i++) {
        uint8_t ch = (uint8_t)s.ptr[i];

        if (needs_encoding(ch, set)) {
            emit_raw(e, str_make(s.ptr + start, i - start));
            emit_hex(e, '#', ch);
            start = i + 1;
        } else if (is_escaped(e, s.ptr[i])) {
            emit_raw(e, str_make(s.ptr + start, i - start));
            emit_char(e, '\\');
            start = i;
        }
    }
    emit_raw(e, str_make(s.ptr + start, s.len - start));
}

/* What a field may not contain: control characters but tab. */
static bool http_forbids(uint8_t ch)
{
    return (ch < 32 && ch != '\t') || ch == 127;
}

static bool http_is_clean(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (http_forbids((uint8_t)s.ptr[i]))
            return false;
    return true;
}

void emit_http(struct emitter *e, struct str s)
{
    size_t start = 0;

    for (size_t i = 0; i < s.len; i++) {
        bool bad = http_forbids((uint8_t)s.ptr[i]);

        if (!bad && !is_escaped(e, s.ptr[i]))
            continue;
        emit_raw(e, str_make(s.ptr + start, i - start));
        if (bad) {
            emit_hex(e, '%', (uint8_t)s.ptr[i]);
            start = i + 1;
        } else {
            emit_char(e, '\\');
            start = i;
        }
    }
    emit_raw(e, str_make(s.ptr + start, s.len - start));
}

const struct rules_log *emitter_log(struct emitter *e)
{
    if (!e->log_asked) {
        e->log = ctx_log(e->ctx);
        e->log_asked = true;
    }
    return e->log;
}

static void emit_sample(struct emitter *e, bool found, struct sample *s)
{
    struct str text = STR("");

    if (found && value_cast(s, VALUE_STR, e->ctx->arena))
        text = s->u.s;
    if (e->flags & FMT_HTTP)
        emit_http(e, text);
    else
        emit_text(e, text);
}

static void emit_part(struct emitter *e, const struct fmt_part *part)
{
    struct sample s;
    bool found;

    e->flags = part->flags;
    if (part->kind == PART_ALIAS) {
        part->alias->put(e, part->alias);
        return;
    }
    found = rules_expr_eval(part->expr, e->ctx, &s);
    emit_sample(e, found, &s);
}

static void emit_parts(struct emitter *e, const struct rules_fmt *f)
{
    size_t before;
    bool after_space = true;

    for (unsigned i = 0; i < f->count; i++) {
        const struct fmt_part *part = &f->parts[i];

        switch (part->kind) {
        case PART_TEXT:
            emit_raw(e, part->text);
            after_space = false;
            break;
        case PART_SPACE:
            if (!after_space)
                emit_char(e, ' ');
            after_space = true;
            break;
        default:
            before = buf_len(e->out);
            emit_part(e, part);
            /* An alias without a value does not end a run of blanks; an expression always does. */
            if (part->kind == PART_EXPR || buf_len(e->out) != before)
                after_space = false;
            break;
        }
    }
}

void rules_fmt_eval(const struct rules_fmt *f, struct rules_ctx *ctx, struct buf *out)
{
    struct emitter e = {.ctx = ctx, .out = out};

    if (f->constant)
        emit_raw(&e, f->value);
    else
        emit_parts(&e, f);
}

/* HAProxy bounds what it formats by its buffer size. */
#define FMT_STR_MAX 16384

struct str rules_fmt_str(const struct rules_fmt *f, struct rules_ctx *ctx)
{
    char text[FMT_STR_MAX];
    struct buf b = {text, sizeof text, 0, 0};

    if (f->constant)
        return f->value;
    /* A lone expression whose text can stand in a field as it is needs no copy. */
    if (f->count == 1 && f->parts[0].kind == PART_EXPR && !(f->parts[0].flags & FMT_ESCAPE) &&
        f->parts[0].flags & FMT_HTTP) {
        struct emitter e = {.ctx = ctx, .out = &b, .flags = f->parts[0].flags};
        struct sample s;
        bool found = rules_expr_eval(f->parts[0].expr, ctx, &s);

        if (!found || !value_cast(&s, VALUE_STR, ctx->arena))
            return STR("");
        if (http_is_clean(s.u.s))
            return s.u.s;
        emit_http(&e, s.u.s);
        return arena_str(ctx->arena, buf_str(&b));
    }
    rules_fmt_eval(f, ctx, &b);
    return arena_str(ctx->arena, buf_str(&b));
}

bool rules_fmt_needs_messages(const struct rules_fmt *f)
{
    return f->needs & (NEEDS_REQUEST | NEEDS_RESPONSE | NEEDS_DIRECTION);
}

bool rules_fmt_is_constant(const struct rules_fmt *f, struct str *text)
{
    if (f->constant)
        *text = f->value;
    return f->constant;
}

/* --- folding -------------------------------------------------------------------------------------- */

static bool part_is_constant(const struct fmt_part *part, bool plain_listener)
{
    switch (part->kind) {
    case PART_TEXT:
    case PART_SPACE:
        return true;
    case PART_ALIAS:
        return plain_listener && part->alias->needs & NEEDS_TLS;
    default:
        return part->expr->known != EXPR_DYNAMIC;
    }
}

/* The text of a run of constant parts. */
static bool render(const struct fmt_part *parts, unsigned count, struct arena *arena,
                   struct str *out)
{
    char text[FMT_STR_MAX];
    struct buf b = {text, sizeof text, 0, 0};
    struct rules_ctx ctx = {.arena = arena};
    struct emitter e = {.ctx = &ctx, .out = &b, .log_asked = true};

    for (unsigned i = 0; i < count; i++) {
        if (parts[i].kind == PART_TEXT)
            emit_raw(&e, parts[i].text);
        else
            emit_part(&e, &parts[i]);
    }
    if (!buf_room(&b))
        return false;
    *out = arena_str(arena, buf_str(&b));
    return out->ptr;
}

/*
 * Joins runs of constant parts into one text. Separators are merged by what
 * stands before them, so they stay parts unless the whole format is constant.
 */
static void fold(struct rules_fmt *f, bool plain_listener, struct arena *arena)
{
    unsigned n = 0, constants = 0;
    struct rules_ctx ctx = {.arena = arena};

    for (unsigned i = 0; i < f->count; i++)
        constants += part_is_constant(&f->parts[i], plain_listener);
    if (constants == f->count) {
        char text[FMT_STR_MAX];
        struct buf b = {text, sizeof text, 0, 0};
        struct emitter e = {.ctx = &ctx, .out = &b, .log_asked = true};

        emit_parts(&e, f);
        f->value = arena_str(arena, buf_str(&b));
        f->constant = buf_room(&b) && f->value.ptr;
        if (f->constant)
            return;
    }
    for (unsigned i = 0; i < f->count;) {
        unsigned run = i;
        struct str text;

        while (run < f->count && f->parts[run].kind != PART_SPACE &&
               part_is_constant(&f->parts[run], plain_listener))
            run++;
        if (run - i > 1 && render(&f->parts[i], run - i, arena, &text)) {
            struct fmt_part joined = {.kind = PART_TEXT, .flags = f->parts[i].flags, .text = text};

            f->parts[n++] = joined;
            i = run;
        } else {
            f->parts[n++] = f->parts[i++];
        }
    }
    f->count = n;
}

struct rules_fmt *rules_fmt_specialize(const struct rules_fmt *f, bool listener_tls,
                                       struct arena *arena)
{
    struct rules_fmt *out;

    if (f->constant)
        return (struct rules_fmt *)(uintptr_t)f;
    out = arena_alloc(arena, sizeof *out);
    if (!out)
        return NULL;
    *out = *f;
    out->parts = arena_alloc(arena, f->count * sizeof *out->parts);
    if (!out->parts)
        return NULL;
    memcpy(out->parts, f->parts, f->count * sizeof *out->parts);
    for (unsigned i = 0; i < out->count; i++) {
        struct fmt_part *part = &out->parts[i];

        if (part->kind != PART_EXPR)
            continue;
        part->expr = expr_specialize(part->expr, listener_tls, arena);
        if (!part->expr)
            return NULL;
    }
    fold(out, !listener_tls, arena);
    return out;
}
