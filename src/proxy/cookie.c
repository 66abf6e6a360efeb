#include "proxy/cookie.h"

#define DATE_CHARS 5              /* 30 bits, six a character */
#define FUTURE_TOLERANCE_S 86400  /* a clock that was set wrong expires nobody */

/* --- one cookie after another --------------------------------------------------------- */

struct segment {
    struct str whole; /* without blanks around */
    struct str name, value;
    bool has_value;   /* there is an equal sign */
    char delimiter;   /* that stood before it; 0 for the first */
};

static size_t value_end(struct str s)
{
    bool quoted = false;

    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];

        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == ';' || c == ','))
            return i;
    }
    return s.len;
}

/* Cookie fields separate by semicolon or comma, and neither does so inside quotes. */
static bool next_segment(struct str *rest, struct segment *out)
{
    size_t equal = 0, end;

    if (!rest->ptr)
        return false;
    while (equal < rest->len && rest->ptr[equal] != '=' && rest->ptr[equal] != ';' && rest->ptr[equal] != ',')
        equal++;
    out->has_value = equal < rest->len && rest->ptr[equal] == '=';
    end = out->has_value ? equal + 1 + value_end(str_from(*rest, equal + 1)) : equal;
    out->name = str_trim(str_make(rest->ptr, equal));
    out->value = out->has_value ? str_trim(str_make(rest->ptr + equal + 1, end - equal - 1)) : STR_NULL;
    out->whole = str_trim(str_make(rest->ptr, end));
    *rest = end < rest->len ? str_from(*rest, end) : STR_NULL;
    return true;
}

/* *rest begins with a delimiter except at first. */
static bool next_cookie(struct str *rest, bool first, struct segment *out)
{
    char delimiter = 0;

    if (!first) {
        if (!rest->ptr || !rest->len)
            return false;
        delimiter = rest->ptr[0];
        *rest = str_make(rest->ptr + 1, rest->len - 1);
    }
    if (!next_segment(rest, out))
        return false;
    out->delimiter = delimiter;
    return true;
}

/* --- dates: units of four seconds in unpadded base64 ------------------------------------ */

static const char date_alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void date_put(char out[DATE_CHARS], int64_t seconds)
{
    uint32_t units = (uint32_t)((seconds >> 2) & 0x3fffffff);

    for (int i = 0; i < DATE_CHARS; i++)
        out[i] = date_alphabet[units >> (24 - 6 * i) & 63];
}

/* 0: no date. */
static int64_t date_get(struct str s)
{
    int64_t units = 0;

    if (s.len < DATE_CHARS)
        return 0;
    for (int i = 0; i < DATE_CHARS; i++) {
        const char *at = s.ptr[i] ? strchr(date_alphabet, s.ptr[i]) : NULL;

        if (!at)
            return 0;
        units = units << 6 | (at - date_alphabet);
    }
    return units << 2;
}

static bool is_outdated(int64_t date_s, int64_t limit_s, int64_t now_s)
{
    return date_s && limit_s && (now_s - date_s > limit_s || date_s - now_s > FUTURE_TOLERANCE_S);
}

/* --- the request --------------------------------------------------------------------------- */

struct parsing {
    const struct proxy *backend;
    struct cookie_state *st;
    bool is_assigned;
    int64_t now_s;
};

/*
 * The server's part of a cookie's value: before '~' with "prefix", otherwise before '|', behind which the dates
 * stand: last seen, then first seen.
 */
static struct str server_part(const struct parsing *p, struct str value)
{
    size_t bar = str_chr(value, '|');
    struct str dates;

    if (p->backend->cfg->cookie.prefix)
        return str_make(value.ptr, str_chr(value, '~'));
    if (bar == value.len)
        return value;
    dates = str_from(value, bar + 1);
    if (date_get(dates))
        p->st->last_s = date_get(dates);
    dates = str_from(dates, str_chr(dates, '|') + 1);
    if (date_get(dates))
        p->st->first_s = date_get(dates);
    return str_make(value.ptr, bar);
}

/* The first reachable server of that cookie; several servers may share one. */
static struct server *find_server(const struct parsing *p, struct str cookie)
{
    const struct proxy *be = p->backend;

    for (int i = 0; i < be->server_count; i++) {
        struct server *s = be->servers[i];

        if (!s->cookie.ptr || !str_eq(s->cookie, cookie))
            continue;
        if (server_is_reachable(s)) {
            p->st->request = 'V';
            return s;
        }
        p->st->request = 'D';
        if (be->cfg->persist)
            return s;
    }
    return NULL;
}

