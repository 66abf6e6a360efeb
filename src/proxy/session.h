/*
 * A session: one client connection, and on it one transaction after another.
 *
 * The state machine is session_run in session.c; docs/architecture.md draws it.
 * Each state has one step function, which returns what to do next.
 */
#ifndef SP_PROXY_SESSION_H
#define SP_PROXY_SESSION_H

#include "http/h1.h"
#include "proxy/conn.h"
#include "proxy/cookie.h"
#include "proxy/proxy.h"
#include "proxy/worker.h"

struct compressor;

enum session_state {
    SESSION_PROXY_HEADER,  /* reading the client's PROXY header */
    SESSION_TLS_HANDSHAKE, /* with the client */
    SESSION_TCP_CONTENT,   /* mode tcp: content rules, choice of the backend */
    SESSION_IDLE,          /* between requests: no transaction, no buffers */
    SESSION_REQUEST,       /* reading a request head */
    SESSION_TARPIT,
    SESSION_ASSIGN,        /* choosing a server */
    SESSION_QUEUED,        /* waiting for a server's slot */
    SESSION_RETRY_WAIT,    /* a second's pause before the same server is tried again */
    SESSION_CONNECT,
    SESSION_SERVER_HELLO,  /* PROXY header and TLS handshake towards the server */
    SESSION_RELAY,         /* request and response on their way */
    SESSION_REPLY,         /* sending an answer of our own */
    SESSION_LINGER,        /* answered and shut down: draining so that the client can read it */
    SESSION_DEAD,
};

enum step { STEP_AGAIN, STEP_WAIT };

enum flow_mode {
    FLOW_RAW,      /* bytes go out as they came in */
    FLOW_DECHUNK,  /* content only: HTTP/1.0 clients */
    FLOW_COMPRESS, /* compressed and chunked */
};

/*
 * One direction. `store` comes from a pool; the message head stays at its front for
 * as long as the transaction lives, and `win` is the rest, through which the body moves.
 */
struct flow {
    struct buf store;
    struct buf win;
    struct buf out;      /* encoded output of the modes other than FLOW_RAW */
    struct str head;     /* serialised head, what is still to be sent of it */
    size_t ready;        /* bytes at the front of win that may be sent */
    struct h1_body body;
    struct h1_scan scan;
    uint64_t received;   /* bytes taken from the source */
    uint64_t sent;       /* bytes delivered, heads included */
    struct splice_pipe *pipe; /* long plain relays; see relay_splice.c */
    size_t piped;        /* bytes in it */
    uint8_t full_reads;  /* reads in a row that filled the buffer: a sign of bulk */
    uint8_t mode;
    bool big;            /* store is of the worker's big pool */
    bool head_done;      /* a head was parsed (always true in TCP mode and tunnels) */
    bool eof;            /* the source has ended */
    bool complete;       /* everything of the message was received */
    bool delivered;      /* and sent */
};

/* A connection to a server, owned by a session or by a worker's idle pool. */
struct server_conn {
    struct conn conn; /* first member */
    struct list link; /* in the idle pool */
    struct worker *worker;
    struct server *server;
    struct session *session; /* NULL while idle */
    struct session *keeper;  /* session that keeps it for itself while idle */
    struct io_deferred deferred;
    struct str pp_header;    /* PROXY header bytes still to be sent */
    char pp_storage[256];
    uint64_t idle_since_us;
    uint32_t request_count;  /* requests sent over it */
    bool is_private;         /* may serve its first session only */
    bool one_request;        /* never used again: its PROXY header names one request */
};

struct pending { /* a session waiting for a slot; see queue.c */
    struct io_message message;
    struct list link;
    struct session *session; /* NULL: given up, the pending frees itself */
    struct worker *worker;
    struct proxy *backend;
    struct server *server;   /* in whose queue; NULL: the backend's */
    struct server *granted;  /* slot already taken for this session */
    bool delivered;          /* the message has arrived; read on its worker only */
    bool waiting;            /* in a queue; false without `granted`: look again */
};

