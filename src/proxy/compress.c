#include "proxy/compress.h"

#include <stdlib.h>
#include <zlib.h>

/* A window of 16 KiB and HAProxy's level 1: about 140 KiB for each response under compression. */
#define LEVEL 1
#define WINDOW_BITS 14
#define MEMORY_LEVEL 7

#define LEAST_ROOM 64
#define LAST_CHUNK "0\r\n\r\n"

enum coding { CODING_NONE, CODING_GZIP, CODING_DEFLATE, CODING_RAW_DEFLATE, CODING_IDENTITY };

enum stage { STAGE_DATA, STAGE_LAST_CHUNK, STAGE_DONE };

struct compressor {
    enum coding coding;
    enum stage stage;
    bool unflushed; /* bytes were fed since the last flush */
    z_stream z;
};

/* --- which coding ------------------------------------------------------------------------ */

static bool has_algorithms(const struct cfg_compression *cfg)
{
    return cfg->gzip || cfg->deflate || cfg->raw_deflate || cfg->identity;
}

static const struct cfg_compression *settings_of(const struct proxy *frontend, const struct proxy *backend)
{
    if (backend && has_algorithms(&backend->cfg->compression))
        return &backend->cfg->compression;
    return frontend && has_algorithms(&frontend->cfg->compression) ? &frontend->cfg->compression : NULL;
}

/*
 * Old user agents claim codings that they cannot read: "Mozilla/4", except Internet Explorer 6 with service pack 2
 * and later ones, which are recognised by what stands where in their names.
 */
static bool is_old_agent(const struct http_msg *req)
{
    const struct http_field *f = http_msg_find(req, HTTP_FIELD_USER_AGENT);
    struct str agent = f ? f->value : STR_NULL;

    if (!str_starts(agent, STR("Mozilla/4")))
        return false;
    if (agent.len < 31 || !str_starts(str_from(agent, 25), STR("MSIE ")) || agent.ptr[30] < '6')
        return true;
    return agent.ptr[30] == '6' && !str_starts(str_from(agent, 51), STR("SV1"));
}

/* "0.750" in thousandths; what cannot be read counts as 1. */
static unsigned parse_quality(struct str s)
{
    unsigned q = 0, unit = 1000;

    if (!s.len || s.ptr[0] < '0' || s.ptr[0] > '9')
        return 1000;
    q = (unsigned)(s.ptr[0] - '0') * 1000;
    if (s.len > 1 && s.ptr[1] == '.')
        for (size_t i = 2; i < s.len && i < 5 && s.ptr[i] >= '0' && s.ptr[i] <= '9'; i++)
            q += (unsigned)(s.ptr[i] - '0') * (unit /= 10);
    return q > 1000 ? 1000 : q;
}

/* Splits "gzip;q=0.5" into the token and its quality. */
static struct str split_quality(struct str item, unsigned *quality)
{
    size_t end = str_chr(item, ';');
    struct str token = str_trim(str_make(item.ptr, end)), rest = str_from(item, end);

    *quality = 1000;
    while (rest.len) {
        struct str parameter;

        rest = str_from(rest, 1);
        end = str_chr(rest, ';');
        parameter = str_trim(str_make(rest.ptr, end));
        if (str_istarts(parameter, STR("q="))) {
            *quality = parse_quality(str_from(parameter, 2));
            break;
        }
        rest = str_from(rest, end);
    }
    return token;
}

static enum coding coding_named(const struct cfg_compression *cfg, struct str token)
{
    bool any = token.len && token.ptr[0] == '*';

    if (cfg->gzip && (any || str_ieq(token, STR("gzip"))))
        return CODING_GZIP;
    if (cfg->deflate && (any || str_ieq(token, STR("deflate"))))
        return CODING_DEFLATE;
    if (cfg->raw_deflate && (any || str_ieq(token, STR("deflate"))))
        return CODING_RAW_DEFLATE;
    if (cfg->identity && (any || str_ieq(token, STR("identity"))))
        return CODING_IDENTITY;
    return CODING_NONE;
}

