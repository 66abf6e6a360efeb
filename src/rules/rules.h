/*
 * Rules: sample fetches, converters, ACLs, conditions, log formats and actions.
 *
 * Everything is compiled once, when the configuration is read, into programs in
 * an arena; evaluating one allocates only from the request's arena. What a
 * listener can tell in advance (it has no TLS, for instance) is folded by
 * rules_set_specialize, so that it costs nothing per request.
 *
 * Rules know HTTP messages and nothing of sockets or sessions. What lies
 * outside a message is asked of the host (struct rules_host), which the proxy provides.
 */
#ifndef SP_RULES_RULES_H
#define SP_RULES_RULES_H

#include "base/addr.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/hash.h"
#include "http/http.h"

/* --- samples ------------------------------------------------------------------ */

enum sample_type { SAMPLE_BOOL, SAMPLE_INT, SAMPLE_ADDR, SAMPLE_STR, SAMPLE_BIN };

struct sample {
    enum sample_type type;
    union {
        bool b;
        int64_t i;
        struct addr a; /* host part only */
        struct str s;  /* STR and BIN; lives as long as the request or its arena */
    } u;
};

struct rules_log; /* rules/logformat.h */

/* --- the host: what the proxy answers ------------------------------------------ */

/* Facts of the connection and the stream that fetches and log aliases ask for. */
enum rules_item {
    RULES_SRC, RULES_SRC_PORT, RULES_DST, RULES_DST_PORT, /* client side, as changed by PROXY protocol */
    RULES_BC_SRC, RULES_BC_SRC_PORT, RULES_BC_DST, RULES_BC_DST_PORT, /* server side */
    RULES_SSL_FC, RULES_SSL_FC_SNI, RULES_SSL_FC_HAS_SNI, RULES_SSL_FC_ALPN, RULES_SSL_FC_NPN,
    RULES_SSL_FC_PROTOCOL, RULES_SSL_FC_CIPHER, RULES_SSL_FC_USE_KEYSIZE, RULES_SSL_FC_ALG_KEYSIZE,
    RULES_SSL_FC_IS_RESUMED, RULES_SSL_FC_SESSION_ID, RULES_SSL_FC_UNIQUE_ID, RULES_SSL_FC_HAS_CRT,
    RULES_SSL_FC_ERR, RULES_SSL_FC_ERR_STR,
    RULES_SSL_C_USED, RULES_SSL_C_VERIFY, RULES_SSL_C_ERR, RULES_SSL_C_CA_ERR, RULES_SSL_C_S_DN,
    RULES_SSL_C_I_DN, RULES_SSL_C_SERIAL, RULES_SSL_C_SHA1, RULES_SSL_C_NOTBEFORE,
    RULES_SSL_C_NOTAFTER, RULES_SSL_C_DER, RULES_SSL_C_VERSION, RULES_SSL_C_KEY_ALG,
    RULES_SSL_F_S_DN, RULES_SSL_F_I_DN, RULES_SSL_F_SERIAL, RULES_SSL_F_SHA1, RULES_SSL_F_DER,
    RULES_SSL_BC, RULES_SSL_BC_ALPN, RULES_SSL_BC_PROTOCOL, RULES_SSL_BC_CIPHER,
    RULES_SSL_BC_IS_RESUMED, RULES_SSL_BC_USE_KEYSIZE, RULES_SSL_BC_ALG_KEYSIZE,
    RULES_FC_HTTP_MAJOR, RULES_BC_HTTP_MAJOR, RULES_FC_RCVD_PROXY, RULES_FC_PP_AUTHORITY, RULES_FC_PP_UNIQUE_ID,
    RULES_HTTP_FIRST_REQ,
    RULES_FE_NAME, RULES_BE_NAME, RULES_FE_ID, RULES_BE_ID, RULES_SRV_NAME, RULES_SRV_ID,
    RULES_SO_NAME, RULES_SO_ID, RULES_FE_DEFBE,
    RULES_UNIQUE_ID,  /* generates it on first use; absent without unique-id-format */
    RULES_PAYLOAD_REQ, RULES_PAYLOAD_RES, /* SAMPLE_BIN: bytes buffered so far after the head (HTTP) or from the start (TCP) */
    RULES_REQ_BODY_LEN, RULES_RES_BODY_LEN,
    RULES_FE_CLIENT_TIMEOUT, RULES_BE_SERVER_TIMEOUT, RULES_BE_TUNNEL_TIMEOUT,
    RULES_PID, RULES_NBTHREAD, RULES_THREAD, RULES_ACT_CONN, RULES_STOPPING, RULES_UPTIME_S,
    RULES_HOSTNAME, RULES_NODE, RULES_REQ_SSL_SNI, RULES_REQ_SSL_HELLO_TYPE, RULES_REQ_SSL_VER,
    RULES_FC_ERR, RULES_FC_ERR_STR, RULES_BC_ERR, RULES_BC_ERR_STR, /* connection errors, HAProxy's codes and texts */
    RULES_BC_REUSED,
    RULES_STRM_IS_HTTP, /* internal.strm.is_htx: the stream is processed as HTTP */
};

