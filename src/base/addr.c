#include "base/addr.h"

#include "base/status.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>

/* Family codes of the prefixes that are not socket families. */
enum { FAMILY_FD = -1, FAMILY_ABNS = -2, FAMILY_ABNSZ = -3, FAMILY_REFUSED = -4 };

enum transport { TRANSPORT_UNSET, TRANSPORT_STREAM, TRANSPORT_DATAGRAM };

struct prefix {
    const char *text;
    int family; /* AF_UNSPEC: either IP version */
    enum transport transport;
};

static const struct prefix prefixes[] = {
    {"ip@", AF_UNSPEC, TRANSPORT_UNSET},          {"ipv4@", AF_INET, TRANSPORT_UNSET},
    {"ipv6@", AF_INET6, TRANSPORT_UNSET},         {"tcp@", AF_UNSPEC, TRANSPORT_STREAM},
    {"tcp4@", AF_INET, TRANSPORT_STREAM},         {"tcp6@", AF_INET6, TRANSPORT_STREAM},
    {"udp@", AF_UNSPEC, TRANSPORT_DATAGRAM},      {"udp4@", AF_INET, TRANSPORT_DATAGRAM},
    {"udp6@", AF_INET6, TRANSPORT_DATAGRAM},      {"unix@", AF_UNIX, TRANSPORT_UNSET},
    {"uxst@", AF_UNIX, TRANSPORT_STREAM},         {"uxdg@", AF_UNIX, TRANSPORT_DATAGRAM},
    {"abns@", FAMILY_ABNS, TRANSPORT_UNSET},      {"abnsz@", FAMILY_ABNSZ, TRANSPORT_UNSET},
    {"fd@", FAMILY_FD, TRANSPORT_UNSET},          {"sockpair@", FAMILY_REFUSED, TRANSPORT_UNSET},
    {"rhttp@", FAMILY_REFUSED, TRANSPORT_UNSET},  {"quic4@", FAMILY_REFUSED, TRANSPORT_UNSET},
    {"quic6@", FAMILY_REFUSED, TRANSPORT_UNSET},  {"mptcp@", FAMILY_REFUSED, TRANSPORT_UNSET},
    {"mptcp4@", FAMILY_REFUSED, TRANSPORT_UNSET}, {"mptcp6@", FAMILY_REFUSED, TRANSPORT_UNSET},
};

static int fail(const char **why, int status, const char *text)
{
    *why = text;
    return status;
}

static int parse_fd(struct str text, struct addr_spec *out, const char **why)
{
    uint64_t fd;

    if (str_to_u64(text, &fd) != 0 || fd > INT32_MAX)
        return fail(why, SP_EINVAL, "expected a descriptor number after 'fd@'");
    out->fd = (int)fd;
    return 0;
}

static int parse_unix(struct str path, int family, struct addr_spec *out, const char **why)
{
    struct sockaddr_un *un = &out->addr.u.un;
    bool abstract = family != AF_UNIX;

    if (path.len == 0)
        return fail(why, SP_EINVAL, "expected the path or name of a Unix socket");
    if (path.len > sizeof(un->sun_path) - 1)
        return fail(why, SP_EINVAL, "expected a Unix socket path or name of at most 107 bytes");
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path + abstract, path.ptr, path.len);
    /* abns names fill the whole structure with zeroes, as HAProxy's do; abnsz names just end. */
    if (family == FAMILY_ABNSZ)
        out->addr.len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + path.len);
    else
        out->addr.len = sizeof(*un);
    return 0;
}

static int parse_port(struct str text, uint16_t least, uint16_t *out, const char **why)
{
    uint64_t port;

    if (str_to_u64(text, &port) != 0 || port < least || port > 65535)
        return fail(why, SP_EINVAL, "expected a port number between 1 and 65535");
    *out = (uint16_t)port;
    return 0;
}

static int parse_port_offset(struct str text, unsigned flags, struct addr_spec *out,
                             const char **why)
{
    uint16_t distance;

    if (!(flags & ADDR_PORT_OFFSET))
        return fail(why, SP_EINVAL, "a port offset is not allowed here");
    if (parse_port(str_from(text, 1), 0, &distance, why) != 0)
        return fail(why, SP_EINVAL, "expected a port offset between -65535 and +65535");
    out->port_offset = text.ptr[0] == '-' ? -(int)distance : (int)distance;
    out->port_is_offset = true;
    out->port_given = true;
    return 0;
}

