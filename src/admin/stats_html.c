#include "admin/stats_html.h"

#include "admin/stats_crypto.h"

#include <stdio.h>

/* --- what is the same on every page ----------------------------------------------- */

static const char page_style[] =
    ":root{color-scheme:light dark;--bg:#fff;--fg:#1b1f24;--dim:#59636e;--line:#d1d9e0;--head:#f0f3f6;"
    "--up:#dafbe1;--warn:#fff8c5;--down:#ffdcd7;--maint:#e6dcf5;--drain:#ddf4ff;--none:#f6f8fa;--link:#0757ba}"
    "@media(prefers-color-scheme:dark){:root{--bg:#0d1117;--fg:#e6edf3;--dim:#9198a1;--line:#3d444d;--head:#1c2128;"
    "--up:#12341d;--warn:#3d3000;--down:#5b1a16;--maint:#3a2a57;--drain:#0c2d4a;--none:#151b23;--link:#79b8ff}}"
    "*{box-sizing:border-box}"
    "body{margin:0;padding:1rem 1.25rem 3rem;background:var(--bg);color:var(--fg);"
    "font:14px/1.45 system-ui,-apple-system,\"Segoe UI\",Roboto,sans-serif}"
    "h1{font-size:1.35rem;margin:0 0 .25rem}h2{font-size:1.05rem;margin:1.6rem 0 .4rem}"
    "h2 small,.dim{color:var(--dim);font-weight:400}a{color:var(--link)}"
    "nav a{margin-right:1rem}"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem;margin:.75rem 0;max-width:60rem}"
    "dt{color:var(--dim)}dd{margin:0}.note{background:var(--warn);padding:.1rem .4rem;border-radius:.25rem}"
    ".scroll{overflow-x:auto}"
    "table{border-collapse:collapse;font-size:12px;font-variant-numeric:tabular-nums;white-space:nowrap}"
    "th,td{border:1px solid var(--line);padding:.15rem .4rem;text-align:right}"
    "thead th{background:var(--head);text-align:center;font-weight:600}"
    "tbody th{text-align:left;font-weight:600}td.t{text-align:left}"
    "tr.fe,tr.be{background:var(--head)}tr.up{background:var(--up)}tr.warn{background:var(--warn)}"
    "tr.down{background:var(--down)}tr.maint{background:var(--maint)}tr.drain{background:var(--drain)}"
    "tr.none{background:var(--none)}"
    ".key span{display:inline-block;padding:.05rem .5rem;margin-right:.4rem;border:1px solid var(--line)}"
    ".key .up{background:var(--up)}.key .warn{background:var(--warn)}.key .down{background:var(--down)}"
    ".key .maint{background:var(--maint)}.key .drain{background:var(--drain)}.key .none{background:var(--none)}";

static const char table_head[] =
    "<div class=\"scroll\"><table><thead><tr><th rowspan=\"2\"></th><th colspan=\"3\">Queue</th>"
    "<th colspan=\"3\">Session rate</th><th colspan=\"4\">Sessions</th><th colspan=\"2\">Bytes</th>"
    "<th colspan=\"2\">Denied</th><th colspan=\"3\">Errors</th><th colspan=\"2\">Warnings</th>"
    "<th colspan=\"8\">Server</th></tr><tr>"
    "<th>Cur</th><th>Max</th><th>Limit</th><th>Cur</th><th>Max</th><th>Limit</th>"
    "<th>Cur</th><th>Max</th><th>Limit</th><th>Total</th><th>In</th><th>Out</th><th>Req</th><th>Resp</th>"
    "<th>Req</th><th>Conn</th><th>Resp</th><th>Retr</th><th>Redis</th>"
    "<th>Status</th><th>LastChk</th><th>Wght</th><th>Act</th><th>Bck</th><th>Chk</th><th>Dwn</th><th>Dwntme</th>"
    "</tr></thead><tbody>\n";

static const char table_end[] = "</tbody></table></div>\n";

/* Columns between the name and the status. */
static const enum stats_field figures[] = {
    STATS_QCUR, STATS_QMAX, STATS_QLIMIT, STATS_RATE, STATS_RATE_MAX, STATS_RATE_LIM, STATS_SCUR,
    STATS_SMAX, STATS_SLIM, STATS_STOT,   STATS_BIN,  STATS_BOUT,     STATS_DREQ,     STATS_DRESP,
    STATS_EREQ, STATS_ECON, STATS_ERESP,  STATS_WRETR, STATS_WREDIS,
};

