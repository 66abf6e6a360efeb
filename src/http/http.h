/*
 * HTTP semantics shared by every version of the protocol: methods, statuses,
 * field names, and the message head. RFC 9110.
 *
 * A head is a list of slices into memory that somebody else keeps: the receive
 * buffer for what was parsed, the message's arena for what rules have added.
 */
#ifndef SP_HTTP_HTTP_H
#define SP_HTTP_HTTP_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"

enum http_method {
    HTTP_METHOD_OTHER, /* any valid token: see method_text */
    HTTP_GET,
    HTTP_HEAD,
    HTTP_POST,
    HTTP_PUT,
    HTTP_DELETE,
    HTTP_CONNECT,
    HTTP_OPTIONS,
    HTTP_TRACE,
    HTTP_PATCH,
};

/* Fields that the proxy or its rules look at often; anything else is HTTP_FIELD_OTHER. */
enum http_field_id {
    HTTP_FIELD_OTHER,
    HTTP_FIELD_HOST,
    HTTP_FIELD_CONNECTION,
    HTTP_FIELD_CONTENT_LENGTH,
    HTTP_FIELD_TRANSFER_ENCODING,
    HTTP_FIELD_UPGRADE,
    HTTP_FIELD_EXPECT,
    HTTP_FIELD_TE,
    HTTP_FIELD_TRAILER,
    HTTP_FIELD_KEEP_ALIVE,
    HTTP_FIELD_PROXY_CONNECTION,
    HTTP_FIELD_COOKIE,
    HTTP_FIELD_SET_COOKIE,
    HTTP_FIELD_CONTENT_TYPE,
    HTTP_FIELD_CONTENT_ENCODING,
    HTTP_FIELD_ACCEPT_ENCODING,
    HTTP_FIELD_CACHE_CONTROL,
    HTTP_FIELD_PRAGMA,
    HTTP_FIELD_EXPIRES,
    HTTP_FIELD_VARY,
    HTTP_FIELD_ETAG,
    HTTP_FIELD_DATE,
    HTTP_FIELD_LOCATION,
    HTTP_FIELD_AUTHORIZATION,
    HTTP_FIELD_WWW_AUTHENTICATE,
    HTTP_FIELD_X_FORWARDED_FOR,
    HTTP_FIELD_RANGE,
    HTTP_FIELD_IF_RANGE,
    HTTP_FIELD_IF_MODIFIED_SINCE,
    HTTP_FIELD_IF_NONE_MATCH,
    HTTP_FIELD_USER_AGENT,
    HTTP_FIELD_REFERER,
    HTTP_FIELD_SERVER,
    HTTP_FIELD_SEC_WEBSOCKET_KEY,
    HTTP_FIELD_SEC_WEBSOCKET_ACCEPT,
    HTTP_FIELD_ID_COUNT
};

struct http_field {
    struct str name;  /* as received, original case */
    struct str value; /* without surrounding white space */
    /*
     * The whole line "Name: value\r\n" where it was received in exactly the form that the
     * writer would produce; ptr NULL otherwise. Lets the writer copy runs of lines at once.
     */
    struct str raw;
    uint16_t id; /* enum http_field_id */
};

enum http_framing {
    HTTP_FRAMING_NONE,    /* no body at all */
    HTTP_FRAMING_LENGTH,  /* content_length bytes */
    HTTP_FRAMING_CHUNKED, /* RFC 9112 section 7.1 */
    HTTP_FRAMING_CLOSE,   /* until the sender closes (responses only) */
};

enum {
    HTTP_MSG_RESPONSE = 1u << 0,
    HTTP_MSG_CONN_CLOSE = 1u << 1, /* "close" among the Connection options, or framing demands it */
    HTTP_MSG_CONN_KEEP_ALIVE = 1u << 2,  /* "keep-alive" among them */
    HTTP_MSG_CONN_UPGRADE = 1u << 3,     /* "upgrade" among them and Upgrade names a protocol */
    HTTP_MSG_HAS_LENGTH = 1u << 4,       /* a valid Content-Length was present */
    HTTP_MSG_HAS_CODING = 1u << 5,       /* a valid Transfer-Encoding was present */
    HTTP_MSG_EXPECT_CONTINUE = 1u << 6,  /* HTTP/1.1 request with "Expect: 100-continue" */
    HTTP_MSG_ABSOLUTE_TARGET = 1u << 7,  /* request target in absolute form */
    HTTP_MSG_HAS_CONN_OPTIONS = 1u << 8, /* others than close, keep-alive, upgrade, te among them */
    HTTP_MSG_LENGTH_DROPPED = 1u << 9,   /* a Content-Length beside Transfer-Encoding was removed */
    HTTP_MSG_WEBSOCKET = 1u << 10,       /* HTTP_MSG_CONN_UPGRADE, with "websocket" in Upgrade */
};

