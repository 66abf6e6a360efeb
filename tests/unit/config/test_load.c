/*
 * Loading whole configurations: the reference one, large ones, files and
 * folders, broken files, and too little memory.
 */
#include "support.h"

#include "base/clock.h"
#include "config/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The configuration of the published measurements: it must load without a word. */
static const char seed[] = "    global\n"
                           "        tune.ssl.default-dh-param 2048\n"
                           "        maxconn 100000\n"
                           "        ssl-engine qat algo RSA\n"
                           "        ssl-mode-async\n"
                           "    defaults\n"
                           "        mode http\n"
                           "        timeout connect 5s\n"
                           "        timeout client 5s\n"
                           "        timeout server 5s\n"
                           "    frontend myfrontend\n"
                           "        bind *:80\n"
                           "        bind *:443 ssl crt /etc/haproxy/server.pem\n"
                           "        default_backend mybackend\n"
                           "    backend mybackend\n"
                           "        balance roundrobin\n"
                           "        mode http\n"
                           "        server myserver1 127.0.0.1:8080 check\n";

static void the_reference_configuration(void **state)
{
    struct cfg_proxy *f, *b;
    struct loaded l;

    load(&l, seed);
    assert_string_equal(report(&l), "");
    assert_int_equal(l.model->global.maxconn, 100000);
    assert_int_equal(l.model->global.dh_bits, 2048);
    assert_string_equal(l.model->global.ssl_engine, "qat");
    assert_string_equal(l.model->global.ssl_engine_algos, "RSA");
    assert_true(l.model->global.ssl_mode_async);
    assert_int_equal(l.model->proxy_count, 2);
    f = find_proxy(&l, "myfrontend");
    assert_true(f->is_frontend && !f->is_backend && !f->mode_tcp);
    assert_string_equal(f->default_backend, "mybackend");
    assert_int_equal(f->timeout_client_us, 5000000);
    assert_true(f->binds->address.any && !f->binds->ssl.enabled);
    assert_true(f->binds->next->ssl.enabled);
    assert_string_equal(f->binds->next->ssl.crts[0].path, "/etc/haproxy/server.pem");
    assert_null(f->binds->next->next);
    b = find_proxy(&l, "mybackend");
    assert_true(b->is_backend && !b->is_frontend);
    assert_int_equal(b->balance.algo, CFG_BALANCE_ROUNDROBIN);
    assert_true(b->servers->check);
    assert_int_equal(b->server_count, 1);
    unload(&l);
}

/* --- all at once --- */

static void every_error_of_a_file_is_reported(void **state)
{
    assert_report(
        "maxconn 5\n"
        "global\n"
        "    maxconn \"abc\n"
        "    maxcon 10\n"
        "    nbthread x\n"
        "    log 127.0.0.1 foo\n"
        "frontend a\n"
        "    bind :80\n"
        "    balance roundrobin\n"
        "    timeout client 5s extra\n"
        "    mode htp\n"
        "    use_backend\n"
        "    default_backend nosuch\n"
        "    http-request deny \"\"\n"
        "backend b\n"
        "    server s\n"
        "    server t 127.0.0.1:80 inter\n"
        "    stick on src\n"
        "peers p\n"
        "    peer x 127.0.0.1:1\n"
        "fronted x\n"
        "backend b\n"
        "fronted x\n",
        "t.cfg:1: error: keyword 'maxconn' stands outside of any section; expected 'global', 'defaults', "
        "'frontend', 'listen' or 'backend' before it\n"
        "t.cfg:3: error: unmatched quote at position 13: '\"abc'\n"
        "t.cfg:4: error: unknown keyword 'maxcon' in section 'global'; did you mean 'maxconn'?\n"
        "t.cfg:5: error: 'nbthread': 'x' is not a number; expected a whole number from 1 to 256\n"
        "t.cfg:6: error: 'log': unknown value 'foo'; expected 'kern', 'user', 'mail', 'daemon', 'auth', "
        "'syslog', 'lpr', 'news', 'uucp', 'cron', 'auth2', 'ftp', 'ntp', 'audit', 'alert', 'cron2', "
        "'local0', 'local1', 'local2', 'local3', 'local4', 'local5', 'local6' or 'local7'\n"
        "t.cfg:9: error: keyword 'balance' is not allowed in section 'frontend'; allowed in: defaults, "
        "listen, backend\n"
        "t.cfg:10: error: 'timeout client': unexpected argument 'extra'; expected 'timeout client "
        "<time>'\n"
        "t.cfg:11: error: 'mode': unknown value 'htp'; expected 'tcp' or 'http', did you mean 'http'?\n"
        "t.cfg:12: error: 'use_backend': missing argument; expected 'use_backend <backend> [if|unless "
        "<condition>]'\n"
        "t.cfg:14: error: word 3 of the line is empty and would end its arguments; when it comes from a "
        "variable that may be unset, write \"${NAME[*]}\"\n"
        "t.cfg:16: error: 'server': missing argument; expected 'server <name> <address>[:[<port>]] "
        "[options]'\n"
        "t.cfg:17: error: server 'b/t': 'inter': missing argument; expected 'inter <time>'\n"
        "t.cfg:18: error: 'stick on' is a HAProxy keyword that Sallyport does not support; keep clients "
        "at their server with 'cookie' or 'balance source'\n"
        "t.cfg:19: error: 'peers' is a HAProxy section that Sallyport does not support; its lines are "
        "not read\n"
        "t.cfg:22: error: backend 'b' has the same name as backend 'b' at t.cfg:15; expected another "
        "name\n"
        "t.cfg:23: error: unknown keyword 'fronted' in section 'backend'; did you mean 'frontend'?\n"
        "t.cfg:13: error: 'default_backend': unknown backend 'nosuch' in frontend 'a'; expected the name "
        "of a 'backend' or 'listen' section\n"
        "t.cfg:15: warning: missing timeouts for backend 'b': connections that are forgotten will stay "
        "forever; set 'timeout connect' 'timeout server'\n"
        "t.cfg:22: notice: backend 'b' has no server\n");
}

