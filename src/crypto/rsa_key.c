#include "crypto/rsa_key.h"

#include "crypto/lanes_state.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/param_build.h>
#include <openssl/rsa.h>

#define BLOCK_BITS (RSA_BLOCK * LIMB_BITS)
#define MAX_PART_BYTES 1024 /* of a number with leading zeros */

enum { P, Q };

/* --- the modulus ---------------------------------------------------------------------- */

size_t sp_rsa_key_bytes(const struct sp_rsa_key *key)
{
    return key->bytes;
}

bool rsa_key_in_range(const struct sp_rsa_key *key, const uint8_t *in)
{
    unsigned borrow = 0;

    for (size_t i = key->bytes; i-- > 0;)
        borrow = ((unsigned)in[i] - key->n_bytes[i] - borrow) >> 8 & 1;
    return borrow;
}

/* --- numbers -------------------------------------------------------------------------- */

/* The parts of a key while it is being made; every number is secret until proven public. */
struct numbers {
    BN_CTX *ctx;
    BIGNUM *n, *e, *d, *prime[2], *exponent[2], *coefficient;
    BIGNUM *a, *b;
};

static BIGNUM *number(BN_CTX *ctx, const struct sp_bytes *part)
{
    BIGNUM *bn = BN_CTX_get(ctx);

    if (!bn || part->len > MAX_PART_BYTES)
        return NULL;
    BN_set_flags(bn, BN_FLG_CONSTTIME);
    return BN_bin2bn(part->data, (int)part->len, bn);
}

static int numbers_read(struct numbers *s, const struct sp_rsa_parts *parts)
{
    const struct sp_bytes *all[] = {&parts->n,  &parts->e,  &parts->p,   &parts->q,
                                    &parts->dp, &parts->dq, &parts->qinv};
    const struct sp_bytes none = {NULL, 0};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (all[i]->len > MAX_PART_BYTES)
            return SP_EUNSUPPORTED;
    s->n = number(s->ctx, &parts->n);
    s->e = number(s->ctx, &parts->e);
    s->prime[P] = number(s->ctx, &parts->p);
    s->prime[Q] = number(s->ctx, &parts->q);
    s->exponent[P] = number(s->ctx, &parts->dp);
    s->exponent[Q] = number(s->ctx, &parts->dq);
    s->coefficient = number(s->ctx, &parts->qinv);
    s->d = number(s->ctx, &none);
    s->a = number(s->ctx, &none);
    s->b = number(s->ctx, &none);
    /* BN_CTX_get goes on failing once it has failed. */
    return s->b && s->n && s->e && s->prime[P] && s->prime[Q] && s->exponent[P] && s->exponent[Q] &&
                   s->coefficient
               ? 0
               : SP_ENOMEM;
}

static int check_sizes(const struct numbers *s)
{
    int bits = BN_num_bits(s->n);

    if (bits != 2048 && bits != 3072 && bits != 4096)
        return SP_EUNSUPPORTED;
    if (BN_num_bits(s->prime[P]) != bits / 2 || BN_num_bits(s->prime[Q]) != bits / 2)
        return SP_EUNSUPPORTED;
    if (!BN_is_odd(s->e) || BN_is_one(s->e) || BN_num_bits(s->e) > 32)
        return SP_EUNSUPPORTED;
    return BN_is_odd(s->prime[P]) && BN_is_odd(s->prime[Q]) ? 0 : SP_EINVAL;
}

/* a * b = 1 mod m, and a < m. */
static int check_inverse(struct numbers *s, const BIGNUM *a, const BIGNUM *b, const BIGNUM *m)
{
    if (BN_cmp(a, m) >= 0)
        return SP_EINVAL;
    if (!BN_mod_mul(s->b, a, b, m, s->ctx))
        return SP_ENOMEM;
    return BN_is_one(s->b) ? 0 : SP_EINVAL;
}

