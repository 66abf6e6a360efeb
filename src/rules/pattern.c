#include "rules/pattern.h"

const char *const pat_match_names[PAT_MATCH_COUNT] = {
    "found", "bool", "int", "ip",  "bin", "len", "str",
    "beg",   "sub",  "dir", "dom", "end", "reg", NULL,
};

int pat_match_find(struct str name)
{
    for (int i = 0; i < PAT_MATCH_COUNT; i++)
        if (pat_match_names[i] && str_eq(name, str_of(pat_match_names[i])))
            return i;
    return SP_ENOENT;
}

enum value_type pat_match_type(enum pat_match m)
{
    switch (m) {
    case PAT_FOUND:
        return VALUE_ANY;
    case PAT_BOOL:
    case PAT_INT:
    case PAT_DOTTED:
        return VALUE_INT;
    case PAT_IP:
        return VALUE_ADDR;
    case PAT_BIN:
        return VALUE_BIN;
    default:
        return VALUE_STR;
    }
}

bool pat_match_takes_patterns(enum pat_match m)
{
    return m != PAT_FOUND && m != PAT_BOOL;
}

static char lower(char ch)
{
    return ch >= 'A' && ch <= 'Z' ? (char)(ch | 0x20) : ch;
}

/* FNV-1a over the bytes, folded to lower case when case does not matter. */
static uint32_t hash_text(struct str s, bool ignore_case)
{
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < s.len; i++) {
        uint8_t byte = (uint8_t)(ignore_case ? lower(s.ptr[i]) : s.ptr[i]);

        h = (h ^ byte) * 16777619u;
    }
    return h ^ h >> 15;
}

static bool same_text(struct str a, struct str b, bool ignore_case)
{
    return ignore_case ? str_ieq(a, b) : str_eq(a, b);
}

/* --- words between delimiters ------------------------------------------------------------ */

static bool is_delimiter(char ch, enum pat_match m)
{
    if (ch == '/' || ch == '?')
        return true;
    return m == PAT_DOM && (ch == '.' || ch == ':');
}

static struct str strip_delimiters(struct str s, enum pat_match m)
{
    while (s.len && is_delimiter(s.ptr[0], m))
        s = str_from(s, 1);
    while (s.len && is_delimiter(s.ptr[s.len - 1], m))
        s.len--;
    return s;
}

/* True when `word` stands between delimiters or the ends of `s`. */
static bool has_word(struct str s, struct str word, enum pat_match m, bool ignore_case)
{
    bool at_start = true;

    for (size_t i = 0; i + word.len <= s.len; i++) {
        if (is_delimiter(s.ptr[i], m)) {
            at_start = true;
            continue;
        }
        if (at_start && same_text(str_make(s.ptr + i, word.len), word, ignore_case) &&
            (i + word.len == s.len || is_delimiter(s.ptr[i + word.len], m)))
            return true;
        at_start = false;
    }
    return false;
}

/* --- networks ---------------------------------------------------------------------------------- */

static uint32_t hash_net(const uint8_t *bytes, size_t n, unsigned bits)
{
    uint32_t h = 2166136261u ^ bits * 0x9e3779b9u;

    for (size_t i = 0; i < n; i++) {
        uint8_t byte = bytes[i];

        if (8 * i + 8 > bits)
            byte &= bits > 8 * i ? (uint8_t)(0xff00 >> (bits - 8 * i)) : 0;
        h = (h ^ byte) * 16777619u;
    }
    return h ^ h >> 15;
}

static bool same_net(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;

    if (memcmp(a, b, whole) != 0)
        return false;
    return !rest || ((a[whole] ^ b[whole]) & (uint8_t)(0xff00 >> rest)) == 0;
}

static const struct pat_entry *find_net(const struct pat_index *ix, int family,
                                        const uint8_t *bytes)
{
    int f = family == AF_INET6;

    for (unsigned k = 0; k < ix->prefix_count[f]; k++) {
        unsigned bits = ix->prefixes[f][k];
        uint32_t at = hash_net(bytes, f ? 16 : 4, bits) & ix->mask;

        for (; ix->slots[at]; at = (at + 1) & ix->mask) {
            const struct pat_entry *e = &ix->entries[ix->slots[at] - 1];

            if (e->net.family == family && e->net.prefix_bits == bits &&
                same_net(e->net.bytes, bytes, bits))
                return e;
        }
    }
    return NULL;
}

