#include "tls/errors.h"

#include <openssl/err.h>
#include <string.h>

const char *tls_error_reason(unsigned long code)
{
    const char *text;

    if (ERR_SYSTEM_ERROR(code))
        return "system error";
    text = ERR_reason_error_string(code);
    return text ? text : "unknown error";
}

const char *tls_last_error_text(void)
{
    return tls_error_reason(ERR_peek_last_error());
}

void tls_clear_errors(void)
{
    ERR_clear_error();
}