/* `text` is what follows the last colon; empty counts as no port. */
static int parse_ports(struct str text, unsigned flags, struct addr_spec *out, const char **why)
{
    uint16_t least = flags & ADDR_PORT_REQUIRED ? 1 : 0;
    size_t dash = str_chr(text, '-');
    int status;

    if (text.len && (text.ptr[0] == '+' || text.ptr[0] == '-'))
        return parse_port_offset(text, flags, out, why);
    if (text.len == 0) {
        if (flags & ADDR_PORT_REQUIRED)
            return fail(why, SP_EINVAL, "expected a port after the address");
        return 0;
    }
    if (dash < text.len && !(flags & ADDR_PORT_RANGE))
        return fail(why, SP_EINVAL, "a port range is not allowed here");
    status = parse_port(str_make(text.ptr, dash), least, &out->port_low, why);
    if (status != 0)
        return status;
    out->port_high = out->port_low;
    if (dash < text.len) {
        status = parse_port(str_from(text, dash + 1), least, &out->port_high, why);
        if (status != 0)
            return status;
        if (out->port_high < out->port_low)
            return fail(why, SP_EINVAL, "expected a port range that goes upwards");
    }
    out->port_given = true;
    return 0;
}

static void set_wildcard(struct addr *a, int family)
{
    if (family == AF_INET6) {
        a->u.in6.sin6_family = AF_INET6;
        a->u.in6.sin6_addr = in6addr_any;
        a->len = sizeof(a->u.in6);
    } else {
        a->u.in.sin_family = AF_INET;
        a->u.in.sin_addr.s_addr = htonl(INADDR_ANY);
        a->len = sizeof(a->u.in);
    }
}

static bool set_numeric(struct addr *a, int family, const char *host)
{
    if (family != AF_INET6 && inet_pton(AF_INET, host, &a->u.in.sin_addr) == 1) {
        a->u.in.sin_family = AF_INET;
        a->len = sizeof(a->u.in);
        return true;
    }
    if (family != AF_INET && inet_pton(AF_INET6, host, &a->u.in6.sin6_addr) == 1) {
        a->u.in6.sin6_family = AF_INET6;
        a->len = sizeof(a->u.in6);
        return true;
    }
    return false;
}

static bool is_host_name(struct str host)
{
    bool letters = false;

    for (size_t i = 0; i < host.len; i++) {
        char c = host.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';

        if (!letter && !(c >= '0' && c <= '9') && c != '-' && c != '.')
            return false;
        letters |= letter;
    }
    /* Digits and dots alone are a mistyped IPv4 address. */
    return letters;
}

