/*
 * Shared by the tests of http/: parsing from memory without a spare byte, and comparison of
 * messages.
 */
#ifndef SP_TESTS_HTTP_TEST_H
#define SP_TESTS_HTTP_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "http/h1.h"

static const struct h1_limits default_limits = {.max_head_bytes = 16384, .max_fields = 101};

/* One parse with all that comes out of it. */
struct parsed {
    struct arena arena;
    struct http_msg msg;
    char *copy; /* the input, in an allocation of exactly its size */
    int status;
    size_t head_bytes;
    enum h1_error error;
    size_t error_at;
};

struct parse_args {
    const struct h1_limits *limits;
    bool response;
    enum http_method request_method;
};

static inline void parsed_release(struct parsed *p)
{
    arena_release(&p->arena);
    free(p->copy);
}

static inline void parsed_init(struct parsed *p)
{
    memset(p, 0, sizeof *p);
    arena_init(&p->arena, 0, 0);
    http_msg_init(&p->msg, &p->arena);
}

static inline void parse_step(struct parsed *p, struct h1_scan *scan, struct str in,
                              const struct parse_args *args)
{
    char *copy = malloc(in.len ? in.len : 1);

    assert_non_null(copy);
    memcpy(copy, in.ptr, in.len);
    free(p->copy); /* the bytes move from call to call */
    p->copy = copy;
    in.ptr = copy;
    if (args->response)
        p->status = h1_parse_response(scan, in, args->limits, args->request_method, &p->msg,
                                      &p->head_bytes, &p->error, &p->error_at);
    else
        p->status = h1_parse_request(scan, in, args->limits, &p->msg, &p->head_bytes, &p->error,
                                     &p->error_at);
}

static inline void assert_str(struct str got, const char *expected)
{
    if (!str_eq(got, str_of(expected)))
        fail_msg("got \"%.*s\", expected \"%s\"", STR_FMT(got), expected);
}

static inline void assert_same_str(struct str a, struct str b)
{
    if (!str_eq(a, b))
        fail_msg("\"%.*s\" and \"%.*s\" differ", STR_FMT(a), STR_FMT(b));
}

static inline void assert_same_message(const struct http_msg *a, const struct http_msg *b)
{
    assert_int_equal(a->flags, b->flags);
    assert_int_equal(a->method, b->method);
    assert_int_equal(a->version, b->version);
    assert_int_equal(a->framing, b->framing);
    assert_int_equal(a->status, b->status);
    assert_int_equal(a->content_length, b->content_length);
    assert_same_str(a->method_text, b->method_text);
    assert_same_str(a->target, b->target);
    assert_same_str(a->reason, b->reason);
    assert_int_equal(a->field_count, b->field_count);
    for (uint32_t i = 0; i < a->field_count; i++) {
        assert_same_str(a->fields[i].name, b->fields[i].name);
        assert_same_str(a->fields[i].value, b->fields[i].value);
        assert_int_equal(a->fields[i].id, b->fields[i].id);
    }
}

/* The verdicts of two parses of the same bytes are one. */
static inline void assert_same_parse(const struct parsed *a, const struct parsed *b)
{
    assert_int_equal(a->status, b->status);
    if (a->status == 0) {
        assert_int_equal(a->head_bytes, b->head_bytes);
        assert_same_message(&a->msg, &b->msg);
    } else if (a->status != SP_EAGAIN) {
        assert_int_equal(a->error, b->error);
        assert_int_equal(a->error_at, b->error_at);
    }
}

/* Where the writer would put a raw line, it would write the same bytes without it. */
static inline void assert_raw_lines(const struct http_msg *m)
{
    for (uint32_t i = 0; i < m->field_count; i++) {
        const struct http_field *f = &m->fields[i];
        struct str raw = f->raw;

        if (!raw.ptr)
            continue;
        assert_int_equal(raw.len, f->name.len + f->value.len + 4);
        assert_same_str(str_make(raw.ptr, f->name.len), f->name);
        assert_same_str(str_make(raw.ptr + f->name.len + 2, f->value.len), f->value);
        assert_memory_equal(raw.ptr + f->name.len, ": ", 2);
        assert_memory_equal(raw.ptr + raw.len - 2, "\r\n", 2);
    }
}

/*
 * Parses `in` whole, then byte by byte, then in two pieces at every point, and checks that nothing
 * depends on the pieces. The result of the whole parse stays in *p.
 */
static inline void parse_all_ways(struct parsed *p, struct str in, const struct parse_args *args)
{
    struct h1_scan scan = {0};

    parsed_init(p);
    parse_step(p, &scan, in, args);
    if (p->status == 0)
        assert_raw_lines(&p->msg);
    for (size_t split = 0; split <= in.len; split++) {
        struct parsed q;

        scan = (struct h1_scan){0};
        parsed_init(&q);
        q.status = SP_EAGAIN;
        if (split == in.len) {
            for (size_t n = 0; n <= in.len && q.status == SP_EAGAIN; n++)
                parse_step(&q, &scan, str_make(in.ptr, n), args);
        } else {
            parse_step(&q, &scan, str_make(in.ptr, split), args);
            if (q.status == SP_EAGAIN)
                parse_step(&q, &scan, in, args);
        }
        assert_same_parse(p, &q);
        parsed_release(&q);
    }
}

static inline void parse_request(struct parsed *p, const char *text)
{
    const struct parse_args args = {.limits = &default_limits};

    parse_all_ways(p, str_of(text), &args);
}

static inline void parse_response(struct parsed *p, const char *text, enum http_method method)
{
    const struct parse_args args = {&default_limits, true, method};

    parse_all_ways(p, str_of(text), &args);
}

static inline void expect_refusal(const struct parsed *p, enum h1_error error)
{
    if (p->status != SP_EPROTO || p->error != error)
        fail_msg("status %d, error %d (%s), expected %d (%s)", p->status, p->error,
                 h1_error_text(p->error), error, h1_error_text(error));
}

static inline void refuse_request(const char *text, enum h1_error error)
{
    struct parsed p;

    parse_request(&p, text);
    expect_refusal(&p, error);
    parsed_release(&p);
}

static inline void refuse_response(const char *text, enum h1_error error)
{
    struct parsed p;

    parse_response(&p, text, HTTP_GET);
    expect_refusal(&p, error);
    parsed_release(&p);
}

static inline void accept_request(struct parsed *p, const char *text)
{
    parse_request(p, text);
    if (p->status != 0)
        fail_msg("status %d: %s at %zu in %s", p->status, h1_error_text(p->error), p->error_at,
                 text);
}

static inline void accept_response(struct parsed *p, const char *text, enum http_method method)
{
    parse_response(p, text, method);
    if (p->status != 0)
        fail_msg("status %d: %s at %zu in %s", p->status, h1_error_text(p->error), p->error_at,
                 text);
}

static inline struct str field_value(const struct http_msg *m, const char *name)
{
    uint32_t at = 0;
    struct http_field *f = http_msg_next(m, str_of(name), &at);

    return f ? f->value : STR_NULL;
}

#endif
