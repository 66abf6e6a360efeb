#include "cmd/compare_print.h"

#include <sallyport/status.h>

#include "measure/compare_report.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#define FACTS_MAX (16 + COMPARE_SERVERS_MAX * 2)
#define TEXTS_MAX (1 + COMPARE_SERVERS_MAX * 2 * (COMPARE_ITEMS_MAX + 1))

static const char *variant_name(const struct compare_run *run, unsigned variant)
{
    return run->plan->variants[run->variants[variant]].name;
}

const char *compare_load_text(struct arena *arena, const struct compare_load *load)
{
    const char *text = load->path ? arena_printf(arena, "… %s", load->path) : "";

    for (size_t i = load->bench.count; i-- > 0 && text;)
        text = arena_printf(arena, "%s%s%s", load->bench.words[i].text, *text ? " " : "", text);
    return text;
}

void compare_print_plan(const struct compare_plan *plan)
{
    printf("%s: %u rounds, warm-up %s, base %s\n", plan->title, plan->rounds, plan->warmup,
           plan->variants[plan->base].name);
    for (size_t i = 0; i < plan->service_count; i++)
        printf("service %s\n", plan->services[i].name);
    for (size_t i = 0; i < plan->variant_count; i++)
        printf("variant %s: %s\n", plan->variants[i].name, plan->variants[i].url.text);
    for (size_t i = 0; i < plan->load_count; i++) {
        const char *text = compare_load_text(plan->arena, &plan->loads[i]);

        printf("load %s: bench %s\n", plan->loads[i].name, text ? text : "");
    }
}

/* --- the table ----------------------------------------------------------------------------- */

static void number_text(double value, char out[24])
{
    if (isnan(value))
        snprintf(out, 24, "-");
    else
        snprintf(out, 24, "%.*f", value >= 1000 ? 0 : value >= 100 ? 1 : 2, value);
}

static int name_width(const struct compare_run *run)
{
    size_t width = 7;

    for (unsigned v = 0; v < run->result.variants; v++) {
        size_t len = strlen(variant_name(run, v));

        width = len > width ? len : width;
    }
    return (int)width;
}

static void print_medians(const struct compare_run *run, unsigned load, int width)
{
    char text[24];

    printf("  %-*s", width, "median");
    for (unsigned m = 0; m < COMPARE_METRICS; m++)
        printf("  %14s", compare_metric_text(m));
    printf("\n");
    for (unsigned v = 0; v < run->result.variants; v++) {
        printf("  %-*s", width, variant_name(run, v));
        for (unsigned m = 0; m < COMPARE_METRICS; m++) {
            number_text(compare_result_cell(&run->result, load, v)->median[m], text);
            printf("  %14s", text);
        }
        printf("\n");
    }
}

static void print_ratio(const struct compare_cell *cell, enum compare_metric metric, int width, const char *name)
{
    const struct stats_ratio *ratio = &cell->ratio[metric];

    if (cell->verdict[metric] == COMPARE_IS_BASE || cell->verdict[metric] == COMPARE_NOTHING)
        return;
    printf("  %-*s  %-14s  %6.3f", width, name, compare_metric_text(metric), ratio->ratio);
    if (ratio->has_interval)
        printf("  %6.3f to %6.3f", ratio->low, ratio->high);
    else
        printf("  %16s", "-");
    printf("  %s\n", compare_verdict_text(metric, cell->verdict[metric]));
}

static void print_load(const struct compare_run *run, unsigned load, int width)
{
    const struct compare_load *l = &run->plan->loads[load];
    const char *text = compare_load_text(run->arena, l);

    printf("\nload %s: bench %s\n", l->name, text ? text : "");
    print_medians(run, load, width);
    if (run->result.variants < 2)
        return;
    printf("\n  %-*s  %-14s  %6s  %16s\n", width, "variant", "", "ratio", "95 % interval");
    for (unsigned v = 0; v < run->result.variants; v++) {
        const struct compare_cell *cell = compare_result_cell(&run->result, load, v);

        for (unsigned m = 0; m < COMPARE_METRICS; m++)
            print_ratio(cell, m, width, m ? "" : variant_name(run, v));
    }
}

void compare_print_result(const struct compare_run *run, const json_t *machine)
{
    size_t i;
    json_t *item;

    if (run->measured) {
        printf("%s\n%u of %u rounds, seed %llu, base %s\n", run->plan->title, run->rounds_done, run->plan->rounds,
               (unsigned long long)run->seed, variant_name(run, run->result.base));
        printf("%s, %lld CPUs, %s, governor: %s\n", json_string_value(json_object_get(machine, "cpu")),
               (long long)json_integer_value(json_object_get(machine, "cores")),
               json_string_value(json_object_get(machine, "kernel")),
               json_string_value(json_object_get(machine, "governor")));
    }
    json_array_foreach(json_object_get(machine, "programs"), i, item) {
        if (run->measured)
            printf("  %s: %s\n", json_string_value(json_object_get(item, "name")),
                   json_string_value(json_object_get(item, "version")));
    }
    for (unsigned load = 0; load < run->result.loads && run->measured; load++)
        print_load(run, load, name_width(run));
    if (json_array_size(run->notes))
        printf("\n");
    json_array_foreach(run->notes, i, item)
        printf("note: %s\n", json_string_value(item));
    fflush(stdout);
}

