/*
 * Sections: names, inheritance from defaults sections, references between them.
 */
#include "support.h"

static void values_come_from_the_last_defaults(void **state)
{
    struct loaded l;

    load(&l, "backend none\n"
             "defaults\n"
             "    mode http\n"
             "    timeout connect 1s\n"
             "    timeout server 10s\n"
             "    timeout client 20s\n"
             "    retries 7\n"
             "    option dontlognull\n"
             "    option redispatch\n"
             "    balance leastconn\n"
             "    log 127.0.0.1:514 local0\n"
             "    errorloc 503 /sorry\n"
             "    stats auth a:b\n"
             "    default-server inter 5s check\n"
             "frontend f\n"
             "    bind :80\n"
             "    log 127.0.0.2:514 local1\n"
             "    no option dontlognull\n"
             "backend b\n"
             "    timeout server 30s\n"
             "    server s 127.0.0.1:80 no-check\n"
             "    errorloc 502 /other\n"
             "    stats auth c:d\n"
             "defaults\n"
             "backend fresh\n"
             "    server s 127.0.0.1:80\n"
             "    timeout server 5s\n"
             "    timeout connect 5s\n");
    assert_string_equal(report(&l), "t.cfg:1: notice: backend 'none' has no server\n");
    assert_true(find_proxy(&l, "none")->mode_tcp);
    assert_int_equal(find_proxy(&l, "none")->retries, 3);
    assert_int_equal(find_proxy(&l, "f")->timeout_client_us, 20000000);
    assert_false(find_proxy(&l, "f")->dontlognull);
    assert_string_equal(find_proxy(&l, "f")->logs->text, "127.0.0.1:514");
    assert_string_equal(find_proxy(&l, "f")->logs->next->text, "127.0.0.2:514");
    assert_null(find_proxy(&l, "f")->logs->next->next);
    assert_true(find_proxy(&l, "b")->dontlognull);
    assert_false(find_proxy(&l, "b")->mode_tcp);
    assert_int_equal(find_proxy(&l, "b")->retries, 7);
    assert_int_equal(find_proxy(&l, "b")->balance.algo, CFG_BALANCE_LEASTCONN);
    assert_int_equal(find_proxy(&l, "b")->timeout_server_us, 30000000);
    assert_int_equal(find_proxy(&l, "b")->timeout_queue_us, 1000000);
    assert_int_equal(find_proxy(&l, "b")->timeout_tarpit_us, 1000000);
    assert_null(find_proxy(&l, "b")->logs->next);
    assert_int_equal(find_proxy(&l, "b")->errorfiles->status, 503);
    assert_int_equal(find_proxy(&l, "b")->errorfiles->next->status, 502);
    assert_null(find_proxy(&l, "f")->errorfiles->next);
    assert_string_equal(find_proxy(&l, "b")->stats.users->next->user, "c");
    assert_null(find_proxy(&l, "f")->stats.users->next);
    assert_int_equal(find_server(&l, "b", "s")->inter_us, 5000000);
    assert_false(find_server(&l, "b", "s")->check);
    assert_true(find_proxy(&l, "fresh")->mode_tcp);
    assert_false(find_proxy(&l, "fresh")->redispatch);
    assert_int_equal(find_server(&l, "fresh", "s")->inter_us, CFG_UNSET);
    unload(&l);
}

static void named_defaults_are_chosen_and_chained(void **state)
{
    struct loaded l;

    load(&l, "defaults common\n"
             "    mode http\n"
             "    timeout client 1s\n"
             "defaults web from common\n"
             "    maxconn 10\n"
             "defaults from common\n"
             "    maxconn 20\n"
             "frontend a from web\n"
             "    bind :1\n"
             "frontend b\n"
             "    bind :2\n"
             "frontend c from common\n"
             "    bind :3\n");
    assert_string_equal(report(&l), "");
    assert_int_equal(find_proxy(&l, "a")->maxconn, 10);
    assert_int_equal(find_proxy(&l, "b")->maxconn, 20);
    assert_int_equal(find_proxy(&l, "c")->maxconn, CFG_UNSET);
    assert_false(find_proxy(&l, "b")->mode_tcp);
    assert_int_equal(find_proxy(&l, "b")->timeout_client_us, 1000000);
    unload(&l);
}

