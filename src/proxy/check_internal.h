/*
 * Health checks, inside: scripts, runs, results.
 */
#ifndef SP_PROXY_CHECK_INTERNAL_H
#define SP_PROXY_CHECK_INTERNAL_H

#include "http/h1.h"
#include "proxy/check.h"
#include "proxy/conn.h"
#include "rules/regex.h"

/* --- results ---------------------------------------------------------------------- */

/* Numbers as in HAProxy's "show servers state". */
enum check_code {
    CHECK_UNKNOWN = 0,
    CHECK_INI = 1,
    CHECK_HANA = 4,
    CHECK_SOCKERR = 5,
    CHECK_L4OK = 6,
    CHECK_L4TOUT = 7,
    CHECK_L4CON = 8,
    CHECK_L6OK = 9,
    CHECK_L6TOUT = 10,
    CHECK_L6RSP = 11,
    CHECK_L7TOUT = 12,
    CHECK_L7RSP = 13,
    CHECK_L7OK = 15,
    CHECK_L7OKC = 16,
    CHECK_L7STS = 17,
};

enum check_verdict {
    CHECK_UNDECIDED = 0,
    CHECK_FAILED = 2,
    CHECK_PASSED = 3,
    CHECK_CONDITIONAL = 4
};

#define CHECK_INFO_BYTES 256

struct check_outcome {
    enum check_code code;
    int status_code;     /* of layer 7; shown with the codes that have one */
    int64_t duration_ms; /* -1: none */
    char info[CHECK_INFO_BYTES];
};

/* --- scripts ------------------------------------------------------------------------ */

struct check_header {
    struct str name;
    struct rules_fmt *value;
};

struct check_connect {
    bool use_server; /* what the server line says about checks; the rest below overrides */
    bool has_address, send_proxy, tls, linger;
    struct addr address; /* its port 0: none given */
    uint16_t port;       /* 0: none given */
    struct rules_expr *port_expr;
    const char *sni, *alpn;
};

struct check_send {
    bool http;
    /* tcp-check */
    struct str data;
    struct rules_fmt *fmt; /* instead of data */
    bool hex;              /* fmt yields hexadecimal digits */
    /* http-check; empty slices: not given */
    struct str method, uri, version, body;
    struct rules_fmt *uri_fmt, *body_fmt;
    struct check_header *headers;
    unsigned header_count;
};

enum check_match {
    CHECK_MATCH_NONE,
    CHECK_MATCH_STRING,
    CHECK_MATCH_STRING_FMT,
    CHECK_MATCH_REGEX,
    CHECK_MATCH_BINARY,
    CHECK_MATCH_BINARY_FMT,
    CHECK_MATCH_BINARY_REGEX,
    CHECK_MATCH_STATUS,
    CHECK_MATCH_STATUS_REGEX,
    CHECK_MATCH_FIELD,
    CHECK_MATCH_WHOLE_FIELD,
    CHECK_MATCH_TLS_HELLO, /* a record that answers a client hello */
};

enum check_compare { CHECK_EXACT, CHECK_BEGIN, CHECK_END, CHECK_SUB, CHECK_REG };

struct check_pattern { /* a name or value of a header field */
    bool given;
    enum check_compare compare;
    struct str text;
    struct rules_fmt *fmt;
    struct regex *regex;
};

struct check_range {
    unsigned low, high;
};

struct check_expect {
    enum check_match match;
    bool negate;
    int min_recv;     /* -1: not given */
    struct str text;  /* bytes to look for */
    struct str shown; /* as written, for messages */
    struct rules_fmt *fmt;
    struct regex *regex;
    struct check_range *ranges;
    unsigned range_count;
    struct check_pattern name, value;
    enum check_code ok_code, error_code, timeout_code; /* CHECK_UNKNOWN: by the kind of match */
    struct rules_fmt *on_success, *on_error;
    struct rules_expr *status_code;
};

enum check_step_kind { CHECK_STEP_CONNECT, CHECK_STEP_SEND, CHECK_STEP_EXPECT };

