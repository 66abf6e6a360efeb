#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sweep_case.h"

#include <sallyport/status.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define BYTES_MAX 262144
#define THREADS 4

static const struct sweep_impl *const impl = &sweep_impl_cryptodev;

static const struct sweep_algorithm *find(const char *name)
{
    const struct sweep_algorithm *a = sweep_algorithm_find(name, strlen(name));

    assert_non_null(a);
    return a;
}

/* --- every device ------------------------------------------------------------------------------------- */

static void check_device(const char *name, unsigned least)
{
    struct sweep_device *device = sweep_case_open(impl, name, 1, BYTES_MAX);
    struct sweep_tally tally;

    sweep_case_check_all(impl, device, BYTES_MAX, &tally);
    printf("# %s: %u combinations checked, %u refused, %u requests done after their submission\n",
           name, tally.checked, tally.refused, tally.async_requests);
    assert_true(tally.checked >= least);
    impl->device_close(device);
}

static void test_openssl(void **state)
{
    check_device("crypto_openssl", 100);
}

static void test_aesni_mb(void **state)
{
    check_device("crypto_aesni_mb", 100);
}

static void test_aesni_gcm(void **state)
{
    check_device("crypto_aesni_gcm", 30);
}

static void test_scheduler(void **state)
{
    check_device("crypto_scheduler", 100);
    check_device("crypto_scheduler,worker=crypto_openssl,worker=crypto_aesni_mb,mode=round-robin",
                 50);
}

/* --- threads ------------------------------------------------------------------------------------------ */

struct user {
    struct sweep_device *device;
    unsigned number, checked;
    pthread_t id;
};

static void *use(void *arg)
{
    struct user *u = arg;
    unsigned async_requests = 0;
    struct sweep_why why;

    for (unsigned round = 0; round < 8; round++)
        u->checked += sweep_case_check(impl, u->device, u->number, find("aes-128-cbc"), 1024,
                                       round % 2, &async_requests, &why);
    return NULL;
}

static void test_threads(void **state)
{
    struct sweep_device *device = sweep_case_open(impl, "crypto_openssl", THREADS, BYTES_MAX);
    struct user users[THREADS];

    for (unsigned i = 0; i < THREADS; i++) {
        users[i] = (struct user){.device = device, .number = i};
        assert_int_equal(pthread_create(&users[i].id, NULL, use, &users[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(users[i].id, NULL);
        assert_int_equal(users[i].checked, 8);
    }
    impl->device_close(device);
}

static void test_more_sessions_than_pairs(void **state)
{
    struct sweep_device *device = sweep_case_open(impl, "crypto_openssl", 1, 4096);
    struct sweep_key key = {.algorithm = find("aes-128-cbc")};
    struct sweep_session *first, *second = NULL;
    struct sweep_why why = {""};

    assert_int_equal(impl->session_open(device, 0, &key, 4, &first, &why), 0);
    assert_int_equal(impl->session_open(device, 1, &key, 4, &second, &why), SP_EUNSUPPORTED);
    assert_null(second);
    assert_non_null(strstr(why.text, "queue pairs"));
    impl->session_close(first);
    assert_int_equal(impl->session_open(device, 1, &key, 4, &second, &why), 0);
    impl->session_close(second);
    impl->device_close(device);
}

/* --- what goes wrong ---------------------------------------------------------------------------------- */

static void test_reasons(void **state)
{
    struct sweep_device *device = sweep_case_open(impl, "crypto_openssl", 1, BYTES_MAX);
    struct sweep_why why;

    assert_int_equal(impl->supports(device, find("aes-256-xts"), 4096, true, &why),
                     SP_EUNSUPPORTED);
    assert_string_equal(why.text, "crypto_openssl does not do AES-XTS with a key of 64 bytes");
    assert_int_equal(impl->supports(device, find("aes-128-cbc"), 131072, true, &why), 0);
    assert_int_equal(impl->supports(device, find("aes-128-cbc"), 131072, false, &why),
                     SP_EUNSUPPORTED);
    assert_non_null(strstr(why.text, "scatter-gather out of place"));
    assert_int_equal(impl->supports(device, find("aes-128-cbc"), 2 * BYTES_MAX, true, &why),
                     SP_EUNSUPPORTED);
    impl->device_close(device);
}

static void test_null_is_refused(void **state)
{
    struct sweep_device *device = sweep_case_open(impl, "crypto_null", 1, 4096);
    struct sweep_why why;

    for (unsigned i = 0; i < sweep_algorithm_count; i++)
        assert_int_equal(impl->supports(device, &sweep_algorithms[i], 1024, true, &why),
                         SP_EUNSUPPORTED);
    impl->device_close(device);
}

static void test_bad_names(void **state)
{
    static const struct {
        const char *argument;
        int status;
        const char *says;
    } cases[] = {
        {NULL, SP_EINVAL, "crypto_openssl"},
        {"", SP_EINVAL, "crypto_openssl"},
        {"openssl", SP_ENOENT, "'openssl': no such device"},
        {"crypto_nonsense", SP_ENOENT, "crypto_nonsense"},
        {",a=b", SP_EINVAL, "expected the name of a device"},
        {"crypto_openssl,nonsense", SP_EINVAL, "'nonsense': expected param=value"},
        {"crypto_openssl,colour=blue", SP_EINVAL, "'colour=blue': unknown parameter"},
        {"crypto_openssl,max_nb_queue_pairs=1", SP_EUNSUPPORTED, "1 queue pairs, and 2 are needed"},
        {"crypto_scheduler,worker=crypto_nonsense", SP_ENOENT, "crypto_nonsense"},
        {"crypto_scheduler,mode=sideways", SP_EINVAL, "'mode=sideways': unknown parameter"},
        {"crypto_openssl_a_name_that_is_much_longer_than_any_device_of_dpdk_can_have", SP_EINVAL,
         "name of a device"},
    };
    const struct sweep_limits limits = {
        .request_bytes_max = 4096, .threads_max = 2, .depth_max = 4};

    /* Whether there is DPDK at all. */
    impl->device_close(sweep_case_open(impl, "crypto_openssl", 1, 4096));
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sweep_device *device = NULL;
        struct sweep_why why = {""};
        char description[64];

        assert_int_equal(impl->device_open(cases[i].argument, &limits, &device, description,
                                           sizeof(description), &why),
                         cases[i].status);
        assert_null(device);
        if (!strstr(why.text, cases[i].says))
            fail_msg("'%s': expected '%s' in '%s'", cases[i].argument ? cases[i].argument : "",
                     cases[i].says, why.text);
        assert_null(strchr(why.text, '\n'));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_openssl),   cmocka_unit_test(test_aesni_mb),
        cmocka_unit_test(test_aesni_gcm), cmocka_unit_test(test_scheduler),
        cmocka_unit_test(test_threads),   cmocka_unit_test(test_more_sessions_than_pairs),
        cmocka_unit_test(test_reasons),   cmocka_unit_test(test_null_is_refused),
        cmocka_unit_test(test_bad_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
