#include "rules/message.h"

/* Where "scheme://" ends, or 0. */
static size_t scheme_end(struct str target)
{
    size_t n = 0;

    while (n < target.len && ((target.ptr[n] | 0x20) >= 'a' && (target.ptr[n] | 0x20) <= 'z'))
        n++;
    while (n < target.len && target.ptr[n] != ':' && target.ptr[n] != '/' && target.ptr[n] != '?')
        n++;
    return n && n + 3 <= target.len && memcmp(target.ptr + n, "://", 3) == 0 ? n + 3 : 0;
}

bool target_pathq(struct str target, struct str *out)
{
    size_t n;

    if (!target.len)
        return false;
    if (target.ptr[0] == '/') {
        *out = target;
        return true;
    }
    n = scheme_end(target);
    if (!n)
        return false;
    target = str_from(target, n);
    for (n = 0; n < target.len && target.ptr[n] != '/' && target.ptr[n] != '?'; n++)
        ;
    *out = str_from(target, n);
    return out->len > 0;
}

bool target_path(struct str target, struct str *out)
{
    if (!target_pathq(target, out))
        return false;
    out->len = str_chr(*out, '?');
    return true;
}

struct str target_authority(struct str target)
{
    size_t n = scheme_end(target);

    if (!n && (!target.len || target.ptr[0] == '/' || str_eq(target, STR("*"))))
        return str_make(target.ptr, 0);
    target = str_from(target, n);
    for (n = 0; n < target.len && target.ptr[n] != '/' && target.ptr[n] != '?'; n++)
        ;
    target.len = n;
    return target;
}

bool target_is_valid(struct str target)
{
    if (!target.len)
        return false;
    for (size_t i = 0; i < target.len; i++)
        if ((uint8_t)target.ptr[i] <= ' ' || target.ptr[i] == 0x7f)
            return false;
    return true;
}

size_t list_value_end(struct str s)
{
    bool quoted = false;

    for (size_t i = 0; i < s.len; i++) {
        char ch = s.ptr[i];

        if (quoted && ch == '\\')
            i++;
        else if (ch == '"')
            quoted = !quoted;
        else if (!quoted && ch == ',')
            return i;
    }
    return s.len;
}

bool message_host(const struct http_msg *m, struct str *out)
{
    const struct http_field *f = http_msg_find(m, HTTP_FIELD_HOST);

    if (!f)
        return false;
    *out = str_trim(str_make(f->value.ptr, list_value_end(f->value)));
    return true;
}
