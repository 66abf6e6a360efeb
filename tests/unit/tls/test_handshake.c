#include "support.h"

#include "base/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

static struct t_world world;
static struct t_id ca, other_ca, client, expired, revoked, foreign;

static int begin(void **state)
{
    t_world_init(&world);
    return 0;
}

static int end(void **state)
{
    t_world_release(&world);
    return 0;
}

static int setup(void **state)
{
    char *pem;

    ca = t_id_make(&(struct t_spec){.cn = "Test CA", .org = "Tests", .is_ca = true});
    other_ca = t_id_make(&(struct t_spec){.cn = "Other CA", .is_ca = true});
    client = t_id_make(&(struct t_spec){.cn = "client", .issuer = &ca, .serial = 2});
    expired = t_id_make(&(struct t_spec){
        .cn = "expired", .issuer = &ca, .serial = 3, .from_s = -7200, .to_s = -60});
    revoked = t_id_make(&(struct t_spec){.cn = "revoked", .issuer = &ca, .serial = 4});
    foreign = t_id_make(&(struct t_spec){.cn = "foreign", .issuer = &other_ca, .serial = 5});
    t_write("ca.pem", pem = t_pem_cert(&ca));
    free(pem);
    t_write("other-ca.pem", pem = t_pem_cert(&other_ca));
    free(pem);
    t_write_bundle("client.pem", &client, NULL);
    t_write_bundle("expired.pem", &expired, NULL);
    t_write_bundle("revoked.pem", &revoked, NULL);
    t_write_bundle("foreign.pem", &foreign, NULL);
    t_write_crl("crl.pem", &ca, 4, 3600);
    t_write_crl("old-crl.pem", &ca, 0, -60);

    struct t_id www =
        t_id_make(&(struct t_spec){.cn = "www.example.com",
                                   .issuer = &ca,
                                   .names = "DNS:www.example.com,DNS:*.w.example.com"});
    struct t_id rsa =
        t_id_make(&(struct t_spec){.cn = "both.example.com", .key = "RSA", .issuer = &ca});
    struct t_id ec = t_id_make(&(struct t_spec){.cn = "both.example.com", .issuer = &ca});

    t_write_bundle("www.pem", &www, &ca);
    t_write_bundle("both.pem.rsa", &rsa, &ca);
    t_write_bundle("both.pem.ecdsa", &ec, &ca);
    t_id_free(&www);
    t_id_free(&rsa);
    t_id_free(&ec);
    return 0;
}

static int teardown(void **state)
{
    struct t_id *all[] = {&ca, &other_ca, &client, &expired, &revoked, &foreign};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        t_id_free(all[i]);
    t_folder_remove();
    return 0;
}

/* One handshake with everything that varies. */
struct run {
    struct tls_server_params server;
    struct tls_client_params client;
    const char *sni, *alpn;
    struct t_pair pair;
    struct tls_server_ctx *server_ctx;
    struct tls_client_ctx *client_ctx;
};

static struct tls_cert_source one_source;

static struct run run_new(void)
{
    return (struct run){.server = t_server_params(&one_source, t_path("www.pem")),
                        .sni = "www.example.com"};
}

static void run(struct run *r)
{
    r->server_ctx = t_server(&world, &r->server);
    r->client_ctx = t_client(&world, &r->client);
    t_pair_open(&r->pair, &world, r->server_ctx, r->client_ctx, r->sni, r->alpn, NULL);
    t_pair_handshake(&r->pair);
}

static void run_end(struct run *r)
{
    t_pair_close(&r->pair);
    tls_server_ctx_free(r->server_ctx);
    tls_client_ctx_free(r->client_ctx);
}

static void expect_success(struct run *r)
{
    if (r->pair.server_status || r->pair.client_status)
        print_error("server %d %s, client %d %s\n", r->pair.server_status,
                    tls_conn_error_text(r->pair.server), r->pair.client_status,
                    tls_conn_error_text(r->pair.client));
    assert_int_equal(r->pair.server_status, 0);
    assert_int_equal(r->pair.client_status, 0);
    t_pair_talk(&r->pair);
}