static int resolve(const char *host, int family, struct addr *a, const char **why)
{
    struct addrinfo hints = {.ai_family = family, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int status = SP_ENOENT;

    *why = "the host name does not resolve";
    if (getaddrinfo(host, NULL, &hints, &found) != 0)
        return SP_ENOENT;
    for (const struct addrinfo *ai = found; ai && status != 0; ai = ai->ai_next) {
        if ((ai->ai_family != AF_INET && ai->ai_family != AF_INET6) ||
            ai->ai_addrlen > sizeof(a->u))
            continue;
        memcpy(&a->u, ai->ai_addr, ai->ai_addrlen);
        a->len = ai->ai_addrlen;
        status = 0;
    }
    freeaddrinfo(found);
    return status;
}

static int parse_host(struct str host, int family, unsigned flags, struct addr_spec *out,
                      const char **why)
{
    bool bracketed = false;
    char name[256];

    if (host.len == 0 || str_eq(host, STR("*"))) {
        out->any = family == AF_UNSPEC;
        set_wildcard(&out->addr, family);
        return 0;
    }
    if (host.ptr[0] == '[' && host.ptr[host.len - 1] == ']' && host.len > 2) {
        if (family == AF_INET)
            return fail(why, SP_EINVAL, "expected an IPv4 address");
        family = AF_INET6;
        host = str_make(host.ptr + 1, host.len - 2);
        bracketed = true;
    }
    if (host.len >= sizeof(name) || memchr(host.ptr, '\0', host.len))
        return fail(why, SP_EINVAL, "expected an address or host name of at most 255 bytes");
    memcpy(name, host.ptr, host.len);
    name[host.len] = '\0';
    if (set_numeric(&out->addr, family, name))
        return 0;
    if (bracketed || !is_host_name(host))
        return fail(why, SP_EINVAL,
                    family == AF_INET    ? "expected an IPv4 address"
                    : family == AF_INET6 ? "expected an IPv6 address"
                                         : "expected an IPv4 or IPv6 address");
    if (!(flags & ADDR_RESOLVE))
        return fail(why, SP_ENOENT, "expected a numeric address: host names are not resolved here");
    return resolve(name, family, &out->addr, why);
}

static int parse_ip(struct str text, int family, unsigned flags, struct addr_spec *out,
                    const char **why)
{
    struct str ports = STR_NULL;
    size_t at = text.len;
    int status;

    /* The last colon separates the port unless a bracket closes after it. */
    while (at > 0 && text.ptr[at - 1] != ':' && text.ptr[at - 1] != ']')
        at--;
    if (at > 0 && text.ptr[at - 1] == ':') {
        ports = str_from(text, at);
        text.len = at - 1;
    }
    status = parse_ports(ports, flags, out, why);
    if (status != 0)
        return status;
    status = parse_host(text, family, flags, out, why);
    if (status == 0 && !out->port_is_offset)
        addr_set_port(&out->addr, out->port_low);
    return status;
}

int addr_parse(const char *text, unsigned flags, struct addr_spec *out, const char **why)
{
    struct str rest = str_of(text);
    struct addr_spec spec = {.fd = -1, .datagram = flags & ADDR_DATAGRAM};
    int family = AF_UNSPEC, status;
    bool prefixed = false;

    if (rest.len == 0)
        return fail(why, SP_EINVAL, "expected an address");
    if (str_starts(rest, STR("stream+"))) {
        spec.datagram = false;
        rest = str_from(rest, 7);
    } else if (str_starts(rest, STR("dgram+"))) {
        spec.datagram = true;
        rest = str_from(rest, 6);
    }
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]) && !prefixed; i++) {
        struct str prefix = str_of(prefixes[i].text);

        prefixed = str_starts(rest, prefix);
        if (!prefixed)
            continue;
        rest = str_from(rest, prefix.len);
        family = prefixes[i].family;
        if (prefixes[i].transport != TRANSPORT_UNSET)
            spec.datagram = prefixes[i].transport == TRANSPORT_DATAGRAM;
    }
    if (!prefixed && rest.len && rest.ptr[0] == '/')
        family = AF_UNIX;
    else if (!prefixed && str_chr(rest, '@') < rest.len)
        return fail(why, SP_EINVAL, "expected ipv4@, ipv6@, tcp@, udp@, unix@, abns@ or fd@");
    if (family == FAMILY_REFUSED)
        return fail(why, SP_EINVAL, "this address family is not supported");
    if (family == FAMILY_FD)
        status = parse_fd(rest, &spec, why);
    else if (family == AF_UNIX || family == FAMILY_ABNS || family == FAMILY_ABNSZ)
        status = parse_unix(rest, family, &spec, why);
    else
        status = parse_ip(rest, family, flags, &spec, why);
    if (status == 0)
        *out = spec;
    return status;
}

uint16_t addr_port(const struct addr *a)
{
    if (a->u.sa.sa_family == AF_INET)
        return ntohs(a->u.in.sin_port);
    return a->u.sa.sa_family == AF_INET6 ? ntohs(a->u.in6.sin6_port) : 0;
}

void addr_set_port(struct addr *a, uint16_t port)
{
    if (a->u.sa.sa_family == AF_INET)
        a->u.in.sin_port = htons(port);
    else if (a->u.sa.sa_family == AF_INET6)
        a->u.in6.sin6_port = htons(port);
}

/* The path or abstract name, without the leading NUL of the latter; empty for an unnamed socket. */
static struct str unix_name(const struct addr *a, bool *abstract)
{
    const char *path = a->u.un.sun_path;
    size_t room = 0;

    if (a->len > offsetof(struct sockaddr_un, sun_path))
        room = a->len - offsetof(struct sockaddr_un, sun_path);
    if (room > sizeof(a->u.un.sun_path))
        room = sizeof(a->u.un.sun_path);
    *abstract = room > 1 && path[0] == '\0';
    return *abstract ? str_make(path + 1, strnlen(path + 1, room - 1))
                     : str_make(path, strnlen(path, room));
}

