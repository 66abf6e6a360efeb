/*
 * The arguments of `sallyport bench`, and its URLs.
 */
#include "cmd/bench_args.h"
#include "cmd/bench_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define ARGUMENTS_MAX 24

static int parse(struct bench_args *a, const char *const *words)
{
    char *argv[ARGUMENTS_MAX] = {(char *)"bench"};
    int argc = 1;

    while (*words)
        argv[argc++] = (char *)*words++;
    return bench_args_parse(a, argc, argv);
}

#define PARSE(a, ...) parse(a, (const char *const[]){__VA_ARGS__, NULL})

static void test_as_ab(void **state)
{
    struct bench_args a;

    (void)state;
    assert_int_equal(PARSE(&a, "-k", "-n", "1000", "-c", "20", "-H", "X-A: 1", "-H", "X-B: 2", "-T", "a/b",
                           "-A", "u:p", "-s", "5", "http://h/"),
                     0);
    assert_int_equal(a.requests, 1000);
    assert_int_equal(a.connections, 20);
    assert_int_equal(a.header_count, 2);
    assert_string_equal(a.headers[1], "X-B: 2");
    assert_string_equal(a.content_type, "a/b");
    assert_string_equal(a.basic_auth, "u:p");
    assert_int_equal(a.timeout_us, 5000000);
    assert_int_equal(a.url_count, 1);
    bench_args_release(&a);
}

static void test_as_wrk(void **state)
{
    struct bench_args a;

    (void)state;
    assert_int_equal(PARSE(&a, "-t2", "-c10", "-d30s", "--latency", "--timeout=2s", "http://h/"), 0);
    assert_int_equal(a.threads, 2);
    assert_int_equal(a.connections, 10);
    assert_int_equal(a.duration_us, 30000000);
    assert_int_equal(a.timeout_us, 2000000);
    bench_args_release(&a);
    assert_int_equal(
        PARSE(&a, "http://h/", "--duration", "500ms", "--rate", "12.5", "--arrivals", "constant"), 0);
    assert_int_equal(a.duration_us, 500000);
    assert_true(a.rate > 12.4 && a.rate < 12.6);
    assert_true(a.is_constant);
    bench_args_release(&a);
}

static void test_lists(void **state)
{
    struct bench_args a;

    (void)state;
    assert_int_equal(PARSE(&a, "--cpus", "0-2,5", "http://h/"), 0);
    assert_int_equal(a.cpu_count, 4);
    assert_int_equal(a.cpus[3], 5);
    bench_args_release(&a);
    assert_int_equal(PARSE(&a, "--hold", "100", "--sweep", "threads=1..8", "serve {threads}", "http://h/"),
                     0);
    assert_int_equal(a.sweep_low, 1);
    assert_int_equal(a.sweep_high, 8);
    assert_string_equal(a.command, "serve {threads}");
    assert_int_equal(a.url_count, 1);
    bench_args_release(&a);
    assert_int_equal(PARSE(&a, "--", "http://h/", "-c"), 0);
    assert_int_equal(a.url_count, 2);
    bench_args_release(&a);
}

static void test_refused(void **state)
{
    static const char *const cases[][8] = {
        {"-c", "0", "http://h/"},
        {"-c", "x", "http://h/"},
        {"-c"},
        {"-n", "-1", "http://h/"},
        {"-t", "10s", "http://h/"},
        {"-t", "4", "-c", "2", "http://h/"},
        {"-d", "0", "http://h/"},
        {"-d", "ten", "http://h/"},
        {"-H", "no colon", "http://h/"},
        {"-H", "A: b\r\nC: d", "http://h/"},
        {"-H", "a b: c", "http://h/"},
        {"-m", "GE T", "http://h/"},
        {"-m", "CONNECT", "http://h/"},
        {"-A", "nobody", "http://h/"},
        {"--rate", "0", "http://h/"},
        {"--rate", "1e3", "http://h/"},
        {"--rate", ".", "http://h/"},
        {"--rate", "nan", "http://h/"},
        {"--arrivals", "never", "http://h/"},
        {"--tls", "1.1", "http://h/"},
        {"--resume", "1.5", "http://h/"},
        {"--expect-status", "99", "http://h/"},
        {"--expect-size", "-3", "http://h/"},
        {"--format", "xml", "http://h/"},
        {"--cpus", "3-1", "http://h/"},
        {"--cpus", "a", "http://h/"},
        {"--close=yes", "http://h/"},
        {"-kx", "http://h/"},
        {"--nothing", "http://h/"},
        {"--find-limit", "http://h/"},
        {"--p99", "10ms", "http://h/"},
        {"--hold", "10", "http://h/"},
        {"--hold", "10", "--sweep", "threads=1..2", "no place", "http://h/"},
        {"--sweep", "threads=2..1", "x", "http://h/"},
        {"--key", "k", "http://h/"},
        {"-b", "x", "-p", "y", "http://h/"},
        {"-k", "--close", "http://h/"},
        {"-c", "5"},
    };
    struct bench_args a;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (parse(&a, cases[i]) != 2)
            fail_msg("case %zu was accepted: %s %s", i, cases[i][0], cases[i][1]);
        bench_args_release(&a);
    }
}

static void check_url(const char *text, bool is_tls, const char *host, unsigned port, const char *target)
{
    struct bench_url url;
    const char *expected = bench_url_parse(text, &url);

    if (expected)
        fail_msg("%s: expected %s", text, expected);
    assert_int_equal(url.is_tls, is_tls);
    assert_true(str_eq(url.host, str_of(host)));
    assert_int_equal(url.port, port);
    assert_true(str_eq(url.target, str_of(target)));
}

static void test_urls(void **state)
{
    static const char *const bad[] = {"",
                                      "h",
                                      "h:80/",
                                      "ftp://h/",
                                      "http://",
                                      "http:///x",
                                      "http://:80",
                                      "http://h:0/",
                                      "http://h:70000/",
                                      "http://h:x/",
                                      "http://a b",
                                      "http://h/\n",
                                      "http://u@h/",
                                      "https://u:p@h/",
                                      "http://unix:x",
                                      "http://[::1",
                                      "http://h:80:80/",
                                      "http://unix:/s:x"};
    struct bench_url url;

    (void)state;
    check_url("http://h", false, "h", 80, "/");
    check_url("HTTPS://h/a?b=c#d", true, "h", 443, "/a?b=c");
    check_url("http://127.0.0.1:8080/x/y", false, "127.0.0.1", 8080, "/x/y");
    check_url("https://[::1]:8443?q", true, "[::1]", 8443, "?q");
    check_url("http://unix:/run/s.sock:/p", false, "/run/s.sock", 0, "/p");
    check_url("http://unix:/run/s.sock", false, "/run/s.sock", 0, "/");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (!bench_url_parse(bad[i], &url))
            fail_msg("'%s' was accepted", bad[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_ab),   cmocka_unit_test(test_as_wrk), cmocka_unit_test(test_lists),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_urls),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
