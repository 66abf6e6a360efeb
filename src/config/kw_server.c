#include "config/parser.h"

#include <limits.h>
#include <stdio.h>

#define TEMPLATE_MAX 10000

/* --- options --- */

static int parse_check_addr(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                            char **argv)
{
    struct cfg_server *s = object;

    if (cfg_value_addr(p, kw, argv[0], ADDR_RESOLVE, &s->check_address) != 0)
        return SP_EINVAL;
    s->check_addr_text = argv[0];
    return 1;
}

static int parse_check_ssl(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                           char **argv)
{
    struct cfg_server *s = object;

    s->check_ssl_given = s->check_ssl = kw->min;
    s->no_check_ssl = !kw->min;
    return 0;
}

static int parse_observe(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                         char **argv)
{
    static const char *const words[] = {"none", "layer4", "layer7"};
    struct cfg_server *s = object;
    int index;

    if (cfg_value_word(p, kw, argv[0], words, 3, &index) != 0)
        return SP_EINVAL;
    s->observe_layer4 = index == 1;
    s->observe_layer7 = index == 2;
    return 1;
}

static int parse_on_error(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                          char **argv)
{
    static const char *const words[] = {"fastinter", "fail-check", "sudden-death", "mark-down"};
    int index;

    if (cfg_value_word(p, kw, argv[0], words, 4, &index) != 0)
        return SP_EINVAL;
    ((struct cfg_server *)object)->on_error = index + 1;
    return 1;
}

static int parse_on_marked_down(struct cfg_parser *p, const struct cfg_kw *kw, void *object,
                                int argc, char **argv)
{
    static const char *const words[] = {"shutdown-sessions"};
    int index;

    if (cfg_value_word(p, kw, argv[0], words, 1, &index) != 0)
        return SP_EINVAL;
    ((struct cfg_server *)object)->on_marked_down = CFG_SHUTDOWN_SESSIONS;
    return 1;
}

static int parse_on_marked_up(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                              char **argv)
{
    static const char *const words[] = {"shutdown-backup-sessions"};
    int index;

    if (cfg_value_word(p, kw, argv[0], words, 1, &index) != 0)
        return SP_EINVAL;
    ((struct cfg_server *)object)->on_marked_up = CFG_SHUTDOWN_BACKUP_SESSIONS;
    return 1;
}

/* One of a few words, kept as it is: the field and the words depend on the row. */
static int parse_choice(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                        char **argv)
{
    static const char *const protos[] = {"h1", "h2", "none"};
    static const char *const ws[] = {"auto", "h1", "h2"};
    const char *const *words = kw->min == 'w' ? ws : protos;
    int index;

    if (cfg_value_word(p, kw, argv[0], words, 3, &index) != 0)
        return SP_EINVAL;
    *(const char **)((char *)object + kw->at) = words[index];
    return 1;
}

static int parse_proxy_options(struct cfg_parser *p, const struct cfg_kw *kw, void *object,
                               int argc, char **argv)
{
    static const char *const words[] = {"ssl",      "cert-cn",   "ssl-cipher", "cert-sig",
                                        "cert-key", "authority", "crc32c",     "unique-id"};
    struct str rest = str_of(argv[0]);
    int index;

    while (rest.len) {
        size_t comma = str_chr(rest, ',');
        const char *word = cfg_printf(p, "%.*s", (int)comma, rest.ptr);

        if (!word)
            return 1;
        if (cfg_value_word(p, kw, word, words, sizeof(words) / sizeof(words[0]), &index) != 0)
            return SP_EINVAL;
        rest = str_from(rest, comma + 1);
    }
    ((struct cfg_server *)object)->proxy_v2_options = argv[0];
    return 1;
}

static int parse_source(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                        char **argv)
{
    struct cfg_server *s = object;

    return cfg_parse_source(p, kw, argc, argv, &s->source, &s->source_address);
}

