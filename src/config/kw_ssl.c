#include "config/parser.h"

#include <limits.h>

/* Appends to the list of certificates; its room doubles whenever the count reaches a power of two. */
static struct cfg_ssl_crt *add_crt(struct cfg_parser *p, struct cfg_ssl *ssl)
{
    size_t count = (size_t)ssl->crt_count;

    if ((count & (count - 1)) == 0) {
        struct cfg_ssl_crt *crts = cfg_new(p, sizeof(*crts) * (count ? count * 2 : 1));

        if (!crts)
            return NULL;
        if (count)
            memcpy(crts, ssl->crts, count * sizeof(*crts));
        ssl->crts = crts;
    }
    return &ssl->crts[ssl->crt_count++];
}

static int parse_crt(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                     char **argv)
{
    struct cfg_ssl *ssl = object;
    struct cfg_ssl_crt *crt = add_crt(p, ssl);

    if (!crt)
        return 1;
    *crt = (struct cfg_ssl_crt){.path = argv[0], .is_list = kw->min == 'l'};
    if (kw->min == 'd') {
        memmove(ssl->crts + 1, ssl->crts, sizeof(*crt) * (size_t)(ssl->crt_count - 1));
        ssl->crts[0] = (struct cfg_ssl_crt){.path = argv[0]};
    }
    return 1;
}

/* A server has one certificate: a later line replaces what default-server gave. */
static int parse_server_crt(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                            char **argv)
{
    struct cfg_ssl *ssl = object;

    ssl->crts = NULL;
    ssl->crt_count = 0;
    return parse_crt(p, kw, object, argc, argv);
}

static int parse_verify(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                        char **argv)
{
    static const char *const bind_words[] = {"none", "optional", "required"};
    static const char *const server_words[] = {"none", "required"};
    static const enum cfg_ssl_verify bind_values[] = {CFG_VERIFY_NONE, CFG_VERIFY_OPTIONAL,
                                                      CFG_VERIFY_REQUIRED};
    static const enum cfg_ssl_verify server_values[] = {CFG_VERIFY_NONE, CFG_VERIFY_REQUIRED};
    bool server = kw->min == 's';
    enum cfg_ssl_verify *field = (enum cfg_ssl_verify *)((char *)object + kw->at);
    int index;

    if (cfg_value_word(p, kw, argv[0], server ? server_words : bind_words, server ? 2 : 3,
                       &index) != 0)
        return SP_EINVAL;
    *field = server ? server_values[index] : bind_values[index];
    return 1;
}

static int parse_version(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                         char **argv)
{
    static const char *const words[] = {"SSLv3", "TLSv1.0", "TLSv1.1", "TLSv1.2", "TLSv1.3"};
    static const int values[] = {30, 10, 11, 12, 13};
    int index;

    if (cfg_value_word(p, kw, argv[0], words, 5, &index) != 0)
        return SP_EINVAL;
    *(int *)((char *)object + kw->at) = values[index];
    return 1;
}

static int parse_alpn(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                      char **argv)
{
    struct cfg_ssl *ssl = object;

    ssl->alpn = kw->min ? NULL : argv[0];
    ssl->no_alpn = kw->min;
    return kw->min ? 0 : 1;
}

static int parse_tickets(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                         char **argv)
{
    struct cfg_ssl *ssl = object;

    ssl->no_tickets = kw->min == 0;
    ssl->tickets = kw->min != 0;
    return 0;
}

static int parse_sni_auto(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                          char **argv)
{
    ((struct cfg_ssl *)object)->sni = kw->min ? "req.hdr(host),host_only" : NULL;
    return 0;
}

static int parse_no_verifyhost(struct cfg_parser *p, const struct cfg_kw *kw, void *object,
                               int argc, char **argv)
{
    ((struct cfg_ssl *)object)->verify_host = NULL;
    return 0;
}

/* --- global defaults --- */

