#include "config/parser.h"

#include <stdio.h>

/*
 * What can be said only when everything has been read: names that refer to
 * other sections, and settings that make no sense together. Warnings are
 * HAProxy's, where it has one.
 */

#define SUGGEST_MAX 512

struct check {
    struct cfg_parser *p;
    struct map servers; /* "proxy/server" to struct cfg_server */
    struct arena scratch;
};

/* ", did you mean 'x'?" among proxies of one side. */
static const char *suggest_proxy(const struct cfg_parser *p, char *out, size_t out_bytes,
                                 const char *name, bool backend)
{
    const char *names[SUGGEST_MAX];
    size_t n = 0;

    for (const struct cfg_proxy *px = p->model->proxies; px && n < SUGGEST_MAX; px = px->next) {
        if (backend ? px->is_backend : px->is_frontend)
            names[n++] = px->name;
    }
    return diag_suggest(out, out_bytes, name, names, n);
}

/* --- servers by their names --- */

/* The key of a server among all, "proxy/server". A name cannot hold a slash. */
static struct str server_key(struct check *c, const struct cfg_proxy *px, const char *name)
{
    char *key = arena_printf(&c->scratch, "%s/%s", px->name, name);

    if (!key)
        c->p->no_memory = true;
    return str_of(key);
}

static struct cfg_server *find_server(struct check *c, const struct cfg_proxy *px, const char *name)
{
    struct str key = server_key(c, px, name);

    return key.ptr ? map_get(&c->servers, key) : NULL;
}

/* Enters a server under a name, or under its id as "#id", which is no name. */
static void register_server(struct check *c, const struct cfg_proxy *px, struct cfg_server *s,
                            const char *name, const char *what)
{
    struct str key = server_key(c, px, name);
    int status = key.ptr ? map_put(&c->servers, key, s) : SP_ENOMEM;

    if (status == SP_EEXIST) {
        const struct cfg_server *other = map_get(&c->servers, key);

        cfg_report(c->p, DIAG_ERROR, s->loc,
                   "server '%s/%s' has the same %s as the one at %s:%d; expected another "
                   "%s",
                   px->name, s->name, what, other->loc.file, other->loc.line, what);
    } else if (status != 0) {
        c->p->no_memory = true;
    }
}

static void register_servers(struct check *c, const struct cfg_proxy *px)
{
    char id[24];

    for (struct cfg_server *s = px->servers; s && !c->p->no_memory; s = s->next) {
        register_server(c, px, s, s->name, "name");
        snprintf(id, sizeof(id), "#%d", s->id);
        if (s->id)
            register_server(c, px, s, id, "id");
    }
}

/* --- backends that are named --- */

static bool may_use(const struct cfg_proxy *from, const struct cfg_proxy *to)
{
    return from->mode_tcp == to->mode_tcp || (from->mode_tcp && !to->mode_tcp);
}

static void check_backend_name(struct cfg_parser *p, struct cfg_loc loc, const char *keyword,
                               const struct cfg_proxy *px, const char *name)
{
    const struct cfg_proxy *target = map_get(&p->proxies, str_of(name));
    char hint[160];

    if (!target)
        cfg_report(p, DIAG_ERROR, loc,
                   "'%s': unknown backend '%s' in %s '%s'; expected the name of a "
                   "'backend' or 'listen' section%s",
                   keyword, name, px->kind, px->name,
                   suggest_proxy(p, hint, sizeof(hint), name, true));
    else if (!target->is_backend)
        cfg_report(p, DIAG_ERROR, loc,
                   "'%s': '%s' is a frontend (at %s:%d); expected the name of a 'backend' "
                   "or 'listen' section",
                   keyword, name, target->loc.file, target->loc.line);
    else if (target == px)
        cfg_report(p, DIAG_ERROR, loc, "'%s': '%s' refers to itself", keyword, name);
    else if (!may_use(px, target))
        cfg_report(p, DIAG_ERROR, loc,
                   "'%s': %s '%s' is in mode http and backend '%s' (at %s:%d) in mode tcp; "
                   "expected the same mode",
                   keyword, px->kind, px->name, name, target->loc.file, target->loc.line);
}