/* "last,libc,none". What matters is whether a name may stay unresolved. */
static int parse_init_addr(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                           char **argv)
{
    struct cfg_server *s = object;
    struct str rest = str_of(argv[0]);
    bool none = false;

    while (rest.len) {
        size_t comma = str_chr(rest, ',');
        struct str word = str_make(rest.ptr, comma);
        struct addr_net net;

        rest = str_from(rest, comma + 1);
        if (str_eq(word, STR("none")))
            none = true;
        else if (addr_net_parse(word, &net) == 0)
            return cfg_kw_fail(p, kw,
                               "'%.*s': fixed addresses are not supported; expected 'last', 'libc' "
                               "or 'none'",
                               STR_FMT(word));
        else if (!str_eq(word, STR("last")) && !str_eq(word, STR("libc")))
            return cfg_kw_fail(p, kw, "unknown method '%.*s'; expected 'last', 'libc' or 'none'",
                               STR_FMT(word));
    }
    s->init_addr_none = none;
    return 1;
}

/* --- lines --- */

/* The address of a server. A name that does not resolve is kept for later when init-addr allows it. */
static int parse_address(struct cfg_parser *p, const struct cfg_kw *kw, struct cfg_server *s)
{
    unsigned flags = ADDR_PORT_OFFSET | (p->env->sealed ? 0 : ADDR_RESOLVE);
    const char *why = "";
    int status = addr_parse(s->text, flags, &s->address, &why);

    if (status == SP_ENOENT && (s->init_addr_none || p->env->sealed)) {
        s->address = (struct addr_spec){.fd = -1};
        return 0;
    }
    if (status != 0)
        return cfg_kw_fail(p, kw, "invalid address '%s'; %s", s->text, why);
    if (s->address.datagram)
        return cfg_kw_fail(p, kw, "'%s' is a datagram address; expected a stream one", s->text);
    return 0;
}

static void append(struct cfg_parser *p, const struct cfg_server *parsed, const char *name, int id)
{
    struct cfg_server *s = cfg_new(p, sizeof(*s));

    if (!s || !name)
        return;
    *s = *parsed;
    s->next = NULL;
    s->name = name;
    s->id = id;
    *p->scope->servers_end = s;
    p->scope->servers_end = &s->next;
    p->scope->proxy->server_count++;
}

/* What "server" and "server-template" share: options first, then the address that they influence. */
static int parse_common(struct cfg_parser *p, const struct cfg_kw *kw, struct cfg_server *s,
                        const char *name, int argc, char **argv)
{
    int status, addressed;

    *s = p->scope->default_server;
    s->loc = p->loc;
    s->text = argv[0];
    s->address.fd = -1;
    snprintf(p->context, sizeof(p->context), "server '%s/%s'", p->scope->proxy->name, name);
    status = cfg_options_apply(p, CFG_OPT_SERVER, s, &s->ssl, argc - 1, argv + 1);
    addressed = parse_address(p, kw, s);
    p->context[0] = '\0';
    return status != 0 ? status : addressed;
}

static int parse_server(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                        char **argv)
{
    struct cfg_server s;
    int status;

    for (const char *c = argv[0]; *c; c++) {
        if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
              strchr("-_.:", *c)))
            return cfg_kw_fail(
                p, kw, "'%s' is not a name; expected letters, digits, '-', '_', '.' and ':'",
                argv[0]);
    }
    status = parse_common(p, kw, &s, argv[0], argc - 1, argv + 1);
    /* Kept even when something is wrong with it: lines that name it are right. */
    append(p, &s, argv[0], s.id);
    return status == 0 ? argc : status;
}

