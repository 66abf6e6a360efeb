/*
 * What the tests of the load generator share: a server on a free port of 127.0.0.1, a thread a connection, whose
 * answers are the test's, and plans for it.
 */
#ifndef TESTS_LOAD_SUPPORT_H
#define TESTS_LOAD_SUPPORT_H

#include "load/load.h"

#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>

#define T_CONNS_MAX 512

struct t_server;

/* One connection of the server's. */
struct t_peer {
    struct t_server *server;
    int fd;
    SSL *ssl;         /* NULL: plain */
    unsigned conn;    /* which connection of the server's, from 0 */
    unsigned request; /* which request of the connection, from 0 */
    char head[4096];  /* the request, NUL-terminated */
};

struct t_server {
    int fd;
    struct addr addr;
    SSL_CTX *tls; /* NULL: plain */
    /* Called for each request; false closes the connection. */
    bool (*answer)(struct t_peer *p);
    /* Called before the first one; false closes the connection. NULL: nothing to do. */
    bool (*greet)(struct t_peer *p);
    const char *text; /* for answer functions that send a fixed text */
    unsigned delay_ms;
    atomic_uint conns, requests;
    atomic_bool stopping, stalled;
    pthread_t acceptor;
    pthread_t threads[T_CONNS_MAX];
    atomic_int fds[T_CONNS_MAX];
};

void t_server_start(struct t_server *s);
void t_server_stop(struct t_server *s);
bool t_send(struct t_peer *p, const char *text, size_t len);
bool t_say(struct t_peer *p, const char *text);
void t_sleep_ms(unsigned ms);

/* Answers: "200, body hello", kept alive; server->text, then kept alive or closed. */
bool t_hello(struct t_peer *p);
bool t_text(struct t_peer *p);
bool t_text_close(struct t_peer *p);
#define T_HELLO "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

/* One target, one GET. */
struct t_job {
    struct load_target target;
    struct load_request request;
    struct load_plan plan;
    struct load *load;
    const struct load_result *result;
};

/* Closed loop, one connection, one thread, timeouts of 5 s. Limits are the test's. */
void t_job_init(struct t_job *j, const struct t_server *s);
const struct load_result *t_job_run(struct t_job *j);
void t_job_release(struct t_job *j);
uint64_t t_errors(const struct load_result *r);
/* Exactly so many errors of one kind, none of any other, with an example that has the text in it. */
void t_only_error(const struct load_result *r, enum load_error error, uint64_t count,
                  const char *text);

#endif
