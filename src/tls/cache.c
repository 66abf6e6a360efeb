#include "tls/cache.h"

#include "base/hash.h"
#include "base/list.h"
#include "base/status.h"

#include <openssl/crypto.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define SHARDS 16
#define BLOCK_BYTES 200
#define SESSION_MAX_BYTES 8192
#define ID_MAX_BYTES SSL_MAX_SSL_SESSION_ID_LENGTH

struct session {
    struct session *next; /* in its bucket */
    struct list age;      /* oldest first */
    uint64_t expires_s;
    uint32_t hash, len;
    uint8_t id_len;
    uint8_t id[ID_MAX_BYTES];
    uint8_t data[];
};

/* A part of the cache with a lock of its own: workers seldom meet. */
struct shard {
    pthread_mutex_t lock;
    struct session **buckets;
    size_t bucket_count; /* power of two */
    struct list ages;
    size_t blocks, block_limit, count;
};

struct tls_cache {
    struct shard shards[SHARDS];
};

static size_t blocks_of(const struct session *s)
{
    return (sizeof(*s) + s->len + BLOCK_BYTES - 1) / BLOCK_BYTES;
}

struct tls_cache *tls_cache_new(size_t blocks)
{
    struct tls_cache *cache = calloc(1, sizeof(*cache));
    size_t each = (blocks + SHARDS - 1) / SHARDS, buckets = 16;

    if (!cache)
        return NULL;
    while (buckets < each / 2)
        buckets *= 2;
    for (size_t i = 0; i < SHARDS; i++) {
        struct shard *s = &cache->shards[i];

        pthread_mutex_init(&s->lock, NULL);
        list_init(&s->ages);
        /* Even the smallest cache holds one session a shard. */
        s->block_limit = each > 2 ? each : 2;
        s->bucket_count = buckets;
        s->buckets = calloc(buckets, sizeof(*s->buckets));
        if (!s->buckets) {
            tls_cache_free(cache);
            return NULL;
        }
    }
    return cache;
}

static void drop(struct shard *s, struct session *session)
{
    struct session **at = &s->buckets[session->hash / SHARDS & (s->bucket_count - 1)];

    while (*at != session)
        at = &(*at)->next;
    *at = session->next;
    list_del(&session->age);
    s->blocks -= blocks_of(session);
    s->count--;
    OPENSSL_cleanse(session->data, session->len);
    free(session);
}

void tls_cache_free(struct tls_cache *cache)
{
    if (!cache)
        return;
    for (size_t i = 0; i < SHARDS; i++) {
        struct shard *s = &cache->shards[i];

        while (s->buckets && !list_is_empty(&s->ages))
            drop(s, LIST_ENTRY(s->ages.next, struct session, age));
        free(s->buckets);
        pthread_mutex_destroy(&s->lock);
    }
    free(cache);
}

static struct session *find(struct shard *s, uint32_t hash, struct str id)
{
    struct session *session = s->buckets[hash / SHARDS & (s->bucket_count - 1)];

    while (session && !(session->hash == hash && session->id_len == id.len &&
                        memcmp(session->id, id.ptr, id.len) == 0))
        session = session->next;
    return session;
}

/* Ids are random bytes of our own making, but a client may send any. */
static uint32_t hash_id(struct str id)
{
    uint64_t h = hash_fnv1a64(id, 0);

    return (uint32_t)(h ^ h >> 32);
}

int tls_cache_put(struct tls_cache *cache, struct str id, struct str session, uint64_t expires_s)
{
    uint32_t hash = hash_id(id);
    struct shard *s = &cache->shards[hash % SHARDS];
    struct session *entry, *old, **bucket;
    size_t blocks;

    if (id.len == 0 || id.len > ID_MAX_BYTES || session.len > SESSION_MAX_BYTES)
        return SP_ETOOBIG;
    entry = malloc(sizeof(*entry) + session.len);
    if (!entry)
        return SP_ENOMEM;
    *entry = (struct session){.expires_s = expires_s,
                              .hash = hash,
                              .len = (uint32_t)session.len,
                              .id_len = (uint8_t)id.len};
    memcpy(entry->id, id.ptr, id.len);
    memcpy(entry->data, session.ptr, session.len);
    blocks = blocks_of(entry);
    pthread_mutex_lock(&s->lock);
    old = find(s, hash, id);
    if (old)
        drop(s, old);
    while (s->blocks + blocks > s->block_limit && !list_is_empty(&s->ages))
        drop(s, LIST_ENTRY(s->ages.next, struct session, age));
    bucket = &s->buckets[hash / SHARDS & (s->bucket_count - 1)];
    entry->next = *bucket;
    *bucket = entry;
    list_push_back(&s->ages, &entry->age);
    s->blocks += blocks;
    s->count++;
    pthread_mutex_unlock(&s->lock);
    return 0;
}

