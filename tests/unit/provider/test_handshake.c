/* TLS handshakes whose servers pause: batches that fill, and connections that end in the middle. */
#include "support.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <time.h>

#define MAX_CONNS 24

static struct t_worlds worlds;

struct identity {
    EVP_PKEY *key;
    X509 *x509;
};

/* A certificate for each kind of key, as the server and as the client would read it from files. */
static struct {
    const char *kind;
    struct identity server, client;
} identities[] = {{"RSA2048", {0}, {0}}, {"P-256", {0}, {0}}, {"P-384", {0}, {0}}};

struct conn {
    SSL *server, *client;
    int server_result, client_result; /* 1: done; -1: failed; 0: goes on */
    bool paused, ready;
    unsigned pauses, callbacks;
};

struct bench {
    SSL_CTX *server, *client;
    struct sp_queue *queue;
    struct conn conns[MAX_CONNS];
    size_t n;
    bool with_callback;
};

static int on_ready(SSL *ssl, void *arg)
{
    struct conn *c = arg;

    assert_ptr_equal(ssl, c->server);
    c->ready = true;
    c->callbacks++;
    return 1;
}

/*
 * --- setting up --------------------------------------------------------------------------------
 */

static const struct identity *identity(const char *kind, bool server)
{
    for (size_t i = 0; i < sizeof(identities) / sizeof(identities[0]); i++)
        if (strcmp(identities[i].kind, kind) == 0)
            return server ? &identities[i].server : &identities[i].client;
    fail();
    return NULL;
}

static SSL_CTX *context(OSSL_LIB_CTX *libctx, const char *kind, bool server)
{
    SSL_CTX *ctx = SSL_CTX_new_ex(libctx, NULL, TLS_method());
    const struct identity *id = identity(kind, server);

    assert_non_null(ctx);
    assert_int_equal(SSL_CTX_use_cert_and_key(ctx, id->x509, id->key, NULL, 1), 1);
    assert_int_equal(SSL_CTX_check_private_key(ctx), 1);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    return ctx;
}

static void bench_init(struct bench *b, const char *kind, int version, const char *ciphers,
                       const char *groups)
{
    memset(b, 0, sizeof(*b));
    b->server = context(worlds.ours, kind, true);
    b->client = context(worlds.plain, kind, false);
    assert_int_equal(SSL_CTX_set_max_proto_version(b->server, version), 1);
    assert_int_equal(SSL_CTX_set_cipher_list(b->client, ciphers), 1);
    assert_int_equal(SSL_CTX_set1_groups_list(b->client, groups), 1);
    SSL_CTX_set_dh_auto(b->server, 1);
    SSL_CTX_set_mode(b->server, SSL_MODE_ASYNC);
    b->with_callback = true;
}

