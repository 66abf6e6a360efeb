/*
 * DPDK's crypto devices (cryptodev): software ones, and cards such as crypto_qat. One table of functions, in a module of
 * its own, so that the program neither links nor needs DPDK.
 *
 *     device (opened once) -> queue (a queue pair, of one thread at a time) -> requests
 *
 * The first open starts DPDK's environment in the process: without huge pages, shared files and telemetry, on
 * anonymous memory. It stays until the process ends and survives no fork, so processes fork before.
 */
#ifndef SP_CRYPTO_CRYPTODEV_CRYPTODEV_H
#define SP_CRYPTO_CRYPTODEV_CRYPTODEV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CRYPTODEV_MODULE "sallyport_dpdk.so"
#define CRYPTODEV_TABLE "cryptodev_table" /* the symbol: struct cryptodev_table */
#define CRYPTODEV_VERSION 1
#define CRYPTODEV_QUEUES_MAX 1024
#define CRYPTODEV_DEPTH_MAX 1024
#define CRYPTODEV_REQUEST_BYTES_MAX (64u << 20)
#define CRYPTODEV_RSA_BYTES_MAX 512
#define CRYPTODEV_RSA_KEYS_MAX 512 /* of a queue, at the same time */

#define CRYPTODEV_WHY_BYTES 240
/* Why not: one clause, without a line end. */
struct cryptodev_why {
    char text[CRYPTODEV_WHY_BYTES];
};

struct cryptodev;
struct cryptodev_queue;     /* symmetric */
struct cryptodev_rsa_queue; /* asymmetric */
struct cryptodev_rsa_key;

/* What is asked of a device at most. */
struct cryptodev_limits {
    unsigned queues;            /* open at the same time */
    unsigned depth;             /* requests in flight in each */
    uint64_t request_bytes_max; /* of a symmetric request; 0: none are made */
};

enum cryptodev_cipher {
    CRYPTODEV_NO_CIPHER,
    CRYPTODEV_AES_CBC,
    CRYPTODEV_AES_CTR,
    CRYPTODEV_AES_XTS,
    CRYPTODEV_AES_GCM, /* with its tag; no associated data */
    CRYPTODEV_CHACHA20_POLY1305,
};
enum cryptodev_digest { CRYPTODEV_NO_DIGEST, CRYPTODEV_SHA1, CRYPTODEV_SHA256, CRYPTODEV_SHA512 };

/* What a symmetric queue does: encrypts, digests, or encrypts and then computes the HMAC of IV and ciphertext. */
struct cryptodev_transform {
    enum cryptodev_cipher cipher;
    enum cryptodev_digest digest; /* with a cipher: HMAC */
    unsigned key_bytes, hmac_key_bytes;
    unsigned iv_bytes;
    unsigned tag_bytes;            /* tag, digest or MAC */
    const uint8_t *key, *hmac_key; /* NULL for `supports` */
};

/* Bytes before a buffer's first that are the queue's own: where the IV stands that an HMAC covers. */
#define CRYPTODEV_HEADROOM 64

struct cryptodev_request {
    const uint8_t *in; /* memory of the queue's `alloc`, from its first byte on */
    uint8_t *out;      /* likewise, or equal to `in`; NULL: a digest */
    uint32_t len;
    unsigned index; /* 0 to depth - 1, one of its own each while in flight */
    const uint8_t *iv; /* 16 bytes, of which the algorithm takes the first iv_bytes; NULL: none */
    uint8_t *tag;   /* written at completion; NULL: none */
    int status;     /* at completion: 0 or SP_EIO */
    bool was_async; /* at completion: it was not done yet when it had been submitted */
    void *user;
};

/* The parts of a private key (RFC 8017, section 3.2), big-endian, copied. `d` may be wanted besides the quintuple. */
struct cryptodev_number {
    const uint8_t *data;
    size_t len;
};
struct cryptodev_rsa_parts {
    struct cryptodev_number n, e, d, p, q, dp, dq, qinv;
};

/* in^d mod n, no padding. The queue has copied `in`; `out` is copied at completion. */
struct cryptodev_rsa_request {
    const struct cryptodev_rsa_key *key;
    const uint8_t *in; /* as long as n */
    uint8_t *out;      /* as long as n */
    int status;        /* at completion: 0 or SP_EIO */
    void *user;
    void *slot; /* the queue's, while in flight */
};

