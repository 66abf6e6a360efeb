/*
 * The way in with a bound on the model's memory, for tests of what happens
 * without memory.
 */
#ifndef SP_CONFIG_LOAD_H
#define SP_CONFIG_LOAD_H

#include "config/config.h"

/* cfg_load_text whose model takes at most `limit_bytes` (0: any) of memory; NULL when that is too little. */
struct cfg_model *cfg_load_text_limited(const char *name, struct str text,
                                        const struct cfg_environment *env, struct diag *diag,
                                        size_t limit_bytes);

#endif
