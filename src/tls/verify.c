#include "tls/verify.h"

#include "base/status.h"
#include "tls/conn.h"
#include "tls/context.h"

#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#define CODE(name)  \
    {               \
#name, name \
    }

static const struct {
    const char *name;
    int code;
} codes[] = {
    CODE(X509_V_OK),
    CODE(X509_V_ERR_UNSPECIFIED),
    CODE(X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT),
    CODE(X509_V_ERR_UNABLE_TO_GET_CRL),
    CODE(X509_V_ERR_UNABLE_TO_DECRYPT_CERT_SIGNATURE),
    CODE(X509_V_ERR_UNABLE_TO_DECRYPT_CRL_SIGNATURE),
    CODE(X509_V_ERR_UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY),
    CODE(X509_V_ERR_CERT_SIGNATURE_FAILURE),
    CODE(X509_V_ERR_CRL_SIGNATURE_FAILURE),
    CODE(X509_V_ERR_CERT_NOT_YET_VALID),
    CODE(X509_V_ERR_CERT_HAS_EXPIRED),
    CODE(X509_V_ERR_CRL_NOT_YET_VALID),
    CODE(X509_V_ERR_CRL_HAS_EXPIRED),
    CODE(X509_V_ERR_ERROR_IN_CERT_NOT_BEFORE_FIELD),
    CODE(X509_V_ERR_ERROR_IN_CERT_NOT_AFTER_FIELD),
    CODE(X509_V_ERR_ERROR_IN_CRL_LAST_UPDATE_FIELD),
    CODE(X509_V_ERR_ERROR_IN_CRL_NEXT_UPDATE_FIELD),
    CODE(X509_V_ERR_OUT_OF_MEM),
    CODE(X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT),
    CODE(X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN),
    CODE(X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY),
    CODE(X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE),
    CODE(X509_V_ERR_CERT_CHAIN_TOO_LONG),
    CODE(X509_V_ERR_CERT_REVOKED),
    CODE(X509_V_ERR_INVALID_CA),
    CODE(X509_V_ERR_PATH_LENGTH_EXCEEDED),
    CODE(X509_V_ERR_INVALID_PURPOSE),
    CODE(X509_V_ERR_CERT_UNTRUSTED),
    CODE(X509_V_ERR_CERT_REJECTED),
    CODE(X509_V_ERR_SUBJECT_ISSUER_MISMATCH),
    CODE(X509_V_ERR_AKID_SKID_MISMATCH),
    CODE(X509_V_ERR_AKID_ISSUER_SERIAL_MISMATCH),
    CODE(X509_V_ERR_KEYUSAGE_NO_CERTSIGN),
    CODE(X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER),
    CODE(X509_V_ERR_UNHANDLED_CRITICAL_EXTENSION),
    CODE(X509_V_ERR_KEYUSAGE_NO_CRL_SIGN),
    CODE(X509_V_ERR_UNHANDLED_CRITICAL_CRL_EXTENSION),
    CODE(X509_V_ERR_INVALID_NON_CA),
    CODE(X509_V_ERR_PROXY_PATH_LENGTH_EXCEEDED),
    CODE(X509_V_ERR_KEYUSAGE_NO_DIGITAL_SIGNATURE),
    CODE(X509_V_ERR_PROXY_CERTIFICATES_NOT_ALLOWED),
    CODE(X509_V_ERR_INVALID_EXTENSION),
    CODE(X509_V_ERR_INVALID_POLICY_EXTENSION),
    CODE(X509_V_ERR_NO_EXPLICIT_POLICY),
    CODE(X509_V_ERR_DIFFERENT_CRL_SCOPE),
    CODE(X509_V_ERR_UNSUPPORTED_EXTENSION_FEATURE),
    CODE(X509_V_ERR_UNNESTED_RESOURCE),
    CODE(X509_V_ERR_PERMITTED_VIOLATION),
    CODE(X509_V_ERR_EXCLUDED_VIOLATION),
    CODE(X509_V_ERR_SUBTREE_MINMAX),
    CODE(X509_V_ERR_NO_ISSUER_PUBLIC_KEY),
    CODE(X509_V_ERR_APPLICATION_VERIFICATION),
    CODE(X509_V_ERR_UNSUPPORTED_CONSTRAINT_TYPE),
    CODE(X509_V_ERR_UNSUPPORTED_CONSTRAINT_SYNTAX),
    CODE(X509_V_ERR_UNSUPPORTED_NAME_SYNTAX),
    CODE(X509_V_ERR_CRL_PATH_VALIDATION_ERROR),
    CODE(X509_V_ERR_PATH_LOOP),
    CODE(X509_V_ERR_SUITE_B_INVALID_VERSION),
    CODE(X509_V_ERR_SUITE_B_INVALID_ALGORITHM),
    CODE(X509_V_ERR_SUITE_B_INVALID_CURVE),
    CODE(X509_V_ERR_SUITE_B_INVALID_SIGNATURE_ALGORITHM),
    CODE(X509_V_ERR_SUITE_B_LOS_NOT_ALLOWED),
    CODE(X509_V_ERR_SUITE_B_CANNOT_SIGN_P_384_WITH_P_256),
    CODE(X509_V_ERR_HOSTNAME_MISMATCH),
    CODE(X509_V_ERR_EMAIL_MISMATCH),
    CODE(X509_V_ERR_IP_ADDRESS_MISMATCH),
    CODE(X509_V_ERR_DANE_NO_MATCH),
    CODE(X509_V_ERR_EE_KEY_TOO_SMALL),
    CODE(X509_V_ERR_CA_KEY_TOO_SMALL),
    CODE(X509_V_ERR_CA_MD_TOO_WEAK),
    CODE(X509_V_ERR_INVALID_CALL),
    CODE(X509_V_ERR_STORE_LOOKUP),
    CODE(X509_V_ERR_NO_VALID_SCTS),
    CODE(X509_V_ERR_PROXY_SUBJECT_NAME_VIOLATION),
    CODE(X509_V_ERR_OCSP_VERIFY_NEEDED),
    CODE(X509_V_ERR_OCSP_VERIFY_FAILED),
    CODE(X509_V_ERR_OCSP_CERT_UNKNOWN),
    CODE(X509_V_ERR_UNSUPPORTED_SIGNATURE_ALGORITHM),
    CODE(X509_V_ERR_SIGNATURE_ALGORITHM_MISMATCH),
    CODE(X509_V_ERR_SIGNATURE_ALGORITHM_INCONSISTENCY),
    CODE(X509_V_ERR_PATHLEN_INVALID_FOR_NON_CA),
    CODE(X509_V_ERR_PATHLEN_WITHOUT_KU_KEY_CERT_SIGN),
    CODE(X509_V_ERR_KU_KEY_CERT_SIGN_INVALID_FOR_NON_CA),
    CODE(X509_V_ERR_ISSUER_NAME_EMPTY),
    CODE(X509_V_ERR_SUBJECT_NAME_EMPTY),
    CODE(X509_V_ERR_MISSING_AUTHORITY_KEY_IDENTIFIER),
    CODE(X509_V_ERR_MISSING_SUBJECT_KEY_IDENTIFIER),
    CODE(X509_V_ERR_EMPTY_SUBJECT_ALT_NAME),
    CODE(X509_V_ERR_EMPTY_SUBJECT_SAN_NOT_CRITICAL),
    CODE(X509_V_ERR_CA_BCONS_NOT_CRITICAL),
    CODE(X509_V_ERR_AUTHORITY_KEY_IDENTIFIER_CRITICAL),
    CODE(X509_V_ERR_SUBJECT_KEY_IDENTIFIER_CRITICAL),
    CODE(X509_V_ERR_CA_CERT_MISSING_KEY_USAGE),
    CODE(X509_V_ERR_EXTENSIONS_REQUIRE_VERSION_3),
    CODE(X509_V_ERR_EC_KEY_EXPLICIT_PARAMS),
};

