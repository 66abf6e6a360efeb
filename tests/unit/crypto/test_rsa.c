/*
 * The RSA lanes against the scalar library. SP_CRYPTO_CASES is the number of random batches for each
 * size and kernel.
 */
#include "crypto/kernel/rsa.h"
#include "crypto/kernel/rsa_internal.h"
#include "crypto/rsa_key.h"

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define SIZES 3
#define KEYS 6 /* of a size */
#define PARTS 7
#define CASES_DEFAULT 16
#define CASES_DEFAULT_PORTABLE 2

enum { N, E, P, Q, DP, DQ, QINV };

/* A key's parts as byte strings, and the object. */
struct test_key {
    uint8_t bytes[PARTS][512];
    struct sp_rsa_parts parts;
    BIGNUM *n, *e;
    struct sp_rsa_key *key;
};

static struct test_key keys[SIZES][KEYS];
static struct rsa_scratch *scratch;

static struct sp_bytes *part(struct sp_rsa_parts *parts, int which)
{
    struct sp_bytes *all[PARTS] = {&parts->n,  &parts->e,  &parts->p,   &parts->q,
                                   &parts->dp, &parts->dq, &parts->qinv};

    return all[which];
}

static void set_part(struct test_key *k, int which, const BIGNUM *bn)
{
    int len = BN_bn2bin(bn, k->bytes[which]);

    *part(&k->parts, which) = (struct sp_bytes){k->bytes[which], (size_t)len};
}

/* False if e has a factor in common with p - 1 or q - 1. */
static bool parts_make(struct test_key *k, const BIGNUM *p, const BIGNUM *q, BN_ULONG exponent)
{
    BN_CTX *ctx = BN_CTX_new();
    BIGNUM *n = BN_new(), *e = BN_new(), *dp = BN_new(), *dq = BN_new(), *qinv = BN_new(),
           *a = BN_new();
    bool fits;

    BN_set_word(e, exponent);
    BN_mul(n, p, q, ctx);
    BN_sub(a, p, BN_value_one());
    fits = BN_mod_inverse(dp, e, a, ctx);
    BN_sub(a, q, BN_value_one());
    fits = fits && BN_mod_inverse(dq, e, a, ctx);
    BN_mod_inverse(qinv, q, p, ctx);
    if (fits) {
        const BIGNUM *all[PARTS] = {n, e, p, q, dp, dq, qinv};

        for (int i = 0; i < PARTS; i++)
            set_part(k, i, all[i]);
        k->n = n;
        k->e = e;
    } else {
        BN_free(n);
        BN_free(e);
    }
    BN_free(dp);
    BN_free(dq);
    BN_free(qinv);
    BN_free(a);
    BN_CTX_free(ctx);
    return fits;
}

/* From each pair of primes three keys: with p > q, with p < q, and with other public exponents. */
static void keys_make(int size)
{
    static const BN_ULONG exponents[] = {0xfffffffb, 3, 5, 7, 11, 13, 17, 19, 23, 29};
    size_t next = (size_t)size % 2;

    for (int i = 0; i < KEYS; i += 3) {
        EVP_PKEY *pkey = EVP_RSA_gen(2048u + 1024u * (unsigned)size);
        BIGNUM *p = NULL, *q = NULL;

        assert_non_null(pkey);
        EVP_PKEY_get_bn_param(pkey, "rsa-factor1", &p);
        EVP_PKEY_get_bn_param(pkey, "rsa-factor2", &q);
        assert_true(parts_make(&keys[size][i], p, q, 65537));
        assert_true(parts_make(&keys[size][i + 1], q, p, 65537));
        while (!parts_make(&keys[size][i + 2], p, q, exponents[next % 10]))
            next++;
        next++;
        BN_free(p);
        BN_free(q);
        EVP_PKEY_free(pkey);
    }
    for (int i = 0; i < KEYS; i++)
        assert_int_equal(sp_rsa_key_new(&keys[size][i].key, &keys[size][i].parts), 0);
}

static int setup(void **state)
{
    scratch = rsa_scratch_new();
    for (int size = 0; size < SIZES; size++)
        keys_make(size);
    return scratch ? 0 : -1;
}

