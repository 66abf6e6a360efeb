#include "support.h"

#include <openssl/provider.h>
#include <openssl/x509v3.h>

void t_worlds_init(struct t_worlds *w)
{
    w->ours = OSSL_LIB_CTX_new();
    w->plain = OSSL_LIB_CTX_new();
    assert_non_null(w->ours);
    assert_non_null(w->plain);
    assert_int_equal(OSSL_PROVIDER_add_builtin(w->ours, "sallyport", sp_provider_init), 1);
    w->loaded[0] = OSSL_PROVIDER_load(w->ours, "default");
    w->loaded[1] = OSSL_PROVIDER_load(w->ours, "sallyport");
    w->loaded[2] = OSSL_PROVIDER_load(w->plain, "default");
    assert_int_equal(EVP_set_default_properties(w->ours, "?provider=sallyport"), 1);
    for (int i = 0; i < 3; i++)
        assert_non_null(w->loaded[i]);
}

void t_worlds_release(struct t_worlds *w)
{
    /* A provider that stays loaded outlives its context, and leaks. */
    for (int i = 0; i < 3; i++)
        OSSL_PROVIDER_unload(w->loaded[i]);
    OSSL_LIB_CTX_free(w->ours);
    OSSL_LIB_CTX_free(w->plain);
}

EVP_PKEY *t_private(EVP_PKEY *key, OSSL_LIB_CTX *to)
{
    unsigned char *der = NULL;
    const unsigned char *at;
    int len = i2d_PrivateKey(key, &der);
    EVP_PKEY *copy;

    assert_true(len > 0);
    at = der;
    copy = d2i_AutoPrivateKey_ex(NULL, &at, len, to, NULL);
    assert_non_null(copy);
    OPENSSL_clear_free(der, (size_t)len);
    return copy;
}

EVP_PKEY *t_adopt(EVP_PKEY *key, OSSL_LIB_CTX *libctx)
{
    EVP_PKEY *copy = sp_provider_adopt(libctx, key);

    assert_non_null(copy);
    assert_true(t_is_ours(copy));
    EVP_PKEY_free(key);
    return copy;
}

EVP_PKEY *t_public(EVP_PKEY *key, OSSL_LIB_CTX *to)
{
    unsigned char *der = NULL;
    const unsigned char *at;
    int len = i2d_PUBKEY(key, &der);
    EVP_PKEY *copy;

    assert_true(len > 0);
    at = der;
    copy = d2i_PUBKEY_ex(NULL, &at, len, to, NULL);
    assert_non_null(copy);
    OPENSSL_free(der);
    return copy;
}

X509 *t_certificate(X509 *x509, OSSL_LIB_CTX *to)
{
    unsigned char *der = NULL;
    const unsigned char *at;
    int len = i2d_X509(x509, &der);
    X509 *copy = X509_new_ex(to, NULL);

    assert_true(len > 0);
    assert_non_null(copy);
    at = der;
    assert_non_null(d2i_X509(&copy, &at, len));
    OPENSSL_free(der);
    return copy;
}

bool t_is_ours(const EVP_PKEY *key)
{
    const OSSL_PROVIDER *provider = EVP_PKEY_get0_provider(key);

    return provider && strcmp(OSSL_PROVIDER_get0_name(provider), "sallyport") == 0;
}

EVP_PKEY *t_key(OSSL_LIB_CTX *ctx, const char *kind)
{
    EVP_PKEY *key;

    if (strncmp(kind, "RSA", 3) == 0)
        key = EVP_PKEY_Q_keygen(ctx, NULL, "RSA", (size_t)strtoul(kind + 3, NULL, 10));
    else if (strcmp(kind, "X25519") == 0)
        key = EVP_PKEY_Q_keygen(ctx, NULL, "X25519");
    else
        key = EVP_PKEY_Q_keygen(ctx, NULL, "EC", kind);
    assert_non_null(key);
    return key;
}

X509 *t_issue(OSSL_LIB_CTX *ctx, EVP_PKEY *key, const char *name, EVP_PKEY *issuer_key,
              const char *issuer_name)
{
    X509 *x509 = X509_new_ex(ctx, NULL);
    X509_NAME *subject = X509_NAME_new(), *issuer = X509_NAME_new();
    X509_EXTENSION *ca = X509V3_EXT_conf_nid(NULL, NULL, NID_basic_constraints, "critical,CA:TRUE");

    assert_int_equal(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                                                (const unsigned char *)name, -1, -1, 0),
                     1);
    if (!issuer_name)
        issuer_name = name;
    assert_int_equal(X509_NAME_add_entry_by_txt(issuer, "CN", MBSTRING_ASC,
                                                (const unsigned char *)issuer_name, -1, -1, 0),
                     1);
    X509_set_version(x509, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x509), 1);
    X509_gmtime_adj(X509_getm_notBefore(x509), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x509), 86400);
    X509_set_subject_name(x509, subject);
    X509_set_issuer_name(x509, issuer);
    if (!issuer_key)
        X509_add_ext(x509, ca, -1);
    assert_int_equal(X509_set_pubkey(x509, key), 1);
    assert_true(X509_sign(x509, issuer_key ? issuer_key : key, EVP_sha256()) > 0);
    X509_NAME_free(subject);
    X509_NAME_free(issuer);
    X509_EXTENSION_free(ca);
    return x509;
}
