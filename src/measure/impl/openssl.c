/*
 * OpenSSL by its EVP interface, as lean as it allows: everything fetched once, the key set once, contexts used again.
 *
 * `openssl` does whole requests: a new IV each, update, final, tag. `openssl-update` does one stream that never ends, an
 * update a request: what `openssl speed -evp` times of CBC, CTR, XTS and ChaCha20-Poly1305 (of GCM it times a new IV and the
 * final call too, of a digest all of it).
 */
#include "measure/impl/openssl_engine.h"
#include "measure/sweep_impl.h"

#include <sallyport/status.h>

#include <openssl/conf.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/provider.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES 64
#define ENGINE_PREFIX "engine="
/* 2^20 blocks (IEEE 1619, section 5.1), which OpenSSL enforces. */
#define XTS_BYTES_MAX (16u << 20)

struct sweep_device {
    OSSL_LIB_CTX *library;
    OSSL_PROVIDER *named, *standard;
    ENGINE *engine; /* NULL: providers */
    bool is_update;
    char name[NAME_MAX_BYTES];
    char query[NAME_MAX_BYTES + 16]; /* the property query of fetches */
};

struct sweep_session {
    const struct sweep_algorithm *algorithm;
    ENGINE *engine;
    EVP_CIPHER *cipher;
    EVP_MD *md;
    EVP_MAC *mac;
    EVP_CIPHER_CTX *cipher_ctx;
    EVP_MD_CTX *md_ctx;
    EVP_MAC_CTX *mac_ctx;
    OSSL_PARAM tag[2]; /* asks for the tag; set up once because building it a request costs */
    EVP_CIPHER_CTX *stream; /* cipher_ctx, from the first request of a stream on */
    bool is_update, is_started;
    int update_len; /* here and not on the stack, for the same reason as start_stream is not inlined */
    unsigned depth, done_first, done_count;
    struct sweep_request *done[]; /* a ring of depth */
};

/* --- device ------------------------------------------------------------------------------------- */

static void device_close(struct sweep_device *device)
{
    openssl_engine_close(device->engine);
    if (device->named)
        OSSL_PROVIDER_unload(device->named);
    if (device->standard)
        OSSL_PROVIDER_unload(device->standard);
    OSSL_LIB_CTX_free(device->library);
    free(device);
}

/* A name that stands in a property query as it is. */
static bool is_plain(const char *name)
{
    size_t len = strlen(name);

    return len > 0 && len < NAME_MAX_BYTES && !strpbrk(name, "'\"\\\n");
}

static int open_provider(struct sweep_device *device, const char *name, char *description, size_t size,
                         struct sweep_why *why)
{
    char *config;

    if (name && !is_plain(name))
        return sweep_why(why, SP_EINVAL, "no name of a provider: 1 to %d bytes, no quotes", NAME_MAX_BYTES - 1);
    device->library = OSSL_LIB_CTX_new();
    if (!device->library)
        return sweep_why(why, SP_ENOMEM, "no memory");
    if (name) {
        /* Where a provider's module lies may stand in the system's configuration; without one the name has to do. */
        config = CONF_get1_default_config_file();
        if (config)
            (void)OSSL_LIB_CTX_load_config(device->library, config);
        OPENSSL_free(config);
        device->named = OSSL_PROVIDER_load(device->library, name);
        if (!device->named)
            return sweep_why(why, SP_ENOENT, "OpenSSL loads no provider '%s'", name);
        (void)snprintf(device->name, sizeof(device->name), "%s", name);
        (void)snprintf(device->query, sizeof(device->query), "provider='%s'", name);
    }
    /* Beside a named one too, which may take parts of its work from it. */
    device->standard = OSSL_PROVIDER_load(device->library, "default");
    if (!device->standard)
        return sweep_why(why, SP_EIO, "OpenSSL's default provider does not load");
    (void)snprintf(description, size, "OpenSSL %s%s%s", OpenSSL_version(OPENSSL_VERSION_STRING),
                   name ? ", provider " : "", name ? name : "");
    return 0;
}

static int open_device(const char *argument, bool is_update, struct sweep_device **out, char *description, size_t size,
                       struct sweep_why *why)
{
    struct sweep_device *device = calloc(1, sizeof(*device));
    int status;

