/*
 * The answers of `sallyport origin`.
 */
#include "base/clock.h"
#include "cmd/origin_conn.h"

#include <unistd.h>

#define LOCATION_BYTES 8192

/* --- heads ------------------------------------------------------------------------- */

static void put_field(struct origin_conn *c, struct str name, struct str value)
{
    buf_put(&c->out, name);
    buf_put(&c->out, value);
    buf_put(&c->out, STR("\r\n"));
}

static void put_length(struct origin_conn *c, uint64_t length)
{
    buf_put(&c->out, STR("Content-Length: "));
    buf_put_u64(&c->out, length);
    buf_put(&c->out, STR("\r\n"));
}

static void begin_head(struct origin_conn *c, unsigned status)
{
    buf_put(&c->out, STR("HTTP/1.1 "));
    buf_put_u64(&c->out, status);
    buf_put_char(&c->out, ' ');
    buf_put(&c->out, http_reason_of(status));
    put_field(c, STR("\r\nServer: sallyport-origin\r\nDate: "), origin_worker_date(c->worker));
}

static void end_head(struct origin_conn *c)
{
    if (!c->keep_alive) {
        buf_put(&c->out, STR("Connection: close\r\n"));
        c->closing = true;
    } else if (c->version < 11) {
        buf_put(&c->out, STR("Connection: keep-alive\r\n"));
    }
    buf_put(&c->out, STR("\r\n"));
}

/* A short text as the whole answer, with one more field line unless it is empty. */
static void respond_text(struct origin_conn *c, unsigned status, struct str field, struct str value,
                         const char *why)
{
    struct str reason = http_reason_of(status);
    struct str detail = str_of(why);

    begin_head(c, status);
    if (field.len)
        put_field(c, field, value);
    put_field(c, STR("Content-Type: "), STR("text/plain; charset=utf-8"));
    put_length(c, reason.len + detail.len + (detail.len ? 3 : 1));
    end_head(c);
    if (c->no_content)
        return;
    buf_put(&c->out, reason);
    if (detail.len)
        buf_put(&c->out, STR(": "));
    buf_put(&c->out, detail);
    buf_put_char(&c->out, '\n');
}

static void respond_status(struct origin_conn *c, unsigned status)
{
    respond_text(c, status, STR_NULL, STR_NULL, NULL);
}

void origin_respond_error(struct origin_conn *c, unsigned status, const char *why)
{
    c->keep_alive = false;
    c->linger = true;
    c->no_content = false;
    respond_text(c, status, STR_NULL, STR_NULL, why);
}

/* --- synthetic bodies ------------------------------------------------------------------ */

static void respond_synthetic(struct origin_conn *c, uint64_t size, bool had_body)
{
    begin_head(c, 200);
    put_field(c, STR("Content-Type: "), STR("text/plain"));
    put_length(c, size);
    if (had_body) {
        buf_put(&c->out, STR("X-Received-Bytes: "));
        buf_put_u64(&c->out, c->body.payload_bytes);
        buf_put(&c->out, STR("\r\n"));
    }
    end_head(c);
    if (c->no_content || size == 0)
        return;
    if (size <= buf_room(&c->out)) {
        buf_put(&c->out, str_make(c->worker->server->pattern, (size_t)size));
        return;
    }
    c->source = ORIGIN_PATTERN;
    c->total = c->left = size;
}

void origin_respond_drained(struct origin_conn *c)
{
    respond_synthetic(c, c->body_size, true);
}

/* The size that a target asks for: "/size/N", or the configured one. */
static int synthetic_size(const struct origin_conn *c, struct str target, uint64_t *size)
{
    struct http_target parts;

    *size = c->worker->server->config.size;
    if (!str_starts(target, STR("/size/"))) {
        http_target_split(target, &parts);
        if (!str_starts(parts.path, STR("/size/")))
            return 0;
        target = parts.path;
    }
    target.len = str_chr(target, '?');
    if (str_to_u64(str_from(target, 6), size) != 0 || *size > INT64_MAX)
        return SP_ENOENT;
    return 0;
}

/* A body that nobody wants is not read: the connection ends with the answer. */
static void refuse_body(struct origin_conn *c, bool has_body)
{
    if (!has_body)
        return;
    c->keep_alive = false;
    c->linger = true;
}

