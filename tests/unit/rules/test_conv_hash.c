#include "harness.h"

#include "rules/tables.h"

/* Known answers of each algorithm. */
static const struct expectation rows[] = {
    {"str(123456789),crc32", "int:3421780262"},
    {"str(),crc32", "int:0"},
    {"str(abc),crc32(1)", "int:930845320"},
    {"str(123456789),crc32c", "int:3808858755"},
    {"str(abc),crc32c(1)", "int:1285784220"},
    {"str(abc),djb2", "int:193485963"},
    {"str(),djb2", "int:5381"},
    {"str(abc),djb2(1)", "int:2235766107"},
    {"str(abc),djb2(0)", "int:193485963"},
    {"str(abc),sdbm", "int:807794786"},
    {"str(),sdbm", "int:0"},
    {"str(abc),sdbm(1)", "int:659243622"},
    {"str(abc),wt6", "int:2483038440"},
    {"str(abc),wt6(1)", "int:266135527"},
    {"str(abcdefghijk),wt6", "int:4060579951"},
    {"str(),wt6", "int:4187620192"},
    {"str(abc),sha1", "bin:A9993E364706816ABA3E25717850C26C9CD0D89D"},
    {"str(abc),sha2", "bin:BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD"},
    {"str(abc),sha2(224)", "bin:23097D223405D8228642A477BDA255B32AADBCE4BDA0B3F7E36C9DA7"},
    {"str(abc),sha2(256)", "bin:BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD"},
    {"str(abc),sha2(384)", "bin:CB00753F45A35E8BB5A03D699AC65007272C32AB0EDED1631A8B605A43FF5BED"
                           "8086072BA1E7CC2358BAECA134C825A7"},
    {"str(abc),sha2(512)", "bin:DDAF35A193617ABACC417349AE20413112E6FA4E89A97EA20A9EEEE64B55D39A"
                           "2192992A274FC1A836BA3C23A3FEEBBD454D4423643CE80E2A9AC94FA54CA49F"},
    {"str(abc),md5", "bin:900150983CD24FB0D6963F7D28E17F72"},
    {"str(abc),digest(md5)", "bin:900150983CD24FB0D6963F7D28E17F72"},
    {"str(abc),digest(sha512-256)",
     "bin:53048E2681941EF99B2E29B76B4C7DABE4C2D0C634FC6D46E0E2F13107E7AF23"},
    {"str(abc),hmac(sha256,a2V5)",
     "bin:9C196E32DC0175F86F4B1CB89289D6619DE6BEE699E4C378E68309ED97A1A6AB"},
    {"str(abc),hmac(sha256,txn.key)",
     "bin:9C196E32DC0175F86F4B1CB89289D6619DE6BEE699E4C378E68309ED97A1A6AB"},
    {"str(abc),hmac(sha256,txn.bad)", "<none>"},
    {"str(abc),hmac(sha256,txn.none)", "<none>"},
};

static void known_answers(void **state)
{
    struct fixture *f = *state;

    fixture_eval(f, "str(a2V5),set-var(txn.key)");
    fixture_eval(f, "str(a2V),set-var(txn.bad)");
    fixture_check_typed(f, rows, COUNT_OF(rows));
    fixture_check_convs_used(&conv_hash_table, rows, COUNT_OF(rows));
}

static void arguments_are_checked(void **state)
{
    static const struct expectation wrong[] = {
        {"str(a),sha2(100)", "unsupported number of bits '100'"},
        {"str(a),sha2(x)", "not an integer"},
        {"str(a),crc32(x)", "not an integer"},
        {"str(a),digest(nosuch)", "unknown digest 'nosuch'"},
        {"str(a),hmac(nosuch,a2V5)", "unknown digest 'nosuch'"},
        {"str(a),hmac(sha256,a2V)", "neither a variable nor base64"},
        {"str(a),hmac(sha256)", "argument"},
    };

    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        fixture_expr_fails(*state, wrong[i].input, wrong[i].expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(known_answers),
        TEST(arguments_are_checked),
    };

    return cmocka_run_group_tests_name("rules/conv_hash", tests, NULL, NULL);
}
