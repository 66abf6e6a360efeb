/* Against the openssl program: its client at our server, our client at its server. */
#include "support.h"

#include "base/status.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static struct t_world world;

/* --- running the program ------------------------------------------------------------------ */

struct child {
    pid_t pid;
    int out; /* what it prints, standard error included */
    int in;  /* what it reads; -1 when closed */
    char text[65536];
    size_t len;
};

static void child_start(struct child *c, const char *const *args)
{
    int out[2], in[2];

    assert_int_equal(pipe(out), 0);
    assert_int_equal(pipe(in), 0);
    *c = (struct child){.pid = fork(), .out = out[0], .in = in[1]};
    if (c->pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        dup2(out[1], 2);
        for (int fd = 3; fd < 64; fd++)
            close(fd);
        /* The program is not built with the sanitizers that this test may be. */
        unsetenv("LD_PRELOAD");
        execvp("openssl", (char *const *)args);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    fcntl(c->out, F_SETFL, O_NONBLOCK);
}

static void child_read(struct child *c)
{
    ssize_t n = read(c->out, c->text + c->len, sizeof(c->text) - 1 - c->len);

    if (n > 0)
        c->len += (size_t)n;
    c->text[c->len] = '\0';
}

/* Waits for the end; answers the exit status. */
static int child_end(struct child *c)
{
    int status = -1;

    if (c->in >= 0)
        close(c->in);
    for (int i = 0; i < 10000; i++) {
        struct pollfd p = {c->out, POLLIN, 0};
        size_t before = c->len;

        poll(&p, 1, 10);
        child_read(c);
        if (c->len == before && waitpid(c->pid, &status, WNOHANG) == c->pid)
            break;
        if (i == 3000)
            kill(c->pid, SIGKILL);
    }
    child_read(c);
    close(c->out);
    return status;
}

static bool have_openssl(void)
{
    static const char *const args[] = {"openssl", "version", NULL};
    static int known = -1;

    if (known < 0) {
        struct child c;

        child_start(&c, args);
        known = child_end(&c) == 0;
    }
    return known;
}

/* --- our server ------------------------------------------------------------------------------- */

static int listen_local(uint16_t *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    *port = ntohs(a.sin_port);
    return fd;
}

struct result {
    int status; /* of the handshake */
    char cipher[64], version[16], alpn[16], sni[64], own[64], peer[64], error[80];
    bool resumed;
    char request[64];
    char output[65536]; /* of s_client */
};

static void take_facts(struct tls_conn *c, struct result *r)
{
    snprintf(r->cipher, sizeof(r->cipher), "%s", t_fact(c, TLS_FACT_CIPHER));
    snprintf(r->version, sizeof(r->version), "%s", t_fact(c, TLS_FACT_VERSION));
    snprintf(r->alpn, sizeof(r->alpn), "%s", t_fact(c, TLS_FACT_ALPN));
    snprintf(r->sni, sizeof(r->sni), "%s", t_fact(c, TLS_FACT_SNI));
    snprintf(r->own, sizeof(r->own), "%s", t_fact(c, TLS_FACT_OWN_KEY_ALG));
    snprintf(r->peer, sizeof(r->peer), "%s", t_fact(c, TLS_FACT_PEER_SUBJECT));
    snprintf(r->error, sizeof(r->error), "%s", tls_conn_error_text(c));
    r->resumed = tls_conn_number(c, TLS_NUMBER_IS_RESUMED);
}

/* Handshake, one line in, one line out, close. */
static void serve(struct tls_server_ctx *ctx, int fd, struct result *r)
{
    struct iovec answer = {"an answer\n", 10};
    struct t_sock sock;
    struct tls_conn *c;
    size_t have = 0;

    t_sock_init(&sock, fd);
    c = tls_conn_new_server(world.worker, ctx, &sock.sock);
    assert_non_null(c);
    while ((r->status = tls_conn_handshake(c)) == SP_EWANTREAD || r->status == SP_EWANTWRITE)
        t_sock_poll(&sock, 1000);
    take_facts(c, r);
    while (r->status == 0 && have < sizeof(r->request) - 1 && !memchr(r->request, '\n', have)) {
        ptrdiff_t n = tls_conn_read(c, r->request + have, sizeof(r->request) - 1 - have);

        if (n > 0)
            have += (size_t)n;
        else if (n == SP_EWANTREAD)
            t_sock_poll(&sock, 1000);
        else
            break;
    }
    if (r->status == 0) {
        assert_int_equal(tls_conn_writev(c, &answer, 1, true), 10);
        tls_conn_shutdown(c);
        take_facts(c, r);
    }
    tls_conn_free(c);
    shutdown(fd, SHUT_WR);
    /* Until the other side has read everything: closing earlier might reset the connection. */
    for (char byte; recv(fd, &byte, 1, 0) > 0;)
        continue;
    t_sock_close(&sock);
}

static struct result s_client(struct tls_server_ctx *ctx, const char *const *extra)
{
    const char *args[32] = {"openssl", "s_client", "-ign_eof", "-connect"};
    struct result r = {0};
    struct child c;
    char address[32];
    uint16_t port;
    int fd, listener = listen_local(&port), n = 4;

    snprintf(address, sizeof(address), "127.0.0.1:%u", port);
    args[n++] = address;
    while (*extra)
        args[n++] = *extra++;
    child_start(&c, args);
    assert_int_equal(write(c.in, "a question\n", 11), 11);
    fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(fd >= 0);
    serve(ctx, fd, &r);
    child_end(&c);
    close(listener);
    snprintf(r.output, sizeof(r.output), "%s", c.text);
    return r;
}

#define S_CLIENT(ctx, ...) s_client(ctx, (const char *const[]){__VA_ARGS__, NULL})

static void expect_exchange(const struct result *r)
{
    if (r->status)
        print_error("%d %s\n%s\n", r->status, r->error, r->output);
    assert_int_equal(r->status, 0);
    assert_string_equal(r->request, "a question\n");
    assert_non_null(strstr(r->output, "an answer\n"));
}

static struct tls_cert_source sources[] = {{.path = "www.pem"}, {.path = "both.pem"}};

static struct tls_server_params params(void)
{
    struct tls_server_params p = t_server_params(&sources[0], "www.pem");

    p.sources = sources;
    p.source_count = 2;
    p.crt_base = p.ca_base = t_folder();
    p.alpn = "h2,http/1.1";
    return p;
}

static void client_versions(void **state)
{
    struct tls_server_params p = params();
    struct tls_server_ctx *ctx;
    struct result r;

    if (!have_openssl())
        skip();
    p.ciphers = "ALL:@SECLEVEL=0";
    p.min_version = TLS_VERSION_10;
    ctx = t_server(&world, &p);
    r = S_CLIENT(ctx, "-tls1_3", "-servername", "www.example.com", "-alpn", "http/1.1");
    expect_exchange(&r);
    assert_string_equal(r.version, "TLSv1.3");
    assert_string_equal(r.alpn, "http/1.1");
    assert_string_equal(r.sni, "www.example.com");
    assert_non_null(strstr(r.output, "ALPN protocol: http/1.1"));
    assert_non_null(strstr(r.output, "Compression: NONE"));
    assert_non_null(strstr(r.output, "Secure Renegotiation IS NOT supported"));
    r = S_CLIENT(ctx, "-tls1_2", "-servername", "www.example.com", "-alpn", "spdy/1,h2");
    expect_exchange(&r);
    assert_string_equal(r.version, "TLSv1.2");
    assert_string_equal(r.alpn, "h2");
    r = S_CLIENT(ctx, "-tls1_1", "-servername", "www.example.com", "-cipher", "ALL:@SECLEVEL=0");
    expect_exchange(&r);
    assert_string_equal(r.version, "TLSv1.1");
    r = S_CLIENT(ctx, "-tls1_2", "-noservername", "-alpn", "spdy/1");
    expect_exchange(&r);
    assert_string_equal(r.sni, "-");
    assert_non_null(strstr(r.output, "No ALPN negotiated"));
    tls_server_ctx_free(ctx);
}

static void client_chooses(void **state)
{
    struct tls_server_params p = params();
    struct tls_server_ctx *ctx;
    struct result r;

    if (!have_openssl())
        skip();
    ctx = t_server(&world, &p);
    r = S_CLIENT(ctx, "-servername", "both.example.com");
    expect_exchange(&r);
    assert_string_equal(r.own, "id-ecPublicKey");
    r = S_CLIENT(ctx, "-servername", "both.example.com", "-sigalgs", "RSA-PSS+SHA256:RSA+SHA256");
    expect_exchange(&r);
    assert_string_equal(r.own, "rsaEncryption");
    r = S_CLIENT(ctx, "-servername", "both.example.com", "-tls1_2", "-cipher",
                 "ECDHE-RSA-AES128-GCM-SHA256");
    expect_exchange(&r);
    assert_string_equal(r.own, "rsaEncryption");
    assert_string_equal(r.cipher, "ECDHE-RSA-AES128-GCM-SHA256");
    r = S_CLIENT(ctx, "-servername", "x.w.example.com", "-verify_hostname", "x.w.example.com",
                 "-CAfile", t_path("ca.pem"), "-verify_return_error");
    expect_exchange(&r);
    assert_non_null(strstr(r.output, "Verification: OK"));
    tls_server_ctx_free(ctx);
}

static void client_strict(void **state)
{
    struct tls_server_params p = params();
    struct tls_server_ctx *ctx;
    struct result r;

    if (!have_openssl())
        skip();
    p.strict_sni = true;
    ctx = t_server(&world, &p);
    r = S_CLIENT(ctx, "-servername", "unknown.com");
    assert_int_equal(r.status, SP_EPROTO);
    assert_string_equal(r.error, "no certificate for this server name");
    assert_non_null(strstr(r.output, "tlsv1 unrecognized name"));
    tls_server_ctx_free(ctx);
}

static void client_resumes(void **state)
{
    static const char *const versions[] = {"-tls1_2", "-tls1_3"};

    if (!have_openssl())
        skip();
    for (int i = 0; i < 4; i++) {
        struct tls_server_params p = params();
        struct tls_server_ctx *ctx;
        struct result r;

        p.no_tickets = i >= 2;
        ctx = t_server(&world, &p);
        unlink(t_path("session"));
        r = S_CLIENT(ctx, versions[i % 2], "-servername", "www.example.com", "-sess_out",
                     t_path("session"));
        expect_exchange(&r);
        assert_false(r.resumed);
        r = S_CLIENT(ctx, versions[i % 2], "-servername", "www.example.com", "-sess_in",
                     t_path("session"));
        expect_exchange(&r);
        assert_true(r.resumed);
        assert_non_null(strstr(r.output, "Reused, "));
        tls_server_ctx_free(ctx);
    }
}

static void client_identifies(void **state)
{
    struct tls_server_params p = params();
    struct tls_server_ctx *ctx;
    struct result r;

    if (!have_openssl())
        skip();
    p.verify = TLS_VERIFY_REQUIRED;
    p.ca_file = "ca.pem";
    ctx = t_server(&world, &p);
    r = S_CLIENT(ctx, "-cert", t_path("client.pem"), "-key", t_path("client.pem"));
    expect_exchange(&r);
    assert_string_equal(r.peer, "/CN=client");
    assert_non_null(strstr(r.output, "CN = Test CA")); /* acceptable authorities */
    r = S_CLIENT(ctx, "-tls1_2");
    assert_int_equal(r.status, SP_EPROTO);
    assert_string_equal(r.error, "peer did not return a certificate");
    tls_server_ctx_free(ctx);
}

/* A client that asks for a renegotiation is told no, and the connection lives on. */
static void client_renegotiates(void **state)
{
    struct tls_server_params p = params();
    struct tls_server_ctx *ctx = t_server(&world, &p);
    SSL_CTX *client_ctx = SSL_CTX_new(TLS_client_method());
    SSL *client = SSL_new(client_ctx);
    struct t_sock sock, other;
    struct tls_conn *c;
    char text[16];
    int status = SP_EWANTREAD, done = 0;

    t_sock_pair(&sock, &other);
    fcntl(other.sock.watch.fd, F_SETFL, O_NONBLOCK);
    SSL_set_max_proto_version(client, TLS1_2_VERSION);
    SSL_set_fd(client, other.sock.watch.fd);
    SSL_set_connect_state(client);
    c = tls_conn_new_server(world.worker, ctx, &sock.sock);
    for (int i = 0; i < 100 && (status || done != 1); i++) {
        done = SSL_do_handshake(client);
        t_sock_poll(&sock, 0);
        status = tls_conn_handshake(c);
    }
    assert_int_equal(status, 0);
    assert_int_equal(done, 1);
    assert_int_equal(SSL_renegotiate(client), 1);
    assert_int_equal(SSL_do_handshake(client), -1);
    t_sock_poll(&sock, 0);
    assert_int_equal(tls_conn_read(c, text, sizeof(text)), SP_EWANTREAD);
    assert_int_equal(SSL_do_handshake(client), -1);
    assert_int_equal(ERR_GET_REASON(ERR_peek_error()), SSL_R_NO_RENEGOTIATION);
    ERR_clear_error();
    tls_conn_free(c);
    SSL_free(client);
    SSL_CTX_free(client_ctx);
    t_sock_close(&sock);
    t_sock_close(&other);
    tls_server_ctx_free(ctx);
}

/* --- our client ----------------------------------------------------------------------- */

static struct child s_server_start(uint16_t *port, const char *const *extra)
{
    const char *args[40] = {"openssl", "s_server", "-accept", "127.0.0.1:0", "-www", "-cert"};
    struct child c;
    int n = 6;
    char *at = NULL;

    args[n++] = t_path("www.pem");
    args[n++] = "-key";
    args[n++] = t_path("www.pem");
    while (*extra)
        args[n++] = *extra++;
    child_start(&c, args);
    for (int i = 0; i < 1000 && !at; i++) {
        struct pollfd p = {c.out, POLLIN, 0};

        poll(&p, 1, 10);
        child_read(&c);
        at = strstr(c.text, "ACCEPT 127.0.0.1:");
        if (at && !strchr(at, '\n'))
            at = NULL;
    }
    assert_non_null(at);
    *port = (uint16_t)strtoul(at + 17, NULL, 10);
    return c;
}

static int connect_local(uint16_t port)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    return fd;
}