static void messages_show_no_control_characters(void **state)
{
    assert_report(
        "global\n    \\x1b[31mred\n    a\\nb\n",
        "t.cfg:2: error: unknown keyword '?[31mred' in section 'global'; expected a keyword of that "
        "section\n"
        "t.cfg:3: error: unknown keyword 'a?b' in section 'global'; expected a keyword of that section\n");
}

static void too_many_errors_end_the_reading(void **state)
{
    char *text = malloc(20000);
    struct loaded l;
    size_t len = 0;

    assert_non_null(text);
    len += (size_t)snprintf(text, 20000, "global\n");
    for (int i = 0; i < 1000; i++)
        len += (size_t)snprintf(text + len, 20000 - len, "nonsense\n");
    load(&l, text);
    assert_int_equal(l.diag.errors, 501);
    assert_string_equal(l.diag.last->text, "too many errors, the rest is not read");
    unload(&l);
    free(text);
}

static void odd_files(void **state)
{
    struct loaded l;

    assert_report("", "");
    assert_report("\n\n# nothing\n", "");
    assert_report("global\r\n    maxconn 5\r\n\r\n", "");
    assert_report("\xef\xbb\xbfglobal\n", "");
    assert_report(
        "global\n    maxconn 5",
        "t.cfg:2: error: missing line feed at the end of the last line, the file might be truncated at "
        "position 14\n");
    assert_report(
        "global\n    maxconn 5\\\n",
        "t.cfg:2: error: 'maxconn': '5\\' is not a number; expected a whole number from 0 to "
        "2147483647\n"
        "t.cfg:2: warning: the backslash at the end of the line belongs to its last word; it does not "
        "join the next line\n");
    assert_report(
        "global\n    max\rconn 5\n",
        "t.cfg:2: error: stray carriage return in the middle of a line at position 8: '?conn 5'\n");
    load_bytes(&l, "global\n# a\0b\nnonsense\n", 22, &test_environment);
    assert_string_equal(
        report(&l),
        "t.cfg:2: error: stray NUL byte at position 4; the rest of the file is not read\n");
    unload(&l);
}

/* --- size --- */

static char *write_frontends(int count)
{
    size_t room = (size_t)count * 600 + 200, len = 0;
    char *text = malloc(room);

    assert_non_null(text);
    len += (size_t)snprintf(
        text, room,
        "global\n    log 127.0.0.1 local0\ndefaults\n    mode http\n    log global\n"
        "    timeout client 1s\n    timeout server 1s\n    timeout connect 1s\n");
    for (int i = 0; i < count; i++)
        len += (size_t)snprintf(
            text + len, room - len,
            "frontend f%d\n    bind 127.0.0.1:%d ssl crt /c/%d.pem alpn h2,http/1.1\n"
            "    acl a path_beg /x%d\n    http-request set-header X-A b if a\n"
            "    use_backend b%d if a\n    default_backend b%d\n"
            "backend b%d\n    balance leastconn\n    option httpchk GET /\n"
            "    server s1 127.0.0.1:80 check inter 2s\n"
            "    server s2 127.0.0.1:81 track s1\n",
            i, 1024 + i % 60000, i, i, i, i, i);
    assert_true(len < room);
    return text;
}

