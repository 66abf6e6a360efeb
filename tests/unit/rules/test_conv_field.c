#include "harness.h"

#include "rules/tables.h"

static const struct expectation rows[] = {
    {"str(f1_f2_f3__f5),field(1,_)", "str:f1"},
    {"str(f1_f2_f3__f5),field(4,_)", "str:"},
    {"str(f1_f2_f3__f5),field(5,_)", "str:f5"},
    {"str(f1_f2_f3__f5),field(6,_)", "<none>"},
    {"str(f1_f2_f3__f5),field(2,_,0)", "str:f2_f3__f5"},
    {"str(f1_f2_f3__f5),field(2,_,2)", "str:f2_f3"},
    {"str(f1_f2_f3__f5),field(2,_,99)", "str:f2_f3__f5"},
    {"str(f1_f2_f3__f5),field(-1,_)", "str:f5"},
    {"str(f1_f2_f3__f5),field(-2,_)", "str:"},
    {"str(f1_f2_f3__f5),field(-2,_,3)", "str:f2_f3_"},
    {"str(f1_f2_f3__f5),field(-3,_,0)", "str:f1_f2_f3"},
    {"str(f1_f2_f3__f5),field(-6,_)", "<none>"},
    {"str(\"a,b;c\"),field(2,\";,\")", "str:b"},
    {"str(),field(1,_)", "str:"},
    {"str(),field(-1,_)", "str:"},
    {"str(w1_w2_w3__w4),word(4,_)", "str:w4"},
    {"str(w1_w2_w3__w4),word(5,_)", "<none>"},
    {"str(w1_w2_w3__w4),word(2,_,0)", "str:w2_w3__w4"},
    {"str(w1_w2_w3__w4),word(3,_,2)", "str:w3__w4"},
    {"str(w1_w2_w3__w4),word(-1,_)", "str:w4"},
    {"str(w1_w2_w3__w4),word(-2,_,3)", "str:w1_w2_w3"},
    {"str(w1_w2_w3__w4),word(-3,_,0)", "str:w1_w2"},
    {"str(w1_w2_w3__w4),word(-5,_)", "<none>"},
    {"str(/w1/w2),word(1,/)", "str:w1"},
    {"str(___),word(1,_)", "<none>"},
    {"str(),word(-1,_)", "<none>"},
    {"str(a=1&b=2&c),param(a)", "str:1"},
    {"str(a=1&b=2&c),param(b)", "str:2"},
    {"str(a=1&b=2&c),param(c)", "str:"},
    {"str(a=1&b=2&c),param(d)", "<none>"},
    {"str(a=1;b=2=3),param(b,;)", "str:2=3"},
    {"str(abcdef),bytes(0)", "bin:616263646566"},
    {"str(abcdef),bytes(2)", "bin:63646566"},
    {"str(abcdef),bytes(2,3)", "bin:636465"},
    {"str(abcdef),bytes(2,30)", "bin:63646566"},
    {"str(abcdef),bytes(6)", "bin:"},
    {"str(abcdef),bytes(99)", "bin:"},
    {"str(abcdef),bytes(9223372036854775807,9223372036854775807)", "bin:"},
    {"str(abcdef),bytes(txn.two,txn.one)", "bin:63"},
    {"str(abcdef),bytes(0,txn.none)", "<none>"},
    {"str(abcdef),bytes(txn.none)", "<none>"},
    {"str(abcdef),bytes(txn.neg)", "<none>"},
    {"str(abcdef),bytes(0,txn.neg)", "<none>"},
};

static void parts_are_taken(void **state)
{
    struct fixture *f = *state;

    fixture_eval(f, "int(1),set-var(txn.one)");
    fixture_eval(f, "int(2),set-var(txn.two)");
    fixture_eval(f, "int(-1),set-var(txn.neg)");
    fixture_check_typed(f, rows, COUNT_OF(rows));
    fixture_check_convs_used(&conv_field_table, rows, COUNT_OF(rows));
}

static void arguments_are_checked(void **state)
{
    static const struct expectation wrong[] = {
        {"str(a),field(0,_)", "the index must not be 0"},
        {"str(a),word(0,_)", "the index must not be 0"},
        {"str(a),field(1,\"\")", "separators"},
        {"str(a),field(x,_)", "not an integer"},
        {"str(a),field(1)", "argument"},
        {"str(a),bytes(-1)", "neither a variable nor"},
        {"str(a),bytes(0,0)", "neither a variable nor"},
        {"str(a),bytes(x)", "neither a variable nor"},
    };

    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        fixture_expr_fails(*state, wrong[i].input, wrong[i].expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(parts_are_taken),
        TEST(arguments_are_checked),
    };

    return cmocka_run_group_tests_name("rules/conv_field", tests, NULL, NULL);
}
