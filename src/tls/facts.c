#include "base/status.h"
#include "tls/conn.h"
#include "tls/dn.h"
#include "tls/errors.h"
#include "tls/worker.h"

#include <openssl/evp.h>
#include <openssl/x509.h>

static int copy_bytes(struct arena *arena, const void *data, size_t len, struct str *out)
{
    struct str copy;

    if (len == 0)
        return SP_ENOENT;
    copy = arena_str(arena, str_make(data, len));
    if (!copy.ptr)
        return SP_ENOMEM;
    *out = copy;
    return 0;
}

static int constant(const char *text, struct str *out)
{
    if (!text || !*text)
        return SP_ENOENT;
    *out = str_of(text);
    return 0;
}

static X509 *peer_cert(const struct tls_conn *c)
{
    return SSL_get0_peer_certificate(c->ssl);
}

/* The certificate that this side has offered. */
static X509 *own_cert(const struct tls_conn *c)
{
    struct tls_identity *identity;

    if (!c->server_ctx)
        return SSL_get_certificate(c->ssl);
    if (!c->entry)
        return NULL;
    identity = tls_worker_identity(c->worker, c->view->store, c->entry->cert);
    tls_clear_errors();
    return identity ? identity->x509 : NULL;
}

/* YYMMDDhhmmssZ: a four-digit year of this century loses its first two digits. */
static int certificate_time(const ASN1_TIME *time, struct arena *arena, struct str *out)
{
    struct str s =
        str_make((const char *)ASN1_STRING_get0_data(time), (size_t)ASN1_STRING_length(time));

    if (ASN1_STRING_type(time) == V_ASN1_GENERALIZEDTIME) {
        if (s.len < 12 || !str_starts(s, STR("20")))
            return SP_ENOENT;
        s = str_from(s, 2);
    }
    return copy_bytes(arena, s.ptr, s.len, out);
}

static int certificate_der(X509 *x509, struct arena *arena, struct str *out)
{
    int len = i2d_X509(x509, NULL);
    unsigned char *copy = len > 0 ? arena_alloc(arena, (size_t)len) : NULL, *at = copy;

    if (!copy)
        return SP_ENOMEM;
    (void)i2d_X509(x509, &at);
    *out = str_make((char *)copy, (size_t)len);
    return 0;
}

static int certificate_sha1(X509 *x509, struct arena *arena, struct str *out)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;

    if (X509_digest(x509, EVP_sha1(), digest, &len) != 1)
        return SP_ENOENT;
    return copy_bytes(arena, digest, len, out);
}

static int certificate_key_algorithm(X509 *x509, struct str *out)
{
    ASN1_OBJECT *algorithm = NULL;

    if (X509_PUBKEY_get0_param(&algorithm, NULL, NULL, NULL, X509_get_X509_PUBKEY(x509)) != 1)
        return SP_ENOENT;
    return constant(OBJ_nid2sn(OBJ_obj2nid(algorithm)), out);
}

enum part {
    PART_SUBJECT,
    PART_ISSUER,
    PART_SERIAL,
    PART_SHA1,
    PART_DER,
    PART_NOT_BEFORE,
    PART_NOT_AFTER,
    PART_KEY_ALG,
    PART_SIG_ALG,
    PART_COMMON_NAME
};

static int certificate_part(X509 *x509, enum part part, struct arena *arena, struct str *out)
{
    const ASN1_INTEGER *serial;

    if (!x509)
        return SP_ENOENT;
    switch (part) {
    case PART_SUBJECT:
        return tls_dn_text(X509_get_subject_name(x509), arena, out);
    case PART_ISSUER:
        return tls_dn_text(X509_get_issuer_name(x509), arena, out);
    case PART_SERIAL:
        serial = X509_get0_serialNumber(x509);
        return copy_bytes(arena, ASN1_STRING_get0_data(serial), (size_t)ASN1_STRING_length(serial),
                          out);
    case PART_SHA1:
        return certificate_sha1(x509, arena, out);
    case PART_DER:
        return certificate_der(x509, arena, out);
    case PART_NOT_BEFORE:
        return certificate_time(X509_get0_notBefore(x509), arena, out);
    case PART_NOT_AFTER:
        return certificate_time(X509_get0_notAfter(x509), arena, out);
    case PART_KEY_ALG:
        return certificate_key_algorithm(x509, out);
    case PART_SIG_ALG:
        return constant(OBJ_nid2sn(X509_get_signature_nid(x509)), out);
    case PART_COMMON_NAME:
        return tls_dn_entry(X509_get_subject_name(x509), STR("CN"), 1, arena, out);
    }
    return SP_ENOENT;
}

