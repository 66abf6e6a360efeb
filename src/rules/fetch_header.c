/*
 * Fetches of header fields: whole lines ("fhdr") or comma-separated values.
 */
#include "rules/message.h"
#include "rules/tables.h"

enum {
    OF_REQUEST = 0,
    OF_RESPONSE = 1,
    OF_DIRECTION = 2, /* "hdr": by the hook */
    SIDE_MASK = 3,
    WHOLE = 4, /* lines, not values */
};

#define OCCURRENCE_MIN (-10)

static const struct http_msg *message_of(const struct fetch_call *f, const struct rules_ctx *ctx)
{
    switch (f->def->data & SIDE_MASK) {
    case OF_REQUEST:
        return ctx->req;
    case OF_RESPONSE:
        return ctx->res;
    default:
        return ctx_message(ctx);
    }
}

/* The next value at the iterator's position; an empty name means any field. */
static bool next_value(const struct http_msg *m, const struct fetch_call *f, struct str name,
                       struct fetch_iter *it, struct str *out)
{
    size_t end;

    if (!it->in_field) {
        while (it->at < m->field_count && name.len &&
               !field_matches(&m->fields[it->at], f->field_id, name))
            it->at++;
        if (it->at >= m->field_count)
            return false;
        it->rest = m->fields[it->at++].value;
        if (f->def->data & WHOLE) {
            /* Rules may have set values with blanks around. */
            *out = str_trim(it->rest);
            return true;
        }
    }
    end = list_value_end(it->rest);
    *out = str_trim(str_make(it->rest.ptr, end));
    it->in_field = end < it->rest.len;
    it->rest = str_from(it->rest, end + 1);
    return true;
}

/* Occurrence `wanted`: from the first (1…) or from the last (-1…). */
static bool occurrence(const struct http_msg *m, const struct fetch_call *f, struct str name,
                       int64_t wanted, struct str *out)
{
    struct fetch_iter it = {0};
    struct str value, last[-OCCURRENCE_MIN];
    int64_t n = 0;

    while (next_value(m, f, name, &it, &value)) {
        if (wanted == ++n) {
            *out = value;
            return true;
        }
        last[(n - 1) % -OCCURRENCE_MIN] = value;
    }
    if (wanted > 0 || n + wanted < 0)
        return false;
    *out = last[(n + wanted) % -OCCURRENCE_MIN];
    return true;
}

static bool fetch_text(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                       struct str *out)
{
    const struct http_msg *m = message_of(f, ctx);
    const struct rules_arg *name = arg_at(&f->args, 0), *occ = arg_at(&f->args, 1);

    if (!m || !name)
        return false;
    if (occ && occ->i)
        return occurrence(m, f, name->s, occ->i, out);
    if (!it->all)
        return occurrence(m, f, name->s, -1, out);
    it->more = next_value(m, f, name->s, it, out);
    return it->more;
}

static bool fetch_hdr(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                      struct sample *out)
{
    struct str s;

    return fetch_text(f, ctx, it, &s) && value_str(out, s);
}

static bool fetch_hdr_val(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                          struct sample *out)
{
    struct str s;

    return fetch_text(f, ctx, it, &s) && value_int(out, value_read_int(s, NULL));
}

/* "1.2.3.4", "1.2.3.4:80", "::1" or "[::1]". */
static bool parse_host(struct str s, struct addr *out)
{
    size_t colon = str_chr(s, ':');
    uint64_t port;

    if (value_parse_addr(s, out))
        return true;
    if (colon < s.len && str_to_u64(str_from(s, colon + 1), &port) == 0 && port <= 65535)
        return value_parse_addr(str_make(s.ptr, colon), out) && out->u.sa.sa_family == AF_INET;
    if (s.len > 2 && s.ptr[0] == '[' && s.ptr[s.len - 1] == ']')
        return value_parse_addr(str_make(s.ptr + 1, s.len - 2), out) &&
               out->u.sa.sa_family == AF_INET6;
    return false;
}

/* Values that are no addresses are skipped. */
static bool fetch_hdr_ip(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                         struct sample *out)
{
    struct str s;

    out->type = SAMPLE_ADDR;
    while (fetch_text(f, ctx, it, &s)) {
        if (parse_host(s, &out->u.a))
            return true;
        if (!it->more)
            return false;
    }
    return false;
}

static bool fetch_hdr_cnt(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                          struct sample *out)
{
    const struct http_msg *m = message_of(f, ctx);
    const struct rules_arg *name = arg_at(&f->args, 0);
    struct fetch_iter each = {0};
    struct str value;
    int64_t n = 0;

    if (!m)
        return false;
    while (next_value(m, f, name ? name->s : STR(""), &each, &value))
        n++;
    return value_int(out, n);
}

