#include "support.h"

#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <openssl/bn.h>
#include <openssl/encoder.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* --- files ------------------------------------------------------------------------ */

static char folder[64];

const char *t_folder(void)
{
    if (!folder[0]) {
        snprintf(folder, sizeof(folder), "/tmp/sp-tls-test-XXXXXX");
        if (!mkdtemp(folder))
            abort();
    }
    return folder;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)remove(path);
    return 0;
}

void t_folder_remove(void)
{
    if (folder[0])
        nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    folder[0] = '\0';
}

const char *t_path(const char *name)
{
    static char ring[16][256];
    static unsigned at;
    char *out = ring[at++ % 16];

    snprintf(out, sizeof(ring[0]), "%s/%s", t_folder(), name);
    return out;
}

void t_write(const char *name, const char *text)
{
    FILE *f = fopen(t_path(name), "w");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

void t_writef(const char *name, const char *format, ...)
{
    char text[65536];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    t_write(name, text);
}

/* --- certificates -------------------------------------------------------------------- */

static EVP_PKEY *make_dsa(void)
{
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, "DSA", NULL);
    EVP_PKEY *params = NULL, *key = NULL;

    EVP_PKEY_paramgen_init(ctx);
    EVP_PKEY_CTX_ctrl_str(ctx, "dsa_paramgen_bits", "1024");
    EVP_PKEY_paramgen(ctx, &params);
    EVP_PKEY_CTX_free(ctx);
    ctx = EVP_PKEY_CTX_new_from_pkey(NULL, params, NULL);
    EVP_PKEY_keygen_init(ctx);
    EVP_PKEY_keygen(ctx, &key);
    EVP_PKEY_CTX_free(ctx);
    EVP_PKEY_free(params);
    return key;
}

static EVP_PKEY *make_key(const char *kind)
{
    if (!kind || strcmp(kind, "EC") == 0)
        return EVP_EC_gen("P-256");
    if (strcmp(kind, "P-384") == 0)
        return EVP_EC_gen("P-384");
    if (strcmp(kind, "RSA") == 0)
        return EVP_RSA_gen(2048);
    if (strcmp(kind, "RSA1024") == 0)
        return EVP_RSA_gen(1024);
    if (strcmp(kind, "DSA") == 0)
        return make_dsa();
    return EVP_PKEY_Q_keygen(NULL, NULL, kind);
}

static void add_extension(X509 *x509, int nid, const char *value)
{
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, nid, value);

    assert_non_null(e);
    X509_add_ext(x509, e, -1);
    X509_EXTENSION_free(e);
}

static void add_entry(X509_NAME *name, const char *field, const char *value)
{
    X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8, (const unsigned char *)value, -1, -1, 0);
}

struct t_id t_id_make(const struct t_spec *spec)
{
    struct t_id id = {X509_new(), make_key(spec->key)};
    EVP_PKEY *signer = spec->issuer ? spec->issuer->key : id.key;
    X509_NAME *name = X509_get_subject_name(id.x509);
    const EVP_MD *digest = EVP_sha256();

    assert_non_null(id.key);
    X509_set_version(id.x509, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(id.x509), spec->serial ? spec->serial : 1);
    X509_gmtime_adj(X509_getm_notBefore(id.x509),
                    spec->from_s || spec->to_s ? spec->from_s : -3600);
    X509_gmtime_adj(X509_getm_notAfter(id.x509), spec->from_s || spec->to_s ? spec->to_s : 86400);
    if (spec->org) {
        add_entry(name, "C", "FR");
        add_entry(name, "O", spec->org);
    }
    if (spec->cn)
        add_entry(name, "CN", spec->cn);
    X509_set_issuer_name(id.x509, spec->issuer ? X509_get_subject_name(spec->issuer->x509) : name);
    X509_set_pubkey(id.x509, id.key);
    if (spec->is_ca)
        add_extension(id.x509, NID_basic_constraints, "critical,CA:TRUE");
    if (spec->names)
        add_extension(id.x509, NID_subject_alt_name, spec->names);
    if (EVP_PKEY_is_a(signer, "ED25519"))
        digest = NULL;
    assert_true(X509_sign(id.x509, signer, digest) > 0);
    return id;
}

