/*
 * Sizes, modes and figures in words.
 */
#include "measure/sweep_points.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *sweep_size_text(uint64_t bytes, char out[SWEEP_TEXT_BYTES])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    unsigned unit = 0;

    while (unit < 3 && bytes >= 1024 && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    (void)snprintf(out, SWEEP_TEXT_BYTES, "%llu %s", (unsigned long long)bytes, units[unit]);
    return out;
}

const char *sweep_mode_name(enum sweep_mode_kind kind)
{
    return kind == SWEEP_SINGLE ? "single" : kind == SWEEP_CONCURRENT ? "concurrent" : "depth";
}

const char *sweep_mode_phrase(const struct sweep_mode *mode, char out[SWEEP_TEXT_BYTES])
{
    if (mode->kind == SWEEP_SINGLE)
        (void)snprintf(out, SWEEP_TEXT_BYTES, "when single");
    else
        (void)snprintf(out, SWEEP_TEXT_BYTES, mode->kind == SWEEP_DEPTH ? "with %u in flight" : "with %u concurrent",
                       mode->n);
    return out;
}

const char *sweep_mode_title(const struct sweep_mode *mode, char out[SWEEP_TEXT_BYTES])
{
    if (mode->kind == SWEEP_SINGLE)
        (void)snprintf(out, SWEEP_TEXT_BYTES, "one request at a time");
    else if (mode->kind == SWEEP_CONCURRENT)
        (void)snprintf(out, SWEEP_TEXT_BYTES, "%u threads, one request each", mode->n);
    else
        (void)snprintf(out, SWEEP_TEXT_BYTES, "one thread, %u requests in flight", mode->n);
    return out;
}

double sweep_cell_value(const struct sweep_cell *cell, enum sweep_metric metric)
{
    if (!cell->measured)
        return NAN;
    return metric == SWEEP_BY_RATE ? cell->bytes_per_s : cell->bytes_per_cpu_s;
}

size_t sweep_cpu_mode(const struct sweep_result *r)
{
    for (size_t mode = 0; mode < r->mode_count; mode++)
        if (r->modes[mode].kind == SWEEP_SINGLE)
            return mode;
    return 0;
}

static bool is_same_reason(const struct sweep_cell *a, const struct sweep_cell *b)
{
    if (a->measured || b->measured)
        return false;
    return a->why_not && b->why_not ? strcmp(a->why_not, b->why_not) == 0 : a->why_not == b->why_not;
}

bool sweep_missing_next(const struct sweep_result *r, size_t algorithm, size_t mode, size_t impl, size_t *size,
                        char out[SWEEP_SENTENCE_BYTES])
{
    char from[SWEEP_TEXT_BYTES], to[SWEEP_TEXT_BYTES];
    size_t first = *size, last;
    const char *why;

    while (first < r->size_count && sweep_cell_at(r, algorithm, mode, first, impl)->measured)
        first++;
    if (first >= r->size_count)
        return false;
    last = first;
    while (last + 1 < r->size_count && is_same_reason(sweep_cell_at(r, algorithm, mode, first, impl),
                                                      sweep_cell_at(r, algorithm, mode, last + 1, impl)))
        last++;
    *size = last + 1;
    why = sweep_cell_at(r, algorithm, mode, first, impl)->why_not;
    sweep_size_text(r->sizes[first], from);
    sweep_size_text(r->sizes[last], to);
    if (first == 0 && last + 1 == r->size_count)
        (void)snprintf(out, SWEEP_SENTENCE_BYTES, "%s: %s", r->impls[impl].spec, why ? why : "not measured");
    else
        (void)snprintf(out, SWEEP_SENTENCE_BYTES, "%s at %s%s%s: %s", r->impls[impl].spec, from,
                       last > first ? " to " : "", last > first ? to : "", why ? why : "not measured");
    return true;
}
