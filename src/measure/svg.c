/*
 * Plots as inline SVG: scales, ticks and marks.
 */
#include "measure/svg.h"

#include <math.h>

#define TOP 34.0 /* room for the legend */
#define BOTTOM 46.0
#define RIGHT 26.0
#define LEFT 70.0
#define TICKS_MAX 24
#define NINES_MAX 6.0
#define COLUMN 6.8 /* width of a letter in a legend */
#define KEY_GAP 32.0

static double plot_height(const struct svg_plot *plot)
{
    return plot->height > 0 ? plot->height : SVG_HEIGHT;
}

static double plot_left(const struct svg_plot *plot)
{
    return plot->left > 0 ? plot->left : LEFT;
}

/* Number of nines of a percent: 0 → 0, 90 → 1, 99 → 2. */
static double nines(double percent)
{
    double rest = 1 - percent / 100;

    return rest <= pow(10, -NINES_MAX) ? NINES_MAX : -log10(rest);
}

/* 0 at the low end of the axis, 1 at the high end; clamped. */
static double fraction(const struct svg_axis *a, double value)
{
    double low = a->low, high = a->high;

    switch (a->scale) {
    case SVG_LOG:
    case SVG_LOG2:
        low = log10(a->low);
        high = log10(a->high);
        value = value > 0 ? log10(value) : low;
        break;
    case SVG_PERCENTILE:
        low = nines(a->low);
        high = nines(a->high);
        value = nines(value);
        break;
    case SVG_CATEGORIES:
        low = -0.5;
        high = (double)(a->category_count ? a->category_count : 1) - 0.5;
        break;
    case SVG_LINEAR:
        break;
    }
    if (!(high > low) || !(value > low))
        return 0;
    return value >= high ? 1 : (value - low) / (high - low);
}

double svg_x(const struct svg_plot *plot, double value)
{
    double left = plot_left(plot);

    return left + fraction(&plot->x, value) * (SVG_WIDTH - left - RIGHT);
}

double svg_y(const struct svg_plot *plot, double value)
{
    double room = plot_height(plot) - TOP - BOTTOM, share = fraction(&plot->y, value);

    /* Categories are read from the top down. */
    return TOP + (plot->y.scale == SVG_CATEGORIES ? share : 1 - share) * room;
}

/* 1, 2 or 5 times a power of ten, so that about `count` steps fill the span. */
static double nice_step(double span, double count)
{
    double raw = span / count, power, digit;

    if (!(raw > 0) || !isfinite(raw))
        return 1;
    power = pow(10, floor(log10(raw)));
    digit = raw / power;
    return power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
}

/* The round value of 1, 2, 5 times a power of ten at or beyond v. */
static double nice_beyond(double v, bool up)
{
    static const double digits[] = {1, 2, 5, 10};
    double power = pow(10, floor(log10(v) + 1e-9)), best = power;

    for (size_t i = 0; i < sizeof(digits) / sizeof(digits[0]); i++) {
        double candidate = digits[i] * power;

        if (up && candidate >= v * (1 - 1e-9))
            return candidate;
        if (!up && candidate <= v * (1 + 1e-9))
            best = candidate;
    }
    return best;
}

void svg_axis_round(struct svg_axis *axis)
{
    double step;

    if (axis->scale == SVG_LOG || axis->scale == SVG_LOG2) {
        if (!(axis->low > 0))
            axis->low = 1;
        if (!(axis->high > axis->low))
            axis->high = axis->low * 1.5;
    }
    if (axis->scale == SVG_LOG2) {
        axis->low = exp2(floor(log2(axis->low) + 1e-9));
        axis->high = exp2(ceil(log2(axis->high) - 1e-9));
    } else if (axis->scale == SVG_LOG) {
        axis->low = nice_beyond(axis->low, false);
        axis->high = nice_beyond(axis->high, true);
    } else if (axis->scale == SVG_LINEAR) {
        if (!(axis->high > axis->low))
            axis->high = axis->low + 1;
        step = nice_step(axis->high - axis->low, 5);
        axis->low = floor(axis->low / step + 1e-9) * step;
        axis->high = ceil(axis->high / step - 1e-9) * step;
    }
}

