/*
 * The load balancer as a process: reads the configuration, opens what it listens
 * on, gives up its privileges, runs, and ends on signals.
 */
#include "admin/stats_page.h"
#include "cmd/cmd.h"
#include "cmd/process.h"
#include "cmd/serve_args.h"
#include "cmd/takeover.h"
#include "cmd/version.h"
#include "config/config.h"
#include "proxy/proxy.h"
#include "tls/tls.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* A worker has ended: wakes the main thread, which looks whether all have. */
#define SIGNAL_WORKER_ENDED SIGRTMIN

static void print_diag(const struct diag *d, bool quiet)
{
    static const char *const levels[] = {"notice", "warning", "error"};

    for (const struct diag_item *i = d->first; i; i = i->next) {
        if (quiet && i->level != DIAG_ERROR)
            continue;
        if (i->loc.file)
            fprintf(stderr, "%s:%d: %s: %s\n", i->loc.file, i->loc.line, levels[i->level], i->text);
        else
            fprintf(stderr, "sallyport: %s: %s\n", levels[i->level], i->text);
    }
}

static int eval_condition(const struct serve_args *a)
{
    struct arena arena;
    struct diag diag;
    int rc;

    arena_init(&arena, 0, 0);
    diag_init(&diag, &arena);
    rc = cfg_eval_condition(a->condition, version_environment(), &diag);
    print_diag(&diag, a->quiet);
    arena_release(&arena);
    return rc == 1 ? 0 : 1;
}

/* --- running ---------------------------------------------------------------------- */

static void on_worker_end(void)
{
    kill(getpid(), SIGNAL_WORKER_ENDED);
}

