#include "proxy_test.h"

#include "proxy/balance.h"

#include <arpa/inet.h>

struct picker {
    struct test_backend *t;
    struct balance *b;
    struct hash_rng rng;
    struct rules_compiler compiler;
    struct diag diag;
    struct rules_ctx rules;
};

static void start(struct picker *p, struct test_backend *t)
{
    memset(p, 0, sizeof *p);
    p->t = t;
    p->rng = (struct hash_rng){{1, 2}};
    diag_init(&p->diag, &t->arena);
    p->compiler = (struct rules_compiler){.diag = &p->diag, .arena = &t->arena, .is_backend = true, .is_http = true};
    p->rules = (struct rules_ctx){.arena = &t->arena, .req = &t->req, .rng = &p->rng};
    assert_int_equal(balance_new(&t->proxy, &p->compiler, &p->b), 0);
    t->proxy.balance = p->b;
}

static void stop(struct picker *p)
{
    balance_free(p->b);
    rules_release_all(p->compiler.registry);
    p->t->proxy.balance = NULL;
}

static struct server *pick_avoiding(struct picker *p, const struct addr *src, const struct server *avoid, bool *all_full)
{
    struct balance_request r = {.req = &p->t->req, .src = src, .rules = &p->rules, .avoid = avoid, .rng = &p->rng};

    return balance_pick(p->b, &r, all_full);
}

static char pick(struct picker *p)
{
    bool all_full;
    struct server *s = pick_avoiding(p, NULL, NULL, &all_full);

    assert_false(s && all_full);
    return s ? s->name.ptr[0] : all_full ? '*' : '-';
}

/* Picks as many times as `expected` is long: each server by the first letter of its name, '*' full, '-' none. */
static void assert_picks(struct picker *p, const char *expected)
{
    char actual[256] = "";
    size_t n = strlen(expected);

    for (size_t i = 0; i < n; i++)
        actual[i] = pick(p);
    assert_string_equal(actual, expected);
}

static void add_abc(struct test_backend *t)
{
    test_add_server(t, "a", 3);
    test_add_server(t, "b", 1);
    test_add_server(t, "c", 2);
}

static void add_five(struct test_backend *t)
{
    static const char *const names[] = {"a", "b", "c", "d", "e"};

    for (int i = 0; i < 5; i++)
        test_add_server(t, names[i], 10);
}

/* --- in turn: orders recorded from HAProxy 2.6 ----------------------------------------- */

static void test_roundrobin_equal(void **state)
{
    struct picker p;

    add_five(*state);
    start(&p, *state);
    assert_picks(&p, "abcdeabcdea");
    stop(&p);
}

static void test_roundrobin_weighted(void **state)
{
    struct picker p;

    add_abc(*state);
    start(&p, *state);
    assert_picks(&p, "acabacacabac");
    stop(&p);
}

static void test_roundrobin_uneven(void **state)
{
    struct picker p;

    test_add_server(*state, "a", 100);
    test_add_server(*state, "b", 30);
    test_add_server(*state, "c", 7);
    start(&p, *state);
    assert_picks(&p, "aaabaaabaaacabaaabaaabaaabaaaa");
    stop(&p);
}

static void test_static_rr(void **state)
{
    struct test_backend *t = *state;
    struct picker p;

    t->cfg.balance.algo = CFG_BALANCE_STATIC_RR;
    add_abc(t);
    start(&p, t);
    assert_picks(&p, "aacabcaacabc");
    stop(&p);
}

/* Over one full round, each server gets exactly its weight, whatever the order. */
static void test_roundrobin_shares(void **state)
{
    static const int weights[] = {256, 1, 17, 100, 3, 3, 90};
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g"};
    struct picker p;
    int counts[7] = {0}, total = 0;

    for (int i = 0; i < 7; i++) {
        test_add_server(*state, names[i], weights[i]);
        total += weights[i];
    }
    start(&p, *state);
    for (int i = 0; i < 10 * total; i++)
        counts[pick(&p) - 'a']++;
    for (int i = 0; i < 7; i++)
        assert_in_range(counts[i], 10 * weights[i] - 2, 10 * weights[i] + 2);
    stop(&p);
}

