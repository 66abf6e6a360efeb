/*
 * Paths, types, ranges and conditions of `sallyport origin`.
 */
#include "cmd/origin_files.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* --- paths ------------------------------------------------------------------------- */

static void check_path(const char *target, const char *expected)
{
    char out[ORIGIN_PATH_BYTES];
    size_t len = 0;

    assert_int_equal(origin_path(str_of(target), out, &len), 0);
    assert_string_equal(out, expected);
    assert_int_equal(len, strlen(expected));
}

static void check_no_path(const char *target, int status)
{
    char out[ORIGIN_PATH_BYTES];
    size_t len = 4711;

    assert_int_equal(origin_path(str_of(target), out, &len), status);
    assert_int_equal(len, 4711);
}

static void test_paths(void **state)
{
    char longest[ORIGIN_PATH_BYTES + 1];

    check_path("/", "");
    check_path("", "");
    check_path("*", "*");
    check_path("/a", "a");
    check_path("/a/", "a/");
    check_path("//a///b//", "a/b/");
    check_path("/./a/./b/.", "a/b/");
    check_path("/a/../b", "b");
    check_path("/a/b/../../c", "c");
    check_path("/a/b/..", "a/");
    check_path("/a/..", "");
    check_path("/...", "...");
    check_path("/..a/b..", "..a/b..");
    check_path("/a%20b%2Fc", "a b/c");
    check_path("/a%2F%2E%2e%2fb", "b");
    check_path("/%252e%252e/x", "%2e%2e/x");
    check_path("/a\\..\\b", "a\\..\\b");
    check_no_path("/..", SP_EINVAL);
    check_no_path("/../", SP_EINVAL);
    check_no_path("/a/../..", SP_EINVAL);
    check_no_path("/a/../../a", SP_EINVAL);
    check_no_path("/%2e%2e/x", SP_EINVAL);
    check_no_path("/a%00b", SP_EINVAL);
    check_no_path("/%", SP_EINVAL);
    check_no_path("/%2", SP_EINVAL);
    check_no_path("/%xx", SP_EINVAL);
    memset(longest, 'x', ORIGIN_PATH_BYTES);
    longest[ORIGIN_PATH_BYTES] = '\0';
    check_no_path(longest, SP_ETOOBIG);
    longest[ORIGIN_PATH_BYTES - 1] = '\0';
    check_path(longest, longest);
}

static void test_encoding(void **state)
{
    char out[16];

    assert_int_equal(origin_encode_path(STR("a/B-9._~"), out, sizeof(out)), 8);
    assert_memory_equal(out, "a/B-9._~", 8);
    assert_int_equal(origin_encode_path(STR(" \r\n?\xff"), out, sizeof(out)), 15);
    assert_memory_equal(out, "%20%0D%0A%3F%FF", 15);
    assert_int_equal(origin_encode_path(STR("a "), out, 4), 4);
    assert_int_equal(origin_encode_path(STR("a "), out, 3), SP_ETOOBIG);
    assert_int_equal(origin_encode_path(STR_NULL, out, 0), 0);
}

static void test_types(void **state)
{
    assert_true(str_eq(origin_type(STR("a/b.HTML")), STR("text/html; charset=utf-8")));
    assert_true(str_eq(origin_type(STR("x.tar.gz")), STR("application/gzip")));
    assert_true(str_eq(origin_type(STR("a.css/b")), STR("application/octet-stream")));
    assert_true(str_eq(origin_type(STR("html")), STR("application/octet-stream")));
    assert_true(str_eq(origin_type(STR("a.")), STR("application/octet-stream")));
    assert_true(str_eq(origin_type(STR("")), STR("application/octet-stream")));
}

/* --- opening --------------------------------------------------------------------------- */

static char root[] = "/tmp/sp-origin-XXXXXX";

static void path_in_root(const char *name, char out[256])
{
    snprintf(out, 256, "%s/%s", root, name);
}

static void write_file(const char *name, const char *content)
{
    char path[256];
    FILE *f;

    path_in_root(name, path);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs(content, f);
    fclose(f);
}

static void make_link(const char *target, const char *name)
{
    char path[256];

    path_in_root(name, path);
    assert_int_equal(symlink(target, path), 0);
}

