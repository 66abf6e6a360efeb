#include "tls/der.h"

#include "base/status.h"

#include <time.h>

#define TAG_CONTEXT(n) (0xa0u | (n)) /* constructed, context-specific */

static const struct str oid_rsa = {"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01", 9};
static const struct str oid_ec = {"\x2a\x86\x48\xce\x3d\x02\x01", 7};
static const struct str oid_common_name = {"\x55\x04\x03", 3};
static const struct str oid_alt_names = {"\x55\x1d\x11", 3};

int der_next(struct str *in, struct der_item *out)
{
    const uint8_t *p = (const uint8_t *)in->ptr;
    size_t at = 2, len;

    if (in->len < 2 || (p[0] & 0x1f) == 0x1f)
        return SP_EINVAL;
    len = p[1];
    if (len & 0x80) {
        size_t octets = len & 0x7f;

        if (octets == 0 || octets > 4 || in->len < 2 + octets)
            return SP_EINVAL;
        for (len = 0; octets; octets--)
            len = len << 8 | p[at++];
    }
    if (len > in->len - at)
        return SP_EINVAL;
    out->tag = p[0];
    out->content = str_make(in->ptr + at, len);
    out->whole = str_make(in->ptr, at + len);
    *in = str_from(*in, at + len);
    return 0;
}

int der_expect(struct str *in, unsigned tag, struct der_item *out)
{
    struct str rest = *in;
    struct der_item item;

    if (der_next(&rest, &item) != 0 || item.tag != tag)
        return SP_EINVAL;
    *in = rest;
    *out = item;
    return 0;
}

static bool two_digits(struct str s, size_t at, int *out)
{
    if (at + 2 > s.len || s.ptr[at] < '0' || s.ptr[at] > '9' || s.ptr[at + 1] < '0' ||
        s.ptr[at + 1] > '9')
        return false;
    *out = (s.ptr[at] - '0') * 10 + (s.ptr[at + 1] - '0');
    return true;
}

/* RFC 5280 section 4.1.2.5: YYMMDDHHMMSSZ up to 2049, YYYYMMDDHHMMSSZ later. */
static int read_time(struct str *in, int64_t *out_s)
{
    struct der_item item;
    struct tm tm = {0};
    int century = 0, part[6];
    size_t at = 0;

    if (der_next(in, &item) != 0)
        return SP_EINVAL;
    if (item.tag == DER_GENERALIZED_TIME) {
        if (!two_digits(item.content, 0, &century))
            return SP_EINVAL;
        at = 2;
    } else if (item.tag != DER_UTC_TIME) {
        return SP_EINVAL;
    }
    for (int i = 0; i < 6; i++, at += 2) {
        if (!two_digits(item.content, at, &part[i]))
            return SP_EINVAL;
    }
    if (item.tag == DER_UTC_TIME)
        century = part[0] < 50 ? 20 : 19;
    tm.tm_year = century * 100 + part[0] - 1900;
    tm.tm_mon = part[1] - 1;
    tm.tm_mday = part[2];
    tm.tm_hour = part[3];
    tm.tm_min = part[4];
    tm.tm_sec = part[5];
    *out_s = timegm(&tm);
    return 0;
}

static int scan_public_key(struct str *in, struct der_cert *out)
{
    struct der_item info, algorithm, oid, bits;

    if (der_expect(in, DER_SEQUENCE, &info) != 0 ||
        der_expect(&info.content, DER_SEQUENCE, &algorithm) != 0 ||
        der_expect(&algorithm.content, DER_OID, &oid) != 0 ||
        der_expect(&info.content, DER_BIT_STRING, &bits) != 0 || bits.content.len < 1)
        return SP_EINVAL;
    out->key_oid = oid.content;
    out->key_params = algorithm.content;
    out->key_bits = str_from(bits.content, 1);
    return 0;
}

/* Extension ::= SEQUENCE { OID, critical BOOLEAN DEFAULT FALSE, OCTET STRING } */
static int scan_extension(struct str *list, struct der_cert *out)
{
    struct der_item extension, oid, value, names;

    if (der_expect(list, DER_SEQUENCE, &extension) != 0 ||
        der_expect(&extension.content, DER_OID, &oid) != 0 ||
        der_next(&extension.content, &value) != 0)
        return SP_EINVAL;
    if (value.tag != DER_OCTET_STRING &&
        der_expect(&extension.content, DER_OCTET_STRING, &value) != 0)
        return SP_EINVAL;
    if (!str_eq(oid.content, oid_alt_names))
        return 0;
    if (der_expect(&value.content, DER_SEQUENCE, &names) != 0)
        return SP_EINVAL;
    out->alt_names = names.content;
    return 0;
}