    if (!device)
        return sweep_why(why, SP_ENOMEM, "no memory");
    device->is_update = is_update;
    if (argument && strncmp(argument, ENGINE_PREFIX, strlen(ENGINE_PREFIX)) == 0)
        status = openssl_engine_open(argument + strlen(ENGINE_PREFIX), &device->engine, description, size, why);
    else
        status = open_provider(device, argument, description, size, why);
    if (status != 0) {
        device_close(device);
        return status;
    }
    *out = device;
    return 0;
}

static int device_open(const char *argument, const struct sweep_limits *limits, struct sweep_device **out,
                       char *description, size_t size, struct sweep_why *why)
{
    return open_device(argument, false, out, description, size, why);
}

static int device_open_update(const char *argument, const struct sweep_limits *limits, struct sweep_device **out,
                              char *description, size_t size, struct sweep_why *why)
{
    return open_device(argument, true, out, description, size, why);
}

static bool has_algorithm(const struct sweep_device *device, const struct sweep_algorithm *algorithm)
{
    const char *query = device->query[0] ? device->query : NULL;
    bool yes = true;

    if (algorithm->evp_cipher) {
        EVP_CIPHER *cipher = EVP_CIPHER_fetch(device->library, algorithm->evp_cipher, query);

        yes = cipher != NULL;
        EVP_CIPHER_free(cipher);
    }
    if (yes && algorithm->evp_digest) {
        EVP_MD *md = EVP_MD_fetch(device->library, algorithm->evp_digest, query);

        yes = md != NULL;
        EVP_MD_free(md);
    }
    if (yes && algorithm->kind == SWEEP_CIPHER_HMAC) {
        EVP_MAC *mac = EVP_MAC_fetch(device->library, "HMAC", query);

        yes = mac != NULL;
        EVP_MAC_free(mac);
    }
    return yes;
}

static int supports(struct sweep_device *device, const struct sweep_algorithm *algorithm, uint64_t request_bytes,
                    bool in_place, struct sweep_why *why)
{
    if (device->is_update && algorithm->kind == SWEEP_CIPHER_HMAC)
        return sweep_why(why, SP_EUNSUPPORTED, "a MAC for each request and a stream without an end exclude each other");
    if (strstr(algorithm->name, "-xts") && request_bytes > XTS_BYTES_MAX)
        return sweep_why(why, SP_EUNSUPPORTED, "OpenSSL takes no XTS data units above 16 MiB (IEEE 1619)");
    if (device->engine)
        return openssl_engine_has(device->engine, algorithm)
                   ? 0
                   : sweep_why(why, SP_EUNSUPPORTED, "the engine does not do %s", algorithm->name);
    if (!has_algorithm(device, algorithm))
        return sweep_why(why, SP_EUNSUPPORTED, "the provider %s does not do %s",
                         device->name[0] ? device->name : "default", algorithm->name);
    return 0;
}

/* --- session ------------------------------------------------------------------------------------ */

static void session_close(struct sweep_session *s)
{
    EVP_CIPHER_CTX_free(s->cipher_ctx);
    EVP_MD_CTX_free(s->md_ctx);
    EVP_MAC_CTX_free(s->mac_ctx);
    EVP_CIPHER_free(s->cipher);
    EVP_MD_free(s->md);
    EVP_MAC_free(s->mac);
    free(s);
}

static bool init_cipher(struct sweep_session *s, const struct sweep_device *device, const struct sweep_key *key)
{
    const char *name = key->algorithm->evp_cipher;
    unsigned no_padding = 0;
    OSSL_PARAM padding[] = {OSSL_PARAM_construct_uint(OSSL_CIPHER_PARAM_PADDING, &no_padding),
                            OSSL_PARAM_construct_end()};

    s->cipher_ctx = EVP_CIPHER_CTX_new();
    if (!s->cipher_ctx)
        return false;
    if (s->engine)
        return EVP_CipherInit_ex(s->cipher_ctx, EVP_get_cipherbyname(name), s->engine, key->key, NULL, 1) == 1 &&
               EVP_CIPHER_CTX_set_padding(s->cipher_ctx, 0) == 1;
    s->cipher = EVP_CIPHER_fetch(device->library, name, device->query[0] ? device->query : NULL);
    /* Said to the provider alone: what EVP_CIPHER_CTX_set_padding notes, EVP repeats at each new IV. */
    return s->cipher && EVP_EncryptInit_ex2(s->cipher_ctx, s->cipher, key->key, NULL, NULL) == 1 &&
           (key->algorithm->granule_bytes == 1 || EVP_CIPHER_CTX_set_params(s->cipher_ctx, padding) == 1);
}

