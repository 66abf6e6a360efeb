/*
 * The event loop of one thread: readiness of descriptors, timers, messages from
 * other threads. One loop a worker; nothing in it is shared but the mailbox.
 *
 * Sockets are edge-triggered and remember their readiness, so that a request
 * costs no system call beyond its own reads and writes.
 */
#ifndef SP_IO_LOOP_H
#define SP_IO_LOOP_H

#include "base/list.h"
#include "base/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct io_loop;

/* --- timers ---------------------------------------------------------------- */

/*
 * A timer embedded in its owner, given io_timer_init before anything else. Re-arming it to a later
 * time is free: it stays where it is in the wheel and moves on when that slot comes up. Resolution
 * 1 ms, never early. It is disarmed when it fires; `fire` may set it again, set or cancel any other
 * timer, and free its owner. Whoever frees an armed timer cancels it first.
 */
struct io_timer {
    struct list link;
    uint64_t deadline_us; /* when to fire; UINT64_MAX: disarmed */
    uint64_t slot_tick;   /* where it hangs in the wheel */
    void (*fire)(struct io_timer *timer);
};

void io_timer_init(struct io_timer *t, void (*fire)(struct io_timer *timer));
/*
 * `deadline_us` in the time of io_loop_now; one that has passed fires within 1 ms. UINT64_MAX
 * cancels.
 */
void io_timer_set(struct io_loop *loop, struct io_timer *t, uint64_t deadline_us);
void io_timer_cancel(struct io_timer *t);

/* --- descriptors -------------------------------------------------------------- */

/*
 * IO_HUP: the peer has shut down its side or the connection is gone; it comes with IO_READ.
 * IO_ERROR comes with both. IO_LEVEL is asked for, never reported: level-triggered instead of
 * edges.
 */
enum { IO_READ = 1, IO_WRITE = 2, IO_HUP = 4, IO_ERROR = 8, IO_LEVEL = 16 };

/*
 * Anything with a descriptor in the loop. Embedded in its owner; zero it, then set `fd` and
 * `notify`. close(2) unregisters a descriptor that was not duplicated; then set `fd` to -1 and
 * `registered` to false, and free the owner by io_loop_defer, because events of this turn may still
 * name it.
 */
struct io_watch {
    int fd; /* -1: closed; events still in flight are dropped */
    bool registered;
    uint32_t interest; /* the events asked for */
    void (*notify)(struct io_watch *w, unsigned events);
};

/*
 * Registers interest in IO_READ, IO_WRITE or both, by edges unless IO_LEVEL; what is ready already
 * is reported too. `exclusive` wakes one of several threads and cannot be changed later, only
 * removed. SP_EIO with errno.
 */
int io_watch_add(struct io_loop *loop, struct io_watch *w, unsigned events, bool exclusive);
/*
 * Another set of events in place of the present one; registers when that is not done yet. SP_EIO.
 */
int io_watch_change(struct io_loop *loop, struct io_watch *w, unsigned events);
/*
 * A forked child holds copies of all descriptors until it executes another program; while it does, close(2) in
 * the parent does not unregister. Around a fork the loop is told to unregister explicitly. On the loop's own thread.
 */
void io_loop_set_forking(struct io_loop *loop, bool forking);
bool io_loop_is_forking(const struct io_loop *loop);
/* No event comes after this, not even one of the present turn. */
void io_watch_remove(struct io_loop *loop, struct io_watch *w);

/* --- work to do later ------------------------------------------------------------ */

/*
 * Runs once at the end of the current turn, e.g. to free what events of this turn may still name.
 * Zero it before its first use. What is deferred meanwhile runs in the same turn; deferring what
 * already waits only replaces `run`.
 */
struct io_deferred {
    struct io_deferred *next;
    void (*run)(struct io_deferred *d);
    bool queued;
};
void io_loop_defer(struct io_loop *loop, struct io_deferred *d, void (*run)(struct io_deferred *d));

/*
 * Runs on the loop's own thread; posted from any thread. The message belongs to the loop until run;
 * its own `run` may free it. Those of one thread run in the order of posting. A message posted when
 * the loop has stopped runs in the next io_loop_run or in io_loop_free.
 */
struct io_message {
    struct io_message *next;
    void (*run)(struct io_message *m);
};
void io_loop_post(struct io_loop *loop, struct io_message *m);

/*
 * Called at the end of each turn, after its events, messages and timers (the crypto queue's place),
 * in the order of adding. It stays for the life of the loop.
 */
struct io_turn_hook {
    struct io_turn_hook *next;
    bool (*run)(struct io_turn_hook *h); /* true: more work waits, do not sleep */
};
void io_loop_add_hook(struct io_loop *loop, struct io_turn_hook *h);

/* --- the loop ------------------------------------------------------------------------ */

enum io_engine {
    IO_ENGINE_AUTO, /* io_uring where the kernel has it */
    IO_ENGINE_EPOLL,
    IO_ENGINE_URING,
};

/*
 * NULL with errno; EOPNOTSUPP when IO_ENGINE_URING is asked for and io_uring_missing says why it
 * cannot be had. The thread of the first io_loop_run is the only one that may run a loop with
 * io_uring; before and after its run any thread may use it, one at a time. A forked child must not
 * touch the loop at all: it has no copy of the rings.
 */
struct io_loop *io_loop_new_engine(enum io_engine engine);
/* With epoll. NULL with errno. */
struct io_loop *io_loop_new(void);
/* "epoll" or "io_uring" */
const char *io_loop_engine_name(const struct io_loop *loop);
/* Why io_uring cannot be had here, a static text; NULL: it can. Asks the kernel each time. */
const char *io_uring_missing(void);
/*
 * Runs the messages and the deferred work that are left; timers do not fire any more. NULL is
 * allowed.
 */
void io_loop_free(struct io_loop *loop);
/*
 * Serves events until io_loop_stop, whose turn is finished. A stop that came before makes it return
 * at once. Order of a turn: events, messages, timers, hooks, deferred work.
 */
void io_loop_run(struct io_loop *loop);
/* From any thread or signal handler. */
void io_loop_stop(struct io_loop *loop);
/* CLOCK_MONOTONIC as of the start of this turn, and the wall clock that goes with it. */
uint64_t io_loop_now(const struct io_loop *loop);
uint64_t io_loop_wall(const struct io_loop *loop);
/* Reads the clock again: after work that took long. */
uint64_t io_loop_refresh_now(struct io_loop *loop);
/* For statistics: turns so far, and the time of io_loop_run that was spent waiting for events. */
uint64_t io_loop_turns(const struct io_loop *loop);
uint64_t io_loop_idle_us(const struct io_loop *loop);

#endif
