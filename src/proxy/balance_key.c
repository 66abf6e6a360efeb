#include "proxy/balance_internal.h"

/* A number as text, as "hash-type … none" expects: leading blanks and what follows the digits do not count. */
static uint32_t number_of(struct str key)
{
    uint64_t value = 0;
    bool negative = false;
    size_t i = 0;

    if (i < key.len && (key.ptr[i] == '-' || key.ptr[i] == '+'))
        negative = key.ptr[i++] == '-';
    for (; i < key.len && key.ptr[i] >= '0' && key.ptr[i] <= '9'; i++)
        value = value * 10 + (uint64_t)(key.ptr[i] - '0');
    return (uint32_t)(negative ? 0 - value : value);
}

static uint32_t hash_text(const struct cfg_balance *cfg, struct str key)
{
    uint32_t h;

    switch (cfg->hash_function) {
    case 1:
        h = hash_djb2(key, HASH_DJB2_SEED);
        break;
    case 2:
        h = hash_wt6(key);
        break;
    case 3:
        h = hash_crc32(key);
        break;
    case 4:
        h = number_of(key);
        break;
    default:
        h = hash_sdbm(key);
        break;
    }
    return cfg->avalanche ? hash_avalanche(h) : h;
}

/* Addresses are folded by exclusive or in words of network order, whatever the hash function. */
static bool hash_source(const struct cfg_balance *cfg, const struct addr *src, uint32_t *out)
{
    const uint8_t *bytes;
    size_t len;
    uint32_t h = 0;

    if (!src)
        return false;
    if (src->u.sa.sa_family == AF_INET) {
        bytes = (const uint8_t *)&src->u.in.sin_addr;
        len = sizeof src->u.in.sin_addr;
    } else if (src->u.sa.sa_family == AF_INET6) {
        bytes = src->u.in6.sin6_addr.s6_addr;
        len = sizeof src->u.in6.sin6_addr;
    } else {
        return false;
    }
    for (size_t i = 0; i < len; i += 4)
        h ^= (uint32_t)bytes[i] << 24 | (uint32_t)bytes[i + 1] << 16 | (uint32_t)bytes[i + 2] << 8 | bytes[i + 3];
    *out = cfg->avalanche ? hash_avalanche(h) : h;
    return true;
}

static struct str uri_key(const struct cfg_balance *cfg, struct str target)
{
    struct str key = target;
    int slashes = 0;

    if (cfg->uri_path_only) {
        struct http_target parts;

        http_target_split(target, &parts);
        if (!parts.path.len || parts.path.ptr[0] != '/')
            return STR_NULL;
        key = str_make(parts.path.ptr, target.len - (size_t)(parts.path.ptr - target.ptr));
    }
    if (cfg->uri_len && key.len > (size_t)cfg->uri_len)
        key.len = (size_t)cfg->uri_len;
    for (size_t i = 0; i < key.len; i++) {
        if (key.ptr[i] == '/') {
            if (cfg->uri_depth && ++slashes > cfg->uri_depth)
                return str_make(key.ptr, i);
        } else if (key.ptr[i] == '?' && !cfg->uri_whole) {
            return str_make(key.ptr, i);
        }
    }
    return key;
}

static struct str field_list_first(struct str value)
{
    struct str item;

    return http_list_next(&value, &item) ? item : STR_NULL;
}

/*
 * The part of a host name in front of its last dot, without what is left of the dot before: "example" of
 * "www.example.com". A leading dot is none.
 */
static struct str main_domain(struct str host)
{
    size_t end = host.len, start;

    while (end > 1 && host.ptr[end - 1] != '.')
        end--;
    if (end <= 1)
        return host;
    end--;
    start = end - 1;
    while (start > 0 && host.ptr[start - 1] != '.')
        start--;
    return str_make(host.ptr + start, end - start);
}

