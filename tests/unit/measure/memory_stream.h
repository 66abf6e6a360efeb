/* What a report writes, as a text. */
#ifndef SP_TESTS_MEASURE_MEMORY_STREAM_H
#define SP_TESTS_MEASURE_MEMORY_STREAM_H

#include <stdio.h>

static char *memory;
static size_t memory_bytes;

static FILE *begin(void)
{
    FILE *out = open_memstream(&memory, &memory_bytes);

    assert_non_null(out);
    return out;
}

/* What was written; the caller frees it. */
static char *end(FILE *out)
{
    assert_int_equal(fclose(out), 0);
    return memory;
}

#endif
