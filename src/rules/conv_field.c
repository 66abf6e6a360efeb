/*
 * Converters that take a part of a text: all of them answer with slices of their input.
 */
#include "rules/tables.h"

static bool is_separator(char ch, struct str set)
{
    return str_chr(set, ch) < set.len;
}

static int check_field(struct rules_compiler *c, struct conv_call *v, char why[RULES_WHY_BYTES])
{
    if (!v->args.v[0].i) {
        snprintf(why, RULES_WHY_BYTES, "the index must not be 0");
        return SP_EINVAL;
    }
    if (!v->args.v[1].s.len) {
        snprintf(why, RULES_WHY_BYTES, "the list of separators is empty");
        return SP_EINVAL;
    }
    return 0;
}

/* How many fields to take: 1 by default, 0 for all that follow. */
static int64_t count_of(const struct conv_call *v)
{
    const struct rules_arg *a = arg_at(&v->args, 2);

    return a ? a->i : 1;
}

/* Fields are separated by single separators, so that they may be empty. */
static bool field_forward(struct str in, int64_t index, struct str set, int64_t count,
                          struct str *out)
{
    int64_t field = 1;
    size_t start = 0, end;

    for (end = 0; end < in.len; end++) {
        if (!is_separator(in.ptr[end], set))
            continue;
        if (field == index) {
            if (count == 1)
                break;
            if (count > 1)
                count--;
        } else {
            start = end + 1;
            field++;
        }
    }
    *out = str_make(in.ptr + start, end - start);
    return field == index;
}

static bool field_backward(struct str in, int64_t index, struct str set, int64_t count,
                           struct str *out)
{
    int64_t field = -1;
    size_t start, end = in.len;

    for (start = in.len; start > 0; start--) {
        if (!is_separator(in.ptr[start - 1], set))
            continue;
        if (field == index) {
            if (count == 1)
                break;
            if (count > 1)
                count--;
        } else {
            end = start - 1;
            field--;
        }
    }
    *out = str_make(in.ptr + start, end - start);
    return field == index;
}

static bool conv_field(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    int64_t index = v->args.v[0].i;
    struct str set = v->args.v[1].s, out;

    if (!(index > 0 ? field_forward : field_backward)(s->u.s, index, set, count_of(v), &out))
        return false;
    return value_str(s, out);
}

/* Words are separated by any number of separators. */
static bool word_forward(struct str in, int64_t index, struct str set, int64_t count,
                         struct str *out)
{
    int64_t word = 0;
    bool in_word = false;
    size_t start = 0, end;

    for (end = 0; end < in.len; end++) {
        bool separator = is_separator(in.ptr[end], set);

        if (!in_word && !separator) {
            if (word != index) {
                word++;
                start = end;
            }
            in_word = true;
        } else if (in_word && separator) {
            if (word == index) {
                if (count == 1)
                    break;
                if (count > 1)
                    count--;
            }
            in_word = false;
        }
    }
    *out = str_make(in.ptr + start, end - start);
    return word == index;
}

static bool word_backward(struct str in, int64_t index, struct str set, int64_t count,
                          struct str *out)
{
    int64_t word = 0;
    bool in_word = false;
    size_t start, end = in.len;

    for (start = in.len; start > 0; start--) {
        bool separator = is_separator(in.ptr[start - 1], set);

        if (!in_word && !separator) {
            if (word != index) {
                word--;
                end = start;
            }
            in_word = true;
        } else if (in_word && separator) {
            if (word == index) {
                if (count == 1)
                    break;
                if (count > 1)
                    count--;
            }
            in_word = false;
        }
    }
    *out = str_make(in.ptr + start, end - start);
    return word == index;
}

static bool conv_word(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    int64_t index = v->args.v[0].i;
    struct str set = v->args.v[1].s, out;

    if (!(index > 0 ? word_forward : word_backward)(s->u.s, index, set, count_of(v), &out))
        return false;
    return value_str(s, out);
}

/* The value of a parameter in "a=1&b=2"; empty for one without '='. */
static bool conv_param(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    struct str name = v->args.v[0].s, rest = s->u.s;
    const struct rules_arg *delimiter = arg_at(&v->args, 1);
    char ch = delimiter && delimiter->s.len ? delimiter->s.ptr[0] : '&';

    while (rest.len) {
        struct str pair = str_make(rest.ptr, str_chr(rest, ch));
        size_t equal = str_chr(pair, '=');

        if (str_eq(str_make(pair.ptr, equal), name))
            return value_str(s, str_from(pair, equal + 1));
        rest = str_from(rest, pair.len + 1);
    }
    return false;
}

/* An argument that is a number or a variable. */
static int check_number(struct conv_call *v, unsigned index, int64_t min, char why[RULES_WHY_BYTES])
{
    struct rules_arg *a = index < v->args.count ? &v->args.v[index] : NULL;
    const char *reason;
    size_t used;

    if (!a)
        return 0;
    if (var_parse(a->s, &a->u.var, &reason) == 0) {
        a->is_var = true;
        v->needs |= NEEDS_VARYING;
        return 0;
    }
    a->i = value_read_int(a->s, &used);
    if (!a->s.len || used != a->s.len || a->i < min) {
        snprintf(why, RULES_WHY_BYTES, "'%s' is neither a variable nor an integer of %lld or more",
                 a->s.ptr, (long long)min);
        return SP_EINVAL;
    }
    return 0;
}

static int check_bytes(struct rules_compiler *c, struct conv_call *v, char why[RULES_WHY_BYTES])
{
    int status = check_number(v, 0, 0, why);

    return status < 0 ? status : check_number(v, 1, 1, why);
}

static bool number_of(const struct rules_arg *a, struct rules_ctx *ctx, int64_t *out)
{
    struct sample value;

    *out = a->i;
    if (!a->is_var)
        return true;
    if (!var_get(&a->u.var, ctx, &value) || !value_cast(&value, VALUE_INT, ctx->arena))
        return false;
    *out = value.u.i;
    return true;
}

static bool conv_bytes(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    const struct rules_arg *second = arg_at(&v->args, 1);
    int64_t offset, length;

    if (!number_of(&v->args.v[0], ctx, &offset) || offset < 0)
        return false;
    s->u.s = str_from(s->u.s, (uint64_t)offset);
    if (!second)
        return true;
    if (!number_of(second, ctx, &length) || length < 0)
        return false;
    if ((uint64_t)length < s->u.s.len)
        s->u.s.len = (size_t)length;
    return true;
}

#define FIELD "is?i", "<index>,<delimiters>[,<count>]"

static const struct conv_def rows[] = {
    {"field", FIELD, VALUE_STR, VALUE_STR, conv_field, 0,
     .help = "field number index, from the end when negative", .check = check_field},
    {"word", FIELD, VALUE_STR, VALUE_STR, conv_word, 0,
     .help = "word number index, from the end when negative", .check = check_field},
    {"param", "s?s", "<name>[,<delim>]", VALUE_STR, VALUE_STR, conv_param, 0,
     .help = "value of a parameter in a query string"},
    {"bytes", "s?s", "<offset>[,<length>]", VALUE_BIN, VALUE_BIN, conv_bytes, 0,
     .help = "bytes from an offset on", .check = check_bytes},
};

const struct conv_table conv_field_table = TABLE_OF(rows);
