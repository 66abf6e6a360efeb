/*
 * Choosing a server: HAProxy's balance algorithms over the usable servers.
 *
 * One object a backend, shared by all workers: the order of round robin is
 * exact whatever the number of workers. A short lock guards it; lookups by
 * hash take no lock when nothing has changed.
 */
#ifndef SP_PROXY_BALANCE_H
#define SP_PROXY_BALANCE_H

#include "proxy/proxy.h"

/* What the choice may depend on. */
struct balance_request {
    const struct http_msg *req; /* NULL in TCP mode */
    const struct addr *src;
    struct str body;            /* url_param check_post: body bytes at hand */
    struct rules_ctx *rules;    /* balance hash EXPR */
    const struct server *avoid; /* redispatch: not this one when there is another; NULL */
    struct hash_rng *rng;
};

/* In the application's arena. SP_ENOMEM; errors in expressions go to diag with SP_EINVAL. */
int balance_new(struct proxy *backend, struct rules_compiler *compiler, struct balance **out);
void balance_free(struct balance *b);

/*
 * A server to try: usable ones first, backup servers when none is (all of them with option allbackups, the first
 * otherwise). NULL when there is none. Servers that are at their maxconn are passed over where the algorithm may
 * choose freely (round robin, leastconn, random, first): NULL with *all_full set then means "queue on the backend".
 */
struct server *balance_pick(struct balance *b, const struct balance_request *r, bool *all_full);

/* A server's state or weight has changed. Any thread. */
void balance_update(struct balance *b);

/* Usable servers now (active ones, or backups when no active one is), for nbsrv(). */
unsigned balance_usable(const struct proxy *backend);

#endif
