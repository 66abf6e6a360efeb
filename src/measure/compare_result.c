#include "measure/compare_result.h"

#include <sallyport/status.h>

#include <math.h>
#include <stdlib.h>

static const struct {
    const char *text, *name, *less, *more;
    bool more_is_better;
} metrics[COMPARE_METRICS] = {
    [COMPARE_RATE] = {"requests/s", "rate", "slower", "faster", true},
    [COMPARE_CPU_US] = {"CPU us/request", "cpu_us", "less CPU", "more CPU", false},
    [COMPARE_P50_US] = {"p50 us", "p50_us", "shorter", "longer", false},
    [COMPARE_P99_US] = {"p99 us", "p99_us", "shorter", "longer", false},
};

const char *compare_metric_text(enum compare_metric metric)
{
    return metrics[metric].text;
}

const char *compare_metric_name(enum compare_metric metric)
{
    return metrics[metric].name;
}

int compare_result_init(struct compare_result *r, unsigned rounds, unsigned variants, unsigned loads)
{
    size_t cells = (size_t)variants * loads, values = cells * COMPARE_METRICS * rounds;

    if (!rounds || !variants || !loads || rounds > STATS_VALUES_MAX)
        return SP_EINVAL;
    *r = (struct compare_result){.rounds = rounds, .variants = variants, .loads = loads};
    r->cells = calloc(cells, sizeof(*r->cells));
    r->values = calloc(values, sizeof(*r->values));
    if (!r->cells || !r->values) {
        compare_result_release(r);
        return SP_ENOMEM;
    }
    for (size_t i = 0; i < values; i++)
        r->values[i] = NAN;
    for (size_t i = 0; i < cells; i++) {
        for (size_t m = 0; m < COMPARE_METRICS; m++) {
            r->cells[i].values[m] = r->values + (i * COMPARE_METRICS + m) * rounds;
            r->cells[i].median[m] = NAN;
            r->cells[i].verdict[m] = COMPARE_NOTHING;
        }
    }
    return 0;
}

void compare_result_release(struct compare_result *r)
{
    free(r->cells);
    free(r->values);
    *r = (struct compare_result){0};
}

struct compare_cell *compare_result_cell(const struct compare_result *r, unsigned load, unsigned variant)
{
    return &r->cells[(size_t)load * r->variants + variant];
}

static enum compare_verdict judge(const struct compare_cell *cell, const struct compare_cell *base,
                                  enum compare_metric metric)
{
    const struct stats_ratio *ratio = &cell->ratio[metric];

    if (!ratio->has_interval)
        return COMPARE_FEW_ROUNDS;
    if (metric == COMPARE_RATE && (cell->client_limits || base->client_limits))
        return COMPARE_CLIENT;
    if (ratio->high < 1)
        return COMPARE_LESS;
    return ratio->low > 1 ? COMPARE_MORE : COMPARE_SAME;
}

static int summarise(const struct compare_result *r, struct compare_cell *cell, const struct compare_cell *base,
                     enum compare_metric metric)
{
    double own[STATS_VALUES_MAX], other[STATS_VALUES_MAX];
    size_t n = stats_pair(cell->values[metric], cell->values[metric], r->rounds, own, other);
    int status;

    cell->median[metric] = stats_median(own, n);
    cell->ratio[metric] = (struct stats_ratio){NAN, NAN, NAN, false};
    cell->verdict[metric] = cell == base ? COMPARE_IS_BASE : COMPARE_NOTHING;
    if (cell == base)
        return 0;
    n = stats_pair(cell->values[metric], base->values[metric], r->rounds, own, other);
    status = stats_ratio(own, other, n, r->seed, STATS_RESAMPLES, &cell->ratio[metric]);
    if (status == 0)
        cell->verdict[metric] = judge(cell, base, metric);
    return status == SP_ENOMEM ? status : 0;
}

int compare_summarise(struct compare_result *r)
{
    for (unsigned load = 0; load < r->loads; load++) {
        for (unsigned variant = 0; variant < r->variants; variant++) {
            for (unsigned metric = 0; metric < COMPARE_METRICS; metric++) {
                int status = summarise(r, compare_result_cell(r, load, variant),
                                       compare_result_cell(r, load, r->base), metric);

                if (status != 0)
                    return status;
            }
        }
    }
    return 0;
}

const char *compare_verdict_text(enum compare_metric metric, enum compare_verdict verdict)
{
    switch (verdict) {
    case COMPARE_IS_BASE:
        return "base";
    case COMPARE_NOTHING:
        return "not measured";
    case COMPARE_FEW_ROUNDS:
        return "too few rounds";
    case COMPARE_CLIENT:
        return "client at its limit";
    case COMPARE_LESS:
        return metrics[metric].less;
    case COMPARE_MORE:
        return metrics[metric].more;
    case COMPARE_SAME:
        break;
    }
    return "no difference shown";
}

bool compare_verdict_is_better(enum compare_metric metric, enum compare_verdict verdict)
{
    return verdict == (metrics[metric].more_is_better ? COMPARE_MORE : COMPARE_LESS);
}

bool compare_verdict_is_worse(enum compare_metric metric, enum compare_verdict verdict)
{
    return verdict == (metrics[metric].more_is_better ? COMPARE_LESS : COMPARE_MORE);
}
