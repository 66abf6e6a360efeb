#include "support.h"

#include "base/status.h"
#include "tls/context.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>

#include <cmocka.h>

static struct t_world world;

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

/* A file per name and kind of key. */
static void make(const char *file, const char *cn, const char *names, const char *key)
{
    struct t_id id = t_id_make(&(struct t_spec){.cn = cn, .names = names, .key = key});

    t_write_bundle(file, &id, NULL);
    t_id_free(&id);
}

static int setup(void **state)
{
    make("first.pem", "first.example.com", NULL, "EC");
    make("www.pem", "www.example.com", "DNS:www.example.com,DNS:*.wild.example.com", "EC");
    make("both.pem.rsa", "both.example.com", NULL, "RSA");
    make("both.pem.ecdsa", "both.example.com", NULL, "EC");
    make("special.pem", "special.wild.example.com", NULL, "EC");
    return 0;
}

static int teardown(void **state)
{
    t_folder_remove();
    return 0;
}

static struct tls_server_params list_params(struct tls_cert_source *source, const char *name)
{
    struct tls_server_params p = t_server_params(source, t_path(name));

    source->is_crt_list = true;
    p.crt_base = t_folder();
    p.ca_base = t_folder();
    return p;
}

static const struct tls_client_abilities everything = {true, true}, rsa_only = {true, false},
                                         ecdsa_only = {false, true};

/* The file's last component that a name gets; "-" for none. */
static const char *choice(const struct tls_server_ctx *ctx, const char *name,
                          const struct tls_client_abilities *able, bool strict)
{
    bool by_name;
    const struct tls_entry *e = tls_sni_choose(ctx->sni, str_of(name), able, strict, &by_name);

    if (!e)
        return "-";
    return strrchr(e->cert->path, '/') + 1;
}

static void names_and_wildcards(void **state)
{
    struct tls_cert_source sources[] = {
        {.path = t_path("first.pem")},
        {.path = t_path("www.pem")},
        {.path = t_path("both.pem")},
        {.path = t_path("special.pem")},
    };
    struct tls_server_params p = t_server_params(&(struct tls_cert_source){0}, NULL);
    struct tls_server_ctx *ctx;

    p.sources = sources;
    p.source_count = 4;
    ctx = t_server(&world, &p);
    assert_string_equal(choice(ctx, "first.example.com", &everything, true), "first.pem");
    assert_string_equal(choice(ctx, "WWW.example.COM", &everything, true), "www.pem");
    assert_string_equal(choice(ctx, "a.wild.example.com", &everything, true), "www.pem");
    assert_string_equal(choice(ctx, "special.wild.example.com", &everything, true), "special.pem");
    assert_string_equal(choice(ctx, "a.b.wild.example.com", &everything, true), "-");
    assert_string_equal(choice(ctx, "wild.example.com", &everything, true), "-");
    assert_string_equal(choice(ctx, "", &everything, true), "-");
    assert_string_equal(choice(ctx, "", &everything, false), "first.pem");
    assert_string_equal(choice(ctx, "unknown.com", &everything, false), "first.pem");
    assert_string_equal(choice(ctx, "both.example.com", &everything, true), "both.pem.ecdsa");
    assert_string_equal(choice(ctx, "both.example.com", &ecdsa_only, true), "both.pem.ecdsa");
    assert_string_equal(choice(ctx, "both.example.com", &rsa_only, true), "both.pem.rsa");
    assert_string_equal(choice(ctx, "www.example.com", &rsa_only, true), "www.pem");
    tls_server_ctx_free(ctx);
}

static void folder(void **state)
{
    struct tls_cert_source source;
    struct tls_server_params p = t_server_params(&source, "dir");
    struct tls_server_ctx *ctx, *again;

    mkdir(t_path("dir"), 0755);
    mkdir(t_path("dir/sub"), 0755);
    make("dir/20.pem", "second.example.com", NULL, NULL);
    make("dir/10.pem", "first.example.com", NULL, NULL);
    t_write("dir/10.pem.key", "not read");
    t_write("dir/10.pem.ocsp", "not read");
    t_write("dir/10.pem.issuer", "not read");
    t_write("dir/10.pem.sctl", "not read");
    p.crt_base = t_folder();
    ctx = t_server(&world, &p);
    again = t_server(&world, &p);
    assert_ptr_equal(ctx->sni, again->sni); /* many binds, one index */
    assert_int_equal(ctx->sni->entry_count, 2);
    assert_string_equal(choice(ctx, "", &everything, false), "10.pem");
    assert_string_equal(choice(ctx, "second.example.com", &everything, true), "20.pem");
    tls_server_ctx_free(ctx);
    tls_server_ctx_free(again);
}

