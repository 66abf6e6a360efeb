/*
 * The children of `sallyport compare`: servers that run until they are stopped, commands that run to their end.
 * Every child leads a process group of its own and dies with us.
 */
#ifndef SP_CMD_COMPARE_PROCESS_H
#define SP_CMD_COMPARE_PROCESS_H

#include "base/addr.h"

#include <sched.h>
#include <sys/types.h>

struct compare_command {
    char *const *argv; /* ends with NULL */
    char *const *env;  /* "NAME=VALUE", ends with NULL; NULL: ours alone */
    const char *dir;   /* working folder; NULL: ours */
    const cpu_set_t *cpus; /* NULL: not pinned */
    const char *log_path;  /* both outputs, from its beginning; of compare_run: standard error alone; NULL: dropped */
    bool log_appends;
};

/*
 * Before the first child. From now on SIGINT, SIGTERM and SIGHUP only make compare_is_interrupted true (the second one
 * ends the program), and orphans of children become ours.
 */
void compare_prepare_process(void);
bool compare_is_interrupted(void);

/* 0 once the program runs; SP_EIO with errno when it cannot be started. */
int compare_start(const struct compare_command *command, pid_t *out);

/* Until something accepts connections. SP_ETIMEDOUT; SP_EEOF: the child has ended; SP_ECANCELED: interrupted. */
int compare_wait_ready(pid_t pid, const struct addr *addr, uint64_t timeout_us);
bool compare_answers(const struct addr *addr);
/* Whether the child still runs. */
bool compare_is_running(pid_t pid);

/* Signal (0: none), then up to `patience_us` for the whole group to go, then SIGKILL. False when it had to be killed. */
bool compare_stop(pid_t pid, int signal_number, uint64_t patience_us);

/*
 * Runs a command to its end. *output (the caller frees) is its standard output, at most max_bytes; NULL: it goes to the log.
 * *exit_status is 128 + N after signal N. SP_EIO with errno, SP_ETOOBIG, SP_ETIMEDOUT, SP_ECANCELED, SP_ENOMEM: killed.
 */
int compare_run(const struct compare_command *command, uint64_t timeout_us, size_t max_bytes, char **output,
                size_t *output_bytes, int *exit_status);

#endif