/* The value of the backend's cookie was found. Returns how many bytes of it were the server's part. */
static size_t evaluate(struct parsing *p, struct str value)
{
    const struct cfg_cookie *cfg = &p->backend->cfg->cookie;
    struct cookie_state *st = p->st;
    struct str part = server_part(p, value);
    struct server *server = NULL;
    char outdated = is_outdated(st->first_s, cfg->maxlife_s, p->now_s)  ? 'O'
                    : is_outdated(st->last_s, cfg->maxidle_s, p->now_s) ? 'E'
                                                                        : 0;

    st->found = true;
    if (outdated) {
        st->request = outdated;
        st->first_s = st->last_s = 0;
    } else if (part.len && !p->is_assigned) {
        /* An empty cookie must not lead to a server whose cookie is empty. */
        server = find_server(p, part);
    }
    if (server) {
        st->server = server;
        p->is_assigned = true;
    } else if (st->request == 'N') {
        st->request = p->is_assigned ? 'U' : 'I';
    }
    return part.len;
}

/* The field's value as it is built anew. */
struct rebuilt {
    char *text;
    size_t len;
    bool changed;
    bool keeps; /* an application's cookie is left */
};

static void keep(struct rebuilt *r, const struct segment *seg, struct str name_part, struct str value_part)
{
    if (r->len) {
        r->text[r->len++] = seg->delimiter;
        r->text[r->len++] = ' ';
    }
    if (name_part.len)
        memcpy(r->text + r->len, name_part.ptr, name_part.len);
    r->len += name_part.len;
    if (value_part.len)
        memcpy(r->text + r->len, value_part.ptr, value_part.len);
    r->len += value_part.len;
}

static void handle_own_cookie(struct parsing *p, const struct segment *seg, struct rebuilt *r, bool *removed)
{
    const struct cfg_cookie *cfg = &p->backend->cfg->cookie;
    size_t part = evaluate(p, seg->value);

    if (cfg->prefix && part < seg->value.len) {
        keep(r, seg, str_make(seg->whole.ptr, (size_t)(seg->value.ptr - seg->whole.ptr)),
             str_from(seg->value, part + 1));
        r->changed = r->keeps = true;
    } else if (cfg->insert && cfg->indirect) {
        r->changed = *removed = true;
    } else {
        keep(r, seg, seg->whole, STR_NULL);
        r->keeps = true;
    }
}

/* Walks through one Cookie field. SP_ENOMEM. */
static int parse_field(struct parsing *p, struct http_msg *req, struct str value, struct rebuilt *r)
{
    struct str own = str_of(p->backend->cfg->cookie.name);
    struct segment seg;
    bool removed = false;

    /* Each segment keeps its length and may gain one blank, and there are at most len / 2 + 1 of them. */
    *r = (struct rebuilt){.text = arena_alloc(req->arena, value.len * 2 + 2)};
    if (!r->text)
        return SP_ENOMEM;
    for (bool first = true; next_cookie(&value, first, &seg); first = false) {
        if (!seg.whole.len)
            continue;
        if (seg.name.len && seg.name.ptr[0] == '$') {
            /* RFC 2965: an attribute of the cookie before it, and goes with it. */
            if (!removed)
                keep(r, &seg, seg.whole, STR_NULL);
            continue;
        }
        removed = false;
        if (seg.has_value && str_eq(seg.name, own)) {
            handle_own_cookie(p, &seg, r, &removed);
        } else {
            keep(r, &seg, seg.whole, STR_NULL);
            r->keeps = true;
        }
    }
    return 0;
}

int cookie_parse_request(const struct proxy *backend, struct http_msg *req, struct server *assigned, uint64_t wall_us,
                         struct cookie_state *st)
{
    const char *name = backend->cfg->cookie.name;
    struct parsing p = {
        .backend = backend,
        .st = st,
        .is_assigned = assigned != NULL,
        .now_s = (int64_t)(wall_us / 1000000),
    };

