// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * sallyport_fakedev: an asynchronous AES-CBC device that exists in software only, for tests of what
 * real devices do on their bad days.
 *
 * It registers cbc-aes-sallyport-fake with a priority so low that nobody gets it unasked. Requests
 * wait in a ring; a timer completes one every latency_us, in their order, with the result of a
 * synchronous cipher. When the ring is full, requests that may wait are backlogged (-EBUSY), others
 * are refused (-ENOSPC).
 *
 * Faults count the requests that leave the ring since loading, so that a run repeats exactly: every
 * N-th fails (fail_every), is never completed (lose_every), or has one bit of its result flipped
 * (wrong_every). After disappear_after requests the device is gone: what it has, and what comes,
 * ends with -ENODEV.
 *
 * /sys/kernel/debug/sallyport_fakedev/counts shows what happened. Writing to `release` beside it
 * completes the lost requests (-ETIMEDOUT): until then their owner holds the device, which
 * therefore cannot be unloaded.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <crypto/aes.h>
#include <crypto/algapi.h>
#include <crypto/internal/skcipher.h>
#include <crypto/scatterwalk.h>
#include <linux/debugfs.h>
#include <linux/hrtimer.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/version.h>

static unsigned latency_us = 50;
module_param(latency_us, uint, 0444);
MODULE_PARM_DESC(latency_us, "microseconds between two completions (default 50)");
static unsigned ring = 64;
module_param(ring, uint, 0444);
MODULE_PARM_DESC(ring, "requests that fit (default 64)");
static unsigned fail_every, lose_every, wrong_every, disappear_after;
module_param(fail_every, uint, 0444);
MODULE_PARM_DESC(fail_every, "every N-th request ends with -EIO (default 0: none)");
module_param(lose_every, uint, 0444);
MODULE_PARM_DESC(lose_every, "every N-th request is never completed (default 0: none)");
module_param(wrong_every, uint, 0444);
MODULE_PARM_DESC(wrong_every, "every N-th result is wrong (default 0: none)");
module_param(disappear_after, uint, 0444);
MODULE_PARM_DESC(disappear_after, "the device is gone after N requests (default 0: never)");

struct request_state {
    bool decrypts;
    struct skcipher_request fallback; /* the last member: the cipher's own state follows */
};

struct cipher_state {
    struct crypto_skcipher *fallback;
};

static struct {
    spinlock_t lock; /* over everything below */
    struct crypto_queue queue;
    struct list_head lost;
    struct hrtimer timer;
    bool timer_runs, armed, gone;
    u64 served; /* since armed: what the faults count */
    u64 accepted, backlogged, refused, completed, failed, lost_count, wrong, vanished;
} device;

static struct dentry *folder;

static void complete_request(struct crypto_async_request *request, int status)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
    request->complete(request, status);
#else
    crypto_request_complete(request, status);
#endif
}

static bool is_nth(unsigned every)
{
    return every != 0 && device.served % every == 0;
}

static int compute(struct skcipher_request *request)
{
    struct cipher_state *cipher = crypto_skcipher_ctx(crypto_skcipher_reqtfm(request));
    struct request_state *state = skcipher_request_ctx(request);

    skcipher_request_set_tfm(&state->fallback, cipher->fallback);
    skcipher_request_set_callback(&state->fallback, 0, NULL, NULL);
    skcipher_request_set_crypt(&state->fallback, request->src, request->dst, request->cryptlen,
                               request->iv);
    return state->decrypts ? crypto_skcipher_decrypt(&state->fallback)
                           : crypto_skcipher_encrypt(&state->fallback);
}

static void flip_a_bit(struct skcipher_request *request)
{
    u8 byte;

    scatterwalk_map_and_copy(&byte, request->dst, request->cryptlen / 2, 1, 0);
    byte ^= 1;
    scatterwalk_map_and_copy(&byte, request->dst, request->cryptlen / 2, 1, 1);
}

enum fate { COMPLETES, FAILS, IS_LOST, IS_WRONG, VANISHES };

