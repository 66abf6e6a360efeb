/*
 * sallyport crypto sweep: symmetric crypto by request size, of several implementations.
 */
#include "cmd/crypto_sweep.h"

#include "base/clock.h"
#include "base/str.h"
#include "measure/sweep_points.h"

#include <sallyport/status.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#define BUDGET_S 240
#define SLICE_DEFAULT_MAX_NS 100000000u
#define SLICE_MIN_NS 1000000u
#define INTERRUPTED 130
#define PROGRESS_TERMINAL_NS 100000000u
#define PROGRESS_PLAIN_NS 5000000000u
#define TEXT_BYTES 4096

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

static void catch_signals(void)
{
    /* The second signal finds the system's own handling again. */
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* --- what was run, and where -------------------------------------------------------------------- */

static char *machine_text(void)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[512], model[256] = "", text[TEXT_BYTES];
    struct utsname name;

    while (file && !model[0] && fgets(line, sizeof(line), file)) {
        const char *colon = strchr(line, ':');

        line[strcspn(line, "\n")] = '\0';
        if (colon && strncmp(line, "model name", 10) == 0)
            snprintf(model, sizeof(model), "%s, ", colon + 1 + (colon[1] == ' '));
    }
    if (file)
        fclose(file);
    if (uname(&name) != 0)
        return NULL;
    snprintf(text, sizeof(text), "%s%ld CPUs, %s %s", model, sysconf(_SC_NPROCESSORS_ONLN), name.sysname, name.release);
    return strdup(text);
}

/* Quoted for a shell where it has to be. */
static char *command_text(int argc, char **argv)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    if (!out)
        return NULL;
    fputs("sallyport crypto", out);
    for (int i = 0; i < argc; i++) {
        bool is_plain = argv[i][0] && !argv[i][strspn(argv[i], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                               "0123456789-_.,:/=+")];

        fputs(is_plain ? " " : " '", out);
        for (const char *s = argv[i]; *s; s++) {
            if (*s == '\'')
                fputs("'\\''", out);
            else
                fputc(*s, out);
        }
        fputs(is_plain ? "" : "'", out);
    }
    fclose(out);
    return text;
}

/* --- progress ----------------------------------------------------------------------------------- */

struct progress {
    bool is_terminal, is_shown;
    uint64_t next_ns;
};

static const char *mode_text(const struct sweep_mode *mode, char out[32])
{
    if (mode->kind == SWEEP_SINGLE)
        snprintf(out, 32, "single");
    else
        snprintf(out, 32, "%s:%u", mode->kind == SWEEP_CONCURRENT ? "concurrent" : "depth", mode->n);
    return out;
}

static void show_progress(void *arg, const struct sweep_progress *p)
{
    struct progress *shown = arg;
    uint64_t now = clock_now_ns();
    char size[SWEEP_TEXT_BYTES], mode[32], left[32] = "";

    if (now < shown->next_ns)
        return;
    /* The first line after 5 s where lines stay: a short run needs none. */
    if (!shown->is_terminal && shown->next_ns == 0) {
        shown->next_ns = now + PROGRESS_PLAIN_NS;
        return;
    }
    shown->next_ns = now + (shown->is_terminal ? PROGRESS_TERMINAL_NS : PROGRESS_PLAIN_NS);
    shown->is_shown = true;
    if (p->left_ns != UINT64_MAX) {
        unsigned seconds = (unsigned)((p->left_ns + 999999999u) / 1000000000u);

        snprintf(left, sizeof(left), ", %u:%02u left", seconds / 60, seconds % 60);
    }
    fprintf(stderr, "%s%zu of %zu: %s, %s, %s%s%s", shown->is_terminal ? "\r\033[K" : "", p->done, p->total,
            p->algorithm->name, sweep_size_text(p->request_bytes, size), mode_text(&p->mode, mode), left,
            shown->is_terminal ? "" : "\n");
}

static void end_progress(const struct progress *shown)
{
    if (shown->is_terminal && shown->is_shown)
        fputs("\r\033[K", stderr);
}

/* --- files -------------------------------------------------------------------------------------- */

