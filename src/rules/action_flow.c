/*
 * Actions that decide, and those that adjust the stream.
 */
#include "rules/action.h"

#include "base/logsink.h"

/* --- verdicts -------------------------------------------------------------------------------------- */

static enum rules_verdict run_verdict(const struct rule *r, struct run *run)
{
    return (enum rules_verdict)r->action->data;
}

static int parse_silent_drop(struct rule_parser *p)
{
    const char *word = parser_peek(p);
    uint64_t ttl;

    if (!word || strcmp(word, "rst-ttl") != 0)
        return 0;
    parser_next(p);
    word = parser_need(p, "a number from 1 to 255 after 'rst-ttl'");
    if (!word)
        return SP_EINVAL;
    if (str_to_u64(str_of(word), &ttl) < 0 || ttl < 1 || ttl > 255)
        return parser_fail(p, "expects a number from 1 to 255 after 'rst-ttl', found '%s'", word);
    p->rule->number = (int64_t)ttl;
    return 0;
}

static int parse_switch_mode(struct rule_parser *p)
{
    const char *word = parser_need(p, "'http'");

    if (!word)
        return SP_EINVAL;
    if (strcmp(word, "http") != 0)
        return parser_fail(p, "expects 'http', found '%s'", word);
    if (!p->c->is_frontend)
        return parser_fail(p, "is not available in a backend");
    word = parser_peek(p);
    if (!word || strcmp(word, "proto") != 0)
        return 0;
    parser_next(p);
    word = parser_need(p, "a protocol after 'proto'");
    if (!word)
        return SP_EINVAL;
    if (strcmp(word, "h1") != 0 && strcmp(word, "h2") != 0)
        return parser_fail(p, "expects protocol 'h1' or 'h2', found '%s'", word);
    p->rule->number = word[1] - '0';
    return 0;
}

static enum rules_verdict run_switch_mode(const struct rule *r, struct run *run)
{
    run->outcome->switch_proto_h2 = r->number == 2;
    return RULES_SWITCH_HTTP;
}

/* --- adjustments ---------------------------------------------------------------------------------------- */

static int parse_log_level(struct rule_parser *p)
{
    const char *word = parser_need(p, "a log level");
    char hint[64];

    if (!word)
        return SP_EINVAL;
    p->rule->number = strcmp(word, "silent") == 0 ? -1 : logsink_level(word);
    if (p->rule->number < 0 && strcmp(word, "silent") != 0)
        return parser_fail(p, "expects a log level or 'silent', found '%s'%s", word,
                           diag_suggest(hint, sizeof hint, word, logsink_level_names, 8));
    return 0;
}

static enum rules_verdict run_log_level(const struct rule *r, struct run *run)
{
    run->outcome->log_level_set = true;
    run->outcome->log_level = (int)r->number;
    return RULES_CONTINUE;
}

static int parse_nice(struct rule_parser *p)
{
    const char *word = parser_need(p, "a number from -1024 to 1024");

    if (!word)
        return SP_EINVAL;
    if (str_to_i64(str_of(word), &p->rule->number) < 0)
        return parser_fail(p, "expects a number from -1024 to 1024, found '%s'", word);
    if (p->rule->number < -1024)
        p->rule->number = -1024;
    if (p->rule->number > 1024)
        p->rule->number = 1024;
    return 0;
}

static enum rules_verdict run_nice(const struct rule *r, struct run *run)
{
    run->outcome->nice = (int)r->number;
    return RULES_CONTINUE;
}

static const struct {
    const char *name;
    size_t offset;
    bool backend; /* only relevant where there is a backend */
} timeouts[] = {
    {"client", offsetof(struct rules_outcome, timeout_client_us), false},
    {"connect", offsetof(struct rules_outcome, timeout_connect_us), true},
    {"queue", offsetof(struct rules_outcome, timeout_queue_us), true},
    {"server", offsetof(struct rules_outcome, timeout_server_us), true},
    {"tarpit", offsetof(struct rules_outcome, timeout_tarpit_us), false},
    {"tunnel", offsetof(struct rules_outcome, timeout_tunnel_us), true},
};

