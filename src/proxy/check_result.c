/*
 * Results of health checks: their names and texts, the health that they add up
 * to, the log lines, and what they mean for the server.
 */
#include "proxy/check_internal.h"
#include "proxy/server_state.h"

#include <stdio.h>

/* --- names ---------------------------------------------------------------------------- */

static const struct code_row {
    enum check_code code;
    enum check_verdict verdict;
    bool has_status; /* layer 7's own code is shown */
    const char *name, *text;
} codes[] = {
    {CHECK_UNKNOWN, CHECK_UNDECIDED, false, "UNK", "Unknown"},
    {CHECK_INI, CHECK_UNDECIDED, false, "INI", "Initializing"},
    {CHECK_HANA, CHECK_FAILED, false, "HANA", "Health analyze"},
    {CHECK_SOCKERR, CHECK_FAILED, false, "SOCKERR", "Socket error"},
    {CHECK_L4OK, CHECK_PASSED, false, "L4OK", "Layer4 check passed"},
    {CHECK_L4TOUT, CHECK_FAILED, false, "L4TOUT", "Layer4 timeout"},
    {CHECK_L4CON, CHECK_FAILED, false, "L4CON", "Layer4 connection problem"},
    {CHECK_L6OK, CHECK_PASSED, false, "L6OK", "Layer6 check passed"},
    {CHECK_L6TOUT, CHECK_FAILED, false, "L6TOUT", "Layer6 timeout"},
    {CHECK_L6RSP, CHECK_FAILED, false, "L6RSP", "Layer6 invalid response"},
    {CHECK_L7TOUT, CHECK_FAILED, false, "L7TOUT", "Layer7 timeout"},
    {CHECK_L7RSP, CHECK_FAILED, false, "L7RSP", "Layer7 invalid response"},
    {CHECK_L7OK, CHECK_PASSED, true, "L7OK", "Layer7 check passed"},
    {CHECK_L7OKC, CHECK_CONDITIONAL, true, "L7OKC", "Layer7 check conditionally passed"},
    {CHECK_L7STS, CHECK_FAILED, true, "L7STS", "Layer7 wrong status"},
};

static const struct code_row *code_row(enum check_code code)
{
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (codes[i].code == code)
            return &codes[i];
    return &codes[0];
}

enum check_verdict check_verdict_of(enum check_code code)
{
    return code_row(code)->verdict;
}

const char *check_code_name(enum check_code code)
{
    return code_row(code)->name;
}

const char *check_code_text(enum check_code code)
{
    return code_row(code)->text;
}

void check_reason(const struct check_outcome *o, char *out, size_t out_bytes)
{
    struct buf b = {.mem = out, .size = (uint32_t)out_bytes - 1};

    buf_printf(&b, "reason: %s", check_code_text(o->code));
    if (code_row(o->code)->has_status)
        buf_printf(&b, ", code: %d", o->status_code);
    if (o->info[0])
        buf_printf(&b, ", info: \"%s\"", o->info);
    if (o->duration_ms >= 0)
        buf_printf(&b, ", check duration: %lldms", (long long)o->duration_ms);
    out[buf_len(&b)] = '\0';
}

void check_info_set(char out[CHECK_INFO_BYTES], struct str text)
{
    size_t n = 0;

    for (size_t i = 0; i < text.len && n + 5 < CHECK_INFO_BYTES; i++) {
        unsigned char c = (unsigned char)text.ptr[i];

        if (c < ' ' || c >= 0x7f || c == '"')
            n += (size_t)snprintf(out + n, CHECK_INFO_BYTES - n, "<%02X>", c);
        else
            out[n++] = (char)c;
    }
    out[n] = '\0';
}

/* --- for readers on other threads ---------------------------------------------------------- */

/* The lock is no part of what a check is: reading takes it, too. */
static pthread_mutex_t *check_lock(const struct check *c)
{
    return (pthread_mutex_t *)(uintptr_t)&c->lock;
}

