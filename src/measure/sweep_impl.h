/*
 * What an implementation of symmetric crypto shows to the sweep. One file each in impl/, one row each in the table
 * below: adding one touches nothing else.
 *
 * device (opened once) -> session (one a thread, bound to an algorithm and key) -> requests (submitted, polled back).
 *
 * Most implementations answer requests; the sweep times them. One that times itself (the kernel module) has `measure`
 * instead of sessions.
 */
#ifndef SP_MEASURE_SWEEP_IMPL_H
#define SP_MEASURE_SWEEP_IMPL_H

#include "measure/sweep.h"

#define SWEEP_WHY_BYTES 240
/* Why not: one clause without the name of the implementation, "crypto_aesni_mb does not do ChaCha20-Poly1305". */
struct sweep_why {
    char text[SWEEP_WHY_BYTES];
};
/* Fills it as printf does, cut at its end; returns `status`. */
int sweep_why(struct sweep_why *why, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* What the whole run will ask of a device at most. */
struct sweep_limits {
    uint64_t request_bytes_max;
    unsigned threads_max; /* sessions in use at the same time, each by a thread of its own */
    unsigned depth_max;   /* requests in flight a session */
};

/* Random bytes, the same for every implementation of a run. */
struct sweep_key {
    const struct sweep_algorithm *algorithm;
    uint8_t key[64];
    uint8_t hmac_key[64];
};

/*
 * One request: encrypt, or digest. In place when in == out. With SWEEP_DIGEST out is NULL. AEADs have no associated data.
 * The IV is used as it is (a nonce for GCM and ChaCha20-Poly1305, the initial counter block for CTR, the tweak for XTS).
 * HMAC is over the IV and the ciphertext.
 */
struct sweep_request {
    const uint8_t *in;
    uint8_t *out;
    uint64_t submitted_ns; /* the sweep's */
    void *slot;       /* the implementation's, from session_open to session_close of the request; NULL at first */
    uint32_t len;
    int status;       /* at completion: 0, or SP_EIO and the like */
    unsigned index;   /* 0 to depth - 1, one of its own each within a session: for slots kept in an array */
    bool was_async;   /* set by the implementation at completion: the submission had returned before */
    uint8_t iv[16];   /* up to here what every request touches, in one cache line where the array begins with one */
    uint8_t tag[64];  /* at completion: tag, digest or MAC, of the algorithm's tag_bytes */
};

struct sweep_device;  /* each implementation's own */
struct sweep_session;

/* A point that a self-timed implementation measures by itself. */
struct sweep_point {
    const struct sweep_key *key;
    struct sweep_mode mode;
    uint64_t request_bytes;
    uint64_t slice_ns;
    bool in_place;
};
/* One timed slice. */
struct sweep_sample {
    uint64_t elapsed_ns;
    uint64_t requests, bytes, async_requests, errors;
    uint64_t busy_ns;     /* CPUs * elapsed - idle; UINT64_MAX: not known */
    uint64_t own_cpu_ns;  /* UINT64_MAX: not known */
    double p50_us, p99_us; /* NAN: not known */
};

struct sweep_impl {
    const char *name;     /* what stands before the colon of a spec: "cryptodev" */
    const char *argument; /* what may stand behind it, "DEVICE" or "[PROVIDER]" (optional); NULL: nothing */
    const char *summary;  /* one line of --list */
    bool is_asynchronous; /* requests may be in flight: DEPTH means something beyond a loop */
    /*
     * A session's requests continue one stream: only the first has its IV, and can be compared; ciphers without a tag. A
     * yardstick, measured only when it is named.
     */
    bool is_stream;

    /*
     * Opens what `argument` names (NULL: nothing given). 0, *out and the description (at most `size` bytes with its NUL)
     * filled; else nothing is left open and `why` says it: SP_EUNSUPPORTED (this build or machine has it not: how to
     * get it), SP_ENOENT (no such device), SP_EINVAL, SP_ENOMEM, SP_EIO, SP_EPERM.
     */
    int (*device_open)(const char *argument, const struct sweep_limits *limits, struct sweep_device **out,
                       char *description, size_t size, struct sweep_why *why);
    void (*device_close)(struct sweep_device *device);
    /* 0, or SP_EUNSUPPORTED with the reason. */
    int (*supports)(struct sweep_device *device, const struct sweep_algorithm *algorithm, uint64_t request_bytes,
                    bool in_place, struct sweep_why *why);
    /* Called on the thread that will use the session. `thread` is 0 to threads_max - 1, no two sessions the same. */
    int (*session_open)(struct sweep_device *device, unsigned thread, const struct sweep_key *key, unsigned depth,
                        struct sweep_session **out, struct sweep_why *why);
    /* Waits (bounded) for what is in flight, or leaks it rather than free what a device may still write to. */
    void (*session_close)(struct sweep_session *session);
    /*
     * Memory that requests' in and out point to, of a session; 64-byte aligned. One buffer each, used from its first byte
     * on: an implementation may keep the IV that an HMAC covers right before it. Both NULL: the sweep's own.
     */
    void *(*buffer_alloc)(struct sweep_session *session, size_t bytes);
    void (*buffer_free)(struct sweep_session *session, void *buffer, size_t bytes);
    /*
     * How many of n were accepted, in their order; the others stay the caller's. An accepted request and its buffers are
     * borrowed until polled back. Does not wait. A synchronous implementation has done them when it returns, and polls
     * them back at once.
     */
    unsigned (*submit)(struct sweep_session *session, struct sweep_request *const *requests, unsigned n);
    /* Those done, up to max; any order. `flush`: no more will be submitted soon, so do not wait for a fuller batch. */
    unsigned (*poll)(struct sweep_session *session, struct sweep_request **done, unsigned max, bool flush);
    /*
     * Optional, synchronous implementations: one request, done when it returns: its status. The sweep takes it for
     * SINGLE and CONCURRENT, so that a request of 16 bytes costs one call.
     */
    int (*run)(struct sweep_session *session, struct sweep_request *request);

    /* Instead of sessions. 0, or why not; SP_ETIMEDOUT: the device stopped answering. */
    int (*measure)(struct sweep_device *device, const struct sweep_point *point, struct sweep_sample *sample,
                   struct sweep_why *why);
    /* Of self-timed implementations: whether it checks its own results; 0, SP_EFAULT: they are wrong. */
    int (*self_check)(struct sweep_device *device, const struct sweep_key *key, uint64_t request_bytes, bool in_place,
                      struct sweep_why *why);
};

extern const struct sweep_impl sweep_impl_openssl;
extern const struct sweep_impl sweep_impl_openssl_update;
extern const struct sweep_impl sweep_impl_ipsec_mb;
extern const struct sweep_impl sweep_impl_cryptodev;
extern const struct sweep_impl sweep_impl_af_alg;
extern const struct sweep_impl sweep_impl_kernel;

/* The rows, NULL at the end. */
extern const struct sweep_impl *const sweep_impls[];

#endif
