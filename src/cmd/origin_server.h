/*
 * The web server of `sallyport origin`: threads that share nothing but the address, each with its
 * own loop, listener and buffers. It is the backend of benchmarks: a request for a small body costs
 * one recv and one send.
 */
#ifndef SP_CMD_ORIGIN_SERVER_H
#define SP_CMD_ORIGIN_SERVER_H

#include "base/addr.h"
#include "base/buf.h"
#include "cmd/origin_files.h"
#include "io/sock.h"

#include <pthread.h>

/* Bodies are made of repetitions of this many bytes. */
#define ORIGIN_PATTERN_BYTES 65536
/* Of a receive or send buffer; also what a request head must fit in. */
#define ORIGIN_BUF_BYTES 16384

struct origin_config {
    struct addr listen;
    const char *dir_path; /* NULL: synthetic bodies */
    uint64_t size;        /* of a synthetic body */
    unsigned threads;
    uint64_t timeout_us; /* for an idle client, a request head, and each piece of progress */
    unsigned max_conns;  /* a thread; further ones wait in the kernel's queue */
};

struct origin_worker {
    struct origin_server *server;
    struct io_loop *loop;
    struct io_listener listener;
    struct list conns;
    struct list yielded; /* connections that go on in the next turn, so that others have theirs */
    struct io_turn_hook hook;
    unsigned conn_count;
    struct buf_pool bufs;
    struct arena arena; /* of the request in hand */
    uint64_t date_s;
    char date[32];
    pthread_t thread;
    bool started;
};

struct origin_server {
    struct origin_config config;
    struct origin_dir dir;
    struct origin_worker *workers;
    char *pattern;
};

/*
 * Binds and prepares the threads. On failure SP_EIO or SP_ENOMEM with errno, and *step names what
 * failed. `config` is copied; its dir_path is used during the call only.
 */
int origin_server_new(const struct origin_config *config, struct origin_server **out,
                      const char **step);
/* The bound address, with the port that was chosen. */
const struct addr *origin_server_addr(const struct origin_server *s);
/* Starts the threads. SP_EIO with errno. */
int origin_server_start(struct origin_server *s);
/* Stops and joins the threads and frees everything. NULL is allowed. */
void origin_server_free(struct origin_server *s);

/* The present Date value. */
struct str origin_worker_date(struct origin_worker *w);

#endif