#define CODE_COUNT (sizeof(codes) / sizeof(codes[0]))

const char *tls_verify_code_name(int code)
{
    for (size_t i = 0; i < CODE_COUNT; i++) {
        if (codes[i].code == code)
            return codes[i].name;
    }
    return NULL;
}

int tls_verify_code_parse(struct str s)
{
    uint64_t number;

    if (str_to_u64(s, &number) == 0)
        return number < TLS_VERIFY_CODES ? (int)number : SP_EINVAL;
    for (size_t i = 0; i < CODE_COUNT; i++) {
        if (str_ieq(s, str_of(codes[i].name)))
            return codes[i].code;
    }
    return SP_EINVAL;
}

int tls_ignore_parse(const char *list, struct tls_ignore *out, struct str *bad)
{
    struct tls_ignore set = {0};
    struct str rest = str_of(list);

    if (str_eq(rest, STR("all"))) {
        memset(out, 0xff, sizeof(*out));
        return 0;
    }
    while (rest.len) {
        size_t len = str_chr(rest, ',');
        struct str word = str_trim(str_make(rest.ptr, len));
        int code = tls_verify_code_parse(word);

        if (code < 0) {
            *bad = word;
            return SP_EINVAL;
        }
        set.bits[code / 64] |= (uint64_t)1 << (code % 64);
        rest = str_from(rest, len + 1);
    }
    *out = set;
    return 0;
}