/* IPv4 also as ::ffff:a.b.c.d, and IPv6 that carries an IPv4 address also as that one. */
static const struct pat_entry *find_addr(const struct pat_index *ix, const struct addr *a)
{
    const struct pat_entry *e;
    const uint8_t *bytes;
    uint8_t other[16] = {[10] = 0xff, [11] = 0xff};
    size_t n = value_addr_bytes(a, &bytes);

    if (!n || !ix->slots)
        return NULL;
    if (n == 4) {
        e = find_net(ix, AF_INET, bytes);
        if (e || !ix->prefix_count[1])
            return e;
        memcpy(other + 12, bytes, 4);
        return find_net(ix, AF_INET6, other);
    }
    e = find_net(ix, AF_INET6, bytes);
    if (e || !ix->prefix_count[0] || !value_v6_to_v4(bytes, other))
        return e;
    return find_net(ix, AF_INET, other);
}

/* --- matching -------------------------------------------------------------------------------------- */

static const struct pat_entry *find_exact(const struct pat_index *ix, struct str s)
{
    uint32_t at = hash_text(s, ix->ignore_case) & ix->mask;

    for (; ix->slots[at]; at = (at + 1) & ix->mask) {
        const struct pat_entry *e = &ix->entries[ix->slots[at] - 1];

        if (same_text(e->text, s, ix->ignore_case))
            return e;
    }
    return NULL;
}

static const struct pat_entry *find_prefix(const struct pat_index *ix, struct str s)
{
    for (unsigned k = 0; k < ix->length_count; k++) {
        const struct pat_entry *e;

        if (ix->lengths[k] > s.len)
            continue;
        e = find_exact(ix, str_make(s.ptr, ix->lengths[k]));
        if (e)
            return e;
    }
    return NULL;
}

static bool text_matches(const struct pat_index *ix, const struct pat_entry *e, struct str s)
{
    bool icase = ix->ignore_case;

    switch (ix->match) {
    case PAT_STR:
        return same_text(e->text, s, icase);
    case PAT_BEG:
        return icase ? str_istarts(s, e->text) : str_starts(s, e->text);
    case PAT_END:
        return s.len >= e->text.len && same_text(str_from(s, s.len - e->text.len), e->text, icase);
    case PAT_SUB:
        if (e->text.len > s.len)
            return false;
        return !e->text.len || (icase ? str_ifind(s, e->text) : str_find(s, e->text)) < s.len;
    case PAT_DIR:
    case PAT_DOM:
        return has_word(s, e->delimited, ix->match, icase);
    case PAT_REG:
        return regex_test(e->regex, s);
    case PAT_LEN:
        return e->min <= (int64_t)s.len && (int64_t)s.len <= e->max;
    default:
        return str_eq(e->text, s);
    }
}

const struct pat_entry *pat_index_find(const struct pat_index *ix, const struct sample *s)
{
    if (ix->match == PAT_IP)
        return s->type == SAMPLE_ADDR ? find_addr(ix, &s->u.a) : NULL;
    if (ix->match == PAT_INT || ix->match == PAT_DOTTED) {
        for (unsigned i = 0; i < ix->count; i++)
            if (ix->entries[i].min <= s->u.i && s->u.i <= ix->entries[i].max)
                return &ix->entries[i];
        return NULL;
    }
    if (ix->slots)
        return ix->match == PAT_BEG ? find_prefix(ix, s->u.s) : find_exact(ix, s->u.s);
    for (unsigned i = 0; i < ix->count; i++)
        if (text_matches(ix, &ix->entries[i], s->u.s))
            return &ix->entries[i];
    return NULL;
}

/* --- parsing patterns ---------------------------------------------------------------------------------- */

