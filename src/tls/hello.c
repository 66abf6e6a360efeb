#include "tls/hello.h"

#include "tls/conn.h"
#include "tls/crypto.h"
#include "tls/errors.h"
#include "tls/worker.h"

/* Numbers of RFC 8446 section 4.2.3 and RFC 5246 section 7.4.1.4.1. */
enum {
    SIGNATURE_RSA = 1,
    SIGNATURE_ECDSA = 3,
    PSS_RSAE_SHA256 = 0x0804,
    PSS_RSAE_SHA512 = 0x0806,
    PSS_PSS_SHA256 = 0x0809,
    PSS_PSS_SHA512 = 0x080b,
    HASH_SHA512 = 6,
};

static bool extension(SSL *ssl, unsigned type, struct str *out)
{
    const unsigned char *data;
    size_t len;

    if (SSL_client_hello_get0_ext(ssl, type, &data, &len) != 1)
        return false;
    *out = str_make((const char *)data, len);
    return true;
}

static unsigned take_u8(struct str *s)
{
    unsigned value = s->len ? (uint8_t)s->ptr[0] : 0;

    *s = str_from(*s, 1);
    return value;
}

static unsigned take_u16(struct str *s)
{
    unsigned high = take_u8(s);

    return high << 8 | take_u8(s);
}

/* RFC 6066 section 3: a list with, in practice, one name. Empty when there is none. */
static struct str server_name(SSL *ssl)
{
    struct str s;
    unsigned len;

    if (!extension(ssl, TLSEXT_TYPE_server_name, &s) || take_u16(&s) != s.len || take_u8(&s) != 0)
        return STR("");
    len = take_u16(&s);
    return len <= s.len ? str_make(s.ptr, len) : STR("");
}

/* Whether the handshake will be one of TLS 1.3. */
static bool offers_tls13(SSL *ssl, const struct tls_profile *profile)
{
    struct str s;

    if (profile->max_version < TLS1_3_VERSION ||
        !extension(ssl, TLSEXT_TYPE_supported_versions, &s))
        return false;
    for (take_u8(&s); s.len >= 2;) {
        if (take_u16(&s) == TLS1_3_VERSION)
            return true;
    }
    return false;
}

static void read_signatures(SSL *ssl, bool tls13, struct tls_client_abilities *able)
{
    struct str s;

    if (!extension(ssl, TLSEXT_TYPE_signature_algorithms, &s)) {
        /* Before TLS 1.2 nobody says; the cipher suites decide. */
        able->rsa = able->ecdsa = true;
        return;
    }
    for (take_u16(&s); s.len >= 2;) {
        unsigned scheme = take_u16(&s);

        if ((scheme >= PSS_RSAE_SHA256 && scheme <= PSS_RSAE_SHA512) ||
            (scheme >= PSS_PSS_SHA256 && scheme <= PSS_PSS_SHA512))
            able->rsa = true;
        else if (scheme >> 8 <= HASH_SHA512 && (scheme & 0xff) == SIGNATURE_RSA)
            able->rsa |= !tls13;
        else if (scheme >> 8 <= HASH_SHA512 && (scheme & 0xff) == SIGNATURE_ECDSA)
            able->ecdsa = true;
    }
}

/*
 * Up to TLS 1.2 the cipher suite names the kind of certificate: one that both sides know must
 * exist.
 */
static void read_ciphers(SSL *ssl, const STACK_OF(SSL_CIPHER) * ours,
                         struct tls_client_abilities *able)
{
    const unsigned char *list;
    size_t len = SSL_client_hello_get0_ciphers(ssl, &list);
    bool rsa = false, ecdsa = false;

    for (size_t i = 0; i + 2 <= len && !(rsa && ecdsa); i += 2) {
        const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, list + i);
        int auth = cipher ? SSL_CIPHER_get_auth_nid(cipher) : NID_undef;

        if ((auth != NID_auth_rsa || rsa) && (auth != NID_auth_ecdsa || ecdsa))
            continue;
        if (sk_SSL_CIPHER_find((STACK_OF(SSL_CIPHER) *)ours, (SSL_CIPHER *)cipher) < 0)
            continue;
        rsa |= auth == NID_auth_rsa;
        ecdsa |= auth == NID_auth_ecdsa;
    }
    able->rsa &= rsa;
    able->ecdsa &= ecdsa;
}

static struct tls_client_abilities abilities(SSL *ssl, const struct tls_profile *profile)
{
    struct tls_client_abilities able = {0};
    bool tls13 = offers_tls13(ssl, profile);

    read_signatures(ssl, tls13, &able);
    if (!tls13)
        read_ciphers(ssl, SSL_get_ciphers(ssl), &able);
    return able;
}

