/*
 * One run of a health check: a script's steps over sockets, without ever waiting.
 *
 *   connect -> PROXY header, TLS -> send -> expect -> … -> result
 */
#include "proxy/check_internal.h"

#include "base/clock.h"
#include "io/proxy_header.h"
#include "rules/value.h"

#include <errno.h>
#include <stdlib.h>

#define RUN_ARENA_LIMIT (1u << 20)
#define TEXT_BYTES 2048 /* of a message before it is cut */

/* --- ends --------------------------------------------------------------------------------- */

/*
 * A connection that has served its purpose is reset, so that checks leave nothing behind in TIME_WAIT;
 * not so where the other side would notice: TLS, an answered HTTP request, and "linger".
 */
static void close_connection(struct check *c)
{
    bool gentle = c->connected_by && c->connected_by->linger;

    conn_close(&c->conn, !(gentle || c->layer6 || c->has_response));
}

static void free_buffer(struct buf *b)
{
    free(b->mem);
    *b = (struct buf){0};
}

static void release_run(struct check *c)
{
    close_connection(c);
    io_timer_cancel(&c->timer);
    free_buffer(&c->in);
    free_buffer(&c->out);
    free_buffer(&c->body);
    c->raw = (struct buf){0};
    arena_release(&c->arena);
    arena_release(&c->scratch);
    c->vars.first = NULL;
    c->has_response = false;
    c->phase = CHECK_IDLE;
}

void check_run_abort(struct check *c)
{
    if (c->phase == CHECK_IDLE)
        return;
    release_run(c);
}

void check_run_end(struct check *c, enum check_code code, int status_code, struct str info)
{
    struct check_outcome o = {.code = code, .status_code = status_code};

    o.duration_ms = (int64_t)(clock_now_us() - c->begin_us) / 1000;
    check_info_set(o.info, info);
    release_run(c);
    check_run_ended(c, &o);
}

/* Without memory nothing can be said about the server. */
static void run_impossible(struct check *c)
{
    release_run(c);
    check_run_ended(c, NULL);
}

/* --- where it happened ------------------------------------------------------------------------ */

static void put_step_name(const struct check_step *step, struct buf *b)
{
    static const char *const patterns[] = {
        [CHECK_MATCH_STRING_FMT] = "log-format string",
        [CHECK_MATCH_REGEX] = "regex",
        [CHECK_MATCH_BINARY_FMT] = "log-format binary",
        [CHECK_MATCH_BINARY_REGEX] = "binary regex",
    };
    const struct check_expect *e = &step->u.expect;

    if (step->kind == CHECK_STEP_SEND)
        buf_put(b, STR("send"));
    else if (step->kind == CHECK_STEP_CONNECT && step->u.connect.port)
        buf_printf(b, "connect port %u", step->u.connect.port);
    else if (step->kind == CHECK_STEP_CONNECT)
        buf_put(b, STR("connect"));
    else if (e->match == CHECK_MATCH_STRING || e->match == CHECK_MATCH_BINARY)
        buf_printf(b, "expect %s '%.*s'", e->match == CHECK_MATCH_STRING ? "string" : "binary",
                   STR_FMT(e->shown));
    else
        buf_printf(b, "expect %s", patterns[e->match] ? patterns[e->match] : "response");
}

/* " at step 2 of tcp-check (expect string 'bye') comment: 'c'", for scripts that a user wrote. */
static void put_location(const struct check *c, struct buf *b)
{
    const struct check_step *step = check_step_now(c);

    if (c->script->type != CFG_CHECK_TCP_SCRIPT || !c->script->has_rules)
        return;
    if (!step->number) {
        buf_put(b, STR(" at initial connection step of tcp-check"));
        return;
    }
    buf_printf(b, " at step %u of tcp-check (", step->number);
    put_step_name(step, b);
    buf_put_char(b, ')');
    if (step->comment)
        buf_printf(b, " comment: '%s'", step->comment);
}

