#include "http/h1_internal.h"
#include "http/h1_scan.h"
#include "http/http_names.h"

static const char *const error_texts[] = {
    [H1_OK] = "no error",
    [H1_BAD_START_LINE] = "malformed start line",
    [H1_BAD_METHOD] = "malformed method",
    [H1_BAD_TARGET] = "malformed request target or one that the method does not take",
    [H1_BAD_VERSION] = "protocol version is not HTTP/1.x",
    [H1_BAD_FIELD_NAME] = "malformed field name",
    [H1_BAD_FIELD_VALUE] = "control byte in a field value",
    [H1_OBS_FOLD] = "obsolete line folding",
    [H1_BARE_CR] = "carriage return without line feed",
    [H1_BAD_LENGTH] = "malformed or contradictory Content-Length",
    [H1_LENGTH_AND_CODING] = "both Content-Length and Transfer-Encoding are present",
    [H1_BAD_CODING] = "malformed Transfer-Encoding, or one that does not end with chunked",
    [H1_UNKNOWN_CODING] = "transfer coding other than chunked",
    [H1_BAD_WEBSOCKET] = "WebSocket handshake without its key",
    [H1_BAD_HOST] = "Host is malformed, repeated or not the target's authority",
    [H1_TOO_MANY_FIELDS] = "too many fields",
    [H1_BAD_CHUNK_SIZE] = "malformed or overflowing chunk size",
    [H1_BAD_CHUNK] = "malformed chunk extension or missing line end",
    [H1_BAD_TRAILER] = "malformed or forbidden trailer field",
    [H1_TOO_LARGE] = "head or trailers too large",
};

const char *h1_error_text(enum h1_error e)
{
    return (size_t)e < sizeof error_texts / sizeof *error_texts ? error_texts[e] : "unknown error";
}

/* --- lines --------------------------------------------------------------------- */

/* Steps over CR LF or LF. SP_EAGAIN when more bytes must tell, `otherwise` when no line ends. */
static int end_line(struct h1_parser *s, enum h1_error otherwise)
{
    const char *p = s->p;

    if (p == s->end)
        return SP_EAGAIN;
    if (*p == '\r') {
        if (++p == s->end)
            return SP_EAGAIN;
        if (*p != '\n')
            return h1_refuse(s, H1_BARE_CR, s->p);
    } else if (*p != '\n') {
        return h1_refuse(s, otherwise, p);
    }
    s->p = p + 1;
    return 0;
}

/* RFC 9112 section 2.2: empty lines before a start line are ignored. */
static int skip_empty_lines(struct h1_parser *s)
{
    while (s->p < s->end && (*s->p == '\r' || *s->p == '\n')) {
        int status = end_line(s, H1_BAD_START_LINE);

        if (status < 0)
            return status;
    }
    return s->p == s->end ? SP_EAGAIN : 0;
}

static inline bool is_line_end(char c)
{
    return c == '\r' || c == '\n';
}

/* "HTTP/1." and one digit. */
static int parse_version(struct h1_parser *s)
{
    const char *p = s->p;
    size_t have = (size_t)(s->end - p);
    char minor;

    if (have < 8 || memcmp(p, "HTTP/1.", 7) != 0) {
        size_t n = have < 7 ? have : 7;

        for (size_t i = 0; i < n; i++) {
            if (p[i] != "HTTP/1."[i])
                return h1_refuse(
                    s, i == 0 && is_line_end(p[0]) ? H1_BAD_START_LINE : H1_BAD_VERSION, p + i);
        }
        return SP_EAGAIN;
    }
    minor = p[7];
    if (!http_char_is(minor, HTTP_CHAR_DIGIT))
        return h1_refuse(s, H1_BAD_VERSION, p + 7);
    s->m->version = minor == '0' ? 10 : 11;
    s->p = p + 8;
    return 0;
}

/* --- start lines ------------------------------------------------------------------ */

/* Two or more spaces are taken as one, as RFC 9112 section 3 allows. */
static int skip_spaces(struct h1_parser *s)
{
    while (s->p < s->end && *s->p == ' ')
        s->p++;
    return s->p == s->end ? SP_EAGAIN : 0;
}

static int parse_method(struct h1_parser *s)
{
    const char *p = s->p;

    while (p < s->end && http_char_is(*p, HTTP_CHAR_TOKEN))
        p++;
    if (p == s->end)
        return SP_EAGAIN;
    if (p == s->p || *p != ' ')
        return h1_refuse(s, is_line_end(*p) ? H1_BAD_START_LINE : H1_BAD_METHOD, p);
    s->m->method_text = str_make(s->p, (size_t)(p - s->p));
    s->m->method = (uint8_t)http_method_of(s->m->method_text);
    s->p = p + 1;
    return skip_spaces(s);
}

