#include "cmd/compare_measure.h"

#include "base/status.h"
#include "cmd/compare_process.h"

#include <sallyport/status.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define JSON_BYTES_MAX (32 << 20)
#define TAIL_BYTES 2000
#define ARGUMENTS_MAX (4 * COMPARE_WORDS_MAX)

int compare_fail(struct compare_run *run, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    run->failure = arena_vprintf(run->arena, format, args);
    va_end(args);
    if (!run->failure)
        run->failure = "out of memory";
    return SP_EIO;
}

void compare_note(struct compare_run *run, const char *format, ...)
{
    va_list args;
    const char *text;
    size_t i;
    json_t *known;

    va_start(args, format);
    text = arena_vprintf(run->arena, format, args);
    va_end(args);
    json_array_foreach(run->notes, i, known) {
        if (text && strcmp(json_string_value(known), text) == 0)
            return;
    }
    json_array_append_new(run->notes, json_string(text ? text : "out of memory"));
}

const char *compare_tail(struct arena *arena, const char *path)
{
    FILE *file = fopen(path, "re");
    char bytes[TAIL_BYTES + 1];
    struct str rest;
    const char *text = "";
    long size;
    size_t n;

    if (!file)
        return "";
    fseek(file, 0, SEEK_END);
    size = ftell(file);
    fseek(file, size > TAIL_BYTES ? size - TAIL_BYTES : 0, SEEK_SET);
    n = fread(bytes, 1, TAIL_BYTES, file);
    fclose(file);
    for (size_t i = 0; i < n; i++) {
        if (((unsigned char)bytes[i] < ' ' && bytes[i] != '\n' && bytes[i] != '\t') || bytes[i] == 0x7f)
            bytes[i] = ' '; /* a server's output is not for the terminal to obey */
    }
    for (rest = str_make(bytes, n); rest.len;) {
        size_t len = str_chr(rest, '\n');

        text = arena_printf(arena, "%s\n  %.*s", text, (int)len, rest.ptr);
        if (!text)
            return "";
        rest = str_from(rest, len + 1);
    }
    return text;
}

const char *compare_path(struct compare_run *run, const char *name, const char *suffix)
{
    return arena_printf(run->arena, "%s/%s%s", run->dir, name, suffix);
}

char **compare_argv(struct compare_run *run, const struct compare_server *server, const struct compare_words *words)
{
    char **argv = arena_zalloc(run->arena, words->count + 1, sizeof(*argv));

    for (size_t i = 0; argv && i < words->count; i++) {
        const char *text = compare_expand(run->plan, run->arena, server, run->dir, words->words[i].text);

        if (i == 0 && text && strcmp(text, "sallyport") == 0)
            text = run->self;
        argv[i] = (char *)text;
        if (!text)
            return NULL;
    }
    return argv;
}

const cpu_set_t *compare_pin(struct compare_run *run, const struct compare_cpus *cpus)
{
    cpu_set_t ours, common;

    if (!cpus->text || sched_getaffinity(0, sizeof(ours), &ours) != 0)
        return NULL;
    CPU_AND(&common, &ours, &cpus->set);
    if (CPU_EQUAL(&common, &cpus->set))
        return &cpus->set;
    compare_note(run, "not pinned: this machine does not give us all of the CPUs %s", cpus->text);
    return NULL;
}

/* --- the command --------------------------------------------------------------------------- */

struct arguments {
    char *argv[ARGUMENTS_MAX + 1];
    size_t count;
};

static void add(struct arguments *a, const char *text)
{
    if (a->count < ARGUMENTS_MAX)
        a->argv[a->count++] = (char *)text;
}

static bool add_words(struct compare_run *run, struct arguments *a, const struct compare_server *server,
                      const struct compare_words *words)
{
    for (size_t i = 0; i < words->count; i++) {
        const char *text = compare_expand(run->plan, run->arena, server, run->dir, words->words[i].text);

        if (!text)
            return false;
        add(a, text);
    }
    return true;
}

/* The variant's URL, with the load's path if it has one. */
static const char *url_of(struct compare_run *run, const struct compare_server *server, const struct compare_load *load)
{
    const char *url = compare_expand(run->plan, run->arena, server, run->dir, server->url.text);
    const char *host = url ? strstr(url, "://") : NULL;
    const char *path = load->path ? compare_expand(run->plan, run->arena, server, run->dir, load->path) : NULL;

    if (!host || !load->path)
        return host ? url : NULL;
    host += 3;
    return path ? arena_printf(run->arena, "%.*s%s", (int)(host + strcspn(host, "/?#") - url), url, path) : NULL;
}

static bool build(struct compare_run *run, struct arguments *a, const struct compare_server *server,
                  const struct compare_load *load, pid_t pid)
{
    const char *number = arena_printf(run->arena, "%d", (int)pid), *url = url_of(run, server, load);

    if (!number || !url)
        return false;
    add(a, run->options->bench);
    add(a, "bench");
    add(a, "--json");
    if (!add_words(run, a, server, &load->bench) || !add_words(run, a, server, &server->bench))
        return false;
    if (run->plan->warmup_us) {
        add(a, "--warmup");
        add(a, run->plan->warmup);
    }
    add(a, "--server-pid");
    add(a, number);
    add(a, url);
    return true;
}

static json_t *command_json(const struct arguments *a)
{
    json_t *array = json_array();

    for (size_t i = 0; i < a->count; i++)
        json_array_append_new(array, json_string(a->argv[i]));
    return array;
}

/* --- the answer ---------------------------------------------------------------------------- */

