/*
 * Redirections.
 */
#include "rules/action.h"
#include "rules/message.h"

enum redirect_type { REDIRECT_NONE, REDIRECT_LOCATION, REDIRECT_PREFIX, REDIRECT_SCHEME };

struct redirect_def {
    enum redirect_type type;
    unsigned code;
    bool drop_query, keep_query, append_slash, ignore_empty;
    const struct rules_fmt *to;
    const struct rules_fmt *cookie; /* NULL: none */
};

/* --- reading --------------------------------------------------------------------------------------- */

struct redirect_parser {
    struct rule_parser *p;
    struct redirect_def *d;
    const char *to, *cookie;
    enum { COOKIE_NONE, COOKIE_SET, COOKIE_FORMAT, COOKIE_CLEAR } cookie_kind;
};

static int parse_code(struct redirect_parser *rp)
{
    const char *word = parser_need(rp->p, "a status code after 'code'");
    uint64_t code;

    if (!word)
        return SP_EINVAL;
    if (str_to_u64(str_of(word), &code) < 0 ||
        (code != 301 && code != 302 && code != 303 && code != 307 && code != 308))
        return parser_fail(rp->p, "expects one of the codes 301, 302, 303, 307 and 308, found '%s'",
                           word);
    rp->d->code = (unsigned)code;
    return 0;
}

static int parse_to(struct redirect_parser *rp, const char *word, enum redirect_type type)
{
    rp->to = parser_need(rp->p, "a destination");
    rp->d->type = type;
    return rp->to ? 0 : SP_EINVAL;
}

static int parse_cookie(struct redirect_parser *rp, const char *word)
{
    rp->cookie = parser_need(rp->p, "a cookie");
    rp->cookie_kind = word[0] == 'c'                    ? COOKIE_CLEAR
                      : strcmp(word, "set-cookie") == 0 ? COOKIE_SET
                                                        : COOKIE_FORMAT;
    return rp->cookie ? 0 : SP_EINVAL;
}

static int parse_word(struct redirect_parser *rp, const char *word)
{
    if (strcmp(word, "location") == 0)
        return parse_to(rp, word, REDIRECT_LOCATION);
    if (strcmp(word, "prefix") == 0)
        return parse_to(rp, word, REDIRECT_PREFIX);
    if (strcmp(word, "scheme") == 0)
        return parse_to(rp, word, REDIRECT_SCHEME);
    if (strcmp(word, "code") == 0)
        return parse_code(rp);
    if (strcmp(word, "set-cookie") == 0 || strcmp(word, "set-cookie-fmt") == 0 ||
        strcmp(word, "clear-cookie") == 0)
        return parse_cookie(rp, word);
    if (strcmp(word, "drop-query") == 0)
        rp->d->drop_query = true;
    else if (strcmp(word, "keep-query") == 0)
        rp->d->keep_query = true;
    else if (strcmp(word, "append-slash") == 0)
        rp->d->append_slash = true;
    else if (strcmp(word, "ignore-empty") == 0)
        rp->d->ignore_empty = true;
    else
        return parser_fail(
            rp->p,
            "expects location, prefix, scheme, code, set-cookie, set-cookie-fmt, clear-cookie, "
            "drop-query, keep-query, append-slash or ignore-empty, found '%s'",
            word);
    return 0;
}

/* Text that is taken as it is: every '%' stands for itself. */
static const struct rules_fmt *literal(struct rule_parser *p, const char *text)
{
    size_t n = strlen(text);
    char *doubled = compiler_zalloc(p->c, 2 * n + 1, 1);
    size_t out = 0;

    if (!doubled)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '%')
            doubled[out++] = '%';
        doubled[out++] = text[i];
    }
    return fmt_compile(p->c, doubled, FMT_HTTP, p->stage);
}

static int finish(struct redirect_parser *rp, bool formats)
{
    static const char *const suffixes[] = {[COOKIE_SET] = "; path=/;",
                                           [COOKIE_FORMAT] = "; path=/;",
                                           [COOKIE_CLEAR] = "; path=/; Max-Age=0;"};
    struct rule_parser *p = rp->p;
    char *cookie;

    /* Prefix "/" adds nothing, so that one can redirect to the same place. */
    if (rp->d->type == REDIRECT_PREFIX && strcmp(rp->to, "/") == 0)
        rp->to = "";
    rp->d->to = formats ? fmt_compile(p->c, rp->to, FMT_HTTP, p->stage) : literal(p, rp->to);
    if (!rp->d->to)
        return SP_EINVAL;
    if (rp->cookie_kind == COOKIE_NONE)
        return 0;
    cookie = arena_printf(p->c->arena, "%s%s", rp->cookie, suffixes[rp->cookie_kind]);
    if (!cookie)
        return parser_fail(p, "ran out of memory");
    rp->d->cookie = rp->cookie_kind == COOKIE_FORMAT ? fmt_compile(p->c, cookie, FMT_HTTP, p->stage)
                                                     : literal(p, cookie);
    return rp->d->cookie ? 0 : SP_EINVAL;
}

