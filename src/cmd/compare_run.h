/*
 * Runs a compare file: ports, folder, services, rounds of variants, measurements by `sallyport bench`.
 */
#ifndef SP_CMD_COMPARE_RUN_H
#define SP_CMD_COMPARE_RUN_H

#include "cmd/compare_file.h"
#include "measure/compare_result.h"

#include <jansson.h>

struct compare_options {
    const char *bench; /* the program whose `bench` measures */
    bool keeps_folder;
    /* Called after each measurement, and before the first with what is being done; NULL: nobody wants to know. */
    void (*progress)(const char *text);
};

struct compare_run {
    const struct compare_plan *plan; /* variants that are skipped stay in it, not in the result */
    const struct compare_options *options;
    struct arena *arena;
    const char *self; /* this program's path */
    const char *dir;
    unsigned variants[COMPARE_SERVERS_MAX]; /* those that run: the result's index to the plan's */
    unsigned variant_count;
    pid_t variant_pids[COMPARE_SERVERS_MAX], service_pids[COMPARE_SERVERS_MAX]; /* 0: not running */
    uint64_t seed;
    struct compare_result result;
    unsigned rounds_done; /* complete ones */
    unsigned measured, to_measure;
    bool is_interrupted;
    json_t *raw;      /* array: every measurement with its round, variant, load and bench's whole answer */
    json_t *orders;   /* array of arrays: the variants of each round as they came */
    json_t *notes;    /* array of texts: variants skipped, CPUs not there, servers that had to be killed */
    json_t *rendered; /* object: what was started and written, {…} replaced */
    const char *failure; /* why it ended early, with everything that helps; NULL: it did not */
    bool is_refused;     /* `failure` is that a variant failed requests */
};

/*
 * Gives the plan's servers their ports and runs it. 0 when every round was measured; otherwise SP_ECANCELED
 * (is_interrupted) or SP_EIO (`failure` says what). In any case the result holds what was measured, summarised, and no
 * child runs any more. compare_run_release afterwards.
 */
int compare_run_all(struct compare_run *run, struct compare_plan *plan, const struct compare_options *options,
                    struct arena *arena, uint64_t seed);
void compare_run_release(struct compare_run *run);

#endif
