/*
 * From what the engine measured to the numbers of the page.
 */
#include "cmd/bench_print.h"

#include "measure/report.h"
#include "measure/svg.h"

#include <math.h>

#define BARS 60
#define POINTS_MAX 96
#define FACTS_MAX 24
#define PHASES 6

struct facts {
    struct report_fact list[FACTS_MAX];
    size_t count;
};

struct page {
    struct report_run run;
    struct arena arena;
    struct facts tiles, errors, setup;
    struct report_phase phases[PHASES];
    double percents[POINTS_MAX], values[PHASES][POINTS_MAX];
    struct report_bar bars[BARS];
    const char *warnings[2];
};

static void add_fact(struct facts *f, const char *name, const char *value)
{
    if (f->count < FACTS_MAX && value)
        f->list[f->count++] = (struct report_fact){name, value};
}

/*
 * Twelve percents in each nine, as far as `count` values tell apart: the last point leaves one value in ten thousand
 * out when there are ten thousand. The ones of the table are among them.
 */
static size_t list_percents(uint64_t count, double *out)
{
    static const double wanted[] = {50, 90, 99, 99.9, 99.99};
    size_t n = 0, next = 0;

    for (unsigned step = 0; n + 2 < POINTS_MAX; step++) {
        double percent = 100 * (1 - pow(10, -(double)step / 12));

        while (next < 5 && wanted[next] < percent + 1e-9) {
            if (n == 0 || out[n - 1] < wanted[next] - 1e-9)
                out[n++] = wanted[next];
            next++;
        }
        if (step > 36 && pow(10, (double)step / 12) > (double)count)
            break;
        if (n == 0 || out[n - 1] < percent - 1e-9)
            out[n++] = percent;
    }
    while (next < 5)
        out[n++] = wanted[next++];
    return n;
}

static void add_phase(struct page *p, const char *name, const struct histogram *h, size_t points,
                      bool is_curve)
{
    size_t at = p->run.phase_count;

    if (!h || h->count == 0 || at == PHASES)
        return;
    for (size_t i = 0; i < points; i++)
        p->values[at][i] = (double)histogram_percentile_us(h, p->percents[i]);
    p->phases[at] = (struct report_phase){.name = name,
                                          .count = h->count,
                                          .min_us = (double)histogram_min_us(h),
                                          .mean_us = histogram_mean_us(h),
                                          .stddev_us = histogram_stddev_us(h),
                                          .max_us = (double)histogram_max_us(h),
                                          .percents = p->percents,
                                          .percentile_us = p->values[at],
                                          .percentile_count = points,
                                          .is_curve = is_curve};
    p->run.phase_count++;
}

/* Values that do not exceed `us`, from the buckets: their upper ends are those of base/histogram.h. */
static uint64_t count_up_to(const struct histogram *h, double us)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        unsigned doubling = i < 2048 ? 0 : (i - 2048) / 1024 + 1;
        double low = i < 2048 ? i : (double)(((uint64_t)1024 + (i - 2048) % 1024) << doubling);

        if (low > us)
            break;
        sum += h->buckets[i];
    }
    return sum;
}

/* Bars of equal width on a logarithmic axis, from the least value to the greatest, none narrower than a microsecond. */
static void make_bars(struct page *p, const struct histogram *h)
{
    double low = histogram_min_us(h) > 0 ? (double)histogram_min_us(h) : 1,
           high = (double)histogram_max_us(h) + 1;
    double at = low - 1;
    uint64_t before = 0;
    size_t n = 0;

    if (h->count == 0)
        return;
    for (unsigned i = 1; i <= BARS; i++) {
        double end = i == BARS ? high : floor(low * pow(high / low, (double)i / BARS));
        uint64_t sum;

        if (end <= at)
            continue;
        sum = i == BARS ? h->count : count_up_to(h, end);
        p->bars[n] = (struct report_bar){n ? at : low - 0.5, end, sum - before};
        n++;
        before = sum;
        at = end;
    }
    p->run.bars = p->bars;
    p->run.bar_count = n;
}

