/*
 * Authorities and revocation lists that peers are verified against.
 */
#ifndef SP_TLS_TRUST_H
#define SP_TLS_TRUST_H

#include "tls/store.h"

#include <openssl/ssl.h>

/*
 * The encoded contents of the files; lives in the store and is shared by all who name the same
 * files.
 */
struct tls_trust {
    size_t index; /* in the store, from 0 */
    struct tls_blob *certs;
    size_t cert_count;
    size_t named_count; /* the first so many come from ca-file: their names are sent to clients */
    struct tls_blob *crls;
    size_t crl_count;
};

/*
 * Loads what is not loaded yet; `ca_verify_file` and `crl_file` may be NULL, `ca_file` may be
 * "@system-ca" or a folder. Paths are complete. NULL after a diagnostic.
 */
struct tls_trust *tls_trust_load(struct tls_store *store, const char *ca_file,
                                 const char *ca_verify_file, const char *crl_file,
                                 struct cfg_loc loc, struct diag *diag);

/* Decoded for one worker. */
struct tls_trust_view {
    X509_STORE *store;
    STACK_OF(X509_NAME) * names;
};

/* NULL when out of memory. */
struct tls_trust_view *tls_trust_view_new(const struct tls_trust *trust, OSSL_LIB_CTX *libctx);
void tls_trust_view_free(struct tls_trust_view *view);

#endif