static int parse_options(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                         char **argv)
{
    struct cfg_ssl *ssl = (struct cfg_ssl *)((char *)object + kw->at);
    struct str context = str_of(kw->name);
    int status;

    memcpy(p->context, context.ptr, context.len + 1);
    status = cfg_options_apply(p, (unsigned)kw->min, ssl, ssl, argc, argv);
    p->context[0] = '\0';
    return status == 0 ? argc : status;
}

static int parse_engine(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                        char **argv)
{
    struct cfg_global *g = object;

    g->ssl_engine = argv[0];
    g->ssl_engine_algos = NULL;
    g->ssl_engine_loc = p->loc;
    if (argc > 1 && strcmp(argv[1], "algo") == 0) {
        if (argc == 2)
            return cfg_kw_fail(p, kw,
                               "missing algorithms after 'algo'; expected a list like RSA,EC");
        g->ssl_engine_algos = argv[2];
        return 3;
    }
    return 1;
}

/* "cryptodev:DEVICE [policy]". */
static int parse_device(struct cfg_parser *p, const struct cfg_kw *kw, struct cfg_global *g, const char *device, int argc,
                        char **argv, const char *const *policies)
{
    int policy = 2; /* who names a device means it */

    if (!*device)
        return cfg_kw_fail(p, kw, "missing name after 'cryptodev:'; expected a crypto device of DPDK's like crypto_openssl");
    if (argc > 1 && cfg_value_word(p, kw, argv[1], policies, 3, &policy) != 0)
        return SP_EINVAL;
    g->crypto_backends[CFG_CRYPTO_CRYPTODEV] = (enum cfg_crypto_policy)(policy + CFG_CRYPTO_OFF);
    g->crypto_device = device;
    g->crypto_device_loc = p->loc;
    return argc > 1 ? 2 : 1;
}

static int parse_backend(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                         char **argv)
{
    static const char *const names[] = {"openssl", "multibuffer", "threads", "cryptodev:DEVICE"};
    static const char *const policies[] = {"off", "prefer", "require"};
    struct cfg_global *g = object;
    int backend, policy;

    if (strncmp(argv[0], "cryptodev:", 10) == 0)
        return parse_device(p, kw, g, argv[0] + 10, argc, argv, policies);
    if (cfg_value_word(p, kw, argv[0], names, 4, &backend) != 0)
        return SP_EINVAL;
    if (backend == CFG_CRYPTO_CRYPTODEV)
        return cfg_kw_fail(p, kw, "'DEVICE' stands for the name of a crypto device of DPDK's, such as crypto_openssl");
    if (argc < 2)
        return cfg_kw_fail(p, kw, "missing policy after '%s'; expected 'off', 'prefer' or 'require'", argv[0]);
    if (cfg_value_word(p, kw, argv[1], policies, 3, &policy) != 0)
        return SP_EINVAL;
    if (backend == 0 && policy == 0)
        return cfg_kw_fail(p, kw, "'openssl' cannot be off: it does what the lanes have not; expected 'prefer' or 'require'");
    g->crypto_backends[backend] = (enum cfg_crypto_policy)(policy + CFG_CRYPTO_OFF);
    g->crypto_loc = p->loc;
    return 2;
}

void cfg_ssl_inherit(struct cfg_ssl *ssl, const struct cfg_ssl *defaults)
{
    const struct {
        const char **field;
        const char *value;
    } texts[] = {
        {&ssl->ciphers, defaults->ciphers},
        {&ssl->ciphersuites, defaults->ciphersuites},
        {&ssl->curves, defaults->curves},
        {&ssl->sigalgs, defaults->sigalgs},
        {&ssl->client_sigalgs, defaults->client_sigalgs},
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (!*texts[i].field)
            *texts[i].field = texts[i].value;
    }
    if (!ssl->min_version)
        ssl->min_version = defaults->min_version;
    if (!ssl->max_version)
        ssl->max_version = defaults->max_version;
    ssl->no_sslv3 |= defaults->no_sslv3;
    ssl->no_tlsv10 |= defaults->no_tlsv10;
    ssl->no_tlsv11 |= defaults->no_tlsv11;
    ssl->no_tlsv12 |= defaults->no_tlsv12;
    ssl->no_tlsv13 |= defaults->no_tlsv13;
    ssl->force_sslv3 |= defaults->force_sslv3;
    ssl->force_tlsv10 |= defaults->force_tlsv10;
    ssl->force_tlsv11 |= defaults->force_tlsv11;
    ssl->force_tlsv12 |= defaults->force_tlsv12;
    ssl->force_tlsv13 |= defaults->force_tlsv13;
    ssl->no_tickets |= defaults->no_tickets && !ssl->tickets;
    ssl->prefer_client_ciphers |= defaults->prefer_client_ciphers;
    ssl->strict_sni |= defaults->strict_sni && !ssl->no_strict_sni;
}

