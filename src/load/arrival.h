/*
 * When the requests of an open loop are due.
 *
 * The process does not look at answers: whoever is late finds the due times of what has piled up by going on
 * from where it was, so that nothing has to be stored, however much piles up. All times count from the
 * start, so that they never drift.
 */
#ifndef SP_LOAD_ARRIVAL_H
#define SP_LOAD_ARRIVAL_H

#include "base/hash.h"
#include "load/load.h"

struct load_arrival {
    enum load_arrivals kind;
    uint64_t start_us;
    uint64_t due_us; /* of the next one; UINT64_MAX: never */
    double mean_us;  /* between two */
    double at_us;    /* Poisson: the next one, since the start */
    double phase;    /* constant: of the first one, in units of mean_us */
    uint64_t index;  /* of the next one */
    struct hash_rng rng;
};

/*
 * `rate` is per second and positive. `phase` (0 to 1) keeps several constant processes from being due
 * together. Equal seeds give equal times.
 */
void load_arrival_init(struct load_arrival *a, enum load_arrivals kind, double rate, double phase,
                       uint64_t start_us, uint64_t seed);
/* Goes on to the next one. */
void load_arrival_next(struct load_arrival *a);

/* A generator whose whole state follows from the seed. */
void load_rng_init(struct hash_rng *rng, uint64_t seed);
/* Uniform in (0, 1]. */
double load_rng_unit(struct hash_rng *rng);

#endif
