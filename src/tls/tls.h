/*
 * TLS, whatever library speaks it: nothing outside this folder names one.
 *
 * A context is what a bind line or a server line configures; it is built once,
 * checked completely, and then read by all workers. A connection belongs to one
 * worker. Handshake, read and write answer done, want-read, want-write or
 * want-crypto, so that another engine can stand beside the present one.
 */
#ifndef SP_TLS_TLS_H
#define SP_TLS_TLS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/diag.h"
#include "io/sock.h"

#include <sallyport/queue.h>

enum tls_version { TLS_VERSION_ANY, TLS_VERSION_SSL3, TLS_VERSION_10, TLS_VERSION_11, TLS_VERSION_12, TLS_VERSION_13 };

enum tls_verify { TLS_VERIFY_NONE, TLS_VERIFY_OPTIONAL, TLS_VERIFY_REQUIRED };

/* One certificate source and, for crt-list lines, what it is limited to. */
struct tls_cert_source {
    struct cfg_loc loc;
    const char *path;        /* PEM bundle, or a folder of them (each loaded, in name order) */
    bool is_crt_list;        /* `path` is a crt-list file */
    bool is_default;         /* default-crt: also offered when no name matches */
};

/* A bind line's TLS configuration. Strings live as long as the configuration; NULL: library default. */
struct tls_server_params {
    struct cfg_loc loc;
    struct tls_cert_source *sources;
    size_t source_count;
    const char *ciphers, *ciphersuites, *curves, *sigalgs, *client_sigalgs;
    const char *alpn; /* comma-separated names; NULL: none */
    enum tls_version min_version, max_version;
    bool no_sslv3, no_tlsv10, no_tlsv11, no_tlsv12, no_tlsv13;
    bool no_tickets;
    bool strict_sni;
    bool prefer_client_ciphers;
    enum tls_verify verify;
    const char *ca_file, *ca_verify_file, *crl_file;
    bool no_ca_names; /* do not tell clients which authorities are accepted */
    const char *ca_ignore_err, *crt_ignore_err; /* comma-separated codes or "all" */
    const char *generate_ca_file; /* unsupported: refused by the configuration */
    int dh_bits;            /* tune.ssl.default-dh-param; 0: no DHE unless a file has parameters, as HAProxy */
    const char *dh_file;
    size_t cache_entries;   /* tune.ssl.cachesize; 0 disables the session cache */
    unsigned session_lifetime_s;
    const char *crt_base, *ca_base; /* prefixes of relative paths */
    bool allow_0rtt;
};

struct tls_client_params {
    struct cfg_loc loc;
    const char *ciphers, *ciphersuites, *curves, *sigalgs;
    const char *alpn;
    enum tls_version min_version, max_version;
    bool no_sslv3, no_tlsv10, no_tlsv11, no_tlsv12, no_tlsv13;
    bool no_tickets, no_reuse;
    enum tls_verify verify;      /* REQUIRED is HAProxy's default for servers */
    const char *verify_host;     /* name the certificate must have, when no SNI was sent */
    const char *ca_file, *crl_file; /* ca_file "@system-ca": the system's store */
    const char *crt;             /* client certificate and key */
    const char *crt_base, *ca_base;
};

struct tls_server_ctx;
struct tls_client_ctx;

/*
 * Loads and checks everything the parameters name. Every problem goes to `diag` with the place it was
 * configured (for crt-lists the list's own file and line): missing file, no key, key that does not match,
 * expired is a warning, unknown cipher or curve. NULL when there was an error. Certificates that several binds
 * name are loaded once (the store is keyed by path).
 */
struct tls_store; /* shared by all contexts of one configuration */
struct tls_store *tls_store_new(void);
void tls_store_free(struct tls_store *store);
struct tls_server_ctx *tls_server_ctx_new(struct tls_store *store, const struct tls_server_params *p,
                                          struct diag *diag);
struct tls_client_ctx *tls_client_ctx_new(struct tls_store *store, const struct tls_client_params *p,
                                          struct diag *diag);
void tls_server_ctx_free(struct tls_server_ctx *ctx);
void tls_client_ctx_free(struct tls_client_ctx *ctx);

/* --- per worker ------------------------------------------------------------------- */

/* Who does the private-key operations. */
struct tls_crypto_options {
    struct io_loop *loop;           /* the worker's: its turns gather operations, its connections are told of their end */
    struct sp_queue_options queue;  /* wake and wake_arg are not looked at */
    const char *provider;           /* an OpenSSL provider by name that takes the queue's place; NULL: the queue */
};

/* What a worker's connections share: buffers, pools and the crypto queue. One a thread. */
struct tls_worker;
/*
 * NULL for `crypto`: the TLS library's own operations, inline. NULL without memory, or when a required backend does not run
 * here.
 */
