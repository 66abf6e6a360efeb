/*
 * DPDK's crypto devices, through the module's table.
 */
#include "crypto/cryptodev/cryptodev.h"

#include "measure/sweep_impl.h"

#include <sallyport/status.h>

#include <stdlib.h>
#include <string.h>

#define BURST 64

struct sweep_device {
    const struct cryptodev_table *table;
    struct cryptodev *device;
};

struct sweep_session {
    const struct cryptodev_table *table;
    struct cryptodev_queue *queue;
    bool has_tag;
    struct cryptodev_request *requests; /* [depth], by the sweep's index; a request's slot points to its own */
};

static int device_open(const char *argument, const struct sweep_limits *limits,
                       struct sweep_device **out, char *description, size_t size,
                       struct sweep_why *why)
{
    const struct cryptodev_limits asked = {.queues = limits->threads_max,
                                           .depth = limits->depth_max,
                                           .request_bytes_max = limits->request_bytes_max};
    struct cryptodev_why because = {""};
    struct sweep_device *device;
    int status;

    if (!argument || !*argument)
        return sweep_why(why, SP_EINVAL,
                         "expected the name of a device behind the colon: crypto_openssl, "
                         "crypto_aesni_mb, crypto_aesni_gcm, crypto_scheduler, or a PCI address");
    device = calloc(1, sizeof(*device));
    if (!device)
        return sweep_why(why, SP_ENOMEM, "out of memory");
    device->table = cryptodev_load(&because);
    status = device->table ? device->table->open(argument, &asked, &device->device, description,
                                                 size, &because)
                           : SP_EUNSUPPORTED;
    if (status != 0) {
        free(device);
        return sweep_why(why, status, "%s", because.text);
    }
    *out = device;
    return 0;
}

static void device_close(struct sweep_device *device)
{
    device->table->close(device->device);
    free(device);
}

/* --- algorithms --------------------------------------------------------------------------------------- */

static const struct {
    const char
        *name; /* OpenSSL's, as the table of algorithms has it, as far as it tells them apart */
    enum cryptodev_cipher cipher;
} ciphers[] = {
    {"-CBC", CRYPTODEV_AES_CBC},
    {"-CTR", CRYPTODEV_AES_CTR},
    {"-XTS", CRYPTODEV_AES_XTS},
    {"-GCM", CRYPTODEV_AES_GCM},
    {"ChaCha20-Poly1305", CRYPTODEV_CHACHA20_POLY1305},
};

static const struct {
    unsigned bytes;
    enum cryptodev_digest digest;
} digests[] = {{20, CRYPTODEV_SHA1}, {32, CRYPTODEV_SHA256}, {64, CRYPTODEV_SHA512}};

static bool transform_of(const struct sweep_algorithm *a, struct cryptodev_transform *out)
{
    *out = (struct cryptodev_transform){.key_bytes = a->key_bytes,
                                        .hmac_key_bytes = a->hmac_key_bytes,
                                        .iv_bytes = a->iv_bytes,
                                        .tag_bytes = a->tag_bytes};
    for (size_t i = 0; a->evp_cipher && i < sizeof(ciphers) / sizeof(ciphers[0]); i++) {
        if (strcasestr(a->evp_cipher, ciphers[i].name))
            out->cipher = ciphers[i].cipher;
    }
    for (size_t i = 0; a->evp_digest && i < sizeof(digests) / sizeof(digests[0]); i++) {
        if (a->tag_bytes == digests[i].bytes)
            out->digest = digests[i].digest;
    }
    return (!a->evp_cipher || out->cipher != CRYPTODEV_NO_CIPHER) &&
           (!a->evp_digest || out->digest != CRYPTODEV_NO_DIGEST);
}

static int supports(struct sweep_device *device, const struct sweep_algorithm *algorithm,
                    uint64_t request_bytes, bool in_place, struct sweep_why *why)
{
    struct cryptodev_transform transform;
    struct cryptodev_why because = {""};
    int status;

    if (!transform_of(algorithm, &transform))
        return sweep_why(why, SP_EUNSUPPORTED, "%s has no name in DPDK here", algorithm->name);
    status = device->table->supports(device->device, &transform, request_bytes, in_place, &because);
    return status == 0 ? 0 : sweep_why(why, status, "%s", because.text);
}

