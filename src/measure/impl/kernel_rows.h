/*
 * The rows of the kernel module sallyport_crypto, as it shows them in debugfs (kmod/README.md).
 */
#ifndef SP_MEASURE_IMPL_KERNEL_ROWS_H
#define SP_MEASURE_IMPL_KERNEL_ROWS_H

#include "measure/sweep_impl.h"

#define KERNEL_DRIVER_BYTES 128 /* CRYPTO_MAX_ALG_NAME */
#define KERNEL_STATUS_BYTES 16

struct kernel_row {
    char driver[KERNEL_DRIVER_BYTES];
    int64_t priority;
    bool is_single; /* mode "single", else "concurrent" */
    unsigned threads, depth;
    uint64_t request_bytes;
    char status[KERNEL_STATUS_BYTES]; /* "ok", "unchecked", "lost", "gone", "wrong", "failed" */
    struct sweep_sample sample;
};

/*
 * Fills up to `max` rows; *count is how many. SP_EINVAL: another version's columns, a line cut
 * short, a word that is not what its column says, or figures that contradict each other; `why`
 * names the line. SP_ETOOBIG: more than `max` rows.
 */
int kernel_rows_parse(const char *text, size_t len, struct kernel_row *rows, size_t max,
                      size_t *count, struct sweep_why *why);

#endif
