/*
 * Whether an implementation answers what OpenSSL answers, before it is timed.
 */
#ifndef SP_MEASURE_SWEEP_CHECK_H
#define SP_MEASURE_SWEEP_CHECK_H

#include "measure/sweep_impl.h"

/* How long nothing may complete before a device counts as stuck. */
#define SWEEP_PATIENCE_NS 5000000000u

/* What is checked: the way of asking that will be timed. */
struct sweep_check {
    const struct sweep_impl *impl;
    struct sweep_device *device;
    const struct sweep_key *key;
    unsigned thread;
    unsigned depth;         /* requests in flight */
    uint64_t request_bytes;
    uint64_t total_bytes;   /* about how many bytes of requests are compared; at least one request each way */
    uint64_t patience_ns;
};

/* 0: OpenSSL can compute it, and the size is one that the algorithm takes; SP_EUNSUPPORTED with the reason. */
int sweep_size_check(const struct sweep_algorithm *algorithm, uint64_t request_bytes, struct sweep_why *why);

/*
 * Requests of random data, each with an IV of its own, in place and out of place (as far as the implementation supports
 * it), with as many in flight as will be timed, through `run` where that is what is timed. Ciphertext and tag of each are
 * compared with OpenSSL's EVP interface called plainly; nothing behind the output may be written, nor the input of a
 * request out of place. Opens sessions of its own. CTR starts at counters whose low 32 bits do not overflow: how far the
 * carry goes is not the same everywhere (RFC 3686 has 32 bits, NIST SP 800-38A leaves it open).
 *
 * 0; SP_EFAULT: it is wrong, `why` says what; SP_ETIMEDOUT: requests did not complete, and their memory is leaked because
 * the device may still write there; what session_open says; SP_ENOMEM; SP_EIO: OpenSSL failed.
 */
int sweep_check(const struct sweep_check *check, struct sweep_why *why);

#endif
