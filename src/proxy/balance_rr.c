#include "proxy/balance_internal.h"

/* --- queues: binary heaps, smallest key first, oldest first among equals ------------- */

static bool comes_before(const struct rr_member *a, const struct rr_member *b)
{
    return a->key != b->key ? a->key < b->key : a->sequence < b->sequence;
}

static void heap_set(struct rr_queue *q, unsigned slot, struct rr_member *m)
{
    q->heap[slot] = m;
    m->slot = slot;
}

static void heap_up(struct rr_queue *q, unsigned slot)
{
    struct rr_member *m = q->heap[slot];

    while (slot) {
        unsigned parent = (slot - 1) / 2;

        if (!comes_before(m, q->heap[parent]))
            break;
        heap_set(q, slot, q->heap[parent]);
        slot = parent;
    }
    heap_set(q, slot, m);
}

static void heap_down(struct rr_queue *q, unsigned slot)
{
    struct rr_member *m = q->heap[slot];

    for (;;) {
        unsigned child = slot * 2 + 1;

        if (child >= q->count)
            break;
        if (child + 1 < q->count && comes_before(q->heap[child + 1], q->heap[child]))
            child++;
        if (!comes_before(q->heap[child], m))
            break;
        heap_set(q, slot, q->heap[child]);
        slot = child;
    }
    heap_set(q, slot, m);
}

static void enqueue(struct rr_group *g, struct rr_queue *q, struct rr_member *m, uint64_t key)
{
    m->key = key;
    m->sequence = g->sequence++;
    m->queue = q;
    q->heap[q->count] = m;
    m->slot = q->count++;
    heap_up(q, m->slot);
}

static void dequeue(struct rr_member *m)
{
    struct rr_queue *q = m->queue;
    struct rr_member *last;

    if (!q)
        return;
    last = q->heap[--q->count];
    if (last != m) {
        heap_set(q, m->slot, last);
        heap_up(q, last->slot);
        heap_down(q, last->slot);
    }
    m->queue = NULL;
}

static struct rr_member *front(const struct rr_queue *q)
{
    return q->count ? q->heap[0] : NULL;
}

/* --- the round ------------------------------------------------------------------------ */

static uint64_t by_weight(const struct rr_member *m)
{
    return BALANCE_WEIGHT_MAX - m->weight;
}

/* Into the current queue when its due position is in reach of this round, otherwise to wait for the next. */
static void place(struct rr_group *g, struct rr_member *m)
{
    if (m->due >= 2 * g->width || m->due >= g->width + g->total) {
        m->due -= g->width;
        enqueue(g, &g->next, m, by_weight(m));
    } else {
        /* Among equal positions, those with the smaller rest and the larger weight go first. */
        unsigned order = (BALANCE_WEIGHT_MAX + m->rest - m->weight) / BALANCE_WEIGHT_SCALE;

        enqueue(g, &g->current, m, (uint64_t)m->due * 256 + order);
    }
}

/* The server that is due, else one that has not been served in this round, else the one due soonest. */
static struct rr_member *choose(struct rr_group *g)
{
    struct rr_member *due = front(&g->current), *fresh;

    if (due && due->due <= g->clock)
        return due;
    fresh = front(&g->fresh);
    if (!fresh)
        return due;
    fresh->due = 0;
    fresh->rest = 0;
    return fresh;
}

static void next_round(struct rr_group *g)
{
    struct rr_queue empty = g->fresh;

    g->fresh = g->next;
    g->next = empty;
    for (unsigned i = 0; i < g->fresh.count; i++)
        g->fresh.heap[i]->queue = &g->fresh;
    g->width = g->clock = g->total;
}

/* Takes it out of its queue and works out when its next turn is. */
static void advance(struct rr_group *g, struct rr_member *m)
{
    if (m->due == 0)
        m->due = g->clock;
    m->last = m->due;
    m->due += g->total / m->weight;
    m->rest += (unsigned)(g->total % m->weight);
    if (m->rest >= m->weight) {
        m->rest -= m->weight;
        m->due++;
    }
    dequeue(m);
    g->clock++;
}

/* Puts back what a pick passed over, newest first. After a change of rounds their places are lost. */
static void put_back(struct rr_group *g, unsigned held_count, bool switched, const struct rr_member *except)
{
    while (held_count) {
        struct rr_member *m = g->held[--held_count];

        if (m == except)
            continue;
        if (switched)
            enqueue(g, &g->fresh, m, by_weight(m));
        else
            place(g, m);
    }
}

struct server *rr_pick(struct rr_group *g, const struct server *avoid)
{
    struct rr_member *picked = NULL, *avoided = NULL;
    unsigned held_count = 0;
    bool switched = false;

