#include "config/parser.h"

#include <limits.h>

static int parse_mode(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                      char **argv)
{
    static const char *const words[] = {"tcp", "http"};
    struct cfg_proxy *px = object;
    int index;

    if (strcmp(argv[0], "log") == 0 || strcmp(argv[0], "spop") == 0 ||
        strcmp(argv[0], "health") == 0)
        return cfg_kw_fail(p, kw,
                           "'%s' is a HAProxy mode that Sallyport does not support; expected "
                           "'tcp' or 'http'",
                           argv[0]);
    if (cfg_value_word(p, kw, argv[0], words, 2, &index) != 0)
        return SP_EINVAL;
    px->mode_tcp = index == 0;
    return 1;
}

static int parse_description(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                             char **argv)
{
    const char *text = argv[0];

    for (int i = 1; i < argc && text; i++)
        text = cfg_printf(p, "%s %s", text, argv[i]);
    *(const char **)((char *)object + kw->at) = text;
    return argc;
}

static int parse_default_backend(struct cfg_parser *p, const struct cfg_kw *kw, void *object,
                                 int argc, char **argv)
{
    struct cfg_proxy *px = object;

    px->default_backend = argv[0];
    px->default_backend_loc = p->loc;
    return 1;
}

static int parse_reuse(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                       char **argv)
{
    static const char *const words[] = {"never", "safe", "aggressive", "always"};
    struct cfg_proxy *px = object;
    int index;

    if (cfg_value_word(p, kw, argv[0], words, 4, &index) != 0)
        return SP_EINVAL;
    px->reuse = (enum cfg_reuse)index;
    return 1;
}

static int parse_retry_on(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                          char **argv)
{
    static const char *const words[] = {
        "none",
        "conn-failure",
        "empty-response",
        "junk-response",
        "response-timeout",
        "0rtt-rejected",
        "all-retryable-errors",
        "401",
        "403",
        "404",
        "408",
        "421",
        "425",
        "429",
        "500",
        "501",
        "502",
        "503",
        "504",
        "receiving-response",
    };
    struct cfg_proxy *px = object;
    int index;

    for (int i = 0; i < argc; i++) {
        if (cfg_value_word(p, kw, argv[i], words, sizeof(words) / sizeof(words[0]), &index) != 0)
            return SP_EINVAL;
    }
    px->retry_on = argv;
    px->retry_on_count = argc;
    return argc;
}

static int parse_unique_id_format(struct cfg_parser *p, const struct cfg_kw *kw, void *object,
                                  int argc, char **argv)
{
    struct cfg_proxy *px = object;

    px->unique_id_format = argv[0];
    px->unique_id_loc = p->loc;
    return 1;
}

/* --- cookie --- */

/* "a" or "a; domain=b": values that may be given several times become one text. */
static void append(struct cfg_parser *p, const char **text, const char *separator, const char *word)
{
    *text = *text ? cfg_printf(p, "%s%s%s", *text, separator, word) : word;
}

static bool cookie_flag(struct cfg_cookie *c, const char *word)
{
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {
        {"rewrite", &c->rewrite},   {"insert", &c->insert},     {"prefix", &c->prefix},
        {"indirect", &c->indirect}, {"nocache", &c->nocache},   {"postonly", &c->postonly},
        {"preserve", &c->preserve}, {"httponly", &c->httponly}, {"secure", &c->secure},
        {"dynamic", &c->dynamic},
    };

    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        if (strcmp(word, flags[i].name) == 0) {
            *flags[i].flag = true;
            return true;
        }
    }
    return false;
}

static int cookie_value(struct cfg_parser *p, const struct cfg_kw *kw, struct cfg_cookie *c,
                        const char *name, const char *value)
{
    int64_t time = 0;

    if (strcmp(name, "domain") == 0) {
        if (!strchr(value, '.') && strcmp(value, "localhost") != 0)
            cfg_kw_warn(p, kw, "domain '%s' contains no dot; browsers will refuse the cookie",
                        value);
        append(p, &c->domain, "; domain=", value);
        return 0;
    }
    if (strcmp(name, "attr") == 0) {
        append(p, &c->attr, "; ", value);
        return 0;
    }
    if (cfg_value_time(p, kw, value, 1000000, &time) != 0)
        return SP_EINVAL;
    if (strcmp(name, "maxidle") == 0)
        c->maxidle_s = (time + 999999) / 1000000;
    else
        c->maxlife_s = (time + 999999) / 1000000;
    return 0;
}

