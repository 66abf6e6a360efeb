/* Counts, times, and how a run ends. */
#include "support.h"

#include "base/clock.h"
#include "base/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void exact_counts(void **state)
{
    for (unsigned threads = 1; threads <= 2; threads++) {
        struct t_server s = {.answer = t_hello};
        const struct load_result *r;
        struct t_job j;

        t_server_start(&s);
        t_job_init(&j, &s);
        j.plan.threads = threads;
        j.plan.connections = 5;
        j.plan.request_limit = 1001;
        r = t_job_run(&j);
        assert_int_equal(t_errors(r), 0);
        assert_int_equal(r->sent, 1001);
        assert_int_equal(r->requests, 1001);
        assert_int_equal(atomic_load(&s.requests), 1001);
        assert_int_equal(r->status_class[2], 1001);
        assert_int_equal(r->body_bytes, 5 * 1001);
        assert_int_equal(r->bytes_in, (sizeof(T_HELLO) - 1) * 1001);
        assert_int_equal(r->bytes_out, j.request.bytes.len * 1001);
        assert_int_equal(r->connects, 5);
        assert_int_equal(r->connect->count, 5);
        assert_int_equal(r->latency->count, 1001);
        assert_int_equal(r->service->count, 1001);
        assert_int_equal(r->first_byte->count, 1001);
        assert_int_equal(r->reconnects, 0);
        assert_false(r->interrupted);
        assert_true(r->duration_us > 0);
        t_job_release(&j);
        t_server_stop(&s);
    }
}

/* Fewer requests than connections, and than threads. */
static void few_requests(void **state)
{
    struct t_server s = {.answer = t_hello};
    const struct load_result *r;
    struct t_job j;

    t_server_start(&s);
    t_job_init(&j, &s);
    j.plan.threads = 2;
    j.plan.connections = 8;
    j.plan.request_limit = 1;
    r = t_job_run(&j);
    assert_int_equal(r->sent, 1);
    assert_int_equal(r->requests, 1);
    t_job_release(&j);
    t_server_stop(&s);
}

static void close_each(void **state)
{
    struct t_server s = {.answer = t_hello};
    const struct load_result *r;
    struct t_job j;

    t_server_start(&s);
    t_job_init(&j, &s);
    j.plan.close = true;
    j.plan.connections = 3;
    j.plan.request_limit = 30;
    r = t_job_run(&j);
    assert_int_equal(t_errors(r), 0);
    assert_int_equal(r->requests, 30);
    assert_int_equal(r->connects, 30);
    assert_int_equal(r->connect->count, 30);
    assert_int_equal(r->reconnects, 0);
    assert_int_equal(atomic_load(&s.conns), 30);
    /* The one includes connecting, the other does not. */
    assert_true(r->latency->sum_us >= r->service->sum_us);
    t_job_release(&j);
    t_server_stop(&s);
}

static void handshake_only_plain(void **state)
{
    struct t_server s = {.answer = t_hello};
    const struct load_result *r;
    struct t_job j;

    t_server_start(&s);
    t_job_init(&j, &s);
    j.plan.handshake_only = true;
    j.plan.connections = 3;
    j.plan.request_limit = 20;
    r = t_job_run(&j);
    assert_int_equal(t_errors(r), 0);
    assert_int_equal(r->sent, 20);
    assert_int_equal(r->requests, 20);
    assert_int_equal(r->connects, 20);
    assert_int_equal(r->latency->count, 20);
    assert_int_equal(atomic_load(&s.requests), 0);
    t_job_release(&j);
    t_server_stop(&s);
}

static void known_delay(void **state)
{
    struct t_server s = {.answer = t_hello, .delay_ms = 50};
    const struct load_result *r;
    struct t_job j;

    t_server_start(&s);
    t_job_init(&j, &s);
    j.plan.connections = 4;
    j.plan.request_limit = 24;
    r = t_job_run(&j);
    assert_int_equal(r->requests, 24);
    assert_true(histogram_min_us(r->latency) >= 50000);
    assert_true(histogram_min_us(r->service) >= 50000);
    assert_true(histogram_min_us(r->first_byte) >= 50000);
    assert_true(histogram_percentile_us(r->latency, 50) < 150000);
    assert_true(r->duration_us >= 300000);
    t_job_release(&j);
    t_server_stop(&s);
}

