#include "admin/stats_crypto.h"

#include "proxy/worker.h"

static const char table_head[] =
    "<div class=\"scroll\"><table><thead><tr><th rowspan=\"2\">Operation</th><th colspan=\"4\">Done by</th>"
    "<th rowspan=\"2\">Failed</th><th rowspan=\"2\">Canceled</th><th colspan=\"8\">Batches by lanes filled</th>"
    "<th rowspan=\"2\">Fill</th><th colspan=\"2\">Wait, us</th><th rowspan=\"2\">Not where it should have run</th></tr>"
    "<tr><th>openssl</th><th>multibuffer</th><th>threads</th><th>cryptodev</th><th>1</th><th>2</th><th>3</th><th>4</th><th>5</th>"
    "<th>6</th><th>7</th><th>8</th><th>p50</th><th>p99</th></tr></thead><tbody>\n";

static uint64_t sum_of(const uint64_t *values, unsigned n)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < n; i++)
        sum += values[i];
    return sum;
}

static void put_number(struct text *out, uint64_t value)
{
    text_printf(out, "<td>%llu</td>", (unsigned long long)value);
}

/* The upper end of the bucket in which the share of all waits is reached. */
static uint64_t wait_quantile(const struct sp_algorithm_counters *c, unsigned percent)
{
    uint64_t total = sum_of(c->wait_us, SP_WAIT_BUCKETS), seen = 0;

    for (unsigned i = 0; i < SP_WAIT_BUCKETS; i++) {
        seen += c->wait_us[i];
        if (seen * 100 >= total * percent)
            return UINT64_C(1) << i;
    }
    return 0;
}

static void put_fill(struct text *out, const struct sp_algorithm_counters *c)
{
    uint64_t batches = sum_of(c->batches, SP_LANES_MAX + 1), lanes = 0;

    for (unsigned i = 1; i <= SP_LANES_MAX; i++)
        lanes += c->batches[i] * i;
    if (batches)
        text_printf(out, "<td>%.1f</td>", (double)lanes / (double)batches);
    else
        text_puts(out, "<td></td>");
}

static void put_waits(struct text *out, const struct sp_algorithm_counters *c)
{
    if (sum_of(c->wait_us, SP_WAIT_BUCKETS) == 0) {
        text_puts(out, "<td></td><td></td>");
        return;
    }
    text_printf(out, "<td>&lt; %llu</td><td>&lt; %llu</td>", (unsigned long long)wait_quantile(c, 50),
                (unsigned long long)wait_quantile(c, 99));
}

static void put_fallbacks(struct text *out, const struct sp_algorithm_counters *c)
{
    bool first = true;

    text_puts(out, "<td class=\"t\">");
    for (unsigned i = 0; i < SP_FALLBACKS; i++) {
        if (!c->fallbacks[i])
            continue;
        text_printf(out, "%s%llu: %s", first ? "" : "; ", (unsigned long long)c->fallbacks[i], sp_fallback_text(i));
        first = false;
    }
    text_puts(out, "</td>");
}

static void put_row(struct text *out, enum sp_algorithm algorithm, const struct sp_algorithm_counters *c)
{
    text_printf(out, "<tr><th>%s</th>", sp_algorithm_name(algorithm));
    for (unsigned i = 0; i < SP_BACKENDS; i++)
        put_number(out, c->done[i]);
    put_number(out, sum_of(c->failed, SP_BACKENDS));
    put_number(out, c->canceled);
    for (unsigned i = 1; i <= SP_LANES_MAX; i++)
        put_number(out, c->batches[i]);
    put_fill(out, c);
    put_waits(out, c);
    put_fallbacks(out, c);
    text_puts(out, "</tr>\n");
}

static bool has_run(const struct sp_algorithm_counters *c)
{
    return sum_of(c->done, SP_BACKENDS) || sum_of(c->failed, SP_BACKENDS) || c->canceled;
}

void stats_put_crypto(struct text *out, const struct app *app)
{
    struct sp_queue_counters sum = {0};
    uint64_t refused = 0;
    bool any = false;

    for (int i = 0; i < app->worker_count; i++) {
        struct tls_counters tls;

        if (!app->workers[i].tls || !tls_worker_crypto_counters(app->workers[i].tls, &sum))
            continue;
        tls_worker_counters(app->workers[i].tls, &tls);
        refused += tls.refused_handshakes;
    }
    for (unsigned i = 0; i < SP_ALGORITHMS; i++)
        any |= has_run(&sum.algorithms[i]);
    if (!any && !refused)
        return;
    text_printf(out, "<h2>Crypto queue <small>%llu from what had been prepared, %llu handshakes refused", (unsigned long long)sum.pooled,
                (unsigned long long)refused);
    if (app->crypto_thread_count)
        text_printf(out, ", %d crypto threads", app->crypto_thread_count);
    text_puts(out, "</small></h2>\n");
    text_puts(out, table_head);
    for (unsigned i = 0; i < SP_ALGORITHMS; i++) {
        if (has_run(&sum.algorithms[i]))
            put_row(out, i, &sum.algorithms[i]);
    }
    text_puts(out, "</tbody></table></div>\n");
}
