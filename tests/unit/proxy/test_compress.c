#include "proxy_test.h"

#include "proxy/compress.h"

#include <zlib.h>

static int setup(void **state)
{
    static char *types[] = {"text/html", "text/plain"};
    struct test_backend *t;

    if (test_backend_setup(state) != 0)
        return -1;
    t = *state;
    t->cfg.compression.gzip = t->cfg.compression.deflate = true;
    t->cfg.compression.types = types;
    t->cfg.compression.type_count = 2;
    return 0;
}

/* Fields as "name: value|name: value". */
static void set_response(struct test_backend *t, const char *text, int64_t length)
{
    struct str rest = str_of(text);

    t->res.field_count = 0;
    t->res.framing = length < 0 ? HTTP_FRAMING_CHUNKED : HTTP_FRAMING_LENGTH;
    t->res.content_length = length < 0 ? 0 : (uint64_t)length;
    t->res.flags = HTTP_MSG_RESPONSE | (length < 0 ? HTTP_MSG_HAS_CODING : HTTP_MSG_HAS_LENGTH);
    while (rest.len) {
        size_t end = str_chr(rest, '|');
        struct str field = str_make(rest.ptr, end);
        size_t colon = str_chr(field, ':');

        assert_int_equal(http_msg_add(&t->res, str_make(field.ptr, colon), str_from(field, colon + 2)), 0);
        rest = str_from(rest, end + 1);
    }
}

/* What becomes of a response's fields; NULL when it is not compressed. */
static const char *decide(struct test_backend *t, const char *accept, const char *fields, int64_t length)
{
    struct compressor *c;
    uint8_t framing;

    set_response(t, fields, length);
    framing = t->res.framing;
    assert_int_equal(compress_start(NULL, &t->proxy, &t->req, str_of(accept), &t->res, &c), 0);
    if (!c) {
        assert_string_equal(test_fields(t, &t->res), fields);
        assert_int_equal(t->res.framing, framing);
        return NULL;
    }
    assert_int_equal(t->res.framing, HTTP_FRAMING_CHUNKED);
    assert_false(t->res.flags & HTTP_MSG_HAS_LENGTH);
    compress_free(c);
    return test_fields(t, &t->res);
}

/* The coding chosen for an Accept-Encoding, "" for identity, NULL for none. */
static const char *coding(struct test_backend *t, const char *accept)
{
    const struct http_field *f;

    if (!decide(t, accept, "content-type: text/html", 100))
        return NULL;
    f = http_msg_find(&t->res, HTTP_FIELD_CONTENT_ENCODING);
    return f ? f->value.ptr : "";
}

static void test_choice(void **state)
{
    struct test_backend *t = *state;

    assert_null(coding(t, ""));
    assert_null(coding(t, "br"));
    assert_null(coding(t, "gzip;q=0"));
    assert_null(coding(t, "identity"));
    assert_string_equal(coding(t, "gzip"), "gzip");
    assert_string_equal(coding(t, "GZIP"), "gzip");
    assert_string_equal(coding(t, "br, deflate"), "deflate");
    assert_string_equal(coding(t, "*"), "gzip");
    assert_string_equal(coding(t, "deflate, gzip"), "deflate"); /* the client's order among equals */
    assert_string_equal(coding(t, "*;q=0, gzip;q=0.750, deflate;q=0.500"), "gzip");
    assert_string_equal(coding(t, "*;q=0, gzip;q=0.500, deflate;q=0.750"), "deflate");
    assert_string_equal(coding(t, "gzip;x=y; q=0.1, deflate ; q=0.11"), "deflate");
    assert_string_equal(coding(t, "gzip;q=7, deflate;q=1"), "gzip");
    assert_string_equal(coding(t, "gzip;q=x"), "gzip");
    assert_string_equal(coding(t, "gzip;q="), "gzip");
    assert_null(coding(t, "gzip;q=0.000"));
    t->cfg.compression.gzip = false;
    assert_null(coding(t, "gzip"));
    t->cfg.compression.deflate = false;
    t->cfg.compression.raw_deflate = true;
    assert_string_equal(coding(t, "deflate"), "deflate");
    t->cfg.compression.identity = true;
    assert_string_equal(coding(t, ""), "");
    assert_string_equal(coding(t, "gzip"), "");
}