static void list_filters(void **state)
{
    struct tls_cert_source source;
    struct tls_server_params p = list_params(&source, "filters.list");
    struct tls_server_ctx *ctx;

    t_write("filters.list", "# comment\n\n"
                            "first.pem\n"
                            "both.pem.rsa *.a.tld record.a.tld *.b.tld !another.b.tld  # RSA\n"
                            "\tboth.pem.ecdsa record.a.tld Another.A.tld *.b.tld\r\n"
                            "www.pem [alpn h2] other.tld !ignored.tld !*\n"
                            "special.pem !*");
    ctx = t_server(&world, &p);
    assert_int_equal(ctx->sni->entry_count, 5);
    assert_string_equal(choice(ctx, "another.a.tld", &everything, true), "both.pem.ecdsa");
    assert_string_equal(choice(ctx, "another.a.tld", &rsa_only, true), "both.pem.rsa");
    assert_string_equal(choice(ctx, "another.b.tld", &everything, true), "both.pem.ecdsa");
    /*
     * Excluded for RSA, and a client without ECDSA: what there is, so that the handshake says why
     * it fails.
     */
    assert_string_equal(choice(ctx, "another.b.tld", &rsa_only, true), "both.pem.ecdsa");
    assert_string_equal(choice(ctx, "x.b.tld", &rsa_only, true), "both.pem.rsa");
    assert_string_equal(choice(ctx, "other.tld", &everything, true), "www.pem");
    /* With filters, the certificate's own names do not count. */
    assert_string_equal(choice(ctx, "www.example.com", &everything, true), "-");
    assert_string_equal(choice(ctx, "special.wild.example.com", &everything, true), "-");
    assert_string_equal(choice(ctx, "none.tld", &everything, false), "first.pem");
    tls_server_ctx_free(ctx);
}

static void list_defaults(void **state)
{
    struct tls_cert_source source;
    struct tls_server_params p = list_params(&source, "defaults.list");
    struct tls_server_ctx *ctx;

    t_write("defaults.list", "both.pem.rsa *\nboth.pem.ecdsa *\nwww.pem\n");
    ctx = t_server(&world, &p);
    assert_string_equal(choice(ctx, "none.tld", &everything, false), "both.pem.ecdsa");
    assert_string_equal(choice(ctx, "none.tld", &rsa_only, false), "both.pem.rsa");
    assert_string_equal(choice(ctx, "www.example.com", &rsa_only, false), "www.pem");
    tls_server_ctx_free(ctx);
}

/*
 * A bundle on the bind line is the default as a whole; default-crt adds to the first certificate.
 */
static void bind_defaults(void **state)
{
    struct tls_cert_source sources[] = {{.path = t_path("both.pem")}, {.path = t_path("www.pem")}};
    struct tls_server_params p = t_server_params(&(struct tls_cert_source){0}, NULL);
    struct tls_server_ctx *ctx;

    p.sources = sources;
    p.source_count = 2;
    sources[0].is_default = true;
    ctx = t_server(&world, &p);
    assert_string_equal(choice(ctx, "none.tld", &rsa_only, false), "both.pem.rsa");
    assert_string_equal(choice(ctx, "none.tld", &everything, false), "both.pem.ecdsa");
    tls_server_ctx_free(ctx);
    sources[0].is_default = false;
    ctx = t_server(&world, &p);
    assert_string_equal(choice(ctx, "none.tld", &rsa_only, false), "both.pem.rsa");
    tls_server_ctx_free(ctx);
    sources[0].path = t_path("www.pem");
    sources[1].path = t_path("both.pem");
    sources[1].is_default = true;
    ctx = t_server(&world, &p);
    assert_string_equal(choice(ctx, "none.tld", &rsa_only, false), "both.pem.rsa");
    assert_string_equal(choice(ctx, "none.tld", &ecdsa_only, false), "www.pem");
    tls_server_ctx_free(ctx);
}

