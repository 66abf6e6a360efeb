#include "http/http_internal.h"
#include "http/http_names.h"

#define FIRST_FIELDS 16 /* more than most heads have; doubled when needed */

void http_msg_init(struct http_msg *m, struct arena *arena)
{
    memset(m, 0, sizeof *m);
    m->arena = arena;
}

int http_msg_grow(struct http_msg *m)
{
    uint32_t capacity = m->field_capacity ? m->field_capacity * 2 : FIRST_FIELDS;
    struct http_field *fields;

    if (capacity <= m->field_capacity)
        return SP_ENOMEM;
    fields = arena_alloc(m->arena, capacity * sizeof *fields);
    if (!fields)
        return SP_ENOMEM;
    if (m->field_count)
        memcpy(fields, m->fields, m->field_count * sizeof *fields);
    m->fields = fields;
    m->field_capacity = capacity;
    return 0;
}

/* --- reading ---------------------------------------------------------------- */

static bool field_has_name(const struct http_field *f, unsigned id, struct str name)
{
    return f->id == id && (id != HTTP_FIELD_OTHER || str_ieq(f->name, name));
}

struct http_field *http_msg_next(const struct http_msg *m, struct str name, uint32_t *at)
{
    unsigned id = http_field_id_of(name);

    while (*at < m->field_count) {
        struct http_field *f = &m->fields[(*at)++];

        if (field_has_name(f, id, name))
            return f;
    }
    return NULL;
}

struct http_field *http_msg_find(const struct http_msg *m, enum http_field_id id)
{
    for (uint32_t i = 0; i < m->field_count; i++)
        if (m->fields[i].id == id)
            return &m->fields[i];
    return NULL;
}

/* --- changing --------------------------------------------------------------- */

static bool splits_message(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] == '\r' || s.ptr[i] == '\n' || s.ptr[i] == '\0')
            return true;
    return false;
}

static bool is_unsafe(struct str name, struct str value)
{
    return !name.len || splits_message(name) || splits_message(value);
}

static int insert_field(struct http_msg *m, uint32_t index, struct str name, struct str value)
{
    struct http_field *f;

    if (is_unsafe(name, value))
        return SP_EINVAL;
    if (http_msg_reserve(m) < 0)
        return SP_ENOMEM;
    f = &m->fields[index];
    memmove(f + 1, f, (m->field_count - index) * sizeof *f);
    *f = (struct http_field){.name = name, .value = value, .id = (uint16_t)http_field_id_of(name)};
    m->field_count++;
    return 0;
}

int http_msg_add(struct http_msg *m, struct str name, struct str value)
{
    return insert_field(m, m->field_count, name, value);
}

int http_msg_add_first(struct http_msg *m, struct str name, struct str value)
{
    return insert_field(m, 0, name, value);
}

int http_msg_set(struct http_msg *m, struct str name, struct str value)
{
    /* Everything that can fail comes before the old fields go. */
    if (is_unsafe(name, value))
        return SP_EINVAL;
    if (http_msg_reserve(m) < 0)
        return SP_ENOMEM;
    http_msg_del(m, name);
    return http_msg_add(m, name, value);
}

static unsigned delete_fields(struct http_msg *m, unsigned id, struct str name)
{
    uint32_t kept = 0;
    uint32_t count = m->field_count;

    for (uint32_t i = 0; i < count; i++) {
        if (field_has_name(&m->fields[i], id, name))
            continue;
        if (kept != i)
            m->fields[kept] = m->fields[i];
        kept++;
    }
    m->field_count = kept;
    return count - kept;
}

unsigned http_msg_del(struct http_msg *m, struct str name)
{
    return delete_fields(m, http_field_id_of(name), name);
}

unsigned http_msg_del_id(struct http_msg *m, enum http_field_id id)
{
    return id == HTTP_FIELD_OTHER ? 0 : delete_fields(m, id, STR_NULL);
}

void http_msg_del_at(struct http_msg *m, uint32_t index)
{
    m->field_count--;
    memmove(&m->fields[index], &m->fields[index + 1], (m->field_count - index) * sizeof *m->fields);
}

int http_msg_set_value(struct http_msg *m, struct http_field *f, struct str value)
{
    (void)m;
    if (splits_message(value))
        return SP_EINVAL;
    f->value = value;
    f->raw = STR_NULL;
    return 0;
}

/* --- hop by hop --------------------------------------------------------------- */

/*
 * A peer may name any field in Connection to have it removed. The ones that frame or route the
 * message stay, so that naming them cannot change its meaning.
 */
