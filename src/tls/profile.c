#include "tls/context.h"

#include "base/status.h"
#include "tls/cache.h"
#include "tls/errors.h"
#include "tls/identity.h"
#include "tls/pem.h"

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/err.h>

/* Several records fit into one read: 16 KiB of data, and the next record's beginning. */
#define READ_BUFFER_BYTES 20480

/* --- protocol versions -------------------------------------------------------------- */

static const struct {
    enum tls_version version;
    int number;
    uint64_t option;
    const char *name;
} versions[] = {
    {TLS_VERSION_10, TLS1_VERSION, SSL_OP_NO_TLSv1, "TLSv1.0"},
    {TLS_VERSION_11, TLS1_1_VERSION, SSL_OP_NO_TLSv1_1, "TLSv1.1"},
    {TLS_VERSION_12, TLS1_2_VERSION, SSL_OP_NO_TLSv1_2, "TLSv1.2"},
    {TLS_VERSION_13, TLS1_3_VERSION, SSL_OP_NO_TLSv1_3, "TLSv1.3"},
};

#define VERSION_COUNT (sizeof(versions) / sizeof(versions[0]))

struct version_range {
    enum tls_version min, max;
    bool refused[VERSION_COUNT];
};

/* HAProxy's rule: without a minimum, 1.2 is the least, unless the maximum is below that. */
static int set_versions(struct tls_profile *out, const struct version_range *range,
                        struct diag *diag)
{
    enum tls_version min = range->min, max = range->max;

    if (max == TLS_VERSION_SSL3) {
        diag_error(diag, out->loc, "SSLv3 is not provided by %s", tls_library_text());
        return SP_EINVAL;
    }
    if (max == TLS_VERSION_ANY)
        max = TLS_VERSION_13;
    if (min == TLS_VERSION_ANY)
        min = max < TLS_VERSION_12 ? max : TLS_VERSION_12;
    for (size_t i = 0; i < VERSION_COUNT; i++) {
        if (versions[i].version < min || versions[i].version > max)
            continue;
        if (range->refused[i]) {
            out->options |= versions[i].option;
            continue;
        }
        if (!out->min_version)
            out->min_version = versions[i].number;
        out->max_version = versions[i].number;
    }
    if (out->min_version)
        return 0;
    diag_error(diag, out->loc,
               "all TLS versions are disabled by the combination of ssl-min-ver, "
               "ssl-max-ver and no-tlsv1x");
    return SP_EINVAL;
}

/* --- ALPN -------------------------------------------------------------------------------- */

static int set_alpn(struct tls_profile *out, const char *list, struct diag *diag)
{
    struct str rest = str_of(list);
    size_t at = 0;

    if (rest.len == 0)
        return 0;
    out->alpn = malloc(rest.len + 1);
    if (!out->alpn) {
        diag_error(diag, out->loc, "'alpn': out of memory");
        return SP_ENOMEM;
    }
    for (bool more = true; more;) {
        size_t len = str_chr(rest, ',');

        if (len == 0 || len > 255) {
            diag_error(diag, out->loc,
                       "'alpn' has the value '%s', expected protocol names of 1 to 255 bytes "
                       "separated by commas, for instance h2,http/1.1",
                       list);
            return SP_EINVAL;
        }
        more = len < rest.len;
        out->alpn[at++] = (uint8_t)len;
        memcpy(out->alpn + at, rest.ptr, len);
        at += len;
        rest = str_from(rest, len + 1);
    }
    out->alpn_len = (unsigned)at;
    return 0;
}

/* --- Diffie-Hellman ------------------------------------------------------------------------ */

static int load_dh_file(struct tls_profile *out, struct tls_store *store, const char *path,
                        struct diag *diag)
{
    struct pem_reader reader;
    struct pem_block block;
    char *text = NULL;
    size_t len = 0;
    int got, status = tls_read_file(path, &text, &len);

    if (status != 0) {
        diag_error(diag, out->loc, "unable to load DH parameters %s: %s", path,
                   status == SP_EIO ? strerror(errno) : "out of memory");
        return SP_EINVAL;
    }
    pem_reader_init(&reader, str_make(text, len));
    while (!out->dh.data && (got = pem_next(&reader, &block)) > 0) {
        EVP_PKEY *dh = NULL;

        if (str_ends(block.label, STR("DH PARAMETERS"))) {
            struct tls_blob blob = {block.der, block.len};

            dh = tls_decode_dh(NULL, &blob);
            blob.data = dh ? arena_alloc(&store->arena, block.len) : NULL;
            if (blob.data) {
                memcpy(blob.data, block.der, block.len);
                out->dh = blob;
            }
            EVP_PKEY_free(dh);
        }
        pem_block_release(&block);
    }
    free(text);
    tls_clear_errors();
    if (out->dh.data)
        return 0;
    diag_error(diag, out->loc, "no usable DH parameters found in %s", path);
    return SP_EINVAL;
}

