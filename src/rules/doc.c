/*
 * All tables in one sequence, for the documentation.
 */
#include "rules/action.h"

static void fetch_row(const struct fetch_def *f, struct rules_doc *out)
{
    *out = (struct rules_doc){"fetch", f->name, f->args, value_type_name(f->type), f->help};
}

static void conv_row(const struct conv_def *v, struct rules_doc *out)
{
    *out = (struct rules_doc){"converter", v->name, v->args, value_type_name(v->out), v->help};
}

/* The rule sets that know an action, in the words of the manual's matrix. */
static const char *hooks_text(unsigned hooks)
{
    static const struct {
        unsigned hooks;
        const char *text;
    } known[] = {
#define TCP_REQ \
    (HOOK(TCP_REQUEST_CONNECTION) | HOOK(TCP_REQUEST_SESSION) | HOOK(TCP_REQUEST_CONTENT))
#define TCP (TCP_REQ | HOOK(TCP_RESPONSE_CONTENT))
#define REQ HOOK(HTTP_REQUEST)
#define RES HOOK(HTTP_RESPONSE)
#define AFTER HOOK(HTTP_AFTER_RESPONSE)
        {REQ, "http-request"},
        {REQ | RES, "http-request, http-response"},
        {RES | AFTER, "http-response, http-after-response"},
        {REQ | RES | AFTER, "http-request, http-response, http-after-response"},
        {REQ | RES | HOOK(REDIRECT), "http-request, http-response, redirect"},
        {TCP, "tcp-request, tcp-response content"},
        {TCP | REQ, "tcp-request, tcp-response content, http-request"},
        {TCP | REQ | RES, "tcp-request, tcp-response content, http-request, http-response"},
        {TCP | REQ | RES | AFTER,
         "tcp-request, tcp-response content, http-request, http-response, http-after-response"},
        {TCP_REQ | REQ, "tcp-request, http-request"},
        {HOOK(TCP_REQUEST_CONTENT), "tcp-request content"},
        {HOOK(TCP_REQUEST_CONTENT) | REQ, "tcp-request content, http-request"},
        {HOOK(TCP_REQUEST_CONTENT) | REQ | RES | AFTER,
         "tcp-request content, http-request, http-response, http-after-response"},
        {HOOK(TCP_REQUEST_CONTENT) | HOOK(TCP_RESPONSE_CONTENT) | REQ | RES,
         "tcp-request content, tcp-response content, http-request, http-response"},
        {HOOK(TCP_REQUEST_CONTENT) | HOOK(TCP_RESPONSE_CONTENT) | REQ | RES | AFTER,
         "tcp-request content, tcp-response content, http-request, http-response, http-after-response"},
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].hooks == hooks)
            return known[i].text;
    return "";
}

static void action_row(const struct action_def *a, struct rules_doc *out)
{
    *out = (struct rules_doc){"action", a->name, a->args, hooks_text(a->hooks), a->help};
}

static const char *const match_help[PAT_MATCH_COUNT] = {
    [PAT_FOUND] = "there is a value",
    [PAT_BOOL] = "the value is true or not 0",
    [PAT_INT] = "the value is in a range: N, LOW:HIGH, LOW:, :HIGH, or after eq, ge, gt, le, lt",
    [PAT_IP] = "the value is in a network",
    [PAT_BIN] = "the value is these bytes, in hexadecimal",
    [PAT_LEN] = "the length is in a range",
    [PAT_STR] = "the value is this text",
    [PAT_BEG] = "the value begins with this text",
    [PAT_SUB] = "the value contains this text",
    [PAT_DIR] = "the value contains this text between slashes",
    [PAT_DOM] = "the value contains this text between dots, colons and slashes",
    [PAT_END] = "the value ends with this text",
    [PAT_REG] = "the value matches this regular expression",
};

/* Takes `index` down by `count` rows; true when the row is among them. */
static bool within(unsigned *index, size_t count)
{
    if (*index < count)
        return true;
    *index -= (unsigned)count;
    return false;
}

bool rules_doc_row(unsigned index, struct rules_doc *out)
{
    for (size_t t = 0; t < fetch_table_count; t++)
        if (within(&index, fetch_tables[t]->count)) {
            fetch_row(&fetch_tables[t]->rows[index], out);
            return true;
        }
    for (size_t t = 0; t < conv_table_count; t++)
        if (within(&index, conv_tables[t]->count)) {
            conv_row(&conv_tables[t]->rows[index], out);
            return true;
        }
    for (size_t t = 0; t < action_table_count; t++)
        if (within(&index, action_tables[t]->count)) {
            action_row(&action_tables[t]->rows[index], out);
            return true;
        }
    if (within(&index, PAT_REG + 1)) {
        *out = (struct rules_doc){"match", pat_match_names[index], NULL,
                                  value_type_name(pat_match_type((enum pat_match)index)),
                                  match_help[index]};
        return true;
    }
    if (within(&index, alias_count)) {
        *out =
            (struct rules_doc){"alias", alias_rows[index].name, NULL, NULL, alias_rows[index].help};
        return true;
    }
    return false;
}
