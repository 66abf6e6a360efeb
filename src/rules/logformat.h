/*
 * What a finished (or running) stream tells its log line: the values behind the
 * %aliases of HAProxy's log-format. Times are microseconds; -1 means "never reached".
 */
#ifndef SP_RULES_LOGFORMAT_H
#define SP_RULES_LOGFORMAT_H

#include "rules/rules.h"

struct rules_log {
    uint64_t accept_wall_us;  /* %t, %tr base: date of the request's first byte or of the accept */
    uint64_t request_wall_us; /* %tr */
    int64_t t_handshake_us;   /* %Th */
    int64_t t_idle_us;        /* %Ti */
    int64_t t_request_us;     /* %TR */
    int64_t t_queue_us;       /* %Tw */
    int64_t t_connect_us;     /* %Tc */
    int64_t t_response_us;    /* %Tr */
    int64_t t_data_us;        /* %Td */
    int64_t t_active_us;      /* %Ta */
    int64_t t_total_us;       /* %Tt */
    int64_t t_user_us;        /* %Tu */
    uint64_t bytes_read;      /* %B server to client */
    uint64_t bytes_uploaded;  /* %U client to server */
    unsigned status;          /* %ST; 0: none, printed -1 */
    char term[4];             /* %ts and %tsc: cause, stage, persistence cookie in, out ("--", "NI"…) */
    unsigned act_conn, fe_conn, be_conn, srv_conn; /* %ac %fc %bc %sc */
    unsigned retries;         /* %rc */
    bool redispatched;        /* "+" before %rc */
    unsigned srv_queue, be_queue; /* %sq %bq */
    uint32_t request_counter; /* %rt */
    struct str fe_name, be_name, srv_name; /* %f %b %s; server "<NOSRV>" and "<STATS>" are the caller's */
    bool fe_tls;              /* "~" after %ft */
    struct str method, uri, version; /* %HM %HU (target as received) %HV ("HTTP/1.1") */
    struct str captured_cookie_req, captured_cookie_res; /* %CC %CS */
    unsigned req_capture_count, res_capture_count;
    bool is_http;
    bool bad_request;         /* the request could not be parsed: %r is "<BADREQ>" */
    bool no_request; /* the connection ended before one: its status is 0, not -1 */
    unsigned pid;
    uint32_t log_counter;     /* %lc */
    struct str unique_id;     /* %ID */
    int ssl_handshake_error;
};

/* HAProxy's built-in formats. */
extern const char rules_fmt_http[];  /* option httplog */
extern const char rules_fmt_https[]; /* option httpslog */
extern const char rules_fmt_tcp[];   /* option tcplog */
extern const char rules_fmt_clf[];   /* option httplog clf */
extern const char rules_fmt_default[]; /* neither: "Connect from …" */
extern const char rules_fmt_error[]; /* error-log-format's default */

#endif
