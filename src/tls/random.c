/*
 * "Fast-key-erasure random-number generators", D. J. Bernstein, 2017: each refill makes a block of
 * ChaCha20 keystream, of which the first 32 bytes become the next key and the rest is handed out,
 * erased as it goes. A stolen state tells nothing of what was drawn before.
 */
#define OPENSSL_SUPPRESS_DEPRECATED /* RAND_METHOD, to replace the generator */

#include "tls/random.h"

#include "base/status.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#define KEY_BYTES 32
#define POOL_BYTES 1024
#define RESEED_BYTES 65536 /* drawn between two seeds of the kernel */

struct generator {
    bool seeded; /* false in a fresh page, and in a child after fork */
    uint32_t key[KEY_BYTES / 4];
    uint8_t pool[POOL_BYTES];
    size_t used;
    size_t since_seed;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t cleanup;
static __thread struct generator *own;

/* Four blocks side by side, one word of each in a vector. */
typedef uint32_t lanes __attribute__((vector_size(16)));

static inline lanes rotate(lanes v, int n)
{
    return v << n | v >> (32 - n);
}

#define QUARTER(a, b, c, d)                \
    do {                                   \
        a += b, d ^= a, d = rotate(d, 16); \
        c += d, b ^= c, b = rotate(b, 12); \
        a += b, d ^= a, d = rotate(d, 8);  \
        c += d, b ^= c, b = rotate(b, 7);  \
    } while (0)

static lanes all(uint32_t word)
{
    return (lanes){word, word, word, word};
}

/* Four consecutive blocks from `counter` on: 256 bytes. */
static void four_blocks(const uint32_t key[8], uint32_t counter, uint8_t *out)
{
    lanes start[16], x[16];

    start[0] = all(0x61707865);
    start[1] = all(0x3320646e);
    start[2] = all(0x79622d32);
    start[3] = all(0x6b206574);
    for (int i = 0; i < 8; i++)
        start[4 + i] = all(key[i]);
    start[12] = all(counter) + (lanes){0, 1, 2, 3};
    start[13] = start[14] = start[15] = all(0);
    memcpy(x, start, sizeof(x));
    for (int round = 0; round < 10; round++) {
        QUARTER(x[0], x[4], x[8], x[12]);
        QUARTER(x[1], x[5], x[9], x[13]);
        QUARTER(x[2], x[6], x[10], x[14]);
        QUARTER(x[3], x[7], x[11], x[15]);
        QUARTER(x[0], x[5], x[10], x[15]);
        QUARTER(x[1], x[6], x[11], x[12]);
        QUARTER(x[2], x[7], x[8], x[13]);
        QUARTER(x[3], x[4], x[9], x[14]);
    }
    for (int block = 0; block < 4; block++) {
        for (int i = 0; i < 16; i++) {
            uint32_t word = x[i][block] + start[i][block];

            memcpy(out + block * 64 + i * 4, &word, sizeof(word));
        }
    }
}

void tls_random_keystream(const uint32_t key[8], uint8_t *out, size_t len)
{
    for (size_t at = 0; at < len; at += 256)
        four_blocks(key, (uint32_t)(at / 64), out + at);
}

static int kernel_bytes(void *out, size_t len)
{
    for (size_t have = 0; have < len;) {
        ssize_t n = getrandom((char *)out + have, len - have, 0);

        if (n < 0 && errno != EINTR)
            return SP_EIO;
        if (n > 0)
            have += (size_t)n;
    }
    return 0;
}

/* This thread's generator; NULL when there is no memory that a fork would clear. */
static struct generator *generator(void)
{
    struct generator *g = own;

    if (g)
        return g;
    g = mmap(NULL, sizeof(*g), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (g == MAP_FAILED)
        return NULL;
    if (madvise(g, sizeof(*g), MADV_WIPEONFORK) != 0 || pthread_setspecific(cleanup, g) != 0) {
        munmap(g, sizeof(*g));
        return NULL;
    }
    (void)madvise(g, sizeof(*g), MADV_DONTDUMP);
    own = g;
    return g;
}

static int refill(struct generator *g)
{
    if (!g->seeded || g->since_seed >= RESEED_BYTES) {
        uint32_t seed[KEY_BYTES / 4];

        if (kernel_bytes(seed, sizeof(seed)) != 0)
            return SP_EIO;
        for (size_t i = 0; i < KEY_BYTES / 4; i++)
            g->key[i] ^= seed[i];
        OPENSSL_cleanse(seed, sizeof(seed));
        g->since_seed = 0;
        g->seeded = true;
    }
    tls_random_keystream(g->key, g->pool, sizeof(g->pool));
    memcpy(g->key, g->pool, KEY_BYTES);
    OPENSSL_cleanse(g->pool, KEY_BYTES);
    g->used = KEY_BYTES;
    return 0;
}

int tls_random_bytes(void *out, size_t len)
{
    struct generator *g;
    uint8_t *at = out;

    tls_random_install();
    g = generator();
    if (!g)
        return kernel_bytes(out, len);
    while (len) {
        size_t take;

        if (!g->seeded || g->used == sizeof(g->pool)) {
            if (refill(g) != 0)
                return SP_EIO;
        }
        take = sizeof(g->pool) - g->used;
        if (take > len)
            take = len;
        memcpy(at, g->pool + g->used, take);
        OPENSSL_cleanse(g->pool + g->used, take);
        g->used += take;
        g->since_seed += take;
        at += take;
        len -= take;
    }
    return 0;
}

static int method_bytes(unsigned char *out, int len)
{
    return len >= 0 && tls_random_bytes(out, (size_t)len) == 0;
}

/* The kernel seeds us: what an application adds is not needed. */
static int method_seed(const void *data, int len)
{
    return 1;
}

static int method_add(const void *data, int len, double randomness)
{
    return 1;
}

static int method_status(void)
{
    return 1;
}

static void release_thread(void *page)
{
    own = NULL;
    OPENSSL_cleanse(page, sizeof(struct generator));
    munmap(page, sizeof(struct generator));
}

static void install(void)
{
    static const RAND_METHOD method = {
        .seed = method_seed,
        .bytes = method_bytes,
        .add = method_add,
        .pseudorand = method_bytes,
        .status = method_status,
    };

    if (pthread_key_create(&cleanup, release_thread) == 0)
        (void)RAND_set_rand_method(&method);
}

void tls_random_install(void)
{
    (void)pthread_once(&once, install);
}
