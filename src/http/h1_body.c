#include "http/h1.h"
#include "http/http_chars.h"

/*
 * Chunked content is a machine over single bytes of framing; only content itself moves in bulk.
 *
 *   SIZE --digits--> SIZE --BWS or ';'--> EXT --CR LF--> DATA --n bytes--> CRLF --CR LF--> SIZE
 *     |                                    |
 *     +------------- CR LF ----------------+--size 0--> TRAILER --empty line--> DONE
 *
 * `remaining` holds the size while its digits come, and in TRAILER the hash of the field name.
 */

/* A chunk line with its extensions. They carry nothing that anybody needs. */
#define CHUNK_LINE_MAX 1024
/* The whole trailer section. */
#define TRAILER_MAX 8192

/* Where inside its state the machine stands. */
enum {
    LINE_START,
    LINE_BLANK, /* EXT: white space before ';' */
    LINE_NAME,  /* TRAILER */
    LINE_TEXT,  /* EXT: behind ';'. TRAILER: in a value */
    LINE_CR,    /* CR seen, LF must follow */
    LINE_LAST,  /* TRAILER: CR of the empty line seen */
};

/* 64-bit FNV-1a of a lower-case name. */
#define HASH_SEED 0xcbf29ce484222325u
#define HASH_PRIME 0x100000001b3u
#define HASH_CONTENT_LENGTH 0x2d69a1e6ee916e7du
#define HASH_TRANSFER_ENCODING 0x8640bd735e9d802cu
#define HASH_HOST 0x4077f8cc7eaf4d6fu

void h1_body_init(struct h1_body *b, enum http_framing framing, uint64_t content_length)
{
    memset(b, 0, sizeof *b);
    b->framing = (uint8_t)framing;
    switch (framing) {
    case HTTP_FRAMING_NONE:
        b->state = H1_BODY_DONE;
        break;
    case HTTP_FRAMING_LENGTH:
        b->remaining = content_length;
        b->state = content_length ? H1_BODY_DATA : H1_BODY_DONE;
        break;
    case HTTP_FRAMING_CHUNKED:
        b->state = H1_BODY_SIZE;
        break;
    case HTTP_FRAMING_CLOSE:
        b->state = H1_BODY_DATA;
        break;
    }
}

static void start_size(struct h1_body *b)
{
    b->state = H1_BODY_SIZE;
    b->line_state = LINE_START;
    b->line_bytes = 0;
    b->remaining = 0;
}

static void end_size_line(struct h1_body *b)
{
    b->line_state = LINE_START;
    b->line_bytes = 0;
    if (b->remaining) {
        b->state = H1_BODY_DATA;
    } else {
        b->state = H1_BODY_TRAILER;
        b->remaining = HASH_SEED;
    }
}

/* The step_ functions take one byte of framing: H1_OK, or why it is refused, nothing changed. */

static enum h1_error step_size(struct h1_body *b, char c)
{
    if (b->line_state == LINE_CR) {
        if (c != '\n')
            return H1_BAD_CHUNK;
        end_size_line(b);
        return H1_OK;
    }
    if (http_char_is(c, HTTP_CHAR_HEX)) {
        /* One more digit must leave the value below 2^63. */
        if (b->remaining >> 59 || ++b->line_bytes > CHUNK_LINE_MAX)
            return H1_BAD_CHUNK_SIZE;
        b->remaining = b->remaining << 4 | http_hex_value(c);
        b->line_state = LINE_TEXT;
        return H1_OK;
    }
    if (b->line_state == LINE_START)
        return H1_BAD_CHUNK_SIZE;
    if (c == '\r') {
        b->line_state = LINE_CR;
        return H1_OK;
    }
    if (c != ';' && c != ' ' && c != '\t')
        return c == '\n' ? H1_BAD_CHUNK : H1_BAD_CHUNK_SIZE;
    b->state = H1_BODY_EXT;
    b->line_state = c == ';' ? LINE_TEXT : LINE_BLANK;
    return H1_OK;
}

static enum h1_error step_ext(struct h1_body *b, char c)
{
    if (b->line_state == LINE_CR) {
        if (c != '\n')
            return H1_BAD_CHUNK;
        end_size_line(b);
        return H1_OK;
    }
    if (b->line_bytes >= CHUNK_LINE_MAX)
        return H1_BAD_CHUNK;
    if (b->line_state == LINE_BLANK) {
        /* White space may only lead to an extension. */
        if (c != ' ' && c != '\t' && c != ';')
            return H1_BAD_CHUNK;
        if (c == ';')
            b->line_state = LINE_TEXT;
    } else if (c == '\r') {
        b->line_state = LINE_CR;
    } else if (!http_char_is(c, HTTP_CHAR_VALUE)) {
        return H1_BAD_CHUNK;
    }
    b->line_bytes++;
    return H1_OK;
}