/* --- cells ------------------------------------------------------------------------------ */

/* Thousands are set apart by narrow spaces, which a browser never breaks a line at. */
static void put_grouped(struct text *out, int64_t value)
{
    char digits[24];
    size_t len;

    if (value < 10000) {
        text_printf(out, "%lld", (long long)value);
        return;
    }
    len = str_put_u64(digits, (uint64_t)value);
    for (size_t i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            text_puts(out, "\u202f");
        text_put(out, str_make(&digits[i], 1));
    }
}

static void put_cell(struct text *out, const struct stats_cell *cell)
{
    if (cell->kind == STATS_NUMBER)
        put_grouped(out, cell->u.number);
    else if (cell->kind == STATS_TEXT)
        text_put_html(out, cell->u.text);
}

static void put_figure(struct text *out, const struct stats_row *row, enum stats_field f)
{
    text_puts(out, "<td>");
    /* A rate limit of 0 is none. */
    if (f != STATS_RATE_LIM || row->cells[f].u.number)
        put_cell(out, &row->cells[f]);
}

/* "3d4h", "12m5s": the two largest units. */
static void put_duration(struct text *out, int64_t seconds)
{
    static const struct {
        int64_t seconds;
        char unit;
    } units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};

    for (int i = 0; i < 4; i++) {
        if (seconds < units[i].seconds && i < 3)
            continue;
        text_printf(out, "%lld%c", (long long)(seconds / units[i].seconds), units[i].unit);
        seconds %= units[i].seconds;
        if (i < 3 && seconds / units[i + 1].seconds)
            text_printf(out, "%lld%c", (long long)(seconds / units[i + 1].seconds), units[i + 1].unit);
        return;
    }
}

static struct str cell_text(const struct stats_row *row, enum stats_field f)
{
    return row->cells[f].kind == STATS_TEXT ? row->cells[f].u.text : STR_NULL;
}

/* --- rows ---------------------------------------------------------------------------------- */

static const char *row_class(const struct stats_row *row)
{
    struct str status = cell_text(row, STATS_STATUS);

    switch (row->type) {
    case STATS_FRONTEND:
        return "fe";
    case STATS_BACKEND:
        return str_starts(status, STR("DOWN")) ? "down" : "be";
    case STATS_LISTENER:
        return "none";
    case STATS_SERVER:
        break;
    }
    if (str_starts(status, STR("MAINT")))
        return "maint";
    if (str_starts(status, STR("DRAIN")))
        return "drain";
    if (str_starts(status, STR("DOWN")))
        return status.len > 4 ? "warn" : "down";
    if (str_starts(status, STR("UP")))
        return status.len > 2 ? "warn" : "up";
    return "none";
}

/* Name, and with show-legends what stands behind it. */
static void put_name(struct text *out, const struct stats_row *row)
{
    struct str address = cell_text(row, STATS_ADDR), cookie = cell_text(row, STATS_COOKIE),
               algorithm = cell_text(row, STATS_ALGO);

    text_puts(out, "<th scope=\"row\">");
    text_put_html(out, row->type == STATS_FRONTEND  ? STR("Frontend")
                       : row->type == STATS_BACKEND ? STR("Backend")
                                                    : cell_text(row, STATS_SVNAME));
    if (address.len) {
        text_puts(out, " <span class=\"dim\">");
        text_put_html(out, address);
        text_puts(out, "</span>");
    }
    if (algorithm.len) {
        text_puts(out, " <span class=\"dim\">balance ");
        text_put_html(out, algorithm);
        text_puts(out, "</span>");
    }
    if (cookie.len) {
        text_puts(out, " <span class=\"dim\">cookie ");
        text_put_html(out, cookie);
        text_puts(out, "</span>");
    }
    text_puts(out, "</th>");
}

