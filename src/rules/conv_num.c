/*
 * Arithmetic on 64-bit signed integers; results saturate.
 */
#include "rules/tables.h"

enum operation { ADD, SUB, MUL, DIV, MOD, AND, OR, XOR, NEG, CPL, NOT, BOOL, ODD, EVEN };

static int64_t multiply(int64_t a, int64_t b)
{
    int64_t r;

    if (!__builtin_mul_overflow(a, b, &r))
        return r;
    return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
}

static int64_t compute(enum operation op, int64_t a, int64_t b)
{
    int64_t r;

    switch (op) {
    case ADD:
        if (!__builtin_add_overflow(a, b, &r))
            return r;
        return a < 0 ? INT64_MIN : INT64_MAX;
    case SUB:
        if (!__builtin_sub_overflow(a, b, &r))
            return r;
        return a < 0 ? INT64_MIN : INT64_MAX;
    case MUL:
        return multiply(a, b);
    case DIV:
        /* Division by zero answers the largest number, as HAProxy's. */
        if (b == 0 || (a == INT64_MIN && b == -1))
            return INT64_MAX;
        return a / b;
    case MOD:
        return b == 0 || b == -1 ? 0 : a % b;
    case AND:
        return a & b;
    case OR:
        return a | b;
    default:
        return a ^ b;
    }
}

static bool conv_binary(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    const struct rules_arg *a = &v->args.v[0];
    struct sample value;
    int64_t operand = a->i;

    if (a->is_var) {
        if (!var_get(&a->u.var, ctx, &value) || !value_cast(&value, VALUE_INT, ctx->arena))
            return false;
        operand = value.u.i;
    }
    return value_int(s, compute((enum operation)v->def->data, s->u.i, operand));
}

static bool conv_unary(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    switch (v->def->data) {
    case NEG:
        return value_int(s, s->u.i == INT64_MIN ? INT64_MAX : -s->u.i);
    case CPL:
        return value_int(s, ~s->u.i);
    case NOT:
        return value_bool(s, s->u.i == 0);
    case BOOL:
        return value_bool(s, s->u.i != 0);
    case ODD:
        return value_bool(s, s->u.i & 1);
    default:
        return value_bool(s, !(s->u.i & 1));
    }
}

static int check_operand(struct rules_compiler *c, struct conv_call *v, char why[RULES_WHY_BYTES])
{
    struct rules_arg *a = &v->args.v[0];
    const char *reason;
    size_t used;

    if (var_parse(a->s, &a->u.var, &reason) == 0) {
        a->is_var = true;
        v->needs |= NEEDS_VARYING;
        return 0;
    }
    a->i = value_read_int(a->s, &used);
    if (!a->s.len || used != a->s.len) {
        snprintf(why, RULES_WHY_BYTES, "'%s' is neither an integer nor a variable", a->s.ptr);
        return SP_EINVAL;
    }
    return 0;
}

#define BINARY "s", "<value>", VALUE_INT, VALUE_INT, conv_binary
#define UNARY(out) NULL, NULL, VALUE_INT, out, conv_unary

static const struct conv_def rows[] = {
    {"add", BINARY, ADD, .help = "sum", .check = check_operand},
    {"sub", BINARY, SUB, .help = "difference", .check = check_operand},
    {"mul", BINARY, MUL, .help = "product", .check = check_operand},
    {"div", BINARY, DIV, .help = "quotient", .check = check_operand},
    {"mod", BINARY, MOD, .help = "remainder", .check = check_operand},
    {"and", BINARY, AND, .help = "bitwise and", .check = check_operand},
    {"or", BINARY, OR, .help = "bitwise or", .check = check_operand},
    {"xor", BINARY, XOR, .help = "bitwise exclusive or", .check = check_operand},
    {"neg", UNARY(VALUE_INT), NEG, .help = "opposite"},
    {"cpl", UNARY(VALUE_INT), CPL, .help = "bitwise complement"},
    {"not", UNARY(VALUE_BOOL), NOT, .help = "true when zero"},
    {"bool", UNARY(VALUE_BOOL), BOOL, .help = "true when not zero"},
    {"odd", UNARY(VALUE_BOOL), ODD, .help = "true when odd"},
    {"even", UNARY(VALUE_BOOL), EVEN, .help = "true when even"},
};

const struct conv_table conv_num_table = TABLE_OF(rows);
