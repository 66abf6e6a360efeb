#define OPENSSL_SUPPRESS_DEPRECATED /* engines: configurations still name them */

#include "tls/tls.h"

#include "base/status.h"
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

enum tls_engine_kind tls_engine_find(const char *name)
{
    enum tls_engine_kind kind = TLS_ENGINE_NONE;

    /* A name, not a path. */
    if (!name || !*name || strchr(name, '/'))
        return TLS_ENGINE_NONE;
    if (engine_available(name))
        kind = TLS_ENGINE_LEGACY;
    else if (provider_available(name))
        kind = TLS_ENGINE_PROVIDER;
    tls_clear_errors();
    return kind;
}

int tls_engine_use(const char *name, const char *algorithms)
{
    ENGINE *engine = ENGINE_by_id(name);
    int status = SP_EUNSUPPORTED;

    if (engine && ENGINE_init(engine) == 1) {
        /* The process keeps it: the reference that the initialisation gave is never dropped. */
        if (algorithms ? ENGINE_set_default_string(engine, algorithms) == 1
                       : ENGINE_set_default(engine, ENGINE_METHOD_ALL & ~ENGINE_METHOD_RAND) == 1)
            status = 0;
        else
            ENGINE_finish(engine);
    }
    ENGINE_free(engine);
    tls_clear_errors();
    return status;
}
