#include "http_test.h"

/* What came out of decoding a body in pieces. */
struct decoded {
    char content[4096];
    size_t content_len;
    size_t used;
    enum h1_error error;
    bool done;
};

/*
 * Feeds `in` in pieces of `piece` bytes (0: whole), each in an allocation of its size, to
 * h1_body_next, and the same to h1_body_walk.
 */
static void decode(struct decoded *d, enum http_framing framing, uint64_t length, struct str in,
                   size_t piece)
{
    struct h1_body b, walk;
    size_t walked = 0;
    bool stuck = false;

    memset(d, 0, sizeof *d);
    h1_body_init(&b, framing, length);
    h1_body_init(&walk, framing, length);
    while (d->used < in.len && !stuck && !d->error) {
        size_t n = in.len - d->used;
        char *copy;
        struct str rest;

        if (piece && n > piece)
            n = piece;
        copy = malloc(n);
        assert_non_null(copy);
        memcpy(copy, in.ptr + d->used, n);
        rest = str_make(copy, n);
        stuck = true;
        while (rest.len) {
            struct str payload;
            ptrdiff_t used = h1_body_next(&b, rest, &payload);

            if (used < 0) {
                assert_int_equal(used, SP_EPROTO);
                assert_int_equal(h1_body_next(&b, rest, &payload), SP_EPROTO);
                d->error = (enum h1_error)b.error;
                break;
            }
            assert_true(payload.ptr >= rest.ptr && payload.ptr + payload.len <= rest.ptr + used);
            memcpy(d->content + d->content_len, payload.ptr, payload.len);
            d->content_len += payload.len;
            d->used += (size_t)used;
            if (!used)
                break;
            rest = str_from(rest, (size_t)used);
            stuck = false;
        }
        while (walked < d->used) {
            ptrdiff_t used = h1_body_walk(&walk, str_make(in.ptr + walked, d->used - walked));

            assert_true(used > 0);
            walked += (size_t)used;
        }
        free(copy);
    }
    d->done = h1_body_is_done(&b);
    assert_int_equal(walked, d->used);
    assert_int_equal(walk.state, b.state);
    assert_int_equal(walk.payload_bytes, b.payload_bytes);
    assert_int_equal(b.payload_bytes, d->content_len);
    if (d->error) {
        assert_int_equal(h1_body_walk(&walk, str_from(in, walked)), SP_EPROTO);
        assert_int_equal(walk.error, d->error);
    }
}

/* Whole, and in pieces of every size; the last stays in *d. */
static void decode_all_ways(struct decoded *d, enum http_framing framing, uint64_t length,
                            struct str in)
{
    struct decoded whole;

    decode(&whole, framing, length, in, 0);
    for (size_t piece = 1; piece <= in.len; piece++) {
        decode(d, framing, length, in, piece);
        assert_int_equal(d->used, whole.used);
        assert_int_equal(d->error, whole.error);
        assert_int_equal(d->done, whole.done);
        assert_same_str(str_make(d->content, d->content_len),
                        str_make(whole.content, whole.content_len));
    }
    *d = whole;
}

static void accept_chunked(const char *text, const char *content, size_t left)
{
    struct decoded d;

    decode_all_ways(&d, HTTP_FRAMING_CHUNKED, 0, str_of(text));
    assert_string_equal(h1_error_text(d.error), h1_error_text(H1_OK));
    assert_true(d.done);
    assert_str(str_make(d.content, d.content_len), content);
    assert_int_equal(strlen(text) - d.used, left);
}

static void refuse_chunked(struct str in, enum h1_error error)
{
    struct decoded d;

    decode_all_ways(&d, HTTP_FRAMING_CHUNKED, 0, in);
    if (d.error != error)
        fail_msg("%.*s: %s", STR_FMT(in), h1_error_text(d.error));
    assert_false(d.done);
}

static void test_plain(void **state)
{
    struct decoded d;

    decode_all_ways(&d, HTTP_FRAMING_LENGTH, 5, STR("helloGET /"));
    assert_str(str_make(d.content, d.content_len), "hello");
    assert_int_equal(d.used, 5);
    assert_true(d.done);
    decode_all_ways(&d, HTTP_FRAMING_LENGTH, 50, STR("hello"));
    assert_int_equal(d.used, 5);
    assert_false(d.done);
    decode_all_ways(&d, HTTP_FRAMING_LENGTH, 0, STR("x"));
    assert_int_equal(d.used, 0);
    assert_true(d.done);
    decode_all_ways(&d, HTTP_FRAMING_NONE, 7, STR("x"));
    assert_int_equal(d.used, 0);
    assert_true(d.done);
    decode_all_ways(&d, HTTP_FRAMING_CLOSE, 0, STR("all of it"));
    assert_int_equal(d.used, 9);
    assert_false(d.done);
}