static int parse_cookie(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                        char **argv)
{
    struct cfg_proxy *px = object;
    struct cfg_cookie c = {.name = argv[0]};
    int at = 1;

    while (at < argc) {
        const char *word = argv[at];
        bool takes_value = strcmp(word, "domain") == 0 || strcmp(word, "attr") == 0 ||
                           strcmp(word, "maxidle") == 0 || strcmp(word, "maxlife") == 0;

        if (takes_value && at + 1 == argc)
            return cfg_kw_fail(p, kw, "missing value after '%s'", word);
        if (takes_value) {
            if (cookie_value(p, kw, &c, word, argv[at + 1]) != 0)
                return SP_EINVAL;
            at += 2;
        } else if (cookie_flag(&c, word)) {
            at++;
        } else {
            break;
        }
    }
    if (c.rewrite + c.insert + c.prefix > 1)
        return cfg_kw_fail(p, kw, "'rewrite', 'insert' and 'prefix' exclude each other");
    if (c.dynamic && !c.insert)
        return cfg_kw_fail(p, kw, "'dynamic' needs 'insert'");
    if (c.dynamic)
        return cfg_kw_fail(p, kw,
                           "'dynamic' is a HAProxy keyword that Sallyport does not support; give "
                           "the servers a 'cookie' each");
    px->cookie = c;
    return at;
}

/* --- compression --- */

static int parse_compression_algo(struct cfg_parser *p, const struct cfg_kw *kw, void *object,
                                  int argc, char **argv)
{
    static const char *const words[] = {"identity", "gzip", "deflate", "raw-deflate"};
    struct cfg_compression *c = &((struct cfg_proxy *)object)->compression;
    bool *const flags[] = {&c->identity, &c->gzip, &c->deflate, &c->raw_deflate};
    int index;

    for (int i = 0; i < argc; i++) {
        if (cfg_value_word(p, kw, argv[i], words, 4, &index) != 0)
            return SP_EINVAL;
        *flags[index] = true;
    }
    return argc;
}

static int parse_compression_type(struct cfg_parser *p, const struct cfg_kw *kw, void *object,
                                  int argc, char **argv)
{
    struct cfg_compression *c = &((struct cfg_proxy *)object)->compression;
    char **types = cfg_new(p, sizeof(*types) * (size_t)(c->type_count + argc));

    if (!types)
        return argc;
    for (int i = 0; i < c->type_count; i++)
        types[i] = c->types[i];
    for (int i = 0; i < argc; i++)
        types[c->type_count + i] = argv[i];
    c->types = types;
    c->type_count += argc;
    return argc;
}

static int parse_compression_direction(struct cfg_parser *p, const struct cfg_kw *kw, void *object,
                                       int argc, char **argv)
{
    if (strcmp(argv[0], "response") != 0)
        return cfg_kw_fail(p, kw, "'%s': requests are not compressed; expected 'response'",
                           argv[0]);
    return 1;
}

static int parse_filter(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                        char **argv)
{
    if (strcmp(argv[0], "compression") != 0)
        return cfg_kw_fail(p, kw,
                           "'%s' is a HAProxy filter that Sallyport does not support; expected "
                           "'compression'",
                           argv[0]);
    return 1;
}

/* --- addresses --- */

int cfg_parse_source(struct cfg_parser *p, const struct cfg_kw *kw, int argc, char **argv,
                     const char **text, struct addr_spec *out)
{
    struct addr_spec spec;

    if (cfg_value_addr(p, kw, argv[0], ADDR_PORT_RANGE | ADDR_RESOLVE, &spec) != 0)
        return SP_EINVAL;
    if (argc > 1 && (strcmp(argv[1], "usesrc") == 0 || strcmp(argv[1], "interface") == 0))
        return cfg_kw_fail(p, kw, "'%s' is a HAProxy keyword that Sallyport does not support",
                           argv[1]);
    *text = argv[0];
    *out = spec;
    return 1;
}

