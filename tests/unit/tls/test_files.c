#include "support.h"

#include "base/status.h"
#include "tls/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct t_world world;
static struct t_id ca, ec, rsa;

static const struct cfg_loc here = {"/etc/test.cfg", 7};

static int begin(void **state)
{
    t_world_init(&world);
    return 0;
}

static int end(void **state)
{
    t_world_release(&world);
    return 0;
}

static struct tls_cert *load(const char *name)
{
    return tls_store_cert(world.store, t_path(name), NULL, here, &world.diag);
}

__attribute__((format(printf, 2, 3))) static void expect_text(unsigned n, const char *format, ...)
{
    char expected[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(expected, sizeof(expected), format, args);
    va_end(args);
    assert_string_equal(t_message(&world, n), expected);
}

static void bundle(void **state)
{
    struct tls_cert *cert;

    t_write_bundle("a.pem", &ec, &ca);
    cert = load("a.pem");
    assert_non_null(cert);
    assert_int_equal(world.diag.errors + world.diag.warnings, 0);
    assert_int_equal(cert->kind, TLS_KEY_ECDSA);
    assert_int_equal(cert->chain_count, 1);
    assert_int_equal(cert->name_count, 2);
    assert_true(str_eq(cert->names[0], STR("www.example.com")));
    assert_true(str_eq(cert->names[1], STR("*.example.com")));
    /* Once per path; issuers once per content. */
    assert_ptr_equal(load("a.pem"), cert);
    t_write_bundle("b.pem", &rsa, &ca);
    assert_ptr_equal(load("b.pem")->chain[0], cert->chain[0]);
    assert_int_equal(load("b.pem")->kind, TLS_KEY_RSA);
    assert_int_equal(load("b.pem")->key_bits, 2048);
}

static void key_beside(void **state)
{
    char *cert = t_pem_cert(&rsa), *key = t_pem_key_traditional(&rsa);

    t_write("c.pem", cert);
    assert_null(load("c.pem"));
    expect_text(0, "/etc/test.cfg:7: no private key found in %s or %s", t_path("c.pem"),
                t_path("c.pem.key"));
    t_write("c.pem.key", key);
    assert_non_null(load("c.pem"));
    t_write("d.pem", cert);
    t_write("elsewhere.key", key);
    assert_non_null(
        tls_store_cert(world.store, t_path("d.pem"), t_path("elsewhere.key"), here, &world.diag));
    assert_null(
        tls_store_cert(world.store, t_path("d.pem"), t_path("none.key"), here, &world.diag));
    expect_text(1, "/etc/test.cfg:7: unable to load private key %s: No such file or directory",
                t_path("none.key"));
    free(cert);
    free(key);
}

static void missing_and_malformed(void **state)
{
    char *cert = t_pem_cert(&ec), *key = t_pem_key(&ec), *other = t_pem_key(&rsa);

    assert_null(load("none.pem"));
    expect_text(0, "/etc/test.cfg:7: unable to load certificate %s: No such file or directory",
                t_path("none.pem"));
    t_write("empty.pem", "");
    assert_null(load("empty.pem"));
    expect_text(1, "/etc/test.cfg:7: no certificate found in %s", t_path("empty.pem"));
    t_write("key.pem", key);
    assert_null(load("key.pem"));
    expect_text(2, "/etc/test.cfg:7: no certificate found in %s", t_path("key.pem"));
    t_writef("mismatch.pem", "%s%s", cert, other);
    assert_null(load("mismatch.pem"));
    expect_text(3, "/etc/test.cfg:7: the private key does not match the certificate %s",
                t_path("mismatch.pem"));
    t_writef("cut.pem", "%.200s\n", cert);
    assert_null(load("cut.pem"));
    expect_text(4, "/etc/test.cfg:7: unable to load certificate from %s:1: no END line",
                t_path("cut.pem"));
    t_write("junk.pem", "-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----\n");
    assert_null(load("junk.pem"));
    expect_text(5, "/etc/test.cfg:7: unable to load certificate %s:1: malformed certificate",
                t_path("junk.pem"));
    t_writef("chain.pem", "%s%s-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----\n",
             cert, key);
    assert_null(load("chain.pem"));
    assert_non_null(strstr(t_message(&world, 6), "unable to load certificate chain from"));
    t_writef("locked.pem",
             "%s-----BEGIN ENCRYPTED PRIVATE KEY-----\nAQID\n-----END ENCRYPTED PRIVATE KEY-----\n",
             cert);
    assert_null(load("locked.pem"));
    assert_non_null(strstr(t_message(&world, 7), "it is encrypted, a plain key is expected"));
    t_writef("badkey.pem", "%s-----BEGIN PRIVATE KEY-----\nAQID\n-----END PRIVATE KEY-----\n",
             cert);
    assert_null(load("badkey.pem"));
    expect_text(8, "/etc/test.cfg:7: unable to load private key of %s: malformed key",
                t_path("badkey.pem"));
    mkdir(t_path("folder.pem"), 0755);
    assert_null(load("folder.pem"));
    assert_non_null(strstr(t_message(&world, 9), "Is a directory"));
    assert_int_equal(world.diag.errors, 10);
    free(cert);
    free(key);
    free(other);
}

/* Keys whose encoding does not show the public part go through the library. */
static void uncommon_keys(void **state)
{
    struct t_id ed = t_id_make(&(struct t_spec){.cn = "ed.example.com", .key = "ED25519"});
    struct t_id ed2 = t_id_make(&(struct t_spec){.cn = "ed.example.com", .key = "ED25519"});
    struct t_id dsa = t_id_make(&(struct t_spec){.cn = "dsa.example.com", .key = "DSA"});
    char *cert = t_pem_cert(&ed), *key = t_pem_key(&ed2), *dsa_cert = t_pem_cert(&dsa);
    char *dsa_key = t_pem_key_traditional(&dsa);

    t_write_bundle("ed.pem", &ed, NULL);
    assert_non_null(load("ed.pem"));
    assert_int_equal(load("ed.pem")->kind, TLS_KEY_OTHER);
    t_writef("ed2.pem", "%s%s", cert, key);
    assert_null(load("ed2.pem"));
    assert_non_null(strstr(t_message(&world, 0), "does not match"));
    t_writef("dsa.pem", "%s%s", dsa_cert, dsa_key);
    assert_non_null(load("dsa.pem"));
    assert_int_equal(load("dsa.pem")->kind, TLS_KEY_DSA);
    free(cert);
    free(key);
    free(dsa_cert);
    free(dsa_key);
    t_id_free(&ed);
    t_id_free(&ed2);
    t_id_free(&dsa);
}

static void expired(void **state)
{
    struct t_id old =
        t_id_make(&(struct t_spec){.cn = "old.example.com", .from_s = -7200, .to_s = -3600});

    t_write_bundle("old.pem", &old, NULL);
    assert_non_null(load("old.pem"));
    assert_int_equal(world.diag.errors, 0);
    assert_int_equal(world.diag.warnings, 0); /* a notice: HAProxy loads it without a word */
    assert_non_null(strstr(t_message(&world, 0), "expired on "));
    t_id_free(&old);
}

/* --- contexts: what is configured wrongly is said ------------------------------------- */

static bool refused(const struct tls_server_params *p, const char *part)
{
    unsigned before = world.diag.errors, n = 0;
    struct tls_server_ctx *ctx = tls_server_ctx_new(world.store, p, &world.diag);
    bool found = false;

    if (ctx) {
        tls_server_ctx_free(ctx);
        print_error("accepted: %s\n", part);
        return false;
    }
    for (const struct diag_item *i = world.diag.first; i; i = i->next, n++)
        found |= strstr(i->text, part) != NULL;
    if (!found) {
        for (unsigned k = 0; k < n; k++)
            print_error("%s\n", t_message(&world, k));
    }
    return found && world.diag.errors > before;
}

static void settings(void **state)
{
    struct tls_cert_source source;
    struct tls_server_params good, p;

    t_write_bundle("a.pem", &ec, NULL);
    good = t_server_params(&source, t_path("a.pem"));
    p = good, p.ciphers = "NO-SUCH-CIPHER";
    assert_true(refused(&p, "'ciphers' has the value 'NO-SUCH-CIPHER': no cipher match"));
    p = good, p.ciphersuites = "TLS_WRONG";
    assert_true(refused(&p, "'ciphersuites' has the value 'TLS_WRONG': "));
    p = good, p.curves = "X25519:P-257";
    assert_true(refused(&p, "'curves' has the value 'X25519:P-257': "));
    p = good, p.sigalgs = "RSA+SHA257";
    assert_true(refused(&p, "'sigalgs' has the value 'RSA+SHA257': "));
    p = good, p.client_sigalgs = "x";
    assert_true(refused(&p, "'client-sigalgs' has the value 'x': "));
    p = good, p.alpn = "h2,,http/1.1";
    assert_true(refused(&p, "'alpn' has the value 'h2,,http/1.1', expected protocol names"));
    p = good, p.alpn = "h2,";
    assert_true(refused(&p, "'alpn' has the value 'h2,'"));
    p = good, p.min_version = TLS_VERSION_13, p.max_version = TLS_VERSION_12;
    assert_true(refused(&p, "all TLS versions are disabled"));
    p = good, p.no_tlsv12 = p.no_tlsv13 = true;
    assert_true(refused(&p, "all TLS versions are disabled"));
    p = good, p.max_version = TLS_VERSION_SSL3;
    assert_true(refused(&p, "SSLv3 is not provided by OpenSSL"));
    p = good, p.verify = TLS_VERIFY_REQUIRED;
    assert_true(refused(&p, "'ca-file' is expected"));
    p = good, p.verify = TLS_VERIFY_REQUIRED, p.ca_file = "/none/ca.pem";
    assert_true(
        refused(&p, "unable to load CA or CRL file /none/ca.pem: No such file or directory"));
    p = good, p.ca_file = t_path("empty.pem"), t_write("empty.pem", "");
    assert_true(refused(&p, "nothing found in it"));
    p = good, p.crt_ignore_err = "10,X509_V_ERR_NONSENSE";
    assert_true(refused(&p, "'crt-ignore-err' has the value 'X509_V_ERR_NONSENSE'"));
    p = good, p.ca_ignore_err = "1000";
    assert_true(refused(&p, "'ca-ignore-err' has the value '1000'"));
    p = good, p.dh_file = t_path("a.pem");
    assert_true(refused(&p, "no usable DH parameters found in"));
    p = good, p.dh_file = "/none/dh.pem";
    assert_true(refused(&p, "unable to load DH parameters /none/dh.pem: No such file"));
    p = good, p.source_count = 0;
    assert_true(refused(&p, "no certificate for a 'bind' with 'ssl'"));
    source.path = "/none/folder";
    assert_true(refused(&good, "unable to load certificate /none/folder: No such file"));
}

/* Too small a key for the library's security level is found out when the configuration is read. */
static void weak_key(void **state)
{
    struct t_id weak = t_id_make(&(struct t_spec){.cn = "weak.example.com", .key = "RSA1024"});
    struct tls_cert_source source;
    struct tls_server_params p = t_server_params(&source, t_path("weak.pem"));

    t_write_bundle("weak.pem", &weak, NULL);
    assert_true(refused(&p, "ee key too small"));
    t_id_free(&weak);
}

static void accepted_settings(void **state)
{
    struct tls_cert_source source;
    struct tls_server_params p;

    t_write_bundle("a.pem", &ec, NULL);
    p = t_server_params(&source, "a.pem");
    p.crt_base = t_folder();
    p.ciphers = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256";
    p.ciphersuites = "TLS_AES_128_GCM_SHA256";
    p.curves = "X25519:P-256";
    p.sigalgs = "ECDSA+SHA256:RSA-PSS+SHA256";
    p.client_sigalgs = "ECDSA+SHA256";
    p.alpn = "h2,http/1.1";
    p.min_version = TLS_VERSION_10;
    p.ca_ignore_err = "all";
    p.crt_ignore_err = "X509_V_ERR_CERT_HAS_EXPIRED,23";
    for (p.dh_bits = 0; p.dh_bits <= 8192; p.dh_bits += 1024)
        tls_server_ctx_free(t_server(&world, &p));
    p.source_count = 0;
    p.strict_sni = true;
    tls_server_ctx_free(t_server(&world, &p));
}

static void empty_folder(void **state)
{
    struct tls_cert_source source;
    struct tls_server_params p = t_server_params(&source, t_path("empty"));
    struct tls_server_ctx *ctx;

    mkdir(t_path("empty"), 0755);
    t_write("empty/x.key", "");
    t_write("empty/.hidden", "");
    assert_true(refused(&p, "no certificate for a 'bind' with 'ssl'"));
    p.strict_sni = true;
    ctx = tls_server_ctx_new(world.store, &p, &world.diag);
    assert_non_null(ctx);
    tls_server_ctx_free(ctx);
}

static int setup(void **state)
{
    ca = t_id_make(&(struct t_spec){.cn = "Test CA", .is_ca = true});
    ec = t_id_make(&(struct t_spec){
        .cn = "WWW.Example.com", .names = "DNS:www.example.com,DNS:*.example.com", .issuer = &ca});
    rsa = t_id_make(&(struct t_spec){.cn = "rsa.example.com", .key = "RSA", .issuer = &ca});
    return 0;
}

static int teardown(void **state)
{
    t_id_free(&ca);
    t_id_free(&ec);
    t_id_free(&rsa);
    t_folder_remove();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bundle, begin, end),
        cmocka_unit_test_setup_teardown(key_beside, begin, end),
        cmocka_unit_test_setup_teardown(missing_and_malformed, begin, end),
        cmocka_unit_test_setup_teardown(uncommon_keys, begin, end),
        cmocka_unit_test_setup_teardown(expired, begin, end),
        cmocka_unit_test_setup_teardown(settings, begin, end),
        cmocka_unit_test_setup_teardown(weak_key, begin, end),
        cmocka_unit_test_setup_teardown(accepted_settings, begin, end),
        cmocka_unit_test_setup_teardown(empty_folder, begin, end),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