static void rules_of_named_defaults_come_first(void **state)
{
    const struct cfg_line *line;
    struct loaded l;

    load(&l, "defaults front\n"
             "    mode http\n"
             "    timeout client 1s\n"
             "    acl a path /a\n"
             "    http-request deny if a\n"
             "    tcp-request connection accept\n"
             "frontend f from front\n"
             "    bind :80\n"
             "    http-request allow\n"
             "frontend g from front\n"
             "    bind :81\n");
    assert_string_equal(report(&l), "");
    line = find_proxy(&l, "f")->lines;
    assert_int_equal(line->kind, CFG_LINE_ACL);
    assert_string_equal(line_text(&l, line), "a path /a");
    assert_true(line->from_defaults);
    line = line->next;
    assert_int_equal(line->kind, CFG_LINE_HTTP_REQUEST);
    assert_int_equal(line->loc.line, 5);
    line = line->next;
    assert_int_equal(line->kind, CFG_LINE_TCP_REQUEST_CONNECTION);
    line = line->next;
    assert_string_equal(line_text(&l, line), "allow");
    assert_false(line->from_defaults);
    assert_null(line->next);
    assert_null(find_proxy(&l, "g")->lines->next->next->next);
    unload(&l);
}

static void rules_are_inherited_within_limits(void **state)
{
    assert_report(
        "defaults\n"
        "    http-request allow\n"
        "defaults d\n"
        "    http-request allow\n"
        "defaults e from d\n"
        "listen l from d\n"
        "    bind :1\n"
        "    timeout client 1s\n"
        "defaults t\n"
        "    mode http\n"
        "    tcp-request session accept\n"
        "backend b from t\n"
        "    errorloc 503 /\n"
        "frontend f from t\n"
        "    bind :2\n"
        "    timeout client 1s\n"
        "defaults u\n"
        "    tcp-response content accept\n"
        "frontend g from u\n"
        "    bind :3\n"
        "    timeout client 1s\n",
        "t.cfg:2: error: 'http-request': it is not allowed in a defaults section without a name; "
        "expected 'defaults <name>' above\n"
        "t.cfg:5: error: a defaults section cannot inherit from one that defines rules (the one at "
        "t.cfg:3)\n"
        "t.cfg:6: error: a listen section cannot inherit from a defaults section that defines rules (the "
        "one at t.cfg:3)\n"
        "t.cfg:12: error: a backend cannot inherit 'tcp-request connection' or 'tcp-request session' "
        "rules (from the defaults section at t.cfg:9)\n"
        "t.cfg:14: error: frontends and backends cannot inherit from the same defaults section when it "
        "defines rules (the one at t.cfg:9)\n"
        "t.cfg:19: error: a frontend cannot inherit 'tcp-response content' rules (from the defaults "
        "section at t.cfg:17)\n");
}

static void own_checks_replace_inherited_ones(void **state)
{
    const struct cfg_line *line;
    struct loaded l;

    load(&l, "defaults\n"
             "    mode http\n"
             "    option httpchk\n"
             "    http-check send uri /a\n"
             "    http-check expect status 200\n"
             "    timeout client 1s\n"
             "    timeout connect 1s\n"
             "    timeout server 1s\n"
             "backend inherits\n"
             "    server s 127.0.0.1:80 check\n"
             "backend replaces\n"
             "    http-request allow\n"
             "    http-check send uri /b\n"
             "    http-check send uri /c\n"
             "    server s 127.0.0.1:80 check\n"
             "frontend f\n"
             "    bind :80\n");
    assert_string_equal(report(&l), "");
    line = find_proxy(&l, "inherits")->lines;
    assert_string_equal(line_text(&l, line), "send uri /a");
    assert_string_equal(line_text(&l, line->next), "expect status 200");
    line = find_proxy(&l, "replaces")->lines;
    assert_string_equal(line_text(&l, line), "allow");
    assert_string_equal(line_text(&l, line->next), "send uri /b");
    assert_string_equal(line_text(&l, line->next->next), "send uri /c");
    assert_null(line->next->next->next);
    assert_null(find_proxy(&l, "f")->lines);
    unload(&l);
}