static struct tls_conn *conn_of(X509_STORE_CTX *ctx)
{
    SSL *ssl = X509_STORE_CTX_get_ex_data(ctx, SSL_get_ex_data_X509_STORE_CTX_idx());

    return SSL_get_app_data(ssl);
}

/*
 * Remembers the first error of authorities and of the certificate itself; overlooks what the bind
 * line says.
 */
int tls_verify_client(int ok, X509_STORE_CTX *ctx)
{
    struct tls_conn *c = conn_of(ctx);
    int depth = X509_STORE_CTX_get_error_depth(ctx), code = X509_STORE_CTX_get_error(ctx);
    const struct tls_profile *profile = c->profile;

    if (ok)
        return 1;
    if (depth > 0) {
        if (!c->ca_error) {
            c->ca_error = (uint8_t)code;
            c->ca_error_depth = (uint8_t)depth;
        }
        if (tls_ignore_has(&profile->ca_ignore, code))
            return 1;
        c->failure = TLS_FAILURE_PEER_CA;
        return 0;
    }
    if (!c->cert_error)
        c->cert_error = (uint8_t)code;
    if (tls_ignore_has(&profile->cert_ignore, code))
        return 1;
    c->failure = TLS_FAILURE_PEER_CERT;
    return 0;
}

/*
 * Whether a certificate carries a name: alternative names and common names, one label a wildcard.
 */
static bool cert_has_name(X509 *x509, const char *name)
{
    const unsigned flags =
        X509_CHECK_FLAG_ALWAYS_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS;

    return X509_check_host(x509, name, 0, flags, NULL) == 1 ||
           X509_check_ip_asc(x509, name, 0) == 1;
}

int tls_verify_server(int ok, X509_STORE_CTX *ctx)
{
    struct tls_conn *c = conn_of(ctx);
    int depth = X509_STORE_CTX_get_error_depth(ctx), code = X509_STORE_CTX_get_error(ctx);
    const char *name;

    if (!ok) {
        if (depth > 0 && !c->ca_error) {
            c->ca_error = (uint8_t)code;
            c->ca_error_depth = (uint8_t)depth;
        } else if (depth == 0 && !c->cert_error) {
            c->cert_error = (uint8_t)code;
        }
        return 0;
    }
    name = tls_conn_expected_name(c);
    if (depth != 0 || !name || cert_has_name(X509_STORE_CTX_get_current_cert(ctx), name))
        return 1;
    X509_STORE_CTX_set_error(ctx, X509_V_ERR_HOSTNAME_MISMATCH);
    c->cert_error = X509_V_ERR_HOSTNAME_MISMATCH;
    c->failure = TLS_FAILURE_HOST_MISMATCH;
    return 0;
}
