/*
 * What the fields of a head mean: where its body ends, whom it is for, what becomes of the
 * connection.
 */
#include "http/h1_internal.h"
#include "http/http_chars.h"

/* --- Content-Length and Transfer-Encoding ------------------------------------------ */

static int note_length(struct h1_parser *s, struct http_field *f)
{
    struct http_msg *m = s->m;
    struct str digits;
    uint64_t value;

    if (http_parse_length(f->value, &value, &digits) < 0 ||
        ((m->flags & HTTP_MSG_HAS_LENGTH) && value != m->content_length))
        return h1_refuse(s, H1_BAD_LENGTH, f->value.ptr);
    if (m->flags & HTTP_MSG_HAS_LENGTH) {
        m->field_count--;
        return 0;
    }
    m->content_length = value;
    m->flags |= HTTP_MSG_HAS_LENGTH;
    s->length_index = m->field_count - 1;
    if (digits.len != f->value.len) {
        f->value = digits;
        f->raw = STR_NULL;
    }
    return 0;
}

static int note_coding(struct h1_parser *s, struct http_field *f)
{
    struct str rest = f->value, element = STR_NULL;

    s->m->flags |= HTTP_MSG_HAS_CODING;
    s->coding_at = f->value.ptr;
    while (http_list_element(&rest, &element)) {
        /* Nothing may come after chunked: neither another coding nor chunked again. */
        if (!element.len || s->coding_chunked)
            return h1_refuse(s, H1_BAD_CODING, element.ptr);
        if (str_ieq(element, STR("chunked")))
            s->coding_chunked = true;
        else
            s->coding_other = true;
    }
    return 0;
}

/* --- Host ------------------------------------------------------------------------------- */

/*
 * A Host that does not have to match a target is taken with any port text, as HAProxy does, but
 * only with the bytes of an authority, so that no two readers can cut it differently.
 */
static bool is_host(struct str s)
{
    size_t i = 0;

    if (s.len && s.ptr[0] == '[')
        return http_is_authority(s);
    for (; i < s.len; i++)
        if (!http_char_is(s.ptr[i], HTTP_CHAR_HOST) && s.ptr[i] != ':' && s.ptr[i] != '%')
            return false;
    return true;
}

static int note_host(struct h1_parser *s, struct http_field *f)
{
    if (s->m->flags & HTTP_MSG_RESPONSE)
        return 0;
    if (s->host_index != H1_NO_FIELD) {
        if (!str_ieq(f->value, s->m->fields[s->host_index].value))
            return h1_refuse(s, H1_BAD_HOST, f->value.ptr);
        s->m->field_count--;
        return 0;
    }
    if (!is_host(f->value))
        return h1_refuse(s, H1_BAD_HOST, f->value.ptr);
    s->host_index = s->m->field_count - 1;
    return 0;
}

/* --- Connection, Upgrade, Expect ---------------------------------------------------------- */

static void note_connection(struct http_msg *m, struct str value)
{
    struct str item;

    while (http_list_next(&value, &item)) {
        if (str_ieq(item, STR("close")))
            m->flags |= HTTP_MSG_CONN_CLOSE;
        else if (str_ieq(item, STR("keep-alive")))
            m->flags |= HTTP_MSG_CONN_KEEP_ALIVE;
        else if (str_ieq(item, STR("upgrade")))
            m->flags |= HTTP_MSG_CONN_UPGRADE; /* provisional: see finish_upgrade */
        else if (!str_ieq(item, STR("te")))
            m->flags |= HTTP_MSG_HAS_CONN_OPTIONS;
    }
}

static bool is_h2c(struct str protocol)
{
    return str_ieq(protocol, STR("h2c")) || str_ieq(protocol, STR("h2"));
}

/*
 * A cleartext upgrade to HTTP/2 is never offered to a server: what follows it would pass by every
 * rule unseen. RFC 9113 has retired it.
 */
