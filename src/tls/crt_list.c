#include "tls/crt_list.h"

#include "base/status.h"
#include "tls/sources.h"

#include <errno.h>
#include <openssl/crypto.h>

#define WORDS_MAX 2048

/* One list being read. */
struct reading {
    struct tls_store *store;
    struct tls_sni *sni;
    const struct tls_server_params *p;
    struct diag *diag;
    struct cfg_loc loc; /* the line at hand */
    struct str words[WORDS_MAX];
    size_t count;
};

enum option_kind {
    OPT_TEXT,
    OPT_FLAG,
    OPT_VERIFY,
    OPT_VERSION,
    OPT_CA_PATH,
    OPT_CRT_PATH,
    OPT_UNSUPPORTED
};

struct option {
    const char *name;
    enum option_kind kind;
    size_t offset; /* in struct tls_list_options */
};

#define FIELD(name) offsetof(struct tls_list_options, name)

static const struct option options[] = {
    {"allow-0rtt", OPT_FLAG, FIELD(allow_0rtt)},
    {"alpn", OPT_TEXT, FIELD(alpn)},
    {"ca-file", OPT_CA_PATH, FIELD(ca_file)},
    {"ca-verify-file", OPT_CA_PATH, FIELD(ca_verify_file)},
    {"ciphers", OPT_TEXT, FIELD(ciphers)},
    {"ciphersuites", OPT_TEXT, FIELD(ciphersuites)},
    {"client-sigalgs", OPT_TEXT, FIELD(client_sigalgs)},
    {"crl-file", OPT_CA_PATH, FIELD(crl_file)},
    {"curves", OPT_TEXT, FIELD(curves)},
    {"ecdhe", OPT_TEXT, FIELD(curves)},
    {"issuer", OPT_UNSUPPORTED, 0},
    {"key", OPT_CRT_PATH, FIELD(key)},
    {"no-alpn", OPT_FLAG, FIELD(no_alpn)},
    {"no-ca-names", OPT_FLAG, FIELD(no_ca_names)},
    {"npn", OPT_UNSUPPORTED, 0},
    {"ocsp", OPT_UNSUPPORTED, 0},
    {"ocsp-update", OPT_UNSUPPORTED, 0},
    {"sctl", OPT_UNSUPPORTED, 0},
    {"sigalgs", OPT_TEXT, FIELD(sigalgs)},
    {"ssl-max-ver", OPT_VERSION, FIELD(max_version)},
    {"ssl-min-ver", OPT_VERSION, FIELD(min_version)},
    {"verify", OPT_VERIFY, FIELD(verify)},
};

#define OPTION_COUNT (sizeof(options) / sizeof(options[0]))

enum tls_version tls_version_parse(struct str s)
{
    static const struct {
        struct str name;
        enum tls_version version;
    } names[] = {
        {STR("SSLv3"), TLS_VERSION_SSL3}, {STR("TLSv1.0"), TLS_VERSION_10},
        {STR("TLSv1.1"), TLS_VERSION_11}, {STR("TLSv1.2"), TLS_VERSION_12},
        {STR("TLSv1.3"), TLS_VERSION_13},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (str_eq(s, names[i].name))
            return names[i].version;
    }
    return TLS_VERSION_ANY;
}

static const struct option *find_option(struct reading *r, struct str word)
{
    const char *names[OPTION_COUNT];
    char hint[96];

    for (size_t i = 0; i < OPTION_COUNT; i++) {
        names[i] = options[i].name;
        if (str_eq(word, str_of(names[i])))
            return &options[i];
    }
    const char *copy = arena_printf(r->diag->arena, "%.*s", STR_FMT(word));

    diag_error(r->diag, r->loc, "unknown option '%.*s' in crt-list brackets%s", STR_FMT(word),
               diag_suggest(hint, sizeof(hint), copy ? copy : "", names, OPTION_COUNT));
    return NULL;
}

static int bad_value(struct reading *r, const struct option *o, struct str value,
                     const char *expected)
{
    diag_error(r->diag, r->loc, "'%s' has the value '%.*s' in crt-list brackets, expected %s",
               o->name, STR_FMT(value), expected);
    return SP_EINVAL;
}

