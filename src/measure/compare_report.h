/*
 * The page of `sallyport compare --html`: one file, readable without script, light and dark.
 */
#ifndef SP_MEASURE_COMPARE_REPORT_H
#define SP_MEASURE_COMPARE_REPORT_H

#include "measure/compare_result.h"

#include <stdio.h>

/* A label and what belongs to it. */
struct compare_fact {
    const char *label, *value;
};

struct compare_report {
    const char *title;
    const struct compare_result *result; /* summarised */
    const char *const *variant_names;    /* result->variants */
    const char *const *load_names;       /* result->loads */
    const char *const *load_texts;       /* what was asked of bench */
    unsigned rounds_done;
    const char *failure; /* why it ended early; NULL: it did not */
    const struct compare_fact *facts; /* machine, versions, seed, hash … */
    size_t fact_count;
    const char *const *notes;
    size_t note_count;
    const struct compare_fact *texts; /* by name: the compare file, configurations */
    size_t text_count;
};

/* Whole document. What is wrong with the stream is for its owner to find out (ferror). */
void compare_report_html(FILE *out, const struct compare_report *report);

#endif