#define TXN_FIELDS 32
#define TXN_ARENA_BYTES 4096

/* One request and its response; recycled. */
struct txn {
    struct arena arena;
    struct http_msg req, res;
    struct rules_ctx rules;
    struct rules_outcome outcome;
    struct cookie_state cookie;
    struct proxy *backend;
    struct server *server;     /* holds one of its slots while `has_slot` */
    struct server *failed_server;
    struct pending *pending;
    struct str target;         /* as received, for the log */
    struct str method;
    struct str unique_id;
    struct str request_head;   /* as sent to the server, kept while it may be sent again */
    struct str accept_encoding; /* the client's */
    struct str captured_cookie_req, captured_cookie_res;
    struct rules_reply *reply; /* answer of our own */
    struct str reply_body;
    struct compressor *compressor;

    /* times, monotonic microseconds; 0: not reached */
    uint64_t start_us, first_byte_us, request_done_us, queue_start_us, assigned_us, connect_start_us, connected_us,
        response_us, end_us;
    uint64_t start_wall_us, request_wall_us;
    uint64_t retry_at_us;

    unsigned retries_left, retries;
    unsigned srv_queue_pos, be_queue_pos;
    unsigned status;
    char cause, stage; /* termination state, '-' when normal */
    uint8_t version;   /* the client's */
    bool has_slot;
    bool redispatched;
    bool counted_backend; /* gauge of the backend was raised */
    bool bad_request;
    bool upgrade;      /* the client asked for one, or CONNECT */
    bool tunnel;       /* granted */
    bool keep_client, keep_server; /* connection persistence of this exchange */
    bool replied;      /* the answer was ours */
    bool replayable;   /* the request can be sent again as a whole */
    bool fresh_only;   /* a pooled connection was stale: a new one now */
    bool reused;       /* over a connection of the pool */
    bool response_started; /* bytes of a response have gone to the client */
    bool no_log;
    bool stats;        /* answered by the statistics page */

    struct http_field req_fields[TXN_FIELDS], res_fields[TXN_FIELDS];
    _Alignas(16) char arena_start[TXN_ARENA_BYTES];
};

struct session {
    struct conn client; /* first member */
    struct worker *worker;
    struct proxy *frontend;
    struct bind *bind;
    struct list link; /* worker->sessions */
    struct list later; /* worker->later; see worker_run_later */
    struct io_timer timer;
    struct io_deferred deferred;
    struct flow req, res;
    struct txn *txn;  /* NULL while idle */
    struct server_conn *server; /* carrying the transaction */
    struct server_conn *kept;   /* private connection between two transactions */
    struct addr src, dst;
    struct arena arena; /* session variables, PROXY header strings */
    struct rules_vars vars;
    struct str pp_authority, pp_unique_id;
    uint64_t accept_us, accept_wall_us, ready_us; /* ready: handshakes done */
    uint64_t client_activity_us, server_activity_us;
    uint64_t idle_since_us, linger_until_us;
    uint32_t request_count;
    uint8_t state; /* enum session_state */
    bool tls;
    bool http;         /* speaks HTTP: mode http, or upgraded by its backend */
    bool upgraded;     /* from mode tcp to HTTP by the backend: no rules of the frontend apply */
    bool rcvd_proxy;
    bool running;      /* session_run is active: events only leave their mark */
    bool client_gone;  /* reset or vanished */
    bool handshake_failed;
};

/* --- session.c: life and the machine ------------------------------------------------ */

/* Takes `fd` over. Counts, applies connection rules, starts the machine. */
void session_accept(struct bind_listener *bl, int fd, const struct addr *peer);
/* Runs step after step until everything waits; arms the timer. */
void session_run(struct session *s);
/* Ends the session at once; memory goes back at the end of the loop's turn. */
void session_destroy(struct session *s, bool reset);
/* Draining: idle sessions end now, busy ones after their transaction. */
void session_drain(struct session *s);
/* Notes why and where a transaction failed, unless already noted. */
void session_fail(struct session *s, char cause, char stage);
/* The transaction is over: log, counters, server connection back to its pool; then the next request or the end. */
enum step session_finish(struct session *s);
/* Parts with the server connection, if there is one: to its pool (or kept for this session) when it can be used again. */
void session_drop_server(struct session *s, bool reusable);
/* Index of a status in the counters by class. */
static inline unsigned session_status_class(unsigned status)
{
    return status / 100 <= 5 ? status / 100 : 0;
}
int session_start_txn(struct session *s);

