#include "base/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void every_code_has_its_own_text(void **state)
{
    for (int a = SP_EWANTCRYPTO; a <= SP_OK; a++) {
        assert_non_null(sp_status_text(a));
        for (int b = SP_EWANTCRYPTO; b < a; b++)
            assert_string_not_equal(sp_status_text(a), sp_status_text(b));
    }
}

static void unknown_codes_have_a_text(void **state)
{
    assert_string_equal(sp_status_text(-1000), "unknown error");
    /* A function that counts bytes succeeds with a positive value. */
    assert_string_equal(sp_status_text(17), sp_status_text(SP_OK));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_its_own_text),
        cmocka_unit_test(unknown_codes_have_a_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
