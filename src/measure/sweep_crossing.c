/*
 * Where one implementation overtakes another, as a fact and as a sentence.
 */
#include "measure/sweep_points.h"
#include "measure/sweep_report.h"

#include <math.h>
#include <stdarg.h>

#define RANGES_MAX 3

void sweep_points_add(struct sweep_points *p, uint64_t bytes, double a, double b, bool is_even)
{
    if (p->count >= SWEEP_POINTS_MAX || !isfinite(a) || !isfinite(b) || a <= 0 || b <= 0)
        return;
    p->bytes[p->count] = bytes;
    p->a[p->count] = a;
    p->b[p->count] = b;
    p->ahead[p->count++] = is_even || a == b ? 0 : a > b ? 1 : -1;
}

static bool is_within(double value, const struct sweep_cell *cell)
{
    return value >= cell->bytes_per_s_low && value <= cell->bytes_per_s_high;
}

void sweep_points_of(struct sweep_points *p, const struct sweep_result *r, size_t algorithm, size_t mode,
                     enum sweep_metric metric, size_t a, size_t b)
{
    p->count = 0;
    for (size_t i = 0; i < r->size_count; i++) {
        const struct sweep_cell *one = sweep_cell_at(r, algorithm, mode, i, a);
        const struct sweep_cell *other = sweep_cell_at(r, algorithm, mode, i, b);
        bool is_even =
            metric == SWEEP_BY_RATE && is_within(one->bytes_per_s, other) && is_within(other->bytes_per_s, one);

        sweep_points_add(p, r->sizes[i], sweep_cell_value(one, metric), sweep_cell_value(other, metric), is_even);
    }
}

/*
 * Whether a wins at each size. Between two sizes at which the same one is ahead, an even one counts as won by it: noise
 * there must not look like a crossing.
 */
static void list_wins(const struct sweep_points *p, bool *wins)
{
    int before = 0;

    for (size_t i = 0; i < p->count; i++) {
        size_t next = i;

        while (next < p->count && p->ahead[next] == 0)
            next++;
        before = p->ahead[i] ? p->ahead[i] : before;
        wins[i] = p->ahead[i] > 0 || (p->ahead[i] == 0 && before > 0 && next < p->count && p->ahead[next] > 0);
    }
}

/* Straight lines on log axes: where their difference is nothing between points i and k. */
static double interpolate(const struct sweep_points *p, size_t i, size_t k)
{
    double at_i = log(p->a[i] / p->b[i]), at_k = log(p->a[k] / p->b[k]);
    double from = log((double)p->bytes[i]), to = log((double)p->bytes[k]);

    return exp(from + (to - from) * at_i / (at_i - at_k));
}

/* The last place where the lines cross; NAN: none. */
static double last_crossing(const struct sweep_points *p)
{
    double at = NAN;
    size_t before = p->count;

    for (size_t i = 0; i < p->count; i++) {
        if (p->ahead[i] == 0)
            continue;
        if (before < p->count && p->ahead[before] != p->ahead[i])
            at = interpolate(p, before, i);
        before = i;
    }
    return at;
}

struct sweep_crossing sweep_points_crossing(const struct sweep_points *p)
{
    struct sweep_crossing c = {.kind = SWEEP_UNKNOWN, .at_bytes = NAN, .best_ratio = NAN};
    bool wins[SWEEP_POINTS_MAX];
    unsigned changes = 0;
    size_t changed_at = 0;

    if (p->count == 0)
        return c;
    list_wins(p, wins);
    for (size_t i = 0; i < p->count; i++) {
        double ratio = p->a[i] / p->b[i];

        if (!(ratio <= c.best_ratio)) {
            c.best_ratio = ratio;
            c.best_bytes = p->bytes[i];
        }
        if (i > 0 && wins[i] != wins[i - 1]) {
            changes++;
            changed_at = i;
        }
    }
    if (changes == 0) {
        c.kind = wins[0] ? SWEEP_ALWAYS : SWEEP_NEVER;
        return c;
    }
    c.kind = changes > 1 ? SWEEP_MIXED : wins[changed_at] ? SWEEP_FROM : SWEEP_UP_TO;
    if (changes == 1)
        c.from_bytes = p->bytes[changed_at];
    c.at_bytes = last_crossing(p);
    return c;
}

struct sweep_crossing sweep_crossing_of(const struct sweep_result *r, size_t algorithm, size_t mode,
                                        enum sweep_metric metric, size_t a, size_t b)
{
    struct sweep_points p;

    sweep_points_of(&p, r, algorithm, mode, metric, a, b);
    return sweep_points_crossing(&p);
}

