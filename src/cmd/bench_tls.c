/*
 * Handshakes between two ends in one process, without sockets: bytes go through buffers, and the time of the server's
 * side and of the client's is taken apart. Several handshakes are under way at a time, as in a busy worker, so that the
 * crypto queue has batches.
 */
#include "cmd/bench_tls.h"

#include "base/str.h"
#include "tls/tls.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define END_BYTES 65536
#define IN_FLIGHT_MAX 64
#define DEFAULT_IN_FLIGHT 16
#define DEFAULT_DURATION_US 1000000
#define ROUNDS_MAX 1000 /* of one batch: more means that the two ends wait for each other */

static const char usage[] =
    "usage: sallyport bench tls [--key LIST] [--tls LIST] [--backend LIST] [--in-flight N]\n"
    "                           [--count N | -d TIME] [--json]\n"
    "\n"
    "Full TLS handshakes in memory, without sockets: CPU time of the server's side and of the client's "
    "apart.\n"
    "\n"
    "  --key LIST      rsa2048,rsa3072,rsa4096,p256: of the server's certificate (rsa2048,p256)\n"
    "  --tls LIST      1.2,1.3 (both)\n"
    "  --backend LIST  openssl,multibuffer: of the server's private-key operations (both, where the machine "
    "has both);\n"
    "                  the client's side is always OpenSSL's\n"
    "  --in-flight N   handshakes at a time, 1 to 64 (16)\n"
    "  --count N       handshakes of each variant\n"
    "  -d TIME         time of each variant, unless --count is given (1s)\n"
    "  --json          one JSON object instead of the table\n";

static const struct key_kind {
    const char *name, *type;
    unsigned bits; /* 0: P-256 */
} key_kinds[] = {
    {"rsa2048", "RSA", 2048}, {"rsa3072", "RSA", 3072}, {"rsa4096", "RSA", 4096}, {"p256", "EC", 0}};
#define KEYS (sizeof(key_kinds) / sizeof(key_kinds[0]))

static const char *const version_names[] = {"1.2", "1.3"};
static const char *const backend_names[] = {"openssl", "multibuffer"};

struct arguments {
    unsigned keys, versions, backends; /* bits */
    uint64_t in_flight, count;
    int64_t duration_us;
    bool json;
};

/* --- ends in memory ------------------------------------------------------------------------- */

struct end {
    struct io_sock sock; /* first member */
    struct end *peer;
    size_t at, len; /* what has come and was not read */
    char bytes[END_BYTES];
};

static ptrdiff_t end_recv(struct io_sock *sock, void *data, size_t len)
{
    struct end *e = (struct end *)sock;
    size_t n = e->len - e->at < len ? e->len - e->at : len;

    if (n == 0)
        return SP_EAGAIN;
    memcpy(data, e->bytes + e->at, n);
    e->at += n;
    if (e->at == e->len)
        e->at = e->len = 0;
    return (ptrdiff_t)n;
}

static ptrdiff_t end_sendv(struct io_sock *sock, const struct iovec *iov, int count, bool more)
{
    struct end *to = ((struct end *)sock)->peer;
    size_t sum = 0;

    (void)more;
    for (int i = 0; i < count; i++) {
        size_t n = END_BYTES - to->len < iov[i].iov_len ? END_BYTES - to->len : iov[i].iov_len;

        memcpy(to->bytes + to->len, iov[i].iov_base, n);
        to->len += n;
        sum += n;
    }
    return sum ? (ptrdiff_t)sum : SP_EAGAIN;
}

static int end_watch(struct io_sock *sock, unsigned events)
{
    (void)sock;
    (void)events;
    return 0;
}

static void end_event(struct io_sock *sock, unsigned events)
{
    (void)sock;
    (void)events;
}

static const struct io_transport memory_transport = {
    .name = "memory", .watch = end_watch, .recv = end_recv, .sendv = end_sendv};

static void end_init(struct end *e, struct end *peer, struct io_loop *loop)
{
    e->sock = (struct io_sock){.watch = {.fd = -1},
                               .loop = loop,
                               .transport = &memory_transport,
                               .ready = IO_READ | IO_WRITE,
                               .on_event = end_event};
    e->peer = peer;
    e->at = e->len = 0;
}

