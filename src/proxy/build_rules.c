/*
 * Compiles a proxy's lines: ACLs, captures, rules, use_backend, formats.
 */
#include "proxy/build.h"

#include <stdlib.h>

/* Hook of a rule line; -1 for lines that are not rules. */
static int line_hook(enum cfg_line_kind kind)
{
    switch (kind) {
    case CFG_LINE_TCP_REQUEST_CONNECTION:
        return RULES_TCP_REQUEST_CONNECTION;
    case CFG_LINE_TCP_REQUEST_SESSION:
        return RULES_TCP_REQUEST_SESSION;
    case CFG_LINE_TCP_REQUEST_CONTENT:
        return RULES_TCP_REQUEST_CONTENT;
    case CFG_LINE_TCP_RESPONSE_CONTENT:
        return RULES_TCP_RESPONSE_CONTENT;
    case CFG_LINE_HTTP_REQUEST:
        return RULES_HTTP_REQUEST;
    case CFG_LINE_HTTP_RESPONSE:
        return RULES_HTTP_RESPONSE;
    case CFG_LINE_HTTP_AFTER_RESPONSE:
        return RULES_HTTP_AFTER_RESPONSE;
    case CFG_LINE_REDIRECT:
        return RULES_REDIRECT;
    default:
        return -1;
    }
}

/* Position of "if" or "unless" among the words, or argc. */
static int condition_at(int argc, char *const *argv)
{
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "if") == 0 || strcmp(argv[i], "unless") == 0)
            return i;
    return argc;
}

static void build_capture(struct build *b, struct proxy *p, const struct cfg_line *line)
{
    char *const *argv = line->argv;
    struct rules_compiler c = build_compiler(b, p, line->loc);
    uint64_t len = 0;
    int slot;

    if (line->argc < 3 || str_to_u64(str_of(argv[line->argc - 1]), &len) != 0 || len == 0 || len > 65536 ||
        strcmp(argv[line->argc - 2], "len") != 0) {
        diag_error(b->diag, line->loc, "'capture': expected 'request|response header NAME len N' or 'cookie NAME len N'");
        return;
    }
    if (strcmp(argv[0], "cookie") == 0 && line->argc == 4) {
        p->capture_cookie = str_of(argv[1]);
        p->capture_cookie_len = (size_t)len;
        return;
    }
    bool response = strcmp(argv[0], "response") == 0;

    if (!response && strcmp(argv[0], "request") != 0) {
        diag_error(b->diag, line->loc, "'%s': expected 'request', 'response' or 'cookie' after 'capture'", argv[0]);
        return;
    }
    slot = c.add_capture(c.resolver, response, (size_t)len);
    if (slot >= 0 && line->argc == 5 && strcmp(argv[1], "header") == 0)
        (response ? p->res_captures : p->req_captures)[slot].header = str_of(argv[2]);
}

static int build_use_backend(struct build *b, struct proxy *p, const struct cfg_line *line)
{
    struct use_backend *u = &p->use_backends[p->use_backend_count];
    struct rules_compiler c = build_compiler(b, p, line->loc);
    int at = condition_at(line->argc, line->argv);

    if (at != 1) {
        diag_error(b->diag, line->loc, "'use_backend': expected one backend name, then 'if' or 'unless'");
        return 0;
    }
    if (at < line->argc) {
        u->cond = rules_cond_compile(&c, line->argc - at, line->argv + at);
        if (!u->cond)
            return 0;
    }
    u->fold[0] = u->cond ? rules_cond_fold(u->cond, false) : 1;
    u->fold[1] = u->cond ? rules_cond_fold(u->cond, true) : 1;
    if (strchr(line->argv[0], '%')) {
        u->name = rules_fmt_compile(&c, line->argv[0], false);
    } else {
        u->backend = map_get(&b->app->backends, str_of(line->argv[0]));
    }
    if (u->name || u->backend)
        p->use_backend_count++;
    return 0;
}

static int build_use_server(struct build *b, struct proxy *p, const struct cfg_line *line)
{
    struct use_server *u = &p->use_servers[p->use_server_count];
    struct rules_compiler c = build_compiler(b, p, line->loc);
    int at = condition_at(line->argc, line->argv);

    if (at != 1 || at == line->argc) {
        diag_error(b->diag, line->loc, "'use-server': expected one server name, then 'if' or 'unless'");
        return 0;
    }
    u->cond = rules_cond_compile(&c, line->argc - at, line->argv + at);
    if (strchr(line->argv[0], '%')) {
        u->name = rules_fmt_compile(&c, line->argv[0], false);
    } else {
        u->server = c.find_server(c.resolver, NULL, line->argv[0]);
    }
    if (u->cond && (u->name || u->server))
        p->use_server_count++;
    return 0;
}

static void build_monitor_fail(struct build *b, struct proxy *p, const struct cfg_line *line)
{
    struct rules_compiler c = build_compiler(b, p, line->loc);
    struct rules_cond *cond = rules_cond_compile(&c, line->argc, line->argv);

    if (cond)
        p->monitor_fails[p->monitor_fail_count++] = cond;
}

