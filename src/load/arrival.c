#include "load/arrival.h"

#include <math.h>

/* What fits a double exactly, and a deadline: 285 years. */
#define LATEST_US 9007199254740992.0

/* G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", 2014. */
static uint64_t split_mix(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

void load_rng_init(struct hash_rng *rng, uint64_t seed)
{
    rng->state[0] = split_mix(&seed);
    rng->state[1] = split_mix(&seed) | 1; /* never all zero */
}

double load_rng_unit(struct hash_rng *rng)
{
    return ((double)(hash_rng_next(rng) >> 11) + 1) * 0x1p-53;
}

static void set_due(struct load_arrival *a)
{
    if (a->kind == LOAD_CONSTANT)
        a->at_us = ((double)a->index + a->phase) * a->mean_us;
    a->due_us = a->at_us < LATEST_US ? a->start_us + (uint64_t)a->at_us : UINT64_MAX;
}

static double gap_us(struct load_arrival *a)
{
    return -log(load_rng_unit(&a->rng)) * a->mean_us;
}

void load_arrival_init(struct load_arrival *a, enum load_arrivals kind, double rate, double phase,
                       uint64_t start_us, uint64_t seed)
{
    *a = (struct load_arrival){
        .kind = kind,
        .start_us = start_us,
        .mean_us = 1e6 / rate,
        .phase = phase,
    };
    load_rng_init(&a->rng, seed);
    if (kind == LOAD_POISSON)
        a->at_us = gap_us(a);
    set_due(a);
}

void load_arrival_next(struct load_arrival *a)
{
    a->index++;
    if (a->kind == LOAD_POISSON)
        a->at_us += gap_us(a);
    set_due(a);
}
