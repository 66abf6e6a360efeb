/*
 * Tables are rebuilt into the block that is not current, and published by counting `generation` up. A reader that finds
 * the same generation after its search as before has not seen half-written entries: the block it read is only written
 * to again after a further generation was published. Blocks that became too small are kept until the end, because a
 * slow reader may still look at them; sizes double, so they never add up to more than the last.
 */
#include "proxy/balance_internal.h"

#include <stdlib.h>

struct table_block {
    unsigned capacity;
    atomic_uint count;
    atomic_uint_least64_t entries[]; /* hash or cumulative weight in the upper half, position of the server below */
};

struct table_retired {
    struct table_retired *next;
    struct table_block *block;
};

static inline uint64_t pack(uint32_t upper, int position)
{
    return (uint64_t)upper << 32 | (uint32_t)position;
}

static inline uint32_t upper_of(uint64_t entry)
{
    return (uint32_t)(entry >> 32);
}

/* Acquire and release here order every entry against `generation`. */
static inline uint64_t entry_at(const struct table_block *b, unsigned i)
{
    return atomic_load_explicit(&b->entries[i], memory_order_acquire);
}

static inline void entry_put(struct table_block *b, unsigned i, uint64_t entry)
{
    atomic_store_explicit(&b->entries[i], entry, memory_order_release);
}

/* --- building ------------------------------------------------------------------------- */

static unsigned greatest_divisor(const struct proxy *backend)
{
    unsigned g = 0;

    for (int i = 0; i < backend->server_count; i++) {
        unsigned a = (unsigned)backend->servers[i]->cfg->weight;

        while (a) {
            unsigned rest = g % a;

            g = a;
            a = rest;
        }
    }
    return g ? g : 1;
}

/* Entries that a server has in the table. */
static unsigned share_of(const struct balance_table *t, const struct server *s)
{
    unsigned weight = balance_weight(s);

    switch (t->kind) {
    case TABLE_MAP:
        return (weight + t->weight_gcd - 1) / t->weight_gcd;
    case TABLE_RING:
        return weight * BALANCE_WEIGHT_SCALE;
    case TABLE_WEIGHTS:
        break;
    }
    return 1;
}

/* Room for `count` entries in block `index`; what there is when memory has run out. */
static struct table_block *block_for(struct balance_table *t, unsigned index, unsigned count)
{
    struct table_block *old = atomic_load_explicit(&t->blocks[index], memory_order_relaxed);
    struct table_block *block;
    struct table_retired *retired = NULL;
    unsigned capacity = old ? old->capacity : 16;

    if (old && count <= old->capacity)
        return old;
    while (capacity < count)
        capacity *= 2;
    block = malloc(sizeof *block + (size_t)capacity * sizeof block->entries[0]);
    if (block && old)
        retired = malloc(sizeof *retired);
    if (!block || (old && !retired)) {
        free(block);
        return old;
    }
    block->capacity = capacity;
    atomic_init(&block->count, 0);
    for (unsigned i = 0; i < capacity; i++)
        atomic_init(&block->entries[i], 0);
    if (old) {
        *retired = (struct table_retired){.next = t->retired, .block = old};
        t->retired = retired;
    }
    atomic_store_explicit(&t->blocks[index], block, memory_order_release);
    return block;
}

/*
 * HAProxy's map: at each step every server gains its share, and the first of those with the most whole tables' worth is
 * taken and pays one table. Equal shares give declaration order.
 */
static unsigned fill_map(struct balance_table *t, struct table_block *block, enum balance_group group,
                         const struct server *first, unsigned total)
{
    unsigned steps = total < block->capacity ? total : block->capacity;

    memset(t->scores, 0, (size_t)t->backend->server_count * sizeof *t->scores);
    for (unsigned step = 0; step < steps; step++) {
        int64_t most = 0;
        int taken = -1;

        for (int i = 0; i < t->backend->server_count; i++) {
            const struct server *s = t->backend->servers[i];
            int64_t worth;

            if (!balance_group_has(group, s, first))
                continue;
            t->scores[i] += share_of(t, s);
            worth = (t->scores[i] + total) / total;
            if (taken < 0 || worth > most) {
                most = worth;
                taken = i;
            }
        }
        if (taken < 0) /* changed while counted: the next update follows at once */
            return step;
        t->scores[taken] -= total;
        entry_put(block, step, pack(0, taken));
    }
    return steps;
}

