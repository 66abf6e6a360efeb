#include "harness.h"

#include "rules/tables.h"

#include <unistd.h>

/* "@NAME" in an expression stands for the path of that file. */
static const struct {
    const char *name, *content;
} files[] = {
    {"text", "# names\nabc  one two \nABC upper\nnothing\n"},
    {"number", "a 1\nb -2\nabc 3\n"},
    {"address", "a 10.0.0.1\nb 2001:db8::1\n"},
    {"begin", "/a/b deep\n/a shallow\n"},
    {"end", ".example.com wild\nwww.example.com www\n"},
    {"inside", "needle found\n"},
    {"path", "dir in-path\n"},
    {"domain", "example in-domain\n"},
    {"regex", "^a(.*)z$ \\1!\\0\nb+ bees\n"},
    {"range", "1:10 low\n11: high\n"},
    {"network", "10.0.0.0/8 private\n10.1.0.0/16 inner\n2001:db8::/32 doc\n"},
    {"range-n", "1:10 1\n11: 2\n"},
    {"network-n", "10.0.0.0/8 1\n"},
    {"range-a", "1:10 10.0.0.1\n"},
    {"network-a", "10.0.0.0/8 192.0.2.1\n"},
};

static const struct expectation rows[] = {
    {"str(abc),map(@text)", "str:one two"},
    {"str(ABC),map(@text)", "str:upper"},
    {"str(nothing),map(@text)", "str:"},
    {"str(x),map(@text)", "<none>"},
    {"str(x),map(@text,default)", "str:default"},
    {"hdr(none),map(@text,default)", "<none>"},
    {"str(abc),map_str(@text)", "str:one two"},
    {"str(abc),map_str_str(@text)", "str:one two"},
    {"str(b),map_str_int(@number)", "int:-2"},
    {"str(x),map_str_int(@number,7)", "int:7"},
    {"str(x),map_str_int(@number)", "<none>"},
    {"str(a),map_str_ip(@address)", "addr:10.0.0.1"},
    {"str(b),map_str_ip(@address)", "addr:2001:db8::1"},
    {"str(x),map_str_ip(@address,::1)", "addr:::1"},
    {"str(abc),map_str_key(@text)", "str:abc"},
    {"str(x),map_str_key(@text)", "<none>"},
    {"str(/a/b/c),map_beg(@begin)", "str:deep"},
    {"str(/a/x),map_beg_str(@begin)", "str:shallow"},
    {"str(abcd),map_beg_int(@number)", "int:3"},
    {"str(ax),map_beg_ip(@address)", "addr:10.0.0.1"},
    {"str(/a/x),map_beg_key(@begin)", "str:/a"},
    {"str(www.example.com),map_end(@end)", "str:wild"},
    {"str(ftp.example.com),map_end_str(@end)", "str:wild"},
    {"str(xb),map_end_int(@number)", "int:-2"},
    {"str(xb),map_end_ip(@address)", "addr:2001:db8::1"},
    {"str(ftp.example.com),map_end_key(@end)", "str:.example.com"},
    {"str(a needle b),map_sub(@inside)", "str:found"},
    {"str(needles),map_sub_str(@inside)", "str:found"},
    {"str(xbx),map_sub_int(@number)", "int:-2"},
    {"str(xbx),map_sub_ip(@address)", "addr:2001:db8::1"},
    {"str(needles),map_sub_key(@inside)", "str:needle"},
    {"str(/x/dir/y),map_dir(@path)", "str:in-path"},
    {"str(/dir),map_dir_str(@path)", "str:in-path"},
    {"str(/direct),map_dir(@path)", "<none>"},
    {"str(/b/x),map_dir_int(@number)", "int:-2"},
    {"str(/b/x),map_dir_ip(@address)", "addr:2001:db8::1"},
    {"str(/x/dir/y),map_dir_key(@path)", "str:dir"},
    {"str(www.example.com),map_dom(@domain)", "str:in-domain"},
    {"str(example),map_dom_str(@domain)", "str:in-domain"},
    {"str(b.x),map_dom_int(@number)", "int:-2"},
    {"str(b.x),map_dom_ip(@address)", "addr:2001:db8::1"},
    {"str(www.example.com),map_dom_key(@domain)", "str:example"},
    {"str(abbz),map_reg(@regex)", "str:\\1!\\0"},
    {"str(abb),map_reg_str(@regex)", "str:bees"},
    {"str(b),map_reg_int(@number)", "int:-2"},
    {"str(b),map_reg_ip(@address)", "addr:2001:db8::1"},
    {"str(abb),map_reg_key(@regex)", "str:b+"},
    {"str(abbz),map_regm(@regex)", "str:bb!abbz"},
    {"str(b),map_regm(@regex)", "str:bees"},
    {"str(x),map_regm(@regex,none)", "str:none"},
    {"int(5),map_int(@range)", "str:low"},
    {"int(50),map_int_str(@range)", "str:high"},
    {"int(0),map_int(@range)", "<none>"},
    {"int(50),map_int_int(@range-n)", "int:2"},
    {"int(5),map_int_ip(@range-a)", "addr:10.0.0.1"},
    {"int(5),map_int_key(@range)", "str:1:10"},
    {"ipv4(10.1.2.3),map_ip(@network)", "str:inner"},
    {"ipv4(10.2.2.3),map_ip_str(@network)", "str:private"},
    {"ipv6(2001:db8::7),map_ip(@network)", "str:doc"},
    {"ipv4(192.0.2.1),map_ip(@network,public)", "str:public"},
    {"str(10.9.9.9),map_ip(@network)", "str:private"},
    {"ipv4(10.2.2.3),map_ip_int(@network-n)", "int:1"},
    {"ipv4(10.2.2.3),map_ip_ip(@network-a)", "addr:192.0.2.1"},
    {"ipv4(10.1.2.3),map_ip_key(@network)", "str:10.1.0.0/16"},
};

