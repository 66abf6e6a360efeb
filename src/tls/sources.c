#include "tls/sources.h"

#include "base/status.h"
#include "tls/crt_list.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

static int offer_cert(struct tls_store *store, struct tls_sni *sni, const char *path,
                      const struct tls_offer *offer, struct cfg_loc loc, struct diag *diag)
{
    const struct tls_cert *cert = tls_store_cert(store, path, offer->key_path, loc, diag);
    struct str star = STR("*");

    if (!cert)
        return SP_EINVAL;
    if (tls_sni_add(store, sni, cert, offer->options, offer->names, offer->name_count) != 0 ||
        (offer->is_default && tls_sni_add(store, sni, cert, offer->options, &star, 1) != 0)) {
        diag_error(diag, loc, "unable to load certificate %s: out of memory", path);
        return SP_ENOMEM;
    }
    return 0;
}

int tls_source_file(struct tls_store *store, struct tls_sni *sni, const char *path,
                    const struct tls_offer *offer, struct cfg_loc loc, struct diag *diag)
{
    static const char *const suffixes[] = {".ecdsa", ".rsa", ".dsa"};
    struct tls_offer part_offer = *offer;
    struct stat st;
    int found = 0, status = 0;

    part_offer.is_default |= offer->on_bind && !sni->first;
    if (stat(path, &st) != 0 && errno == ENOENT) {
        for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
            const char *part = arena_printf(&store->arena, "%s%s", path, suffixes[i]);

            if (!part || stat(part, &st) != 0)
                continue;
            found++;
            if (offer_cert(store, sni, part, &part_offer, loc, diag) != 0)
                status = SP_EINVAL;
        }
        if (found)
            return status;
    }
    return offer_cert(store, sni, path, offer, loc, diag);
}

static int is_certificate_name(const struct dirent *e)
{
    static const struct str others[] = {STR(".key"), STR(".issuer"), STR(".ocsp"), STR(".sctl")};
    struct str name = str_of(e->d_name);

    if (name.len == 0 || name.ptr[0] == '.')
        return 0;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (str_ends(name, others[i]))
            return 0;
    }
    return 1;
}

/* By bytes, whatever the locale. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int load_folder(struct tls_store *store, struct tls_sni *sni, const char *path,
                       const struct tls_offer *offer, struct cfg_loc loc, struct diag *diag)
{
    struct dirent **names;
    int count = scandir(path, &names, is_certificate_name, by_name), status = 0;

    if (count < 0) {
        diag_error(diag, loc, "unable to read the certificate folder %s: %s", path,
                   strerror(errno));
        return SP_EINVAL;
    }
    for (int i = 0; i < count; i++) {
        const char *file = arena_printf(&store->arena, "%s/%s", path, names[i]->d_name);
        struct stat st;

        /* A folder inside is not an error, a dangling link is. */
        if (file && (stat(file, &st) != 0 || !S_ISDIR(st.st_mode)) &&
            offer_cert(store, sni, file, offer, loc, diag) != 0)
            status = SP_EINVAL;
        free(names[i]);
    }
    free(names);
    return status;
}

static int load_source(struct tls_store *store, struct tls_sni *sni,
                       const struct tls_server_params *p, const struct tls_cert_source *source,
                       struct diag *diag)
{
    struct tls_offer offer = {.is_default = source->is_default, .on_bind = true};
    const char *path;
    struct stat st;

    if (source->is_crt_list)
        return tls_crt_list_load(store, sni, p, source->path, source->loc, diag);
    path = tls_store_path(store, p->crt_base, source->path);
    if (!path)
        return SP_ENOMEM;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return load_folder(store, sni, path, &offer, source->loc, diag);
    return tls_source_file(store, sni, path, &offer, source->loc, diag);
}

/* Binds with the same sources share one index: they are told apart by this text. */
static char *sources_key(struct tls_store *store, const struct tls_server_params *p)
{
    char *key = arena_cstr(&store->arena, p->crt_base ? p->crt_base : "");

    for (size_t i = 0; key && i < p->source_count; i++) {
        const struct tls_cert_source *s = &p->sources[i];

        key = arena_printf(&store->arena, "%s\n%c%s", key,
                           s->is_crt_list  ? 'l'
                           : s->is_default ? 'd'
                                           : 'f',
                           s->path);
    }
    /* A crt-list's brackets name files below ca-base. */
    return key ? arena_printf(&store->arena, "%s\n%s", key, p->ca_base ? p->ca_base : "") : NULL;
}

struct tls_sni *tls_sni_load(struct tls_store *store, const struct tls_server_params *p,
                             struct diag *diag)
{
    char *key = sources_key(store, p);
    struct tls_sni *sni = key ? map_get(&store->lists, str_of(key)) : NULL;
    unsigned errors = diag->errors;

    if (sni)
        return sni;
    sni = key ? calloc(1, sizeof(*sni)) : NULL;
    if (!sni) {
        diag_error(diag, p->loc, "unable to load certificates: out of memory");
        return NULL;
    }
    map_init(&sni->exact);
    map_init(&sni->wild);
    for (size_t i = 0; i < p->source_count; i++)
        (void)load_source(store, sni, p, &p->sources[i], diag);
    if (diag->errors == errors && map_put(&store->lists, str_of(key), sni) == 0)
        return sni;
    if (diag->errors == errors)
        diag_error(diag, p->loc, "unable to load certificates: out of memory");
    tls_sni_free(sni);
    return NULL;
}