static int teardown(void **state)
{
    for (int size = 0; size < SIZES; size++) {
        for (int i = 0; i < KEYS; i++) {
            sp_rsa_key_free(keys[size][i].key);
            BN_free(keys[size][i].n);
            BN_free(keys[size][i].e);
        }
    }
    rsa_scratch_free(scratch);
    return 0;
}

/* --- helpers -------------------------------------------------------------------------- */

static void random_below(const struct test_key *k, uint8_t *out)
{
    BIGNUM *x = BN_new();

    assert_true(BN_rand_range(x, k->n));
    BN_bn2binpad(x, out, BN_num_bytes(k->n));
    BN_free(x);
}

/* n + delta. */
static void near_modulus(const struct test_key *k, int delta, uint8_t *out)
{
    BIGNUM *x = BN_dup(k->n);

    if (delta < 0)
        BN_sub_word(x, (BN_ULONG)-delta);
    else
        BN_add_word(x, (BN_ULONG)delta);
    BN_bn2binpad(x, out, BN_num_bytes(k->n));
    BN_free(x);
}

struct slot {
    struct test_key *k;
    uint8_t in[512], out[512], want[512];
};

static void slot_random(struct slot *s, int size)
{
    uint8_t pick;

    RAND_bytes(&pick, 1);
    s->k = &keys[size][pick % KEYS];
    random_below(s->k, s->in);
}

static void slots_run(const struct rsa_kernel *kernel, struct slot *slots, unsigned count,
                      struct rsa_request *requests)
{
    for (unsigned i = 0; i < count; i++) {
        struct slot *s = &slots[i];

        memset(s->out, 0x5a, sizeof(s->out));
        requests[i] = (struct rsa_request){s->k->key, s->in, s->out, 77};
    }
    rsa_batch_run(kernel, requests, count, scratch);
}

static void slot_check(struct slot *s, const struct rsa_request *r)
{
    size_t len = sp_rsa_key_bytes(s->k->key);

    assert_int_equal(r->status, 0);
    assert_int_equal(sp_rsa_key_run_scalar(s->k->key, s->in, s->want), 0);
    assert_memory_equal(s->out, s->want, len);
    for (size_t i = len; i < sizeof(s->out); i++)
        assert_int_equal(s->out[i], 0x5a);
}

static void untouched(const struct slot *s)
{
    for (size_t i = 0; i < sizeof(s->out); i++)
        assert_int_equal(s->out[i], 0x5a);
}

static unsigned cases(const struct rsa_kernel *kernel)
{
    const char *text = getenv("SP_CRYPTO_CASES");

    if (text)
        return (unsigned)strtoul(text, NULL, 10);
    return kernel == rsa_kernel_portable() ? CASES_DEFAULT_PORTABLE : CASES_DEFAULT;
}

/* The kernels that run here. */
static size_t kernels(const struct rsa_kernel *out[2])
{
    out[0] = rsa_kernel_portable();
    out[1] = rsa_kernel_ifma();
    if (!out[1])
        print_message("no AVX-512 IFMA here: only the portable kernel is tested\n");
    return out[1] ? 2 : 1;
}

/* --- results -------------------------------------------------------------------------- */

static void random_batches(void **state)
{
    const struct rsa_kernel *kernel[2];

    for (size_t k = 0, count = kernels(kernel); k < count; k++) {
        for (int size = 0; size < SIZES; size++) {
            for (unsigned c = 0, n = cases(kernel[k]); c < n; c++) {
                struct slot slots[8];
                struct rsa_request requests[8];
                /* 8, 3, 6, 1, 4, 7, 2, 5: with few cases too there are both ways to batch. */
                unsigned fill = (8 + c * 3 - 1) % 8 + 1;

                for (unsigned i = 0; i < fill; i++)
                    slot_random(&slots[i], size);
                slots_run(kernel[k], slots, fill, requests);
                for (unsigned i = 0; i < fill; i++)
                    slot_check(&slots[i], &requests[i]);
            }
        }
    }
}

