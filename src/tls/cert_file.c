#include "tls/cert_file.h"

#include "base/clock.h"
#include "base/status.h"
#include "tls/der.h"
#include "tls/errors.h"
#include "tls/identity.h"
#include "tls/pem.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#define CHAIN_MAX 64

/* A load in progress: everything that a diagnostic needs, and what was found so far. */
struct loading {
    struct tls_store *store;
    struct tls_cert *cert;
    const char *path;
    struct cfg_loc loc;
    struct diag *diag;
    const struct tls_blob *chain[CHAIN_MAX];
    enum der_key_form key_form;
    struct der_cert scan;
};

static int out_of_memory(struct loading *l)
{
    diag_error(l->diag, l->loc, "unable to load certificate %s: out of memory", l->path);
    return SP_ENOMEM;
}

static int keep(struct loading *l, const struct pem_block *block, struct tls_blob *out)
{
    uint8_t *copy = arena_alloc(&l->store->arena, block->len);

    if (!copy)
        return out_of_memory(l);
    memcpy(copy, block->der, block->len);
    *out = (struct tls_blob){copy, block->len};
    return 0;
}

/* An issuer's certificate: one copy however many files carry it. */
static int add_to_chain(struct loading *l, const struct pem_block *block, const char *file)
{
    struct str content = str_make((const char *)block->der, block->len);
    struct tls_blob *blob = map_get(&l->store->chain, content);
    struct der_cert scan;

    if (der_cert_scan(content, &scan) != 0) {
        diag_error(l->diag, l->loc,
                   "unable to load certificate chain from %s:%d: malformed certificate", file,
                   block->line);
        return SP_EINVAL;
    }
    if (l->cert->chain_count == CHAIN_MAX) {
        diag_error(l->diag, l->loc,
                   "unable to load certificate chain from %s: more than %d certificates", file,
                   CHAIN_MAX);
        return SP_EINVAL;
    }
    if (!blob) {
        blob = arena_alloc(&l->store->arena, sizeof(*blob));
        if (!blob)
            return out_of_memory(l);
        if (keep(l, block, blob) != 0)
            return SP_ENOMEM;
        if (map_put(&l->store->chain, str_make((const char *)blob->data, blob->len), blob) != 0)
            return out_of_memory(l);
    }
    l->chain[l->cert->chain_count++] = blob;
    return 0;
}

static int add_certificate(struct loading *l, struct pem_block *block, const char *file)
{
    struct tls_cert *cert = l->cert;
    int status;

    if (cert->der.data)
        return add_to_chain(l, block, file);
    if (der_cert_scan(str_make((const char *)block->der, block->len), &l->scan) != 0) {
        diag_error(l->diag, l->loc, "unable to load certificate %s:%d: malformed certificate", file,
                   block->line);
        return SP_EINVAL;
    }
    /* A "TRUSTED CERTIFICATE" carries more after the certificate. */
    block->len = l->scan.whole.len;
    status = keep(l, block, &cert->der);
    if (status != 0)
        return status;
    (void)der_cert_scan(str_make((const char *)cert->der.data, cert->der.len), &l->scan);
    cert->not_before_s = l->scan.not_before_s;
    cert->not_after_s = l->scan.not_after_s;
    cert->key_bits = der_cert_key_size(&l->scan);
    switch (der_cert_key_type(&l->scan)) {
    case DER_KEY_RSA:
        cert->kind = TLS_KEY_RSA;
        break;
    case DER_KEY_EC:
        cert->kind = TLS_KEY_ECDSA;
        break;
    default:
        cert->kind = TLS_KEY_OTHER;
        break;
    }
    return 0;
}

static int add_key(struct loading *l, const struct pem_block *block, const char *file)
{
    static const struct {
        struct str label;
        enum der_key_form form;
        int type;
    } labels[] = {
        {STR("PRIVATE KEY"), DER_FORM_PKCS8, EVP_PKEY_NONE},
        {STR("RSA PRIVATE KEY"), DER_FORM_PKCS1, EVP_PKEY_RSA},
        {STR("EC PRIVATE KEY"), DER_FORM_SEC1, EVP_PKEY_EC},
        {STR("DSA PRIVATE KEY"), DER_FORM_PKCS8, EVP_PKEY_DSA},
    };

    if (l->cert->key.data) /* the first one counts */
        return 0;
    if (block->encrypted || str_eq(block->label, STR("ENCRYPTED PRIVATE KEY"))) {
        diag_error(
            l->diag, l->loc,
            "unable to load private key from %s:%d: it is encrypted, a plain key is expected", file,
            block->line);
        return SP_EINVAL;
    }
    for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++) {
        if (!str_eq(block->label, labels[i].label))
            continue;
        l->key_form = labels[i].form;
        l->cert->key_type = labels[i].type;
        return keep(l, block, &l->cert->key);
    }
    return 0;
}

