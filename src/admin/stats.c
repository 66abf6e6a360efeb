#include "admin/stats.h"

#include "proxy/balance.h"
#include "proxy/server_state.h"

#include <stdio.h>

static const char *const field_names[STATS_FIELD_COUNT] = {
#define STATS_NAME(id, name) [STATS_##id] = name,
    STATS_FIELDS(STATS_NAME)
#undef STATS_NAME
};

/* --- cells ----------------------------------------------------------------------- */

static void put_number(struct stats_row *row, enum stats_field f, int64_t value)
{
    row->cells[f] = (struct stats_cell){.kind = STATS_NUMBER, .u.number = value};
}

static void put_count(struct stats_row *row, enum stats_field f, uint64_t value)
{
    put_number(row, f, value > INT64_MAX ? INT64_MAX : (int64_t)value);
}

/* Limits: 0 means that there is none, and shows as nothing. */
static void put_limit(struct stats_row *row, enum stats_field f, int64_t value)
{
    if (value > 0)
        put_number(row, f, value);
}

static void put_text(struct stats_row *row, enum stats_field f, struct str s)
{
    row->cells[f] = (struct stats_cell){.kind = STATS_TEXT, .u.text = s};
}

/* Composed texts live in the row; what does not fit is cut. */
static void put_copy(struct stats_row *row, enum stats_field f, const char *text)
{
    size_t room = sizeof row->scratch - row->scratch_len, len = strlen(text);

    if (len > room)
        len = room;
    memcpy(row->scratch + row->scratch_len, text, len);
    put_text(row, f, str_make(row->scratch + row->scratch_len, len));
    row->scratch_len += len;
}

static void start_row(struct stats_row *row, enum stats_type type, const struct proxy *p, struct str name, int id)
{
    memset(row, 0, sizeof *row);
    row->type = type;
    put_text(row, STATS_PXNAME, p->name);
    put_text(row, STATS_SVNAME, name);
    put_number(row, STATS_PID, 1); /* processes were numbered once */
    put_number(row, STATS_IID, p->id);
    put_number(row, STATS_SID, id);
    put_number(row, STATS_TYPE, type);
    put_text(row, STATS_MODE, p->cfg->mode_tcp ? STR("tcp") : STR("http"));
    put_text(row, STATS_SEPARATOR, STR("-"));
}

/* responses[0] counts what is no class from 1xx to 5xx. */
static void put_responses(struct stats_row *row, const struct proxy *p, const uint64_t responses[6])
{
    static const enum stats_field fields[6] = {STATS_HRSP_OTHER, STATS_HRSP_1XX, STATS_HRSP_2XX,
                                               STATS_HRSP_3XX,   STATS_HRSP_4XX, STATS_HRSP_5XX};

    for (int i = 0; i < 6 && !p->cfg->mode_tcp; i++)
        put_count(row, fields[i], responses[i]);
}

static void put_compression(struct stats_row *row, const struct proxy *p, const struct proxy_counters *c)
{
    if (p->cfg->mode_tcp)
        return;
    put_count(row, STATS_COMP_IN, c->compress_in);
    put_count(row, STATS_COMP_OUT, c->compress_out);
    put_count(row, STATS_COMP_BYP, c->compress_bypass);
    put_count(row, STATS_COMP_RSP, c->compress_responses);
}

static void put_rate(struct stats_row *row, const struct proxy *p, enum proxy_rate rate, enum stats_field now,
                     enum stats_field most)
{
    put_number(row, now, atomic_load_explicit(&p->rates[rate], memory_order_relaxed));
    put_number(row, most, atomic_load_explicit(&p->rates_max[rate], memory_order_relaxed));
}

static void put_address(struct stats_row *row, const struct addr *a)
{
    char text[ADDR_TEXT_BYTES];

    addr_text(a, text);
    put_copy(row, STATS_ADDR, text);
}

/* --- frontends and listeners ----------------------------------------------------- */

static const char *listening_status(const struct app *app, int64_t current, int64_t limit)
{
    if (atomic_load_explicit(&app->stopping, memory_order_relaxed))
        return "STOP";
    return limit > 0 && current >= limit ? "FULL" : "OPEN";
}

