/*
 * Fetches of connections, of the objects a stream goes through, and of counters.
 */
#include "rules/tables.h"

static bool fetch_item(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                       struct sample *out)
{
    return ctx_item(ctx, (enum rules_item)f->def->data, out);
}

/* IP addresses only: clients of Unix sockets have none. */
static bool fetch_addr(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                       struct sample *out)
{
    const uint8_t *bytes;

    return ctx_item(ctx, (enum rules_item)f->def->data, out) && out->type == SAMPLE_ADDR &&
           value_addr_bytes(&out->u.a, &bytes);
}

static bool fetch_count(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                        struct sample *out)
{
    const struct rules_arg *object = arg_at(&f->args, 0);

    it->may_change = true;
    return ctx->host && ctx->host->count &&
           ctx->host->count(ctx->stream, (enum rules_count)f->def->data,
                            object ? object->u.object : NULL, out);
}

/* Timeouts are kept in microseconds and told in milliseconds. */
static bool fetch_timeout(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                          struct sample *out)
{
    return fetch_item(f, ctx, it, out) && out->type == SAMPLE_INT &&
           value_int(out, out->u.i / 1000);
}

static bool fetch_is_htx(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                         struct sample *out)
{
    if (ctx_item(ctx, RULES_STRM_IS_HTTP, out))
        return true;
    return value_bool(out, ctx->req != NULL);
}

static bool fetch_srv_name(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                           struct sample *out)
{
    it->may_change = true;
    return fetch_item(f, ctx, it, out);
}

#define H NEEDS_HOST
#define COUNTED (NEEDS_HOST | NEEDS_VARYING)
#define BACKEND "?b", "[<backend>]"
#define FRONTEND "?f", "[<frontend>]"
#define SERVER "S", "[<backend>/]<server>"

