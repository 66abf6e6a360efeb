/* One thread: its loop, its connections, and what they have to do when. */
#include "load/engine.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

/*
 * Connections that are opened at the start, and further ones each millisecond: a listener's queue is short, and what it
 * drops comes back a second later. When the server has not dealt with so many yet, only a few more.
 */
#define RAMP_FIRST 256
#define RAMP_STEP 32
#define RAMP_SLOW_STEP 4
#define RAMP_FRESH_MAX 512
#define RAMP_US 1000
#define GIVE_UP_US 1000000
#define ARENA_LIMIT (1u << 20)

static uint64_t thread_cpu_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t share(uint64_t whole, unsigned parts, unsigned index)
{
    return whole / parts + (index < whole % parts ? 1 : 0);
}

/* --- requests ---------------------------------------------------------------------------------- */

bool load_thread_take(struct load_conn *c, uint64_t base_us)
{
    struct load_thread *t = c->thread;
    struct load_lane *lane = c->lane;

    if (t->stopped || t->left == 0 || base_us >= t->stop_us)
        return false;
    c->measured = base_us >= t->measure_us;
    if (c->measured) {
        if (t->left != LOAD_NO_LIMIT)
            t->left--;
        if (t->record.first_us == 0 || base_us < t->record.first_us)
            t->record.first_us = base_us;
    }
    c->request = lane->requests[lane->next];
    if (++lane->next == lane->count)
        lane->next = 0;
    c->base_us = base_us;
    c->sent = c->retried = false;
    t->outstanding++;
    return true;
}

void load_thread_again(struct load_conn *c)
{
    c->state = LOAD_AGAIN;
    list_push_back(&c->thread->again, &c->link);
}

void load_thread_wait(struct load_conn *c)
{
    list_push_back(&c->lane->free, &c->link);
}

static void note_late(struct load_thread *t, uint64_t due_us, uint64_t now_us)
{
    if (due_us >= t->measure_us && now_us > due_us && now_us - due_us > t->record.late_us_max)
        t->record.late_us_max = now_us - due_us;
}

/* Sends what is due, as far as there are connections. */
static void send_due(struct load_lane *lane)
{
    struct load_thread *t = lane->thread;

    while (!list_is_empty(&lane->free)) {
        uint64_t now_us = clock_now_us(), due_us = lane->arrival.due_us;
        struct load_conn *c = LIST_ENTRY(lane->free.next, struct load_conn, link);

        if (due_us > now_us || !load_thread_take(c, due_us))
            return;
        list_del(&c->link);
        load_arrival_next(&lane->arrival);
        note_late(t, due_us, now_us);
        if (c->state == LOAD_FREE) {
            load_conn_begin(c, now_us);
        } else if (c->request->target != c->target) {
            load_conn_close(c, false);
            load_thread_again(c);
        } else {
            load_conn_send(c, now_us);
        }
    }
}

/*
 * The loop's timers tick in milliseconds; requests that are due sooner are waited for with a timer of the
 * kernel's, which costs a call for each sleep but no turning in circles.
 */