struct output {
    const struct crypto_sweep_args *args;
    const char *earlier_name;
};

static void write_csv(FILE *out, const struct output *o)
{
    sweep_report_csv(out, o->args->result);
}

static void write_json(FILE *out, const struct output *o)
{
    sweep_report_json(out, o->args->result);
}

static void write_html(FILE *out, const struct output *o)
{
    sweep_report_html(out, o->args->result, o->args->earlier, o->earlier_name);
}

/* A device or a pipe is written to; a file appears whole or not at all. */
static int write_file(const char *path, void (*write)(FILE *, const struct output *), const struct output *o)
{
    char temporary[TEXT_BYTES];
    struct stat found;
    bool is_direct = stat(path, &found) == 0 && !S_ISREG(found.st_mode), ok = false;
    mode_t mask = umask(0);
    FILE *out = NULL;
    int fd = -1;

    umask(mask);
    if (is_direct) {
        out = fopen(path, "we");
    } else if (snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path) < (int)sizeof(temporary)) {
        fd = mkstemp(temporary);
        if (fd >= 0 && fchmod(fd, 0666 & ~mask) == 0)
            out = fdopen(fd, "w");
        if (fd >= 0 && !out)
            close(fd);
    }
    if (out) {
        write(out, o);
        ok = !ferror(out);
        ok = fclose(out) == 0 && ok;
    }
    if (ok && !is_direct)
        ok = rename(temporary, path) == 0;
    if (!ok) {
        fprintf(stderr, "sallyport crypto sweep: %s: %s\n", path, strerror(errno));
        if (fd >= 0)
            unlink(temporary);
    }
    return ok ? 0 : 1;
}

static int report(const struct crypto_sweep_args *a)
{
    const char *slash = a->compare_with ? strrchr(a->compare_with, '/') : NULL;
    struct output o = {.args = a, .earlier_name = slash ? slash + 1 : a->compare_with};
    int status = 0;

    sweep_report_text(stdout, a->result, a->earlier, o.earlier_name);
    if (a->csv)
        status |= write_file(a->csv, write_csv, &o);
    if (a->json)
        status |= write_file(a->json, write_json, &o);
    if (a->html)
        status |= write_file(a->html, write_html, &o);
    return status;
}

/* --- the run ------------------------------------------------------------------------------------ */

static int list_impls(void)
{
    static const struct sweep_limits limits = {.request_bytes_max = SWEEP_BYTES_DEFAULT_MAX, .threads_max = 1,
                                               .depth_max = 1};

    for (size_t i = 0; sweep_impls[i]; i++) {
        const struct sweep_impl *impl = sweep_impls[i];
        struct sweep_device *device = NULL;
        char description[256] = "";
        struct sweep_why why = {""};
        bool is_bracketed = impl->argument && impl->argument[0] == '[';

        printf("%s%s%s%s\n    %s\n", impl->name, is_bracketed ? "[" : "", impl->argument ? ":" : "",
               impl->argument ? impl->argument + is_bracketed : "", impl->summary);
        if (impl->device_open(NULL, &limits, &device, description, sizeof(description), &why) == 0) {
            printf("    here: %s\n", description);
            impl->device_close(device);
        } else {
            printf("    %s%s\n", impl->argument && !is_bracketed ? "" : "not here: ", why.text);
        }
    }
    return 0;
}

/* Those that were named stay, and fail the run; of all rows only those that are there are measured. */
static int note_missing(const struct crypto_sweep_args *a)
{
    struct sweep_run *run = a->run;
    int status = 0;

    for (size_t i = 0; i < a->result->impl_count;) {
        if (run->sources[i].status == 0) {
            i++;
            continue;
        }
        fprintf(stderr, "sallyport crypto sweep: no %s: %s\n", a->result->impls[i].spec, run->sources[i].why.text);
        if (a->impls_named) {
            status = 1;
            i++;
        } else {
            sweep_remove(run, i);
        }
    }
    return status;
}

