#include "measure/compare_report.h"

#include "measure/svg.h"

#include <math.h>
#include <string.h>

#define ROW_HEIGHT 26
#define FRAME_HEIGHT 90
#define CATEGORIES_MAX 64
#define TEXT_BYTES 256

/* Three figures that count, and no more digits than that. */
static void put_number(FILE *out, double value)
{
    if (isnan(value))
        fputs("–", out);
    else
        fprintf(out, "%.*f", value >= 1000 ? 0 : value >= 100 ? 1 : 2, value);
}

static void put_cell(FILE *out, const struct compare_cell *cell, enum compare_metric metric)
{
    const struct stats_ratio *ratio = &cell->ratio[metric];
    enum compare_verdict verdict = cell->verdict[metric];

    fputs("<td class=\"n\">", out);
    put_number(out, cell->median[metric]);
    if (verdict != COMPARE_IS_BASE && verdict != COMPARE_NOTHING) {
        fprintf(out, "<br>× %.3f", ratio->ratio);
        if (ratio->has_interval)
            fprintf(out, "<br>(%.3f to %.3f)", ratio->low, ratio->high);
    }
    fputs("<br>", out);
    if (compare_verdict_is_better(metric, verdict) || compare_verdict_is_worse(metric, verdict))
        fprintf(out, "<strong>%s</strong>", compare_verdict_text(metric, verdict));
    else
        fprintf(out, "<em>%s</em>", compare_verdict_text(metric, verdict));
    fputs("</td>", out);
}

