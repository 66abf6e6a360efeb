/*
 * The inside of a queue.
 */
#ifndef SP_CRYPTO_QUEUE_INTERNAL_H
#define SP_CRYPTO_QUEUE_INTERNAL_H

#include "crypto/batch.h"
#include "crypto/tally.h"

struct device_queue;
struct prepared;

/* Where an accepted operation is; written by the queue's own thread alone. */
enum op_state { OP_WAITING, OP_HANDED, OP_FOR_DEVICE, OP_ON_DEVICE, OP_FINISHED };

struct sp_queue {
    struct sp_queue_options options;
    struct batch_rules rules;
    unsigned threaded; /* bits 1 << enum sp_algorithm: rows that go to the crypto threads */
    struct device_queue *device; /* NULL: none */
    unsigned on_device;          /* bits likewise: rows that go to the device */
    struct batch_lists waiting, for_device;
    struct batch_list finished;
    size_t in_flight;
    struct algorithm_memory memory;
    struct prepared *prepared; /* NULL until something was taken from it */
    struct queue_tally tally;

    /* Shared with crypto threads. */
    _Alignas(64) _Atomic(struct sp_op *) arrived; /* done, newest first */
    size_t handed; /* with the threads; under their mutex */
};

/* A crypto thread has finished these: they go to the queue, which is woken when need be. */
void queue_deliver(struct sp_queue *queue, struct sp_op *op);

#endif
