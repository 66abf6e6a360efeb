/*
 * Converters of addresses and booleans, of variables and captures, and of names into what they name.
 */
#include "rules/tables.h"

#include <openssl/x509_vfy.h>

/* --- addresses and booleans ---------------------------------------------------------------- */

static bool conv_ipmask(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    const struct rules_arg *mask6 = arg_at(&v->args, 1);
    const uint8_t *bytes, *mask;
    uint8_t out[16];
    size_t n = value_addr_bytes(&s->u.a, &bytes);

    if (n == 16 && value_v6_to_v4(bytes, out)) {
        bytes = out;
        n = 4;
    }
    if (!n || (n == 16 && !mask6))
        return false;
    value_addr_bytes(n == 4 ? &v->args.v[0].addr : &mask6->addr, &mask);
    for (size_t i = 0; i < n; i++)
        out[i] = bytes[i] & mask[i];
    s->u.a = n == 4 ? value_addr4(out) : value_addr6(out);
    return true;
}

static bool conv_iif(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    return value_str(s, v->args.v[s->u.b ? 0 : 1].s);
}

/* Verification results by the names of OpenSSL's constants, which "crt-ignore-err" takes too. */
static const struct {
    int64_t code;
    struct str name;
} verify_names[] = {
#define NAME(constant)                      \
    {                                       \
        constant,                           \
        {                                   \
#constant, sizeof #constant - 1 \
        }                                   \
    }
    NAME(X509_V_OK),
    NAME(X509_V_ERR_UNSPECIFIED),
    NAME(X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT),
    NAME(X509_V_ERR_UNABLE_TO_GET_CRL),
    NAME(X509_V_ERR_UNABLE_TO_DECRYPT_CERT_SIGNATURE),
    NAME(X509_V_ERR_UNABLE_TO_DECRYPT_CRL_SIGNATURE),
    NAME(X509_V_ERR_UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY),
    NAME(X509_V_ERR_CERT_SIGNATURE_FAILURE),
    NAME(X509_V_ERR_CRL_SIGNATURE_FAILURE),
    NAME(X509_V_ERR_CERT_NOT_YET_VALID),
    NAME(X509_V_ERR_CERT_HAS_EXPIRED),
    NAME(X509_V_ERR_CRL_NOT_YET_VALID),
    NAME(X509_V_ERR_CRL_HAS_EXPIRED),
    NAME(X509_V_ERR_ERROR_IN_CERT_NOT_BEFORE_FIELD),
    NAME(X509_V_ERR_ERROR_IN_CERT_NOT_AFTER_FIELD),
    NAME(X509_V_ERR_ERROR_IN_CRL_LAST_UPDATE_FIELD),
    NAME(X509_V_ERR_ERROR_IN_CRL_NEXT_UPDATE_FIELD),
    NAME(X509_V_ERR_OUT_OF_MEM),
    NAME(X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT),
    NAME(X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN),
    NAME(X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY),
    NAME(X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE),
    NAME(X509_V_ERR_CERT_CHAIN_TOO_LONG),
    NAME(X509_V_ERR_CERT_REVOKED),
    NAME(X509_V_ERR_NO_ISSUER_PUBLIC_KEY),
    NAME(X509_V_ERR_PATH_LENGTH_EXCEEDED),
    NAME(X509_V_ERR_INVALID_PURPOSE),
    NAME(X509_V_ERR_CERT_UNTRUSTED),
    NAME(X509_V_ERR_CERT_REJECTED),
    NAME(X509_V_ERR_SUBJECT_ISSUER_MISMATCH),
    NAME(X509_V_ERR_AKID_SKID_MISMATCH),
    NAME(X509_V_ERR_AKID_ISSUER_SERIAL_MISMATCH),
    NAME(X509_V_ERR_KEYUSAGE_NO_CERTSIGN),
    NAME(X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER),
    NAME(X509_V_ERR_UNHANDLED_CRITICAL_EXTENSION),
    NAME(X509_V_ERR_KEYUSAGE_NO_CRL_SIGN),
    NAME(X509_V_ERR_UNHANDLED_CRITICAL_CRL_EXTENSION),
    NAME(X509_V_ERR_INVALID_NON_CA),
    NAME(X509_V_ERR_PROXY_PATH_LENGTH_EXCEEDED),
    NAME(X509_V_ERR_KEYUSAGE_NO_DIGITAL_SIGNATURE),
    NAME(X509_V_ERR_PROXY_CERTIFICATES_NOT_ALLOWED),
    NAME(X509_V_ERR_INVALID_EXTENSION),
    NAME(X509_V_ERR_INVALID_POLICY_EXTENSION),
    NAME(X509_V_ERR_NO_EXPLICIT_POLICY),
    NAME(X509_V_ERR_DIFFERENT_CRL_SCOPE),
    NAME(X509_V_ERR_UNSUPPORTED_EXTENSION_FEATURE),
    NAME(X509_V_ERR_UNNESTED_RESOURCE),
    NAME(X509_V_ERR_PERMITTED_VIOLATION),
    NAME(X509_V_ERR_EXCLUDED_VIOLATION),
    NAME(X509_V_ERR_SUBTREE_MINMAX),
    NAME(X509_V_ERR_APPLICATION_VERIFICATION),
    NAME(X509_V_ERR_UNSUPPORTED_CONSTRAINT_TYPE),
    NAME(X509_V_ERR_UNSUPPORTED_CONSTRAINT_SYNTAX),
    NAME(X509_V_ERR_UNSUPPORTED_NAME_SYNTAX),
    NAME(X509_V_ERR_CRL_PATH_VALIDATION_ERROR),
    NAME(X509_V_ERR_PATH_LOOP),
    NAME(X509_V_ERR_SUITE_B_INVALID_VERSION),
    NAME(X509_V_ERR_SUITE_B_INVALID_ALGORITHM),
    NAME(X509_V_ERR_SUITE_B_INVALID_CURVE),
    NAME(X509_V_ERR_SUITE_B_INVALID_SIGNATURE_ALGORITHM),
    NAME(X509_V_ERR_SUITE_B_LOS_NOT_ALLOWED),
    NAME(X509_V_ERR_SUITE_B_CANNOT_SIGN_P_384_WITH_P_256),
    NAME(X509_V_ERR_HOSTNAME_MISMATCH),
    NAME(X509_V_ERR_EMAIL_MISMATCH),
    NAME(X509_V_ERR_IP_ADDRESS_MISMATCH),
    NAME(X509_V_ERR_DANE_NO_MATCH),
    NAME(X509_V_ERR_EE_KEY_TOO_SMALL),
    NAME(X509_V_ERR_CA_KEY_TOO_SMALL),
    NAME(X509_V_ERR_CA_MD_TOO_WEAK),
    NAME(X509_V_ERR_INVALID_CALL),
    NAME(X509_V_ERR_STORE_LOOKUP),
    NAME(X509_V_ERR_NO_VALID_SCTS),
    NAME(X509_V_ERR_PROXY_SUBJECT_NAME_VIOLATION),
    NAME(X509_V_ERR_OCSP_VERIFY_NEEDED),
    NAME(X509_V_ERR_OCSP_VERIFY_FAILED),
    NAME(X509_V_ERR_OCSP_CERT_UNKNOWN),
    NAME(X509_V_ERR_UNSUPPORTED_SIGNATURE_ALGORITHM),
    NAME(X509_V_ERR_SIGNATURE_ALGORITHM_MISMATCH),
    NAME(X509_V_ERR_SIGNATURE_ALGORITHM_INCONSISTENCY),
    NAME(X509_V_ERR_INVALID_CA),
    NAME(X509_V_ERR_PATHLEN_INVALID_FOR_NON_CA),
    NAME(X509_V_ERR_PATHLEN_WITHOUT_KU_KEY_CERT_SIGN),
    NAME(X509_V_ERR_KU_KEY_CERT_SIGN_INVALID_FOR_NON_CA),
    NAME(X509_V_ERR_ISSUER_NAME_EMPTY),
    NAME(X509_V_ERR_SUBJECT_NAME_EMPTY),
    NAME(X509_V_ERR_MISSING_AUTHORITY_KEY_IDENTIFIER),
    NAME(X509_V_ERR_MISSING_SUBJECT_KEY_IDENTIFIER),
    NAME(X509_V_ERR_EMPTY_SUBJECT_ALT_NAME),
    NAME(X509_V_ERR_EMPTY_SUBJECT_SAN_NOT_CRITICAL),
    NAME(X509_V_ERR_CA_BCONS_NOT_CRITICAL),
    NAME(X509_V_ERR_AUTHORITY_KEY_IDENTIFIER_CRITICAL),
    NAME(X509_V_ERR_SUBJECT_KEY_IDENTIFIER_CRITICAL),
    NAME(X509_V_ERR_CA_CERT_MISSING_KEY_USAGE),
    NAME(X509_V_ERR_EXTENSIONS_REQUIRE_VERSION_3),
    NAME(X509_V_ERR_EC_KEY_EXPLICIT_PARAMS),
#undef NAME
};