static const struct fetch_def rows[] = {
    {"src", NULL, NULL, VALUE_ADDR, H, fetch_addr, RULES_SRC, .help = "client's address"},
    {"src_port", NULL, NULL, VALUE_INT, H, fetch_item, RULES_SRC_PORT, .help = "client's port"},
    {"dst", NULL, NULL, VALUE_ADDR, H, fetch_addr, RULES_DST,
     .help = "address the client connected to"},
    {"dst_port", NULL, NULL, VALUE_INT, H, fetch_item, RULES_DST_PORT,
     .help = "port the client connected to"},
    {"fc_src", NULL, NULL, VALUE_ADDR, H, fetch_addr, RULES_SRC,
     .help = "source address of the client's connection"},
    {"fc_src_port", NULL, NULL, VALUE_INT, H, fetch_item, RULES_SRC_PORT,
     .help = "source port of the client's connection"},
    {"fc_dst", NULL, NULL, VALUE_ADDR, H, fetch_addr, RULES_DST,
     .help = "destination address of the client's connection"},
    {"fc_dst_port", NULL, NULL, VALUE_INT, H, fetch_item, RULES_DST_PORT,
     .help = "destination port of the client's connection"},
    {"bc_src", NULL, NULL, VALUE_ADDR, H, fetch_addr, RULES_BC_SRC,
     .help = "source address of the server's connection"},
    {"bc_src_port", NULL, NULL, VALUE_INT, H, fetch_item, RULES_BC_SRC_PORT,
     .help = "source port of the server's connection"},
    {"bc_dst", NULL, NULL, VALUE_ADDR, H, fetch_addr, RULES_BC_DST,
     .help = "address of the server's connection"},
    {"bc_dst_port", NULL, NULL, VALUE_INT, H, fetch_item, RULES_BC_DST_PORT,
     .help = "port of the server's connection"},
    {"bc_reused", NULL, NULL, VALUE_BOOL, H, fetch_item, RULES_BC_REUSED,
     .help = "true when the server's connection was reused"},
    {"fc_http_major", NULL, NULL, VALUE_INT, H, fetch_item, RULES_FC_HTTP_MAJOR,
     .help = "major HTTP version on the client's connection"},
    {"bc_http_major", NULL, NULL, VALUE_INT, H, fetch_item, RULES_BC_HTTP_MAJOR,
     .help = "major HTTP version on the server's connection"},
    {"fc_rcvd_proxy", NULL, NULL, VALUE_BOOL, H, fetch_item, RULES_FC_RCVD_PROXY,
     .help = "true when the client's connection began with a PROXY header"},
    {"fc_pp_authority", NULL, NULL, VALUE_STR, H, fetch_item, RULES_FC_PP_AUTHORITY,
     .help = "authority in the client's PROXY header"},
    {"fc_pp_unique_id", NULL, NULL, VALUE_STR, H, fetch_item, RULES_FC_PP_UNIQUE_ID,
     .help = "unique identifier in the client's PROXY header"},
    {"fc_err", NULL, NULL, VALUE_INT, H, fetch_item, RULES_FC_ERR,
     .help = "error code of the client's connection"},
    {"fc_err_str", NULL, NULL, VALUE_STR, H, fetch_item, RULES_FC_ERR_STR,
     .help = "error text of the client's connection"},
    {"bc_err", NULL, NULL, VALUE_INT, H, fetch_item, RULES_BC_ERR,
     .help = "error code of the server's connection"},
    {"bc_err_str", NULL, NULL, VALUE_STR, H, fetch_item, RULES_BC_ERR_STR,
     .help = "error text of the server's connection"},
    {"fe_name", NULL, NULL, VALUE_STR, H, fetch_item, RULES_FE_NAME,
     .help = "name of the frontend"},
    {"fe_id", NULL, NULL, VALUE_INT, H, fetch_item, RULES_FE_ID, .help = "number of the frontend"},
    {"fe_defbe", NULL, NULL, VALUE_STR, H, fetch_item, RULES_FE_DEFBE,
     .help = "name of the frontend's default backend"},
    {"fe_client_timeout", NULL, NULL, VALUE_INT, H, fetch_timeout, RULES_FE_CLIENT_TIMEOUT,
     .help = "timeout client, in milliseconds"},
    {"be_name", NULL, NULL, VALUE_STR, H, fetch_item, RULES_BE_NAME, .help = "name of the backend"},
    {"be_id", NULL, NULL, VALUE_INT, H, fetch_item, RULES_BE_ID, .help = "number of the backend"},
    {"be_server_timeout", NULL, NULL, VALUE_INT, H, fetch_timeout, RULES_BE_SERVER_TIMEOUT,
     .help = "timeout server, in milliseconds"},
    {"be_tunnel_timeout", NULL, NULL, VALUE_INT, H, fetch_timeout, RULES_BE_TUNNEL_TIMEOUT,
     .help = "timeout tunnel, in milliseconds"},
    {"srv_name", NULL, NULL, VALUE_STR, H, fetch_srv_name, RULES_SRV_NAME,
     .help = "name of the server"},
    {"srv_id", NULL, NULL, VALUE_INT, H, fetch_srv_name, RULES_SRV_ID,
     .help = "number of the server"},
    {"so_name", NULL, NULL, VALUE_STR, H, fetch_item, RULES_SO_NAME,
     .help = "name of the listening socket"},
    {"so_id", NULL, NULL, VALUE_INT, H, fetch_item, RULES_SO_ID,
     .help = "number of the listening socket"},
    {"internal.strm.is_htx", NULL, NULL, VALUE_BOOL, H, fetch_is_htx, 0,
     .help = "true when the stream is processed as HTTP"},
    {"nbsrv", BACKEND, VALUE_INT, COUNTED, fetch_count, RULES_NBSRV, .help = "usable servers"},
    {"be_conn", BACKEND, VALUE_INT, COUNTED, fetch_count, RULES_BE_CONN,
     .help = "current connections of a backend"},
    {"be_conn_free", BACKEND, VALUE_INT, COUNTED, fetch_count, RULES_BE_CONN_FREE,
     .help = "connections that the servers can still take"},
    {"be_sess_rate", BACKEND, VALUE_INT, COUNTED, fetch_count, RULES_BE_SESS_RATE,
     .help = "sessions a second of a backend"},
    {"fe_conn", FRONTEND, VALUE_INT, COUNTED, fetch_count, RULES_FE_CONN,
     .help = "current connections of a frontend"},
    {"fe_sess_rate", FRONTEND, VALUE_INT, COUNTED, fetch_count, RULES_FE_SESS_RATE,
     .help = "sessions a second of a frontend"},
    {"fe_req_rate", FRONTEND, VALUE_INT, COUNTED, fetch_count, RULES_FE_REQ_RATE,
     .help = "requests a second of a frontend"},
    {"queue", BACKEND, VALUE_INT, COUNTED, fetch_count, RULES_QUEUE,
     .help = "requests waiting in a backend's queues"},
    {"avg_queue", BACKEND, VALUE_INT, COUNTED, fetch_count, RULES_AVG_QUEUE,
     .help = "queue divided by the usable servers"},
    {"connslots", BACKEND, VALUE_INT, COUNTED, fetch_count, RULES_CONNSLOTS,
     .help = "free connection and queue slots"},
    {"srv_is_up", SERVER, VALUE_BOOL, COUNTED, fetch_count, RULES_SRV_IS_UP,
     .help = "true when the server is up"},
    {"srv_conn", SERVER, VALUE_INT, COUNTED, fetch_count, RULES_SRV_CONN,
     .help = "current connections of a server"},
    {"srv_conn_free", SERVER, VALUE_INT, COUNTED, fetch_count, RULES_SRV_CONN_FREE,
     .help = "connections that a server can still take"},
    {"srv_queue", SERVER, VALUE_INT, COUNTED, fetch_count, RULES_SRV_QUEUE,
     .help = "requests waiting for a server"},
    {"srv_weight", SERVER, VALUE_INT, COUNTED, fetch_count, RULES_SRV_WEIGHT,
     .help = "current weight of a server"},
    {"srv_sess_rate", SERVER, VALUE_INT, COUNTED, fetch_count, RULES_SRV_SESS_RATE,
     .help = "sessions a second of a server"},
};

const struct fetch_table fetch_conn_table = TABLE_OF(rows);
