#include "harness.h"

#include "rules/tables.h"

#define DN "/C=FR/O=Ex, Inc/OU=a/b/OU=two/CN=name"

static void facts(struct fixture *f)
{
    for (size_t i = 0; i < fetch_tls_table.count; i++) {
        const struct fetch_def *def = &fetch_tls_table.rows[i];

        switch (def->type) {
        case VALUE_BOOL:
            fixture_item_bool(f, (enum rules_item)def->data, true);
            break;
        case VALUE_INT:
            fixture_item_int(f, (enum rules_item)def->data, 128);
            break;
        case VALUE_BIN:
            fixture_item_bin(f, (enum rules_item)def->data, "\x01\xff", 2);
            break;
        default:
            fixture_item_str(f, (enum rules_item)def->data, strstr(def->name, "_dn") ? DN : "text");
            break;
        }
    }
}

static const struct expectation rows[] = {
    {"ssl_fc", "bool:true"},
    {"ssl_fc_sni", "str:text"},
    {"ssl_fc_has_sni", "bool:true"},
    {"ssl_fc_alpn", "str:text"},
    {"ssl_fc_npn", "str:text"},
    {"ssl_fc_protocol", "str:text"},
    {"ssl_fc_cipher", "str:text"},
    {"ssl_fc_use_keysize", "int:128"},
    {"ssl_fc_alg_keysize", "int:128"},
    {"ssl_fc_is_resumed", "bool:true"},
    {"ssl_fc_session_id", "bin:01FF"},
    {"ssl_fc_unique_id", "bin:01FF"},
    {"ssl_fc_has_crt", "bool:true"},
    {"ssl_fc_err", "int:128"},
    {"ssl_fc_err_str", "str:text"},
    {"ssl_c_used", "bool:true"},
    {"ssl_c_verify", "int:128"},
    {"ssl_c_err", "int:128"},
    {"ssl_c_ca_err", "int:128"},
    {"ssl_c_s_dn", "str:" DN},
    {"ssl_c_s_dn(CN)", "str:name"},
    {"ssl_c_s_dn(cn)", "str:name"},
    {"ssl_c_s_dn(O)", "str:Ex, Inc"},
    {"ssl_c_s_dn(OU)", "str:a/b"},
    {"ssl_c_s_dn(OU,2)", "str:two"},
    {"ssl_c_s_dn(OU,-1)", "str:two"},
    {"ssl_c_s_dn(OU,-2)", "str:a/b"},
    {"ssl_c_s_dn(OU,3)", "<none>"},
    {"ssl_c_s_dn(OU,-3)", "<none>"},
    {"ssl_c_s_dn(ST)", "<none>"},
    {"ssl_c_s_dn(,0,rfc2253)", "str:CN=name,OU=two,OU=a/b,O=Ex\\, Inc,C=FR"},
    {"ssl_c_i_dn(C)", "str:FR"},
    {"ssl_c_serial", "bin:01FF"},
    {"ssl_c_sha1", "bin:01FF"},
    {"ssl_c_notbefore", "str:text"},
    {"ssl_c_notafter", "str:text"},
    {"ssl_c_der", "bin:01FF"},
    {"ssl_c_version", "int:128"},
    {"ssl_c_key_alg", "str:text"},
    {"ssl_f_s_dn", "str:" DN},
    {"ssl_f_i_dn", "str:" DN},
    {"ssl_f_serial", "bin:01FF"},
    {"ssl_f_sha1", "bin:01FF"},
    {"ssl_f_der", "bin:01FF"},
    {"ssl_bc", "bool:true"},
    {"ssl_bc_alpn", "str:text"},
    {"ssl_bc_protocol", "str:text"},
    {"ssl_bc_cipher", "str:text"},
    {"ssl_bc_is_resumed", "bool:true"},
    {"ssl_bc_use_keysize", "int:128"},
    {"ssl_bc_alg_keysize", "int:128"},
};

static void fetches_answer_with_tls(void **state)
{
    struct fixture *f = *state;

    f->ctx.tls = true;
    facts(f);
    fixture_check_typed(f, rows, COUNT_OF(rows));
    fixture_check_fetches_used(&fetch_tls_table, rows, COUNT_OF(rows));
}

/* Whatever the host would say. */
static void without_tls_they_are_constants(void **state)
{
    struct fixture *f = *state;

    f->ctx.tls = false;
    facts(f);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *name = rows[i].input;
        const char *got = fixture_typed(f, name);

        if (strncmp(name, "ssl_bc", 6) == 0)
            assert_string_equal(got, rows[i].expected);
        else if (strcmp(name, "ssl_fc") == 0 || strcmp(name, "ssl_fc_has_sni") == 0 ||
                 strcmp(name, "ssl_fc_is_resumed") == 0)
            assert_string_equal(got, "bool:false");
        else
            assert_string_equal(got, "<none>");
    }
}

static void unknown_facts_fail(void **state)
{
    struct fixture *f = *state;

    f->ctx.tls = true;
    assert_string_equal(fixture_typed(f, "ssl_fc_sni"), "<none>");
    assert_string_equal(fixture_typed(f, "ssl_c_s_dn(CN)"), "<none>");
    assert_string_equal(fixture_typed(f, "ssl_fc"), "bool:true");
}

static void arguments_are_checked(void **state)
{
    fixture_expr_fails(*state, "ssl_c_s_dn(CN,1,x)", "unknown format 'x', expected 'rfc2253'");
    fixture_expr_fails(*state, "ssl_fc(1)", "does not take arguments");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(fetches_answer_with_tls),
        TEST(without_tls_they_are_constants),
        TEST(unknown_facts_fail),
        TEST(arguments_are_checked),
    };

    return cmocka_run_group_tests_name("rules/fetch_tls", tests, NULL, NULL);
}
