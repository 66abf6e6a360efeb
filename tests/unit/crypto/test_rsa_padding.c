#include <sallyport/rsa.h>

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const char *const hashes[] = {"MD5",      "SHA1",     "SHA224",     "SHA256",
                                     "SHA384",   "SHA512",   "SHA512-224", "SHA512-256",
                                     "SHA3-224", "SHA3-256", "SHA3-384",   "SHA3-512"};

/* The table against DigestInfo as the library's ASN.1 writes it. */
static void digest_infos(void **state)
{
    for (size_t i = 0; i < sizeof(hashes) / sizeof(hashes[0]); i++) {
        EVP_MD *md = EVP_MD_fetch(NULL, hashes[i], NULL);
        X509_SIG *sig = X509_SIG_new();
        X509_ALGOR *algorithm;
        ASN1_OCTET_STRING *digest;
        uint8_t zero[64] = {0}, *der = NULL;
        struct sp_bytes info;
        int len;

        assert_non_null(md);
        X509_SIG_getm(sig, &algorithm, &digest);
        X509_ALGOR_set0(algorithm, OBJ_nid2obj(EVP_MD_get_type(md)), V_ASN1_NULL, NULL);
        ASN1_OCTET_STRING_set(digest, zero, EVP_MD_get_size(md));
        len = i2d_X509_SIG(sig, &der);
        assert_int_equal(sp_rsa_digest_info(hashes[i], &info), 0);
        assert_int_equal(info.len, len - EVP_MD_get_size(md));
        assert_memory_equal(info.data, der, info.len);
        /* By the name under which a provider announces it. */
        assert_int_equal(sp_rsa_digest_info(EVP_MD_get0_name(md), &info), 0);
        assert_memory_equal(info.data, der, info.len);
        OPENSSL_free(der);
        X509_SIG_free(sig);
        EVP_MD_free(md);
    }
}

static void digest_info_names(void **state)
{
    struct sp_bytes info = {NULL, 77}, other;

    assert_int_equal(sp_rsa_digest_info("SHA257", &info), SP_ENOENT);
    assert_int_equal(sp_rsa_digest_info("", &info), SP_ENOENT);
    assert_int_equal(info.len, 77);
    assert_int_equal(sp_rsa_digest_info("md5-sha1", &info), 0);
    assert_int_equal(info.len, 0);
    assert_int_equal(sp_rsa_digest_info("sha2-256", &info), 0);
    assert_int_equal(sp_rsa_digest_info("SHA256", &other), 0);
    assert_ptr_equal(info.data, other.data);
}

static void encode(void **state)
{
    static const uint8_t digest[36] = {1, 2, 3};
    uint8_t em[256], want[256];
    struct sp_bytes info, d = {digest, 32};
    const struct sp_bytes none = {NULL, 0};

    assert_int_equal(sp_rsa_digest_info("SHA256", &info), 0);
    assert_int_equal(sp_rsa_encode_pkcs1(em, sizeof(em), info, d), 0);
    want[0] = 0;
    want[1] = 1;
    memset(want + 2, 0xff, sizeof(want) - 2);
    want[256 - 19 - 32 - 1] = 0;
    memcpy(want + 256 - 19 - 32, info.data, 19);
    memcpy(want + 256 - 32, digest, 32);
    assert_memory_equal(em, want, sizeof(em));

    /* Eight bytes of 0xff are the least. */
    assert_int_equal(sp_rsa_encode_pkcs1(em, 11 + 19 + 32, info, d), 0);
    assert_int_equal(em[9], 0xff);
    assert_int_equal(em[10], 0);
    memset(em, 0x5a, sizeof(em));
    assert_int_equal(sp_rsa_encode_pkcs1(em, 11 + 19 + 31, info, d), SP_ETOOBIG);
    assert_int_equal(sp_rsa_encode_pkcs1(em, 10, none, none), SP_ETOOBIG);
    assert_int_equal(sp_rsa_encode_pkcs1(em, 256, info, (struct sp_bytes){digest, SIZE_MAX}),
                     SP_ETOOBIG);
    assert_int_equal(em[0], 0x5a);
    assert_int_equal(sp_rsa_encode_pkcs1(em, 256, none, (struct sp_bytes){digest, 36}), 0);
    assert_memory_equal(em + 220, digest, 36);
    assert_int_equal(em[219], 0);
    assert_int_equal(em[218], 0xff);
}

