/*
 * Earlier tables of the crypto sweep: whatever the bytes, a table comes out or an error that says its line; a table that
 * is accepted is within its bounds, and every report can be written from it.
 */
#include "fuzz_check.h"
#include "measure/sweep_table.h"

#include <math.h>
#include <string.h>

static void check_series(const struct sweep_table *t, const struct sweep_table_series *s)
{
    const struct sweep_table_series *base = sweep_table_base(t, s);
    char text[SWEEP_SENTENCE_BYTES], label[SWEEP_TABLE_LABEL_BYTES];
    struct sweep_points p;

    CHECK(s->name && strlen(s->name) < SWEEP_TABLE_NAME_BYTES && s->mode.n >= 1 && s->count <= SWEEP_POINTS_MAX);
    CHECK(s->mode.kind != SWEEP_SINGLE || s->mode.n == 1);
    for (size_t i = 0; i < s->count; i++) {
        CHECK(isfinite(s->values[i]) && s->values[i] > 0 && s->bytes[i] >= 1);
        CHECK(i == 0 || s->bytes[i] > s->bytes[i - 1]);
        CHECK(sweep_table_value(s, s->bytes[i]) == s->values[i]);
    }
    sweep_table_label(s, &s->mode, "name", label);
    if (!base)
        return;
    sweep_table_points(&p, s, base);
    sweep_points_sentence(&p, &s->mode, s->metric, s->name, base->name, text, sizeof(text));
    CHECK(memchr(text, '\0', sizeof(text)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char error[SWEEP_TABLE_ERROR_BYTES] = "";
    struct sweep_table *table = NULL;
    struct sweep_result nothing = {0};
    FILE *out;
    int status;

    if (size > 65536)
        return 0;
    status = sweep_table_parse((const char *)data, size, &table, error);
    CHECK((status == 0) == (table != NULL));
    if (status != 0) {
        CHECK(strncmp(error, "line ", 5) == 0 && strstr(error, "expected"));
        return 0;
    }
    CHECK(table->count > 0 && table->count <= SWEEP_TABLE_SERIES_MAX);
    /* Quadratic in the series: a few say as much as all. */
    for (size_t i = 0; i < table->count && i < 64; i++)
        check_series(table, &table->series[i]);
    if (table->count <= 64) {
        out = fopen("/dev/null", "w");
        CHECK(out);
        sweep_report_text(out, &nothing, table, "earlier");
        fclose(out);
    }
    sweep_table_free(table);
    return 0;
}
