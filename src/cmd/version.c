#include "cmd/version.h"

#include "tls/tls.h"

#include <stdio.h>
#include <string.h>

/* The HAProxy version whose configuration language is read; version_atleast() compares with it. */
#define LANGUAGE_VERSION "3.2.0"

static const char *const features[] = {"EPOLL", "OPENSSL", "PCRE2", "PCRE2_JIT", "ZLIB", "THREAD", "TFO",
                                       "GETADDRINFO", "LINUX_SPLICE", "ACCEPT4", "PRCTL", "CPU_AFFINITY", NULL};
static const char *const enabled_options[] = {"EPOLL", "GETADDRINFO", "REUSEPORT", NULL};

const struct cfg_environment *version_environment(void)
{
    static struct cfg_environment env = {
        .program_version = SP_VERSION,
        .compatible_version = LANGUAGE_VERSION,
        .ssl_library_name = "OpenSSL",
        .features = features,
        .enabled_options = enabled_options,
    };

    env.ssl_library_text = tls_library_text();
    return &env;
}

void version_print(bool details)
{
    printf("Sallyport version %s\nReads the configuration language of HAProxy %s\n", SP_VERSION, LANGUAGE_VERSION);
    if (!details)
        return;
    printf("TLS library: %s\nCompiler: %s\nFeatures:", tls_library_text(), __VERSION__);
    for (int i = 0; features[i]; i++)
        printf(" +%s", features[i]);
    printf("\nPolling: epoll (edge-triggered), io_uring");
    if (io_uring_missing())
        printf(" (not here: %s)", io_uring_missing());
    printf("\nCrypto lanes: ");
    if (sp_backend_missing(SP_BACKEND_MULTIBUFFER))
        printf("none: %s\n", sp_backend_missing(SP_BACKEND_MULTIBUFFER));
    else
        printf("8, AVX-512 IFMA\n");
}