static const char *number(struct page *p, double value, enum svg_unit unit)
{
    char text[SVG_TEXT_BYTES];

    return arena_cstr(&p->arena, svg_format(value, unit, text));
}

static void add_tiles(struct page *p, const struct bench_report *b)
{
    const struct load_result *r = b->result;

    add_fact(&p->tiles, "requests a second", number(p, bench_rate(r), SVG_UNIT_NUMBER));
    add_fact(&p->tiles, "p50", number(p, (double)histogram_percentile_us(r->latency, 50), SVG_UNIT_US));
    add_fact(&p->tiles, "p99", number(p, (double)histogram_percentile_us(r->latency, 99), SVG_UNIT_US));
    add_fact(&p->tiles, "requests", arena_printf(&p->arena, "%llu", (unsigned long long)r->requests));
    add_fact(&p->tiles, "errors", arena_printf(&p->arena, "%llu", (unsigned long long)bench_errors(r)));
    if (b->server)
        add_fact(&p->tiles, "server CPU a request", number(p, bench_server_us(b->server, r), SVG_UNIT_US));
}

static void add_errors(struct page *p, const struct load_result *r)
{
    for (unsigned i = 0; i < LOAD_ERRORS; i++)
        if (r->errors[i])
            add_fact(&p->errors, load_error_text((enum load_error)i),
                     arena_printf(&p->arena, "%llu%s%s", (unsigned long long)r->errors[i],
                                  r->examples[i][0] ? ", first: " : "", r->examples[i]));
}

static void add_setup(struct page *p, const struct bench_report *b)
{
    const struct load_plan *l = &b->plan->load;
    const struct load_result *r = b->result;

    for (size_t i = 0; i < l->request_count && i < 8; i++)
        add_fact(&p->setup, "URL", b->plan->urls[i]);
    add_fact(&p->setup, "connections",
             arena_printf(&p->arena, "%u, %s", l->connections,
                          l->handshake_only ? "handshakes only"
                          : l->close        ? "a connection a request"
                                            : "kept alive"));
    add_fact(&p->setup, "client threads", arena_printf(&p->arena, "%u", l->threads));
    add_fact(&p->setup, "duration", arena_printf(&p->arena, "%.3f s", (double)r->duration_us / 1e6));
    if (r->tls_version)
        add_fact(&p->setup, "TLS",
                 arena_printf(&p->arena, "%s, %s; %llu full handshakes, %llu resumed", r->tls_version,
                              r->tls_cipher ? r->tls_cipher : "?", (unsigned long long)r->handshakes_full,
                              (unsigned long long)r->handshakes_resumed));
    add_fact(&p->setup, "TCP connections", arena_printf(&p->arena, "%llu", (unsigned long long)r->connects));
    add_fact(&p->setup, "bytes",
             arena_printf(&p->arena, "%llu received, %llu sent", (unsigned long long)r->bytes_in,
                          (unsigned long long)r->bytes_out));
    add_fact(&p->setup, "status classes",
             arena_printf(&p->arena, "1xx %llu, 2xx %llu, 3xx %llu, 4xx %llu, 5xx %llu",
                          (unsigned long long)r->status_class[1], (unsigned long long)r->status_class[2],
                          (unsigned long long)r->status_class[3], (unsigned long long)r->status_class[4],
                          (unsigned long long)r->status_class[5]));
    add_fact(&p->setup, "client",
             arena_printf(&p->arena, "%.2f us of CPU a request, busiest thread %.0f %%",
                          r->requests ? r->own_cpu_s * 1e6 / (double)r->requests : 0, r->busy * 100));
    if (b->server)
        add_fact(
            &p->setup, "server",
            arena_printf(&p->arena,
                         "process %d: %.0f %% CPU (%.2f s user, %.2f s system), at most %llu MiB of memory",
                         b->server->pid, bench_server_percent(b->server), b->server->user_s,
                         b->server->system_s, (unsigned long long)b->server->rss_max_kib / 1024));
    add_fact(&p->setup, "program", "sallyport bench " SP_VERSION);
}

