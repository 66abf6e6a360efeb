#include "admin/stats.h"
#include "admin/stats_page.h"
#include "admin/text.h"
#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* A frontend "web", a backend "app" with three servers, and two workers. */
struct fixture {
    struct arena arena; /* of the request, limited as in the proxy */
    struct cfg_model model;
    struct app app;
    struct worker workers[2];
    struct proxy_counters proxy_counters[2][2];
    struct server_counters server_counters[2][3];
    struct cfg_proxy cfg[2];
    struct proxy proxy[2], *proxies[2];
    struct cfg_server server_cfg[3];
    struct server server[3], *servers[3];
    struct cfg_bind bind_cfg;
    struct bind bind, *binds[1];
    struct http_msg req;
    struct rules_reply reply;
};

static void add_workers(struct fixture *f)
{
    f->app.workers = f->workers;
    f->app.worker_count = 2;
    for (int i = 0; i < 2; i++) {
        f->workers[i].proxies = f->proxy_counters[i];
        f->workers[i].servers = f->server_counters[i];
    }
}

static void add_proxies(struct fixture *f)
{
    f->app.proxies = f->proxies;
    f->app.proxy_count = 2;
    for (int i = 0; i < 2; i++) {
        f->proxies[i] = &f->proxy[i];
        f->proxy[i].cfg = &f->cfg[i];
        f->proxy[i].app = &f->app;
        f->proxy[i].index = i;
        f->proxy[i].id = i + 2;
        f->proxy[i].name = i ? STR("app") : STR("web");
        f->cfg[i].name = f->proxy[i].name.ptr;
        f->cfg[i].is_frontend = !i;
        f->cfg[i].is_backend = i;
        f->cfg[i].kind = i ? "backend" : "frontend";
        f->cfg[i].maxconn = CFG_UNSET;
    }
    f->cfg[0].stats.enabled = true;
    f->cfg[0].stats.uri = "/stats";
    f->binds[0] = &f->bind;
    f->bind = (struct bind){.cfg = &f->bind_cfg, .frontend = &f->proxy[0], .id = 1};
    f->bind.address.u.in.sin_family = AF_INET;
    f->bind.address.u.in.sin_port = htons(8080);
    f->app.binds = f->binds;
    f->app.bind_count = 1;
}

static void add_servers(struct fixture *f)
{
    static const char *const names[] = {"s1", "s2", "s3"};

    f->proxy[1].servers = f->servers;
    f->proxy[1].server_count = 3;
    for (int i = 0; i < 3; i++) {
        struct server *s = &f->server[i];

        f->servers[i] = s;
        s->cfg = &f->server_cfg[i];
        s->backend = &f->proxy[1];
        s->name = str_of(names[i]);
        s->index = s->position = i;
        s->id = i + 1;
        s->address = f->bind.address;
        f->server_cfg[i].pool_max_conn = CFG_UNSET;
        atomic_store(&s->state, SERVER_UP);
        atomic_store(&s->weight, i + 1);
        atomic_store(&s->last_change_us, clock_now_us());
    }
    f->server_cfg[2].backup = true;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    if (!f)
        return -1;
    arena_init(&f->arena, 4096, 1 << 20);
    f->app.model = &f->model;
    f->app.maxconn = 1000;
    f->app.pid = 4711;
    f->app.start_us = clock_now_us();
    f->app.hostname = STR("host");
    add_workers(f);
    add_proxies(f);
    add_servers(f);
    http_msg_init(&f->req, &f->arena);
    f->req.method = HTTP_GET;
    f->req.target = STR("/stats");
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    arena_release(&f->arena);
    free(f);
    return 0;
}

static struct str get(struct fixture *f, const char *target)
{
    memset(&f->reply, 0, sizeof f->reply);
    f->req.target = str_of(target);
    assert_int_equal(admin_stats_reply(&f->app, &f->proxy[0], &f->req, &f->arena, &f->reply), 0);
    return f->reply.body;
}

static bool contains(struct str body, const char *text)
{
    return str_find(body, str_of(text)) < body.len;
}

#define assert_contains(body, text)                                              \
    do {                                                                         \
        if (!contains(body, text))                                               \
            fail_msg("no \"%s\" in:\n%.*s", text, (int)(body).len, (body).ptr);   \
    } while (0)

static struct str field(struct fixture *f, const char *name)
{
    for (unsigned i = 0; i < f->reply.field_count; i++)
        if (str_ieq(f->reply.fields[i].name, str_of(name)))
            return f->reply.fields[i].value;
    return STR_NULL;
}

