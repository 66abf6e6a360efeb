/*
 * The default layout.
 */
#include "cmd/bench_print.h"

#include "measure/svg.h"

static const double percents[] = {50, 75, 90, 95, 99, 99.9, 99.99};
#define PERCENTS (sizeof(percents) / sizeof(percents[0]))

uint64_t bench_errors(const struct load_result *r)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < LOAD_ERRORS; i++)
        sum += r->errors[i];
    return sum;
}

double bench_rate(const struct load_result *r)
{
    return r->duration_us ? (double)r->requests * 1e6 / (double)r->duration_us : 0;
}

bool bench_client_is_limit(const struct load_result *r)
{
    return r->busy > BENCH_BUSY_LIMIT && r->duration_us >= BENCH_BUSY_LEAST_US;
}

double bench_interval_s(const struct bench_report *b)
{
    const struct load_result *r = b->result;

    return (double)(r->interval_count > 1 ? r->intervals[1].start_us - r->intervals[0].start_us
                                          : b->plan->load.interval_us) /
           1e6;
}

const char *bench_loop_name(const struct load_plan *plan)
{
    return plan->arrivals == LOAD_CLOSED ? "closed" : "open";
}

double bench_server_percent(const struct bench_server *s)
{
    return s->duration_us ? (s->user_s + s->system_s) * 1e8 / (double)s->duration_us : 0;
}

double bench_server_us(const struct bench_server *s, const struct load_result *r)
{
    return r->requests ? (s->user_s + s->system_s) * 1e6 / (double)r->requests : 0;
}

static const char *time_text(uint64_t us, char out[SVG_TEXT_BYTES])
{
    return svg_format((double)us, SVG_UNIT_US, out);
}

static const char *bytes_text(double bytes, char out[SVG_TEXT_BYTES])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    unsigned i = 0;

    while (bytes >= 1024 && i + 1 < sizeof(units) / sizeof(units[0])) {
        bytes /= 1024;
        i++;
    }
    (void)snprintf(out, SVG_TEXT_BYTES, i ? "%.2f %s" : "%.0f %s", bytes, units[i]);
    return out;
}

static void print_what(FILE *out, const struct bench_report *b)
{
    const struct load_plan *l = &b->plan->load;

    fprintf(out, "%s", b->plan->urls[0]);
    if (l->request_count > 1)
        fprintf(out, " and %zu more", l->request_count - 1);
    fprintf(out, "\n%u connections, %u thread%s, %s\n", l->connections, l->threads,
            l->threads == 1 ? "" : "s",
            l->handshake_only ? "handshakes only"
            : l->close        ? "a connection a request"
                              : "kept alive");
    if (l->arrivals == LOAD_CLOSED)
        fputs("closed loop: a stall of the server hides requests that were never sent\n", out);
    else
        fprintf(out,
                "open loop: %.10g requests/s due, %s arrivals; latency counts from when a request was due\n",
                l->rate, l->arrivals == LOAD_POISSON ? "Poisson" : "constant");
    if (b->result->tls_version)
        fprintf(out, "%s, %s\n", b->result->tls_version, b->result->tls_cipher ? b->result->tls_cipher : "?");
}

static void print_row(FILE *out, const char *name, const struct histogram *h)
{
    char text[SVG_TEXT_BYTES];

    if (!h || h->count == 0)
        return;
    fprintf(out, "  %-19s", name);
    fprintf(out, "%9s", time_text(histogram_min_us(h), text));
    fprintf(out, "%9s", svg_format(histogram_mean_us(h), SVG_UNIT_US, text));
    fprintf(out, "%9s", svg_format(histogram_stddev_us(h), SVG_UNIT_US, text));
    for (size_t i = 0; i < PERCENTS; i++)
        fprintf(out, "%9s", time_text(histogram_percentile_us(h, percents[i]), text));
    fprintf(out, "%9s\n", time_text(histogram_max_us(h), text));
}

