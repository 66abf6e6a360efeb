/*
 * The proxy's running objects, built once from a configuration model: the
 * application, its proxies (frontends and backends), servers, listeners and
 * workers. Who may write what:
 *
 *   - everything set by the builder is read-only afterwards;
 *   - counters belong to one worker each and are summed by readers;
 *   - server state is changed by health checks (which run on worker 0) and read anywhere, atomically;
 *   - a balancer's own state is guarded by its lock.
 */
#ifndef SP_PROXY_PROXY_H
#define SP_PROXY_PROXY_H

#include "base/hash.h"
#include "base/histogram.h"
#include "base/map.h"
#include "config/config.h"
#include "http/h1.h"
#include "io/proxy_header.h"
#include "io/sock.h"
#include "rules/logformat.h"
#include "rules/rules.h"
#include "tls/tls.h"

#include <pthread.h>
#include <stdatomic.h>

struct balance;
struct check;
struct session;
struct worker;

/* --- counters ---------------------------------------------------------------- */

/* One worker's view of one proxy. Gauges may be read racily by others. */
struct proxy_counters {
    _Alignas(64) int64_t fe_current, be_current; /* gauges: streams or connections now */
    int64_t fe_current_max, be_current_max;
    uint64_t connections, sessions; /* accepted */
    uint64_t requests, responses[6]; /* by class: 0 other, 1xx … 5xx; as frontend */
    uint64_t be_sessions, be_responses[6];
    uint64_t bytes_in, bytes_out, be_bytes_in, be_bytes_out;
    uint64_t denied_requests, denied_responses;
    uint64_t request_errors, connect_errors, response_errors, internal_errors;
    uint64_t client_aborts, server_aborts;
    uint64_t retries, redispatches;
    uint64_t compress_in, compress_out, compress_bypass, compress_responses;
    uint64_t tls_handshakes, tls_failures;
    uint64_t smuggling_refused; /* 400s of the parser, by whatever h1_error */
};

struct server_counters {
    _Alignas(64) int64_t current; /* gauge: streams */
    int64_t current_max;
    int64_t idle;                 /* gauge: pooled connections */
    uint64_t sessions, connects, reuses;
    uint64_t bytes_in, bytes_out;
    uint64_t responses[6];
    uint64_t connect_errors, response_errors, retries, redispatches, client_aborts, server_aborts;
    uint64_t connect_time_us, response_time_us, total_time_us, queue_time_us; /* sums over `sessions` */
};

/* --- servers ------------------------------------------------------------------- */

enum server_state { SERVER_DOWN, SERVER_UP, SERVER_MAINT, SERVER_DRAIN };

struct server {
    const struct cfg_server *cfg;
    struct proxy *backend;
    struct str name;
    int index;    /* in app->servers: worker counters */
    int position; /* in backend->servers */
    int id;
    struct addr address;      /* port 0 with `port_offset`: the client's destination port is used */
    bool uses_client_port;
    int port_offset;
    struct addr source;       /* family AF_UNSPEC: any */
    struct tls_client_ctx *tls; /* for traffic, checks or both; NULL: none */
    bool tls_for_traffic;
    struct rules_expr *sni;
    bool sni_varies;          /* depends on the request: such connections are not shared */
    bool pp_v1, pp_v2;        /* send-proxy */
    struct io_proxy_tlvs *pp_tlvs; /* what options ask for; values are filled per connection */
    struct str cookie;
    struct server *track;     /* whose state is followed; NULL: its own */

    atomic_int state;         /* enum server_state */
    atomic_int weight;        /* effective, 0 to 256 times 1 */
    atomic_uint served;       /* streams now, all workers: exact, for maxconn and leastconn */
    atomic_uint idle_total;   /* pooled connections, all workers: for pool-max-conn */
    atomic_uint queued, queued_max; /* waiting in this server's own queue */
    struct list queue;        /* struct pending; guarded by backend->queue_lock */

