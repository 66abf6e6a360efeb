#include "harness.h"

#include "rules/tables.h"

/* A ClientHello for www.example.com offering h2, curves and session tickets. */
static const char hello[] = "\x16\x03\x01\x00\x68\x01\x00\x00\x64\x03\x03"
                            "0123456789abcdef0123456789abcdef"
                            "\x04sess"
                            "\x00\x04\x13\x01\x13\x02"
                            "\x01\x00"
                            "\x00\x33"
                            "\x00\x00\x00\x14\x00\x12\x00\x00\x0fwww.example.com"
                            "\x00\x0a\x00\x04\x00\x02\x00\x1d"
                            "\x00\x10\x00\x08\x00\x06\x02h2\x02h3"
                            "\x00\x23\x00\x03tic";

#define HELLO_LEN (sizeof hello - 1)

static const struct expectation rows[] = {
    {"req.body", "bin:616263646566"},
    {"req.body_len", "int:6"},
    {"req.body_size", "int:40"},
    {"res.body", "bin:787A"},
    {"res.body_len", "int:2"},
    {"res.body_size", "int:2"},
    {"req.len", "int:6"},
    {"req_len", "int:6"},
    {"res.len", "int:2"},
    {"req.payload(0,3)", "bin:616263"},
    {"req.payload(2,0)", "bin:63646566"},
    {"req.payload(4,3)", "<none>"},
    {"req.payload(7,0)", "<none>"},
    {"payload(1,1)", "bin:62"},
    {"res.payload(0,0)", "bin:787A"},
    {"req.payload_lv(0,1)", "<none>"},
    {"payload_lv(0,2)", "<none>"},
    {"res.payload_lv(0,1)", "<none>"},
    {"wait_end", "bool:true"},
    {"req.ssl_hello_type", "<none>"},
    {"req_ssl_hello_type", "<none>"},
    {"res.ssl_hello_type", "<none>"},
    {"rep_ssl_hello_type", "<none>"},
    {"req.ssl_sni", "<none>"},
    {"req_ssl_sni", "<none>"},
    {"req.ssl_alpn", "<none>"},
    {"req.ssl_ver", "<none>"},
    {"req_ssl_ver", "<none>"},
    {"req.ssl_ec_ext", "<none>"},
    {"req.ssl_st_ext", "<none>"},
};

static void bytes_are_fetched(void **state)
{
    struct fixture *f = *state;

    fixture_request(f, "POST / HTTP/1.1\r\nContent-Length: 40\r\n\r\n");
    fixture_response(f, "HTTP/1.1 200 OK\r\n\r\n");
    fixture_item_bin(f, RULES_PAYLOAD_REQ, "abcdef", 6);
    fixture_item_bin(f, RULES_PAYLOAD_RES, "xz", 2);
    fixture_item_int(f, RULES_REQ_BODY_LEN, 6);
    fixture_item_int(f, RULES_RES_BODY_LEN, 2);
    fixture_check_typed(f, rows, COUNT_OF(rows));
    fixture_check_fetches_used(&fetch_payload_table, rows, COUNT_OF(rows));
}

static void without_bytes_they_fail(void **state)
{
    struct fixture *f = *state;

    f->ctx.req = NULL;
    f->ctx.final_data = false;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_string_equal(fixture_typed(f, rows[i].input), "<none>");
}

static void blocks_with_a_length_are_found(void **state)
{
    static const struct expectation blocks[] = {
        {"req.payload_lv(0,1)", "bin:414243"},   {"req.payload_lv(4,2)", "bin:58"},
        {"req.payload_lv(0,1,2)", "bin:424300"}, {"req.payload_lv(0,1,+1)", "bin:424300"},
        {"req.payload_lv(0,1,9)", "<none>"},     {"req.payload_lv(7,1)", "<none>"},
        {"req.payload_lv(40,1)", "<none>"},
    };
    struct fixture *f = *state;

    fixture_item_bin(f, RULES_PAYLOAD_REQ,
                     "\x03"
                     "ABC\x00\x01X\x05",
                     8);
    fixture_check_typed(f, blocks, COUNT_OF(blocks));
    fixture_expr_fails(f, "req.payload_lv(0,0)", "a length of 1 to 4 bytes");
    fixture_expr_fails(f, "req.payload_lv(0,5)", "a length of 1 to 4 bytes");
    fixture_expr_fails(f, "req.payload_lv(0,1,x)", "offset 'x' is not a number");
    fixture_expr_fails(f, "req.payload(-1,1)", "must not be negative");
}

