#include "io/proxy_header.h"

#include "base/hash.h"

#include <arpa/inet.h>
#include <stdio.h>

/* Of proxy-protocol.txt, sections 2.1 and 2.2. */
#define SIGNATURE STR("\r\n\r\n\0\r\nQUIT\n")
#define FIXED_BYTES 16
#define UNIX_PATH_BYTES 108
#define UNIQUE_ID_MAX 128

enum { VERSION_2 = 0x20, COMMAND_LOCAL = 0, COMMAND_PROXY = 1 };

/* Family and transport in one byte. */
enum {
    FAMILY_UNSPEC = 0x00,
    FAMILY_TCP4 = 0x11,
    FAMILY_UDP4 = 0x12,
    FAMILY_TCP6 = 0x21,
    FAMILY_UDP6 = 0x22,
    FAMILY_UNIX_STREAM = 0x31,
    FAMILY_UNIX_DGRAM = 0x32,
};

enum {
    TLV_ALPN = 0x01,
    TLV_AUTHORITY = 0x02,
    TLV_CRC32C = 0x03,
    TLV_UNIQUE_ID = 0x05,
    TLV_TLS = 0x20,
    TLV_TLS_VERSION = 0x21,
    TLV_TLS_CN = 0x22,
    TLV_TLS_CIPHER = 0x23,
    TLV_TLS_SIG_ALG = 0x24,
    TLV_TLS_KEY_ALG = 0x25,
    TLV_NETNS = 0x30,
};

/* --- version 1 ----------------------------------------------------------------- */

/* A decimal number without leading zeroes. */
static int parse_number(struct str s, unsigned max, unsigned *out)
{
    unsigned value = 0;

    if (s.len == 0 || s.len > 5 || (s.len > 1 && s.ptr[0] == '0'))
        return SP_EPROTO;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9')
            return SP_EPROTO;
        value = value * 10 + (unsigned)(s.ptr[i] - '0');
    }
    if (value > max)
        return SP_EPROTO;
    *out = value;
    return 0;
}

/* Cuts the text before the next `separator` off *rest; without one, all of it. */
static struct str take(struct str *rest, char separator)
{
    size_t at = str_chr(*rest, separator);
    struct str word = str_make(rest->ptr, at);

    *rest = str_from(*rest, at + 1);
    return word;
}

static int parse_ipv4(struct str s, struct addr *a)
{
    uint32_t host = 0;

    for (int i = 0; i < 4; i++) {
        struct str text = i < 3 ? take(&s, '.') : s;
        unsigned octet;

        if (parse_number(text, 255, &octet) != 0)
            return SP_EPROTO;
        host = host << 8 | octet;
    }
    a->u.in.sin_family = AF_INET;
    a->u.in.sin_addr.s_addr = htonl(host);
    a->len = sizeof(a->u.in);
    return 0;
}

static int parse_ipv6(struct str s, struct addr *a)
{
    char text[INET6_ADDRSTRLEN];

    if (s.len >= sizeof(text) || str_chr(s, '\0') < s.len)
        return SP_EPROTO;
    memcpy(text, s.ptr, s.len);
    text[s.len] = '\0';
    if (inet_pton(AF_INET6, text, &a->u.in6.sin6_addr) != 1)
        return SP_EPROTO;
    a->u.in6.sin6_family = AF_INET6;
    a->len = sizeof(a->u.in6);
    return 0;
}

/* "source destination port port" */
static int parse_v1_addresses(struct str rest, bool v6, struct io_proxy_header *h)
{
    struct str src = take(&rest, ' ');
    struct str dst = take(&rest, ' ');
    struct str src_port = take(&rest, ' ');
    struct str dst_port = rest; /* a further space makes it no number */
    unsigned port;

    if (v6 ? parse_ipv6(src, &h->src) || parse_ipv6(dst, &h->dst)
           : parse_ipv4(src, &h->src) || parse_ipv4(dst, &h->dst))
        return SP_EPROTO;
    if (parse_number(src_port, 65535, &port) != 0)
        return SP_EPROTO;
    addr_set_port(&h->src, (uint16_t)port);
    if (parse_number(dst_port, 65535, &port) != 0)
        return SP_EPROTO;
    addr_set_port(&h->dst, (uint16_t)port);
    return 0;
}

