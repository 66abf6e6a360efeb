/*
 * Log lines: HAProxy's own, so that whatever reads them today keeps working.
 */
#include "proxy/session.h"

#include <stdarg.h>
#include <stdio.h>

/* Sampling: "log … sample RANGE:SIZE" passes those of each SIZE messages whose number is in RANGE. */
static bool log_is_sampled(struct log_target *target)
{
    const struct cfg_log *cfg = target->cfg;
    unsigned position;

    if (cfg->sample_size <= 0)
        return true;
    position = atomic_fetch_add_explicit(&target->sample_counter, 1, memory_order_relaxed) %
                   (unsigned)cfg->sample_size + 1;
    for (int i = 0; i < cfg->sample_range_count; i++)
        if (position >= (unsigned)cfg->sample_ranges[i].low && position <= (unsigned)cfg->sample_ranges[i].high)
            return true;
    return false;
}

static void log_write(struct log_target *targets, int count, enum log_level level, struct str line, const char *sd)
{
    for (int i = 0; i < count; i++)
        if (log_is_sampled(&targets[i]))
            logsink_write(targets[i].sink, level, line, sd);
}

static int64_t since(uint64_t from, uint64_t to)
{
    return from && to ? (to >= from ? (int64_t)(to - from) : 0) : -1;
}

static void log_fill_times(const struct session *s, struct rules_log *l)
{
    const struct txn *t = s->txn;
    uint64_t begin = t->first_byte_us ? t->first_byte_us : t->start_us;
    uint64_t handshake = s->request_count <= 1 && s->ready_us > s->accept_us ? s->ready_us - s->accept_us : 0;

    l->accept_wall_us = s->accept_wall_us;
    l->request_wall_us = t->request_wall_us ? t->request_wall_us : t->start_wall_us;
    l->t_handshake_us = (int64_t)handshake;
    l->t_idle_us = t->first_byte_us ? since(t->start_us, t->first_byte_us) - (int64_t)handshake : 0;
    if (l->t_idle_us < 0)
        l->t_idle_us = 0;
    l->t_request_us = t->bad_request ? -1 : since(begin, t->request_done_us);
    l->t_queue_us = since(t->request_done_us, t->assigned_us);
    if (t->queue_start_us && !t->assigned_us) /* gave up waiting */
        l->t_queue_us = since(t->request_done_us, t->end_us);
    l->t_connect_us = since(t->assigned_us, t->connected_us);
    l->t_response_us = t->replied && !t->response_us ? -1 : since(t->connected_us, t->response_us);
    l->t_data_us = since(t->response_us, t->end_us);
    l->t_active_us = since(begin, t->end_us);
    l->t_total_us = since(s->http ? t->start_us : s->accept_us, t->end_us);
    l->t_user_us = since(s->accept_us, t->end_us);
}

static void log_fill_counts(const struct session *s, struct rules_log *l)
{
    const struct app *app = s->worker->app;
    const struct txn *t = s->txn;

    l->act_conn = atomic_load_explicit(&app->connections, memory_order_relaxed);
    l->fe_conn = (unsigned)proxy_current(app, s->frontend, false);
    if (t->backend)
        l->be_conn = (unsigned)proxy_current(app, t->backend, true);
    if (t->server)
        l->srv_conn = atomic_load_explicit(&t->server->served, memory_order_relaxed);
    if (t->has_slot == false && t->server)
        l->srv_conn++;
    l->retries = t->retries;
    l->redispatched = t->redispatched;
    l->srv_queue = t->srv_queue_pos;
    l->be_queue = t->be_queue_pos;
}

static const char *log_version(const struct txn *t)
{
    return t->version == 10 ? "HTTP/1.0" : "HTTP/1.1";
}

static void log_fill(struct session *s, struct rules_log *l)
{
    struct txn *t = s->txn;
    const struct proxy *be = t->backend ? t->backend : s->frontend;

    memset(l, 0, sizeof(*l));
    log_fill_times(s, l);
    log_fill_counts(s, l);
    l->bytes_read = s->res.sent;
    l->bytes_uploaded = s->req.sent;
    l->status = t->status;
    l->term[0] = t->cause;
    l->term[1] = t->stage;
    l->term[2] = t->cookie.request;
    l->term[3] = t->cookie.response;
    l->request_counter = s->worker->request_counter;
    l->fe_name = s->frontend->name;
    l->be_name = be->name;
    l->srv_name = t->stats ? STR("<STATS>") : t->server ? t->server->name : STR("<NOSRV>");
    l->fe_tls = s->tls;
    l->method = t->method;
    l->uri = t->target;
    if (l->uri.len > (size_t)s->worker->app->model->global.http_logurilen)
        l->uri.len = (size_t)s->worker->app->model->global.http_logurilen;
    l->version = t->version ? str_of(log_version(t)) : STR_NULL;
    l->captured_cookie_req = t->captured_cookie_req;
    l->captured_cookie_res = t->captured_cookie_res;
    l->req_capture_count = (unsigned)s->frontend->req_capture_count;
    l->res_capture_count = (unsigned)s->frontend->res_capture_count;
    l->is_http = s->http;
    l->bad_request = t->bad_request;
    l->no_request = s->ready_us == 0;
    l->pid = s->worker->app->pid;
    l->log_counter = atomic_load_explicit(&s->worker->app->log_counter, memory_order_relaxed);
    l->unique_id = t->unique_id;
}

const struct rules_log *session_log_facts(struct session *s)
{
    struct rules_log *l = s->txn ? arena_alloc(&s->txn->arena, sizeof(*l)) : NULL;

    if (!l)
        return NULL;
    log_fill(s, l);
    return l;
}