size_t addr_host_text(const struct addr *a, char out[ADDR_TEXT_BYTES])
{
    bool abstract;
    struct str name;

    out[0] = '\0';
    switch (a->u.sa.sa_family) {
    case AF_INET:
        inet_ntop(AF_INET, &a->u.in.sin_addr, out, ADDR_TEXT_BYTES);
        break;
    case AF_INET6:
        inet_ntop(AF_INET6, &a->u.in6.sin6_addr, out, ADDR_TEXT_BYTES);
        break;
    case AF_UNIX:
        name = unix_name(a, &abstract);
        snprintf(out, ADDR_TEXT_BYTES, "%s%.*s", abstract ? "abns@" : "", STR_FMT(name));
        break;
    default:
        break;
    }
    return strlen(out);
}

size_t addr_text(const struct addr *a, char out[ADDR_TEXT_BYTES])
{
    char host[ADDR_TEXT_BYTES];
    size_t len = addr_host_text(a, host);

    if (a->u.sa.sa_family == AF_INET)
        snprintf(out, ADDR_TEXT_BYTES, "%.*s:%u", INET_ADDRSTRLEN, host, addr_port(a));
    else if (a->u.sa.sa_family == AF_INET6)
        snprintf(out, ADDR_TEXT_BYTES, "[%.*s]:%u", INET6_ADDRSTRLEN, host, addr_port(a));
    else
        memcpy(out, host, len + 1);
    return strlen(out);
}

bool addr_equal(const struct addr *a, const struct addr *b)
{
    bool abstract_a, abstract_b;
    struct str name_a, name_b;

    if (a->u.sa.sa_family != b->u.sa.sa_family)
        return false;
    switch (a->u.sa.sa_family) {
    case AF_INET:
        return a->u.in.sin_port == b->u.in.sin_port &&
               a->u.in.sin_addr.s_addr == b->u.in.sin_addr.s_addr;
    case AF_INET6:
        return a->u.in6.sin6_port == b->u.in6.sin6_port &&
               a->u.in6.sin6_scope_id == b->u.in6.sin6_scope_id &&
               memcmp(&a->u.in6.sin6_addr, &b->u.in6.sin6_addr, sizeof(a->u.in6.sin6_addr)) == 0;
    case AF_UNIX:
        name_a = unix_name(a, &abstract_a);
        name_b = unix_name(b, &abstract_b);
        return abstract_a == abstract_b && str_eq(name_a, name_b);
    default:
        return true;
    }
}

int addr_net_parse(struct str s, struct addr_net *out)
{
    size_t slash = str_chr(s, '/');
    struct addr_net net = {.family = AF_INET};
    char host[INET6_ADDRSTRLEN];
    uint64_t bits;

    if (slash >= sizeof(host) || slash == 0)
        return SP_EINVAL;
    memcpy(host, s.ptr, slash);
    host[slash] = '\0';
    if (inet_pton(AF_INET, host, net.bytes) != 1) {
        net.family = AF_INET6;
        if (inet_pton(AF_INET6, host, net.bytes) != 1)
            return SP_EINVAL;
    }
    net.prefix_bits = net.family == AF_INET ? 32 : 128;
    if (slash < s.len) {
        if (str_to_u64(str_from(s, slash + 1), &bits) != 0 || bits > net.prefix_bits)
            return SP_EINVAL;
        net.prefix_bits = (uint8_t)bits;
    }
    *out = net;
    return 0;
}

static bool prefix_equal(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    unsigned whole = bits / 8, left = bits % 8;

    if (memcmp(a, b, whole) != 0)
        return false;
    return left == 0 || ((a[whole] ^ b[whole]) >> (8 - left)) == 0;
}

bool addr_net_contains(const struct addr_net *net, const struct addr *a)
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    uint8_t wide[16];

    /* Compared as IPv6: an IPv4 network is the mapped one with 96 bits more. */
    if (a->u.sa.sa_family == AF_INET) {
        memcpy(wide, mapped, sizeof(mapped));
        memcpy(wide + 12, &a->u.in.sin_addr, 4);
    } else if (a->u.sa.sa_family == AF_INET6) {
        memcpy(wide, &a->u.in6.sin6_addr, 16);
    } else {
        return false;
    }
    if (net->family == AF_INET)
        return memcmp(wide, mapped, sizeof(mapped)) == 0 &&
               prefix_equal(wide + 12, net->bytes, net->prefix_bits);
    /* "::/0" means every IPv6 address; an IPv4 one matches networks within the mapped range only. */
    if (a->u.sa.sa_family == AF_INET && net->prefix_bits < sizeof(mapped) * 8)
        return false;
    return prefix_equal(wide, net->bytes, net->prefix_bits);
}
