#include "measure/sweep_caller.h"

#include "measure/sweep_wait.h"

#include <sallyport/status.h>

#include <stdlib.h>
#include <string.h>

#define ALIGN 64u
#define PAGE 4096u
/* Loads behind stores of equal low address bits wait for each other on many CPUs: the two buffers of a pair differ. */
#define SKEW (PAGE / 2 + ALIGN)

static uint64_t stride_of(uint64_t request_bytes)
{
    return (request_bytes + ALIGN - 1) / ALIGN * ALIGN + (request_bytes >= PAGE ? SKEW : 0);
}

uint64_t sweep_caller_memory(uint64_t request_bytes, unsigned depth, bool in_place)
{
    return stride_of(request_bytes) * depth * (in_place ? 1 : 2);
}

static void *own_buffer(struct sweep_caller *caller, uint32_t seed)
{
    uint8_t *buffer = caller->impl->buffer_alloc(caller->session, caller->len);

    for (uint32_t i = 0; buffer && i < caller->len; i++)
        buffer[i] = (uint8_t)(i * 31 + seed);
    return buffer;
}

/* In and out of request i. */
static bool give_buffers(struct sweep_caller *caller, const struct sweep_caller_options *o, unsigned i)
{
    struct sweep_request *q = &caller->requests[i];
    bool is_digest = o->key->algorithm->kind == SWEEP_DIGEST, is_one = o->in_place || is_digest;
    uint8_t *in, *out;

    if (caller->impl->buffer_alloc) {
        in = own_buffer(caller, i);
        out = is_one ? in : own_buffer(caller, i);
    } else {
        uint64_t stride = stride_of(o->request_bytes);

        in = o->memory + stride * i * (o->in_place ? 1 : 2);
        out = is_one ? in : in + stride;
    }
    q->in = in;
    q->out = is_digest ? NULL : out;
    return in && out;
}

int sweep_caller_open(struct sweep_caller *caller, const struct sweep_caller_options *o, struct sweep_why *why)
{
    int status;

    memset(caller, 0, sizeof(*caller));
    caller->impl = o->impl;
    caller->len = (uint32_t)o->request_bytes;
    caller->depth = o->depth;
    caller->by_run = o->impl->run && o->depth == 1;
    caller->block = 1;
    caller->clock_ns = o->clock_ns;
    caller->patience_ns = o->patience_ns;
    status = o->impl->session_open(o->device, o->thread, o->key, o->depth, &caller->session, why);
    if (status != 0) {
        caller->session = NULL;
        return status;
    }
    caller->requests = calloc(o->depth, sizeof(*caller->requests));
    caller->idle = calloc(o->depth, sizeof(struct sweep_request *));
    caller->done = calloc(o->depth, sizeof(struct sweep_request *));
    if (!caller->requests || !caller->idle || !caller->done)
        return sweep_why(why, SP_ENOMEM, "no memory");
    for (unsigned i = 0; i < o->depth; i++) {
        struct sweep_request *q = &caller->requests[i];

        q->index = i;
        q->len = caller->len;
        memset(q->iv, (int)(o->thread + i) & 0x7f, sizeof(q->iv));
        caller->idle[caller->idle_count++] = q;
        if (!give_buffers(caller, o, i))
            return sweep_why(why, SP_ENOMEM, "no memory for %u buffers of %u bytes", o->depth, caller->len);
    }
    return 0;
}

bool sweep_caller_close(struct sweep_caller *caller)
{
    const struct sweep_impl *impl = caller->impl;

    for (unsigned i = 0; impl && impl->buffer_free && caller->requests && i < caller->depth && !caller->is_stuck; i++) {
        struct sweep_request *q = &caller->requests[i];

        if (q->out && q->out != q->in)
            impl->buffer_free(caller->session, q->out, caller->len);
        if (q->in)
            impl->buffer_free(caller->session, (void *)(uintptr_t)q->in, caller->len);
    }
    if (caller->session)
        impl->session_close(caller->session);
    if (!caller->is_stuck)
        free(caller->requests);
    free(caller->idle);
    free(caller->done);
    caller->session = NULL;
    caller->requests = NULL;
    caller->idle = caller->done = NULL;
    return !caller->is_stuck;
}

