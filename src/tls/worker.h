/*
 * What one worker keeps: a library context of its own, so that workers share no locks, the contexts
 * and keys built in it on first use, and the pool of output buffers.
 */
#ifndef SP_TLS_WORKER_H
#define SP_TLS_WORKER_H

#include "base/list.h"
#include "tls/context.h"
#include "tls/identity.h"

/* One record of the longest kind fits into a segment. */
#define TLS_SEGMENT_BYTES 16896u
#define TLS_RECORD_BYTES 16384u

/* Decoded things of one store, by their index in it. */
struct tls_store_view {
    struct list link;
    uint64_t id;
    struct tls_identity **identities;
    size_t identity_count;
    struct map issuers; /* encoded -> X509 */
    struct tls_trust_view **trusts;
    size_t trust_count;
};

struct tls_server_view {
    uint8_t id[TLS_CTX_ID_BYTES];
    struct tls_store_view *store;
    SSL_CTX **ssl; /* one a profile, built on first use */
    size_t count;
    const struct tls_entry *installed; /* whose certificate is in ssl[] of its profile */
    size_t first;                      /* the profile that connections start with */
};

struct tls_client_view {
    uint8_t id[TLS_CTX_ID_BYTES];
    SSL_CTX *ssl;
};

struct tls_crypto;

struct tls_worker {
    OSSL_LIB_CTX *libctx;
    EVP_CIPHER *ticket_cipher;
    struct map servers, clients; /* context id -> view */
    struct list stores;
    struct buf_pool pool;
    char *gather; /* plaintext of one record */
    struct tls_crypto *crypto; /* NULL: the library's own operations, inline */
    atomic_ullong full, resumed, failed, refused;
};

/* NULL when out of memory. */
struct tls_server_view *tls_worker_server(struct tls_worker *w, struct tls_server_ctx *ctx);
struct tls_client_view *tls_worker_client(struct tls_worker *w, struct tls_client_ctx *ctx);
SSL_CTX *tls_worker_profile(struct tls_worker *w, struct tls_server_ctx *ctx,
                            struct tls_server_view *view, size_t profile);
struct tls_identity *tls_worker_identity(struct tls_worker *w, struct tls_store_view *view,
                                         const struct tls_cert *cert);
struct tls_store_view *tls_worker_store(struct tls_worker *w, const struct tls_store *store);

static inline void tls_worker_count(atomic_ullong *counter)
{
    /* One writer: no need for a locked addition. */
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

#endif
