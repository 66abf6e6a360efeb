/*
 * A worker: one thread, one event loop, its listeners, pools and sessions.
 */
#ifndef SP_PROXY_WORKER_H
#define SP_PROXY_WORKER_H

#include "proxy/proxy.h"

/* Bounds on what one request or session may make the rules allocate. */
#define PROXY_TXN_ARENA_LIMIT (1u << 20)
#define PROXY_SESSION_ARENA_LIMIT (1u << 17)
#define PROXY_BIG_BUF_BYTES 131072
#define PROXY_BIG_BUFS_MAX 512

/* Everything but the thread: 0, SP_ENOMEM or SP_EIO. */
int worker_init(struct worker *w, struct app *app, int index);
void worker_release(struct worker *w);
/* Serves until the worker has drained or is stopped; runs on the worker's thread. */
void worker_run(struct worker *w);

/* Counts one more connection of the process, unless a limit (bind, frontend or process) is reached. */
bool worker_take_place(struct worker *w, const struct bind_listener *bl);
/* An accepted connection for which there is no place yet: it waits, and its listener is paused. */
void worker_park(struct worker *w, struct bind_listener *bl, int fd, const struct addr *peer);
/* After an accept: pauses listeners, in all workers, whose limit (bind, frontend or process) is reached. */
void worker_check_limits(struct worker *w, struct bind_listener *bl);
/* The session has more to do, but others come first: it runs again in the next turn. */
void worker_run_later(struct worker *w, struct session *s);

/* A session has ended: resumes paused listeners, ends the loop when draining is over. */
void worker_session_ended(struct worker *w);

#endif
