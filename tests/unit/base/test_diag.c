#include "base/diag.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void collects_in_order(void **state)
{
    struct arena arena;
    struct diag d;
    struct cfg_loc here = {.file = "a.cfg", .line = 3};

    arena_init(&arena, 0, 0);
    diag_init(&d, &arena);
    assert_null(d.first);
    diag_error(&d, here, "unknown keyword '%s'", "bnid");
    diag_warning(&d, here, "no timeout");
    diag_add(&d, DIAG_NOTICE, (struct cfg_loc){0}, "hello\n");
    assert_int_equal(d.errors, 1);
    assert_int_equal(d.warnings, 1);
    assert_int_equal(d.first->level, DIAG_ERROR);
    assert_string_equal(d.first->text, "unknown keyword 'bnid'");
    assert_string_equal(d.first->loc.file, "a.cfg");
    assert_int_equal(d.first->loc.line, 3);
    assert_int_equal(d.first->next->level, DIAG_WARNING);
    assert_ptr_equal(d.first->next->next, d.last);
    assert_string_equal(d.last->text, "hello"); /* without its newline */
    assert_null(d.last->loc.file);
    assert_null(d.last->next);
    arena_release(&arena);
}

static void texts_stay_on_one_line(void **state)
{
    struct arena arena;
    struct diag d;

    arena_init(&arena, 0, 0);
    diag_init(&d, &arena);
    diag_error(&d, (struct cfg_loc){0}, "a\nb\r\nc\n\n");
    assert_string_equal(d.first->text, "a b  c");
    arena_release(&arena);
}

static void counts_without_memory(void **state)
{
    struct arena arena;
    struct diag d;

    /* Room for one item, not for its text. */
    arena_init(&arena, 0, (sizeof(struct diag_item) + 15) & ~(size_t)15);
    diag_init(&d, &arena);
    diag_error(&d, (struct cfg_loc){0}, "first");
    diag_error(&d, (struct cfg_loc){0}, "second");
    diag_warning(&d, (struct cfg_loc){0}, "third");
    assert_int_equal(d.errors, 2);
    assert_int_equal(d.warnings, 1);
    assert_non_null(d.first);
    assert_non_null(d.first->text);
    assert_ptr_equal(d.first, d.last);
    arena_release(&arena);
}

static void suggests(void **state)
{
    static const char *const words[] = {"bind", "server"};
    char out[64];

    assert_string_equal(diag_suggest(out, sizeof(out), "sever", words, 2),
                        ", did you mean 'server'?");
    assert_ptr_equal(diag_suggest(out, sizeof(out), "zzz", words, 2), out);
    assert_string_equal(out, "");
    assert_string_equal(diag_suggest(out, sizeof(out), NULL, words, 2), "");
    assert_string_equal(diag_suggest(out, 10, "sever", words, 2), "");
    assert_string_equal(diag_suggest(out, 24, "sever", words, 2), "");
    assert_string_equal(diag_suggest(out, 25, "sever", words, 2), ", did you mean 'server'?");
    assert_string_equal(diag_suggest(NULL, 0, "sever", words, 2), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collects_in_order),
        cmocka_unit_test(texts_stay_on_one_line),
        cmocka_unit_test(counts_without_memory),
        cmocka_unit_test(suggests),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
