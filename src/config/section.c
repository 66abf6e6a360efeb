#include "config/parser.h"

#include <stdio.h>

/* --- what HAProxy's own defaults are --- */

void cfg_ssl_init(struct cfg_ssl *ssl)
{
    *ssl = (struct cfg_ssl){.verify = CFG_VERIFY_UNSET};
}

void cfg_bind_init(struct cfg_bind *b)
{
    *b = (struct cfg_bind){
        .backlog = CFG_UNSET,
        .maxconn = CFG_UNSET,
        .unix_mode = CFG_UNSET,
        .unix_uid = CFG_UNSET,
        .unix_gid = CFG_UNSET,
        .tcp_user_timeout_us = CFG_UNSET,
    };
    cfg_ssl_init(&b->ssl);
}

void cfg_server_init(struct cfg_server *s)
{
    *s = (struct cfg_server){
        .inter_us = CFG_UNSET,
        .fastinter_us = CFG_UNSET,
        .downinter_us = CFG_UNSET,
        .rise = 2,
        .fall = 3,
        .weight = 1,
        .error_limit = 10,
        .pool_max_conn = CFG_UNSET,
        .pool_purge_delay_us = 5000000,
        .max_reuse = CFG_UNSET,
        .tcp_user_timeout_us = CFG_UNSET,
    };
    cfg_ssl_init(&s->ssl);
}

static void proxy_init(struct cfg_proxy *px)
{
    *px = (struct cfg_proxy){
        .timeout_client_us = CFG_UNSET,
        .timeout_server_us = CFG_UNSET,
        .timeout_connect_us = CFG_UNSET,
        .timeout_queue_us = CFG_UNSET,
        .timeout_check_us = CFG_UNSET,
        .timeout_http_request_us = CFG_UNSET,
        .timeout_http_keep_alive_us = CFG_UNSET,
        .timeout_tunnel_us = CFG_UNSET,
        .timeout_client_fin_us = CFG_UNSET,
        .timeout_server_fin_us = CFG_UNSET,
        .timeout_tarpit_us = CFG_UNSET,
        .timeout_client_hs_us = CFG_UNSET,
        .tcp_request_inspect_delay_us = CFG_UNSET,
        .tcp_response_inspect_delay_us = CFG_UNSET,
        .mode_tcp = true,
        .maxconn = CFG_UNSET,
        .backlog = CFG_UNSET,
        .retries = 3,
        .balance = {.random_draws = 2},
        .conn_mode = CFG_CONN_KEEP_ALIVE,
        .reuse = CFG_REUSE_SAFE,
        .forwardfor = {.header = "X-Forwarded-For"},
        .originalto = {.header = "X-Original-To"},
        .stats = {.uri = "/haproxy?stats"},
        .check_type = CFG_CHECK_TCP,
        .max_keep_alive_queue = CFG_UNSET,
        .kind = "defaults",
        .name = "",
    };
}

/* The lists of a scope end where they begin. */
static void scope_reset_ends(struct cfg_scope *s)
{
    s->lines_end = &s->proxy->lines;
    s->binds_end = &s->proxy->binds;
    s->servers_end = &s->proxy->servers;
    s->logs_end = &s->proxy->logs;
    s->errorfiles_end = &s->proxy->errorfiles;
    s->errorfiles_refs_end = &s->proxy->errorfiles_refs;
    s->stats_users_end = &s->proxy->stats.users;
}

void cfg_pristine_init(struct cfg_parser *p)
{
    struct cfg_proxy *px = cfg_new(p, sizeof(*px));

    if (!px)
        return;
    proxy_init(px);
    p->pristine = (struct cfg_scope){.proxy = px, .is_defaults = true, .anonymous = true};
    cfg_server_init(&p->pristine.default_server);
    scope_reset_ends(&p->pristine);
}

/* --- inheritance --- */

struct cfg_line *cfg_line_append(struct cfg_parser *p, enum cfg_line_kind kind, int argc,
                                 char **argv)
{
    struct cfg_line *line = cfg_new(p, sizeof(*line));

    if (!line)
        return NULL;
    *line = (struct cfg_line){.kind = kind, .loc = p->loc, .argc = argc, .argv = argv};
    *p->scope->lines_end = line;
    p->scope->lines_end = &line->next;
    return line;
}

static bool is_check(enum cfg_line_kind kind)
{
    return kind == CFG_LINE_HTTP_CHECK || kind == CFG_LINE_TCP_CHECK;
}

/* Copies of list elements, so that what the proxy adds does not show in the defaults section. */
#define COPY_LIST(type, first, end)                                     \
    do {                                                                \
        for (const type *from_ = (first); from_; from_ = from_->next) { \
            type *copy_ = cfg_new(p, sizeof(*copy_));                   \
            if (!copy_)                                                 \
                return;                                                 \
            *copy_ = *from_;                                            \
            copy_->next = NULL;                                         \
            *(end) = copy_;                                             \
            (end) = &copy_->next;                                       \
        }                                                               \
    } while (0)