/* --- HTML --------------------------------------------------------------------------- */

static void test_html(void **state)
{
    struct fixture *f = *state;
    struct str body;

    f->proxy_counters[0][0].sessions = 12000;
    f->proxy_counters[1][0].sessions = 345;
    f->app.connections = 7;
    body = get(f, "/stats");
    assert_int_equal(f->reply.status, 200);
    assert_true(str_eq(f->reply.content_type, STR("text/html; charset=utf-8")));
    assert_true(str_eq(field(f, "cache-control"), STR("no-cache")));
    assert_null(field(f, "refresh").ptr);
    assert_true(str_starts(body, STR("<!DOCTYPE html>")));
    assert_true(str_ends(body, STR("</html>\n")));
    assert_contains(body, "<title>Sallyport statistics</title>");
    assert_contains(body, SP_VERSION);
    assert_contains(body, "4711, up for ");
    assert_contains(body, "<dt>Workers</dt><dd>2</dd>");
    assert_contains(body, "7 of 1000");
    assert_contains(body, "OpenSSL");
    assert_contains(body, "12\u202f345"); /* summed over the workers */
    assert_contains(body, "<h2 id=\"app\">app <small>backend, http</small></h2>");
    assert_contains(body, "s2</th>");
    assert_contains(body, "href=\"/stats;csv\"");
    assert_false(contains(body, "<script"));
    assert_false(contains(body, "sock-1"));
    assert_false(contains(body, "0.0.0.0:8080"));
}

static void test_settings(void **state)
{
    struct fixture *f = *state;
    struct cfg_stats *cfg = &f->cfg[0].stats;
    struct str body;

    cfg->hide_version = cfg->show_legends = cfg->show_node = true;
    cfg->show_desc = "";
    f->model.global.description = "The <global> one";
    f->cfg[0].socket_stats = true;
    f->cfg[1].cookie.name = "SRVID";
    f->server[0].cookie = STR("one");
    f->app.crypto_note = "ssl-engine qat not available";
    body = get(f, "/stats");
    assert_false(contains(body, "<dt>Version</dt>"));
    assert_contains(body, "Sallyport statistics on host");
    assert_contains(body, "<p>The &lt;global&gt; one</p>");
    assert_contains(body, "sock-1 <span class=\"dim\">0.0.0.0:8080</span>");
    assert_contains(body, "cookie SRVID");
    assert_contains(body, "cookie one");
    assert_contains(body, "balance roundrobin");
    assert_contains(body, "ssl-engine qat not available");
    cfg->show_desc = "mine";
    cfg->node = "n1";
    f->bind.name = STR("public");
    f->bind_cfg.name = "public";
    body = get(f, "/stats");
    assert_contains(body, "<p>mine</p>");
    assert_contains(body, " on n1");
    assert_contains(body, "public <span");
}

static void test_escapes(void **state)
{
    struct fixture *f = *state;
    struct str body;

    f->server[0].name = STR("<s&\"'>");
    f->proxy[1].name = STR("a\"b");
    f->cfg[0].stats.uri = "/\"><script>";
    body = get(f, "/\"><script>");
    assert_false(contains(body, "<script"));
    assert_contains(body, "&lt;s&amp;&quot;&#39;&gt;");
    assert_contains(body, "<h2 id=\"a&quot;b\">");
}

static void test_states(void **state)
{
    struct fixture *f = *state;
    struct str body = get(f, "/stats");

    assert_contains(body, "<tr class=\"none\"><th scope=\"row\">s1</th>");
    assert_contains(body, "0s no check");
    atomic_store(&f->server[0].state, SERVER_DOWN);
    atomic_store(&f->server[1].state, SERVER_MAINT);
    atomic_store(&f->server[2].state, SERVER_DRAIN);
    body = get(f, "/stats");
    assert_contains(body, "<tr class=\"down\"><th scope=\"row\">s1</th>");
    assert_contains(body, "<tr class=\"maint\"><th scope=\"row\">s2</th>");
    assert_contains(body, "<tr class=\"drain\"><th scope=\"row\">s3</th>");
    assert_contains(body, "<tr class=\"down\"><th scope=\"row\">Backend</th>");
    body = get(f, "/stats;up");
    assert_false(contains(body, ">s1</th>"));
    assert_false(contains(body, ">s2</th>"));
    assert_contains(body, ">s3</th>");
    assert_contains(body, "Show all servers");
}