    *st = (struct cookie_state){.server = assigned, .request = name ? 'N' : '-', .response = name ? 'N' : '-'};
    if (!name)
        return 0;
    for (uint32_t i = 0; i < req->field_count;) {
        struct http_field *f = &req->fields[i];
        struct rebuilt r;

        if (f->id != HTTP_FIELD_COOKIE || str_find(f->value, str_of(name)) == f->value.len) {
            i++;
            continue;
        }
        if (parse_field(&p, req, f->value, &r) != 0)
            return SP_ENOMEM;
        if (r.changed && !r.keeps) {
            http_msg_del_at(req, i);
            continue;
        }
        if (r.changed)
            http_msg_set_value(req, f, str_make(r.text, r.len));
        i++;
    }
    return 0;
}

/* --- the response ---------------------------------------------------------------------------- */

/* Replaces `old`, a part of the field's value, by `text`. */
static int replace_part(struct http_msg *res, struct http_field *f, struct str old, struct str text)
{
    size_t before = (size_t)(old.ptr - f->value.ptr);
    size_t after = f->value.len - before - old.len;
    size_t len = before + text.len + after;
    char *out = arena_alloc(res->arena, len);

    if (!out)
        return SP_ENOMEM;
    memcpy(out, f->value.ptr, before);
    memcpy(out + before, text.ptr, text.len);
    memcpy(out + before + text.len, old.ptr + old.len, after);
    return http_msg_set_value(res, f, str_make(out, len));
}

/* "prefix": SERVER~ in front of the application's value. */
static int add_prefix(struct http_msg *res, struct http_field *f, struct str value, struct str cookie)
{
    char *text = arena_alloc(res->arena, cookie.len + 1);

    if (!text)
        return SP_ENOMEM;
    memcpy(text, cookie.ptr, cookie.len);
    text[cookie.len] = '~';
    value.len = 0;
    return replace_part(res, f, value, str_make(text, cookie.len + 1));
}

/* What the server itself sets under the backend's cookie name. */
static int handle_set_cookies(const struct proxy *backend, const struct server *chosen, struct http_msg *res,
                              struct cookie_state *st)
{
    const struct cfg_cookie *cfg = &backend->cfg->cookie;
    bool is_direct = st->server && st->server == chosen;
    int rc = 0;

    for (uint32_t i = 0; i < res->field_count && rc == 0;) {
        struct http_field *f = &res->fields[i];
        struct segment seg;
        struct str rest = f->value;

        if (f->id != HTTP_FIELD_SET_COOKIE || !next_cookie(&rest, true, &seg) || !seg.has_value ||
            !str_eq(seg.name, str_of(cfg->name))) {
            i++;
            continue;
        }
        st->response = 'P';
        if (!cfg->preserve && (cfg->insert || (is_direct && cfg->indirect))) {
            http_msg_del_at(res, i);
            st->response = 'D';
            continue;
        }
        if (!cfg->preserve && chosen->cookie.ptr && (cfg->rewrite || cfg->prefix)) {
            rc = cfg->rewrite ? replace_part(res, f, seg.value, chosen->cookie)
                              : add_prefix(res, f, seg.value, chosen->cookie);
            st->response = 'R';
        }
        i++;
    }
    return rc;
}

static bool is_cacheable_status(unsigned status)
{
    switch (status) {
    case 200:
    case 203:
    case 204:
    case 206:
    case 300:
    case 301:
    case 404:
    case 405:
    case 410:
    case 414:
    case 501:
        return true;
    default:
        return false;
    }
}

static bool is_directive(struct str item, struct str name)
{
    return str_ieq(item, name) || (str_istarts(item, name) && item.ptr[name.len] == '=');
}

struct freshness {
    bool cacheable, fresh, zero_age;
};

static void read_directive(struct freshness *f, struct str item)
{
    if (str_ieq(item, STR("public"))) {
        f->cacheable = true;
    } else if (str_ieq(item, STR("max-age=0"))) {
        f->zero_age = true;
    } else if (str_ieq(item, STR("no-cache=\"set-cookie\""))) {
        return; /* cacheable without the cookie */
    } else if (is_directive(item, STR("private")) || is_directive(item, STR("no-cache")) ||
               is_directive(item, STR("no-store")) || str_ieq(item, STR("s-maxage=0"))) {
        f->cacheable = false;
    } else if (str_istarts(item, STR("s-maxage"))) {
        f->fresh = true;
        f->zero_age = false;
    } else if (str_istarts(item, STR("max-age"))) {
        f->fresh = true;
    }
}

static bool has_field(const struct http_msg *m, struct str name)
{
    uint32_t at = 0;

    return http_msg_next(m, name, &at) != NULL;
}

