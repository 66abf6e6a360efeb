#include "tls/worker.h"

#include "base/status.h"
#include "tls/crypto.h"
#include "tls/errors.h"
#include "tls/hello.h"
#include "tls/random.h"
#include "tls/session.h"

#include <openssl/conf.h>
#include <openssl/crypto.h>

#define POOL_KEEP 64

/* Settings of the system's configuration file hold in the workers' library contexts too. */
static void load_system_config(OSSL_LIB_CTX *libctx)
{
    char *file = CONF_get1_default_config_file();

    if (file)
        (void)OSSL_LIB_CTX_load_config(libctx, file);
    OPENSSL_free(file);
    tls_clear_errors();
}

struct tls_worker *tls_worker_new(const struct tls_crypto_options *crypto)
{
    struct tls_worker *w = calloc(1, sizeof(*w));

    if (!w)
        return NULL;
    tls_random_install();
    list_init(&w->stores);
    map_init(&w->servers);
    map_init(&w->clients);
    buf_pool_init(&w->pool, TLS_SEGMENT_BYTES, POOL_KEEP, 0);
    atomic_init(&w->full, 0);
    atomic_init(&w->resumed, 0);
    atomic_init(&w->failed, 0);
    atomic_init(&w->refused, 0);
    w->libctx = OSSL_LIB_CTX_new();
    if (w->libctx) {
        load_system_config(w->libctx);
        w->ticket_cipher = EVP_CIPHER_fetch(w->libctx, "AES-256-CBC", NULL);
    }
    w->gather = malloc(TLS_RECORD_BYTES);
    if (!w->libctx || !w->ticket_cipher || !w->gather || (crypto && tls_crypto_new(w, crypto) != 0)) {
        tls_worker_free(w);
        return NULL;
    }
    return w;
}

void tls_worker_start(struct tls_worker *w)
{
    if (w->crypto)
        tls_crypto_start(w->crypto);
}

void tls_worker_stop(struct tls_worker *w)
{
    if (w->crypto)
        tls_crypto_stop(w->crypto);
}

bool tls_worker_crypto_counters(const struct tls_worker *w, struct sp_queue_counters *sum)
{
    const struct sp_queue *queue = w->crypto ? tls_crypto_queue(w->crypto) : NULL;

    if (queue)
        sp_queue_counters_add(queue, sum);
    return queue != NULL;
}

static void free_server_view(struct tls_server_view *view)
{
    for (size_t i = 0; i < view->count; i++)
        SSL_CTX_free(view->ssl[i]);
    free(view->ssl);
    free(view);
}

static void free_store_view(struct tls_store_view *view)
{
    for (size_t i = 0; i < view->identity_count; i++)
        tls_identity_free(view->identities[i]);
    for (size_t i = 0; i < view->trust_count; i++)
        tls_trust_view_free(view->trusts[i]);
    for (size_t i = 0; i < view->issuers.capacity; i++) {
        if (view->issuers.slots[i].key.ptr)
            X509_free(view->issuers.slots[i].value);
    }
    map_release(&view->issuers);
    free(view->identities);
    free(view->trusts);
    free(view);
}

void tls_worker_free(struct tls_worker *w)
{
    struct list *item;

    if (!w)
        return;
    for (size_t i = 0; i < w->servers.capacity; i++) {
        if (w->servers.slots[i].key.ptr)
            free_server_view(w->servers.slots[i].value);
    }
    for (size_t i = 0; i < w->clients.capacity; i++) {
        struct tls_client_view *view = w->clients.slots[i].value;

        if (view)
            SSL_CTX_free(view->ssl);
        free(view);
    }
    map_release(&w->servers);
    map_release(&w->clients);
    while ((item = list_pop_front(&w->stores)))
        free_store_view(LIST_ENTRY(item, struct tls_store_view, link));
    buf_pool_release(&w->pool);
    if (w->gather)
        OPENSSL_cleanse(w->gather, TLS_RECORD_BYTES);
    free(w->gather);
    EVP_CIPHER_free(w->ticket_cipher);
    tls_crypto_free(w);
    OSSL_LIB_CTX_free(w->libctx);
    free(w);
}

void tls_worker_counters(const struct tls_worker *w, struct tls_counters *out)
{
    out->full_handshakes = atomic_load_explicit(&w->full, memory_order_relaxed);
    out->resumed_handshakes = atomic_load_explicit(&w->resumed, memory_order_relaxed);
    out->refused_handshakes = atomic_load_explicit(&w->refused, memory_order_relaxed);
    out->failed_handshakes = atomic_load_explicit(&w->failed, memory_order_relaxed);
}

struct tls_store_view *tls_worker_store(struct tls_worker *w, const struct tls_store *store)
{
    struct tls_store_view *view;

    LIST_FOR_EACH(item, &w->stores) {
        view = LIST_ENTRY(item, struct tls_store_view, link);
        if (view->id == store->id)
            return view;
    }
    view = calloc(1, sizeof(*view));
    if (!view)
        return NULL;
    view->id = store->id;
    map_init(&view->issuers);
    list_push_back(&w->stores, &view->link);
    return view;
}

/* Makes room for index `at` in a table of pointers; the new places are empty. */
static bool grow(void *table, size_t *count, size_t at, size_t least)
{
    void ***slots = table, **more;
    size_t room = at + 1 > least ? at + 1 : least;

    if (at < *count)
        return true;
    more = realloc(*slots, room * sizeof(*more));
    if (!more)
        return false;
    memset(more + *count, 0, (room - *count) * sizeof(*more));
    *slots = more;
    *count = room;
    return true;
}

