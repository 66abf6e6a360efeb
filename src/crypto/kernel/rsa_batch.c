/*
 * A batch: blind, reduce by p and q, two powers (side by side when four lanes are enough), join,
 * unblind, verify. The vector code does all arithmetic; this file moves numbers in and out of it.
 *
 * Lanes that no request uses have the first request's key and compute with zero.
 */
#include "crypto/kernel/rsa.h"

#include "crypto/rsa_key.h"

#define ALIGNMENT 64
#define HALF_LANES (LANES / 2)

/* Vectors for all of struct batch at its largest. */
#define N_NUMBERS 10
#define HALF_NUMBERS 10
#define TABLE_NUMBERS ((1 << RSA_WINDOW) + 1)
#define SCRATCH_VECTORS                              \
    (N_NUMBERS * RSA_MAX_LIMBS + 2 * RSA_MAX_LIMBS + \
     (HALF_NUMBERS + TABLE_NUMBERS) * RSA_MAX_HALF_LIMBS + RSA_MAX_DIGITS + 2)

struct rsa_scratch {
    limb8 vectors[SCRATCH_VECTORS];
};

struct rsa_scratch *rsa_scratch_new(void)
{
    return aligned_alloc(ALIGNMENT, sizeof(struct rsa_scratch));
}

void rsa_scratch_free(struct rsa_scratch *scratch)
{
    if (scratch)
        lanes_wipe(scratch, sizeof(*scratch));
    free(scratch);
}

struct batch {
    const struct rsa_kernel *kernel;
    unsigned blocks; /* of a prime */
    unsigned limbs;  /* of a prime */
    unsigned used;   /* lanes with a request, the first ones */
    struct rsa_request *request[LANES];
    const struct sp_rsa_key *key[LANES]; /* of every lane */
    struct rsa_pair *pair[LANES];

    limb8 *next; /* scratch: what is not yet given out */
    /* Of the modulus' length. */
    struct rsa_modulus n;
    limb8 *n_one, *n_r2, *in, *mask, *unmask, *x, *y;
    /* Of the primes'. */
    struct rsa_modulus half;
    limb8 *r2, *r3, *power[2], *q, *coefficient, *h, *table, *digits;
};

/* --- bytes, limbs, lanes -------------------------------------------------------------- */

static uint64_t big_endian(const uint8_t *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof(v));
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

void rsa_limbs_from_bytes(uint64_t *r, size_t stride, unsigned limbs, const uint8_t *in, size_t len)
{
    /* Zeros in front: the last limb may begin beyond the number. */
    uint8_t padded[16 + RSA_MAX_BYTES] = {0};

    memcpy(padded + sizeof(padded) - len, in, len);
    for (unsigned i = 0; i < limbs; i++) {
        unsigned bit = i * LIMB_BITS;

        r[i * stride] = big_endian(padded + sizeof(padded) - 8 - bit / 8) >> bit % 8 & LIMB_MASK;
    }
    lanes_wipe(padded, sizeof(padded));
}

void rsa_limbs_to_bytes(uint8_t *out, size_t len, const uint64_t *a, size_t stride, unsigned limbs)
{
    for (size_t at = 0; at < len; at += 8) {
        unsigned bit = (unsigned)at * 8, i = bit / LIMB_BITS, shift = bit % LIMB_BITS;
        uint64_t v = a[i * stride] >> shift;

        for (unsigned have = LIMB_BITS - shift; have < 64 && ++i < limbs; have += LIMB_BITS)
            v |= a[i * stride] << have;
        for (int k = 0; k < 8; k++)
            out[len - 1 - at - (size_t)k] = (uint8_t)(v >> 8 * k);
    }
}

static void put_lane(limb8 *r, unsigned lane, const uint64_t *a, unsigned limbs)
{
    for (unsigned i = 0; i < limbs; i++)
        r[i][lane] = a[i];
}

static void get_lane(uint64_t *r, const limb8 *a, unsigned lane, unsigned limbs)
{
    for (unsigned i = 0; i < limbs; i++)
        r[i] = a[i][lane];
}