/* The scalar results themselves: out^e = in. */
static void scalar(void **state)
{
    for (int size = 0; size < SIZES; size++) {
        for (int i = 0; i < KEYS; i++) {
            struct slot s = {.k = &keys[size][i]};
            BN_CTX *ctx = BN_CTX_new();
            BIGNUM *x = BN_new();
            int len = (int)sp_rsa_key_bytes(s.k->key);

            assert_int_equal(len, 256 + 128 * size);
            random_below(s.k, s.in);
            assert_int_equal(sp_rsa_key_run_scalar(s.k->key, s.in, s.out), 0);
            BN_bin2bn(s.out, len, x);
            BN_mod_exp(x, x, s.k->e, s.k->n, ctx);
            BN_bn2binpad(x, s.want, len);
            assert_memory_equal(s.in, s.want, len);
            memcpy(s.want, s.in, (size_t)len);
            assert_int_equal(sp_rsa_key_run_scalar(s.k->key, s.want, s.want), 0);
            assert_memory_equal(s.out, s.want, len);
            near_modulus(s.k, 0, s.in);
            assert_int_equal(sp_rsa_key_run_scalar(s.k->key, s.in, s.out), SP_EINVAL);
            assert_memory_equal(s.out, s.want, len);
            BN_free(x);
            BN_CTX_free(ctx);
        }
    }
}

/* 0, 1, n - 1 give themselves; from n on it is an error, and the lane is given to nobody. */
static void edges(void **state)
{
    const struct rsa_kernel *kernel[2];

    for (size_t k = 0, count = kernels(kernel); k < count; k++) {
        /* The portable kernel is slow, and its larger sizes have nothing of their own. */
        for (int size = 0; size < (kernel[k] == rsa_kernel_portable() ? 1 : SIZES); size++) {
            struct slot slots[8] = {0};
            struct rsa_request requests[8];
            size_t len = 256 + 128 * (size_t)size;

            for (int i = 0; i < 8; i++)
                slots[i].k = &keys[size][i % KEYS];
            slots[1].in[len - 1] = 1;
            near_modulus(slots[2].k, -1, slots[2].in);
            near_modulus(slots[3].k, 0, slots[3].in);
            near_modulus(slots[4].k, 1, slots[4].in);
            memset(slots[5].in, 0xff, len);
            near_modulus(slots[6].k, -2, slots[6].in);
            slots[7].in[len - 1] = 2;
            for (unsigned fill = 8; fill >= 7; fill--) {
                slots_run(kernel[k], slots, fill, requests);
                for (unsigned i = 0; i < fill; i++) {
                    if (i >= 3 && i <= 5) {
                        assert_int_equal(requests[i].status, SP_EINVAL);
                        untouched(&slots[i]);
                        continue;
                    }
                    slot_check(&slots[i], &requests[i]);
                    if (i < 3)
                        assert_memory_equal(slots[i].out, slots[i].in, len);
                }
            }
            slots_run(kernel[k], slots + 3, 3, requests);
            for (int i = 0; i < 3; i++)
                assert_int_equal(requests[i].status, SP_EINVAL);
        }
    }
}

static void in_place(void **state)
{
    const struct rsa_kernel *kernel[2];

    for (size_t k = 0, count = kernels(kernel); k < count; k++) {
        for (unsigned fill = 4; fill <= 8; fill += 4) {
            struct slot slots[8];
            struct rsa_request requests[8];

            for (unsigned i = 0; i < fill; i++) {
                slot_random(&slots[i], 0);
                assert_int_equal(sp_rsa_key_run_scalar(slots[i].k->key, slots[i].in, slots[i].want),
                                 0);
                requests[i] = (struct rsa_request){slots[i].k->key, slots[i].in, slots[i].in, 0};
            }
            rsa_batch_run(kernel[k], requests, fill, scratch);
            for (unsigned i = 0; i < fill; i++) {
                assert_int_equal(requests[i].status, 0);
                assert_memory_equal(slots[i].in, slots[i].want, 256);
            }
        }
    }
}

/* --- faults --------------------------------------------------------------------------- */

/* What the faulty kernel below does. */
static struct {
    const struct rsa_kernel *real;
    int call;     /* which of the powers */
    unsigned bit; /* of the result */
    int lane;
    int calls;
} fault;