struct tls_identity *tls_worker_identity(struct tls_worker *w, struct tls_store_view *view,
                                         const struct tls_cert *cert)
{
    if (!grow(&view->identities, &view->identity_count, cert->index, cert->index + cert->index / 2))
        return NULL;
    if (!view->identities[cert->index])
        view->identities[cert->index] = tls_crypto_adopt(w, tls_identity_new(w->libctx, cert, &view->issuers));
    return view->identities[cert->index];
}

static struct tls_trust_view *trust_of(struct tls_worker *w, struct tls_store_view *view,
                                       const struct tls_trust *trust)
{
    if (!grow(&view->trusts, &view->trust_count, trust->index, 0))
        return NULL;
    if (!view->trusts[trust->index])
        view->trusts[trust->index] = tls_trust_view_new(trust, w->libctx);
    return view->trusts[trust->index];
}

static SSL_CTX *build(struct tls_worker *w, struct tls_store_view *store,
                      const struct tls_profile *profile)
{
    struct tls_trust_view *trust = NULL;
    const char *what, *value;

    if (profile->trust && !(trust = trust_of(w, store, profile->trust)))
        return NULL;
    return tls_profile_build(profile, w->libctx, trust, &what, &value);
}

static bool install(SSL_CTX *ssl, const struct tls_identity *identity)
{
    if (!identity ||
        SSL_CTX_use_cert_and_key(ssl, identity->x509, identity->key, identity->chain, 1) != 1)
        return false;
    if (identity->dh && EVP_PKEY_up_ref(identity->dh) == 1 &&
        SSL_CTX_set0_tmp_dh_pkey(ssl, identity->dh) != 1)
        EVP_PKEY_free(identity->dh);
    return true;
}

SSL_CTX *tls_worker_profile(struct tls_worker *w, struct tls_server_ctx *ctx,
                            struct tls_server_view *view, size_t profile)
{
    SSL_CTX *ssl = view->ssl[profile];

    if (ssl)
        return ssl;
    ssl = build(w, view->store, &ctx->profiles[profile]);
    if (!ssl)
        return NULL;
    tls_hello_attach(ssl, ctx, profile);
    if (view->installed && tls_entry_profile(ctx, view->installed) == &ctx->profiles[profile] &&
        !install(ssl, tls_worker_identity(w, view->store, view->installed->cert))) {
        SSL_CTX_free(ssl);
        return NULL;
    }
    view->ssl[profile] = ssl;
    return ssl;
}

struct tls_server_view *tls_worker_server(struct tls_worker *w, struct tls_server_ctx *ctx)
{
    struct str key = str_make((const char *)ctx->id, sizeof(ctx->id));
    struct tls_server_view *view = map_get(&w->servers, key);
    const struct tls_entry *entry;

    if (view)
        return view;
    view = calloc(1, sizeof(*view));
    if (!view)
        return NULL;
    memcpy(view->id, ctx->id, sizeof(view->id));
    view->store = tls_worker_store(w, ctx->store);
    view->count = ctx->profile_count;
    view->ssl = calloc(view->count, sizeof(SSL_CTX *));
    /*
     * The default certificate sits in the context itself: connections that get it need no
     * preparation.
     */
    entry = ctx->sni->defaults.first ? ctx->sni->defaults.first->entry : NULL;
    if (entry && (ctx->single || !entry->options)) {
        view->installed = entry;
        view->first = (size_t)(tls_entry_profile(ctx, entry) - ctx->profiles);
    }
    if (!view->store || !view->ssl || !tls_worker_profile(w, ctx, view, view->first) ||
        map_put(&w->servers, str_make((const char *)view->id, sizeof(view->id)), view) != 0) {
        free_server_view(view);
        return NULL;
    }
    return view;
}

struct tls_client_view *tls_worker_client(struct tls_worker *w, struct tls_client_ctx *ctx)
{
    struct str key = str_make((const char *)ctx->id, sizeof(ctx->id));
    struct tls_client_view *view = map_get(&w->clients, key);
    struct tls_store_view *store;

    if (view)
        return view;
    view = calloc(1, sizeof(*view));
    store = tls_worker_store(w, ctx->store);
    if (!view || !store)
        goto failed;
    memcpy(view->id, ctx->id, sizeof(view->id));
    view->ssl = build(w, store, &ctx->profile);
    if (!view->ssl)
        goto failed;
    if (ctx->cert && !install(view->ssl, tls_worker_identity(w, store, ctx->cert)))
        goto failed;
    if (ctx->reuse)
        tls_session_attach(view->ssl);
    if (map_put(&w->clients, str_make((const char *)view->id, sizeof(view->id)), view) != 0)
        goto failed;
    return view;

failed:
    if (view)
        SSL_CTX_free(view->ssl);
    free(view);
    return NULL;
}

int tls_worker_prepare_server(struct tls_worker *w, struct tls_server_ctx *ctx)
{
    return tls_worker_server(w, ctx) ? 0 : SP_ENOMEM;
}

int tls_worker_prepare_client(struct tls_worker *w, struct tls_client_ctx *ctx)
{
    return tls_worker_client(w, ctx) ? 0 : SP_ENOMEM;
}
