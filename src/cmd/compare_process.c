#include "cmd/compare_process.h"

#include "base/clock.h"

#include <sallyport/status.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define POLL_MS 10
#define CONNECT_MS 1000

/* What signals have to say; this program's, not a library's. */
static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    if (interrupted) {
        signal(number, SIG_DFL);
        raise(number);
    }
    interrupted = 1;
}

void compare_prepare_process(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal};

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        sigaction(numbers[i], &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

bool compare_is_interrupted(void)
{
    return interrupted;
}

/* --- starting ------------------------------------------------------------------------------ */

static void redirect(const struct compare_command *c, int stdout_fd)
{
    int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND | (c->log_appends ? 0 : O_TRUNC);
    int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int log = c->log_path ? open(c->log_path, flags, 0644) : open("/dev/null", O_WRONLY | O_CLOEXEC);

    if (in < 0 || log < 0)
        return;
    dup2(in, STDIN_FILENO);
    dup2(stdout_fd >= 0 ? stdout_fd : log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
}

/* In the child, and never back. What goes wrong is sent through `report_fd`, which exec closes. */
__attribute__((noreturn)) static void become(const struct compare_command *c, int stdout_fd, int report_fd)
{
    sigset_t none;
    int error = 0;

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    redirect(c, stdout_fd);
    if (c->cpus && sched_setaffinity(0, sizeof(*c->cpus), c->cpus) != 0)
        error = errno;
    if (!error && c->dir && chdir(c->dir) != 0)
        error = errno;
    for (size_t i = 0; !error && c->env && c->env[i]; i++)
        putenv(c->env[i]);
    if (!error) {
        execvp(c->argv[0], c->argv);
        error = errno;
    }
    while (write(report_fd, &error, sizeof(error)) < 0 && errno == EINTR)
        ;
    _exit(127);
}

static int start(const struct compare_command *c, int stdout_fd, pid_t *out)
{
    int report[2], error = 0;
    ssize_t got;
    pid_t pid;

    if (pipe2(report, O_CLOEXEC) != 0)
        return SP_EIO;
    pid = fork();
    if (pid == 0)
        become(c, stdout_fd, report[1]);
    error = pid < 0 ? errno : 0;
    close(report[1]);
    if (pid > 0) {
        setpgid(pid, pid); /* both do it, so that it is done for whoever comes first */
        do
            got = read(report[0], &error, sizeof(error));
        while (got < 0 && errno == EINTR);
        if (got != sizeof(error))
            error = 0;
        if (error)
            waitpid(pid, NULL, 0);
    }
    close(report[0]);
    if (error) {
        errno = error;
        return SP_EIO;
    }
    *out = pid;
    return 0;
}

int compare_start(const struct compare_command *command, pid_t *out)
{
    return start(command, -1, out);
}

/* --- waiting and stopping ------------------------------------------------------------------ */

bool compare_is_running(pid_t pid)
{
    siginfo_t info = {0};

    /* Not reaped: its number stays its own until compare_stop has seen to the group. */
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

bool compare_answers(const struct addr *addr)
{
    int fd = socket(addr->u.sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int error = 0;
    socklen_t len = sizeof(error);
    struct pollfd poller = {.fd = fd, .events = POLLOUT};
    bool yes = false;

    if (fd < 0)
        return false;
    if (connect(fd, &addr->u.sa, addr->len) == 0)
        yes = true;
    else if (errno == EINPROGRESS && poll(&poller, 1, CONNECT_MS) == 1)
        yes = getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == 0;
    close(fd);
    return yes;
}

int compare_wait_ready(pid_t pid, const struct addr *addr, uint64_t timeout_us)
{
    uint64_t end = clock_now_us() + timeout_us;

    for (;;) {
        if (compare_is_interrupted())
            return SP_ECANCELED;
        if (!compare_is_running(pid))
            return SP_EEOF;
        if (compare_answers(addr))
            return compare_is_running(pid) ? 0 : SP_EEOF;
        if (clock_now_us() >= end)
            return SP_ETIMEDOUT;
        poll(NULL, 0, POLL_MS);
    }
}

/* The leader stays a zombie as long as it is in the group, so a group of nothing else counts as gone. */
static bool group_is_gone(pid_t pid, bool *reaped)
{
    if (!*reaped && !compare_is_running(pid)) {
        waitpid(pid, NULL, 0);
        *reaped = true;
    }
    /* Those that it left behind are ours by now (a subreaper's), and count until somebody has waited for them. */
    while (*reaped && waitpid(-pid, NULL, WNOHANG) > 0)
        ;
    return *reaped && kill(-pid, 0) != 0 && errno == ESRCH;
}

static bool wait_gone(pid_t pid, int signal_number, uint64_t patience_us, bool *reaped)
{
    uint64_t end = clock_now_us() + patience_us;
    bool told_all = false;

    while (!group_is_gone(pid, reaped)) {
        if (clock_now_us() >= end)
            return false;
        /* A leader that left others behind, such as a shell, will not tell them any more. */
        if (*reaped && signal_number && !told_all) {
            kill(-pid, signal_number);
            told_all = true;
        }
        poll(NULL, 0, POLL_MS);
    }
    return true;
}

bool compare_stop(pid_t pid, int signal_number, uint64_t patience_us)
{
    bool reaped = false;

    /* To the leader: masters stop their workers in their own way. */
    if (signal_number)
        kill(pid, signal_number);
    if (wait_gone(pid, signal_number, patience_us, &reaped))
        return true;
    kill(-pid, SIGKILL);
    wait_gone(pid, 0, 2000000, &reaped);
    return false;
}

/* --- commands ------------------------------------------------------------------------------ */

struct sink {
    char *mem;
    size_t len, size, max;
};

/* What is there to read, now. 0, SP_EEOF at the end, or an error. */
static int drain(int fd, struct sink *s)
{
    for (;;) {
        ssize_t got;

        if (s->len + 1 >= s->size) {
            size_t size = s->size ? s->size * 2 : 16384;
            char *mem = s->len < s->max ? realloc(s->mem, size) : NULL;

            if (!mem)
                return s->len < s->max ? SP_ENOMEM : SP_ETOOBIG;
            s->mem = mem;
            s->size = size;
        }
        got = read(fd, s->mem + s->len, s->size - s->len - 1);
        if (got == 0)
            return SP_EEOF;
        if (got < 0)
            return errno == EAGAIN || errno == EINTR ? 0 : SP_EIO;
        s->len += (size_t)got;
        s->mem[s->len] = '\0';
    }
}

/* Until the child has ended and, with a pipe, all that it wrote has been read. */
static int follow(pid_t pid, int fd, struct sink *s, uint64_t timeout_us)
{
    uint64_t end = clock_now_us() + timeout_us;
    int status = fd >= 0 ? 0 : SP_EEOF;

    for (;;) {
        struct pollfd poller = {.fd = fd, .events = POLLIN};

        poll(&poller, status == 0 ? 1 : 0, POLL_MS);
        if (compare_is_interrupted())
            return SP_ECANCELED;
        if (clock_now_us() >= end)
            return SP_ETIMEDOUT;
        if (status == 0)
            status = drain(fd, s);
        if (status != 0 && status != SP_EEOF)
            return status;
        if (!compare_is_running(pid)) {
            /* A grandchild may hold the pipe for ever: what the child wrote itself is in it by now. */
            if (status == 0)
                status = drain(fd, s);
            return status == SP_EEOF ? 0 : status;
        }
    }
}

int compare_run(const struct compare_command *command, uint64_t timeout_us, size_t max_bytes, char **output,
                size_t *output_bytes, int *exit_status)
{
    struct sink sink = {.max = max_bytes};
    siginfo_t info = {0};
    int pipe_fds[2] = {-1, -1};
    pid_t pid = 0;
    int status, saved;

    if (output && pipe2(pipe_fds, O_CLOEXEC) != 0)
        return SP_EIO;
    status = start(command, pipe_fds[1], &pid);
    saved = errno;
    if (pipe_fds[1] >= 0)
        close(pipe_fds[1]);
    if (status == 0) {
        if (output)
            fcntl(pipe_fds[0], F_SETFL, O_NONBLOCK);
        status = follow(pid, pipe_fds[0], &sink, timeout_us);
        saved = errno;
        if (status == 0 && waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0)
            *exit_status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
        compare_stop(pid, 0, 0);
    }
    if (pipe_fds[0] >= 0)
        close(pipe_fds[0]);
    errno = saved;
    if (status != 0 || !output) {
        free(sink.mem);
        return status;
    }
    *output = sink.mem; /* NULL when nothing was written */
    *output_bytes = sink.len;
    return 0;
}
