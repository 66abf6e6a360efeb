/*
 * Certificates and keys decoded for use. A worker decodes in its own library context, on first use,
 * so that no lock is shared between workers and what is never asked for costs nothing but its
 * bytes.
 */
#ifndef SP_TLS_IDENTITY_H
#define SP_TLS_IDENTITY_H

#include "tls/store.h"

#include <openssl/ssl.h>

struct tls_identity {
    X509 *x509;
    EVP_PKEY *key;
    STACK_OF(X509) * chain;
    EVP_PKEY *dh; /* parameters in the certificate's file; usually NULL */
};

/* NULL with the reason in the library's error queue. `libctx` NULL: the default one. */
X509 *tls_decode_cert(OSSL_LIB_CTX *libctx, const struct tls_blob *der);
EVP_PKEY *tls_decode_key(OSSL_LIB_CTX *libctx, const struct tls_cert *cert);
EVP_PKEY *tls_decode_dh(OSSL_LIB_CTX *libctx, const struct tls_blob *der);

/*
 * `issuers` maps encoded chain certificates to decoded ones (X509 *, owned by the table), so that
 * certificates of one authority share them. NULL: none are shared.
 */
struct tls_identity *tls_identity_new(OSSL_LIB_CTX *libctx, const struct tls_cert *cert,
                                      struct map *issuers);
void tls_identity_free(struct tls_identity *identity);

#endif
