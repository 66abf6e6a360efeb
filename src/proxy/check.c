/*
 * Life of health checks: built from the configuration, started with an offset from each
 * other, run again after an interval that depends on the server's health.
 */
#include "proxy/check.h"

#include "proxy/check_internal.h"
#include "proxy/server_state.h"

#define DEFAULT_INTER_US 2000000
#define DEFAULT_ERROR_LIMIT 10
#define COUNT_MAX 1000000 /* of rise and fall, so that their sum is an int */
/* First runs are spread over the shortest interval that is at least this long. */
#define SPREAD_MIN_US 1000000

/* --- building ------------------------------------------------------------------------------ */

static uint64_t interval(int64_t us, uint64_t otherwise)
{
    return us <= 0 ? otherwise : us < 1000 ? 1000 : (uint64_t)us;
}

static int count_of(int configured, int otherwise)
{
    return configured <= 0 ? otherwise : configured > COUNT_MAX ? COUNT_MAX : configured;
}

/* "addr" and "port": then the check is not of the service itself and inherits neither TLS nor PROXY headers. */
static int check_target(struct check *c, struct diag *diag)
{
    const struct server *s = c->server;
    const struct cfg_server *cfg = s->cfg;
    const struct check_script *script = c->script;
    bool elsewhere = cfg->check_addr_text || cfg->check_port;
    bool has_port;

    c->address = cfg->check_addr_text ? cfg->check_address.addr : s->address;
    if (cfg->check_addr_text && cfg->check_address.port_given && addr_port(&c->address) == 0)
        addr_set_port(&c->address, cfg->check_address.port_low);
    if (cfg->check_port)
        addr_set_port(&c->address, (uint16_t)cfg->check_port);
    else if (cfg->check_addr_text && addr_port(&c->address) == 0)
        addr_set_port(&c->address, addr_port(&s->address));
    c->tls = cfg->check_ssl || (cfg->ssl.enabled && !elsewhere && !cfg->no_check_ssl);
    c->send_proxy = cfg->check_send_proxy || ((s->pp_v1 || s->pp_v2) && !elsewhere);
    has_port = c->address.u.sa.sa_family == AF_UNIX || addr_port(&c->address) != 0 ||
               script->steps[0].u.connect.port || script->steps[0].u.connect.port_expr ||
               addr_port(&script->steps[0].u.connect.address) != 0;
    if (!has_port) {
        diag_error(
            diag, cfg->loc,
            "server '%s': there is no port to check; expected a port in the address, or 'port N'",
            cfg->name);
        return SP_EINVAL;
    }
    return 0;
}

static bool script_uses_tls(const struct check_script *script)
{
    for (unsigned i = 0; i < script->count; i++)
        if (script->steps[i].kind == CHECK_STEP_CONNECT && script->steps[i].u.connect.tls)
            return true;
    return false;
}

static int refuse_unsupported(const struct check *c, struct diag *diag)
{
    const struct cfg_server *cfg = c->server->cfg;

    if (!c->server->tls && (c->tls || script_uses_tls(c->script))) {
        if (!diag->errors) /* the context's own error tells more */
            diag_error(diag, cfg->loc,
                       "server '%s': its checks need TLS, and it has no TLS settings", cfg->name);
        return SP_EINVAL;
    }
    if (cfg->check_proto && strcmp(cfg->check_proto, "h1") != 0 &&
        strcmp(cfg->check_proto, "none") != 0) {
        diag_error(
            diag, cfg->loc,
            "server '%s': 'check-proto %s' is known to HAProxy and not supported; expected h1 or none",
            cfg->name, cfg->check_proto);
        return SP_EINVAL;
    }
    return 0;
}

static int check_new(struct server *s, const struct check_script *script,
                     struct rules_compiler *compiler)
{
    const struct cfg_server *cfg = s->cfg;
    struct check *c = arena_zalloc(compiler->arena, 1, sizeof(*c));
    int rc;

    if (!c)
        return SP_ENOMEM;
    c->server = s;
    c->script = script;
    c->rise = count_of(cfg->rise, 2);
    c->fall = count_of(cfg->fall, 3);
    c->inter_us = interval(cfg->inter_us, DEFAULT_INTER_US);
    c->fastinter_us = interval(cfg->fastinter_us, 0);
    c->downinter_us = interval(cfg->downinter_us, 0);
    c->error_limit = cfg->error_limit > 0 ? (unsigned)cfg->error_limit : DEFAULT_ERROR_LIMIT;
    c->last = (struct check_outcome){.code = CHECK_INI, .duration_ms = -1};
    c->paused = (atomic_load(&s->admin) & SERVER_ADMIN_ANY_MAINT) != 0;
    c->health = c->paused ? 0 : c->rise;
    c->conn.sock.watch.fd = -1;
    pthread_mutex_init(&c->lock, NULL);
    s->check = c;
    rc = check_target(c, compiler->diag);
    return refuse_unsupported(c, compiler->diag) == 0 ? rc : SP_EINVAL;
}

static bool any_checked(const struct proxy *backend)
{
    for (int i = 0; i < backend->server_count; i++)
        if (backend->servers[i]->cfg->check)
            return true;
    return false;
}

/* Lines are compiled even when no server is checked, so that their errors are reported. */
static bool has_lines(const struct cfg_proxy *cfg)
{
    for (const struct cfg_line *line = cfg->lines; line; line = line->next)
        if (line->kind == CFG_LINE_HTTP_CHECK || line->kind == CFG_LINE_TCP_CHECK)
            return true;
    return false;
}

