#include "tls/identity.h"

#include <openssl/decoder.h>
#include <openssl/x509.h>

X509 *tls_decode_cert(OSSL_LIB_CTX *libctx, const struct tls_blob *der)
{
    const unsigned char *at = der->data;
    X509 *x509 = X509_new_ex(libctx, NULL);

    if (!x509 || !d2i_X509(&x509, &at, (long)der->len)) {
        X509_free(x509);
        return NULL;
    }
    return x509;
}

EVP_PKEY *tls_decode_key(OSSL_LIB_CTX *libctx, const struct tls_cert *cert)
{
    const unsigned char *at = cert->key.data;

    if (cert->key_type == EVP_PKEY_NONE)
        return d2i_AutoPrivateKey_ex(NULL, &at, (long)cert->key.len, libctx, NULL);
    return d2i_PrivateKey_ex(cert->key_type, NULL, &at, (long)cert->key.len, libctx, NULL);
}

EVP_PKEY *tls_decode_dh(OSSL_LIB_CTX *libctx, const struct tls_blob *der)
{
    const unsigned char *at = der->data;
    size_t len = der->len;
    EVP_PKEY *key = NULL;
    OSSL_DECODER_CTX *ctx = OSSL_DECODER_CTX_new_for_pkey(&key, "DER", NULL, "DH",
                                                          EVP_PKEY_KEY_PARAMETERS, libctx, NULL);

    if (ctx)
        (void)OSSL_DECODER_from_data(ctx, &at, &len);
    OSSL_DECODER_CTX_free(ctx);
    return key;
}

/* A reference to the decoded issuer, from the table where there is one. */
static X509 *issuer_of(OSSL_LIB_CTX *libctx, const struct tls_blob *der, struct map *issuers)
{
    struct str key = str_make((const char *)der->data, der->len);
    X509 *x509 = issuers ? map_get(issuers, key) : NULL;

    if (!x509) {
        x509 = tls_decode_cert(libctx, der);
        if (!x509 || !issuers || map_put(issuers, key, x509) != 0)
            return x509;
    }
    X509_up_ref(x509);
    return x509;
}

struct tls_identity *tls_identity_new(OSSL_LIB_CTX *libctx, const struct tls_cert *cert,
                                      struct map *issuers)
{
    struct tls_identity *identity = calloc(1, sizeof(*identity));

    if (!identity)
        return NULL;
    identity->x509 = tls_decode_cert(libctx, &cert->der);
    identity->key = tls_decode_key(libctx, cert);
    if (!identity->x509 || !identity->key)
        goto failed;
    if (cert->chain_count && !(identity->chain = sk_X509_new_reserve(NULL, (int)cert->chain_count)))
        goto failed;
    for (size_t i = 0; i < cert->chain_count; i++) {
        X509 *issuer = issuer_of(libctx, cert->chain[i], issuers);

        if (!issuer)
            goto failed;
        sk_X509_push(identity->chain, issuer);
    }
    if (cert->dh.data && !(identity->dh = tls_decode_dh(libctx, &cert->dh)))
        goto failed;
    return identity;

failed:
    tls_identity_free(identity);
    return NULL;
}

void tls_identity_free(struct tls_identity *identity)
{
    if (!identity)
        return;
    X509_free(identity->x509);
    EVP_PKEY_free(identity->key);
    sk_X509_pop_free(identity->chain, X509_free);
    EVP_PKEY_free(identity->dh);
    free(identity);
}