static void test_refresh(void **state)
{
    struct fixture *f = *state;

    f->cfg[0].stats.refresh_s = 5;
    assert_contains(get(f, "/stats"), "every 5 s");
    assert_true(str_eq(field(f, "refresh"), STR("5")));
    assert_contains(get(f, "/stats;norefresh"), "Refresh automatically");
    assert_null(field(f, "refresh").ptr);
    assert_contains(get(f, "/stats;up;norefresh"), "href=\"/stats;norefresh\"");
    get(f, "/stats;csv");
    assert_null(field(f, "refresh").ptr);
}

/* --- CSV: HAProxy 2.6's header line -------------------------------------------------------- */

static const char csv_header[] =
    "# pxname,svname,qcur,qmax,scur,smax,slim,stot,bin,bout,dreq,dresp,ereq,econ,eresp,wretr,wredis,status,weight,act,"
    "bck,chkfail,chkdown,lastchg,downtime,qlimit,pid,iid,sid,throttle,lbtot,tracked,type,rate,rate_lim,rate_max,"
    "check_status,check_code,check_duration,hrsp_1xx,hrsp_2xx,hrsp_3xx,hrsp_4xx,hrsp_5xx,hrsp_other,hanafail,req_rate,"
    "req_rate_max,req_tot,cli_abrt,srv_abrt,comp_in,comp_out,comp_byp,comp_rsp,lastsess,last_chk,last_agt,qtime,ctime,"
    "rtime,ttime,agent_status,agent_code,agent_duration,check_desc,agent_desc,check_rise,check_fall,check_health,"
    "agent_rise,agent_fall,agent_health,addr,cookie,mode,algo,conn_rate,conn_rate_max,conn_tot,intercepted,dcon,dses,"
    "wrew,connect,reuse,cache_lookups,cache_hits,srv_icur,src_ilim,qtime_max,ctime_max,rtime_max,ttime_max,eint,"
    "idle_conn_cur,safe_conn_cur,used_conn_cur,need_conn_est,uweight,agg_server_status,agg_server_check_status,"
    "agg_check_status,-,ssl_sess,ssl_reused_sess,ssl_failed_handshake,h2_headers_rcvd,h2_data_rcvd,h2_settings_rcvd,"
    "h2_rst_stream_rcvd,h2_goaway_rcvd,h2_detected_conn_protocol_errors,h2_detected_strm_protocol_errors,"
    "h2_rst_stream_resp,h2_goaway_resp,h2_open_connections,h2_backend_open_streams,h2_total_connections,"
    "h2_backend_total_streams,h1_open_connections,h1_open_streams,h1_total_connections,h1_total_streams,h1_bytes_in,"
    "h1_bytes_out,h1_spliced_bytes_in,h1_spliced_bytes_out,\n";

/* Cell `name` of line `line` (the header is line 0). */
static struct str csv_cell(struct str body, int line, const char *name)
{
    struct str names = str_from(body, 2);
    int column = 0;

    while (!(str_starts(names, str_of(name)) && names.ptr[strlen(name)] == ',')) {
        names = str_from(names, str_chr(names, ',') + 1);
        assert_true(names.len > 1);
        column++;
    }
    while (line--)
        body = str_from(body, str_chr(body, '\n') + 1);
    while (column--)
        body = str_from(body, str_chr(body, ',') + 1);
    return str_make(body.ptr, str_chr(body, ','));
}

#define assert_cell(body, line, name, expected)                                        \
    do {                                                                               \
        struct str cell_ = csv_cell(body, line, name);                                 \
        if (!str_eq(cell_, str_of(expected)))                                          \
            fail_msg("%s in line %d is \"%.*s\"", name, line, STR_FMT(cell_));           \
    } while (0)