static ptrdiff_t parse_v1(struct str in, size_t prefix, struct io_proxy_header *h)
{
    struct str line = in.len > IO_PROXY_V1_MAX ? str_make(in.ptr, IO_PROXY_V1_MAX) : in;
    size_t lf = str_chr(line, '\n');
    size_t cr = str_chr(line, '\r');
    struct str rest, family;
    int status = 0;

    if (lf == line.len) {
        bool hopeless = line.len == IO_PROXY_V1_MAX || cr + 1 < line.len;

        return hopeless ? SP_EPROTO : SP_EAGAIN;
    }
    if (cr + 1 != lf)
        return SP_EPROTO;
    rest = str_make(line.ptr + prefix, cr - prefix);
    family = take(&rest, ' ');
    if (str_eq(family, STR("TCP4")))
        status = parse_v1_addresses(rest, false, h);
    else if (str_eq(family, STR("TCP6")))
        status = parse_v1_addresses(rest, true, h);
    else if (str_eq(family, STR("UNKNOWN")))
        h->local = true;
    else
        status = SP_EPROTO;
    return status ? status : (ptrdiff_t)lf + 1;
}

/* --- version 2 ------------------------------------------------------------------ */

static unsigned get_u16(const char *p)
{
    return (unsigned)(uint8_t)p[0] << 8 | (uint8_t)p[1];
}

static uint32_t get_u32(const char *p)
{
    return (uint32_t)get_u16(p) << 16 | get_u16(p + 2);
}

static void get_inet(const char *host, const char *port, struct addr *a)
{
    a->u.in.sin_family = AF_INET;
    a->len = sizeof(a->u.in);
    memcpy(&a->u.in.sin_addr, host, 4);
    memcpy(&a->u.in.sin_port, port, 2);
}

static void get_inet6(const char *host, const char *port, struct addr *a)
{
    a->u.in6.sin6_family = AF_INET6;
    a->len = sizeof(a->u.in6);
    memcpy(&a->u.in6.sin6_addr, host, 16);
    memcpy(&a->u.in6.sin6_port, port, 2);
}

static void get_unix(const char *path, struct addr *a)
{
    a->u.un.sun_family = AF_UNIX;
    a->len = sizeof(a->u.un);
    memcpy(a->u.un.sun_path, path, UNIX_PATH_BYTES);
}

/*
 * Reads the address block; *offset becomes where the TLVs begin. What is valid but no stream counts
 * as local, as section 2.2 asks.
 */
static int parse_v2_addresses(struct str in, struct io_proxy_header *h, size_t *offset)
{
    unsigned family = (uint8_t)in.ptr[13];
    const char *block = in.ptr + FIXED_BYTES;
    size_t need;

    if (family >> 4 > 3 || (family & 15) > 2)
        return SP_EPROTO;
    switch (family >> 4) {
    case 1:
        need = 12;
        break;
    case 2:
        need = 36;
        break;
    case 3:
        need = 2 * UNIX_PATH_BYTES;
        break;
    default:
        need = 0;
        break;
    }
    if (in.len - FIXED_BYTES < need)
        return SP_EPROTO;
    *offset = FIXED_BYTES + need;
    if (family == FAMILY_TCP4) {
        get_inet(block, block + 8, &h->src);
        get_inet(block + 4, block + 10, &h->dst);
    } else if (family == FAMILY_TCP6) {
        get_inet6(block, block + 32, &h->src);
        get_inet6(block + 16, block + 34, &h->dst);
    } else if (family == FAMILY_UNIX_STREAM) {
        get_unix(block, &h->src);
        get_unix(block + UNIX_PATH_BYTES, &h->dst);
    } else {
        h->local = true;
    }
    return 0;
}

/* 1 and the next TLV, 0 at the end, SP_EPROTO when it does not fit into what is left. */
static int next_tlv(struct str *rest, unsigned *type, struct str *value)
{
    size_t len;

    if (rest->len == 0)
        return 0;
    if (rest->len < 3)
        return SP_EPROTO;
    len = get_u16(rest->ptr + 1);
    if (len > rest->len - 3)
        return SP_EPROTO;
    *type = (uint8_t)rest->ptr[0];
    *value = str_make(rest->ptr + 3, len);
    *rest = str_from(*rest, 3 + len);
    return 1;
}

