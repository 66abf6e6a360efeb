/*
 * Converters of text.
 */
#include "rules/message.h"
#include "rules/tables.h"

/* A buffer of the request's arena for a result of up to `bytes`. */
static bool room_for(struct rules_ctx *ctx, size_t bytes, struct buf *b)
{
    if (bytes > UINT32_MAX)
        return false;
    *b = (struct buf){arena_alloc(ctx->arena, bytes + 1), (uint32_t)bytes, 0, 0};
    return b->mem;
}

/* --- letters ------------------------------------------------------------------------------- */

static bool conv_case(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    char low = v->def->data ? 'a' : 'A', high = v->def->data ? 'z' : 'Z';
    struct str in = s->u.s;
    size_t first = 0;
    char *copy;

    while (first < in.len && !(in.ptr[first] >= low && in.ptr[first] <= high))
        first++;
    if (first == in.len)
        return true; /* nothing to change, nothing to copy */
    copy = arena_alloc(ctx->arena, in.len);
    if (!copy)
        return false;
    memcpy(copy, in.ptr, in.len);
    for (size_t i = first; i < in.len; i++)
        if (copy[i] >= low && copy[i] <= high)
            copy[i] ^= 0x20;
    return value_str(s, str_make(copy, in.len));
}

static bool conv_length(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    return value_int(s, (int64_t)s->u.s.len);
}

static bool conv_reverse(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    struct str in = s->u.s;
    char *copy = arena_alloc(ctx->arena, in.len + 1);

    if (!copy)
        return false;
    for (size_t i = 0; i < in.len; i++)
        copy[i] = in.ptr[in.len - 1 - i];
    return value_str(s, str_make(copy, in.len));
}

/* "www.example.com" becomes "com.example.www"; names with empty labels fail. */
static bool conv_reverse_dom(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    struct str in = s->u.s;
    struct buf b;

    if (in.len && in.ptr[in.len - 1] == '.')
        in.len--;
    if (!in.len || !room_for(ctx, in.len, &b))
        return false;
    while (in.len) {
        size_t start = in.len;

        while (start && in.ptr[start - 1] != '.')
            start--;
        if (start == in.len || start == 1)
            return false;
        if (buf_len(&b))
            buf_put_char(&b, '.');
        buf_put(&b, str_make(in.ptr + start, in.len - start));
        in.len = start ? start - 1 : 0;
    }
    return value_str(s, buf_str(&b));
}

static bool conv_trim(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    struct str set = v->args.v[0].s, t = s->u.s;

    if (v->def->data == 0)
        while (t.len && str_chr(set, t.ptr[0]) < set.len)
            t = str_from(t, 1);
    else
        while (t.len && str_chr(set, t.ptr[t.len - 1]) < set.len)
            t.len--;
    return value_str(s, t);
}

static bool conv_cut_crlf(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    size_t cr = str_chr(s->u.s, '\r'), lf = str_chr(s->u.s, '\n');

    s->u.s.len = cr < lf ? cr : lf;
    return true;
}

/* --- variables in text ----------------------------------------------------------------------- */

/* Makes an optional argument a variable; an empty one stays text. */
static int check_var_arg(struct conv_call *v, unsigned index, char why[RULES_WHY_BYTES])
{
    struct rules_arg *a = index < v->args.count ? &v->args.v[index] : NULL;
    const char *reason;

    if (!a || !a->s.len)
        return 0;
    if (var_parse(a->s, &a->u.var, &reason) < 0) {
        snprintf(why, RULES_WHY_BYTES, "variable '%s': %s", a->s.ptr, reason);
        return SP_EINVAL;
    }
    a->is_var = true;
    v->needs |= NEEDS_VARYING;
    return 0;
}

static struct str var_text(const struct rules_arg *a, struct rules_ctx *ctx)
{
    struct sample value;

    if (a && a->is_var && var_get(&a->u.var, ctx, &value) &&
        value_cast(&value, VALUE_STR, ctx->arena))
        return value.u.s;
    return STR("");
}

static struct str text_arg(const struct conv_call *v, unsigned index)
{
    const struct rules_arg *a = arg_at(&v->args, index);

    return a ? a->s : STR("");
}

static int check_concat(struct rules_compiler *c, struct conv_call *v, char why[RULES_WHY_BYTES])
{
    return check_var_arg(v, 1, why);
}

