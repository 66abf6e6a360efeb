#include "harness.h"

#include "rules/pattern.h"

#include <pthread.h>
#include <unistd.h>

static const char *const map_text = "# a comment\n"
                                    "\n"
                                    "  example.org    https://www.example.org  \n"
                                    "sub.example.org\thttps://sub\r\n"
                                    "spaced key with more\n"
                                    "alone\n"
                                    " #not-a-comment x\n"
                                    "last end";

static const char *lookup(struct fixture *f, const char *file, const char *key)
{
    return fixture_eval(f, arena_printf(&f->config, "str('%s'),map_str(%s)", key, file));
}

static void maps_have_two_columns(void **state)
{
    struct fixture *f = *state;
    const char *file = fixture_file(f, "two.map", map_text);

    assert_string_equal(lookup(f, file, "example.org"), "https://www.example.org");
    assert_string_equal(lookup(f, file, "sub.example.org"), "https://sub");
    assert_string_equal(lookup(f, file, "spaced"), "key with more");
    assert_string_equal(lookup(f, file, "alone"), "");
    assert_string_equal(lookup(f, file, "#not-a-comment"), "x");
    assert_string_equal(lookup(f, file, "last"), "end");
    assert_string_equal(lookup(f, file, "nope"), "<none>");
    unlink(file);
}

static void lists_have_one_pattern_a_line(void **state)
{
    struct fixture *f = *state;
    const char *file = fixture_file(f, "one.lst", "# comment\nabc\n\n  with blanks \n\tx\r\n");

    assert_true(fixture_cond(f, arena_printf(&f->config, "if { str(abc) -f %s }", file)));
    assert_true(fixture_cond(f, arena_printf(&f->config, "if { str(x) -f %s }", file)));
    assert_true(
        fixture_cond(f, arena_printf(&f->config, "if { \"str('with blanks ')\" -f %s }", file)));
    assert_false(fixture_cond(f, arena_printf(&f->config, "if { str(with) -f %s }", file)));
    assert_false(fixture_cond(f, arena_printf(&f->config, "if { str(ABC) -f %s }", file)));
    assert_true(fixture_cond(f, arena_printf(&f->config, "if { str(ABC) -i -f %s }", file)));
    assert_true(fixture_cond(f, arena_printf(&f->config, "if { str(more) -f %s more }", file)));
    unlink(file);
}

static void missing_files_are_errors_unless_optional(void **state)
{
    struct fixture *f = *state;

    fixture_expr_fails(f, "str(a),map(/no/such/file)", "cannot read pattern file '/no/such/file'");
    fixture_cond_fails(f, "if { src -f /no/such/file }", "cannot read pattern file");
    assert_string_equal(fixture_eval(f, "str(a),map(opt@/no/such/file,dflt)"), "dflt");
    assert_string_equal(fixture_eval(f, "str(a),map(virt@anything,dflt)"), "dflt");
    assert_non_null(rules_patterns_find(f->c.registry, "/no/such/file", true));
    assert_non_null(rules_patterns_find(f->c.registry, "virt@anything", true));
}

static void bad_lines_are_errors(void **state)
{
    struct fixture *f = *state;
    const char *file = fixture_file(f, "bad.map", "a 1\nb x\n");

    fixture_expr_fails(f, arena_printf(&f->config, "str(a),map_str_int(%s)", file),
                       "value 'x' of key 'b'");
    fixture_cond_fails(f, arena_printf(&f->config, "if { src -f %s }", file),
                       "is not an IPv4 or IPv6");
    unlink(file);
}

static void a_file_is_read_once_and_shared(void **state)
{
    struct fixture *f = *state;
    const char *file = fixture_file(f, "shared.map", "a 1\n");
    struct rules_patterns *p;
    const char *name;
    bool is_map;

    assert_string_equal(lookup(f, file, "a"), "1");
    unlink(file);
    assert_string_equal(lookup(f, file, "a"), "1");
    assert_string_equal(fixture_eval(f, arena_printf(&f->config, "str(a),map(file@%s)", file)),
                        "1");
    assert_string_equal(fixture_typed(f, arena_printf(&f->config, "str(ab),map_beg_int(%s)", file)),
                        "int:1");
    p = rules_patterns_find(f->c.registry, file, true);
    assert_non_null(p);
    assert_ptr_equal(rules_patterns_at(f->c.registry, 0, &name, &is_map), p);
    assert_string_equal(name, file);
    assert_true(is_map);
    assert_null(rules_patterns_at(f->c.registry, 1, &name, &is_map));
    assert_null(rules_patterns_find(f->c.registry, file, false));
}

static const char *dump(struct fixture *f, struct rules_patterns *p)
{
    struct buf b = {arena_zalloc(&f->config, 4096, 1), 4095, 0, 0};
    struct str key, value;
    const void *id;

    for (unsigned i = 0; rules_patterns_entry(p, i, &key, &value, &id); i++) {
        assert_non_null(id);
        buf_printf(&b, "%.*s=%.*s;", STR_FMT(key), STR_FMT(value));
    }
    return b.mem;
}

