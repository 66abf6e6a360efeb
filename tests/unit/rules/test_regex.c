#include "harness.h"

#include "rules/regex.h"

#include <time.h>

static struct regex *compile(struct fixture *f, const char *pattern, bool ignore_case)
{
    char why[256];
    struct regex *re;

    assert_int_equal(regex_compile(f->c.registry, pattern, ignore_case, true, &re, why, sizeof why),
                     0);
    return re;
}

static void patterns_match(void **state)
{
    static const struct {
        const char *pattern, *subject;
        bool ignore_case, matches;
    } rows[] = {
        {"^a.c$", "abc", false, true},     {"^a.c$", "ABC", false, false},
        {"^a.c$", "ABC", true, true},      {"", "", false, true},
        {"x", "", false, false},           {"b+", "aabba", false, true},
        {"\\d+$", "host:80", false, true},
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_int_equal(regex_test(compile(*state, rows[i].pattern, rows[i].ignore_case),
                                    str_of(rows[i].subject)),
                         rows[i].matches);
    assert_true(regex_test(compile(*state, "^$", false), STR_NULL));
}

static void groups_are_reported(void **state)
{
    struct regex *re = compile(*state, "(a+)(x)?(b+)", false);
    struct regex_groups g;

    assert_true(regex_match(re, STR("..aabb.."), false, &g));
    assert_int_equal(g.start[0], 2);
    assert_int_equal(g.end[0], 6);
    assert_int_equal(g.start[1], 2);
    assert_int_equal(g.end[1], 4);
    assert_int_equal(g.start[2], REGEX_UNSET);
    assert_int_equal(g.start[3], 4);
    assert_int_equal(g.start[9], REGEX_UNSET);
    assert_false(regex_match(re, STR("ab"), false, &g) && g.start[1] != 0);
}

static void more_groups_than_are_kept_do_no_harm(void **state)
{
    struct regex *re = compile(*state, "(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)(k)(l)", false);
    struct regex_groups g;

    assert_true(regex_match(re, STR("abcdefghijkl"), false, &g));
    assert_int_equal(g.start[9], 8);
    assert_int_equal(g.end[0], 12);
}

static void the_start_can_be_denied(void **state)
{
    struct regex *re = compile(*state, "^a", false);
    struct regex_groups g;

    assert_true(regex_match(re, STR("a"), false, &g));
    assert_false(regex_match(re, STR("a"), true, &g));
}

static void replacements_are_expanded(void **state)
{
    static const struct {
        const char *replacement, *expected;
        int status;
    } rows[] = {
        {"x", "x", 0},
        {"\\1-\\2", "ab-cd", 0},
        {"\\0", "abcd", 0},
        {"\\3", "", 0},
        {"\\9", "", 0},
        {"a\\\\b", "a\\b", 0},
        {"\\x41\\x4a", "AJ", 0},
        {"\\xzz", "xzz", 0},
        {"\\n", "n", 0},
        {"a\\", "a", SP_EINVAL},
        {"0123456789012345678901234567890123456789", "", SP_ETOOBIG},
    };
    struct regex *re = compile(*state, "(ab)(cd)(e)?", false);

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char text[32];
        struct buf b = {text, sizeof text, 0, 0};
        struct regex_groups g;

        assert_true(regex_match(re, STR("abcd"), false, &g));
        assert_int_equal(regex_expand(str_of(rows[i].replacement), STR("abcd"), &g, &b),
                         rows[i].status);
        if (rows[i].status != SP_ETOOBIG)
            assert_true(str_eq(buf_str(&b), str_of(rows[i].expected)));
    }
}

static void errors_name_the_place(void **state)
{
    struct fixture *f = *state;
    char why[256];
    struct regex *re = NULL;

    assert_int_equal(regex_compile(f->c.registry, "a(b", false, true, &re, why, sizeof why),
                     SP_EINVAL);
    assert_null(re);
    assert_non_null(strstr(why, "regex 'a(b' is invalid"));
    assert_non_null(strstr(why, "at position 3"));
}

/* Exponential for a matcher without a bound. */
static void hostile_subjects_do_not_hang(void **state)
{
    static const char *const patterns[] = {"^(a+)+$", "(x+x+)+y", "^(.*?,){11}P",
                                           "(.*)(.*)(.*)(.*)(.*)[0-9]$"};
    char subject[8001];
    struct timespec before, after;

    for (size_t i = 0; i < COUNT_OF(patterns); i++) {
        struct regex *re = compile(*state, patterns[i], false);
        struct regex_groups g;

        memset(subject, i == 1 ? 'x' : i == 2 ? ',' : 'a', sizeof subject - 1);
        subject[sizeof subject - 1] = '!';
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
        assert_false(regex_match(re, str_make(subject, sizeof subject), false, &g));
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
        assert_true((after.tv_sec - before.tv_sec) * 1000 +
                        (after.tv_nsec - before.tv_nsec) / 1000000 <
                    500);
    }
}

static void ordinary_patterns_stay_within_the_bound(void **state)
{
    static const struct {
        const char *pattern;
        bool matches;
    } rows[] = {
        {"(.*)foo(.*)bar$", true},
        {"^/[^?]*\\?.*needle", false},
        {"[a-z]+/[a-z]+\\.php$", false},
        {"bar$", true},
    };
    char subject[8000];

    memset(subject, 'z', sizeof subject);
    memcpy(subject + 3000, "foo", 3);
    memcpy(subject + sizeof subject - 3, "bar", 3);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_int_equal(
            regex_test(compile(*state, rows[i].pattern, false), str_make(subject, sizeof subject)),
            rows[i].matches);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(patterns_match),
        TEST(groups_are_reported),
        TEST(more_groups_than_are_kept_do_no_harm),
        TEST(the_start_can_be_denied),
        TEST(replacements_are_expanded),
        TEST(errors_name_the_place),
        TEST(hostile_subjects_do_not_hang),
        TEST(ordinary_patterns_stay_within_the_bound),
    };

    return cmocka_run_group_tests_name("rules/regex", tests, NULL, NULL);
}
