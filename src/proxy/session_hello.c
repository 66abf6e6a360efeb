/*
 * What a fresh server connection says before the request: PROXY header, TLS.
 */
#include "io/proxy_header.h"
#include "proxy/session.h"

bool session_server_hello_needed(const struct session *s)
{
    const struct server *server = s->txn->server;

    return server->pp_v1 || server->pp_v2 || server->tls_for_traffic;
}

static struct str hello_fact(const struct session *s, enum tls_fact fact)
{
    struct str out = STR_NULL;

    if (s->client.tls)
        tls_conn_fact(s->client.tls, fact, &s->txn->arena, &out);
    return out;
}

static void hello_fill_tlvs(struct session *s, struct io_proxy_tlvs *tlvs)
{
    const struct io_proxy_tlvs *want = s->txn->server->pp_tlvs;

    if (!want)
        return;
    *tlvs = *want;
    if (want->unique_id.ptr)
        tlvs->unique_id = session_unique_id(s);
    if (want->authority.ptr)
        tlvs->authority = hello_fact(s, TLS_FACT_SNI);
    if (want->with_tls) {
        tlvs->tls = s->client.tls != NULL;
        tlvs->tls_version = hello_fact(s, TLS_FACT_VERSION);
        tlvs->tls_cipher = want->tls_cipher.ptr ? hello_fact(s, TLS_FACT_CIPHER) : STR_NULL;
        tlvs->tls_cn = want->with_tls_cn ? hello_fact(s, TLS_FACT_PEER_CN) : STR_NULL;
        if (s->client.tls) {
            tlvs->tls_client_cert_sess = tls_conn_number(s->client.tls, TLS_NUMBER_PEER_CERT_USED) != 0;
            tlvs->tls_client_cert = tls_conn_number(s->client.tls, TLS_NUMBER_PEER_HAS_CERT) != 0;
            tlvs->tls_verify = (uint32_t)tls_conn_number(s->client.tls, TLS_NUMBER_VERIFY_RESULT);
        }
    }
}

/* The header is part of what the connection is: only this session may use it again. */
static int hello_proxy_header(struct session *s, struct server_conn *c)
{
    const struct server *server = s->txn->server;
    struct io_proxy_tlvs tlvs = {0};
    struct addr dst = {0};
    ptrdiff_t n;

    session_dst(s, &dst);
    c->is_private = true;
    if (server->pp_v1) {
        n = io_proxy_header_v1(c->pp_storage, sizeof(c->pp_storage), &s->src, &dst);
    } else {
        hello_fill_tlvs(s, &tlvs);
        c->one_request = tlvs.unique_id.ptr != NULL;
        n = io_proxy_header_v2((uint8_t *)c->pp_storage, sizeof(c->pp_storage), &s->src, &dst, false, &tlvs);
    }
    if (n < 0)
        return (int)n;
    c->pp_header = str_make(c->pp_storage, (size_t)n);
    return 0;
}

static int hello_start_tls(struct session *s, struct server_conn *c)
{
    const struct server *server = s->txn->server;
    struct idle_pool *pool = &s->worker->pools[server->index];
    struct str name;
    char *sni = NULL;

    if (server->sni && rules_expr_str(server->sni, &s->txn->rules, &name) && name.len) {
        struct str copy = arena_str(&s->txn->arena, name);

        if (!copy.ptr)
            return SP_ENOMEM;
        sni = (char *)(uintptr_t)copy.ptr;
        c->is_private = c->is_private || server->sni_varies;
    }
    if (!pool->tls_slot)
        pool->tls_slot = tls_session_slot_new();
    c->conn.tls = tls_conn_new_client(s->worker->tls, server->tls, &c->conn.sock, sni, server->cfg->ssl.alpn,
                                      server->cfg->ssl.no_ssl_reuse ? NULL : pool->tls_slot);
    return c->conn.tls ? 0 : SP_ENOMEM;
}

int session_server_hello_prepare(struct session *s)
{
    struct server_conn *c = s->server;
    int rc = 0;

    if (s->txn->server->pp_v1 || s->txn->server->pp_v2)
        rc = hello_proxy_header(s, c);
    if (rc == 0 && s->txn->server->tls_for_traffic)
        rc = hello_start_tls(s, c);
    return rc;
}

enum step session_step_server_hello(struct session *s)
{
    struct server_conn *c = s->server;
    int rc;

    if (s->client_gone) {
        session_fail(s, 'C', 'C');
        session_fe(s)->client_aborts++;
        session_destroy(s, true);
        return STEP_WAIT;
    }
    while (c->pp_header.len) {
        struct iovec iov = {(void *)(uintptr_t)c->pp_header.ptr, c->pp_header.len};
        ptrdiff_t n = io_sock_sendv(&c->conn.sock, &iov, 1, false);

        if (n == SP_EAGAIN)
            return STEP_WAIT;
        if (n < 0)
            return session_server_failed(s, 'S', 'C', 503);
        c->pp_header = str_from(c->pp_header, (size_t)n);
    }
    if (c->conn.tls) {
        rc = tls_conn_handshake(c->conn.tls);
        if (rc == SP_EWANTREAD || rc == SP_EWANTWRITE || rc == SP_EWANTCRYPTO)
            return STEP_WAIT;
        if (rc != 0)
            return session_server_failed(s, 'S', 'C', 503);
    }
    return session_connect_done(s);
}