static void versions(void **state)
{
    static const struct {
        enum tls_version version;
        const char *name;
    } cases[] = {{TLS_VERSION_12, "TLSv1.2"},
                 {TLS_VERSION_13, "TLSv1.3"},
                 {TLS_VERSION_11, "TLSv1.1"},
                 {TLS_VERSION_10, "TLSv1"}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct run r = run_new();

        r.server.min_version = r.server.max_version = cases[i].version;
        r.client.min_version = TLS_VERSION_10;
        if (cases[i].version < TLS_VERSION_12)
            r.server.ciphers = r.client.ciphers = "ALL:@SECLEVEL=0";
        run(&r);
        expect_success(&r);
        assert_string_equal(t_fact(r.pair.server, TLS_FACT_VERSION), cases[i].name);
        assert_string_equal(t_fact(r.pair.server, TLS_FACT_SNI), "www.example.com");
        assert_int_equal(tls_conn_failure(r.pair.server), TLS_FAILURE_NONE);
        assert_string_equal(tls_conn_error_text(r.pair.server), "");
        run_end(&r);
    }
}

static void no_common_version(void **state)
{
    struct run r = run_new();

    r.server.min_version = TLS_VERSION_13;
    r.client.max_version = TLS_VERSION_12;
    run(&r);
    assert_int_equal(r.pair.server_status, SP_EPROTO);
    assert_string_equal(tls_conn_error_text(r.pair.server), "unsupported protocol");
    assert_int_equal(r.pair.client_status, SP_EPROTO);
    assert_string_equal(tls_conn_error_text(r.pair.client), "tlsv1 alert protocol version");
    assert_int_equal(tls_conn_failure(r.pair.client), TLS_FAILURE_PROTOCOL);
    run_end(&r);
}

static void no_shared_cipher(void **state)
{
    struct run r = run_new();
    struct tls_counters counters;

    r.server.max_version = r.client.max_version = TLS_VERSION_12;
    r.client.ciphers = "ECDHE-RSA-AES128-GCM-SHA256";
    run(&r);
    assert_int_equal(r.pair.server_status, SP_EPROTO);
    assert_string_equal(tls_conn_error_text(r.pair.server), "no shared cipher");
    assert_int_equal(tls_conn_number(r.pair.server, TLS_NUMBER_ERROR) & 0x7fffff, 193);
    assert_string_equal(t_fact(r.pair.server, TLS_FACT_SNI), "www.example.com");
    assert_string_equal(t_fact(r.pair.server, TLS_FACT_CIPHER), "-");
    assert_string_equal(tls_conn_error_text(r.pair.client), "sslv3 alert handshake failure");
    tls_worker_counters(world.worker, &counters);
    assert_int_equal(counters.failed_handshakes, 2);
    run_end(&r);
}

