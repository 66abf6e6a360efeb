#include "tls/trust.h"

#include "base/status.h"
#include "tls/errors.h"
#include "tls/identity.h"
#include "tls/pem.h"

#include <dirent.h>
#include <errno.h>
#include <openssl/x509.h>
#include <sys/stat.h>

struct gathering {
    struct tls_store *store;
    struct tls_trust *trust;
    struct cfg_loc loc;
    struct diag *diag;
    struct map seen; /* encoded certificates, so that links and bundles do not repeat them */
    size_t cert_room, crl_room;
    bool lenient; /* the system's folder: what cannot be read is left out */
};

static int add_blob(struct gathering *g, const struct pem_block *block, struct tls_blob **list,
                    size_t *count, size_t *room)
{
    uint8_t *copy = arena_alloc(&g->store->arena, block->len);

    if (*count == *room) {
        size_t more = *room ? *room * 2 : 4;
        struct tls_blob *grown = arena_alloc(&g->store->arena, more * sizeof(*grown));

        if (!grown)
            return SP_ENOMEM;
        if (*count)
            memcpy(grown, *list, *count * sizeof(*grown));
        *list = grown;
        *room = more;
    }
    if (!copy)
        return SP_ENOMEM;
    memcpy(copy, block->der, block->len);
    (*list)[(*count)++] = (struct tls_blob){copy, block->len};
    return 0;
}

static int add_certificate(struct gathering *g, const struct pem_block *block)
{
    struct tls_blob der = {block->der, block->len};
    X509 *x509;
    struct tls_trust *t = g->trust;

    if (map_get(&g->seen, str_make((const char *)block->der, block->len)))
        return 0;
    x509 = tls_decode_cert(NULL, &der);
    if (!x509)
        return SP_EINVAL;
    X509_free(x509);
    if (add_blob(g, block, &t->certs, &t->cert_count, &g->cert_room) != 0)
        return SP_ENOMEM;
    der = t->certs[t->cert_count - 1];
    return map_put(&g->seen, str_make((const char *)der.data, der.len), t);
}

static int add_crl(struct gathering *g, const struct pem_block *block)
{
    const unsigned char *at = block->der;
    X509_CRL *crl = d2i_X509_CRL(NULL, &at, (long)block->len);

    if (!crl)
        return SP_EINVAL;
    X509_CRL_free(crl);
    return add_blob(g, block, &g->trust->crls, &g->trust->crl_count, &g->crl_room);
}

static int refuse(struct gathering *g, const char *path, int line, const char *why)
{
    if (g->lenient)
        return 0;
    if (line)
        diag_error(g->diag, g->loc, "unable to load CA or CRL file %s:%d: %s", path, line, why);
    else
        diag_error(g->diag, g->loc, "unable to load CA or CRL file %s: %s", path, why);
    return SP_EINVAL;
}

static int add_file(struct gathering *g, const char *path)
{
    struct pem_reader reader;
    struct pem_block block;
    char *text = NULL;
    size_t len = 0;
    int got, status = tls_read_file(path, &text, &len);

    if (status != 0)
        return refuse(g, path, 0, status == SP_EIO ? strerror(errno) : "out of memory");
    pem_reader_init(&reader, str_make(text, len));
    while (status == 0 && (got = pem_next(&reader, &block)) != 0) {
        if (got < 0) {
            status = refuse(g, path, reader.line, got == SP_ENOMEM ? "out of memory" : reader.why);
            break;
        }
        if (str_ends(block.label, STR("CERTIFICATE")))
            status = add_certificate(g, &block);
        else if (str_ends(block.label, STR("X509 CRL")))
            status = add_crl(g, &block);
        if (status != 0)
            status = refuse(g, path, block.line,
                            status == SP_ENOMEM ? "out of memory" : tls_last_error_text());
        tls_clear_errors();
        pem_block_release(&block);
    }
    free(text);
    return status;
}

static int is_authority_name(const struct dirent *e)
{
    static const struct str suffixes[] = {STR(".pem"), STR(".crt"), STR(".cer"), STR(".crl")};
    struct str name = str_of(e->d_name);

    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        if (name.ptr[0] != '.' && str_ends(name, suffixes[i]))
            return 1;
    }
    return 0;
}

static int add_folder(struct gathering *g, const char *path)
{
    struct dirent **names;
    int count = scandir(path, &names, is_authority_name, alphasort), status = 0;

    if (count < 0)
        return refuse(g, path, 0, strerror(errno));
    for (int i = 0; i < count; i++) {
        const char *file = arena_printf(&g->store->arena, "%s/%s", path, names[i]->d_name);
        struct stat st;

        if (status == 0 && file && (stat(file, &st) != 0 || !S_ISDIR(st.st_mode)))
            status = add_file(g, file);
        free(names[i]);
    }
    free(names);
    return status;
}

