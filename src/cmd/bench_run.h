/*
 * One run of the engine, with what goes on beside it: the progress line, Ctrl-C, the look at the server.
 */
#ifndef SP_CMD_BENCH_RUN_H
#define SP_CMD_BENCH_RUN_H

#include "cmd/bench_plan.h"
#include "cmd/bench_server.h"

struct bench_run {
    struct load *load;
    struct load_plan plan; /* as the engine has it */
    const struct load_result *result; /* belongs to `load` */
    struct bench_server server;       /* pid 0: not looked at */
};

/* SIGINT and SIGTERM stop the run; the second one ends the program. Once, before the first run. */
void bench_catch_signals(void);
/* Whether such a signal has come. */
bool bench_is_interrupted(void);

/*
 * Runs a plan to its end. `server_pid` 0: none. 0, or 1 after a message on stderr. bench_run_release either way.
 */
int bench_run(struct bench_run *run, const struct load_plan *plan, int server_pid, bool show_progress);
void bench_run_release(struct bench_run *run);

/* Raises the limit on descriptors as far as `plan` needs it: 0, or 1 after a message that says how to. */
int bench_raise_limits(const struct load_plan *plan);

/* The options --find-limit and --hold; exit status. */
int bench_find_limit(struct bench_plan *plan, const struct bench_args *args);
int bench_hold(struct bench_plan *plan, const struct bench_args *args);

#endif