/* Errors that the peer or the network answered with have a name; the others are ours. */
static void put_errno(struct buf *b, int error)
{
    switch (error) {
    case 0:
        return;
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case EHOSTUNREACH:
    case ETIMEDOUT:
    case EPIPE:
        buf_printf(b, "%s returned by OS (%s)", strerrorname_np(error), strerrordesc_np(error));
        return;
    default:
        buf_printf(b, "General socket error (%s)",
                   strerrordesc_np(error) ? strerrordesc_np(error) : "unknown");
    }
}

static void end_here(struct check *c, enum check_code code, const char *what, int error)
{
    char text[TEXT_BYTES];
    struct buf b = {.mem = text, .size = sizeof(text)};

    if (what)
        buf_put(&b, str_of(what));
    else
        put_errno(&b, error);
    put_location(c, &b);
    check_run_end(c, code, 0, buf_str(&b));
}

void check_run_broken(struct check *c, enum check_code code)
{
    end_here(c, code, NULL, c->conn.sock.error);
}

void check_run_timeout(struct check *c)
{
    enum check_code code = CHECK_L7TOUT;

    if (c->phase == CHECK_CONNECTING || (c->phase == CHECK_HELLO && !c->conn.tls))
        code = CHECK_L4TOUT;
    else if (c->phase == CHECK_HELLO)
        code = CHECK_L6TOUT;
    else if (c->phase == CHECK_EXPECTING &&
             check_step_now(c)->u.expect.timeout_code != CHECK_UNKNOWN)
        code = check_step_now(c)->u.expect.timeout_code;
    end_here(c, code, "", 0);
}

/* --- success -------------------------------------------------------------------------------------- */

static void run_passed(struct check *c)
{
    const struct check_step *last = &c->script->steps[c->script->count - 1];
    const struct check_expect *e = last->kind == CHECK_STEP_EXPECT ? &last->u.expect : NULL;
    enum check_code code = c->layer7 ? CHECK_L7OK : c->layer6 ? CHECK_L6OK : CHECK_L4OK;
    int status_code = c->has_response ? c->response.status : 0;
    struct str info = STR_NULL;
    struct rules_ctx ctx;
    struct sample value;

    if (c->script->type == CFG_CHECK_TCP_SCRIPT && c->script->has_rules)
        info = STR("(tcp-check)");
    if (e) {
        ctx = check_rules_ctx(c);
        if (e->ok_code != CHECK_UNKNOWN)
            code = e->ok_code;
        if (e->on_success)
            info = rules_fmt_str(e->on_success, &ctx);
        if (e->status_code && rules_expr_eval(e->status_code, &ctx, &value) &&
            value_cast(&value, VALUE_INT, ctx.arena))
            status_code = (int)value.u.i;
    }
    check_run_end(c, code, status_code, info);
}

/* --- connect --------------------------------------------------------------------------------------- */

static void check_event(struct io_sock *sock, unsigned events);

static int connect_address(struct check *c, const struct check_connect *how, struct addr *out)
{
    uint16_t port = addr_port(&c->address);
    struct sample value;

    *out = how->has_address ? how->address : c->address;
    if (out->u.sa.sa_family == AF_UNIX)
        return 0;
    if (how->port) {
        port = how->port;
    } else if (how->port_expr) {
        struct rules_ctx ctx = check_rules_ctx(c);

        if (!rules_expr_eval(how->port_expr, &ctx, &value) ||
            !value_cast(&value, VALUE_INT, ctx.arena) || value.u.i < 1 || value.u.i > 65535)
            return SP_EINVAL;
        port = (uint16_t)value.u.i;
    } else if (how->has_address && addr_port(&how->address)) {
        port = addr_port(&how->address);
    }
    addr_set_port(out, port);
    return 0;
}