static int parse_source(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                        char **argv)
{
    struct cfg_proxy *px = object;

    return cfg_parse_source(p, kw, argc, argv, &px->source, &px->source_address);
}

static int parse_dispatch(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                          char **argv)
{
    struct cfg_proxy *px = object;

    if (cfg_value_addr(p, kw, argv[0], ADDR_PORT_REQUIRED | ADDR_RESOLVE, &px->dispatch_address) !=
        0)
        return SP_EINVAL;
    px->dispatch = argv[0];
    return 1;
}

static int parse_state_file(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                            char **argv)
{
    static const char *const words[] = {"none", "global", "local"};
    int index;

    if (cfg_value_word(p, kw, argv[0], words, 3, &index) != 0)
        return SP_EINVAL;
    if (index)
        cfg_kw_warn(p, kw,
                    "accepted, has no effect here: servers begin in the state that the "
                    "configuration gives them");
    return 1;
}

#define AT(field) offsetof(struct cfg_proxy, field)
#define FIELD(word, where, kind_, field, low, high, arguments, text)                              \
    {                                                                                             \
        .name = word, .sections = where, .kind = kind_, .at = AT(field), .min = low, .max = high, \
        .args = arguments, .help = text                                                           \
    }
#define PARSE(word, where, function, least, arguments, text)                                 \
    {                                                                                        \
        .name = word, .sections = where, .min_args = least, .args = arguments, .help = text, \
        .parse = function                                                                    \
    }
#define UNUSED(word, where, arguments, why)                                                    \
    {                                                                                          \
        .name = word, .sections = where, .kind = CFG_KW_ANY, .at = CFG_NOWHERE, .min_args = 1, \
        .args = arguments, .help = why, .note = why                                            \
    }