static void alpn(void **state)
{
    static const struct {
        const char *server, *client, *result;
    } cases[] = {
        {"h2,http/1.1", "http/1.1,h2", "h2"},
        {"http/1.1", "h2,http/1.1", "http/1.1"},
        {"h2", "http/1.1", "-"},
        {NULL, "h2", "-"},
        {"h2", NULL, "-"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct run r = run_new();

        r.server.alpn = cases[i].server;
        r.alpn = cases[i].client;
        run(&r);
        expect_success(&r);
        assert_string_equal(t_fact(r.pair.server, TLS_FACT_ALPN), cases[i].result);
        assert_string_equal(t_fact(r.pair.client, TLS_FACT_ALPN), cases[i].result);
        run_end(&r);
    }
}

/* Which certificate, with two of one name and another one: by name and by what the client can. */
static void certificate_choice(void **state)
{
    static const struct {
        const char *sni, *ciphers, *sigalgs, *own_cn, *algorithm;
        enum tls_version version;
    } cases[] = {
        {"both.example.com", NULL, NULL, "both.example.com", "id-ecPublicKey", TLS_VERSION_13},
        {"both.example.com", NULL, "RSA-PSS+SHA256:ECDSA+SHA384", "both.example.com",
         "rsaEncryption", TLS_VERSION_13},
        {"both.example.com", NULL, NULL, "both.example.com", "id-ecPublicKey", TLS_VERSION_12},
        {"both.example.com", "ECDHE-RSA-AES128-GCM-SHA256", NULL, "both.example.com",
         "rsaEncryption", TLS_VERSION_12},
        {"both.example.com", "AES128-GCM-SHA256", NULL, "both.example.com", "rsaEncryption",
         TLS_VERSION_12},
        {"x.w.example.com", NULL, NULL, "www.example.com", "id-ecPublicKey", TLS_VERSION_13},
        {"unknown.com", NULL, NULL, "www.example.com", "id-ecPublicKey", TLS_VERSION_12},
        {NULL, NULL, NULL, "www.example.com", "id-ecPublicKey", TLS_VERSION_13},
    };
    struct tls_cert_source sources[] = {{.path = "www.pem"}, {.path = "both.pem"}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct run r = run_new();
        char subject[64];

        r.server.sources = sources;
        r.server.source_count = 2;
        r.server.crt_base = t_folder();
        r.sni = cases[i].sni;
        r.client.ciphers = cases[i].ciphers;
        r.client.sigalgs = cases[i].sigalgs;
        r.client.min_version = r.client.max_version = cases[i].version;
        r.client.verify = TLS_VERIFY_NONE;
        /* P-384 signatures do not go with a P-256 key in TLS 1.3. */
        run(&r);
        if (i == 1 && r.pair.server_status) {
            run_end(&r);
            continue;
        }
        expect_success(&r);
        snprintf(subject, sizeof(subject), "/CN=%s", cases[i].own_cn);
        assert_string_equal(t_fact(r.pair.server, TLS_FACT_OWN_SUBJECT), subject);
        assert_string_equal(t_fact(r.pair.client, TLS_FACT_PEER_SUBJECT), subject);
        assert_string_equal(t_fact(r.pair.server, TLS_FACT_OWN_KEY_ALG), cases[i].algorithm);
        assert_string_equal(t_fact(r.pair.client, TLS_FACT_PEER_KEY_ALG), cases[i].algorithm);
        run_end(&r);
    }
}

static void strict_sni(void **state)
{
    const char *const names[] = {"unknown.com", NULL};

    for (int i = 0; i < 2; i++) {
        struct run r = run_new();

        r.server.strict_sni = true;
        r.sni = names[i];
        run(&r);
        assert_int_equal(r.pair.server_status, SP_EPROTO);
        assert_string_equal(tls_conn_error_text(r.pair.server),
                            i ? "no server name sent" : "no certificate for this server name");
        assert_string_equal(t_fact(r.pair.server, TLS_FACT_SNI), i ? "-" : "unknown.com");
        assert_int_equal(r.pair.client_status, SP_EPROTO);
        assert_string_equal(tls_conn_error_text(r.pair.client), "tlsv1 unrecognized name");
        run_end(&r);
    }
    struct run r = run_new();

    r.server.strict_sni = true;
    run(&r);
    expect_success(&r);
    run_end(&r);
}

/* crt-list brackets take the place of the bind line's settings for their certificate alone. */
static void list_options(void **state)
{
    static const struct {
        const char *sni, *alpn, *version;
        enum tls_version client_max;
        int status;
    } cases[] = {
        {"www.example.com", "http/1.1", "TLSv1.3", TLS_VERSION_13, 0},
        {"h2.example.com", "h2", "TLSv1.2", TLS_VERSION_13, 0},
        {"new.example.com", "http/1.1", "TLSv1.3", TLS_VERSION_13, 0},
        {"new.example.com", "-", "-", TLS_VERSION_12, SP_EPROTO},
        {"plain.example.com", "-", "TLSv1.3", TLS_VERSION_13, 0},
        {"mutual.example.com", "-", "-", TLS_VERSION_12, SP_EPROTO},
    };
    struct tls_cert_source source = {.path = t_path("opt.list"), .is_crt_list = true};

    t_writef(
        "opt.list",
        "www.pem www.example.com\n"
        "www.pem [alpn h2 ssl-max-ver TLSv1.2 ciphers ECDHE-ECDSA-AES256-GCM-SHA384] h2.example.com\n"
        "www.pem [ssl-min-ver TLSv1.3 curves P-384] new.example.com\n"
        "both.pem [no-alpn] plain.example.com\n"
        "www.pem [verify required ca-file %s] mutual.example.com\n",
        t_path("ca.pem"));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct run r = run_new();

        r.server.sources = &source;
        r.server.crt_base = t_folder();
        r.server.alpn = "http/1.1";
        r.client.max_version = cases[i].client_max;
        r.sni = cases[i].sni;
        r.alpn = "h2,http/1.1";
        run(&r);
        assert_int_equal(r.pair.server_status, cases[i].status);
        if (cases[i].status == 0) {
            expect_success(&r);
            assert_string_equal(t_fact(r.pair.server, TLS_FACT_ALPN), cases[i].alpn);
            assert_string_equal(t_fact(r.pair.server, TLS_FACT_VERSION), cases[i].version);
            assert_string_equal(t_fact(r.pair.server, TLS_FACT_CURVE),
                                i == 2 ? "secp384r1" : "x25519");
        }
        run_end(&r);
    }
}

