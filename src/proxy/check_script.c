/*
 * Scripts of health checks: the lines of a backend become steps, and what is
 * implied (a connection, a request, an expectation) is put in.
 */
#include "proxy/check_internal.h"

#include <stdarg.h>
#include <stdio.h>

/* Steps beyond the written lines: connection, request, expectation. */
#define IMPLIED_STEPS 3

/* --- tools of the parsers --------------------------------------------------------- */

int check_fail(const struct check_words *w, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    diag_error(w->compiler->diag, w->loc, "'%s': %s", w->name, text);
    return SP_EINVAL;
}

const char *check_next_word(struct check_words *w)
{
    const char *keyword = w->argv[w->at];

    if (w->at + 1 >= w->argc) {
        check_fail(w, "'%s' expects an argument", keyword);
        return NULL;
    }
    return w->argv[++w->at];
}

struct rules_fmt *check_fmt(const struct check_words *w, const char *text)
{
    w->compiler->loc = w->loc;
    return rules_fmt_compile(w->compiler, text, false);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

ptrdiff_t check_hex_decode(struct str in, char *out)
{
    if (in.len % 2)
        return SP_EINVAL;
    for (size_t i = 0; i < in.len; i += 2) {
        int high = hex_digit(in.ptr[i]), low = hex_digit(in.ptr[i + 1]);

        if (high < 0 || low < 0)
            return SP_EINVAL;
        out[i / 2] = (char)(high << 4 | low);
    }
    return (ptrdiff_t)(in.len / 2);
}

int check_hex(const struct check_words *w, const char *text, struct str *out)
{
    struct str in = str_of(text);
    char *bytes = arena_alloc(w->compiler->arena, in.len / 2 + 1);
    ptrdiff_t n;

    if (!bytes)
        return SP_ENOMEM;
    n = check_hex_decode(in, bytes);
    if (n <= 0)
        return check_fail(
            w, "'%s' is not a sequence of bytes; expected an even number of hexadecimal digits",
            text);
    *out = str_make(bytes, (size_t)n);
    return 0;
}

/* --- lines -------------------------------------------------------------------------- */

struct script_builder {
    const struct proxy *backend;
    struct rules_compiler *compiler;
    struct check_script *script;
    const char *comment; /* of the next rule */
    unsigned number;     /* lines counted so far */
    int rc;
};

/* Inserts a zeroed step; the array has room. */
static struct check_step *script_insert(struct check_script *script, unsigned at,
                                        enum check_step_kind kind)
{
    struct check_step *step = &script->steps[at];

    memmove(step + 1, step, (script->count - at) * sizeof(*step));
    memset(step, 0, sizeof(*step));
    step->kind = kind;
    script->count++;
    return step;
}

static struct check_step *script_append(struct script_builder *b, enum check_step_kind kind,
                                        struct cfg_loc loc)
{
    struct check_step *step = script_insert(b->script, b->script->count, kind);