static void test_roundrobin_changes(void **state)
{
    struct test_backend *t = *state;
    struct picker p;
    int counts[5] = {0};

    add_five(t);
    start(&p, t);
    assert_picks(&p, "ab");
    atomic_store(&t->server[2].state, SERVER_DOWN);
    balance_update(p.b);
    assert_int_equal(balance_usable(&t->proxy), 4);
    assert_picks(&p, "deabde");
    atomic_store(&t->server[2].state, SERVER_UP);
    atomic_store(&t->server[0].weight, 40);
    balance_update(p.b);
    for (int i = 0; i < 800; i++)
        counts[pick(&p) - 'a']++;
    assert_in_range(counts[0], 396, 404);
    for (int i = 1; i < 5; i++)
        assert_in_range(counts[i], 97, 103);
    for (int i = 0; i < 5; i++)
        atomic_store(&t->server[i].state, SERVER_DOWN);
    balance_update(p.b);
    assert_picks(&p, "--");
    assert_int_equal(balance_usable(&t->proxy), 0);
    atomic_store(&t->server[3].state, SERVER_UP);
    atomic_store(&t->server[4].state, SERVER_UP);
    balance_update(p.b);
    assert_picks(&p, "dede");
    stop(&p);
}

static void test_roundrobin_full(void **state)
{
    struct test_backend *t = *state;
    struct picker p;
    bool all_full;

    add_five(t);
    for (int i = 0; i < 5; i++)
        t->server_cfg[i].maxconn = 1;
    start(&p, t);
    atomic_store(&t->server[1].served, 1);
    atomic_store(&t->server[2].queued, 1);
    assert_picks(&p, "adeade");
    for (int i = 0; i < 5; i++)
        atomic_store(&t->server[i].served, 1);
    assert_picks(&p, "**");
    atomic_store(&t->server[3].served, 0);
    assert_picks(&p, "ddd");
    /* The one to avoid is taken when there is no other. */
    assert_ptr_equal(pick_avoiding(&p, NULL, &t->server[3], &all_full), &t->server[3]);
    atomic_store(&t->server[4].served, 0);
    for (int i = 0; i < 4; i++)
        assert_ptr_equal(pick_avoiding(&p, NULL, &t->server[3], &all_full), &t->server[4]);
    stop(&p);
}

static void test_backups(void **state)
{
    static const enum cfg_balance_algo algos[] = {CFG_BALANCE_ROUNDROBIN, CFG_BALANCE_STATIC_RR,
                                                  CFG_BALANCE_LEASTCONN,  CFG_BALANCE_FIRST,
                                                  CFG_BALANCE_RANDOM,     CFG_BALANCE_SOURCE};
    struct test_backend *t = *state;
    struct picker p;

    add_abc(t);
    t->server_cfg[1].backup = t->server_cfg[2].backup = true;
    for (size_t i = 0; i < sizeof algos / sizeof *algos; i++) {
        t->cfg.balance.algo = algos[i];
        atomic_store(&t->server[0].state, SERVER_UP);
        start(&p, t);
        assert_picks(&p, "aaa");
        assert_int_equal(balance_usable(&t->proxy), 1);
        atomic_store(&t->server[0].state, SERVER_DRAIN);
        balance_update(p.b);
        assert_picks(&p, "bbb");
        assert_int_equal(balance_usable(&t->proxy), 1);
        atomic_store(&t->server[1].weight, 0);
        balance_update(p.b);
        assert_picks(&p, "ccc");
        atomic_store(&t->server[1].weight, 1);
        stop(&p);
    }
}

static void test_allbackups(void **state)
{
    struct test_backend *t = *state;
    struct picker p;

    add_five(t);
    t->cfg.allbackups = true;
    t->server_cfg[1].backup = t->server_cfg[3].backup = true;
    start(&p, t);
    for (int i = 0; i < 5; i += 2)
        atomic_store(&t->server[i].state, SERVER_MAINT);
    balance_update(p.b);
    assert_picks(&p, "bdbd");
    assert_int_equal(balance_usable(&t->proxy), 2);
    stop(&p);
}

static void test_no_servers(void **state)
{
    struct test_backend *t = *state;
    struct picker p;

    for (int algo = CFG_BALANCE_ROUNDROBIN; algo < CFG_BALANCE_RDP_COOKIE; algo++) {
        t->cfg.balance.algo = (enum cfg_balance_algo)algo;
        t->cfg.balance.param = "x";
        start(&p, t);
        assert_picks(&p, "-");
        stop(&p);
    }
    assert_int_equal(balance_usable(&t->proxy), 0);
}