/* The value of a parameter among "a=1&b=2". */
static bool find_param(struct str text, struct str name, struct str *value)
{
    while (text.len > name.len) {
        if (text.ptr[name.len] == '=' && str_starts(text, name)) {
            *value = str_from(text, name.len + 1);
            value->len = str_chr(*value, '&');
            return true;
        }
        text = str_from(text, str_chr(text, '&') + 1);
    }
    return false;
}

/* In a body a value ends at white space, and one with foreign bytes shows that the body holds no parameters. */
static bool find_body_param(struct str body, struct str name, struct str *value)
{
    if (!find_param(body, name, value))
        return false;
    for (size_t i = 0; i < value->len; i++) {
        char c = value->ptr[i];

        if (http_is_token(str_make(&value->ptr[i], 1)))
            continue;
        if (c != ' ' && c != '\t' && c != '\r' && c != '\n')
            return false;
        value->len = i;
    }
    return true;
}

static bool param_key(const struct cfg_balance *cfg, const struct balance_request *r, struct str *key)
{
    struct str name = str_of(cfg->param);
    struct str query = str_from(r->req->target, str_chr(r->req->target, '?') + 1);

    if (find_param(query, name, key))
        return true;
    return cfg->check_post && r->req->method == HTTP_POST && find_body_param(r->body, name, key);
}

static bool header_key(const struct cfg_balance *cfg, const struct balance_request *r, struct str *key)
{
    uint32_t at = 0;
    struct http_field *f = http_msg_next(r->req, str_of(cfg->param), &at);

    if (!f)
        return false;
    *key = field_list_first(f->value);
    if (!key->len)
        return false;
    if (cfg->hdr_use_domain_only)
        *key = main_domain(*key);
    return true;
}

/* Numbers are hashed as eight bytes in network order, addresses as their bytes; "none" reads them as text. */
static bool expression_hash(const struct balance *b, const struct balance_request *r, uint32_t *hash)
{
    const struct cfg_balance *cfg = &b->backend->cfg->balance;
    struct sample v;
    struct str key;
    char bytes[8];

    if (!b->expr || !r->rules)
        return false;
    if (cfg->hash_function == 4) {
        if (!rules_expr_str(b->expr, r->rules, &key))
            return false;
        *hash = hash_text(cfg, key);
        return true;
    }
    if (!rules_expr_eval(b->expr, r->rules, &v))
        return false;
    switch (v.type) {
    case SAMPLE_BOOL:
    case SAMPLE_INT: {
        uint64_t n = v.type == SAMPLE_BOOL ? (uint64_t)v.u.b : (uint64_t)v.u.i;

        for (int i = 0; i < 8; i++)
            bytes[i] = (char)(n >> (56 - 8 * i));
        key = str_make(bytes, sizeof bytes);
        break;
    }
    case SAMPLE_ADDR:
        if (v.u.a.u.sa.sa_family == AF_INET)
            key = str_make((const char *)&v.u.a.u.in.sin_addr, 4);
        else if (v.u.a.u.sa.sa_family == AF_INET6)
            key = str_make((const char *)&v.u.a.u.in6.sin6_addr, 16);
        else
            return false;
        break;
    default:
        key = v.u.s;
        break;
    }
    *hash = hash_text(cfg, key);
    return true;
}

bool balance_key_hash(const struct balance *b, const struct balance_request *r, uint32_t *hash)
{
    const struct cfg_balance *cfg = &b->backend->cfg->balance;
    struct str key;

    switch (cfg->algo) {
    case CFG_BALANCE_SOURCE:
        return hash_source(cfg, r->src, hash);
    case CFG_BALANCE_HASH:
        return expression_hash(b, r, hash);
    case CFG_BALANCE_URI:
        if (!r->req)
            return false;
        key = uri_key(cfg, r->req->target);
        break;
    case CFG_BALANCE_URL_PARAM:
        if (!r->req || !param_key(cfg, r, &key))
            return false;
        break;
    case CFG_BALANCE_HDR:
        if (!r->req || !header_key(cfg, r, &key))
            return false;
        break;
    default:
        return false;
    }
    *hash = hash_text(cfg, key);
    return true;
}