const struct cfg_kw cfg_kw_proxy[] = {
    FIELD("backlog", CFG_DFRONT, CFG_KW_INT, backlog, 0, INT_MAX, "<conns>",
          "connections that the system may hold before they are accepted"),
    PARSE("compression algo", CFG_DPROXY, parse_compression_algo, 1,
          "identity|gzip|deflate|raw-deflate...",
          "responses are compressed when the client accepts one of these"),
    PARSE("compression algo-res", CFG_DPROXY, parse_compression_algo, 1,
          "identity|gzip|deflate|raw-deflate...", "the same as compression algo"),
    PARSE("compression direction", CFG_DPROXY, parse_compression_direction, 1, "response",
          "what is compressed"),
    FIELD("compression offload", CFG_DPROXY, CFG_KW_FLAG, compression.offload, 0, 0, NULL,
          "servers are not asked for compression"),
    PARSE("compression type", CFG_DPROXY, parse_compression_type, 1, "<mime type>...",
          "only these types are compressed"),
    PARSE("compression type-res", CFG_DPROXY, parse_compression_type, 1, "<mime type>...",
          "the same as compression type"),
    PARSE(
        "cookie", CFG_DBACK, parse_cookie, 1,
        "<name> [rewrite|insert|prefix] [indirect] [nocache] [postonly] [preserve] [httponly] [secure] "
        "[domain <domain>] [maxidle <time>] [maxlife <time>] [attr <value>]",
        "keeps a client at its server with a cookie"),
    PARSE("default_backend", CFG_DFRONT, parse_default_backend, 1, "<backend>",
          "the backend when no use_backend applies"),
    {.name = "description",
     .sections = CFG_PROXY,
     .at = AT(description),
     .min_args = 1,
     .args = "<text>",
     .help = "a text for the statistics page",
     .parse = parse_description},
    FIELD("disabled", CFG_DPROXY, CFG_KW_FLAG, disabled, 0, 0, NULL, "the section is not started"),
    PARSE("dispatch", CFG_BACK, parse_dispatch, 1, "<address>:<port>",
          "where connections go that no server takes"),
    FIELD("enabled", CFG_DPROXY, CFG_KW_UNFLAG, disabled, 0, 0, NULL, "undoes 'disabled'"),
    FIELD("error-log-format", CFG_DFRONT, CFG_KW_STRING, error_log_format, 0, 0, "<format>",
          "the log line of a connection that failed"),
    PARSE("filter", CFG_PROXY, parse_filter, 1, "compression", "where compression takes place"),
    FIELD("fullconn", CFG_DBACK, CFG_KW_INT, fullconn, 1, INT_MAX, "<conns>",
          "load at which servers reach their maxconn when they have a minconn"),
    FIELD("hash-key", CFG_DBACK, CFG_KW_STRING, hash_key, 0, 0, "<key>",
          "what places servers on the consistent hash's circle"),
    PARSE("http-reuse", CFG_DBACK, parse_reuse, 1, "never|safe|aggressive|always",
          "when idle server connections are shared between clients"),
    FIELD("id", CFG_PROXY, CFG_KW_INT, id, 1, INT_MAX, "<number>",
          "a fixed number for statistics, instead of the next free one"),
    PARSE("load-server-state-from-file", CFG_DBACK, parse_state_file, 1, "none|global|local",
          "where servers' states are read from; only none has an effect"),
    FIELD("max-keep-alive-queue", CFG_DBACK, CFG_KW_INT, max_keep_alive_queue, -1, INT_MAX,
          "<number>", "queue length at which a request leaves its server"),
    FIELD("maxconn", CFG_DFRONT, CFG_KW_INT, maxconn, 0, INT_MAX, "<conns>",
          "connections at a time; more wait in the system's queue"),
    PARSE("mode", CFG_DPROXY, parse_mode, 1, "tcp|http", "what is spoken"),
    FIELD("monitor-uri", CFG_DFRONT, CFG_KW_STRING, monitor_uri, 0, 0, "<uri>",
          "a path that answers 200 without a server"),
    FIELD("retries", CFG_DBACK, CFG_KW_INT, retries, 0, INT_MAX, "<number>",
          "further attempts to connect to a server"),
    PARSE("retry-on", CFG_DBACK, parse_retry_on, 1, "<condition>...",
          "which failures of a request are tried again"),
    PARSE("source", CFG_DBACK, parse_source, 1, "<address>[:<port>]",
          "the address that server connections come from"),
    PARSE("unique-id-format", CFG_DPROXY, parse_unique_id_format, 1, "<format>",
          "what the unique ID of a request is made of"),
    FIELD("unique-id-header", CFG_DFRONT, CFG_KW_STRING, unique_id_header, 0, 0, "<name>",
          "the header that carries the unique ID to the server"),
    UNUSED("clitcpka-cnt", CFG_DFRONT, "<count>", "the system's own keep-alive counts apply"),
    UNUSED("clitcpka-idle", CFG_DFRONT, "<time>", "the system's own keep-alive times apply"),
    UNUSED("clitcpka-intvl", CFG_DFRONT, "<time>", "the system's own keep-alive times apply"),
    UNUSED("srvtcpka-cnt", CFG_DBACK, "<count>", "the system's own keep-alive counts apply"),
    UNUSED("srvtcpka-idle", CFG_DBACK, "<time>", "the system's own keep-alive times apply"),
    UNUSED("srvtcpka-intvl", CFG_DBACK, "<time>", "the system's own keep-alive times apply"),
    UNUSED("compression minsize-res", CFG_DPROXY, "<size>", "short bodies are compressed too"),
    UNUSED("guid", CFG_PROXY, "<name>", "objects are known by their names"),
    UNUSED("hash-preserve-affinity", CFG_DBACK, "always|maxconn|maxqueue",
           "a full server keeps the requests that are hashed to it"),
    UNUSED("server-state-file-name", CFG_DBACK, "<file>",
           "servers begin in the state that the configuration gives them"),
    CFG_KW_END,
};