static void copy_lists(struct cfg_parser *p, struct cfg_scope *to, const struct cfg_proxy *from)
{
    COPY_LIST(struct cfg_log, from->logs, to->logs_end);
    COPY_LIST(struct cfg_errorfile, from->errorfiles, to->errorfiles_end);
    COPY_LIST(struct cfg_errorfiles_ref, from->errorfiles_refs, to->errorfiles_refs_end);
    COPY_LIST(struct cfg_stats_user, from->stats.users, to->stats_users_end);
    for (const struct cfg_line *line = from->lines; line; line = line->next) {
        struct cfg_line *copy;

        if (is_check(line->kind) && !to->proxy->is_backend && !to->is_defaults)
            continue;
        copy = cfg_new(p, sizeof(*copy));
        if (!copy)
            return;
        *copy = *line;
        copy->next = NULL;
        copy->from_defaults = true;
        *to->lines_end = copy;
        to->lines_end = &copy->next;
    }
}

static void inherit(struct cfg_parser *p, struct cfg_scope *to, const struct cfg_scope *from)
{
    struct cfg_proxy *px = to->proxy;
    struct cfg_proxy own = *px;

    *px = *from->proxy;
    px->next = NULL;
    px->loc = own.loc;
    px->kind = own.kind;
    px->name = own.name;
    px->is_frontend = own.is_frontend;
    px->is_backend = own.is_backend;
    px->id = 0;
    px->description = NULL;
    px->binds = NULL;
    px->servers = NULL;
    px->server_count = 0;
    px->lines = NULL;
    px->logs = NULL;
    px->errorfiles = NULL;
    px->errorfiles_refs = NULL;
    px->stats.users = NULL;
    if (!px->is_frontend && !to->is_defaults) {
        px->default_backend = NULL;
        px->monitor_uri = NULL;
    }
    to->default_server = from->default_server;
    scope_reset_ends(to);
    copy_lists(p, to, from->proxy);
}

/* Which rules a defaults section holds, as bits. */
enum { RULES_ANY = 1, RULES_FRONT = 2, RULES_BACK = 4 };

static unsigned rules_of(const struct cfg_proxy *px)
{
    unsigned rules = 0;

    for (const struct cfg_line *line = px->lines; line; line = line->next) {
        switch (line->kind) {
        case CFG_LINE_TCP_REQUEST_CONNECTION:
        case CFG_LINE_TCP_REQUEST_SESSION:
            rules |= RULES_ANY | RULES_FRONT;
            break;
        case CFG_LINE_TCP_RESPONSE_CONTENT:
            rules |= RULES_ANY | RULES_BACK;
            break;
        case CFG_LINE_TCP_REQUEST_CONTENT:
        case CFG_LINE_HTTP_REQUEST:
        case CFG_LINE_HTTP_RESPONSE:
        case CFG_LINE_HTTP_AFTER_RESPONSE:
            rules |= RULES_ANY;
            break;
        default:
            break;
        }
    }
    return rules;
}

/* HAProxy's limits on who may inherit rules: a set is written for one side, and once. */
static void check_rules(struct cfg_parser *p, struct cfg_scope *to, struct cfg_scope *from)
{
    struct cfg_loc at = from->proxy->loc;
    unsigned rules = rules_of(from->proxy), side = p->section;

    if (!rules)
        return;
    if (to->is_defaults)
        cfg_fail(p,
                 "a defaults section cannot inherit from one that defines rules (the one at %s:%d)",
                 at.file, at.line);
    else if (side == CFG_SEC_LISTEN)
        cfg_fail(p,
                 "a listen section cannot inherit from a defaults section that defines rules (the "
                 "one at %s:%d)",
                 at.file, at.line);
    else if (from->used_by && from->used_by != side)
        cfg_fail(p,
                 "frontends and backends cannot inherit from the same defaults section when it "
                 "defines rules (the one at %s:%d)",
                 at.file, at.line);
    else if (side == CFG_SEC_BACKEND && rules & RULES_FRONT)
        cfg_fail(p,
                 "a backend cannot inherit 'tcp-request connection' or 'tcp-request session' rules "
                 "(from the defaults section at %s:%d)",
                 at.file, at.line);
    else if (side == CFG_SEC_FRONTEND && rules & RULES_BACK)
        cfg_fail(
            p,
            "a frontend cannot inherit 'tcp-response content' rules (from the defaults section "
            "at %s:%d)",
            at.file, at.line);
    from->used_by = side;
}

/* --- section lines --- */

static bool valid_name(const char *name)
{
    for (; *name; name++) {
        char c = *name;

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '-' || c == '_' || c == '.' || c == ':'))
            return false;
    }
    return true;
}

