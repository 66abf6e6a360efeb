#include "support.h"

#include "base/status.h"
#include "tls/der.h"
#include "tls/pem.h"

#include <openssl/x509v3.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const char *const kinds[] = {"EC", "P-384", "RSA", "RSA1024", "ED25519"};

#define KIND_COUNT (sizeof(kinds) / sizeof(kinds[0]))

static struct str der_of(X509 *x509)
{
    unsigned char *der = NULL;
    int len = i2d_X509(x509, &der);

    assert_true(len > 0);
    return str_make((char *)der, (size_t)len);
}

static int64_t seconds(const ASN1_TIME *t)
{
    struct tm tm;

    assert_int_equal(ASN1_TIME_to_tm(t, &tm), 1);
    return timegm(&tm);
}

/* The small reader against the library's decoder, for each kind of key. */
static void same_as_library(void **state)
{
    for (size_t i = 0; i < KIND_COUNT; i++) {
        struct t_id id =
            t_id_make(&(struct t_spec){.cn = "a.example.com",
                                       .org = "Org",
                                       .key = kinds[i],
                                       .names = "DNS:b.example.com,IP:10.0.0.1,DNS:*.c.com"});
        struct str der = der_of(id.x509);
        struct der_cert scan;

        assert_int_equal(der_cert_scan(der, &scan), 0);
        assert_int_equal(scan.whole.len, der.len);
        assert_int_equal(scan.not_before_s, seconds(X509_get0_notBefore(id.x509)));
        assert_int_equal(scan.not_after_s, seconds(X509_get0_notAfter(id.x509)));
        assert_int_equal(der_cert_key_type(&scan), i < 2   ? DER_KEY_EC
                                                   : i < 4 ? DER_KEY_RSA
                                                           : DER_KEY_OTHER);
        if (i < 4)
            assert_int_equal(der_cert_key_size(&scan), EVP_PKEY_get_bits(id.key));
        OPENSSL_free((void *)der.ptr);
        t_id_free(&id);
    }
}

struct names {
    char text[256];
    int answer;
};

static int collect(void *arg, struct str name)
{
    struct names *n = arg;
    size_t len = strlen(n->text);

    snprintf(n->text + len, sizeof(n->text) - len, "%.*s ", STR_FMT(name));
    return n->answer;
}

static void names(void **state)
{
    struct t_id id = t_id_make(&(struct t_spec){
        .cn = "cn.example.com", .names = "email:x@y,DNS:b.example.com,DNS:*.c.com"});
    struct str der = der_of(id.x509);
    struct names found = {{0}, 0};
    struct der_cert scan;

    assert_int_equal(der_cert_scan(der, &scan), 0);
    assert_int_equal(der_cert_names(&scan, collect, &found), 0);
    assert_string_equal(found.text, "b.example.com *.c.com cn.example.com ");
    found = (struct names){{0}, SP_ENOMEM};
    assert_int_equal(der_cert_names(&scan, collect, &found), SP_ENOMEM);
    assert_string_equal(found.text, "b.example.com ");
    OPENSSL_free((void *)der.ptr);
    t_id_free(&id);
}

/* Names in UTF-16 are the library's business. */
static void other_character_sets(void **state)
{
    struct t_id id = t_id_make(&(struct t_spec){.names = "DNS:b.example.com"});
    const unsigned char wide[] = {0, 'a', 0, '.', 0, 'b'};
    struct names found = {{0}, 0};
    struct der_cert scan;
    struct str der;

    X509_NAME_add_entry_by_NID(X509_get_subject_name(id.x509), NID_commonName, V_ASN1_BMPSTRING,
                               (unsigned char *)wide, sizeof(wide), -1, 0);
    assert_true(X509_sign(id.x509, id.key, EVP_sha256()) > 0);
    der = der_of(id.x509);
    assert_int_equal(der_cert_scan(der, &scan), 0);
    assert_int_equal(der_cert_names(&scan, collect, &found), SP_EUNSUPPORTED);
    OPENSSL_free((void *)der.ptr);
    t_id_free(&id);
}

static struct str key_der(char *pem, struct pem_block *block)
{
    struct pem_reader r;

    pem_reader_init(&r, str_of(pem));
    assert_int_equal(pem_next(&r, block), 1);
    return str_make((char *)block->der, block->len);
}

