#include "crypto/lanes_state.h"

#include "base/clock.h"

#include <openssl/rand.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define FAULTS_MAX 16 /* then the lanes of a row are not trusted any more */
#define ROUNDS_NS 2000000 /* a measurement is repeated within this time, and its best round counts */
#define ROUNDS_MAX 16
#define HALF (SP_LANES_MAX / 2)

enum readiness { NOT_TRIED, READY, NO_INSTRUCTIONS, NO_ROW, TEST_FAILED, TOO_MANY_FAULTS };

struct lanes_state {
    atomic_int readiness;
    atomic_uint faults;
    struct sp_break_even times;
    uint8_t plan[SP_LANES_MAX + 1];
};

static struct lanes_state states[SP_ALGORITHMS];
static pthread_mutex_t preparing = PTHREAD_MUTEX_INITIALIZER;

/* --- measurement ----------------------------------------------------------------------- */

/* Valid operations of one row to time, with their buffers. */
struct sample {
    struct sp_op ops[SP_LANES_MAX];
    struct sp_op *pointers[SP_LANES_MAX];
    uint8_t scalar[32];
    uint8_t in[512];
    uint8_t out[SP_LANES_MAX][512];
};

/* The base points: valid peers for a derivation. */
static const uint8_t p256_point[65] = {
    0x04, 0x6b, 0x17, 0xd1, 0xf2, 0xe1, 0x2c, 0x42, 0x47, 0xf8, 0xbc, 0xe6, 0xe5, 0x63, 0xa4, 0x40, 0xf2,
    0x77, 0x03, 0x7d, 0x81, 0x2d, 0xeb, 0x33, 0xa0, 0xf4, 0xa1, 0x39, 0x45, 0xd8, 0x98, 0xc2, 0x96, 0x4f,
    0xe3, 0x42, 0xe2, 0xfe, 0x1a, 0x7f, 0x9b, 0x8e, 0xe7, 0xeb, 0x4a, 0x7c, 0x0f, 0x9e, 0x16, 0x2b, 0xce,
    0x33, 0x57, 0x6b, 0x31, 0x5e, 0xce, 0xcb, 0xb6, 0x40, 0x68, 0x37, 0xbf, 0x51, 0xf5};

static void sample_fill(struct sample *s, const struct algorithm *row, const struct sp_rsa_key *rsa)
{
    size_t len = 32;

    memset(s, 0, sizeof(*s));
    memset(s->scalar, 0x5a, sizeof(s->scalar));
    memset(s->in, 0x33, sizeof(s->in));
    if (row->kind == SP_OP_RSA_PRIVATE) {
        len = row->rsa_bytes;
        s->in[0] = 0; /* less than any modulus */
    } else if (row->kind == SP_OP_P256_DERIVE) {
        len = sizeof(p256_point);
        memcpy(s->in, p256_point, len);
    }
    for (unsigned i = 0; i < SP_LANES_MAX; i++) {
        s->ops[i] = (struct sp_op){.kind = row->kind,
                                   .rsa = rsa,
                                   .scalar = s->scalar,
                                   .in = s->in,
                                   .in_len = len,
                                   .out = s->out[i]};
        s->pointers[i] = &s->ops[i];
    }
}

/* The best of some rounds; n 0: one operation in the scalar library. */
static uint64_t time_of(const struct algorithm *row, struct sample *s, unsigned n, struct algorithm_memory *memory)
{
    uint64_t best = UINT64_MAX, begin = clock_now_ns();

    for (unsigned round = 0; round < ROUNDS_MAX; round++) {
        uint64_t start = clock_now_ns(), took;

        if (n == 0)
            (void)row->run_scalar(&s->ops[0]);
        else
            row->run_lanes(s->pointers, n, memory);
        took = clock_now_ns() - start;
        if (took < best)
            best = took;
        if (clock_now_ns() - begin > ROUNDS_NS)
            break;
    }
    return best;
}

static uint64_t batch_ns(const struct sp_break_even *t, unsigned n)
{
    return n <= HALF ? t->half_ns : t->full_ns;
}

