/*
 * The %aliases of log formats. Where there is no finished stream (in header
 * fields, for instance), what the host knows stands in.
 */
#include "rules/format.h"
#include "rules/message.h"

#include <time.h>

#define AT(field) ((int)offsetof(struct rules_log, field))

static const void *field_at(const struct rules_log *log, int offset)
{
    return (const char *)log + offset;
}

static void emit_i64(struct emitter *e, int64_t value)
{
    char text[24];
    size_t n = 0;

    if (value < 0)
        text[n++] = '-';
    n += str_put_u64(text + n, value < 0 ? (uint64_t)0 - (uint64_t)value : (uint64_t)value);
    emit_raw(e, str_make(text, n));
}

static void emit_u64(struct emitter *e, uint64_t value)
{
    char text[24];

    emit_raw(e, str_make(text, str_put_u64(text, value)));
}

static void emit_hex(struct emitter *e, uint64_t value, int digits)
{
    char text[24];
    int n = snprintf(text, sizeof text, "%0*llX", digits, (unsigned long long)value);

    emit_raw(e, str_make(text, (size_t)n));
}

/* --- numbers ----------------------------------------------------------------------------------- */

/* Milliseconds, -1 where the stream never came. */
static void put_timer(struct emitter *e, const struct alias_def *a)
{
    const struct rules_log *log = emitter_log(e);
    int64_t us = log ? *(const int64_t *)field_at(log, a->data) : -1;

    emit_i64(e, us < 0 ? -1 : us / 1000);
}

static void put_tq(struct emitter *e, const struct alias_def *a)
{
    const struct rules_log *log = emitter_log(e);

    if (!log || log->t_request_us < 0) {
        emit_i64(e, -1);
        return;
    }
    emit_i64(e, ((log->t_handshake_us > 0 ? log->t_handshake_us : 0) +
                 (log->t_idle_us > 0 ? log->t_idle_us : 0) + log->t_request_us) /
                    1000);
}

static void put_bytes(struct emitter *e, const struct alias_def *a)
{
    const struct rules_log *log = emitter_log(e);

    emit_u64(e, log ? *(const uint64_t *)field_at(log, a->data) : 0);
}

static void put_unsigned(struct emitter *e, const struct alias_def *a)
{
    const struct rules_log *log = emitter_log(e);

    emit_u64(e, log ? *(const unsigned *)field_at(log, a->data) : 0);
}

/* Numbers that +X writes in hexadecimal. */
static void put_hexable(struct emitter *e, const struct alias_def *a)
{
    const struct rules_log *log = emitter_log(e);
    uint32_t value = log ? *(const uint32_t *)field_at(log, a->data) : 0;

    if (e->flags & FMT_HEX)
        emit_hex(e, value, 4);
    else
        emit_u64(e, value);
}

static void put_pid(struct emitter *e, const struct alias_def *a)
{
    const struct rules_log *log = emitter_log(e);
    uint64_t pid = log ? log->pid : 0;
    struct sample s;

    if (!pid && ctx_item(e->ctx, RULES_PID, &s))
        pid = (uint64_t)s.u.i;
    if (e->flags & FMT_HEX)
        emit_hex(e, pid, 4);
    else
        emit_u64(e, pid);
}

static void put_status(struct emitter *e, const struct alias_def *a)
{
    const struct rules_log *log = emitter_log(e);
    unsigned status = log ? log->status : e->ctx->res ? e->ctx->res->status : 0;

    if (status || (log && log->no_request))
        emit_u64(e, status);
    else
        emit_raw(e, STR("-1"));
}

static void put_retries(struct emitter *e, const struct alias_def *a)
{
    const struct rules_log *log = emitter_log(e);

    if (log && log->redispatched)
        emit_char(e, '+');
    emit_u64(e, log ? log->retries : 0);
}

/* Two or four letters. */
static void put_term(struct emitter *e, const struct alias_def *a)
{
    const struct rules_log *log = emitter_log(e);
    size_t n = (size_t)a->data;

    emit_raw(e, log && log->term[0] ? str_make(log->term, n) : str_make("----", n));
}

