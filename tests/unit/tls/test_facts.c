#include "support.h"

#include "base/status.h"

#include <openssl/x509v3.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct t_world world;
static struct tls_server_ctx *server;
static struct tls_client_ctx *client;
static struct t_id ca, own, peer;
static struct t_pair pair;
static struct arena arena;

static int setup(void **state)
{
    struct tls_cert_source source;
    struct tls_server_params p = t_server_params(&source, t_path("own.pem"));
    struct tls_client_params c = {.verify = TLS_VERIFY_NONE,
                                  .crt = t_path("peer.pem"),
                                  .ciphersuites = "TLS_AES_128_GCM_SHA256",
                                  .curves = "X25519"};
    char *pem;

    ca = t_id_make(&(struct t_spec){.cn = "The CA", .org = "Tests", .is_ca = true});
    own = t_id_make(
        &(struct t_spec){.cn = "www.example.com", .org = "Shop", .issuer = &ca, .serial = 0x1234});
    peer = t_id_make(&(struct t_spec){
        .cn = "client 1", .org = "Guests", .key = "RSA", .issuer = &ca, .serial = 2});
    t_write("ca.pem", pem = t_pem_cert(&ca));
    free(pem);
    t_write_bundle("own.pem", &own, &ca);
    t_write_bundle("peer.pem", &peer, &ca);
    t_world_init(&world);
    p.verify = TLS_VERIFY_REQUIRED;
    p.ca_file = t_path("ca.pem");
    p.alpn = "h2";
    server = t_server(&world, &p);
    client = t_client(&world, &c);
    t_pair_open(&pair, &world, server, client, "www.example.com", "h2", NULL);
    t_pair_handshake(&pair);
    arena_init(&arena, 0, 0);
    return pair.server_status || pair.client_status;
}

static int teardown(void **state)
{
    arena_release(&arena);
    t_pair_close(&pair);
    tls_server_ctx_free(server);
    tls_client_ctx_free(client);
    t_world_release(&world);
    t_id_free(&ca);
    t_id_free(&own);
    t_id_free(&peer);
    t_folder_remove();
    return 0;
}

static struct str fact(const struct tls_conn *c, enum tls_fact f)
{
    struct str s = STR_NULL;

    assert_int_equal(tls_conn_fact(c, f, &arena, &s), 0);
    return s;
}

