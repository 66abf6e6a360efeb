/*
 * The page of a sweep: three charts an algorithm, what they say in words, and every cell.
 */
#include "measure/svg.h"
#include "measure/sweep_report.h"
#include "measure/sweep_table.h"

#include <math.h>
#include <string.h>

#define EARLIER_MAX 16
#define LINES_MAX (SWEEP_IMPLS_MAX + EARLIER_MAX)
#define MARKS_MAX LINES_MAX
#define MARK_ROOM 18.0 /* closer marks share their numbers */
#define TITLE_BYTES 192

/* One line of a chart. */
struct line {
    const char *name;
    unsigned series;
    enum svg_stroke stroke;
    bool is_earlier;
    double x[SWEEP_POINTS_MAX], y[SWEEP_POINTS_MAX];
    size_t count, values; /* points, and those that are not NAN */
};

struct chart {
    const struct sweep_result *result;
    const struct sweep_table *earlier;
    const char *earlier_name;
    size_t algorithm, mode;
    enum sweep_metric metric;
    struct line lines[LINES_MAX];
    size_t line_count;
    unsigned coloured;
    char labels[EARLIER_MAX][SWEEP_TABLE_LABEL_BYTES];
    const struct sweep_table_series *earlier_series[EARLIER_MAX];
    size_t earlier_count;
    /* What is said below it, and where the lines cross: NAN where they do not. */
    char sentences[MARKS_MAX][SWEEP_SENTENCE_BYTES];
    double crosses_at[MARKS_MAX];
    size_t sentence_count;
};

static struct line *add_line(struct chart *c, const char *name)
{
    struct line *line = &c->lines[c->line_count++];

    *line = (struct line){.name = name};
    return line;
}

/* Colours go to lines that are drawn, and differ as long as there are colours. */
static void choose_colour(struct chart *c, struct line *line)
{
    if (line->values == 0)
        return;
    line->series = c->coloured % SVG_SERIES;
    line->stroke = line->is_earlier               ? SVG_DASHED
                   : c->coloured < SVG_SERIES     ? SVG_SOLID
                   : c->coloured < 2 * SVG_SERIES ? SVG_DOTTED
                                                  : SVG_DASH_DOT;
    c->coloured++;
}

static void add_value(struct line *line, uint64_t bytes, double value)
{
    line->x[line->count] = (double)bytes;
    line->y[line->count++] = value > 0 ? value : NAN;
    line->values += value > 0;
}

/* An implementation that is in both keeps its colour. */
static void add_earlier_line(struct chart *c, const struct sweep_table_series *s)
{
    const struct sweep_result *r = c->result;
    struct line *line;

    sweep_table_label(s, &r->modes[c->mode], c->earlier_name, c->labels[c->earlier_count]);
    line = add_line(c, c->labels[c->earlier_count]);
    c->earlier_series[c->earlier_count++] = s;
    line->is_earlier = true;
    for (size_t i = 0; i < s->count; i++)
        add_value(line, s->bytes[i], s->values[i]);
    for (size_t i = 0; i < r->impl_count; i++) {
        if (c->lines[i].values && strcmp(r->impls[i].spec, s->name) == 0) {
            line->series = c->lines[i].series;
            line->stroke = SVG_DASHED;
            return;
        }
    }
    choose_colour(c, line);
}

static void add_sentence(struct chart *c, const struct sweep_points *p, const struct sweep_mode *mode, const char *a,
                         const char *b)
{
    struct sweep_crossing crossing = sweep_points_crossing(p);

    if (crossing.kind == SWEEP_UNKNOWN)
        return; /* the reasons stand below */
    c->crosses_at[c->sentence_count] = crossing.at_bytes;
    sweep_points_sentence(p, mode, c->metric, a, b, c->sentences[c->sentence_count++], SWEEP_SENTENCE_BYTES);
}

static void add_sentences(struct chart *c)
{
    const struct sweep_result *r = c->result;
    struct sweep_points p;

    for (size_t i = 1; i < r->impl_count; i++) {
        sweep_points_of(&p, r, c->algorithm, c->mode, c->metric, i, 0);
        add_sentence(c, &p, &r->modes[c->mode], r->impls[i].spec, r->impls[0].spec);
    }
    for (size_t i = 0; i < c->earlier_count; i++) {
        const struct sweep_table_series *s = c->earlier_series[i], *base = sweep_table_base(c->earlier, s);
        char a[SWEEP_TABLE_LABEL_BYTES], b[SWEEP_TABLE_LABEL_BYTES];

        if (!base)
            continue;
        sweep_table_points(&p, s, base);
        add_sentence(c, &p, &s->mode, sweep_table_label(s, &s->mode, c->earlier_name, a),
                     sweep_table_label(base, &s->mode, c->earlier_name, b));
    }
}