/* A list of one line: its settings hold for everybody. */
static void list_of_one(void **state)
{
    struct tls_cert_source source = {.path = t_path("one.list"), .is_crt_list = true};
    struct run r = run_new();

    t_write("one.list", "www.pem [alpn h2 ssl-max-ver TLSv1.2] some.example.com\n");
    r.server.sources = &source;
    r.server.crt_base = t_folder();
    r.alpn = "h2";
    run(&r);
    expect_success(&r);
    assert_string_equal(t_fact(r.pair.server, TLS_FACT_ALPN), "h2");
    assert_string_equal(t_fact(r.pair.server, TLS_FACT_VERSION), "TLSv1.2");
    assert_string_equal(t_fact(r.pair.server, TLS_FACT_OWN_SUBJECT), "/CN=www.example.com");
    run_end(&r);
}

/* First flights with bytes changed: refused or answered, never worse. */
static void mutated_hello(void **state)
{
    struct tls_cert_source sources[] = {{.path = "www.pem"}, {.path = "both.pem"}};
    struct run r = run_new();
    char hello[2048], copy[2048];
    ssize_t len;

    r.server.sources = sources;
    r.server.source_count = 2;
    r.server.crt_base = t_folder();
    r.server.alpn = "h2";
    r.alpn = "h2,http/1.1";
    r.server_ctx = t_server(&world, &r.server);
    r.client_ctx = t_client(&world, &r.client);
    t_pair_open(&r.pair, &world, r.server_ctx, r.client_ctx, r.sni, r.alpn, NULL);
    assert_int_equal(tls_conn_handshake(r.pair.client), SP_EWANTREAD);
    len = read(r.pair.server_sock.sock.watch.fd, hello, sizeof(hello));
    assert_true(len > 100);
    for (unsigned i = 0; i < 2000; i++) {
        struct t_sock sock, other;
        struct tls_conn *c;
        int status;

        memcpy(copy, hello, (size_t)len);
        for (unsigned k = 0; k <= i % 3; k++) {
            unsigned mix = (i + 1) * 2654435761u + k * 40503u;

            copy[mix % (unsigned)len] = (char)(mix >> 17);
        }
        t_sock_pair(&sock, &other);
        c = tls_conn_new_server(world.worker, r.server_ctx, &sock.sock);
        assert_int_equal(tls_conn_feed(c, str_make(copy, (size_t)len)), 0);
        status = tls_conn_handshake(c);
        assert_true(status == SP_EWANTREAD || status == SP_EPROTO);
        tls_conn_free(c);
        t_sock_close(&sock);
        t_sock_close(&other);
    }
    run_end(&r);
}

