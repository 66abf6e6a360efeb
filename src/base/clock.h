/*
 * Time. The event loop reads the clock once a turn and hands the value down;
 * only code outside a loop calls clock_now_us.
 */
#ifndef SP_BASE_CLOCK_H
#define SP_BASE_CLOCK_H

#include "base/str.h"

/* CLOCK_MONOTONIC in microseconds. */
uint64_t clock_now_us(void);

/* The same in nanoseconds, for measurements. */
uint64_t clock_now_ns(void);

/* CLOCK_REALTIME in microseconds since 1970. */
uint64_t clock_wall_us(void);

/* RFC 9110 section 5.6.7 IMF-fixdate, 29 bytes and a NUL: "Sun, 06 Nov 1994 08:49:37 GMT". */
#define CLOCK_HTTP_DATE_BYTES 30
void clock_http_date(uint64_t wall_us, char out[CLOCK_HTTP_DATE_BYTES]);

/* Parses IMF-fixdate, RFC 850 and asctime dates to seconds since 1970; SP_EINVAL otherwise. */
int clock_parse_http_date(struct str s, int64_t *out_s);

#endif