/* All requests from the 20th on find the server asleep until 300 ms are over. */
static bool stall_once(struct t_peer *p)
{
    if (atomic_load(&p->server->requests) >= 20 && !atomic_exchange(&p->server->stalled, true))
        t_sleep_ms(300);
    return t_say(p, T_HELLO);
}

/* How many were as slow as the server was: in an open loop all that were due meanwhile. */
static uint64_t slower_than(const struct histogram *h, double us)
{
    uint64_t slow = 0;

    for (double percent = 0.5; percent <= 100; percent += 0.5)
        slow += (double)histogram_percentile_us(h, percent) >= us;
    return slow * h->count / 200;
}

static void stall_open_loop(void **state)
{
    struct t_server s = {.answer = stall_once};
    const struct load_result *r;
    struct t_job j;

    t_server_start(&s);
    t_job_init(&j, &s);
    j.plan.arrivals = LOAD_CONSTANT;
    j.plan.rate = 500;
    j.plan.request_limit = 400;
    r = t_job_run(&j);
    assert_int_equal(t_errors(r), 0);
    assert_int_equal(r->requests, 400);
    assert_true(histogram_max_us(r->latency) >= 290000);
    /* Due every 2 ms: about 75 of them waited for at least 150 ms. */
    assert_true(slower_than(r->latency, 150000) >= 60);
    /* Once sent, only one was slow. */
    assert_true(slower_than(r->service, 150000) <= 10);
    assert_true(r->late_us_max >= 200000);
    t_job_release(&j);
    t_server_stop(&s);
}

static void stall_closed_loop(void **state)
{
    struct t_server s = {.answer = stall_once};
    const struct load_result *r;
    struct t_job j;

    t_server_start(&s);
    t_job_init(&j, &s);
    j.plan.request_limit = 400;
    r = t_job_run(&j);
    assert_int_equal(r->requests, 400);
    assert_true(histogram_max_us(r->latency) >= 290000);
    assert_true(slower_than(r->latency, 150000) <= 10);
    assert_int_equal(r->late_us_max, 0);
    t_job_release(&j);
    t_server_stop(&s);
}

static void open_loop_rate(void **state)
{
    for (int kind = LOAD_CONSTANT; kind <= LOAD_POISSON; kind++) {
        struct t_server s = {.answer = t_hello};
        const struct load_result *r;
        struct t_job j;

        t_server_start(&s);
        t_job_init(&j, &s);
        j.plan.threads = 2;
        j.plan.connections = 8;
        j.plan.arrivals = (enum load_arrivals)kind;
        j.plan.rate = 1000;
        j.plan.duration_us = 1000000;
        r = t_job_run(&j);
        assert_int_equal(t_errors(r), 0);
        /* Five standard deviations of a Poisson process. */
        assert_in_range(r->requests, kind == LOAD_POISSON ? 840 : 950,
                        kind == LOAD_POISSON ? 1160 : 1001);
        assert_int_equal(r->sent, r->requests);
        assert_int_equal(r->latency->count, r->requests);
        t_job_release(&j);
        t_server_stop(&s);
    }
}

static void open_loop_close(void **state)
{
    struct t_server s = {.answer = t_hello};
    const struct load_result *r;
    struct t_job j;

    t_server_start(&s);
    t_job_init(&j, &s);
    j.plan.close = true;
    j.plan.connections = 4;
    j.plan.arrivals = LOAD_CONSTANT;
    j.plan.rate = 200;
    j.plan.request_limit = 60;
    r = t_job_run(&j);
    assert_int_equal(t_errors(r), 0);
    assert_int_equal(r->requests, 60);
    assert_int_equal(r->connects, 60);
    t_job_release(&j);
    t_server_stop(&s);
}