/* The checksum is taken over the header with zeroes in its own place. */
static bool crc_matches(struct str header, struct str value)
{
    char copy[IO_PROXY_HEADER_MAX];

    if (value.len != 4)
        return false;
    memcpy(copy, header.ptr, header.len);
    memset(copy + (value.ptr - header.ptr), 0, 4);
    return hash_crc32c(str_make(copy, header.len)) == get_u32(value.ptr);
}

static void keep_first(struct str *slot, struct str value)
{
    if (!slot->ptr)
        *slot = value;
}

static int parse_tls(struct str value, struct io_proxy_header *h)
{
    struct str rest, text;
    unsigned type;
    int more;

    if (value.len < 5)
        return SP_EPROTO;
    if (h->has_tls)
        return 0;
    h->has_tls = true;
    h->tls_client = (uint8_t)value.ptr[0];
    h->tls_verify = get_u32(value.ptr + 1);
    rest = str_from(value, 5);
    while ((more = next_tlv(&rest, &type, &text)) > 0) {
        if (type == TLV_TLS_VERSION)
            keep_first(&h->tls_version, text);
        else if (type == TLV_TLS_CN)
            keep_first(&h->tls_cn, text);
        else if (type == TLV_TLS_CIPHER)
            keep_first(&h->tls_cipher, text);
        else if (type == TLV_TLS_SIG_ALG)
            keep_first(&h->tls_sig_alg, text);
        else if (type == TLV_TLS_KEY_ALG)
            keep_first(&h->tls_key_alg, text);
    }
    return more;
}

static int parse_tlvs(struct str header, size_t offset, struct io_proxy_header *h)
{
    struct str rest = str_from(header, offset);
    struct str value;
    unsigned type;
    int more;

    while ((more = next_tlv(&rest, &type, &value)) > 0) {
        switch (type) {
        case TLV_ALPN:
            keep_first(&h->alpn, value);
            break;
        case TLV_AUTHORITY:
            keep_first(&h->authority, value);
            break;
        case TLV_CRC32C:
            if (!crc_matches(header, value))
                return SP_EPROTO;
            break;
        case TLV_UNIQUE_ID:
            if (value.len > UNIQUE_ID_MAX)
                return SP_EPROTO;
            keep_first(&h->unique_id, value);
            break;
        case TLV_TLS:
            if (parse_tls(value, h) != 0)
                return SP_EPROTO;
            break;
        case TLV_NETNS:
            keep_first(&h->netns, value);
            break;
        default: /* NOOP, types of others and of the future */
            break;
        }
    }
    return more;
}

static ptrdiff_t parse_v2(struct str in, struct io_proxy_header *h)
{
    size_t offset = FIXED_BYTES;
    size_t total;
    unsigned command;
    int status;

    if (in.len <= SIGNATURE.len)
        return SP_EAGAIN;
    command = (uint8_t)in.ptr[12];
    if (command != (VERSION_2 | COMMAND_LOCAL) && command != (VERSION_2 | COMMAND_PROXY))
        return SP_EPROTO;
    if (in.len < FIXED_BYTES)
        return SP_EAGAIN;
    total = FIXED_BYTES + get_u16(in.ptr + 14);
    if (total > IO_PROXY_HEADER_MAX)
        return SP_EPROTO;
    if (in.len < total)
        return SP_EAGAIN;
    in.len = total;
    if (command == (VERSION_2 | COMMAND_LOCAL)) {
        /*
         * What a LOCAL header says of families and addresses is to be ignored, so TLVs cannot be
         * found.
         */
        h->local = true;
        if ((uint8_t)in.ptr[13] != FAMILY_UNSPEC)
            return (ptrdiff_t)total;
    } else {
        status = parse_v2_addresses(in, h, &offset);
        if (status != 0)
            return status;
    }
    status = parse_tlvs(in, offset, h);
    return status ? status : (ptrdiff_t)total;
}

