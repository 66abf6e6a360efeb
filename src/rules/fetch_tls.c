/*
 * Fetches of the TLS layers. On a listener without TLS the client-side ones are
 * constants: false, or failing, exactly as they would be found to be there.
 */
#include "rules/tables.h"

static bool fetch_item(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                       struct sample *out)
{
    return ctx_item(ctx, (enum rules_item)f->def->data, out);
}

static bool fetch_client(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                         struct sample *out)
{
    if (!ctx->tls)
        return f->def->plain == PLAIN_FALSE && value_bool(out, false);
    if (f->def->tls_true)
        return value_bool(out, true);
    return ctx_item(ctx, (enum rules_item)f->def->data, out);
}

/* --- distinguished names ("/C=FR/O=Example/CN=a b"), as the host gives them ------------------- */

/* The next "/NAME=value" of a one-line name; a '/' inside a value is told by the missing NAME=. */
static bool next_rdn(struct str *rest, struct str *name, struct str *value)
{
    struct str s = *rest;
    size_t equal, end;

    if (!s.len || s.ptr[0] != '/')
        return false;
    s = str_from(s, 1);
    equal = str_chr(s, '=');
    if (equal == s.len)
        return false;
    *name = str_make(s.ptr, equal);
    s = str_from(s, equal + 1);
    for (end = 0; end < s.len; end++) {
        struct str next = str_from(s, end + 1);
        size_t n = 0;

        if (s.ptr[end] != '/')
            continue;
        while (n < next.len && is_name_char(next.ptr[n]))
            n++;
        if (n && n < next.len && next.ptr[n] == '=')
            break;
    }
    *value = str_make(s.ptr, end);
    *rest = str_from(s, end);
    return true;
}

static bool dn_entry(struct str dn, struct str wanted, int64_t occurrence, struct str *out)
{
    struct str rest = dn, name, value;
    int64_t n = 0, total = 0;

    while (next_rdn(&rest, &name, &value))
        total += str_ieq(name, wanted);
    if (occurrence < 0)
        occurrence = total + occurrence + 1;
    for (rest = dn; next_rdn(&rest, &name, &value);) {
        if (str_ieq(name, wanted) && ++n == occurrence) {
            *out = value;
            return true;
        }
    }
    return false;
}

/* RFC 2253: the last entry first, commas between, special characters escaped. */
static bool dn_rfc2253(struct rules_ctx *ctx, struct str dn, struct str *out)
{
    struct str names[32], values[32], rest = dn;
    size_t n = 0, bytes = 2 * dn.len + 1;
    struct buf b = {arena_alloc(ctx->arena, bytes), (uint32_t)bytes, 0, 0};

    while (n < 32 && next_rdn(&rest, &names[n], &values[n]))
        n++;
    if (!b.mem)
        return false;
    for (size_t i = n; i-- > 0;) {
        if (i + 1 < n)
            buf_put_char(&b, ',');
        buf_put(&b, names[i]);
        buf_put_char(&b, '=');
        for (size_t k = 0; k < values[i].len; k++) {
            if (strchr(",+\"\\<>;", values[i].ptr[k]) || (k == 0 && values[i].ptr[k] == '#'))
                buf_put_char(&b, '\\');
            buf_put_char(&b, values[i].ptr[k]);
        }
    }
    *out = buf_str(&b);
    return true;
}

static bool fetch_dn(const struct fetch_call *f, struct rules_ctx *ctx, struct fetch_iter *it,
                     struct sample *out)
{
    const struct rules_arg *entry = arg_at(&f->args, 0), *occ = arg_at(&f->args, 1),
                           *format = arg_at(&f->args, 2);
    struct str s;

    if (!fetch_client(f, ctx, it, out))
        return false;
    s = out->u.s;
    if (entry && entry->s.len) {
        if (!dn_entry(s, entry->s, occ && occ->i ? occ->i : 1, &s))
            return false;
    } else if (format && format->s.len && !dn_rfc2253(ctx, s, &s)) {
        return false;
    }
    return value_str(out, s);
}

static int check_dn(struct rules_compiler *c, struct rules_args *args, char why[RULES_WHY_BYTES])
{
    const struct rules_arg *format = arg_at(args, 2);

    if (format && format->s.len && !str_eq(format->s, STR("rfc2253"))) {
        snprintf(why, RULES_WHY_BYTES, "unknown format '%s', expected 'rfc2253'", format->s.ptr);
        return SP_EINVAL;
    }
    return 0;
}

#define H NEEDS_HOST
#define CLIENT(name, type, item, text)                                                    \
    {                                                                                     \
        name, NULL, NULL, type, H, fetch_client, item, .help = text, .plain = PLAIN_FAILS \
    }
#define CLIENT_FALSE(name, item, text)                                                          \
    {                                                                                           \
        name, NULL, NULL, VALUE_BOOL, H, fetch_client, item, .help = text, .plain = PLAIN_FALSE \
    }
#define SERVER(name, type, item, text)                            \
    {                                                             \
        name, NULL, NULL, type, H, fetch_item, item, .help = text \
    }
#define DN(name, item, text)                                                        \
    {                                                                               \
        name, "?sis", "[<entry>[,<occ>[,<format>]]]", VALUE_STR, H, fetch_dn, item, \
            .help = text, .plain = PLAIN_FAILS, .check = check_dn                   \
    }