/* The expression with paths in place of names. */
static const char *with_paths(struct fixture *f, const char *expression)
{
    const char *at = strchr(expression, '@');
    size_t n = at ? strcspn(at + 1, ",)") : 0;

    if (!at)
        return expression;
    return arena_printf(&f->config, "%.*srules-%ld-%.*s%s", (int)(at - expression), expression,
                        (long)getpid(), (int)n, at + 1, at + 1 + n);
}

static void write_files(struct fixture *f)
{
    for (size_t i = 0; i < COUNT_OF(files); i++)
        fixture_file(f, files[i].name, files[i].content);
}

static void remove_files(struct fixture *f)
{
    for (size_t i = 0; i < COUNT_OF(files); i++)
        remove(arena_printf(&f->config, "rules-%ld-%s", (long)getpid(), files[i].name));
}

static void maps_are_looked_up(void **state)
{
    struct fixture *f = *state;
    struct expectation real[COUNT_OF(rows)];

    write_files(f);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        real[i] = (struct expectation){with_paths(f, rows[i].input), rows[i].expected};
    fixture_check_typed(f, real, COUNT_OF(real));
    fixture_check_convs_used(&conv_map_table, rows, COUNT_OF(rows));
    remove_files(f);
}

static void mistakes_are_explained(void **state)
{
    static const struct expectation wrong[] = {
        {"str(a),map(/nonexistent)", "/nonexistent"},
        {"str(a),map", ""},
        {"str(a),map_str_int(@text)", "one two"},
        {"str(a),map_str_int(@number,x)", "not an integer"},
        {"str(a),map_str_ip(@number)", "1"},
        {"str(a),map_str_ip(@address,x)", "default value 'x' is not an IP address"},
        {"int(1),map_int(@text)", "abc"},
        {"src,map_ip(@text)", "abc"},
        {"str(a),map_regg(@text)", "did you mean"},
    };
    struct fixture *f = *state;

    write_files(f);
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        fixture_expr_fails(f, with_paths(f, wrong[i].input), wrong[i].expected);
    remove_files(f);
}

/* A substitution that outgrows its room gives nothing. */
static void long_substitutions_fail(void **state)
{
    struct fixture *f = *state;
    const char *path = fixture_file(f, "double", "^(.*)$ \\1\\1\n");
    const char *e = arena_printf(&f->config, "hdr(x),map_regm(%s),length", path);
    static char text[5001];

    memset(text, 'a', 4000);
    fixture_request(f, arena_printf(&f->config, "GET / HTTP/1.1\r\nX: %s\r\n\r\n", text));
    assert_string_equal(fixture_typed(f, e), "int:8000");
    memset(text, 'a', 5000);
    fixture_request(f, arena_printf(&f->config, "GET / HTTP/1.1\r\nX: %s\r\n\r\n", text));
    assert_string_equal(fixture_typed(f, e), "<none>");
    remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(maps_are_looked_up),
        TEST(mistakes_are_explained),
        TEST(long_substitutions_fail),
    };

    return cmocka_run_group_tests_name("rules/conv_map", tests, NULL, NULL);
}