static void make_directory(const char *name)
{
    char path[256];

    path_in_root(name, path);
    assert_int_equal(mkdir(path, 0755), 0);
}

static int make_tree(void **state)
{
    char path[256];

    if (!mkdtemp(root))
        return -1;
    make_directory("site");
    make_directory("site/sub");
    write_file("outside", "outside");
    write_file("site/file", "content");
    write_file("site/sub/deep", "deep");
    make_link("../outside", "site/out");
    make_link("..", "site/up");
    make_link("/etc", "site/absolute");
    make_link("sub/deep", "site/in");
    make_link("sub", "site/sub-link");
    make_link("loop", "site/loop");
    path_in_root("site/fifo", path);
    return mkfifo(path, 0644);
}

static int remove_tree(void **state)
{
    static const char *const names[] = {
        "site/fifo", "site/loop", "site/sub-link", "site/in",   "site/absolute", "site/up",
        "site/out",  "site/file", "site/sub/deep", "site/sub/", "site/",         "outside",
    };
    char path[256];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        path_in_root(names[i], path);
        if (path[strlen(path) - 1] == '/')
            rmdir(path);
        else
            unlink(path);
    }
    return rmdir(root);
}

static void open_site(struct origin_dir *d)
{
    char path[256];

    path_in_root("site", path);
    assert_int_equal(origin_dir_open(d, path), 0);
}