static bool conv_concat(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    struct str before = text_arg(v, 0), after = text_arg(v, 2),
               var = var_text(arg_at(&v->args, 1), ctx);
    struct buf b;

    if (!room_for(ctx, s->u.s.len + before.len + var.len + after.len, &b))
        return false;
    buf_put(&b, s->u.s);
    buf_put(&b, before);
    buf_put(&b, var);
    buf_put(&b, after);
    return value_str(s, buf_str(&b));
}

static int check_add_item(struct rules_compiler *c, struct conv_call *v, char why[RULES_WHY_BYTES])
{
    if (!text_arg(v, 1).len && !text_arg(v, 2).len) {
        snprintf(why, RULES_WHY_BYTES, "needs a variable or a suffix");
        return SP_EINVAL;
    }
    return check_var_arg(v, 1, why);
}

/* The delimiter goes between what is there and what is added, when both are. */
static bool conv_add_item(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    struct str delimiter = text_arg(v, 0), suffix = text_arg(v, 2),
               var = var_text(arg_at(&v->args, 1), ctx);
    struct buf b;

    if (!room_for(ctx, s->u.s.len + delimiter.len + var.len + suffix.len, &b))
        return false;
    buf_put(&b, s->u.s);
    if (s->u.s.len && (var.len || suffix.len))
        buf_put(&b, delimiter);
    buf_put(&b, var);
    buf_put(&b, suffix);
    return value_str(s, buf_str(&b));
}

static int check_strcmp(struct rules_compiler *c, struct conv_call *v, char why[RULES_WHY_BYTES])
{
    if (!text_arg(v, 0).len) {
        snprintf(why, RULES_WHY_BYTES, "expects the name of a variable");
        return SP_EINVAL;
    }
    return check_var_arg(v, 0, why);
}

static bool conv_strcmp(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    struct sample other;
    struct str a = s->u.s, b;
    int r;

    if (!var_get(&v->args.v[0].u.var, ctx, &other) || !value_cast(&other, VALUE_STR, ctx->arena))
        return false;
    b = other.u.s;
    r = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);
    if (r == 0)
        r = a.len < b.len ? -1 : a.len > b.len;
    return value_int(s, r < 0 ? -1 : r > 0);
}

/* Takes the same time wherever the texts differ. */
static bool conv_secure_memcmp(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    struct sample other;
    uint8_t differs = 0;

    if (!var_get(&v->args.v[0].u.var, ctx, &other) || !value_cast(&other, VALUE_BIN, ctx->arena))
        return false;
    if (other.u.s.len != s->u.s.len)
        return value_bool(s, false);
    for (size_t i = 0; i < other.u.s.len; i++)
        differs |= (uint8_t)(other.u.s.ptr[i] ^ s->u.s.ptr[i]);
    return value_bool(s, differs == 0);
}

/* --- regular expressions -------------------------------------------------------------------------- */

static int check_regsub(struct rules_compiler *c, struct conv_call *v, char why[RULES_WHY_BYTES])
{
    struct str flags = text_arg(v, 2);
    bool ignore_case = false;

    v->args.v[0].i = 0;
    for (size_t i = 0; i < flags.len; i++) {
        if (flags.ptr[i] == 'i')
            ignore_case = true;
        else if (flags.ptr[i] == 'g')
            v->args.v[0].i = 1;
        else {
            snprintf(why, RULES_WHY_BYTES, "unknown flag '%c', expected 'i' or 'g'", flags.ptr[i]);
            return SP_EINVAL;
        }
    }
    if (!compiler_registry(c))
        return SP_ENOMEM;
    return regex_compile(c->registry, v->args.v[0].s.ptr, ignore_case, true, &v->args.v[0].u.regex,
                         why, RULES_WHY_BYTES);
}

/* Results are bounded, as all of HAProxy's are by its buffer size. */
#define REGSUB_MAX 16384

