/*
 * One measurement: a run of `sallyport bench`, and what its JSON says.
 */
#ifndef SP_CMD_COMPARE_MEASURE_H
#define SP_CMD_COMPARE_MEASURE_H

#include "cmd/compare_run.h"

/*
 * Measures a variant that is ready. The figures go to `round` of its cell, everything to run->raw. 0, SP_ECANCELED, or
 * SP_EIO with run->failure.
 */
int compare_measure(struct compare_run *run, unsigned round, unsigned variant, unsigned load);

/* Sets run->failure to a text of the arena; returns SP_EIO. */
int compare_fail(struct compare_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The last lines of a file, each with two blanks before it; "" when there are none. In the arena. */
const char *compare_tail(struct arena *arena, const char *path);

/* A path in the run's folder. */
const char *compare_path(struct compare_run *run, const char *name, const char *suffix);

/* `words` of `server` as an argv, {…} replaced and `sallyport` in front being this program; NULL: no memory. */
char **compare_argv(struct compare_run *run, const struct compare_server *server, const struct compare_words *words);

/* The CPUs to pin to; NULL: none were asked for, or this machine does not have them (then there is a note, once). */
const cpu_set_t *compare_pin(struct compare_run *run, const struct compare_cpus *cpus);

void compare_note(struct compare_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