/* --- addresses ------------------------------------------------------------------------------------ */

static void put_ip(struct emitter *e, const struct alias_def *a)
{
    char text[ADDR_TEXT_BYTES];
    const uint8_t *bytes;
    struct sample s;
    size_t n;

    if (!ctx_item(e->ctx, (enum rules_item)a->data, &s) || s.type != SAMPLE_ADDR) {
        emit_text(e, STR(""));
        return;
    }
    n = value_addr_bytes(&s.u.a, &bytes);
    if (!n) {
        emit_text(e, STR("unix"));
        return;
    }
    if (!(e->flags & FMT_HEX)) {
        emit_text(e, str_make(text, addr_host_text(&s.u.a, text)));
        return;
    }
    for (size_t i = 0; i < n; i++)
        emit_hex(e, bytes[i], 2);
}

static void put_port(struct emitter *e, const struct alias_def *a)
{
    struct sample s;

    if (!ctx_item(e->ctx, (enum rules_item)a->data, &s))
        emit_text(e, STR(""));
    else if (e->flags & FMT_HEX)
        emit_hex(e, (uint64_t)s.u.i & 0xffff, 4);
    else
        emit_i64(e, s.u.i);
}

/* --- names --------------------------------------------------------------------------------------------- */

/* A name that the log has, or else the host. */
static void put_name(struct emitter *e, int offset, enum rules_item item, struct str fallback)
{
    const struct rules_log *log = emitter_log(e);
    struct str name = log ? *(const struct str *)field_at(log, offset) : STR_NULL;
    struct sample s;

    if (!name.len && ctx_item(e->ctx, item, &s) && s.type == SAMPLE_STR)
        name = s.u.s;
    emit_text(e, name.len ? name : fallback);
}

static void put_frontend(struct emitter *e, const struct alias_def *a)
{
    put_name(e, AT(fe_name), RULES_FE_NAME, STR(""));
}

static void put_backend(struct emitter *e, const struct alias_def *a)
{
    put_name(e, AT(be_name), RULES_BE_NAME, STR(""));
}

static void put_server(struct emitter *e, const struct alias_def *a)
{
    put_name(e, AT(srv_name), RULES_SRV_NAME, STR("<NOSRV>"));
}

static void put_unique_id(struct emitter *e, const struct alias_def *a)
{
    put_name(e, AT(unique_id), RULES_UNIQUE_ID, STR(""));
}

static void put_frontend_transport(struct emitter *e, const struct alias_def *a)
{
    const struct rules_log *log = emitter_log(e);
    unsigned flags = e->flags;

    emit_quote(e);
    e->flags &= ~(unsigned)(FMT_QUOTE | FMT_MANDATORY);
    put_frontend(e, a);
    if (log ? log->fe_tls : e->ctx->tls)
        emit_char(e, '~');
    e->flags = flags;
    emit_quote(e);
}

static void put_item(struct emitter *e, const struct alias_def *a)
{
    struct sample s;

    if (ctx_item(e->ctx, (enum rules_item)a->data, &s) && s.type == SAMPLE_STR)
        emit_text(e, s.u.s);
    else
        emit_text(e, STR(""));
}

static void put_tls(struct emitter *e, const struct alias_def *a)
{
    if (e->ctx->tls)
        put_item(e, a);
    else
        emit_text(e, STR(""));
}

static void put_cookie(struct emitter *e, const struct alias_def *a)
{
    const struct rules_log *log = emitter_log(e);

    emit_text(e, log ? *(const struct str *)field_at(log, a->data) : STR(""));
}

/* --- captures ---------------------------------------------------------------------------------------------- */

enum { OF_REQUEST = 0, OF_RESPONSE = 1, AS_LIST = 2 };