static int parse_target(struct h1_parser *s)
{
    const char *p = h1_scan_target(s->p, s->end, s->base);

    if (s->limits->accept_invalid) {
        while (p < s->end && (*p == '#' || (unsigned char)*p >= 0x80))
            p = h1_scan_target(p + 1, s->end, s->base);
    }
    if (p == s->end)
        return SP_EAGAIN;
    if (p == s->p || *p != ' ')
        return h1_refuse(s, is_line_end(*p) ? H1_BAD_START_LINE : H1_BAD_TARGET, p);
    s->m->target = str_make(s->p, (size_t)(p - s->p));
    s->p = p + 1;
    return skip_spaces(s);
}

static int parse_request_line(struct h1_parser *s)
{
    int status = parse_method(s);

    if (status == 0)
        status = parse_target(s);
    if (status == 0)
        status = parse_version(s);
    if (status == 0)
        status = end_line(s, H1_BAD_VERSION);
    if (status == 0 && (s->m->target.ptr[0] != '/' || s->m->method == HTTP_CONNECT))
        status = h1_check_target(s);
    return status;
}

static int parse_status(struct h1_parser *s)
{
    unsigned status = 0;

    for (int i = 0; i < 4; i++) {
        if (s->p == s->end)
            return SP_EAGAIN;
        if (i == 0) {
            if (*s->p++ != ' ')
                return h1_refuse(s, H1_BAD_VERSION, s->p - 1);
            continue;
        }
        if (!http_char_is(*s->p, HTTP_CHAR_DIGIT) || (i == 1 && *s->p == '0'))
            return h1_refuse(s, H1_BAD_START_LINE, s->p);
        status = status * 10 + (unsigned)(*s->p++ - '0');
    }
    s->m->status = (uint16_t)status;
    return 0;
}

static int parse_status_line(struct h1_parser *s)
{
    int status = parse_version(s);

    if (status == 0)
        status = parse_status(s);
    if (status < 0)
        return status;
    if (s->p == s->end)
        return SP_EAGAIN;
    s->m->reason = str_make(s->p, 0);
    if (*s->p == ' ') {
        const char *start = s->p + 1;

        s->p = h1_scan_value(start, s->end, s->base);
        s->m->reason = str_trim(str_make(start, (size_t)(s->p - start)));
    }
    return end_line(s, H1_BAD_START_LINE);
}

/* --- fields ------------------------------------------------------------------------ */

/*
 * The end of the name that starts at s->p. With accept_invalid, visible bytes that no name may
 * have are passed over and *drop tells that the field must not go further; white space and control
 * bytes are refused even then, for a peer that trims them would see another field.
 */
static int find_colon(struct h1_parser *s, const char **colon, bool *drop)
{
    const char *p = h1_scan_name(s->p, s->end, s->base);

    *drop = false;
    while (p < s->end && *p != ':' && s->limits->accept_invalid && (unsigned char)*p > ' ' &&
           *p != 0x7f) {
        *drop = true;
        p = h1_scan_name(p + 1, s->end, s->base);
    }
    if (p == s->end)
        return SP_EAGAIN;
    if (*p != ':' || p == s->p)
        return h1_refuse(s, H1_BAD_FIELD_NAME, p);
    *colon = p;
    return 0;
}

static inline bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* One "name: value" line at s->p, where at least one byte is known that does not end a line. */
static int parse_field(struct h1_parser *s)
{
    const char *line = s->p;
    const char *colon = NULL, *value, *stop, *value_end;
    struct http_msg *m = s->m;
    struct http_field *f;
    bool drop = false;
    int status = find_colon(s, &colon, &drop);

    if (status < 0)
        return status;
    value = colon + 1;
    while (value < s->end && is_blank(*value))
        value++;
    stop = h1_scan_value(value, s->end, s->base);
    s->p = stop;
    status = end_line(s, H1_BAD_FIELD_VALUE);
    if (status < 0 || drop)
        return status;
    value_end = stop;
    while (value_end > value && is_blank(value_end[-1]))
        value_end--;

    if (m->field_count >= s->limits->max_fields) {
        s->error = H1_TOO_MANY_FIELDS;
        s->at = line;
        return SP_ETOOBIG;
    }
    if (http_msg_reserve(m) < 0)
        return SP_ENOMEM;
    f = &m->fields[m->field_count++];
    f->name = str_make(line, (size_t)(colon - line));
    f->value = str_make(value, (size_t)(value_end - value));
    /* Exactly as the writer would put it: one space before the value, none after, CR LF. */
    if (value == colon + 2 && colon[1] == ' ' && value_end == stop && *stop == '\r')
        f->raw = str_make(line, (size_t)(s->p - line));
    else
        f->raw = STR_NULL;
    f->id = (uint16_t)http_field_lookup(line, (size_t)(colon - line));
    return H1_FIELD_BIT(f->id) & H1_NOTED_FIELDS ? h1_note_field(s) : 0;
}

