/*
 * One implementation of the sweep against OpenSSL's EVP, called plainly.
 */
#ifndef SP_TESTS_UNIT_MEASURE_SWEEP_CASE_H
#define SP_TESTS_UNIT_MEASURE_SWEEP_CASE_H

#include "measure/sweep_impl.h"

#define SWEEP_CASE_DEPTH 24

/* cmocka's headers must have been included. */

/* How many algorithm, size and place combinations were checked, and how many the implementation does not do. */
struct sweep_tally {
    unsigned checked, refused, async_requests;
};

/* The device, or a skip that says why it cannot be had: only for SP_EUNSUPPORTED. */
struct sweep_device *sweep_case_open(const struct sweep_impl *impl, const char *argument,
                                     unsigned threads, uint64_t request_bytes_max);
/*
 * Every algorithm of the table, at sizes up to `request_bytes_max`, in and out of place, SWEEP_CASE_DEPTH requests in flight:
 * outputs and tags are those of OpenSSL, and nothing beside them is written. What is refused comes with a reason.
 */
void sweep_case_check_all(const struct sweep_impl *impl, struct sweep_device *device,
                          uint64_t request_bytes_max, struct sweep_tally *tally);
/* One algorithm and size. False: refused, `why` says it. */
bool sweep_case_check(const struct sweep_impl *impl, struct sweep_device *device, unsigned thread,
                      const struct sweep_algorithm *algorithm, uint32_t len, bool in_place,
                      unsigned *async_requests, struct sweep_why *why);

#endif
