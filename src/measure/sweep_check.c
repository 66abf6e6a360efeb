#include "measure/sweep_check.h"

#include "measure/stats.h"
#include "measure/sweep_reference.h"
#include "measure/sweep_wait.h"

#include <sallyport/status.h>

#include <stdlib.h>
#include <string.h>

#define GUARD_BYTES 64
#define GUARD 0xa5
#define ITEMS_MAX 64
/* Several in flight, but no more than shows that they do not disturb each other. */
#define FLIGHT_MAX 32
/* 2^20 blocks (IEEE 1619, section 5.1), which OpenSSL enforces. */
#define XTS_BYTES_MAX (16u << 20)

/* One way of asking: a session, and requests that are used again and again until `items` have been compared. */
struct trial {
    const struct sweep_check *check;
    struct sweep_session *session;
    struct sweep_request *requests;
    struct sweep_request **idle, **done;
    bool *is_flying;    /* by index */
    unsigned *item_of;  /* by index */
    uint8_t *plain, *expected;
    uint32_t len;
    unsigned flight, idle_count, items, begun, compared;
    bool in_place, by_run, is_leaked;
    int status; /* the first error of requests in flight; */
    struct sweep_why *why; /* and its reason */
};

int sweep_size_check(const struct sweep_algorithm *algorithm, uint64_t request_bytes, struct sweep_why *why)
{
    if (request_bytes < algorithm->bytes_min)
        return sweep_why(why, SP_EUNSUPPORTED, "%s takes no less than %u bytes", algorithm->name, algorithm->bytes_min);
    if (request_bytes % algorithm->granule_bytes != 0)
        return sweep_why(why, SP_EUNSUPPORTED, "%s takes multiples of %u bytes", algorithm->name,
                         algorithm->granule_bytes);
    if (strstr(algorithm->name, "-xts") && request_bytes > XTS_BYTES_MAX)
        return sweep_why(why, SP_EUNSUPPORTED, "a data unit of XTS has at most 16 MiB (IEEE 1619)");
    return 0;
}

static void fill(uint8_t *out, size_t len, uint64_t seed)
{
    struct stats_rng rng = {seed};

    while (len >= sizeof(uint64_t)) {
        uint64_t word = stats_rng_next(&rng);

        memcpy(out, &word, sizeof(word));
        out += sizeof(word);
        len -= sizeof(word);
    }
    for (uint64_t word = stats_rng_next(&rng); len > 0; len--, word >>= 8)
        *out++ = (uint8_t)word;
}

static uint64_t item_seed(const struct trial *t, unsigned item)
{
    return (uint64_t)t->check->thread << 32 | (uint64_t)t->in_place << 31 | (uint64_t)t->by_run << 30 | item;
}

/* --- memory ------------------------------------------------------------------------------------- */

static void *buffer_new(struct trial *t, size_t bytes)
{
    void *buffer = NULL;

    if (t->check->impl->buffer_alloc)
        return t->check->impl->buffer_alloc(t->session, bytes);
    return posix_memalign(&buffer, 64, bytes) == 0 ? buffer : NULL;
}

static void buffer_drop(struct trial *t, const void *buffer, size_t bytes)
{
    void *memory = (void *)(uintptr_t)buffer;

    if (memory && t->check->impl->buffer_free)
        t->check->impl->buffer_free(t->session, memory, bytes);
    else
        free(memory);
}

/* What a device may still write to stays. */
static void trial_release(struct trial *t)
{
    for (unsigned i = 0; t->requests && i < t->flight && !t->is_leaked; i++) {
        struct sweep_request *q = &t->requests[i];

        if (q->in != q->out)
            buffer_drop(t, q->in, t->len + GUARD_BYTES);
        buffer_drop(t, q->out, t->len + GUARD_BYTES);
    }
    if (t->session)
        t->check->impl->session_close(t->session);
    if (!t->is_leaked)
        free(t->requests);
    free(t->idle);
    free(t->done);
    free(t->is_flying);
    free(t->item_of);
    free(t->plain);
    free(t->expected);
}