void stats_frontend(const struct app *app, const struct proxy *p, struct stats_row *row)
{
    int64_t limit = p->cfg->maxconn > 0 ? p->cfg->maxconn : app->maxconn;
    struct proxy_counters c;

    proxy_counters_sum(app, p, &c);
    start_row(row, STATS_FRONTEND, p, STR("FRONTEND"), 0);
    put_number(row, STATS_SCUR, c.fe_current);
    put_number(row, STATS_SMAX, c.fe_current_max);
    put_limit(row, STATS_SLIM, limit);
    put_count(row, STATS_STOT, c.sessions);
    put_count(row, STATS_BIN, c.bytes_in);
    put_count(row, STATS_BOUT, c.bytes_out);
    put_count(row, STATS_DREQ, c.denied_requests);
    put_count(row, STATS_DRESP, c.denied_responses);
    put_count(row, STATS_EREQ, c.request_errors);
    put_text(row, STATS_STATUS, str_of(listening_status(app, c.fe_current, limit)));
    put_rate(row, p, PROXY_RATE_SESSIONS, STATS_RATE, STATS_RATE_MAX);
    put_number(row, STATS_RATE_LIM, 0);
    put_count(row, STATS_CONN_TOT, c.connections);
    put_count(row, STATS_EINT, c.internal_errors);
    put_count(row, STATS_SSL_SESS, c.tls_handshakes);
    put_count(row, STATS_SSL_FAILED_HANDSHAKE, c.tls_failures);
    put_responses(row, p, c.responses);
    put_compression(row, p, &c);
    if (!p->cfg->mode_tcp) {
        put_rate(row, p, PROXY_RATE_REQUESTS, STATS_REQ_RATE, STATS_REQ_RATE_MAX);
        put_count(row, STATS_REQ_TOT, c.requests);
    }
}

void stats_listener(const struct app *app, const struct bind *b, bool legends, struct stats_row *row)
{
    start_row(row, STATS_LISTENER, b->frontend, b->name, b->id);
    if (!b->cfg->name) {
        char name[32];

        snprintf(name, sizeof name, "sock-%d", b->id);
        put_copy(row, STATS_SVNAME, name);
    }
    if (b->maxconn > 0) { /* only then are its connections counted */
        put_number(row, STATS_SCUR, atomic_load_explicit(&b->current, memory_order_relaxed));
        put_number(row, STATS_SLIM, b->maxconn);
    }
    put_text(row, STATS_STATUS,
             str_of(listening_status(app, atomic_load_explicit(&b->current, memory_order_relaxed), b->maxconn)));
    if (legends)
        put_address(row, &b->address);
}

/* --- servers -------------------------------------------------------------------------- */

/* The server whose checks decide: its own, or that of the server it follows. */
static const struct server *checked_server(const struct server *s)
{
    for (int hops = 0; s->track && hops < 64; hops++)
        s = s->track;
    return s;
}

/* HAProxy's words: with a figure while a check series is on its way to change the state. */
static void put_server_status(struct stats_row *row, const struct server *s, const struct check *check)
{
    enum server_state state = (enum server_state)atomic_load_explicit(&s->state, memory_order_relaxed);
    unsigned admin = atomic_load_explicit(&s->admin, memory_order_relaxed);
    struct check_view v = {0};
    char text[192];

    if (state == SERVER_MAINT) {
        if ((admin & SERVER_ADMIN_INHERITED_MAINT) && s->track)
            snprintf(text, sizeof text, "MAINT (via %.*s/%.*s)", STR_FMT(s->track->backend->name),
                     STR_FMT(s->track->name));
        else
            snprintf(text, sizeof text, "MAINT");
        put_copy(row, STATS_STATUS, text);
        return;
    }
    if (check)
        check_view(check, &v);
    if (state == SERVER_DOWN) {
        if (v.health > 0 && v.health < v.rise)
            snprintf(text, sizeof text, "DOWN %d/%d", v.health, v.rise);
        else
            snprintf(text, sizeof text, "DOWN");
    } else if (!check && state == SERVER_UP) {
        snprintf(text, sizeof text, "no check");
    } else {
        const char *word = state == SERVER_DRAIN ? "DRAIN" : "UP";

        if (check && v.health >= v.rise && v.health < v.rise + v.fall - 1)
            snprintf(text, sizeof text, "%s %d/%d", word, v.health - v.rise + 1, v.fall);
        else
            snprintf(text, sizeof text, "%s", word);
    }
    put_copy(row, STATS_STATUS, text);
}

