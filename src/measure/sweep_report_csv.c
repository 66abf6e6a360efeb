/*
 * For programs: CSV as RFC 4180 has it, and JSON.
 */
#include "measure/svg.h"
#include "measure/sweep_points.h"
#include "measure/sweep_report.h"

#include <math.h>
#include <string.h>

/* In quotes where it has to be; control bytes become spaces, so that a line is a line. */
static void put_field(FILE *out, const char *text)
{
    bool is_quoted = text && strpbrk(text, ",\"\r\n");

    if (is_quoted)
        fputc('"', out);
    for (; text && *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc((unsigned char)*text < ' ' || *text == 0x7f ? ' ' : *text, out);
    }
    if (is_quoted)
        fputc('"', out);
}

/* Nothing for what is not known. */
static void put_figure(FILE *out, double value, int decimals)
{
    fputc(',', out);
    if (isfinite(value))
        fprintf(out, "%.*f", decimals, value);
}

static void put_line(FILE *out, const struct sweep_result *r, size_t algorithm, size_t mode, size_t size, size_t impl)
{
    const struct sweep_cell *c = sweep_cell_at(r, algorithm, mode, size, impl);

    put_field(out, r->algorithms[algorithm]->name);
    fprintf(out, ",%s,%u,%llu,", sweep_mode_name(r->modes[mode].kind), r->modes[mode].n,
            (unsigned long long)r->sizes[size]);
    put_field(out, r->impls[impl].spec);
    if (c->measured) {
        put_figure(out, c->bytes_per_s, 0);
        put_figure(out, c->bytes_per_s_low, 0);
        put_figure(out, c->bytes_per_s_high, 0);
        put_figure(out, c->requests_per_s, 1);
        put_figure(out, c->bytes_per_cpu_s, 0);
        put_figure(out, c->bytes_per_own_cpu_s, 0);
        put_figure(out, c->p50_us, 3);
        put_figure(out, c->p99_us, 3);
        put_figure(out, c->async_share, 4);
        fprintf(out, ",%llu,%llu", (unsigned long long)c->requests, (unsigned long long)c->errors);
    } else {
        fputs(",,,,,,,,,,,", out);
    }
    fprintf(out, ",%u,", r->in_place);
    put_field(out, c->measured ? NULL : c->why_not ? c->why_not : "not measured");
    fputc('\n', out);
}

void sweep_report_csv(FILE *out, const struct sweep_result *r)
{
    fputs(
        "algorithm,mode,n,request_bytes,impl,bytes_per_s,bytes_per_s_low,bytes_per_s_high,requests_per_s,bytes_per_cpu_s,"
        "bytes_per_own_cpu_s,p50_us,p99_us,async_share,requests,errors,in_place,why_not\n",
        out);
    for (size_t algorithm = 0; algorithm < r->algorithm_count; algorithm++)
        for (size_t mode = 0; mode < r->mode_count; mode++)
            for (size_t size = 0; size < r->size_count; size++)
                for (size_t impl = 0; impl < r->impl_count; impl++)
                    put_line(out, r, algorithm, mode, size, impl);
}

/* RFC 8259 section 7; bytes that are no UTF-8 become '?'. NULL: null. */
static void put_string(FILE *out, const char *text)
{
    if (!text) {
        fputs("null", out);
        return;
    }
    fputc('"', out);
    while (*text) {
        size_t len = svg_character_bytes(text);

        if (len == 0)
            fputc('?', out);
        else if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else if ((unsigned char)*text < ' ')
            fprintf(out, "\\u%04x", (unsigned)*text);
        else
            fwrite(text, 1, len, out);
        text += len ? len : 1;
    }
    fputc('"', out);
}

/* JSON has no NAN. */
static void put_member(FILE *out, const char *name, double value)
{
    if (isfinite(value))
        fprintf(out, ", \"%s\": %.10g", name, value);
    else
        fprintf(out, ", \"%s\": null", name);
}

static void put_cell(FILE *out, const struct sweep_result *r, size_t algorithm, size_t mode, size_t size, size_t impl)
{
    const struct sweep_cell *c = sweep_cell_at(r, algorithm, mode, size, impl);

    fprintf(out,
            "{\"mode\": \"%s\", \"n\": %u, \"request_bytes\": %llu, \"impl\": ", sweep_mode_name(r->modes[mode].kind),
            r->modes[mode].n, (unsigned long long)r->sizes[size]);
    put_string(out, r->impls[impl].spec);
    if (c->measured) {
        fputs(", \"measured\": true", out);
        put_member(out, "bytes_per_s", c->bytes_per_s);
        put_member(out, "bytes_per_s_low", c->bytes_per_s_low);
        put_member(out, "bytes_per_s_high", c->bytes_per_s_high);
        put_member(out, "requests_per_s", c->requests_per_s);
        put_member(out, "bytes_per_cpu_s", c->bytes_per_cpu_s);
        put_member(out, "bytes_per_own_cpu_s", c->bytes_per_own_cpu_s);
        put_member(out, "p50_us", c->p50_us);
        put_member(out, "p99_us", c->p99_us);
        put_member(out, "async_share", c->async_share);
        fprintf(out, ", \"requests\": %llu, \"errors\": %llu}", (unsigned long long)c->requests,
                (unsigned long long)c->errors);
    } else {
        fputs(", \"measured\": false, \"why_not\": ", out);
        put_string(out, c->why_not ? c->why_not : "not measured");
        fputc('}', out);
    }
}

