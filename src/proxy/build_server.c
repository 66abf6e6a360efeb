/*
 * Builds servers and their TLS contexts.
 */
#include "proxy/build.h"

#include "io/proxy_header.h"
#include "proxy/check.h"

enum tls_version build_tls_version(int number)
{
    switch (number) {
    case 30:
        return TLS_VERSION_SSL3;
    case 10:
        return TLS_VERSION_10;
    case 11:
        return TLS_VERSION_11;
    case 12:
        return TLS_VERSION_12;
    case 13:
        return TLS_VERSION_13;
    default:
        return TLS_VERSION_ANY;
    }
}

/* proxy-v2-options: a comma-separated list. An option that asks for a value gets a non-NULL empty slice. */
static int server_pp_options(struct build *b, struct server *s)
{
    struct str rest = str_of(s->cfg->proxy_v2_options), item;
    struct io_proxy_tlvs *t = arena_zalloc(&b->app->arena, 1, sizeof(*t));
    struct str wanted = str_make("", 0);

    if (!t)
        return SP_ENOMEM;
    s->pp_tlvs = t;
    t->with_tls = s->cfg->send_proxy_v2_ssl || s->cfg->send_proxy_v2_ssl_cn;
    t->with_tls_cn = s->cfg->send_proxy_v2_ssl_cn;
    while (http_list_next(&rest, &item)) {
        if (str_eq(item, STR("ssl")))
            t->with_tls = true;
        else if (str_eq(item, STR("cert-cn")))
            t->with_tls = t->with_tls_cn = true;
        else if (str_eq(item, STR("ssl-cipher")))
            t->with_tls = true, t->tls_cipher = wanted;
        else if (str_eq(item, STR("cert-sig")))
            t->with_tls = true, t->tls_sig_alg = wanted;
        else if (str_eq(item, STR("cert-key")))
            t->with_tls = true, t->tls_key_alg = wanted;
        else if (str_eq(item, STR("crc32c")))
            t->with_crc32c = true;
        else if (str_eq(item, STR("unique-id")))
            t->unique_id = wanted;
        else if (str_eq(item, STR("authority")))
            t->authority = wanted;
        else
            diag_error(b->diag, s->cfg->loc,
                       "'%.*s': unknown proxy-v2 option; expected ssl, cert-cn, ssl-cipher, cert-sig, cert-key, crc32c, "
                       "unique-id or authority",
                       STR_FMT(item));
    }
    return 0;
}

static void server_address(struct server *s)
{
    const struct addr_spec *spec = &s->cfg->address;

    s->address = spec->addr;
    if (spec->port_is_offset || (!spec->port_given && spec->addr.u.sa.sa_family != AF_UNIX)) {
        s->uses_client_port = true;
        s->port_offset = spec->port_is_offset ? spec->port_offset : 0;
    } else if (spec->port_given) {
        addr_set_port(&s->address, spec->port_low);
    }
    if (s->cfg->source)
        s->source = s->cfg->source_address.addr;
    else if (s->backend->cfg->source)
        s->source = s->backend->cfg->source_address.addr;
}

static int build_server(struct build *b, struct proxy *p, const struct cfg_server *cfg, int position)
{
    struct app *app = b->app;
    struct server *s = arena_zalloc(&app->arena, 1, sizeof(*s));

    if (!s)
        return SP_ENOMEM;
    s->cfg = cfg;
    s->backend = p;
    s->name = str_of(cfg->name);
    s->index = app->server_count;
    s->position = position;
    s->id = cfg->id ? cfg->id : position + 1;
    s->cookie = str_of(cfg->cookie);
    s->pp_v1 = cfg->send_proxy;
    s->pp_v2 = cfg->send_proxy_v2 || cfg->send_proxy_v2_ssl || cfg->send_proxy_v2_ssl_cn;
    list_init(&s->queue);
    atomic_store(&s->state, cfg->disabled ? SERVER_MAINT : SERVER_UP);
    atomic_store(&s->weight, cfg->weight);
    atomic_store(&s->last_change_us, app->start_us);
    server_address(s);
    app->servers[app->server_count++] = s;
    p->servers[position] = s;
    p->server_count = position + 1;
    return s->pp_v2 ? server_pp_options(b, s) : 0;
}