static int parse_template(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                          char **argv)
{
    struct str range = str_of(argv[1]);
    size_t dash = str_chr(range, '-');
    uint64_t low = 1, high = 0;
    struct cfg_server s;
    int status;

    if (str_to_u64(dash < range.len ? str_from(range, dash + 1) : range, &high) != 0 ||
        (dash < range.len && str_to_u64(str_make(range.ptr, dash), &low) != 0) || low == 0 ||
        high < low || high - low >= TEMPLATE_MAX)
        return cfg_kw_fail(p, kw,
                           "'%s' is not a number of servers; expected <number> or <low>-<high>, at "
                           "most %d servers",
                           argv[1], TEMPLATE_MAX);
    status = parse_common(p, kw, &s, argv[0], argc - 2, argv + 2);
    if (status != 0)
        return status;
    for (uint64_t i = low; i <= high && !p->no_memory; i++)
        append(p, &s, cfg_printf(p, "%s%u", argv[0], (unsigned)i),
               s.id ? s.id + (int)(i - low) : 0);
    return argc;
}

static int parse_default_server(struct cfg_parser *p, const struct cfg_kw *kw, void *object,
                                int argc, char **argv)
{
    struct cfg_server *s = &p->scope->default_server;
    int status;

    snprintf(p->context, sizeof(p->context), "default-server");
    status = cfg_options_apply(p, CFG_OPT_DEFAULT_SERVER, s, &s->ssl, argc, argv);
    p->context[0] = '\0';
    return status == 0 ? argc : status;
}

#define V(field) offsetof(struct cfg_server, field)
#define FLAG(word, field, text)                                                                  \
    {                                                                                            \
        .name = word, .sections = CFG_SERVERS, .kind = CFG_KW_FLAG, .at = V(field), .help = text \
    }
#define UNFLAG(word, field, text)                                                                  \
    {                                                                                              \
        .name = word, .sections = CFG_SERVERS, .kind = CFG_KW_UNFLAG, .at = V(field), .help = text \
    }
#define NUMBER(word, where, field, low, high, arguments, text)                           \
    {                                                                                    \
        .name = word, .sections = where, .kind = CFG_KW_INT, .at = V(field), .min = low, \
        .max = high, .args = arguments, .help = text                                     \
    }
#define TIME(word, field, low, text)                                                            \
    {                                                                                           \
        .name = word, .sections = CFG_SERVERS, .kind = CFG_KW_TIME, .at = V(field), .min = low, \
        .args = "<time>", .help = text                                                          \
    }
#define TEXT(word, field, arguments, text)                                            \
    {                                                                                 \
        .name = word, .sections = CFG_SERVERS, .kind = CFG_KW_STRING, .at = V(field), \
        .args = arguments, .help = text                                               \
    }
#define PARSE(word, function, least, arguments, text)                                              \
    {                                                                                              \
        .name = word, .sections = CFG_SERVERS, .min_args = least, .args = arguments, .help = text, \
        .parse = function                                                                          \
    }
#define CHOICE(word, field, which, arguments, text)                                         \
    {                                                                                       \
        .name = word, .sections = CFG_SERVERS, .at = V(field), .min = which, .min_args = 1, \
        .args = arguments, .help = text, .parse = parse_choice                              \
    }
#define CHECK_SSL(word, value, text)                                       \
    {                                                                      \
        .name = word, .sections = CFG_SERVERS, .min = value, .help = text, \
        .parse = parse_check_ssl                                           \
    }
#define UNUSED(word, kind_, extra, arguments, why)                                               \
    {                                                                                            \
        .name = word, .sections = CFG_SERVERS, .kind = kind_, .flags = extra, .at = CFG_NOWHERE, \
        .min = -1, .max = INT_MAX, .args = arguments, .help = why, .note = why                   \
    }

