/*
 * An implementation of crypto that misbehaves on request, and notes how it is used. Its answers are OpenSSL's.
 */
#ifndef SP_TESTS_SWEEP_FAKE_H
#define SP_TESTS_SWEEP_FAKE_H

#include "measure/sweep_impl.h"
#include "measure/sweep_reference.h"

#include <sallyport/status.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define FAKE_DEPTH_MAX 64
#define FAKE_LOST_MAX 256
#define FAKE_LOST_EVER 1024

enum fake_fault {
    FAKE_NONE,
    FAKE_FLIP_TEXT, /* a bit of the ciphertext */
    FAKE_FLIP_TAG,
    FAKE_OVERRUN,   /* a byte behind the output */
    FAKE_SPOIL,     /* the input of a request out of place */
    FAKE_SAME_IV,   /* the IV of the request before */
    FAKE_ERROR,     /* fails it */
    FAKE_LOSE,      /* never completes it */
    FAKE_TWICE,     /* completes it twice */
};

static struct fake {
    enum fake_fault fault;
    unsigned at;          /* the request that it happens to, counted from 1 over all sessions; */
    bool is_from;         /* and to all behind it */
    bool is_reordered;    /* last in, first out */
    unsigned refuse;      /* takes at most this many a submission, and every third time none; 0: all */
    bool is_silent;       /* the first look after a submission finds nothing */
    /* How it was used. */
    atomic_uint sessions, sessions_most, opened;
    atomic_ullong asked, completed, failed;
    atomic_uint flying_most; /* in one session */
    atomic_uint wrong_thread, too_deep, wrong_index;
    struct sweep_request *lost[FAKE_LOST_MAX];
    atomic_uint lost_count;
} fake;

/* Lost requests stay in sight to the end of the program, as a device that may still write to them has them. */
static struct {
    struct sweep_request *requests[FAKE_LOST_EVER];
    atomic_uint count;
} fake_lost_ever;

struct sweep_session {
    const struct sweep_key *key;
    pthread_t thread;
    unsigned depth, count, flying, tries;
    bool is_fresh;
    uint8_t last_iv[16];
    struct sweep_request *queue[FAKE_DEPTH_MAX + 1];
};

static void fake_reset(void)
{
    memset(&fake, 0, sizeof(fake));
}

static void fake_most(atomic_uint *most, unsigned value)
{
    unsigned seen = atomic_load(most);

    while (value > seen && !atomic_compare_exchange_weak(most, &seen, value))
        ;
}

static int fake_device_open(const char *argument, const struct sweep_limits *limits, struct sweep_device **out,
                            char *description, size_t size, struct sweep_why *why)
{
    if (argument && strcmp(argument, "absent") == 0)
        return sweep_why(why, SP_ENOENT, "there is no such fake");
    *out = (struct sweep_device *)(void *)&fake;
    description[0] = '\0';
    return 0;
}

static void fake_device_close(struct sweep_device *device)
{
}

static int fake_supports(struct sweep_device *device, const struct sweep_algorithm *algorithm, uint64_t request_bytes,
                         bool in_place, struct sweep_why *why)
{
    return request_bytes > 65536 ? sweep_why(why, SP_EUNSUPPORTED, "requests above 64 KiB are refused") : 0;
}

static int fake_session_open(struct sweep_device *device, unsigned thread, const struct sweep_key *key, unsigned depth,
                             struct sweep_session **out, struct sweep_why *why)
{
    struct sweep_session *s = calloc(1, sizeof(*s));

    if (!s || depth > FAKE_DEPTH_MAX) {
        free(s);
        return sweep_why(why, SP_ENOMEM, "no memory");
    }
    s->key = key;
    s->thread = pthread_self();
    s->depth = depth;
    fake_most(&fake.sessions_most, atomic_fetch_add(&fake.sessions, 1) + 1);
    atomic_fetch_add(&fake.opened, 1);
    *out = s;
    return 0;
}

static void fake_look(const struct sweep_session *s)
{
    if (!pthread_equal(s->thread, pthread_self()))
        atomic_fetch_add(&fake.wrong_thread, 1);
}

static void fake_session_close(struct sweep_session *s)
{
    fake_look(s);
    atomic_fetch_sub(&fake.sessions, 1);
    free(s);
}

/* Whether the fault strikes this request. */
static bool fake_strikes(void)
{
    unsigned long long number = atomic_fetch_add(&fake.asked, 1) + 1;

    return fake.fault != FAKE_NONE && (number == fake.at || (fake.is_from && number >= fake.at));
}