static const struct fetch_def rows[] = {
    {"ssl_fc", NULL, NULL, VALUE_BOOL, H, fetch_client, RULES_SSL_FC,
     .help = "true when the client came by TLS", .plain = PLAIN_FALSE, .tls_true = true},
    CLIENT("ssl_fc_sni", VALUE_STR, RULES_SSL_FC_SNI, "server name that the client asked for"),
    CLIENT_FALSE("ssl_fc_has_sni", RULES_SSL_FC_HAS_SNI, "true when the client sent a server name"),
    CLIENT("ssl_fc_alpn", VALUE_STR, RULES_SSL_FC_ALPN, "protocol chosen by ALPN"),
    CLIENT("ssl_fc_npn", VALUE_STR, RULES_SSL_FC_NPN, "protocol chosen by NPN"),
    CLIENT("ssl_fc_protocol", VALUE_STR, RULES_SSL_FC_PROTOCOL, "TLS version: \"TLSv1.3\""),
    CLIENT("ssl_fc_cipher", VALUE_STR, RULES_SSL_FC_CIPHER, "name of the cipher"),
    CLIENT("ssl_fc_use_keysize", VALUE_INT, RULES_SSL_FC_USE_KEYSIZE,
           "key bits of the cipher in use"),
    CLIENT("ssl_fc_alg_keysize", VALUE_INT, RULES_SSL_FC_ALG_KEYSIZE,
           "key bits of the cipher's algorithm"),
    CLIENT_FALSE("ssl_fc_is_resumed", RULES_SSL_FC_IS_RESUMED, "true when the session was resumed"),
    CLIENT("ssl_fc_session_id", VALUE_BIN, RULES_SSL_FC_SESSION_ID, "TLS session identifier"),
    CLIENT("ssl_fc_unique_id", VALUE_BIN, RULES_SSL_FC_UNIQUE_ID, "channel binding of RFC 5929"),
    CLIENT("ssl_fc_has_crt", VALUE_BOOL, RULES_SSL_FC_HAS_CRT,
           "true when the client sent a certificate"),
    CLIENT("ssl_fc_err", VALUE_INT, RULES_SSL_FC_ERR,
           "last error of the TLS library on the client's connection"),
    CLIENT("ssl_fc_err_str", VALUE_STR, RULES_SSL_FC_ERR_STR, "text of ssl_fc_err"),
    CLIENT("ssl_c_used", VALUE_BOOL, RULES_SSL_C_USED, "true when a client certificate is in use"),
    CLIENT("ssl_c_verify", VALUE_INT, RULES_SSL_C_VERIFY,
           "result of the verification, 0 when it passed"),
    CLIENT("ssl_c_err", VALUE_INT, RULES_SSL_C_ERR, "verification error at depth 0"),
    CLIENT("ssl_c_ca_err", VALUE_INT, RULES_SSL_C_CA_ERR,
           "verification error of the certificate chain"),
    DN("ssl_c_s_dn", RULES_SSL_C_S_DN, "subject of the client's certificate, or one entry of it"),
    DN("ssl_c_i_dn", RULES_SSL_C_I_DN, "issuer of the client's certificate, or one entry of it"),
    CLIENT("ssl_c_serial", VALUE_BIN, RULES_SSL_C_SERIAL,
           "serial number of the client's certificate"),
    CLIENT("ssl_c_sha1", VALUE_BIN, RULES_SSL_C_SHA1,
           "SHA-1 fingerprint of the client's certificate"),
    CLIENT("ssl_c_notbefore", VALUE_STR, RULES_SSL_C_NOTBEFORE,
           "start of the client certificate's validity, YYMMDDhhmmss[Z]"),
    CLIENT("ssl_c_notafter", VALUE_STR, RULES_SSL_C_NOTAFTER,
           "end of the client certificate's validity, YYMMDDhhmmss[Z]"),
    CLIENT("ssl_c_der", VALUE_BIN, RULES_SSL_C_DER, "the client's certificate in DER"),
    CLIENT("ssl_c_version", VALUE_INT, RULES_SSL_C_VERSION, "version of the client's certificate"),
    CLIENT("ssl_c_key_alg", VALUE_STR, RULES_SSL_C_KEY_ALG,
           "key algorithm of the client's certificate"),
    DN("ssl_f_s_dn", RULES_SSL_F_S_DN, "subject of the certificate presented to the client"),
    DN("ssl_f_i_dn", RULES_SSL_F_I_DN, "issuer of the certificate presented to the client"),
    CLIENT("ssl_f_serial", VALUE_BIN, RULES_SSL_F_SERIAL,
           "serial number of the certificate presented to the client"),
    CLIENT("ssl_f_sha1", VALUE_BIN, RULES_SSL_F_SHA1,
           "SHA-1 fingerprint of the certificate presented to the client"),
    CLIENT("ssl_f_der", VALUE_BIN, RULES_SSL_F_DER,
           "the certificate presented to the client in DER"),
    SERVER("ssl_bc", VALUE_BOOL, RULES_SSL_BC, "true when the server's connection uses TLS"),
    SERVER("ssl_bc_alpn", VALUE_STR, RULES_SSL_BC_ALPN, "protocol chosen by ALPN with the server"),
    SERVER("ssl_bc_protocol", VALUE_STR, RULES_SSL_BC_PROTOCOL, "TLS version with the server"),
    SERVER("ssl_bc_cipher", VALUE_STR, RULES_SSL_BC_CIPHER, "name of the cipher with the server"),
    SERVER("ssl_bc_is_resumed", VALUE_BOOL, RULES_SSL_BC_IS_RESUMED,
           "true when the server's session was resumed"),
    SERVER("ssl_bc_use_keysize", VALUE_INT, RULES_SSL_BC_USE_KEYSIZE,
           "key bits of the cipher in use with the server"),
    SERVER("ssl_bc_alg_keysize", VALUE_INT, RULES_SSL_BC_ALG_KEYSIZE,
           "key bits of the cipher's algorithm with the server"),
};

const struct fetch_table fetch_tls_table = TABLE_OF(rows);