/* Between requests, or before the first byte of one. */
static inline bool session_is_waiting(const struct session *s)
{
    return s->state == SESSION_IDLE || (s->state == SESSION_REQUEST && !s->txn->first_byte_us);
}

static inline uint64_t session_now(const struct session *s)
{
    return io_loop_now(s->worker->loop);
}

/* Counters of the frontend and of the chosen backend in this worker. */
static inline struct proxy_counters *session_fe(const struct session *s)
{
    return &s->worker->proxies[s->frontend->index];
}

static inline struct proxy_counters *session_be(const struct session *s)
{
    return &s->worker->proxies[s->txn->backend->index];
}

static inline struct server_counters *session_srv(const struct session *s)
{
    return &s->worker->servers[s->txn->server->index];
}

/* --- session_timer.c ------------------------------------------------------------------- */

void session_arm(struct session *s);
void session_timer_fired(struct io_timer *t);
int64_t session_timeout_tarpit(const struct session *s);

/* --- session_client.c -------------------------------------------------------------------- */

/* Waits for the client's next bytes; a loop that cannot watch it gives the session up. */
enum step session_wait_client(struct session *s);
enum step session_step_proxy_header(struct session *s);
enum step session_step_handshake(struct session *s);
enum step session_step_tcp_content(struct session *s);
enum step session_step_idle(struct session *s);

/* --- session_request.c ------------------------------------------------------------------- */

enum step session_step_request(struct session *s);
enum step session_step_tarpit(struct session *s);
/* The request is accepted by all rules: edits its head for the server and goes on to SESSION_ASSIGN. */
enum step session_forward_request(struct session *s);
/* Chooses the backend by use_backend and default_backend; NULL when there is none. */
struct proxy *session_choose_backend(struct session *s);
void session_set_backend(struct session *s, struct proxy *backend);

/* --- session_server.c -------------------------------------------------------------------- */

enum step session_step_assign(struct session *s);
enum step session_step_queued(struct session *s);
enum step session_step_retry_wait(struct session *s);
enum step session_step_connect(struct session *s);
enum step session_step_server_hello(struct session *s);
/* The attempt failed before a response: again, elsewhere, or an error page. */
enum step session_server_failed(struct session *s, char cause, char stage, unsigned status);
void session_release_slot(struct session *s);
/* use-server rules: the server that the first matching one names, if it can be used. */
struct server *session_assign_by_rule(struct session *s);
enum step session_connect_done(struct session *s);
/* "retry-on STATUS": whether this response is thrown away and the request sent again, and doing so. */
bool session_retries_status(const struct session *s, unsigned status);
enum step session_retry_status(struct session *s);
/* session_hello.c: PROXY header and TLS towards the server. */
bool session_server_hello_needed(const struct session *s);
int session_server_hello_prepare(struct session *s);
void session_server_event(struct io_sock *sock, unsigned events);

/* Serialises a head into the transaction's arena; ptr NULL without memory. */
struct str session_write_head(struct session *s, const struct http_msg *m);
/* Runs one hook's rules of a proxy against the transaction. */
enum rules_verdict session_run_rules(struct session *s, const struct proxy *p, enum rules_hook hook);
/* Fields to be logged (capture request/response header). */
void session_capture(struct session *s, bool response);

/* --- relay.c, session_response.c --------------------------------------------------------- */

enum step session_step_relay(struct session *s);
/* Parses and rewrites the response's head; STEP_AGAIN: head ready to be sent (or state changed). */
enum step session_response_head(struct session *s);

