/*
 * Changes of a server's state: the log lines, who is told, who follows.
 */
#include "proxy/server_state.h"

#include "base/clock.h"
#include "proxy/balance.h"
#include "proxy/check_internal.h"
#include "proxy/session.h"

#include <stdio.h>

#define SUFFIX_BYTES 512

/* --- reading ------------------------------------------------------------------------------- */

static enum server_op server_op(const struct server *s)
{
    return (enum server_op)atomic_load_explicit(&s->op, memory_order_relaxed);
}

static bool server_admin(const struct server *s, unsigned bits)
{
    return (atomic_load_explicit(&s->admin, memory_order_relaxed) & bits) != 0;
}

unsigned server_count_usable(const struct proxy *backend, bool backup)
{
    unsigned n = 0;

    for (int i = 0; i < backend->server_count; i++)
        n += server_is_usable(backend->servers[i]) && backend->servers[i]->cfg->backup == backup;
    return n;
}

/* --- sessions of a server that must end ----------------------------------------------------- */

/* The letter of the termination state that tells how far the session was. */
static char kill_stage(const struct session *s)
{
    if (s->state != SESSION_RELAY)
        return 'C';
    return s->http && !s->txn->response_started ? 'H' : 'D';
}

static void kill_message(struct io_message *m)
{
    struct server_kill *kill = LIST_ENTRY(m, struct server_kill, message);

    atomic_store(&kill->posted, false);
    LIST_FOR_EACH_SAFE(item, following, &kill->worker->sessions) {
        struct session *s = LIST_ENTRY(item, struct session, link);

        if (!s->txn || !s->txn->has_slot || s->txn->server != kill->server)
            continue;
        session_fail(s, kill->cause, kill_stage(s));
        session_destroy(s, true);
    }
}

static void kill_sessions(struct server *s, char cause)
{
    struct app *app = s->backend->app;

    for (int i = 0; s->kills && i < app->worker_count; i++) {
        struct server_kill *kill = &s->kills[i];

        if (!app->workers[i].loop || atomic_exchange(&kill->posted, true))
            continue;
        kill->worker = &app->workers[i];
        kill->cause = cause;
        io_loop_post(app->workers[i].loop, &kill->message);
    }
}

/* --- the word that traffic reads -------------------------------------------------------------- */

struct server_change {       /* what a change of state brought about, for the log line */
    unsigned active, backup; /* usable servers now */
    unsigned requeued,
        queued; /* sessions sent to look for another server, and those left in the queue */
    unsigned served;
    bool lost_last; /* the backend had a usable server and has none now */
};

static enum server_state derive_state(const struct server *s)
{
    if (server_admin(s, SERVER_ADMIN_ANY_MAINT))
        return SERVER_MAINT;
    if (server_op(s) == SERVER_OP_STOPPED)
        return SERVER_DOWN;
    if (server_op(s) == SERVER_OP_STOPPING || server_admin(s, SERVER_ADMIN_ANY_DRAIN))
        return SERVER_DRAIN;
    return SERVER_UP;
}

static bool is_down(enum server_state state)
{
    return state == SERVER_DOWN || state == SERVER_MAINT;
}

static void count_times(struct server *s, enum server_state before, enum server_state now)
{
    uint64_t now_us = clock_now_us();
    uint64_t since_us = atomic_load_explicit(&s->last_change_us, memory_order_relaxed);

    if (before == SERVER_DOWN && now_us > since_us)
        atomic_fetch_add_explicit(&s->down_time_us, now_us - since_us, memory_order_relaxed);
    if (now == SERVER_DOWN)
        atomic_fetch_add_explicit(&s->down_count, 1, memory_order_relaxed);
    atomic_store_explicit(&s->last_change_us, now_us, memory_order_relaxed);
}

/* on-marked-down, on-marked-up */
static void apply_marks(struct server *s, enum server_state before, enum server_state now)
{
    const struct proxy *p = s->backend;

    if (is_down(now) && !is_down(before) && s->cfg->on_marked_down == CFG_SHUTDOWN_SESSIONS)
        kill_sessions(s, 'D');
    if (now != SERVER_UP || before == SERVER_UP ||
        s->cfg->on_marked_up != CFG_SHUTDOWN_BACKUP_SESSIONS || s->cfg->backup ||
        !server_is_usable(s))
        return;
    for (int i = 0; i < p->server_count; i++)
        if (p->servers[i]->cfg->backup)
            kill_sessions(p->servers[i], 'U');
}