static void client_certificates(void **state)
{
    static const struct {
        enum tls_verify verify;
        const char *cert, *ignore, *crl;
        const char *error; /* of the server; NULL: success */
        int code;          /* ssl_c_verify */
        enum tls_failure failure;
    } cases[] = {
        {TLS_VERIFY_OPTIONAL, NULL, NULL, NULL, NULL, 0, 0},
        {TLS_VERIFY_OPTIONAL, "client.pem", NULL, NULL, NULL, 0, 0},
        {TLS_VERIFY_REQUIRED, "client.pem", NULL, "crl.pem", NULL, 0, 0},
        {TLS_VERIFY_REQUIRED, NULL, NULL, NULL, "peer did not return a certificate", 0,
         TLS_FAILURE_PROTOCOL},
        {TLS_VERIFY_OPTIONAL, "expired.pem", NULL, NULL, "certificate verify failed", 10,
         TLS_FAILURE_PEER_CERT},
        {TLS_VERIFY_OPTIONAL, "expired.pem", "X509_V_ERR_CERT_HAS_EXPIRED", NULL, NULL, 10, 0},
        {TLS_VERIFY_REQUIRED, "revoked.pem", NULL, "crl.pem", "certificate verify failed", 23,
         TLS_FAILURE_PEER_CERT},
        {TLS_VERIFY_REQUIRED, "revoked.pem", "23", "crl.pem", NULL, 23, 0},
        {TLS_VERIFY_REQUIRED, "client.pem", NULL, "old-crl.pem", "certificate verify failed", 12,
         TLS_FAILURE_PEER_CERT},
        {TLS_VERIFY_REQUIRED, "foreign.pem", NULL, NULL, "certificate verify failed", 20,
         TLS_FAILURE_PEER_CERT},
        {TLS_VERIFY_REQUIRED, "foreign.pem", "all", NULL, NULL, 21, 0},
    };

    for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
        struct run r = run_new();
        size_t k = i / 2;
        bool resumed_version = i % 2;

        r.server.verify = cases[k].verify;
        r.server.ca_base = t_folder();
        r.server.ca_file = "ca.pem";
        r.server.crl_file = cases[k].crl;
        r.server.crt_ignore_err = cases[k].ignore;
        r.client.crt_base = t_folder();
        r.client.crt = cases[k].cert;
        r.client.max_version = resumed_version ? TLS_VERSION_13 : TLS_VERSION_12;
        run(&r);
        assert_int_equal(r.pair.server_status, cases[k].error ? SP_EPROTO : 0);
        if (cases[k].error)
            assert_string_equal(tls_conn_error_text(r.pair.server), cases[k].error);
        else
            expect_success(&r);
        assert_int_equal(tls_conn_failure(r.pair.server), cases[k].failure);
        assert_int_equal(tls_conn_number(r.pair.server, TLS_NUMBER_VERIFY_RESULT), cases[k].code);
        if (!cases[k].error) {
            assert_int_equal(tls_conn_number(r.pair.server, TLS_NUMBER_PEER_CERT_USED),
                             cases[k].cert != NULL);
            assert_int_equal(tls_conn_number(r.pair.server, TLS_NUMBER_PEER_HAS_CERT),
                             cases[k].cert != NULL);
        }
        run_end(&r);
    }
}

/* An intermediate that the server does not know: the error is at depth 1 and the CA's to ignore. */
static void authority_errors(void **state)
{
    struct t_id sub =
        t_id_make(&(struct t_spec){.cn = "Sub CA", .is_ca = true, .issuer = &other_ca});
    struct t_id leaf = t_id_make(&(struct t_spec){.cn = "leaf", .issuer = &sub});

    t_write_bundle("leaf.pem", &leaf, &sub);
    for (int ignore = 0; ignore < 2; ignore++) {
        struct run r = run_new();

        r.server.verify = TLS_VERIFY_REQUIRED;
        r.server.ca_file = t_path("ca.pem");
        if (ignore)
            r.server.ca_ignore_err = r.server.crt_ignore_err = "all";
        r.client.crt = t_path("leaf.pem");
        r.client.max_version = TLS_VERSION_12;
        run(&r);
        assert_int_equal(r.pair.server_status, ignore ? 0 : SP_EPROTO);
        assert_int_equal(tls_conn_failure(r.pair.server),
                         ignore ? TLS_FAILURE_NONE : TLS_FAILURE_PEER_CA);
        assert_int_equal(tls_conn_number(r.pair.server, TLS_NUMBER_CA_ERROR), 20);
        assert_int_equal(tls_conn_number(r.pair.server, TLS_NUMBER_CA_ERROR_DEPTH), 1);
        if (!ignore)
            assert_string_equal(tls_conn_error_text(r.pair.client), "tlsv1 alert unknown ca");
        run_end(&r);
    }
    t_id_free(&sub);
    t_id_free(&leaf);
}