static int trial_init(struct trial *t)
{
    const struct sweep_check *c = t->check;
    int status = c->impl->session_open(c->device, c->thread, c->key, c->depth, &t->session, t->why);

    if (status != 0) {
        t->session = NULL;
        return status;
    }
    t->requests = calloc(t->flight, sizeof(*t->requests));
    t->idle = calloc(t->flight, sizeof(struct sweep_request *));
    t->done = calloc(t->flight, sizeof(struct sweep_request *));
    t->is_flying = calloc(t->flight, sizeof(*t->is_flying));
    t->item_of = calloc(t->flight, sizeof(*t->item_of));
    t->plain = malloc(t->len);
    t->expected = malloc(t->len);
    if (!t->requests || !t->idle || !t->done || !t->is_flying || !t->item_of || !t->plain || !t->expected)
        return sweep_why(t->why, SP_ENOMEM, "no memory");
    for (unsigned i = 0; i < t->flight; i++) {
        struct sweep_request *q = &t->requests[i];
        uint8_t *in = buffer_new(t, t->len + GUARD_BYTES);

        q->index = i;
        q->len = t->len;
        q->in = in;
        q->out = c->key->algorithm->kind == SWEEP_DIGEST ? NULL : t->in_place ? in : buffer_new(t, t->len + GUARD_BYTES);
        if (!in || (!q->out && c->key->algorithm->kind != SWEEP_DIGEST))
            return sweep_why(t->why, SP_ENOMEM, "no memory for buffers of %u bytes", t->len);
        t->idle[t->idle_count++] = q;
    }
    return 0;
}

/* --- requests ----------------------------------------------------------------------------------- */

static int wrong(struct trial *t, const struct sweep_request *q, const char *what)
{
    return sweep_why(t->why, SP_EFAULT, "wrong: request %u of %u, of %u bytes %s: %s", t->item_of[q->index] + 1, t->items,
                     t->len, q->out == NULL ? "to digest" : t->in_place ? "in place" : "out of place", what);
}

static void prepare(struct trial *t, struct sweep_request *q)
{
    unsigned item = t->begun++;
    uint8_t *in = (uint8_t *)(uintptr_t)q->in;

    t->item_of[q->index] = item;
    fill(in, t->len, item_seed(t, item));
    memset(in + t->len, GUARD, GUARD_BYTES);
    if (q->out && !t->in_place)
        memset(q->out, GUARD, t->len + GUARD_BYTES);
    fill(q->iv, sizeof(q->iv), ~item_seed(t, item));
    q->iv[12] = 0;
    memset(q->tag, 0, sizeof(q->tag));
    q->status = 1; /* what no implementation says */
    q->was_async = false;
}

static bool is_guarded(const uint8_t *guard)
{
    for (unsigned i = 0; i < GUARD_BYTES; i++) {
        if (guard[i] != GUARD)
            return false;
    }
    return true;
}

static int compare(struct trial *t, const struct sweep_request *q)
{
    const struct sweep_key *key = t->check->key;
    bool has_tag = key->algorithm->tag_bytes && (!t->check->impl->is_stream || key->algorithm->kind == SWEEP_DIGEST);
    uint8_t tag[64] = {0};

    if (q->status != 0)
        return wrong(t, q, "it failed");
    fill(t->plain, t->len, item_seed(t, t->item_of[q->index]));
    if (sweep_reference(key, q->iv, t->plain, t->len, t->expected, tag) != 0)
        return sweep_why(t->why, SP_EIO, "OpenSSL, the reference, fails at %s", key->algorithm->name);
    if (q->out && memcmp(q->out, t->expected, t->len) != 0)
        return wrong(t, q, "the ciphertext is another one");
    if (has_tag && memcmp(q->tag, tag, key->algorithm->tag_bytes) != 0)
        return wrong(t, q, key->algorithm->kind == SWEEP_DIGEST ? "the digest is another one" : "the tag is another one");
    if ((q->out && !is_guarded(q->out + t->len)) || !is_guarded(q->in + t->len))
        return wrong(t, q, "bytes behind its end were written");
    if (!t->in_place && memcmp(q->in, t->plain, t->len) != 0)
        return wrong(t, q, "its input was changed");
    t->compared++;
    return 0;
}

static int try_run(struct trial *t)
{
    int status = 0;

    while (t->compared < t->items && status == 0) {
        struct sweep_request *q = &t->requests[0];

        prepare(t, q);
        q->status = t->check->impl->run(t->session, q);
        status = compare(t, q);
    }
    return status;
}

