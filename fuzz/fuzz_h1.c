/*
 * The HTTP/1 parser against itself: whatever the bytes, their pieces do not matter, what is written
 * comes back as it was, and nothing outside the input is read.
 *
 * The first byte of an input chooses what is parsed, the second how it is cut; the rest is the
 * stream.
 */
#include "http/h1.h"
#include "fuzz_check.h"

struct options {
    bool response;
    enum http_method request_method;
    struct h1_limits limits;
    size_t piece;
};

static struct options options_of(const uint8_t *data)
{
    struct options o = {
        .response = data[0] & 1,
        .request_method = data[0] & 2   ? HTTP_HEAD
                          : data[0] & 4 ? HTTP_CONNECT
                                        : HTTP_GET,
        .limits = {.max_head_bytes = data[0] & 8 ? 100 : 16384,
                   .max_fields = data[0] & 16 ? 3 : 101,
                   .accept_invalid = data[0] & 32},
        .piece = data[1] ? data[1] : 256,
    };

    return o;
}

/* The bytes in an allocation of their size, so that a read past them is seen. */
static struct str exact_copy(struct str s)
{
    char *copy = malloc(s.len ? s.len : 1);

    CHECK(copy);
    if (s.len)
        memcpy(copy, s.ptr, s.len);
    return str_make(copy, s.len);
}

struct parsed {
    struct arena arena;
    struct http_msg msg;
    struct str bytes;
    int status;
    size_t head_bytes, error_at;
    enum h1_error error;
};

static void parsed_init(struct parsed *p)
{
    memset(p, 0, sizeof *p);
    arena_init(&p->arena, 0, 0);
    http_msg_init(&p->msg, &p->arena);
}

static void parsed_release(struct parsed *p)
{
    arena_release(&p->arena);
    free((char *)p->bytes.ptr);
}

static void parse(struct parsed *p, struct h1_scan *scan, struct str in, const struct options *o)
{
    free((char *)p->bytes.ptr);
    p->bytes = exact_copy(in);
    if (o->response)
        p->status = h1_parse_response(scan, p->bytes, &o->limits, o->request_method, &p->msg,
                                      &p->head_bytes, &p->error, &p->error_at);
    else
        p->status = h1_parse_request(scan, p->bytes, &o->limits, &p->msg, &p->head_bytes, &p->error,
                                     &p->error_at);
    CHECK(p->status == 0 || p->status == SP_EAGAIN || p->status == SP_EPROTO ||
          p->status == SP_ETOOBIG);
}

static void check_same_content(const struct http_msg *a, const struct http_msg *b)
{
    CHECK(a->method == b->method && a->status == b->status && a->version == b->version);
    CHECK(a->framing == b->framing && a->content_length == b->content_length);
    CHECK(str_eq(a->method_text, b->method_text));
    CHECK(str_eq(a->target, b->target));
    CHECK(str_eq(a->reason, b->reason));
    CHECK(a->field_count == b->field_count);
    for (uint32_t i = 0; i < a->field_count; i++) {
        CHECK(str_eq(a->fields[i].name, b->fields[i].name));
        CHECK(str_eq(a->fields[i].value, b->fields[i].value));
        CHECK(a->fields[i].id == b->fields[i].id);
    }
}

/* Behind those that come before the start line. */
static bool has_empty_line(struct str in)
{
    while (in.len && (in.ptr[0] == '\r' || in.ptr[0] == '\n'))
        in = str_from(in, 1);
    for (size_t i = 0; i + 1 < in.len; i++)
        if (in.ptr[i] == '\n' &&
            (in.ptr[i + 1] == '\n' ||
             (in.ptr[i + 1] == '\r' && i + 2 < in.len && in.ptr[i + 2] == '\n')))
            return true;
    return false;
}

