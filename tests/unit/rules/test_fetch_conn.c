#include "harness.h"

#include "rules/tables.h"

static const struct expectation rows[] = {
    {"src", "addr:10.0.0.1"},
    {"src_port", "int:1001"},
    {"dst", "addr:2001:db8::2"},
    {"dst_port", "int:443"},
    {"fc_src", "addr:10.0.0.1"},
    {"fc_src_port", "int:1001"},
    {"fc_dst", "addr:2001:db8::2"},
    {"fc_dst_port", "int:443"},
    {"bc_src", "addr:10.0.0.3"},
    {"bc_src_port", "int:1003"},
    {"bc_dst", "addr:10.0.0.4"},
    {"bc_dst_port", "int:8080"},
    {"bc_reused", "bool:true"},
    {"fc_http_major", "int:2"},
    {"bc_http_major", "int:1"},
    {"fc_rcvd_proxy", "bool:true"},
    {"fc_pp_authority", "str:auth.example"},
    {"fc_pp_unique_id", "str:pp-1"},
    {"fc_err", "int:0"},
    {"fc_err_str", "str:Success"},
    {"bc_err", "int:5"},
    {"bc_err_str", "str:Refused"},
    {"fe_name", "str:front"},
    {"fe_id", "int:2"},
    {"fe_defbe", "str:back"},
    {"fe_client_timeout", "int:30000"},
    {"be_name", "str:back"},
    {"be_id", "int:3"},
    {"be_server_timeout", "int:5000"},
    {"be_tunnel_timeout", "int:60000"},
    {"srv_name", "str:s1"},
    {"srv_id", "int:1"},
    {"so_name", "str:tls"},
    {"so_id", "int:1"},
    {"internal.strm.is_htx", "bool:true"},
    {"nbsrv", "int:1"},
    {"be_conn(be1)", "int:2"},
    {"fe_conn(fe1)", "int:3"},
    {"be_sess_rate", "int:4"},
    {"fe_sess_rate", "int:5"},
    {"fe_req_rate", "int:6"},
    {"srv_is_up(be1/srv1)", "bool:true"},
    {"srv_conn(srv1)", "int:8"},
    {"srv_queue(srv1)", "int:9"},
    {"srv_weight(srv1)", "int:10"},
    {"srv_sess_rate(srv1)", "int:11"},
    {"queue", "int:12"},
    {"avg_queue", "int:13"},
    {"connslots", "int:14"},
    {"be_conn_free", "int:15"},
    {"srv_conn_free(srv1)", "int:16"},
};

static void facts(struct fixture *f)
{
    fixture_item_addr(f, RULES_SRC, "10.0.0.1");
    fixture_item_int(f, RULES_SRC_PORT, 1001);
    fixture_item_addr(f, RULES_DST, "2001:db8::2");
    fixture_item_int(f, RULES_DST_PORT, 443);
    fixture_item_addr(f, RULES_BC_SRC, "10.0.0.3");
    fixture_item_int(f, RULES_BC_SRC_PORT, 1003);
    fixture_item_addr(f, RULES_BC_DST, "10.0.0.4");
    fixture_item_int(f, RULES_BC_DST_PORT, 8080);
    fixture_item_bool(f, RULES_BC_REUSED, true);
    fixture_item_int(f, RULES_FC_HTTP_MAJOR, 2);
    fixture_item_int(f, RULES_BC_HTTP_MAJOR, 1);
    fixture_item_bool(f, RULES_FC_RCVD_PROXY, true);
    fixture_item_str(f, RULES_FC_PP_AUTHORITY, "auth.example");
    fixture_item_str(f, RULES_FC_PP_UNIQUE_ID, "pp-1");
    fixture_item_int(f, RULES_FC_ERR, 0);
    fixture_item_str(f, RULES_FC_ERR_STR, "Success");
    fixture_item_int(f, RULES_BC_ERR, 5);
    fixture_item_str(f, RULES_BC_ERR_STR, "Refused");
    fixture_item_str(f, RULES_FE_NAME, "front");
    fixture_item_int(f, RULES_FE_ID, 2);
    fixture_item_str(f, RULES_FE_DEFBE, "back");
    fixture_item_int(f, RULES_FE_CLIENT_TIMEOUT, 30000000);
    fixture_item_str(f, RULES_BE_NAME, "back");
    fixture_item_int(f, RULES_BE_ID, 3);
    fixture_item_int(f, RULES_BE_SERVER_TIMEOUT, 5000000);
    fixture_item_int(f, RULES_BE_TUNNEL_TIMEOUT, 60000000);
    fixture_item_str(f, RULES_SRV_NAME, "s1");
    fixture_item_int(f, RULES_SRV_ID, 1);
    fixture_item_str(f, RULES_SO_NAME, "tls");
    fixture_item_int(f, RULES_SO_ID, 1);
    fixture_item_bool(f, RULES_STRM_IS_HTTP, true);
    for (int i = RULES_NBSRV; i <= RULES_SRV_CONN_FREE; i++)
        f->counts[i] = i + 1;
}

static void fetches_answer(void **state)
{
    facts(*state);
    fixture_check_typed(*state, rows, COUNT_OF(rows));
    fixture_check_fetches_used(&fetch_conn_table, rows, COUNT_OF(rows));
}

static void without_a_host_they_fail(void **state)
{
    struct fixture *f = *state;

    f->ctx.host = NULL;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (strcmp(rows[i].input, "internal.strm.is_htx") != 0)
            assert_string_equal(fixture_typed(f, rows[i].input), "<none>");
}

static void addresses_of_unix_sockets_are_none(void **state)
{
    struct fixture *f = *state;

    fixture_item_addr(f, RULES_SRC, "10.0.0.1");
    f->items[RULES_SRC].u.a.u.sa.sa_family = AF_UNIX;
    assert_string_equal(fixture_typed(f, "src"), "<none>");
    assert_false(fixture_cond(f, "if { src 0.0.0.0/0 }"));
}

static void http_streams_are_told_by_their_request(void **state)
{
    struct fixture *f = *state;

    assert_string_equal(fixture_typed(f, "internal.strm.is_htx"), "bool:true");
    f->ctx.req = NULL;
    assert_string_equal(fixture_typed(f, "internal.strm.is_htx,iif(http,tcp)"), "str:tcp");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(fetches_answer),
        TEST(without_a_host_they_fail),
        TEST(addresses_of_unix_sockets_are_none),
        TEST(http_streams_are_told_by_their_request),
    };

    return cmocka_run_group_tests_name("rules/fetch_conn", tests, NULL, NULL);
}