static void test_fields_changed(void **state)
{
    struct test_backend *t = *state;

    assert_string_equal(decide(t, "gzip", "Content-Type: text/html|Content-Length: 100|X: y", 100),
                        "Content-Type: text/html|X: y|transfer-encoding: chunked|vary: Accept-Encoding|content-encoding: gzip");
    assert_string_equal(decide(t, "gzip", "Transfer-Encoding: chunked|Content-Type: TEXT/PLAIN; a=b", -1),
                        "Transfer-Encoding: chunked|Content-Type: TEXT/PLAIN; a=b|vary: Accept-Encoding|content-encoding: gzip");
    assert_string_equal(decide(t, "gzip", "Vary: a|content-type: text/html|Vary: b|ETag: \"x\"", 1),
                        "Vary: a|content-type: text/html|Vary: b,Accept-Encoding|ETag: W/\"x\"|transfer-encoding: chunked|"
                        "content-encoding: gzip");
    assert_string_equal(decide(t, "gzip", "Vary: x, accept-encoding|Vary: b|content-type: text/html|ETag: W/\"x\"", 1),
                        "Vary: x, accept-encoding|Vary: b|content-type: text/html|ETag: W/\"x\"|transfer-encoding: chunked|"
                        "content-encoding: gzip");
    assert_string_equal(decide(t, "gzip", "Transfer-Encoding: chunked|Vary: |Content-Type: text/html", -1),
                        "Transfer-Encoding: chunked|Vary: Accept-Encoding|Content-Type: text/html|content-encoding: gzip");
    t->cfg.compression.identity = true;
    assert_string_equal(decide(t, "", "Content-Type: text/html|Content-Length: 5", 5),
                        "Content-Type: text/html|transfer-encoding: chunked|vary: Accept-Encoding");
}

static void test_responses_left_alone(void **state)
{
    struct test_backend *t = *state;
    static const char html[] = "content-type: text/html";

    assert_null(decide(t, "gzip", "content-type: image/png", 100));
    assert_null(decide(t, "gzip", "content-type: multipart/mixed", 100));
    assert_null(decide(t, "gzip", "x: y", 100));
    assert_null(decide(t, "gzip", "content-type: text/html|content-encoding: br", 100));
    assert_null(decide(t, "gzip", "content-type: text/html|cache-control: public, no-transform", 100));
    assert_null(decide(t, "gzip", "content-type: text/html|etag: x", 100));
    assert_null(decide(t, "gzip", "content-type: text/html|etag: \"x", 100));
    assert_null(decide(t, "gzip", "content-type: text/html|etag: \"x\"y\"", 100));
    assert_null(decide(t, "gzip", "content-type: text/html|etag: \"x\"|etag: \"x\"", 100));
    assert_null(decide(t, "gzip", html, 0));
    t->res.status = 204;
    assert_null(decide(t, "gzip", html, 100));
    t->res.status = 206;
    assert_null(decide(t, "gzip", html, 100));
    t->res.status = 203;
    assert_non_null(decide(t, "gzip", html, 100));
    t->res.version = 10;
    assert_null(decide(t, "gzip", html, 100));
    t->res.version = 11;
    t->req.version = 10;
    assert_null(decide(t, "gzip", html, 100));
    t->req.version = 20;
    t->req.method = HTTP_HEAD;
    assert_null(decide(t, "gzip", html, 100));
    t->req.method = HTTP_GET;
    assert_non_null(decide(t, "gzip", html, 100));
    t->cfg.compression.type_count = 0;
    assert_non_null(decide(t, "gzip", "x: y", 100));
    assert_null(decide(t, "gzip", "content-type: multipart/mixed", 100));
    set_response(t, html, 5);
    t->res.framing = HTTP_FRAMING_CLOSE;
    {
        struct compressor *c;

        assert_int_equal(compress_start(NULL, &t->proxy, &t->req, STR("gzip"), &t->res, &c), 0);
        assert_null(c);
    }
}

