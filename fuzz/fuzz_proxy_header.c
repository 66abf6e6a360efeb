/*
 * PROXY protocol headers: nothing outside the input is read, a header that is accepted is accepted
 * only as a whole and whatever follows, its TLVs lie inside it, and its addresses survive being
 * written and parsed again in both versions.
 */
#include "io/proxy_header.h"
#include "fuzz_check.h"

static bool is_inside(struct str slice, struct str header)
{
    return !slice.ptr ||
           (slice.ptr >= header.ptr && slice.ptr + slice.len <= header.ptr + header.len);
}

static void check_slices(const struct io_proxy_header *h, struct str header)
{
    const struct str slices[] = {h->alpn,       h->authority,   h->unique_id,
                                 h->netns,      h->tls_version, h->tls_cn,
                                 h->tls_cipher, h->tls_sig_alg, h->tls_key_alg};

    for (size_t i = 0; i < sizeof(slices) / sizeof(slices[0]); i++)
        CHECK(is_inside(slices[i], header));
}

static void check_written(const struct io_proxy_header *h, const char *out, ptrdiff_t n)
{
    struct io_proxy_header again;

    CHECK(n > 0);
    CHECK(io_proxy_header_parse(str_make(out, (size_t)n - 1), &again) == SP_EAGAIN);
    CHECK(io_proxy_header_parse(str_make(out, (size_t)n), &again) == n);
    if (h->local || h->src.u.sa.sa_family == AF_UNIX) {
        CHECK(again.local);
        return;
    }
    CHECK(addr_equal(&again.src, &h->src) && addr_equal(&again.dst, &h->dst));
}

static void check_round_trips(const struct io_proxy_header *h)
{
    static uint8_t out[2 * IO_PROXY_HEADER_MAX];
    struct io_proxy_tlvs tlvs = {
        .alpn = h->alpn,
        .authority = h->authority,
        .unique_id = h->unique_id,
        .tls = h->tls_client & IO_PROXY_CLIENT_TLS,
        .tls_client_cert = h->tls_client & IO_PROXY_CLIENT_CERT_CONN,
        .tls_client_cert_sess = h->tls_client & IO_PROXY_CLIENT_CERT_SESS,
        .tls_verify = h->tls_verify,
        .tls_version = h->tls_version,
        .tls_cn = h->tls_cn,
        .tls_cipher = h->tls_cipher,
        .with_tls = h->has_tls,
        .with_tls_cn = true,
    };
    ptrdiff_t n;

    if (!h->local) {
        n = io_proxy_header_v1((char *)out, sizeof(out), &h->src, &h->dst);
        check_written(h, (const char *)out, n);
    }
    n = io_proxy_header_v2(out, sizeof(out), &h->src, &h->dst, h->local, &tlvs);
    check_written(h, (const char *)out, n);
    /* With a checksum it may exceed what is accepted by four bytes and three. */
    tlvs.with_crc32c = true;
    n = io_proxy_header_v2(out, sizeof(out), &h->src, &h->dst, h->local, &tlvs);
    if (n <= IO_PROXY_HEADER_MAX)
        check_written(h, (const char *)out, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str in = str_make((const char *)data, size);
    struct io_proxy_header h, other;
    ptrdiff_t n = io_proxy_header_parse(in, &h);

    CHECK(n == SP_EAGAIN || n == SP_EPROTO || (n > 0 && (size_t)n <= size));
    if (n <= 0)
        return 0;
    CHECK(n <= IO_PROXY_HEADER_MAX);
    for (ptrdiff_t cut = 0; cut < n; cut++)
        CHECK(io_proxy_header_parse(str_make(in.ptr, (size_t)cut), &other) == SP_EAGAIN);
    CHECK(io_proxy_header_parse(str_make(in.ptr, (size_t)n), &other) == n);
    check_slices(&h, str_make(in.ptr, (size_t)n));
    check_round_trips(&h);
    return 0;
}