static void zero_lane(limb8 *r, unsigned lane, unsigned limbs)
{
    for (unsigned i = 0; i < limbs; i++)
        r[i][lane] = 0;
}

/* Lane `to` of r = lane `from` of a. */
static void move_lane(limb8 *r, unsigned to, const limb8 *a, unsigned from, unsigned limbs)
{
    for (unsigned i = 0; i < limbs; i++)
        r[i][to] = a[i][from];
}

/* --- setting up ----------------------------------------------------------------------- */

static limb8 *carve(struct batch *b, size_t vectors)
{
    limb8 *r = b->next;

    b->next += vectors;
    return r;
}

/* Tables and digits last: what is small stays together. */
static void lay_out(struct batch *b, struct rsa_scratch *scratch)
{
    size_t half = b->limbs, whole = 2 * half;

    b->next = scratch->vectors;
    b->n = (struct rsa_modulus){.blocks = 2 * b->blocks};
    b->half = (struct rsa_modulus){.blocks = b->blocks};
    b->n.t = b->half.t = carve(b, 2 * whole);
    b->half.neg_inv = carve(b, 1);
    b->half.n = carve(b, half);
    b->half.fold = carve(b, half);
    b->r2 = carve(b, half);
    b->r3 = carve(b, half);
    b->power[0] = carve(b, half);
    b->power[1] = carve(b, half);
    b->q = carve(b, half);
    b->coefficient = carve(b, half);
    b->h = carve(b, half);
    b->table = carve(b, TABLE_NUMBERS * half);
    b->digits = carve(b, b->blocks * 512 / RSA_WINDOW);
    b->n.neg_inv = carve(b, 1);
    b->n.n = carve(b, whole);
    b->n.fold = carve(b, whole);
    b->n_one = carve(b, whole);
    b->n_r2 = carve(b, whole);
    b->in = carve(b, whole);
    b->mask = carve(b, whole);
    b->unmask = carve(b, whole);
    b->x = carve(b, whole);
    b->y = carve(b, whole);
}

/* Pairs for the requests that share the key of requests[first]; those that get none fail. */
static void take_pairs(struct rsa_request *requests, struct rsa_pair **pairs, unsigned count,
                       unsigned first)
{
    struct rsa_pair *taken[LANES];
    unsigned at[LANES], same = 0;

    for (unsigned i = first; i < count; i++)
        if (requests[i].key == requests[first].key && requests[i].status == 0)
            at[same++] = i;
    if (rsa_key_take_pairs(requests[first].key, taken, same) == 0) {
        for (unsigned i = 0; i < same; i++)
            pairs[at[i]] = taken[i];
    } else {
        for (unsigned i = 0; i < same; i++)
            requests[at[i]].status = SP_EFAULT;
    }
}

/* Checks the requests and gives lanes to the good ones. */
static void admit(struct batch *b, struct rsa_request *requests, unsigned count)
{
    struct rsa_pair *pairs[LANES] = {NULL};

    for (unsigned i = 0; i < count; i++)
        requests[i].status = rsa_key_in_range(requests[i].key, requests[i].in) ? 0 : SP_EINVAL;
    for (unsigned i = 0; i < count; i++)
        if (requests[i].status == 0 && !pairs[i])
            take_pairs(requests, pairs, count, i);
    for (unsigned i = 0; i < count; i++) {
        if (requests[i].status)
            continue;
        b->request[b->used] = &requests[i];
        b->key[b->used] = requests[i].key;
        b->pair[b->used] = pairs[i];
        b->used++;
    }
    for (unsigned lane = b->used; lane < LANES; lane++)
        b->key[lane] = b->key[0];
}

