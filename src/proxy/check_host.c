/*
 * What expressions and formats in health checks may ask about.
 */
#include "proxy/balance.h"
#include "proxy/check_internal.h"
#include "proxy/sample.h"

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
        return process_item(&p->app->workers[0], item, out);
    }
}

static bool host_count(void *stream, enum rules_count what, void *object, struct sample *out)
{
    struct check *c = stream;
    struct server *server = object ? object : c->server;
    const struct proxy *p = object ? object : c->server->backend;

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
        return put_int(out, proxy_current(p->app, p, what == RULES_BE_CONN));
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