static int note_upgrade(struct h1_parser *s, struct http_field *f)
{
    struct str rest = f->value, item;
    unsigned offered = 0, refused = 0;
    size_t n = 0;
    char *kept;

    while (http_list_next(&rest, &item)) {
        offered++;
        refused += is_h2c(item);
        s->has_websocket |= str_ieq(item, STR("websocket"));
    }
    if (refused == offered) {
        s->m->field_count--;
        return 0;
    }
    s->has_upgrade = true;
    if (!refused)
        return 0;
    kept = arena_alloc(s->m->arena, f->value.len + 2 * offered);
    if (!kept)
        return SP_ENOMEM;
    rest = f->value;
    while (http_list_next(&rest, &item)) {
        if (is_h2c(item))
            continue;
        if (n) {
            kept[n++] = ',';
            kept[n++] = ' ';
        }
        memcpy(kept + n, item.ptr, item.len);
        n += item.len;
    }
    f->value = str_make(kept, n);
    f->raw = STR_NULL;
    return 0;
}

int h1_note_field(struct h1_parser *s)
{
    struct http_field *f = &s->m->fields[s->m->field_count - 1];

    switch (f->id) {
    case HTTP_FIELD_HOST:
        return note_host(s, f);
    case HTTP_FIELD_CONTENT_LENGTH:
        return note_length(s, f);
    case HTTP_FIELD_TRANSFER_ENCODING:
        return note_coding(s, f);
    case HTTP_FIELD_CONNECTION:
        note_connection(s->m, f->value);
        return 0;
    case HTTP_FIELD_UPGRADE:
        return note_upgrade(s, f);
    case HTTP_FIELD_EXPECT:
        if (s->m->version >= 11 && !(s->m->flags & HTTP_MSG_RESPONSE) &&
            str_ieq(f->value, STR("100-continue")))
            s->m->flags |= HTTP_MSG_EXPECT_CONTINUE;
        return 0;
    default:
        return 0;
    }
}

/* --- the target and its authority ----------------------------------------------------------- */

struct endpoint {
    struct str host;
    struct str port; /* digits; empty when absent or empty */
    bool has_colon;
};

static struct endpoint split_endpoint(struct str authority)
{
    struct endpoint e = {authority, STR_NULL, false};
    size_t n = authority.len;

    while (n && http_char_is(authority.ptr[n - 1], HTTP_CHAR_DIGIT))
        n--;
    if (n && authority.ptr[n - 1] == ':') {
        e.port = str_from(authority, n);
        e.host.len = n - 1;
        e.has_colon = true;
    }
    return e;
}

/* The default port of a scheme, empty when it has none that we know. */
static struct str default_port(struct str scheme)
{
    if (str_ieq(scheme, STR("http")))
        return STR("80");
    if (str_ieq(scheme, STR("https")))
        return STR("443");
    return STR("");
}

/* Userinfo is accepted as HAProxy does, but with a second '@' two readers could see two hosts. */
static bool is_userinfo(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!http_char_is(s.ptr[i], HTTP_CHAR_HOST) && s.ptr[i] != ':' && s.ptr[i] != '%' &&
            s.ptr[i] != ',')
            return false;
    return true;
}

static int check_absolute_target(struct h1_parser *s, const struct http_target *t)
{
    struct str authority = t->authority;
    size_t at = str_chr(authority, '@');

    if (at < authority.len) {
        if (!is_userinfo(str_make(authority.ptr, at)))
            return h1_refuse(s, H1_BAD_TARGET, authority.ptr);
        authority = str_from(authority, at + 1);
    }
    if (!http_is_authority(authority))
        return h1_refuse(s, H1_BAD_TARGET, authority.ptr);
    s->scheme = t->scheme;
    s->authority = authority;
    s->m->flags |= HTTP_MSG_ABSOLUTE_TARGET;
    return 0;
}

int h1_check_target(struct h1_parser *s)
{
    struct str target = s->m->target;
    struct http_target t;

    if (target.ptr[0] == '*') {
        if (target.len != 1 || s->m->method != HTTP_OPTIONS)
            return h1_refuse(s, H1_BAD_TARGET, target.ptr);
        return 0;
    }
    if (s->m->method == HTTP_CONNECT) {
        if (!http_is_authority(target) || !split_endpoint(target).port.len)
            return h1_refuse(s, H1_BAD_TARGET, target.ptr);
        s->authority = target;
        return 0;
    }
    if (target.ptr[0] == '/')
        return 0;
    http_target_split(target, &t);
    if (!t.scheme.len)
        return h1_refuse(s, H1_BAD_TARGET, target.ptr);
    return check_absolute_target(s, &t);
}

