// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * sallyport_crypto: the kernel's crypto API under stress, one driver at a time.
 *
 * Loading checks the parameters, opens the cipher and starts the run in a thread: insmod returns at
 * once, whatever the device does. The rows are in the kernel's log and in debugfs; unloading stops
 * a run.
 */

#include "sweep_kmod.h"

#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/random.h>

#define LINEAR_SLACK 256 /* associated data and tag */

static struct spk_run *the_run;
static struct task_struct *runner;

static int runner_thread(void *arg)
{
    spk_run_execute(arg);
    return 0;
}

static int open_cipher(struct spk_run *run)
{
    const struct spk_params *params = &run->params;
    int status = spk_cipher_open(&run->cipher, params->driver, params->op, false);

    if (status == -ENOENT)
        pr_err(
            "driver=%s: the kernel has no such %s, expected a driver or algorithm as in /proc/crypto\n",
            params->driver,
            params->op == SPK_OP_DIGEST ? "hash"
            : params->op == SPK_OP_AUTO ? "cipher, AEAD or hash"
                                        : "cipher or AEAD");
    else if (status != 0)
        pr_err("driver=%s: %pe, expected a driver that opens\n", params->driver, ERR_PTR(status));
    return status;
}

static void open_generic(struct spk_run *run)
{
    char name[CRYPTO_MAX_ALG_NAME];
    int status = -ENOENT;

    if (spk_generic_name(run->cipher, name, sizeof(name)))
        status = spk_cipher_open(&run->generic, name, run->params.op, true);
    if (status != 0)
        pr_notice("%s has no generic implementation here: results are not checked\n",
                  run->cipher->name);
}

static int set_keys(struct spk_run *run)
{
    u8 key[SPK_KEY_MAX];
    int key_bits = run->params.key_bits;
    int status;

    get_random_bytes(key, sizeof(key));
    get_random_bytes(run->iv, sizeof(run->iv));
    status = spk_cipher_set_key(run->cipher, key, key_bits);
    if (status != 0 && !run->cipher->is_keyed)
        pr_err("key_bits=%d: expected none, %s takes no key\n", key_bits, run->cipher->driver);
    else if (status != 0)
        pr_err("key_bits=%d: expected a key size that %s takes (%pe)\n", key_bits,
               run->cipher->driver, ERR_PTR(status));
    if (status == 0 && run->generic)
        status = spk_cipher_set_key(run->generic, key, key_bits);
    memzero_explicit(key, sizeof(key));
    return status;
}

static int run_init(struct spk_run *run)
{
    struct spk_params *params = &run->params;
    size_t linear_bytes;
    int status = spk_params_read(params);

    if (status == 0)
        status = open_cipher(run);
    if (status == 0)
        status = spk_params_judge(params, run->cipher);
    if (status != 0)
        return status;
    open_generic(run);
    if (!run->generic && run->cipher->kind == SPK_AEAD && params->op == SPK_OP_DECRYPT) {
        pr_err(
            "op=decrypt: expected encrypt, %s has no generic implementation that could seal what it opens\n",
            run->cipher->name);
        return -EINVAL;
    }
    status = set_keys(run);
    if (status != 0)
        return status;
    linear_bytes = params->size_max + LINEAR_SLACK;
    run->input = kvmalloc(linear_bytes, GFP_KERNEL);
    run->expected = kvmalloc(linear_bytes, GFP_KERNEL);
    run->scratch = kvmalloc(linear_bytes, GFP_KERNEL);
    return run->input && run->expected && run->scratch ? 0 : -ENOMEM;
}

static void run_free(struct spk_run *run)
{
    spk_cipher_put(run->cipher);
    spk_cipher_put(run->generic);
    kvfree(run->input);
    kvfree(run->expected);
    kvfree(run->scratch);
    kvfree(run);
}

static int __init sallyport_crypto_init(void)
{
    struct spk_run *run = kvzalloc(sizeof(*run), GFP_KERNEL);
    int status;

    if (!run)
        return -ENOMEM;
    mutex_init(&run->lock);
    status = run_init(run);
    if (status != 0)
        goto out;
    pr_info("%s (%s, priority %d), %u-bit key, checked against %s\n", run->cipher->driver,
            run->cipher->name, run->cipher->priority, run->cipher->key_bytes * 8,
            run->generic ? run->generic->driver : "nothing");
    runner = kthread_create(runner_thread, run, "sallyport_run");
    if (IS_ERR(runner)) {
        status = PTR_ERR(runner);
        goto out;
    }
    get_task_struct(runner);
    the_run = run;
    spk_report_open(run);
    wake_up_process(runner);
    return 0;
out:
    run_free(run);
    return status;
}

static void __exit sallyport_crypto_exit(void)
{
    WRITE_ONCE(the_run->stop, true);
    kthread_stop(runner);
    put_task_struct(runner);
    spk_report_close();
    run_free(the_run);
    spk_workers_wait_for_late();
}

module_init(sallyport_crypto_init);
module_exit(sallyport_crypto_exit);
MODULE_DESCRIPTION("Sallyport: the kernel's crypto API under stress");
MODULE_AUTHOR("The Sallyport authors");
MODULE_VERSION("0.1.0");
MODULE_LICENSE("GPL");
