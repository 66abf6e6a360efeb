#include "config/parser.h"

#include <limits.h>
#include <stdlib.h>

/* --- process --- */

static int parse_user(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                      char **argv)
{
    struct cfg_global *g = object;

    if (cfg_value_user(p, kw, argv[0], &g->uid) != 0)
        return SP_EINVAL;
    g->user = argv[0];
    return 1;
}

static int parse_group(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                       char **argv)
{
    struct cfg_global *g = object;

    if (cfg_value_group(p, kw, argv[0], &g->gid) != 0)
        return SP_EINVAL;
    g->group = argv[0];
    return 1;
}

/* A count that can only be one. */
static int parse_only_one(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                          char **argv)
{
    int64_t value;

    if (cfg_value_int(p, kw, argv[0], 1, INT_MAX, &value) != 0)
        return SP_EINVAL;
    if (value == 1)
        return 1;
    if (kw->min == 'p')
        return cfg_kw_fail(p, kw,
                           "'%s': several processes are not supported; expected 1, and 'nbthread' "
                           "for more CPUs",
                           argv[0]);
    cfg_kw_warn(p, kw, "accepted, has no effect here: %s", kw->note);
    return 1;
}

static int parse_description(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                             char **argv)
{
    const char *text = argv[0];

    for (int i = 1; i < argc && text; i++)
        text = cfg_printf(p, "%s %s", text, argv[i]);
    ((struct cfg_global *)object)->description = text;
    return argc;
}

/* "KEYWORD [on|off]" with "no" before it as another "off". */
static int parse_switch(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                        char **argv)
{
    static const char *const words[] = {"off", "on"};
    int index = p->modifier != CFG_MODIFIER_NO;

    if (argc && cfg_value_word(p, kw, argv[0], words, 2, &index) != 0)
        return SP_EINVAL;
    *(bool *)((char *)object + kw->at) = index == 1;
    return argc ? 1 : 0;
}

static int parse_spread_time(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                             char **argv)
{
    int64_t *field = (int64_t *)((char *)object + kw->at);

    if (strcmp(argv[0], "infinite") == 0) {
        *field = CFG_UNSET;
        return 1;
    }
    return cfg_value_time(p, kw, argv[0], 1000, field) == 0 ? 1 : SP_EINVAL;
}

static int parse_max_spread(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                            char **argv)
{
    int64_t us;

    if (cfg_value_time(p, kw, argv[0], 1000, &us) != 0)
        return SP_EINVAL;
    ((struct cfg_global *)object)->max_spread_checks =
        us / 1000 > INT_MAX ? INT_MAX : (int)(us / 1000);
    return 1;
}

static int parse_shared_pool(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                             char **argv)
{
    static const char *const words[] = {"off", "on", "full", "auto"};
    int index;

    if (cfg_value_word(p, kw, argv[0], words, 4, &index) != 0)
        return SP_EINVAL;
    ((struct cfg_global *)object)->idle_pool_shared = index != 0;
    return 1;
}

static int parse_default_path(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                              char **argv)
{
    if (strcmp(argv[0], "current") != 0)
        return cfg_kw_fail(p, kw,
                           "'%s' is not supported: relative paths begin where the program was "
                           "started; expected 'current'",
                           argv[0]);
    return 1;
}

/* --- unix-bind --- */

static int parse_unix_bind(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                           char **argv)
{
    struct cfg_global *g = object;
    int at = 0, status = 0;

    for (; at + 1 < argc && status == 0; at += 2) {
        const char *word = argv[at], *value = argv[at + 1];
        int64_t number = 0;

        if (strcmp(word, "prefix") == 0) {
            g->unix_bind_prefix = value;
        } else if (strcmp(word, "mode") == 0) {
            status = cfg_value_mode(p, kw, value, &g->unix_bind_mode);
        } else if (strcmp(word, "user") == 0) {
            status = cfg_value_user(p, kw, value, &g->unix_bind_uid);
        } else if (strcmp(word, "group") == 0) {
            status = cfg_value_group(p, kw, value, &g->unix_bind_gid);
        } else if (strcmp(word, "uid") == 0 || strcmp(word, "gid") == 0) {
            status = cfg_value_int(p, kw, value, 0, INT_MAX, &number);
            *(word[0] == 'u' ? &g->unix_bind_uid : &g->unix_bind_gid) = (int)number;
        } else {
            break;
        }
    }
    return status == 0 ? at : status;
}

