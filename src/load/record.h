/*
 * What one thread notes, and the sum over all of them.
 *
 * One writer, its thread; the sum is made when the threads have ended. Only `live` and `progress` are
 * read meanwhile.
 */
#ifndef SP_LOAD_RECORD_H
#define SP_LOAD_RECORD_H

#include "load/load.h"

#include <stdatomic.h>

/*
 * A coarse histogram, sixteen buckets a doubling: for what is kept many times over. Its values are
 * up to HISTOGRAM_MAX_US.
 */
#define LOAD_COARSE_BUCKETS 368u
unsigned load_coarse_bucket(uint64_t value_us);
/* The largest value of a bucket. */
uint64_t load_coarse_top_us(unsigned bucket);

/* Of the time series. */
struct load_period {
    uint64_t requests, errors, bytes_in;
    uint32_t max_us;
    uint32_t buckets[LOAD_COARSE_BUCKETS];
};
#define LOAD_PERIODS_MAX 4096u

/* One second, for load_progress: a reader looks at the last one that is whole, so three take turns. */
struct load_live {
    _Atomic uint64_t second; /* since the measurement began, plus one; 0: never used */
    _Atomic uint32_t buckets[LOAD_COARSE_BUCKETS];
};
#define LOAD_LIVE_SECONDS 3

struct load_record {
    uint64_t measure_us; /* when the measurement begins */
    uint64_t sent, requests;
    uint64_t errors[LOAD_ERRORS], error_count;
    char examples[LOAD_ERRORS][LOAD_EXAMPLE_BYTES];
    uint64_t example_us[LOAD_ERRORS];
    uint64_t status_class[6];
    uint64_t bytes_in, bytes_out, body_bytes;
    uint64_t connects, handshakes_full, handshakes_resumed, reconnects;
    uint64_t late_us_max;
    uint64_t first_us, last_us; /* first request, last answer; 0: none */
    char tls_version[16], tls_cipher[64];
    uint64_t tls_us; /* when that was; 0: never */

    struct load_period *periods; /* NULL: no time series */
    struct load_period *period;  /* the present one */
    size_t period_capacity, period_count;
    uint64_t period_us; /* doubled whenever the array is full */
    uint64_t period_end_us;

    uint64_t live_end_us;
    struct load_live *live_now;
    struct load_live live[LOAD_LIVE_SECONDS];
    _Atomic uint64_t live_requests, live_errors;

    struct histogram connect, handshake_full, handshake_resumed, first_byte, service, latency;
};

/* The times of one answered request. */
struct load_times {
    uint64_t base_us; /* latency counts from here */
    uint64_t sent_us;
    uint64_t first_us; /* its first byte; 0: there is none to tell of */
    uint64_t end_us;
};

/* The memory is zero. SP_ENOMEM. */
int load_record_init(struct load_record *r, const struct load_plan *plan);
void load_record_release(struct load_record *r);
/* Before anything is recorded. */
void load_record_start(struct load_record *r, uint64_t measure_us);

/* Only what belongs to the measurement is handed to these. */
void load_record_answer(struct load_record *r, const struct load_times *times);
void load_record_bytes_in(struct load_record *r, uint64_t now_us, size_t bytes);
/* Counts; the first of its kind leaves its text. */
void load_record_error(struct load_record *r, uint64_t now_us, enum load_error error,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));

/* A load_result and the memory that it points to. */
struct load_sum {
    struct load_result result;
    struct histogram histograms[6];
    char tls_version[16], tls_cipher[64];
};
/* Adds the records of all threads; the intervals are allocated. SP_ENOMEM: without intervals. */
int load_sum_records(struct load_sum *sum, const struct load_record *const *records, size_t count);

/* Percentile of coarse buckets, at most `max_us`; 0 when they are empty. */
uint64_t load_coarse_percentile_us(const uint64_t buckets[LOAD_COARSE_BUCKETS], double percent,
                                   uint64_t max_us);

#endif