/* Under the lock. */
static enum fate decide(void)
{
    if (!device.armed)
        return COMPLETES;
    if (device.gone) {
        device.vanished++;
        return VANISHES;
    }
    device.served++;
    if (disappear_after != 0 && device.served >= disappear_after)
        device.gone = true;
    if (is_nth(lose_every)) {
        device.lost_count++;
        return IS_LOST;
    }
    if (is_nth(fail_every)) {
        device.failed++;
        return FAILS;
    }
    if (is_nth(wrong_every)) {
        device.wrong++;
        return IS_WRONG;
    }
    device.completed++;
    return COMPLETES;
}

static enum hrtimer_restart serve_one(struct hrtimer *timer)
{
    struct crypto_async_request *base, *backlog;
    struct skcipher_request *request;
    enum fate fate = COMPLETES;
    bool more;

    spin_lock(&device.lock);
    backlog = crypto_get_backlog(&device.queue);
    base = crypto_dequeue_request(&device.queue);
    if (base)
        fate = decide();
    if (base && fate == IS_LOST)
        list_add_tail(&base->list, &device.lost);
    spin_unlock(&device.lock);
    if (backlog)
        complete_request(backlog, -EINPROGRESS);
    if (base && fate != IS_LOST) {
        int status = fate == FAILS ? -EIO : fate == VANISHES ? -ENODEV : 0;

        request = skcipher_request_cast(base);
        if (status == 0)
            status = compute(request);
        if (fate == IS_WRONG)
            flip_a_bit(request);
        complete_request(base, status);
    }
    spin_lock(&device.lock);
    more = device.queue.qlen != 0;
    device.timer_runs = more;
    if (more)
        hrtimer_forward_now(timer, ns_to_ktime((u64)latency_us * NSEC_PER_USEC));
    spin_unlock(&device.lock);
    return more ? HRTIMER_RESTART : HRTIMER_NORESTART;
}

static int enqueue(struct skcipher_request *request, bool decrypts)
{
    struct request_state *state = skcipher_request_ctx(request);
    int status;

    state->decrypts = decrypts;
    if (request->cryptlen % AES_BLOCK_SIZE != 0)
        return -EINVAL;
    if (request->cryptlen == 0)
        return 0;
    spin_lock_bh(&device.lock);
    if (device.gone) {
        device.vanished++;
        spin_unlock_bh(&device.lock);
        return -ENODEV;
    }
    status = crypto_enqueue_request(&device.queue, &request->base);
    device.accepted += status == -EINPROGRESS;
    device.backlogged += status == -EBUSY;
    device.refused += status == -ENOSPC;
    if (status != -ENOSPC && !device.timer_runs) {
        device.timer_runs = true;
        hrtimer_start(&device.timer, ns_to_ktime((u64)latency_us * NSEC_PER_USEC),
                      HRTIMER_MODE_REL_SOFT);
    }
    spin_unlock_bh(&device.lock);
    return status;
}

static int fake_encrypt(struct skcipher_request *request)
{
    return enqueue(request, false);
}

static int fake_decrypt(struct skcipher_request *request)
{
    return enqueue(request, true);
}

static int fake_set_key(struct crypto_skcipher *tfm, const u8 *key, unsigned bytes)
{
    struct cipher_state *cipher = crypto_skcipher_ctx(tfm);

    return crypto_skcipher_setkey(cipher->fallback, key, bytes);
}

static int fake_init(struct crypto_skcipher *tfm)
{
    struct cipher_state *cipher = crypto_skcipher_ctx(tfm);

    cipher->fallback = crypto_alloc_skcipher("cbc(aes-generic)", 0, CRYPTO_ALG_ASYNC);
    if (IS_ERR(cipher->fallback))
        return PTR_ERR(cipher->fallback);
    crypto_skcipher_set_reqsize(tfm, sizeof(struct request_state) +
                                         crypto_skcipher_reqsize(cipher->fallback));
    return 0;
}