/* Asks for the status page. */
static void fetch(struct tls_client_ctx *ctx, uint16_t port, const char *sni, const char *alpn,
                  struct tls_session_slot *slot, struct result *r)
{
    struct iovec request = {"GET / HTTP/1.0\r\n\r\n", 18};
    struct t_sock sock;
    struct tls_conn *c;
    size_t have = 0;

    *r = (struct result){0};
    t_sock_init(&sock, connect_local(port));
    c = tls_conn_new_client(world.worker, ctx, &sock.sock, sni, alpn, slot);
    assert_non_null(c);
    while ((r->status = tls_conn_handshake(c)) == SP_EWANTREAD || r->status == SP_EWANTWRITE)
        t_sock_poll(&sock, 1000);
    take_facts(c, r);
    if (r->status == 0)
        assert_int_equal(tls_conn_writev(c, &request, 1, false), 18);
    while (r->status == 0 && have < sizeof(r->output) - 1) {
        ptrdiff_t n = tls_conn_read(c, r->output + have, sizeof(r->output) - 1 - have);

        if (n > 0)
            have += (size_t)n;
        else if (n == SP_EWANTREAD)
            t_sock_poll(&sock, 1000);
        else
            break;
    }
    tls_conn_shutdown(c);
    tls_conn_free(c);
    t_sock_close(&sock);
}