/* --- by load ------------------------------------------------------------------------------ */

static void test_leastconn(void **state)
{
    struct test_backend *t = *state;
    struct picker p;

    t->cfg.balance.algo = CFG_BALANCE_LEASTCONN;
    add_abc(t);
    start(&p, t);
    assert_picks(&p, "abcabc"); /* all idle: in turn */
    atomic_store(&t->server[0].served, 5); /* 6/3 */
    atomic_store(&t->server[1].served, 2); /* 3/1 */
    atomic_store(&t->server[2].served, 4); /* 5/2 */
    assert_picks(&p, "aa");
    atomic_store(&t->server[0].served, 7); /* 8/3 */
    assert_picks(&p, "cc");
    t->server_cfg[2].maxconn = 4;
    assert_picks(&p, "a");
    t->server_cfg[2].maxqueue = 2; /* places in its queue count */
    assert_picks(&p, "c");
    atomic_store(&t->server[2].queued, 2);
    assert_picks(&p, "a");
    stop(&p);
}

static void test_first(void **state)
{
    struct test_backend *t = *state;
    struct picker p;
    bool all_full;

    t->cfg.balance.algo = CFG_BALANCE_FIRST;
    add_abc(t);
    t->server[0].id = 9;
    for (int i = 0; i < 3; i++)
        t->server_cfg[i].maxconn = 2;
    start(&p, t);
    assert_picks(&p, "bb");
    atomic_store(&t->server[1].served, 2);
    assert_picks(&p, "cc");
    assert_ptr_equal(pick_avoiding(&p, NULL, &t->server[2], &all_full), &t->server[0]);
    atomic_store(&t->server[2].served, 2);
    assert_picks(&p, "a");
    atomic_store(&t->server[0].served, 2);
    assert_picks(&p, "*");
    stop(&p);
}

static void test_random(void **state)
{
    struct test_backend *t = *state;
    struct picker p;
    int counts[3] = {0};

    t->cfg.balance.algo = CFG_BALANCE_RANDOM;
    t->cfg.balance.random_draws = 1;
    add_abc(t);
    start(&p, t);
    for (int i = 0; i < 6000; i++)
        counts[pick(&p) - 'a']++;
    assert_in_range(counts[0], 2850, 3150);
    assert_in_range(counts[1], 880, 1120);
    assert_in_range(counts[2], 1850, 2150);
    /* Several draws find the idle one. */
    t->cfg.balance.random_draws = 30;
    atomic_store(&t->server[0].served, 10);
    atomic_store(&t->server[2].served, 10);
    assert_picks(&p, "bbbb");
    for (int i = 0; i < 3; i++)
        t->server_cfg[i].maxconn = 1;
    atomic_store(&t->server[1].served, 1);
    assert_picks(&p, "*");
    stop(&p);
}

/* --- by hash: choices recorded from HAProxy 2.6 ----------------------------------------------- */

static const char *const uris[] = {"/",          "/url1",         "/url2",         "/url3",
                                   "/url4",      "/a/b/c?x=1",    "/a/b/d?x=2",    "/img/logo.png",
                                   "/img/logo.png?v=2", "/z",     NULL};

/* One choice for each target. */
static void assert_uris(struct test_backend *t, const char *const *targets, const char *expected)
{
    struct picker p;
    char actual[32] = "";

    start(&p, t);
    for (size_t i = 0; targets[i]; i++) {
        t->req.target = str_of(targets[i]);
        actual[i] = pick(&p);
    }
    assert_string_equal(actual, expected);
    stop(&p);
}

struct uri_case {
    struct cfg_balance balance;
    const char *weighted, *equal;
};

