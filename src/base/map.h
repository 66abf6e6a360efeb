/*
 * Hash table from byte strings to pointers. Keys are not copied: they must
 * outlive the table. One writer, any number of readers once writing has ended.
 */
#ifndef SP_BASE_MAP_H
#define SP_BASE_MAP_H

#include "base/str.h"

struct map_entry {
    struct str key; /* ptr NULL: empty slot */
    void *value;
    uint32_t hash;
};

struct map {
    struct map_entry *slots; /* power-of-two capacity, linear probing */
    size_t capacity;
    size_t count;
};

void map_init(struct map *m);
void map_release(struct map *m);
/* SP_EEXIST (value unchanged) when the key is there already; SP_ENOMEM. */
int map_put(struct map *m, struct str key, void *value);
/* NULL when absent. */
void *map_get(const struct map *m, struct str key);

#endif
