/*
 * Replies that rules make: return, deny, tarpit and auth.
 */
#include "rules/action.h"
#include "rules/message.h"

struct reply_field {
    struct str name;
    const struct rules_fmt *value;
};

enum reply_kind { REPLY_EMPTY, REPLY_DEFAULT, REPLY_RAW, REPLY_STRING, REPLY_FORMAT };

struct reply_def {
    unsigned status;
    enum reply_kind kind;
    struct str content_type;
    struct str text; /* REPLY_RAW: a whole message; REPLY_STRING: the body */
    const struct rules_fmt *body;
    unsigned field_count;
    struct reply_field *fields;
};

/* Statuses for which there are error pages. */
static const unsigned page_statuses[] = {
    200, 400, 401, 403, 404, 405, 407, 408, 410, 413, 414,
    421, 422, 425, 429, 431, 500, 501, 502, 503, 504,
};

static bool has_page(unsigned status)
{
    for (size_t i = 0; i < sizeof page_statuses / sizeof *page_statuses; i++)
        if (page_statuses[i] == status)
            return true;
    return false;
}

/* --- reading --------------------------------------------------------------------------------------- */

struct reply_parser {
    struct rule_parser *p;
    struct reply_def *r;
    const char *source; /* the word that chose the kind */
    const char *errorfiles;
};

/* As large as HAProxy's buffer, which bounds its files too. */
#define FILE_MAX 65536

static int read_file(struct reply_parser *rp, const char *path, struct str *out)
{
    struct rule_parser *p = rp->p;
    FILE *file = fopen(path, "re");
    char *mem = NULL;
    size_t n = 0;

    if (!file)
        return parser_fail(p, "cannot open file '%s'", path);
    mem = compiler_zalloc(p->c, 1, FILE_MAX + 1);
    if (mem)
        n = fread(mem, 1, FILE_MAX + 1, file);
    fclose(file);
    if (!mem)
        return SP_ENOMEM;
    if (n > FILE_MAX)
        return parser_fail(p, "file '%s' is larger than %d bytes", path, FILE_MAX);
    *out = compiler_str(p->c, str_make(mem, n));
    return out->ptr ? 0 : SP_ENOMEM;
}

static int parse_status(struct reply_parser *rp)
{
    const char *word = parser_need(rp->p, "a status code after 'status'");
    uint64_t status;

    if (!word)
        return SP_EINVAL;
    if (str_to_u64(str_of(word), &status) < 0 || status < 200 || status > 599)
        return parser_fail(rp->p, "expects a status code between 200 and 599, found '%s'", word);
    rp->r->status = (unsigned)status;
    return 0;
}

static int parse_type(struct reply_parser *rp)
{
    const char *word = parser_need(rp->p, "a type after 'content-type'");

    if (!word)
        return SP_EINVAL;
    rp->r->content_type = compiler_str(rp->p->c, str_of(word));
    return rp->r->content_type.ptr ? 0 : SP_ENOMEM;
}

static int parse_hdr(struct reply_parser *rp)
{
    struct rule_parser *p = rp->p;
    struct reply_def *r = rp->r;
    const char *name = parser_need(p, "a name and a format after 'hdr'");
    /* A format may be called "if": it is the third word in any case. */
    const char *format = name && p->at < p->argc ? p->argv[p->at++] : NULL;
    struct reply_field *fields;

    if (!name || !format)
        return parser_fail(p, "expects a name and a format after 'hdr'");
    if (!http_is_token(str_of(name)))
        return parser_fail(p, "expects the name of a header field after 'hdr', found '%s'", name);
    if (strcasecmp(name, "content-length") == 0 || strcasecmp(name, "transfer-encoding") == 0 ||
        strcasecmp(name, "content-type") == 0) {
        diag_warning(p->c->diag, p->c->loc, "header field '%s' is ignored in a reply", name);
        return 0;
    }
    fields = compiler_zalloc(p->c, r->field_count + 1, sizeof *fields);
    if (!fields)
        return SP_ENOMEM;
    if (r->field_count)
        memcpy(fields, r->fields, r->field_count * sizeof *fields);
    fields[r->field_count].name = compiler_str(p->c, str_of(name));
    fields[r->field_count].value = fmt_compile(p->c, format, FMT_HTTP, p->stage);
    if (!fields[r->field_count].name.ptr || !fields[r->field_count].value)
        return SP_EINVAL;
    r->fields = fields;
    r->field_count++;
    return 0;
}

