/*
 * The request: reading its head, running the rules, choosing a backend, and
 * rewriting the head for the server. RFC 9112, RFC 9110 section 7.6.
 */
#include "proxy/compress.h"
#include "proxy/session.h"

/* --- rules -------------------------------------------------------------------- */

enum rules_verdict session_run_rules(struct session *s, const struct proxy *p, enum rules_hook hook)
{
    const struct rules_set *set = proxy_rules(p, hook, s->tls);

    if (rules_set_is_empty(set))
        return RULES_CONTINUE;
    return rules_set_run(set, &s->txn->rules, &s->txn->outcome);
}

static enum step request_internal_error(struct session *s)
{
    session_fe(s)->internal_errors++;
    session_fail(s, 'I', 'R');
    return session_reply_error(s, 500);
}

/* Acts on a verdict of request rules. True: evaluation goes on; false: *step says what happens. */
static bool request_obey(struct session *s, enum rules_verdict verdict, enum step *step)
{
    struct txn *t = s->txn;

    *step = STEP_AGAIN;
    switch (verdict) {
    case RULES_CONTINUE:
    case RULES_ALLOW:
    case RULES_SWITCH_HTTP:
        return true;
    case RULES_NEED_MORE:
        return true;
    case RULES_DENY:
        session_fe(s)->denied_requests++;
        session_fail(s, 'P', 'R');
        *step = session_reply(s, &t->outcome.reply);
        return false;
    case RULES_TARPIT:
        session_fe(s)->denied_requests++;
        session_fail(s, 'P', 'T');
        s->state = SESSION_TARPIT;
        return false;
    case RULES_REPLY:
        session_fail(s, 'L', 'R');
        *step = session_reply(s, &t->outcome.reply);
        return false;
    case RULES_SILENT_DROP:
        session_fe(s)->denied_requests++;
        session_fail(s, 'P', 'R');
        session_destroy(s, true);
        return false;
    case RULES_REJECT:
        session_fe(s)->denied_requests++;
        session_fail(s, 'P', 'R');
        session_destroy(s, false);
        return false;
    case RULES_ERROR:
        break;
    }
    *step = request_internal_error(s);
    return false;
}

enum step session_step_tarpit(struct session *s)
{
    int64_t tarpit_us = session_timeout_tarpit(s);

    if (tarpit_us > 0 && session_now(s) < s->txn->request_done_us + (uint64_t)tarpit_us)
        return STEP_WAIT;
    return session_reply(s, &s->txn->outcome.reply);
}

/* --- captures -------------------------------------------------------------------- */

void session_capture(struct session *s, bool response)
{
    const struct proxy *fe = s->frontend;
    const struct capture *captures = response ? fe->res_captures : fe->req_captures;
    struct str *values = response ? s->txn->rules.res_captures : s->txn->rules.req_captures;
    const struct http_msg *m = response ? &s->txn->res : &s->txn->req;
    int count = response ? fe->res_capture_count : fe->req_capture_count;

    for (int i = 0; i < count; i++) {
        const struct http_field *last = NULL, *f;
        uint32_t at = 0;

        if (captures[i].header.len == 0)
            continue;
        while ((f = http_msg_next(m, captures[i].header, &at)))
            last = f;
        if (last) {
            struct str v = last->value;

            if (v.len > captures[i].len)
                v.len = captures[i].len;
            values[i] = arena_str(&s->txn->arena, v);
        }
    }
}

/* "capture cookie": the name=value pair of the first cookie that begins so. */
static void request_capture_cookie(struct session *s)
{
    const struct proxy *fe = s->frontend;
    struct http_field *f;
    uint32_t at = 0;

    while ((f = http_msg_next(&s->txn->req, STR("cookie"), &at))) {
        struct str rest = f->value, name, value;

        while (http_cookie_next(&rest, &name, &value)) {
            struct str pair = {name.ptr, (size_t)(value.ptr + value.len - name.ptr)};

            if (!str_starts(pair, fe->capture_cookie))
                continue;
            if (pair.len > fe->capture_cookie_len)
                pair.len = fe->capture_cookie_len;
            s->txn->captured_cookie_req = arena_str(&s->txn->arena, pair);
            return;
        }
    }
}

/* --- our own answers --------------------------------------------------------------- */

static bool request_is_monitor(const struct session *s)
{
    const char *uri = s->frontend->cfg->monitor_uri;
    struct http_target target;

    if (!uri)
        return false;
    if (uri[0] != '/')
        return str_eq(s->txn->req.target, str_of(uri));
    http_target_split(s->txn->req.target, &target);
    return str_eq(target.path, str_of(uri));
}

