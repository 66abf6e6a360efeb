/*
 * For a terminal: the published form.
 */
#include "measure/svg.h"
#include "measure/sweep_report.h"
#include "measure/sweep_table.h"

#include <math.h>
#include <string.h>

#define COLUMN_MIN 12
#define EARLIER_MAX 16

struct view {
    const struct sweep_result *result;
    const struct sweep_table *earlier;
    const char *earlier_name;
};

static void put_column(FILE *out, const char *text, const char *heading)
{
    size_t width = strlen(heading);

    fprintf(out, "  %*s", (int)(width > COLUMN_MIN ? width : COLUMN_MIN), text);
}

static void put_value(FILE *out, double value, enum sweep_metric metric, const char *heading)
{
    char text[SVG_TEXT_BYTES];

    put_column(out, svg_format(value, metric == SWEEP_BY_RATE ? SVG_UNIT_BYTES_PER_S : SVG_UNIT_BYTES, text), heading);
}

static void put_table(FILE *out, const struct view *v, size_t algorithm, size_t mode, enum sweep_metric metric)
{
    const struct sweep_result *r = v->result;
    const struct sweep_table_series *earlier[EARLIER_MAX], *s;
    char labels[EARLIER_MAX][SWEEP_TABLE_LABEL_BYTES], text[SWEEP_TEXT_BYTES];
    size_t n = 0, at = 0;

    while (n < EARLIER_MAX && (s = sweep_table_next(v->earlier, r->algorithms[algorithm]->name, r->modes[mode].kind,
                                                    metric, &at)) != NULL) {
        sweep_table_label(s, &r->modes[mode], v->earlier_name, labels[n]);
        earlier[n++] = s;
    }
    fprintf(out, "\n%s, %s: bytes a %s\n%10s", r->algorithms[algorithm]->name, sweep_mode_title(&r->modes[mode], text),
            metric == SWEEP_BY_RATE ? "second" : "CPU-second", "request");
    for (size_t i = 0; i < r->impl_count; i++)
        put_column(out, r->impls[i].spec, r->impls[i].spec);
    for (size_t i = 0; i < n; i++)
        put_column(out, labels[i], labels[i]);
    fputc('\n', out);
    for (size_t size = 0; size < r->size_count; size++) {
        fprintf(out, "%10s", sweep_size_text(r->sizes[size], text));
        for (size_t i = 0; i < r->impl_count; i++)
            put_value(out, sweep_cell_value(sweep_cell_at(r, algorithm, mode, size, i), metric), metric,
                      r->impls[i].spec);
        for (size_t i = 0; i < n; i++)
            put_value(out, sweep_table_value(earlier[i], r->sizes[size]), metric, labels[i]);
        fputc('\n', out);
    }
    if (metric == SWEEP_BY_CPU)
        return; /* the reasons stand below the rates */
    for (size_t i = 0; i < r->impl_count; i++) {
        char line[SWEEP_SENTENCE_BYTES];
        size_t size = 0;

        while (sweep_missing_next(r, algorithm, mode, i, &size, line))
            fprintf(out, "  - %s\n", line);
    }
}

static void put_crossings(FILE *out, const struct sweep_result *r, size_t algorithm)
{
    const char *name = r->algorithms[algorithm]->name;
    char sentence[SWEEP_SENTENCE_BYTES];
    bool has_heading = false;

    for (int metric = SWEEP_BY_RATE; metric <= SWEEP_BY_CPU; metric++) {
        for (size_t mode = 0; mode < r->mode_count; mode++) {
            for (size_t i = 1; i < r->impl_count; i++) {
                /* Why there is nothing to compare stands below the tables. */
                if (sweep_crossing_of(r, algorithm, mode, metric, i, 0).kind == SWEEP_UNKNOWN)
                    continue;
                if (!has_heading)
                    fprintf(out, "\n%s:\n", name);
                has_heading = true;
                fprintf(out, "  %s\n",
                        sweep_crossing_sentence(r, algorithm, mode, metric, i, 0, sentence, sizeof(sentence)));
            }
        }
    }
    if (r->impl_count > 1 && !has_heading)
        fprintf(out, "\n%s: nothing to compare with %s at the same size\n", name, r->impls[0].spec);
}

/* What an earlier table says by itself, about one algorithm or about none. */
static void put_earlier_crossings(FILE *out, const struct view *v, const char *algorithm)
{
    bool has_heading = false;

    for (size_t i = 0; v->earlier && i < v->earlier->count; i++) {
        const struct sweep_table_series *s = &v->earlier->series[i], *base = sweep_table_base(v->earlier, s);
        char sentence[SWEEP_SENTENCE_BYTES];
        struct sweep_points p;

        if (!base || (s->algorithm ? !algorithm || strcmp(s->algorithm, algorithm) != 0 : algorithm != NULL))
            continue;
        sweep_table_points(&p, s, base);
        if (!has_heading)
            fprintf(out, "\n%s%s%s:\n", v->earlier_name ? v->earlier_name : "earlier", algorithm ? ", " : "",
                    algorithm ? algorithm : "");
        has_heading = true;
        fprintf(out, "  %s\n",
                sweep_points_sentence(&p, &s->mode, s->metric, s->name, base->name, sentence, sizeof(sentence)));
    }
}

void sweep_report_text(FILE *out, const struct sweep_result *r, const struct sweep_table *earlier,
                       const char *earlier_name)
{
    struct view v = {r, earlier, earlier_name};

    for (size_t i = 0; i < r->impl_count; i++)
        fprintf(out, "%s: %s\n", r->impls[i].spec, r->impls[i].description ? r->impls[i].description : "not available");
    for (size_t algorithm = 0; algorithm < r->algorithm_count; algorithm++) {
        for (size_t mode = 0; mode < r->mode_count; mode++)
            put_table(out, &v, algorithm, mode, SWEEP_BY_RATE);
        if (r->mode_count)
            put_table(out, &v, algorithm, sweep_cpu_mode(r), SWEEP_BY_CPU);
    }
    for (size_t algorithm = 0; algorithm < r->algorithm_count; algorithm++) {
        put_crossings(out, r, algorithm);
        put_earlier_crossings(out, &v, r->algorithms[algorithm]->name);
    }
    put_earlier_crossings(out, &v, NULL);
}