static void intervals(void **state)
{
    struct t_server s = {.answer = t_hello};
    uint64_t requests = 0, errors = 0, bytes = 0;
    const struct load_result *r;
    struct t_job j;

    t_server_start(&s);
    t_job_init(&j, &s);
    j.plan.threads = 2;
    j.plan.connections = 4;
    j.plan.duration_us = 500000;
    j.plan.interval_us = 100000;
    j.request.expect_status = 201;
    r = t_job_run(&j);
    assert_in_range(r->interval_count, 4, 8);
    for (size_t i = 0; i < r->interval_count; i++) {
        assert_int_equal(r->intervals[i].start_us, i * 100000);
        requests += r->intervals[i].requests;
        errors += r->intervals[i].errors;
        bytes += r->intervals[i].bytes_in;
        assert_true(r->intervals[i].p50_us <= r->intervals[i].p99_us);
        assert_true(r->intervals[i].p99_us <= r->intervals[i].max_us);
    }
    assert_true(requests > 0);
    assert_int_equal(requests, r->requests);
    assert_int_equal(errors, r->requests);
    assert_int_equal(bytes, r->bytes_in);
    t_job_release(&j);
    t_server_stop(&s);
}

static void warmup(void **state)
{
    struct t_server s = {.answer = t_hello, .delay_ms = 10};
    const struct load_result *r;
    struct t_job j;

    t_server_start(&s);
    t_job_init(&j, &s);
    j.plan.warmup_us = 300000;
    j.plan.request_limit = 10;
    r = t_job_run(&j);
    assert_int_equal(r->sent, 10);
    assert_int_equal(r->requests, 10);
    assert_int_equal(r->latency->count, 10);
    assert_int_equal(r->connects, 0);
    assert_true(atomic_load(&s.requests) > 10);
    assert_true(r->duration_us < 5000000);
    t_job_release(&j);
    t_server_stop(&s);
}

static void stopped_early(void **state)
{
    struct t_server s = {.answer = t_hello, .delay_ms = 5};
    struct load_progress progress;
    const struct load_result *r;
    struct t_job j;

    t_server_start(&s);
    t_job_init(&j, &s);
    j.plan.threads = 2;
    j.plan.connections = 4;
    j.plan.duration_us = 60000000;
    j.request.target = &j.target;
    j.plan.targets = &j.target;
    j.plan.requests = &j.request;
    assert_int_equal(load_new(&j.load, &j.plan), 0);
    assert_int_equal(load_start(j.load), 0);
    do {
        t_sleep_ms(10);
        load_progress(j.load, &progress);
    } while (progress.requests < 20);
    assert_true(load_is_running(j.load));
    assert_true(progress.elapsed_us > 0);
    assert_int_equal(progress.errors, 0);
    load_stop(j.load);
    load_stop(j.load);
    r = load_wait(j.load);
    assert_true(r->interrupted);
    assert_true(r->requests >= 20);
    assert_int_equal(r->requests, r->sent);
    t_job_release(&j);
    t_server_stop(&s);
}

static bool never(struct t_peer *p)
{
    while (!atomic_load(&p->server->stopping))
        t_sleep_ms(5);
    return false;
}

/* What does not answer is waited for one second at most. */
static void stopped_without_answer(void **state)
{
    struct t_server s = {.answer = never};
    const struct load_result *r;
    uint64_t before_us;
    struct t_job j;

    t_server_start(&s);
    t_job_init(&j, &s);
    j.plan.duration_us = 60000000;
    j.plan.timeout_us = 60000000;
    j.request.target = &j.target;
    j.plan.targets = &j.target;
    j.plan.requests = &j.request;
    assert_int_equal(load_new(&j.load, &j.plan), 0);
    assert_int_equal(load_start(j.load), 0);
    t_sleep_ms(50);
    before_us = clock_now_us();
    load_stop(j.load);
    r = load_wait(j.load);
    assert_true(clock_now_us() - before_us < 5000000);
    assert_true(r->interrupted);
    assert_int_equal(r->sent, 1);
    assert_int_equal(r->requests, 0);
    t_job_release(&j);
    t_server_stop(&s);
}

