#include "harness.h"

#include "rules/acl.h"

/* What is known of a listener: nothing without TLS, only that there is TLS with it. */
static void listener(struct fixture *f, bool tls)
{
    static const enum rules_item items[] = {
        RULES_SSL_FC,          RULES_SSL_FC_SNI,    RULES_SSL_FC_HAS_SNI,
        RULES_SSL_FC_PROTOCOL, RULES_SSL_FC_CIPHER, RULES_SSL_FC_USE_KEYSIZE,
        RULES_SSL_FC_ALPN,     RULES_SSL_C_USED,    RULES_SSL_C_VERIFY,
    };

    f->ctx.tls = tls;
    for (size_t i = 0; i < COUNT_OF(items); i++)
        f->has_item[items[i]] = false;
    if (!tls)
        return;
    fixture_item_bool(f, RULES_SSL_FC, true);
    fixture_item_str(f, RULES_SSL_FC_SNI, "sni.example");
    fixture_item_bool(f, RULES_SSL_FC_HAS_SNI, true);
    fixture_item_str(f, RULES_SSL_FC_PROTOCOL, "TLSv1.3");
    fixture_item_str(f, RULES_SSL_FC_CIPHER, "CIPHER");
    fixture_item_int(f, RULES_SSL_FC_USE_KEYSIZE, 256);
    fixture_item_str(f, RULES_SSL_FC_ALPN, "h2");
    fixture_item_bool(f, RULES_SSL_C_USED, true);
    fixture_item_int(f, RULES_SSL_C_VERIFY, 10);
}

/* Expected folds: -1 never, 1 always, 0 depends. */
static void conditions_fold(void **state)
{
    static const struct {
        const char *condition;
        int plain, tls;
    } rows[] = {
        {"if TRUE", 1, 1},
        {"if FALSE", -1, -1},
        {"unless TRUE", -1, -1},
        {"if { ssl_fc }", -1, 1},
        {"if !{ ssl_fc }", 1, -1},
        {"unless { ssl_fc }", 1, -1},
        {"if { ssl_fc,not }", 1, -1},
        {"if { ssl_fc_has_sni }", -1, 0},
        {"if { ssl_fc_sni -m found }", -1, 0},
        {"if !{ ssl_fc_sni -m found }", 1, 0},
        {"if { ssl_fc_sni sni.example }", -1, 0},
        {"if { ssl_fc_protocol TLSv1.3 } or { ssl_fc_alpn h2 }", -1, 0},
        {"if { ssl_fc_use_keysize lt 128 }", -1, 0},
        {"if { ssl_c_used }", -1, 0},
        {"if { ssl_fc_cipher,lower -m sub aes }", -1, 0},
        {"if { ssl_fc } { path / }", -1, 0},
        {"if { ssl_fc } or { path / }", 0, 1},
        {"if { ssl_fc } { path /x } or { path / }", 0, 0},
        {"unless { ssl_fc } { path / }", 1, 0},
        {"if { path / }", 0, 0},
        {"if { src 10.0.0.0/8 }", 0, 0},
        {"if { str(a) -m str a }", 1, 1},
        {"if { int(5) gt 6 }", -1, -1},
        {"if { acl(TRUE) }", 1, 1},
        {"if { acl(!TRUE) }", -1, -1},
        {"if { acl(over-tls) }", -1, 1},
        {"if { acl(!over-tls) }", 1, -1},
        {"if { acl(over-tls,METH_GET) }", -1, 0},
        {"if { acl(!over-tls,METH_GET) }", 0, -1},
        {"if over-tls", -1, 1},
        {"if either", 0, 1},
        {"if { var(txn.x) -m found }", 0, 0},
        {"if { rand(2) 1 }", 0, 0},
        {"if { date gt 0 }", 0, 0},
        {"if { ssl_bc }", 0, 0},
    };
    struct fixture *f = *state;

    fixture_acl(f, "over-tls ssl_fc");
    fixture_acl(f, "either ssl_fc");
    fixture_acl(f, "either path /");
    fixture_item_addr(f, RULES_SRC, "10.0.0.1");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct rules_cond *cond = fixture_cond_compile(f, rows[i].condition);

        for (int tls = 0; tls < 2; tls++) {
            int expected = tls ? rows[i].tls : rows[i].plain, fold = rules_cond_fold(cond, tls);
            struct rules_cond *special = rules_cond_specialize(cond, tls, &f->config);
            bool whole;

            if (fold != expected)
                fail_msg("'%s' with tls %d: folds to %d, not %d", rows[i].condition, tls, fold,
                         expected);
            listener(f, tls);
            whole = rules_cond_eval(cond, &f->ctx);
            if (fold)
                assert_int_equal(whole, fold > 0);
            else
                assert_non_null(special);
            /* The one without constant terms answers the same. */
            if (fold >= 0 && !strstr(rows[i].condition, "rand"))
                assert_int_equal(rules_cond_eval(special, &f->ctx), whole);
        }
    }
}