static const struct uri_case uri_cases[] = {
    {{.algo = CFG_BALANCE_URI}, "cacabcaaaa", "ceabccdcca"},
    {{.algo = CFG_BALANCE_URI, .hash_function = 1}, "caacacaaac", "aeabcabbbc"},
    {{.algo = CFG_BALANCE_URI, .hash_function = 2, .avalanche = true}, "baaaaaaaaa", "ecccbaabbe"},
    {{.algo = CFG_BALANCE_URI, .hash_function = 3}, "bacacbcccc", "eabdbbeeec"},
    {{.algo = CFG_BALANCE_URI, .consistent = true, .avalanche = true}, "aaacaabaaa", "bdceeaaaae"},
    {{.algo = CFG_BALANCE_URI, .consistent = true}, "aaaaabbaaa", "ebbbbeeccd"},
    {{.algo = CFG_BALANCE_URI, .uri_whole = true, .consistent = true, .avalanche = true}, "aaacaaaaca", "bdceecdace"},
    {{.algo = CFG_BALANCE_URI, .uri_depth = 1, .consistent = true, .avalanche = true}, "aaacabbaaa", "bdceeddaae"},
    {{.algo = CFG_BALANCE_URI, .uri_len = 5, .consistent = true, .avalanche = true}, "aaacaaaaaa", "bdceeccdde"},
};

static void test_uri_weighted(void **state)
{
    struct test_backend *t = *state;

    add_abc(t);
    for (size_t i = 0; i < sizeof uri_cases / sizeof *uri_cases; i++) {
        t->cfg.balance = uri_cases[i].balance;
        assert_uris(t, uris, uri_cases[i].weighted);
    }
}

static void test_uri_equal(void **state)
{
    struct test_backend *t = *state;

    add_five(t);
    for (size_t i = 0; i < sizeof uri_cases / sizeof *uri_cases; i++) {
        t->cfg.balance = uri_cases[i].balance;
        assert_uris(t, uris, uri_cases[i].equal);
    }
}

static void test_uri_path_only(void **state)
{
    static const char *const same[] = {"/url3", "http://other.example/url3", "https://h:1/url3?q", NULL};
    struct test_backend *t = *state;

    add_five(t);
    t->cfg.balance = (struct cfg_balance){.algo = CFG_BALANCE_URI, .uri_path_only = true};
    assert_uris(t, same, "bbb");
    t->cfg.balance.uri_path_only = false;
    assert_uris(t, same, "bdd");
}

static void test_source(void **state)
{
    static const char *const addresses[] = {"127.0.0.1",   "127.0.0.2",   "127.0.0.3",   "127.0.0.7",
                                            "127.0.0.77",  "127.0.0.100", "127.0.0.200", "127.0.0.254"};
    static const struct {
        struct cfg_balance balance;
        const char *expected;
    } cases[] = {
        {{.algo = CFG_BALANCE_SOURCE}, "deaeeccbb"},
        {{.algo = CFG_BALANCE_SOURCE, .consistent = true, .avalanche = true}, "cecbadaca"},
        {{.algo = CFG_BALANCE_SOURCE, .avalanche = true}, "ddcdeabac"},
    };
    struct test_backend *t = *state;
    struct picker p;

    add_five(t);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char actual[16] = "";
        struct addr src = {0};
        bool all_full;

        t->cfg.balance = cases[i].balance;
        start(&p, t);
        src.u.in.sin_family = AF_INET;
        for (int k = 0; k < 8; k++) {
            inet_pton(AF_INET, addresses[k], &src.u.in.sin_addr);
            actual[k] = pick_avoiding(&p, &src, NULL, &all_full)->name.ptr[0];
        }
        src.u.in6.sin6_family = AF_INET6;
        src.u.in6.sin6_addr = in6addr_loopback;
        actual[8] = pick_avoiding(&p, &src, NULL, &all_full)->name.ptr[0];
        assert_string_equal(actual, cases[i].expected);
        /* An address that is neither goes round. */
        src.u.sa.sa_family = AF_UNIX;
        assert_non_null(pick_avoiding(&p, &src, NULL, &all_full));
        stop(&p);
    }
}