void compare_print_progress(const char *text)
{
    if (!isatty(STDERR_FILENO))
        return;
    fprintf(stderr, "\r\033[K%s", text ? text : "");
    fflush(stderr);
}

/* --- the page ------------------------------------------------------------------------------ */

struct page {
    const struct compare_run *run;
    struct compare_report report;
    const char *variant_names[COMPARE_SERVERS_MAX], *load_names[COMPARE_LOADS_MAX], *load_texts[COMPARE_LOADS_MAX];
    struct compare_fact facts[FACTS_MAX];
    const char *notes[FACTS_MAX];
    struct compare_fact texts[TEXTS_MAX];
};

static void add_fact(struct page *p, const char *label, const char *value)
{
    if (p->report.fact_count < FACTS_MAX && value)
        p->facts[p->report.fact_count++] = (struct compare_fact){label, value};
}

static void add_text(struct page *p, const char *label, const char *value)
{
    if (p->report.text_count < TEXTS_MAX && label && value)
        p->texts[p->report.text_count++] = (struct compare_fact){label, value};
}

static void fill_facts(struct page *p, const json_t *machine)
{
    static const char *const names[] = {"cpu", "kernel", "governor"};
    struct arena *arena = p->run->arena;
    char sha256[65];
    size_t i;
    json_t *item;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        add_fact(p, names[i], json_string_value(json_object_get(machine, names[i])));
    add_fact(p, "CPUs", arena_printf(arena, "%lld", (long long)json_integer_value(json_object_get(machine, "cores"))));
    add_fact(p, "seed", arena_printf(arena, "%llu", (unsigned long long)p->run->seed));
    compare_sha256(p->run->plan->text, sha256);
    add_fact(p, "file", arena_printf(arena, "%s, SHA-256 %s", p->run->plan->path, sha256));
    json_array_foreach(json_object_get(machine, "programs"), i, item)
        add_fact(p, json_string_value(json_object_get(item, "path")),
                 arena_printf(arena, "%s, SHA-256 %s", json_string_value(json_object_get(item, "version")),
                              json_string_value(json_object_get(item, "sha256"))));
    json_array_foreach(p->run->orders, i, item) {
        const char *text = "";
        size_t j;
        json_t *name;

        json_array_foreach(item, j, name)
            text = arena_printf(arena, "%s%s%s", text ? text : "", j ? ", " : "", json_string_value(name));
        add_fact(p, arena_printf(arena, "order of round %zu", i + 1), text);
    }
}

static void fill_texts(struct page *p)
{
    struct arena *arena = p->run->arena;
    const char *server, *file;
    json_t *entry, *text;

    add_text(p, p->run->plan->path, arena_str(arena, p->run->plan->text).ptr);
    json_object_foreach(p->run->rendered, server, entry) {
        const char *command = "";
        size_t i;

        json_array_foreach(json_object_get(entry, "start"), i, text)
            command = arena_printf(arena, "%s%s%s", command ? command : "", i ? " " : "", json_string_value(text));
        if (command && *command)
            add_text(p, arena_printf(arena, "%s: command", server), command);
        json_object_foreach(json_object_get(entry, "files"), file, text)
            add_text(p, arena_printf(arena, "%s: %s", server, file), json_string_value(text));
    }
}

static int fill(struct page *p, const struct compare_run *run, const json_t *machine)
{
    struct compare_report *r = &p->report;
    size_t i;
    json_t *item;

    p->run = run;
    *r = (struct compare_report){.title = run->plan->title, .result = &run->result, .variant_names = p->variant_names,
                                 .load_names = p->load_names, .load_texts = p->load_texts, .facts = p->facts,
                                 .notes = p->notes, .texts = p->texts, .rounds_done = run->rounds_done,
                                 .failure = run->is_interrupted ? "Interrupted before its end." : run->failure};
    for (unsigned v = 0; v < run->variant_count; v++)
        p->variant_names[v] = variant_name(run, v);
    for (unsigned l = 0; l < run->result.loads; l++) {
        p->load_names[l] = run->plan->loads[l].name;
        p->load_texts[l] = compare_load_text(run->arena, &run->plan->loads[l]);
        if (!p->load_texts[l])
            return SP_ENOMEM;
    }
    json_array_foreach(run->notes, i, item) {
        if (r->note_count < FACTS_MAX)
            p->notes[r->note_count++] = json_string_value(item);
    }
    fill_facts(p, machine);
    fill_texts(p);
    return 0;
}

int compare_write_html(const struct compare_run *run, const json_t *machine, const char *path)
{
    struct page *page = arena_zalloc(run->arena, 1, sizeof(*page));
    FILE *out;
    int failed;

    if (!page || fill(page, run, machine) != 0) {
        errno = ENOMEM;
        return SP_EIO;
    }
    out = fopen(path, "we");
    if (!out)
        return SP_EIO;
    compare_report_html(out, &page->report);
    failed = ferror(out);
    return fclose(out) != 0 || failed ? SP_EIO : 0;
}
