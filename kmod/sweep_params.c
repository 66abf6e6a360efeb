// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Parameters: each is judged by itself, and the error names it, its value and what was expected. */

#include "sweep_kmod.h"

#include <linux/cpumask.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>

static char *driver = "";
module_param(driver, charp, 0444);
MODULE_PARM_DESC(
    driver,
    "driver or algorithm of the crypto API, as in /proc/crypto: xts-aes-aesni, cbc(aes), sha256");
static char *algorithm = "";
module_param(algorithm, charp, 0444);
MODULE_PARM_DESC(algorithm, "algorithm that the driver must implement (default: any)");
static char *op = "";
module_param(op, charp, 0444);
MODULE_PARM_DESC(op, "encrypt, decrypt or digest (default: encrypt, or digest of a hash)");
static char *mode = "both";
module_param(mode, charp, 0444);
MODULE_PARM_DESC(mode, "single, concurrent or both (default)");
static int size_min = 16;
module_param(size_min, int, 0444);
MODULE_PARM_DESC(size_min, "bytes of the smallest request (default 16); sizes double from it");
static int size_max = 4 << 20;
module_param(size_max, int, 0444);
MODULE_PARM_DESC(size_max, "bytes that no request exceeds (default 4 MiB)");
static int threads = SPK_DEFAULT;
module_param(threads, int, 0444);
MODULE_PARM_DESC(threads, "threads of the concurrent measurement (default: 2 a CPU)");
static int depth = 1;
module_param(depth, int, 0444);
MODULE_PARM_DESC(depth,
                 "requests in flight of each thread of the concurrent measurement (default 1)");
static int msec = 1000;
module_param(msec, int, 0444);
MODULE_PARM_DESC(msec, "milliseconds of each measurement (default 1000)");
static int timeout_ms = 10000;
module_param(timeout_ms, int, 0444);
MODULE_PARM_DESC(timeout_ms, "milliseconds after which a request counts as lost (default 10000)");
static int key_bits = SPK_DEFAULT;
module_param(key_bits, int, 0444);
MODULE_PARM_DESC(key_bits,
                 "bits of the key, of both keys together with XTS (default: the longest)");
static bool in_place;
module_param(in_place, bool, 0444);
MODULE_PARM_DESC(in_place, "results over the input (default: beside it)");

static int number(const char *name, int value, int min, int max, unsigned *out)
{
    if (value < min || value > max) {
        pr_err("%s=%d: expected %d to %d\n", name, value, min, max);
        return -EINVAL;
    }
    *out = value;
    return 0;
}

static int word(const char *name, const char *value, const char *const *words, int count,
                const char *expected)
{
    int i = match_string(words, count, value);

    if (i < 0)
        pr_err("%s=%s: expected %s\n", name, value, expected);
    return i;
}

int spk_params_read(struct spk_params *params)
{
    static const char *const ops[] = {"", "encrypt", "decrypt", "digest"};
    static const char *const modes[] = {"both", "single", "concurrent"};
    int op_index, mode_index;

    *params = (struct spk_params){
        .driver = driver, .algorithm = algorithm, .key_bits = key_bits, .in_place = in_place};
    if (!*driver || strlen(driver) >= CRYPTO_MAX_ALG_NAME || strpbrk(driver, "\" \t\n")) {
        pr_err(
            "driver=%.40s: expected a driver or algorithm of the crypto API, as in /proc/crypto\n",
            driver);
        return -EINVAL;
    }
    if (threads == SPK_DEFAULT)
        threads = min_t(unsigned, 2 * num_online_cpus(), SPK_THREADS_MAX);
    op_index = word("op", op, ops, ARRAY_SIZE(ops), "encrypt, decrypt or digest");
    mode_index = word("mode", mode, modes, ARRAY_SIZE(modes), "single, concurrent or both");
    if (op_index < 0 || mode_index < 0 ||
        number("size_min", size_min, 1, SPK_SIZE_MAX, &params->size_min) ||
        number("size_max", size_max, 1, SPK_SIZE_MAX, &params->size_max) ||
        number("threads", threads, 1, SPK_THREADS_MAX, &params->threads) ||
        number("depth", depth, 1, SPK_DEPTH_MAX, &params->depth) ||
        number("msec", msec, 1, 600000, &params->msec) ||
        number("timeout_ms", timeout_ms, 10, 600000, &params->timeout_ms))
        return -EINVAL;
    params->op = SPK_OP_AUTO + op_index;
    params->mode = SPK_MODE_BOTH + mode_index;
    if (params->size_min > params->size_max) {
        pr_err("size_min=%u: expected at most size_max=%u\n", params->size_min, params->size_max);
        return -EINVAL;
    }
    return 0;
}

int spk_params_judge(struct spk_params *params, const struct spk_cipher *cipher)
{
    u64 requests = params->mode == SPK_MODE_SINGLE ? 1 : (u64)params->threads * params->depth;
    u64 need, quarter = ((u64)totalram_pages() << PAGE_SHIFT) / 4;

    if (*params->algorithm && strcmp(cipher->name, params->algorithm) != 0) {
        pr_err("driver=%s: implements %s, expected %s\n", params->driver, cipher->name,
               params->algorithm);
        return -EINVAL;
    }
    if (params->op == SPK_OP_AUTO)
        params->op = cipher->kind == SPK_HASH ? SPK_OP_DIGEST : SPK_OP_ENCRYPT;
    if (params->size_min < cipher->bytes_min || params->size_min % cipher->granule_bytes != 0) {
        pr_err("size_min=%u: expected a multiple of %u, at least %u, for %s\n", params->size_min,
               cipher->granule_bytes, cipher->bytes_min, cipher->driver);
        return -EINVAL;
    }
    if (params->in_place && cipher->kind == SPK_AEAD && params->op == SPK_OP_DECRYPT) {
        pr_err("in_place=1: expected 0 with op=decrypt of an AEAD, which refuses its own output\n");
        return -EINVAL;
    }
    need = requests * 2 * (ALIGN((u64)params->size_max + 256, PAGE_SIZE) + 1024);
    if (need > quarter) {
        pr_err(
            "threads=%u depth=%u size_max=%u: need %llu MiB, expected at most a quarter of the memory, %llu MiB\n",
            params->threads, params->depth, params->size_max, need >> 20, quarter >> 20);
        return -ENOMEM;
    }
    return 0;
}