static void test_header(void **state)
{
    static const char *const hosts[] = {"www.example.com", "example.com", "a.b.example.org",    "localhost",
                                        "x.co.uk",         "one.two",     "www.example.net:8080"};
    static const struct {
        struct cfg_balance balance;
        const char *expected;
    } cases[] = {
        {{.algo = CFG_BALANCE_HDR, .param = "host"}, "cdeebbd"},
        {{.algo = CFG_BALANCE_HDR, .param = "Host", .hdr_use_domain_only = true}, "aaaecba"},
        {{.algo = CFG_BALANCE_HDR, .param = "Host", .hdr_use_domain_only = true, .consistent = true, .avalanche = true},
         "aaaaaca"},
    };
    struct test_backend *t = *state;
    struct picker p;

    add_five(t);
    assert_int_equal(http_msg_add(&t->req, STR("Host"), STR("")), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char actual[16] = "";

        t->cfg.balance = cases[i].balance;
        start(&p, t);
        for (int k = 0; k < 7; k++) {
            http_msg_set_value(&t->req, &t->req.fields[0], str_of(hosts[k]));
            actual[k] = pick(&p);
        }
        assert_string_equal(actual, cases[i].expected);
        stop(&p);
    }
    /* The first of a list counts; absent or empty goes round. */
    t->cfg.balance = cases[0].balance;
    start(&p, t);
    http_msg_set_value(&t->req, &t->req.fields[0], STR("localhost, x"));
    assert_picks(&p, "ee");
    http_msg_set_value(&t->req, &t->req.fields[0], STR(""));
    assert_picks(&p, "abc");
    http_msg_del_at(&t->req, 0);
    assert_picks(&p, "dea");
    stop(&p);
}

/* Leading and trailing dots, and two in a row. */
static void test_domain_only_odd(void **state)
{
    static const char *const pairs[][2] = {
        {".com", ".com"}, {"example.com.", "com"}, {"www..com", "www."}, {"a", "a"}, {".", "."}, {"..x", "."},
    };
    struct test_backend *t = *state;
    struct picker p;

    add_five(t);
    assert_int_equal(http_msg_add(&t->req, STR("Host"), STR("")), 0);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char by_domain;

        t->cfg.balance = (struct cfg_balance){.algo = CFG_BALANCE_HDR, .param = "host", .hdr_use_domain_only = true};
        start(&p, t);
        http_msg_set_value(&t->req, &t->req.fields[0], str_of(pairs[i][0]));
        by_domain = pick(&p);
        stop(&p);
        t->cfg.balance.hdr_use_domain_only = false;
        start(&p, t);
        http_msg_set_value(&t->req, &t->req.fields[0], str_of(pairs[i][1]));
        assert_int_equal(by_domain, pick(&p));
        stop(&p);
    }
}

static void test_url_param(void **state)
{
    /* The fifth has no such parameter and goes round. */
    static const char *const targets[] = {"/?id=1", "/?id=2", "/?x=1&id=abc&y=2", "/?xid=3", "/", "/?id=", "/?x&id=9",
                                          NULL};
    struct test_backend *t = *state;

    add_five(t);
    t->cfg.balance = (struct cfg_balance){.algo = CFG_BALANCE_URL_PARAM, .param = "id"};
    assert_uris(t, targets, "eababac");
    t->cfg.balance.consistent = t->cfg.balance.avalanche = true;
    assert_uris(t, targets, "adbecea");
}

static char pick_body(struct picker *p, const char *body)
{
    bool all_full;
    struct balance_request r = {.req = &p->t->req, .body = str_of(body)};

    return balance_pick(p->b, &r, &all_full)->name.ptr[0];
}

static void test_check_post(void **state)
{
    struct test_backend *t = *state;
    struct picker p;

    add_five(t);
    t->cfg.balance = (struct cfg_balance){.algo = CFG_BALANCE_URL_PARAM, .param = "id", .check_post = true};
    start(&p, t);
    t->req.method = HTTP_POST;
    t->req.target = STR("/?x=1");
    assert_int_equal(pick_body(&p, "id=1"), 'e');
    assert_int_equal(pick_body(&p, "x=2&id=abc&z"), 'b');
    assert_int_equal(pick_body(&p, "id=abc\r\n"), 'b'); /* white space ends the value */
    /* None in the body, foreign bytes, another method: in turn. */
    assert_int_equal(pick_body(&p, "id"), 'a');
    assert_int_equal(pick_body(&p, "id=a\x01"), 'b');
    t->req.method = HTTP_PUT;
    assert_int_equal(pick_body(&p, "id=1"), 'c');
    t->req.method = HTTP_POST;
    t->req.target = STR("/?id=2"); /* the target goes first */
    assert_int_equal(pick_body(&p, "id=1"), 'a');
    stop(&p);
}