static bool parse_number(struct str s, bool dotted, int64_t *out)
{
    int64_t major, minor = 0;
    size_t dot = dotted ? str_chr(s, '.') : s.len;

    if (str_to_i64(str_make(s.ptr, dot), &major) < 0)
        return false;
    if (dot < s.len && str_to_i64(str_from(s, dot + 1), &minor) < 0)
        return false;
    if (!dotted) {
        *out = major;
        return true;
    }
    if (major < 0 || major > 65535 || minor < 0 || minor > 65535)
        return false;
    *out = major << 16 | minor;
    return true;
}

/* "N", "LOW:HIGH", "LOW:", ":HIGH"; '-' separates too, so that numbers in ranges are not negative. */
static bool parse_range(struct str s, bool dotted, struct pat_entry *e)
{
    size_t sep = 0;
    struct str low, high;

    while (sep < s.len && s.ptr[sep] != ':' && s.ptr[sep] != '-')
        sep++;
    e->min = INT64_MIN;
    e->max = INT64_MAX;
    if (sep == s.len) {
        if (!parse_number(s, dotted, &e->min))
            return false;
        e->max = e->min;
        return true;
    }
    low = str_make(s.ptr, sep);
    high = str_from(s, sep + 1);
    if (!low.len && !high.len)
        return false;
    if (low.len && !parse_number(low, dotted, &e->min))
        return false;
    if (high.len && !parse_number(high, dotted, &e->max))
        return false;
    return e->min <= e->max;
}

