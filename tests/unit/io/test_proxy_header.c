/*
 * PROXY protocol headers: every split point, round trips, what must be refused.
 */
#include "io/proxy_header.h"

#include "base/hash.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"

static struct addr ipv4(const char *host, uint16_t port)
{
    struct addr a = {.len = sizeof(struct sockaddr_in)};

    a.u.in.sin_family = AF_INET;
    assert_int_equal(inet_pton(AF_INET, host, &a.u.in.sin_addr), 1);
    a.u.in.sin_port = htons(port);
    return a;
}

static struct addr ipv6(const char *host, uint16_t port)
{
    struct addr a = {.len = sizeof(struct sockaddr_in6)};

    a.u.in6.sin6_family = AF_INET6;
    assert_int_equal(inet_pton(AF_INET6, host, &a.u.in6.sin6_addr), 1);
    a.u.in6.sin6_port = htons(port);
    return a;
}

/*
 * Parses from an allocation of exactly the right size, so that reading on is found, and checks that
 * every prefix of something valid asks for more and that what follows changes nothing.
 */
static ptrdiff_t parse_exact(const char *data, size_t len, struct io_proxy_header *h)
{
    char *copy = malloc(len ? len : 1);
    ptrdiff_t result;

    assert_non_null(copy);
    memcpy(copy, data, len);
    result = io_proxy_header_parse(str_make(copy, len), h);
    /* Slices point into the copy, which goes: point them into `data`. */
    if (result > 0) {
        struct str *slices[] = {&h->alpn,       &h->authority,   &h->unique_id,
                                &h->netns,      &h->tls_version, &h->tls_cn,
                                &h->tls_cipher, &h->tls_sig_alg, &h->tls_key_alg};

        for (size_t i = 0; i < sizeof(slices) / sizeof(slices[0]); i++) {
            if (slices[i]->ptr)
                slices[i]->ptr = data + (slices[i]->ptr - copy);
        }
    }
    free(copy);
    return result;
}

static void parse_valid(const char *data, size_t len, struct io_proxy_header *h)
{
    struct io_proxy_header untouched, again;
    char longer[IO_PROXY_HEADER_MAX + 8];

    memset(&untouched, 0x5a, sizeof(untouched));
    for (size_t cut = 0; cut < len; cut++) {
        again = untouched;
        assert_int_equal(parse_exact(data, cut, &again), SP_EAGAIN);
        assert_memory_equal(&again, &untouched, sizeof(again));
    }
    memset(h, 0x5a, sizeof(*h));
    assert_int_equal(parse_exact(data, len, h), len);
    memcpy(longer, data, len);
    memcpy(longer + len, "GET / ", 6);
    assert_int_equal(parse_exact(longer, len + 6, &again), len);
}

/*
 * Refused with its last byte at the latest; what comes before may be refused early or waited for.
 */
static void refuse(const char *data, size_t len)
{
    struct io_proxy_header h;
    bool refused = false;

    for (size_t cut = 0; cut <= len; cut++) {
        ptrdiff_t result = parse_exact(data, cut, &h);

        assert_true(result == SP_EAGAIN || result == SP_EPROTO);
        assert_false(refused && result != SP_EPROTO);
        refused = result == SP_EPROTO;
    }
    assert_true(refused);
}

#define VALID(text, h) parse_valid((text), sizeof(text) - 1, (h))
#define REFUSED(text) refuse((text), sizeof(text) - 1)

/* --- version 1 -------------------------------------------------------------------- */

static void test_v1_tcp4(void **state)
{
    struct io_proxy_header h;
    struct addr src = ipv4("192.168.0.1", 56324), dst = ipv4("255.255.255.255", 443);

    VALID("PROXY TCP4 192.168.0.1 255.255.255.255 56324 443\r\n", &h);
    assert_false(h.local);
    assert_true(addr_equal(&h.src, &src));
    assert_true(addr_equal(&h.dst, &dst));
    assert_int_equal(h.src.len, sizeof(struct sockaddr_in));
    VALID("PROXY TCP4 0.0.0.0 0.0.0.0 0 65535\r\n", &h);
    assert_int_equal(addr_port(&h.dst), 65535);
}

