// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* The run: each size in each mode, timed by threads of its own, as a row. */

#include "sweep_kmod.h"

#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/kernel_stat.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/tick.h>

/* One row while it is measured. */
struct point {
    struct spk_run *run;
    enum spk_mode mode;
    size_t bytes;
    unsigned threads, depth;
    struct seat *seats;
    struct completion go, finished;
    bool abandoned; /* not every thread could be made */
    u64 deadline_ns;
    atomic_t running;
    u64 end_ns, idle_end_ns;
};

struct seat {
    struct point *point;
    struct spk_worker *worker;
    struct task_struct *task;
    int status;
};

/*
 * Idle time of all CPUs. The tickless kernel keeps it to the microsecond; else it is counted in
 * ticks. Waiting for a disk is idle too.
 */
static u64 idle_ns(void)
{
    u64 sum = 0;
    int cpu;

    for_each_online_cpu(cpu)
    {
        u64 idle_us = get_cpu_idle_time_us(cpu, NULL),
            iowait_us = get_cpu_iowait_time_us(cpu, NULL);

        if (idle_us != (u64)-1 && iowait_us != (u64)-1)
            sum += (idle_us + iowait_us) * 1000;
        else
            sum +=
                kcpustat_cpu(cpu).cpustat[CPUTIME_IDLE] + kcpustat_cpu(cpu).cpustat[CPUTIME_IOWAIT];
    }
    return sum;
}

struct spk_worker_shape spk_run_shape(const struct spk_run *run, size_t bytes, unsigned depth)
{
    return (struct spk_worker_shape){
        .cipher = run->cipher,
        .op = run->params.op,
        .bytes = bytes,
        .depth = depth,
        .timeout_ms = run->params.timeout_ms,
        .in_place = run->params.in_place,
        .stop = &run->stop,
        .iv = run->iv,
        .input = run->input,
    };
}

static int seat_thread(void *arg)
{
    struct seat *seat = arg;
    struct point *point = seat->point;

    wait_for_completion_interruptible(&point->go); /* a kernel thread has no signals */
    if (!point->abandoned)
        seat->status = spk_worker_run(seat->worker, point->deadline_ns, 0);
    if (atomic_dec_and_test(&point->running)) {
        /* Both here, so that time and idle time are of the same window. */
        point->idle_end_ns = idle_ns();
        point->end_ns = ktime_get_ns();
        complete(&point->finished);
    }
    return 0;
}

/* Threads that wait for `go`, each on a CPU of its own while there are enough. */
static int seat_all(struct point *point)
{
    struct spk_worker_shape shape = spk_run_shape(point->run, point->bytes, point->depth);
    int cpu = cpumask_first(cpu_online_mask);
    unsigned i;

    for (i = 0; i < point->threads; i++) {
        struct seat *seat = &point->seats[i];
        struct task_struct *task;

        seat->point = point;
        seat->worker = spk_worker_new(&shape);
        if (!seat->worker)
            return -ENOMEM;
        task = kthread_create(seat_thread, seat, "sallyport/%u", i);
        if (IS_ERR(task))
            return PTR_ERR(task);
        kthread_bind(task, cpu);
        seat->task = get_task_struct(task);
        atomic_inc(&point->running);
        wake_up_process(task);
        cpu = cpumask_next(cpu, cpu_online_mask);
        if (cpu >= nr_cpu_ids)
            cpu = cpumask_first(cpu_online_mask);
    }
    return 0;
}

static void unseat_all(struct point *point)
{
    unsigned i;

    /* A thread that is stopped before it first ran would never run. */
    if (atomic_read(&point->running) != 0)
        wait_for_completion_interruptible(&point->finished);
    for (i = 0; i < point->threads; i++) {
        struct seat *seat = &point->seats[i];

        if (seat->task) {
            kthread_stop(seat->task);
            put_task_struct(seat->task);
        }
    }
}

