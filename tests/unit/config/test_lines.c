/*
 * Lines with a grammar of their own: bind, server, log, cookie, balance and
 * others, what they mean and how they fail.
 */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>

/* The report of one line in a section that causes no other messages. */
static void assert_line(const char *section, const char *line, const char *expected)
{
    struct loaded l;
    char text[1024], wanted[1024];
    bool front = strcmp(section, "frontend f") == 0, back = strcmp(section, "backend f") == 0;

    snprintf(text, sizeof(text), "%s\n%s\n%s%s", section, line,
             front ? "mode http\nbind :1\ntimeout client 1s\n" : "",
             back ? "mode http\nerrorloc 503 /\ntimeout server 1s\ntimeout connect 1s\n" : "");
    load(&l, text);
    snprintf(wanted, sizeof(wanted), "%s%s%s", *expected ? "t.cfg:2: error: " : "", expected,
             *expected ? "\n" : "");
    assert_string_equal(report(&l), wanted);
    unload(&l);
}

static void bind_lines(void **state)
{
    const struct cfg_bind *b;
    struct loaded l;

    load(
        &l,
        "global\n"
        "    ssl-default-bind-ciphers DEF\n"
        "    ssl-default-bind-options ssl-min-ver TLSv1.2 no-tls-tickets prefer-client-ciphers\n"
        "    unix-bind mode 770 uid 1 gid 2\n"
        "frontend f\n"
        "    timeout client 1s\n"
        "    bind :80\n"
        "    bind *:443,[::]:8000-8010 ssl crt a.pem crt b.pem crt-list l.txt default-crt d.pem alpn "
        "h2,http/1.1 ciphers C verify optional ca-file ca.pem tls-tickets name tls id 7\n"
        "    bind /run/x.sock mode 600 user root group 0 accept-proxy\n"
        "    bind abns@web maxconn 5 backlog 6 nice -10 thread 1/2-3 no-alpn ssl ssl-min-ver TLSv1.3\n"
        "    bind fd@7 tfo defer-accept v4v6 interface eth0 mss 1400 tcp-ut 5s proto h2\n"
        "    bind ipv6@:81 v6only transparent thread all\n");
    /* "group 0" names a group, and sealed configurations ask no one. */
    assert_string_equal(report(&l), "");
    b = find_proxy(&l, "f")->binds;
    assert_true(b->address.any);
    assert_int_equal(b->address.port_low, 80);
    assert_string_equal(b->text, ":80");
    assert_false(b->ssl.enabled);
    assert_int_equal(b->loc.line, 7);
    assert_int_equal(b->backlog, CFG_UNSET);
    b = b->next;
    assert_string_equal(b->text, "*:443");
    assert_string_equal(b->next->text, "[::]:8000-8010");
    assert_int_equal(b->next->address.port_high, 8010);
    assert_ptr_equal(b->ssl.crts, b->next->ssl.crts);
    assert_int_equal(b->ssl.crt_count, 4);
    assert_string_equal(b->ssl.crts[0].path, "d.pem");
    assert_string_equal(b->ssl.crts[2].path, "b.pem");
    assert_true(b->ssl.crts[3].is_list);
    assert_string_equal(b->ssl.alpn, "h2,http/1.1");
    assert_string_equal(b->ssl.ciphers, "C");
    assert_int_equal(b->ssl.verify, CFG_VERIFY_OPTIONAL);
    assert_int_equal(b->ssl.min_version, 12);
    assert_false(b->ssl.no_tickets);
    assert_true(b->ssl.prefer_client_ciphers);
    assert_string_equal(b->name, "tls");
    assert_int_equal(b->id, 7);
    b = b->next->next;
    assert_int_equal(b->address.addr.u.sa.sa_family, AF_UNIX);
    assert_int_equal(b->unix_mode, 0600);
    assert_int_equal(b->unix_uid, 1);
    assert_int_equal(b->unix_gid, 2);
    assert_true(b->accept_proxy);
    b = b->next;
    assert_int_equal(b->maxconn, 5);
    assert_int_equal(b->backlog, 6);
    assert_int_equal(b->nice, -10);
    assert_int_equal(b->thread_mask, 6);
    assert_int_equal(b->unix_mode, CFG_UNSET);
    assert_true(b->ssl.no_alpn && b->ssl.no_tickets);
    assert_string_equal(b->ssl.ciphers, "DEF");
    assert_int_equal(b->ssl.min_version, 13);
    b = b->next;
    assert_int_equal(b->address.fd, 7);
    assert_string_equal(b->proto, "h2");
    assert_int_equal(b->tcp_user_timeout_us, 5000000);
    assert_true(b->next->v6only);
    assert_int_equal(b->next->thread_mask, 0);
    unload(&l);
}