/* Whether a tcp frontend may come to speak HTTP: by a rule or by the backend it chooses. */
static bool may_upgrade(const struct cfg_parser *p, const struct cfg_proxy *px)
{
    const struct cfg_proxy *target =
        px->default_backend ? map_get(&p->proxies, str_of(px->default_backend)) : NULL;

    if (target && !target->mode_tcp)
        return true;
    for (const struct cfg_line *line = px->lines; line; line = line->next) {
        if (line->kind == CFG_LINE_TCP_REQUEST_CONTENT && strcmp(line->argv[0], "switch-mode") == 0)
            return true;
        if (line->kind == CFG_LINE_USE_BACKEND) {
            target = map_get(&p->proxies, str_of(line->argv[0]));
            if (!target || !target->mode_tcp)
                return true;
        }
    }
    return false;
}

static void check_lines(struct check *c, const struct cfg_proxy *px)
{
    struct cfg_parser *p = c->p;

    for (const struct cfg_line *line = px->lines; line; line = line->next) {
        const char *word = line->argv[0];

        /* A '%' makes a name that is known only when a request comes. */
        if (line->kind == CFG_LINE_USE_BACKEND && !strchr(word, '%'))
            check_backend_name(p, line->loc, "use_backend", px, word);
        if (line->kind == CFG_LINE_USE_SERVER && !strchr(word, '%') && !find_server(c, px, word))
            cfg_report(p, DIAG_ERROR, line->loc, "'use-server': unknown server '%s' in %s '%s'",
                       word, px->kind, px->name);
    }
}

static void check_references(struct check *c, const struct cfg_proxy *px)
{
    struct cfg_parser *p = c->p;

    if (px->default_backend && px->is_frontend) {
        check_backend_name(p, px->default_backend_loc, "default_backend", px, px->default_backend);
        if (px->servers)
            cfg_report(p, DIAG_WARNING, px->default_backend_loc,
                       "'default_backend' of '%s' comes before its "
                       "servers, which will never be used",
                       px->name);
    }
    check_lines(c, px);
    for (const struct cfg_errorfiles_ref *ref = px->errorfiles_refs; ref; ref = ref->next) {
        if (!map_get(&p->error_sections, str_of(ref->section)))
            cfg_report(p, DIAG_ERROR, ref->loc,
                       "'errorfiles': unknown section '%s'; expected the name of an "
                       "'http-errors' section",
                       ref->section);
    }
}

/* --- servers --- */

/* The server that `s` tracks directly; NULL after the error. */
static const struct cfg_server *tracked(struct check *c, const struct cfg_proxy *px,
                                        const struct cfg_server *s, const struct cfg_proxy **owner,
                                        bool quiet)
{
    struct cfg_parser *p = c->p;
    const char *slash = strchr(s->track, '/'), *name = slash ? slash + 1 : s->track;
    const struct cfg_proxy *target = px;
    const struct cfg_server *found;

    if (slash)
        target = map_get(&p->proxies, str_make(s->track, (size_t)(slash - s->track)));
    found = target && target->is_backend ? find_server(c, target, name) : NULL;
    if (found)
        *owner = target;
    else if (!quiet)
        cfg_report(p, DIAG_ERROR, s->loc,
                   "server '%s/%s': 'track': unknown server '%s'; expected "
                   "[<backend>/]<server>",
                   px->name, s->name, s->track);
    return found;
}

