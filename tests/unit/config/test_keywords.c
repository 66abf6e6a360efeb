/*
 * Every row of every keyword table, used rightly and wrongly. What is needed
 * beside a row's kind stands in the table of samples; a row that needs one and
 * has none fails.
 */
#include "support.h"

#include "config/parser.h"

#include <stdio.h>

struct sample {
    const char *name;
    unsigned sections; /* 0: wherever the keyword may stand */
    const char *args;
};

static const struct sample samples[] = {
    {"acl", 0, "a path_beg /x"},
    {"addr", 0, "127.0.0.2"},
    {"alpn", 0, "h2,http/1.1"},
    {"balance", 0, "uri whole len 10 depth 3"},
    {"bind", 0, "127.0.0.1:80,:8080-8090 name x"},
    {"capture cookie", 0, "SESS len 32"},
    {"capture request header", 0, "Host len 64"},
    {"capture response header", 0, "Server len 64"},
    {"check-proto", 0, "h1"},
    {"close-spread-time", 0, "10s"},
    {"compression algo", 0, "gzip deflate"},
    {"compression algo-res", 0, "gzip"},
    {"compression direction", 0, "response"},
    {"compression type", 0, "text/html text/plain"},
    {"compression type-res", 0, "text/css"},
    {"cookie", CFG_DBACK,
     "SRV insert indirect nocache httponly secure maxidle 30m maxlife 8h domain .a.org attr x"},
    {"cpu-map", 0, "auto:1/1-4 0-1 2,3"},
    {"crt", 0, "site.pem"},
    {"crt-list", 0, "list.txt"},
    {"declare capture", 0, "request len 32"},
    {"default-crt", 0, "first.pem"},
    {"default-path", 0, "current"},
    {"default-server", 0, "inter 3s fall 2 check"},
    {"default_backend", 0, "b"},
    {"description", 0, "several words of text"},
    {"dispatch", 0, "127.0.0.1:8000"},
    {"errorfile", 0, "503 /etc/errors/503.http"},
    {"errorfiles", 0, "site 404 503"},
    {"errorloc", 0, "503 http://sorry.example.org/"},
    {"errorloc302", 0, "503 http://sorry.example.org/"},
    {"errorloc303", 0, "503 http://sorry.example.org/"},
    {"expose-fd", 0, "listeners"},
    {"filter", 0, "compression"},
    {"group", 0, "root"},
    {"hash-balance-factor", 0, "125"},
    {"hash-type", 0, "consistent crc32 avalanche"},
    {"http-after-response", 0, "set-header X y if TRUE"},
    {"http-check", 0, "send meth GET uri /"},
    {"http-request", 0, "deny if a"},
    {"http-response", 0, "del-header Server"},
    {"http-reuse", 0, "aggressive"},
    {"init-addr", 0, "last,libc,none"},
    {"level", 0, "admin"},
    {"load-server-state-from-file", 0, "none"},
    {"log", CFG_SEC_GLOBAL,
     "127.0.0.1:514 len 8192 format rfc5424 sample 1,3-5:10 local0 info err"},
    {"log", 0, "global"},
    {"log-format", 0, "%ci\\ %ST"},
    {"mode", CFG_DPROXY, "http"},
    {"mode", 0, "660"},
    {"monitor fail", 0, "if TRUE"},
    {"nbproc", 0, "1"},
    {"observe", 0, "layer7"},
    {"on-error", 0, "mark-down"},
    {"on-marked-down", 0, "shutdown-sessions"},
    {"on-marked-up", 0, "shutdown-backup-sessions"},
    {"option forwardfor", 0, "except 127.0.0.0/8 header X-Client if-none"},
    {"option http-restrict-req-hdr-names", 0, "reject"},
    {"option httpchk", 0, "GET /health HTTP/1.1\\r\\nHost:\\ www"},
    {"option httplog", 0, ""},
    {"option originalto", 0, "except 10.0.0.1 header X-To"},
    {"option redispatch", 0, "1"},
    {"presetenv", 0, "NAME value"},
    {"proto", 0, "h2"},
    {"proxy-v2-options", 0, "ssl,cert-cn,unique-id"},
    {"redirect", 0, "location / code 301 if TRUE"},
    {"retry-on", 0, "conn-failure empty-response 503"},
    {"server", 0, "s9 127.0.0.1:8080 weight 10"},
    {"server-template", 0, "t 1-3 127.0.0.1:80"},
    {"set-var", 0, "proc.x int(1)"},
    {"set-var-fmt", 0, "proc.x %[int(1)]"},
    {"setenv", 0, "NAME value"},
    {"source", 0, "127.0.0.3:1000-2000"},
    {"ssl", CFG_SERVERS, "verify none"},
    {"ssl-default-bind-options", 0, "ssl-min-ver TLSv1.2 no-tls-tickets"},
    {"ssl-default-server-options", 0, "no-sslv3 force-tlsv12"},
    {"ssl-engine", 0, "qat algo RSA,EC"},
    {"io-engine", 0, "epoll"},
    {"crypto-backend", 0, "multibuffer require"},
    {"ssl-max-ver", 0, "TLSv1.3"},
    {"ssl-min-ver", 0, "TLSv1.2"},
    {"ssl-server-verify", 0, "none"},
    {"stats auth", 0, "admin:secret:with:colons"},
    {"stats realm", 0, "My\\ page"},
    {"stats refresh", 0, "30"},
    {"stats show-desc", 0, "a description"},
    {"stats show-node", 0, "node1"},
    {"stats socket", 0, "/run/s.sock level admin mode 600 expose-fd listeners"},
    {"stats uri", 0, "/stats"},
    {"tcp-check", 0, "send PING\\r\\n"},
    {"tcp-request connection", 0, "accept"},
    {"tcp-request content", 0, "accept if HTTP"},
    {"tcp-request session", 0, "accept"},
    {"tcp-response content", 0, "accept"},
    {"thread", 0, "1/1-4,8"},
    {"thread-groups", 0, "1"},
    {"track", 0, "b/s1"},
    {"tune.idle-pool.shared", 0, "off"},
    {"unique-id-format", 0, "%{+X}o\\ %ci:%cp"},
    {"unix-bind", 0, "prefix /run mode 770 user root group root uid 0 gid 0"},
    {"unsetenv", 0, "A B"},
    {"use-server", 0, "s1 if TRUE"},
    {"use_backend", 0, "b if TRUE"},
    {"user", 0, "root"},
    {"verify", 0, "none"},
    {"ws", 0, "h1"},
};

