/*
 * sallyport origin: a small, cheap web server to stand behind a load balancer.
 */
#include "cmd/cmd.h"
#include "cmd/origin_server.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>

#define DEFAULT_LISTEN "127.0.0.1:8080"
#define DEFAULT_SIZE 64
#define DEFAULT_TIMEOUT_US 30000000
#define MAX_THREADS 256

static const char usage[] =
    "usage: sallyport origin [--listen ADDR:PORT] [--dir DIR | --size BYTES] [--threads N]\n"
    "                        [--timeout TIME]\n"
    "\n"
    "A web server for tests and benchmarks.\n"
    "\n"
    "  --listen ADDR:PORT  where to listen (" DEFAULT_LISTEN "); port 0 takes a free one\n"
    "  --dir DIR           serve the files in DIR\n"
    "  --size BYTES        answer every request with a body of BYTES (64); k, m and g multiply.\n"
    "                      The path /size/N asks for N bytes. POST bodies are read and counted\n"
    "  --threads N         threads, each with its own socket on the address (1)\n"
    "  --timeout TIME      drop clients that are idle or make no progress for so long (30s)\n";

static int bad(const char *what, const char *expected, const char *got)
{
    fprintf(stderr, "sallyport origin: %s: %s, got '%s'\n", what, expected, got);
    return 2;
}

static int parse_listen(const char *text, struct addr *out)
{
    struct addr_spec spec;
    const char *why;

    if (addr_parse(text, 0, &spec, &why) != 0)
        return bad("--listen", why, text);
    if (spec.fd >= 0 || spec.datagram || !spec.port_given ||
        (spec.addr.u.sa.sa_family != AF_INET && spec.addr.u.sa.sa_family != AF_INET6))
        return bad("--listen", "expected ADDR:PORT", text);
    *out = spec.addr;
    addr_set_port(out, spec.port_low);
    return 0;
}

static int parse_option(struct origin_config *config, struct str name, const char *value,
                        bool *has_size)
{
    struct str text = str_of(value);
    uint64_t number;
    int64_t time_us;

    if (str_eq(name, STR("--listen")))
        return parse_listen(value, &config->listen);
    if (str_eq(name, STR("--dir"))) {
        config->dir_path = value;
        return 0;
    }
    if (str_eq(name, STR("--size"))) {
        *has_size = true;
        if (str_to_size(text, &number) != 0 || number > INT64_MAX)
            return bad("--size", "expected a number of bytes", value);
        config->size = number;
        return 0;
    }
    if (str_eq(name, STR("--threads"))) {
        if (str_to_u64(text, &number) != 0 || number < 1 || number > MAX_THREADS)
            return bad("--threads", "expected a number from 1 to 256", value);
        config->threads = (unsigned)number;
        return 0;
    }
    if (str_to_time_us(text, 1000000, &time_us) != 0 || time_us < 1000)
        return bad("--timeout", "expected a time such as 30s", value);
    config->timeout_us = (uint64_t)time_us;
    return 0;
}

static bool takes_value(struct str name)
{
    static const char *const names[] = {"--listen", "--dir", "--size", "--threads", "--timeout"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (str_eq(name, str_of(names[i])))
            return true;
    }
    return false;
}

/* 0, or 2 after a message; *help when only the usage was asked for. */
static int parse_arguments(int argc, char **argv, struct origin_config *config, bool *help)
{
    bool has_size = false;

    for (int i = 1; i < argc; i++) {
        struct str name = str_of(argv[i]);
        size_t equals = str_chr(name, '=');
        const char *value = NULL;
        int status;

        if (str_eq(name, STR("--help")) || str_eq(name, STR("-h"))) {
            *help = true;
            return 0;
        }
        if (equals < name.len) {
            value = argv[i] + equals + 1;
            name.len = equals;
        }
        if (!takes_value(name)) {
            fprintf(stderr, "sallyport origin: unknown argument '%s'; see --help\n", argv[i]);
            return 2;
        }
        if (!value && i + 1 < argc)
            value = argv[++i];
        if (!value) {
            fprintf(stderr, "sallyport origin: %.*s needs a value\n", STR_FMT(name));
            return 2;
        }
        status = parse_option(config, name, value, &has_size);
        if (status != 0)
            return status;
    }
    if (has_size && config->dir_path) {
        fprintf(stderr, "sallyport origin: --dir and --size exclude each other\n");
        return 2;
    }
    return 0;
}

/*
 * As many descriptors as the system allows; a connection needs one, and one more while it sends a
 * file.
 */
static unsigned connections_per_thread(const struct origin_config *config)
{
    struct rlimit limit = {.rlim_cur = 1024, .rlim_max = 1024};
    rlim_t spare = 32 + 4 * (rlim_t)config->threads;
    rlim_t count;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        rlim_t before = limit.rlim_cur;

        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
            limit.rlim_cur = before;
    }
    count = limit.rlim_cur > spare ? limit.rlim_cur - spare : 0;
    count /= config->threads * (config->dir_path ? 2 : 1);
    if (count < 8)
        return 8;
    return count > 100000 ? 100000 : (unsigned)count;
}

static void print_failure(const struct origin_config *config, const char *step, int error)
{
    char where[ADDR_TEXT_BYTES];

    if (strcmp(step, "open") == 0) {
        fprintf(stderr, "sallyport origin: %s: %s\n", config->dir_path, strerror(error));
        return;
    }
    addr_text(&config->listen, where);
    if (error == EADDRINUSE)
        fprintf(stderr, "sallyport origin: %s is in use by another program\n", where);
    else
        fprintf(stderr, "sallyport origin: cannot listen on %s: %s: %s\n", where, step,
                strerror(error));
}

static void print_ready(const struct origin_config *config, const struct addr *address)
{
    char where[ADDR_TEXT_BYTES];

    addr_text(address, where);
    printf("sallyport origin: http://%s/ ", where);
    if (config->dir_path)
        printf("(files in %s", config->dir_path);
    else
        printf("(bodies of %llu bytes", (unsigned long long)config->size);
    printf(", %u thread%s)\n", config->threads, config->threads == 1 ? "" : "s");
    fflush(stdout);
}

int cmd_origin(int argc, char **argv)
{
    struct origin_config config = {
        .size = DEFAULT_SIZE,
        .threads = 1,
        .timeout_us = DEFAULT_TIMEOUT_US,
    };
    struct origin_server *server = NULL;
    const char *step = "";
    bool help = false;
    sigset_t ends;
    int signal_number;
    int status;

    parse_listen(DEFAULT_LISTEN, &config.listen);
    status = parse_arguments(argc, argv, &config, &help);
    if (status != 0)
        return status;
    if (help) {
        fputs(usage, stdout);
        return 0;
    }
    /*
     * Blocked in all threads and taken by this one; sendfile raises SIGPIPE when a client is gone.
     */
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    signal(SIGPIPE, SIG_IGN);

    config.max_conns = connections_per_thread(&config);
    if (origin_server_new(&config, &server, &step) != 0) {
        print_failure(&config, step, errno);
        return 1;
    }
    if (origin_server_start(server) != 0) {
        fprintf(stderr, "sallyport origin: cannot start a thread: %s\n", strerror(errno));
        origin_server_free(server);
        return 1;
    }
    print_ready(&config, origin_server_addr(server));
    sigwait(&ends, &signal_number);
    origin_server_free(server);
    return 0;
}