static int check_parts(struct numbers *s)
{
    int err = check_sizes(s);

    if (err)
        return err;
    if (!BN_mul(s->a, s->prime[P], s->prime[Q], s->ctx))
        return SP_ENOMEM;
    if (BN_cmp(s->a, s->n) != 0)
        return SP_EINVAL;
    for (int i = P; i <= Q; i++) {
        if (!BN_sub(s->a, s->prime[i], BN_value_one()))
            return SP_ENOMEM;
        err = check_inverse(s, s->exponent[i], s->e, s->a);
        if (err)
            return err;
    }
    return check_inverse(s, s->coefficient, s->prime[Q], s->prime[P]);
}

/* --- constants ------------------------------------------------------------------------ */

static int to_limbs(uint64_t *r, unsigned limbs, const BIGNUM *bn)
{
    uint8_t bytes[RSA_MAX_BYTES];
    int len = BN_bn2binpad(bn, bytes, sizeof(bytes));

    if (len > 0)
        rsa_limbs_from_bytes(r, 1, limbs, bytes, sizeof(bytes));
    lanes_wipe(bytes, sizeof(bytes));
    return len > 0 ? 0 : SP_ENOMEM;
}

/* -n^-1 mod 2^52 by Newton's iteration: each doubles the bits that are right, three at the start. */
static uint64_t negated_inverse(uint64_t n)
{
    uint64_t x = n;

    for (int i = 0; i < 5; i++)
        x *= 2 - n * x;
    return (0 - x) & LIMB_MASK;
}

/* a = 2^exponent mod m. */
static int power_of_two(struct numbers *s, int exponent, const BIGNUM *m)
{
    BN_zero(s->b);
    return BN_set_bit(s->b, exponent) && BN_nnmod(s->a, s->b, m, s->ctx) ? 0 : SP_ENOMEM;
}

/* fold = 2^-520, one = R, r2 = R^2 modulo m, and r3 if it is wanted. */
static int constants(struct numbers *s, unsigned blocks, const BIGNUM *m, uint64_t *fold,
                     uint64_t *one, uint64_t *r2, uint64_t *r3)
{
    uint64_t *const powers[] = {one, r2, r3};
    unsigned limbs = blocks * RSA_BLOCK;
    int err = power_of_two(s, BLOCK_BITS, m);

    if (err)
        return err;
    /* The flag makes OpenSSL choose an inversion without secret branches. */
    if (!BN_mod_inverse(s->b, s->a, m, s->ctx))
        return SP_EINVAL;
    err = to_limbs(fold, limbs, s->b);
    for (int i = 0; !err && i < 3 && powers[i]; i++) {
        err = power_of_two(s, (i + 1) * (int)blocks * BLOCK_BITS, m);
        if (!err)
            err = to_limbs(powers[i], limbs, s->a);
    }
    return err;
}

static int fill_half(struct sp_rsa_key *key, struct numbers *s, int which)
{
    struct rsa_half *h = &key->half[which];
    unsigned limbs = key->blocks * RSA_BLOCK;
    uint8_t bytes[RSA_MAX_DIGITS * RSA_WINDOW / 8];
    int err = to_limbs(h->p, limbs, s->prime[which]);

    if (!err)
        err = constants(s, key->blocks, s->prime[which], h->fold, h->one, h->r2, h->r3);
    if (err)
        return err;
    h->neg_inv = negated_inverse(h->p[0]);
    if (BN_bn2lebinpad(s->exponent[which], bytes, sizeof(bytes)) < 0)
        return SP_ENOMEM;
    for (size_t i = 0; i < sizeof(bytes); i++) {
        h->digits[2 * i] = bytes[i] & 15;
        h->digits[2 * i + 1] = bytes[i] >> 4;
    }
    lanes_wipe(bytes, sizeof(bytes));
    return 0;
}