#define S(field) offsetof(struct cfg_ssl, field)
#define G(field) offsetof(struct cfg_global, field)
#define BOTH (CFG_OPT_BIND | CFG_SERVERS)
#define BOTH_DEFAULTS (CFG_OPT_SSL_BIND | CFG_OPT_SSL_SERVER)
#define TEXT(word, where, field, arguments, text)                                       \
    {                                                                                   \
        .name = word, .sections = where, .kind = CFG_KW_STRING, .flags = CFG_KW_IN_SSL, \
        .at = S(field), .args = arguments, .help = text                                 \
    }
#define FLAG(word, where, field, text)                                                \
    {                                                                                 \
        .name = word, .sections = where, .kind = CFG_KW_FLAG, .flags = CFG_KW_IN_SSL, \
        .at = S(field), .help = text                                                  \
    }
#define UNFLAG(word, where, field, text)                                                \
    {                                                                                   \
        .name = word, .sections = where, .kind = CFG_KW_UNFLAG, .flags = CFG_KW_IN_SSL, \
        .at = S(field), .help = text                                                    \
    }
#define PARSE(word, where, function, value, least, arguments, text)                               \
    {                                                                                             \
        .name = word, .sections = where, .flags = CFG_KW_IN_SSL, .min = value, .min_args = least, \
        .args = arguments, .help = text, .parse = function                                        \
    }
#define PARSE_AT(word, where, function, field, value, arguments, text)                         \
    {                                                                                          \
        .name = word, .sections = where, .flags = CFG_KW_IN_SSL, .at = S(field), .min = value, \
        .min_args = 1, .args = arguments, .help = text, .parse = function                      \
    }
#define UNUSED(word, where, kind_, extra, arguments, why)                                  \
    {                                                                                      \
        .name = word, .sections = where, .kind = kind_, .flags = extra, .at = CFG_NOWHERE, \
        .args = arguments, .help = why, .note = why                                        \
    }