static void handle_synthetic(struct origin_conn *c, const struct http_msg *m, bool has_body)
{
    uint64_t size;

    if (synthetic_size(c, m->target, &size) != 0) {
        refuse_body(c, has_body);
        respond_status(c, 404);
        return;
    }
    if (!has_body) {
        respond_synthetic(c, size, false);
        return;
    }
    c->body_size = size;
    c->state = ORIGIN_BODY;
    h1_body_init(&c->body, (enum http_framing)m->framing, m->content_length);
    if (m->flags & HTTP_MSG_EXPECT_CONTINUE)
        buf_put(&c->out, STR("HTTP/1.1 100 Continue\r\n\r\n"));
}

/* --- files ------------------------------------------------------------------------------- */

static void put_version(struct origin_conn *c, const struct origin_file *f)
{
    char date[CLOCK_HTTP_DATE_BYTES];

    clock_http_date(f->mtime_s > 0 ? (uint64_t)f->mtime_s * 1000000 : 0, date);
    put_field(c, STR("Last-Modified: "), str_of(date));
    put_field(c, STR("ETag: "), str_of(f->etag));
}

static void put_content_range(struct origin_conn *c, const struct origin_file *f,
                              const struct origin_slice *slice)
{
    buf_put(&c->out, STR("Content-Range: bytes "));
    if (slice) {
        buf_put_u64(&c->out, slice->first);
        buf_put_char(&c->out, '-');
        buf_put_u64(&c->out, slice->first + slice->length - 1);
    } else {
        buf_put_char(&c->out, '*');
    }
    buf_put_char(&c->out, '/');
    buf_put_u64(&c->out, f->size);
    buf_put(&c->out, STR("\r\n"));
}

/*
 * A small part is read into `out` and leaves with the head. False when the file has become shorter.
 */
static bool copy_part(struct origin_conn *c, int fd, const struct origin_slice *slice)
{
    size_t got = 0;

    while (got < slice->length) {
        ssize_t n =
            pread(fd, buf_end(&c->out), (size_t)slice->length - got, (off_t)(slice->first + got));

        if (n <= 0)
            return false;
        buf_commit(&c->out, (size_t)n);
        got += (size_t)n;
    }
    return true;
}

/* Takes over f->fd. */
static void respond_file(struct origin_conn *c, const struct http_msg *m,
                         const struct origin_file *f, struct str type)
{
    struct origin_slice slice = {.first = 0, .length = f->size};
    unsigned status = origin_evaluate(m, f, &slice);
    uint32_t out_tail = c->out.tail;

    begin_head(c, status);
    put_version(c, f);
    if (status == 200 || status == 206) {
        put_field(c, STR("Accept-Ranges: "), STR("bytes"));
        put_field(c, STR("Content-Type: "), type);
    }
    if (status == 206 || status == 416)
        put_content_range(c, f, status == 206 ? &slice : NULL);
    if (status == 304 || status == 412 || status == 416)
        slice.length = 0;
    if (status != 304)
        put_length(c, slice.length);
    end_head(c);
    if (c->no_content || slice.length == 0) {
        close(f->fd);
    } else if (slice.length > buf_room(&c->out)) {
        c->source = ORIGIN_FILE;
        c->file_fd = f->fd;
        c->file_offset = (off_t)slice.first;
        c->total = c->left = slice.length;
    } else {
        bool whole = copy_part(c, f->fd, &slice);

        close(f->fd);
        if (!whole) {
            c->out.tail = out_tail;
            respond_status(c, 500);
        }
    }
}

static void redirect_to_directory(struct origin_conn *c, struct str path, struct str query)
{
    char location[LOCATION_BYTES];
    ptrdiff_t n = origin_encode_path(path, location + 1, sizeof(location) - 3);
    size_t len;

    if (n < 0 || query.len + 1 > sizeof(location) - 2 - (size_t)n) {
        respond_status(c, 414);
        return;
    }
    location[0] = '/';
    len = (size_t)n + 1;
    location[len++] = '/';
    if (query.len) {
        location[len++] = '?';
        memcpy(location + len, query.ptr, query.len);
        len += query.len;
    }
    if (len + ORIGIN_HEAD_ROOM > buf_room(&c->out)) {
        respond_status(c, 414);
        return;
    }
    respond_text(c, 301, STR("Location: "), str_make(location, len), NULL);
}

