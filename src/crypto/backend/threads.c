#include "crypto/backend/threads.h"

#include "crypto/queue_internal.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#define THREADS_MAX 256

struct sp_crypto_threads {
    pthread_mutex_t mutex;
    pthread_cond_t more;    /* something to do, or the end */
    pthread_cond_t fewer;   /* a queue's operations have come back */
    struct batch_lists pool;
    bool ending;
    unsigned idle;
    unsigned count;
    pthread_t ids[THREADS_MAX];
};

/*
 * Operations of several queues may share a batch if the same rules hold for them: those of the first decide, and the
 * others go back.
 */
static unsigned keep_same_rules(struct sp_crypto_threads *t, struct sp_op **ops, unsigned n)
{
    const struct batch_rules *rules = &ops[0]->queue->rules;
    unsigned kept = 0;

    for (unsigned i = 0; i < n; i++) {
        const struct batch_rules *other = &ops[i]->queue->rules;

        if (other->lanes == rules->lanes && other->lanes_always == rules->lanes_always)
            ops[kept++] = ops[i];
        else
            batch_push(&t->pool, ops[i]);
    }
    return kept;
}

/* With the mutex: whoever waits in threads_drop frees the queue after it. */
static void deliver(struct sp_crypto_threads *t, struct sp_op **ops, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct sp_queue *queue = ops[i]->queue;

        queue_deliver(queue, ops[i]);
        queue->handed--;
    }
    pthread_cond_broadcast(&t->fewer);
}

static void *serve(void *arg)
{
    struct sp_crypto_threads *t = arg;
    struct algorithm_memory memory;
    struct sp_op *ops[SP_LANES_MAX];
    unsigned n;

    if (algorithm_memory_init(&memory) != 0)
        return NULL;
    pthread_mutex_lock(&t->mutex);
    for (;;) {
        n = batch_take(&t->pool, false, true, ops);
        if (n == 0) {
            if (t->ending)
                break;
            t->idle++;
            pthread_cond_wait(&t->more, &t->mutex);
            t->idle--;
            continue;
        }
        n = keep_same_rules(t, ops, n);
        for (unsigned i = 0; i < n; i++)
            ops[i]->is_pooled = false;
        pthread_mutex_unlock(&t->mutex);
        batch_run(ops, n, &ops[0]->queue->rules, SP_BACKEND_THREADS, &memory);
        pthread_mutex_lock(&t->mutex);
        deliver(t, ops, n);
    }
    pthread_mutex_unlock(&t->mutex);
    algorithm_memory_release(&memory);
    return NULL;
}

int sp_crypto_threads_new(struct sp_crypto_threads **out, unsigned n)
{
    struct sp_crypto_threads *t;
    sigset_t all, before;

    if (n < 1 || n > THREADS_MAX)
        return SP_EINVAL;
    t = calloc(1, sizeof(*t));
    if (!t)
        return SP_ENOMEM;
    pthread_mutex_init(&t->mutex, NULL);
    pthread_cond_init(&t->more, NULL);
    pthread_cond_init(&t->fewer, NULL);
    /* Signals are the main thread's. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (t->count < n && pthread_create(&t->ids[t->count], NULL, serve, t) == 0)
        t->count++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (t->count < n) {
        sp_crypto_threads_free(t);
        return SP_EIO;
    }
    *out = t;
    return 0;
}

void sp_crypto_threads_free(struct sp_crypto_threads *threads)
{
    if (!threads)
        return;
    pthread_mutex_lock(&threads->mutex);
    threads->ending = true;
    pthread_cond_broadcast(&threads->more);
    pthread_mutex_unlock(&threads->mutex);
    for (unsigned i = 0; i < threads->count; i++)
        pthread_join(threads->ids[i], NULL);
    pthread_cond_destroy(&threads->fewer);
    pthread_cond_destroy(&threads->more);
    pthread_mutex_destroy(&threads->mutex);
    free(threads);
}

void threads_take(struct sp_crypto_threads *threads, struct sp_queue *queue, struct batch_list *list)
{
    struct sp_op *op = list->first;

    pthread_mutex_lock(&threads->mutex);
    while (op) {
        struct sp_op *next = op->next;

        op->is_pooled = true;
        queue->handed++;
        batch_push(&threads->pool, op);
        op = next;
    }
    if (threads->idle)
        pthread_cond_signal(&threads->more);
    if (threads->idle > 1 && threads->pool.count > SP_LANES_MAX)
        pthread_cond_broadcast(&threads->more);
    pthread_mutex_unlock(&threads->mutex);
}

bool threads_withdraw(struct sp_crypto_threads *threads, struct sp_op *op)
{
    bool withdrawn;

    pthread_mutex_lock(&threads->mutex);
    withdrawn = op->is_pooled;
    if (withdrawn) {
        op->is_pooled = false;
        op->queue->handed--;
        batch_remove(&threads->pool, op);
    }
    pthread_mutex_unlock(&threads->mutex);
    return withdrawn;
}

void threads_drop(struct sp_crypto_threads *threads, struct sp_queue *queue)
{
    pthread_mutex_lock(&threads->mutex);
    for (unsigned i = 0; i < SP_ALGORITHMS; i++) {
        for (struct sp_op *op = threads->pool.rows[i].first, *next; op; op = next) {
            next = op->next;
            if (op->queue != queue)
                continue;
            op->is_pooled = false;
            op->status = SP_ECANCELED;
            queue->handed--;
            batch_remove(&threads->pool, op);
        }
    }
    while (queue->handed > 0)
        pthread_cond_wait(&threads->fewer, &threads->mutex);
    pthread_mutex_unlock(&threads->mutex);
}
