#include "crypto/backend/cryptodev.h"

#include "base/clock.h"
#include "base/list.h"
#include "crypto/algorithm.h"
#include "crypto/cryptodev/cryptodev.h"
#include "crypto/rsa_key.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH 128
#define KEY_WAYS 8 /* a key has its session in one of so many places */
#define KEY_SETS (CRYPTODEV_RSA_KEYS_MAX / KEY_WAYS)
#define POLL_MAX 32
#define PATIENCE_NS UINT64_C(1000000000)
#define FAULTS_MAX 16

struct sp_cryptodev {
    const struct cryptodev_table *table;
    struct cryptodev *device;
    atomic_uint
        faults; /* results that were wrong or did not come: after FAULTS_MAX the device is left alone */
};

struct device_key {
    struct sp_rsa_key *key;            /* a reference */
    struct cryptodev_rsa_key *session; /* NULL: the device refuses it */
    uint64_t used;
};

struct record {
    struct cryptodev_rsa_request request;
    struct sp_op *op; /* NULL: free */
    uint64_t since_ns;
    struct list link;
    uint8_t result[RSA_MAX_BYTES];
};

struct device_queue {
    struct sp_cryptodev *owner;
    struct cryptodev_rsa_queue *queue;
    struct device_key keys[KEY_SETS][KEY_WAYS];
    uint64_t uses;
    struct list idle, running, done; /* of records; `running` oldest first */
    size_t in_flight;
    struct record records[DEPTH];
};

static struct record *record_of(struct list *item)
{
    return LIST_ENTRY(item, struct record, link);
}

/* Out of the list that it is in. */
static void move(struct record *r, struct list *to)
{
    list_del(&r->link);
    list_push_back(to, &r->link);
}

/* --- the device --------------------------------------------------------------------------------------- */

int sp_cryptodev_new(struct sp_cryptodev **out, const char *device, unsigned queues,
                     char why[SP_CRYPTODEV_WHY_BYTES])
{
    const struct cryptodev_limits limits = {.queues = queues, .depth = DEPTH};
    struct sp_cryptodev *d = calloc(1, sizeof(*d));
    struct cryptodev_why because = {"out of memory"};
    char description[96];
    int status = SP_ENOMEM;

    if (d) {
        d->table = cryptodev_load(&because);
        status = d->table ? d->table->open(device, &limits, &d->device, description,
                                           sizeof(description), &because)
                          : SP_EUNSUPPORTED;
    }
    if (status == 0)
        status = d->table->rsa_supports(d->device, 256, &because);
    if (status != 0) {
        if (d && d->device)
            d->table->close(d->device);
        free(d);
        snprintf(why, SP_CRYPTODEV_WHY_BYTES, "%s", because.text);
        return status;
    }
    *out = d;
    return 0;
}

void sp_cryptodev_free(struct sp_cryptodev *device)
{
    if (!device)
        return;
    device->table->close(device->device);
    free(device);
}

/* --- keys --------------------------------------------------------------------------------------------- */

/* One number of the key in bytes[*used...], which has room for all. */
static bool add_number(const EVP_PKEY *pkey, const char *name, uint8_t *bytes, size_t *used,
                       struct cryptodev_number *out)
{
    BIGNUM *number = BN_secure_new();
    bool ok = number && EVP_PKEY_get_bn_param(pkey, name, &number) == 1 &&
              BN_num_bytes(number) <= RSA_MAX_BYTES;

    if (ok) {
        out->data = bytes + *used;
        out->len = (size_t)BN_bn2bin(number, bytes + *used);
        *used += out->len;
    }
    BN_clear_free(number);
    return ok;
}

static int make_session(struct device_queue *q, const struct sp_rsa_key *key,
                        struct cryptodev_rsa_key **out)
{
    struct cryptodev_rsa_parts parts;
    const struct {
        const char *name;
        struct cryptodev_number *number;
    } numbers[] = {
        {OSSL_PKEY_PARAM_RSA_N, &parts.n},          {OSSL_PKEY_PARAM_RSA_E, &parts.e},
        {OSSL_PKEY_PARAM_RSA_D, &parts.d},          {OSSL_PKEY_PARAM_RSA_FACTOR1, &parts.p},
        {OSSL_PKEY_PARAM_RSA_FACTOR2, &parts.q},    {OSSL_PKEY_PARAM_RSA_EXPONENT1, &parts.dp},
        {OSSL_PKEY_PARAM_RSA_EXPONENT2, &parts.dq}, {OSSL_PKEY_PARAM_RSA_COEFFICIENT1, &parts.qinv},
    };
    size_t count = sizeof(numbers) / sizeof(numbers[0]), used = 0;
    uint8_t bytes[8 * RSA_MAX_BYTES];
    int status = 0;