static bool conv_regsub(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    const struct regex *re = v->args.v[0].u.regex;
    struct str rest = s->u.s;
    struct regex_groups g;
    bool again = false;
    char text[REGSUB_MAX];
    struct buf b = {text, sizeof text, 0, 0};
    struct str out;

    /* An empty rest may match too: "x*" matches at the end. */
    while ((!again || v->args.v[0].i) && regex_match(re, rest, again, &g)) {
        size_t end = g.end[0];

        if (buf_put(&b, str_make(rest.ptr, g.start[0])) < 0 ||
            regex_expand(v->args.v[1].s, rest, &g, &b) < 0)
            return false;
        if (!rest.len)
            break;
        if (end == 0) {
            if (buf_put_char(&b, rest.ptr[0]) < 0)
                return false;
            end = 1;
        }
        rest = str_from(rest, end);
        again = true;
    }
    if (buf_put(&b, rest) < 0)
        return false;
    out = arena_str(ctx->arena, buf_str(&b));
    return out.ptr && value_str(s, out);
}

/* --- hosts and URLs -------------------------------------------------------------------------------- */

/* Offset of the colon before a port in a Host value, or its length. */
static size_t port_colon(struct str host)
{
    for (size_t i = host.len; i-- > 0;) {
        if (host.ptr[i] == ':')
            return i;
        if (host.ptr[i] == ']')
            break;
    }
    return host.len;
}

static bool conv_host_only(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    s->u.s.len = port_colon(s->u.s);
    return conv_case(v, ctx, s);
}

static bool conv_port_only(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    size_t colon = port_colon(s->u.s);

    return value_int(s, colon < s->u.s.len ? value_read_int(str_from(s->u.s, colon + 1), NULL) : 0);
}