void check_view(const struct check *c, struct check_view *out)
{
    const struct code_row *row;

    pthread_mutex_lock(check_lock(c));
    row = code_row(c->last.code);
    *out = (struct check_view){
        .code = (int)row->code,
        .result = (int)c->verdict,
        .status = row->name,
        .description = row->text,
        .status_code = row->has_status ? c->last.status_code : -1,
        .duration_ms = c->last.duration_ms,
        .health = c->health,
        .rise = c->rise,
        .fall = c->fall,
        .running = c->running,
        .paused = c->paused,
    };
    memcpy(out->info, c->last.info, sizeof(out->info));
    pthread_mutex_unlock(check_lock(c));
}

const char *check_status(const struct check *c)
{
    const char *name;

    pthread_mutex_lock(check_lock(c));
    name = check_code_name(c->last.code);
    pthread_mutex_unlock(check_lock(c));
    return name;
}

const char *check_text(const struct check *c, char *out, size_t out_bytes)
{
    struct check_view v;
    char status[16] = "", duration[32] = "";

    check_view(c, &v);
    if (v.status_code > 0)
        snprintf(status, sizeof(status), "/%d", v.status_code);
    if (v.duration_ms >= 0 && v.code != CHECK_INI)
        snprintf(duration, sizeof(duration), " in %lldms", (long long)v.duration_ms);
    snprintf(out, out_bytes, "%s%s%s%s", v.running ? "* " : "", v.status, status, duration);
    return out;
}

/* --- health ------------------------------------------------------------------------------------ */

uint64_t check_interval_us(const struct check *c)
{
    bool up = c->health >= c->rise;

    if (up && c->health == c->rise + c->fall - 1)
        return c->inter_us;
    if (!up && c->health == 0)
        return c->downinter_us ? c->downinter_us : c->inter_us;
    return c->fastinter_us ? c->fastinter_us : c->inter_us;
}

/* One more of that verdict; true when the health has changed. */
static bool health_step(struct check *c, enum check_verdict verdict)
{
    int before = c->health;

    if (verdict == CHECK_FAILED && c->health > 0) {
        c->health--;
        if (c->health < c->rise)
            c->health = 0;
        atomic_fetch_add_explicit(&c->server->check_failures, 1, memory_order_relaxed);
    } else if (verdict != CHECK_FAILED && c->health < c->rise + c->fall - 1) {
        c->health++;
        if (c->health >= c->rise)
            c->health = c->rise + c->fall - 1;
    }
    return c->health != before;
}

static void log_result(const struct check *c, const struct check_outcome *o)
{
    struct server *s = c->server;
    enum check_verdict verdict = check_verdict_of(o->code);
    bool up = c->health >= c->rise;
    char reason[CHECK_INFO_BYTES + 128];

    check_reason(o, reason, sizeof(reason));
    proxy_log_notice(s->backend, LOG_LEVEL_NOTICE,
                     "Health check for %sserver %.*s/%.*s %s%s, %s, status: %d/%d %s.",
                     s->cfg->backup ? "backup " : "", STR_FMT(s->backend->name), STR_FMT(s->name),
                     verdict == CHECK_CONDITIONAL ? "conditionally " : "",
                     verdict == CHECK_FAILED ? "failed" : "succeeded", reason,
                     up ? c->health - c->rise + 1 : c->health, up ? c->fall : c->rise,
                     !up                                                           ? "DOWN"
                     : atomic_load_explicit(&s->weight, memory_order_relaxed) == 0 ? "DRAIN"
                                                                                   : "UP");
}

/* What the health means for the server. With log-health-checks the reason has been told already. */
static void update_server(struct check *c, const struct check_outcome *o)
{
    struct server *s = c->server;
    enum check_verdict verdict = check_verdict_of(o->code);
    char reason[CHECK_INFO_BYTES + 160] = "";

    if (!s->backend->cfg->log_health_checks) {
        memcpy(reason, ", ", 2);
        check_reason(o, reason + 2, sizeof(reason) - 2);
    }
    if (verdict == CHECK_FAILED && c->health == 0)
        server_op_set(s, SERVER_OP_STOPPED, reason);
    else if (verdict == CHECK_PASSED && c->health >= c->rise)
        server_op_set(s, SERVER_OP_RUNNING, reason);
    else if (verdict == CHECK_CONDITIONAL && c->health >= c->rise)
        server_op_set(s, SERVER_OP_STOPPING, reason);
}

