/*
 * Fetches of what log lines tell: times, sizes, how a stream ended.
 */
#include "rules/logformat.h"
#include "rules/message.h"
#include "rules/tables.h"

#define AT(field) ((int)offsetof(struct rules_log, field))

static const void *field_at(const struct rules_log *log, int offset)
{
    return (const char *)log + offset;
}

/* Milliseconds; -1 where the stream never came so far. */
static bool fetch_timer(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                        struct sample *out)
{
    const struct rules_log *log = ctx_log(ctx);
    int64_t us;

    if (!log)
        return false;
    us = *(const int64_t *)field_at(log, f->def->data);
    return value_int(out, us < 0 ? -1 : us / 1000);
}

/* Th + Ti + TR. */
static bool fetch_timer_tq(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                           struct sample *out)
{
    const struct rules_log *log = ctx_log(ctx);

    if (!log)
        return false;
    if (log->t_request_us < 0)
        return value_int(out, -1);
    return value_int(out, ((log->t_handshake_us > 0 ? log->t_handshake_us : 0) +
                           (log->t_idle_us > 0 ? log->t_idle_us : 0) + log->t_request_us) /
                              1000);
}

static bool fetch_u64(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                      struct sample *out)
{
    const struct rules_log *log = ctx_log(ctx);

    return log && value_int(out, (int64_t) * (const uint64_t *)field_at(log, f->def->data));
}

static bool fetch_unsigned(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                           struct sample *out)
{
    const struct rules_log *log = ctx_log(ctx);

    return log && value_int(out, *(const unsigned *)field_at(log, f->def->data));
}

static bool fetch_redispatched(const struct fetch_call *f, struct rules_ctx *ctx,
                               struct fetch_iter *it, struct sample *out)
{
    const struct rules_log *log = ctx_log(ctx);

    return log && value_bool(out, log->redispatched);
}

static bool fetch_term_state(const struct fetch_call *f, struct rules_ctx *ctx,
                             struct fetch_iter *it, struct sample *out)
{
    const struct rules_log *log = ctx_log(ctx);
    struct str copy;

    if (!log)
        return false;
    copy = arena_str(ctx->arena, str_make(log->term, 2));
    return copy.ptr && value_str(out, copy);
}

/* Dates in s (default), ms or us. */
static bool fetch_date(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                       struct sample *out)
{
    const struct rules_log *log = ctx_log(ctx);
    const struct rules_arg *unit = arg_at(&f->args, 0);
    uint64_t us;

    if (!log)
        return false;
    us = *(const uint64_t *)field_at(log, f->def->data);
    return value_int(out, (int64_t)(us / (unit ? (uint64_t)unit->i : 1000000)));
}

static int check_unit(struct rules_compiler *c, struct rules_args *args, char why[RULES_WHY_BYTES])
{
    struct rules_arg *a = args->count ? &args->v[0] : NULL;

    if (!a)
        return 0;
    if (str_eq(a->s, STR("s")) || !a->s.len)
        a->i = 1000000;
    else if (str_eq(a->s, STR("ms")))
        a->i = 1000;
    else if (str_eq(a->s, STR("us")))
        a->i = 1;
    else {
        snprintf(why, RULES_WHY_BYTES, "expects 's', 'ms' or 'us', got '%s'", a->s.ptr);
        return SP_EINVAL;
    }
    return 0;
}

/* --- the request as it was received ---------------------------------------------------------- */

enum { METHOD, URI, VERSION };

static bool fetch_captured(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                           struct sample *out)
{
    const struct rules_log *log = ctx_log(ctx);
    struct str s;

    if (!log || !log->is_http || log->bad_request)
        return false;
    switch (f->def->data) {
    case METHOD:
        return log->method.len && value_str(out, log->method);
    case URI:
        return target_pathq(log->uri, &s) && value_str(out, s);
    default:
        return log->version.len && value_str(out, log->version);
    }
}

static bool fetch_captured_res_ver(const struct fetch_call *f, struct rules_ctx *ctx,
                                   struct fetch_iter *it, struct sample *out)
{
    if (!ctx->res)
        return false;
    return value_str(out, ctx->res->version == 10   ? STR("HTTP/1.0")
                          : ctx->res->version == 20 ? STR("HTTP/2.0")
                                                    : STR("HTTP/1.1"));
}