static void test_expression(void **state)
{
    static const struct {
        const char *expression;
        int function;
        const char *expected;
    } cases[] = {
        {"path", 0, "cacabcaaaa"},
        {"int(5)", 0, "cccccccccc"},
        {"int(8)", 4, "cccccccccc"}, /* 8 modulo 6, of aacabc */
        {"hdr(none)", 0, "aacabcaaca"},
    };
    struct test_backend *t = *state;

    add_abc(t);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        t->cfg.balance = (struct cfg_balance){
            .algo = CFG_BALANCE_HASH,
            .param = cases[i].expression,
            .hash_function = cases[i].function,
        };
        assert_uris(t, uris, cases[i].expected);
    }
}

static void test_bad_expression(void **state)
{
    struct test_backend *t = *state;
    struct diag diag;
    struct rules_compiler compiler = {.diag = &diag, .arena = &t->arena};
    struct balance *b = NULL;

    add_abc(t);
    diag_init(&diag, &t->arena);
    t->cfg.balance = (struct cfg_balance){.algo = CFG_BALANCE_HASH, .param = "no_such_fetch"};
    assert_int_equal(balance_new(&t->proxy, &compiler, &b), SP_EINVAL);
    assert_null(b);
    rules_release_all(compiler.registry);
}

/* --- properties of tables ----------------------------------------------------------------------- */

static const char *numbered_target(struct test_backend *t, int i)
{
    return arena_printf(&t->arena, "/item/%d", i);
}

/* When one of ten servers goes, only its keys move, and they move to all others. */
static void test_consistent_is_stable(void **state)
{
    enum { KEYS = 2000 };
    static struct server *before[KEYS];
    struct test_backend *t = *state;
    struct picker p;
    bool all_full;
    int moved = 0, counts[10] = {0};

    for (int i = 0; i < 10; i++)
        test_add_server(t, "s", 50);
    t->cfg.balance = (struct cfg_balance){.algo = CFG_BALANCE_URI, .consistent = true, .avalanche = true};
    start(&p, t);
    for (int i = 0; i < KEYS; i++) {
        t->req.target = str_of(numbered_target(t, i));
        before[i] = pick_avoiding(&p, NULL, NULL, &all_full);
        counts[before[i]->position]++;
    }
    for (int i = 0; i < 10; i++)
        assert_in_range(counts[i], KEYS / 10 / 2, KEYS / 10 * 2);
    atomic_store(&t->server[4].state, SERVER_DOWN);
    balance_update(p.b);
    for (int i = 0; i < KEYS; i++) {
        struct server *s;

        t->req.target = str_of(numbered_target(t, i));
        s = pick_avoiding(&p, NULL, NULL, &all_full);
        assert_ptr_not_equal(s, &t->server[4]);
        if (before[i] != &t->server[4])
            assert_ptr_equal(s, before[i]);
        else
            moved++;
    }
    assert_int_equal(moved, counts[4]);
    stop(&p);
}

/* Redispatch: another server than the one to avoid, the same one each time. */
static void test_hash_avoid(void **state)
{
    struct test_backend *t = *state;
    struct picker p;
    bool all_full;

    add_five(t);
    for (int consistent = 0; consistent < 2; consistent++) {
        t->cfg.balance = (struct cfg_balance){.algo = CFG_BALANCE_URI, .consistent = consistent};
        start(&p, t);
        for (int i = 0; i < 100; i++) {
            struct server *s, *other;

            t->req.target = str_of(numbered_target(t, i));
            s = pick_avoiding(&p, NULL, NULL, &all_full);
            other = pick_avoiding(&p, NULL, s, &all_full);
            assert_ptr_not_equal(s, other);
            assert_ptr_equal(pick_avoiding(&p, NULL, s, &all_full), other);
        }
        stop(&p);
    }
}

