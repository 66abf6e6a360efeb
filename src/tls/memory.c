#include "tls/memory.h"

#include "base/status.h"
#include "tls/tls.h"

#include <openssl/crypto.h>
#include <pthread.h>
#include <stdint.h>

#define SMALLEST_SHIFT 5
#define KEEP_BYTES 262144 /* of each class, a thread */

/* Before each piece of memory; keeps what follows aligned as malloc does. */
struct header {
    _Alignas(16) struct header *next; /* while it is kept */
    int class_index;
};

struct pool {
    struct header *kept[TLS_MEMORY_CLASSES];
    unsigned count[TLS_MEMORY_CLASSES];
};

static __thread struct pool *own;
static __thread bool ended; /* the thread's destructors run */
static pthread_key_t cleanup;

size_t tls_memory_class_bytes(int class_index)
{
    size_t power = (size_t)1 << (SMALLEST_SHIFT + class_index / 2);

    return class_index % 2 ? power + power / 2 : power;
}

int tls_memory_class(size_t len)
{
    unsigned shift;
    int class_index;

    if (len <= (1u << SMALLEST_SHIFT))
        return 0;
    /* The greatest power of two below len. */
    shift = 63 - (unsigned)__builtin_clzll((unsigned long long)len - 1);
    class_index = 2 * (int)(shift - SMALLEST_SHIFT);
    class_index += len <= tls_memory_class_bytes(class_index + 1) ? 1 : 2;
    return class_index < TLS_MEMORY_CLASSES ? class_index : -1;
}

static void release_pool(void *arg)
{
    struct pool *pool = arg;

    own = NULL;
    ended = true;
    for (int i = 0; i < TLS_MEMORY_CLASSES; i++) {
        while (pool->kept[i]) {
            struct header *h = pool->kept[i];

            pool->kept[i] = h->next;
            free(h);
        }
    }
    free(pool);
}

static struct pool *pool_of_thread(void)
{
    if (!own && !ended) {
        own = calloc(1, sizeof(*own));
        if (own)
            (void)pthread_setspecific(cleanup, own);
    }
    return own;
}

static void *take(size_t len, const char *file, int line)
{
    int class_index = tls_memory_class(len);
    struct pool *pool = pool_of_thread();
    struct header *h;

    if (len == 0 || len > SIZE_MAX - sizeof(*h))
        return NULL;
    if (class_index >= 0 && pool && pool->kept[class_index]) {
        h = pool->kept[class_index];
        pool->kept[class_index] = h->next;
        pool->count[class_index]--;
        return h + 1;
    }
    h = malloc(sizeof(*h) + (class_index < 0 ? len : tls_memory_class_bytes(class_index)));
    if (!h)
        return NULL;
    h->class_index = class_index;
    return h + 1;
}

static void give(void *data, const char *file, int line)
{
    struct header *h = data;
    struct pool *pool;

    if (!h--)
        return;
    pool = h->class_index >= 0 ? pool_of_thread() : NULL;
    if (!pool || pool->count[h->class_index] * tls_memory_class_bytes(h->class_index) >= KEEP_BYTES) {
        free(h);
        return;
    }
    h->next = pool->kept[h->class_index];
    pool->kept[h->class_index] = h;
    pool->count[h->class_index]++;
}

static void *resize(void *data, size_t len, const char *file, int line)
{
    struct header *h = data;
    void *more;

    if (!h--)
        return take(len, file, line);
    if (len == 0) {
        give(data, file, line);
        return NULL;
    }
    if (h->class_index < 0 && tls_memory_class(len) < 0) {
        h = realloc(h, sizeof(*h) + len);
        return h ? h + 1 : NULL;
    }
    if (h->class_index >= 0 && len <= tls_memory_class_bytes(h->class_index))
        return data;
    more = take(len, file, line);
    if (!more)
        return NULL;
    /* Grown, or shrunk from a length that no class holds: the shorter of both is in either. */
    memcpy(more, data, h->class_index < 0 || len < tls_memory_class_bytes(h->class_index)
                           ? len
                           : tls_memory_class_bytes(h->class_index));
    give(data, file, line);
    return more;
}

#ifdef __has_feature
#define HAS_ADDRESS_SANITIZER __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define HAS_ADDRESS_SANITIZER 1
#else
#define HAS_ADDRESS_SANITIZER 0
#endif

int tls_memory_install(void)
{
    /* It is to see each piece of memory come and go. */
    if (HAS_ADDRESS_SANITIZER)
        return SP_EUNSUPPORTED;
    if (pthread_key_create(&cleanup, release_pool) != 0)
        return SP_EIO;
    return CRYPTO_set_mem_functions(take, resize, give) == 1 ? 0 : SP_EUNSUPPORTED;
}