    ERR_set_mark();
    for (size_t i = 0; i < count && status == 0; i++)
        status =
            add_number(key->pkey, numbers[i].name, bytes, &used, numbers[i].number) ? 0 : SP_ENOMEM;
    ERR_pop_to_mark();
    if (status == 0)
        status = q->owner->table->rsa_key_new(q->queue, &parts, out);
    OPENSSL_cleanse(bytes, sizeof(bytes));
    return status;
}

static void drop_key(struct device_queue *q, struct device_key *k)
{
    q->owner->table->rsa_key_free(k->session);
    sp_rsa_key_free(k->key);
    *k = (struct device_key){0};
}

/* The key's entry, or a free one, or the one that was used the longest ago; NULL: all are busy. */
static struct device_key *find_entry(struct device_queue *q, const struct sp_rsa_key *key)
{
    uint64_t hash = (uint64_t)(uintptr_t)key / 64 * UINT64_C(0x9e3779b97f4a7c15);
    struct device_key *set = q->keys[(hash >> 32) % KEY_SETS], *best = NULL;

    for (unsigned i = 0; i < KEY_WAYS; i++) {
        struct device_key *k = &set[i];

        if (k->key == key)
            return k;
        if (k->session && q->owner->table->rsa_key_is_busy(k->session))
            continue;
        if (!best || k->used < best->used)
            best = k;
    }
    return best;
}

/* NULL: the device refuses the key. *all_busy: it might later. */
static const struct cryptodev_rsa_key *session_of(struct device_queue *q, struct sp_rsa_key *key,
                                                  bool *all_busy)
{
    struct device_key *k = find_entry(q, key);

    *all_busy = !k;
    if (!k)
        return NULL;
    if (k->key != key) {
        drop_key(q, k);
        sp_rsa_key_ref(key);
        k->key = key;
        (void)make_session(q, key, &k->session);
    }
    k->used = ++q->uses;
    return k->session;
}

/* --- life --------------------------------------------------------------------------------------------- */

int device_queue_new(struct device_queue **out, struct sp_cryptodev *device, unsigned *rows)
{
    struct device_queue *q = calloc(1, sizeof(*q));
    struct cryptodev_why why;
    unsigned does = 0;
    int status;

    if (!q)
        return SP_ENOMEM;
    status = device->table->rsa_queue_open(device->device, &q->queue, &why);
    if (status != 0) {
        free(q);
        return status;
    }
    q->owner = device;
    list_init(&q->idle);
    list_init(&q->running);
    list_init(&q->done);
    for (unsigned i = 0; i < DEPTH; i++)
        list_push_back(&q->idle, &q->records[i].link);
    for (unsigned i = 0; i < SP_ALGORITHMS; i++) {
        unsigned bytes = (unsigned)algorithm_rows[i].rsa_bytes;

        does |= (unsigned)(bytes && device->table->rsa_supports(device->device, bytes, &why) == 0)
                << i;
    }
    *rows = does;
    *out = q;
    return 0;
}

void device_queue_free(struct device_queue *q)
{
    const struct cryptodev_table *table;
    uint64_t until = clock_now_ns() + PATIENCE_NS;
    struct cryptodev_rsa_request *done[POLL_MAX];

    if (!q)
        return;
    table = q->owner->table;
    LIST_FOR_EACH(item, &q->running) {
        struct record *r = record_of(item);

        table->rsa_forget(q->queue, &r->request);
        r->op->status = SP_ECANCELED;
    }
    LIST_FOR_EACH(item, &q->done)
        record_of(item)->op->status = SP_ECANCELED;
    for (unsigned i = 0; i < CRYPTODEV_RSA_KEYS_MAX; i++) {
        struct device_key *k = &q->keys[i / KEY_WAYS][i % KEY_WAYS];

        while (k->session && table->rsa_key_is_busy(k->session) && clock_now_ns() < until)
            (void)table->rsa_poll(q->queue, done, POLL_MAX);
        /* What a device may still read stays. */
        if (k->key && !(k->session && table->rsa_key_is_busy(k->session)))
            drop_key(q, k);
    }
    table->rsa_queue_close(q->queue);
    OPENSSL_cleanse(q, sizeof(*q));
    free(q);
}

/* --- operations --------------------------------------------------------------------------------------- */