    struct check *check;      /* NULL: not checked */
    /* The parts that `state` is made of, written on worker 0's thread: see server_state.h. */
    atomic_int op;            /* enum server_op: what checks say */
    atomic_uint admin;        /* SERVER_ADMIN_… bits */
    struct server *trackers, *next_tracker; /* those that track this one */
    struct server_kill *kills; /* one a worker; NULL: sessions are never cut */
    atomic_ullong last_change_us; /* monotonic */
    atomic_uint down_count, check_failures;
    atomic_ullong down_time_us;
};

static inline bool server_is_usable(const struct server *s)
{
    return atomic_load_explicit(&s->state, memory_order_relaxed) == SERVER_UP &&
           atomic_load_explicit(&s->weight, memory_order_relaxed) > 0;
}

/* True for UP and DRAIN: a persistence cookie may still lead there. */
static inline bool server_is_reachable(const struct server *s)
{
    int state = atomic_load_explicit(&s->state, memory_order_relaxed);

    return state == SERVER_UP || state == SERVER_DRAIN;
}

/* --- proxies ---------------------------------------------------------------------- */

/* Rule sets by kind of listener: [0] without TLS, [1] with. */
struct rules_pair {
    struct rules_set *set[2];
};

struct use_backend {
    struct rules_cond *cond; /* NULL: always */
    struct proxy *backend;   /* NULL: named by `name` at run time */
    struct rules_fmt *name;
    int fold[2];             /* rules_cond_fold for each kind of listener */
};

struct use_server {
    struct rules_cond *cond;
    struct server *server;   /* NULL: named by `name` at run time */
    struct rules_fmt *name;
};

struct capture {
    struct str header;       /* name of the field; empty: filled by an action */
    size_t len;
};

struct log_target {
    struct logsink *sink;
    const struct cfg_log *cfg;
    atomic_uint sample_counter;
};

/* A canned message: complete bytes of an HTTP response, head and body. */
struct error_page {
    unsigned status;
    struct str raw;
};

/* Statuses that have built-in pages and may be replaced by errorfile. */
#define PROXY_ERROR_STATUSES 18
extern const unsigned proxy_error_statuses[PROXY_ERROR_STATUSES];

/* Per-second rates, measured once a second by worker 0. */
enum proxy_rate { PROXY_RATE_SESSIONS, PROXY_RATE_REQUESTS, PROXY_RATE_BACKEND, PROXY_RATE_COUNT };

/* Failures that "retry-on" repeats, while the request is still whole in our hands. */
enum proxy_retry {
    RETRY_CONN_FAILURE = 1,
    RETRY_EMPTY_RESPONSE = 2,
    RETRY_JUNK_RESPONSE = 4,
    RETRY_RESPONSE_TIMEOUT = 8,
    RETRY_5XX = 16, /* 500, 502, 503, 504 */
};

struct proxy {
    const struct cfg_proxy *cfg;
    struct app *app;
    struct str name;
    int index; /* in app->proxies: worker counters */
    int id;
    bool is_http;
    atomic_uint rates[PROXY_RATE_COUNT], rates_max[PROXY_RATE_COUNT];
    uint64_t rate_totals[PROXY_RATE_COUNT]; /* at the last measurement; worker 0's */

    /* frontend */
    struct rules_acls *acls;
    struct rules_pair rules[RULES_HOOK_COUNT];
    struct use_backend *use_backends;
    int use_backend_count;
    struct proxy *default_backend;
    struct h1_limits limits, response_limits;
    struct capture *req_captures, *res_captures;
    int req_capture_count, res_capture_count;
    struct str capture_cookie; /* prefix of the cookie to log; empty: none */
    size_t capture_cookie_len;
    struct log_target *logs;
    int log_count;
    struct rules_fmt *log_fmt[2]; /* by kind of listener */
    struct rules_fmt *error_log_fmt, *log_sd_fmt;
    int64_t inspect_delay_us; /* tcp-request inspect-delay; CFG_UNSET: none */
    struct str log_tag;
    struct rules_fmt *unique_id;
    struct str unique_id_header;
    struct rules_cond **monitor_fails;
    int monitor_fail_count;
    struct str error_raw[PROXY_ERROR_STATUSES]; /* errorfile or built-in; ptr NULL with an errorloc */
    const struct cfg_errorfile *error_locations[PROXY_ERROR_STATUSES];

