/*
 * The inside of the load generator.
 *
 *      FREE --begin--> CONNECTING --> HANDSHAKE --> SENDING --> HEAD --> BODY
 *       ^                 |               |            ^  |      |        |
 *       |                 |               |            |  +------+--------+-- broken --> AGAIN or PAUSED
 *     AGAIN, PAUSED <-----+---- broken ---+            |         |        |
 *                                                      +--next---+--------+
 *
 * AGAIN: the turn's hook opens it anew, so that nothing recurses however fast connections fail. PAUSED: its
 * timer does, when there is no use in hurrying. IDLE: open, waits for a request to be due (open loop).
 * TICKET: its handshake is done, its session is still to come (handshakes only). DONE: nothing left to do.
 *
 * A lane is the requests of one thread that its connections take in turn, and in an open loop their due
 * times. There is one for each target, with connections of its own; with fewer connections than
 * targets there is one for all, and its connections change targets.
 */
#ifndef SP_LOAD_ENGINE_H
#define SP_LOAD_ENGINE_H

#include "http/h1.h"
#include "load/arrival.h"
#include "load/record.h"

#include <pthread.h>

enum load_state {
    LOAD_FREE,
    LOAD_AGAIN,
    LOAD_PAUSED,
    LOAD_CONNECTING,
    LOAD_HANDSHAKE,
    LOAD_TICKET,
    LOAD_IDLE,
    LOAD_SENDING,
    LOAD_HEAD,
    LOAD_BODY,
    LOAD_DONE,
};

/* By measuring: io_uring costs a few percent less than epoll where it can be had. */
#ifndef LOAD_ENGINE
#define LOAD_ENGINE IO_ENGINE_AUTO
#endif
#define LOAD_READ_BYTES 65536
#define LOAD_HEAD_BYTES_MAX 65536
#define LOAD_NO_LIMIT UINT64_MAX

struct load_thread;
struct load_lane;

/* What the parser has made of a head. */
struct load_head {
    uint32_t len;
    uint16_t status;
    uint8_t framing; /* enum http_framing */
    bool keep_alive;
    uint64_t content_length;
};

/*
 * The last head of a request, as it came and what it means: the next one is most often the same to the
 * byte, and then need not be parsed.
 */
#define LOAD_MEMO_BYTES 1024
struct load_memo {
    struct load_head head; /* len 0: none yet */
    enum http_method method;
    char bytes[LOAD_MEMO_BYTES];
};
#define LOAD_MEMOS 16

struct load_conn {
    struct io_sock sock; /* first member */
    struct io_timer timer;
    struct list link;   /* in the lane's `free` or the thread's `again` */
    struct list unread; /* in the thread's */
    struct load_thread *thread;
    struct load_lane *lane;
    const struct load_target *target;   /* of the connection */
    const struct load_request *request; /* NULL: none */
    struct tls_conn *tls;
    struct tls_session_slot *slot; /* NULL until a session is wanted */
    uint8_t state;                 /* enum load_state */
    bool conn_measured;            /* its connecting belongs to the measurement */
    bool measured;                 /* its request does */
    bool sent;                     /* the request has been counted as sent */
    bool retried;                  /* it is sent for the second time */
    bool served;                   /* this connection has answered before */
    bool wants_session;
    bool is_fresh;   /* of the first round, and has come to nothing yet */
    bool keep_alive; /* what the head said */
    uint16_t status;
    uint32_t pause_ms;
    uint64_t begun_us, phase_us, base_us, sent_us, first_us;
    size_t sent_bytes;
    struct h1_body body;
    uint64_t hash;
    char *head; /* a head that came in pieces; NULL: never yet */
    uint32_t head_len, head_size;
    struct h1_scan scan;
};

struct load_lane {
    struct load_thread *thread;
    const struct load_request **requests;
    size_t count, next;
    struct load_arrival arrival;
    struct list free; /* open loop: connections that have nothing to do */
};

struct load_thread {
    struct load *load;
    const struct load_plan *plan;
    struct io_loop *loop;
    struct tls_worker *tls; /* NULL: no target wants it */
    const struct io_transport *base_transport;
    struct io_transport counting; /* the same, and what TLS moves is counted */
    uint64_t tls_bytes_in;        /* by it, measured or not */
    pthread_t id;
    bool started;
    unsigned index;

    struct load_conn *conns;
    size_t conn_count, begun; /* the first `begun` have been started */
    size_t fresh;             /* of these, the server has not dealt with */
    struct load_lane *lanes;
    size_t lane_count;
    const struct load_request **order; /* the lanes' requests */
    struct list again;
    struct list unread; /* connections with more to read than one turn allows */

