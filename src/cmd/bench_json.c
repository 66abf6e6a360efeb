/*
 * docs/bench-json.md and the time series as CSV.
 */
#include "cmd/bench_print.h"

#include "measure/svg.h"

/* RFC 8259 section 7. What is no UTF-8 (a server may have said it) becomes a replacement character. */
static void put_string(FILE *out, const char *text)
{
    fputc('"', out);
    while (*text) {
        unsigned char c = (unsigned char)*text;
        size_t len = svg_character_bytes(text);

        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < 0x20)
            fprintf(out, "\\u%04x", c);
        else if (len == 0)
            fputs("\\ufffd", out);
        else
            fwrite(text, 1, len, out);
        text += len ? len : 1;
    }
    fputc('"', out);
}

static void put_u64(FILE *out, const char *name, uint64_t value)
{
    fprintf(out, "  \"%s\": %llu,\n", name, (unsigned long long)value);
}

static void put_histogram(FILE *out, const char *name, const struct histogram *h)
{
    static const double percents[] = {50, 75, 90, 95, 99, 99.9, 99.99};

    fprintf(out, "  \"%s\": {\"count\": %llu, \"min\": %llu, \"mean\": %.2f, \"stddev\": %.2f", name,
            (unsigned long long)h->count, (unsigned long long)histogram_min_us(h), histogram_mean_us(h),
            histogram_stddev_us(h));
    for (size_t i = 0; i < sizeof(percents) / sizeof(percents[0]); i++)
        fprintf(out, ", \"p%.6g\": %llu", percents[i],
                (unsigned long long)histogram_percentile_us(h, percents[i]));
    fprintf(out, ", \"max\": %llu},\n", (unsigned long long)histogram_max_us(h));
}

static void put_what(FILE *out, const struct bench_report *b)
{
    const struct load_plan *l = &b->plan->load;

    fputs("{\n  \"tool\": \"sallyport bench\", \"version\": \"" SP_VERSION "\",\n  \"url\": ", out);
    put_string(out, b->plan->urls[0]);
    fputs(",\n  \"urls\": [", out);
    for (size_t i = 0; i < l->request_count; i++) {
        fputs(i ? ", " : "", out);
        put_string(out, b->plan->urls[i]);
    }
    fprintf(out,
            "],\n  \"loop\": \"%s\",\n  \"connections\": %u, \"threads\": %u, \"keepalive\": %s, "
            "\"handshake_only\": %s,\n",
            bench_loop_name(l), l->connections, l->threads, l->close || l->handshake_only ? "false" : "true",
            l->handshake_only ? "true" : "false");
    if (l->arrivals == LOAD_CLOSED)
        fputs("  \"rate_asked\": null, \"arrivals\": null,\n", out);
    else
        fprintf(out, "  \"rate_asked\": %.10g, \"arrivals\": \"%s\",\n", l->rate,
                l->arrivals == LOAD_POISSON ? "poisson" : "constant");
}

static void put_errors(FILE *out, const struct load_result *r)
{
    bool first = true;

    fputs("  \"status\": {", out);
    for (unsigned i = 1; i < 6; i++)
        fprintf(out, "%s\"%uxx\": %llu", i > 1 ? ", " : "", i, (unsigned long long)r->status_class[i]);
    fputs("},\n  \"error_counts\": {", out);
    for (unsigned i = 0; i < LOAD_ERRORS; i++)
        fprintf(out, "%s\"%s\": %llu", i ? ", " : "", load_error_name((enum load_error)i),
                (unsigned long long)r->errors[i]);
    fputs("},\n  \"error_examples\": {", out);
    for (unsigned i = 0; i < LOAD_ERRORS; i++) {
        if (!r->examples[i][0])
            continue;
        fprintf(out, "%s\"%s\": ", first ? "" : ", ", load_error_name((enum load_error)i));
        put_string(out, r->examples[i]);
        first = false;
    }
    fputs("},\n", out);
}

