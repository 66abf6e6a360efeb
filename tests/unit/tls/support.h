/*
 * What the TLS tests share: certificates made on the spot, sockets that can be made slow, and a
 * loop that lets two ends talk.
 */
#ifndef TESTS_TLS_SUPPORT_H
#define TESTS_TLS_SUPPORT_H

#include "tls/tls.h"

#include <openssl/evp.h>
#include <openssl/x509.h>

/* --- files ------------------------------------------------------------------------ */

/* A folder of this process's own below /tmp; its name is good until t_folder_remove. */
const char *t_folder(void);
void t_folder_remove(void);
/* Path of a file in it; from a ring of buffers, good for 16 more calls. */
const char *t_path(const char *name);
void t_write(const char *name, const char *text);
/* Like t_write with a format. */
void t_writef(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* --- certificates -------------------------------------------------------------------- */

struct t_id {
    X509 *x509;
    EVP_PKEY *key;
};

struct t_spec {
    const char *cn;    /* NULL: an empty subject */
    const char *org;   /* NULL: none; with C=FR before it */
    const char *names; /* subjectAltName in the library's notation: "DNS:a,DNS:b"; NULL: none */
    const char *key;   /* "EC" (default, P-256), "RSA", "RSA1024", "P-384", "ED25519", "DSA" */
    const struct t_id *issuer; /* NULL: self-signed */
    bool is_ca;
    long serial;       /* 0: 1 */
    long from_s, to_s; /* relative to now; both 0: an hour back, a day ahead */
};

struct t_id t_id_make(const struct t_spec *spec);
void t_id_free(struct t_id *id);

/* PEM text from malloc. */
char *t_pem_cert(const struct t_id *id);
char *t_pem_key(const struct t_id *id);             /* PKCS#8 */
char *t_pem_key_traditional(const struct t_id *id); /* PKCS#1 or SEC1 */
/* A bundle of certificate, chain (may be NULL) and key. */
void t_write_bundle(const char *name, const struct t_id *id, const struct t_id *chain);
/* A revocation list of `issuer` with one serial (0: none); `to_s` when the next one is due. */
void t_write_crl(const char *name, const struct t_id *issuer, long serial, long to_s);

/* --- sockets ---------------------------------------------------------------------------- */

struct t_sock {
    struct io_sock sock; /* first member */
    size_t recv_limit;   /* bytes a call at most; 0: no limit */
    size_t send_limit;
    bool one_shot; /* readiness is cleared after each call: every byte needs an event */
    unsigned recv_calls, send_calls, useless_recv_calls;
    size_t sent_bytes;
};

void t_sock_pair(struct t_sock *a, struct t_sock *b);
void t_sock_init(struct t_sock *s, int fd);
void t_sock_close(struct t_sock *s);
/* Sets readiness as an event loop would: waits at most `ms` for either direction. */
void t_sock_poll(struct t_sock *s, int ms);

/* --- contexts and connections -------------------------------------------------------------- */

/* A configuration in the making: its arena, its messages, its store, one worker. */
struct t_world {
    struct arena arena;
    struct diag diag;
    struct tls_store *store;
    struct tls_worker *worker;
};

void t_world_init(struct t_world *w);
void t_world_release(struct t_world *w);
/* The text of the n-th message as "file:line: text" (no file: "text"); "" when there is none. */
const char *t_message(const struct t_world *w, unsigned n);

/* Sensible parameters: one certificate file, a session cache, tickets. */
struct tls_server_params t_server_params(struct tls_cert_source *source, const char *path);
/* Contexts that must succeed. */
struct tls_server_ctx *t_server(struct t_world *w, const struct tls_server_params *p);
struct tls_client_ctx *t_client(struct t_world *w, const struct tls_client_params *p);

/* Both ends of a connection over a pair of sockets. */
struct t_pair {
    struct t_sock server_sock, client_sock;
    struct tls_conn *server, *client;
    int server_status, client_status; /* of the handshakes */
};

void t_pair_open(struct t_pair *p, struct t_world *w, struct tls_server_ctx *server,
                 struct tls_client_ctx *client, const char *sni, const char *alpn,
                 struct tls_session_slot *slot);
/* Runs both handshakes to their ends (0 or an error). */
void t_pair_handshake(struct t_pair *p);
/* One end writes, the other reads and compares; both directions. */
void t_pair_talk(struct t_pair *p);
/* Lets the client read what the server sent after the handshake (tickets). */
void t_pair_settle(struct t_pair *p);
void t_pair_close(struct t_pair *p);

/* A fact as text in a static buffer; "-" when there is none. */
const char *t_fact(const struct tls_conn *c, enum tls_fact fact);

#endif
