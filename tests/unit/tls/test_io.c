/*
 * Bytes through a connection: gathered, cut up, held back, ended in every way; and what that costs
 * in calls.
 */
#include "support.h"

#include "base/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

static struct t_world world;
static struct tls_server_ctx *server[2]; /* TLS 1.2, TLS 1.3 */
static struct tls_client_ctx *client;
static struct t_pair pair;

#define BIG 300000

static char big[BIG], got[BIG];

static int setup(void **state)
{
    struct t_id id = t_id_make(&(struct t_spec){.cn = "www.example.com"});
    struct tls_cert_source source;
    struct tls_server_params p = t_server_params(&source, t_path("www.pem"));
    struct tls_client_params c = {.verify = TLS_VERIFY_NONE};

    t_write_bundle("www.pem", &id, NULL);
    t_id_free(&id);
    t_world_init(&world);
    for (int i = 0; i < 2; i++) {
        p.min_version = p.max_version = i ? TLS_VERSION_13 : TLS_VERSION_12;
        server[i] = t_server(&world, &p);
    }
    client = t_client(&world, &c);
    for (size_t i = 0; i < BIG; i++)
        big[i] = (char)(i * 2654435761u >> 13);
    return 0;
}

static int teardown(void **state)
{
    tls_server_ctx_free(server[0]);
    tls_server_ctx_free(server[1]);
    tls_client_ctx_free(client);
    t_world_release(&world);
    t_folder_remove();
    return 0;
}

static void open_pair(int version)
{
    t_pair_open(&pair, &world, server[version], client, "www.example.com", NULL, NULL);
}

static void connect_pair(int version)
{
    open_pair(version);
    t_pair_handshake(&pair);
    assert_int_equal(pair.server_status, 0);
    assert_int_equal(pair.client_status, 0);
}

/* A handshake is two flights a side: so many reads and writes, and none in vain. */
static void handshake_calls(void **state)
{
    for (int version = 0; version < 2; version++) {
        open_pair(version);
        /* A connection just made has nothing to read yet. */
        pair.client_sock.sock.ready = IO_WRITE;
        t_pair_handshake(&pair);
        assert_int_equal(pair.server_sock.send_calls,
                         2); /* 1.3: hello…finished, ticket; 1.2: hello…done, ticket…finished */
        assert_int_equal(pair.server_sock.recv_calls, 2);
        assert_int_equal(pair.server_sock.useless_recv_calls, 0);
        assert_int_equal(pair.client_sock.send_calls, 2);
        assert_int_equal(pair.client_sock.useless_recv_calls, 0);
        t_pair_close(&pair);
    }
}

static void one_byte_at_a_time(void **state)
{
    for (int version = 0; version < 2; version++) {
        open_pair(version);
        pair.server_sock.recv_limit = pair.server_sock.send_limit = 1;
        pair.client_sock.recv_limit = pair.client_sock.send_limit = 1;
        pair.server_sock.one_shot = pair.client_sock.one_shot = true;
        t_pair_handshake(&pair);
        assert_int_equal(pair.server_status, 0);
        assert_int_equal(pair.client_status, 0);
        t_pair_talk(&pair);
        t_pair_close(&pair);
    }
}

/* A request in the same packet as the client's Finished is found without another event. */
static void data_with_finished(void **state)
{
    for (int version = 0; version < 2; version++) {
        struct iovec iov = {"GET /", 5};
        char text[16];

        open_pair(version);
        while (pair.client_status != 0) {
            pair.client_sock.sock.ready |= IO_READ;
            pair.client_status = tls_conn_handshake(pair.client);
            /* In TLS 1.3 the client may write before the server has read its Finished. */
            if (pair.client_status == 0)
                break;
            pair.server_sock.sock.ready |= IO_READ;
            pair.server_status = tls_conn_handshake(pair.server);
        }
        assert_int_equal(tls_conn_writev(pair.client, &iov, 1, false), 5);
        pair.server_sock.sock.ready |= IO_READ;
        pair.server_status = tls_conn_handshake(pair.server);
        assert_int_equal(pair.server_status, 0);
        if (version == 1) {
            assert_true(tls_conn_pending(pair.server));
            assert_int_equal(pair.server_sock.sock.ready & IO_READ, 0);
        } else {
            pair.server_sock.sock.ready |= IO_READ;
        }
        assert_int_equal(tls_conn_read(pair.server, text, sizeof(text)), 5);
        assert_false(tls_conn_pending(pair.server));
        assert_int_equal(tls_conn_read(pair.server, text, sizeof(text)), SP_EWANTREAD);
        t_pair_close(&pair);
    }
}