static int fill(struct sp_rsa_key *key, struct numbers *s)
{
    unsigned n_limbs = 2 * key->blocks * RSA_BLOCK;
    int err;

    if (BN_bn2binpad(s->n, key->n_bytes, (int)key->bytes) < 0)
        return SP_ENOMEM;
    key->e = (uint32_t)BN_get_word(s->e);
    err = to_limbs(key->n, n_limbs, s->n);
    if (!err)
        err = constants(s, 2 * key->blocks, s->n, key->n_fold, key->n_one, key->n_r2, NULL);
    key->n_neg_inv = negated_inverse(key->n[0]);
    for (int i = P; !err && i <= Q; i++)
        err = fill_half(key, s, i);
    if (!err)
        err = power_of_two(s, (int)key->blocks * BLOCK_BITS, s->prime[P]);
    if (err)
        return err;
    if (!BN_mod_mul(s->b, s->a, s->coefficient, s->prime[P], s->ctx))
        return SP_ENOMEM;
    err = to_limbs(key->coefficient, key->blocks * RSA_BLOCK, s->b);
    if (!err)
        err = power_of_two(s, 2 * (int)key->blocks * BLOCK_BITS, s->n);
    if (err)
        return err;
    key->n_bn = BN_dup(s->n);
    key->e_bn = BN_dup(s->e);
    key->n_one_bn = BN_dup(s->a);
    key->n_mont = BN_MONT_CTX_new();
    return key->n_bn && key->e_bn && key->n_one_bn && key->n_mont &&
                   BN_MONT_CTX_set(key->n_mont, key->n_bn, s->ctx)
               ? 0
               : SP_ENOMEM;
}

/* --- the scalar library --------------------------------------------------------------- */

/* d = e^-1 mod (p - 1)(q - 1), which the library's format of a key cannot do without. */
static int private_exponent(struct numbers *s)
{
    return BN_sub(s->a, s->prime[P], BN_value_one()) && BN_sub(s->b, s->prime[Q], BN_value_one()) &&
                   BN_mul(s->a, s->a, s->b, s->ctx) && BN_mod_inverse(s->d, s->e, s->a, s->ctx)
               ? 0
               : SP_EINVAL;
}

static int make_pkey(struct sp_rsa_key *key, struct numbers *s)
{
    OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, "RSA", "provider=default");
    OSSL_PARAM *params = NULL;
    int err = private_exponent(s);

    if (!err && build && OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_N, s->n) &&
        OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_E, s->e) &&
        OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_D, s->d) &&
        OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_FACTOR1, s->prime[P]) &&
        OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_FACTOR2, s->prime[Q]) &&
        OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_EXPONENT1, s->exponent[P]) &&
        OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_EXPONENT2, s->exponent[Q]) &&
        OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_COEFFICIENT1, s->coefficient))
        params = OSSL_PARAM_BLD_to_param(build);
    if (!err && !(params && ctx && EVP_PKEY_fromdata_init(ctx) > 0 &&
                  EVP_PKEY_fromdata(ctx, &key->pkey, EVP_PKEY_KEYPAIR, params) > 0))
        err = SP_ENOMEM;
    if (params)
        for (OSSL_PARAM *p = params; p->key; p++)
            OPENSSL_cleanse(p->data, p->data_size);
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(build);
    EVP_PKEY_CTX_free(ctx);
    return err;
}

int sp_rsa_key_run_scalar(const struct sp_rsa_key *key, const uint8_t *in, uint8_t *out)
{
    uint8_t result[RSA_MAX_BYTES];
    size_t len = sizeof(result);
    EVP_PKEY_CTX *ctx;
    int err = SP_EFAULT;

    if (!rsa_key_in_range(key, in))
        return SP_EINVAL;
    ctx = EVP_PKEY_CTX_new_from_pkey(NULL, key->pkey, "provider=default");
    if (!ctx)
        return SP_ENOMEM;
    ERR_set_mark();
    if (EVP_PKEY_decrypt_init(ctx) > 0 && EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_NO_PADDING) > 0 &&
        EVP_PKEY_decrypt(ctx, result, &len, in, key->bytes) > 0 && len == key->bytes) {
        memcpy(out, result, len);
        err = 0;
    }
    ERR_pop_to_mark();
    EVP_PKEY_CTX_free(ctx);
    lanes_wipe(result, sizeof(result));
    return err;
}

