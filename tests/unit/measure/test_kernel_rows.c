/* The rows of the kernel module: what is read, and what is refused. */
#include "measure/impl/kernel_rows.h"

#include <sallyport/status.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEADER                                                                                                       \
    "driver,priority,op,key_bits,mode,threads,depth,request_bytes,requests,bytes,elapsed_ns,busy_ns,async_requests," \
    "errors,p50_ns,p99_ns,status\n"
#define SINGLE \
    "\"xts-aes-aesni\",401,encrypt,512,single,1,1,16,4233,67728,10121230,20242460,0,0,1856,4864,ok\n"
#define ROWS_MAX 4

static struct kernel_row rows[ROWS_MAX];
static size_t count;
static struct sweep_why why;

static int parse(const char *text)
{
    size_t len = strlen(text);
    char *exact = malloc(len ? len : 1); /* so that a sanitizer sees every read beyond the end */
    int status;

    assert_non_null(exact);
    memcpy(exact, text, len);
    count = 77;
    memset(&why, 0, sizeof(why));
    status = kernel_rows_parse(exact, len, rows, ROWS_MAX, &count, &why);
    free(exact);
    return status;
}

static void refuse(const char *text, const char *reason)
{
    assert_int_equal(parse(text), SP_EINVAL);
    assert_int_equal(count, 77);
    if (!strstr(why.text, reason))
        fail_msg("\"%s\" does not say \"%s\"", why.text, reason);
}

static void test_rows(void **state)
{
    assert_int_equal(parse(HEADER), 0);
    assert_int_equal(count, 0);
    assert_int_equal(
        parse(
            HEADER SINGLE
            "\"authenc(hmac(sha256-avx2),cbc-aes-aesni)\",-5,encrypt,256,concurrent,112,3,65536,2,131072,"
            "1,unknown,2,7,unknown,unknown,lost\n"),
        0);
    assert_int_equal(count, 2);
    assert_string_equal(rows[0].driver, "xts-aes-aesni");
    assert_int_equal(rows[0].priority, 401);
    assert_true(rows[0].is_single);
    assert_int_equal(rows[0].request_bytes, 16);
    assert_int_equal(rows[0].sample.requests, 4233);
    assert_int_equal(rows[0].sample.bytes, 67728);
    assert_int_equal(rows[0].sample.elapsed_ns, 10121230);
    assert_int_equal(rows[0].sample.busy_ns, 20242460);
    assert_true(rows[0].sample.own_cpu_ns == UINT64_MAX);
    assert_true(fabs(rows[0].sample.p50_us - 1.856) < 1e-9 &&
                fabs(rows[0].sample.p99_us - 4.864) < 1e-9);
    assert_string_equal(rows[0].status, "ok");

    assert_string_equal(rows[1].driver, "authenc(hmac(sha256-avx2),cbc-aes-aesni)");
    assert_int_equal(rows[1].priority, -5);
    assert_false(rows[1].is_single);
    assert_int_equal(rows[1].threads, 112);
    assert_int_equal(rows[1].depth, 3);
    assert_int_equal(rows[1].sample.async_requests, 2);
    assert_int_equal(rows[1].sample.errors, 7);
    assert_true(rows[1].sample.busy_ns == UINT64_MAX);
    assert_true(isnan(rows[1].sample.p50_us) && isnan(rows[1].sample.p99_us));
    assert_string_equal(rows[1].status, "lost");
}

/* Cut anywhere, it is refused unless the cut is at the end of a line. */
static void test_truncated(void **state)
{
    static const char whole[] = HEADER SINGLE;
    char text[sizeof(whole)];

    for (size_t len = 0; len < sizeof(whole) - 1; len++) {
        memcpy(text, whole, len);
        text[len] = 0;
        if (len == strlen(HEADER)) {
            assert_int_equal(parse(text), 0);
            continue;
        }
        refuse(text, "cut short");
    }
}