/* Hands over what fits; prepared requests that were refused are handed over again as they are. */
static void launch(struct trial *t, unsigned *ready)
{
    unsigned accepted;

    while (*ready < t->idle_count && t->begun < t->items)
        prepare(t, t->idle[(*ready)++]);
    if (*ready == 0)
        return;
    accepted = t->check->impl->submit(t->session, t->idle, *ready);
    if (accepted > *ready)
        accepted = *ready;
    for (unsigned i = 0; i < accepted; i++)
        t->is_flying[t->idle[i]->index] = true;
    t->idle_count -= accepted;
    *ready -= accepted;
    memmove(t->idle, t->idle + accepted, t->idle_count * sizeof(*t->idle));
}

/* Behind an error too: what has come back is not waited for again. The first error counts. */
static void land(struct trial *t, unsigned n)
{
    for (unsigned i = 0; i < n && i < t->flight; i++) {
        struct sweep_request *q = t->done[i];
        bool is_ours = q >= t->requests && q < t->requests + t->flight && t->is_flying[q->index];

        if (is_ours) {
            t->is_flying[q->index] = false;
            t->idle[t->idle_count++] = q;
        }
        if (t->status != 0)
            continue;
        t->status = is_ours ? compare(t, q)
                            : sweep_why(t->why, SP_EFAULT, "wrong: a request was completed that was not in flight");
    }
}

static int try_flight(struct trial *t)
{
    struct sweep_wait wait = {0};
    unsigned ready = 0;

    while (t->compared < t->items && t->status == 0) {
        bool is_last;
        unsigned n;

        launch(t, &ready);
        is_last = ready == 0;
        n = t->check->impl->poll(t->session, t->done, t->flight, is_last);
        land(t, n);
        if (n > 0)
            wait = (struct sweep_wait){0};
        else if (!sweep_wait_more(&wait, t->check->patience_ns))
            t->status = sweep_why(t->why, SP_ETIMEDOUT, "%u requests of %u bytes did not complete within %u ms",
                                  t->flight - t->idle_count, t->len, (unsigned)(t->check->patience_ns / 1000000u));
    }
    return t->status;
}

/* After an error too, whatever is in flight has to come back before its memory can go. */
static void drain(struct trial *t)
{
    struct sweep_wait wait = {0};

    while (t->idle_count < t->flight && !t->is_leaked) {
        unsigned n = t->check->impl->poll(t->session, t->done, t->flight, true);

        land(t, n);
        if (n > 0)
            wait = (struct sweep_wait){0};
        else
            t->is_leaked = !sweep_wait_more(&wait, t->check->patience_ns);
    }
}

static int try_once(const struct sweep_check *check, bool in_place, bool by_run, unsigned items, struct sweep_why *why)
{
    struct trial t = {.check = check, .in_place = in_place, .by_run = by_run, .items = items, .why = why};
    int status;

    t.len = (uint32_t)check->request_bytes;
    t.flight = by_run ? 1 : check->depth < FLIGHT_MAX ? check->depth : FLIGHT_MAX;
    if (t.flight > items)
        t.flight = items;
    status = trial_init(&t);
    if (status == 0)
        status = by_run ? try_run(&t) : try_flight(&t);
    if (status == SP_ETIMEDOUT)
        t.is_leaked = true;
    else if (t.session && t.idle && !by_run)
        drain(&t);
    trial_release(&t);
    return status;
}

int sweep_check(const struct sweep_check *check, struct sweep_why *why)
{
    bool by_run = check->impl->run && check->depth == 1, has_any = false;
    uint64_t items = check->total_bytes / check->request_bytes;
    int status = 0;

    items = check->impl->is_stream || items < 1 ? 1 : items > ITEMS_MAX ? ITEMS_MAX : items;
    for (int in_place = 0; in_place <= 1 && status == 0; in_place++) {
        if (in_place && check->key->algorithm->kind == SWEEP_DIGEST)
            break;
        status = check->impl->supports(check->device, check->key->algorithm, check->request_bytes, in_place != 0, why);
        if (status != 0) {
            /* The other way may do; the timed one is known to. */
            status = in_place && !has_any ? status : 0;
            continue;
        }
        has_any = true;
        status = try_once(check, in_place != 0, by_run, (unsigned)items, why);
    }
    return status;
}