static void put_check(struct stats_row *row, const struct server *s, const struct check *check, uint64_t now_us)
{
    uint64_t changed_us = atomic_load_explicit(&s->last_change_us, memory_order_relaxed);
    uint64_t downtime_us = atomic_load_explicit(&s->down_time_us, memory_order_relaxed);
    uint64_t since_us = now_us > changed_us ? now_us - changed_us : 0;
    struct check_view v;
    char text[64];

    put_count(row, STATS_LASTCHG, since_us / 1000000);
    if (!check)
        return;
    if (atomic_load_explicit(&s->state, memory_order_relaxed) == SERVER_DOWN)
        downtime_us += since_us;
    put_count(row, STATS_CHKFAIL, atomic_load_explicit(&s->check_failures, memory_order_relaxed));
    put_count(row, STATS_CHKDOWN, atomic_load_explicit(&s->down_count, memory_order_relaxed));
    put_count(row, STATS_DOWNTIME, downtime_us / 1000000);
    check_view(check, &v);
    if (v.paused)
        return;
    snprintf(text, sizeof text, "%s%s", v.running ? "* " : "", v.status);
    put_copy(row, STATS_CHECK_STATUS, text);
    if (v.status_code >= 0)
        put_number(row, STATS_CHECK_CODE, v.status_code);
    if (v.duration_ms >= 0)
        put_number(row, STATS_CHECK_DURATION, v.duration_ms);
    put_text(row, STATS_CHECK_DESC, str_of(v.description));
    put_number(row, STATS_CHECK_RISE, v.rise);
    put_number(row, STATS_CHECK_FALL, v.fall);
    put_number(row, STATS_CHECK_HEALTH, v.health);
    v.info[sizeof v.info - 1] = '\0';
    if (v.info[0])
        put_copy(row, STATS_LAST_CHK, v.info);
}

static void put_times(struct stats_row *row, const struct server_counters *c)
{
    uint64_t count = c->sessions ? c->sessions : 1;

    put_count(row, STATS_QTIME, c->queue_time_us / count / 1000);
    put_count(row, STATS_CTIME, c->connect_time_us / count / 1000);
    put_count(row, STATS_RTIME, c->response_time_us / count / 1000);
    put_count(row, STATS_TTIME, c->total_time_us / count / 1000);
}

static void put_server_counters(struct stats_row *row, const struct app *app, const struct server *s)
{
    struct server_counters c;

    server_counters_sum(app, s, &c);
    put_number(row, STATS_SCUR, c.current);
    put_number(row, STATS_SMAX, c.current_max);
    put_count(row, STATS_STOT, c.sessions);
    put_count(row, STATS_BIN, c.bytes_in);
    put_count(row, STATS_BOUT, c.bytes_out);
    put_count(row, STATS_ECON, c.connect_errors);
    put_count(row, STATS_ERESP, c.response_errors);
    put_count(row, STATS_WRETR, c.retries);
    put_count(row, STATS_WREDIS, c.redispatches);
    put_count(row, STATS_CLI_ABRT, c.client_aborts);
    put_count(row, STATS_SRV_ABRT, c.server_aborts);
    put_count(row, STATS_CONNECT, c.connects);
    put_count(row, STATS_REUSE, c.reuses);
    put_number(row, STATS_SRV_ICUR, c.idle);
    put_number(row, STATS_USED_CONN_CUR, c.current);
    put_responses(row, s->backend, c.responses);
    put_times(row, &c);
}

void stats_server(const struct app *app, const struct server *s, bool legends, uint64_t now_us, struct stats_row *row)
{
    const struct check *check = checked_server(s)->check;

    start_row(row, STATS_SERVER, s->backend, s->name, s->id);
    put_server_counters(row, app, s);
    put_number(row, STATS_QCUR, atomic_load_explicit(&s->queued, memory_order_relaxed));
    put_number(row, STATS_QMAX, atomic_load_explicit(&s->queued_max, memory_order_relaxed));
    put_limit(row, STATS_SLIM, s->cfg->maxconn);
    put_limit(row, STATS_QLIMIT, s->cfg->maxqueue);
    put_limit(row, STATS_SRC_ILIM, s->cfg->pool_max_conn);
    put_number(row, STATS_WEIGHT, atomic_load_explicit(&s->weight, memory_order_relaxed));
    put_number(row, STATS_UWEIGHT, atomic_load_explicit(&s->weight, memory_order_relaxed));
    put_number(row, STATS_ACT, !s->cfg->backup);
    put_number(row, STATS_BCK, s->cfg->backup);
    put_server_status(row, s, check);
    put_check(row, s, check, now_us);
    if (s->track) {
        char text[160];

        snprintf(text, sizeof text, "%.*s/%.*s", STR_FMT(s->track->backend->name), STR_FMT(s->track->name));
        put_copy(row, STATS_TRACKED, text);
    }
    if (legends) {
        put_address(row, &s->address);
        if (s->cookie.len)
            put_text(row, STATS_COOKIE, s->cookie);
    }
}

/* --- backends ---------------------------------------------------------------------------- */

static const char *algorithm_name(enum cfg_balance_algo algo)
{
    switch (algo) {
    case CFG_BALANCE_STATIC_RR:
        return "static-rr";
    case CFG_BALANCE_LEASTCONN:
        return "leastconn";
    case CFG_BALANCE_FIRST:
        return "first";
    case CFG_BALANCE_SOURCE:
        return "source";
    case CFG_BALANCE_URI:
        return "uri";
    case CFG_BALANCE_URL_PARAM:
        return "url_param";
    case CFG_BALANCE_HDR:
        return "hdr";
    case CFG_BALANCE_RANDOM:
        return "random";
    case CFG_BALANCE_RDP_COOKIE:
        return "rdp-cookie";
    case CFG_BALANCE_HASH:
        return "hash";
    default:
        return "roundrobin";
    }
}

