#include "support.h"

#include "config/lexer.h"

#include <stdio.h>
#include <stdlib.h>

struct words_case {
    const char *line, *words; /* words joined by '|'; an empty word shows as nothing between two */
};

static const struct words_case words_cases[] = {
    {"", ""},
    {"   \t ", ""},
    {"# comment", ""},
    {"global#this is the section", "global"},
    {"\tlog-format  a\tb # end", "log-format|a|b"},
    {"a\\ b", "a b"},
    {"a\\#b #c", "a#b"},
    {"a\\\\b", "a\\b"},
    {"\\'a\\\"", "'a\""},
    {"a\\nb\\tc\\rd", "a\nb\tc\rd"},
    {"\\x41\\x6a\\x6A", "Ajj"},
    {"path_reg (.*)\\.html\\1 \\d+$", "path_reg|(.*)\\.html\\1|\\d+$"},
    {"a\\$b", "a\\$b"},
    {"'a b' c", "a b|c"},
    {"'a \"b\" \\n $HOME #'", "a \"b\" \\n $HOME #"},
    {"\"a b\" c", "a b|c"},
    {"\"a 'b' # c\"", "a 'b' # c"},
    {"\"a\\\"b\\$c\\\\\"", "a\"b$c\\"},
    {"a'b c'\"d e\"f", "ab cd ef"},
    {"\"%{+Q}o %t\"' %s'\\ %{-Q}r", "%{+Q}o %t %s %{-Q}r"},
    {"'' \"\" x", "||x"},
    {"x''y", "xy"},
    {"$CFG_TEST '$CFG_TEST'", "$CFG_TEST|$CFG_TEST"},
    {"\"$CFG_TEST\" \"${CFG_TEST}\" \"<${CFG_TEST}>\"", "v|v|<v>"},
    {"\"$CFG_TEST.x\"", "v.x"},
    {"\"${CFG_NONE-a b}\" \"${CFG_TEST-other}\" \"${CFG_NONE-}\"x", "a b|v|x"},
    {"fd@\"${CFG_NONE-3}\"", "fd@3"},
    {"\"$CFG_NONE\" x", "|x"},
    {"a \"${CFG_LIST[*]}\" b", "a|1|2|3|b"},
    {"a \"<${CFG_LIST[*]}>\"", "a|<1|2|3>"},
    {"a \"${CFG_NONE[*]}\" b", "a|b"},
    {"a \"${CFG_NONE[*]-x y}\"", "a|x|y"},
    {"\"${.LINE}\" \"$.FILE\" \"${.SECTION}\"", "7|f.cfg|web"},
    {"end\\", "end\\"},
    {"a\r", "a"},
    {"\"a\"\r\r", "a"},
    {"\vx\fy", "x|y"},
};

static void prepare(struct cfg_lexer *lx)
{
    cfg_lexer_init(lx);
    lx->file = "f.cfg";
    lx->line = 7;
    lx->section = "web";
}

static void splits_lines_into_words(void **state)
{
    struct cfg_lexer lx;
    struct arena arena;

    setenv("CFG_TEST", "v", 1);
    setenv("CFG_LIST", "1  2 3", 1);
    unsetenv("CFG_NONE");
    prepare(&lx);
    arena_init(&arena, 0, 0);
    for (size_t i = 0; i < sizeof(words_cases) / sizeof(words_cases[0]); i++) {
        const struct words_case *c = &words_cases[i];
        char joined[256] = "";
        size_t len = 0;
        char **words;

        if (cfg_lexer_split(&lx, str_of(c->line), true) != 0)
            fail_msg("'%s': %s", c->line, lx.error);
        words = cfg_lexer_words(&lx, &arena);
        assert_non_null(words);
        for (int w = 0; words[w]; w++)
            len += (size_t)snprintf(joined + len, sizeof(joined) - len, "%s%s", w ? "|" : "",
                                    words[w]);
        if (strcmp(joined, c->words) != 0)
            fail_msg("'%s' gave '%s', expected '%s'", c->line, joined, c->words);
    }
    arena_release(&arena);
    cfg_lexer_release(&lx);
}

struct error_case {
    const char *line, *error;
    size_t position;
};