bool rsa_key_verify(const struct sp_rsa_key *key, const uint8_t *in, const uint8_t *out)
{
    uint8_t again[RSA_MAX_BYTES];
    BN_CTX *ctx = BN_CTX_secure_new();
    BIGNUM *x = BN_secure_new();
    bool right = false;

    ERR_set_mark();
    if (ctx && x && rsa_key_in_range(key, out) && BN_bin2bn(out, (int)key->bytes, x)) {
        /* What a decryption gives is secret: no branch on it. */
        BN_set_flags(x, BN_FLG_CONSTTIME);
        right = BN_mod_exp_mont(x, x, key->e_bn, key->n_bn, ctx, key->n_mont) == 1 &&
                BN_bn2binpad(x, again, (int)key->bytes) == (int)key->bytes && CRYPTO_memcmp(again, in, key->bytes) == 0;
    }
    ERR_pop_to_mark();
    BN_clear_free(x);
    BN_CTX_free(ctx);
    return right;
}

/* --- the object ----------------------------------------------------------------------- */

int sp_rsa_key_new(struct sp_rsa_key **out, const struct sp_rsa_parts *parts)
{
    struct numbers s = {.ctx = BN_CTX_secure_new()};
    struct sp_rsa_key *key = NULL;
    int err = SP_ENOMEM;

    if (!s.ctx)
        return SP_ENOMEM;
    BN_CTX_start(s.ctx);
    ERR_set_mark();
    err = numbers_read(&s, parts);
    if (!err)
        err = check_parts(&s);
    if (!err) {
        key = calloc(1, sizeof(*key));
        err = key ? 0 : SP_ENOMEM;
    }
    if (!err) {
        atomic_init(&key->refs, 1);
        pthread_mutex_init(&key->mutex, NULL);
        key->bytes = (size_t)BN_num_bytes(s.n);
        key->blocks = (unsigned)key->bytes / 128;
        err = fill(key, &s);
        if (!err)
            err = make_pkey(key, &s);
    }
    ERR_pop_to_mark();
    BN_CTX_end(s.ctx);
    BN_CTX_free(s.ctx); /* which wipes what it gave out */
    if (err) {
        sp_rsa_key_free(key);
        return err;
    }
    /* The self-test and the measurement of its row now, not in the first handshake. */
    (void)lanes_prepare(key->bytes == 256   ? SP_ALGORITHM_RSA2048
                        : key->bytes == 384 ? SP_ALGORITHM_RSA3072
                                            : SP_ALGORITHM_RSA4096,
                        key);
    *out = key;
    return 0;
}

void sp_rsa_key_ref(struct sp_rsa_key *key)
{
    atomic_fetch_add_explicit(&key->refs, 1, memory_order_relaxed);
}

void sp_rsa_key_free(struct sp_rsa_key *key)
{
    if (!key || atomic_fetch_sub_explicit(&key->refs, 1, memory_order_acq_rel) != 1)
        return;
    while (key->pairs) {
        struct rsa_pair *pair = key->pairs;

        key->pairs = pair->next;
        rsa_pair_free(pair);
    }
    pthread_mutex_destroy(&key->mutex);
    BN_free(key->n_bn);
    BN_free(key->e_bn);
    BN_free(key->n_one_bn);
    BN_MONT_CTX_free(key->n_mont);
    EVP_PKEY_free(key->pkey);
    lanes_wipe(key, sizeof(*key));
    free(key);
}

/* --- blinding ------------------------------------------------------------------------- */

void rsa_pair_free(struct rsa_pair *pair)
{
    if (!pair)
        return;
    lanes_wipe(pair, sizeof(*pair));
    free(pair);
}

