/* The entry of sallyport.so, the provider for other programs; the binary has it built in. */
#include <sallyport/provider.h>

OSSL_provider_init_fn OSSL_provider_init;

__attribute__((visibility("default"))) int OSSL_provider_init(const OSSL_CORE_HANDLE *handle,
                                                              const OSSL_DISPATCH *in,
                                                              const OSSL_DISPATCH **out,
                                                              void **context)
{
    return sp_provider_init(handle, in, out, context);
}
