#include "measure/impl/kernel_rows.h"

#include "base/str.h"

#include <sallyport/status.h>

#include <math.h>
#include <string.h>

static const char header[] =
    "driver,priority,op,key_bits,mode,threads,depth,request_bytes,requests,bytes,elapsed_ns,"
    "busy_ns,async_requests,errors,p50_ns,p99_ns,status";

enum {
    COLUMN_DRIVER,
    COLUMN_PRIORITY,
    COLUMN_OP,
    COLUMN_KEY_BITS,
    COLUMN_MODE,
    COLUMN_THREADS,
    COLUMN_DEPTH,
    COLUMN_REQUEST_BYTES,
    COLUMN_REQUESTS,
    COLUMN_BYTES,
    COLUMN_ELAPSED_NS,
    COLUMN_BUSY_NS,
    COLUMN_ASYNC_REQUESTS,
    COLUMN_ERRORS,
    COLUMN_P50_NS,
    COLUMN_P99_NS,
    COLUMN_STATUS,
    COLUMNS
};

/* Cuts a line at its commas; the first word stands in quotes, and may have commas within. */
static bool split(struct str line, struct str words[COLUMNS])
{
    size_t end;

    if (line.len < 2 || line.ptr[0] != '"')
        return false;
    line = str_from(line, 1);
    end = str_chr(line, '"');
    words[0] = (struct str){line.ptr, end};
    if (end + 1 >= line.len || line.ptr[end + 1] != ',')
        return false;
    line = str_from(line, end + 2);
    for (unsigned i = 1; i < COLUMNS; i++) {
        end = str_chr(line, ',');
        if ((end == line.len) != (i == COLUMNS - 1))
            return false;
        words[i] = (struct str){line.ptr, end};
        line = str_from(line, end + 1);
    }
    return true;
}

static bool copy_word(struct str word, char *out, size_t size)
{
    if (word.len == 0 || word.len >= size)
        return false;
    memcpy(out, word.ptr, word.len);
    out[word.len] = 0;
    return true;
}

static bool equals(struct str word, const char *text)
{
    return word.len == strlen(text) && memcmp(word.ptr, text, word.len) == 0;
}

/* A number, or "unknown" for `unknown`. */
static bool read_number(struct str word, uint64_t *out)
{
    if (equals(word, "unknown")) {
        *out = UINT64_MAX;
        return true;
    }
    return str_to_u64(word, out) == 0;
}

static bool read_count(struct str word, unsigned max, unsigned *out)
{
    uint64_t value;

    if (str_to_u64(word, &value) != 0 || value == 0 || value > max)
        return false;
    *out = (unsigned)value;
    return true;
}

static double microseconds(uint64_t ns)
{
    return ns == UINT64_MAX ? NAN : (double)ns / 1000;
}

/* The column that is wrong; COLUMNS: none. */
static unsigned read_words(const struct str words[COLUMNS], struct kernel_row *row)
{
    struct sweep_sample *s = &row->sample;
    uint64_t p50_ns, p99_ns;

    row->is_single = equals(words[COLUMN_MODE], "single");
    if (!copy_word(words[COLUMN_DRIVER], row->driver, sizeof(row->driver)))
        return COLUMN_DRIVER;
    if (str_to_i64(words[COLUMN_PRIORITY], &row->priority) != 0)
        return COLUMN_PRIORITY;
    if (!row->is_single && !equals(words[COLUMN_MODE], "concurrent"))
        return COLUMN_MODE;
    if (!read_count(words[COLUMN_THREADS], SWEEP_THREADS_MAX, &row->threads))
        return COLUMN_THREADS;
    if (!read_count(words[COLUMN_DEPTH], SWEEP_DEPTH_MAX, &row->depth))
        return COLUMN_DEPTH;
    if (str_to_u64(words[COLUMN_REQUEST_BYTES], &row->request_bytes) != 0 ||
        row->request_bytes == 0 || row->request_bytes > SWEEP_BYTES_MAX)
        return COLUMN_REQUEST_BYTES;
    if (str_to_u64(words[COLUMN_REQUESTS], &s->requests) != 0 ||
        s->requests > UINT64_MAX / row->request_bytes)
        return COLUMN_REQUESTS;
    if (str_to_u64(words[COLUMN_BYTES], &s->bytes) != 0 ||
        s->bytes != s->requests * row->request_bytes)
        return COLUMN_BYTES;
    if (str_to_u64(words[COLUMN_ELAPSED_NS], &s->elapsed_ns) != 0 || s->elapsed_ns == 0)
        return COLUMN_ELAPSED_NS;
    if (!read_number(words[COLUMN_BUSY_NS], &s->busy_ns))
        return COLUMN_BUSY_NS;
    if (str_to_u64(words[COLUMN_ASYNC_REQUESTS], &s->async_requests) != 0 ||
        s->async_requests > s->requests)
        return COLUMN_ASYNC_REQUESTS;
    if (str_to_u64(words[COLUMN_ERRORS], &s->errors) != 0)
        return COLUMN_ERRORS;
    if (!read_number(words[COLUMN_P50_NS], &p50_ns))
        return COLUMN_P50_NS;
    if (!read_number(words[COLUMN_P99_NS], &p99_ns))
        return COLUMN_P99_NS;
    if (!copy_word(words[COLUMN_STATUS], row->status, sizeof(row->status)))
        return COLUMN_STATUS;
    s->p50_us = microseconds(p50_ns);
    s->p99_us = microseconds(p99_ns);
    s->own_cpu_ns = UINT64_MAX;
    return COLUMNS;
}

/* The name of a column, out of the header. */
static struct str column_name(unsigned column)
{
    struct str rest = STR(header);

    while (column-- > 0)
        rest = str_from(rest, str_chr(rest, ',') + 1);
    return (struct str){rest.ptr, str_chr(rest, ',')};
}

int kernel_rows_parse(const char *text, size_t len, struct kernel_row *rows, size_t max,
                      size_t *count, struct sweep_why *why)
{
    struct str rest = {text, len};
    size_t n = 0;

    for (unsigned number = 1; number == 1 || rest.len; number++) {
        struct kernel_row row = {0};
        struct str words[COLUMNS], line = {rest.ptr, str_chr(rest, '\n')};
        unsigned wrong;

        if (line.len == rest.len)
            return sweep_why(why, SP_EINVAL, "line %u of the module's rows is cut short", number);
        rest = str_from(rest, line.len + 1);
        if (number == 1) {
            if (!equals(line, header))
                return sweep_why(
                    why, SP_EINVAL,
                    "the module's rows have other columns than expected: another version?");
            continue;
        }
        if (!split(line, words))
            return sweep_why(why, SP_EINVAL, "line %u of the module's rows has not %d words",
                             number, COLUMNS);
        wrong = read_words(words, &row);
        if (wrong != COLUMNS)
            return sweep_why(why, SP_EINVAL, "line %u of the module's rows: %.*s is \"%.*s\"",
                             number, (int)column_name(wrong).len, column_name(wrong).ptr,
                             (int)(words[wrong].len < 64 ? words[wrong].len : 64),
                             words[wrong].ptr);
        if (n == max)
            return sweep_why(why, SP_ETOOBIG, "the module has more rows than the %zu expected",
                             max);
        rows[n++] = row;
    }
    *count = n;
    return 0;
}