static void texts(void **state)
{
    static const struct {
        enum tls_fact fact;
        const char *server, *client;
    } cases[] = {
        {TLS_FACT_VERSION, "TLSv1.3", "TLSv1.3"},
        {TLS_FACT_CIPHER, "TLS_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256"},
        {TLS_FACT_SNI, "www.example.com", "www.example.com"},
        {TLS_FACT_ALPN, "h2", "h2"},
        {TLS_FACT_CURVE, "x25519", "x25519"},
        {TLS_FACT_PEER_SUBJECT, "/C=FR/O=Guests/CN=client 1", "/C=FR/O=Shop/CN=www.example.com"},
        {TLS_FACT_PEER_ISSUER, "/C=FR/O=Tests/CN=The CA", "/C=FR/O=Tests/CN=The CA"},
        {TLS_FACT_PEER_CN, "client 1", "www.example.com"},
        {TLS_FACT_PEER_KEY_ALG, "rsaEncryption", "id-ecPublicKey"},
        {TLS_FACT_PEER_SIG_ALG, "ecdsa-with-SHA256", "ecdsa-with-SHA256"},
        {TLS_FACT_OWN_SUBJECT, "/C=FR/O=Shop/CN=www.example.com", "/C=FR/O=Guests/CN=client 1"},
        {TLS_FACT_OWN_ISSUER, "/C=FR/O=Tests/CN=The CA", "/C=FR/O=Tests/CN=The CA"},
        {TLS_FACT_OWN_KEY_ALG, "id-ecPublicKey", "rsaEncryption"},
        {TLS_FACT_OWN_SIG_ALG, "ecdsa-with-SHA256", "ecdsa-with-SHA256"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_string_equal(t_fact(pair.server, cases[i].fact), cases[i].server);
        assert_string_equal(t_fact(pair.client, cases[i].fact), cases[i].client);
    }
    assert_string_equal(t_fact(pair.server, TLS_FACT_OWN_PATH), t_path("own.pem"));
}

static void binaries(void **state)
{
    unsigned char *der = NULL, digest[20];
    int len = i2d_X509(peer.x509, &der), ca_len = i2d_X509(ca.x509, NULL);
    struct str s = fact(pair.server, TLS_FACT_PEER_DER);

    assert_int_equal(s.len, len);
    assert_memory_equal(s.ptr, der, s.len);
    s = fact(pair.server, TLS_FACT_PEER_CHAIN_DER);
    assert_int_equal(s.len, len + ca_len);
    assert_memory_equal(s.ptr, der, (size_t)len);
    OPENSSL_free(der);
    X509_digest(peer.x509, EVP_sha1(), digest, NULL);
    s = fact(pair.server, TLS_FACT_PEER_SHA1);
    assert_int_equal(s.len, 20);
    assert_memory_equal(s.ptr, digest, 20);
    s = fact(pair.server, TLS_FACT_PEER_SERIAL);
    assert_true(str_eq(s, STR("\2")));
    s = fact(pair.server, TLS_FACT_OWN_SERIAL);
    assert_true(str_eq(s, STR("\x12\x34")));
    s = fact(pair.client, TLS_FACT_PEER_CHAIN_DER);
    assert_int_equal(s.len, i2d_X509(own.x509, NULL) + ca_len);
    assert_true(str_eq(fact(pair.server, TLS_FACT_OWN_DER), fact(pair.client, TLS_FACT_PEER_DER)));
    assert_true(
        str_eq(fact(pair.server, TLS_FACT_UNIQUE_ID), fact(pair.client, TLS_FACT_UNIQUE_ID)));
    assert_true(str_eq(fact(pair.server, TLS_FACT_CLIENT_RANDOM),
                       fact(pair.client, TLS_FACT_CLIENT_RANDOM)));
    assert_true(str_eq(fact(pair.server, TLS_FACT_SERVER_RANDOM),
                       fact(pair.client, TLS_FACT_SERVER_RANDOM)));
    assert_int_equal(fact(pair.server, TLS_FACT_CLIENT_RANDOM).len, 32);
    assert_int_equal(fact(pair.server, TLS_FACT_SESSION_ID).len, 32);
    assert_true(fact(pair.server, TLS_FACT_SESSION_KEY).len > 0);
}

static void times(void **state)
{
    struct str s = fact(pair.server, TLS_FACT_PEER_NOTBEFORE);

    assert_int_equal(s.len, 13);
    assert_int_equal(s.ptr[12], 'Z');
    assert_memory_equal(s.ptr, ASN1_STRING_get0_data(X509_get0_notBefore(peer.x509)), 13);
    assert_int_equal(fact(pair.server, TLS_FACT_PEER_NOTAFTER).len, 13);
    assert_int_equal(fact(pair.server, TLS_FACT_OWN_NOTBEFORE).len, 13);
    assert_int_equal(fact(pair.server, TLS_FACT_OWN_NOTAFTER).len, 13);
}

static void numbers(void **state)
{
    static const struct {
        enum tls_number number;
        int value;
    } cases[] = {
        {TLS_NUMBER_USE_KEYSIZE, 128},  {TLS_NUMBER_ALG_KEYSIZE, 128},
        {TLS_NUMBER_IS_RESUMED, 0},     {TLS_NUMBER_PEER_HAS_CERT, 1},
        {TLS_NUMBER_PEER_CERT_USED, 1}, {TLS_NUMBER_VERIFY_RESULT, 0},
        {TLS_NUMBER_CA_ERROR, 0},       {TLS_NUMBER_CA_ERROR_DEPTH, 0},
        {TLS_NUMBER_CERT_ERROR, 0},     {TLS_NUMBER_HAS_SNI, 1},
        {TLS_NUMBER_PEER_VERSION, 3},   {TLS_NUMBER_OWN_VERSION, 3},
        {TLS_NUMBER_ERROR, 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(tls_conn_number(pair.server, cases[i].number), cases[i].value);
}

static const char *name(enum tls_name which, const char *entry, int occurrence, bool rfc2253)
{
    static char text[256];
    struct str s;

    if (tls_conn_name(pair.server, which, str_of(entry), occurrence, rfc2253, &arena, &s) != 0)
        return "-";
    snprintf(text, sizeof(text), "%.*s", STR_FMT(s));
    return text;
}

static void names(void **state)
{
    assert_string_equal(name(TLS_NAME_PEER_SUBJECT, "CN", 0, false), "client 1");
    assert_string_equal(name(TLS_NAME_PEER_SUBJECT, "CN", 1, false), "client 1");
    assert_string_equal(name(TLS_NAME_PEER_SUBJECT, "CN", -1, false), "client 1");
    assert_string_equal(name(TLS_NAME_PEER_SUBJECT, "commonName", 1, false), "client 1");
    assert_string_equal(name(TLS_NAME_PEER_SUBJECT, "CN", 2, false), "-");
    assert_string_equal(name(TLS_NAME_PEER_SUBJECT, "OU", 1, false), "-");
    assert_string_equal(name(TLS_NAME_PEER_SUBJECT, "", 0, true), "CN=client 1,O=Guests,C=FR");
    assert_string_equal(name(TLS_NAME_PEER_ISSUER, "O", 0, false), "Tests");
    assert_string_equal(name(TLS_NAME_PEER_ROOT, "", 0, false), "/C=FR/O=Tests/CN=The CA");
    assert_string_equal(name(TLS_NAME_OWN_SUBJECT, "O", 0, false), "Shop");
    assert_string_equal(name(TLS_NAME_OWN_ISSUER, "CN", 0, false), "The CA");
}

/* Before a handshake nothing is known, and asking is harmless. */
static void nothing_yet(void **state)
{
    struct t_pair fresh;

    t_pair_open(&fresh, &world, server, client, NULL, NULL, NULL);
    for (int f = TLS_FACT_VERSION; f <= TLS_FACT_SESSION_KEY; f++) {
        struct str s;

        (void)tls_conn_fact(fresh.server, (enum tls_fact)f, &arena, &s);
        (void)tls_conn_fact(fresh.client, (enum tls_fact)f, &arena, &s);
    }
    assert_string_equal(t_fact(fresh.server, TLS_FACT_PEER_SUBJECT), "-");
    assert_string_equal(t_fact(fresh.server, TLS_FACT_CIPHER), "-");
    assert_string_equal(t_fact(fresh.server, TLS_FACT_SNI), "-");
    assert_string_equal(t_fact(fresh.server, TLS_FACT_ALPN), "-");
    for (int n = TLS_NUMBER_USE_KEYSIZE; n <= TLS_NUMBER_OWN_VERSION; n++) {
        (void)tls_conn_number(fresh.server, (enum tls_number)n);
        (void)tls_conn_number(fresh.client, (enum tls_number)n);
    }
    assert_int_equal(tls_conn_number(fresh.server, TLS_NUMBER_HAS_SNI), 0);
    assert_int_equal(tls_conn_number(fresh.server, TLS_NUMBER_USE_KEYSIZE), 0);
    t_pair_close(&fresh);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),   cmocka_unit_test(binaries), cmocka_unit_test(times),
        cmocka_unit_test(numbers), cmocka_unit_test(names),    cmocka_unit_test(nothing_yet),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