/* A server's library keeps the peer's own certificate out of the chain, a client's does not. */
static int peer_chain(const struct tls_conn *c, struct arena *arena, struct str *out)
{
    STACK_OF(X509) *chain = SSL_get_peer_cert_chain(c->ssl);
    X509 *own = c->server_ctx ? peer_cert(c) : NULL;
    int count = chain ? sk_X509_num(chain) : 0;
    size_t total = own ? (size_t)i2d_X509(own, NULL) : 0;
    unsigned char *all, *at;

    for (int i = 0; i < count; i++)
        total += (size_t)i2d_X509(sk_X509_value(chain, i), NULL);
    if (total == 0)
        return SP_ENOENT;
    all = at = arena_alloc(arena, total);
    if (!all)
        return SP_ENOMEM;
    if (own)
        (void)i2d_X509(own, &at);
    for (int i = 0; i < count; i++)
        (void)i2d_X509(sk_X509_value(chain, i), &at);
    *out = str_make((char *)all, total);
    return 0;
}

/*
 * RFC 5929 section 3.1: the first Finished message, which a full handshake's client sends and a
 * resumed one's server.
 */
static int unique_id(const struct tls_conn *c, struct arena *arena, struct str *out)
{
    unsigned char finished[EVP_MAX_MD_SIZE];
    bool by_client = !SSL_session_reused(c->ssl);
    size_t len;

    if (by_client == (c->server_ctx != NULL))
        len = SSL_get_peer_finished(c->ssl, finished, sizeof(finished));
    else
        len = SSL_get_finished(c->ssl, finished, sizeof(finished));
    return copy_bytes(arena, finished, len < sizeof(finished) ? len : sizeof(finished), out);
}

static int session_part(const struct tls_conn *c, bool key, struct arena *arena, struct str *out)
{
    const SSL_SESSION *session = SSL_get_session(c->ssl);
    unsigned char secret[SSL_MAX_MASTER_KEY_LENGTH];
    const unsigned char *id;
    unsigned len = 0;
    int status;

    if (!session)
        return SP_ENOENT;
    if (!key) {
        id = SSL_SESSION_get_id(session, &len);
        return copy_bytes(arena, id, len, out);
    }
    status =
        copy_bytes(arena, secret, SSL_SESSION_get_master_key(session, secret, sizeof(secret)), out);
    OPENSSL_cleanse(secret, sizeof(secret));
    return status;
}

static int server_name(const struct tls_conn *c, struct str *out)
{
    return constant(c->refused_name ? c->refused_name
                                    : SSL_get_servername(c->ssl, TLSEXT_NAMETYPE_host_name),
                    out);
}

static int curve(const struct tls_conn *c, struct str *out)
{
    /* The library looks into the session without asking whether there is one. */
    int nid = SSL_get_session(c->ssl) ? (int)SSL_get_negotiated_group(c->ssl) : 0;

    return nid == 0 ? SP_ENOENT : constant(SSL_group_to_name(c->ssl, nid), out);
}

static int random_part(const struct tls_conn *c, bool client, struct arena *arena, struct str *out)
{
    unsigned char bytes[SSL3_RANDOM_SIZE];
    size_t len = client ? SSL_get_client_random(c->ssl, bytes, sizeof(bytes))
                        : SSL_get_server_random(c->ssl, bytes, sizeof(bytes));

    return copy_bytes(arena, bytes, len, out);
}

static int connection_fact(const struct tls_conn *c, enum tls_fact fact, struct arena *arena,
                           struct str *out)
{
    const unsigned char *alpn = NULL;
    unsigned len = 0;

    switch (fact) {
    case TLS_FACT_VERSION:
        return constant(SSL_get_version(c->ssl), out);
    case TLS_FACT_CIPHER:
        return SSL_get_current_cipher(c->ssl) ? constant(SSL_get_cipher_name(c->ssl), out)
                                              : SP_ENOENT;
    case TLS_FACT_SNI:
        return server_name(c, out);
    case TLS_FACT_ALPN:
        SSL_get0_alpn_selected(c->ssl, &alpn, &len);
        return copy_bytes(arena, alpn, len, out);
    case TLS_FACT_SESSION_ID:
        return session_part(c, false, arena, out);
    case TLS_FACT_SESSION_KEY:
        return session_part(c, true, arena, out);
    case TLS_FACT_UNIQUE_ID:
        return unique_id(c, arena, out);
    case TLS_FACT_PEER_CHAIN_DER:
        return peer_chain(c, arena, out);
    case TLS_FACT_CURVE:
        return curve(c, out);
    case TLS_FACT_CLIENT_RANDOM:
        return random_part(c, true, arena, out);
    case TLS_FACT_SERVER_RANDOM:
        return random_part(c, false, arena, out);
    case TLS_FACT_OWN_PATH:
        return constant(c->entry ? c->entry->cert->path : NULL, out);
    default:
        return SP_ENOENT;
    }
}

