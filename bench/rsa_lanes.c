/*
 * RSA private operations in lanes beside the scalar library, in one process, interleaved.
 *
 * usage: bench_rsa_lanes [ROUNDS [BITS]]
 * For each size: microseconds of CPU time (tenth percentile) and operations a second of
 * EVP_PKEY_sign (PKCS #1, SHA-256), of sp_rsa_key_run_scalar, and of a batch for each fill, blinding
 * and verification included; and the ratio to EVP_PKEY_sign. The lanes of a batch share one key.
 * Results are compared with the scalar library's.
 */
#include "crypto/kernel/rsa.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <time.h>

#define ROUNDS_MAX 1001
#define PORTABLE_ROUNDS 5

enum { SIGN, RAW, BATCH, METHODS = BATCH + 8 };

static void die(const char *what)
{
    fprintf(stderr, "bench_rsa_lanes: %s\n", what);
    ERR_print_errors_fp(stderr);
    exit(1);
}

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

struct bench {
    EVP_PKEY_CTX *sign;
    struct sp_rsa_key *key;
    struct rsa_scratch *scratch;
    uint8_t in[8][512], out[8][512], want[8][512];
    double us[METHODS][ROUNDS_MAX];
};

static struct sp_rsa_key *import(EVP_PKEY *pkey)
{
    static const char *const names[] = {
        OSSL_PKEY_PARAM_RSA_N,           OSSL_PKEY_PARAM_RSA_E,
        OSSL_PKEY_PARAM_RSA_FACTOR1,     OSSL_PKEY_PARAM_RSA_FACTOR2,
        OSSL_PKEY_PARAM_RSA_EXPONENT1,   OSSL_PKEY_PARAM_RSA_EXPONENT2,
        OSSL_PKEY_PARAM_RSA_COEFFICIENT1};
    uint8_t bytes[7][512];
    struct sp_rsa_parts parts;
    struct sp_bytes *all[] = {&parts.n,  &parts.e,  &parts.p,   &parts.q,
                              &parts.dp, &parts.dq, &parts.qinv};
    struct sp_rsa_key *key;

    for (int i = 0; i < 7; i++) {
        BIGNUM *bn = NULL;

        if (!EVP_PKEY_get_bn_param(pkey, names[i], &bn))
            die(names[i]);
        *all[i] = (struct sp_bytes){bytes[i], (size_t)BN_bn2bin(bn, bytes[i])};
        BN_free(bn);
    }
    if (sp_rsa_key_new(&key, &parts))
        die("sp_rsa_key_new");
    return key;
}

static double run(struct bench *b, const struct rsa_kernel *kernel, int method)
{
    static const uint8_t digest[32] = {1};
    struct rsa_request requests[8];
    size_t len = 512;
    unsigned fill = (unsigned)(method - BATCH) + 1;
    double start;

    for (unsigned i = 0; i < 8; i++)
        requests[i] = (struct rsa_request){b->key, b->in[i], b->out[i], 0};
    start = now_us();
    if (method == SIGN) {
        if (EVP_PKEY_sign(b->sign, b->out[0], &len, digest, sizeof(digest)) <= 0)
            die("EVP_PKEY_sign");
    } else if (method == RAW) {
        if (sp_rsa_key_run_scalar(b->key, b->in[0], b->want[0]))
            die("sp_rsa_key_run_scalar");
    } else {
        rsa_batch_run(kernel, requests, fill, b->scratch);
    }
    start = now_us() - start;
    for (unsigned i = 0; method >= BATCH && i < fill; i++)
        if (requests[i].status || memcmp(b->out[i], b->want[i], sp_rsa_key_bytes(b->key)) != 0)
            die("wrong result");
    return start;
}

static void report(struct bench *b, int rounds)
{
    double sign = 0;

    for (int method = 0; method < METHODS; method++) {
        char name[32] = "EVP_PKEY_sign";
        double us, ops = method >= BATCH ? method - BATCH + 1 : 1;

        qsort(b->us[method], (size_t)rounds, sizeof(double), by_size);
        us = b->us[method][rounds / 10];
        if (method == SIGN)
            sign = us;
        else if (method == RAW)
            snprintf(name, sizeof(name), "run_scalar");
        else
            snprintf(name, sizeof(name), "batch of %.0f", ops);
        printf("  %-14s %10.1f us %9.0f ops/s %6.2f x\n", name, us, ops * 1e6 / us,
               ops * sign / us);
    }
}

static void bench(const struct rsa_kernel *kernel, const char *name, unsigned bits, int rounds)
{
    struct bench *b = calloc(1, sizeof(*b));
    EVP_PKEY *pkey = EVP_RSA_gen(bits);

    if (!b || !pkey || !(b->scratch = rsa_scratch_new()))
        die("setup");
    b->key = import(pkey);
    b->sign = EVP_PKEY_CTX_new_from_pkey(NULL, pkey, "provider=default");
    if (EVP_PKEY_sign_init(b->sign) <= 0 ||
        EVP_PKEY_CTX_set_rsa_padding(b->sign, RSA_PKCS1_PADDING) <= 0 ||
        EVP_PKEY_CTX_set_signature_md(b->sign, EVP_sha256()) <= 0)
        die("EVP_PKEY_sign_init");
    for (int i = 0; i < 8; i++) {
        RAND_bytes(b->in[i] + 1, (int)bits / 8 - 1);
        if (sp_rsa_key_run_scalar(b->key, b->in[i], b->want[i]))
            die("sp_rsa_key_run_scalar");
    }
    for (int round = -1; round < rounds; round++) {
        for (int method = 0; method < METHODS; method++) {
            double us = run(b, kernel, method);

            if (round >= 0)
                b->us[method][round] = us;
        }
    }
    printf("RSA-%u, %s\n", bits, name);
    report(b, rounds);
    sp_rsa_key_free(b->key);
    rsa_scratch_free(b->scratch);
    EVP_PKEY_CTX_free(b->sign);
    EVP_PKEY_free(pkey);
    free(b);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 51;
    unsigned only = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;

    if (rounds < 1 || rounds > ROUNDS_MAX)
        die("rounds: 1 to 1001");
    for (unsigned bits = 2048; bits <= 4096; bits += 1024) {
        if (only && only != bits)
            continue;
        if (rsa_kernel_ifma())
            bench(rsa_kernel_ifma(), "AVX-512 IFMA", bits, rounds);
        else
            printf("no AVX-512 IFMA here\n");
        bench(rsa_kernel_portable(), "portable", bits,
              rounds < PORTABLE_ROUNDS ? rounds : PORTABLE_ROUNDS);
    }
    return 0;
}
