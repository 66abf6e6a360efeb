/*
 * How an operation gets through the queue: at once outside of a job; within one, submitted, and the
 * job sleeps until whoever polls the queue has called sp_provider_complete.
 *
 * The waiter and the operation lie on the job's stack, which outlives them: a job ends only by
 * being resumed.
 */
#include "provider/internal.h"

#include "provider/stack.h"

#include <sallyport/provider.h>

#include <openssl/async.h>

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define POLL_MAX 32
/*
 * A job with a callback that is resumed so often before its time has an application that does not
 * poll, or is in a section where pausing is blocked (ASYNC_block_pause) and never slept: it has to
 * help itself.
 */
#define PATIENCE 256

struct waiter {
    bool done;
    ASYNC_callback_fn callback; /* NULL: a descriptor instead */
    void *arg;
};

/*
 * --- what belongs to the thread ----------------------------------------------------------------
 */

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool key_made;
static _Thread_local struct {
    struct sp_queue *queue; /* when the thread has no current one */
    void *stack;            /* for work within jobs */
    bool abandoning;
} here;

static void thread_exits(void *unused)
{
    sp_queue_free(here.queue);
    provider_stack_free(here.stack);
    here.queue = NULL;
    here.stack = NULL;
}

static void make_key(void)
{
    key_made = pthread_key_create(&key, thread_exits) == 0;
}

static bool is_freed_at_exit(void)
{
    pthread_once(&key_once, make_key);
    return key_made && pthread_setspecific(key, &here) == 0;
}

struct sp_queue *sp_provider_queue(void)
{
    struct sp_queue *queue = sp_queue_current();
    struct sp_queue_options options;

    if (queue)
        return queue;
    if (here.queue)
        return here.queue;
    sp_queue_options_init(&options);
    if (!is_freed_at_exit() || sp_queue_new(&queue, &options) != 0)
        return NULL;
    here.queue = queue;
    return queue;
}

void sp_provider_set_abandoning(bool abandoning)
{
    here.abandoning = abandoning;
}

/*
 * --- work that must not run on a job's stack -----------------------------------------------------
 */

struct work {
    struct sp_queue *queue;
    struct sp_op *op; /* NULL: flush */
};

static void do_work(void *arg)
{
    const struct work *w = arg;

    if (w->op)
        sp_queue_run(w->queue, w->op);
    else
        sp_queue_flush(w->queue, SP_FLUSH_ALL);
}

static int work(struct sp_queue *queue, struct sp_op *op)
{
    struct work w = {queue, op};

    if (!ASYNC_get_current_job()) {
        do_work(&w);
        return 0;
    }
    if (!here.stack && (!is_freed_at_exit() || !(here.stack = provider_stack_new())))
        return SP_ENOMEM;
    provider_stack_call(here.stack, do_work, &w);
    return 0;
}

/*
 * --- waiting ------------------------------------------------------------------------------------
 */

void sp_provider_complete(struct sp_op *op)
{
    struct waiter *w = op->user;

    if (!w)
        return;
    w->done = true;
    /* The last touch: the callback may resume the job on whose stack the waiter lies. */
    if (w->callback)
        w->callback(w->arg);
}

static void close_descriptor(ASYNC_WAIT_CTX *wait, const void *name, OSSL_ASYNC_FD fd, void *arg)
{
    close(fd);
}

/* One readable descriptor for the life of the wait context, since openssl speed takes no more. */
static bool offer_descriptor(ASYNC_WAIT_CTX *wait)
{
    OSSL_ASYNC_FD fd;
    void *arg;

    if (ASYNC_WAIT_CTX_get_fd(wait, &key_once, &fd, &arg))
        return true;
    fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return false;
    if (ASYNC_WAIT_CTX_set_wait_fd(wait, &key_once, fd, NULL, close_descriptor))
        return true;
    close(fd);
    return false;
}

/* Runs what has gathered and wakes its jobs; for applications without a loop of ours. */
static void drain(struct sp_queue *queue)
{
    struct sp_op *ops[POLL_MAX];
    size_t n;

    work(queue, NULL);
    do {
        n = sp_queue_poll(queue, ops, POLL_MAX);
        for (size_t i = 0; i < n; i++)
            sp_provider_complete(ops[i]);
    } while (n == POLL_MAX);
}

/*
 * Until the operation is the caller's again. Out of line: what belongs to the thread is looked up
 * anew in every call.
 */
static __attribute__((noinline)) void wait_for(struct sp_queue *queue, struct sp_op *op,
                                               struct waiter *w)
{
    unsigned resumed = 0;

    while (!w->done) {
        int paused = ASYNC_pause_job();

        if (w->done)
            return;
        if (here.abandoning && sp_queue_cancel(queue, op) == 0)
            return;
        if (!paused || !w->callback || ++resumed > PATIENCE)
            drain(queue);
    }
}

static int refuse(struct sp_op *op, int status)
{
    op->status = status;
    return status;
}

static int run(struct sp_queue *queue, struct sp_op *op)
{
    int status = work(queue, op);

    return status == 0 ? op->status : refuse(op, status);
}

int provider_run_now(struct sp_op *op)
{
    struct sp_queue *queue = sp_provider_queue();

    return queue ? run(queue, op) : refuse(op, SP_ENOMEM);
}

int provider_run(struct sp_op *op)
{
    ASYNC_JOB *job = ASYNC_get_current_job();
    struct waiter w = {0};
    struct sp_queue *queue;
    ASYNC_WAIT_CTX *wait;

    if (!job)
        return provider_run_now(op);
    if (here.abandoning)
        return refuse(op, SP_ECANCELED);
    queue = sp_provider_queue();
    wait = ASYNC_get_wait_ctx(job);
    if (!queue || !wait)
        return refuse(op, SP_ENOMEM);
    if (!ASYNC_WAIT_CTX_get_callback(wait, &w.callback, &w.arg))
        w.callback = NULL;
    op->user = &w;
    if ((!w.callback && !offer_descriptor(wait)) || sp_queue_submit(queue, &op, 1) != 1)
        return run(queue, op);
    wait_for(queue, op, &w);
    /* What came in time all the same is of no use to anybody. */
    return here.abandoning ? refuse(op, SP_ECANCELED) : op->status;
}