static const char *sample_args(const struct cfg_kw *kw, unsigned place)
{
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        if (strcmp(samples[i].name, kw->name) == 0 &&
            (samples[i].sections == 0 || samples[i].sections & place))
            return samples[i].args;
    }
    return NULL;
}

/* What a kind's own sample is. False when the row needs one of the table. */
static bool kind_args(const struct cfg_kw *kw, char *out, size_t out_bytes)
{
    switch (kw->kind) {
    case CFG_KW_FLAG:
    case CFG_KW_UNFLAG:
    case CFG_KW_SET:
        out[0] = '\0';
        return true;
    case CFG_KW_INT:
        snprintf(out, out_bytes, "%d", (int)(kw->max > 4096 ? 4096 : kw->max));
        return true;
    case CFG_KW_SIZE:
        snprintf(out, out_bytes, "32k");
        return true;
    case CFG_KW_TIME:
    case CFG_KW_TIME_S:
        snprintf(out, out_bytes, "90s");
        return true;
    case CFG_KW_STRING:
        snprintf(out, out_bytes, strcmp(kw->name, "ca-file") == 0 ? "ca.pem" : "word");
        return true;
    case CFG_KW_ON_OFF:
        snprintf(out, out_bytes, "on");
        return true;
    case CFG_KW_ANY:
        snprintf(out, out_bytes, kw->min_args ? "1" : "");
        return true;
    case CFG_KW_PARSE:
        snprintf(out, out_bytes, kw->min_args ? "90s" : "");
        return kw->min_args == 0 || (kw->args && strcmp(kw->args, "<time>") == 0);
    default:
        return false;
    }
}