static bool init_digest(struct sweep_session *s, const struct sweep_device *device, const struct sweep_key *key)
{
    const char *name = key->algorithm->evp_digest;

    s->md_ctx = EVP_MD_CTX_new();
    if (!s->md_ctx)
        return false;
    if (s->engine)
        return EVP_DigestInit_ex(s->md_ctx, EVP_get_digestbyname(name), s->engine) == 1;
    s->md = EVP_MD_fetch(device->library, name, device->query[0] ? device->query : NULL);
    return s->md && EVP_DigestInit_ex2(s->md_ctx, s->md, NULL) == 1;
}

static bool init_mac(struct sweep_session *s, const struct sweep_device *device, const struct sweep_key *key)
{
    /* OpenSSL takes the name as char *, and only reads it. */
    OSSL_PARAM digest[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST,
                                                            (char *)(uintptr_t)key->algorithm->evp_digest, 0),
                           OSSL_PARAM_construct_end()};

    s->mac = EVP_MAC_fetch(device->library, "HMAC", device->query[0] ? device->query : NULL);
    s->mac_ctx = s->mac ? EVP_MAC_CTX_new(s->mac) : NULL;
    return s->mac_ctx && EVP_MAC_init(s->mac_ctx, key->hmac_key, key->algorithm->hmac_key_bytes, digest) == 1;
}

static int session_open(struct sweep_device *device, unsigned thread, const struct sweep_key *key, unsigned depth,
                        struct sweep_session **out, struct sweep_why *why)
{
    const struct sweep_algorithm *algorithm = key->algorithm;
    struct sweep_session *s = calloc(1, sizeof(*s) + depth * sizeof(struct sweep_request *));
    bool ok = true;

    if (!s)
        return sweep_why(why, SP_ENOMEM, "no memory");
    s->algorithm = algorithm;
    s->engine = device->engine;
    s->is_update = device->is_update;
    s->depth = depth;
    s->tag[0] = OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, NULL, algorithm->tag_bytes);
    s->tag[1] = OSSL_PARAM_construct_end();
    if (algorithm->evp_cipher)
        ok = init_cipher(s, device, key);
    if (ok && algorithm->kind == SWEEP_DIGEST)
        ok = init_digest(s, device, key);
    if (ok && algorithm->kind == SWEEP_CIPHER_HMAC)
        ok = init_mac(s, device, key);
    if (!ok) {
        session_close(s);
        return sweep_why(why, SP_EUNSUPPORTED, "OpenSSL does not start %s", algorithm->name);
    }
    *out = s;
    return 0;
}

/* --- requests ----------------------------------------------------------------------------------- */

static bool encrypt(struct sweep_session *s, struct sweep_request *q)
{
    int len = 0, rest = 0;

    return EVP_EncryptInit_ex2(s->cipher_ctx, NULL, NULL, q->iv, NULL) == 1 &&
           EVP_EncryptUpdate(s->cipher_ctx, q->out, &len, q->in, (int)q->len) == 1 &&
           EVP_EncryptFinal_ex(s->cipher_ctx, q->out + len, &rest) == 1 && (uint32_t)(len + rest) == q->len;
}

static bool get_tag(struct sweep_session *s, struct sweep_request *q)
{
    if (s->engine)
        return EVP_CIPHER_CTX_ctrl(s->cipher_ctx, EVP_CTRL_AEAD_GET_TAG, (int)s->algorithm->tag_bytes, q->tag) == 1;
    s->tag[0].data = q->tag;
    return EVP_CIPHER_CTX_get_params(s->cipher_ctx, s->tag) == 1;
}

static bool digest(struct sweep_session *s, struct sweep_request *q)
{
    return (s->engine ? EVP_DigestInit_ex(s->md_ctx, NULL, NULL) : EVP_DigestInit_ex2(s->md_ctx, NULL, NULL)) == 1 &&
           EVP_DigestUpdate(s->md_ctx, q->in, q->len) == 1 && EVP_DigestFinal_ex(s->md_ctx, q->tag, NULL) == 1;
}

