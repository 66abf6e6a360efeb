/*
 * JSON (RFC 8259): escaping text for it, and taking one value out of a document.
 */
#include "rules/tables.h"

/* --- escaping ---------------------------------------------------------------------------- */

/* What the input is, and what happens to bytes that it cannot contain. */
enum coding { ASCII, UTF8, UTF8_SKIP, UTF8_PERMISSIVE, UTF8_PERMISSIVE_SKIP };

static int check_json(struct rules_compiler *c, struct conv_call *v, char why[RULES_WHY_BYTES])
{
    static const char *const names[] = {"ascii", "utf8", "utf8s", "utf8p", "utf8ps"};
    struct rules_arg *a = v->args.count ? &v->args.v[0] : NULL;

    if (!a || !a->s.len)
        return 0;
    for (int i = 0; i < 5; i++) {
        if (str_eq(a->s, str_of(names[i]))) {
            a->i = i;
            return 0;
        }
    }
    snprintf(why, RULES_WHY_BYTES,
             "unknown input code '%s', expected ascii, utf8, utf8s, utf8p or utf8ps", a->s.ptr);
    return SP_EINVAL;
}

enum sequence { SEQ_OK, SEQ_BAD, SEQ_OVERLONG };

/* One code point at *i, which is left behind it. */
static enum sequence utf8_next(struct str s, size_t *i, uint32_t *code)
{
    uint8_t lead = (uint8_t)s.ptr[(*i)++];
    unsigned more = lead < 0x80    ? 0
                    : lead >= 0xf8 ? 8
                    : lead >= 0xf0 ? 3
                    : lead >= 0xe0 ? 2
                    : lead >= 0xc0 ? 1
                                   : 8;
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};

    *code = lead;
    if (more == 8)
        return SEQ_BAD;
    if (more)
        *code = lead & (0x3f >> more);
    for (unsigned k = 0; k < more; k++) {
        if (*i >= s.len || ((uint8_t)s.ptr[*i] & 0xc0) != 0x80)
            return SEQ_BAD;
        *code = *code << 6 | ((uint8_t)s.ptr[(*i)++] & 0x3f);
    }
    if (*code > 0x10ffff || (*code >= 0xd800 && *code <= 0xdfff))
        return SEQ_BAD;
    return *code < least[more] ? SEQ_OVERLONG : SEQ_OK;
}

static void put_code(struct buf *b, uint32_t code)
{
    static const char named[] = "\"\\/\b\f\r\n\t", letters[] = "\"\\/bfrnt";
    const char *at = code && code < 128 ? strchr(named, (int)code) : NULL;

    if (at) {
        buf_put_char(b, '\\');
        buf_put_char(b, letters[at - named]);
    } else if (code < 32 || code > 126) {
        buf_printf(b, "\\u%04x", (unsigned)code);
    } else {
        buf_put_char(b, (char)code);
    }
}

static bool conv_json(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    enum coding coding = v->args.count ? (enum coding)v->args.v[0].i : ASCII;
    bool skip = coding == UTF8_SKIP || coding == UTF8_PERMISSIVE_SKIP;
    struct str in = s->u.s;
    size_t i = 0, room = in.len * 6 + 1;
    struct buf b;

    if (room > UINT32_MAX)
        return false;
    b = (struct buf){arena_alloc(ctx->arena, room), (uint32_t)room, 0, 0};
    if (!b.mem)
        return false;
    while (i < in.len) {
        uint32_t code = (uint8_t)in.ptr[i];
        enum sequence q = SEQ_OK;

        if (coding == ASCII)
            i++;
        else
            q = utf8_next(in, &i, &code);
        if (q == SEQ_OVERLONG && (coding == UTF8_PERMISSIVE || coding == UTF8_PERMISSIVE_SKIP))
            q = SEQ_OK;
        /* JSON's \u has four digits; HAProxy has no surrogates either. */
        if (q != SEQ_OK || code > 0xffff) {
            if (!skip)
                return false;
            continue;
        }
        put_code(&b, code);
    }
    return value_str(s, buf_str(&b));
}

/* --- queries --------------------------------------------------------------------------------------- */

#define DEPTH_MAX 64

struct reader {
    const char *p, *end;
};

static void skip_blanks(struct reader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r'))
        r->p++;
}

static bool at(struct reader *r, char ch)
{
    skip_blanks(r);
    return r->p < r->end && *r->p == ch;
}

static bool take(struct reader *r, char ch)
{
    if (!at(r, ch))
        return false;
    r->p++;
    return true;
}