static void check_pieces(const struct parsed *whole, struct str in, const struct options *o)
{
    struct h1_scan scan = {0};
    struct parsed p;
    size_t have = 0;

    parsed_init(&p);
    do {
        have = in.len - have < o->piece ? in.len : have + o->piece;
        parse(&p, &scan, str_make(in.ptr, have), o);
    } while (p.status == SP_EAGAIN && have < in.len);
    /* A fault in a head that has not ended yet may be told early. */
    if (p.status == SP_EAGAIN && whole->status < 0 && whole->status != SP_EAGAIN) {
        CHECK(!has_empty_line(in) && whole->error != H1_TOO_LARGE);
        parsed_release(&p);
        return;
    }
    CHECK(p.status == whole->status);
    if (p.status == 0) {
        CHECK(p.head_bytes == whole->head_bytes);
        CHECK(p.msg.flags == whole->msg.flags && p.msg.version == whole->msg.version);
        check_same_content(&p.msg, &whole->msg);
    } else if (p.status != SP_EAGAIN) {
        CHECK(p.error == whole->error && p.error_at == whole->error_at);
        CHECK(p.error != H1_OK && p.error_at <= in.len);
    }
    parsed_release(&p);
}

static void check_message(const struct http_msg *m, const struct options *o)
{
    CHECK(m->version == 10 || m->version == 11);
    CHECK(m->field_count <= o->limits.max_fields);
    CHECK(!(m->flags & HTTP_MSG_HAS_LENGTH) || !(m->flags & HTTP_MSG_HAS_CODING));
    CHECK(!(m->flags & HTTP_MSG_HAS_LENGTH) == !http_msg_find(m, HTTP_FIELD_CONTENT_LENGTH));
    CHECK(!(m->flags & HTTP_MSG_HAS_CODING) == !http_msg_find(m, HTTP_FIELD_TRANSFER_ENCODING));
    CHECK(!(m->flags & HTTP_MSG_WEBSOCKET) || (m->flags & HTTP_MSG_CONN_UPGRADE));
    CHECK(m->framing != HTTP_FRAMING_CLOSE || o->response);
    for (uint32_t i = 0; i < m->field_count; i++) {
        const struct http_field *f = &m->fields[i];

        CHECK(http_is_token(f->name));
        CHECK(f->id == http_field_id_of(f->name));
        for (size_t k = 0; k < f->value.len; k++) {
            unsigned char c = (unsigned char)f->value.ptr[k];

            CHECK(c == '\t' || (c >= ' ' && c != 0x7f));
        }
    }
}

/* Everything that looks into values must stay inside them. */
static void check_readers(const struct http_msg *m)
{
    struct http_target t;

    http_target_split(m->target, &t);
    for (uint32_t i = 0; i < m->field_count; i++) {
        struct str value = m->fields[i].value, rest = value, item, name;
        char *out = malloc(value.len + 1);
        size_t n = 0;

        CHECK(out);
        while (http_list_next(&rest, &item))
            CHECK(item.len && item.ptr >= value.ptr &&
                  item.ptr + item.len <= value.ptr + value.len);
        rest = value;
        while (http_cookie_next(&rest, &name, &item))
            CHECK(item.ptr >= value.ptr && item.ptr + item.len <= value.ptr + value.len);
        http_query_param(value, '&', STR("a"), &item);
        http_is_authority(value);
        if (http_url_decode(value, true, out, &n) == 0)
            CHECK(n <= value.len);
        free(out);
    }
}

static struct str write_head(const struct http_msg *m)
{
    size_t n = h1_head_bytes(m);
    struct buf out = {.mem = malloc(n), .size = (uint32_t)n};
    struct buf small = {.mem = malloc(n), .size = (uint32_t)(n - 1)};

    CHECK(out.mem && small.mem);
    CHECK(h1_write_head(&out, m) == 0);
    CHECK(buf_len(&out) == n);
    CHECK(h1_write_head(&small, m) == SP_ETOOBIG);
    CHECK(buf_len(&small) == 0);
    free(small.mem);
    return buf_str(&out);
}