static void test_chunked(void **state)
{
    accept_chunked("0\r\n\r\n", "", 0);
    accept_chunked("0\r\n\r\nGET ", "", 4);
    accept_chunked("5\r\nhello\r\n0\r\n\r\n", "hello", 0);
    accept_chunked("1\r\na\r\nA\r\n0123456789\r\n000\r\n\r\n", "a0123456789", 0);
    accept_chunked("00000000000000000000000000000002\r\n\r\n\r\n0\r\n\r\n", "\r\n", 0);
    accept_chunked("aA\r\n0123456789012345678901234567890123456789012345678901234567890123456789"
                   "0123456789012345678901234567890123456789012345678901234567890123456789"
                   "012345678901234567890123456789\r\n0\r\n\r\n",
                   "0123456789012345678901234567890123456789012345678901234567890123456789"
                   "0123456789012345678901234567890123456789012345678901234567890123456789"
                   "012345678901234567890123456789",
                   0);
    accept_chunked("1;a\r\nx\r\n0;b=c;d=\"e f\"\r\n\r\n", "x", 0);
    accept_chunked("1 ;a\r\nx\r\n0\t ; b = c\r\n\r\n", "x", 0);
    accept_chunked("1;\r\nx\r\n0;\xff\r\n\r\n", "x", 0);
    accept_chunked("0\r\nA: b\r\nX-Check:\tsum\r\nEmpty:\r\n\r\nrest", "", 4);
    accept_chunked("0\r\nHosts: b\r\nContent-Lengths: 1\r\n\r\n", "", 0);
}