static void faulty_exp(limb8 *r, limb8 *table, const limb8 *digits, unsigned count, unsigned window,
                       const struct rsa_modulus *m)
{
    fault.real->exp(r, table, digits, count, window, m);
    if (fault.calls++ == fault.call)
        r[fault.bit / LIMB_BITS][fault.lane] ^= UINT64_C(1) << fault.bit % LIMB_BITS;
}

static void fault_case(const struct rsa_kernel *kernel, struct slot *slots, unsigned fill, int call,
                       unsigned lane, unsigned victim)
{
    struct rsa_kernel faulty = *kernel;
    struct rsa_request requests[8];
    uint16_t bit;

    RAND_bytes((uint8_t *)&bit, sizeof(bit));
    fault.real = kernel;
    fault.call = call;
    fault.lane = (int)lane;
    fault.bit = bit % 1024;
    fault.calls = 0;
    faulty.exp = faulty_exp;
    slots_run(&faulty, slots, fill, requests);
    for (unsigned i = 0; i < fill; i++) {
        if (i == victim) {
            assert_int_equal(requests[i].status, SP_EFAULT);
            untouched(&slots[i]);
        } else {
            assert_int_equal(requests[i].status, 0);
            assert_memory_equal(slots[i].out, slots[i].want, 256);
        }
    }
}

/* One bit wrong in one lane of one half: that lane fails and no other. */
static void faults(void **state)
{
    const struct rsa_kernel *kernel[2];
    struct slot slots[8];

    for (unsigned i = 0; i < 8; i++) {
        slot_random(&slots[i], 0);
        assert_int_equal(sp_rsa_key_run_scalar(slots[i].k->key, slots[i].in, slots[i].want), 0);
    }
    for (size_t k = 0, count = kernels(kernel); k < count; k++) {
        /* The portable kernel goes through the same code around it: fewer. */
        unsigned step = kernel[k] == rsa_kernel_portable() ? 3 : 1;

        for (unsigned lane = 0; lane < 8; lane += step) {
            fault_case(kernel[k], slots, 8, 0, lane, lane);
            fault_case(kernel[k], slots, 8, 1, lane, lane);
            fault_case(kernel[k], slots, 4, 0, lane, lane % 4);
            /* In an unused lane it harms nobody. */
            fault_case(kernel[k], slots, 3, 0, lane, lane % 4);
        }
    }
}

/* A fault outside the powers is found just as well. */
static void faulty_join(limb8 *r, const limb8 *xp, const limb8 *xq, const limb8 *q,
                        const limb8 *coefficient, limb8 *h, const struct rsa_modulus *p)
{
    fault.real->join(r, xp, xq, q, coefficient, h, p);
    r[0][fault.lane] ^= 1;
}

static void fault_in_join(void **state)
{
    const struct rsa_kernel *kernel[2];
    struct slot slots[8];
    struct rsa_request requests[8];

    for (unsigned i = 0; i < 8; i++)
        slot_random(&slots[i], 0);
    for (size_t k = 0, count = kernels(kernel); k < count; k++) {
        struct rsa_kernel faulty = *kernel[k];

        fault.real = kernel[k];
        fault.lane = 5;
        faulty.join = faulty_join;
        slots_run(&faulty, slots, 8, requests);
        assert_int_equal(requests[5].status, SP_EFAULT);
        untouched(&slots[5]);
        slot_check(&slots[4], &requests[4]);
    }
}

/* --- keys ----------------------------------------------------------------------------- */

static int key_result(const struct sp_rsa_parts *parts)
{
    struct sp_rsa_key *key = NULL;
    int err = sp_rsa_key_new(&key, parts);

    assert_true((err == 0) == (key != NULL));
    sp_rsa_key_free(key);
    return err;
}

