#include "proxy/sample.h"

bool process_item(const struct worker *w, enum rules_item item, struct sample *out)
{
    const struct app *app = w->app;

    switch (item) {
    case RULES_PID:
        return put_int(out, app->pid);
    case RULES_NBTHREAD:
        return put_int(out, app->worker_count);
    case RULES_THREAD:
        return put_int(out, w->index);
    case RULES_ACT_CONN:
        return put_int(out, atomic_load(&app->connections));
    case RULES_STOPPING:
        return put_bool(out, atomic_load(&app->stopping));
    case RULES_UPTIME_S:
        return put_int(out, (int64_t)((io_loop_now(w->loop) - app->start_us) / 1000000));
    case RULES_HOSTNAME:
        return put_str(out, app->hostname);
    case RULES_NODE:
        return put_str(out, app->node);
    default:
        return false;
    }
}
