/*
 * What one configuration's programs own together.
 */
#ifndef SP_RULES_REGISTRY_H
#define SP_RULES_REGISTRY_H

#include "rules/rules.h"

#include <pthread.h>

struct rules_registry {
    struct arena *arena;
    struct regex *regexes;
    struct rules_patterns *patterns, **patterns_tail;
    pthread_mutex_t edit_lock; /* one edit of pattern lists at a time */
};

#endif