/* The defaults section that a "from NAME" names, or NULL after the error. */
static struct cfg_scope *find_defaults(struct cfg_parser *p, const char *name)
{
    struct cfg_scope *found = map_get(&p->defaults, str_of(name));
    const char *names[256];
    char hint[120];
    size_t n = 0;

    if (found) {
        found->used_by_name = true;
        return found;
    }
    for (struct cfg_scope *s = p->scopes; s && n < 256; s = s->next) {
        if (s->is_defaults && !s->anonymous)
            names[n++] = s->proxy->name;
    }
    cfg_fail(p,
             "'from': unknown defaults section '%s'; expected the name of one that was defined "
             "above%s",
             name, diag_suggest(hint, sizeof(hint), name, names, n));
    return NULL;
}

/* The section whose values a new one begins with. NULL: none of the file's. */
static struct cfg_scope *choose_defaults(struct cfg_parser *p, const char *from, bool is_defaults)
{
    struct cfg_scope *last = p->last_defaults;

    if (from)
        return find_defaults(p, from);
    if (is_defaults || !last)
        return NULL;
    last->used_silently = true;
    if (last->used_by_name && !last->anonymous)
        cfg_warn(p,
                 "defaults section '%s' (at %s:%d) is used by its name elsewhere and, being the "
                 "last one, silently here; add 'from %s', or another defaults section below it",
                 last->proxy->name, last->proxy->loc.file, last->proxy->loc.line,
                 last->proxy->name);
    return last;
}

static void register_proxy(struct cfg_parser *p, struct cfg_proxy *px)
{
    int status = map_put(&p->proxies, str_of(px->name), px);

    if (status == SP_EEXIST) {
        const struct cfg_proxy *other = map_get(&p->proxies, str_of(px->name));

        cfg_fail(p, "%s '%s' has the same name as %s '%s' at %s:%d; expected another name",
                 px->kind, px->name, other->kind, other->name, other->loc.file, other->loc.line);
    } else if (status != 0) {
        p->no_memory = true;
    }
    *p->proxies_end = px;
    p->proxies_end = &px->next;
    p->model->proxy_count++;
}

static void register_defaults(struct cfg_parser *p, struct cfg_scope *scope)
{
    struct str name = str_of(scope->proxy->name);
    struct cfg_scope *other = scope->anonymous ? NULL : map_get(&p->defaults, name);

    p->last_defaults = scope;
    if (other && other->used_by_name)
        cfg_fail(
            p,
            "defaults section '%s' has the same name as the one at %s:%d, which is used by its "
            "name; expected another name",
            name.ptr, other->proxy->loc.file, other->proxy->loc.line);
    else if (other)
        cfg_warn(p,
                 "defaults section '%s' has the same name as the one at %s:%d; 'from %s' means the "
                 "first one",
                 name.ptr, other->proxy->loc.file, other->proxy->loc.line, name.ptr);
    else if (!scope->anonymous && map_put(&p->defaults, name, scope) != 0)
        p->no_memory = true;
}

/* "[NAME] [from DEFAULTS]"; false after the error. */
static bool parse_names(struct cfg_parser *p, const struct cfg_kw *kw, int argc, char **argv,
                        const char **name, const char **from)
{
    bool is_defaults = p->section == CFG_SEC_DEFAULTS;
    int at = 0;

    *name = "";
    *from = NULL;
    if (argc > 0 && !(is_defaults && argc == 2 && strcmp(argv[0], "from") == 0))
        *name = argv[at++];
    if (argc > at + 1 && strcmp(argv[at], "from") == 0) {
        *from = argv[at + 1];
        at += 2;
    }
    if (argc > at && (p->section & CFG_FRONT) && strchr(argv[at], ':'))
        cfg_kw_fail(p, kw, "unexpected argument '%s'; listening addresses go to a 'bind' line",
                    argv[at]);
    else if (argc > at)
        cfg_kw_fail(p, kw, "unexpected argument '%s'; expected '%s %s'", argv[at], kw->name,
                    kw->args);
    if (**name == '\0' && !is_defaults) {
        cfg_kw_fail(p, kw, "missing name; expected '%s %s'", kw->name, kw->args);
        return false;
    }
    if (!is_defaults && !valid_name(*name))
        cfg_kw_fail(p, kw, "'%s' is not a name; expected letters, digits, '-', '_', '.' and ':'",
                    *name);
    return true;
}

