/*
 * Symmetric requests. Each index has its operation and its segments from the queue's opening on; a request attaches
 * its buffers to the segments, so that the device works in the caller's memory without a copy.
 */
#include "crypto/cryptodev/dpdk_internal.h"

#include "base/clock.h"

#include <pthread.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <stdlib.h>
#include <string.h>

#define BURST 64

/* Behind the operation: what the device reads and writes besides the buffers. */
struct private_part {
    uint8_t iv[16];
    uint8_t tag[64];
    struct cryptodev_request *request;
};
#define PRIVATE_OFFSET (sizeof(struct rte_crypto_op) + sizeof(struct rte_crypto_sym_op))
#define IV_OFFSET (PRIVATE_OFFSET + offsetof(struct private_part, iv))

struct slot {
    struct rte_crypto_op *op;
    struct rte_mbuf **in, **out; /* [segments] */
    /* The buffers that operation and segments are laid out for; laid_len 0: none yet. */
    const uint8_t *laid_in, *laid_out;
    uint32_t laid_len;
};

struct cryptodev_queue {
    struct cryptodev *device;
    uint16_t pair;
    unsigned depth, segments, in_flight;
    unsigned tag_bytes, iv_bytes;
    bool is_aead, is_digest, is_chain;
    void *session;
    struct rte_mempool *sessions, *ops, *mbufs;
    struct slot *slots;
    struct rte_mbuf **mbuf_pointers;
    struct rte_mbuf_ext_shared_info shared;
    pthread_t thread;
    bool counts_thread;
};

/* --- threads ------------------------------------------------------------------------------------------ */

static __thread unsigned thread_uses;
static __thread bool thread_registered;

/* With the queues of a thread: it gets a number of DPDK's, as long as there are some. Without one it works as well. */
static void use_thread(struct cryptodev_queue *q)
{
    if (thread_uses++ == 0)
        thread_registered = rte_lcore_id() == LCORE_ID_ANY && rte_thread_register() == 0;
    q->thread = pthread_self();
    q->counts_thread = true;
}

static void leave_thread(struct cryptodev_queue *q)
{
    if (!q->counts_thread || !pthread_equal(q->thread, pthread_self()) || --thread_uses > 0 ||
        !thread_registered)
        return;
    rte_thread_unregister();
    thread_registered = false;
}

/* --- memory ------------------------------------------------------------------------------------------- */

void *dpdk_alloc(struct cryptodev_queue *queue, size_t bytes)
{
    uint8_t *memory = rte_malloc(NULL, bytes + CRYPTODEV_HEADROOM, 64);

    return memory ? memory + CRYPTODEV_HEADROOM : NULL;
}

void dpdk_free(struct cryptodev_queue *queue, void *buffer)
{
    if (buffer)
        rte_free((uint8_t *)buffer - CRYPTODEV_HEADROOM);
}

/* The buffers are the caller's: nothing is to be done when a segment lets go of one. */
static void let_go(void *address, void *arg)
{
}

static int make_pools(struct cryptodev_queue *q)
{
    char name[32];
    unsigned chains = q->is_digest ? 1 : 2;

    dpdk_unique_name(name, sizeof(name), "session");
    /* A scheduler takes one for each of its workers besides its own. */
    q->sessions = rte_cryptodev_sym_session_pool_create(
        name, DEVICE_WORKERS_MAX + 1, q->device->session_bytes, 0, 0, SOCKET_ID_ANY);
    dpdk_unique_name(name, sizeof(name), "ops");
    q->ops = rte_crypto_op_pool_create(name, RTE_CRYPTO_OP_TYPE_SYMMETRIC, q->depth, 0,
                                       sizeof(struct private_part), SOCKET_ID_ANY);
    dpdk_unique_name(name, sizeof(name), "mbufs");
    q->mbufs =
        rte_pktmbuf_pool_create(name, q->depth * q->segments * chains, 0, 0, 0, SOCKET_ID_ANY);
    return q->sessions && q->ops && q->mbufs ? 0 : SP_ENOMEM;
}