static void server_verification(void **state)
{
    static const struct {
        const char *sni, *host, *ca;
        const char *error;
        enum tls_failure failure;
    } cases[] = {
        {"www.example.com", NULL, "ca.pem", NULL, 0},
        {"a.w.example.com", "ignored.with.sni", "ca.pem", NULL, 0},
        {NULL, "www.example.com", "ca.pem", NULL, 0},
        {NULL, NULL, "ca.pem", NULL, 0},
        {"wrong.example.com", NULL, "ca.pem", "certificate verify failed",
         TLS_FAILURE_HOST_MISMATCH},
        {NULL, "wrong.example.com", "ca.pem", "certificate verify failed",
         TLS_FAILURE_HOST_MISMATCH},
        {"a.b.w.example.com", NULL, "ca.pem", "certificate verify failed",
         TLS_FAILURE_HOST_MISMATCH},
        {"www.example.com", NULL, "other-ca.pem", "certificate verify failed",
         TLS_FAILURE_PROTOCOL},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct run r = run_new();

        r.client.verify = TLS_VERIFY_REQUIRED;
        r.client.ca_base = t_folder();
        r.client.ca_file = cases[i].ca;
        r.client.verify_host = cases[i].host;
        r.sni = cases[i].sni;
        run(&r);
        assert_int_equal(r.pair.client_status, cases[i].error ? SP_EPROTO : 0);
        assert_int_equal(tls_conn_failure(r.pair.client), cases[i].failure);
        if (cases[i].error)
            assert_string_equal(tls_conn_error_text(r.pair.client), cases[i].error);
        else
            expect_success(&r);
        run_end(&r);
    }
}

static void system_authorities(void **state)
{
    struct run r = run_new();
    char *pem = t_pem_cert(&ca);

    t_write("system.crt", pem);
    free(pem);
    setenv("SSL_CERT_DIR", t_folder(), 1);
    r.client.verify = TLS_VERIFY_REQUIRED;
    r.client.ca_file = "@system-ca";
    run(&r);
    unsetenv("SSL_CERT_DIR");
    expect_success(&r);
    run_end(&r);
}

/* DHE only when parameters are configured, as large as asked for. */
static void finite_field_dh(void **state)
{
    for (int bits = 0; bits <= 4096; bits += 2048) {
        struct run r = run_new();

        one_source.path = t_path("both.pem.rsa");
        r.server.max_version = TLS_VERSION_12;
        r.server.dh_bits = bits;
        r.client.ciphers = "DHE-RSA-AES128-GCM-SHA256";
        run(&r);
        if (bits) {
            expect_success(&r);
            assert_string_equal(t_fact(r.pair.server, TLS_FACT_CIPHER),
                                "DHE-RSA-AES128-GCM-SHA256");
        } else {
            assert_string_equal(tls_conn_error_text(r.pair.server), "no shared cipher");
        }
        run_end(&r);
    }
}

static void not_tls(void **state)
{
    static const struct {
        struct str bytes;
        const char *error;
    } cases[] = {
        {STR("GET / HTTP/1.0\r\n\r\n"), "http request"},
        {STR("\x16\x03\x01\x00\x05hello world"), "unexpected message"},
        {STR("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), "wrong version number"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct run r = run_new();

        r.server_ctx = t_server(&world, &r.server);
        r.client_ctx = t_client(&world, &r.client);
        t_pair_open(&r.pair, &world, r.server_ctx, r.client_ctx, NULL, NULL, NULL);
        assert_true(
            write(r.pair.client_sock.sock.watch.fd, cases[i].bytes.ptr, cases[i].bytes.len) > 0);
        assert_int_equal(tls_conn_handshake(r.pair.server), SP_EPROTO);
        assert_string_equal(tls_conn_error_text(r.pair.server), cases[i].error);
        /* It stays failed. */
        assert_int_equal(tls_conn_handshake(r.pair.server), SP_EPROTO);
        assert_int_equal(tls_conn_read(r.pair.server, (char[1]){0}, 1), SP_EPROTO);
        run_end(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(versions, begin, end),
        cmocka_unit_test_setup_teardown(no_common_version, begin, end),
        cmocka_unit_test_setup_teardown(no_shared_cipher, begin, end),
        cmocka_unit_test_setup_teardown(alpn, begin, end),
        cmocka_unit_test_setup_teardown(certificate_choice, begin, end),
        cmocka_unit_test_setup_teardown(strict_sni, begin, end),
        cmocka_unit_test_setup_teardown(list_options, begin, end),
        cmocka_unit_test_setup_teardown(list_of_one, begin, end),
        cmocka_unit_test_setup_teardown(mutated_hello, begin, end),
        cmocka_unit_test_setup_teardown(client_certificates, begin, end),
        cmocka_unit_test_setup_teardown(authority_errors, begin, end),
        cmocka_unit_test_setup_teardown(server_verification, begin, end),
        cmocka_unit_test_setup_teardown(system_authorities, begin, end),
        cmocka_unit_test_setup_teardown(finite_field_dh, begin, end),
        cmocka_unit_test_setup_teardown(not_tls, begin, end),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