static void bad_keys(void **state)
{
    struct test_key k = keys[0][0];
    uint8_t padded[600] = {0}, three[] = {3}, one[] = {1}, even[] = {1, 0, 0},
            large[] = {1, 0, 0, 0, 1};

    for (int i = 0; i < PARTS; i++)
        *part(&k.parts, i) = (struct sp_bytes){k.bytes[i], part(&keys[0][0].parts, i)->len};
    assert_int_equal(key_result(&k.parts), 0);
    /* A low bit but one of each part in turn. */
    for (int i = 0; i < PARTS; i++) {
        uint8_t *last = &k.bytes[i][part(&k.parts, i)->len - 1];

        *last ^= 2;
        assert_int_equal(key_result(&k.parts), SP_EINVAL);
        *last ^= 2;
    }
    k.parts.e = (struct sp_bytes){three, 1};
    assert_int_equal(key_result(&k.parts), SP_EINVAL);
    k.parts.e = (struct sp_bytes){one, 1};
    assert_int_equal(key_result(&k.parts), SP_EUNSUPPORTED);
    k.parts.e = (struct sp_bytes){even, 3};
    assert_int_equal(key_result(&k.parts), SP_EUNSUPPORTED);
    k.parts.e = (struct sp_bytes){large, 5};
    assert_int_equal(key_result(&k.parts), SP_EUNSUPPORTED);
    k.parts.e = keys[0][0].parts.e;
    /* Leading zeros are no part of the number. */
    memcpy(padded + sizeof(padded) - 256, k.bytes[N], 256);
    k.parts.n = (struct sp_bytes){padded, sizeof(padded)};
    assert_int_equal(key_result(&k.parts), 0);
    k.parts.n = (struct sp_bytes){k.bytes[N], 255};
    assert_int_equal(key_result(&k.parts), SP_EUNSUPPORTED);
    k.parts.n = (struct sp_bytes){NULL, 0};
    assert_int_equal(key_result(&k.parts), SP_EUNSUPPORTED);
    k.parts.n = (struct sp_bytes){padded, 100000};
    assert_int_equal(key_result(&k.parts), SP_EUNSUPPORTED);
    k.parts.n = keys[0][0].parts.n;
    k.parts.p = keys[1][0].parts.p;
    assert_int_equal(key_result(&k.parts), SP_EUNSUPPORTED);
    k.parts.p = k.parts.q;
    assert_int_equal(key_result(&k.parts), SP_EINVAL);
}

static void references(void **state)
{
    struct sp_rsa_key *key;

    assert_int_equal(sp_rsa_key_new(&key, &keys[0][0].parts), 0);
    sp_rsa_key_ref(key);
    sp_rsa_key_free(key);
    assert_int_equal(sp_rsa_key_bytes(key), 256);
    sp_rsa_key_free(key);
    sp_rsa_key_free(NULL);
}

/* --- blinding ------------------------------------------------------------------------- */

static void number_of(BIGNUM *out, const uint64_t *limbs, unsigned count)
{
    uint8_t bytes[520];

    rsa_limbs_to_bytes(bytes, sizeof(bytes), limbs, 1, count);
    BN_bin2bn(bytes, sizeof(bytes), out);
}

/* mask * unmask^e = R^(e + 1): they belong together, and both are in Montgomery form. */
static void pair_check(const struct test_key *k, const struct rsa_pair *pair)
{
    unsigned limbs = 2 * k->key->blocks * RSA_BLOCK;
    BN_CTX *ctx = BN_CTX_new();
    BIGNUM *a = BN_new(), *b = BN_new(), *r = BN_new();

    number_of(a, pair->mask, limbs);
    number_of(b, pair->unmask, limbs);
    BN_mod_exp(b, b, k->e, k->n, ctx);
    BN_mod_mul(a, a, b, k->n, ctx);
    BN_set_bit(r, (int)limbs * LIMB_BITS);
    BN_copy(b, k->e);
    BN_add_word(b, 1);
    BN_mod_exp(r, r, b, k->n, ctx);
    assert_int_equal(BN_cmp(a, r), 0);
    BN_free(a);
    BN_free(b);
    BN_free(r);
    BN_CTX_free(ctx);
}

static void pairs(void **state)
{
    for (int size = 0; size < SIZES; size++) {
        struct test_key *k = &keys[size][2];
        struct rsa_pair *all[16];

        assert_int_equal(rsa_key_take_pairs(k->key, all, 8), 0);
        assert_int_equal(rsa_key_take_pairs(k->key, all + 8, 8), 0);
        for (int i = 0; i < 16; i++) {
            pair_check(k, all[i]);
            for (int j = 0; j < i; j++) {
                assert_ptr_not_equal(all[i], all[j]);
                assert_memory_not_equal(all[i]->mask, all[j]->mask, sizeof(all[i]->mask));
            }
        }
        for (int i = 0; i < 16; i++)
            rsa_key_return_pair(k->key, all[i]);
    }
}

