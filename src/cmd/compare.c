/*
 * sallyport compare: servers side by side, under the same load, in interleaved rounds.
 */
#include "cmd/cmd.h"
#include "cmd/compare_print.h"
#include "cmd/compare_process.h"

#include <sallyport/status.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

static const char usage[] =
    "usage: sallyport compare [--json FILE] [--html FILE] [--rounds N] [--seed N] [--bench PROGRAM]\n"
    "                         [--keep] [--check] FILE\n"
    "\n"
    "Starts the variants that FILE describes, one after the other, in rounds of shuffled order, and\n"
    "measures each with `sallyport bench`. Prints medians, and ratios to a base variant with 95 %\n"
    "intervals; a difference is claimed only where the interval does not hold 1. The exit status is 1\n"
    "when a variant failed requests: nothing is compared then. Ctrl-C keeps what was measured (130).\n"
    "docs/compare.md describes FILE; examples are in bench/.\n"
    "\n"
    "  --json FILE      everything that was measured, and everything needed to repeat it\n"
    "  --html FILE      the same as a page with plots\n"
    "  --rounds N       rounds, instead of what FILE says\n"
    "  --seed N         of the order of the variants and of the intervals\n"
    "  --bench PROGRAM  runs PROGRAM bench --json … URL to measure, instead of this program\n"
    "  --keep           leaves the temporary folder with configurations and logs, and says where\n"
    "  --check          reads FILE, says what it would do, and ends\n";

struct arguments {
    const char *file, *json, *html, *bench;
    uint64_t rounds, seed;
    bool has_seed, keep, check, help;
};

static int bad(const char *option, const char *expected, const char *got)
{
    fprintf(stderr, "sallyport compare: %s: expected %s, got '%s'\n", option, expected, got);
    return 2;
}

static int parse_option(struct arguments *a, const char *name, const char *value)
{
    if (strcmp(name, "--json") == 0) {
        a->json = value;
    } else if (strcmp(name, "--html") == 0) {
        a->html = value;
    } else if (strcmp(name, "--bench") == 0) {
        a->bench = value;
    } else if (strcmp(name, "--rounds") == 0) {
        if (str_to_u64(str_of(value), &a->rounds) != 0 || a->rounds < 1 || a->rounds > COMPARE_ROUNDS_MAX)
            return bad(name, "a number from 1 to 99", value);
    } else {
        if (str_to_u64(str_of(value), &a->seed) != 0 || a->seed > UINT32_MAX)
            return bad(name, "a number below 2^32", value);
        a->has_seed = true;
    }
    return 0;
}

static bool takes_value(const char *name)
{
    static const char *const names[] = {"--json", "--html", "--rounds", "--seed", "--bench"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i], name) == 0)
            return true;
    }
    return false;
}

static int parse_arguments(int argc, char **argv, struct arguments *a)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            a->help = true;
            return 0;
        }
        if (strcmp(argv[i], "--keep") == 0) {
            a->keep = true;
        } else if (strcmp(argv[i], "--check") == 0) {
            a->check = true;
        } else if (takes_value(argv[i])) {
            int status;

            if (i + 1 == argc) {
                fprintf(stderr, "sallyport compare: %s needs a value\n", argv[i]);
                return 2;
            }
            status = parse_option(a, argv[i], argv[i + 1]);
            if (status != 0)
                return status;
            i++;
        } else if (argv[i][0] == '-' || a->file) {
            fprintf(stderr, "sallyport compare: unknown argument '%s'; see --help\n", argv[i]);
            return 2;
        } else {
            a->file = argv[i];
        }
    }
    if (!a->file) {
        fprintf(stderr, "sallyport compare: expected a FILE; see --help\n");
        return 2;
    }
    return 0;
}

/* The whole file, in the arena. 0, or 1 after a message. */
static int read_file(struct arena *arena, const char *path, struct str *out)
{
    FILE *file = fopen(path, "re");
    char *text = arena_alloc(arena, COMPARE_FILE_BYTES_MAX + 1);
    size_t n = 0;
    int error = file ? 0 : errno;

    if (file && text) {
        n = fread(text, 1, COMPARE_FILE_BYTES_MAX + 1, file);
        error = ferror(file) ? errno : 0;
    }
    if (file)
        fclose(file);
    if (error || !text) {
        fprintf(stderr, "sallyport compare: %s: %s\n", path, strerror(error ? error : ENOMEM));
        return 1;
    }
    if (n > COMPARE_FILE_BYTES_MAX) {
        fprintf(stderr, "sallyport compare: %s: expected at most %d bytes\n", path, COMPARE_FILE_BYTES_MAX);
        return 1;
    }
    *out = str_make(text, n);
    return 0;
}