static void fake_exit(struct crypto_skcipher *tfm)
{
    struct cipher_state *cipher = crypto_skcipher_ctx(tfm);

    crypto_free_skcipher(cipher->fallback);
}

static struct skcipher_alg fake_cipher = {
    .base.cra_name = "cbc(aes)",
    .base.cra_driver_name = "cbc-aes-sallyport-fake",
    .base.cra_priority = 1,
    .base.cra_flags = CRYPTO_ALG_ASYNC,
    .base.cra_blocksize = AES_BLOCK_SIZE,
    .base.cra_ctxsize = sizeof(struct cipher_state),
    .base.cra_module = THIS_MODULE,
    .min_keysize = AES_MIN_KEY_SIZE,
    .max_keysize = AES_MAX_KEY_SIZE,
    .ivsize = AES_BLOCK_SIZE,
    .init = fake_init,
    .exit = fake_exit,
    .setkey = fake_set_key,
    .encrypt = fake_encrypt,
    .decrypt = fake_decrypt,
};

static int counts_show(struct seq_file *file, void *unused)
{
    spin_lock_bh(&device.lock);
    seq_printf(
        file,
        "accepted %llu\nbacklogged %llu\nrefused %llu\ncompleted %llu\nfailed %llu\nlost %llu\nwrong %llu\n"
        "vanished %llu\nwaiting %u\n",
        device.accepted, device.backlogged, device.refused, device.completed, device.failed,
        device.lost_count, device.wrong, device.vanished, device.queue.qlen);
    spin_unlock_bh(&device.lock);
    return 0;
}
DEFINE_SHOW_ATTRIBUTE(counts);

static ssize_t release_write(struct file *file, const char __user *text, size_t count,
                             loff_t *offset)
{
    struct crypto_async_request *base, *next;
    LIST_HEAD(lost);

    spin_lock_bh(&device.lock);
    list_splice_init(&device.lost, &lost);
    spin_unlock_bh(&device.lock);
    list_for_each_entry_safe(base, next, &lost, list)
    {
        list_del(&base->list);
        local_bh_disable();
        complete_request(base, -ETIMEDOUT);
        local_bh_enable();
    }
    return count;
}

static const struct file_operations release_fops = {
    .owner = THIS_MODULE,
    .open = simple_open,
    .write = release_write,
};

static int __init sallyport_fakedev_init(void)
{
    int status;

    if (ring == 0 || ring > 4096 || latency_us > 10000000) {
        pr_err("ring=%u latency_us=%u: expected a ring of 1 to 4096 and at most 10000000 us\n",
               ring, latency_us);
        return -EINVAL;
    }
    spin_lock_init(&device.lock);
    crypto_init_queue(&device.queue, ring);
    INIT_LIST_HEAD(&device.lost);
    hrtimer_init(&device.timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
    device.timer.function = serve_one;
    status = crypto_register_skcipher(&fake_cipher);
    if (status != 0)
        return status;
    /* The crypto manager has tested it by now, and those requests were not to fail. */
    spin_lock_bh(&device.lock);
    device.accepted = device.backlogged = device.refused = device.completed = 0;
    device.armed = true;
    spin_unlock_bh(&device.lock);
    folder = debugfs_create_dir(KBUILD_MODNAME, NULL);
    debugfs_create_file("counts", 0400, folder, NULL, &counts_fops);
    debugfs_create_file("release", 0200, folder, NULL, &release_fops);
    return 0;
}

static void __exit sallyport_fakedev_exit(void)
{
    debugfs_remove(folder);
    crypto_unregister_skcipher(&fake_cipher);
    hrtimer_cancel(&device.timer);
}

module_init(sallyport_fakedev_init);
module_exit(sallyport_fakedev_exit);
MODULE_DESCRIPTION("Sallyport: a fake asynchronous cipher device for fault tests");
MODULE_AUTHOR("The Sallyport authors");
MODULE_VERSION("0.1.0");
MODULE_LICENSE("GPL");