static void test_bad_rows(void **state)
{
    refuse("\n", "other columns");
    refuse("driver,priority\n", "other columns");
    refuse(HEADER "\n", "line 2");
    refuse(HEADER SINGLE "\n", "line 3");
    refuse(HEADER "xts-aes-aesni,401,encrypt,512,single,1,1,16,1,16,9,9,0,0,1,1,ok\n", "line 2");
    refuse(HEADER "\"x,401,encrypt,512,single,1,1,16,1,16,9,9,0,0,1,1,ok\n", "line 2");
    refuse(HEADER "\"x\"401,encrypt,512,single,1,1,16,1,16,9,9,0,0,1,1,ok\n", "17 words");
    refuse(HEADER "\"x\",401,encrypt,512,single,1,1,16,1,16,9,9,0,0,1,1\n", "17 words");
    refuse(HEADER "\"x\",401,encrypt,512,single,1,1,16,1,16,9,9,0,0,1,1,ok,more\n", "17 words");
    refuse(HEADER "\"\",401,encrypt,512,single,1,1,16,1,16,9,9,0,0,1,1,ok\n", "driver is \"\"");
    refuse(HEADER "\"x\",high,encrypt,512,single,1,1,16,1,16,9,9,0,0,1,1,ok\n",
           "priority is \"high\"");
    refuse(HEADER "\"x\",1,encrypt,512,double,1,1,16,1,16,9,9,0,0,1,1,ok\n", "mode is \"double\"");
    refuse(HEADER "\"x\",1,encrypt,512,single,0,1,16,1,16,9,9,0,0,1,1,ok\n", "threads is \"0\"");
    refuse(HEADER "\"x\",1,encrypt,512,single,1,1025,16,1,16,9,9,0,0,1,1,ok\n",
           "depth is \"1025\"");
    refuse(HEADER "\"x\",1,encrypt,512,single,1,1,0,1,16,9,9,0,0,1,1,ok\n",
           "request_bytes is \"0\"");
    refuse(HEADER "\"x\",1,encrypt,512,single,1,1,67108865,1,16,9,9,0,0,1,1,ok\n",
           "request_bytes is");
    refuse(HEADER "\"x\",1,encrypt,512,single,1,1,16,-1,16,9,9,0,0,1,1,ok\n", "requests is \"-1\"");
    refuse(HEADER "\"x\",1,encrypt,512,single,1,1,16,18446744073709551615,16,9,9,0,0,1,1,ok\n",
           "requests is");
    refuse(HEADER "\"x\",1,encrypt,512,single,1,1,16,18446744073709551616,16,9,9,0,0,1,1,ok\n",
           "requests is");
    refuse(HEADER "\"x\",1,encrypt,512,single,1,1,16,2,16,9,9,0,0,1,1,ok\n", "bytes is \"16\"");
    refuse(HEADER "\"x\",1,encrypt,512,single,1,1,16,1,16,0,9,0,0,1,1,ok\n", "elapsed_ns is \"0\"");
    refuse(HEADER "\"x\",1,encrypt,512,single,1,1,16,1,16,9,x,0,0,1,1,ok\n", "busy_ns is \"x\"");
    refuse(HEADER "\"x\",1,encrypt,512,single,1,1,16,1,16,9,9,2,0,1,1,ok\n",
           "async_requests is \"2\"");
    refuse(HEADER "\"x\",1,encrypt,512,single,1,1,16,1,16,9,9,0,,1,1,ok\n", "errors is \"\"");
    refuse(HEADER "\"x\",1,encrypt,512,single,1,1,16,1,16,9,9,0,0,1.5,1,ok\n", "p50_ns is \"1.5\"");
    refuse(HEADER "\"x\",1,encrypt,512,single,1,1,16,1,16,9,9,0,0,1,,ok\n", "p99_ns is \"\"");
    refuse(HEADER "\"x\",1,encrypt,512,single,1,1,16,1,16,9,9,0,0,1,1,\n", "status is \"\"");
    refuse(HEADER "\"x\",1,encrypt,512,single,1,1,16,1,16,9,9,0,0,1,1,a-word-that-is-too-long\n",
           "status is");
}

static void test_bounds(void **state)
{
    char driver[KERNEL_DRIVER_BYTES + 1], text[1024];

    memset(driver, 'x', KERNEL_DRIVER_BYTES);
    driver[KERNEL_DRIVER_BYTES] = 0;
    snprintf(text, sizeof(text), HEADER "\"%s\",1,encrypt,512,single,1,1,16,1,16,9,9,0,0,1,1,ok\n",
             driver);
    refuse(text, "driver is");
    driver[KERNEL_DRIVER_BYTES - 1] = 0;
    snprintf(text, sizeof(text), HEADER "\"%s\",1,encrypt,512,single,1,1,16,1,16,9,9,0,0,1,1,ok\n",
             driver);
    assert_int_equal(parse(text), 0);
    assert_string_equal(rows[0].driver, driver);
    assert_int_equal(parse(HEADER SINGLE SINGLE SINGLE SINGLE), 0);
    assert_int_equal(count, ROWS_MAX);
    assert_int_equal(parse(HEADER SINGLE SINGLE SINGLE SINGLE SINGLE), SP_ETOOBIG);
    assert_int_equal(count, 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_bad_rows),
        cmocka_unit_test(test_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
