/*
 * The crypto queue's counters as a table of the statistics page: what ran, where, how full the batches
 * were, how long operations waited, and what fell back to the scalar library and why.
 */
#ifndef SP_ADMIN_STATS_CRYPTO_H
#define SP_ADMIN_STATS_CRYPTO_H

#include "admin/text.h"
#include "proxy/proxy.h"

/* Nothing when no worker has a queue, or none has run an operation. Any thread. */
void stats_put_crypto(struct text *out, const struct app *app);

#endif