static void gather(struct chart *c)
{
    const struct sweep_result *r = c->result;
    const struct sweep_table_series *s;
    size_t at = 0;

    c->line_count = c->earlier_count = c->sentence_count = 0;
    c->coloured = 0;
    for (size_t i = 0; i < r->impl_count; i++) {
        struct line *line = add_line(c, r->impls[i].spec);

        for (size_t size = 0; size < r->size_count; size++)
            add_value(line, r->sizes[size],
                      sweep_cell_value(sweep_cell_at(r, c->algorithm, c->mode, size, i), c->metric));
        choose_colour(c, line);
    }
    while (c->earlier_count < EARLIER_MAX && (s = sweep_table_next(c->earlier, r->algorithms[c->algorithm]->name,
                                                                   r->modes[c->mode].kind, c->metric, &at)) != NULL)
        add_earlier_line(c, s);
    add_sentences(c);
}

/* Rules where lines cross, with the numbers of the sentences that say so. */
static void put_marks(FILE *out, const struct chart *c, const struct svg_plot *plot)
{
    bool done[MARKS_MAX] = {false};

    for (size_t i = 0; i < c->sentence_count; i++) {
        char text[96];
        int len;

        if (done[i] || isnan(c->crosses_at[i]))
            continue;
        len = snprintf(text, sizeof(text), "%zu", i + 1);
        for (size_t k = i + 1; k < c->sentence_count; k++) {
            double apart = svg_x(plot, c->crosses_at[k]) - svg_x(plot, c->crosses_at[i]);

            if (isnan(apart) || done[k] || fabs(apart) > MARK_ROOM)
                continue;
            done[k] = true;
            svg_rule_x(out, plot, c->crosses_at[k], NULL);
            if (len > 0 && (size_t)len < sizeof(text))
                len += snprintf(text + len, sizeof(text) - (size_t)len, ", %zu", k + 1);
        }
        svg_rule_x(out, plot, c->crosses_at[i], text);
    }
}

static void put_lines(FILE *out, const struct chart *c, const struct svg_plot *plot)
{
    /* The first implementation on top. */
    for (size_t i = c->line_count; i-- > 0;) {
        const struct line *line = &c->lines[i];

        svg_line_stroked(out, plot, line->series, line->stroke, line->name, line->x, line->y, line->count);
        for (size_t k = 0; k < line->count && !line->is_earlier; k++) {
            char tooltip[SWEEP_SENTENCE_BYTES], size[SWEEP_TEXT_BYTES], value[SVG_TEXT_BYTES];

            if (isnan(line->y[k]))
                continue;
            (void)snprintf(tooltip, sizeof(tooltip), "%s, %s: %s", line->name,
                           sweep_size_text((uint64_t)line->x[k], size), svg_format(line->y[k], plot->y.unit, value));
            svg_dot(out, plot, line->series, line->x[k], line->y[k], tooltip);
        }
    }
}