static bool conv_x509_v_err_str(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    for (size_t i = 0; i < sizeof verify_names / sizeof *verify_names; i++)
        if (verify_names[i].code == s->u.i)
            return value_str(s, verify_names[i].name);
    /* Codes without a name are answered as numbers. */
    return value_cast(s, VALUE_STR, ctx->arena);
}

/* --- variables ----------------------------------------------------------------------------------- */

static int check_set_var(struct rules_compiler *c, struct conv_call *v, char why[RULES_WHY_BYTES])
{
    struct rules_arg *a = &v->args.v[0];
    const char *reason;

    if (var_parse(a->s, &a->u.var, &reason) < 0) {
        snprintf(why, RULES_WHY_BYTES, "variable '%s': %s", a->s.ptr, reason);
        return SP_EINVAL;
    }
    if (a->u.var.scope == RULES_SCOPE_PROC) {
        snprintf(why, RULES_WHY_BYTES, "variable '%s': the scope 'proc' is read-only at run time",
                 a->s.ptr);
        return SP_EINVAL;
    }
    for (unsigned i = 1; i < v->args.count; i++) {
        unsigned bit = var_condition(v->args.v[i].s);

        if (!bit) {
            snprintf(why, RULES_WHY_BYTES, "unknown condition '%s'", v->args.v[i].s.ptr);
            return SP_EINVAL;
        }
        a->i |= bit;
    }
    return 0;
}

