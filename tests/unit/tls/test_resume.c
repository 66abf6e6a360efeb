/* Sessions: by ticket and by id, between workers, and where they must not count. */
#include "support.h"

#include "base/status.h"
#include "tls/cache.h"
#include "tls/context.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct t_world world;
static struct tls_cert_source source;

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
    struct t_id ca = t_id_make(&(struct t_spec){.cn = "CA", .is_ca = true});
    struct t_id www = t_id_make(
        &(struct t_spec){.cn = "www.example.com", .names = "DNS:*.example.com", .issuer = &ca});
    struct t_id client = t_id_make(&(struct t_spec){.cn = "client", .issuer = &ca});
    char *pem = t_pem_cert(&ca);

    t_write("ca.pem", pem);
    t_write_bundle("www.pem", &www, NULL);
    t_write_bundle("client.pem", &client, NULL);
    free(pem);
    t_id_free(&ca);
    t_id_free(&www);
    t_id_free(&client);
    return 0;
}

static int teardown(void **state)
{
    t_folder_remove();
    return 0;
}

/* One connection; answers whether it was resumed. The slot gets what the server gives. */
static bool connect_once(struct tls_server_ctx *server, struct tls_client_ctx *client,
                         const char *sni, struct tls_session_slot *slot)
{
    struct t_pair p;
    bool resumed;

    t_pair_open(&p, &world, server, client, sni, NULL, slot);
    t_pair_handshake(&p);
    assert_int_equal(p.server_status, 0);
    assert_int_equal(p.client_status, 0);
    t_pair_talk(&p);
    resumed = tls_conn_number(p.server, TLS_NUMBER_IS_RESUMED);
    assert_int_equal(tls_conn_number(p.client, TLS_NUMBER_IS_RESUMED), resumed);
    if (sni)
        assert_string_equal(t_fact(p.server, TLS_FACT_SNI), sni);
    t_pair_close(&p);
    return resumed;
}

struct kind {
    enum tls_version version;
    bool no_tickets;
    size_t cache;
    bool resumes;
};

static const struct kind kinds[] = {
    {TLS_VERSION_12, false, 0, true},    {TLS_VERSION_13, false, 0, true},
    {TLS_VERSION_12, true, 1000, true},  {TLS_VERSION_13, true, 1000, true},
    {TLS_VERSION_12, true, 0, false},    {TLS_VERSION_13, true, 0, false},
    {TLS_VERSION_12, false, 1000, true}, {TLS_VERSION_13, false, 1000, true},
};

static struct tls_server_params params_of(const struct kind *k)
{
    struct tls_server_params p = t_server_params(&source, t_path("www.pem"));

    p.min_version = p.max_version = k->version;
    p.no_tickets = k->no_tickets;
    p.cache_entries = k->cache;
    return p;
}

static void each_way(void **state)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct tls_server_params p = params_of(&kinds[i]);
        struct tls_client_params c = {.verify = TLS_VERIFY_NONE};
        struct tls_server_ctx *server = t_server(&world, &p);
        struct tls_client_ctx *client = t_client(&world, &c);
        struct tls_session_slot *slot = tls_session_slot_new();
        struct tls_counters before, after;

        tls_worker_counters(world.worker, &before);
        assert_false(connect_once(server, client, "www.example.com", slot));
        for (int n = 0; n < 3; n++)
            assert_int_equal(connect_once(server, client, "www.example.com", slot),
                             kinds[i].resumes);
        tls_worker_counters(world.worker, &after);
        assert_int_equal(after.resumed_handshakes - before.resumed_handshakes,
                         kinds[i].resumes ? 6 : 0);
        /* Another name: another session. No slot: none at all. */
        assert_false(connect_once(server, client, "other.example.com", slot));
        assert_false(connect_once(server, client, "www.example.com", NULL));
        assert_int_equal(connect_once(server, client, "other.example.com", slot), kinds[i].resumes);
        tls_session_slot_free(slot);
        tls_server_ctx_free(server);
        tls_client_ctx_free(client);
    }
}