static enum step request_monitor(struct session *s)
{
    const struct proxy *fe = s->frontend;
    struct rules_reply *reply = &s->txn->outcome.reply;

    session_fail(s, 'L', 'R');
    for (int i = 0; i < fe->monitor_fail_count; i++)
        if (rules_cond_eval(fe->monitor_fails[i], &s->txn->rules))
            return session_reply_error(s, 503);
    s->txn->no_log = true; /* as HAProxy: probes are not logged */
    memset(reply, 0, sizeof(*reply));
    reply->status = 200;
    reply->content_type = STR("text/html");
    reply->body = STR("<html><body><h1>200 OK</h1>\nService ready.\n</body></html>\n");
    return session_reply(s, reply);
}

/* True when the request is for the statistics page of `p`; then *step says what happens. */
static bool request_stats(struct session *s, struct proxy *p, enum step *step)
{
    const struct cfg_stats *stats = &p->cfg->stats;
    struct app *app = s->worker->app;
    struct rules_reply *reply = &s->txn->outcome.reply;

    if (!stats->enabled || !app->stats ||
        !str_starts(s->txn->req.target, str_of(stats->uri ? stats->uri : "/haproxy?stats")))
        return false;
    memset(reply, 0, sizeof(*reply));
    if (app->stats(app, p, &s->txn->req, &s->txn->arena, reply) != 0) {
        *step = request_internal_error(s);
        return true;
    }
    session_fail(s, 'L', 'R');
    s->txn->stats = true;
    *step = session_reply(s, reply);
    return true;
}

/* --- choosing the backend ------------------------------------------------------------ */

struct proxy *session_choose_backend(struct session *s)
{
    const struct proxy *fe = s->frontend;
    struct txn *t = s->txn;

    for (int i = 0; i < fe->use_backend_count; i++) {
        const struct use_backend *u = &fe->use_backends[i];
        struct proxy *named;

        if (u->fold[s->tls] < 0)
            continue;
        if (u->fold[s->tls] == 0 && !rules_cond_eval(u->cond, &t->rules))
            continue;
        if (u->backend)
            return u->backend;
        named = map_get(&s->worker->app->backends, rules_fmt_str(u->name, &t->rules));
        if (named)
            return named;
        break; /* a computed name that no backend has: the default, as HAProxy */
    }
    if (fe->default_backend)
        return fe->default_backend;
    return fe->cfg->is_backend ? s->frontend : NULL;
}

void session_set_backend(struct session *s, struct proxy *backend)
{
    struct txn *t = s->txn;
    struct proxy_counters *be;

    t->backend = backend;
    t->retries_left = (unsigned)(t->outcome.retries >= 0 ? t->outcome.retries : backend->cfg->retries);
    be = session_be(s);
    t->counted_backend = true;
    be->be_sessions++;
    be->be_current++;
    if (be->be_current > be->be_current_max)
        be->be_current_max = be->be_current;
}

/* Rules of one proxy on a request: http-request, the statistics page, redirect. */
static bool request_proxy_rules(struct session *s, struct proxy *p, enum step *step)
{
    return request_obey(s, session_run_rules(s, p, RULES_HTTP_REQUEST), step) &&
           !request_stats(s, p, step) && request_obey(s, session_run_rules(s, p, RULES_REDIRECT), step);
}

static enum step request_route(struct session *s)
{
    struct proxy *fe = s->frontend, *be;
    struct txn *t = s->txn;
    enum step step;

    if (!s->upgraded) {
        if (request_is_monitor(s))
            return request_monitor(s);
        if (fe->unique_id && fe->unique_id_header.len &&
            http_msg_add(&t->req, fe->unique_id_header, session_unique_id(s)) != 0)
            return request_internal_error(s);
        if (!request_proxy_rules(s, fe, &step))
            return step;
    }
    be = session_choose_backend(s);
    if (!be || !be->is_http) {
        session_fail(s, 'S', 'C');
        return session_reply_error(s, 503);
    }
    session_set_backend(s, be);
    if ((be != fe || s->upgraded) && !request_proxy_rules(s, be, &step))
        return step;
    return session_forward_request(s);
}

/* --- towards the server -------------------------------------------------------------------- */

