#include "config/parser.h"

#include <limits.h>

/* "name(argument)": true when `word` begins with `name` and has the parentheses; *out gets the argument. */
static bool call(struct cfg_parser *p, const char *word, const char *name, const char **out)
{
    size_t len = strlen(name), end = strlen(word);

    if (strncmp(word, name, len) != 0 || word[len] != '(' || end < len + 3 || word[end - 1] != ')')
        return false;
    *out = cfg_printf(p, "%.*s", (int)(end - len - 2), word + len + 1);
    return *out != NULL;
}

static int parse_uri(struct cfg_parser *p, const struct cfg_kw *kw, struct cfg_balance *b, int argc,
                     char **argv)
{
    int at = 0;

    while (at < argc) {
        bool len = strcmp(argv[at], "len") == 0, depth = strcmp(argv[at], "depth") == 0;
        int64_t value;

        if ((len || depth) && at + 1 == argc)
            return cfg_kw_fail(p, kw, "missing number after '%s'", argv[at]);
        if (len || depth) {
            if (cfg_value_int(p, kw, argv[at + 1], 1, INT_MAX, &value) != 0)
                return SP_EINVAL;
            *(len ? &b->uri_len : &b->uri_depth) = (int)value;
            at += 2;
        } else if (strcmp(argv[at], "whole") == 0) {
            b->uri_whole = true;
            at++;
        } else if (strcmp(argv[at], "path-only") == 0) {
            b->uri_path_only = true;
            at++;
        } else {
            break;
        }
    }
    return at;
}

static int parse_url_param(struct cfg_parser *p, const struct cfg_kw *kw, struct cfg_balance *b,
                           int argc, char **argv)
{
    if (argc == 0)
        return cfg_kw_fail(p, kw, "missing parameter name; expected 'balance url_param <name>'");
    b->param = argv[0];
    b->check_post = argc > 1 && strcmp(argv[1], "check_post") == 0;
    return b->check_post ? 2 : 1;
}

/* The algorithms with an argument in parentheses. The number of words taken, or -1 when it is none of them. */
static int parse_call(struct cfg_parser *p, const struct cfg_kw *kw, struct cfg_balance *b,
                      int argc, char **argv)
{
    const char *argument;
    int64_t draws;

    if (call(p, argv[0], "hdr", &b->param)) {
        b->algo = CFG_BALANCE_HDR;
        b->hdr_use_domain_only = argc > 1 && strcmp(argv[1], "use_domain_only") == 0;
        return b->hdr_use_domain_only ? 2 : 1;
    }
    if (call(p, argv[0], "random", &argument)) {
        b->algo = CFG_BALANCE_RANDOM;
        if (cfg_value_int(p, kw, argument, 1, INT_MAX, &draws) != 0)
            return SP_EINVAL;
        b->random_draws = (int)draws;
        return 1;
    }
    if (call(p, argv[0], "rdp-cookie", &b->param)) {
        b->algo = CFG_BALANCE_RDP_COOKIE;
        return 1;
    }
    if (strcmp(argv[0], "hash") == 0) {
        if (argc == 1)
            return cfg_kw_fail(p, kw, "missing expression; expected 'balance hash <expression>'");
        b->algo = CFG_BALANCE_HASH;
        b->param = argv[1];
        for (int i = 2; i < argc && b->param; i++)
            b->param = cfg_printf(p, "%s %s", b->param, argv[i]);
        return argc;
    }
    return 0;
}

static int parse_balance(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                         char **argv)
{
    static const char *const words[] = {
        "roundrobin", "static-rr",  "leastconn",         "first",
        "source",     "uri",        "url_param",         "hdr(<name>)",
        "random",     "rdp-cookie", "hash <expression>",
    };
    struct cfg_balance *current = &((struct cfg_proxy *)object)->balance, b = {.random_draws = 2};
    int index, taken;

    /* hash-type and its factor are other lines and stay. */
    b.consistent = current->consistent;
    b.hash_function = current->hash_function;
    b.avalanche = current->avalanche;
    b.hash_balance_factor = current->hash_balance_factor;
    taken = parse_call(p, kw, &b, argc, argv);
    if (taken < 0)
        return taken;
    if (taken == 0) {
        if (strcmp(argv[0], "log-hash") == 0 || strcmp(argv[0], "sticky") == 0)
            return cfg_kw_fail(p, kw, "'%s' is a HAProxy keyword that Sallyport does not support",
                               argv[0]);
        if (cfg_value_word(p, kw, argv[0], words, sizeof(words) / sizeof(words[0]), &index) != 0)
            return SP_EINVAL;
        b.algo = (enum cfg_balance_algo)index;
        taken = 1;
        if (b.algo == CFG_BALANCE_URI)
            taken = parse_uri(p, kw, &b, argc - 1, argv + 1) + 1;
        else if (b.algo == CFG_BALANCE_URL_PARAM)
            taken = parse_url_param(p, kw, &b, argc - 1, argv + 1) + 1;
        if (taken < 1)
            return SP_EINVAL;
    }
    *current = b;
    return taken;
}

static int parse_hash_type(struct cfg_parser *p, const struct cfg_kw *kw, void *object, int argc,
                           char **argv)
{
    static const char *const methods[] = {"map-based", "consistent"};
    static const char *const functions[] = {"sdbm", "djb2", "wt6", "crc32", "none"};
    struct cfg_balance *b = &((struct cfg_proxy *)object)->balance;
    int method, function = 0;

    if (cfg_value_word(p, kw, argv[0], methods, 2, &method) != 0)
        return SP_EINVAL;
    if (argc > 1 && cfg_value_word(p, kw, argv[1], functions, 5, &function) != 0)
        return SP_EINVAL;
    b->consistent = method == 1;
    b->hash_function = function;
    /* Without a function's name the consistent method scrambles its hash by itself. */
    b->avalanche = argc == 1 && b->consistent;
    if (argc > 2 && strcmp(argv[2], "avalanche") == 0) {
        b->avalanche = true;
        return 3;
    }
    return argc > 1 ? 2 : 1;
}

static int parse_balance_factor(struct cfg_parser *p, const struct cfg_kw *kw, void *object,
                                int argc, char **argv)
{
    struct cfg_balance *b = &((struct cfg_proxy *)object)->balance;
    int64_t value;

    if (cfg_value_int(p, kw, argv[0], 0, 65535, &value) != 0)
        return SP_EINVAL;
    if (value && value <= 100)
        return cfg_kw_fail(p, kw, "'%s' is out of range; expected 0 or a percentage above 100",
                           argv[0]);
    b->hash_balance_factor = (int)value;
    return 1;
}

const struct cfg_kw cfg_kw_balance[] = {
    {.name = "balance",
     .sections = CFG_DBACK,
     .min_args = 1,
     .args =
         "roundrobin|static-rr|leastconn|first|source|uri|url_param|hdr(<name>)|random[(<draws>)]|"
         "rdp-cookie|hash <expression> [arguments]",
     .help = "how a server is chosen",
     .parse = parse_balance},
    {.name = "hash-balance-factor",
     .sections = CFG_DBACK,
     .min_args = 1,
     .args = "<percent>",
     .help = "how far a server may exceed the average load before hashing passes it by",
     .parse = parse_balance_factor},
    {.name = "hash-type",
     .sections = CFG_DBACK,
     .min_args = 1,
     .args = "map-based|consistent [sdbm|djb2|wt6|crc32|none] [avalanche]",
     .help = "how balance turns what it hashes into a server",
     .parse = parse_hash_type},
    CFG_KW_END,
};
