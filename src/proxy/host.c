/*
 * What rules ask about a session: the answers behind struct rules_host.
 */
#include "proxy/balance.h"
#include "proxy/sample.h"
#include "proxy/session.h"

#include <time.h>
#include <unistd.h>

int session_dst(struct session *s, struct addr *out)
{
    if (s->dst.u.sa.sa_family == AF_UNSPEC && s->client.sock.transport->local_addr(&s->client.sock, &s->dst) != 0)
        return SP_EIO;
    *out = s->dst;
    return 0;
}

struct str session_unique_id(struct session *s)
{
    struct txn *t = s->txn;
    const struct rules_fmt *fmt = s->frontend->unique_id;

    if (!t->unique_id.ptr && !fmt && t->backend)
        fmt = t->backend->unique_id;
    if (!t->unique_id.ptr && fmt)
        t->unique_id = rules_fmt_str(fmt, &t->rules);
    return t->unique_id;
}

void session_rules_ctx(struct session *s)
{
    struct txn *t = s->txn;
    struct rules_ctx *ctx = &t->rules;
    const struct proxy *fe = s->frontend;

    ctx->host = &session_rules_host;
    ctx->stream = s;
    ctx->arena = &t->arena;
    ctx->sess_arena = &s->arena;
    ctx->sess_vars = &s->vars;
    ctx->wall_us = io_loop_wall(s->worker->loop);
    ctx->rng = &s->worker->rng;
    ctx->tls = s->tls;
    ctx->proc_vars = &s->worker->app->proc_vars;
    ctx->req_capture_count = (unsigned)fe->req_capture_count;
    ctx->res_capture_count = (unsigned)fe->res_capture_count;
    if (fe->req_capture_count)
        ctx->req_captures = arena_zalloc(&t->arena, (size_t)fe->req_capture_count, sizeof(struct str));
    if (fe->res_capture_count)
        ctx->res_captures = arena_zalloc(&t->arena, (size_t)fe->res_capture_count, sizeof(struct str));
}

/* --- by subject ----------------------------------------------------------------------- */

static bool item_server_addr(struct session *s, enum rules_item item, struct sample *out)
{
    struct addr a;
    bool own = item == RULES_BC_SRC || item == RULES_BC_SRC_PORT;

    if (!s->server || !conn_is_open(&s->server->conn))
        return false;
    if ((own ? s->server->conn.sock.transport->local_addr : s->server->conn.sock.transport->peer_addr)(
            &s->server->conn.sock, &a) != 0)
        return false;
    return item == RULES_BC_SRC || item == RULES_BC_DST ? put_host(out, &a) : put_int(out, addr_port(&a));
}

static bool item_addr(struct session *s, enum rules_item item, struct sample *out)
{
    struct addr dst;

    switch (item) {
    case RULES_SRC:
        return put_host(out, &s->src);
    case RULES_SRC_PORT:
        return put_int(out, addr_port(&s->src));
    case RULES_DST:
        return session_dst(s, &dst) == 0 && put_host(out, &dst);
    case RULES_DST_PORT:
        return session_dst(s, &dst) == 0 && put_int(out, addr_port(&dst));
    default:
        return item_server_addr(s, item, out);
    }
}

/* Rows: fetch item, fact or number of the TLS connection, and how it is shown. */
enum tls_kind { TLS_TEXT, TLS_BYTES, TLS_INT, TLS_BOOL };

