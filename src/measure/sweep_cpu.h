/*
 * CPU time: of this process, and of the whole system as what is not idle.
 */
#ifndef SP_MEASURE_SWEEP_CPU_H
#define SP_MEASURE_SWEEP_CPU_H

#include <stdint.h>

#define SWEEP_CPU_UNKNOWN UINT64_MAX

struct sweep_cpu {
    uint64_t at_ns;
    uint64_t idle_ns; /* of all CPUs; in steps of 10 ms a CPU; UNKNOWN: the system counts none */
    uint64_t own_ns;  /* user and system time of this process */
};

/* Reading costs some CPU time itself: none of it lies between a reading at the begin and the next at the end. */
void sweep_cpu_begin(struct sweep_cpu *cpu);
void sweep_cpu_end(struct sweep_cpu *cpu);
/*
 * CPUs * time - idle between two readings: what everything on the machine spent, in interrupts and kernel threads too.
 * Never less than what this process alone spent. UNKNOWN: there are no idle times.
 */
uint64_t sweep_cpu_busy_ns(const struct sweep_cpu *from, const struct sweep_cpu *to);
/* Of the first line of /proc/stat: idle and iowait, in ticks; UNKNOWN: it has another form, or counts nothing. */
uint64_t sweep_cpu_idle_ticks(const char *line);

#endif
