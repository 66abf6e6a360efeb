/*
 * The corpus of requests that have made proxies and servers disagree. Each file of SMUGGLING_DIR is
 * a stream as a connection would bring it; verdicts.txt tells how far it is taken.
 */
#include "http_test.h"

#include <dirent.h>

static enum h1_error error_named(const char *name)
{
    static const char *const names[] = {
        [H1_OK] = "H1_OK",
        [H1_BAD_START_LINE] = "H1_BAD_START_LINE",
        [H1_BAD_METHOD] = "H1_BAD_METHOD",
        [H1_BAD_TARGET] = "H1_BAD_TARGET",
        [H1_BAD_VERSION] = "H1_BAD_VERSION",
        [H1_BAD_FIELD_NAME] = "H1_BAD_FIELD_NAME",
        [H1_BAD_FIELD_VALUE] = "H1_BAD_FIELD_VALUE",
        [H1_OBS_FOLD] = "H1_OBS_FOLD",
        [H1_BARE_CR] = "H1_BARE_CR",
        [H1_BAD_LENGTH] = "H1_BAD_LENGTH",
        [H1_LENGTH_AND_CODING] = "H1_LENGTH_AND_CODING",
        [H1_BAD_CODING] = "H1_BAD_CODING",
        [H1_BAD_HOST] = "H1_BAD_HOST",
        [H1_TOO_MANY_FIELDS] = "H1_TOO_MANY_FIELDS",
        [H1_BAD_CHUNK_SIZE] = "H1_BAD_CHUNK_SIZE",
        [H1_BAD_CHUNK] = "H1_BAD_CHUNK",
        [H1_BAD_TRAILER] = "H1_BAD_TRAILER",
        [H1_TOO_LARGE] = "H1_TOO_LARGE",
        [H1_UNKNOWN_CODING] = "H1_UNKNOWN_CODING",
        [H1_BAD_WEBSOCKET] = "H1_BAD_WEBSOCKET",
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return (enum h1_error)i;
    fail_msg("no error is called %s", name);
    return H1_OK;
}

struct verdict {
    unsigned messages;
    enum h1_error error;
};

/* What a connection does with the stream when `piece` bytes more are there at each look. */
static struct verdict judge(struct str stream, size_t piece)
{
    struct verdict v = {0, H1_OK};
    size_t at = 0, have = 0;

    while (at < stream.len) {
        struct h1_scan scan = {0};
        struct h1_body body;
        struct parsed p;
        bool closes;

        parsed_init(&p);
        p.status = SP_EAGAIN;
        if (have <= at)
            have = at + piece < stream.len ? at + piece : stream.len;
        for (;;) {
            parse_step(&p, &scan, str_make(stream.ptr + at, have - at),
                       &(struct parse_args){.limits = &default_limits});
            if (p.status != SP_EAGAIN || have == stream.len)
                break;
            have = have + piece < stream.len ? have + piece : stream.len;
        }
        v.error = p.status == 0 || p.status == SP_EAGAIN ? H1_OK : p.error;
        closes = (p.msg.flags & HTTP_MSG_CONN_CLOSE) || p.msg.version < 11 || p.status != 0;
        if (p.status == 0) {
            at += p.head_bytes;
            h1_body_init(&body, p.msg.framing, p.msg.content_length);
            while (!h1_body_is_done(&body) && !body.error && at < stream.len) {
                size_t n = stream.len - at < piece ? stream.len - at : piece;
                ptrdiff_t used = h1_body_walk(&body, str_make(stream.ptr + at, n));

                at += used > 0 ? (size_t)used : 0;
            }
            v.error = body.error;
            v.messages += h1_body_is_done(&body);
            closes |= !h1_body_is_done(&body);
        }
        parsed_release(&p);
        if (closes)
            break;
    }
    return v;
}

static struct str read_file(const char *name)
{
    char path[512];
    FILE *f;
    char *bytes = malloc(65536);
    size_t n;

    snprintf(path, sizeof path, "%s/%s", SMUGGLING_DIR, name);
    f = fopen(path, "rb");
    if (!f || !bytes)
        fail_msg("cannot read %s", path);
    n = fread(bytes, 1, 65536, f);
    fclose(f);
    return str_make(bytes, n);
}

static void test_verdicts(void **state)
{
    struct str table = read_file("verdicts.txt"), rest = table;
    unsigned files = 0, listed = 0;
    struct dirent *entry;
    DIR *dir;

    while (rest.len) {
        struct str line = str_make(rest.ptr, str_chr(rest, '\n'));
        char text[128], name[64], file[80], error[64];
        unsigned messages;
        struct str stream;

        rest = str_from(rest, line.len + 1);
        if (!line.len || line.ptr[0] == '#')
            continue;
        snprintf(text, sizeof text, "%.*s", STR_FMT(line));
        if (sscanf(text, "%63s %u %63s", name, &messages, error) != 3)
            fail_msg("verdicts.txt: %s", text);
        snprintf(file, sizeof file, "%s.req", name);
        stream = read_file(file);
        for (size_t piece = 1; piece <= stream.len; piece = piece < 8 ? piece + 1 : piece * 2) {
            struct verdict v = judge(stream, piece);

            if (v.messages != messages || v.error != error_named(error))
                fail_msg("%s: %u messages, then %s", name, v.messages, h1_error_text(v.error));
        }
        assert_int_equal(judge(stream, stream.len).messages, messages);
        free((char *)stream.ptr);
        listed++;
    }
    free((char *)table.ptr);
    dir = opendir(SMUGGLING_DIR);
    assert_non_null(dir);
    while ((entry = readdir(dir)))
        files += str_ends(str_of(entry->d_name), STR(".req"));
    closedir(dir);
    assert_int_equal(files, listed);
    assert_true(listed > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_verdicts)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
