/*
 * The inside of a connection.
 */
#ifndef SP_TLS_CONN_H
#define SP_TLS_CONN_H

#include "base/list.h"
#include "tls/out.h"
#include "tls/tls.h"

#include <openssl/ssl.h>

struct tls_worker;
struct tls_server_view;
struct tls_profile;
struct tls_entry;

struct tls_conn {
    SSL *ssl;
    struct tls_worker *worker;
    struct io_sock *sock; /* NULL: abandoned */
    struct tls_server_ctx *server_ctx; /* NULL: a client */
    struct tls_server_view *view;
    struct tls_client_ctx *client_ctx;
    struct tls_session_slot *slot;
    const struct tls_profile *profile;
    const struct tls_entry *entry; /* the certificate offered; NULL: none yet, or none fits */
    struct tls_out out;
    char *fed; /* bytes that arrived before the handshake */
    uint32_t fed_at, fed_len;
    unsigned long error;    /* the library's code */
    const char *error_text; /* static */
    char *refused_name;     /* server name of a handshake that ended before the library kept it */
    int8_t status;          /* once it cannot go on: SP_EEOF, SP_EPROTO, SP_ERESET */
    uint8_t failure;        /* enum tls_failure */
    uint8_t ca_error, ca_error_depth, cert_error;
    bool done;
    bool told;    /* the status has been answered to a reader */
    bool by_name; /* the certificate was chosen by the name that the client sent */
    bool rx_eof, rx_reset;
    bool tx_reset; /* nothing more can be sent; what has come is still read */
    bool starved; /* what is inside is less than a record */
    bool direct;  /* the next record is the last of its batch: it may go out without a copy */
    bool batch_more;
    bool shut; /* close_notify queued */
    bool eof_clean;
    bool offered_session;
    bool paused;    /* its handshake waits for an operation in the crypto queue */
    bool operation_done; /* the wait is over */
    bool abandoned; /* its owner has freed it, and the operation is not back yet */
    struct list crypto_link; /* among the worker's ready, or abandoned, connections */
};

/* bio.c: the library's view of the socket. NULL when out of memory. */
BIO *tls_bio_new(struct tls_conn *c);

/* tls_conn_free for one whose handshake waits for nothing any more. */
void tls_conn_release(struct tls_conn *c);

/* The name that a server's certificate must carry; NULL: any. */
const char *tls_conn_expected_name(const struct tls_conn *c);

#endif