int checks_build(struct proxy *backend, struct rules_compiler *compiler)
{
    int rc = server_states_build(backend);
    const struct check_script *script;

    if (rc == SP_ENOMEM || (!any_checked(backend) && !has_lines(backend->cfg)))
        return rc;
    script = check_script_build(backend, compiler);
    if (!script)
        return compiler->diag->errors ? SP_EINVAL : SP_ENOMEM;
    for (int i = 0; i < backend->server_count; i++) {
        struct server *s = backend->servers[i];
        int each = s->cfg->check && !s->track ? check_new(s, script, compiler) : 0;

        if (each == SP_ENOMEM)
            return SP_ENOMEM;
        if (each != 0)
            rc = each;
    }
    return rc;
}

/* --- running ---------------------------------------------------------------------------------- */

static void set_running(struct check *c, bool running)
{
    pthread_mutex_lock(&c->lock);
    c->running = running;
    pthread_mutex_unlock(&c->lock);
}

/* "spread-checks": a share of the interval, more or less. */
static uint64_t with_jitter(struct check *c, uint64_t us)
{
    int percent = c->server->backend->app->model->global.spread_checks;
    uint64_t range;

    if (percent <= 0)
        return us;
    range = us / 100 * (uint64_t)percent;
    return us - range + hash_rng_next(&c->rng) % (2 * range + 1);
}

static void schedule(struct check *c)
{
    if (!c->paused)
        io_timer_set(c->loop, &c->timer,
                     io_loop_now(c->loop) + with_jitter(c, check_interval_us(c)));
}

static void check_fire(struct io_timer *t)
{
    struct check *c = LIST_ENTRY(t, struct check, timer);

    if (c->phase != CHECK_IDLE) {
        check_run_timeout(c);
        return;
    }
    if (c->paused)
        return;
    set_running(c, true);
    check_run_begin(c);
}

void check_run_ended(struct check *c, struct check_outcome *o)
{
    set_running(c, false);
    if (o)
        check_apply(c, o);
    schedule(c);
}

void check_hurry(struct check *c, uint64_t delay_us)
{
    if (c->loop && c->phase == CHECK_IDLE && !c->paused &&
        c->timer.deadline_us > io_loop_now(c->loop) + delay_us)
        io_timer_set(c->loop, &c->timer, io_loop_now(c->loop) + delay_us);
}

void check_pause(struct check *c)
{
    if (c->loop) {
        check_run_abort(c);
        io_timer_cancel(&c->timer);
    }
    pthread_mutex_lock(&c->lock);
    c->running = false;
    c->paused = true;
    c->health = 0;
    pthread_mutex_unlock(&c->lock);
}

void check_resume(struct check *c)
{
    pthread_mutex_lock(&c->lock);
    c->paused = false;
    c->health = c->rise;
    pthread_mutex_unlock(&c->lock);
    atomic_store(&c->errors, 0);
    if (c->loop)
        io_timer_set(c->loop, &c->timer, io_loop_now(c->loop));
}

void check_force_health(struct check *c, bool up)
{
    pthread_mutex_lock(&c->lock);
    c->health = up ? c->rise : 0;
    pthread_mutex_unlock(&c->lock);
}

/* --- all of them ----------------------------------------------------------------------------------- */

/* The shortest interval of a second or more; 0: there is none. */
static uint64_t spread_interval(const struct app *app, unsigned *count)
{
    uint64_t shortest = 0;

    *count = 0;
    for (int i = 0; i < app->server_count; i++) {
        const struct check *c = app->servers[i]->check;
        uint64_t us = c ? check_interval_us(c) : 0;

        *count += c != NULL;
        if (us >= SPREAD_MIN_US && (shortest == 0 || us < shortest))
            shortest = us;
    }
    return shortest;
}

int checks_start(struct app *app, struct io_loop *loop, struct tls_worker *tls)
{
    uint64_t most_us = (uint64_t)app->model->global.max_spread_checks * 1000;
    unsigned count, position = 0;
    uint64_t shortest = spread_interval(app, &count);

    for (int i = 0; i < app->server_count; i++) {
        struct check *c = app->servers[i]->check;
        uint64_t over_us;

        if (!c)
            continue;
        c->loop = loop;
        c->tls_worker = tls;
        hash_rng_seed(&c->rng);
        io_timer_init(&c->timer, check_fire);
        atomic_store(&c->observe_loop, loop);
        over_us = check_interval_us(c);
        if (over_us < shortest)
            over_us = shortest;
        if (app->model->global.max_spread_checks > 0 && over_us > most_us)
            over_us = most_us;
        if (!c->paused)
            io_timer_set(loop, &c->timer, io_loop_now(loop) + over_us * position / count);
        position++;
    }
    return 0;
}

void checks_stop(struct app *app)
{
    for (int i = 0; i < app->server_count; i++) {
        struct check *c = app->servers[i]->check;

        if (!c || !c->loop)
            continue;
        atomic_store(&c->observe_loop, NULL);
        check_run_abort(c);
        io_timer_cancel(&c->timer);
        c->loop = NULL;
    }
}

void checks_free(struct app *app)
{
    for (int i = 0; i < app->server_count; i++) {
        struct check *c = app->servers[i]->check;

        if (!c)
            continue;
        if (c->tls_slot)
            tls_session_slot_free(c->tls_slot);
        pthread_mutex_destroy(&c->lock);
        app->servers[i]->check = NULL;
    }
}