static int parse_timeout(struct rule_parser *p)
{
    const char *word = parser_need(p, "the name of a timeout");
    size_t i, n = sizeof timeouts / sizeof *timeouts;

    if (!word)
        return SP_EINVAL;
    for (i = 0; i < n && strcmp(word, timeouts[i].name) != 0; i++)
        ;
    if (i == n)
        return parser_fail(
            p, "expects client, connect, queue, server, tarpit or tunnel, found '%s'", word);
    if (timeouts[i].backend && !p->c->is_backend && !p->c->is_defaults)
        return parser_fail(p, "'%s' is only available in a proxy with a backend", word);
    if (strcmp(word, "client") == 0 && !p->c->is_frontend && !p->c->is_defaults)
        return parser_fail(p, "'client' is only available in a proxy with a frontend");
    p->rule->flags = (unsigned)i;
    word = parser_peek(p);
    if (!word)
        return parser_fail(p, "expects a time or an expression");
    if (word[0] < '0' || word[0] > '9')
        return parser_expr(p);
    parser_next(p);
    if (str_to_time_us(str_of(word), 1000, &p->rule->number) < 0 || p->rule->number == 0)
        return parser_fail(p, "expects a time that is not 0, found '%s'", word);
    return 0;
}

static enum rules_verdict run_timeout(const struct rule *r, struct run *run)
{
    int64_t us = r->number;
    struct sample s;

    if (r->expr) {
        /* Milliseconds; what has no value changes nothing. */
        if (!rules_expr_eval(r->expr, run->ctx, &s) ||
            !value_cast(&s, VALUE_INT, run->ctx->arena) || s.u.i <= 0 || s.u.i > INT64_MAX / 1000)
            return RULES_CONTINUE;
        us = s.u.i * 1000;
    }
    memcpy((char *)run->outcome + timeouts[r->flags].offset, &us, sizeof us);
    return RULES_CONTINUE;
}

static int parse_retries(struct rule_parser *p)
{
    const char *word = parser_peek(p);
    uint64_t n;

    if (!word)
        return parser_fail(p, "expects a number from 0 to 100 or an expression");
    if (word[0] < '0' || word[0] > '9')
        return parser_expr(p);
    parser_next(p);
    if (str_to_u64(str_of(word), &n) < 0 || n > 100)
        return parser_fail(p, "expects a number from 0 to 100, found '%s'", word);
    p->rule->number = (int64_t)n;
    return 0;
}

static enum rules_verdict run_retries(const struct rule *r, struct run *run)
{
    int64_t n = r->number;
    struct sample s;

    if (r->expr) {
        if (!rules_expr_eval(r->expr, run->ctx, &s) || !value_cast(&s, VALUE_INT, run->ctx->arena))
            return RULES_CONTINUE;
        n = s.u.i;
    }
    if (n >= 0 && n <= 100)
        run->outcome->retries = (int)n;
    return RULES_CONTINUE;
}

static enum rules_verdict run_no_l7_retry(const struct rule *r, struct run *run)
{
    run->outcome->disable_l7_retry = true;
    return RULES_CONTINUE;
}

static int parse_strict(struct rule_parser *p)
{
    const char *word = parser_need(p, "'on' or 'off'");

    if (!word)
        return SP_EINVAL;
    if (strcasecmp(word, "on") != 0 && strcasecmp(word, "off") != 0)
        return parser_fail(p, "expects 'on' or 'off', found '%s'", word);
    p->rule->number = strcasecmp(word, "off") == 0;
    return 0;
}

static enum rules_verdict run_strict(const struct rule *r, struct run *run)
{
    run->lenient = r->number;
    return RULES_CONTINUE;
}

/* --- addresses ------------------------------------------------------------------------------------------------ */

static int parse_address(struct rule_parser *p)
{
    return parser_expr(p);
}