/* The text of a configuration with one line or option at its place. */
static void write_config(char *out, size_t out_bytes, unsigned place, const char *name,
                         const char *args)
{
    static const struct {
        unsigned place;
        const char *before;
    } frames[] = {
        {CFG_SEC_GLOBAL, "global\n    "},
        {CFG_SEC_DEFAULTS, "defaults d\n    mode http\n    "},
        {CFG_SEC_FRONTEND, "frontend f\n    mode http\n    bind :1\n    "},
        {CFG_SEC_LISTEN, "listen f\n    mode http\n    bind :1\n    server s1 127.0.0.1:80\n    "},
        {CFG_SEC_BACKEND, "backend f\n    mode http\n    server s1 127.0.0.1:80\n    "},
        {CFG_SEC_HTTP_ERRORS, "http-errors e\n    "},
        {CFG_OPT_BIND, "frontend f\n    mode http\n    bind :1 "},
        {CFG_OPT_SERVER, "backend f\n    mode http\n    server s9 127.0.0.1:80 "},
        {CFG_OPT_DEFAULT_SERVER, "backend f\n    mode http\n    default-server "},
        {CFG_OPT_SSL_BIND, "global\n    ssl-default-bind-options "},
        {CFG_OPT_SSL_SERVER, "global\n    ssl-default-server-options "},
        {CFG_OPT_STATS_SOCKET, "global\n    stats socket /run/x "},
    };
    const char *before = "";

    for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
        if (frames[i].place == place)
            before = frames[i].before;
    }
    snprintf(
        out, out_bytes,
        "%s%s %s\nhttp-errors site\ndefaults\n    mode http\n    timeout client 1s\n    timeout connect 1s\n"
        "    timeout server 1s\nbackend b\n    server s1 127.0.0.1:80 check\n",
        before, name, args);
}

/* Reports without what the frames cause by themselves. */
static const char *relevant_report(struct loaded *l)
{
    char *text = arena_cstr(&l->arena, "");

    for (const struct diag_item *item = l->diag.first; item; item = item->next) {
        if (item->level != DIAG_NOTICE && !strstr(item->text, "missing timeouts") &&
            !strstr(item->text, "without 'option") &&
            !strstr(item->text, "comes before its servers") &&
            !strstr(item->text, "it has no 'log' line") &&
            !strstr(item->text, "tune.maxrewrite' ("))
            text = arena_printf(&l->arena, "%s%s\n", text, item->text);
    }
    return text;
}

static const void *object_of(const struct loaded *l, unsigned place, const struct cfg_kw *kw)
{
    switch (place) {
    case CFG_SEC_GLOBAL:
        return &l->model->global;
    case CFG_SEC_FRONTEND:
    case CFG_SEC_LISTEN:
    case CFG_SEC_BACKEND:
        return find_proxy(l, "f");
    case CFG_OPT_BIND:
        return kw->flags & CFG_KW_IN_SSL ? (void *)&find_proxy(l, "f")->binds->ssl
                                         : find_proxy(l, "f")->binds;
    case CFG_OPT_SERVER:
        return kw->flags & CFG_KW_IN_SSL ? (void *)&find_server(l, "f", "s9")->ssl
                                         : find_server(l, "f", "s9");
    case CFG_OPT_SSL_BIND:
        return &l->model->global.ssl_bind_defaults;
    case CFG_OPT_SSL_SERVER:
        return &l->model->global.ssl_server_defaults;
    case CFG_OPT_STATS_SOCKET:
        return l->model->global.stats_sockets;
    default:
        return NULL;
    }
}

static void check_field(const struct loaded *l, unsigned place, const struct cfg_kw *kw,
                        const char *args)
{
    const char *object = object_of(l, place, kw);
    const void *field = object && kw->at != CFG_NOWHERE ? object + kw->at : NULL;
    bool right = true;

    if (!field)
        return;
    switch (kw->kind) {
    case CFG_KW_FLAG:
        right = *(const bool *)field;
        break;
    case CFG_KW_UNFLAG:
        right = !*(const bool *)field;
        break;
    case CFG_KW_ON_OFF:
        right = *(const bool *)field;
        break;
    case CFG_KW_INT:
        right = *(const int *)field == (kw->max > 4096 ? 4096 : kw->max);
        break;
    case CFG_KW_SIZE:
        right = *(const int *)field == 32768;
        break;
    case CFG_KW_TIME:
        right = *(const int64_t *)field == 90000000;
        break;
    case CFG_KW_TIME_S:
        right = *(const int64_t *)field == 90;
        break;
    case CFG_KW_STRING:
        right = strcmp(*(const char *const *)field, args) == 0;
        break;
    default:
        if (strncmp(kw->name, "timeout ", 8) == 0)
            right = *(const int64_t *)field == 90000000;
        break;
    }
    if (!right)
        fail_msg("'%s %s' did not set its field", kw->name, args);
}

