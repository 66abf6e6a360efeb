#define OPENSSL_SUPPRESS_DEPRECATED /* engines: configurations still name them */

#include "tls/tls.h"

#include "tls/errors.h"

#include <openssl/crypto.h>
#include <openssl/engine.h>
#include <openssl/provider.h>

const char *tls_library_text(void)
{
    return OpenSSL_version(OPENSSL_VERSION);
}

unsigned long tls_library_number(void)
{
    return OpenSSL_version_num();
}

static bool engine_available(const char *name)
{
    ENGINE *engine;

    /* Those inside the library are not in its list unless asked for. */
    if (strcmp(name, "rdrand") == 0)
        (void)OPENSSL_init_crypto(OPENSSL_INIT_ENGINE_RDRAND, NULL);
    engine = ENGINE_by_id(name);
    if (!engine)
        return false;
    ENGINE_free(engine);
    return true;
}

/* In a library context of its own, so that nothing in use changes. */
static bool provider_available(const char *name)
{
    OSSL_LIB_CTX *scratch = OSSL_LIB_CTX_new();
    OSSL_PROVIDER *provider = scratch ? OSSL_PROVIDER_load(scratch, name) : NULL;
    bool available = provider != NULL;

    if (provider)
        (void)OSSL_PROVIDER_unload(provider);
    OSSL_LIB_CTX_free(scratch);
    return available;
}

bool tls_engine_available(const char *name)
{
    bool available;

    /* A name, not a path. */
    if (!name || !*name || strchr(name, '/'))
        return false;
    available = engine_available(name) || provider_available(name);
    tls_clear_errors();
    return available;
}
