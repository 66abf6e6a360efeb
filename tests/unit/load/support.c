#include "support.h"

#include "base/status.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

void t_sleep_ms(unsigned ms)
{
    struct timespec ts = {ms / 1000, (long)(ms % 1000) * 1000000};

    while (nanosleep(&ts, &ts) != 0 && errno == EINTR)
        ;
}

/* --- the server ------------------------------------------------------------------------------- */

static ptrdiff_t peer_read(struct t_peer *p, char *out, size_t len)
{
    return p->ssl ? SSL_read(p->ssl, out, (int)len) : recv(p->fd, out, len, 0);
}

bool t_send(struct t_peer *p, const char *text, size_t len)
{
    while (len) {
        ptrdiff_t n =
            p->ssl ? SSL_write(p->ssl, text, (int)len) : send(p->fd, text, len, MSG_NOSIGNAL);

        if (n <= 0)
            return false;
        text += n;
        len -= (size_t)n;
    }
    return true;
}

bool t_say(struct t_peer *p, const char *text)
{
    return t_send(p, text, strlen(text));
}

bool t_hello(struct t_peer *p)
{
    if (p->server->delay_ms)
        t_sleep_ms(p->server->delay_ms);
    return t_say(p, T_HELLO);
}

bool t_text(struct t_peer *p)
{
    return t_say(p, p->server->text);
}

bool t_text_close(struct t_peer *p)
{
    t_say(p, p->server->text);
    return false;
}

/* One head without a body; the client sends one at a time. */
static bool read_request(struct t_peer *p)
{
    size_t have = 0;

    for (;;) {
        ptrdiff_t n = peer_read(p, p->head + have, sizeof(p->head) - 1 - have);

        if (n <= 0)
            return false;
        have += (size_t)n;
        p->head[have] = '\0';
        if (strstr(p->head, "\r\n\r\n"))
            return true;
    }
}

static void serve(struct t_peer *p)
{
    struct t_server *s = p->server;

    if (s->greet && !s->greet(p))
        return;
    while (read_request(p)) {
        atomic_fetch_add(&s->requests, 1);
        if (!s->answer(p))
            return;
        p->request++;
    }
}

static void *run_peer(void *arg)
{
    struct t_peer *p = arg;
    bool good = true;

    if (p->server->tls) {
        p->ssl = SSL_new(p->server->tls);
        SSL_set_fd(p->ssl, p->fd);
        good = SSL_accept(p->ssl) == 1;
    }
    if (good)
        serve(p);
    if (p->ssl && good)
        SSL_shutdown(p->ssl);
    SSL_free(p->ssl);
    if (atomic_exchange(&p->server->fds[p->conn], -1) >= 0)
        close(p->fd);
    free(p);
    return NULL;
}

static void *run_acceptor(void *arg)
{
    struct t_server *s = arg;

    for (;;) {
        int fd = accept(s->fd, NULL, NULL);
        unsigned conn = atomic_load(&s->conns);
        struct t_peer *p;

        if (fd < 0 || atomic_load(&s->stopping) || conn == T_CONNS_MAX) {
            if (fd >= 0)
                close(fd);
            return NULL;
        }
        p = calloc(1, sizeof(*p));
        p->server = s;
        p->fd = fd;
        p->conn = conn;
        atomic_store(&s->fds[conn], fd);
        pthread_create(&s->threads[conn], NULL, run_peer, p);
        atomic_store(&s->conns, conn + 1);
    }
}

void t_server_start(struct t_server *s)
{
    signal(SIGPIPE, SIG_IGN); /* clients leave when they like */
    s->addr = (struct addr){.len = sizeof(struct sockaddr_in)};
    s->addr.u.in.sin_family = AF_INET;
    s->addr.u.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->fd, &s->addr.u.sa, s->addr.len), 0);
    assert_int_equal(listen(s->fd, 512), 0);
    assert_int_equal(getsockname(s->fd, &s->addr.u.sa, &s->addr.len), 0);
    assert_int_equal(pthread_create(&s->acceptor, NULL, run_acceptor, s), 0);
}

void t_server_stop(struct t_server *s)
{
    atomic_store(&s->stopping, true);
    shutdown(s->fd, SHUT_RDWR);
    pthread_join(s->acceptor, NULL);
    close(s->fd);
    for (unsigned i = 0; i < atomic_load(&s->conns); i++) {
        int fd = atomic_exchange(&s->fds[i], -1);

        /* Wakes its thread; whoever took it from the table closes it. */
        if (fd >= 0)
            shutdown(fd, SHUT_RDWR);
        pthread_join(s->threads[i], NULL);
        if (fd >= 0)
            close(fd);
    }
}

/* --- the client ---------------------------------------------------------------------------------- */

void t_job_init(struct t_job *j, const struct t_server *s)
{
    *j = (struct t_job){0};
    j->target = (struct load_target){.addr = s->addr, .host = "localhost"};
    j->request = (struct load_request){
        .bytes = STR("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        .method = HTTP_GET,
        .expect_status = -1,
        .expect_size = -1,
    };
    j->plan = (struct load_plan){
        .target_count = 1,
        .request_count = 1,
        .connections = 1,
        .threads = 1,
        .timeout_us = 5000000,
        .seed = 1,
    };
}

const struct load_result *t_job_run(struct t_job *j)
{
    j->request.target = &j->target;
    if (!j->plan.targets)
        j->plan.targets = &j->target;
    if (!j->plan.requests)
        j->plan.requests = &j->request;
    assert_int_equal(load_new(&j->load, &j->plan), 0);
    assert_int_equal(load_start(j->load), 0);
    j->result = load_wait(j->load);
    assert_false(load_is_running(j->load));
    return j->result;
}

void t_job_release(struct t_job *j)
{
    load_free(j->load);
}

uint64_t t_errors(const struct load_result *r)
{
    uint64_t sum = 0;

    for (int i = 0; i < LOAD_ERRORS; i++)
        sum += r->errors[i];
    return sum;
}

void t_only_error(const struct load_result *r, enum load_error error, uint64_t count,
                  const char *text)
{
    for (int i = 0; i < LOAD_ERRORS; i++) {
        if (r->errors[i] && i != (int)error)
            print_error("%s: %s\n", load_error_name((enum load_error)i), r->examples[i]);
    }
    assert_int_equal(r->errors[error], count);
    assert_int_equal(t_errors(r), count);
    if (!strstr(r->examples[error], text))
        print_error("example: %s\n", r->examples[error]);
    assert_non_null(strstr(r->examples[error], text));
    assert_non_null(strstr(r->examples[error], "127.0.0.1:"));
}