static void print_times(FILE *out, const struct bench_report *b)
{
    const struct load_result *r = b->result;
    bool open = b->plan->load.arrivals != LOAD_CLOSED;

    fprintf(out, "\n  %-19s%9s%9s%9s%9s%9s%9s%9s%9s%9s%9s%9s\n", "", "min", "mean", "sd", "p50", "p75", "p90",
            "p95", "p99", "p99.9", "p99.99", "max");
    print_row(out, "connect", r->connect);
    print_row(out, "handshake, full", r->handshake_full);
    print_row(out, "handshake, resumed", r->handshake_resumed);
    print_row(out, "first byte", r->first_byte);
    if (open) {
        print_row(out, "total, from due", r->latency);
        print_row(out, "total, from sent", r->service);
    } else {
        print_row(out, "total", r->latency);
    }
}

static void print_errors(FILE *out, const struct load_result *r)
{
    uint64_t sum = bench_errors(r);

    fprintf(out, "errors      %llu\n", (unsigned long long)sum);
    for (unsigned i = 0; i < LOAD_ERRORS; i++) {
        if (r->errors[i] == 0)
            continue;
        fprintf(out, "  %-10llu%s", (unsigned long long)r->errors[i], load_error_text((enum load_error)i));
        if (r->examples[i][0])
            fprintf(out, ", first: %s", r->examples[i]);
        fputc('\n', out);
    }
}

static void print_limits(FILE *out, const struct bench_report *b)
{
    const struct load_result *r = b->result;
    double own_us = r->requests ? r->own_cpu_s * 1e6 / (double)r->requests : 0;
    char text[SVG_TEXT_BYTES];

    fprintf(out, "client      %.2f us of CPU a request, busiest thread %.0f %%\n", own_us, r->busy * 100);
    if (bench_client_is_limit(r))
        fputs("            THE CLIENT IS THE LIMIT, not the server: give it more threads (-t) or cores\n",
              out);
    if (b->server)
        fprintf(
            out,
            "server      %.0f %% CPU (%.2f s user, %.2f s system), %.2f us a request, at most %s of memory\n",
            bench_server_percent(b->server), b->server->user_s, b->server->system_s,
            bench_server_us(b->server, r), bytes_text((double)b->server->rss_max_kib * 1024, text));
}

static void print_default(FILE *out, const struct bench_report *b)
{
    const struct load_result *r = b->result;
    const struct load_plan *l = &b->plan->load;
    double duration_s = (double)r->duration_us / 1e6, rate = bench_rate(r);
    uint64_t handshakes = r->handshakes_full + r->handshakes_resumed;
    char text[SVG_TEXT_BYTES];

    print_what(out, b);
    fprintf(out, "\nrequests    %llu in %.3f s%s\nrate        %.2f requests/s\n",
            (unsigned long long)r->requests, duration_s, b->interrupted ? ", interrupted" : "", rate);
    if (l->arrivals != LOAD_CLOSED && r->late_us_max)
        fprintf(out, "late        a due request waited up to %s for a free connection\n",
                time_text(r->late_us_max, text));
    fprintf(out, "connects    %llu\n", (unsigned long long)r->connects);
    if (r->reconnects)
        fprintf(out, "reconnects  %llu: the server had closed idle connections\n",
                (unsigned long long)r->reconnects);
    if (handshakes)
        fprintf(out, "handshakes  %llu full, %llu resumed, %.2f/s\n", (unsigned long long)r->handshakes_full,
                (unsigned long long)r->handshakes_resumed,
                duration_s > 0 ? (double)handshakes / duration_s : 0);
    fprintf(out, "received    %s", bytes_text((double)r->bytes_in, text));
    fprintf(out, ", %s/s\n", bytes_text(duration_s > 0 ? (double)r->bytes_in / duration_s : 0, text));
    fputs("status     ", out);
    for (unsigned i = 1; i < 6; i++)
        if (r->status_class[i] || i == 2)
            fprintf(out, " %uxx %llu", i, (unsigned long long)r->status_class[i]);
    fputc('\n', out);
    print_errors(out, r);
    print_limits(out, b);
    print_times(out, b);
}

void bench_print(FILE *out, const struct bench_report *b)
{
    switch (b->args->format) {
    case BENCH_FORMAT_AB:
        bench_print_ab(out, b);
        break;
    case BENCH_FORMAT_WRK:
        bench_print_wrk(out, b);
        break;
    case BENCH_FORMAT_EPWGET:
        bench_print_epwget(out, b);
        break;
    case BENCH_FORMAT_DEFAULT:
        print_default(out, b);
        break;
    }
}
