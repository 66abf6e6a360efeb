/*
 * Contexts: what a bind or server line configures, resolved and checked once, read by all workers.
 *
 * The library's own context objects are built from them by each worker for itself (worker.h).
 */
#ifndef SP_TLS_CONTEXT_H
#define SP_TLS_CONTEXT_H

#include "tls/sni.h"
#include "tls/tickets.h"
#include "tls/trust.h"
#include "tls/verify.h"

#define TLS_CTX_ID_BYTES 16

/*
 * One set of settings: the bind line's own, or those of a crt-list line's brackets on top of them.
 */
struct tls_profile {
    bool is_server;
    struct cfg_loc loc;
    const char *ciphers, *ciphersuites, *curves, *sigalgs, *client_sigalgs;
    uint8_t *alpn; /* in wire format; heap */
    unsigned alpn_len;
    int min_version, max_version; /* the library's numbers */
    uint64_t options;             /* SSL_OP_… */
    enum tls_verify verify;
    const struct tls_trust *trust; /* NULL: nobody is trusted */
    bool ca_names;                 /* tell clients which authorities count */
    struct tls_ignore ca_ignore, cert_ignore;
    bool dh_auto;         /* DHE with a group as strong as the certificate */
    const char *dh_group; /* or with this group */
    struct tls_blob dh;   /* or with these parameters */
    unsigned lifetime_s;
    unsigned tickets; /* of TLS 1.3, a full handshake */
    struct tls_cache *cache;
    uint8_t session_context[TLS_CTX_ID_BYTES + 4];
};

struct tls_server_ctx {
    struct tls_store *store;
    uint8_t id[TLS_CTX_ID_BYTES]; /* random: names it in the workers' tables */
    const struct tls_sni *sni;
    struct tls_profile
        *profiles; /* [0] the bind line's, then one for each of the index's options */
    size_t profile_count;
    bool strict_sni;
    bool single; /* one certificate for everybody: no choice to make */
    struct tls_tickets tickets;
};

struct tls_client_ctx {
    struct tls_store *store;
    uint8_t id[TLS_CTX_ID_BYTES];
    struct tls_profile profile;
    const struct tls_cert *cert; /* NULL: none is offered */
    char *verify_host;           /* heap */
    bool reuse;
};

static inline const struct tls_profile *tls_entry_profile(const struct tls_server_ctx *ctx,
                                                          const struct tls_entry *entry)
{
    return &ctx->profiles[entry && entry->options ? entry->options->index : 0];
}

/* profile.c */

/* Fills a profile; SP_EINVAL after diagnostics. Release it in any case. */
int tls_profile_from_server(struct tls_profile *out, struct tls_store *store,
                            const struct tls_server_params *p, struct diag *diag);
int tls_profile_from_client(struct tls_profile *out, struct tls_store *store,
                            const struct tls_client_params *p, struct diag *diag);
void tls_profile_release(struct tls_profile *p);

/*
 * A library context with the profile's settings, without certificate and callbacks. NULL: *what
 * names the setting that was refused (static), *value its value, and the reason is in the error
 * queue.
 */
SSL_CTX *tls_profile_build(const struct tls_profile *p, OSSL_LIB_CTX *libctx,
                           const struct tls_trust_view *trust, const char **what,
                           const char **value);

/*
 * Builds the profile once to see that the library takes it, with `cert` (may be NULL). Settings
 * that have been accepted are not tried again. SP_EINVAL after a diagnostic.
 */
int tls_profile_check(const struct tls_profile *p, struct tls_store *store,
                      const struct tls_cert *cert, struct diag *diag);

#endif
