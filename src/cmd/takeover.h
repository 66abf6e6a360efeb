/*
 * Replacing a running process without losing a connection: its listening sockets,
 * with whatever waits in their queues, go to the new process.
 *
 * SIGUSR2: the process starts itself anew and hands them over by inheritance.
 * -sf PID: the new process takes them by pidfd_getfd(2) where the kernel lets it.
 */
#ifndef SP_CMD_TAKEOVER_H
#define SP_CMD_TAKEOVER_H

#include "proxy/proxy.h"

/*
 * Collects descriptors inherited from a parent that replaces itself and those of the processes in `pids`. The array is
 * malloc'ed and the caller's. Returns how many.
 */
int takeover_collect(const pid_t *pids, int pid_count, int **out);

/*
 * Starts argv anew with "-sf" and this process's number, handing down the application's listening descriptors. Returns
 * the child's number once it has executed the program, or -1 with errno. The workers must know of the fork (app_set_forking).
 */
pid_t takeover_start(int argc, char **argv, const struct app *app);

#endif