static void test_v1_tcp6(void **state)
{
    struct io_proxy_header h;
    struct addr src = ipv6("2001:db8::1", 1), dst = ipv6("::ffff:10.0.0.1", 2);

    VALID("PROXY TCP6 2001:DB8::1 ::ffff:10.0.0.1 1 2\r\n", &h);
    assert_true(addr_equal(&h.src, &src));
    assert_true(addr_equal(&h.dst, &dst));
    VALID(
        "PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
        "65535 65535\r\n",
        &h);
}

static void test_v1_unknown(void **state)
{
    struct io_proxy_header h;

    VALID("PROXY UNKNOWN\r\n", &h);
    assert_true(h.local);
    assert_int_equal(h.src.len, 0);
    VALID("PROXY UNKNOWN whatever \t\0 1 2 3 4 5\r\n", &h);
    VALID(
        "PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
        "65535 65535\r\n",
        &h); /* 107 bytes */
    REFUSED("PROXY UNKNOWN fffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
            "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n");
}

static void test_v1_refused(void **state)
{
    REFUSED("GET / HTTP/1.1\r\n");
    REFUSED("proxy TCP4 1.2.3.4 1.2.3.4 1 2\r\n");
    REFUSED("PROXY  TCP4 1.2.3.4 1.2.3.4 1 2\r\n");
    REFUSED("PROXY TCP4\r\n");
    REFUSED("PROXY \r\n");
    REFUSED("PROXY TCP5 1.2.3.4 1.2.3.4 1 2\r\n");
    REFUSED("PROXY UNKNOWNS\r\n");
    REFUSED("PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n");
    REFUSED("PROXY TCP4 1.2.3.4 1.2.3.4 1 2 \r\n");
    REFUSED("PROXY TCP4 1.2.3.4 1.2.3.4 1 2 3\r\n");
    REFUSED("PROXY TCP4 1.2.3.4  1.2.3.4 1 2\r\n");
    REFUSED("PROXY TCP4 1.2.3.4\t1.2.3.4 1 2\r\n");
    REFUSED("PROXY TCP4 1.2.3 1.2.3.4 1 2\r\n");
    REFUSED("PROXY TCP4 1.2.3.4.5 1.2.3.4 1 2\r\n");
    REFUSED("PROXY TCP4 1.2.3. 1.2.3.4 1 2\r\n");
    REFUSED("PROXY TCP4 1.2..4 1.2.3.4 1 2\r\n");
    REFUSED("PROXY TCP4 01.2.3.4 1.2.3.4 1 2\r\n");
    REFUSED("PROXY TCP4 256.2.3.4 1.2.3.4 1 2\r\n");
    REFUSED("PROXY TCP4 +1.2.3.4 1.2.3.4 1 2\r\n");
    REFUSED("PROXY TCP4 0x1.2.3.4 1.2.3.4 1 2\r\n");
    REFUSED("PROXY TCP4 ::1 ::1 1 2\r\n");
    REFUSED("PROXY TCP6 1.2.3.4 1.2.3.4 1 2\r\n");
    REFUSED("PROXY TCP6 ::1 1.2.3.4 1 2\r\n");
    REFUSED("PROXY TCP6 ::1::2 ::1 1 2\r\n");
    REFUSED("PROXY TCP6 [::1] ::1 1 2\r\n");
    REFUSED("PROXY TCP6 fe80::1%lo ::1 1 2\r\n");
    REFUSED("PROXY TCP6 ::1\0 ::1 1 2\r\n");
    REFUSED("PROXY TCP6 00000000000000000000000000000000000000000000000 ::1 1 2\r\n");
    REFUSED("PROXY TCP4 1.2.3.4 1.2.3.4 65536 2\r\n");
    REFUSED("PROXY TCP4 1.2.3.4 1.2.3.4 1 99999999999\r\n");
    REFUSED("PROXY TCP4 1.2.3.4 1.2.3.4 01 2\r\n");
    REFUSED("PROXY TCP4 1.2.3.4 1.2.3.4 1 -2\r\n");
    REFUSED("PROXY TCP4 1.2.3.4 1.2.3.4 1 2\n");
    REFUSED("PROXY TCP4 1.2.3.4 1.2.3.4 1 2\rX");
    REFUSED("PROXY UNKNOWN\r \r\n");
    REFUSED("PROXY UNKNOWN\n");
}