/* --- cpu-map --- */

/* A list of CPUs "0,2-3" into a bit set. */
static int parse_cpus(struct cfg_parser *p, const struct cfg_kw *kw, const char *word,
                      uint64_t cpus[16])
{
    struct str rest = str_of(word);

    if (str_eq(rest, STR("all"))) {
        memset(cpus, 0xff, 16 * sizeof(*cpus));
        return 0;
    }
    while (rest.len) {
        size_t comma = str_chr(rest, ',');
        struct str range = str_make(rest.ptr, comma);
        size_t dash = str_chr(range, '-');
        uint64_t low, high = 0;

        rest = str_from(rest, comma + 1);
        if (str_to_u64(str_make(range.ptr, dash), &low) != 0 ||
            (dash < range.len && str_to_u64(str_from(range, dash + 1), &high) != 0) || low > 1023)
            return cfg_kw_fail(p, kw,
                               "'%s' is not a set of CPUs; expected numbers and ranges from 0 to "
                               "1023, like 0,2-3",
                               word);
        high = dash < range.len ? high : low;
        if (high < low || high > 1023)
            return cfg_kw_fail(p, kw,
                               "'%s' is not a set of CPUs; expected ranges that go upwards, to at "
                               "most 1023",
                               word);
        for (uint64_t i = low; i <= high; i++)
            cpus[i / 64] |= (uint64_t)1 << (i % 64);
    }
    return 0;
}

/* "all", "odd", "even", "N" or "N-M" to a range with a step. */
static bool parse_thread_set(struct str set, int *low, int *high, int *step)
{
    size_t dash = str_chr(set, '-');
    uint64_t from, to;

    *low = str_eq(set, STR("even")) ? 2 : 1;
    *high = 1024;
    *step = str_eq(set, STR("all")) ? 1 : 2;
    if (*step == 1 || *low == 2 || str_eq(set, STR("odd")))
        return true;
    *step = 1;
    if (str_to_u64(str_make(set.ptr, dash), &from) != 0 || from < 1 || from > 1024)
        return false;
    to = dash == set.len ? from : 1024;
    if (dash + 1 < set.len && str_to_u64(str_from(set, dash + 1), &to) != 0)
        return false;
    *low = (int)from;
    *high = (int)to;
    return to >= from && to <= 1024;
}

static void add_cpu_map(struct cfg_parser *p, int low, int high, bool automatic,
                        const uint64_t cpus[16])
{
    struct cfg_cpu_map *map = cfg_new(p, sizeof(*map));

    if (!map)
        return;
    map->thread_low = low;
    map->thread_high = high;
    map->automatic = automatic;
    memcpy(map->cpus, cpus, sizeof(map->cpus));
    *p->cpu_maps_end = map;
    p->cpu_maps_end = &map->next;
}

static int parse_cpu_map(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                         char **argv)
{
    struct str where = str_of(argv[0]), threads;
    bool automatic = str_starts(where, STR("auto:"));
    uint64_t cpus[16] = {0};
    int low, high, step;
    size_t slash;

    where = automatic ? str_from(where, 5) : where;
    slash = str_chr(where, '/');
    /* A group without threads means all of its threads; there is one group, so "1" names it. */
    threads = slash < where.len ? str_from(where, slash + 1) : STR("all");
    if (slash == where.len && !str_eq(where, STR("1")))
        threads = where;
    if (!parse_thread_set(threads, &low, &high, &step))
        return cfg_kw_fail(
            p, kw,
            "'%s' is not a set of threads; expected [auto:]1/<thread-set> with 'all', "
            "'odd', 'even', a number or a range from 1 to 1024",
            argv[0]);
    for (int i = 1; i < argc; i++) {
        if (parse_cpus(p, kw, argv[i], cpus) != 0)
            return SP_EINVAL;
    }
    if (step == 1) {
        add_cpu_map(p, low, high, automatic, cpus);
        return argc;
    }
    if (automatic)
        return cfg_kw_fail(p, kw,
                           "'auto:' with 'odd' or 'even' is not supported; expected a range");
    for (int i = low; i <= 256; i += step)
        add_cpu_map(p, i, i, false, cpus);
    return argc;
}

/* --- variables --- */