static void unix_sockets_take_what_unix_bind_says(void **state)
{
    char path[ADDR_TEXT_BYTES];
    struct loaded l;

    load(
        &l,
        "global\n    unix-bind prefix /run mode 700\n    stats socket /s\n    stats socket abns@t mode 600\n"
        "    maxconn 0\n    ssl-default-bind-options strict-sni\n"
        "frontend f\n    timeout client 1s\n    bind /u maxconn 0 no-strict-sni\n    maxconn 0\n");
    assert_string_equal(report(&l), "");
    addr_text(&l.model->global.stats_sockets->address.addr, path);
    assert_string_equal(path, "/run/s");
    assert_int_equal(l.model->global.stats_sockets->unix_mode, 0700);
    addr_text(&l.model->global.stats_sockets->next->address.addr, path);
    assert_string_equal(path, "abns@t");
    addr_text(&find_proxy(&l, "f")->binds->address.addr, path);
    assert_string_equal(path, "/run/u");
    assert_int_equal(find_proxy(&l, "f")->binds->maxconn, CFG_UNSET);
    assert_false(find_proxy(&l, "f")->binds->ssl.strict_sni);
    assert_int_equal(find_proxy(&l, "f")->maxconn, CFG_UNSET);
    assert_int_equal(l.model->global.maxconn, CFG_UNSET);
    unload(&l);
}

static void bind_errors(void **state)
{
    assert_line("frontend f", "bind",
                "'bind': missing argument; expected 'bind [<address>]:<port>[-<port>][,...] "
                "[options] | <path> [options]'");
    assert_line("frontend f", "bind 127.0.0.1",
                "'bind': invalid address '127.0.0.1'; expected a port after the "
                "address");
    assert_line("frontend f", "bind :80 sll",
                "bind ':80': unknown option 'sll'; did you mean 'ssl'?");
    assert_line("frontend f", "bind :80 ssl check",
                "bind ':80': 'check' is not allowed here; allowed as: server "
                "option, default-server option");
    assert_line("frontend f", "bind :80 ssl crt",
                "bind ':80': 'crt': missing argument; expected 'crt "
                "<file>|<folder>'");
    assert_line("frontend f", "bind :80 maxconn many",
                "bind ':80': 'maxconn': 'many' is not a number; expected a "
                "whole number from 0 to 2147483647");
    assert_line(
        "frontend f", "bind :80 ssl ssl-min-ver TLS1.2",
        "bind ':80': 'ssl-min-ver': unknown value 'TLS1.2'; "
        "expected 'SSLv3', 'TLSv1.0', 'TLSv1.1', 'TLSv1.2' or 'TLSv1.3', did you mean 'TLSv1.2'?");
    assert_line("frontend f", "bind /x mode 9",
                "bind '/x': 'mode': '9' is not a file mode; expected an octal number "
                "like 660");
    assert_line("frontend f", "bind :80 thread 0",
                "bind ':80': 'thread': '0' is not a set of threads; expected "
                "'all', 'odd', 'even', or numbers and ranges from 1 to 32");
    assert_line("frontend f", "bind udp@:80",
                "'bind': 'udp@:80' is a datagram address; expected a stream one");
    assert_line("frontend f", "bind :80 tls-ticket-keys x",
                "bind ':80': 'tls-ticket-keys' is a HAProxy keyword that "
                "Sallyport does not support");
    assert_line("backend f", "bind :80",
                "keyword 'bind' is not allowed in section 'backend'; allowed in: frontend, "
                "listen");
}