int tls_conn_fact(const struct tls_conn *c, enum tls_fact fact, struct arena *arena,
                  struct str *out)
{
    static const struct {
        enum tls_fact fact;
        enum part part;
        bool own;
    } parts[] = {
        {TLS_FACT_PEER_SUBJECT, PART_SUBJECT, false},
        {TLS_FACT_PEER_ISSUER, PART_ISSUER, false},
        {TLS_FACT_PEER_SERIAL, PART_SERIAL, false},
        {TLS_FACT_PEER_SHA1, PART_SHA1, false},
        {TLS_FACT_PEER_DER, PART_DER, false},
        {TLS_FACT_PEER_NOTBEFORE, PART_NOT_BEFORE, false},
        {TLS_FACT_PEER_NOTAFTER, PART_NOT_AFTER, false},
        {TLS_FACT_PEER_KEY_ALG, PART_KEY_ALG, false},
        {TLS_FACT_PEER_SIG_ALG, PART_SIG_ALG, false},
        {TLS_FACT_PEER_CN, PART_COMMON_NAME, false},
        {TLS_FACT_OWN_SUBJECT, PART_SUBJECT, true},
        {TLS_FACT_OWN_ISSUER, PART_ISSUER, true},
        {TLS_FACT_OWN_SERIAL, PART_SERIAL, true},
        {TLS_FACT_OWN_SHA1, PART_SHA1, true},
        {TLS_FACT_OWN_DER, PART_DER, true},
        {TLS_FACT_OWN_NOTBEFORE, PART_NOT_BEFORE, true},
        {TLS_FACT_OWN_NOTAFTER, PART_NOT_AFTER, true},
        {TLS_FACT_OWN_KEY_ALG, PART_KEY_ALG, true},
        {TLS_FACT_OWN_SIG_ALG, PART_SIG_ALG, true},
    };

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (parts[i].fact == fact)
            return certificate_part(parts[i].own ? own_cert(c) : peer_cert(c), parts[i].part, arena,
                                    out);
    }
    return connection_fact(c, fact, arena, out);
}

int tls_conn_name(const struct tls_conn *c, enum tls_name which, struct str entry, int occurrence,
                  bool rfc2253, struct arena *arena, struct str *out)
{
    bool own = which == TLS_NAME_OWN_SUBJECT || which == TLS_NAME_OWN_ISSUER;
    X509 *x509 = own ? own_cert(c) : peer_cert(c);
    const X509_NAME *name;
    STACK_OF(X509) * chain;

    if (which == TLS_NAME_PEER_ROOT) {
        chain = SSL_get0_verified_chain(c->ssl);
        x509 = chain && sk_X509_num(chain) ? sk_X509_value(chain, sk_X509_num(chain) - 1) : NULL;
    }
    if (!x509)
        return SP_ENOENT;
    if (which == TLS_NAME_PEER_ISSUER || which == TLS_NAME_OWN_ISSUER)
        name = X509_get_issuer_name(x509);
    else
        name = X509_get_subject_name(x509);
    if (entry.len)
        return tls_dn_entry(name, entry, occurrence ? occurrence : 1, arena, out);
    return rfc2253 ? tls_dn_rfc2253(name, arena, out) : tls_dn_text(name, arena, out);
}

static int64_t key_bits(const struct tls_conn *c, bool algorithm)
{
    const SSL_CIPHER *cipher = SSL_get_current_cipher(c->ssl);
    int full = 0, used = cipher ? SSL_CIPHER_get_bits(cipher, &full) : 0;

    return algorithm ? full : used;
}

static int64_t version_of(X509 *x509)
{
    return x509 ? X509_get_version(x509) + 1 : 0;
}

int64_t tls_conn_number(const struct tls_conn *c, enum tls_number number)
{
    struct str name;

    switch (number) {
    case TLS_NUMBER_USE_KEYSIZE:
        return key_bits(c, false);
    case TLS_NUMBER_ALG_KEYSIZE:
        return key_bits(c, true);
    case TLS_NUMBER_IS_RESUMED:
        return SSL_session_reused(c->ssl);
    case TLS_NUMBER_PEER_HAS_CERT:
        return peer_cert(c) && !SSL_session_reused(c->ssl);
    case TLS_NUMBER_PEER_CERT_USED:
        return peer_cert(c) != NULL;
    case TLS_NUMBER_VERIFY_RESULT:
        return SSL_get_verify_result(c->ssl);
    case TLS_NUMBER_CA_ERROR:
        return c->ca_error;
    case TLS_NUMBER_CA_ERROR_DEPTH:
        return c->ca_error_depth;
    case TLS_NUMBER_CERT_ERROR:
        return c->cert_error;
    case TLS_NUMBER_HAS_SNI:
        return server_name(c, &name) == 0;
    case TLS_NUMBER_PEER_VERSION:
        return version_of(peer_cert(c));
    case TLS_NUMBER_OWN_VERSION:
        return version_of(own_cert(c));
    case TLS_NUMBER_ERROR:
        return (int64_t)c->error;
    }
    return 0;
}