static const struct tls_item {
    uint16_t item;
    uint8_t kind;
    uint8_t what;
} tls_items[] = {
    {RULES_SSL_FC_SNI, TLS_TEXT, TLS_FACT_SNI},
    {RULES_SSL_FC_HAS_SNI, TLS_BOOL, TLS_NUMBER_HAS_SNI},
    {RULES_SSL_FC_ALPN, TLS_TEXT, TLS_FACT_ALPN},
    {RULES_SSL_FC_NPN, TLS_TEXT, TLS_FACT_ALPN},
    {RULES_SSL_FC_PROTOCOL, TLS_TEXT, TLS_FACT_VERSION},
    {RULES_SSL_FC_CIPHER, TLS_TEXT, TLS_FACT_CIPHER},
    {RULES_SSL_FC_USE_KEYSIZE, TLS_INT, TLS_NUMBER_USE_KEYSIZE},
    {RULES_SSL_FC_ALG_KEYSIZE, TLS_INT, TLS_NUMBER_ALG_KEYSIZE},
    {RULES_SSL_FC_IS_RESUMED, TLS_BOOL, TLS_NUMBER_IS_RESUMED},
    {RULES_SSL_FC_SESSION_ID, TLS_BYTES, TLS_FACT_SESSION_ID},
    {RULES_SSL_FC_UNIQUE_ID, TLS_BYTES, TLS_FACT_UNIQUE_ID},
    {RULES_SSL_FC_HAS_CRT, TLS_BOOL, TLS_NUMBER_PEER_HAS_CERT},
    {RULES_SSL_FC_ERR, TLS_INT, TLS_NUMBER_ERROR},
    {RULES_SSL_C_USED, TLS_BOOL, TLS_NUMBER_PEER_CERT_USED},
    {RULES_SSL_C_VERIFY, TLS_INT, TLS_NUMBER_VERIFY_RESULT},
    {RULES_SSL_C_ERR, TLS_INT, TLS_NUMBER_CERT_ERROR},
    {RULES_SSL_C_CA_ERR, TLS_INT, TLS_NUMBER_CA_ERROR},
    {RULES_SSL_C_S_DN, TLS_TEXT, TLS_FACT_PEER_SUBJECT},
    {RULES_SSL_C_I_DN, TLS_TEXT, TLS_FACT_PEER_ISSUER},
    {RULES_SSL_C_SERIAL, TLS_BYTES, TLS_FACT_PEER_SERIAL},
    {RULES_SSL_C_SHA1, TLS_BYTES, TLS_FACT_PEER_SHA1},
    {RULES_SSL_C_NOTBEFORE, TLS_TEXT, TLS_FACT_PEER_NOTBEFORE},
    {RULES_SSL_C_NOTAFTER, TLS_TEXT, TLS_FACT_PEER_NOTAFTER},
    {RULES_SSL_C_DER, TLS_BYTES, TLS_FACT_PEER_DER},
    {RULES_SSL_C_VERSION, TLS_INT, TLS_NUMBER_PEER_VERSION},
    {RULES_SSL_C_KEY_ALG, TLS_TEXT, TLS_FACT_PEER_KEY_ALG},
    {RULES_SSL_F_S_DN, TLS_TEXT, TLS_FACT_OWN_SUBJECT},
    {RULES_SSL_F_I_DN, TLS_TEXT, TLS_FACT_OWN_ISSUER},
    {RULES_SSL_F_SERIAL, TLS_BYTES, TLS_FACT_OWN_SERIAL},
    {RULES_SSL_F_SHA1, TLS_BYTES, TLS_FACT_OWN_SHA1},
    {RULES_SSL_F_DER, TLS_BYTES, TLS_FACT_OWN_DER},
    {RULES_SSL_BC_ALPN, TLS_TEXT, TLS_FACT_ALPN},
    {RULES_SSL_BC_PROTOCOL, TLS_TEXT, TLS_FACT_VERSION},
    {RULES_SSL_BC_CIPHER, TLS_TEXT, TLS_FACT_CIPHER},
    {RULES_SSL_BC_IS_RESUMED, TLS_BOOL, TLS_NUMBER_IS_RESUMED},
    {RULES_SSL_BC_USE_KEYSIZE, TLS_INT, TLS_NUMBER_USE_KEYSIZE},
    {RULES_SSL_BC_ALG_KEYSIZE, TLS_INT, TLS_NUMBER_ALG_KEYSIZE},
};

static bool item_tls(struct session *s, enum rules_item item, struct sample *out)
{
    bool server_side = item >= RULES_SSL_BC && item <= RULES_SSL_BC_ALG_KEYSIZE;
    const struct tls_conn *tls = server_side ? (s->server ? s->server->conn.tls : NULL) : s->client.tls;
    struct arena *arena = s->txn ? &s->txn->arena : &s->arena;
    struct str text;

    if (item == RULES_SSL_FC || item == RULES_SSL_BC)
        return put_bool(out, tls != NULL);
    if (!tls)
        return item == RULES_SSL_FC_HAS_SNI || item == RULES_SSL_FC_HAS_CRT || item == RULES_SSL_C_USED
                   ? put_bool(out, false)
                   : false;
    if (item == RULES_SSL_FC_ERR_STR)
        return put_str(out, str_of(tls_conn_error_text(tls)));
    for (size_t i = 0; i < sizeof(tls_items) / sizeof(tls_items[0]); i++) {
        const struct tls_item *row = &tls_items[i];

        if (row->item != item)
            continue;
        if (row->kind == TLS_INT)
            return put_int(out, tls_conn_number(tls, (enum tls_number)row->what));
        if (row->kind == TLS_BOOL)
            return put_bool(out, tls_conn_number(tls, (enum tls_number)row->what) != 0);
        if (tls_conn_fact(tls, (enum tls_fact)row->what, arena, &text) != 0)
            return false;
        return row->kind == TLS_TEXT ? put_str(out, text) : put_bin(out, text);
    }
    return false;
}