struct sentence {
    char *out;
    size_t size, len;
};

__attribute__((format(printf, 2, 3))) static void add(struct sentence *s, const char *format, ...)
{
    va_list args;
    int n;

    if (s->len >= s->size)
        return;
    va_start(args, format);
    n = vsnprintf(s->out + s->len, s->size - s->len, format, args);
    va_end(args);
    s->len += n > 0 ? (size_t)n : 0;
}

static void add_ratio(struct sentence *s, double ratio)
{
    add(s, "%.*fx", ratio < 9.995 ? 2 : ratio < 99.95 ? 1 : 0, ratio);
}

static void add_best(struct sentence *s, const char *before, const struct sweep_crossing *c, const char *after)
{
    char size[SWEEP_TEXT_BYTES];

    add(s, "%s", before);
    add_ratio(s, c->best_ratio);
    add(s, " at %s%s", sweep_size_text(c->best_bytes, size), after);
}

/* " at 16 B, from 64 B to 256 B, from 4 KiB on": the sizes at which a wins. */
static void add_ranges(struct sentence *s, const struct sweep_points *p)
{
    bool wins[SWEEP_POINTS_MAX];
    unsigned ranges = 0;

    list_wins(p, wins);
    for (size_t i = 0; i < p->count; i++) {
        size_t last = i;
        char from[SWEEP_TEXT_BYTES], to[SWEEP_TEXT_BYTES];

        if (!wins[i])
            continue;
        while (last + 1 < p->count && wins[last + 1])
            last++;
        if (ranges++ == RANGES_MAX) {
            add(s, " and elsewhere");
            return;
        }
        add(s, "%s", ranges > 1 ? ", " : " ");
        if (last + 1 == p->count && last > i)
            add(s, "from %s on", sweep_size_text(p->bytes[i], from));
        else if (last > i)
            add(s, "from %s to %s", sweep_size_text(p->bytes[i], from), sweep_size_text(p->bytes[last], to));
        else
            add(s, "at %s", sweep_size_text(p->bytes[i], from));
        i = last;
    }
}

static bool is_even_throughout(const struct sweep_points *p)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->ahead[i] != 0)
            return false;
    return p->count > 0;
}

char *sweep_points_sentence(const struct sweep_points *p, const struct sweep_mode *mode, enum sweep_metric metric,
                            const char *a, const char *b, char *out, size_t size)
{
    struct sweep_crossing c = sweep_points_crossing(p);
    struct sentence s = {out, size, 0};
    const char *by = metric == SWEEP_BY_CPU ? " by bytes a CPU-second" : "";
    char phrase[SWEEP_TEXT_BYTES], from[SWEEP_TEXT_BYTES];

    sweep_mode_phrase(mode, phrase);
    sweep_size_text(c.from_bytes, from);
    if (size)
        out[0] = '\0';
    switch (c.kind) {
    case SWEEP_ALWAYS:
        add(&s, "%s beats %s at every size %s%s", a, b, phrase, by);
        add_best(&s, ", by up to ", &c, "");
        break;
    case SWEEP_FROM:
        add(&s, "%s beats %s from %s on %s%s", a, b, from, phrase, by);
        add_best(&s, ", by up to ", &c, "");
        break;
    case SWEEP_UP_TO:
        add(&s, "%s beats %s only below %s %s%s", a, b, from, phrase, by);
        add_best(&s, ", by up to ", &c, "");
        break;
    case SWEEP_MIXED:
        add(&s, "%s beats %s only", a, b);
        add_ranges(&s, p);
        add(&s, " %s%s", phrase, by);
        add_best(&s, ", by up to ", &c, "");
        break;
    case SWEEP_NEVER:
        if (is_even_throughout(p))
            add(&s, "%s and %s are even at every size %s%s: no difference greater than between rounds", a, b, phrase,
                by);
        else {
            add(&s, "%s never beats %s %s%s", a, b, phrase, by);
            add_best(&s, ": at best ", &c, "");
        }
        break;
    case SWEEP_UNKNOWN:
        add(&s, "%s and %s have no size at which both were measured %s%s", a, b, phrase, by);
        break;
    }
    return out;
}

char *sweep_crossing_sentence(const struct sweep_result *r, size_t algorithm, size_t mode, enum sweep_metric metric,
                              size_t a, size_t b, char *out, size_t size)
{
    struct sweep_points p;

    sweep_points_of(&p, r, algorithm, mode, metric, a, b);
    return sweep_points_sentence(&p, &r->modes[mode], metric, r->impls[a].spec, r->impls[b].spec, out, size);
}