static void test_csv(void **state)
{
    struct fixture *f = *state;
    struct str body;
    int columns = 0;

    f->proxy_counters[1][0].requests = 3;
    f->proxy_counters[1][0].responses[2] = 2;
    f->proxy_counters[1][0].responses[0] = 1;
    f->proxy_counters[0][0].tls_handshakes = 9;
    f->proxy_counters[0][1].be_sessions = 5;
    f->server_counters[0][1] = (struct server_counters){.sessions = 2, .connect_time_us = 6000, .idle = 1};
    f->server_counters[1][1] = (struct server_counters){.sessions = 1, .bytes_out = 99, .responses = {[5] = 1}};
    atomic_store(&f->proxy[0].rates_max[PROXY_RATE_REQUESTS], 17);
    f->server_cfg[1].maxqueue = 4;
    f->server[2].track = &f->server[0];
    body = get(f, "/stats;csv");
    assert_true(str_eq(f->reply.content_type, STR("text/plain")));
    assert_true(str_starts(body, STR(csv_header)));
    for (size_t i = 0; csv_header[i]; i++)
        columns += csv_header[i] == ',';
    for (int line = 1; line <= 5; line++) {
        struct str rest = body;
        int cells = 0;

        for (int i = 0; i < line; i++)
            rest = str_from(rest, str_chr(rest, '\n') + 1);
        rest.len = str_chr(rest, '\n');
        for (size_t i = 0; i < rest.len; i++)
            cells += rest.ptr[i] == ',';
        assert_int_equal(cells, columns);
        assert_cell(body, line, "-", "-");
        assert_cell(body, line, "mode", "http");
    }
    assert_cell(body, 1, "svname", "FRONTEND");
    assert_cell(body, 1, "slim", "1000");
    assert_cell(body, 1, "status", "OPEN");
    assert_cell(body, 1, "req_tot", "3");
    assert_cell(body, 1, "hrsp_2xx", "2");
    assert_cell(body, 1, "hrsp_other", "1");
    assert_cell(body, 1, "req_rate_max", "17");
    assert_cell(body, 1, "ssl_sess", "9");
    assert_cell(body, 1, "qcur", "");
    assert_cell(body, 2, "pxname", "app");
    assert_cell(body, 2, "weight", "1");
    assert_cell(body, 3, "svname", "s2");
    assert_cell(body, 3, "stot", "3");
    assert_cell(body, 3, "bout", "99");
    assert_cell(body, 3, "ctime", "2");
    assert_cell(body, 3, "hrsp_5xx", "1");
    assert_cell(body, 3, "qlimit", "4");
    assert_cell(body, 3, "srv_icur", "1");
    assert_cell(body, 3, "type", "2");
    assert_cell(body, 3, "sid", "2");
    assert_cell(body, 4, "tracked", "app/s1");
    assert_cell(body, 4, "act", "0");
    assert_cell(body, 4, "bck", "1");
    assert_cell(body, 5, "svname", "BACKEND");
    assert_cell(body, 5, "status", "UP");
    assert_cell(body, 5, "weight", "3");
    assert_cell(body, 5, "act", "2");
    assert_cell(body, 5, "stot", "5");
    assert_cell(body, 5, "algo", "");
}

static void test_csv_details(void **state)
{
    struct fixture *f = *state;
    struct str body;

    f->cfg[0].stats.show_legends = true;
    f->cfg[0].socket_stats = true;
    f->bind.maxconn = 5;
    f->bind.current = 5;
    f->cfg[1].mode_tcp = true;
    f->cfg[1].balance.algo = CFG_BALANCE_LEASTCONN;
    f->server[0].name = STR("s,\"1");
    atomic_store(&f->app.stopping, true);
    body = get(f, "/stats;csv;up");
    assert_contains(body, "\napp,\"s,\"\"1\",");
    assert_cell(body, 1, "status", "STOP");
    assert_cell(body, 2, "svname", "sock-1");
    assert_cell(body, 2, "slim", "5");
    assert_cell(body, 2, "addr", "0.0.0.0:8080");
    assert_cell(body, 2, "type", "3");
    assert_cell(body, 6, "mode", "tcp");
    assert_cell(body, 6, "algo", "leastconn");
    assert_cell(body, 6, "hrsp_2xx", "");
    atomic_store(&f->app.stopping, false);
    body = get(f, "/stats;csv");
    assert_cell(body, 1, "status", "OPEN");
    assert_cell(body, 2, "status", "FULL");
}

static void test_uri(void **state)
{
    struct fixture *f = *state;

    f->cfg[0].stats.uri = NULL;
    assert_true(str_starts(get(f, "/haproxy?stats;csv"), STR("# pxname")));
    assert_true(str_starts(get(f, "http://example.org/haproxy?stats;csv"), STR("# pxname")));
    assert_contains(get(f, "/haproxy?stats"), "href=\"/haproxy?stats;csv\"");
    assert_contains(get(f, "/haproxy?stats;csvx"), "<html");
}

/* --- authentication --------------------------------------------------------------------------- */

