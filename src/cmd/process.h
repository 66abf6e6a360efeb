/*
 * What a server process does to itself: limits, background, pid file, privileges.
 * Errors go to the diagnostics; 0 or 1.
 */
#ifndef SP_CMD_PROCESS_H
#define SP_CMD_PROCESS_H

#include "proxy/proxy.h"

/* ulimit-n, descriptors enough for maxconn, -m. Lowers app->maxconn with a warning where the system gives fewer. */
int process_set_limits(const struct cfg_global *g, struct app *app, int memory_mb, struct diag *diag);

/* Forks; the parent waits until process_ready is called, then exits 0 (or 1 when the child ends before). */
int process_daemonize(struct diag *diag);
void process_ready(void);

/* `path` NULL: none. */
int process_write_pidfile(const char *path, struct diag *diag);

/* chroot, group, user, in that order. */
int process_drop_privileges(const struct cfg_global *g, struct diag *diag);

#endif