void t_id_free(struct t_id *id)
{
    X509_free(id->x509);
    EVP_PKEY_free(id->key);
    *id = (struct t_id){0};
}

static char *bio_text(BIO *bio)
{
    char *data, *out;
    long len = BIO_get_mem_data(bio, &data);

    out = malloc((size_t)len + 1);
    memcpy(out, data, (size_t)len);
    out[len] = '\0';
    BIO_free(bio);
    return out;
}

char *t_pem_cert(const struct t_id *id)
{
    BIO *bio = BIO_new(BIO_s_mem());

    PEM_write_bio_X509(bio, id->x509);
    return bio_text(bio);
}

char *t_pem_key(const struct t_id *id)
{
    BIO *bio = BIO_new(BIO_s_mem());

    PEM_write_bio_PKCS8PrivateKey(bio, id->key, NULL, NULL, 0, NULL, NULL);
    return bio_text(bio);
}

char *t_pem_key_traditional(const struct t_id *id)
{
    BIO *bio = BIO_new(BIO_s_mem());

    PEM_write_bio_PrivateKey_traditional(bio, id->key, NULL, NULL, 0, NULL, NULL);
    return bio_text(bio);
}

void t_write_bundle(const char *name, const struct t_id *id, const struct t_id *chain)
{
    char *cert = t_pem_cert(id), *key = t_pem_key(id), *issuer = chain ? t_pem_cert(chain) : NULL;

    t_writef(name, "%s%s%s", cert, issuer ? issuer : "", key);
    free(cert);
    free(key);
    free(issuer);
}

void t_write_crl(const char *name, const struct t_id *issuer, long serial, long to_s)
{
    X509_CRL *crl = X509_CRL_new();
    ASN1_TIME *time = ASN1_TIME_new();
    BIO *bio = BIO_new(BIO_s_mem());
    char *text;

    X509_CRL_set_version(crl, X509_CRL_VERSION_2);
    X509_CRL_set_issuer_name(crl, X509_get_subject_name(issuer->x509));
    X509_gmtime_adj(time, -7200);
    X509_CRL_set1_lastUpdate(crl, time);
    if (serial) {
        X509_REVOKED *revoked = X509_REVOKED_new();
        ASN1_INTEGER *number = ASN1_INTEGER_new();

        ASN1_INTEGER_set(number, serial);
        X509_REVOKED_set_serialNumber(revoked, number);
        X509_REVOKED_set_revocationDate(revoked, time);
        X509_CRL_add0_revoked(crl, revoked);
        ASN1_INTEGER_free(number);
    }
    X509_gmtime_adj(time, to_s);
    X509_CRL_set1_nextUpdate(crl, time);
    assert_true(X509_CRL_sign(crl, issuer->key, EVP_sha256()) > 0);
    PEM_write_bio_X509_CRL(bio, crl);
    text = bio_text(bio);
    t_write(name, text);
    free(text);
    ASN1_TIME_free(time);
    X509_CRL_free(crl);
}

/* --- sockets ---------------------------------------------------------------------------- */

static ptrdiff_t sock_recv(struct io_sock *s, void *data, size_t len)
{
    struct t_sock *t = (struct t_sock *)s;
    ssize_t n;

    t->recv_calls++;
    if (t->recv_limit && len > t->recv_limit)
        len = t->recv_limit;
    n = recv(s->watch.fd, data, len, MSG_DONTWAIT);
    if (n > 0) {
        if (t->one_shot || (!t->recv_limit && (size_t)n < len))
            s->ready &= (uint8_t)~IO_READ;
        return n;
    }
    s->ready &= (uint8_t)~IO_READ;
    if (n == 0) {
        s->read_closed = true;
        return SP_EEOF;
    }
    if (errno == EAGAIN) {
        t->useless_recv_calls++;
        return SP_EAGAIN;
    }
    s->error = errno;
    s->read_closed = s->write_closed = true;
    return SP_ERESET;
}

