/*
 * What the program is: for -v, -vv and the configuration's predicates.
 */
#ifndef SP_CMD_VERSION_H
#define SP_CMD_VERSION_H

#include "config/config.h"

const struct cfg_environment *version_environment(void);
void version_print(bool details);

#endif
