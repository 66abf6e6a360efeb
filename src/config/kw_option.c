#include "config/parser.h"

/* --- how connections end --- */

static int parse_conn_mode(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                           char **argv)
{
    struct cfg_proxy *px = object;
    enum cfg_conn_mode mode = (enum cfg_conn_mode)kw->min;

    if (p->modifier == CFG_MODIFIER_NONE)
        px->conn_mode = mode;
    else if (px->conn_mode == mode)
        px->conn_mode = CFG_CONN_KEEP_ALIVE;
    return 0;
}

/* --- logs --- */

/* "option httplog [clf]", "option tcplog [clf]", "option httpslog": the last one of a section counts. */
static int parse_log_choice(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                            char **argv)
{
    struct cfg_proxy *px = object;
    bool clf = argc > 0 && strcmp(argv[0], "clf") == 0 && kw->min != 1;

    if (p->modifier != CFG_MODIFIER_NONE)
        return cfg_kw_fail(p, kw,
                           "it cannot be negated; expected another log format option after it");
    if (p->section == CFG_SEC_BACKEND)
        cfg_kw_warn(p, kw, "accepted, has no effect in a backend: the frontends choose the format");
    px->log_httplog = kw->min == 0;
    px->log_httpslog = kw->min == 1;
    px->log_tcplog = kw->min == 2;
    px->log_clf = clf;
    px->log_format = NULL;
    return clf;
}

/* --- address headers --- */

static int parse_forward(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                         char **argv)
{
    struct cfg_forwardfor *ff = (struct cfg_forwardfor *)((char *)object + kw->at);
    bool may_be_conditional = kw->min;
    const char *header = ((struct cfg_forwardfor *)((char *)p->pristine.proxy + kw->at))->header;
    int at = 0;

    *ff = (struct cfg_forwardfor){.enabled = p->modifier == CFG_MODIFIER_NONE, .header = header};
    if (!ff->enabled)
        return 0;
    while (at < argc) {
        if (strcmp(argv[at], "if-none") == 0 && may_be_conditional) {
            ff->if_none = true;
            at++;
        } else if (strcmp(argv[at], "header") == 0 && at + 1 < argc) {
            ff->header = argv[at + 1];
            at += 2;
        } else if (strcmp(argv[at], "except") == 0 && at + 1 < argc) {
            if (addr_net_parse(str_of(argv[at + 1]), &ff->except) != 0)
                return cfg_kw_fail(p, kw,
                                   "'%s' is not a network; expected an address and perhaps "
                                   "a prefix, like 10.0.0.0/8",
                                   argv[at + 1]);
            ff->has_except = true;
            at += 2;
        } else {
            break;
        }
    }
    return at;
}

/* --- checks --- */

static int parse_httpchk(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                         char **argv)
{
    struct cfg_proxy *px = object;
    const char *version = argc > 2 ? argv[2] : NULL;
    const char *headers = version ? strstr(version, "\r\n") : NULL;

    if (p->modifier != CFG_MODIFIER_NONE) {
        px->check_type = CFG_CHECK_TCP;
        return 0;
    }
    cfg_own_checks(p);
    p->scope->own_httpchk = true;
    px->check_type = CFG_CHECK_HTTP;
    px->httpchk_method = argc > 1 ? argv[0] : "OPTIONS";
    px->httpchk_uri = argc > 1 ? argv[1] : argc == 1 ? argv[0] : "/";
    px->httpchk_version = version ? version : "HTTP/1.0";
    px->httpchk_headers = NULL;
    if (headers) {
        px->httpchk_version = cfg_printf(p, "%.*s", (int)(headers - version), version);
        px->httpchk_headers = headers[2] ? headers + 2 : NULL;
    }
    if (argc > 3)
        px->httpchk_headers =
            cfg_printf(p, "%s%sHost: %s", px->httpchk_headers ? px->httpchk_headers : "",
                       px->httpchk_headers ? "\r\n" : "", argv[3]);
    if (px->httpchk_version && strncmp(px->httpchk_version, "HTTP/", 5) != 0)
        return cfg_kw_fail(p, kw, "'%s' is not an HTTP version; expected HTTP/1.0 or HTTP/1.1",
                           px->httpchk_version);
    return argc > 4 ? 4 : argc;
}

static int parse_check_type(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                            char **argv)
{
    struct cfg_proxy *px = object;
    enum cfg_check_type type = (enum cfg_check_type)kw->min;

    if (p->modifier == CFG_MODIFIER_NONE) {
        cfg_own_checks(p);
        px->check_type = type;
    } else if (px->check_type == type) {
        px->check_type = CFG_CHECK_TCP;
    }
    return 0;
}

/* --- others --- */