static void check_open(const struct origin_dir *d, const char *path, int64_t size)
{
    struct origin_file f = {.fd = -1};

    assert_int_equal(origin_open(d, path, &f), 0);
    assert_true(fcntl(f.fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(f.is_directory, size < 0);
    if (size >= 0)
        assert_int_equal(f.size, size);
    assert_true(f.etag[0] == '"' && f.etag[strlen(f.etag) - 1] == '"');
    close(f.fd);
}

static void check_missing(const struct origin_dir *d, const char *path)
{
    struct origin_file f = {.fd = -1};

    assert_int_equal(origin_open(d, path, &f), SP_ENOENT);
    assert_int_equal(f.fd, -1);
}

static void check_common(const struct origin_dir *d)
{
    char name[300];

    check_open(d, "", -1);
    check_open(d, "file", 7);
    check_open(d, "sub", -1);
    check_open(d, "sub/", -1);
    check_open(d, "sub/deep", 4);
    check_missing(d, "none");
    check_missing(d, "file/");
    check_missing(d, "file/x");
    check_missing(d, "sub/none");
    check_missing(d, "out");
    check_missing(d, "up");
    check_missing(d, "up/");
    check_missing(d, "up/outside");
    check_missing(d, "absolute");
    check_missing(d, "absolute/passwd");
    check_missing(d, "loop");
    check_missing(d, "fifo");
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    check_missing(d, name);
    memcpy(name + 280, "/y", 3);
    check_missing(d, name);
}

static unsigned open_descriptors(void)
{
    unsigned count = 0;

    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void test_open_beneath(void **state)
{
    struct origin_dir d;
    unsigned before = open_descriptors();

    open_site(&d);
    if (d.resolves_beneath) {
        check_common(&d);
        check_open(&d, "in", 4);
        check_open(&d, "sub-link/deep", 4);
        check_missing(&d, "../outside");
        check_missing(&d, "/etc/passwd");
    }
    origin_dir_close(&d);
    origin_dir_close(&d);
    assert_int_equal(open_descriptors(), before);
}

/* As on a kernel without openat2: nothing outside either, and no links at all. */
static void test_open_stepwise(void **state)
{
    struct origin_dir d;
    unsigned before = open_descriptors();

    open_site(&d);
    d.resolves_beneath = false;
    check_common(&d);
    check_missing(&d, "in");
    check_missing(&d, "sub-link/deep");
    origin_dir_close(&d);
    assert_int_equal(open_descriptors(), before);
}

static void test_dir_errors(void **state)
{
    struct origin_dir d;

    assert_int_equal(origin_dir_open(&d, "/no/such/place"), SP_EIO);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(origin_dir_open(&d, "/dev/null"), SP_EIO);
    assert_int_equal(errno, ENOTDIR);
}

static void test_listing(void **state)
{
    struct origin_dir d;
    struct origin_file f;
    char *html;
    size_t len;

    open_site(&d);
    assert_int_equal(origin_open(&d, "", &f), 0);
    assert_int_equal(origin_listing(f.fd, STR("/<&\">"), &html, &len), 0);
    assert_int_equal(strlen(html), len);
    assert_non_null(strstr(html, "Index of /&lt;&amp;&quot;&gt;"));
    assert_non_null(strstr(html, "<a href=\"./sub/\">sub/</a>"));
    assert_non_null(strstr(html, "<a href=\"./up\">up</a>")); /* a link, not looked through */
    assert_non_null(strstr(html, "href=\"../\""));
    assert_true(strstr(html, "file") < strstr(html, "sub/"));
    free(html);
    assert_int_equal(origin_listing(f.fd, STR("/"), &html, &len), 0);
    assert_null(strstr(html, "../"));
    free(html);
    close(f.fd);
    origin_dir_close(&d);
}

/* --- ranges and conditions ------------------------------------------------------------- */

static unsigned evaluate(const char *range, uint64_t size, struct origin_slice *slice)
{
    struct origin_file f = {.fd = -1, .size = size, .mtime_s = 1000000000, .etag = "\"tag\""};
    struct http_msg m;
    struct arena arena;
    unsigned status;

    arena_init(&arena, 0, 0);
    http_msg_init(&m, &arena);
    m.method = HTTP_GET;
    assert_int_equal(http_msg_add(&m, STR("range"), str_of(range)), 0);
    status = origin_evaluate(&m, &f, slice);
    arena_release(&arena);
    return status;
}

static void check_range(const char *range, uint64_t size, uint64_t first, uint64_t length)
{
    struct origin_slice slice = {0};

    assert_int_equal(evaluate(range, size, &slice), 206);
    assert_int_equal(slice.first, first);
    assert_int_equal(slice.length, length);
}

static void check_status(const char *range, uint64_t size, unsigned status)
{
    struct origin_slice slice = {.first = 4711, .length = 42};

    assert_int_equal(evaluate(range, size, &slice), status);
    assert_int_equal(slice.first, 4711);
    assert_int_equal(slice.length, 42);
}

static void test_ranges(void **state)
{
    check_range("bytes=0-0", 10, 0, 1);
    check_range("BYTES=0-", 10, 0, 10);
    check_range("bytes= 2-3", 10, 2, 2);
    check_range("bytes=9-9", 10, 9, 1);
    check_range("bytes=9-10", 10, 9, 1);
    check_range("bytes=0-18446744073709551615", 10, 0, 10);
    check_range("bytes=0-99999999999999999999999999", 10, 0, 10);
    check_range("bytes=-1", 10, 9, 1);
    check_range("bytes=-10", 10, 0, 10);
    check_range("bytes=-99999999999999999999999999", 10, 0, 10);
    check_range("bytes=1-1", (uint64_t)1 << 62, 1, 1);
    check_status("bytes=10-", 10, 416);
    check_status("bytes=10-20", 10, 416);
    check_status("bytes=99999999999999999999999999-", 10, 416);
    check_status("bytes=-0", 10, 416);
    check_status("bytes=0-0", 0, 416);
    check_status("bytes=-5", 0, 200);
    check_status("bytes=3-2", 10, 200);
    check_status("bytes=", 10, 200);
    check_status("bytes=-", 10, 200);
    check_status("bytes=--1", 10, 200);
    check_status("bytes=1", 10, 200);
    check_status("bytes=1-2x", 10, 200);
    check_status("bytes=1-2,4-5", 10, 200);
    check_status("bytes 1-2", 10, 200);
    check_status("lines=1-2", 10, 200);
    check_status("", 10, 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths),         cmocka_unit_test(test_encoding),
        cmocka_unit_test(test_types),         cmocka_unit_test(test_open_beneath),
        cmocka_unit_test(test_open_stepwise), cmocka_unit_test(test_dir_errors),
        cmocka_unit_test(test_listing),       cmocka_unit_test(test_ranges),
    };

    return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