static enum h1_error step_crlf(struct h1_body *b, char c)
{
    if (b->line_state != LINE_CR) {
        if (c != '\r')
            return H1_BAD_CHUNK;
        b->line_state = LINE_CR;
        return H1_OK;
    }
    if (c != '\n')
        return H1_BAD_CHUNK;
    start_size(b);
    return H1_OK;
}

/* Fields that frame or route a message must not come behind its content, RFC 9110 section 6.5.1. */
static bool is_forbidden_trailer(uint64_t hash)
{
    return hash == HASH_CONTENT_LENGTH || hash == HASH_TRANSFER_ENCODING || hash == HASH_HOST;
}

static enum h1_error step_trailer(struct h1_body *b, char c)
{
    if (b->line_bytes >= TRAILER_MAX)
        return H1_TOO_LARGE;
    switch (b->line_state) {
    case LINE_START:
        if (c == '\r') {
            b->line_state = LINE_LAST;
            break;
        }
        /* fall through */
    case LINE_NAME:
        if (http_char_is(c, HTTP_CHAR_TOKEN)) {
            unsigned lower = c >= 'A' && c <= 'Z' ? (unsigned)c | 0x20u : (unsigned char)c;

            b->remaining = (b->remaining ^ lower) * HASH_PRIME;
            b->line_state = LINE_NAME;
        } else if (c == ':' && b->line_state == LINE_NAME && !is_forbidden_trailer(b->remaining)) {
            b->line_state = LINE_TEXT;
        } else {
            return H1_BAD_TRAILER;
        }
        break;
    case LINE_TEXT:
        if (c == '\r')
            b->line_state = LINE_CR;
        else if (!http_char_is(c, HTTP_CHAR_VALUE))
            return H1_BAD_TRAILER;
        break;
    case LINE_CR:
        if (c != '\n')
            return H1_BAD_TRAILER;
        b->line_state = LINE_START;
        b->remaining = HASH_SEED;
        break;
    default:
        if (c != '\n')
            return H1_BAD_TRAILER;
        b->state = H1_BODY_DONE;
        b->remaining = 0;
        break;
    }
    b->line_bytes++;
    return H1_OK;
}

static enum h1_error step(struct h1_body *b, char c)
{
    switch (b->state) {
    case H1_BODY_SIZE:
        return step_size(b, c);
    case H1_BODY_EXT:
        return step_ext(b, c);
    case H1_BODY_CRLF:
        return step_crlf(b, c);
    default:
        return step_trailer(b, c);
    }
}

/* Content at the front of `in`; returns how many bytes of it. */
static size_t take_content(struct h1_body *b, struct str in)
{
    size_t n = in.len;

    if (b->framing != HTTP_FRAMING_CLOSE) {
        if (n > b->remaining)
            n = (size_t)b->remaining;
        b->remaining -= n;
        if (!b->remaining) {
            b->state = b->framing == HTTP_FRAMING_CHUNKED ? H1_BODY_CRLF : H1_BODY_DONE;
            b->line_state = LINE_START;
        }
    }
    b->payload_bytes += n;
    return n;
}

ptrdiff_t h1_body_next(struct h1_body *b, struct str in, struct str *payload)
{
    size_t used = 0;

    *payload = str_make(in.ptr, 0);
    if (b->error)
        return SP_EPROTO;
    while (used < in.len && b->state != H1_BODY_DONE) {
        if (b->state == H1_BODY_DATA) {
            size_t n;

            if (payload->len)
                break;
            n = take_content(b, str_from(in, used));
            *payload = str_make(in.ptr + used, n);
            used += n;
        } else {
            enum h1_error error = step(b, in.ptr[used]);

            if (error) {
                /* What came before the fault is delivered first, however it was cut. */
                if (used)
                    break;
                b->error = (uint8_t)error;
                return SP_EPROTO;
            }
            used++;
        }
    }
    return (ptrdiff_t)used;
}

ptrdiff_t h1_body_walk(struct h1_body *b, struct str in)
{
    size_t used = 0;

    if (b->error)
        return SP_EPROTO;
    while (used < in.len && b->state != H1_BODY_DONE) {
        if (b->state == H1_BODY_DATA) {
            used += take_content(b, str_from(in, used));
        } else {
            enum h1_error error = step(b, in.ptr[used]);

            if (error) {
                b->error = (uint8_t)error;
                return SP_EPROTO;
            }
            used++;
        }
    }
    return (ptrdiff_t)used;
}

void h1_body_skip(struct h1_body *b, uint64_t bytes)
{
    b->payload_bytes += bytes;
    if (b->framing != HTTP_FRAMING_LENGTH)
        return;
    b->remaining -= bytes;
    if (b->remaining == 0)
        b->state = H1_BODY_DONE;
}
