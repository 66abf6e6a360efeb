/*
 * Arguments in parentheses: "(a,'b c',"d\"")". Quotes group, a backslash
 * protects backslash, space and quotes and spells \r \n \t; before anything else it is itself.
 */
#include "rules/expr.h"

#include <arpa/inet.h>

/* One argument's text up to an unquoted ',' or ')' or the end. */
static int scan(struct rules_compiler *c, const char **text, struct str *out)
{
    const char *in = *text;
    size_t n = 0;
    char quote = 0;
    char *copy = compiler_zalloc(c, strlen(in) + 1, 1);

    if (!copy)
        return SP_ENOMEM;
    while (*in) {
        if ((*in == '"' || *in == '\'') && (!quote || quote == *in)) {
            quote = quote ? 0 : *in;
            in++;
        } else if (*in == '\\' && quote != '\'') {
            char next = in[1];

            if (!next)
                return SP_EINVAL;
            if (next == '\\' || next == ' ' || next == '"' || next == '\'')
                copy[n++] = next;
            else if (next == 'r' || next == 'n' || next == 't')
                copy[n++] = next == 'r' ? '\r' : next == 'n' ? '\n' : '\t';
            else {
                copy[n++] = '\\';
                in++;
                continue;
            }
            in += 2;
        } else if (!quote && (*in == ',' || *in == ')')) {
            break;
        } else {
            copy[n++] = *in++;
        }
    }
    if (quote)
        return SP_EINVAL;
    *out = str_make(copy, n);
    *text = in;
    return 0;
}

static bool mask4_parse(struct str s, struct addr *out)
{
    uint64_t bits;
    uint8_t bytes[4] = {0};
    struct addr a;

    if (str_to_u64(s, &bits) == 0) {
        if (bits > 32)
            return false;
        for (unsigned i = 0; i < bits; i++)
            bytes[i / 8] |= (uint8_t)(0x80 >> i % 8);
        *out = value_addr4(bytes);
        return true;
    }
    if (!value_parse_addr(s, &a) || a.u.sa.sa_family != AF_INET)
        return false;
    *out = a;
    return true;
}

static bool mask6_parse(struct str s, struct addr *out)
{
    uint64_t bits;
    uint8_t bytes[16] = {0};
    struct addr a;

    if (str_to_u64(s, &bits) == 0) {
        if (bits > 128)
            return false;
        for (unsigned i = 0; i < bits; i++)
            bytes[i / 8] |= (uint8_t)(0x80 >> i % 8);
        *out = value_addr6(bytes);
        return true;
    }
    if (!value_parse_addr(s, &a) || a.u.sa.sa_family != AF_INET6)
        return false;
    *out = a;
    return true;
}

/* Names of proxies and servers become objects. */
static int resolve(struct rules_compiler *c, char letter, struct rules_arg *a,
                   char why[RULES_WHY_BYTES])
{
    const char *name = a->s.ptr;

    if (letter == 'S') {
        size_t slash = str_chr(a->s, '/');
        const char *backend = NULL;

        if (slash < a->s.len) {
            struct str copy = compiler_str(c, str_make(name, slash));

            if (!copy.ptr)
                return SP_ENOMEM;
            backend = copy.ptr;
            name += slash + 1;
        }
        if (c->find_server)
            a->u.object = c->find_server(c->resolver, backend, name);
        if (!a->u.object && !c->is_defaults) {
            snprintf(why, RULES_WHY_BYTES, "no server '%s'", a->s.ptr);
            return SP_EINVAL;
        }
        return 0;
    }
    if (c->find_proxy)
        a->u.object =
            c->find_proxy(c->resolver, letter == 'b' ? RULES_BACKEND : RULES_FRONTEND, name);
    if (!a->u.object && !c->is_defaults) {
        snprintf(why, RULES_WHY_BYTES, "no %s '%s'", letter == 'b' ? "backend" : "frontend", name);
        return SP_EINVAL;
    }
    return 0;
}