static void negations_and_defaults_of_options(void **state)
{
    struct cfg_proxy *px;
    struct loaded l;

    load(&l, "defaults\n"
             "    mode http\n"
             "    option logasap\n"
             "    option forwardfor except 10.0.0.0/8\n"
             "    option httpclose\n"
             "    option redispatch 2\n"
             "    option httpchk GET /x HTTP/1.1\\r\\nHost:\\ www\n"
             "    timeout client 1s\n"
             "    log 127.0.0.1 local0\n"
             "listen a\n"
             "    bind :80\n"
             "    errorloc 503 /\n"
             "    default option logasap\n"
             "    no option forwardfor\n"
             "    no option http-server-close\n"
             "    no option redispatch\n"
             "    no option httpchk\n"
             "    no log\n"
             "listen b\n"
             "    bind :81\n"
             "    no option httpclose\n"
             "    option tcpka\n"
             "    no compression algo\n"
             "    no maxconn\n"
             "    default timeout client\n"
             "    no\n");
    assert_string_equal(
        report(&l),
        "t.cfg:23: error: 'compression algo': 'no' cannot precede this keyword; expected it before "
        "options, 'log' and other switches\n"
        "t.cfg:24: error: 'maxconn': 'no' cannot precede this keyword; expected it before options, "
        "'log' and other switches\n"
        "t.cfg:25: error: 'timeout client': 'default' cannot precede this keyword; expected it "
        "before options, 'log' and other switches\n"
        "t.cfg:26: error: 'no': missing keyword; expected an option or another switch\n"
        "t.cfg:19: notice: listen 'b' has no server\n");
    px = find_proxy(&l, "a");
    assert_false(px->logasap);
    assert_false(px->forwardfor.enabled);
    assert_string_equal(px->forwardfor.header, "X-Forwarded-For");
    assert_int_equal(px->conn_mode, CFG_CONN_CLOSE);
    assert_false(px->redispatch);
    assert_int_equal(px->check_type, CFG_CHECK_TCP);
    assert_null(px->logs);
    px = find_proxy(&l, "b");
    assert_true(px->logasap && px->forwardfor.enabled && px->forwardfor.has_except &&
                px->redispatch);
    assert_int_equal(px->redispatch_interval, 2);
    assert_int_equal(px->conn_mode, CFG_CONN_KEEP_ALIVE);
    assert_string_equal(px->httpchk_method, "GET");
    assert_string_equal(px->httpchk_uri, "/x");
    assert_string_equal(px->httpchk_version, "HTTP/1.1");
    assert_string_equal(px->httpchk_headers, "Host: www");
    unload(&l);
}

static void the_last_log_format_counts(void **state)
{
    struct loaded l;

    load(&l, "defaults\n"
             "    mode http\n"
             "    log 127.0.0.1 local0\n"
             "    option httplog\n"
             "    timeout client 1s\n"
             "frontend a\n"
             "    bind :1\n"
             "    log-format \"%ci %r\"\n"
             "frontend b\n"
             "    bind :2\n"
             "    log-format x\n"
             "    option httplog clf\n"
             "frontend c\n"
             "    bind :3\n"
             "    option httpslog\n");
    assert_string_equal(report(&l), "");
    assert_string_equal(find_proxy(&l, "a")->log_format, "%ci %r");
    assert_int_equal(find_proxy(&l, "a")->log_format_loc.line, 8);
    assert_null(find_proxy(&l, "b")->log_format);
    assert_true(find_proxy(&l, "b")->log_httplog && find_proxy(&l, "b")->log_clf);
    assert_true(find_proxy(&l, "c")->log_httpslog && !find_proxy(&l, "c")->log_httplog);
    unload(&l);
}