/* A crt-list line's own settings take the place of the bind line's. */
static bool switch_profile(SSL *ssl, struct tls_conn *c, const struct tls_profile *profile)
{
    size_t index = (size_t)(profile - c->server_ctx->profiles);
    SSL_CTX *ctx = tls_worker_profile(c->worker, c->server_ctx, c->view, index);

    if (!ctx || !SSL_set_SSL_CTX(ssl, ctx))
        return false;
    /* These do not come with the context. */
    SSL_clear_options(ssl, c->profile->options & ~profile->options);
    SSL_set_options(ssl, profile->options);
    SSL_set_verify(ssl, SSL_CTX_get_verify_mode(ctx), SSL_CTX_get_verify_callback(ctx));
    if (SSL_set_min_proto_version(ssl, profile->min_version) != 1 ||
        SSL_set_max_proto_version(ssl, profile->max_version) != 1)
        return false;
    if (profile->curves && SSL_set1_curves_list(ssl, profile->curves) != 1)
        return false;
    c->profile = profile;
    return true;
}

static void remember_refused(struct tls_conn *c, struct str name)
{
    if (name.len)
        c->refused_name = strndup(name.ptr, name.len);
}

static int on_client_hello(SSL *ssl, int *alert, void *arg)
{
    struct tls_conn *c = SSL_get_app_data(ssl);
    struct tls_server_ctx *ctx = c->server_ctx;
    struct str name = server_name(ssl);
    struct tls_client_abilities able = abilities(ssl, c->profile);
    const struct tls_entry *entry =
        tls_sni_choose(ctx->sni, name, &able, ctx->strict_sni, &c->by_name);
    const struct tls_profile *profile;

    if (!entry) {
        *alert = SSL_AD_UNRECOGNIZED_NAME;
        c->error_text = name.len ? "no certificate for this server name" : "no server name sent";
        remember_refused(c, name);
        return SSL_CLIENT_HELLO_ERROR;
    }
    c->entry = entry;
    profile = tls_entry_profile(ctx, entry);
    if (profile != c->profile && !switch_profile(ssl, c, profile)) {
        *alert = SSL_AD_INTERNAL_ERROR;
        c->error_text = "unable to use the settings of the crt-list line";
        remember_refused(c, name);
        return SSL_CLIENT_HELLO_ERROR;
    }
    return SSL_CLIENT_HELLO_SUCCESS;
}

/* Runs only when the handshake is a full one: a resumed one needs no certificate. */
static int on_certificate(SSL *ssl, void *arg)
{
    struct tls_conn *c = SSL_get_app_data(ssl);
    const struct tls_identity *identity;

    if (c->entry && tls_crypto_is_full(c->worker, c->entry->cert)) {
        c->error_text = "too many handshakes wait for the crypto queue";
        tls_worker_count(&c->worker->refused);
        return 0;
    }
    if (!c->entry || c->entry == c->view->installed)
        return 1;
    identity = tls_worker_identity(c->worker, c->view->store, c->entry->cert);
    if (!identity) {
        c->error_text = "unable to decode the certificate";
        return 0;
    }
    SSL_certs_clear(ssl);
    if (SSL_use_cert_and_key(ssl, identity->x509, identity->key, identity->chain, 1) != 1)
        return 0;
    if (identity->dh && EVP_PKEY_up_ref(identity->dh) == 1 &&
        SSL_set0_tmp_dh_pkey(ssl, identity->dh) != 1)
        EVP_PKEY_free(identity->dh);
    return 1;
}

/* Tells the client, and the session, that its name counted. */
static int on_server_name(SSL *ssl, int *alert, void *arg)
{
    const struct tls_conn *c = SSL_get_app_data(ssl);

    return c->by_name || c->server_ctx->single ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

static int on_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                   const unsigned char *in, unsigned in_len, void *arg)
{
    const struct tls_profile *p = ((const struct tls_conn *)SSL_get_app_data(ssl))->profile;

    if (p->alpn && SSL_select_next_proto((unsigned char **)out, out_len, p->alpn, p->alpn_len, in,
                                         in_len) == OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_OK;
    return SSL_TLSEXT_ERR_NOACK;
}

void tls_hello_attach(SSL_CTX *ssl, const struct tls_server_ctx *ctx, size_t profile)
{
    if (!ctx->single)
        SSL_CTX_set_client_hello_cb(ssl, on_client_hello, NULL);
    SSL_CTX_set_cert_cb(ssl, on_certificate, NULL);
    SSL_CTX_set_tlsext_servername_callback(ssl, on_server_name);
    if (ctx->profiles[profile].alpn)
        SSL_CTX_set_alpn_select_cb(ssl, on_alpn, NULL);
    SSL_CTX_set_tlsext_ticket_key_evp_cb(ssl, tls_tickets_callback);
}
