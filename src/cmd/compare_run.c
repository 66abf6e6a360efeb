#include "cmd/compare_run.h"

#include "base/hash.h"
#include "base/status.h"
#include "cmd/compare_measure.h"
#include "cmd/compare_process.h"

#include <sallyport/status.h>

#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define READY_US 10000000
#define STOP_US 5000000
#define PREPARE_US 120000000
/* Below the ports that Linux gives to outgoing connections. */
#define PORT_LOW 10000
#define PORT_HIGH 32000

/* --- folder, ports, programs ----------------------------------------------------------------- */

static bool port_is_free(uint16_t port)
{
    struct addr addr = {.len = sizeof(addr.u.in)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool yes;

    addr.u.in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port),
                                     .sin_addr.s_addr = htonl(INADDR_ANY)};
    yes = fd >= 0 && bind(fd, &addr.u.sa, addr.len) == 0;
    if (fd >= 0)
        close(fd);
    return yes;
}

static bool port_is_given(const struct compare_plan *plan, uint16_t port)
{
    for (size_t i = 0; i < COMPARE_SERVERS_MAX; i++) {
        if (plan->variants[i].port == port || plan->services[i].port == port)
            return true;
    }
    return false;
}

static bool give_ports(struct compare_plan *plan)
{
    struct hash_rng rng;

    hash_rng_seed(&rng);
    for (size_t i = 0; i < plan->variant_count + plan->service_count; i++) {
        struct compare_server *server =
            i < plan->variant_count ? &plan->variants[i] : &plan->services[i - plan->variant_count];
        unsigned tries = 1000;
        uint16_t port;

        do
            port = (uint16_t)(PORT_LOW + hash_rng_next(&rng) % (PORT_HIGH - PORT_LOW));
        while (--tries && (port_is_given(plan, port) || !port_is_free(port)));
        if (!tries)
            return false;
        server->port = port;
    }
    return true;
}

static bool is_installed(const char *program)
{
    char path[4096];
    struct str rest = str_of(getenv("PATH"));

    if (strchr(program, '/') || strcmp(program, "sallyport") == 0)
        return strcmp(program, "sallyport") == 0 || access(program, X_OK) == 0;
    while (rest.len) {
        size_t len = str_chr(rest, ':');

        if (snprintf(path, sizeof(path), "%.*s/%s", (int)len, rest.ptr, program) < (int)sizeof(path) &&
            access(path, X_OK) == 0)
            return true;
        rest = str_from(rest, len + 1);
    }
    return false;
}

/* The first of its `needs` that is not installed; NULL: all are. */
static const char *missing_program(const struct compare_server *server)
{
    for (size_t i = 0; i < server->needs.count; i++) {
        if (!is_installed(server->needs.words[i].text))
            return server->needs.words[i].text;
    }
    return NULL;
}

static int choose_variants(struct compare_run *run)
{
    const struct compare_plan *plan = run->plan;

    for (unsigned i = 0; i < plan->variant_count; i++) {
        const char *missing = missing_program(&plan->variants[i]);

        if (missing) {
            compare_note(run, "skipped variant %s: %s is not installed", plan->variants[i].name, missing);
            continue;
        }
        if (i == plan->base)
            run->result.base = run->variant_count;
        run->variants[run->variant_count++] = i;
    }
    for (size_t i = 0; i < plan->service_count; i++) {
        const char *missing = missing_program(&plan->services[i]);

        if (missing)
            return compare_fail(run, "service %s needs %s, which is not installed", plan->services[i].name, missing);
    }
    if (!run->variant_count)
        return compare_fail(run, "no variant is left to measure: what they need is not installed");
    if (run->variants[run->result.base] != plan->base)
        compare_note(run, "base is %s: %s was skipped", plan->variants[run->variants[run->result.base]].name,
                     plan->variants[plan->base].name);
    return 0;
}