static int scan_extensions(struct str tbs, struct der_cert *out)
{
    struct der_item item, list;

    /* issuerUniqueID [1], subjectUniqueID [2], extensions [3] */
    while (tbs.len) {
        if (der_next(&tbs, &item) != 0)
            return SP_EINVAL;
        if (item.tag != TAG_CONTEXT(3))
            continue;
        if (der_expect(&item.content, DER_SEQUENCE, &list) != 0)
            return SP_EINVAL;
        while (list.content.len) {
            if (scan_extension(&list.content, out) != 0)
                return SP_EINVAL;
        }
    }
    return 0;
}

int der_cert_scan(struct str der, struct der_cert *out)
{
    struct der_item cert, tbs, item, subject, validity;
    struct der_cert found = {0};

    if (der_expect(&der, DER_SEQUENCE, &cert) != 0 ||
        der_expect(&cert.content, DER_SEQUENCE, &tbs) != 0 ||
        der_expect(&cert.content, DER_SEQUENCE, &item) != 0 ||
        der_expect(&cert.content, DER_BIT_STRING, &item) != 0 || cert.content.len)
        return SP_EINVAL;
    found.whole = cert.whole;
    if (tbs.content.len && (uint8_t)tbs.content.ptr[0] == TAG_CONTEXT(0) &&
        der_next(&tbs.content, &item) != 0) /* version */
        return SP_EINVAL;
    if (der_expect(&tbs.content, DER_INTEGER, &item) != 0 ||  /* serial number */
        der_expect(&tbs.content, DER_SEQUENCE, &item) != 0 || /* signature algorithm */
        der_expect(&tbs.content, DER_SEQUENCE, &item) != 0 || /* issuer */
        der_expect(&tbs.content, DER_SEQUENCE, &validity) != 0 ||
        der_expect(&tbs.content, DER_SEQUENCE, &subject) != 0 ||
        scan_public_key(&tbs.content, &found) != 0 ||
        read_time(&validity.content, &found.not_before_s) != 0 ||
        read_time(&validity.content, &found.not_after_s) != 0 ||
        scan_extensions(tbs.content, &found) != 0)
        return SP_EINVAL;
    found.subject = subject.content;
    *out = found;
    return 0;
}

/*
 * UTF8String, PrintableString, TeletexString, IA5String: bytes below 128 are ASCII in all of them.
 */
static bool is_ascii_like(unsigned tag)
{
    return tag == 0x0c || tag == 0x13 || tag == 0x14 || tag == 0x16;
}

int der_cert_names(const struct der_cert *cert, int (*found)(void *arg, struct str name), void *arg)
{
    struct str list = cert->alt_names, subject = cert->subject;
    struct der_item item, pair, oid, value;
    int status;

    while (list.len) {
        if (der_next(&list, &item) != 0)
            return SP_EINVAL;
        if (item.tag != (0x80 | 2)) /* dNSName [2] IA5String, implicit */
            continue;
        status = found(arg, item.content);
        if (status != 0)
            return status;
    }
    while (subject.len) {
        if (der_expect(&subject, DER_SET, &item) != 0)
            return SP_EINVAL;
        while (item.content.len) {
            if (der_expect(&item.content, DER_SEQUENCE, &pair) != 0 ||
                der_expect(&pair.content, DER_OID, &oid) != 0 ||
                der_next(&pair.content, &value) != 0)
                return SP_EINVAL;
            if (!str_eq(oid.content, oid_common_name))
                continue;
            if (!is_ascii_like(value.tag))
                return SP_EUNSUPPORTED;
            status = found(arg, value.content);
            if (status != 0)
                return status;
        }
    }
    return 0;
}

enum der_key_type der_cert_key_type(const struct der_cert *cert)
{
    if (str_eq(cert->key_oid, oid_rsa))
        return DER_KEY_RSA;
    return str_eq(cert->key_oid, oid_ec) ? DER_KEY_EC : DER_KEY_OTHER;
}

/* Without the zero octet that keeps an INTEGER positive. */
static struct str magnitude(struct str integer)
{
    while (integer.len > 1 && integer.ptr[0] == 0)
        integer = str_from(integer, 1);
    return integer;
}

