/*
 * The layouts that scripts parse: ab's, wrk's and epwget's. What those tools say that was not measured here is left out
 * or 0; what they hide is not added, the default layout has it.
 */
#include "cmd/bench_print.h"

#include <math.h>

static double ms(double us)
{
    return us / 1000;
}

static uint64_t connect_errors(const struct load_result *r)
{
    return r->errors[LOAD_ERROR_REFUSED] + r->errors[LOAD_ERROR_UNREACHABLE] +
           r->errors[LOAD_ERROR_RESOURCES] + r->errors[LOAD_ERROR_TIMEOUT_CONNECT];
}

static uint64_t timeouts(const struct load_result *r)
{
    return r->errors[LOAD_ERROR_TIMEOUT_CONNECT] + r->errors[LOAD_ERROR_TIMEOUT_HANDSHAKE] +
           r->errors[LOAD_ERROR_TIMEOUT_FIRST_BYTE] + r->errors[LOAD_ERROR_TIMEOUT_BODY];
}

static void ab_row(FILE *out, const char *name, const struct histogram *h)
{
    fprintf(out, "%-12s%5.0f%5.0f%6.1f%7.0f%8.0f\n", name, ms((double)histogram_min_us(h)),
            ms(histogram_mean_us(h)), ms(histogram_stddev_us(h)), ms((double)histogram_percentile_us(h, 50)),
            ms((double)histogram_max_us(h)));
}

static void ab_head(FILE *out, const struct bench_report *b)
{
    const struct load_plan *l = &b->plan->load;
    const struct load_result *r = b->result;
    struct bench_url url;

    if (bench_url_parse(b->plan->urls[0], &url) != NULL)
        return;
    fprintf(out,
            "This is sallyport bench, version " SP_VERSION ", in the layout of ApacheBench\n\n"
            "Server Hostname:        %.*s\nServer Port:            %u\n",
            STR_FMT(url.host), url.port);
    if (r->tls_version)
        fprintf(out, "SSL/TLS Protocol:       %s,%s\n", r->tls_version, r->tls_cipher ? r->tls_cipher : "");
    fprintf(out, "\nDocument Path:          %.*s\nDocument Length:        %llu bytes\n\n",
            STR_FMT(url.target), (unsigned long long)(r->requests ? r->body_bytes / r->requests : 0));
    fprintf(out,
            "Concurrency Level:      %u\nTime taken for tests:   %.3f seconds\nComplete requests:      %llu\n"
            "Failed requests:        %llu\n",
            l->connections, (double)r->duration_us / 1e6, (unsigned long long)r->requests,
            (unsigned long long)bench_errors(r));
}

void bench_print_ab(FILE *out, const struct bench_report *b)
{
    static const double percents[] = {50, 66, 75, 80, 90, 95, 98, 99};
    const struct load_plan *l = &b->plan->load;
    const struct load_result *r = b->result;
    uint64_t errors = bench_errors(r), length = r->errors[LOAD_ERROR_SIZE] + r->errors[LOAD_ERROR_HASH];
    uint64_t receive =
        r->errors[LOAD_ERROR_RESET] + r->errors[LOAD_ERROR_CLOSED] + r->errors[LOAD_ERROR_HTTP];
    uint64_t non_2xx = r->status_class[1] + r->status_class[3] + r->status_class[4] + r->status_class[5];
    double duration_s = (double)r->duration_us / 1e6, rate = bench_rate(r);

    ab_head(out, b);
    if (errors)
        fprintf(out, "   (Connect: %llu, Receive: %llu, Length: %llu, Exceptions: %llu)\n",
                (unsigned long long)connect_errors(r), (unsigned long long)receive,
                (unsigned long long)length,
                (unsigned long long)(errors - connect_errors(r) - receive - length));
    if (non_2xx)
        fprintf(out, "Non-2xx responses:      %llu\n", (unsigned long long)non_2xx);
    if (!l->close && !l->handshake_only)
        fprintf(out, "Keep-Alive requests:    %llu\n", (unsigned long long)r->requests);
    fprintf(out,
            "Total transferred:      %llu bytes\nHTML transferred:       %llu bytes\n"
            "Requests per second:    %.2f [#/sec] (mean)\n",
            (unsigned long long)r->bytes_in, (unsigned long long)r->body_bytes, rate);
    fprintf(out,
            "Time per request:       %.3f [ms] (mean)\n"
            "Time per request:       %.3f [ms] (mean, across all concurrent requests)\n"
            "Transfer rate:          %.2f [Kbytes/sec] received\n\n",
            rate > 0 ? l->connections * 1000 / rate : 0, rate > 0 ? 1000 / rate : 0,
            duration_s > 0 ? (double)r->bytes_in / 1024 / duration_s : 0);
    fputs("Connection Times (ms)\n              min  mean[+/-sd] median   max\n", out);
    ab_row(out, "Connect:", r->connect);
    ab_row(out, "Processing:", r->service);
    ab_row(out, "Waiting:", r->first_byte);
    ab_row(out, "Total:", r->latency);
    fputs("\nPercentage of the requests served within a certain time (ms)\n", out);
    for (size_t i = 0; i < sizeof(percents) / sizeof(percents[0]); i++)
        fprintf(out, "%4.0f%% %6.0f\n", percents[i],
                ms((double)histogram_percentile_us(r->latency, percents[i])));
    fprintf(out, "%4d%% %6.0f (longest request)\n", 100, ms((double)histogram_max_us(r->latency)));
}