#define DH_SMALLEST "modp_1536"

/*
 * The largest named group (RFC 7919, RFC 3526) of at most `bits`; the smallest one when none is
 * that small.
 */
static const char *dh_group_of(int bits)
{
    if (bits >= 8192)
        return "ffdhe8192";
    if (bits >= 6144)
        return "ffdhe6144";
    if (bits >= 4096)
        return "ffdhe4096";
    if (bits >= 3072)
        return "ffdhe3072";
    return bits >= 2048 ? "ffdhe2048" : DH_SMALLEST;
}

/*
 * HAProxy's rule: a group as large as the certificate's key, at most as large as
 * tune.ssl.default-dh-param; without that, and without parameters in a file, no DHE at all.
 */
static int set_dh(struct tls_profile *out, struct tls_store *store,
                  const struct tls_server_params *p, struct diag *diag)
{
    if (p->dh_file)
        return load_dh_file(out, store, p->dh_file, diag);
    if (p->dh_bits >= 4096)
        out->dh_auto = true;
    else if (p->dh_bits > 0)
        out->dh_group = dh_group_of(p->dh_bits);
    return 0;
}

static EVP_PKEY *named_dh(OSSL_LIB_CTX *libctx, const char *group)
{
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(libctx, "DH", NULL);
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, (char *)group, 0),
        OSSL_PARAM_construct_end(),
    };
    EVP_PKEY *key = NULL;

    if (ctx && EVP_PKEY_fromdata_init(ctx) == 1)
        (void)EVP_PKEY_fromdata(ctx, &key, EVP_PKEY_KEY_PARAMETERS, params);
    EVP_PKEY_CTX_free(ctx);
    return key;
}

static bool apply_dh(const struct tls_profile *p, SSL_CTX *ctx, OSSL_LIB_CTX *libctx)
{
    EVP_PKEY *dh = NULL;

    if (p->dh_auto)
        return SSL_CTX_set_dh_auto(ctx, 1) == 1;
    if (p->dh.data)
        dh = tls_decode_dh(libctx, &p->dh);
    else if (p->dh_group)
        /*
         * Sizes of old configurations would be refused as too weak: the least that is strong
         * enough, then.
         */
        dh = named_dh(libctx,
                      SSL_CTX_get_security_level(ctx) >= 2 && strcmp(p->dh_group, DH_SMALLEST) == 0
                          ? "ffdhe2048"
                          : p->dh_group);
    else
        return true;
    if (dh && SSL_CTX_set0_tmp_dh_pkey(ctx, dh) == 1)
        return true;
    EVP_PKEY_free(dh);
    return false;
}

/* --- verification --------------------------------------------------------------------- */

static int set_ignore(struct tls_profile *out, const char *keyword, const char *list,
                      struct tls_ignore *set, struct diag *diag)
{
    struct str bad = STR_NULL;

    if (!list || tls_ignore_parse(list, set, &bad) == 0)
        return 0;
    diag_error(
        diag, out->loc,
        "'%s' has the value '%.*s', expected 'all' or verification results separated by commas, by "
        "number or name (X509_V_ERR_CERT_HAS_EXPIRED)",
        keyword, STR_FMT(bad));
    return SP_EINVAL;
}

static int set_trust(struct tls_profile *out, struct tls_store *store, const char *base,
                     const char *ca_file, const char *ca_verify_file, const char *crl_file,
                     struct diag *diag)
{
    const char *ca = ca_file ? tls_store_path(store, base, ca_file) : NULL;
    const char *verify = ca_verify_file ? tls_store_path(store, base, ca_verify_file) : NULL;
    const char *crl = crl_file ? tls_store_path(store, base, crl_file) : NULL;

    if (!ca && !verify)
        return 0;
    out->trust = tls_trust_load(store, ca, verify, crl, out->loc, diag);
    return out->trust ? 0 : SP_EINVAL;
}

/* --- from parameters ------------------------------------------------------------------ */