static int parse_fields(struct h1_parser *s)
{
    for (;;) {
        int status;

        if (s->p == s->end)
            return SP_EAGAIN;
        if (is_line_end(*s->p))
            return end_line(s, H1_BAD_FIELD_NAME);
        if (is_blank(*s->p))
            return h1_refuse(s, H1_OBS_FOLD, s->p);
        status = parse_field(s);
        if (status < 0)
            return status;
    }
}

/* --- heads -------------------------------------------------------------------------- */

static void reset_message(struct http_msg *m, uint32_t flags)
{
    struct http_field *fields = m->fields;
    uint32_t capacity = m->field_capacity;

    http_msg_init(m, m->arena);
    m->flags = flags;
    m->fields = fields;
    m->field_capacity = capacity;
}

/*
 * After an incomplete parse the bytes are not parsed again before one of two things came: the
 * end of the start line, so that a bad one is refused early, or the end of the head. What was
 * searched is not searched again, however slowly the bytes drip. True: worth parsing.
 */
static bool is_worth_parsing(struct h1_scan *scan, struct str in)
{
    const char *end = in.ptr + in.len;
    bool hit;

    if (!scan->line_seen) {
        size_t at = scan->scanned + str_chr(str_from(in, scan->scanned), '\n');

        scan->scanned = (uint32_t)at;
        scan->line_seen = at < in.len;
        return scan->line_seen;
    }
    hit = h1_has_empty_line(in.ptr + scan->scanned, end);
    if (in.len >= scan->scanned + 2u)
        scan->scanned = (uint32_t)(in.len - 2);
    return hit;
}

static int parse_head(struct h1_scan *scan, struct h1_parser *s)
{
    bool is_response = (s->m->flags & HTTP_MSG_RESPONSE) != 0;
    const char *start;
    int status;

    s->p = s->base + scan->start;
    status = skip_empty_lines(s);
    start = s->p;
    if (status == 0)
        status = is_response ? parse_status_line(s) : parse_request_line(s);
    if (status == 0) {
        s->line_done = true;
        status = parse_fields(s);
    }
    if (status == 0)
        status = is_response ? h1_finish_response(s) : h1_finish_request(s);
    if (status == SP_EAGAIN) {
        size_t len = (size_t)(s->end - s->base);

        scan->start = (uint32_t)(start - s->base);
        scan->line_seen = s->line_done;
        scan->scanned = len >= scan->start + 2u ? (uint32_t)(len - 2) : scan->start;
    }
    return status;
}

static int parse(struct h1_scan *scan, struct str in, struct h1_parser *s, size_t *head_bytes,
                 enum h1_error *error, size_t *error_at)
{
    uint32_t max = s->limits->max_head_bytes;
    struct str head = {in.ptr, in.len < max ? in.len : max};
    int status = SP_EAGAIN;

    if (in.len == 0)
        return SP_EAGAIN;
    s->base = head.ptr;
    s->end = head.ptr + head.len;
    s->host_index = s->length_index = H1_NO_FIELD;
    if (!scan->tried || in.len >= max || is_worth_parsing(scan, head)) {
        scan->tried = true;
        status = parse_head(scan, s);
    }
    if (status == SP_EAGAIN && in.len >= max) {
        s->error = H1_TOO_LARGE;
        s->at = s->end;
        status = SP_ETOOBIG;
    }
    if (status == 0) {
        *head_bytes = (size_t)(s->p - s->base);
    } else if (status == SP_EPROTO || status == SP_ETOOBIG) {
        *error = s->error;
        *error_at = (size_t)(s->at - s->base);
    }
    return status;
}

int h1_parse_request(struct h1_scan *scan, struct str in, const struct h1_limits *limits,
                     struct http_msg *m, size_t *head_bytes, enum h1_error *error, size_t *error_at)
{
    struct h1_parser s = {.m = m, .limits = limits};

    reset_message(m, 0);
    return parse(scan, in, &s, head_bytes, error, error_at);
}

int h1_parse_response(struct h1_scan *scan, struct str in, const struct h1_limits *limits,
                      enum http_method request_method, struct http_msg *m, size_t *head_bytes,
                      enum h1_error *error, size_t *error_at)
{
    struct h1_parser s = {.m = m, .limits = limits, .request_method = request_method};

    reset_message(m, HTTP_MSG_RESPONSE);
    return parse(scan, in, &s, head_bytes, error, error_at);
}
