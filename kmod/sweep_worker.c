// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * A worker keeps requests in flight and counts what comes back.
 *
 * A device may stop answering. What it holds then must never be freed, since it may still write
 * there, and the module's code must stay, since it may still call back:
 *   - a request that was not completed in time is lost: it and its worker, cipher and buffers are
 *     left alone;
 *   - a worker that waits long takes a reference to the module, so that rmmod refuses instead of
 *     pulling the code away, and keeps it while requests are lost;
 *   - when the device completes a lost request after all, reap() frees it and gives the reference
 *     back. Callbacks run with bottom halves off, which the grace period of module unloading waits
 *     for, so the last of them is out of our code before the code goes.
 */

#include "sweep_kmod.h"

#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/workqueue.h>

#define SUSPICIOUS_MS 250u
#define LATE_NOTICE_S 10

static LLIST_HEAD(late_requests);
static atomic_t late_workers = ATOMIC_INIT(0);
static DECLARE_WAIT_QUEUE_HEAD(late_wait);

static void worker_destroy(struct spk_worker *worker)
{
    unsigned i;

    for (i = 0; i < worker->depth; i++) {
        spk_request_release(worker->requests[i], worker->cipher);
        kfree(worker->requests[i]);
    }
    spk_cipher_put(worker->cipher);
    kvfree(worker);
}

static void worker_put(struct spk_worker *worker)
{
    bool pinned = worker->pinned, had_lost = worker->has_lost;

    if (!refcount_dec_and_test(&worker->refs))
        return;
    if (had_lost)
        pr_info("%s completed what it had lost: memory and references are given back\n",
                worker->cipher->driver);
    worker_destroy(worker);
    if (pinned)
        module_put(THIS_MODULE);
    if (had_lost && atomic_dec_and_test(&late_workers))
        wake_up(&late_wait);
}

static void reap(struct work_struct *work)
{
    struct llist_node *node = llist_del_all(&late_requests);
    struct spk_request *request, *next;

    llist_for_each_entry_safe(request, next, node, late) worker_put(request->worker);
}

static DECLARE_WORK(reap_work, reap);

void spk_workers_wait_for_late(void)
{
    while (atomic_read(&late_workers) != 0) {
        if (!wait_event_timeout(late_wait, atomic_read(&late_workers) == 0, LATE_NOTICE_S * HZ))
            pr_warn(
                "unloading waits for requests that the device holds: their completion needs this module's code\n");
    }
    flush_work(&reap_work);
}

void spk_request_completed(struct spk_request *request, int status)
{
    struct spk_worker *worker = request->worker;
    unsigned long flags;
    bool late = false;

    spin_lock_irqsave(&worker->lock, flags);
    if (status == -EINPROGRESS) {
        worker->backlogged--;
    } else {
        request->status = status;
        request->completed_ns = ktime_get_ns();
        late = request->lost;
        if (!late)
            list_add_tail(&request->link, &worker->done);
    }
    /* Under the lock: after it, the worker may be freed at any time. */
    if (!late)
        wake_up(&worker->wait);
    spin_unlock_irqrestore(&worker->lock, flags);
    if (late) {
        llist_add(&request->late, &late_requests);
        schedule_work(&reap_work);
    }
}

struct spk_worker *spk_worker_new(const struct spk_worker_shape *shape)
{
    struct spk_worker *worker = kvzalloc(struct_size(worker, requests, shape->depth), GFP_KERNEL);
    size_t input_bytes = spk_cipher_in_bytes(shape->cipher, shape->bytes, shape->op);
    unsigned i;

    if (!worker)
        return NULL;
    refcount_set(&worker->refs, 1);
    spin_lock_init(&worker->lock);
    init_waitqueue_head(&worker->wait);
    INIT_LIST_HEAD(&worker->done);
    INIT_LIST_HEAD(&worker->idle);
    worker->cipher = shape->cipher;
    spk_cipher_get(worker->cipher);
    worker->op = shape->op;
    worker->bytes = shape->bytes;
    worker->timeout_ms = shape->timeout_ms;
    worker->stop = shape->stop;
    worker->iv = shape->iv;
    for (i = 0; i < shape->depth; i++) {
        /* Each by itself: drivers map the IV and the digest for their device, which takes kmalloc. */
        struct spk_request *request = kzalloc(sizeof(*request), GFP_KERNEL);

        if (!request || spk_request_init(request, shape->cipher, shape->bytes, shape->op,
                                         shape->in_place) != 0) {
            kfree(request);
            worker_destroy(worker);
            return NULL;
        }
        worker->requests[worker->depth++] = request;
        request->worker = worker;
        sg_copy_from_buffer(request->in.sg, request->in.count, shape->input, input_bytes);
        list_add_tail(&request->link, &worker->idle);
    }
    return worker;
}

void spk_worker_free(struct spk_worker *worker)
{
    if (worker)
        worker_put(worker);
}

