/*
 * Crypto threads: each takes the next batch of what all queues have handed over, so that lanes fill
 * by themselves while the threads are busy.
 */
#ifndef SP_CRYPTO_BACKEND_THREADS_H
#define SP_CRYPTO_BACKEND_THREADS_H

#include "crypto/batch.h"

struct sp_crypto_threads;

/* Takes all operations of a row. */
void threads_take(struct sp_crypto_threads *threads, struct sp_queue *queue, struct batch_list *list);
/* False when a thread has begun with it. */
bool threads_withdraw(struct sp_crypto_threads *threads, struct sp_op *op);
/* Withdraws what the queue has handed over, and waits for what is running; each ends as sp_queue_free says. */
void threads_drop(struct sp_crypto_threads *threads, struct sp_queue *queue);

#endif
