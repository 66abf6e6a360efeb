/*
 * Creating listening sockets.
 */
#include "io/sock.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct option {
    bool wanted;
    int level, name, value;
    const char *step;
};

static int set_options(int fd, const struct option *options, size_t count, const char **step)
{
    for (size_t i = 0; i < count; i++) {
        const struct option *o = &options[i];

        if (o->wanted && setsockopt(fd, o->level, o->name, &o->value, sizeof(o->value)) != 0) {
            *step = o->step;
            return SP_EIO;
        }
    }
    return 0;
}

static int prepare_inet(int fd, const struct addr *a, const struct io_listen_options *o,
                        const char **step)
{
    bool v6 = a->u.sa.sa_family == AF_INET6;
    int queue = o->backlog > 0 ? o->backlog : SOMAXCONN;
    const struct option options[] = {
        {true, SOL_SOCKET, SO_REUSEADDR, 1, "setsockopt(SO_REUSEADDR)"},
        {o->reuse_port, SOL_SOCKET, SO_REUSEPORT, 1, "setsockopt(SO_REUSEPORT)"},
        {v6 && (o->v6only || o->v4v6), IPPROTO_IPV6, IPV6_V6ONLY, o->v6only,
         "setsockopt(IPV6_V6ONLY)"},
        {o->transparent && !v6, IPPROTO_IP, IP_TRANSPARENT, 1, "setsockopt(IP_TRANSPARENT)"},
        {o->transparent && v6, IPPROTO_IPV6, IPV6_TRANSPARENT, 1, "setsockopt(IPV6_TRANSPARENT)"},
        {o->max_segment != 0, IPPROTO_TCP, TCP_MAXSEG, o->max_segment, "setsockopt(TCP_MAXSEG)"},
        {o->defer_accept_s > 0, IPPROTO_TCP, TCP_DEFER_ACCEPT, o->defer_accept_s,
         "setsockopt(TCP_DEFER_ACCEPT)"},
        {o->fast_open, IPPROTO_TCP, TCP_FASTOPEN, queue, "setsockopt(TCP_FASTOPEN)"},
    };

    if (set_options(fd, options, sizeof(options) / sizeof(options[0]), step) != 0)
        return SP_EIO;
    if (o->interface && setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, o->interface,
                                   (socklen_t)strnlen(o->interface, IFNAMSIZ)) != 0) {
        *step = "setsockopt(SO_BINDTODEVICE)";
        return SP_EIO;
    }
    return 0;
}

static int listen_plain(int fd, const struct addr *a, int backlog, const char **step)
{
    if (bind(fd, &a->u.sa, a->len) != 0) {
        *step = "bind";
        return SP_EIO;
    }
    if (listen(fd, backlog) != 0) {
        *step = "listen";
        return SP_EIO;
    }
    return 0;
}

static int set_owner_and_mode(const char *path, const struct io_listen_options *o,
                              const char **step)
{
    if ((o->unix_uid >= 0 || o->unix_gid >= 0) &&
        chown(path, (uid_t)o->unix_uid, (gid_t)o->unix_gid) != 0) {
        *step = "chown";
        return SP_EIO;
    }
    if (o->unix_mode >= 0 && chmod(path, (mode_t)o->unix_mode) != 0) {
        *step = "chmod";
        return SP_EIO;
    }
    return 0;
}

/* Clients find the old socket or the new one, listening and with its final permissions. */
static int listen_path(int fd, const struct addr *a, const struct io_listen_options *o, int backlog,
                       const char **step)
{
    const char *path = a->u.un.sun_path;
    struct addr temporary = {.len = sizeof(struct sockaddr_un)};
    char *name = temporary.u.un.sun_path;
    struct stat there;
    int saved;
    int n;

    temporary.u.un.sun_family = AF_UNIX;
    *step = "bind";
    n = snprintf(name, sizeof(temporary.u.un.sun_path), "%.*s.%ld.tmp",
                 (int)strnlen(path, sizeof(a->u.un.sun_path)), path, (long)getpid());
    if (n < 0 || (size_t)n >= sizeof(temporary.u.un.sun_path)) {
        errno = ENAMETOOLONG;
        return SP_EIO;
    }
    if (lstat(path, &there) == 0 && !S_ISSOCK(there.st_mode)) {
        errno = EEXIST;
        return SP_EIO;
    }
    unlink(name);
    if (listen_plain(fd, &temporary, backlog, step) != 0 || set_owner_and_mode(name, o, step) != 0)
        goto out;
    if (rename(name, path) == 0)
        return 0;
    *step = "rename";

out:
    saved = errno;
    unlink(name);
    errno = saved;
    return SP_EIO;
}

int io_listen(const struct addr *a, const struct io_listen_options *o, const char **step)
{
    int family = a->u.sa.sa_family;
    int backlog = o->backlog > 0 ? o->backlog : SOMAXCONN;
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int status;
    int saved;

    if (fd < 0) {
        *step = "socket";
        return SP_EIO;
    }
    if (family != AF_UNIX) {
        status = prepare_inet(fd, a, o, step);
        if (status == 0)
            status = listen_plain(fd, a, backlog, step);
    } else if (a->u.un.sun_path[0]) {
        status = listen_path(fd, a, o, backlog, step);
    } else {
        status = listen_plain(fd, a, backlog, step);
    }
    if (status == 0)
        return fd;
    saved = errno;
    close(fd);
    errno = saved;
    return status;
}