/* The best by quality; the client's order decides among equals. */
static void choose_coding(const struct cfg_compression *cfg, struct str accept, enum coding *best, unsigned *best_q)
{
    struct str item;

    while (http_list_next(&accept, &item)) {
        unsigned quality;
        enum coding coding = coding_named(cfg, split_quality(item, &quality));

        if (coding != CODING_NONE && quality > *best_q) {
            *best = coding;
            *best_q = quality;
        }
    }
}

/* --- which responses ----------------------------------------------------------------------- */

static bool is_etag(struct str v)
{
    if (str_starts(v, STR("W/")))
        v = str_from(v, 2);
    if (v.len < 2 || v.ptr[0] != '"' || v.ptr[v.len - 1] != '"')
        return false;
    return str_chr(str_make(v.ptr + 1, v.len - 2), '"') == v.len - 2;
}

/* No ETag or a single well-formed one. */
static bool etag_permits(const struct http_msg *res)
{
    unsigned count = 0;

    for (uint32_t i = 0; i < res->field_count; i++)
        if (res->fields[i].id == HTTP_FIELD_ETAG && (count++ || !is_etag(res->fields[i].value)))
            return false;
    return true;
}

static bool cache_control_permits(const struct http_msg *res)
{
    for (uint32_t i = 0; i < res->field_count; i++)
        if (res->fields[i].id == HTTP_FIELD_CACHE_CONTROL && http_list_has(res->fields[i].value, STR("no-transform")))
            return false;
    return true;
}

static bool type_permits(const struct proxy *frontend, const struct proxy *backend, const struct http_msg *res)
{
    const struct http_field *f = http_msg_find(res, HTTP_FIELD_CONTENT_TYPE);
    const struct cfg_compression *cfg = NULL;

    if (backend && backend->cfg->compression.type_count)
        cfg = &backend->cfg->compression;
    else if (frontend && frontend->cfg->compression.type_count)
        cfg = &frontend->cfg->compression;
    if (!f)
        return !cfg;
    if (str_istarts(f->value, STR("multipart")))
        return false;
    for (int i = 0; cfg && i < cfg->type_count; i++)
        if (str_istarts(f->value, str_of(cfg->types[i])))
            return true;
    return !cfg;
}

static bool response_permits(const struct proxy *frontend, const struct proxy *backend, const struct http_msg *req,
                             const struct http_msg *res)
{
    if (req->version < 11 || res->version < 11 || req->method == HTTP_HEAD || res->status < 200 || res->status > 203)
        return false;
    /* A body that ends with the connection is left alone, and an empty one has nothing to gain. */
    if (res->framing != HTTP_FRAMING_CHUNKED && (res->framing != HTTP_FRAMING_LENGTH || !res->content_length))
        return false;
    return !http_msg_find(res, HTTP_FIELD_CONTENT_ENCODING) && cache_control_permits(res) && etag_permits(res) &&
           type_permits(frontend, backend, res);
}

/* --- the response's fields ------------------------------------------------------------------- */

/*
 * Index of the last Vary field, which our word is added to; field_count when there is none and a field is to be added;
 * UINT32_MAX when the word is there already.
 */
static uint32_t vary_place(const struct http_msg *res)
{
    uint32_t last = res->field_count;

    for (uint32_t i = 0; i < res->field_count; i++) {
        if (res->fields[i].id != HTTP_FIELD_VARY)
            continue;
        if (http_list_has(res->fields[i].value, STR("Accept-Encoding")))
            return UINT32_MAX;
        last = i;
    }
    return last;
}

static int add_fields(struct http_msg *res, bool add_vary, enum coding coding)
{
    uint32_t count = res->field_count;
    int rc = 0;

    if (!http_msg_find(res, HTTP_FIELD_TRANSFER_ENCODING))
        rc = http_msg_add(res, STR("transfer-encoding"), STR("chunked"));
    if (rc == 0 && add_vary)
        rc = http_msg_add(res, STR("vary"), STR("Accept-Encoding"));
    if (rc == 0 && coding != CODING_IDENTITY)
        rc = http_msg_add(res, STR("content-encoding"), coding == CODING_GZIP ? STR("gzip") : STR("deflate"));
    if (rc != 0)
        res->field_count = count;
    return rc;
}