static void list_options(void **state)
{
    struct t_id ca = t_id_make(&(struct t_spec){.cn = "List CA", .is_ca = true});
    char *ca_pem = t_pem_cert(&ca);
    struct tls_cert_source source;
    struct tls_server_params p = list_params(&source, "options.list");
    const struct tls_list_options *o;
    struct tls_server_ctx *ctx;

    t_write("list-ca.pem", ca_pem);
    t_write(
        "options.list",
        "first.pem [alpn h2,http/1.1 ssl-min-ver TLSv1.3 ssl-max-ver TLSv1.3] a.tld\n"
        "www.pem [ verify required ca-file list-ca.pem no-ca-names allow-0rtt ] b.tld\n"
        "special.pem [curves X25519:P-256 ciphers ECDHE-ECDSA-AES256-GCM-SHA384 no-alpn] c.tld\n"
        "special.pem [alpn h2,http/1.1 ssl-min-ver TLSv1.3 ssl-max-ver TLSv1.3] d.tld\n"
        "both.pem [] both.tld\n");
    p.alpn = "http/1.1";
    ctx = t_server(&world, &p);
    assert_int_equal(ctx->sni->option_count, 3); /* equal brackets are one */
    assert_int_equal(ctx->profile_count, 4);
    o = ctx->sni->options[0];
    assert_string_equal(o->alpn, "h2,http/1.1");
    assert_int_equal(o->min_version, TLS_VERSION_13);
    assert_int_equal(ctx->profiles[1].alpn_len, 12);
    assert_int_equal(ctx->profiles[2].verify, TLS_VERIFY_REQUIRED);
    assert_int_equal(ctx->profiles[2].alpn_len, 9); /* inherited */
    assert_false(ctx->profiles[2].ca_names);
    assert_non_null(ctx->profiles[2].trust);
    assert_string_equal(ctx->profiles[3].curves, "X25519:P-256");
    assert_int_equal(ctx->profiles[3].alpn_len, 0);
    assert_string_equal(choice(ctx, "both.tld", &rsa_only, true), "both.pem.rsa");
    tls_server_ctx_free(ctx);
    free(ca_pem);
    t_id_free(&ca);
}

static void list_errors(void **state)
{
    static const struct {
        const char *line, *message;
    } bad[] = {
        {"none.pem", "unable to load certificate "},
        {"www.pem [alpn", "no ']' after '[' on a crt-list line"},
        {"www.pem [alpn] x", "'alpn' in crt-list brackets expects a value"},
        {"www.pem [alpn h2", "no ']' after '[' on a crt-list line"},
        {"www.pem [[alpn h2]]", "unexpected '[' in crt-list brackets"},
        {"www.pem x.tld [alpn h2]", "unexpected '[alpn' on a crt-list line"},
        {"www.pem [ciphres X] x",
         "unknown option 'ciphres' in crt-list brackets, did you mean 'ciphers'?"},
        {"www.pem [verify maybe]",
         "'verify' has the value 'maybe' in crt-list brackets, expected 'none'"},
        {"www.pem [ssl-min-ver TLS1.2]", "'ssl-min-ver' has the value 'TLS1.2'"},
        {"www.pem [ocsp x.ocsp]",
         "'ocsp' in crt-list brackets is an option of HAProxy that is not supported"},
        {"www.pem [ciphers NOTHING] x", "'ciphers' has the value 'NOTHING': no cipher match"},
        {"www.pem [verify required] x", "'ca-file' is expected"},
        {"www.pem [ca-file none.pem] x", "unable to load CA or CRL file"},
        {"www.pem [key none.key] x", "unable to load private key"},
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct tls_cert_source source;
        char name[32], where[300];
        struct tls_server_params p;
        bool found = false;
        unsigned n = 0;

        snprintf(name, sizeof(name), "bad%zu.list", i);
        t_writef(name, "first.pem\n\n%s\n", bad[i].line);
        p = list_params(&source, name);
        snprintf(where, sizeof(where), "%s:3: ", t_path(name));
        assert_null(tls_server_ctx_new(world.store, &p, &world.diag));
        for (const struct diag_item *item = world.diag.first; item; item = item->next, n++) {
            const char *text = t_message(&world, n);

            found |= strncmp(text, where, strlen(where)) == 0 && strstr(text, bad[i].message);
        }
        if (!found)
            print_error("%s gives %s\n", bad[i].line, t_message(&world, n - 1));
        assert_true(found);
    }
}

static void all_list_errors_at_once(void **state)
{
    struct tls_cert_source source;
    struct tls_server_params p = list_params(&source, "many.list");

    t_write("many.list", "none1.pem\nwww.pem [bad]\nfirst.pem\nnone2.pem\n");
    assert_null(tls_server_ctx_new(world.store, &p, &world.diag));
    assert_int_equal(world.diag.errors, 3);
    source.path = "/none/list";
    assert_null(tls_server_ctx_new(world.store, &p, &world.diag));
    assert_string_equal(t_message(&world, 3),
                        "unable to read crt-list /none/list: No such file or directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(names_and_wildcards, begin, end),
        cmocka_unit_test_setup_teardown(folder, begin, end),
        cmocka_unit_test_setup_teardown(list_filters, begin, end),
        cmocka_unit_test_setup_teardown(list_defaults, begin, end),
        cmocka_unit_test_setup_teardown(bind_defaults, begin, end),
        cmocka_unit_test_setup_teardown(list_options, begin, end),
        cmocka_unit_test_setup_teardown(list_errors, begin, end),
        cmocka_unit_test_setup_teardown(all_list_errors_at_once, begin, end),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
