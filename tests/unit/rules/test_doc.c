#include "harness.h"

#include "rules/action.h"

static void every_row_is_documented(void **state)
{
    static const char *const kinds[] = {"fetch", "converter", "action", "match", "alias"};
    unsigned counts[COUNT_OF(kinds)] = {0}, i;
    struct rules_doc row;

    for (i = 0; rules_doc_row(i, &row); i++) {
        bool known = false;

        for (size_t k = 0; k < COUNT_OF(kinds); k++)
            if (strcmp(row.kind, kinds[k]) == 0) {
                known = true;
                counts[k]++;
            }
        assert_true(known);
        assert_true(row.name && row.name[0]);
        if (!row.help || !row.help[0])
            fail_msg("%s '%s' has no help", row.kind, row.name);
        if (strcmp(row.kind, "alias") != 0 && (!row.type || !row.type[0]))
            fail_msg("%s '%s' has no type", row.kind, row.name);
    }
    assert_false(rules_doc_row(i + 1, &row));
    for (size_t k = 0; k < COUNT_OF(kinds); k++)
        assert_true(counts[k] > 10);
}

static void names_are_unique(void **state)
{
    struct rules_doc a, b;

    for (unsigned i = 0; rules_doc_row(i, &a); i++)
        for (unsigned k = i + 1; rules_doc_row(k, &b); k++)
            if (strcmp(a.kind, b.kind) == 0 && strcmp(a.name, b.name) == 0)
                fail_msg("%s '%s' is there twice", a.kind, a.name);
}

/* What is provided is not said to be missing. */
static void provided_names_are_not_known_as_unsupported(void **state)
{
    struct rules_doc row;

    for (unsigned i = 0; rules_doc_row(i, &row); i++) {
        struct str name = str_of(row.name);

        if (strcmp(row.kind, "fetch") == 0)
            assert_false(known_unsupported(KNOWN_FETCH, name));
        else if (strcmp(row.kind, "converter") == 0)
            assert_false(known_unsupported(KNOWN_CONVERTER, name));
        else if (strcmp(row.kind, "action") == 0)
            assert_false(known_unsupported(KNOWN_ACTION, name));
    }
}

static void what_is_not_provided_is_said(void **state)
{
    static const char *const fetches[] = {"src_get_gpc0", "sc0_http_req_cnt", "http_auth(x)",
                                          "lua.mine",     "table_cnt",        "rdp_cookie"};
    static const char *const converters[] = {"str(a),in_table(t)", "str(a),table_conn_cnt(t)",
                                             "str(a),debug",       "str(a),jwt_verify(a,b)",
                                             "str(a),lua.mine",    "str(a),xxh32"};
    static const char *const actions[] = {
        "track-sc0 src",  "use-service lua.x",     "sc-inc-gpc0(0)", "normalize-uri x",
        "early-hint a b", "wait-for-body time 1s", "lua.mine",       "del-map(x) y"};
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT_OF(fetches); i++)
        fixture_expr_fails(f, fetches[i], "known from HAProxy but not supported");
    for (size_t i = 0; i < COUNT_OF(converters); i++)
        fixture_expr_fails(f, converters[i], "known from HAProxy but not supported");
    for (size_t i = 0; i < COUNT_OF(actions); i++)
        fixture_rule_fails(f, RULES_HTTP_REQUEST, actions[i],
                           "known from HAProxy but not supported");
    fixture_cond_fails(f, "if RDP_COOKIE", "not supported");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_row_is_documented),
        TEST(names_are_unique),
        TEST(provided_names_are_not_known_as_unsupported),
        TEST(what_is_not_provided_is_said),
    };

    return cmocka_run_group_tests_name("rules/doc", tests, NULL, NULL);
}