static int make_slots(struct cryptodev_queue *q)
{
    unsigned chains = q->is_digest ? 1 : 2, mbufs = q->depth * q->segments * chains;
    struct rte_mbuf **next;

    q->slots = calloc(q->depth, sizeof(*q->slots));
    q->mbuf_pointers = calloc(mbufs, sizeof(struct rte_mbuf *));
    if (!q->slots || !q->mbuf_pointers ||
        rte_pktmbuf_alloc_bulk(q->mbufs, q->mbuf_pointers, mbufs) != 0)
        return SP_ENOMEM;
    next = q->mbuf_pointers;
    for (unsigned i = 0; i < q->depth; i++) {
        q->slots[i].op = rte_crypto_op_alloc(q->ops, RTE_CRYPTO_OP_TYPE_SYMMETRIC);
        if (!q->slots[i].op)
            return SP_ENOMEM;
        q->slots[i].in = next;
        q->slots[i].out = next + q->segments;
        next += q->segments * chains;
    }
    return 0;
}

/* --- life --------------------------------------------------------------------------------------------- */

static void release(struct cryptodev_queue *q)
{
    if (q->session)
        (void)rte_cryptodev_sym_session_free(q->device->id, q->session);
    /* Everything that was taken out of them goes with them. */
    rte_mempool_free(q->mbufs);
    rte_mempool_free(q->ops);
    rte_mempool_free(q->sessions);
    free(q->mbuf_pointers);
    free(q->slots);
    dpdk_pair_give(q->device, q->pair);
    leave_thread(q);
    free(q);
}

static int make_session(struct cryptodev_queue *q, const struct cryptodev_transform *transform,
                        struct cryptodev_why *why)
{
    struct dpdk_forms forms;
    char text[80];

    dpdk_forms_init(&forms, transform, (uint16_t)IV_OFFSET);
    dpdk_forget_errors();
    q->session = rte_cryptodev_sym_session_create(q->device->id, &forms.first, q->sessions);
    if (q->session)
        return 0;
    dpdk_why(why, SP_EUNSUPPORTED, "%s refuses a session of %s", q->device->name,
             dpdk_transform_text(transform, text, sizeof(text)));
    dpdk_add_error(why);
    return SP_EUNSUPPORTED;
}

int dpdk_queue_open_for(struct cryptodev *device, const struct cryptodev_transform *t,
                        unsigned depth, uint64_t request_bytes, struct cryptodev_queue **out,
                        struct cryptodev_why *why)
{
    struct cryptodev_queue *q = calloc(1, sizeof(*q));
    int pair, status;

    if (!q)
        return dpdk_why(why, SP_ENOMEM, "out of memory");
    pair = dpdk_pair_take(device, why);
    if (pair < 0) {
        free(q);
        return pair;
    }
    q->device = device;
    q->pair = (uint16_t)pair;
    q->depth = depth;
    /* The IV before a chained request may push its end into one more. */
    q->segments =
        (unsigned)((request_bytes + CRYPTODEV_HEADROOM + SEGMENT_BYTES - 1) / SEGMENT_BYTES);
    q->tag_bytes = t->tag_bytes;
    q->iv_bytes = t->iv_bytes;
    q->is_aead = t->cipher == CRYPTODEV_AES_GCM || t->cipher == CRYPTODEV_CHACHA20_POLY1305;
    q->is_digest = t->cipher == CRYPTODEV_NO_CIPHER;
    q->is_chain = !q->is_digest && t->digest != CRYPTODEV_NO_DIGEST;
    q->shared.free_cb = let_go;
    rte_mbuf_ext_refcnt_set(&q->shared, 1);
    use_thread(q);
    dpdk_forget_errors();
    status = make_pools(q);
    if (status == 0)
        status = make_slots(q);
    if (status != 0) {
        dpdk_why(why, status, "no memory for %u requests of %llu bytes in flight", depth,
                 (unsigned long long)request_bytes);
        dpdk_add_error(why);
    } else {
        status = make_session(q, t, why);
    }
    if (status != 0) {
        release(q);
        return status;
    }
    *out = q;
    return 0;
}

int dpdk_queue_open(struct cryptodev *device, const struct cryptodev_transform *transform,
                    unsigned depth, struct cryptodev_queue **out, struct cryptodev_why *why)
{
    if (depth < 1 || depth > device->limits.depth)
        return dpdk_why(why, SP_EINVAL, "at most %u requests in flight", device->limits.depth);
    return dpdk_queue_open_for(device, transform, depth, device->limits.request_bytes_max, out,
                               why);
}