/* The server asks for a certificate and trusts the client's. */
static void ask_for_certificate(struct bench *b, const char *kind)
{
    SSL_CTX_set_verify(b->server, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    assert_int_equal(
        X509_STORE_add_cert(SSL_CTX_get_cert_store(b->server), identity(kind, false)->x509), 1);
}

static void open_conn(struct bench *b, struct conn *c)
{
    BIO *left, *right;

    memset(c, 0, sizeof(*c));
    assert_int_equal(BIO_new_bio_pair(&left, 65536, &right, 65536), 1);
    c->server = SSL_new(b->server);
    c->client = SSL_new(b->client);
    SSL_set_bio(c->server, left, left);
    SSL_set_bio(c->client, right, right);
    SSL_set_accept_state(c->server);
    SSL_set_connect_state(c->client);
    if (b->with_callback) {
        assert_int_equal(SSL_set_async_callback(c->server, on_ready), 1);
        assert_int_equal(SSL_set_async_callback_arg(c->server, c), 1);
    }
}

static void open_all(struct bench *b, size_t n)
{
    b->n = n;
    for (size_t i = 0; i < n; i++)
        open_conn(b, &b->conns[i]);
}

static void close_conn(struct conn *c)
{
    SSL_free(c->server);
    SSL_free(c->client);
    c->server = c->client = NULL;
}

static void bench_release(struct bench *b)
{
    for (size_t i = 0; i < b->n; i++)
        close_conn(&b->conns[i]);
    SSL_CTX_free(b->server);
    SSL_CTX_free(b->client);
    if (b->queue) {
        assert_int_equal(sp_queue_in_flight(b->queue), 0);
        sp_queue_set_current(NULL);
        sp_queue_free(b->queue);
    }
}

static void use_queue(struct bench *b, struct sp_crypto_threads *threads)
{
    struct sp_queue_options options;

    sp_queue_options_init(&options);
    options.threads = threads;
    assert_int_equal(sp_queue_new(&b->queue, &options), 0);
    sp_queue_set_current(b->queue);
}

/*
 * --- a small loop --------------------------------------------------------------------------------
 */

static int outcome(SSL *ssl, int n, bool *paused)
{
    int error = n == 1 ? SSL_ERROR_NONE : SSL_get_error(ssl, n);

    *paused = error == SSL_ERROR_WANT_ASYNC;
    if (n == 1)
        return 1;
    return *paused || error == SSL_ERROR_WANT_READ ? 0 : -1;
}

/* Steps each end once; true when anything can go on. */
static bool step(struct bench *b, struct conn *c)
{
    bool ignored, was_paused = c->paused;
    OSSL_HANDSHAKE_STATE before;

    if (!c->server)
        return false;
    before = SSL_get_state(c->client);
    if (c->client_result == 0)
        c->client_result = outcome(c->client, SSL_do_handshake(c->client), &ignored);
    if (c->server_result == 0 && (!c->paused || c->ready || !b->with_callback)) {
        c->ready = false;
        c->server_result = outcome(c->server, SSL_do_handshake(c->server), &c->paused);
        c->pauses += c->paused && !was_paused;
        return !c->paused;
    }
    return before != SSL_get_state(c->client);
}

static void poll_queue(struct bench *b)
{
    struct sp_op *ops[4];
    size_t n;

    while ((n = sp_queue_poll(b->queue, ops, 4)) > 0)
        for (size_t i = 0; i < n; i++)
            sp_provider_complete(ops[i]);
}

/* Until every server has paused or ended. */
static void run_until_paused(struct bench *b)
{
    for (bool going = true; going;) {
        going = false;
        for (size_t i = 0; i < b->n; i++)
            if (!b->conns[i].paused || b->conns[i].ready)
                going |= step(b, &b->conns[i]) && b->conns[i].server_result == 0;
        ERR_clear_error();
    }
}

static bool all_done(const struct bench *b)
{
    for (size_t i = 0; i < b->n; i++)
        if (b->conns[i].server &&
            (b->conns[i].server_result == 0 || b->conns[i].client_result == 0))
            return false;
    return true;
}

static void run(struct bench *b)
{
    time_t end = time(NULL) + 60;

    while (!all_done(b)) {
        assert_true(time(NULL) < end);
        for (size_t i = 0; i < b->n; i++)
            step(b, &b->conns[i]);
        if (b->queue) {
            sp_queue_flush(b->queue, SP_FLUSH_ALL);
            poll_queue(b);
        }
        ERR_clear_error();
    }
}

static void all_succeeded(const struct bench *b)
{
    char got[5];

    for (size_t i = 0; i < b->n; i++) {
        const struct conn *c = &b->conns[i];

        if (!c->server)
            continue;
        assert_int_equal(c->server_result, 1);
        assert_int_equal(c->client_result, 1);
        assert_int_equal(SSL_write(c->client, "hello", 5), 5);
        assert_int_equal(SSL_read(c->server, got, 5), 5);
        assert_memory_equal(got, "hello", 5);
    }
}

/*
 * --- tests
 * ----------------------------------------------------------------------------------------
 */

struct variant {
    const char *kind;
    int version;
    const char *ciphers, *groups;
    bool pauses;
};

static const struct variant variants[] = {
    {"RSA2048", TLS1_3_VERSION, "ALL", "X25519", true},
    {"RSA2048", TLS1_3_VERSION, "ALL", "P-256", true},
    {"P-256", TLS1_3_VERSION, "ALL", "X25519", true},
    {"P-256", TLS1_3_VERSION, "ALL", "P-256", true},
    {"P-384", TLS1_3_VERSION, "ALL", "P-384", true},
    {"P-256", TLS1_3_VERSION, "ALL", "P-521", true},
    {"P-256", TLS1_3_VERSION, "ALL", "X448", false},
    {"RSA2048", TLS1_2_VERSION, "ECDHE-RSA-AES128-GCM-SHA256", "P-256", true},
    {"RSA2048", TLS1_2_VERSION, "ECDHE-RSA-AES128-SHA", "X25519", true},
    {"P-256", TLS1_2_VERSION, "ECDHE-ECDSA-AES128-GCM-SHA256", "X25519:P-256", true},
    {"RSA2048", TLS1_2_VERSION, "AES128-SHA", "X25519", true},
    {"RSA2048", TLS1_2_VERSION, "AES128-GCM-SHA256", "X25519", true},
    {"RSA2048", TLS1_2_VERSION, "DHE-RSA-AES128-GCM-SHA256", "X25519", true},
    {"RSA2048", TLS1_1_VERSION, "ECDHE-RSA-AES128-SHA:@SECLEVEL=0", "P-256", true},
};

static void handshakes(void **state)
{
    for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
        const struct variant *v = &variants[i];

        /* A queue and a loop; a queue of the provider's own and descriptors. */
        for (int loop = 0; loop < 2; loop++) {
            struct bench b;

            bench_init(&b, v->kind, v->version, v->ciphers, v->groups);
            if (v->version < TLS1_2_VERSION)
                assert_int_equal(SSL_CTX_set_cipher_list(b.server, v->ciphers), 1);
            b.with_callback = loop;
            if (loop)
                use_queue(&b, NULL);
            ask_for_certificate(&b, v->kind);
            open_all(&b, 3);
            run(&b);
            all_succeeded(&b);
            for (size_t j = 0; j < b.n; j++) {
                assert_int_equal(b.conns[j].pauses > 0, v->pauses);
                if (loop)
                    assert_int_equal(b.conns[j].callbacks > 0, v->pauses);
            }
            bench_release(&b);
        }
    }
}

