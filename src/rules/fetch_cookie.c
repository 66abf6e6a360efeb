/*
 * Fetches of cookies, in requests (Cookie) and responses (Set-Cookie).
 */
#include "rules/message.h"
#include "rules/tables.h"

enum { OF_REQUEST, OF_RESPONSE, OF_DIRECTION };

static bool is_response(const struct fetch_call *f, const struct rules_ctx *ctx)
{
    return f->def->data == OF_RESPONSE || (f->def->data == OF_DIRECTION && ctx->response_stage);
}

static bool is_blank(char ch)
{
    return ch == ' ' || ch == '\t';
}

/* Where a value ends: at ';' or ',' outside quotes. */
static size_t value_end(struct str s)
{
    bool quoted = false;

    for (size_t i = 0; i < s.len; i++) {
        char ch = s.ptr[i];

        if (quoted && ch == '\\')
            i++;
        else if (ch == '"')
            quoted = !quoted;
        else if (!quoted && (ch == ';' || ch == ','))
            return i;
    }
    return s.len;
}

/*
 * The next NAME=VALUE at *rest. In a request pairs follow each other after ';'
 * or ','; in a response only the first pair of a line is a cookie.
 */
static bool next_pair(struct str *rest, bool response, struct str *name, struct str *value)
{
    while (rest->len) {
        struct str s = *rest;
        size_t n = 0, end;

        while (n < s.len && s.ptr[n] != '=' && s.ptr[n] != ';' && (response || s.ptr[n] != ','))
            n++;
        *name = str_trim(str_make(s.ptr, n));
        if (n == s.len || s.ptr[n] != '=') {
            *rest = response ? str_from(s, s.len) : str_from(s, n + 1);
            continue;
        }
        s = str_from(s, n + 1);
        while (s.len && is_blank(s.ptr[0]))
            s = str_from(s, 1);
        end = value_end(s);
        *value = str_trim(str_make(s.ptr, end));
        *rest = response ? str_from(s, s.len) : str_from(s, end + 1);
        /* "$Version" and the like describe cookies and are none. */
        if (!name->len || name->ptr[0] != '$')
            return true;
    }
    return false;
}

/* The next cookie called `name` (any, when empty) at the iterator's position. */
static bool next_cookie(const struct http_msg *m, bool response, struct str name,
                        struct fetch_iter *it, struct str *found_name, struct str *value)
{
    uint16_t id = response ? HTTP_FIELD_SET_COOKIE : HTTP_FIELD_COOKIE;

    for (;;) {
        if (!it->in_field) {
            while (it->at < m->field_count && m->fields[it->at].id != id)
                it->at++;
            if (it->at >= m->field_count)
                return false;
            it->rest = m->fields[it->at++].value;
            it->in_field = true;
        }
        while (next_pair(&it->rest, response, found_name, value))
            if (!name.len || str_eq(*found_name, name))
                return true;
        it->in_field = false;
    }
}

/* All of them in turn for ACLs; otherwise the last with that name, or the first without a name. */
static bool fetch_text(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                       struct str *out)
{
    bool response = is_response(f, ctx), found = false;
    const struct http_msg *m = response ? ctx->res : ctx->req;
    const struct rules_arg *arg = arg_at(&f->args, 0);
    struct str name = arg ? arg->s : STR(""), seen, value;

    if (!m)
        return false;
    if (it->all) {
        it->more = next_cookie(m, response, name, it, &seen, out);
        return it->more;
    }
    while (next_cookie(m, response, name, it, &seen, &value)) {
        *out = value;
        found = true;
        if (!name.len)
            break;
    }
    return found;
}

static bool fetch_cookie(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                         struct sample *out)
{
    struct str s;

    return fetch_text(f, ctx, it, &s) && value_str(out, s);
}

static bool fetch_cookie_val(const struct fetch_call *f, struct rules_ctx *ctx,
                             struct fetch_iter *it, struct sample *out)
{
    struct str s;

    return fetch_text(f, ctx, it, &s) && value_int(out, value_read_int(s, NULL));
}