const struct cfg_kw cfg_kw_ssl[] = {
    FLAG("ssl", BOTH, enabled, "connections are TLS"),
    UNFLAG("no-ssl", CFG_SERVERS, enabled, "undoes 'ssl' of default-server"),
    FLAG("allow-0rtt", BOTH, allow_0rtt, "early data is accepted, or sent to the server"),
    PARSE("alpn", BOTH, parse_alpn, 0, 1, "<protocols>",
          "protocols that are announced, like h2,http/1.1"),
    PARSE("no-alpn", CFG_OPT_BIND, parse_alpn, 1, 0, NULL, "no protocol is announced"),
    TEXT("ca-file", BOTH, ca_file, "<file>",
         "certificates of the authorities that may sign the peer's"),
    TEXT("ca-ignore-err", CFG_OPT_BIND, ca_ignore_err, "all|<errors>",
         "problems of an authority's certificate that are overlooked"),
    TEXT("ca-verify-file", CFG_OPT_BIND, ca_verify_file, "<file>",
         "authorities that verify but are not announced to clients"),
    TEXT("ciphers", BOTH, ciphers, "<ciphers>", "ciphers up to TLS 1.2"),
    TEXT("ciphersuites", BOTH, ciphersuites, "<suites>", "cipher suites of TLS 1.3"),
    TEXT("client-sigalgs", BOTH, client_sigalgs, "<algorithms>",
         "signatures of client certificates"),
    TEXT("crl-file", BOTH, crl_file, "<file>", "revoked certificates"),
    PARSE("crt", CFG_OPT_BIND, parse_crt, 0, 1, "<file>|<folder>",
          "certificates and keys; may be repeated"),
    PARSE("crt", CFG_SERVERS, parse_server_crt, 0, 1, "<file>",
          "the certificate that servers are shown"),
    TEXT("crt-ignore-err", CFG_OPT_BIND, crt_ignore_err, "all|<errors>",
         "problems of a client's certificate that are overlooked"),
    PARSE("crt-list", CFG_OPT_BIND, parse_crt, 'l', 1, "<file>",
          "a file of certificates with their options and names"),
    TEXT("curves", BOTH, curves, "<curves>", "groups of the key exchange"),
    PARSE("default-crt", CFG_OPT_BIND, parse_crt, 'd', 1, "<file>",
          "the certificate when no name matches"),
    TEXT("ecdhe", CFG_OPT_BIND, curves, "<curve>", "the older name of 'curves'"),
    FLAG("force-sslv3", BOTH | BOTH_DEFAULTS, force_sslv3, "SSL 3 alone"),
    FLAG("force-tlsv10", BOTH | BOTH_DEFAULTS, force_tlsv10, "TLS 1.0 alone"),
    FLAG("force-tlsv11", BOTH | BOTH_DEFAULTS, force_tlsv11, "TLS 1.1 alone"),
    FLAG("force-tlsv12", BOTH | BOTH_DEFAULTS, force_tlsv12, "TLS 1.2 alone"),
    FLAG("force-tlsv13", BOTH | BOTH_DEFAULTS, force_tlsv13, "TLS 1.3 alone"),
    FLAG("no-sslv3", BOTH | BOTH_DEFAULTS, no_sslv3, "without SSL 3"),
    FLAG("no-tlsv10", BOTH | BOTH_DEFAULTS, no_tlsv10, "without TLS 1.0"),
    FLAG("no-tlsv11", BOTH | BOTH_DEFAULTS, no_tlsv11, "without TLS 1.1"),
    FLAG("no-tlsv12", BOTH | BOTH_DEFAULTS, no_tlsv12, "without TLS 1.2"),
    FLAG("no-tlsv13", BOTH | BOTH_DEFAULTS, no_tlsv13, "without TLS 1.3"),
    PARSE("no-tls-tickets", BOTH | BOTH_DEFAULTS, parse_tickets, 0, 0, NULL, "no session tickets"),
    PARSE("tls-tickets", BOTH | BOTH_DEFAULTS, parse_tickets, 1, 0, NULL,
          "session tickets, even when the defaults turn them off"),
    FLAG("no-ssl-reuse", CFG_SERVERS, no_ssl_reuse, "sessions with the server are not resumed"),
    UNFLAG("ssl-reuse", CFG_SERVERS, no_ssl_reuse,
           "sessions with the server are resumed; the default"),
    FLAG("prefer-client-ciphers", CFG_OPT_BIND | CFG_OPT_SSL_BIND, prefer_client_ciphers,
         "the client's order of ciphers counts"),
    TEXT("sigalgs", BOTH, sigalgs, "<algorithms>", "signatures of the handshake"),
    TEXT("sni", CFG_SERVERS, sni, "<expression>", "the name that the server is asked for"),
    PARSE("sni-auto", CFG_SERVERS, parse_sni_auto, 1, 0, NULL,
          "the server is asked for the request's host"),
    PARSE("no-sni-auto", CFG_SERVERS, parse_sni_auto, 0, 0, NULL,
          "the server is asked for no name"),
    PARSE_AT("ssl-max-ver", BOTH | BOTH_DEFAULTS, parse_version, max_version, 0,
             "SSLv3|TLSv1.0|TLSv1.1|TLSv1.2|TLSv1.3", "the newest protocol version"),
    PARSE_AT("ssl-min-ver", BOTH | BOTH_DEFAULTS, parse_version, min_version, 0,
             "SSLv3|TLSv1.0|TLSv1.1|TLSv1.2|TLSv1.3", "the oldest protocol version"),
    FLAG("strict-sni", CFG_OPT_BIND | CFG_OPT_SSL_BIND, strict_sni,
         "clients that name no known host are refused"),
    FLAG("no-strict-sni", CFG_OPT_BIND, no_strict_sni,
         "undoes 'strict-sni' of ssl-default-bind-options"),
    PARSE_AT("verify", CFG_OPT_BIND, parse_verify, verify, 'b', "none|optional|required",
             "whether clients must show a certificate"),
    PARSE_AT("verify", CFG_SERVERS, parse_verify, verify, 's', "none|required",
             "whether the server's certificate is verified"),
    TEXT("verifyhost", CFG_SERVERS, verify_host, "<name>",
         "the name that the server's certificate must have"),
    PARSE("no-verifyhost", CFG_SERVERS, parse_no_verifyhost, 0, 0, NULL, "undoes 'verifyhost'"),
    UNUSED("no-ca-names", CFG_OPT_BIND, CFG_KW_FLAG, 0, NULL,
           "the authorities are announced to clients"),
    UNUSED("npn", BOTH, CFG_KW_STRING, 0, "<protocols>", "ALPN has replaced it"),
    UNUSED("renegotiate", CFG_SERVERS, CFG_KW_FLAG, 0, NULL, "TLS is never renegotiated"),
    UNUSED("no-renegotiate", CFG_SERVERS | BOTH_DEFAULTS, CFG_KW_FLAG, CFG_KW_QUIET, NULL,
           "TLS is never renegotiated"),
    UNUSED("ktls", BOTH, CFG_KW_STRING, 0, "on|off", "records are not made by the kernel"),
    CFG_KW_END,
};