/* Makes `state` what op and admin say, with all that follows but the log line. */
static struct server_change apply_state(struct server *s)
{
    struct proxy *p = s->backend;
    enum server_state before =
        (enum server_state)atomic_load_explicit(&s->state, memory_order_relaxed);
    enum server_state now = derive_state(s);
    bool had_usable = server_count_usable(p, false) + server_count_usable(p, true) > 0;
    unsigned waiting = atomic_load(&p->queued);
    struct server_change change = {0};

    if (before != now) {
        atomic_store(&s->state, (int)now);
        count_times(s, before, now);
        if (p->balance)
            balance_update(p->balance);
        if (is_down(now))
            change.requeued = atomic_load(&s->queued);
        queue_kick(p);
        if (now == SERVER_UP && waiting > atomic_load(&p->queued))
            change.requeued = waiting - atomic_load(&p->queued);
        apply_marks(s, before, now);
    }
    change.active = server_count_usable(p, false);
    change.backup = server_count_usable(p, true);
    change.queued = atomic_load(&p->queued);
    change.served = atomic_load(&s->served);
    change.lost_last = had_usable && change.active + change.backup == 0;
    return change;
}

/* --- log lines ----------------------------------------------------------------------------------- */

static const char *backup_word(const struct server *s)
{
    return s->cfg->backup ? "Backup " : "";
}

static void log_empty_backend(struct proxy *p, const struct server_change *change)
{
    if (change->lost_last)
        proxy_log_notice(p, LOG_LEVEL_EMERG, "%s %.*s has no server available!",
                         p->cfg->is_frontend ? "proxy" : "backend", STR_FMT(p->name));
}

/* "Server be/srv WHAT. 0 active and 0 backup servers left. …", and the alarm when it was the last. */
static void log_left(struct server *s, enum log_level level, const char *what,
                     const struct server_change *change)
{
    struct proxy *p = s->backend;

    proxy_log_notice(
        p, level,
        "%sServer %.*s/%.*s %s. %u active and %u backup servers left.%s %u sessions active, %u requeued, "
        "%u remaining in queue.",
        backup_word(s), STR_FMT(p->name), STR_FMT(s->name), what, change->active, change->backup,
        change->active == 0 && change->backup > 0 ? " Running on backup." : "", change->served,
        change->requeued, change->queued);
    log_empty_backend(p, change);
}

static void log_online(struct server *s, const char *what, const struct server_change *change)
{
    struct proxy *p = s->backend;

    proxy_log_notice(
        p, LOG_LEVEL_NOTICE,
        "%sServer %.*s/%.*s %s. %u active and %u backup servers online.%s %u sessions requeued, "
        "%u total in queue.",
        backup_word(s), STR_FMT(p->name), STR_FMT(s->name), what, change->active, change->backup,
        change->active == 0 && change->backup > 0 ? " Running on backup." : "", change->requeued,
        change->queued);
    log_empty_backend(p, change);
}

static void log_plain(struct server *s, const char *what)
{
    proxy_log_notice(s->backend, LOG_LEVEL_NOTICE, "%sServer %.*s/%.*s %s.", backup_word(s),
                     STR_FMT(s->backend->name), STR_FMT(s->name), what);
}

static void via(const struct server *s, char out[SUFFIX_BYTES])
{
    snprintf(out, SUFFIX_BYTES, " via %.*s/%.*s", STR_FMT(s->backend->name), STR_FMT(s->name));
}

/* --- what checks have found ------------------------------------------------------------------------ */

void server_op_set(struct server *s, enum server_op op, const char *suffix)
{
    enum server_op before = server_op(s);
    bool was_draining = before == SERVER_OP_STOPPING || server_admin(s, SERVER_ADMIN_ANY_DRAIN);
    char what[SUFFIX_BYTES + 64], followed[SUFFIX_BYTES];
    struct server_change change;

    if (before == op || server_admin(s, SERVER_ADMIN_ANY_MAINT))
        return;
    atomic_store(&s->op, (int)op);
    change = apply_state(s);
    snprintf(what, sizeof(what), "is %s%s",
             op == SERVER_OP_STOPPED    ? "DOWN"
             : op == SERVER_OP_STOPPING ? "stopping"
                                        : "UP",
             suffix);
    if (op == SERVER_OP_STOPPED)
        log_left(s, was_draining ? LOG_LEVEL_NOTICE : LOG_LEVEL_ALERT, what, &change);
    else
        log_online(s, what, &change);
    via(s, followed);
    for (struct server *t = s->trackers; t; t = t->next_tracker)
        server_op_set(t, op, followed);
}

