/*
 * What P-256 costs in lanes and in OpenSSL: operations a second on one core.
 *
 *   p256_lanes [SECONDS]
 *
 * Each kernel function is timed next to the library's, in turns of some milliseconds, so that what
 * disturbs one disturbs both; the best turn of each counts. A signature in lanes is nonce() and
 * sign(), as the library's includes its nonce. SECONDS is for each kernel, 3 unless told.
 */
#include "crypto/kernel/p256.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct bench {
    const struct p256_kernel *kernel;
    EVP_PKEY *key, *peer;
    EVP_PKEY_CTX *sign, *derive, *keygen;
    uint8_t k[LANES][32], x[LANES][32], y[LANES][32], z[LANES][32];
    uint8_t r[LANES][32], k_inverse[LANES][32], s[LANES][32];
    unsigned sum;
};

struct row {
    const char *name;
    int ops; /* a call */
    void (*run)(struct bench *b);
};

static void die(const char *what)
{
    fprintf(stderr, "p256_lanes: %s failed\n", what);
    exit(1);
}

static void lib_sign(struct bench *b)
{
    unsigned char sig[80];
    size_t len = sizeof(sig);

    if (EVP_PKEY_sign(b->sign, sig, &len, b->z[0], 32) != 1)
        die("EVP_PKEY_sign");
}

static void lane_sign(struct bench *b)
{
    b->sum += b->kernel->nonce(b->r, b->k_inverse, b->k);
    b->sum += b->kernel->sign(b->s, b->k_inverse, b->r, b->z, b->k);
}

static void lane_sign_only(struct bench *b)
{
    b->sum += b->kernel->sign(b->s, b->k_inverse, b->r, b->z, b->k);
}

static void lib_derive(struct bench *b)
{
    unsigned char secret[32];
    size_t len = sizeof(secret);

    if (EVP_PKEY_derive(b->derive, secret, &len) != 1)
        die("EVP_PKEY_derive");
}

static void lane_derive(struct bench *b)
{
    b->sum += b->kernel->derive(b->r, b->k, b->x, b->y);
}

static void lib_keygen(struct bench *b)
{
    EVP_PKEY *key = NULL;

    if (EVP_PKEY_keygen(b->keygen, &key) != 1)
        die("EVP_PKEY_keygen");
    EVP_PKEY_free(key);
}

static void lane_keygen(struct bench *b)
{
    b->kernel->base(b->x, b->y, b->k);
}

static const struct row rows[] = {
    {"sign", 1, lib_sign},     {"sign (nonce + sign)", LANES, lane_sign},
    {"derive", 1, lib_derive}, {"derive", LANES, lane_derive},
    {"keygen", 1, lib_keygen}, {"keygen (base)", LANES, lane_keygen},
    {NULL, 1, NULL},           {"sign alone", LANES, lane_sign_only},
};

#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Operations a second in a turn of about 5 ms. */
static double turn(struct bench *b, const struct row *row)
{
    double start = now(), spent;
    int calls = 0;

    do {
        row->run(b);
        calls++;
        spent = now() - start;
    } while (spent < 0.005);
    return calls * row->ops / spent;
}

static void bench_kernel(struct bench *b, double seconds)
{
    double best[ROW_COUNT] = {0}, end = now() + seconds;

    lane_keygen(b);
    while (now() < end) {
        for (size_t i = 0; i < ROW_COUNT; i++) {
            double rate = rows[i].run ? turn(b, &rows[i]) : 0;

            if (rate > best[i])
                best[i] = rate;
        }
    }
    for (size_t i = 0; i < ROW_COUNT; i += 2) {
        printf("%-9s %-20s %9.0f/s", b->kernel->name, rows[i + 1].name, best[i + 1]);
        if (rows[i].run)
            printf("   openssl %8.0f/s   %5.2f times", best[i], best[i + 1] / best[i]);
        printf("\n");
    }
}

static void bench_init(struct bench *b)
{
    b->key = EVP_EC_gen("P-256");
    b->peer = EVP_EC_gen("P-256");
    if (!b->key || !b->peer || RAND_bytes(b->k[0], sizeof(b->k)) != 1 ||
        RAND_bytes(b->z[0], sizeof(b->z)) != 1)
        die("EVP_EC_gen");
    for (int i = 0; i < LANES; i++)
        b->k[i][0] = 0x55;
    b->sign = EVP_PKEY_CTX_new(b->key, NULL);
    b->derive = EVP_PKEY_CTX_new(b->key, NULL);
    b->keygen = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
    if (!b->sign || EVP_PKEY_sign_init(b->sign) != 1 || !b->derive ||
        EVP_PKEY_derive_init(b->derive) != 1 || EVP_PKEY_derive_set_peer(b->derive, b->peer) != 1 ||
        !b->keygen || EVP_PKEY_keygen_init(b->keygen) != 1 ||
        EVP_PKEY_CTX_set_group_name(b->keygen, "P-256") != 1)
        die("EVP_PKEY_CTX_new");
}

int main(int argc, char **argv)
{
    const struct p256_kernel *kernels[2] = {p256_kernel_ifma(), p256_kernel_portable()};
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 3;
    static struct bench b;

    bench_init(&b);
    if (!kernels[0])
        printf("no AVX-512 IFMA: only the portable kernel\n");
    for (int i = 0; i < 2; i++) {
        b.kernel = kernels[i];
        if (b.kernel)
            bench_kernel(&b, seconds);
    }
    EVP_PKEY_CTX_free(b.sign);
    EVP_PKEY_CTX_free(b.derive);
    EVP_PKEY_CTX_free(b.keygen);
    EVP_PKEY_free(b.key);
    EVP_PKEY_free(b.peer);
    return 0;
}
