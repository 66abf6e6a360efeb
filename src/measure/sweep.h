/*
 * The symmetric crypto sweep: bytes a second, requests a second, latency and CPU cost by request size, of several
 * implementations side by side in one interleaved run.
 *
 * Three ways to ask: one request at a time (the next when the last has finished), N threads that each do that, or one
 * thread with N requests in flight. The published experiment that it repeats: ../../docs/crypto-stress.md.
 */
#ifndef SP_MEASURE_SWEEP_H
#define SP_MEASURE_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SWEEP_BYTES_MIN 1u
#define SWEEP_BYTES_DEFAULT_MIN 16u
#define SWEEP_BYTES_MAX (64u << 20)
#define SWEEP_BYTES_DEFAULT_MAX (4u << 20)
#define SWEEP_SIZES_MAX 32
#define SWEEP_THREADS_MAX 1024 /* "concurrent" */
#define SWEEP_DEPTH_MAX 1024   /* "depth" */
#define SWEEP_IMPLS_MAX 16
#define SWEEP_MODES_MAX 8
#define SWEEP_ROUNDS_MAX 31

enum sweep_kind {
    SWEEP_CIPHER,      /* key and IV; as long out as in */
    SWEEP_AEAD,        /* key, nonce and 16 bytes of tag */
    SWEEP_DIGEST,      /* a digest of the request */
    SWEEP_CIPHER_HMAC, /* CBC, then HMAC over IV and ciphertext: encrypt-then-MAC as IPsec's ESP does (RFC 4303) */
};

/* A row of the table in sweep_algorithm.c. */
struct sweep_algorithm {
    const char *name;         /* "aes-256-xts" */
    enum sweep_kind kind;
    unsigned key_bytes;       /* of the cipher; XTS: both keys together; 0: a digest */
    unsigned iv_bytes;
    unsigned tag_bytes;       /* tag, digest or MAC; 0: none. IPsec truncates, we do not: the whole MAC */
    unsigned hmac_key_bytes;  /* of SWEEP_CIPHER_HMAC */
    unsigned granule_bytes;   /* requests are multiples of it: 16 for CBC; 1 for CTR, GCM, digests */
    unsigned bytes_min;       /* 16 for XTS (IEEE 1619: no less than a block) */
    const char *evp_cipher;   /* OpenSSL's name of the cipher; NULL: a digest */
    const char *evp_digest;   /* OpenSSL's name of the digest, alone or below the HMAC; NULL: none */
    const char *kernel_name;  /* of the Linux crypto API: "xts(aes)", "authenc(hmac(sha256),cbc(aes))" */
};

extern const struct sweep_algorithm sweep_algorithms[];
extern const unsigned sweep_algorithm_count;
/* NULL: no such name. */
const struct sweep_algorithm *sweep_algorithm_find(const char *name, size_t len);

enum sweep_mode_kind { SWEEP_SINGLE, SWEEP_CONCURRENT, SWEEP_DEPTH };

struct sweep_mode {
    enum sweep_mode_kind kind;
    unsigned n; /* threads of CONCURRENT, requests in flight of DEPTH; 1 for SINGLE */
};

/* One cell: an implementation at one size, in one mode, with one algorithm. */
struct sweep_cell {
    bool measured;
    const char *why_not; /* when not measured: one clause, e.g. "sizes above 64 KiB are refused"; owned by the result */
    /* Medians over the rounds. */
    double bytes_per_s, requests_per_s;
    double bytes_per_s_low, bytes_per_s_high; /* least and greatest round */
    /*
     * Bytes a second of CPU time that the whole system spent (CPUs * time - idle): work in interrupts and kernel threads
     * counts, and so does whatever else the machine did. NAN where the system counts no idle time.
     */
    double bytes_per_cpu_s;
    double bytes_per_own_cpu_s; /* of this process's user and system time alone; NAN: not known (kernel threads) */
    double p50_us, p99_us;      /* from submission to completion, of sampled requests; NAN: none */
    double async_share;         /* 0 to 1: of requests that completed after their submission had returned */
    uint64_t requests;          /* completed, all rounds */
    uint64_t errors;            /* requests that the implementation failed in a timed run; their bytes do not count */
};

/*
 * What was asked and measured. Cells in one array: cell(algorithm, mode, size, impl) is at
 * ((algorithm * mode_count + mode) * size_count + size) * impl_count + impl.
 */
struct sweep_result {
    const struct sweep_algorithm **algorithms;
    size_t algorithm_count;
    struct sweep_mode modes[SWEEP_MODES_MAX];
    size_t mode_count;
    uint64_t sizes[SWEEP_SIZES_MAX]; /* ascending, no two the same */
    size_t size_count;
    struct sweep_impl_use {
        char *spec;        /* as asked: "cryptodev:crypto_openssl" */
        char *description; /* what was found: "OpenSSL 3.0.19", "ipsec-mb 1.3.0, AVX512" */
    } impls[SWEEP_IMPLS_MAX];
    size_t impl_count;
    struct sweep_cell *cells;
    unsigned rounds;
    uint64_t slice_ns; /* timed at each cell in each round */
    bool in_place;     /* out of place otherwise */
    char *command;     /* command line that repeats it; NULL: not known */
    char *machine;     /* "AMD EPYC, 2 CPUs, Linux 6.1.0"; NULL: not known */
};

struct sweep_cell *sweep_cell_at(const struct sweep_result *result, size_t algorithm, size_t mode, size_t size,
                                 size_t impl);

/*
 * From which size on implementation `a` is faster than `b` by one metric, in one algorithm and mode, up to the largest
 * size that both were measured at.
 */
enum sweep_metric { SWEEP_BY_RATE, SWEEP_BY_CPU };
enum sweep_crossing_kind {
    SWEEP_ALWAYS,   /* at every size measured */
    SWEEP_NEVER,
    SWEEP_FROM,     /* from `from_bytes` on */
    SWEEP_UP_TO,    /* below `from_bytes` only: b overtakes */
    SWEEP_MIXED,    /* crosses more than once */
    SWEEP_UNKNOWN,  /* no size at which both were measured */
};
struct sweep_crossing {
    enum sweep_crossing_kind kind;
    uint64_t from_bytes;    /* FROM: the first measured size at which a wins; UP_TO: at which b wins */
    double at_bytes;        /* where the lines cross, interpolated between two sizes on log axes; NAN: they do not */
    double best_ratio;      /* greatest a / b, and the size of it */
    uint64_t best_bytes;
};
struct sweep_crossing sweep_crossing_of(const struct sweep_result *result, size_t algorithm, size_t mode,
                                        enum sweep_metric metric, size_t a, size_t b);

/* Frees what the result owns, not the result itself; the algorithms array too. */
void sweep_result_release(struct sweep_result *result);

#endif