/* --- orders ------------------------------------------------------------------------------------------ */

static void enter_maint(struct server *s, const char *suffix, bool was_draining)
{
    enum server_op before = server_op(s);
    char what[SUFFIX_BYTES + 64], followed[SUFFIX_BYTES];
    struct server_change change;

    if (s->check)
        check_pause(s->check);
    atomic_store(&s->op, SERVER_OP_STOPPED);
    change = apply_state(s);
    if (before == SERVER_OP_STOPPED) {
        snprintf(what, sizeof(what), "was DOWN and now enters maintenance%s", suffix);
        log_plain(s, what);
    } else {
        snprintf(what, sizeof(what), "is going DOWN for maintenance%s", suffix);
        log_left(s, was_draining ? LOG_LEVEL_NOTICE : LOG_LEVEL_ALERT, what, &change);
    }
    via(s, followed);
    for (struct server *t = s->trackers; t; t = t->next_tracker)
        server_admin_set(t, SERVER_ADMIN_INHERITED_MAINT, followed);
}

static void enter_drain(struct server *s, const char *suffix)
{
    char what[SUFFIX_BYTES + 64], followed[SUFFIX_BYTES];

    if (!server_admin(s, SERVER_ADMIN_ANY_MAINT)) {
        struct server_change change = apply_state(s);

        snprintf(what, sizeof(what), "enters drain state%s", suffix);
        if (server_op(s) == SERVER_OP_STOPPED)
            log_left(s, LOG_LEVEL_NOTICE, what, &change);
        else
            log_online(s, what, &change);
    }
    via(s, followed);
    for (struct server *t = s->trackers; t; t = t->next_tracker)
        server_admin_set(t, SERVER_ADMIN_INHERITED_DRAIN, followed);
}

void server_admin_set(struct server *s, unsigned bit, const char *suffix)
{
    unsigned kind = bit & SERVER_ADMIN_ANY_MAINT ? SERVER_ADMIN_ANY_MAINT : SERVER_ADMIN_ANY_DRAIN;
    bool already = server_admin(s, kind);
    bool was_draining =
        server_op(s) == SERVER_OP_STOPPING || server_admin(s, SERVER_ADMIN_ANY_DRAIN);

    atomic_fetch_or(&s->admin, bit);
    if (already)
        return;
    if (kind == SERVER_ADMIN_ANY_MAINT)
        enter_maint(s, suffix, was_draining);
    else
        enter_drain(s, suffix);
}

static void leave_maint(struct server *s, bool forced)
{
    bool draining = server_admin(s, SERVER_ADMIN_ANY_DRAIN);
    char what[96];

    atomic_store(&s->op, s->track ? (int)server_op(s->track) : SERVER_OP_RUNNING);
    if (s->check)
        check_resume(s->check);
    apply_state(s);
    snprintf(what, sizeof(what), "is %s/%s (leaving %smaintenance)",
             server_op(s) == SERVER_OP_STOPPED ? "DOWN" : "UP", draining ? "DRAIN" : "READY",
             forced ? "forced " : "");
    log_plain(s, what);
    if (draining)
        log_plain(s, server_admin(s, SERVER_ADMIN_DRAIN) ? "remains in forced drain mode"
                                                         : "remains in drain mode");
    for (struct server *t = s->trackers; t; t = t->next_tracker)
        server_admin_clear(t, SERVER_ADMIN_INHERITED_MAINT, "");
}

static void leave_drain(struct server *s, bool forced, const char *suffix)
{
    char what[SUFFIX_BYTES + 64], followed[SUFFIX_BYTES];

    if (!server_admin(s, SERVER_ADMIN_ANY_MAINT)) {
        apply_state(s);
        snprintf(what, sizeof(what), "is %s (leaving %sdrain)%s",
                 server_op(s) == SERVER_OP_STOPPED ? "DOWN" : "UP", forced ? "forced " : "",
                 suffix);
        log_plain(s, what);
    }
    via(s, followed);
    for (struct server *t = s->trackers; t; t = t->next_tracker)
        server_admin_clear(t, SERVER_ADMIN_INHERITED_DRAIN, followed);
}