static void check_track(struct check *c, const struct cfg_proxy *px, const struct cfg_server *s)
{
    struct cfg_parser *p = c->p;
    const struct cfg_server *at = s;
    const struct cfg_proxy *owner = px;

    if (s->check) {
        cfg_report(p, DIAG_ERROR, s->loc, "server '%s/%s': 'track' and 'check' exclude each other",
                   px->name, s->name);
        return;
    }
    /* Longer chains are loops: nobody writes so many by hand. */
    for (int hops = 0; at && at->track; hops++) {
        at = tracked(c, owner, at, &owner, hops > 0);
        if (at == s || hops > 1000) {
            cfg_report(p, DIAG_ERROR, s->loc,
                       "server '%s/%s': 'track': it tracks itself in the end", px->name, s->name);
            return;
        }
    }
    if (at && !at->check)
        cfg_report(p, DIAG_ERROR, s->loc,
                   "server '%s/%s': 'track': server '%s/%s' has no 'check' of its own", px->name,
                   s->name, owner->name, at->name);
}

static void check_server(struct check *c, const struct cfg_proxy *px, const struct cfg_server *s)
{
    struct cfg_parser *p = c->p;

    if (s->track)
        check_track(c, px, s);
    if (px->mode_tcp && s->redir)
        cfg_report(p, DIAG_ERROR, s->loc, "server '%s/%s': 'redir' needs mode http", px->name,
                   s->name);
    if (px->mode_tcp && s->cookie)
        cfg_report(p, DIAG_WARNING, s->loc, "server '%s/%s': 'cookie' is ignored in mode tcp",
                   px->name, s->name);
    if (s->minconn > s->maxconn && s->maxconn)
        cfg_report(p, DIAG_WARNING, s->loc, "server '%s/%s': 'minconn' is above 'maxconn'",
                   px->name, s->name);
    if (s->ssl.enabled && s->ssl.verify == CFG_VERIFY_REQUIRED && !s->ssl.ca_file)
        cfg_report(
            p, DIAG_ERROR, s->loc,
            "server '%s/%s': 'ssl' verifies the server's certificate, but no "
            "'ca-file' says whose signatures to accept; expected 'ca-file <file>' or 'verify none'",
            px->name, s->name);
}

/* --- ids --- */

static void check_ids(struct cfg_parser *p)
{
    struct map ids;

    map_init(&ids);
    for (struct cfg_proxy *px = p->model->proxies; px && !p->no_memory; px = px->next) {
        int status =
            px->id ? map_put(&ids, str_make((const char *)&px->id, sizeof(px->id)), px) : 0;

        if (status == SP_EEXIST) {
            const struct cfg_proxy *other =
                map_get(&ids, str_make((const char *)&px->id, sizeof(px->id)));

            cfg_report(p, DIAG_ERROR, px->loc, "%s '%s' has the same id %d as %s '%s' at %s:%d",
                       px->kind, px->name, px->id, other->kind, other->name, other->loc.file,
                       other->loc.line);
        } else if (status != 0) {
            p->no_memory = true;
        }
    }
    map_release(&ids);
}

/* --- what is missing or useless --- */

static void check_timeouts(struct cfg_parser *p, const struct cfg_proxy *px)
{
    bool client = px->is_frontend && px->timeout_client_us == CFG_UNSET;
    bool connect = px->servers && px->timeout_connect_us == CFG_UNSET;
    bool server = px->servers && px->timeout_server_us == CFG_UNSET &&
                  (!px->mode_tcp || px->timeout_tunnel_us == CFG_UNSET);

    if (client || connect || server)
        cfg_report(p, DIAG_WARNING, px->loc,
                   "missing timeouts for %s '%s': connections that are forgotten "
                   "will stay forever; set%s%s%s",
                   px->kind, px->name, client ? " 'timeout client'" : "",
                   connect ? " 'timeout connect'" : "", server ? " 'timeout server'" : "");
}

/* Whether the section itself has such a line: what comes from a defaults section may suit others only. */
static bool has_line(const struct cfg_proxy *px, enum cfg_line_kind kind)
{
    for (const struct cfg_line *line = px->lines; line; line = line->next) {
        if (line->kind == kind && !line->from_defaults)
            return true;
    }
    return false;
}

