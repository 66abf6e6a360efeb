#include "base/map.h"

#include "base/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "failing_alloc.h"

static void empty_map(void **state)
{
    struct map m;

    map_init(&m);
    assert_null(map_get(&m, STR("x")));
    assert_null(map_get(&m, STR_NULL));
    map_release(&m);
}

static void puts_and_gets(void **state)
{
    struct map m;
    int a, b;

    map_init(&m);
    assert_int_equal(map_put(&m, STR("a"), &a), 0);
    assert_int_equal(map_put(&m, STR("A"), &b), 0);
    assert_int_equal(map_put(&m, STR("a"), &b), SP_EEXIST);
    assert_ptr_equal(map_get(&m, STR("a")), &a);
    assert_ptr_equal(map_get(&m, STR("A")), &b);
    assert_null(map_get(&m, STR("aa")));
    assert_int_equal(m.count, 2);
    map_release(&m);
    assert_int_equal(m.count, 0);
    assert_int_equal(map_put(&m, STR("a"), &b), 0);
    map_release(&m);
}

static void odd_keys(void **state)
{
    struct map m;
    int a, b;

    map_init(&m);
    assert_int_equal(map_put(&m, STR_NULL, &a), 0);
    assert_int_equal(map_put(&m, STR(""), &b), SP_EEXIST);
    assert_ptr_equal(map_get(&m, STR("")), &a);
    assert_ptr_equal(map_get(&m, STR_NULL), &a);
    assert_int_equal(map_put(&m, str_make("x\0y", 3), &b), 0);
    assert_ptr_equal(map_get(&m, str_make("x\0y", 3)), &b);
    assert_null(map_get(&m, STR("x")));
    map_release(&m);
}

static void grows(void **state)
{
    enum { N = 20000 };
    static char keys[N][8];
    struct map m;

    map_init(&m);
    for (int i = 0; i < N; i++) {
        struct str key = str_make(keys[i], (size_t)snprintf(keys[i], sizeof(keys[i]), "k%d", i));

        assert_int_equal(map_put(&m, key, keys[i]), 0);
        assert_int_equal(map_put(&m, key, NULL), SP_EEXIST);
    }
    assert_int_equal(m.count, N);
    assert_true(m.capacity >= N && (m.capacity & (m.capacity - 1)) == 0);
    for (int i = 0; i < N; i++)
        assert_ptr_equal(map_get(&m, str_of(keys[i])), keys[i]);
    assert_null(map_get(&m, STR("k20000")));
    assert_null(map_get(&m, STR("k")));
    map_release(&m);
}

static void out_of_memory_keeps_the_entries(void **state)
{
    static char keys[64][8];
    struct map m;
    size_t before;

    map_init(&m);
    alloc_fails = true;
    assert_int_equal(map_put(&m, STR("a"), &m), SP_ENOMEM);
    assert_null(map_get(&m, STR("a")));
    alloc_fails = false;
    for (int i = 0; i < 12; i++) { /* three quarters of the first 16 slots */
        snprintf(keys[i], sizeof(keys[i]), "k%d", i);
        assert_int_equal(map_put(&m, str_of(keys[i]), keys[i]), 0);
    }
    before = m.count;
    alloc_fails = true;
    assert_int_equal(map_put(&m, STR("one more"), &m), SP_ENOMEM);
    assert_int_equal(map_put(&m, STR("k0"), &m), SP_EEXIST);
    alloc_fails = false;
    assert_int_equal(m.count, before);
    for (int i = 0; i < 12; i++)
        assert_ptr_equal(map_get(&m, str_of(keys[i])), keys[i]);
    assert_null(map_get(&m, STR("one more")));
    assert_int_equal(map_put(&m, STR("one more"), &m), 0);
    map_release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_map),
        cmocka_unit_test(puts_and_gets),
        cmocka_unit_test(odd_keys),
        cmocka_unit_test(grows),
        cmocka_unit_test(out_of_memory_keeps_the_entries),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