const struct cfg_kw cfg_kw_server[] = {
    {.name = "server",
     .sections = CFG_BACK,
     .min_args = 2,
     .args = "<name> <address>[:[<port>]] [options]",
     .help = "a server",
     .parse = parse_server},
    {.name = "server-template",
     .sections = CFG_BACK,
     .min_args = 3,
     .args = "<prefix> <number>|<range> <address>[:<port>] [options]",
     .help = "several servers at one address",
     .parse = parse_template},
    {.name = "default-server",
     .sections = CFG_DBACK,
     .min_args = 1,
     .args = "<options>",
     .help = "options that the servers below begin with",
     .parse = parse_default_server},
    PARSE("addr", parse_check_addr, 1, "<address>",
          "where health checks connect, instead of the server's address"),
    FLAG("backup", backup, "takes traffic only when no other server can"),
    FLAG("check", check, "health checks"),
    TEXT("check-alpn", check_alpn, "<protocols>", "what checks announce by ALPN"),
    CHOICE("check-proto", check_proto, 'p', "h1|h2|none", "the protocol of checks"),
    FLAG("check-send-proxy", check_send_proxy, "checks begin with a PROXY header"),
    TEXT("check-sni", check_sni, "<name>", "the name that checks ask for"),
    CHECK_SSL("check-ssl", 1, "checks use TLS even when traffic does not"),
    TEXT("cookie", cookie, "<value>", "the value of the persistence cookie"),
    FLAG("disabled", disabled, "starts in maintenance"),
    TIME("downinter", downinter_us, 1, "time between checks of a server that is down"),
    UNFLAG("enabled", disabled, "undoes 'disabled'"),
    NUMBER("error-limit", CFG_SERVERS, error_limit, 1, INT_MAX, "<number>",
           "errors in a row that trigger on-error"),
    NUMBER("fall", CFG_SERVERS, fall, 1, INT_MAX, "<number>",
           "failed checks until a server is down"),
    TIME("fastinter", fastinter_us, 1, "time between checks while the state changes"),
    NUMBER("id", CFG_OPT_SERVER, id, 1, INT_MAX, "<number>", "a fixed number for statistics"),
    PARSE("init-addr", parse_init_addr, 1, "last|libc|none[,...]",
          "what a name that does not resolve means"),
    TIME("inter", inter_us, 1, "time between checks"),
    NUMBER("max-reuse", CFG_SERVERS, max_reuse, -1, INT_MAX, "<number>",
           "requests that one connection may serve after its first"),
    NUMBER("maxconn", CFG_SERVERS, maxconn, 0, INT_MAX, "<number>",
           "requests at a time; more wait in its queue"),
    NUMBER("maxqueue", CFG_SERVERS, maxqueue, 0, INT_MAX, "<number>",
           "requests that may wait in its queue"),
    NUMBER("minconn", CFG_SERVERS, minconn, 0, INT_MAX, "<number>",
           "where a load-dependent maxconn begins"),
    UNFLAG("no-backup", backup, "undoes 'backup'"),
    UNFLAG("no-check", check, "undoes 'check'"),
    UNFLAG("no-check-send-proxy", check_send_proxy, "undoes 'check-send-proxy'"),
    CHECK_SSL("no-check-ssl", 0, "undoes 'check-ssl'"),
    UNFLAG("no-send-proxy", send_proxy, "undoes 'send-proxy'"),
    UNFLAG("no-send-proxy-v2", send_proxy_v2, "undoes 'send-proxy-v2'"),
    UNFLAG("no-send-proxy-v2-ssl", send_proxy_v2_ssl, "undoes 'send-proxy-v2-ssl'"),
    UNFLAG("no-send-proxy-v2-ssl-cn", send_proxy_v2_ssl_cn, "undoes 'send-proxy-v2-ssl-cn'"),
    UNFLAG("no-tfo", tfo, "undoes 'tfo'"),
    PARSE("observe", parse_observe, 1, "none|layer4|layer7", "traffic counts as a health check"),
    PARSE("on-error", parse_on_error, 1, "fastinter|fail-check|sudden-death|mark-down",
          "what too many observed errors do"),
    PARSE("on-marked-down", parse_on_marked_down, 1, "shutdown-sessions",
          "what happens to sessions of a server that went down"),
    PARSE("on-marked-up", parse_on_marked_up, 1, "shutdown-backup-sessions",
          "what happens to sessions on backup servers when this one came up"),
    NUMBER("pool-max-conn", CFG_SERVERS, pool_max_conn, -1, INT_MAX, "<number>",
           "idle connections that are kept; -1: any number"),
    TIME("pool-purge-delay", pool_purge_delay_us, 0, "how long idle connections are kept"),
    NUMBER("port", CFG_SERVERS, check_port, 1, 65535, "<port>", "the port of health checks"),
    CHOICE("proto", proto, 'p', "h1|h2|none", "the protocol, without negotiation"),
    PARSE("proxy-v2-options", parse_proxy_options, 1, "<option>[,<option>...]",
          "what the PROXY header of version 2 carries besides"),
    TEXT("redir", redir, "<prefix>", "requests are redirected to the server instead of sent there"),
    NUMBER("rise", CFG_SERVERS, rise, 1, INT_MAX, "<number>", "good checks until a server is up"),
    FLAG("send-proxy", send_proxy, "connections begin with a PROXY header of version 1"),
    FLAG("send-proxy-v2", send_proxy_v2, "connections begin with a PROXY header of version 2"),
    FLAG("send-proxy-v2-ssl", send_proxy_v2_ssl, "the same with facts of the client's TLS"),
    FLAG("send-proxy-v2-ssl-cn", send_proxy_v2_ssl_cn,
         "the same with the client certificate's name"),
    TIME("slowstart", slowstart_us, 0, "how long a server that came up gets less traffic"),
    PARSE("source", parse_source, 1, "<address>[:<port>]",
          "the address that connections come from"),
    TIME("tcp-ut", tcp_user_timeout_us, 0, "how long sent data may stay unacknowledged"),
    FLAG("tfo", tfo, "TCP fast open"),
    TEXT("track", track, "[<backend>/]<server>", "takes its state from another server's checks"),
    NUMBER("weight", CFG_SERVERS, weight, 0, 256, "<weight>", "its share of the load"),
    CHOICE("ws", ws, 'w', "auto|h1|h2", "the protocol of WebSocket connections"),
    UNUSED("check-pool-conn-name", CFG_KW_STRING, 0, "<name>",
           "checks use connections of their own"),
    UNUSED("check-reuse-pool", CFG_KW_FLAG, 0, NULL, "checks use connections of their own"),
    UNUSED("check-sni-auto", CFG_KW_FLAG, 0, NULL,
           "checks ask for the name that 'check-sni' gives"),
    UNUSED("no-check-reuse-pool", CFG_KW_FLAG, CFG_KW_QUIET, NULL,
           "checks use connections of their own"),
    UNUSED("no-check-sni-auto", CFG_KW_FLAG, CFG_KW_QUIET, NULL,
           "checks ask for the name that 'check-sni' gives"),
    UNUSED("guid", CFG_KW_STRING, 0, "<name>", "objects are known by their names"),
    UNUSED("hash-key", CFG_KW_STRING, 0, "id|addr|addr-port", "servers are placed by their id"),
    UNUSED("no-agent-check", CFG_KW_FLAG, CFG_KW_QUIET, NULL, "there are no agent checks"),
    UNUSED("non-stick", CFG_KW_FLAG, CFG_KW_QUIET, NULL, "there are no stick tables"),
    UNUSED("stick", CFG_KW_FLAG, CFG_KW_QUIET, NULL, "there are no stick tables"),
    UNUSED("pool-conn-name", CFG_KW_STRING, 0, "<expression>",
           "connections are told apart by their server name"),
    UNUSED("pool-low-conn", CFG_KW_INT, 0, "<number>",
           "every worker keeps idle connections of its own"),
    UNUSED("resolve-opts", CFG_KW_STRING, 0, "<options>", "names are resolved once, at the start"),
    UNUSED("resolve-prefer", CFG_KW_STRING, 0, "ipv4|ipv6",
           "names are resolved once, at the start, in the system's order"),
    UNUSED("strict-maxconn", CFG_KW_FLAG, 0, NULL, "maxconn counts requests"),
    CFG_KW_END,
};