static void load_whole(struct batch *b)
{
    unsigned limbs = 2 * b->limbs;

    for (unsigned lane = 0; lane < LANES; lane++) {
        const struct sp_rsa_key *key = b->key[lane];

        put_lane(b->n.n, lane, key->n, limbs);
        put_lane(b->n.fold, lane, key->n_fold, limbs);
        put_lane(b->n.neg_inv, lane, &key->n_neg_inv, 1);
        put_lane(b->n_one, lane, key->n_one, limbs);
        put_lane(b->n_r2, lane, key->n_r2, limbs);
        if (lane < b->used) {
            rsa_limbs_from_bytes(&b->in[0][lane], LANES, limbs, b->request[lane]->in, key->bytes);
            put_lane(b->mask, lane, b->pair[lane]->mask, limbs);
            put_lane(b->unmask, lane, b->pair[lane]->unmask, limbs);
        } else {
            zero_lane(b->in, lane, limbs);
            zero_lane(b->mask, lane, limbs);
            zero_lane(b->unmask, lane, limbs);
        }
    }
}

/* The modulus in a lane: p or q. */
static void load_half(struct batch *b, unsigned lane, const struct sp_rsa_key *key, int which)
{
    const struct rsa_half *h = &key->half[which];

    put_lane(b->half.n, lane, h->p, b->limbs);
    put_lane(b->half.fold, lane, h->fold, b->limbs);
    put_lane(b->half.neg_inv, lane, &h->neg_inv, 1);
}

static void load_power(struct batch *b, unsigned lane, const struct sp_rsa_key *key, int which)
{
    const struct rsa_half *h = &key->half[which];
    unsigned digits = b->blocks * 512 / RSA_WINDOW;

    load_half(b, lane, key, which);
    put_lane(b->r2, lane, h->r2, b->limbs);
    put_lane(b->r3, lane, h->r3, b->limbs);
    put_lane(b->table, lane, h->one, b->limbs);
    for (unsigned i = 0; i < digits; i++)
        b->digits[i][lane] = h->digits[i];
}

/* --- the operation -------------------------------------------------------------------- */

/*
 * r = x^dp mod p in each lane, or with q, as load_power says; x is twice as long as p. In halves
 * x0 + R * x1, so that x * R = x0 * R + x1 * R^2, and Montgomery products with R^2 and R^3 give it.
 */
static void power(struct batch *b, limb8 *r, const limb8 *x)
{
    const struct rsa_kernel *k = b->kernel;

    k->mul(r, x, b->r2, &b->half);
    k->mul(b->h, x + b->limbs, b->r3, &b->half);
    k->add(b->table + b->limbs, r, b->h, b->blocks);
    k->exp(r, b->table, b->digits, b->blocks * 512 / RSA_WINDOW, RSA_WINDOW, &b->half);
    /* Out of Montgomery form: times 1. */
    for (unsigned lane = 0; lane < LANES; lane++) {
        zero_lane(b->h, lane, b->limbs);
        b->h[0][lane] = 1;
    }
    k->mul(r, r, b->h, &b->half);
    k->canon(r, r, &b->half);
}

static void powers_one_by_one(struct batch *b)
{
    for (int which = 1; which >= 0; which--) {
        for (unsigned lane = 0; lane < LANES; lane++)
            load_power(b, lane, b->key[lane], which);
        power(b, b->power[which], b->x);
    }
}

/* p in the lower lanes, q in the upper. */
static void powers_side_by_side(struct batch *b)
{
    for (unsigned lane = 0; lane < HALF_LANES; lane++) {
        load_power(b, lane, b->key[lane], 0);
        load_power(b, lane + HALF_LANES, b->key[lane], 1);
        move_lane(b->x, lane + HALF_LANES, b->x, lane, 2 * b->limbs);
    }
    power(b, b->power[0], b->x);
    for (unsigned lane = 0; lane < HALF_LANES; lane++) {
        move_lane(b->power[1], lane, b->power[0], lane + HALF_LANES, b->limbs);
        zero_lane(b->power[1], lane + HALF_LANES, b->limbs);
        zero_lane(b->power[0], lane + HALF_LANES, b->limbs);
        load_half(b, lane + HALF_LANES, b->key[lane + HALF_LANES], 0);
        load_half(b, lane, b->key[lane], 0);
    }
}