static void publish(struct check *c, const struct check_outcome *o)
{
    c->last = *o;
    c->verdict = check_verdict_of(o->code);
}

void check_apply(struct check *c, struct check_outcome *o)
{
    enum check_code before = c->last.code;
    bool changed;

    /* Only a running server can be asked to stop: one that is down stays down. */
    if (o->code == CHECK_L7OKC && c->health < c->rise)
        o->code = CHECK_L7STS;
    pthread_mutex_lock(&c->lock);
    publish(c, o);
    changed = health_step(c, c->verdict) || before != o->code;
    pthread_mutex_unlock(&c->lock);
    if (check_verdict_of(o->code) != CHECK_FAILED)
        atomic_store_explicit(&c->errors, 0, memory_order_relaxed);
    if (changed && c->server->backend->cfg->log_health_checks)
        log_result(c, o);
    update_server(c, o);
}

/* --- observed errors -------------------------------------------------------------------------------- */

enum {
    ON_ERROR_DEFAULT,
    ON_ERROR_FASTINTER,
    ON_ERROR_FAIL_CHECK,
    ON_ERROR_SUDDEN_DEATH,
    ON_ERROR_MARK_DOWN
};

/* Health before the failure that the errors stand for. */
static void degrade(struct check *c, int mode)
{
    if (mode == ON_ERROR_SUDDEN_DEATH && c->health > c->rise)
        c->health = c->rise + 1;
    else if (mode == ON_ERROR_MARK_DOWN && c->health > 0)
        c->health = 1;
}

void check_apply_observed(struct check *c)
{
    int mode = c->server->cfg->on_error;
    struct check_outcome o = {.code = CHECK_HANA, .duration_ms = -1};

    if (mode != ON_ERROR_FASTINTER) {
        snprintf(o.info, sizeof(o.info), "Detected %u consecutive errors, last one was: %s",
                 atomic_load(&c->observed_errors),
                 atomic_load(&c->observed_layer7) ? "Wrong http response"
                                                  : "L4 unsuccessful connection");
        pthread_mutex_lock(&c->lock);
        degrade(c, mode);
        pthread_mutex_unlock(&c->lock);
        check_apply(c, &o);
    }
    check_hurry(c, c->fastinter_us ? c->fastinter_us : c->inter_us);
}

static void observed_message(struct io_message *m)
{
    struct check *c = LIST_ENTRY(m, struct check, observe_message);

    atomic_store(&c->observe_posted, false);
    if (c->loop && !c->paused && c->health >= c->rise)
        check_apply_observed(c);
}

void check_observe(struct server *s, bool layer7, bool ok)
{
    struct check *c = s->check;
    struct io_loop *loop;
    unsigned n;

    if (!c || !(s->cfg->observe_layer4 || s->cfg->observe_layer7))
        return;
    /* A layer-7 observer also counts connections that fail, but not those that succeed. */
    if (s->cfg->observe_layer7 ? !layer7 && ok : layer7)
        return;
    if (ok) {
        if (atomic_load_explicit(&c->errors, memory_order_relaxed))
            atomic_store_explicit(&c->errors, 0, memory_order_relaxed);
        return;
    }
    n = atomic_fetch_add_explicit(&c->errors, 1, memory_order_relaxed) + 1;
    loop = atomic_load(&c->observe_loop);
    if (n < c->error_limit || !loop || atomic_exchange(&c->observe_posted, true))
        return;
    atomic_store_explicit(&c->errors, 0, memory_order_relaxed);
    atomic_store(&c->observed_layer7, layer7);
    atomic_store(&c->observed_errors, n);
    c->observe_message.run = observed_message;
    io_loop_post(loop, &c->observe_message);
}