enum { WANT_CERT = 1, WANT_KEY = 2 };

static int add_blocks(struct loading *l, struct str text, const char *file, unsigned want)
{
    struct pem_reader reader;
    struct pem_block block;
    int got, status = 0;

    pem_reader_init(&reader, text);
    while (status == 0 && (got = pem_next(&reader, &block)) != 0) {
        if (got == SP_ENOMEM)
            return out_of_memory(l);
        if (got < 0) {
            diag_error(l->diag, l->loc, "unable to load %s from %s:%d: %s",
                       want & WANT_CERT ? "certificate" : "private key", file, reader.line,
                       reader.why);
            return SP_EINVAL;
        }
        if ((want & WANT_CERT) && str_ends(block.label, STR("CERTIFICATE")))
            status = add_certificate(l, &block, file);
        else if ((want & WANT_KEY) && str_ends(block.label, STR("PRIVATE KEY")))
            status = add_key(l, &block, file);
        else if ((want & WANT_CERT) && str_ends(block.label, STR("DH PARAMETERS")) &&
                 !l->cert->dh.data)
            status = keep(l, &block, &l->cert->dh);
        pem_block_release(&block);
    }
    return status;
}

/* `optional`: a file that is not there is SP_ENOENT without a diagnostic. */
static int add_file(struct loading *l, const char *file, unsigned want, bool optional)
{
    char *text = NULL;
    size_t len = 0;
    int status = tls_read_file(file, &text, &len);

    if (status == SP_ENOMEM)
        return out_of_memory(l);
    if (status != 0) {
        if (optional && errno == ENOENT)
            return SP_ENOENT;
        diag_error(l->diag, l->loc, "unable to load %s %s: %s",
                   want & WANT_CERT ? "certificate" : "private key", file, strerror(errno));
        return SP_EINVAL;
    }
    status = add_blocks(l, str_make(text, len), file, want);
    OPENSSL_cleanse(text, len);
    free(text);
    return status;
}

static int load_key(struct loading *l, const char *key_path)
{
    const char *beside = arena_printf(&l->store->arena, "%s.key", l->path);
    int status;

    if (!beside)
        return out_of_memory(l);
    if (l->cert->key.data)
        return 0;
    status = add_file(l, key_path ? key_path : beside, WANT_KEY, !key_path);
    if (status != 0 && status != SP_ENOENT)
        return status;
    if (l->cert->key.data)
        return 0;
    if (key_path)
        diag_error(l->diag, l->loc, "no private key found in %s", key_path);
    else
        diag_error(l->diag, l->loc, "no private key found in %s or %s", l->path, beside);
    return SP_EINVAL;
}

/* The library's own comparison, for encodings that do not show the public key. */
static int compare_decoded(struct loading *l)
{
    X509 *x509 = tls_decode_cert(NULL, &l->cert->der);
    EVP_PKEY *key = tls_decode_key(NULL, l->cert);
    int status = SP_EINVAL;

    if (!x509) {
        diag_error(l->diag, l->loc, "unable to load certificate %s: %s", l->path,
                   tls_last_error_text());
    } else if (!key) {
        diag_error(l->diag, l->loc, "unable to load private key of %s: %s", l->path,
                   tls_last_error_text());
    } else if (X509_check_private_key(x509, key) != 1) {
        status = SP_ENOENT;
    } else {
        status = 0;
        if (EVP_PKEY_get_base_id(key) == EVP_PKEY_DSA)
            l->cert->kind = TLS_KEY_DSA;
        else if (EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA_PSS)
            l->cert->kind = TLS_KEY_RSA;
        l->cert->key_bits = (unsigned)EVP_PKEY_get_bits(key);
    }
    tls_clear_errors();
    X509_free(x509);
    EVP_PKEY_free(key);
    return status;
}

static int check_key(struct loading *l)
{
    struct tls_cert *cert = l->cert;
    int status = der_key_matches(str_make((const char *)cert->key.data, cert->key.len), l->key_form,
                                 &l->scan);

    if (status == 0 && cert->key_type == EVP_PKEY_NONE)
        cert->key_type = cert->kind == TLS_KEY_RSA ? EVP_PKEY_RSA : EVP_PKEY_EC;
    if (status == SP_EUNSUPPORTED || (status == SP_EINVAL && cert->kind == TLS_KEY_OTHER))
        status = compare_decoded(l);
    else if (status == SP_EINVAL)
        diag_error(l->diag, l->loc, "unable to load private key of %s: malformed key", l->path);
    if (status == SP_ENOENT) {
        diag_error(l->diag, l->loc, "the private key does not match the certificate %s", l->path);
        return SP_EINVAL;
    }
    return status;
}

