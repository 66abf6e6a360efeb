/*
 * The crypto queue: private-key operations of many connections, gathered and run as batches.
 *
 *     submit   takes operations                            (a handshake reached its signature)
 *     flush    runs batches on the calling thread, or      (the loop has nothing else to do)
 *              hands them to the crypto threads
 *     poll     gives back those that are done              (the handshakes go on)
 *
 * None of them blocks or sleeps. How wide a batch is shows nowhere: the flush policy, in one place,
 * decides by algorithm, by what has gathered and by break-even points measured on the machine,
 * whether operations run one by one in the scalar library or side by side in lanes.
 *
 * A queue belongs to one thread. Its counters may be read by any.
 */
#ifndef SALLYPORT_QUEUE_H
#define SALLYPORT_QUEUE_H

#include <sallyport/rsa.h>
#include <sallyport/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- operations ------------------------------------------------------------------------ */

enum sp_op_kind {
    /* in^d mod n. rsa; in: less than n, as long as n; out: as long as n. SP_EINVAL: not less. */
    SP_OP_RSA_PRIVATE,
    /*
     * ECDSA over P-256 (FIPS 186-5, section 6.4.1). scalar: the key, 32 bytes; in: the digest, 1 to
     * 64 bytes, of which the leftmost 32 count; out: r and s, 64 bytes.
     */
    SP_OP_P256_SIGN,
    /* out: the scalar, 32 bytes, and the point, uncompressed (SEC 1, section 2.3.3), 65 bytes. */
    SP_OP_P256_KEYGEN,
    /* scalar: 32 bytes; in: the peer's point, uncompressed, 65 bytes; out: x, 32 bytes. SP_EINVAL: not on the curve. */
    SP_OP_P256_DERIVE,
    /* RFC 7748. out: the scalar, 32 bytes, and its u-coordinate, 32 bytes; little-endian. */
    SP_OP_X25519_KEYGEN,
    /* scalar: 32 bytes; in: the peer's u-coordinate, 32 bytes; out: 32 bytes. SP_EINVAL: all zero (RFC 7748, section 6.1). */
    SP_OP_X25519_DERIVE,
    /* Anything else: call(arg) on the scalar backend, that is on this thread or a crypto thread; its result is the status. */
    SP_OP_CALL,
    SP_OP_KINDS
};

/* What is counted, and what a batch may hold together: a row of the table of algorithms. */
enum sp_algorithm {
    SP_ALGORITHM_RSA2048,
    SP_ALGORITHM_RSA3072,
    SP_ALGORITHM_RSA4096,
    SP_ALGORITHM_P256_SIGN,
    SP_ALGORITHM_P256_KEYGEN,
    SP_ALGORITHM_P256_DERIVE,
    SP_ALGORITHM_X25519_KEYGEN,
    SP_ALGORITHM_X25519_DERIVE,
    SP_ALGORITHM_OTHER,
    SP_ALGORITHMS
};

/* "RSA-2048", "X25519 derive" and so on; static. */
const char *sp_algorithm_name(enum sp_algorithm algorithm);

enum sp_backend {
    SP_BACKEND_OPENSSL,     /* scalar, the calling thread */
    SP_BACKEND_MULTIBUFFER, /* lanes, the calling thread */
    SP_BACKEND_THREADS,     /* crypto threads, each with lanes */
    SP_BACKEND_CRYPTODEV,   /* a crypto device of DPDK's, beside the calling thread */
    SP_BACKENDS
};

/* "openssl", "multibuffer", "threads", "cryptodev"; static. */
const char *sp_backend_name(enum sp_backend backend);

/*
 * One operation. The caller fills the first part and owns everything it points to. From an accepted submit until poll
 * returns it, the queue borrows the operation and its buffers: neither may be freed, moved or read. in and out may be the
 * same buffer. Results are written only when status is 0.
 */
struct sp_op {
    enum sp_op_kind kind;
    const struct sp_rsa_key *rsa;
    const uint8_t *scalar;
    const uint8_t *in;
    size_t in_len;
    uint8_t *out;
    int (*call)(void *arg);
    void *arg;
    void *user; /* the caller's own, untouched */