    /* backend */
    unsigned retry_bits;      /* enum proxy_retry */
    unsigned *retry_statuses; /* statuses that are tried again */
    int retry_status_count;
    struct server **servers;
    int server_count;
    struct balance *balance;
    struct use_server *use_servers;
    int use_server_count;
    pthread_mutex_t queue_lock; /* queues of the backend and its servers */
    struct list queue;          /* struct pending, oldest first */
    atomic_uint queued, queued_max; /* in the backend's own queue */
    atomic_bool has_queue;      /* anything queued anywhere below: lets releases skip the lock */
};

static inline const struct rules_set *proxy_rules(const struct proxy *p, enum rules_hook hook, bool tls)
{
    return p->rules[hook].set[tls];
}

/* --- listeners ------------------------------------------------------------------------ */

/* One address of one bind line (a port range makes several). */
struct bind {
    const struct cfg_bind *cfg;
    struct proxy *frontend;
    struct addr address;
    struct str name;
    int id;
    struct tls_server_ctx *tls;
    bool owns_tls;       /* the ports of a range share one context */
    bool is_unix, is_inherited, shared; /* shared: one descriptor polled by all workers */
    int *fds;            /* at least one a worker, or one in all when shared */
    int fd_count;
    int maxconn;         /* 0: unlimited */
    atomic_uint current; /* connections, kept only when maxconn is set */
};

/* --- workers ----------------------------------------------------------------------------- */

struct bind_listener { /* a bind as one worker listens on it */
    struct io_listener listener; /* first member */
    struct worker *worker;
    struct bind *bind;
};

struct idle_pool { /* of one server in one worker */
    struct list conns; /* struct server_conn, most recently used first */
    unsigned count;
    unsigned need; /* most streams at once of late: no more connections than that are kept */
    struct tls_session_slot *tls_slot;
};

struct worker {
    struct app *app;
    int index;
    pthread_t thread;
    struct io_loop *loop;
    struct tls_worker *tls;
    struct buf_pool bufs;       /* tune.bufsize */
    struct buf_pool big_bufs;   /* 64 KiB, for bulk relays */
    struct bind_listener *listeners;
    int listener_count;
    struct proxy_counters *proxies; /* by proxy index */
    struct server_counters *servers; /* by server index */
    struct idle_pool *pools;        /* by server index */
    struct list sessions;           /* all live sessions */
    unsigned session_count;
    struct list parked;             /* accepted connections for which there is no place yet */
    struct list later;              /* sessions that yielded */
    struct io_turn_hook later_hook;
    void *free_sessions, *free_txns, *free_conns; /* recycled objects */
    struct splice_pipe *free_pipes;
    unsigned pipe_count, free_pipe_count;
    unsigned free_session_count, free_txn_count, free_conn_count;
    struct io_timer pool_timer;     /* purges idle server connections */
    struct hash_rng rng;
    char *scratch;                  /* PROXY_SCRATCH_BYTES for log lines and formats */
    uint32_t request_counter;
    bool draining;
    bool listeners_paused;       /* some are, because a limit was reached */
    uint64_t last_second_us;     /* when the once-a-second work was done */
    struct io_message drain_message, stop_message, limit_message, forking_message;
    atomic_bool limit_posted;    /* limit_message is under way */
    struct io_timer hard_stop_timer;
};

#define PROXY_SCRATCH_BYTES 65536

/* --- the application ------------------------------------------------------------------------ */

/* Serves the statistics page; set by whoever links one in (admin). Writes a whole response (head and body). */
typedef int (*stats_handler)(struct app *app, struct proxy *px, const struct http_msg *req, struct arena *arena,
                             struct rules_reply *reply);

