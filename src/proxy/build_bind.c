/*
 * Builds listeners and their TLS contexts.
 */
#include "proxy/build.h"

#include <stdlib.h>

static int bind_sources(struct build *b, const struct cfg_bind *cfg, struct tls_server_params *p)
{
    struct tls_cert_source *sources = arena_zalloc(&b->app->arena, (size_t)cfg->ssl.crt_count + 1, sizeof(*sources));

    if (!sources)
        return SP_ENOMEM;
    for (int i = 0; i < cfg->ssl.crt_count; i++)
        sources[i] = (struct tls_cert_source){
            .loc = cfg->loc, .path = cfg->ssl.crts[i].path, .is_crt_list = cfg->ssl.crts[i].is_list};
    p->sources = sources;
    p->source_count = (size_t)cfg->ssl.crt_count;
    return 0;
}

/* ssl-min-ver and ssl-max-ver, or one of the older force-… words. */
static void bind_versions(const struct cfg_ssl *own, struct tls_server_params *p)
{
    int force = own->force_tlsv13 ? 13 : own->force_tlsv12 ? 12 : own->force_tlsv11 ? 11 : own->force_tlsv10 ? 10
                : own->force_sslv3 ? 30 : 0;

    p->min_version = build_tls_version(force ? force : own->min_version);
    p->max_version = build_tls_version(force ? force : own->max_version);
    p->no_sslv3 = own->no_sslv3;
    p->no_tlsv10 = own->no_tlsv10;
    p->no_tlsv11 = own->no_tlsv11;
    p->no_tlsv12 = own->no_tlsv12;
    p->no_tlsv13 = own->no_tlsv13;
}

static enum tls_verify bind_verify(enum cfg_ssl_verify v)
{
    return v == CFG_VERIFY_REQUIRED ? TLS_VERIFY_REQUIRED : v == CFG_VERIFY_OPTIONAL ? TLS_VERIFY_OPTIONAL
                                                                                     : TLS_VERIFY_NONE;
}

/* What this version of the program can speak of what the line asks for. */
static const char *bind_alpn(struct build *b, const struct proxy *p, const char *asked)
{
    struct str rest = str_of(asked), item;
    char *out = NULL;

    if (!asked)
        return p->is_http ? "http/1.1" : NULL;
    while (http_list_next(&rest, &item)) {
        if (p->is_http && str_eq(item, STR("h2")))
            continue; /* not spoken: leaving it out lets clients agree on HTTP/1.1 */
        out = out ? arena_printf(&b->app->arena, "%s,%.*s", out, STR_FMT(item))
                  : arena_printf(&b->app->arena, "%.*s", STR_FMT(item));
    }
    return out;
}

static struct tls_server_ctx *bind_tls(struct build *b, struct proxy *proxy, const struct cfg_bind *cfg)
{
    const struct cfg_global *g = &b->app->model->global;
    const struct cfg_ssl *own = &cfg->ssl; /* ssl-default-bind-… is merged in already */
    struct tls_server_params p = {
        .loc = cfg->loc,
        .ciphers = own->ciphers,
        .ciphersuites = own->ciphersuites,
        .curves = own->curves,
        .sigalgs = own->sigalgs,
        .client_sigalgs = own->client_sigalgs,
        .alpn = own->no_alpn ? NULL : bind_alpn(b, proxy, own->alpn),
        .no_tickets = own->no_tickets && !own->tickets,
        .strict_sni = own->strict_sni && !own->no_strict_sni,
        .prefer_client_ciphers = own->prefer_client_ciphers,
        .allow_0rtt = own->allow_0rtt,
        .verify = bind_verify(own->verify),
        .ca_file = own->ca_file,
        .ca_verify_file = own->ca_verify_file,
        .crl_file = own->crl_file,
        .ca_ignore_err = own->ca_ignore_err,
        .crt_ignore_err = own->crt_ignore_err,
        .dh_bits = g->dh_bits > 0 ? g->dh_bits : 0,
        .dh_file = g->dh_param_file,
        .cache_entries = (size_t)(g->ssl_cache_entries > 0 ? g->ssl_cache_entries : 0),
        .session_lifetime_s = (unsigned)g->ssl_lifetime_s,
        .crt_base = g->crt_base,
        .ca_base = g->ca_base,
    };

    bind_versions(own, &p);
    if (own->crt_count == 0) {
        diag_error(b->diag, cfg->loc, "'ssl': a TLS listener needs a certificate; expected 'crt FILE' or 'crt-list FILE'");
        return NULL;
    }
    if (bind_sources(b, cfg, &p) != 0)
        return NULL;
    return tls_server_ctx_new(b->app->tls, &p, b->diag);
}

static struct bind *bind_append(struct build *b)
{
    struct app *app = b->app;
    struct bind **grown;
    struct bind *bind = arena_zalloc(&app->arena, 1, sizeof(*bind));

    if (!bind)
        return NULL;
    if ((app->bind_count & (app->bind_count + 1)) == 0) { /* full at 0, 1, 3, 7, … */
        grown = realloc(app->binds, sizeof(*grown) * 2 * (size_t)(app->bind_count + 1));
        if (!grown)
            return NULL;
        app->binds = grown;
    }
    app->binds[app->bind_count++] = bind;
    return bind;
}

static int bind_one(struct build *b, struct proxy *p, const struct cfg_bind *cfg, uint16_t port,
                    struct tls_server_ctx *tls, bool owns_tls, int id)
{
    struct bind *bind = bind_append(b);
    int family = cfg->address.addr.u.sa.sa_family;

    if (!bind)
        return SP_ENOMEM;
    bind->cfg = cfg;
    bind->frontend = p;
    bind->address = cfg->address.addr;
    bind->tls = tls;
    bind->owns_tls = owns_tls;
    bind->id = id;
    bind->name = cfg->name ? str_of(cfg->name) : str_of(arena_printf(&b->app->arena, "%d", id));
    bind->maxconn = cfg->maxconn > 0 ? cfg->maxconn : 0;
    bind->is_inherited = cfg->address.fd >= 0;
    bind->is_unix = family == AF_UNIX;
    bind->shared = bind->is_inherited || bind->is_unix;
    if (!bind->is_inherited && !bind->is_unix)
        addr_set_port(&bind->address, port);
    return 0;
}

int build_binds(struct build *b, struct proxy *p)
{
    int id = 1;

    for (const struct cfg_bind *cfg = p->cfg->binds; cfg; cfg = cfg->next) {
        struct tls_server_ctx *tls = cfg->ssl.enabled ? bind_tls(b, p, cfg) : NULL;
        unsigned low = cfg->address.port_low, high = cfg->address.port_high;

        if (cfg->address.addr.u.sa.sa_family == AF_UNIX || cfg->address.fd >= 0)
            low = high = 0;
        for (unsigned port = low; port <= high; port++) {
            if (bind_one(b, p, cfg, (uint16_t)port, tls, port == low, cfg->id ? cfg->id : id) != 0)
                return SP_ENOMEM;
            id++;
        }
    }
    return 0;
}
