/*
 * The proxy's own error pages, in HAProxy's words.
 */
#ifndef SP_PROXY_ERRORS_H
#define SP_PROXY_ERRORS_H

#include "proxy/proxy.h"

/* Index of a status in proxy_error_statuses and the proxies' error arrays, or -1. */
int errors_slot(unsigned status);

/* The built-in page of `status` (any), whole, in `arena`; ptr NULL without memory. */
struct str errors_builtin(struct arena *arena, unsigned status);

#endif