/* 0: `in` begins with `expected`; SP_EAGAIN: as far as it goes; SP_EPROTO: it does not. */
static int begins_with(struct str in, struct str expected)
{
    size_t common = in.len < expected.len ? in.len : expected.len;

    if (common && memcmp(in.ptr, expected.ptr, common) != 0)
        return SP_EPROTO;
    return common == expected.len ? 0 : SP_EAGAIN;
}

ptrdiff_t io_proxy_header_parse(struct str in, struct io_proxy_header *out)
{
    struct io_proxy_header h = {0};
    struct str text_prefix = STR("PROXY ");
    bool binary = in.len && in.ptr[0] == '\r';
    ptrdiff_t length = begins_with(in, binary ? SIGNATURE : text_prefix);

    if (length == 0)
        length = binary ? parse_v2(in, &h) : parse_v1(in, text_prefix.len, &h);
    if (length > 0)
        *out = h;
    return length;
}

/* --- writing ----------------------------------------------------------------------- */

static bool is_inet(const struct addr *a)
{
    return a && (a->u.sa.sa_family == AF_INET || a->u.sa.sa_family == AF_INET6);
}

static bool both_ipv4(const struct addr *src, const struct addr *dst)
{
    return src->u.sa.sa_family == AF_INET && dst->u.sa.sa_family == AF_INET;
}

