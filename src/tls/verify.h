/*
 * Verification results by name, and which of them a listener is told to overlook.
 */
#ifndef SP_TLS_VERIFY_H
#define SP_TLS_VERIFY_H

#include "tls/tls.h"

#include <openssl/ssl.h>

#define TLS_VERIFY_CODES 128

/* A set of verification results. */
struct tls_ignore {
    uint64_t bits[TLS_VERIFY_CODES / 64];
};

static inline bool tls_ignore_has(const struct tls_ignore *set, int code)
{
    return code >= 0 && code < TLS_VERIFY_CODES && (set->bits[code / 64] >> (code % 64) & 1);
}

/*
 * "all", or comma-separated numbers and X509_V_ERR_… names. SP_EINVAL: *bad is the word at fault.
 */
int tls_ignore_parse(const char *list, struct tls_ignore *out, struct str *bad);

/* Verification callbacks of servers and clients; the connection is the SSL's application data. */
int tls_verify_client(int ok, X509_STORE_CTX *ctx);
int tls_verify_server(int ok, X509_STORE_CTX *ctx);

#endif