/* A device that takes nothing although it has nothing is not full but broken. */
static int full(struct device_queue *q)
{
    if (!list_is_empty(&q->running))
        return SP_EAGAIN;
    atomic_fetch_add_explicit(&q->owner->faults, 1, memory_order_relaxed);
    return SP_EIO;
}

int device_submit(struct device_queue *q, struct sp_op *op)
{
    struct record *r;
    bool all_busy;

    if (atomic_load_explicit(&q->owner->faults, memory_order_relaxed) >= FAULTS_MAX)
        return SP_EUNSUPPORTED;
    if (!rsa_key_in_range(op->rsa, op->in))
        return SP_EINVAL;
    if (list_is_empty(&q->idle))
        return SP_EAGAIN; /* until those that are done are polled */
    r = record_of(q->idle.next);
    r->request = (struct cryptodev_rsa_request){.in = op->in, .out = r->result, .user = r};
    /* References are no part of the key's value, and every key was born without const. */
    r->request.key = session_of(q, (struct sp_rsa_key *)op->rsa, &all_busy);
    if (!r->request.key)
        return all_busy ? full(q) : SP_EUNSUPPORTED;
    if (q->owner->table->rsa_submit(q->queue, &r->request) != 0)
        return full(q);
    r->op = op;
    r->since_ns = clock_now_ns();
    move(r, &q->running);
    q->in_flight++;
    return 0;
}

/* A result leaves only after it has been raised to the public exponent. */
static int take_result(struct device_queue *q, struct record *r)
{
    int status = r->request.status;

    if (status == 0 && !rsa_key_verify(r->op->rsa, r->op->in, r->result))
        status = SP_EFAULT;
    if (status == 0)
        memcpy(r->op->out, r->result, r->op->rsa->bytes);
    else
        atomic_fetch_add_explicit(&q->owner->faults, 1, memory_order_relaxed);
    OPENSSL_cleanse(r->result, sizeof(r->result));
    return status;
}

/* Moves what is done, and what has taken too long. */
static void collect(struct device_queue *q)
{
    const struct cryptodev_table *table = q->owner->table;
    struct cryptodev_rsa_request *done[POLL_MAX];
    unsigned n = table->rsa_poll(q->queue, done, POLL_MAX);
    uint64_t now_ns;

    for (unsigned i = 0; i < n; i++) {
        struct record *r = done[i]->user;

        r->op->status = take_result(q, r);
        move(r, &q->done);
    }
    if (n || list_is_empty(&q->running))
        return;
    now_ns = clock_now_ns();
    while (!list_is_empty(&q->running)) {
        struct record *r = record_of(q->running.next);

        if (now_ns - r->since_ns <= PATIENCE_NS)
            break;
        table->rsa_forget(q->queue, &r->request);
        atomic_fetch_add_explicit(&q->owner->faults, 1, memory_order_relaxed);
        r->op->status = SP_ETIMEDOUT;
        move(r, &q->done);
    }
}

static struct sp_op *give(struct device_queue *q, struct record *r)
{
    struct sp_op *op = r->op;

    r->op = NULL;
    move(r, &q->idle);
    q->in_flight--;
    return op;
}

unsigned device_poll(struct device_queue *q, struct sp_op **ops, unsigned max)
{
    unsigned n = 0;

    if (!list_is_empty(&q->running))
        collect(q);
    while (n < max && !list_is_empty(&q->done))
        ops[n++] = give(q, record_of(q->done.next));
    return n;
}

/* The record of an operation and the list that it is in. */
static struct record *find_record(struct device_queue *q, const struct sp_op *op,
                                  struct list **list)
{
    struct list *const lists[] = {&q->running, &q->done};

    for (unsigned i = 0; i < 2; i++) {
        LIST_FOR_EACH(item, lists[i]) {
            if (record_of(item)->op == op) {
                *list = lists[i];
                return record_of(item);
            }
        }
    }
    return NULL;
}

int device_run(struct device_queue *q, struct sp_op *op)
{
    struct list *list = &q->running;
    struct record *r;
    int status = device_submit(q, op);

    if (status != 0)
        return status;
    /* Its own end is bounded, and with it this loop. */
    while ((r = find_record(q, op, &list)) && list == &q->running)
        collect(q);
    (void)give(q, r);
    return op->status;
}

void device_withdraw(struct device_queue *q, struct sp_op *op)
{
    struct list *list;
    struct record *r = find_record(q, op, &list);

    if (!r)
        return;
    if (list == &q->running)
        q->owner->table->rsa_forget(q->queue, &r->request);
    (void)give(q, r);
}

size_t device_in_flight(const struct device_queue *q)
{
    return q->in_flight;
}