static void server_lines(void **state)
{
    const struct cfg_server *s;
    struct loaded l;

    load(
        &l,
        "global\n"
        "    ssl-default-server-options no-tls-tickets\n"
        "    ssl-server-verify none\n"
        "backend b\n"
        "    mode http\n"
        "    timeout connect 1s\n"
        "    timeout server 1s\n"
        "    default-server inter 3s rise 5 check backup crt d.pem\n"
        "    server a 127.0.0.1:80\n"
        "    server b 127.0.0.1 no-check no-backup weight 50 maxconn 10 maxqueue 20 minconn 5 cookie cb\n"
        "    server c [::1]:443 ssl verify required ca-file ca.pem crt c.pem sni str(x) alpn h2 check-ssl "
        "check-sni y port 8443 addr 127.0.0.9\n"
        "    server d /run/d.sock send-proxy send-proxy-v2-ssl proxy-v2-options crc32c,authority id 44\n"
        "    server e 127.0.0.1:+1 slowstart 30s fastinter 500ms downinter 2000 fall 9 error-limit 3 observe "
        "layer4 on-error sudden-death on-marked-down shutdown-sessions source 10.0.0.1:1024-2048\n"
        "    server f name.invalid:80 init-addr none disabled pool-max-conn -1 max-reuse 5 ws h1 proto h1\n"
        "    server-template t 2-4 127.0.0.1:90 weight 3\n"
        "    default-server weight 9 no-check\n"
        "    server z 127.0.0.1:99 check weight 8\n");
    assert_string_equal(report(&l), "");
    s = find_server(&l, "b", "a");
    assert_int_equal(s->inter_us, 3000000);
    assert_int_equal(s->rise, 5);
    assert_int_equal(s->fall, 3);
    assert_true(s->check && s->backup);
    assert_string_equal(s->ssl.crts[0].path, "d.pem");
    assert_true(s->ssl.no_tickets);
    assert_int_equal(s->ssl.verify, CFG_VERIFY_NONE);
    s = find_server(&l, "b", "b");
    assert_false(s->check || s->backup || s->address.port_given);
    assert_int_equal(s->weight, 50);
    assert_int_equal(s->maxconn, 10);
    assert_int_equal(s->maxqueue, 20);
    assert_string_equal(s->cookie, "cb");
    s = find_server(&l, "b", "c");
    assert_int_equal(s->ssl.crt_count, 1);
    assert_string_equal(s->ssl.crts[0].path, "c.pem");
    assert_int_equal(s->ssl.verify, CFG_VERIFY_REQUIRED);
    assert_string_equal(s->ssl.sni, "str(x)");
    assert_true(s->check_ssl && s->check_ssl_given);
    assert_int_equal(s->check_port, 8443);
    assert_string_equal(s->check_addr_text, "127.0.0.9");
    assert_string_equal(s->text, "[::1]:443");
    s = find_server(&l, "b", "d");
    assert_true(s->send_proxy && s->send_proxy_v2_ssl && !s->send_proxy_v2);
    assert_string_equal(s->proxy_v2_options, "crc32c,authority");
    assert_int_equal(s->id, 44);
    s = find_server(&l, "b", "e");
    assert_true(s->address.port_is_offset);
    assert_int_equal(s->address.port_offset, 1);
    assert_int_equal(s->downinter_us, 2000000);
    assert_int_equal(s->on_error, 3);
    assert_int_equal(s->on_marked_down, CFG_SHUTDOWN_SESSIONS);
    assert_int_equal(s->source_address.port_high, 2048);
    s = find_server(&l, "b", "f");
    assert_true(s->init_addr_none && s->disabled);
    assert_int_equal(s->address.addr.u.sa.sa_family, AF_UNSPEC);
    assert_string_equal(s->ws, "h1");
    assert_int_equal(find_server(&l, "b", "t2")->weight, 3);
    assert_int_equal(find_server(&l, "b", "t4")->address.port_low, 90);
    s = find_server(&l, "b", "z");
    assert_true(s->check && s->backup);
    assert_int_equal(s->weight, 8);
    assert_int_equal(find_proxy(&l, "b")->server_count, 10);
    unload(&l);
}

static void server_errors(void **state)
{
    assert_line("backend f", "server s",
                "'server': missing argument; expected 'server <name> <address>[:[<port>]] "
                "[options]'");
    assert_line("backend f", "server s 127.0.0.1:80 wieght 3",
                "server 'f/s': unknown option 'wieght'; did you mean "
                "'weight'?");
    assert_line("backend f", "server s 127.0.0.1:80 weight 257",
                "server 'f/s': 'weight': '257' is out of range; "
                "expected a whole number from 0 to 256");
    assert_line("backend f", "server s 127.0.0.1:80 inter 0",
                "server 'f/s': 'inter': '0' is out of range; expected "
                "a time above 0");
    assert_line("backend f", "server s 127.0.0.1:99999",
                "server 'f/s': 'server': invalid address "
                "'127.0.0.1:99999'; expected a port number between 1 and 65535");
    assert_line("backend f", "server s 127.0.0.1:80 agent-check",
                "server 'f/s': 'agent-check' is a HAProxy keyword "
                "that Sallyport does not support");
    assert_line("backend f", "server s 127.0.0.1:80 resolvers dns",
                "server 'f/s': 'resolvers' is a HAProxy keyword "
                "that Sallyport does not support; names are resolved once, at the start");
    assert_line("backend f", "server s/t 127.0.0.1:80",
                "'server': 's/t' is not a name; expected letters, digits, "
                "'-', '_', '.' and ':'");
    assert_line(
        "backend f", "server s 127.0.0.1:80 proxy-v2-options ssl,crc",
        "server 'f/s': 'proxy-v2-options': "
        "unknown value 'crc'; expected 'ssl', 'cert-cn', 'ssl-cipher', 'cert-sig', 'cert-key', 'authority', "
        "'crc32c' or 'unique-id'");
    assert_line("backend f", "server s 127.0.0.1:80 init-addr libc,foo",
                "server 'f/s': 'init-addr': unknown method "
                "'foo'; expected 'last', 'libc' or 'none'");
    assert_line("backend f", "server s 127.0.0.1:80 source 0.0.0.0 usesrc clientip",
                "server 'f/s': 'source': "
                "'usesrc' is a HAProxy keyword that Sallyport does not support");
    assert_line("backend f", "server-template s 0 127.0.0.1:80",
                "'server-template': '0' is not a number of servers; "
                "expected <number> or <low>-<high>, at most 10000 servers");
    assert_line("backend f", "default-server id 3",
                "default-server: 'id' is not allowed here; allowed as: bind "
                "option, server option");
    assert_line(
        "backend f", "server s 127.0.0.1:80 ssl",
        "server 'f/s': 'ssl' verifies the server's certificate, "
        "but no 'ca-file' says whose signatures to accept; expected 'ca-file <file>' or 'verify none'");
}