static void a_client_hello_is_read(void **state)
{
    static const struct expectation parts[] = {
        {"req.ssl_hello_type", "int:1"},
        {"req.ssl_sni", "str:www.example.com"},
        {"req_ssl_sni", "str:www.example.com"},
        {"req.ssl_alpn", "str:h2"},
        {"req.ssl_ver", "int:196611"},
        {"req.ssl_ec_ext", "bool:true"},
        {"req.ssl_st_ext", "int:2"},
    };
    struct fixture *f = *state;

    fixture_item_bin(f, RULES_PAYLOAD_REQ, hello, HELLO_LEN);
    fixture_item_bin(f, RULES_PAYLOAD_RES, "\x16\x03\x03\x00\x04\x02\x00\x00\x00", 9);
    fixture_check_typed(f, parts, COUNT_OF(parts));
    assert_string_equal(fixture_typed(f, "res.ssl_hello_type"), "int:2");
    assert_true(fixture_cond(f, "if { req.ssl_sni -m end .example.com } { req.ssl_ver 3.3 }"));
}

/* Every prefix waits for more; every flipped length stays within the bytes. */
static void cut_and_broken_hellos_are_refused(void **state)
{
    struct fixture *f = *state;
    struct rules_expr *sni = fixture_expr(f, "req.ssl_sni");
    struct fetch_iter it = {0};
    struct sample s;

    for (size_t n = 0; n < HELLO_LEN; n++) {
        char *copy = malloc(n ? n : 1);

        memcpy(copy, hello, n);
        fixture_item_bin(f, RULES_PAYLOAD_REQ, copy, n);
        assert_false(expr_next(sni, &f->ctx, &it, &s));
        assert_true(it.may_change);
        free(copy);
    }
    for (size_t i = 0; i < HELLO_LEN; i++) {
        char *copy = malloc(HELLO_LEN);

        memcpy(copy, hello, HELLO_LEN);
        copy[i] = (char)0xff;
        fixture_item_bin(f, RULES_PAYLOAD_REQ, copy, HELLO_LEN);
        fixture_typed(f, "req.ssl_sni");
        fixture_typed(f, "req.ssl_alpn");
        fixture_typed(f, "req.ssl_st_ext");
        fixture_typed(f, "req.ssl_ver");
        free(copy);
    }
    fixture_item_bin(f, RULES_PAYLOAD_REQ, "GET / HTTP/1.1\r\n\r\n", 18);
    assert_false(expr_next(sni, &f->ctx, &it, &s));
    assert_false(it.may_change);
}

static void the_host_may_know_better(void **state)
{
    struct fixture *f = *state;

    fixture_item_str(f, RULES_REQ_SSL_SNI, "host.example");
    fixture_item_int(f, RULES_REQ_SSL_HELLO_TYPE, 1);
    assert_string_equal(fixture_typed(f, "req.ssl_sni"), "str:host.example");
    assert_string_equal(fixture_typed(f, "req.ssl_hello_type"), "int:1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(bytes_are_fetched),
        TEST(without_bytes_they_fail),
        TEST(blocks_with_a_length_are_found),
        TEST(a_client_hello_is_read),
        TEST(cut_and_broken_hellos_are_refused),
        TEST(the_host_may_know_better),
    };

    return cmocka_run_group_tests_name("rules/fetch_payload", tests, NULL, NULL);
}