static void put_costs(FILE *out, const struct bench_report *b)
{
    const struct load_result *r = b->result;
    const struct bench_server *s = b->server;

    if (r->tls_version) {
        fprintf(out, "  \"tls\": {\"version\": \"%s\", \"cipher\": \"%s\"},\n", r->tls_version,
                r->tls_cipher ? r->tls_cipher : "");
    }
    fprintf(
        out,
        "  \"client\": {\"cpu_s\": %.6f, \"cpu_us_a_request\": %.3f, \"busy\": %.4f, \"is_limit\": %s},\n",
        r->own_cpu_s, r->requests ? r->own_cpu_s * 1e6 / (double)r->requests : 0, r->busy,
        bench_client_is_limit(r) ? "true" : "false");
    if (s)
        fprintf(out,
                "  \"server\": {\"pid\": %d, \"cpu_s\": %.2f, \"user_s\": %.2f, \"system_s\": %.2f, "
                "\"cpu_percent\": %.2f, "
                "\"cpu_us_a_request\": %.3f, \"rss_max_kib\": %llu},\n",
                s->pid, s->user_s + s->system_s, s->user_s, s->system_s, bench_server_percent(s),
                bench_server_us(s, r), (unsigned long long)s->rss_max_kib);
}

static void put_intervals(FILE *out, const struct load_result *r)
{
    fputs("  \"intervals\": [", out);
    for (size_t i = 0; i < r->interval_count; i++) {
        const struct load_interval *v = &r->intervals[i];

        fprintf(out,
                "%s\n    {\"start_s\": %.6f, \"requests\": %llu, \"errors\": %llu, \"p50_us\": %llu, "
                "\"p99_us\": %llu, "
                "\"max_us\": %llu, \"bytes_in\": %llu}",
                i ? "," : "", (double)v->start_us / 1e6, (unsigned long long)v->requests,
                (unsigned long long)v->errors, (unsigned long long)v->p50_us, (unsigned long long)v->p99_us,
                (unsigned long long)v->max_us, (unsigned long long)v->bytes_in);
    }
    fputs("],\n", out);
}

void bench_json(FILE *out, const struct bench_report *b)
{
    const struct load_result *r = b->result;

    put_what(out, b);
    put_u64(out, "requests", r->requests);
    put_u64(out, "sent", r->sent);
    put_u64(out, "errors", bench_errors(r));
    fprintf(out, "  \"duration_s\": %.6f,\n  \"rate\": %.3f,\n", (double)r->duration_us / 1e6, bench_rate(r));
    put_histogram(out, "latency_us", r->latency);
    put_histogram(out, "service_us", r->service);
    put_histogram(out, "first_byte_us", r->first_byte);
    put_histogram(out, "connect_us", r->connect);
    put_histogram(out, "handshake_full_us", r->handshake_full);
    put_histogram(out, "handshake_resumed_us", r->handshake_resumed);
    put_u64(out, "handshakes_full", r->handshakes_full);
    put_u64(out, "handshakes_resumed", r->handshakes_resumed);
    put_u64(out, "connects", r->connects);
    put_u64(out, "reconnects", r->reconnects);
    put_u64(out, "late_us_max", r->late_us_max);
    put_u64(out, "bytes_in", r->bytes_in);
    put_u64(out, "bytes_out", r->bytes_out);
    put_u64(out, "body_bytes", r->body_bytes);
    fprintf(out, "  \"bytes_in_per_s\": %.1f,\n",
            r->duration_us ? (double)r->bytes_in * 1e6 / (double)r->duration_us : 0);
    put_errors(out, r);
    put_costs(out, b);
    if (b->plan->load.interval_us)
        put_intervals(out, r);
    fprintf(out, "  \"interrupted\": %s\n}\n", b->interrupted ? "true" : "false");
}

void bench_csv(FILE *out, const struct bench_report *b)
{
    const struct load_result *r = b->result;

    fputs("start_s,requests,errors,p50_us,p99_us,max_us,bytes_in\n", out);
    for (size_t i = 0; i < r->interval_count; i++) {
        const struct load_interval *v = &r->intervals[i];

        fprintf(out, "%.6f,%llu,%llu,%llu,%llu,%llu,%llu\n", (double)v->start_us / 1e6,
                (unsigned long long)v->requests, (unsigned long long)v->errors, (unsigned long long)v->p50_us,
                (unsigned long long)v->p99_us, (unsigned long long)v->max_us,
                (unsigned long long)v->bytes_in);
    }
}