static void server_versions(void **state)
{
    static const char *const versions[] = {"-tls1_2", "-tls1_3"};

    if (!have_openssl())
        skip();
    for (int i = 0; i < 2; i++) {
        const char *const extra[] = {versions[i], "-alpn",   "http/1.1",       "-Verify",
                                     "1",         "-CAfile", t_path("ca.pem"), NULL};
        struct tls_client_params p = {.verify = TLS_VERIFY_REQUIRED,
                                      .ca_file = t_path("ca.pem"),
                                      .crt = t_path("client.pem")};
        struct tls_client_ctx *ctx = t_client(&world, &p);
        struct tls_session_slot *slot = tls_session_slot_new();
        struct result r;
        uint16_t port;
        struct child c = s_server_start(&port, extra);

        for (int n = 0; n < 3; n++) {
            fetch(ctx, port, "www.example.com", "h2,http/1.1", slot, &r);
            assert_int_equal(r.status, 0);
            assert_string_equal(r.version, i ? "TLSv1.3" : "TLSv1.2");
            assert_string_equal(r.alpn, "http/1.1");
            assert_string_equal(r.peer, "/CN=www.example.com");
            assert_non_null(strstr(r.output, "HTTP/1.0 200 ok"));
            assert_int_equal(r.resumed, n > 0);
            assert_non_null(strstr(r.output, n ? "Reused, " : "New, "));
        }
        fetch(ctx, port, "wrong.example.com", NULL, slot, &r);
        assert_int_equal(r.status, SP_EPROTO);
        assert_string_equal(r.error, "certificate verify failed");
        tls_session_slot_free(slot);
        tls_client_ctx_free(ctx);
        kill(c.pid, SIGTERM);
        child_end(&c);
    }
}