/* Workers share tickets and the cache: a session made at one is good at another. */
static void between_workers(void **state)
{
    for (size_t i = 0; i < 4; i++) {
        struct tls_server_params p = params_of(&kinds[i]);
        struct tls_client_params c = {.verify = TLS_VERIFY_NONE};
        struct tls_server_ctx *server = t_server(&world, &p);
        struct tls_client_ctx *client = t_client(&world, &c);
        struct tls_session_slot *slot = tls_session_slot_new();
        struct tls_worker *first = world.worker, *second = tls_worker_new(NULL);

        assert_false(connect_once(server, client, "www.example.com", slot));
        world.worker = second;
        assert_true(connect_once(server, client, "www.example.com", slot));
        world.worker = first;
        tls_worker_free(second);
        assert_true(connect_once(server, client, "www.example.com", slot));
        tls_session_slot_free(slot);
        tls_server_ctx_free(server);
        tls_client_ctx_free(client);
    }
}

/* A session of one listener is worth nothing at another, whose rules may be stricter. */
static void between_listeners(void **state)
{
    for (size_t i = 0; i < 4; i++) {
        struct tls_server_params p = params_of(&kinds[i]);
        struct tls_client_params c = {.verify = TLS_VERIFY_NONE};
        struct tls_server_ctx *one = t_server(&world, &p), *other = t_server(&world, &p);
        struct tls_client_ctx *client = t_client(&world, &c);
        struct tls_session_slot *slot = tls_session_slot_new();

        assert_false(connect_once(one, client, "www.example.com", slot));
        assert_false(connect_once(other, client, "www.example.com", slot));
        tls_session_slot_free(slot);
        tls_server_ctx_free(one);
        tls_server_ctx_free(other);
        tls_client_ctx_free(client);
    }
}

/* Nor is one made without a client certificate under a crt-list line that asks for one. */
static void between_list_lines(void **state)
{
    for (size_t i = 0; i < 4; i++) {
        struct tls_server_params p = params_of(&kinds[i]);
        struct tls_client_params c = {.verify = TLS_VERIFY_NONE, .crt = t_path("client.pem")};
        struct tls_server_ctx *server;
        struct tls_client_ctx *client = t_client(&world, &c);
        struct tls_session_slot *slot = tls_session_slot_new();
        struct t_pair pair;

        t_writef("lines.list",
                 "%s open.example.com\n%s [verify required ca-file %s] closed.example.com\n",
                 t_path("www.pem"), t_path("www.pem"), t_path("ca.pem"));
        source.path = t_path("lines.list");
        source.is_crt_list = true;
        server = t_server(&world, &p);
        assert_false(connect_once(server, client, "open.example.com", slot));
        assert_true(connect_once(server, client, "open.example.com", slot));
        assert_false(connect_once(server, client, "closed.example.com", slot));
        assert_true(connect_once(server, client, "closed.example.com", slot));
        /* The certificate of the resumed session is known. */
        t_pair_open(&pair, &world, server, client, "closed.example.com", NULL, slot);
        t_pair_handshake(&pair);
        assert_int_equal(pair.server_status, 0);
        assert_int_equal(tls_conn_number(pair.server, TLS_NUMBER_IS_RESUMED), 1);
        assert_int_equal(tls_conn_number(pair.server, TLS_NUMBER_PEER_CERT_USED), 1);
        assert_int_equal(tls_conn_number(pair.server, TLS_NUMBER_PEER_HAS_CERT), 0);
        assert_string_equal(t_fact(pair.server, TLS_FACT_PEER_SUBJECT), "/CN=client");
        t_pair_close(&pair);
        tls_session_slot_free(slot);
        tls_server_ctx_free(server);
        tls_client_ctx_free(client);
    }
}

/* Tickets of a key that is about to go are renewed; after that they are refused. */
static void rotation(void **state)
{
    struct tls_server_params p = params_of(&kinds[0]);
    struct tls_client_params c = {.verify = TLS_VERIFY_NONE};
    struct tls_server_ctx *server = t_server(&world, &p);
    struct tls_client_ctx *client = t_client(&world, &c);
    struct tls_session_slot *slot = tls_session_slot_new();

    assert_false(connect_once(server, client, NULL, slot));
    server->tickets.rotate_at_s = (uint64_t)time(NULL) - 1;
    assert_true(connect_once(server, client, NULL,
                             slot)); /* with the previous key, and gets a new ticket */
    server->tickets.rotate_at_s = (uint64_t)time(NULL) - 1;
    assert_true(connect_once(server, client, NULL, slot));
    server->tickets.rotate_at_s = (uint64_t)time(NULL) - 10000;
    assert_false(connect_once(server, client, NULL, slot));
    tls_session_slot_free(slot);
    tls_server_ctx_free(server);
    tls_client_ctx_free(client);
}

