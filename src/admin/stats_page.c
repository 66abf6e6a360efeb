#include "admin/stats_page.h"

#include "admin/stats_html.h"
#include "base/clock.h"

#define PAGE_ARENA_BYTES ((size_t)64 << 20)
#define CREDENTIALS_MAX 1024

/* --- who may see it --------------------------------------------------------------- */

/*
 * Compares "user:password" with what was given in a time that depends on the expected text's length alone. The wrong
 * length is a difference like any other.
 */
static bool is_user(const struct cfg_stats_user *user, const char *given, size_t given_len)
{
    size_t name_len = strlen(user->user), len = name_len + 1 + strlen(user->password);
    unsigned char difference = len != given_len;

    for (size_t i = 0; i < len; i++) {
        char expected = i < name_len ? user->user[i] : i == name_len ? ':' : user->password[i - name_len - 1];

        /* The buffer is larger than any text, and zeroed behind it. */
        difference |= (unsigned char)(expected ^ given[i < CREDENTIALS_MAX ? i : CREDENTIALS_MAX - 1]);
    }
    return difference == 0 && given_len < CREDENTIALS_MAX;
}

/* Authorization: Basic, RFC 7617. */
static bool is_authorized(const struct cfg_stats *cfg, const struct http_msg *req)
{
    const struct http_field *f = http_msg_find(req, HTTP_FIELD_AUTHORIZATION);
    char given[CREDENTIALS_MAX] = "";
    int len = 0;
    bool ok = false;

    if (!cfg->users)
        return true;
    if (f && str_istarts(f->value, STR("Basic ")))
        len = hash_base64_decode(str_trim(str_from(f->value, 6)), given, sizeof given - 1);
    /* All users are compared, so that time does not tell which of them was met. */
    for (const struct cfg_stats_user *u = cfg->users; u; u = u->next)
        ok |= is_user(u, given, len > 0 ? (size_t)len : 0);
    return ok;
}

static int refuse(const struct cfg_stats *cfg, struct arena *arena, struct rules_reply *reply)
{
    const char *realm = cfg->realm ? cfg->realm : "Sallyport Statistics";
    struct http_field *f = arena_zalloc(arena, 2, sizeof *f);
    char *challenge = arena_alloc(arena, 2 * strlen(realm) + 32), *at = challenge;

    if (!f || !challenge)
        return SP_ENOMEM;
    memcpy(at, "Basic realm=\"", 13);
    at += 13;
    for (; *realm; realm++) {
        if (*realm == '"' || *realm == '\\')
            *at++ = '\\';
        *at++ = *realm;
    }
    *at++ = '"';
    f[0] = (struct http_field){
        .name = STR("www-authenticate"),
        .value = str_make(challenge, (size_t)(at - challenge)),
        .id = HTTP_FIELD_WWW_AUTHENTICATE,
    };
    f[1] = (struct http_field){
        .name = STR("cache-control"),
        .value = STR("no-cache"),
        .id = HTTP_FIELD_CACHE_CONTROL,
    };
    reply->status = 401;
    reply->content_type = STR("text/html");
    reply->body = STR("<html><body><h1>401 Unauthorized</h1>\n"
                      "You need a valid user and password to access this content.\n</body></html>\n");
    reply->fields = f;
    reply->field_count = 2;
    return 0;
}

/* --- what was asked for ------------------------------------------------------------ */

/* What follows the page's URI: ";csv;norefresh" and the like. */
static struct str options_of(const struct http_msg *req, struct str uri)
{
    struct http_target parts;
    struct str target = req->target;

    if (!str_starts(target, uri)) {
        http_target_split(target, &parts);
        if (parts.path.len)
            target = str_make(parts.path.ptr, target.len - (size_t)(parts.path.ptr - target.ptr));
    }
    return str_from(target, uri.len);
}

