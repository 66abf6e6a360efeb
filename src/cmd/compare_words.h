/*
 * Between the parts of the compare file's parser: names, and what {…} may stand for.
 */
#ifndef SP_CMD_COMPARE_WORDS_H
#define SP_CMD_COMPARE_WORDS_H

#include "cmd/compare_file.h"

/* Letters, digits, '-', '_' and '.'; 1 to 64 of them. */
bool compare_is_name(struct str s);

/* Every {name} in the text is one that compare_expand knows; else errors, each at its line. */
void compare_check_names(const struct compare_plan *plan, const struct compare_text *text, bool is_value,
                         struct diag *diag);

#endif
