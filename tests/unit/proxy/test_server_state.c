/*
 * What operators order, what checks find and who follows: states of servers and their log lines.
 */
#include "check_test.h"

#define HEAD "defaults\n mode http\n timeout connect 1s\n timeout client 1s\n timeout server 1s\n"

static void test_maintenance(void **state)
{
    struct fixture *f = *state;
    struct server *s;

    fixture_build(
        f, HEAD
        " log @LOG@ daemon\nbackend b\n server s 127.0.0.1:1 check\n server t 127.0.0.1:1 track s\n"
        " server u 127.0.0.1:1 track t\n");
    s = fixture_server(f, "b", "s");
    server_set_state(s, SERVER_MAINT, NULL);
    fixture_expect(
        f,
        "alert Server b/s is going DOWN for maintenance. 2 active and 0 backup servers left. 0 sessions "
        "active, 0 requeued, 0 remaining in queue.");
    fixture_expect(
        f,
        "alert Server b/t is going DOWN for maintenance via b/s. 1 active and 0 backup servers left. 0 "
        "sessions active, 0 requeued, 0 remaining in queue.");
    fixture_expect(
        f,
        "alert Server b/u is going DOWN for maintenance via b/t. 0 active and 0 backup servers left. 0 "
        "sessions active, 0 requeued, 0 remaining in queue.");
    fixture_expect(f, "emerg backend b has no server available!");
    assert_true(s->check->paused);
    assert_int_equal(atomic_load(&s->state), SERVER_MAINT);
    server_set_state(fixture_server(f, "b", "t"), SERVER_MAINT, NULL);
    server_set_state(s, SERVER_UP, NULL);
    fixture_expect(f, "notice Server b/s is UP/READY (leaving forced maintenance).");
    fixture_expect(f, "notice Server b/t remains in forced maintenance.");
    assert_int_equal(s->check->health, 2);
    server_set_state(fixture_server(f, "b", "t"), SERVER_UP, NULL);
    fixture_expect(f, "notice Server b/t is UP/READY (leaving forced maintenance).");
    fixture_expect(f, "notice Server b/u is UP/READY (leaving maintenance).");
    fixture_apply(s->check, CHECK_L4CON, 0, "");
    for (int i = 0; i < 4; i++)
        fixture_next_line(f, 1000);
    server_set_state(s, SERVER_MAINT, NULL);
    fixture_expect(f, "notice Server b/s was DOWN and now enters maintenance.");
    fixture_expect(f, "notice Server b/t was DOWN and now enters maintenance via b/s.");
    fixture_expect(f, "notice Server b/u was DOWN and now enters maintenance via b/t.");
    fixture_expect_nothing(f);
    assert_int_equal(atomic_load(&s->admin), SERVER_ADMIN_MAINT);
}

static void test_drain(void **state)
{
    struct fixture *f = *state;
    struct server *s;

    fixture_build(
        f, HEAD
        " log @LOG@ daemon\nbackend b\n server s 127.0.0.1:1 check\n server t 127.0.0.1:1 track s\n");
    s = fixture_server(f, "b", "s");
    server_set_state(s, SERVER_DRAIN, NULL);
    fixture_expect(
        f,
        "notice Server b/s enters drain state. 1 active and 0 backup servers online. 0 sessions requeued, 0 "
        "total in queue.");
    fixture_expect(
        f,
        "notice Server b/t enters drain state via b/s. 0 active and 0 backup servers online. 0 sessions "
        "requeued, 0 total in queue.");
    fixture_expect(f, "emerg backend b has no server available!");
    assert_int_equal(atomic_load(&s->state), SERVER_DRAIN);
    server_set_state(s, SERVER_UP, NULL);
    fixture_expect(f, "notice Server b/s is UP (leaving forced drain).");
    fixture_expect(f, "notice Server b/t is UP (leaving drain) via b/s.");
    server_set_state(s, SERVER_MAINT, NULL);
    for (int i = 0; i < 3; i++)
        fixture_next_line(f, 1000);
    server_set_state(s, SERVER_DRAIN, NULL);
    fixture_expect(f, "notice Server b/s is UP/DRAIN (leaving forced maintenance).");
    fixture_expect(f, "notice Server b/s remains in forced drain mode.");
    fixture_expect(f, "notice Server b/t is UP/DRAIN (leaving maintenance).");
    fixture_expect(f, "notice Server b/t remains in drain mode.");
    fixture_apply(s->check, CHECK_L4CON, 0, "");
    fixture_expect(
        f,
        "notice Server b/s is DOWN, reason: Layer4 connection problem, check duration: 1ms. 0 active and 0 "
        "backup servers left. 0 sessions active, 0 requeued, 0 remaining in queue.");
    fixture_next_line(f, 1000);
    server_set_state(s, SERVER_UP, NULL);
    fixture_expect(f, "notice Server b/s is DOWN (leaving forced drain).");
    fixture_next_line(f, 1000);
    assert_int_equal(atomic_load(&s->state), SERVER_DOWN);
    server_set_state(s, SERVER_UP, "changed from CLI");
    fixture_expect(
        f,
        "notice Server b/s is UP, changed from CLI. 1 active and 0 backup servers online. 0 sessions "
        "requeued, 0 total in queue.");
    fixture_next_line(f, 1000);
    server_set_state(s, SERVER_DOWN, "changed from CLI");
    fixture_expect(
        f,
        "alert Server b/s is DOWN, changed from CLI. 1 active and 0 backup servers left. 0 sessions active, "
        "0 requeued, 0 remaining in queue.");
}

static void test_initial_states(void **state)
{
    struct fixture *f = *state;

    fixture_build(f, HEAD
                  "backend a\n server u 127.0.0.1:1 track b/t\n"
                  "backend b\n server s 127.0.0.1:1 check disabled\n server t 127.0.0.1:1 track s\n"
                  " server x 127.0.0.1:1\n");
    assert_int_equal(atomic_load(&fixture_server(f, "b", "s")->admin),
                     SERVER_ADMIN_MAINT | SERVER_ADMIN_CONFIG_MAINT);
    assert_int_equal(atomic_load(&fixture_server(f, "b", "s")->state), SERVER_MAINT);
    assert_true(fixture_server(f, "b", "s")->check->paused);
    assert_int_equal(atomic_load(&fixture_server(f, "b", "t")->admin),
                     SERVER_ADMIN_INHERITED_MAINT);
    assert_int_equal(atomic_load(&fixture_server(f, "a", "u")->state), SERVER_MAINT);
    assert_int_equal(atomic_load(&fixture_server(f, "b", "x")->state), SERVER_UP);
    assert_ptr_equal(fixture_server(f, "b", "t")->trackers, fixture_server(f, "a", "u"));
    server_set_state(fixture_server(f, "b", "s"), SERVER_UP, NULL);
    assert_int_equal(atomic_load(&fixture_server(f, "b", "s")->admin), 0);
    assert_int_equal(atomic_load(&fixture_server(f, "a", "u")->state), SERVER_UP);
}

int main(void)
{
#define FIXTURE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        FIXTURE(test_maintenance),
        FIXTURE(test_drain),
        FIXTURE(test_initial_states),
    };

    return cmocka_run_group_tests_name("proxy/server_state", tests, NULL, NULL);
}
