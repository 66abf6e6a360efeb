/*
 * Who does the private-key operations: ssl-engine, crypto-backend, crypto-threads, crypto-queue-max.
 *
 * A crypto device is opened later than the rest is built (app_open_crypto): DPDK's threads and memory survive no fork.
 */
#include "proxy/build.h"

#define RSA_ROWS (1u << SP_ALGORITHM_RSA2048 | 1u << SP_ALGORITHM_RSA3072 | 1u << SP_ALGORITHM_RSA4096)
#define SIGN_ROWS (1u << SP_ALGORITHM_P256_SIGN)
#define X25519_ROWS (1u << SP_ALGORITHM_X25519_KEYGEN | 1u << SP_ALGORITHM_X25519_DERIVE)
#define EXCHANGE_ROWS (1u << SP_ALGORITHM_P256_KEYGEN | 1u << SP_ALGORITHM_P256_DERIVE | X25519_ROWS)
#define ALL_ROWS ((1u << SP_ALGORITHMS) - 1)

/* The words that the engines of the field know, as far as they name private-key operations. */
static const struct {
    const char *word;
    unsigned rows;
} algorithm_words[] = {
    {"ALL", ALL_ROWS},        {"DEFAULT", ALL_ROWS},   {"RSA", RSA_ROWS},
    {"EC", SIGN_ROWS | EXCHANGE_ROWS}, {"ECDSA", SIGN_ROWS}, {"ECDH", EXCHANGE_ROWS},
    {"ECX", X25519_ROWS},     {"X25519", X25519_ROWS}, {"PKEY_CRYPTO", ALL_ROWS},
    {"PKEY", ALL_ROWS},
};

static unsigned rows_of(struct build *b, struct str word)
{
    for (size_t i = 0; i < sizeof(algorithm_words) / sizeof(algorithm_words[0]); i++) {
        if (str_ieq(word, str_of(algorithm_words[i].word)))
            return algorithm_words[i].rows;
    }
    diag_error(b->diag, b->app->model->global.ssl_engine_loc,
               "'ssl-engine': unknown algorithm '%.*s'; expected RSA, EC, ECDSA, ECDH, ECX or ALL", STR_FMT(word));
    return 0;
}

/* The rows that the engine's list leaves to the scalar library. */
static unsigned scalar_rows(struct build *b, const char *list)
{
    struct str rest = str_of(list ? list : "ALL");
    unsigned rows = 0;

    while (rest.len) {
        size_t len = str_chr(rest, ',');

        rows |= rows_of(b, str_make(rest.ptr, len));
        rest = str_from(rest, len + 1);
    }
    return ALL_ROWS & ~rows;
}

static void note(struct build *b, struct cfg_loc loc, const char *text)
{
    b->app->crypto_note = text;
    if (text)
        diag_warning(b->diag, loc, "%s", text);
}

static const char *own_crypto(void)
{
    return sp_backend_missing(SP_BACKEND_MULTIBUFFER) ? "OpenSSL's software crypto runs" : "Sallyport's multibuffer lanes run";
}

/* An engine or a provider of the machine takes the queue's place. */
static void foreign_engine(struct build *b, struct tls_crypto_options *crypto)
{
    const struct cfg_global *g = &b->app->model->global;
    struct app *app = b->app;

    switch (tls_engine_find(g->ssl_engine)) {
    case TLS_ENGINE_PROVIDER:
        crypto->provider = g->ssl_engine;
        return;
    case TLS_ENGINE_LEGACY:
        if (tls_engine_use(g->ssl_engine, g->ssl_engine_algos) == 0) {
            app->crypto_is_foreign = true;
            return;
        }
        note(b, g->ssl_engine_loc,
             arena_printf(&app->arena, "ssl-engine '%s' cannot start, or does not do %s: %s instead",
                          g->ssl_engine, g->ssl_engine_algos ? g->ssl_engine_algos : "any operation", own_crypto()));
        return;
    case TLS_ENGINE_NONE:
        note(b, g->ssl_engine_loc,
             arena_printf(&app->arena, "ssl-engine '%s' is not available on this machine: %s instead",
                          g->ssl_engine, own_crypto()));
    }
}

static void engine(struct build *b, struct tls_crypto_options *crypto)
{
    const struct cfg_global *g = &b->app->model->global;
    enum sp_policy *policy = crypto->queue.policy;

    if (!g->ssl_engine)
        return;
    if (strcmp(g->ssl_engine, "openssl") == 0)
        policy[SP_BACKEND_OPENSSL] = SP_POLICY_REQUIRE;
    else if (strcmp(g->ssl_engine, "threads") == 0)
        b->app->crypto_thread_count = b->app->worker_count;
    else if (strcmp(g->ssl_engine, "multibuffer") != 0) {
        foreign_engine(b, crypto);
        return;
    }
    crypto->queue.scalar_only = scalar_rows(b, g->ssl_engine_algos);
}

