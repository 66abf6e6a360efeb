#include "base/buf.h"

#include "base/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "failing_alloc.h"

static void puts_until_full(void **state)
{
    char mem[8];
    struct buf b = {.mem = mem, .size = sizeof(mem)};

    assert_int_equal(buf_put(&b, STR("hello")), 0);
    assert_int_equal(buf_room(&b), 3);
    assert_int_equal(buf_put(&b, STR("four")), SP_ETOOBIG);
    assert_true(str_eq(buf_str(&b), STR("hello")));
    assert_int_equal(buf_put(&b, STR("!")), 0);
    assert_int_equal(buf_put_u64(&b, 100), SP_ETOOBIG);
    assert_int_equal(buf_put_u64(&b, 10), 0);
    assert_true(str_eq(buf_str(&b), STR("hello!10")));
    assert_int_equal(buf_put_char(&b, 'x'), SP_ETOOBIG);
    assert_int_equal(buf_put(&b, STR_NULL), 0);
    assert_int_equal(buf_put(&b, STR("")), 0);
}

static void consumes_and_compacts(void **state)
{
    char mem[8];
    struct buf b = {.mem = mem, .size = sizeof(mem)};

    assert_int_equal(buf_put(&b, STR("abcdefgh")), 0);
    buf_compact(&b);
    assert_true(str_eq(buf_str(&b), STR("abcdefgh")));
    buf_consume(&b, 3);
    assert_int_equal(buf_room(&b), 0);
    assert_int_equal(buf_put_char(&b, 'i'), SP_ETOOBIG);
    buf_compact(&b);
    assert_int_equal(buf_room(&b), 3);
    assert_int_equal(buf_put(&b, STR("ijk")), 0);
    assert_true(str_eq(buf_str(&b), STR("defghijk")));
    buf_consume(&b, 8);
    assert_int_equal(b.head, 0); /* an empty buffer rewinds */
    assert_int_equal(buf_room(&b), 8);
    memcpy(buf_end(&b), "xy", 2);
    buf_commit(&b, 2);
    assert_memory_equal(buf_data(&b), "xy", 2);
    buf_clear(&b);
    assert_int_equal(buf_len(&b), 0);
}

static void prints_with_an_exact_fit(void **state)
{
    char mem[10] = "##########";
    struct buf b = {.mem = mem, .size = 8};

    assert_int_equal(buf_printf(&b, "%s-%d", "abc", 12), 0);
    assert_true(str_eq(buf_str(&b), STR("abc-12")));
    assert_int_equal(buf_printf(&b, "%s", "xyz"), SP_ETOOBIG);
    assert_true(str_eq(buf_str(&b), STR("abc-12")));
    assert_int_equal(buf_printf(&b, "%s", "xy"), 0);
    assert_true(str_eq(buf_str(&b), STR("abc-12xy")));
    assert_int_equal(buf_printf(&b, "%d", 1), SP_ETOOBIG);
    assert_int_equal(buf_printf(&b, "%s", ""), 0);
    assert_true(str_eq(buf_str(&b), STR("abc-12xy")));
    assert_memory_equal(mem + 8, "##", 2);
}

static void works_without_storage(void **state)
{
    struct buf b = {0};

    assert_int_equal(buf_len(&b), 0);
    assert_int_equal(buf_str(&b).len, 0);
    assert_int_equal(buf_put(&b, STR("")), 0);
    assert_int_equal(buf_put(&b, STR("x")), SP_ETOOBIG);
    assert_int_equal(buf_put_char(&b, 'x'), SP_ETOOBIG);
    assert_int_equal(buf_printf(&b, "x"), SP_ETOOBIG);
    assert_null(buf_data(&b));
    assert_null(buf_end(&b));
    buf_compact(&b);
    buf_consume(&b, 0);
}

static void pool_reuses_and_bounds(void **state)
{
    struct buf_pool pool;
    struct buf b[4] = {{0}};
    char *first;

    buf_pool_init(&pool, 64, 2, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(buf_pool_get(&pool, &b[i]), 0);
        assert_int_equal(b[i].size, 64);
        memset(b[i].mem, i, 64);
    }
    assert_int_equal(buf_pool_get(&pool, &b[3]), SP_ENOMEM);
    assert_null(b[3].mem);
    /* A buffer with storage keeps it, and its contents. */
    first = b[0].mem;
    assert_int_equal(buf_put(&b[0], STR("kept")), 0);
    assert_int_equal(buf_pool_get(&pool, &b[0]), 0);
    assert_ptr_equal(b[0].mem, first);
    assert_int_equal(buf_len(&b[0]), 4);

    for (int i = 0; i < 3; i++) {
        buf_pool_put(&pool, &b[i]);
        assert_null(b[i].mem);
        assert_int_equal(b[i].size, 0);
    }
    buf_pool_put(&pool, &b[3]); /* no storage: left alone */
    assert_int_equal(pool.out_count, 0);
    assert_int_equal(pool.free_count, 2); /* keep_count */
    assert_int_equal(buf_pool_get(&pool, &b[0]), 0);
    assert_int_equal(pool.free_count, 1);
    assert_int_equal(buf_len(&b[0]), 0);
    buf_pool_release(&pool);
    assert_int_equal(pool.free_count, 0);
    buf_pool_put(&pool, &b[0]);
    buf_pool_release(&pool);
}

static void pool_unbounded_and_tiny(void **state)
{
    struct buf_pool pool;
    struct buf b[20] = {{0}};

    buf_pool_init(&pool, 1, 0, 0);
    for (int i = 0; i < 20; i++)
        assert_int_equal(buf_pool_get(&pool, &b[i]), 0);
    assert_true(b[0].size >= sizeof(void *)); /* room for the link of the free list */
    for (int i = 0; i < 20; i++)
        buf_pool_put(&pool, &b[i]);
    assert_int_equal(pool.free_count, 0);
    assert_null(pool.free_list);
    buf_pool_release(&pool);
}

static void pool_out_of_memory(void **state)
{
    struct buf_pool pool;
    struct buf a = {0}, b = {0};

    buf_pool_init(&pool, 64, 1, 0);
    assert_int_equal(buf_pool_get(&pool, &a), 0);
    buf_pool_put(&pool, &a);
    alloc_fails = true;
    assert_int_equal(buf_pool_get(&pool, &a), 0); /* from the free list */
    assert_int_equal(buf_pool_get(&pool, &b), SP_ENOMEM);
    assert_null(b.mem);
    assert_int_equal(pool.out_count, 1);
    alloc_fails = false;
    buf_pool_put(&pool, &a);
    buf_pool_release(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(puts_until_full),          cmocka_unit_test(consumes_and_compacts),
        cmocka_unit_test(prints_with_an_exact_fit), cmocka_unit_test(works_without_storage),
        cmocka_unit_test(pool_reuses_and_bounds),   cmocka_unit_test(pool_unbounded_and_tiny),
        cmocka_unit_test(pool_out_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