/* "timeout check" adds to the time for connecting, which is the shorter of "timeout connect" and "inter". */
static void arm_connect(struct check *c)
{
    const struct cfg_proxy *cfg = c->server->backend->cfg;
    uint64_t patience_us = c->inter_us;

    if (cfg->timeout_check_us == CFG_UNSET)
        return;
    if (cfg->timeout_connect_us != CFG_UNSET && (uint64_t)cfg->timeout_connect_us < patience_us)
        patience_us = (uint64_t)cfg->timeout_connect_us;
    c->deadline_us = io_loop_refresh_now(c->loop) + patience_us;
}

static bool begin_connect(struct check *c)
{
    const struct check_connect *how = &check_step_now(c)->u.connect;
    const struct addr *from = &c->server->source;
    struct addr to;

    close_connection(c);
    c->connected_by = how;
    c->layer6 = c->complete = c->has_response = c->eof = false;
    c->conn = (struct conn){0};
    io_sock_init(&c->conn.sock, c->loop, -1, check_event);
    buf_clear(&c->in);
    if (connect_address(c, how, &to) != 0) {
        end_here(c, CHECK_L4CON, "the expression of the port has no valid value", 0);
        return false;
    }
    arm_connect(c);
    if (from->u.sa.sa_family != to.u.sa.sa_family)
        from = NULL;
    if (c->conn.sock.transport->connect(&c->conn.sock, &to, from) != 0) {
        check_run_broken(c, CHECK_L4CON);
        return false;
    }
    c->phase = CHECK_CONNECTING;
    return true;
}

/* Health checks speak for nobody: version 2 says LOCAL, version 1 names the check's own addresses. */
static void prepare_header(struct check *c)
{
    struct addr src = {0}, dst = {0};
    ptrdiff_t n;

    c->hello_rest = STR_NULL;
    if (!c->connected_by->send_proxy && !(c->connected_by->use_server && c->send_proxy))
        return;
    c->conn.sock.transport->local_addr(&c->conn.sock, &src);
    c->conn.sock.transport->peer_addr(&c->conn.sock, &dst);
    if (c->server->pp_v2)
        n = io_proxy_header_v2((uint8_t *)c->hello, sizeof(c->hello), &src, &dst, true, NULL);
    else
        n = io_proxy_header_v1(c->hello, sizeof(c->hello), &src, &dst);
    if (n > 0)
        c->hello_rest = str_make(c->hello, (size_t)n);
}

/* We speak HTTP/1 in checks: "h2" is not offered for them. */
static const char *offered_alpn(struct check *c, const char *alpn)
{
    struct str rest = str_of(alpn), item;
    struct buf b = {.mem = arena_alloc(&c->arena, rest.len + 1), .size = (uint32_t)rest.len + 1};

    if (c->script->type != CFG_CHECK_HTTP)
        return alpn;
    if (!alpn)
        return c->server->cfg->ssl.alpn ? "http/1.1" : NULL;
    if (!b.mem)
        return "http/1.1";
    while (http_list_next(&rest, &item)) {
        if (str_eq(item, STR("h2")))
            continue;
        if (buf_len(&b))
            buf_put_char(&b, ',');
        buf_put(&b, item);
    }
    b.mem[buf_len(&b)] = '\0';
    return buf_len(&b) ? b.mem : "http/1.1";
}

static bool prepare_tls(struct check *c)
{
    const struct check_connect *how = c->connected_by;
    const struct cfg_server *cfg = c->server->cfg;
    const char *sni = how->sni ? how->sni : how->use_server ? cfg->check_sni : NULL;
    const char *alpn = how->alpn ? how->alpn : how->use_server ? cfg->check_alpn : NULL;

    if (!how->tls && !(how->use_server && c->tls))
        return true;
    if (!c->tls_slot && !cfg->ssl.no_ssl_reuse)
        c->tls_slot = tls_session_slot_new();
    c->conn.tls = tls_conn_new_client(c->tls_worker, c->server->tls, &c->conn.sock, sni,
                                      offered_alpn(c, alpn), c->tls_slot);
    return c->conn.tls != NULL;
}