static bool may_be_named(unsigned id)
{
    switch (id) {
    case HTTP_FIELD_HOST:
    case HTTP_FIELD_CONTENT_LENGTH:
    case HTTP_FIELD_TRANSFER_ENCODING:
    case HTTP_FIELD_UPGRADE:
    case HTTP_FIELD_TRAILER:
    case HTTP_FIELD_TE:
    case HTTP_FIELD_CONNECTION:
        return false;
    default:
        return true;
    }
}

static void strip_named(struct http_msg *m)
{
    for (uint32_t i = 0; i < m->field_count; i++) {
        struct str rest, item;

        if (m->fields[i].id != HTTP_FIELD_CONNECTION)
            continue;
        rest = m->fields[i].value;
        while (http_list_next(&rest, &item)) {
            uint32_t at = 0;

            if (!may_be_named(http_field_id_of(item)))
                continue;
            while (http_msg_next(m, item, &at)) {
                at--;
                http_msg_del_at(m, at);
                if (at < i)
                    i--;
            }
        }
    }
}

/* TE lives on as "trailers" alone: that is all a relay can promise. */
static void strip_te(struct http_msg *m)
{
    bool kept = false;

    for (uint32_t i = 0; i < m->field_count;) {
        struct http_field *f = &m->fields[i];

        if (f->id != HTTP_FIELD_TE) {
            i++;
            continue;
        }
        if (kept || !http_list_has(f->value, STR("trailers"))) {
            http_msg_del_at(m, i);
            continue;
        }
        if (f->value.len != sizeof "trailers" - 1) {
            f->value = STR("trailers");
            f->raw = STR_NULL;
        }
        kept = true;
        i++;
    }
}

void http_msg_strip_hop_by_hop(struct http_msg *m)
{
    uint32_t i = 0;

    if (m->flags & HTTP_MSG_HAS_CONN_OPTIONS)
        strip_named(m);
    /* One look tells most messages that there is nothing left to do. */
    for (; i < m->field_count; i++) {
        unsigned id = m->fields[i].id;

        if (id == HTTP_FIELD_CONNECTION || id == HTTP_FIELD_KEEP_ALIVE ||
            id == HTTP_FIELD_PROXY_CONNECTION || id == HTTP_FIELD_TE)
            break;
    }
    if (i == m->field_count)
        return;
    http_msg_del_id(m, HTTP_FIELD_CONNECTION);
    http_msg_del_id(m, HTTP_FIELD_KEEP_ALIVE);
    http_msg_del_id(m, HTTP_FIELD_PROXY_CONNECTION);
    strip_te(m);
}

/* --- lists ---------------------------------------------------------------------- */

/* Offset of the first `stop` byte outside quoted strings, or s.len. */
static size_t unquoted_chr(struct str s, char stop)
{
    bool quoted = false;

    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];

        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (c == stop && !quoted)
            return i;
    }
    return s.len;
}

bool http_list_next(struct str *rest, struct str *item)
{
    while (rest->len) {
        size_t n = unquoted_chr(*rest, ',');

        *item = str_trim(str_make(rest->ptr, n));
        *rest = str_from(*rest, n + 1);
        if (item->len)
            return true;
    }
    return false;
}

bool http_list_has(struct str value, struct str token)
{
    struct str item;

    while (http_list_next(&value, &item))
        if (str_ieq(item, token))
            return true;
    return false;
}

bool http_list_element(struct str *rest, struct str *element)
{
    size_t n;

    if (!rest->ptr)
        return false;
    n = str_chr(*rest, ',');
    *element = str_trim(str_make(rest->ptr, n));
    *rest = n == rest->len ? STR_NULL : str_from(*rest, n + 1);
    return true;
}

/* Digits only, at most 2^63 - 1, so that no peer's signed arithmetic disagrees. */
static bool parse_number(struct str s, uint64_t *out)
{
    uint64_t value = 0;

    if (!s.len)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        unsigned digit = (unsigned)(unsigned char)s.ptr[i] - '0';

        if (digit > 9 || value > ((uint64_t)INT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

int http_parse_length(struct str value, uint64_t *out, struct str *digits)
{
    struct str rest = value, element = STR_NULL;
    uint64_t first = 0, number = 0;
    bool is_first = true;

    while (http_list_element(&rest, &element)) {
        if (!parse_number(element, &number) || (!is_first && number != first))
            return SP_EINVAL;
        first = number;
        is_first = false;
    }
    if (is_first)
        return SP_EINVAL;
    while (element.len > 1 && element.ptr[0] == '0')
        element = str_from(element, 1);
    *out = number;
    *digits = element;
    return 0;
}