static void test_v1_write(void **state)
{
    struct addr a = ipv4("192.168.0.1", 56324), b = ipv4("192.168.0.11", 443);
    struct addr c = ipv6("2001:db8::1", 1), d = ipv6("::1", 2);
    struct addr u = {.len = sizeof(struct sockaddr_un), .u.un.sun_family = AF_UNIX};
    char out[128];
    ptrdiff_t n;

    n = io_proxy_header_v1(out, sizeof(out), &a, &b);
    assert_int_equal(n, 47);
    assert_memory_equal(out, "PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n", 47);
    assert_int_equal(io_proxy_header_v1(out, 47, &a, &b), 47);
    assert_int_equal(io_proxy_header_v1(out, 46, &a, &b), SP_ETOOBIG);
    n = io_proxy_header_v1(out, sizeof(out), &c, &d);
    assert_int_equal(n, 32);
    assert_memory_equal(out, "PROXY TCP6 2001:db8::1 ::1 1 2\r\n", 32);
    n = io_proxy_header_v1(out, sizeof(out), &a, &d);
    assert_memory_equal(out, "PROXY TCP6 ::ffff:192.168.0.1 ::1 56324 2\r\n", (size_t)n);
    n = io_proxy_header_v1(out, sizeof(out), &u, &d);
    assert_memory_equal(out, "PROXY UNKNOWN\r\n", (size_t)n);
    n = io_proxy_header_v1(out, sizeof(out), NULL, NULL);
    assert_memory_equal(out, "PROXY UNKNOWN\r\n", (size_t)n);
}