static int make_folder(struct compare_run *run)
{
    const char *parent = getenv("TMPDIR");
    char *dir = arena_printf(run->arena, "%s/sallyport-compare-XXXXXX", parent && *parent ? parent : "/tmp");

    /* Servers that give up root read their configuration too. */
    if (!dir || !mkdtemp(dir) || chmod(dir, 0755) != 0)
        return compare_fail(run, "cannot make a temporary folder: %s", strerror(errno));
    run->dir = dir;
    return 0;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *ftw)
{
    return remove(path);
}

/* --- files and servers ----------------------------------------------------------------------- */

static int write_files(struct compare_run *run, const struct compare_server *server)
{
    json_t *texts = json_object();

    json_object_set_new(json_object_get(run->rendered, server->name), "files", texts);
    for (size_t i = 0; i < run->plan->file_count; i++) {
        const struct compare_file *f = &run->plan->files[i];
        const char *path = compare_path(run, f->name, "");
        const char *text = compare_expand(run->plan, run->arena, server, run->dir, f->content.text);
        FILE *file = path ? fopen(path, "we") : NULL;
        bool ok = file && text && fputs(text, file) >= 0;

        if (file && fclose(file) != 0)
            ok = false;
        if (!ok)
            return compare_fail(run, "cannot write %s: %s", f->name, strerror(errno));
        json_object_set_new(texts, f->name, json_string(text));
    }
    return 0;
}

/* Where the server answers once it is ready. */
static int ready_address(struct compare_run *run, const struct compare_server *server, struct addr *out)
{
    const char *text = server->ready.text, *why = "", *url;
    struct addr_spec spec;
    bool is_tls = false;

    if (text) {
        text = compare_expand(run->plan, run->arena, server, run->dir, text);
    } else if (server->is_service) {
        text = arena_printf(run->arena, "127.0.0.1:%u", server->port);
    } else {
        url = compare_expand(run->plan, run->arena, server, run->dir, server->url.text);
        is_tls = url && str_starts(str_of(url), STR("https:"));
        url = url ? strstr(url, "://") : NULL;
        text = url ? arena_printf(run->arena, "%.*s", (int)strcspn(url + 3, "/?#"), url + 3) : NULL;
    }
    if (!text || addr_parse(text, ADDR_RESOLVE, &spec, &why) != 0 || spec.fd >= 0 || spec.datagram ||
        (!spec.port_given && server->ready.text))
        return compare_fail(run, "%s: 'ready' or the URL's host: expected ADDRESS:PORT, got '%s'%s%s", server->name,
                            text ? text : "", *why ? ": " : "", why);
    *out = spec.addr;
    addr_set_port(out, spec.port_given ? spec.port_low : is_tls ? 443 : 80);
    return 0;
}

static char **environment_of(struct compare_run *run, const struct compare_server *server)
{
    char **env = arena_zalloc(run->arena, (server ? server->env.count : 0) + 2, sizeof(*env));
    size_t n = 0;

    if (!env)
        return NULL;
    env[n++] = arena_printf(run->arena, "SALLYPORT=%s", run->self);
    for (size_t i = 0; server && i < server->env.count; i++)
        env[n++] = (char *)compare_expand(run->plan, run->arena, server, run->dir, server->env.words[i].text);
    return env;
}

/* A command of one line, by the shell, in the folder. */
static int run_shell(struct compare_run *run, const struct compare_server *server, const char *what,
                     const struct compare_text *line, uint64_t timeout_us)
{
    const char *text = compare_expand(run->plan, run->arena, server, run->dir, line->text);
    char *argv[] = {(char *)"/bin/sh", (char *)"-c", NULL, NULL};
    struct compare_command command = {.argv = argv, .env = environment_of(run, server), .dir = run->dir,
                                      .log_path = compare_path(run, what, ".log")};
    int exit_status = 0, status;

    if (text && (str_starts(str_of(text), STR("sallyport ")) || strcmp(text, "sallyport") == 0))
        text = arena_printf(run->arena, "\"$SALLYPORT\"%s", text + 9);
    if (!text || !command.env || !command.log_path)
        return compare_fail(run, "out of memory");
    argv[2] = (char *)text;
    status = compare_run(&command, timeout_us, 0, NULL, NULL, &exit_status);
    if (status == SP_ECANCELED)
        return status;
    if (status != 0 || exit_status != 0)
        return compare_fail(run, "%s:%d: '%s' %s:\n  %s%s", line->loc.file, line->loc.line, what,
                            status == SP_ETIMEDOUT ? "did not end in time"
                            : status != 0          ? "cannot be run"
                                                   : arena_printf(run->arena, "failed with exit status %d", exit_status),
                            text, compare_tail(run->arena, command.log_path));
    return 0;
}