static void count_end(struct spk_worker *worker, struct spk_request *request, bool is_async)
{
    request->in_flight = false;
    request->has_result = request->status == 0;
    list_add(&request->link, &worker->idle);
    worker->in_flight--;
    if (request->status != 0) {
        worker->counts.errors++;
        if (worker->counts.first_error == 0)
            worker->counts.first_error = request->status;
        worker->gone |= request->status == -ENODEV || request->status == -ESHUTDOWN;
        return;
    }
    worker->counts.requests++;
    worker->counts.bytes += worker->bytes;
    worker->counts.async_requests += is_async;
    spk_histogram_add(&worker->counts.latency, request->completed_ns - request->submitted_ns);
}

static void submit(struct spk_worker *worker)
{
    struct spk_request *request = list_first_entry(&worker->idle, struct spk_request, link);
    int status;

    list_del(&request->link);
    request->in_flight = true;
    request->submitted_ns = worker->now_ns;
    worker->in_flight++;
    status = spk_request_start(request, worker->cipher, worker->op, worker->iv);
    if (status == -EINPROGRESS) {
        worker->now_ns = ktime_get_ns();
        return;
    }
    if (status == -EBUSY) {
        worker->now_ns = ktime_get_ns();
        /*
         * Accepted all the same. The notice that it left the backlog may have come already: then
         * the sum is 0.
         */
        spin_lock_irq(&worker->lock);
        worker->backlogged++;
        spin_unlock_irq(&worker->lock);
        return;
    }
    request->status = status;
    request->completed_ns = worker->now_ns = ktime_get_ns();
    count_end(worker, request, false);
}

static bool collect(struct spk_worker *worker)
{
    struct spk_request *request, *next;
    LIST_HEAD(done);

    spin_lock_irq(&worker->lock);
    list_splice_init(&worker->done, &done);
    spin_unlock_irq(&worker->lock);
    if (list_empty(&done))
        return false;
    list_for_each_entry_safe(request, next, &done, link)
    {
        list_del(&request->link);
        count_end(worker, request, true);
    }
    worker->now_ns = ktime_get_ns();
    return true;
}

/* Something was completed, or has left the backlog while `until_room`. */
static bool has_news(struct spk_worker *worker, bool until_room)
{
    return !list_empty_careful(&worker->done) || (until_room && READ_ONCE(worker->backlogged) <= 0);
}

static void unpin(struct spk_worker *worker)
{
    if (worker->pinned)
        module_put(THIS_MODULE);
    worker->pinned = false;
}

/* Waits for news. -ETIMEDOUT: none came. */
static int wait_for_news(struct spk_worker *worker, bool until_room)
{
    unsigned first_ms = min(worker->timeout_ms / 2 + 1, SUSPICIOUS_MS);

    if (wait_event_idle_timeout(worker->wait, has_news(worker, until_room),
                                msecs_to_jiffies(first_ms) + 1)) {
        unpin(worker);
        return 0;
    }
    /* Fails while rmmod runs; then spk_workers_wait_for_late() keeps the code. */
    if (!worker->pinned)
        worker->pinned = try_module_get(THIS_MODULE);
    if (!wait_event_idle_timeout(worker->wait, has_news(worker, until_room),
                                 msecs_to_jiffies(worker->timeout_ms - first_ms) + 1))
        return -ETIMEDOUT;
    unpin(worker);
    return 0;
}

/* Marks what is still in flight as lost: each such request keeps the worker until it comes back. */
static int give_up(struct spk_worker *worker)
{
    struct spk_request *request, *next;
    LIST_HEAD(done);
    unsigned i, lost = 0;

    spin_lock_irq(&worker->lock);
    list_splice_init(&worker->done, &done);
    list_for_each_entry(request, &done, link) request->in_flight = false;
    for (i = 0; i < worker->depth; i++) {
        request = worker->requests[i];
        request->lost = request->in_flight;
        if (!request->lost)
            continue;
        refcount_inc(&worker->refs);
        worker->has_lost = true;
        lost++;
    }
    if (lost != 0)
        atomic_inc(&late_workers);
    spin_unlock_irq(&worker->lock);
    list_for_each_entry_safe(request, next, &done, link)
    {
        list_del(&request->link);
        count_end(worker, request, true);
    }
    worker->counts.lost = lost;
    if (lost != 0)
        return -ETIMEDOUT;
    unpin(worker);
    return 0;
}

static bool may_submit(const struct spk_worker *worker)
{
    return !list_empty(&worker->idle) && READ_ONCE(worker->backlogged) <= 0;
}

int spk_worker_run(struct spk_worker *worker, u64 deadline_ns, u64 limit)
{
    u64 submitted = 0;

    worker->now_ns = ktime_get_ns();
    for (;;) {
        /* One at least, however late the thread came to run. */
        bool more = (submitted == 0 ||
                     (worker->now_ns < deadline_ns && (limit == 0 || submitted < limit))) &&
                    !READ_ONCE(*worker->stop) && !worker->gone;

        if (more && may_submit(worker)) {
            submit(worker);
            submitted++;
            if (worker->in_flight != 0)
                collect(worker);
        } else if (worker->in_flight == 0) {
            return 0;
        } else if (!collect(worker)) {
            if (wait_for_news(worker, more && !list_empty(&worker->idle)) != 0)
                return give_up(worker);
            collect(worker);
            worker->now_ns = ktime_get_ns();
        }
        cond_resched();
    }
}