/* A string's contents between the quotes, escapes left as they are. */
static bool read_string(struct reader *r, struct str *out)
{
    const char *start;

    if (!take(r, '"'))
        return false;
    start = r->p;
    while (r->p < r->end && *r->p != '"') {
        if ((uint8_t)*r->p < 32)
            return false;
        r->p += *r->p == '\\' && r->p + 1 < r->end ? 2 : 1;
    }
    if (r->p >= r->end)
        return false;
    *out = str_make(start, (size_t)(r->p - start));
    r->p++;
    return true;
}

/* A whole value; *out is its text. Nesting is bounded, so no recursion. */
static bool skip_value(struct reader *r, struct str *out)
{
    const char *start;
    struct str ignored;
    unsigned depth = 0;

    skip_blanks(r);
    start = r->p;
    do {
        skip_blanks(r);
        if (r->p >= r->end)
            return false;
        if (*r->p == '"') {
            if (!read_string(r, &ignored))
                return false;
        } else if (*r->p == '{' || *r->p == '[') {
            if (++depth > DEPTH_MAX)
                return false;
            r->p++;
        } else if (*r->p == '}' || *r->p == ']') {
            if (!depth)
                return false;
            depth--;
            r->p++;
        } else if (*r->p == ',' || *r->p == ':') {
            if (!depth)
                return false;
            r->p++;
        } else {
            const char *word = r->p;

            while (r->p < r->end && !strchr(" \t\r\n,:{}[]\"", *r->p))
                r->p++;
            if (r->p == word)
                return false;
        }
    } while (depth);
    *out = str_make(start, (size_t)(r->p - start));
    return out->len > 0;
}

static bool find_member(struct reader *r, struct str name)
{
    struct str key, value;

    if (!take(r, '{') || take(r, '}'))
        return false;
    do {
        if (!read_string(r, &key) || !take(r, ':'))
            return false;
        if (str_eq(key, name)) {
            skip_blanks(r);
            return true;
        }
        if (!skip_value(r, &value))
            return false;
    } while (take(r, ','));
    return false;
}

static bool find_element(struct reader *r, uint64_t index)
{
    struct str value;

    if (!take(r, '[') || at(r, ']'))
        return false;
    while (index--)
        if (!skip_value(r, &value) || !take(r, ','))
            return false;
    return true;
}

/* Follows "$.name[2].other"; "\." is a dot in a name. */
static bool follow(struct reader *r, struct str path)
{
    size_t i = 1;

    if (!path.len || path.ptr[0] != '$')
        return false;
    while (i < path.len) {
        if (path.ptr[i] == '[') {
            size_t close = str_chr(str_from(path, i), ']');
            uint64_t index;

            if (close == path.len - i ||
                str_to_u64(str_make(path.ptr + i + 1, close - 1), &index) < 0 ||
                !find_element(r, index))
                return false;
            i += close + 1;
        } else if (path.ptr[i] == '.') {
            char name[256];
            size_t n = 0;

            for (i++; i < path.len && path.ptr[i] != '.' && path.ptr[i] != '['; i++) {
                if (path.ptr[i] == '\\' && i + 1 < path.len)
                    i++;
                if (n == sizeof name)
                    return false;
                name[n++] = path.ptr[i];
            }
            if (!find_member(r, str_make(name, n)))
                return false;
        } else {
            return false;
        }
    }
    return true;
}

static bool put_utf8(struct buf *b, uint32_t code)
{
    if (code < 0x80)
        return buf_put_char(b, (char)code) == 0;
    if (code < 0x800)
        buf_put_char(b, (char)(0xc0 | code >> 6));
    else if (code < 0x10000) {
        buf_put_char(b, (char)(0xe0 | code >> 12));
        buf_put_char(b, (char)(0x80 | (code >> 6 & 0x3f)));
    } else {
        buf_put_char(b, (char)(0xf0 | code >> 18));
        buf_put_char(b, (char)(0x80 | (code >> 12 & 0x3f)));
        buf_put_char(b, (char)(0x80 | (code >> 6 & 0x3f)));
    }
    return buf_put_char(b, (char)(0x80 | (code & 0x3f))) == 0;
}

static bool read_hex4(struct str s, size_t i, uint32_t *out)
{
    *out = 0;
    if (i + 4 > s.len)
        return false;
    for (size_t k = i; k < i + 4; k++) {
        char ch = s.ptr[k] | 0x20;
        int digit = s.ptr[k] >= '0' && s.ptr[k] <= '9' ? s.ptr[k] - '0'
                    : ch >= 'a' && ch <= 'f'           ? ch - 'a' + 10
                                                       : -1;

        if (digit < 0)
            return false;
        *out = *out << 4 | (uint32_t)digit;
    }
    return true;
}

