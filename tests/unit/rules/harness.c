#include "harness.h"

#include "rules/format.h"
#include "rules/registry.h"

#include <unistd.h>

/* --- the fake host -------------------------------------------------------------------------- */

static bool host_item(void *stream, enum rules_item item, struct sample *out)
{
    struct fixture *f = stream;

    if (!f->has_item[item])
        return false;
    *out = f->items[item];
    return true;
}

static bool host_count(void *stream, enum rules_count what, void *object, struct sample *out)
{
    struct fixture *f = stream;

    if (f->counts[what] < 0)
        return false;
    f->counted_object = object;
    if (what == RULES_SRV_IS_UP) {
        out->type = SAMPLE_BOOL;
        out->u.b = f->counts[what];
        return true;
    }
    out->type = SAMPLE_INT;
    out->u.i = f->counts[what];
    return true;
}

static const struct rules_log *host_log(void *stream)
{
    struct fixture *f = stream;

    return &f->log;
}

static bool host_set(void *stream, enum rules_item item, const struct sample *value)
{
    struct fixture *f = stream;

    f->was_set[item] = true;
    f->set_items[item] = *value;
    return true;
}

/* --- the fake resolver ------------------------------------------------------------------------- */

static int known_backend, known_frontend, known_server;

static void *find_proxy(void *resolver, enum rules_proxy_kind kind, const char *name)
{
    if (strcmp(name, "be1") == 0 && kind != RULES_FRONTEND)
        return &known_backend;
    if (strcmp(name, "fe1") == 0 && kind != RULES_BACKEND)
        return &known_frontend;
    return NULL;
}

static void *find_server(void *resolver, const char *backend, const char *server)
{
    if (strcmp(server, "srv1") == 0 && (!backend || strcmp(backend, "be1") == 0))
        return &known_server;
    return NULL;
}

static bool find_errorfile(void *resolver, const char *section, unsigned status, struct str *raw)
{
    if (!section || strcmp(section, "errors-1") != 0 || status != 404)
        return false;
    *raw = STR("HTTP/1.1 404 Nope\r\n\r\nnope");
    return true;
}

static int add_capture(void *resolver, bool response, size_t len)
{
    struct fixture *f = resolver;

    if (response || f->captures_declared >= 4)
        return SP_EUNSUPPORTED;
    f->capture_limits[f->captures_declared] = len;
    f->ctx.req_capture_count = (unsigned)f->captures_declared + 1;
    return f->captures_declared++;
}

static int capture_len(void *resolver, bool response, int index)
{
    struct fixture *f = resolver;

    if (response)
        return index < 2 ? 16 : -1;
    return index < f->captures_declared ? (int)f->capture_limits[index] : -1;
}

/* --- fixtures ------------------------------------------------------------------------------------ */

