/*
 * The checked model of a configuration: what the text said, with defaults
 * applied, words turned into numbers, names not yet turned into objects. The
 * proxy builds its running objects from it. Everything lives in one arena.
 */
#ifndef SP_CONFIG_MODEL_H
#define SP_CONFIG_MODEL_H

#include "base/addr.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/logsink.h"

#define CFG_UNSET (-1)

/* A line kept as words for a later compiler (rules, ACLs, conditions). */
enum cfg_line_kind {
    CFG_LINE_ACL,                     /* words after "acl" */
    CFG_LINE_TCP_REQUEST_CONNECTION,  /* words after "tcp-request connection" */
    CFG_LINE_TCP_REQUEST_SESSION,
    CFG_LINE_TCP_REQUEST_CONTENT,
    CFG_LINE_TCP_RESPONSE_CONTENT,
    CFG_LINE_HTTP_REQUEST,            /* words after "http-request" */
    CFG_LINE_HTTP_RESPONSE,
    CFG_LINE_HTTP_AFTER_RESPONSE,
    CFG_LINE_REDIRECT,                /* words after "redirect" */
    CFG_LINE_USE_BACKEND,             /* words after "use_backend" */
    CFG_LINE_USE_SERVER,              /* words after "use-server" */
    CFG_LINE_CAPTURE,                 /* words after "capture" or "declare capture" ("request header X len N", "cookie X len N", "request len N") */
    CFG_LINE_MONITOR_FAIL,            /* words after "monitor fail" */
    CFG_LINE_HTTP_CHECK,              /* words after "http-check" */
    CFG_LINE_TCP_CHECK,               /* words after "tcp-check" */
};

struct cfg_line {
    struct cfg_line *next;
    enum cfg_line_kind kind;
    struct cfg_loc loc;
    int argc;
    char **argv; /* argv[argc] == NULL */
    bool from_defaults;
};

enum cfg_ssl_verify { CFG_VERIFY_UNSET, CFG_VERIFY_NONE, CFG_VERIFY_OPTIONAL, CFG_VERIFY_REQUIRED };

/* TLS options of a bind or server line; NULL or CFG_UNSET: not given. Paths are as written. */
struct cfg_ssl {
    bool enabled;
    struct cfg_ssl_crt {
        const char *path;
        bool is_list;
    } *crts;
    int crt_count;
    const char *ciphers, *ciphersuites, *curves, *sigalgs, *client_sigalgs, *alpn;
    const char *ca_file, *ca_verify_file, *crl_file, *ca_ignore_err, *crt_ignore_err;
    int min_version, max_version; /* 0 unset, 30 SSLv3, 10, 11, 12, 13 */
    bool no_sslv3, no_tlsv10, no_tlsv11, no_tlsv12, no_tlsv13;
    bool force_sslv3, force_tlsv10, force_tlsv11, force_tlsv12, force_tlsv13;
    bool no_tickets, strict_sni, prefer_client_ciphers, allow_0rtt;
    bool tickets;            /* "tls-tickets": overrides no-tls-tickets of the defaults */
    bool no_strict_sni;      /* overrides strict-sni of the defaults */
    bool no_alpn;            /* "no-alpn": no protocol is announced */
    enum cfg_ssl_verify verify;
    const char *sni;         /* server: expression */
    const char *verify_host; /* server */
    bool no_ssl_reuse;       /* server */
};

struct cfg_bind {
    struct cfg_bind *next;
    struct cfg_loc loc;
    const char *text;        /* the address as written, for messages */
    struct addr_spec address; /* one a bind line's comma-separated item */
    const char *name;        /* NULL: unnamed */
    int id;                  /* 0: assigned */
    struct cfg_ssl ssl;
    bool accept_proxy, accept_netscaler_cip;
    int backlog;             /* CFG_UNSET: the proxy's */
    int maxconn;             /* CFG_UNSET */
    int unix_mode, unix_uid, unix_gid; /* CFG_UNSET */
    bool v4v6, v6only, tfo, defer_accept, transparent;
    const char *interface;
    int mss;
    int64_t tcp_user_timeout_us; /* CFG_UNSET */
    int nice;
    unsigned thread_mask;    /* 0: all workers */
    const char *proto;       /* "h1", "h2" or "none"; NULL: decided by ALPN */
};

enum cfg_on_marked { CFG_ON_MARKED_NONE, CFG_SHUTDOWN_SESSIONS, CFG_SHUTDOWN_BACKUP_SESSIONS };