static void put_table(FILE *out, const struct compare_report *r, unsigned load)
{
    fputs("<div class=\"wide\"><table><thead><tr><th>variant</th>", out);
    for (unsigned m = 0; m < COMPARE_METRICS; m++)
        fprintf(out, "<th class=\"n\">%s</th>", compare_metric_text(m));
    fputs("</tr></thead><tbody>\n", out);
    for (unsigned v = 0; v < r->result->variants; v++) {
        svg_put(out, "<tr><th scope=\"row\">", r->variant_names[v], "</th>");
        for (unsigned m = 0; m < COMPARE_METRICS; m++)
            put_cell(out, compare_result_cell(r->result, load, v), m);
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div>\n", out);
}

static bool has_values(const struct compare_report *r, unsigned load, enum compare_metric metric, double *max)
{
    bool any = false;

    *max = 0;
    for (unsigned v = 0; v < r->result->variants; v++) {
        for (unsigned i = 0; i < r->result->rounds; i++) {
            double value = compare_result_cell(r->result, load, v)->values[metric][i];

            if (isnan(value))
                continue;
            any = true;
            *max = value > *max ? value : *max;
        }
    }
    return any;
}

/* Every round of every variant, the median marked: what the table's figures are made of. */
static void put_rounds(FILE *out, const struct compare_report *r, unsigned load, enum compare_metric metric)
{
    char title[TEXT_BYTES], text[TEXT_BYTES];
    struct svg_plot plot = {
        .title = title,
        .description = "A dot is a round, the bar ends at the median.",
        .x = {.scale = SVG_LINEAR, .unit = metric >= COMPARE_P50_US ? SVG_UNIT_US : SVG_UNIT_NUMBER,
              .label = compare_metric_text(metric)},
        .y = {.scale = SVG_CATEGORIES, .categories = r->variant_names, .category_count = r->result->variants},
        .height = FRAME_HEIGHT + ROW_HEIGHT * r->result->variants,
        .left = 190,
    };

    if (!has_values(r, load, metric, &plot.x.high))
        return;
    snprintf(title, sizeof(title), "%s: %s", r->load_names[load], compare_metric_text(metric));
    svg_axis_round(&plot.x);
    svg_begin(out, &plot);
    for (unsigned v = 0; v < r->result->variants; v++) {
        const struct compare_cell *cell = compare_result_cell(r->result, load, v);

        if (!isnan(cell->median[metric])) {
            snprintf(text, sizeof(text), "%s: median %.1f", r->variant_names[v], cell->median[metric]);
            svg_bar_horizontal(out, &plot, 0, v - 0.3, v + 0.3, cell->median[metric], text);
        }
        for (unsigned i = 0; i < r->result->rounds; i++) {
            if (isnan(cell->values[metric][i]))
                continue;
            snprintf(text, sizeof(text), "%s, round %u: %.1f", r->variant_names[v], i + 1, cell->values[metric][i]);
            svg_dot(out, &plot, 1, cell->values[metric][i], v, text);
        }
    }
    svg_end(out);
}

struct forest {
    const char *categories[CATEGORIES_MAX];
    const struct stats_ratio *ratios[CATEGORIES_MAX];
    size_t count;
    double low, high;
};

static void gather(struct forest *f, const struct compare_report *r, unsigned load, enum compare_metric metric)
{
    for (unsigned v = 0; v < r->result->variants && f->count < CATEGORIES_MAX; v++) {
        const struct compare_cell *cell = compare_result_cell(r->result, load, v);

        if (cell->verdict[metric] == COMPARE_IS_BASE || cell->verdict[metric] == COMPARE_NOTHING)
            continue;
        f->categories[f->count] = r->variant_names[v];
        f->ratios[f->count++] = &cell->ratio[metric];
        f->low = cell->ratio[metric].low < f->low ? cell->ratio[metric].low : f->low;
        f->high = cell->ratio[metric].high > f->high ? cell->ratio[metric].high : f->high;
    }
}

/* Ratios with their intervals, beside the line of no difference. */
static void put_ratios(FILE *out, const struct compare_report *r, unsigned load, enum compare_metric metric)
{
    struct forest f = {.low = 1, .high = 1};
    char title[TEXT_BYTES], text[TEXT_BYTES];
    struct svg_plot plot = {
        .title = title,
        .description = "Ratios of medians with 95 % intervals. An interval that reaches the dashed line shows no difference.",
        .x = {.scale = SVG_LINEAR, .unit = SVG_UNIT_NUMBER, .label = "ratio to the base"},
        .y = {.scale = SVG_CATEGORIES, .categories = f.categories},
        .left = 190,
    };

    gather(&f, r, load, metric);
    if (!f.count)
        return;
    snprintf(title, sizeof(title), "%s: %s, beside %s", r->load_names[load], compare_metric_text(metric),
             r->variant_names[r->result->base]);
    plot.y.category_count = f.count;
    plot.height = FRAME_HEIGHT + ROW_HEIGHT * (double)f.count;
    /* Ratios of 1:7 and 7:1 beside each other want equal distances for equal factors. */
    if (f.low > 0 && f.high / f.low > 4)
        plot.x.scale = SVG_LOG;
    plot.x.low = f.low * 0.95;
    plot.x.high = f.high * 1.05;
    svg_axis_round(&plot.x);
    svg_begin(out, &plot);
    svg_rule_x(out, &plot, 1, NULL);
    for (size_t i = 0; i < f.count; i++) {
        if (f.ratios[i]->has_interval)
            svg_interval_horizontal(out, &plot, (double)i, f.ratios[i]->low, f.ratios[i]->high);
        snprintf(text, sizeof(text), "%s %.3f (%.3f to %.3f)", f.categories[i], f.ratios[i]->ratio, f.ratios[i]->low,
                 f.ratios[i]->high);
        svg_dot(out, &plot, 1, f.ratios[i]->ratio, (double)i, text);
    }
    svg_end(out);
}

static void put_load(FILE *out, const struct compare_report *r, unsigned load)
{
    svg_put(out, "<section>\n<h2>Load ", r->load_names[load], "</h2>\n");
    svg_put(out, "<p><code>bench ", r->load_texts[load], "</code></p>\n");
    put_table(out, r, load);
    for (unsigned m = 0; m < COMPARE_METRICS; m++) {
        put_ratios(out, r, load, m);
        put_rounds(out, r, load, m);
    }
    fputs("</section>\n", out);
}

static void put_facts(FILE *out, const struct compare_report *r)
{
    fputs("<section>\n<h2>To repeat it</h2>\n<table><tbody>\n", out);
    for (size_t i = 0; i < r->fact_count; i++)
        svg_put_row(out, "<th scope=\"row\">", r->facts[i].label, r->facts[i].value);
    fputs("</tbody></table>\n", out);
    for (size_t i = 0; i < r->text_count; i++) {
        svg_put(out, "<details><summary>", r->texts[i].label, "</summary><pre>");
        /* Line by line: the escaping takes control bytes away, line ends among them. */
        for (const char *at = r->texts[i].value; *at;) {
            size_t len = strcspn(at, "\n");
            char line[1024];

            snprintf(line, sizeof(line), "%.*s", (int)(len < sizeof(line) ? len : sizeof(line) - 1), at);
            svg_escape(out, line);
            fputc('\n', out);
            at += len + (at[len] == '\n');
        }
        fputs("</pre></details>\n", out);
    }
    fputs("</section>\n", out);
}

void compare_report_html(FILE *out, const struct compare_report *r)
{
    svg_page_begin(out, r->title);
    if (r->failure)
        svg_put(out, "<p class=\"warn\">", r->failure, "</p>\n");
    fprintf(out, "<p>%u of %u rounds were complete. Medians of the rounds; “×” is the ratio of medians to the base (",
            r->rounds_done, r->result->rounds);
    if (r->result->variants)
        svg_escape(out, r->variant_names[r->result->base]);
    fputs(") with its bootstrap 95 % interval. A difference is claimed only where the interval does not hold 1.</p>\n",
          out);
    for (size_t i = 0; i < r->note_count; i++)
        svg_put(out, "<p class=\"warn\">Note: ", r->notes[i], ".</p>\n");
    for (unsigned load = 0; load < r->result->loads; load++)
        put_load(out, r, load);
    put_facts(out, r);
    svg_page_end(out);
}
