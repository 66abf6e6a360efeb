/*
 * Fetches of constants, of the process, of variables, captures and ACLs.
 */
#include "rules/acl.h"
#include "rules/tables.h"

/* --- constants ---------------------------------------------------------------------------- */

static bool fetch_constant(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                           struct sample *out)
{
    const struct rules_arg *arg = arg_at(&f->args, 0);

    switch (f->def->type) {
    case VALUE_BOOL:
        return value_bool(out, arg ? arg->i != 0 : f->def->data != 0);
    case VALUE_INT:
        return value_int(out, arg ? arg->i : f->def->data);
    case VALUE_ADDR:
        out->type = SAMPLE_ADDR;
        out->u.a = arg->addr;
        return true;
    case VALUE_BIN:
        return value_bin(out, arg->s);
    default:
        return value_str(out, arg->s);
    }
}

static int check_bool(struct rules_compiler *c, struct rules_args *args, char why[RULES_WHY_BYTES])
{
    struct rules_arg *a = &args->v[0];

    if (str_ieq(a->s, STR("true")) || str_eq(a->s, STR("1")))
        a->i = 1;
    else if (str_ieq(a->s, STR("false")) || str_eq(a->s, STR("0")))
        a->i = 0;
    else {
        snprintf(why, RULES_WHY_BYTES, "'%s' is not one of true, false, 1, 0", a->s.ptr);
        return SP_EINVAL;
    }
    return 0;
}

