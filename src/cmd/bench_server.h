/*
 * What a server costs while it is measured: CPU time and memory of a process and all its descendants, from /proc.
 */
#ifndef SP_CMD_BENCH_SERVER_H
#define SP_CMD_BENCH_SERVER_H

#include <stdint.h>

struct bench_server {
    int pid; /* 0: none was asked for */
    double user_s, system_s; /* between start and stop; to a hundredth of a second, the kernel's clock tick */
    uint64_t duration_us;
    uint64_t rss_max_kib; /* the greatest sum over the tree that a sample saw; pages shared by processes count in each */
    double user_before_s, system_before_s;
    uint64_t start_us;
};

/* SP_ENOENT: there is no such process. Then the other two do nothing. */
int bench_server_start(struct bench_server *s, int pid);
/* Looks at memory and CPU time; several times a second. The last look counts if the process has ended. */
void bench_server_sample(struct bench_server *s);

#endif
