#include "http/http.h"
#include "http/http_chars.h"

/* Length of "scheme" when the target starts with "scheme://"; 0 otherwise. */
static size_t scheme_len(struct str t)
{
    size_t n = 0;

    if (!t.len || !http_char_is(t.ptr[0], HTTP_CHAR_ALPHA))
        return 0;
    while (n < t.len && (http_char_is(t.ptr[n], HTTP_CHAR_ALPHA | HTTP_CHAR_DIGIT) ||
                         t.ptr[n] == '+' || t.ptr[n] == '-' || t.ptr[n] == '.'))
        n++;
    return t.len - n >= 3 && memcmp(t.ptr + n, "://", 3) == 0 ? n : 0;
}

void http_target_split(struct str target, struct http_target *out)
{
    struct str rest = target;
    size_t n;

    memset(out, 0, sizeof *out);
    n = scheme_len(target);
    if (n) {
        size_t end = 0;

        out->scheme = str_make(target.ptr, n);
        rest = str_from(target, n + 3);
        while (end < rest.len && rest.ptr[end] != '/' && rest.ptr[end] != '?' &&
               rest.ptr[end] != '#')
            end++;
        out->authority = str_make(rest.ptr, end);
        rest = str_from(rest, end);
    } else if (target.len && target.ptr[0] != '/' && str_chr(target, '/') == target.len &&
               str_chr(target, ':') < target.len) {
        out->authority = target;
        out->path = str_from(target, target.len);
        return;
    }
    rest.len = str_chr(rest, '#');
    n = str_chr(rest, '?');
    out->path = str_make(rest.ptr, n);
    out->query = str_from(rest, n + 1);
    out->has_query = n < rest.len;
}

int http_url_decode(struct str in, bool form, char *out, size_t *out_len)
{
    size_t n = 0;

    for (size_t i = 0; i < in.len; i++) {
        char c = in.ptr[i];

        if (c == '%') {
            if (in.len - i < 3 || !http_char_is(in.ptr[i + 1], HTTP_CHAR_HEX) ||
                !http_char_is(in.ptr[i + 2], HTTP_CHAR_HEX))
                return SP_EINVAL;
            c = (char)(http_hex_value(in.ptr[i + 1]) << 4 | http_hex_value(in.ptr[i + 2]));
            i += 2;
        } else if (c == '+' && form) {
            c = ' ';
        }
        out[n++] = c;
    }
    *out_len = n;
    return 0;
}

bool http_query_param(struct str query, char delimiter, struct str name, struct str *value)
{
    while (query.len) {
        size_t n = str_chr(query, delimiter);
        struct str pair = str_make(query.ptr, n);

        /* "name" without '=' has no value to speak of and does not count as present. */
        if (str_starts(pair, name) && pair.len > name.len && pair.ptr[name.len] == '=') {
            *value = str_from(pair, name.len + 1);
            return true;
        }
        query = str_from(query, n + 1);
    }
    return false;
}

/* The end of a cookie's value: a ';' or ',' outside double quotes. */
static size_t cookie_value_len(struct str s)
{
    bool quoted = false;
    size_t i;

    for (i = 0; i < s.len; i++) {
        char c = s.ptr[i];

        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == ';' || c == ','))
            break;
    }
    return i < s.len ? i : s.len;
}

bool http_cookie_next(struct str *rest, struct str *name, struct str *value)
{
    while (rest->len) {
        size_t n = 0;
        struct str key;

        while (n < rest->len && rest->ptr[n] != '=' && rest->ptr[n] != ';' && rest->ptr[n] != ',')
            n++;
        key = str_trim(str_make(rest->ptr, n));
        if (n == rest->len || rest->ptr[n] != '=') {
            *rest = str_from(*rest, n + 1);
            continue;
        }
        *rest = str_from(*rest, n + 1);
        n = cookie_value_len(*rest);
        *value = str_trim(str_make(rest->ptr, n));
        *rest = str_from(*rest, n + 1);
        if (key.len && key.ptr[0] == '$')
            continue; /* an attribute of RFC 2965, not a cookie */
        *name = key;
        return true;
    }
    return false;
}