struct tls_worker *tls_worker_new(const struct tls_crypto_options *crypto);
/* On the worker's thread, before and after its connections. stop ends operations of connections that were freed meanwhile. */
void tls_worker_start(struct tls_worker *w);
void tls_worker_stop(struct tls_worker *w);
void tls_worker_free(struct tls_worker *w); /* after its connections */
/* Adds the counters of its crypto queue; from any thread. False: it has none. */
bool tls_worker_crypto_counters(const struct tls_worker *w, struct sp_queue_counters *sum);
/*
 * Builds what the worker's first connection of a context would otherwise wait for (about a millisecond). Optional; to be
 * called on the worker's thread or before it starts. SP_ENOMEM.
 */
int tls_worker_prepare_server(struct tls_worker *w, struct tls_server_ctx *ctx);
int tls_worker_prepare_client(struct tls_worker *w, struct tls_client_ctx *ctx);

/* --- connections --------------------------------------------------------------------- */

struct tls_conn;

/* `sock` is borrowed and must outlive the connection. NULL when out of memory. */
struct tls_conn *tls_conn_new_server(struct tls_worker *w, struct tls_server_ctx *ctx, struct io_sock *sock);
/* `sni` NULL: no server name. `session_slot` (may be NULL): kept by the caller per server and worker, resumes sessions. */
struct tls_session_slot;
struct tls_conn *tls_conn_new_client(struct tls_worker *w, struct tls_client_ctx *ctx, struct io_sock *sock,
                                     const char *sni, const char *alpn, struct tls_session_slot *session_slot);
struct tls_session_slot *tls_session_slot_new(void);
void tls_session_slot_free(struct tls_session_slot *slot);
void tls_conn_free(struct tls_conn *c);

/*
 * True while too many handshakes wait for the crypto queue (crypto-queue-max) and no certificate of the listener has a
 * cheap key: then ask tls_server_admit about a new connection before tls_conn_new_server.
 */
bool tls_server_is_full(const struct tls_worker *w, const struct tls_server_ctx *ctx);
/*
 * About `hello`, what the client has sent so far: 0 go on (it may resume, or the library is to judge it); SP_EAGAIN: not
 * all of the ClientHello is there; SP_EPERM: refused and counted, an alert is on its way, close it.
 */
int tls_server_admit(struct tls_worker *w, const struct tls_server_ctx *ctx, struct io_sock *sock, struct str hello);

/* Bytes already read from the socket that precede the handshake (after a PROXY header). Copied; SP_ETOOBIG, SP_ENOMEM. */
int tls_conn_feed(struct tls_conn *c, struct str bytes);

/*
 * 0 done, SP_EWANTREAD, SP_EWANTWRITE, SP_EWANTCRYPTO (when the operation is done the socket's on_event is called, with no
 * events; until then the answer stays the same), SP_EPROTO (an alert was queued and sent as far as the
 * socket took it; tls_conn_error_text says why), SP_EEOF (closed in the middle), SP_ERESET.
 */
int tls_conn_handshake(struct tls_conn *c);
bool tls_conn_handshake_done(const struct tls_conn *c);

/* Plaintext bytes (> 0), SP_EEOF (close_notify or a bare end of stream: see tls_conn_eof_clean), SP_EWANTREAD, SP_EWANTWRITE, SP_EPROTO, SP_ERESET. */
ptrdiff_t tls_conn_read(struct tls_conn *c, void *data, size_t len);
/* True when decrypted or still encrypted bytes wait inside, so that a read may succeed without a socket event. */
bool tls_conn_pending(const struct tls_conn *c);

/*
 * Encrypts and sends. Returns plaintext bytes accepted (> 0): they will reach the socket, either at once or by
 * tls_conn_flush; SP_EWANTWRITE when earlier bytes still fill the output buffer (bounded); SP_EPROTO; SP_ERESET
 * (nothing more can be sent; what the peer had sent before is still there for tls_conn_read).
 * `more`: the caller writes again at once, so small records may be gathered.
 */
ptrdiff_t tls_conn_writev(struct tls_conn *c, const struct iovec *iov, int count, bool more);
/* Sends what is still buffered: 0, SP_EWANTWRITE, SP_ERESET. */
int tls_conn_flush(struct tls_conn *c);
size_t tls_conn_unsent(const struct tls_conn *c);
/* Queues close_notify and flushes as far as possible; never blocks. */
void tls_conn_shutdown(struct tls_conn *c);

/* --- facts for fetches, logs and headers ------------------------------------------------ */

