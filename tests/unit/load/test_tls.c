/* TLS: handshakes full and resumed, counted; certificates refused. */
#include "support.h"

#include "../tls/support.h"
#include "base/diag.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static struct t_world world;
static struct t_id id;

static int setup(void **state)
{
    t_world_init(&world);
    id = t_id_make(&(struct t_spec){.cn = "www.example.com"});
    return 0;
}

static int teardown(void **state)
{
    t_id_free(&id);
    t_world_release(&world);
    t_folder_remove();
    return 0;
}

static SSL_CTX *server_ctx(int version)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

    SSL_CTX_set_min_proto_version(ctx, version);
    SSL_CTX_set_max_proto_version(ctx, version);
    assert_int_equal(SSL_CTX_use_certificate(ctx, id.x509), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(ctx, id.key), 1);
    return ctx;
}

static void begin(struct t_job *j, struct t_server *s, int version, struct tls_client_ctx *client)
{
    s->tls = server_ctx(version);
    t_server_start(s);
    t_job_init(j, s);
    j->target.is_tls = true;
    j->target.tls = client;
    j->target.sni = "www.example.com";
}

static void end(struct t_job *j, struct t_server *s, struct tls_client_ctx *client)
{
    t_job_release(j);
    t_server_stop(s);
    SSL_CTX_free(s->tls);
    tls_client_ctx_free(client);
}

static void keep_alive(void **state)
{
    struct tls_client_ctx *client =
        t_client(&world, &(struct tls_client_params){.verify = TLS_VERIFY_NONE});
    struct t_server s = {.answer = t_hello};
    const struct load_result *r;
    struct t_job j;

    begin(&j, &s, TLS1_3_VERSION, client);
    j.plan.threads = 2;
    j.plan.connections = 4;
    j.plan.request_limit = 101;
    r = t_job_run(&j);
    assert_int_equal(t_errors(r), 0);
    assert_int_equal(r->requests, 101);
    assert_int_equal(r->connects, 4);
    assert_int_equal(r->handshakes_full, 4);
    assert_int_equal(r->handshakes_resumed, 0);
    assert_int_equal(r->handshake_full->count, 4);
    assert_string_equal(r->tls_version, "TLSv1.3");
    assert_non_null(strstr(r->tls_cipher, "TLS_AES"));
    /* Records and handshakes are more than what they carry. */
    assert_true(r->bytes_in > 101 * strlen(T_HELLO) + 4 * 500);
    assert_true(r->bytes_out > 101 * j.request.bytes.len + 4 * 200);
    end(&j, &s, client);
}

/* The first of each connection cannot be resumed, all others are. */
static void resumption(int version, bool handshake_only, double ratio)
{
    struct tls_client_ctx *client =
        t_client(&world, &(struct tls_client_params){.verify = TLS_VERIFY_NONE});
    struct t_server s = {.answer = t_hello};
    const struct load_result *r;
    struct t_job j;

    begin(&j, &s, version, client);
    j.plan.connections = 2;
    j.plan.request_limit = 40;
    j.plan.close = !handshake_only;
    j.plan.handshake_only = handshake_only;
    j.plan.resume_ratio = ratio;
    r = t_job_run(&j);
    for (int i = 0; i < LOAD_ERRORS; i++) {
        if (r->errors[i])
            print_error("%s\n", r->examples[i]);
    }
    assert_int_equal(t_errors(r), 0);
    assert_int_equal(r->requests, 40);
    assert_int_equal(r->connects, 40);
    assert_int_equal(r->handshakes_full + r->handshakes_resumed, 40);
    if (ratio == 0)
        assert_int_equal(r->handshakes_resumed, 0);
    else if (ratio == 1)
        assert_int_equal(r->handshakes_full, 2);
    else
        assert_in_range(r->handshakes_resumed, 6, 32);
    assert_int_equal(r->handshake_full->count, r->handshakes_full);
    assert_int_equal(r->handshake_resumed->count, r->handshakes_resumed);
    assert_int_equal(atomic_load(&s.requests), handshake_only ? 0 : 40);
    end(&j, &s, client);
}