static int parse_redispatch(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                            char **argv)
{
    struct cfg_proxy *px = object;
    int64_t interval = -1;

    px->redispatch = p->modifier == CFG_MODIFIER_NONE;
    px->redispatch_interval = px->redispatch ? -1 : 0;
    if (!px->redispatch || argc == 0)
        return 0;
    if (cfg_value_int(p, kw, argv[0], INT32_MIN, INT32_MAX, &interval) != 0)
        return SP_EINVAL;
    px->redispatch_interval = (int)interval;
    px->redispatch = interval != 0;
    return 1;
}

static int parse_restrict_names(struct cfg_parser *p, const struct cfg_kw *kw, void *object,
                                int argc, char **argv)
{
    static const char *const words[] = {"preserve", "delete", "reject"};
    struct cfg_proxy *px = object;
    int index;

    if (p->modifier != CFG_MODIFIER_NONE) {
        px->http_restrict_req_hdr_names = NULL;
        px->http_restrict_req_hdr_names_set = false;
        return 0;
    }
    if (argc == 0)
        return cfg_kw_fail(p, kw, "missing argument; expected 'preserve', 'delete' or 'reject'");
    if (cfg_value_word(p, kw, argv[0], words, 3, &index) != 0)
        return SP_EINVAL;
    px->http_restrict_req_hdr_names = words[index];
    px->http_restrict_req_hdr_names_set = true;
    return 1;
}

#define OPTION(word, where, field, text)                                                  \
    {                                                                                     \
        .name = "option " word, .sections = where, .kind = CFG_KW_FLAG,                   \
        .flags = CFG_KW_CAN_NEGATE, .at = offsetof(struct cfg_proxy, field), .help = text \
    }
#define SPECIAL(word, where, function, value, arguments, text)                               \
    {                                                                                        \
        .name = "option " word, .sections = where, .flags = CFG_KW_CAN_NEGATE, .min = value, \
        .args = arguments, .help = text, .parse = function                                   \
    }
#define ADDRESS(word, field, value, arguments, text)                                            \
    {                                                                                           \
        .name = "option " word, .sections = CFG_DPROXY, .flags = CFG_KW_CAN_NEGATE,             \
        .at = offsetof(struct cfg_proxy, field), .min = value, .args = arguments, .help = text, \
        .parse = parse_forward                                                                  \
    }
#define LOG_CHOICE(word, value, arguments, text)                                                  \
    {                                                                                             \
        .name = "option " word, .sections = CFG_DPROXY, .flags = CFG_KW_CAN_NEGATE, .min = value, \
        .args = arguments, .help = text, .parse = parse_log_choice                                \
    }
#define UNUSED(word, where, extra, arguments, why)                                             \
    {                                                                                          \
        .name = "option " word, .sections = where, .kind = CFG_KW_FLAG,                        \
        .flags = CFG_KW_CAN_NEGATE | extra, .at = CFG_NOWHERE, .args = arguments, .help = why, \
        .note = why                                                                            \
    }