void server_admin_clear(struct server *s, unsigned bit, const char *suffix)
{
    bool maint = (bit & SERVER_ADMIN_ANY_MAINT) != 0;
    bool forced = (bit & (SERVER_ADMIN_MAINT | SERVER_ADMIN_DRAIN)) != 0;

    if (!server_admin(s, bit))
        return;
    atomic_fetch_and(&s->admin,
                     ~(bit & SERVER_ADMIN_MAINT ? bit | SERVER_ADMIN_CONFIG_MAINT : bit));
    if (maint && server_admin(s, SERVER_ADMIN_ANY_MAINT))
        log_plain(s, server_admin(s, SERVER_ADMIN_MAINT) ? "remains in forced maintenance"
                                                         : "remains in maintenance");
    else if (maint)
        leave_maint(s, forced);
    else if (server_admin(s, SERVER_ADMIN_ANY_DRAIN))
        log_plain(s, server_admin(s, SERVER_ADMIN_DRAIN) ? "remains in forced drain mode"
                                                         : "remains in drain mode");
    else
        leave_drain(s, forced, suffix);
}

void server_set_state(struct server *s, enum server_state state, const char *reason)
{
    char suffix[SUFFIX_BYTES] = "";

    if (reason && *reason)
        snprintf(suffix, sizeof(suffix), ", %s", reason);
    if (state == SERVER_MAINT) {
        server_admin_set(s, SERVER_ADMIN_MAINT, suffix);
        return;
    }
    if (state == SERVER_DRAIN) {
        server_admin_set(s, SERVER_ADMIN_DRAIN, suffix);
        server_admin_clear(s, SERVER_ADMIN_MAINT, suffix);
        return;
    }
    if (state == SERVER_UP && server_admin(s, SERVER_ADMIN_MAINT | SERVER_ADMIN_DRAIN)) {
        server_admin_clear(s, SERVER_ADMIN_DRAIN, suffix);
        server_admin_clear(s, SERVER_ADMIN_MAINT, suffix);
        return;
    }
    if (s->check)
        check_force_health(s->check, state == SERVER_UP);
    server_op_set(s, state == SERVER_UP ? SERVER_OP_RUNNING : SERVER_OP_STOPPED, suffix);
}

/* --- from the configuration ----------------------------------------------------------------------------- */

/* Whether the chain ends at a server with checks. The configuration's own check has told of any that does not. */
static bool track_is_sound(const struct server *s)
{
    const struct server *at = s;
    int links = 0;

    while (at->track && links++ < s->backend->app->server_count)
        at = at->track;
    return !at->track && at->cfg->check;
}

static int track_build(struct server *s)
{
    struct server **end = &s->track->trackers;

    if (!track_is_sound(s))
        return SP_EINVAL;
    while (*end)
        end = &(*end)->next_tracker;
    *end = s;
    for (const struct server *t = s->track; t; t = t->track)
        if (t->cfg->disabled)
            atomic_fetch_or(&s->admin, SERVER_ADMIN_INHERITED_MAINT);
    return 0;
}

/* Messages for those whose sessions may have to be cut, so that telling the workers needs no memory then. */
static int kills_build(struct server *s)
{
    const struct proxy *p = s->backend;
    bool wanted = s->cfg->on_marked_down == CFG_SHUTDOWN_SESSIONS;

    for (int i = 0; i < p->server_count && s->cfg->backup && !wanted; i++)
        wanted = p->servers[i]->cfg->on_marked_up == CFG_SHUTDOWN_BACKUP_SESSIONS;
    if (!wanted)
        return 0;
    s->kills = arena_zalloc(&p->app->arena, (size_t)p->app->worker_count, sizeof(*s->kills));
    if (!s->kills)
        return SP_ENOMEM;
    for (int i = 0; i < p->app->worker_count; i++) {
        s->kills[i].message.run = kill_message;
        s->kills[i].server = s;
    }
    return 0;
}

int server_states_build(struct proxy *backend)
{
    int rc = 0;

    for (int i = 0; i < backend->server_count; i++) {
        struct server *s = backend->servers[i];

        if (s->cfg->disabled)
            atomic_fetch_or(&s->admin, SERVER_ADMIN_MAINT | SERVER_ADMIN_CONFIG_MAINT);
        if (s->track && track_build(s) != 0)
            rc = SP_EINVAL;
        atomic_store(&s->op, server_admin(s, SERVER_ADMIN_ANY_MAINT) ? SERVER_OP_STOPPED
                                                                     : SERVER_OP_RUNNING);
        atomic_store(&s->state, (int)derive_state(s));
        if (kills_build(s) != 0)
            return SP_ENOMEM;
    }
    if (backend->balance)
        balance_update(backend->balance);
    return rc;
}
