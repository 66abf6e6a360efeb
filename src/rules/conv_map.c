/*
 * Maps: files of keys and values, looked up by any matching method.
 */
#include "rules/pattern.h"
#include "rules/tables.h"

/* A row's data: the matching method, and what the answer is. */
enum { KEY = 0x100, SUBSTITUTE = 0x200, MATCH_MASK = 0xff };

static int check_map(struct rules_compiler *c, struct conv_call *v, char why[RULES_WHY_BYTES])
{
    enum pat_match match = (enum pat_match)(v->def->data & MATCH_MASK);
    enum value_type type = v->def->data & KEY ? VALUE_STR : v->def->out;
    struct rules_arg *fallback = v->args.count > 1 ? &v->args.v[1] : NULL;
    struct pat_set *set = pat_set_file(c, match, 0, type, true, v->args.v[0].s.ptr);

    if (!set) /* reported, with the reason */
        return SP_EEXIST;
    v->args.v[0].u.pattern = set;
    if (fallback && v->def->out == VALUE_ADDR && !value_parse_addr(fallback->s, &fallback->addr)) {
        snprintf(why, RULES_WHY_BYTES, "default value '%s' is not an IP address", fallback->s.ptr);
        return SP_EINVAL;
    }
    return 0;
}

static bool answer_default(const struct conv_call *v, struct sample *s)
{
    const struct rules_arg *a = arg_at(&v->args, 1);

    if (!a)
        return false;
    switch (v->def->out) {
    case VALUE_INT:
        return value_int(s, a->i);
    case VALUE_ADDR:
        s->type = SAMPLE_ADDR;
        s->u.a = a->addr;
        return true;
    default:
        return value_str(s, a->s);
    }
}

/* map_regm: \1 and the like in the value stand for what the key's groups matched. */
static bool answer_substituted(const struct pat_entry *e, struct rules_ctx *ctx, struct sample *s)
{
    struct regex_groups g;
    char text[8192];
    struct buf b = {text, sizeof text, 0, 0};
    struct str out;

    if (!regex_match(e->regex, s->u.s, false, &g) || regex_expand(e->value.u.s, s->u.s, &g, &b) < 0)
        return false;
    out = arena_str(ctx->arena, buf_str(&b));
    return out.ptr && value_str(s, out);
}

static bool conv_map(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    const struct pat_entry *e = pat_index_find(pat_set_index(v->args.v[0].u.pattern), s);

    if (!e)
        return answer_default(v, s);
    if (v->def->data & KEY)
        return value_str(s, e->text);
    if (!e->has_value)
        return value_int(s, 1);
    if (v->def->data & SUBSTITUTE)
        return answer_substituted(e, ctx, s);
    *s = e->value;
    return true;
}

#define MAP(name, in, match)                                                            \
    {name,                                                                              \
     "s?s",                                                                             \
     "<map>[,<default_value>]",                                                         \
     in,                                                                                \
     VALUE_STR,                                                                         \
     conv_map,                                                                          \
     match,                                                                             \
     .help = "value of the entry that matches",                                         \
     .check = check_map,                                                                \
     .needs = NEEDS_VARYING},                                                           \
        {name "_str",                                                                   \
         "s?s",                                                                         \
         "<map>[,<default_value>]",                                                     \
         in,                                                                            \
         VALUE_STR,                                                                     \
         conv_map,                                                                      \
         match,                                                                         \
         .help = "value of the entry that matches",                                     \
         .check = check_map,                                                            \
         .needs = NEEDS_VARYING},                                                       \
        {name "_int",                                                                   \
         "s?i",                                                                         \
         "<map>[,<default_value>]",                                                     \
         in,                                                                            \
         VALUE_INT,                                                                     \
         conv_map,                                                                      \
         match,                                                                         \
         .help = "value of the entry that matches, an integer",                         \
         .check = check_map,                                                            \
         .needs = NEEDS_VARYING},                                                       \
        {name "_ip",                                                                    \
         "s?s",                                                                         \
         "<map>[,<default_value>]",                                                     \
         in,                                                                            \
         VALUE_ADDR,                                                                    \
         conv_map,                                                                      \
         match,                                                                         \
         .help = "value of the entry that matches, an address",                         \
         .check = check_map,                                                            \
         .needs = NEEDS_VARYING},                                                       \
    {                                                                                   \
        name "_key", "s", "<map>", in, VALUE_STR, conv_map, match | KEY,                \
            "key of the entry that matches", .check = check_map, .needs = NEEDS_VARYING \
    }

static const struct conv_def rows[] = {
    {"map", "s?s", "<map>[,<default_value>]", VALUE_STR, VALUE_STR, conv_map, PAT_STR,
     .help = "value of the key that is the same text", .check = check_map, .needs = NEEDS_VARYING},
    MAP("map_str", VALUE_STR, PAT_STR),
    MAP("map_beg", VALUE_STR, PAT_BEG),
    MAP("map_end", VALUE_STR, PAT_END),
    MAP("map_sub", VALUE_STR, PAT_SUB),
    MAP("map_dir", VALUE_STR, PAT_DIR),
    MAP("map_dom", VALUE_STR, PAT_DOM),
    MAP("map_reg", VALUE_STR, PAT_REG),
    MAP("map_int", VALUE_INT, PAT_INT),
    MAP("map_ip", VALUE_ADDR, PAT_IP),
    {"map_regm", "s?s", "<map>[,<default_value>]", VALUE_STR, VALUE_STR, conv_map,
     PAT_REG | SUBSTITUTE, .help = "value of the expression that matches, with its groups put in",
     .check = check_map, .needs = NEEDS_VARYING},
};

const struct conv_table conv_map_table = TABLE_OF(rows);