static ptrdiff_t sock_sendv(struct io_sock *s, const struct iovec *iov, int count, bool more)
{
    struct t_sock *t = (struct t_sock *)s;
    struct iovec own[32];
    struct msghdr message = {.msg_iov = own, .msg_iovlen = (size_t)count};
    size_t total = 0;
    ssize_t n;

    t->send_calls++;
    for (int i = 0; i < count; i++) {
        own[i] = iov[i];
        if (t->send_limit && total + own[i].iov_len > t->send_limit) {
            own[i].iov_len = t->send_limit - total;
            message.msg_iovlen = (size_t)i + 1;
            total += own[i].iov_len;
            break;
        }
        total += own[i].iov_len;
    }
    n = sendmsg(s->watch.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) {
        s->ready &= (uint8_t)~IO_WRITE;
        return SP_EAGAIN;
    }
    if (n < 0) {
        s->error = errno;
        s->read_closed = s->write_closed = true;
        return SP_ERESET;
    }
    if (t->one_shot || (size_t)n < total)
        s->ready &= (uint8_t)~IO_WRITE;
    t->sent_bytes += (size_t)n;
    return n;
}

static const struct io_transport test_transport = {
    .name = "test",
    .recv = sock_recv,
    .sendv = sock_sendv,
};

void t_sock_init(struct t_sock *s, int fd)
{
    *s = (struct t_sock){
        .sock = {.watch = {.fd = fd}, .transport = &test_transport, .ready = IO_READ | IO_WRITE}};
}

void t_sock_pair(struct t_sock *a, struct t_sock *b)
{
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    t_sock_init(a, fds[0]);
    t_sock_init(b, fds[1]);
}

void t_sock_close(struct t_sock *s)
{
    if (s->sock.watch.fd >= 0)
        close(s->sock.watch.fd);
    s->sock.watch.fd = -1;
}

void t_sock_poll(struct t_sock *s, int ms)
{
    struct pollfd p = {.fd = s->sock.watch.fd, .events = POLLIN};

    if (!(s->sock.ready & IO_WRITE))
        p.events |= POLLOUT;
    if (p.fd < 0 || poll(&p, 1, ms) <= 0)
        return;
    if (p.revents & (POLLIN | POLLHUP | POLLERR))
        s->sock.ready |= IO_READ;
    if (p.revents & (POLLOUT | POLLHUP | POLLERR))
        s->sock.ready |= IO_WRITE;
}

/* --- contexts and connections -------------------------------------------------------------- */

void t_world_init(struct t_world *w)
{
    arena_init(&w->arena, 4096, 0);
    diag_init(&w->diag, &w->arena);
    w->store = tls_store_new();
    w->worker = tls_worker_new(NULL);
    assert_non_null(w->store);
    assert_non_null(w->worker);
}

void t_world_release(struct t_world *w)
{
    tls_worker_free(w->worker);
    tls_store_free(w->store);
    arena_release(&w->arena);
}

const char *t_message(const struct t_world *w, unsigned n)
{
    const struct diag_item *item = w->diag.first;
    static char text[1024];

    while (item && n--)
        item = item->next;
    if (!item)
        return "";
    if (item->loc.file)
        snprintf(text, sizeof(text), "%s:%d: %s", item->loc.file, item->loc.line, item->text);
    else
        snprintf(text, sizeof(text), "%s", item->text);
    return text;
}

struct tls_server_params t_server_params(struct tls_cert_source *source, const char *path)
{
    *source = (struct tls_cert_source){.path = path};
    return (struct tls_server_params){
        .sources = source,
        .source_count = 1,
        .cache_entries = 1000,
        .session_lifetime_s = 300,
    };
}

static void no_errors(struct t_world *w)
{
    for (const struct diag_item *i = w->diag.first; i; i = i->next) {
        if (i->level == DIAG_ERROR)
            print_error("%s\n", i->text);
    }
    assert_int_equal(w->diag.errors, 0);
}

struct tls_server_ctx *t_server(struct t_world *w, const struct tls_server_params *p)
{
    struct tls_server_ctx *ctx = tls_server_ctx_new(w->store, p, &w->diag);

    no_errors(w);
    assert_non_null(ctx);
    return ctx;
}

