/*
 * Statistics as one HTML page: no script, no other file, readable in light and dark.
 */
#ifndef SP_ADMIN_STATS_HTML_H
#define SP_ADMIN_STATS_HTML_H

#include "admin/stats.h"

struct stats_view {
    const struct cfg_stats *cfg;
    struct str base_uri; /* of the page, without options; links are made from it */
    bool refreshing;     /* the page reloads itself */
    bool hide_down;      /* servers that are down or in maintenance are left out */
    uint64_t now_us;     /* monotonic */
};

void stats_put_html(struct text *out, const struct app *app, const struct stats_view *view);

#endif