void fixture_init(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    arena_init(&f->config, 0, 0);
    arena_init(&f->request, 0, 0);
    arena_init(&f->session, 0, 0);
    diag_init(&f->diag, &f->config);
    f->host = (struct rules_host){host_item, host_count, host_log, host_set};
    f->c = (struct rules_compiler){
        .diag = &f->diag,
        .arena = &f->config,
        .registry = rules_registry_new(&f->config),
        .loc = {"test.cfg", 7},
        .acls = rules_acls_new(&f->config),
        .proxy_name = "fe1",
        .is_frontend = true,
        .is_backend = true,
        .is_http = true,
        .resolver = f,
        .find_proxy = find_proxy,
        .find_server = find_server,
        .find_errorfile = find_errorfile,
        .add_capture = add_capture,
        .capture_len = capture_len,
    };
    hash_rng_seed(&f->rng);
    f->ctx = (struct rules_ctx){
        .host = &f->host,
        .stream = f,
        .arena = &f->request,
        .sess_arena = &f->session,
        .sess_vars = &f->sess_vars,
        .proc_vars = &f->proc_vars,
        .req_captures = f->req_captures,
        .res_captures = f->res_captures,
        .res_capture_count = 2,
        .wall_us = 784111777123456, /* Sun, 06 Nov 1994 08:49:37.123456 GMT */
        .rng = &f->rng,
        .final_data = true,
    };
    http_msg_init(&f->req, &f->request);
    http_msg_init(&f->res, &f->request);
    for (size_t i = 0; i < COUNT_OF(f->counts); i++)
        f->counts[i] = -1;
    fixture_request(f, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
}

void fixture_release(struct fixture *f)
{
    rules_release_all(f->c.registry);
    arena_release(&f->session);
    arena_release(&f->request);
    arena_release(&f->config);
}

int fixture_setup(void **state)
{
    struct fixture *f = malloc(sizeof *f);

    if (!f)
        return -1;
    fixture_init(f);
    *state = f;
    return 0;
}

int fixture_teardown(void **state)
{
    fixture_release(*state);
    free(*state);
    return 0;
}

/* --- messages ------------------------------------------------------------------------------------------ */

static struct str take_line(struct str *rest)
{
    size_t n = str_find(*rest, STR("\r\n"));
    struct str line = str_make(rest->ptr, n);

    *rest = str_from(*rest, n + 2);
    return line;
}

static struct str take_word(struct str *line)
{
    struct str word = str_make(line->ptr, str_chr(*line, ' '));

    *line = str_from(*line, word.len + 1);
    return word;
}

static unsigned version_of(struct str text)
{
    if (str_eq(text, STR("HTTP/1.0")))
        return 10;
    return str_eq(text, STR("HTTP/2.0")) ? 20 : 11;
}

static void add_fields(struct http_msg *m, struct str rest)
{
    struct str line;

    while ((line = take_line(&rest)).len) {
        size_t colon = str_chr(line, ':');

        assert_int_equal(
            http_msg_add(m, str_make(line.ptr, colon), str_trim(str_from(line, colon + 1))), 0);
    }
}

void fixture_request(struct fixture *f, const char *head)
{
    struct str rest = arena_str(&f->request, str_of(head)), line = take_line(&rest);
    uint64_t length;
    struct http_field *field;

    http_msg_init(&f->req, &f->request);
    f->req.method_text = take_word(&line);
    f->req.method = (uint8_t)http_method_of(f->req.method_text);
    f->req.target = take_word(&line);
    f->req.version = (uint8_t)version_of(line);
    add_fields(&f->req, rest);
    field = http_msg_find(&f->req, HTTP_FIELD_CONTENT_LENGTH);
    if (field && str_to_u64(field->value, &length) == 0) {
        f->req.content_length = length;
        f->req.flags |= HTTP_MSG_HAS_LENGTH;
        f->req.framing = HTTP_FRAMING_LENGTH;
    }
    f->ctx.req = &f->req;
    f->log.is_http = true;
    f->log.method = f->req.method_text;
    f->log.uri = f->req.target;
    f->log.version = line;
}

void fixture_response(struct fixture *f, const char *head)
{
    struct str rest = arena_str(&f->request, str_of(head)), line = take_line(&rest);
    uint64_t status = 0;

    http_msg_init(&f->res, &f->request);
    f->res.flags |= HTTP_MSG_RESPONSE;
    f->res.version = (uint8_t)version_of(take_word(&line));
    assert_int_equal(str_to_u64(take_word(&line), &status), 0);
    f->res.status = (uint16_t)status;
    f->res.reason = line;
    add_fields(&f->res, rest);
    f->ctx.res = &f->res;
    f->ctx.response_stage = true;
}

/* --- items ----------------------------------------------------------------------------------------------- */

static struct sample *item(struct fixture *f, enum rules_item which, enum sample_type type)
{
    assert_true((unsigned)which < FAKE_ITEMS);
    f->has_item[which] = true;
    f->items[which].type = type;
    return &f->items[which];
}

void fixture_item_str(struct fixture *f, enum rules_item which, const char *text)
{
    item(f, which, SAMPLE_STR)->u.s = str_of(text);
}

void fixture_item_bin(struct fixture *f, enum rules_item which, const void *bytes, size_t n)
{
    item(f, which, SAMPLE_BIN)->u.s = str_make(bytes, n);
}

void fixture_item_int(struct fixture *f, enum rules_item which, int64_t value)
{
    item(f, which, SAMPLE_INT)->u.i = value;
}

void fixture_item_bool(struct fixture *f, enum rules_item which, bool value)
{
    item(f, which, SAMPLE_BOOL)->u.b = value;
}

void fixture_item_addr(struct fixture *f, enum rules_item which, const char *text)
{
    struct sample *s = item(f, which, SAMPLE_ADDR);

    assert_true(value_parse_addr(str_of(text), &s->u.a));
}

/* --- text ---------------------------------------------------------------------------------------------------- */

int fixture_words(struct fixture *f, const char *line, char ***argv)
{
    char **words = arena_zalloc(&f->config, 64, sizeof *words);
    char *out = arena_zalloc(&f->config, strlen(line) + 64, 1);
    bool quoted = false, in_word = false;
    int n = 0;

    assert_non_null(words);
    assert_non_null(out);
    for (const char *p = line; *p; p++) {
        if (*p == ' ' && !quoted) {
            if (in_word)
                *out++ = '\0';
            in_word = false;
            continue;
        }
        if (!in_word) {
            assert_true(n < 63);
            words[n++] = out;
            in_word = true;
        }
        if (*p == '"')
            quoted = !quoted;
        else if (*p == '\\' && (p[1] == ' ' || p[1] == '"' || p[1] == '\\'))
            *out++ = *++p;
        else
            *out++ = *p;
    }
    *argv = words;
    return n;
}

const char *fixture_error(struct fixture *f)
{
    const char *text = NULL;

    for (const struct diag_item *i = f->diag.first; i; i = i->next)
        if (i->level == DIAG_ERROR && !text)
            text = i->text;
    diag_init(&f->diag, &f->config);
    return text;
}

const char *fixture_warning(struct fixture *f)
{
    const char *text = NULL;

    for (const struct diag_item *i = f->diag.first; i; i = i->next)
        if (i->level == DIAG_WARNING && !text)
            text = i->text;
    diag_init(&f->diag, &f->config);
    return text;
}

static void expect_no_error(struct fixture *f, const char *what)
{
    const char *text;

    if (!f->diag.errors)
        return;
    text = fixture_error(f);
    fail_msg("'%s': %s", what, text);
}

static void expect_error(struct fixture *f, const char *what, const char *part)
{
    const char *text = fixture_error(f);

    if (!text)
        fail_msg("'%s' compiled, expected an error with '%s'", what, part);
    else if (!strstr(text, part))
        fail_msg("'%s': got '%s', expected '%s'", what, text, part);
}

/* --- expressions ----------------------------------------------------------------------------------------------- */

struct rules_expr *fixture_expr(struct fixture *f, const char *expression)
{
    char *word = arena_cstr(&f->config, expression);
    struct rules_expr *e;
    int used = 0;

    e = rules_expr_compile(&f->c, 1, &word, &used);
    expect_no_error(f, expression);
    assert_non_null(e);
    assert_int_equal(used, 1);
    return e;
}

static const char *zero(struct fixture *f, struct str s)
{
    struct str copy = arena_str(&f->config, s);

    assert_non_null(copy.ptr);
    return copy.ptr;
}

const char *fixture_eval(struct fixture *f, const char *expression)
{
    struct str s;

    if (!rules_expr_str(fixture_expr(f, expression), &f->ctx, &s))
        return "<none>";
    return zero(f, s);
}

static const char *typed(struct fixture *f, const struct sample *s)
{
    char text[ADDR_TEXT_BYTES];
    struct buf b = {arena_zalloc(&f->config, 40000, 1), 40000, 0, 0};

    switch (s->type) {
    case SAMPLE_BOOL:
        return s->u.b ? "bool:true" : "bool:false";
    case SAMPLE_INT:
        return arena_printf(&f->config, "int:%lld", (long long)s->u.i);
    case SAMPLE_ADDR:
        return arena_printf(&f->config, "addr:%.*s", (int)addr_host_text(&s->u.a, text), text);
    case SAMPLE_STR:
        buf_put(&b, STR("str:"));
        buf_put(&b, s->u.s);
        return b.mem;
    default:
        buf_put(&b, STR("bin:"));
        for (size_t i = 0; i < s->u.s.len; i++)
            buf_printf(&b, "%02X", (uint8_t)s->u.s.ptr[i]);
        buf_put_char(&b, '\0');
        return b.mem;
    }
}

const char *fixture_typed(struct fixture *f, const char *expression)
{
    struct sample s;

    if (!rules_expr_eval(fixture_expr(f, expression), &f->ctx, &s))
        return "<none>";
    return typed(f, &s);
}

void fixture_check_typed(struct fixture *f, const struct expectation *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *got = fixture_typed(f, rows[i].input);

        if (strcmp(got, rows[i].expected) != 0)
            fail_msg("'%s': got '%s', expected '%s'", rows[i].input, got, rows[i].expected);
    }
}