static int convert(struct rules_compiler *c, char letter, unsigned number, struct rules_arg *a,
                   char why[RULES_WHY_BYTES])
{
    const char *expected = NULL;
    size_t used;

    switch (letter) {
    case 'i':
        a->i = value_read_int(a->s, &used);
        if (!a->s.len || used != a->s.len)
            expected = "an integer";
        break;
    case '4':
    case '6':
        if (!value_parse_addr(a->s, &a->addr) ||
            a->addr.u.sa.sa_family != (letter == '4' ? AF_INET : AF_INET6))
            expected = letter == '4' ? "an IPv4 address" : "an IPv6 address";
        break;
    case 'm':
        if (!mask4_parse(a->s, &a->addr))
            expected = "an IPv4 mask (0 to 32 or dotted)";
        break;
    case 'M':
        if (!mask6_parse(a->s, &a->addr))
            expected = "an IPv6 mask (0 to 128)";
        break;
    case 'b':
    case 'f':
    case 'S':
        return resolve(c, letter, a, why);
    default:
        break;
    }
    if (expected) {
        snprintf(why, RULES_WHY_BYTES, "argument %u '%s' is not %s", number, a->s.ptr, expected);
        return SP_EINVAL;
    }
    return 0;
}

/* How many arguments a signature allows, how many it demands, and the letters one by one. */
static void signature_of(const char *signature, char letters[RULES_ARGS_MAX], unsigned *max,
                         unsigned *min)
{
    bool optional = false;

    *max = *min = 0;
    for (const char *p = signature ? signature : ""; *p; p++) {
        if (*p == '?') {
            optional = true;
            continue;
        }
        if (*p == '*') {
            while (*max < RULES_ARGS_MAX) {
                letters[*max] = p[-1];
                (*max)++;
            }
            continue;
        }
        letters[(*max)++] = *p;
        if (!optional)
            (*min)++;
    }
}

static int too_few(unsigned min, unsigned count, char why[RULES_WHY_BYTES])
{
    snprintf(why, RULES_WHY_BYTES, "expects at least %u argument%s, got %u", min,
             min == 1 ? "" : "s", count);
    return SP_EINVAL;
}

int args_parse(struct rules_compiler *c, const char *signature, const char **text,
               struct rules_args *out, char why[RULES_WHY_BYTES])
{
    char letters[RULES_ARGS_MAX];
    unsigned max, min, count = 0;
    const char *in = *text;
    struct rules_arg *v;

    *out = (struct rules_args){0, NULL};
    signature_of(signature, letters, &max, &min);
    if (*in != '(') {
        /* A lone mandatory text may be empty and left out: "str". */
        if (min != 1 || letters[0] != 's')
            return min ? too_few(min, 0, why) : 0;
        v = compiler_zalloc(c, 1, sizeof *v);
        if (!v)
            return SP_ENOMEM;
        v->s = STR("");
        *out = (struct rules_args){1, v};
        return 0;
    }
    in++;
    if (!max) {
        if (*in != ')') {
            snprintf(why, RULES_WHY_BYTES, "does not take arguments");
            return SP_EINVAL;
        }
        *text = in + 1;
        return 0;
    }
    v = compiler_zalloc(c, max, sizeof *v);
    if (!v)
        return SP_ENOMEM;
    for (;;) {
        int status = scan(c, &in, &v[count].s);

        if (status < 0) {
            snprintf(why, RULES_WHY_BYTES, "argument %u has an unterminated quote or escape",
                     count + 1);
            return status;
        }
        /* "()" of a function whose arguments are numbers or names is the same as no parentheses. */
        if (count == 0 && *in == ')' && !v[0].s.len && letters[0] != 's' && !min)
            break;
        status = convert(c, letters[count], count + 1, &v[count], why);
        if (status < 0)
            return status;
        count++;
        if (*in != ',')
            break;
        if (count == max) {
            snprintf(why, RULES_WHY_BYTES, "takes at most %u argument%s", max, max == 1 ? "" : "s");
            return SP_EINVAL;
        }
        in++;
    }
    if (*in != ')') {
        snprintf(why, RULES_WHY_BYTES, "lacks the closing parenthesis");
        return SP_EINVAL;
    }
    if (count < min)
        return too_few(min, count, why);
    *out = (struct rules_args){count, v};
    *text = in + 1;
    return 0;
}