static int parse_source(struct reply_parser *rp, const char *word)
{
    struct rule_parser *p = rp->p;
    struct reply_def *r = rp->r;
    const char *arg = NULL;

    if (rp->source)
        return parser_fail(p, "has both '%s' and '%s'", rp->source, word);
    rp->source = word;
    if (strcmp(word, "default-errorfiles") == 0) {
        r->kind = REPLY_DEFAULT;
        return 0;
    }
    arg = p->at < p->argc ? p->argv[p->at++] : NULL;
    if (!arg || !*arg)
        return parser_fail(p, "expects an argument after '%s'", word);
    if (strcmp(word, "errorfile") == 0) {
        r->kind = REPLY_RAW;
        return read_file(rp, arg, &r->text);
    }
    if (strcmp(word, "errorfiles") == 0) {
        r->kind = REPLY_RAW;
        rp->errorfiles = arg;
        return 0;
    }
    if (strcmp(word, "string") == 0 || strcmp(word, "file") == 0) {
        r->kind = REPLY_STRING;
        if (word[0] == 'f')
            return read_file(rp, arg, &r->text);
        r->text = compiler_str(p->c, str_of(arg));
        return r->text.ptr ? 0 : SP_ENOMEM;
    }
    r->kind = REPLY_FORMAT;
    if (strcmp(word, "lf-file") == 0) {
        if (read_file(rp, arg, &r->text) < 0)
            return SP_EINVAL;
        arg = r->text.ptr;
    }
    r->body = fmt_compile(p->c, arg, 0, p->stage);
    return r->body ? 0 : SP_EINVAL;
}

static int check_bodyless(struct reply_parser *rp)
{
    struct reply_def *r = rp->r;
    struct rule_parser *p = rp->p;
    bool has_body = r->kind == REPLY_FORMAT || (r->kind == REPLY_STRING && r->text.len);

    if (has_body && (r->status == 204 || r->status == 304))
        return parser_fail(p, "cannot have a body with status %u", r->status);
    if (has_body && !r->content_type.len)
        return parser_fail(p, "needs a 'content-type' for its body");
    if (!has_body && r->content_type.len) {
        diag_warning(p->c->diag, p->c->loc,
                     "content-type '%s' is ignored: the reply has no body of its own",
                     r->content_type.ptr);
        r->content_type = STR_NULL;
    }
    return 0;
}

static int finish(struct reply_parser *rp)
{
    struct reply_def *r = rp->r;
    struct rule_parser *p = rp->p;

    if (r->kind == REPLY_DEFAULT || rp->errorfiles) {
        if (!has_page(r->status))
            return parser_fail(p, "has no error page for status %u ('%s')", r->status, rp->source);
    }
    if (rp->errorfiles &&
        (!p->c->find_errorfile ||
         !p->c->find_errorfile(p->c->resolver, rp->errorfiles, r->status, &r->text)))
        return parser_fail(p, "found no error file for status %u in http-errors section '%s'",
                           r->status, rp->errorfiles);
    if (r->field_count && (r->kind == REPLY_DEFAULT || r->kind == REPLY_RAW)) {
        diag_warning(p->c->diag, p->c->loc, "'hdr' is ignored with '%s'", rp->source);
        r->field_count = 0;
    }
    return check_bodyless(rp);
}

struct reply_def *reply_default(struct rules_compiler *c, unsigned status)
{
    struct reply_def *r = compiler_zalloc(c, 1, sizeof *r);

    if (r) {
        r->status = status;
        r->kind = REPLY_DEFAULT;
    }
    return r;
}

struct reply_def *reply_parse(struct rule_parser *p, unsigned default_status)
{
    static const char *const sources[] = {
        "default-errorfiles", "errorfile", "errorfiles", "file", "lf-file", "string", "lf-string"};
    struct reply_parser rp = {.p = p};
    const char *word;