static void a_thousand_frontends_load_at_once(void **state)
{
    char *text = write_frontends(1000);
    uint64_t start = clock_now_us(), took;
    struct loaded l;

    load(&l, text);
    took = clock_now_us() - start;
    assert_string_equal(report(&l), "");
    assert_int_equal(l.model->proxy_count, 2000);
    assert_string_equal(find_proxy(&l, "f999")->default_backend, "b999");
    /* Milliseconds when optimised; the bound leaves room for sanitizers on a busy machine. */
    assert_in_range(took, 0, 5000000);
    unload(&l);
    free(text);
}

static void many_servers_take_linear_time(void **state)
{
    size_t room = 40000 * 80, len = 0;
    char *text = malloc(room);
    uint64_t start, took;
    struct loaded l;

    assert_non_null(text);
    len += (size_t)snprintf(text, room,
                            "backend b\n    timeout server 1s\n    timeout connect 1s\n"
                            "    server s0 127.0.0.1:80 check\n");
    for (int i = 1; i < 20000; i++)
        len += (size_t)snprintf(
            text + len, room - len,
            "    server s%d 127.0.0.1:80 track s0\n    use-server s%d if TRUE\n", i, i);
    start = clock_now_us();
    load(&l, text);
    took = clock_now_us() - start;
    assert_string_equal(report(&l), "");
    assert_int_equal(find_proxy(&l, "b")->server_count, 20000);
    assert_in_range(took, 0, 10000000);
    unload(&l);
    free(text);
}

/* --- memory --- */

static const char varied[] =
    "global\n    log 127.0.0.1 sample 1,2:3 local0\n    cpu-map 1 0\n    set-var proc.a int(1)\n"
    "    stats socket /x level admin\n    unix-bind prefix /p\n    resetenv A B\n"
    "    ssl-default-bind-options no-sslv3\n"
    "http-errors e\n    errorfile 503 /x\n    errorloc 404 /y\n"
    "defaults d\n    mode http\n    log global\n    timeout client 1s\n    acl a always_true\n"
    "    http-request deny if a\n    errorfiles e 503\n    stats auth a:b\n"
    "frontend f from d\n    bind :80,:81 ssl crt a crt b crt c\n    bind /s mode 600\n    capture cookie x len 3\n"
    "    use_backend b\n    log 127.0.0.1 local0\n    description a b c\n    compression type a b\n"
    "defaults\n    mode http\n    timeout server 1s\n    timeout connect 1s\n"
    "backend b\n    cookie c domain .a domain .b\n    option httpchk GET / HTTP/1.0\\r\\nA:b h\n    balance hdr(x)\n"
    "    server s 127.0.0.1:80 check proxy-v2-options ssl,crc32c source 127.0.0.1\n    server t 127.0.0.1 track s\n"
    "    server-template u 3 127.0.0.1:80\n    http-check send uri /\n    stats show-desc a b\n"
    "    errorfile 500 /z\n    no log\n";

static void too_little_memory_gives_nothing(void **state)
{
    size_t needed = 0;

    for (size_t limit = 16; needed == 0 && limit < 100000; limit += 16) {
        struct cfg_model *model;
        struct arena arena;
        struct diag diag;

        arena_init(&arena, 0, 0);
        diag_init(&diag, &arena);
        model = cfg_load_text_limited("t.cfg", str_make(varied, sizeof(varied) - 1),
                                      &test_environment, &diag, limit);
        if (model) {
            assert_int_equal(diag.errors, 0);
            needed = limit;
        }
        cfg_free(model);
        arena_release(&arena);
    }
    assert_true(needed > 1000);
}

/* --- files --- */

static char folder[] = "/tmp/test_config_XXXXXX";

static const char *write_file(const char *name, const char *text)
{
    static char path[4][128];
    static unsigned turn;
    char *out = path[turn++ % 4];
    FILE *file;

    snprintf(out, 128, "%s/%s", folder, name);
    file = fopen(out, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    return out;
}

static int make_folder(void **state)
{
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    char command[160];

    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command);
}

