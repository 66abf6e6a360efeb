/*
 * An application built from a configuration text, whose log lines arrive at a socket of the test's: what the unit tests of
 * health checks share.
 */
#ifndef SP_TEST_CHECK_TEST_H
#define SP_TEST_CHECK_TEST_H

#include "proxy/check_internal.h"
#include "proxy/server_state.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    char dir[64], log_path[80];
    int log_fd;
    struct arena arena; /* of the messages */
    struct diag diag;
    struct app *app;
    char line[2048]; /* the log line read last */
};

static inline int fixture_setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct sockaddr_un un = {.sun_family = AF_UNIX};

    if (!f)
        return -1;
    arena_init(&f->arena, 0, 0);
    diag_init(&f->diag, &f->arena);
    snprintf(f->dir, sizeof f->dir, "/tmp/sp-check-XXXXXX");
    if (!mkdtemp(f->dir))
        return -1;
    snprintf(f->log_path, sizeof f->log_path, "%s/log", f->dir);
    snprintf(un.sun_path, sizeof un.sun_path, "%s", f->log_path);
    f->log_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (bind(f->log_fd, (struct sockaddr *)&un, sizeof un) != 0)
        return -1;
    *state = f;
    return 0;
}

static inline void fixture_close_app(struct fixture *f)
{
    if (f->app) { /* a test that failed has not stopped it */
        app_stop(f->app);
        app_wait(f->app);
    }
    app_free(f->app);
    f->app = NULL;
}

static inline int fixture_teardown(void **state)
{
    struct fixture *f = *state;

    fixture_close_app(f);
    close(f->log_fd);
    unlink(f->log_path);
    rmdir(f->dir);
    arena_release(&f->arena);
    free(f);
    return 0;
}

/* Builds; messages are in f->diag. "@LOG@" in the text stands for the socket's path. */
static inline void fixture_try(struct fixture *f, const char *text)
{
    static const struct cfg_environment env = {.program_version = "0.1.0",
                                               .compatible_version = "3.2.0"};
    const char *mark = strstr(text, "@LOG@");
    char *config =
        mark ? arena_printf(&f->arena, "%.*s%s%s", (int)(mark - text), text, f->log_path, mark + 5)
             : arena_cstr(&f->arena, text);
    struct cfg_model *model;

    model = cfg_load_text("test.cfg", str_of(config), &env, &f->diag);
    assert_non_null(model);
    f->app = app_new(model, &f->diag);
    assert_non_null(f->app);
}

static inline const char *fixture_first_error(const struct fixture *f)
{
    for (const struct diag_item *i = f->diag.first; i; i = i->next)
        if (i->level == DIAG_ERROR)
            return i->text;
    return "";
}

/* The same, and it must succeed; opens sockets and log targets. */
static inline void fixture_build(struct fixture *f, const char *text)
{
    fixture_try(f, text);
    if (f->diag.errors)
        fail_msg("unexpected error: %s", fixture_first_error(f));
    assert_int_equal(app_open(f->app, &f->diag), 0);
}

static inline struct server *fixture_server(const struct fixture *f, const char *backend,
                                            const char *name)
{
    const struct proxy *p = map_get(&f->app->backends, str_of(backend));

    assert_non_null(p);
    for (int i = 0; i < p->server_count; i++)
        if (str_eq(p->servers[i]->name, str_of(name)))
            return p->servers[i];
    fail_msg("no server %s/%s", backend, name);
    return NULL;
}

/* The next log line as "LEVEL message"; NULL when none comes within `wait_ms`. */
static inline const char *fixture_next_line(struct fixture *f, int wait_ms)
{
    struct pollfd p = {.fd = f->log_fd, .events = POLLIN};
    char raw[1024];
    ssize_t n;
    const char *message;
    unsigned priority;

    if (poll(&p, 1, wait_ms) <= 0)
        return NULL;
    n = recv(f->log_fd, raw, sizeof raw - 1, 0);
    assert_true(n > 0);
    raw[n] = '\0';
    if (raw[n - 1] == '\n')
        raw[n - 1] = '\0';
    message = strstr(raw, "]: ");
    assert_non_null(message);
    priority = (unsigned)strtoul(raw + 1, NULL, 10);
    snprintf(f->line, sizeof f->line, "%s %s", logsink_level_names[priority & 7], message + 3);
    return f->line;
}

/* The next line must match, where '*' in `expected` stands for any digits. */
static inline void fixture_expect(struct fixture *f, const char *expected)
{
    const char *line = fixture_next_line(f, 5000), *at = line, *e = expected;

    if (!line)
        fail_msg("no log line; expected \"%s\"", expected);
    while (*e && *at) {
        if (*e == '*') {
            at += strspn(at, "0123456789");
            e++;
        } else if (*e == *at) {
            at++;
            e++;
        } else {
            break;
        }
    }
    if (*e || *at)
        fail_msg("log line \"%s\"\n       is not \"%s\"", line, expected);
}

static inline void fixture_expect_nothing(struct fixture *f)
{
    const char *line = fixture_next_line(f, 0);

    if (line)
        fail_msg("unexpected log line \"%s\"", line);
}

/* A check has ended so. */
static inline void fixture_apply(struct check *c, enum check_code code, int status,
                                 const char *info)
{
    struct check_outcome o = {.code = code, .status_code = status, .duration_ms = 1};

    check_info_set(o.info, str_of(info));
    check_apply(c, &o);
}

#endif
