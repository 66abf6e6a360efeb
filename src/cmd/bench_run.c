#include "cmd/bench_run.h"

#include "base/clock.h"
#include "measure/svg.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define POLL_US 20000
#define SAMPLE_US 200000
#define PROGRESS_US 500000
#define DESCRIPTORS_SPARE 64 /* files, event loops, the library's own */
#define DESCRIPTORS_A_THREAD 8

/* What the signal handler reaches: one run at a time. */
static struct load *volatile running;
static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    struct load *load = running;

    (void)number;
    interrupted = 1;
    if (load)
        load_stop(load);
}

void bench_catch_signals(void)
{
    /* The second signal finds the system's own handling again. */
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

bool bench_is_interrupted(void)
{
    return interrupted != 0;
}

int bench_raise_limits(const struct load_plan *plan)
{
    rlim_t need =
        (rlim_t)plan->connections + (rlim_t)plan->threads * DESCRIPTORS_A_THREAD + DESCRIPTORS_SPARE;
    struct rlimit limit, wanted;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= need)
        return 0;
    wanted = limit;
    wanted.rlim_cur = need;
    /* Root may raise the hard limit too. */
    if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max < need)
        wanted.rlim_max = need;
    if (setrlimit(RLIMIT_NOFILE, &wanted) == 0)
        return 0;
    fprintf(
        stderr,
        "sallyport bench: -c: %u connections need %llu descriptors, and the limit is %llu. Raise it before: "
        "'ulimit -n %llu', as root or after a line 'USER hard nofile %llu' in /etc/security/limits.conf\n",
        plan->connections, (unsigned long long)need, (unsigned long long)limit.rlim_max,
        (unsigned long long)need, (unsigned long long)need);
    return 1;
}

/* Seconds until the end by the tighter of the two bounds; negative: unknown. */
static double remaining_s(const struct load_plan *plan, const struct load_progress *p)
{
    double by_time = -1, by_count = -1;

    if (plan->duration_us)
        by_time = plan->duration_us > p->elapsed_us ? (double)(plan->duration_us - p->elapsed_us) / 1e6 : 0;
    if (plan->request_limit && p->requests && p->elapsed_us)
        by_count = (double)(plan->request_limit > p->requests ? plan->request_limit - p->requests : 0) *
                   (double)p->elapsed_us / 1e6 / (double)p->requests;
    if (by_time < 0 || by_count < 0)
        return by_time < 0 ? by_count : by_time;
    return by_time < by_count ? by_time : by_count;
}

static void print_progress(const struct load *load, const struct load_plan *plan)
{
    struct load_progress p;
    char rate[SVG_TEXT_BYTES], p99[SVG_TEXT_BYTES], line[160], end[32] = "";
    double rest;

    load_progress(load, &p);
    rest = remaining_s(plan, &p);
    if (rest >= 0)
        (void)snprintf(end, sizeof(end), ", %.0f s to go", rest);
    (void)snprintf(line, sizeof(line), "%.1f s: %s requests/s, p99 %s, %llu errors%s",
                   (double)p.elapsed_us / 1e6, svg_format(p.rate_per_s, SVG_UNIT_NUMBER, rate),
                   svg_format((double)p.p99_us, SVG_UNIT_US, p99), (unsigned long long)p.errors, end);
    fprintf(stderr, "\r%-78s", line);
    fflush(stderr);
}

static void attend(struct bench_run *run, const struct load_plan *plan, int server_pid, bool show_progress)
{
    const struct timespec pause = {.tv_nsec = POLL_US * 1000};
    uint64_t begin_us = clock_now_us(), sample_us = begin_us, progress_us = begin_us;
    uint64_t end_us = plan->request_limit && plan->duration_us
                          ? begin_us + plan->warmup_us + plan->duration_us
                          : UINT64_MAX;
    bool watching = server_pid && plan->warmup_us == 0;

    while (load_is_running(run->load)) {
        uint64_t now_us;

        nanosleep(&pause, NULL);
        now_us = clock_now_us();
        if (now_us >= end_us)
            load_stop(run->load);
        if (server_pid && !watching && now_us - begin_us >= plan->warmup_us) {
            watching = true;
            bench_server_start(&run->server, server_pid);
        } else if (watching && now_us - sample_us >= SAMPLE_US) {
            sample_us = now_us;
            bench_server_sample(&run->server);
        }
        if (show_progress && now_us - progress_us >= PROGRESS_US) {
            progress_us = now_us;
            print_progress(run->load, plan);
        }
    }
    if (watching)
        bench_server_sample(&run->server);
    if (show_progress)
        fprintf(stderr, "\r%78s\r", "");
}

int bench_run(struct bench_run *run, const struct load_plan *plan, int server_pid, bool show_progress)
{
    int status;

    memset(run, 0, sizeof(*run));
    /* The engine takes one bound; of two, attend sees to the time. */
    run->plan = *plan;
    if (plan->request_limit)
        run->plan.duration_us = 0;
    if (server_pid && bench_server_start(&run->server, server_pid) != 0) {
        fprintf(stderr, "sallyport bench: --server-pid: there is no process %d\n", server_pid);
        return 1;
    }
    status = load_new(&run->load, &run->plan);
    if (status == 0) {
        running = run->load;
        status = load_start(run->load);
    }
    if (status != 0) {
        running = NULL;
        fprintf(stderr, "sallyport bench: cannot start: %s%s%s\n", sp_status_text(status),
                status == SP_EIO ? ": " : "", status == SP_EIO ? strerror(errno) : "");
        return 1;
    }
    /* A signal that came while there was nothing to stop. */
    if (interrupted)
        load_stop(run->load);
    attend(run, plan, server_pid, show_progress);
    run->result = load_wait(run->load);
    running = NULL;
    return 0;
}

void bench_run_release(struct bench_run *run)
{
    load_free(run->load);
    run->load = NULL;
    run->result = NULL;
}