static void ignored_in_tcp(struct cfg_parser *p, const struct cfg_proxy *px, bool given,
                           const char *what)
{
    if (given)
        cfg_report(p, DIAG_WARNING, px->loc, "%s ignored in %s '%s': mode http is needed", what,
                   px->kind, px->name);
}

static void check_tcp(struct cfg_parser *p, const struct cfg_proxy *px)
{
    if (px->is_frontend && (px->log_httplog || px->log_httpslog) && !px->log_format)
        cfg_report(p, DIAG_WARNING, px->loc,
                   "'option %s' of %s '%s' needs mode http; the TCP format is used",
                   px->log_httpslog ? "httpslog" : "httplog", px->kind, px->name);
    if (px->is_frontend && may_upgrade(p, px))
        return;
    ignored_in_tcp(p, px, px->stats.enabled, "the 'stats' lines are");
    ignored_in_tcp(p, px, px->monitor_uri != NULL, "'monitor-uri' is");
    ignored_in_tcp(p, px, px->is_backend && px->cookie.name, "'cookie' is");
    ignored_in_tcp(p, px, px->forwardfor.enabled, "'option forwardfor' is");
    ignored_in_tcp(p, px, has_line(px, CFG_LINE_HTTP_REQUEST), "the 'http-request' rules are");
    ignored_in_tcp(p, px, has_line(px, CFG_LINE_HTTP_RESPONSE), "the 'http-response' rules are");
    ignored_in_tcp(p, px, has_line(px, CFG_LINE_HTTP_AFTER_RESPONSE),
                   "the 'http-after-response' rules are");
    ignored_in_tcp(p, px, has_line(px, CFG_LINE_REDIRECT), "the 'redirect' rules are");
}

/* A backend that can do nothing with a request. */
static bool is_useless(const struct cfg_proxy *px)
{
    return !px->servers && !px->dispatch && !px->transparent && !px->stats.enabled && !px->lines &&
           !px->errorfiles && !px->errorfiles_refs && !(px->is_frontend && px->default_backend);
}

static void check_proxy(struct check *c, struct cfg_proxy *px)
{
    struct cfg_parser *p = c->p;

    if (px->is_frontend && !px->binds)
        cfg_report(p, DIAG_WARNING, px->loc,
                   "%s '%s' has no 'bind' line; make it a backend if that is meant", px->kind,
                   px->name);
    if (px->is_backend && is_useless(px))
        cfg_report(p, DIAG_NOTICE, px->loc, "%s '%s' has no server", px->kind, px->name);
    if (has_line(px, CFG_LINE_HTTP_CHECK) && px->check_type != CFG_CHECK_HTTP && px->is_backend)
        cfg_report(p, DIAG_WARNING, px->loc,
                   "%s '%s' has 'http-check' lines without 'option httpchk'; they are "
                   "ignored",
                   px->kind, px->name);
    if (has_line(px, CFG_LINE_TCP_CHECK) && px->check_type != CFG_CHECK_TCP_SCRIPT &&
        px->is_backend)
        cfg_report(p, DIAG_WARNING, px->loc,
                   "%s '%s' has 'tcp-check' lines without 'option tcp-check'; they are "
                   "ignored",
                   px->kind, px->name);
    if (px->is_frontend && px->log_format && !px->logs)
        cfg_report(p, DIAG_WARNING, px->log_format_loc,
                   "'log-format' is ignored in %s '%s': it has no 'log' line", px->kind, px->name);
    check_timeouts(p, px);
    if (px->mode_tcp)
        check_tcp(p, px);
    check_references(c, px);
    for (const struct cfg_server *s = px->servers; s && !p->no_memory; s = s->next)
        check_server(c, px, s);
}

/* --- values that come from elsewhere --- */