static void keys(void **state)
{
    static const enum der_key_form traditional[] = {DER_FORM_SEC1, DER_FORM_SEC1, DER_FORM_PKCS1};

    for (size_t i = 0; i < 3; i++) {
        struct t_id id = t_id_make(&(struct t_spec){.cn = "a", .key = kinds[i]});
        struct t_id same = t_id_make(&(struct t_spec){.cn = "a", .key = kinds[i]});
        struct t_id other = t_id_make(&(struct t_spec){.cn = "a", .key = i == 2 ? "EC" : "RSA"});
        char *pem[] = {t_pem_key(&id), t_pem_key_traditional(&id), t_pem_key(&same),
                       t_pem_key(&other)};
        struct str der = der_of(id.x509);
        struct der_cert scan;
        struct pem_block block;

        assert_int_equal(der_cert_scan(der, &scan), 0);
        assert_int_equal(der_key_matches(key_der(pem[0], &block), DER_FORM_PKCS8, &scan), 0);
        pem_block_release(&block);
        assert_int_equal(der_key_matches(key_der(pem[1], &block), traditional[i], &scan), 0);
        pem_block_release(&block);
        assert_int_equal(der_key_matches(key_der(pem[2], &block), DER_FORM_PKCS8, &scan),
                         SP_ENOENT);
        pem_block_release(&block);
        assert_int_equal(der_key_matches(key_der(pem[3], &block), DER_FORM_PKCS8, &scan),
                         SP_ENOENT);
        pem_block_release(&block);
        for (size_t k = 0; k < 4; k++)
            free(pem[k]);
        OPENSSL_free((void *)der.ptr);
        t_id_free(&id);
        t_id_free(&same);
        t_id_free(&other);
    }
}

/* Cut short and with bytes changed: an answer, never a read outside (the sanitizers look on). */
static void malformed(void **state)
{
    struct t_id id =
        t_id_make(&(struct t_spec){.cn = "a.example.com", .names = "DNS:b.example.com"});
    struct str der = der_of(id.x509);
    char *pem = t_pem_key(&id);
    struct names found;
    struct pem_block block;
    struct der_cert scan;
    struct str key = key_der(pem, &block);

    assert_int_equal(der_cert_scan(STR(""), &scan), SP_EINVAL);
    for (size_t len = 0; len < der.len; len++) {
        char *copy = malloc(len + 1);

        memcpy(copy, der.ptr, len);
        assert_int_equal(der_cert_scan(str_make(copy, len), &scan), SP_EINVAL);
        free(copy);
    }
    for (size_t at = 0; at < der.len; at++) {
        char *copy = malloc(der.len);

        memcpy(copy, der.ptr, der.len);
        for (int bit = 0; bit < 8; bit++) {
            copy[at] = (char)(der.ptr[at] ^ 1 << bit);
            if (der_cert_scan(str_make(copy, der.len), &scan) != 0)
                continue;
            found = (struct names){{0}, 0};
            (void)der_cert_names(&scan, collect, &found);
            (void)der_cert_key_size(&scan);
            (void)der_key_matches(key, DER_FORM_PKCS8, &scan);
        }
        free(copy);
    }
    pem_block_release(&block);
    free(pem);
    OPENSSL_free((void *)der.ptr);
    t_id_free(&id);
}

static void pem_texts(void **state)
{
    static const struct {
        const char *text;
        int status, line;
        const char *why;
    } bad[] = {
        {"-----BEGIN X-----\nAAAA\n", SP_EINVAL, 1, "no END line"},
        {"\n-----BEGIN X-----\nAAAA\n-----BEGIN Y-----\n", SP_EINVAL, 2, "no END line"},
        {"-----BEGIN X-----\nAAAA\n-----END Y-----\n", SP_EINVAL, 3, "END does not match BEGIN"},
        {"-----BEGIN X-----\nA*AA\n-----END X-----\n", SP_EINVAL, 1, "malformed base64"},
        {"-----BEGIN X-----\n-----END X-----\n", SP_EINVAL, 1, "malformed base64"},
        {"-----BEGIN X-----\nAA-----END X-----\nAAAAAAAAAAAAAAAAA\n-----END X-----\n", SP_EINVAL, 2,
         "malformed base64"},
    };
    struct pem_reader r;
    struct pem_block b;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        pem_reader_init(&r, str_of(bad[i].text));
        assert_int_equal(pem_next(&r, &b), bad[i].status);
        assert_string_equal(r.why, bad[i].why);
        assert_int_equal(r.line, bad[i].line);
    }
    pem_reader_init(
        &r,
        STR("text before\r\n-----BEGIN A B-----\r\nAQID\r\nBA==\r\n-----END A B-----\r\nbetween\n"
            "-----BEGIN K-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nAQID\n"
            "-----END K-----"));
    assert_int_equal(pem_next(&r, &b), 1);
    assert_true(str_eq(b.label, STR("A B")));
    assert_int_equal(b.len, 4);
    assert_memory_equal(b.der, "\1\2\3\4", 4);
    assert_int_equal(b.line, 2);
    assert_false(b.encrypted);
    pem_block_release(&b);
    assert_int_equal(pem_next(&r, &b), 1);
    assert_true(b.encrypted);
    assert_int_equal(b.len, 3);
    pem_block_release(&b);
    assert_int_equal(pem_next(&r, &b), 0);
    pem_reader_init(&r, STR(""));
    assert_int_equal(pem_next(&r, &b), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_as_library),
        cmocka_unit_test(names),
        cmocka_unit_test(other_character_sets),
        cmocka_unit_test(keys),
        cmocka_unit_test(malformed),
        cmocka_unit_test(pem_texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
