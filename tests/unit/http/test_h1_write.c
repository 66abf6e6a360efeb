#include "http_test.h"

/* Writes `m` into an allocation of exactly the bytes it needs and returns them NUL-terminated. */
static char *written(const struct http_msg *m)
{
    size_t n = h1_head_bytes(m);
    struct buf out = {.mem = malloc(n), .size = (uint32_t)n};
    char *text = malloc(n + 1);

    assert_non_null(out.mem);
    assert_non_null(text);
    assert_int_equal(h1_write_head(&out, m), 0);
    assert_int_equal(buf_len(&out), n);
    memcpy(text, out.mem, n);
    text[n] = '\0';
    /* Not one byte less will do, and nothing is written then. */
    for (uint32_t size = 0; size < n; size++) {
        struct buf small = {.mem = malloc(size + 1), .size = size};

        assert_non_null(small.mem);
        assert_int_equal(h1_write_head(&small, m), SP_ETOOBIG);
        assert_int_equal(buf_len(&small), 0);
        free(small.mem);
    }
    free(out.mem);
    return text;
}

static void assert_written(const struct http_msg *m, const char *expected)
{
    char *text = written(m);

    assert_string_equal(text, expected);
    free(text);
}

static void test_request(void **state)
{
    struct parsed p;
    const char *text = "GET /a?b HTTP/1.1\r\nHost: x\r\nA: 1\r\nB: \r\n\r\n";

    accept_request(&p, text);
    assert_written(&p.msg, text);
    http_msg_del(&p.msg, STR("a"));
    assert_int_equal(http_msg_add(&p.msg, STR("X-New"), STR("v")), 0);
    p.msg.target = STR("/other");
    assert_written(&p.msg, "GET /other HTTP/1.1\r\nHost: x\r\nB: \r\nX-New: v\r\n\r\n");
    assert_int_equal(http_msg_add_first(&p.msg, STR("First"), STR("")), 0);
    assert_int_equal(http_msg_set_value(&p.msg, http_msg_find(&p.msg, HTTP_FIELD_HOST), STR("y")),
                     0);
    assert_written(&p.msg, "GET /other HTTP/1.1\r\nFirst: \r\nHost: y\r\nB: \r\nX-New: v\r\n\r\n");
    parsed_release(&p);
}

static void test_normalised(void **state)
{
    struct parsed p;

    accept_request(
        &p, "\r\nPOST  http://h:80  HTTP/1.0\nhost:h \nA:\t1\r\nContent-Length: 05, 5\r\n\n");
    assert_written(&p.msg,
                   "POST http://h/ HTTP/1.0\r\nhost: h\r\nA: 1\r\nContent-Length: 5\r\n\r\n");
    parsed_release(&p);
    accept_response(&p, "HTTP/1.0 200\nA:1\n\n", HTTP_GET);
    assert_written(&p.msg, "HTTP/1.0 200 \r\nA: 1\r\n\r\n");
    parsed_release(&p);
}

static void test_response(void **state)
{
    struct arena arena;
    struct http_msg m;
    struct parsed p;
    const char *text = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";

    arena_init(&arena, 0, 0);
    http_msg_init(&m, &arena);
    m.flags = HTTP_MSG_RESPONSE;
    m.status = 404;
    m.reason = http_reason_of(404);
    assert_int_equal(http_msg_add(&m, STR("Content-Length"), STR("0")), 0);
    assert_written(&m, text);
    accept_response(&p, text, HTTP_GET);
    assert_written(&p.msg, text);
    parsed_release(&p);
    arena_release(&arena);
}

/* What is behind the data of a buffer is where the head goes, and what is before it stays. */
static void test_append(void **state)
{
    struct parsed p;
    char mem[64];
    struct buf out = {.mem = mem, .size = sizeof mem};

    memcpy(mem, "xyz", 3);
    buf_commit(&out, 3);
    accept_request(&p, "GET / HTTP/1.1\r\n\r\n");
    assert_int_equal(h1_write_head(&out, &p.msg), 0);
    assert_same_str(buf_str(&out), STR("xyzGET / HTTP/1.1\r\n\r\n"));
    parsed_release(&p);
}

static void test_chunk_size(void **state)
{
    for (unsigned shift = 0; shift < 64; shift++) {
        for (uint64_t add = 0; add < 3; add++) {
            uint64_t value = (1ull << shift) - 1 + add;
            char out[20], expected[32];
            size_t n = h1_put_chunk_size(out, value);

            snprintf(expected, sizeof expected, "%llx\r\n", (unsigned long long)value);
            assert_str(str_make(out, n), expected);
        }
    }
}

/* A message out of random parts comes back from writer and parser as it was. */
static void test_round_trips(void **state)
{
    static const char *const names[] = {"Host", "A", "X-Long-Name-Of-A-Field", "Cookie", "Accept"};
    static const char *const values[] = {"", "a", "some value, with; things=\"in it\"", "b c"};
    uint32_t seed = 12345;

    for (int round = 0; round < 2000; round++) {
        struct h1_scan scan = {0};
        const struct parse_args args = {.limits = &default_limits};
        struct arena arena;
        struct http_msg m;
        struct parsed p;
        char *text;
        unsigned n;

        arena_init(&arena, 0, 0);
        http_msg_init(&m, &arena);
        m.method_text = STR("GET");
        m.method = HTTP_GET;
        m.version = 11;
        m.target = STR("/some/path?query");
        seed = seed * 1103515245 + 12345;
        n = seed >> 16 & 31;
        for (unsigned i = 0; i < n; i++) {
            unsigned pick;

            seed = seed * 1103515245 + 12345;
            pick = seed >> 16;
            /* One Host at most. */
            if (pick % 5 == 0 && http_msg_find(&m, HTTP_FIELD_HOST))
                continue;
            assert_int_equal(http_msg_add(&m, str_of(names[pick % 5]),
                                          str_of(pick % 5 ? values[pick / 5 % 4] : "h")),
                             0);
        }
        text = written(&m);
        parsed_init(&p);
        parse_step(&p, &scan, str_of(text), &args);
        assert_int_equal(p.status, 0);
        assert_raw_lines(&p.msg);
        for (uint32_t i = 0; i < p.msg.field_count; i++)
            assert_non_null(p.msg.fields[i].raw.ptr);
        assert_same_message(&m, &p.msg);
        assert_written(&p.msg, text);
        free(text);
        parsed_release(&p);
        arena_release(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request),    cmocka_unit_test(test_normalised),
        cmocka_unit_test(test_response),   cmocka_unit_test(test_append),
        cmocka_unit_test(test_chunk_size), cmocka_unit_test(test_round_trips),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