const struct cfg_kw cfg_kw_option[] = {
    OPTION("abortonclose", CFG_DPROXY, abortonclose,
           "a request is given up when its client has closed before a server was reached"),
    OPTION("accept-invalid-http-request", CFG_DFRONT, accept_invalid_http_request,
           "tolerates some characters that are not allowed in requests"),
    OPTION("accept-invalid-http-response", CFG_DBACK, accept_invalid_http_response,
           "tolerates some characters that are not allowed in responses"),
    OPTION("accept-unsafe-violations-in-http-request", CFG_DFRONT, accept_invalid_http_request,
           "the newer name of option accept-invalid-http-request"),
    OPTION("accept-unsafe-violations-in-http-response", CFG_DBACK, accept_invalid_http_response,
           "the newer name of option accept-invalid-http-response"),
    OPTION("allbackups", CFG_DBACK, allbackups,
           "spreads the load over all backup servers, not the first alone"),
    OPTION("checkcache", CFG_DBACK, checkcache,
           "blocks responses that would let a cache store a cookie"),
    OPTION("clitcpka", CFG_DFRONT, clitcpka, "TCP keep-alive towards clients"),
    OPTION("contstats", CFG_DFRONT, contstats, "counts bytes while they pass; always so here"),
    OPTION("dontlog-normal", CFG_DFRONT, dontlog_normal, "logs only what went wrong"),
    OPTION("dontlognull", CFG_DFRONT, dontlognull, "does not log connections without any data"),
    ADDRESS("forwardfor", forwardfor, 1, "[except <network>] [header <name>] [if-none]",
            "adds the client's address to requests"),
    OPTION("h1-case-adjust-bogus-client", CFG_DFRONT, h1_case_adjust_bogus_client,
           "header names in the case that old clients expect"),
    OPTION("http-buffer-request", CFG_DPROXY, http_buffer_request,
           "waits for the beginning of a body before a server is chosen"),
    OPTION("http-ignore-probes", CFG_DFRONT, http_ignore_probes,
           "connections that end before a request are neither answered nor logged"),
    SPECIAL("http-keep-alive", CFG_DPROXY, parse_conn_mode, CFG_CONN_KEEP_ALIVE, NULL,
            "connections stay open on both sides; the default"),
    OPTION("http-no-delay", CFG_DPROXY, http_no_delay, "never waits to fill packets"),
    OPTION("http-pretend-keepalive", CFG_DBACK, http_pretend_keepalive,
           "announces keep-alive to servers even when connections will be closed"),
    SPECIAL("http-restrict-req-hdr-names", CFG_DPROXY, parse_restrict_names, 0,
            "preserve|delete|reject",
            "header names with other characters than letters, digits and '-'"),
    SPECIAL("http-server-close", CFG_DPROXY, parse_conn_mode, CFG_CONN_SERVER_CLOSE, NULL,
            "server connections are closed after each response"),
    OPTION("http-use-proxy-header", CFG_DFRONT, http_use_proxy_header,
           "uses Proxy-Connection instead of Connection"),
    SPECIAL("httpchk", CFG_DBACK, parse_httpchk, 0, "[<method>] [<uri>] [<version>] [<host>]",
            "health checks are HTTP requests"),
    SPECIAL("httpclose", CFG_DPROXY, parse_conn_mode, CFG_CONN_CLOSE, NULL,
            "connections are closed on both sides after each response"),
    LOG_CHOICE("httplog", 0, "[clf]", "logs requests in the HTTP format"),
    LOG_CHOICE("httpslog", 1, NULL, "logs requests in the HTTPS format"),
    OPTION("idle-close-on-response", CFG_DFRONT, idle_close_on_response,
           "idle connections are closed only after a response while the process stops"),
    OPTION("independent-streams", CFG_DPROXY, independent_streams,
           "one direction's data does not refresh the other's timeout"),
    OPTION("log-health-checks", CFG_DBACK, log_health_checks,
           "logs every change of a check's result"),
    OPTION("log-separate-errors", CFG_DFRONT, log_separate_errors,
           "raises the level of lines about failed requests"),
    OPTION("logasap", CFG_DFRONT, logasap, "logs before the data has been transferred"),
    OPTION("nolinger", CFG_DPROXY, nolinger, "closes sockets without waiting for unsent data"),
    ADDRESS("originalto", originalto, 0, "[except <network>] [header <name>]",
            "adds the address that the client connected to"),
    OPTION("persist", CFG_DBACK, persist,
           "sends requests to their cookie's server even when it is down"),
    OPTION("prefer-last-server", CFG_DBACK, prefer_last_server,
           "keeps a client's connection to one server when it can"),
    SPECIAL("redispatch", CFG_DBACK, parse_redispatch, 0, "[<interval>]",
            "a retry may go to another server"),
    OPTION("socket-stats", CFG_DFRONT, socket_stats, "counts each listening socket by itself"),
    OPTION("splice-auto", CFG_DPROXY, splice_auto, "lets the kernel move data where it pays"),
    OPTION("splice-request", CFG_DPROXY, splice_request, "lets the kernel move request data"),
    OPTION("splice-response", CFG_DPROXY, splice_response, "lets the kernel move response data"),
    OPTION("srvtcpka", CFG_DBACK, srvtcpka, "TCP keep-alive towards servers"),
    SPECIAL("ssl-hello-chk", CFG_DBACK, parse_check_type, CFG_CHECK_SSL_HELLO, NULL,
            "health checks send a TLS client hello"),
    SPECIAL("tcp-check", CFG_DBACK, parse_check_type, CFG_CHECK_TCP_SCRIPT, NULL,
            "health checks follow the tcp-check lines"),
    OPTION("tcp-smart-accept", CFG_DFRONT, tcp_smart_accept,
           "delays acknowledgements of a request"),
    OPTION("tcp-smart-connect", CFG_DBACK, tcp_smart_connect,
           "sends the first data with the handshake's acknowledgement"),
    OPTION("tcpka", CFG_DPROXY, tcpka, "TCP keep-alive on both sides"),
    LOG_CHOICE("tcplog", 2, "[clf]", "logs connections in the TCP format"),
    OPTION("transparent", CFG_DBACK, transparent, "connects to the address the client asked for"),
    UNUSED("disable-h2-upgrade", CFG_DFRONT, CFG_KW_QUIET, NULL,
           "clear-text HTTP/2 is not accepted by an upgrade"),
    UNUSED("h1-case-adjust-bogus-server", CFG_DBACK, 0, NULL,
           "header names go to servers as they came from the client"),
    UNUSED("use-small-buffers", CFG_DBACK, CFG_KW_QUIET, NULL, "buffers have one size"),
    CFG_KW_END,
};