struct name_list {
    struct loading *l;
    struct str names[1024];
    size_t count;
};

static int take_name(void *arg, struct str name)
{
    struct name_list *list = arg;
    char *copy;

    if (name.len == 0 || name.len > 255 || str_chr(name, '\0') < name.len)
        return 0;
    if (list->count == sizeof(list->names) / sizeof(list->names[0]))
        return 0;
    copy = arena_alloc(&list->l->store->arena, name.len);
    if (!copy)
        return SP_ENOMEM;
    for (size_t i = 0; i < name.len; i++)
        copy[i] =
            name.ptr[i] >= 'A' && name.ptr[i] <= 'Z' ? (char)(name.ptr[i] | 0x20) : name.ptr[i];
    name.ptr = copy;
    /* The common name usually repeats one of the alternative names. */
    for (size_t i = 0; i < list->count; i++) {
        if (str_eq(list->names[i], name))
            return 0;
    }
    list->names[list->count++] = name;
    return 0;
}

/* Common names in character sets that der_cert_names does not read. */
static int take_decoded_names(struct name_list *list, const struct tls_blob *der)
{
    X509 *x509 = tls_decode_cert(NULL, der);
    const X509_NAME *subject = x509 ? X509_get_subject_name(x509) : NULL;
    int at = -1, status = 0;

    while (status == 0 && subject &&
           (at = X509_NAME_get_index_by_NID((X509_NAME *)subject, NID_commonName, at)) >= 0) {
        unsigned char *text = NULL;
        int len =
            ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));

        if (len > 0)
            status = take_name(list, str_make((char *)text, (size_t)len));
        OPENSSL_free(text);
    }
    tls_clear_errors();
    X509_free(x509);
    return status;
}

static int take_names(struct loading *l)
{
    struct name_list *list = malloc(sizeof(*list));
    struct tls_cert *cert = l->cert;
    int status;

    if (!list)
        return out_of_memory(l);
    list->l = l;
    list->count = 0;
    status = der_cert_names(&l->scan, take_name, list);
    if (status == SP_EUNSUPPORTED)
        status = take_decoded_names(list, &cert->der);
    if (status == 0 && list->count) {
        cert->names = arena_alloc(&l->store->arena, list->count * sizeof(struct str));
        if (cert->names)
            memcpy(cert->names, list->names, list->count * sizeof(struct str));
        else
            status = SP_ENOMEM;
        cert->name_count = list->count;
    }
    free(list);
    if (status == SP_ENOMEM)
        return out_of_memory(l);
    if (status != 0)
        diag_error(l->diag, l->loc, "unable to load certificate %s: malformed names", l->path);
    return status;
}

static void warn_if_expired(struct loading *l)
{
    int64_t now_s = (int64_t)(clock_wall_us() / 1000000);
    char date[CLOCK_HTTP_DATE_BYTES];

    if (l->cert->not_after_s >= now_s)
        return;
    clock_http_date(l->cert->not_after_s > 0 ? (uint64_t)l->cert->not_after_s * 1000000 : 0, date);
    diag_add(l->diag, DIAG_NOTICE, l->loc, "certificate %s expired on %s", l->path, date);
}

struct tls_cert *tls_cert_load(struct tls_store *store, const char *path, const char *key_path,
                               struct cfg_loc loc, struct diag *diag)
{
    struct loading l = {.store = store, .path = path, .loc = loc, .diag = diag};
    struct tls_cert *cert = arena_zalloc(&store->arena, 1, sizeof(*cert));
    const struct tls_blob **chain;

    l.cert = cert;
    if (!cert || !(cert->path = arena_cstr(&store->arena, path))) {
        out_of_memory(&l);
        return NULL;
    }
    if (add_file(&l, path, WANT_CERT | (key_path ? 0 : WANT_KEY), false) != 0)
        goto failed;
    if (!cert->der.data) {
        diag_error(diag, loc, "no certificate found in %s", path);
        goto failed;
    }
    chain = arena_alloc(&store->arena, (cert->chain_count + 1) * sizeof(*chain));
    if (!chain) {
        out_of_memory(&l);
        goto failed;
    }
    memcpy(chain, l.chain, cert->chain_count * sizeof(*chain));
    cert->chain = chain;
    if (load_key(&l, key_path) != 0 || check_key(&l) != 0 || take_names(&l) != 0)
        goto failed;
    warn_if_expired(&l);
    return cert;

failed:
    if (cert->key.data)
        OPENSSL_cleanse(cert->key.data, cert->key.len);
    return NULL;
}
