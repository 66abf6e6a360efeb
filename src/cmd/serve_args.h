/*
 * The load balancer's command line, which is HAProxy's.
 */
#ifndef SP_CMD_SERVE_ARGS_H
#define SP_CMD_SERVE_ARGS_H

#include <stdbool.h>
#include <sys/types.h>

struct serve_args {
    const char **files;
    int file_count;
    bool check;        /* -c */
    bool verbose;      /* -V */
    bool quiet;        /* -q */
    bool debug;        /* -d: stays in the foreground */
    bool foreground;   /* -db */
    bool daemon;       /* -D */
    bool zero_warning; /* -dW */
    int show_version;  /* 1 with -v, 2 with -vv */
    const char *pidfile, *local_peer, *condition, *directory;
    int memory_mb;     /* 0: no limit */
    int maxconn;       /* 0: the configuration's */
    pid_t *old_pids;   /* -sf, -st */
    int old_pid_count;
    bool old_stop;     /* -st: they stop instead of finishing */
};

/* Prints what is wrong and returns the exit code, or -1 to go on. */
int serve_args_parse(int argc, char **argv, struct serve_args *out);
void serve_args_release(struct serve_args *a);

#endif