struct check_step {
    enum check_step_kind kind;
    unsigned number;     /* as the user counts the lines; 0: implied by the first of them */
    const char *comment; /* NULL: none */
    struct cfg_loc loc;
    union {
        struct check_connect connect;
        struct check_send send;
        struct check_expect expect;
    } u;
};

struct check_script {
    enum cfg_check_type type;
    struct check_step *steps;
    unsigned count;
    bool has_rules; /* tcp-check or http-check lines were written */
    bool disable_on_404, send_state;
};

/* One http-check or tcp-check line, taken apart word by word. */
struct check_words {
    struct rules_compiler *compiler;
    struct cfg_loc loc;
    const char *name; /* "http-check expect" */
    char **argv;
    int argc, at;
};

/* --- check_script.c: lines to steps ---------------------------------------------------- */

/* NULL: an error, which is in diag, or no memory. */
struct check_script *check_script_build(const struct proxy *backend,
                                        struct rules_compiler *compiler);
int check_fail(const struct check_words *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The word after the current one; a message and NULL when there is none. */
const char *check_next_word(struct check_words *w);
struct rules_fmt *check_fmt(const struct check_words *w, const char *text);
int check_hex(const struct check_words *w, const char *text, struct str *out);
/* Decodes pairs of hexadecimal digits into `out` (in.len / 2 bytes): the length or SP_EINVAL. */
ptrdiff_t check_hex_decode(struct str in, char *out);

/* --- check_parse.c: the words of connect, send and expect ------------------------------- */

int check_parse_connect(struct check_words *w, struct check_step *step);
int check_parse_http_send(struct check_words *w, struct check_step *step);
int check_parse_tcp_send(struct check_words *w, struct check_step *step, const char *verb);
/* Headers of the old form "HTTP/1.1\r\nHost: www" into the step's request. */
int check_parse_header_text(struct check_words *w, struct check_send *send, const char *text);

/* --- check_expect.c --------------------------------------------------------------------- */

int check_parse_expect(struct check_words *w, struct check_step *step, bool http);

/* --- check_match.c: pure matching --------------------------------------------------------- */

enum check_answer { CHECK_MATCHES, CHECK_MATCHES_NOT, CHECK_NEEDS_MORE, CHECK_EMPTY_PATTERN };

/*
 * Whether the expectation holds (negation included) for the bytes received so far. `last`: no more will
 * come. Scratch comes from ctx->arena.
 */
enum check_answer check_match_data(const struct check_expect *e, struct rules_ctx *ctx,
                                   struct str data, bool last);
/* The same for status and fields of a response head. */
enum check_answer check_match_head(const struct check_expect *e, struct rules_ctx *ctx,
                                   const struct http_msg *res);
bool check_match_is_head(enum check_match match);

/* --- check_http.c -------------------------------------------------------------------------- */

struct check;

/* Writes a request; SP_ETOOBIG. Text of X-Haproxy-Server-State in `state` (empty: not sent). */
int check_http_request(const struct check_send *send, struct rules_ctx *ctx, struct str state,
                       struct buf *out);
/* "UP 2/3; address=…" as HAProxy writes it. */
void check_http_state(const struct check *c, struct buf *out);

/* --- check_result.c ------------------------------------------------------------------------ */

enum check_verdict check_verdict_of(enum check_code code);
const char *check_code_name(enum check_code code);
const char *check_code_text(enum check_code code);
/* "reason: Layer7 wrong status, code: 500, info: \"Oh no\", check duration: 1ms". */
void check_reason(const struct check_outcome *o, char *out, size_t out_bytes);
/* Puts `text` into an outcome's info so that it is one harmless line of printable characters. */
void check_info_set(char out[CHECK_INFO_BYTES], struct str text);
/* A finished check: health, log lines, the server's state. */
void check_apply(struct check *c, struct check_outcome *o);
/* The interval that follows, by the server's health. */
uint64_t check_interval_us(const struct check *c);
/* The limit of observed errors was reached. */
void check_apply_observed(struct check *c);

/* --- a check ---------------------------------------------------------------------------------- */

enum check_phase { CHECK_IDLE, CHECK_CONNECTING, CHECK_HELLO, CHECK_SENDING, CHECK_EXPECTING };

struct check {
    struct server *server;
    const struct check_script *script;
    struct addr address; /* where the server line has its checks go */
    bool tls, send_proxy;
    int rise, fall;
    uint64_t inter_us, fastinter_us, downinter_us;
    unsigned error_limit;

    /* between runs */
    struct io_loop *loop; /* NULL: not started */
    struct tls_worker *tls_worker;
    struct tls_session_slot *tls_slot;
    struct io_timer timer; /* the next run, or the end of patience with this one */
    struct hash_rng rng;
    bool paused; /* in maintenance */

    /* the result, under `lock` for readers on other threads */
    pthread_mutex_t lock;
    struct check_outcome last;
    enum check_verdict verdict;
    int health; /* 0 … rise + fall - 1; UP from `rise` on */
    bool running;

    /* observe */
    atomic_uint errors; /* in a row */
    atomic_bool observe_posted;
    atomic_bool observed_layer7; /* what the last error was */
    atomic_uint observed_errors;
    _Atomic(struct io_loop *) observe_loop; /* where to tell; NULL: nobody listens */
    struct io_message observe_message;

    /* a run */
    enum check_phase phase;
    unsigned step; /* index of the current one */
    const struct check_connect *connected_by;
    bool layer6, layer7; /* reached */
    bool eof;
    uint64_t begin_us; /* of the run */
    uint64_t deadline_us;
    struct conn conn;
    struct arena arena, scratch; /* of the response; of one evaluation */
    struct rules_vars vars;
    struct buf in, out, body; /* storage while a run needs it */
    char hello[256];          /* PROXY header */
    struct str hello_rest;

    /* the response of an HTTP check */
    bool has_response;
    bool complete; /* all of it was received */
    enum http_method method;
    struct h1_scan scan;
    struct h1_body decoder;
    struct http_msg response;
    struct buf raw; /* what lies behind the head in `in`: still encoded */
};

/* --- check.c ------------------------------------------------------------------------------------ */

/* The server enters maintenance: nothing is sent until check_resume. */
void check_pause(struct check *c);
void check_resume(struct check *c);
/* An operator says that the server is up or down: the checks go on from there. */
void check_force_health(struct check *c, bool up);
/* Brings the next run forward to `delay_us` from now when it is later than that. */
void check_hurry(struct check *c, uint64_t delay_us);

/* --- check_run.c ---------------------------------------------------------------------------------- */

void check_run_begin(struct check *c);
void check_run_timeout(struct check *c);
/* Ends a run without a result. */
void check_run_abort(struct check *c);
/* Defined in check.c: a run has ended, with its outcome; NULL: it could not be made (no memory). */
void check_run_ended(struct check *c, struct check_outcome *o);

/* --- check_wait.c: the answer --------------------------------------------------------------------- */

enum check_progress { CHECK_GO_ON, CHECK_WAIT, CHECK_STEP_DONE, CHECK_RUN_OVER };

/* One round of "expect": reads and looks. */
enum check_progress check_expect_run(struct check *c);
/* Storage for a request and its answer: false without memory. */
bool check_buffers(struct check *c);

/* --- check_run.c, for check_wait.c ------------------------------------------------------------------ */

static inline const struct check_step *check_step_now(const struct check *c)
{
    return &c->script->steps[c->step];
}
/* Ends the run. */
void check_run_end(struct check *c, enum check_code code, int status_code, struct str info);
/* Ends it after an error of the socket, with the place in the script. */
void check_run_broken(struct check *c, enum check_code code);

/* --- check_host.c ------------------------------------------------------------------------------------ */

/* A context for expressions and formats of this run. */
struct rules_ctx check_rules_ctx(struct check *c);

#endif