struct tls_client_ctx *t_client(struct t_world *w, const struct tls_client_params *p)
{
    struct tls_client_ctx *ctx = tls_client_ctx_new(w->store, p, &w->diag);

    no_errors(w);
    assert_non_null(ctx);
    return ctx;
}

void t_pair_open(struct t_pair *p, struct t_world *w, struct tls_server_ctx *server,
                 struct tls_client_ctx *client, const char *sni, const char *alpn,
                 struct tls_session_slot *slot)
{
    *p = (struct t_pair){.server_status = SP_EWANTREAD, .client_status = SP_EWANTREAD};
    t_sock_pair(&p->server_sock, &p->client_sock);
    p->server = tls_conn_new_server(w->worker, server, &p->server_sock.sock);
    p->client = tls_conn_new_client(w->worker, client, &p->client_sock.sock, sni, alpn, slot);
    assert_non_null(p->server);
    assert_non_null(p->client);
}

static bool waits(int status)
{
    return status == SP_EWANTREAD || status == SP_EWANTWRITE || status == SP_EWANTCRYPTO;
}

void t_pair_handshake(struct t_pair *p)
{
    char byte;

    for (int turn = 0; turn < 100000 && (waits(p->client_status) || waits(p->server_status));
         turn++) {
        t_sock_poll(&p->client_sock, 0);
        if (waits(p->client_status))
            p->client_status = tls_conn_handshake(p->client);
        t_sock_poll(&p->server_sock, 0);
        if (waits(p->server_status))
            p->server_status = tls_conn_handshake(p->server);
        /* Whoever is done or has failed must not keep the other waiting. */
        if (!waits(p->client_status))
            (void)tls_conn_flush(p->client);
        if (p->client_status == 0 && p->server_status == SP_EWANTWRITE)
            (void)tls_conn_read(p->client, &byte, 1);
        if (p->client_status != 0 && !waits(p->client_status) && waits(p->server_status))
            shutdown(p->client_sock.sock.watch.fd, SHUT_WR);
        if (p->server_status != 0 && !waits(p->server_status) && waits(p->client_status))
            shutdown(p->server_sock.sock.watch.fd, SHUT_WR);
    }
}

static void exchange(struct tls_conn *from, struct t_sock *from_sock, struct tls_conn *to,
                     struct t_sock *to_sock, const char *text)
{
    struct iovec iov = {(char *)text, strlen(text)};
    char got[256];
    size_t have = 0;

    assert_int_equal(tls_conn_writev(from, &iov, 1, false), iov.iov_len);
    for (int turn = 0; turn < 100000 && have < iov.iov_len; turn++) {
        ptrdiff_t n;

        t_sock_poll(from_sock, 0);
        (void)tls_conn_flush(from);
        t_sock_poll(to_sock, 0);
        n = tls_conn_read(to, got + have, sizeof(got) - have);
        if (n > 0)
            have += (size_t)n;
        else
            assert_int_equal(n, SP_EWANTREAD);
    }
    assert_int_equal(have, iov.iov_len);
    assert_memory_equal(got, text, have);
}

void t_pair_talk(struct t_pair *p)
{
    exchange(p->client, &p->client_sock, p->server, &p->server_sock, "a question");
    exchange(p->server, &p->server_sock, p->client, &p->client_sock, "an answer, somewhat longer");
}

void t_pair_settle(struct t_pair *p)
{
    char byte;

    t_sock_poll(&p->client_sock, 0);
    assert_int_equal(tls_conn_read(p->client, &byte, 1), SP_EWANTREAD);
}

void t_pair_close(struct t_pair *p)
{
    tls_conn_free(p->server);
    tls_conn_free(p->client);
    t_sock_close(&p->server_sock);
    t_sock_close(&p->client_sock);
}

const char *t_fact(const struct tls_conn *c, enum tls_fact fact)
{
    static char text[4096];
    struct arena arena;
    struct str value;
    int status;

    arena_init(&arena, 0, 0);
    status = tls_conn_fact(c, fact, &arena, &value);
    if (status == 0)
        snprintf(text, sizeof(text), "%.*s", STR_FMT(value));
    arena_release(&arena);
    return status == 0 ? text : "-";
}