struct cfg_server {
    struct cfg_server *next;
    struct cfg_loc loc;
    const char *name;
    const char *text;         /* address as written */
    struct addr_spec address;
    int id;                   /* 0: assigned (puid, from 1) */
    bool check, check_ssl_given, check_ssl, no_check_ssl, check_send_proxy, agent_check;
    int64_t inter_us, fastinter_us, downinter_us; /* CFG_UNSET */
    int rise, fall;           /* 2, 3 by default */
    int check_port;           /* 0: the server's */
    const char *check_addr_text;
    struct addr_spec check_address; /* valid when check_addr_text */
    const char *check_sni, *check_alpn, *check_proto;
    int weight;               /* 1 by default, 0 to 256 */
    int maxconn, minconn, maxqueue; /* 0: unlimited */
    bool backup, disabled, no_backup;
    const char *cookie;
    struct cfg_ssl ssl;
    bool send_proxy, send_proxy_v2, send_proxy_v2_ssl, send_proxy_v2_ssl_cn;
    const char *proxy_v2_options; /* comma-separated */
    const char *track;        /* "[backend/]server" */
    enum cfg_on_marked on_marked_down, on_marked_up;
    int on_error;             /* 0 default (fail-check), 1 fastinter, 2 fail-check, 3 sudden-death, 4 mark-down */
    bool observe_layer4, observe_layer7;
    int error_limit;
    int64_t slowstart_us;
    int pool_max_conn;        /* CFG_UNSET: unlimited; 0: no idle connections */
    int64_t pool_purge_delay_us;
    int max_reuse;            /* CFG_UNSET */
    const char *source;       /* "source ADDR": as written, NULL none */
    struct addr_spec source_address;
    const char *redir;        /* prefix of "redir" */
    bool init_addr_none;
    int64_t tcp_user_timeout_us;
    bool tfo;
    const char *ws;           /* auto, h1, h2 */
    const char *proto;        /* "h1", "h2" or "none"; NULL: HTTP/1 */
};

enum cfg_balance_algo {
    CFG_BALANCE_ROUNDROBIN, CFG_BALANCE_STATIC_RR, CFG_BALANCE_LEASTCONN, CFG_BALANCE_FIRST, CFG_BALANCE_SOURCE,
    CFG_BALANCE_URI, CFG_BALANCE_URL_PARAM, CFG_BALANCE_HDR, CFG_BALANCE_RANDOM, CFG_BALANCE_RDP_COOKIE, CFG_BALANCE_HASH,
};

struct cfg_balance {
    enum cfg_balance_algo algo;
    int uri_len, uri_depth;        /* 0: unlimited */
    bool uri_whole, uri_path_only;
    const char *param;             /* url_param name, header name or hash expression */
    bool check_post;
    bool hdr_use_domain_only;
    int random_draws;              /* 2 by default */
    bool consistent;               /* hash-type consistent, otherwise map-based */
    int hash_function;             /* 0 sdbm, 1 djb2, 2 wt6, 3 crc32, 4 none */
    bool avalanche;
    int hash_balance_factor;       /* 0: off */
};

struct cfg_log {
    struct cfg_log *next;
    struct cfg_loc loc;
    bool global;               /* "log global": the global section's targets */
    const char *text;
    struct addr_spec address;  /* fd 1 and 2 for stdout and stderr */
    int len;                   /* 1024 */
    int format;                /* enum log_format */
    int facility;              /* local0 = 16 … */
    int max_level, min_level;  /* 7 and 0 by default */
    int sample_range_low, sample_range_high, sample_size; /* 0: no sampling; the first range */
    struct cfg_log_range {
        int low, high;
    } *sample_ranges; /* all of them, in order, numbers from 1 to sample_size */
    int sample_range_count;
};

struct cfg_errorfile {
    struct cfg_errorfile *next;
    struct cfg_loc loc;
    unsigned status;
    const char *path;     /* NULL with errorloc */
    struct str content;   /* the file, read and checked */
    const char *location; /* errorloc, errorloc302, errorloc303 */
    unsigned location_status;
};

struct cfg_errors { /* an "http-errors" section */
    struct cfg_errors *next;
    struct cfg_loc loc;
    const char *name;
    struct cfg_errorfile *files;
};

struct cfg_errorfiles_ref { /* "errorfiles SECTION [status…]" */
    struct cfg_errorfiles_ref *next;
    struct cfg_loc loc;
    const char *section;
    unsigned statuses[32];
    int status_count; /* 0: all */
};

enum cfg_tristate { CFG_DEFAULT = -1, CFG_OFF = 0, CFG_ON = 1 };