static void maps_are_edited_while_they_are_used(void **state)
{
    struct fixture *f = *state;
    const char *file = fixture_file(f, "edit.map", "a 1\nb 2\na 3\n");
    struct rules_expr *text =
        fixture_expr(f, arena_printf(&f->config, "req.hdr(k),map(%s,none)", file));
    struct rules_expr *number =
        fixture_expr(f, arena_printf(&f->config, "req.hdr(k),map_beg_int(%s)", file));
    struct rules_patterns *p = rules_patterns_find(f->c.registry, file, true);
    const char *why = NULL;
    struct sample s;
    const void *id, *same;
    struct str key, value;

    unlink(file);
    fixture_request(f, "GET / HTTP/1.1\r\nk: c\r\n\r\n");
    assert_string_equal(dump(f, p), "a=1;b=2;a=3;");
    assert_true(rules_patterns_entry(p, 1, &key, &value, &id));
    assert_true(rules_expr_eval(text, &f->ctx, &s) && str_eq(s.u.s, STR("none")));
    assert_int_equal(rules_patterns_add(p, STR("c"), STR("7"), &why), 0);
    assert_string_equal(dump(f, p), "a=1;b=2;a=3;c=7;");
    assert_true(rules_expr_eval(text, &f->ctx, &s) && str_eq(s.u.s, STR("7")));
    assert_true(rules_expr_eval(number, &f->ctx, &s) && s.u.i == 7);
    assert_int_equal(rules_patterns_set(p, STR("c"), STR("8"), &why), 0);
    assert_true(rules_expr_eval(number, &f->ctx, &s) && s.u.i == 8);
    /* An edit that one of the users cannot take is none. */
    assert_int_equal(rules_patterns_add(p, STR("d"), STR("x"), &why), SP_EINVAL);
    assert_non_null(strstr(why, "value 'x' of key 'd' is not an integer"));
    assert_string_equal(dump(f, p), "a=1;b=2;a=3;c=8;");
    assert_int_equal(rules_patterns_del(p, STR("a")), 0);
    assert_string_equal(dump(f, p), "b=2;c=8;");
    assert_true(rules_patterns_entry(p, 0, &key, &value, &same));
    assert_ptr_equal(id, same);
    assert_int_equal(rules_patterns_del(p, STR("a")), SP_ENOENT);
    assert_int_equal(rules_patterns_set(p, STR("a"), STR("1"), &why), SP_ENOENT);
    assert_int_equal(rules_patterns_clear(p), 0);
    assert_string_equal(dump(f, p), "");
    assert_true(rules_expr_eval(text, &f->ctx, &s) && str_eq(s.u.s, STR("none")));
}

static void regexes_and_lists_are_edited_too(void **state)
{
    struct fixture *f = *state;
    const char *file = fixture_file(f, "reg.lst", "^a\n");
    struct rules_cond *cond =
        fixture_cond_compile(f, arena_printf(&f->config, "if { req.hdr(k) -m reg -f %s }", file));
    struct rules_patterns *p = rules_patterns_find(f->c.registry, file, false);
    const char *why = NULL;

    unlink(file);
    fixture_request(f, "GET / HTTP/1.1\r\nk: bcd\r\n\r\n");
    assert_false(rules_cond_eval(cond, &f->ctx));
    assert_int_equal(rules_patterns_add(p, STR("c.$"), STR(""), &why), 0);
    assert_true(rules_cond_eval(cond, &f->ctx));
    assert_int_equal(rules_patterns_add(p, STR("("), STR(""), &why), SP_EINVAL);
    assert_non_null(strstr(why, "is invalid"));
    assert_string_equal(dump(f, p), "^a=;c.$=;");
}

/* Readers never see a half-made index. */
struct reader {
    struct fixture *f;
    struct rules_expr *e;
    atomic_bool stop;
    unsigned wrong;
};

static void *read_on(void *arg)
{
    struct reader *r = arg;
    struct rules_ctx ctx = r->f->ctx;
    struct arena arena;
    struct sample s;

    arena_init(&arena, 0, 0);
    ctx.arena = &arena;
    while (!atomic_load(&r->stop)) {
        if (!rules_expr_eval(r->e, &ctx, &s) || s.u.s.len != 1 || s.u.s.ptr[0] != '1')
            r->wrong++;
        arena_reset(&arena);
    }
    arena_release(&arena);
    return NULL;
}

static void readers_and_an_editor_run_side_by_side(void **state)
{
    struct fixture *f = *state;
    const char *file = fixture_file(f, "race.map", "always 1\n");
    struct reader r = {.f = f};
    pthread_t threads[3];
    struct rules_patterns *p;
    const char *why;

    fixture_request(f, "GET / HTTP/1.1\r\nk: always\r\n\r\n");
    r.e = fixture_expr(f, arena_printf(&f->config, "req.hdr(k),map(%s)", file));
    p = rules_patterns_find(f->c.registry, file, true);
    unlink(file);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_on, &r), 0);
    for (int i = 0; i < 300; i++) {
        assert_int_equal(rules_patterns_add(p, STR("x"), STR("2"), &why), 0);
        if (i % 10 == 9)
            assert_int_equal(rules_patterns_del(p, STR("x")), 0);
    }
    atomic_store(&r.stop, true);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(r.wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(maps_have_two_columns),
        TEST(lists_have_one_pattern_a_line),
        TEST(missing_files_are_errors_unless_optional),
        TEST(bad_lines_are_errors),
        TEST(a_file_is_read_once_and_shared),
        TEST(maps_are_edited_while_they_are_used),
        TEST(regexes_and_lists_are_edited_too),
        TEST(readers_and_an_editor_run_side_by_side),
    };

    return cmocka_run_group_tests_name("rules/patfile", tests, NULL, NULL);
}