/* Clients that do not keep sessions, or are told not to. */
static void no_reuse(void **state)
{
    struct tls_server_params p = params_of(&kinds[1]);
    struct tls_client_params c = {.verify = TLS_VERIFY_NONE, .no_reuse = true};
    struct tls_server_ctx *server = t_server(&world, &p);
    struct tls_client_ctx *client = t_client(&world, &c);
    struct tls_session_slot *slot = tls_session_slot_new();

    assert_false(connect_once(server, client, NULL, slot));
    assert_false(connect_once(server, client, NULL, slot));
    tls_session_slot_free(slot);
    tls_server_ctx_free(server);
    tls_client_ctx_free(client);
}

/*
 * A full handshake of TLS 1.3 gives one ticket, in the same flight as nothing else: seen by its
 * size.
 */
static void one_ticket(void **state)
{
    struct tls_server_params p = params_of(&kinds[1]);
    struct tls_client_params c = {.verify = TLS_VERIFY_NONE};
    struct tls_server_ctx *server = t_server(&world, &p);
    struct tls_client_ctx *client = t_client(&world, &c);
    struct tls_session_slot *slot = tls_session_slot_new();
    struct t_pair pair;

    t_pair_open(&pair, &world, server, client, NULL, NULL, slot);
    t_pair_handshake(&pair);
    assert_int_equal(pair.server_sock.send_calls, 2);
    t_pair_settle(&pair);
    t_pair_close(&pair);
    tls_session_slot_free(slot);
    tls_server_ctx_free(server);
    tls_client_ctx_free(client);
}

/* --- many threads -------------------------------------------------------------------------- */

struct thread_work {
    struct tls_server_ctx *server;
    struct tls_client_ctx *client;
    unsigned resumed, failed;
};

static void *work(void *arg)
{
    struct thread_work *w = arg;
    struct tls_worker *worker = tls_worker_new(NULL);
    struct tls_session_slot *slot = tls_session_slot_new();

    for (int i = 0; i < 60; i++) {
        struct t_pair p = {.server_status = SP_EWANTREAD, .client_status = SP_EWANTREAD};

        t_sock_pair(&p.server_sock, &p.client_sock);
        p.server = tls_conn_new_server(worker, w->server, &p.server_sock.sock);
        p.client = tls_conn_new_client(worker, w->client, &p.client_sock.sock, "www.example.com",
                                       NULL, slot);
        t_pair_handshake(&p);
        w->failed += p.server_status != 0 || p.client_status != 0;
        t_pair_settle(&p);
        w->resumed += tls_conn_number(p.server, TLS_NUMBER_IS_RESUMED) == 1;
        t_pair_close(&p);
        if (i % 10 == 9) {
            tls_session_slot_free(slot);
            slot = tls_session_slot_new();
        }
    }
    tls_session_slot_free(slot);
    tls_worker_free(worker);
    return NULL;
}

static void threads(void **state)
{
    for (size_t i = 0; i < 4; i++) {
        struct tls_server_params p = params_of(&kinds[i]);
        struct tls_client_params c = {.verify = TLS_VERIFY_REQUIRED, .ca_file = t_path("ca.pem")};
        struct tls_server_ctx *server;
        struct tls_client_ctx *client;
        struct thread_work w[3];
        pthread_t threads[3];

        source.path = t_path("www.pem");
        source.is_crt_list = false;
        server = t_server(&world, &p);
        client = t_client(&world, &c);
        for (int t = 0; t < 3; t++) {
            w[t] = (struct thread_work){.server = server, .client = client};
            assert_int_equal(pthread_create(&threads[t], NULL, work, &w[t]), 0);
        }
        for (int t = 0; t < 3; t++) {
            pthread_join(threads[t], NULL);
            assert_int_equal(w[t].failed, 0);
            assert_int_equal(w[t].resumed, 54);
        }
        tls_server_ctx_free(server);
        tls_client_ctx_free(client);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_way, begin, end),
        cmocka_unit_test_setup_teardown(between_workers, begin, end),
        cmocka_unit_test_setup_teardown(between_listeners, begin, end),
        cmocka_unit_test_setup_teardown(between_list_lines, begin, end),
        cmocka_unit_test_setup_teardown(rotation, begin, end),
        cmocka_unit_test_setup_teardown(no_reuse, begin, end),
        cmocka_unit_test_setup_teardown(one_ticket, begin, end),
        cmocka_unit_test_setup_teardown(threads, begin, end),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