struct redirect_def *redirect_parse(struct rule_parser *p, bool formats, bool response)
{
    struct redirect_parser rp = {.p = p};
    const char *word;

    rp.d = compiler_zalloc(p->c, 1, sizeof *rp.d);
    if (!rp.d)
        return NULL;
    rp.d->code = 302;
    while ((word = parser_next(p)))
        if (parse_word(&rp, word) < 0)
            return NULL;
    if (rp.d->type == REDIRECT_NONE) {
        parser_fail(p, "expects a redirection of type 'location', 'prefix' or 'scheme'");
        return NULL;
    }
    if (response && rp.d->type != REDIRECT_LOCATION) {
        parser_fail(p, "only knows redirections of type 'location' in responses");
        return NULL;
    }
    return finish(&rp, formats) < 0 ? NULL : rp.d;
}

/* --- running ------------------------------------------------------------------------------------------ */

#define LOCATION_MAX 16384

/* The path and query of the request; "/" without one. */
static struct str request_path(const struct redirect_def *d, const struct http_msg *req)
{
    struct str path;

    if (!req || !target_pathq(req->target, &path))
        return STR("/");
    if (d->drop_query)
        path.len = str_chr(path, '?');
    return path;
}

static int put_slash(const struct redirect_def *d, struct buf *b)
{
    if (!d->append_slash || !buf_len(b) || buf_data(b)[buf_len(b) - 1] == '/')
        return 0;
    return buf_put_char(b, '/');
}

/* The request's query string, joined to the one that the location may have. */
static int put_query(const struct http_msg *req, struct buf *b)
{
    size_t mark = str_chr(buf_str(b), '?');
    struct str query;
    int status = 0;

    if (!req)
        return 0;
    query = str_from(req->target, str_chr(req->target, '?') + 1);
    if (!query.len)
        return 0;
    if (mark == buf_len(b))
        status = buf_put_char(b, '?');
    else if (mark + 1 < buf_len(b))
        status = buf_put_char(b, '&');
    return status < 0 ? status : buf_put(b, query);
}

static int put_location(const struct redirect_def *d, struct rules_ctx *ctx, struct buf *b)
{
    struct str host = STR("");
    int status = 0;

    rules_fmt_eval(d->to, ctx, b);
    if (d->type == REDIRECT_LOCATION)
        return d->keep_query && buf_len(b) ? put_query(ctx->req, b) : 0;
    if (d->type == REDIRECT_SCHEME) {
        status = buf_put(b, STR("://"));
        if (status == 0 && ctx->req && message_host(ctx->req, &host))
            status = buf_put(b, host);
    }
    if (status == 0)
        status = buf_put(b, request_path(d, ctx->req));
    return status < 0 ? status : put_slash(d, b);
}

static bool is_safe(struct str value)
{
    for (size_t i = 0; i < value.len; i++)
        if (value.ptr[i] == '\r' || value.ptr[i] == '\n' || value.ptr[i] == '\0')
            return false;
    return true;
}

enum rules_verdict redirect_run(const struct redirect_def *d, struct run *run)
{
    struct rules_reply *reply = &run->outcome->reply;
    struct arena *arena = run->ctx->arena;
    char text[LOCATION_MAX];
    struct buf b = {text, sizeof text, 0, 0};
    struct str location, cookie;

    if (put_location(d, run->ctx, &b) < 0 || !buf_room(&b))
        return RULES_ERROR;
    if (d->ignore_empty && d->type == REDIRECT_LOCATION && !buf_len(&b))
        return RULES_CONTINUE;
    location = arena_str(arena, buf_str(&b));
    if (!location.ptr || !is_safe(location))
        return RULES_ERROR;
    memset(reply, 0, sizeof *reply);
    reply->status = d->code;
    reply->redirect = true;
    if (!reply_add_field(reply, arena, STR("Location"), location))
        return RULES_ERROR;
    /* Those that clients must not keep. */
    if ((d->code == 302 || d->code == 303 || d->code == 307) &&
        !reply_add_field(reply, arena, STR("Cache-Control"), STR("no-cache")))
        return RULES_ERROR;
    if (d->cookie) {
        cookie = rules_fmt_str(d->cookie, run->ctx);
        if (!cookie.ptr || !is_safe(cookie) ||
            !reply_add_field(reply, arena, STR("Set-Cookie"), cookie))
            return RULES_ERROR;
    }
    return RULES_REPLY;
}

const struct redirect_def *redirect_specialize(const struct redirect_def *d, bool listener_tls,
                                               struct arena *arena)
{
    struct redirect_def *copy = arena_alloc(arena, sizeof *copy);

    if (!copy)
        return NULL;
    *copy = *d;
    copy->to = rules_fmt_specialize(d->to, listener_tls, arena);
    if (d->cookie)
        copy->cookie = rules_fmt_specialize(d->cookie, listener_tls, arena);
    return copy->to && (!d->cookie || copy->cookie) ? copy : NULL;
}
