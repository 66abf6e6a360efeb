#include "tls/crypto.h"

#include "base/status.h"
#include "tls/errors.h"

#include <sallyport/provider.h>

#include <openssl/err.h>
#include <openssl/provider.h>

#define POLL_BATCH 32
#define PROPERTIES "?provider="

struct tls_crypto {
    struct tls_worker *worker;
    struct io_loop *loop;
    struct sp_queue *queue; /* NULL: a foreign provider does the operations */
    OSSL_PROVIDER *base, *provider;
    struct io_turn_hook hook;
    struct io_message wake;
    atomic_bool woken;  /* the message is on its way */
    bool hooked;
    size_t waiting;     /* operations that waited at the end of the last turn */
    size_t bound;       /* see tls_crypto_is_full; 0: none */
    struct list ready;     /* connections whose operation is done */
    struct list abandoned; /* freed by their owners, with an operation that is not back */
};

/* --- waking ------------------------------------------------------------------------------ */

/* On a crypto thread. */
static void wake(void *arg)
{
    struct tls_crypto *crypto = arg;

    if (!atomic_exchange(&crypto->woken, true))
        io_loop_post(crypto->loop, &crypto->wake);
}

/* The message is the wake-up; the hook at the end of the turn does the work. */
static void on_wake(struct io_message *m)
{
    struct tls_crypto *crypto = LIST_ENTRY(m, struct tls_crypto, wake);

    atomic_store(&crypto->woken, false);
}

/* The library calls this for a connection whose operation is done; see sallyport/provider.h. */
static int on_done(SSL *ssl, void *arg)
{
    struct tls_conn *c = arg;

    c->operation_done = true;
    if (list_is_linked(&c->crypto_link))
        list_del(&c->crypto_link);
    list_push_back(&c->worker->crypto->ready, &c->crypto_link);
    return 1;
}

/* --- connections ---------------------------------------------------------------------------- */

void tls_crypto_attach(struct tls_conn *c)
{
    /* A foreign provider computes inline. */
    if (!c->worker->crypto->queue)
        return;
    SSL_set_mode(c->ssl, SSL_MODE_ASYNC);
    SSL_set_async_callback(c->ssl, on_done);
    SSL_set_async_callback_arg(c->ssl, c);
}

void tls_crypto_detach(struct tls_conn *c)
{
    SSL_clear_mode(c->ssl, SSL_MODE_ASYNC);
}

bool tls_crypto_may_resume(struct tls_conn *c)
{
    bool done = c->operation_done;

    c->operation_done = false;
    return done;
}

/* Tells the paused job to give up; false: it is not back yet. */
static bool give_up(struct tls_conn *c)
{
    int n;

    ERR_clear_error();
    sp_provider_set_abandoning(true);
    n = SSL_do_handshake(c->ssl);
    sp_provider_set_abandoning(false);
    c->paused = n != 1 && SSL_get_error(c->ssl, n) == SSL_ERROR_WANT_ASYNC;
    tls_clear_errors();
    return !c->paused;
}

bool tls_crypto_abandon(struct tls_conn *c)
{
    struct tls_crypto *crypto = c->worker->crypto;

    c->sock = NULL;
    if (give_up(c))
        return true;
    c->abandoned = true;
    /* What is ready already stays so: it comes up in this turn. */
    if (!list_is_linked(&c->crypto_link))
        list_push_back(&crypto->abandoned, &c->crypto_link);
    return false;
}

bool tls_crypto_is_full(const struct tls_worker *w, const struct tls_cert *cert)
{
    const struct tls_crypto *crypto = w->crypto;

    return crypto && crypto->bound && cert->kind == TLS_KEY_RSA &&
           sp_queue_in_flight(crypto->queue) >= crypto->bound;
}

struct tls_identity *tls_crypto_adopt(const struct tls_worker *w, struct tls_identity *identity)
{
    EVP_PKEY *own;

    if (!identity || !w->crypto || !w->crypto->queue)
        return identity;
    own = sp_provider_adopt(w->libctx, identity->key);
    if (own) {
        EVP_PKEY_free(identity->key);
        identity->key = own;
    }
    tls_clear_errors();
    return identity;
}

/* --- the end of a turn ------------------------------------------------------------------------ */

static void collect(struct tls_crypto *crypto)
{
    struct sp_op *ops[POLL_BATCH];
    size_t n;

    while ((n = sp_queue_poll(crypto->queue, ops, POLL_BATCH)) > 0) {
        for (size_t i = 0; i < n; i++)
            sp_provider_complete(ops[i]);
    }
}

