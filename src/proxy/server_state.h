/*
 * What a server's state is made of: what its checks say (or those of the server
 * that it tracks), and what was ordered: maintenance and drain, forced or
 * inherited through tracking. The one word of it that traffic reads is server->state.
 *
 * All changes are made on worker 0's thread.
 */
#ifndef SP_PROXY_SERVER_STATE_H
#define SP_PROXY_SERVER_STATE_H

#include "proxy/check.h"

/* Numbers as in HAProxy's "show servers state". */
enum server_op { SERVER_OP_STOPPED = 0, SERVER_OP_RUNNING = 2, SERVER_OP_STOPPING = 3 };

enum {
    SERVER_ADMIN_MAINT = 1,           /* forced */
    SERVER_ADMIN_INHERITED_MAINT = 2, /* of the tracked server */
    SERVER_ADMIN_CONFIG_MAINT = 4,    /* "disabled" in the configuration */
    SERVER_ADMIN_DRAIN = 8,
    SERVER_ADMIN_INHERITED_DRAIN = 16,
};
#define SERVER_ADMIN_ANY_MAINT (SERVER_ADMIN_MAINT | SERVER_ADMIN_INHERITED_MAINT)
#define SERVER_ADMIN_ANY_DRAIN (SERVER_ADMIN_DRAIN | SERVER_ADMIN_INHERITED_DRAIN)

/* A word for one worker that a server's sessions are to be cut. */
struct server_kill {
    struct io_message message;
    atomic_bool posted;
    struct worker *worker;
    struct server *server;
    char cause; /* of the termination state: D down, U an active server is up */
};

/* Initial states, and who tracks whom, of the backend's servers. SP_EINVAL for a chain that leads nowhere; SP_ENOMEM. */
int server_states_build(struct proxy *backend);

/* What checks have found. `suffix` is put behind the state: ", reason: Layer4 timeout" or " via be/srv"; "" for nothing. */
void server_op_set(struct server *s, enum server_op op, const char *suffix);

/* Orders, and takes back, one of the forced or inherited kinds. `suffix` as above. */
void server_admin_set(struct server *s, unsigned bit, const char *suffix);
void server_admin_clear(struct server *s, unsigned bit, const char *suffix);

/* Usable active servers of a backend, and usable backup servers. */
unsigned server_count_usable(const struct proxy *backend, bool backup);

#endif
