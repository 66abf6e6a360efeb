/*
 * Several runs that answer one question: the greatest rate that a server stands, and the fewest threads (or whatever
 * else its command takes) that hold a rate.
 */
#include "cmd/bench_print.h"
#include "cmd/bench_run.h"

#include "base/clock.h"
#include "measure/svg.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STEP_US 3000000u
#define PROBE_US 1000000u
#define HOLD_US 5000000u
#define STEPS_MAX 12
#define RATE_PRECISION 0.02 /* ends once the bounds are that near to each other */
#define RATE_SHORT 0.99     /* of the asked rate; less has not been held */
#define READY_US 15000000u
#define STOP_US 5000000u
#define COMMAND_BYTES 4096

/* What a run at a rate came to. */
struct verdict {
    bool held;
    double rate, p99_us;
    uint64_t errors;
    bool client_is_limit;
    double server_percent;
};

/* 0, or an exit status: the run could not be started, or was interrupted. */
static int try_rate(const struct load_plan *base, double rate, enum load_arrivals arrivals,
                    uint64_t duration_us, int64_t p99_limit_us, int server_pid, struct verdict *v)
{
    struct load_plan plan = *base;
    struct bench_run run;
    int status;

    plan.arrivals = arrivals;
    plan.rate = rate;
    plan.request_limit = 0;
    plan.duration_us = duration_us;
    plan.interval_us = 0;
    status = bench_run(&run, &plan, server_pid, false);
    if (status == 0) {
        v->rate = bench_rate(run.result);
        v->p99_us = (double)histogram_percentile_us(run.result->latency, 99);
        v->errors = bench_errors(run.result);
        v->client_is_limit = bench_client_is_limit(run.result);
        v->server_percent = server_pid ? bench_server_percent(&run.server) : 0;
        v->held = v->errors == 0 && run.result->requests > 0 && v->rate >= rate * RATE_SHORT &&
                  (p99_limit_us == 0 || v->p99_us <= (double)p99_limit_us);
        if (bench_is_interrupted())
            status = 130;
    }
    bench_run_release(&run);
    return status;
}

static const char *why_not(const struct verdict *v, double rate, int64_t p99_limit_us)
{
    return v->held                            ? "held"
           : v->errors                        ? "errors"
           : v->client_is_limit               ? "not held: the client is the limit"
           : v->rate < rate * RATE_SHORT      ? "not held: too few answers"
           : v->p99_us > (double)p99_limit_us ? "p99 above the limit"
                                              : "nothing was answered";
}

static void print_step(FILE *out, double rate, const struct verdict *v, int64_t p99_limit_us)
{
    char p99[SVG_TEXT_BYTES];

    fprintf(out, "%12.1f %12.1f %10s %8llu  %s\n", rate, v->rate, svg_format(v->p99_us, SVG_UNIT_US, p99),
            (unsigned long long)v->errors, why_not(v, rate, p99_limit_us));
    fflush(out);
}

static void put_limit_json(const struct bench_plan *plan, const struct bench_args *args, double best,
                           const struct verdict *v)
{
    printf("{\"tool\": \"sallyport bench\", \"version\": \"" SP_VERSION
           "\", \"find_limit\": {\"p99_limit_us\": %lld, "
           "\"connections\": %u, \"rate\": %.3f, \"measured_rate\": %.3f, \"p99_us\": %.0f}}\n",
           (long long)args->p99_limit_us, plan->load.connections, best, best > 0 ? v->rate : 0,
           best > 0 ? v->p99_us : 0);
}

/*
 * The first guess is what a closed loop reaches; from there the two bounds, the greatest rate that held and the
 * least that did not, close in on each other. Arrivals are constant: the number of Poisson's in a few seconds varies by more
 * than what counts as held.
 */
