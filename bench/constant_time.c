/*
 * Do the kernels take the same time for every secret?
 *
 *   constant_time [--seconds N]      N for each kernel, 5 unless told
 *
 * The method of Reparaz, Balasch and Verbauwhede, "Dude, is my code constant time?" (DATE 2017):
 * batches with one fixed secret and batches with random ones follow each other in random order, and
 * Welch's t-test compares the two populations of times, once with all of them and once for each of
 * several croppings of the slowest, which are interrupts more than secrets. |t| beyond 10 in any of
 * these is called a suspected leak. Whatever else runs on the machine disturbs the times, so that
 * this measures and judges but never fails: the exit status is 0.
 *
 * tools/check-constant-time is the other half: it follows the compiled code, where this can only
 * watch it run.
 */
#include "crypto/kernel/p256.h"
#include "crypto/kernel/rsa.h"
#include "crypto/kernel/x25519.h"

#include <math.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CHUNK 64         /* batches whose inputs are made before any of them is timed */
#define WARM_UP 256      /* batches that only say where to crop */
#define LEAST_SAMPLES 50 /* of a population; below, t means nothing */
#define THRESHOLD 10.0
#define RSA_BYTES 256
#define CROPS 6

/* The share of batches, the fastest, that a test counts. */
static const double crops[CROPS] = {1.0, 0.99, 0.95, 0.9, 0.7, 0.5};

/* Four rows of numbers, or eight ciphertexts. */
union sample {
    uint64_t words[LANES * RSA_BYTES / 8];
    uint8_t rows[4][LANES][32];
    uint8_t rsa[LANES][RSA_BYTES];
};

struct bench {
    const struct x25519_kernel *x25519;
    const struct p256_kernel *p256;
    const struct rsa_kernel *rsa;
    struct rsa_scratch *scratch;
    struct sp_rsa_key *key;
    uint8_t point_x[LANES][32], point_y[LANES][32];
    uint8_t out[2][LANES][32];
    uint8_t rsa_out[LANES][RSA_BYTES];
    uint64_t random_state;
};

struct subject {
    const char *name;
    unsigned secrets; /* the first of sample.rows that are secret; 0: RSA */
    void (*run)(struct bench *b, union sample *s);
};

struct population {
    double count, mean, m2;
};

struct test {
    struct population of[CROPS][2];
    double limit[CROPS];
};

