#include "load/engine.h"

#include "base/hash.h"

#include <stdlib.h>

#define HEAD_BYTES_FIRST 4096
/* The state of FNV-1a before the first byte: a hash goes on from its last value xored with this. */
#define HASH_BASIS 0xcbf29ce484222325u

static const struct h1_limits limits = {.max_head_bytes = LOAD_HEAD_BYTES_MAX, .max_fields = 1000};

void load_answer_begin(struct load_conn *c)
{
    c->head_len = 0;
    c->scan = (struct h1_scan){0};
    c->status = 0;
}

static struct load_memo *memo_of(struct load_conn *c)
{
    /* Neighbours in the array of requests fall into different ones. */
    return &c->thread->memos[((uintptr_t)c->request / sizeof(*c->request)) % LOAD_MEMOS];
}

static void note(struct load_memo *memo, enum http_method method, const struct load_head *head,
                 const char *bytes)
{
    memo->head.len = 0;
    if (head->len > LOAD_MEMO_BYTES)
        return;
    memo->method = method;
    memcpy(memo->bytes, bytes, head->len);
    memo->head = *head;
}

static bool known(const struct load_memo *memo, enum http_method method, struct str in)
{
    return memo->head.len && memo->method == method && in.len >= memo->head.len &&
           memcmp(memo->bytes, in.ptr, memo->head.len) == 0;
}

static bool stays_open(const struct http_msg *m)
{
    if (m->flags & HTTP_MSG_CONN_CLOSE || m->framing == HTTP_FRAMING_CLOSE || m->status == 101)
        return false;
    return m->version >= 11 || m->flags & HTTP_MSG_CONN_KEEP_ALIVE;
}

/* 0 with *head, SP_EAGAIN, SP_EPROTO with *why, SP_ENOMEM. */
static int parse(struct load_conn *c, struct str in, struct load_head *head, const char **why)
{
    struct arena *arena = &c->thread->arena;
    enum h1_error error = H1_OK;
    struct http_msg m;
    size_t len, error_at;
    int status;

    arena_reset(arena);
    http_msg_init(&m, arena);
    status =
        h1_parse_response(&c->scan, in, &limits, c->request->method, &m, &len, &error, &error_at);
    if (status == SP_ETOOBIG || (status == SP_EAGAIN && in.len >= LOAD_HEAD_BYTES_MAX)) {
        *why = "the head is too large";
        return SP_EPROTO;
    }
    if (status != 0) {
        *why = h1_error_text(error);
        return status;
    }
    c->scan = (struct h1_scan){0};
    *head = (struct load_head){
        .len = (uint32_t)len,
        .status = m.status,
        .framing = m.framing,
        .keep_alive = stays_open(&m),
        .content_length = m.content_length,
    };
    return 0;
}

static void begin_body(struct load_conn *c, const struct load_head *head)
{
    c->status = head->status;
    c->keep_alive = head->keep_alive;
    c->hash = HASH_BASIS;
    h1_body_init(&c->body, (enum http_framing)head->framing, head->content_length);
    c->state = LOAD_BODY;
}

static int take_body(struct load_conn *c, struct str in, size_t *extra, const char **why)
{
    bool hashed = c->request->hash_body;

    while (in.len && !h1_body_is_done(&c->body)) {
        struct str payload = STR_NULL;
        ptrdiff_t n;

        if (!hashed && c->body.framing == HTTP_FRAMING_LENGTH) {
            n = in.len < c->body.remaining ? (ptrdiff_t)in.len : (ptrdiff_t)c->body.remaining;
            h1_body_skip(&c->body, (uint64_t)n);
        } else {
            n = h1_body_next(&c->body, in, &payload);
        }
        if (n < 0) {
            *why = h1_error_text((enum h1_error)c->body.error);
            return SP_EPROTO;
        }
        if (hashed && payload.len)
            c->hash = hash_fnv1a64(payload, c->hash ^ HASH_BASIS);
        in = str_from(in, (size_t)n);
        if (n == 0)
            break;
    }
    *extra = in.len;
    return h1_body_is_done(&c->body) ? 0 : SP_EAGAIN;
}

/* Keeps the beginning of a head until the rest of it comes. */
static int keep(struct load_conn *c, struct str in)
{
    uint32_t size = c->head_size ? c->head_size : HEAD_BYTES_FIRST;
    char *grown;

    while (size < c->head_len + in.len)
        size *= 2;
    if (size != c->head_size) {
        grown = realloc(c->head, size);
        if (!grown)
            return SP_ENOMEM;
        c->head = grown;
        c->head_size = size;
    }
    memcpy(c->head + c->head_len, in.ptr, in.len);
    c->head_len += (uint32_t)in.len;
    return 0;
}

/* Passes over interim answers. 0 with *head and what follows it in *in. */
static int find_head(struct load_conn *c, struct str *in, struct load_head *head, const char **why)
{
    for (;;) {
        int status = parse(c, *in, head, why);

        if (status != 0)
            return status;
        if (head->status >= 200 || head->status == 101)
            return 0;
        *in = str_from(*in, head->len);
        if (in->len == 0)
            return SP_EAGAIN;
    }
}

/* A head of which earlier bytes were kept. */
static int take_kept(struct load_conn *c, struct str in, struct load_head *head, struct str *rest,
                     const char **why)
{
    /* The longest head, and no more than that of what may be a body. */
    size_t room = LOAD_HEAD_BYTES_MAX - c->head_len;
    size_t before = c->head_len, part = in.len < room ? in.len : room;
    struct str all;
    int status = keep(c, str_make(in.ptr, part));

    if (status != 0)
        return status;
    all = str_make(c->head, c->head_len);
    status = find_head(c, &all, head, why);
    if (status == SP_EAGAIN) {
        if (all.len < c->head_len)
            memmove(c->head, all.ptr, all.len);
        c->head_len = (uint32_t)all.len;
        if (part < in.len && all.len < LOAD_HEAD_BYTES_MAX)
            return take_kept(c, str_from(in, part), head, rest, why);
        return status;
    }
    if (status == 0) {
        /* Heads before this one and itself; the kept ones end before `in` began. */
        size_t end = (size_t)(all.ptr - c->head) + head->len;

        *rest = str_from(in, end - before);
        c->head_len = 0;
    }
    return status;
}

int load_answer_take(struct load_conn *c, struct str in, size_t *extra, const char **why)
{
    struct load_memo *memo;
    struct load_head head;
    struct str rest = in;
    int status;

    *extra = 0;
    if (c->state == LOAD_BODY)
        return take_body(c, in, extra, why);
    memo = memo_of(c);
    if (c->head_len == 0 && known(memo, c->request->method, in)) {
        begin_body(c, &memo->head);
        return take_body(c, str_from(in, memo->head.len), extra, why);
    }
    if (c->head_len) {
        status = take_kept(c, in, &head, &rest, why);
    } else {
        status = find_head(c, &rest, &head, why);
        if (status == SP_EAGAIN && rest.len) {
            int kept = keep(c, rest);

            return kept ? kept : status;
        }
        if (status == 0) {
            note(memo, c->request->method, &head, rest.ptr);
            rest = str_from(rest, head.len);
        }
    }
    if (status != 0)
        return status;
    begin_body(c, &head);
    return take_body(c, rest, extra, why);
}