/* What the constant-time code must agree with. */
static ptrdiff_t plain_decode(const uint8_t *em, size_t len, uint8_t *out, size_t max)
{
    size_t at = 2;

    if (len < 11 || em[0] != 0 || em[1] != 2)
        return SP_EINVAL;
    while (at < len && em[at])
        at++;
    if (at == len || at < 10 || len - at - 1 > max)
        return SP_EINVAL;
    memcpy(out, em + at + 1, len - at - 1);
    return (ptrdiff_t)(len - at - 1);
}

static void fill_nonzero(uint8_t *p, size_t len)
{
    assert_int_equal(RAND_bytes(p, (int)len), 1);
    for (size_t i = 0; i < len; i++)
        p[i] |= 1;
}

static void both_decode(const uint8_t *em, size_t len, size_t max)
{
    uint8_t want[512], out[512];
    ptrdiff_t r;

    memset(want, 0xa5, sizeof(want));
    memset(out, 0xa5, sizeof(out));
    r = plain_decode(em, len, want, max);
    assert_int_equal(sp_rsa_decode_pkcs1(em, len, out, max), r);
    assert_memory_equal(out, want, sizeof(out));
}

static void decode(void **state)
{
    static const size_t lengths[] = {11, 12, 13, 64, 256, 384, 512};

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        size_t len = lengths[i];
        uint8_t em[512];

        /* Every place of the separator, some lengths of out, then each header byte wrong. */
        for (size_t at = 2; at <= len; at++) {
            fill_nonzero(em, len);
            em[0] = 0;
            em[1] = 2;
            if (at < len)
                em[at] = 0;
            if (at + 5 < len)
                em[at + 5] = 0;
            both_decode(em, len, 512);
            both_decode(em, len, len - at);
            if (len - at >= 2) {
                both_decode(em, len, len - at - 1);
                both_decode(em, len, len - at - 2);
            }
            both_decode(em, len, 0);
            em[0] = 0x80;
            both_decode(em, len, 512);
            em[0] = 0;
            em[1] = 1;
            both_decode(em, len, 512);
        }
    }
    assert_int_equal(sp_rsa_decode_pkcs1((const uint8_t *)"\0\2345678901", 10, NULL, 0), SP_EINVAL);
}

static void decode_tls(void **state)
{
    uint8_t em[256], good[48], random[48], out[48];

    assert_int_equal(RAND_bytes(random, sizeof(random)), 1);
    fill_nonzero(em, sizeof(em));
    em[0] = 0;
    em[1] = 2;
    em[207] = 0;
    em[208] = 3;
    em[209] = 3;
    memcpy(good, em + 208, 48);
    sp_rsa_decode_tls(em, sizeof(em), 0x303, 0, random, out);
    assert_memory_equal(out, good, 48);
    sp_rsa_decode_tls(em, sizeof(em), 0x301, 0x303, random, out);
    assert_memory_equal(out, good, 48);
    sp_rsa_decode_tls(em, sizeof(em), 0x302, 0, random, out);
    assert_memory_equal(out, random, 48);
    sp_rsa_decode_tls(em, sizeof(em), 0x302, 0x301, random, out);
    assert_memory_equal(out, random, 48);
    sp_rsa_decode_tls(em, 58, 0x303, 0, random, out);
    assert_memory_equal(out, random, 48);
    /* Each byte in front of the secret matters: turned into zero, or from zero. */
    for (size_t i = 0; i < 208; i++) {
        uint8_t before = em[i];

        em[i] = em[i] ? 0 : 1;
        sp_rsa_decode_tls(em, sizeof(em), 0x303, 0, random, out);
        assert_memory_equal(out, random, 48);
        em[i] = before;
    }
    /* Zeros in the secret do not. */
    em[220] = 0;
    sp_rsa_decode_tls(em, sizeof(em), 0x303, 0, random, out);
    assert_memory_equal(out, em + 208, 48);
    /* The shortest message with room for it: eight bytes of padding. */
    em[197] = 0;
    em[198] = 2;
    sp_rsa_decode_tls(em + 197, 59, 0x303, 0, random, out);
    assert_memory_equal(out, em + 208, 48);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digest_infos), cmocka_unit_test(digest_info_names),
        cmocka_unit_test(encode),       cmocka_unit_test(decode),
        cmocka_unit_test(decode_tls),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