/* Those that were ready when it began: what they submit is for the next turn. */
static void resume_ready(struct tls_crypto *crypto)
{
    struct list batch, *item;

    if (list_is_empty(&crypto->ready))
        return;
    list_init(&batch);
    while ((item = list_pop_front(&crypto->ready)))
        list_push_back(&batch, item);
    while (!list_is_empty(&batch)) {
        struct tls_conn *c = LIST_ENTRY(batch.next, struct tls_conn, crypto_link);

        list_del(&c->crypto_link);
        if (!c->abandoned)
            c->sock->on_event(c->sock, 0); /* may free it, and others */
        else if (give_up(c))
            tls_conn_release(c);
        else
            list_push_back(&crypto->abandoned, &c->crypto_link);
    }
}

/*
 * Batches that are full run at once. Others wait for as long as each turn brings further operations: a turn without
 * any means that there is nothing better to do than to run what there is.
 */
static bool turn(struct io_turn_hook *h)
{
    struct tls_crypto *crypto = LIST_ENTRY(h, struct tls_crypto, hook);
    struct sp_queue *queue = crypto->queue;

    if (sp_queue_in_flight(queue) == 0 && list_is_empty(&crypto->ready))
        return false;
    sp_queue_flush(queue, sp_queue_waiting(queue) > crypto->waiting ? SP_FLUSH_FULL : SP_FLUSH_ALL);
    crypto->waiting = sp_queue_waiting(queue);
    collect(crypto);
    resume_ready(crypto);
    return sp_queue_waiting(queue) > 0 || !list_is_empty(&crypto->ready);
}

void tls_crypto_start(struct tls_crypto *crypto)
{
    if (!crypto->queue)
        return;
    sp_queue_set_current(crypto->queue);
    if (!crypto->hooked)
        io_loop_add_hook(crypto->loop, &crypto->hook);
    crypto->hooked = true;
}

void tls_crypto_stop(struct tls_crypto *crypto)
{
    struct list *item;

    if (!crypto->queue)
        return;
    while (sp_queue_in_flight(crypto->queue) > 0) {
        (void)sp_queue_flush(crypto->queue, SP_FLUSH_ALL);
        collect(crypto);
        /* All their owners are gone. */
        resume_ready(crypto);
    }
    while ((item = list_pop_front(&crypto->abandoned)))
        tls_conn_release(LIST_ENTRY(item, struct tls_conn, crypto_link));
    sp_queue_set_current(NULL);
}

/* --- life ---------------------------------------------------------------------------------------- */

const struct sp_queue *tls_crypto_queue(const struct tls_crypto *crypto)
{
    return crypto->queue;
}

/* Any provider that is loaded by name turns the automatic loading of the default one off. */
static int load_providers(struct tls_crypto *crypto, const char *foreign)
{
    OSSL_LIB_CTX *libctx = crypto->worker->libctx;
    const char *name = foreign ? foreign : "sallyport";
    char properties[128];

    if (!foreign && OSSL_PROVIDER_add_builtin(libctx, name, sp_provider_init) != 1)
        return SP_ENOMEM;
    crypto->base = OSSL_PROVIDER_load(libctx, "default");
    crypto->provider = OSSL_PROVIDER_load(libctx, name);
    if (!crypto->base || !crypto->provider)
        return SP_EUNSUPPORTED;
    snprintf(properties, sizeof(properties), PROPERTIES "%s", name);
    return EVP_set_default_properties(libctx, properties) == 1 ? 0 : SP_ENOMEM;
}

int tls_crypto_new(struct tls_worker *w, const struct tls_crypto_options *options)
{
    struct tls_crypto *crypto = calloc(1, sizeof(*crypto));
    struct sp_queue_options queue = options->queue;
    int status;

    if (!crypto)
        return SP_ENOMEM;
    w->crypto = crypto;
    crypto->worker = w;
    crypto->loop = options->loop;
    crypto->hook.run = turn;
    crypto->wake.run = on_wake;
    atomic_init(&crypto->woken, false);
    list_init(&crypto->ready);
    list_init(&crypto->abandoned);
    if (!options->provider) {
        /* The bound is looked at before a handshake begins its operations, not in the middle of them. */
        crypto->bound = queue.max_waiting;
        queue.max_waiting = 0;
        queue.wake = wake;
        queue.wake_arg = crypto;
        status = sp_queue_new(&crypto->queue, &queue);
        if (status != 0)
            return status;
    }
    status = load_providers(crypto, options->provider);
    tls_clear_errors();
    return status;
}

void tls_crypto_free(struct tls_worker *w)
{
    struct tls_crypto *crypto = w->crypto;

    if (!crypto)
        return;
    if (crypto->provider)
        (void)OSSL_PROVIDER_unload(crypto->provider);
    if (crypto->base)
        (void)OSSL_PROVIDER_unload(crypto->base);
    sp_queue_free(crypto->queue);
    free(crypto);
    w->crypto = NULL;
}