static bool item_name(struct session *s, enum rules_item item, struct sample *out)
{
    const struct txn *t = s->txn;
    const struct proxy *be = t ? t->backend : NULL;
    const struct server *server = t ? t->server : NULL;

    switch (item) {
    case RULES_FE_NAME:
        return put_str(out, s->frontend->name);
    case RULES_FE_ID:
        return put_int(out, s->frontend->id);
    case RULES_BE_NAME:
        return be && put_str(out, be->name);
    case RULES_BE_ID:
        return be && put_int(out, be->id);
    case RULES_SRV_NAME:
        return server && put_str(out, server->name);
    case RULES_SRV_ID:
        return server && put_int(out, server->id);
    case RULES_SO_NAME:
        return put_str(out, s->bind->name);
    case RULES_SO_ID:
        return put_int(out, s->bind->id);
    case RULES_FE_DEFBE:
        return s->frontend->default_backend && put_str(out, s->frontend->default_backend->name);
    default:
        return false;
    }
}

static bool item_payload(struct session *s, enum rules_item item, struct sample *out)
{
    const struct txn *t = s->txn;
    bool response = item == RULES_PAYLOAD_RES || item == RULES_RES_BODY_LEN;
    const struct flow *f = response ? &s->res : &s->req;
    const struct http_msg *m = t ? (response ? &t->res : &t->req) : NULL;

    if (item == RULES_PAYLOAD_REQ || item == RULES_PAYLOAD_RES)
        return put_bin(out, f->win.mem ? buf_str(&f->win) : str_make("", 0));
    if (m && m->framing == HTTP_FRAMING_LENGTH)
        return put_int(out, (int64_t)m->content_length);
    return put_int(out, f->win.mem ? (int64_t)buf_len(&f->win) : 0);
}

static bool item_timeout(struct session *s, enum rules_item item, struct sample *out)
{
    const struct cfg_proxy *be = s->txn && s->txn->backend ? s->txn->backend->cfg : NULL;
    int64_t us = item == RULES_FE_CLIENT_TIMEOUT ? s->frontend->cfg->timeout_client_us
                 : !be                           ? CFG_UNSET
                 : item == RULES_BE_SERVER_TIMEOUT ? be->timeout_server_us
                                                   : be->timeout_tunnel_us;

    return us != CFG_UNSET && put_int(out, us / 1000);
}

static bool host_item(void *stream, enum rules_item item, struct sample *out)
{
    struct session *s = stream;

    switch (item) {
    case RULES_SRC:
    case RULES_SRC_PORT:
    case RULES_DST:
    case RULES_DST_PORT:
    case RULES_BC_SRC:
    case RULES_BC_SRC_PORT:
    case RULES_BC_DST:
    case RULES_BC_DST_PORT:
        return item_addr(s, item, out);
    case RULES_FE_NAME:
    case RULES_BE_NAME:
    case RULES_FE_ID:
    case RULES_BE_ID:
    case RULES_SRV_NAME:
    case RULES_SRV_ID:
    case RULES_SO_NAME:
    case RULES_SO_ID:
    case RULES_FE_DEFBE:
        return item_name(s, item, out);
    case RULES_FC_HTTP_MAJOR:
        return put_int(out, 1);
    case RULES_BC_HTTP_MAJOR:
        return s->server && put_int(out, 1);
    case RULES_FC_RCVD_PROXY:
        return put_bool(out, s->rcvd_proxy);
    case RULES_FC_PP_AUTHORITY:
        return put_str(out, s->pp_authority);
    case RULES_FC_PP_UNIQUE_ID:
        return put_str(out, s->pp_unique_id);
    case RULES_STRM_IS_HTTP:
        return put_bool(out, s->http);
    case RULES_BC_REUSED:
        return s->txn && put_bool(out, s->txn->reused);
    case RULES_HTTP_FIRST_REQ:
        return put_bool(out, s->request_count <= 1);
    case RULES_UNIQUE_ID:
        return s->txn && put_str(out, session_unique_id(s));
    case RULES_PAYLOAD_REQ:
    case RULES_PAYLOAD_RES:
    case RULES_REQ_BODY_LEN:
    case RULES_RES_BODY_LEN:
        return item_payload(s, item, out);
    case RULES_FE_CLIENT_TIMEOUT:
    case RULES_BE_SERVER_TIMEOUT:
    case RULES_BE_TUNNEL_TIMEOUT:
        return item_timeout(s, item, out);
    default:
        return process_item(s->worker, item, out) || item_tls(s, item, out);
    }
}