static int hex_value(char ch)
{
    if (ch >= '0' && ch <= '9')
        return ch - '0';
    ch = lower(ch);
    return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

static bool parse_hex(struct str s, struct arena *arena, struct str *out)
{
    char *bytes = arena_alloc(arena, s.len / 2 + 1);

    if (!bytes || s.len % 2)
        return false;
    for (size_t i = 0; i < s.len; i += 2) {
        int high = hex_value(s.ptr[i]), low = hex_value(s.ptr[i + 1]);

        if (high < 0 || low < 0)
            return false;
        bytes[i / 2] = (char)(high << 4 | low);
    }
    *out = str_make(bytes, s.len / 2);
    return true;
}

/* The classic short forms "10.1/16" and "127.1": the last number fills all octets that are left. */
static bool parse_short_net(struct str s, struct addr_net *out)
{
    size_t slash = str_chr(s, '/');
    struct str host = str_make(s.ptr, slash);
    uint64_t part, bits = 32;
    uint32_t address = 0;
    unsigned n = 0;

    if (slash < s.len && (str_to_u64(str_from(s, slash + 1), &bits) < 0 || bits > 32))
        return false;
    for (;;) {
        size_t dot = str_chr(host, '.');

        if (n == 4 || str_to_u64(str_make(host.ptr, dot), &part) < 0)
            return false;
        if (dot == host.len)
            break;
        if (part > 255)
            return false;
        address |= (uint32_t)part << (24 - 8 * n++);
        host = str_from(host, dot + 1);
    }
    if (part > UINT32_MAX >> 8 * n)
        return false;
    address |= (uint32_t)part;
    memset(out, 0, sizeof *out);
    out->family = AF_INET;
    out->prefix_bits = (uint8_t)bits;
    for (unsigned i = 0; i < 4; i++)
        out->bytes[i] = (uint8_t)(address >> (24 - 8 * i));
    return true;
}

/* "a.b.c.d/m.m.m.m" with contiguous bits. */
static bool parse_dotted_mask(struct str s, struct addr_net *out)
{
    size_t slash = str_chr(s, '/');
    struct addr a, mask;
    const uint8_t *bytes;
    unsigned bits = 0;

    if (slash == s.len || !value_parse_addr(str_make(s.ptr, slash), &a) ||
        a.u.sa.sa_family != AF_INET || !value_parse_addr(str_from(s, slash + 1), &mask) ||
        mask.u.sa.sa_family != AF_INET)
        return false;
    value_addr_bytes(&mask, &bytes);
    while (bits < 32 && bytes[bits / 8] >> (7 - bits % 8) & 1)
        bits++;
    for (unsigned i = bits; i < 32; i++)
        if (bytes[i / 8] >> (7 - i % 8) & 1)
            return false;
    memset(out, 0, sizeof *out);
    out->family = AF_INET;
    out->prefix_bits = (uint8_t)bits;
    value_addr_bytes(&a, &bytes);
    memcpy(out->bytes, bytes, 4);
    return true;
}

/* A host name, looked up once and for all; not what one should rely on, but what is found in use. */
static bool resolve_net(struct str s, struct arena *arena, struct addr_net *out)
{
    size_t slash = str_chr(s, '/');
    struct str name = arena_str(arena, str_make(s.ptr, slash));
    struct addr_spec spec;
    const char *why;
    const uint8_t *bytes;
    uint64_t bits = 32;

    if (slash < s.len && (str_to_u64(str_from(s, slash + 1), &bits) < 0 || bits > 32))
        return false;
    if (!name.ptr || strchr(name.ptr, '@') || strchr(name.ptr, ':') ||
        addr_parse(name.ptr, ADDR_RESOLVE, &spec, &why) < 0 || spec.addr.u.sa.sa_family != AF_INET)
        return false;
    memset(out, 0, sizeof *out);
    out->family = AF_INET;
    out->prefix_bits = (uint8_t)bits;
    value_addr_bytes(&spec.addr, &bytes);
    memcpy(out->bytes, bytes, 4);
    return true;
}

static bool parse_net(const struct pat_index *ix, struct str s, struct arena *arena,
                      struct addr_net *out)
{
    return addr_net_parse(s, out) == 0 || parse_dotted_mask(s, out) || parse_short_net(s, out) ||
           (ix->resolve && s.len && ((s.ptr[0] | 0x20) >= 'a' && (s.ptr[0] | 0x20) <= 'z') &&
            resolve_net(s, arena, out));
}

static int parse_value(enum value_type type, struct str text, struct pat_entry *e,
                       char why[RULES_WHY_BYTES])
{
    e->has_value = true;
    switch (type) {
    case VALUE_INT:
        e->value.type = SAMPLE_INT;
        if (str_to_i64(text, &e->value.u.i) == 0)
            return 0;
        snprintf(why, RULES_WHY_BYTES, "value '%.*s' of key '%.*s' is not an integer",
                 STR_FMT(text), STR_FMT(e->text));
        return SP_EINVAL;
    case VALUE_ADDR:
        e->value.type = SAMPLE_ADDR;
        if (value_parse_addr(text, &e->value.u.a))
            return 0;
        snprintf(why, RULES_WHY_BYTES, "value '%.*s' of key '%.*s' is not an IP address",
                 STR_FMT(text), STR_FMT(e->text));
        return SP_EINVAL;
    default:
        value_str(&e->value, text);
        return 0;
    }
}

static int parse_key(struct pat_index *ix, struct str text, struct arena *arena,
                     struct rules_registry *registry, struct pat_entry *e,
                     char why[RULES_WHY_BYTES])
{
    const char *expected = NULL;

    e->text = text;
    switch (ix->match) {
    case PAT_INT:
    case PAT_LEN:
        if (!parse_range(text, false, e))
            expected = "a number or a range of numbers";
        break;
    case PAT_DOTTED:
        if (!parse_range(text, true, e))
            expected = "a version or a range of versions";
        break;
    case PAT_IP:
        if (!parse_net(ix, text, arena, &e->net))
            expected = "an IPv4 or IPv6 address or network";
        break;
    case PAT_BIN:
        if (!parse_hex(text, arena, &e->text))
            expected = "an even number of hexadecimal digits";
        break;
    case PAT_DIR:
    case PAT_DOM:
        e->delimited = strip_delimiters(text, ix->match);
        break;
    case PAT_REG: {
        struct str zero = arena_str(arena, text);

        if (!zero.ptr)
            return SP_ENOMEM;
        return regex_compile(registry, zero.ptr, ix->ignore_case, ix->captures, &e->regex, why,
                             RULES_WHY_BYTES);
    }
    default:
        break;
    }
    if (expected) {
        snprintf(why, RULES_WHY_BYTES, "'%.*s' is not %s", STR_FMT(text), expected);
        return SP_EINVAL;
    }
    return 0;
}

/* --- building --------------------------------------------------------------------------------------------- */

static int compare_descending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? 1 : x > y ? -1 : 0;
}