static void conditions_that_can_be_edited_do_not_fold(void **state)
{
    struct fixture *f = *state;
    const char *path = fixture_file(f, "edit.lst", "a\n");
    struct rules_cond *cond =
        fixture_cond_compile(f, arena_printf(&f->config, "if { str(b) -f %s }", path));
    struct rules_patterns *p = rules_patterns_find(f->c.registry, path, false);
    const char *why;

    assert_int_equal(rules_cond_fold(cond, false), 0);
    assert_false(rules_cond_eval(cond, &f->ctx));
    assert_int_equal(rules_patterns_add(p, STR("b"), STR_NULL, &why), 0);
    assert_true(rules_cond_eval(cond, &f->ctx));
    remove(path);
}

static void without_memory_a_condition_stays_whole(void **state)
{
    struct fixture *f = *state;
    struct rules_cond *cond =
        fixture_cond_compile(f, "if TRUE { path / } or FALSE or { path /x } TRUE");

    for (size_t limit = 16; limit < 512; limit += 16) {
        struct arena small;
        struct rules_cond *special;

        arena_init(&small, 16, limit);
        special = rules_cond_specialize(cond, false, &small);
        assert_non_null(special);
        assert_true(rules_cond_eval(special, &f->ctx));
        arena_release(&small);
    }
}

/* Each fetch of the listener's TLS: with a converter or without, the folded one answers the same. */
static void expressions_fold(void **state)
{
    static const struct expectation rows[] = {
        /* expression, value without TLS */
        {"ssl_fc", "bool:false"},         {"ssl_fc,iif(https,http)", "str:http"},
        {"ssl_fc_sni", "<none>"},         {"ssl_fc_sni,lower", "<none>"},
        {"ssl_fc_has_sni", "bool:false"}, {"ssl_fc_protocol", "<none>"},
        {"ssl_fc_cipher", "<none>"},      {"ssl_fc_alpn", "<none>"},
        {"ssl_fc_use_keysize", "<none>"}, {"ssl_c_used", "<none>"},
        {"ssl_c_verify", "<none>"},       {"ssl_c_s_dn(CN)", "<none>"},
        {"ssl_c_sha1,hex", "<none>"},     {"ssl_f_serial,hex", "<none>"},
        {"str(a),upper", "str:A"},        {"int(5),add(1),mul(2)", "int:12"},
        {"path,lower", "str:/"},          {"src", "addr:10.0.0.1"},
    };
    struct fixture *f = *state;

    fixture_item_addr(f, RULES_SRC, "10.0.0.1");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        listener(f, false);
        assert_string_equal(fixture_typed(f, rows[i].input), rows[i].expected);
        for (int tls = 0; tls < 2; tls++) {
            struct rules_expr *whole = fixture_expr(f, rows[i].input);
            const struct rules_expr *special = expr_specialize(whole, tls, &f->config);
            struct str a = STR_NULL, b = STR_NULL;

            listener(f, tls);
            assert_non_null(special);
            assert_int_equal(rules_expr_str(whole, &f->ctx, &a),
                             rules_expr_str(special, &f->ctx, &b));
            assert_true(str_eq(a, b));
            if (!tls && strncmp(rows[i].input, "ssl", 3) == 0)
                assert_int_not_equal(special->known, EXPR_DYNAMIC);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(conditions_fold),
        TEST(conditions_that_can_be_edited_do_not_fold),
        TEST(without_memory_a_condition_stays_whole),
        TEST(expressions_fold),
    };

    return cmocka_run_group_tests_name("rules/fold", tests, NULL, NULL);
}
