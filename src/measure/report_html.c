/*
 * The page of one run.
 */
#include "measure/report.h"

#include "measure/svg.h"

#include <math.h>

#define CURVES_MAX 4
#define POINTS_MAX 400

/* In the table of phases. */
static const double shown_percents[] = {50, 90, 99, 99.9, 99.99};
#define SHOWN (sizeof(shown_percents) / sizeof(shown_percents[0]))

static void put_tiles(FILE *out, const struct report_run *run)
{
    fputs("<div class=\"tiles\">\n", out);
    for (size_t i = 0; i < run->tile_count; i++) {
        svg_put(out, "<div><b>", run->tiles[i].value, "</b>");
        svg_put(out, "<span>", run->tiles[i].name, "</span></div>\n");
    }
    fputs("</div>\n", out);
}

static void put_facts(FILE *out, const char *heading, const struct report_fact *facts, size_t n)
{
    if (n == 0)
        return;
    fprintf(out, "<h2>%s</h2>\n<div class=\"wide\"><table>\n", heading);
    for (size_t i = 0; i < n; i++)
        svg_put_row(out, "<th>", facts[i].name, facts[i].value);
    fputs("</table></div>\n", out);
}

/* The value at a percent that is among those of the phase; NaN otherwise. */
static double percentile_of(const struct report_phase *p, double percent)
{
    for (size_t i = 0; i < p->percentile_count; i++)
        if (fabs(p->percents[i] - percent) < 1e-9)
            return p->percentile_us[i];
    return NAN;
}

static void put_cell(FILE *out, double us)
{
    char text[SVG_TEXT_BYTES];

    fprintf(out, "<td class=\"n\">%s</td>", svg_format(us, SVG_UNIT_US, text));
}

static void put_phases(FILE *out, const struct report_run *run)
{
    fputs("<h2>Times</h2>\n<div class=\"wide\"><table>\n<tr><th></th><th class=\"n\">count</th><th "
          "class=\"n\">min</th>"
          "<th class=\"n\">mean</th><th class=\"n\">sd</th>",
          out);
    for (size_t i = 0; i < SHOWN; i++)
        fprintf(out, "<th class=\"n\">p%.6g</th>", shown_percents[i]);
    fputs("<th class=\"n\">max</th></tr>\n", out);
    for (size_t i = 0; i < run->phase_count; i++) {
        const struct report_phase *p = &run->phases[i];

        if (p->count == 0)
            continue;
        svg_put(out, "<tr><th>", p->name, "</th>");
        fprintf(out, "<td class=\"n\">%llu</td>", (unsigned long long)p->count);
        put_cell(out, p->min_us);
        put_cell(out, p->mean_us);
        put_cell(out, p->stddev_us);
        for (size_t k = 0; k < SHOWN; k++)
            put_cell(out, percentile_of(p, shown_percents[k]));
        put_cell(out, p->max_us);
        fputs("</tr>\n", out);
    }
    fputs("</table></div>\n", out);
}

static void plot_percentiles(FILE *out, const struct report_run *run)
{
    const struct report_phase *curves[CURVES_MAX];
    const char *names[CURVES_MAX];
    struct svg_plot plot = {
        .title = "Latency by percentile",
        .description = "The share of requests that took no longer. Each further nine of the share has "
                       "the same width.",
        .x = {SVG_PERCENTILE, SVG_UNIT_PERCENT, 0, 99, "percentile of requests", NULL, 0},
        .y = {SVG_LOG, SVG_UNIT_US, 0, 0, "latency", NULL, 0}};
    size_t n = 0;

    for (size_t i = 0; i < run->phase_count && n < CURVES_MAX; i++) {
        const struct report_phase *p = &run->phases[i];

        if (!p->is_curve || p->count == 0 || p->percentile_count == 0)
            continue;
        if (n == 0 || p->min_us < plot.y.low)
            plot.y.low = p->min_us;
        if (n == 0 || p->max_us > plot.y.high)
            plot.y.high = p->max_us;
        if (p->percents[p->percentile_count - 1] > plot.x.high)
            plot.x.high = p->percents[p->percentile_count - 1];
        names[n] = p->name;
        curves[n++] = p;
    }
    if (n == 0)
        return;
    svg_axis_round(&plot.y);
    svg_begin(out, &plot);
    for (size_t i = n; i-- > 0;)
        svg_line(out, &plot, (unsigned)i, names[i], curves[i]->percents, curves[i]->percentile_us,
                 curves[i]->percentile_count);
    if (n > 1)
        svg_legend(out, &plot, names, n);
    svg_end(out);
}

static void plot_histogram(FILE *out, const struct report_run *run)
{
    struct svg_plot plot = {.title = "Histogram",
                            .description =
                                "Requests by their latency, in bars of equal width on a logarithmic axis.",
                            .x = {SVG_LOG, SVG_UNIT_US, 0, 0, "latency", NULL, 0},
                            .y = {SVG_LINEAR, SVG_UNIT_NUMBER, 0, 0, "requests", NULL, 0}};
    char tooltip[128], low[SVG_TEXT_BYTES], high[SVG_TEXT_BYTES];

    if (run->bar_count == 0)
        return;
    plot.x.low = run->bars[0].low_us;
    plot.x.high = run->bars[run->bar_count - 1].high_us;
    for (size_t i = 0; i < run->bar_count; i++)
        if ((double)run->bars[i].count > plot.y.high)
            plot.y.high = (double)run->bars[i].count;
    /* The ends of the bars are the ends of the axis: nothing to round. */
    if (!(plot.x.low > 0))
        plot.x.low = 0.5;
    svg_axis_round(&plot.y);
    svg_begin(out, &plot);
    for (size_t i = 0; i < run->bar_count; i++) {
        const struct report_bar *bar = &run->bars[i];

        if (bar->count == 0)
            continue;
        (void)snprintf(tooltip, sizeof(tooltip), "%s to %s: %llu", svg_format(bar->low_us, SVG_UNIT_US, low),
                       svg_format(bar->high_us, SVG_UNIT_US, high), (unsigned long long)bar->count);
        svg_bar(out, &plot, 0, bar->low_us, bar->high_us, (double)bar->count, tooltip);
    }
    svg_end(out);
}

