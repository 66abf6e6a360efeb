#include "proxy/build.h"

#include "base/clock.h"
#include "proxy/balance.h"
#include "proxy/check.h"
#include "proxy/worker.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* Descriptors that are neither clients' nor servers' connections. */
#define RESERVED_DESCRIPTORS 100

/* --- what rules may name ------------------------------------------------------------ */

struct build_resolver {
    struct app *app;
    struct proxy *proxy;
};

static void *resolve_proxy(void *resolver, enum rules_proxy_kind kind, const char *name)
{
    struct build_resolver *r = resolver;
    struct proxy *found = NULL;

    if (kind != RULES_BACKEND)
        found = map_get(&r->app->frontends, str_of(name));
    if (!found && kind != RULES_FRONTEND)
        found = map_get(&r->app->backends, str_of(name));
    return found;
}

static void *resolve_server(void *resolver, const char *backend, const char *server)
{
    struct build_resolver *r = resolver;
    struct proxy *p = backend ? map_get(&r->app->backends, str_of(backend)) : r->proxy;

    for (int i = 0; p && i < p->server_count; i++)
        if (str_eq(p->servers[i]->name, str_of(server)))
            return p->servers[i];
    return NULL;
}

static bool resolve_errorfile(void *resolver, const char *section, unsigned status, struct str *raw)
{
    struct build_resolver *r = resolver;
    const struct cfg_errorfile *files = r->proxy->cfg->errorfiles;

    if (section) {
        const struct cfg_errors *e = r->app->model->errors;

        while (e && strcmp(e->name, section) != 0)
            e = e->next;
        if (!e)
            return false;
        files = e->files;
    }
    for (; files; files = files->next) {
        if (files->status == status && files->path) {
            *raw = files->content.ptr ? files->content : str_make("", 0);
            return true;
        }
    }
    return false;
}

static int capture_add(void *resolver, bool response, size_t len)
{
    struct build_resolver *r = resolver;
    struct proxy *p = r->proxy;
    struct capture **list = response ? &p->res_captures : &p->req_captures;
    int *count = response ? &p->res_capture_count : &p->req_capture_count;
    struct capture *grown;

    if (!p->cfg->is_frontend)
        return -1;
    grown = arena_zalloc(&r->app->arena, (size_t)*count + 1, sizeof(*grown));
    if (!grown)
        return -1;
    if (*count)
        memcpy(grown, *list, (size_t)*count * sizeof(*grown));
    grown[*count].header = STR_NULL;
    grown[*count].len = len;
    *list = grown;
    return (*count)++;
}

static int capture_len(void *resolver, bool response, int index)
{
    struct build_resolver *r = resolver;
    const struct proxy *p = r->proxy;
    int count = response ? p->res_capture_count : p->req_capture_count;

    if (index < 0 || index >= count)
        return -1;
    return (int)(response ? p->res_captures : p->req_captures)[index].len;
}

struct rules_compiler build_compiler(struct build *b, struct proxy *p, struct cfg_loc loc)
{
    struct build_resolver *r = arena_zalloc(&b->app->arena, 1, sizeof(*r));

    if (r) {
        r->app = b->app;
        r->proxy = p;
    }
    return (struct rules_compiler){
        .diag = b->diag,
        .arena = &b->app->arena,
        .registry = b->app->registry,
        .proxy_name = p->cfg->name,
        .loc = loc,
        .acls = p->acls,
        .is_frontend = p->cfg->is_frontend,
        .is_backend = p->cfg->is_backend,
        .is_http = p->is_http,
        .resolver = r,
        .find_proxy = resolve_proxy,
        .find_server = resolve_server,
        .find_errorfile = resolve_errorfile,
        .add_capture = capture_add,
        .capture_len = capture_len,
    };
}

/* --- proxies --------------------------------------------------------------------------- */

static void build_limits(const struct app *app, struct proxy *p)
{
    uint32_t head = app->bufsize - app->maxrewrite;
    uint32_t fields = (uint32_t)app->model->global.maxhdr;

    p->limits = (struct h1_limits){
        .max_head_bytes = head, .max_fields = fields, .accept_invalid = p->cfg->accept_invalid_http_request};
    p->response_limits = (struct h1_limits){
        .max_head_bytes = head, .max_fields = fields, .accept_invalid = p->cfg->accept_invalid_http_response};
}

static int build_proxy(struct build *b, const struct cfg_proxy *cfg, int index)
{
    struct app *app = b->app;
    struct proxy *p = arena_zalloc(&app->arena, 1, sizeof(*p));

    if (!p)
        return SP_ENOMEM;
    app->proxies[index] = p;
    app->proxy_count = index + 1;
    p->cfg = cfg;
    p->app = app;
    p->index = index;
    p->name = str_of(cfg->name);
    /* The command socket's own proxy takes number 1, as in HAProxy. */
    p->id = cfg->id ? cfg->id : index + (app->model->global.stats_sockets ? 2 : 1);
    p->is_http = !cfg->mode_tcp;
    p->inspect_delay_us = cfg->tcp_request_inspect_delay_us;
    pthread_mutex_init(&p->queue_lock, NULL);
    list_init(&p->queue);
    build_limits(app, p);
    p->acls = rules_acls_new(&app->arena);
    if (!p->acls)
        return SP_ENOMEM;
    if (cfg->is_frontend && map_put(&app->frontends, p->name, p) == SP_ENOMEM)
        return SP_ENOMEM;
    if (cfg->is_backend && map_put(&app->backends, p->name, p) == SP_ENOMEM)
        return SP_ENOMEM;
    return 0;
}