static const char *const kinds[] = {
    [SWEEP_ALWAYS] = "always", [SWEEP_NEVER] = "never", [SWEEP_FROM] = "from",
    [SWEEP_UP_TO] = "up_to",   [SWEEP_MIXED] = "mixed", [SWEEP_UNKNOWN] = "unknown",
};

static void put_crossing(FILE *out, const struct sweep_result *r, size_t algorithm, size_t mode,
                         enum sweep_metric metric, size_t a)
{
    struct sweep_crossing c = sweep_crossing_of(r, algorithm, mode, metric, a, 0);
    char sentence[SWEEP_SENTENCE_BYTES];

    fputs("{\"a\": ", out);
    put_string(out, r->impls[a].spec);
    fputs(", \"b\": ", out);
    put_string(out, r->impls[0].spec);
    fprintf(out, ", \"mode\": \"%s\", \"n\": %u, \"metric\": \"%s\", \"kind\": \"%s\"",
            sweep_mode_name(r->modes[mode].kind), r->modes[mode].n,
            metric == SWEEP_BY_RATE ? "bytes_per_s" : "bytes_per_cpu_s", kinds[c.kind]);
    put_member(out, "from_bytes", c.from_bytes ? (double)c.from_bytes : NAN);
    put_member(out, "at_bytes", c.at_bytes);
    put_member(out, "best_ratio", c.best_ratio);
    put_member(out, "best_bytes", c.best_bytes ? (double)c.best_bytes : NAN);
    fputs(", \"sentence\": ", out);
    put_string(out, sweep_crossing_sentence(r, algorithm, mode, metric, a, 0, sentence, sizeof(sentence)));
    fputc('}', out);
}

static void put_algorithm(FILE *out, const struct sweep_result *r, size_t algorithm)
{
    const char *separator = "\n   ";

    fputs("{\"algorithm\": ", out);
    put_string(out, r->algorithms[algorithm]->name);
    fputs(", \"cells\": [", out);
    for (size_t mode = 0; mode < r->mode_count; mode++) {
        for (size_t size = 0; size < r->size_count; size++) {
            for (size_t impl = 0; impl < r->impl_count; impl++) {
                fputs(separator, out);
                put_cell(out, r, algorithm, mode, size, impl);
                separator = ",\n   ";
            }
        }
    }
    fputs("],\n  \"crossings\": [", out);
    separator = "\n   ";
    for (size_t mode = 0; mode < r->mode_count; mode++) {
        for (int metric = SWEEP_BY_RATE; metric <= SWEEP_BY_CPU; metric++) {
            for (size_t impl = 1; impl < r->impl_count; impl++) {
                fputs(separator, out);
                put_crossing(out, r, algorithm, mode, metric, impl);
                separator = ",\n   ";
            }
        }
    }
    fputs("]}", out);
}

void sweep_report_json(FILE *out, const struct sweep_result *r)
{
    fputs("{\"tool\": \"sallyport crypto sweep\", \"version\": ", out);
    put_string(out, SP_VERSION);
    fputs(", \"command\": ", out);
    put_string(out, r->command);
    fputs(", \"machine\": ", out);
    put_string(out, r->machine);
    fprintf(out, ",\n \"rounds\": %u, \"slice_ms\": %.10g, \"in_place\": %s,\n \"impls\": [", r->rounds,
            (double)r->slice_ns / 1e6, r->in_place ? "true" : "false");
    for (size_t i = 0; i < r->impl_count; i++) {
        fputs(i ? ", {\"impl\": " : "{\"impl\": ", out);
        put_string(out, r->impls[i].spec);
        fputs(", \"description\": ", out);
        put_string(out, r->impls[i].description);
        fputc('}', out);
    }
    fputs("],\n \"modes\": [", out);
    for (size_t i = 0; i < r->mode_count; i++)
        fprintf(out, "%s{\"mode\": \"%s\", \"n\": %u}", i ? ", " : "", sweep_mode_name(r->modes[i].kind),
                r->modes[i].n);
    fputs("],\n \"sizes\": [", out);
    for (size_t i = 0; i < r->size_count; i++)
        fprintf(out, "%s%llu", i ? ", " : "", (unsigned long long)r->sizes[i]);
    fputs("],\n \"algorithms\": [", out);
    for (size_t i = 0; i < r->algorithm_count; i++) {
        fputs(i ? ",\n  " : "\n  ", out);
        put_algorithm(out, r, i);
    }
    fputs("\n]}\n", out);
}