static void log_lines(void **state)
{
    const struct cfg_log *log;
    struct loaded l;

    load(&l, "global\n"
             "    log stdout format raw local0\n"
             "    log stderr len 8192 local0 debug err\n"
             "    log 127.0.0.1 daemon notice\n"
             "    log [::1]:5140 len 80 format rfc5424 sample 5,1-3:10 local7\n"
             "    log /dev/log user\n"
             "    log fd@2 local1\n"
             "    log-send-hostname\n"
             "    log-tag sp\n"
             "frontend f\n"
             "    bind :1\n"
             "    timeout client 1s\n"
             "    log global\n"
             "    log udp@127.0.0.1:514 local0\n");
    assert_string_equal(report(&l), "");
    log = l.model->global.logs;
    assert_int_equal(log->address.fd, 1);
    assert_int_equal(log->format, LOG_FORMAT_RAW);
    assert_int_equal(log->facility, 16);
    assert_int_equal(log->len, 1024);
    log = log->next;
    assert_int_equal(log->address.fd, 2);
    assert_int_equal(log->len, 8192);
    assert_int_equal(log->max_level, LOG_LEVEL_DEBUG);
    assert_int_equal(log->min_level, LOG_LEVEL_ERR);
    log = log->next;
    assert_int_equal(addr_port(&log->address.addr), 514);
    assert_int_equal(log->facility, 3);
    assert_int_equal(log->max_level, LOG_LEVEL_NOTICE);
    log = log->next;
    assert_int_equal(addr_port(&log->address.addr), 5140);
    assert_int_equal(log->sample_size, 10);
    assert_int_equal(log->sample_range_count, 2);
    assert_int_equal(log->sample_range_low, 1);
    assert_int_equal(log->sample_range_high, 3);
    assert_int_equal(log->sample_ranges[1].low, 5);
    log = log->next;
    assert_int_equal(log->address.addr.u.sa.sa_family, AF_UNIX);
    assert_int_equal(log->next->address.fd, 2);
    assert_true(l.model->global.log_send_hostname_set);
    assert_string_equal(l.model->global.log_send_hostname, "");
    assert_true(find_proxy(&l, "f")->logs->global);
    assert_false(find_proxy(&l, "f")->logs->next->global);
    unload(&l);
}

static void log_errors(void **state)
{
    assert_line("global", "log 127.0.0.1",
                "'log': missing facility; expected 'log <target> [len <length>] [format "
                "<format>] [sample <ranges>:<size>] <facility> [<level> [<minlevel>]]'");
    assert_line("global", "log global",
                "'log': 'global' means this section and cannot stand in it; expected an "
                "address");
    assert_line("global", "log 127.0.0.1 len 10 local0",
                "'log': '10' is out of range; expected a whole number from "
                "80 to 65535");
    assert_line(
        "global", "log 127.0.0.1 format row local0",
        "'log': unknown value 'row'; expected 'default', "
        "'rfc3164', 'rfc5424', 'short', 'raw', 'timed', 'iso', 'priority' or 'local', did you mean 'raw'?");
    assert_line("global", "log 127.0.0.1 local0 infos",
                "'log': unknown value 'infos'; expected 'emerg', 'alert', "
                "'crit', 'err', 'warning', 'notice', 'info' or 'debug', did you mean 'info'?");
    assert_line(
        "global", "log 127.0.0.1 local0 info err x",
        "'log': unexpected argument 'x'; expected 'log <target> "
        "[len <length>] [format <format>] [sample <ranges>:<size>] <facility> [<level> [<minlevel>]]'");
    assert_line("global", "log 127.0.0.1 sample 1-3 local0",
                "'log': '1-3' has no sample size; expected "
                "<ranges>:<size>");
    assert_line("global", "log 127.0.0.1 sample 1-3,2:5 local0",
                "'log': the sampling ranges overlap at 2");
    assert_line("global", "log 127.0.0.1 sample 1-9:5 local0",
                "'log': '5' is not a sample size; expected a number "
                "that the ranges do not exceed");
    assert_line("global", "log 127.0.0.1 sample 0:5 local0",
                "'log': '0' is not a sampling range; expected numbers "
                "from 1 upwards");
    assert_line("global", "log tcp@127.0.0.1:514 local0",
                "'log': 'tcp@127.0.0.1:514': logs are sent as datagrams; "
                "expected an address without 'tcp@' or 'stream+'");
    assert_line(
        "global", "log ring@r local0",
        "'log': 'ring@r': rings and log backends are HAProxy features that "
        "Sallyport does not support; expected an address, a path, 'stdout', 'stderr' or fd@<n>");
}

