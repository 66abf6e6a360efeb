#include "cmd/compare_json.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

/* JSON has no NAN. */
static json_t *real_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *metric_json(const struct compare_run *run, const struct compare_cell *cell, enum compare_metric metric)
{
    json_t *object = json_object(), *values = json_array();
    const struct stats_ratio *ratio = &cell->ratio[metric];
    enum compare_verdict verdict = cell->verdict[metric];

    for (unsigned i = 0; i < run->result.rounds; i++)
        json_array_append_new(values, real_or_null(cell->values[metric][i]));
    json_object_set_new(object, "rounds", values);
    json_object_set_new(object, "median", real_or_null(cell->median[metric]));
    json_object_set_new(object, "ratio", verdict == COMPARE_IS_BASE ? json_real(1) : real_or_null(ratio->ratio));
    json_object_set_new(object, "low", ratio->has_interval ? real_or_null(ratio->low) : json_null());
    json_object_set_new(object, "high", ratio->has_interval ? real_or_null(ratio->high) : json_null());
    json_object_set_new(object, "verdict", json_string(compare_verdict_text(metric, verdict)));
    return object;
}

static json_t *loads_json(const struct compare_run *run)
{
    json_t *loads = json_array();

    for (unsigned l = 0; l < run->result.loads; l++) {
        json_t *load = json_object(), *variants = json_array();

        for (unsigned v = 0; v < run->result.variants; v++) {
            const struct compare_cell *cell = compare_result_cell(&run->result, l, v);
            json_t *variant = json_object();

            json_object_set_new(variant, "name", json_string(run->plan->variants[run->variants[v]].name));
            for (unsigned m = 0; m < COMPARE_METRICS; m++)
                json_object_set_new(variant, compare_metric_name(m), metric_json(run, cell, m));
            json_object_set_new(variant, "client_limit_rounds", json_integer(cell->client_limits));
            json_array_append_new(variants, variant);
        }
        json_object_set_new(load, "name", json_string(run->plan->loads[l].name));
        json_object_set_new(load, "variants", variants);
        json_array_append_new(loads, load);
    }
    return loads;
}

static json_t *file_json(const struct compare_plan *plan)
{
    json_t *file = json_object();
    char sha256[65];

    compare_sha256(plan->text, sha256);
    json_object_set_new(file, "path", json_string(plan->path));
    json_object_set_new(file, "sha256", json_string(sha256));
    json_object_set_new(file, "text", json_stringn(plan->text.ptr, plan->text.len));
    return file;
}

json_t *compare_json(const struct compare_run *run, json_t *machine)
{
    const struct compare_plan *plan = run->plan;
    json_t *root = json_object();
    char when[64] = "";
    time_t now = time(NULL);
    struct tm utc;

    if (gmtime_r(&now, &utc))
        strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &utc);
    json_object_set_new(root, "tool", json_string("sallyport compare"));
    json_object_set_new(root, "version", json_string(SP_VERSION));
    json_object_set_new(root, "title", json_string(plan->title));
    json_object_set_new(root, "time", json_string(when));
    json_object_set_new(root, "seed", json_integer((json_int_t)run->seed));
    json_object_set_new(root, "rounds", json_integer(plan->rounds));
    json_object_set_new(root, "rounds_done", json_integer(run->rounds_done));
    json_object_set_new(root, "base",
                        run->variant_count ? json_string(plan->variants[run->variants[run->result.base]].name)
                                           : json_null());
    json_object_set_new(root, "interrupted", json_boolean(run->is_interrupted));
    json_object_set_new(root, "refused", json_boolean(run->is_refused));
    json_object_set_new(root, "failure", run->failure ? json_string(run->failure) : json_null());
    json_object_set_new(root, "loads", loads_json(run));
    json_object_set(root, "notes", run->notes);
    json_object_set(root, "orders", run->orders);
    json_object_set(root, "machine", machine);
    json_object_set_new(root, "file", file_json(plan));
    json_object_set(root, "started", run->rendered);
    json_object_set(root, "measurements", run->raw);
    return root;
}
