/*
 * sallyport bench: the load generator.
 */
#include "cmd/cmd.h"

#include "cmd/bench_print.h"
#include "cmd/bench_run.h"
#include "cmd/bench_tls.h"

#include <errno.h>
#include <unistd.h>

#define EXIT_INTERRUPTED 130

/* Opened before the run: a path that cannot be written is not to cost the measurement. NULL after a message. */
static FILE *open_output(const char *option, const char *path)
{
    FILE *file = strcmp(path, "-") == 0 ? stdout : fopen(path, "we");

    if (!file)
        fprintf(stderr, "sallyport bench: %s: '%s': %s\n", option, path, strerror(errno));
    return file;
}

static int close_output(const char *option, const char *path, FILE *file)
{
    int status = ferror(file) ? 1 : 0;

    if (file == stdout)
        status |= fflush(file) != 0;
    else
        status |= fclose(file) != 0;
    if (status)
        fprintf(stderr, "sallyport bench: %s: '%s' could not be written: %s\n", option, path,
                strerror(errno));
    return status;
}

static int write_report(const struct bench_report *b, FILE *csv, FILE *html)
{
    int status = 0;

    if (b->args->json)
        bench_json(stdout, b);
    else if (csv != stdout && html != stdout)
        bench_print(stdout, b);
    if (csv) {
        bench_csv(csv, b);
        status |= close_output("--csv", b->args->csv, csv);
    }
    if (html) {
        if (bench_html(html, b) != 0) {
            fprintf(stderr, "sallyport bench: --html: out of memory\n");
            status = 1;
        }
        status |= close_output("--html", b->args->html, html);
    }
    if (fflush(stdout) != 0) {
        fprintf(stderr, "sallyport bench: standard output: %s\n", strerror(errno));
        status = 1;
    }
    return status;
}

static int run_once(struct bench_plan *plan, const struct bench_args *args)
{
    struct bench_report report = {.args = args, .plan = plan};
    bool show = !args->quiet && isatty(STDERR_FILENO);
    FILE *csv = NULL, *html = NULL;
    struct bench_run run;
    int status;

    if ((args->csv && !(csv = open_output("--csv", args->csv))) ||
        (args->html && !(html = open_output("--html", args->html)))) {
        if (csv && csv != stdout)
            fclose(csv);
        return 2;
    }
    status = bench_run(&run, &plan->load, (int)args->server_pid, show);
    if (status == 0) {
        report.result = run.result;
        report.interrupted = bench_is_interrupted();
        report.server = args->server_pid ? &run.server : NULL;
        status = write_report(&report, csv, html);
        if (run.result->requests == 0)
            fprintf(stderr, "sallyport bench: nothing was measured: no request was answered\n");
        if (run.result->requests == 0 || bench_errors(run.result) > 0)
            status = 1;
        if (report.interrupted)
            status = EXIT_INTERRUPTED;
    } else {
        if (csv && csv != stdout)
            fclose(csv);
        if (html && html != stdout)
            fclose(html);
    }
    bench_run_release(&run);
    return status;
}

int cmd_bench(int argc, char **argv)
{
    struct bench_plan plan;
    struct bench_args args;
    int status;

    if (argc > 1 && strcmp(argv[1], "tls") == 0)
        return bench_tls(argc - 1, argv + 1);
    status = bench_args_parse(&args, argc, argv);
    if (status == 0 && args.help) {
        fputs(bench_usage, stdout);
        bench_args_release(&args);
        return 0;
    }
    if (status == 0) {
        /* Before the TLS library's first allocation; without it the library's memory is only slower. */
        (void)tls_memory_install();
        bench_catch_signals();
        status = bench_plan_build(&plan, &args);
        if (status == 0)
            status = bench_raise_limits(&plan.load);
        if (status == 0 && args.expect_same)
            status = bench_sample(&plan);
        if (status == 0)
            status = args.find_limit ? bench_find_limit(&plan, &args)
                     : args.hold > 0 ? bench_hold(&plan, &args)
                                     : run_once(&plan, &args);
        bench_plan_release(&plan);
    }
    bench_args_release(&args);
    return status;
}