static int parse_env(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                     char **argv)
{
    int failed = 0;

    if (strchr(argv[0], '='))
        return cfg_kw_fail(p, kw, "'%s' is not the name of a variable; expected '%s %s'", argv[0],
                           kw->name, kw->args);
    if (kw->min == 'u') {
        for (int i = 0; i < argc && !p->env->sealed; i++)
            failed |= unsetenv(argv[i]);
    } else if (!p->env->sealed) {
        failed = setenv(argv[0], argv[1], kw->min == 's');
    }
    if (failed)
        return cfg_kw_fail(p, kw, "cannot change the variable '%s'", argv[0]);
    return kw->min == 'u' ? argc : 2;
}

/* Keeps the variables that are named and removes all others. */
static int parse_reset_env(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                           char **argv)
{
    char **kept = cfg_new(p, sizeof(*kept) * (size_t)(argc + 1));

    if (p->env->sealed || !kept)
        return argc;
    for (int i = 0; i < argc; i++) {
        const char *value = getenv(argv[i]);

        kept[i] = value ? cfg_printf(p, "%s", value) : NULL;
    }
    clearenv();
    for (int i = 0; i < argc; i++) {
        if (kept[i])
            setenv(argv[i], kept[i], 1);
    }
    return argc;
}

static int parse_set_var(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                         char **argv)
{
    struct cfg_proc_var *var;

    if (strncmp(argv[0], "proc.", 5) != 0)
        return cfg_kw_fail(
            p, kw,
            "'%s' is not a variable of the process; expected a name that begins with "
            "'proc.'",
            argv[0]);
    var = cfg_new(p, sizeof(*var));
    if (!var)
        return argc;
    *var = (struct cfg_proc_var){.loc = p->loc,
                                 .name = argv[0],
                                 .argc = argc - 1,
                                 .argv = argv + 1,
                                 .is_format = kw->min == 'f'};
    *p->vars_end = var;
    p->vars_end = &var->next;
    return argc;
}

#define G(field) offsetof(struct cfg_global, field)
#define FIELD(word, kind_, field, low, high, arguments, text)                                \
    {                                                                                        \
        .name = word, .sections = CFG_SEC_GLOBAL, .kind = kind_, .at = G(field), .min = low, \
        .max = high, .args = arguments, .help = text                                         \
    }
#define PARSE(word, function, value, least, arguments, text)                       \
    {                                                                              \
        .name = word, .sections = CFG_SEC_GLOBAL, .at = CFG_NOWHERE, .min = value, \
        .min_args = least, .args = arguments, .help = text, .parse = function      \
    }
#define SWITCH(word, field, text)                                                             \
    {                                                                                         \
        .name = word, .sections = CFG_SEC_GLOBAL, .flags = CFG_KW_CAN_NEGATE, .at = G(field), \
        .args = "[on|off]", .help = text, .parse = parse_switch                               \
    }
#define UNUSED(word, extra, arguments, least, why)                                        \
    {                                                                                     \
        .name = word, .sections = CFG_SEC_GLOBAL, .kind = CFG_KW_ANY, .flags = extra,     \
        .at = CFG_NOWHERE, .min_args = least, .args = arguments, .help = why, .note = why \
    }

static int parse_io_engine(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                           char **argv)
{
    static const char *const words[] = {"auto", "epoll", "io_uring"};

    return cfg_value_word(p, kw, argv[0], words, 3, &((struct cfg_global *)object)->io_engine) == 0
               ? 1
               : SP_EINVAL;
}