static int setup(void **state)
{
    struct t_id ca = t_id_make(&(struct t_spec){.cn = "Test CA", .is_ca = true});
    struct t_id www =
        t_id_make(&(struct t_spec){.cn = "www.example.com",
                                   .issuer = &ca,
                                   .names = "DNS:www.example.com,DNS:*.w.example.com"});
    struct t_id rsa =
        t_id_make(&(struct t_spec){.cn = "both.example.com", .key = "RSA", .issuer = &ca});
    struct t_id ec = t_id_make(&(struct t_spec){.cn = "both.example.com", .issuer = &ca});
    struct t_id client = t_id_make(&(struct t_spec){.cn = "client", .issuer = &ca});
    struct t_id *all[] = {&ca, &www, &rsa, &ec, &client};
    char *pem = t_pem_cert(&ca);

    signal(SIGPIPE, SIG_IGN);
    t_write("ca.pem", pem);
    free(pem);
    t_write_bundle("www.pem", &www, &ca);
    t_write_bundle("both.pem.rsa", &rsa, &ca);
    t_write_bundle("both.pem.ecdsa", &ec, &ca);
    t_write_bundle("client.pem", &client, NULL);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        t_id_free(all[i]);
    t_world_init(&world);
    return 0;
}

static int teardown(void **state)
{
    t_world_release(&world);
    t_folder_remove();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(client_versions),   cmocka_unit_test(client_chooses),
        cmocka_unit_test(client_strict),     cmocka_unit_test(client_resumes),
        cmocka_unit_test(client_identifies), cmocka_unit_test(client_renegotiates),
        cmocka_unit_test(server_versions),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