#define DEFAULT_TEXT(word, field, text)                                                  \
    {                                                                                    \
        .name = word, .sections = CFG_SEC_GLOBAL, .kind = CFG_KW_STRING, .at = G(field), \
        .args = "<list>", .help = text                                                   \
    }

const struct cfg_kw cfg_kw_global_ssl[] = {
    {.name = "ca-base",
     .sections = CFG_SEC_GLOBAL,
     .kind = CFG_KW_STRING,
     .at = G(ca_base),
     .args = "<folder>",
     .help = "where relative ca-file and crl-file paths begin"},
    {.name = "crt-base",
     .sections = CFG_SEC_GLOBAL,
     .kind = CFG_KW_STRING,
     .at = G(crt_base),
     .args = "<folder>",
     .help = "where relative crt and crt-list paths begin"},
    DEFAULT_TEXT("ssl-default-bind-ciphers", ssl_bind_defaults.ciphers,
                 "ciphers of binds without their own"),
    DEFAULT_TEXT("ssl-default-bind-ciphersuites", ssl_bind_defaults.ciphersuites,
                 "TLS 1.3 suites of binds without their own"),
    DEFAULT_TEXT("ssl-default-bind-client-sigalgs", ssl_bind_defaults.client_sigalgs,
                 "signatures of client certificates of binds without their own"),
    DEFAULT_TEXT("ssl-default-bind-curves", ssl_bind_defaults.curves,
                 "groups of binds without their own"),
    DEFAULT_TEXT("ssl-default-bind-sigalgs", ssl_bind_defaults.sigalgs,
                 "signatures of binds without their own"),
    {.name = "ssl-default-bind-options",
     .sections = CFG_SEC_GLOBAL,
     .at = G(ssl_bind_defaults),
     .min = CFG_OPT_SSL_BIND,
     .min_args = 1,
     .args = "<option>...",
     .help = "TLS options that all binds begin with",
     .parse = parse_options},
    DEFAULT_TEXT("ssl-default-server-ciphers", ssl_server_defaults.ciphers,
                 "ciphers of servers without their own"),
    DEFAULT_TEXT("ssl-default-server-ciphersuites", ssl_server_defaults.ciphersuites,
                 "TLS 1.3 suites of servers without their own"),
    DEFAULT_TEXT("ssl-default-server-client-sigalgs", ssl_server_defaults.client_sigalgs,
                 "signatures of our certificate for servers without their own"),
    DEFAULT_TEXT("ssl-default-server-curves", ssl_server_defaults.curves,
                 "groups of servers without their own"),
    DEFAULT_TEXT("ssl-default-server-sigalgs", ssl_server_defaults.sigalgs,
                 "signatures of servers without their own"),
    {.name = "ssl-default-server-options",
     .sections = CFG_SEC_GLOBAL,
     .at = G(ssl_server_defaults),
     .min = CFG_OPT_SSL_SERVER,
     .min_args = 1,
     .args = "<option>...",
     .help = "TLS options that all servers begin with",
     .parse = parse_options},
    {.name = "crypto-backend",
     .sections = CFG_SEC_GLOBAL,
     .min_args = 1,
     .args = "openssl|multibuffer|threads|cryptodev:<device> require|prefer|off",
     .help = "what may do the private-key operations: the scalar library, the vector lanes of this CPU, threads of their own, "
             "or a crypto device of DPDK's (RSA; 'require' when nothing follows it)",
     .parse = parse_backend},
    {.name = "crypto-queue-max",
     .sections = CFG_SEC_GLOBAL,
     .kind = CFG_KW_INT,
     .at = G(crypto_queue_max),
     .max = INT_MAX,
     .args = "<number>",
     .help = "operations that may wait a worker; beyond, full handshakes with an RSA key are refused at the ClientHello; "
             "0 is no bound (1024)"},
    {.name = "crypto-threads",
     .sections = CFG_SEC_GLOBAL,
     .kind = CFG_KW_INT,
     .at = G(crypto_threads),
     .max = 256,
     .args = "<number>",
     .help = "threads that do the RSA operations of all workers; 0: the workers do them between their turns (0)"},
    {.name = "ssl-dh-param-file",
     .sections = CFG_SEC_GLOBAL,
     .kind = CFG_KW_STRING,
     .at = G(dh_param_file),
     .args = "<file>",
     .help = "Diffie-Hellman parameters"},
    {.name = "ssl-engine",
     .sections = CFG_SEC_GLOBAL,
     .min_args = 1,
     .args = "<name> [algo <list>]",
     .help = "what does the private-key operations",
     .parse = parse_engine},
    {.name = "ssl-mode-async",
     .sections = CFG_SEC_GLOBAL,
     .kind = CFG_KW_FLAG,
     .at = G(ssl_mode_async),
     .help = "private-key operations do not block; always so here"},
    {.name = "ssl-server-verify",
     .sections = CFG_SEC_GLOBAL,
     .at = G(ssl_server_verify),
     .min = 's',
     .min_args = 1,
     .args = "none|required",
     .help = "the default of servers' 'verify'",
     .parse = parse_verify},
    {.name = "tune.ssl.cachesize",
     .sections = CFG_SEC_GLOBAL,
     .kind = CFG_KW_INT,
     .at = G(ssl_cache_entries),
     .max = INT_MAX,
     .args = "<number>",
     .help = "sessions that the cache holds; 0 turns it off"},
    {.name = "tune.ssl.default-dh-param",
     .sections = CFG_SEC_GLOBAL,
     .kind = CFG_KW_INT,
     .at = G(dh_bits),
     .min = 1024,
     .max = 16384,
     .args = "<bits>",
     .help = "size of Diffie-Hellman parameters"},
    {.name = "tune.ssl.lifetime",
     .sections = CFG_SEC_GLOBAL,
     .kind = CFG_KW_TIME_S,
     .at = G(ssl_lifetime_s),
     .args = "<time>",
     .help = "how long a session can be resumed; bare numbers are seconds"},
    {.name = "tune.ssl.maxrecord",
     .sections = CFG_SEC_GLOBAL,
     .kind = CFG_KW_INT,
     .at = G(ssl_maxrecord),
     .max = INT_MAX,
     .args = "<bytes>",
     .help = "most plaintext in one record"},
    CFG_KW_END,
};
