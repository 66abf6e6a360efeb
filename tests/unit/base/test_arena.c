#include "base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "failing_alloc.h"

static void takes_nothing_before_the_first_allocation(void **state)
{
    struct arena a;

    arena_init(&a, 0, 0);
    assert_null(a.chunks);
    assert_int_equal(a.chunk_bytes, 4096);
    arena_reset(&a);
    arena_release(&a);
    assert_null(a.chunks);
}

static void allocations_are_aligned_and_apart(void **state)
{
    struct arena a;
    char *previous = NULL;
    size_t previous_bytes = 0;

    arena_init(&a, 256, 0);
    for (size_t bytes = 1; bytes < 600; bytes += 7) {
        char *at = arena_alloc(&a, bytes);

        assert_non_null(at);
        assert_int_equal((uintptr_t)at % 16, 0);
        memset(at, (int)bytes & 0xff, bytes);
        for (size_t i = 0; i < previous_bytes; i++)
            assert_int_equal((uint8_t)previous[i], previous_bytes & 0xff);
        previous = at;
        previous_bytes = bytes;
    }
    arena_release(&a);
}

static void nothing_is_something(void **state)
{
    struct arena a;

    arena_init(&a, 128, 0);
    assert_non_null(arena_alloc(&a, 0));
    assert_non_null(arena_alloc(&a, 0));
    arena_release(&a);
}

static void large_allocations_leave_the_current_chunk(void **state)
{
    struct arena a;
    char *small, *next;

    arena_init(&a, 1024, 0);
    small = arena_alloc(&a, 16);
    assert_non_null(arena_alloc(&a, 100000));
    next = arena_alloc(&a, 16);
    assert_ptr_equal(next, small + 16);
    arena_release(&a);
}

static void reset_reuses_the_memory(void **state)
{
    struct arena a;
    void *first;

    arena_init(&a, 1024, 0);
    assert_non_null(arena_alloc(&a, 5000)); /* a large one first: not the one that is kept */
    for (int i = 0; i < 100; i++)
        assert_non_null(arena_alloc(&a, 100));
    arena_reset(&a);
    assert_int_equal(a.used_bytes, 0);
    first = arena_alloc(&a, 100);
    for (int i = 0; i < 10; i++) {
        arena_reset(&a);
        assert_ptr_equal(arena_alloc(&a, 100), first);
    }
    arena_release(&a);
    assert_non_null(arena_alloc(&a, 10));
    arena_release(&a);
}

static void reset_with_large_chunks_alone(void **state)
{
    struct arena a;

    arena_init(&a, 128, 0);
    assert_non_null(arena_alloc(&a, 5000));
    arena_reset(&a);
    assert_null(a.chunks);
    assert_non_null(arena_alloc(&a, 16));
    arena_release(&a);
}

static void limit_holds_on_every_path(void **state)
{
    struct arena a;

    arena_init(&a, 4096, 1000);
    for (int round = 0; round < 3; round++) {
        size_t got = 0;

        while (arena_alloc(&a, 16))
            got += 16;
        assert_int_equal(got, 992);
        assert_null(arena_alloc(&a, 1));
        arena_reset(&a);
        /* A large allocation counts against what the current chunk may still give. */
        assert_non_null(arena_alloc(&a, 16));
        assert_null(arena_alloc(&a, 2000));
        assert_non_null(arena_alloc(&a, 900));
        assert_non_null(arena_alloc(&a, 64));
        assert_null(arena_alloc(&a, 64));
        assert_true(a.used_bytes <= 1000);
        arena_reset(&a);
    }
    arena_release(&a);
}

static void impossible_sizes_fail(void **state)
{
    struct arena a;

    arena_init(&a, 0, 0);
    assert_null(arena_alloc(&a, SIZE_MAX));
    assert_null(arena_alloc(&a, SIZE_MAX - 15));
    assert_null(arena_alloc(&a, SIZE_MAX / 2));
    assert_null(arena_zalloc(&a, SIZE_MAX / 2, 3));
    assert_null(arena_str(&a, str_make("x", SIZE_MAX)).ptr);
    assert_int_equal(a.used_bytes, 0);
    assert_non_null(arena_alloc(&a, 1));
    arena_release(&a);
}

static void zeroes(void **state)
{
    struct arena a;
    uint8_t *p;

    arena_init(&a, 256, 0);
    memset(arena_alloc(&a, 48), 0xff, 48);
    arena_reset(&a);
    p = arena_zalloc(&a, 12, 4);
    for (int i = 0; i < 48; i++)
        assert_int_equal(p[i], 0);
    assert_non_null(arena_zalloc(&a, 0, 8));
    arena_release(&a);
}

static void copies_strings(void **state)
{
    struct arena a;
    struct str s;

    arena_init(&a, 0, 0);
    s = arena_str(&a, str_make("ab\0c###", 4));
    assert_int_equal(s.len, 4);
    assert_memory_equal(s.ptr, "ab\0c", 5);
    s = arena_str(&a, STR_NULL);
    assert_int_equal(s.len, 0);
    assert_string_equal(s.ptr, "");
    assert_string_equal(arena_cstr(&a, "hello"), "hello");
    assert_null(arena_cstr(&a, NULL));
    assert_string_equal(arena_printf(&a, "%s:%d", "x", 42), "x:42");
    assert_string_equal(arena_printf(&a, "%s", ""), "");
    assert_int_equal(strlen(arena_printf(&a, "%5000d", 1)), 5000);
    arena_release(&a);
}

static void strings_out_of_memory(void **state)
{
    struct arena a;

    arena_init(&a, 0, 32);
    assert_null(arena_str(&a, STR("0123456789012345678901234567890123456789")).ptr);
    assert_null(arena_cstr(&a, "0123456789012345678901234567890123456789"));
    assert_null(arena_printf(&a, "%100d", 1));
    assert_null(arena_zalloc(&a, 3, 16));
    assert_non_null(arena_cstr(&a, "short"));
    arena_release(&a);
}

static void failing_allocations_change_nothing(void **state)
{
    struct arena a;
    char *first;

    arena_init(&a, 256, 0);
    alloc_fails = true;
    assert_null(arena_alloc(&a, 16));
    assert_null(arena_alloc(&a, 5000));
    assert_null(arena_zalloc(&a, 1, 16));
    assert_null(arena_str(&a, STR("x")).ptr);
    assert_null(arena_printf(&a, "x"));
    assert_null(a.chunks);
    alloc_fails = false;
    first = arena_alloc(&a, 16);
    alloc_fails = true;
    assert_null(arena_alloc(&a, 5000));
    assert_ptr_equal(arena_alloc(&a, 16), first + 16); /* the chunk at hand still serves */
    assert_int_equal(a.used_bytes, 32);
    alloc_fails = false;
    arena_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_nothing_before_the_first_allocation),
        cmocka_unit_test(allocations_are_aligned_and_apart),
        cmocka_unit_test(nothing_is_something),
        cmocka_unit_test(large_allocations_leave_the_current_chunk),
        cmocka_unit_test(reset_reuses_the_memory),
        cmocka_unit_test(reset_with_large_chunks_alone),
        cmocka_unit_test(limit_holds_on_every_path),
        cmocka_unit_test(impossible_sizes_fail),
        cmocka_unit_test(failing_allocations_change_nothing),
        cmocka_unit_test(zeroes),
        cmocka_unit_test(copies_strings),
        cmocka_unit_test(strings_out_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