static int add_intervals(struct page *p, const struct bench_report *b)
{
    const struct load_result *r = b->result;
    double usual_s = bench_interval_s(b), end_s = (double)r->duration_us / 1e6;
    struct report_interval *list = arena_zalloc(&p->arena, r->interval_count + 1, sizeof(*list));

    if (!list)
        return SP_ENOMEM;
    for (size_t i = 0; i < r->interval_count; i++) {
        const struct load_interval *v = &r->intervals[i];
        double start_s = (double)v->start_us / 1e6, length_s = usual_s;

        if (i + 1 == r->interval_count && end_s > start_s && end_s - start_s < usual_s)
            length_s = end_s - start_s;
        /* What is left at the end may be too short for a rate. */
        if (i > 0 && length_s < usual_s / 3)
            continue;
        list[p->run.interval_count++] =
            (struct report_interval){.start_s = start_s,
                                     .length_s = length_s,
                                     .requests_per_s = (double)v->requests / length_s,
                                     .errors_per_s = (double)v->errors / length_s,
                                     .p50_us = (double)v->p50_us,
                                     .p99_us = (double)v->p99_us,
                                     .max_us = (double)v->max_us};
    }
    p->run.intervals = list;
    return 0;
}

static void add_texts(struct page *p, const struct bench_report *b)
{
    const struct load_plan *l = &b->plan->load;

    p->run.title = arena_printf(&p->arena, "Load on %s", b->plan->urls[0]);
    p->run.subtitle = arena_printf(&p->arena, "%s loop, %u connections, %u thread%s%s",
                                   l->arrivals == LOAD_CLOSED ? "Closed" : "Open", l->connections, l->threads,
                                   l->threads == 1 ? "" : "s", l->request_count > 1 ? ", several URLs" : "");
    p->run.loop_note =
        l->arrivals == LOAD_CLOSED
            ? "Closed loop: a stall of the server hides requests that were never sent."
            : arena_printf(
                  &p->arena,
                  "Open loop: %.10g requests a second fell due, with %s arrivals, whatever the answers did. "
                  "“From due” is what a user would have seen, “from sent” what the server took.",
                  l->rate, l->arrivals == LOAD_POISSON ? "Poisson" : "constant");
    p->run.warnings = p->warnings;
    if (bench_client_is_limit(b->result))
        p->warnings[p->run.warning_count++] =
            "The client was the limit, not the server: its busiest thread had no time left.";
    if (b->interrupted)
        p->warnings[p->run.warning_count++] =
            "The run was interrupted: this is what had been measured until then.";
}

int bench_html(FILE *out, const struct bench_report *b)
{
    const struct load_result *r = b->result;
    struct page *p = calloc(1, sizeof(*p));
    bool open = b->plan->load.arrivals != LOAD_CLOSED;
    size_t points;
    int status;

    if (!p)
        return SP_ENOMEM;
    arena_init(&p->arena, 8192, 0);
    points = list_percents(r->latency->count, p->percents);
    add_phase(p, open ? "from due" : "total", r->latency, points, true);
    if (open)
        add_phase(p, "from sent", r->service, points, true);
    add_phase(p, "first byte", r->first_byte, points, false);
    add_phase(p, "connect", r->connect, points, false);
    add_phase(p, "handshake, full", r->handshake_full, points, false);
    add_phase(p, "handshake, resumed", r->handshake_resumed, points, false);
    make_bars(p, r->latency);
    add_tiles(p, b);
    add_errors(p, r);
    add_setup(p, b);
    add_texts(p, b);
    status = add_intervals(p, b);
    p->run.phases = p->phases;
    p->run.tiles = p->tiles.list;
    p->run.tile_count = p->tiles.count;
    p->run.errors = p->errors.list;
    p->run.error_count = p->errors.count;
    p->run.setup = p->setup.list;
    p->run.setup_count = p->setup.count;
    if (status == 0 && p->run.title)
        report_html(out, &p->run);
    arena_release(&p->arena);
    free(p);
    return status;
}