static int build_line(struct build *b, struct proxy *p, const struct cfg_line *line, struct rules_set **sets)
{
    struct rules_compiler c;
    int hook = line_hook(line->kind);

    if (hook >= 0) {
        c = build_compiler(b, p, line->loc);
        c.is_defaults = line->from_defaults;
        return rules_set_add(sets[hook], &c, (enum rules_hook)hook, line->argc, line->argv);
    }
    switch (line->kind) {
    case CFG_LINE_CAPTURE:
        build_capture(b, p, line);
        break;
    case CFG_LINE_USE_BACKEND:
        return build_use_backend(b, p, line);
    case CFG_LINE_USE_SERVER:
        return build_use_server(b, p, line);
    case CFG_LINE_MONITOR_FAIL:
        build_monitor_fail(b, p, line);
        break;
    default:
        break; /* ACLs came first; check lines belong to the checks */
    }
    return 0;
}

static int count_lines(const struct proxy *p, enum cfg_line_kind kind)
{
    int n = 0;

    for (const struct cfg_line *line = p->cfg->lines; line; line = line->next)
        n += line->kind == kind;
    return n;
}

/* --- formats ----------------------------------------------------------------------------- */

static const char *log_format_text(const struct cfg_proxy *cfg)
{
    if (cfg->log_format)
        return cfg->log_format;
    if (cfg->log_clf)
        return rules_fmt_clf;
    if (cfg->log_httpslog)
        return rules_fmt_https;
    if (cfg->log_httplog && !cfg->mode_tcp)
        return rules_fmt_http;
    if (cfg->log_tcplog || cfg->log_httplog)
        return rules_fmt_tcp;
    return rules_fmt_default;
}

static void build_formats(struct build *b, struct proxy *p)
{
    const struct cfg_proxy *cfg = p->cfg;
    struct rules_compiler c = build_compiler(b, p, cfg->log_format ? cfg->log_format_loc : cfg->loc);

    if (cfg->is_frontend && p->log_count > 0) {
        struct rules_fmt *fmt = rules_fmt_compile(&c, log_format_text(cfg), true);

        for (int tls = 0; tls < 2 && fmt; tls++)
            p->log_fmt[tls] = rules_fmt_specialize(fmt, tls, &b->app->arena);
        if (cfg->log_format_sd)
            p->log_sd_fmt = rules_fmt_compile(&c, cfg->log_format_sd, true);
        if (cfg->error_log_format)
            p->error_log_fmt = rules_fmt_compile(&c, cfg->error_log_format, true);
    }
    if (cfg->unique_id_format) {
        c.loc = cfg->unique_id_loc;
        p->unique_id = rules_fmt_compile_id(&c, cfg->unique_id_format);
        p->unique_id_header = str_of(cfg->unique_id_header);
    }
}

/* --- all of a proxy ------------------------------------------------------------------------ */

static int build_arrays(struct build *b, struct proxy *p)
{
    struct arena *arena = &b->app->arena;

    p->use_backends = arena_zalloc(arena, (size_t)count_lines(p, CFG_LINE_USE_BACKEND) + 1, sizeof(*p->use_backends));
    p->use_servers = arena_zalloc(arena, (size_t)count_lines(p, CFG_LINE_USE_SERVER) + 1, sizeof(*p->use_servers));
    p->monitor_fails = arena_zalloc(arena, (size_t)count_lines(p, CFG_LINE_MONITOR_FAIL) + 1, sizeof(*p->monitor_fails));
    return p->use_backends && p->use_servers && p->monitor_fails ? 0 : SP_ENOMEM;
}

int build_rules(struct build *b, struct proxy *p)
{
    struct rules_set *sets[RULES_HOOK_COUNT];

    if (build_arrays(b, p) != 0)
        return SP_ENOMEM;
    for (int i = 0; i < RULES_HOOK_COUNT; i++) {
        sets[i] = rules_set_new(&b->app->arena);
        if (!sets[i])
            return SP_ENOMEM;
    }
    for (const struct cfg_line *line = p->cfg->lines; line; line = line->next) {
        struct rules_compiler c;

        if (line->kind != CFG_LINE_ACL)
            continue;
        c = build_compiler(b, p, line->loc);
        rules_acls_add(&c, line->argc, line->argv);
    }
    for (const struct cfg_line *line = p->cfg->lines; line; line = line->next)
        if (build_line(b, p, line, sets) == SP_ENOMEM)
            return SP_ENOMEM;
    for (int i = 0; i < RULES_HOOK_COUNT; i++) {
        p->rules[i].set[0] = rules_set_specialize(sets[i], false, &b->app->arena);
        p->rules[i].set[1] = rules_set_specialize(sets[i], true, &b->app->arena);
        if (!p->rules[i].set[0] || !p->rules[i].set[1])
            return SP_ENOMEM;
    }
    build_formats(b, p);
    return 0;
}
