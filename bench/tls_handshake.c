/*
 * Server-side cost of a TLS handshake: ours beside the library used plainly (a socket BIO, the
 * library's random generator, one shared library context), in one process over a Unix socket pair,
 * the two interleaved.
 *
 * usage: bench_tls_handshake [HANDSHAKES]
 * Prints microseconds (median, and the tenth percentile) from the creation of the server's
 * connection to its end, without the client's share, for a P-256 and an RSA-2048 certificate. The
 * client is the library's.
 */
#define OPENSSL_SUPPRESS_DEPRECATED /* RAND_METHOD */

#include "../tests/unit/tls/support.h"

#include "base/status.h"

#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <time.h>
#include <unistd.h>

enum { PLAIN, OURS, KINDS };

struct bench {
    int version;
    bool resume;
    SSL_CTX *client_ctx, *plain_ctx;
    struct tls_server_ctx *server_ctx;
    struct tls_worker *worker;
    SSL_SESSION *session[KINDS];
    const RAND_METHOD *random; /* ours, installed for the process: taken out for the plain runs */
};

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void die(const char *what)
{
    fprintf(stderr, "bench_tls_handshake: %s\n", what);
    ERR_print_errors_fp(stderr);
    exit(1);
}

/* The server of one handshake, whichever it is. */
struct server {
    int kind;
    SSL *ssl;
    struct tls_conn *conn;
    struct io_sock sock;
};

static void server_open(struct server *s, struct bench *b, int kind, int fd)
{
    s->kind = kind;
    if (kind == PLAIN) {
        s->ssl = SSL_new(b->plain_ctx);
        SSL_set_fd(s->ssl, fd);
        SSL_set_accept_state(s->ssl);
        return;
    }
    io_sock_init(&s->sock, NULL, fd, NULL);
    s->conn = tls_conn_new_server(b->worker, b->server_ctx, &s->sock);
    if (!s->conn)
        die("no connection");
}

/* True when the handshake is over. */
static bool server_step(struct server *s)
{
    int n;

    if (s->kind == OURS) {
        s->sock.ready |= IO_READ;
        n = tls_conn_handshake(s->conn);
        if (n != 0 && n != SP_EWANTREAD)
            die(tls_conn_error_text(s->conn));
        return n == 0;
    }
    n = SSL_do_handshake(s->ssl);
    if (n != 1 && SSL_get_error(s->ssl, n) != SSL_ERROR_WANT_READ)
        die("plain server");
    return n == 1;
}

static void server_close(struct server *s)
{
    if (s->kind == OURS) {
        tls_conn_free(s->conn);
    } else {
        SSL_set_shutdown(s->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
        SSL_free(s->ssl);
    }
}

static double one(struct bench *b, int kind)
{
    struct server server = {0};
    SSL *client = SSL_new(b->client_ctx);
    double spent = 0, start;
    bool done = false, client_done = false;
    char byte;
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) != 0)
        die("socketpair");
    RAND_set_rand_method(kind == PLAIN ? RAND_OpenSSL() : b->random);
    SSL_set_fd(client, fds[1]);
    SSL_set_connect_state(client);
    if (b->resume && b->session[kind])
        SSL_set_session(client, b->session[kind]);
    start = now_us();
    server_open(&server, b, kind, fds[0]);
    spent += now_us() - start;
    while (!done || !client_done) {
        if (!client_done)
            client_done = SSL_do_handshake(client) == 1;
        start = now_us();
        if (!done)
            done = server_step(&server);
        spent += now_us() - start;
    }
    (void)SSL_read(client, &byte, 1); /* tickets */
    if (b->resume && b->session[kind] && !SSL_session_reused(client))
        die("not resumed");
    SSL_SESSION_free(b->session[kind]);
    b->session[kind] = SSL_get1_session(client);
    start = now_us();
    server_close(&server);
    spent += now_us() - start;
    SSL_set_shutdown(client, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(client);
    close(fds[0]);
    close(fds[1]);
    ERR_clear_error();
    return spent;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void run(struct bench *b, const char *what, size_t count)
{
    double *times[KINDS];

    for (int kind = 0; kind < KINDS; kind++)
        times[kind] = calloc(count, sizeof(double));
    for (int i = 0; i < 20; i++) {
        one(b, PLAIN);
        one(b, OURS);
    }
    for (size_t i = 0; i < count; i++) {
        for (int kind = 0; kind < KINDS; kind++)
            times[kind][i] = one(b, kind);
    }
    for (int kind = 0; kind < KINDS; kind++)
        qsort(times[kind], count, sizeof(double), by_value);
    printf("%-28s %8.1f %8.1f %8.1f %8.1f\n", what, times[PLAIN][count / 2],
           times[PLAIN][count / 10], times[OURS][count / 2], times[OURS][count / 10]);
    for (int kind = 0; kind < KINDS; kind++) {
        free(times[kind]);
        SSL_SESSION_free(b->session[kind]);
        b->session[kind] = NULL;
    }
}

static SSL_CTX *plain_server(const char *path, int version)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

    if (SSL_CTX_use_certificate_chain_file(ctx, path) != 1 ||
        SSL_CTX_use_PrivateKey_file(ctx, path, SSL_FILETYPE_PEM) != 1)
        die("certificate");
    SSL_CTX_set_min_proto_version(ctx, version);
    SSL_CTX_set_max_proto_version(ctx, version);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_num_tickets(ctx, 1);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    return ctx;
}