/* --- sessions ----------------------------------------------------------------------------------------- */

static void session_close(struct sweep_session *session)
{
    session->table->queue_close(session->queue);
    free(session->requests);
    free(session);
}

static int session_open(struct sweep_device *device, unsigned thread, const struct sweep_key *key,
                        unsigned depth, struct sweep_session **out, struct sweep_why *why)
{
    struct sweep_session *session = calloc(1, sizeof(*session));
    struct cryptodev_transform transform;
    struct cryptodev_why because = {""};
    int status;

    if (session)
        session->requests = calloc(depth, sizeof(*session->requests));
    if (!session || !session->requests) {
        free(session);
        return sweep_why(why, SP_ENOMEM, "out of memory");
    }
    session->table = device->table;
    (void)transform_of(key->algorithm, &transform);
    transform.key = key->key;
    transform.hmac_key = key->hmac_key;
    session->has_tag = key->algorithm->tag_bytes > 0;
    status =
        device->table->queue_open(device->device, &transform, depth, &session->queue, &because);
    if (status != 0) {
        free(session->requests);
        free(session);
        return sweep_why(why, status, "%s", because.text);
    }
    *out = session;
    return 0;
}

static void *buffer_alloc(struct sweep_session *session, size_t bytes)
{
    return session->table->alloc(session->queue, bytes);
}

static void buffer_free(struct sweep_session *session, void *buffer, size_t bytes)
{
    session->table->free(session->queue, buffer);
}

/* --- requests ----------------------------------------------------------------------------------------- */

/* What stays the same is written once: at 64 bytes a request takes some 40 ns. */
static struct cryptodev_request *prepare(struct sweep_session *session, struct sweep_request *r)
{
    struct cryptodev_request *own = r->slot;

    if (!own) {
        r->slot = own = &session->requests[r->index];
        *own = (struct cryptodev_request){
            .index = r->index, .iv = r->iv, .tag = session->has_tag ? r->tag : NULL, .user = r};
    }
    own->in = r->in;
    own->out = r->out;
    own->len = r->len;
    return own;
}

static unsigned submit(struct sweep_session *session, struct sweep_request *const *requests,
                       unsigned n)
{
    struct cryptodev_request *chosen[BURST];
    unsigned accepted = 0;

    while (accepted < n) {
        unsigned count = n - accepted < BURST ? n - accepted : BURST, taken;

        for (unsigned i = 0; i < count; i++)
            chosen[i] = prepare(session, requests[accepted + i]);
        taken = session->table->submit(session->queue, chosen, count);
        accepted += taken;
        if (taken < count)
            break;
    }
    return accepted;
}

/* A device needs no flush: what it has, it does. */
static unsigned poll(struct sweep_session *session, struct sweep_request **done, unsigned max,
                     bool flush)
{
    struct cryptodev_request *ready[BURST];
    unsigned n = session->table->poll(session->queue, ready, max < BURST ? max : BURST);

    for (unsigned i = 0; i < n; i++) {
        done[i] = ready[i]->user;
        done[i]->status = ready[i]->status;
        done[i]->was_async = ready[i]->was_async;
    }
    return n;
}

const struct sweep_impl sweep_impl_cryptodev = {
    .name = "cryptodev",
    .argument = "DEVICE[,PARAM=VALUE...]",
    .summary =
        "DPDK's crypto devices: crypto_openssl, crypto_aesni_mb, crypto_aesni_gcm, crypto_scheduler, cards by PCI address",
    .is_asynchronous = true,
    .device_open = device_open,
    .device_close = device_close,
    .supports = supports,
    .session_open = session_open,
    .session_close = session_close,
    .buffer_alloc = buffer_alloc,
    .buffer_free = buffer_free,
    .submit = submit,
    .poll = poll,
};