static int hex_value(char ch)
{
    if (ch >= '0' && ch <= '9')
        return ch - '0';
    ch |= 0x20;
    return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

static int check_bin(struct rules_compiler *c, struct rules_args *args, char why[RULES_WHY_BYTES])
{
    struct str hex = args->v[0].s;
    char *bytes = compiler_zalloc(c, hex.len / 2 + 1, 1);

    if (!bytes)
        return SP_ENOMEM;
    for (size_t i = 0; i + 1 < hex.len; i += 2) {
        int high = hex_value(hex.ptr[i]), low = hex_value(hex.ptr[i + 1]);

        if (high < 0 || low < 0)
            break;
        bytes[i / 2] = (char)(high << 4 | low);
        args->v[0].s = str_make(bytes, i / 2 + 1);
    }
    if (hex.len % 2 || (hex.len && args->v[0].s.len != hex.len / 2)) {
        snprintf(why, RULES_WHY_BYTES, "'%s' is not an even number of hexadecimal digits", hex.ptr);
        return SP_EINVAL;
    }
    return 0;
}

static int check_meth(struct rules_compiler *c, struct rules_args *args, char why[RULES_WHY_BYTES])
{
    if (!http_is_token(args->v[0].s)) {
        snprintf(why, RULES_WHY_BYTES, "'%s' is not a valid method", args->v[0].s.ptr);
        return SP_EINVAL;
    }
    return 0;
}

static bool fetch_env(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                      struct sample *out)
{
    const char *value = getenv(f->args.v[0].s.ptr);

    return value && value_str(out, str_of(value));
}

/* --- the clock and chance -------------------------------------------------------------------- */

enum { UNIT_S, UNIT_MS, UNIT_US };

static bool unit_of(struct str s, int64_t *unit)
{
    *unit = str_eq(s, STR("s"))    ? UNIT_S
            : str_eq(s, STR("ms")) ? UNIT_MS
            : str_eq(s, STR("us")) ? UNIT_US
                                   : -1;
    return *unit >= 0;
}

static int check_date(struct rules_compiler *c, struct rules_args *args, char why[RULES_WHY_BYTES])
{
    if (args->count > 1 && !unit_of(args->v[1].s, &args->v[1].i)) {
        snprintf(why, RULES_WHY_BYTES, "expects 's', 'ms' or 'us', got '%s'", args->v[1].s.ptr);
        return SP_EINVAL;
    }
    return 0;
}

static bool fetch_date(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                       struct sample *out)
{
    const struct rules_arg *offset = arg_at(&f->args, 0), *unit = arg_at(&f->args, 1);
    static const uint64_t divisors[] = {1000000, 1000, 1};
    int64_t now = (int64_t)(ctx->wall_us / divisors[unit ? unit->i : UNIT_S]);

    it->may_change = true;
    return value_int(out, now + (offset ? offset->i : 0));
}

static bool fetch_date_us(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                          struct sample *out)
{
    it->may_change = true;
    return value_int(out, (int64_t)(ctx->wall_us % 1000000));
}

static bool fetch_rand(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                       struct sample *out)
{
    const struct rules_arg *range = arg_at(&f->args, 0);
    uint64_t r;

    if (!ctx->rng)
        return false;
    r = hash_rng_next(ctx->rng) & 0xffffffff;
    /* All bits count: scaled, not reduced modulo. */
    if (range)
        r = r * ((uint64_t)range->i & 0xffffffff) >> 32;
    it->may_change = true;
    return value_int(out, (int64_t)r);
}

static int check_uuid(struct rules_compiler *c, struct rules_args *args, char why[RULES_WHY_BYTES])
{
    if (args->count && args->v[0].i != 4 && args->v[0].i != 7) {
        snprintf(why, RULES_WHY_BYTES, "UUID version %lld is not supported, expected 4 or 7",
                 (long long)args->v[0].i);
        return SP_EINVAL;
    }
    return 0;
}

/* RFC 9562: version 4 is random, version 7 begins with the time in milliseconds. */
static bool fetch_uuid(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                       struct sample *out)
{
    int version = f->args.count ? (int)f->args.v[0].i : 4;
    char *text = arena_alloc(ctx->arena, 37);
    uint64_t high, low;

    if (!ctx->rng || !text)
        return false;
    high = hash_rng_next(ctx->rng);
    low = hash_rng_next(ctx->rng);
    if (version == 7)
        high = (ctx->wall_us / 1000) << 16 | (high & 0xffff);
    high = (high & ~(uint64_t)0xf000) | (uint64_t)version << 12;
    low = (low & ~((uint64_t)3 << 62)) | (uint64_t)2 << 62;
    snprintf(text, 37, "%08x-%04x-%04x-%04x-%012llx", (unsigned)(high >> 32),
             (unsigned)(high >> 16 & 0xffff), (unsigned)(high & 0xffff), (unsigned)(low >> 48),
             (unsigned long long)(low & 0xffffffffffff));
    it->may_change = true;
    return value_str(out, str_make(text, 36));
}

/* --- the process ---------------------------------------------------------------------------------- */

static bool fetch_item(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                       struct sample *out)
{
    return ctx_item(ctx, (enum rules_item)f->def->data, out);
}

static bool fetch_last_rule(const struct fetch_call *f, struct rules_ctx *ctx,
                            struct fetch_iter *it, struct sample *out)
{
    if (!ctx->last_rule.file)
        return false;
    if (f->def->type == VALUE_INT)
        return value_int(out, ctx->last_rule.line);
    return value_str(out, str_of(ctx->last_rule.file));
}

/* --- variables and ACLs ------------------------------------------------------------------------------ */

static int check_var(struct rules_compiler *c, struct rules_args *args, char why[RULES_WHY_BYTES])
{
    struct rules_arg *a = &args->v[0];
    const char *reason;

    if (var_parse(a->s, &a->u.var, &reason) < 0) {
        snprintf(why, RULES_WHY_BYTES, "variable '%s': %s", a->s.ptr, reason);
        return SP_EINVAL;
    }
    return 0;
}

static bool fetch_var(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                      struct sample *out)
{
    const struct rules_arg *fallback = arg_at(&f->args, 1);

    it->may_change = true;
    if (var_get(&f->args.v[0].u.var, ctx, out))
        return true;
    return fallback && value_str(out, fallback->s);
}

static int check_acl(struct rules_compiler *c, struct rules_args *args, char why[RULES_WHY_BYTES])
{
    for (unsigned i = 0; i < args->count; i++) {
        struct rules_arg *a = &args->v[i];
        const char *name = a->s.ptr;

        a->i = 0;
        while (*name == '!') {
            a->i = !a->i;
            name++;
        }
        a->u.data = acl_lookup(c, name);
        if (!a->u.data) {
            snprintf(why, RULES_WHY_BYTES, "no such ACL '%s'", name);
            return SP_EINVAL;
        }
    }
    return 0;
}

static bool fetch_acl(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                      struct sample *out)
{
    for (unsigned i = 0; i < f->args.count; i++) {
        const struct rules_arg *a = &f->args.v[i];
        enum acl_result r = acl_test(a->u.data, ctx, ctx->final_data);

        if (r == ACL_MISS) {
            it->may_change = true;
            return false;
        }
        if ((r == ACL_PASS) == (a->i != 0))
            return value_bool(out, false);
    }
    return value_bool(out, true);
}

/* --- captures ------------------------------------------------------------------------------------------- */

static bool fetch_capture(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                          struct sample *out)
{
    const struct str *slots = f->def->data ? ctx->res_captures : ctx->req_captures;
    unsigned count = f->def->data ? ctx->res_capture_count : ctx->req_capture_count;
    uint64_t index = (uint64_t)f->args.v[0].i;

    return slots && index < count && slots[index].ptr && value_str(out, slots[index]);
}

static int check_capture(struct rules_compiler *c, struct rules_args *args,
                         char why[RULES_WHY_BYTES])
{
    if (args->v[0].i < 0) {
        snprintf(why, RULES_WHY_BYTES, "a capture index must not be negative");
        return SP_EINVAL;
    }
    return 0;
}

#define H NEEDS_HOST
#define V NEEDS_VARYING

static const struct fetch_def rows[] = {
    {"always_true", NULL, NULL, VALUE_BOOL, 0, fetch_constant, 1, .help = "true"},
    {"always_false", NULL, NULL, VALUE_BOOL, 0, fetch_constant, 0, .help = "false"},
    {"int", "i", "<integer>", VALUE_INT, 0, fetch_constant, 0, .help = "an integer"},
    {"str", "s", "<string>", VALUE_STR, 0, fetch_constant, 0, .help = "a string"},
    {"bool", "s", "<bool>", VALUE_BOOL, 0, fetch_constant, 0, .help = "a boolean",
     .check = check_bool},
    {"bin", "s", "<hex>", VALUE_BIN, 0, fetch_constant, 0, .help = "bytes", .check = check_bin},
    {"ipv4", "4", "<ipv4>", VALUE_ADDR, 0, fetch_constant, 0, .help = "an IPv4 address"},
    {"ipv6", "6", "<ipv6>", VALUE_ADDR, 0, fetch_constant, 0, .help = "an IPv6 address"},
    {"meth", "s", "<method>", VALUE_METHOD, 0, fetch_constant, 0, .help = "a method",
     .check = check_meth},
    {"env", "s", "<name>", VALUE_STR, 0, fetch_env, 0,
     .help = "variable of the environment when the configuration is read"},
    {"date", "?is", "[<offset>[,<unit>]]", VALUE_INT, V, fetch_date, 0,
     .help = "seconds (ms, us) since 1970, plus an offset", .check = check_date},
    {"date_us", NULL, NULL, VALUE_INT, V, fetch_date_us, 0,
     .help = "microseconds of the current second"},
    {"rand", "?i", "[<range>]", VALUE_INT, V, fetch_rand, 0,
     .help = "random number below range, or of 32 bits"},
    {"uuid", "?i", "[<version>]", VALUE_STR, V, fetch_uuid, 0,
     .help = "RFC 9562 identifier of version 4 or 7", .check = check_uuid},
    {"hostname", NULL, NULL, VALUE_STR, H, fetch_item, RULES_HOSTNAME, .help = "name of the host"},
    {"pid", NULL, NULL, VALUE_INT, H, fetch_item, RULES_PID, .help = "process identifier"},
    {"nbproc", NULL, NULL, VALUE_INT, 0, fetch_constant, 1,
     .help = "number of processes, always 1"},
    {"proc", NULL, NULL, VALUE_INT, 0, fetch_constant, 1,
     .help = "number of the process, always 1"},
    {"nbthread", NULL, NULL, VALUE_INT, H, fetch_item, RULES_NBTHREAD, .help = "number of workers"},
    {"thread", NULL, NULL, VALUE_INT, H, fetch_item, RULES_THREAD,
     .help = "number of the worker, from 0"},
    {"act_conn", NULL, NULL, VALUE_INT, H | V, fetch_item, RULES_ACT_CONN,
     .help = "connections of the whole process"},
    {"stopping", NULL, NULL, VALUE_BOOL, H | V, fetch_item, RULES_STOPPING,
     .help = "true while the process drains"},
    {"uptime", NULL, NULL, VALUE_INT, H | V, fetch_item, RULES_UPTIME_S,
     .help = "seconds since the start"},
    {"quic_enabled", NULL, NULL, VALUE_BOOL, 0, fetch_constant, 0,
     .help = "always false: QUIC is not provided"},
    {"last_rule_file", NULL, NULL, VALUE_STR, V, fetch_last_rule, 0,
     .help = "file of the final rule that matched last"},
    {"last_rule_line", NULL, NULL, VALUE_INT, V, fetch_last_rule, 0,
     .help = "line of the final rule that matched last"},
    {"var", "s?s", "<name>[,<default>]", VALUE_ANY, V, fetch_var, 0, .help = "value of a variable",
     .check = check_var},
    {"acl", "s*", "[!]<name>[,...]", VALUE_BOOL, V, fetch_acl, 0,
     .help = "true when all named ACLs match (or do not, with '!')", .check = check_acl},
    {"capture.req.hdr", "i", "<idx>", VALUE_STR, V, fetch_capture, 0,
     .help = "content of a request capture slot", .check = check_capture},
    {"capture.res.hdr", "i", "<idx>", VALUE_STR, V, fetch_capture, 1,
     .help = "content of a response capture slot", .check = check_capture},
};

const struct fetch_table fetch_misc_table = TABLE_OF(rows);