static void fake_answer(struct sweep_session *s, struct sweep_request *q, bool strikes)
{
    const uint8_t *iv = strikes && fake.fault == FAKE_SAME_IV ? s->last_iv : q->iv;

    q->status = sweep_reference(s->key, iv, q->in, q->len, q->out, q->tag);
    memcpy(s->last_iv, q->iv, sizeof(s->last_iv));
    if (strikes && fake.fault == FAKE_FLIP_TEXT)
        q->out[q->len - 1] ^= 0x10;
    if (strikes && fake.fault == FAKE_FLIP_TAG)
        q->tag[s->key->algorithm->tag_bytes - 1] ^= 1;
    if (strikes && fake.fault == FAKE_OVERRUN)
        q->out[q->len] ^= 1;
    if (strikes && fake.fault == FAKE_SPOIL && q->in != q->out)
        ((uint8_t *)(uintptr_t)q->in)[0] ^= 1;
    if (strikes && fake.fault == FAKE_ERROR)
        q->status = SP_EIO;
    if (q->status != 0)
        atomic_fetch_add(&fake.failed, 1);
}

static int fake_run(struct sweep_session *s, struct sweep_request *q)
{
    fake_look(s);
    fake_most(&fake.flying_most, 1);
    fake_answer(s, q, fake_strikes());
    atomic_fetch_add(&fake.completed, 1);
    return q->status;
}

static unsigned fake_submit(struct sweep_session *s, struct sweep_request *const *requests, unsigned n)
{
    unsigned i;

    fake_look(s);
    s->is_fresh = true;
    if (fake.refuse && ++s->tries % 3 == 0)
        return 0;
    if (fake.refuse && n > fake.refuse)
        n = fake.refuse;
    for (i = 0; i < n; i++) {
        bool strikes = fake_strikes();

        if (++s->flying > s->depth)
            atomic_fetch_add(&fake.too_deep, 1);
        if (requests[i]->index >= s->depth)
            atomic_fetch_add(&fake.wrong_index, 1);
        fake_most(&fake.flying_most, s->flying);
        if (strikes && fake.fault == FAKE_LOSE) {
            unsigned lost = atomic_fetch_add(&fake.lost_count, 1);

            if (lost < FAKE_LOST_MAX)
                fake.lost[lost] = requests[i];
            lost = atomic_fetch_add(&fake_lost_ever.count, 1);
            if (lost < FAKE_LOST_EVER)
                fake_lost_ever.requests[lost] = requests[i];
            continue;
        }
        fake_answer(s, requests[i], strikes);
        if (s->count < FAKE_DEPTH_MAX)
            s->queue[s->count++] = requests[i];
        if (strikes && fake.fault == FAKE_TWICE)
            s->queue[s->count++] = requests[i];
    }
    return i;
}

static unsigned fake_poll(struct sweep_session *s, struct sweep_request **done, unsigned max, bool flush)
{
    unsigned n = 0;

    fake_look(s);
    if (fake.is_silent && s->is_fresh) {
        s->is_fresh = false;
        return 0;
    }
    while (n < max && s->count > 0) {
        if (fake.is_reordered) {
            done[n] = s->queue[--s->count];
        } else {
            done[n] = s->queue[0];
            memmove(s->queue, s->queue + 1, --s->count * sizeof(s->queue[0]));
        }
        done[n]->was_async = fake.is_silent;
        s->flying -= s->flying > 0;
        n++;
    }
    atomic_fetch_add(&fake.completed, n);
    return n;
}

static const struct sweep_impl fake_queue = {
    .name = "fake",
    .argument = "[HOW]",
    .summary = "asked through submit and poll",
    .is_asynchronous = true,
    .device_open = fake_device_open,
    .device_close = fake_device_close,
    .supports = fake_supports,
    .session_open = fake_session_open,
    .session_close = fake_session_close,
    .submit = fake_submit,
    .poll = fake_poll,
};

static const struct sweep_impl fake_direct = {
    .name = "direct",
    .summary = "asked through run",
    .device_open = fake_device_open,
    .device_close = fake_device_close,
    .supports = fake_supports,
    .session_open = fake_session_open,
    .session_close = fake_session_close,
    .submit = fake_submit,
    .poll = fake_poll,
    .run = fake_run,
};

static const struct sweep_algorithm *fake_find(const char *name)
{
    return sweep_algorithm_find(name, strlen(name));
}

static struct sweep_key fake_key(const char *name)
{
    struct sweep_key key = {.algorithm = fake_find(name)};

    for (unsigned i = 0; i < sizeof(key.key); i++) {
        key.key[i] = (uint8_t)(i * 7 + 1);
        key.hmac_key[i] = (uint8_t)(i * 5 + 2);
    }
    return key;
}

#endif