static void balance_lines(void **state)
{
    const struct cfg_balance *b;
    struct loaded l;

    load(&l,
         "defaults\n    mode http\n"
         "backend a\n    balance url_param id check_post\n    errorloc 503 /\n"
         "backend b\n    balance hdr(Host) use_domain_only\n    errorloc 503 /\n"
         "backend c\n    balance random(4)\n    hash-type consistent\n    errorloc 503 /\n"
         "backend d\n    hash-type map-based djb2 avalanche\n    balance hash req.hdr(x),lower\n"
         "    hash-balance-factor 150\n    errorloc 503 /\n"
         "backend e\n    balance uri depth 2 path-only\n    errorloc 503 /\n"
         "backend f\n    balance rdp-cookie(mstshash)\n    errorloc 503 /\n");
    assert_string_equal(report(&l), "");
    b = &find_proxy(&l, "a")->balance;
    assert_int_equal(b->algo, CFG_BALANCE_URL_PARAM);
    assert_string_equal(b->param, "id");
    assert_true(b->check_post);
    b = &find_proxy(&l, "b")->balance;
    assert_int_equal(b->algo, CFG_BALANCE_HDR);
    assert_string_equal(b->param, "Host");
    assert_true(b->hdr_use_domain_only);
    b = &find_proxy(&l, "c")->balance;
    assert_int_equal(b->algo, CFG_BALANCE_RANDOM);
    assert_int_equal(b->random_draws, 4);
    assert_true(b->consistent && b->avalanche);
    b = &find_proxy(&l, "d")->balance;
    assert_int_equal(b->algo, CFG_BALANCE_HASH);
    assert_int_equal(b->hash_function, 1);
    assert_true(b->avalanche && !b->consistent);
    assert_int_equal(b->hash_balance_factor, 150);
    b = &find_proxy(&l, "e")->balance;
    assert_int_equal(b->uri_depth, 2);
    assert_true(b->uri_path_only);
    assert_string_equal(find_proxy(&l, "f")->balance.param, "mstshash");
    unload(&l);
    assert_line(
        "backend f", "balance roundrobbin",
        "'balance': unknown value 'roundrobbin'; expected 'roundrobin', "
        "'static-rr', 'leastconn', 'first', 'source', 'uri', 'url_param', 'hdr(<name>)', 'random', "
        "'rdp-cookie' or 'hash <expression>', did you mean 'roundrobin'?");
    assert_line("backend f", "balance url_param",
                "'balance': missing parameter name; expected 'balance url_param "
                "<name>'");
    assert_line(
        "backend f", "balance roundrobin x",
        "'balance': unexpected argument 'x'; expected 'balance "
        "roundrobin|static-rr|leastconn|first|source|uri|url_param|hdr(<name>)|random[(<draws>)]|rdp-cookie|"
        "hash <expression> [arguments]'");
    assert_line("backend f", "balance uri len x",
                "'balance': 'x' is not a number; expected a whole number from 1 to "
                "2147483647");
    assert_line("backend f", "hash-balance-factor 50",
                "'hash-balance-factor': '50' is out of range; expected 0 or a "
                "percentage above 100");
}