    uint64_t measure_us, stop_us; /* stop_us UINT64_MAX: no such time */
    uint64_t left;                /* requests still to begin; LOAD_NO_LIMIT */
    uint64_t outstanding;         /* begun and neither answered nor failed */
    bool stopped;                 /* no request begins any more */
    bool interrupted;             /* by load_stop */
    bool is_open_loop;
    bool is_one_shot; /* a connection a request */

    struct io_timer ramp, measure, stop, give_up;
    struct io_watch alarm; /* a timerfd: due times are finer than the loop's timers */
    uint64_t alarm_us;     /* UINT64_MAX: not set */
    struct io_turn_hook hook;
    struct io_message start_message, stop_message;
    atomic_bool stop_posted;
    atomic_bool ended;

    struct hash_rng rng;
    struct arena arena; /* fields of the head that is being parsed */
    struct load_memo memos[LOAD_MEMOS];
    char buffer[LOAD_READ_BYTES];

    uint64_t begin_cpu_ns, end_cpu_ns, cpu_ns; /* end: when sending was over; cpu_ns: in the end */
    uint64_t begin_us, begin_idle_us, end_us, end_idle_us; /* of measuring; end_us 0: not over */

    struct load_record record;
};

struct load {
    const struct load_plan *plan;
    struct load_thread **threads;
    unsigned thread_count;
    bool is_started, is_joined;
    atomic_bool is_prepared; /* the threads can be told to stop */
    uint64_t start_us;
    atomic_bool stopping;
    struct load_sum sum;
};

/* --- thread.c --------------------------------------------------------------------------------- */

/* SP_ENOMEM; SP_EIO with errno. */
int load_thread_new(struct load_thread **out, struct load *load, unsigned index);
void load_thread_free(struct load_thread *t);
/* The loop, the TLS worker; on the starting thread. SP_ENOMEM; SP_EIO with errno. */
int load_thread_prepare(struct load_thread *t);
void *load_thread_run(void *thread);
/* From any thread or signal handler, once prepared. */
void load_thread_stop(struct load_thread *t);
/*
 * Gives the connection the next request of its lane, whose latency counts from `base_us`; false: there is none
 * any more.
 */
bool load_thread_take(struct load_conn *c, uint64_t base_us);
/* The connection is to be opened anew at the end of this turn. */
void load_thread_again(struct load_conn *c);
/* Open loop: it waits for something to be due. */
void load_thread_wait(struct load_conn *c);

/* --- conn_open.c ------------------------------------------------------------------------------- */

/* Opens a connection, for its request if it has one. */
void load_conn_begin(struct load_conn *c, uint64_t now_us);
/* Continues CONNECTING, HANDSHAKE, TICKET. */
void load_conn_opening(struct load_conn *c);
void load_conn_close(struct load_conn *c, bool reset);
void load_conn_timer(struct io_timer *timer);
/* Forgets a request that was not sent, and the connection. */
void load_conn_drop(struct load_conn *c);
void load_conn_release(struct load_conn *c);
/* The server has dealt with it, in whatever way: another one may be opened. */
void load_conn_settled(struct load_conn *c);
/* The time for the phase that begins. */
void load_conn_deadline(struct load_conn *c, uint64_t now_us);
/* What is to be opened again waits for a while, longer each time. */
void load_conn_pause(struct load_conn *c, uint64_t now_us);

/* --- conn.c -------------------------------------------------------------------------------------- */

void load_conn_event(struct io_sock *sock, unsigned events);
/* Goes on reading. */
void load_conn_read(struct load_conn *c);
/* Its request, on the connection that is open. */
void load_conn_send(struct load_conn *c, uint64_t now_us);
/* The request, or the attempt to connect, has failed: counts, closes, begins anew. */
void load_conn_fail(struct load_conn *c, uint64_t now_us, enum load_error error, const char *text);
/* The peer has ended the connection or it broke: SP_EEOF, SP_ERESET, SP_EPROTO (TLS). */
void load_conn_ended(struct load_conn *c, uint64_t now_us, int status);

/* --- answer.c -------------------------------------------------------------------------------------- */

/* Before the first byte of an answer. */
void load_answer_begin(struct load_conn *c);
/*
 * The next bytes of the answer. 0: it is whole, *extra bytes at the end of `in` do not belong to it; SP_EAGAIN: more
 * is needed; SP_EPROTO: it is no HTTP, *why tells; SP_ENOMEM.
 */
int load_answer_take(struct load_conn *c, struct str in, size_t *extra, const char **why);

#endif
