#include "crypto/cryptodev/cryptodev.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES 4096

static struct {
    const struct cryptodev_table *table;
    struct cryptodev_why why;
} loaded;
static pthread_once_t loaded_once = PTHREAD_ONCE_INIT;

/* False: there is no such file. */
static bool try_file(const char *path)
{
    const struct cryptodev_table *table;
    void *module;

    if (access(path, F_OK) != 0)
        return false;
    /* DPDK's threads and constructors stay: it is never unloaded. */
    module = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    table = module ? dlsym(module, CRYPTODEV_TABLE) : NULL;
    if (table && table->version == CRYPTODEV_VERSION) {
        loaded.table = table;
    } else {
        const char *error = module ? "another version of this program left it there" : dlerror();

        snprintf(loaded.why.text, sizeof(loaded.why.text), "%s does not load: %s", CRYPTODEV_MODULE,
                 error);
    }
    return true;
}

static bool try_in(const char *folder, const char *below)
{
    char path[PATH_BYTES + 64];

    snprintf(path, sizeof(path), "%s%s/" CRYPTODEV_MODULE, folder, below);
    return try_file(path);
}

static void load(void)
{
    char folder[PATH_BYTES];
    ssize_t len = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
    char *cut;

    folder[len > 0 ? len : 0] = '\0';
    /* The unit tests stand deeper in the build folder than the program. */
    cut = strstr(folder, "/tests/unit/");
    if (!cut)
        cut = strrchr(folder, '/');
    if (cut)
        *cut = '\0';
    if (cut && (try_in(folder, "") || try_in(folder, "/src/crypto/cryptodev")))
        return;
    if (!try_file(SP_MODULE_FOLDER "/" CRYPTODEV_MODULE))
        snprintf(loaded.why.text, sizeof(loaded.why.text),
                 "built without DPDK: install libdpdk-dev then make clean all");
}

const struct cryptodev_table *cryptodev_load(struct cryptodev_why *why)
{
    pthread_once(&loaded_once, load);
    if (!loaded.table)
        *why = loaded.why;
    return loaded.table;
}

const char *cryptodev_missing(void)
{
    pthread_once(&loaded_once, load);
    return loaded.table ? NULL : loaded.why.text;
}

void cryptodev_use_table(const struct cryptodev_table *table)
{
    pthread_once(&loaded_once, load);
    loaded.table = table;
}