    if (!g->usable)
        return NULL;
    if (!g->width)
        g->width = g->clock = g->total;
    for (;;) {
        struct rr_member *m = choose(g);

        if (!m) {
            if (switched) {
                picked = avoided;
                break;
            }
            switched = true;
            next_round(g);
            continue;
        }
        advance(g, m);
        if (!balance_server_is_full(m->server)) {
            if (m->server != avoid || avoided) {
                picked = m;
                break;
            }
            avoided = m;
        }
        g->held[held_count++] = m;
    }
    if (picked)
        place(g, picked);
    put_back(g, held_count, switched, picked);
    return picked ? picked->server : NULL;
}

/* --- changes of state and weight -------------------------------------------------------- */

static int64_t step_of(const struct rr_group *g, const struct rr_member *m)
{
    return g->total / m->weight;
}

static void member_lost(struct rr_group *g, struct rr_member *m)
{
    dequeue(m);
    g->total -= m->weight;
    g->usable--;
    m->weight = 0;
}

/*
 * A server that comes back waits for about one of its turns, so that it gets no burst. Its rest stays as it was before
 * it went.
 */
static void member_found(struct rr_group *g, struct rr_member *m, unsigned weight)
{
    g->total += weight;
    g->usable++;
    m->weight = weight;
    m->due = g->clock + (g->total + g->width - g->clock) / weight;
    place(g, m);
}

static void member_changed(struct rr_group *g, struct rr_member *m, unsigned weight)
{
    bool is_fresh = m->queue == &g->fresh;

    if (m->queue == &g->next)
        m->due += g->width;
    dequeue(m);
    g->total += (int64_t)weight - m->weight;
    m->weight = weight;
    if (is_fresh) {
        enqueue(g, &g->fresh, m, by_weight(m));
        return;
    }
    m->rest = 0;
    if (m->last + step_of(g, m) < m->due)
        m->due = m->last + step_of(g, m);
    if (m->due < g->clock + 2)
        m->due = g->clock + step_of(g, m);
    place(g, m);
}

/* A group without usable servers starts from nothing, in declaration order. */
static void start_group(struct rr_balancer *rr, struct rr_group *g)
{
    g->total = 0;
    for (int i = 0; i < rr->backend->server_count; i++) {
        struct rr_member *m = &rr->members[i];

        if (&rr->groups[m->server->cfg->backup] != g || !server_is_usable(m->server))
            continue;
        m->weight = balance_weight(m->server) * BALANCE_WEIGHT_SCALE;
        m->due = m->last = 0;
        m->rest = 0;
        if (!m->weight) /* changed this very moment */
            continue;
        enqueue(g, &g->fresh, m, by_weight(m));
        g->total += m->weight;
        g->usable++;
    }
    g->width = g->clock = g->total;
}

void rr_update(struct rr_balancer *rr)
{
    bool started[2] = {false, false};

    for (int i = 0; i < 2; i++) {
        if (rr->groups[i].usable)
            continue;
        start_group(rr, &rr->groups[i]);
        started[i] = true;
    }
    for (int i = 0; i < rr->backend->server_count; i++) {
        struct rr_member *m = &rr->members[i];
        struct rr_group *g = &rr->groups[m->server->cfg->backup];
        unsigned weight = 0;

        if (started[m->server->cfg->backup])
            continue;
        if (server_is_usable(m->server))
            weight = balance_weight(m->server) * BALANCE_WEIGHT_SCALE;
        if (weight == m->weight)
            continue;
        if (!weight)
            member_lost(g, m);
        else if (!m->weight)
            member_found(g, m, weight);
        else
            member_changed(g, m, weight);
    }
}

int rr_init(struct rr_balancer *rr, struct proxy *backend, struct arena *arena)
{
    size_t n = (size_t)backend->server_count;
    struct rr_member **slots = arena_zalloc(arena, 8 * n, sizeof *slots);

    memset(rr, 0, sizeof *rr);
    rr->backend = backend;
    rr->members = arena_zalloc(arena, n, sizeof *rr->members);
    if (!slots || !rr->members)
        return SP_ENOMEM;
    for (int i = 0; i < 2; i++) {
        struct rr_group *g = &rr->groups[i];

        g->fresh.heap = slots;
        g->current.heap = slots + n;
        g->next.heap = slots + 2 * n;
        g->held = slots + 3 * n;
        slots += 4 * n;
    }
    for (int i = 0; i < backend->server_count; i++)
        rr->members[i].server = backend->servers[i];
    return 0;
}
