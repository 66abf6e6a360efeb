/*
 * What a sweep measured, as text: CSV, JSON, one HTML page with three charts; and earlier tables laid beside it.
 */
#ifndef SP_MEASURE_SWEEP_REPORT_H
#define SP_MEASURE_SWEEP_REPORT_H

#include "measure/sweep.h"

#include <stdio.h>

/*
 * An earlier table: ours (sweep_report_csv), or one of the published shape: a column request_bytes, and columns
 * MODE_NAME_bytes_per_s or MODE_NAME_bytes_per_cpu_s with MODE "single" or "concurrentN".
 */
struct sweep_table;

#define SWEEP_TABLE_BYTES_MAX (16u << 20)
#define SWEEP_TABLE_ERROR_BYTES 240
/* `text` is the file's content. SP_EINVAL: `error` says the line, the word and what was expected. SP_ENOMEM. */
int sweep_table_parse(const char *text, size_t len, struct sweep_table **out, char error[SWEEP_TABLE_ERROR_BYTES]);
void sweep_table_free(struct sweep_table *table);

/* One line a cell, columns named in the first: algorithm, mode, n, request_bytes, impl, bytes_per_s, ... */
void sweep_report_csv(FILE *out, const struct sweep_result *result);
/* One object; its schema is in docs/crypto-stress.md. */
void sweep_report_json(FILE *out, const struct sweep_result *result);
/*
 * One self-contained page an algorithm after the other: three charts on log axes (single; concurrent or in flight; bytes
 * per CPU-second), crossovers marked and said in words, tables below. `earlier` NULL or a table and the name it is shown
 * under.
 */
void sweep_report_html(FILE *out, const struct sweep_result *result, const struct sweep_table *earlier,
                       const char *earlier_name);
/* The published form for a terminal: three tables an algorithm, then the crossovers, one sentence each. */
void sweep_report_text(FILE *out, const struct sweep_result *result, const struct sweep_table *earlier,
                       const char *earlier_name);

/*
 * "cryptodev:crypto_openssl beats openssl from 64 KiB on when single"; at most `size` bytes with its NUL; `out`.
 */
char *sweep_crossing_sentence(const struct sweep_result *result, size_t algorithm, size_t mode,
                              enum sweep_metric metric, size_t a, size_t b, char *out, size_t size);

#endif