void flow_init(struct flow *f);
void flow_release(struct worker *w, struct flow *f);
/* Attaches storage: 0 or SP_ENOMEM. */
int flow_attach(struct worker *w, struct flow *f, bool big);
/* The head's bytes at the front of win become part of the pinned front. */
void flow_pin_head(struct flow *f, size_t head_bytes);
/* Bytes that wait to be sent. */
static inline size_t flow_pending(const struct flow *f)
{
    return f->head.len + f->piped + (f->mode == FLOW_RAW ? f->ready : buf_len(&f->out));
}

/*
 * relay_splice.c: moves bulk between two plain sockets through a pipe, past user space. Whether this direction is at a
 * point where that can begin or goes on; then one step in and out, with the codes of conn_recv and conn_sendv for either.
 */
bool flow_can_splice(const struct flow *f, const struct conn *from, const struct conn *to, const struct worker *w);
ptrdiff_t flow_splice_in(struct worker *w, struct flow *f, struct conn *from);
ptrdiff_t flow_splice_out(struct flow *f, struct conn *to);
void flow_release_pipe(struct worker *w, struct flow *f);
void pipes_free(struct worker *w);

/*
 * Looks at received bytes that were not looked at yet: how many more may be sent, or SP_EPROTO for broken framing.
 * Sets `complete` at the message's end.
 */
ptrdiff_t flow_walk(struct flow *f);
/* Reads once into win: bytes, or the code of conn_recv; SP_ETOOBIG when there is no room. */
ptrdiff_t flow_fill(struct flow *f, struct conn *from);

/* --- reply.c -------------------------------------------------------------------------------- */

/* Answers `reply` (in the transaction's arena); goes to SESSION_REPLY. */
enum step session_reply(struct session *s, struct rules_reply *reply);
/* The proxy's page (errorfile or built-in) for `status`. */
enum step session_reply_error(struct session *s, unsigned status);
enum step session_step_reply(struct session *s);
enum step session_step_linger(struct session *s);
/* Closes after what was sent could be read. */
enum step session_close_gently(struct session *s);
/* Nothing can be done for this connection: ends its transaction, then closes as gently. */
enum step session_refuse(struct session *s);

/* --- host.c, log.c, queue.c, pool.c -------------------------------------------------------- */

extern const struct rules_host session_rules_host;
void session_rules_ctx(struct session *s);
struct str session_unique_id(struct session *s);
void session_log(struct session *s);
/* Adds the transaction's bytes and times to the counters, once at its end. */
void session_count_bytes(struct session *s);
/* What a log line would say of the transaction so far, in its arena; NULL without one. */
const struct rules_log *session_log_facts(struct session *s);
/* A message that the parser refused: an error line that says why. */
void session_log_refusal(struct session *s, bool response, enum h1_error error);
/* The status that answers a refused head: 400 for most. */
unsigned h1_error_status(enum h1_error error);
/* The client's destination address: from the PROXY header, else the socket's. SP_EIO. */
int session_dst(struct session *s, struct addr *out);
/* A connection that ended before any transaction: handshake failures, empty connections. */
void session_log_connection(struct session *s, const char *reason);

/* Waits for a slot of `server`, or of any when NULL. 0 or SP_ENOMEM; SP_ETOOBIG: maxqueue. */
int queue_enter(struct session *s, struct server *server);
void queue_leave(struct session *s);
/* Takes a slot when the server has one free. */
bool queue_try_slot(struct server *server);
/* Gives a slot back and hands it to whoever waits. */
void queue_release_slot(struct server *server);
/* A server became usable or went away: those waiting are looked at again. */
void queue_kick(struct proxy *backend);

/* An idle connection for this session by the backend's http-reuse, or NULL. */
struct server_conn *pool_take(struct session *s, struct server *server);
struct server_conn *pool_new_conn(struct worker *w, struct server *server);
/* Keeps it for others, or closes it. */
void pool_give(struct server_conn *c);
/* Closes the private connection that a session keeps. */
void pool_drop_kept(struct session *s);
void pool_close(struct server_conn *c, bool reset);
void pool_purge(struct worker *w, bool all);

#endif