int tls_profile_from_server(struct tls_profile *out, struct tls_store *store,
                            const struct tls_server_params *p, struct diag *diag)
{
    struct version_range range = {
        p->min_version, p->max_version, {p->no_tlsv10, p->no_tlsv11, p->no_tlsv12, p->no_tlsv13}};
    unsigned errors = diag->errors;

    *out = (struct tls_profile){.is_server = true, .loc = p->loc};
    out->ciphers = p->ciphers;
    out->ciphersuites = p->ciphersuites;
    out->curves = p->curves;
    out->sigalgs = p->sigalgs;
    out->client_sigalgs = p->client_sigalgs;
    out->verify = p->verify;
    out->ca_names = !p->no_ca_names;
    out->lifetime_s = p->session_lifetime_s ? p->session_lifetime_s : 300;
    out->cache = p->cache_entries ? store->cache : NULL;
    out->tickets = !p->no_tickets || out->cache ? 1 : 0;
    if (!p->prefer_client_ciphers)
        out->options |= SSL_OP_CIPHER_SERVER_PREFERENCE;
    if (p->no_tickets)
        out->options |= SSL_OP_NO_TICKET;
    (void)set_versions(out, &range, diag);
    if (p->alpn)
        (void)set_alpn(out, p->alpn, diag);
    (void)set_dh(out, store, p, diag);
    (void)set_ignore(out, "ca-ignore-err", p->ca_ignore_err, &out->ca_ignore, diag);
    (void)set_ignore(out, "crt-ignore-err", p->crt_ignore_err, &out->cert_ignore, diag);
    (void)set_trust(out, store, p->ca_base, p->ca_file, p->ca_verify_file, p->crl_file, diag);
    if (p->verify != TLS_VERIFY_NONE && !p->ca_file && !p->ca_verify_file)
        diag_error(diag, p->loc,
                   "'verify' is enabled but no CA file is given: 'ca-file' is expected");
    return diag->errors == errors ? 0 : SP_EINVAL;
}

int tls_profile_from_client(struct tls_profile *out, struct tls_store *store,
                            const struct tls_client_params *p, struct diag *diag)
{
    struct version_range range = {
        p->min_version, p->max_version, {p->no_tlsv10, p->no_tlsv11, p->no_tlsv12, p->no_tlsv13}};
    unsigned errors = diag->errors;

    *out = (struct tls_profile){.loc = p->loc, .verify = p->verify};
    out->ciphers = p->ciphers;
    out->ciphersuites = p->ciphersuites;
    out->curves = p->curves;
    out->sigalgs = p->sigalgs;
    if (p->no_tickets)
        out->options |= SSL_OP_NO_TICKET;
    (void)set_versions(out, &range, diag);
    if (p->alpn)
        (void)set_alpn(out, p->alpn, diag);
    (void)set_trust(out, store, p->ca_base, p->ca_file, NULL, p->crl_file, diag);
    if (p->verify != TLS_VERIFY_NONE && !p->ca_file)
        diag_error(
            diag, p->loc,
            "'verify' is enabled but no CA file is given: 'ca-file' is expected (or 'verify none')");
    return diag->errors == errors ? 0 : SP_EINVAL;
}

void tls_profile_release(struct tls_profile *p)
{
    free(p->alpn);
    p->alpn = NULL;
}

/* --- to the library ------------------------------------------------------------------- */

static bool apply_lists(const struct tls_profile *p, SSL_CTX *ctx, const char **what,
                        const char **value)
{
    struct {
        const char *what, *value;
        int (*apply)(SSL_CTX *ctx, const char *value);
    } lists[] = {
        {"ciphers", p->ciphers, SSL_CTX_set_cipher_list},
        {"ciphersuites", p->ciphersuites, SSL_CTX_set_ciphersuites},
    };

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        *what = lists[i].what;
        *value = lists[i].value;
        if (*value && lists[i].apply(ctx, *value) != 1)
            return false;
    }
    *what = "curves";
    *value = p->curves;
    if (*value && SSL_CTX_set1_curves_list(ctx, *value) != 1)
        return false;
    *what = "sigalgs";
    *value = p->sigalgs;
    if (*value && SSL_CTX_set1_sigalgs_list(ctx, *value) != 1)
        return false;
    *what = "client-sigalgs";
    *value = p->client_sigalgs;
    return !*value || SSL_CTX_set1_client_sigalgs_list(ctx, *value) == 1;
}

static void apply_verify(const struct tls_profile *p, SSL_CTX *ctx,
                         const struct tls_trust_view *trust)
{
    int mode = SSL_VERIFY_NONE;

    if (p->verify != TLS_VERIFY_NONE)
        mode = SSL_VERIFY_PEER;
    if (p->verify == TLS_VERIFY_REQUIRED && p->is_server)
        mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    SSL_CTX_set_verify(ctx, mode, p->is_server ? tls_verify_client : tls_verify_server);
    if (!trust)
        return;
    SSL_CTX_set1_cert_store(ctx, trust->store);
    if (p->is_server && p->verify != TLS_VERIFY_NONE && p->ca_names)
        SSL_CTX_set_client_CA_list(ctx, SSL_dup_CA_list(trust->names));
}

