/*
 * HTTP/1.x syntax: heads, bodies, and the way out. RFC 9112.
 *
 * Pure functions over bytes: nothing here knows a socket or a clock. The
 * parser is strict where two parsers could disagree on where a message ends.
 */
#ifndef SP_HTTP_H1_H
#define SP_HTTP_H1_H

#include "http/http.h"

/* Why a head or body was refused; the texts are for log lines and 400 counters. */
enum h1_error {
    H1_OK,
    H1_BAD_START_LINE, /* not "method SP target SP HTTP/x.y" or a status line */
    H1_BAD_METHOD,
    H1_BAD_TARGET,      /* control bytes, spaces, or a form that the method does not take */
    H1_BAD_VERSION,     /* not HTTP/1.x */
    H1_BAD_FIELD_NAME,  /* not a token, or white space before the colon */
    H1_BAD_FIELD_VALUE, /* control bytes, bare CR, NUL */
    H1_OBS_FOLD,        /* line folding */
    H1_BARE_CR,
    H1_BAD_LENGTH,        /* Content-Length malformed, overflowing, or several that differ */
    H1_LENGTH_AND_CODING, /* both Content-Length and Transfer-Encoding in HTTP/1.0 */
    H1_BAD_CODING,        /* Transfer-Encoding malformed or not ending with its only chunked */
    H1_BAD_HOST,          /* invalid, several that differ, or not the target's authority */
    H1_TOO_MANY_FIELDS,
    H1_BAD_CHUNK_SIZE,
    H1_BAD_CHUNK, /* missing CRLF after a chunk, bad extension, bare LF */
    H1_BAD_TRAILER,
    H1_TOO_LARGE,      /* head or trailers beyond the bound */
    H1_UNKNOWN_CODING, /* another transfer coding before the final chunked: status 422 */
    H1_BAD_WEBSOCKET, /* upgrade to WebSocket without a key of 24 bytes, or 101 without an answer */
};

/* "both Content-Length and Transfer-Encoding are present" and the like; never NULL. */
const char *h1_error_text(enum h1_error e);

struct h1_limits {
    uint32_t max_head_bytes; /* start line and fields, with the empty line */
    uint32_t max_fields;     /* HAProxy's tune.http.maxhdr, default 101 */
    /*
     * option accept-invalid-http-request/response: lets '#' and bytes above 0x7f through in targets
     * and WebSocket upgrades without a key, and drops fields whose name has visible bytes that no
     * name may have. Nothing that moves the end of a message or its addressee is ever let through.
     */
    bool accept_invalid;
};

/* Search state for the end of a head that arrives in pieces; zero it before the first byte. */
struct h1_scan {
    uint32_t scanned; /* bytes that need not be searched again */
    uint32_t start;   /* offset of the start line, as far as it is known */
    bool tried;       /* a parse has found the head incomplete */
    bool line_seen;   /* the start line was complete then */
};

/*
 * Parses a request head at the start of `in` (empty lines before it are skipped, as RFC 9112
 * section 2.2).
 * 0: `m` is filled with slices into `in`, *head_bytes tells the length of the head including
 *    skipped lines and the final empty line. framing, flags and content_length are decided.
 * SP_EAGAIN: incomplete; call again with the same bytes and more behind them (they may have moved).
 * SP_ETOOBIG: incomplete and already max_head_bytes long, or too many fields; *error says which.
 * SP_EPROTO: refused; *error says why, *error_at is the offset of the byte at fault.
 * SP_ENOMEM: the arena's limit.
 * `m` must have been given http_msg_init; after a failure what it holds is of no meaning.
 * Bytes may come in any pieces: the verdict on a head is the same and the work linear in its
 * length. A bad start line is refused when it ends at the latest, another fault when the head ends.
 *
 * What is changed while parsing, always towards the one meaning that the message has:
 * - Equal Content-Length values are merged into one without leading zeros (RFC 9110 section 8.6),
 *   equal Host fields likewise.
 * - Transfer-Encoding beside Content-Length in HTTP/1.1: the length is dropped, and
 *   HTTP_MSG_LENGTH_DROPPED tells it to who would rather refuse. HTTP_MSG_CONN_CLOSE is set without
 *   HTTP_MSG_CONN_KEEP_ALIVE, whatever Connection says (RFC 9112 section 6.3); so it is for
 *   Transfer-Encoding in HTTP/1.0.
 * - A target in absolute form loses a default or empty port and gets "/" for an empty path (not
 *   with OPTIONS); Host is then set to its authority. Host of a CONNECT loses port 80 or 443
 *   where the target has the same. A Host that differs in more than such a port is refused; a
 *   request without Host is not.
 * - "h2c" and "h2" are taken out of Upgrade, with the field when nothing else is left.
 * A WebSocket upgrade is refused without its key (RFC 6455), unless accept_invalid is set.
 * CONNECT with content, and Transfer-Encoding in GET, HEAD or DELETE of HTTP/1.0, are refused.
 */
