/*
 * From a PEM file to a certificate of the store.
 */
#ifndef SP_TLS_CERT_FILE_H
#define SP_TLS_CERT_FILE_H

#include "tls/store.h"

/*
 * Reads certificate, chain, key and DH parameters, checks that they belong together and warns when
 * the certificate has expired. The result lives in the store's arena; it is not entered into its
 * tables. NULL after a diagnostic.
 */
struct tls_cert *tls_cert_load(struct tls_store *store, const char *path, const char *key_path,
                               struct cfg_loc loc, struct diag *diag);

#endif