static int hex_value(char ch)
{
    if (ch >= '0' && ch <= '9')
        return ch - '0';
    ch |= 0x20;
    return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

/* '+' is a space in forms, and in any text after the first '?'. */
static bool conv_url_dec(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    const struct rules_arg *form = arg_at(&v->args, 0);
    bool in_form = form && form->i;
    struct str in = s->u.s;
    char *out = arena_alloc(ctx->arena, in.len + 1);
    size_t n = 0;

    if (!out)
        return false;
    for (size_t i = 0; i < in.len; i++) {
        char ch = in.ptr[i];

        if (ch == '%') {
            int high = i + 2 < in.len ? hex_value(in.ptr[i + 1]) : -1;
            int low = high >= 0 ? hex_value(in.ptr[i + 2]) : -1;

            if (low < 0)
                return false;
            ch = (char)(high << 4 | low);
            i += 2;
        } else if (ch == '+' && in_form) {
            ch = ' ';
        } else if (ch == '?') {
            in_form = true;
        }
        out[n++] = ch;
    }
    return value_str(s, str_make(out, n));
}

static int check_url_enc(struct rules_compiler *c, struct conv_call *v, char why[RULES_WHY_BYTES])
{
    struct str type = text_arg(v, 0);

    if (type.len && !str_eq(type, STR("query"))) {
        snprintf(why, RULES_WHY_BYTES, "unknown encoding '%s', expected 'query'", type.ptr);
        return SP_EINVAL;
    }
    return 0;
}

/* RFC 3986 section 2.3. */
static bool is_unreserved(uint8_t ch)
{
    return ((ch | 0x20) >= 'a' && (ch | 0x20) <= 'z') || (ch >= '0' && ch <= '9') || ch == '-' ||
           ch == '.' || ch == '_' || ch == '~';
}

static bool conv_url_enc(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    static const char hex[] = "0123456789ABCDEF";
    struct str in = s->u.s;
    struct buf b;

    if (!room_for(ctx, in.len * 3, &b))
        return false;
    for (size_t i = 0; i < in.len; i++) {
        uint8_t ch = (uint8_t)in.ptr[i];

        if (is_unreserved(ch)) {
            buf_put_char(&b, (char)ch);
            continue;
        }
        buf_put_char(&b, '%');
        buf_put_char(&b, hex[ch >> 4]);
        buf_put_char(&b, hex[ch & 15]);
    }
    return value_str(s, buf_str(&b));
}

/* --- control characters --------------------------------------------------------------------------------- */

#define CTL_MASK_DEFAULT 0x1FFFFFDFFLL
#define CTL_MASK_ANY 0x1FFFFFFFFLL
#define CTL_MASK_HTTP 0x2401LL

static int check_has_ctl(struct rules_compiler *c, struct conv_call *v, char why[RULES_WHY_BYTES])
{
    struct str text = text_arg(v, 0);
    char *end;

    if (!text.len)
        return 0;
    if (str_eq(text, STR("any")))
        v->args.v[0].i = CTL_MASK_ANY;
    else if (str_eq(text, STR("http")))
        v->args.v[0].i = CTL_MASK_HTTP;
    else {
        v->args.v[0].i = strtoll(text.ptr, &end, 0);
        if (*end || v->args.v[0].i < 0 || v->args.v[0].i > CTL_MASK_ANY) {
            snprintf(why, RULES_WHY_BYTES, "'%s' is not a mask of 33 bits, 'any' or 'http'",
                     text.ptr);
            return SP_EINVAL;
        }
    }
    return 0;
}

static bool conv_has_ctl(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    const struct rules_arg *a = arg_at(&v->args, 0);
    int64_t mask = a && a->s.len ? a->i : CTL_MASK_DEFAULT;
    struct str in = s->u.s;

    for (size_t i = 0; i < in.len; i++) {
        uint8_t ch = (uint8_t)in.ptr[i];

        if ((ch < 32 && mask >> ch & 1) || (ch == 127 && mask >> 32 & 1))
            return value_bool(s, true);
    }
    return value_bool(s, false);
}

static const struct conv_def rows[] = {
    {"lower", NULL, NULL, VALUE_STR, VALUE_STR, conv_case, 0,
     .help = "upper-case letters to lower case"},
    {"upper", NULL, NULL, VALUE_STR, VALUE_STR, conv_case, 1,
     .help = "lower-case letters to upper case"},
    {"length", NULL, NULL, VALUE_STR, VALUE_INT, conv_length, 0, .help = "length in bytes"},
    {"reverse", NULL, NULL, VALUE_STR, VALUE_STR, conv_reverse, 0,
     .help = "bytes in reverse order"},
    {"reverse_dom", NULL, NULL, VALUE_STR, VALUE_STR, conv_reverse_dom, 0,
     .help = "labels of a domain name in reverse order"},
    {"ltrim", "s", "<chars>", VALUE_STR, VALUE_STR, conv_trim, 0,
     .help = "without those characters at the start"},
    {"rtrim", "s", "<chars>", VALUE_STR, VALUE_STR, conv_trim, 1,
     .help = "without those characters at the end"},
    {"cut_crlf", NULL, NULL, VALUE_STR, VALUE_STR, conv_cut_crlf, 0,
     .help = "up to the first CR or LF"},
    {"concat", "?sss", "[<start>[,<var>[,<end>]]]", VALUE_STR, VALUE_STR, conv_concat, 0,
     .help = "followed by a text, a variable's value, a text", .check = check_concat},
    {"add_item", "s?ss", "<delim>[,<var>[,<suff>]]", VALUE_STR, VALUE_STR, conv_add_item, 0,
     .help = "followed by a delimiter, a variable's value, a text", .check = check_add_item},
    {"strcmp", "s", "<var>", VALUE_STR, VALUE_INT, conv_strcmp, 0,
     .help = "comparison with a variable: negative, 0 or positive", .check = check_strcmp},
    {"secure_memcmp", "s", "<var>", VALUE_BIN, VALUE_BOOL, conv_secure_memcmp, 0,
     .help = "true when equal to a variable, compared in constant time", .check = check_strcmp},
    {"regsub", "ss?s", "<regex>,<subst>[,<flags>]", VALUE_STR, VALUE_STR, conv_regsub, 0,
     .help = "with what a regular expression matches replaced; flags i and g",
     .check = check_regsub},
    {"host_only", NULL, NULL, VALUE_STR, VALUE_STR, conv_host_only, 0,
     .help = "Host value without port, in lower case"},
    {"port_only", NULL, NULL, VALUE_STR, VALUE_INT, conv_port_only, 0,
     .help = "port of a Host value, 0 without one"},
    {"url_dec", "?i", "[<in_form>]", VALUE_STR, VALUE_STR, conv_url_dec, 0,
     .help = "with %XX decoded, and '+' in forms"},
    {"url_enc", "?s", "[<enc_type>]", VALUE_STR, VALUE_STR, conv_url_enc, 0,
     .help = "with all but unreserved characters as %XX", .check = check_url_enc},
    {"has_ctl", "?s", "[<mask>]", VALUE_BIN, VALUE_BOOL, conv_has_ctl, 0,
     .help = "true when a control character is in it", .check = check_has_ctl},
};

const struct conv_table conv_str_table = TABLE_OF(rows);