static void put_captures(struct emitter *e, const struct alias_def *a)
{
    bool response = a->data & OF_RESPONSE, list = a->data & AS_LIST;
    const struct str *slots = response ? e->ctx->res_captures : e->ctx->req_captures;
    const struct rules_log *log = emitter_log(e);
    unsigned count = response ? e->ctx->res_capture_count : e->ctx->req_capture_count;

    if (log && !count)
        count = response ? log->res_capture_count : log->req_capture_count;
    /* A request that could not be parsed captured nothing, not even emptiness. */
    if (!count || !slots || (log && log->bad_request))
        return;
    if (!list) {
        emit_quote(e);
        emit_char(e, '{');
    }
    for (unsigned i = 0; i < count; i++) {
        if (i)
            emit_char(e, list ? ' ' : '|');
        if (list)
            emit_quote(e);
        if (slots[i].ptr)
            emit_encoded(e, slots[i], ENCODE_HEADER);
        else if (list && !(e->flags & FMT_QUOTE))
            emit_char(e, '-');
        if (list)
            emit_quote(e);
    }
    if (!list) {
        emit_char(e, '}');
        emit_quote(e);
    }
}

/* --- the request --------------------------------------------------------------------------------------------- */

/* What is logged of a request line is bounded, as HAProxy's tune.http.logurilen is by default. */
#define URI_MAX 1023

struct request_line {
    struct str method, uri, version;
};

/* False when there is no valid request: "<BADREQ>" stands for all of its parts. */
static bool request_line(struct emitter *e, struct request_line *r)
{
    const struct rules_log *log = emitter_log(e);
    const struct http_msg *m = e->ctx->req;

    if (log) {
        if (log->bad_request || !log->method.len)
            return false;
        *r = (struct request_line){log->method, log->uri, log->version};
        return true;
    }
    if (!m)
        return false;
    r->method = m->method_text;
    r->uri = m->target;
    r->version = m->version == 10   ? STR("HTTP/1.0")
                 : m->version == 20 ? STR("HTTP/2.0")
                                    : STR("HTTP/1.1");
    return true;
}

static void emit_line_part(struct emitter *e, struct str s, size_t *left)
{
    if (s.len > *left)
        s.len = *left;
    emit_encoded(e, s, ENCODE_URL);
    *left -= s.len;
}

static void put_request(struct emitter *e, const struct alias_def *a)
{
    struct request_line r;
    size_t left = URI_MAX;

    emit_quote(e);
    if (!request_line(e, &r)) {
        emit_raw(e, STR("<BADREQ>"));
    } else {
        emit_line_part(e, r.method, &left);
        emit_line_part(e, STR(" "), &left);
        emit_line_part(e, r.uri, &left);
        if (r.version.len) {
            emit_line_part(e, STR(" "), &left);
            emit_line_part(e, r.version, &left);
        }
    }
    emit_quote(e);
}

enum { METHOD, URI, PATH, PATH_ONLY, QUERY, VERSION };

static struct str request_part(const struct request_line *r, int part)
{
    struct str s = r->uri;
    struct str path;

    switch (part) {
    case METHOD:
        return r->method;
    case PATH:
        return str_make(s.ptr, str_chr(s, '?'));
    case PATH_ONLY:
        return target_path(s, &path) ? path : STR("");
    case QUERY:
        return str_from(s, str_chr(s, '?'));
    case VERSION:
        return r->version.len ? r->version : STR("HTTP/0.9");
    default:
        return s;
    }
}

static void put_request_part(struct emitter *e, const struct alias_def *a)
{
    struct request_line r;
    struct str s = STR("<BADREQ>");

    if (request_line(e, &r)) {
        s = request_part(&r, a->data);
        if (s.len > URI_MAX)
            s.len = URI_MAX;
    }
    emit_quote(e);
    emit_encoded(e, s, ENCODE_URL);
    emit_quote(e);
}

/* --- dates ------------------------------------------------------------------------------------------------------ */

enum { ACCEPT = 0, REQUEST = 1, DATE_UTC = 2, DATE_ZONE = 4, DATE_MILLIS = 8 };

static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

static uint64_t date_us(struct emitter *e, int what)
{
    const struct rules_log *log = emitter_log(e);

    if (!log)
        return e->ctx->wall_us;
    return what & REQUEST ? log->request_wall_us : log->accept_wall_us;
}