static void test_bad_chunks(void **state)
{
    static const struct {
        struct str in;
        enum h1_error error;
    } cases[] = {
        {{"\r\n", 2}, H1_BAD_CHUNK_SIZE},
        {{"g\r\n", 3}, H1_BAD_CHUNK_SIZE},
        {{" 5\r\n", 4}, H1_BAD_CHUNK_SIZE},
        {{"-1\r\n", 4}, H1_BAD_CHUNK_SIZE},
        {{"+1\r\n", 4}, H1_BAD_CHUNK_SIZE},
        {{"0x1\r\n", 5}, H1_BAD_CHUNK_SIZE},
        {{";a\r\n", 4}, H1_BAD_CHUNK_SIZE},
        {{"1_0\r\n", 5}, H1_BAD_CHUNK_SIZE},
        {{"8000000000000000\r\n", 18}, H1_BAD_CHUNK_SIZE},
        {{"ffffffffffffffff\r\n", 18}, H1_BAD_CHUNK_SIZE},
        {{"10000000000000000\r\n", 19}, H1_BAD_CHUNK_SIZE},
        {{"100000000000000000000000000000005\r\n", 35}, H1_BAD_CHUNK_SIZE},
        {{"1\nx\r\n0\r\n\r\n", 11}, H1_BAD_CHUNK},
        {{"1\rx", 3}, H1_BAD_CHUNK},
        {{"1 \r\n", 4}, H1_BAD_CHUNK},
        {{"1 a\r\n", 5}, H1_BAD_CHUNK},
        {{"1;a\nx\r\n", 7}, H1_BAD_CHUNK},
        {{"1;a\rb\r\n", 7}, H1_BAD_CHUNK},
        {{"1;\x01\r\n", 5}, H1_BAD_CHUNK},
        {{"1;\0\r\n", 5}, H1_BAD_CHUNK},
        {{"1;\x7f\r\n", 5}, H1_BAD_CHUNK},
        {{"1;\"a\nb\"\r\n", 9}, H1_BAD_CHUNK},
        {{"1\r\nxy\r\n", 7}, H1_BAD_CHUNK},
        {{"1\r\nx\n0\r\n\r\n", 10}, H1_BAD_CHUNK},
        {{"1\r\nx\rY", 6}, H1_BAD_CHUNK},
        {{"1\r\nx0\r\n", 7}, H1_BAD_CHUNK},
        {{"0\r\n\n", 4}, H1_BAD_TRAILER},
        {{"0\r\n\rX", 5}, H1_BAD_TRAILER},
        {{"0\r\nX\r\n\r\n", 8}, H1_BAD_TRAILER},
        {{"0\r\nX : 1\r\n\r\n", 12}, H1_BAD_TRAILER},
        {{"0\r\n: 1\r\n\r\n", 10}, H1_BAD_TRAILER},
        {{"0\r\nX: 1\n\r\n", 10}, H1_BAD_TRAILER},
        {{"0\r\nX: 1\rY\r\n\r\n", 13}, H1_BAD_TRAILER},
        {{"0\r\nX: 1\r\n 2\r\n\r\n", 15}, H1_BAD_TRAILER},
        {{"0\r\nX: \0\r\n\r\n", 11}, H1_BAD_TRAILER},
        {{"0\r\nContent-length: 5\r\n\r\n", 24}, H1_BAD_TRAILER},
        {{"0\r\nA: b\r\nTransfer-Encoding: chunked\r\n\r\n", 39}, H1_BAD_TRAILER},
        {{"0\r\nHOST: a\r\n\r\n", 14}, H1_BAD_TRAILER},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuse_chunked(cases[i].in, cases[i].error);
}

/* The largest chunk, without the bytes. */
static void test_large_chunk(void **state)
{
    struct h1_body b;
    struct str payload;
    struct str in = STR("7fffffffffffffff\r\nabc");

    h1_body_init(&b, HTTP_FRAMING_CHUNKED, 0);
    assert_int_equal(h1_body_next(&b, in, &payload), in.len);
    assert_int_equal(payload.len, 3);
    assert_int_equal(b.remaining, INT64_MAX - 3);
    assert_false(h1_body_is_done(&b));
}

/* Content in front of a fault is delivered, and then the fault told. */
static void test_content_before_fault(void **state)
{
    struct h1_body b;
    struct str payload;
    struct str in = STR("3\r\nabcX");

    h1_body_init(&b, HTTP_FRAMING_CHUNKED, 0);
    assert_int_equal(h1_body_next(&b, in, &payload), 6);
    assert_str(payload, "abc");
    assert_int_equal(b.error, H1_OK);
    assert_int_equal(h1_body_next(&b, str_from(in, 6), &payload), SP_EPROTO);
    assert_int_equal(payload.len, 0);
    assert_int_equal(b.error, H1_BAD_CHUNK);
    assert_int_equal(h1_body_walk(&b, STR("\r\n")), SP_EPROTO);

    /* A relay that forwards what it walks over must not forward half of it. */
    h1_body_init(&b, HTTP_FRAMING_CHUNKED, 0);
    assert_int_equal(h1_body_walk(&b, in), SP_EPROTO);
    assert_int_equal(b.error, H1_BAD_CHUNK);
}

/* Content that went by another way. */
static void test_skip(void **state)
{
    struct h1_body b;

    h1_body_init(&b, HTTP_FRAMING_LENGTH, 10);
    h1_body_skip(&b, 4);
    assert_false(h1_body_is_done(&b));
    assert_int_equal(h1_body_walk(&b, STR("abc")), 3);
    h1_body_skip(&b, 3);
    assert_true(h1_body_is_done(&b));
    assert_int_equal(b.payload_bytes, 10);
    h1_body_init(&b, HTTP_FRAMING_CLOSE, 0);
    h1_body_skip(&b, 1u << 30);
    assert_false(h1_body_is_done(&b));
    assert_int_equal(b.payload_bytes, 1u << 30);
}

/* Decodes until it is refused; returns how many bytes that took. */
static size_t bytes_until_refused(struct str in, enum h1_error error)
{
    struct h1_body b;
    struct str payload;
    ptrdiff_t used, again;

    h1_body_init(&b, HTTP_FRAMING_CHUNKED, 0);
    used = h1_body_next(&b, in, &payload);
    assert_true(used > 0);
    again = h1_body_next(&b, str_from(in, (size_t)used), &payload);
    assert_int_equal(again, SP_EPROTO);
    assert_int_equal(b.error, error);
    return (size_t)used;
}

/* Lines without content are bounded. */
static void test_bounds(void **state)
{
    static char text[32768];
    struct h1_body b;
    struct str payload;
    ptrdiff_t used;

    memset(text, '0', sizeof text);
    assert_int_equal(bytes_until_refused(str_make(text, sizeof text), H1_BAD_CHUNK_SIZE), 1024);

    memset(text, 'a', sizeof text);
    memcpy(text, "1;", 2);
    assert_in_range(bytes_until_refused(str_make(text, sizeof text), H1_BAD_CHUNK), 1024, 1026);
    h1_body_init(&b, HTTP_FRAMING_CHUNKED, 0);
    used = h1_body_next(&b, str_make(text, 1000), &payload);
    assert_int_equal(used, 1000);
    assert_int_equal(h1_body_next(&b, STR("\r\nx\r\n0\r\n\r\n"), &payload), 10);
    assert_true(h1_body_is_done(&b));

    memset(text, 'a', sizeof text);
    memcpy(text, "0\r\na:", 5);
    assert_in_range(bytes_until_refused(str_make(text, sizeof text), H1_TOO_LARGE), 8192, 8200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_chunked),
        cmocka_unit_test(test_bad_chunks),
        cmocka_unit_test(test_large_chunk),
        cmocka_unit_test(test_content_before_fault),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_skip),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