static enum check_progress step_connecting(struct check *c)
{
    const struct cfg_proxy *cfg = c->server->backend->cfg;
    int rc = c->conn.sock.transport->connect_result(&c->conn.sock);

    if (rc == SP_EAGAIN)
        return CHECK_WAIT;
    if (rc != 0) {
        check_run_broken(c, CHECK_L4CON);
        return CHECK_RUN_OVER;
    }
    if (cfg->timeout_check_us != CFG_UNSET)
        c->deadline_us = io_loop_refresh_now(c->loop) + (uint64_t)cfg->timeout_check_us;
    prepare_header(c);
    if (!prepare_tls(c)) {
        run_impossible(c);
        return CHECK_RUN_OVER;
    }
    c->phase = CHECK_HELLO;
    return CHECK_GO_ON;
}

static void handshake_failed(struct check *c, int rc)
{
    char text[TEXT_BYTES];
    struct buf b = {.mem = text, .size = sizeof(text)};
    const char *why = tls_conn_error_text(c->conn.tls);

    if (rc != SP_EPROTO)
        buf_put(&b, STR("Connection closed during SSL handshake"));
    else if (why && *why)
        buf_printf(&b, "SSL handshake failure (%s)", why);
    else
        buf_put(&b, STR("SSL handshake failure"));
    put_location(c, &b);
    check_run_end(c, CHECK_L6RSP, 0, buf_str(&b));
}

static enum check_progress step_hello(struct check *c)
{
    int rc;

    while (c->hello_rest.len) {
        struct iovec iov = {(void *)(uintptr_t)c->hello_rest.ptr, c->hello_rest.len};
        ptrdiff_t n = io_sock_sendv(&c->conn.sock, &iov, 1, false);

        if (n == SP_EAGAIN)
            return CHECK_WAIT;
        if (n < 0) {
            check_run_broken(c, CHECK_SOCKERR);
            return CHECK_RUN_OVER;
        }
        c->hello_rest = str_from(c->hello_rest, (size_t)n);
    }
    if (!c->conn.tls)
        return CHECK_STEP_DONE;
    rc = tls_conn_handshake(c->conn.tls);
    if (rc == SP_EWANTREAD || rc == SP_EWANTWRITE || rc == SP_EWANTCRYPTO)
        return CHECK_WAIT;
    if (rc != 0) {
        handshake_failed(c, rc);
        return CHECK_RUN_OVER;
    }
    c->layer6 = true;
    return CHECK_STEP_DONE;
}

/* --- send ------------------------------------------------------------------------------------------- */

static int compose_tcp(struct check *c, const struct check_send *send, struct rules_ctx *ctx)
{
    struct str data = send->fmt ? rules_fmt_str(send->fmt, ctx) : send->data;
    ptrdiff_t n;

    if (!send->fmt || !send->hex)
        return buf_put(&c->out, data);
    if (data.len / 2 > buf_room(&c->out))
        return SP_ETOOBIG;
    n = check_hex_decode(data, buf_end(&c->out));
    if (n < 0)
        return SP_EINVAL;
    buf_commit(&c->out, (size_t)n);
    return 0;
}

static int compose_http(struct check *c, const struct check_send *send, struct rules_ctx *ctx)
{
    char text[1024];
    struct buf state = {.mem = text, .size = sizeof(text)};

    c->method = http_method_of(send->method);
    c->has_response = c->complete = false;
    c->scan = (struct h1_scan){0};
    http_msg_init(&c->response, &c->arena);
    if (c->script->send_state)
        check_http_state(c, &state);
    return check_http_request(send, ctx, buf_str(&state), &c->out);
}

