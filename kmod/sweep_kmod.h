/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The parts of sallyport_crypto.ko: a cipher (any algorithm of the crypto API behind one shape),
 * workers that keep requests of it in flight, a run that measures points and writes rows, and the
 * module around them.
 */
#ifndef SPK_SWEEP_KMOD_H
#define SPK_SWEEP_KMOD_H

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <crypto/aead.h>
#include <crypto/hash.h>
#include <crypto/skcipher.h>
#include <linux/cache.h>
#include <linux/completion.h>
#include <linux/kernel.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "sweep_math.h"

#define SPK_KEY_MAX 64
#define SPK_IV_MAX 16
#define SPK_SIZE_MAX (64u << 20)
#define SPK_THREADS_MAX 1024
#define SPK_DEPTH_MAX 1024
#define SPK_TEXT_MAX 256

enum spk_op { SPK_OP_AUTO, SPK_OP_ENCRYPT, SPK_OP_DECRYPT, SPK_OP_DIGEST };
enum spk_mode { SPK_MODE_BOTH, SPK_MODE_SINGLE, SPK_MODE_CONCURRENT };
enum spk_kind { SPK_SKCIPHER, SPK_AEAD, SPK_HASH };

/* What was asked for, checked. */
struct spk_params {
    const char *driver;    /* name of a driver or of an algorithm */
    const char *algorithm; /* what the driver must implement; empty: anything */
    enum spk_op op;
    enum spk_mode mode;
    unsigned size_min, size_max, threads, depth, msec, timeout_ms;
    int key_bits; /* SPK_DEFAULT: the longest that the cipher takes */
    bool in_place;
};
#define SPK_DEFAULT (-1)

/* ---- sweep_cipher.c: one algorithm of the crypto API ---- */

struct spk_cipher {
    struct kref ref; /* the run's, and one of each worker: a request in flight keeps its cipher */
    enum spk_kind kind;
    union {
        struct crypto_skcipher *skcipher;
        struct crypto_aead *aead;
        struct crypto_ahash *hash;
    } tfm;
    const char *name, *driver; /* the crypto API's; `name` without the "__" of internal ones */
    int priority;
    bool is_authenc, is_keyed;
    unsigned iv_bytes, tag_bytes, aad_bytes;
    unsigned granule_bytes, bytes_min; /* of a request */
    unsigned key_bytes;
};

/*
 * `synchronous`: only implementations that complete within the call. 0 or a negative errno: -ENOENT
 * when no algorithm of a kind that does `op` has this name.
 */
int spk_cipher_open(struct spk_cipher **out, const char *name, enum spk_op op, bool synchronous);
void spk_cipher_get(struct spk_cipher *cipher);
void spk_cipher_put(struct spk_cipher *cipher);
/*
 * key_bits SPK_DEFAULT: the longest. `key` has SPK_KEY_MAX bytes. Sets key_bytes. Negative errno:
 * the cipher refuses it.
 */
int spk_cipher_set_key(struct spk_cipher *cipher, const u8 *key, int key_bits);
/* The generic implementation's name, in `out`; false: none is known. */
bool spk_generic_name(const struct spk_cipher *cipher, char *out, size_t size);

/* Pages behind a scatterlist. */
struct spk_buffer {
    struct scatterlist *sg;
    unsigned count;
    size_t bytes;
};
int spk_buffer_init(struct spk_buffer *buffer, size_t bytes);
void spk_buffer_release(struct spk_buffer *buffer);

struct spk_worker;

struct spk_request {
    struct spk_worker *worker;
    union {
        void *any;
        struct skcipher_request *skcipher;
        struct aead_request *aead;
        struct ahash_request *hash;
    } api;
    struct spk_buffer in, out; /* `out` is empty in place, and of a digest */
    struct list_head link;     /* in the worker's free or done list; in flight in none */
    struct llist_node late;
    u64 submitted_ns, completed_ns;
    int status;
    bool in_flight, has_result, lost;
    u8 iv[SPK_IV_MAX] ____cacheline_aligned; /* a device may write to both */
    u8 digest[HASH_MAX_DIGESTSIZE] ____cacheline_aligned;
};

/* Sizes of what a request reads, and of what it writes, with associated data and tag. */
size_t spk_cipher_in_bytes(const struct spk_cipher *cipher, size_t bytes, enum spk_op op);
size_t spk_cipher_out_bytes(const struct spk_cipher *cipher, size_t bytes, enum spk_op op);
int spk_request_init(struct spk_request *request, struct spk_cipher *cipher, size_t bytes,
                     enum spk_op op, bool in_place);
void spk_request_release(struct spk_request *request, struct spk_cipher *cipher);
/* What the crypto API answers: 0, -EINPROGRESS, -EBUSY, or an error. */
int spk_request_start(struct spk_request *request, const struct spk_cipher *cipher, enum spk_op op,
                      const u8 *iv);