static void describe_start(struct compare_run *run, const struct compare_server *server, char *const *argv)
{
    json_t *entry = json_object(), *array = json_array();

    for (size_t i = 0; argv[i]; i++)
        json_array_append_new(array, json_string(argv[i]));
    json_object_set_new(entry, "start", array);
    json_object_set_new(run->rendered, server->name, entry);
}

static int start_server(struct compare_run *run, const struct compare_server *server, pid_t *pid)
{
    struct compare_command command = {.argv = compare_argv(run, server, &server->start),
                                      .env = environment_of(run, server), .cpus = compare_pin(run, &server->cpus),
                                      .log_path = compare_path(run, server->name, ".log"), .dir = run->dir};
    struct addr addr;
    int status = ready_address(run, server, &addr);

    if (status != 0)
        return status;
    if (!command.argv || !command.env || !command.log_path)
        return compare_fail(run, "out of memory");
    describe_start(run, server, command.argv);
    status = write_files(run, server);
    if (status != 0)
        return status;
    if (compare_answers(&addr))
        return compare_fail(run, "%s: something else answers already where it is to listen", server->name);
    if (compare_start(&command, pid) != 0)
        return compare_fail(run, "%s:%d: %s: cannot start '%s': %s", server->loc.file, server->loc.line, server->name,
                            command.argv[0], strerror(errno));
    status = compare_wait_ready(*pid, &addr, READY_US);
    if (status == SP_ETIMEDOUT)
        return compare_fail(run, "%s: not ready after 10 s; the end of its output:%s", server->name,
                            compare_tail(run->arena, command.log_path));
    if (status == SP_EEOF)
        return compare_fail(run, "%s: ended at its start; its output:%s", server->name,
                            compare_tail(run->arena, command.log_path));
    return status;
}

static void stop_server(struct compare_run *run, const struct compare_server *server, pid_t *pid)
{
    struct compare_text line = {server->stop_command, server->stop_loc};
    const char *failure = run->failure;
    int signal_number = server->stop_signal;

    if (*pid <= 0)
        return;
    if (line.text && !compare_is_interrupted()) {
        if (run_shell(run, server, "stop", &line, STOP_US) == 0)
            signal_number = 0;
        else
            compare_note(run, "%s: its stop command failed", server->name);
        run->failure = failure;
    }
    if (!compare_stop(*pid, signal_number, STOP_US))
        compare_note(run, "%s: had to be killed, 5 s after it was told to stop", server->name);
    *pid = 0;
}

/* --- rounds -------------------------------------------------------------------------------- */

static void tell(struct compare_run *run, const char *what, unsigned round, unsigned variant, unsigned load)
{
    char text[300];

    if (!run->options->progress)
        return;
    snprintf(text, sizeof(text), "round %u of %u, measurement %u of %u: %s %s, load %s", round + 1, run->plan->rounds,
             run->measured + 1, run->to_measure, what, run->plan->variants[run->variants[variant]].name,
             run->plan->loads[load].name);
    run->options->progress(text);
}