enum cfg_conn_mode { CFG_CONN_KEEP_ALIVE, CFG_CONN_SERVER_CLOSE, CFG_CONN_CLOSE };
enum cfg_reuse { CFG_REUSE_NEVER, CFG_REUSE_SAFE, CFG_REUSE_AGGRESSIVE, CFG_REUSE_ALWAYS };
enum cfg_check_type { CFG_CHECK_TCP, CFG_CHECK_HTTP, CFG_CHECK_TCP_SCRIPT, CFG_CHECK_SSL_HELLO };

struct cfg_forwardfor {
    bool enabled, if_none;
    const char *header; /* "X-Forwarded-For" */
    bool has_except;
    struct addr_net except;
};

struct cfg_cookie {
    const char *name; /* NULL: no persistence cookie */
    bool rewrite, insert, prefix, indirect, nocache, postonly, preserve, httponly, secure, dynamic;
    const char *domain;
    int64_t maxidle_s, maxlife_s; /* 0: none */
    const char *attr;
};

struct cfg_compression {
    bool gzip, deflate, raw_deflate, identity; /* algorithms, any set: enabled */
    char **types;
    int type_count; /* 0: all */
    bool offload;
};

struct cfg_stats {
    bool enabled;
    const char *uri;   /* "/haproxy?stats" by default */
    const char *realm; /* NULL: default */
    struct cfg_stats_user {
        struct cfg_stats_user *next;
        const char *user, *password;
    } *users;
    int64_t refresh_s; /* 0: none */
    bool hide_version, show_legends, show_node;
    const char *show_desc, *node;
    struct cfg_line *http_request; /* "stats http-request" rules and "stats admin" conditions are refused by the parser */
};

struct cfg_proxy {
    struct cfg_proxy *next;
    struct cfg_loc loc;
    const char *kind;  /* "frontend", "backend", "listen" */
    const char *name;
    int id;            /* 0: assigned */
    bool is_frontend, is_backend;
    bool disabled;
    const char *description;

    bool mode_tcp;     /* mode tcp; otherwise http */
    struct cfg_bind *binds;
    struct cfg_server *servers;
    int server_count;
    struct cfg_line *lines;      /* rules in order, those inherited from defaults first */
    const char *default_backend; /* NULL: none */
    struct cfg_loc default_backend_loc;

    /* microseconds; CFG_UNSET: infinite */
    int64_t timeout_client_us, timeout_server_us, timeout_connect_us, timeout_queue_us, timeout_check_us,
        timeout_http_request_us, timeout_http_keep_alive_us, timeout_tunnel_us, timeout_client_fin_us,
        timeout_server_fin_us, timeout_tarpit_us, timeout_client_hs_us;
    int64_t tcp_request_inspect_delay_us, tcp_response_inspect_delay_us; /* CFG_UNSET: none */

    int maxconn;       /* CFG_UNSET: the process's */
    int fullconn;
    int backlog;       /* CFG_UNSET */
    int retries;       /* 3 */
    bool redispatch;
    int redispatch_interval; /* 1 with plain "option redispatch": HAProxy's default of -1 (last retry) is -1 */
    int64_t grace_us;

    struct cfg_balance balance;
    enum cfg_conn_mode conn_mode;
    enum cfg_reuse reuse;          /* safe */
    struct cfg_forwardfor forwardfor;
    struct cfg_forwardfor originalto;
    struct cfg_cookie cookie;
    struct cfg_compression compression;
    struct cfg_stats stats;

    struct cfg_log *logs;
    bool log_httplog, log_httpslog, log_tcplog, log_clf;
    const char *log_format;        /* custom; NULL: by the options above */
    struct cfg_loc log_format_loc;
    const char *error_log_format;
    const char *log_format_sd;
    const char *log_tag;
    bool dontlognull, dontlog_normal, log_separate_errors, logasap, log_health_checks;
    bool socket_stats, nolinger, tcpka, clitcpka, srvtcpka, abortonclose, persist, allbackups,
        splice_request, splice_response, splice_auto, accept_invalid_http_request, accept_invalid_http_response,
        http_no_delay, http_ignore_probes, http_pretend_keepalive, http_buffer_request, http_use_proxy_header,
        prefer_last_server, contstats, independent_streams, transparent, checkcache, h1_case_adjust_bogus_client,
        tcp_smart_accept, tcp_smart_connect, idle_close_on_response, http_restrict_req_hdr_names_set;
    const char *http_restrict_req_hdr_names; /* preserve, delete, reject */

    const char *unique_id_format, *unique_id_header;
    struct cfg_loc unique_id_loc;
    const char *monitor_uri;
    struct cfg_errorfile *errorfiles;
    struct cfg_errorfiles_ref *errorfiles_refs;