/* X-Forwarded-For and X-Original-To; "if-none" counts only where every section that asks says so. */
static int request_add_address(struct session *s, const struct cfg_forwardfor *fe, const struct cfg_forwardfor *be,
                               const struct addr *a)
{
    const struct cfg_forwardfor *use = be->enabled ? be : fe;
    bool if_none = (!fe->enabled || fe->if_none) && (!be->enabled || be->if_none);
    struct http_msg *m = &s->txn->req;
    struct str name;
    uint32_t at = 0;
    char text[ADDR_TEXT_BYTES];
    size_t len;

    if (!fe->enabled && !be->enabled)
        return 0;
    if (a->u.sa.sa_family != AF_INET && a->u.sa.sa_family != AF_INET6)
        return 0;
    name = str_of(use->header);
    if (if_none && http_msg_next(m, name, &at))
        return 0;
    if ((fe->enabled && fe->has_except && addr_net_contains(&fe->except, a)) ||
        (be->enabled && be->has_except && addr_net_contains(&be->except, a)))
        return 0;
    len = addr_host_text(a, text);
    return http_msg_add(m, name, arena_str(&s->txn->arena, str_make(text, len)));
}

/* Connection management of both sides, decided once per exchange. */
static int request_set_connection(struct session *s)
{
    struct txn *t = s->txn;
    struct http_msg *m = &t->req;
    const struct cfg_proxy *fe = s->frontend->cfg, *be = t->backend->cfg;
    bool upgrade = (m->flags & HTTP_MSG_CONN_UPGRADE) != 0;
    bool server_close = be->conn_mode != CFG_CONN_KEEP_ALIVE || (fe->conn_mode != CFG_CONN_KEEP_ALIVE && !s->upgraded);

    t->upgrade = upgrade || m->method == HTTP_CONNECT;
    if (fe->conn_mode == CFG_CONN_CLOSE || be->conn_mode == CFG_CONN_CLOSE)
        t->keep_client = false;
    t->keep_server = !server_close;
    http_msg_strip_hop_by_hop(m);
    if (upgrade)
        return http_msg_add(m, STR("Connection"), STR("upgrade"));
    http_msg_del_id(m, HTTP_FIELD_UPGRADE);
    if (server_close)
        return http_msg_add(m, STR("Connection"), STR("close"));
    if (m->version < 11)
        return http_msg_add(m, STR("Connection"), STR("keep-alive"));
    return 0;
}

struct str session_write_head(struct session *s, const struct http_msg *m)
{
    size_t bytes = h1_head_bytes(m);
    struct buf out = {.mem = arena_alloc(&s->txn->arena, bytes), .size = (uint32_t)bytes};

    if (!out.mem || h1_write_head(&out, m) != 0)
        return STR_NULL;
    return buf_str(&out);
}

enum step session_forward_request(struct session *s)
{
    struct txn *t = s->txn;
    struct http_msg *m = &t->req;
    const struct proxy *fe = s->frontend, *be = t->backend;
    const struct http_field *accept;
    struct addr dst;

    if (cookie_parse_request(be, m, session_assign_by_rule(s), io_loop_wall(s->worker->loop), &t->cookie) != 0)
        return request_internal_error(s);
    if (request_add_address(s, &fe->cfg->forwardfor, &be->cfg->forwardfor, &s->src) != 0)
        return request_internal_error(s);
    if ((fe->cfg->originalto.enabled || be->cfg->originalto.enabled) &&
        (session_dst(s, &dst) != 0 ||
         request_add_address(s, &fe->cfg->originalto, &be->cfg->originalto, &dst) != 0))
        return request_internal_error(s);
    if (be != fe && be->unique_id && be->unique_id_header.len && !fe->unique_id &&
        http_msg_add(m, be->unique_id_header, session_unique_id(s)) != 0)
        return request_internal_error(s);
    accept = http_msg_find(m, HTTP_FIELD_ACCEPT_ENCODING);
    t->accept_encoding = accept ? accept->value : STR_NULL;
    if (compress_offload(fe, be, m))
        http_msg_del_id(m, HTTP_FIELD_ACCEPT_ENCODING);
    if (request_set_connection(s) != 0)
        return request_internal_error(s);
    t->request_head = session_write_head(s, m);
    if (!t->request_head.ptr)
        return request_internal_error(s);
    t->replayable = true;
    s->state = SESSION_ASSIGN;
    return STEP_AGAIN;
}

/* --- reading ----------------------------------------------------------------------------------- */

/* The client closed or went silent before a whole head had come. */
static enum step request_client_ended(struct session *s, ptrdiff_t why)
{
    struct txn *t = s->txn;
    bool nothing = !t->first_byte_us;

    if (nothing && (s->request_count > 1 || s->frontend->cfg->http_ignore_probes)) {
        t->no_log = true;
        session_destroy(s, false);
        return STEP_WAIT;
    }
    if (nothing && s->frontend->cfg->dontlognull)
        t->no_log = true;
    session_fail(s, 'C', 'R');
    t->bad_request = true;
    session_fe(s)->request_errors++;
    if (nothing || why == SP_ERESET || why == SP_EPROTO) {
        session_destroy(s, false);
        return STEP_WAIT;
    }
    return session_reply_error(s, 400);
}