static void full_and_resumed(void **state)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

    for (int v = 0; v < 2; v++) {
        for (int only = 0; only < 2; only++) {
            resumption(versions[v], only, 0);
            resumption(versions[v], only, 1);
            resumption(versions[v], only, 0.5);
        }
    }
}

static void refused_certificate(void **state)
{
    struct tls_client_params params = {.verify = TLS_VERIFY_REQUIRED};
    char *pem = t_pem_cert(&id);
    struct t_id other = t_id_make(&(struct t_spec){.cn = "CA", .is_ca = true});
    char *ca = t_pem_cert(&other);
    struct tls_client_ctx *client;
    struct t_server s = {.answer = t_hello};
    const struct load_result *r;
    struct t_job j;

    t_write("ca.pem", ca);
    params.ca_file = t_path("ca.pem");
    client = t_client(&world, &params);
    begin(&j, &s, TLS1_3_VERSION, client);
    j.plan.request_limit = 5;
    r = t_job_run(&j);
    t_only_error(r, LOAD_ERROR_TLS, 5, "X509_V_ERR_");
    assert_int_equal(r->sent, 0);
    assert_int_equal(r->connects, 5);
    assert_int_equal(r->handshakes_full, 0);
    end(&j, &s, client);
    t_id_free(&other);
    free(pem);
    free(ca);
}

static void wrong_version(void **state)
{
    struct tls_client_params params = {.verify = TLS_VERIFY_NONE, .max_version = TLS_VERSION_12};
    struct tls_client_ctx *client = t_client(&world, &params);
    struct t_server s = {.answer = t_hello};
    const struct load_result *r;
    struct t_job j;

    begin(&j, &s, TLS1_3_VERSION, client);
    j.plan.request_limit = 3;
    r = t_job_run(&j);
    t_only_error(r, LOAD_ERROR_TLS, 3, "alert protocol version");
    end(&j, &s, client);
}

static bool silent(struct t_peer *p)
{
    while (!atomic_load(&p->server->stopping))
        t_sleep_ms(2);
    return false;
}

static void handshake_timeout(void **state)
{
    struct tls_client_ctx *client =
        t_client(&world, &(struct tls_client_params){.verify = TLS_VERIFY_NONE});
    struct t_server s = {.greet = silent};
    const struct load_result *r;
    struct t_job j;

    begin(&j, &s, TLS1_3_VERSION, client);
    SSL_CTX_free(s.tls);
    s.tls = NULL; /* it never answers the hello */
    j.plan.request_limit = 2;
    j.plan.timeout_us = 50000;
    r = t_job_run(&j);
    t_only_error(r, LOAD_ERROR_TIMEOUT_HANDSHAKE, 2, "handshake");
    assert_int_equal(r->connects, 2);
    end(&j, &s, client);
}

/* Not TLS at all. */
static bool plain_greeting(struct t_peer *p)
{
    t_say(p, "220 mail.example.com ESMTP\r\n");
    t_sleep_ms(20);
    return false;
}

static void no_tls(void **state)
{
    struct tls_client_ctx *client =
        t_client(&world, &(struct tls_client_params){.verify = TLS_VERIFY_NONE});
    struct t_server s = {.greet = plain_greeting};
    const struct load_result *r;
    struct t_job j;

    begin(&j, &s, TLS1_3_VERSION, client);
    SSL_CTX_free(s.tls);
    s.tls = NULL;
    j.plan.request_limit = 3;
    r = t_job_run(&j);
    t_only_error(r, LOAD_ERROR_TLS, 3, "wrong version number");
    end(&j, &s, client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keep_alive),          cmocka_unit_test(full_and_resumed),
        cmocka_unit_test(refused_certificate), cmocka_unit_test(wrong_version),
        cmocka_unit_test(handshake_timeout),   cmocka_unit_test(no_tls),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