int h1_parse_request(struct h1_scan *scan, struct str in, const struct h1_limits *limits,
                     struct http_msg *m, size_t *head_bytes, enum h1_error *error,
                     size_t *error_at);

/*
 * The same for a response head. `request_method` decides the framing together with the status:
 * HEAD, 1xx, 204, 304 and 2xx to CONNECT have none; without a length it is HTTP_FRAMING_CLOSE.
 * In 1xx, 204 and 2xx to CONNECT, where they mean nothing, Content-Length and Transfer-Encoding are
 * dropped.
 */
int h1_parse_response(struct h1_scan *scan, struct str in, const struct h1_limits *limits,
                      enum http_method request_method, struct http_msg *m, size_t *head_bytes,
                      enum h1_error *error, size_t *error_at);

/* --- bodies --------------------------------------------------------------- */

/*
 * Chunk framing is taken to the letter: every line ends with CR LF, a chunk is shorter than 2^63
 * bytes, a chunk line with its extensions is at most 1024 bytes long, the trailer section at most
 * 8192, and Content-Length, Transfer-Encoding and Host may not be trailers.
 */

enum h1_body_state {
    H1_BODY_DATA,
    H1_BODY_SIZE,
    H1_BODY_EXT,
    H1_BODY_CRLF,
    H1_BODY_TRAILER,
    H1_BODY_DONE
};

struct h1_body {
    uint8_t framing; /* enum http_framing */
    uint8_t state;   /* enum h1_body_state */
    uint8_t error;   /* enum h1_error once refused */
    uint8_t line_state;
    uint32_t line_bytes;    /* of the chunk line or trailer section so far, bounded */
    uint64_t remaining;     /* of the length or of the current chunk; other states use it inside */
    uint64_t payload_bytes; /* content delivered so far */
};

void h1_body_init(struct h1_body *b, enum http_framing framing, uint64_t content_length);

static inline bool h1_body_is_done(const struct h1_body *b)
{
    return b->state == H1_BODY_DONE;
}

/*
 * Decodes the next piece of `in`. Returns how many bytes of `in` were consumed (framing and
 * payload), with *payload the slice of `in` that is content (empty when none), or SP_EPROTO
 * (b->error says why). One call delivers at most one contiguous payload slice; call again with the
 * rest until it consumes nothing or the body is done. HTTP_FRAMING_CLOSE consumes everything and is
 * never done. The bytes before a fault are consumed first, the next call refuses; once refused,
 * always refused.
 */
ptrdiff_t h1_body_next(struct h1_body *b, struct str in, struct str *payload);

/*
 * Walks over as much of `in` as belongs to this body, for a relay that forwards the
 * encoded bytes as they are: returns how many, or SP_EPROTO as soon as `in` has a fault anywhere,
 * so that nothing of such a piece is forwarded.
 */
ptrdiff_t h1_body_walk(struct h1_body *b, struct str in);

/*
 * Accounts for content that was moved without being looked at: HTTP_FRAMING_LENGTH (at most
 * b->remaining bytes) or HTTP_FRAMING_CLOSE.
 */
void h1_body_skip(struct h1_body *b, uint64_t bytes);

/* --- the way out ------------------------------------------------------------ */

/* Exact number of bytes that h1_write_head produces. */
size_t h1_head_bytes(const struct http_msg *m);

/*
 * Writes start line (HTTP/1.0 when m->version is 10, HTTP/1.1 for all others), fields and the empty
 * line. SP_ETOOBIG, with nothing written, when it does not fit.
 */
int h1_write_head(struct buf *out, const struct http_msg *m);

/* "<hex>\r\n" of a chunk; returns its length. `out` holds at least 20 bytes. */
size_t h1_put_chunk_size(char *out, uint64_t bytes);

#endif