const struct cfg_kw cfg_kw_global[] = {
    {.name = "io-engine",
     .sections = CFG_SEC_GLOBAL,
     .min_args = 1,
     .args = "auto|epoll|io_uring",
     .help = "how the workers talk to the kernel; auto is io_uring where the kernel has what it takes (auto)",
     .parse = parse_io_engine},
    FIELD("chroot", CFG_KW_STRING, chroot, 0, 0, "<folder>",
          "the process locks itself into this folder"),
    {.name = "close-spread-time",
     .sections = CFG_SEC_GLOBAL,
     .at = G(close_spread_us),
     .min_args = 1,
     .args = "<time>|infinite",
     .help = "over which idle connections are closed while the process stops",
     .parse = parse_spread_time},
    PARSE("cpu-map", parse_cpu_map, 0, 2, "[auto:]<group>[/<threads>] <cpus>...",
          "which CPUs threads run on"),
    FIELD("daemon", CFG_KW_FLAG, daemon, 0, 0, NULL, "runs in the background"),
    PARSE("default-path", parse_default_path, 0, 1, "current", "where relative paths begin"),
    PARSE("description", parse_description, 0, 1, "<text>", "a text for the statistics page"),
    FIELD("fd-hard-limit", CFG_KW_INT, fd_hard_limit, 0, INT_MAX, "<number>",
          "descriptors to use at most"),
    {.name = "gid",
     .sections = CFG_SEC_GLOBAL,
     .kind = CFG_KW_INT,
     .at = G(gid),
     .max = INT_MAX,
     .args = "<number>",
     .help = "the group to run as"},
    FIELD("grace", CFG_KW_TIME, grace_us, 0, 0, "<time>",
          "between the order to stop and the end of accepting"),
    PARSE("group", parse_group, 0, 1, "<name>", "the group to run as"),
    FIELD("hard-stop-after", CFG_KW_TIME, hard_stop_after_us, 0, 0, "<time>",
          "when remaining sessions are cut while the process stops"),
    FIELD("localpeer", CFG_KW_STRING, localpeer, 0, 0, "<name>", "this node's name among peers"),
    PARSE("max-spread-checks", parse_max_spread, 0, 1, "<time>",
          "the longest time over which first checks are spread"),
    FIELD("maxconn", CFG_KW_INT, maxconn, 0, INT_MAX, "<conns>",
          "client connections of the process at a time"),
    PARSE("nbproc", parse_only_one, 'p', 1, "1", "number of processes"),
    FIELD("nbthread", CFG_KW_INT, nbthread, 1, 256, "<number>", "workers, by default one a CPU"),
    FIELD("node", CFG_KW_STRING, node, 0, 0, "<name>",
          "this machine's name, by default the system's"),
    FIELD("noepoll", CFG_KW_FLAG, noepoll, 0, 0, NULL, "without epoll"),
    FIELD("nogetaddrinfo", CFG_KW_FLAG, no_getaddrinfo, 0, 0, NULL,
          "names are resolved the old way"),
    FIELD("noreuseport", CFG_KW_FLAG, noreuseport, 0, 0, NULL,
          "one listening socket for all workers"),
    FIELD("nosplice", CFG_KW_FLAG, nosplice, 0, 0, NULL, "the kernel moves no data by itself"),
    FIELD("pidfile", CFG_KW_STRING, pidfile, 0, 0, "<file>", "where the process number is written"),
    PARSE("presetenv", parse_env, 'p', 2, "<name> <value>",
          "sets an environment variable that is not set yet"),
    FIELD("quiet", CFG_KW_FLAG, quiet, 0, 0, NULL, "prints no messages while it starts"),
    PARSE("resetenv", parse_reset_env, 0, 0, "[<name>...]",
          "removes all environment variables but these"),
    FIELD("server-state-base", CFG_KW_STRING, server_state_base, 0, 0, "<folder>",
          "where server state files would be"),
    SWITCH("set-dumpable", set_dumpable, "the process may leave a core file"),
    PARSE("set-var", parse_set_var, 0, 2, "proc.<name> <expression>",
          "sets a variable of the process"),
    PARSE("set-var-fmt", parse_set_var, 'f', 2, "proc.<name> <format>",
          "sets a variable of the process from a log-format"),
    PARSE("setenv", parse_env, 's', 2, "<name> <value>", "sets an environment variable"),
    FIELD("spread-checks", CFG_KW_INT, spread_checks, 0, 50, "<percent>",
          "how far check times vary at random"),
    FIELD("stats timeout", CFG_KW_TIME, stats_timeout_us, 0, 0, "<time>",
          "how long a command connection may be silent"),
    SWITCH("strict-limits", strict_limits, "refuses to start when limits cannot be raised"),
    {.name = "thread-groups",
     .sections = CFG_SEC_GLOBAL,
     .min = 'g',
     .min_args = 1,
     .args = "<number>",
     .help = "groups of threads; there is one",
     .note = "there is one group",
     .parse = parse_only_one},
    {.name = "uid",
     .sections = CFG_SEC_GLOBAL,
     .kind = CFG_KW_INT,
     .at = G(uid),
     .max = INT_MAX,
     .args = "<number>",
     .help = "the user to run as"},
    FIELD("ulimit-n", CFG_KW_INT, ulimit_n, 0, INT_MAX, "<number>",
          "the limit of descriptors, by default computed"),
    PARSE(
        "unix-bind", parse_unix_bind, 0, 2,
        "[prefix <path>] [mode <octal>] [user <name>] [uid <number>] [group <name>] [gid <number>]",
        "what Unix sockets of binds begin with"),
    PARSE("unsetenv", parse_env, 'u', 1, "<name>...", "removes environment variables"),
    PARSE("user", parse_user, 0, 1, "<name>", "the user to run as"),
    FIELD("zero-warning", CFG_KW_FLAG, zero_warning, 0, 0, NULL, "warnings are errors"),

    FIELD("tune.bufsize", CFG_KW_SIZE, bufsize, 1024, 0, "<size>", "bytes of a buffer"),
    FIELD("tune.http.cookielen", CFG_KW_INT, http_cookielen, 1, 65535, "<bytes>",
          "most of a captured cookie"),
    FIELD("tune.http.logurilen", CFG_KW_INT, http_logurilen, 1, 65535, "<bytes>",
          "most of a URI in a log line"),
    FIELD("tune.http.maxhdr", CFG_KW_INT, maxhdr, 1, 32767, "<number>",
          "headers of a message at most"),
    PARSE("tune.idle-pool.shared", parse_shared_pool, 0, 1, "on|off|full|auto",
          "whether workers share idle server connections"),
    FIELD("tune.idletimer", CFG_KW_TIME, idle_timer_us, 0, 0, "<time>",
          "when a stream counts as idle, for larger TLS records"),
    FIELD("tune.maxaccept", CFG_KW_INT, maxaccept, -1, INT_MAX, "<number>",
          "connections that are accepted in one go"),
    FIELD("tune.maxrewrite", CFG_KW_SIZE, maxrewrite, 0, 0, "<size>",
          "part of a buffer that is kept for added headers"),
    FIELD("tune.pipesize", CFG_KW_SIZE, pipesize, 0, 0, "<size>", "bytes of a pipe for splicing"),
    FIELD("tune.pool-low-fd-ratio", CFG_KW_INT, pool_low_fd_ratio, 0, 100, "<percent>",
          "share of descriptors up to which idle connections are kept"),
    FIELD("tune.rcvbuf.client", CFG_KW_SIZE, rcvbuf_client, 0, 0, "<size>",
          "receive buffer of client sockets"),
    FIELD("tune.rcvbuf.server", CFG_KW_SIZE, rcvbuf_server, 0, 0, "<size>",
          "receive buffer of server sockets"),
    FIELD("tune.sndbuf.client", CFG_KW_SIZE, sndbuf_client, 0, 0, "<size>",
          "send buffer of client sockets"),
    FIELD("tune.sndbuf.server", CFG_KW_SIZE, sndbuf_server, 0, 0, "<size>",
          "send buffer of server sockets"),

    UNUSED("anonkey", CFG_KW_QUIET, "<key>", 1, "dumps are not anonymised"),
    {.name = "busy-polling",
     .sections = CFG_SEC_GLOBAL,
     .kind = CFG_KW_FLAG,
     .flags = CFG_KW_CAN_NEGATE,
     .at = CFG_NOWHERE,
     .help = "workers sleep when there is nothing to do",
     .note = "workers sleep when there is nothing to do"},
    UNUSED("cpu-affinity", 0, "<affinity>", 1, "only 'cpu-map' places threads"),
    UNUSED("cpu-policy", 0, "<policy>", 1, "only 'cpu-map' places threads"),
    UNUSED("cpu-set", 0, "<set>...", 1, "only 'cpu-map' places threads"),
    UNUSED("dns-accept-family", 0, "<family>", 1, "the system's resolver decides"),
    UNUSED("expose-deprecated-directives", CFG_KW_QUIET, NULL, 0, "no keyword needs it"),
    UNUSED("expose-experimental-directives", CFG_KW_QUIET, NULL, 0, "no keyword needs it"),
    UNUSED("h1-accept-payload-with-any-method", 0, NULL, 0,
           "bodies are judged by the method alone"),
    UNUSED("h2-workaround-bogus-websocket-clients", 0, NULL, 0,
           "WebSocket over HTTP/2 is announced where it works"),
    {.name = "insecure-fork-wanted",
     .sections = CFG_SEC_GLOBAL,
     .kind = CFG_KW_FLAG,
     .flags = CFG_KW_QUIET | CFG_KW_CAN_NEGATE,
     .at = CFG_NOWHERE,
     .help = "workers never start programs"},
    UNUSED("insecure-setuid-wanted", CFG_KW_QUIET, NULL, 0, "workers never start programs"),
    UNUSED("limited-quic", CFG_KW_QUIET, NULL, 0, "there is no QUIC"),
    UNUSED("master-worker", 0, "[no-exit-on-failure]", 0,
           "there is one process; SIGUSR2 replaces it"),
    UNUSED("max-threads-per-group", CFG_KW_QUIET, "<number>", 1, "there is one group"),
    UNUSED("maxcompcpuusage", 0, "<percent>", 1, "compression is not limited"),
    UNUSED("maxcomprate", 0, "<number>", 1, "compression is not limited"),
    UNUSED("maxconnrate", 0, "<number>", 1, "the rate of connections is not limited"),
    UNUSED("maxpipes", CFG_KW_QUIET, "<number>", 1,
           "pipes belong to the connections that use them"),
    UNUSED("maxsessrate", 0, "<number>", 1, "the rate of sessions is not limited"),
    UNUSED("maxsslconn", 0, "<number>", 1, "'maxconn' limits TLS connections too"),
    UNUSED("maxsslrate", 0, "<number>", 1, "the rate of handshakes is not limited"),
    UNUSED("maxzlibmem", 0, "<megabytes>", 1, "compression is not limited"),
    UNUSED("mworker-max-reloads", CFG_KW_QUIET, "<number>", 1, "there is no master process"),
    UNUSED("no-memory-trimming", CFG_KW_QUIET, NULL, 0, "memory is not trimmed"),
    UNUSED("noevports", CFG_KW_QUIET, NULL, 0, "another system's event ports"),
    UNUSED("nokqueue", CFG_KW_QUIET, NULL, 0, "another system's kqueue"),
    UNUSED("noktls", CFG_KW_QUIET, NULL, 0, "records are not made by the kernel"),
    UNUSED("nopoll", CFG_KW_QUIET, NULL, 0, "poll() is not used"),
    {.name = "numa-cpu-mapping",
     .sections = CFG_SEC_GLOBAL,
     .kind = CFG_KW_FLAG,
     .flags = CFG_KW_CAN_NEGATE | CFG_KW_QUIET,
     .at = CFG_NOWHERE,
     .help = "only cpu-map places threads"},
    UNUSED("prealloc-fd", CFG_KW_QUIET, NULL, 0, "the table of descriptors grows by itself"),
    UNUSED("profiling.memory", 0, "on|off", 1, "there is no built-in profiler"),
    UNUSED("profiling.tasks", 0, "auto|on|off...", 1, "there is no built-in profiler"),
    UNUSED("quick-exit", CFG_KW_QUIET, NULL, 0, "memory is always released"),
    UNUSED("server-state-file", 0, "<file>", 1,
           "servers begin in the state that the configuration gives them"),
    UNUSED("ssl-load-extra-del-ext", 0, NULL, 0,
           "keys and other parts are looked for in the file itself"),
    UNUSED("ssl-load-extra-files", 0, "<kind>...", 1,
           "keys and other parts are looked for in the file itself"),
    UNUSED("ssl-security-level", 0, "<level>", 1, "the TLS library's own level applies"),
    UNUSED("ssl-skip-self-issued-ca", 0, NULL, 0, "chains are sent as they are in the file"),
    UNUSED("stats calculate-max-counters", 0, "on|off", 0, "maxima are always counted"),
    UNUSED("stats maxconn", 0, "<number>", 1, "command connections are not limited by themselves"),
    UNUSED("stats-file", 0, "<file>", 1, "statistics begin at zero"),
    UNUSED("stress-level", CFG_KW_QUIET, "<level>", 1, "for HAProxy's developers"),
    UNUSED("thread-group", 0, "<group> [<threads>...]", 1, "there is one group"),
    UNUSED("thread-hard-limit", 0, "<number>", 1, "'nbthread' says how many workers there are"),
    UNUSED("warn-blocked-traffic-after", 0, "<time>", 1, "blocked workers are not reported"),
    CFG_KW_END,
};