/* All or nothing: what can fail comes first. */
static int change_fields(struct http_msg *res, enum coding coding)
{
    uint32_t vary = vary_place(res), count = res->field_count;
    struct http_field *etag = http_msg_find(res, HTTP_FIELD_ETAG);
    const char *vary_value = NULL, *etag_value = NULL;
    int rc;

    if (vary < count) {
        vary_value = arena_printf(res->arena, "%.*s%sAccept-Encoding", STR_FMT(res->fields[vary].value),
                                  res->fields[vary].value.len ? "," : "");
        if (!vary_value)
            return SP_ENOMEM;
    }
    if (etag && etag->value.ptr[0] == '"') {
        etag_value = arena_printf(res->arena, "W/%.*s", STR_FMT(etag->value));
        if (!etag_value)
            return SP_ENOMEM;
    }
    rc = add_fields(res, vary == count, coding);
    if (rc != 0)
        return rc;
    if (vary_value)
        http_msg_set_value(res, &res->fields[vary], str_of(vary_value));
    if (etag_value)
        http_msg_set_value(res, http_msg_find(res, HTTP_FIELD_ETAG), str_of(etag_value));
    http_msg_del_id(res, HTTP_FIELD_CONTENT_LENGTH);
    res->flags &= ~(uint32_t)HTTP_MSG_HAS_LENGTH;
    res->flags |= HTTP_MSG_HAS_CODING;
    res->framing = HTTP_FRAMING_CHUNKED;
    return 0;
}

/* --- the stream --------------------------------------------------------------------------------- */

static struct compressor *compressor_new(enum coding coding)
{
    struct compressor *c = calloc(1, sizeof *c);
    int bits = coding == CODING_GZIP ? WINDOW_BITS + 16 : coding == CODING_RAW_DEFLATE ? -WINDOW_BITS : WINDOW_BITS;

    if (!c)
        return NULL;
    c->coding = coding;
    if (coding != CODING_IDENTITY &&
        deflateInit2(&c->z, LEVEL, Z_DEFLATED, bits, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK) {
        free(c);
        return NULL;
    }
    return c;
}

void compress_free(struct compressor *c)
{
    if (!c)
        return;
    if (c->coding != CODING_IDENTITY)
        deflateEnd(&c->z);
    free(c);
}

int compress_start(const struct proxy *frontend, const struct proxy *backend, const struct http_msg *req,
                   struct str accept_encoding, struct http_msg *res, struct compressor **out)
{
    const struct cfg_compression *cfg = settings_of(frontend, backend);
    enum coding coding = CODING_NONE;
    unsigned quality = 0;
    struct compressor *c;
    int rc;