/* A new IV for each request, as a caller has it; in its first bytes, so that CTR's counter stays small. */
static inline void next_iv(struct sweep_request *q)
{
    uint64_t word;

    memcpy(&word, q->iv, sizeof(word));
    word++;
    memcpy(q->iv, &word, sizeof(word));
}

static void sample(struct sweep_caller *caller, uint64_t from_ns, uint64_t to_ns)
{
    uint64_t took = to_ns - from_ns;

    sweep_latency_add(&caller->latency, took > caller->clock_ns ? took - caller->clock_ns : 0, caller->block);
}

/* A request of 16 bytes may take 20 ns: what stands in these loops shows. */
static unsigned run_some(struct sweep_caller *caller, unsigned n)
{
    int (*run)(struct sweep_session *, struct sweep_request *) = caller->impl->run;
    struct sweep_session *session = caller->session;
    struct sweep_request *q = caller->requests;
    unsigned failed = 0;

    if (caller->impl->is_stream) {
        for (unsigned i = 0; i < n; i++)
            failed += run(session, q) != 0;
        return failed;
    }
    for (unsigned i = 0; i < n; i++) {
        next_iv(q);
        failed += run(session, q) != 0;
    }
    return failed;
}

static int run_block(struct sweep_caller *caller, uint64_t now_ns)
{
    unsigned failed = run_some(caller, 1);

    sample(caller, now_ns, clock_now_ns());
    caller->errors += failed + run_some(caller, caller->block - 1);
    caller->completed += caller->block;
    return 0;
}

/* Hands over what is idle. The first of them is timed when `is_due`; returns whether it was taken. */
static bool launch(struct sweep_caller *caller, bool is_due)
{
    unsigned accepted;

    if (is_due)
        caller->idle[0]->submitted_ns = clock_now_ns();
    accepted = caller->impl->submit(caller->session, caller->idle, caller->idle_count);
    if (accepted == 0)
        return false;
    caller->idle_count -= accepted;
    if (caller->idle_count)
        memmove(caller->idle, caller->idle + accepted, caller->idle_count * sizeof(*caller->idle));
    return true;
}

static void land(struct sweep_caller *caller, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct sweep_request *q = caller->done[i];

        if (q->submitted_ns) {
            sample(caller, q->submitted_ns, clock_now_ns());
            q->submitted_ns = 0;
        }
        caller->errors += q->status != 0;
        caller->async += q->was_async && q->status == 0;
        q->was_async = false;
        next_iv(q);
        caller->idle[caller->idle_count++] = q;
    }
    caller->completed += n;
}

/* Those done. When nothing more can be submitted before one comes back, a batch has to go as it is. */
static unsigned look(struct sweep_caller *caller, bool is_last)
{
    unsigned flying = caller->depth - caller->idle_count, n = 0;

    if (!is_last)
        n = caller->impl->poll(caller->session, caller->done, flying, false);
    if (n == 0)
        n = caller->impl->poll(caller->session, caller->done, flying, true);
    return n < flying ? n : flying;
}

static int flight_block(struct sweep_caller *caller)
{
    uint64_t target = caller->completed + caller->block;
    struct sweep_wait wait = {0};
    bool is_due = true;

    while (caller->completed < target) {
        unsigned n = 0;

        if (caller->idle_count && launch(caller, is_due))
            is_due = false;
        if (caller->idle_count < caller->depth)
            n = look(caller, caller->depth == 1);
        if (n > 0) {
            land(caller, n);
            wait = (struct sweep_wait){0};
        } else if (!sweep_wait_more(&wait, caller->patience_ns)) {
            caller->is_stuck = caller->idle_count < caller->depth;
            return SP_ETIMEDOUT;
        }
    }
    return 0;
}

int sweep_caller_block(struct sweep_caller *caller, uint64_t now_ns)
{
    return caller->by_run ? run_block(caller, now_ns) : flight_block(caller);
}

int sweep_caller_drain(struct sweep_caller *caller)
{
    struct sweep_wait wait = {0};

    while (caller->idle_count < caller->depth) {
        unsigned n = look(caller, true);

        if (n > 0) {
            land(caller, n);
            wait = (struct sweep_wait){0};
        } else if (!sweep_wait_more(&wait, caller->patience_ns)) {
            caller->is_stuck = true;
            return SP_ETIMEDOUT;
        }
    }
    return 0;
}