static void put_plot(FILE *out, const struct chart *c)
{
    char title[TITLE_BYTES], mode[SWEEP_TEXT_BYTES];
    struct svg_key keys[LINES_MAX];
    size_t n = 0;
    struct svg_plot plot = {.title = title,
                            .description = c->metric == SWEEP_BY_RATE
                                               ? "Bytes a second by request size; both axes are logarithmic."
                                               : "Bytes for each second of CPU time that the whole system spent.",
                            .x = {SVG_LOG2, SVG_UNIT_SIZE, 0, 0, "request size", NULL, 0},
                            .y = {SVG_LOG, c->metric == SWEEP_BY_RATE ? SVG_UNIT_BYTES_PER_S : SVG_UNIT_BYTES, 0, 0,
                                  c->metric == SWEEP_BY_RATE ? "bytes a second" : "bytes a CPU-second", NULL, 0},
                            .height = 360};

    for (size_t i = 0; i < c->line_count; i++) {
        const struct line *line = &c->lines[i];

        for (size_t k = 0; k < line->count; k++) {
            if (isnan(line->y[k]))
                continue;
            plot.x.low = plot.x.low > 0 && plot.x.low < line->x[k] ? plot.x.low : line->x[k];
            plot.x.high = plot.x.high > line->x[k] ? plot.x.high : line->x[k];
            plot.y.low = plot.y.low > 0 && plot.y.low < line->y[k] ? plot.y.low : line->y[k];
            plot.y.high = plot.y.high > line->y[k] ? plot.y.high : line->y[k];
        }
        if (line->values)
            keys[n++] = (struct svg_key){line->name, line->series, line->stroke};
    }
    (void)snprintf(title, sizeof(title), "%s, %s%s", c->result->algorithms[c->algorithm]->name,
                   sweep_mode_title(&c->result->modes[c->mode], mode),
                   c->metric == SWEEP_BY_RATE ? "" : ": bytes a CPU-second");
    if (n == 0) {
        svg_put(out, "<p>", title,
                c->metric == SWEEP_BY_RATE ? ": nothing was measured.</p>\n"
                                           : ": this system counts no idle time.</p>\n");
        return;
    }
    svg_axis_round(&plot.x);
    svg_axis_round(&plot.y);
    svg_begin(out, &plot);
    put_lines(out, c, &plot);
    put_marks(out, c, &plot); /* their numbers above the dots */
    svg_end_with_keys(out, keys, n);
}

static void put_chart(FILE *out, struct chart *c, size_t mode, enum sweep_metric metric)
{
    c->mode = mode;
    c->metric = metric;
    gather(c);
    put_plot(out, c);
    if (c->sentence_count == 0)
        return;
    fputs("<ol>\n", out);
    for (size_t i = 0; i < c->sentence_count; i++)
        svg_put(out, "<li>", c->sentences[i], "</li>\n");
    fputs("</ol>\n", out);
}

static void put_figure(FILE *out, double value, enum svg_unit unit)
{
    char text[SVG_TEXT_BYTES];

    if (isfinite(value))
        svg_put(out, "<td class=\"n\">", svg_format(value, unit, text), "</td>");
    else
        fputs("<td class=\"n\">–</td>", out);
}

static void put_cell(FILE *out, const struct sweep_cell *cell, const char *spec)
{
    svg_put(out, "<td>", spec, "</td>");
    if (!cell->measured) {
        fputs("<td colspan=\"8\">not measured, see above</td>", out);
        return;
    }
    put_figure(out, cell->bytes_per_s, SVG_UNIT_BYTES_PER_S);
    if (cell->bytes_per_s > 0)
        fprintf(out, "<td class=\"n\">%+.1f %+.1f %%</td>", (cell->bytes_per_s_low / cell->bytes_per_s - 1) * 100,
                (cell->bytes_per_s_high / cell->bytes_per_s - 1) * 100);
    else
        fputs("<td class=\"n\">–</td>", out);
    put_figure(out, cell->requests_per_s, SVG_UNIT_NUMBER);
    put_figure(out, cell->p50_us, SVG_UNIT_US);
    put_figure(out, cell->p99_us, SVG_UNIT_US);
    fprintf(out, "<td class=\"n\">%.0f %%</td>", isfinite(cell->async_share) ? cell->async_share * 100 : 0);
    put_figure(out, cell->bytes_per_cpu_s, SVG_UNIT_BYTES);
    if (cell->errors)
        fprintf(out, "<td class=\"n bad\">%llu</td>", (unsigned long long)cell->errors);
    else
        fputs("<td class=\"n\">0</td>", out);
}

static void put_cells(FILE *out, const struct sweep_result *r, size_t algorithm, size_t mode)
{
    char text[SWEEP_TEXT_BYTES];

    svg_put(out, "<details><summary>Every figure, ", sweep_mode_title(&r->modes[mode], text), "</summary>\n");
    fputs(
        "<div class=\"wide\"><table>\n<thead><tr><th>request</th><th>implementation</th><th class=\"n\">bytes/s</th>"
        "<th class=\"n\">rounds</th><th class=\"n\">requests/s</th><th class=\"n\">p50</th><th class=\"n\">p99</th>"
        "<th class=\"n\">async</th><th class=\"n\">bytes/CPU-s</th><th class=\"n\">errors</th></tr></thead>\n<tbody>\n",
        out);
    for (size_t size = 0; size < r->size_count; size++) {
        for (size_t impl = 0; impl < r->impl_count; impl++) {
            fputs("<tr>", out);
            if (impl == 0) {
                fprintf(out, "<th scope=\"row\" rowspan=\"%zu\" class=\"size\">", r->impl_count);
                svg_put(out, "", sweep_size_text(r->sizes[size], text), "</th>");
            }
            put_cell(out, sweep_cell_at(r, algorithm, mode, size, impl), r->impls[impl].spec);
            fputs("</tr>\n", out);
        }
    }
    fputs("</tbody></table></div></details>\n", out);
}

