#include "tls/store.h"

#include "tls/cache.h"
#include "tls/cert_file.h"
#include "tls/random.h"
#include "tls/sni.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

/* Nothing that belongs into a PEM file comes near this. */
#define FILE_MAX_BYTES (64u << 20)

struct tls_store *tls_store_new(void)
{
    struct tls_store *store = calloc(1, sizeof(*store));

    if (!store)
        return NULL;
    tls_random_install();
    arena_init(&store->arena, 65536, 0);
    map_init(&store->certs);
    map_init(&store->chain);
    map_init(&store->lists);
    map_init(&store->trusts);
    map_init(&store->checked);
    atomic_init(&store->references, 1);
    if (RAND_bytes((unsigned char *)&store->id, sizeof(store->id)) != 1) {
        free(store);
        return NULL;
    }
    return store;
}

struct tls_store *tls_store_ref(struct tls_store *store)
{
    atomic_fetch_add_explicit(&store->references, 1, memory_order_relaxed);
    return store;
}

void tls_store_free(struct tls_store *store)
{
    if (!store || atomic_fetch_sub_explicit(&store->references, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < store->cert_count; i++)
        OPENSSL_cleanse(store->all[i]->key.data, store->all[i]->key.len);
    for (size_t i = 0; i < store->lists.capacity; i++)
        tls_sni_free(store->lists.slots[i].value);
    tls_cache_free(store->cache);
    free(store->all);
    map_release(&store->certs);
    map_release(&store->chain);
    map_release(&store->lists);
    map_release(&store->trusts);
    map_release(&store->checked);
    arena_release(&store->arena);
    free(store);
}

static int remember(struct tls_store *store, struct tls_cert *cert, struct str key)
{
    if (store->cert_count == store->cert_room) {
        size_t room = store->cert_room ? store->cert_room * 2 : 16;
        struct tls_cert **all = realloc(store->all, room * sizeof(*all));

        if (!all)
            return SP_ENOMEM;
        store->all = all;
        store->cert_room = room;
    }
    if (map_put(&store->certs, key, cert) != 0)
        return SP_ENOMEM;
    cert->index = store->cert_count;
    store->all[store->cert_count++] = cert;
    return 0;
}

struct tls_cert *tls_store_cert(struct tls_store *store, const char *path, const char *key_path,
                                struct cfg_loc loc, struct diag *diag)
{
    struct str key = str_of(path);
    struct tls_cert *cert;
    char *both;

    if (key_path) {
        both = arena_printf(&store->arena, "%s\n%s", path, key_path);
        if (!both)
            return NULL;
        key = str_of(both);
    }
    cert = map_get(&store->certs, key);
    if (cert)
        return cert;
    cert = tls_cert_load(store, path, key_path, loc, diag);
    if (cert && remember(store, cert, key_path ? key : str_of(cert->path)) != 0) {
        OPENSSL_cleanse(cert->key.data, cert->key.len);
        diag_error(diag, loc, "unable to load certificate %s: out of memory", path);
        return NULL;
    }
    return cert;
}

const char *tls_store_path(struct tls_store *store, const char *base, const char *path)
{
    if (!base || *base == '\0' || *path == '/' || *path == '@')
        return arena_cstr(&store->arena, path);
    return arena_printf(&store->arena, "%s/%s", base, path);
}

int tls_read_file(const char *path, char **data, size_t *len)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), status = SP_EIO;
    size_t have = 0, room;
    struct stat st;
    char *bytes = NULL;

    if (fd < 0)
        return SP_EIO;
    if (fstat(fd, &st) != 0)
        goto out;
    if (S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        goto out;
    }
    /* One byte more than the file has: a short read then tells the end without another call. */
    room = S_ISREG(st.st_mode) && st.st_size < FILE_MAX_BYTES ? (size_t)st.st_size + 1 : 4096;
    bytes = malloc(room);
    while (bytes) {
        ssize_t n = read(fd, bytes + have, room - have);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            goto out;
        have += (size_t)n;
        if (have < room && (n == 0 || (S_ISREG(st.st_mode) && have == (size_t)st.st_size))) {
            *data = bytes;
            *len = have;
            bytes = NULL;
            status = 0;
            goto out;
        }
        if (have == room) {
            char *more;

            errno = EFBIG;
            if (room > FILE_MAX_BYTES)
                goto out;
            room *= 2;
            more = malloc(room);
            if (more)
                memcpy(more, bytes, have);
            OPENSSL_cleanse(bytes, have);
            free(bytes);
            bytes = more;
        }
    }
    status = SP_ENOMEM;
out:
    if (bytes)
        OPENSSL_cleanse(bytes, have);
    free(bytes);
    close(fd);
    return status;
}
