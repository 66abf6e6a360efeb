#include "config/parser.h"

void cfg_own_checks(struct cfg_parser *p)
{
    struct cfg_scope *scope = p->scope;
    struct cfg_line **at = &scope->proxy->lines;

    if (scope->own_checks)
        return;
    while (*at) {
        if ((*at)->kind == CFG_LINE_HTTP_CHECK || (*at)->kind == CFG_LINE_TCP_CHECK)
            *at = (*at)->next;
        else
            at = &(*at)->next;
    }
    scope->lines_end = at;
    scope->own_checks = true;
}

/* A proxy's own http-check and tcp-check lines replace those of the defaults section, and its request line. */
static int parse_check(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                       char **argv)
{
    struct cfg_scope *scope = p->scope;

    if (!scope->own_checks && !scope->own_httpchk) {
        scope->proxy->httpchk_method = "OPTIONS";
        scope->proxy->httpchk_uri = "/";
        scope->proxy->httpchk_version = "HTTP/1.0";
        scope->proxy->httpchk_headers = NULL;
    }
    cfg_own_checks(p);
    cfg_line_append(p, kw->line, argc, argv);
    return argc;
}

#define RULE(word, where, extra, kind_, least, arguments, text)                                  \
    {                                                                                            \
        .name = word, .sections = where, .kind = CFG_KW_LINE, .flags = extra, .at = CFG_NOWHERE, \
        .line = kind_, .min_args = least, .args = arguments, .help = text                        \
    }
#define CAPTURE(word, kept, arguments, text)                                                   \
    {                                                                                          \
        .name = word, .sections = CFG_FRONT, .kind = CFG_KW_LINE, .at = CFG_NOWHERE,           \
        .line = CFG_LINE_CAPTURE, .keep = kept, .min_args = 3, .args = arguments, .help = text \
    }

const struct cfg_kw cfg_kw_rules[] = {
    RULE("acl", CFG_DPROXY, CFG_KW_NAMED_DEFAULTS, CFG_LINE_ACL, 2,
         "<name> <fetch> [flags] [operator] <values>...", "names a condition"),
    RULE("http-request", CFG_DPROXY, CFG_KW_NAMED_DEFAULTS, CFG_LINE_HTTP_REQUEST, 1,
         "<action> [arguments] [if|unless <condition>]", "a rule for requests"),
    RULE("http-response", CFG_DPROXY, CFG_KW_NAMED_DEFAULTS, CFG_LINE_HTTP_RESPONSE, 1,
         "<action> [arguments] [if|unless <condition>]", "a rule for responses of servers"),
    RULE("http-after-response", CFG_DPROXY, CFG_KW_NAMED_DEFAULTS, CFG_LINE_HTTP_AFTER_RESPONSE, 1,
         "<action> [arguments] [if|unless <condition>]",
         "a rule for every response, those made here included"),
    RULE("tcp-request connection", CFG_DFRONT, CFG_KW_NAMED_DEFAULTS,
         CFG_LINE_TCP_REQUEST_CONNECTION, 1, "<action> [if|unless <condition>]",
         "a rule for a connection just accepted"),
    RULE("tcp-request session", CFG_DFRONT, CFG_KW_NAMED_DEFAULTS, CFG_LINE_TCP_REQUEST_SESSION, 1,
         "<action> [if|unless <condition>]",
         "a rule for a connection after its PROXY header and TLS handshake"),
    RULE("tcp-request content", CFG_DPROXY, CFG_KW_NAMED_DEFAULTS, CFG_LINE_TCP_REQUEST_CONTENT, 1,
         "<action> [if|unless <condition>]", "a rule for the first bytes of a client"),
    RULE("tcp-response content", CFG_DBACK, CFG_KW_NAMED_DEFAULTS, CFG_LINE_TCP_RESPONSE_CONTENT, 1,
         "<action> [if|unless <condition>]", "a rule for the first bytes of a server"),
    RULE("redirect", CFG_PROXY, 0, CFG_LINE_REDIRECT, 2,
         "location|prefix|scheme <to> [code <code>] [options] [if|unless <condition>]",
         "answers with a redirection"),
    RULE("use_backend", CFG_FRONT, 0, CFG_LINE_USE_BACKEND, 1, "<backend> [if|unless <condition>]",
         "chooses a backend; the name may be a log-format"),
    RULE("use-server", CFG_BACK, 0, CFG_LINE_USE_SERVER, 1, "<server> if|unless <condition>",
         "chooses a server"),
    RULE("monitor fail", CFG_FRONT, 0, CFG_LINE_MONITOR_FAIL, 2, "if|unless <condition>",
         "when monitor-uri answers 503"),
    CAPTURE("capture cookie", 1, "<name> len <length>",
            "logs a cookie of the request and the response"),
    CAPTURE("capture request header", 2, "<name> len <length>", "keeps a header of the request"),
    CAPTURE("capture response header", 2, "<name> len <length>", "keeps a header of the response"),
    {.name = "declare capture",
     .sections = CFG_FRONT,
     .kind = CFG_KW_LINE,
     .at = CFG_NOWHERE,
     .line = CFG_LINE_CAPTURE,
     .min_args = 3,
     .args = "request|response len <length>",
     .help = "allocates a slot that http-request capture may fill"},
    {.name = "http-check",
     .sections = CFG_DBACK,
     .line = CFG_LINE_HTTP_CHECK,
     .min_args = 1,
     .args = "send|expect|connect|disable-on-404|send-state|set-var|unset-var ...",
     .help = "what an HTTP health check does",
     .parse = parse_check},
    {.name = "tcp-check",
     .sections = CFG_DBACK,
     .line = CFG_LINE_TCP_CHECK,
     .min_args = 1,
     .args = "connect|send|send-binary|expect|comment|set-var|unset-var ...",
     .help = "what a TCP health check does",
     .parse = parse_check},
    CFG_KW_END,
};