static int set_verify(struct reading *r, const struct option *o, struct str value,
                      struct tls_list_options *out)
{
    out->has_verify = true;
    if (str_eq(value, STR("none")))
        out->verify = TLS_VERIFY_NONE;
    else if (str_eq(value, STR("optional")))
        out->verify = TLS_VERIFY_OPTIONAL;
    else if (str_eq(value, STR("required")))
        out->verify = TLS_VERIFY_REQUIRED;
    else
        return bad_value(r, o, value, "'none', 'optional' or 'required'");
    return 0;
}

static int set_option(struct reading *r, const struct option *o, struct str value,
                      struct tls_list_options *out)
{
    char *field = (char *)out + o->offset;
    enum tls_version version;
    const char *text;

    switch (o->kind) {
    case OPT_FLAG:
        *(bool *)field = true;
        return 0;
    case OPT_VERIFY:
        return set_verify(r, o, value, out);
    case OPT_VERSION:
        version = tls_version_parse(value);
        if (version == TLS_VERSION_ANY)
            return bad_value(r, o, value, "SSLv3, TLSv1.0, TLSv1.1, TLSv1.2 or TLSv1.3");
        *(enum tls_version *)(void *)field = version;
        return 0;
    default:
        text = arena_printf(&r->store->arena, "%.*s", STR_FMT(value));
        if (text && o->kind == OPT_CRT_PATH)
            text = tls_store_path(r->store, r->p->crt_base, text);
        *(const char **)(void *)field = text;
        return text ? 0 : SP_ENOMEM;
    }
}

/* Words first to last (brackets taken off) into options. */
static int parse_options(struct reading *r, size_t first, size_t last, struct tls_list_options *out)
{
    for (size_t i = first; i < last; i++) {
        const struct option *o = find_option(r, r->words[i]);

        if (!o)
            return SP_EINVAL;
        if (o->kind == OPT_UNSUPPORTED) {
            diag_error(r->diag, r->loc,
                       "'%s' in crt-list brackets is an option of HAProxy that is not supported",
                       o->name);
            return SP_EINVAL;
        }
        if (o->kind == OPT_FLAG) {
            (void)set_option(r, o, STR(""), out);
            continue;
        }
        if (++i == last) {
            diag_error(r->diag, r->loc, "'%s' in crt-list brackets expects a value", o->name);
            return SP_EINVAL;
        }
        if (set_option(r, o, r->words[i], out) != 0)
            return SP_EINVAL;
    }
    return 0;
}

/*
 * Equal brackets are one set of options, so that a list of thousands of lines needs only a few
 * contexts.
 */
static const struct tls_list_options *intern_options(struct reading *r, struct str text,
                                                     const struct tls_list_options *parsed)
{
    struct tls_sni *sni = r->sni;
    const struct tls_list_options **all;
    struct tls_list_options *copy;

    for (size_t i = 0; i < sni->option_count; i++) {
        if (str_eq(sni->options[i]->text, text))
            return sni->options[i];
    }
    all = realloc(sni->options, (sni->option_count + 1) * sizeof(*all));
    if (!all)
        return NULL;
    sni->options = all;
    copy = arena_alloc(&r->store->arena, sizeof(*copy));
    if (!copy)
        return NULL;
    *copy = *parsed;
    copy->text = arena_str(&r->store->arena, text);
    copy->loc = r->loc;
    copy->index = sni->option_count + 1;
    all[sni->option_count++] = copy;
    return copy->text.ptr ? copy : NULL;
}

/*
 * Takes the brackets out of the words: [first, last) are the words inside. Returns the index of the
 * first word after them, or SP_EINVAL.
 */
