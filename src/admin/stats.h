/*
 * Statistics of proxies, listeners and servers as rows of HAProxy's fields:
 * what "show stat", the CSV export and the page are made of.
 */
#ifndef SP_ADMIN_STATS_H
#define SP_ADMIN_STATS_H

#include "admin/text.h"
#include "proxy/check.h"

/* HAProxy 2.6's fields in its order. Those that nothing measures here stay empty. */
#define STATS_FIELDS(X)                                                                                              \
    X(PXNAME, "pxname") X(SVNAME, "svname") X(QCUR, "qcur") X(QMAX, "qmax") X(SCUR, "scur") X(SMAX, "smax")          \
    X(SLIM, "slim") X(STOT, "stot") X(BIN, "bin") X(BOUT, "bout") X(DREQ, "dreq") X(DRESP, "dresp")                  \
    X(EREQ, "ereq") X(ECON, "econ") X(ERESP, "eresp") X(WRETR, "wretr") X(WREDIS, "wredis") X(STATUS, "status")      \
    X(WEIGHT, "weight") X(ACT, "act") X(BCK, "bck") X(CHKFAIL, "chkfail") X(CHKDOWN, "chkdown")                      \
    X(LASTCHG, "lastchg") X(DOWNTIME, "downtime") X(QLIMIT, "qlimit") X(PID, "pid") X(IID, "iid") X(SID, "sid")      \
    X(THROTTLE, "throttle") X(LBTOT, "lbtot") X(TRACKED, "tracked") X(TYPE, "type") X(RATE, "rate")                  \
    X(RATE_LIM, "rate_lim") X(RATE_MAX, "rate_max") X(CHECK_STATUS, "check_status") X(CHECK_CODE, "check_code")      \
    X(CHECK_DURATION, "check_duration") X(HRSP_1XX, "hrsp_1xx") X(HRSP_2XX, "hrsp_2xx") X(HRSP_3XX, "hrsp_3xx")      \
    X(HRSP_4XX, "hrsp_4xx") X(HRSP_5XX, "hrsp_5xx") X(HRSP_OTHER, "hrsp_other") X(HANAFAIL, "hanafail")              \
    X(REQ_RATE, "req_rate") X(REQ_RATE_MAX, "req_rate_max") X(REQ_TOT, "req_tot") X(CLI_ABRT, "cli_abrt")            \
    X(SRV_ABRT, "srv_abrt") X(COMP_IN, "comp_in") X(COMP_OUT, "comp_out") X(COMP_BYP, "comp_byp")                    \
    X(COMP_RSP, "comp_rsp") X(LASTSESS, "lastsess") X(LAST_CHK, "last_chk") X(LAST_AGT, "last_agt")                  \
    X(QTIME, "qtime") X(CTIME, "ctime") X(RTIME, "rtime") X(TTIME, "ttime") X(AGENT_STATUS, "agent_status")          \
    X(AGENT_CODE, "agent_code") X(AGENT_DURATION, "agent_duration") X(CHECK_DESC, "check_desc")                      \
    X(AGENT_DESC, "agent_desc") X(CHECK_RISE, "check_rise") X(CHECK_FALL, "check_fall")                              \
    X(CHECK_HEALTH, "check_health") X(AGENT_RISE, "agent_rise") X(AGENT_FALL, "agent_fall")                          \
    X(AGENT_HEALTH, "agent_health") X(ADDR, "addr") X(COOKIE, "cookie") X(MODE, "mode") X(ALGO, "algo")              \
    X(CONN_RATE, "conn_rate") X(CONN_RATE_MAX, "conn_rate_max") X(CONN_TOT, "conn_tot")                              \
    X(INTERCEPTED, "intercepted") X(DCON, "dcon") X(DSES, "dses") X(WREW, "wrew") X(CONNECT, "connect")              \
    X(REUSE, "reuse") X(CACHE_LOOKUPS, "cache_lookups") X(CACHE_HITS, "cache_hits") X(SRV_ICUR, "srv_icur")          \
    X(SRC_ILIM, "src_ilim") X(QTIME_MAX, "qtime_max") X(CTIME_MAX, "ctime_max") X(RTIME_MAX, "rtime_max")            \
    X(TTIME_MAX, "ttime_max") X(EINT, "eint") X(IDLE_CONN_CUR, "idle_conn_cur") X(SAFE_CONN_CUR, "safe_conn_cur")    \
    X(USED_CONN_CUR, "used_conn_cur") X(NEED_CONN_EST, "need_conn_est") X(UWEIGHT, "uweight")                        \
    X(AGG_SERVER_STATUS, "agg_server_status") X(AGG_SERVER_CHECK_STATUS, "agg_server_check_status")                  \
    X(AGG_CHECK_STATUS, "agg_check_status") X(SEPARATOR, "-") X(SSL_SESS, "ssl_sess")                                \
    X(SSL_REUSED_SESS, "ssl_reused_sess") X(SSL_FAILED_HANDSHAKE, "ssl_failed_handshake")                            \
    X(H2_HEADERS_RCVD, "h2_headers_rcvd") X(H2_DATA_RCVD, "h2_data_rcvd") X(H2_SETTINGS_RCVD, "h2_settings_rcvd")    \
    X(H2_RST_STREAM_RCVD, "h2_rst_stream_rcvd") X(H2_GOAWAY_RCVD, "h2_goaway_rcvd")                                  \
    X(H2_CONN_ERRORS, "h2_detected_conn_protocol_errors") X(H2_STRM_ERRORS, "h2_detected_strm_protocol_errors")      \
    X(H2_RST_STREAM_RESP, "h2_rst_stream_resp") X(H2_GOAWAY_RESP, "h2_goaway_resp")                                  \
    X(H2_OPEN_CONNECTIONS, "h2_open_connections") X(H2_OPEN_STREAMS, "h2_backend_open_streams")                      \
    X(H2_TOTAL_CONNECTIONS, "h2_total_connections") X(H2_TOTAL_STREAMS, "h2_backend_total_streams")                  \
    X(H1_OPEN_CONNECTIONS, "h1_open_connections") X(H1_OPEN_STREAMS, "h1_open_streams")                              \
    X(H1_TOTAL_CONNECTIONS, "h1_total_connections") X(H1_TOTAL_STREAMS, "h1_total_streams")                          \
    X(H1_BYTES_IN, "h1_bytes_in") X(H1_BYTES_OUT, "h1_bytes_out") X(H1_SPLICED_IN, "h1_spliced_bytes_in")            \
    X(H1_SPLICED_OUT, "h1_spliced_bytes_out")

