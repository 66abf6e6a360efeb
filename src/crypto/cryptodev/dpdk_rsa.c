/*
 * RSA private-key operations. Each slot of a queue owns the memory that the device reads and writes, so that whoever
 * asked can forget a request at any time.
 */
#include "crypto/cryptodev/dpdk_internal.h"

#include "base/clock.h"

#include <openssl/crypto.h>
#include <rte_malloc.h>
#include <rte_mempool.h>
#include <stdlib.h>
#include <string.h>

#define BURST 32

struct cryptodev_rsa_key {
    struct cryptodev *device;
    void *session;
    size_t bytes;
    unsigned busy;
};

struct rsa_slot {
    struct rte_crypto_op *op;
    uint8_t *in, *out;                     /* of CRYPTODEV_RSA_BYTES_MAX */
    struct cryptodev_rsa_request *request; /* NULL: forgotten, or free */
    struct cryptodev_rsa_key *key;
    struct rsa_slot *next; /* while it is free */
};

struct cryptodev_rsa_queue {
    struct cryptodev *device;
    uint16_t pair;
    unsigned in_flight;
    struct rte_mempool *sessions, *ops;
    struct rsa_slot *slots, *idle;
    uint8_t *memory;
};

/* Behind the operation. */
#define SLOT_OFFSET (sizeof(struct rte_crypto_op) + sizeof(struct rte_crypto_asym_op))

int dpdk_rsa_supports(struct cryptodev *device, unsigned modulus_bytes, struct cryptodev_why *why)
{
    const struct rte_cryptodev_asym_capability_idx index = {.type = RTE_CRYPTO_ASYM_XFORM_RSA};
    const struct rte_cryptodev_asymmetric_xform_capability *capability;

    if (!(device->info.feature_flags & RTE_CRYPTODEV_FF_ASYMMETRIC_CRYPTO))
        return dpdk_why(why, SP_EUNSUPPORTED, "%s does no private-key operations", device->name);
    capability = rte_cryptodev_asym_capability_get(device->id, &index);
    if (!capability ||
        !rte_cryptodev_asym_xform_capability_check_optype(capability, RTE_CRYPTO_ASYM_OP_DECRYPT))
        return dpdk_why(why, SP_EUNSUPPORTED, "%s does no RSA", device->name);
    /* A greatest length of 0 is none. */
    if (capability->modlen.max &&
        rte_cryptodev_asym_xform_capability_check_modlen(capability, (uint16_t)modulus_bytes) != 0)
        return dpdk_why(why, SP_EUNSUPPORTED, "%s does RSA with %u to %u bits only", device->name,
                        capability->modlen.min * 8u, capability->modlen.max * 8u);
    return 0;
}

/* --- life --------------------------------------------------------------------------------------------- */

static void release(struct cryptodev_rsa_queue *q)
{
    rte_mempool_free(q->ops);
    rte_mempool_free(q->sessions);
    if (q->memory)
        OPENSSL_cleanse(q->memory, (size_t)q->device->limits.depth * 2 * CRYPTODEV_RSA_BYTES_MAX);
    rte_free(q->memory);
    free(q->slots);
    dpdk_pair_give(q->device, q->pair);
    free(q);
}

static int make_slots(struct cryptodev_rsa_queue *q)
{
    unsigned depth = q->device->limits.depth;
    char name[32];

    dpdk_unique_name(name, sizeof(name), "keys");
    q->sessions =
        rte_cryptodev_asym_session_pool_create(name, CRYPTODEV_RSA_KEYS_MAX, 0, 0, SOCKET_ID_ANY);
    dpdk_unique_name(name, sizeof(name), "ops");
    q->ops = rte_crypto_op_pool_create(name, RTE_CRYPTO_OP_TYPE_ASYMMETRIC, depth, 0,
                                       sizeof(struct rsa_slot *), SOCKET_ID_ANY);
    q->slots = calloc(depth, sizeof(*q->slots));
    q->memory = rte_zmalloc(NULL, (size_t)depth * 2 * CRYPTODEV_RSA_BYTES_MAX, 64);
    if (!q->sessions || !q->ops || !q->slots || !q->memory)
        return SP_ENOMEM;
    for (unsigned i = 0; i < depth; i++) {
        struct rsa_slot *slot = &q->slots[i];

        slot->op = rte_crypto_op_alloc(q->ops, RTE_CRYPTO_OP_TYPE_ASYMMETRIC);
        if (!slot->op)
            return SP_ENOMEM;
        *rte_crypto_op_ctod_offset(slot->op, struct rsa_slot **, SLOT_OFFSET) = slot;
        slot->in = q->memory + (size_t)i * 2 * CRYPTODEV_RSA_BYTES_MAX;
        slot->out = slot->in + CRYPTODEV_RSA_BYTES_MAX;
        slot->next = q->idle;
        q->idle = slot;
    }
    return 0;
}

