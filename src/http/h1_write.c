#include "http/h1.h"

#define VERSION "HTTP/1.1" /* HTTP/1.0 is as long */

static inline const char *version_text(const struct http_msg *m)
{
    return m->version == 10 ? "HTTP/1.0" : VERSION;
}

static size_t start_line_bytes(const struct http_msg *m)
{
    if (m->flags & HTTP_MSG_RESPONSE)
        return sizeof(VERSION " 200 ") - 1 + m->reason.len + 2;
    return m->method_text.len + 1 + m->target.len + sizeof(" " VERSION "\r\n") - 1;
}

size_t h1_head_bytes(const struct http_msg *m)
{
    size_t n = start_line_bytes(m) + 2;

    for (uint32_t i = 0; i < m->field_count; i++) {
        const struct http_field *f = &m->fields[i];

        n += f->raw.ptr ? f->raw.len : f->name.len + 2 + f->value.len + 2;
    }
    return n;
}

static inline char *put(char *out, const char *p, size_t n)
{
    if (n)
        memcpy(out, p, n);
    return out + n;
}

static char *put_start_line(char *out, const struct http_msg *m)
{
    if (!(m->flags & HTTP_MSG_RESPONSE)) {
        out = put(out, m->method_text.ptr, m->method_text.len);
        *out++ = ' ';
        out = put(out, m->target.ptr, m->target.len);
        *out++ = ' ';
        out = put(out, version_text(m), sizeof VERSION - 1);
        return put(out, "\r\n", 2);
    }
    out = put(out, version_text(m), sizeof VERSION - 1);
    *out++ = ' ';
    *out++ = (char)('0' + m->status / 100 % 10);
    *out++ = (char)('0' + m->status / 10 % 10);
    *out++ = (char)('0' + m->status % 10);
    *out++ = ' ';
    out = put(out, m->reason.ptr, m->reason.len);
    return put(out, "\r\n", 2);
}

int h1_write_head(struct buf *out, const struct http_msg *m)
{
    size_t room = buf_room(out);
    size_t n = start_line_bytes(m);
    char *p = buf_end(out);
    char *end = p + room;
    uint32_t i = 0;

    if (room < n + 2)
        return SP_ETOOBIG;
    end -= 2; /* the empty line */
    p = put_start_line(p, m);
    while (i < m->field_count) {
        const struct http_field *f = &m->fields[i++];

        if (f->raw.ptr) {
            /* Lines that were received side by side leave side by side. */
            struct str run = f->raw;

            while (i < m->field_count && m->fields[i].raw.ptr == run.ptr + run.len)
                run.len += m->fields[i++].raw.len;
            if ((size_t)(end - p) < run.len)
                return SP_ETOOBIG;
            p = put(p, run.ptr, run.len);
            continue;
        }
        if ((size_t)(end - p) < f->name.len + f->value.len + 4)
            return SP_ETOOBIG;
        p = put(p, f->name.ptr, f->name.len);
        p = put(p, ": ", 2);
        p = put(p, f->value.ptr, f->value.len);
        p = put(p, "\r\n", 2);
    }
    p = put(p, "\r\n", 2);
    buf_commit(out, (size_t)(p - buf_end(out)));
    return 0;
}

size_t h1_put_chunk_size(char *out, uint64_t bytes)
{
    unsigned digits = bytes ? (67u - (unsigned)__builtin_clzll(bytes)) / 4 : 1;

    for (unsigned i = digits; i-- > 0; bytes >>= 4)
        out[i] = "0123456789abcdef"[bytes & 15];
    out[digits] = '\r';
    out[digits + 1] = '\n';
    return digits + 2;
}