static void set_slice(const struct crypto_sweep_args *a)
{
    size_t overhead, slices = sweep_slices(a->run, &overhead);
    uint64_t budget_ns = (a->seconds ? a->seconds : BUDGET_S) * 1000000000u, slice_ns;

    slice_ns = a->slice_ms ? a->slice_ms * 1000000u : slices ? budget_ns / (slices + overhead) : SLICE_MIN_NS;
    if (!a->slice_ms && !a->seconds && slice_ns > SLICE_DEFAULT_MAX_NS)
        slice_ns = SLICE_DEFAULT_MAX_NS;
    if (slice_ns < SLICE_MIN_NS) {
        slice_ns = SLICE_MIN_NS;
        fprintf(stderr, "sallyport crypto sweep: %zu slices of at least 1 ms take more than %llu s\n", slices,
                (unsigned long long)(budget_ns / 1000000000u));
    }
    a->result->slice_ns = slice_ns;
    if (!a->quiet) {
        uint64_t seconds = (slices + overhead) * slice_ns / 1000000000u + 1;

        fprintf(stderr, "%zu slices of %.1f ms, about %llu:%02llu\n", slices, (double)slice_ns / 1e6,
                (unsigned long long)(seconds / 60), (unsigned long long)(seconds % 60));
    }
}

/* The reasons stand below the tables. */
static int note_failures(const struct crypto_sweep_args *a)
{
    const struct sweep_run *run = a->run;

    if (run->wrong)
        fprintf(stderr, "sallyport crypto sweep: wrong results in %zu cells, which were not timed\n", run->wrong);
    if (run->stuck)
        fprintf(stderr, "sallyport crypto sweep: %zu implementations stopped answering\n", run->stuck);
    if (run->failed)
        fprintf(stderr, "sallyport crypto sweep: %zu cells failed\n", run->failed);
    return run->wrong || run->stuck || run->failed;
}

/* Nothing to measure: the first reason of each that is there. */
static int note_nothing(const struct crypto_sweep_args *a)
{
    for (size_t i = 0; i < a->result->impl_count; i++) {
        if (a->run->sources[i].status == 0)
            fprintf(stderr, "sallyport crypto sweep: nothing to measure on %s: %s\n", a->result->impls[i].spec,
                    a->result->cells[i].why_not);
    }
    if (a->result->impl_count == 0)
        fputs("sallyport crypto sweep: nothing to measure: no implementation is there\n", stderr);
    return 1;
}

static int measure(const struct crypto_sweep_args *a)
{
    struct progress shown = {.is_terminal = isatty(STDERR_FILENO) != 0};
    struct sweep_run *run = a->run;
    int missing, status = sweep_open(run);

    missing = note_missing(a);
    if (status == 0)
        status = sweep_prepare(run);
    if (status == 0 && run->planned == 0)
        return note_nothing(a);
    if (status == 0) {
        set_slice(a);
        catch_signals();
        run->stop = &interrupted;
        run->seed = clock_now_ns();
        run->progress = a->quiet ? NULL : show_progress;
        run->progress_arg = &shown;
        status = sweep_measure(run);
        end_progress(&shown);
    }
    if (status == SP_ECANCELED || interrupted) {
        fputs("sallyport crypto sweep: interrupted, nothing was written\n", stderr);
        return INTERRUPTED;
    }
    if (status != 0) {
        fputs("sallyport crypto sweep: no memory\n", stderr);
        return 1;
    }
    status = report(a);
    return note_failures(a) || missing || status ? 1 : 0;
}

int crypto_sweep(int argc, char **argv)
{
    struct sweep_result result = {0};
    struct sweep_run run = {.result = &result};
    struct crypto_sweep_args args = {.result = &result, .run = &run};
    int status = crypto_sweep_parse(&args, argc, argv);

    if (status == 0 && args.help) {
        fputs(crypto_sweep_usage, stdout);
    } else if (status == 0 && args.list) {
        status = list_impls();
    } else if (status == 0) {
        result.machine = machine_text();
        result.command = command_text(argc, argv);
        status = measure(&args);
        sweep_finish(&run);
    }
    sweep_table_free(args.earlier);
    sweep_result_release(&result);
    return status;
}