static bool begin_send(struct check *c)
{
    const struct check_send *send = &check_step_now(c)->u.send;
    struct rules_ctx ctx = check_rules_ctx(c);
    int rc;

    if (!check_buffers(c)) {
        run_impossible(c);
        return false;
    }
    c->layer7 = true;
    buf_clear(&c->in);
    buf_clear(&c->out);
    buf_clear(&c->body);
    arena_reset(&c->scratch);
    rc = send->http ? compose_http(c, send, &ctx) : compose_tcp(c, send, &ctx);
    if (rc == 0) {
        c->phase = CHECK_SENDING;
        return true;
    }
    if (rc == SP_ENOMEM)
        run_impossible(c);
    else
        end_here(c, CHECK_SOCKERR,
                 rc == SP_ETOOBIG ? "the request is larger than tune.bufsize"
                                  : "log-format string evaluated to an invalid binary string",
                 0);
    return false;
}

static enum check_progress step_sending(struct check *c)
{
    int rc;

    while (buf_len(&c->out)) {
        struct iovec iov = {buf_data(&c->out), buf_len(&c->out)};
        ptrdiff_t n = conn_sendv(&c->conn, &iov, 1, false);

        if (n == SP_EAGAIN)
            return CHECK_WAIT;
        if (n < 0) {
            check_run_broken(c, CHECK_SOCKERR);
            return CHECK_RUN_OVER;
        }
        buf_consume(&c->out, (size_t)n);
    }
    rc = conn_flush(&c->conn);
    if (rc == SP_EAGAIN)
        return CHECK_WAIT;
    if (rc != 0) {
        check_run_broken(c, CHECK_SOCKERR);
        return CHECK_RUN_OVER;
    }
    return CHECK_STEP_DONE;
}

/* --- the machine ----------------------------------------------------------------------------------------- */

/* False: the run is over. */
static bool next_step(struct check *c)
{
    if (c->step + 1 == c->script->count) {
        run_passed(c);
        return false;
    }
    c->step++;
    switch (check_step_now(c)->kind) {
    case CHECK_STEP_CONNECT:
        return begin_connect(c);
    case CHECK_STEP_SEND:
        return begin_send(c);
    default:
        if (!check_buffers(c)) {
            run_impossible(c);
            return false;
        }
        c->layer7 = true;
        c->phase = CHECK_EXPECTING;
        return true;
    }
}

static enum check_progress one_step(struct check *c)
{
    switch (c->phase) {
    case CHECK_CONNECTING:
        return step_connecting(c);
    case CHECK_HELLO:
        return step_hello(c);
    case CHECK_SENDING:
        return step_sending(c);
    case CHECK_EXPECTING:
        return check_expect_run(c);
    default:
        return CHECK_RUN_OVER;
    }
}

static void advance(struct check *c)
{
    enum check_progress progress;

    do {
        progress = one_step(c);
        if (progress == CHECK_STEP_DONE)
            progress = next_step(c) ? CHECK_GO_ON : CHECK_RUN_OVER;
    } while (progress == CHECK_GO_ON);
    if (progress == CHECK_RUN_OVER)
        return;
    if (conn_watch(&c->conn) != 0) {
        check_run_broken(c, CHECK_SOCKERR);
        return;
    }
    if (c->timer.deadline_us != c->deadline_us)
        io_timer_set(c->loop, &c->timer, c->deadline_us);
}

static void check_event(struct io_sock *sock, unsigned events)
{
    struct check *c = LIST_ENTRY(sock, struct check, conn.sock);

    (void)events;
    if (c->phase != CHECK_IDLE)
        advance(c);
}

void check_run_begin(struct check *c)
{
    arena_init(&c->arena, 4096, RUN_ARENA_LIMIT);
    arena_init(&c->scratch, 4096, RUN_ARENA_LIMIT);
    c->begin_us = clock_now_us();
    c->deadline_us = io_loop_refresh_now(c->loop) + c->inter_us; /* the turn may have been long */
    c->conn = (struct conn){.sock = {.watch = {.fd = -1}, .transport = &io_kernel_transport}};
    c->connected_by = NULL;
    c->layer6 = c->layer7 = c->complete = c->has_response = false;
    c->step = 0;
    if (begin_connect(c))
        advance(c);
}