static void test_v1_longest(void **state)
{
    struct addr a = ipv6("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 65535);
    struct io_proxy_header h;
    char out[128];
    ptrdiff_t n = io_proxy_header_v1(out, sizeof(out), &a, &a);

    assert_int_equal(n, 104);
    parse_valid(out, (size_t)n, &h);
    assert_true(addr_equal(&h.src, &a) && addr_equal(&h.dst, &a));
}

/* --- version 2 ------------------------------------------------------------------------ */

static void test_v2_addresses(void **state)
{
    struct io_proxy_header h;
    struct addr src = ipv4("1.2.3.4", 256), dst = ipv4("5.6.7.8", 1);
    struct addr src6 = ipv6("2001:db8::1", 80), dst6 = ipv6("::1", 443);
    char unix_header[16 + 216] = SIGNATURE "\x21\x31\x00\xd8/src";

    VALID(SIGNATURE "\x21\x11\x00\x0c\x01\x02\x03\x04\x05\x06\x07\x08\x01\x00\x00\x01", &h);
    assert_true(addr_equal(&h.src, &src) && addr_equal(&h.dst, &dst));
    assert_false(h.local || h.has_tls);
    assert_null(h.alpn.ptr);
    VALID(SIGNATURE "\x21\x21\x00\x24\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01"
                    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x00\x50\x01\xbb",
          &h);
    assert_true(addr_equal(&h.src, &src6) && addr_equal(&h.dst, &dst6));
    memset(unix_header + 16 + 108, 'x', 108);
    parse_valid(unix_header, sizeof(unix_header), &h);
    assert_int_equal(h.src.u.sa.sa_family, AF_UNIX);
    assert_string_equal(h.src.u.un.sun_path, "/src");
    assert_int_equal(h.dst.u.un.sun_path[107], 'x');
}

static void test_v2_local(void **state)
{
    struct io_proxy_header h;

    VALID(SIGNATURE "\x20\x00\x00\x00", &h);
    assert_true(h.local);
    VALID(SIGNATURE "\x20\x00\x00\x05\x01\x00\x02h2", &h);
    assert_true(str_eq(h.alpn, STR("h2")));
    /* Family and block of LOCAL are ignored, whatever they are. */
    VALID(SIGNATURE "\x20\x11\x00\x03\x01\x02\x03", &h);
    assert_true(h.local);
    VALID(SIGNATURE "\x20\xff\x00\x01\x01", &h);
    assert_true(h.local);
    /* UNSPEC and datagrams: the socket's own addresses. */
    VALID(SIGNATURE "\x21\x00\x00\x05\x01\x00\x02h2", &h);
    assert_true(h.local);
    assert_true(str_eq(h.alpn, STR("h2")));
    VALID(SIGNATURE
          "\x21\x12\x00\x11\x01\x02\x03\x04\x05\x06\x07\x08\x01\x00\x00\x01\x01\x00\x02h2",
          &h);
    assert_true(h.local);
    assert_int_equal(h.src.len, 0);
    assert_true(str_eq(h.alpn, STR("h2")));
}

static void test_v2_tlvs(void **state)
{
    struct io_proxy_header h;

    VALID(SIGNATURE "\x21\x11\x00\x4e\x01\x02\x03\x04\x05\x06\x07\x08\x01\x00\x00\x01"
                    "\x04\x00\x00"
                    "\x04\x00\x02zz"
                    "\xea\x00\x01z"
                    "\x01\x00\x02h2"
                    "\x01\x00\x02h3"
                    "\x02\x00\x04host"
                    "\x05\x00\x02id"
                    "\x30\x00\x02ns"
                    "\x20\x00\x12\x07\x00\x00\x00\x2a\x21\x00\x03TLS\x22\x00\x01"
                    "c\x23\x00\x00"
                    "\x04\x00\x00\x04\x00\x00",
          &h);
    assert_true(str_eq(h.alpn, STR("h2"))); /* the first */
    assert_true(str_eq(h.authority, STR("host")));
    assert_true(str_eq(h.unique_id, STR("id")));
    assert_true(str_eq(h.netns, STR("ns")));
    assert_true(h.has_tls);
    assert_int_equal(h.tls_client, 7);
    assert_int_equal(h.tls_verify, 42);
    assert_true(str_eq(h.tls_version, STR("TLS")));
    assert_true(str_eq(h.tls_cn, STR("c")));
    assert_int_equal(h.tls_cipher.len, 0);
}

static void test_v2_refused(void **state)
{
    char big[IO_PROXY_HEADER_MAX + 1] = SIGNATURE "\x20\x00\x0f\xf1";
    char id[16 + 3 + 129] = SIGNATURE "\x20\x00\x00\x84\x05\x00\x81";

    REFUSED("\r\n\r\n\0\r\nQUIT\r");
    REFUSED("\r\nGET");
    REFUSED(SIGNATURE "\x11");
    REFUSED(SIGNATURE "\x31");
    REFUSED(SIGNATURE "\x22");
    REFUSED(SIGNATURE "\x21\x41\x00\x00");
    REFUSED(SIGNATURE "\x21\x13\x00\x0c\x01\x02\x03\x04\x05\x06\x07\x08\x01\x00\x00\x01");
    REFUSED(SIGNATURE "\x21\x11\x00\x0b\x01\x02\x03\x04\x05\x06\x07\x08\x01\x00\x00");
    REFUSED(SIGNATURE "\x21\x21\x00\x0c\x01\x02\x03\x04\x05\x06\x07\x08\x01\x00\x00\x01");
    REFUSED(SIGNATURE "\x21\x31\x00\x0c\x01\x02\x03\x04\x05\x06\x07\x08\x01\x00\x00\x01");
    /* TLVs that do not fit. */
    REFUSED(SIGNATURE "\x20\x00\x00\x01\x04");
    REFUSED(SIGNATURE "\x20\x00\x00\x02\x04\x00");
    REFUSED(SIGNATURE "\x20\x00\x00\x03\x04\x00\x01");
    REFUSED(SIGNATURE "\x20\x00\x00\x04\x04\xff\xff"
                      "a");
    REFUSED(SIGNATURE "\x20\x00\x00\x07\x20\x00\x04\x01\x00\x00\x00");
    REFUSED(SIGNATURE "\x20\x00\x00\x0a\x20\x00\x07\x01\x00\x00\x00\x00\x21\x00");
    REFUSED(SIGNATURE "\x20\x00\x00\x0b\x20\x00\x08\x01\x00\x00\x00\x00\x21\x00\x01");
    /* Checksums of the wrong size and value. */
    REFUSED(SIGNATURE "\x20\x00\x00\x06\x03\x00\x03\x00\x00\x00");
    REFUSED(SIGNATURE "\x20\x00\x00\x07\x03\x00\x04\x00\x00\x00\x00");
    refuse(big, sizeof(big));
    refuse(id, sizeof(id));
}

static void test_v2_longest(void **state)
{
    static char big[IO_PROXY_HEADER_MAX] = SIGNATURE "\x20\x00\x0f\xf0\x04\x0f\xed";
    struct io_proxy_header h;

    assert_int_equal(parse_exact(big, sizeof(big), &h), sizeof(big));
    assert_int_equal(parse_exact(big, sizeof(big) - 1, &h), SP_EAGAIN);
}

static const struct io_proxy_tlvs everything = {
    .alpn = {"h2", 2},
    .authority = {"example.com", 11},
    .unique_id = {"0A0B0C-17", 9},
    .tls = true,
    .tls_client_cert = true,
    .tls_verify = 18,
    .tls_version = {"TLSv1.3", 7},
    .tls_cn = {"client", 6},
    .tls_cipher = {"TLS_AES_128_GCM_SHA256", 22},
    .tls_sig_alg = {"SHA256", 6},
    .tls_key_alg = {"RSA2048", 7},
    .with_tls = true,
    .with_tls_cn = true,
    .with_crc32c = true,
};

static void check_everything(const struct io_proxy_header *h)
{
    assert_true(str_eq(h->alpn, everything.alpn));
    assert_true(str_eq(h->authority, everything.authority));
    assert_true(str_eq(h->unique_id, everything.unique_id));
    assert_true(h->has_tls);
    assert_int_equal(h->tls_client,
                     IO_PROXY_CLIENT_TLS | IO_PROXY_CLIENT_CERT_CONN | IO_PROXY_CLIENT_CERT_SESS);
    assert_int_equal(h->tls_verify, 18);
    assert_true(str_eq(h->tls_version, everything.tls_version));
    assert_true(str_eq(h->tls_cn, everything.tls_cn));
    assert_true(str_eq(h->tls_cipher, everything.tls_cipher));
    assert_true(str_eq(h->tls_sig_alg, everything.tls_sig_alg));
    assert_true(str_eq(h->tls_key_alg, everything.tls_key_alg));
}

static void test_v2_round_trips(void **state)
{
    struct addr a = ipv4("10.1.2.3", 12345), b = ipv4("10.9.8.7", 443);
    struct addr c = ipv6("2001:db8::1", 1), mapped = ipv6("::ffff:10.1.2.3", 12345);
    struct addr u = {.len = sizeof(struct sockaddr_un), .u.un.sun_family = AF_UNIX};
    struct io_proxy_header h;
    uint8_t out[512];
    ptrdiff_t n;

    n = io_proxy_header_v2(out, sizeof(out), &a, &b, false, &everything);
    parse_valid((char *)out, (size_t)n, &h);
    assert_true(addr_equal(&h.src, &a) && addr_equal(&h.dst, &b) && !h.local);
    check_everything(&h);

    /*
     * Any flipped bit is noticed by the checksum or the framing, unless it hides the checksum: in
     * the command (byte 12) or in the type of its TLV (byte 28).
     */
    for (ptrdiff_t i = 0; i < n * 8; i++) {
        if (i / 8 == 12 || i / 8 == 28)
            continue;
        out[i / 8] ^= (uint8_t)(1 << i % 8);
        assert_true(io_proxy_header_parse(str_make((char *)out, (size_t)n), &h) != n);
        out[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    for (size_t room = 0; room < (size_t)n; room++)
        assert_int_equal(io_proxy_header_v2(out, room, &a, &b, false, &everything), SP_ETOOBIG);

    n = io_proxy_header_v2(out, sizeof(out), &a, &c, false, NULL);
    assert_int_equal(n, 52);
    parse_valid((char *)out, (size_t)n, &h);
    assert_true(addr_equal(&h.dst, &c));
    assert_memory_equal(&h.src.u.in6.sin6_addr, &mapped.u.in6.sin6_addr, 16);

    n = io_proxy_header_v2(out, sizeof(out), &a, &b, true, &everything);
    parse_valid((char *)out, (size_t)n, &h);
    assert_true(h.local);
    check_everything(&h);

    n = io_proxy_header_v2(out, sizeof(out), &u, &b, false, NULL);
    assert_int_equal(n, 16);
    assert_memory_equal(out, SIGNATURE "\x20\x00\x00\x00", 16);
    assert_int_equal(io_proxy_header_v2(out, sizeof(out), NULL, NULL, false, NULL), 16);
}

static void test_v2_tls_without_tls(void **state)
{
    struct io_proxy_tlvs t = everything;
    struct io_proxy_header h;
    uint8_t out[512];
    ptrdiff_t n;

    /* The TLV is there, but says that there was none. */
    t.tls = false;
    n = io_proxy_header_v2(out, sizeof(out), NULL, NULL, true, &t);
    parse_valid((char *)out, (size_t)n, &h);
    assert_true(h.has_tls);
    assert_int_equal(h.tls_client, 0);
    assert_int_equal(h.tls_version.len, 0);

    t = everything;
    t.tls_client_cert = false;
    t.with_tls_cn = false;
    t.with_crc32c = false;
    n = io_proxy_header_v2(out, sizeof(out), NULL, NULL, true, &t);
    parse_valid((char *)out, (size_t)n, &h);
    assert_int_equal(h.tls_client, IO_PROXY_CLIENT_TLS);
    assert_int_equal(h.tls_verify, 0);
    assert_int_equal(h.tls_cn.len, 0);

    t.tls_client_cert_sess = true;
    n = io_proxy_header_v2(out, sizeof(out), NULL, NULL, true, &t);
    parse_valid((char *)out, (size_t)n, &h);
    assert_int_equal(h.tls_client, IO_PROXY_CLIENT_TLS | IO_PROXY_CLIENT_CERT_SESS);

    t.with_tls = false;
    n = io_proxy_header_v2(out, sizeof(out), NULL, NULL, true, &t);
    parse_valid((char *)out, (size_t)n, &h);
    assert_false(h.has_tls);
}

static void test_v2_too_big(void **state)
{
    static char value[70000];
    static uint8_t out[80000];
    struct io_proxy_tlvs t = {.authority = {value, 65535}};

    assert_int_equal(io_proxy_header_v2(out, sizeof(out), NULL, NULL, true, &t), SP_ETOOBIG);
    t.authority.len = 65532;
    assert_int_equal(io_proxy_header_v2(out, sizeof(out), NULL, NULL, true, &t), 65551);
    t.authority.len = 65536;
    assert_int_equal(io_proxy_header_v2(out, sizeof(out), NULL, NULL, true, &t), SP_ETOOBIG);
    t.authority.len = 0;
    t.tls_cipher = str_make(value, 65530);
    t.with_tls = t.tls = true;
    assert_int_equal(io_proxy_header_v2(out, sizeof(out), NULL, NULL, true, &t), SP_ETOOBIG);
}

static void test_noise(void **state)
{
    struct hash_rng rng = {{42, 4711}};
    uint8_t out[512];
    struct io_proxy_header h;
    struct addr a = ipv4("10.1.2.3", 12345);
    struct io_proxy_tlvs t = everything;
    ptrdiff_t n;

    t.with_crc32c = false;
    n = io_proxy_header_v2(out, sizeof(out), &a, &a, false, &t);
    for (unsigned i = 0; i < 200000; i++) {
        size_t at = 12 + hash_rng_next(&rng) % ((size_t)n - 12);
        uint8_t old = out[at];
        ptrdiff_t result;

        out[at] = (uint8_t)hash_rng_next(&rng);
        result = parse_exact((char *)out, (size_t)n, &h);
        assert_true(result == SP_EAGAIN || result == SP_EPROTO || (result > 0 && result <= n));
        out[at] = old;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_v1_tcp4),
        cmocka_unit_test(test_v1_tcp6),
        cmocka_unit_test(test_v1_unknown),
        cmocka_unit_test(test_v1_refused),
        cmocka_unit_test(test_v1_write),
        cmocka_unit_test(test_v1_longest),
        cmocka_unit_test(test_v2_addresses),
        cmocka_unit_test(test_v2_local),
        cmocka_unit_test(test_v2_tlvs),
        cmocka_unit_test(test_v2_refused),
        cmocka_unit_test(test_v2_longest),
        cmocka_unit_test(test_v2_round_trips),
        cmocka_unit_test(test_v2_tls_without_tls),
        cmocka_unit_test(test_v2_too_big),
        cmocka_unit_test(test_noise),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