/* Every use changes the pair, and after some of them it is a new one. */
static void pair_renewal(void **state)
{
    const struct rsa_kernel *kernel = rsa_kernel_ifma() ? rsa_kernel_ifma() : rsa_kernel_portable();
    struct sp_rsa_key *own;
    struct test_key k = keys[0][0];
    struct slot s = {.k = &k};
    struct rsa_request request;
    uint64_t mask[RSA_MAX_LIMBS];

    assert_int_equal(sp_rsa_key_new(&own, &keys[0][0].parts), 0);
    k.key = own;
    random_below(&k, s.in);
    slots_run(kernel, &s, 1, &request);
    for (unsigned uses = 1; uses < RSA_PAIR_USES - 1; uses++) {
        assert_non_null(own->pairs);
        assert_null(own->pairs->next);
        assert_int_equal(own->pairs->uses, uses);
        memcpy(mask, own->pairs->mask, sizeof(mask));
        pair_check(&k, own->pairs);
        if (uses > 3)
            own->pairs->uses = uses = RSA_PAIR_USES - 2;
        slots_run(kernel, &s, 1, &request);
        slot_check(&s, &request);
        assert_memory_not_equal(mask, own->pairs->mask, sizeof(mask));
    }
    slots_run(kernel, &s, 1, &request);
    slot_check(&s, &request);
    assert_null(own->pairs);
    slots_run(kernel, &s, 1, &request);
    slot_check(&s, &request);
    assert_int_equal(own->pairs->uses, 1);
    sp_rsa_key_free(own);
}

struct runner {
    pthread_t thread;
    int failed;
};

static void *runner_main(void *arg)
{
    const struct rsa_kernel *kernel = rsa_kernel_ifma() ? rsa_kernel_ifma() : rsa_kernel_portable();
    struct runner *r = arg;
    struct rsa_scratch *own = rsa_scratch_new();

    for (int round = 0; own && round < 4; round++) {
        uint8_t in[8][256] = {{0}}, out[8][256], want[256];
        struct rsa_request requests[8];

        for (int i = 0; i < 8; i++) {
            RAND_bytes(in[i] + 1, 255);
            requests[i] = (struct rsa_request){keys[0][i / 5].key, in[i], out[i], 0};
        }
        rsa_batch_run(kernel, requests, 8, own);
        for (int i = 0; i < 8; i++)
            if (requests[i].status || sp_rsa_key_run_scalar(keys[0][i / 5].key, in[i], want) ||
                memcmp(want, out[i], 256) != 0)
                r->failed = 1;
    }
    if (!own)
        r->failed = 1;
    rsa_scratch_free(own);
    return NULL;
}

static void threads(void **state)
{
    struct runner runners[3] = {0};

    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&runners[i].thread, NULL, runner_main, &runners[i]), 0);
    for (int i = 0; i < 3; i++) {
        pthread_join(runners[i].thread, NULL);
        assert_int_equal(runners[i].failed, 0);
    }
}

/* Nothing of a batch is left in its working memory. */
static void wiped(void **state)
{
    const struct rsa_kernel *kernel[2];
    static const uint8_t zero[64 * 1024];

    for (size_t k = 0, count = kernels(kernel); k < count; k++) {
        struct slot slots[8];
        struct rsa_request requests[8];

        memset(scratch, 0, sizeof(zero));
        for (unsigned i = 0; i < 8; i++)
            slot_random(&slots[i], 1);
        slots_run(kernel[k], slots, 8, requests);
        slot_check(&slots[0], &requests[0]);
        assert_memory_equal(scratch, zero, sizeof(zero));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_batches), cmocka_unit_test(scalar),
        cmocka_unit_test(edges),          cmocka_unit_test(in_place),
        cmocka_unit_test(faults),         cmocka_unit_test(fault_in_join),
        cmocka_unit_test(bad_keys),       cmocka_unit_test(references),
        cmocka_unit_test(pairs),          cmocka_unit_test(pair_renewal),
        cmocka_unit_test(threads),        cmocka_unit_test(wiped),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
