#include "measure/sweep_cpu.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define LINE_BYTES 512

uint64_t sweep_cpu_idle_ticks(const char *line)
{
    unsigned long long user, nice_user, kernel, idle, iowait;

    if (strncmp(line, "cpu ", 4) != 0 ||
        sscanf(line + 4, "%llu %llu %llu %llu %llu", &user, &nice_user, &kernel, &idle, &iowait) != 5 || idle == 0)
        return SWEEP_CPU_UNKNOWN;
    return idle + iowait;
}

static uint64_t idle_ns(void)
{
    long hertz = sysconf(_SC_CLK_TCK);
    FILE *file = fopen("/proc/stat", "re");
    uint64_t ticks = SWEEP_CPU_UNKNOWN;
    char line[LINE_BYTES];

    if (!file)
        return SWEEP_CPU_UNKNOWN;
    if (fgets(line, sizeof(line), file) && hertz > 0)
        ticks = sweep_cpu_idle_ticks(line);
    fclose(file);
    return ticks == SWEEP_CPU_UNKNOWN ? ticks : ticks * (1000000000u / (uint64_t)hertz);
}

static uint64_t timeval_ns(struct timeval t)
{
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_usec * 1000u;
}

static uint64_t own_ns(void)
{
    struct rusage usage = {0};

    (void)getrusage(RUSAGE_SELF, &usage);
    return timeval_ns(usage.ru_utime) + timeval_ns(usage.ru_stime);
}

void sweep_cpu_begin(struct sweep_cpu *cpu)
{
    cpu->idle_ns = idle_ns();
    cpu->at_ns = clock_now_ns();
    cpu->own_ns = own_ns();
}

void sweep_cpu_end(struct sweep_cpu *cpu)
{
    cpu->own_ns = own_ns();
    cpu->at_ns = clock_now_ns();
    cpu->idle_ns = idle_ns();
}

uint64_t sweep_cpu_busy_ns(const struct sweep_cpu *from, const struct sweep_cpu *to)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t own = to->own_ns - from->own_ns, all, idle;

    if (from->idle_ns == SWEEP_CPU_UNKNOWN || to->idle_ns == SWEEP_CPU_UNKNOWN || cpus < 1)
        return SWEEP_CPU_UNKNOWN;
    all = (to->at_ns - from->at_ns) * (uint64_t)cpus;
    idle = to->idle_ns > from->idle_ns ? to->idle_ns - from->idle_ns : 0;
    return all > idle && all - idle > own ? all - idle : own;
}