static double number_of(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

static void add_text(struct compare_run *run, const char **list, const char *text)
{
    const char *longer = arena_printf(run->arena, "%s%s%s", *list, **list ? ", " : "", text);

    *list = longer ? longer : *list;
}

/* What failed, in words; NULL: nothing. */
static const char *failed_requests(struct compare_run *run, const json_t *answer)
{
    static const char *const bad_classes[] = {"4xx", "5xx"};
    double errors = number_of(answer, "errors");
    const char *list = "", *name;
    json_t *value;

    if (number_of(answer, "requests") == 0 && errors == 0)
        return "no request was answered";
    json_object_foreach(json_object_get(answer, "error_counts"), name, value) {
        const char *example = json_string_value(json_object_get(json_object_get(answer, "error_examples"), name));

        if (json_number_value(value) > 0)
            add_text(run, &list, arena_printf(run->arena, "%.0f %s%s%.300s%s", json_number_value(value), name,
                                              example ? " (" : "", example ? example : "", example ? ")" : ""));
    }
    for (size_t i = 0; i < sizeof(bad_classes) / sizeof(bad_classes[0]); i++) {
        double n = number_of(json_object_get(answer, "status"), bad_classes[i]);

        if (n > 0)
            add_text(run, &list, arena_printf(run->arena, "%.0f answers %s", n, bad_classes[i]));
    }
    if (!*list && errors > 0)
        list = arena_printf(run->arena, "%.0f errors", errors);
    return *list ? list : NULL;
}

static int take(struct compare_run *run, unsigned round, unsigned variant, unsigned load, json_t *answer)
{
    const struct compare_server *server = &run->plan->variants[run->variants[variant]];
    const struct compare_load *l = &run->plan->loads[load];
    struct compare_cell *cell = compare_result_cell(&run->result, load, variant);
    const json_t *latency = json_object_get(answer, "latency_us");
    const char *failed;

    if (isnan(number_of(answer, "requests")) || isnan(number_of(answer, "errors")) ||
        isnan(number_of(answer, "rate")) || !json_is_object(latency))
        return compare_fail(run, "%s, load %s: bench's JSON lacks requests, errors, rate or latency_us", server->name,
                            l->name);
    if (json_is_true(json_object_get(answer, "interrupted")))
        return SP_ECANCELED;
    failed = failed_requests(run, answer);
    if (failed) {
        run->is_refused = true;
        return compare_fail(run, "not compared: variant %s failed requests under load %s in round %u: %s", server->name,
                            l->name, round + 1, failed);
    }
    cell->values[COMPARE_RATE][round] = number_of(answer, "rate");
    cell->values[COMPARE_CPU_US][round] = number_of(json_object_get(answer, "server"), "cpu_us_a_request");
    cell->values[COMPARE_P50_US][round] = number_of(latency, "p50");
    cell->values[COMPARE_P99_US][round] = number_of(latency, "p99");
    cell->client_limits += json_is_true(json_object_get(json_object_get(answer, "client"), "is_limit"));
    run->measured++;
    return 0;
}

static void keep(struct compare_run *run, unsigned round, unsigned variant, unsigned load, const struct arguments *a,
                 json_t *answer)
{
    json_t *entry = json_object();

    json_object_set_new(entry, "round", json_integer(round + 1));
    json_object_set_new(entry, "variant", json_string(run->plan->variants[run->variants[variant]].name));
    json_object_set_new(entry, "load", json_string(run->plan->loads[load].name));
    json_object_set_new(entry, "command", command_json(a));
    json_object_set(entry, "bench", answer);
    json_array_append_new(run->raw, entry);
}

int compare_measure(struct compare_run *run, unsigned round, unsigned variant, unsigned load)
{
    const struct compare_server *server = &run->plan->variants[run->variants[variant]];
    const struct compare_load *l = &run->plan->loads[load];
    struct arguments arguments = {.count = 0};
    struct compare_command command = {.argv = arguments.argv, .log_path = compare_path(run, "bench", ".log"),
                                      .cpus = compare_pin(run, &run->plan->client_cpus)};
    json_error_t where;
    json_t *answer;
    char *output = NULL;
    size_t output_bytes = 0;
    int exit_status = 0, status;

    if (!command.log_path || !build(run, &arguments, server, l, run->variant_pids[variant]))
        return compare_fail(run, "%s, load %s: no bench command can be made of it", server->name, l->name);
    status = compare_run(&command, run->plan->timeout_us, JSON_BYTES_MAX, &output, &output_bytes, &exit_status);
    if (status == SP_ECANCELED)
        return status;
    if (status == SP_ETIMEDOUT)
        return compare_fail(run, "%s, load %s: bench had not ended after %llu s ('timeout')", server->name, l->name,
                            (unsigned long long)(run->plan->timeout_us / 1000000));
    if (status != 0)
        return compare_fail(run, "%s, load %s: %s cannot be run: %s", server->name, l->name, run->options->bench,
                            status == SP_EIO ? strerror(errno) : sp_status_text(status));
    /* Its exit status says no more than the JSON does; without JSON its words are what there is. */
    answer = json_loadb(output ? output : "", output_bytes, 0, &where);
    free(output);
    if (!json_is_object(answer)) {
        json_decref(answer);
        return compare_fail(run, "%s, load %s: bench gave no JSON (exit status %d, %s)%s", server->name, l->name,
                            exit_status, where.text, compare_tail(run->arena, command.log_path));
    }
    keep(run, round, variant, load, &arguments, answer);
    status = take(run, round, variant, load, answer);
    json_decref(answer);
    return status;
}
