/*
 * The session cache of stateful resumption, shared by all listeners and workers.
 */
#ifndef SP_TLS_CACHE_H
#define SP_TLS_CACHE_H

#include "base/str.h"

#include <openssl/ssl.h>

struct tls_cache;

/*
 * `blocks` of about 200 bytes, HAProxy's unit: a session with a client certificate takes several.
 * When it is full the oldest sessions go. NULL when out of memory.
 */
struct tls_cache *tls_cache_new(size_t blocks);
void tls_cache_free(struct tls_cache *cache);

/* Keeps an encoded session until `expires_s`. The same id replaces. SP_ENOMEM, SP_ETOOBIG. */
int tls_cache_put(struct tls_cache *cache, struct str id, struct str session, uint64_t expires_s);
/* Copies the session into `out`: its length, SP_ENOENT, SP_ETOOBIG. */
ptrdiff_t tls_cache_get(struct tls_cache *cache, struct str id, uint64_t now_s, void *out,
                        size_t room);
void tls_cache_remove(struct tls_cache *cache, struct str id);
size_t tls_cache_count(struct tls_cache *cache);

/* Makes a server's SSL_CTX use the cache. */
void tls_cache_attach(struct tls_cache *cache, SSL_CTX *ctx);

#endif
