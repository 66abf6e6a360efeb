/*
 * What a response must look like: the patterns of "expect" against bytes,
 * status and fields. Nothing here knows a socket.
 */
#include "proxy/check_internal.h"

bool check_match_is_head(enum check_match match)
{
    return match == CHECK_MATCH_STATUS || match == CHECK_MATCH_STATUS_REGEX ||
           match == CHECK_MATCH_FIELD || match == CHECK_MATCH_WHOLE_FIELD;
}

/* --- bytes ------------------------------------------------------------------------- */

static bool contains(struct str data, struct str needle)
{
    return needle.len <= data.len && str_find(data, needle) < data.len;
}

/* The bytes as hexadecimal digits, which is what "rbinary" looks at. */
static bool matches_hex(const struct check_expect *e, struct rules_ctx *ctx, struct str data)
{
    static const char digits[] = "0123456789ABCDEF";
    char *hex = arena_alloc(ctx->arena, data.len * 2 + 1);

    if (!hex)
        return false;
    for (size_t i = 0; i < data.len; i++) {
        hex[2 * i] = digits[(unsigned char)data.ptr[i] >> 4];
        hex[2 * i + 1] = digits[(unsigned char)data.ptr[i] & 15];
    }
    return regex_test(e->regex, str_make(hex, data.len * 2));
}

/* What a format yields, as the bytes to look for; empty when it yields nothing of use. */
static struct str pattern_of_fmt(const struct check_expect *e, struct rules_ctx *ctx)
{
    struct str text = rules_fmt_str(e->fmt, ctx);
    ptrdiff_t n;
    char *bytes;

    if (!text.ptr || e->match != CHECK_MATCH_BINARY_FMT)
        return text.ptr ? text : str_make("", 0);
    bytes = arena_alloc(ctx->arena, text.len / 2 + 1);
    n = bytes ? check_hex_decode(text, bytes) : -1;
    return n > 0 ? str_make(bytes, (size_t)n) : str_make("", 0);
}

/* A TLS record, of any version, that begins a handshake or an alert. */
static bool matches_tls_hello(struct str data)
{
    return data.len >= 2 && (data.ptr[0] == 0x15 || data.ptr[0] == 0x16) && data.ptr[1] == 3;
}

static bool matches_bytes(const struct check_expect *e, struct rules_ctx *ctx, struct str data,
                          struct str needle)
{
    switch (e->match) {
    case CHECK_MATCH_REGEX:
        return regex_test(e->regex, data);
    case CHECK_MATCH_BINARY_REGEX:
        return matches_hex(e, ctx, data);
    case CHECK_MATCH_TLS_HELLO:
        return matches_tls_hello(data);
    default:
        return contains(data, needle);
    }
}

/*
 * How many bytes must be there before looking makes sense. With min-recv an answer is final; without,
 * a pattern that is not there may still come.
 */
static size_t bytes_needed(const struct check_expect *e, struct str needle)
{
    size_t wanted = e->min_recv > 0 ? (size_t)e->min_recv : 0;

    if (e->min_recv != 0 && needle.len > wanted)
        wanted = needle.len;
    return e->match == CHECK_MATCH_TLS_HELLO ? 2 : wanted;
}

enum check_answer check_match_data(const struct check_expect *e, struct rules_ctx *ctx,
                                   struct str data, bool last)
{
    struct str needle = e->text;
    bool found;

    if (e->match == CHECK_MATCH_STRING_FMT || e->match == CHECK_MATCH_BINARY_FMT) {
        needle = pattern_of_fmt(e, ctx);
        if (!needle.len)
            return CHECK_EMPTY_PATTERN;
    }
    if (!last && data.len < bytes_needed(e, needle))
        return CHECK_NEEDS_MORE;
    found = matches_bytes(e, ctx, data, needle);
    if (!found && !last && e->min_recv < 0 && e->match != CHECK_MATCH_TLS_HELLO)
        return CHECK_NEEDS_MORE;
    return found != e->negate ? CHECK_MATCHES : CHECK_MATCHES_NOT;
}

/* --- heads -------------------------------------------------------------------------- */

static bool in_ranges(const struct check_expect *e, unsigned status)
{
    for (unsigned i = 0; i < e->range_count; i++)
        if (status >= e->ranges[i].low && status <= e->ranges[i].high)
            return true;
    return false;
}

static bool status_regex(const struct check_expect *e, unsigned status)
{
    char digits[20];
    size_t n = str_put_u64(digits, status);

    return regex_test(e->regex, str_make(digits, n));
}

/* `text` is what the pattern, or its format, says; names compare in any case. */
static bool compare(const struct check_pattern *p, struct str text, struct str s, bool any_case)
{
    switch (p->compare) {
    case CHECK_REG:
        return regex_test(p->regex, s);
    case CHECK_BEGIN:
        return any_case ? str_istarts(s, text) : str_starts(s, text);
    case CHECK_END:
        s = str_from(s, s.len > text.len ? s.len - text.len : 0);
        break;
    case CHECK_SUB:
        return any_case ? text.len <= s.len && str_ifind(s, text) < s.len : contains(s, text);
    default:
        break;
    }
    return any_case ? str_ieq(s, text) : str_eq(s, text);
}

static bool compare_value(const struct check_expect *e, struct str text, struct str value)
{
    struct str rest = value, item;

    if (e->match == CHECK_MATCH_WHOLE_FIELD)
        return compare(&e->value, text, value, false);
    while (http_list_next(&rest, &item))
        if (compare(&e->value, text, item, false))
            return true;
    return false;
}

static enum check_answer match_field(const struct check_expect *e, struct rules_ctx *ctx,
                                     const struct http_msg *res)
{
    struct str name = e->name.text, value = e->value.text;
    bool found = false;

    if (e->name.fmt)
        name = rules_fmt_str(e->name.fmt, ctx);
    if (e->value.fmt)
        value = rules_fmt_str(e->value.fmt, ctx);
    if ((e->name.fmt && !name.len) || (e->value.fmt && !value.len))
        return CHECK_EMPTY_PATTERN;
    for (uint32_t i = 0; i < res->field_count && !found; i++) {
        const struct http_field *f = &res->fields[i];

        found = compare(&e->name, name, f->name, true) &&
                (!e->value.given || compare_value(e, value, f->value));
    }
    return found != e->negate ? CHECK_MATCHES : CHECK_MATCHES_NOT;
}

enum check_answer check_match_head(const struct check_expect *e, struct rules_ctx *ctx,
                                   const struct http_msg *res)
{
    bool found;

    if (e->match == CHECK_MATCH_STATUS)
        found = in_ranges(e, res->status);
    else if (e->match == CHECK_MATCH_STATUS_REGEX)
        found = status_regex(e, res->status);
    else
        return match_field(e, ctx, res);
    return found != e->negate ? CHECK_MATCHES : CHECK_MATCHES_NOT;
}