static ptrdiff_t find_brackets(struct reading *r, size_t *first, size_t *last)
{
    struct str *word = &r->words[1];
    size_t i = 1;

    *first = *last = 1;
    if (r->count < 2 || word->len == 0 || word->ptr[0] != '[')
        return 1;
    *word = str_from(*word, 1);
    *first = word->len ? 1 : 2;
    for (i = 1; i < r->count; i++) {
        word = &r->words[i];
        if (word->len && word->ptr[0] == '[') {
            diag_error(r->diag, r->loc, "unexpected '[' in crt-list brackets");
            return SP_EINVAL;
        }
        if (word->len == 0 || word->ptr[word->len - 1] != ']')
            continue;
        word->len--;
        *last = word->len ? i + 1 : i;
        return (ptrdiff_t)i + 1;
    }
    diag_error(r->diag, r->loc, "no ']' after '[' on a crt-list line");
    return SP_EINVAL;
}

static int take_line(struct reading *r)
{
    struct tls_list_options parsed = {0};
    struct tls_offer offer = {0};
    const char *path = arena_printf(&r->store->arena, "%.*s", STR_FMT(r->words[0]));
    size_t first, last;
    ptrdiff_t filters = find_brackets(r, &first, &last);

    if (!path || filters < 0)
        return SP_EINVAL;
    for (size_t i = (size_t)filters; i < r->count; i++) {
        if (r->words[i].ptr[0] == '[' || r->words[i].ptr[r->words[i].len - 1] == ']') {
            diag_error(r->diag, r->loc,
                       "unexpected '%.*s' on a crt-list line: brackets follow the file",
                       STR_FMT(r->words[i]));
            return SP_EINVAL;
        }
    }
    if (last > first) {
        struct str text =
            str_make(r->words[first].ptr, (size_t)(r->words[last - 1].ptr + r->words[last - 1].len -
                                                   r->words[first].ptr));

        if (parse_options(r, first, last, &parsed) != 0)
            return SP_EINVAL;
        offer.key_path = parsed.key;
        offer.options = intern_options(r, text, &parsed);
        if (!offer.options)
            return SP_ENOMEM;
    }
    offer.names = &r->words[filters];
    offer.name_count = r->count - (size_t)filters;
    path = tls_store_path(r->store, r->p->crt_base, path);
    return path ? tls_source_file(r->store, r->sni, path, &offer, r->loc, r->diag) : SP_ENOMEM;
}

/* Words of a line up to a comment. SP_ETOOBIG when there are too many. */
static int split(struct reading *r, struct str line)
{
    r->count = 0;
    for (;;) {
        size_t len = 0;

        while (line.len && (line.ptr[0] == ' ' || line.ptr[0] == '\t' || line.ptr[0] == '\r'))
            line = str_from(line, 1);
        if (line.len == 0 || line.ptr[0] == '#')
            return 0;
        while (len < line.len && line.ptr[len] != ' ' && line.ptr[len] != '\t' &&
               line.ptr[len] != '\r')
            len++;
        if (r->count == WORDS_MAX)
            return SP_ETOOBIG;
        r->words[r->count++] = str_make(line.ptr, len);
        line = str_from(line, len);
    }
}

int tls_crt_list_load(struct tls_store *store, struct tls_sni *sni,
                      const struct tls_server_params *p, const char *path, struct cfg_loc loc,
                      struct diag *diag)
{
    struct reading *r = calloc(1, sizeof(*r));
    char *text = NULL;
    size_t len = 0;
    int status = r ? tls_read_file(path, &text, &len) : SP_ENOMEM;

    if (status != 0) {
        diag_error(diag, loc, "unable to read crt-list %s: %s", path,
                   status == SP_EIO ? strerror(errno) : "out of memory");
        free(r);
        return SP_EINVAL;
    }
    *r = (struct reading){.store = store, .sni = sni, .p = p, .diag = diag};
    r->loc.file = arena_cstr(diag->arena, path); /* messages may outlive the store */
    for (struct str rest = str_make(text, len); rest.len;) {
        size_t end = str_chr(rest, '\n');
        struct str line = str_make(rest.ptr, end);

        rest = str_from(rest, end + 1);
        r->loc.line++;
        if (split(r, line) != 0) {
            diag_error(diag, r->loc, "more than %d words on a crt-list line", WORDS_MAX);
            status = SP_EINVAL;
        } else if (r->count && take_line(r) != 0) {
            status = SP_EINVAL;
        }
    }
    free(text);
    free(r);
    return status;
}