ptrdiff_t tls_cache_get(struct tls_cache *cache, struct str id, uint64_t now_s, void *out,
                        size_t room)
{
    uint32_t hash = hash_id(id);
    struct shard *s = &cache->shards[hash % SHARDS];
    struct session *session;
    ptrdiff_t len = SP_ENOENT;

    pthread_mutex_lock(&s->lock);
    session = find(s, hash, id);
    if (session && session->expires_s <= now_s) {
        drop(s, session);
    } else if (session && session->len > room) {
        len = SP_ETOOBIG;
    } else if (session) {
        memcpy(out, session->data, session->len);
        len = (ptrdiff_t)session->len;
        /* Used again: the most idle ones go first. */
        list_del(&session->age);
        list_push_back(&s->ages, &session->age);
    }
    pthread_mutex_unlock(&s->lock);
    return len;
}

void tls_cache_remove(struct tls_cache *cache, struct str id)
{
    uint32_t hash = hash_id(id);
    struct shard *s = &cache->shards[hash % SHARDS];
    struct session *session;

    pthread_mutex_lock(&s->lock);
    session = find(s, hash, id);
    if (session)
        drop(s, session);
    pthread_mutex_unlock(&s->lock);
}

size_t tls_cache_count(struct tls_cache *cache)
{
    size_t count = 0;

    for (size_t i = 0; i < SHARDS; i++) {
        pthread_mutex_lock(&cache->shards[i].lock);
        count += cache->shards[i].count;
        pthread_mutex_unlock(&cache->shards[i].lock);
    }
    return count;
}

static struct str id_of(const SSL_SESSION *session)
{
    unsigned len = 0;
    const unsigned char *id = SSL_SESSION_get_id(session, &len);

    return str_make((const char *)id, len);
}

static int on_new(SSL *ssl, SSL_SESSION *session)
{
    struct tls_cache *cache = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    unsigned char data[SESSION_MAX_BYTES], *at = data;
    int len;

    /* With stateless tickets of TLS 1.3 the id means nothing. */
    if (SSL_version(ssl) >= TLS1_3_VERSION && !(SSL_get_options(ssl) & SSL_OP_NO_TICKET))
        return 0;
    len = i2d_SSL_SESSION(session, NULL);
    if (len <= 0 || len > SESSION_MAX_BYTES)
        return 0;
    (void)i2d_SSL_SESSION(session, &at);
    (void)tls_cache_put(cache, id_of(session), str_make((char *)data, (size_t)len),
                        (uint64_t)time(NULL) + (uint64_t)SSL_SESSION_get_timeout(session));
    OPENSSL_cleanse(data, (size_t)len);
    return 0; /* the session object stays the library's */
}

static SSL_SESSION *on_get(SSL *ssl, const unsigned char *id, int id_len, int *copy)
{
    struct tls_cache *cache = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    unsigned char data[SESSION_MAX_BYTES];
    const unsigned char *at = data;
    SSL_SESSION *session;
    ptrdiff_t len = tls_cache_get(cache, str_make((const char *)id, (size_t)id_len),
                                  (uint64_t)time(NULL), data, sizeof(data));

    *copy = 0;
    if (len < 0)
        return NULL;
    session = d2i_SSL_SESSION(NULL, &at, (long)len);
    OPENSSL_cleanse(data, (size_t)len);
    return session;
}

static void on_remove(SSL_CTX *ctx, SSL_SESSION *session)
{
    tls_cache_remove(SSL_CTX_get_app_data(ctx), id_of(session));
}

void tls_cache_attach(struct tls_cache *cache, SSL_CTX *ctx)
{
    SSL_CTX_set_app_data(ctx, cache);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_SERVER | SSL_SESS_CACHE_NO_INTERNAL |
                                            SSL_SESS_CACHE_NO_AUTO_CLEAR);
    SSL_CTX_sess_set_new_cb(ctx, on_new);
    SSL_CTX_sess_set_get_cb(ctx, on_get);
    SSL_CTX_sess_set_remove_cb(ctx, on_remove);
}