/* parse(write(m)) is m, and writes the same bytes. */
static void check_round_trip(const struct http_msg *m, const struct options *o)
{
    struct options wide = *o;
    struct h1_scan scan = {0};
    struct str first = write_head(m), second;
    struct parsed p;

    wide.limits.max_head_bytes = UINT32_MAX;
    parsed_init(&p);
    parse(&p, &scan, first, &wide);
    CHECK(p.status == 0 && p.head_bytes == first.len);
    check_same_content(m, &p.msg);
    second = write_head(&p.msg);
    CHECK(str_eq(first, second));
    free((char *)first.ptr);
    free((char *)second.ptr);
    http_msg_strip_hop_by_hop(&p.msg);
    CHECK(!http_msg_find(&p.msg, HTTP_FIELD_CONNECTION));
    first = write_head(&p.msg);
    free((char *)first.ptr);
    parsed_release(&p);
}

struct decoded {
    size_t used;
    uint64_t content_bytes;
    uint64_t content_sum; /* depends on the order of bytes, not on how they were cut */
    unsigned error;
    bool done;
};

static void decode(struct decoded *d, const struct http_msg *m, struct str in, size_t piece,
                   bool walk)
{
    struct h1_body b;
    bool stuck = false;

    memset(d, 0, sizeof *d);
    h1_body_init(&b, m->framing, m->content_length);
    while (d->used < in.len && !b.error && !stuck) {
        size_t n = in.len - d->used < piece ? in.len - d->used : piece;
        struct str copy = exact_copy(str_make(in.ptr + d->used, n)), rest = copy;

        stuck = true;
        while (rest.len) {
            struct str content = {rest.ptr, 0};
            ptrdiff_t used = walk ? h1_body_walk(&b, rest) : h1_body_next(&b, rest, &content);

            CHECK(used <= (ptrdiff_t)rest.len);
            if (used <= 0)
                break;
            CHECK(content.ptr >= rest.ptr && content.ptr + content.len <= rest.ptr + used);
            for (size_t i = 0; i < content.len; i++)
                d->content_sum = d->content_sum * 31 + (unsigned char)content.ptr[i];
            d->content_bytes += content.len;
            d->used += (size_t)used;
            rest = str_from(rest, (size_t)used);
            stuck = false;
        }
        free((char *)copy.ptr);
    }
    d->error = b.error;
    d->done = h1_body_is_done(&b);
    CHECK(!(d->done && d->error));
    if (walk)
        d->content_bytes = b.payload_bytes;
    else
        CHECK(d->content_bytes == b.payload_bytes);
}

static void check_body(const struct http_msg *m, struct str in, size_t piece)
{
    struct decoded whole, pieces, walked;

    decode(&whole, m, in, SIZE_MAX, false);
    decode(&pieces, m, in, piece, false);
    decode(&walked, m, in, piece, true);
    CHECK(whole.used == pieces.used && whole.error == pieces.error && whole.done == pieces.done);
    CHECK(whole.content_bytes == pieces.content_bytes && whole.content_sum == pieces.content_sum);
    CHECK(whole.error == walked.error && whole.done == walked.done);
    /* The walk refuses a piece with a fault as a whole. */
    CHECK(walked.used <= whole.used && (whole.used == walked.used || whole.error));
    CHECK(whole.error || whole.content_bytes == walked.content_bytes);
    CHECK(whole.done || whole.error || whole.used == in.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct h1_scan scan = {0};
    struct options o;
    struct parsed p;
    struct str in;

    if (size < 2)
        return 0;
    o = options_of(data);
    in = str_make((const char *)data + 2, size - 2);
    parsed_init(&p);
    parse(&p, &scan, in, &o);
    check_pieces(&p, in, &o);
    if (p.status == 0) {
        CHECK(p.head_bytes <= in.len && p.head_bytes <= o.limits.max_head_bytes);
        check_message(&p.msg, &o);
        check_readers(&p.msg);
        check_round_trip(&p.msg, &o);
        check_body(&p.msg, str_from(in, p.head_bytes), o.piece);
    }
    parsed_release(&p);
    return 0;
}