static bool is_missing_in(const struct sweep_result *r, size_t algorithm, size_t mode, size_t impl, const char *wanted)
{
    char line[SWEEP_SENTENCE_BYTES];
    size_t size = 0;

    while (sweep_missing_next(r, algorithm, mode, impl, &size, line))
        if (strcmp(line, wanted) == 0)
            return true;
    return false;
}

/* One line a reason, above the figures; the mode only where it is not the same in all. */
static void put_missing(FILE *out, const struct sweep_result *r, size_t algorithm, size_t impl, size_t mode)
{
    char line[SWEEP_SENTENCE_BYTES], text[SWEEP_TEXT_BYTES];
    size_t size = 0;

    while (sweep_missing_next(r, algorithm, mode, impl, &size, line)) {
        size_t modes = 0;

        for (size_t i = 0; i < r->mode_count; i++)
            modes += is_missing_in(r, algorithm, i, impl, line);
        if (modes == r->mode_count && mode > 0)
            continue;
        fprintf(out, "<p>Not measured%s%s: ", modes < r->mode_count ? " " : "",
                modes < r->mode_count ? sweep_mode_phrase(&r->modes[mode], text) : "");
        svg_put(out, "", line, ".</p>\n");
    }
}

static void put_algorithm(FILE *out, struct chart *c, size_t algorithm)
{
    const struct sweep_result *r = c->result;

    c->algorithm = algorithm;
    svg_put(out, "<section>\n<h2>", r->algorithms[algorithm]->name, "</h2>\n");
    for (size_t mode = 0; mode < r->mode_count; mode++)
        put_chart(out, c, mode, SWEEP_BY_RATE);
    if (r->mode_count)
        put_chart(out, c, sweep_cpu_mode(r), SWEEP_BY_CPU);
    for (size_t impl = 0; impl < r->impl_count; impl++)
        for (size_t mode = 0; mode < r->mode_count; mode++)
            put_missing(out, r, algorithm, impl, mode);
    for (size_t mode = 0; mode < r->mode_count; mode++)
        put_cells(out, r, algorithm, mode);
    fputs("</section>\n", out);
}

static void put_facts(FILE *out, const struct sweep_result *r)
{
    char text[96];

    fputs("<section>\n<h2>To repeat it</h2>\n<div class=\"wide\"><table><tbody>\n", out);
    if (r->command)
        svg_put_row(out, "<th scope=\"row\">", "command", r->command);
    if (r->machine)
        svg_put_row(out, "<th scope=\"row\">", "machine", r->machine);
    (void)snprintf(text, sizeof(text), "%u of %.4g ms each at every point, %s", r->rounds, (double)r->slice_ns / 1e6,
                   r->in_place ? "in place" : "out of place");
    svg_put_row(out, "<th scope=\"row\">", "rounds", text);
    for (size_t i = 0; i < r->impl_count; i++)
        svg_put_row(out, "<th scope=\"row\">", r->impls[i].spec,
                    r->impls[i].description ? r->impls[i].description : "not available");
    fputs("</tbody></table></div>\n</section>\n", out);
}

void sweep_report_html(FILE *out, const struct sweep_result *r, const struct sweep_table *earlier,
                       const char *earlier_name)
{
    static const char title[] = "Symmetric crypto by request size";
    struct chart *c = malloc(sizeof(*c));

    svg_page_begin(out, title);
    fputs(
        "<p>Medians of the rounds; the implementations took turns. Numbered dashed rules stand where the lines of the "
        "sentence of that number cross.</p>\n",
        out);
    if (earlier)
        svg_put(out, "<p>Dashed lines: the earlier table, ", earlier_name ? earlier_name : "earlier",
                ", of the machine that it was measured on.</p>\n");
    if (!c)
        fputs("<p class=\"warn\">There was no memory left for the charts.</p>\n", out);
    for (size_t i = 0; c && i < r->algorithm_count; i++) {
        c->result = r;
        c->earlier = earlier;
        c->earlier_name = earlier_name;
        put_algorithm(out, c, i);
    }
    free(c);
    put_facts(out, r);
    svg_page_end(out);
}
