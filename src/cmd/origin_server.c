#include "cmd/origin_server.h"

#include "base/clock.h"
#include "cmd/origin_conn.h"

#include <errno.h>
#include <unistd.h>

#define LINE_BYTES 64
/* Buffers that a thread keeps when they are not in use. */
#define KEEP_BUFS 256
#define ARENA_LIMIT_BYTES ((size_t)256 << 10)

struct str origin_worker_date(struct origin_worker *w)
{
    uint64_t now_s = io_loop_wall(w->loop) / 1000000;

    if (now_s != w->date_s) {
        clock_http_date(now_s * 1000000, w->date);
        w->date_s = now_s;
    }
    return str_make(w->date, CLOCK_HTTP_DATE_BYTES - 1);
}

static bool resume_yielded(struct io_turn_hook *h)
{
    struct origin_worker *w = LIST_ENTRY(h, struct origin_worker, hook);
    struct list now;
    struct list *link;

    /* Those that yield again wait for the next turn. */
    list_push_front(&w->yielded, &now);
    list_del(&w->yielded);
    while ((link = list_pop_front(&now)) != NULL)
        origin_conn_resume(LIST_ENTRY(link, struct origin_conn, yielded));
    return !list_is_empty(&w->yielded);
}

static void on_accept(struct io_listener *l, int fd, const struct addr *peer)
{
    struct origin_worker *w = LIST_ENTRY(l, struct origin_worker, listener);

    origin_conn_accept(w, fd);
    if (w->conn_count >= w->server->config.max_conns)
        io_listener_pause(l);
}

/* Lines of 63 characters and a newline. */
static char *new_pattern(void)
{
    char *p = malloc(ORIGIN_PATTERN_BYTES);

    for (size_t i = 0; p && i < ORIGIN_PATTERN_BYTES; i++)
        p[i] = i % LINE_BYTES == LINE_BYTES - 1 ? '\n' : (char)('0' + i % LINE_BYTES);
    return p;
}

static int worker_init(struct origin_worker *w, struct origin_server *s, int fd, const char **step)
{
    w->loop = io_loop_new_engine(IO_ENGINE_AUTO);
    if (!w->loop || io_listener_start(&w->listener, w->loop, fd, false, on_accept) != 0) {
        *step = "epoll";
        w->listener.watch.fd = -1;
        close(fd);
        return SP_EIO;
    }
    buf_pool_init(&w->bufs, ORIGIN_BUF_BYTES, KEEP_BUFS, 2 * s->config.max_conns);
    arena_init(&w->arena, 0, ARENA_LIMIT_BYTES);
    w->hook.run = resume_yielded;
    io_loop_add_hook(w->loop, &w->hook);
    return 0;
}

/* All threads' sockets share the address, which nobody else may have. */
static int listen_all(struct origin_server *s, const char **step)
{
    struct io_listen_options options = {.unix_mode = -1, .unix_uid = -1, .unix_gid = -1};

    for (unsigned i = 0; i < s->config.threads; i++) {
        struct addr *a = &s->config.listen;
        int fd = io_listen(a, &options, step);

        if (fd < 0)
            return SP_EIO;
        if (i == 0) {
            a->len = sizeof(a->u);
            if (getsockname(fd, &a->u.sa, &a->len) != 0) {
                *step = "getsockname";
                close(fd);
                return SP_EIO;
            }
        }
        if (i == 0 && s->config.threads > 1) {
            /* Bound alone once: another server that shares its port would not have been noticed. */
            close(fd);
            options.reuse_port = true;
            fd = io_listen(a, &options, step);
            if (fd < 0)
                return SP_EIO;
        }
        if (worker_init(&s->workers[i], s, fd, step) != 0)
            return SP_EIO;
    }
    return 0;
}

int origin_server_new(const struct origin_config *config, struct origin_server **out,
                      const char **step)
{
    struct origin_server *s = calloc(1, sizeof(*s));
    int status = SP_ENOMEM;
    int saved;

    *step = "memory";
    if (!s)
        return SP_ENOMEM;
    s->config = *config;
    s->config.dir_path = NULL;
    s->dir.fd = -1;
    s->workers = calloc(config->threads, sizeof(*s->workers));
    s->pattern = new_pattern();
    if (!s->workers || !s->pattern)
        goto out;
    for (unsigned i = 0; i < config->threads; i++) {
        struct origin_worker *w = &s->workers[i];

        w->server = s;
        w->listener.watch.fd = -1;
        list_init(&w->conns);
        list_init(&w->yielded);
    }
    if (config->dir_path && origin_dir_open(&s->dir, config->dir_path) != 0) {
        *step = "open";
        status = SP_EIO;
        goto out;
    }
    status = listen_all(s, step);
    if (status == 0) {
        *out = s;
        return 0;
    }

out:
    saved = errno;
    origin_server_free(s);
    errno = saved;
    return status;
}

const struct addr *origin_server_addr(const struct origin_server *s)
{
    return &s->config.listen;
}

static void *work(void *arg)
{
    struct origin_worker *w = arg;

    io_loop_run(w->loop);
    return NULL;
}

int origin_server_start(struct origin_server *s)
{
    for (unsigned i = 0; i < s->config.threads; i++) {
        struct origin_worker *w = &s->workers[i];
        int error = pthread_create(&w->thread, NULL, work, w);

        if (error) {
            errno = error;
            return SP_EIO;
        }
        w->started = true;
    }
    return 0;
}

static void worker_release(struct origin_worker *w)
{
    if (!w->loop || w->listener.watch.fd < 0) {
        io_loop_free(w->loop);
        return;
    }
    while (!list_is_empty(&w->conns))
        origin_conn_close(LIST_ENTRY(w->conns.next, struct origin_conn, link));
    io_listener_stop(&w->listener);
    close(w->listener.watch.fd);
    io_loop_free(w->loop);
    buf_pool_release(&w->bufs);
    arena_release(&w->arena);
}

void origin_server_free(struct origin_server *s)
{
    if (!s)
        return;
    for (unsigned i = 0; s->workers && i < s->config.threads; i++) {
        if (s->workers[i].started)
            io_loop_stop(s->workers[i].loop);
    }
    for (unsigned i = 0; s->workers && i < s->config.threads; i++) {
        if (s->workers[i].started)
            pthread_join(s->workers[i].thread, NULL);
    }
    for (unsigned i = 0; s->workers && i < s->config.threads; i++)
        worker_release(&s->workers[i]);
    origin_dir_close(&s->dir);
    free(s->workers);
    free(s->pattern);
    free(s);
}