/* An exchange that went as it should: "option dontlog-normal" leaves it out. */
static bool log_is_normal(const struct txn *t)
{
    return ((t->cause == '-' && t->retries == 0) || t->cause == 'L') && !t->redispatched && t->status < 500;
}

static enum log_level log_level_of(const struct session *s, bool *silent)
{
    const struct txn *t = s->txn;

    *silent = false;
    if (t->outcome.log_level_set) {
        *silent = t->outcome.log_level < 0;
        return (enum log_level)t->outcome.log_level;
    }
    return s->frontend->cfg->log_separate_errors && !log_is_normal(t) ? LOG_LEVEL_ERR : LOG_LEVEL_INFO;
}

void session_count_bytes(struct session *s)
{
    struct txn *t = s->txn;

    session_fe(s)->bytes_in += s->req.received;
    session_fe(s)->bytes_out += s->res.sent;
    if (t->backend) {
        session_be(s)->be_bytes_in += s->req.sent;
        session_be(s)->be_bytes_out += s->res.sent;
    }
    if (t->server) {
        struct server_counters *sc = session_srv(s);

        sc->bytes_in += s->req.sent;
        sc->bytes_out += s->res.sent;
        if (t->connected_us)
            sc->connect_time_us += t->connected_us - t->connect_start_us;
        if (t->response_us && t->connected_us)
            sc->response_time_us += t->response_us - t->connected_us;
        sc->total_time_us += t->end_us - t->start_us;
        if (t->queue_start_us)
            sc->queue_time_us += t->assigned_us - t->queue_start_us;
    }
}

/* The transaction's line in that format. */
static void log_line(struct session *s, const struct rules_fmt *fmt, enum log_level level)
{
    struct txn *t = s->txn;
    struct proxy *fe = s->frontend;
    struct rules_log l;
    struct buf out = {.mem = s->worker->scratch, .size = PROXY_SCRATCH_BYTES};

    if (fe->unique_id && !t->bad_request)
        session_unique_id(s);
    log_fill(s, &l);
    s->worker->request_counter++;
    atomic_fetch_add_explicit(&s->worker->app->log_counter, 1, memory_order_relaxed);
    t->rules.log = &l;
    t->rules.wall_us = io_loop_wall(s->worker->loop);
    rules_fmt_eval(fmt, &t->rules, &out);
    if (fe->log_sd_fmt) {
        struct str sd = rules_fmt_str(fe->log_sd_fmt, &t->rules);

        log_write(fe->logs, fe->log_count, level, buf_str(&out), sd.len ? sd.ptr : NULL);
    } else {
        log_write(fe->logs, fe->log_count, level, buf_str(&out), NULL);
    }
    t->rules.log = NULL;
}

void session_log(struct session *s)
{
    const struct txn *t = s->txn;
    const struct proxy *fe = s->frontend;
    const struct rules_fmt *fmt = fe->log_fmt[s->tls];
    enum log_level level;
    bool silent;

    if (t->no_log || fe->log_count == 0 || !fmt || (fe->cfg->dontlog_normal && log_is_normal(t)))
        return;
    level = log_level_of(s, &silent);
    if (!silent)
        log_line(s, fmt, level);
}

/* "203.0.113.7:4711 [date] frontend/bind: reason", as HAProxy writes for connections without a request. */
void session_log_connection(struct session *s, const char *reason)
{
    struct proxy *fe = s->frontend;
    enum log_level level = fe->cfg->log_separate_errors ? LOG_LEVEL_ERR : LOG_LEVEL_INFO;
    char client[ADDR_TEXT_BYTES], date[40];
    uint64_t wall_us = io_loop_wall(s->worker->loop);
    time_t seconds = (time_t)(wall_us / 1000000);
    struct tm tm;
    char line[512];
    int n;

    if (fe->log_count == 0 || (fe->cfg->dontlognull && !s->handshake_failed))
        return;
    /* A format is about a transaction: an empty one, that is not logged once more. */
    if (fe->error_log_fmt && session_start_txn(s) == 0) {
        s->txn->end_us = session_now(s);
        session_fail(s, 'P', 'R'); /* whatever it was, as HAProxy */
        log_line(s, fe->error_log_fmt, level);
        s->txn->no_log = true;
        return;
    }
    localtime_r(&seconds, &tm);
    strftime(date, sizeof(date), "%d/%b/%Y:%H:%M:%S", &tm);
    addr_text(&s->src, client);
    n = snprintf(line, sizeof(line), "%s [%s.%03u] %.*s/%.*s: %s", client, date, (unsigned)(wall_us / 1000 % 1000),
                 STR_FMT(fe->name), STR_FMT(s->bind->name), reason);
    if (s->handshake_failed && s->client.tls && tls_conn_error_text(s->client.tls) && n > 0 && (size_t)n < sizeof(line))
        snprintf(line + n, sizeof(line) - (size_t)n, " (%s)", tls_conn_error_text(s->client.tls));
    log_write(fe->logs, fe->log_count, level, str_of(line), NULL);
}

void session_log_refusal(struct session *s, bool response, enum h1_error error)
{
    char client[ADDR_TEXT_BYTES];

    addr_text(&s->src, client);
    proxy_log_notice(s->frontend, LOG_LEVEL_ERR, "%s %.*s/%.*s: invalid %s refused: %s", client,
                     STR_FMT(s->frontend->name),
                     STR_FMT(response && s->txn->server ? s->txn->server->name : s->bind->name),
                     response ? "response" : "request", h1_error_text(error));
}

void proxy_log_notice(struct proxy *p, enum log_level level, const char *format, ...)
{
    char line[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    log_write(p->logs, p->log_count, level, str_of(line), NULL);
}