/* "26/Apr/2024:09:39:58.774" or "26/Apr/2024:07:41:11 +0000". */
static void put_date(struct emitter *e, const struct alias_def *a)
{
    uint64_t us = date_us(e, a->data);
    time_t seconds = (time_t)(us / 1000000);
    char text[64];
    struct tm tm;
    int n;

    if (!(a->data & DATE_UTC ? gmtime_r(&seconds, &tm) : localtime_r(&seconds, &tm)))
        return;
    n = snprintf(text, sizeof text, "%02d/%s/%04d:%02d:%02d:%02d", tm.tm_mday,
                 months[tm.tm_mon % 12], tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
    emit_raw(e, str_make(text, (size_t)n));
    if (a->data & DATE_MILLIS) {
        n = snprintf(text, sizeof text, ".%03u", (unsigned)(us / 1000 % 1000));
    } else {
        long offset = tm.tm_gmtoff / 60, minutes = offset < 0 ? -offset : offset;

        n = snprintf(text, sizeof text, " %c%02ld%02ld", offset < 0 ? '-' : '+', minutes / 60,
                     minutes % 60);
    }
    emit_raw(e, str_make(text, (size_t)n));
}

static void put_timestamp(struct emitter *e, const struct alias_def *a)
{
    uint64_t seconds = date_us(e, ACCEPT) / 1000000;

    if (e->flags & FMT_HEX)
        emit_hex(e, seconds & 0xffffffff, 4);
    else
        emit_u64(e, seconds);
}

static void put_millis(struct emitter *e, const struct alias_def *a)
{
    unsigned ms = (unsigned)(date_us(e, ACCEPT) / 1000 % 1000);
    char text[8];

    if (e->flags & FMT_HEX)
        emit_hex(e, ms, 2);
    else
        emit_raw(e, str_make(text, (size_t)snprintf(text, sizeof text, "%03u", ms)));
}

/* --- the table ------------------------------------------------------------------------------------------------------- */

#define L NEEDS_LOG
#define END (NEEDS_LOG | NEEDS_FINAL)

const struct alias_def alias_rows[] = {
    {"B", put_bytes, AT(bytes_read), END, "bytes from the server to the client"},
    {"CC", put_cookie, AT(captured_cookie_req), L, "captured request cookie"},
    {"CS", put_cookie, AT(captured_cookie_res), L, "captured response cookie"},
    {"H", put_item, RULES_HOSTNAME, NEEDS_HOST, "host name"},
    {"HM", put_request_part, METHOD, L, "method"},
    {"HP", put_request_part, PATH, L, "request target without query string"},
    {"HPO", put_request_part, PATH_ONLY, L, "path, without host and query string"},
    {"HQ", put_request_part, QUERY, L, "query string with '?'"},
    {"HU", put_request_part, URI, L, "request target"},
    {"HV", put_request_part, VERSION, L, "HTTP version"},
    {"ID", put_unique_id, 0, L | NEEDS_HOST, "unique identifier"},
    {"ST", put_status, 0, L, "status code"},
    {"T", put_date, ACCEPT | DATE_UTC | DATE_ZONE, L, "date of the accept, UTC"},
    {"Ta", put_timer, AT(t_active_us), END, "milliseconds of the request, without idle time"},
    {"Tc", put_timer, AT(t_connect_us), L, "milliseconds to connect to the server"},
    {"Td", put_timer, AT(t_data_us), END, "milliseconds of data transfer"},
    {"Th", put_timer, AT(t_handshake_us), L, "milliseconds of handshakes"},
    {"Ti", put_timer, AT(t_idle_us), L, "milliseconds idle before the request"},
    {"Tl", put_date, ACCEPT | DATE_ZONE, L, "date of the accept, local"},
    {"Tq", put_tq, 0, L, "Th + Ti + TR"},
    {"TR", put_timer, AT(t_request_us), L, "milliseconds to receive the request's head"},
    {"Tr", put_timer, AT(t_response_us), L, "milliseconds to the response's head"},
    {"Ts", put_timestamp, 0, L, "date of the accept, seconds since 1970"},
    {"Tt", put_timer, AT(t_total_us), END, "milliseconds in all"},
    {"Tu", put_timer, AT(t_user_us), END, "milliseconds as the user sees it"},
    {"Tw", put_timer, AT(t_queue_us), L, "milliseconds in queues"},
    {"U", put_bytes, AT(bytes_uploaded), END, "bytes from the client to the server"},
    {"ac", put_unsigned, AT(act_conn), END, "connections of the process"},
    {"b", put_backend, 0, L | NEEDS_HOST, "backend"},
    {"bc", put_unsigned, AT(be_conn), END, "connections of the backend"},
    {"bi", put_ip, RULES_BC_SRC, NEEDS_HOST, "source address of the server's connection"},
    {"bp", put_port, RULES_BC_SRC_PORT, NEEDS_HOST, "source port of the server's connection"},
    {"bq", put_unsigned, AT(be_queue), L, "requests ahead in the backend's queue"},
    {"ci", put_ip, RULES_SRC, NEEDS_HOST, "client's address"},
    {"cp", put_port, RULES_SRC_PORT, NEEDS_HOST, "client's port"},
    {"f", put_frontend, 0, L | NEEDS_HOST, "frontend"},
    {"fc", put_unsigned, AT(fe_conn), END, "connections of the frontend"},
    {"fi", put_ip, RULES_DST, NEEDS_HOST, "address the client connected to"},
    {"fp", put_port, RULES_DST_PORT, NEEDS_HOST, "port the client connected to"},
    {"ft", put_frontend_transport, 0, L | NEEDS_HOST, "frontend, followed by '~' with TLS"},
    {"hr", put_captures, OF_REQUEST, L, "captured request fields"},
    {"hrl", put_captures, OF_REQUEST | AS_LIST, L, "captured request fields as a list"},
    {"hs", put_captures, OF_RESPONSE, L, "captured response fields"},
    {"hsl", put_captures, OF_RESPONSE | AS_LIST, L, "captured response fields as a list"},
    {"lc", put_hexable, AT(log_counter), L, "number of the log line"},
    {"ms", put_millis, 0, L, "milliseconds of the accept's date"},
    {"pid", put_pid, 0, L | NEEDS_HOST, "process identifier"},
    {"r", put_request, 0, L, "request line"},
    {"rc", put_retries, 0, L, "retries, after '+' when redispatched"},
    {"rt", put_hexable, AT(request_counter), L, "number of the request"},
    {"s", put_server, 0, L | NEEDS_HOST, "server"},
    {"sc", put_unsigned, AT(srv_conn), END, "connections of the server"},
    {"si", put_ip, RULES_BC_DST, NEEDS_HOST, "server's address"},
    {"sp", put_port, RULES_BC_DST_PORT, NEEDS_HOST, "server's port"},
    {"sq", put_unsigned, AT(srv_queue), L, "requests ahead in the server's queue"},
    {"sslc", put_tls, RULES_SSL_FC_CIPHER, NEEDS_HOST | NEEDS_TLS, "TLS cipher"},
    {"sslv", put_tls, RULES_SSL_FC_PROTOCOL, NEEDS_HOST | NEEDS_TLS, "TLS version"},
    {"t", put_date, ACCEPT | DATE_MILLIS, L, "date of the accept, local, with milliseconds"},
    {"tr", put_date, REQUEST | DATE_MILLIS, L, "date of the request, local, with milliseconds"},
    {"trg", put_date, REQUEST | DATE_UTC | DATE_ZONE, L, "date of the request, UTC"},
    {"trl", put_date, REQUEST | DATE_ZONE, L, "date of the request, local"},
    {"ts", put_term, 2, END, "how the stream ended"},
    {"tsc", put_term, 4, END, "how the stream ended, with cookie states"},
};
const size_t alias_count = sizeof alias_rows / sizeof *alias_rows;

const struct alias_def *alias_find(struct str name)
{
    for (size_t i = 0; i < alias_count; i++)
        if (str_eq(name, str_of(alias_rows[i].name)))
            return &alias_rows[i];
    return NULL;
}