enum stats_field {
#define STATS_ID(id, name) STATS_##id,
    STATS_FIELDS(STATS_ID)
#undef STATS_ID
    STATS_FIELD_COUNT
};

enum stats_kind { STATS_EMPTY, STATS_NUMBER, STATS_TEXT };

enum stats_type { STATS_FRONTEND, STATS_BACKEND, STATS_SERVER, STATS_LISTENER }; /* as in field "type" */

struct stats_row {
    enum stats_type type;
    struct stats_cell {
        uint8_t kind; /* enum stats_kind */
        union {
            int64_t number;
            struct str text; /* static, of the application, or in `scratch` */
        } u;
    } cells[STATS_FIELD_COUNT];
    char scratch[1024];
    size_t scratch_len;
};

/* Each fills the whole row. `legends`: addresses, cookies and algorithms too ("stats show-legends"). Any thread. */
void stats_frontend(const struct app *app, const struct proxy *p, struct stats_row *row);
void stats_listener(const struct app *app, const struct bind *b, bool legends, struct stats_row *row);
void stats_server(const struct app *app, const struct server *s, bool legends, uint64_t now_us, struct stats_row *row);
void stats_backend(const struct app *app, const struct proxy *p, bool legends, struct stats_row *row);

/* HAProxy's CSV: a line with the names that begins with "# ", a line a row; each cell is followed by a comma. */
void stats_put_csv_names(struct text *out);
void stats_put_csv(struct text *out, const struct stats_row *row);

#endif
