/* The look at a ClientHello that decides whether it may resume: real ones of the library, whole and cut. */
#include "tls/admit.h"
#include "base/status.h"

#include <openssl/ssl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define HELLO_BYTES 4096

/* What a client of these settings sends first. */
static struct str first_flight(int max_version, SSL_SESSION *session, char *out)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL *ssl;
    BIO *in = BIO_new(BIO_s_mem()), *to = BIO_new(BIO_s_mem());
    int n;

    assert_non_null(ctx);
    assert_int_equal(SSL_CTX_set_max_proto_version(ctx, max_version), 1);
    ssl = SSL_new(ctx);
    assert_non_null(ssl);
    SSL_set_bio(ssl, in, to);
    if (session)
        assert_int_equal(SSL_set_session(ssl, session), 1);
    assert_int_equal(SSL_connect(ssl), -1);
    n = BIO_read(to, out, HELLO_BYTES);
    assert_in_range(n, 50, HELLO_BYTES - 1);
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    return str_make(out, (size_t)n);
}

/* A session of TLS 1.2 with an id and no ticket, as a client would have kept it. */
static SSL_SESSION *session_with_id(void)
{
    static const unsigned char cipher[] = {0xc0, 0x2f}, secret[48] = {1}, id[32] = {2};
    SSL_SESSION *s = SSL_SESSION_new();
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(ctx);

    assert_non_null(s);
    assert_non_null(ssl);
    assert_int_equal(SSL_SESSION_set_protocol_version(s, TLS1_2_VERSION), 1);
    assert_int_equal(SSL_SESSION_set_cipher(s, SSL_CIPHER_find(ssl, cipher)), 1);
    assert_int_equal(SSL_SESSION_set1_master_key(s, secret, sizeof(secret)), 1);
    assert_int_equal(SSL_SESSION_set1_id(s, id, sizeof(id)), 1);
    SSL_SESSION_set_time(s, time(NULL));
    SSL_SESSION_set_timeout(s, 300);
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    return s;
}

static void test_fresh(void **state)
{
    char data[HELLO_BYTES];
    struct str id;

    assert_int_equal(tls_hello_may_resume(first_flight(TLS1_2_VERSION, NULL, data), &id), 0);
    assert_int_equal(id.len, 0);
    /* The id of TLS 1.3 is random. */
    assert_int_equal(tls_hello_may_resume(first_flight(TLS1_3_VERSION, NULL, data), &id), 0);
    assert_int_equal(id.len, 32);
}

static void test_session_id(void **state)
{
    SSL_SESSION *session = session_with_id();
    char data[HELLO_BYTES];
    struct str id;

    assert_int_equal(tls_hello_may_resume(first_flight(TLS1_2_VERSION, session, data), &id), 0);
    assert_int_equal(id.len, 32);
    assert_int_equal(id.ptr[0], 2);
    SSL_SESSION_free(session);
}

static size_t at_of(struct str hello, const char *bytes, size_t len)
{
    const char *found = memmem(hello.ptr, hello.len, bytes, len);

    assert_non_null(found);
    return (size_t)(found - hello.ptr);
}

/* A ticket: the empty extension of a real hello gets content, and every length around it grows. */
static void test_ticket(void **state)
{
    char data[HELLO_BYTES + 8];
    struct str hello = first_flight(TLS1_2_VERSION, NULL, data), id;
    size_t at = at_of(hello, "\x00\x23\x00\x00", 4);
    size_t extensions = 5 + 4 + 2 + 32 + 1; /* of an empty session id */

    memmove(data + at + 8, data + at + 4, hello.len - at - 4);
    memcpy(data + at, "\x00\x23\x00\x04tick", 8);
    hello.len += 4;
    extensions += 2 + ((size_t)(uint8_t)data[extensions] << 8 | (uint8_t)data[extensions + 1]);
    extensions += 1 + (uint8_t)data[extensions];
    data[extensions + 1] = (char)(data[extensions + 1] + 4);
    data[4] = (char)(data[4] + 4);
    data[8] = (char)(data[8] + 4);
    assert_int_equal(tls_hello_may_resume(hello, &id), 1);
}

static void test_psk(void **state)
{
    char data[HELLO_BYTES];
    struct str hello = first_flight(TLS1_3_VERSION, NULL, data), id;
    size_t at = at_of(hello, "\x00\x2b", 2); /* supported_versions becomes pre_shared_key */

    data[at + 1] = 41;
    assert_int_equal(tls_hello_may_resume(hello, &id), 1);
}

static void test_cut(void **state)
{
    char data[HELLO_BYTES];
    struct str hello = first_flight(TLS1_3_VERSION, NULL, data), id;

    for (size_t n = 0; n < hello.len; n++) {
        char *copy = malloc(n ? n : 1); /* so that a read past the end is seen */
        size_t record = n >= 5 ? n - 5 : 0;

        memcpy(copy, data, n);
        assert_int_equal(tls_hello_may_resume(str_make(copy, n), &id), SP_EAGAIN);
        if (n >= 5) { /* a record that ends here: the message goes on in the next */
            copy[3] = (char)(record >> 8);
            copy[4] = (char)record;
            assert_int_equal(tls_hello_may_resume(str_make(copy, n), &id), SP_EPROTO);
        }
        free(copy);
    }
}

static void test_no_hello(void **state)
{
    static const char *const others[] = {"GET / HTTP/1.1\r\n\r\n", "\x15\x03\x01\x00\x02\x02\x28", "\x80\x2e\x01"};
    char data[HELLO_BYTES];
    struct str hello = first_flight(TLS1_2_VERSION, NULL, data), id;

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_int_equal(tls_hello_may_resume(str_make(others[i], 3), &id), SP_EPROTO);
    data[5] = 2; /* a ServerHello */
    assert_int_equal(tls_hello_may_resume(hello, &id), SP_EPROTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fresh), cmocka_unit_test(test_session_id), cmocka_unit_test(test_ticket),
        cmocka_unit_test(test_psk),   cmocka_unit_test(test_cut),        cmocka_unit_test(test_no_hello),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
