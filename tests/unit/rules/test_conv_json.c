#include "harness.h"

#include "rules/tables.h"

static const char document[] =
    "{ \"i\": 42, \"n\":-1.50, \"big\":9007199254740992, \"t\":true, \"f\":false, \"z\":null,"
    " \"s\":\"a\\\"b\\\\c\\/\\n\\u00e9\\u20ac\\ud83d\\ude00\", \"k.l\":\"dot\","
    " \"a\":{\"b\":[10, \"two\", {\"c\":\"deep\"}], \"e\":[]}, \"bad\":\"\\x\" }";

static const struct expectation escaped[] = {
    {"bin(612262),json", "str:a\\\"b"},
    {"bin(5c2f080c0a0d0901),json", "str:\\\\\\/\\b\\f\\n\\r\\t\\u0001"},
    {"bin(c3a97f),json", "str:\\u00c3\\u00a9\\u007f"},
    {"bin(c3a9),json(ascii)", "str:\\u00c3\\u00a9"},
    {"bin(c3a9e282ac),json(utf8)", "str:\\u00e9\\u20ac"},
    {"bin(61c328),json(utf8)", "<none>"},
    {"bin(61c328),json(utf8s)", "str:a("},
    {"bin(61c328),json(utf8p)", "<none>"},
    {"bin(61c328),json(utf8ps)", "str:a("},
    {"bin(c1a1),json(utf8)", "<none>"},
    {"bin(c1a1),json(utf8s)", "str:"},
    {"bin(c1a1),json(utf8p)", "str:a"},
    {"bin(eda080),json(utf8)", "<none>"},
    {"bin(f09f9880),json(utf8)", "<none>"},
    {"bin(f09f9880),json(utf8s)", "str:"},
    {"bin(c3),json(utf8)", "<none>"},
    {"bin(ff),json(utf8)", "<none>"},
    {"bin(80),json(utf8s)", "str:"},
    {"str(),json", "str:"},
};

static const struct expectation queries[] = {
    {"str(1),json_query($)", "str:1"},
    {"var(txn.d),json_query($.i)", "str:42"},
    {"var(txn.d),json_query($.i,int)", "int:42"},
    {"var(txn.d),json_query($.n)", "str:-1.5"},
    {"var(txn.d),json_query($.n,int)", "int:-1"},
    {"var(txn.d),json_query($.big,int)", "<none>"},
    {"var(txn.d),json_query($.t)", "bool:true"},
    {"var(txn.d),json_query($.f)", "bool:false"},
    {"var(txn.d),json_query($.z)", "<none>"},
    {"var(txn.d),json_query($.s)", "str:a\"b\\c/\n\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
    {"var(txn.d),json_query('$.k\\.l')", "str:dot"},
    {"var(txn.d),json_query($.a)", "<none>"},
    {"var(txn.d),json_query($.a.b)", "str:[10, \"two\", {\"c\":\"deep\"}]"},
    {"var(txn.d),json_query($.a.b[0])", "str:10"},
    {"var(txn.d),json_query($.a.b[1])", "str:two"},
    {"var(txn.d),json_query($.a.b[2].c)", "str:deep"},
    {"var(txn.d),json_query($.a.b[3])", "<none>"},
    {"var(txn.d),json_query($.a.e[0])", "<none>"},
    {"var(txn.d),json_query($.a.b[x])", "<none>"},
    {"var(txn.d),json_query($.a.b[0)", "<none>"},
    {"var(txn.d),json_query($[0])", "<none>"},
    {"var(txn.d),json_query($x)", "<none>"},
    {"var(txn.d),json_query($.nope)", "<none>"},
    {"var(txn.d),json_query($.bad)", "<none>"},
};

static void documents_are_read_and_written(void **state)
{
    struct fixture *f = *state;
    struct expectation all[COUNT_OF(escaped) + COUNT_OF(queries)];

    fixture_item_bin(f, RULES_PAYLOAD_REQ, document, sizeof document - 1);
    fixture_eval(f, "req.payload(0,0),concat(),set-var(txn.d)");
    memcpy(all, escaped, sizeof escaped);
    memcpy(all + COUNT_OF(escaped), queries, sizeof queries);
    fixture_check_typed(f, all, COUNT_OF(all));
    fixture_check_convs_used(&conv_json_table, all, COUNT_OF(all));
}

/* Every prefix and every document with one byte changed is read within its bounds. */
static void broken_documents_are_survived(void **state)
{
    struct fixture *f = *state;
    struct rules_expr *last = fixture_expr(f, "req.payload(0,0),json_query($.bad)"),
                      *deep = fixture_expr(f, "req.payload(0,0),json_query($.a.b[2].c)");
    struct sample s;

    for (size_t n = 0; n < sizeof document; n++) {
        static const char changes[] = "\"\\{}[],:x";

        for (size_t k = 0; k < sizeof changes; k++) {
            char *copy = malloc(sizeof document);
            size_t len = changes[k] ? sizeof document - 1 : n;

            memcpy(copy, document, sizeof document);
            if (changes[k])
                copy[n] = changes[k];
            copy = realloc(copy, len ? len : 1);
            fixture_item_bin(f, RULES_PAYLOAD_REQ, copy, len);
            rules_expr_eval(last, &f->ctx, &s);
            rules_expr_eval(deep, &f->ctx, &s);
            free(copy);
        }
    }
}

static void nesting_is_bounded(void **state)
{
    struct fixture *f = *state;
    struct rules_expr *e = fixture_expr(f, "req.payload(0,0),json_query($)");
    char text[200];
    struct sample s;

    memset(text, '[', 64);
    memset(text + 64, ']', 64);
    fixture_item_bin(f, RULES_PAYLOAD_REQ, text, 128);
    assert_true(rules_expr_eval(e, &f->ctx, &s));
    memset(text, '[', 65);
    memset(text + 65, ']', 65);
    fixture_item_bin(f, RULES_PAYLOAD_REQ, text, 130);
    assert_false(rules_expr_eval(e, &f->ctx, &s));
}

static void arguments_are_checked(void **state)
{
    static const struct expectation wrong[] = {
        {"str(a),json(latin1)", "unknown input code 'latin1'"},
        {"str(a),json_query(a.b)", "does not begin with '$'"},
        {"str(a),json_query($.a,float)", "unknown output type 'float'"},
        {"str(a),json_query", "does not begin with"},
    };

    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        fixture_expr_fails(*state, wrong[i].input, wrong[i].expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(documents_are_read_and_written),
        TEST(broken_documents_are_survived),
        TEST(nesting_is_bounded),
        TEST(arguments_are_checked),
    };

    return cmocka_run_group_tests_name("rules/conv_json", tests, NULL, NULL);
}