/* Copies the bytes that the request wrote, without associated data: how many. */
size_t spk_request_result(const struct spk_request *request, const struct spk_cipher *cipher,
                          size_t bytes, enum spk_op op, u8 *out);

/* ---- sweep_worker.c: requests in flight ---- */

struct spk_counts {
    u64 requests, bytes, async_requests, errors, lost;
    int first_error; /* 0: none */
    struct spk_histogram latency;
};

struct spk_worker {
    struct spk_cipher *cipher;
    enum spk_op op;
    size_t bytes;
    unsigned depth, timeout_ms;
    const bool *stop;
    const u8 *iv;

    refcount_t refs; /* the owner's, and one of each lost request */
    spinlock_t
        lock; /* over what completions change: done, backlogged, and `lost` of the requests */
    wait_queue_head_t wait;
    struct list_head done;
    int backlogged;
    bool has_lost;

    struct list_head idle;
    unsigned in_flight;
    bool pinned; /* holds a reference to the module: a request takes suspiciously long */
    bool gone;   /* the device went away */
    u64 now_ns;
    struct spk_counts counts;
    struct spk_request *requests[];
};

struct spk_worker_shape {
    struct spk_cipher *cipher;
    enum spk_op op;
    size_t bytes;
    unsigned depth, timeout_ms;
    bool in_place;
    const bool *stop; /* outlives every worker */
    const u8 *iv;     /* SPK_IV_MAX bytes, likewise; only read before a request starts */
    const u8 *input;  /* of spk_cipher_in_bytes */
};

struct spk_worker *spk_worker_new(const struct spk_worker_shape *shape);
/* Requests that were lost keep the worker alive until the device completes them. */
void spk_worker_free(struct spk_worker *worker);
/*
 * Keeps `depth` requests in flight until deadline_ns, or until `limit` were submitted (0: no
 * limit), then waits for those in flight. 0, or -ETIMEDOUT: some never completed and are lost;
 * their memory is not freed.
 */
int spk_worker_run(struct spk_worker *worker, u64 deadline_ns, u64 limit);
/*
 * What the crypto API's callback hands over: the end of a request, or -EINPROGRESS when it leaves
 * the backlog.
 */
void spk_request_completed(struct spk_request *request, int status);
/* Before the module's code goes: waits for workers with lost requests. */
void spk_workers_wait_for_late(void);

/* ---- sweep_run.c: points and rows ---- */

struct spk_row {
    enum spk_mode mode;
    unsigned threads, depth;
    u64 request_bytes, elapsed_ns, busy_ns, p50_ns, p99_ns;
    u64 requests, bytes, async_requests, errors;
    const char *status;
};
#define SPK_ROWS_MAX 64

enum spk_state { SPK_RUNNING, SPK_DONE, SPK_FAILED };

struct spk_run {
    struct spk_params params;
    struct spk_cipher *cipher, *generic; /* generic NULL: there is none to check against */
    bool stop;
    u8 iv[SPK_IV_MAX];
    u8 *input, *expected, *scratch; /* linear, of the largest size with associated data and tag */

    struct mutex lock; /* over what debugfs reads: rows, state, reason */
    struct spk_row rows[SPK_ROWS_MAX];
    unsigned row_count;
    enum spk_state state;
    int error; /* of a failed run: negative errno */
    char reason[SPK_TEXT_MAX];
};

/* The whole sweep, to `done` or `failed`. */
void spk_run_execute(struct spk_run *run);
/* What of the run a worker needs to know. */
struct spk_worker_shape spk_run_shape(const struct spk_run *run, size_t bytes, unsigned depth);

/* ---- sweep_report.c ---- */

/* Appends the row and prints it. */
void spk_report_row(struct spk_run *run, const struct spk_row *row);
void spk_report_done(struct spk_run *run);
/* The run has failed, and why; returns `status`. */
int spk_report_failure(struct spk_run *run, int status, const char *format, ...) __printf(3, 4);
/* The files in debugfs; without debugfs, rows are in the kernel's log only. */
void spk_report_open(struct spk_run *run);
void spk_report_close(void);
const char *spk_op_name(enum spk_op op);

/* ---- sweep_check.c ---- */

/*
 * Fills `input` and `expected` for a size. 0, or a negative errno after the run's failure was
 * reported.
 */
int spk_check_prepare(struct spk_run *run, size_t bytes);
/* One request of the implementation against `expected`; likewise. */
int spk_check_before(struct spk_run *run, size_t bytes);
/*
 * Whether what the requests of a timed run wrote last is right. True in place, where nothing can be
 * told.
 */
bool spk_check_after(struct spk_run *run, const struct spk_worker *worker);

/* ---- sweep_params.c ---- */

/* What of the parameters can be judged without the cipher. -EINVAL: said in the kernel's log. */
int spk_params_read(struct spk_params *params);
/* The rest; fills what is left to the cipher, `op`. */
int spk_params_judge(struct spk_params *params, const struct spk_cipher *cipher);

#endif