/* r[i] random and its inverse in inverse[i]; one inversion for all (Montgomery's trick). */
static int random_inverses(const struct sp_rsa_key *key, BIGNUM **r, BIGNUM **inverse,
                           unsigned count, BN_CTX *ctx)
{
    BIGNUM *x = BN_CTX_get(ctx);

    if (!x)
        return SP_ENOMEM;
    for (unsigned i = 0; i < count; i++) {
        /* inverse[i]: the product of the r before. */
        if (!BN_priv_rand_range(r[i], key->n_bn) || BN_is_zero(r[i]) ||
            !BN_mod_mul(x, i ? x : BN_value_one(), r[i], key->n_bn, ctx))
            return SP_ENOMEM;
        if (i + 1 < count && !BN_copy(inverse[i + 1], x))
            return SP_ENOMEM;
    }
    if (!BN_mod_inverse(x, x, key->n_bn, ctx))
        return SP_ENOMEM;
    for (unsigned i = count; i-- > 1;) {
        if (!BN_mod_mul(inverse[i], inverse[i], x, key->n_bn, ctx) ||
            !BN_mod_mul(x, x, r[i], key->n_bn, ctx))
            return SP_ENOMEM;
    }
    return BN_copy(inverse[0], x) ? 0 : SP_ENOMEM;
}

static struct rsa_pair *make_pair(const struct sp_rsa_key *key, const BIGNUM *r,
                                  const BIGNUM *inverse, BN_CTX *ctx)
{
    unsigned limbs = 2 * key->blocks * RSA_BLOCK;
    struct rsa_pair *pair = calloc(1, sizeof(*pair));
    BIGNUM *x = BN_CTX_get(ctx);

    if (pair && x && BN_mod_exp_mont(x, r, key->e_bn, key->n_bn, ctx, key->n_mont) &&
        BN_mod_mul(x, x, key->n_one_bn, key->n_bn, ctx) && to_limbs(pair->mask, limbs, x) == 0 &&
        BN_mod_mul(x, inverse, key->n_one_bn, key->n_bn, ctx) &&
        to_limbs(pair->unmask, limbs, x) == 0)
        return pair;
    rsa_pair_free(pair);
    return NULL;
}

/* Makes out[count]; on failure none. */
static int make_pairs(const struct sp_rsa_key *key, struct rsa_pair **out, unsigned count)
{
    BN_CTX *ctx = BN_CTX_new();
    BIGNUM *r[LANES + 1], *inverse[LANES + 1];
    unsigned made = 0;
    int err;

    if (!ctx)
        return SP_ENOMEM;
    BN_CTX_start(ctx);
    for (unsigned i = 0; i <= count; i++) {
        r[i] = BN_CTX_get(ctx);
        inverse[i] = BN_CTX_get(ctx);
    }
    /* One more than needed, so that the inverted product tells nothing about those that are used. */
    err = inverse[count] ? random_inverses(key, r, inverse, count + 1, ctx) : SP_ENOMEM;
    while (!err && made < count) {
        out[made] = make_pair(key, r[made], inverse[made], ctx);
        if (out[made])
            made++;
        else
            err = SP_ENOMEM;
    }
    while (err && made > 0)
        rsa_pair_free(out[--made]);
    BN_CTX_end(ctx);
    BN_CTX_free(ctx);
    return err;
}

int rsa_key_take_pairs(const struct sp_rsa_key *key, struct rsa_pair **out, unsigned count)
{
    /* The pairs are no part of the key's value, and every key was born without const. */
    struct sp_rsa_key *k = (struct sp_rsa_key *)key;
    unsigned have = 0;
    int err;

    pthread_mutex_lock(&k->mutex);
    while (have < count && k->pairs) {
        out[have] = k->pairs;
        k->pairs = k->pairs->next;
        have++;
    }
    pthread_mutex_unlock(&k->mutex);
    if (have == count)
        return 0;
    err = make_pairs(key, out + have, count - have);
    while (err && have > 0) {
        struct rsa_pair *pair = out[--have];

        pthread_mutex_lock(&k->mutex);
        pair->next = k->pairs;
        k->pairs = pair;
        pthread_mutex_unlock(&k->mutex);
    }
    return err;
}

void rsa_key_return_pair(const struct sp_rsa_key *key, struct rsa_pair *pair)
{
    struct sp_rsa_key *k = (struct sp_rsa_key *)key;

    if (++pair->uses >= RSA_PAIR_USES) {
        rsa_pair_free(pair);
        return;
    }
    pthread_mutex_lock(&k->mutex);
    pair->next = k->pairs;
    k->pairs = pair;
    pthread_mutex_unlock(&k->mutex);
}