static void several_files_are_one_configuration(void **state)
{
    const char *paths[3];
    struct loaded l;
    char wanted[400];

    paths[0] = write_file(
        "one.conf", "defaults\n    mode http\n    timeout client 1s\nfrontend f\n    bind :80\n");
    paths[1] = write_file(
        "two.conf", "default_backend b\nbackend b\n    timeout connect 1s\n    timeout server 1s\n"
                    "    server s 127.0.0.1:80\n    nonsense\n");
    paths[2] = "/nonexistent/three.cfg";
    load_files(&l, paths, 3);
    snprintf(
        wanted, sizeof(wanted),
        "%s:1: error: keyword 'default_backend' stands outside of any section; expected 'global', 'defaults', "
        "'frontend', 'listen' or 'backend' before it\n"
        "%s:6: error: unknown keyword 'nonsense' in section 'backend'; expected a keyword of that section\n"
        "/nonexistent/three.cfg:0: error: cannot open the file: No such file or directory\n",
        paths[1], paths[1]);
    assert_string_equal(report(&l), wanted);
    assert_false(find_proxy(&l, "b")->mode_tcp);
    assert_string_equal(getenv("HAPROXY_BRANCH"), "3.2");
    assert_non_null(strstr(getenv("HAPROXY_CFGFILES"), "one.conf;"));
    unload(&l);
}

static void a_folder_is_read_in_name_order(void **state)
{
    const char *paths[1] = {folder};
    struct loaded l;

    write_file("20-second.cfg", "global\n    description \"$CFG_ORDER second\"\n");
    write_file("10-first.cfg", "global\n    setenv CFG_ORDER first\n");
    write_file("30-ignored.txt", "nonsense\n");
    write_file(".hidden.cfg", "nonsense\n");
    load_files(&l, paths, 1);
    assert_string_equal(report(&l), "");
    assert_string_equal(l.model->global.description, "first second");
    unload(&l);
}

static void error_files_are_read_and_checked(void **state)
{
    const char *good =
        write_file("503.http", "HTTP/1.0 503 Service Unavailable\r\nA: b\r\n\r\nsorry\n");
    const char *bad = write_file("bad.http", "<html>\n");
    const char *unfinished = write_file("unfinished.http", "HTTP/1.1 503 x\r\nA: b\r\n");
    struct cfg_environment env = test_environment;
    char text[800], wanted[900];
    struct loaded l;

    env.sealed = false;
    snprintf(text, sizeof(text),
             "http-errors e\n    errorfile 503 %s\n    errorfile 500 %s\n    errorfile 502 %s\n"
             "    errorfile 504 /nonexistent\n    errorfile 408 /dev/null\n    errorfile 400 /tmp\n"
             "    errorfile 403 /dev/zero\n",
             good, bad, unfinished);
    load_bytes(&l, text, strlen(text), &env);
    snprintf(
        wanted, sizeof(wanted),
        "t.cfg:3: error: 'errorfile': '%s' is not an HTTP response: it does not begin with a status line like "
        "'HTTP/1.0 503 Service Unavailable'\n"
        "t.cfg:4: error: 'errorfile': '%s' is not an HTTP response: there is no empty line after its headers\n"
        "t.cfg:5: error: 'errorfile': cannot open '/nonexistent': No such file or directory\n"
        "t.cfg:7: error: 'errorfile': cannot read '/tmp': Is a directory\n"
        "t.cfg:8: error: 'errorfile': '/dev/zero' is larger than 16384 bytes (tune.bufsize)\n",
        bad, unfinished);
    assert_string_equal(report(&l), wanted);
    assert_true(str_ends(l.model->errors->files->content, STR("\r\n\r\nsorry\n")));
    assert_int_equal(l.model->errors->files->next->status, 408);
    assert_int_equal(l.model->errors->files->next->content.len, 0);
    unload(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reference_configuration),
        cmocka_unit_test(every_error_of_a_file_is_reported),
        cmocka_unit_test(messages_show_no_control_characters),
        cmocka_unit_test(too_many_errors_end_the_reading),
        cmocka_unit_test(odd_files),
        cmocka_unit_test(a_thousand_frontends_load_at_once),
        cmocka_unit_test(many_servers_take_linear_time),
        cmocka_unit_test(too_little_memory_gives_nothing),
        cmocka_unit_test(several_files_are_one_configuration),
        cmocka_unit_test(a_folder_is_read_in_name_order),
        cmocka_unit_test(error_files_are_read_and_checked),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