/* The text that a JSON string stands for. */
static bool unescape(struct rules_ctx *ctx, struct str in, struct str *out)
{
    static const char letters[] = "\"\\/bfrnt", named[] = "\"\\/\b\f\r\n\t";
    struct buf b = {arena_alloc(ctx->arena, in.len + 4), (uint32_t)(in.len + 4), 0, 0};

    if (!b.mem)
        return false;
    for (size_t i = 0; i < in.len; i++) {
        const char *letter;
        uint32_t code, low;

        if (in.ptr[i] != '\\') {
            buf_put_char(&b, in.ptr[i]);
            continue;
        }
        if (++i >= in.len)
            return false;
        letter = strchr(letters, in.ptr[i]);
        if (letter && *letter) {
            buf_put_char(&b, named[letter - letters]);
            continue;
        }
        if (in.ptr[i] != 'u' || !read_hex4(in, i + 1, &code))
            return false;
        i += 4;
        if (code >= 0xd800 && code <= 0xdbff && i + 2 < in.len && in.ptr[i + 1] == '\\' &&
            in.ptr[i + 2] == 'u' && read_hex4(in, i + 3, &low) && low >= 0xdc00 && low <= 0xdfff) {
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            i += 6;
        }
        put_utf8(&b, code);
    }
    *out = buf_str(&b);
    return true;
}

#define INTEROPERABLE_MAX ((1LL << 53) - 1)

static bool number(const struct conv_call *v, struct rules_ctx *ctx, struct str text,
                   struct sample *s)
{
    char zero[64];
    char *out, *end;
    double d;

    if (v->args.count > 1 && v->args.v[1].s.len) {
        int64_t i = value_read_int(text, NULL);

        return i >= -INTEROPERABLE_MAX && i <= INTEROPERABLE_MAX && value_int(s, i);
    }
    if (text.len >= sizeof zero)
        return false;
    memcpy(zero, text.ptr, text.len);
    zero[text.len] = '\0';
    d = strtod(zero, &end);
    out = arena_alloc(ctx->arena, 32);
    if (*end || !out)
        return false;
    return value_str(s, str_make(out, (size_t)snprintf(out, 32, "%g", d)));
}

/* Strings, numbers, booleans and arrays (as text) are answers; objects and null are none. */
static bool conv_json_query(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    struct reader r = {s->u.s.ptr, s->u.s.ptr + s->u.s.len};
    struct str text;

    if (!follow(&r, v->args.v[0].s))
        return false;
    skip_blanks(&r);
    if (at(&r, '"')) {
        return read_string(&r, &text) && unescape(ctx, text, &text) && value_str(s, text);
    }
    if (!skip_value(&r, &text))
        return false;
    if (str_eq(text, STR("true")) || str_eq(text, STR("false")))
        return value_bool(s, text.ptr[0] == 't');
    if (text.ptr[0] == '[')
        return value_str(s, text);
    if (text.ptr[0] == '-' || (text.ptr[0] >= '0' && text.ptr[0] <= '9'))
        return number(v, ctx, text, s);
    return false;
}

static int check_json_query(struct rules_compiler *c, struct conv_call *v,
                            char why[RULES_WHY_BYTES])
{
    if (!v->args.v[0].s.len || v->args.v[0].s.ptr[0] != '$') {
        snprintf(why, RULES_WHY_BYTES, "the path '%s' does not begin with '$'", v->args.v[0].s.ptr);
        return SP_EINVAL;
    }
    if (v->args.count > 1 && v->args.v[1].s.len && !str_eq(v->args.v[1].s, STR("int"))) {
        snprintf(why, RULES_WHY_BYTES, "unknown output type '%s', expected 'int'",
                 v->args.v[1].s.ptr);
        return SP_EINVAL;
    }
    return 0;
}

static const struct conv_def rows[] = {
    {"json", "?s", "[<input-code>]", VALUE_STR, VALUE_STR, conv_json, 0,
     .help = "escaped for a JSON string", .check = check_json},
    {"json_query", "s?s", "<json_path>[,<output_type>]", VALUE_STR, VALUE_ANY, conv_json_query, 0,
     .help = "value at a path of a JSON document", .check = check_json_query},
};

const struct conv_table conv_json_table = TABLE_OF(rows);
