#include "harness.h"

#include "rules/pattern.h"

static struct pat_index *build(struct fixture *f, enum pat_match match, unsigned flags,
                               enum value_type map_type, const struct pat_source *sources,
                               unsigned n)
{
    char why[RULES_WHY_BYTES] = "";
    struct pat_index *ix = NULL;

    if (pat_index_build(match, flags, map_type, sources, n, &f->config, f->c.registry, &ix, why) <
        0)
        fail_msg("%s", why);
    return ix;
}

/* Whether any of the patterns (separated by blanks) matches the text. */
static bool matches(struct fixture *f, enum pat_match match, unsigned flags, const char *patterns,
                    const char *text)
{
    struct pat_source sources[16] = {{STR_NULL, STR_NULL}};
    char **argv;
    int n = fixture_words(f, patterns, &argv);
    struct sample s;

    for (int i = 0; i < n; i++)
        sources[i].key = str_of(argv[i]);
    value_str(&s, str_of(text));
    if (match == PAT_IP)
        assert_true(value_cast(&s, VALUE_ADDR, &f->request));
    if (match == PAT_INT || match == PAT_DOTTED)
        assert_true(value_cast(&s, VALUE_INT, &f->request));
    return pat_index_find(build(f, match, flags, VALUE_ANY, sources, (unsigned)n), &s) != NULL;
}

static void texts_match_by_method(void **state)
{
    static const struct {
        enum pat_match match;
        const char *patterns, *text;
        bool plain, ignoring_case;
    } rows[] = {
        {PAT_STR, "abc", "abc", true, true},
        {PAT_STR, "abc", "ABC", false, true},
        {PAT_STR, "abc", "abcd", false, false},
        {PAT_STR, "x abc", "abc", true, true},
        {PAT_STR, "a b c d e f g abc", "abc", true, true},
        {PAT_STR, "a b c d e f g abc", "ABC", false, true},
        {PAT_STR, "a b c d e f g h", "z", false, false},
        {PAT_BEG, "ab", "abc", true, true},
        {PAT_BEG, "AB", "abc", false, true},
        {PAT_BEG, "abcd", "abc", false, false},
        {PAT_BEG, "x y z q abcd ab", "abc", true, true},
        {PAT_BEG, "x y z q abcd AB", "abc", false, true},
        {PAT_END, "bc", "abc", true, true},
        {PAT_END, "BC", "abc", false, true},
        {PAT_END, "xabc", "abc", false, false},
        {PAT_SUB, "b", "abc", true, true},
        {PAT_SUB, "B", "abc", false, true},
        {PAT_SUB, "abc", "abc", true, true},
        {PAT_SUB, "abcd", "abc", false, false},
        {PAT_REG, "^a.c$", "abc", true, true},
        {PAT_REG, "^A", "abc", false, true},
        {PAT_DIR, "png", "/images/png/logo/32x32.png", true, true},
        {PAT_DIR, "/images/png", "/images/png/logo/32x32.png", true, true},
        {PAT_DIR, "logo/32x32.png", "/images/png/logo/32x32.png", true, true},
        {PAT_DIR, "/LOGO/", "/images/png/logo/32x32.png", false, true},
        {PAT_DIR, "32x32", "/images/png/logo/32x32.png", false, false},
        {PAT_DIR, "x", "/a?x", true, true},
        {PAT_DOM, "www1", "http://www1.dc-eu.example.com:80/blah", true, true},
        {PAT_DOM, ".www1", "http://www1.dc-eu.example.com:80/blah", true, true},
        {PAT_DOM, ":dc-eu.example.", "http://www1.dc-eu.example.com:80/blah", true, true},
        {PAT_DOM, "dc-eu.example", "http://www1.dc-eu.example.com:80/blah", true, true},
        {PAT_DOM, "dc-eu.EXAMPLE", "http://www1.dc-eu.example.com:80/blah", false, true},
        {PAT_DOM, "80", "http://www1.dc-eu.example.com:80/blah", true, true},
        {PAT_DOM, "eu", "http://www1.dc-eu.example.com:80/blah", false, false},
        {PAT_DOM, "dc", "http://www1.dc-eu.example.com:80/blah", false, false},
        {PAT_LEN, "3", "abc", true, true},
        {PAT_LEN, "1:2 4:", "abc", false, false},
        {PAT_LEN, "1:2 4: 3", "abc", true, true},
        {PAT_BIN, "616263", "abc", true, true},
        {PAT_BIN, "61626364", "abc", false, false},
        {PAT_BIN, "4a4B", "JK", true, true},
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (matches(*state, rows[i].match, 0, rows[i].patterns, rows[i].text) != rows[i].plain)
            fail_msg("row %zu: %s on %s", i, rows[i].patterns, rows[i].text);
        if (matches(*state, rows[i].match, PAT_IGNORE_CASE, rows[i].patterns, rows[i].text) !=
            rows[i].ignoring_case)
            fail_msg("row %zu ignoring case: %s on %s", i, rows[i].patterns, rows[i].text);
    }
}