void fixture_expr_fails(struct fixture *f, const char *expression, const char *part)
{
    char *word = arena_cstr(&f->config, expression);
    int used;

    if (rules_expr_compile(&f->c, 1, &word, &used))
        fail_msg("'%s' compiled, expected an error with '%s'", expression, part);
    expect_error(f, expression, part);
}

/* --- conditions ---------------------------------------------------------------------------------------------------- */

struct rules_cond *fixture_cond_compile(struct fixture *f, const char *condition)
{
    char **argv;
    int argc = fixture_words(f, condition, &argv);
    struct rules_cond *cond = rules_cond_compile(&f->c, argc, argv);

    expect_no_error(f, condition);
    assert_non_null(cond);
    return cond;
}

bool fixture_cond(struct fixture *f, const char *condition)
{
    return rules_cond_eval(fixture_cond_compile(f, condition), &f->ctx);
}

void fixture_cond_fails(struct fixture *f, const char *condition, const char *part)
{
    char **argv;
    int argc = fixture_words(f, condition, &argv);

    assert_null(rules_cond_compile(&f->c, argc, argv));
    expect_error(f, condition, part);
}

void fixture_acl(struct fixture *f, const char *line)
{
    char **argv;
    int argc = fixture_words(f, line, &argv);
    int status = rules_acls_add(&f->c, argc, argv);

    expect_no_error(f, line);
    assert_int_equal(status, 0);
}

