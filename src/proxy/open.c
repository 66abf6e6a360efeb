/*
 * Opens what the application listens on.
 */
#include "proxy/build.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static int bind_backlog(const struct bind *b)
{
    const struct cfg_proxy *p = b->frontend->cfg;

    if (b->cfg->backlog > 0)
        return b->cfg->backlog;
    if (p->backlog > 0)
        return p->backlog;
    return p->maxconn > 0 ? p->maxconn : b->frontend->app->maxconn;
}

static int open_inherited(struct bind *b)
{
    int fd = b->cfg->address.fd, flags = fcntl(fd, F_GETFL);
    socklen_t len = sizeof(b->address.u);

    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
        return SP_EIO;
    if (getsockname(fd, &b->address.u.sa, &len) != 0)
        return SP_EIO;
    b->address.len = len;
    b->is_unix = b->address.u.sa.sa_family == AF_UNIX;
    return listen(fd, bind_backlog(b)) == 0 ? fd : SP_EIO;
}

static int open_fresh(struct bind *b, const char **step)
{
    const struct cfg_bind *cfg = b->cfg;
    struct io_listen_options o = {
        .backlog = bind_backlog(b),
        .reuse_port = !b->is_unix,
        .v6only = cfg->v6only,
        .v4v6 = cfg->v4v6,
        .fast_open = cfg->tfo,
        .transparent = cfg->transparent,
        .defer_accept_s = cfg->defer_accept ? 1 : 0,
        .interface = cfg->interface,
        .unix_mode = cfg->unix_mode,
        .unix_uid = cfg->unix_uid,
        .unix_gid = cfg->unix_gid,
        .max_segment = cfg->mss,
    };

    return io_listen(&b->address, &o, step);
}

/* SO_REUSEPORT lets a second process of the same user share a port unnoticed: ask whether somebody has it first. */
static bool port_is_taken(const struct bind *b)
{
    int fd = socket(b->address.u.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    bool taken;

    if (fd < 0)
        return false;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (b->address.u.sa.sa_family == AF_INET6 && (b->cfg->v6only || !b->cfg->v4v6))
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
    taken = bind(fd, &b->address.u.sa, b->address.len) != 0 && errno == EADDRINUSE;
    close(fd);
    return taken;
}

/* Descriptors of a previous process that listen on this address: taken over, with the connections that wait in them. */
static int open_taken_over(struct app *app, struct bind *b)
{
    for (int i = 0; i < app->taken_count; i++) {
        struct addr a = {.len = sizeof(a.u)};

        if (app->taken_fds[i] < 0 || getsockname(app->taken_fds[i], &a.u.sa, &a.len) != 0 ||
            !addr_equal(&a, &b->address))
            continue;
        int *grown = realloc(b->fds, sizeof(int) * (size_t)(b->fd_count + 1));

        if (!grown)
            return SP_ENOMEM;
        b->fds = grown;
        b->fds[b->fd_count++] = app->taken_fds[i];
        app->taken_fds[i] = -1;
    }
    return 0;
}

static int open_bind(struct app *app, struct bind *b, struct diag *diag)
{
    int count = b->shared ? 1 : app->worker_count;
    const char *step = "listen";
    char text[ADDR_TEXT_BYTES];
    int *fds;

    if (open_taken_over(app, b) != 0)
        return SP_ENOMEM;
    if (b->fd_count >= count)
        return 0;
    fds = realloc(b->fds, sizeof(int) * (size_t)count);
    if (!fds)
        return SP_ENOMEM;
    b->fds = fds;
    addr_text(&b->address, text);
    if (!b->shared && !app->replacing && port_is_taken(b)) {
        diag_error(diag, b->cfg->loc, "'%s': cannot listen on %s: %s", b->cfg->text, text, strerror(EADDRINUSE));
        return 0;
    }
    while (b->fd_count < count) {
        int fd = b->is_inherited ? open_inherited(b) : open_fresh(b, &step);

        if (fd < 0) {
            diag_error(diag, b->cfg->loc, "'%s': cannot listen on %s: %s: %s", b->cfg->text,
                       b->is_inherited ? "the inherited descriptor" : text, step, strerror(errno));
            return 0;
        }
        b->fds[b->fd_count++] = fd;
    }
    return 0;
}

int app_open(struct app *app, struct diag *diag)
{
    for (int i = 0; i < app->bind_count; i++)
        if (open_bind(app, app->binds[i], diag) != 0)
            return SP_ENOMEM;
    build_open_logs(app, diag);
    return diag->errors ? SP_EINVAL : 0;
}

void app_close_listeners(struct app *app)
{
    for (int i = 0; i < app->bind_count; i++) {
        struct bind *b = app->binds[i];

        for (int k = 0; k < b->fd_count; k++)
            close(b->fds[k]);
        b->fd_count = 0;
        if (b->is_unix && !b->is_inherited && b->fds && b->address.u.un.sun_path[0] && !app->replaced)
            unlink(b->address.u.un.sun_path);
    }
}