/* Points of the series in time: the middle of each interval. At most POINTS_MAX; neighbours are averaged. */
struct series {
    double at[POINTS_MAX], requests[POINTS_MAX], errors[POINTS_MAX], p50[POINTS_MAX], p99[POINTS_MAX];
    size_t count;
};

static void make_series(const struct report_run *run, struct series *s)
{
    size_t group = (run->interval_count + POINTS_MAX - 1) / POINTS_MAX;

    s->count = 0;
    for (size_t i = 0; i < run->interval_count; i += group) {
        size_t k, answered = 0, n = s->count++;

        s->at[n] = s->requests[n] = s->errors[n] = s->p50[n] = s->p99[n] = 0;
        for (k = 0; k < group && i + k < run->interval_count; k++) {
            const struct report_interval *v = &run->intervals[i + k];

            s->at[n] += v->start_s + v->length_s / 2;
            s->requests[n] += v->requests_per_s;
            s->errors[n] += v->errors_per_s;
            if (v->requests_per_s > 0) {
                answered++;
                s->p50[n] += v->p50_us;
                s->p99[n] = v->p99_us > s->p99[n] ? v->p99_us : s->p99[n];
            }
        }
        s->at[n] /= (double)k;
        s->requests[n] /= (double)k;
        s->errors[n] /= (double)k;
        s->p50[n] = answered ? s->p50[n] / (double)answered : NAN;
        s->p99[n] = answered ? s->p99[n] : NAN;
    }
}

static void plot_throughput(FILE *out, const struct series *s, double end_s)
{
    static const char *const names[] = {"answered", "errors"};
    struct svg_plot plot = {
        .title = "Throughput and errors",
        .description = "Answers and errors a second.",
        .x = {SVG_LINEAR, SVG_UNIT_S, 0, end_s, "time since the measurement began", NULL, 0},
        .y = {SVG_LINEAR, SVG_UNIT_NUMBER, 0, 0, "per second", NULL, 0}};
    bool has_errors = false;

    for (size_t i = 0; i < s->count; i++) {
        double most = s->requests[i] > s->errors[i] ? s->requests[i] : s->errors[i];

        plot.y.high = most > plot.y.high ? most : plot.y.high;
        has_errors |= s->errors[i] > 0;
    }
    if (!has_errors)
        plot.description = "Answers a second. There were no errors.";
    svg_axis_round(&plot.y);
    svg_begin(out, &plot);
    svg_line(out, &plot, 0, "answered", s->at, s->requests, s->count);
    if (has_errors) {
        /* Red, whatever the order of the colours. */
        svg_line(out, &plot, 5, "errors", s->at, s->errors, s->count);
        svg_legend_of(out, names, (const unsigned[]){0, 5}, 2);
    }
    svg_end(out);
}

static void plot_latency(FILE *out, const struct series *s, double end_s)
{
    static const char *const names[] = {"p50", "p99"};
    struct svg_plot plot = {
        .title = "Latency over time",
        .description = "Of the requests answered in each interval; a gap is one without an answer.",
        .x = {SVG_LINEAR, SVG_UNIT_S, 0, end_s, "time since the measurement began", NULL, 0},
        .y = {SVG_LOG, SVG_UNIT_US, 0, 0, "latency", NULL, 0}};

    for (size_t i = 0; i < s->count; i++) {
        if (isnan(s->p50[i]))
            continue;
        if (!(plot.y.low > 0) || s->p50[i] < plot.y.low)
            plot.y.low = s->p50[i];
        if (s->p99[i] > plot.y.high)
            plot.y.high = s->p99[i];
    }
    if (!(plot.y.high > 0))
        return;
    svg_axis_round(&plot.y);
    svg_begin(out, &plot);
    svg_line(out, &plot, 1, "p99", s->at, s->p99, s->count);
    svg_line(out, &plot, 0, "p50", s->at, s->p50, s->count);
    svg_legend(out, &plot, names, 2);
    svg_end(out);
}

static void plot_time(FILE *out, const struct report_run *run)
{
    struct series s;
    double end_s;

    if (run->interval_count == 0)
        return;
    end_s =
        run->intervals[run->interval_count - 1].start_s + run->intervals[run->interval_count - 1].length_s;
    make_series(run, &s);
    plot_throughput(out, &s, end_s);
    plot_latency(out, &s, end_s);
}

void report_html(FILE *out, const struct report_run *run)
{
    svg_page_begin(out, run->title);
    if (run->subtitle)
        svg_put(out, "<p>", run->subtitle, "</p>\n");
    for (size_t i = 0; i < run->warning_count; i++)
        svg_put(out, "<p class=\"warn\">", run->warnings[i], "</p>\n");
    put_tiles(out, run);
    if (run->loop_note)
        svg_put(out, "<p>", run->loop_note, "</p>\n");
    plot_percentiles(out, run);
    plot_histogram(out, run);
    plot_time(out, run);
    put_phases(out, run);
    put_facts(out, "Errors", run->errors, run->error_count);
    put_facts(out, "How it was run", run->setup, run->setup_count);
    svg_page_end(out);
}