static void cookie_and_other_proxy_lines(void **state)
{
    const struct cfg_proxy *px;
    struct loaded l;

    load(
        &l,
        "listen l\n"
        "    mode http\n    bind :1\n    timeout client 1s\n    timeout server 1s\n    timeout connect 1s\n"
        "    server s 127.0.0.1:80\n"
        "    cookie SRV prefix domain .a.org domain .b.org maxidle 90 maxlife 1h attr SameSite=Lax\n"
        "    compression algo gzip\n    compression algo deflate\n    compression type text/html\n"
        "    compression type text/css text/plain\n    compression offload\n"
        "    stats uri /s\n    stats refresh 10\n    stats auth u:p:q\n    stats realm R\n    stats show-node n\n"
        "    stats hide-version\n"
        "    timeout tunnel 0\n    timeout http-request 5000\n    timeout http-keep-alive 2m\n"
        "    http-reuse always\n    retry-on conn-failure 503\n    retries 2\n"
        "    option originalto header X-To\n    option http-restrict-req-hdr-names delete\n"
        "    unique-id-format %ci\n    unique-id-header X-Id\n    description a b  c\n    id 9\n"
        "    source 10.0.0.1\n    declare capture request len 5\n    capture request header Host len 6\n"
        "    capture cookie C len 7\n    monitor fail if TRUE\n    tcp-request inspect-delay 3s\n");
    assert_string_equal(report(&l), "");
    px = find_proxy(&l, "l");
    assert_true(px->cookie.prefix && !px->cookie.insert);
    assert_string_equal(px->cookie.domain, ".a.org; domain=.b.org");
    assert_int_equal(px->cookie.maxidle_s, 90);
    assert_int_equal(px->cookie.maxlife_s, 3600);
    assert_true(px->compression.gzip && px->compression.deflate && px->compression.offload);
    assert_int_equal(px->compression.type_count, 3);
    assert_string_equal(px->compression.types[2], "text/plain");
    assert_true(px->stats.enabled && px->stats.hide_version && px->stats.show_node);
    assert_int_equal(px->stats.refresh_s, 10);
    assert_string_equal(px->stats.users->password, "p:q");
    assert_int_equal(px->timeout_tunnel_us, CFG_UNSET);
    assert_int_equal(px->timeout_http_request_us, 5000000);
    assert_int_equal(px->timeout_http_keep_alive_us, 120000000);
    assert_int_equal(px->reuse, CFG_REUSE_ALWAYS);
    assert_int_equal(px->retry_on_count, 2);
    assert_string_equal(px->originalto.header, "X-To");
    assert_string_equal(px->http_restrict_req_hdr_names, "delete");
    assert_string_equal(px->description, "a b c");
    assert_int_equal(px->id, 9);
    assert_string_equal(line_text(&l, px->lines), "request len 5");
    assert_string_equal(line_text(&l, px->lines->next), "request header Host len 6");
    assert_string_equal(line_text(&l, px->lines->next->next), "cookie C len 7");
    assert_int_equal(px->lines->next->next->next->kind, CFG_LINE_MONITOR_FAIL);
    assert_int_equal(px->tcp_request_inspect_delay_us, 3000000);
    unload(&l);
}