/* Names of backends and servers that do not exist were reported when the file was read. */
static void build_default_backend(struct build *b, struct proxy *p)
{
    if (p->cfg->default_backend)
        p->default_backend = map_get(&b->app->backends, str_of(p->cfg->default_backend));
}

static int build_proxies(struct build *b)
{
    struct app *app = b->app;
    int index = 0, rc = 0;

    app->proxies = arena_zalloc(&app->arena, (size_t)app->model->proxy_count + 1, sizeof(*app->proxies));
    if (!app->proxies)
        return SP_ENOMEM;
    for (const struct cfg_proxy *cfg = app->model->proxies; cfg && rc == 0; cfg = cfg->next)
        if (!cfg->disabled)
            rc = build_proxy(b, cfg, index++);
    for (int i = 0; i < app->proxy_count && rc == 0; i++)
        rc = build_servers(b, app->proxies[i]);
    if (rc == 0)
        rc = build_logs(b);
    for (int i = 0; i < app->proxy_count && rc == 0; i++) {
        struct proxy *p = app->proxies[i];

        build_default_backend(b, p);
        build_limits_check(b, p);
        rc = build_retry(b, p);
        if (rc == 0 && i == 0)
            rc = build_process_vars(b, p);
        if (rc == 0)
            rc = build_errors(b, p);
        if (rc == 0)
            rc = build_rules(b, p);
        if (rc == 0)
            rc = build_servers_finish(b, p);
        if (rc == 0 && p->cfg->is_frontend)
            rc = build_binds(b, p);
    }
    for (int i = 0; i < app->proxy_count && rc == 0; i++) {
        struct proxy *p = app->proxies[i];
        struct rules_compiler c = build_compiler(b, p, p->cfg->loc);

        if (!p->cfg->is_backend)
            continue;
        rc = balance_new(p, &c, &p->balance);
        if (rc == SP_EINVAL)
            rc = 0; /* in diag */
        if (rc == 0 && checks_build(p, &c) == SP_ENOMEM)
            rc = SP_ENOMEM;
    }
    return rc;
}

/* --- the process --------------------------------------------------------------------------- */

static int usable_cpus(void)
{
    cpu_set_t cpus;

    if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0)
        return 1;
    return CPU_COUNT(&cpus) > 0 ? CPU_COUNT(&cpus) : 1;
}

/* Each connection may take a descriptor on either side. */
static int derived_maxconn(void)
{
    struct rlimit limit;
    rlim_t most;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 1000;
    most = limit.rlim_max == RLIM_INFINITY || limit.rlim_max > 1000000 ? 1000000 : limit.rlim_max;
    return most > RESERVED_DESCRIPTORS + 20 ? (int)((most - RESERVED_DESCRIPTORS) / 2) : 10;
}

static int build_process(struct app *app)
{
    const struct cfg_global *g = &app->model->global;
    char host[256] = "";

    app->bufsize = (uint32_t)g->bufsize;
    app->maxrewrite = (uint32_t)g->maxrewrite;
    if (app->maxrewrite > app->bufsize / 2)
        app->maxrewrite = app->bufsize / 2;
    app->maxconn = g->maxconn > 0 ? g->maxconn : derived_maxconn();
    app->worker_count = g->nbthread > 0 ? g->nbthread : usable_cpus();
    app->workers = calloc((size_t)app->worker_count, sizeof(*app->workers));
    app->tls = tls_store_new();
    app->registry = rules_registry_new(&app->arena);
    gethostname(host, sizeof(host) - 1);
    app->hostname = arena_str(&app->arena, str_of(host));
    app->node = g->node ? str_of(g->node) : app->hostname;
    app->pid = (unsigned)getpid();
    app->start_us = clock_now_us();
    return app->workers && app->tls && app->registry && app->hostname.ptr ? 0 : SP_ENOMEM;
}

struct app *app_new(struct cfg_model *model, struct diag *diag)
{
    struct app *app = calloc(1, sizeof(*app));
    struct build b = {.app = app, .diag = diag};

    if (!app)
        return NULL;
    app->model = model;
    arena_init(&app->arena, 65536, 0);
    map_init(&app->frontends);
    map_init(&app->backends);
    if (build_process(app) != 0 || build_proxies(&b) != 0) {
        app->model = NULL;
        app_free(app);
        return NULL;
    }
    build_crypto(&b);
    return app;
}

static void proxy_release(struct proxy *p)
{
    if (p->balance)
        balance_free(p->balance);
    for (int i = 0; i < p->server_count; i++)
        if (p->servers[i]->tls)
            tls_client_ctx_free(p->servers[i]->tls);
    pthread_mutex_destroy(&p->queue_lock);
}

void app_free(struct app *app)
{
    if (!app)
        return;
    checks_free(app);
    for (int i = 0; app->workers && i < app->worker_count; i++)
        worker_release(&app->workers[i]);
    sp_crypto_threads_free(app->crypto_threads);
    sp_cryptodev_free(app->cryptodev);
    app_close_listeners(app);
    for (int i = 0; i < app->bind_count; i++) {
        if (app->binds[i]->tls && app->binds[i]->owns_tls)
            tls_server_ctx_free(app->binds[i]->tls);
        free(app->binds[i]->fds);
    }
    app_close_logs(app);
    for (int i = 0; i < app->proxy_count; i++)
        proxy_release(app->proxies[i]);
    if (app->tls)
        tls_store_free(app->tls);
    rules_release_all(app->registry);
    map_release(&app->frontends);
    map_release(&app->backends);
    free(app->workers);
    free(app->binds);
    arena_release(&app->arena);
    if (app->model)
        cfg_free(app->model);
    free(app);
}