void dpdk_queue_close(struct cryptodev_queue *queue)
{
    struct cryptodev_request *done[BURST];
    uint64_t until = clock_now_ns() + DRAIN_NS;

    if (!queue)
        return;
    while (queue->in_flight && clock_now_ns() < until)
        (void)dpdk_poll(queue, done, BURST);
    if (queue->in_flight) {
        atomic_store(&queue->device->has_lost, true);
        leave_thread(queue);
        return;
    }
    release(queue);
}

/* --- requests ----------------------------------------------------------------------------------------- */

/* Lays len bytes from data on over the segments; the first of them. */
static struct rte_mbuf *attach(struct cryptodev_queue *q, struct rte_mbuf **segments,
                               const uint8_t *data, uint32_t len)
{
    uint8_t *at = (uint8_t *)data; /* a device does not write to what it reads from */
    uint32_t left = len;
    uint16_t n = 0;

    do {
        uint16_t bytes = (uint16_t)(left < SEGMENT_BYTES ? left : SEGMENT_BYTES);
        struct rte_mbuf *m = segments[n];

        rte_pktmbuf_attach_extbuf(m, at, (rte_iova_t)(uintptr_t)at, bytes, &q->shared);
        m->data_len = bytes;
        m->pkt_len = bytes;
        m->nb_segs = 1;
        m->next = NULL;
        if (n)
            segments[n - 1]->next = m;
        at += bytes;
        left -= bytes;
        n++;
    } while (left);
    segments[0]->nb_segs = n;
    segments[0]->pkt_len = len;
    return segments[0];
}

/* What stays the same from one request to the next of the same buffers. */
static void lay_out(struct cryptodev_queue *q, struct slot *slot, const struct cryptodev_request *r)
{
    struct rte_crypto_op *op = slot->op;
    struct private_part *own = rte_crypto_op_ctod_offset(op, struct private_part *, PRIVATE_OFFSET);
    uint32_t before = q->is_chain ? q->iv_bytes : 0;
    rte_iova_t tag_iova =
        rte_crypto_op_ctophys_offset(op, PRIVATE_OFFSET + offsetof(struct private_part, tag));

    slot->laid_in = r->in;
    slot->laid_out = r->out;
    slot->laid_len = r->len;
    op->sess_type = RTE_CRYPTO_OP_WITH_SESSION;
    op->sym->m_src = attach(q, slot->in, r->in - before, r->len + before);
    op->sym->m_dst =
        r->out && r->out != r->in ? attach(q, slot->out, r->out - before, r->len + before) : NULL;
    if (q->is_aead) {
        op->sym->aead.data.offset = 0;
        op->sym->aead.data.length = r->len;
        op->sym->aead.digest.data = own->tag;
        op->sym->aead.digest.phys_addr = tag_iova;
        op->sym->aead.aad.data = own->tag; /* no byte of it is read */
        op->sym->aead.aad.phys_addr = tag_iova;
        return;
    }
    op->sym->cipher.data.offset = before;
    op->sym->cipher.data.length = r->len;
    op->sym->auth.data.offset = 0;
    op->sym->auth.data.length = r->len + before;
    op->sym->auth.digest.data = own->tag;
    op->sym->auth.digest.phys_addr = tag_iova;
}

static void prepare(struct cryptodev_queue *q, struct cryptodev_request *r)
{
    struct slot *slot = &q->slots[r->index];
    struct rte_crypto_op *op = slot->op;
    struct private_part *own = rte_crypto_op_ctod_offset(op, struct private_part *, PRIVATE_OFFSET);

    if (slot->laid_in != r->in || slot->laid_out != r->out || slot->laid_len != r->len)
        lay_out(q, slot, r);
    own->request = r;
    if (r->iv)
        memcpy(own->iv, r->iv, sizeof(own->iv));
    /* A driver that reports success and writes no tag must not pass with the tag of the request before. */
    if (q->tag_bytes)
        memset(own->tag, 0, q->tag_bytes);
    if (q->is_chain) {
        /* Out of place, devices take what they do not encrypt from the output, or copy it there from the input. */
        memcpy((uint8_t *)r->in - q->iv_bytes, r->iv, q->iv_bytes);
        memcpy(r->out - q->iv_bytes, r->iv, q->iv_bytes);
    }
    op->status = RTE_CRYPTO_OP_STATUS_NOT_PROCESSED;
    op->sym->session = q->session; /* a scheduler puts its worker's there */
}

