/*
 * A backend built by hand: what the unit tests of balancing, cookies and compression need of the proxy's objects.
 */
#ifndef SP_TEST_PROXY_TEST_H
#define SP_TEST_PROXY_TEST_H

#include "proxy/proxy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define TEST_SERVERS_MAX 600

struct test_backend {
    struct arena arena;
    struct cfg_proxy cfg;
    struct proxy proxy;
    struct cfg_server server_cfg[TEST_SERVERS_MAX];
    struct server server[TEST_SERVERS_MAX];
    struct server *list[TEST_SERVERS_MAX];
    struct http_msg req, res;
};

static inline int test_backend_setup(void **state)
{
    struct test_backend *t = calloc(1, sizeof *t);

    if (!t)
        return -1;
    arena_init(&t->arena, 0, 0);
    t->proxy.cfg = &t->cfg;
    t->proxy.is_http = true;
    t->proxy.servers = t->list;
    t->cfg.balance.random_draws = 2;
    http_msg_init(&t->req, &t->arena);
    t->req.method = HTTP_GET;
    t->req.version = 11;
    t->req.target = STR("/");
    http_msg_init(&t->res, &t->arena);
    t->res.version = 11;
    t->res.status = 200;
    t->res.flags = HTTP_MSG_RESPONSE;
    *state = t;
    return 0;
}

static inline int test_backend_teardown(void **state)
{
    struct test_backend *t = *state;

    arena_release(&t->arena);
    free(t);
    return 0;
}

static inline struct server *test_add_server(struct test_backend *t, const char *name, int weight)
{
    int i = t->proxy.server_count++;
    struct server *s = &t->server[i];

    t->server_cfg[i].name = name;
    t->server_cfg[i].weight = weight;
    t->list[i] = s;
    s->cfg = &t->server_cfg[i];
    s->backend = &t->proxy;
    s->name = str_of(name);
    s->position = i;
    s->id = i + 1;
    atomic_store(&s->state, SERVER_UP);
    atomic_store(&s->weight, weight);
    return s;
}

#define assert_str(actual, expected)                           \
    do {                                                       \
        struct str a_ = (actual), e_ = str_of(expected);       \
        if (!str_eq(a_, e_))                                   \
            fail_msg("\"%.*s\" is not \"%s\"", STR_FMT(a_), e_.ptr); \
    } while (0)

/* All fields of a message as "name: value|name: value". */
static inline const char *test_fields(struct test_backend *t, const struct http_msg *m)
{
    char *text = arena_cstr(&t->arena, "");

    for (uint32_t i = 0; i < m->field_count; i++)
        text = arena_printf(&t->arena, "%s%s%.*s: %.*s", text, i ? "|" : "", STR_FMT(m->fields[i].name),
                            STR_FMT(m->fields[i].value));
    return text;
}

#endif