static const struct error_case error_cases[] = {
    {"a \"b c", "unmatched quote", 3},
    {"a 'b \"c\"", "unmatched quote", 3},
    {"a \\x4", "truncated or invalid hexadecimal sequence, expected \\xNN", 3},
    {"a \\xg0", "truncated or invalid hexadecimal sequence, expected \\xNN", 3},
    {"a \\x00", "\\x00 is not possible: words cannot hold NUL bytes", 3},
    {"\"${A\"", "unmatched brace in the name of an environment variable", 3},
    {"\"${A-b\"", "unmatched brace in the name of an environment variable", 3},
    {"\"${A b}\"", "unmatched brace in the name of an environment variable", 3},
    {"\"$1\"",
     "forbidden first character in the name of an environment variable, expected a letter or '_' (a plain "
     "dollar is written \\$)",
     3},
    {"\"a $\"",
     "forbidden first character in the name of an environment variable, expected a letter or '_' (a plain "
     "dollar is written \\$)",
     5},
    {"\"${A[x]}\"", "truncated or invalid word expansion, expected [*]", 5},
    {"\"${A[*}\"", "truncated or invalid word expansion, expected [*]", 5},
    {"\"$.FOO\"", "unknown pseudo-variable, expected .FILE, .LINE or .SECTION", 3},
    {"a\rb", "stray carriage return in the middle of a line", 2},
};

static void reports_errors_with_their_position(void **state)
{
    struct cfg_lexer lx;

    prepare(&lx);
    for (size_t i = 0; i < sizeof(error_cases) / sizeof(error_cases[0]); i++) {
        const struct error_case *c = &error_cases[i];

        if (cfg_lexer_split(&lx, str_of(c->line), true) != SP_EINVAL)
            fail_msg("'%s' was accepted", c->line);
        assert_string_equal(lx.error, c->error);
        if (lx.position != c->position)
            fail_msg("'%s': position %zu", c->line, lx.position);
    }
    assert_int_equal(cfg_lexer_split(&lx, STR("a\0b"), true), SP_EINVAL);
    assert_string_equal(lx.error, "stray NUL byte");
    cfg_lexer_release(&lx);
}

static void has_no_bound_on_words_but_on_bytes(void **state)
{
    struct cfg_lexer lx;
    char *text = malloc(CFG_LINE_BYTES + 1), *large = malloc(CFG_EXPANDED_BYTES);

    assert_non_null(text);
    assert_non_null(large);
    for (size_t i = 0; i <= CFG_LINE_BYTES; i++)
        text[i] = i % 2 ? ' ' : 'x';
    prepare(&lx);
    assert_int_equal(cfg_lexer_split(&lx, str_make(text, CFG_LINE_BYTES), true), 0);
    assert_int_equal(lx.word_count, CFG_LINE_BYTES / 2);
    assert_int_equal(cfg_lexer_split(&lx, str_make(text, CFG_LINE_BYTES + 1), true), SP_EINVAL);
    assert_string_equal(lx.error, "the line is longer than 65536 bytes");
    memset(large, 'y', CFG_EXPANDED_BYTES - 1);
    large[CFG_EXPANDED_BYTES - 1] = '\0';
    setenv("CFG_LARGE", large, 1);
    assert_int_equal(cfg_lexer_split(&lx, STR("\"$CFG_LARGE\""), true), 0);
    assert_int_equal(cfg_lexer_split(&lx, STR("\"$CFG_LARGE$CFG_LARGE\""), true), SP_EINVAL);
    assert_string_equal(lx.error, "the line is too long after its variables were expanded");
    unsetenv("CFG_LARGE");
    cfg_lexer_release(&lx);
    free(text);
    free(large);
}

static void tells_what_a_reader_should_know(void **state)
{
    struct cfg_lexer lx;
    struct arena arena;

    prepare(&lx);
    arena_init(&arena, 0, 0);
    assert_int_equal(cfg_lexer_split(&lx, STR("a b\\"), true), 0);
    assert_true(lx.trailing_backslash);
    assert_int_equal(lx.empty_word, -1);
    assert_int_equal(cfg_lexer_split(&lx, STR("a b \"\" ''"), true), 0);
    assert_false(lx.trailing_backslash);
    assert_int_equal(lx.empty_word, 2);
    assert_int_equal(cfg_lexer_split(&lx, STR("a # b"), false), 0);
    assert_string_equal(cfg_lexer_join(&lx, &arena, 0), "a # b");
    assert_int_equal(cfg_lexer_split(&lx, STR(".if  \"x\"   ==\ty"), true), 0);
    assert_string_equal(cfg_lexer_join(&lx, &arena, 1), "x == y");
    assert_string_equal(cfg_lexer_join(&lx, &arena, 9), "");
    arena_release(&arena);
    cfg_lexer_release(&lx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splits_lines_into_words),
        cmocka_unit_test(reports_errors_with_their_position),
        cmocka_unit_test(has_no_bound_on_words_but_on_bytes),
        cmocka_unit_test(tells_what_a_reader_should_know),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