unsigned dpdk_submit(struct cryptodev_queue *q, struct cryptodev_request *const *requests,
                     unsigned n)
{
    struct rte_crypto_op *ops[BURST];
    unsigned accepted = 0;

    while (accepted < n) {
        uint16_t wanted = (uint16_t)(n - accepted < BURST ? n - accepted : BURST), taken;

        for (uint16_t i = 0; i < wanted; i++) {
            prepare(q, requests[accepted + i]);
            ops[i] = q->slots[requests[accepted + i]->index].op;
        }
        taken = rte_cryptodev_enqueue_burst(q->device->id, q->pair, ops, wanted);
        /* A device that has done it already says so in the operation. */
        for (uint16_t i = 0; i < taken; i++)
            requests[accepted + i]->was_async =
                ops[i]->status == RTE_CRYPTO_OP_STATUS_NOT_PROCESSED;
        accepted += taken;
        q->in_flight += taken;
        if (taken < wanted)
            break;
    }
    return accepted;
}

unsigned dpdk_poll(struct cryptodev_queue *q, struct cryptodev_request **done, unsigned max)
{
    struct rte_crypto_op *ops[BURST];
    uint16_t n = rte_cryptodev_dequeue_burst(q->device->id, q->pair, ops,
                                             (uint16_t)(max < BURST ? max : BURST));

    for (uint16_t i = 0; i < n; i++) {
        struct private_part *own =
            rte_crypto_op_ctod_offset(ops[i], struct private_part *, PRIVATE_OFFSET);

        done[i] = own->request;
        done[i]->status = ops[i]->status == RTE_CRYPTO_OP_STATUS_SUCCESS ? 0 : SP_EIO;
        if (q->tag_bytes && done[i]->tag)
            memcpy(done[i]->tag, own->tag, q->tag_bytes);
    }
    q->in_flight -= n;
    return n;
}

/* --- what it can do ------------------------------------------------------------------------------------- */

static bool has_free_pair(struct cryptodev *device)
{
    struct cryptodev_why why;
    int pair = dpdk_pair_take(device, &why);

    if (pair >= 0)
        dpdk_pair_give(device, pair);
    return pair >= 0;
}

int dpdk_supports(struct cryptodev *device, const struct cryptodev_transform *transform,
                  uint64_t request_bytes, bool in_place, struct cryptodev_why *why)
{
    bool is_digest = transform->cipher == CRYPTODEV_NO_CIPHER;
    bool is_chain = !is_digest && transform->digest != CRYPTODEV_NO_DIGEST;
    uint64_t flags = device->info.feature_flags, needed;
    int status = dpdk_check_transform(device, transform, why);

    if (status != 0)
        return status;
    if (request_bytes > device->limits.request_bytes_max)
        return dpdk_why(why, SP_EUNSUPPORTED,
                        "requests of %llu bytes are more than it was opened for",
                        (unsigned long long)request_bytes);
    if (!in_place && !is_digest && !(flags & RTE_CRYPTODEV_FF_OOP_LB_IN_LB_OUT))
        return dpdk_why(why, SP_EUNSUPPORTED, "%s works in place only", device->name);
    if (request_bytes + (is_chain ? transform->iv_bytes : 0) > SEGMENT_BYTES) {
        needed = in_place || is_digest ? RTE_CRYPTODEV_FF_IN_PLACE_SGL
                                       : RTE_CRYPTODEV_FF_OOP_SGL_IN_SGL_OUT;
        if (!(flags & needed))
            return dpdk_why(
                why, SP_EUNSUPPORTED,
                "%s has no scatter-gather %s, and %llu bytes need more than one segment",
                device->name, in_place || is_digest ? "in place" : "out of place",
                (unsigned long long)request_bytes);
    }
    /* Capabilities say nothing about lengths, and drivers have bounds of their own. */
    if (request_bytes > UINT16_MAX / 2 && has_free_pair(device))
        return dpdk_try(device, transform, request_bytes, in_place, why);
    return 0;
}