static void numbers_match_ranges(void **state)
{
    static const struct {
        enum pat_match match;
        const char *patterns, *number;
        bool expected;
    } rows[] = {
        {PAT_INT, "5", "5", true},
        {PAT_INT, "5", "6", false},
        {PAT_INT, "1:4", "4", true},
        {PAT_INT, "1:4", "5", false},
        {PAT_INT, "1024:", "1024", true},
        {PAT_INT, "1024:", "1023", false},
        {PAT_INT, ":80", "-5", true},
        {PAT_INT, ":80", "81", false},
        {PAT_INT, "1-4", "3", true},
        {PAT_INT, "7 1:4", "7", true},
        {PAT_DOTTED, "3.1", "196609", true},
        {PAT_DOTTED, "3.0:3.2", "196609", true},
        {PAT_DOTTED, "3", "196608", true},
        {PAT_DOTTED, "3.2:", "196609", false},
        {PAT_DOTTED, ":3.1", "196609", true},
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (matches(*state, rows[i].match, 0, rows[i].patterns, rows[i].number) != rows[i].expected)
            fail_msg("%s on %s", rows[i].patterns, rows[i].number);
}

static void addresses_match_networks(void **state)
{
    static const struct {
        const char *patterns, *address;
        bool expected;
    } rows[] = {
        {"10.0.0.0/8", "10.1.2.3", true},
        {"10.0.0.0/8", "11.1.2.3", false},
        {"10.9.9.9/8", "10.1.2.3", true},
        {"10.1.2.3", "10.1.2.3", true},
        {"10.1.2.3", "10.1.2.4", false},
        {"0.0.0.0/0", "1.2.3.4", true},
        {"10.0.0.0/255.255.0.0", "10.0.5.6", true},
        {"10.0.0.0/255.255.0.0", "10.1.5.6", false},
        {"127.1", "127.0.0.1", true},
        {"10.12/8", "10.3.4.5", true},
        {"192.168.1/22", "192.168.3.7", true},
        /* as inet_aton reads it: the last number fills what is left */
        {"192.168/32", "192.0.0.168", true},
        {"192.168/32", "192.168.0.0", false},
        {"::1", "::1", true},
        {"2001:db8::/32", "2001:db8:5::1", true},
        {"2001:db8::/32", "2001:db9::1", false},
        {"::/0", "2001:db8::1", true},
        /* IPv4 patterns and IPv6 addresses that carry IPv4, and the reverse */
        {"10.0.0.0/8", "::ffff:10.1.2.3", true},
        {"10.0.0.0/8", "2002:a01:203::", true},
        {"10.0.0.0/8", "2001:db8::10.1.2.3", false},
        {"::ffff:10.0.0.0/104", "10.1.2.3", true},
        {"::ffff:11.0.0.0/104", "10.1.2.3", false},
        {"1.1.1.1 2.2.2.0/24 10.1.0.0/16 10.0.0.0/8", "10.200.0.1", true},
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (matches(*state, PAT_IP, 0, rows[i].patterns, rows[i].address) != rows[i].expected)
            fail_msg("%s on %s", rows[i].patterns, rows[i].address);
    assert_true(matches(*state, PAT_IP, PAT_RESOLVE, "localhost", "127.0.0.1"));
    assert_true(matches(*state, PAT_IP, PAT_RESOLVE, "localhost/8", "127.5.0.1"));
}

static void bad_patterns_are_refused(void **state)
{
    static const struct {
        enum pat_match match;
        const char *pattern, *why;
    } rows[] = {
        {PAT_INT, "x", "'x' is not a number or a range of numbers"},
        {PAT_INT, "", "is not a number"},
        {PAT_INT, ":", "is not a number"},
        {PAT_INT, "5:3", "is not a number or a range"},
        {PAT_INT, "1:x", "is not a number or a range"},
        {PAT_LEN, "1.5", "is not a number"},
        {PAT_DOTTED, "3.70000", "is not a version"},
        {PAT_DOTTED, "x.1", "is not a version"},
        {PAT_IP, "10.0.0.0/33", "is not an IPv4 or IPv6 address or network"},
        {PAT_IP, "10.0.0.256", "is not an IPv4"},
        {PAT_IP, "1.2.3.4.5", "is not an IPv4"},
        {PAT_IP, "256.1", "is not an IPv4"},
        {PAT_IP, "10.0.0.0/255.0.255.0", "is not an IPv4"},
        {PAT_IP, "2001:db8::/129", "is not an IPv4"},
        {PAT_IP, "localhost", "is not an IPv4"},
        {PAT_BIN, "616", "is not an even number of hexadecimal digits"},
        {PAT_BIN, "6x", "is not an even number"},
        {PAT_REG, "a(", "regex 'a(' is invalid"},
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct fixture *f = *state;
        struct pat_source source = {str_of(rows[i].pattern), STR_NULL};
        char why[RULES_WHY_BYTES] = "";
        struct pat_index *ix;

        assert_int_equal(pat_index_build(rows[i].match, 0, VALUE_ANY, &source, 1, &f->config,
                                         f->c.registry, &ix, why),
                         SP_EINVAL);
        if (!strstr(why, rows[i].why))
            fail_msg("'%s': got '%s'", rows[i].pattern, why);
    }
}

static const struct pat_entry *find_text(const struct pat_index *ix, const char *text)
{
    struct sample s;

    value_str(&s, str_of(text));
    return pat_index_find(ix, &s);
}

static void maps_answer_with_the_right_entry(void **state)
{
    static const struct pat_source prefixes[] = {{{"/a", 2}, {"1", 1}},
                                                 {{"/a/b", 4}, {"2", 1}},
                                                 {{"/a/b/c", 6}, {"3", 1}},
                                                 {{"/a", 2}, {"4", 1}}};
    struct fixture *f = *state;
    struct pat_index *ix = build(f, PAT_BEG, 0, VALUE_INT, prefixes, 4);

    /* The longest prefix, and the first of equal keys. */
    assert_int_equal(find_text(ix, "/a/b/c/d")->value.u.i, 3);
    assert_int_equal(find_text(ix, "/a/b/x")->value.u.i, 2);
    assert_int_equal(find_text(ix, "/ax")->value.u.i, 1);
    assert_null(find_text(ix, "/b"));
    ix = build(f, PAT_STR, 0, VALUE_STR, prefixes, 4);
    assert_true(str_eq(find_text(ix, "/a")->value.u.s, STR("1")));
    assert_true(find_text(ix, "/a")->has_value);
}

static void map_values_are_parsed(void **state)
{
    static const struct {
        enum value_type type;
        const char *value, *why;
    } rows[] = {
        {VALUE_INT, "x", "value 'x' of key 'k' is not an integer"},
        {VALUE_INT, "5 apples", "is not an integer"},
        {VALUE_ADDR, "nope", "value 'nope' of key 'k' is not an IP address"},
        {VALUE_ADDR, "10.0.0.1", NULL},
        {VALUE_ADDR, "::1", NULL},
        {VALUE_INT, "-5", NULL},
        {VALUE_STR, "anything", NULL},
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct fixture *f = *state;
        struct pat_source source = {STR("k"), str_of(rows[i].value)};
        char why[RULES_WHY_BYTES] = "";
        struct pat_index *ix;
        int status = pat_index_build(PAT_STR, 0, rows[i].type, &source, 1, &f->config,
                                     f->c.registry, &ix, why);

        assert_int_equal(status, rows[i].why ? SP_EINVAL : 0);
        if (rows[i].why)
            assert_non_null(strstr(why, rows[i].why));
    }
}

/* The indexes against a search in order. */
static void large_lists_agree_with_a_plain_search(void **state)
{
    enum { N = 2000 };
    struct fixture *f = *state;
    struct pat_source *sources = arena_zalloc(&f->config, N, sizeof *sources);
    struct pat_index *texts, *prefixes, *nets;

    for (int i = 0; i < N; i++)
        sources[i].key = str_of(arena_printf(&f->config, "key-%d-%d", i % 37, i * 7919 % 10007));
    texts = build(f, PAT_STR, 0, VALUE_ANY, sources, N);
    prefixes = build(f, PAT_BEG, 0, VALUE_ANY, sources, N);
    assert_non_null(texts->slots);
    for (int i = 0; i < 3 * N; i++) {
        const char *probe = arena_printf(&f->config, "key-%d-%d", i % 41, i * 31 % 10007);
        bool exact = false, prefix = false;

        for (int k = 0; k < N; k++) {
            exact |= str_eq(sources[k].key, str_of(probe));
            prefix |= str_starts(str_of(probe), sources[k].key);
        }
        assert_int_equal(find_text(texts, probe) != NULL, exact);
        assert_int_equal(find_text(prefixes, probe) != NULL, prefix);
    }
    for (int i = 0; i < N; i++)
        sources[i].key = str_of(
            arena_printf(&f->config, "%d.%d.%d.0/%d", i % 7 + 1, i % 11, i % 13, 12 + i % 13));
    nets = build(f, PAT_IP, 0, VALUE_ANY, sources, N);
    for (int i = 0; i < N; i++) {
        uint8_t v4[4] = {(uint8_t)(i % 9), (uint8_t)(i % 17), (uint8_t)(i % 19), (uint8_t)i};
        struct sample s = {.type = SAMPLE_ADDR, .u.a = value_addr4(v4)};
        bool expected = false;

        for (int k = 0; k < N; k++)
            expected |= addr_net_contains(&nets->entries[k].net, &s.u.a);
        assert_int_equal(pat_index_find(nets, &s) != NULL, expected);
    }
}

static void methods_have_names_and_types(void **state)
{
    static const char *const names[] = {"found", "bool", "int", "ip",  "bin", "len", "str",
                                        "beg",   "sub",  "dir", "dom", "end", "reg"};

    for (size_t i = 0; i < COUNT_OF(names); i++)
        assert_string_equal(pat_match_names[pat_match_find(str_of(names[i]))], names[i]);
    assert_int_equal(pat_match_find(STR("nope")), SP_ENOENT);
    assert_int_equal(pat_match_type(PAT_FOUND), VALUE_ANY);
    assert_int_equal(pat_match_type(PAT_IP), VALUE_ADDR);
    assert_int_equal(pat_match_type(PAT_LEN), VALUE_STR);
    assert_int_equal(pat_match_type(PAT_BIN), VALUE_BIN);
    assert_int_equal(pat_match_type(PAT_BOOL), VALUE_INT);
    assert_false(pat_match_takes_patterns(PAT_FOUND));
    assert_false(pat_match_takes_patterns(PAT_BOOL));
    assert_true(pat_match_takes_patterns(PAT_STR));
}

static void an_empty_index_matches_nothing(void **state)
{
    static const enum pat_match all[] = {PAT_INT, PAT_IP,  PAT_BIN, PAT_LEN, PAT_STR, PAT_BEG,
                                         PAT_SUB, PAT_DIR, PAT_DOM, PAT_END, PAT_REG};

    for (size_t i = 0; i < COUNT_OF(all); i++) {
        struct sample s;

        value_str(&s, STR("10.0.0.1"));
        value_cast(&s, pat_match_type(all[i]), &((struct fixture *)*state)->request);
        assert_null(pat_index_find(build(*state, all[i], 0, VALUE_STR, NULL, 0), &s));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(texts_match_by_method),
        TEST(numbers_match_ranges),
        TEST(addresses_match_networks),
        TEST(bad_patterns_are_refused),
        TEST(maps_answer_with_the_right_entry),
        TEST(map_values_are_parsed),
        TEST(large_lists_agree_with_a_plain_search),
        TEST(methods_have_names_and_types),
        TEST(an_empty_index_matches_nothing),
    };

    return cmocka_run_group_tests_name("rules/pattern", tests, NULL, NULL);
}