/* Eight connections arrive together: their signatures fill the eight lanes. */
static void batch_fills(void **state)
{
    struct sp_queue_counters sum = {0};
    const struct sp_algorithm_counters *rsa = &sum.algorithms[SP_ALGORITHM_RSA2048];
    struct sp_queue_options options;
    struct bench b;

    bench_init(&b, "RSA2048", TLS1_3_VERSION, "ALL", "X25519");
    sp_queue_options_init(&options);
    /* Whatever a busy machine measured of how many are worth a batch. */
    if (!sp_lanes_missing(SP_ALGORITHM_RSA2048))
        options.policy[SP_BACKEND_MULTIBUFFER] = SP_POLICY_REQUIRE;
    assert_int_equal(sp_queue_new(&b.queue, &options), 0);
    sp_queue_set_current(b.queue);
    open_all(&b, 16);
    run(&b);
    all_succeeded(&b);
    sp_queue_counters_add(b.queue, &sum);
    assert_int_equal(rsa->done[SP_BACKEND_OPENSSL] + rsa->done[SP_BACKEND_MULTIBUFFER], 16);
    if (!sp_lanes_missing(SP_ALGORITHM_RSA2048))
        assert_int_equal(rsa->batches[8], 2);
    assert_int_equal(sum.refused, 0);
    bench_release(&b);
}

/* What submit refuses runs at once. */
static void bound_reached(void **state)
{
    struct sp_queue_counters sum = {0};
    struct sp_queue_options options;
    struct bench b;

    bench_init(&b, "RSA2048", TLS1_3_VERSION, "ALL", "X25519");
    sp_queue_options_init(&options);
    options.max_waiting = 2;
    assert_int_equal(sp_queue_new(&b.queue, &options), 0);
    sp_queue_set_current(b.queue);
    open_all(&b, 6);
    run(&b);
    all_succeeded(&b);
    sp_queue_counters_add(b.queue, &sum);
    assert_true(sum.refused > 0);
    bench_release(&b);
}

