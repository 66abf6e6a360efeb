/*
 * One client's connection of `sallyport origin`.
 *
 *              accept
 *                |
 *                v        head with a body that is wanted
 *     +--------> HEAD --------------------------------> BODY
 *     |           |  respond_…                           | drain_body
 *     |           v                                      v
 *     +------ (out, source) <----------------------------+
 *  keep-alive     | finish
 *                 v
 *               LINGER --> closed
 *
 * What is to be sent is the buffer `out`, then the source: a part of a file, a synthetic body, or
 * memory. Responses to pipelined requests gather in `out` and leave with one call.
 */
#ifndef SP_CMD_ORIGIN_CONN_H
#define SP_CMD_ORIGIN_CONN_H

#include "cmd/origin_server.h"
#include "http/h1.h"

enum origin_state { ORIGIN_HEAD, ORIGIN_BODY, ORIGIN_LINGER };

enum origin_source { ORIGIN_NOTHING, ORIGIN_PATTERN, ORIGIN_FILE, ORIGIN_MEMORY };

struct origin_conn {
    struct io_sock sock; /* first member */
    struct origin_worker *worker;
    struct list link;    /* in the worker's conns */
    struct list yielded; /* in the worker's yielded */
    struct io_timer timer;
    struct io_deferred gone;
    struct buf in, out;
    struct h1_scan scan;
    struct h1_body body;       /* of the request */
    uint8_t state;             /* enum origin_state */
    uint8_t source;            /* enum origin_source */
    uint8_t version;           /* of the request in hand */
    bool keep_alive;           /* of the request in hand */
    bool no_content;           /* HEAD */
    bool closing;              /* after what is to be sent */
    bool linger;               /* the client may still be sending: read it out before closing */
    bool progressed;           /* bytes were moved since the timer was set */
    uint64_t head_deadline_us; /* of a head that has begun; 0: none has */
    uint64_t lingered_bytes;
    uint64_t body_size; /* of the synthetic response once the request's body is drained */
    int file_fd;
    off_t file_offset;
    uint64_t total, left; /* bytes of the source, and those that are still to be sent */
    char *memory;         /* from the heap */
};

/* Takes over `fd`; closes it when there is no memory. */
void origin_conn_accept(struct origin_worker *w, int fd);
/* Goes on with a connection that has yielded. */
void origin_conn_resume(struct origin_conn *c);
void origin_conn_close(struct origin_conn *c);

/* --- responses: origin_respond.c --------------------------------------------- */

/* Of a response head without Location. `out` has twice as much when a request is answered. */
#define ORIGIN_HEAD_ROOM 1024

/* Answers the request whose head is `m`: fills `out` and the source, or changes to ORIGIN_BODY. */
void origin_respond(struct origin_conn *c, const struct http_msg *m);
/* The answer to a request whose body has been drained. */
void origin_respond_drained(struct origin_conn *c);
/* An error page; the connection closes after it. `why` may be empty. */
void origin_respond_error(struct origin_conn *c, unsigned status, const char *why);

#endif