static void authorize(struct fixture *f, const char *value)
{
    assert_int_equal(http_msg_set(&f->req, STR("Authorization"), str_of(value)), 0);
}

static void test_auth(void **state)
{
    struct fixture *f = *state;
    struct cfg_stats_user second = {.user = "bob", .password = "x:y"};
    struct cfg_stats_user first = {.next = &second, .user = "admin", .password = "secret"};

    f->cfg[0].stats.users = &first;
    get(f, "/stats");
    assert_int_equal(f->reply.status, 401);
    assert_true(str_eq(field(f, "www-authenticate"), STR("Basic realm=\"Sallyport Statistics\"")));
    assert_false(contains(f->reply.body, "<table"));
    f->cfg[0].stats.realm = "a\"b";
    get(f, "/stats;csv");
    assert_true(str_eq(field(f, "www-authenticate"), STR("Basic realm=\"a\\\"b\"")));
    authorize(f, "Basic YWRtaW46c2VjcmV0"); /* admin:secret */
    get(f, "/stats");
    assert_int_equal(f->reply.status, 200);
    authorize(f, "basic  Ym9iOng6eQ=="); /* bob:x:y */
    get(f, "/stats");
    assert_int_equal(f->reply.status, 200);
    {
        static const char *const wrong[] = {
            "Basic YWRtaW46c2VjcmV",   "Basic YWRtaW46c2VjcmV0eA==", "Basic YWRtaW46c2VjcmVU", "Basic ", "Basic",
            "Bearer YWRtaW46c2VjcmV0", "Basic YWRtaW46",             "Basic YWRtaW46c2VjcmUA", "Basic !!!!",
        };

        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            authorize(f, wrong[i]);
            get(f, "/stats");
            assert_int_equal(f->reply.status, 401);
        }
    }
}

/* Longer credentials than anything configured, up to what a head can carry. */
static void test_auth_long(void **state)
{
    struct fixture *f = *state;
    struct cfg_stats_user user = {.user = "admin", .password = "secret"};
    char value[8000];

    f->cfg[0].stats.users = &user;
    memset(value, 'A', sizeof value - 1);
    memcpy(value, "Basic ", 6);
    value[sizeof value - 1] = '\0';
    authorize(f, value);
    get(f, "/stats");
    assert_int_equal(f->reply.status, 401);
}

/* --- size ------------------------------------------------------------------------------------------ */

static void test_thousand_frontends(void **state)
{
    enum { COUNT = 1000 };
    struct fixture *f = *state;
    struct proxy **many = calloc(COUNT, sizeof *many);
    size_t tables = 0;
    struct str body;

    assert_non_null(many);
    for (int i = 0; i < COUNT; i++)
        many[i] = &f->proxy[0];
    f->app.proxies = many;
    f->app.proxy_count = COUNT;
    body = get(f, "/stats");
    for (struct str rest = body; str_find(rest, STR("<table>")) < rest.len; tables++)
        rest = str_from(rest, str_find(rest, STR("<table>")) + 1);
    assert_int_equal(tables, COUNT);
    /* The request's own share is left as it was. */
    assert_non_null(arena_alloc(&f->arena, 900000));
    assert_null(arena_alloc(&f->arena, 900000));
    free(many);
}

static void test_text(void **state)
{
    struct fixture *f = *state;
    struct text t = {0};
    struct str out;
    char long_text[20000];

    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    text_printf(&t, "%s|", long_text);
    text_put_html(&t, STR("a\0b"));
    text_put_csv(&t, STR("line\nend"));
    assert_int_equal(text_finish(&t, &f->arena, &out), 0);
    assert_int_equal(out.len, 20000 + 10 + 10);
    assert_true(str_ends(out, STR("|a&#65533;b\"line\nend\"")));
    t.failed = true;
    text_puts(&t, "dropped");
    assert_int_equal(text_finish(&t, &f->arena, &out), SP_ENOMEM);
    text_puts(&t, "x");
    f->arena.limit_bytes = f->arena.used_bytes;
    f->arena.end = f->arena.cursor;
    assert_int_equal(text_finish(&t, &f->arena, &out), SP_ENOMEM);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_html), TEST(test_settings),    TEST(test_escapes), TEST(test_states), TEST(test_refresh),
        TEST(test_csv),  TEST(test_csv_details), TEST(test_uri),     TEST(test_auth),   TEST(test_auth_long),
        TEST(test_text), TEST(test_thousand_frontends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
