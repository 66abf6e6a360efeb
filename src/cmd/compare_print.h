/*
 * What `sallyport compare` shows: tables on standard output, a progress line on a terminal, the page.
 */
#ifndef SP_CMD_COMPARE_PRINT_H
#define SP_CMD_COMPARE_PRINT_H

#include "cmd/compare_json.h"

/* The plan in a few lines, for --check. */
void compare_print_plan(const struct compare_plan *plan);

/* Medians, ratios, verdicts, notes. Nothing of loads without a measurement. */
void compare_print_result(const struct compare_run *run, const json_t *machine);

/* On standard error, over the line before; only on a terminal. NULL: wipes it. */
void compare_print_progress(const char *text);

/* SP_EIO with errno. */
int compare_write_html(const struct compare_run *run, const json_t *machine, const char *path);

/* What bench is asked for a load, in one text of the arena; NULL: no memory. */
const char *compare_load_text(struct arena *arena, const struct compare_load *load);

#endif
