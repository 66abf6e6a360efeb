/*
 * The statistics page.
 */
#ifndef SP_ADMIN_STATS_PAGE_H
#define SP_ADMIN_STATS_PAGE_H

#include "proxy/proxy.h"

/*
 * Builds the answer for `px`'s statistics URI; see stats_handler. Options follow the URI: ";csv", ";up" (only
 * servers that are up), ";norefresh". 401 unless one of the "stats auth" users is named. The body lives in `arena`,
 * which may grow up to 64 MiB for it. SP_ENOMEM.
 */
int admin_stats_reply(struct app *app, struct proxy *px, const struct http_msg *req, struct arena *arena,
                      struct rules_reply *reply);

#endif