static void apply_sessions(const struct tls_profile *p, SSL_CTX *ctx)
{
    SSL_CTX_set_timeout(ctx, p->lifetime_s);
    SSL_CTX_set_num_tickets(ctx, p->tickets);
    SSL_CTX_set_session_id_context(ctx, p->session_context, sizeof(p->session_context));
    if (p->cache)
        tls_cache_attach(p->cache, ctx);
    else
        SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
}

SSL_CTX *tls_profile_build(const struct tls_profile *p, OSSL_LIB_CTX *libctx,
                           const struct tls_trust_view *trust, const char **what,
                           const char **value)
{
    const uint64_t options =
        SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF;
    SSL_CTX *ctx =
        SSL_CTX_new_ex(libctx, NULL, p->is_server ? TLS_server_method() : TLS_client_method());

    *what = "context";
    *value = NULL;
    if (!ctx)
        return NULL;
    SSL_CTX_set_options(ctx, options | p->options);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                              SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_NO_AUTO_CHAIN);
    SSL_CTX_clear_mode(ctx, SSL_MODE_AUTO_RETRY);
    SSL_CTX_set_read_ahead(ctx, 1);
    SSL_CTX_set_default_read_buffer_len(ctx, READ_BUFFER_BYTES);
    *what = "version";
    if (SSL_CTX_set_min_proto_version(ctx, p->min_version) != 1 ||
        SSL_CTX_set_max_proto_version(ctx, p->max_version) != 1 ||
        !apply_lists(p, ctx, what, value))
        goto failed;
    *what = "DH parameters";
    *value = p->dh_group;
    if (p->is_server && !apply_dh(p, ctx, libctx))
        goto failed;
    apply_verify(p, ctx, trust);
    if (p->is_server)
        apply_sessions(p, ctx);
    *what = "alpn";
    /*
     * A client's list goes out with every hello; a server's is consulted by a callback. Zero is
     * success here.
     */
    if (!p->is_server && p->alpn && SSL_CTX_set_alpn_protos(ctx, p->alpn, p->alpn_len) != 0)
        goto failed;
    return ctx;

failed:
    SSL_CTX_free(ctx);
    return NULL;
}

/*
 * Whether a decoded certificate suits a context: key size and signature against the security level.
 */
static int check_cert(SSL_CTX *ctx, const struct tls_profile *p, const struct tls_cert *cert,
                      struct diag *diag)
{
    struct tls_identity *identity = tls_identity_new(NULL, cert, NULL);
    int status = 0;

    if (!identity ||
        SSL_CTX_use_cert_and_key(ctx, identity->x509, identity->key, identity->chain, 1) != 1) {
        diag_error(diag, p->loc, "unable to use certificate %s: %s", cert->path,
                   tls_last_error_text());
        status = SP_EINVAL;
    }
    tls_identity_free(identity);
    return status;
}

/* Everything that the library could refuse, as one text. */
static char *settings_text(const struct tls_profile *p, struct arena *arena)
{
    return arena_printf(arena, "%d\n%s\n%s\n%s\n%s\n%s\n%d\n%d\n%d\n%s\n%p", p->is_server,
                        p->ciphers ? p->ciphers : "", p->ciphersuites ? p->ciphersuites : "",
                        p->curves ? p->curves : "", p->sigalgs ? p->sigalgs : "",
                        p->client_sigalgs ? p->client_sigalgs : "", p->min_version, p->max_version,
                        p->dh_auto, p->dh_group ? p->dh_group : "", (void *)p->dh.data);
}

static void report_refusal(const struct tls_profile *p, const char *what, const char *value,
                           struct diag *diag)
{
    const char *why = tls_last_error_text();

    /* Curves and algorithms are refused without a word. */
    if (ERR_peek_last_error() == 0)
        why = "unknown name";
    if (value)
        diag_error(diag, p->loc, "'%s' has the value '%s': %s", what, value, why);
    else
        diag_error(diag, p->loc, "unable to set up TLS (%s): %s", what, why);
}

int tls_profile_check(const struct tls_profile *p, struct tls_store *store,
                      const struct tls_cert *cert, struct diag *diag)
{
    char *text = settings_text(p, &store->arena);
    const char *what = NULL, *value = NULL;
    SSL_CTX *ctx;
    int status = 0;

    if (!cert && text && map_get(&store->checked, str_of(text)))
        return 0;
    ERR_clear_error();
    ctx = tls_profile_build(p, NULL, NULL, &what, &value);
    if (!ctx) {
        report_refusal(p, what, value, diag);
        status = SP_EINVAL;
    } else {
        if (text)
            (void)map_put(&store->checked, str_of(text), text);
        if (cert)
            status = check_cert(ctx, p, cert, diag);
    }
    SSL_CTX_free(ctx);
    ERR_clear_error();
    return status;
}