/* Counters of a named proxy or server. `object` is what the resolver returned; NULL: the current one. */
enum rules_count {
    RULES_NBSRV, RULES_BE_CONN, RULES_FE_CONN, RULES_BE_SESS_RATE, RULES_FE_SESS_RATE, RULES_FE_REQ_RATE,
    RULES_SRV_IS_UP, RULES_SRV_CONN, RULES_SRV_QUEUE, RULES_SRV_WEIGHT, RULES_SRV_SESS_RATE,
    RULES_QUEUE, RULES_AVG_QUEUE, RULES_CONNSLOTS, RULES_BE_CONN_FREE, RULES_SRV_CONN_FREE,
};

struct rules_host {
    /* False when the fact does not exist for this stream: the fetch then fails, as in HAProxy. */
    bool (*item)(void *stream, enum rules_item item, struct sample *out);
    bool (*count)(void *stream, enum rules_count what, void *object, struct sample *out);
    /*
     * What the stream knows so far for %aliases and timer fetches outside log lines, where ctx->log
     * is NULL. May be NULL itself: those values are then empty, 0 or -1.
     */
    const struct rules_log *(*log)(void *stream);
    /* set-src, set-dst and their ports: RULES_SRC, RULES_SRC_PORT, RULES_DST or RULES_DST_PORT. May be NULL. */
    bool (*set)(void *stream, enum rules_item item, const struct sample *value);
};

/* --- variables ------------------------------------------------------------------- */

enum rules_scope { RULES_SCOPE_PROC, RULES_SCOPE_SESS, RULES_SCOPE_TXN, RULES_SCOPE_REQ, RULES_SCOPE_RES, RULES_SCOPE_CHECK };

struct rules_var {
    struct rules_var *next;
    uint64_t name; /* 64-bit hash of the name without its scope: compared instead of the name, as in HAProxy */
    struct sample value;
    char *storage; /* of STR and BIN values; reused by later values that fit */
    size_t storage_bytes;
    bool is_set;
};

struct rules_vars {
    struct rules_var *first;
};

/* --- one evaluation --------------------------------------------------------------- */

struct rules_ctx {
    const struct rules_host *host;
    void *stream;              /* the host's */
    struct arena *arena;       /* of the request: scratch and results */
    struct arena *sess_arena;  /* of the client connection: values of sess variables */
    struct http_msg *req;      /* NULL where there is none (any more) */
    struct http_msg *res;
    struct rules_vars *sess_vars; /* of the client connection */
    struct rules_vars txn_vars, req_vars, res_vars;
    const struct rules_vars *proc_vars; /* of the process, read-only here; NULL: none */
    struct str *req_captures, *res_captures; /* the frontend's capture slots; ptr NULL: nothing captured */
    unsigned req_capture_count, res_capture_count; /* how many slots there are */
    const size_t *req_capture_limits, *res_capture_limits; /* longest value of each; NULL: as configured */
    const struct rules_log *log; /* for %aliases; NULL outside log formats that need it */
    uint64_t wall_us;            /* date of the evaluation */
    struct hash_rng *rng;
    bool tls;                  /* the client side is TLS */
    bool final_data;           /* no more bytes will come: tcp-request content must decide */
    bool response_stage;
    struct cfg_loc last_rule;  /* the rule that ended the last set: last_rule_file, last_rule_line */
};

/* --- compilation -------------------------------------------------------------------- */

struct rules_acls; /* named ACLs of one proxy */

/*
 * What the programs of one configuration own outside its arena (compiled regular expressions) and
 * the pattern files and maps that they share. One a configuration; `arena` must outlive it.
 */
struct rules_registry;
struct rules_registry *rules_registry_new(struct arena *arena); /* NULL without memory */

enum rules_proxy_kind { RULES_ANY_PROXY, RULES_FRONTEND, RULES_BACKEND };