static void put_last_check(struct text *out, const struct stats_row *row, const struct check *check)
{
    struct str details = cell_text(row, STATS_LAST_CHK);
    char result[128];

    if (!check || row->cells[STATS_CHECK_STATUS].kind == STATS_EMPTY) { /* none, or paused */
        text_puts(out, "<td>");
        return;
    }
    text_puts(out, "<td class=\"t\" title=\"");
    text_put_html(out, cell_text(row, STATS_CHECK_DESC));
    if (details.len) {
        text_puts(out, ": ");
        text_put_html(out, details);
    }
    text_puts(out, "\">");
    text_put_html(out, str_of(check_text(check, result, sizeof result)));
}

static void put_row(struct text *out, const struct stats_row *row, const struct check *check)
{
    const struct stats_cell *since = &row->cells[STATS_LASTCHG], *downtime = &row->cells[STATS_DOWNTIME];
    bool is_server = row->type == STATS_SERVER;

    text_printf(out, "<tr class=\"%s\">", row_class(row));
    put_name(out, row);
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        put_figure(out, row, figures[i]);
    text_puts(out, "<td class=\"t\">");
    if (since->kind == STATS_NUMBER) {
        put_duration(out, since->u.number);
        text_puts(out, " ");
    }
    text_put_html(out, cell_text(row, STATS_STATUS));
    put_last_check(out, row, check);
    put_figure(out, row, STATS_WEIGHT);
    text_puts(out, "<td>");
    if (is_server)
        text_puts(out, row->cells[STATS_ACT].u.number ? "Y" : "-");
    else
        put_cell(out, &row->cells[STATS_ACT]);
    text_puts(out, "<td>");
    if (is_server)
        text_puts(out, row->cells[STATS_BCK].u.number ? "Y" : "-");
    else
        put_cell(out, &row->cells[STATS_BCK]);
    put_figure(out, row, STATS_CHKFAIL);
    put_figure(out, row, STATS_CHKDOWN);
    text_puts(out, "<td>");
    if (downtime->kind == STATS_NUMBER)
        put_duration(out, downtime->u.number);
    text_puts(out, "</tr>\n");
}

/* --- proxies ----------------------------------------------------------------------------------- */

static bool is_hidden(const struct stats_view *view, const struct server *s)
{
    int state = atomic_load_explicit(&s->state, memory_order_relaxed);

    return view->hide_down && (state == SERVER_DOWN || state == SERVER_MAINT);
}

static const struct check *check_of(const struct server *s)
{
    for (int hops = 0; s->track && hops < 64; hops++)
        s = s->track;
    return s->check;
}

static void put_proxy(struct text *out, const struct app *app, const struct proxy *p, const struct stats_view *view)
{
    bool legends = view->cfg->show_legends;
    struct stats_row row;

    text_puts(out, "<h2 id=\"");
    text_put_html(out, p->name);
    text_puts(out, "\">");
    text_put_html(out, p->name);
    text_printf(out, " <small>%s, %s", p->cfg->kind, p->cfg->mode_tcp ? "tcp" : "http");
    if (p->cfg->description) {
        text_puts(out, ", ");
        text_put_html(out, str_of(p->cfg->description));
    }
    text_puts(out, "</small></h2>\n");
    text_puts(out, table_head);
    if (p->cfg->is_frontend) {
        stats_frontend(app, p, &row);
        put_row(out, &row, NULL);
        for (int i = 0; i < app->bind_count && p->cfg->socket_stats; i++) {
            if (app->binds[i]->frontend != p)
                continue;
            stats_listener(app, app->binds[i], legends, &row);
            put_row(out, &row, NULL);
        }
    }
    for (int i = 0; i < p->server_count; i++) {
        if (is_hidden(view, p->servers[i]))
            continue;
        stats_server(app, p->servers[i], legends, view->now_us, &row);
        put_row(out, &row, check_of(p->servers[i]));
    }
    if (p->cfg->is_backend) {
        stats_backend(app, p, legends, &row);
        put_row(out, &row, NULL);
    }
    text_puts(out, table_end);
}

/* --- the page ------------------------------------------------------------------------------------ */

static void put_fact(struct text *out, const char *name, const char *value)
{
    text_printf(out, "<dt>%s</dt><dd>", name);
    text_put_html(out, str_of(value));
    text_puts(out, "</dd>");
}