#define L NEEDS_LOG
#define END (NEEDS_LOG | NEEDS_FINAL)
#define TIMER(name, needs, field, text)                                          \
    {                                                                            \
        name, NULL, NULL, VALUE_INT, needs, fetch_timer, AT(field), .help = text \
    }
#define U64(name, needs, field, text)                                          \
    {                                                                          \
        name, NULL, NULL, VALUE_INT, needs, fetch_u64, AT(field), .help = text \
    }
#define COUNT(name, needs, field, text)                                             \
    {                                                                               \
        name, NULL, NULL, VALUE_INT, needs, fetch_unsigned, AT(field), .help = text \
    }

static const struct fetch_def rows[] = {
    TIMER("fc.timer.handshake", L, t_handshake_us,
          "milliseconds of the connection's handshakes (%Th)"),
    TIMER("fc.timer.total", END, t_total_us, "milliseconds in all (%Tt)"),
    TIMER("bc.timer.connect", L, t_connect_us, "milliseconds to connect to the server (%Tc)"),
    TIMER("req.timer.idle", L, t_idle_us, "milliseconds before the request (%Ti)"),
    TIMER("req.timer.hdr", L, t_request_us, "milliseconds to receive the request's head (%TR)"),
    {"req.timer.tq", NULL, NULL, VALUE_INT, L, fetch_timer_tq, 0,
     .help = "milliseconds from the accept to the full head (%Tq)"},
    TIMER("req.timer.queue", L, t_queue_us, "milliseconds in queues (%Tw)"),
    TIMER("res.timer.hdr", L, t_response_us, "milliseconds to the response's head (%Tr)"),
    TIMER("res.timer.data", END, t_data_us, "milliseconds of data transfer (%Td)"),
    TIMER("txn.timer.total", END, t_active_us,
          "milliseconds of the request without idle time (%Ta)"),
    TIMER("txn.timer.user", END, t_user_us, "milliseconds as the user sees it (%Tu)"),
    U64("bytes_in", END, bytes_uploaded, "bytes received from the client (%U)"),
    U64("bytes_out", END, bytes_read, "bytes sent to the client (%B)"),
    U64("req.bytes_in", END, bytes_uploaded, "bytes received from the client (%U)"),
    U64("res.bytes_in", END, bytes_read, "bytes received from the server (%B)"),
    COUNT("bc_be_queue", L, be_queue, "requests ahead in the backend's queue (%bq)"),
    COUNT("bc_srv_queue", L, srv_queue, "requests ahead in the server's queue (%sq)"),
    COUNT("txn.conn_retries", L, retries, "connection retries (%rc)"),
    COUNT("txn.id32", L, request_counter, "number of the request (%rt)"),
    {"txn.redispatched", NULL, NULL, VALUE_BOOL, L, fetch_redispatched, 0,
     .help = "true when another server was tried"},
    {"txn.sess_term_state", NULL, NULL, VALUE_STR, END, fetch_term_state, 0,
     .help = "how the stream ended (%ts)"},
    {"accept_date", "?s", "[<unit>]", VALUE_INT, L, fetch_date, AT(accept_wall_us),
     .help = "date of the accept", .check = check_unit},
    {"request_date", "?s", "[<unit>]", VALUE_INT, L, fetch_date, AT(request_wall_us),
     .help = "date of the request", .check = check_unit},
    {"capture.req.method", NULL, NULL, VALUE_STR, L, fetch_captured, METHOD,
     .help = "method as received"},
    {"capture.req.uri", NULL, NULL, VALUE_STR, L, fetch_captured, URI,
     .help = "path and query string as received"},
    {"capture.req.ver", NULL, NULL, VALUE_STR, L, fetch_captured, VERSION,
     .help = "version as received: \"HTTP/1.1\""},
    {"capture.res.ver", NULL, NULL, VALUE_STR, NEEDS_RESPONSE, fetch_captured_res_ver, 0,
     .help = "version of the response: \"HTTP/1.1\""},
};

const struct fetch_table fetch_log_table = TABLE_OF(rows);
