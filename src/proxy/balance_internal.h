/*
 * The parts of a balancer: weighted round robin, tables that are searched without a lock, keys of requests.
 */
#ifndef SP_PROXY_BALANCE_INTERNAL_H
#define SP_PROXY_BALANCE_INTERNAL_H

#include "proxy/balance.h"

/* What HAProxy multiplies weights with, so that 256 * 16 is the largest. */
#define BALANCE_WEIGHT_SCALE 16
#define BALANCE_WEIGHT_MAX (256 * BALANCE_WEIGHT_SCALE)

/* Has as many streams as its maxconn allows, or others wait for it already. */
static inline bool balance_server_is_full(const struct server *s)
{
    unsigned maxconn = (unsigned)s->cfg->maxconn;

    return maxconn && (atomic_load_explicit(&s->queued, memory_order_relaxed) ||
                       atomic_load_explicit(&s->served, memory_order_relaxed) >= maxconn);
}

static inline unsigned balance_served(const struct server *s)
{
    return atomic_load_explicit(&s->served, memory_order_relaxed);
}

static inline unsigned balance_weight(const struct server *s)
{
    return (unsigned)atomic_load_explicit(&s->weight, memory_order_relaxed);
}

/* --- balance_rr.c ------------------------------------------------------------------ */

/*
 * Weighted round robin as HAProxy's: each server has a due position on a clock that counts picks, spaced by total weight
 * over own weight. A round ends after as many picks as the total weight; servers whose next position lies beyond it wait,
 * heaviest first, for the next round. The caller locks.
 */
struct rr_queue {
    struct rr_member **heap;
    unsigned count;
};

struct rr_member {
    struct server *server;
    struct rr_queue *queue; /* in which it waits; NULL: not usable, or just taken out */
    unsigned slot;          /* in the queue's heap */
    uint64_t key, sequence; /* smallest first, then oldest first */
    unsigned weight;        /* scaled; 0: not usable */
    int64_t due, last;      /* positions on the clock */
    unsigned rest;          /* of total / weight, carried over */
};

struct rr_group {
    struct rr_queue fresh;   /* not served in this round, heaviest first */
    struct rr_queue current; /* by due position */
    struct rr_queue next;    /* done for this round, heaviest first */
    struct rr_member **held; /* scratch of one pick */
    int64_t width, clock;    /* length of the round, position in it */
    int64_t total;           /* of weights; what the next round will be long */
    uint64_t sequence;
    unsigned usable;
};

struct rr_balancer {
    struct rr_group groups[2]; /* active, backup */
    struct rr_member *members; /* by position */
    struct proxy *backend;
};

/* In `arena`; SP_ENOMEM. All servers start as not usable: call rr_update. */
int rr_init(struct rr_balancer *rr, struct proxy *backend, struct arena *arena);
/* Takes the servers' states and weights over. The first call fills the queues as at start. */
void rr_update(struct rr_balancer *rr);
/* The next server of a group; full ones are passed over, `avoid` is taken when there is no other. NULL: none has room. */
struct server *rr_pick(struct rr_group *group, const struct server *avoid);

/* --- balance_table.c ------------------------------------------------------------------ */

enum table_kind {
    TABLE_MAP,     /* hash modulo size: HAProxy's map-based hashing and static-rr */
    TABLE_RING,    /* nearest of many points a server: consistent hashing */
    TABLE_WEIGHTS, /* cumulative weights: a random number finds a server by its weight */
};

struct table_block;
struct table_retired;

/* One writer at a time (the balancer's lock); readers take no lock. */
struct balance_table {
    enum table_kind kind;
    struct proxy *backend;
    unsigned weight_gcd;       /* of the configured weights */
    _Atomic(struct table_block *) blocks[2];
    atomic_uint generation;    /* its last bit names the current block */
    struct table_retired *retired;
    int64_t *scores;           /* scratch of the map */
    unsigned balance_factor;   /* hash-balance-factor in percent; 0: off */
    uint32_t ring_position;    /* of the last pick in turn; guarded by the lock */
    bool ring_started;
    unsigned map_index;
};

int table_init(struct balance_table *t, enum table_kind kind, struct proxy *backend, struct arena *arena);
void table_release(struct balance_table *t);
/* Builds the table of the usable group anew. SP_ENOMEM: it could not grow and holds what fits, or is the one before. */
int table_update(struct balance_table *t);
/*
 * The server for a hash: not `avoid` when there is another. NULL: no usable server. With a
 * hash-balance-factor, servers that have more than their share are passed over.
 */
struct server *table_find(const struct balance_table *t, uint32_t hash, const struct server *avoid);
/* One after another (static-rr, and keys that are absent). The caller locks. Full servers are passed over; NULL: none has room. */
struct server *table_next(struct balance_table *t, const struct server *avoid);
/* Entries of the current table. */
unsigned table_size(const struct balance_table *t);

/* --- balance_key.c ---------------------------------------------------------------------- */

/* The hash of what the backend's algorithm looks at; false when the request has no such thing. */
bool balance_key_hash(const struct balance *b, const struct balance_request *r, uint32_t *hash);

/* --- balance.c --------------------------------------------------------------------------- */

struct balance {
    struct proxy *backend;
    pthread_mutex_t lock;
    struct rr_balancer rr;
    struct balance_table table;
    struct rules_expr *expr;     /* balance hash */
    struct server **ordered;     /* "first": by id */
    atomic_ullong *picked_at;    /* leastconn: when each server was last picked, by position */
    atomic_ullong pick_clock;
    /* the group that takes the traffic, as of the last update */
    atomic_int group;            /* enum balance_group */
    atomic_uint usable;
    _Atomic(struct server *) first;
};

/* The servers that share the traffic now: the active ones, else backups. */
enum balance_group { BALANCE_NONE, BALANCE_ACTIVE, BALANCE_FIRST_BACKUP, BALANCE_ALL_BACKUPS };
/* `count` usable servers in the group; `first` the first of them. */
enum balance_group balance_group_of(const struct proxy *backend, unsigned *count, struct server **first);
static inline bool balance_group_has(enum balance_group g, const struct server *s, const struct server *first)
{
    return g == BALANCE_FIRST_BACKUP ? s == first
                                     : server_is_usable(s) && s->cfg->backup == (g == BALANCE_ALL_BACKUPS);
}

#endif
