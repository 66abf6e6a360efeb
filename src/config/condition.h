/*
 * Conditions of ".if", ".elif" and "-cc": predicates joined by !, &&, || and
 * parentheses (HAProxy's manual, section 2.4).
 */
#ifndef SP_CONFIG_CONDITION_H
#define SP_CONFIG_CONDITION_H

#include "config/config.h"

struct cfg_condition_error {
    char text[200];
    size_t position; /* from 1 */
};

/*
 * 1 true, 0 false (an empty text too), SP_EINVAL with *error filled. `text` has been through the
 * lexer already: variables are expanded and its words joined by single spaces.
 */
int cfg_condition_eval(const struct cfg_environment *env, const char *text,
                       struct cfg_condition_error *error);

#endif