static void proxy_errors(void **state)
{
    assert_line("backend f", "cookie C insert prefix",
                "'cookie': 'rewrite', 'insert' and 'prefix' exclude each "
                "other");
    assert_line("backend f", "cookie C insert dynamic",
                "'cookie': 'dynamic' is a HAProxy keyword that Sallyport "
                "does not support; give the servers a 'cookie' each");
    assert_line("backend f", "cookie C maxidle", "'cookie': missing value after 'maxidle'");
    assert_line("backend f", "mode htpt",
                "'mode': unknown value 'htpt'; expected 'tcp' or 'http', did you mean "
                "'http'?");
    assert_line("backend f", "mode log",
                "'mode': 'log' is a HAProxy mode that Sallyport does not support; expected "
                "'tcp' or 'http'");
    assert_line("backend f", "timeout server 5x",
                "'timeout server': '5x' is not a time; expected a whole number, "
                "followed by us, ms, s, m, h or d when it does not count milliseconds");
    assert_line("backend f", "timeout server 99999999d",
                "'timeout server': '99999999d' is too long a time; expected "
                "at most 100000d");
    assert_line(
        "backend f", "timeout sever 5s",
        "unknown keyword 'timeout sever' in section 'backend'; expected "
        "'check', 'connect', 'http-keep-alive', 'http-request', 'queue', 'server', 'server-fin', 'tarpit' or "
        "'tunnel'; did you mean 'timeout server'?");
    assert_line(
        "backend f", "timeout",
        "'timeout': missing argument; expected 'check', 'connect', "
        "'http-keep-alive', 'http-request', 'queue', 'server', 'server-fin', 'tarpit' or 'tunnel'");
    assert_line("backend f", "timeout client 5s",
                "keyword 'timeout client' is not allowed in section 'backend'; "
                "allowed in: defaults, frontend, listen");
    assert_line("backend f", "option htpchk",
                "unknown keyword 'option htpchk' in section 'backend'; did you mean "
                "'option httpchk'?");
    assert_line("backend f", "httpreuse safe",
                "unknown keyword 'httpreuse' in section 'backend'; did you mean "
                "'http-reuse'?");
    assert_line("backend f", "nbthreads 4",
                "unknown keyword 'nbthreads' in section 'backend'; did you mean "
                "'nbthread' (allowed in: global)?");
    assert_line("backend f", "xyzzy 4",
                "unknown keyword 'xyzzy' in section 'backend'; expected a keyword of that "
                "section");
    assert_line("backend f", "option httpchk GET / 1.1",
                "'option httpchk': '1.1' is not an HTTP version; expected "
                "HTTP/1.0 or HTTP/1.1");
    assert_line(
        "backend f", "errorfile 999 /x",
        "'errorfile': '999' is not a status code that can be replaced; "
        "expected 200, 400, 401, 403, 404, 405, 407, 408, 410, 413, 414, 421, 422, 425, 429, 431, 500, 501, "
        "502, 503 or 504");
    assert_line("backend f", "stick-table type ip size 1m",
                "'stick-table' is a HAProxy keyword that Sallyport does "
                "not support");
    assert_line("backend f", "reqrep a b",
                "'reqrep' is a HAProxy keyword that Sallyport does not support; HAProxy "
                "removed it in version 2.1; use 'http-request' rules");
    assert_line("backend f", "option forwardfor except x",
                "'option forwardfor': 'x' is not a network; expected an "
                "address and perhaps a prefix, like 10.0.0.0/8");
    assert_line("backend f", "option forwardfor header",
                "'option forwardfor': unexpected argument 'header'; "
                "expected 'option forwardfor [except <network>] [header <name>] [if-none]'");
    assert_line("backend f", "filter spoe engine x",
                "'filter': 'spoe' is a HAProxy filter that Sallyport does not "
                "support; expected 'compression'");
    assert_line("frontend f", "use_backend",
                "'use_backend': missing argument; expected 'use_backend <backend> "
                "[if|unless <condition>]'");
    assert_line("frontend f", "capture request header Host",
                "'capture request header': missing argument; expected "
                "'capture request header <name> len <length>'");
    assert_line("frontend f", "maxconn 10 20",
                "'maxconn': unexpected argument '20'; expected 'maxconn <conns>'");
}

static void global_lines(void **state)
{
    const struct cfg_global *g;
    const struct cfg_cpu_map *map;
    struct loaded l;

    load(
        &l,
        "global\n"
        "    tune.ssl.default-dh-param 2048\n    maxconn 100000\n    ssl-engine qat algo RSA\n"
        "    ssl-mode-async\n    cpu-map auto:1/1-4 0-3\n    cpu-map 1 5,7\n    cpu-map 1/2 6\n"
        "    cpu-map 1/odd 1\n"
        "    hard-stop-after 30s\n    stats timeout 2m\n    tune.ssl.lifetime 600\n    tune.bufsize 32k\n"
        "    close-spread-time 5s\n    no strict-limits\n    set-dumpable\n    spread-checks 5\n"
        "    set-var proc.a str(x)\n    set-var-fmt proc.b %[str(y)]\n    description the box\n"
        "    nbproc 1\n    tune.idle-pool.shared off\n    stats socket ipv4@127.0.0.1:9999 level operator\n");
    assert_string_equal(report(&l), "");
    g = &l.model->global;
    assert_int_equal(g->dh_bits, 2048);
    assert_int_equal(g->maxconn, 100000);
    assert_string_equal(g->ssl_engine, "qat");
    assert_string_equal(g->ssl_engine_algos, "RSA");
    assert_int_equal(g->ssl_engine_loc.line, 4);
    assert_true(g->ssl_mode_async);
    map = g->cpu_maps;
    assert_true(map->automatic);
    assert_int_equal(map->thread_high, 4);
    assert_int_equal(map->cpus[0], 0xf);
    map = map->next;
    assert_int_equal(map->thread_low, 1);
    assert_int_equal(map->thread_high, 1024);
    assert_int_equal(map->cpus[0], 0xa0);
    map = map->next;
    assert_int_equal(map->thread_low, 2);
    assert_int_equal(map->thread_high, 2);
    assert_int_equal(map->next->next->thread_low, 3);
    assert_int_equal(g->hard_stop_after_us, 30000000);
    assert_int_equal(g->stats_timeout_us, 120000000);
    assert_int_equal(g->ssl_lifetime_s, 600);
    assert_int_equal(g->bufsize, 32768);
    assert_false(g->strict_limits);
    assert_true(g->set_dumpable);
    assert_string_equal(g->vars->argv[0], "str(x)");
    assert_true(g->vars->next->is_format);
    assert_string_equal(g->description, "the box");
    assert_int_equal(g->idle_pool_shared, 0);
    assert_int_equal(addr_port(&g->stats_sockets->address.addr), 9999);
    unload(&l);
}

