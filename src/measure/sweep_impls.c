#include "measure/sweep_impl.h"

#include <stdarg.h>
#include <stdio.h>

const struct sweep_impl *const sweep_impls[] = {
    &sweep_impl_openssl,
    &sweep_impl_openssl_update,
    &sweep_impl_ipsec_mb,
    &sweep_impl_cryptodev,
    &sweep_impl_af_alg,
    &sweep_impl_kernel,
    NULL,
};

int sweep_why(struct sweep_why *why, int status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(why->text, sizeof(why->text), format, arguments);
    va_end(arguments);
    return status;
}
