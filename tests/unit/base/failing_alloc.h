/*
 * Makes malloc and calloc of the code under test fail on demand. The test is
 * linked with --wrap, which sends their calls here.
 */
#ifndef SP_TEST_FAILING_ALLOC_H
#define SP_TEST_FAILING_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

static bool alloc_fails;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    return alloc_fails ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return alloc_fails ? NULL : __real_calloc(count, bytes);
}

#endif