struct rules_compiler {
    struct diag *diag;
    struct arena *arena; /* programs live here, as long as the configuration */
    struct rules_registry *registry; /* the configuration's; NULL: one is made at need and left here */
    struct cfg_loc loc;  /* of the line being compiled, for messages */
    struct rules_acls *acls;
    const char *proxy_name; /* realm of "http-request auth" without one; may be NULL */
    bool is_frontend, is_backend, is_http, is_defaults;
    /* Lookups of objects that fetches name; NULL when there is no such object. */
    void *resolver;
    void *(*find_proxy)(void *resolver, enum rules_proxy_kind kind, const char *name);
    void *(*find_server)(void *resolver, const char *backend_or_null, const char *server);
    /* An http-errors section's or errorfile's raw message for a status; false when none. */
    bool (*find_errorfile)(void *resolver, const char *section_or_null, unsigned status, struct str *raw);
    /* Slots of captures: returns the slot's index, or negative when the proxy cannot capture. */
    int (*add_capture)(void *resolver, bool response, size_t len);
    /* Length limit of an existing slot, or negative. */
    int (*capture_len)(void *resolver, bool response, int index);
};

struct rules_expr; /* fetch[(args)][,converter[(args)]]… */
struct rules_cond; /* if|unless and ACLs */
struct rules_fmt;  /* a log-format string */
struct rules_set;  /* an ordered list of actions */

struct rules_acls *rules_acls_new(struct arena *arena);
/* "acl NAME CRITERION FLAGS… VALUES…", words after "acl". Errors go to diag and SP_EINVAL is returned. */
int rules_acls_add(struct rules_compiler *c, int argc, char *const *argv);

/* Compiles exactly one expression. `argv` may hold HAProxy's several-words form; *used tells how many words it took. */
struct rules_expr *rules_expr_compile(struct rules_compiler *c, int argc, char *const *argv, int *used);
/* False when the fetch or a converter fails. The result may live in the request's arena. */
bool rules_expr_eval(const struct rules_expr *e, struct rules_ctx *ctx, struct sample *out);
/* The same, cast to a string as HAProxy casts. */
bool rules_expr_str(const struct rules_expr *e, struct rules_ctx *ctx, struct str *out);
bool rules_expr_needs_response(const struct rules_expr *e);
/* A variable of the process at configuration time: "set-var proc.NAME EXPR" of the global section. SP_EINVAL (in diag). */
int rules_proc_var_set(struct rules_compiler *c, struct rules_vars *vars, const char *name, const struct rules_expr *e);

/* `argv[0]` is "if" or "unless"; takes all words to the end. NULL on error (in diag). */
struct rules_cond *rules_cond_compile(struct rules_compiler *c, int argc, char *const *argv);
bool rules_cond_eval(const struct rules_cond *cond, struct rules_ctx *ctx); /* NULL: true */
/* A condition that can never, or always, hold on a listener of that kind: -1 never, 1 always, 0 depends. */
int rules_cond_fold(const struct rules_cond *cond, bool listener_tls);
/* A depending condition without its constant terms (itself without memory); NULL when it always holds. In `arena`. */
struct rules_cond *rules_cond_specialize(const struct rules_cond *cond, bool listener_tls, struct arena *arena);

/*
 * A log-format string: text, %aliases with flags, %[expression]. `for_log` permits aliases that need the
 * finished stream; otherwise those that do are refused, as HAProxy refuses them in headers.
 */
struct rules_fmt *rules_fmt_compile(struct rules_compiler *c, const char *text, bool for_log);
/* unique-id-format: encoded as in headers, blanks merged as in logs. */
struct rules_fmt *rules_fmt_compile_id(struct rules_compiler *c, const char *text);
/* The format as it applies to sessions of a listener with or without TLS: constants folded. In `arena`. */
struct rules_fmt *rules_fmt_specialize(const struct rules_fmt *f, bool listener_tls, struct arena *arena);
/* Whether the format is the same for every stream, and that text. */
bool rules_fmt_is_constant(const struct rules_fmt *f, struct str *text);
/* Appends to `out` (cut at its room). Missing values are "-" in logs and empty in headers, as HAProxy. */
void rules_fmt_eval(const struct rules_fmt *f, struct rules_ctx *ctx, struct buf *out);
/* Evaluates into the request's arena; a constant costs nothing. ptr NULL when out of memory. */
struct str rules_fmt_str(const struct rules_fmt *f, struct rules_ctx *ctx);
/* Whether evaluation looks at the request's or response's fields, so that the caller must keep them. */
bool rules_fmt_needs_messages(const struct rules_fmt *f);

enum rules_hook {
    RULES_TCP_REQUEST_CONNECTION, RULES_TCP_REQUEST_SESSION, RULES_TCP_REQUEST_CONTENT, RULES_TCP_RESPONSE_CONTENT,
    RULES_HTTP_REQUEST, RULES_HTTP_RESPONSE, RULES_HTTP_AFTER_RESPONSE,
    RULES_REDIRECT, /* the "redirect" keyword: same words as "http-request redirect" */
    RULES_HOOK_COUNT
};