unsigned der_cert_key_size(const struct der_cert *cert)
{
    struct str bits = cert->key_bits;
    struct der_item key, modulus;

    switch (der_cert_key_type(cert)) {
    case DER_KEY_RSA:
        if (der_expect(&bits, DER_SEQUENCE, &key) != 0 ||
            der_expect(&key.content, DER_INTEGER, &modulus) != 0)
            return 0;
        bits = magnitude(modulus.content);
        return bits.len ? (unsigned)(bits.len * 8) -
                              (unsigned)__builtin_clz((uint8_t)bits.ptr[0] | 1) + 24
                        : 0;
    case DER_KEY_EC:
        return bits.len > 1 && bits.ptr[0] == 4 ? (unsigned)(bits.len - 1) * 4 : 0;
    default:
        return 0;
    }
}

/* RSAPrivateKey (RFC 8017 A.1.2) against RSAPublicKey: version, then modulus and exponent. */
static int rsa_matches(struct str key, const struct der_cert *cert)
{
    struct str bits = cert->key_bits;
    struct der_item private, public, number, modulus, exponent, own_modulus, own_exponent;

    if (der_cert_key_type(cert) != DER_KEY_RSA)
        return SP_ENOENT;
    if (der_expect(&bits, DER_SEQUENCE, &public) != 0 ||
        der_expect(&public.content, DER_INTEGER, &modulus) != 0 ||
        der_expect(&public.content, DER_INTEGER, &exponent) != 0)
        return SP_EINVAL;
    if (der_expect(&key, DER_SEQUENCE, &private) != 0 ||
        der_expect(&private.content, DER_INTEGER, &number) != 0 ||
        der_expect(&private.content, DER_INTEGER, &own_modulus) != 0 ||
        der_expect(&private.content, DER_INTEGER, &own_exponent) != 0)
        return SP_EINVAL;
    return str_eq(magnitude(modulus.content), magnitude(own_modulus.content)) &&
                   str_eq(magnitude(exponent.content), magnitude(own_exponent.content))
               ? 0
               : SP_ENOENT;
}

/* ECPrivateKey (RFC 5915): version, private key, [0] parameters, [1] public key, both optional. */
static int ec_matches(struct str key, struct str params, const struct der_cert *cert)
{
    struct der_item private, item, inner;
    struct str point = STR_NULL;

    if (der_cert_key_type(cert) != DER_KEY_EC)
        return SP_ENOENT;
    if (der_expect(&key, DER_SEQUENCE, &private) != 0 ||
        der_expect(&private.content, DER_INTEGER, &item) != 0 ||
        der_expect(&private.content, DER_OCTET_STRING, &item) != 0)
        return SP_EINVAL;
    while (private.content.len) {
        if (der_next(&private.content, &item) != 0)
            return SP_EINVAL;
        if (item.tag == TAG_CONTEXT(0)) {
            params = item.content;
        } else if (item.tag == TAG_CONTEXT(1)) {
            if (der_expect(&item.content, DER_BIT_STRING, &inner) != 0 || inner.content.len < 1)
                return SP_EINVAL;
            point = str_from(inner.content, 1);
        }
    }
    /*
     * Explicit parameters and compressed points have several spellings: leave them to the library.
     */
    if (!point.ptr || !params.len || params.ptr[0] != DER_OID || point.len == 0 ||
        point.ptr[0] != 4 || cert->key_bits.len == 0 || cert->key_bits.ptr[0] != 4)
        return SP_EUNSUPPORTED;
    return str_eq(params, cert->key_params) && str_eq(point, cert->key_bits) ? 0 : SP_ENOENT;
}

int der_key_matches(struct str key, enum der_key_form form, const struct der_cert *cert)
{
    struct der_item info, item, algorithm, oid, inner;

    if (form == DER_FORM_PKCS1)
        return rsa_matches(key, cert);
    if (form == DER_FORM_SEC1)
        return ec_matches(key, STR_NULL, cert);
    if (der_expect(&key, DER_SEQUENCE, &info) != 0 ||
        der_expect(&info.content, DER_INTEGER, &item) != 0 ||
        der_expect(&info.content, DER_SEQUENCE, &algorithm) != 0 ||
        der_expect(&algorithm.content, DER_OID, &oid) != 0 ||
        der_expect(&info.content, DER_OCTET_STRING, &inner) != 0)
        return SP_EINVAL;
    if (str_eq(oid.content, oid_rsa))
        return rsa_matches(inner.content, cert);
    if (str_eq(oid.content, oid_ec))
        return ec_matches(inner.content, algorithm.content, cert);
    return SP_EUNSUPPORTED;
}
