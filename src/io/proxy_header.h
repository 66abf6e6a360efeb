/*
 * PROXY protocol versions 1 and 2, both ways (haproxy.org, proxy-protocol.txt).
 */
#ifndef SP_IO_PROXY_HEADER_H
#define SP_IO_PROXY_HEADER_H

#include "base/addr.h"
#include "base/status.h"

/* Bits of tls_client. */
enum {
    IO_PROXY_CLIENT_TLS = 1,
    IO_PROXY_CLIENT_CERT_CONN = 2, /* a client certificate on this connection */
    IO_PROXY_CLIENT_CERT_SESS = 4, /* at least once in its TLS session */
};

struct io_proxy_header {
    bool
        local; /* LOCAL command, UNKNOWN or a family without streams: keep the socket's addresses */
    struct addr src, dst; /* zero when local */
    /* TLVs, slices of the input; empty when absent. The first of several is taken. */
    struct str alpn, authority, unique_id, netns;
    bool has_tls;       /* PP2_TYPE_SSL */
    uint8_t tls_client; /* its client bit field */
    uint32_t tls_verify;
    struct str tls_version, tls_cn, tls_cipher, tls_sig_alg, tls_key_alg;
};

#define IO_PROXY_HEADER_MAX 4096 /* longer v2 headers are refused */
#define IO_PROXY_V1_MAX 107      /* with its CRLF */

/*
 * Parses a header at the start of `in`: its length in bytes (> 0); SP_EAGAIN when more bytes are
 * needed; SP_EPROTO when it is not one, malformed or too long. CRC32c TLVs are verified.
 */
ptrdiff_t io_proxy_header_parse(struct str in, struct io_proxy_header *out);

/* What a sent header carries besides the addresses (version 2 only). Empty texts are left out. */
struct io_proxy_tlvs {
    struct str alpn, authority, unique_id;
    bool tls; /* the client's connection uses TLS */
    bool tls_client_cert, tls_client_cert_sess;
    uint32_t tls_verify; /* 0 verified */
    struct str tls_version, tls_cn, tls_cipher, tls_sig_alg, tls_key_alg;
    bool with_tls, with_tls_cn, with_crc32c;
};

/*
 * Writes a header; its length, or SP_ETOOBIG. As HAProxy does, an IPv4 address beside an IPv6 one
 * is sent as a mapped one, and other families or an address that is NULL become UNKNOWN / LOCAL.
 * `with_tls` adds the TLS TLV with what is known, the certificate's common name only `with_tls_cn`.
 * `tlvs` may be NULL.
 */
ptrdiff_t io_proxy_header_v1(char *out, size_t room, const struct addr *src,
                             const struct addr *dst);
ptrdiff_t io_proxy_header_v2(uint8_t *out, size_t room, const struct addr *src,
                             const struct addr *dst, bool local, const struct io_proxy_tlvs *tlvs);

#endif