struct http_msg {
    uint32_t flags;
    uint8_t method;  /* enum http_method */
    uint8_t version; /* 10 or 11 (20 for messages that came by HTTP/2) */
    uint8_t framing; /* enum http_framing */
    uint16_t status;
    struct str method_text;
    struct str target; /* request target as received or rewritten */
    struct str reason;
    uint64_t content_length; /* valid with HTTP_FRAMING_LENGTH or HTTP_MSG_HAS_LENGTH */
    struct http_field *fields;
    uint32_t field_count;
    uint32_t field_capacity;
    struct arena *arena; /* not owned; grows `fields`, holds what rules add */
};

/* An empty message whose fields and additions live in `arena`. */
void http_msg_init(struct http_msg *m, struct arena *arena);

/* --- the field list ---------------------------------------------------- */

enum http_field_id http_field_id_of(struct str name);

/*
 * The next field called `name` (any case) at or after index *at, which is left
 * one past the hit; NULL when there is none. Start with *at == 0.
 */
struct http_field *http_msg_next(const struct http_msg *m, struct str name, uint32_t *at);
struct http_field *http_msg_find(const struct http_msg *m, enum http_field_id id);

/*
 * Appends a field. The slices are kept, not copied. SP_ENOMEM. A value or name
 * with CR, LF or NUL is refused with SP_EINVAL, so that no rule can split a message.
 */
int http_msg_add(struct http_msg *m, struct str name, struct str value);
/* The same at the front of the list. */
int http_msg_add_first(struct http_msg *m, struct str name, struct str value);
/* Removes all fields of that name, then appends. */
int http_msg_set(struct http_msg *m, struct str name, struct str value);
/* Removes all fields of that name; returns how many. */
unsigned http_msg_del(struct http_msg *m, struct str name);
unsigned http_msg_del_id(struct http_msg *m, enum http_field_id id);
/* Removes one field by its index. */
void http_msg_del_at(struct http_msg *m, uint32_t index);
/* Gives a field a new value (kept, not copied); SP_EINVAL as http_msg_add. */
int http_msg_set_value(struct http_msg *m, struct http_field *f, struct str value);

/*
 * Removes the hop-by-hop fields of RFC 9110 section 7.6.1: Connection and every field it
 * names, Keep-Alive, Proxy-Connection, TE (one that lists "trailers" is kept and reduced to it),
 * and leaves Transfer-Encoding, Upgrade and Trailer to the caller's framing decision. Host and
 * Content-Length stay even when Connection names them.
 */
void http_msg_strip_hop_by_hop(struct http_msg *m);

/* True when the comma-separated list `value` has `token` (any case). */
bool http_list_has(struct str value, struct str token);
/*
 * Iterates a comma-separated list, quoted strings respected: false at the end. *rest starts as the
 * value. Empty elements are passed over.
 */
bool http_list_next(struct str *rest, struct str *item);

/*
 * Content-Length of RFC 9110 section 8.6: one decimal number up to 2^63 - 1, or a list of equal
 * ones. *digits becomes the number without leading zeros, a slice of `value`. SP_EINVAL.
 */
int http_parse_length(struct str value, uint64_t *out, struct str *digits);

/* --- targets ------------------------------------------------------------ */

struct http_target {
    struct str scheme;    /* empty unless absolute form */
    struct str authority; /* absolute or authority form */
    struct str path;  /* from the first '/' up to '?', fragment excluded; "*" for asterisk form */
    struct str query; /* without '?' */
    bool has_query;
};

/* Never fails: what cannot be told apart stays in `path`. */
void http_target_split(struct str target, struct http_target *out);

/*
 * Percent-decodes (and '+' to space when `form`) into `out` of in.len bytes, which may be in.ptr
 * itself; SP_EINVAL on a bad escape.
 */
int http_url_decode(struct str in, bool form, char *out, size_t *out_len);

/* The value of `name` in a query ("a=1&b=2", delimiter given); false when absent or without '='. */
bool http_query_param(struct str query, char delimiter, struct str name, struct str *value);

/*
 * The next name=value pair of a Cookie value; false at the end. *rest starts as the field's
 * value. What has no '=' or begins with '$' (RFC 2965) is passed over.
 */
bool http_cookie_next(struct str *rest, struct str *name, struct str *value);

/* --- names --------------------------------------------------------------- */

enum http_method http_method_of(struct str text);
/* Standard reason phrase ("OK"), or "" for an unknown status. */
struct str http_reason_of(unsigned status);
bool http_is_token(struct str s);
/*
 * True for host[:port] of RFC 3986: letters, digits, '-', '.', '_', '~', %XX, sub-delims except ','
 * (which is ambiguous in Host), or [v6]; port up to 65535. Host and port may be empty.
 */
bool http_is_authority(struct str s);

#endif