    step->number = b->number;
    step->loc = loc;
    step->comment = b->comment;
    b->comment = NULL;
    return step;
}

static int unknown_rule(const struct check_words *w, bool http)
{
    static const char *const http_words[] = {"comment", "connect", "disable-on-404",
                                             "expect",  "send",    "send-state"};
    static const char *const tcp_words[] = {"comment",     "connect",        "expect", "send",
                                            "send-binary", "send-binary-lf", "send-lf"};
    const char *word = w->argv[0];
    char hint[128];

    if (strncmp(word, "set-var", 7) == 0 || strncmp(word, "unset-var", 9) == 0)
        return check_fail(w, "variables of checks are known to HAProxy and not supported");
    diag_suggest(hint, sizeof(hint), word, http ? http_words : tcp_words, http ? 6 : 7);
    return check_fail(
        w, "'%s' is unknown; expected %s%s", word,
        http ? "comment, connect, disable-on-404, expect, send or send-state"
             : "comment, connect, expect, send, send-lf, send-binary or send-binary-lf",
        hint);
}

static int add_comment(struct script_builder *b, struct check_words *w)
{
    const char *text = check_next_word(w);

    if (!text)
        return SP_EINVAL;
    b->number++;
    b->comment = text;
    return 0;
}

static int add_option(struct script_builder *b, const struct check_words *w)
{
    if (w->argc > 1)
        return check_fail(w, "unexpected argument '%s'", w->argv[1]);
    if (strcmp(w->argv[0], "send-state") == 0)
        b->script->send_state = true;
    else
        b->script->disable_on_404 = true;
    return 0;
}

static int add_rule(struct script_builder *b, struct check_words *w, bool http)
{
    const char *verb = w->argv[0];
    enum check_step_kind kind = CHECK_STEP_SEND;
    struct check_step *step;

    if (strcmp(verb, "connect") == 0)
        kind = CHECK_STEP_CONNECT;
    else if (strcmp(verb, "expect") == 0)
        kind = CHECK_STEP_EXPECT;
    else if (strcmp(verb, "send") != 0 && (http || strncmp(verb, "send-", 5) != 0))
        return unknown_rule(w, http);
    b->number++;
    step = script_append(b, kind, w->loc);
    if (kind == CHECK_STEP_CONNECT)
        return check_parse_connect(w, step);
    if (kind == CHECK_STEP_EXPECT)
        return check_parse_expect(w, step, http);
    return http ? check_parse_http_send(w, step) : check_parse_tcp_send(w, step, verb);
}

static int add_line(struct script_builder *b, const struct cfg_line *line)
{
    bool http = line->kind == CFG_LINE_HTTP_CHECK;
    char name[64];
    struct check_words w = {.compiler = b->compiler,
                            .loc = line->loc,
                            .name = name,
                            .argv = line->argv,
                            .argc = line->argc};

    snprintf(name, sizeof(name), "%s %s", http ? "http-check" : "tcp-check", line->argv[0]);
    if (strcmp(line->argv[0], "comment") == 0)
        return add_comment(b, &w);
    if (http &&
        (strcmp(line->argv[0], "send-state") == 0 || strcmp(line->argv[0], "disable-on-404") == 0))
        return add_option(b, &w);
    return add_rule(b, &w, http);
}

/* --- what is implied ------------------------------------------------------------------- */

static bool valid_version(struct str version)
{
    return str_eq(version, STR("HTTP/1.0")) || str_eq(version, STR("HTTP/1.1"));
}

static bool valid_uri(struct str uri)
{
    for (size_t i = 0; i < uri.len; i++)
        if ((unsigned char)uri.ptr[i] <= ' ' || uri.ptr[i] == 0x7f)
            return false;
    return true;
}

/* A request is complete only now: its parts may come from the option and from the rule. */
static int finish_request(const struct check_words *w, struct check_send *send)
{
    if (!send->method.len)
        send->method = STR("OPTIONS");
    if (!send->uri.len && !send->uri_fmt)
        send->uri = STR("/");
    if (!send->version.len)
        send->version = STR("HTTP/1.0");
    if (!http_is_token(send->method))
        return check_fail(w, "'%.*s' is not an HTTP method", STR_FMT(send->method));
    if (!valid_uri(send->uri))
        return check_fail(w,
                          "'%.*s' is not a request target: it holds blanks or control characters",
                          STR_FMT(send->uri));
    if (!valid_version(send->version))
        return check_fail(w, "'%.*s' is not supported; expected HTTP/1.0 or HTTP/1.1",
                          STR_FMT(send->version));
    return 0;
}

static struct check_step *first_request(struct script_builder *b)
{
    struct check_script *script = b->script;
    unsigned at = 0;