int bench_find_limit(struct bench_plan *plan, const struct bench_args *args)
{
    uint64_t step_us = args->duration_us ? (uint64_t)args->duration_us : STEP_US;
    FILE *out = args->json ? stderr : stdout;
    struct verdict v = {0}, best_verdict = {0};
    double low = 0, high = 0, rate;
    char limit[SVG_TEXT_BYTES];
    int status;

    status = try_rate(&plan->load, 0, LOAD_CLOSED, PROBE_US, 0, 0, &v);
    if (status != 0)
        return status;
    if (v.rate <= 0) {
        fprintf(stderr, "sallyport bench: --find-limit: %s is not answering\n", plan->urls[0]);
        return 1;
    }
    fprintf(out, "%s: the greatest rate with a p99 of at most %s, without an error\n%12s %12s %10s %8s\n",
            plan->urls[0], svg_format((double)args->p99_limit_us, SVG_UNIT_US, limit), "asked/s",
            "answered/s", "p99", "errors");
    rate = v.rate * 0.7;
    for (unsigned i = 0; i < STEPS_MAX && status == 0; i++) {
        status = try_rate(&plan->load, rate, LOAD_CONSTANT, step_us, args->p99_limit_us, 0, &v);
        if (status != 0)
            break;
        print_step(out, rate, &v, args->p99_limit_us);
        if (v.held) {
            low = rate;
            best_verdict = v;
        } else {
            high = rate;
        }
        if (low > 0 && high > 0 && high - low <= low * RATE_PRECISION)
            break;
        rate = high <= 0 ? rate * 1.3 : low > 0 ? (low + high) / 2 : high / 2;
        if (rate < 1)
            break;
    }
    if (args->json)
        put_limit_json(plan, args, low, &best_verdict);
    else if (low > 0)
        printf("limit: %.1f requests/s, p99 %s\n", low, svg_format(best_verdict.p99_us, SVG_UNIT_US, limit));
    else
        printf("limit: no rate was held\n");
    return status != 0 ? status : low > 0 ? 0 : 1;
}

/* --- the fewest that hold a rate ------------------------------------------------------------- */