static bool fetch_cookie_cnt(const struct fetch_call *f, struct rules_ctx *ctx,
                             struct fetch_iter *it, struct sample *out)
{
    bool response = is_response(f, ctx);
    const struct http_msg *m = response ? ctx->res : ctx->req;
    const struct rules_arg *arg = arg_at(&f->args, 0);
    struct fetch_iter each = {0};
    struct str name, value;
    int64_t n = 0;

    if (!m)
        return false;
    while (next_cookie(m, response, arg ? arg->s : STR(""), &each, &name, &value))
        n++;
    return value_int(out, n);
}

static bool fetch_cookie_names(const struct fetch_call *f, struct rules_ctx *ctx,
                               struct fetch_iter *it, struct sample *out)
{
    bool response = is_response(f, ctx);
    const struct http_msg *m = response ? ctx->res : ctx->req;
    const struct rules_arg *arg = arg_at(&f->args, 0);
    char delimiter = arg && arg->s.len ? arg->s.ptr[0] : ',';
    struct fetch_iter each = {0};
    struct str name, value;
    size_t bytes = 1;
    struct buf b;

    if (!m)
        return false;
    for (uint32_t i = 0; i < m->field_count; i++)
        bytes += m->fields[i].value.len + 1;
    b = (struct buf){arena_alloc(ctx->arena, bytes), (uint32_t)bytes, 0, 0};
    if (!b.mem)
        return false;
    while (next_cookie(m, response, STR(""), &each, &name, &value)) {
        if (buf_len(&b))
            buf_put_char(&b, delimiter);
        buf_put(&b, name);
    }
    return value_str(out, buf_str(&b));
}

#define REQ NEEDS_REQUEST
#define RES NEEDS_RESPONSE
#define NAME "?s", "[<cookie>]"

static const struct fetch_def rows[] = {
    {"cook", NAME, VALUE_STR, REQ, fetch_cookie, OF_REQUEST, .help = "same as req.cook"},
    {"cook_cnt", NAME, VALUE_INT, REQ, fetch_cookie_cnt, OF_REQUEST,
     .help = "same as req.cook_cnt"},
    {"cook_val", NAME, VALUE_INT, REQ, fetch_cookie_val, OF_REQUEST,
     .help = "same as req.cook_val"},
    {"cookie", NAME, VALUE_STR, NEEDS_DIRECTION, fetch_cookie, OF_DIRECTION,
     .help = "cookie of the message at hand"},
    {"req.cook", NAME, VALUE_STR, REQ, fetch_cookie, OF_REQUEST,
     .help = "last value of a request cookie"},
    {"req.cook_cnt", NAME, VALUE_INT, REQ, fetch_cookie_cnt, OF_REQUEST,
     .help = "number of request cookies of that name"},
    {"req.cook_val", NAME, VALUE_INT, REQ, fetch_cookie_val, OF_REQUEST,
     .help = "request cookie as an integer"},
    {"req.cook_names", "?s", "[<delim>]", VALUE_STR, REQ, fetch_cookie_names, OF_REQUEST,
     .help = "names of the request's cookies"},
    {"res.cook", NAME, VALUE_STR, RES, fetch_cookie, OF_RESPONSE,
     .help = "last value of a response cookie"},
    {"res.cook_cnt", NAME, VALUE_INT, RES, fetch_cookie_cnt, OF_RESPONSE,
     .help = "number of response cookies of that name"},
    {"res.cook_val", NAME, VALUE_INT, RES, fetch_cookie_val, OF_RESPONSE,
     .help = "response cookie as an integer"},
    {"res.cook_names", "?s", "[<delim>]", VALUE_STR, RES, fetch_cookie_names, OF_RESPONSE,
     .help = "names of the response's cookies"},
    {"scook", NAME, VALUE_STR, RES, fetch_cookie, OF_RESPONSE, .help = "same as res.cook"},
    {"scook_cnt", NAME, VALUE_INT, RES, fetch_cookie_cnt, OF_RESPONSE,
     .help = "same as res.cook_cnt"},
    {"scook_val", NAME, VALUE_INT, RES, fetch_cookie_val, OF_RESPONSE,
     .help = "same as res.cook_val"},
    {"set-cookie", NAME, VALUE_STR, RES, fetch_cookie, OF_RESPONSE, .help = "same as res.cook"},
};

const struct fetch_table fetch_cookie_table = TABLE_OF(rows);
