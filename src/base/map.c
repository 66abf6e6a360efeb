#include "base/map.h"

#include "base/hash.h"
#include "base/status.h"

#include <stdlib.h>

#define CAPACITY_LEAST 16

static uint32_t map_hash(struct str key)
{
    uint64_t h = hash_fnv1a64(key, 0);

    return (uint32_t)(h ^ h >> 32);
}

/* The slot that holds `key`, or the empty one where it would go. */
static struct map_entry *map_slot(struct map_entry *slots, size_t capacity, struct str key,
                                  uint32_t hash)
{
    size_t i = hash & (capacity - 1);

    while (slots[i].key.ptr && !(slots[i].hash == hash && str_eq(slots[i].key, key)))
        i = (i + 1) & (capacity - 1);
    return &slots[i];
}

void map_init(struct map *m)
{
    *m = (struct map){0};
}

void map_release(struct map *m)
{
    free(m->slots);
    map_init(m);
}

static int map_resize(struct map *m)
{
    size_t capacity = m->capacity ? m->capacity * 2 : CAPACITY_LEAST;
    struct map_entry *slots = calloc(capacity, sizeof(*slots));

    if (!slots)
        return SP_ENOMEM;
    for (size_t i = 0; i < m->capacity; i++) {
        struct map_entry *old = &m->slots[i];

        if (old->key.ptr)
            *map_slot(slots, capacity, old->key, old->hash) = *old;
    }
    free(m->slots);
    m->slots = slots;
    m->capacity = capacity;
    return 0;
}

int map_put(struct map *m, struct str key, void *value)
{
    uint32_t hash = map_hash(key);
    struct map_entry *slot;

    if (!key.ptr)
        key = STR("");
    if (m->capacity && map_slot(m->slots, m->capacity, key, hash)->key.ptr)
        return SP_EEXIST;
    /* Never more than three quarters full: probes stay short and always end. */
    if (m->count + 1 > m->capacity / 4 * 3) {
        int status = map_resize(m);

        if (status != 0)
            return status;
    }
    slot = map_slot(m->slots, m->capacity, key, hash);
    *slot = (struct map_entry){.key = key, .value = value, .hash = hash};
    m->count++;
    return 0;
}

void *map_get(const struct map *m, struct str key)
{
    if (m->capacity == 0)
        return NULL;
    return map_slot(m->slots, m->capacity, key, map_hash(key))->value;
}