static void global_sections_add_up(void **state)
{
    struct loaded l;

    load(&l, "global\n"
             "    maxconn 100\n"
             "    stats socket /a level admin\n"
             "    ssl-default-bind-options no-sslv3\n"
             "global\n"
             "    stats socket fd@4\n"
             "    nbthread 2\n"
             "    ssl-default-bind-options no-tlsv10\n"
             "    maxconn 200\n");
    assert_string_equal(report(&l), "");
    assert_int_equal(l.model->global.maxconn, 200);
    assert_int_equal(l.model->global.nbthread, 2);
    assert_string_equal(l.model->global.stats_sockets->level, "admin");
    assert_int_equal(l.model->global.stats_sockets->next->address.fd, 4);
    assert_true(l.model->global.ssl_bind_defaults.no_sslv3 &&
                l.model->global.ssl_bind_defaults.no_tlsv10);
    unload(&l);
}

static void names_are_checked(void **state)
{
    assert_report(
        "frontend\n    never read\n"
        "frontend a b\n    bind :1\n    timeout client 1s\n"
        "listen 10.0.0.1:80\n    bind :2\n    timeout client 1s\n    errorloc 503 /\n"
        "listen w 10.0.0.1:80\n    bind :3\n    timeout client 1s\n    errorloc 503 /\n"
        "backend b from nowhere\n    errorloc 503 /\n"
        "backend x/y\n    errorloc 503 /\n"
        "listen a\n    bind :4\n    timeout client 1s\n    errorloc 503 /\n"
        "global x\n"
        "http-errors\n"
        "http-errors e\n"
        "http-errors e\n"
        "no frontend z\n    bind :5\n    timeout client 1s\n",
        "t.cfg:1: error: 'frontend': missing name; expected 'frontend <name> [from <defaults>]'\n"
        "t.cfg:3: error: 'frontend': unexpected argument 'b'; expected 'frontend <name> [from "
        "<defaults>]'\n"
        "t.cfg:10: error: 'listen': unexpected argument '10.0.0.1:80'; listening addresses go to a "
        "'bind' line\n"
        "t.cfg:14: error: 'from': unknown defaults section 'nowhere'; expected the name of one that was "
        "defined above\n"
        "t.cfg:16: error: 'backend': 'x/y' is not a name; expected letters, digits, '-', '_', '.' and "
        "':'\n"
        "t.cfg:18: error: listen 'a' has the same name as frontend 'a' at t.cfg:3; expected another "
        "name\n"
        "t.cfg:22: error: 'global': unexpected argument 'x'; expected 'global' alone\n"
        "t.cfg:23: error: 'http-errors': missing name; expected 'http-errors <name>'\n"
        "t.cfg:25: error: 'http-errors': section 'e' is defined at t.cfg:24 already; expected another "
        "name\n"
        "t.cfg:26: error: 'frontend': 'no' and 'default' cannot precede a section\n");
}

static void defaults_names_are_checked(void **state)
{
    assert_report(
        "defaults webs\n"
        "defaults webs\n"
        "backend a from webz\n    errorloc 503 /\n"
        "backend b from webs\n    errorloc 503 /\n"
        "defaults webs\n"
        "defaults other\n"
        "backend c from other\n    errorloc 503 /\n"
        "backend d\n    errorloc 503 /\n",
        "t.cfg:2: warning: defaults section 'webs' has the same name as the one at t.cfg:1; 'from webs' "
        "means the first one\n"
        "t.cfg:3: error: 'from': unknown defaults section 'webz'; expected the name of one that was "
        "defined above, did you mean 'webs'?\n"
        "t.cfg:7: error: defaults section 'webs' has the same name as the one at t.cfg:1, which is used "
        "by its name; expected another name\n"
        "t.cfg:11: warning: defaults section 'other' (at t.cfg:8) is used by its name elsewhere and, "
        "being the last one, silently here; add 'from other', or another defaults section below it\n");
}

