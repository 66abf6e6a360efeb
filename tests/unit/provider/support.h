/*
 * What the provider's tests share: two library contexts, and keys that go from one to the other as
 * files would.
 */
#ifndef TESTS_PROVIDER_SUPPORT_H
#define TESTS_PROVIDER_SUPPORT_H

#include <sallyport/provider.h>

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

struct t_worlds {
    OSSL_LIB_CTX *ours;  /* the provider, preferred, beside the default one */
    OSSL_LIB_CTX *plain; /* the default provider alone */
    OSSL_PROVIDER *loaded[3];
};

void t_worlds_init(struct t_worlds *w);
void t_worlds_release(struct t_worlds *w);

/* Copies by way of DER: PKCS#8 or the traditional form, SubjectPublicKeyInfo, certificate. */
EVP_PKEY *t_private(EVP_PKEY *key, OSSL_LIB_CTX *to);
/*
 * Takes a key and returns it as the preferred provider's: what the decoders read is at first the
 * default provider's, and goes to ours, with a copy, when it is used.
 */
EVP_PKEY *t_adopt(EVP_PKEY *key, OSSL_LIB_CTX *ctx);
EVP_PKEY *t_public(EVP_PKEY *key, OSSL_LIB_CTX *to);
X509 *t_certificate(X509 *x509, OSSL_LIB_CTX *to);
bool t_is_ours(const EVP_PKEY *key);

/* "RSA2048" and so on, or a curve's name, or "X25519". */
EVP_PKEY *t_key(OSSL_LIB_CTX *ctx, const char *kind);
/* Made by `ctx`, signed by the issuer's key, or self-signed when it is NULL. */
X509 *t_issue(OSSL_LIB_CTX *ctx, EVP_PKEY *key, const char *name, EVP_PKEY *issuer_key,
              const char *issuer_name);

#endif