enum tls_fact {
    TLS_FACT_VERSION,  /* "TLSv1.3" */
    TLS_FACT_CIPHER, TLS_FACT_SNI, TLS_FACT_ALPN,
    TLS_FACT_SESSION_ID, TLS_FACT_UNIQUE_ID, /* binary */
    TLS_FACT_PEER_SUBJECT, TLS_FACT_PEER_ISSUER, /* "/C=FR/O=…/CN=…" as HAProxy prints */
    TLS_FACT_PEER_SERIAL, TLS_FACT_PEER_SHA1, TLS_FACT_PEER_DER, /* binary */
    TLS_FACT_PEER_NOTBEFORE, TLS_FACT_PEER_NOTAFTER, TLS_FACT_PEER_KEY_ALG, TLS_FACT_PEER_SIG_ALG, TLS_FACT_PEER_CN,
    TLS_FACT_OWN_SUBJECT, TLS_FACT_OWN_ISSUER, TLS_FACT_OWN_SERIAL, TLS_FACT_OWN_SHA1, TLS_FACT_OWN_DER,
    TLS_FACT_OWN_KEY_ALG, TLS_FACT_OWN_SIG_ALG, TLS_FACT_OWN_NOTBEFORE, TLS_FACT_OWN_NOTAFTER,
    TLS_FACT_OWN_PATH,       /* file of the certificate that a server offered */
    TLS_FACT_PEER_CHAIN_DER, /* binary: all certificates that the peer sent, its own first */
    TLS_FACT_CURVE,          /* of the key exchange: "X25519" */
    TLS_FACT_CLIENT_RANDOM, TLS_FACT_SERVER_RANDOM, TLS_FACT_SESSION_KEY, /* binary */
};
/* Text or binary in `arena` (or static). SP_ENOENT when the connection has no such thing, SP_ENOMEM. */
int tls_conn_fact(const struct tls_conn *c, enum tls_fact fact, struct arena *arena, struct str *out);

enum tls_name { TLS_NAME_PEER_SUBJECT, TLS_NAME_PEER_ISSUER, TLS_NAME_PEER_ROOT, TLS_NAME_OWN_SUBJECT, TLS_NAME_OWN_ISSUER };
/*
 * Part of a distinguished name: the value of the `occurrence`-th entry of that kind ("CN"), counted from 1, or from
 * the end when negative; 0 is 1. `entry` empty: the whole name, in HAProxy's form or that of RFC 2253. SP_ENOENT, SP_ENOMEM.
 */
int tls_conn_name(const struct tls_conn *c, enum tls_name which, struct str entry, int occurrence, bool rfc2253,
                  struct arena *arena, struct str *out);

enum tls_number {
    TLS_NUMBER_USE_KEYSIZE, TLS_NUMBER_ALG_KEYSIZE, TLS_NUMBER_IS_RESUMED, TLS_NUMBER_PEER_HAS_CERT,
    TLS_NUMBER_PEER_CERT_USED, /* in this handshake or the resumed session */
    TLS_NUMBER_VERIFY_RESULT, TLS_NUMBER_CA_ERROR, TLS_NUMBER_CERT_ERROR, TLS_NUMBER_HAS_SNI, TLS_NUMBER_PEER_VERSION, TLS_NUMBER_ERROR,
    TLS_NUMBER_CA_ERROR_DEPTH, TLS_NUMBER_OWN_VERSION,
};
int64_t tls_conn_number(const struct tls_conn *c, enum tls_number number);
/* Why the handshake or the connection failed, e.g. "no shared cipher"; static. Empty when it did not. */
const char *tls_conn_error_text(const struct tls_conn *c);
/* What kind of failure that was, for HAProxy's connection errors (30, 31, 33, 34). */
enum tls_failure {
    TLS_FAILURE_NONE,
    TLS_FAILURE_PROTOCOL,      /* "SSL handshake failure" */
    TLS_FAILURE_PEER_CA,       /* "SSL client CA chain cannot be verified" */
    TLS_FAILURE_PEER_CERT,     /* "SSL client certificate not trusted" */
    TLS_FAILURE_HOST_MISMATCH, /* "Server presented an SSL certificate different from the expected one" */
};
enum tls_failure tls_conn_failure(const struct tls_conn *c);

/* Verification results by name: "X509_V_ERR_CERT_HAS_EXPIRED". NULL for an unknown code. */
const char *tls_verify_code_name(int code);
/* From a name or a number; SP_EINVAL. */
int tls_verify_code_parse(struct str s);
/* False when the peer ended without close_notify. */
bool tls_conn_eof_clean(const struct tls_conn *c);

/* --- counters ------------------------------------------------------------------------------ */

struct tls_counters {
    uint64_t full_handshakes, resumed_handshakes, failed_handshakes;
    uint64_t refused_handshakes; /* the crypto queue was full; counted as failed too */
};
void tls_worker_counters(const struct tls_worker *w, struct tls_counters *out);

/*
 * Gives the TLS library memory that is pooled by thread. Once a process, before anything else calls that library: SP_EUNSUPPORTED
 * when it has allocated already or the address sanitizer watches, SP_EIO; then it goes on with malloc.
 */
int tls_memory_install(void);
/* "OpenSSL 3.0.22 …" of the library that runs, and its number (OPENSSL_VERSION_NUMBER) for configuration predicates. */
const char *tls_library_text(void);
unsigned long tls_library_number(void);
/* What an OpenSSL engine or provider of that name is on this machine. */
enum tls_engine_kind { TLS_ENGINE_NONE, TLS_ENGINE_LEGACY, TLS_ENGINE_PROVIDER };
enum tls_engine_kind tls_engine_find(const char *name);
/*
 * A legacy engine does the operations of `algorithms` ("RSA,EC"; NULL: all it can) for the whole process, by the TLS library's
 * own calls. Before the first worker. SP_EUNSUPPORTED: it cannot start, or does not know the algorithms.
 */
int tls_engine_use(const char *name, const char *algorithms);

#endif