static bool has_option(struct str options, const char *name)
{
    while (options.len) {
        size_t start = str_chr(options, ';') + 1, end;
        struct str option = str_from(options, start);

        end = str_chr(option, ';');
        if (str_eq(str_make(option.ptr, end), str_of(name)))
            return true;
        options = str_from(option, end);
    }
    return false;
}

static void put_csv(struct text *out, const struct app *app, const struct stats_view *view)
{
    bool legends = view->cfg->show_legends;
    struct stats_row row;

    stats_put_csv_names(out);
    for (int i = 0; i < app->proxy_count; i++) {
        const struct proxy *p = app->proxies[i];

        if (p->cfg->is_frontend) {
            stats_frontend(app, p, &row);
            stats_put_csv(out, &row);
        }
        for (int k = 0; k < app->bind_count && p->cfg->is_frontend && p->cfg->socket_stats; k++) {
            if (app->binds[k]->frontend != p)
                continue;
            stats_listener(app, app->binds[k], legends, &row);
            stats_put_csv(out, &row);
        }
        for (int k = 0; k < p->server_count; k++) {
            int state = atomic_load_explicit(&p->servers[k]->state, memory_order_relaxed);

            if (view->hide_down && (state == SERVER_DOWN || state == SERVER_MAINT))
                continue;
            stats_server(app, p->servers[k], legends, view->now_us, &row);
            stats_put_csv(out, &row);
        }
        if (p->cfg->is_backend) {
            stats_backend(app, p, legends, &row);
            stats_put_csv(out, &row);
        }
    }
}

static int put_fields(const struct stats_view *view, struct arena *arena, struct rules_reply *reply)
{
    struct http_field *f = arena_zalloc(arena, 2, sizeof *f);

    if (!f)
        return SP_ENOMEM;
    f[0] = (struct http_field){
        .name = STR("cache-control"),
        .value = STR("no-cache"),
        .id = HTTP_FIELD_CACHE_CONTROL,
    };
    reply->fields = f;
    reply->field_count = 1;
    if (view->refreshing) {
        const char *seconds = arena_printf(arena, "%lld", (long long)view->cfg->refresh_s);

        if (!seconds)
            return SP_ENOMEM;
        f[1] = (struct http_field){.name = STR("refresh"), .value = str_of(seconds)};
        reply->field_count = 2;
    }
    return 0;
}

static int answer(struct app *app, const struct cfg_stats *cfg, const struct http_msg *req, struct arena *arena,
                  struct rules_reply *reply)
{
    struct str uri = str_of(cfg->uri ? cfg->uri : "/haproxy?stats");
    struct str options = options_of(req, uri);
    bool csv = has_option(options, "csv");
    struct stats_view view = {
        .cfg = cfg,
        .base_uri = uri,
        .refreshing = cfg->refresh_s > 0 && !csv && !has_option(options, "norefresh"),
        .hide_down = has_option(options, "up"),
        .now_us = clock_now_us(),
    };
    struct text out = {0};
    int rc;

    if (!is_authorized(cfg, req))
        return refuse(cfg, arena, reply);
    rc = put_fields(&view, arena, reply);
    if (rc != 0)
        return rc;
    if (csv)
        put_csv(&out, app, &view);
    else
        stats_put_html(&out, app, &view);
    reply->status = 200;
    reply->content_type = csv ? STR("text/plain") : STR("text/html; charset=utf-8");
    return text_finish(&out, arena, &reply->body);
}

int admin_stats_reply(struct app *app, struct proxy *px, const struct http_msg *req, struct arena *arena,
                      struct rules_reply *reply)
{
    size_t limit = arena->limit_bytes, used = arena->used_bytes;
    int rc;

    /* A page of a thousand frontends does not fit into what one request's rules may take. */
    if (limit && limit < PAGE_ARENA_BYTES)
        arena->limit_bytes = PAGE_ARENA_BYTES;
    rc = answer(app, &px->cfg->stats, req, arena, reply);
    /* The page is not taken from the request's own share. */
    if (limit)
        arena->limit_bytes = limit + (arena->used_bytes - used);
    return rc;
}