static int run_variant(struct compare_run *run, unsigned round, unsigned variant)
{
    const struct compare_server *server = &run->plan->variants[run->variants[variant]];
    pid_t *pid = &run->variant_pids[variant];
    int status = 0;

    tell(run, "starting", round, variant, 0);
    if (*pid <= 0)
        status = start_server(run, server, pid);
    for (unsigned load = 0; load < run->plan->load_count && status == 0; load++) {
        tell(run, "measuring", round, variant, load);
        status = compare_is_interrupted() ? SP_ECANCELED : compare_measure(run, round, variant, load);
        if (!compare_is_running(*pid) && status != SP_ECANCELED) {
            run->is_refused = false;
            status = compare_fail(run, "%s: ended while it was measured; its output:%s", server->name,
                                  compare_tail(run->arena, compare_path(run, server->name, ".log")));
        }
    }
    if (!server->keeps_running || status != 0)
        stop_server(run, server, pid);
    return status;
}

static int run_rounds(struct compare_run *run)
{
    struct stats_rng rng = {run->seed};
    unsigned order[COMPARE_SERVERS_MAX];
    int status = 0;

    for (unsigned round = 0; round < run->plan->rounds && status == 0; round++) {
        json_t *names = json_array();

        json_array_append_new(run->orders, names);
        stats_shuffle(&rng, order, run->variant_count);
        for (unsigned i = 0; i < run->variant_count && status == 0; i++) {
            json_array_append_new(names, json_string(run->plan->variants[run->variants[order[i]]].name));
            status = run_variant(run, round, order[i]);
        }
        run->rounds_done += status == 0;
    }
    return status;
}

static int run_everything(struct compare_run *run)
{
    const struct compare_plan *plan = run->plan;
    struct compare_server nobody = {.name = "prepare"};
    int status = choose_variants(run);
    unsigned base = run->result.base;

    if (status != 0)
        return status;
    status = compare_result_init(&run->result, plan->rounds, run->variant_count, (unsigned)plan->load_count);
    if (status != 0)
        return compare_fail(run, "out of memory");
    run->result.base = base;
    run->result.seed = run->seed;
    run->to_measure = plan->rounds * run->variant_count * (unsigned)plan->load_count;
    status = make_folder(run);
    if (status == 0) {
        json_object_set_new(run->rendered, nobody.name, json_object());
        status = write_files(run, &nobody);
    }
    for (size_t i = 0; i < plan->prepare_count && status == 0; i++)
        status = run_shell(run, NULL, "prepare", &plan->prepare[i], PREPARE_US);
    for (size_t i = 0; i < plan->service_count && status == 0; i++)
        status = start_server(run, &plan->services[i], &run->service_pids[i]);
    if (status == 0)
        status = run_rounds(run);
    return status;
}

int compare_run_all(struct compare_run *run, struct compare_plan *plan, const struct compare_options *options,
                    struct arena *arena, uint64_t seed)
{
    char self[4096];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    int status;

    *run = (struct compare_run){.plan = plan, .options = options, .arena = arena, .seed = seed,
                                .raw = json_array(), .orders = json_array(), .notes = json_array(),
                                .rendered = json_object()};
    run->self = arena_str(arena, len > 0 ? str_make(self, (size_t)len) : STR("sallyport")).ptr;
    if (!run->self)
        status = compare_fail(run, "out of memory");
    else if (!give_ports(plan))
        status = compare_fail(run, "no free port found between %d and %d", PORT_LOW, PORT_HIGH);
    else
        status = run_everything(run);
    for (unsigned i = 0; i < run->variant_count; i++)
        stop_server(run, &plan->variants[run->variants[i]], &run->variant_pids[i]);
    for (size_t i = plan->service_count; i-- > 0;)
        stop_server(run, &plan->services[i], &run->service_pids[i]);
    if (run->dir && !options->keeps_folder)
        nftw(run->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    run->is_interrupted = status == SP_ECANCELED;
    if (run->result.cells && compare_summarise(&run->result) != 0 && status == 0)
        status = compare_fail(run, "out of memory");
    return status;
}

void compare_run_release(struct compare_run *run)
{
    compare_result_release(&run->result);
    json_decref(run->raw);
    json_decref(run->orders);
    json_decref(run->notes);
    json_decref(run->rendered);
}