static int check_hdr(struct rules_compiler *c, struct rules_args *args, char why[RULES_WHY_BYTES])
{
    const struct rules_arg *occ = arg_at(args, 1);

    if (occ && occ->i < OCCURRENCE_MIN) {
        snprintf(why, RULES_WHY_BYTES, "the occurrence must be %d or more", OCCURRENCE_MIN);
        return SP_EINVAL;
    }
    return 0;
}

#define REQ NEEDS_REQUEST
#define RES NEEDS_RESPONSE
#define DIR NEEDS_DIRECTION
#define NAME_OCC "?si", "[<name>[,<occ>]]"
#define NAME "?s", "[<name>]"

static const struct fetch_def rows[] = {
    {"hdr", NAME_OCC, VALUE_STR, DIR, fetch_hdr, OF_DIRECTION,
     .help = "last value of a field of the message at hand", .check = check_hdr},
    {"hdr_cnt", NAME, VALUE_INT, REQ, fetch_hdr_cnt, OF_REQUEST, .help = "same as req.hdr_cnt"},
    {"hdr_ip", NAME_OCC, VALUE_ADDR, REQ, fetch_hdr_ip, OF_REQUEST, .help = "same as req.hdr_ip",
     .check = check_hdr},
    {"hdr_val", NAME_OCC, VALUE_INT, REQ, fetch_hdr_val, OF_REQUEST, .help = "same as req.hdr_val",
     .check = check_hdr},
    {"req.hdr", NAME_OCC, VALUE_STR, REQ, fetch_hdr, OF_REQUEST,
     .help = "last value of a request field", .check = check_hdr},
    {"req.hdr_cnt", NAME, VALUE_INT, REQ, fetch_hdr_cnt, OF_REQUEST,
     .help = "number of values of a request field"},
    {"req.hdr_ip", NAME_OCC, VALUE_ADDR, REQ, fetch_hdr_ip, OF_REQUEST,
     .help = "request field as an IP address", .check = check_hdr},
    {"req.hdr_val", NAME_OCC, VALUE_INT, REQ, fetch_hdr_val, OF_REQUEST,
     .help = "request field as an integer", .check = check_hdr},
    {"req.fhdr", NAME_OCC, VALUE_STR, REQ, fetch_hdr, OF_REQUEST | WHOLE,
     .help = "last whole line of a request field", .check = check_hdr},
    {"req.fhdr_cnt", NAME, VALUE_INT, REQ, fetch_hdr_cnt, OF_REQUEST | WHOLE,
     .help = "number of lines of a request field"},
    {"res.hdr", NAME_OCC, VALUE_STR, RES, fetch_hdr, OF_RESPONSE,
     .help = "last value of a response field", .check = check_hdr},
    {"res.hdr_cnt", NAME, VALUE_INT, RES, fetch_hdr_cnt, OF_RESPONSE,
     .help = "number of values of a response field"},
    {"res.hdr_ip", NAME_OCC, VALUE_ADDR, RES, fetch_hdr_ip, OF_RESPONSE,
     .help = "response field as an IP address", .check = check_hdr},
    {"res.hdr_val", NAME_OCC, VALUE_INT, RES, fetch_hdr_val, OF_RESPONSE,
     .help = "response field as an integer", .check = check_hdr},
    {"res.fhdr", NAME_OCC, VALUE_STR, RES, fetch_hdr, OF_RESPONSE | WHOLE,
     .help = "last whole line of a response field", .check = check_hdr},
    {"res.fhdr_cnt", NAME, VALUE_INT, RES, fetch_hdr_cnt, OF_RESPONSE | WHOLE,
     .help = "number of lines of a response field"},
    {"shdr", NAME_OCC, VALUE_STR, RES, fetch_hdr, OF_RESPONSE, .help = "same as res.hdr",
     .check = check_hdr},
    {"shdr_cnt", NAME, VALUE_INT, RES, fetch_hdr_cnt, OF_RESPONSE, .help = "same as res.hdr_cnt"},
    {"shdr_ip", NAME_OCC, VALUE_ADDR, RES, fetch_hdr_ip, OF_RESPONSE, .help = "same as res.hdr_ip",
     .check = check_hdr},
    {"shdr_val", NAME_OCC, VALUE_INT, RES, fetch_hdr_val, OF_RESPONSE,
     .help = "same as res.hdr_val", .check = check_hdr},
};

const struct fetch_table fetch_header_table = TABLE_OF(rows);