int dpdk_rsa_queue_open(struct cryptodev *device, struct cryptodev_rsa_queue **out,
                        struct cryptodev_why *why)
{
    struct cryptodev_rsa_queue *q = calloc(1, sizeof(*q));
    int pair;

    if (!q)
        return dpdk_why(why, SP_ENOMEM, "out of memory");
    pair = dpdk_pair_take(device, why);
    if (pair < 0) {
        free(q);
        return pair;
    }
    q->device = device;
    q->pair = (uint16_t)pair;
    dpdk_forget_errors();
    if (make_slots(q) != 0) {
        dpdk_why(why, SP_ENOMEM, "no memory for %u operations in flight", device->limits.depth);
        dpdk_add_error(why);
        release(q);
        return SP_ENOMEM;
    }
    *out = q;
    return 0;
}

void dpdk_rsa_queue_close(struct cryptodev_rsa_queue *queue)
{
    struct cryptodev_rsa_request *done[BURST];
    uint64_t until = clock_now_ns() + DRAIN_NS;

    if (!queue)
        return;
    for (unsigned i = 0; i < queue->device->limits.depth; i++)
        queue->slots[i].request = NULL;
    while (queue->in_flight && clock_now_ns() < until)
        (void)dpdk_rsa_poll(queue, done, BURST);
    if (queue->in_flight)
        atomic_store(&queue->device->has_lost, true);
    else
        release(queue);
}

/* --- keys --------------------------------------------------------------------------------------------- */

/* LeakSanitizer's, where it is linked. */
extern void __lsan_disable(void) __attribute__((weak));
extern void __lsan_enable(void) __attribute__((weak));

/*
 * crypto_openssl of DPDK 22.11 never frees the numbers and the key object that it makes a session from, some six
 * kilobytes. It is not ours to report; that sessions are kept and not made anew bounds it.
 */
static int make_session(struct cryptodev_rsa_queue *queue, struct rte_crypto_asym_xform *form,
                        void **out)
{
    int error;

    if (__lsan_disable)
        __lsan_disable();
    error = rte_cryptodev_asym_session_create(queue->device->id, form, queue->sessions, out);
    if (__lsan_enable)
        __lsan_enable();
    return error;
}

static rte_crypto_uint number_of(const struct cryptodev_number *number)
{
    return (rte_crypto_uint){.data = (uint8_t *)number->data, .length = number->len};
}

int dpdk_rsa_key_new(struct cryptodev_rsa_queue *queue, const struct cryptodev_rsa_parts *parts,
                     struct cryptodev_rsa_key **out)
{
    struct rte_crypto_asym_xform form = {.xform_type = RTE_CRYPTO_ASYM_XFORM_RSA};
    struct cryptodev_rsa_key *key = calloc(1, sizeof(*key));