    *out = NULL;
    if (!cfg || is_old_agent(req))
        return 0;
    choose_coding(cfg, accept_encoding, &coding, &quality);
    if (coding == CODING_NONE && cfg->identity)
        coding = CODING_IDENTITY;
    if (coding == CODING_NONE || !response_permits(frontend, backend, req, res))
        return 0;
    c = compressor_new(coding);
    if (!c)
        return SP_ENOMEM;
    rc = change_fields(res, coding);
    if (rc != 0) {
        compress_free(c);
        return rc;
    }
    *out = c;
    return 0;
}

bool compress_offload(const struct proxy *frontend, const struct proxy *backend, const struct http_msg *req)
{
    const struct cfg_compression *cfg = settings_of(frontend, backend);
    enum coding coding = CODING_NONE;
    unsigned quality = 0;

    if (!cfg || is_old_agent(req))
        return false;
    if (!(backend && backend->cfg->compression.offload) && !(frontend && frontend->cfg->compression.offload))
        return false;
    for (uint32_t i = 0; i < req->field_count; i++)
        if (req->fields[i].id == HTTP_FIELD_ACCEPT_ENCODING)
            choose_coding(cfg, req->fields[i].value, &coding, &quality);
    return coding != CODING_NONE;
}

/* Room for a chunk's data when `digits` are set apart for its size: digits, line end, data, line end. */
static size_t chunk_room(const struct buf *out, unsigned *digits)
{
    size_t room = buf_room(out);

    *digits = room < 0x100 ? 2 : room < 0x10000 ? 4 : 8;
    return room - *digits - 4;
}

/* Frames `len` bytes that stand behind the place that was kept for the size. */
static void chunk_close(struct buf *out, unsigned digits, size_t len)
{
    char *at = buf_end(out);
    char head[16];
    int head_len = snprintf(head, sizeof head, "%zx\r\n", len);

    if ((unsigned)head_len != digits + 2)
        memmove(at + head_len, at + digits + 2, len);
    memcpy(at, head, (size_t)head_len);
    memcpy(at + head_len + len, "\r\n", 2);
    buf_commit(out, (size_t)head_len + len + 2);
}

/* One call of zlib into one chunk. *full tells that output may be pending. */
static int deflate_chunk(struct compressor *c, struct str in, size_t *taken, int flush, struct buf *out, bool *full)
{
    unsigned digits;
    size_t room = chunk_room(out, &digits), len;
    int rc;

    /* zlib reads the input only; its interface predates const. */
    c->z.next_in = (Bytef *)(uintptr_t)in.ptr;
    c->z.avail_in = in.len < UINT32_MAX ? (uInt)in.len : UINT32_MAX;
    c->z.next_out = (Bytef *)buf_end(out) + digits + 2;
    c->z.avail_out = (uInt)room;
    rc = deflate(&c->z, flush);
    if (taken)
        *taken = (size_t)(c->z.next_in - (const Bytef *)(uintptr_t)in.ptr);
    len = room - c->z.avail_out;
    *full = c->z.avail_out == 0;
    if (len)
        chunk_close(out, digits, len);
    return rc;
}

ptrdiff_t compress_feed(struct compressor *c, struct str in, struct buf *out)
{
    size_t taken = 0;

    if (!in.len || buf_room(out) < LEAST_ROOM)
        return 0;
    if (c->coding == CODING_IDENTITY) {
        unsigned digits;
        size_t room = chunk_room(out, &digits);

        taken = in.len < room ? in.len : room;
        memcpy(buf_end(out) + digits + 2, in.ptr, taken);
        chunk_close(out, digits, taken);
        return (ptrdiff_t)taken;
    }
    /* A full buffer with input left ends it; so does input that zlib keeps to itself for now. */
    while (taken < in.len && buf_room(out) >= LEAST_ROOM) {
        size_t n;
        bool full;
        int rc = deflate_chunk(c, str_from(in, taken), &n, Z_NO_FLUSH, out, &full);

        if (rc != Z_OK && rc != Z_BUF_ERROR)
            return SP_EIO;
        taken += n;
        c->unflushed = true;
    }
    return (ptrdiff_t)taken;
}

int compress_flush(struct compressor *c, struct buf *out)
{
    bool full = true;

    if (c->coding == CODING_IDENTITY || !c->unflushed || c->stage != STAGE_DATA)
        return 0;
    while (full) {
        int rc;

        if (buf_room(out) < LEAST_ROOM)
            return SP_EAGAIN;
        rc = deflate_chunk(c, STR_NULL, NULL, Z_SYNC_FLUSH, out, &full);
        if (rc != Z_OK && rc != Z_BUF_ERROR)
            return SP_EIO;
    }
    c->unflushed = false;
    return 0;
}

int compress_finish(struct compressor *c, struct buf *out)
{
    while (c->stage == STAGE_DATA) {
        bool full;
        int rc = Z_STREAM_END;

        if (c->coding != CODING_IDENTITY) {
            if (buf_room(out) < LEAST_ROOM)
                return SP_EAGAIN;
            rc = deflate_chunk(c, STR_NULL, NULL, Z_FINISH, out, &full);
        }
        if (rc == Z_STREAM_END)
            c->stage = STAGE_LAST_CHUNK;
        else if (rc != Z_OK && rc != Z_BUF_ERROR)
            return SP_EIO;
    }
    if (c->stage == STAGE_LAST_CHUNK) {
        if (buf_put(out, STR(LAST_CHUNK)) != 0)
            return SP_EAGAIN;
        c->stage = STAGE_DONE;
    }
    return 0;
}