static void check_right_use(const struct cfg_kw *kw, unsigned place)
{
    char generated[64], text[1024], expected[400];
    const char *args = sample_args(kw, place);
    bool warned = kw->at == CFG_NOWHERE && !(kw->flags & CFG_KW_QUIET) && kw->kind != CFG_KW_LINE &&
                  kw->kind != CFG_KW_PARSE;
    struct loaded l;
    bool fits;

    if (!args && !kind_args(kw, generated, sizeof(generated)))
        fail_msg("'%s' has no sample", kw->name);
    args = args ? args : generated;
    write_config(text, sizeof(text), place, kw->name, args);
    load(&l, text);
    if (warned) {
        snprintf(expected, sizeof(expected), "'%s': accepted, has no effect here: %s\n", kw->name,
                 kw->note);
        fits = strstr(relevant_report(&l), expected) != NULL && l.diag.errors == 0;
    } else {
        fits = *relevant_report(&l) == '\0' ||
               (place == CFG_SEC_BACKEND && strstr(report(&l), "has no effect in a backend"));
    }
    if (!fits)
        fail_msg("%s", report(&l));
    check_field(&l, place, kw, args);
    unload(&l);
}

/* A configuration that must be refused with exactly one error that says `expected`. */
static void check_refused(unsigned place, const char *name, const char *args, const char *expected)
{
    char text[1024];
    struct loaded l;

    write_config(text, sizeof(text), place, name, args);
    load(&l, text);
    if (l.diag.errors == 0 || !strstr(report(&l), expected))
        fail_msg("'%s %s' was not refused with '%s': %s", name, args, expected, report(&l));
    unload(&l);
}

static bool has_one_argument(const struct cfg_kw *kw)
{
    return kw->kind >= CFG_KW_INT && kw->kind <= CFG_KW_STRING;
}

static void check_wrong_use(const struct cfg_kw *kw, unsigned place)
{
    bool line = place <= CFG_SEC_HTTP_ERRORS;

    if (has_one_argument(kw) || kw->min_args > 0)
        check_refused(place, kw->name, "", "missing argument; expected");
    if (kw->kind == CFG_KW_INT)
        check_refused(place, kw->name, "zz", "'zz' is not a number");
    if (kw->kind == CFG_KW_INT && kw->max < 1000000)
        check_refused(place, kw->name, "9999999", "is out of range");
    if (kw->kind == CFG_KW_TIME || kw->kind == CFG_KW_TIME_S)
        check_refused(place, kw->name, "parsecs", "is not a time");
    if (kw->kind == CFG_KW_SIZE)
        check_refused(place, kw->name, "5x", "is not a size");
    if (line && (kw->kind == CFG_KW_FLAG || kw->kind == CFG_KW_UNFLAG))
        check_refused(place, kw->name, "surplus", "unexpected argument 'surplus'");
    if (line && kw->kind == CFG_KW_STRING)
        check_refused(place, kw->name, "word surplus", "unexpected argument 'surplus'");
}

#define EACH_PLACE(bit, kw, limit)                    \
    for (unsigned bit = 1; bit <= (limit); bit <<= 1) \
        if ((kw)->sections & bit)

static void every_keyword_works_where_it_may_stand(void **state)
{
    const struct cfg_kw *kw;

    for (unsigned i = 0; (kw = cfg_kw_at(i)) != NULL; i++) {
        if (kw->kind == CFG_KW_REFUSED || kw->sections == CFG_SEC_TOP)
            continue;
        EACH_PLACE(place, kw, CFG_OPT_STATS_SOCKET)
        check_right_use(kw, place);
    }
}

static void every_keyword_refuses_nonsense(void **state)
{
    const struct cfg_kw *kw;

    for (unsigned i = 0; (kw = cfg_kw_at(i)) != NULL; i++) {
        if (kw->kind == CFG_KW_REFUSED || kw->sections == CFG_SEC_TOP)
            continue;
        EACH_PLACE(place, kw, CFG_OPT_STATS_SOCKET)
        check_wrong_use(kw, place);
    }
}

static bool stands_elsewhere(const char *name, unsigned place)
{
    const struct cfg_kw *kw;

    for (unsigned i = 0; (kw = cfg_kw_at(i)) != NULL; i++) {
        if (strcmp(kw->name, name) == 0 && kw->sections & place)
            return true;
    }
    return false;
}

