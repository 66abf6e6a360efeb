/*
 * X25519 in lanes beside OpenSSL: operations a second on one core.
 *
 *   x25519_lanes [SECONDS]
 *
 * Every kernel is first compared with OpenSSL on random inputs. Then the contenders take turns of a
 * few milliseconds, so that a change of the clock rate meets all of them, and the best turn of each
 * counts.
 */
#include "crypto/kernel/x25519.h"

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define TURN_S 0.02

struct inputs {
    uint8_t scalar[LANES][32], u[LANES][32], out[LANES][32];
    EVP_PKEY_CTX *derive, *keygen;
};

struct contender {
    const char *name;
    void (*run)(struct inputs *in, const struct x25519_kernel *kernel);
    const struct x25519_kernel *kernel;
    unsigned ops;
    double best;
};

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void fail(const char *what)
{
    fprintf(stderr, "x25519_lanes: %s\n", what);
    exit(1);
}

static void run_derive(struct inputs *in, const struct x25519_kernel *kernel)
{
    kernel->derive(in->out, (const uint8_t(*)[32])in->scalar, (const uint8_t(*)[32])in->u);
}

static void run_base(struct inputs *in, const struct x25519_kernel *kernel)
{
    kernel->base(in->out, (const uint8_t(*)[32])in->scalar);
}

static void run_openssl_derive(struct inputs *in, const struct x25519_kernel *kernel)
{
    size_t len = 32;

    if (EVP_PKEY_derive(in->derive, in->out[0], &len) != 1)
        fail("EVP_PKEY_derive");
}

static void run_openssl_keygen(struct inputs *in, const struct x25519_kernel *kernel)
{
    EVP_PKEY *key = NULL;

    if (EVP_PKEY_keygen(in->keygen, &key) != 1)
        fail("EVP_PKEY_keygen");
    EVP_PKEY_free(key);
}

/* Shared secret and public key of lane i by OpenSSL; leaves the derivation's context in `in`. */
static void by_openssl(struct inputs *in, int i, uint8_t shared[32], uint8_t public_key[32])
{
    EVP_PKEY *own = EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, in->scalar[i], 32);
    EVP_PKEY *peer = EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, NULL, in->u[i], 32);
    size_t len = 32;

    EVP_PKEY_CTX_free(in->derive);
    in->derive = EVP_PKEY_CTX_new(own, NULL);
    if (!in->derive || EVP_PKEY_derive_init(in->derive) != 1 ||
        EVP_PKEY_derive_set_peer(in->derive, peer) != 1 ||
        EVP_PKEY_derive(in->derive, shared, &len) != 1 ||
        EVP_PKEY_get_raw_public_key(own, public_key, &len) != 1)
        fail("OpenSSL refuses a key");
    EVP_PKEY_free(own);
    EVP_PKEY_free(peer);
}

static void check(struct inputs *in, const struct x25519_kernel *kernel)
{
    uint8_t shared[32], public_key[32], base[LANES][32];

    run_base(in, kernel);
    memcpy(base, in->out, sizeof(base));
    run_derive(in, kernel);
    for (int i = 0; i < LANES; i++) {
        by_openssl(in, i, shared, public_key);
        if (memcmp(shared, in->out[i], 32) != 0 || memcmp(public_key, base[i], 32) != 0)
            fail("a kernel differs from OpenSSL");
    }
}

static void turn(struct contender *c, struct inputs *in)
{
    double start = now_s(), end;
    unsigned long count = 0;

    do {
        for (int i = 0; i < 4; i++)
            c->run(in, c->kernel);
        count += 4 * c->ops;
        end = now_s();
    } while (end - start < TURN_S);
    if ((double)count / (end - start) > c->best)
        c->best = (double)count / (end - start);
}

int main(int argc, char **argv)
{
    const struct x25519_kernel *ifma = x25519_kernel_ifma(), *portable = x25519_kernel_portable();
    struct contender c[] = {
        {"derive, OpenSSL", run_openssl_derive, NULL, 1, 0},
        {"derive, ifma", run_derive, ifma, LANES, 0},
        {"derive, portable", run_derive, portable, LANES, 0},
        {"base, OpenSSL", run_openssl_keygen, NULL, 1, 0},
        {"base, ifma", run_base, ifma, LANES, 0},
        {"base, portable", run_base, portable, LANES, 0},
    };
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 2, end;
    static struct inputs in;

    if (RAND_bytes(in.scalar[0], sizeof(in.scalar)) != 1 || RAND_bytes(in.u[0], sizeof(in.u)) != 1)
        fail("no random bytes");
    in.keygen = EVP_PKEY_CTX_new_id(EVP_PKEY_X25519, NULL);
    if (!in.keygen || EVP_PKEY_keygen_init(in.keygen) != 1)
        fail("OpenSSL has no X25519");
    if (ifma)
        check(&in, ifma);
    check(&in, portable);
    end = now_s() + seconds;
    do {
        for (int i = 0; i < 6; i++)
            if (c[i].run == run_openssl_derive || c[i].run == run_openssl_keygen || c[i].kernel)
                turn(&c[i], &in);
    } while (now_s() < end);
    for (int i = 0; i < 6; i++) {
        if (c[i].best > 0)
            printf("%-18s %9.0f/s  %6.2f us a batch  %5.2fx\n", c[i].name, c[i].best,
                   1e6 * c[i].ops / c[i].best, c[i].best / c[i / 3 * 3].best);
        else
            printf("%-18s no such instructions on this machine\n", c[i].name);
    }
    EVP_PKEY_CTX_free(in.derive);
    EVP_PKEY_CTX_free(in.keygen);
    return 0;
}