static bool authenticate(struct sweep_session *s, struct sweep_request *q)
{
    size_t len = 0;

    return EVP_MAC_init(s->mac_ctx, NULL, 0, NULL) == 1 &&
           EVP_MAC_update(s->mac_ctx, q->iv, s->algorithm->iv_bytes) == 1 &&
           EVP_MAC_update(s->mac_ctx, q->out, q->len) == 1 &&
           EVP_MAC_final(s->mac_ctx, q->tag, &len, sizeof(q->tag)) == 1 && len == s->algorithm->tag_bytes;
}

static int run(struct sweep_session *s, struct sweep_request *q)
{
    bool ok = false;

    switch (s->algorithm->kind) {
    case SWEEP_CIPHER:
        ok = encrypt(s, q);
        break;
    case SWEEP_AEAD:
        ok = encrypt(s, q) && get_tag(s, q);
        break;
    case SWEEP_DIGEST:
        ok = digest(s, q);
        break;
    case SWEEP_CIPHER_HMAC:
        ok = encrypt(s, q) && authenticate(s, q);
        break;
    }
    q->status = ok ? 0 : SP_EIO;
    return q->status;
}

/*
 * The first request of a stream, with its IV, so that it can be compared; a digest's by a copy, because the stream goes on.
 * Also after a stream has come to the end that its algorithm sets: 64 GiB for GCM. Not
 * inlined, for its local variables would have each update check the stack.
 */
__attribute__((noinline, cold)) static int start_stream(struct sweep_session *s, struct sweep_request *q)
{
    EVP_MD_CTX *copy;
    int len = 0;
    bool ok;

    if (s->algorithm->evp_cipher) {
        ok = EVP_EncryptInit_ex2(s->cipher_ctx, NULL, NULL, q->iv, NULL) == 1 &&
             EVP_EncryptUpdate(s->cipher_ctx, q->out, &len, q->in, (int)q->len) == 1;
    } else {
        copy = EVP_MD_CTX_new();
        ok = copy && EVP_DigestUpdate(s->md_ctx, q->in, q->len) == 1 && EVP_MD_CTX_copy_ex(copy, s->md_ctx) == 1 &&
             EVP_DigestFinal_ex(copy, q->tag, NULL) == 1;
        EVP_MD_CTX_free(copy);
    }
    s->stream = ok ? s->cipher_ctx : NULL;
    s->is_started = ok;
    q->status = ok ? 0 : SP_EIO;
    return q->status;
}

static int run_update(struct sweep_session *s, struct sweep_request *q)
{
    if (__builtin_expect(s->stream != NULL, 1)) {
        if (__builtin_expect(EVP_EncryptUpdate(s->stream, q->out, &s->update_len, q->in, (int)q->len) == 1, 1))
            return 0;
    } else if (s->is_started && EVP_DigestUpdate(s->md_ctx, q->in, q->len) == 1) {
        return 0;
    }
    return start_stream(s, q);
}

static unsigned submit(struct sweep_session *s, struct sweep_request *const *requests, unsigned n)
{
    unsigned i;

    for (i = 0; i < n && s->done_count < s->depth; i++) {
        requests[i]->status = s->is_update ? run_update(s, requests[i]) : run(s, requests[i]);
        s->done[(s->done_first + s->done_count++) % s->depth] = requests[i];
    }
    return i;
}

static unsigned poll_done(struct sweep_session *s, struct sweep_request **done, unsigned max, bool flush)
{
    unsigned i;

    for (i = 0; i < max && s->done_count > 0; i++) {
        done[i] = s->done[s->done_first];
        s->done_first = (s->done_first + 1) % s->depth;
        s->done_count--;
    }
    return i;
}

const struct sweep_impl sweep_impl_openssl = {
    .name = "openssl",
    .argument = "[PROVIDER|engine=ENGINE]",
    .summary = "OpenSSL's EVP interface: for each request a new IV, update, final, tag",
    .device_open = device_open,
    .device_close = device_close,
    .supports = supports,
    .session_open = session_open,
    .session_close = session_close,
    .submit = submit,
    .poll = poll_done,
    .run = run,
};

const struct sweep_impl sweep_impl_openssl_update = {
    .name = "openssl-update",
    .argument = "[PROVIDER|engine=ENGINE]",
    .summary = "updates of one stream, no IV a request, as `openssl speed -evp` times ciphers: the yardstick of the "
               "sweep's own cost; only the first of a stream can be checked",
    .is_stream = true,
    .device_open = device_open_update,
    .device_close = device_close,
    .supports = supports,
    .session_open = session_open,
    .session_close = session_close,
    .submit = submit,
    .poll = poll_done,
    .run = run_update,
};