static void make_plan(struct lanes_state *state)
{
    const struct sp_break_even *t = &state->times;

    for (unsigned n = 1; n <= SP_LANES_MAX; n++) {
        uint64_t best = n * t->scalar_ns;

        for (unsigned in_lanes = 1; in_lanes <= n; in_lanes++) {
            uint64_t cost = batch_ns(t, in_lanes) + (n - in_lanes) * t->scalar_ns;

            if (cost <= best) {
                best = cost;
                state->plan[n] = (uint8_t)in_lanes;
            }
        }
        if (state->plan[n] && !state->times.lanes_min)
            state->times.lanes_min = n;
    }
}

static void measure(struct lanes_state *state, const struct algorithm *row, const struct sp_rsa_key *rsa,
                    struct algorithm_memory *memory)
{
    struct sample sample;

    sample_fill(&sample, row, rsa);
    state->times.scalar_ns = time_of(row, &sample, 0, memory);
    state->times.half_ns = time_of(row, &sample, HALF, memory);
    state->times.full_ns = time_of(row, &sample, SP_LANES_MAX, memory);
    make_plan(state);
}

/* --- readiness --------------------------------------------------------------------------------- */

static int prepare(struct lanes_state *state, const struct algorithm *row, const struct sp_rsa_key *rsa)
{
    struct algorithm_memory memory;
    int readiness;

    if (!row->run_lanes)
        return NO_ROW;
    if (!row->has_lanes())
        return NO_INSTRUCTIONS;
    if (row->rsa_bytes && !rsa)
        return NOT_TRIED;
    if (algorithm_memory_init(&memory) != 0)
        return NOT_TRIED;
    switch (row->self_test(row, rsa, &memory)) {
    case 0:
        measure(state, row, rsa, &memory);
        readiness = READY;
        break;
    case SP_ENOMEM:
        readiness = NOT_TRIED;
        break;
    default:
        readiness = TEST_FAILED;
    }
    algorithm_memory_release(&memory);
    return readiness;
}

bool lanes_prepare(enum sp_algorithm algorithm, const struct sp_rsa_key *rsa)
{
    struct lanes_state *state = &states[algorithm];
    int readiness = atomic_load_explicit(&state->readiness, memory_order_acquire);

    if (readiness == NOT_TRIED) {
        pthread_mutex_lock(&preparing);
        readiness = atomic_load_explicit(&state->readiness, memory_order_acquire);
        if (readiness == NOT_TRIED) {
            readiness = prepare(state, &algorithm_rows[algorithm], rsa);
            atomic_store_explicit(&state->readiness, readiness, memory_order_release);
        }
        pthread_mutex_unlock(&preparing);
    }
    return readiness == READY;
}

bool lanes_are_ready(enum sp_algorithm algorithm)
{
    return atomic_load_explicit(&states[algorithm].readiness, memory_order_acquire) == READY;
}

void lanes_note_fault(enum sp_algorithm algorithm)
{
    struct lanes_state *state = &states[algorithm];

    if (atomic_fetch_add_explicit(&state->faults, 1, memory_order_relaxed) + 1 >= FAULTS_MAX)
        atomic_store_explicit(&state->readiness, TOO_MANY_FAULTS, memory_order_release);
}

unsigned lanes_plan(enum sp_algorithm algorithm, unsigned n)
{
    return lanes_are_ready(algorithm) ? states[algorithm].plan[n] : 0;
}

const char *sp_lanes_missing(enum sp_algorithm algorithm)
{
    (void)lanes_prepare(algorithm, NULL);
    switch (atomic_load_explicit(&states[algorithm].readiness, memory_order_acquire)) {
    case NO_INSTRUCTIONS:
        return "this CPU lacks AVX-512 IFMA";
    case NO_ROW:
        return "only the scalar library has it";
    case TEST_FAILED:
        return "its self-test failed";
    case TOO_MANY_FAULTS:
        return "too many of its results failed their verification";
    default:
        return NULL;
    }
}

int sp_break_even(enum sp_algorithm algorithm, struct sp_break_even *out)
{
    if (!lanes_prepare(algorithm, NULL))
        return sp_lanes_missing(algorithm) ? SP_EUNSUPPORTED : SP_ENOENT;
    *out = states[algorithm].times;
    return 0;
}
