#include "cmd/process.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

static const struct cfg_loc nowhere = {NULL, 0};

/* End of the pipe on which the starting process waits; -1: none. */
static int ready_fd = -1;
static int null_fd = -1; /* opened while there is a root folder to find it in */

/* Descriptors beside connections: listeners, loops, logs, checks. */
static rlim_t descriptors_wanted(const struct app *app)
{
    return (rlim_t)app->maxconn * 2 + (rlim_t)app->bind_count * (rlim_t)app->worker_count +
           (rlim_t)app->server_count + 100;
}

int process_set_limits(const struct cfg_global *g, struct app *app, int memory_mb, struct diag *diag)
{
    struct rlimit limit;
    rlim_t wanted = g->ulimit_n > 0 ? (rlim_t)g->ulimit_n : descriptors_wanted(app);

    if (memory_mb > 0) {
        limit.rlim_cur = limit.rlim_max = (rlim_t)memory_mb << 20;
        if (setrlimit(RLIMIT_AS, &limit) != 0) {
            diag_error(diag, nowhere, "-m %d: cannot limit the memory: %s", memory_mb, strerror(errno));
            return 1;
        }
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
        return 0;
    limit.rlim_cur = wanted;
    if (limit.rlim_max < wanted)
        limit.rlim_max = wanted;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
        return 0;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (g->ulimit_n > 0) {
        diag_error(diag, nowhere, "ulimit-n %d: the system allows %llu descriptors", g->ulimit_n,
                   (unsigned long long)limit.rlim_max);
        return 1;
    }
    if (limit.rlim_max > 120)
        app->maxconn = (int)((limit.rlim_max - 100) / 2);
    if (g->maxconn <= 0) /* derived from the limit in the first place */
        return 0;
    diag_warning(diag, nowhere,
                 "maxconn needs %llu descriptors and the system allows %llu: connections are limited to %d; raise "
                 "'ulimit -n' or lower 'maxconn'",
                 (unsigned long long)wanted, (unsigned long long)limit.rlim_max, app->maxconn);
    return 0;
}

/* --- background ---------------------------------------------------------------------- */

int process_daemonize(struct diag *diag)
{
    int ends[2];
    char byte;
    pid_t child;

    if (pipe2(ends, O_CLOEXEC) != 0 || (child = fork()) < 0) {
        diag_error(diag, nowhere, "cannot go into the background: %s", strerror(errno));
        return 1;
    }
    if (child > 0) {
        close(ends[1]);
        _exit(read(ends[0], &byte, 1) == 1 ? 0 : 1);
    }
    close(ends[0]);
    ready_fd = ends[1];
    setsid();
    null_fd = open("/dev/null", O_RDWR | O_CLOEXEC); /* there may be none after a chroot */
    return 0;
}

void process_ready(void)
{
    if (ready_fd < 0)
        return;
    /* Until here errors had a terminal to go to. */
    if (null_fd >= 0) {
        dup2(null_fd, 0);
        dup2(null_fd, 1);
        dup2(null_fd, 2);
        if (null_fd > 2)
            close(null_fd);
        null_fd = -1;
    }
    if (write(ready_fd, "", 1) != 1)
        errno = 0; /* nobody waits any more */
    close(ready_fd);
    ready_fd = -1;
}

int process_write_pidfile(const char *path, struct diag *diag)
{
    char text[24];
    int len, fd;

    if (!path)
        return 0;
    len = snprintf(text, sizeof(text), "%d\n", (int)getpid());
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, text, (size_t)len) != len) {
        diag_error(diag, nowhere, "'%s': cannot write the process number: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return 1;
    }
    close(fd);
    return 0;
}

/* --- privileges ------------------------------------------------------------------------- */

int process_drop_privileges(const struct cfg_global *g, struct diag *diag)
{
    const char *step = NULL;

    if (g->chroot && (chroot(g->chroot) != 0 || chdir("/") != 0))
        step = "chroot";
    else if (g->gid > 0 && getuid() == 0 && setgroups(0, NULL) != 0)
        step = "setgroups";
    else if (g->gid > 0 && setgid((gid_t)g->gid) != 0)
        step = "group";
    else if (g->uid > 0 && setuid((uid_t)g->uid) != 0)
        step = "user";
    if (step) {
        diag_error(diag, nowhere, "'%s': cannot give up privileges: %s", step, strerror(errno));
        return 1;
    }
    if (g->set_dumpable)
        prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    return 0;
}
