#include "cmd/serve_args.h"

#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>

static void print_usage(FILE *out)
{
    fputs("Sallyport " SP_VERSION ": TLS-terminating HTTP load balancer that reads HAProxy's configuration language\n"
          "Usage: sallyport [-f FILE|FOLDER]... [options] [-- FILE...]\n"
          "  -f FILE      read this file (a folder: its *.cfg files in name order); may be repeated\n"
          "  -c           check the configuration and exit: 0 valid, 1 not\n"
          "  -cc EXPR     evaluate a condition and exit: 0 true, 1 false or in error\n"
          "  -v, -vv      version; with build details\n"
          "  -V, -q       verbose; quiet\n"
          "  -d, -db      stay in the foreground whatever the configuration says\n"
          "  -dW          treat warnings as errors; other -dX flags are accepted\n"
          "  -D           go into the background\n"
          "  -p FILE      write the process number there\n"
          "  -L NAME      local peer name\n"
          "  -m MB        limit on the process's memory\n"
          "  -n MAXCONN   limit on connections, over the configuration's\n"
          "  -C DIR       change to this folder before files are read\n"
          "  -sf PID...   when started, let these processes finish and exit\n"
          "  -st PID...   when started, stop these processes\n"
          "Subcommands: sallyport origin [options]      the built-in web server\n"
          "             sallyport keywords [--markdown] the configuration language's tables\n",
          out);
}

static int bad(const char *word, const char *expected)
{
    fprintf(stderr, "sallyport: '%s': %s\n", word, expected);
    return 1;
}

static int add_file(struct serve_args *a, const char *path)
{
    const char **grown = realloc(a->files, sizeof(*grown) * (size_t)(a->file_count + 1));

    if (!grown)
        return bad(path, "out of memory");
    a->files = grown;
    a->files[a->file_count++] = path;
    return -1;
}

/* All the numbers that follow -sf or -st. */
static int take_pids(int argc, char **argv, int *at, struct serve_args *a)
{
    while (*at + 1 < argc && argv[*at + 1][0] != '-') {
        uint64_t pid;
        pid_t *grown;

        if (str_to_u64(str_of(argv[++*at]), &pid) != 0 || pid == 0 || pid > 0x7fffffff)
            return bad(argv[*at], "expected a process number after -sf or -st");
        grown = realloc(a->old_pids, sizeof(*grown) * (size_t)(a->old_pid_count + 1));
        if (!grown)
            return bad(argv[*at], "out of memory");
        a->old_pids = grown;
        a->old_pids[a->old_pid_count++] = (pid_t)pid;
    }
    return -1;
}

static int take_number(const char *option, const char *text, int *out)
{
    uint64_t value;

    if (str_to_u64(str_of(text), &value) != 0 || value > 1000000000) {
        fprintf(stderr, "sallyport: '%s': expected a number after %s\n", text, option);
        return 1;
    }
    *out = (int)value;
    return -1;
}

/* Options without a value: true when `word` is one of them. */
static bool take_flag(const char *word, struct serve_args *a)
{
    if (strcmp(word, "-c") == 0)
        a->check = true;
    else if (strcmp(word, "-v") == 0)
        a->show_version = 1;
    else if (strcmp(word, "-vv") == 0)
        a->show_version = 2;
    else if (strcmp(word, "-V") == 0)
        a->verbose = true;
    else if (strcmp(word, "-q") == 0)
        a->quiet = true;
    else if (strcmp(word, "-d") == 0)
        a->debug = true;
    else if (strcmp(word, "-db") == 0)
        a->foreground = true;
    else if (strcmp(word, "-dW") == 0)
        a->zero_warning = true;
    else if (strcmp(word, "-D") == 0)
        a->daemon = true;
    else
        return strncmp(word, "-d", 2) == 0;
    return true;
}

static int take_value(const char *word, const char *value, struct serve_args *a)
{
    if (!value)
        return bad(word, "expected a value after this option");
    switch (word[1]) {
    case 'f':
        return add_file(a, value);
    case 'p':
        a->pidfile = value;
        return -1;
    case 'L':
        a->local_peer = value;
        return -1;
    case 'C':
        a->directory = value;
        return -1;
    case 'm':
        return take_number(word, value, &a->memory_mb);
    case 'n':
        return take_number(word, value, &a->maxconn);
    case 'c':
        a->condition = value;
        return -1;
    default:
        return bad(word, "is not an option; see --help");
    }
}

static int take_option(int argc, char **argv, int *at, struct serve_args *a)
{
    static const char *const with_value[] = {"-f", "-p", "-L", "-C", "-m", "-n", "-cc"};
    const char *word = argv[*at];

    if (strcmp(word, "-sf") == 0 || strcmp(word, "-st") == 0) {
        a->old_stop = word[2] == 't';
        return take_pids(argc, argv, at, a);
    }
    for (size_t i = 0; i < sizeof(with_value) / sizeof(with_value[0]); i++) {
        if (strcmp(word, with_value[i]) == 0) {
            const char *value = *at + 1 < argc ? argv[*at + 1] : NULL;

            ++*at;
            return take_value(word, value, a);
        }
    }
    if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0) {
        print_usage(stdout);
        return 0;
    }
    if (strcmp(word, "-W") == 0 || strcmp(word, "-Ws") == 0 || strcmp(word, "-S") == 0 || strcmp(word, "-x") == 0)
        return bad(word, "is a HAProxy option that Sallyport does not support");
    if (take_flag(word, a))
        return -1;
    return bad(word, "is not an option; see --help");
}

int serve_args_parse(int argc, char **argv, struct serve_args *out)
{
    bool only_files = false;
    int rc = -1;

    for (int i = 1; i < argc && rc < 0; i++) {
        if (only_files)
            rc = add_file(out, argv[i]);
        else if (strcmp(argv[i], "--") == 0)
            only_files = true;
        else if (argv[i][0] == '-' && argv[i][1])
            rc = take_option(argc, argv, &i, out);
        else
            rc = bad(argv[i], "is neither an option nor a subcommand; files are given with -f");
    }
    if (rc < 0 && !out->show_version && !out->condition && out->file_count == 0) {
        print_usage(stderr);
        rc = 1;
    }
    return rc;
}

void serve_args_release(struct serve_args *a)
{
    free(a->files);
    free(a->old_pids);
}
