/*
 * The look at a ClientHello: nothing outside the input is read, a session id lies inside it, and what is judged whole is
 * judged the same with more behind it.
 */
#include "tls/admit.h"
#include "base/status.h"
#include "fuzz_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str bytes = str_make((const char *)data, size), id = STR(""), again;
    int status = tls_hello_may_resume(bytes, &id);

    CHECK(status == 0 || status == 1 || status == SP_EAGAIN || status == SP_EPROTO);
    if (status < 0)
        return 0;
    CHECK(id.len <= 255);
    CHECK(id.len == 0 || (id.ptr >= bytes.ptr && id.ptr + id.len <= bytes.ptr + bytes.len));
    /* Its record alone is enough. */
    CHECK(size >= 5);
    bytes.len = 5 + ((size_t)data[3] << 8 | data[4]);
    CHECK(tls_hello_may_resume(bytes, &again) == status);
    return 0;
}