/* A tunnel has no scheme: both well-known ports count as default, as HAProxy has it. */
static int match_connect_host(struct h1_parser *s, struct http_field *host)
{
    struct endpoint to = split_endpoint(s->authority);
    struct endpoint named = split_endpoint(host->value);
    bool is_default = str_eq(to.port, STR("80")) || str_eq(to.port, STR("443"));

    if (!str_ieq(to.host, named.host) ||
        (named.port.len ? !str_eq(to.port, named.port) : !is_default))
        return h1_refuse(s, H1_BAD_HOST, host->value.ptr);
    if (named.port.len && is_default)
        http_msg_set_value(s->m, host, named.host);
    return 0;
}

/*
 * Normalisation of RFC 3986 section 6.2.3: no default or empty port, "/" for an empty path.
 * Host follows the target, from which it differs in such a port at most.
 */
static int normalise_absolute(struct h1_parser *s, struct http_field *host, struct endpoint to,
                              bool drop_port)
{
    struct http_msg *m = s->m;
    const char *target_end = m->target.ptr + m->target.len;
    const char *rest = s->authority.ptr + s->authority.len;
    bool add_path = rest == target_end && m->method != HTTP_OPTIONS;
    size_t prefix_len, rest_len = (size_t)(target_end - rest);
    char *target;

    if (!drop_port && !add_path)
        return 0;
    prefix_len = (size_t)((drop_port ? to.host.ptr + to.host.len : rest) - m->target.ptr);
    target = arena_alloc(m->arena, prefix_len + 1 + rest_len);
    if (!target)
        return SP_ENOMEM;
    memcpy(target, m->target.ptr, prefix_len);
    memcpy(target + prefix_len, rest, rest_len);
    if (add_path)
        target[prefix_len + rest_len++] = '/';
    m->target = str_make(target, prefix_len + rest_len);
    if (host) {
        struct str name = drop_port ? to.host : s->authority;

        if (!str_eq(host->value, name))
            http_msg_set_value(m, host, name);
    }
    return 0;
}

static int match_absolute_host(struct h1_parser *s, struct http_field *host)
{
    struct endpoint to = split_endpoint(s->authority);
    struct str standard = default_port(s->scheme);
    bool drop_port = to.has_colon && (!to.port.len || str_eq(to.port, standard));

    if (host) {
        struct endpoint named = split_endpoint(host->value);

        if (!str_ieq(to.host, named.host) ||
            !str_eq(to.port.len ? to.port : standard, named.port.len ? named.port : standard))
            return h1_refuse(s, H1_BAD_HOST, host->value.ptr);
    }
    return normalise_absolute(s, host, to, drop_port);
}

/* --- the whole head --------------------------------------------------------------------------- */

/*
 * Upgrade takes both the option and the field, and WebSocket its key, RFC 6455 section 4: the
 * base64 of sixteen bytes. A server that switches without an answer to the key has not understood.
 */
static int finish_upgrade(struct h1_parser *s)
{
    struct http_msg *m = s->m;
    const struct http_field *f;

    if (!s->has_upgrade || !(m->flags & HTTP_MSG_CONN_UPGRADE)) {
        m->flags &= ~(uint32_t)HTTP_MSG_CONN_UPGRADE;
        return 0;
    }
    if (!s->has_websocket)
        return 0;
    m->flags |= HTTP_MSG_WEBSOCKET;
    if (s->limits->accept_invalid)
        return 0;
    if (!(m->flags & HTTP_MSG_RESPONSE)) {
        f = http_msg_find(m, HTTP_FIELD_SEC_WEBSOCKET_KEY);
        return f && f->value.len == 24 ? 0 : h1_refuse(s, H1_BAD_WEBSOCKET, s->p);
    }
    if (m->status == 101 && !http_msg_find(m, HTTP_FIELD_SEC_WEBSOCKET_ACCEPT))
        return h1_refuse(s, H1_BAD_WEBSOCKET, s->p);
    return 0;
}

static void force_close(struct http_msg *m)
{
    m->flags |= HTTP_MSG_CONN_CLOSE;
    m->flags &= ~(uint32_t)HTTP_MSG_CONN_KEEP_ALIVE;
}

/*
 * Transfer-Encoding: chunked and nothing else. Beside a Content-Length it wins, the length is
 * dropped before anybody else can believe it and the connection does not outlive the message
 * (RFC 9112 section 6.3). In HTTP/1.0, which does not know it, the connection is not reused either
 * (section 6.1), and beside a length nothing tells which of the two the peer means.
 */