static void global_errors(void **state)
{
    assert_line("global", "maxcon 5",
                "unknown keyword 'maxcon' in section 'global'; did you mean 'maxconn'?");
    assert_line("global", "nbthread 0",
                "'nbthread': '0' is out of range; expected a whole number from 1 to 256");
    assert_line("global", "nbproc 4",
                "'nbproc': '4': several processes are not supported; expected 1, and "
                "'nbthread' for more CPUs");
    assert_line(
        "global", "cpu-map 1/0 1",
        "'cpu-map': '1/0' is not a set of threads; expected "
        "[auto:]1/<thread-set> with 'all', 'odd', 'even', a number or a range from 1 to 1024");
    assert_line("global", "cpu-map 1 4-2",
                "'cpu-map': '4-2' is not a set of CPUs; expected ranges that go upwards, "
                "to at most 1023");
    assert_line("global", "set-var txn.x int(1)",
                "'set-var': 'txn.x' is not a variable of the process; expected a "
                "name that begins with 'proc.'");
    assert_line("global", "setenv A=B c",
                "'setenv': 'A=B' is not the name of a variable; expected 'setenv <name> "
                "<value>'");
    assert_line("global", "tune.bufsize 10",
                "'tune.bufsize': '10' is out of range; expected a size of at least 1024 "
                "bytes");
    assert_line("global", "stats socket /x level root",
                "stats socket '/x': 'level': unknown value 'root'; expected "
                "'user', 'operator' or 'admin'");
    assert_line("global", "ssl-default-bind-options no-tls",
                "ssl-default-bind-options: unknown option 'no-tls'; "
                "expected an option of that line");
    assert_line("global", "set-dumpable maybe",
                "'set-dumpable': unknown value 'maybe'; expected 'off' or 'on'");
    assert_line("global", "lua-load x.lua",
                "'lua-load' is a HAProxy keyword that Sallyport does not support");
    assert_line("global", "bind :80",
                "keyword 'bind' is not allowed in section 'global'; allowed in: frontend, "
                "listen");
    assert_line("http-errors e", "maxconn 5",
                "keyword 'maxconn' is not allowed in section 'http-errors'; allowed "
                "in: global, defaults, frontend, listen");
}

static void users_are_looked_up_unless_sealed(void **state)
{
    struct cfg_environment env = test_environment;
    const char *text = "global\n    user nosuchuser\n    group nosuchgroup\n    user root\n";
    struct loaded l;

    env.sealed = false;
    load_bytes(&l, text, strlen(text), &env);
    assert_string_equal(
        report(&l),
        "t.cfg:2: error: 'user': unknown user 'nosuchuser'; expected the name of a user of this "
        "system\n"
        "t.cfg:3: error: 'group': unknown group 'nosuchgroup'; expected the name of a group of this "
        "system\n");
    assert_int_equal(l.model->global.uid, 0);
    unload(&l);
}

static void environment_is_changed_unless_sealed(void **state)
{
    const char *text =
        "global\n    setenv CFG_A one\n    presetenv CFG_A two\n    presetenv CFG_B three\n"
        "    unsetenv CFG_C\n    description \"$CFG_A $CFG_B ${CFG_C-none}\"\n";
    const char *reset = "global\n    resetenv CFG_A CFG_X\n";
    struct cfg_environment env = test_environment;
    struct loaded l;

    unsetenv("CFG_A");
    unsetenv("CFG_B");
    setenv("CFG_C", "c", 1);
    load(&l, text);
    assert_string_equal(l.model->global.description, "  c");
    unload(&l);
    env.sealed = false;
    load_bytes(&l, text, strlen(text), &env);
    assert_string_equal(l.model->global.description, "one three none");
    unload(&l);
    load_bytes(&l, reset, strlen(reset), &env);
    assert_string_equal(getenv("CFG_A"), "one");
    assert_null(getenv("CFG_B"));
    unload(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bind_lines),
        cmocka_unit_test(unix_sockets_take_what_unix_bind_says),
        cmocka_unit_test(bind_errors),
        cmocka_unit_test(server_lines),
        cmocka_unit_test(server_errors),
        cmocka_unit_test(log_lines),
        cmocka_unit_test(log_errors),
        cmocka_unit_test(balance_lines),
        cmocka_unit_test(cookie_and_other_proxy_lines),
        cmocka_unit_test(proxy_errors),
        cmocka_unit_test(global_lines),
        cmocka_unit_test(global_errors),
        cmocka_unit_test(users_are_looked_up_unless_sealed),
        cmocka_unit_test(environment_is_changed_unless_sealed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
