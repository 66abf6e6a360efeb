/*
 * Socket addresses in HAProxy's notation, and IP networks.
 *
 * [FAMILY@]ADDRESS[:PORT[-PORT]] with FAMILY one of ipv4, ipv6, unix, abns, fd,
 * sockpair (refused), optionally prefixed by "stream+" or "dgram+"; "udp@",
 * "udp4@", "tcp@" and the like as in HAProxy's manual section 11.
 *
 * As in HAProxy the last colon separates the port, so that an IPv6 address
 * without brackets needs one in front of its port: "::1:80" is port 80 of ::1.
 * With "abns@NAME" the name is padded with zeroes to the size of sun_path and
 * with "abnsz@NAME" it is not.
 */
#ifndef SP_BASE_ADDR_H
#define SP_BASE_ADDR_H

#include "base/str.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

/* One socket address; `len` is what bind and connect take. */
struct addr {
    socklen_t len;
    union {
        struct sockaddr sa;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        struct sockaddr_un un;
        struct sockaddr_storage storage;
    } u;
};

struct addr_spec {
    struct addr addr;             /* family AF_UNSPEC when `fd` is set */
    int fd;                       /* inherited descriptor of fd@N, otherwise -1 */
    uint16_t port_low, port_high; /* equal for a single port; 0 when none was given */
    bool port_given;
    int port_offset; /* "+N" or "-N" ports of servers: added to the client's port */
    bool port_is_offset;
    bool datagram; /* dgram+ or udp@ */
    bool any; /* "*" or an empty address without a family: both wildcards apply; addr is IPv4 */
};

enum {
    ADDR_PORT_RANGE = 1,    /* LOW-HIGH allowed */
    ADDR_PORT_OFFSET = 2,   /* +N and -N allowed */
    ADDR_PORT_REQUIRED = 4, /* a port from 1 up must be given for IP families */
    ADDR_RESOLVE = 8,       /* host names are looked up with getaddrinfo */
    ADDR_DATAGRAM = 16,     /* datagram by default (log targets) */
};

/*
 * Parses `text`. On failure SP_EINVAL (syntax) or SP_ENOENT (a host name that
 * does not resolve or was not allowed), and *why is a static or arena-free
 * text naming what was expected.
 */
int addr_parse(const char *text, unsigned flags, struct addr_spec *out, const char **why);

uint16_t addr_port(const struct addr *a);
void addr_set_port(struct addr *a, uint16_t port);

/*
 * Numeric host without port or brackets; the path of a Unix socket or "abns@NAME"
 * ("unix:1" style names are up to the caller). Returns the length.
 */
#define ADDR_TEXT_BYTES 120
size_t addr_host_text(const struct addr *a, char out[ADDR_TEXT_BYTES]);
/* "host:port", "[v6]:port" or the path of a Unix socket. */
size_t addr_text(const struct addr *a, char out[ADDR_TEXT_BYTES]);

bool addr_equal(const struct addr *a, const struct addr *b); /* host and port */

/* An IPv4 or IPv6 network. */
struct addr_net {
    int family; /* AF_INET or AF_INET6 */
    uint8_t bytes[16];
    uint8_t prefix_bits;
};

/* "10.0.0.0/8", "10.0.0.1", "::1/128"; SP_EINVAL otherwise. */
int addr_net_parse(struct str s, struct addr_net *out);

/* IPv4-mapped IPv6 addresses match IPv4 networks and the reverse. */
bool addr_net_contains(const struct addr_net *net, const struct addr *a);

#endif