static void respond_listing(struct origin_conn *c, int dir_fd, struct str path)
{
    char shown[ORIGIN_PATH_BYTES + 1];
    char *html;
    size_t html_len;
    int status;

    shown[0] = '/';
    memcpy(shown + 1, path.ptr, path.len);
    status = origin_listing(dir_fd, str_make(shown, path.len + 1), &html, &html_len);
    if (status != 0) {
        respond_status(c, 503);
        return;
    }
    begin_head(c, 200);
    put_field(c, STR("Content-Type: "), STR("text/html; charset=utf-8"));
    put_field(c, STR("Cache-Control: "), STR("no-cache"));
    put_length(c, html_len);
    end_head(c);
    if (c->no_content) {
        free(html);
        return;
    }
    c->source = ORIGIN_MEMORY;
    c->memory = html;
    c->total = c->left = html_len;
}

/* Its index.html, or what is in it. Takes over dir->fd. */
static void respond_directory(struct origin_conn *c, const struct http_msg *m,
                              const struct origin_file *dir, struct str path)
{
    static const char index_name[] = "index.html";
    char name[ORIGIN_PATH_BYTES + sizeof(index_name)];
    struct origin_file file;

    memcpy(name, path.ptr, path.len);
    memcpy(name + path.len, index_name, sizeof(index_name));
    if (origin_open(&c->worker->server->dir, name, &file) == 0) {
        if (!file.is_directory) {
            respond_file(c, m, &file, origin_type(STR(index_name)));
            close(dir->fd);
            return;
        }
        close(file.fd);
    }
    respond_listing(c, dir->fd, path);
    close(dir->fd);
}

static void handle_file(struct origin_conn *c, const struct http_msg *m)
{
    char name[ORIGIN_PATH_BYTES];
    struct http_target target;
    struct origin_file file;
    struct str path = {.ptr = name};
    int status;

    http_target_split(m->target, &target);
    status = origin_path(target.path, name, &path.len);
    if (status != 0) {
        respond_status(c, status == SP_ETOOBIG ? 414 : 400);
        return;
    }
    status = origin_open(&c->worker->server->dir, name, &file);
    if (status != 0) {
        respond_status(c, status == SP_EPERM ? 403 : status == SP_ENOMEM ? 503 : 404);
    } else if (!file.is_directory) {
        respond_file(c, m, &file, origin_type(path));
    } else if (path.len && name[path.len - 1] != '/') {
        close(file.fd);
        redirect_to_directory(c, path, target.query);
    } else {
        respond_directory(c, m, &file, path);
    }
}

/* --- requests ------------------------------------------------------------------------------ */

void origin_respond(struct origin_conn *c, const struct http_msg *m)
{
    bool synthetic = c->worker->server->dir.fd < 0;
    bool has_body = m->framing == HTTP_FRAMING_CHUNKED ||
                    (m->framing == HTTP_FRAMING_LENGTH && m->content_length > 0);
    bool reads = m->method == HTTP_GET || m->method == HTTP_HEAD;

    c->version = m->version;
    c->no_content = m->method == HTTP_HEAD;
    c->keep_alive = !(m->flags & HTTP_MSG_CONN_CLOSE) &&
                    (m->version >= 11 || (m->flags & HTTP_MSG_CONN_KEEP_ALIVE));
    /* RFC 9112 section 3.2. */
    if (m->version >= 11 && !http_msg_find(m, HTTP_FIELD_HOST)) {
        origin_respond_error(c, 400, "there is no Host");
        return;
    }
    if (synthetic && (reads || m->method == HTTP_POST)) {
        handle_synthetic(c, m, has_body);
        return;
    }
    refuse_body(c, has_body);
    if (reads)
        handle_file(c, m);
    else
        respond_text(c, m->method == HTTP_OPTIONS ? 200 : 405, STR("Allow: "),
                     synthetic ? STR("GET, HEAD, POST, OPTIONS") : STR("GET, HEAD, OPTIONS"), NULL);
}