int build_servers(struct build *b, struct proxy *p)
{
    struct app *app = b->app;
    size_t total = 0;
    int position = 0;

    if (!app->servers) {
        for (const struct cfg_proxy *cfg = app->model->proxies; cfg; cfg = cfg->next)
            total += (size_t)cfg->server_count;
        app->servers = arena_zalloc(&app->arena, total + 1, sizeof(*app->servers));
        if (!app->servers)
            return SP_ENOMEM;
    }
    p->servers = arena_zalloc(&app->arena, (size_t)p->cfg->server_count + 1, sizeof(*p->servers));
    if (!p->servers)
        return SP_ENOMEM;
    for (const struct cfg_server *cfg = p->cfg->servers; cfg; cfg = cfg->next)
        if (build_server(b, p, cfg, position++) != 0)
            return SP_ENOMEM;
    return 0;
}

static void server_tls(struct build *b, struct server *s)
{
    const struct cfg_global *g = &b->app->model->global;
    const struct cfg_ssl *own = &s->cfg->ssl; /* ssl-default-server-… is merged in already */
    struct tls_client_params p = {
        .loc = s->cfg->loc,
        .ciphers = own->ciphers,
        .ciphersuites = own->ciphersuites,
        .curves = own->curves,
        .sigalgs = own->sigalgs,
        .alpn = own->alpn,
        .min_version = build_tls_version(own->min_version),
        .max_version = build_tls_version(own->max_version),
        .no_sslv3 = own->no_sslv3,
        .no_tlsv10 = own->no_tlsv10,
        .no_tlsv11 = own->no_tlsv11,
        .no_tlsv12 = own->no_tlsv12,
        .no_tlsv13 = own->no_tlsv13,
        .no_tickets = own->no_tickets,
        .no_reuse = own->no_ssl_reuse,
        .verify = own->verify == CFG_VERIFY_NONE ? TLS_VERIFY_NONE : TLS_VERIFY_REQUIRED,
        .verify_host = own->verify_host,
        .ca_file = own->ca_file,
        .crl_file = own->crl_file,
        .crt = own->crt_count ? own->crts[0].path : NULL,
        .crt_base = g->crt_base,
        .ca_base = g->ca_base,
    };

    if (p.verify == TLS_VERIFY_REQUIRED && !p.ca_file) {
        diag_error(b->diag, s->cfg->loc,
                   "server '%s': verify is enabled by default but no CA file is given; expected 'ca-file FILE', or "
                   "'verify none' if the server is to be trusted unseen",
                   s->cfg->name);
        return;
    }
    s->tls = tls_client_ctx_new(b->app->tls, &p, b->diag);
}

static void server_sni(struct build *b, struct proxy *p, struct server *s)
{
    struct rules_compiler c = build_compiler(b, p, s->cfg->loc);
    char *word = (char *)(uintptr_t)s->cfg->ssl.sni;
    int used;

    s->sni = rules_expr_compile(&c, 1, &word, &used);
    s->sni_varies = strncmp(word, "str(", 4) != 0;
}

static void server_track(struct build *b, struct proxy *p, struct server *s)
{
    const char *slash = strchr(s->cfg->track, '/');
    struct rules_compiler c = build_compiler(b, p, s->cfg->loc);
    char *backend = slash ? arena_printf(&b->app->arena, "%.*s", (int)(slash - s->cfg->track), s->cfg->track) : NULL;

    s->track = c.find_server(c.resolver, backend, slash ? slash + 1 : s->cfg->track);
    if (s->track == s) {
        diag_error(b->diag, s->cfg->loc, "'%s': a server cannot track itself", s->cfg->track);
        s->track = NULL;
    }
}

int build_servers_finish(struct build *b, struct proxy *p)
{
    for (int i = 0; i < p->server_count; i++) {
        struct server *s = p->servers[i];

        if (s->cfg->ssl.enabled || (s->cfg->check && (s->cfg->check_ssl || checks_use_tls(p->cfg))))
            server_tls(b, s);
        s->tls_for_traffic = s->cfg->ssl.enabled;
        if (s->cfg->ssl.sni)
            server_sni(b, p, s);
        if (s->cfg->track)
            server_track(b, p, s);
    }
    return 0;
}