    rp.r = compiler_zalloc(p->c, 1, sizeof *rp.r);
    if (!rp.r)
        return NULL;
    rp.r->status = default_status;
    while ((word = parser_peek(p))) {
        int status = SP_ENOENT;

        p->at++;
        if (strcmp(word, "status") == 0 || strcmp(word, "deny_status") == 0)
            status = parse_status(&rp);
        else if (strcmp(word, "content-type") == 0)
            status = parse_type(&rp);
        else if (strcmp(word, "hdr") == 0)
            status = parse_hdr(&rp);
        else
            for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
                if (strcmp(word, sources[i]) == 0)
                    status = parse_source(&rp, word);
        if (status == SP_ENOENT) {
            p->at--;
            break;
        }
        if (status < 0)
            return NULL;
    }
    return finish(&rp) < 0 ? NULL : rp.r;
}

/* --- making -------------------------------------------------------------------------------------------- */

bool reply_add_field(struct rules_reply *reply, struct arena *arena, struct str name,
                     struct str value)
{
    struct http_field *fields = arena_zalloc(arena, reply->field_count + 1, sizeof *fields);

    if (!fields)
        return false;
    if (reply->field_count)
        memcpy(fields, reply->fields, reply->field_count * sizeof *fields);
    fields[reply->field_count].name = name;
    fields[reply->field_count].value = value;
    fields[reply->field_count].id = (uint16_t)http_field_id_of(name);
    reply->fields = fields;
    reply->field_count++;
    return true;
}

/* A value with control characters would split the message. */
static bool is_safe(struct str value)
{
    for (size_t i = 0; i < value.len; i++)
        if (value.ptr[i] == '\r' || value.ptr[i] == '\n' || value.ptr[i] == '\0')
            return false;
    return true;
}

bool reply_make(const struct reply_def *r, struct rules_ctx *ctx, struct rules_reply *out)
{
    memset(out, 0, sizeof *out);
    out->status = r->status;
    out->content_type = r->content_type;
    switch (r->kind) {
    case REPLY_DEFAULT:
        out->use_default_errorfile = true;
        return true;
    case REPLY_RAW:
        out->raw = r->text;
        return true;
    case REPLY_STRING:
        out->body = r->text;
        break;
    case REPLY_FORMAT:
        out->body = rules_fmt_str(r->body, ctx);
        if (!out->body.ptr)
            return false;
        break;
    default:
        break;
    }
    if (!r->field_count)
        return true;
    out->fields = arena_zalloc(ctx->arena, r->field_count, sizeof *out->fields);
    if (!out->fields)
        return false;
    for (unsigned i = 0; i < r->field_count; i++) {
        struct str value = rules_fmt_str(r->fields[i].value, ctx);
        struct http_field *f = &out->fields[out->field_count];

        if (!value.ptr)
            return false;
        /* Fields without a value are left out, as HAProxy does. */
        if (!value.len || !is_safe(value))
            continue;
        f->name = r->fields[i].name;
        f->value = value;
        f->id = (uint16_t)http_field_id_of(f->name);
        out->field_count++;
    }
    return true;
}

const struct reply_def *reply_specialize(const struct reply_def *r, bool listener_tls,
                                         struct arena *arena)
{
    struct reply_def *copy = arena_alloc(arena, sizeof *copy);

    if (!copy)
        return NULL;
    *copy = *r;
    if (r->body && !(copy->body = rules_fmt_specialize(r->body, listener_tls, arena)))
        return NULL;
    if (!r->field_count)
        return copy;
    copy->fields = arena_alloc(arena, r->field_count * sizeof *copy->fields);
    if (!copy->fields)
        return NULL;
    for (unsigned i = 0; i < r->field_count; i++) {
        copy->fields[i] = r->fields[i];
        copy->fields[i].value = rules_fmt_specialize(r->fields[i].value, listener_tls, arena);
        if (!copy->fields[i].value)
            return NULL;
    }
    return copy;
}

/* --- actions --------------------------------------------------------------------------------------------- */

enum { RETURN, DENY, TARPIT };

