/*
 * Waiting for what a check expects: bytes as they come, or an HTTP response.
 */
#include "proxy/check_internal.h"
#include "rules/value.h"

#include <stdio.h>
#include <stdlib.h>

/* Beyond the head of a response, which may fill tune.bufsize, there is always room for encoded content. */
#define RAW_BYTES 2048
#define TEXT_BYTES 2048 /* of a message before it is cut */

static bool get_buffer(struct buf *b, uint32_t bytes)
{
    if (b->mem)
        return true;
    b->mem = malloc(bytes);
    b->size = b->mem ? bytes : 0;
    b->head = b->tail = 0;
    return b->mem != NULL;
}

bool check_buffers(struct check *c)
{
    uint32_t bytes = c->server->backend->app->bufsize;

    if (!get_buffer(&c->out, bytes))
        return false;
    if (c->script->type != CFG_CHECK_HTTP)
        return get_buffer(&c->in, bytes);
    return get_buffer(&c->in, bytes + RAW_BYTES) && get_buffer(&c->body, bytes);
}

/* Reads once: CHECK_GO_ON when there is something new to look at. */
static enum check_progress read_more(struct check *c, struct buf *into)
{
    ptrdiff_t n = conn_recv(&c->conn, buf_end(into), buf_room(into));

    if (n == SP_EAGAIN)
        return CHECK_WAIT;
    if (n > 0) {
        buf_commit(into, (size_t)n);
        return CHECK_GO_ON;
    }
    /* What came before a reset still counts. */
    if (n != SP_EEOF && buf_len(&c->in) == 0) {
        check_run_broken(c, CHECK_SOCKERR);
        return CHECK_RUN_OVER;
    }
    c->eof = true;
    return CHECK_GO_ON;
}

/* --- failures -------------------------------------------------------------------------------- */

static void put_comment(const struct check *c, struct buf *b)
{
    if (check_step_now(c)->comment)
        buf_printf(b, " comment: %s", check_step_now(c)->comment);
}

static const char *match_name(enum check_match match)
{
    switch (match) {
    case CHECK_MATCH_STRING_FMT:
        return " (log-format string)";
    case CHECK_MATCH_REGEX:
        return " (regex)";
    case CHECK_MATCH_BINARY:
        return " (binary)";
    case CHECK_MATCH_BINARY_FMT:
        return " (log-format binary)";
    case CHECK_MATCH_BINARY_REGEX:
        return " (binary regex)";
    case CHECK_MATCH_STATUS:
        return "(status codes)";
    case CHECK_MATCH_STATUS_REGEX:
        return "(status regex)";
    case CHECK_MATCH_FIELD:
        return "(header pattern)";
    case CHECK_MATCH_WHOLE_FIELD:
        return "(full header pattern)";
    default:
        return "";
    }
}

/* HAProxy's words for an expectation that was not met. */
static void put_mismatch(const struct check *c, struct buf *b)
{
    const struct check_step *step = check_step_now(c);
    const struct check_expect *e = &step->u.expect;

    if (e->match == CHECK_MATCH_TLS_HELLO)
        return;
    if (check_match_is_head(e->match) && c->response.reason.len) {
        buf_put(b, c->response.reason);
    } else if (c->script->type == CFG_CHECK_HTTP && !check_match_is_head(e->match)) {
        buf_put(b, e->negate ? STR("HTTP check matched unwanted content")
                             : STR("HTTP content check did not match"));
    } else {
        buf_put(b, e->negate ? STR("TCPCHK matched unwanted content")
                             : STR("TCPCHK did not match content"));
        if (e->match == CHECK_MATCH_STRING)
            buf_printf(b, " '%.*s'", STR_FMT(e->shown));
        else
            buf_put(b, str_of(match_name(e->match)));
        buf_printf(b, " at step %u", step->number);
    }
    put_comment(c, b);
}

static enum check_code error_code(const struct check_expect *e)
{
    if (e->error_code != CHECK_UNKNOWN)
        return e->error_code;
    return check_match_is_head(e->match) ? CHECK_L7STS : CHECK_L7RSP;
}

static void put_empty_response(const struct check *c, struct buf *b)
{
    buf_printf(b, "TCPCHK got an empty response at step %u", check_step_now(c)->number);
    put_comment(c, b);
}

static void put_empty_pattern(const struct check *c, struct buf *b)
{
    (void)c;
    buf_put(b, STR("log-format string evaluated to an empty string"));
}

static enum check_progress failed(struct check *c,
                                  void (*put)(const struct check *c, struct buf *b))
{
    const struct check_expect *e = &check_step_now(c)->u.expect;
    struct rules_ctx ctx = check_rules_ctx(c);
    int status_code = c->has_response ? c->response.status : 0;
    char text[TEXT_BYTES];
    struct buf b = {.mem = text, .size = sizeof(text)};
    struct str info = STR_NULL;
    struct sample value;

    if (e->on_error) {
        info = rules_fmt_str(e->on_error, &ctx);
    } else {
        put(c, &b);
        info = buf_str(&b);
    }
    if (e->status_code && rules_expr_eval(e->status_code, &ctx, &value) &&
        value_cast(&value, VALUE_INT, ctx.arena))
        status_code = (int)value.u.i;
    check_run_end(c, error_code(e), status_code, info);
    return CHECK_RUN_OVER;
}