/* One connection fewer, in the way that the header prescribes. True when it is gone. */
static bool abandon(struct conn *c)
{
    int n;

    sp_provider_set_abandoning(true);
    n = SSL_do_handshake(c->server);
    sp_provider_set_abandoning(false);
    if (n < 0 && SSL_get_error(c->server, n) == SSL_ERROR_WANT_ASYNC)
        return false;
    assert_int_not_equal(n, 1);
    ERR_clear_error();
    close_conn(c);
    return true;
}

static void abandoned_while_waiting(void **state)
{
    static const char *const kinds[] = {"RSA2048", "P-256", "P-384"};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        for (int rsa_exchange = 0; rsa_exchange < (i ? 1 : 2); rsa_exchange++) {
            struct bench b;

            bench_init(&b, kinds[i], rsa_exchange ? TLS1_2_VERSION : TLS1_3_VERSION,
                       rsa_exchange ? "AES128-SHA" : "ALL", "X25519:P-256");
            use_queue(&b, NULL);
            open_all(&b, 8);
            run_until_paused(&b);
            assert_int_equal(sp_queue_in_flight(b.queue), 8);
            for (size_t j = 0; j < 8; j += 2)
                assert_true(abandon(&b.conns[j]));
            assert_int_equal(sp_queue_in_flight(b.queue), 4);
            run(&b);
            all_succeeded(&b);
            bench_release(&b);
        }
}

/* Finished, but nobody has polled: the operation is the queue's until the next poll. */
static void abandoned_when_finished(void **state)
{
    struct bench b;

    bench_init(&b, "RSA2048", TLS1_3_VERSION, "ALL", "X25519");
    use_queue(&b, NULL);
    open_all(&b, 8);
    run_until_paused(&b);
    while (sp_queue_flush(b.queue, SP_FLUSH_ALL))
        ;
    assert_false(abandon(&b.conns[0]));
    assert_false(b.conns[0].ready);
    poll_queue(&b);
    assert_true(b.conns[0].ready);
    assert_true(abandon(&b.conns[0]));
    run(&b);
    all_succeeded(&b);
    bench_release(&b);
}

/* Crypto threads: whatever state each operation is in, all of it ends. */
static void abandoned_with_threads(void **state)
{
    struct sp_crypto_threads *threads;

    assert_int_equal(sp_crypto_threads_new(&threads, 2), 0);
    for (int round = 0; round < 8; round++) {
        time_t end = time(NULL) + 60;
        size_t left = 0;
        struct bench b;

        bench_init(&b, round % 2 ? "P-384" : "RSA2048", TLS1_3_VERSION, "ALL",
                   round % 2 ? "P-384" : "X25519");
        use_queue(&b, threads);
        open_all(&b, 24);
        /* The key agreements, then the signatures. */
        run_until_paused(&b);
        if (round & 2) {
            for (time_t until = time(NULL) + 20; left == 0 && time(NULL) < until;) {
                sp_queue_flush(b.queue, SP_FLUSH_ALL);
                poll_queue(&b);
                for (size_t i = 0; i < b.n; i++)
                    left += b.conns[i].ready;
            }
            run_until_paused(&b);
        }
        sp_queue_flush(b.queue, SP_FLUSH_ALL);
        do {
            assert_true(time(NULL) < end);
            left = 0;
            for (size_t i = 0; i < b.n; i += 1 + (size_t)(round & 1))
                if (b.conns[i].server && b.conns[i].server_result == 0 &&
                    (b.conns[i].paused || b.conns[i].ready))
                    left += !abandon(&b.conns[i]);
            poll_queue(&b);
        } while (left > 0);
        run(&b);
        all_succeeded(&b);
        bench_release(&b);
    }
    sp_crypto_threads_free(threads);
}

/* Without a loop there is nobody else to wait for. */
static void abandoned_without_a_loop(void **state)
{
    struct bench b;

    bench_init(&b, "RSA2048", TLS1_3_VERSION, "ALL", "X25519");
    b.with_callback = false;
    open_all(&b, 8);
    for (int i = 0; i < 3; i++)
        for (size_t j = 0; j < b.n; j++)
            if (!b.conns[j].paused)
                step(&b, &b.conns[j]);
    for (size_t j = 0; j < 8; j += 2) {
        assert_true(b.conns[j].paused);
        assert_true(abandon(&b.conns[j]));
    }
    run(&b);
    all_succeeded(&b);
    bench_release(&b);
}