/* The 16 bytes of an IPv6 address; IPv4 ones are mapped (RFC 4291 section 2.5.5.2). */
static void ipv6_bytes(const struct addr *a, uint8_t out[16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

    if (a->u.sa.sa_family == AF_INET6) {
        memcpy(out, &a->u.in6.sin6_addr, 16);
        return;
    }
    memcpy(out, mapped, 12);
    memcpy(out + 12, &a->u.in.sin_addr, 4);
}

static void host_text(const struct addr *a, bool v4, char out[INET6_ADDRSTRLEN])
{
    uint8_t bytes[16];

    if (v4) {
        inet_ntop(AF_INET, &a->u.in.sin_addr, out, INET6_ADDRSTRLEN);
        return;
    }
    ipv6_bytes(a, bytes);
    inet_ntop(AF_INET6, bytes, out, INET6_ADDRSTRLEN);
}

ptrdiff_t io_proxy_header_v1(char *out, size_t room, const struct addr *src, const struct addr *dst)
{
    char line[IO_PROXY_V1_MAX + 1];
    char from[INET6_ADDRSTRLEN], to[INET6_ADDRSTRLEN];
    int n;

    if (is_inet(src) && is_inet(dst)) {
        bool v4 = both_ipv4(src, dst);

        host_text(src, v4, from);
        host_text(dst, v4, to);
        n = snprintf(line, sizeof(line), "PROXY TCP%c %s %s %u %u\r\n", v4 ? '4' : '6', from, to,
                     (unsigned)addr_port(src), (unsigned)addr_port(dst));
    } else {
        n = snprintf(line, sizeof(line), "PROXY UNKNOWN\r\n");
    }
    if (n < 0 || (size_t)n >= sizeof(line) || (size_t)n > room)
        return SP_ETOOBIG;
    memcpy(out, line, (size_t)n);
    return n;
}

/* Where the next bytes go; once something did not fit, nothing more is written. */
struct writer {
    uint8_t *out;
    size_t room;
    size_t len;
    bool full;
};

static void put(struct writer *w, const void *data, size_t len)
{
    if (w->full || len > w->room - w->len) {
        w->full = true;
        return;
    }
    if (len)
        memcpy(w->out + w->len, data, len);
    w->len += len;
}

static void put_u16(struct writer *w, unsigned value)
{
    uint8_t bytes[2] = {(uint8_t)(value >> 8), (uint8_t)value};

    put(w, bytes, sizeof(bytes));
}

static void put_u32(struct writer *w, uint32_t value)
{
    put_u16(w, value >> 16);
    put_u16(w, value & 0xffff);
}

static void put_u8(struct writer *w, unsigned value)
{
    uint8_t byte = (uint8_t)value;

    put(w, &byte, 1);
}

static void put_tlv(struct writer *w, unsigned type, struct str value)
{
    if (value.len == 0)
        return;
    if (value.len > UINT16_MAX) {
        w->full = true;
        return;
    }
    put_u8(w, type);
    put_u16(w, (unsigned)value.len);
    put(w, value.ptr, value.len);
}

static void put_tls(struct writer *w, const struct io_proxy_tlvs *t)
{
    bool seen_cert = t->tls && (t->tls_client_cert || t->tls_client_cert_sess);
    unsigned client = 0;
    size_t at = w->len;
    size_t value_len;

    if (t->tls)
        client |= IO_PROXY_CLIENT_TLS;
    if (seen_cert)
        client |= IO_PROXY_CLIENT_CERT_SESS;
    if (seen_cert && t->tls_client_cert)
        client |= IO_PROXY_CLIENT_CERT_CONN;
    put_u8(w, TLV_TLS);
    put_u16(w, 0);
    put_u8(w, client);
    put_u32(w, seen_cert ? t->tls_verify : 0);
    if (t->tls) {
        put_tlv(w, TLV_TLS_VERSION, t->tls_version);
        if (t->with_tls_cn)
            put_tlv(w, TLV_TLS_CN, t->tls_cn);
        put_tlv(w, TLV_TLS_KEY_ALG, t->tls_key_alg);
        put_tlv(w, TLV_TLS_SIG_ALG, t->tls_sig_alg);
        put_tlv(w, TLV_TLS_CIPHER, t->tls_cipher);
    }
    value_len = w->len - at - 3;
    if (value_len > UINT16_MAX)
        w->full = true;
    if (w->full)
        return;
    w->out[at + 1] = (uint8_t)(value_len >> 8);
    w->out[at + 2] = (uint8_t)value_len;
}

static void put_addresses(struct writer *w, const struct addr *src, const struct addr *dst)
{
    uint8_t bytes[16];

    if (both_ipv4(src, dst)) {
        put(w, &src->u.in.sin_addr, 4);
        put(w, &dst->u.in.sin_addr, 4);
    } else {
        ipv6_bytes(src, bytes);
        put(w, bytes, sizeof(bytes));
        ipv6_bytes(dst, bytes);
        put(w, bytes, sizeof(bytes));
    }
    put_u16(w, addr_port(src));
    put_u16(w, addr_port(dst));
}

static unsigned family_of(const struct addr *src, const struct addr *dst)
{
    return both_ipv4(src, dst) ? FAMILY_TCP4 : FAMILY_TCP6;
}

ptrdiff_t io_proxy_header_v2(uint8_t *out, size_t room, const struct addr *src,
                             const struct addr *dst, bool local, const struct io_proxy_tlvs *tlvs)
{
    struct writer w = {.out = out, .room = room};
    bool plain = local || !is_inet(src) || !is_inet(dst);
    size_t crc_at = 0;

    put(&w, SIGNATURE.ptr, SIGNATURE.len);
    put_u8(&w, VERSION_2 | (plain ? COMMAND_LOCAL : COMMAND_PROXY));
    put_u8(&w, plain ? FAMILY_UNSPEC : family_of(src, dst));
    put_u16(&w, 0);
    if (!plain)
        put_addresses(&w, src, dst);
    if (tlvs && tlvs->with_crc32c) {
        put_tlv(&w, TLV_CRC32C, STR("\0\0\0\0"));
        crc_at = w.len - 4;
    }
    if (tlvs) {
        put_tlv(&w, TLV_ALPN, tlvs->alpn);
        put_tlv(&w, TLV_AUTHORITY, tlvs->authority);
        put_tlv(&w, TLV_UNIQUE_ID, tlvs->unique_id);
        if (tlvs->with_tls)
            put_tls(&w, tlvs);
    }
    if (w.full || w.len - FIXED_BYTES > UINT16_MAX)
        return SP_ETOOBIG;
    out[14] = (uint8_t)((w.len - FIXED_BYTES) >> 8);
    out[15] = (uint8_t)(w.len - FIXED_BYTES);
    if (crc_at) {
        uint32_t crc = hash_crc32c(str_make((const char *)out, w.len));

        for (size_t i = 0; i < 4; i++)
            out[crc_at + i] = (uint8_t)(crc >> (24 - 8 * i));
    }
    return (ptrdiff_t)w.len;
}
