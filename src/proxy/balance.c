#include "proxy/balance_internal.h"

#include <stdlib.h>

enum balance_group balance_group_of(const struct proxy *backend, unsigned *count, struct server **first)
{
    unsigned active = 0, backups = 0;
    struct server *first_active = NULL, *first_backup = NULL;

    for (int i = 0; i < backend->server_count; i++) {
        struct server *s = backend->servers[i];

        if (!server_is_usable(s))
            continue;
        if (s->cfg->backup) {
            if (!backups++)
                first_backup = s;
        } else if (!active++) {
            first_active = s;
        }
    }
    *first = active ? first_active : first_backup;
    if (active) {
        *count = active;
        return BALANCE_ACTIVE;
    }
    if (!backups) {
        *count = 0;
        return BALANCE_NONE;
    }
    *count = backend->cfg->allbackups ? backups : 1;
    return backend->cfg->allbackups ? BALANCE_ALL_BACKUPS : BALANCE_FIRST_BACKUP;
}

/* --- algorithms that look at every server ------------------------------------------------ */

/* Streams now and waiting, over weight; an idle server comes first whatever its weight. */
static uint64_t load_of(const struct server *s)
{
    uint64_t streams = balance_served(s) + atomic_load_explicit(&s->queued, memory_order_relaxed);
    unsigned weight = balance_weight(s);

    return streams && weight ? (streams + 1) * BALANCE_WEIGHT_MAX / (weight * BALANCE_WEIGHT_SCALE) : 0;
}

/* Full for leastconn: the places in a server's own queue (maxqueue) are shared out as well. */
static bool has_no_place(const struct server *s)
{
    unsigned waiting = atomic_load_explicit(&s->queued, memory_order_relaxed);

    return s->cfg->maxconn &&
           balance_served(s) + waiting >= (unsigned)s->cfg->maxconn + (unsigned)s->cfg->maxqueue;
}

static unsigned long long picked_at(const struct balance *b, const struct server *s)
{
    return atomic_load_explicit(&b->picked_at[s->position], memory_order_relaxed);
}

static struct server *pick_leastconn(struct balance *b, enum balance_group group, const struct server *first,
                                     const struct server *avoid)
{
    struct server *best = NULL, *avoided = NULL;
    uint64_t best_load = 0;

    for (int i = 0; i < b->backend->server_count; i++) {
        struct server *s = b->backend->servers[i];
        uint64_t load;

        if (!balance_group_has(group, s, first) || has_no_place(s))
            continue;
        if (s == avoid) {
            avoided = s;
            continue;
        }
        load = load_of(s);
        if (!best || load < best_load || (load == best_load && picked_at(b, s) < picked_at(b, best))) {
            best = s;
            best_load = load;
        }
    }
    if (!best)
        best = avoided;
    if (best)
        atomic_store_explicit(&b->picked_at[best->position],
                              atomic_fetch_add_explicit(&b->pick_clock, 1, memory_order_relaxed) + 1,
                              memory_order_relaxed);
    return best;
}

static struct server *pick_first(struct balance *b, enum balance_group group, const struct server *first,
                                 const struct server *avoid)
{
    struct server *avoided = NULL;

    for (int i = 0; i < b->backend->server_count; i++) {
        struct server *s = b->ordered[i];

        if (!balance_group_has(group, s, first) || balance_server_is_full(s))
            continue;
        if (s != avoid)
            return s;
        avoided = s;
    }
    return avoided;
}

/* Some servers are drawn by weight, and the least loaded of them is it ("power of two random choices"). */
static struct server *pick_random(struct balance *b, const struct balance_request *r)
{
    int draws = b->backend->cfg->balance.random_draws;
    struct server *best = NULL;

    do {
        uint32_t drawn = (uint32_t)(hash_rng_next(r->rng) >> 32);
        struct server *s = table_find(&b->table, drawn, r->avoid);

        if (!s)
            return NULL;
        if (!best || (uint64_t)balance_served(s) * balance_weight(best) <
                         (uint64_t)balance_served(best) * balance_weight(s))
            best = s;
    } while (--draws > 0);
    return balance_server_is_full(best) ? NULL : best;
}

/* --- the choice ---------------------------------------------------------------------------- */

static struct server *pick_in_turn(struct balance *b, enum balance_group group, const struct server *avoid)
{
    struct server *s;

    pthread_mutex_lock(&b->lock);
    if (b->backend->cfg->balance.algo == CFG_BALANCE_ROUNDROBIN)
        s = rr_pick(&b->rr.groups[group == BALANCE_ALL_BACKUPS], avoid);
    else
        s = table_next(&b->table, avoid);
    pthread_mutex_unlock(&b->lock);
    return s;
}

static bool uses_hash(const struct cfg_balance *cfg)
{
    switch (cfg->algo) {
    case CFG_BALANCE_SOURCE:
    case CFG_BALANCE_URI:
    case CFG_BALANCE_URL_PARAM:
    case CFG_BALANCE_HDR:
    case CFG_BALANCE_HASH:
        return true;
    default:
        return false;
    }
}

