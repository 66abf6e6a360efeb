/*
 * What a process knows of its lanes: whether they passed their self-test, and when they pay.
 */
#ifndef SP_CRYPTO_LANES_STATE_H
#define SP_CRYPTO_LANES_STATE_H

#include "crypto/algorithm.h"

/*
 * Self-test and measurement of a row, once a process; later calls only look. `rsa`: any key of the
 * row's length, needed the first time for RSA rows. True when the lanes may be used.
 */
bool lanes_prepare(enum sp_algorithm algorithm, const struct sp_rsa_key *rsa);
/* As above, without preparing. */
bool lanes_are_ready(enum sp_algorithm algorithm);
/* A lane's result failed its verification: after some of these, the row's lanes are switched off. */
void lanes_note_fault(enum sp_algorithm algorithm);
/*
 * How many of n gathered operations (1 to SP_LANES_MAX) to run as one batch in lanes, the rest in
 * the scalar library: what takes least time by the measurement.
 */
unsigned lanes_plan(enum sp_algorithm algorithm, unsigned n);

#endif
