/*
 * The state of one parse of an HTTP/1 head, shared by the syntax (h1_parse.c) and the meaning
 * of its fields (h1_fields.c).
 */
#ifndef SP_HTTP_H1_INTERNAL_H
#define SP_HTTP_H1_INTERNAL_H

#include "http/h1.h"
#include "http/http_internal.h"

#define H1_NO_FIELD UINT32_MAX

struct h1_parser {
    const char *base; /* first byte of the input */
    const char *p;    /* next byte to look at */
    const char *end;
    struct http_msg *m;
    const struct h1_limits *limits;
    enum h1_error error;
    const char *at;                  /* the byte at fault */
    enum http_method request_method; /* of a response: what it answers */
    bool line_done;                  /* the start line was complete and good */
    /* What the fields told. */
    uint32_t host_index, length_index; /* into m->fields, or H1_NO_FIELD */
    const char *coding_at;             /* the last Transfer-Encoding value */
    bool coding_chunked, coding_last_chunked, coding_other;
    bool has_upgrade, has_websocket;
    /* Of a target in absolute or authority form, without userinfo; ptr NULL for other forms. */
    struct str scheme, authority;
};

static inline int h1_refuse(struct h1_parser *s, enum h1_error error, const char *at)
{
    s->error = error;
    s->at = at;
    return SP_EPROTO;
}

/* Fields that h1_note_field must see. */
#define H1_FIELD_BIT(id) (1ull << (id))
#define H1_NOTED_FIELDS                                                                     \
    (H1_FIELD_BIT(HTTP_FIELD_HOST) | H1_FIELD_BIT(HTTP_FIELD_CONNECTION) |                  \
     H1_FIELD_BIT(HTTP_FIELD_CONTENT_LENGTH) | H1_FIELD_BIT(HTTP_FIELD_TRANSFER_ENCODING) | \
     H1_FIELD_BIT(HTTP_FIELD_UPGRADE) | H1_FIELD_BIT(HTTP_FIELD_EXPECT))

/*
 * Takes note of the last field of the message, which is one of H1_NOTED_FIELDS, and drops it from
 * the list when an earlier one says the same. 0 or the status of a refusal.
 */
int h1_note_field(struct h1_parser *s);

/* Checks the form of the target against the method and finds its authority. */
int h1_check_target(struct h1_parser *s);

/* The whole head is known: checks its fields against one another, decides flags and framing. */
int h1_finish_request(struct h1_parser *s);
int h1_finish_response(struct h1_parser *s);

#endif