/* hash-balance-factor: one hot key is spread once its server has more than its share. */
static void test_bounded_load(void **state)
{
    struct test_backend *t = *state;
    struct picker p;
    bool all_full;
    unsigned total = 0;

    add_five(t);
    t->cfg.balance = (struct cfg_balance){
        .algo = CFG_BALANCE_URI,
        .consistent = true,
        .avalanche = true,
        .hash_balance_factor = 150,
    };
    start(&p, t);
    t->req.target = STR("/hot");
    for (int i = 0; i < 100; i++)
        atomic_fetch_add(&pick_avoiding(&p, NULL, NULL, &all_full)->served, 1);
    for (int i = 0; i < 5; i++) {
        assert_in_range(atomic_load(&t->server[i].served), 0, 31);
        total += atomic_load(&t->server[i].served);
    }
    assert_int_equal(total, 100);
    stop(&p);
}

/* Weights that grow beyond the first table's room, and shrink again. */
static void test_table_grows(void **state)
{
    struct test_backend *t = *state;
    struct picker p;

    t->cfg.balance = (struct cfg_balance){.algo = CFG_BALANCE_URI, .consistent = true, .avalanche = true};
    for (int i = 0; i < TEST_SERVERS_MAX; i++)
        test_add_server(t, "s", 1);
    start(&p, t);
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < TEST_SERVERS_MAX; i += 60)
            atomic_store(&t->server[i].weight, round % 2 ? 1 : 256);
        balance_update(p.b);
        assert_int_equal(pick(&p), 's');
    }
    stop(&p);
}

/* Readers search while a writer takes servers up and down: never a crash, never a server that was down all along. */
struct race {
    struct picker p;
    atomic_bool stop;
};

static void *race_reader(void *arg)
{
    struct race *r = arg;
    struct hash_rng rng = {{(uintptr_t)&rng, 7}};
    struct test_backend *t = r->p.t;
    long wrong = 0;

    while (!atomic_load(&r->stop)) {
        char text[32];
        int len = snprintf(text, sizeof text, "/%llu", (unsigned long long)hash_rng_next(&rng));
        struct http_msg req = {.target = str_make(text, (size_t)len)};
        struct balance_request q = {.req = &req, .rng = &rng};
        bool all_full;
        struct server *s = balance_pick(r->p.b, &q, &all_full);

        if (!s || s == &t->server[4])
            wrong++;
    }
    return (void *)(intptr_t)wrong;
}

static void run_race(struct test_backend *t, struct cfg_balance balance)
{
    static struct race r;
    pthread_t threads[3];

    t->cfg.balance = balance;
    start(&r.p, t);
    atomic_store(&r.stop, false);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, race_reader, &r), 0);
    for (int i = 0; i < 2000; i++) {
        atomic_store(&t->server[i % 3].state, i % 2 ? SERVER_UP : SERVER_DOWN);
        atomic_store(&t->server[3].weight, 1 + i % 256);
        balance_update(r.p.b);
    }
    atomic_store(&r.stop, true);
    for (int i = 0; i < 3; i++) {
        void *wrong;

        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    stop(&r.p);
}

static void test_races(void **state)
{
    struct test_backend *t = *state;

    add_five(t);
    atomic_store(&t->server[4].state, SERVER_DOWN);
    run_race(t, (struct cfg_balance){.algo = CFG_BALANCE_ROUNDROBIN});
    run_race(t, (struct cfg_balance){.algo = CFG_BALANCE_URI});
    run_race(t, (struct cfg_balance){.algo = CFG_BALANCE_URI, .consistent = true});
    run_race(t, (struct cfg_balance){.algo = CFG_BALANCE_RANDOM, .random_draws = 2});
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, test_backend_setup, test_backend_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_roundrobin_equal),
        TEST(test_roundrobin_weighted),
        TEST(test_roundrobin_uneven),
        TEST(test_static_rr),
        TEST(test_roundrobin_shares),
        TEST(test_roundrobin_changes),
        TEST(test_roundrobin_full),
        TEST(test_backups),
        TEST(test_allbackups),
        TEST(test_no_servers),
        TEST(test_leastconn),
        TEST(test_first),
        TEST(test_random),
        TEST(test_uri_weighted),
        TEST(test_uri_equal),
        TEST(test_uri_path_only),
        TEST(test_source),
        TEST(test_header),
        TEST(test_domain_only_odd),
        TEST(test_url_param),
        TEST(test_check_post),
        TEST(test_expression),
        TEST(test_bad_expression),
        TEST(test_consistent_is_stable),
        TEST(test_hash_avoid),
        TEST(test_bounded_load),
        TEST(test_table_grows),
        TEST(test_races),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