static enum rules_verdict run_address(const struct rule *r, struct run *run)
{
    enum rules_item item = (enum rules_item)r->action->data;
    bool port = item == RULES_SRC_PORT || item == RULES_DST_PORT;
    const struct rules_host *host = run->ctx->host;
    struct sample s;

    if (!host || !host->set || !rules_expr_eval(r->expr, run->ctx, &s) ||
        !value_cast(&s, port ? VALUE_INT : VALUE_ADDR, run->ctx->arena))
        return RULES_CONTINUE;
    if (!port || (s.u.i >= 0 && s.u.i <= 65535))
        host->set(run->ctx->stream, item, &s);
    return RULES_CONTINUE;
}

#define TCP                                                                                 \
    (HOOK(TCP_REQUEST_CONNECTION) | HOOK(TCP_REQUEST_SESSION) | HOOK(TCP_REQUEST_CONTENT) | \
     HOOK(TCP_RESPONSE_CONTENT))
#define TCP_REQ \
    (HOOK(TCP_REQUEST_CONNECTION) | HOOK(TCP_REQUEST_SESSION) | HOOK(TCP_REQUEST_CONTENT))
#define TCP_CONTENT (HOOK(TCP_REQUEST_CONTENT) | HOOK(TCP_RESPONSE_CONTENT))
#define REQ HOOK(HTTP_REQUEST)
#define RES HOOK(HTTP_RESPONSE)
#define AFTER HOOK(HTTP_AFTER_RESPONSE)

static const struct action_def rows[] = {
    {"accept", NULL, TCP, NULL, run_verdict, RULES_ALLOW, true, "stops the rules and lets pass"},
    {"allow", NULL, REQ | RES | AFTER, NULL, run_verdict, RULES_ALLOW, true,
     "stops the rules and lets pass"},
    {"reject", NULL, TCP | REQ, NULL, run_verdict, RULES_REJECT, true,
     "closes the connection without an answer"},
    {"silent-drop", "[ rst-ttl <ttl> ]", TCP | REQ | RES, parse_silent_drop, run_verdict,
     RULES_SILENT_DROP, true, "makes the connection vanish without telling the client"},
    {"switch-mode", "http [ proto <name> ]", HOOK(TCP_REQUEST_CONTENT), parse_switch_mode,
     run_switch_mode, 0, true, "processes the connection as HTTP from here on"},
    {"set-log-level", "<level>", TCP_CONTENT | REQ | RES | AFTER, parse_log_level, run_log_level, 0,
     false, "level of the stream's log line, or silent"},
    {"set-nice", "<nice>", TCP_CONTENT | REQ | RES, parse_nice, run_nice, 0, false,
     "priority of the stream"},
    {"set-timeout", "<timeout> { <time> | <expr> }", REQ | RES, parse_timeout, run_timeout, 0,
     false, "a timeout of this stream"},
    {"set-retries", "{ <int> | <expr> }", HOOK(TCP_REQUEST_CONTENT) | REQ, parse_retries,
     run_retries, 0, false, "retries of this stream"},
    {"disable-l7-retry", NULL, REQ, NULL, run_no_l7_retry, 0, false,
     "retries connections only, not requests"},
    {"strict-mode", "{ on | off }", REQ | RES | AFTER, parse_strict, run_strict, 0, false,
     "whether failed rewrites of the following rules are errors"},
    {"set-src", "<expr>", TCP_REQ | REQ, parse_address, run_address, RULES_SRC, false,
     "client's address from here on"},
    {"set-src-port", "<expr>", TCP_REQ | REQ, parse_address, run_address, RULES_SRC_PORT, false,
     "client's port from here on"},
    {"set-dst", "<expr>", TCP_REQ | REQ, parse_address, run_address, RULES_DST, false,
     "destination address from here on"},
    {"set-dst-port", "<expr>", TCP_REQ | REQ, parse_address, run_address, RULES_DST_PORT, false,
     "destination port from here on"},
};

const struct action_table action_flow_table = {rows, sizeof rows / sizeof *rows};