/* Resumed too early, again and again: it waits, and at last helps itself. */
static void resumed_too_early(void **state)
{
    bool paused;
    struct bench b;
    int i;

    bench_init(&b, "RSA2048", TLS1_3_VERSION, "ALL", "X25519");
    use_queue(&b, NULL);
    open_all(&b, 1);
    run_until_paused(&b);
    for (i = 0; i < 100; i++) {
        assert_int_equal(outcome(b.conns[0].server, SSL_do_handshake(b.conns[0].server), &paused),
                         0);
        assert_true(paused);
        assert_int_equal(sp_queue_in_flight(b.queue), 1);
    }
    for (; i < 2000 && b.conns[0].server_result == 0; i++) {
        b.conns[0].ready = true;
        step(&b, &b.conns[0]);
    }
    assert_int_equal(b.conns[0].server_result, 1);
    run(&b);
    bench_release(&b);
}

/* The same as a client that signs, against a server without the provider. */
static void as_a_client(void **state)
{
    static const char *const kinds[] = {"RSA2048", "P-256", "P-384"};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        SSL_CTX *server = context(worlds.plain, kinds[i], true),
                *client = context(worlds.ours, kinds[i], false);
        struct bench b = {.server = server, .client = client, .with_callback = true};
        struct conn *c = &b.conns[0];
        bool paused = false;
        int result = 0;

        use_queue(&b, NULL);
        ask_for_certificate(&b, kinds[i]);
        SSL_CTX_set_verify(client, SSL_VERIFY_PEER, NULL);
        assert_int_equal(
            X509_STORE_add_cert(SSL_CTX_get_cert_store(client), identity(kinds[i], true)->x509), 1);
        SSL_CTX_set_mode(client, SSL_MODE_ASYNC);
        open_all(&b, 1);
        for (int j = 0; j < 1000 && (result == 0 || c->server_result == 0); j++) {
            if (result == 0)
                result = outcome(c->client, SSL_do_handshake(c->client), &paused);
            if (c->server_result == 0)
                c->server_result = outcome(c->server, SSL_do_handshake(c->server), &c->paused);
            sp_queue_flush(b.queue, SP_FLUSH_ALL);
            poll_queue(&b);
        }
        assert_int_equal(result, 1);
        assert_int_equal(c->server_result, 1);
        bench_release(&b);
    }
}

static int set_up(void **state)
{
    t_worlds_init(&worlds);
    for (size_t i = 0; i < sizeof(identities) / sizeof(identities[0]); i++) {
        EVP_PKEY *key = t_key(worlds.plain, identities[i].kind);
        X509 *x509 = t_issue(worlds.plain, key, "localhost", NULL, NULL);

        /* Read by whom they are used by, and the other's as what comes in a handshake. */
        identities[i].server.key = t_private(key, worlds.ours);
        identities[i].server.x509 = t_certificate(x509, worlds.ours);
        identities[i].client.key = key;
        identities[i].client.x509 = x509;
    }
    return 0;
}

static int tear_down(void **state)
{
    for (size_t i = 0; i < sizeof(identities) / sizeof(identities[0]); i++) {
        EVP_PKEY_free(identities[i].server.key);
        EVP_PKEY_free(identities[i].client.key);
        X509_free(identities[i].server.x509);
        X509_free(identities[i].client.x509);
    }
    t_worlds_release(&worlds);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handshakes),
        cmocka_unit_test(batch_fills),
        cmocka_unit_test(bound_reached),
        cmocka_unit_test(abandoned_while_waiting),
        cmocka_unit_test(abandoned_when_finished),
        cmocka_unit_test(abandoned_with_threads),
        cmocka_unit_test(abandoned_without_a_loop),
        cmocka_unit_test(resumed_too_early),
        cmocka_unit_test(as_a_client),
    };

    return cmocka_run_group_tests_name("provider/handshake", tests, set_up, tear_down);
}