struct cryptodev_table {
    unsigned version; /* CRYPTODEV_VERSION */

    /*
     * "DEVICE[,param=value...]": the name of a software device ("crypto_openssl", "crypto_aesni_mb",
     * "crypto_scheduler" with "worker=DEVICE" once or more, two crypto_aesni_mb otherwise), with the parameters of its
     * driver; or the address of a PCI device ("0000:3d:01.0"). 0, *out and the description filled; SP_ENOENT: no such
     * device or driver; SP_EINVAL: bad name, parameter or limits; SP_ENOMEM; SP_EIO: DPDK or the device does not start;
     * SP_EUNSUPPORTED: fewer queue pairs than asked for.
     */
    int (*open)(const char *spec, const struct cryptodev_limits *limits, struct cryptodev **out,
                char *description, size_t size, struct cryptodev_why *why);
    /* After its queues. NULL is allowed. A device that still holds requests is left as it is. */
    void (*close)(struct cryptodev *device);

    /*
     * 0, or SP_EUNSUPPORTED with the reason. Asks the device's capabilities, which say nothing about lengths: of long
     * requests one is tried and its result compared, where a queue pair is free.
     */
    int (*supports)(struct cryptodev *device, const struct cryptodev_transform *transform,
                    uint64_t request_bytes, bool in_place, struct cryptodev_why *why);

    /* On the thread that uses it, which is registered with DPDK if there is room. SP_ENOMEM, SP_EUNSUPPORTED, SP_EIO. */
    int (*queue_open)(struct cryptodev *device, const struct cryptodev_transform *transform,
                      unsigned depth, struct cryptodev_queue **out, struct cryptodev_why *why);
    /* Waits for what is in flight, at most two seconds; then it leaks rather than free what the device may write to. */
    void (*queue_close)(struct cryptodev_queue *queue);
    /* 64-byte aligned memory that the device can reach; NULL: exhausted. */
    void *(*alloc)(struct cryptodev_queue *queue, size_t bytes);
    void (*free)(struct cryptodev_queue *queue, void *buffer);
    /* How many of n were accepted, in their order. Does not wait. */
    unsigned (*submit)(struct cryptodev_queue *queue, struct cryptodev_request *const *requests,
                       unsigned n);
    /* Those done, up to max. */
    unsigned (*poll)(struct cryptodev_queue *queue, struct cryptodev_request **done, unsigned max);

    /* 0, or SP_EUNSUPPORTED: the device does not do the private operation of keys of so many bytes. */
    int (*rsa_supports)(struct cryptodev *device, unsigned modulus_bytes,
                        struct cryptodev_why *why);
    int (*rsa_queue_open)(struct cryptodev *device, struct cryptodev_rsa_queue **out,
                          struct cryptodev_why *why);
    /* As queue_close. Requests still in flight are forgotten: their memory may go. */
    void (*rsa_queue_close)(struct cryptodev_rsa_queue *queue);
    /* SP_ENOMEM, SP_EIO: the device refuses the key. */
    int (*rsa_key_new)(struct cryptodev_rsa_queue *queue, const struct cryptodev_rsa_parts *parts,
                       struct cryptodev_rsa_key **out);
    /* When none of its requests is in flight, forgotten ones included (rsa_key_is_busy). */
    void (*rsa_key_free)(struct cryptodev_rsa_key *key);
    bool (*rsa_key_is_busy)(const struct cryptodev_rsa_key *key);
    /* 0: accepted; SP_EAGAIN: the queue is full. */
    int (*rsa_submit)(struct cryptodev_rsa_queue *queue, struct cryptodev_rsa_request *request);
    unsigned (*rsa_poll)(struct cryptodev_rsa_queue *queue, struct cryptodev_rsa_request **done,
                         unsigned max);
    /* The request is the caller's again, at once; whatever the device makes of it is thrown away. */
    void (*rsa_forget)(struct cryptodev_rsa_queue *queue, struct cryptodev_rsa_request *request);
};

/*
 * The module's table, loaded once a process: beside the program, where the build leaves it, or where it is installed. NULL:
 * `why` says it ("built without DPDK: install libdpdk-dev then make clean all").
 */
const struct cryptodev_table *cryptodev_load(struct cryptodev_why *why);
/* NULL when it loads, else why not; static. */
const char *cryptodev_missing(void);
/* For tests, before anything else runs: this table instead of the module's. */
void cryptodev_use_table(const struct cryptodev_table *table);

#endif