static void test_old_agents(void **state)
{
    static const struct {
        const char *agent;
        bool compressed;
    } cases[] = {
        {"curl/8", true},
        {"Mozilla/5.0 (X11)", true},
        {"Mozilla/4", false},
        {"Mozilla/4.0 (compatible; MSIE 5.5; Windows NT 5.1)", false},
        {"Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)", false},
        {"Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1; SV1)", true},
        {"Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 5.1)", true},
        {"Mozilla/4.0 (compatible; Opera 9.0; Windows)", false},
    };
    struct test_backend *t = *state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        http_msg_set(&t->req, STR("User-Agent"), str_of(cases[i].agent));
        assert_int_equal(decide(t, "gzip", "content-type: text/html", 9) != NULL, cases[i].compressed);
    }
}

/* The backend's algorithms and types go before the frontend's. */
static void test_settings(void **state)
{
    static char *json[] = {"application/json"};
    struct test_backend *t = *state;
    struct cfg_proxy fe_cfg = {.compression = {.deflate = true, .types = json, .type_count = 1}};
    struct proxy fe = {.cfg = &fe_cfg};
    struct compressor *c;

    set_response(t, "content-type: text/html", 5);
    assert_int_equal(compress_start(&fe, &t->proxy, &t->req, STR("gzip"), &t->res, &c), 0);
    assert_non_null(c);
    compress_free(c);
    t->cfg.compression.gzip = t->cfg.compression.deflate = false;
    set_response(t, "content-type: text/html", 5);
    assert_int_equal(compress_start(&fe, &t->proxy, &t->req, STR("gzip, deflate"), &t->res, &c), 0);
    assert_non_null(c); /* the backend's types still count */
    assert_str(http_msg_find(&t->res, HTTP_FIELD_CONTENT_ENCODING)->value, "deflate");
    compress_free(c);
    t->cfg.compression.type_count = 0;
    set_response(t, "content-type: application/json", 5);
    assert_int_equal(compress_start(&fe, &t->proxy, &t->req, STR("deflate"), &t->res, &c), 0);
    assert_non_null(c);
    compress_free(c);
    compress_free(NULL);
    fe_cfg.compression.deflate = false;
    set_response(t, "content-type: application/json", 5);
    assert_int_equal(compress_start(&fe, &t->proxy, &t->req, STR("deflate"), &t->res, &c), 0);
    assert_null(c);
}

static void test_offload(void **state)
{
    struct test_backend *t = *state;

    assert_false(compress_offload(NULL, &t->proxy, &t->req));
    t->cfg.compression.offload = true;
    assert_false(compress_offload(NULL, &t->proxy, &t->req)); /* nothing to hide */
    http_msg_set(&t->req, STR("Accept-Encoding"), STR("br"));
    assert_false(compress_offload(NULL, &t->proxy, &t->req));
    http_msg_add(&t->req, STR("Accept-Encoding"), STR("x, gzip"));
    assert_true(compress_offload(NULL, &t->proxy, &t->req));
    assert_true(compress_offload(&t->proxy, NULL, &t->req));
    http_msg_set(&t->req, STR("User-Agent"), STR("Mozilla/4.0 (x)"));
    assert_false(compress_offload(NULL, &t->proxy, &t->req));
}

/* --- the stream ------------------------------------------------------------------------------- */

struct sink {
    char *text; /* without the chunked coding */
    size_t len;
    bool ended;
};

/* Takes the chunked coding off; what is not exactly well-formed fails. */
static void unchunk(struct sink *s, struct buf *out)
{
    static const char digits[] = "0123456789abcdef";

    while (buf_len(out)) {
        struct str in = buf_str(out);
        size_t line = str_find(in, STR("\r\n")), size = 0;

        assert_false(s->ended);
        assert_in_range(line, 1, 8);
        for (size_t i = 0; i < line; i++) {
            const char *digit = strchr(digits, in.ptr[i]);

            assert_non_null(digit);
            size = size * 16 + (size_t)(digit - digits);
        }
        assert_true(in.len >= line + 2 + size + 2);
        assert_memory_equal(in.ptr + line + 2 + size, "\r\n", 2);
        if (size == 0)
            s->ended = true;
        s->text = realloc(s->text, s->len + size + 1);
        assert_non_null(s->text);
        memcpy(s->text + s->len, in.ptr + line + 2, size);
        s->len += size;
        buf_consume(out, line + 2 + size + 2);
    }
}