/* --- one variant ------------------------------------------------------------------------------ */

struct pair {
    struct end server_end, client_end;
    struct tls_conn *server, *client;
    bool server_done, client_done;
};

/* A message that wakes the loop and ends its run with that turn, at whose end the queue runs what has gathered. */
struct stopper {
    struct io_message message; /* first member */
    struct io_loop *loop;
};

static void stop_loop(struct io_message *m)
{
    io_loop_stop(((struct stopper *)m)->loop);
}

struct bench {
    size_t in_flight;
    struct pair *pairs;
    struct io_loop *loop; /* NULL: operations run inline */
    struct stopper stopper;
    struct tls_store *store;
    struct tls_server_ctx *server_ctx;
    struct tls_client_ctx *client_ctx;
    struct tls_worker *server_worker, *client_worker;
    struct arena arena;
    const char *why;
    uint64_t handshakes, server_ns, client_ns;
};

static uint64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* 0, or SP_EPROTO: the handshake failed. */
static int step(struct bench *b, struct tls_conn *c, struct end *e, bool *done)
{
    int status;

    if (*done)
        return 0;
    e->sock.ready |= IO_READ | IO_WRITE;
    status = tls_conn_handshake(c);
    *done = status == 0;
    if (status == 0 || status == SP_EWANTREAD || status == SP_EWANTWRITE || status == SP_EWANTCRYPTO)
        return 0;
    b->why = tls_conn_error_text(c);
    return SP_EPROTO;
}

static int step_servers(struct bench *b)
{
    int status = 0;

    for (size_t i = 0; i < b->in_flight && status == 0; i++)
        status = step(b, b->pairs[i].server, &b->pairs[i].server_end, &b->pairs[i].server_done);
    if (b->loop) {
        io_loop_post(b->loop, &b->stopper.message);
        io_loop_run(b->loop);
    }
    return status;
}

static int step_clients(struct bench *b)
{
    int status = 0;

    for (size_t i = 0; i < b->in_flight && status == 0; i++)
        status = step(b, b->pairs[i].client, &b->pairs[i].client_end, &b->pairs[i].client_done);
    return status;
}

static bool all_done(const struct bench *b)
{
    for (size_t i = 0; i < b->in_flight; i++)
        if (!b->pairs[i].server_done || !b->pairs[i].client_done)
            return false;
    return true;
}

static int open_pairs(struct bench *b, uint64_t *server_ns, uint64_t *client_ns)
{
    uint64_t start_ns = cpu_ns(), middle_ns;

    for (size_t i = 0; i < b->in_flight; i++) {
        struct pair *p = &b->pairs[i];

        p->server_done = p->client_done = false;
        end_init(&p->server_end, &p->client_end, b->loop);
        end_init(&p->client_end, &p->server_end, NULL);
        p->server = tls_conn_new_server(b->server_worker, b->server_ctx, &p->server_end.sock);
    }
    middle_ns = cpu_ns();
    for (size_t i = 0; i < b->in_flight; i++)
        b->pairs[i].client = tls_conn_new_client(
            b->client_worker, b->client_ctx, &b->pairs[i].client_end.sock, "bench.example.com", NULL, NULL);
    *server_ns += middle_ns - start_ns;
    *client_ns += cpu_ns() - middle_ns;
    for (size_t i = 0; i < b->in_flight; i++)
        if (!b->pairs[i].server || !b->pairs[i].client)
            return SP_ENOMEM;
    return 0;
}

static void close_pairs(struct bench *b, uint64_t *server_ns, uint64_t *client_ns)
{
    uint64_t start_ns = cpu_ns(), middle_ns;

    for (size_t i = 0; i < b->in_flight; i++) {
        tls_conn_free(b->pairs[i].server);
        b->pairs[i].server = NULL;
    }
    middle_ns = cpu_ns();
    for (size_t i = 0; i < b->in_flight; i++) {
        tls_conn_free(b->pairs[i].client);
        b->pairs[i].client = NULL;
    }
    *server_ns += middle_ns - start_ns;
    *client_ns += cpu_ns() - middle_ns;
}