static enum step request_refused(struct session *s, int rc, enum h1_error error)
{
    struct txn *t = s->txn;

    t->bad_request = true;
    t->keep_client = false;
    session_fe(s)->request_errors++;
    session_fe(s)->smuggling_refused++;
    session_fail(s, 'P', 'R');
    if (rc == SP_ENOMEM)
        return request_internal_error(s);
    session_log_refusal(s, false, error);
    return session_reply_error(s, h1_error_status(error));
}

/* A complete head stands at the front of the buffer. */
static enum step request_head_done(struct session *s, size_t head_bytes)
{
    struct txn *t = s->txn;
    struct http_msg *m = &t->req;

    t->request_done_us = session_now(s);
    t->version = m->version;
    t->keep_client = m->version >= 11 ? !(m->flags & HTTP_MSG_CONN_CLOSE)
                                      : (m->flags & HTTP_MSG_CONN_KEEP_ALIVE) != 0;
    t->method = m->method_text;
    t->target = m->target;
    t->rules.req = m;
    flow_pin_head(&s->req, head_bytes);
    h1_body_init(&s->req.body, m->framing, m->content_length);
    s->req.head_done = true;
    s->req.complete = h1_body_is_done(&s->req.body);
    session_fe(s)->requests++;
    /* Two lengths: RFC 9112 section 6.3 lets the coding win, but no honest client sends both. */
    if ((m->flags & HTTP_MSG_LENGTH_DROPPED) && !s->frontend->cfg->accept_invalid_http_request)
        return request_refused(s, SP_EPROTO, H1_LENGTH_AND_CODING);
    if (m->version < 11 && m->framing != HTTP_FRAMING_NONE && !s->req.complete &&
        (m->method == HTTP_GET || m->method == HTTP_HEAD || m->method == HTTP_DELETE)) {
        session_fail(s, 'P', 'R');
        return session_reply_error(s, 413);
    }
    if (s->frontend->req_capture_count)
        session_capture(s, false);
    if (s->frontend->capture_cookie.len)
        request_capture_cookie(s);
    return STEP_AGAIN;
}

/* option http-buffer-request: the body is wanted before the rules run. True while it is still incomplete. */
static bool request_wants_body(struct session *s)
{
    const struct proxy *fe = s->frontend;

    if (!fe->cfg->http_buffer_request && !(fe->default_backend && fe->default_backend->cfg->http_buffer_request))
        return false;
    if (s->req.complete)
        return false;
    if (flow_walk(&s->req) < 0)
        return false; /* the relay refuses it */
    return !s->req.complete && !s->req.eof && buf_room(&s->req.win) > 0;
}

/* Reads until a head is parsed. STEP_AGAIN with s->req.head_done: it is there. */
static enum step request_read(struct session *s)
{
    struct txn *t = s->txn;
    const struct h1_limits *limits = &s->frontend->limits;
    enum h1_error error = H1_OK;
    size_t head_bytes, error_at;
    ptrdiff_t n;
    int rc;

    for (;;) {
        if (buf_len(&s->req.win)) {
            if (!t->first_byte_us) {
                t->first_byte_us = session_now(s);
                t->request_wall_us = io_loop_wall(s->worker->loop);
            }
            rc = h1_parse_request(&s->req.scan, buf_str(&s->req.win), limits, &t->req, &head_bytes, &error, &error_at);
            if (rc == 0)
                return request_head_done(s, head_bytes);
            if (rc != SP_EAGAIN)
                return request_refused(s, rc, error);
        }
        if (flow_attach(s->worker, &s->req, false) != 0) {
            session_destroy(s, true);
            return STEP_WAIT;
        }
        n = flow_fill(&s->req, &s->client);
        if (n == SP_EAGAIN)
            return session_wait_client(s);
        if (n == SP_ETOOBIG)
            return request_refused(s, SP_ETOOBIG, H1_TOO_LARGE);
        if (n < 0)
            return request_client_ended(s, n);
        s->client_activity_us = session_now(s);
    }
}

enum step session_step_request(struct session *s)
{
    if (!s->req.head_done) {
        enum step step = request_read(s);

        if (!s->req.head_done || s->state != SESSION_REQUEST)
            return step;
    }
    while (request_wants_body(s)) {
        ptrdiff_t n = flow_fill(&s->req, &s->client);

        if (n == SP_EAGAIN)
            return session_wait_client(s);
        if (n <= 0)
            s->req.eof = true;
        s->client_activity_us = session_now(s);
    }
    return request_route(s);
}