/* 635.91us, 1.22ms, 2.00s, 1.50m */
static const char *wrk_time(double us, char out[32])
{
    if (us < 1000)
        (void)snprintf(out, 32, "%.2fus", us);
    else if (us < 1e6)
        (void)snprintf(out, 32, "%.2fms", us / 1e3);
    else if (us < 60e6)
        (void)snprintf(out, 32, "%.2fs", us / 1e6);
    else
        (void)snprintf(out, 32, "%.2fm", us / 60e6);
    return out;
}

static const char *wrk_count(double n, char out[32])
{
    if (n < 1000)
        (void)snprintf(out, 32, "%.2f", n);
    else if (n < 1e6)
        (void)snprintf(out, 32, "%.2fk", n / 1e3);
    else
        (void)snprintf(out, 32, "%.2fM", n / 1e6);
    return out;
}

static const char *wrk_bytes(double n, char out[32])
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    unsigned i = 0;

    while (n >= 1024 && i + 1 < sizeof(units) / sizeof(units[0])) {
        n /= 1024;
        i++;
    }
    (void)snprintf(out, 32, "%.2f%s", n, units[i]);
    return out;
}

/* The share of the values within one standard deviation of the mean. */
static double within_deviation(const struct histogram *h)
{
    double mean = histogram_mean_us(h), deviation = histogram_stddev_us(h), low = 0, high = 0;

    if (h->count == 0)
        return 0;
    /* Which percentiles the two bounds are: bisection, because the histogram is asked for percentiles alone. */
    for (unsigned bound = 0; bound < 2; bound++) {
        double from = 0, to = 100, at = bound ? mean + deviation : mean - deviation;

        for (unsigned i = 0; i < 30; i++) {
            double middle = (from + to) / 2;

            if ((double)histogram_percentile_us(h, middle) <= at)
                from = middle;
            else
                to = middle;
        }
        if (bound)
            high = from;
        else
            low = (double)histogram_min_us(h) > at ? 0 : from;
    }
    return high - low;
}

/* Requests a second and thread over the intervals. */
static void wrk_req_sec(FILE *out, const struct bench_report *b)
{
    const struct load_result *r = b->result;
    double interval_s = bench_interval_s(b), threads = b->plan->load.threads;
    double sum = 0, squares = 0, max = 0, within = 0, mean, deviation, n;
    char average_text[32], deviation_text[32], max_text[32];
    size_t count = r->interval_count;

    /* The last one is shorter. */
    count -= count > 1;
    n = count ? (double)count : 1;
    for (size_t i = 0; i < count; i++) {
        double rate = (double)r->intervals[i].requests / interval_s / threads;

        sum += rate;
        squares += rate * rate;
        max = rate > max ? rate : max;
    }
    mean = count ? sum / n : bench_rate(r) / threads;
    deviation = count ? sqrt(fmax(squares / n - mean * mean, 0)) : 0;
    for (size_t i = 0; i < count; i++)
        within += fabs((double)r->intervals[i].requests / interval_s / threads - mean) <= deviation;
    fprintf(out, "    Req/Sec   %7s   %7s   %7s   %6.2f%%\n", wrk_count(mean, average_text),
            wrk_count(deviation, deviation_text), wrk_count(max > 0 ? max : mean, max_text),
            within * 100 / n);
}