struct app {
    struct cfg_model *model;
    struct arena arena; /* running objects that are never freed before exit */
    struct proxy **proxies;
    int proxy_count;
    struct map frontends, backends; /* by name */
    struct server **servers;
    int server_count;
    struct bind **binds;
    int bind_count;
    struct log_target *global_logs;
    int global_log_count;
    struct worker *workers;
    int worker_count;
    struct tls_store *tls;
    struct rules_registry *registry;
    uint32_t bufsize, maxrewrite;
    int maxconn;                 /* connections in all */
    atomic_uint connections;     /* now */
    atomic_uint log_counter;
    atomic_bool stopping;        /* drain: no new connections, sessions end */
    atomic_bool killed;          /* app_stop was called */
    bool replacing;              /* another process's ports are taken over (-sf, -st): they are in use */
    int *taken_fds;              /* its listening descriptors, -1 once used; the caller's array */
    int taken_count;
    bool replaced;               /* a new process listens now: Unix sockets stay in the file system */
    atomic_int running_count;    /* workers that have not ended */
    atomic_int worker_error;     /* errno of a worker that could not listen and ended at once; 0: none */
    atomic_bool forking;
    atomic_int forking_heard;    /* workers that have taken the present value of `forking` over */
    atomic_int drained_count;    /* workers that have stopped listening */
    void (*on_worker_end)(void); /* called by each worker's thread when it ends; may be NULL */
    int started_count;           /* workers whose threads run */
    uint64_t start_us;
    unsigned pid;
    struct str hostname, node;
    stats_handler stats;
    struct tls_crypto_options crypto; /* without the loop, which is the worker's */
    bool crypto_is_foreign;      /* a legacy engine does the operations, inline */
    int crypto_thread_count;
    struct sp_crypto_threads *crypto_threads; /* NULL: none */
    struct sp_cryptodev *cryptodev;           /* NULL: none */
    const char *crypto_note;     /* e.g. "ssl-engine qat not available: OpenSSL software crypto runs instead"; NULL */
    struct rules_vars proc_vars;
};

/*
 * Builds and checks everything the model names: rules, certificates, addresses. Errors go to diag. No descriptor is
 * opened and no thread started. The application takes the model over. NULL without memory.
 */
struct app *app_new(struct cfg_model *model, struct diag *diag);
void app_free(struct app *app);

/* Opens listening sockets and log targets. Errors go to diag (SP_EINVAL); SP_ENOMEM. */
int app_open(struct app *app, struct diag *diag);
void app_close_listeners(struct app *app);
void app_close_logs(struct app *app);

/* Starts the workers' threads (the health checks on worker 0) and returns; app_wait joins them. */
int app_start(struct app *app);
/* No new connections, idle ones closed, the process ends when the last session has (or after hard-stop-after). Any thread. */
void app_drain(struct app *app);
/* Everything ends now. Any thread. */
void app_stop(struct app *app);
/*
 * Opens the crypto device that the configuration names, one queue pair a worker: before app_start and before privileges
 * and the root folder go, and in the process that will use it (DPDK survives no fork). 0 or a status, and diag says it.
 */
int app_open_crypto(struct app *app, struct diag *diag);
/* Around a fork (see io_loop_set_forking): returns when all workers have heard of it. */
void app_set_forking(struct app *app, bool forking);
void app_wait(struct app *app);
/* False once every worker has ended by itself or was stopped. */
bool app_is_running(const struct app *app);

/* Sums over all workers. */
void proxy_counters_sum(const struct app *app, const struct proxy *p, struct proxy_counters *out);
/* The gauge alone, as frontend or as backend: what limits and log lines ask for. */
int64_t proxy_current(const struct app *app, const struct proxy *p, bool backend);
void server_counters_sum(const struct app *app, const struct server *s, struct server_counters *out);

/* Writes a notice about a proxy or server to the proxy's log targets. `level` as in syslog. */
void proxy_log_notice(struct proxy *p, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