/* Three digits that matter, more before the point; `short`: without zeros at the end. */
static void put_number(char *out, double value, const char *unit, bool is_short)
{
    double size = fabs(value);
    int decimals = size >= 99.95 || size == 0 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3, len;

    len = snprintf(out, SVG_TEXT_BYTES, "%.*f", decimals, value);
    if (decimals && is_short && len > 0 && len < SVG_TEXT_BYTES) {
        while (len > 0 && out[len - 1] == '0')
            len--;
        if (len > 0 && out[len - 1] == '.')
            len--;
    }
    if (len > 0 && len < SVG_TEXT_BYTES)
        (void)snprintf(out + len, (size_t)(SVG_TEXT_BYTES - len), "%s", unit);
}

/* The greatest prefix that leaves a number of 1 or more, three digits counted. */
static void put_scaled(char *out, double value, double base, const char *const units[6], bool is_short)
{
    unsigned i = 0;

    while (i < 5 && fabs(value) >= base * 0.9995) {
        value /= base;
        i++;
    }
    put_number(out, value, units[i], is_short || (i == 0 && value == floor(value)));
}

static const char *format(double value, enum svg_unit unit, bool is_short, char out[SVG_TEXT_BYTES])
{
    static const char *const sizes[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB"};
    static const char *const bytes[] = {" B", " kB", " MB", " GB", " TB", " PB"};
    static const char *const rates[] = {" B/s", " kB/s", " MB/s", " GB/s", " TB/s", " PB/s"};
    double size = fabs(value);

    if (!isfinite(value)) {
        (void)snprintf(out, SVG_TEXT_BYTES, "-");
    } else if (unit == SVG_UNIT_US) {
        if (size < 999.5)
            put_number(out, value, " us", is_short || value == floor(value));
        else if (size < 999500)
            put_number(out, value / 1000, " ms", is_short);
        else
            put_number(out, value / 1000000, " s", is_short);
    } else if (unit == SVG_UNIT_PERCENT) {
        (void)snprintf(out, SVG_TEXT_BYTES, "%.7g %%", value);
    } else if (unit == SVG_UNIT_S) {
        put_number(out, value, " s", is_short);
    } else if (unit == SVG_UNIT_SIZE) {
        put_scaled(out, value, 1024, sizes, is_short);
    } else if (unit == SVG_UNIT_BYTES || unit == SVG_UNIT_BYTES_PER_S) {
        put_scaled(out, value, 1000, unit == SVG_UNIT_BYTES ? bytes : rates, is_short);
    } else if (size < 9999.5) {
        put_number(out, value, "", is_short || value == floor(value));
    } else if (size < 999500) {
        put_number(out, value / 1000, "k", is_short);
    } else if (size < 999.5e6) {
        put_number(out, value / 1e6, "M", is_short);
    } else {
        put_number(out, value / 1e9, "G", is_short);
    }
    return out;
}

const char *svg_format(double value, enum svg_unit unit, char out[SVG_TEXT_BYTES])
{
    return format(value, unit, false, out);
}

static size_t log_ticks(const struct svg_axis *a, double ticks[TICKS_MAX])
{
    double decades = log10(a->high / a->low), value = nice_beyond(a->low, true);
    size_t n = 0;

    if (!(value > 0))
        return 0;
    while (value <= a->high * (1 + 1e-9) && n < TICKS_MAX) {
        double digit = value / pow(10, floor(log10(value) + 1e-9));

        /* Every decade; 2 and 5 between them where there is room. */
        if (decades <= 3 || digit < 1.5)
            ticks[n++] = value;
        value = nice_beyond(value * 1.01, true);
    }
    return n;
}

/* Powers of two, no closer than there is room for about ten. */
static size_t log2_ticks(const struct svg_axis *a, double ticks[TICKS_MAX])
{
    double doublings = log2(a->high / a->low), step = ceil((doublings + 1) / 11);
    size_t n = 0;

    step = step >= 1 ? step : 1;
    for (double power = ceil(log2(a->low) - 1e-9); power <= log2(a->high) + 1e-9 && n < TICKS_MAX; power += step)
        ticks[n++] = exp2(power);
    return n;
}

static size_t axis_ticks(const struct svg_axis *a, double ticks[TICKS_MAX])
{
    static const double percents[] = {0, 50, 75, 90, 95, 99, 99.9, 99.99, 99.999, 99.9999};
    size_t n = 0;
    double step;

    switch (a->scale) {
    case SVG_LOG:
        return log_ticks(a, ticks);
    case SVG_LOG2:
        return log2_ticks(a, ticks);
    case SVG_PERCENTILE:
        for (size_t i = 0; i < sizeof(percents) / sizeof(percents[0]); i++)
            if (percents[i] >= a->low && percents[i] <= a->high)
                ticks[n++] = percents[i];
        return n;
    case SVG_CATEGORIES:
        while (n < a->category_count && n < TICKS_MAX) {
            ticks[n] = (double)n;
            n++;
        }
        return n;
    case SVG_LINEAR:
        break;
    }
    step = nice_step(a->high - a->low, 5);
    for (double value = ceil(a->low / step - 1e-9) * step; value <= a->high + step * 1e-6 && n < TICKS_MAX;
         value += step)
        ticks[n++] = fabs(value) < step * 1e-6 ? 0 : value;
    return n;
}

static void tick_text(FILE *out, const struct svg_axis *a, double value)
{
    char text[SVG_TEXT_BYTES];

    if (a->scale == SVG_CATEGORIES)
        svg_escape(out, a->categories[(size_t)value]);
    else
        svg_escape(out, format(value, a->unit, true, text));
}

void svg_begin(FILE *out, const struct svg_plot *plot)
{
    double height = plot_height(plot), left = plot_left(plot), bottom = height - BOTTOM, ticks[TICKS_MAX];
    size_t n;

    fputs("<figure>\n<figcaption><b>", out);
    svg_escape(out, plot->title);
    fputs("</b>", out);
    if (plot->description) {
        fputs("<br>", out);
        svg_escape(out, plot->description);
    }
    fprintf(out, "</figcaption>\n<svg viewBox=\"0 0 %d %.0f\" role=\"img\" aria-label=\"", SVG_WIDTH, height);
    svg_escape(out, plot->title);
    fputs("\">\n", out);
    n = axis_ticks(&plot->y, ticks);
    for (size_t i = 0; i < n; i++) {
        double y = svg_y(plot, ticks[i]);

        if (plot->y.scale != SVG_CATEGORIES)
            fprintf(out, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>", left, y, SVG_WIDTH - RIGHT);
        fprintf(out, "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">", left - 8, y + 4);
        tick_text(out, &plot->y, ticks[i]);
        fputs("</text>\n", out);
    }
    n = axis_ticks(&plot->x, ticks);
    for (size_t i = 0; i < n; i++) {
        double x = svg_x(plot, ticks[i]);

        fprintf(out, "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>", x,
                plot->x.scale == SVG_CATEGORIES ? bottom : TOP, bottom + 4);
        fprintf(out, "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", x, bottom + 18);
        tick_text(out, &plot->x, ticks[i]);
        fputs("</text>\n", out);
    }
    fprintf(out, "<path class=\"axis\" d=\"M%.1f %.1fV%.1fH%.1f\"/>\n", left, TOP, bottom, SVG_WIDTH - RIGHT);
    if (plot->x.label) {
        fprintf(out, "<text class=\"label\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">",
                (left + SVG_WIDTH - RIGHT) / 2, height - 8);
        svg_escape(out, plot->x.label);
        fputs("</text>\n", out);
    }
    if (plot->y.label) {
        fprintf(out, "<text class=\"label\" x=\"4\" y=\"%.1f\">", TOP - 18);
        svg_escape(out, plot->y.label);
        fputs("</text>\n", out);
    }
}

void svg_end(FILE *out)
{
    fputs("</svg>\n</figure>\n", out);
}

static void put_tooltip(FILE *out, const char *tooltip)
{
    if (!tooltip)
        return;
    fputs("<title>", out);
    svg_escape(out, tooltip);
    fputs("</title>", out);
}

static const char *const strokes[] = {
    [SVG_SOLID] = "", [SVG_DASHED] = " dashed", [SVG_DOTTED] = " dotted", [SVG_DASH_DOT] = " dashdot"};

void svg_line_stroked(FILE *out, const struct svg_plot *plot, unsigned series, enum svg_stroke stroke, const char *name,
                      const double *x, const double *y, size_t n)
{
    bool pen_down = false;

    fprintf(out, "<path class=\"line s%u%s\" d=\"", series % SVG_SERIES, strokes[stroke]);
    for (size_t i = 0; i < n; i++) {
        if (isnan(x[i]) || isnan(y[i])) {
            pen_down = false;
            continue;
        }
        fprintf(out, "%c%.1f %.1f", pen_down ? 'L' : 'M', svg_x(plot, x[i]), svg_y(plot, y[i]));
        /* A stroke of no length is seen thanks to its round caps: a point between two gaps. */
        if (!pen_down && (i + 1 == n || isnan(x[i + 1]) || isnan(y[i + 1])))
            fputs("h0", out);
        pen_down = true;
    }
    fputs("\">", out);
    put_tooltip(out, name);
    fputs("</path>\n", out);
}

void svg_line(FILE *out, const struct svg_plot *plot, unsigned series, const char *name, const double *x,
              const double *y, size_t n)
{
    svg_line_stroked(out, plot, series, SVG_SOLID, name, x, y, n);
}

void svg_dot(FILE *out, const struct svg_plot *plot, unsigned series, double x, double y, const char *tooltip)
{
    fprintf(out, "<circle class=\"dot f%u\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\">", series % SVG_SERIES,
            svg_x(plot, x), svg_y(plot, y));
    put_tooltip(out, tooltip);
    fputs("</circle>\n", out);
}

static void put_bar(FILE *out, unsigned series, double x, double y, double width, double height,
                    const char *tooltip)
{
    fprintf(out, "<rect class=\"f%u\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\">",
            series % SVG_SERIES, x, y, width, height);
    put_tooltip(out, tooltip);
    fputs("</rect>\n", out);
}

void svg_bar(FILE *out, const struct svg_plot *plot, unsigned series, double x_from, double x_to, double y,
             const char *tooltip)
{
    double left = svg_x(plot, x_from), width = svg_x(plot, x_to) - left, top = svg_y(plot, y);
    double gap = width > 4 ? 1 : 0;

    put_bar(out, series, left, top, width - gap, plot_height(plot) - BOTTOM - top, tooltip);
}

void svg_bar_horizontal(FILE *out, const struct svg_plot *plot, unsigned series, double y_from, double y_to,
                        double x, const char *tooltip)
{
    double top = svg_y(plot, y_from), bottom = svg_y(plot, y_to);

    put_bar(out, series, plot_left(plot), top < bottom ? top : bottom, svg_x(plot, x) - plot_left(plot),
            fabs(bottom - top), tooltip);
}

void svg_interval_horizontal(FILE *out, const struct svg_plot *plot, double y, double x_low, double x_high)
{
    double at = svg_y(plot, y), low = svg_x(plot, x_low), high = svg_x(plot, x_high);

    fprintf(out, "<path class=\"interval\" d=\"M%.1f %.1fH%.1fM%.1f %.1fv10M%.1f %.1fv10\"/>\n", low, at,
            high, low, at - 5, high, at - 5);
}

void svg_interval_vertical(FILE *out, const struct svg_plot *plot, double x, double y_low, double y_high)
{
    double at = svg_x(plot, x), low = svg_y(plot, y_low), high = svg_y(plot, y_high);

    fprintf(out, "<path class=\"interval\" d=\"M%.1f %.1fV%.1fM%.1f %.1fh10M%.1f %.1fh10\"/>\n", at, low,
            high, at - 5, low, at - 5, high);
}

static void put_text(FILE *out, const char *class, double x, double y, const char *anchor, const char *text)
{
    fprintf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", class, x, y, anchor);
    svg_escape(out, text);
    fputs("</text>\n", out);
}

void svg_rule_x(FILE *out, const struct svg_plot *plot, double x, const char *text)
{
    double at = svg_x(plot, x);
    bool near_right = at > SVG_WIDTH - RIGHT - 90;

    fprintf(out, "<path class=\"rule\" d=\"M%.1f %.1fV%.1f\"/>\n", at, TOP, plot_height(plot) - BOTTOM);
    if (text)
        put_text(out, "note", near_right ? at - 5 : at + 5, TOP + 12, near_right ? "end" : "start", text);
}

void svg_rule_y(FILE *out, const struct svg_plot *plot, double y, const char *text)
{
    double at = svg_y(plot, y);

    fprintf(out, "<path class=\"rule\" d=\"M%.1f %.1fH%.1f\"/>\n", plot_left(plot), at, SVG_WIDTH - RIGHT);
    if (text)
        put_text(out, "note", SVG_WIDTH - RIGHT - 4, at - 5, "end", text);
}

void svg_text(FILE *out, const struct svg_plot *plot, double x, double y, const char *text)
{
    put_text(out, "note", svg_x(plot, x), svg_y(plot, y), "start", text);
}

/* Columns that a name takes: bytes that are not the continuation of a character. */
static size_t columns(const char *text)
{
    size_t n = 0;

    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

void svg_legend_of(FILE *out, const char *const *names, const unsigned *series, size_t n)
{
    double x = SVG_WIDTH - RIGHT;

    /* No text can be measured here: a name is taken to be rather wide. */
    for (size_t i = 0; i < n; i++)
        x -= KEY_GAP + COLUMN * (double)columns(names[i]);
    for (size_t i = 0; i < n; i++) {
        fprintf(out, "<rect class=\"f%u\" x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\" rx=\"3\"/>",
                series[i] % SVG_SERIES, x, TOP - 27);
        put_text(out, "key", x + 17, TOP - 17, "start", names[i]);
        x += KEY_GAP + COLUMN * (double)columns(names[i]);
    }
}

void svg_legend(FILE *out, const struct svg_plot *plot, const char *const *names, size_t n)
{
    unsigned series[SVG_SERIES];

    (void)plot;
    n = n < SVG_SERIES ? n : SVG_SERIES;
    for (unsigned i = 0; i < n; i++)
        series[i] = i;
    svg_legend_of(out, names, series, n);
}

void svg_end_with_keys(FILE *out, const struct svg_key *keys, size_t n)
{
    fputs("</svg>\n<p class=\"keys\">", out);
    for (size_t i = 0; i < n; i++) {
        fprintf(out,
                "<span><svg viewBox=\"0 0 26 10\" aria-hidden=\"true\"><path class=\"line s%u%s\" d=\"M2 5h22\"/>"
                "</svg>",
                keys[i].series % SVG_SERIES, strokes[keys[i].stroke]);
        svg_put(out, "", keys[i].name, "</span>\n");
    }
    fputs("</p>\n</figure>\n", out);
}