static enum check_progress answered(struct check *c, enum check_answer answer)
{
    switch (answer) {
    case CHECK_MATCHES:
        return CHECK_STEP_DONE;
    case CHECK_NEEDS_MORE:
        return CHECK_WAIT;
    case CHECK_EMPTY_PATTERN:
        return failed(c, put_empty_pattern);
    default:
        return failed(c, put_mismatch);
    }
}

/* --- bytes ----------------------------------------------------------------------------------------- */

static enum check_progress expect_bytes(struct check *c, const struct check_expect *e)
{
    struct rules_ctx ctx = check_rules_ctx(c);
    bool last = c->eof || buf_room(&c->in) == 0;
    enum check_answer answer;

    if (c->eof && buf_len(&c->in) == 0 && !e->negate)
        return failed(c, put_empty_response);
    arena_reset(&c->scratch);
    answer = check_match_data(e, &ctx, buf_str(&c->in), last);
    if (answer == CHECK_NEEDS_MORE)
        return read_more(c, &c->in);
    return answered(c, answer);
}

/* --- HTTP ------------------------------------------------------------------------------------------- */

static enum check_progress bad_response(struct check *c, enum h1_error error)
{
    check_run_end(c, CHECK_L7RSP, 0, str_of(h1_error_text(error)));
    return CHECK_RUN_OVER;
}

/* Interim responses are passed over; 101 is an answer. */
static bool is_interim(const struct http_msg *m)
{
    return m->status >= 100 && m->status < 200 && m->status != 101;
}

static enum check_progress parse_head(struct check *c)
{
    struct h1_limits limits = c->server->backend->response_limits;
    enum h1_error error = H1_OK;
    size_t head_bytes, error_at;
    int rc;

    limits.max_head_bytes = c->in.size - RAW_BYTES;
    rc = h1_parse_response(&c->scan, buf_str(&c->in), &limits, c->method, &c->response, &head_bytes,
                           &error, &error_at);
    if (rc == SP_EAGAIN && !c->eof)
        return read_more(c, &c->in);
    if (rc == SP_EAGAIN) {
        check_run_end(c, CHECK_SOCKERR, 0, STR_NULL);
        return CHECK_RUN_OVER;
    }
    if (rc != 0)
        return bad_response(c, error);
    c->scan = (struct h1_scan){0};
    if (is_interim(&c->response)) {
        buf_consume(&c->in, head_bytes);
        buf_compact(&c->in);
        return CHECK_GO_ON;
    }
    c->has_response = true;
    h1_body_init(&c->decoder, (enum http_framing)c->response.framing, c->response.content_length);
    c->raw = (struct buf){.mem = c->in.mem + head_bytes,
                          .size = c->in.size - (uint32_t)head_bytes,
                          .tail = c->in.tail - (uint32_t)head_bytes};
    return CHECK_GO_ON;
}

/* Takes the coding off what has come; content beyond tune.bufsize is not looked at. False: malformed. */
static bool decode_body(struct check *c)
{
    while (!h1_body_is_done(&c->decoder) && buf_room(&c->body)) {
        struct str payload = STR_NULL;
        ptrdiff_t n = h1_body_next(&c->decoder, buf_str(&c->raw), &payload);

        if (n < 0)
            return false;
        if (n == 0)
            break;
        if (payload.len > buf_room(&c->body))
            payload.len = buf_room(&c->body);
        buf_put(&c->body, payload);
        buf_consume(&c->raw, (size_t)n);
    }
    buf_compact(&c->raw);
    c->complete = h1_body_is_done(&c->decoder);
    return true;
}

static enum check_progress expect_body(struct check *c, const struct check_expect *e)
{
    struct rules_ctx ctx = check_rules_ctx(c);
    enum check_answer answer;
    bool last;

    if (!decode_body(c))
        return bad_response(c, (enum h1_error)c->decoder.error);
    last = c->complete || c->eof || buf_room(&c->body) == 0;
    arena_reset(&c->scratch);
    answer = check_match_data(e, &ctx, buf_str(&c->body), last);
    if (answer == CHECK_NEEDS_MORE)
        return read_more(c, &c->raw);
    return answered(c, answer);
}

static enum check_progress expect_response(struct check *c, const struct check_expect *e)
{
    struct rules_ctx ctx;

    if (!c->has_response)
        return parse_head(c);
    if (c->script->disable_on_404 && c->response.status == 404) {
        check_run_end(c, CHECK_L7OKC, 404, STR_NULL);
        return CHECK_RUN_OVER;
    }
    if (!check_match_is_head(e->match))
        return expect_body(c, e);
    ctx = check_rules_ctx(c);
    arena_reset(&c->scratch);
    return answered(c, check_match_head(e, &ctx, &c->response));
}

enum check_progress check_expect_run(struct check *c)
{
    const struct check_expect *e = &check_step_now(c)->u.expect;

    return c->script->type == CFG_CHECK_HTTP ? expect_response(c, e) : expect_bytes(c, e);
}