static void start_proxy(struct cfg_parser *p, const struct cfg_kw *kw, int argc, char **argv)
{
    bool is_defaults = p->section == CFG_SEC_DEFAULTS;
    struct cfg_scope *scope = cfg_new(p, sizeof(*scope)), *from;
    struct cfg_proxy *px = cfg_new(p, sizeof(*px));
    const char *name, *from_name;

    if (!scope || !px)
        return;
    if (!parse_names(p, kw, argc, argv, &name, &from_name))
        p->skip = true;
    px->loc = p->loc;
    px->kind = kw->name;
    px->name = name;
    px->is_frontend = p->section & CFG_FRONT;
    px->is_backend = p->section & CFG_BACK;
    scope->proxy = px;
    scope->is_defaults = is_defaults;
    scope->anonymous = is_defaults && *name == '\0';
    from = choose_defaults(p, from_name, is_defaults);
    if (from)
        check_rules(p, scope, from);
    inherit(p, scope, from ? from : &p->pristine);
    *p->scopes_end = scope;
    p->scopes_end = &scope->next;
    p->scope = scope;
    p->section_name = *name ? name : kw->name;
    if (is_defaults)
        register_defaults(p, scope);
    else if (!p->skip)
        register_proxy(p, px);
}

static void start_http_errors(struct cfg_parser *p, const struct cfg_kw *kw, int argc, char **argv)
{
    struct cfg_errors *errors = cfg_new(p, sizeof(*errors));
    const struct cfg_errors *other;

    if (!errors)
        return;
    if (argc != 1) {
        cfg_kw_fail(p, kw, "%s; expected 'http-errors <name>'",
                    argc ? "too many arguments" : "missing name");
        p->skip = argc == 0;
    }
    errors->name = argc ? argv[0] : "";
    errors->loc = p->loc;
    p->section_name = errors->name;
    p->errors = errors;
    p->error_files_end = &errors->files;
    other = map_get(&p->error_sections, str_of(errors->name));
    if (other)
        cfg_kw_fail(p, kw, "section '%s' is defined at %s:%d already; expected another name",
                    errors->name, other->loc.file, other->loc.line);
    else if (map_put(&p->error_sections, str_of(errors->name), errors) != 0)
        p->no_memory = true;
    *p->errors_end = errors;
    p->errors_end = &errors->next;
}

void cfg_section_start(struct cfg_parser *p, const struct cfg_kw *kw, int argc, char **argv)
{
    p->section = (unsigned)kw->min;
    p->section_kind = p->section_name = kw->name;
    p->skip = false;
    if (p->modifier != CFG_MODIFIER_NONE)
        cfg_kw_fail(p, kw, "'no' and 'default' cannot precede a section");
    if (kw->kind == CFG_KW_REFUSED) {
        cfg_fail(
            p, "'%s' is a HAProxy section that Sallyport does not support; its lines are not read",
            kw->name);
        p->skip = true;
    } else if (p->section == CFG_SEC_GLOBAL) {
        if (argc)
            cfg_kw_fail(p, kw, "unexpected argument '%s'; expected 'global' alone", argv[0]);
    } else if (p->section == CFG_SEC_HTTP_ERRORS) {
        start_http_errors(p, kw, argc, argv);
    } else {
        start_proxy(p, kw, argc, argv);
    }
}

#define SECTION(word, bit, arguments, text)                                                      \
    {                                                                                            \
        .name = word, .sections = CFG_SEC_TOP, .at = CFG_NOWHERE, .min = bit, .args = arguments, \
        .help = text                                                                             \
    }
#define REFUSED(word)                                                                    \
    {                                                                                    \
        .name = word, .sections = CFG_SEC_TOP, .kind = CFG_KW_REFUSED, .at = CFG_NOWHERE \
    }

const struct cfg_kw cfg_kw_sections[] = {
    SECTION("global", CFG_SEC_GLOBAL, NULL, "settings of the whole process; may be repeated"),
    SECTION("defaults", CFG_SEC_DEFAULTS, "[<name>] [from <defaults>]",
            "values that the proxies below begin with"),
    SECTION("frontend", CFG_SEC_FRONTEND, "<name> [from <defaults>]",
            "listening addresses and the choice of a backend"),
    SECTION("listen", CFG_SEC_LISTEN, "<name> [from <defaults>]",
            "a frontend and a backend in one"),
    SECTION("backend", CFG_SEC_BACKEND, "<name> [from <defaults>]",
            "servers and how requests are spread over them"),
    SECTION("http-errors", CFG_SEC_HTTP_ERRORS, "<name>", "a named set of error files"),
    REFUSED("acme"),
    REFUSED("cache"),
    REFUSED("crt-store"),
    REFUSED("dynamic-update"),
    REFUSED("fcgi-app"),
    REFUSED("healthcheck"),
    REFUSED("httpclient"),
    REFUSED("log-forward"),
    REFUSED("log-profile"),
    REFUSED("mailers"),
    REFUSED("peers"),
    REFUSED("program"),
    REFUSED("resolvers"),
    REFUSED("ring"),
    REFUSED("traces"),
    REFUSED("userlist"),
    CFG_KW_END,
};