    /* Filled when done. */
    int status;              /* SP_EAGAIN while the queue has it */
    enum sp_backend backend; /* what really ran it */
    unsigned lanes;          /* operations in its batch; 1 for the scalar library */

    /* The queue's own. */
    struct sp_queue *queue;
    struct sp_op *next, *previous;
    uint64_t submitted_ns;
    uint8_t algorithm, state;
    bool is_pooled;
};

/* --- queues -------------------------------------------------------------------------------- */

/*
 * Of a backend. The scalar library cannot be off: it has what the lanes have not. REQUIRE of the scalar library turns the
 * lanes off; of the lanes, runs in them everything that they have, however few operations have gathered; of the threads,
 * hands them cheap operations too. A device has what it can do in any case: RSA.
 */
enum sp_policy {
    SP_POLICY_OFF,
    SP_POLICY_PREFER,  /* used where it pays; otherwise the scalar library, counted */
    SP_POLICY_REQUIRE, /* sp_queue_new fails without it */
};

struct sp_crypto_threads;
struct sp_cryptodev;

struct sp_queue_options {
    enum sp_policy policy[SP_BACKENDS];
    /* Bits 1 << enum sp_algorithm: those that only the scalar library on this thread may run. */
    unsigned scalar_only;
    struct sp_crypto_threads *threads; /* borrowed; needed by SP_BACKEND_THREADS */
    struct sp_cryptodev *cryptodev;    /* borrowed; needed by SP_BACKEND_CRYPTODEV */
    size_t max_waiting;                /* submit takes no more than this; 0: no bound */
    /* Called on a crypto thread when poll has something new, once until the next poll. NULL: none. */
    void (*wake)(void *arg);
    void *wake_arg;
};

struct sp_queue;

/* All of PREFER; no threads; no device; no bound. */
void sp_queue_options_init(struct sp_queue_options *options);
/*
 * SP_ENOMEM; SP_EUNSUPPORTED: a required backend does not run here (sp_backend_missing says why), or the device
 * has no queue pair left; SP_EINVAL: the scalar
 * library is off, or two backends that exclude each other are required.
 */
int sp_queue_new(struct sp_queue **out, const struct sp_queue_options *options);
/*
 * Operations that wait, or that a device has, end with SP_ECANCELED, those that crypto threads hold are waited for; none
 * is touched afterwards. Whoever wants them polls before. NULL is allowed.
 */
void sp_queue_free(struct sp_queue *queue);

/*
 * Takes the first operations of ops[n] and returns how many: fewer than n when the bound is
 * reached. A malformed one is accepted and polled back with SP_EINVAL. Those not taken stay the
 * caller's.
 */
size_t sp_queue_submit(struct sp_queue *queue, struct sp_op **ops, size_t n);
enum sp_flush {
    SP_FLUSH_FULL, /* only batches that fill every lane: more may come at once */
    SP_FLUSH_ALL,
};
/*
 * Runs batches: cheap algorithms first, and of dear ones (RSA) at most one batch, so that sockets are served in between.
 * A device gets what is its, and is asked what it has done. True when operations are left that a further flush would run, or that
 * a device has.
 */
bool sp_queue_flush(struct sp_queue *queue, enum sp_flush how);
/* Up to max finished operations, in the order of finishing. */
size_t sp_queue_poll(struct sp_queue *queue, struct sp_op **ops, size_t max);
/*
 * Withdraws an operation: 0, it is the caller's again with SP_ECANCELED; SP_EAGAIN, a crypto thread
 * has it and poll will return it; SP_ENOENT, it is finished and waits in poll.
 */
int sp_queue_cancel(struct sp_queue *queue, struct sp_op *op);
/*
 * Operations accepted and not yet polled back; those of them that a flush would run, hand over or ask a device about: while
 * there are any, flush again.
 */
size_t sp_queue_in_flight(const struct sp_queue *queue);
size_t sp_queue_waiting(const struct sp_queue *queue);
/*
 * Runs one operation, not submitted, to its end on the calling thread, in lanes where one alone pays; the queue's policy
 * and counters apply. Key generation and P-256 signatures take what the lanes have prepared, eight at a time: a key pair,
 * or a nonce with its inverse; each is used once, and none survives a fork.
 */