static struct compressor *start_stream(struct test_backend *t, const char *accept)
{
    struct compressor *c;

    set_response(t, "content-type: text/html", -1);
    assert_int_equal(compress_start(NULL, &t->proxy, &t->req, str_of(accept), &t->res, &c), 0);
    assert_non_null(c);
    return c;
}

static void feed_all(struct compressor *c, struct str in, struct buf *out, struct sink *s)
{
    while (in.len) {
        ptrdiff_t n = compress_feed(c, in, out);

        assert_true(n >= 0);
        if (n == 0)
            assert_true(buf_len(out) > 0);
        in = str_from(in, (size_t)n);
        unchunk(s, out);
    }
}

static void finish(struct compressor *c, struct buf *out, struct sink *s)
{
    int rc;

    do {
        rc = compress_finish(c, out);
        assert_true(rc == 0 || rc == SP_EAGAIN);
        unchunk(s, out);
    } while (rc == SP_EAGAIN);
    assert_true(s->ended);
    assert_int_equal(compress_finish(c, out), 0); /* nothing twice */
    assert_int_equal(buf_len(out), 0);
    compress_free(c);
}

/* What `s` decompresses to is `expected`. */
static void assert_inflates(const struct sink *s, struct str expected, int window_bits)
{
    z_stream z = {0};
    char *plain = malloc(expected.len + 1);

    assert_non_null(plain);
    assert_int_equal(inflateInit2(&z, window_bits), Z_OK);
    z.next_in = (Bytef *)s->text;
    z.avail_in = (uInt)s->len;
    z.next_out = (Bytef *)plain;
    z.avail_out = (uInt)expected.len + 1;
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(z.total_out, expected.len);
    assert_memory_equal(plain, expected.ptr, expected.len);
    assert_int_equal(z.avail_in, 0);
    inflateEnd(&z);
    free(plain);
}

/* Text that compresses well, and bytes that do not compress at all. */
static struct str make_body(struct test_backend *t, size_t len, bool random)
{
    char *body = arena_alloc(&t->arena, len);
    struct hash_rng rng = {{3, 4}};

    assert_non_null(body);
    for (size_t i = 0; i < len; i++)
        body[i] = random ? (char)hash_rng_next(&rng) : "the quick brown fox "[i % 20];
    return str_make(body, len);
}

static void test_streams(void **state)
{
    static const struct {
        const char *accept;
        bool raw;
        int window_bits;
    } codings[] = {{"gzip", false, 15 + 16}, {"deflate", false, 15}, {"deflate", true, -15}};
    static const size_t rooms[] = {64, 100, 300, 5000, 70000};
    struct test_backend *t = *state;
    char mem[70000];

    for (size_t k = 0; k < 3 * 5 * 2; k++) {
        struct buf out = {.mem = mem, .size = (uint32_t)rooms[k % 5]};
        struct str body = make_body(t, 100000, k % 2);
        struct sink s = {0};
        struct compressor *c;

        t->cfg.compression.raw_deflate = codings[k / 10].raw;
        t->cfg.compression.deflate = !codings[k / 10].raw;
        c = start_stream(t, codings[k / 10].accept);
        for (size_t at = 0; at < body.len; at += 3333)
            feed_all(c, str_make(body.ptr + at, body.len - at < 3333 ? body.len - at : 3333), &out, &s);
        finish(c, &out, &s);
        if (k % 2 == 0)
            assert_in_range(s.len, 100, 20000);
        assert_inflates(&s, body, codings[k / 10].window_bits);
        free(s.text);
    }
}

static void test_identity(void **state)
{
    struct test_backend *t = *state;
    char mem[256];
    struct buf out = {.mem = mem, .size = sizeof mem};
    struct str body = make_body(t, 50000, true);
    struct sink s = {0};
    struct compressor *c;

    t->cfg.compression.identity = true;
    c = start_stream(t, "");
    feed_all(c, body, &out, &s);
    assert_int_equal(compress_flush(c, &out), 0);
    finish(c, &out, &s);
    assert_int_equal(s.len, body.len);
    assert_memory_equal(s.text, body.ptr, body.len);
    free(s.text);
}