static void set_alarm(struct load_thread *t)
{
    uint64_t next_us = UINT64_MAX;
    struct itimerspec spec = {0};

    if (t->stopped || t->left == 0)
        return;
    for (size_t i = 0; i < t->lane_count; i++) {
        if (!list_is_empty(&t->lanes[i].free) && t->lanes[i].arrival.due_us < next_us)
            next_us = t->lanes[i].arrival.due_us;
    }
    if (next_us == t->alarm_us || next_us == UINT64_MAX)
        return;
    t->alarm_us = next_us;
    spec.it_value.tv_sec = (time_t)(next_us / 1000000);
    spec.it_value.tv_nsec = (long)(next_us % 1000000) * 1000;
    timerfd_settime(t->alarm.fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

/* The turn's hook sends; this only ends the sleep. Setting it again makes the next edge. */
static void on_alarm(struct io_watch *w, unsigned events)
{
    LIST_ENTRY(w, struct load_thread, alarm)->alarm_us = UINT64_MAX;
}

/* --- the end of a turn ---------------------------------------------------------------------------- */

static void open_again(struct load_thread *t)
{
    struct list batch, *item;

    if (list_is_empty(&t->again))
        return;
    /* Those that fail at once are for the next turn. */
    list_init(&batch);
    while ((item = list_pop_front(&t->again)))
        list_push_back(&batch, item);
    while ((item = list_pop_front(&batch)))
        load_conn_begin(LIST_ENTRY(item, struct load_conn, link), clock_now_us());
}

static void read_on(struct load_thread *t)
{
    struct list batch, *item;

    if (list_is_empty(&t->unread))
        return;
    list_init(&batch);
    while ((item = list_pop_front(&t->unread)))
        list_push_back(&batch, item);
    while ((item = list_pop_front(&batch)))
        load_conn_read(LIST_ENTRY(item, struct load_conn, unread));
}

static void end_sending(struct load_thread *t)
{
    if (t->end_us)
        return;
    t->end_us = io_loop_now(t->loop);
    t->end_idle_us = io_loop_idle_us(t->loop);
    if (t->begin_us)
        t->end_cpu_ns = thread_cpu_ns() - t->begin_cpu_ns;
}

static bool turn(struct io_turn_hook *h)
{
    struct load_thread *t = LIST_ENTRY(h, struct load_thread, hook);

    read_on(t);
    open_again(t);
    if (t->is_open_loop) {
        for (size_t i = 0; i < t->lane_count; i++)
            send_due(&t->lanes[i]);
        set_alarm(t);
    }
    if (t->left == 0)
        end_sending(t);
    if (t->outstanding == 0 && (t->stopped || t->left == 0))
        io_loop_stop(t->loop);
    return !list_is_empty(&t->again) || !list_is_empty(&t->unread);
}

/* --- times ------------------------------------------------------------------------------------------ */

static void begin_measuring(struct load_thread *t)
{
    t->begin_us = io_loop_now(t->loop);
    t->begin_idle_us = io_loop_idle_us(t->loop);
    t->begin_cpu_ns = thread_cpu_ns();
}

static void on_measure(struct io_timer *timer)
{
    begin_measuring(LIST_ENTRY(timer, struct load_thread, measure));
}

static void begin_some(struct load_thread *t, unsigned whole)
{
    uint64_t count = share(whole, t->plan->threads, t->index);

    for (count = count ? count : 1; count && t->begun < t->conn_count; count--) {
        struct load_conn *c = &t->conns[t->begun++];

        c->is_fresh = true;
        t->fresh++;
        load_conn_begin(c, clock_now_us());
    }
    if (t->begun < t->conn_count)
        io_timer_set(t->loop, &t->ramp, io_loop_now(t->loop) + RAMP_US);
}

static void on_ramp(struct io_timer *timer)
{
    struct load_thread *t = LIST_ENTRY(timer, struct load_thread, ramp);
    bool slow = t->fresh >= RAMP_FRESH_MAX / t->plan->threads;

    if (!t->stopped)
        begin_some(t, slow ? RAMP_SLOW_STEP : RAMP_STEP);
}

/* What has been sent goes on to its end; what has not is forgotten. */
static void stop_sending(struct load_thread *t)
{
    if (t->stopped)
        return;
    t->stopped = true;
    end_sending(t);
    for (size_t i = 0; t->is_open_loop && t->left && i < t->lane_count; i++) {
        uint64_t now_us = clock_now_us();

        note_late(t, t->lanes[i].arrival.due_us, now_us < t->stop_us ? now_us : t->stop_us);
    }
    for (size_t i = 0; i < t->begun; i++) {
        struct load_conn *c = &t->conns[i];

        if (c->state < LOAD_IDLE && c->state != LOAD_TICKET && !c->sent)
            load_conn_drop(c);
    }
}

static void on_stop(struct io_timer *timer)
{
    stop_sending(LIST_ENTRY(timer, struct load_thread, stop));
}

static void on_give_up(struct io_timer *timer)
{
    io_loop_stop(LIST_ENTRY(timer, struct load_thread, give_up)->loop);
}

static void on_stop_message(struct io_message *m)
{
    struct load_thread *t = LIST_ENTRY(m, struct load_thread, stop_message);

    t->interrupted = t->interrupted || !t->stopped || t->outstanding;
    stop_sending(t);
    io_timer_set(t->loop, &t->give_up, io_loop_now(t->loop) + GIVE_UP_US);
}

/* In a turn of the loop, so that its hook runs before the first sleep. */
static void on_start_message(struct io_message *m)
{
    begin_some(LIST_ENTRY(m, struct load_thread, start_message), RAMP_FIRST);
}

void load_thread_stop(struct load_thread *t)
{
    if (!atomic_exchange(&t->stop_posted, true))
        io_loop_post(t->loop, &t->stop_message);
}

/* --- counting what TLS moves -------------------------------------------------------------------------- */

static ptrdiff_t count_recv(struct io_sock *s, void *data, size_t len)
{
    struct load_thread *t = LIST_ENTRY(s, struct load_conn, sock)->thread;
    ptrdiff_t n = t->base_transport->recv(s, data, len);
    uint64_t now_us = io_loop_now(t->loop);

    if (n > 0) {
        t->tls_bytes_in += (uint64_t)n;
        if (now_us >= t->measure_us)
            load_record_bytes_in(&t->record, now_us, (size_t)n);
    }
    return n;
}

static ptrdiff_t count_sendv(struct io_sock *s, const struct iovec *iov, int count, bool more)
{
    struct load_thread *t = LIST_ENTRY(s, struct load_conn, sock)->thread;
    ptrdiff_t n = t->base_transport->sendv(s, iov, count, more);

    if (n > 0 && io_loop_now(t->loop) >= t->measure_us)
        t->record.bytes_out += (uint64_t)n;
    return n;
}

/* --- life ------------------------------------------------------------------------------------------------ */

static void add_requests(struct load_thread *t, struct load_lane *lane,
                         const struct load_target *target)
{
    const struct load_plan *plan = t->plan;
    const struct load_request **at = t->order;

    for (size_t i = 0; i < t->lane_count; i++)
        at += t->lanes[i].count;
    *lane = (struct load_lane){.thread = t, .requests = at};
    list_init(&lane->free);
    for (size_t i = 0; i < plan->request_count; i++) {
        if (!target || plan->requests[i].target == target)
            at[lane->count++] = &plan->requests[i];
    }
    if (lane->count == 0)
        return;
    /* Not all threads begin with the same request. */
    lane->next = t->index % lane->count;
    t->lane_count++;
}

static void make_lanes(struct load_thread *t)
{
    const struct load_plan *plan = t->plan;

    for (size_t i = 0; i < plan->target_count; i++)
        add_requests(t, &t->lanes[t->lane_count], &plan->targets[i]);
    if (t->lane_count > t->conn_count) {
        t->lane_count = 0;
        add_requests(t, &t->lanes[0], NULL);
    }
}

/* As many connections for each lane as it has requests, in proportion, and at least one. */
static void share_conns(struct load_thread *t)
{
    size_t *given = calloc(t->lane_count, sizeof(*given));

    for (size_t i = 0; i < t->conn_count; i++) {
        size_t best = i;

        for (size_t k = 0; i >= t->lane_count && k < t->lane_count; k++) {
            if (best == i || !given ||
                given[k] * t->lanes[best].count < given[best] * t->lanes[k].count)
                best = k;
        }
        if (given)
            given[best]++;
        t->conns[i].lane = &t->lanes[best];
    }
    free(given);
}

static void init_conns(struct load_thread *t)
{
    for (size_t i = 0; i < t->conn_count; i++) {
        struct load_conn *c = &t->conns[i];

        c->thread = t;
        c->target = c->lane->requests[i % c->lane->count]->target;
        c->sock.watch.fd = -1;
        c->state = LOAD_FREE;
        list_init(&c->link);
        list_init(&c->unread);
        io_timer_init(&c->timer, load_conn_timer);
    }
}

static void init_timers(struct load_thread *t)
{
    io_timer_init(&t->ramp, on_ramp);
    io_timer_init(&t->measure, on_measure);
    io_timer_init(&t->stop, on_stop);
    io_timer_init(&t->give_up, on_give_up);
    t->hook.run = turn;
    t->start_message.run = on_start_message;
    t->stop_message.run = on_stop_message;
    t->alarm = (struct io_watch){.fd = -1, .notify = on_alarm};
    t->alarm_us = UINT64_MAX;
}

int load_thread_new(struct load_thread **out, struct load *load, unsigned index)
{
    const struct load_plan *plan = load->plan;
    struct load_thread *t = calloc(1, sizeof(*t));

    if (!t)
        return SP_ENOMEM;
    t->load = load;
    t->plan = plan;
    t->index = index;
    t->is_open_loop = plan->arrivals != LOAD_CLOSED;
    t->is_one_shot = plan->close || plan->handshake_only;
    t->left =
        plan->request_limit ? share(plan->request_limit, plan->threads, index) : LOAD_NO_LIMIT;
    t->conn_count = (size_t)share(plan->connections, plan->threads, index);
    list_init(&t->again);
    list_init(&t->unread);
    init_timers(t);
    arena_init(&t->arena, 16384, ARENA_LIMIT);
    t->conns = calloc(t->conn_count, sizeof(*t->conns));
    t->lanes = calloc(plan->target_count + 1, sizeof(*t->lanes));
    t->order = calloc(plan->request_count, sizeof(const struct load_request *));
    if (!t->conns || !t->lanes || !t->order || load_record_init(&t->record, plan) != 0) {
        load_thread_free(t);
        return SP_ENOMEM;
    }
    make_lanes(t);
    share_conns(t);
    init_conns(t);
    *out = t;
    return 0;
}

void load_thread_free(struct load_thread *t)
{
    if (!t)
        return;
    tls_worker_free(t->tls);
    if (t->alarm.fd >= 0)
        close(t->alarm.fd);
    io_loop_free(t->loop);
    load_record_release(&t->record);
    arena_release(&t->arena);
    free(t->conns);
    free(t->lanes);
    free(t->order);
    free(t);
}

static int prepare_tls(struct load_thread *t)
{
    const struct load_plan *plan = t->plan;
    struct tls_crypto_options crypto = {.loop = t->loop};

    for (size_t i = 0; i < plan->target_count; i++) {
        if (!plan->targets[i].is_tls)
            continue;
        if (!t->tls) {
            sp_queue_options_init(&crypto.queue);
            t->tls = tls_worker_new(&crypto);
        }
        if (!t->tls || tls_worker_prepare_client(t->tls, plan->targets[i].tls) != 0)
            return SP_ENOMEM;
    }
    return 0;
}

int load_thread_prepare(struct load_thread *t)
{
    struct io_sock probe;

    t->loop = io_loop_new_engine(LOAD_ENGINE);
    if (!t->loop)
        return SP_EIO;
    io_sock_init(&probe, t->loop, -1, load_conn_event);
    t->base_transport = probe.transport;
    t->counting = *probe.transport;
    t->counting.recv = count_recv;
    t->counting.sendv = count_sendv;
    if (t->is_open_loop) {
        t->alarm.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        if (t->alarm.fd < 0 || io_watch_add(t->loop, &t->alarm, IO_READ, false) != 0)
            return SP_EIO;
    }
    return prepare_tls(t);
}

static void start_times(struct load_thread *t)
{
    const struct load_plan *plan = t->plan;
    uint64_t start_us = t->load->start_us;

    t->measure_us = start_us + plan->warmup_us;
    t->stop_us = plan->duration_us ? t->measure_us + plan->duration_us : UINT64_MAX;
    load_record_start(&t->record, t->measure_us);
    load_rng_init(&t->rng, plan->seed ^ (t->index + 1) * 0x9e3779b97f4a7c15u);
    for (size_t i = 0; t->is_open_loop && i < t->lane_count; i++) {
        struct load_lane *lane = &t->lanes[i];
        double part = (double)lane->count / (double)plan->request_count / plan->threads;

        load_arrival_init(&lane->arrival, plan->arrivals, plan->rate * part,
                          (double)(i * plan->threads + t->index) /
                              (double)(plan->threads * t->lane_count),
                          start_us, hash_rng_next(&t->rng));
    }
    io_loop_refresh_now(t->loop);
    if (plan->warmup_us)
        io_timer_set(t->loop, &t->measure, t->measure_us);
    else
        begin_measuring(t);
    io_timer_set(t->loop, &t->stop, t->stop_us);
}

void *load_thread_run(void *thread)
{
    struct load_thread *t = thread;

    if (t->tls)
        tls_worker_start(t->tls);
    io_loop_add_hook(t->loop,
                     &t->hook); /* after the crypto queue's, whose connections it opens again */
    start_times(t);
    if (t->left)
        io_loop_post(t->loop, &t->start_message);
    else
        io_loop_stop(t->loop);
    io_loop_run(t->loop);
    end_sending(t);
    if (t->begin_us)
        t->cpu_ns = thread_cpu_ns() - t->begin_cpu_ns;
    for (size_t i = 0; i < t->conn_count; i++)
        load_conn_release(&t->conns[i]);
    io_timer_cancel(&t->ramp);
    io_timer_cancel(&t->measure);
    io_timer_cancel(&t->stop);
    io_timer_cancel(&t->give_up);
    if (t->tls)
        tls_worker_stop(t->tls);
    atomic_store(&t->ended, true);
    return NULL;
}
