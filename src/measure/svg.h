/*
 * Plots as inline SVG, and the page around them: text written to a stream that the caller has opened.
 * What is written needs no script, no font and no other file; its colours are CSS variables that
 * svg_page_begin defines for light and for dark.
 *
 *     svg_page_begin(out, "Title");
 *     svg_begin(out, &plot);                       frame, grid, ticks, axis labels
 *     svg_line(out, &plot, 0, "p99", x, y, n);     series 0, then 1, ...
 *     svg_legend(out, &plot, names, 2);            only where there are two series or more
 *     svg_end(out);
 *     svg_page_end(out);
 */
#ifndef SP_MEASURE_SVG_H
#define SP_MEASURE_SVG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum svg_scale {
    SVG_LINEAR,
    SVG_LOG,        /* low > 0 */
    SVG_LOG2,       /* low > 0; ticks at powers of two */
    SVG_PERCENTILE, /* values are percents; every further nine takes as much room: 0, 90, 99, 99.9 … */
    SVG_CATEGORIES, /* value i stands in the middle of the i-th of `categories` */
};

enum svg_unit {
    SVG_UNIT_NUMBER, /* 12000 → "12.0k" */
    SVG_UNIT_US,     /* microseconds: "850 us", "1.20 ms", "3.00 s" */
    SVG_UNIT_S,      /* seconds */
    SVG_UNIT_PERCENT,
    SVG_UNIT_SIZE,        /* bytes, in powers of 1024: "64 KiB" */
    SVG_UNIT_BYTES,       /* bytes, in powers of 1000: "1.50 GB" */
    SVG_UNIT_BYTES_PER_S, /* "1.50 GB/s" */
};

struct svg_axis {
    enum svg_scale scale;
    enum svg_unit unit;
    double low, high; /* ends of the axis; svg_axis_round widens them to round values. Not of CATEGORIES */
    const char *label;
    const char *const *categories; /* texts, escaped when written */
    size_t category_count;
};

#define SVG_WIDTH 720
#define SVG_HEIGHT 300
#define SVG_SERIES 6 /* colours; further series take the first ones again */

/* How a line is drawn: the second thing that tells series apart. */
enum svg_stroke { SVG_SOLID, SVG_DASHED, SVG_DOTTED, SVG_DASH_DOT };

struct svg_plot {
    const char *title;       /* above the plot, and what a screen reader says */
    const char *description; /* one sentence below it; NULL: none */
    struct svg_axis x, y;
    double height; /* 0: SVG_HEIGHT */
    double left;   /* room for the labels of y; 0: 70 */
};

/* Widens low and high to values that ticks fall on. A span of nothing becomes one. */
void svg_axis_round(struct svg_axis *axis);

/* Where a value stands, in the SVG's own units; clamped to the plot. */
double svg_x(const struct svg_plot *plot, double value);
double svg_y(const struct svg_plot *plot, double value);

/* Three digits that matter: "1.20 ms", "99.9 %", "12.0k"; whole numbers below 10,000 in full. At most 31 bytes. */
#define SVG_TEXT_BYTES 32
const char *svg_format(double value, enum svg_unit unit, char out[SVG_TEXT_BYTES]);

/* <figure><svg …> with grid, ticks and labels. svg_end closes both. */
void svg_begin(FILE *out, const struct svg_plot *plot);
void svg_end(FILE *out);

/* A line through n points; NaN breaks it. `name` is its tooltip. */
void svg_line(FILE *out, const struct svg_plot *plot, unsigned series, const char *name, const double *x,
              const double *y, size_t n);
void svg_line_stroked(FILE *out, const struct svg_plot *plot, unsigned series, enum svg_stroke stroke, const char *name,
                      const double *x, const double *y, size_t n);
/* A dot with a tooltip. */
void svg_dot(FILE *out, const struct svg_plot *plot, unsigned series, double x, double y, const char *tooltip);
/* A vertical bar from the x axis up to y, between two values of x. On CATEGORIES: from i - 0.3 to i + 0.3 and the like. */
void svg_bar(FILE *out, const struct svg_plot *plot, unsigned series, double x_from, double x_to, double y,
             const char *tooltip);
/* A horizontal bar from the y axis to x, between two values of y (y usually CATEGORIES, counted from the top). */
void svg_bar_horizontal(FILE *out, const struct svg_plot *plot, unsigned series, double y_from, double y_to, double x,
                        const char *tooltip);
/* An interval: a line with an end mark on both sides, at one value of the other axis. */
void svg_interval_horizontal(FILE *out, const struct svg_plot *plot, double y, double x_low, double x_high);
void svg_interval_vertical(FILE *out, const struct svg_plot *plot, double x, double y_low, double y_high);
/* A dashed line across the plot, e.g. at a ratio of 1; `text` stands beside it, NULL: none. */
void svg_rule_x(FILE *out, const struct svg_plot *plot, double x, const char *text);
void svg_rule_y(FILE *out, const struct svg_plot *plot, double y, const char *text);
/* Text at a point, beginning there. */
void svg_text(FILE *out, const struct svg_plot *plot, double x, double y, const char *text);
/* Colour keys in the top right corner, first series first. */
void svg_legend(FILE *out, const struct svg_plot *plot, const char *const *names, size_t n);
/* The same for series that are not 0 to n - 1. */
void svg_legend_of(FILE *out, const char *const *names, const unsigned *series, size_t n);
/* Instead of svg_end: the keys stand below the plot, on as many rows as their names need. */
struct svg_key {
    const char *name;
    unsigned series;
    enum svg_stroke stroke;
};
void svg_end_with_keys(FILE *out, const struct svg_key *keys, size_t n);

/* <!DOCTYPE html> … <body> with the style; the title is escaped and also the <h1>. */
void svg_page_begin(FILE *out, const char *title);
void svg_page_end(FILE *out);
/* The text with & < > " ' escaped; control bytes become spaces and bytes that are no UTF-8 '?'. NULL writes nothing. */
void svg_escape(FILE *out, const char *text);
/* The text escaped, between two pieces of markup: svg_put(out, "<p>", text, "</p>\n"). */
void svg_put(FILE *out, const char *before, const char *text, const char *after);
/* A row of a table of two columns: what `heading` opens ("<th>", "<th scope=\"row\">") holds the name. */
void svg_put_row(FILE *out, const char *heading, const char *name, const char *value);
/* Length of the character of UTF-8 that begins at s, a NUL-terminated text; 0: it is none. RFC 3629 section 4. */
size_t svg_character_bytes(const char *s);

#endif