/* --- formats ----------------------------------------------------------------------------------------------------------- */

static const char *format(struct fixture *f, const char *text, bool for_log)
{
    struct rules_fmt *fmt = rules_fmt_compile(&f->c, text, for_log);
    struct buf b = {arena_zalloc(&f->config, 40000, 1), 39999, 0, 0};

    expect_no_error(f, text);
    assert_non_null(fmt);
    f->ctx.log = for_log ? &f->log : NULL;
    rules_fmt_eval(fmt, &f->ctx, &b);
    /* Both ways of evaluating give the same. */
    assert_true(str_eq(rules_fmt_str(fmt, &f->ctx), buf_str(&b)));
    f->ctx.log = NULL;
    return b.mem;
}

const char *fixture_log(struct fixture *f, const char *text)
{
    return format(f, text, true);
}

const char *fixture_field(struct fixture *f, const char *text)
{
    return format(f, text, false);
}

void fixture_fmt_fails(struct fixture *f, const char *text, const char *part)
{
    assert_null(rules_fmt_compile(&f->c, text, true));
    expect_error(f, text, part);
}

/* --- rules --------------------------------------------------------------------------------------------------------------- */

static int add_rule(struct fixture *f, struct rules_set *set, enum rules_hook hook,
                    const char *line)
{
    char **argv;
    int argc = fixture_words(f, line, &argv);

    return rules_set_add(set, &f->c, hook, argc, argv);
}

struct rules_set *fixture_rules(struct fixture *f, enum rules_hook hook, const char *const *lines)
{
    struct rules_set *set = rules_set_new(&f->config);

    assert_non_null(set);
    for (; *lines; lines++) {
        int status = add_rule(f, set, hook, *lines);

        expect_no_error(f, *lines);
        assert_int_equal(status, 0);
    }
    return set;
}

enum rules_verdict fixture_run(struct fixture *f, enum rules_hook hook, const char *line,
                               struct rules_outcome *out)
{
    const char *lines[] = {line, NULL};

    rules_outcome_init(out);
    return rules_set_run(fixture_rules(f, hook, lines), &f->ctx, out);
}

void fixture_rule_fails(struct fixture *f, enum rules_hook hook, const char *line, const char *part)
{
    struct rules_set *set = rules_set_new(&f->config);

    assert_int_equal(add_rule(f, set, hook, line), SP_EINVAL);
    expect_error(f, line, part);
    assert_true(rules_set_is_empty(set));
}

const char *fixture_field_values(struct fixture *f, const struct http_msg *m, const char *name)
{
    struct buf b = {arena_zalloc(&f->config, 40000, 1), 39999, 0, 0};
    struct http_field *field;
    uint32_t at = 0;
    bool any = false;

    while ((field = http_msg_next(m, str_of(name), &at))) {
        if (any)
            buf_put_char(&b, '|');
        buf_put(&b, field->value);
        any = true;
    }
    return any ? b.mem : "<none>";
}

const char *fixture_file(struct fixture *f, const char *name, const char *content)
{
    const char *path = arena_printf(&f->config, "rules-%ld-%s", (long)getpid(), name);
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    assert_int_equal(fwrite(content, 1, strlen(content), file), strlen(content));
    assert_int_equal(fclose(file), 0);
    return path;
}

/* Whether a function of that name stands in an expression: first, or as a converter. */
static bool names(const char *expression, const char *name, bool first)
{
    size_t n = strlen(name);

    for (const char *at = strstr(expression, name); at; at = strstr(at + 1, name)) {
        bool begins = first ? at == expression : at > expression && at[-1] == ',';
        char after = at[n];

        if (begins && (after == '\0' || after == '(' || after == ','))
            return true;
    }
    return false;
}

void fixture_check_fetches_used(const struct fetch_table *table, const struct expectation *rows,
                                size_t n)
{
    for (size_t t = 0; t < table->count; t++) {
        bool used = false;

        for (size_t i = 0; i < n; i++)
            used |= names(rows[i].input, table->rows[t].name, true);
        if (!used)
            fail_msg("fetch '%s' is not tested", table->rows[t].name);
    }
}

void fixture_check_convs_used(const struct conv_table *table, const struct expectation *rows,
                              size_t n)
{
    for (size_t t = 0; t < table->count; t++) {
        bool used = false;

        for (size_t i = 0; i < n; i++)
            used |= names(rows[i].input, table->rows[t].name, false);
        if (!used)
            fail_msg("converter '%s' is not tested", table->rows[t].name);
    }
}
