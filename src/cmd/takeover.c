#include "cmd/takeover.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TAKEOVER_VARIABLE "SALLYPORT_LISTENERS"

static bool is_listening_socket(int fd)
{
    int listening = 0;
    socklen_t len = sizeof(listening);

    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len) == 0 && listening;
}

static int keep(int fd, int **fds, int count)
{
    int *grown = realloc(*fds, sizeof(int) * (size_t)(count + 1));

    if (!grown) {
        close(fd);
        return count;
    }
    *fds = grown;
    (*fds)[count] = fd;
    return count + 1;
}

static int collect_inherited(int **fds, int count)
{
    const char *list = getenv(TAKEOVER_VARIABLE);

    while (list && *list) {
        char *end;
        long fd = strtol(list, &end, 10);

        if (end == list)
            break;
        if (fd > 2 && fd < 1000000 && is_listening_socket((int)fd)) {
            fcntl((int)fd, F_SETFD, FD_CLOEXEC);
            count = keep((int)fd, fds, count);
        }
        list = *end ? end + 1 : end;
    }
    unsetenv(TAKEOVER_VARIABLE);
    return count;
}

static int collect_from(pid_t pid, int **fds, int count)
{
    char path[64];
    struct dirent *entry;
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    DIR *dir;

    if (pidfd < 0)
        return count;
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    dir = opendir(path);
    while (dir && (entry = readdir(dir))) {
        char *end;
        long number = strtol(entry->d_name, &end, 10);
        int fd;

        if (*end || number < 3)
            continue;
        fd = (int)syscall(SYS_pidfd_getfd, pidfd, (int)number, 0);
        if (fd < 0)
            continue;
        if (is_listening_socket(fd))
            count = keep(fd, fds, count);
        else
            close(fd);
    }
    if (dir)
        closedir(dir);
    close(pidfd);
    return count;
}

int takeover_collect(const pid_t *pids, int pid_count, int **out)
{
    int count;

    *out = NULL;
    count = collect_inherited(out, 0);
    if (count == 0)
        for (int i = 0; i < pid_count; i++)
            count = collect_from(pids[i], out, count);
    return count;
}

/* "4,7,9": the descriptors, made inheritable. Runs in the child, between fork and exec. */
static char *list_listeners(const struct app *app)
{
    size_t room = 1, used = 0;
    char *list;

    for (int i = 0; i < app->bind_count; i++)
        room += (size_t)app->binds[i]->fd_count * 12;
    list = calloc(1, room);
    for (int i = 0; list && i < app->bind_count; i++) {
        const struct bind *b = app->binds[i];

        for (int k = 0; k < b->fd_count && !b->is_inherited; k++) {
            fcntl(b->fds[k], F_SETFD, 0);
            used += (size_t)snprintf(list + used, room - used, "%s%d", used ? "," : "", b->fds[k]);
        }
        for (int k = 0; k < b->fd_count && b->is_inherited; k++)
            fcntl(b->fds[k], F_SETFD, 0); /* fd@N keeps its number */
    }
    return list;
}

/* The same words without a former -sf or -st, then "-sf OWN". */
static char **replacement_argv(int argc, char **argv, pid_t own, char *number, size_t number_bytes)
{
    char **words = calloc((size_t)argc + 3, sizeof(*words));
    int n = 0;

    if (!words)
        return NULL;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "-sf") == 0 || strcmp(argv[i], "-st") == 0) {
            while (i + 1 < argc && argv[i + 1][0] != '-')
                i++;
            continue;
        }
        words[n++] = argv[i];
    }
    snprintf(number, number_bytes, "%d", (int)own);
    words[n++] = (char *)(uintptr_t)"-sf";
    words[n] = number;
    return words;
}

pid_t takeover_start(int argc, char **argv, const struct app *app)
{
    char number[16], byte;
    pid_t own = getpid(), child;
    char **words = replacement_argv(argc, argv, own, number, sizeof(number));
    int ends[2];
    sigset_t none;

    if (!words || pipe2(ends, O_CLOEXEC) != 0) {
        free(words);
        return -1;
    }
    child = fork();
    if (child == 0) {
        char *list = list_listeners(app);

        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        if (list && setenv(TAKEOVER_VARIABLE, list, 1) == 0)
            execv("/proc/self/exe", words);
        _exit(127);
    }
    close(ends[1]);
    /* Ends when the child has become the new program, or could not. */
    if (child > 0 && read(ends[0], &byte, 1) > 0)
        errno = 0;
    close(ends[0]);
    free(words);
    return child;
}