static void put_facts(struct text *out, const struct app *app, const struct stats_view *view)
{
    const struct cfg_stats *cfg = view->cfg;

    text_puts(out, "<dl>");
    if (!cfg->hide_version)
        put_fact(out, "Version", SP_VERSION);
    text_printf(out, "<dt>Process</dt><dd>%u, %s", app->pid,
                atomic_load_explicit(&app->stopping, memory_order_relaxed) ? "stopping, up for " : "up for ");
    put_duration(out, view->now_us > app->start_us ? (int64_t)((view->now_us - app->start_us) / 1000000) : 0);
    text_printf(out, "</dd><dt>Workers</dt><dd>%d</dd><dt>Connections</dt><dd>%u of %d</dd>", app->worker_count,
                atomic_load_explicit(&app->connections, memory_order_relaxed), app->maxconn);
    put_fact(out, "TLS library", tls_library_text());
    if (app->crypto_note) {
        text_puts(out, "<dt>Crypto</dt><dd><span class=\"note\">");
        text_put_html(out, str_of(app->crypto_note));
        text_puts(out, "</span></dd>");
    }
    text_puts(out, "</dl>\n");
}

static void put_link(struct text *out, const struct stats_view *view, const char *options, const char *label)
{
    text_puts(out, "<a href=\"");
    text_put_html(out, view->base_uri);
    text_printf(out, "%s\">%s</a>", options, label);
}

static void put_navigation(struct text *out, const struct stats_view *view)
{
    const char *norefresh = view->cfg->refresh_s && !view->refreshing ? ";norefresh" : "";
    char options[32];

    text_puts(out, "<nav>");
    snprintf(options, sizeof options, "%s%s", view->hide_down ? ";up" : "", norefresh);
    put_link(out, view, options, "Refresh now");
    snprintf(options, sizeof options, "%s%s", view->hide_down ? "" : ";up", norefresh);
    put_link(out, view, options, view->hide_down ? "Show all servers" : "Hide servers that are down");
    if (view->cfg->refresh_s) {
        snprintf(options, sizeof options, "%s%s", view->hide_down ? ";up" : "", view->refreshing ? ";norefresh" : "");
        put_link(out, view, options, view->refreshing ? "Stop refreshing" : "Refresh automatically");
    }
    put_link(out, view, ";csv", "CSV");
    if (view->refreshing)
        text_printf(out, "<span class=\"dim\">every %lld s</span>", (long long)view->cfg->refresh_s);
    text_puts(out, "</nav>\n");
}

static const char *node_name(const struct app *app, const struct cfg_stats *cfg, struct str *out)
{
    *out = cfg->node ? str_of(cfg->node) : app->node.len ? app->node : app->hostname;
    return cfg->show_node && out->len ? " on " : NULL;
}

static void put_title(struct text *out, const struct app *app, const struct cfg_stats *cfg)
{
    struct str node;
    const char *on = node_name(app, cfg, &node);

    text_puts(out, "Sallyport statistics");
    if (on) {
        text_puts(out, on);
        text_put_html(out, node);
    }
}

void stats_put_html(struct text *out, const struct app *app, const struct stats_view *view)
{
    const char *description = view->cfg->show_desc;

    text_puts(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                   "<meta name=\"viewport\" content=\"width=device-width\"><link rel=\"icon\" href=\"data:,\"><title>");
    put_title(out, app, view->cfg);
    text_puts(out, "</title><style>");
    text_puts(out, page_style);
    text_puts(out, "</style></head><body>\n<h1>");
    put_title(out, app, view->cfg);
    text_puts(out, "</h1>\n");
    if (description && !*description) /* "show-desc" alone: the process's own */
        description = app->model->global.description;
    if (description) {
        text_puts(out, "<p>");
        text_put_html(out, str_of(description));
        text_puts(out, "</p>\n");
    }
    put_facts(out, app, view);
    put_navigation(out, view);
    text_puts(out, "<p class=\"key\"><span class=\"up\">up</span><span class=\"warn\">going up or down</span>"
                   "<span class=\"down\">down</span><span class=\"maint\">maintenance</span>"
                   "<span class=\"drain\">draining</span><span class=\"none\">not checked</span></p>\n");
    for (int i = 0; i < app->proxy_count; i++)
        put_proxy(out, app, app->proxies[i], view);
    stats_put_crypto(out, app);
    text_puts(out, "</body></html>\n");
}