/* Reads until `want` bytes are there; counts what tls_conn_read returned. */
static void read_all(struct tls_conn *c, struct t_sock *sock, struct tls_conn *from,
                     struct t_sock *from_sock, size_t want)
{
    size_t have = 0;

    for (int turn = 0; turn < 1000000 && have < want; turn++) {
        ptrdiff_t n = tls_conn_read(c, got + have, want - have);

        if (n > 0) {
            have += (size_t)n;
            continue;
        }
        assert_int_equal(n, SP_EWANTREAD);
        assert_false(tls_conn_pending(c));
        t_sock_poll(from_sock, 0);
        (void)tls_conn_flush(from);
        t_sock_poll(sock, 0);
    }
    assert_int_equal(have, want);
}

/* Four records, one call. */
static void gathered_write(void **state)
{
    int room = 1 << 20;

    for (int version = 0; version < 2; version++) {
        struct iovec iov[] = {{big, 300}, {big + 300, 65536 - 300}};
        unsigned before;

        connect_pair(version);
        setsockopt(pair.server_sock.sock.watch.fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
        before = pair.server_sock.send_calls;
        assert_int_equal(tls_conn_writev(pair.server, iov, 2, false), 65536);
        assert_int_equal(pair.server_sock.send_calls, before + 1);
        assert_int_equal(tls_conn_unsent(pair.server), 0);
        read_all(pair.client, &pair.client_sock, pair.server, &pair.server_sock, 65536);
        assert_memory_equal(got, big, 65536);
        t_pair_close(&pair);
    }
}

/* With `more` nothing is sent until the last piece, or until flush. */
static void held_back(void **state)
{
    struct iovec iov = {big, 100};
    unsigned before;

    connect_pair(1);
    before = pair.server_sock.send_calls;
    for (int i = 0; i < 5; i++)
        assert_int_equal(tls_conn_writev(pair.server, &iov, 1, true), 100);
    assert_int_equal(pair.server_sock.send_calls, before);
    assert_true(tls_conn_unsent(pair.server) > 500);
    assert_int_equal(tls_conn_writev(pair.server, &iov, 1, false), 100);
    assert_int_equal(pair.server_sock.send_calls, before + 1);
    assert_int_equal(tls_conn_unsent(pair.server), 0);
    assert_int_equal(tls_conn_writev(pair.server, &iov, 1, true), 100);
    assert_int_equal(tls_conn_flush(pair.server), 0);
    assert_int_equal(pair.server_sock.send_calls, before + 2);
    read_all(pair.client, &pair.client_sock, pair.server, &pair.server_sock, 700);
    assert_int_equal(tls_conn_writev(pair.server, &iov, 0, false), 0);
    t_pair_close(&pair);
}

/* A reader that does not read: the buffer fills to its bound, and everything arrives in the end. */
static void backpressure(void **state)
{
    for (int version = 0; version < 2; version++) {
        size_t sent = 0;
        int small = 4096;
        unsigned refused = 0;

        connect_pair(version);
        setsockopt(pair.server_sock.sock.watch.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
        while (sent < BIG && refused == 0) {
            struct iovec iov[] = {{big + sent, (BIG - sent) / 2},
                                  {big + sent + (BIG - sent) / 2, BIG - sent - (BIG - sent) / 2}};
            ptrdiff_t n = tls_conn_writev(pair.server, iov, 2, false);

            if (n > 0)
                sent += (size_t)n;
            else
                refused++;
            if (n <= 0)
                assert_int_equal(n, SP_EWANTWRITE);
            assert_true(tls_conn_unsent(pair.server) < 65536 + 17000);
        }
        assert_int_equal(refused, 1);
        assert_int_equal(tls_conn_flush(pair.server), SP_EWANTWRITE);
        read_all(pair.client, &pair.client_sock, pair.server, &pair.server_sock, sent);
        assert_memory_equal(got, big, sent);
        assert_int_equal(tls_conn_flush(pair.server), 0);
        assert_int_equal(tls_conn_unsent(pair.server), 0);
        t_pair_close(&pair);
    }
}

/* Pieces of every size, in both directions, through a narrow socket. */
static void odd_sizes(void **state)
{
    size_t sent = 0, step = 1;

    connect_pair(1);
    pair.server_sock.send_limit = 5000;
    pair.client_sock.recv_limit = 777;
    while (sent + step < BIG) {
        struct iovec iov[] = {
            {big + sent, step / 3}, {NULL, 0}, {big + sent + step / 3, step - step / 3}};
        ptrdiff_t n = tls_conn_writev(pair.server, iov, 3, false);

        assert_int_equal(n, step);
        read_all(pair.client, &pair.client_sock, pair.server, &pair.server_sock, step);
        assert_memory_equal(got, big + sent, step);
        sent += step;
        step = step * 3 / 2 + 1 > 60000 ? 1 : step * 3 / 2 + 1;
    }
    t_pair_close(&pair);
}

/* An idle connection asks the socket nothing. */
static void idle(void **state)
{
    unsigned before;
    char byte;

    connect_pair(1);
    t_pair_settle(&pair);
    before = pair.server_sock.recv_calls + pair.client_sock.recv_calls;
    assert_int_equal(tls_conn_read(pair.server, &byte, 1), SP_EWANTREAD);
    assert_int_equal(tls_conn_read(pair.client, &byte, 1), SP_EWANTREAD);
    assert_int_equal(pair.server_sock.recv_calls + pair.client_sock.recv_calls, before);
    /* A request costs one read and one write. */
    t_pair_talk(&pair);
    assert_int_equal(pair.server_sock.recv_calls + pair.client_sock.recv_calls, before + 2);
    assert_int_equal(pair.server_sock.useless_recv_calls, 0);
    t_pair_close(&pair);
}

static void close_notify(void **state)
{
    struct iovec iov = {"last words", 10};
    char text[32];

    for (int version = 0; version < 2; version++) {
        connect_pair(version);
        assert_int_equal(tls_conn_writev(pair.client, &iov, 1, true), 10);
        tls_conn_shutdown(pair.client);
        tls_conn_shutdown(pair.client);
        t_sock_close(&pair.client_sock);
        t_sock_poll(&pair.server_sock, 0);
        assert_int_equal(tls_conn_read(pair.server, text, sizeof(text)), 10);
        assert_true(tls_conn_pending(pair.server)); /* the end, which no event will tell of */
        assert_int_equal(tls_conn_read(pair.server, text, sizeof(text)), SP_EEOF);
        assert_true(tls_conn_eof_clean(pair.server));
        assert_int_equal(tls_conn_read(pair.server, text, sizeof(text)), SP_EEOF);
        assert_false(tls_conn_pending(pair.server));
        t_pair_close(&pair);
    }
}

static void abrupt_end(void **state)
{
    struct iovec iov = {"last words", 10};
    char text[32];

    for (int version = 0; version < 2; version++) {
        connect_pair(version);
        assert_int_equal(tls_conn_writev(pair.client, &iov, 1, false), 10);
        shutdown(pair.client_sock.sock.watch.fd, SHUT_WR);
        t_sock_poll(&pair.server_sock, 0);
        assert_int_equal(tls_conn_read(pair.server, text, 4), 4);
        assert_true(tls_conn_pending(pair.server));
        assert_int_equal(tls_conn_read(pair.server, text, sizeof(text)), 6);
        t_sock_poll(&pair.server_sock, 0);
        assert_int_equal(tls_conn_read(pair.server, text, sizeof(text)), SP_EEOF);
        assert_false(tls_conn_eof_clean(pair.server));
        /* The other direction is still open, as after a plain half-close. */
        assert_int_equal(tls_conn_writev(pair.server, &iov, 1, false), 10);
        t_sock_poll(&pair.client_sock, 0);
        assert_int_equal(tls_conn_read(pair.client, text, sizeof(text)), 10);
        t_pair_close(&pair);
    }
}

static void end_in_handshake(void **state)
{
    open_pair(1);
    assert_int_equal(tls_conn_handshake(pair.server), SP_EWANTREAD);
    assert_true(write(pair.client_sock.sock.watch.fd, "\x16\x03\x01", 3) == 3);
    shutdown(pair.client_sock.sock.watch.fd, SHUT_WR);
    for (int i = 0; i < 2; i++) {
        t_sock_poll(&pair.server_sock, 0);
        pair.server_status = tls_conn_handshake(pair.server);
        if (pair.server_status != SP_EWANTREAD)
            break;
    }
    assert_int_equal(pair.server_status, SP_EEOF);
    assert_string_equal(tls_conn_error_text(pair.server), "connection closed during the handshake");
    assert_int_equal(tls_conn_failure(pair.server), TLS_FAILURE_NONE);
    t_pair_close(&pair);
}

static void peer_vanishes(void **state)
{
    struct iovec iov = {big, 60000};
    int status = 0;

    connect_pair(1);
    t_sock_close(&pair.client_sock);
    for (int i = 0; i < 5 && status != SP_ERESET; i++)
        status = (int)tls_conn_writev(pair.server, &iov, 1, false);
    assert_int_equal(status, SP_ERESET);
    assert_int_equal(tls_conn_flush(pair.server) == 0 || tls_conn_flush(pair.server) == SP_ERESET,
                     1);
    tls_conn_shutdown(pair.server);
    t_pair_close(&pair);
}

/* A corrupted record: an alert to the peer and the end. */
static void bad_record(void **state)
{
    char junk[] = "\x17\x03\x03\x00\x20junkjunkjunkjunkjunkjunkjunkjunk", text[8];

    for (int version = 0; version < 2; version++) {
        connect_pair(version);
        assert_true(write(pair.client_sock.sock.watch.fd, junk, sizeof(junk) - 1) > 0);
        t_sock_poll(&pair.server_sock, 0);
        assert_int_equal(tls_conn_read(pair.server, text, sizeof(text)), SP_EPROTO);
        assert_string_equal(tls_conn_error_text(pair.server),
                            "decryption failed or bad record mac");
        assert_int_equal(tls_conn_read(pair.server, text, sizeof(text)), SP_EPROTO);
        t_sock_poll(&pair.client_sock, 0);
        assert_int_equal(tls_conn_read(pair.client, text, sizeof(text)), SP_EPROTO);
        assert_string_equal(tls_conn_error_text(pair.client), "sslv3 alert bad record mac");
        t_pair_close(&pair);
    }
}

/* Bytes read before the handshake, together with a PROXY header. */
static void fed(void **state)
{
    char hello[4096];
    ssize_t n;

    for (int cut = 0; cut < 3; cut++) {
        open_pair(1);
        assert_int_equal(tls_conn_handshake(pair.client), SP_EWANTREAD);
        n = read(pair.server_sock.sock.watch.fd, hello, sizeof(hello));
        assert_true(n > 100);
        if (cut == 0) {
            assert_int_equal(tls_conn_feed(pair.server, str_make(hello, (size_t)n)), 0);
        } else if (cut == 1) {
            assert_int_equal(tls_conn_feed(pair.server, str_make(hello, 3)), 0);
            assert_int_equal(tls_conn_feed(pair.server, str_make(hello + 3, (size_t)n - 3)), 0);
        } else {
            assert_int_equal(tls_conn_feed(pair.server, str_make(hello, 50)), 0);
            assert_true(write(pair.client_sock.sock.watch.fd, hello + 50, (size_t)n - 50) > 0);
        }
        t_pair_handshake(&pair);
        assert_int_equal(pair.server_status, 0);
        t_pair_talk(&pair);
        t_pair_close(&pair);
    }
    open_pair(1);
    assert_int_equal(tls_conn_feed(pair.server, STR("")), 0);
    assert_int_equal(tls_conn_feed(pair.server, str_make(big, 65536)), 0);
    assert_int_equal(tls_conn_feed(pair.server, str_make(big, 1)), SP_ETOOBIG);
    assert_int_equal(tls_conn_handshake(pair.server), SP_EPROTO);
    t_pair_close(&pair);
}

/* Nothing is written before the handshake is over. */
static void too_early(void **state)
{
    struct iovec iov = {"x", 1};

    open_pair(1);
    assert_int_equal(tls_conn_writev(pair.server, &iov, 1, false), SP_EINVAL);
    assert_false(tls_conn_handshake_done(pair.server));
    tls_conn_shutdown(pair.server);
    t_pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handshake_calls),    cmocka_unit_test(one_byte_at_a_time),
        cmocka_unit_test(data_with_finished), cmocka_unit_test(gathered_write),
        cmocka_unit_test(held_back),          cmocka_unit_test(backpressure),
        cmocka_unit_test(odd_sizes),          cmocka_unit_test(idle),
        cmocka_unit_test(close_notify),       cmocka_unit_test(abrupt_end),
        cmocka_unit_test(end_in_handshake),   cmocka_unit_test(peer_vanishes),
        cmocka_unit_test(bad_record),         cmocka_unit_test(fed),
        cmocka_unit_test(too_early),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