static int parse_reply(struct rule_parser *p)
{
    int kind = p->rule->action->data;
    unsigned status = kind == RETURN               ? 200
                      : kind == TARPIT             ? 500
                      : p->stage == STAGE_RESPONSE ? 502
                                                   : 403;
    int start = p->at;
    const char *word = parser_peek(p);
    bool only_status = word && (strcmp(word, "deny_status") == 0);

    /* "deny" and "deny deny_status N" alone answer the proxy's error page. */
    if (kind != RETURN && (!word || only_status)) {
        struct reply_parser rp = {
            .p = p, .r = reply_default(p->c, status), .source = "default-errorfiles"};

        if (!rp.r)
            return SP_ENOMEM;
        if (only_status) {
            p->at++;
            if (parse_status(&rp) < 0)
                return SP_EINVAL;
        }
        if (!parser_peek(p)) {
            p->rule->reply = rp.r;
            return finish(&rp);
        }
        p->at = start;
    }
    p->rule->reply = reply_parse(p, status);
    return p->rule->reply ? 0 : SP_EINVAL;
}

static enum rules_verdict run_reply(const struct rule *r, struct run *run)
{
    static const enum rules_verdict verdicts[] = {
        [RETURN] = RULES_REPLY, [DENY] = RULES_DENY, [TARPIT] = RULES_TARPIT};

    if (!reply_make(r->reply, run->ctx, &run->outcome->reply))
        return RULES_ERROR;
    return verdicts[r->action->data];
}

static int parse_auth(struct rule_parser *p)
{
    const char *word = parser_peek(p), *realm = p->c->proxy_name ? p->c->proxy_name : "";
    char *value;

    if (word && strcmp(word, "realm") == 0) {
        parser_next(p);
        realm = parser_need(p, "a realm after 'realm'");
        if (!realm)
            return SP_EINVAL;
    }
    value = arena_printf(p->c->arena, "Basic realm=\"%s\"", realm);
    p->rule->name = str_of(value);
    if (value && !is_safe(p->rule->name))
        return parser_fail(p, "has control characters in the realm");
    return value ? 0 : parser_fail(p, "ran out of memory");
}

/* 407 to clients that take us for their proxy, 401 to all others. */
static enum rules_verdict run_auth(const struct rule *r, struct run *run)
{
    struct rules_reply *reply = &run->outcome->reply;
    struct str target = run->msg ? run->msg->target : STR("/");
    bool proxy = target.len && target.ptr[0] != '/' && !str_eq(target, STR("*"));

    memset(reply, 0, sizeof *reply);
    reply->status = proxy ? 407 : 401;
    reply->use_default_errorfile = true;
    if (!reply_add_field(reply, run->ctx->arena,
                         proxy ? STR("Proxy-Authenticate") : STR("WWW-Authenticate"), r->name))
        return RULES_ERROR;
    return RULES_REPLY;
}

static int parse_redirect(struct rule_parser *p)
{
    p->rule->redirect =
        redirect_parse(p, p->rule->hook != RULES_REDIRECT, p->stage == STAGE_RESPONSE);
    return p->rule->redirect ? 0 : SP_EINVAL;
}

static enum rules_verdict run_redirect(const struct rule *r, struct run *run)
{
    return redirect_run(r->redirect, run);
}

#define REPLY_ARGS                                                                                               \
    "[ status <code> ] [ content-type <type> ] [ { default-errorfiles | errorfile <file> | errorfiles <name> | " \
    "file <file> | lf-file <file> | string <str> | lf-string <fmt> } ] [ hdr <name> <fmt> ]*"
#define REQ HOOK(HTTP_REQUEST)
#define RES HOOK(HTTP_RESPONSE)

static const struct action_def rows[] = {
    {"return", REPLY_ARGS, REQ | RES, parse_reply, run_reply, RETURN, true, "answers"},
    {"deny", REPLY_ARGS, REQ | RES, parse_reply, run_reply, DENY, true,
     "answers with an error, 403 or 502 by default"},
    {"tarpit", REPLY_ARGS, REQ, parse_reply, run_reply, TARPIT, true,
     "answers with an error after timeout tarpit"},
    {"auth", "[realm <realm>]", REQ, parse_auth, run_auth, 0, true,
     "asks for a user name and password"},
    {"redirect", "<rule>", REQ | RES | HOOK(REDIRECT), parse_redirect, run_redirect, 0, false,
     "sends the client elsewhere"},
};

const struct action_table action_reply_table = {rows, sizeof rows / sizeof *rows};
