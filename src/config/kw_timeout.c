#include "config/parser.h"

/* A timeout of 0 is none, as in HAProxy. */
static int parse_timeout(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                         char **argv)
{
    int64_t value = 0;

    if (cfg_value_time(p, kw, argv[0], 1000, &value) != 0)
        return SP_EINVAL;
    *(int64_t *)((char *)object + kw->at) = value ? value : CFG_UNSET;
    return 1;
}

#define TIMEOUT(word, where, field, text)                                                        \
    {                                                                                            \
        .name = word, .sections = where, .at = offsetof(struct cfg_proxy, field), .min_args = 1, \
        .args = "<time>", .help = text, .parse = parse_timeout                                   \
    }

const struct cfg_kw cfg_kw_timeout[] = {
    TIMEOUT("timeout check", CFG_DBACK, timeout_check_us,
            "how long a health check may take once it is connected"),
    TIMEOUT("timeout client", CFG_DFRONT, timeout_client_us, "how long a client may be silent"),
    TIMEOUT("timeout client-fin", CFG_DFRONT, timeout_client_fin_us,
            "how long a client may be silent after one side has ended"),
    TIMEOUT("timeout client-hs", CFG_DFRONT, timeout_client_hs_us,
            "how long a TLS handshake with a client may take"),
    TIMEOUT("timeout connect", CFG_DBACK, timeout_connect_us,
            "how long a connection to a server may take to be established"),
    TIMEOUT("timeout http-keep-alive", CFG_DPROXY, timeout_http_keep_alive_us,
            "how long a client may wait before its next request"),
    TIMEOUT("timeout http-request", CFG_DPROXY, timeout_http_request_us,
            "how long a client may take to send the head of a request"),
    TIMEOUT("timeout queue", CFG_DBACK, timeout_queue_us,
            "how long a request may wait for a free server connection; by default timeout connect"),
    TIMEOUT("timeout server", CFG_DBACK, timeout_server_us, "how long a server may be silent"),
    TIMEOUT("timeout server-fin", CFG_DBACK, timeout_server_fin_us,
            "how long a server may be silent after one side has ended"),
    TIMEOUT("timeout tarpit", CFG_DPROXY, timeout_tarpit_us,
            "how long a tarpitted request waits; by default timeout connect"),
    TIMEOUT("timeout tunnel", CFG_DBACK, timeout_tunnel_us,
            "how long both sides of a tunnel may be silent"),
    TIMEOUT("tcp-request inspect-delay", CFG_DPROXY, tcp_request_inspect_delay_us,
            "how long tcp-request content rules may wait for bytes"),
    TIMEOUT("tcp-response inspect-delay", CFG_DBACK, tcp_response_inspect_delay_us,
            "how long tcp-response content rules may wait for bytes"),
    CFG_KW_END,
};