static bool by_path(struct t_peer *p)
{
    if (strncmp(p->head, "GET /a ", 7) == 0)
        return t_say(p, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na");
    return t_say(p, "HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nbb");
}

/* Two requests and two servers in turn, with enough connections and with one for both. */
static void several_targets(void **state)
{
    for (unsigned conns = 1; conns <= 4; conns += 3) {
        struct t_server s[2] = {{.answer = by_path}, {.answer = by_path}};
        struct load_target targets[2];
        struct load_request requests[2];
        const struct load_result *r;
        struct t_job j;

        t_server_start(&s[0]);
        t_server_start(&s[1]);
        t_job_init(&j, &s[0]);
        for (int i = 0; i < 2; i++) {
            targets[i] = (struct load_target){.addr = s[i].addr, .host = "localhost"};
            requests[i] = j.request;
            requests[i].target = &targets[i];
        }
        requests[0].bytes = STR("GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n");
        requests[0].expect_status = 200;
        requests[1].expect_status = 404;
        j.plan.targets = targets;
        j.plan.requests = requests;
        j.plan.target_count = j.plan.request_count = 2;
        j.plan.connections = conns;
        j.plan.request_limit = 40;
        r = t_job_run(&j);
        assert_int_equal(t_errors(r), 0);
        assert_int_equal(r->requests, 40);
        assert_int_equal(atomic_load(&s[0].requests) + atomic_load(&s[1].requests), 40);
        assert_true(r->status_class[2] > 0 && r->status_class[4] > 0);
        if (conns == 1) {
            assert_int_equal(r->status_class[2], 20);
            assert_int_equal(r->connects, 40);
        } else {
            assert_int_equal(r->connects, 4);
        }
        t_job_release(&j);
        t_server_stop(&s[0]);
        t_server_stop(&s[1]);
    }
}

static void bad_plans(void **state)
{
    struct t_server s = {0};
    struct load *load;
    struct t_job j;

    t_job_init(&j, &s);
    j.request.target = &j.target;
    j.plan.targets = &j.target;
    j.plan.requests = &j.request;
    assert_int_equal(load_new(&load, &j.plan), SP_EINVAL); /* no end */
    j.plan.request_limit = 1;
    j.plan.threads = 2;
    assert_int_equal(load_new(&load, &j.plan), SP_EINVAL); /* fewer connections */
    j.plan.threads = 1;
    j.plan.arrivals = LOAD_POISSON;
    assert_int_equal(load_new(&load, &j.plan), SP_EINVAL); /* no rate */
    j.plan.arrivals = LOAD_CLOSED;
    j.plan.resume_ratio = 1.5;
    assert_int_equal(load_new(&load, &j.plan), SP_EINVAL);
    j.plan.resume_ratio = 0;
    j.target.is_tls = true;
    assert_int_equal(load_new(&load, &j.plan), SP_EINVAL); /* no context */
    j.target.is_tls = false;
    assert_int_equal(load_new(&load, &j.plan), 0);
    load_free(load);
    load_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_counts),
        cmocka_unit_test(few_requests),
        cmocka_unit_test(close_each),
        cmocka_unit_test(handshake_only_plain),
        cmocka_unit_test(known_delay),
        cmocka_unit_test(stall_open_loop),
        cmocka_unit_test(stall_closed_loop),
        cmocka_unit_test(open_loop_rate),
        cmocka_unit_test(open_loop_close),
        cmocka_unit_test(intervals),
        cmocka_unit_test(warmup),
        cmocka_unit_test(stopped_early),
        cmocka_unit_test(stopped_without_answer),
        cmocka_unit_test(several_targets),
        cmocka_unit_test(bad_plans),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