static void print_diag(const struct diag *diag)
{
    for (const struct diag_item *item = diag->first; item; item = item->next)
        fprintf(stderr, "%s:%d: error: %s\n", item->loc.file, item->loc.line, item->text);
}

static int load_plan(struct arena *arena, const struct arguments *a, struct compare_plan *plan)
{
    struct diag diag;
    struct str text;
    int status;

    if (read_file(arena, a->file, &text) != 0)
        return 1;
    diag_init(&diag, arena);
    status = compare_file_parse(plan, arena, a->file, text, &diag);
    print_diag(&diag);
    if (status == SP_ENOMEM)
        fprintf(stderr, "sallyport compare: out of memory\n");
    if (status != 0)
        return 1;
    if (a->rounds)
        plan->rounds = (unsigned)a->rounds;
    if (a->has_seed) {
        plan->seed = a->seed;
    } else if (!plan->has_seed) {
        uint32_t seed = 0;

        /* Recorded, so that the order can be had again. */
        if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
            seed = 1;
        plan->seed = seed;
    }
    return 0;
}

/* An unwritable report is found out before the measurements, not after. */
static int check_writable(const char *path)
{
    FILE *file = path ? fopen(path, "ae") : NULL;

    if (path && !file) {
        fprintf(stderr, "sallyport compare: %s: %s\n", path, strerror(errno));
        return 1;
    }
    if (file)
        fclose(file);
    return 0;
}

static int write_reports(const struct compare_run *run, json_t *machine, const struct arguments *a)
{
    json_t *document;
    int status = 0;

    if (a->json) {
        document = compare_json(run, machine);
        if (!document || json_dump_file(document, a->json, JSON_INDENT(1)) != 0) {
            fprintf(stderr, "sallyport compare: %s: cannot be written: %s\n", a->json, strerror(errno));
            status = 1;
        }
        json_decref(document);
    }
    if (a->html && compare_write_html(run, machine, a->html) != 0) {
        fprintf(stderr, "sallyport compare: %s: cannot be written: %s\n", a->html, strerror(errno));
        status = 1;
    }
    return status;
}

static int run_plan(struct arena *arena, const struct arguments *a, struct compare_plan *plan)
{
    struct compare_options options = {.bench = a->bench ? a->bench : "/proc/self/exe", .keeps_folder = a->keep,
                                      .progress = compare_print_progress};
    struct compare_run *run = arena_zalloc(arena, 1, sizeof(*run));
    json_t *machine;
    int status;

    if (!run) {
        fprintf(stderr, "sallyport compare: out of memory\n");
        return 1;
    }
    compare_prepare_process();
    machine = compare_machine(plan, &options);
    status = compare_run_all(run, plan, &options, arena, plan->seed);
    compare_print_progress(NULL);
    if (!run->is_refused)
        compare_print_result(run, machine);
    if (run->is_interrupted)
        fprintf(stderr, "sallyport compare: interrupted after %u of %u measurements\n", run->measured, run->to_measure);
    else if (run->failure)
        fprintf(stderr, "sallyport compare: %s\n", run->failure);
    if (a->keep && run->dir)
        fprintf(stderr, "sallyport compare: kept %s\n", run->dir);
    if (write_reports(run, machine, a) != 0 && status == 0)
        status = SP_EIO;
    compare_run_release(run);
    json_decref(machine);
    return status == 0 ? 0 : status == SP_ECANCELED ? 130 : 1;
}

int cmd_compare(int argc, char **argv)
{
    struct arguments a = {0};
    struct arena arena;
    struct compare_plan *plan;
    int status = parse_arguments(argc, argv, &a);

    if (status != 0)
        return status;
    if (a.help) {
        fputs(usage, stdout);
        return 0;
    }
    arena_init(&arena, 65536, 0);
    plan = arena_zalloc(&arena, 1, sizeof(*plan));
    status = plan ? load_plan(&arena, &a, plan) : 1;
    if (status == 0 && a.check)
        compare_print_plan(plan);
    else if (status == 0)
        status = check_writable(a.json) || check_writable(a.html) ? 1 : run_plan(&arena, &a, plan);
    arena_release(&arena);
    return status;
}