static SSL_CTX *plain_client(int version)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

    SSL_CTX_set_min_proto_version(ctx, version);
    SSL_CTX_set_max_proto_version(ctx, version);
    SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256");
    SSL_CTX_set_cipher_list(ctx, "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256");
    SSL_CTX_set1_groups_list(ctx, "X25519:P-256"); /* the second for the certificate in TLS 1.2 */
    return ctx;
}

static void bench_certificate(const char *path, const char *name, size_t count)
{
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        struct tls_cert_source source;
        struct tls_server_params params = t_server_params(&source, path);
        struct bench b = {.version = version};
        struct t_world w;
        char what[64];

        b.client_ctx = plain_client(version);
        b.plain_ctx = plain_server(path, version);
        params.min_version = params.max_version =
            version == TLS1_2_VERSION ? TLS_VERSION_12 : TLS_VERSION_13;
        t_world_init(&w);
        b.worker = w.worker;
        b.random = RAND_get_rand_method();
        b.server_ctx = tls_server_ctx_new(w.store, &params, &w.diag);
        if (!b.server_ctx)
            die(t_message(&w, 0));
        for (int resume = 0; resume < 2; resume++) {
            b.resume = resume;
            snprintf(what, sizeof(what), "%s TLS 1.%d %s", name, version - TLS1_VERSION,
                     resume ? "resumed" : "full");
            run(&b, what, count);
        }
        RAND_set_rand_method(b.random);
        tls_server_ctx_free(b.server_ctx);
        t_world_release(&w);
        SSL_CTX_free(b.client_ctx);
        SSL_CTX_free(b.plain_ctx);
    }
}

int main(int argc, char **argv)
{
    uint64_t count = 1000;
    struct t_id ec = t_id_make(&(struct t_spec){.cn = "bench.example.com"});
    struct t_id rsa = t_id_make(&(struct t_spec){.cn = "bench.example.com", .key = "RSA"});

    if (argc > 1 && (str_to_u64(str_of(argv[1]), &count) != 0 || count == 0))
        die("usage: bench_tls_handshake [HANDSHAKES]");
    t_write_bundle("ec.pem", &ec, NULL);
    t_write_bundle("rsa.pem", &rsa, NULL);
    t_id_free(&ec);
    t_id_free(&rsa);
    printf("%s, us a handshake, server side\n%-28s %17s %17s\n%-28s %8s %8s %8s %8s\n",
           tls_library_text(), "", "library", "sallyport", "", "median", "p10", "median", "p10");
    bench_certificate(t_path("ec.pem"), "P-256", count);
    bench_certificate(t_path("rsa.pem"), "RSA-2048", count);
    t_folder_remove();
    return 0;
}