void bench_print_wrk(FILE *out, const struct bench_report *b)
{
    static const double percents[] = {50, 75, 90, 99};
    const struct load_plan *l = &b->plan->load;
    const struct load_result *r = b->result;
    double duration_s = (double)r->duration_us / 1e6;
    uint64_t bad_status = r->status_class[4] + r->status_class[5];
    char text[32], more[32], max[32];

    fprintf(out, "Running %.0fs test @ %s\n  %u threads and %u connections\n",
            (double)(l->duration_us ? l->duration_us : r->duration_us) / 1e6, b->plan->urls[0], l->threads,
            l->connections);
    fputs("  Thread Stats   Avg      Stdev     Max   +/- Stdev\n", out);
    fprintf(out, "    Latency   %7s   %7s   %7s   %6.2f%%\n", wrk_time(histogram_mean_us(r->latency), text),
            wrk_time(histogram_stddev_us(r->latency), more),
            wrk_time((double)histogram_max_us(r->latency), max), within_deviation(r->latency));
    wrk_req_sec(out, b);
    fputs("  Latency Distribution\n", out);
    for (size_t i = 0; i < sizeof(percents) / sizeof(percents[0]); i++)
        fprintf(out, "    %3.0f%% %8s\n", percents[i],
                wrk_time((double)histogram_percentile_us(r->latency, percents[i]), text));
    fprintf(out, "  %llu requests in %s, %s read\n", (unsigned long long)r->requests,
            wrk_time((double)r->duration_us, text), wrk_bytes((double)r->bytes_in, more));
    if (bench_errors(r))
        fprintf(out, "  Socket errors: connect %llu, read %llu, write 0, timeout %llu\n",
                (unsigned long long)(connect_errors(r) - r->errors[LOAD_ERROR_TIMEOUT_CONNECT]),
                (unsigned long long)(bench_errors(r) - connect_errors(r) - timeouts(r) +
                                     r->errors[LOAD_ERROR_TIMEOUT_CONNECT]),
                (unsigned long long)timeouts(r));
    if (bad_status)
        fprintf(out, "  Non-2xx or 3xx responses: %llu\n", (unsigned long long)bad_status);
    fprintf(out, "Requests/sec: %10.2f\nTransfer/sec: %10s\n", bench_rate(r),
            wrk_bytes(duration_s > 0 ? (double)r->bytes_in / duration_s : 0, text));
}

/* Packets are the kernel's and are not counted: that line has bits alone. */
void bench_print_epwget(FILE *out, const struct bench_report *b)
{
    const struct load_plan *l = &b->plan->load;
    const struct load_result *r = b->result;
    double duration_s = r->duration_us ? (double)r->duration_us / 1e6 : 1;
    const struct histogram *h = r->latency;

    fprintf(out,
            "Application configuration:\nURL: %s\n# of total_flows: %llu\n# of cores: %u\nConcurrency: %u\n"
            "---------------------------------------------------------------------------------\n",
            b->plan->urls[0], (unsigned long long)r->sent, l->threads, l->connections);
    fprintf(out, "[ ALL ] flows: %6u, RX: %5.2f(Gbps), TX: %5.2f(Gbps)\n", l->connections,
            (double)r->bytes_in * 8 / 1e9 / duration_s, (double)r->bytes_out * 8 / 1e9 / duration_s);
    fprintf(out,
            "[ ALL ] connect: %7.0f, read: %4.0f MB, write: %4.0f MB, completes: %7.0f "
            "(resp_time avg: %4.0f, max: %6llu us)\n",
            (double)r->connects / duration_s, (double)r->bytes_in / 1048576 / duration_s,
            (double)r->bytes_out / 1048576 / duration_s, bench_rate(r), histogram_mean_us(h),
            (unsigned long long)histogram_max_us(h));
    fprintf(out, "[ ALL ] Completed %llu connections, errors: %llu incompletes: %llu\n",
            (unsigned long long)r->requests, (unsigned long long)bench_errors(r),
            (unsigned long long)(r->sent > r->requests ? r->sent - r->requests : 0));
}