/* What "unix-bind" says about a socket in the file system. */
static void finish_unix(struct cfg_parser *p, struct cfg_loc loc, struct addr_spec *address,
                        int *mode, int *uid, int *gid)
{
    const struct cfg_global *g = &p->model->global;
    const char *path = address->addr.u.un.sun_path, *why = "", *text;

    if (address->fd >= 0 || address->addr.u.sa.sa_family != AF_UNIX || path[0] == '\0')
        return;
    *mode = *mode == CFG_UNSET ? g->unix_bind_mode : *mode;
    *uid = *uid == CFG_UNSET ? g->unix_bind_uid : *uid;
    *gid = *gid == CFG_UNSET ? g->unix_bind_gid : *gid;
    if (!g->unix_bind_prefix)
        return;
    text = cfg_printf(p, "unix@%s%.*s", g->unix_bind_prefix,
                      (int)sizeof(address->addr.u.un.sun_path), path);
    if (text && addr_parse(text, 0, address, &why) != 0)
        cfg_report(p, DIAG_ERROR, loc, "'%s' with the prefix of 'unix-bind': %s", text + 5, why);
}

/* For limits, 0 means that there is no own one. */
static void zero_is_unset(int *limit)
{
    if (*limit == 0)
        *limit = CFG_UNSET;
}

static void finish_bind(struct cfg_parser *p, struct cfg_bind *bind)
{
    cfg_ssl_inherit(&bind->ssl, &p->model->global.ssl_bind_defaults);
    zero_is_unset(&bind->maxconn);
    zero_is_unset(&bind->backlog);
    finish_unix(p, bind->loc, &bind->address, &bind->unix_mode, &bind->unix_uid, &bind->unix_gid);
}

static void finish_server(struct cfg_parser *p, struct cfg_server *s)
{
    const struct cfg_global *g = &p->model->global;

    cfg_ssl_inherit(&s->ssl, &g->ssl_server_defaults);
    if (s->ssl.verify == CFG_VERIFY_UNSET)
        s->ssl.verify = g->ssl_server_verify;
}

static void finish_global(struct cfg_parser *p)
{
    struct cfg_global *g = &p->model->global;

    zero_is_unset(&g->maxconn);
    for (struct cfg_stats_socket *s = g->stats_sockets; s; s = s->next)
        finish_unix(p, s->loc, &s->address, &s->unix_mode, &s->unix_uid, &s->unix_gid);
}

static void finish_proxy(struct cfg_parser *p, struct cfg_proxy *px)
{
    zero_is_unset(&px->maxconn);
    zero_is_unset(&px->backlog);
    if (px->timeout_tarpit_us == CFG_UNSET)
        px->timeout_tarpit_us = px->timeout_connect_us;
    if (px->timeout_queue_us == CFG_UNSET)
        px->timeout_queue_us = px->timeout_connect_us;
    for (struct cfg_bind *bind = px->binds; bind; bind = bind->next)
        finish_bind(p, bind);
    for (struct cfg_server *s = px->servers; s; s = s->next)
        finish_server(p, s);
}

static void check_global(struct cfg_parser *p)
{
    const struct cfg_global *g = &p->model->global;
    struct cfg_loc nowhere = {0};

    if (g->maxrewrite * 2 > g->bufsize)
        cfg_report(p, DIAG_WARNING, nowhere,
                   "'tune.maxrewrite' (%d) is more than half of 'tune.bufsize' (%d)", g->maxrewrite,
                   g->bufsize);
}

void cfg_check(struct cfg_parser *p)
{
    struct check c = {.p = p};

    map_init(&c.servers);
    arena_init(&c.scratch, 65536, 0);
    finish_global(p);
    check_global(p);
    check_ids(p);
    for (struct cfg_proxy *px = p->model->proxies; px && !p->no_memory; px = px->next) {
        finish_proxy(p, px);
        register_servers(&c, px);
    }
    for (struct cfg_proxy *px = p->model->proxies; px && !p->no_memory; px = px->next)
        check_proxy(&c, px);
    map_release(&c.servers);
    arena_release(&c.scratch);
}