/* --- counters ---------------------------------------------------------------------------- */

static bool count_server(struct session *s, enum rules_count what, struct server *server, struct sample *out)
{
    if (!server)
        server = s->txn ? s->txn->server : NULL;
    if (!server)
        return false;
    switch (what) {
    case RULES_SRV_IS_UP:
        return put_bool(out, server_is_usable(server));
    case RULES_SRV_CONN:
        return put_int(out, atomic_load(&server->served));
    case RULES_SRV_QUEUE:
        return put_int(out, atomic_load(&server->queued));
    case RULES_SRV_WEIGHT:
        return put_int(out, atomic_load(&server->weight));
    case RULES_SRV_CONN_FREE:
        return put_int(out, server->cfg->maxconn
                                ? (int64_t)server->cfg->maxconn - (int64_t)atomic_load(&server->served)
                                : -1);
    default:
        return false;
    }
}

/* Sessions and free places over a backend's usable servers; -1 when one of them has no limit. */
static int64_t count_slots(const struct proxy *p, bool with_queue)
{
    int64_t free_slots = 0;

    for (int i = 0; i < p->server_count; i++) {
        const struct server *server = p->servers[i];

        if (!server_is_usable(server))
            continue;
        if (server->cfg->maxconn == 0 || (with_queue && server->cfg->maxqueue == 0))
            return -1;
        free_slots += (int64_t)server->cfg->maxconn - (int64_t)atomic_load(&server->served);
        if (with_queue)
            free_slots += (int64_t)server->cfg->maxqueue - (int64_t)atomic_load(&server->queued);
    }
    return free_slots;
}

static int64_t count_queue(const struct proxy *p)
{
    int64_t n = atomic_load(&p->queued);

    for (int i = 0; i < p->server_count; i++)
        n += atomic_load(&p->servers[i]->queued);
    return n;
}

static bool host_count(void *stream, enum rules_count what, void *object, struct sample *out)
{
    struct session *s = stream;
    struct proxy *p = object, *current = s->txn && s->txn->backend ? s->txn->backend : s->frontend;
    unsigned usable;

    if (what >= RULES_SRV_IS_UP && what <= RULES_SRV_SESS_RATE)
        return count_server(s, what, object, out);
    if (what == RULES_SRV_CONN_FREE)
        return count_server(s, what, object, out);
    if (!p)
        p = what == RULES_FE_CONN || what == RULES_FE_SESS_RATE || what == RULES_FE_REQ_RATE ? s->frontend : current;
    switch (what) {
    case RULES_NBSRV:
        return put_int(out, balance_usable(p));
    case RULES_BE_CONN:
    case RULES_FE_CONN:
        return put_int(out, proxy_current(p->app, p, what == RULES_BE_CONN));
    case RULES_BE_SESS_RATE:
    case RULES_FE_SESS_RATE:
    case RULES_FE_REQ_RATE:
        return put_int(out, atomic_load(&p->rates[what == RULES_BE_SESS_RATE   ? PROXY_RATE_BACKEND
                                                  : what == RULES_FE_REQ_RATE ? PROXY_RATE_REQUESTS
                                                                              : PROXY_RATE_SESSIONS]));
    case RULES_QUEUE:
        return put_int(out, count_queue(p));
    case RULES_AVG_QUEUE:
        usable = balance_usable(p);
        return put_int(out, usable ? (count_queue(p) + usable - 1) / usable : count_queue(p));
    case RULES_CONNSLOTS:
        return put_int(out, count_slots(p, true));
    case RULES_BE_CONN_FREE:
        return put_int(out, count_slots(p, false));
    default:
        return false;
    }
}

static const struct rules_log *host_log(void *stream)
{
    return session_log_facts(stream);
}

/* set-src and the like: for the rules and logs that follow, and for what the server is told. */
static bool host_set(void *stream, enum rules_item item, const struct sample *value)
{
    struct session *s = stream;
    struct addr *a = item == RULES_SRC || item == RULES_SRC_PORT ? &s->src : &s->dst;
    struct addr unused;
    uint16_t port;

    if (a == &s->dst && session_dst(s, &unused) != 0)
        return false;
    if (item == RULES_SRC || item == RULES_DST) {
        if (value->type != SAMPLE_ADDR)
            return false;
        port = addr_port(a);
        *a = value->u.a;
        addr_set_port(a, port);
        return true;
    }
    if (value->type != SAMPLE_INT || value->u.i < 0 || value->u.i > 65535)
        return false;
    addr_set_port(a, (uint16_t)value->u.i);
    return true;
}

const struct rules_host session_rules_host = {
    .item = host_item, .count = host_count, .log = host_log, .set = host_set};