static void fail(const char *what)
{
    fprintf(stderr, "constant_time: %s\n", what);
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* xorshift64 (Marsaglia 2003): the secrets of a measurement guard nothing. */
static uint64_t random_u64(struct bench *b)
{
    b->random_state ^= b->random_state << 13;
    b->random_state ^= b->random_state >> 7;
    b->random_state ^= b->random_state << 17;
    return b->random_state;
}

/* --- what is measured ---------------------------------------------------------------- */

typedef const uint8_t (*rows)[32];

static void run_x25519_derive(struct bench *b, union sample *s)
{
    b->x25519->derive(b->out[0], (rows)s->rows[0], (rows)s->rows[3]);
}

static void run_x25519_base(struct bench *b, union sample *s)
{
    b->x25519->base(b->out[0], (rows)s->rows[0]);
}

static void run_p256_base(struct bench *b, union sample *s)
{
    b->p256->base(b->out[0], b->out[1], (rows)s->rows[0]);
}

static void run_p256_derive(struct bench *b, union sample *s)
{
    b->p256->derive(b->out[0], (rows)s->rows[0], (rows)b->point_x, (rows)b->point_y);
}

static void run_p256_nonce(struct bench *b, union sample *s)
{
    b->p256->nonce(b->out[0], b->out[1], (rows)s->rows[0]);
}

static void run_p256_sign(struct bench *b, union sample *s)
{
    b->p256->sign(b->out[0], (rows)s->rows[0], (rows)s->rows[3], (rows)s->rows[2],
                  (rows)s->rows[1]);
}

static void run_rsa(struct bench *b, union sample *s)
{
    struct rsa_request requests[LANES];

    for (int i = 0; i < LANES; i++)
        requests[i] = (struct rsa_request){.key = b->key, .in = s->rsa[i], .out = b->rsa_out[i]};
    rsa_batch_run(b->rsa, requests, LANES, b->scratch);
    for (int i = 0; i < LANES; i++)
        if (requests[i].status != 0)
            fail("the RSA kernel refuses or fails");
}

static const struct subject subjects[] = {
    {"x25519 derive", 1, run_x25519_derive}, {"x25519 base", 1, run_x25519_base},
    {"p256 base", 1, run_p256_base},         {"p256 derive", 1, run_p256_derive},
    {"p256 nonce", 1, run_p256_nonce},       {"p256 sign", 2, run_p256_sign},
    {"rsa 2048 batch", 0, run_rsa},
};

/*
 * Inputs of one batch. The fixed secret is zero but for the last byte, 3, in every lane: almost all
 * digits are equal. The highest bits are clear so that a number is below n or the modulus, and what
 * is not secret is always random.
 */
static void sample_make(struct bench *b, const struct subject *subject, union sample *s, bool fixed)
{
    for (size_t i = 0; i < LANES * RSA_BYTES / 8; i++)
        s->words[i] = random_u64(b);
    if (subject->secrets == 0) {
        for (int i = 0; i < LANES; i++) {
            s->rsa[i][0] = 0;
            if (fixed) {
                memset(s->rsa[i], 0, RSA_BYTES);
                s->rsa[i][RSA_BYTES - 1] = 3;
            }
        }
        return;
    }
    for (int row = 0; row < 4; row++)
        for (int i = 0; i < LANES; i++)
            s->rows[row][i][0] &= 0x7f;
    for (unsigned row = 0; fixed && row < subject->secrets; row++)
        for (int i = 0; i < LANES; i++) {
            memset(s->rows[row][i], 0, 32);
            s->rows[row][i][31] = 3;
        }
}

/* --- the test ------------------------------------------------------------------------ */

/* Welford's running mean and sum of squared differences. */
static void population_add(struct population *p, double x)
{
    double difference = x - p->mean;

    p->count++;
    p->mean += difference / p->count;
    p->m2 += difference * (x - p->mean);
}

static double welch_t(const struct population *a, const struct population *b)
{
    double error;

    if (a->count < LEAST_SAMPLES || b->count < LEAST_SAMPLES)
        return 0;
    error = a->m2 / (a->count - 1) / a->count + b->m2 / (b->count - 1) / b->count;
    return error > 0 ? (a->mean - b->mean) / sqrt(error) : 0;
}

static void test_add(struct test *t, double ns, bool fixed)
{
    for (int i = 0; i < CROPS; i++)
        if (ns <= t->limit[i])
            population_add(&t->of[i][fixed], ns);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void chunk_run(struct bench *b, const struct subject *subject, double ns[CHUNK],
                      bool fixed[CHUNK])
{
    static union sample samples[CHUNK] __attribute__((aligned(64)));

    for (int i = 0; i < CHUNK; i++) {
        fixed[i] = random_u64(b) >> 32 & 1;
        sample_make(b, subject, &samples[i], fixed[i]);
    }
    /* The first one runs into cold caches. */
    subject->run(b, &samples[0]);
    for (int i = 0; i < CHUNK; i++) {
        uint64_t start = now_ns();

        subject->run(b, &samples[i]);
        ns[i] = (double)(now_ns() - start);
    }
}

/* Prints the line of one subject; true: a leak is suspected. */
static bool measure(struct bench *b, const struct subject *subject, double seconds)
{
    uint64_t end = now_ns() + (uint64_t)(seconds * 1e9);
    double warm[WARM_UP], ns[CHUNK], worst = 0;
    bool fixed[CHUNK], enough;
    struct test test = {0};
    const struct population *all = test.of[0];

    for (int i = 0; i < WARM_UP; i += CHUNK)
        chunk_run(b, subject, warm + i, fixed);
    qsort(warm, WARM_UP, sizeof(warm[0]), compare);
    for (int i = 0; i < CROPS; i++)
        test.limit[i] = i == 0 ? INFINITY : warm[(int)(crops[i] * (WARM_UP - 1))];
    do {
        chunk_run(b, subject, ns, fixed);
        for (int i = 0; i < CHUNK; i++)
            test_add(&test, ns[i], fixed[i]);
    } while (now_ns() < end);
    printf("%-15s %8.0f batches of %7.1f us  t:", subject->name, all[0].count + all[1].count,
           warm[WARM_UP / 2] / 1000);
    for (int i = 0; i < CROPS; i++) {
        double t = welch_t(&test.of[i][1], &test.of[i][0]);

        printf(" %6.2f", t);
        if (fabs(t) > worst)
            worst = fabs(t);
    }
    enough = all[0].count >= LEAST_SAMPLES && all[1].count >= LEAST_SAMPLES;
    printf("  %s\n", worst > THRESHOLD ? "leak suspected"
                     : enough          ? "no leak seen"
                                       : "too few batches to judge");
    return worst > THRESHOLD;
}

/* --- setting up ---------------------------------------------------------------------- */

static struct sp_rsa_key *rsa_key_make(void)
{
    static const char *const names[] = {
        OSSL_PKEY_PARAM_RSA_N,           OSSL_PKEY_PARAM_RSA_E,
        OSSL_PKEY_PARAM_RSA_FACTOR1,     OSSL_PKEY_PARAM_RSA_FACTOR2,
        OSSL_PKEY_PARAM_RSA_EXPONENT1,   OSSL_PKEY_PARAM_RSA_EXPONENT2,
        OSSL_PKEY_PARAM_RSA_COEFFICIENT1};
    EVP_PKEY *pkey = EVP_RSA_gen(8 * RSA_BYTES);
    uint8_t bytes[7][RSA_BYTES];
    struct sp_bytes part[7];
    struct sp_rsa_key *key = NULL;

    for (int i = 0; i < 7; i++) {
        BIGNUM *number = NULL;

        if (!pkey || EVP_PKEY_get_bn_param(pkey, names[i], &number) != 1)
            fail("OpenSSL makes no RSA key");
        part[i] = (struct sp_bytes){bytes[i], (size_t)BN_bn2bin(number, bytes[i])};
        BN_clear_free(number);
    }
    EVP_PKEY_free(pkey);
    if (sp_rsa_key_new(&key, &(struct sp_rsa_parts){.n = part[0],
                                                    .e = part[1],
                                                    .p = part[2],
                                                    .q = part[3],
                                                    .dp = part[4],
                                                    .dq = part[5],
                                                    .qinv = part[6]}) != 0)
        fail("sp_rsa_key_new");
    return key;
}

static void bench_init(struct bench *b)
{
    union sample s;

    b->x25519 = x25519_kernel_ifma();
    b->p256 = p256_kernel_ifma();
    b->rsa = rsa_kernel_ifma();
    if (!b->x25519 || !b->p256 || !b->rsa) {
        printf("AVX-512 IFMA is missing here: the portable kernels are measured\n");
        b->x25519 = x25519_kernel_portable();
        b->p256 = p256_kernel_portable();
        b->rsa = rsa_kernel_portable();
    }
    if (RAND_bytes((uint8_t *)&b->random_state, sizeof(b->random_state)) != 1)
        fail("no random bytes");
    b->random_state |= 1;
    sample_make(b, &subjects[0], &s, false);
    b->p256->base(b->point_x, b->point_y, (rows)s.rows[0]);
    b->key = rsa_key_make();
    b->scratch = rsa_scratch_new();
    if (!b->scratch)
        fail("out of memory");
}

int main(int argc, char **argv)
{
    static struct bench b;
    double seconds = 5;
    char *rest = NULL;
    int suspected = 0;

    if (argc == 3 && strcmp(argv[1], "--seconds") == 0)
        seconds = strtod(argv[2], &rest);
    if (argc != 1 && (!rest || rest == argv[2] || *rest || !(seconds > 0 && seconds <= 3600))) {
        fprintf(stderr, "usage: constant_time [--seconds N]\n");
        return 2;
    }
    bench_init(&b);
    printf("t for all batches and for the fastest 99, 95, 90, 70 and 50 %% of them\n");
    for (size_t i = 0; i < sizeof(subjects) / sizeof(subjects[0]); i++)
        suspected += measure(&b, &subjects[i], seconds);
    if (suspected)
        printf("verdict: leak suspected in %d of the above\n", suspected);
    else
        printf("verdict: no time depends on a secret as far as this run can tell\n");
    rsa_scratch_free(b.scratch);
    sp_rsa_key_free(b.key);
    return 0;
}
