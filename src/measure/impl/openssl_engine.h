/*
 * What the openssl implementation asks of OpenSSL's ENGINE interface, which version 3 still carries but deprecates.
 */
#ifndef SP_MEASURE_IMPL_OPENSSL_ENGINE_H
#define SP_MEASURE_IMPL_OPENSSL_ENGINE_H

#include "measure/sweep_impl.h"

#include <openssl/types.h>

/* 0 and *out, with a description; SP_ENOENT: no such engine; SP_EIO: it does not start; SP_EUNSUPPORTED: built without. */
int openssl_engine_open(const char *name, ENGINE **out, char *description, size_t size, struct sweep_why *why);
void openssl_engine_close(ENGINE *engine);
/* Whether the engine itself does the cipher or digest, without falling back to the library. */
bool openssl_engine_has(ENGINE *engine, const struct sweep_algorithm *algorithm);

#endif