static void references_are_resolved(void **state)
{
    assert_report(
        "defaults\n    mode http\n    timeout client 1s\n    timeout connect 1s\n    timeout server 1s\n"
        "frontend f\n"
        "    bind :80\n"
        "    use_backend web if TRUE\n"
        "    use_backend wbe if TRUE\n"
        "    use_backend %[hdr(host)]\n"
        "    use_backend g\n"
        "    use_backend raw\n"
        "    errorfiles site\n"
        "    errorfiles sight 404\n"
        "    default_backend nothing\n"
        "frontend g\n"
        "    bind :81\n"
        "    default_backend web\n"
        "listen l\n"
        "    bind :82\n"
        "    default_backend l\n"
        "    server s 127.0.0.1:80\n"
        "    use-server s if TRUE\n"
        "    use-server t if TRUE\n"
        "backend web\n    errorloc 503 /\n"
        "backend raw\n    mode tcp\n    server s 127.0.0.1:80\n"
        "http-errors site\n",
        "t.cfg:15: error: 'default_backend': unknown backend 'nothing' in frontend 'f'; expected the name "
        "of a 'backend' or 'listen' section\n"
        "t.cfg:9: error: 'use_backend': unknown backend 'wbe' in frontend 'f'; expected the name of a "
        "'backend' or 'listen' section, did you mean 'web'?\n"
        "t.cfg:11: error: 'use_backend': 'g' is a frontend (at t.cfg:16); expected the name of a 'backend' "
        "or 'listen' section\n"
        "t.cfg:12: error: 'use_backend': frontend 'f' is in mode http and backend 'raw' (at t.cfg:27) in "
        "mode tcp; expected the same mode\n"
        "t.cfg:14: error: 'errorfiles': unknown section 'sight'; expected the name of an 'http-errors' "
        "section\n"
        "t.cfg:21: error: 'default_backend': 'l' refers to itself\n"
        "t.cfg:21: warning: 'default_backend' of 'l' comes before its servers, which will never be used\n"
        "t.cfg:24: error: 'use-server': unknown server 't' in listen 'l'\n");
}

static void tracked_servers_are_resolved(void **state)
{
    assert_report(
        "defaults\n    timeout connect 1s\n    timeout server 1s\n"
        "backend a\n"
        "    server s1 127.0.0.1:1 check\n"
        "    server s2 127.0.0.1:1 track s1\n"
        "    server s3 127.0.0.1:1 track b/s2\n"
        "    server s4 127.0.0.1:1 track s9\n"
        "    server s5 127.0.0.1:1 track s1 check\n"
        "    server s6 127.0.0.1:1 track s7\n"
        "    server s7 127.0.0.1:1 track s6\n"
        "    server s8 127.0.0.1:1 track b/s1\n"
        "    server s1 127.0.0.1:1\n"
        "backend b\n"
        "    server s1 127.0.0.1:1\n"
        "    server s2 127.0.0.1:1 track a/s2\n",
        "t.cfg:13: error: server 'a/s1' has the same name as the one at t.cfg:5; expected another name\n"
        "t.cfg:8: error: server 'a/s4': 'track': unknown server 's9'; expected [<backend>/]<server>\n"
        "t.cfg:9: error: server 'a/s5': 'track' and 'check' exclude each other\n"
        "t.cfg:10: error: server 'a/s6': 'track': it tracks itself in the end\n"
        "t.cfg:11: error: server 'a/s7': 'track': it tracks itself in the end\n"
        "t.cfg:12: error: server 'a/s8': 'track': server 'b/s1' has no 'check' of its own\n");
}