static bool conv_set_var(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    var_set(&v->args.v[0].u.var, ctx, s, (unsigned)v->args.v[0].i);
    return true;
}

static bool conv_unset_var(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    var_unset(&v->args.v[0].u.var, ctx);
    return true;
}

/* --- captures --------------------------------------------------------------------------------------- */

static bool conv_capture(const struct conv_call *v, struct rules_ctx *ctx, struct sample *s)
{
    bool response = v->def->data;
    struct str *slots = response ? ctx->res_captures : ctx->req_captures;
    unsigned count = response ? ctx->res_capture_count : ctx->req_capture_count;
    const size_t *limits = response ? ctx->res_capture_limits : ctx->req_capture_limits;
    uint64_t index = (uint64_t)v->args.v[0].i;
    struct str copy = s->u.s;

    if (!slots || index >= count)
        return false;
    if (limits && copy.len > limits[index])
        copy.len = limits[index];
    copy = arena_str(ctx->arena, copy);
    if (!copy.ptr)
        return false;
    slots[index] = copy;
    return true;
}

static const struct conv_def rows[] = {
    {"ipmask", "m?M", "<mask4>[,<mask6>]", VALUE_ADDR, VALUE_ADDR, conv_ipmask, 0,
     .help = "network part of an address"},
    {"iif", "ss", "<true>,<false>", VALUE_BOOL, VALUE_STR, conv_iif, 0,
     .help = "one text when true, another when false"},
    {"x509_v_err_str", NULL, NULL, VALUE_INT, VALUE_STR, conv_x509_v_err_str, 0,
     .help = "name of a certificate verification result"},
    {"set-var", "s?ssss", "<var>[,<cond>...]", VALUE_ANY, VALUE_SAME, conv_set_var, 0,
     .help = "kept in a variable, and passed on", .check = check_set_var, .needs = NEEDS_VARYING},
    {"unset-var", "s", "<var>", VALUE_ANY, VALUE_SAME, conv_unset_var, 0,
     .help = "passed on after a variable is unset", .check = check_set_var, .needs = NEEDS_VARYING},
    {"capture-req", "i", "<id>", VALUE_STR, VALUE_STR, conv_capture, 0,
     .help = "kept in a request capture slot, and passed on", .needs = NEEDS_VARYING},
    {"capture-res", "i", "<id>", VALUE_STR, VALUE_STR, conv_capture, 1,
     .help = "kept in a response capture slot, and passed on", .needs = NEEDS_VARYING},
};

const struct conv_table conv_misc_table = TABLE_OF(rows);