static int run_batch(struct bench *b)
{
    uint64_t server_ns = 0, client_ns = 0;
    int status = open_pairs(b, &server_ns, &client_ns);

    for (unsigned round = 0; status == 0 && !all_done(b); round++) {
        uint64_t start_ns = cpu_ns(), middle_ns;

        status = step_clients(b);
        middle_ns = cpu_ns();
        if (status == 0)
            status = step_servers(b);
        client_ns += middle_ns - start_ns;
        server_ns += cpu_ns() - middle_ns;
        if (round == ROUNDS_MAX) {
            b->why = "the two ends wait for each other";
            status = SP_EPROTO;
        }
    }
    close_pairs(b, &server_ns, &client_ns);
    if (status == 0) {
        b->handshakes += b->in_flight;
        b->server_ns += server_ns;
        b->client_ns += client_ns;
    }
    return status;
}

static int new_server_worker(struct bench *b, bool multibuffer)
{
    struct tls_crypto_options options = {0};

    if (multibuffer) {
        b->loop = io_loop_new();
        if (!b->loop)
            return SP_ENOMEM;
        options.loop = b->loop;
        sp_queue_options_init(&options.queue);
        options.queue.policy[SP_BACKEND_MULTIBUFFER] = SP_POLICY_PREFER;
        options.queue.policy[SP_BACKEND_THREADS] = SP_POLICY_OFF;
    }
    b->server_worker = tls_worker_new(multibuffer ? &options : NULL);
    if (!b->server_worker)
        return SP_ENOMEM;
    tls_worker_start(b->server_worker);
    b->stopper = (struct stopper){.message = {.run = stop_loop}, .loop = b->loop};
    return 0;
}

static int bench_init(struct bench *b, const char *pem, unsigned version, bool multibuffer)
{
    enum tls_version tls = version ? TLS_VERSION_13 : TLS_VERSION_12;
    struct tls_cert_source source = {.path = pem};
    struct tls_server_params server = {
        .sources = &source, .source_count = 1, .min_version = tls, .max_version = tls};
    struct tls_client_params client = {.min_version = tls, .max_version = tls, .verify = TLS_VERIFY_NONE};
    struct diag diag;

    arena_init(&b->arena, 4096, 0);
    diag_init(&diag, &b->arena);
    b->pairs = calloc(b->in_flight, sizeof(*b->pairs));
    b->store = tls_store_new();
    b->client_worker = tls_worker_new(NULL);
    if (!b->pairs || !b->store || !b->client_worker || new_server_worker(b, multibuffer) != 0)
        return SP_ENOMEM;
    tls_worker_start(b->client_worker);
    b->server_ctx = tls_server_ctx_new(b->store, &server, &diag);
    b->client_ctx = tls_client_ctx_new(b->store, &client, &diag);
    if (!b->server_ctx || !b->client_ctx) {
        b->why = diag.first ? diag.first->text : "no context";
        return SP_EINVAL;
    }
    return 0;
}

static void bench_release(struct bench *b)
{
    if (b->server_worker)
        tls_worker_stop(b->server_worker);
    if (b->client_worker)
        tls_worker_stop(b->client_worker);
    tls_server_ctx_free(b->server_ctx);
    tls_client_ctx_free(b->client_ctx);
    tls_worker_free(b->server_worker);
    tls_worker_free(b->client_worker);
    tls_store_free(b->store);
    io_loop_free(b->loop);
    arena_release(&b->arena);
    free(b->pairs);
}

/* --- the certificate --------------------------------------------------------------------------- */