static bool port_answers(const struct addr *addr)
{
    struct pollfd p = {.events = POLLOUT};
    socklen_t len;
    int error = 0;
    bool answers = false;

    p.fd = socket(addr->u.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (p.fd < 0)
        return false;
    len = sizeof(error);
    if (connect(p.fd, &addr->u.sa, addr->len) == 0)
        answers = true;
    else if (errno == EINPROGRESS && poll(&p, 1, 500) == 1)
        answers = getsockopt(p.fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == 0;
    close(p.fd);
    return answers;
}

/* The command with every {NAME} replaced; SP_ETOOBIG. */
static int fill_command(const struct bench_args *args, uint64_t value, char out[COMMAND_BYTES])
{
    char word[64];
    struct str rest = str_of(args->command);
    size_t used = 0;

    (void)snprintf(word, sizeof(word), "{%.*s}", STR_FMT(args->sweep_name));
    for (;;) {
        size_t at = str_find(rest, str_of(word));
        int n = at < rest.len ? snprintf(out + used, COMMAND_BYTES - used, "%.*s%llu", (int)at, rest.ptr,
                                         (unsigned long long)value)
                              : snprintf(out + used, COMMAND_BYTES - used, "%.*s", STR_FMT(rest));

        if (n < 0 || (size_t)n >= COMMAND_BYTES - used)
            return SP_ETOOBIG;
        used += (size_t)n;
        if (at >= rest.len)
            return 0;
        rest = str_from(rest, at + strlen(word));
    }
}

static pid_t start_command(const char *command)
{
    pid_t pid = fork();

    if (pid == 0) {
        /* A group of its own, so that it ends with everything it has started. */
        setpgid(0, 0);
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
        signal(SIGPIPE, SIG_DFL);
        /* Its output is not to be mistaken for ours. */
        dup2(STDERR_FILENO, STDOUT_FILENO);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    if (pid > 0)
        setpgid(pid, pid);
    return pid;
}

static void pause_briefly(void)
{
    const struct timespec pause = {.tv_nsec = 10000000};

    nanosleep(&pause, NULL);
}

/* SIGTERM, and SIGKILL to what is left of the group. The port is free, or was not ours, when this returns. */
static void stop_command(pid_t pid, const struct addr *addr)
{
    uint64_t start_us = clock_now_us();
    bool gone = false;

    kill(-pid, SIGTERM);
    while (!gone && clock_now_us() - start_us < STOP_US) {
        if (waitpid(pid, NULL, WNOHANG) == pid)
            gone = true;
        else
            pause_briefly();
    }
    kill(-pid, SIGKILL);
    if (!gone)
        waitpid(pid, NULL, 0);
    while (port_answers(addr) && clock_now_us() - start_us < 2 * STOP_US)
        pause_briefly();
}

/* 0 when the port answers; 1 after a message. */
static int wait_ready(pid_t pid, const struct addr *addr, const char *command)
{
    uint64_t start_us = clock_now_us();

    while (!port_answers(addr)) {
        int how;

        if (bench_is_interrupted())
            return 130;
        if (waitpid(pid, &how, WNOHANG) == pid) {
            fprintf(stderr, "sallyport bench: --sweep: '%s' ended before its port answered: %s %d\n", command,
                    WIFEXITED(how) ? "exit status" : "signal",
                    WIFEXITED(how) ? WEXITSTATUS(how) : WTERMSIG(how));
            kill(-pid, SIGKILL);
            return 1;
        }
        if (clock_now_us() - start_us > READY_US) {
            fprintf(
                stderr,
                "sallyport bench: --sweep: the port of the URL does not answer %u s after '%s' was started\n",
                READY_US / 1000000, command);
            return 1;
        }
        pause_briefly();
    }
    return 0;
}

static int try_value(const struct bench_plan *plan, const struct bench_args *args, uint64_t value,
                     struct verdict *v)
{
    const struct addr *addr = &plan->targets[0].addr;
    uint64_t duration_us = args->duration_us ? (uint64_t)args->duration_us : HOLD_US;
    struct load_plan load = plan->load;
    char command[COMMAND_BYTES];
    pid_t pid;
    int status;

    if (fill_command(args, value, command) != 0) {
        fprintf(stderr, "sallyport bench: --sweep: the command is longer than %d bytes\n", COMMAND_BYTES - 1);
        return 2;
    }
    pid = start_command(command);
    if (pid < 0) {
        fprintf(stderr, "sallyport bench: --sweep: cannot start a process: %s\n", strerror(errno));
        return 1;
    }
    status = wait_ready(pid, addr, command);
    if (status == 0)
        status = try_rate(&load, args->hold, LOAD_CONSTANT, duration_us, args->p99_limit_us, (int)pid, v);
    stop_command(pid, addr);
    return status;
}

int bench_hold(struct bench_plan *plan, const struct bench_args *args)
{
    FILE *out = args->json ? stderr : stdout;
    uint64_t value = args->sweep_low;
    struct verdict v = {0};
    int status = 0;
    char p99[SVG_TEXT_BYTES];

    /* What is held is new connections. */
    if (!plan->load.handshake_only && !plan->load.close) {
        fprintf(stderr, "sallyport bench: --hold: counts new connections: expected --close or "
                        "--handshake-only beside it\n");
        return 2;
    }
    if (port_answers(&plan->targets[0].addr)) {
        fprintf(stderr,
                "sallyport bench: --sweep: something answers on the port of %s already; stop it first\n",
                plan->urls[0]);
        return 1;
    }
    fprintf(out, "%s: %.10g new connections/s\n%12.*s %12s %10s %8s %8s\n", plan->urls[0], args->hold,
            STR_FMT(args->sweep_name), "answered/s", "p99", "errors", "CPU");
    for (; value <= args->sweep_high && status == 0; value++) {
        status = try_value(plan, args, value, &v);
        if (status != 0)
            break;
        fprintf(out, "%12llu %12.1f %10s %8llu %6.0f %%  %s\n", (unsigned long long)value, v.rate,
                svg_format(v.p99_us, SVG_UNIT_US, p99), (unsigned long long)v.errors, v.server_percent,
                why_not(&v, args->hold, 0));
        fflush(out);
        if (v.held)
            break;
    }
    if (status != 0)
        return status;
    if (args->json)
        printf("{\"tool\": \"sallyport bench\", \"version\": \"" SP_VERSION
               "\", \"hold\": {\"rate_asked\": %.10g, "
               "\"fewest\": %lld, \"rate\": %.3f, \"p99_us\": %.0f, \"server_cpu_percent\": %.2f}}\n",
               args->hold, v.held ? (long long)value : -1, v.rate, v.p99_us, v.server_percent);
    else if (v.held)
        printf("fewest: %.*s=%llu\n", STR_FMT(args->sweep_name), (unsigned long long)value);
    else
        printf("fewest: none of %s held it\n", args->sweep);
    return v.held ? 0 : 1;
}
