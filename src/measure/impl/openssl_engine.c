/* Before any header of OpenSSL's: this file is about what is deprecated. */
#define OPENSSL_SUPPRESS_DEPRECATED

#include "measure/impl/openssl_engine.h"

#include <sallyport/status.h>

#include <openssl/crypto.h>
#include <openssl/engine.h>
#include <openssl/evp.h>
#include <stdio.h>

#ifndef OPENSSL_NO_ENGINE

int openssl_engine_open(const char *name, ENGINE **out, char *description, size_t size, struct sweep_why *why)
{
    ENGINE *engine = ENGINE_by_id(name);

    if (!engine)
        return sweep_why(why, SP_ENOENT, "OpenSSL finds no engine '%s'", name);
    if (ENGINE_init(engine) != 1) {
        ENGINE_free(engine);
        return sweep_why(why, SP_EIO, "the engine '%s' does not start", name);
    }
    (void)snprintf(description, size, "OpenSSL %s, engine %s (%s)", OpenSSL_version(OPENSSL_VERSION_STRING), name,
                   ENGINE_get_name(engine));
    *out = engine;
    return 0;
}

void openssl_engine_close(ENGINE *engine)
{
    if (engine) {
        ENGINE_finish(engine);
        ENGINE_free(engine);
    }
}

bool openssl_engine_has(ENGINE *engine, const struct sweep_algorithm *algorithm)
{
    const EVP_CIPHER *cipher = algorithm->evp_cipher ? EVP_get_cipherbyname(algorithm->evp_cipher) : NULL;
    const EVP_MD *md = algorithm->evp_digest ? EVP_get_digestbyname(algorithm->evp_digest) : NULL;

    if (algorithm->kind == SWEEP_CIPHER_HMAC)
        return false;
    /* Engines need not have either table: OpenSSL's own calls follow a NULL. */
    if (cipher)
        return ENGINE_get_ciphers(engine) && ENGINE_get_cipher(engine, EVP_CIPHER_get_nid(cipher));
    return md && ENGINE_get_digests(engine) && ENGINE_get_digest(engine, EVP_MD_get_type(md));
}

#else

int openssl_engine_open(const char *name, ENGINE **out, char *description, size_t size, struct sweep_why *why)
{
    return sweep_why(why, SP_EUNSUPPORTED, "this OpenSSL is built without engines");
}

void openssl_engine_close(ENGINE *engine)
{
}

bool openssl_engine_has(ENGINE *engine, const struct sweep_algorithm *algorithm)
{
    return false;
}

#endif