/* Whether a cache might keep the response, so that others would get this client's cookie. */
static bool is_cacheable(const struct http_msg *req, const struct http_msg *res)
{
    struct freshness f = {
        .cacheable = (req->method == HTTP_GET || req->method == HTTP_HEAD || req->method == HTTP_OPTIONS ||
                      req->method == HTTP_TRACE) &&
                     is_cacheable_status(res->status),
    };
    const struct http_field *pragma = http_msg_find(res, HTTP_FIELD_PRAGMA);

    if (pragma && str_ieq(pragma->value, STR("no-cache")))
        return false;
    for (uint32_t i = 0; i < res->field_count; i++) {
        struct str rest = res->fields[i].value, item;

        if (res->fields[i].id != HTTP_FIELD_CACHE_CONTROL)
            continue;
        while (http_list_next(&rest, &item))
            read_directive(&f, item);
    }
    if (!f.cacheable || f.zero_age)
        return false;
    /* Without any date or validator no cache keeps it. */
    return f.fresh || http_msg_find(res, HTTP_FIELD_EXPIRES) || http_msg_find(res, HTTP_FIELD_ETAG) ||
           has_field(res, STR("last-modified"));
}

static bool needs_insertion(const struct proxy *backend, const struct server *chosen, const struct http_msg *req,
                            int64_t now_s, const struct cookie_state *st)
{
    const struct cfg_cookie *cfg = &backend->cfg->cookie;
    bool is_direct = st->server && st->server == chosen;

    if (!cfg->insert || (cfg->preserve && st->response == 'P') || (cfg->postonly && req->method != HTTP_POST))
        return false;
    if (!is_direct)
        return true;
    /* The client comes back to its server: only the dates may need an update. */
    if ((cfg->maxidle_s || st->last_s) && (!st->last_s || st->last_s < now_s))
        return true;
    return (cfg->maxlife_s != 0) != (st->first_s != 0);
}

/* The text of Set-Cookie; NULL without memory. A server without a cookie makes the client forget the one it has. */
static char *set_cookie_text(const struct cfg_cookie *cfg, const struct server *chosen, int64_t now_s, int64_t first_s,
                             struct arena *arena)
{
    char dates[2 * (DATE_CHARS + 1) + 1];
    size_t len = 0;
    int64_t date_s = now_s + 3; /* rounded up to the unit */

    if (cfg->maxidle_s || cfg->maxlife_s) {
        dates[len++] = '|';
        date_put(dates + len, date_s);
        len += DATE_CHARS;
        if (cfg->maxlife_s) {
            dates[len++] = '|';
            date_put(dates + len, first_s ? first_s : date_s);
            len += DATE_CHARS;
        }
    }
    if (!chosen->cookie.ptr)
        len = 0;
    return arena_printf(arena, "%s=%.*s%.*s%s; path=/%s%s%s%s%s%s", cfg->name, STR_FMT(chosen->cookie), (int)len, dates,
                        chosen->cookie.ptr ? "" : "; Expires=Thu, 01-Jan-1970 00:00:01 GMT",
                        cfg->domain ? "; domain=" : "", cfg->domain ? cfg->domain : "",
                        cfg->httponly ? "; HttpOnly" : "", cfg->secure ? "; Secure" : "", cfg->attr ? "; " : "",
                        cfg->attr ? cfg->attr : "");
}

int cookie_write_response(const struct proxy *backend, const struct server *chosen, const struct http_msg *req,
                          struct http_msg *res, uint64_t wall_us, struct cookie_state *st)
{
    const struct cfg_cookie *cfg = &backend->cfg->cookie;
    int64_t now_s = (int64_t)(wall_us / 1000000);
    bool hide_from_caches;
    char *text;
    int rc;

    if (!cfg->name || !chosen || (res->status < 200 && res->status != 101))
        return 0;
    rc = handle_set_cookies(backend, chosen, res, st);
    if (rc || !needs_insertion(backend, chosen, req, now_s, st))
        return rc;
    hide_from_caches = cfg->nocache && is_cacheable(req, res);
    text = set_cookie_text(cfg, chosen, now_s, st->first_s, res->arena);
    if (!text)
        return SP_ENOMEM;
    rc = http_msg_add(res, STR("set-cookie"), str_of(text));
    if (rc == 0 && hide_from_caches)
        rc = http_msg_add(res, STR("cache-control"), STR("private"));
    if (rc == 0)
        st->response = chosen->cookie.ptr && st->server && st->server == chosen ? 'U' : 'I';
    return rc;
}