static int compare_entries(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* Each server has as many points on the ring as its scaled weight, at places that its id alone decides. */
static unsigned fill_ring(struct balance_table *t, struct table_block *block, enum balance_group group,
                          const struct server *first, unsigned total)
{
    uint64_t *points = malloc((size_t)total * sizeof *points);
    unsigned count = 0;

    if (!points)
        return 0;
    for (int i = 0; i < t->backend->server_count; i++) {
        const struct server *s = t->backend->servers[i];
        unsigned share;

        if (!balance_group_has(group, s, first))
            continue;
        share = share_of(t, s);
        for (unsigned k = 0; k < share && count < total && count < block->capacity; k++) {
            uint32_t seed = (uint32_t)s->id * BALANCE_WEIGHT_MAX + k;

            points[count++] = pack(hash_avalanche(seed), i);
        }
    }
    qsort(points, count, sizeof *points, compare_entries);
    for (unsigned i = 0; i < count; i++)
        entry_put(block, i, points[i]);
    free(points);
    return count;
}

static unsigned fill_weights(struct balance_table *t, struct table_block *block, enum balance_group group,
                             const struct server *first)
{
    unsigned count = 0;
    uint32_t sum = 0;

    for (int i = 0; i < t->backend->server_count && count < block->capacity; i++) {
        const struct server *s = t->backend->servers[i];

        if (!balance_group_has(group, s, first))
            continue;
        sum += balance_weight(s);
        entry_put(block, count++, pack(sum, i));
    }
    return count;
}

int table_update(struct balance_table *t)
{
    unsigned generation = atomic_load_explicit(&t->generation, memory_order_relaxed) + 1;
    unsigned usable, total = 0, count = 0;
    struct server *first;
    enum balance_group group = balance_group_of(t->backend, &usable, &first);
    struct table_block *block;

    for (int i = 0; i < t->backend->server_count; i++)
        if (balance_group_has(group, t->backend->servers[i], first))
            total += share_of(t, t->backend->servers[i]);
    block = block_for(t, generation & 1, total);
    if (!block)
        return SP_ENOMEM;
    if (group != BALANCE_NONE && total) {
        if (t->kind == TABLE_MAP)
            count = fill_map(t, block, group, first, total);
        else if (t->kind == TABLE_RING)
            count = fill_ring(t, block, group, first, total);
        else
            count = fill_weights(t, block, group, first);
        if (!count)
            return SP_ENOMEM;
    }
    atomic_store_explicit(&block->count, count, memory_order_release);
    atomic_store_explicit(&t->generation, generation, memory_order_release);
    return count < (t->kind == TABLE_WEIGHTS ? usable : total) ? SP_ENOMEM : 0;
}

int table_init(struct balance_table *t, enum table_kind kind, struct proxy *backend, struct arena *arena)
{
    memset(t, 0, sizeof *t);
    t->kind = kind;
    t->backend = backend;
    t->weight_gcd = greatest_divisor(backend);
    t->balance_factor = (unsigned)backend->cfg->balance.hash_balance_factor;
    t->scores = arena_zalloc(arena, (size_t)backend->server_count, sizeof *t->scores);
    /* Both blocks exist from the start, so that a later shortage of memory leaves something to fill. */
    if (!t->scores || !block_for(t, 0, 1) || !block_for(t, 1, 1)) {
        table_release(t);
        return SP_ENOMEM;
    }
    return 0;
}

void table_release(struct balance_table *t)
{
    while (t->retired) {
        struct table_retired *next = t->retired->next;

        free(t->retired->block);
        free(t->retired);
        t->retired = next;
    }
    for (int i = 0; i < 2; i++)
        free(atomic_exchange_explicit(&t->blocks[i], NULL, memory_order_relaxed));
}

/* --- searching --------------------------------------------------------------------------- */

static struct server *server_at(const struct balance_table *t, uint64_t entry)
{
    uint32_t position = (uint32_t)entry;

    /* A torn read can only give the position of another table, never one out of range. */
    return position < (uint32_t)t->backend->server_count ? t->backend->servers[position] : NULL;
}

/* Index of the first entry whose upper half is at least `hash`; `count` when there is none. */
static unsigned lower_bound(const struct table_block *b, unsigned count, uint32_t hash)
{
    unsigned low = 0, high = count;

    while (low < high) {
        unsigned middle = low + (high - low) / 2;

        if (upper_of(entry_at(b, middle)) < hash)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Consistent hashing with bounded loads, V. Mirrokni, M. Thorup, M. Zadimoghaddam, arXiv:1608.01350, by weight. */
static bool is_within_share(const struct balance_table *t, const struct server *s)
{
    uint64_t served = 0, total = 0, before = 0, slots, whole, rest;
    uint64_t weight = balance_weight(s);

    for (int i = 0; i < t->backend->server_count; i++) {
        const struct server *other = t->backend->servers[i];

        served += balance_served(other);
        if (!server_is_usable(other) || other->cfg->backup != s->cfg->backup)
            continue;
        if (other->position < s->position)
            before += balance_weight(other);
        total += balance_weight(other);
    }
    if (!total)
        return true;
    slots = ((served + 1) * t->balance_factor + 99) / 100;
    rest = slots % total;
    whole = slots / total * weight + (before + weight) * rest / total - before * rest / total;
    return balance_served(s) < (whole ? whole : 1);
}

static bool is_acceptable(const struct balance_table *t, const struct server *s, const struct server *avoid)
{
    return s && s != avoid && (!t->balance_factor || t->kind != TABLE_RING || is_within_share(t, s));
}

static unsigned start_index(const struct balance_table *t, const struct table_block *b, unsigned count, uint32_t hash)
{
    unsigned after, before;

    if (t->kind == TABLE_MAP)
        return hash % count;
    after = lower_bound(b, count, hash) % count;
    if (t->kind == TABLE_WEIGHTS)
        return after;
    before = after ? after - 1 : count - 1;
    /* Distances around the ring, modulo 2^32; the point before wins a tie. */
    return hash - upper_of(entry_at(b, before)) <= upper_of(entry_at(b, after)) - hash ? before : after;
}

static struct server *search(const struct balance_table *t, const struct table_block *b, uint32_t hash,
                             const struct server *avoid)
{
    unsigned count = atomic_load_explicit(&b->count, memory_order_acquire);
    unsigned index;
    struct server *preferred;

    if (!count || count > b->capacity)
        return NULL;
    if (t->kind == TABLE_WEIGHTS) {
        /* Weights are counted from 1: the number drawn, scaled to the sum, is never beyond it. */
        uint32_t sum = upper_of(entry_at(b, count - 1));

        hash = (uint32_t)((uint64_t)hash * sum >> 32) + 1;
    }
    index = start_index(t, b, count, hash);
    preferred = server_at(t, entry_at(b, index));
    if (is_acceptable(t, preferred, avoid))
        return preferred;
    for (unsigned i = 1; i < count; i++) {
        struct server *s;

        if (++index == count)
            index = 0;
        s = server_at(t, entry_at(b, index));
        if (is_acceptable(t, s, avoid))
            return s;
    }
    return preferred;
}

struct server *table_find(const struct balance_table *t, uint32_t hash, const struct server *avoid)
{
    for (;;) {
        unsigned generation = atomic_load_explicit(&t->generation, memory_order_acquire);
        const struct table_block *b = atomic_load_explicit(&t->blocks[generation & 1], memory_order_acquire);
        struct server *found = search(t, b, hash, avoid);

        if (atomic_load_explicit(&t->generation, memory_order_relaxed) == generation)
            return found;
    }
}

unsigned table_size(const struct balance_table *t)
{
    unsigned generation = atomic_load_explicit(&t->generation, memory_order_acquire);

    return atomic_load_explicit(&atomic_load_explicit(&t->blocks[generation & 1], memory_order_acquire)->count,
                                memory_order_acquire);
}

/* Where the walk goes on after the last pick. */
static unsigned walk_start(const struct balance_table *t, const struct table_block *b, unsigned count)
{
    unsigned i;

    if (t->kind != TABLE_RING)
        return t->map_index < count ? t->map_index : 0;
    if (!t->ring_started)
        return 0;
    i = lower_bound(b, count, t->ring_position);
    while (i < count && upper_of(entry_at(b, i)) == t->ring_position)
        i++;
    return i < count ? i : 0;
}

static void walk_remember(struct balance_table *t, const struct table_block *b, unsigned index)
{
    t->map_index = index + 1;
    t->ring_position = upper_of(entry_at(b, index));
    t->ring_started = true;
}

struct server *table_next(struct balance_table *t, const struct server *avoid)
{
    unsigned generation = atomic_load_explicit(&t->generation, memory_order_acquire);
    const struct table_block *b = atomic_load_explicit(&t->blocks[generation & 1], memory_order_acquire);
    unsigned count = atomic_load_explicit(&b->count, memory_order_acquire);
    unsigned index, avoided_index = 0;
    struct server *avoided = NULL;

    if (!count)
        return NULL;
    index = walk_start(t, b, count);
    for (unsigned i = 0; i < count; i++, index = index + 1 == count ? 0 : index + 1) {
        struct server *s = server_at(t, entry_at(b, index));

        if (!s || balance_server_is_full(s))
            continue;
        if (s != avoid) {
            walk_remember(t, b, index);
            return s;
        }
        avoided = s;
        avoided_index = index;
    }
    if (avoided)
        walk_remember(t, b, avoided_index);
    return avoided;
}