/* Usable servers, their weights, and the averages of all servers' times. */
static void put_servers_sum(struct stats_row *row, const struct app *app, const struct proxy *p)
{
    struct server_counters sum = {0};
    int64_t weight[2] = {0, 0}, usable[2] = {0, 0};

    for (int i = 0; i < p->server_count; i++) {
        const struct server *s = p->servers[i];
        struct server_counters c;

        server_counters_sum(app, s, &c);
        sum.sessions += c.sessions;
        sum.connects += c.connects;
        sum.reuses += c.reuses;
        sum.queue_time_us += c.queue_time_us;
        sum.connect_time_us += c.connect_time_us;
        sum.response_time_us += c.response_time_us;
        sum.total_time_us += c.total_time_us;
        if (!server_is_usable(s))
            continue;
        usable[s->cfg->backup]++;
        weight[s->cfg->backup] += atomic_load_explicit(&s->weight, memory_order_relaxed);
    }
    put_times(row, &sum);
    put_count(row, STATS_CONNECT, sum.connects);
    put_count(row, STATS_REUSE, sum.reuses);
    put_number(row, STATS_WEIGHT, usable[0] ? weight[0] : weight[1]);
    put_number(row, STATS_UWEIGHT, usable[0] ? weight[0] : weight[1]);
    put_number(row, STATS_ACT, usable[0]);
    put_number(row, STATS_BCK, usable[1]);
    put_text(row, STATS_STATUS, p->server_count == 0 || usable[0] || usable[1] ? STR("UP") : STR("DOWN"));
}

void stats_backend(const struct app *app, const struct proxy *p, bool legends, struct stats_row *row)
{
    struct proxy_counters c;

    proxy_counters_sum(app, p, &c);
    start_row(row, STATS_BACKEND, p, STR("BACKEND"), 0);
    put_servers_sum(row, app, p);
    put_number(row, STATS_QCUR, atomic_load_explicit(&p->queued, memory_order_relaxed));
    put_number(row, STATS_QMAX, atomic_load_explicit(&p->queued_max, memory_order_relaxed));
    put_number(row, STATS_SCUR, c.be_current);
    put_number(row, STATS_SMAX, c.be_current_max);
    put_limit(row, STATS_SLIM, p->cfg->fullconn);
    put_count(row, STATS_STOT, c.be_sessions);
    put_count(row, STATS_BIN, c.be_bytes_in);
    put_count(row, STATS_BOUT, c.be_bytes_out);
    put_count(row, STATS_DREQ, c.denied_requests);
    put_count(row, STATS_DRESP, c.denied_responses);
    put_count(row, STATS_ECON, c.connect_errors);
    put_count(row, STATS_ERESP, c.response_errors);
    put_count(row, STATS_WRETR, c.retries);
    put_count(row, STATS_WREDIS, c.redispatches);
    put_count(row, STATS_CLI_ABRT, c.client_aborts);
    put_count(row, STATS_SRV_ABRT, c.server_aborts);
    put_count(row, STATS_EINT, c.internal_errors);
    put_rate(row, p, PROXY_RATE_BACKEND, STATS_RATE, STATS_RATE_MAX);
    put_responses(row, p, c.be_responses);
    put_compression(row, p, &c);
    if (!p->cfg->mode_tcp)
        put_count(row, STATS_REQ_TOT, c.be_sessions);
    if (legends) {
        put_text(row, STATS_ALGO, str_of(algorithm_name(p->cfg->balance.algo)));
        if (p->cfg->cookie.name)
            put_text(row, STATS_COOKIE, str_of(p->cfg->cookie.name));
    }
}

/* --- CSV ------------------------------------------------------------------------------------ */

void stats_put_csv_names(struct text *out)
{
    text_puts(out, "# ");
    for (int i = 0; i < STATS_FIELD_COUNT; i++)
        text_printf(out, "%s,", field_names[i]);
    text_puts(out, "\n");
}

void stats_put_csv(struct text *out, const struct stats_row *row)
{
    for (int i = 0; i < STATS_FIELD_COUNT; i++) {
        const struct stats_cell *cell = &row->cells[i];

        if (cell->kind == STATS_NUMBER)
            text_printf(out, "%lld", (long long)cell->u.number);
        else if (cell->kind == STATS_TEXT)
            text_put_csv(out, cell->u.text);
        text_puts(out, ",");
    }
    text_puts(out, "\n");
}