    if (!key)
        return SP_ENOMEM;
    form.rsa.n = number_of(&parts->n);
    form.rsa.e = number_of(&parts->e);
    if (queue->device->info.feature_flags & RTE_CRYPTODEV_FF_RSA_PRIV_OP_KEY_QT) {
        form.rsa.key_type = RTE_RSA_KEY_TYPE_QT;
        form.rsa.qt.p = number_of(&parts->p);
        form.rsa.qt.q = number_of(&parts->q);
        form.rsa.qt.dP = number_of(&parts->dp);
        form.rsa.qt.dQ = number_of(&parts->dq);
        form.rsa.qt.qInv = number_of(&parts->qinv);
    } else {
        form.rsa.key_type = RTE_RSA_KEY_TYPE_EXP;
        form.rsa.d = number_of(&parts->d);
    }
    if (make_session(queue, &form, &key->session) != 0) {
        free(key);
        return SP_EIO;
    }
    key->device = queue->device;
    key->bytes = parts->n.len;
    *out = key;
    return 0;
}

void dpdk_rsa_key_free(struct cryptodev_rsa_key *key)
{
    if (!key)
        return;
    (void)rte_cryptodev_asym_session_free(key->device->id, key->session);
    free(key);
}

bool dpdk_rsa_key_is_busy(const struct cryptodev_rsa_key *key)
{
    return key->busy > 0;
}

/* --- requests ----------------------------------------------------------------------------------------- */

int dpdk_rsa_submit(struct cryptodev_rsa_queue *queue, struct cryptodev_rsa_request *request)
{
    struct rsa_slot *slot = queue->idle;
    struct cryptodev_rsa_key *key =
        (struct cryptodev_rsa_key *)request->key; /* born without const */
    struct rte_crypto_op *op = slot ? slot->op : NULL;

    if (!op)
        return SP_EAGAIN;
    memcpy(slot->in, request->in, key->bytes);
    op->status = RTE_CRYPTO_OP_STATUS_NOT_PROCESSED;
    op->sess_type = RTE_CRYPTO_OP_WITH_SESSION;
    op->asym->session = key->session;
    op->asym->flags = 0;
    op->asym->rsa = (struct rte_crypto_rsa_op_param){
        .op_type = RTE_CRYPTO_ASYM_OP_DECRYPT,
        .cipher = {.data = slot->in, .iova = (rte_iova_t)(uintptr_t)slot->in, .length = key->bytes},
        .message = {.data = slot->out,
                    .iova = (rte_iova_t)(uintptr_t)slot->out,
                    .length = key->bytes},
        .padding = {.type = RTE_CRYPTO_RSA_PADDING_NONE},
    };
    if (rte_cryptodev_enqueue_burst(queue->device->id, queue->pair, &op, 1) != 1)
        return SP_EAGAIN;
    queue->idle = slot->next;
    queue->in_flight++;
    key->busy++;
    slot->key = key;
    slot->request = request;
    request->slot = slot;
    return 0;
}

static void finish(struct cryptodev_rsa_queue *queue, struct rsa_slot *slot)
{
    struct cryptodev_rsa_request *request = slot->request;
    size_t bytes = slot->key->bytes;

    if (request) {
        bool ok = slot->op->status == RTE_CRYPTO_OP_STATUS_SUCCESS;

        request->status = ok ? 0 : SP_EIO;
        request->slot = NULL;
        if (ok)
            memcpy(request->out, slot->out, bytes);
    }
    OPENSSL_cleanse(slot->out, bytes);
    slot->key->busy--;
    slot->request = NULL;
    slot->next = queue->idle;
    queue->idle = slot;
    queue->in_flight--;
}

unsigned dpdk_rsa_poll(struct cryptodev_rsa_queue *queue, struct cryptodev_rsa_request **done,
                       unsigned max)
{
    struct rte_crypto_op *ops[BURST];
    uint16_t n = rte_cryptodev_dequeue_burst(queue->device->id, queue->pair, ops,
                                             (uint16_t)(max < BURST ? max : BURST));
    unsigned count = 0;

    for (uint16_t i = 0; i < n; i++) {
        struct rsa_slot *slot = *rte_crypto_op_ctod_offset(ops[i], struct rsa_slot **, SLOT_OFFSET);

        if (slot->request)
            done[count++] = slot->request;
        finish(queue, slot);
    }
    return count;
}

void dpdk_rsa_forget(struct cryptodev_rsa_queue *queue, struct cryptodev_rsa_request *request)
{
    struct rsa_slot *slot = request->slot;

    slot->request = NULL;
    request->slot = NULL;
}
