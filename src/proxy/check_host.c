/*
 * What expressions and formats in health checks may ask about.
 */
#include "proxy/balance.h"
#include "proxy/check_internal.h"

static bool put_int(struct sample *out, int64_t value)
{
    out->type = SAMPLE_INT;
    out->u.i = value;
    return true;
}

static bool put_str(struct sample *out, struct str value)
{
    out->type = SAMPLE_STR;
    out->u.s = value;
    return value.ptr != NULL;
}

static bool put_bool(struct sample *out, bool value)
{
    out->type = SAMPLE_BOOL;
    out->u.b = value;
    return true;
}

static bool put_host(struct sample *out, const struct addr *a)
{
    out->type = SAMPLE_ADDR;
    out->u.a = *a;
    return a->u.sa.sa_family == AF_INET || a->u.sa.sa_family == AF_INET6;
}

/* Either end of the check's connection. */
static bool item_address(const struct check *c, enum rules_item item, struct sample *out)
{
    bool own = item == RULES_BC_SRC || item == RULES_BC_SRC_PORT;
    const struct io_transport *transport = c->conn.sock.transport;
    struct addr a;

    if (!conn_is_open(&c->conn))
        return false;
    if ((own ? transport->local_addr : transport->peer_addr)(&c->conn.sock, &a) != 0)
        return false;
    return item == RULES_BC_SRC || item == RULES_BC_DST ? put_host(out, &a)
                                                        : put_int(out, addr_port(&a));
}

static bool item_tls(struct check *c, enum rules_item item, struct sample *out)
{
    enum tls_fact fact = item == RULES_SSL_BC_ALPN       ? TLS_FACT_ALPN
                         : item == RULES_SSL_BC_PROTOCOL ? TLS_FACT_VERSION
                                                         : TLS_FACT_CIPHER;
    struct str text;

    if (item == RULES_SSL_BC)
        return put_bool(out, c->conn.tls != NULL);
    if (!c->conn.tls || tls_conn_fact(c->conn.tls, fact, &c->scratch, &text) != 0)
        return false;
    return put_str(out, text);
}

static bool item_process(const struct app *app, enum rules_item item, struct sample *out)
{
    switch (item) {
    case RULES_PID:
        return put_int(out, app->pid);
    case RULES_NBTHREAD:
        return put_int(out, app->worker_count);
    case RULES_THREAD:
        return put_int(out, 0);
    case RULES_ACT_CONN:
        return put_int(out, atomic_load(&app->connections));
    case RULES_STOPPING:
        return put_bool(out, atomic_load(&app->stopping));
    case RULES_HOSTNAME:
        return put_str(out, app->hostname);
    case RULES_NODE:
        return put_str(out, app->node);
    default:
        return false;
    }
}

static bool host_item(void *stream, enum rules_item item, struct sample *out)
{
    struct check *c = stream;
    const struct proxy *p = c->server->backend;

    switch (item) {
    case RULES_BE_NAME:
        return put_str(out, p->name);
    case RULES_BE_ID:
        return put_int(out, p->id);
    case RULES_SRV_NAME:
        return put_str(out, c->server->name);
    case RULES_SRV_ID:
        return put_int(out, c->server->id);
    case RULES_BC_SRC:
    case RULES_BC_SRC_PORT:
    case RULES_BC_DST:
    case RULES_BC_DST_PORT:
        return item_address(c, item, out);
    case RULES_SSL_BC:
    case RULES_SSL_BC_ALPN:
    case RULES_SSL_BC_PROTOCOL:
    case RULES_SSL_BC_CIPHER:
        return item_tls(c, item, out);
    case RULES_PAYLOAD_RES:
        out->type = SAMPLE_BIN;
        out->u.s = buf_str(c->script->type == CFG_CHECK_HTTP ? &c->body : &c->in);
        return out->u.s.ptr != NULL;
    case RULES_RES_BODY_LEN:
        return put_int(out,
                       (int64_t)buf_len(c->script->type == CFG_CHECK_HTTP ? &c->body : &c->in));
    default:
        return item_process(p->app, item, out);
    }
}

static bool host_count(void *stream, enum rules_count what, void *object, struct sample *out)
{
    struct check *c = stream;
    struct server *server = object ? object : c->server;
    const struct proxy *p = object ? object : c->server->backend;
    struct proxy_counters counters;

    switch (what) {
    case RULES_SRV_IS_UP:
        return put_bool(out, server_is_usable(server));
    case RULES_SRV_CONN:
        return put_int(out, atomic_load(&server->served));
    case RULES_SRV_QUEUE:
        return put_int(out, atomic_load(&server->queued));
    case RULES_SRV_WEIGHT:
        return put_int(out, atomic_load(&server->weight));
    case RULES_NBSRV:
        return put_int(out, balance_usable(p));
    case RULES_QUEUE:
        return put_int(out, atomic_load(&p->queued));
    case RULES_BE_CONN:
    case RULES_FE_CONN:
        proxy_counters_sum(p->app, p, &counters);
        return put_int(out, what == RULES_BE_CONN ? counters.be_current : counters.fe_current);
    default:
        return false;
    }
}

static const struct rules_host check_rules_host = {.item = host_item, .count = host_count};

struct rules_ctx check_rules_ctx(struct check *c)
{
    return (struct rules_ctx){
        .host = &check_rules_host,
        .stream = c,
        .arena = &c->scratch,
        .sess_arena = &c->arena,
        .sess_vars = &c->vars,
        .res = c->has_response ? &c->response : NULL,
        .proc_vars = &c->server->backend->app->proc_vars,
        .wall_us = c->loop ? io_loop_wall(c->loop) : 0,
        .rng = &c->rng,
        .final_data = true,
        .response_stage = true,
    };
}