static void misplaced_keywords_say_where_they_belong(void **state)
{
    const struct cfg_kw *kw;

    for (unsigned i = 0; (kw = cfg_kw_at(i)) != NULL; i++) {
        if (kw->kind == CFG_KW_REFUSED || kw->sections == CFG_SEC_TOP)
            continue;
        for (unsigned place = CFG_SEC_GLOBAL; place <= CFG_SEC_HTTP_ERRORS; place <<= 1) {
            if (!stands_elsewhere(kw->name, place))
                check_refused(place, kw->name, "", "is not allowed in section '");
        }
    }
}

static void known_keywords_are_refused_by_name(void **state)
{
    char expected[200];
    const struct cfg_kw *kw;

    for (unsigned i = 0; (kw = cfg_kw_at(i)) != NULL; i++) {
        if (kw->kind != CFG_KW_REFUSED || kw->sections == CFG_SEC_TOP)
            continue;
        snprintf(expected, sizeof(expected),
                 "'%s' is a HAProxy keyword that Sallyport does not support", kw->name);
        EACH_PLACE(place, kw, CFG_OPT_STATS_SOCKET)
        check_refused(place, kw->name, "x y z", expected);
    }
}

static void unsupported_sections_are_skipped_whole(void **state)
{
    char text[512], expected[512];
    const struct cfg_kw *kw;

    for (unsigned i = 0; (kw = cfg_kw_at(i)) != NULL; i++) {
        if (kw->kind != CFG_KW_REFUSED || kw->sections != CFG_SEC_TOP)
            continue;
        snprintf(text, sizeof(text),
                 "%s x\n    whatever \"\" it says\n    no sense\nglobal\n    maxconn 7\n",
                 kw->name);
        snprintf(expected, sizeof(expected),
                 "t.cfg:1: error: '%s' is a HAProxy section that Sallyport does not "
                 "support; its lines are not read\n",
                 kw->name);
        assert_report(text, expected);
    }
}

static void rows_are_well_formed(void **state)
{
    const struct cfg_kw *kw, *other;

    for (unsigned i = 0; (kw = cfg_kw_at(i)) != NULL; i++) {
        if (kw->kind == CFG_KW_PARSE && kw->sections != CFG_SEC_TOP && !kw->parse)
            fail_msg("'%s' has no parser", kw->name);
        if (kw->kind != CFG_KW_REFUSED && (!kw->help || !*kw->help))
            fail_msg("'%s' has no help", kw->name);
        if (!kw->sections)
            fail_msg("'%s' may stand nowhere", kw->name);
        for (unsigned j = i + 1; (other = cfg_kw_at(j)) != NULL; j++) {
            if (strcmp(kw->name, other->name) == 0 && kw->sections & other->sections)
                fail_msg("'%s' has two rows for one place", kw->name);
        }
    }
}

static void documentation_lists_every_row(void **state)
{
    struct cfg_doc doc, again;
    unsigned n = 0;

    for (; cfg_doc_row(n, &doc); n++) {
        assert_non_null(cfg_kw_at(n));
        assert_string_equal(doc.name, cfg_kw_at(n)->name);
        assert_true(*doc.sections != '\0');
        assert_non_null(doc.args);
        assert_non_null(doc.help);
        assert_true(cfg_doc_row(n, &again));
        assert_string_equal(doc.sections, again.sections);
        if (strcmp(doc.name, "timeout client") == 0) {
            assert_string_equal(doc.sections, "defaults, frontend, listen");
            assert_string_equal(doc.args, "<time>");
            assert_true(doc.supported && doc.has_effect);
        }
        if (strcmp(doc.name, "stick-table") == 0)
            assert_false(doc.supported || doc.has_effect);
        if (strcmp(doc.name, "tune.h2.fe.rxbuf") == 0)
            assert_true(doc.supported && !doc.has_effect);
    }
    assert_null(cfg_kw_at(n));
    assert_true(n > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_well_formed),
        cmocka_unit_test(every_keyword_works_where_it_may_stand),
        cmocka_unit_test(every_keyword_refuses_nonsense),
        cmocka_unit_test(misplaced_keywords_say_where_they_belong),
        cmocka_unit_test(known_keywords_are_refused_by_name),
        cmocka_unit_test(unsupported_sections_are_skipped_whole),
        cmocka_unit_test(documentation_lists_every_row),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
