/*
 * Bulk between two plain sockets: through a pipe, so that the kernel moves pages
 * instead of copying them twice.
 *
 * It begins only when reads keep filling the whole buffer and everything received has been sent; small messages, TLS,
 * and whatever needs its framing looked at stay on the ordinary path.
 */
#include "proxy/session.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define SPLICE_FULL_READS 2
#define SPLICE_STEP_BYTES (1u << 20)
#define SPLICE_PIPES_MAX 256

struct splice_pipe {
    struct splice_pipe *next; /* while free */
    int out, in;              /* read end, write end */
    size_t bytes;             /* capacity */
};

static struct splice_pipe *pipe_get(struct worker *w)
{
    struct splice_pipe *p = w->free_pipes;
    int ends[2], size = w->app->model->global.pipesize;

    if (p) {
        w->free_pipes = p->next;
        w->free_pipe_count--;
        return p;
    }
    if (w->pipe_count >= SPLICE_PIPES_MAX || !(p = malloc(sizeof(*p))))
        return NULL;
    if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) {
        free(p);
        return NULL;
    }
    p->out = ends[0];
    p->in = ends[1];
    size = fcntl(p->in, F_SETPIPE_SZ, size > 0 ? size : (int)SPLICE_STEP_BYTES);
    p->bytes = size > 0 ? (size_t)size : 65536;
    w->pipe_count++;
    return p;
}

static void pipe_close(struct worker *w, struct splice_pipe *p)
{
    close(p->out);
    close(p->in);
    free(p);
    w->pipe_count--;
}

void flow_release_pipe(struct worker *w, struct flow *f)
{
    struct splice_pipe *p = f->pipe;

    if (!p)
        return;
    f->pipe = NULL;
    if (f->piped) { /* bytes of this session are still in it */
        f->piped = 0;
        pipe_close(w, p);
        return;
    }
    p->next = w->free_pipes;
    w->free_pipes = p;
    w->free_pipe_count++;
}

void pipes_free(struct worker *w)
{
    while (w->free_pipes) {
        struct splice_pipe *p = w->free_pipes;

        w->free_pipes = p->next;
        pipe_close(w, p);
    }
}

bool flow_can_splice(const struct flow *f, const struct conn *from, const struct conn *to, const struct worker *w)
{
    if (f->pipe)
        return true;
    return f->full_reads >= SPLICE_FULL_READS && f->mode == FLOW_RAW && f->head_done && f->head.len == 0 &&
           buf_len(&f->win) == 0 && !from->tls && !to->tls && from->sock.transport->splice_in &&
           to->sock.transport->splice_out && !w->app->model->global.nosplice &&
           (f->body.framing == HTTP_FRAMING_CLOSE ||
            (f->body.framing == HTTP_FRAMING_LENGTH && f->body.remaining > SPLICE_STEP_BYTES));
}

ptrdiff_t flow_splice_in(struct worker *w, struct flow *f, struct conn *from)
{
    size_t most;
    ptrdiff_t n;

    if (!f->pipe && !(f->pipe = pipe_get(w))) {
        f->full_reads = 0;
        return flow_fill(f, from);
    }
    if (!(from->sock.ready & IO_READ))
        return from->sock.read_closed ? (from->sock.error ? SP_ERESET : SP_EEOF) : SP_EAGAIN;
    most = f->pipe->bytes - f->piped;
    if (f->body.framing == HTTP_FRAMING_LENGTH && most > f->body.remaining)
        most = (size_t)f->body.remaining;
    if (most == 0)
        return SP_EAGAIN;
    n = from->sock.transport->splice_in(&from->sock, f->pipe->in, most, f->piped == 0);
    if (n <= 0)
        return n;
    f->piped += (size_t)n;
    f->received += (uint64_t)n;
    h1_body_skip(&f->body, (uint64_t)n);
    f->complete = h1_body_is_done(&f->body);
    return n;
}

ptrdiff_t flow_splice_out(struct flow *f, struct conn *to)
{
    ptrdiff_t n = to->sock.transport->splice_out(&to->sock, f->pipe->out, f->piped);

    if (n > 0) {
        f->piped -= (size_t)n;
        f->sent += (uint64_t)n;
    }
    return n;
}