static int finish_coding(struct h1_parser *s)
{
    struct http_msg *m = s->m;

    if (!(m->flags & HTTP_MSG_HAS_CODING))
        return 0;
    if (!s->coding_chunked)
        return h1_refuse(s, H1_BAD_CODING, s->coding_at);
    if (s->coding_other)
        return h1_refuse(s, H1_UNKNOWN_CODING, s->coding_at);
    if (m->version < 11)
        force_close(m);
    if (m->flags & HTTP_MSG_HAS_LENGTH) {
        if (m->version < 11)
            return h1_refuse(s, H1_LENGTH_AND_CODING, s->coding_at);
        http_msg_del_id(m, HTTP_FIELD_CONTENT_LENGTH);
        m->flags &= ~(uint32_t)HTTP_MSG_HAS_LENGTH;
        m->flags |= HTTP_MSG_LENGTH_DROPPED;
        m->content_length = 0;
        force_close(m);
    }
    return 0;
}

/* A request whose content no reader expects: what follows would be taken for another request. */
static int refuse_content(struct h1_parser *s)
{
    struct http_msg *m = s->m;
    bool old_and_bodyless = m->version < 11 && (m->method == HTTP_GET || m->method == HTTP_HEAD ||
                                                m->method == HTTP_DELETE);

    if (m->method == HTTP_CONNECT && (m->flags & HTTP_MSG_HAS_LENGTH) && m->content_length)
        return h1_refuse(s, H1_BAD_LENGTH, m->fields[s->length_index].value.ptr);
    if ((m->method == HTTP_CONNECT || old_and_bodyless) && (m->flags & HTTP_MSG_HAS_CODING))
        return h1_refuse(s, H1_BAD_CODING, s->coding_at);
    return 0;
}

int h1_finish_request(struct h1_parser *s)
{
    struct http_msg *m = s->m;
    struct http_field *host = s->host_index == H1_NO_FIELD ? NULL : &m->fields[s->host_index];
    int status = 0;

    if (s->authority.ptr) {
        if (m->method != HTTP_CONNECT)
            status = match_absolute_host(s, host);
        else if (host)
            status = match_connect_host(s, host);
        if (status < 0)
            return status;
    }
    status = refuse_content(s);
    if (status == 0)
        status = finish_coding(s);
    if (status == 0)
        status = finish_upgrade(s);
    if (status < 0)
        return status;
    if (m->method == HTTP_CONNECT)
        m->framing = HTTP_FRAMING_NONE;
    else if (m->flags & HTTP_MSG_HAS_CODING)
        m->framing = HTTP_FRAMING_CHUNKED;
    else
        m->framing = m->flags & HTTP_MSG_HAS_LENGTH ? HTTP_FRAMING_LENGTH : HTTP_FRAMING_NONE;
    return 0;
}

int h1_finish_response(struct h1_parser *s)
{
    struct http_msg *m = s->m;
    bool is_tunnel =
        m->status == 101 || (s->request_method == HTTP_CONNECT && m->status / 100 == 2);
    int status = finish_coding(s);

    if (status == 0)
        status = finish_upgrade(s);
    if (status < 0)
        return status;
    if (is_tunnel || m->status < 200 || m->status == 204) {
        /* Framing fields mean nothing here (RFC 9110 sections 8.6, 9.3.6): nobody may see them. */
        http_msg_del_id(m, HTTP_FIELD_CONTENT_LENGTH);
        http_msg_del_id(m, HTTP_FIELD_TRANSFER_ENCODING);
        m->flags &= ~(uint32_t)(HTTP_MSG_HAS_LENGTH | HTTP_MSG_HAS_CODING);
        m->content_length = 0;
        m->framing = HTTP_FRAMING_NONE;
    } else if (m->status == 304 || s->request_method == HTTP_HEAD) {
        m->framing = HTTP_FRAMING_NONE;
    } else if (m->flags & HTTP_MSG_HAS_CODING) {
        m->framing = HTTP_FRAMING_CHUNKED;
    } else {
        m->framing = m->flags & HTTP_MSG_HAS_LENGTH ? HTTP_FRAMING_LENGTH : HTTP_FRAMING_CLOSE;
    }
    return 0;
}