    enum cfg_check_type check_type;
    const char *httpchk_method, *httpchk_uri, *httpchk_version, *httpchk_headers; /* "option httpchk [METHOD] [URI] [VERSION]"; the version may hold "\r\nHost:…" */
    const char *source;            /* backend's "source" */
    struct addr_spec source_address;
    char **retry_on;               /* NULL: conn-failure */
    int retry_on_count;
    const char *hash_key;
    int max_keep_alive_queue;
    const char *dispatch;          /* "dispatch ADDR" */
    struct addr_spec dispatch_address;
};

struct cfg_ca_user {
    const char *name;
};

struct cfg_stats_socket {
    struct cfg_stats_socket *next;
    struct cfg_loc loc;
    const char *text;
    struct addr_spec address;
    int unix_mode, unix_uid, unix_gid;
    const char *level; /* admin, operator, user */
    bool expose_fd_listeners;
};

/* In the order of libsallyport's enum sp_backend. */
enum { CFG_CRYPTO_OPENSSL, CFG_CRYPTO_MULTIBUFFER, CFG_CRYPTO_THREADS, CFG_CRYPTO_CRYPTODEV, CFG_CRYPTO_BACKENDS };
enum cfg_crypto_policy { CFG_CRYPTO_UNSET, CFG_CRYPTO_OFF, CFG_CRYPTO_PREFER, CFG_CRYPTO_REQUIRE };

struct cfg_global {
    int maxconn;                /* CFG_UNSET: derived from the descriptor limit */
    int nbthread;               /* CFG_UNSET: one a usable CPU */
    struct cfg_cpu_map {
        struct cfg_cpu_map *next;
        int thread_low, thread_high; /* from 1 */
        bool automatic;
        uint64_t cpus[16];      /* bit set */
    } *cpu_maps;
    struct cfg_log *logs;
    const char *log_tag, *log_send_hostname; /* hostname "" = the node's */
    bool log_send_hostname_set;
    const char *user, *group;
    int uid, gid;               /* CFG_UNSET: unchanged */
    bool daemon, quiet, zero_warning;
    const char *chroot, *pidfile;
    const char *unix_bind_prefix;   /* applied to the binds already, as are the next three */
    int unix_bind_mode, unix_bind_uid, unix_bind_gid;
    int ulimit_n;
    const char *node, *description;
    struct cfg_stats_socket *stats_sockets;
    int64_t stats_timeout_us;
    const char *ca_base, *crt_base;
    struct cfg_ssl ssl_bind_defaults, ssl_server_defaults;
    enum cfg_ssl_verify ssl_server_verify;
    const char *dh_param_file;
    int dh_bits;
    int ssl_cache_entries;      /* 20000 */
    int64_t ssl_lifetime_s;     /* 300 */
    int ssl_maxrecord;
    int bufsize, maxrewrite, maxhdr; /* 16384, 1024, 101 */
    int http_logurilen;              /* 1024 */
    int http_cookielen;              /* 63 */
    int maxaccept;
    int rcvbuf_client, rcvbuf_server, sndbuf_client, sndbuf_server; /* 0: leave */
    int pipesize;
    int64_t hard_stop_after_us, close_spread_us, grace_us;
    int spread_checks;          /* percent */
    int max_spread_checks;
    const char *ssl_engine;     /* name, NULL: none */
    const char *ssl_engine_algos;
    struct cfg_loc ssl_engine_loc;
    bool ssl_mode_async;        /* how it always works */
    enum cfg_crypto_policy crypto_backends[CFG_CRYPTO_BACKENDS];
    struct cfg_loc crypto_loc;
    const char *crypto_device;  /* of CFG_CRYPTO_CRYPTODEV, NULL: none */
    struct cfg_loc crypto_device_loc;
    int crypto_threads;
    int crypto_queue_max;       /* 1024 */
    int io_engine;              /* in the order of enum io_engine */
    bool nosplice, noreuseport, noepoll, no_getaddrinfo;
    int fd_hard_limit;
    const char *localpeer;
    bool set_dumpable;
    const char *server_state_base;
    bool strict_limits;
    int idle_pool_shared, pool_low_fd_ratio;
    int64_t idle_timer_us;
    struct cfg_proc_var {       /* set-var and set-var-fmt */
        struct cfg_proc_var *next;
        struct cfg_loc loc;
        const char *name;
        int argc;
        char **argv;
        bool is_format;
    } *vars;
};

struct cfg_model {
    struct arena arena; /* owns everything, the model's strings included */
    struct cfg_global global;
    struct cfg_proxy *proxies; /* frontends, backends and listens in order */
    int proxy_count;
    struct cfg_errors *errors; /* http-errors sections */
};

#endif