struct server *balance_pick(struct balance *b, const struct balance_request *r, bool *all_full)
{
    enum cfg_balance_algo algo = b->backend->cfg->balance.algo;
    enum balance_group group = (enum balance_group)atomic_load_explicit(&b->group, memory_order_acquire);
    struct server *first = atomic_load_explicit(&b->first, memory_order_relaxed);
    struct server *s;
    uint32_t hash;

    *all_full = false;
    if (group == BALANCE_NONE)
        return NULL;
    /* The only server there is takes everything, queued when it is full; so does the first backup. */
    if (group == BALANCE_FIRST_BACKUP)
        return first;
    if (uses_hash(&b->backend->cfg->balance)) {
        s = atomic_load_explicit(&b->usable, memory_order_relaxed) == 1 ? first : NULL;
        if (!s && balance_key_hash(b, r, &hash))
            s = table_find(&b->table, hash, r->avoid);
        if (s)
            return s;
    }
    if (algo == CFG_BALANCE_LEASTCONN)
        s = pick_leastconn(b, group, first, r->avoid);
    else if (algo == CFG_BALANCE_FIRST)
        s = pick_first(b, group, first, r->avoid);
    else if (algo == CFG_BALANCE_RANDOM)
        s = pick_random(b, r);
    else
        s = pick_in_turn(b, group, r->avoid);
    *all_full = !s;
    return s;
}

/* --- life ------------------------------------------------------------------------------------ */

static int compare_ids(const void *a, const void *b)
{
    const struct server *x = *(struct server *const *)a, *y = *(struct server *const *)b;

    return x->id < y->id ? -1 : x->id > y->id;
}

static bool uses_table(const struct cfg_balance *cfg, enum table_kind *kind)
{
    if (cfg->algo == CFG_BALANCE_RANDOM)
        *kind = TABLE_WEIGHTS;
    else if (cfg->algo == CFG_BALANCE_STATIC_RR)
        *kind = TABLE_MAP;
    else if (uses_hash(cfg))
        *kind = cfg->consistent ? TABLE_RING : TABLE_MAP;
    else
        return false;
    return true;
}

static int compile_expression(struct balance *b, struct rules_compiler *compiler)
{
    char *words[2] = {(char *)b->backend->cfg->balance.param, NULL};
    int used = 0;

    if (b->backend->cfg->balance.algo != CFG_BALANCE_HASH)
        return 0;
    b->expr = rules_expr_compile(compiler, 1, words, &used);
    return b->expr ? 0 : SP_EINVAL;
}

int balance_new(struct proxy *backend, struct rules_compiler *compiler, struct balance **out)
{
    struct arena *arena = compiler->arena;
    size_t n = (size_t)backend->server_count;
    struct balance *b = arena_zalloc(arena, 1, sizeof *b);
    enum table_kind kind;
    int rc;

    if (!b)
        return SP_ENOMEM;
    b->backend = backend;
    rc = compile_expression(b, compiler);
    if (rc)
        return rc;
    b->ordered = arena_zalloc(arena, n, sizeof(struct server *));
    b->picked_at = arena_zalloc(arena, n, sizeof *b->picked_at);
    if (!b->ordered || !b->picked_at || rr_init(&b->rr, backend, arena))
        return SP_ENOMEM;
    if (n)
        memcpy(b->ordered, backend->servers, n * sizeof(struct server *));
    qsort(b->ordered, n, sizeof(struct server *), compare_ids);
    if (uses_table(&backend->cfg->balance, &kind) && table_init(&b->table, kind, backend, arena))
        return SP_ENOMEM;
    if (pthread_mutex_init(&b->lock, NULL)) {
        table_release(&b->table);
        return SP_ENOMEM;
    }
    balance_update(b);
    *out = b;
    return 0;
}

void balance_free(struct balance *b)
{
    if (!b)
        return;
    table_release(&b->table);
    pthread_mutex_destroy(&b->lock);
}

void balance_update(struct balance *b)
{
    enum balance_group group;
    enum table_kind kind;
    struct server *first;
    unsigned usable;

    pthread_mutex_lock(&b->lock);
    group = balance_group_of(b->backend, &usable, &first);
    atomic_store_explicit(&b->usable, usable, memory_order_relaxed);
    atomic_store_explicit(&b->first, first, memory_order_relaxed);
    atomic_store_explicit(&b->group, (int)group, memory_order_release);
    if (b->backend->cfg->balance.algo == CFG_BALANCE_ROUNDROBIN)
        rr_update(&b->rr);
    else if (uses_table(&b->backend->cfg->balance, &kind))
        table_update(&b->table);
    pthread_mutex_unlock(&b->lock);
}

unsigned balance_usable(const struct proxy *backend)
{
    return backend->balance ? atomic_load_explicit(&backend->balance->usable, memory_order_relaxed) : 0;
}