static void what_is_missing_is_said(void **state)
{
    assert_report(
        "frontend f\n"
        "    log-format x\n"
        "backend b\n"
        "    server s 127.0.0.1:80\n"
        "backend c\n"
        "    http-check send uri /\n"
        "    tcp-check connect\n"
        "backend d\n"
        "listen l\n"
        "    bind :1\n"
        "    timeout client 1s\n"
        "    option httplog\n"
        "    stats enable\n"
        "    monitor-uri /\n"
        "    http-request allow\n"
        "    server s 127.0.0.1:80 cookie x redir /y\n"
        "    timeout connect 1s\n"
        "    timeout tunnel 1s\n",
        "t.cfg:1: warning: frontend 'f' has no 'bind' line; make it a backend if that is meant\n"
        "t.cfg:2: warning: 'log-format' is ignored in frontend 'f': it has no 'log' line\n"
        "t.cfg:1: warning: missing timeouts for frontend 'f': connections that are forgotten will stay "
        "forever; set 'timeout client'\n"
        "t.cfg:3: warning: missing timeouts for backend 'b': connections that are forgotten will stay "
        "forever; set 'timeout connect' 'timeout server'\n"
        "t.cfg:5: warning: backend 'c' has 'http-check' lines without 'option httpchk'; they are ignored\n"
        "t.cfg:5: warning: backend 'c' has 'tcp-check' lines without 'option tcp-check'; they are ignored\n"
        "t.cfg:8: notice: backend 'd' has no server\n"
        "t.cfg:9: warning: 'option httplog' of listen 'l' needs mode http; the TCP format is used\n"
        "t.cfg:9: warning: the 'stats' lines are ignored in listen 'l': mode http is needed\n"
        "t.cfg:9: warning: 'monitor-uri' is ignored in listen 'l': mode http is needed\n"
        "t.cfg:9: warning: the 'http-request' rules are ignored in listen 'l': mode http is needed\n"
        "t.cfg:16: error: server 'l/s': 'redir' needs mode http\n"
        "t.cfg:16: warning: server 'l/s': 'cookie' is ignored in mode tcp\n");
}

static void tcp_frontends_may_become_http(void **state)
{
    assert_report(
        "defaults\n    timeout client 1s\n    timeout connect 1s\n    timeout server 1s\n"
        "frontend a\n    bind :1\n    http-request allow\n    tcp-request content switch-mode http if HTTP\n"
        "frontend b\n    bind :2\n    http-request allow\n    default_backend web\n"
        "frontend c\n    bind :3\n    http-request allow\n    use_backend %[str(web)]\n"
        "backend web\n    mode http\n    server s 127.0.0.1:80\n",
        "");
}

static void ids_are_unique(void **state)
{
    assert_report(
        "backend a\n    id 5\n    errorloc 503 /\nbackend b\n    id 6\n    errorloc 503 /\nbackend c\n"
        "    id 5\n    errorloc 503 /\n    timeout server 1s\n    timeout connect 1s\n"
        "    server s 127.0.0.1:80 id 3\n    server t 127.0.0.1:80 id 3\n",
        "t.cfg:7: error: backend 'c' has the same id 5 as backend 'a' at t.cfg:1\n"
        "t.cfg:13: error: server 'c/t' has the same id as the one at t.cfg:12; expected another id\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_from_the_last_defaults),
        cmocka_unit_test(named_defaults_are_chosen_and_chained),
        cmocka_unit_test(rules_of_named_defaults_come_first),
        cmocka_unit_test(rules_are_inherited_within_limits),
        cmocka_unit_test(own_checks_replace_inherited_ones),
        cmocka_unit_test(negations_and_defaults_of_options),
        cmocka_unit_test(the_last_log_format_counts),
        cmocka_unit_test(global_sections_add_up),
        cmocka_unit_test(names_are_checked),
        cmocka_unit_test(defaults_names_are_checked),
        cmocka_unit_test(references_are_resolved),
        cmocka_unit_test(tracked_servers_are_resolved),
        cmocka_unit_test(what_is_missing_is_said),
        cmocka_unit_test(tcp_frontends_may_become_http),
        cmocka_unit_test(ids_are_unique),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