static int add_system(struct gathering *g)
{
    const char *folder = getenv(X509_get_default_cert_dir_env());
    const char *file = getenv(X509_get_default_cert_file_env());
    int status;

    g->lenient = true;
    status = add_folder(g, folder ? folder : X509_get_default_cert_dir());
    if (status == 0 && g->trust->cert_count == 0)
        status = add_file(g, file ? file : X509_get_default_cert_file());
    g->lenient = false;
    return status;
}

static int add_path(struct gathering *g, const char *path)
{
    size_t before = g->trust->cert_count + g->trust->crl_count;
    struct stat st;
    int status;

    if (strcmp(path, "@system-ca") == 0)
        status = add_system(g);
    else if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        status = add_folder(g, path);
    else
        status = add_file(g, path);
    if (status == 0 && g->trust->cert_count + g->trust->crl_count == before &&
        g->trust->cert_count == 0)
        return refuse(g, path, 0, "nothing found in it");
    return status;
}

struct tls_trust *tls_trust_load(struct tls_store *store, const char *ca_file,
                                 const char *ca_verify_file, const char *crl_file,
                                 struct cfg_loc loc, struct diag *diag)
{
    char *key = arena_printf(&store->arena, "%s\n%s\n%s", ca_file ? ca_file : "",
                             ca_verify_file ? ca_verify_file : "", crl_file ? crl_file : "");
    struct tls_trust *trust = key ? map_get(&store->trusts, str_of(key)) : NULL;
    struct gathering g = {.store = store, .loc = loc, .diag = diag};
    int status = 0;

    if (trust)
        return trust;
    g.trust = trust = key ? arena_zalloc(&store->arena, 1, sizeof(*trust)) : NULL;
    if (!trust) {
        diag_error(diag, loc, "unable to load CA files: out of memory");
        return NULL;
    }
    if (ca_file)
        status = add_path(&g, ca_file);
    trust->named_count = trust->cert_count;
    if (status == 0 && ca_verify_file)
        status = add_path(&g, ca_verify_file);
    if (status == 0 && crl_file)
        status = add_path(&g, crl_file);
    map_release(&g.seen);
    if (status != 0)
        return NULL;
    trust->index = store->trusts.count;
    if (map_put(&store->trusts, str_of(key), trust) != 0) {
        diag_error(diag, loc, "unable to load CA files: out of memory");
        return NULL;
    }
    return trust;
}

static int add_to_view(struct tls_trust_view *view, const struct tls_trust *trust,
                       OSSL_LIB_CTX *libctx)
{
    for (size_t i = 0; i < trust->cert_count; i++) {
        X509 *x509 = tls_decode_cert(libctx, &trust->certs[i]);
        X509_NAME *name = NULL;

        if (!x509 || X509_STORE_add_cert(view->store, x509) != 1) {
            X509_free(x509);
            return SP_ENOMEM;
        }
        if (i < trust->named_count)
            name = X509_NAME_dup(X509_get_subject_name(x509));
        X509_free(x509);
        if (name && sk_X509_NAME_find(view->names, name) < 0)
            sk_X509_NAME_push(view->names, name);
        else
            X509_NAME_free(name);
    }
    for (size_t i = 0; i < trust->crl_count; i++) {
        const unsigned char *at = trust->crls[i].data;
        X509_CRL *crl = X509_CRL_new_ex(libctx, NULL);
        bool added = crl && d2i_X509_CRL(&crl, &at, (long)trust->crls[i].len) &&
                     X509_STORE_add_crl(view->store, crl) == 1;

        X509_CRL_free(crl);
        if (!added)
            return SP_ENOMEM;
    }
    if (trust->crl_count)
        X509_STORE_set_flags(view->store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
    return 0;
}

static int compare_names(const X509_NAME *const *a, const X509_NAME *const *b)
{
    return X509_NAME_cmp(*a, *b);
}

struct tls_trust_view *tls_trust_view_new(const struct tls_trust *trust, OSSL_LIB_CTX *libctx)
{
    struct tls_trust_view *view = calloc(1, sizeof(*view));

    if (!view)
        return NULL;
    view->store = X509_STORE_new();
    view->names = sk_X509_NAME_new(compare_names);
    if (!view->store || !view->names || add_to_view(view, trust, libctx) != 0) {
        tls_trust_view_free(view);
        return NULL;
    }
    tls_clear_errors();
    return view;
}

void tls_trust_view_free(struct tls_trust_view *view)
{
    if (!view)
        return;
    X509_STORE_free(view->store);
    sk_X509_NAME_pop_free(view->names, X509_NAME_free);
    free(view);
}