void sp_queue_run(struct sp_queue *queue, struct sp_op *op);

/*
 * The queue that code without a handle of its own (the OpenSSL provider) submits to on this thread.
 * Set by the queue's owner; NULL: none.
 */
void sp_queue_set_current(struct sp_queue *queue);
struct sp_queue *sp_queue_current(void);

/* --- crypto threads ---------------------------------------------------------------------------- */

/* n threads, 1 to 256, that serve all queues made with them. SP_ENOMEM, SP_EIO, SP_EINVAL. */
int sp_crypto_threads_new(struct sp_crypto_threads **out, unsigned n);
/* After the last of their queues. */
void sp_crypto_threads_free(struct sp_crypto_threads *threads);

/* --- crypto devices ----------------------------------------------------------------------------- */

#define SP_CRYPTODEV_WHY_BYTES 240
/*
 * Opens a crypto device of DPDK's for as many queues: "crypto_openssl", "crypto_qat" and its like by PCI address, with
 * ",param=value" behind it. It starts DPDK in the process, which survives no fork. SP_EUNSUPPORTED: built without DPDK, no RSA, or too
 * few queue pairs; SP_ENOENT: no such device; SP_EINVAL, SP_ENOMEM, SP_EIO. Then `why` says it in one clause.
 */
int sp_cryptodev_new(struct sp_cryptodev **out, const char *device, unsigned queues, char why[SP_CRYPTODEV_WHY_BYTES]);
/* After the last of its queues. NULL is allowed. */
void sp_cryptodev_free(struct sp_cryptodev *device);

/* --- what the machine can do ------------------------------------------------------------------- */

/* NULL when the backend runs here, else why not, e.g. "this CPU lacks AVX-512 IFMA"; static. */
const char *sp_backend_missing(enum sp_backend backend);
/* NULL when the lanes run this algorithm, else why not ("its self-test failed"). */
const char *sp_lanes_missing(enum sp_algorithm algorithm);

/*
 * Nanoseconds measured once a process, when first asked for: one operation in the scalar library, a
 * batch that fills half of the lanes or fewer, a batch of all. lanes_min: the fewest operations
 * that are worth a batch; 0 when no number is.
 */
struct sp_break_even {
    uint64_t scalar_ns, half_ns, full_ns;
    unsigned lanes_min;
};
/* SP_EUNSUPPORTED: no lanes for it; SP_ENOENT: RSA before the first key of that size was used. Takes some milliseconds the first time. */
int sp_break_even(enum sp_algorithm algorithm, struct sp_break_even *out);

/* --- counters -------------------------------------------------------------------------------------- */

#define SP_LANES_MAX 8
#define SP_WAIT_BUCKETS 24

enum sp_fallback {
    SP_FALLBACK_NO_LANES,    /* the machine has no lanes for the algorithm */
    SP_FALLBACK_BREAK_EVEN,  /* too few had gathered for a batch to pay */
    SP_FALLBACK_VERIFY,      /* a result failed its verification and was computed again */
    SP_FALLBACK_NOT_ON_DEVICE, /* the device does not do the algorithm */
    SP_FALLBACK_DEVICE,      /* the device refused the operation, failed, or did not answer */
    SP_FALLBACKS
};
const char *sp_fallback_text(enum sp_fallback reason);

struct sp_algorithm_counters {
    uint64_t done[SP_BACKENDS];
    uint64_t failed[SP_BACKENDS];
    uint64_t batches[SP_LANES_MAX + 1]; /* by lanes filled; [0] unused */
    uint64_t fallbacks[SP_FALLBACKS];
    uint64_t wait_us[SP_WAIT_BUCKETS];  /* [i]: waited less than 2^i us, not less than 2^(i-1) */
    uint64_t canceled;
};
struct sp_queue_counters {
    struct sp_algorithm_counters algorithms[SP_ALGORITHMS];
    uint64_t refused; /* not taken by submit */
    uint64_t pooled;  /* answered from what had been prepared */
};
/* Adds the queue's counters to *sum. From any thread. */
void sp_queue_counters_add(const struct sp_queue *queue, struct sp_queue_counters *sum);

#endif
