#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sweep_case.h"

#include <sallyport/status.h>

#include <stdio.h>
#include <string.h>

#define BYTES_MAX 262144

static const struct sweep_algorithm *find(const char *name)
{
    const struct sweep_algorithm *a = sweep_algorithm_find(name, strlen(name));

    assert_non_null(a);
    return a;
}

static void test_against_openssl(void **state)
{
    struct sweep_device *device = sweep_case_open(&sweep_impl_ipsec_mb, NULL, 1, BYTES_MAX);
    struct sweep_tally tally;

    sweep_case_check_all(&sweep_impl_ipsec_mb, device, BYTES_MAX, &tally);
    printf("# %u combinations checked, %u refused, %u requests done after their submission\n",
           tally.checked, tally.refused, tally.async_requests);
    assert_true(tally.checked > 100);
    /* CBC runs in lanes: the manager kept requests back. */
    assert_true(tally.async_requests > 0);
    sweep_impl_ipsec_mb.device_close(device);
}

static void test_what_it_does_not_do(void **state)
{
    const struct sweep_impl *impl = &sweep_impl_ipsec_mb;
    struct sweep_device *device = sweep_case_open(impl, NULL, 1, BYTES_MAX);
    struct sweep_why why;

    assert_int_equal(impl->supports(device, find("aes-256-xts"), 4096, true, &why),
                     SP_EUNSUPPORTED);
    assert_non_null(strstr(why.text, "does not do aes-256-xts"));
    assert_int_equal(impl->supports(device, find("aes-128-cbc"), 65520, true, &why), 0);
    assert_int_equal(impl->supports(device, find("aes-128-cbc"), 65536, true, &why),
                     SP_EUNSUPPORTED);
    assert_non_null(strstr(why.text, "above 65520 bytes"));
    assert_int_equal(impl->supports(device, find("sha256"), 65534, false, &why), 0);
    assert_int_equal(impl->supports(device, find("sha256"), 65535, false, &why), SP_EUNSUPPORTED);
    assert_int_equal(impl->supports(device, find("aes-256-gcm"), BYTES_MAX, false, &why), 0);
    impl->device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_openssl),
        cmocka_unit_test(test_what_it_does_not_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