/* Adds up what the workers counted. */
static int summarise(struct point *point, struct spk_row *row, struct spk_counts *sum)
{
    struct spk_run *run = point->run;
    bool right = true;
    unsigned i;
    int gone = 0;

    for (i = 0; i < point->threads; i++) {
        const struct spk_counts *counts = &point->seats[i].worker->counts;

        sum->requests += counts->requests;
        sum->bytes += counts->bytes;
        sum->async_requests += counts->async_requests;
        sum->errors += counts->errors;
        sum->lost += counts->lost;
        if (sum->first_error == 0)
            sum->first_error = counts->first_error;
        if (point->seats[i].worker->gone)
            gone = counts->first_error;
        spk_histogram_merge(&sum->latency, &counts->latency);
        right = right && spk_check_after(run, point->seats[i].worker);
    }
    row->requests = sum->requests;
    row->bytes = sum->bytes;
    row->async_requests = sum->async_requests;
    row->errors = sum->errors;
    row->p50_ns = spk_histogram_quantile(&sum->latency, 500);
    row->p99_ns = spk_histogram_quantile(&sum->latency, 990);
    row->status = sum->lost            ? "lost"
                  : gone               ? "gone"
                  : !right             ? "wrong"
                  : sum->requests == 0 ? "failed"
                  : run->generic       ? "ok"
                                       : "unchecked";
    spk_report_row(run, row);
    if (sum->lost)
        return spk_report_failure(
            run, -ETIMEDOUT,
            "%s did not complete %llu request(s) of %zu bytes within %u ms; what it holds is not "
            "freed, and the module stays until it completes them",
            run->cipher->driver, sum->lost, point->bytes, run->params.timeout_ms);
    if (gone)
        return spk_report_failure(run, gone, "%s: the device is gone (%pe)", run->cipher->driver,
                                  ERR_PTR(gone));
    if (!right)
        return spk_report_failure(run, -EBADMSG,
                                  "%s gave a wrong result at %zu bytes during the timed run",
                                  run->cipher->driver, point->bytes);
    if (sum->requests == 0 && sum->first_error != 0)
        return spk_report_failure(run, sum->first_error,
                                  "%s failed every request of %zu bytes: %pe", run->cipher->driver,
                                  point->bytes, ERR_PTR(sum->first_error));
    return run->stop ? -EINTR : 0;
}

static int time_point(struct point *point, struct spk_row *row)
{
    unsigned cpus = num_online_cpus();
    u64 idle_start_ns, start_ns;
    int status = seat_all(point);

    point->abandoned = status != 0;
    idle_start_ns = idle_ns();
    start_ns = ktime_get_ns();
    point->deadline_ns = start_ns + (u64)point->run->params.msec * NSEC_PER_MSEC;
    complete_all(&point->go);
    unseat_all(point);
    row->elapsed_ns = point->end_ns - start_ns;
    row->busy_ns = cpus == num_online_cpus()
                       ? spk_busy_ns(cpus, row->elapsed_ns, idle_start_ns, point->idle_end_ns)
                       : SPK_UNKNOWN;
    return status;
}

static int measure(struct spk_run *run, size_t bytes, enum spk_mode mode)
{
    struct point point = {
        .run = run,
        .mode = mode,
        .bytes = bytes,
        .threads = mode == SPK_MODE_SINGLE ? 1 : run->params.threads,
        .depth = mode == SPK_MODE_SINGLE ? 1 : run->params.depth,
    };
    struct spk_row row = {
        .mode = mode, .request_bytes = bytes, .threads = point.threads, .depth = point.depth};
    struct spk_counts *sum = kvzalloc(sizeof(*sum), GFP_KERNEL);
    int status = -ENOMEM;
    unsigned i;

    init_completion(&point.go);
    init_completion(&point.finished);
    atomic_set(&point.running, 0);
    point.seats = kvcalloc(point.threads, sizeof(*point.seats), GFP_KERNEL);
    if (sum && point.seats)
        status = time_point(&point, &row);
    if (status == 0)
        status = summarise(&point, &row, sum);
    else
        spk_report_failure(run, status, "%u threads with %u requests of %zu bytes each: %pe",
                           point.threads, point.depth, bytes, ERR_PTR(status));
    for (i = 0; point.seats && i < point.threads; i++)
        spk_worker_free(point.seats[i].worker);
    kvfree(point.seats);
    kvfree(sum);
    return status;
}

void spk_run_execute(struct spk_run *run)
{
    const struct spk_params *params = &run->params;
    int status = 0;
    u64 size;

    for (size = params->size_min; size != 0 && status == 0;
         size = spk_size_next(size, params->size_max)) {
        status = spk_check_prepare(run, size);
        if (status == 0)
            status = spk_check_before(run, size);
        if (status == 0 && params->mode != SPK_MODE_CONCURRENT)
            status = measure(run, size, SPK_MODE_SINGLE);
        if (status == 0 && params->mode != SPK_MODE_SINGLE)
            status = measure(run, size, SPK_MODE_CONCURRENT);
    }
    if (status == 0)
        spk_report_done(run);
}