/* Certificate and key as PEM in a memory file; its descriptor, or -1. */
static int make_certificate(const struct key_kind *kind)
{
    EVP_PKEY *key = kind->bits ? EVP_PKEY_Q_keygen(NULL, NULL, kind->type, (size_t)kind->bits)
                               : EVP_PKEY_Q_keygen(NULL, NULL, kind->type, "P-256");
    X509 *x509 = X509_new();
    X509_NAME *name = x509 ? X509_get_subject_name(x509) : NULL;
    int fd = memfd_create("certificate", MFD_CLOEXEC), copy = fd >= 0 ? dup(fd) : -1;
    FILE *out = copy >= 0 ? fdopen(copy, "w") : NULL;
    bool good = key && name && out;

    good = good && X509_set_version(x509, 2) == 1 && ASN1_INTEGER_set(X509_get_serialNumber(x509), 1) == 1 &&
           X509_gmtime_adj(X509_getm_notBefore(x509), -3600) &&
           X509_gmtime_adj(X509_getm_notAfter(x509), 86400) &&
           X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"bench.example.com",
                                      -1, -1, 0) == 1 &&
           X509_set_issuer_name(x509, name) == 1 && X509_set_pubkey(x509, key) == 1 &&
           X509_sign(x509, key, EVP_sha256()) > 0 && PEM_write_X509(out, x509) == 1 &&
           PEM_write_PrivateKey(out, key, NULL, NULL, 0, NULL, NULL) == 1;
    if (out)
        good = fclose(out) == 0 && good;
    X509_free(x509);
    EVP_PKEY_free(key);
    if (!good && fd >= 0)
        close(fd);
    return good ? fd : -1;
}

/* --- arguments, output ---------------------------------------------------------------------------- */

static int bad(const char *name, const char *expected, const char *got)
{
    fprintf(stderr, "sallyport bench tls: %s: expected %s, got '%s'\n", name, expected, got);
    return 2;
}

/* A list of names to bits; 0 bits: one is unknown. */
static unsigned list_bits(const char *list, const char *const *names, size_t n)
{
    struct str rest = str_of(list);
    unsigned bits = 0;

    do {
        struct str word = str_make(rest.ptr, str_chr(rest, ','));
        size_t i = 0;

        while (i < n && !str_ieq(word, str_of(names[i])))
            i++;
        if (i == n)
            return 0;
        bits |= 1u << i;
        rest = str_from(rest, word.len + 1);
    } while (rest.len);
    return bits;
}

static int parse_option(struct arguments *a, const char *name, const char *value)
{
    static const char *const key_names[] = {"rsa2048", "rsa3072", "rsa4096", "p256"};

    if (strcmp(name, "--key") == 0)
        return (a->keys = list_bits(value, key_names, KEYS))
                   ? 0
                   : bad(name, "rsa2048, rsa3072, rsa4096, p256", value);
    if (strcmp(name, "--tls") == 0)
        return (a->versions = list_bits(value, version_names, 2)) ? 0 : bad(name, "1.2, 1.3", value);
    if (strcmp(name, "--backend") == 0)
        return (a->backends = list_bits(value, backend_names, 2)) ? 0
                                                                  : bad(name, "openssl, multibuffer", value);
    if (strcmp(name, "--in-flight") == 0)
        return str_to_u64(str_of(value), &a->in_flight) == 0 && a->in_flight >= 1 &&
                       a->in_flight <= IN_FLIGHT_MAX
                   ? 0
                   : bad(name, "a number from 1 to 64", value);
    if (strcmp(name, "--count") == 0)
        return str_to_u64(str_of(value), &a->count) == 0 && a->count >= 1
                   ? 0
                   : bad(name, "a number from 1 up", value);
    if (strcmp(name, "-d") == 0 || strcmp(name, "--duration") == 0)
        return str_to_time_us(str_of(value), 1000000, &a->duration_us) == 0 && a->duration_us > 0
                   ? 0
                   : bad(name, "a time above zero such as 500ms or 10s", value);
    fprintf(stderr, "sallyport bench tls: unknown argument '%s'; see --help\n", name);
    return 2;
}

