/*
 * What the language has and this program does not act upon: refused where it would change what
 * happens to traffic, named in a warning where it is only a hint.
 */
#include "proxy/build.h"

#define UNSUPPORTED "is a HAProxy keyword that Sallyport does not support"
#define HINT "is accepted and has no effect here"

static void refuse(struct build *b, struct cfg_loc loc, bool set, const char *word)
{
    if (set)
        diag_error(b->diag, loc, "'%s' " UNSUPPORTED, word);
}

static void hint(struct build *b, struct cfg_loc loc, bool set, const char *word)
{
    if (set)
        diag_warning(b->diag, loc, "'%s' " HINT, word);
}

static void limits_server(struct build *b, const struct cfg_server *s)
{
    refuse(b, s->loc, s->redir != NULL, "redir");
    refuse(b, s->loc, s->agent_check, "agent-check");
    refuse(b, s->loc, s->proto && strcmp(s->proto, "h2") == 0, "proto h2");
    hint(b, s->loc, s->slowstart_us > 0, "slowstart");
    hint(b, s->loc, s->minconn > 0, "minconn");
}

void build_limits_check(struct build *b, const struct proxy *p)
{
    const struct cfg_proxy *cfg = p->cfg;

    refuse(b, cfg->loc, cfg->dispatch != NULL, "dispatch");
    refuse(b, cfg->loc, cfg->cookie.dynamic, "cookie … dynamic");
    refuse(b, cfg->loc, cfg->checkcache, "option checkcache");
    refuse(b, cfg->loc, cfg->http_use_proxy_header, "option http-use-proxy-header");
    refuse(b, cfg->loc, cfg->transparent, "option transparent");
    for (const struct cfg_line *line = cfg->lines; line; line = line->next)
        refuse(b, line->loc, line->kind == CFG_LINE_TCP_RESPONSE_CONTENT, "tcp-response content");
    for (const struct cfg_bind *bind = cfg->binds; bind; bind = bind->next) {
        refuse(b, bind->loc, bind->accept_netscaler_cip, "accept-netscaler-cip");
        refuse(b, bind->loc, bind->proto && strcmp(bind->proto, "h2") == 0, "proto h2");
    }
    for (const struct cfg_server *s = cfg->servers; s; s = s->next)
        limits_server(b, s);
}

/* --- retry-on ---------------------------------------------------------------------- */

static const struct {
    const char *word;
    unsigned bits;
} retry_words[] = {
    {"none", 0},
    {"conn-failure", RETRY_CONN_FAILURE},
    {"empty-response", RETRY_EMPTY_RESPONSE},
    {"junk-response", RETRY_JUNK_RESPONSE},
    {"response-timeout", RETRY_RESPONSE_TIMEOUT},
    {"0rtt-rejected", 0}, /* early data is never sent to servers */
    {"all-retryable-errors",
     RETRY_CONN_FAILURE | RETRY_EMPTY_RESPONSE | RETRY_JUNK_RESPONSE | RETRY_RESPONSE_TIMEOUT | RETRY_5XX},
};

int build_retry(struct build *b, struct proxy *p)
{
    const struct cfg_proxy *cfg = p->cfg;

    p->retry_bits = RETRY_CONN_FAILURE;
    if (!cfg->retry_on)
        return 0;
    p->retry_bits = 0;
    p->retry_statuses = arena_zalloc(&b->app->arena, (size_t)cfg->retry_on_count + 1, sizeof(*p->retry_statuses));
    if (!p->retry_statuses)
        return SP_ENOMEM;
    for (int i = 0; i < cfg->retry_on_count; i++) {
        uint64_t status;

        for (size_t k = 0; k < sizeof(retry_words) / sizeof(retry_words[0]); k++)
            if (strcmp(cfg->retry_on[i], retry_words[k].word) == 0)
                p->retry_bits |= retry_words[k].bits;
        if (str_to_u64(str_of(cfg->retry_on[i]), &status) == 0)
            p->retry_statuses[p->retry_status_count++] = (unsigned)status;
    }
    return 0;
}

/* --- set-var and set-var-fmt of the global section ------------------------------------ */

int build_process_vars(struct build *b, struct proxy *scratch)
{
    for (const struct cfg_proc_var *v = b->app->model->global.vars; v; v = v->next) {
        struct rules_compiler c = build_compiler(b, scratch, v->loc);
        struct rules_expr *e;
        int used = 0;

        if (v->is_format) {
            diag_error(b->diag, v->loc, "'set-var-fmt' " UNSUPPORTED "; expected 'set-var %s EXPRESSION'", v->name);
            continue;
        }
        e = rules_expr_compile(&c, v->argc, v->argv, &used);
        if (e)
            rules_proc_var_set(&c, &b->app->proc_vars, v->name, e);
    }
    return 0;
}