static unsigned bit_mask(const struct batch *b, int bit)
{
    unsigned mask = 0;

    for (unsigned lane = 0; lane < LANES; lane++)
        mask |= (b->key[lane]->e >> bit & 1) << lane;
    return mask;
}

/*
 * The lanes where x^e = in: left to right over the longest of the public exponents, which are odd,
 * so that the last multiplication, the only one by a number not in Montgomery form, takes every lane
 * out of it.
 */
static unsigned verify(struct batch *b)
{
    const struct rsa_kernel *k = b->kernel;
    limb8 *s = b->n_r2, *acc = b->y, *product = b->n_one;
    int bit = 31;

    while (bit > 0 && !bit_mask(b, bit))
        bit--;
    k->mul(s, b->x, b->n_r2, &b->n);
    k->select(acc, bit_mask(b, bit), s, b->n_one, b->n.blocks);
    while (--bit > 0) {
        unsigned mask = bit_mask(b, bit);

        k->sqr(acc, acc, &b->n);
        if (mask) {
            k->mul(product, acc, s, &b->n);
            k->select(acc, mask, product, acc, b->n.blocks);
        }
    }
    k->sqr(acc, acc, &b->n);
    k->mul(acc, acc, b->x, &b->n);
    k->canon(acc, acc, &b->n);
    return k->equal(acc, b->in, b->n.blocks);
}

/* Squares the blinding pairs, so that the next use sees others, and gives them back. */
static void renew_pairs(struct batch *b, unsigned good)
{
    unsigned limbs = 2 * b->limbs;

    b->kernel->sqr(b->mask, b->mask, &b->n);
    b->kernel->canon(b->mask, b->mask, &b->n);
    b->kernel->sqr(b->unmask, b->unmask, &b->n);
    b->kernel->canon(b->unmask, b->unmask, &b->n);
    for (unsigned lane = 0; lane < b->used; lane++) {
        struct rsa_pair *pair = b->pair[lane];

        if (!(good >> lane & 1)) {
            /* Perhaps it is the pair that is damaged. */
            rsa_pair_free(pair);
            continue;
        }
        get_lane(pair->mask, b->mask, lane, limbs);
        get_lane(pair->unmask, b->unmask, lane, limbs);
        rsa_key_return_pair(b->key[lane], pair);
    }
}

void rsa_batch_run(const struct rsa_kernel *kernel, struct rsa_request *requests, unsigned count,
                   struct rsa_scratch *scratch)
{
    struct batch b = {.kernel = kernel};
    unsigned good;

    admit(&b, requests, count);
    if (b.used == 0)
        return;
    b.blocks = b.key[0]->blocks;
    b.limbs = b.blocks * RSA_BLOCK;
    lay_out(&b, scratch);
    load_whole(&b);
    kernel->mul(b.x, b.in, b.mask, &b.n);
    if (b.used <= HALF_LANES)
        powers_side_by_side(&b);
    else
        powers_one_by_one(&b);
    for (unsigned lane = 0; lane < LANES; lane++) {
        put_lane(b.q, lane, b.key[lane]->half[1].p, b.limbs);
        put_lane(b.coefficient, lane, b.key[lane]->coefficient, b.limbs);
    }
    kernel->join(b.x, b.power[0], b.power[1], b.q, b.coefficient, b.h, &b.half);
    kernel->mul(b.x, b.x, b.unmask, &b.n);
    kernel->canon(b.x, b.x, &b.n);
    good = verify(&b);
    for (unsigned lane = 0; lane < b.used; lane++) {
        if (good >> lane & 1)
            rsa_limbs_to_bytes(b.request[lane]->out, b.key[lane]->bytes, &b.x[0][lane], LANES,
                               2 * b.limbs);
        else
            b.request[lane]->status = SP_EFAULT;
    }
    renew_pairs(&b, good);
    lanes_wipe(scratch, (size_t)((char *)b.next - (char *)scratch));
}