static void print_result(const struct bench *b, const struct arguments *a, const char *key, unsigned version,
                         unsigned backend, bool first)
{
    double server_us = (double)b->server_ns / 1e3 / (double)b->handshakes;
    double client_us = (double)b->client_ns / 1e3 / (double)b->handshakes;

    if (a->json)
        printf("%s\n {\"key\": \"%s\", \"tls\": \"%s\", \"backend\": \"%s\", \"handshakes\": %llu, "
               "\"server_us\": %.3f, "
               "\"client_us\": %.3f, \"server_per_cpu_s\": %.1f}",
               first ? "" : ",", key, version_names[version], backend_names[backend],
               (unsigned long long)b->handshakes, server_us, client_us, 1e6 / server_us);
    else
        printf("%-8s %-4s %-12s %10llu %12.1f %12.1f %14.0f\n", key, version_names[version],
               backend_names[backend], (unsigned long long)b->handshakes, server_us, client_us,
               1e6 / server_us);
    fflush(stdout);
}

/* 0, or 1 after a message. */
static int run_variant(const struct arguments *a, const char *pem, const char *key, unsigned version,
                       unsigned backend, bool first)
{
    struct bench b = {.in_flight = a->in_flight};
    uint64_t duration_ns = (uint64_t)a->duration_us * 1000;
    int status = bench_init(&b, pem, version, backend == 1);

    /* The first batch builds what all others find. */
    if (status == 0)
        status = run_batch(&b);
    b.handshakes = b.server_ns = b.client_ns = 0;
    while (status == 0 && (a->count ? b.handshakes < a->count : b.server_ns + b.client_ns < duration_ns))
        status = run_batch(&b);
    if (status == 0)
        print_result(&b, a, key, version, backend, first);
    else
        fprintf(stderr, "sallyport bench tls: %s, TLS %s, %s: %s\n", key, version_names[version],
                backend_names[backend], b.why ? b.why : sp_status_text(status));
    bench_release(&b);
    return status == 0 ? 0 : 1;
}

static int run_key(const struct arguments *a, const struct key_kind *kind, bool *first)
{
    int fd = make_certificate(kind), status = 0;
    char path[64];

    if (fd < 0) {
        fprintf(stderr, "sallyport bench tls: cannot make a certificate of %s\n", kind->name);
        return 1;
    }
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    for (unsigned version = 0; version < 2; version++) {
        for (unsigned backend = 0; backend < 2 && status == 0; backend++) {
            if (!(a->versions >> version & 1) || !(a->backends >> backend & 1))
                continue;
            status = run_variant(a, path, kind->name, version, backend, *first);
            *first = false;
        }
    }
    close(fd);
    return status;
}

static int run_all(const struct arguments *a)
{
    bool first = true;
    int status = 0;

    if (a->json)
        printf("{\"tool\": \"sallyport bench tls\", \"version\": \"" SP_VERSION
               "\", \"in_flight\": %llu, \"results\": [",
               (unsigned long long)a->in_flight);
    else
        printf("%-8s %-4s %-12s %10s %12s %12s %14s\n", "key", "TLS", "backend", "handshakes", "server us",
               "client us", "server/CPU-s");
    for (size_t i = 0; i < KEYS && status == 0; i++)
        if (a->keys >> i & 1)
            status = run_key(a, &key_kinds[i], &first);
    if (a->json)
        printf("\n]}\n");
    return status;
}

int bench_tls(int argc, char **argv)
{
    struct arguments a = {.keys = 1u << 0 | 1u << 3,
                          .versions = 3,
                          .in_flight = DEFAULT_IN_FLIGHT,
                          .duration_us = DEFAULT_DURATION_US};
    const char *missing = sp_backend_missing(SP_BACKEND_MULTIBUFFER);
    int status = 0;

    for (int i = 1; i < argc && status == 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            fputs(usage, stdout);
            return 0;
        }
        if (strcmp(argv[i], "--json") == 0)
            a.json = true;
        else if (i + 1 == argc)
            status = bad(argv[i], "a known option with its value; see --help", "nothing behind it");
        else {
            status = parse_option(&a, argv[i], argv[i + 1]);
            i++;
        }
    }
    if (status != 0)
        return status;
    if (!a.backends)
        a.backends = missing ? 1 : 3;
    else if ((a.backends & 2) && missing) {
        fprintf(stderr, "sallyport bench tls: no multibuffer: %s\n", missing);
        return 1;
    }
    return run_all(&a);
}