struct rules_set *rules_set_new(struct arena *arena);
/* Words after "http-request" and the like, the condition included. Errors go to diag; SP_EINVAL. */
int rules_set_add(struct rules_set *set, struct rules_compiler *c, enum rules_hook hook, int argc, char *const *argv);
bool rules_set_is_empty(const struct rules_set *set);
/*
 * The set as it applies to sessions of a listener with or without TLS: rules whose
 * condition can never hold are left out, constant conditions and formats folded. In `arena`.
 */
struct rules_set *rules_set_specialize(const struct rules_set *set, bool listener_tls, struct arena *arena);
/* How many rules the set has, e.g. to show what specializing left out. */
unsigned rules_set_count(const struct rules_set *set);

/* What a set decided. */
enum rules_verdict {
    RULES_CONTINUE,    /* reached the end */
    RULES_ALLOW,       /* "allow"/"accept": stop evaluating this hook's rules, go on */
    RULES_DENY,        /* answer outcome->reply (status 403 by default) */
    RULES_TARPIT,      /* the same after timeout tarpit */
    RULES_REPLY,       /* "return" or "redirect": answer outcome->reply */
    RULES_SILENT_DROP, /* vanish without a word */
    RULES_REJECT,      /* close the connection */
    RULES_NEED_MORE,   /* tcp content rules: wait for more bytes, then run the set again */
    RULES_SWITCH_HTTP, /* tcp-request content switch-mode http */
    RULES_ERROR,       /* out of memory or a rewrite failed: 500 */
};

struct rules_reply {
    unsigned status;
    struct str raw;          /* a whole error file message (head and body), used as it is when ptr is set */
    bool use_default_errorfile; /* deny: the proxy's errorfile or built-in page of `status` */
    struct str content_type; /* empty: no Content-Type */
    struct str body;
    struct http_field *fields; /* further fields, e.g. Location, Set-Cookie, Cache-Control */
    unsigned field_count;
    bool close;   /* the connection is closed afterwards */
    bool redirect;
};

struct rules_outcome {
    struct rules_reply reply;
    int nice;
    bool log_level_set;
    int log_level; /* set-log-level: enum log_level, or -1 for silent */
    int64_t timeout_server_us, timeout_tunnel_us, timeout_client_us; /* set-timeout; -1 unset */
    int64_t timeout_connect_us, timeout_queue_us, timeout_tarpit_us;
    int retries; /* set-retries; -1 unset */
    bool disable_l7_retry;
    bool switch_proto_h2; /* "switch-mode http proto h2" */
};

void rules_outcome_init(struct rules_outcome *o);

/*
 * Runs the rules in order. Header and target changes are made in ctx->req (request hooks) or ctx->res
 * (response hooks). `outcome` may accumulate over several sets of one stream.
 */
enum rules_verdict rules_set_run(const struct rules_set *set, struct rules_ctx *ctx, struct rules_outcome *outcome);

/* Releases what is not arena memory; no program compiled with this registry may run afterwards. NULL is allowed. */
void rules_release_all(struct rules_registry *registry);

/* --- pattern files and maps at run time ------------------------------------------- */

/*
 * Lists of "-f FILE" and of map converters, by the name they were configured with (without "file@" or
 * "opt@"). Any thread may edit while others match: readers see the list before or after an edit.
 * Each edit replaces the index; the former one is kept until rules_release_all.
 */
struct rules_patterns;
struct rules_patterns *rules_patterns_find(struct rules_registry *registry, const char *name, bool is_map);
/* Entry `index` in file order; false past the end. `id` is stable for the entry's life. The slices live until release. */
bool rules_patterns_entry(struct rules_patterns *p, unsigned index, struct str *key, struct str *value, const void **id);
/* SP_EINVAL with *why when the key or value does not parse for one of the list's users. */
int rules_patterns_add(struct rules_patterns *p, struct str key, struct str value, const char **why);
/* Changes the value of all entries with that key; SP_ENOENT. */
int rules_patterns_set(struct rules_patterns *p, struct str key, struct str value, const char **why);
/* Removes all entries with that key; SP_ENOENT. */
int rules_patterns_del(struct rules_patterns *p, struct str key);
int rules_patterns_clear(struct rules_patterns *p);
/* The list number `index`: for "show map" without argument. NULL past the end. */
struct rules_patterns *rules_patterns_at(struct rules_registry *registry, unsigned index, const char **name, bool *is_map);

/* --- the tables, for documentation and "did you mean" ------------------------------- */

struct rules_doc {
    const char *kind; /* "fetch", "converter", "action", "match", "alias" */
    const char *name;
    const char *args; /* as shown to the user; NULL when none */
    const char *type; /* output type, or the hooks an action is allowed in */
    const char *help; /* one line */
};
/* Row `index` of all tables in a stable order; false past the end. */
bool rules_doc_row(unsigned index, struct rules_doc *out);

#endif