static int index_lengths(struct pat_index *ix, struct arena *arena)
{
    unsigned n = 0;

    ix->lengths = arena_zalloc(arena, ix->count, sizeof *ix->lengths);
    if (!ix->lengths)
        return SP_ENOMEM;
    for (unsigned i = 0; i < ix->count; i++)
        ix->lengths[i] = (uint32_t)ix->entries[i].text.len;
    qsort(ix->lengths, ix->count, sizeof *ix->lengths, compare_descending);
    for (unsigned i = 0; i < ix->count; i++)
        if (!n || ix->lengths[n - 1] != ix->lengths[i])
            ix->lengths[n++] = ix->lengths[i];
    ix->length_count = n;
    return 0;
}

static void index_prefixes(struct pat_index *ix)
{
    bool seen[2][129] = {{false}};

    for (unsigned i = 0; i < ix->count; i++)
        seen[ix->entries[i].net.family == AF_INET6][ix->entries[i].net.prefix_bits] = true;
    for (int f = 0; f < 2; f++)
        for (int bits = 128; bits >= 0; bits--)
            if (seen[f][bits])
                ix->prefixes[f][ix->prefix_count[f]++] = (uint8_t)bits;
}

static uint32_t entry_hash(const struct pat_index *ix, const struct pat_entry *e)
{
    if (ix->match == PAT_IP)
        return hash_net(e->net.bytes, e->net.family == AF_INET6 ? 16 : 4, e->net.prefix_bits);
    return hash_text(e->text, ix->ignore_case);
}

/* The first of several equal keys wins, as it would in a list. */
static int index_hash(struct pat_index *ix, struct arena *arena)
{
    uint32_t size = 8;

    while (size < ix->count * 2)
        size *= 2;
    ix->slots = arena_zalloc(arena, size, sizeof *ix->slots);
    if (!ix->slots)
        return SP_ENOMEM;
    ix->mask = size - 1;
    for (unsigned i = 0; i < ix->count; i++) {
        uint32_t at = entry_hash(ix, &ix->entries[i]) & ix->mask;

        while (ix->slots[at])
            at = (at + 1) & ix->mask;
        ix->slots[at] = i + 1;
    }
    return 0;
}

/* A handful of short strings is compared faster than hashed. */
#define HASH_FROM 5

int pat_index_build(enum pat_match match, unsigned flags, enum value_type map_type,
                    const struct pat_source *sources, unsigned count, struct arena *arena,
                    struct rules_registry *registry, struct pat_index **out,
                    char why[RULES_WHY_BYTES])
{
    struct pat_index *ix = arena_zalloc(arena, 1, sizeof *ix);
    bool hashed;

    if (!ix)
        return SP_ENOMEM;
    ix->match = match;
    ix->ignore_case = flags & PAT_IGNORE_CASE;
    ix->resolve = flags & PAT_RESOLVE;
    ix->captures = map_type != VALUE_ANY;
    ix->count = count;
    ix->entries = arena_zalloc(arena, count ? count : 1, sizeof *ix->entries);
    if (!ix->entries)
        return SP_ENOMEM;
    for (unsigned i = 0; i < count; i++) {
        struct pat_entry *e = &ix->entries[i];
        int status = parse_key(ix, sources[i].key, arena, registry, e, why);

        if (status == 0 && map_type != VALUE_ANY && sources[i].value.ptr)
            status = parse_value(map_type, sources[i].value, e, why);
        if (status < 0)
            return status;
    }
    /* A map of prefixes answers with the longest one, however few there are. */
    hashed = match == PAT_IP || (match == PAT_BEG && map_type != VALUE_ANY) ||
             ((match == PAT_STR || match == PAT_BEG) && count >= HASH_FROM);
    if (hashed && index_hash(ix, arena) < 0)
        return SP_ENOMEM;
    if (hashed && match == PAT_BEG && index_lengths(ix, arena) < 0)
        return SP_ENOMEM;
    if (match == PAT_IP)
        index_prefixes(ix);
    *out = ix;
    return 0;
}
