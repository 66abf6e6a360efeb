#include "harness.h"

#include "rules/tables.h"

static const struct expectation rows[] = {
    {"str(abc),base64", "str:YWJj"},
    {"str(a),base64", "str:YQ=="},
    {"str(),base64", "str:"},
    {"str(YWJj),b64dec", "bin:616263"},
    {"str(YQ==),b64dec", "bin:61"},
    {"str(YWJj!),b64dec", "<none>"},
    {"str(YWJ),b64dec", "<none>"},
    {"bin(fbff),ub64enc", "str:-_8"},
    {"str(abc),ub64enc", "str:YWJj"},
    {"str(-_8),ub64dec", "bin:FBFF"},
    {"str(+_8),ub64dec", "<none>"},
    {"str(-/8),ub64dec", "<none>"},
    {"str(YWJj),ub64dec", "bin:616263"},
    {"bin(00abFF),hex", "str:00ABFF"},
    {"ipv4(1.2.3.4),hex", "str:01020304"},
    {"str(0a1F),hex2i", "int:2591"},
    {"str(ffffffffffffffff),hex2i", "int:-1"},
    {"str(),hex2i", "int:0"},
    {"str(0g),hex2i", "<none>"},
    {"bin(a501),base2", "str:1010010100000001"},
    {"bin(0102030405),be2dec(:,2)", "str:258:772:5"},
    {"bin(0102030405),be2dec(:,2,1)", "str:258:772"},
    {"bin(0102030405),be2dec(:,2,0)", "str:258:772:5"},
    {"bin(ffffffffffffffff),be2dec(,8)", "str:18446744073709551615"},
    {"bin(ffff),be2dec(-,1)", "str:255-255"},
    {"bin(0102030405),le2dec(-,2)", "str:513-1027-5"},
    {"bin(0102030405),le2dec(-,2,1)", "str:513-1027"},
    {"bin(0102030405),be2hex", "str:0102030405"},
    {"bin(0102030405),be2hex(:,2)", "str:0102:0304:05"},
    {"bin(0102030405),be2hex(:,2,1)", "str:0102:0304"},
    {"bin(01),be2hex(:,2,1)", "str:"},
    {"bool(true),be2hex", "str:0000000000000001"},
    {"bin(6162),be2dec(,2)", "str:24930"},
    {"int(1),htonl", "bin:00000001"},
    {"int(-2),htonl", "bin:FFFFFFFE"},
};

static void bytes_are_written_and_read(void **state)
{
    fixture_check_typed(*state, rows, COUNT_OF(rows));
    fixture_check_convs_used(&conv_bin_table, rows, COUNT_OF(rows));
}

static void arguments_are_checked(void **state)
{
    static const struct expectation wrong[] = {
        {"str(a),be2dec(:,0)", "1 to 8"},           {"str(a),be2dec(:,9)", "1 to 8"},
        {"str(a),le2dec(:,0)", "1 to 8"},           {"str(a),be2dec(:,2,2)", "0 or 1"},
        {"str(a),be2dec(:)", "argument"},           {"str(a),be2hex(:)", "must be positive"},
        {"str(a),be2hex(:,0)", "must be positive"}, {"str(a),be2hex(,,1)", ""},
        {"str(a),be2hex(:,1,2)", "0 or 1"},
    };

    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        fixture_expr_fails(*state, wrong[i].input, wrong[i].expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(bytes_are_written_and_read),
        TEST(arguments_are_checked),
    };

    return cmocka_run_group_tests_name("rules/conv_bin", tests, NULL, NULL);
}