    while (at < script->count && script->steps[at].kind == CHECK_STEP_CONNECT)
        at++;
    if (at < script->count && script->steps[at].kind == CHECK_STEP_SEND)
        return &script->steps[at];
    script_insert(script, at, CHECK_STEP_SEND);
    b->number++;
    for (unsigned i = at; i < script->count; i++)
        script->steps[i].number++;
    return &script->steps[at];
}

/* "option httpchk METHOD URI VERSION": the first request, unless the rule says otherwise. */
static int apply_httpchk(struct script_builder *b)
{
    const struct cfg_proxy *cfg = b->backend->cfg;
    struct check_send *send = &first_request(b)->u.send;
    struct check_words w = {.compiler = b->compiler, .loc = cfg->loc, .name = "option httpchk"};
    int rc = 0;

    send->http = true;
    if (!send->method.len)
        send->method = str_of(cfg->httpchk_method);
    if (!send->uri.len && !send->uri_fmt)
        send->uri = str_of(cfg->httpchk_uri);
    if (!send->version.len)
        send->version = str_of(cfg->httpchk_version);
    if (!send->header_count && cfg->httpchk_headers)
        rc = check_parse_header_text(&w, send, cfg->httpchk_headers);
    for (unsigned i = 0; i < b->script->count && rc == 0; i++) {
        struct check_step *step = &b->script->steps[i];

        if (step->kind != CHECK_STEP_SEND)
            continue;
        if (step->loc.line) {
            w.name = "http-check send";
            w.loc = step->loc;
        }
        rc = finish_request(&w, &step->u.send);
    }
    return rc;
}

static void expect_success_status(struct script_builder *b)
{
    static struct check_range fine[] = {{200, 399}};
    struct check_step *step = script_append(b, CHECK_STEP_EXPECT, b->backend->cfg->loc);

    step->number = b->number + 1;
    step->u.expect.match = CHECK_MATCH_STATUS;
    step->u.expect.min_recv = -1;
    step->u.expect.ranges = fine;
    step->u.expect.range_count = 1;
}

static int finish_http(struct script_builder *b)
{
    struct check_script *script = b->script;
    int rc = apply_httpchk(b);

    for (unsigned i = script->count; i > 0; i--) {
        if (script->steps[i - 1].kind == CHECK_STEP_EXPECT)
            break;
        if (script->steps[i - 1].kind == CHECK_STEP_SEND) {
            expect_success_status(b);
            break;
        }
    }
    return rc;
}

/*
 * An SSLv3 hello: record header, handshake header, version, 32 random bytes, no session, the suites of
 * RFC 6101 appendix A.6 and of RFC 5246, no compression.
 */
static int add_tls_hello(struct script_builder *b)
{
    static const uint8_t suites[] = {0x00, 0x2f, 0x00, 0x35, 0x00, 0x3c, 0x00, 0x3d,
                                     0x00, 0x33, 0x00, 0x39, 0x00, 0x0a, 0x00, 0x16,
                                     0x00, 0x05, 0x00, 0x04, 0x00, 0x01, 0x00, 0x02};
    enum { BODY = 2 + 32 + 1 + 2 + sizeof(suites) + 2, ALL = 5 + 4 + BODY };
    uint8_t *out = arena_alloc(b->compiler->arena, ALL), *p = out;
    struct hash_rng rng;
    struct check_step *step;

    if (!out)
        return SP_ENOMEM;
    memcpy(p, (const uint8_t[]){0x16, 3, 0, 0, 4 + BODY, 1, 0, 0, BODY, 3, 0}, 11);
    p += 11;
    hash_rng_seed(&rng);
    for (int i = 0; i < 4; i++, p += 8)
        memcpy(p, &(uint64_t){hash_rng_next(&rng)}, 8);
    memcpy(p, (const uint8_t[]){0, 0, sizeof(suites)}, 3);
    p += 3;
    memcpy(p, suites, sizeof(suites));
    p += sizeof(suites);
    memcpy(p, (const uint8_t[]){1, 0}, 2);

    b->number = 1;
    step = script_append(b, CHECK_STEP_SEND, b->backend->cfg->loc);
    step->u.send.data = str_make((const char *)out, ALL);
    b->number = 2;
    step = script_append(b, CHECK_STEP_EXPECT, b->backend->cfg->loc);
    step->u.expect = (struct check_expect){.match = CHECK_MATCH_TLS_HELLO,
                                           .min_recv = -1,
                                           .ok_code = CHECK_L6OK,
                                           .error_code = CHECK_L6RSP,
                                           .timeout_code = CHECK_L6TOUT};
    return 0;
}

/* Every script opens a connection first; the user's own must be the first rule then. */
static int finish_connect(struct script_builder *b)
{
    struct check_script *script = b->script;
    struct check_words w = {.compiler = b->compiler,
                            .name = script->type == CFG_CHECK_HTTP ? "http-check connect"
                                                                   : "tcp-check connect"};

    if (script->count && script->steps[0].kind == CHECK_STEP_CONNECT)
        return 0;
    for (unsigned i = 0; i < script->count; i++) {
        if (script->steps[i].kind != CHECK_STEP_CONNECT)
            continue;
        w.loc = script->steps[i].loc;
        return check_fail(&w, "when there is a 'connect', the first rule must be one");
    }
    script_insert(script, 0, CHECK_STEP_CONNECT)->u.connect.use_server = true;
    return 0;
}

/* --- all of it ------------------------------------------------------------------------------ */

static bool line_applies(const struct cfg_proxy *cfg, const struct cfg_line *line)
{
    return (cfg->check_type == CFG_CHECK_HTTP && line->kind == CFG_LINE_HTTP_CHECK) ||
           (cfg->check_type == CFG_CHECK_TCP_SCRIPT && line->kind == CFG_LINE_TCP_CHECK);
}

bool checks_use_tls(const struct cfg_proxy *cfg)
{
    for (const struct cfg_line *line = cfg->lines; line; line = line->next) {
        if (!line_applies(cfg, line) || strcmp(line->argv[0], "connect") != 0)
            continue;
        for (int i = 1; i < line->argc; i++)
            if (strcmp(line->argv[i], "ssl") == 0)
                return true;
    }
    return false;
}

struct check_script *check_script_build(const struct proxy *backend,
                                        struct rules_compiler *compiler)
{
    const struct cfg_proxy *cfg = backend->cfg;
    struct check_script *script = arena_zalloc(compiler->arena, 1, sizeof(*script));
    struct script_builder b = {.backend = backend, .compiler = compiler, .script = script};
    size_t room = IMPLIED_STEPS;
    int rc = 0;

    if (!script)
        return NULL;
    for (const struct cfg_line *line = cfg->lines; line; line = line->next)
        room += line_applies(cfg, line);
    script->type = cfg->check_type;
    script->steps = arena_zalloc(compiler->arena, room, sizeof(*script->steps));
    if (!script->steps)
        return NULL;
    for (const struct cfg_line *line = cfg->lines; line; line = line->next) {
        if (!line_applies(cfg, line))
            continue;
        if (add_line(&b, line) != 0)
            rc = SP_EINVAL; /* and on, so that all errors are told */
    }
    script->has_rules = b.number > 0;
    if (rc == 0 && script->type == CFG_CHECK_SSL_HELLO)
        rc = add_tls_hello(&b);
    if (rc == 0 && script->type == CFG_CHECK_HTTP)
        rc = finish_http(&b);
    if (rc == 0)
        rc = finish_connect(&b);
    return rc == 0 ? script : NULL;
}