static void block_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGUSR1);
    sigaddset(set, SIGUSR2);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGHUP);
    sigaddset(set, SIGCHLD);
    sigaddset(set, SIGNAL_WORKER_ENDED);
    pthread_sigmask(SIG_BLOCK, set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static void replace_self(int argc, char **argv, struct app *app)
{
    pid_t child;

    app_set_forking(app, true);
    child = takeover_start(argc, argv, app);
    app_set_forking(app, false);
    if (child < 0)
        fprintf(stderr, "sallyport: cannot start a replacement: %s\n", strerror(errno));
}

/* Until all workers have ended. */
static void serve_signals(int argc, char **argv, struct app *app, const sigset_t *set)
{
    while (app_is_running(app)) {
        int sig = sigwaitinfo(set, NULL);

        if (sig == SIGUSR1)
            app_drain(app);
        else if (sig == SIGTERM || sig == SIGINT)
            app_stop(app);
        else if (sig == SIGUSR2)
            replace_self(argc, argv, app);
        else if (sig == SIGCHLD)
            while (waitpid(-1, NULL, WNOHANG) > 0)
                ;
        else if (sig == SIGNAL_WORKER_ENDED && atomic_load(&app->worker_error) != 0)
            app_stop(app); /* a process that serves with some of its workers would be a slow one for no visible reason */
    }
}

static void end_old_processes(const struct serve_args *a)
{
    for (int i = 0; i < a->old_pid_count; i++)
        if (kill(a->old_pids[i], a->old_stop ? SIGTERM : SIGUSR1) != 0 && errno != ESRCH)
            fprintf(stderr, "sallyport: cannot signal process %d: %s\n", (int)a->old_pids[i], strerror(errno));
}

static int serve_run(int argc, char **argv, const struct serve_args *a, struct app *app)
{
    sigset_t set;

    block_signals(&set);
    app->on_worker_end = on_worker_end;
    app->pid = (unsigned)getpid();
    if (app_start(app) != 0) {
        fprintf(stderr, "sallyport: cannot start the workers: %s\n", strerror(errno));
        return 1;
    }
    end_old_processes(a);
    process_ready(); /* whoever started us in the background may go on */
    serve_signals(argc, argv, app, &set);
    app_wait(app);
    if (app->worker_error == 0)
        return 0;
    fprintf(stderr, "sallyport: a worker cannot listen: %s\n", strerror(app->worker_error));
    return 1;
}

/* --- starting ------------------------------------------------------------------------ */

/* Sockets, limits, background, privileges: everything between a valid configuration and the first connection. */
static int serve_open(const struct serve_args *a, struct app *app, struct diag *diag, int **taken)
{
    const struct cfg_global *g = &app->model->global;

    app->taken_count = takeover_collect(a->old_pids, a->old_pid_count, taken);
    app->taken_fds = *taken;
    app->replacing = a->old_pid_count > 0;
    if (process_set_limits(g, app, a->memory_mb, diag) != 0)
        return 1;
    app_open(app, diag);
    for (int i = 0; i < app->taken_count; i++)
        if ((*taken)[i] >= 0)
            close((*taken)[i]); /* nobody listens there any more */
    if (diag->errors)
        return 1;
    if ((a->daemon || g->daemon) && !a->debug && !a->foreground && process_daemonize(diag) != 0)
        return 1;
    if (process_write_pidfile(a->pidfile ? a->pidfile : g->pidfile, diag) != 0)
        return 1;
    if (app_open_crypto(app, diag) != 0)
        return 1;
    return process_drop_privileges(g, diag);
}

static int serve(int argc, char **argv, const struct serve_args *a, struct diag *diag)
{
    struct cfg_model *model = cfg_load(a->files, a->file_count, version_environment(), diag);
    struct app *app = NULL;
    int *taken = NULL;
    int rc = 1;

    if (model && a->maxconn)
        model->global.maxconn = a->maxconn;
    if (model)
        app = app_new(model, diag);
    if (!app) {
        fprintf(stderr, "sallyport: out of memory while the configuration was read\n");
        cfg_free(model);
        return 1;
    }
    app->stats = admin_stats_reply;
    if (a->check && !diag->errors)
        (void)app_open_crypto(app, diag); /* which diag counts */
    if (diag->errors || (a->zero_warning && diag->warnings)) {
        print_diag(diag, a->quiet);
        fprintf(stderr, "sallyport: %u error%s, %u warning%s%s: nothing was started\n", diag->errors,
                diag->errors == 1 ? "" : "s", diag->warnings, diag->warnings == 1 ? "" : "s",
                diag->errors ? "" : " (-dW makes them fatal)");
    } else if (a->check) {
        print_diag(diag, a->quiet);
        if (!a->quiet)
            printf("Configuration file is valid\n");
        rc = 0;
    } else {
        rc = serve_open(a, app, diag, &taken);
        print_diag(diag, a->quiet);
        if (rc == 0)
            rc = serve_run(argc, argv, a, app);
    }
    app_free(app);
    free(taken);
    return rc;
}

/* Variables that configurations may refer to, as HAProxy sets them. */
static void set_environment(const struct serve_args *a)
{
    setenv("HAPROXY_HTTP_LOG_FMT", rules_fmt_http, 1);
    setenv("HAPROXY_HTTPS_LOG_FMT", rules_fmt_https, 1);
    setenv("HAPROXY_HTTP_CLF_LOG_FMT", rules_fmt_clf, 1);
    setenv("HAPROXY_TCP_LOG_FMT", rules_fmt_tcp, 1);
    if (a->local_peer)
        setenv("HAPROXY_LOCALPEER", a->local_peer, 1);
}

int cmd_serve(int argc, char **argv)
{
    struct serve_args a = {0};
    struct arena arena;
    struct diag diag;
    int rc;

    (void)tls_memory_install(); /* or malloc stays */
    rc = serve_args_parse(argc, argv, &a);

    if (rc < 0 && a.show_version) {
        version_print(a.show_version > 1);
        rc = 0;
    }
    if (rc < 0 && a.condition)
        rc = eval_condition(&a);
    if (rc < 0 && a.directory && chdir(a.directory) != 0) {
        fprintf(stderr, "sallyport: '%s': cannot change to this folder: %s\n", a.directory, strerror(errno));
        rc = 1;
    }
    if (rc < 0) {
        set_environment(&a);
        arena_init(&arena, 0, 0);
        diag_init(&diag, &arena);
        rc = serve(argc, argv, &a, &diag);
        arena_release(&arena);
    }
    serve_args_release(&a);
    return rc;
}
