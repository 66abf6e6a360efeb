/*
 * Builds log targets and the error pages of a proxy.
 */
#include "proxy/build.h"
#include "proxy/errors.h"

#include <errno.h>

static struct logsink *log_sink(struct build *b, const struct cfg_log *cfg, const char *tag)
{
    const struct cfg_global *g = &b->app->model->global;
    struct logsink *sink = arena_zalloc(&b->app->arena, 1, sizeof(*sink));

    if (!sink)
        return NULL;
    logsink_init(sink);
    sink->fd = cfg->address.fd;
    sink->addr = cfg->address.addr;
    if (cfg->address.fd < 0 && cfg->address.addr.u.sa.sa_family != AF_UNIX)
        addr_set_port(&sink->addr, cfg->address.port_given ? cfg->address.port_low : 514);
    sink->format = (enum log_format)cfg->format;
    sink->facility = cfg->facility;
    sink->max_level = cfg->max_level;
    sink->min_level = cfg->min_level;
    sink->max_len = (size_t)cfg->len;
    sink->tag = (char *)(uintptr_t)(tag ? tag : g->log_tag);
    if (g->log_send_hostname_set)
        sink->host = g->log_send_hostname && g->log_send_hostname[0] ? (char *)(uintptr_t)g->log_send_hostname
                                                                    : (char *)(uintptr_t)b->app->node.ptr;
    return sink;
}

static int count_logs(const struct cfg_log *first, int globals)
{
    int n = 0;

    for (const struct cfg_log *cfg = first; cfg; cfg = cfg->next)
        n += cfg->global ? globals : 1;
    return n;
}

static int log_targets(struct build *b, const struct cfg_log *first, const char *tag, struct log_target **out,
                       int *out_count)
{
    struct app *app = b->app;
    int count = count_logs(first, app->global_log_count), n = 0;
    struct log_target *targets = arena_zalloc(&app->arena, (size_t)count + 1, sizeof(*targets));

    if (!targets)
        return SP_ENOMEM;
    for (const struct cfg_log *cfg = first; cfg; cfg = cfg->next) {
        if (cfg->global) {
            for (int i = 0; i < app->global_log_count; i++, n++) {
                targets[n].cfg = app->global_logs[i].cfg;
                targets[n].sink = tag ? log_sink(b, targets[n].cfg, tag) : app->global_logs[i].sink;
            }
            continue;
        }
        targets[n].cfg = cfg;
        targets[n].sink = log_sink(b, cfg, tag);
        n++;
    }
    for (int i = 0; i < n; i++)
        if (!targets[i].sink)
            return SP_ENOMEM;
    *out = targets;
    *out_count = n;
    return 0;
}

int build_logs(struct build *b)
{
    struct app *app = b->app;

    if (log_targets(b, app->model->global.logs, NULL, &app->global_logs, &app->global_log_count) != 0)
        return SP_ENOMEM;
    for (int i = 0; i < app->proxy_count; i++) {
        struct proxy *p = app->proxies[i];

        if (log_targets(b, p->cfg->logs, p->cfg->log_tag, &p->logs, &p->log_count) != 0)
            return SP_ENOMEM;
    }
    return 0;
}

static void open_sinks(struct log_target *targets, int count, struct diag *diag)
{
    for (int i = 0; i < count; i++) {
        struct logsink *sink = targets[i].sink;

        if (sink->is_socket || sink->is_stream_file) /* open already: shared by "log global" */
            continue;
        if (logsink_open(sink) != 0)
            diag_error(diag, targets[i].cfg->loc, "'%s': cannot open the log target: %s", targets[i].cfg->text,
                       strerror(errno));
    }
}

int build_open_logs(struct app *app, struct diag *diag)
{
    open_sinks(app->global_logs, app->global_log_count, diag);
    for (int i = 0; i < app->proxy_count; i++)
        open_sinks(app->proxies[i]->logs, app->proxies[i]->log_count, diag);
    return diag->errors ? SP_EINVAL : 0;
}

static void close_sinks(struct log_target *targets, int count)
{
    for (int i = 0; i < count; i++)
        logsink_close(targets[i].sink);
}

void app_close_logs(struct app *app)
{
    for (int i = 0; i < app->proxy_count; i++)
        close_sinks(app->proxies[i]->logs, app->proxies[i]->log_count);
    close_sinks(app->global_logs, app->global_log_count);
}

/* --- error pages ------------------------------------------------------------------- */

static void error_file(struct build *b, struct proxy *p, const struct cfg_errorfile *f)
{
    int slot = errors_slot(f->status);

    if (slot < 0) {
        diag_error(b->diag, f->loc, "'%u': no error page has this status", f->status);
        return;
    }
    if (f->location) {
        p->error_locations[slot] = f;
        return;
    }
    p->error_locations[slot] = NULL;
    p->error_raw[slot] = f->content.ptr ? f->content : str_make("", 0);
}

static bool errors_ref_wants(const struct cfg_errorfiles_ref *ref, unsigned status)
{
    for (int i = 0; i < ref->status_count; i++)
        if (ref->statuses[i] == status)
            return true;
    return ref->status_count == 0;
}

int build_errors(struct build *b, struct proxy *p)
{
    for (const struct cfg_errorfiles_ref *ref = p->cfg->errorfiles_refs; ref; ref = ref->next) {
        const struct cfg_errors *section = b->app->model->errors;

        while (section && strcmp(section->name, ref->section) != 0)
            section = section->next;
        /* A name without a section was reported when the file was read. */
        for (const struct cfg_errorfile *f = section ? section->files : NULL; f; f = f->next)
            if (errors_ref_wants(ref, f->status))
                error_file(b, p, f);
    }
    for (const struct cfg_errorfile *f = p->cfg->errorfiles; f; f = f->next)
        error_file(b, p, f);
    return 0;
}