static void backends(struct build *b, struct tls_crypto_options *crypto)
{
    static const enum sp_policy policies[] = {
        [CFG_CRYPTO_OFF] = SP_POLICY_OFF,
        [CFG_CRYPTO_PREFER] = SP_POLICY_PREFER,
        [CFG_CRYPTO_REQUIRE] = SP_POLICY_REQUIRE,
    };
    const struct cfg_global *g = &b->app->model->global;
    struct app *app = b->app;

    for (int i = 0; i < CFG_CRYPTO_BACKENDS; i++) {
        if (g->crypto_backends[i] != CFG_CRYPTO_UNSET)
            crypto->queue.policy[i] = policies[g->crypto_backends[i]];
    }
    if (g->crypto_backends[CFG_CRYPTO_THREADS] >= CFG_CRYPTO_PREFER && !app->crypto_thread_count)
        app->crypto_thread_count = app->worker_count;
    if (g->crypto_threads > 0)
        app->crypto_thread_count = g->crypto_threads;
    if (g->crypto_backends[CFG_CRYPTO_THREADS] == CFG_CRYPTO_OFF)
        app->crypto_thread_count = 0;
}

/* Backends that the configuration requires and that cannot be had. */
static void check_required(struct build *b, const struct tls_crypto_options *crypto)
{
    const struct cfg_global *g = &b->app->model->global;
    const enum sp_policy *policy = crypto->queue.policy;
    const char *missing = sp_backend_missing(SP_BACKEND_MULTIBUFFER);

    if (policy[SP_BACKEND_MULTIBUFFER] == SP_POLICY_REQUIRE && policy[SP_BACKEND_OPENSSL] == SP_POLICY_REQUIRE)
        diag_error(b->diag, g->crypto_loc, "'crypto-backend': 'openssl' and 'multibuffer' exclude each other; expected one 'require'");
    else if (policy[SP_BACKEND_MULTIBUFFER] == SP_POLICY_REQUIRE && missing)
        diag_error(b->diag, g->crypto_loc, "'crypto-backend multibuffer require': %s", missing);
    else if (policy[SP_BACKEND_MULTIBUFFER] == SP_POLICY_PREFER && policy[SP_BACKEND_OPENSSL] != SP_POLICY_REQUIRE && missing &&
             !b->app->crypto_note)
        b->app->crypto_note = arena_printf(&b->app->arena, "%s: private-key operations run one by one in %s", missing,
                                           tls_library_text());
}

/* Whether DPDK is there at all; whether the device is shows when it is opened. */
static void check_device(struct build *b, struct tls_crypto_options *crypto)
{
    const struct cfg_global *g = &b->app->model->global;
    const char *missing;

    if (!g->crypto_device || crypto->queue.policy[SP_BACKEND_CRYPTODEV] == SP_POLICY_OFF)
        return;
    missing = sp_backend_missing(SP_BACKEND_CRYPTODEV);
    if (!missing)
        return;
    if (crypto->queue.policy[SP_BACKEND_CRYPTODEV] == SP_POLICY_REQUIRE)
        diag_error(b->diag, g->crypto_device_loc, "'crypto-backend cryptodev:%s': %s", g->crypto_device, missing);
    else
        note(b, g->crypto_device_loc,
             arena_printf(&b->app->arena, "crypto-backend cryptodev:%s is not there (%s): %s instead", g->crypto_device,
                          missing, own_crypto()));
    crypto->queue.policy[SP_BACKEND_CRYPTODEV] = SP_POLICY_OFF;
}

int app_open_crypto(struct app *app, struct diag *diag)
{
    const struct cfg_global *g = &app->model->global;
    enum sp_policy *policy = &app->crypto.queue.policy[SP_BACKEND_CRYPTODEV];
    char why[SP_CRYPTODEV_WHY_BYTES];
    int status;

    if (!g->crypto_device || *policy == SP_POLICY_OFF || app->crypto.provider || app->crypto_is_foreign)
        return 0;
    status = sp_cryptodev_new(&app->cryptodev, g->crypto_device, (unsigned)app->worker_count, why);
    app->crypto.queue.cryptodev = app->cryptodev;
    if (status == 0)
        return 0;
    if (*policy == SP_POLICY_REQUIRE) {
        diag_error(diag, g->crypto_device_loc, "'crypto-backend cryptodev:%s': %s", g->crypto_device, why);
        return status;
    }
    app->crypto_note = arena_printf(&app->arena, "crypto-backend cryptodev:%s is not there (%s): %s instead",
                                    g->crypto_device, why, own_crypto());
    diag_warning(diag, g->crypto_device_loc, "%s", app->crypto_note);
    *policy = SP_POLICY_OFF;
    return 0;
}

void build_crypto(struct build *b)
{
    struct app *app = b->app;
    struct tls_crypto_options *crypto = &app->crypto;

    sp_queue_options_init(&crypto->queue);
    crypto->queue.max_waiting = (size_t)app->model->global.crypto_queue_max;
    engine(b, crypto);
    if (crypto->provider || app->crypto_is_foreign)
        return;
    backends(b, crypto);
    check_required(b, crypto);
    check_device(b, crypto);
}