/* An answer that trickles can be read up to where it was flushed. */
static void test_flush(void **state)
{
    struct test_backend *t = *state;
    char mem[256], plain[5000];
    struct buf out = {.mem = mem, .size = sizeof mem};
    struct str body = make_body(t, 2000, true);
    struct sink s = {0};
    struct compressor *c = start_stream(t, "gzip");
    z_stream z = {0};
    size_t used = 0;

    assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
    z.next_out = (Bytef *)plain;
    z.avail_out = sizeof plain;
    assert_int_equal(compress_flush(c, &out), 0); /* nothing to flush yet */
    assert_int_equal(buf_len(&out), 0);
    for (int round = 1; round <= 2; round++) {
        int rc;

        feed_all(c, body, &out, &s);
        do {
            rc = compress_flush(c, &out);
            unchunk(&s, &out);
        } while (rc == SP_EAGAIN);
        assert_int_equal(rc, 0);
        assert_int_equal(compress_flush(c, &out), 0);
        assert_int_equal(buf_len(&out), 0);
        z.next_in = (Bytef *)s.text + used;
        z.avail_in = (uInt)(s.len - used);
        assert_int_equal(inflate(&z, Z_SYNC_FLUSH), Z_OK);
        used = s.len;
        assert_int_equal(z.total_out, body.len * (size_t)round);
    }
    inflateEnd(&z);
    finish(c, &out, &s);
    free(s.text);
}

static void test_little_room(void **state)
{
    struct test_backend *t = *state;
    char mem[128];
    struct buf out = {.mem = mem, .size = 63};
    struct sink s = {0};
    struct compressor *c = start_stream(t, "gzip");

    assert_int_equal(compress_feed(c, STR("hello"), &out), 0);
    assert_int_equal(compress_finish(c, &out), SP_EAGAIN);
    out.size = 128;
    assert_int_equal(compress_feed(c, STR(""), &out), 0);
    assert_int_equal(compress_feed(c, STR("hello"), &out), 5);
    finish(c, &out, &s);
    assert_inflates(&s, STR("hello"), 15 + 16);
    free(s.text);
    /* An empty body is a valid stream too. */
    s = (struct sink){0};
    c = start_stream(t, "gzip");
    finish(c, &out, &s);
    assert_inflates(&s, STR(""), 15 + 16);
    free(s.text);
}

/* Without memory the response stays as it was. */
static void test_no_memory(void **state)
{
    struct test_backend *t = *state;
    static const char fields[] = "content-type: text/html|vary: x|content-length: 7|etag: \"x\"";
    struct compressor *c;

    set_response(t, fields, 7);
    t->arena.limit_bytes = t->arena.used_bytes;
    t->arena.end = t->arena.cursor;
    assert_int_equal(compress_start(NULL, &t->proxy, &t->req, STR("gzip"), &t->res, &c), SP_ENOMEM);
    assert_null(c);
    t->arena.limit_bytes = 0;
    assert_string_equal(test_fields(t, &t->res), fields);
    assert_int_equal(t->res.framing, HTTP_FRAMING_LENGTH);
    /* The field list cannot grow. */
    set_response(t, "content-type: text/html|content-length: 7", 7);
    t->res.field_capacity = t->res.field_count + 1;
    t->arena.limit_bytes = t->arena.used_bytes;
    t->arena.end = t->arena.cursor;
    assert_int_equal(compress_start(NULL, &t->proxy, &t->req, STR("gzip"), &t->res, &c), SP_ENOMEM);
    assert_null(c);
    t->arena.limit_bytes = 0;
    assert_string_equal(test_fields(t, &t->res), "content-type: text/html|content-length: 7");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, test_backend_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_choice),   TEST(test_fields_changed), TEST(test_responses_left_alone), TEST(test_old_agents),
        TEST(test_settings), TEST(test_offload),        TEST(test_streams),              TEST(test_identity),
        TEST(test_flush),    TEST(test_little_room),    TEST(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
