#include "harness.h"

#include "rules/tables.h"

#define MAX "9223372036854775807"
#define MIN "-9223372036854775808"

static const struct expectation rows[] = {
    {"int(5),add(3)", "int:8"},           {"int(5),add(-8)", "int:-3"},
    {"int(" MAX "),add(1)", "int:" MAX},  {"int(" MIN "),add(-1)", "int:" MIN},
    {"int(5),add(txn.n)", "int:17"},      {"int(5),add(txn.text)", "int:5"},
    {"int(5),add(txn.none)", "<none>"},   {"int(5),sub(8)", "int:-3"},
    {"int(" MIN "),sub(1)", "int:" MIN},  {"int(" MAX "),sub(-1)", "int:" MAX},
    {"int(5),mul(-3)", "int:-15"},        {"int(" MAX "),mul(2)", "int:" MAX},
    {"int(" MAX "),mul(-2)", "int:" MIN}, {"int(" MIN "),mul(-1)", "int:" MAX},
    {"int(-7),div(2)", "int:-3"},         {"int(7),div(0)", "int:" MAX},
    {"int(" MIN "),div(-1)", "int:" MAX}, {"int(-7),mod(3)", "int:-1"},
    {"int(7),mod(0)", "int:0"},           {"int(" MIN "),mod(-1)", "int:0"},
    {"int(12),and(10)", "int:8"},         {"int(12),or(3)", "int:15"},
    {"int(12),xor(10)", "int:6"},         {"int(5),neg", "int:-5"},
    {"int(" MIN "),neg", "int:" MAX},     {"int(0),cpl", "int:-1"},
    {"int(0),not", "bool:true"},          {"int(2),not", "bool:false"},
    {"bool(true),not", "bool:false"},     {"int(2),bool", "bool:true"},
    {"int(0),bool", "bool:false"},        {"str(0),bool", "bool:false"},
    {"int(-3),odd", "bool:true"},         {"int(4),odd", "bool:false"},
    {"int(-4),even", "bool:true"},        {"int(5),even", "bool:false"},
    {"str(12abc),add(1)", "int:13"},      {"bool(true),add(1)", "int:2"},
};

static void numbers_are_computed(void **state)
{
    struct fixture *f = *state;

    fixture_eval(f, "str(12),set-var(txn.n)");
    fixture_eval(f, "str(x),set-var(txn.text)");
    fixture_check_typed(f, rows, COUNT_OF(rows));
    fixture_check_convs_used(&conv_num_table, rows, COUNT_OF(rows));
}

static void arguments_are_checked(void **state)
{
    static const struct expectation wrong[] = {
        {"int(5),add(x)", "'x' is neither an integer nor a variable"},
        {"int(5),add(5x)", "'5x' is neither"},
        {"int(5),add", "neither an integer nor a variable"},
        {"int(5),neg(1)", "does not take arguments"},
        {"src,add(1)", ""},
    };

    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        fixture_expr_fails(*state, wrong[i].input, wrong[i].expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(numbers_are_computed),
        TEST(arguments_are_checked),
    };

    return cmocka_run_group_tests_name("rules/conv_num", tests, NULL, NULL);
}
